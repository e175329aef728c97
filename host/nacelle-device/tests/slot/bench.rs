// SPDX-License-Identifier: Apache-2.0
//! The simulated RTL in a slot, on a wire of its own, and what is beside it: a driver, and peers on its network.

#[path = "library.rs"]
mod library;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) use library::library;
use nacelle_device::{DeviceError, Engine, FrameEngine, Place, RtlEngine, SimConfig, SimLibrary};
use nacelle_link::{Link, MAX_FRAME, SwitchHost, VirtualWire, WireDir, wait_readable};
use nacelle_manage::DeviceKind;
use nacelle_manage::map::management;
use nacelle_pci::{PciDevice, UserConfig, UserDevice};
use nacelle_wire::bth::{Bth, NakCode, Opcode, Reth, Syndrome};
use nacelle_wire::roce::Flow;
use nacelle_wire::transport::Ext;
use nacelle_wire::{MacAddr, Psn, Qpn, RemoteAddr, Rkey, RoceHeaders, RocePacket};

/// Enough for a simulation on a machine with much other work.
pub(crate) const LONG: Duration = Duration::from_secs(100);
/// The device address of the host's address 0.
pub(crate) const HOST: u64 = 1 << 63;
/// The registers of the management port, and its commands (docs/reference/management.md).
const QP_SETUP: u32 = 1;
const QP_QUERY: u32 = 5;
const MR_REGISTER: u32 = 8;
const RTS: u32 = 3;
const ERR: u32 = 6;
const ALL_ACCESS: u32 = 0xf;
const MTU: usize = 1024;
const MTU_CODE: u32 = 3;

/// What the slot has counted.
type Counters = BTreeMap<&'static str, u64>;

/// A device in a slot that runs in a thread.
pub(crate) struct Bench {
    pub(crate) slot: PathBuf,
    /// Where its network card is, if it has one.
    pub(crate) card: PathBuf,
    pub(crate) place: Place,
    counters: Arc<Mutex<Counters>>,
    stop: Arc<AtomicBool>,
    device: Option<JoinHandle<()>>,
    _temp: tempfile::TempDir,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(device) = self.device.take()
            && device.join().is_err()
        {
            eprintln!("the device has failed");
        }
    }
}

/// Runs a device on its wire, as `Host` does, and shows what its slot counts after each turn: management is asked for the counters of the
/// device as well, which takes thousands of cycles.
fn run(mut engine: RtlEngine, place: &Place, ready: &Sender<()>, stop: &AtomicBool, counters: &Mutex<Counters>) {
    let _switch = SwitchHost::start(&place.wire).unwrap();
    let mut link = VirtualWire::join(&place.wire, &place.name).unwrap();
    engine.configure(&place.identity, 1).unwrap();
    ready.send(()).unwrap();
    let mut frame = vec![0; MAX_FRAME];
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        while let Some(len) = link.recv(&mut frame, now).unwrap() {
            engine.push(&frame[..len]).unwrap();
        }
        engine.run(now);
        while let Some((len, _)) = engine.pull(&mut frame) {
            link.send(&frame[..len]).unwrap();
        }
        while engine.rx_stamp().is_some() {}
        *counters.lock().unwrap() = engine.slot_counters().collect();
        if engine.idle() {
            wait_readable(engine.wake_fds(), Some(now + Duration::from_millis(1))).unwrap();
            engine.pass(now.elapsed());
        }
    }
    assert_eq!(engine.sim().slot_violation(), None, "the device keeps the rules of PCI Express");
    assert_eq!(counters.lock().unwrap()["slot.failures"], 0);
}

impl Bench {
    pub(crate) fn new() -> Option<Self> {
        Self::of(library()?, false)
    }

    /// A device with a network card, both in slots.
    pub(crate) fn with_card() -> Option<Self> {
        Self::of(library()?, true)
    }

    fn of(library: PathBuf, has_card: bool) -> Option<Self> {
        let temp = tempfile::tempdir().unwrap();
        let wire = WireDir::open(temp.path().join("wire")).unwrap();
        let place = Place::find(&wire, DeviceKind::Rtl, None, None).unwrap();
        let (slot, card) = (temp.path().join("slot"), temp.path().join("card"));
        let (ready, started) = channel();
        let (stop, counters) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Counters::new())));
        let device = std::thread::spawn({
            let (place, slot, stop, counters) = (place.clone(), slot.clone(), Arc::clone(&stop), Arc::clone(&counters));
            let card = card.clone();
            move || {
                let mut engine = device(&library, &slot, &place).unwrap();
                if has_card {
                    engine = engine.with_network_slot(&card, place.identity.mac).unwrap();
                }
                run(engine, &place, &ready, &stop, &counters);
            }
        });
        started.recv().unwrap();
        Some(Self { slot, card, place, counters, stop, device: Some(device), _temp: temp })
    }

    pub(crate) fn driver(&self) -> UserDevice {
        self.driver_with(|_| {})
    }

    /// A driver that is a bus master.
    pub(crate) fn driver_with(&self, change: impl FnOnce(&mut UserConfig)) -> UserDevice {
        let mut config = UserConfig { timeout: LONG, ..UserConfig::default() };
        change(&mut config);
        let mut driver = UserDevice::connect(&self.slot, config).unwrap();
        driver.set_bus_master(true).unwrap();
        driver
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        self.counters.lock().unwrap()[name]
    }

    /// Waits until a counter is at least this.
    pub(crate) fn until(&self, name: &str, least: u64) {
        let end = Instant::now() + LONG;
        while self.counter(name) < least {
            assert!(Instant::now() < end, "{name} stays {}", self.counter(name));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A peer with a queue pair of the device, and a region of so many bytes from a device address on. The driver sets both up.
    pub(crate) fn peer(&self, driver: &mut impl Driver, qpn: u32, base: u64, bytes: u32) -> Peer {
        let mac = MacAddr([2, 0, 0, 0, 1, qpn as u8]);
        let ip = [10, 77, 9, qpn as u8].into();
        let psn = 0xff_fff0 + qpn;
        let region = [(1, 1 | ALL_ACCESS << 8), (2, 0), (3, base as u32), (4, (base >> 32) as u32), (5, bytes)];
        let rkey = Rkey(command(driver, MR_REGISTER, &region));
        let [a, b, c, d, e, f] = mac.0;
        let attributes = [
            (0, qpn),
            (1, RTS),
            (2, u32::from_be_bytes([c, d, e, f])),
            (3, u32::from_be_bytes([0, 0, a, b])),
            (4, u32::from_be_bytes([10, 77, 9, qpn as u8])),
            (5, qpn),
            (6, 1 | 1 << 8 | ALL_ACCESS << 12 | MTU_CODE << 16),
            (7, psn & 0xff_ffff),
            (8, 1 | 8 << 8),
            (9, 0),
            (10, 8 | 7 << 8 | 7 << 12 | 8 << 16),
        ];
        command(driver, QP_SETUP, &attributes);
        let flow = Flow::new(mac, self.place.identity.mac, ip, self.place.identity.ip, 0xc000 + qpn as u16);
        let link = VirtualWire::join(&self.place.wire, &format!("peer{qpn}")).unwrap();
        let (qpn, psn) = (Qpn::new(qpn), Psn::new(psn));
        Peer { link, flow, qpn, psn, done: psn, base, rkey, response: None }
    }

    /// The device's queue pair of a peer has failed, or fails soon.
    pub(crate) fn fails(&self, driver: &mut impl Driver, qpn: u32) {
        let end = Instant::now() + LONG;
        while command(driver, QP_QUERY, &[(0, qpn)]) & 7 != ERR {
            assert!(Instant::now() < end, "queue pair {qpn} goes on");
        }
    }

    /// A register of the device and its memory, by the driver, and host memory, by peers with these queue pairs: all is well.
    pub(crate) fn serves(&self, driver: &mut UserDevice, qpn: u32) {
        let numbers: Vec<u8> = (0..2000).map(|number: u32| (number * qpn) as u8).collect();
        driver.bar_write(4, 0x1234, &numbers).unwrap();
        let mut back = vec![0; numbers.len()];
        driver.bar_read(4, 0x1234, &mut back).unwrap();
        assert!(back == numbers);
        let buffer = driver.alloc_dma(0x4000, nacelle_pci::Access::BOTH).unwrap();
        let mut peer = self.peer(driver, qpn, HOST + buffer.iova(), 0x4000);
        let written = peer.write(0x101, &numbers[..900]);
        assert_eq!(peer.answer(), Heard::Ack(written));
        let read = peer.read(0x101, 900);
        assert!(peer.answer() == Heard::Data(read, numbers[..900].to_vec()));
        let mut there = vec![0; 900];
        buffer.read(0x101, &mut there).unwrap();
        assert!(there == numbers[..900]);
        driver.free_dma(buffer).unwrap();
    }

    /// The device has done all that it must to the end.
    pub(crate) fn end(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.device.take().unwrap().join().unwrap();
    }
}

/// A device in a slot.
pub(crate) fn device(library: &Path, slot: &Path, place: &Place) -> Result<RtlEngine, DeviceError> {
    let library = SimLibrary::load(library)?;
    RtlEngine::new(&library, &SimConfig::default())?.with_slot(slot, place.identity.mac)
}

/// Whoever drives the device, as far as the set-up of peers needs it.
pub(crate) trait Driver {
    fn register(&mut self, address: u32) -> u32;
    fn set_register(&mut self, address: u32, value: u32);
}

impl Driver for UserDevice {
    fn register(&mut self, address: u32) -> u32 {
        self.read32(0, address.into()).unwrap()
    }

    fn set_register(&mut self, address: u32, value: u32) {
        self.write32(0, address.into(), value).unwrap();
    }
}

impl Driver for vfio_user::Client {
    fn register(&mut self, address: u32) -> u32 {
        let mut bytes = [0; 4];
        self.region_read(0, address.into(), &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    }

    fn set_register(&mut self, address: u32, value: u32) {
        self.region_write(0, address.into(), &value.to_le_bytes()).unwrap();
    }
}

/// A command of the device's management port, by its registers.
fn command(driver: &mut impl Driver, number: u32, arguments: &[(u32, u32)]) -> u32 {
    for (index, value) in arguments {
        driver.set_register(management::ARGUMENT.word(management::BASE, *index), *value);
    }
    driver.set_register(management::COMMAND.at(management::BASE), number);
    loop {
        let status = driver.register(management::STATUS.at(management::BASE));
        if management::STATUS_BUSY.of(status) == 0 {
            assert_eq!(management::STATUS_ERROR.of(status), 0, "command {number} of {arguments:x?}");
            return driver.register(management::RESULT.word(management::BASE, 0));
        }
    }
}

/// What a peer hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    Ack(Psn),
    Nak(NakCode),
    /// That of a READ with this PSN.
    Data(Psn, Vec<u8>),
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} at {:#x}, next {:?}, done {:?}", self.qpn, self.base, self.psn, self.done)
    }
}

/// A requester that has one queue pair of the device, packet by packet.
pub(crate) struct Peer {
    link: VirtualWire,
    flow: Flow,
    qpn: Qpn,
    /// The next request's, and that of the oldest one that is not answered.
    psn: Psn,
    done: Psn,
    base: u64,
    rkey: Rkey,
    /// The PSN of a READ, and what has come of its response.
    response: Option<(Psn, Vec<u8>)>,
}

impl Peer {
    /// Packets of its requests, with those of their responses, that are not answered.
    pub(crate) fn under_way(&self) -> u32 {
        self.psn.since(self.done)
    }

    fn send(&mut self, opcode: Opcode, offset: u64, len: u32, payload: &[u8], packets: u32) -> Psn {
        let psn = self.psn;
        self.psn = psn.add(packets);
        let mut bth = Bth::new(opcode, self.qpn, psn);
        bth.set_ack_req(true);
        let reth = Reth::new(RemoteAddr(self.base + offset), self.rkey, len);
        let mut frame = vec![0; MAX_FRAME];
        let len = RoceHeaders::new(&self.flow, bth, Ext::Reth(reth)).write(payload, &mut frame).unwrap();
        self.link.send(&frame[..len]).unwrap();
        psn
    }

    /// Sends a WRITE of up to 1024 bytes.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Psn {
        self.send(Opcode::WriteOnly, offset, data.len() as u32, data, 1)
    }

    /// Sends a READ.
    pub(crate) fn read(&mut self, offset: u64, len: u32) -> Psn {
        self.send(Opcode::ReadRequest, offset, len, &[], len.div_ceil(MTU as u32))
    }

    /// What the device answers next; waits for it until a moment.
    pub(crate) fn hear(&mut self, until: Instant) -> Option<Heard> {
        loop {
            let mut frame = vec![0; MAX_FRAME];
            let len = self.link.recv(&mut frame, until).unwrap()?;
            // Others are announcements of the device.
            let Ok(RocePacket { headers, opcode, payload }) = RocePacket::parse(&frame[..len]) else { continue };
            let psn = headers.bth.psn();
            // An answer is one to all before it.
            self.done = psn.add(1);
            if !payload.is_empty() {
                self.response.get_or_insert((psn, Vec::new())).1.extend_from_slice(payload);
            }
            match opcode {
                Opcode::Acknowledge => {
                    let Ext::Aeth(aeth) = headers.ext else { panic!("{headers:?}") };
                    return Some(match aeth.syndrome() {
                        Syndrome::Ack(_) => Heard::Ack(psn),
                        Syndrome::Nak(code) => Heard::Nak(code),
                        other => panic!("{other:?}"),
                    });
                }
                Opcode::ReadResponseFirst | Opcode::ReadResponseMiddle => {}
                Opcode::ReadResponseLast | Opcode::ReadResponseOnly => {
                    let (psn, whole) = self.response.take().expect("it has data");
                    return Some(Heard::Data(psn, whole));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// As `hear`, and it comes.
    pub(crate) fn answer(&mut self) -> Heard {
        self.hear(Instant::now() + LONG).expect("the device answers")
    }
}
