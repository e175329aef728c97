// SPDX-License-Identifier: Apache-2.0
//! Ethernet II (IEEE 802.3). Frames are without preamble and FCS.

use crate::ParseError;
use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, network_endian::U16};

/// EtherType of IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ETHERTYPE_ARP: u16 = 0x0806;
/// Shortest frame, without FCS: shorter ones are padded by zeros at the end.
pub const MIN_FRAME: usize = 60;

/// A 48-bit Ethernet address.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(transparent)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// `ff:ff:ff:ff:ff:ff`.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Whether this addresses a group (broadcast included).
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl From<[u8; 6]> for MacAddr {
    fn from(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Ethernet header, 14 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct EthernetHeader {
    /// Destination.
    pub dst: MacAddr,
    /// Source.
    pub src: MacAddr,
    /// Protocol of the payload.
    pub ethertype: U16,
}

impl EthernetHeader {
    /// Length in bytes.
    pub const LEN: usize = size_of::<Self>();

    /// A header for `ethertype` from `src` to `dst`.
    pub const fn new(dst: MacAddr, src: MacAddr, ethertype: u16) -> Self {
        Self { dst, src, ethertype: U16::new(ethertype) }
    }

    /// The header at the start of a frame, and what follows it.
    pub fn parse(frame: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        Self::read_from_prefix(frame).map_err(|_| ParseError::Truncated)
    }
}
