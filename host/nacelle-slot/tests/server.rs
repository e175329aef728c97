// SPDX-License-Identifier: Apache-2.0
//! The server against a client that speaks byte by byte: what is answered, and what a client cannot do to it.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nacelle_slot::channel::{Channel, Descriptors, Message, Received};
use nacelle_slot::config_space::{ConfigEvent, ConfigSpace};
use nacelle_slot::dma::Fault;
use nacelle_slot::pages::Pages;
use nacelle_slot::protocol::{
    Capabilities, DmaAccess, DmaMap, DmaUnmap, Header, Info, IoEventFd, IrqInfo, MapArea, RegionAccess, RegionInfo,
    RegionIoFds, SetIrqs, SparseMmap, Version, command, dma, flag, irq, region, split,
};
use nacelle_slot::{Errno, ResetCause, Server, ServerConfig, ServerError};
use support::{PENDING, TABLE, Toy, UNUSABLE, VECTORS, WINDOW, register, status};
use zerocopy::IntoBytes;

/// A client and a server in one thread, and a clock that only the test moves.
struct Bench {
    server: Server,
    toy: Toy,
    client: Channel,
    raw: UnixStream,
    now: Duration,
    id: u16,
    eventfds: Vec<OwnedFd>,
}

const MS: Duration = Duration::from_millis(1);

impl Bench {
    fn silent(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let toy = Toy::new();
        let mut config = toy.config();
        change(&mut config);
        let (here, there) = UnixStream::pair().unwrap();
        let raw = here.try_clone().unwrap();
        let server = Server::connected(there, Toy::space(), config).unwrap();
        let client = Channel::new(here, 2 << 20).unwrap();
        Self { server, toy, client, raw, now: Duration::ZERO, id: 0, eventfds: Vec::new() }
    }

    fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut bench = Self::silent(change);
        let hello = Version { major: 0, minor: 1 };
        let reply = bench.ask(command::VERSION, &[hello.as_bytes(), b"{\"capabilities\":{\"max_msg_fds\":8}}\0"]);
        let (version, json) = split::<Version>(reply.payload()).unwrap();
        assert_eq!((version.major, version.minor), (0, 1));
        let said = Capabilities::parse(json).unwrap();
        assert_eq!(said, Capabilities { descriptors: 16, transfer: 1 << 20, mappings: 4096 });
        bench
    }

    fn new() -> Self {
        Self::with(|_| {})
    }

    /// A bus master.
    fn master() -> Self {
        let mut bench = Self::new();
        bench.config_write(4, &[6]);
        bench
    }

    fn poll(&mut self) -> bool {
        self.server.poll(self.now, Duration::ZERO, &mut self.toy).unwrap()
    }

    fn send(&mut self, command: u16, flags: u32, parts: &[&[u8]], descriptors: &[BorrowedFd<'_>]) -> u16 {
        self.id = self.id.wrapping_add(1);
        let descriptors: Descriptors = descriptors.iter().map(|fd| fd.try_clone_to_owned().unwrap()).collect();
        self.client.queue(Header { id: self.id, command, flags, ..Header::default() }, parts, descriptors);
        let _the_server_may_have_gone = self.client.flush();
        self.id
    }

    /// What the server says next, after some polls.
    fn hear(&mut self) -> Option<Message> {
        for _ in 0..50 {
            self.poll();
            let _the_server_may_have_gone = self.client.flush();
            match self.client.receive() {
                Ok(Received::Message) => return Some(self.client.take()),
                Ok(Received::Nothing) => {}
                _ => return None,
            }
        }
        None
    }

    fn ask_with(&mut self, command: u16, parts: &[&[u8]], descriptors: &[BorrowedFd<'_>]) -> Message {
        let id = self.send(command, 0, parts, descriptors);
        let reply = self.hear().expect("every command is answered");
        let Header { id: replied, command: to, flags, .. } = reply.header;
        assert_eq!((replied, to, flags & flag::TYPE), (id, command, flag::REPLY));
        reply
    }

    fn ask(&mut self, command: u16, parts: &[&[u8]]) -> Message {
        self.ask_with(command, parts, &[])
    }

    /// The errno of what must fail.
    fn fails_with(&mut self, command: u16, parts: &[&[u8]], descriptors: &[BorrowedFd<'_>]) -> Errno {
        errno(&self.ask_with(command, parts, descriptors)).expect("it fails")
    }

    fn fails(&mut self, command: u16, parts: &[&[u8]]) -> Errno {
        self.fails_with(command, parts, &[])
    }

    fn read(&mut self, region: u32, offset: u64, count: u32) -> Result<Vec<u8>, Errno> {
        let access = RegionAccess { offset, region, count };
        let reply = self.ask(command::REGION_READ, &[access.as_bytes()]);
        errno(&reply).map_or(Ok(()), Err)?;
        let (said, bytes) = split::<RegionAccess>(reply.payload()).unwrap();
        assert_eq!((said, bytes.len()), (access, count as usize));
        Ok(bytes.to_vec())
    }

    fn write(&mut self, region: u32, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        let access = RegionAccess { offset, region, count: bytes.len() as u32 };
        let reply = self.ask(command::REGION_WRITE, &[access.as_bytes(), bytes]);
        errno(&reply).map_or(Ok(()), Err)?;
        assert_eq!(reply.payload(), access.as_bytes());
        Ok(())
    }

    fn config_write(&mut self, offset: u64, bytes: &[u8]) {
        self.write(region::CONFIG, offset, bytes).unwrap();
    }

    fn number(&mut self, register: u64) -> u32 {
        u32::from_le_bytes(self.read(0, register, 4).unwrap().try_into().unwrap())
    }

    fn map(&mut self, address: u64, size: u64, file: Option<BorrowedFd<'_>>) -> Option<Errno> {
        let map = DmaMap { argsz: 32, flags: dma::READ | dma::WRITE, offset: 0, address, size };
        errno(&self.ask_with(command::DMA_MAP, &[map.as_bytes()], file.as_slice()))
    }

    fn unmap(&mut self, address: u64, size: u64) -> Option<Errno> {
        let unmap = DmaUnmap { argsz: 24, flags: 0, address, size };
        let reply = self.ask(command::DMA_UNMAP, &[unmap.as_bytes()]);
        let errno = errno(&reply);
        assert!(errno.is_some() || reply.payload() == unmap.as_bytes());
        errno
    }

    fn go(&mut self, address: u64, len: u32) {
        self.write(0, register::ADDRESS, &address.to_le_bytes()).unwrap();
        self.write(0, register::LENGTH, &len.to_le_bytes()).unwrap();
        // Posted: the device may ask for memory before it would answer.
        let access = RegionAccess { offset: register::GO, region: 0, count: 4 };
        self.send(command::REGION_WRITE, flag::NO_REPLY, &[access.as_bytes(), &1u32.to_le_bytes()], &[]);
    }

    /// Eventfds for the first vectors.
    fn interrupts(&mut self, count: u32) {
        self.eventfds = (0..count).map(|_| eventfd()).collect();
        let set = irqs(irq::DATA_EVENTFD | irq::ACTION_TRIGGER, 0, count);
        let eventfds: Vec<OwnedFd> = self.eventfds.iter().map(|fd| fd.try_clone().unwrap()).collect();
        let fds: Vec<BorrowedFd<'_>> = eventfds.iter().map(AsFd::as_fd).collect();
        assert_eq!(errno(&self.ask_with(command::SET_IRQS, &[set.as_bytes()], &fds)), None);
    }

    /// How often an interrupt has come.
    fn came(&self, vector: usize) -> u64 {
        let mut times = [0; 8];
        rustix::io::read(&self.eventfds[vector], &mut times).map_or(0, |_| u64::from_ne_bytes(times))
    }
}

fn errno(reply: &Message) -> Option<Errno> {
    let failed = reply.header.flags & flag::ERROR != 0;
    assert!(!failed || reply.payload().is_empty());
    failed.then(|| Errno::from_raw_os_error(reply.header.error as i32))
}

fn eventfd() -> OwnedFd {
    rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap()
}

fn irqs(flags: u32, start: u32, count: u32) -> SetIrqs {
    SetIrqs { argsz: 20, flags, index: irq::MSIX, start, count }
}

#[test]
fn it_says_what_it_is() {
    let mut bench = Bench::new();
    let info = Info { argsz: 32, ..Info::default() };
    let reply = bench.ask(command::GET_INFO, &[info.as_bytes()]);
    assert_eq!(split::<Info>(reply.payload()).unwrap().0, Info { argsz: 16, flags: 3, regions: 9, irqs: 5 });
    for (index, size, flags, argsz) in [
        (0, 0x10000, 3, 32),
        (1, 0, 0, 32),
        (2, 0x1000, 7, 64),
        (4, 1 << 20, 3, 32),
        (region::ROM, 0, 0, 32),
        (region::CONFIG, 4096, 3, 32),
        (8, 0, 0, 32),
    ] {
        let asked = RegionInfo { argsz: 32, index, ..RegionInfo::default() };
        let mut reply = bench.ask(command::GET_REGION_INFO, &[asked.as_bytes()]);
        assert_eq!(reply.payload(), RegionInfo { argsz, flags, index, size, ..RegionInfo::default() }.as_bytes());
        assert!(std::mem::take(&mut reply.descriptors).is_empty());
    }
    let asked = RegionInfo { argsz: 64, index: 2, ..RegionInfo::default() };
    let mut reply = bench.ask(command::GET_REGION_INFO, &[asked.as_bytes()]);
    let (info, caps) = split::<RegionInfo>(reply.payload()).unwrap();
    assert_eq!((info.flags, info.cap_offset, info.argsz), (15, 32, 64));
    let (sparse, areas) = split::<SparseMmap>(caps).unwrap();
    assert_eq!((sparse.id, sparse.version, sparse.next, sparse.areas), (1, 1, 0, 1));
    assert_eq!(areas, MapArea { offset: 0, size: 4096 }.as_bytes());
    let file = std::mem::take(&mut reply.descriptors).pop().unwrap();
    let mapped = Pages::of(file, 0, 4096, nacelle_slot::pages::Access::BOTH).unwrap();
    mapped.write(8, b"doorbell").unwrap();
    assert_eq!(bench.read(2, 8, 8).unwrap(), b"doorbell");
    bench.write(2, 0xff8, b"from far").unwrap();
    let mut far = [0; 8];
    bench.toy.page.read(0xff8, &mut far).unwrap();
    assert_eq!(&far, b"from far");

    for (index, count) in [(0, 0), (1, 0), (irq::MSIX, u32::from(VECTORS)), (3, 0), (4, 0)] {
        let asked = IrqInfo { argsz: 16, index, ..IrqInfo::default() };
        let reply = bench.ask(command::GET_IRQ_INFO, &[asked.as_bytes()]);
        let (info, _) = split::<IrqInfo>(reply.payload()).unwrap();
        assert_eq!((info.index, info.count, info.flags & irq::EVENTFD), (index, count, 1));
    }
    assert_eq!(bench.toy.clients, [true]);
}

#[test]
fn registers_are_read_and_written_at_every_width() {
    let mut bench = Bench::new();
    bench.write(0, register::SCRATCH, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    for (offset, len) in [(0, 8), (4, 4), (2, 2), (7, 1)] {
        let expected: Vec<u8> = (offset as u8 + 1..offset as u8 + 1 + len as u8).collect();
        assert_eq!(bench.read(0, offset, len).unwrap(), expected);
    }
    assert_eq!(bench.read(0, register::ERROR, 4), Err(Errno::NXIO));
    assert_eq!(bench.write(0, register::ERROR, &[1]), Err(Errno::NXIO));
    assert_eq!(bench.read(4, 0xf_0000, 0x1_0000).unwrap(), vec![0x44; 0x1_0000]);
    // A posted write: no answer, and the next command sees it.
    let access = RegionAccess { offset: 0, region: 0, count: 1 };
    bench.send(command::REGION_WRITE, flag::NO_REPLY, &[access.as_bytes(), &[99]], &[]);
    assert_eq!(bench.read(0, 0, 2).unwrap(), [99, 2]);
}

/// By the window of the configuration space, as virtio has it (virtio 1.2, 4.1.4.9).
#[test]
fn registers_are_reached_by_the_configuration_space() {
    let mut bench = Bench::new();
    let aim = |bench: &mut Bench, bar: u8, offset: u64, bytes: u32| {
        bench.config_write(WINDOW + 4, &[bar]);
        bench.config_write(WINDOW + 8, &(offset as u32).to_le_bytes());
        bench.config_write(WINDOW + 12, &bytes.to_le_bytes());
    };
    let data = WINDOW + 16;
    aim(&mut bench, 0, register::SCRATCH, 4);
    bench.config_write(data, &[1, 2, 3, 4]);
    assert_eq!(bench.read(0, register::SCRATCH, 8).unwrap(), [1, 2, 3, 4, 0, 0, 0, 0]);
    aim(&mut bench, 0, register::SCRATCH + 2, 1);
    bench.config_write(data, &[9, 0xff, 0xff, 0xff]);
    assert_eq!(bench.read(0, register::SCRATCH, 8).unwrap(), [1, 2, 9, 4, 0, 0, 0, 0], "a byte of the four");
    aim(&mut bench, 0, register::SCRATCH + 2, 2);
    assert_eq!(bench.read(region::CONFIG, data, 2).unwrap(), [9, 4]);
    assert_eq!(bench.read(region::CONFIG, data, 4).unwrap(), [9, 4, 0, 0], "no more than was asked for");
    // A register that takes time, one that refuses, one that never answers; the table and a page that is mapped.
    aim(&mut bench, 0, register::SLOW, 2);
    assert_eq!(bench.read(region::CONFIG, data, 4).unwrap(), [0x5a, 0x5a, 0, 0]);
    aim(&mut bench, 0, register::ERROR, 4);
    assert_eq!(bench.read(region::CONFIG, data, 4), Err(Errno::NXIO));
    assert_eq!(bench.write(region::CONFIG, data, &[1; 4]), Err(Errno::NXIO));
    aim(&mut bench, 0, TABLE + 12, 4);
    assert_eq!(bench.read(region::CONFIG, data, 4).unwrap(), [1, 0, 0, 0]);
    aim(&mut bench, 2, 0x10, 4);
    bench.config_write(data, &[5, 6, 7, 8]);
    assert_eq!(bench.read(2, 0x10, 4).unwrap(), [5, 6, 7, 8]);
    assert_eq!(bench.read(region::CONFIG, data, 4).unwrap(), [5, 6, 7, 8]);
    aim(&mut bench, 0, register::DEAD, 4);
    let access = RegionAccess { offset: data, region: region::CONFIG, count: 4 };
    bench.send(command::REGION_READ, 0, &[access.as_bytes()], &[]);
    assert!(bench.hear().is_none());
    bench.now += Duration::from_secs(60);
    assert_eq!(errno(&bench.hear().unwrap()), Some(Errno::TIMEDOUT));
    // What cannot be is an access to the register alone, which has no value of its own.
    let impossible =
        [(1, 0, 4), (6, 0, 4), (255, 0, 4), (0, 2, 4), (0, 1, 2), (0, 0, 0), (0, 0, 3), (0, 0, 8), (0, 0x10000, 4)];
    for (bar, offset, bytes) in impossible.into_iter().chain([(0, 0xffff_fffc, 4), (0, 0, u32::MAX), (2, 0xffe, 4)]) {
        aim(&mut bench, bar, offset, bytes);
        bench.config_write(data, &[0x77; 4]);
        assert_eq!(bench.read(region::CONFIG, data, 4).unwrap(), [0; 4], "BAR {bar}, {offset:#x}, {bytes} bytes");
    }
    assert_eq!(bench.read(0, register::SCRATCH, 8).unwrap(), [1, 2, 9, 4, 0, 0, 0, 0]);
    // While its BARs do not answer, it does not either.
    aim(&mut bench, 0, register::SCRATCH, 4);
    bench.config_write(4, &[0, 0]);
    assert_eq!(bench.read(region::CONFIG, data, 4), Err(Errno::IO));
}

#[test]
fn a_slow_register_holds_up_neither_the_loop_nor_the_order() {
    let mut bench = Bench::new();
    let read = |offset| RegionAccess { offset, region: 0, count: 4 };
    let slow = bench.send(command::REGION_READ, 0, &[read(register::SLOW).as_bytes()], &[]);
    let write = RegionAccess { count: 4, ..read(register::SCRATCH) };
    bench.send(command::REGION_WRITE, flag::NO_REPLY, &[write.as_bytes(), &[7, 0, 0, 0]], &[]);
    let after = bench.send(command::REGION_READ, 0, &[read(register::SCRATCH).as_bytes()], &[]);
    for _ in 0..3 {
        bench.poll();
        assert_eq!(bench.client.receive().unwrap(), Received::Nothing);
    }
    let first = bench.hear().unwrap();
    assert_eq!((first.header.id, &first.payload()[16..]), (slow, &[0x5a; 4][..]));
    let second = bench.hear().unwrap();
    assert_eq!((second.header.id, &second.payload()[16..]), (after, &[7, 0, 0, 0][..]));
}

#[test]
fn a_register_that_never_answers_is_an_error_in_time() {
    let mut bench = Bench::new();
    let read = RegionAccess { offset: register::DEAD, region: 0, count: 4 };
    bench.send(command::REGION_READ, 0, &[read.as_bytes()], &[]);
    assert!(bench.hear().is_none());
    bench.now += Duration::from_secs(59);
    assert!(bench.hear().is_none());
    bench.now += Duration::from_secs(1);
    assert_eq!(errno(&bench.hear().unwrap()), Some(Errno::TIMEDOUT));
    assert_eq!(bench.number(register::SCRATCH), 0);
}

#[test]
fn dma_reaches_memory_that_is_shared() {
    let mut bench = Bench::master();
    bench.interrupts(2);
    let memory = Pages::create("memory", 0x2000).unwrap();
    memory.write(0, &[1; 256]).unwrap();
    assert_eq!(bench.map(0x1000, 0x2000, memory.file()), None);
    bench.go(0x1000, 256);
    assert_eq!((bench.number(register::STATUS), bench.number(register::SUM)), (status::DONE, 256));
    let mut complement = [0; 256];
    memory.read(256, &mut complement).unwrap();
    assert_eq!(complement, [254; 256]);
    assert_eq!((bench.came(0), bench.came(1)), (0, 1));

    assert_eq!(bench.unmap(0x1000, 0x2000), None);
    bench.go(0x1000, 256);
    assert_eq!((bench.number(register::STATUS), bench.came(1)), (status::FAULT, 1));
    assert_eq!(bench.toy.faults, [Fault::Unmapped]);
    assert_eq!(bench.toy.unmapped, [0x1000..=0x2fff]);
}

#[test]
fn who_is_no_bus_master_sends_nothing() {
    let mut bench = Bench::new();
    bench.interrupts(2);
    let memory = Pages::create("memory", 0x1000).unwrap();
    assert_eq!(bench.map(0, 0x1000, memory.file()), None);
    bench.go(0, 16);
    assert_eq!((bench.number(register::STATUS), bench.came(1)), (status::FAULT, 0));
    assert_eq!(bench.toy.faults, [Fault::BusMaster]);
    assert_eq!(bench.read(0, PENDING, 8).unwrap(), [2, 0, 0, 0, 0, 0, 0, 0]);
    bench.config_write(4, &[6]);
    assert_eq!((bench.came(1), bench.read(0, PENDING, 1).unwrap()), (1, vec![0]));
}

#[test]
fn masked_vectors_are_pending() {
    let mut bench = Bench::master();
    bench.interrupts(3);
    let trigger = irqs(irq::DATA_NONE | irq::ACTION_TRIGGER, 1, 2);
    let mask = irqs(irq::DATA_BOOL | irq::ACTION_MASK, 0, 3);
    bench.ask(command::SET_IRQS, &[mask.as_bytes(), &[0, 0, 1]]);
    bench.ask(command::SET_IRQS, &[trigger.as_bytes()]);
    assert_eq!((bench.came(1), bench.came(2)), (1, 0));
    assert_eq!(bench.read(0, PENDING, 8).unwrap()[0], 4);
    bench.ask(command::SET_IRQS, &[irqs(irq::DATA_NONE | irq::ACTION_UNMASK, 2, 1).as_bytes()]);
    assert_eq!((bench.came(2), bench.read(0, PENDING, 8).unwrap()[0]), (1, 0));

    // Function Mask, in the configuration space; setting the vectors up has enabled MSI-X.
    assert_eq!(bench.read(region::CONFIG, 0x93, 1).unwrap(), [0x80]);
    bench.config_write(0x93, &[0xc0]);
    bench.ask(command::SET_IRQS, &[trigger.as_bytes()]);
    assert_eq!((bench.came(1), bench.read(0, PENDING, 1).unwrap()), (0, vec![6]));
    bench.config_write(0x93, &[0x80]);
    assert_eq!((bench.came(1), bench.came(2)), (1, 1));

    // One vector is taken away, then all.
    bench.ask(command::SET_IRQS, &[irqs(irq::DATA_EVENTFD | irq::ACTION_TRIGGER, 1, 1).as_bytes()]);
    bench.ask(command::SET_IRQS, &[trigger.as_bytes()]);
    assert_eq!((bench.came(1), bench.came(2)), (0, 1));
    bench.ask(command::SET_IRQS, &[irqs(irq::DATA_NONE | irq::ACTION_TRIGGER, 0, 0).as_bytes()]);
    bench.ask(command::SET_IRQS, &[trigger.as_bytes()]);
    assert_eq!((bench.came(2), bench.read(region::CONFIG, 0x93, 1).unwrap()), (0, vec![0]));
}

#[test]
fn the_table_of_vectors_is_the_clients() {
    let mut bench = Bench::new();
    assert_eq!(bench.read(0, TABLE + 16, 16).unwrap(), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    bench.write(0, TABLE + 16, &[0xff; 16]).unwrap();
    bench.write(0, PENDING, &[0xff; 8]).unwrap();
    assert_eq!(bench.read(0, TABLE + 28, 4).unwrap(), [1, 0, 0, 0]);
    assert_eq!(bench.read(0, PENDING, 8).unwrap(), [0; 8]);
    // No access is part in it and part in the function.
    assert_eq!(bench.read(0, TABLE - 4, 8), Err(Errno::INVAL));
    assert_eq!(bench.write(0, PENDING + 4, &[0; 8]), Err(Errno::INVAL));
}

/// Memory without a descriptor: the client is asked, and may also answer while a command of it waits.
#[test]
fn dma_asks_the_client_for_memory_that_is_not_shared() {
    let mut bench = Bench::master();
    assert_eq!(bench.map(0x1_0000, 0x1000, None), None);
    bench.go(0x1_0000, 3);
    let asked = bench.hear().unwrap();
    assert_eq!((asked.header.command, asked.header.flags), (command::DMA_READ, 0));
    let access = DmaAccess { address: 0x1_0000, count: 3 };
    assert_eq!(asked.payload(), access.as_bytes());
    // A command before the answer, whose reply waits for the device.
    let slow = RegionAccess { offset: register::SLOW, region: 0, count: 1 };
    bench.send(command::REGION_READ, 0, &[slow.as_bytes()], &[]);
    bench.client.queue(
        Header { flags: flag::REPLY, ..asked.header },
        &[access.as_bytes(), &[1, 2, 3]],
        Descriptors::new(),
    );
    let write = bench.hear().unwrap();
    assert_eq!(write.header.command, command::DMA_WRITE);
    assert_eq!(write.payload(), [DmaAccess { address: 0x1_0003, count: 3 }.as_bytes(), &[254, 253, 252]].concat());
    bench.client.queue(Header { flags: flag::REPLY, ..write.header }, &[&write.payload()[..12]], Descriptors::new());
    assert_eq!(bench.hear().unwrap().header.command, command::REGION_READ);
    assert_eq!((bench.number(register::STATUS), bench.number(register::SUM)), (status::DONE, 6));
}

#[test]
fn a_client_that_does_not_answer_is_a_fault_in_time() {
    let mut bench = Bench::master();
    assert_eq!(bench.map(0x1000, 0x1000, None), None);
    bench.go(0x1000, 8);
    let asked = bench.hear().unwrap();
    bench.now += Duration::from_secs(5);
    bench.poll();
    assert_eq!(bench.toy.faults, [Fault::Timeout]);
    assert_eq!(bench.number(register::STATUS), status::FAULT);
    // Its answer comes too late, and changes nothing.
    let late = Header { flags: flag::REPLY, ..asked.header };
    bench.client.queue(late, &[asked.payload(), &[1; 8]], Descriptors::new());
    assert_eq!(bench.number(register::SUM), 0);
    assert_eq!(bench.server.counters().stray_replies, 1);
}

#[test]
fn answers_to_other_questions_are_faults() {
    let lies: [fn(&mut Header, &mut DmaAccess, &mut Vec<u8>); 6] = [
        |header, _, _| header.flags |= flag::ERROR,
        |header, _, _| header.command = command::DMA_WRITE + 1,
        |_, access, _| access.address += 1,
        |_, access, _| access.count = u64::MAX,
        |_, _, bytes| bytes.truncate(7),
        |_, _, bytes| bytes.push(0),
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let mut bench = Bench::master();
        assert_eq!(bench.map(0x1000, 0x1000, None), None);
        bench.go(0x1000, 8);
        let asked = bench.hear().unwrap();
        let mut header = Header { flags: flag::REPLY, ..asked.header };
        let (mut access, mut bytes) = (split::<DmaAccess>(asked.payload()).unwrap().0, vec![1; 8]);
        lie(&mut header, &mut access, &mut bytes);
        bench.client.queue(header, &[access.as_bytes(), &bytes], Descriptors::new());
        assert_eq!(bench.number(register::STATUS), status::FAULT, "{number}");
        assert_eq!(bench.toy.faults, [Fault::Refused], "{number}");
    }
}

#[test]
fn memory_is_given_back_when_nothing_of_it_is_used() {
    let mut bench = Bench::master();
    assert_eq!(bench.map(0x1000, 0x1000, None), None);
    assert_eq!(bench.map(0x8000, 0x1000, None), None);
    bench.write(0, register::DELAY, &[2]).unwrap();
    bench.go(0x1000, 8);
    let asked = bench.hear().unwrap();
    let unmap = DmaUnmap { argsz: 24, flags: 0, address: 0x1000, size: 0x1000 };
    bench.send(command::DMA_UNMAP, 0, &[unmap.as_bytes()], &[]);
    assert!(bench.hear().is_none(), "a request to the memory is under way");
    let reply = Header { flags: flag::REPLY, ..asked.header };
    bench.client.queue(reply, &[asked.payload(), &[1; 8]], Descriptors::new());
    let write = bench.hear().unwrap();
    assert_eq!(write.header.command, command::DMA_WRITE, "it may still be used");
    bench.client.queue(Header { flags: flag::REPLY, ..write.header }, &[], Descriptors::new());
    let unmapped = bench.hear().unwrap();
    assert_eq!((unmapped.header.command, errno(&unmapped)), (command::DMA_UNMAP, None));
    assert_eq!(unmapped.payload(), unmap.as_bytes());
    bench.go(0x1000, 8);
    assert_eq!(bench.number(register::STATUS), status::FAULT);
    assert_eq!(bench.toy.faults, [Fault::Unmapped]);
    // A function that never stops: the memory is gone all the same.
    bench.write(0, register::DELAY, &[0xff, 0xff]).unwrap();
    bench.send(command::DMA_UNMAP, 0, &[DmaUnmap { address: 0x8000, ..unmap }.as_bytes()], &[]);
    assert!(bench.hear().is_none());
    bench.now += Duration::from_secs(60);
    assert_eq!(errno(&bench.hear().unwrap()), None);
    assert_eq!(bench.map(0x8000, 0x1000, None), None, "it is not mapped any more");
    // One that never stops and has asked: it is told that nobody answers.
    let mut bench = Bench::with(|config| config.device_timeout = Duration::from_secs(1));
    bench.config_write(4, &[6]);
    assert_eq!(bench.map(0x8000, 0x1000, None), None);
    bench.write(0, register::DELAY, &[0xff, 0xff]).unwrap();
    bench.go(0x8000, 8);
    assert_eq!(bench.hear().unwrap().header.command, command::DMA_READ);
    bench.send(command::DMA_UNMAP, 0, &[DmaUnmap { address: 0x8000, ..unmap }.as_bytes()], &[]);
    bench.poll();
    bench.now += Duration::from_secs(1);
    assert_eq!(errno(&bench.hear().unwrap()), None);
    assert_eq!(bench.toy.faults, [Fault::Timeout]);
}

#[test]
fn mappings_that_cannot_be_are_refused() {
    let mut bench = Bench::new();
    assert_eq!(bench.unmap(0x1000, 0x1000), None, "nothing is there, and nothing shall be");
    assert!(bench.toy.unmapped.is_empty());
    assert_eq!(bench.map(0x1000, 0x1000, None), None);
    for (address, size, errno) in [
        (0x1000, 0x1000, Errno::EXIST),
        (0x1fff, 1, Errno::EXIST),
        (0x8000, 0, Errno::INVAL),
        (u64::MAX, 2, Errno::INVAL),
        (0x8000, u64::MAX, Errno::INVAL),
    ] {
        assert_eq!(bench.map(address, size, None), Some(errno), "{address:#x} {size:#x}");
    }
    for _ in 0..2 {
        assert_eq!(bench.map(UNUSABLE, 0x1000, None), Some(Errno::NXIO), "what the function refuses is not mapped");
    }
    for (address, size) in
        [(0x1000, 0x800), (0x1800, 0x800), (0x1800, 0x100), (0, 0x1001), (0x1fff, 0x9000), (0x1000, 0), (u64::MAX, 2)]
    {
        assert_eq!(bench.unmap(address, size), Some(Errno::INVAL), "{address:#x} {size:#x}");
    }

    let memory = Pages::create("memory", 0x1000).unwrap();
    let file = memory.file().unwrap();
    assert_eq!(bench.map(0x8000, 0x1001, Some(file)), Some(Errno::INVAL));
    let right = DmaMap { argsz: 32, flags: 3, offset: 0, address: 0x8000, size: 0x1000 };
    for wrong in [
        DmaMap { argsz: 31, ..right },
        DmaMap { flags: 0, ..right },
        DmaMap { flags: 7, ..right },
        DmaMap { offset: u64::MAX, ..right },
        DmaMap { offset: 0x1000, ..right },
    ] {
        assert_eq!(bench.fails_with(command::DMA_MAP, &[wrong.as_bytes()], &[file]), Errno::INVAL, "{wrong:?}");
    }
    assert_eq!(bench.fails_with(command::DMA_MAP, &[right.as_bytes()], &[file, file]), Errno::INVAL);
    assert_eq!(bench.fails(command::DMA_MAP, &[&right.as_bytes()[..31]]), Errno::INVAL);
    assert_eq!(bench.fails(command::DMA_MAP, &[right.as_bytes(), &[0]]), Errno::INVAL);
    // All at once.
    let all = DmaUnmap { argsz: 24, flags: dma::UNMAP_ALL, address: 0, size: 0 };
    assert_eq!(bench.fails(command::DMA_UNMAP, &[DmaUnmap { size: 1, ..all }.as_bytes()]), Errno::INVAL);
    assert_eq!(bench.fails(command::DMA_UNMAP, &[DmaUnmap { flags: 1, ..all }.as_bytes()]), Errno::INVAL);
    assert_eq!(errno(&bench.ask(command::DMA_UNMAP, &[all.as_bytes()])), None);
    assert_eq!(bench.map(0x1000, 0x1000, None), None);
    // Several, as QEMU does it.
    assert_eq!(bench.map(0x3000, 0x1000, None), None);
    assert_eq!(bench.unmap(0, 1 << 63), None);
    assert_eq!(bench.map(0, 0x8000, None), None);

    let mut bench = Bench::silent(|config| config.max_mappings = 3);
    bench.ask(command::VERSION, &[Version::default().as_bytes()]);
    let taken: Vec<_> = (0..5).map(|number| bench.map(number << 12, 0x1000, None)).collect();
    assert_eq!(taken, [None, None, None, Some(Errno::NOSPC), Some(Errno::NOSPC)]);
}

#[test]
fn interrupts_that_cannot_be_are_refused() {
    let mut bench = Bench::new();
    let (trigger, eventfds) = (irq::ACTION_TRIGGER, irq::DATA_EVENTFD);
    let count = u32::from(VECTORS);
    for (flags, start, count, data) in [
        (eventfds | trigger, count, 1, 0),
        (eventfds | trigger, 0, count + 1, 0),
        (eventfds | trigger, u32::MAX, 1, 0),
        (eventfds | trigger, 1, u32::MAX, 0),
        (eventfds | trigger, 0, 0, 0),
        (irq::DATA_NONE | trigger, 1, 0, 0),
        (irq::DATA_NONE | irq::ACTION_MASK, 0, 0, 0),
        (irq::DATA_BOOL | trigger, 0, 2, 1),
        (irq::DATA_BOOL | trigger, 0, 2, 3),
        (irq::DATA_NONE | trigger, 0, 2, 2),
        (eventfds | irq::ACTION_MASK, 0, 1, 0),
        (irq::DATA_NONE | eventfds | trigger, 0, 1, 0),
        (irq::DATA_NONE | trigger | irq::ACTION_MASK, 0, 1, 0),
        (irq::DATA_NONE, 0, 1, 0),
        (trigger, 0, 1, 0),
        (irq::DATA_NONE | trigger | 1 << 6, 0, 1, 0),
    ] {
        let set = irqs(flags, start, count);
        let data = vec![1; data];
        assert_eq!(bench.fails(command::SET_IRQS, &[set.as_bytes(), &data]), Errno::INVAL, "{set:?}");
    }
    // INTx there is none.
    let intx = SetIrqs { index: 0, ..irqs(eventfds | trigger, 0, 1) };
    assert_eq!(bench.fails(command::SET_IRQS, &[intx.as_bytes()]), Errno::INVAL);
    let eventfd = eventfd();
    let fd = eventfd.as_fd();
    for (count, fds) in [(2, &[fd][..]), (1, &[fd, fd][..]), (16, &[fd; 15][..])] {
        let set = irqs(eventfds | trigger, 0, count);
        assert_eq!(bench.fails_with(command::SET_IRQS, &[set.as_bytes()], fds), Errno::INVAL, "{count}");
    }
    // A write to a full pipe would block the device.
    let pipe = std::io::pipe().unwrap();
    let set = irqs(eventfds | trigger, 0, 1);
    assert_eq!(bench.fails_with(command::SET_IRQS, &[set.as_bytes()], &[pipe.1.as_fd()]), Errno::INVAL);
    assert_eq!(
        bench.fails_with(command::SET_IRQS, &[irqs(irq::DATA_NONE | trigger, 0, 1).as_bytes()], &[fd]),
        Errno::INVAL
    );
}

/// An eventfd whose counter is full would block who writes it.
#[test]
fn a_full_eventfd_does_not_hold_up_the_device() {
    let mut bench = Bench::master();
    bench.interrupts(1);
    let full = (u64::MAX - 1).to_ne_bytes();
    let blocking = rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).unwrap();
    let set = irqs(irq::DATA_EVENTFD | irq::ACTION_TRIGGER, 0, 1);
    bench.ask_with(command::SET_IRQS, &[set.as_bytes()], &[blocking.as_fd()]);
    assert_eq!(rustix::io::write(&blocking, &full), Ok(8));
    let trigger = irqs(irq::DATA_NONE | irq::ACTION_TRIGGER, 0, 1);
    assert_eq!(errno(&bench.ask(command::SET_IRQS, &[trigger.as_bytes()])), None);
}

#[test]
fn accesses_that_cannot_be_are_refused() {
    let mut bench = Bench::new();
    for (region, offset, count) in [
        (0, 0x10000, 1),
        (0, 0xffff, 2),
        (0, u64::MAX, 1),
        (0, u64::MAX - 3, 8),
        (0, 0, 0),
        (0, 0, u32::MAX),
        (0, 0, (1 << 20) + 1),
        (1, 0, 4),
        (2, 0xffd, 4),
        (5, 0, 1),
        (region::ROM, 0, 4),
        (region::CONFIG, 4096, 1),
        (region::CONFIG, 4093, 4),
        (region::CONFIG, u64::MAX, 1),
        (8, 0, 1),
        (9, 0, 1),
        (u32::MAX, 0, 1),
        (256, 0, 1),
    ] {
        let access = RegionAccess { offset, region, count };
        assert_eq!(bench.fails(command::REGION_READ, &[access.as_bytes()]), Errno::INVAL, "{access:?}");
        let data = vec![0; (count as usize).min(1 << 16)];
        assert_eq!(bench.fails(command::REGION_WRITE, &[access.as_bytes(), &data]), Errno::INVAL, "{access:?}");
    }
    let access = RegionAccess { offset: 0, region: 0, count: 4 };
    assert_eq!(bench.fails(command::REGION_READ, &[access.as_bytes(), &[0]]), Errno::INVAL);
    for len in [0, 3, 5] {
        assert_eq!(bench.fails(command::REGION_WRITE, &[access.as_bytes(), &vec![0; len]]), Errno::INVAL);
    }
    assert_eq!(bench.number(register::SCRATCH), 0);
}

#[test]
fn a_function_that_is_off_answers_in_its_configuration_space_alone() {
    let mut bench = Bench::new();
    bench.config_write(4, &[0]);
    assert_eq!((bench.read(0, 0, 4), bench.write(2, 0, &[0; 4])), (Err(Errno::IO), Err(Errno::IO)));
    bench.config_write(4, &[2]);
    bench.config_write(0x44, &[3]);
    assert_eq!((bench.read(0, 0, 4), bench.read(0, TABLE, 4)), (Err(Errno::IO), Err(Errno::IO)));
    assert_eq!(bench.read(region::CONFIG, 0, 2).unwrap(), [0x41, 0x4e]);
    bench.config_write(0x44, &[0]);
    assert_eq!(bench.number(0), 0);
}

#[test]
fn both_resets_leave_the_state_of_the_beginning() {
    for function_level in [false, true] {
        let mut bench = Bench::master();
        bench.interrupts(1);
        bench.write(0, register::SCRATCH, &[1; 8]).unwrap();
        bench.write(0, register::DELAY, &[2]).unwrap();
        if function_level {
            bench.config_write(0x59, &[0x80]);
        } else {
            assert_eq!(errno(&bench.ask(command::RESET, &[])), None);
        }
        let cause = if function_level { ResetCause::FunctionLevel } else { ResetCause::Client };
        assert_eq!(bench.toy.resets, [cause]);
        assert_eq!(bench.number(register::SCRATCH), 0);
        assert_eq!(bench.read(region::CONFIG, 4, 2).unwrap(), [2, 0], "enabled, and no bus master");
        assert_eq!(bench.read(region::CONFIG, 0x93, 1).unwrap(), [0x80]);
        assert_eq!(bench.map(0, 0x1000, None), None);
    }
    let mut bench = Bench::new();
    assert_eq!(bench.fails(command::RESET, &[&[0]]), Errno::INVAL);
}

#[test]
fn doorbells_have_eventfds() {
    let mut bench = Bench::new();
    let asked = RegionIoFds { argsz: 16, index: 0, ..RegionIoFds::default() };
    let reply = bench.ask(command::GET_REGION_IO_FDS, &[asked.as_bytes()]);
    assert_eq!(reply.payload(), RegionIoFds { argsz: 56, count: 1, ..asked }.as_bytes());
    let mut reply = bench.ask(command::GET_REGION_IO_FDS, &[RegionIoFds { argsz: 56, ..asked }.as_bytes()]);
    let (doorbell, _) = split::<IoEventFd>(&reply.payload()[16..]).unwrap();
    assert_eq!(doorbell, IoEventFd { offset: register::DOORBELL, size: 4, ..IoEventFd::default() });
    let eventfd = std::mem::take(&mut reply.descriptors).pop().unwrap();
    rustix::io::write(&eventfd, &3u64.to_ne_bytes()).unwrap();
    bench.write(0, register::DOORBELL, &[0; 4]).unwrap();
    assert_eq!(bench.number(register::RUNG), 4);
    let reply = bench.ask(command::GET_REGION_IO_FDS, &[RegionIoFds { argsz: 99, index: 2, ..asked }.as_bytes()]);
    assert_eq!(reply.payload(), RegionIoFds { argsz: 16, index: 2, ..asked }.as_bytes());
    for wrong in
        [RegionIoFds { argsz: 15, ..asked }, RegionIoFds { index: 9, ..asked }, RegionIoFds { flags: 1, ..asked }]
    {
        assert_eq!(bench.fails(command::GET_REGION_IO_FDS, &[wrong.as_bytes()]), Errno::INVAL);
    }
}

#[test]
fn messages_of_the_wrong_length_are_refused_and_the_next_is_understood() {
    let mut bench = Bench::new();
    let zeros = [0; 64];
    for (command, least) in [
        (command::GET_INFO, 16),
        (command::GET_REGION_INFO, 32),
        (command::GET_REGION_IO_FDS, 16),
        (command::GET_IRQ_INFO, 16),
        (command::SET_IRQS, 20),
        (command::REGION_READ, 16),
        (command::REGION_WRITE, 16),
        (command::DMA_MAP, 32),
        (command::DMA_UNMAP, 24),
    ] {
        for len in [0, 1, least - 1, least, 64] {
            assert_eq!(bench.fails(command, &[&zeros[..len]]), Errno::INVAL, "{command} {len}");
        }
    }
    // Too long, for every command: read to its end.
    let long = vec![0; (1 << 20) + 65];
    for command in [command::REGION_WRITE, command::DMA_MAP, 99] {
        assert_eq!(bench.fails(command, &[&long]), Errno::TOOBIG, "{command}");
    }
    for command in [0, command::DMA_READ, command::DMA_WRITE, 14, 15, 16, 17, 18, 19, u16::MAX] {
        assert_eq!(bench.fails(command, &[&zeros]), Errno::OPNOTSUPP, "{command}");
    }
    assert_eq!(bench.number(register::SCRATCH), 0);
}

#[test]
fn descriptors_that_nobody_asked_for_are_closed() {
    let mut bench = Bench::new();
    let eventfd = eventfd();
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let (before, access) = (open(), RegionAccess { offset: 0, region: 0, count: 4 });
    for _ in 0..40 {
        let fds = [eventfd.as_fd(); 16];
        assert_eq!(bench.fails_with(command::REGION_READ, &[access.as_bytes()], &fds), Errno::INVAL);
        let map = DmaMap { argsz: 32, flags: 3, ..DmaMap::default() };
        assert_eq!(bench.fails_with(command::DMA_MAP, &[map.as_bytes()], &fds), Errno::INVAL);
    }
    // More than a message may have; the kernel drops what is beyond.
    let header = Header { id: 7, command: command::REGION_READ, size: 32, ..Header::default() };
    send_raw(&bench.raw, &[header.as_bytes(), access.as_bytes()].concat(), &[eventfd.as_fd(); 100]);
    assert_eq!(errno(&bench.hear().unwrap()), Some(Errno::INVAL));
    // Other tests of this process have descriptors too.
    assert!(open() < before + 200, "{before} {}", open());
}

fn send_raw(socket: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
    let mut space = vec![std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(100))];
    let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
    assert!(control.push(rustix::net::SendAncillaryMessage::ScmRights(descriptors)));
    let flags = rustix::net::SendFlags::empty();
    rustix::net::sendmsg(socket, &[std::io::IoSlice::new(bytes)], &mut control, flags).unwrap();
}

#[test]
fn a_message_may_come_byte_by_byte_but_not_for_ever() {
    let mut bench = Bench::new();
    let access = RegionAccess { offset: 0, region: 0, count: 4 };
    let message =
        [Header { id: 9, command: command::REGION_READ, size: 32, ..Header::default() }.as_bytes(), access.as_bytes()]
            .concat();
    for byte in &message {
        bench.raw.write_all(&[*byte]).unwrap();
        bench.now += 100 * MS;
        bench.poll();
    }
    assert_eq!(bench.hear().unwrap().header.id, 9);
    for byte in &message[..20] {
        bench.raw.write_all(&[*byte]).unwrap();
        bench.poll();
    }
    bench.now += Duration::from_secs(5);
    bench.poll();
    assert!(!bench.server.has_client());
    assert_eq!((bench.server.counters().thrown_out, &bench.toy.clients[..]), (1, &[true, false][..]));
}

#[test]
fn who_says_no_version_is_thrown_out() {
    let hello = Version { major: 0, minor: 1 };
    let attempts: [(u16, &[&[u8]]); 10] = [
        (command::GET_INFO, &[&[0; 16]]),
        (command::RESET, &[]),
        (command::VERSION, &[]),
        (command::VERSION, &[&[0, 0, 1]]),
        (command::VERSION, &[&[1, 0, 0, 0]]),
        (command::VERSION, &[hello.as_bytes(), b"{}"]),
        (command::VERSION, &[hello.as_bytes(), b"[]\0"]),
        (command::VERSION, &[hello.as_bytes(), b"{\"capabilities\":3}\0"]),
        (command::VERSION, &[hello.as_bytes(), b"{\"capabilities\":{\"max_msg_fds\":-1}}\0"]),
        (command::VERSION, &[hello.as_bytes(), b"{\"capabilities\":{\"max_msg_fds\":\"x\"}}\0"]),
    ];
    for (command, parts) in attempts {
        let mut bench = Bench::silent(|_| {});
        assert_eq!(bench.fails(command, parts), Errno::INVAL, "{command} {parts:?}");
        bench.poll();
        assert!(!bench.server.has_client() && bench.toy.clients.is_empty());
    }
    let mut bench = Bench::silent(|_| {});
    bench.now += Duration::from_secs(5);
    bench.poll();
    assert!(!bench.server.has_client(), "who says nothing does not keep others out");
    // A lower version, and one that will be.
    for (asked, got) in [(0, 0), (7, 1)] {
        let mut bench = Bench::silent(|_| {});
        let reply = bench.ask(command::VERSION, &[Version { major: 0, minor: asked }.as_bytes()]);
        assert_eq!(split::<Version>(reply.payload()).unwrap().0.minor, got);
        assert_eq!(bench.fails(command::VERSION, &[hello.as_bytes()]), Errno::INVAL, "once is enough");
        assert!(bench.server.has_client());
    }
}

#[test]
fn who_is_out_of_step_is_thrown_out() {
    for size in [0, 15] {
        let mut bench = Bench::new();
        let header = Header { command: command::RESET, size, ..Header::default() };
        bench.raw.write_all(header.as_bytes()).unwrap();
        let reply = bench.hear().unwrap();
        assert_eq!(errno(&reply), Some(Errno::INVAL));
        assert!(!bench.server.has_client() && bench.toy.resets.is_empty());
    }
}

/// Replies to nothing, and messages that are neither command nor reply.
#[test]
fn strange_types_change_nothing() {
    let mut bench = Bench::new();
    bench.send(command::DMA_READ, flag::REPLY, &[&[0; 24]], &[]);
    bench.send(command::REGION_READ, flag::REPLY | flag::ERROR, &[], &[]);
    let access = RegionAccess { offset: 0, region: 0, count: 4 };
    bench.send(command::REGION_READ, 5, &[access.as_bytes()], &[]);
    assert_eq!(errno(&bench.hear().unwrap()), Some(Errno::INVAL));
    assert_eq!(bench.server.counters().stray_replies, 2);
    assert_eq!(bench.number(register::SCRATCH), 0);
}

#[test]
fn a_client_that_takes_nothing_is_thrown_out_and_costs_little() {
    let mut bench = Bench::new();
    let access = RegionAccess { offset: 0, region: 4, count: 1 << 20 };
    for _ in 0..60 {
        bench.send(command::REGION_READ, 0, &[access.as_bytes()], &[]);
        bench.poll();
    }
    assert!(bench.server.counters().commands < 10, "it stops reading");
    bench.now += Duration::from_secs(5);
    bench.poll();
    assert!(!bench.server.has_client());
}

#[test]
fn commands_behind_a_slow_one_are_bounded() {
    let mut bench = Bench::new();
    let dead = RegionAccess { offset: register::DEAD, region: 0, count: 4 };
    bench.send(command::REGION_READ, 0, &[dead.as_bytes()], &[]);
    let read = RegionAccess { offset: 0, ..dead };
    for _ in 0..200 {
        bench.send(command::REGION_READ, 0, &[read.as_bytes()], &[]);
    }
    for _ in 0..50 {
        bench.poll();
    }
    assert_eq!(bench.server.counters().commands, 2, "the version, and the one that waits");
    bench.now += Duration::from_secs(60);
    let replies = std::iter::from_fn(|| bench.hear()).count();
    assert_eq!(replies, 201);
}

/// Whoever goes while the device works for it keeps nobody else out, however much it has sent.
#[test]
fn a_client_that_goes_is_not_waited_for() {
    for (behind, offset) in [(0, register::DEAD), (5, register::DEAD), (200, register::DEAD), (5, register::SLOW)] {
        let mut bench = Bench::new();
        let read = RegionAccess { offset, region: 0, count: 4 };
        for _ in 0..=behind {
            bench.send(command::REGION_READ, 0, &[read.as_bytes()], &[]);
        }
        bench.poll();
        let Bench { mut server, mut toy, client, raw, now, .. } = bench;
        drop((client, raw));
        server.poll(now, Duration::ZERO, &mut toy).unwrap();
        assert!(!server.has_client() && toy.clients == [true, false], "{behind}");
        for _ in 0..5 {
            server.poll(now, Duration::ZERO, &mut toy).unwrap();
        }
        assert_eq!(toy.in_vain, usize::from(offset == register::SLOW));
    }
    // One that goes during a reset: the configuration space is reset with the function.
    let mut bench = Bench::new();
    bench.write(0, register::DELAY, &[200]).unwrap();
    bench.config_write(0x58, &[0x20]);
    bench.send(command::RESET, 0, &[], &[]);
    bench.poll();
    assert_eq!(bench.server.config_space().settings().max_payload, 256);
    let Bench { mut server, mut toy, client, raw, now, .. } = bench;
    drop((client, raw));
    server.poll(now, Duration::ZERO, &mut toy).unwrap();
    assert!(!server.has_client());
    assert_eq!(server.config_space().settings().max_payload, 128);
}

/// Posted writes that it has sent before it went are done, and the next client waits so long.
#[test]
fn who_comes_right_behind_a_client_that_has_gone_is_welcome() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slot");
    let mut toy = Toy::new();
    let mut server = Server::bind(&path, Toy::space(), toy.config()).unwrap();
    let message = |command: u16, flags: u32, payload: &[u8]| {
        let header = Header { id: 1, command, flags, size: 16 + payload.len() as u32, ..Header::default() };
        [header.as_bytes(), payload].concat()
    };
    let access = RegionAccess { offset: register::SCRATCH, region: 0, count: 4 };
    let hello = message(command::VERSION, 0, Version::default().as_bytes());
    let read = message(command::REGION_READ, 0, access.as_bytes());
    for round in 1..=3u8 {
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(&hello).unwrap();
        server.poll(Duration::ZERO, Duration::ZERO, &mut toy).unwrap();
        for number in 1..=200 {
            let bytes = [access.as_bytes(), &[round, number, 0, 0]].concat();
            client.write_all(&message(command::REGION_WRITE, flag::NO_REPLY, &bytes)).unwrap();
        }
        drop(client);
        let mut next = UnixStream::connect(&path).unwrap();
        next.write_all(&[&hello[..], &read].concat()).unwrap();
        // Its own side stays open until it has its answers.
        next.shutdown(std::net::Shutdown::Write).unwrap();
        for _ in 0..20 {
            server.poll(Duration::ZERO, Duration::ZERO, &mut toy).unwrap();
        }
        assert_eq!((server.counters().clients, server.counters().turned_away), (2 * u64::from(round), 0));
        let mut answers = Vec::new();
        next.read_to_end(&mut answers).unwrap();
        assert!(answers.ends_with(&[round, 200, 0, 0]), "{answers:?}");
    }
}

#[test]
fn a_client_that_vanishes_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slot");
    let mut toy = Toy::new();
    let mut server = Server::bind(&path, Toy::space(), toy.config()).unwrap();
    assert!(matches!(Server::bind(&path, Toy::space(), toy.config()), Err(ServerError::Taken { .. })));
    let mut now = Duration::ZERO;
    for round in 0..3 {
        let mut client = UnixStream::connect(&path).unwrap();
        let mut send = |command, parts: &[&[u8]]| {
            let size = 16 + parts.iter().map(|part| part.len()).sum::<usize>() as u32;
            let header = Header { id: 1, command, size, ..Header::default() };
            client.write_all(&[&[header.as_bytes()], parts].concat().concat()).unwrap();
        };
        send(command::VERSION, &[Version::default().as_bytes()]);
        let master = RegionAccess { offset: 4, region: region::CONFIG, count: 1 };
        send(command::REGION_WRITE, &[master.as_bytes(), &[6]]);
        send(command::DMA_MAP, &[DmaMap { argsz: 32, flags: 3, address: 0, size: 4096, offset: 0 }.as_bytes()]);
        // One waits for the device, one for a turn, one is cut in the middle.
        let slow = RegionAccess { offset: register::SLOW, region: 0, count: 4 };
        send(command::REGION_READ, &[slow.as_bytes()]);
        send(command::REGION_READ, &[slow.as_bytes()]);
        client.write_all(&[1, 2, 3]).unwrap();
        let polls = |server: &mut Server, toy: &mut Toy, now: &mut Duration| {
            for _ in 0..20 {
                *now += MS;
                server.poll(*now, Duration::ZERO, toy).unwrap();
            }
        };
        server.poll(now, Duration::ZERO, &mut toy).unwrap();
        server.poll(now, Duration::ZERO, &mut toy).unwrap();
        assert!(server.has_client());
        // Another one is turned away meanwhile.
        let mut other = UnixStream::connect(&path).unwrap();
        polls(&mut server, &mut toy, &mut now);
        assert_eq!(other.read(&mut [0; 16]).unwrap_or(0), 0);
        drop(client);
        polls(&mut server, &mut toy, &mut now);
        assert!(!server.has_client(), "round {round}");
        assert!(!server.host().settings().bus_master && !server.host().settings().memory_space);
        assert_eq!(server.host().dma_read(0, &mut [0; 4]), Err(Fault::BusMaster));
    }
    assert_eq!((server.counters().clients, server.counters().turned_away), (3, 3));
    let expected = [
        ConfigEvent::MemorySpace(true),
        ConfigEvent::BusMaster(true),
        ConfigEvent::MemorySpace(false),
        ConfigEvent::BusMaster(false),
    ];
    assert_eq!(toy.events, expected.repeat(3));
    drop(server);
    assert!(!path.exists());
    // A socket that its process left behind.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(Server::bind(&path, Toy::space(), toy.config()).unwrap());
    assert_eq!(UnixStream::connect(&path).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn what_cannot_be_mapped_is_refused() {
    let refused = |change: fn(&mut ServerConfig), space: ConfigSpace| {
        let toy = Toy::new();
        let mut config = toy.config();
        change(&mut config);
        let (_, there) = UnixStream::pair().unwrap();
        matches!(Server::connected(there, space, config), Err(ServerError::Part { .. }))
    };
    let changes: [fn(&mut ServerConfig); 9] = [
        |config| config.mapped[0].bar = 0,
        |config| config.mapped[0].bar = 4,
        |config| config.mapped[0].bar = 200,
        |config| config.mapped[0].areas[0].size = 0x2000,
        |config| config.mapped[0].areas[0].offset = 1,
        |config| config.mapped[0].areas.clear(),
        |config| config.mapped.push(config.mapped[0].clone()),
        |config| config.doorbells[0].offset = 0xfffd,
        |config| config.doorbells[0].size = 3,
    ];
    for change in changes {
        assert!(refused(change, Toy::space()));
    }
    assert!(!refused(|_| {}, Toy::space()));
}
