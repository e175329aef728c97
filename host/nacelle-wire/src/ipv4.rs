// SPDX-License-Identifier: Apache-2.0
//! IPv4 without options or fragments (RFC 791).

use crate::{Ecn, ParseError};
use core::net::Ipv4Addr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, network_endian::U16};

/// Protocol number of ICMP.
pub const PROTOCOL_ICMP: u8 = 1;
/// Protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_OR_OFFSET: u16 = 0x3fff;

/// IPv4 header without options, 20 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv4Header {
    /// Version (4) and header length in words (5).
    pub version_ihl: u8,
    /// Type of service: DSCP (6 bits), ECN (2 bits).
    pub tos: u8,
    /// Length of header and payload in bytes.
    pub total_length: U16,
    /// Identification; Linux counts it up for RoCE packets.
    pub identification: U16,
    /// Flags (bit 14: don't fragment) and fragment offset.
    pub flags_fragment: U16,
    /// Hops left.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Ones' complement checksum over this header.
    pub checksum: U16,
    src: [u8; 4],
    dst: [u8; 4],
}

impl Ipv4Header {
    /// Length in bytes.
    pub const LEN: usize = size_of::<Self>();

    /// A header with TTL 64 and don't fragment set. Length and checksum are filled in by [`Self::finish`].
    pub const fn new(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8) -> Self {
        Self {
            version_ihl: 0x45,
            tos: 0,
            total_length: U16::ZERO,
            identification: U16::ZERO,
            flags_fragment: U16::new(DONT_FRAGMENT),
            ttl: 64,
            protocol,
            checksum: U16::ZERO,
            src: src.octets(),
            dst: dst.octets(),
        }
    }

    /// Explicit congestion notification.
    pub const fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.tos)
    }

    /// The same with these ECN bits.
    #[must_use]
    pub const fn with_ecn(mut self, ecn: Ecn) -> Self {
        self.tos = self.tos & !3 | ecn as u8;
        self
    }

    /// Source address.
    pub const fn src(&self) -> Ipv4Addr {
        Ipv4Addr::from_octets(self.src)
    }

    /// Destination address.
    pub const fn dst(&self) -> Ipv4Addr {
        Ipv4Addr::from_octets(self.dst)
    }

    /// Sets the length for a payload of `payload_len` bytes, then the checksum. The sum must fit in 16 bits.
    pub fn finish(&mut self, payload_len: usize) {
        self.total_length = U16::new((Self::LEN + payload_len) as u16);
        self.checksum = U16::ZERO;
        self.checksum = U16::new(checksum(self.as_bytes()));
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        zerocopy::transmute!(*self)
    }

    /// Reads the header of a datagram and returns it with its payload; bytes behind the total length (Ethernet
    /// padding) are left out. Checks version, lengths, checksum, and that it is not a fragment.
    pub fn parse(datagram: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (header, _) = Self::read_from_prefix(datagram).map_err(|_| ParseError::Truncated)?;
        if header.version_ihl >> 4 != 4 {
            return Err(ParseError::IpVersion);
        }
        if header.version_ihl & 15 != 5 {
            return Err(ParseError::IpOptions);
        }
        let payload = datagram.get(Self::LEN..usize::from(header.total_length.get())).ok_or(ParseError::IpLength)?;
        if checksum(header.as_bytes()) != 0 {
            return Err(ParseError::IpChecksum);
        }
        if header.flags_fragment.get() & MORE_OR_OFFSET != 0 {
            return Err(ParseError::IpFragment);
        }
        Ok((header, payload))
    }
}

/// Internet checksum of `bytes` (RFC 1071). Over data that contains its own right checksum it is 0.
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut words = bytes.chunks_exact(2);
    let mut sum: u64 = words.by_ref().map(|w| u64::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    if let [last] = words.remainder() {
        sum += u64::from(*last) << 8;
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
