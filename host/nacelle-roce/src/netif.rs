// SPDX-License-Identifier: Apache-2.0
//! The endpoint's own address: ARP (RFC 826, RFC 5227), ICMP echo, and the queue of small frames.

use crate::{
    Counters, Discard, Event, Instant,
    config::{ArpConfig, EndpointConfig},
    time::earliest,
};
use core::{net::Ipv4Addr, time::Duration};
use nacelle_wire::{
    BuildError, MacAddr,
    arp::{ArpPacket, Operation},
    ethernet::EthernetHeader,
    icmp::{EchoPacket, Kind},
    ipv4::{Ipv4Header, PROTOCOL_ICMP},
};
use std::collections::{HashMap, VecDeque};

/// Most control frames that wait for transmission. Beyond, they are lost as on a busy wire: all of them are repeated.
const QUEUE_LIMIT: usize = 256;
/// Most addresses that are remembered.
const CACHE_LIMIT: usize = 1024;
/// Most addresses asked for at once.
const PENDING_LIMIT: usize = 256;
/// Most pings under way.
const PING_LIMIT: usize = 256;

/// Frames that wait for transmission; their buffers are reused.
#[derive(Debug)]
pub(crate) struct FrameQueue {
    frames: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    frame_len: usize,
}

impl FrameQueue {
    fn new(frame_len: usize) -> Self {
        Self { frames: VecDeque::new(), spare: Vec::new(), frame_len }
    }

    /// Adds the frame that `build` writes. Returns whether there was room, and the frame could be built.
    pub(crate) fn push(&mut self, build: impl FnOnce(&mut [u8]) -> Result<usize, BuildError>) -> bool {
        if self.frames.len() >= QUEUE_LIMIT {
            return false;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(self.frame_len, 0);
        match build(&mut buffer) {
            Ok(len) => {
                buffer.truncate(len);
                self.frames.push_back(buffer);
                true
            }
            Err(_) => {
                self.spare.push(buffer);
                false
            }
        }
    }

    /// Moves the oldest frame into `out`.
    pub(crate) fn pop(&mut self, out: &mut [u8]) -> Option<usize> {
        let frame = self.frames.pop_front()?;
        let len = frame.len();
        out[..len].copy_from_slice(&frame);
        self.spare.push(frame);
        Some(len)
    }
}

/// Whether a frame from these addresses can come from a single host, which can be answered.
pub(crate) fn is_one_host(mac: MacAddr, ip: Ipv4Addr) -> bool {
    !mac.is_multicast() && !ip.is_unspecified() && ip.octets()[0] < 224
}

#[derive(Debug)]
struct Pending {
    ip: Ipv4Addr,
    tries_left: u8,
    next: Instant,
    /// Tell the user how it ends.
    tell: bool,
}

#[derive(Debug)]
struct Probe {
    ip: Ipv4Addr,
    left: u8,
    next: Instant,
}

#[derive(Debug)]
struct Ping {
    ip: Ipv4Addr,
    sequence: u16,
    len: usize,
    sent: Option<Instant>,
    deadline: Instant,
}

/// The network interface.
#[derive(Debug)]
pub(crate) struct Netif {
    pub(crate) mac: MacAddr,
    pub(crate) ip: Ipv4Addr,
    prefix_len: u8,
    gateway: Option<Ipv4Addr>,
    config: ArpConfig,
    identifier: u16,
    ip_id: u16,
    cache: HashMap<Ipv4Addr, (MacAddr, Instant)>,
    pending: Vec<Pending>,
    probe: Option<Probe>,
    pings: Vec<Ping>,
    pub(crate) queue: FrameQueue,
    /// Resolutions that have ended since the endpoint last looked: its connections may wait for them.
    pub(crate) resolved: Vec<(Ipv4Addr, Option<MacAddr>)>,
}

impl Netif {
    pub(crate) fn new(config: &EndpointConfig, identifier: u16) -> Self {
        Self {
            mac: config.mac,
            ip: config.ip,
            prefix_len: config.prefix_len.min(32),
            gateway: config.gateway,
            config: config.arp,
            identifier,
            ip_id: 0,
            cache: HashMap::new(),
            pending: Vec::new(),
            probe: None,
            pings: Vec::new(),
            queue: FrameQueue::new(EthernetHeader::LEN + config.ip_mtu.max(576)),
            resolved: Vec::new(),
        }
    }

    pub(crate) fn set_address(&mut self, ip: Ipv4Addr, prefix_len: u8, gateway: Option<Ipv4Addr>) {
        self.ip = ip;
        self.prefix_len = prefix_len.min(32);
        self.gateway = gateway;
    }

    /// The next IPv4 identification.
    pub(crate) fn next_ip_id(&mut self) -> u16 {
        self.ip_id = self.ip_id.wrapping_add(1);
        self.ip_id
    }

    /// The neighbour through which `ip` is reached.
    pub(crate) fn next_hop(&self, ip: Ipv4Addr) -> Option<Ipv4Addr> {
        let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix_len)).unwrap_or(0);
        if (ip.to_bits() ^ self.ip.to_bits()) & mask == 0 { Some(ip) } else { self.gateway }
    }

    /// The Ethernet address of a neighbour, if it is known.
    pub(crate) fn lookup(&self, now: Instant, hop: Ipv4Addr) -> Option<MacAddr> {
        self.cache.get(&hop).filter(|(_, expires)| now < *expires).map(|(mac, _)| *mac)
    }

    /// Asks for a neighbour. How it ends is in `resolved`, and told to the user if `tell`.
    pub(crate) fn resolve(&mut self, now: Instant, hop: Ipv4Addr, tell: bool) {
        if let Some(p) = self.pending.iter_mut().find(|p| p.ip == hop) {
            p.tell |= tell;
        } else if self.pending.len() < PENDING_LIMIT {
            self.pending.push(Pending { ip: hop, tries_left: self.config.tries.max(1), next: now, tell });
        } else {
            self.resolved.push((hop, None));
        }
    }

    /// Asks whether anybody has `ip`.
    pub(crate) fn probe(&mut self, now: Instant, ip: Ipv4Addr) {
        self.probe = Some(Probe { ip, left: self.config.probes.max(1), next: now });
    }

    /// Tells everybody that this station has its address.
    pub(crate) fn announce(&mut self, counters: &mut Counters) {
        self.send_arp(&ArpPacket::request(self.mac, self.ip, self.ip), counters);
    }

    /// Sends an echo request, as soon as the neighbour is known.
    pub(crate) fn ping(&mut self, now: Instant, ip: Ipv4Addr, sequence: u16, len: usize, timeout: Duration) -> bool {
        let Some(hop) = self.next_hop(ip) else { return false };
        let room = self.queue.frame_len.saturating_sub(EchoPacket::HEADER_LEN);
        if self.pings.len() >= PING_LIMIT || len > room {
            return false;
        }
        self.pings.push(Ping { ip, sequence, len, sent: None, deadline: now + timeout });
        if self.lookup(now, hop).is_some() {
            self.send_pings(now);
        } else {
            self.resolve(now, hop, false);
        }
        true
    }

    fn send_pings(&mut self, now: Instant) {
        let mut pings = core::mem::take(&mut self.pings);
        for p in pings.iter_mut().filter(|p| p.sent.is_none()) {
            let Some(dst) = self.next_hop(p.ip).and_then(|hop| self.lookup(now, hop)) else { continue };
            let payload: Vec<u8> = (0..p.len).map(|i| i as u8).collect();
            let echo = EchoPacket {
                dst,
                src: self.mac,
                ip: self.ip_header(p.ip),
                kind: Kind::Request,
                identifier: self.identifier,
                sequence: p.sequence,
                payload: &payload,
            };
            if self.queue.push(|buf| echo.write(buf)) {
                p.sent = Some(now);
            }
        }
        self.pings = pings;
    }

    fn ip_header(&mut self, dst: Ipv4Addr) -> Ipv4Header {
        let mut ip = Ipv4Header::new(self.ip, dst, PROTOCOL_ICMP);
        ip.identification.set(self.next_ip_id());
        ip
    }

    fn send_arp(&mut self, packet: &ArpPacket, counters: &mut Counters) {
        if self.queue.push(|buf| packet.write(buf)) {
            counters.tx_arp += 1;
        } else {
            counters.tx_queue_full += 1;
        }
    }

    /// Takes an ARP frame.
    pub(crate) fn receive_arp(
        &mut self,
        now: Instant,
        frame: &[u8],
        counters: &mut Counters,
        events: &mut VecDeque<Event>,
    ) -> Result<(), Discard> {
        let packet = ArpPacket::parse(frame)?;
        if packet.sender_mac == self.mac || packet.sender_mac.is_multicast() {
            return Err(Discard::ArpIgnored);
        }
        let probing = self.probe.as_ref().map(|p| p.ip);
        // Somebody has the address under probe, or probes for it too (RFC 5227 2.1.1).
        let rival = packet.sender_ip.is_unspecified() && packet.operation == Operation::Request;
        let conflict = probing.is_some_and(|ip| packet.sender_ip == ip || rival && packet.target_ip == ip);
        if conflict {
            let ip = self.probe.take().map_or(packet.sender_ip, |p| p.ip);
            events.push_back(Event::AddressProbed { ip, owner: Some(packet.sender_mac) });
        }
        let for_us = packet.target_ip == self.ip && !self.ip.is_unspecified();
        let wanted = self.pending.iter().any(|p| p.ip == packet.sender_ip);
        let known = self.cache.contains_key(&packet.sender_ip);
        if !packet.sender_ip.is_unspecified() && (for_us || wanted || known) {
            self.learn(now, packet.sender_ip, packet.sender_mac, events);
        }
        if for_us && packet.operation == Operation::Request {
            self.send_arp(&packet.reply(self.mac), counters);
        } else if !(conflict || wanted || known) {
            return Err(Discard::ArpIgnored);
        }
        counters.rx_arp += 1;
        Ok(())
    }

    fn learn(&mut self, now: Instant, ip: Ipv4Addr, mac: MacAddr, events: &mut VecDeque<Event>) {
        if self.cache.len() >= CACHE_LIMIT
            && !self.cache.contains_key(&ip)
            && let Some(oldest) = self.cache.iter().min_by_key(|(_, (_, expires))| *expires).map(|(ip, _)| *ip)
        {
            self.cache.remove(&oldest);
        }
        self.cache.insert(ip, (mac, now + self.config.lifetime));
        if let Some(i) = self.pending.iter().position(|p| p.ip == ip) {
            if self.pending.swap_remove(i).tell {
                events.push_back(Event::Resolved { ip, mac });
            }
            self.resolved.push((ip, Some(mac)));
            self.send_pings(now);
        }
    }

    /// Takes an IPv4 frame that may be an ICMP echo.
    pub(crate) fn receive_echo(
        &mut self,
        now: Instant,
        frame: &[u8],
        counters: &mut Counters,
        events: &mut VecDeque<Event>,
    ) -> Result<(), Discard> {
        let packet = EchoPacket::parse(frame)?;
        if packet.ip.dst() != self.ip || packet.dst != self.mac {
            return Err(Discard::NotForUs);
        }
        match packet.kind {
            Kind::Request => {
                // Answered to a single host only (RFC 1122, 3.2.1.3).
                if !is_one_host(packet.src, packet.ip.src()) {
                    return Err(Discard::NotForUs);
                }
                let ip = self.ip_header(packet.ip.src());
                let reply = EchoPacket { dst: packet.src, src: self.mac, ip, kind: Kind::Reply, ..packet };
                if self.queue.push(|buf| reply.write(buf)) {
                    counters.rx_echo_request += 1;
                } else {
                    counters.tx_queue_full += 1;
                }
            }
            Kind::Reply => {
                let i = self
                    .pings
                    .iter()
                    .position(|p| p.ip == packet.ip.src() && p.sequence == packet.sequence)
                    .filter(|_| packet.identifier == self.identifier)
                    .ok_or(Discard::UnexpectedEcho)?;
                let ping = self.pings.swap_remove(i);
                counters.rx_echo_reply += 1;
                events.push_back(Event::EchoReply {
                    ip: ping.ip,
                    sequence: ping.sequence,
                    len: packet.payload.len(),
                    rtt: ping.sent.map_or(Duration::ZERO, |t| now - t),
                });
            }
        }
        Ok(())
    }

    /// Does what is due.
    pub(crate) fn run_timers(&mut self, now: Instant, counters: &mut Counters, events: &mut VecDeque<Event>) {
        for i in (0..self.pending.len()).rev() {
            let p = &mut self.pending[i];
            if now < p.next {
                continue;
            }
            if p.tries_left == 0 {
                let Pending { ip, tell, .. } = self.pending.swap_remove(i);
                let hop_of_ping = |p: &Ping| p.sent.is_none() && self.next_hop(p.ip) == Some(ip);
                if tell || self.pings.iter().any(hop_of_ping) {
                    events.push_back(Event::Unreachable { ip });
                }
                self.resolved.push((ip, None));
            } else {
                p.tries_left -= 1;
                p.next = now + self.config.retry_interval;
                let ask = ArpPacket::request(self.mac, self.ip, p.ip);
                self.send_arp(&ask, counters);
            }
        }
        if let Some(p) = &mut self.probe
            && p.next <= now
        {
            let ip = p.ip;
            if p.left == 0 {
                self.probe = None;
                events.push_back(Event::AddressProbed { ip, owner: None });
            } else {
                p.left -= 1;
                p.next = now + self.config.probe_interval;
                self.send_arp(&ArpPacket::request(self.mac, Ipv4Addr::UNSPECIFIED, ip), counters);
            }
        }
        self.pings.retain(|p| {
            let over = p.deadline <= now;
            if over {
                events.push_back(Event::EchoTimeout { ip: p.ip, sequence: p.sequence });
            }
            !over
        });
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let pending = self.pending.iter().map(|p| p.next).min();
        let pings = self.pings.iter().map(|p| p.deadline).min();
        earliest(earliest(pending, pings), self.probe.as_ref().map(|p| p.next))
    }
}
