// SPDX-License-Identifier: Apache-2.0
//! Numbers that must not be mixed.

use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An unsigned 24-bit field in network order.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(transparent)]
pub struct U24([u8; 3]);

impl U24 {
    /// The low 24 bits of `value`.
    pub const fn new(value: u32) -> Self {
        let [_, a, b, c] = value.to_be_bytes();
        Self([a, b, c])
    }

    /// The value, below 2^24.
    pub const fn get(self) -> u32 {
        let [a, b, c] = self.0;
        u32::from_be_bytes([0, a, b, c])
    }
}

impl fmt::Debug for U24 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}", self.get())
    }
}

/// Packet sequence number. All arithmetic is modulo 2^24 and lives here (IBTA 9.7.2).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

impl Psn {
    const MASK: u32 = 0xff_ffff;

    /// The low 24 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & Self::MASK)
    }

    /// The value, below 2^24.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The PSN `n` packets later.
    #[must_use]
    pub const fn add(self, n: u32) -> Self {
        Self::new(self.0.wrapping_add(n))
    }

    /// The PSN `n` packets earlier.
    #[must_use]
    pub const fn sub(self, n: u32) -> Self {
        Self::new(self.0.wrapping_sub(n))
    }

    /// Packets from `earlier` to `self`, assuming that `self` is not before it: 0 to 2^24 - 1.
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0) & Self::MASK
    }

    /// Signed distance from `other` to `self` on the shorter way round: negative if `self` comes before.
    /// The half exactly opposite counts as before (IBTA 9.7.2: duplicates are the 2^23 PSNs behind the expected one).
    pub const fn distance(self, other: Self) -> i32 {
        ((self.0.wrapping_sub(other.0) << 8) as i32) >> 8
    }

    /// Whether `self` lies in the half-open window `[start, end)`.
    pub const fn in_window(self, start: Self, end: Self) -> bool {
        self.since(start) < end.since(start)
    }
}

impl fmt::Debug for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Psn({:#08x})", self.0)
    }
}

impl From<U24> for Psn {
    fn from(field: U24) -> Self {
        Self(field.get())
    }
}

impl From<Psn> for U24 {
    fn from(psn: Psn) -> Self {
        U24::new(psn.0)
    }
}

/// Queue pair number, 24 bits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Qpn(u32);

impl Qpn {
    /// The general service interface, where connection management lives.
    pub const GSI: Self = Self(1);

    /// The low 24 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & 0xff_ffff)
    }

    /// The value, below 2^24.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Qpn({:#08x})", self.0)
    }
}

impl From<U24> for Qpn {
    fn from(field: U24) -> Self {
        Self(field.get())
    }
}

impl From<Qpn> for U24 {
    fn from(qpn: Qpn) -> Self {
        U24::new(qpn.0)
    }
}

/// Remote key: the 32-bit secret that lets a peer reach a memory region.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Rkey(pub u32);

impl fmt::Debug for Rkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rkey({:#010x})", self.0)
    }
}

/// Virtual address in a peer's memory.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RemoteAddr(pub u64);

impl RemoteAddr {
    /// The address `offset` bytes further on, or `None` past the end of the address space.
    pub const fn checked_add(self, offset: u64) -> Option<Self> {
        match self.0.checked_add(offset) {
            Some(a) => Some(Self(a)),
            None => None,
        }
    }
}

impl fmt::Debug for RemoteAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteAddr({:#x})", self.0)
    }
}

/// Explicit congestion notification, the low two bits of IPv4's type of service and of IPv6's traffic class (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not take part: a congested switch drops.
    NotEct = 0,
    /// The sender takes part; code point 1.
    Ect1 = 1,
    /// The sender takes part; code point 0, the one that RoCEv2 uses.
    Ect0 = 2,
    /// Congestion experienced: marked by a switch.
    Ce = 3,
}

impl Ecn {
    /// From the low two bits of a type of service or traffic class.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}
