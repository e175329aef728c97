// SPDX-License-Identifier: Apache-2.0
//! Messages of vfio-user, as QEMU's `docs/interop/vfio-user.rst` has them, and what they take from `linux/vfio.h`.
//!
//! Numbers are in the byte order of the machine. A message is a [`Header`], then what its command says, then bytes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The version that is spoken here.
pub const MAJOR: u16 = 0;
/// As [`MAJOR`].
pub const MINOR: u16 = 1;
/// Bytes of a read or write at most, unless a peer says otherwise.
pub const DEFAULT_TRANSFER: usize = 1 << 20;
/// Descriptors in a message at most, unless a peer says otherwise.
pub const DEFAULT_DESCRIPTORS: usize = 1;

/// Commands.
#[expect(missing_docs, reason = "they have the names of the specification")]
pub mod command {
    pub const VERSION: u16 = 1;
    pub const DMA_MAP: u16 = 2;
    pub const DMA_UNMAP: u16 = 3;
    pub const GET_INFO: u16 = 4;
    pub const GET_REGION_INFO: u16 = 5;
    pub const GET_REGION_IO_FDS: u16 = 6;
    pub const GET_IRQ_INFO: u16 = 7;
    pub const SET_IRQS: u16 = 8;
    pub const REGION_READ: u16 = 9;
    pub const REGION_WRITE: u16 = 10;
    pub const DMA_READ: u16 = 11;
    pub const DMA_WRITE: u16 = 12;
    pub const RESET: u16 = 13;
}

/// Bits of [`Header::flags`].
pub mod flag {
    /// Where the type is.
    pub const TYPE: u32 = 0xf;
    /// The type of a reply; that of a command is 0.
    pub const REPLY: u32 = 1;
    /// No reply is wanted.
    pub const NO_REPLY: u32 = 1 << 4;
    /// The command failed; [`Header::error`](super::Header::error) says why.
    pub const ERROR: u32 = 1 << 5;
}

/// Bits of [`Info::flags`].
pub mod device {
    /// It can be reset.
    pub const RESET: u32 = 1;
    /// It is a PCI function.
    pub const PCI: u32 = 1 << 1;
}

/// Regions of a PCI function: the BARs have numbers 0 to 5.
pub mod region {
    /// Expansion ROM.
    pub const ROM: u32 = 6;
    /// Configuration space.
    pub const CONFIG: u32 = 7;
    /// How many there are, with one for VGA.
    pub const COUNT: u32 = 9;
    /// It can be read.
    pub const READ: u32 = 1;
    /// It can be written.
    pub const WRITE: u32 = 1 << 1;
    /// It can be mapped.
    pub const MMAP: u32 = 1 << 2;
    /// Capabilities follow.
    pub const CAPS: u32 = 1 << 3;
    /// The capability that says which parts can be mapped, in its first version.
    pub const SPARSE_MMAP: u16 = 1;
}

/// Interrupts of a PCI function.
pub mod irq {
    /// MSI-X.
    pub const MSIX: u32 = 2;
    /// How many kinds there are: INTx, MSI, MSI-X, errors, requests.
    pub const COUNT: u32 = 5;
    /// They are signalled by eventfd.
    pub const EVENTFD: u32 = 1;
    /// They can be masked.
    pub const MASKABLE: u32 = 1 << 1;
    /// No data follow.
    pub const DATA_NONE: u32 = 1;
    /// A byte for each vector follows: not zero if it is meant.
    pub const DATA_BOOL: u32 = 1 << 1;
    /// Descriptors come along.
    pub const DATA_EVENTFD: u32 = 1 << 2;
    /// All of these.
    pub const DATA: u32 = 7;
    /// Masks.
    pub const ACTION_MASK: u32 = 1 << 3;
    /// Unmasks.
    pub const ACTION_UNMASK: u32 = 1 << 4;
    /// Sets up, takes away or triggers.
    pub const ACTION_TRIGGER: u32 = 1 << 5;
    /// All of these.
    pub const ACTION: u32 = 7 << 3;
}

/// Bits of [`DmaMap::flags`] and [`DmaUnmap::flags`].
pub mod dma {
    /// The device may read it.
    pub const READ: u32 = 1;
    /// The device may write it.
    pub const WRITE: u32 = 1 << 1;
    /// All is to be unmapped.
    pub const UNMAP_ALL: u32 = 1 << 1;
}

/// The begin of every message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    /// The sender's number; a reply has that of its command.
    pub id: u16,
    /// What is to be done.
    pub command: u16,
    /// Bytes of the message with this header.
    pub size: u32,
    /// See [`flag`].
    pub flags: u32,
    /// errno of a reply with [`flag::ERROR`].
    pub error: u32,
}

impl Header {
    /// Bytes.
    pub const LEN: usize = size_of::<Self>();

    /// Whether it is a reply.
    #[must_use]
    pub const fn is_reply(&self) -> bool {
        self.flags & flag::TYPE == flag::REPLY
    }

    /// Whether its sender wants a reply.
    #[must_use]
    pub const fn wants_reply(&self) -> bool {
        self.flags & flag::NO_REPLY == 0
    }
}

/// [`command::VERSION`]: then capabilities as JSON and a zero byte follow, or nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Version {
    /// Must be equal on both sides.
    pub major: u16,
    /// The lower one counts.
    pub minor: u16,
}

/// [`command::GET_INFO`] and its reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Info {
    /// Bytes of the whole reply.
    pub argsz: u32,
    /// See [`device`].
    pub flags: u32,
    /// How many regions there are.
    pub regions: u32,
    /// How many kinds of interrupts there are.
    pub irqs: u32,
}

/// [`command::GET_REGION_INFO`] and its reply, which capabilities follow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RegionInfo {
    /// Of a command: the longest reply wanted, without header. Of a reply: bytes of all there is to say.
    pub argsz: u32,
    /// See [`region`].
    pub flags: u32,
    /// Which region.
    pub index: u32,
    /// Where the first capability is, counted from here.
    pub cap_offset: u32,
    /// Bytes of the region.
    pub size: u64,
    /// Where it begins in the file that is to be mapped.
    pub offset: u64,
}

/// The begin of a [`region::SPARSE_MMAP`] capability, which so many [`MapArea`]s follow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SparseMmap {
    /// Which capability.
    pub id: u16,
    /// Of the capability.
    pub version: u16,
    /// Where the next one is, or 0.
    pub next: u32,
    /// How many areas follow.
    pub areas: u32,
    /// Zero.
    pub reserved: u32,
}

/// A part of a region that can be mapped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MapArea {
    /// Bytes from the region's begin.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// [`command::GET_REGION_IO_FDS`] and its reply, which so many [`IoEventFd`]s follow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RegionIoFds {
    /// As [`RegionInfo::argsz`].
    pub argsz: u32,
    /// Zero.
    pub flags: u32,
    /// Which region.
    pub index: u32,
    /// How many there are.
    pub count: u32,
}

/// A part of a region whose writes signal an eventfd.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct IoEventFd {
    /// Bytes from the region's begin.
    pub offset: u64,
    /// Bytes of a write, or 0 for any.
    pub size: u64,
    /// Which of the descriptors that come along.
    pub fd_index: u32,
    /// 0.
    pub kind: u32,
    /// [`IoEventFd::DATAMATCH`], or 0.
    pub flags: u32,
    /// Zero.
    pub padding: u32,
    /// The value that must be written.
    pub datamatch: u64,
}

impl IoEventFd {
    /// Only writes of `datamatch` signal (`KVM_IOEVENTFD_FLAG_DATAMATCH`).
    pub const DATAMATCH: u32 = 1;
}

/// [`command::GET_IRQ_INFO`] and its reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct IrqInfo {
    /// Bytes of the whole reply.
    pub argsz: u32,
    /// See [`irq`].
    pub flags: u32,
    /// Which kind.
    pub index: u32,
    /// How many there are.
    pub count: u32,
}

/// [`command::SET_IRQS`], which a byte for each vector may follow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetIrqs {
    /// Bytes with what follows.
    pub argsz: u32,
    /// One of the data and one of the actions of [`irq`].
    pub flags: u32,
    /// Which kind.
    pub index: u32,
    /// The first vector.
    pub start: u32,
    /// How many.
    pub count: u32,
}

/// [`command::REGION_READ`], [`command::REGION_WRITE`] and their replies; bytes follow a write, and the reply to a read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RegionAccess {
    /// Bytes from the region's begin.
    pub offset: u64,
    /// Which region.
    pub region: u32,
    /// Bytes.
    pub count: u32,
}

/// [`command::DMA_MAP`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DmaMap {
    /// Bytes of this.
    pub argsz: u32,
    /// See [`dma`].
    pub flags: u32,
    /// Where it begins in the file that comes along.
    pub offset: u64,
    /// Where the device finds it.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

/// [`command::DMA_UNMAP`] and its reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DmaUnmap {
    /// Bytes of the reply at most.
    pub argsz: u32,
    /// See [`dma`].
    pub flags: u32,
    /// That of the mapping.
    pub address: u64,
    /// That of the mapping.
    pub size: u64,
}

/// [`command::DMA_READ`], [`command::DMA_WRITE`] and their replies; bytes follow a write, and the reply to a read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DmaAccess {
    /// Where.
    pub address: u64,
    /// Bytes.
    pub count: u64,
}

/// A structure and the bytes behind it, if there are so many.
#[must_use]
pub fn split<T: FromBytes>(bytes: &[u8]) -> Option<(T, &[u8])> {
    T::read_from_prefix(bytes).ok()
}

/// What a peer says of itself in [`command::VERSION`], as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Descriptors that it takes in a message.
    pub descriptors: usize,
    /// Bytes of a read or write that it takes.
    pub transfer: usize,
    /// Mappings that it takes at once.
    pub mappings: usize,
}

impl Default for Capabilities {
    /// Those of a peer that says nothing.
    fn default() -> Self {
        Self { descriptors: DEFAULT_DESCRIPTORS, transfer: DEFAULT_TRANSFER, mappings: 65_535 }
    }
}

impl Capabilities {
    /// Reads the bytes behind a [`Version`]: JSON and a zero byte, or nothing.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut said = Self::default();
        let Some((0, json)) = bytes.split_last() else { return bytes.is_empty().then_some(said) };
        let object: serde_json::Value = serde_json::from_slice(json).ok()?;
        let capabilities = match object.as_object()?.get("capabilities") {
            Some(capabilities) => capabilities.as_object()?,
            None => return Some(said),
        };
        for (name, place) in [
            ("max_msg_fds", &mut said.descriptors),
            ("max_data_xfer_size", &mut said.transfer),
            ("max_dma_maps", &mut said.mappings),
        ] {
            if let Some(value) = capabilities.get(name) {
                *place = usize::try_from(value.as_u64()?).ok()?;
            }
        }
        Some(said)
    }

    /// The bytes behind a [`Version`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { descriptors, transfer, mappings } = self;
        format!(
            "{{\"capabilities\":{{\"max_msg_fds\":{descriptors},\"max_data_xfer_size\":{transfer},\"max_dma_maps\":{mappings},\
             \"pgsizes\":4096}}}}\0"
        )
        .into_bytes()
    }
}
