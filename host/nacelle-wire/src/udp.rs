// SPDX-License-Identifier: Apache-2.0
//! UDP (RFC 768), as RoCEv2 uses it: checksum 0.

use crate::ParseError;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, network_endian::U16};

/// Destination port of RoCEv2 (IANA; RoCEv2 annex A17.3.1).
pub const ROCE_PORT: u16 = 4791;

/// UDP header, 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct UdpHeader {
    /// Source port: entropy for equal-cost paths, any value is accepted.
    pub src_port: U16,
    /// Destination port.
    pub dst_port: U16,
    /// Header and payload in bytes.
    pub length: U16,
    /// 0 in RoCEv2, whose ICRC protects the payload. Not checked on receipt.
    pub checksum: U16,
}

impl UdpHeader {
    /// Length in bytes.
    pub const LEN: usize = size_of::<Self>();

    /// A RoCEv2 header; the length is filled in when the packet is written.
    pub const fn roce(src_port: u16) -> Self {
        Self { src_port: U16::new(src_port), dst_port: U16::new(ROCE_PORT), length: U16::ZERO, checksum: U16::ZERO }
    }

    /// Reads the header of what IPv4 carries and returns it with its payload; the two lengths must agree.
    pub fn parse(datagram: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (header, payload) = Self::read_from_prefix(datagram).map_err(|_| ParseError::Truncated)?;
        if usize::from(header.length.get()) != datagram.len() {
            return Err(ParseError::UdpLength);
        }
        Ok((header, payload))
    }
}
