// SPDX-License-Identifier: Apache-2.0
//! The two PCI functions of a device, each with a client of its own at the same time: the device, and its network card. What one client
//! does costs the other nothing. They need the library of `devices/nic.toml` at 64 bits.

use std::time::{Duration, Instant};

use nacelle_pci::{Access, DmaBuffer, PciDevice, Share, UserConfig, UserDevice};
use nacelle_slot::Errno;
use nacelle_wire::MacAddr;

use crate::bench::{Bench, HOST, Heard, LONG};
use crate::errno;

/// Registers of the common configuration (virtio 1.2, 4.1.4.3).
const FEATURE_SELECT: u64 = 0x00;
const FEATURE: u64 = 0x04;
const DRIVER_SELECT: u64 = 0x08;
const DRIVER_FEATURE: u64 = 0x0c;
const STATUS: u64 = 0x14;
const QUEUE_SELECT: u64 = 0x16;
const QUEUE_SIZE: u64 = 0x18;
const QUEUE_VECTOR: u64 = 0x1a;
const QUEUE_ENABLE: u64 = 0x1c;
const QUEUE_DESC: u64 = 0x20;
const QUEUE_DRIVER: u64 = 0x28;
const QUEUE_DEVICE: u64 = 0x30;
/// Ours: why a queue has stopped, and of a read or write of host memory that has failed.
const FAULT: u64 = 0x180;
const MEMORY_FAILED: u32 = 11;
const NOTIFY: u64 = 0x100;
/// Bits of the status; the feature that is required.
const DRIVER: u8 = 3;
const FEATURES_OK: u8 = 8;
const DRIVER_OK: u8 = 4;
const VERSION_1: u32 = 1;
/// The queue to send, and its vector.
const SEND: u16 = 1;
const VECTOR: u16 = 2;
/// Where in a buffer the queue is, and the frame that is sent.
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
const FRAME: u64 = 0x3000;
const SIZE: u64 = 0x4000;
const ENTRIES: u16 = 8;
const HEADER: usize = 12;

/// A driver of the card that sends frames from one buffer.
struct Sender {
    driver: UserDevice,
    buffer: DmaBuffer,
    sent: u16,
}

/// A client of the card, as a bus master.
fn card(bench: &Bench, share: Share) -> UserDevice {
    let config = UserConfig { timeout: LONG, share, ..UserConfig::default() };
    let mut driver = UserDevice::connect(&bench.card, config).unwrap();
    driver.set_bus_master(true).unwrap();
    driver
}

impl Sender {
    /// Sets the card up, as the standard has it (3.1.1).
    fn new(mut driver: UserDevice) -> Self {
        let buffer = driver.alloc_dma(SIZE as usize, Access::BOTH).unwrap();
        driver.write8(0, STATUS, 0).unwrap();
        while driver.read8(0, STATUS).unwrap() != 0 {}
        driver.write8(0, STATUS, DRIVER).unwrap();
        driver.write32(0, DRIVER_SELECT, 1).unwrap();
        driver.write32(0, DRIVER_FEATURE, VERSION_1).unwrap();
        driver.write8(0, STATUS, DRIVER | FEATURES_OK).unwrap();
        assert_eq!(driver.read8(0, STATUS).unwrap(), DRIVER | FEATURES_OK);
        driver.write16(0, QUEUE_SELECT, SEND).unwrap();
        driver.write16(0, QUEUE_SIZE, ENTRIES).unwrap();
        driver.write16(0, QUEUE_VECTOR, VECTOR).unwrap();
        for (register, offset) in [(QUEUE_DESC, 0), (QUEUE_DRIVER, AVAILABLE), (QUEUE_DEVICE, USED)] {
            driver.write64(0, register, buffer.iova() + offset).unwrap();
        }
        driver.write16(0, QUEUE_ENABLE, 1).unwrap();
        driver.write8(0, STATUS, DRIVER | FEATURES_OK | DRIVER_OK).unwrap();
        buffer.write(0, &vec![0; SIZE as usize]).unwrap();
        Self { driver, buffer, sent: 0 }
    }

    /// Gives the card a frame to send.
    fn post(&mut self) {
        let slot = u64::from(self.sent % ENTRIES);
        let mut frame = vec![0; HEADER];
        frame.extend([0xff; 6]);
        frame.extend([2, 0, 0, 0, 9, 9, 0x88, 0xb5]);
        frame.resize(HEADER + 60, self.sent as u8);
        self.buffer.write(FRAME, &frame).unwrap();
        let mut descriptor = (self.buffer.iova() + FRAME).to_le_bytes().to_vec();
        descriptor.extend((frame.len() as u32).to_le_bytes());
        descriptor.extend([0; 4]);
        self.buffer.write(16 * slot, &descriptor).unwrap();
        self.buffer.write(AVAILABLE + 4 + 2 * slot, &(slot as u16).to_le_bytes()).unwrap();
        self.sent += 1;
        self.buffer.write(AVAILABLE + 2, &self.sent.to_le_bytes()).unwrap();
        self.driver.write16(0, NOTIFY + 4 * u64::from(SEND), SEND).unwrap();
    }

    /// How many frames the card has given back.
    fn used(&self) -> u16 {
        let mut index = [0; 2];
        self.buffer.read(USED + 2, &mut index).unwrap();
        u16::from_le_bytes(index)
    }

    /// Sends a frame, and waits until it is given back.
    fn send(&mut self) {
        self.post();
        let end = Instant::now() + LONG;
        while self.used() != self.sent {
            assert!(Instant::now() < end, "the card gives back {} of {}", self.used(), self.sent);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn the_card_is_a_virtio_network_device() {
    let Some(bench) = Bench::with_card() else { return };
    let mut device = bench.driver();
    let mut driver = card(&bench, Share::Descriptor);
    let identity = driver.identity().unwrap();
    assert_eq!((identity.vendor, identity.device, identity.revision, identity.class), (0x1af4, 0x1041, 1, 0x02_0000));
    let mut subsystem = [0; 4];
    driver.config_read(0x2c, &mut subsystem).unwrap();
    assert_eq!(subsystem, [0xf4, 0x1a, 1, 0]);
    assert_eq!([0, 1, 2, 3, 4, 5].map(|bar| driver.bar_size(bar)), [8 << 10, 0, 0, 0, 0, 0]);
    assert_eq!(driver.vectors(), 10, "the configuration, four pairs and the commands");
    // The structures, as a driver looks for them (virtio 1.2, 4.1.4): kind, offset, length.
    let mut found = Vec::new();
    let mut window = 0;
    let mut at = driver.capability(9).unwrap().unwrap();
    while at != 0 {
        let mut bytes = [0; 16];
        driver.config_read(at, &mut bytes).unwrap();
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((bytes[0], bytes[4]), (9, 0), "in BAR 0");
        found.push((bytes[3], number(8), number(12)));
        window = at;
        at = bytes[1].into();
    }
    assert_eq!(found, [(1, 0, 64), (2, 0x100, 0x80), (3, 0x40, 1), (4, 0x80, 24), (5, 0, 0)]);

    // Registers of every width, by the BAR and by the window; those of the device beside them.
    driver.write32(0, FEATURE_SELECT, 1).unwrap();
    assert_eq!(driver.read32(0, FEATURE).unwrap() & VERSION_1, VERSION_1);
    driver.write16(0, QUEUE_SELECT, SEND).unwrap();
    assert_eq!(driver.read16(0, QUEUE_SIZE).unwrap(), 256);
    assert_eq!(driver.read16(0, 0x12).unwrap(), 9, "four pairs and the commands");
    let mut mac = [0; 6];
    driver.bar_read(0, 0x80, &mut mac).unwrap();
    for (offset, value) in [(8, QUEUE_SELECT as u32), (12, 2)] {
        driver.config_write(window + offset, &value.to_le_bytes()).unwrap();
    }
    let mut value = [0; 2];
    driver.config_read(window + 16, &mut value).unwrap();
    assert_eq!(u16::from_le_bytes(value), SEND);
    driver.config_write(window + 16, &[0, 0]).unwrap();
    assert_eq!(driver.read16(0, QUEUE_SELECT).unwrap(), 0);
    assert_eq!(errno(&driver.read32(0, 0x1100).unwrap_err()), Some(Errno::IO), "nothing is behind the table");
    bench.serves(&mut device, 9);
    let MacAddr(own) = bench.place.identity.mac;
    assert_ne!(mac, own, "the card has an address of its own");
    bench.end();
}

#[test]
fn neither_function_reaches_the_memory_of_the_other() {
    let Some(bench) = Bench::with_card() else { return };
    let mut device = bench.driver();
    let buffer = device.alloc_dma(SIZE as usize, Access::BOTH).unwrap();
    let before = vec![0xaa; SIZE as usize];
    buffer.write(0, &before).unwrap();
    let mut sender = Sender::new(card(&bench, Share::Descriptor));
    assert_eq!(sender.buffer.iova(), buffer.iova(), "each function has addresses of its own, and here the same");
    let interrupts = sender.driver.interrupts(3).unwrap();
    sender.send();
    assert_eq!(sender.driver.wait(&interrupts[usize::from(VECTOR)], LONG).unwrap(), 1);
    sender.send();
    let mut there = vec![0; SIZE as usize];
    buffer.read(0, &mut there).unwrap();
    assert!(there == before, "the card has written the memory of the other client");

    // The other way: a peer writes host memory by the device.
    let mut kept = vec![0; SIZE as usize];
    sender.buffer.read(0, &mut kept).unwrap();
    let mut peer = bench.peer(&mut device, 9, HOST + buffer.iova(), SIZE as u32);
    let written = peer.write(0x800, &[0x55; 900]);
    assert_eq!(peer.answer(), Heard::Ack(written));
    let read = peer.read(0x800, 900);
    assert_eq!(peer.answer(), Heard::Data(read, vec![0x55; 900]));
    sender.buffer.read(0, &mut there).unwrap();
    assert!(there == kept, "the device has written the memory of the card's client");

    // What only the other has mapped is nobody's: the queue stops, and only it.
    device.free_dma(buffer).unwrap();
    let far = device.alloc_dma(64 * SIZE as usize, Access::BOTH).unwrap();
    let beyond = far.iova() + 32 * SIZE;
    let mut descriptor = beyond.to_le_bytes().to_vec();
    descriptor.extend(100u32.to_le_bytes());
    descriptor.extend([0; 4]);
    let slot = u64::from(sender.sent % ENTRIES);
    sender.post();
    while sender.used() != sender.sent {}
    sender.buffer.write(16 * (slot + 1), &descriptor).unwrap();
    sender.buffer.write(AVAILABLE + 4 + 2 * (slot + 1), &(slot as u16 + 1).to_le_bytes()).unwrap();
    sender.buffer.write(AVAILABLE + 2, &(sender.sent + 1).to_le_bytes()).unwrap();
    sender.driver.write16(0, NOTIFY + 4 * u64::from(SEND), SEND).unwrap();
    let end = Instant::now() + LONG;
    while sender.driver.read32(0, FAULT + 4 * u64::from(SEND)).unwrap() != MEMORY_FAILED {
        assert!(Instant::now() < end, "the queue goes on");
    }
    bench.serves(&mut device, 10);
    bench.end();
}

#[test]
fn a_reset_of_one_function_leaves_the_other() {
    let Some(bench) = Bench::with_card() else { return };
    let mut device = bench.driver();
    let mut sender = Sender::new(card(&bench, Share::Descriptor));
    let buffer = device.alloc_dma(SIZE as usize, Access::BOTH).unwrap();
    let mut peer = bench.peer(&mut device, 9, HOST + buffer.iova(), SIZE as u32);
    sender.send();
    for round in 0..3u8 {
        // The card, while peers write and read by the device.
        let parts = [0, 1, 2, 3].map(|part| peer.write(part * 0x400, &[round; 1000]));
        sender.post();
        sender.driver.reset().unwrap();
        while peer.answer() != Heard::Ack(parts[3]) {}
        let read = peer.read(0x400, 1000);
        assert_eq!(peer.answer(), Heard::Data(read, vec![round; 1000]));
        assert_eq!(sender.driver.read8(0, STATUS).unwrap(), 0);
        sender.driver.write16(0, QUEUE_SELECT, SEND).unwrap();
        assert_eq!(sender.driver.read16(0, QUEUE_ENABLE).unwrap(), 0);
        assert_eq!(sender.driver.read16(0, QUEUE_SIZE).unwrap(), 256);
        sender.driver.set_bus_master(true).unwrap();
        let Sender { mut driver, buffer, .. } = sender;
        driver.free_dma(buffer).unwrap();
        sender = Sender::new(driver);
        sender.send();
    }
    // The device, while the card sends: it is as it was.
    for _ in 0..3 {
        sender.post();
        device.reset().unwrap();
        device.set_bus_master(true).unwrap();
        sender.send();
    }
    assert_eq!(sender.driver.read8(0, STATUS).unwrap(), DRIVER | FEATURES_OK | DRIVER_OK);
    bench.serves(&mut device, 11);
    bench.end();
}

/// A client of the card that keeps its memory to itself is not asked for it: writes that it does not answer would hold up the device's.
#[test]
fn memory_that_is_not_shared_is_not_reached_by_the_card() {
    let Some(bench) = Bench::with_card() else { return };
    let mut device = bench.driver();
    let mut sender = Sender::new(card(&bench, Share::Message));
    sender.post();
    let end = Instant::now() + LONG;
    while sender.driver.read32(0, FAULT + 4 * u64::from(SEND)).unwrap() != MEMORY_FAILED {
        assert!(Instant::now() < end, "the queue goes on");
    }
    bench.until("slot_net.dma_refused", 1);
    assert_eq!(bench.counter("slot_net.dma_messages"), 0);
    bench.serves(&mut device, 9);
    // A client that goes leaves a card that the next one can use.
    drop(sender);
    Sender::new(card(&bench, Share::Descriptor)).send();
    bench.end();
}
