// SPDX-License-Identifier: Apache-2.0
//! The transport's part of a RoCEv2 packet: what UDP carries, from the BTH to the ICRC (IBTA volume 1, chapter 9; annex
//! A17.3).
//!
//! The same over IPv4 and IPv6, and over any link. The ICRC protects headers below the transport too, so the network layer
//! computes and checks it ([`crate::icrc`]); here are its 4 bytes alone.

use crate::{
    BuildError, ParseError, Psn, Qpn,
    bth::{Aeth, AtomicAckEth, AtomicEth, Bth, CnpReserved, Deth, ExtKind, Ieth, ImmDt, Opcode, Reth},
    icrc,
};
use core::ops::Range;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Most bytes before the payload of any packet: BTH, AtomicETH.
pub const MAX_HEADERS: usize = Bth::LEN + size_of::<AtomicEth>();

/// Most bytes that are not payload in a packet of a reliable connection: BTH, AtomicETH, ICRC.
pub const MAX_OVERHEAD: usize = MAX_HEADERS + icrc::LEN;

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

/// The transport headers of a packet. The pad count is computed when they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Base transport header.
    pub bth: Bth,
    /// Extension headers.
    pub ext: Ext,
}

impl Headers {
    /// These headers.
    pub const fn new(bth: Bth, ext: Ext) -> Self {
        Self { bth, ext }
    }

    /// Those of a congestion notification packet: notifies the sender behind `dest_qp` that its packets were marked (RoCEv2
    /// annex A17.9.3). It has no payload and a PSN of 0.
    pub fn cnp(dest_qp: Qpn) -> Self {
        let mut bth = Bth::new(Opcode::Cnp, dest_qp, Psn::new(0));
        bth.set_becn(true);
        Self::new(bth, Ext::Cnp(CnpReserved::default()))
    }

    /// Length of the packet with this much payload, padding and ICRC included.
    pub fn packet_len(&self, payload_len: usize) -> usize {
        let [a, b] = self.ext.parts();
        Bth::LEN + a.len() + b.len() + payload_len.next_multiple_of(4) + icrc::LEN
    }

    /// Writes headers and padding of a packet. Returns the place of the payload, which the caller fills, and the length of
    /// the packet. Its last 4 bytes, the ICRC, are left as they are.
    ///
    /// Errors: a short buffer, extension headers that are not those of the opcode.
    pub fn write<'b>(&self, payload_len: usize, buf: &'b mut [u8]) -> Result<(&'b mut [u8], usize), BuildError> {
        if self.bth.opcode().map(Opcode::ext) != Ok(self.ext.kind()) {
            return Err(BuildError::ExtMismatch);
        }
        let needed = self.packet_len(payload_len);
        let packet = buf.get_mut(..needed).ok_or(BuildError::BufferTooShort { needed })?;
        let pad = payload_len.wrapping_neg() % 4;
        let mut bth = self.bth;
        bth.set_pad_count(pad as u8);
        let [a, b] = self.ext.parts();
        let mut rest = packet;
        for part in [bth.as_bytes(), a, b] {
            let (here, behind) = rest.split_at_mut(part.len());
            here.copy_from_slice(part);
            rest = behind;
        }
        let (payload, rest) = rest.split_at_mut(payload_len);
        rest[..pad].fill(0);
        Ok((payload, needed))
    }
}

/// A packet as the transport sees it. Its ICRC has been checked below, or is checked by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<P> {
    /// Its headers.
    pub headers: Headers,
    /// Its operation.
    pub opcode: Opcode,
    /// Its payload, without padding: the bytes, or where they are.
    pub payload: P,
}

impl<P> Packet<P> {
    /// The same with another kind of payload.
    pub fn map<Q>(self, payload: impl FnOnce(P) -> Q) -> Packet<Q> {
        Packet { headers: self.headers, opcode: self.opcode, payload: payload(self.payload) }
    }
}

impl Packet<Range<usize>> {
    /// Reads the headers of what a UDP datagram of `len` bytes carries, ICRC included, and says where its payload is. `head` is its
    /// beginning: [`MAX_HEADERS`] bytes, or all if it has fewer.
    pub fn parse_head(head: &[u8], len: usize) -> Result<Self, ParseError> {
        let end = len.checked_sub(icrc::LEN).ok_or(ParseError::Truncated)?;
        let (bth, rest) = Bth::read_from_prefix(&head[..head.len().min(end)]).map_err(|_| ParseError::Truncated)?;
        if bth.version() != 0 {
            return Err(ParseError::BthVersion);
        }
        let opcode = bth.opcode()?;
        let (ext, behind) = Ext::parse(opcode.ext(), rest)?;
        let start = Bth::LEN + (rest.len() - behind.len());
        let pad = usize::from(bth.pad_count());
        if !(end - start).is_multiple_of(4) || pad > end - start {
            return Err(ParseError::BthPad);
        }
        Ok(Self { headers: Headers { bth, ext }, opcode, payload: start..end - pad })
    }
}

impl<'a> Packet<&'a [u8]> {
    /// Reads what a UDP datagram carries, ICRC included.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let packet = Packet::parse_head(datagram, datagram.len())?;
        Ok(packet.map(|payload| &datagram[payload]))
    }
}
