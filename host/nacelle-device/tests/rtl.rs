// SPDX-License-Identifier: Apache-2.0
//! The wrapper around the simulated device, and the host program with it, against a stand-in for the library.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::Running;
use nacelle_device::{
    Bounds, DeviceError, FrameEngine, MemoryFaults, Place, PushError, RtlEngine, SimConfig, SimLibrary, Stop,
};
use nacelle_link::{Link, MAX_FRAME, VirtualWire, WireDir};
use nacelle_manage::map::{Chain, Register, Target, device};
use nacelle_manage::{Control, DeviceKind, Done, Error, FrameKind, Registers, Request, discover};
use nacelle_wire::MacAddr;
use nacelle_wire::arp::ArpPacket;
use nacelle_wire::icmp::{EchoPacket, Kind};
use nacelle_wire::ipv4::{Ipv4Header, PROTOCOL_ICMP};

const CLIENT_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
const CLIENT_IP: std::net::Ipv4Addr = std::net::Ipv4Addr::new(10, 77, 0, 9);

/// A stand-in device that runs.
fn start(library: &Path, place: &Place) -> Running {
    let library = library.to_owned();
    Running::start(place, move || RtlEngine::new(&SimLibrary::load(&library).unwrap(), &SimConfig::default()).unwrap())
}

fn place(wire: &WireDir) -> Place {
    Place::find(wire, DeviceKind::Rtl, None, None).unwrap()
}

fn receive(link: &mut VirtualWire) -> Vec<u8> {
    let mut buffer = vec![0; MAX_FRAME];
    let length = link.recv(&mut buffer, Instant::now() + Duration::from_secs(5)).unwrap().expect("an answer");
    buffer.truncate(length);
    buffer
}

fn ping(place: &Place, sequence: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; MAX_FRAME];
    let length = EchoPacket {
        dst: place.identity.mac,
        src: CLIENT_MAC,
        ip: Ipv4Header::new(CLIENT_IP, place.identity.ip, PROTOCOL_ICMP),
        kind: Kind::Request,
        identifier: 1,
        sequence,
        payload,
    }
    .write(&mut frame)
    .unwrap();
    frame.truncate(length);
    frame
}

#[test]
fn the_wrapper_passes_everything_through() {
    let temp = tempfile::tempdir().unwrap();
    let library = SimLibrary::load(&common::build_mock(temp.path())).unwrap();
    assert_eq!((library.info().data_w, library.info().dram_bytes), (512, 4096));
    let mut sim = library.create(&SimConfig::default()).unwrap();
    sim.dram_write(4000, &[7; 96]).unwrap();
    let mut data = [0; 96];
    sim.dram_read(4000, &mut data).unwrap();
    assert_eq!(data, [7; 96]);
    assert!(matches!(sim.dram_write(4000, &[0; 97]), Err(DeviceError::Memory { address: 4000, length: 97 })));
    sim.reg_write(device::IP.offset, 5).unwrap();
    assert_eq!(sim.reg_read(device::IP.offset).unwrap(), 5);
    assert!(matches!(sim.reg_read(0x3), Err(DeviceError::Register { address: 3 })));
    assert_eq!(sim.push_frame(&[]), Err(PushError::Length));
    assert_eq!(sim.push_frame(&vec![0; MAX_FRAME + 1]), Err(PushError::Length));
    for _ in 0..16 {
        sim.push_frame(&[0; 60]).unwrap();
    }
    assert_eq!(sim.push_frame(&[0; 60]), Err(PushError::Full));
    assert_eq!(sim.skip(1000), 0, "not while a frame waits");
    assert!(!sim.idle());
    sim.step(1000, Stop::Never);
    assert!(sim.idle());
    assert_eq!(sim.pop_rx_stamp().unwrap().last_beat, 1);
    assert_eq!(sim.pull_frame(&mut [0; 64]), None);
    assert_eq!(sim.skip(1000), 1000);
    assert_eq!((sim.stats().cycles, sim.stats().cycles_simulated, sim.stats().rx_frames), (2000, 1000, 16));
}

#[test]
fn bounds_are_registers() {
    const BOUNDS: [Register; 3] =
        [device::KERNEL_TIMEOUT_MS, device::MAX_CONNECTIONS_PER_PEER, device::MEMORY_PER_CALLER];
    let temp = tempfile::tempdir().unwrap();
    let wire = WireDir::open(temp.path().join("wire")).unwrap();
    let identity = place(&wire).identity;
    let library = SimLibrary::load(&common::build_mock(temp.path())).unwrap();
    let written = |bounds: Bounds| {
        let mut engine = RtlEngine::new(&library, &SimConfig::default()).unwrap();
        for register in BOUNDS {
            engine.sim().reg_write(register.offset, 77).unwrap();
        }
        let mut engine = engine.with_bounds(bounds);
        engine.configure(&identity, 1).unwrap();
        BOUNDS.map(|register| engine.sim().reg_read(register.offset).unwrap())
    };
    let bounds = |time, connections, memory| Bounds {
        kernel_time: Some(time),
        connections_per_caller: Some(connections),
        memory_per_caller: Some(memory),
    };
    assert_eq!(written(Bounds::default()), [77; 3], "as the device begins");
    assert_eq!(written(bounds(Duration::from_secs(2), 3, 4 << 20)), [2000, 3, 4096]);
    assert_eq!(written(bounds(Duration::ZERO, 0, 0)), [0; 3]);
    assert_eq!(written(bounds(Duration::from_nanos(1), 1, 1)), [1; 3], "too little is not no bound");
    assert_eq!(written(bounds(Duration::MAX, usize::MAX, u64::MAX)), [0xff_ffff, 0xffff, 0x3fff_ffff]);
}

#[test]
fn what_is_no_library_is_refused_with_a_reason() {
    let temp = tempfile::tempdir().unwrap();
    let missing = SimLibrary::load(&temp.path().join("none.so")).err().unwrap();
    assert!(missing.to_string().contains("there is no such file"), "{missing}");
    let text = temp.path().join("text.so");
    std::fs::write(&text, "no library").unwrap();
    assert!(matches!(SimLibrary::load(&text), Err(DeviceError::Library { .. })));
    let mock = SimLibrary::load(&common::build_mock(temp.path())).unwrap();
    let refused = mock.create(&SimConfig { line_rate_mbps: 13, ..SimConfig::default() }).err().unwrap();
    assert!(refused.to_string().ends_with("this device does not like the number 13"), "{refused}");
}

#[test]
fn faults_of_memory_are_set_or_refused() {
    let temp = tempfile::tempdir().unwrap();
    let mock = SimLibrary::load(&common::build_mock(temp.path())).unwrap();
    let with = |faults| mock.create(&SimConfig { faults, ..SimConfig::default() });
    let sim = with(MemoryFaults { one_ppm: 7, ..MemoryFaults::default() }).unwrap();
    assert_eq!(sim.stats().dram_flips, 7);
    let refused = with(MemoryFaults { controller_ecc: 1, ..MemoryFaults::default() }).err().unwrap();
    assert!(refused.to_string().contains("the device itself keeps by a code"), "{refused}");
}

#[test]
fn a_device_answers_on_the_wire_and_on_its_management_socket() {
    let temp = tempfile::tempdir().unwrap();
    let wire = WireDir::open(temp.path().join("wire")).unwrap();
    let place = place(&wire);
    let mut device = start(&common::build_mock(temp.path()), &place);

    let found = discover::list(&wire);
    assert_eq!(found.len(), 1);
    assert!(found[0].alive);
    let says = &found[0].device;
    assert_eq!((says.name.as_str(), says.ip, says.mac), ("rtl0", place.identity.ip.into(), place.identity.mac));

    let mut control = Control::open(&wire, "rtl0").unwrap();
    let capture = temp.path().join("capture.pcapng");
    let _: Done = control.ask(&Request::CaptureStart { path: capture.clone() }).unwrap();
    let mark = control.trace(0).unwrap().next;

    let mut link = VirtualWire::join(&wire, "client").unwrap();
    let mut question = [0; 60];
    ArpPacket::request(CLIENT_MAC, CLIENT_IP, place.identity.ip).write(&mut question).unwrap();
    link.send(&question).unwrap();
    let answer = ArpPacket::parse(&receive(&mut link)).unwrap();
    assert_eq!((answer.sender_mac, answer.sender_ip), (place.identity.mac, place.identity.ip));
    // More at once than the device's queue takes: the host keeps the rest.
    for sequence in 0..100 {
        link.send(&ping(&place, sequence, &[sequence as u8; 300])).unwrap();
    }
    for sequence in 0..100 {
        let frame = receive(&mut link);
        let echo = EchoPacket::parse(&frame).unwrap();
        assert_eq!((echo.kind, echo.sequence, echo.payload), (Kind::Reply, sequence, &[sequence as u8; 300][..]));
    }

    let trace = control.trace(mark).unwrap();
    assert_eq!((trace.frames.len(), trace.lost), (202, 0));
    assert_eq!(trace.frames.iter().filter(|frame| frame.rx).count(), 101);
    let (first, second) = (&trace.frames[0], &trace.frames[1]);
    assert!(matches!(first.kind, FrameKind::ArpRequest { target, .. } if target == place.identity.ip));
    assert!(matches!(second.kind, FrameKind::ArpReply { .. }));
    assert_eq!(second.first_beat - first.first_beat, 7, "the stand-in answers after 7 cycles");
    let again = control.trace(trace.next).unwrap();
    assert!(again.frames.is_empty());

    let stats = control.stats().unwrap();
    assert_eq!((stats.counters["packet_rx_frame"], stats.counters["sim.rx_frames"]), (42, 101));
    let _: Done = control.ask(&Request::CaptureStop {}).unwrap();
    assert!(control.ask::<Done>(&Request::CaptureStop {}).is_err(), "none runs any more");
    assert!(std::fs::metadata(&capture).unwrap().len() > 202 * 60);

    let _: Done = control.ask(&Request::Shutdown {}).unwrap();
    device.wait();
    assert!(discover::list(&wire).is_empty(), "the descriptor is gone");
}

#[test]
fn registers_are_found_by_name_through_the_management_socket() {
    let temp = tempfile::tempdir().unwrap();
    let wire = WireDir::open(temp.path().join("wire")).unwrap();
    let _device = start(&common::build_mock(temp.path()), &place(&wire));
    let mut control = Control::open(&wire, "rtl0").unwrap();
    let blocks: Vec<_> = Chain::new(&mut control).map(Result::unwrap).collect();
    let names: Vec<_> = blocks.iter().map(|block| block.name(&blocks)).collect();
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(names, [named("device"), named("management"), None, named("socket")], "one of them is not known");
    let read = |control: &mut Control, name: &str| Target::find(&blocks, name).unwrap().read(control).unwrap();
    assert_eq!((read(&mut control, "socket.JOBS"), read(&mut control, "packet_rx_frame")), (7, 42));
    Target::find(&blocks, "KEEPALIVE_MS").unwrap().write(&mut control, 500).unwrap();
    assert_eq!(read(&mut control, "keepalive_ms"), 500);

    // More than one request takes, and an error in the middle.
    let many: Vec<u32> = (0..1000).map(|index| index % 4 * 4).collect();
    let values = control.read_all(&many).unwrap();
    assert_eq!(values.len(), many.len());
    assert!(values.chunks(4).all(|words| words == &values[..4]));
    assert!(
        matches!(control.read_all(&[0, 4, 0xffffc]), Err(Error::Management { why, .. }) if why.contains("0xffffc"))
    );
}

#[test]
fn an_idle_devices_time_follows_the_clock_on_the_wall_and_costs_next_to_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let wire = WireDir::open(temp.path().join("wire")).unwrap();
    let place = place(&wire);
    let _device = start(&common::build_mock(temp.path()), &place);
    let mut control = Control::open(&wire, "rtl0").unwrap();
    let (started, before) = (Instant::now(), control.stats().unwrap());
    std::thread::sleep(Duration::from_millis(600));
    let (after, wall) = (control.stats().unwrap(), started.elapsed());
    let passed = Duration::from_micros(after.cycles - before.cycles); // the stand-in's clock is 1 MHz
    assert!(passed <= wall + Duration::from_millis(60), "{passed:?} in {wall:?}");
    assert!(passed >= Duration::from_millis(450), "{passed:?} in {wall:?}");
    assert_eq!(after.counters["sim.cycles_simulated"], before.counters["sim.cycles_simulated"], "all of it skipped");
}

#[test]
fn names_and_addresses_are_not_given_twice() {
    let temp = tempfile::tempdir().unwrap();
    let wire = WireDir::open(temp.path().join("wire")).unwrap();
    let first = place(&wire);
    let library = common::build_mock(temp.path());
    let running = start(&library, &first);
    let second = place(&wire);
    assert_eq!((second.name.as_str(), second.identity.ip.octets()), ("rtl1", [10, 77, 0, 3]));
    assert_ne!(first.identity.mac, second.identity.mac);
    let taken = Place::find(&wire, DeviceKind::Rtl, Some("rtl0"), None);
    assert!(matches!(taken, Err(DeviceError::Taken { .. })));
    let taken = Place::find(&wire, DeviceKind::Rtl, None, Some((first.identity.ip, 16)));
    assert!(matches!(taken, Err(DeviceError::Taken { .. })));

    // What a device that was killed leaves behind does not keep its name.
    let left = std::fs::read(wire.file("rtl0.device.json")).unwrap();
    drop(running);
    std::fs::write(wire.file("rtl0.device.json"), left).unwrap();
    assert!(!discover::list(&wire)[0].alive);
    let identity = first.identity;
    drop(first);
    let again = place(&wire);
    assert_eq!((again.name.as_str(), again.identity), ("rtl0", identity));
    let _again = start(&library, &again);
    assert!(discover::list(&wire)[0].alive);
}
