// SPDX-License-Identifier: Apache-2.0
//! What every way to a function offers.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nacelle_slot::pages::{Access, Pages};

use crate::buffer::DmaBuffer;
use crate::error::PciError;
use crate::interrupt::Interrupt;

/// Registers of the configuration space (PCI Express base specification 5.0, 7.5.1).
const COMMAND: u64 = 0x04;
const BUS_MASTER: u8 = 1 << 2;
const CAPABILITIES: u64 = 0x34;
const EXTENDED_CAPABILITIES: u64 = 0x100;
/// Capabilities that a list has room for; one with more goes round in circles.
const MAX_CAPABILITIES: usize = 960;

/// What a function says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Revision ID.
    pub revision: u8,
    /// Class code, 24 bits.
    pub class: u32,
}

/// A PCI Express function. Registers are little-endian; the methods with a width in their name take and give numbers.
pub trait PciDevice {
    /// Reads bytes of the configuration space.
    ///
    /// # Errors
    /// If they do not all exist, or the device has gone.
    fn config_read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), PciError>;

    /// Writes bytes of the configuration space.
    ///
    /// # Errors
    /// As [`config_read`](Self::config_read).
    fn config_write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), PciError>;

    /// Bytes of a BAR; 0 if there is none.
    fn bar_size(&self, bar: u8) -> u64;

    /// Reads bytes of a BAR. 1, 2, 4 or 8 that are aligned are one access.
    ///
    /// # Errors
    /// If they do not all exist, the device refuses or has gone.
    fn bar_read(&mut self, bar: u8, offset: u64, into: &mut [u8]) -> Result<(), PciError>;

    /// Writes bytes of a BAR, as [`bar_read`](Self::bar_read).
    ///
    /// # Errors
    /// As there.
    fn bar_write(&mut self, bar: u8, offset: u64, bytes: &[u8]) -> Result<(), PciError>;

    /// Maps a part of a BAR: accesses cost no system call then. Not every part can be mapped.
    ///
    /// # Errors
    /// [`PciError::NotMappable`], or that of the system.
    fn map_bar(&mut self, bar: u8, offset: u64, len: usize) -> Result<Pages, PciError>;

    /// Allocates zeroed memory that the device may access; `access` is the device's. Its length is rounded up to whole pages.
    ///
    /// # Errors
    /// If there is none, or the device refuses.
    fn alloc_dma(&mut self, len: usize, access: Access) -> Result<DmaBuffer, PciError>;

    /// Gives memory back. The device accesses nothing of it any more when this returns.
    ///
    /// # Errors
    /// If the device refuses or has gone; the memory is not used again then.
    fn free_dma(&mut self, buffer: DmaBuffer) -> Result<(), PciError>;

    /// Lets the device access memory of another process, by the file that it is in: `len` bytes from `offset` on, in whole pages, which
    /// the device finds at `iova`. `access` is the device's.
    ///
    /// # Errors
    /// If some of the addresses are in use, the file cannot be used so, or the device refuses.
    fn share_dma(
        &mut self,
        iova: u64,
        len: u64,
        file: BorrowedFd<'_>,
        offset: u64,
        access: Access,
    ) -> Result<(), PciError>;

    /// Takes away what was given at `iova` by [`share_dma`](Self::share_dma). The device accesses nothing of it any more when this
    /// returns.
    ///
    /// # Errors
    /// As [`free_dma`](Self::free_dma).
    fn unshare_dma(&mut self, iova: u64, len: u64) -> Result<(), PciError>;

    /// How many interrupts it has (MSI-X).
    fn vectors(&self) -> u16;

    /// Has the interrupts from `first` on signal `eventfds`, and turns interrupts on.
    ///
    /// # Errors
    /// If it has fewer, or the device refuses.
    fn set_interrupts(&mut self, first: u16, eventfds: &[BorrowedFd<'_>]) -> Result<(), PciError>;

    /// Turns all interrupts off.
    ///
    /// # Errors
    /// If the device refuses or has gone.
    fn clear_interrupts(&mut self) -> Result<(), PciError>;

    /// Waits for an interrupt, `wait` at most, and says how often it has come. Serves the device meanwhile if it has to.
    ///
    /// # Errors
    /// If the device has gone.
    fn wait(&mut self, interrupt: &Interrupt, wait: Duration) -> Result<u64, PciError>;

    /// A descriptor that hangs up (`POLLHUP`, `POLLRDHUP`) when the device goes, for a caller that polls the eventfd of an [`Interrupt`]
    /// itself: nothing else ends such a wait. `None`: this way to a device has no such descriptor.
    ///
    /// # Errors
    /// That of the system.
    fn alarm(&self) -> Result<Option<OwnedFd>, PciError>;

    /// Resets the function. Memory and interrupts that were set up stay; [`set_bus_master`](Self::set_bus_master) is needed anew.
    ///
    /// # Errors
    /// If the device cannot be reset, or has gone.
    fn reset(&mut self) -> Result<(), PciError>;

    /// Sets up the first `count` interrupts.
    ///
    /// # Errors
    /// As [`set_interrupts`](Self::set_interrupts).
    fn interrupts(&mut self, count: u16) -> Result<Vec<Interrupt>, PciError> {
        let interrupts = (0..count).map(|_| Interrupt::new()).collect::<Result<Vec<_>, _>>()?;
        let eventfds: Vec<BorrowedFd<'_>> = interrupts.iter().map(AsFd::as_fd).collect();
        self.set_interrupts(0, &eventfds)?;
        Ok(interrupts)
    }

    /// Whether the function may send requests: DMA and interrupts.
    ///
    /// # Errors
    /// As [`config_read`](Self::config_read).
    fn set_bus_master(&mut self, on: bool) -> Result<(), PciError> {
        let mut command = [0];
        self.config_read(COMMAND, &mut command)?;
        let rest = command[0] & !BUS_MASTER;
        self.config_write(COMMAND, &[rest | if on { BUS_MASTER } else { 0 }])
    }

    /// What it says it is.
    ///
    /// # Errors
    /// As [`config_read`](Self::config_read).
    fn identity(&mut self) -> Result<Identity, PciError> {
        let mut bytes = [0; 12];
        self.config_read(0, &mut bytes)?;
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Ok(Identity {
            vendor: word(0),
            device: word(2),
            revision: bytes[8],
            class: u32::from(word(10)) << 8 | u32::from(bytes[9]),
        })
    }

    /// Where a capability is in the configuration space.
    ///
    /// # Errors
    /// As [`config_read`](Self::config_read).
    fn capability(&mut self, id: u8) -> Result<Option<u64>, PciError> {
        let mut next = [0];
        self.config_read(CAPABILITIES, &mut next)?;
        for _ in 0..MAX_CAPABILITIES {
            let at = u64::from(next[0] & !3);
            if at < 0x40 {
                return Ok(None);
            }
            let mut head = [0; 2];
            self.config_read(at, &mut head)?;
            if head[0] == id {
                return Ok(Some(at));
            }
            next = [head[1]];
        }
        Err(PciError::Unusable("its list of capabilities has no end"))
    }

    /// Where an extended capability is in the configuration space.
    ///
    /// # Errors
    /// As [`config_read`](Self::config_read).
    fn extended_capability(&mut self, id: u16) -> Result<Option<u64>, PciError> {
        let mut at = EXTENDED_CAPABILITIES;
        for _ in 0..MAX_CAPABILITIES {
            let mut head = [0; 4];
            self.config_read(at, &mut head)?;
            let head = u32::from_le_bytes(head);
            if head as u16 == id && head != 0 {
                return Ok(Some(at));
            }
            at = u64::from(head >> 20 & !3);
            if at < EXTENDED_CAPABILITIES {
                return Ok(None);
            }
        }
        Err(PciError::Unusable("its list of extended capabilities has no end"))
    }

    /// Reads a register of 8 bits.
    ///
    /// # Errors
    /// As [`bar_read`](Self::bar_read); likewise for those of other widths.
    fn read8(&mut self, bar: u8, offset: u64) -> Result<u8, PciError> {
        let mut bytes = [0];
        self.bar_read(bar, offset, &mut bytes).map(|()| bytes[0])
    }

    /// Reads a register of 16 bits.
    fn read16(&mut self, bar: u8, offset: u64) -> Result<u16, PciError> {
        let mut bytes = [0; 2];
        self.bar_read(bar, offset, &mut bytes).map(|()| u16::from_le_bytes(bytes))
    }

    /// Reads a register of 32 bits.
    fn read32(&mut self, bar: u8, offset: u64) -> Result<u32, PciError> {
        let mut bytes = [0; 4];
        self.bar_read(bar, offset, &mut bytes).map(|()| u32::from_le_bytes(bytes))
    }

    /// Reads a register of 64 bits.
    fn read64(&mut self, bar: u8, offset: u64) -> Result<u64, PciError> {
        let mut bytes = [0; 8];
        self.bar_read(bar, offset, &mut bytes).map(|()| u64::from_le_bytes(bytes))
    }

    /// Writes a register of 8 bits.
    fn write8(&mut self, bar: u8, offset: u64, value: u8) -> Result<(), PciError> {
        self.bar_write(bar, offset, &[value])
    }

    /// Writes a register of 16 bits.
    fn write16(&mut self, bar: u8, offset: u64, value: u16) -> Result<(), PciError> {
        self.bar_write(bar, offset, &value.to_le_bytes())
    }

    /// Writes a register of 32 bits.
    fn write32(&mut self, bar: u8, offset: u64, value: u32) -> Result<(), PciError> {
        self.bar_write(bar, offset, &value.to_le_bytes())
    }

    /// Writes a register of 64 bits.
    fn write64(&mut self, bar: u8, offset: u64, value: u64) -> Result<(), PciError> {
        self.bar_write(bar, offset, &value.to_le_bytes())
    }
}
