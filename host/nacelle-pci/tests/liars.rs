// SPDX-License-Identifier: Apache-2.0
//! What a device may say to a driver, and what not: short, long, of the wrong length, about something else, or nothing.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nacelle_pci::{Access, PciDevice, PciError, UserConfig, UserDevice};
use nacelle_slot::channel::{self, Channel, Descriptors, Message, Received};
use nacelle_slot::pages::Pages;
use nacelle_slot::protocol::{
    Capabilities, DmaAccess, Header, Info, IrqInfo, MapArea, RegionAccess, RegionInfo, SparseMmap, Version, command,
    device, flag, region, split,
};
use rustix::event::{PollFd, PollFlags};
use zerocopy::IntoBytes;

/// What a device says to a message; `None` for what is right.
type Lie = fn(&Message) -> Option<Said>;

enum Said {
    /// A payload.
    Payload(Vec<u8>),
    /// A header as it is, and a payload.
    Raw(Header, Vec<u8>),
    /// Nothing more, with an open socket.
    Nothing,
    /// The end.
    End,
}

/// A device that says the truth but for one thing.
fn device(lie: Lie) -> (UnixStream, JoinHandle<()>) {
    let (here, there) = UnixStream::pair().unwrap();
    let mut raw = there.try_clone().unwrap();
    let thread = std::thread::spawn(move || {
        let mut channel = Channel::new(there, 1 << 20).unwrap();
        loop {
            let wait = &mut [PollFd::from_borrowed_fd(channel.socket(), PollFlags::IN)];
            channel::wait(wait, Some(Duration::from_secs(20))).unwrap();
            match channel.receive() {
                Ok(Received::Message) => {}
                Ok(Received::Nothing) => continue,
                _ => return,
            }
            let message = channel.take();
            let reply = Header { flags: flag::REPLY, ..message.header };
            match lie(&message).unwrap_or_else(|| Said::Payload(truth(&message))) {
                Said::Payload(bytes) => channel.queue(reply, &[&bytes], Descriptors::new()),
                Said::Raw(header, bytes) => {
                    let _the_driver_may_have_gone = raw.write_all(&[header.as_bytes(), &bytes].concat());
                }
                Said::Nothing => {}
                Said::End => return,
            }
            let _the_driver_may_have_gone = channel.flush();
        }
    });
    (here, thread)
}

fn truth(message: &Message) -> Vec<u8> {
    match message.header.command {
        command::VERSION => [Version { major: 0, minor: 1 }.as_bytes(), &Capabilities::default().to_bytes()].concat(),
        command::GET_INFO => {
            Info { argsz: 16, flags: device::PCI | device::RESET, regions: 9, irqs: 5 }.as_bytes().to_vec()
        }
        command::GET_REGION_INFO => {
            let (asked, _) = split::<RegionInfo>(message.payload()).unwrap();
            RegionInfo { argsz: 32, flags: 3, size: 4096, index: asked.index, ..RegionInfo::default() }
                .as_bytes()
                .to_vec()
        }
        command::GET_IRQ_INFO => IrqInfo { argsz: 16, flags: 1, index: 2, count: 4 }.as_bytes().to_vec(),
        command::REGION_READ => {
            let (access, _) = split::<RegionAccess>(message.payload()).unwrap();
            [access.as_bytes(), &vec![7; access.count as usize]].concat()
        }
        command::REGION_WRITE => message.payload()[..16].to_vec(),
        _ => Vec::new(),
    }
}

fn connect(lie: Lie) -> Result<UserDevice, PciError> {
    let config = UserConfig { timeout: Duration::from_millis(300), ..UserConfig::default() };
    UserDevice::over(device(lie).0, config)
}

fn is(message: &Message, command: u16) -> bool {
    message.header.command == command
}

#[test]
fn the_truth_is_believed() {
    let mut driver = connect(|_| None).unwrap();
    assert_eq!((driver.vectors(), driver.bar_size(5), driver.read32(0, 0).unwrap()), (4, 4096, 0x0707_0707));
}

#[test]
fn a_device_that_makes_no_sense_is_not_used() {
    let lies: [Lie; 16] = [
        |m| is(m, command::VERSION).then_some(Said::End),
        |m| is(m, command::VERSION).then_some(Said::Nothing),
        |m| is(m, command::VERSION).then(|| Said::Payload(vec![0, 0, 1])),
        |m| is(m, command::VERSION).then(|| Said::Payload(vec![1, 0, 0, 0])),
        |m| is(m, command::VERSION).then(|| Said::Payload(vec![0, 0, 2, 0])),
        |m| is(m, command::VERSION).then(|| Said::Payload(b"\0\0\0\0{\"capabilities\":7}\0".to_vec())),
        |m| is(m, command::VERSION).then(|| Said::Payload(b"\0\0\0\0{}".to_vec())),
        |m| is(m, command::GET_INFO).then(|| Said::Payload(vec![0; 15])),
        |m| {
            is(m, command::GET_INFO)
                .then(|| Said::Payload(Info { flags: 1, regions: 9, irqs: 5, argsz: 16 }.as_bytes().to_vec()))
        },
        |m| {
            is(m, command::GET_INFO)
                .then(|| Said::Payload(Info { flags: 2, regions: 7, irqs: 5, argsz: 16 }.as_bytes().to_vec()))
        },
        |m| is(m, command::GET_REGION_INFO).then(|| Said::Payload(vec![0; 31])),
        |m| is(m, command::GET_IRQ_INFO).then(|| Said::Payload(Vec::new())),
        |m| is(m, command::GET_INFO).then(|| Said::Raw(Header { size: 3, flags: 1, ..m.header }, Vec::new())),
        |m| is(m, command::GET_INFO).then(|| Said::Raw(Header { size: u32::MAX, flags: 1, ..m.header }, vec![0; 64])),
        |m| {
            is(m, command::GET_INFO)
                .then(|| Said::Raw(Header { id: m.header.id + 1, size: 32, flags: 1, ..m.header }, vec![0; 16]))
        },
        |m| {
            is(m, command::GET_INFO)
                .then(|| Said::Raw(Header { command: 9, size: 32, flags: 1, ..m.header }, vec![0; 16]))
        },
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let begin = Instant::now();
        let error = connect(lie).expect_err("it lies");
        assert!(matches!(error, PciError::Unusable(_) | PciError::Gone | PciError::Timeout), "{number}: {error}");
        assert!(begin.elapsed() < Duration::from_secs(15), "{number}");
    }
}

#[test]
fn what_a_device_reads_wrongly_is_no_value() {
    let lies: [Lie; 4] = [
        |m| is(m, command::REGION_READ).then(|| Said::Payload(m.payload()[..16].to_vec())),
        |m| is(m, command::REGION_READ).then(|| Said::Payload([m.payload(), &[1; 5]].concat())),
        |m| is(m, command::REGION_READ).then(|| Said::Payload(vec![0; 3])),
        |m| {
            is(m, command::REGION_READ).then(|| {
                Said::Raw(Header { flags: 1 | flag::ERROR, error: u32::MAX, size: 16, ..m.header }, Vec::new())
            })
        },
    ];
    for lie in lies {
        let mut driver = connect(lie).unwrap();
        let error = driver.read32(0, 0).unwrap_err();
        assert!(matches!(error, PciError::Unusable(_) | PciError::Refused { .. }), "{error}");
    }
}

/// Lists of parts to be mapped that are short, huge, or go round in circles; files that are too short, or could vanish.
#[test]
fn nothing_is_mapped_that_is_not_there() {
    fn caps(m: &Message, sparse: SparseMmap, areas: &[MapArea]) -> Option<Said> {
        let (asked, _) = split::<RegionInfo>(m.payload()).filter(|_| is(m, command::GET_REGION_INFO))?;
        let flags = 3 | region::MMAP | region::CAPS;
        let info = RegionInfo { argsz: 999, flags, index: asked.index, cap_offset: 32, size: 4096, offset: 0 };
        Some(Said::Payload([info.as_bytes(), sparse.as_bytes(), areas.as_bytes()].concat()))
    }
    const SPARSE: SparseMmap = SparseMmap { id: 1, version: 1, next: 0, areas: 1, reserved: 0 };
    const AREA: MapArea = MapArea { offset: 0, size: 4096 };
    let lies: [Lie; 6] = [
        |m| caps(m, SPARSE, &[AREA]),
        |m| caps(m, SparseMmap { areas: u32::MAX, ..SPARSE }, &[AREA]),
        |m| caps(m, SparseMmap { next: 32, ..SPARSE }, &[]),
        |m| caps(m, SparseMmap { next: u32::MAX, ..SPARSE }, &[AREA]),
        |m| caps(m, SparseMmap { id: 9, next: 48, ..SPARSE }, &[AREA]),
        |m| caps(m, SPARSE, &[MapArea { offset: u64::MAX, size: u64::MAX }]),
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let mut driver = connect(lie).unwrap();
        let error = driver.map_bar(0, 0, 4096).unwrap_err();
        assert!(matches!(error, PciError::NotMappable { .. }), "{number}: {error}");
    }
}

/// A device that asks for memory that is not its.
#[test]
fn a_device_reaches_only_what_it_was_given() {
    let (socket, there) = UnixStream::pair().unwrap();
    let driver = std::thread::spawn(move || {
        let config = UserConfig { timeout: Duration::from_secs(20), ..UserConfig::default() };
        let mut driver = UserDevice::over(socket, config).unwrap();
        let buffer = driver.alloc_dma(4096, Access { read: true, write: false }).unwrap();
        buffer.write(0, &[5; 4096]).unwrap();
        assert_eq!(driver.read8(0, buffer.iova() >> 32).unwrap(), 7);
        let mut all = vec![0; 4096];
        buffer.read(0, &mut all).unwrap();
        assert!(all.iter().all(|byte| *byte == 5));
    });
    let mut channel = Channel::new(there, 1 << 20).unwrap();
    let next = |channel: &mut Channel| loop {
        let wait = &mut [PollFd::from_borrowed_fd(channel.socket(), PollFlags::IN)];
        channel::wait(wait, None).unwrap();
        if channel.receive().unwrap() == Received::Message {
            return channel.take();
        }
    };
    loop {
        let message = next(&mut channel);
        if is(&message, command::REGION_READ) {
            for (command, address, count, bytes, works) in [
                (command::DMA_READ, 1 << 32, 16, 0, true),
                (command::DMA_READ, (1 << 32) + 4095, 2, 0, false),
                (command::DMA_READ, 0, 1, 0, false),
                (command::DMA_READ, 1 << 32, u64::MAX, 0, false),
                (command::DMA_READ, u64::MAX, 1, 0, false),
                (command::DMA_READ, 1 << 32, 16, 16, false),
                (command::DMA_WRITE, 1 << 32, 16, 16, false),
                (command::DMA_WRITE, 1 << 32, 16, 15, false),
                (command::RESET, 0, 0, 0, false),
            ] {
                let access = DmaAccess { address, count };
                let header = Header { id: 9, command, ..Header::default() };
                channel.queue(header, &[access.as_bytes(), &vec![6; bytes]], Descriptors::new());
                channel.flush().unwrap();
                let reply = next(&mut channel);
                assert_eq!(reply.header.flags & flag::ERROR == 0, works, "{command} {access:?}");
                assert!(!works || reply.payload()[16..] == [5; 16]);
            }
        }
        let last = is(&message, command::REGION_READ);
        channel.queue(Header { flags: flag::REPLY, ..message.header }, &[&truth(&message)], Descriptors::new());
        channel.flush().unwrap();
        if last {
            break;
        }
    }
    driver.join().unwrap();
}

/// A file of the device that is not sealed could vanish under the mapping.
#[test]
fn a_file_that_could_vanish_is_not_mapped() {
    let sealed = Pages::create("sealed", 4096).unwrap();
    let open = std::os::fd::OwnedFd::from(tempfile::tempfile().unwrap());
    for (file, works) in [(sealed.file().unwrap().try_clone_to_owned().unwrap(), true), (open, false)] {
        let (socket, there) = UnixStream::pair().unwrap();
        let device = std::thread::spawn(move || {
            let mut channel = Channel::new(there, 1 << 20).unwrap();
            loop {
                let wait = &mut [PollFd::from_borrowed_fd(channel.socket(), PollFlags::IN)];
                channel::wait(wait, None).unwrap();
                match channel.receive() {
                    Ok(Received::Message) => {}
                    Ok(Received::Nothing) => continue,
                    _ => return,
                }
                let message = channel.take();
                let (mut said, mut descriptors) = (truth(&message), Descriptors::new());
                if is(&message, command::GET_REGION_INFO) {
                    said[4] |= region::MMAP as u8;
                    descriptors.push(file.try_clone().unwrap());
                }
                channel.queue(Header { flags: flag::REPLY, ..message.header }, &[&said], descriptors);
                channel.flush().unwrap();
            }
        });
        let mut driver = UserDevice::over(socket, UserConfig::default()).unwrap();
        assert_eq!(driver.map_bar(0, 0, 4096).is_ok(), works);
        drop(driver);
        device.join().unwrap();
    }
}
