// SPDX-License-Identifier: Apache-2.0
//! Queue pairs by hand, without connection management: created, moved through the states of the verbs (IBTA 10.3.1),
//! destroyed. What the two sides must know of each other, the application exchanges by itself.

use crate::{
    ConnId, ConnectOptions, Data, Endpoint, Event, Instant, Phase, ProtectionDomain,
    cm::{Beginning, source_port},
    qp::{Requester, Responder},
};
use core::{net::Ipv4Addr, time::Duration};
use nacelle_wire::{MacAddr, Psn, Qpn, bth::RnrTimer, cm::PathMtu, roce::Flow};

/// State of a queue pair, with the names of the verbs (`ibv_qp_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QpState {
    /// Just made: nothing works.
    Reset,
    /// Receives may be posted.
    Init,
    /// Ready to receive: requests of the peer are served.
    Rtr,
    /// Ready to send: everything works.
    Rts,
    /// The send queue drains: what has begun is finished, nothing begins. The peer is served.
    Sqd,
    /// Send queue error. Only unreliable services have it; a queue pair of this endpoint goes to [`Self::Err`] instead
    /// (IBTA 10.3.1.6).
    Sqe,
    /// Failed, or stopped: work requests are flushed.
    Err,
}

/// How [`modify_qp`](Endpoint::modify_qp) moves a queue pair on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QpModify {
    /// From any state. Work requests are flushed, and the queue pair is as new.
    Reset,
    /// From RESET or INIT.
    Init,
    /// From INIT.
    Rtr(Rtr),
    /// From RTR.
    Rts(Rts),
    /// From RTS. [`Event::SendQueueDrained`] tells when what has begun is over.
    Sqd,
    /// From SQD back to RTS.
    Resume,
    /// From any state. Work requests are flushed.
    Err,
}

/// What a queue pair must know to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtr {
    /// The peer.
    pub peer_ip: Ipv4Addr,
    /// The Ethernet address on the way to it. Without one it must be known already: see
    /// [`resolve`](Endpoint::resolve).
    pub peer_mac: Option<MacAddr>,
    /// The peer's queue pair (`dest_qp_num`).
    pub remote_qpn: Qpn,
    /// PSN at which the peer begins (`rq_psn`).
    pub receive_psn: Psn,
    /// Payload bytes of a full packet (`path_mtu`).
    pub path_mtu: PathMtu,
    /// READs and atomics that the peer may have outstanding (`max_dest_rd_atomic`). Default 16.
    pub responder_resources: u8,
    /// Time that the peer is asked to wait when no receive is posted (`min_rnr_timer`). Default code 12, 0.64 ms.
    pub rnr_timer: RnrTimer,
    /// Send only lost packets again; the peer must do the same. Default false.
    pub selective_repeat: bool,
}

impl Rtr {
    /// Defaults for this peer.
    pub fn new(peer_ip: Ipv4Addr, remote_qpn: Qpn, receive_psn: Psn, path_mtu: PathMtu) -> Self {
        Self {
            peer_ip,
            peer_mac: None,
            remote_qpn,
            receive_psn,
            path_mtu,
            responder_resources: 16,
            rnr_timer: RnrTimer::new(12),
            selective_repeat: false,
        }
    }
}

/// What a queue pair must know to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rts {
    /// PSN at which this side begins (`sq_psn`).
    pub send_psn: Psn,
    /// READs and atomics that this side may have outstanding (`max_rd_atomic`). Default 16.
    pub initiator_depth: u8,
    /// Time before unacknowledged packets are sent again the first time (`timeout`). Default 500 ms.
    pub ack_timeout: Duration,
    /// Retries without progress, up to 7 (`retry_cnt`). Default 7.
    pub retry_count: u8,
    /// Retries on receiver-not-ready, up to 7, where 7 is without limit (`rnr_retry`). Default 6.
    pub rnr_retry: u8,
}

impl Rts {
    /// Defaults for this starting PSN.
    pub fn new(send_psn: Psn) -> Self {
        let ConnectOptions { initiator_depth, ack_timeout, retry_count, rnr_retry, .. } = ConnectOptions::default();
        Self { send_psn, initiator_depth, ack_timeout, retry_count, rnr_retry }
    }
}

/// Why a queue pair was not made or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QpError {
    /// No such queue pair.
    #[error("no such queue pair")]
    Unknown,
    /// The table is full.
    #[error("too many queue pairs")]
    TooMany,
    /// It belongs to the connection manager: use `disconnect`.
    #[error("the connection manager owns this queue pair")]
    Managed,
    /// The state machine has no such transition.
    #[error("not possible from {0:?}")]
    Transition(QpState),
    /// No such protection domain.
    #[error("no such protection domain")]
    UnknownDomain,
    /// The address is not on this network, and there is no gateway.
    #[error("no route to {0}")]
    NoRoute(Ipv4Addr),
    /// The Ethernet address on the way to it is not known: resolve it first.
    #[error("the Ethernet address of {0} is not known")]
    Unresolved(Ipv4Addr),
    /// The path MTU is larger than the link's.
    #[error("the path MTU does not fit the link")]
    Mtu,
    /// Queue pairs 0 and 1 are special.
    #[error("not the number of an ordinary queue pair")]
    RemoteQpn,
}

impl Endpoint {
    /// Makes a queue pair in RESET, in the domain that `options` names. Of the options its queues, windows and times
    /// count.
    pub fn create_qp(&mut self, now: Instant, options: ConnectOptions) -> Result<ConnId, QpError> {
        if !self.core.regions.has_domain(options.domain) {
            return Err(QpError::UnknownDomain);
        }
        if self.conns.is_full() {
            return Err(QpError::TooMany);
        }
        let nobody = Ipv4Addr::UNSPECIFIED;
        let path_mtu = PathMtu::Mtu256;
        let id =
            self.insert(now, Beginning { active: true, peer_ip: nobody, next_hop: nobody, port: 0, path_mtu, options });
        if let Some(conn) = self.conns.get_mut(id) {
            conn.phase = Phase::Manual(QpState::Reset);
        }
        Ok(id)
    }

    fn manual_state(&self, id: ConnId) -> Result<QpState, QpError> {
        match self.conns.get(id).ok_or(QpError::Unknown)?.phase {
            Phase::Manual(state) => Ok(state),
            _ => Err(QpError::Managed),
        }
    }

    /// Moves a queue pair made by [`Self::create_qp`] to another state. [`Self::connection`] tells where it is.
    pub fn modify_qp(&mut self, now: Instant, id: ConnId, to: QpModify) -> Result<(), QpError> {
        use QpState::*;
        let from = self.manual_state(id)?;
        let state = match (from, to) {
            (_, QpModify::Reset) => {
                self.stop_qp(id);
                self.renew_qp(id);
                Reset
            }
            (_, QpModify::Err) => {
                self.stop_qp(id);
                Err
            }
            (Reset | Init, QpModify::Init) => Init,
            (Init, QpModify::Rtr(rtr)) => {
                self.begin_to_receive(now, id, rtr)?;
                Rtr
            }
            (Rtr, QpModify::Rts(rts)) => {
                self.begin_to_send(now, id, rts);
                Rts
            }
            (Rts, QpModify::Sqd) => Sqd,
            (Sqd, QpModify::Resume) => Rts,
            _ => return Result::Err(QpError::Transition(from)),
        };
        if let Some(conn) = self.conns.get_mut(id) {
            conn.phase = Phase::Manual(state);
            conn.requester.pause(state == Sqd);
        }
        self.touch(id);
        Ok(())
    }

    /// Removes a queue pair made by [`Self::create_qp`], in whatever state it is. Its work requests are flushed.
    pub fn destroy_qp(&mut self, id: ConnId) -> Result<(), QpError> {
        self.manual_state(id)?;
        self.stop_qp(id);
        self.conns.remove(id);
        Ok(())
    }

    /// Flushes a queue pair's work and drops what it had to say.
    fn stop_qp(&mut self, id: ConnId) {
        self.flush(id);
        if let Some(conn) = self.conns.get_mut(id) {
            conn.responder.hush();
        }
    }

    fn renew_qp(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.requester = Requester::new(&conn.options);
        conn.responder = Responder::new(&conn.options);
        conn.flow = None;
        conn.peer_ip = Ipv4Addr::UNSPECIFIED;
        conn.peer_mac = None;
        conn.remote_qpn = Qpn::default();
    }

    fn begin_to_receive(&mut self, now: Instant, id: ConnId, rtr: Rtr) -> Result<(), QpError> {
        if rtr.remote_qpn.get() <= Qpn::GSI.get() {
            return Err(QpError::RemoteQpn);
        }
        if Some(rtr.path_mtu) > self.max_mtu {
            return Err(QpError::Mtu);
        }
        let hop = self.net.next_hop(rtr.peer_ip).ok_or(QpError::NoRoute(rtr.peer_ip))?;
        let mac = rtr.peer_mac.or_else(|| self.net.lookup(now, hop)).ok_or(QpError::Unresolved(rtr.peer_ip))?;
        let (own_mac, own_ip) = (self.net.mac, self.net.ip);
        let conn = self.conns.get_mut(id).ok_or(QpError::Unknown)?;
        conn.peer_ip = rtr.peer_ip;
        conn.next_hop = hop;
        conn.peer_mac = Some(mac);
        conn.flow = Some(Flow::new(own_mac, mac, own_ip, rtr.peer_ip, source_port(conn.local_qpn)));
        conn.remote_qpn = rtr.remote_qpn;
        conn.path_mtu = rtr.path_mtu;
        conn.receive_psn = rtr.receive_psn;
        conn.responder_resources = rtr.responder_resources;
        conn.selective_repeat = rtr.selective_repeat;
        conn.options.rnr_timer = rtr.rnr_timer;
        conn.responder.configure(&conn.options);
        conn.responder.start(rtr.receive_psn, rtr.path_mtu.bytes());
        conn.stats.resolved = Some(now);
        Ok(())
    }

    fn begin_to_send(&mut self, now: Instant, id: ConnId, rts: Rts) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.send_psn = rts.send_psn;
        conn.initiator_depth = rts.initiator_depth;
        conn.options.ack_timeout = rts.ack_timeout;
        conn.options.retry_count = rts.retry_count;
        conn.options.rnr_retry = rts.rnr_retry;
        conn.requester = Requester::new(&conn.options);
        conn.requester.start(rts.send_psn, conn.path_mtu, rts.retry_count, rts.rnr_retry);
        conn.stats.established = Some(now);
    }

    /// A protection domain: regions and connections that belong together.
    pub fn alloc_domain(&mut self) -> ProtectionDomain {
        self.core.regions.alloc_domain()
    }

    /// Gives a protection domain back. Refused while a region or a connection is in it.
    pub fn dealloc_domain(&mut self, domain: ProtectionDomain) -> Result<(), crate::DomainError> {
        if self.conns.iter().any(|c| c.options.domain == domain) {
            return Err(crate::DomainError::Busy);
        }
        self.core.regions.dealloc_domain(domain)
    }

    /// All protection domains.
    pub fn domains(&self) -> impl Iterator<Item = ProtectionDomain> {
        self.core.regions.domains()
    }

    /// Starts anew, as after a restart: every connection and queue pair ends without a word to its peer, all work is
    /// flushed, and every region and protection domain is gone. Address, ports listened on and counters stay.
    pub fn reset(&mut self) {
        let ids: Vec<ConnId> = self.conns.iter().map(|c| c.id).collect();
        for id in ids {
            self.stop_qp(id);
            if self.manual_state(id).is_err() {
                self.tell_end(id, crate::DisconnectReason::Local, &[]);
            }
            self.conns.remove(id);
        }
        self.core.regions.clear();
    }

    /// Whether the endpoint can take a work request with this data now; `Ok(false)` if it only can be flushed.
    pub(crate) fn may_post_send(&self, id: ConnId, wr: &crate::SendWr) -> Result<bool, crate::PostError> {
        use crate::{PostError, SendOp};
        let conn = self.conns.get(id).ok_or(PostError::UnknownConnection)?;
        let alive = match conn.phase {
            Phase::Established | Phase::Manual(QpState::Rts | QpState::Sqd) => true,
            Phase::Manual(QpState::Err) => false,
            _ => return Err(PostError::NotConnected),
        };
        let usable = match (&wr.op, &wr.data) {
            (SendOp::FetchAdd { .. } | SendOp::CmpSwap { .. }, data) if data.len() != 8 => false,
            (_, Data::Region(slice)) => self.core.regions.is_usable(id, conn.options.domain, *slice),
            (op, Data::Inline(bytes)) => !op.is_answered() || bytes.is_empty(),
        };
        if !usable {
            return Err(PostError::BadSlice);
        }
        if wr.op.is_answered() && conn.initiator_depth == 0 {
            return Err(PostError::NotAgreed);
        }
        Ok(alive)
    }

    /// A queue pair by hand fails.
    pub(crate) fn fail_manual(&mut self, id: ConnId, status: crate::WcStatus) {
        if let Some(conn) = self.conns.get_mut(id) {
            conn.phase = Phase::Manual(QpState::Err);
            self.core.events.push_back(Event::QpFatal { conn: id, status });
        }
        self.touch(id);
    }
}
