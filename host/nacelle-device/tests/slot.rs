// SPDX-License-Identifier: Apache-2.0
//! The simulated RTL as a PCI Express function, from outside: a driver over vfio-user, peers on the device's network that write and read the
//! driver's memory, and what a client can do to the device. They need the library of `devices/nic.toml` at 64 bits.

#[path = "slot/bench.rs"]
mod bench;
mod common;
#[path = "slot/network.rs"]
mod network;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bench::{Bench, Driver, HOST, Heard, LONG};
use common::Running;
use nacelle_device::{DeviceError, Place, RtlEngine, SimConfig, SimLibrary};
use nacelle_link::WireDir;
use nacelle_manage::DeviceKind;
use nacelle_manage::map::device;
use nacelle_pci::{Access, Pages, PciDevice, PciError, Share, UserConfig, UserDevice};
use nacelle_slot::Errno;
use nacelle_slot::config_space::{PLACEHOLDER_DEVICE, PLACEHOLDER_VENDOR};
use nacelle_wire::MacAddr;
use nacelle_wire::bth::NakCode;
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_DATA_EVENTFD, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSIX_IRQ_INDEX,
};

const REMOTE_OPERATIONAL_ERROR: Heard = Heard::Nak(NakCode::RemoteOperationalError);
/// In BAR 0: the pending bits, and the register that asks for an interrupt.
const PENDING: u64 = 0x10_0800;
const TRIGGER: u64 = 0x10_1000;
/// Device memory that the tests use.
const NEAR: u64 = 0x1000_0000;

fn errno(error: &PciError) -> Option<Errno> {
    match error {
        PciError::Refused { errno, .. } => Some(*errno),
        _ => None,
    }
}

fn numbers(len: usize) -> Vec<u8> {
    let mut all = vec![0; len];
    fastrand::Rng::with_seed(len as u64).fill(&mut all);
    all
}

#[test]
fn the_rtl_is_a_pcie_function() {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.driver();
    let identity = driver.identity().unwrap();
    assert_eq!((identity.vendor, identity.device), (PLACEHOLDER_VENDOR, PLACEHOLDER_DEVICE));
    assert_eq!((identity.class, identity.revision), (0x12_0000, 0));
    assert_eq!([0, 1, 2, 3, 4, 5].map(|bar| driver.bar_size(bar)), [2 << 20, 0, 0, 0, 1 << 30, 0]);
    assert_eq!(driver.vectors(), 32);
    let serial = driver.extended_capability(3).unwrap().unwrap();
    let mut bytes = [0; 8];
    driver.config_read(serial + 4, &mut bytes).unwrap();
    let MacAddr([a, b, c, d, e, f]) = bench.place.identity.mac;
    assert_eq!(u64::from_le_bytes(bytes), u64::from_be_bytes([a, b, c, 0xff, 0xfe, d, e, f]));

    // Registers: as the device itself has them, also several at once; no register is a completer abort, and the next is answered.
    let at = |register: nacelle_manage::map::Register| u64::from(register.at(device::BASE));
    let kind = u32::from_be_bytes(device::BLOCK.kind);
    assert_eq!(driver.read32(0, at(device::TYPE)).unwrap(), kind);
    let both = u64::from(device::BLOCK.version) << 32 | u64::from(kind);
    assert_eq!(driver.read64(0, at(device::TYPE)).unwrap(), both);
    driver.write32(0, at(device::KEEPALIVE_MS), 1234).unwrap();
    assert_eq!(driver.read32(0, at(device::KEEPALIVE_MS)).unwrap(), 1234);
    assert_eq!(driver.read32(0, at(device::IP)).unwrap(), bench.place.identity.ip.to_bits());
    for nowhere in [0xf000, 0xf_f000, TRIGGER] {
        assert_eq!(errno(&driver.read32(0, nowhere).unwrap_err()), Some(Errno::IO), "{nowhere:#x}");
        driver.write32(0, 0xf000, 1).unwrap();
    }
    assert_eq!(driver.read32(0, at(device::TYPE)).unwrap(), kind);
    // The table is the client's.
    assert_eq!(driver.read32(0, 0x10_000c).unwrap(), 1);

    // Another driver is turned away; the next one finds the device as this one has left it.
    assert!(matches!(UserDevice::connect(&bench.slot, UserConfig::default()), Err(PciError::Gone)));
    drop(driver);
    let mut driver = bench.driver();
    assert_eq!(driver.read32(0, at(device::KEEPALIVE_MS)).unwrap(), 1234);
    bench.end();
}

#[test]
fn device_memory_is_read_and_written_by_its_bar() {
    let Some(bench) = Bench::new() else { return };
    for posted in [false, true] {
        let mut driver = bench.driver_with(|config| config.posted_writes = posted);
        for (offset, len) in [(NEAR, 1), (NEAR + 3, 8), (NEAR + 61, 4096), (NEAR + 4095, 20_000), ((1 << 30) - 77, 77)]
        {
            let data = numbers(len);
            driver.bar_write(4, offset, &data).unwrap();
            let mut back = vec![0; len];
            driver.bar_read(4, offset, &mut back).unwrap();
            assert!(back == data, "{len} bytes at {offset:#x}: a read is behind the write before it");
        }
        assert!(matches!(driver.read32(4, (1 << 30) - 3), Err(PciError::Range { .. })));
    }
    // What a peer writes, and what it reads, is the same memory.
    let mut driver = bench.driver();
    let mut peer = bench.peer(&mut driver, 9, NEAR, 0x1_0000);
    let data = numbers(1000);
    let written = peer.write(0x777, &data);
    assert_eq!(peer.answer(), Heard::Ack(written));
    let mut back = vec![0; 1000];
    driver.bar_read(4, NEAR + 0x777, &mut back).unwrap();
    assert!(back == data);
    bench.end();
}

#[test]
fn interrupts_reach_their_eventfds() {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.driver();
    let interrupts = driver.interrupts(32).unwrap();
    for vector in [0, 5, 31] {
        driver.write32(0, TRIGGER, vector).unwrap();
        assert_eq!(driver.wait(&interrupts[vector as usize], LONG).unwrap(), 1);
    }
    driver.write32(0, TRIGGER, 99).unwrap();
    // One that may not be sent waits. A read is behind what the device has sent before its answer.
    driver.set_bus_master(false).unwrap();
    driver.write32(0, TRIGGER, 7).unwrap();
    driver.read32(0, 0).unwrap();
    assert_eq!(driver.wait(&interrupts[7], Duration::from_millis(20)).unwrap(), 0);
    driver.set_bus_master(true).unwrap();
    assert_eq!(driver.wait(&interrupts[7], LONG).unwrap(), 1);
    // One for which there is no eventfd is pending.
    driver.clear_interrupts().unwrap();
    driver.write32(0, TRIGGER, 9).unwrap();
    driver.read32(0, 0).unwrap();
    assert_eq!(driver.read32(0, PENDING).unwrap(), 1 << 9);
    let interrupts = driver.interrupts(32).unwrap();
    assert_eq!(driver.wait(&interrupts[9], LONG).unwrap(), 1);
    let others = interrupts.iter().map(|interrupt| interrupt.take().unwrap()).sum::<u64>();
    assert_eq!(others, 0, "of the vectors that nobody has asked for");
    bench.end();
}

/// Peers write and read the driver's memory, which the device reaches by itself or by asking.
fn peers(share: Share) {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.driver_with(|config| config.share = share);
    let buffer = driver.alloc_dma(0x1_0000, Access::BOTH).unwrap();
    let mut peer = bench.peer(&mut driver, 3, HOST + buffer.iova(), 0x1_0000);
    let mut near = bench.peer(&mut driver, 4, NEAR, 0x1_0000);
    let interrupts = driver.interrupts(1).unwrap();
    let data = numbers(0x8000);
    buffer.write(0x8000, &data).unwrap();
    for (number, len) in [1, 2, 7, 64, 500, 1000, 1024].into_iter().enumerate() {
        let at = number * 0x1000 + 0xffd;
        let mut hear = |peer: &mut bench::Peer| {
            let end = Instant::now() + LONG;
            loop {
                // A driver that shares nothing answers the device while it waits.
                assert_eq!(driver.wait(&interrupts[0], Duration::from_millis(1)).unwrap(), 0);
                if let Some(heard) = peer.hear(Instant::now() + Duration::from_millis(1)) {
                    return heard;
                }
                assert!(Instant::now() < end, "{len} bytes");
            }
        };
        near.write(0, &data[..len]);
        let written = peer.write(at as u64, &data[at..at + len]);
        assert!(hear(&mut peer) == Heard::Ack(written), "{len} bytes");
        let read = peer.read(0x8000 + at as u64, 3 * len as u32);
        assert!(hear(&mut peer) == Heard::Data(read, data[at..at + 3 * len].to_vec()), "{len} bytes");
        // A WRITE is posted: it is there when what follows it is.
        let mut there = vec![0; len];
        buffer.read(at as u64, &mut there).unwrap();
        assert!(there == data[at..at + len]);
        assert!(matches!(near.answer(), Heard::Ack(_)));
    }
    assert_eq!(bench.counter("slot.dma_messages") > 0, share == Share::Message);
    assert_eq!((bench.counter("slot.iommu_faults"), bench.counter("slot.dma_refused")), (0, 0));
    assert!(bench.counter("slot.write_bytes") >= 2598 && bench.counter("slot.read_bytes") >= 3 * 2598);
    driver.free_dma(buffer).unwrap();
    bench.end();
}

#[test]
fn peers_reach_memory_that_the_driver_shares() {
    peers(Share::Descriptor);
}

#[test]
fn peers_reach_memory_by_messages_to_the_driver() {
    peers(Share::Message);
}

#[test]
fn memory_that_is_not_mapped_is_a_fault_and_nothing_else() {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.driver();
    let before = driver.alloc_dma(0x1000, Access::BOTH).unwrap();
    let gone = driver.alloc_dma(0x1000, Access::BOTH).unwrap();
    let behind = driver.alloc_dma(0x1000, Access { read: true, write: false }).unwrap();
    assert_eq!((gone.iova(), behind.iova()), (before.iova() + 0x1000, before.iova() + 0x2000));
    let mut peer = bench.peer(&mut driver, 3, HOST + before.iova(), 0x3000);
    // While it is there, and after it was taken away: the same region of the device.
    let written = peer.write(0x1ff8, &[7; 8]);
    assert_eq!(peer.answer(), Heard::Ack(written));
    driver.free_dma(gone).unwrap();
    assert_eq!(bench.counter("slot.iommu_faults"), 0);
    // A WRITE is posted: it is acknowledged, and lost. One that is over the edge is written as far as it is allowed.
    for (offset, faults) in [(0x1000, 1), (0x1ff8, 2), (0x2ff8, 3)] {
        let written = peer.write(offset, &[9; 8]);
        assert_eq!(peer.answer(), Heard::Ack(written));
        bench.until("slot.iommu_faults", faults);
    }
    let edge = peer.write(0xff8, &[5; 16]);
    assert_eq!(peer.answer(), Heard::Ack(edge));
    bench.until("slot.iommu_faults", 4);
    let (mut page, mut other) = ([0; 0x1000], [0; 0x1000]);
    before.read(0, &mut page).unwrap();
    behind.read(0, &mut other).unwrap();
    assert!(page[..0xff8].iter().all(|byte| *byte == 0) && page[0xff8..] == [5; 8] && other == [0; 0x1000]);
    // What may be read is; a READ of the rest ends its queue pair, and nothing else.
    let read = peer.read(0x2100, 100);
    assert_eq!(peer.answer(), Heard::Data(read, vec![0; 100]));
    peer.read(0x1100, 100);
    assert_eq!(peer.answer(), REMOTE_OPERATIONAL_ERROR);
    assert_eq!((bench.counter("slot.iommu_faults"), bench.counter("slot.dma_refused")), (5, 0));
    bench.serves(&mut driver, 20);
    assert_eq!(bench.counter("slot.iommu_faults"), 5);
    bench.end();
}

#[test]
fn a_function_that_is_no_bus_master_reaches_nothing() {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.driver();
    let buffer = driver.alloc_dma(0x1000, Access::BOTH).unwrap();
    let mut peers = [3, 4].map(|qpn| bench.peer(&mut driver, qpn, HOST + buffer.iova(), 0x1000));
    driver.set_bus_master(false).unwrap();
    driver.read32(0, 0).unwrap();
    peers[0].write(0, &[1; 100]);
    peers[1].read(0, 100);
    assert_eq!(peers.each_mut().map(|peer| peer.answer()), [REMOTE_OPERATIONAL_ERROR; 2]);
    assert_eq!((bench.counter("slot.reads"), bench.counter("slot.writes")), (0, 0));
    driver.set_bus_master(true).unwrap();
    bench.serves(&mut driver, 20);
    // Nor does one whose memory space is off answer.
    driver.config_write(4, &[4]).unwrap();
    assert_eq!(errno(&driver.read32(0, 0).unwrap_err()), Some(Errno::IO));
    driver.config_write(4, &[6]).unwrap();
    bench.serves(&mut driver, 21);
    bench.end();
}

/// Peers that keep requests under way, each until it fails.
struct Load {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Flow>>,
}

/// What became of one of them.
#[derive(Debug)]
struct Flow {
    peer: bench::Peer,
    answers: usize,
    failed: bool,
}

impl Flow {
    /// Waits for the next answer: is there one?
    fn hear(&mut self, patience: Duration) -> bool {
        let heard = self.peer.hear(Instant::now() + patience);
        if let Some(Heard::Nak(code)) = heard {
            assert_eq!(code, NakCode::RemoteOperationalError);
            self.failed = true;
        }
        self.answers += usize::from(heard.is_some());
        heard.is_some()
    }
}

impl Load {
    fn start(peers: Vec<bench::Peer>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut flows: Vec<Flow> = peers.into_iter().map(|peer| Flow { peer, answers: 0, failed: false }).collect();
            while !seen.load(Ordering::Relaxed) {
                for flow in flows.iter_mut().filter(|flow| !flow.failed) {
                    while flow.peer.under_way() < 4 {
                        flow.peer.write(0, &[0xee; 1000]);
                        flow.peer.read(0, 1000);
                    }
                    flow.hear(Duration::from_millis(2));
                }
            }
            for flow in &mut flows {
                while !flow.failed && flow.peer.under_way() > 0 {
                    assert!(flow.hear(LONG), "no answer: {flow:?}");
                }
            }
            flows
        });
        Self { stop, thread }
    }

    /// What has become of them, when all that they have asked for is answered or has failed.
    fn end(self) -> Vec<Flow> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

#[test]
fn a_reset_under_load_leaves_the_device_alive() {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.driver();
    for round in 0..2u32 {
        let buffer = driver.alloc_dma(0x1000, Access::BOTH).unwrap();
        let mut peers = vec![bench.peer(&mut driver, 3 + 2 * round, HOST + buffer.iova(), 0x1000)];
        peers.push(bench.peer(&mut driver, 4 + 2 * round, NEAR, 0x1000));
        let before = bench.counter("slot.writes");
        let load = Load::start(peers);
        bench.until("slot.writes", before + 20);
        if round == 0 {
            driver.reset().unwrap();
        } else {
            // Initiate Function Level Reset, in Device Control.
            let express = driver.capability(0x10).unwrap().unwrap();
            let mut control = [0; 2];
            driver.config_read(express + 8, &mut control).unwrap();
            driver.config_write(express + 8, &[control[0], control[1] | 0x80]).unwrap();
        }
        // It may send nothing until it is allowed to again; the network goes on.
        let mut command = [0; 2];
        driver.config_read(4, &mut command).unwrap();
        assert_eq!(command, [2, 0]);
        let mut writes = Vec::new();
        for _ in 0..3 {
            assert_eq!(driver.read32(0, 0).unwrap(), u32::from_be_bytes(device::BLOCK.kind));
            writes.push(bench.counter("slot.writes"));
        }
        assert_eq!(writes[1], writes[2]);
        bench.fails(&mut driver, 3 + 2 * round);
        let flows = load.end();
        assert!(flows[0].failed && !flows[1].failed && flows[1].answers > 4, "{flows:?}");
        let resets = device::BLOCK.registers.iter().find(|register| register.name == "pcie_resets").unwrap();
        assert_eq!(driver.register(resets.at(device::BASE)), round + 1);
        driver.set_bus_master(true).unwrap();
        let interrupts = driver.interrupts(2).unwrap();
        driver.write32(0, TRIGGER, 1).unwrap();
        assert_eq!(driver.wait(&interrupts[1], LONG).unwrap(), 1, "the device has its table again");
        bench.serves(&mut driver, 20 + round);
    }
    assert_eq!(bench.counter("slot.iommu_faults"), 0);
    bench.end();
}

/// Memory that was given back is the driver's alone, though peers go on writing to it.
#[test]
fn memory_is_given_back_under_load() {
    for share in [Share::Descriptor, Share::Message] {
        let Some(bench) = Bench::new() else { return };
        let mut driver = bench.driver_with(|config| config.share = share);
        let interrupts = driver.interrupts(1).unwrap();
        let buffer = driver.alloc_dma(0x1000, Access::BOTH).unwrap();
        let beside = driver.alloc_dma(0x1000, Access::BOTH).unwrap();
        let load = Load::start(vec![bench.peer(&mut driver, 3, HOST + buffer.iova(), 0x1000)]);
        let end = Instant::now() + LONG;
        while bench.counter("slot.writes") < 12 && Instant::now() < end {
            driver.wait(&interrupts[0], Duration::from_millis(5)).unwrap();
        }
        driver.free_dma(buffer).unwrap();
        // The next memory at these addresses is not mapped by the same message: what comes meanwhile is a fault.
        driver.read32(0, 0).unwrap();
        bench.until("slot.iommu_faults", 1);
        load.end();
        let mut page = [0; 0x1000];
        beside.read(0, &mut page).unwrap();
        assert_eq!(page, [0; 0x1000]);
        assert_eq!(bench.counter("slot.dma_timeouts"), 0);
        drop(driver);
        let mut driver = bench.driver();
        bench.serves(&mut driver, 20);
        bench.end();
    }
}

/// The client of another test: gives memory, says where, and waits for its end.
#[test]
#[ignore = "is started by another test"]
fn a_client_that_waits_for_its_end() {
    let slot = std::env::var_os("SLOT").expect("another test starts it");
    let share = if std::env::var_os("BY_MESSAGE").is_some() { Share::Message } else { Share::Descriptor };
    let config = UserConfig { share, ..UserConfig::default() };
    let mut driver = UserDevice::connect(slot.as_ref(), config).unwrap();
    driver.set_bus_master(true).unwrap();
    let buffer = driver.alloc_dma(0x1000, Access::BOTH).unwrap();
    driver.bar_write(4, NEAR, &[1; 4096]).unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "\nmemory {}", buffer.iova()).unwrap();
    out.flush().unwrap();
    let mut megabyte = vec![0; 1 << 20];
    loop {
        // Never whole before its end.
        driver.bar_read(4, 0, &mut megabyte).unwrap();
    }
}

/// A process that is killed while the device uses its memory and works on its commands. The next one is served at once.
#[test]
fn a_client_that_is_killed_leaves_the_device_to_the_next() {
    let Some(bench) = Bench::new() else { return };
    for (round, by_message) in [false, true].into_iter().enumerate() {
        // Its peers are there before it is: the driver that sets them up has gone.
        let qpn = 3 + 2 * round as u32;
        let mut driver = bench.driver();
        let peer = bench.peer(&mut driver, qpn, HOST + (1 << 32), 0x1000);
        let near = bench.peer(&mut driver, qpn + 1, NEAR, 0x1000);
        drop(driver);
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--ignored", "--exact", "a_client_that_waits_for_its_end", "--nocapture"]).env("SLOT", &bench.slot);
        if by_message {
            child.env("BY_MESSAGE", "1");
        }
        let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let place = said.lines().map_while(Result::ok).find_map(|line| line.strip_prefix("memory ").map(str::to_owned));
        assert_eq!(place.as_deref(), Some("4294967296"));
        let before = bench.counter("slot.writes");
        let load = Load::start(vec![peer, near]);
        bench.until("slot.writes", before + 8);
        child.kill().unwrap();
        child.wait().unwrap();
        let begin = Instant::now();
        let mut driver = bench.driver();
        bench.serves(&mut driver, 20 + qpn);
        assert!(begin.elapsed() < LONG, "{:?}", begin.elapsed());
        bench.fails(&mut driver, qpn);
        let flows = load.end();
        assert!(flows[0].failed && !flows[1].failed && flows[1].answers > 4, "{flows:?}");
    }
    assert_eq!(bench.counter("slot.clients"), 6);
    bench.end();
}

/// One that shares its memory by messages and answers none: the device's reads end, and all others are served meanwhile.
#[test]
fn a_client_that_does_not_answer_costs_its_own_requests() {
    let Some(bench) = Bench::new() else { return };
    let mut driver = bench.driver_with(|config| config.share = Share::Message);
    let buffer = driver.alloc_dma(0x1_0000, Access::BOTH).unwrap();
    let mut near = bench.peer(&mut driver, 4, NEAR, 0x1_0000);
    let mut reader = bench.peer(&mut driver, 5, HOST + buffer.iova(), 0x1_0000);
    let mut writer = bench.peer(&mut driver, 6, HOST + buffer.iova(), 0x1_0000);
    reader.read(0, 500);
    // More than the slot has room for.
    let writes = 200;
    let mut sent = 0;
    let begin = Instant::now();
    while sent < writes {
        writer.write(0, &[3; 1024]);
        sent += 1;
        if sent % 20 == 0 {
            // Device memory is served as ever.
            let written = near.write(0, &[1; 100]);
            assert_eq!(near.answer(), Heard::Ack(written));
        }
    }
    assert_eq!(reader.answer(), REMOTE_OPERATIONAL_ERROR);
    bench.until("slot.dma_timeouts", 1);
    let messages = bench.counter("slot.dma_messages");
    assert!(messages <= bench.counter("slot.dma_timeouts") + 64, "no more wait at a time: {messages}");
    println!("the device gave up after {:?}", begin.elapsed());
    // The driver hears of them now, and goes on.
    let interrupts = driver.interrupts(1).unwrap();
    let end = Instant::now() + LONG;
    while bench.counter("slot.writes") < 200 && Instant::now() < end {
        driver.wait(&interrupts[0], Duration::from_millis(5)).unwrap();
    }
    assert_eq!(driver.read32(0, 0).unwrap(), u32::from_be_bytes(device::BLOCK.kind));
    drop(driver);
    let mut driver = bench.driver();
    bench.serves(&mut driver, 20);
    bench.end();
}

/// As `nacelle device` runs it: an idle device sleeps until a client, or management, asks for something.
#[test]
fn a_host_serves_the_slot_beside_the_wire() {
    let Some(library) = bench::library() else { return };
    let temp = tempfile::tempdir().unwrap();
    let wire = WireDir::open(temp.path().join("wire")).unwrap();
    let place = Place::find(&wire, DeviceKind::Rtl, None, None).unwrap();
    let slot = temp.path().join("slot");
    let running = {
        let (place, slot) = (place.clone(), slot.clone());
        Running::start(&place.clone(), move || bench::device(&library, &slot, &place).unwrap())
    };
    let mut driver = UserDevice::connect(&slot, UserConfig { timeout: LONG, ..UserConfig::default() }).unwrap();
    let data = numbers(100_000);
    driver.bar_write(4, NEAR, &data).unwrap();
    let mut back = vec![0; data.len()];
    driver.bar_read(4, NEAR, &mut back).unwrap();
    assert!(back == data);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(driver.read32(0, 0).unwrap(), u32::from_be_bytes(device::BLOCK.kind));
    drop((driver, running));
    assert!(!slot.exists(), "its socket is gone");
}

#[test]
fn memory_that_is_no_whole_pages_is_refused() {
    use nacelle_slot::channel::{Channel, Descriptors, Received};
    use nacelle_slot::protocol::{DmaMap, Header, Version, command, flag};
    use zerocopy::IntoBytes;
    let Some(bench) = Bench::new() else { return };
    let mut channel = Channel::new(std::os::unix::net::UnixStream::connect(&bench.slot).unwrap(), 1 << 20).unwrap();
    let mut ask = |command: u16, parts: &[&[u8]]| {
        channel.queue(Header { id: 1, command, ..Header::default() }, parts, Descriptors::new());
        channel.flush().unwrap();
        let end = Instant::now() + LONG;
        while channel.receive().unwrap() != Received::Message {
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(1));
        }
        let Header { flags, error, .. } = channel.take().header;
        (flags & flag::ERROR != 0).then(|| Errno::from_raw_os_error(error as i32))
    };
    assert_eq!(ask(command::VERSION, &[Version { major: 0, minor: 1 }.as_bytes()]), None);
    for (address, size, errno) in [
        (0x1000, 0x1000, None),
        (0x2000, 0x800, Some(Errno::INVAL)),
        (0x2800, 0x1000, Some(Errno::INVAL)),
        (0x1000, 0x1000, Some(Errno::EXIST)),
        (0x2000, 0x1000, None),
    ] {
        let map = DmaMap { argsz: 32, flags: 3, offset: 0, address, size };
        assert_eq!(ask(command::DMA_MAP, &[map.as_bytes()]), errno, "{size:#x} bytes at {address:#x}");
    }
    bench.end();
}

/// The crate `vfio_user`, which others wrote, drives the device.
#[test]
fn a_foreign_driver_uses_the_rtl() {
    const CONFIG: u32 = VFIO_PCI_CONFIG_REGION_INDEX;
    const MSIX: u32 = VFIO_PCI_MSIX_IRQ_INDEX;
    let Some(bench) = Bench::new() else { return };
    let mut client = vfio_user::Client::new(&bench.slot).unwrap();
    let mut id = [0; 4];
    client.region_read(CONFIG, 0, &mut id).unwrap();
    assert_eq!(id, [0x41, 0x4e, 1, 0]);
    assert_eq!(client.get_irq_info(MSIX).unwrap().count, 32);
    assert_eq!([0, 2, 4, CONFIG].map(|index| client.region(index).unwrap().size), [2 << 20, 0, 1 << 30, 4096]);
    assert_eq!(client.register(device::TYPE.at(device::BASE)), u32::from_be_bytes(device::BLOCK.kind));
    let data = numbers(5000);
    client.region_write(4, NEAR + 1, &data).unwrap();
    let mut back = vec![0; 5000];
    client.region_read(4, NEAR + 1, &mut back).unwrap();
    assert!(back == data);

    client.region_write(CONFIG, 4, &[6]).unwrap();
    let mut events =
        [0, 1].map(|_| File::from(rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).unwrap()));
    let fds = events.each_ref().map(AsRawFd::as_raw_fd);
    client.set_irqs(MSIX, VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, 0, 2, &fds).unwrap();
    client.set_register(TRIGGER as u32, 1);
    let mut times = [0; 8];
    events[1].read_exact(&mut times).unwrap();
    assert_eq!(u64::from_ne_bytes(times), 1);

    // One memory that is sealed, and one that is not, which gets shorter under the device's hands.
    let sealed = Pages::create("test", 0x2_0000).unwrap().file().unwrap().try_clone_to_owned().unwrap();
    for (number, file) in [File::from(sealed), tempfile::tempfile().unwrap()].into_iter().enumerate() {
        file.set_len(0x2_0000).unwrap();
        let (address, qpn) = (0x8000_0000 + ((number as u64) << 32), 3 + number as u32);
        client.dma_map(0, address, 0x2_0000, file.as_raw_fd()).unwrap();
        let mut peer = bench.peer(&mut client, qpn, HOST + address, 0x2_0000);
        let written = peer.write(0xff0, &data[..1000]);
        assert_eq!(peer.answer(), Heard::Ack(written));
        let read = peer.read(0xff0, 1000);
        assert!(peer.answer() == Heard::Data(read, data[..1000].to_vec()));
        let mut there = [0; 1000];
        rustix::io::pread(&file, &mut there, 0xff0).unwrap();
        assert!(there[..] == data[..1000]);
        if number == 1 {
            file.set_len(0x1000).unwrap();
            peer.read(0x1000, 100);
            assert_eq!(peer.answer(), REMOTE_OPERATIONAL_ERROR);
            assert_eq!(bench.counter("slot.dma_refused"), 1);
        }
        client.dma_unmap(address, 0x2_0000).unwrap();
    }
    client.reset().unwrap();
    assert_eq!(client.register(device::TYPE.at(device::BASE)), u32::from_be_bytes(device::BLOCK.kind));
    client.shutdown().unwrap();
    drop(client);
    let mut driver = bench.driver();
    bench.serves(&mut driver, 20);
    bench.end();
}

/// What its library does not have, and a slot that is taken.
#[test]
fn what_cannot_be_in_a_slot_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let library = SimLibrary::load(&common::build_mock(temp.path())).unwrap();
    let engine = || RtlEngine::new(&library, &SimConfig::default()).unwrap();
    let refused = engine().with_slot(&temp.path().join("slot"), MacAddr::default()).err().unwrap();
    assert!(matches!(refused, DeviceError::Without { .. }) && refused.to_string().contains("[pcie]"), "{refused}");
    let Some(bench) = Bench::new() else { return };
    let wire = WireDir::open(temp.path().join("wire")).unwrap();
    let place = Place::find(&wire, DeviceKind::Rtl, None, None).unwrap();
    let again = bench::device(&bench::library().unwrap(), &bench.slot, &place);
    assert!(matches!(again, Err(DeviceError::Slot(_))), "another device is there");
    bench.end();
}
