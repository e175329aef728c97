// SPDX-License-Identifier: Apache-2.0
//! Address resolution (RFC 826) and address conflict detection (RFC 5227).

use super::Interface;
use crate::{Discard, Instant, NetworkEvent, config::ArpConfig, time::earliest};
use core::net::Ipv4Addr;
use nacelle_wire::{
    MacAddr,
    arp::{ArpPacket, Operation},
};
use std::collections::HashMap;

/// Most addresses in the cache.
const CACHE_LIMIT: usize = 1024;
/// Most addresses that are being resolved.
const PENDING_LIMIT: usize = 256;

/// An address that is being resolved.
#[derive(Debug)]
struct Pending {
    ip: Ipv4Addr,
    tries_left: u8,
    next: Instant,
    /// The user gets an event.
    report: bool,
}

/// An address that is being probed.
#[derive(Debug)]
struct Probe {
    ip: Ipv4Addr,
    left: u8,
    next: Instant,
}

/// The ARP cache of the interface.
#[derive(Debug)]
pub(super) struct Neighbours {
    config: ArpConfig,
    cache: HashMap<Ipv4Addr, (MacAddr, Instant)>,
    pending: Vec<Pending>,
    probe: Option<Probe>,
    /// Resolutions that have ended: paths may wait for them.
    resolved: Vec<(Ipv4Addr, Option<MacAddr>)>,
}

impl Neighbours {
    pub(super) fn new(config: ArpConfig) -> Self {
        Self { config, cache: HashMap::new(), pending: Vec::new(), probe: None, resolved: Vec::new() }
    }

    /// The Ethernet address of a neighbour, if it is known.
    pub(super) fn lookup(&self, now: Instant, hop: Ipv4Addr) -> Option<MacAddr> {
        self.cache.get(&hop).filter(|(_, expires)| now < *expires).map(|(mac, _)| *mac)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let pending = self.pending.iter().map(|p| p.next).min();
        earliest(pending, self.probe.as_ref().map(|p| p.next))
    }
}

impl Interface {
    /// Resolves the Ethernet address on the way to `ip`. [`NetworkEvent::Resolved`] or [`NetworkEvent::Unreachable`] follows.
    pub fn resolve(&mut self, now: Instant, ip: Ipv4Addr) {
        match self.next_hop(ip) {
            None => self.events.push_back(NetworkEvent::Unreachable { ip }),
            Some(hop) => match self.neighbours.lookup(now, hop) {
                Some(mac) => self.events.push_back(NetworkEvent::Resolved { ip: hop, mac }),
                None => self.resolve_hop(now, hop, true),
            },
        }
    }

    /// Resolves a neighbour's address. The result comes from [`Self::take_resolved`], and as an event if `report`.
    pub(super) fn resolve_hop(&mut self, now: Instant, hop: Ipv4Addr, report: bool) {
        let neighbours = &mut self.neighbours;
        if let Some(p) = neighbours.pending.iter_mut().find(|p| p.ip == hop) {
            p.report |= report;
        } else if neighbours.pending.len() < PENDING_LIMIT {
            let tries_left = neighbours.config.tries.max(1);
            neighbours.pending.push(Pending { ip: hop, tries_left, next: now, report });
        } else {
            neighbours.resolved.push((hop, None));
            if report {
                self.events.push_back(NetworkEvent::Unreachable { ip: hop });
            }
        }
    }

    /// Resolutions that have ended since the last call.
    pub(super) fn take_resolved(&mut self) -> Vec<(Ipv4Addr, Option<MacAddr>)> {
        core::mem::take(&mut self.neighbours.resolved)
    }

    /// Probes for another host with `ip` (RFC 5227). [`NetworkEvent::AddressProbed`] follows.
    pub fn probe_address(&mut self, now: Instant, ip: Ipv4Addr) {
        self.neighbours.probe = Some(Probe { ip, left: self.neighbours.config.probes.max(1), next: now });
    }

    /// Announces this interface's address to all neighbours.
    pub(super) fn announce(&mut self) {
        self.send_arp(&ArpPacket::request(self.mac, self.ip, self.ip));
    }

    fn send_arp(&mut self, packet: &ArpPacket) {
        if self.queue.push(|buf| packet.write(buf)) {
            self.counters.tx_arp += 1;
        } else {
            self.counters.tx_queue_full += 1;
        }
    }

    /// Receives an ARP frame.
    pub(super) fn receive_arp(&mut self, now: Instant, frame: &[u8]) -> Result<(), Discard> {
        let packet = ArpPacket::parse(frame)?;
        if packet.sender_mac == self.mac || packet.sender_mac.is_multicast() {
            return Err(Discard::ArpIgnored);
        }
        let probing = self.neighbours.probe.as_ref().map(|p| p.ip);
        // Another host has the address, or probes for it too (RFC 5227 2.1.1).
        let probes = packet.sender_ip.is_unspecified() && packet.operation == Operation::Request;
        let conflict = probing.is_some_and(|ip| packet.sender_ip == ip || probes && packet.target_ip == ip);
        if conflict {
            let ip = self.neighbours.probe.take().map_or(packet.sender_ip, |p| p.ip);
            self.events.push_back(NetworkEvent::AddressProbed { ip, owner: Some(packet.sender_mac) });
        }
        let for_us = packet.target_ip == self.ip && !self.ip.is_unspecified();
        let pending = self.neighbours.pending.iter().any(|p| p.ip == packet.sender_ip);
        let known = self.neighbours.cache.contains_key(&packet.sender_ip);
        if !packet.sender_ip.is_unspecified() && (for_us || pending || known) {
            self.learn(now, packet.sender_ip, packet.sender_mac);
        }
        if for_us && packet.operation == Operation::Request {
            self.send_arp(&packet.reply(self.mac));
        } else if !(conflict || pending || known) {
            return Err(Discard::ArpIgnored);
        }
        self.counters.rx_arp += 1;
        Ok(())
    }

    fn learn(&mut self, now: Instant, ip: Ipv4Addr, mac: MacAddr) {
        let neighbours = &mut self.neighbours;
        if neighbours.cache.len() >= CACHE_LIMIT
            && !neighbours.cache.contains_key(&ip)
            && let Some(oldest) = neighbours.cache.iter().min_by_key(|(_, (_, expires))| *expires).map(|(ip, _)| *ip)
        {
            neighbours.cache.remove(&oldest);
        }
        neighbours.cache.insert(ip, (mac, now + neighbours.config.lifetime));
        if let Some(i) = neighbours.pending.iter().position(|p| p.ip == ip) {
            if neighbours.pending.swap_remove(i).report {
                self.events.push_back(NetworkEvent::Resolved { ip, mac });
            }
            neighbours.resolved.push((ip, Some(mac)));
            self.send_pings(now);
        }
    }

    /// Handles the timers of resolutions and probes.
    pub(super) fn run_arp_timers(&mut self, now: Instant) {
        for i in (0..self.neighbours.pending.len()).rev() {
            let p = &mut self.neighbours.pending[i];
            if now < p.next {
                continue;
            }
            if p.tries_left == 0 {
                let Pending { ip, report, .. } = self.neighbours.pending.swap_remove(i);
                if report || self.ping_waits_for(ip) {
                    self.events.push_back(NetworkEvent::Unreachable { ip });
                }
                self.neighbours.resolved.push((ip, None));
            } else {
                p.tries_left -= 1;
                p.next = now + self.neighbours.config.retry_interval;
                let request = ArpPacket::request(self.mac, self.ip, p.ip);
                self.send_arp(&request);
            }
        }
        if let Some(p) = &mut self.neighbours.probe
            && p.next <= now
        {
            let ip = p.ip;
            if p.left == 0 {
                self.neighbours.probe = None;
                self.events.push_back(NetworkEvent::AddressProbed { ip, owner: None });
            } else {
                p.left -= 1;
                p.next = now + self.neighbours.config.probe_interval;
                self.send_arp(&ArpPacket::request(self.mac, Ipv4Addr::UNSPECIFIED, ip));
            }
        }
    }
}
