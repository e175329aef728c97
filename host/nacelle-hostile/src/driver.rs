// SPDX-License-Identifier: Apache-2.0
//! What both hostile drivers have: a function, an arena that is mapped in pieces, and a record of what the device was offered.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nacelle_pci::{Access, PciDevice, PciError, UserConfig, UserDevice};
use rustix::io::Errno;

use crate::arena::{Arena, BYTES, IOVA, PIECE, zone};
use crate::{BOUND, Failure};

/// How often to look for the end of something.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// All that one descriptor in memory ever said since the last reset. The device may read a part of it before it is written again and a
/// part after that.
#[derive(Debug, Default)]
struct Said {
    addresses: Vec<u64>,
    lengths: Vec<u32>,
    writable: bool,
}

/// A driver that has a function for itself.
pub(crate) struct Driver {
    pub(crate) device: UserDevice,
    pub(crate) arena: Arc<Arena>,
    pub(crate) random: fastrand::Rng,
    mapped: Vec<bool>,
    /// What the device may write by descriptors that it may still have.
    offers: Vec<Range<usize>>,
    said: HashMap<usize, Said>,
}

/// An access that the device may refuse, and must answer.
pub(crate) fn tolerated<T>(outcome: Result<T, PciError>) -> Result<Option<T>, Failure> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(PciError::Refused { errno, .. }) if errno != Errno::TIMEDOUT => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Connects to the function at `slot`. Its last client may not have been given up yet.
pub(crate) fn connect(slot: &Path) -> Result<UserDevice, Failure> {
    connect_with(slot, UserConfig { timeout: BOUND, ..UserConfig::default() })
}

fn connect_with(slot: &Path, config: UserConfig) -> Result<UserDevice, Failure> {
    let end = Instant::now() + BOUND;
    loop {
        match UserDevice::connect(slot, config) {
            Ok(device) => return Ok(device),
            Err(error) if Instant::now() > end => return Err(error.into()),
            Err(_) => std::thread::sleep(LOOK_EVERY),
        }
    }
}

impl Driver {
    /// Takes the function at `slot`, as a bus master, with all of the arena mapped but [`zone::NEVER`].
    pub(crate) fn new(slot: &Path, arena: Arc<Arena>, random: fastrand::Rng) -> Result<Self, Failure> {
        let mapped = vec![false; BYTES / PIECE];
        let (offers, said) = (Vec::new(), HashMap::new());
        // Writes are posted, as on a bus: much more happens in the same time.
        let config = UserConfig { timeout: BOUND, posted_writes: true, ..UserConfig::default() };
        let device = connect_with(slot, config)?;
        let mut driver = Self { device, arena, random, mapped, offers, said };
        for piece in 0..BYTES / PIECE {
            driver.map(piece)?;
        }
        driver.device.set_bus_master(true)?;
        Ok(driver)
    }

    /// Of a piece what is mapped: all but `NEVER`.
    fn piece(number: usize) -> Range<usize> {
        let whole = number * PIECE..(number + 1) * PIECE;
        if whole.start == zone::NEVER.start { zone::NEVER.end..whole.end } else { whole }
    }

    fn map(&mut self, number: usize) -> Result<(), Failure> {
        let Range { start, end } = Self::piece(number);
        // The device may still have descriptors of it.
        self.mapped[number] = true;
        for offer in self.offers.clone() {
            self.mark(&offer);
        }
        let (iova, len) = (IOVA + start as u64, (end - start) as u64);
        Ok(self.device.share_dma(iova, len, self.arena.file(), start as u64, Access::BOTH)?)
    }

    /// Takes a piece away from the device, or gives it back. What was taken away is full of guard bytes at once.
    pub(crate) fn remap(&mut self) -> Result<(), Failure> {
        let number = self.random.usize(..self.mapped.len());
        if !self.mapped[number] {
            return self.map(number);
        }
        let piece = Self::piece(number);
        self.device.unshare_dma(IOVA + piece.start as u64, piece.len() as u64)?;
        self.mapped[number] = false;
        self.arena.withdraw(piece);
        Ok(())
    }

    /// A place of `len` bytes in a zone, at a multiple of `align`.
    pub(crate) fn place(&mut self, zone: Range<usize>, len: usize, align: usize) -> usize {
        zone.start + self.random.usize(..=(zone.len() - len) / align) * align
    }

    /// An address at which the device has nothing, or not all that it looks for. Not that of interrupts: what a driver has written there is an
    /// interrupt of its own function, and the model would take it for a bad one of the device.
    pub(crate) fn nowhere(&mut self) -> u64 {
        match self.random.u8(..7) {
            0 => self.random.u64(..),
            1 => IOVA + BYTES as u64 + self.random.u64(..0x2000),
            2 => IOVA + BYTES as u64 - self.random.u64(1..64),
            3 => IOVA - self.random.u64(1..0x1000),
            4 => IOVA + self.place(zone::NEVER, 64, 1) as u64,
            5 => u64::MAX - self.random.u64(..64),
            _ => self.random.u64(..0x1_0000),
        }
    }

    fn mark(&self, range: &Range<usize>) {
        for (number, mapped) in self.mapped.iter().enumerate() {
            let piece = Self::piece(number);
            let part = piece.start.max(range.start)..piece.end.min(range.end);
            if *mapped && !part.is_empty() {
                self.arena.offer(part);
            }
        }
    }

    /// The device may write `len` bytes there from now on; outside of the arena there is nothing.
    pub(crate) fn offer(&mut self, address: u64, len: u64) {
        let end = address.saturating_add(len).min(IOVA + BYTES as u64);
        let start = address.max(IOVA);
        if start < end {
            let range = (start - IOVA) as usize..(end - IOVA) as usize;
            self.mark(&range);
            self.offers.push(range);
        }
    }

    /// Something at `at` in the arena tells the device of a buffer from now on, together with all that it said before.
    pub(crate) fn says(&mut self, at: usize, address: u64, len: u32, writable: bool) {
        let said = self.said.entry(at).or_default();
        let first = writable && !said.writable;
        said.writable |= writable;
        let (new_address, new_length) = (!said.addresses.contains(&address), !said.lengths.contains(&len));
        if new_address {
            said.addresses.push(address);
        }
        if new_length {
            said.lengths.push(len);
        }
        let Said { addresses, lengths, writable } = said;
        if !*writable {
            return;
        }
        let mut pairs = Vec::new();
        for some in addresses.iter().filter(|some| first || new_length || **some == address) {
            // A shorter one lies in the longest.
            pairs.push((*some, lengths.iter().copied().max().unwrap_or(0)));
        }
        for (address, len) in pairs {
            self.offer(address, len.into());
        }
    }

    /// The device has ended all that it was asked to do: nothing is written from now on.
    pub(crate) fn ended(&mut self, how: &str) -> Result<(), Failure> {
        self.arena.settle(how)?;
        self.offers.clear();
        self.said.clear();
        Ok(())
    }

    /// Lets time pass, some of it the device's.
    pub(crate) fn pause(&mut self) {
        std::thread::sleep(Duration::from_micros(self.random.u64(..3000)));
    }

    /// Waits until `look` finds what it looks for.
    pub(crate) fn until(
        &mut self,
        what: &str,
        mut look: impl FnMut(&mut UserDevice) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let end = Instant::now() + BOUND;
        while !look(&mut self.device)? {
            if Instant::now() > end {
                return Err(Failure::Hang(what.to_owned()));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}
