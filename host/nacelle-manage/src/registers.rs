// SPDX-License-Identifier: Apache-2.0
//! Access to a device's registers.

use serde::{Deserialize, Serialize};

/// Reads of one register before a wait for it is given up.
pub(crate) const PATIENCE: u32 = 10_000;

/// A way to a device's registers.
pub trait Registers {
    /// Why an access failed.
    type Error;

    /// Reads one.
    ///
    /// # Errors
    /// If the device answers with an error, or not at all.
    fn read(&mut self, address: u32) -> Result<u32, Self::Error>;

    /// Writes one.
    ///
    /// # Errors
    /// As [`Registers::read`].
    fn write(&mut self, address: u32, value: u32) -> Result<(), Self::Error>;

    /// Reads several, in this order. A way that can carry many reads at a time does so.
    ///
    /// # Errors
    /// As [`Registers::read`].
    fn read_all(&mut self, addresses: &[u32]) -> Result<Vec<u32>, Self::Error> {
        addresses.iter().map(|address| self.read(*address)).collect()
    }

    /// Writes several, each an address and a value, in this order. A way that can carry many writes at a time does so.
    ///
    /// # Errors
    /// As [`Registers::read`]: those before the one that failed are done.
    fn write_all(&mut self, writes: &[(u32, u32)]) -> Result<(), Self::Error> {
        writes.iter().try_for_each(|(address, value)| self.write(*address, *value))
    }

    /// Does several of any kind, in this order, and gives what [`access`] does. A way that can carry many at a time does so.
    ///
    /// # Errors
    /// As [`Registers::read`]: those before the one that failed are done.
    fn access_all(&mut self, accesses: &[Access]) -> Result<Vec<u32>, Self::Error>
    where
        Self: Sized,
    {
        access(self, accesses)
    }
}

/// One access to a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Access {
    /// Reads one.
    Read {
        /// Its address.
        address: u32,
    },
    /// Writes one.
    Write {
        /// Its address.
        address: u32,
        /// What is written.
        value: u32,
    },
    /// Reads one until `mask` of it is `value`; all of a request together 10 000 times at most. Gives what was read last.
    Until {
        /// Its address.
        address: u32,
        /// The bits that are looked at.
        mask: u32,
        /// What they shall be.
        value: u32,
    },
}

/// Does `accesses` one after the other: [`Manage::registers`](crate::Manage::registers) for a device that has some.
///
/// # Errors
/// The first error of `registers`.
pub fn access<R: Registers>(registers: &mut R, accesses: &[Access]) -> Result<Vec<u32>, R::Error> {
    let mut values = Vec::new();
    let mut again = PATIENCE;
    for access in accesses {
        match *access {
            Access::Read { address } => values.push(registers.read(address)?),
            Access::Write { address, value } => registers.write(address, value)?,
            Access::Until { address, mask, value } => {
                let mut found = registers.read(address)?;
                while found & mask != value && again > 0 {
                    found = registers.read(address)?;
                    again -= 1;
                }
                values.push(found);
            }
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many accesses a request has, it ends soon.
    #[test]
    fn reads_that_wait_are_bounded_together() {
        struct Counting(u32);
        impl Registers for Counting {
            type Error = ();
            fn read(&mut self, _address: u32) -> Result<u32, ()> {
                self.0 += 1;
                Ok(0)
            }
            fn write(&mut self, _address: u32, _value: u32) -> Result<(), ()> {
                Ok(())
            }
        }
        let mut registers = Counting(0);
        let accesses = vec![Access::Until { address: 0, mask: 1, value: 1 }; 1000];
        assert_eq!(access(&mut registers, &accesses).unwrap().len(), 1000);
        assert_eq!(registers.0, 1000 + PATIENCE);
    }
}
