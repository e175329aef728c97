// SPDX-License-Identifier: Apache-2.0
//! ICMP echo, both ways (RFC 792).

use super::{Interface, is_unicast};
use crate::{Discard, Instant, NetworkEvent};
use core::{net::Ipv4Addr, time::Duration};
use nacelle_wire::{
    icmp::{EchoPacket, Kind},
    ipv4::{Ipv4Header, PROTOCOL_ICMP},
};

/// Most echo requests outstanding.
const LIMIT: usize = 256;

/// An echo request without a reply.
#[derive(Debug)]
struct Ping {
    ip: Ipv4Addr,
    sequence: u16,
    len: usize,
    sent: Option<Instant>,
    deadline: Instant,
}

/// Echo requests of this interface.
#[derive(Debug)]
pub(super) struct Pings {
    identifier: u16,
    outstanding: Vec<Ping>,
}

impl Pings {
    /// Requests with this identifier.
    pub(super) fn new(identifier: u16) -> Self {
        Self { identifier, outstanding: Vec::new() }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.outstanding.iter().map(|p| p.deadline).min()
    }
}

impl Interface {
    /// Sends an ICMP echo request with `len` bytes of payload, as soon as the neighbour is known.
    /// [`NetworkEvent::EchoReply`], [`NetworkEvent::EchoTimeout`] or [`NetworkEvent::Unreachable`] follows. Returns whether it
    /// is sent: there is a route, `len` fits a frame, and not too many are outstanding.
    pub fn ping(&mut self, now: Instant, ip: Ipv4Addr, sequence: u16, len: usize, timeout: Duration) -> bool {
        let Some(hop) = self.next_hop(ip) else { return false };
        let room = self.queue.frame_len.saturating_sub(EchoPacket::HEADER_LEN);
        if self.pings.outstanding.len() >= LIMIT || len > room {
            return false;
        }
        self.pings.outstanding.push(Ping { ip, sequence, len, sent: None, deadline: now + timeout });
        if self.neighbours.lookup(now, hop).is_some() {
            self.send_pings(now);
        } else {
            self.resolve_hop(now, hop, false);
        }
        true
    }

    /// Sends the requests whose neighbours are known.
    pub(super) fn send_pings(&mut self, now: Instant) {
        let mut pings = core::mem::take(&mut self.pings.outstanding);
        for p in pings.iter_mut().filter(|p| p.sent.is_none()) {
            let Some(dst) = self.next_hop(p.ip).and_then(|hop| self.neighbours.lookup(now, hop)) else { continue };
            let payload: Vec<u8> = (0..p.len).map(|i| i as u8).collect();
            let echo = EchoPacket {
                dst,
                src: self.mac,
                ip: self.icmp_header(p.ip),
                kind: Kind::Request,
                identifier: self.pings.identifier,
                sequence: p.sequence,
                payload: &payload,
            };
            if self.queue.push(|buf| echo.write(buf)) {
                p.sent = Some(now);
            }
        }
        self.pings.outstanding = pings;
    }

    fn icmp_header(&mut self, dst: Ipv4Addr) -> Ipv4Header {
        let mut ip = Ipv4Header::new(self.ip, dst, PROTOCOL_ICMP);
        ip.identification.set(self.next_identification());
        ip
    }

    /// Whether a request waits for this neighbour.
    pub(super) fn ping_waits_for(&self, hop: Ipv4Addr) -> bool {
        self.pings.outstanding.iter().any(|p| p.sent.is_none() && self.next_hop(p.ip) == Some(hop))
    }

    /// Receives an IPv4 frame that may be an ICMP echo.
    pub(super) fn receive_echo(&mut self, now: Instant, frame: &[u8]) -> Result<(), Discard> {
        let packet = EchoPacket::parse(frame)?;
        if packet.ip.dst() != self.ip {
            return Err(Discard::NotForUs);
        }
        match packet.kind {
            Kind::Request => {
                // Only a unicast address gets a reply (RFC 1122, 3.2.1.3).
                if !is_unicast(packet.src, packet.ip.src()) {
                    return Err(Discard::NotForUs);
                }
                let ip = self.icmp_header(packet.ip.src());
                let reply = EchoPacket { dst: packet.src, src: self.mac, ip, kind: Kind::Reply, ..packet };
                if self.queue.push(|buf| reply.write(buf)) {
                    self.counters.rx_echo_request += 1;
                } else {
                    self.counters.tx_queue_full += 1;
                }
            }
            Kind::Reply => {
                let i = self
                    .pings
                    .outstanding
                    .iter()
                    .position(|p| p.ip == packet.ip.src() && p.sequence == packet.sequence)
                    .filter(|_| packet.identifier == self.pings.identifier)
                    .ok_or(Discard::UnexpectedEcho)?;
                let ping = self.pings.outstanding.swap_remove(i);
                self.counters.rx_echo_reply += 1;
                self.events.push_back(NetworkEvent::EchoReply {
                    ip: ping.ip,
                    sequence: ping.sequence,
                    len: packet.payload.len(),
                    rtt: ping.sent.map_or(Duration::ZERO, |t| now - t),
                });
            }
        }
        Ok(())
    }

    /// Ends requests that have got no reply in time.
    pub(super) fn run_echo_timers(&mut self, now: Instant) {
        let events = &mut self.events;
        self.pings.outstanding.retain(|p| {
            let over = p.deadline <= now;
            if over {
                events.push_back(NetworkEvent::EchoTimeout { ip: p.ip, sequence: p.sequence });
            }
            !over
        });
    }
}
