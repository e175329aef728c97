// SPDX-License-Identifier: Apache-2.0
//! The addresses of a device behind an IOMMU: by a container of VFIO, or by the newer IOMMU file.

use std::os::fd::{AsFd, OwnedFd};

use nacelle_slot::pages::{Access, Pages};
use zerocopy::IntoBytes;

use super::calls::{self, AttachIommufdPt, BindIommufd, Call, IoasAlloc, IoasMap, IoasUnmap, Type1Map, Type1Unmap};
use super::system::{Argument, System};
use super::{PciError, call};

/// Who keeps the addresses.
#[derive(Debug)]
pub(super) enum AddressSpace {
    /// A container, with the group of the device in it.
    Container { group: OwnedFd, container: OwnedFd },
    /// The IOMMU file, and the number of the address space.
    Iommufd { file: OwnedFd, space: u32 },
}

impl AddressSpace {
    /// Binds a device to the IOMMU file, with an address space of its own.
    pub(super) fn bind(system: &impl System, device: &OwnedFd, file: OwnedFd) -> Result<Self, PciError> {
        use std::os::fd::AsRawFd;
        let mut bind =
            BindIommufd { argsz: size_of::<BindIommufd>() as u32, iommufd: file.as_raw_fd(), ..BindIommufd::default() };
        call(system, device, Call::DeviceBindIommufd, Argument::Structure(bind.as_mut_bytes()))?;
        let mut alloc = IoasAlloc { size: size_of::<IoasAlloc>() as u32, ..IoasAlloc::default() };
        call(system, &file, Call::IoasAlloc, Argument::Structure(alloc.as_mut_bytes()))?;
        let space = alloc.out_ioas_id;
        let mut attach = AttachIommufdPt { argsz: size_of::<AttachIommufdPt>() as u32, flags: 0, pt_id: space };
        call(system, device, Call::DeviceAttachIommufdPt, Argument::Structure(attach.as_mut_bytes()))?;
        Ok(Self::Iommufd { file, space })
    }

    /// Lets the device access memory.
    pub(super) fn map(&self, system: &impl System, iova: u64, pages: &Pages, access: Access) -> Result<(), PciError> {
        let flags = |read, write| (if access.read { read } else { 0 }) | if access.write { write } else { 0 };
        match self {
            Self::Container { container, .. } => {
                let mut map = Type1Map {
                    argsz: size_of::<Type1Map>() as u32,
                    flags: flags(1, 2),
                    vaddr: pages.address(),
                    iova,
                    size: pages.len() as u64,
                };
                call(system, container, Call::IommuMapDma, Argument::Structure(map.as_mut_bytes()))?;
            }
            Self::Iommufd { file, space } => {
                let mut map = IoasMap {
                    size: size_of::<IoasMap>() as u32,
                    flags: calls::FIXED_IOVA | flags(calls::READABLE, calls::WRITEABLE),
                    ioas_id: *space,
                    reserved: 0,
                    user_va: pages.address(),
                    length: pages.len() as u64,
                    iova,
                };
                call(system, file, Call::IoasMap, Argument::Structure(map.as_mut_bytes()))?;
            }
        }
        Ok(())
    }

    /// Takes memory away from the device.
    pub(super) fn unmap(&self, system: &impl System, iova: u64, size: u64) -> Result<(), PciError> {
        let unmapped = match self {
            Self::Container { container, .. } => {
                let mut unmap = Type1Unmap { argsz: size_of::<Type1Unmap>() as u32, flags: 0, iova, size };
                call(system, container, Call::IommuUnmapDma, Argument::Structure(unmap.as_mut_bytes()))?;
                unmap.size
            }
            Self::Iommufd { file, space } => {
                let size_of = size_of::<IoasUnmap>() as u32;
                let mut unmap = IoasUnmap { size: size_of, ioas_id: *space, iova, length: size };
                call(system, file, Call::IoasUnmap, Argument::Structure(unmap.as_mut_bytes()))?;
                unmap.length
            }
        };
        if unmapped == size { Ok(()) } else { Err(PciError::Unusable("not all of the memory was taken back")) }
    }

    /// Puts a group into a new container with an IOMMU.
    pub(super) fn contain(system: &impl System, container: OwnedFd, group: OwnedFd) -> Result<Self, PciError> {
        if call(system, &container, Call::GetApiVersion, Argument::None)? != calls::API_VERSION {
            return Err(PciError::Unusable("the kernel's VFIO has another version"));
        }
        if call(system, &container, Call::CheckExtension, Argument::Number(calls::TYPE1V2))? == 0 {
            return Err(PciError::Unusable("the kernel's VFIO has no IOMMU of type 1"));
        }
        let mut status = calls::GroupStatus { argsz: size_of::<calls::GroupStatus>() as u32, flags: 0 };
        call(system, &group, Call::GroupGetStatus, Argument::Structure(status.as_mut_bytes()))?;
        if status.flags & calls::VIABLE == 0 {
            return Err(PciError::Unusable("another device of its IOMMU group is not bound to vfio-pci"));
        }
        call(system, &group, Call::GroupSetContainer, Argument::Descriptor(container.as_fd()))?;
        call(system, &container, Call::SetIommu, Argument::Number(calls::TYPE1V2))?;
        Ok(Self::Container { group, container })
    }

    /// The group, of which the device is asked for.
    pub(super) fn group(&self) -> Option<&OwnedFd> {
        match self {
            Self::Container { group, .. } => Some(group),
            Self::Iommufd { .. } => None,
        }
    }
}
