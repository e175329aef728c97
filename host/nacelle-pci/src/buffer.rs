// SPDX-License-Identifier: Apache-2.0
//! Memory that the device accesses.

use std::sync::Arc;

use nacelle_slot::pages::{OutOfPages, Pages};

/// Memory of this process that the device accesses too, at its own address.
///
/// The device may write at any time, so the bytes are copied in and out. Given back by
/// [`free_dma`](crate::PciDevice::free_dma); if it is dropped before, the device can access the memory until it is closed.
#[derive(Debug)]
pub struct DmaBuffer {
    pub(crate) iova: u64,
    pub(crate) pages: Arc<Pages>,
}

impl DmaBuffer {
    /// Where the device finds it.
    #[must_use]
    pub fn iova(&self) -> u64 {
        self.iova
    }

    /// Where it is in this process, for programs that access it by a pointer.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.pages.address()
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Copies the bytes from `offset` on into `into`. An aligned word of 2, 4 or 8 bytes is read at once, and what the device wrote
    /// before it is seen by reads behind it.
    ///
    /// # Errors
    /// If they do not all exist.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), OutOfPages> {
        self.pages.read(offset, into)
    }

    /// Copies `bytes` to `offset`, aligned words at once and in their order.
    ///
    /// # Errors
    /// If there is no room for all of them.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), OutOfPages> {
        self.pages.write(offset, bytes)
    }
}
