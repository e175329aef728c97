// SPDX-License-Identifier: Apache-2.0
//! A function behind the kernel's VFIO (`linux/vfio.h`), bound to `vfio-pci`. **Not run on hardware**: nobody has given us a board.
//! By group and container it was tried in a guest of QEMU, by device and IOMMU file only against a model of the calls.
//!
//! Newer kernels have a file for each device and an IOMMU file (`/dev/vfio/devices`, `/dev/iommu`), older ones a group and a container
//! (`/dev/vfio`); the newer way is taken where it is there.
//!
//! The kernel keeps a part of the configuration space itself: addresses of BARs and the registers of MSI-X, which is set up by
//! [`PciDevice::set_interrupts`]. While memory space is off it takes mappings of BARs away, and who accesses one gets SIGBUS.

mod calls;
mod memory;
mod system;

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nacelle_slot::Errno;
use nacelle_slot::pages::{Access, Pages};
use nacelle_slot::protocol::{IrqInfo, MapArea, RegionInfo, SetIrqs, device, irq, region, split};
use zerocopy::IntoBytes;

use crate::areas::{self, MAX_REGION_INFO};
use crate::buffer::DmaBuffer;
use crate::device::PciDevice;
use crate::error::PciError;
use crate::interrupt::Interrupt;
use crate::iova::{Addresses, PAGE};

pub use calls::{
    AttachIommufdPt, BindIommufd, Call, DeviceInfo, GroupStatus, IoasAlloc, IoasMap, IoasUnmap, Type1Map, Type1Unmap,
};
use memory::AddressSpace;
pub use system::{Argument, Linux, System};

/// Regions of BARs have the lowest numbers.
const BARS: usize = 6;

/// A region, as the kernel describes it.
#[derive(Debug, Default)]
struct Region {
    size: u64,
    /// Where it begins in the device's file.
    offset: u64,
    areas: Vec<MapArea>,
}

/// A function behind the kernel's VFIO.
#[derive(Debug)]
pub struct KernelDevice<S = Linux> {
    // Closed before what keeps its addresses.
    file: OwnedFd,
    space: AddressSpace,
    system: S,
    regions: Vec<Region>,
    vectors: u16,
    resettable: bool,
    addresses: Addresses,
    /// Memory of other processes, by its address, as it is mapped here for the kernel.
    shared: BTreeMap<u64, Pages>,
    /// What each interrupt signals: the kernel is given all at once.
    eventfds: Vec<Option<OwnedFd>>,
}

/// Makes a call.
fn call(system: &impl System, file: &OwnedFd, call: Call, argument: Argument<'_>) -> Result<i32, PciError> {
    system.call(file.as_fd(), call, argument).map_err(|error| refused(call.what(), &error))
}

fn refused(what: &'static str, error: &io::Error) -> PciError {
    PciError::Refused { what, errno: Errno::from_io_error(error).unwrap_or(Errno::IO) }
}

fn open(system: &impl System, path: &Path) -> Result<OwnedFd, PciError> {
    system.open(path).map_err(|source| PciError::NoFile { path: path.to_owned(), source })
}

impl KernelDevice {
    /// The function at an address such as `0000:01:00.0`.
    ///
    /// # Errors
    /// If it is not bound to `vfio-pci`, this user may not access it, or the kernel refuses.
    pub fn open(address: &str) -> Result<Self, PciError> {
        Self::open_by(Linux, address)
    }
}

impl<S: System> KernelDevice<S> {
    /// As [`open`](KernelDevice::open), by way of `system`.
    ///
    /// # Errors
    /// As there.
    pub fn open_by(system: S, address: &str) -> Result<Self, PciError> {
        let well_formed = |char: char| char.is_ascii_hexdigit() || matches!(char, ':' | '.');
        let name = CString::new(address).ok().filter(|_| address.len() >= 7 && address.chars().all(well_formed));
        let name = name.ok_or(PciError::Unusable("its address is none, such as 0000:01:00.0"))?;
        let sysfs = Path::new("/sys/bus/pci/devices").join(address);
        let (file, space) = match Self::newer(&system, &sysfs) {
            Some((device, iommu)) => {
                let file = open(&system, &device)?;
                let space = AddressSpace::bind(&system, &file, iommu)?;
                (file, space)
            }
            None => Self::older(&system, &sysfs, &name)?,
        };
        let mut device = Self {
            file,
            space,
            system,
            regions: Vec::new(),
            vectors: 0,
            resettable: false,
            addresses: Addresses::default(),
            shared: BTreeMap::new(),
            eventfds: Vec::new(),
        };
        device.look()?;
        Ok(device)
    }

    /// The device's file and the IOMMU file, if the kernel has them.
    fn newer(system: &S, sysfs: &Path) -> Option<(PathBuf, OwnedFd)> {
        let name = system.names(&sysfs.join("vfio-dev")).ok()?.into_iter().next()?;
        let iommu = system.open("/dev/iommu".as_ref()).ok()?;
        Some((Path::new("/dev/vfio/devices").join(name), iommu))
    }

    /// The device, of its group.
    fn older(system: &S, sysfs: &Path, name: &CString) -> Result<(OwnedFd, AddressSpace), PciError> {
        let path = sysfs.join("iommu_group");
        let group = system.link(&path).map_err(|source| PciError::NoFile { path, source })?;
        let group = group.file_name().ok_or(PciError::Unusable("it has no IOMMU group"))?;
        let group = open(system, &Path::new("/dev/vfio").join(group))?;
        let space = AddressSpace::contain(system, open(system, "/dev/vfio/vfio".as_ref())?, group)?;
        let group = space.group().ok_or(PciError::Unusable("it has no IOMMU group"))?;
        let file = system
            .call_for_descriptor(group.as_fd(), Call::GroupGetDeviceFd, Argument::Name(name))
            .map_err(|error| refused(Call::GroupGetDeviceFd.what(), &error))?;
        Ok((file, space))
    }

    /// Finds out what there is.
    fn look(&mut self) -> Result<(), PciError> {
        let mut info = DeviceInfo { argsz: size_of::<DeviceInfo>() as u32, ..DeviceInfo::default() };
        self.call(Call::DeviceGetInfo, info.as_mut_bytes())?;
        if info.flags & device::PCI == 0 || info.regions <= region::CONFIG || info.irqs <= irq::MSIX {
            return Err(PciError::Unusable("it is no PCI function"));
        }
        self.resettable = info.flags & device::RESET != 0;
        for index in 0..=region::CONFIG {
            let mut bytes = [0; MAX_REGION_INFO];
            let asked = RegionInfo { argsz: MAX_REGION_INFO as u32, index, ..RegionInfo::default() };
            bytes[..size_of::<RegionInfo>()].copy_from_slice(asked.as_bytes());
            // Some regions there may not be: ROM, for one.
            let region = match self.call(Call::DeviceGetRegionInfo, &mut bytes) {
                Ok(()) => split::<RegionInfo>(&bytes).map_or_else(Region::default, |(info, _)| Region {
                    size: info.size,
                    offset: info.offset,
                    areas: areas::mappable(&info, &bytes),
                }),
                Err(PciError::Refused { errno: Errno::INVAL, .. }) if index != region::CONFIG => Region::default(),
                Err(error) => return Err(error),
            };
            self.regions.push(region);
        }
        let mut info = IrqInfo { argsz: size_of::<IrqInfo>() as u32, index: irq::MSIX, ..IrqInfo::default() };
        self.call(Call::DeviceGetIrqInfo, info.as_mut_bytes())?;
        self.vectors = u16::try_from(info.count).unwrap_or(u16::MAX).min(2048);
        self.eventfds = (0..self.vectors).map(|_| None).collect();
        Ok(())
    }

    fn call(&self, what: Call, structure: &mut [u8]) -> Result<(), PciError> {
        call(&self.system, &self.file, what, Argument::Structure(structure)).map(drop)
    }

    fn bar(&self, bar: u8, offset: u64, len: usize) -> Result<&Region, PciError> {
        let region = self.regions.get(usize::from(bar)).filter(|_| usize::from(bar) < BARS);
        let end = offset.checked_add(len as u64);
        let out = PciError::Range { bar, offset, len };
        region.filter(|region| end.is_some_and(|end| end <= region.size)).ok_or(out)
    }

    fn config(&self, offset: u64, len: usize) -> Result<u64, PciError> {
        let region = &self.regions[region::CONFIG as usize];
        let inside = offset.checked_add(len as u64).is_some_and(|end| end <= region.size);
        if inside { Ok(region.offset + offset) } else { Err(PciError::Unusable("its configuration space is shorter")) }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), PciError> {
        let count = self.system.read_at(self.file.as_fd(), into, offset);
        match count.map_err(|error| refused("a read", &error))? {
            count if count == into.len() => Ok(()),
            _ => Err(PciError::Unusable("not all of it could be read")),
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), PciError> {
        let count = self.system.write_at(self.file.as_fd(), bytes, offset);
        match count.map_err(|error| refused("a write", &error))? {
            count if count == bytes.len() => Ok(()),
            _ => Err(PciError::Unusable("not all of it could be written")),
        }
    }

    /// Gives the kernel all eventfds: some kernels cannot add one.
    fn set_all(&self) -> Result<(), PciError> {
        let count = self.eventfds.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let data = if count == 0 { irq::DATA_NONE } else { irq::DATA_EVENTFD };
        let argsz = size_of::<SetIrqs>() + 4 * count;
        let set = SetIrqs {
            argsz: argsz as u32,
            flags: data | irq::ACTION_TRIGGER,
            index: irq::MSIX,
            start: 0,
            count: count as u32,
        };
        let mut bytes = set.as_bytes().to_vec();
        let none = -1;
        for eventfd in &self.eventfds[..count] {
            bytes.extend(eventfd.as_ref().map_or(none, AsRawFd::as_raw_fd).to_ne_bytes());
        }
        self.call(Call::DeviceSetIrqs, &mut bytes)
    }

    /// Turns interrupts off, if they are on.
    fn turn_off(&mut self) -> Result<(), PciError> {
        let before = std::mem::take(&mut self.eventfds);
        self.eventfds = before.iter().map(|_| None).collect();
        if before.iter().any(Option::is_some) { self.set_all() } else { Ok(()) }
    }
}

impl<S: System> PciDevice for KernelDevice<S> {
    fn config_read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), PciError> {
        self.read_at(self.config(offset, into.len())?, into)
    }

    fn config_write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), PciError> {
        self.write_at(self.config(offset, bytes.len())?, bytes)
    }

    fn bar_size(&self, bar: u8) -> u64 {
        self.bar(bar, 0, 0).map_or(0, |region| region.size)
    }

    fn bar_read(&mut self, bar: u8, offset: u64, into: &mut [u8]) -> Result<(), PciError> {
        let place = self.bar(bar, offset, into.len())?.offset + offset;
        self.read_at(place, into)
    }

    fn bar_write(&mut self, bar: u8, offset: u64, bytes: &[u8]) -> Result<(), PciError> {
        let place = self.bar(bar, offset, bytes.len())?.offset + offset;
        self.write_at(place, bytes)
    }

    fn map_bar(&mut self, bar: u8, offset: u64, len: usize) -> Result<Pages, PciError> {
        let region = self.bar(bar, offset, len)?;
        if len == 0 || !areas::hold(&region.areas, offset, len) {
            return Err(PciError::NotMappable { bar, offset });
        }
        Ok(self.system.map(self.file.as_fd(), region.offset + offset, len)?)
    }

    fn alloc_dma(&mut self, len: usize, access: Access) -> Result<DmaBuffer, PciError> {
        let size = (len as u64).max(1).checked_next_multiple_of(PAGE).filter(|size| *size <= isize::MAX as u64);
        let size = size.ok_or(PciError::NoAddresses { len })?;
        let pages = Arc::new(Pages::anonymous(size as usize)?);
        let iova = self.addresses.take(size).ok_or(PciError::NoAddresses { len })?;
        match self.space.map(&self.system, iova, &pages, access) {
            Ok(()) => Ok(DmaBuffer { iova, pages }),
            Err(error) => {
                self.addresses.give(iova);
                Err(error)
            }
        }
    }

    fn free_dma(&mut self, buffer: DmaBuffer) -> Result<(), PciError> {
        self.space.unmap(&self.system, buffer.iova, buffer.len() as u64)?;
        self.addresses.give(buffer.iova);
        Ok(())
    }

    /// Only a memory file that is sealed against getting shorter: the kernel takes what this process has mapped.
    fn share_dma(
        &mut self,
        iova: u64,
        len: u64,
        file: BorrowedFd<'_>,
        offset: u64,
        access: Access,
    ) -> Result<(), PciError> {
        let size = usize::try_from(len).map_err(|_| PciError::AddressesTaken { iova, len })?;
        let pages = Pages::of(file, offset, size, access)?;
        if !self.addresses.claim(iova, len) {
            return Err(PciError::AddressesTaken { iova, len });
        }
        self.space.map(&self.system, iova, &pages, access).inspect_err(|_| self.addresses.give(iova))?;
        self.shared.insert(iova, pages);
        Ok(())
    }

    fn unshare_dma(&mut self, iova: u64, len: u64) -> Result<(), PciError> {
        self.space.unmap(&self.system, iova, len)?;
        self.shared.remove(&iova);
        self.addresses.give(iova);
        Ok(())
    }

    fn vectors(&self) -> u16 {
        self.vectors
    }

    /// All interrupts are off for a moment: one that comes then is lost.
    fn set_interrupts(&mut self, first: u16, eventfds: &[BorrowedFd<'_>]) -> Result<(), PciError> {
        let places = usize::from(first)..usize::from(first) + eventfds.len();
        if places.end > self.eventfds.len() {
            return Err(PciError::NoVector { has: self.vectors });
        }
        let mut all: Vec<_> = self
            .eventfds
            .iter()
            .map(|eventfd| eventfd.as_ref().map(OwnedFd::try_clone).transpose())
            .collect::<Result<_, _>>()?;
        for (place, eventfd) in all[places].iter_mut().zip(eventfds) {
            *place = Some(eventfd.try_clone_to_owned()?);
        }
        self.turn_off()?;
        self.eventfds = all;
        self.set_all()
    }

    fn clear_interrupts(&mut self) -> Result<(), PciError> {
        self.turn_off()
    }

    fn wait(&mut self, interrupt: &Interrupt, wait: Duration) -> Result<u64, PciError> {
        Ok(interrupt.wait(wait)?)
    }

    fn alarm(&self) -> Result<Option<OwnedFd>, PciError> {
        Ok(None)
    }

    fn reset(&mut self) -> Result<(), PciError> {
        if !self.resettable {
            return Err(PciError::Unusable("it cannot be reset"));
        }
        call(&self.system, &self.file, Call::DeviceReset, Argument::None).map(drop)
    }
}
