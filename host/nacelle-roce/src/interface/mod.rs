// SPDX-License-Identifier: Apache-2.0
//! The network below the transport on an Ethernet: frames with IPv4, ARP and ICMP echo. IPv6 has no Ethernet interface here.

mod echo;
mod neighbours;
mod queue;

use crate::{
    Batch, Discard, Instant, InterfaceConfig, InterfaceCounters, Network, NetworkEvent, NetworkLayer, Path, PathError,
    Segment, Transmit, Transport, time::earliest,
};
use core::net::{IpAddr, Ipv4Addr};
use echo::Pings;
use nacelle_wire::{
    MacAddr, ParseError,
    ethernet::{ETHERTYPE_ARP, ETHERTYPE_IPV4, EthernetHeader},
    icrc,
    ipv4::{Ipv4Header, PROTOCOL_UDP},
    roce::{LOWER_LEN, seal},
    udp::{ROCE_PORT, UdpHeader},
};
use neighbours::Neighbours;
use queue::FrameQueue;
use std::collections::VecDeque;

/// An Ethernet interface with one IPv4 address.
///
/// It never blocks, has no clock and touches no socket. Frames for the transport become segments, and segments become frames;
/// ARP and ICMP echo it handles itself.
#[derive(Debug)]
pub struct Interface {
    mac: MacAddr,
    ip: Ipv4Addr,
    prefix_len: u8,
    gateway: Option<Ipv4Addr>,
    /// Of the last packet sent.
    identification: u16,
    neighbours: Neighbours,
    /// Peers that connections need a path to, and the neighbours on the way.
    resolving: Vec<(IpAddr, Ipv4Addr)>,
    pings: Pings,
    queue: FrameQueue,
    counters: InterfaceCounters,
    events: VecDeque<NetworkEvent>,
}

impl Interface {
    /// An interface whose echo requests have this identifier.
    pub fn new(config: &InterfaceConfig, identifier: u16) -> Self {
        Self {
            mac: config.mac,
            ip: config.ip,
            prefix_len: config.prefix_len.min(32),
            gateway: config.gateway,
            identification: 0,
            neighbours: Neighbours::new(config.arp),
            resolving: Vec::new(),
            pings: Pings::new(identifier),
            queue: FrameQueue::new(EthernetHeader::LEN + config.ip_mtu.max(576)),
            counters: InterfaceCounters::default(),
            events: VecDeque::new(),
        }
    }

    /// Ethernet address.
    pub const fn mac(&self) -> MacAddr {
        self.mac
    }

    /// IPv4 address.
    pub const fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// Sets the address and announces it. Connections of the old one no longer receive anything.
    pub fn set_address(&mut self, ip: Ipv4Addr, prefix_len: u8, gateway: Option<Ipv4Addr>) {
        self.ip = ip;
        self.prefix_len = prefix_len.min(32);
        self.gateway = gateway;
        self.announce();
    }

    /// Bytes that the longest frame takes, without FCS.
    pub const fn frame_len(&self) -> usize {
        self.queue.frame_len
    }

    /// The oldest event not taken yet.
    pub fn poll_event(&mut self) -> Option<NetworkEvent> {
        self.events.pop_front()
    }

    /// Its counters.
    pub const fn counters(&self) -> &InterfaceCounters {
        &self.counters
    }

    /// Receives a frame, from its Ethernet header on, without FCS. Returns the segment in it, if it carries one.
    ///
    /// A frame that fails any check changes nothing but a counter; the error says which check.
    pub fn handle<'a>(&mut self, now: Instant, frame: &'a [u8]) -> Result<Option<Segment<'a>>, Discard> {
        self.counters.rx_frames += 1;
        self.counters.rx_bytes += frame.len() as u64;
        let result = self.receive(now, frame);
        if let Err(why) = result {
            self.counters.discard(why);
        }
        result
    }

    fn receive<'a>(&mut self, now: Instant, frame: &'a [u8]) -> Result<Option<Segment<'a>>, Discard> {
        let (eth, datagram) = EthernetHeader::parse(frame)?;
        if eth.ethertype == ETHERTYPE_ARP && (eth.dst == self.mac || eth.dst.is_multicast()) {
            return self.receive_arp(now, frame).map(|()| None);
        }
        if eth.dst != self.mac {
            return Err(Discard::NotForUs);
        }
        if eth.ethertype != ETHERTYPE_IPV4 {
            return Err(ParseError::EtherType.into());
        }
        let (ip, datagram) = Ipv4Header::parse(datagram)?;
        if ip.protocol != PROTOCOL_UDP {
            return self.receive_echo(now, frame).map(|()| None);
        }
        let (udp, payload) = UdpHeader::parse(&ip, datagram)?;
        if udp.dst_port != ROCE_PORT {
            return Err(ParseError::UdpPort.into());
        }
        icrc::check_ipv4(&ip, &udp, payload)?;
        if ip.dst() != self.ip || eth.src.is_multicast() {
            return Err(Discard::NotForUs);
        }
        let path = Path { local: ip.dst().into(), remote: ip.src().into(), hop: eth.src.into() };
        Ok(Some(Segment { path, ecn: ip.ecn(), payload: payload.into() }))
    }

    /// Makes a frame of a segment, which lies in `frame` behind [`LOWER_LEN`] bytes. Returns its length.
    ///
    /// # Panics
    ///
    /// If the segment is not one of a path of this interface, or there are several.
    pub fn encapsulate(&mut self, segment: &Transmit, frame: &mut [u8]) -> usize {
        let (IpAddr::V4(src), IpAddr::V4(dst), None) = (segment.path.local, segment.path.remote, segment.segment_size)
        else {
            panic!("not one segment of an IPv4 path: {segment:?}")
        };
        let len = LOWER_LEN + segment.len;
        let eth = EthernetHeader::new(segment.path.hop.mac(), self.mac, ETHERTYPE_IPV4);
        let mut ip = Ipv4Header::new(src, dst, PROTOCOL_UDP).with_ecn(segment.ecn);
        ip.tos |= segment.dscp << 2;
        ip.identification.set(self.next_identification());
        let udp = UdpHeader::roce(segment.source_port);
        seal(eth, ip, udp, &mut frame[..len]).expect("a segment of the transport has a BTH and fits a packet");
        self.count_sent(len);
        len
    }

    /// Writes the next frame of the interface itself, ARP or ICMP, and returns its length. Also handles timers.
    pub fn poll_transmit(&mut self, now: Instant, frame: &mut [u8]) -> Option<usize> {
        if self.next_deadline().is_some_and(|t| t <= now) {
            self.run_arp_timers(now);
            self.run_echo_timers(now);
        }
        let len = self.queue.pop(frame)?;
        self.count_sent(len);
        Some(len)
    }

    /// When to call [`Self::poll_transmit`] again at the latest.
    pub fn next_deadline(&self) -> Option<Instant> {
        earliest(self.neighbours.next_deadline(), self.pings.next_deadline())
    }

    /// The way to a peer, if the Ethernet address on it is known.
    pub fn path(&self, now: Instant, peer: IpAddr) -> Result<Path, PathError> {
        let hop = self.hop_to(peer)?;
        let mac = self.neighbours.lookup(now, hop).ok_or(PathError::Unresolved(peer))?;
        Ok(self.path_by(peer, mac))
    }

    /// The neighbour on the way to a peer.
    fn hop_to(&self, peer: IpAddr) -> Result<Ipv4Addr, PathError> {
        let hop = match peer {
            IpAddr::V4(ip) => self.next_hop(ip),
            IpAddr::V6(_) => None,
        };
        hop.ok_or(PathError::NoRoute(peer))
    }

    /// The way to a peer by this neighbour.
    fn path_by(&self, peer: IpAddr, mac: MacAddr) -> Path {
        Path { local: self.ip.into(), remote: peer, hop: mac.into() }
    }

    /// The neighbour through which `ip` is reached.
    fn next_hop(&self, ip: Ipv4Addr) -> Option<Ipv4Addr> {
        let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix_len)).unwrap_or(0);
        if (ip.to_bits() ^ self.ip.to_bits()) & mask == 0 { Some(ip) } else { self.gateway }
    }

    fn next_identification(&mut self) -> u16 {
        self.identification = self.identification.wrapping_add(1);
        self.identification
    }

    fn count_sent(&mut self, len: usize) {
        self.counters.tx_frames += 1;
        self.counters.tx_bytes += len as u64;
    }
}

impl NetworkLayer for Interface {
    type Received<'a> = &'a [u8];
    type Sent = usize;

    fn network(&self) -> Network {
        Network { ip_mtu: self.queue.frame_len - EthernetHeader::LEN, overhead: LOWER_LEN }
    }

    fn reaches(&self, peer: IpAddr) -> bool {
        self.hop_to(peer).is_ok()
    }

    fn handle(&mut self, now: Instant, transport: &mut Transport, frame: &[u8]) -> Result<(), Discard> {
        match self.handle(now, frame)? {
            Some(segment) => transport.handle(now, &segment),
            None => {
                self.resolve_paths(now, transport);
                Ok(())
            }
        }
    }

    /// ARP and ICMP go first. A frame carries one segment.
    fn poll_transmit(
        &mut self,
        now: Instant,
        transport: &mut Transport,
        frame: &mut [u8],
        _batch: Batch,
    ) -> Option<usize> {
        self.resolve_paths(now, transport);
        if let Some(len) = self.poll_transmit(now, frame) {
            return Some(len);
        }
        self.resolve_paths(now, transport);
        let segment = transport.poll_transmit(now, &mut frame[LOWER_LEN..], 1)?;
        Some(self.encapsulate(&segment, frame))
    }

    fn resolve_paths(&mut self, now: Instant, transport: &mut Transport) {
        while let Some(peer) = transport.poll_path_request() {
            match (self.path(now, peer), self.hop_to(peer)) {
                (Ok(path), _) => transport.path_resolved(now, peer, Some(path)),
                (Err(PathError::Unresolved(_)), Ok(hop)) => {
                    self.resolving.push((peer, hop));
                    self.resolve_hop(now, hop, false);
                }
                _ => transport.path_resolved(now, peer, None),
            }
        }
        for (hop, mac) in self.take_resolved() {
            let (ended, rest): (Vec<_>, _) = self.resolving.drain(..).partition(|(_, via)| *via == hop);
            self.resolving = rest;
            for (peer, _) in ended {
                transport.path_resolved(now, peer, mac.map(|mac| self.path_by(peer, mac)));
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.next_deadline()
    }

    fn buffer_len(&self) -> usize {
        self.frame_len()
    }

    fn counters(&self) -> &InterfaceCounters {
        self.counters()
    }
}

/// Whether these are the addresses of a single host.
fn is_unicast(mac: MacAddr, ip: Ipv4Addr) -> bool {
    !mac.is_multicast() && !ip.is_unspecified() && ip.octets()[0] < 224
}
