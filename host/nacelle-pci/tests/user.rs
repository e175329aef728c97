// SPDX-License-Identifier: Apache-2.0
//! A driver and a device, over vfio-user: both sides of Nacelle.

mod support;

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nacelle_pci::{Access, Pages, PciDevice, PciError, Share, UserConfig, UserDevice};
use nacelle_slot::config_space::{ConfigEvent, PLACEHOLDER_DEVICE, PLACEHOLDER_VENDOR};
use nacelle_slot::dma::Fault;
use nacelle_slot::{Errno, ResetCause};
use support::{Slot, register, status, toy};

fn connect(slot: &Slot, change: impl FnOnce(&mut UserConfig)) -> UserDevice {
    let mut config = UserConfig::default();
    change(&mut config);
    UserDevice::connect(&slot.path, config).unwrap()
}

const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_driver_finds_its_device() {
    let slot = Slot::new(|_| {});
    let mut device = connect(&slot, |_| {});
    let identity = device.identity().unwrap();
    assert_eq!((identity.vendor, identity.device), (PLACEHOLDER_VENDOR, PLACEHOLDER_DEVICE));
    assert_eq!((identity.class, identity.revision), (0x12_0000, 0));
    assert_eq!([0, 1, 2, 4, 5, 6, 255].map(|bar| device.bar_size(bar)), [0x10000, 0, 0x1000, 1 << 20, 0, 0, 0]);
    assert_eq!(device.vectors(), toy::VECTORS);
    let serial = device.extended_capability(3).unwrap().unwrap();
    let mut bytes = [0; 8];
    device.config_read(serial + 4, &mut bytes).unwrap();
    assert_eq!(u64::from_le_bytes(bytes), 0x1234_5678_9abc_def0);
    assert!(device.capability(0x10).unwrap().is_some() && device.capability(5).unwrap().is_none());
    assert_eq!(device.extended_capability(0x1e).unwrap(), None);
}

#[test]
fn registers_have_every_width() {
    let slot = Slot::new(|_| {});
    for posted in [false, true] {
        let mut device = connect(&slot, |config| config.posted_writes = posted);
        device.write64(0, register::SCRATCH, 0x0807_0605_0403_0201).unwrap();
        assert_eq!(device.read8(0, 7).unwrap(), 8);
        assert_eq!(device.read16(0, 2).unwrap(), 0x0403);
        device.write8(0, 0, 0xaa).unwrap();
        device.write16(0, 2, 0xbbbb).unwrap();
        device.write32(0, 4, 0xcccc_cccc).unwrap();
        assert_eq!(device.read64(0, 0).unwrap(), 0xcccc_cccc_bbbb_02aa);
        assert_eq!(device.read32(0, register::SLOW).unwrap(), 0x5a5a_5a5a);
        let refused = device.read32(0, register::ERROR).unwrap_err();
        assert!(matches!(refused, PciError::Refused { errno: Errno::NXIO, .. }), "{refused}");
        assert_eq!(device.write32(0, register::ERROR, 1).is_ok(), posted);
        for (bar, offset) in [(0, 0x10000), (0, 0xfffd), (0, u64::MAX), (1, 0), (6, 0), (7, 0)] {
            assert!(matches!(device.read32(bar, offset), Err(PciError::Range { .. })), "{bar} {offset}");
        }
        let mut long = vec![0; 1 << 20];
        device.bar_read(4, 0, &mut long).unwrap();
        assert!(long.iter().all(|byte| *byte == 0x44));
    }
}

fn sums(share: Share) {
    let slot = Slot::new(|_| {});
    let mut device = connect(&slot, |config| config.share = share);
    let interrupts = device.interrupts(3).unwrap();
    let buffer = device.alloc_dma(5000, Access::BOTH).unwrap();
    assert_eq!(buffer.len(), 8192);
    buffer.write(16, &[3; 2000]).unwrap();
    device.write64(0, register::ADDRESS, buffer.iova() + 16).unwrap();
    device.write32(0, register::LENGTH, 2000).unwrap();
    // Without leave it does nothing.
    device.write32(0, register::GO, 2).unwrap();
    assert_eq!(device.read32(0, register::STATUS).unwrap(), status::FAULT);
    device.set_bus_master(true).unwrap();
    assert_eq!(device.wait(&interrupts[2], SOON).unwrap(), 1, "that of before was pending");
    device.write32(0, register::GO, 2).unwrap();
    assert_eq!(device.wait(&interrupts[2], SOON).unwrap(), 1);
    assert_eq!(device.read32(0, register::STATUS).unwrap(), status::DONE);
    assert_eq!(device.read32(0, register::SUM).unwrap(), 6000);
    let mut complement = [0; 2001];
    buffer.read(2016, &mut complement).unwrap();
    assert!(complement[..2000].iter().all(|byte| *byte == 252) && complement[2000] == 0);
    assert_eq!(device.wait(&interrupts[1], Duration::from_millis(20)).unwrap(), 0);

    // Memory that the device may only read, and memory that it has no more.
    let read_only = device.alloc_dma(4096, Access { read: true, write: false }).unwrap();
    device.write64(0, register::ADDRESS, read_only.iova()).unwrap();
    device.write32(0, register::LENGTH, 16).unwrap();
    device.write32(0, register::GO, 0).unwrap();
    assert_eq!(device.wait(&interrupts[0], SOON).unwrap(), 1);
    let gone = buffer.iova();
    device.free_dma(buffer).unwrap();
    device.write64(0, register::ADDRESS, gone).unwrap();
    device.write32(0, register::GO, 0).unwrap();
    assert_eq!(device.wait(&interrupts[0], SOON).unwrap(), 1);
    assert_eq!(device.alloc_dma(8192, Access::BOTH).unwrap().iova(), gone);
    device.clear_interrupts().unwrap();
    device.write32(0, register::GO, 0).unwrap();
    assert_eq!(device.wait(&interrupts[0], Duration::from_millis(20)).unwrap(), 0);
    drop(device);
    let (server, toy) = slot.end();
    assert_eq!(toy.faults, [Fault::BusMaster, Fault::NotAllowed, Fault::Unmapped]);
    assert_eq!(server.counters().dma_messages > 0, share == Share::Message);
}

#[test]
fn the_device_sums_memory_by_itself() {
    sums(Share::Descriptor);
}

#[test]
fn the_device_sums_memory_by_asking() {
    sums(Share::Message);
}

#[test]
fn a_page_of_doorbells_is_mapped() {
    let slot = Slot::new(|_| {});
    let mut device = connect(&slot, |_| {});
    let page = device.map_bar(2, 0, 4096).unwrap();
    page.write(0x40, &7u64.to_le_bytes()).unwrap();
    assert_eq!(device.read64(2, 0x40).unwrap(), 7);
    device.write64(2, 0x48, 9).unwrap();
    let mut bytes = [0; 8];
    page.read(0x48, &mut bytes).unwrap();
    assert_eq!(u64::from_le_bytes(bytes), 9);
    let part = device.map_bar(2, 0x40, 8).unwrap();
    part.read(0, &mut bytes).unwrap();
    assert_eq!((u64::from_le_bytes(bytes), part.len()), (7, 8));
    assert!(matches!(device.map_bar(0, 0, 4096), Err(PciError::NotMappable { .. })));
    assert!(matches!(device.map_bar(2, 0, 4097), Err(PciError::Range { .. })));
}

#[test]
fn all_interrupts_come_where_they_belong() {
    let slot = Slot::new(|_| {});
    let mut device = connect(&slot, |_| {});
    device.set_bus_master(true).unwrap();
    assert!(matches!(device.interrupts(21), Err(PciError::NoVector { has: 20 })));
    // More than go into one message.
    let interrupts = device.interrupts(20).unwrap();
    device.write32(0, register::LENGTH, 0).unwrap();
    for vector in (0..20).rev() {
        device.write32(0, register::GO, vector).unwrap();
        let came: Vec<u64> = interrupts.iter().map(|interrupt| interrupt.take().unwrap()).collect();
        let expected: Vec<u64> = (0..20).map(|number| u64::from(number == vector)).collect();
        assert_eq!(came, expected);
    }
}

#[test]
fn a_reset_and_a_reconnection_begin_anew() {
    let slot = Slot::new(|_| {});
    for _ in 0..2 {
        let mut device = connect(&slot, |_| {});
        assert_eq!(device.read64(0, register::SCRATCH).unwrap(), 0);
        device.set_bus_master(true).unwrap();
        device.write64(0, register::SCRATCH, 5).unwrap();
        device.write32(0, register::DELAY, 4).unwrap();
        device.reset().unwrap();
        assert_eq!(device.read64(0, register::SCRATCH).unwrap(), 0);
        let mut command = [0; 2];
        device.config_read(4, &mut command).unwrap();
        assert_eq!(command, [2, 0]);
        // A second driver is turned away while there is one.
        let other = UserDevice::connect(&slot.path, UserConfig::default());
        assert!(matches!(other, Err(PciError::Gone)), "{other:?}");
    }
    let (_, toy) = slot.end();
    assert_eq!(toy.resets, [ResetCause::Client; 2]);
    assert!(toy.events.contains(&ConfigEvent::BusMaster(true)));
}

#[test]
fn a_device_that_is_slow_or_gone_is_an_error() {
    let missing = UserDevice::connect("/nonexistent/slot".as_ref(), UserConfig::default());
    assert!(matches!(missing, Err(PciError::NoSlot { .. })));
    let slot = Slot::new(|config| config.device_timeout = Duration::from_millis(100));
    let mut device = connect(&slot, |_| {});
    let refused = device.read32(0, register::DEAD).unwrap_err();
    assert!(matches!(refused, PciError::Refused { errno: Errno::TIMEDOUT, .. }), "{refused}");
    assert_eq!(device.read32(0, register::SUM).unwrap(), 0);
    let slot = Slot::new(|_| {});
    let mut device = connect(&slot, |config| config.timeout = Duration::from_millis(200));
    let begin = Instant::now();
    assert!(matches!(device.read32(0, register::DEAD), Err(PciError::Timeout)));
    assert!(begin.elapsed() < SOON);
    assert!(matches!(device.read32(0, register::SUM), Err(PciError::Gone)));
    let mut device = connect(&Slot::new(|_| {}), |_| {});
    assert!(matches!(device.read32(0, 0), Err(PciError::Gone)));
}

/// Memory of another process, by its file: the device has it where it was told, and no more once it was taken away.
#[test]
fn memory_of_others_is_shared() {
    let slot = Slot::new(|_| {});
    let mut device = connect(&slot, |_| {});
    device.set_bus_master(true).unwrap();
    let interrupts = device.interrupts(1).unwrap();
    let own = device.alloc_dma(0x1000, Access::BOTH).unwrap();
    let file = tempfile::tempfile().unwrap();
    file.set_len(0x3000).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[1; 16], 0x1000).unwrap();
    device.share_dma(0x8_0000, 0x2000, file.as_fd(), 0x1000, Access::BOTH).unwrap();
    for (iova, len) in [(0x8_1000, 0x1000), (0x7_f000, 0x2000), (own.iova(), 0x1000), (u64::MAX - 0xfff, 0x2000)] {
        let taken = device.share_dma(iova, len, file.as_fd(), 0, Access::BOTH).unwrap_err();
        assert!(matches!(taken, PciError::AddressesTaken { .. }), "{taken}");
    }
    let sealed = Pages::create("shared", 0x3000).unwrap();
    let refused = device.share_dma(0x10_0000, 0x4000, sealed.file().unwrap(), 0, Access::BOTH).unwrap_err();
    assert!(matches!(refused, PciError::Refused { .. }), "the file is shorter: {refused}");
    device.share_dma(0x10_0000, 0x3000, sealed.file().unwrap(), 0, Access::BOTH).unwrap();
    let sum = |device: &mut UserDevice| {
        device.write64(0, register::ADDRESS, 0x8_0000).unwrap();
        device.write32(0, register::LENGTH, 16).unwrap();
        device.write32(0, register::GO, 0).unwrap();
        assert_eq!(device.wait(&interrupts[0], SOON).unwrap(), 1);
        (device.read32(0, register::STATUS).unwrap(), device.read32(0, register::SUM).unwrap())
    };
    assert_eq!(sum(&mut device), (status::DONE, 16));
    let mut complement = [0; 16];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut complement, 0x1010).unwrap();
    assert_eq!(complement, [0xfe; 16]);
    device.unshare_dma(0x8_0000, 0x2000).unwrap();
    assert_eq!(sum(&mut device).0, status::FAULT);
    device.share_dma(0x8_0000, 0x1000, file.as_fd(), 0x1000, Access::BOTH).unwrap();
    assert_eq!(sum(&mut device).0, status::DONE);
}
