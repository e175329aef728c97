// SPDX-License-Identifier: Apache-2.0
//! Why an access failed.

use std::io;
use std::path::PathBuf;

use nacelle_slot::Errno;

/// Why a function cannot be used, or an access failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PciError {
    /// There is nothing to connect to.
    #[error("no device is in the slot {}: {source}; start one", path.display())]
    NoSlot {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file of the kernel's VFIO cannot be opened.
    #[error("{} cannot be opened: {source}; bind the device to vfio-pci and give this user access", path.display())]
    NoFile {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The other side says what makes no sense.
    #[error("the device cannot be used: {0}")]
    Unusable(&'static str),
    /// The device or the kernel refused.
    #[error("{what} was refused: {errno}")]
    Refused {
        /// What was asked for.
        what: &'static str,
        /// Why.
        errno: Errno,
    },
    /// The device did not answer in time. It can no longer be used.
    #[error("the device does not answer; connect again")]
    Timeout,
    /// The device has gone.
    #[error("the device has gone; connect again")]
    Gone,
    /// An access is not within a BAR, or the buffer of one.
    #[error("BAR {bar} has no {len} bytes at {offset:#x}")]
    Range {
        /// The BAR.
        bar: u8,
        /// Where.
        offset: u64,
        /// Bytes.
        len: usize,
    },
    /// The part of a BAR cannot be mapped; it can be read and written.
    #[error("BAR {bar} cannot be mapped at {offset:#x}")]
    NotMappable {
        /// The BAR.
        bar: u8,
        /// Where.
        offset: u64,
    },
    /// The function has fewer interrupts.
    #[error("the function has {has} interrupts, and no more")]
    NoVector {
        /// How many.
        has: u16,
    },
    /// No addresses are free for a buffer.
    #[error("no device addresses are free for {len} bytes")]
    NoAddresses {
        /// Bytes.
        len: usize,
    },
    /// Some of the addresses for memory are in use, or there are none such.
    #[error("device addresses from {iova:#x} on, {len} bytes, are not free")]
    AddressesTaken {
        /// The first.
        iova: u64,
        /// Bytes.
        len: u64,
    },
    /// The system.
    #[error("the device cannot be accessed: {0}")]
    System(#[from] io::Error),
}
