// SPDX-License-Identifier: Apache-2.0
//! The network below the transport where the system's IP stack does IP: the datagrams of a UDP socket, without their IP headers.

use crate::{
    Batch, Discard, Instant, InterfaceCounters, Network, NetworkLayer, Path, PathError, Segment, Transmit, Transport,
};
use core::net::{IpAddr, SocketAddr};
use nacelle_memory::Bytes;
use nacelle_wire::{
    Ecn, ParseError,
    icrc::{self, Identifications},
    udp::{ROCE_PORT, UdpHeader},
};

/// How the IP stack numbers the IPv4 packets of one send. Linux does so for an unconnected socket that forbids fragmentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// Each datagram is sent alone: all have identification 0.
    Alone,
    /// One send of several (UDP_SEGMENT): 0, 1, 2 and so on.
    Counted,
}

impl Transmit {
    /// Each segment of `buf`, with its place in the batch.
    fn segments_mut<'a>(&self, buf: &'a mut [u8]) -> impl Iterator<Item = (usize, &'a mut [u8])> + use<'a> {
        buf[..self.len].chunks_mut(self.segment_size.unwrap_or(self.len).max(1)).enumerate()
    }

    /// Leaves the ICRC of each segment out: its bytes become zeros.
    ///
    /// # Panics
    ///
    /// If `buf` is shorter than the batch.
    pub fn leave_unsealed(&self, buf: &mut [u8]) {
        for (_, segment) in self.segments_mut(buf) {
            *segment.last_chunk_mut::<{ icrc::LEN }>().expect("a segment has room for its ICRC") = [0; icrc::LEN];
        }
    }

    /// Fills in the ICRC of each segment, as it leaves from a UDP socket at `local`, an address of the path's.
    ///
    /// # Panics
    ///
    /// If `buf` is shorter than the batch, or the addresses are not of one family.
    pub fn seal(&self, local: SocketAddr, buf: &mut [u8], numbering: Numbering) {
        let to = SocketAddr::new(self.path.remote, ROCE_PORT);
        for (index, segment) in self.segments_mut(buf) {
            let identification = if numbering == Numbering::Counted { index as u16 } else { 0 };
            let (transport, crc) = segment.split_last_chunk_mut().expect("a segment has room for its ICRC");
            let right = icrc::of_datagram(local, to, identification, transport);
            *crc = right.expect("the addresses of a path are of one family");
        }
    }
}

/// What one receive call gives: a datagram, or several of one sender and length that the kernel has coalesced (UDP_GRO).
#[derive(Clone, Copy, Debug)]
pub struct Datagrams<'a> {
    /// The sender.
    pub from: SocketAddr,
    /// Congestion mark of the IP headers.
    pub ecn: Ecn,
    /// The datagrams one behind the other, each from its BTH to its ICRC. Those in memory that a peer shares have none: its bytes are
    /// there, and do not count.
    pub bytes: Bytes<'a>,
    /// Bytes of each but the last, which may be shorter.
    pub stride: usize,
}

impl<'a> Datagrams<'a> {
    /// Each datagram in turn.
    pub fn iter(&self) -> impl Iterator<Item = Bytes<'a>> + use<'a> {
        self.bytes.chunks(self.stride.max(1))
    }
}

/// Where RoCEv2 datagrams of a UDP socket become segments, and segments become datagrams: checks the ICRC. Whoever sends them knows
/// whether they need one, and fills it in ([`Transmit::seal`]).
///
/// Like [`Interface`](crate::Interface) it never blocks, has no clock and touches no socket. It needs a socket that is bound to one
/// address, is not connected, and forbids fragmentation.
///
/// The ICRC covers the identification of IPv4, which a socket does not report. First the one is tried that Linux gives such a
/// socket's datagrams; if the ICRC is wrong then, the identification is found that makes it right ([`Identifications`]).
#[derive(Debug)]
pub struct UdpInterface {
    local: SocketAddr,
    ip_mtu: usize,
    identifications: Box<Identifications>,
    counters: InterfaceCounters,
}

impl UdpInterface {
    /// For a socket that is bound to `local`, with IP packets of up to `ip_mtu` bytes.
    pub fn new(local: SocketAddr, ip_mtu: usize) -> Self {
        Self { local, ip_mtu, identifications: Box::default(), counters: InterfaceCounters::default() }
    }

    /// Address and port of the socket.
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Bytes of the headers before a segment.
    const fn overhead(&self) -> usize {
        UdpHeader::LEN + if self.local.is_ipv4() { 20 } else { 40 }
    }

    /// The way to a peer: there is one to each address of the same family, as far as is known here.
    pub fn path(&self, peer: IpAddr) -> Result<Path, PathError> {
        let local = self.local.ip();
        if local.is_ipv4() != peer.is_ipv4() {
            return Err(PathError::NoRoute(peer));
        }
        Ok(Path { local, remote: peer, hop: crate::Hop::default() })
    }

    /// The identification of a received datagram, the `index`th of those that came together; 0 over IPv6, which has none.
    ///
    /// Fails if there is none that makes the ICRC right.
    pub fn identification(&mut self, from: SocketAddr, index: usize, datagram: &[u8]) -> Result<u16, ParseError> {
        let (transport, got) = icrc::split(datagram)?;
        let expected = index as u16;
        let crc = |identification| {
            icrc::of_datagram(from, self.local, identification, transport).ok_or(ParseError::IpVersion)
        };
        if crc(expected)? == *got {
            return Ok(if from.is_ipv4() { expected } else { 0 });
        }
        let found = match from {
            SocketAddr::V4(_) => self.identifications.find(transport.len(), crc(0)?, *got),
            SocketAddr::V6(_) => None,
        };
        found.ok_or(ParseError::Icrc)
    }
}

impl NetworkLayer for UdpInterface {
    type Received<'a> = Datagrams<'a>;
    type Sent = Transmit;

    fn network(&self) -> Network {
        Network { ip_mtu: self.ip_mtu, overhead: self.overhead() }
    }

    fn reaches(&self, peer: IpAddr) -> bool {
        self.path(peer).is_ok()
    }

    fn handle(&mut self, now: Instant, transport: &mut Transport, received: Datagrams<'_>) -> Result<(), Discard> {
        let Datagrams { from, ecn, .. } = received;
        let path = Path { local: self.local.ip(), remote: from.ip(), hop: crate::Hop::default() };
        let mut result = Ok(());
        for (index, datagram) in received.iter().enumerate() {
            self.counters.rx_frames += 1;
            self.counters.rx_bytes += (datagram.len() + self.overhead()) as u64;
            let intact = match datagram {
                Bytes::Own(datagram) => self.identification(from, index, datagram).map(drop),
                Bytes::Shared(_) => Ok(()),
            };
            let handled = match intact {
                Ok(()) => transport.handle(now, &Segment { path, ecn, payload: datagram.source() }),
                Err(error) => {
                    self.counters.discard(error.into());
                    Err(error.into())
                }
            };
            result = result.and(handled);
        }
        result
    }

    fn poll_transmit(
        &mut self,
        now: Instant,
        transport: &mut Transport,
        buf: &mut [u8],
        batch: Batch,
    ) -> Option<Transmit> {
        self.resolve_paths(now, transport);
        let sent = transport.poll_transmit(now, buf, batch)?;
        for len in sent.segment_lens() {
            self.counters.tx_frames += 1;
            self.counters.tx_bytes += (len + self.overhead()) as u64;
        }
        Some(sent)
    }

    fn resolve_paths(&mut self, now: Instant, transport: &mut Transport) {
        while let Some(peer) = transport.poll_path_request() {
            transport.path_resolved(now, peer, self.path(peer).ok());
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn buffer_len(&self) -> usize {
        self.network().segment_len()
    }

    fn counters(&self) -> &InterfaceCounters {
        &self.counters
    }
}
