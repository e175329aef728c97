// SPDX-License-Identifier: Apache-2.0
//! ICMP echo (RFC 792).

use crate::{
    BuildError, MacAddr, ParseError,
    ethernet::{ETHERTYPE_IPV4, EthernetHeader, MIN_FRAME},
    ipv4::{Ipv4Header, PROTOCOL_ICMP, checksum},
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, network_endian::U16};

const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct IcmpBytes {
    kind: u8,
    code: u8,
    checksum: U16,
    identifier: U16,
    sequence: U16,
}

/// Echo request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Type 8.
    Request,
    /// Type 0.
    Reply,
}

/// One echo frame, Ethernet and IPv4 headers included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoPacket<'a> {
    /// Ethernet destination.
    pub dst: MacAddr,
    /// Ethernet source.
    pub src: MacAddr,
    /// IPv4 header; length and checksum are computed when written.
    pub ip: Ipv4Header,
    /// Request or reply.
    pub kind: Kind,
    /// Distinguishes senders of requests.
    pub identifier: u16,
    /// Distinguishes requests of a sender.
    pub sequence: u16,
    /// Comes back as it was sent.
    pub payload: &'a [u8],
}

impl<'a> EchoPacket<'a> {
    /// Bytes of a frame before the payload.
    pub const HEADER_LEN: usize = EthernetHeader::LEN + Ipv4Header::LEN + size_of::<IcmpBytes>();

    /// Reads a frame from its Ethernet header on.
    pub fn parse(frame: &'a [u8]) -> Result<Self, ParseError> {
        let (eth, datagram) = EthernetHeader::parse(frame)?;
        if eth.ethertype != ETHERTYPE_IPV4 {
            return Err(ParseError::EtherType);
        }
        let (ip, message) = Ipv4Header::parse(datagram)?;
        if ip.protocol != PROTOCOL_ICMP {
            return Err(ParseError::IpProtocol);
        }
        let (icmp, payload) = IcmpBytes::read_from_prefix(message).map_err(|_| ParseError::Truncated)?;
        if checksum(message) != 0 {
            return Err(ParseError::IcmpChecksum);
        }
        let kind = match (icmp.kind, icmp.code) {
            (ECHO_REQUEST, 0) => Kind::Request,
            (ECHO_REPLY, 0) => Kind::Reply,
            _ => return Err(ParseError::IcmpType),
        };
        Ok(Self {
            dst: eth.dst,
            src: eth.src,
            ip,
            kind,
            identifier: icmp.identifier.get(),
            sequence: icmp.sequence.get(),
            payload,
        })
    }

    /// Writes the frame and returns its length, at least 60 bytes.
    pub fn write(&self, buf: &mut [u8]) -> Result<usize, BuildError> {
        let message_len = size_of::<IcmpBytes>() + self.payload.len();
        if Ipv4Header::LEN + message_len > usize::from(u16::MAX) {
            return Err(BuildError::TooLong);
        }
        let used = Self::HEADER_LEN + self.payload.len();
        let needed = used.max(MIN_FRAME);
        let out = buf.get_mut(..needed).ok_or(BuildError::BufferTooShort { needed })?;
        let mut ip = self.ip;
        ip.finish(message_len);
        let icmp = IcmpBytes {
            kind: match self.kind {
                Kind::Request => ECHO_REQUEST,
                Kind::Reply => ECHO_REPLY,
            },
            code: 0,
            checksum: U16::ZERO,
            identifier: U16::new(self.identifier),
            sequence: U16::new(self.sequence),
        };
        let (eth_out, rest) = out.split_at_mut(EthernetHeader::LEN);
        eth_out.copy_from_slice(EthernetHeader::new(self.dst, self.src, ETHERTYPE_IPV4).as_bytes());
        let (ip_out, rest) = rest.split_at_mut(Ipv4Header::LEN);
        ip_out.copy_from_slice(ip.as_bytes());
        let (message, pad) = rest.split_at_mut(message_len);
        message[..size_of::<IcmpBytes>()].copy_from_slice(icmp.as_bytes());
        message[size_of::<IcmpBytes>()..].copy_from_slice(self.payload);
        let sum = checksum(message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        pad.fill(0);
        Ok(needed)
    }
}
