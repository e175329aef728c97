// SPDX-License-Identifier: Apache-2.0
//! A whole RoCEv2 packet over IPv4 and Ethernet, read and written in one go.

use crate::{
    BuildError, MacAddr, ParseError, Psn, Qpn,
    bth::{Aeth, AtomicAckEth, AtomicEth, Bth, CnpReserved, Deth, ExtKind, Ieth, ImmDt, Opcode, Reth},
    ethernet::{ETHERTYPE_IPV4, EthernetHeader},
    icrc,
    ipv4::{Ecn, Ipv4Header, PROTOCOL_UDP},
    udp::{ROCE_PORT, UdpHeader},
};
use core::net::Ipv4Addr;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Bytes of the headers that every packet has, Ethernet to BTH.
pub const BASE_LEN: usize = EthernetHeader::LEN + Ipv4Header::LEN + UdpHeader::LEN + Bth::LEN;

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

/// Extension headers, as the opcode demands them (IBTA 9.2.1, table 38).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each variant holds the headers that it names
pub enum Ext {
    None,
    Imm(ImmDt),
    Reth(Reth),
    RethImm(Reth, ImmDt),
    Aeth(Aeth),
    AethAtomic(Aeth, AtomicAckEth),
    Atomic(AtomicEth),
    Ieth(Ieth),
    Deth(Deth),
    DethImm(Deth, ImmDt),
    Cnp(CnpReserved),
}

impl Ext {
    /// Which headers these are.
    pub const fn kind(&self) -> ExtKind {
        match self {
            Self::None => ExtKind::None,
            Self::Imm(_) => ExtKind::Imm,
            Self::Reth(_) => ExtKind::Reth,
            Self::RethImm(..) => ExtKind::RethImm,
            Self::Aeth(_) => ExtKind::Aeth,
            Self::AethAtomic(..) => ExtKind::AethAtomic,
            Self::Atomic(_) => ExtKind::Atomic,
            Self::Ieth(_) => ExtKind::Ieth,
            Self::Deth(_) => ExtKind::Deth,
            Self::DethImm(..) => ExtKind::DethImm,
            Self::Cnp(_) => ExtKind::Cnp,
        }
    }

    /// The headers at the start of `bytes`, and what follows them.
    fn parse(kind: ExtKind, bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        fn take<T: FromBytes>(bytes: &mut &[u8]) -> Result<T, ParseError> {
            let (header, rest) = T::read_from_prefix(bytes).map_err(|_| ParseError::Truncated)?;
            *bytes = rest;
            Ok(header)
        }
        let mut b = bytes;
        let ext = match kind {
            ExtKind::None => Self::None,
            ExtKind::Imm => Self::Imm(take(&mut b)?),
            ExtKind::Reth => Self::Reth(take(&mut b)?),
            ExtKind::RethImm => Self::RethImm(take(&mut b)?, take(&mut b)?),
            ExtKind::Aeth => Self::Aeth(take(&mut b)?),
            ExtKind::AethAtomic => Self::AethAtomic(take(&mut b)?, take(&mut b)?),
            ExtKind::Atomic => Self::Atomic(take(&mut b)?),
            ExtKind::Ieth => Self::Ieth(take(&mut b)?),
            ExtKind::Deth => Self::Deth(take(&mut b)?),
            ExtKind::DethImm => Self::DethImm(take(&mut b)?, take(&mut b)?),
            ExtKind::Cnp => Self::Cnp(take(&mut b)?),
        };
        Ok((ext, b))
    }

    /// The bytes of the headers, in order.
    fn parts(&self) -> [&[u8]; 2] {
        fn pair<'a>(a: &'a (impl IntoBytes + Immutable), b: &'a (impl IntoBytes + Immutable)) -> [&'a [u8]; 2] {
            [a.as_bytes(), b.as_bytes()]
        }
        match self {
            Self::None => [&[], &[]],
            Self::Imm(h) => [h.as_bytes(), &[]],
            Self::Reth(h) => [h.as_bytes(), &[]],
            Self::RethImm(h, i) => pair(h, i),
            Self::Aeth(h) => [h.as_bytes(), &[]],
            Self::AethAtomic(h, i) => pair(h, i),
            Self::Atomic(h) => [h.as_bytes(), &[]],
            Self::Ieth(h) => [h.as_bytes(), &[]],
            Self::Deth(h) => [h.as_bytes(), &[]],
            Self::DethImm(h, i) => pair(h, i),
            Self::Cnp(h) => [h.as_bytes(), &[]],
        }
    }
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

    /// A congestion notification packet: tells the sender behind `dest_qp` that its packets were marked (RoCEv2 annex
    /// A17.9.3). It has no payload and a PSN of 0.
    pub fn cnp(flow: &Flow, dest_qp: Qpn) -> Self {
        let mut bth = Bth::new(Opcode::Cnp, dest_qp, Psn::new(0));
        bth.set_becn(true);
        Self::new(flow, bth, Ext::Cnp(CnpReserved::default()))
    }

    /// Writes the frame with its payload, padding, IPv4 checksum and ICRC, and returns its length.
    ///
    /// Errors: a short buffer, extension headers that are not those of the opcode, a payload beyond 64 KiB.
    pub fn write(&self, payload: &[u8], buf: &mut [u8]) -> Result<usize, BuildError> {
        if self.bth.opcode().map(Opcode::ext) != Ok(self.ext.kind()) {
            return Err(BuildError::ExtMismatch);
        }
        let ext = self.ext.parts();
        let pad = payload.len().wrapping_neg() % 4;
        let rest_len = ext[0].len() + ext[1].len() + payload.len() + pad;
        let udp_len = UdpHeader::LEN + Bth::LEN + rest_len + icrc::LEN;
        if Ipv4Header::LEN + udp_len > usize::from(u16::MAX) {
            return Err(BuildError::TooLong);
        }
        let needed = EthernetHeader::LEN + Ipv4Header::LEN + udp_len;
        let out = buf.get_mut(..needed).ok_or(BuildError::BufferTooShort { needed })?;

        let Self { eth, mut ip, mut udp, mut bth, .. } = *self;
        ip.finish(udp_len);
        udp.length.set(udp_len as u16);
        bth.set_pad_count(pad as u8);

        let (head, tail) = out.split_at_mut(BASE_LEN);
        put(head, [eth.as_bytes(), ip.as_bytes(), udp.as_bytes(), bth.as_bytes()]);
        let (rest, crc) = tail.split_at_mut(rest_len);
        put(rest, [ext[0], ext[1], payload, &[0; 3][..pad]]);
        crc.copy_from_slice(&icrc::compute(&ip, &udp, &bth, rest));
        Ok(needed)
    }
}

/// Copies `parts` one after the other; together they fill `out`.
fn put<const N: usize>(mut out: &mut [u8], parts: [&[u8]; N]) {
    for part in parts {
        let (here, rest) = out.split_at_mut(part.len());
        here.copy_from_slice(part);
        out = rest;
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
        let (udp, packet) = UdpHeader::parse(&ip, segment)?;
        if udp.dst_port != ROCE_PORT {
            return Err(ParseError::UdpPort);
        }
        let (bth, rest) = Bth::read_from_prefix(packet).map_err(|_| ParseError::Truncated)?;
        let (rest, crc) = rest.split_last_chunk::<{ icrc::LEN }>().ok_or(ParseError::Truncated)?;
        if icrc::compute(&ip, &udp, &bth, rest) != *crc {
            return Err(ParseError::Icrc);
        }
        if bth.version() != 0 {
            return Err(ParseError::BthVersion);
        }
        let opcode = bth.opcode()?;
        let (ext, padded) = Ext::parse(opcode.ext(), rest)?;
        let pad = usize::from(bth.pad_count());
        if padded.len() % 4 != 0 || pad > padded.len() {
            return Err(ParseError::BthPad);
        }
        let payload = &padded[..padded.len() - pad];
        Ok(Self { headers: RoceHeaders { eth, ip, udp, bth, ext }, opcode, payload })
    }

    /// Writes it back; the result equals the frame that was parsed, up to Ethernet padding, UDP checksum and
    /// contents of the padding.
    pub fn write(&self, buf: &mut [u8]) -> Result<usize, BuildError> {
        self.headers.write(self.payload, buf)
    }
}
