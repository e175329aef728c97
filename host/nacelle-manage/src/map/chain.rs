// SPDX-License-Identifier: Apache-2.0
//! The chain of blocks: each begins with what it is and where the next one is.

use super::{BLOCKS, Block, device};
use crate::Registers;

/// End of the addresses of the control bus.
const BUS_END: u32 = 1 << 20;

/// A block of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its address.
    pub address: u32,
    /// Its TYPE.
    pub kind: [u8; 4],
    /// Its VERSION.
    pub version: u32,
    /// How many blocks of this type come before it.
    pub number: u32,
    /// What is known about it: `None` for an unknown type, or another major version.
    pub block: Option<&'static Block>,
}

impl Found {
    /// Whether it is a block of this type, of a version that is known.
    #[must_use]
    pub fn is_a(&self, block: &Block) -> bool {
        self.block.is_some_and(|known| known.kind == block.kind)
    }
}

/// Why the chain of a device could not be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError<E> {
    /// The device did not answer, or with an error.
    #[error("the block at {address:#07x} cannot be read: {error}")]
    Access {
        /// Address of the block.
        address: u32,
        /// What the access gave.
        error: E,
    },
    /// There is no block.
    #[error("what is at {address:#07x} is no block of registers: its type is {kind:#010x}")]
    NoBlock {
        /// Where a block should be.
        address: u32,
        /// The first word there.
        kind: u32,
    },
    /// A block leads to an address that none can have behind it.
    #[error("the block at {address:#07x} names {next:#07x} as the address of the next one")]
    Next {
        /// Address of the block.
        address: u32,
        /// Its NEXT.
        next: u32,
    },
}

/// Goes from block to block, beginning at address 0. A block of type 0 is one that the device does without: it only leads to the next one,
/// and is left out here. The addresses rise, so it ends on any device; after an error, at once.
#[derive(Debug)]
pub struct Chain<'a, R> {
    registers: &'a mut R,
    next: Option<u32>,
    seen: Vec<[u8; 4]>,
}

impl<'a, R: Registers> Chain<'a, R> {
    /// The chain of a device.
    pub fn new(registers: &'a mut R) -> Self {
        Self { registers, next: Some(device::BASE), seen: Vec::new() }
    }

    /// The first block of this type, if the device has one whose registers are known here. A chain that breaks off before has none.
    ///
    /// # Errors
    /// If the device does not answer.
    pub fn first(self, block: &Block) -> Result<Option<Found>, R::Error> {
        for found in self {
            match found {
                Ok(found) if found.is_a(block) => return Ok(Some(found)),
                Ok(_) => {}
                Err(ChainError::Access { error, .. }) => return Err(error),
                Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The block at this address; `None` if the device does without it.
    fn follow(&mut self, address: u32) -> Result<Option<Found>, ChainError<R::Error>> {
        let words = self.registers.read_all(&[address, address + 4, address + 8]);
        let words = words.map_err(|error| ChainError::Access { address, error })?;
        let (kind, version, next) = (words[0].to_be_bytes(), words[1], words[2]);
        let is_absent = words[0] == 0 && address != device::BASE;
        if !is_absent && !kind.iter().all(u8::is_ascii_graphic) {
            return Err(ChainError::NoBlock { address, kind: words[0] });
        }
        if next != 0 && (next <= address || next % 4 != 0 || next >= BUS_END) {
            return Err(ChainError::Next { address, next });
        }
        self.next = (next != 0).then_some(next);
        if is_absent {
            return Ok(None);
        }
        let number = self.seen.iter().filter(|seen| **seen == kind).count() as u32;
        self.seen.push(kind);
        let known = |block: &&Block| block.kind == kind && block.version >> 16 == version >> 16;
        Ok(Some(Found { address, kind, version, number, block: BLOCKS.iter().find(known) }))
    }
}

impl<R: Registers> Iterator for Chain<'_, R> {
    type Item = Result<Found, ChainError<R::Error>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let address = self.next.take()?;
            if let Some(found) = self.follow(address).transpose() {
                return Some(found);
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Registers that hold what is in a map.
    #[derive(Debug, Default)]
    pub(in super::super) struct Words(pub(in super::super) BTreeMap<u32, u32>);

    impl Words {
        pub(in super::super) fn block(mut self, address: u32, kind: &[u8; 4], version: u32, next: u32) -> Self {
            self.0.extend([(address, u32::from_be_bytes(*kind)), (address + 4, version), (address + 8, next)]);
            self
        }
    }

    impl Registers for Words {
        type Error = u32;

        fn read(&mut self, address: u32) -> Result<u32, u32> {
            self.0.get(&address).copied().ok_or(address)
        }

        fn write(&mut self, address: u32, value: u32) -> Result<(), u32> {
            self.0.insert(address, value);
            Ok(())
        }
    }

    #[test]
    fn blocks_are_found_whatever_lies_between() {
        let mut device = Words::default()
            .block(0, b"NACL", 1, 0x10)
            .block(0x10, b"NEW!", 7, 0x1000)
            .block(0x1000, b"SOCK", 0x0001_0004, 0x2000)
            .block(0x2000, b"SOCK", 0x0002_0000, 0x3000)
            .block(0x3000, b"SOCK", 0x0001_0000, 0);
        let found: Vec<_> = Chain::new(&mut device).map(Result::unwrap).collect();
        let names: Vec<_> =
            found.iter().map(|found| (found.address, found.block.map(|b| b.name), found.number)).collect();
        assert_eq!(
            names,
            [
                (0, Some("device"), 0),
                (0x10, None, 0),
                (0x1000, Some("socket"), 0),
                (0x2000, None, 1), // a major version that is not known
                (0x3000, Some("socket"), 2),
            ]
        );
    }

    #[test]
    fn a_block_that_a_device_does_without_is_passed_over() {
        let mut device = Words::default()
            .block(0, b"NACL", 1, 0x1000)
            .block(0x1000, &[0; 4], 0, 0x2000)
            .block(0x2000, b"ADMI", 1, 0x3000)
            .block(0x3000, &[0; 4], 0, 0);
        let found: Vec<_> = Chain::new(&mut device).map(|found| found.unwrap().address).collect();
        assert_eq!(found, [0, 0x2000]);
    }

    #[test]
    fn the_first_block_of_a_type_is_found() {
        let mut device = Words::default()
            .block(0, b"NACL", 1, 0x1000)
            .block(0x1000, b"HIST", 0x0002_0000, 0x2000) // a major version that is not known
            .block(0x2000, b"SOCK", 1 << 16, 0x3000)
            .block(0x3000, b"SOCK", 1 << 16, 0x10);
        let mut first = |block| Chain::new(&mut device).first(block).map(|found| found.map(|found| found.address));
        assert_eq!(first(&crate::map::socket::BLOCK), Ok(Some(0x2000)));
        assert_eq!(first(&crate::map::histograms::BLOCK), Ok(None));
        let mut silent = Words::default().block(0, b"NACL", 1, 0x1000);
        assert_eq!(Chain::new(&mut silent).first(&crate::map::histograms::BLOCK), Err(0x1000));
    }

    #[test]
    fn a_chain_ends_on_every_device() {
        for next in [0x1000, 0xffc, 4, 0x1002, 1 << 20, u32::MAX] {
            let mut device = Words::default().block(0, b"NACL", 1, 0x1000).block(0x1000, b"SOCK", 1 << 16, next);
            let found: Vec<_> = Chain::new(&mut device).collect();
            assert_eq!(found.len(), 2);
            assert_eq!(found[1], Err(ChainError::Next { address: 0x1000, next }));
        }
        let mut broken = Words::default().block(0, b"NACL", 1, 0x1000);
        let found: Vec<_> = Chain::new(&mut broken).collect();
        assert_eq!(found[1..], [Err(ChainError::Access { address: 0x1000, error: 0x1000 })]);
        let mut nothing = Words::default().block(0, &[0; 4], 0, 0);
        assert_eq!(Chain::new(&mut nothing).collect::<Vec<_>>(), [Err(ChainError::NoBlock { address: 0, kind: 0 })]);
    }
}
