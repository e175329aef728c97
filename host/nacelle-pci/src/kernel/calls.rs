// SPDX-License-Identifier: Apache-2.0
//! The calls of the kernel's VFIO (`linux/vfio.h`) and of its IOMMU file (`linux/iommufd.h`): numbers and structures. Those for regions
//! and interrupts are the same as in vfio-user, and are there.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `_IO(';', number)`: both files count in one row.
const fn number(number: u32) -> u32 {
    (b';' as u32) << 8 | number
}

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
#[expect(missing_docs, reason = "they have the names of the headers")]
pub enum Call {
    GetApiVersion = number(100),
    CheckExtension = number(101),
    SetIommu = number(102),
    GroupGetStatus = number(103),
    GroupSetContainer = number(104),
    GroupGetDeviceFd = number(106),
    DeviceGetInfo = number(107),
    DeviceGetRegionInfo = number(108),
    DeviceGetIrqInfo = number(109),
    DeviceSetIrqs = number(110),
    DeviceReset = number(111),
    IommuMapDma = number(113),
    IommuUnmapDma = number(114),
    DeviceBindIommufd = number(118),
    DeviceAttachIommufdPt = number(119),
    IoasAlloc = number(0x81),
    IoasMap = number(0x85),
    IoasUnmap = number(0x86),
}

impl Call {
    /// What it is in an error.
    pub(super) const fn what(self) -> &'static str {
        match self {
            Self::GetApiVersion | Self::CheckExtension => "the version of VFIO",
            Self::SetIommu => "the IOMMU",
            Self::GroupGetStatus | Self::GroupSetContainer => "the device's group",
            Self::GroupGetDeviceFd | Self::DeviceBindIommufd => "the device",
            Self::DeviceGetInfo => "its description",
            Self::DeviceGetRegionInfo => "a region",
            Self::DeviceGetIrqInfo => "its interrupts",
            Self::DeviceSetIrqs => "interrupts",
            Self::DeviceReset => "a reset",
            Self::IommuMapDma | Self::IoasMap => "memory",
            Self::IommuUnmapDma | Self::IoasUnmap => "taking memory back",
            Self::DeviceAttachIommufdPt | Self::IoasAlloc => "an address space",
        }
    }
}

/// `VFIO_API_VERSION`.
pub(super) const API_VERSION: i32 = 0;
/// `VFIO_TYPE1v2_IOMMU`.
pub(super) const TYPE1V2: u64 = 3;
/// `VFIO_GROUP_FLAGS_VIABLE`.
pub(super) const VIABLE: u32 = 1;
/// `IOMMU_IOAS_MAP_FIXED_IOVA`.
pub(super) const FIXED_IOVA: u32 = 1;
/// `IOMMU_IOAS_MAP_WRITEABLE`.
pub(super) const WRITEABLE: u32 = 1 << 1;
/// `IOMMU_IOAS_MAP_READABLE`.
pub(super) const READABLE: u32 = 1 << 2;

/// `struct vfio_group_status`.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GroupStatus {
    /// Bytes.
    pub argsz: u32,
    /// Whether it can be used.
    pub flags: u32,
}

/// `struct vfio_device_info`.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DeviceInfo {
    /// Bytes.
    pub argsz: u32,
    /// What it is.
    pub flags: u32,
    /// How many regions it has.
    pub regions: u32,
    /// How many kinds of interrupts it has.
    pub irqs: u32,
    /// Where capabilities are.
    pub cap_offset: u32,
    /// Zero.
    pub pad: u32,
}

/// `struct vfio_iommu_type1_dma_map`.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Type1Map {
    /// Bytes.
    pub argsz: u32,
    /// Rights of the device: 1 reads, 2 writes.
    pub flags: u32,
    /// Where it is in this process.
    pub vaddr: u64,
    /// Where the device finds it.
    pub iova: u64,
    /// Bytes.
    pub size: u64,
}

/// `struct vfio_iommu_type1_dma_unmap`.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Type1Unmap {
    /// Bytes.
    pub argsz: u32,
    /// Zero.
    pub flags: u32,
    /// Where the device found it.
    pub iova: u64,
    /// Bytes; of the answer, those that were unmapped.
    pub size: u64,
}

/// `struct vfio_device_bind_iommufd`, in its first version.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BindIommufd {
    /// Bytes.
    pub argsz: u32,
    /// Zero.
    pub flags: u32,
    /// The IOMMU file.
    pub iommufd: i32,
    /// The device's number there.
    pub out_devid: u32,
}

/// `struct vfio_device_attach_iommufd_pt`, in its first version.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AttachIommufdPt {
    /// Bytes.
    pub argsz: u32,
    /// Zero.
    pub flags: u32,
    /// The address space.
    pub pt_id: u32,
}

/// `struct iommu_ioas_alloc`.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct IoasAlloc {
    /// Bytes.
    pub size: u32,
    /// Zero.
    pub flags: u32,
    /// The address space.
    pub out_ioas_id: u32,
}

/// `struct iommu_ioas_map`.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct IoasMap {
    /// Bytes of this.
    pub size: u32,
    /// Rights of the device, and that `iova` is given.
    pub flags: u32,
    /// The address space.
    pub ioas_id: u32,
    /// Zero.
    pub reserved: u32,
    /// Where it is in this process.
    pub user_va: u64,
    /// Bytes.
    pub length: u64,
    /// Where the device finds it.
    pub iova: u64,
}

/// `struct iommu_ioas_unmap`.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct IoasUnmap {
    /// Bytes of this.
    pub size: u32,
    /// The address space.
    pub ioas_id: u32,
    /// Where the device found it.
    pub iova: u64,
    /// Bytes.
    pub length: u64,
}
