// SPDX-License-Identifier: Apache-2.0
//! The front end's memory table: which files it is in, and how its addresses become those of the guest, which are the device's.
//!
//! Nothing is mapped here: the device has the files, and what this side reads itself, an index now and then, it reads by pread(2). So a
//! file that gets shorter is an error and no SIGBUS.

use std::os::fd::{AsFd, OwnedFd};

use nacelle_pci::{PciDevice, PciError};
use nacelle_slot::channel::Descriptors;
use nacelle_slot::protocol::split;
use nacelle_virtio::card::Card;

use crate::protocol::{MAX_REGIONS, MemoryRegion, MemoryTable};
use crate::{Refusal, Trouble};

/// What memory is given in.
const PAGE: u64 = 4096;

/// A region, with its file.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) place: MemoryRegion,
    file: OwnedFd,
    /// Device and inode of the file.
    identity: (u64, u64),
}

impl Region {
    /// Gives it to a card.
    pub(crate) fn give_to<D: PciDevice>(&self, card: &mut Card<D>) -> Result<(), Trouble> {
        let place = self.place;
        card.share(place.guest, place.size, self.file.as_fd(), place.offset).map_err(|error| match error {
            PciError::Refused { .. } | PciError::AddressesTaken { .. } => {
                Refusal("the memory cannot be used: its file is none, shorter, or of a kind that is not taken").into()
            }
            error => error.into(),
        })
    }

    /// Takes it away from the card that has it.
    pub(crate) fn take_from<D: PciDevice>(&self, card: &mut Card<D>) -> Result<(), PciError> {
        card.unshare(self.place.guest, self.place.size)
    }

    /// Whether it is the same memory at the same place.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.place == other.place && self.identity == other.identity
    }
}

/// All regions.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) regions: Vec<Region>,
}

/// Whether two ranges, each a first address and a length, have an address in common. Both end below 2^64.
fn overlap(one: (u64, u64), other: (u64, u64)) -> bool {
    one.0 < other.0 + other.1 && other.0 < one.0 + one.1
}

impl Memory {
    /// What a message says. It may be longer than its regions: User-mode Linux always sends room for two.
    pub(crate) fn parse(payload: &[u8], descriptors: Descriptors) -> Result<Self, Refusal> {
        let (table, mut rest) = split::<MemoryTable>(payload).ok_or(Refusal("a memory table is short"))?;
        let count = table.regions as usize;
        if count == 0 || count > MAX_REGIONS {
            return Err(Refusal("a memory table has no regions, or more than 8"));
        }
        if descriptors.len() != count {
            return Err(Refusal("a memory table has not one file for each region"));
        }
        let mut memory = Self::default();
        for file in descriptors {
            let (place, others) = split::<MemoryRegion>(rest).ok_or(Refusal("a memory table is short"))?;
            rest = others;
            memory.add(place, file)?;
        }
        Ok(memory)
    }

    fn add(&mut self, place: MemoryRegion, file: OwnedFd) -> Result<(), Refusal> {
        if place.size == 0 || [place.guest, place.size].iter().any(|value| value % PAGE != 0) {
            return Err(Refusal("a region of memory is not made of whole pages"));
        }
        let ends = [place.guest, place.user, place.offset].map(|first| first.checked_add(place.size));
        if ends.contains(&None) {
            return Err(Refusal("a region of memory goes beyond the last address"));
        }
        let others = || self.regions.iter().map(|region| region.place);
        if others().any(|other| overlap((other.guest, other.size), (place.guest, place.size)))
            || others().any(|other| overlap((other.user, other.size), (place.user, place.size)))
        {
            return Err(Refusal("regions of memory overlap"));
        }
        let stat = rustix::fs::fstat(&file).map_err(|_| Refusal("the file of a region cannot be used"))?;
        self.regions.push(Region { place, file, identity: (stat.st_dev, stat.st_ino) });
        Ok(())
    }

    /// The guest's address of what the front end finds at `user`; all of `len` bytes lie in one region.
    pub(crate) fn guest(&self, user: u64, len: u64) -> Option<u64> {
        self.regions.iter().find_map(|Region { place, .. }| {
            let within = user.checked_sub(place.user)?;
            (within <= place.size && len <= place.size - within).then_some(place.guest + within)
        })
    }

    /// A little-endian number of 16 bits at the guest's address `guest`.
    pub(crate) fn read_u16(&self, guest: u64) -> Option<u16> {
        self.regions.iter().find_map(|Region { place, file, .. }| {
            let within = guest.checked_sub(place.guest).filter(|within| *within < place.size - 1)?;
            let mut bytes = [0; 2];
            let read = rustix::io::pread(file, &mut bytes, place.offset + within);
            (read == Ok(2)).then_some(u16::from_le_bytes(bytes))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> OwnedFd {
        rustix::fs::memfd_create("memory", rustix::fs::MemfdFlags::CLOEXEC).unwrap()
    }

    fn region(guest: u64, size: u64, user: u64) -> MemoryRegion {
        MemoryRegion { guest, size, user, offset: 0 }
    }

    #[test]
    fn addresses_of_the_front_end_become_those_of_the_guest() {
        let mut memory = Memory::default();
        memory.add(region(0x10_0000, 0x2000, 0x7f00_0000), file()).unwrap();
        memory.add(region(0, 0x1000, 0x7f00_2000), file()).unwrap();
        assert_eq!(memory.guest(0x7f00_0010, 16), Some(0x10_0010));
        assert_eq!(memory.guest(0x7f00_1ff0, 16), Some(0x10_1ff0));
        assert_eq!(memory.guest(0x7f00_2000, 0x1000), Some(0));
        for (user, len) in
            [(0x7f00_1ff1, 16), (0x7eff_ffff, 1), (0x7f00_3000, 1), (u64::MAX, 2), (0x7f00_0000, u64::MAX)]
        {
            assert_eq!(memory.guest(user, len), None, "{user:#x} {len:#x}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut memory = Memory::default();
        memory.add(region(0x1000, 0x1000, 0x1000), file()).unwrap();
        for (place, why) in [
            (region(0x800, 0x1000, 0x10_0000), "whole pages"),
            (region(0x4000, 0x801, 0x10_0000), "whole pages"),
            (region(0x4000, 0, 0x10_0000), "whole pages"),
            (region(0x1000, 0x1000, 0x10_0000), "overlap"),
            (region(0, 0x8000, 0x10_0000), "overlap"),
            (region(0x4000, 0x1000, 0x1fff), "overlap"),
            (region(u64::MAX - 0xfff, 0x1000, 0x10_0000), "beyond"),
            (region(0x4000, 0x1000, u64::MAX), "beyond"),
            (MemoryRegion { offset: u64::MAX, ..region(0x4000, 0x1000, 0x10_0000) }, "beyond"),
        ] {
            let Refusal(said) = memory.add(place, file()).unwrap_err();
            assert!(said.contains(why), "{place:?}: {said}");
        }
        assert_eq!(memory.regions.len(), 1);
    }

    #[test]
    fn an_index_in_a_file_that_got_shorter_is_none() {
        let file = file();
        rustix::fs::ftruncate(&file, 0x2000).unwrap();
        rustix::io::pwrite(&file, &[0x34, 0x12], 0x1ffe).unwrap();
        let mut memory = Memory::default();
        memory.add(region(0x1000, 0x2000, 0), file.try_clone().unwrap()).unwrap();
        assert_eq!(memory.read_u16(0x2ffe), Some(0x1234));
        assert_eq!((memory.read_u16(0x2fff), memory.read_u16(0xfff), memory.read_u16(u64::MAX)), (None, None, None));
        rustix::fs::ftruncate(&file, 0x1000).unwrap();
        assert_eq!((memory.read_u16(0x2ffe), memory.read_u16(0x1000)), (None, Some(0)));
    }
}
