// SPDX-License-Identifier: Apache-2.0
//! Admission of callers, by the registers of a device (docs/reference/admission.md).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use nacelle_wire::admission::Token;
use serde::Serialize;

use crate::Registers;
use crate::map::{Register, admission};

/// Entries that a device has.
pub const ENTRIES: u8 = 16;
/// Minor version of the block from which on there are networks of IPv6.
const KNOWS_IPV6: u32 = 1;
/// The registers of an address beyond its last 32 bits, and the place of each in it.
const UPPER_WORDS: [(&Register, u32); 3] =
    [(&admission::ADDRESS_1, 32), (&admission::ADDRESS_2, 64), (&admission::ADDRESS_3, 96)];
/// Time after which an entry whose connections do not end is left as it is.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// State of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryState {
    /// It says nothing.
    Free,
    /// It admits callers.
    Valid,
    /// It was revoked.
    Revoked,
    /// Its time is over.
    TimeOver,
}

impl EntryState {
    /// By its number in the register.
    #[must_use]
    pub const fn from_code(code: u32) -> Self {
        match code & 3 {
            0 => Self::Free,
            1 => Self::Valid,
            2 => Self::Revoked,
            _ => Self::TimeOver,
        }
    }

    /// Its number in the register.
    #[must_use]
    pub const fn code(self) -> u32 {
        self as u32
    }
}

impl fmt::Display for EntryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Free => "free",
            Self::Valid => "valid",
            Self::Revoked => "revoked",
            Self::TimeOver => "time over",
        })
    }
}

/// A new entry: whom it admits, to what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NewEntry {
    /// The token that its callers send; without one it is for callers that send none, from its network.
    pub token: Option<Token>,
    /// The network that its callers come from: an address, and the length of its prefix.
    pub network: Option<(IpAddr, u8)>,
    /// Connections at once; 0 for no limit.
    pub connections: u16,
    /// KiB of memory for all of them, in whole pages of 4; 0 for the device's bound of one address.
    pub memory_kib: u32,
    /// How long it is valid.
    pub time: Option<Duration>,
    /// What it is called.
    pub handle: u32,
}

/// An entry as the device shows it: all but its token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its number.
    pub number: u8,
    /// Its state.
    pub state: EntryState,
    /// What it is called.
    pub handle: u32,
    /// Where its callers come from.
    pub address: IpAddr,
    /// How many bits of this count; 0: they may come from everywhere.
    pub prefix: u8,
    /// Connections at once; 0: no limit.
    pub connections: u16,
    /// Connections that there are.
    pub used: u16,
    /// KiB of memory; 0: the device's bound of one address.
    pub memory_kib: u32,
    /// Seconds until its time is over.
    pub seconds_left: Option<u32>,
}

/// Why an entry was not made or ended.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError<E> {
    /// The registers cannot be accessed.
    #[error(transparent)]
    Access(E),
    /// The device has no admission.
    #[error("the device has no admission of callers")]
    None,
    /// All entries are taken.
    #[error("all {ENTRIES} entries are taken")]
    Full,
    /// An entry for nobody, for too long, or for a network that the device does not know.
    #[error("{0}")]
    Invalid(&'static str),
    /// There is no such entry, or it is free.
    #[error("there is no entry {0}")]
    NoEntry(u8),
    /// Its connections have not ended in time.
    #[error("entry {0} is revoked, but has connections yet")]
    InUse(u8),
}

/// The entries of a device, by any way to its registers.
pub struct Admission<'a, R> {
    registers: &'a mut R,
}

impl<'a, R: Registers> Admission<'a, R> {
    /// Those of this device.
    ///
    /// # Errors
    /// If it has none.
    pub fn new(registers: &'a mut R) -> Result<Self, AdmissionError<R::Error>> {
        let mut own = Self { registers };
        let kind = own.read(&admission::TYPE, 0)?;
        if kind.to_be_bytes() != admission::BLOCK.kind {
            return Err(AdmissionError::None);
        }
        Ok(own)
    }

    fn read(&mut self, register: &Register, entry: u8) -> Result<u32, AdmissionError<R::Error>> {
        self.registers.read(register.at(admission::BASE) + 4 * u32::from(entry)).map_err(AdmissionError::Access)
    }

    fn write(&mut self, register: &Register, entry: u8, value: u32) -> Result<(), AdmissionError<R::Error>> {
        self.registers.write(register.at(admission::BASE) + 4 * u32::from(entry), value).map_err(AdmissionError::Access)
    }

    /// The network of an entry: the registers for the upper words of its address say nothing for one of IPv4.
    fn network(&mut self, entry: u8) -> Result<(IpAddr, u8), AdmissionError<R::Error>> {
        let last = self.read(&admission::ADDRESS, entry)?;
        let prefix = self.read(&admission::PREFIX, entry)?;
        if admission::PREFIX_IPV6.of(prefix) == 0 {
            return Ok((Ipv4Addr::from_bits(last).into(), prefix as u8));
        }
        let mut address = u128::from(last);
        for (register, shift) in UPPER_WORDS {
            address |= u128::from(self.read(register, entry)?) << shift;
        }
        Ok((Ipv6Addr::from_bits(address).into(), prefix as u8))
    }

    fn set_network(&mut self, entry: u8, network: Option<(IpAddr, u8)>) -> Result<(), AdmissionError<R::Error>> {
        let (last, prefix) = match network {
            None => (0, 0),
            Some((IpAddr::V4(address), prefix)) => (address.to_bits(), u32::from(prefix)),
            Some((IpAddr::V6(address), prefix)) => {
                for (register, shift) in UPPER_WORDS {
                    self.write(register, entry, (address.to_bits() >> shift) as u32)?;
                }
                (address.to_bits() as u32, u32::from(prefix) | admission::PREFIX_IPV6.mask())
            }
        };
        self.write(&admission::ADDRESS, entry, last)?;
        self.write(&admission::PREFIX, entry, prefix)
    }

    fn state(&mut self, entry: u8) -> Result<EntryState, AdmissionError<R::Error>> {
        Ok(EntryState::from_code(self.read(&admission::STATE, entry)?))
    }

    /// Whether callers need an entry.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn is_on(&mut self) -> Result<bool, AdmissionError<R::Error>> {
        Ok(self.read(&admission::CTRL, 0)? & 1 != 0)
    }

    /// From now on callers need an entry, or do not. Connections that are there stay.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn turn(&mut self, on: bool) -> Result<(), AdmissionError<R::Error>> {
        self.write(&admission::CTRL, 0, on.into())
    }

    /// All entries that are not free.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn entries(&mut self) -> Result<Vec<Entry>, AdmissionError<R::Error>> {
        let now = self.read(&admission::SECONDS, 0)?;
        let mut entries = Vec::new();
        for number in 0..ENTRIES {
            let state = self.state(number)?;
            if state == EntryState::Free {
                continue;
            }
            let deadline = self.read(&admission::DEADLINE, number)?;
            let (address, prefix) = self.network(number)?;
            entries.push(Entry {
                number,
                state,
                handle: self.read(&admission::HANDLE, number)?,
                address,
                prefix,
                connections: self.read(&admission::CONNECTIONS, number)? as u16,
                used: self.read(&admission::USED, number)? as u16,
                memory_kib: self.read(&admission::MEMORY, number)?,
                seconds_left: (deadline != 0).then(|| (deadline.wrapping_sub(now) as i32).max(0) as u32),
            });
        }
        Ok(entries)
    }

    /// Makes an entry, and returns its number.
    ///
    /// # Errors
    /// If there is no room, or it is for nobody.
    pub fn add(&mut self, new: &NewEntry) -> Result<u8, AdmissionError<R::Error>> {
        if new.token.is_none() && new.network.is_none_or(|(_, prefix)| prefix == 0) {
            return Err(AdmissionError::Invalid("an entry needs a token, or a network whose prefix is not 0"));
        }
        let of_ipv6 = new.network.is_some_and(|(address, _)| address.is_ipv6());
        if of_ipv6 && self.read(&admission::VERSION, 0)? & 0xffff < KNOWS_IPV6 {
            return Err(AdmissionError::Invalid("this device has entries for networks of IPv4 alone"));
        }
        let seconds = new.time.map_or(0, |time| time.as_secs().max(1));
        if seconds >= 1 << 31 {
            return Err(AdmissionError::Invalid("an entry is valid for 68 years at most"));
        }
        let deadline = match seconds {
            0 => 0,
            // 0 stands for none: rather a second more.
            seconds => self.read(&admission::SECONDS, 0)?.wrapping_add(seconds as u32).max(1),
        };
        let tokens = [admission::TOKEN_0, admission::TOKEN_1, admission::TOKEN_2, admission::TOKEN_3];
        for number in 0..ENTRIES {
            if self.state(number)? != EntryState::Free {
                continue;
            }
            // All of them: what an entry has said before it was freed is still there.
            for (register, word) in tokens.iter().zip(new.token.map_or([0; 4], |token| token.words())) {
                self.write(register, number, word)?;
            }
            self.set_network(number, new.network)?;
            self.write(&admission::CONNECTIONS, number, new.connections.into())?;
            self.write(&admission::MEMORY, number, new.memory_kib & admission::MEMORY.mask)?;
            self.write(&admission::DEADLINE, number, deadline)?;
            self.write(&admission::HANDLE, number, new.handle)?;
            self.write(&admission::STATE, number, EntryState::Valid.code())?;
            return Ok(number);
        }
        Err(AdmissionError::Full)
    }

    /// Ends an entry: its callers are told, their connections closed, and nobody is admitted by it any more.
    ///
    /// # Errors
    /// If there is no such entry.
    pub fn revoke(&mut self, number: u8) -> Result<(), AdmissionError<R::Error>> {
        if number >= ENTRIES || self.state(number)? == EntryState::Free {
            return Err(AdmissionError::NoEntry(number));
        }
        self.write(&admission::STATE, number, EntryState::Revoked.code())
    }

    /// Ends an entry if it has not ended, waits until its callers' memory is free, and frees it.
    ///
    /// # Errors
    /// If there is no such entry, or its connections do not end.
    pub fn remove(&mut self, number: u8) -> Result<(), AdmissionError<R::Error>> {
        self.revoke(number)?;
        let until = Instant::now() + ENDS_WITHIN;
        loop {
            self.write(&admission::STATE, number, EntryState::Free.code())?;
            if self.state(number)? == EntryState::Free {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(AdmissionError::InUse(number));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}
