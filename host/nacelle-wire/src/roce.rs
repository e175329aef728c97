// SPDX-License-Identifier: Apache-2.0
//! A whole RoCEv2 packet over IPv4 and Ethernet, read and written in one go.

use crate::{
    BuildError, Ecn, MacAddr, ParseError, Qpn,
    bth::{AtomicEth, Bth, Opcode},
    ethernet::{ETHERTYPE_IPV4, EthernetHeader},
    icrc,
    ipv4::{Ipv4Header, PROTOCOL_UDP},
    transport::{Ext, Headers, Packet},
    udp::{ROCE_PORT, UdpHeader},
};
use core::net::Ipv4Addr;
use zerocopy::IntoBytes;

/// Bytes of the headers that carry a transport packet: Ethernet, IPv4, UDP.
pub const LOWER_LEN: usize = EthernetHeader::LEN + Ipv4Header::LEN + UdpHeader::LEN;

/// Bytes of the headers that every packet has, Ethernet to BTH.
pub const BASE_LEN: usize = LOWER_LEN + Bth::LEN;

/// Longest frame for a path MTU of 4096 bytes: base headers, AtomicETH, payload, ICRC.
pub const MAX_FRAME: usize = BASE_LEN + size_of::<AtomicEth>() + 4096 + icrc::LEN;

/// What is the same for every packet of a connection: the two ends, and the source port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    eth: EthernetHeader,
    ip: Ipv4Header,
    udp: UdpHeader,
}

impl Flow {
    /// Packets from `src` to `dst`, with TTL 64, don't fragment, type of service 0.
    pub const fn new(src_mac: MacAddr, dst_mac: MacAddr, src_ip: Ipv4Addr, dst_ip: Ipv4Addr, src_port: u16) -> Self {
        Self {
            eth: EthernetHeader::new(dst_mac, src_mac, ETHERTYPE_IPV4),
            ip: Ipv4Header::new(src_ip, dst_ip, PROTOCOL_UDP),
            udp: UdpHeader::roce(src_port),
        }
    }

    /// The same with these ECN bits in every packet: [`Ecn::Ect0`] lets switches mark instead of drop.
    #[must_use]
    pub const fn with_ecn(mut self, ecn: Ecn) -> Self {
        self.ip = self.ip.with_ecn(ecn);
        self
    }
}

/// Makes a frame of a transport packet that lies in `frame` behind [`LOWER_LEN`] bytes and fills it: writes the headers before
/// it, with lengths and IPv4 checksum, and the ICRC at its end.
///
/// Errors: a packet that is too short for one, or longer than 64 KiB.
pub fn seal(eth: EthernetHeader, mut ip: Ipv4Header, mut udp: UdpHeader, frame: &mut [u8]) -> Result<(), BuildError> {
    let needed = BASE_LEN + icrc::LEN;
    if frame.len() < needed {
        return Err(BuildError::BufferTooShort { needed });
    }
    let udp_len = frame.len() - EthernetHeader::LEN - Ipv4Header::LEN;
    if Ipv4Header::LEN + udp_len > usize::from(u16::MAX) {
        return Err(BuildError::TooLong);
    }
    ip.finish(udp_len);
    udp.length.set(udp_len as u16);
    let (head, packet) = frame.split_at_mut(LOWER_LEN);
    let (eth_out, rest) = head.split_at_mut(EthernetHeader::LEN);
    let (ip_out, udp_out) = rest.split_at_mut(Ipv4Header::LEN);
    eth_out.copy_from_slice(eth.as_bytes());
    ip_out.copy_from_slice(ip.as_bytes());
    udp_out.copy_from_slice(udp.as_bytes());
    let (transport, crc) = packet.split_at_mut(packet.len() - icrc::LEN);
    crc.copy_from_slice(&icrc::over_ipv4(&ip, &udp, transport));
    Ok(())
}

/// All headers of a packet. Lengths, checksum and pad count are computed when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoceHeaders {
    /// Ethernet header.
    pub eth: EthernetHeader,
    /// IPv4 header.
    pub ip: Ipv4Header,
    /// UDP header.
    pub udp: UdpHeader,
    /// Base transport header.
    pub bth: Bth,
    /// Extension headers.
    pub ext: Ext,
}

impl RoceHeaders {
    /// The headers of one packet of `flow`.
    pub const fn new(flow: &Flow, bth: Bth, ext: Ext) -> Self {
        Self { eth: flow.eth, ip: flow.ip, udp: flow.udp, bth, ext }
    }

    /// A congestion notification packet of `flow`; see [`Headers::cnp`].
    pub fn cnp(flow: &Flow, dest_qp: Qpn) -> Self {
        let Headers { bth, ext } = Headers::cnp(dest_qp);
        Self::new(flow, bth, ext)
    }

    /// Writes the frame with its payload, padding, IPv4 checksum and ICRC, and returns its length.
    ///
    /// Errors: a short buffer, extension headers that are not those of the opcode, a payload beyond 64 KiB.
    pub fn write(&self, payload: &[u8], buf: &mut [u8]) -> Result<usize, BuildError> {
        let headers = Headers::new(self.bth, self.ext);
        let needed = LOWER_LEN + headers.packet_len(payload.len());
        let frame = buf.get_mut(..needed).ok_or(BuildError::BufferTooShort { needed })?;
        let (place, _) = headers.write(payload.len(), &mut frame[LOWER_LEN..])?;
        place.copy_from_slice(payload);
        seal(self.eth, self.ip, self.udp, frame)?;
        Ok(needed)
    }
}

/// A packet that passed every check from Ethernet to ICRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RocePacket<'a> {
    /// Its headers.
    pub headers: RoceHeaders,
    /// Its operation.
    pub opcode: Opcode,
    /// Its payload, without padding.
    pub payload: &'a [u8],
}

impl<'a> RocePacket<'a> {
    /// Reads a frame from its Ethernet header on. The addresses are not compared with anything.
    pub fn parse(frame: &'a [u8]) -> Result<Self, ParseError> {
        let (eth, datagram) = EthernetHeader::parse(frame)?;
        if eth.ethertype != ETHERTYPE_IPV4 {
            return Err(ParseError::EtherType);
        }
        let (ip, segment) = Ipv4Header::parse(datagram)?;
        if ip.protocol != PROTOCOL_UDP {
            return Err(ParseError::IpProtocol);
        }
        let (udp, datagram) = UdpHeader::parse(&ip, segment)?;
        if udp.dst_port != ROCE_PORT {
            return Err(ParseError::UdpPort);
        }
        icrc::check_ipv4(&ip, &udp, datagram)?;
        let Packet { headers: Headers { bth, ext }, opcode, payload } = Packet::parse(datagram)?;
        Ok(Self { headers: RoceHeaders { eth, ip, udp, bth, ext }, opcode, payload })
    }

    /// Writes it back; the result equals the frame that was parsed, up to Ethernet padding, UDP checksum and
    /// contents of the padding.
    pub fn write(&self, buf: &mut [u8]) -> Result<usize, BuildError> {
        self.headers.write(self.payload, buf)
    }
}
