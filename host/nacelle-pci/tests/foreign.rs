// SPDX-License-Identifier: Apache-2.0
//! The crate `vfio_user`, which others wrote, as the driver of our device, and as the device of our driver.

mod support;

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use nacelle_pci::{Access, Pages, PciDevice, PciError, UserConfig, UserDevice};
use support::{Slot, register, status, toy};
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_INFO_EVENTFD, VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_DATA_EVENTFD, VFIO_PCI_CONFIG_REGION_INDEX,
    VFIO_PCI_MSIX_IRQ_INDEX, VFIO_PCI_NUM_IRQS, VFIO_PCI_NUM_REGIONS, VFIO_REGION_INFO_FLAG_MMAP,
    VFIO_REGION_INFO_FLAG_READ, VFIO_REGION_INFO_FLAG_WRITE, vfio_region_info, vfio_region_sparse_mmap_area,
};
use vfio_user::{Client, DmaMapFlags, DmaUnmapFlags, IrqInfo, Server, ServerBackend, ServerRegion, SparseArea};

const CONFIG: u32 = VFIO_PCI_CONFIG_REGION_INDEX;
const MSIX: u32 = VFIO_PCI_MSIX_IRQ_INDEX;

fn eventfd() -> File {
    File::from(rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).unwrap())
}

fn number(client: &mut Client, offset: u64) -> u32 {
    let mut bytes = [0; 4];
    client.region_read(0, offset, &mut bytes).unwrap();
    u32::from_le_bytes(bytes)
}

/// All that the crate's client can do, with our device.
#[test]
fn a_foreign_driver_uses_our_device() {
    let slot = Slot::new(|_| {});
    let mut client = Client::new(&slot.path).unwrap();
    let mut id = [0; 4];
    client.region_read(CONFIG, 0, &mut id).unwrap();
    assert_eq!(id, [0x41, 0x4e, 1, 0]);
    assert_eq!(client.get_irq_info(MSIX).unwrap().count, u32::from(toy::VECTORS));
    assert_eq!([0, 1, 2, CONFIG].map(|index| client.region(index).unwrap().size), [0x10000, 0, 0x1000, 4096]);

    client.region_write(0, register::SCRATCH, &0xcafe_f00d_u32.to_le_bytes()).unwrap();
    assert_eq!(number(&mut client, register::SCRATCH), 0xcafe_f00d);
    assert_eq!(number(&mut client, register::SLOW), 0x5a5a_5a5a);

    client.region_write(CONFIG, 4, &[6]).unwrap();
    let mut events = [eventfd(), eventfd()];
    let fds = [events[0].as_raw_fd(), events[1].as_raw_fd()];
    client.set_irqs(MSIX, VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, 0, 2, &fds).unwrap();
    // One memory that is sealed, and one that is not.
    for (address, file) in [(0x8000_0000u64, sealed()), (0x9000_0000, tempfile::tempfile().unwrap().into())] {
        let mut file = File::from(file);
        file.set_len(0x2_0000).unwrap();
        file.write_all(&[7; 100]).unwrap();
        client.dma_map(0, address, 0x2_0000, file.as_raw_fd()).unwrap();
        client.region_write(0, register::ADDRESS, &address.to_le_bytes()).unwrap();
        client.region_write(0, register::LENGTH, &100u32.to_le_bytes()).unwrap();
        client.region_write(0, register::GO, &1u32.to_le_bytes()).unwrap();
        let mut times = [0; 8];
        events[1].read_exact(&mut times).unwrap();
        assert_eq!(u64::from_ne_bytes(times), 1);
        assert_eq!((number(&mut client, register::STATUS), number(&mut client, register::SUM)), (status::DONE, 700));
        let mut complement = [0; 101];
        rustix::io::pread(&file, &mut complement, 100).unwrap();
        assert!(complement[..100].iter().all(|byte| *byte == 248) && complement[100] == 0);
        client.dma_unmap(address, 0x2_0000).unwrap();
    }
    let region = client.region(2).unwrap();
    assert_eq!(region.sparse_areas.len(), 1);
    let file = region.file_offset.as_ref().unwrap();
    let page = Pages::of(file.file(), file.start(), 4096, Access::BOTH).unwrap();
    page.write(0, &[1, 2, 3, 4]).unwrap();
    let mut four = [0; 4];
    client.region_read(2, 0, &mut four).unwrap();
    assert_eq!(four, [1, 2, 3, 4]);
    client.reset().unwrap();
    assert_eq!(number(&mut client, register::SCRATCH), 0);
    client.shutdown().unwrap();
    // The next one.
    drop(client);
    assert!(UserDevice::connect(&slot.path, UserConfig::default()).is_ok());
}

fn sealed() -> OwnedFd {
    Pages::create("test", 0x2_0000).unwrap().file().unwrap().try_clone_to_owned().unwrap()
}

/// A device of the crate: a register, memory that it copies, an interrupt.
struct Foreign {
    registers: [u8; 64],
    config: Vec<u8>,
    memory: Vec<(u64, Pages)>,
    interrupts: Vec<File>,
}

impl ServerBackend for Foreign {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> Result<()> {
        let from = if region == CONFIG { &self.config } else { &self.registers[..] };
        let offset = offset as usize;
        data.copy_from_slice(from.get(offset..offset + data.len()).ok_or(ErrorKind::InvalidInput)?);
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<()> {
        if region == 0 && offset == 32 {
            let (address, pages) = self.memory.first().ok_or(ErrorKind::AddrNotAvailable)?;
            assert_eq!(self.registers[8..16], address.to_le_bytes());
            let mut bytes = [0; 8];
            pages.read(0, &mut bytes).map_err(|_| ErrorKind::InvalidInput)?;
            bytes.reverse();
            pages.write(8, &bytes).map_err(|_| ErrorKind::InvalidInput)?;
            return self.interrupts[1].write_all(&1u64.to_ne_bytes());
        }
        let to = if region == CONFIG { &mut self.config } else { &mut self.registers[..] };
        let offset = offset as usize;
        to.get_mut(offset..offset + data.len()).ok_or(ErrorKind::InvalidInput)?.copy_from_slice(data);
        Ok(())
    }

    fn dma_map(&mut self, flags: DmaMapFlags, offset: u64, address: u64, size: u64, file: Option<File>) -> Result<()> {
        assert_eq!(flags, DmaMapFlags::READ_WRITE);
        let file = file.ok_or_else(|| Error::from(ErrorKind::InvalidInput))?;
        self.memory.push((address, Pages::of(file, offset, size as usize, Access::BOTH)?));
        Ok(())
    }

    fn dma_unmap(&mut self, _: DmaUnmapFlags, address: u64, _: u64) -> Result<()> {
        self.memory.retain(|(first, _)| *first != address);
        Ok(())
    }

    fn reset(&mut self) -> Result<()> {
        self.registers.fill(0);
        Ok(())
    }

    fn set_irqs(&mut self, index: u32, _: u32, _: u32, _: u32, fds: Vec<File>) -> Result<()> {
        assert_eq!(index, MSIX);
        self.interrupts.extend(fds);
        Ok(())
    }
}

fn foreign_server(path: &Path, page: &Pages) -> Server {
    let file = page.file().unwrap().as_raw_fd();
    let region = |index: u32, size: u64, flags: u32, mapped: bool| ServerRegion {
        region_info: vfio_region_info {
            argsz: size_of::<vfio_region_info>() as u32,
            index,
            size,
            flags,
            ..Default::default()
        },
        sparse_areas: if mapped {
            vec![SparseArea { area: vfio_region_sparse_mmap_area { offset: 0, size } }]
        } else {
            Vec::new()
        },
        mmap_fd: mapped.then_some(file),
    };
    let read_write = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
    let regions = (0..VFIO_PCI_NUM_REGIONS).map(|index| match index {
        0 => region(index, 64, read_write, false),
        2 => region(index, 4096, read_write | VFIO_REGION_INFO_FLAG_MMAP, true),
        CONFIG => region(index, 256, read_write, false),
        _ => region(index, 0, 0, false),
    });
    let irqs = (0..VFIO_PCI_NUM_IRQS).map(|index| IrqInfo {
        index,
        flags: VFIO_IRQ_INFO_EVENTFD,
        count: if index == MSIX { 4 } else { 0 },
    });
    Server::new(path, true, irqs.collect(), regions.collect()).unwrap()
}

/// All that our driver can do, with the crate's device.
#[test]
fn our_driver_uses_a_foreign_device() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slot");
    let page = Pages::create("page", 4096).unwrap();
    let server = foreign_server(&path, &page);
    let device = std::thread::spawn(move || {
        let mut config = vec![0; 256];
        config[..4].copy_from_slice(&[0x34, 0x12, 0xcd, 0xab]);
        let mut foreign = Foreign { registers: [0; 64], config, memory: Vec::new(), interrupts: Vec::new() };
        server.run(&mut foreign).unwrap();
        foreign.memory.len()
    });
    let mut driver = UserDevice::connect(&path, UserConfig::default()).unwrap();
    assert_eq!(driver.identity().unwrap().device, 0xabcd);
    assert_eq!((driver.bar_size(0), driver.bar_size(1), driver.vectors()), (64, 0, 4));
    driver.set_bus_master(true).unwrap();
    driver.write64(0, 0, 0x1122_3344_5566_7788).unwrap();
    assert_eq!((driver.read64(0, 0).unwrap(), driver.read16(0, 6).unwrap()), (0x1122_3344_5566_7788, 0x1122));

    let interrupts = driver.interrupts(2).unwrap();
    let buffer = driver.alloc_dma(4096, Access::BOTH).unwrap();
    buffer.write(0, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    driver.write64(0, 8, buffer.iova()).unwrap();
    driver.write32(0, 32, 1).unwrap();
    assert_eq!(driver.wait(&interrupts[1], Duration::from_secs(20)).unwrap(), 1);
    let mut back = [0; 8];
    buffer.read(8, &mut back).unwrap();
    assert_eq!(back, [8, 7, 6, 5, 4, 3, 2, 1]);

    let mapped = driver.map_bar(2, 0, 4096).unwrap();
    mapped.write(100, b"here").unwrap();
    let mut here = [0; 4];
    page.read(100, &mut here).unwrap();
    assert_eq!(&here, b"here");
    driver.reset().unwrap();
    assert_eq!(driver.read64(0, 0).unwrap(), 0);
    driver.free_dma(buffer).unwrap();
    // It answers errors with a header alone, and says no reason.
    let mut config = [0; 4];
    let refused = driver.config_read(300, &mut config).unwrap_err();
    assert!(matches!(refused, PciError::Refused { .. }), "{refused}");
    assert_eq!(driver.read64(0, 0).unwrap(), 0, "the stream is in step");
    drop(driver);
    assert_eq!(device.join().unwrap(), 0);
}
