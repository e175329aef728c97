// SPDX-License-Identifier: Apache-2.0
//! The registers of a device by name, and how its blocks are found.
//!
//! [`BLOCKS`] and its modules are made from the descriptions of the registers (`rtl/**/*.rdl`), so what the RTL has is here:
//! `device::CTRL.offset`, `management::STATUS.at(management::BASE)`. [`Chain`] finds the blocks of a device that is not known, and
//! [`Target::find`] a register in them by the name that a person gives.

#[rustfmt::skip]
mod blocks;
mod chain;
mod name;

pub use blocks::*;
pub use chain::{Chain, ChainError, Found};
pub use name::{NameError, Target};

/// A register block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its name.
    pub name: &'static str,
    /// Its TYPE: four ASCII characters.
    pub kind: [u8; 4],
    /// Its VERSION: major in the upper 16 bits, minor in the lower.
    pub version: u32,
    /// Its registers, by offset.
    pub registers: &'static [Register],
}

/// A register, or an array of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register {
    /// Its name in its block.
    pub name: &'static str,
    /// Bytes from the begin of its block.
    pub offset: u32,
    /// How many words the array has; `None` if it is none.
    pub count: Option<u32>,
    /// What can be done to it.
    pub mode: Mode,
    /// The bits that it has.
    pub mask: u32,
    /// It counts events.
    pub counter: bool,
    /// Who on the network may read it, if it can be read.
    pub reader: Who,
    /// Who on the network may write it, if it can be written.
    pub writer: Who,
    /// Its fields, if they have names.
    pub fields: &'static [Field],
    /// What it is.
    pub doc: &'static str,
}

/// Who on the network may access a register (docs/reference/ipbus.md). The local bus may always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Everybody.
    Anybody,
    /// Clients that have logged in.
    Authorised,
    /// Nobody.
    Nobody,
}

/// What can be done to a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is only read.
    Read,
    /// It is only written.
    Write,
    /// Both.
    ReadWrite,
}

/// Bits of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its name in its register.
    pub name: &'static str,
    /// Number of its lowest bit.
    pub low: u32,
    /// How many bits.
    pub width: u32,
    /// What it is.
    pub doc: &'static str,
}

impl Register {
    /// Its address in the block that begins at `base`.
    #[must_use]
    pub const fn at(&self, base: u32) -> u32 {
        base + self.offset
    }

    /// The address of word `index` of an array in the block that begins at `base`.
    #[must_use]
    pub const fn word(&self, base: u32, index: u32) -> u32 {
        self.at(base) + 4 * index
    }

    /// It can be read.
    #[must_use]
    pub const fn readable(&self) -> bool {
        !matches!(self.mode, Mode::Write)
    }

    /// It can be written.
    #[must_use]
    pub const fn writable(&self) -> bool {
        !matches!(self.mode, Mode::Read)
    }
}

impl Field {
    /// Its bits.
    #[must_use]
    pub const fn mask(&self) -> u32 {
        (u32::MAX >> (32 - self.width)) << self.low
    }

    /// Its value in a register.
    #[must_use]
    pub const fn of(&self, register: u32) -> u32 {
        (register & self.mask()) >> self.low
    }

    /// The register with this value in the field.
    #[must_use]
    pub const fn put(&self, register: u32, value: u32) -> u32 {
        register & !self.mask() | value << self.low & self.mask()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_cut_out_and_put_in() {
        let field = management::STATUS_ERROR;
        assert_eq!((field.mask(), field.of(0x1234_5678)), (0xff00, 0x56));
        assert_eq!(field.put(0x1234_5678, 0x9a), 0x1234_9a78);
        assert_eq!(field.put(0, 0x1ff), 0xff00, "nothing of a value that is too large is put beside it");
        let whole = Field { name: "value", low: 0, width: 32, doc: "" };
        assert_eq!((whole.mask(), whole.of(u32::MAX), whole.put(0, 7)), (u32::MAX, u32::MAX, 7));
    }

    /// What the generator promises.
    #[test]
    fn every_block_begins_with_the_words_of_the_chain() {
        for block in BLOCKS {
            let header: Vec<_> = block.registers[..3].iter().map(|register| (register.name, register.offset)).collect();
            assert_eq!(header, [("TYPE", 0), ("VERSION", 4), ("NEXT", 8)], "{}", block.name);
            let mut end = 0;
            for register in block.registers {
                assert!(register.offset >= end && register.offset % 4 == 0, "{}.{}", block.name, register.name);
                end = register.word(0, register.count.unwrap_or(1));
            }
        }
    }
}
