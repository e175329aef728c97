// SPDX-License-Identifier: Apache-2.0
//! Why a device's memory cannot be used, or a copy failed.

use std::ops::Range;
use std::sync::Arc;

use nacelle::ErrorCode;
use nacelle_pci::{OutOfPages, PciError};

use crate::rings::{Descriptor, place};

/// Why the device cannot be used, or something was not begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The slot or what is in it.
    #[error(transparent)]
    Pci(#[from] PciError),
    /// The device has no copy engine.
    #[error("the device in the slot has no copy engine; build one with [pcie] copy = true")]
    NoEngine,
    /// The device has no addresses and no memory yet.
    #[error("the device in the slot is not enabled; enable it, then open the slot again")]
    NotEnabled,
    /// The engine does not end what another driver has begun.
    #[error("the copy engine does not end what it does; reset the device")]
    Stuck,
    /// So much device memory is not free.
    #[error("{asked} bytes of device memory are not free; the largest part has {largest}")]
    NoDeviceMemory {
        /// Bytes that were asked for.
        asked: u64,
        /// Bytes of the largest part.
        largest: u64,
    },
    /// The place in device memory is not the host's, or is in use.
    #[error("device memory has no free {len} bytes at {offset:#x}; the host has {bytes}")]
    NoPlace {
        /// From the begin of the host's part of it.
        offset: u64,
        /// Bytes.
        len: u64,
        /// Bytes that the host has.
        bytes: u64,
    },
    /// A part that a buffer does not have.
    #[error("bytes {} to {} are not within a buffer of {len}", range.start, range.end)]
    OutOfRange {
        /// The part.
        range: Range<u64>,
        /// Bytes of the buffer.
        len: u64,
    },
    /// A buffer cannot have no bytes.
    #[error("a buffer needs a byte at least")]
    Empty,
    /// A list of copies cannot be empty.
    #[error("a list of copies needs an entry at least")]
    NoCopies,
    /// Source and destination of a copy have different lengths.
    #[error("entry {index} of the list copies {from} bytes to {to}")]
    Lengths {
        /// Which of the list.
        index: usize,
        /// Bytes of the source.
        from: u64,
        /// Bytes of the destination.
        to: u64,
    },
    /// Source and destination of a copy overlap.
    #[error("source and destination of entry {index} of the list overlap")]
    Overlap {
        /// Which of the list.
        index: usize,
    },
    /// A buffer of another slot.
    #[error("entry {index} of the list has a buffer of another slot")]
    OtherSlot {
        /// Which of the list.
        index: usize,
    },
    /// A list with more copies than the ring has places.
    #[error("the list needs {needed} descriptors; the ring has {places}")]
    TooLong {
        /// Descriptors: one for each copy, and for each 2 GiB of it.
        needed: usize,
        /// Places in the ring.
        places: usize,
    },
    /// The ring has no room now: wait for a copy.
    #[error("so many copies are under way that there is no room for {needed} more; wait for one of them")]
    Full {
        /// Descriptors that need room.
        needed: usize,
    },
    /// A copy failed.
    #[error(transparent)]
    Copy(#[from] CopyError),
}

impl Error {
    /// Its kind.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Pci(_) | Self::NoEngine | Self::NotEnabled | Self::Stuck => ErrorCode::Slot,
            Self::NoDeviceMemory { .. } | Self::NoPlace { .. } => ErrorCode::DeviceMemory,
            Self::OutOfRange { .. }
            | Self::Empty
            | Self::NoCopies
            | Self::Lengths { .. }
            | Self::Overlap { .. }
            | Self::OtherSlot { .. }
            | Self::TooLong { .. } => ErrorCode::InvalidArgument,
            Self::Full { .. } => ErrorCode::CopiesFull,
            Self::Copy(CopyError::Gone { .. }) => ErrorCode::Slot,
            Self::Copy(_) => ErrorCode::CopyFailed,
        }
    }

    /// What to try, in one line.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotEnabled => "wait until the device has an address: 'nacelle ls' shows it",
            Self::NoEngine => "build a device with [pcie] copy = true",
            Self::Stuck => "start the device again",
            Self::Pci(PciError::Gone | PciError::Timeout) | Self::Copy(CopyError::Gone { .. }) => {
                "end the program that has the slot, if there is one; see with 'nacelle ls' whether the device still runs"
            }
            _ => self.code().text().advice,
        }
    }
}

impl From<OutOfPages> for Error {
    fn from(_: OutOfPages) -> Self {
        Self::Pci(PciError::Unusable("its memory ends"))
    }
}

/// Why a copy that was begun has failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// One of its descriptors failed, the first of them that did. The others are copied, and so is what could be of this one: of each 4 KiB
    /// all or nothing.
    #[error("copy {index} of the list failed, {} bytes from {} to {}: {why}", descriptor.length, place(descriptor.source), place(descriptor.destination))]
    Failed {
        /// Which of its descriptors, from 0.
        index: usize,
        /// What it said.
        descriptor: Descriptor,
        /// Why.
        why: Failure,
    },
    /// The engine has stopped before the end of the copy, of which any part can have been done. It was begun again: other copies can
    /// follow.
    #[error("the copy engine has stopped before the copy ended: {why}")]
    Stopped {
        /// Why.
        why: Stop,
    },
    /// The device has gone, or can no longer be used.
    #[error("the copy did not end: {why}")]
    Gone {
        /// What was seen of it.
        why: Arc<PciError>,
    },
}

/// Why a descriptor failed, as its completion says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A read failed.
    #[error("the source cannot be read")]
    Source,
    /// A write failed.
    #[error("the destination cannot be written")]
    Destination,
    /// The engine does not take the descriptor.
    #[error("the descriptor is bad")]
    Descriptor,
}

/// Why the engine has stopped, as its register says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", nacelle_manage::event_log::copy_stopped(*self as u32))]
#[repr(u32)]
pub enum Stop {
    /// A size that no ring has.
    Settings = 1,
    /// The doorbell is further ahead than the ring is long.
    Producer = 2,
    /// Descriptors could not be read.
    Fetch = 3,
    /// A completion could not be written.
    Completion = 4,
    /// A bad descriptor.
    Descriptor = 5,
    /// The function was reset.
    Reset = 6,
    /// A reason that is not known here.
    Unknown = 7,
}

impl Stop {
    /// That of the register; `None`: it has not stopped.
    pub(crate) fn of(number: u32) -> Option<Self> {
        Some(match number {
            0 => return None,
            1 => Self::Settings,
            2 => Self::Producer,
            3 => Self::Fetch,
            4 => Self::Completion,
            5 => Self::Descriptor,
            6 => Self::Reset,
            _ => Self::Unknown,
        })
    }
}
