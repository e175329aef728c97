// SPDX-License-Identifier: Apache-2.0
//! One connection: its place in the table, its state in connection management, and its queue pair.

use crate::{
    ConnInfo, ConnStats, ConnectOptions, Event, Instant, Path, Phase, QpCounters, QpState, TransportCounters,
    cc::Pace,
    deadlines::Deadlines,
    qp::{Agreed, Env, NextResponse, Requester, Responder},
    region::RegionTable,
    time::earliest,
};
use core::{net::IpAddr, time::Duration};
use nacelle_wire::{
    Psn, Qpn,
    cm::{MAD_LEN, PathMtu},
    extensions::{Agreement, Extensions},
};
use std::collections::VecDeque;

/// Names a connection of one endpoint. Never reused for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl ConnId {
    /// A name for a connection of another kind of endpoint, such as one of an RDMA NIC, that gives the same types to its users.
    #[must_use]
    pub const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) regions: RegionTable,
    pub(crate) counters: TransportCounters,
    pub(crate) events: VecDeque<Event>,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnId,
    pub(crate) phase: Phase,
    /// This side sent the REQ.
    pub(crate) active: bool,
    pub(crate) options: ConnectOptions,
    pub(crate) peer: IpAddr,
    /// The way to the peer, once it is known.
    pub(crate) path: Option<Path>,
    pub(crate) port: u16,
    pub(crate) local_qpn: Qpn,
    pub(crate) remote_qpn: Qpn,
    pub(crate) remote_guid: Option<u64>,
    pub(crate) local_comm_id: u32,
    pub(crate) remote_comm_id: u32,
    pub(crate) transaction_id: u64,
    pub(crate) path_mtu: PathMtu,
    /// First PSN of the peer.
    pub(crate) receive_psn: Psn,
    /// First PSN of this side; on the accepting side from the REQ.
    pub(crate) send_psn: Psn,
    /// Time before a CM message is repeated, and number of repetitions: on the accepting side those of the REQ, within bounds.
    pub(crate) cm_timeout: Duration,
    pub(crate) cm_retries: u8,
    pub(crate) peer_retry_count: u8,
    pub(crate) peer_rnr_retry: u8,
    /// READs and atomics that this side serves at a time, as agreed.
    pub(crate) responder_resources: u8,
    /// READs and atomics that this side may have outstanding, as agreed.
    pub(crate) initiator_depth: u8,
    /// Both sides send only lost packets again.
    pub(crate) selective_repeat: bool,
    /// Acknowledgements may follow the application's answers.
    pub(crate) late_acknowledgement: bool,
    /// How long acknowledgements wait for more, as the application wants it.
    pub(crate) ack_delay: Option<Duration>,
    /// The peer's REQ or REP has a record of extensions.
    pub(crate) has_record: bool,
    /// The application lets no request leave before.
    pub(crate) not_before: Option<Instant>,
    /// What the applications have agreed on.
    pub(crate) agreement: Agreement,
    /// What the peer's request offers.
    pub(crate) offered: Agreement,
    /// The last CM message, for repetition.
    pub(crate) mad: Box<[u8; MAD_LEN]>,
    pub(crate) tries_left: u8,
    pub(crate) cm_deadline: Option<Instant>,
    /// The event of its end has been given.
    pub(crate) end_reported: bool,
    pub(crate) requester: Requester,
    pub(crate) responder: Responder,
    pub(crate) pace: Pace,
    pub(crate) stats: ConnStats,
    pub(crate) acknowledge_queued: bool,
    pub(crate) send_queued: bool,
    /// The application wants to know when anything happens to it.
    pub(crate) is_watched: bool,
}

impl Connection {
    /// Requester, responder, and what they work with.
    pub(crate) fn split<'a>(&'a mut self, core: &'a mut Core) -> (&'a mut Requester, &'a mut Responder, Env<'a>) {
        let env = Env {
            conn: self.id,
            domain: self.options.domain,
            agreed: Agreed {
                responder_resources: self.responder_resources,
                initiator_depth: self.initiator_depth,
                selective_repeat: self.selective_repeat,
                late_acknowledgement: self.late_acknowledgement,
                ack_delay: self.ack_delay,
            },
            regions: &mut core.regions,
            events: &mut core.events,
            stats: &mut self.stats,
        };
        (&mut self.requester, &mut self.responder, env)
    }

    /// Both sides have agreed on these extensions of the transport, and on this of the applications.
    pub(crate) fn extend(&mut self, transport: Extensions, application: Agreement) {
        self.selective_repeat = transport.contains(Extensions::SELECTIVE_REPEAT);
        self.late_acknowledgement = transport.contains(Extensions::LATE_ACKNOWLEDGEMENT);
        self.agreement = application;
    }

    pub(crate) fn wants_to_send(&self) -> bool {
        matches!(self.phase, Phase::Established | Phase::Unmanaged(QpState::Rts | QpState::Sqd))
            && self.pace.held_until().is_none()
            && self.not_before.is_none()
            && self.requester.wants_to_send(self.initiator_depth, self.selective_repeat)
    }

    /// Whether an ACK, NAK, atomic response or CNP waits, which goes first.
    pub(crate) fn wants_to_acknowledge(&self) -> bool {
        self.responder.next_response() == Some(NextResponse::Short) || self.pace.cnp_due()
    }

    /// Whether a READ response waits for its turn.
    pub(crate) fn wants_to_send_data(&self) -> bool {
        self.pace.held_until().is_none() && self.responder.next_response() == Some(NextResponse::Data)
    }

    /// When to check that the peer is alive.
    pub(crate) fn keepalive_deadline(&self) -> Option<Instant> {
        let idle = self.phase == Phase::Established && self.requester.len() == 0;
        let heard = self.stats.last_received.or(self.stats.established)?;
        self.options.keepalive.filter(|_| idle).map(|t| heard + t)
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let qp = earliest(self.requester.next_deadline(), self.keepalive_deadline());
        let qp = earliest(qp, self.responder.next_deadline());
        let held = earliest(self.pace.held_until(), self.not_before);
        earliest(earliest(self.cm_deadline, held), qp)
    }

    pub(crate) fn info(&self) -> ConnInfo {
        ConnInfo {
            phase: self.phase,
            peer: self.peer,
            path: self.path,
            domain: self.options.domain,
            port: self.port,
            local_qpn: self.local_qpn,
            remote_qpn: (self.remote_qpn != Qpn::default()).then_some(self.remote_qpn),
            remote_guid: self.remote_guid,
            path_mtu: self.path_mtu,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            selective_repeat: self.selective_repeat,
            has_record: self.has_record,
            late_acknowledgement: self.late_acknowledgement,
            agreement: self.agreement,
            next_psn: self.requester.next_psn(),
            oldest_psn: self.requester.oldest_psn(),
            sends: self.requester.len(),
            recvs: self.responder.len(),
            rate_limit: self.pace.rate(),
            stats: self.stats,
        }
    }
}

/// The low bits of a queue pair number are the connection's place in the table.
const INDEX_BITS: u32 = 12;

/// Connections by index, and when the timers of each are to be looked at.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Vec<(u32, Option<Box<Connection>>)>,
    free: Vec<u32>,
    limit: usize,
    /// Sum of the counters of past connections.
    gone: QpCounters,
    /// High bits of the next queue pair number: a number is reused only after all others of its place.
    serial: u32,
    /// By index. None is later than the connection's; it may be earlier.
    deadlines: Deadlines,
}

impl Table {
    pub(crate) fn new(limit: usize, serial: u32) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            limit: limit.min(1 << INDEX_BITS),
            gone: QpCounters::default(),
            serial,
            deadlines: Deadlines::default(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty() && self.slots.len() >= self.limit
    }

    /// Adds the connection that `build` makes for a free place. Call only if the table is not full.
    pub(crate) fn insert(&mut self, build: impl FnOnce(ConnId, Qpn) -> Connection) -> ConnId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() as u32 - 1
        });
        // Never 0, so that the numbers of the special queue pairs do not occur.
        self.serial = self.serial % ((1 << (24 - INDEX_BITS)) - 1) + 1;
        let slot = &mut self.slots[index as usize];
        let id = ConnId { index, generation: slot.0 };
        slot.1 = Some(Box::new(build(id, Qpn::new(self.serial << INDEX_BITS | index))));
        id
    }

    pub(crate) fn remove(&mut self, id: ConnId) -> Option<Box<Connection>> {
        let slot = self.slots.get_mut(id.index as usize).filter(|s| s.0 == id.generation)?;
        let conn = slot.1.take()?;
        self.gone.add(&conn.stats.counters);
        slot.0 = slot.0.wrapping_add(1);
        self.deadlines.clear(id.index);
        self.free.push(id.index);
        Some(conn)
    }

    pub(crate) fn get(&self, id: ConnId) -> Option<&Connection> {
        self.slots.get(id.index as usize).filter(|s| s.0 == id.generation)?.1.as_deref()
    }

    pub(crate) fn get_mut(&mut self, id: ConnId) -> Option<&mut Connection> {
        self.slots.get_mut(id.index as usize).filter(|s| s.0 == id.generation)?.1.as_deref_mut()
    }

    /// When to look at timers at the latest.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first()
    }

    /// Takes a deadline of a connection into account.
    pub(crate) fn note_deadline(&mut self, id: ConnId, at: Instant) {
        self.deadlines.bring_forward(id.index, at);
    }

    /// A connection whose deadline has come, in the order of the deadlines. Its next one is to be noted.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<ConnId> {
        while let Some(index) = self.deadlines.pop(now) {
            let Some(conn) = self.slots.get(index as usize).and_then(|slot| slot.1.as_deref()) else { continue };
            match conn.next_deadline() {
                Some(at) if at <= now => return Some(conn.id),
                Some(put_off) => self.deadlines.bring_forward(index, put_off),
                None => {}
            }
        }
        None
    }

    pub(crate) fn by_qpn(&mut self, qpn: Qpn) -> Option<&mut Connection> {
        let index = qpn.get() & ((1 << INDEX_BITS) - 1);
        self.slots.get_mut(index as usize)?.1.as_deref_mut().filter(|c| c.local_qpn == qpn)
    }

    /// Adds what all connections counted, past and present.
    pub(crate) fn add_counters(&self, total: &mut TransportCounters) {
        total.add(&self.gone);
        self.iter().for_each(|c| total.add(&c.stats.counters));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.slots.iter().filter_map(|s| s.1.as_deref())
    }
}
