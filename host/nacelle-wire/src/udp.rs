// SPDX-License-Identifier: Apache-2.0
//! UDP (RFC 768), as RoCEv2 uses it: sent with checksum 0, which is none.

use crate::{
    ParseError,
    ipv4::{Ipv4Header, PROTOCOL_UDP, checksum},
};
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
    /// 0, for none, in RoCEv2, whose ICRC protects the payload. Any other must be right (RFC 1122, 4.1.3.4).
    pub checksum: U16,
}

impl UdpHeader {
    /// Length in bytes.
    pub const LEN: usize = size_of::<Self>();

    /// A RoCEv2 header; the length is filled in when the packet is written.
    pub const fn roce(src_port: u16) -> Self {
        Self { src_port: U16::new(src_port), dst_port: U16::new(ROCE_PORT), length: U16::ZERO, checksum: U16::ZERO }
    }

    /// Reads the header of what the IPv4 packet `ip` carries and returns it with its payload. The two lengths must agree,
    /// and the checksum, if there is one, must be right.
    pub fn parse<'a>(ip: &Ipv4Header, datagram: &'a [u8]) -> Result<(Self, &'a [u8]), ParseError> {
        let (header, payload) = Self::read_from_prefix(datagram).map_err(|_| ParseError::Truncated)?;
        if usize::from(header.length.get()) != datagram.len() {
            return Err(ParseError::UdpLength);
        }
        if header.checksum != U16::ZERO && residue(ip, datagram) != 0 {
            return Err(ParseError::UdpChecksum);
        }
        Ok((header, payload))
    }
}

/// The checksum of a datagram that contains one, with the pseudo header of RFC 768: 0 if it is right.
fn residue(ip: &Ipv4Header, datagram: &[u8]) -> u16 {
    let [a, b, c, d] = ip.src().octets();
    let [e, f, g, h] = ip.dst().octets();
    let [high, low] = (datagram.len() as u16).to_be_bytes();
    let pseudo = [a, b, c, d, e, f, g, h, 0, PROTOCOL_UDP, high, low];
    let sum = u32::from(!checksum(&pseudo)) + u32::from(!checksum(datagram));
    !((sum & 0xffff) + (sum >> 16)) as u16
}
