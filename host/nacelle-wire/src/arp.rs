// SPDX-License-Identifier: Apache-2.0
//! ARP for IPv4 over Ethernet (RFC 826), with the probes and announcements of RFC 5227.

use crate::{
    BuildError, MacAddr, ParseError,
    ethernet::{ETHERTYPE_ARP, EthernetHeader, MIN_FRAME},
};
use core::net::Ipv4Addr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, network_endian::U16};

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ArpBytes {
    eth: EthernetHeader,
    hardware_type: U16,
    protocol_type: U16,
    hardware_len: u8,
    protocol_len: u8,
    operation: U16,
    sender_mac: MacAddr,
    sender_ip: [u8; 4],
    target_mac: MacAddr,
    target_ip: [u8; 4],
}

/// What an ARP packet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Requests the MAC address of the target address.
    Request,
    /// The sender has the sender address.
    Reply,
}

/// One ARP frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpPacket {
    /// Ethernet destination.
    pub dst: MacAddr,
    /// Ethernet source.
    pub src: MacAddr,
    /// Request or reply.
    pub operation: Operation,
    /// Sender hardware address.
    pub sender_mac: MacAddr,
    /// Sender protocol address; 0.0.0.0 in a probe.
    pub sender_ip: Ipv4Addr,
    /// Target hardware address; zero in a request.
    pub target_mac: MacAddr,
    /// Target protocol address.
    pub target_ip: Ipv4Addr,
}

impl ArpPacket {
    /// Requests the MAC address of `ip`. With `sender_ip` 0.0.0.0 it is a probe, with `sender_ip == ip` an announcement.
    pub const fn request(mac: MacAddr, sender_ip: Ipv4Addr, ip: Ipv4Addr) -> Self {
        Self {
            dst: MacAddr::BROADCAST,
            src: mac,
            operation: Operation::Request,
            sender_mac: mac,
            sender_ip,
            target_mac: MacAddr([0; 6]),
            target_ip: ip,
        }
    }

    /// The answer to this request: `mac` has its target address.
    #[must_use]
    pub const fn reply(&self, mac: MacAddr) -> Self {
        Self {
            dst: self.sender_mac,
            src: mac,
            operation: Operation::Reply,
            sender_mac: mac,
            sender_ip: self.target_ip,
            target_mac: self.sender_mac,
            target_ip: self.sender_ip,
        }
    }

    /// Reads a frame, Ethernet header included.
    pub fn parse(frame: &[u8]) -> Result<Self, ParseError> {
        let (b, _) = ArpBytes::read_from_prefix(frame).map_err(|_| ParseError::Truncated)?;
        if b.eth.ethertype != ETHERTYPE_ARP {
            return Err(ParseError::EtherType);
        }
        if (b.hardware_type.get(), b.protocol_type.get(), b.hardware_len, b.protocol_len) != (1, 0x0800, 6, 4) {
            return Err(ParseError::Arp);
        }
        let operation = match b.operation.get() {
            1 => Operation::Request,
            2 => Operation::Reply,
            _ => return Err(ParseError::Arp),
        };
        Ok(Self {
            dst: b.eth.dst,
            src: b.eth.src,
            operation,
            sender_mac: b.sender_mac,
            sender_ip: b.sender_ip.into(),
            target_mac: b.target_mac,
            target_ip: b.target_ip.into(),
        })
    }

    /// Writes the frame, padded to the Ethernet minimum of 60 bytes, and returns its length.
    pub fn write(&self, buf: &mut [u8]) -> Result<usize, BuildError> {
        let out = buf.get_mut(..MIN_FRAME).ok_or(BuildError::BufferTooShort { needed: MIN_FRAME })?;
        out.fill(0);
        let bytes = ArpBytes {
            eth: EthernetHeader::new(self.dst, self.src, ETHERTYPE_ARP),
            hardware_type: U16::new(1),
            protocol_type: U16::new(0x0800),
            hardware_len: 6,
            protocol_len: 4,
            operation: U16::new(match self.operation {
                Operation::Request => 1,
                Operation::Reply => 2,
            }),
            sender_mac: self.sender_mac,
            sender_ip: self.sender_ip.octets(),
            target_mac: self.target_mac,
            target_ip: self.target_ip.octets(),
        };
        out[..size_of::<ArpBytes>()].copy_from_slice(bytes.as_bytes());
        Ok(MIN_FRAME)
    }
}
