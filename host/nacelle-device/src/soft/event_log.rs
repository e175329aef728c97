// SPDX-License-Identifier: Apache-2.0
//! What has happened, as the RTL keeps it (docs/reference/event-log.md), and its registers. Its ticks are microseconds.

use std::net::{IpAddr, Ipv4Addr};

use nacelle_manage::event_log::{Closed, Entry, Kind, NO_ENTRY, RING_ENTRIES, RINGS};
use nacelle_manage::map::{Register, event_log as map, histograms};
use nacelle_roce::wire::cm::RejReason;
use nacelle_roce::{ConnId, ConnectFailure, DisconnectReason, Event, WcStatus};
use nacelle_wire::admission::Why;

use super::SoftEngine;

const TICKS_HZ: u32 = 1_000_000;
const TICKS_MASK: u64 = (1 << 48) - 1;

/// The entries of one ring.
#[derive(Default)]
struct Ring {
    head: u32,
    entries: [[u32; 4]; RING_ENTRIES as usize],
}

/// All rings.
#[derive(Default)]
pub(super) struct EventLog([Ring; RINGS as usize]);

impl EventLog {
    fn write(&mut self, ticks: u64, kind: Kind, a: u32, b: u32) {
        let ring = &mut self.0[kind.ring() as usize];
        let place = (ring.head % RING_ENTRIES) as usize;
        ring.entries[place] = Entry { number: ring.head, ticks, kind, a, b }.words();
        ring.head = ring.head.wrapping_add(1);
    }

    /// Reads a register at `ticks`.
    fn read(&self, address: u32, ticks: u64) -> Option<u32> {
        let word = |register: &Register, words: u32| {
            let offset = address.checked_sub(register.at(map::BASE))?;
            (offset % 4 == 0 && offset / 4 < words).then_some(offset / 4)
        };
        let is = |register: &Register| word(register, 1).is_some();
        if is(&map::TYPE) {
            return Some(u32::from_be_bytes(map::BLOCK.kind));
        } else if is(&map::VERSION) {
            return Some(map::BLOCK.version);
        } else if is(&map::NEXT) {
            return Some(histograms::BASE);
        } else if is(&map::LOST) {
            return Some(0);
        } else if is(&map::TICKS_HZ) {
            return Some(TICKS_HZ);
        } else if is(&map::NOW_LO) {
            return Some(ticks as u32);
        } else if is(&map::NOW_HI) {
            return Some((ticks >> 32) as u32);
        } else if let Some(ring) = word(&map::HEAD, RINGS) {
            return Some(self.0[ring as usize].head);
        }
        let word = word(&map::WORDS, RINGS * RING_ENTRIES * 4)?;
        let (entry, word) = (word / 4, word % 4);
        let ring = &self.0[(entry / RING_ENTRIES) as usize];
        Some(ring.entries[(entry % RING_ENTRIES) as usize][word as usize])
    }
}

fn word_of(peer: IpAddr) -> u32 {
    match peer.to_canonical() {
        IpAddr::V4(peer) => peer.to_bits(),
        IpAddr::V6(_) => 0,
    }
}

/// The number that verbs gives a status.
const fn status_code(status: WcStatus) -> u32 {
    match status {
        WcStatus::Success => 0,
        WcStatus::LocLenErr => 1,
        WcStatus::LocQpOpErr => 2,
        WcStatus::LocProtErr => 4,
        WcStatus::WrFlushErr => 5,
        WcStatus::BadRespErr => 7,
        WcStatus::LocAccessErr => 8,
        WcStatus::RemInvReqErr => 9,
        WcStatus::RemAccessErr => 10,
        WcStatus::RemOpErr => 11,
        WcStatus::RetryExceeded => 12,
        WcStatus::RnrRetryExceeded => 13,
    }
}

/// A connection of which the log has said that it was opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Party {
    pub(super) peer: IpAddr,
    pub(super) qpn: u32,
}

impl SoftEngine {
    fn ticks(&self) -> u64 {
        (self.clock.now().as_nanos() / 1000) & TICKS_MASK
    }

    pub(super) fn read_event_log(&self, address: u32) -> Option<u32> {
        self.event_log.read(address, self.ticks())
    }

    pub(super) fn log(&mut self, kind: Kind, a: u32, b: u32) {
        self.event_log.write(self.ticks(), kind, a, b);
    }

    pub(super) fn log_enabled(&mut self, address: IpAddr) {
        self.log(Kind::ENABLED, word_of(address), 0);
    }

    pub(super) fn log_opened(&mut self, party: Party, by: Option<u8>) {
        let entry = u32::from(by.unwrap_or(NO_ENTRY));
        self.log(Kind::OPENED, word_of(party.peer), entry << 24 | party.qpn);
    }

    pub(super) fn log_closed(&mut self, party: Party, why: Closed) {
        self.log(Kind::CLOSED, word_of(party.peer), (why as u32) << 24 | party.qpn);
    }

    pub(super) fn log_refused(&mut self, peer: IpAddr, reason: RejReason, why: Option<Why>) {
        let why = why.map_or(0, |why| why as u32);
        self.log(Kind::REFUSED, word_of(peer), u32::from(reason.0) << 16 | why);
    }

    /// A client of the registers over the network has been counted.
    pub(super) fn log_session(&mut self, counter: &str, client: Ipv4Addr) {
        match counter {
            "login" => self.log(Kind::LOGIN, client.to_bits(), 0),
            "login_wrong" => self.log(Kind::LOGIN_WRONG, client.to_bits(), 0),
            "login_refused" => self.log(Kind::LOGIN_REFUSED, client.to_bits(), 0),
            // Of another client than the one whose packet shows it.
            "session_expired" => self.log(Kind::SESSION_EXPIRED, 0, 0),
            _ => {}
        }
    }

    fn party(&self, conn: ConnId) -> Option<Party> {
        let session = self.sessions.0.get(&conn).map(|session| session.party);
        session.or_else(|| self.managed_party(conn))
    }

    /// What an event of the endpoint says of a connection, before anything is done about it.
    pub(super) fn log_event(&mut self, event: &Event) {
        match *event {
            Event::Connected { conn, .. } => {
                // A caller's was logged when it was accepted.
                if let Some(party) = self.managed_party(conn) {
                    self.log_opened(party, None);
                }
            }
            Event::ConnectFailed { conn, ref reason } => match (self.party(conn), reason) {
                (Some(party), ConnectFailure::Rejected { reason, .. }) if self.is_managed(conn) => {
                    self.log(Kind::CONNECT_FAILED, word_of(party.peer), reason.0.into());
                }
                (Some(party), _) if self.is_managed(conn) => {
                    self.log(Kind::CONNECT_FAILED, word_of(party.peer), 0);
                }
                (Some(party), _) => self.log_closed(party, Closed::Timeout),
                (None, _) => {}
            },
            Event::Disconnected { conn, reason, .. } => {
                let Some(party) = self.party(conn) else { return };
                let why = match reason {
                    DisconnectReason::Local => Closed::Device,
                    DisconnectReason::Remote => Closed::Peer,
                    DisconnectReason::PeerGone => Closed::Stale,
                    DisconnectReason::Error(status) => {
                        self.log(Kind::QP_FAILED, status_code(status), party.qpn);
                        Closed::Device
                    }
                };
                self.log_closed(party, why);
            }
            _ => {}
        }
    }
}
