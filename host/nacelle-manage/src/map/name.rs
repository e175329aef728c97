// SPDX-License-Identifier: Apache-2.0
//! Registers by the names that people give.

use super::{Field, Found, Register};
use crate::Registers;

/// Why a name is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The device has no such block.
    #[error("the device has no block {block}; it has {known}")]
    Block {
        /// What was asked for.
        block: String,
        /// What there is.
        known: String,
    },
    /// The block has no such register.
    #[error("the block {block} has no register {register}")]
    Register {
        /// The block.
        block: String,
        /// What was asked for.
        register: String,
    },
    /// The array has no such word.
    #[error("{register} is {words}; name one of them, as in {register}[0]")]
    Index {
        /// The register.
        register: String,
        /// How many it has.
        words: String,
    },
    /// The register has no such field.
    #[error("the register {register} has no field {field}")]
    Field {
        /// The register.
        register: String,
        /// What was asked for.
        field: String,
    },
    /// It is none.
    #[error("{name} is no register: name it as REGISTER, BLOCK.REGISTER or BLOCK.REGISTER.FIELD, or by its address")]
    Form {
        /// What was given.
        name: String,
    },
}

/// A word of a device's registers, or a field of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Its address.
    pub address: u32,
    /// The register; `None` if it was named by its address.
    pub register: Option<Register>,
    /// The field, if one is meant.
    pub field: Option<Field>,
}

impl NameError {
    /// The device has no block of this name.
    #[must_use]
    pub fn block(blocks: &[Found], block: &str) -> Self {
        let known: Vec<String> = blocks.iter().filter_map(|found| found.name(blocks)).collect();
        Self::Block { block: block.to_owned(), known: known.join(", ") }
    }
}

impl Found {
    /// Its name among all blocks of its device: `device`, or with a number if there are several, `socket0`. `None` if it is not known.
    #[must_use]
    pub fn name(&self, all: &[Found]) -> Option<String> {
        let name = self.block?.name;
        let several = all.iter().filter(|other| other.kind == self.kind).count() > 1;
        Some(if several { format!("{name}{}", self.number) } else { name.to_owned() })
    }

    /// Whether a person means it by this name: its own, or one with its number although it is the only one.
    #[must_use]
    pub fn is_called(&self, all: &[Found], name: &str) -> bool {
        let Some(block) = self.block else { return false };
        name.eq_ignore_ascii_case(&format!("{}{}", block.name, self.number))
            || self.name(all).is_some_and(|own| name.eq_ignore_ascii_case(&own))
    }

    /// Every word of it that has a name, in the order of addresses.
    pub fn targets(&self) -> impl Iterator<Item = (String, Target)> {
        let base = self.address;
        let registers = self.block.map_or(&[][..], |block| block.registers);
        registers.iter().flat_map(move |register| {
            (0..register.count.unwrap_or(1)).map(move |index| {
                let name =
                    if register.count.is_some() { format!("{}[{index}]", register.name) } else { register.name.into() };
                (name, Target { address: register.word(base, index), register: Some(*register), field: None })
            })
        })
    }
}

impl Target {
    /// Finds what `name` means among the blocks of a device: `[BLOCK.]REGISTER[.FIELD]`, or an address as in `0x38`. Without a block
    /// it is the device's own. Capital and small letters are the same.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(blocks: &[Found], name: &str) -> Result<Self, NameError> {
        let form = || NameError::Form { name: name.to_owned() };
        if let Some(digits) = name.strip_prefix("0x") {
            let address = u32::from_str_radix(digits, 16).ok().filter(|address| address % 4 == 0);
            return Ok(Self { address: address.ok_or_else(form)?, register: None, field: None });
        }
        let parts: Vec<&str> = name.split('.').collect();
        let block = blocks.iter().find(|found| found.is_called(blocks, parts[0]));
        let (found, rest) = match block {
            Some(block) if parts.len() > 1 => (block, &parts[1..]),
            _ if parts.len() > 2 => return Err(NameError::block(blocks, parts[0])),
            _ => (blocks.first().ok_or_else(|| NameError::block(blocks, "device"))?, &parts[..]),
        };
        let own = found.name(blocks).ok_or_else(|| NameError::block(blocks, "device"))?;
        let registers = found.block.map_or(&[][..], |block| block.registers);
        let (stem, index) = match rest[0].split_once('[') {
            None => (rest[0], None),
            Some((stem, index)) => {
                let index = index.strip_suffix(']').and_then(|index| index.parse::<u32>().ok());
                (stem, Some(index.ok_or_else(form)?))
            }
        };
        let Some(register) = registers.iter().find(|register| register.name.eq_ignore_ascii_case(stem)) else {
            // What comes first may have been meant as a block.
            if block.is_none() && parts.len() == 2 {
                return Err(NameError::block(blocks, parts[0]));
            }
            return Err(NameError::Register { block: own, register: stem.to_owned() });
        };
        let index = match (register.count, index) {
            (None, None) => 0,
            (Some(count), Some(index)) if index < count => index,
            (count, _) => {
                let words = count.map_or("one word".to_owned(), |count| format!("{count} words"));
                return Err(NameError::Index { register: register.name.to_owned(), words });
            }
        };
        let field = match rest.get(1) {
            None => None,
            Some(field) => {
                Some(*register.fields.iter().find(|known| known.name.eq_ignore_ascii_case(field)).ok_or_else(|| {
                    NameError::Field { register: register.name.to_owned(), field: (*field).to_owned() }
                })?)
            }
        };
        Ok(Self { address: register.word(found.address, index), register: Some(*register), field })
    }

    /// It can be read; of an address nothing is known.
    #[must_use]
    pub fn readable(&self) -> bool {
        self.register.is_none_or(|register| register.readable())
    }

    /// It can be written; of an address nothing is known. A field needs to be read, too.
    #[must_use]
    pub fn writable(&self) -> bool {
        self.register.is_none_or(|register| register.writable() && (self.field.is_none() || register.readable()))
    }

    /// The bits that are meant.
    #[must_use]
    pub fn mask(&self) -> u32 {
        let register = self.register.map_or(u32::MAX, |register| register.mask);
        self.field.map_or(register, |field| field.mask())
    }

    /// The largest value.
    #[must_use]
    pub fn max(&self) -> u32 {
        self.field.map_or(self.mask(), |field| field.mask() >> field.low)
    }

    /// Reads it.
    ///
    /// # Errors
    /// Those of the registers.
    pub fn read<R: Registers>(&self, registers: &mut R) -> Result<u32, R::Error> {
        let word = registers.read(self.address)?;
        Ok(self.field.map_or(word, |field| field.of(word)))
    }

    /// Writes it; of a field the other bits stay.
    ///
    /// # Errors
    /// Those of the registers.
    pub fn write<R: Registers>(&self, registers: &mut R, value: u32) -> Result<(), R::Error> {
        let word = match self.field {
            None => value,
            Some(field) => field.put(registers.read(self.address)?, value),
        };
        registers.write(self.address, word)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chain;
    use super::super::chain::tests::Words;
    use super::*;

    fn device() -> (Words, Vec<Found>) {
        let mut device = Words::default()
            .block(0, b"NACL", 1, 0x1000)
            .block(0x1000, b"MGMT", 1 << 16, 0x10000)
            .block(0x10000, b"SOCK", 1 << 16, 0x10100)
            .block(0x10100, b"????", 1 << 16, 0x11000)
            .block(0x11000, b"SOCK", 1 << 16, 0);
        let found = Chain::new(&mut device).map(Result::unwrap).collect();
        (device, found)
    }

    #[test]
    fn names_lead_to_registers() {
        let (_, blocks) = device();
        let names: Vec<_> = blocks.iter().map(|found| found.name(&blocks)).collect();
        let text = |name: &str| Some(name.to_owned());
        assert_eq!(names, [text("device"), text("management"), text("socket0"), None, text("socket1")]);
        let at = |name: &str| Target::find(&blocks, name).unwrap().address;
        assert_eq!((at("MAC_LO"), at("mac_lo"), at("device.MAC_LO"), at("device0.mac_lo")), (0x20, 0x20, 0x20, 0x20));
        assert_eq!((at("CTRL.enable"), at("device.CTRL.ENABLE")), (0x38, 0x38));
        assert_eq!((at("packet_rx_frame"), at("0x11044")), (0x400, 0x11044));
        assert_eq!(
            (at("management.ARGUMENT[19]"), at("socket1.JOBS"), at("socket0.NAME[3]")),
            (0x114c, 0x11044, 0x1001c)
        );
        assert_eq!(Target::find(&blocks, "management.STATUS.error").unwrap().mask(), 0xff00);
        assert_eq!(Target::find(&blocks, "KEEPALIVE_MS").unwrap().max(), 0xff_ffff);
        assert_eq!(Target::find(&blocks, "management.STATUS.error").unwrap().max(), 0xff);
    }

    #[test]
    fn what_is_no_name_is_refused_with_what_there_is() {
        let (_, blocks) = device();
        let refused = |name: &str| Target::find(&blocks, name).unwrap_err().to_string();
        assert_eq!(
            refused("socket.JOBS"),
            "the device has no block socket; it has device, management, socket0, socket1"
        );
        assert!(refused("socket2.JOBS").starts_with("the device has no block socket2"));
        assert!(refused("traffic.CONTROL.start").starts_with("the device has no block traffic"));
        assert_eq!(refused("JOBS"), "the block device has no register JOBS");
        assert_eq!(refused("socket1.MAC_LO"), "the block socket1 has no register MAC_LO");
        assert_eq!(refused("CTRL.disable"), "the register CTRL has no field disable");
        assert_eq!(refused("management.RESULT"), "RESULT is 23 words; name one of them, as in RESULT[0]");
        assert_eq!(refused("management.RESULT[23]"), "RESULT is 23 words; name one of them, as in RESULT[0]");
        assert_eq!(refused("MAC_LO[0]"), "MAC_LO is one word; name one of them, as in MAC_LO[0]");
        for name in
            ["", ".", "a.b.c.d", "0x3", "0xg", "management.RESULT[x]", "management.RESULT[1", "[", "0x100000000"]
        {
            assert!(!refused(name).is_empty());
        }
    }

    #[test]
    fn a_field_is_written_and_the_rest_stays() {
        let (mut words, blocks) = device();
        words.0.insert(0x38, 0xabcd_ef00);
        let target = Target::find(&blocks, "CTRL.enable").unwrap();
        target.write(&mut words, 1).unwrap();
        assert_eq!((words.0[&0x38], target.read(&mut words)), (0xabcd_ef01, Ok(1)));
        let whole = Target::find(&blocks, "CTRL").unwrap();
        whole.write(&mut words, 0).unwrap();
        assert_eq!(whole.read(&mut words), Ok(0));
    }
}
