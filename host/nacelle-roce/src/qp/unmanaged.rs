// SPDX-License-Identifier: Apache-2.0
//! Queue pairs without connection management: created, moved through the states of verbs (IBTA 10.3.1), destroyed. The
//! application exchanges addresses, queue pair numbers and PSNs by other means.

use crate::{
    ConnId, ConnectOptions, Event, Instant, Path, Phase, Transport,
    cm::Origin,
    qp::{Requester, Responder},
};
use core::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};
use nacelle_wire::{Psn, Qpn, bth::RnrTimer, cm::PathMtu};

/// State of a queue pair (`ibv_qp_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QpState {
    /// After creation: nothing can be posted.
    Reset,
    /// Receives may be posted.
    Init,
    /// Ready to receive: requests of the peer are executed.
    Rtr,
    /// Ready to send.
    Rts,
    /// Send queue drain: work requests that were started are finished, no others are started. Requests of the peer are
    /// executed.
    Sqd,
    /// Send queue error. Only unreliable services have it; a reliable connection goes to [`Self::Err`] instead
    /// (IBTA 10.3.1.6).
    Sqe,
    /// Error: work requests are flushed.
    Err,
}

/// How [`modify_qp`](Transport::modify_qp) changes the state of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QpModify {
    /// From any state. Work requests are flushed, and the queue pair is as after creation.
    Reset,
    /// From RESET or INIT.
    Init,
    /// From INIT.
    Rtr(Rtr),
    /// From RTR.
    Rts(Rts),
    /// From RTS. [`Event::SendQueueDrained`] follows.
    Sqd,
    /// From SQD back to RTS.
    Resume,
    /// From any state. Work requests are flushed.
    Err,
}

/// Attributes of the transition to RTR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtr {
    /// The way to the peer: see [`Interface::path`](crate::Interface::path).
    pub path: Path,
    /// The peer's queue pair (`dest_qp_num`).
    pub remote_qpn: Qpn,
    /// First PSN of the peer (`rq_psn`).
    pub receive_psn: Psn,
    /// Payload bytes of a full packet (`path_mtu`).
    pub path_mtu: PathMtu,
    /// READs and atomics that the peer may have outstanding (`max_dest_rd_atomic`). Default 16.
    pub responder_resources: u8,
    /// RNR timer (`min_rnr_timer`). Default code 12, 0.64 ms.
    pub rnr_timer: RnrTimer,
    /// Send only lost packets again; the peer must do the same. Default false.
    pub selective_repeat: bool,
}

impl Rtr {
    /// Defaults for this peer.
    pub fn new(path: Path, remote_qpn: Qpn, receive_psn: Psn, path_mtu: PathMtu) -> Self {
        Self {
            path,
            remote_qpn,
            receive_psn,
            path_mtu,
            responder_resources: 16,
            rnr_timer: RnrTimer::new(12),
            selective_repeat: false,
        }
    }
}

/// Attributes of the transition to RTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rts {
    /// First PSN of this side (`sq_psn`).
    pub send_psn: Psn,
    /// READs and atomics that this side may have outstanding (`max_rd_atomic`). Default 16.
    pub initiator_depth: u8,
    /// Time before the first retransmission (`timeout`). Default 500 ms.
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

/// Why a queue pair was not created or changed.
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
    /// The path MTU is larger than the link's.
    #[error("the path MTU does not fit the link")]
    Mtu,
    /// Queue pairs 0 and 1 are special.
    #[error("not the number of an ordinary queue pair")]
    RemoteQpn,
}

/// Peer of a queue pair that has none.
const NO_PEER: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

impl Transport {
    /// Creates a queue pair in RESET, in the domain that `options` names. Of the options, sizes, windows and times are used.
    pub fn create_qp(&mut self, now: Instant, options: ConnectOptions) -> Result<ConnId, QpError> {
        if !self.core.regions.has_domain(options.domain) {
            return Err(QpError::UnknownDomain);
        }
        if self.conns.is_full() {
            return Err(QpError::TooMany);
        }
        let origin = Origin { active: true, peer: NO_PEER, path: None, port: 0, path_mtu: PathMtu::Mtu256, options };
        let id = self.insert(now, origin);
        if let Some(conn) = self.conns.get_mut(id) {
            conn.phase = Phase::Unmanaged(QpState::Reset);
        }
        Ok(id)
    }

    fn unmanaged_state(&self, id: ConnId) -> Result<QpState, QpError> {
        match self.conns.get(id).ok_or(QpError::Unknown)?.phase {
            Phase::Unmanaged(state) => Ok(state),
            _ => Err(QpError::Managed),
        }
    }

    /// Changes the state of a queue pair made by [`Self::create_qp`]. [`Self::connection`] returns the current one.
    pub fn modify_qp(&mut self, now: Instant, id: ConnId, to: QpModify) -> Result<(), QpError> {
        use QpState::*;
        let from = self.unmanaged_state(id)?;
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
                self.ready_to_receive(now, id, rtr)?;
                Rtr
            }
            (Rtr, QpModify::Rts(rts)) => {
                self.ready_to_send(now, id, rts);
                Rts
            }
            (Rts, QpModify::Sqd) => Sqd,
            (Sqd, QpModify::Resume) => Rts,
            _ => return Result::Err(QpError::Transition(from)),
        };
        if let Some(conn) = self.conns.get_mut(id) {
            conn.phase = Phase::Unmanaged(state);
            conn.requester.pause(state == Sqd);
        }
        self.touch(id);
        Ok(())
    }

    /// Destroys a queue pair made by [`Self::create_qp`], in any state. Its work requests are flushed.
    pub fn destroy_qp(&mut self, id: ConnId) -> Result<(), QpError> {
        self.unmanaged_state(id)?;
        self.stop_qp(id);
        self.conns.remove(id);
        Ok(())
    }

    /// Flushes a queue pair's work requests and discards its responses.
    fn stop_qp(&mut self, id: ConnId) {
        self.flush(id);
        if let Some(conn) = self.conns.get_mut(id) {
            conn.responder.discard_responses();
        }
    }

    fn renew_qp(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.requester = Requester::new(&conn.options);
        conn.responder = Responder::new(&conn.options);
        conn.path = None;
        conn.peer = NO_PEER;
        conn.remote_qpn = Qpn::default();
    }

    fn ready_to_receive(&mut self, now: Instant, id: ConnId, rtr: Rtr) -> Result<(), QpError> {
        if rtr.remote_qpn.get() <= Qpn::GSI.get() {
            return Err(QpError::RemoteQpn);
        }
        if Some(rtr.path_mtu) > self.max_path_mtu() {
            return Err(QpError::Mtu);
        }
        let conn = self.conns.get_mut(id).ok_or(QpError::Unknown)?;
        conn.peer = rtr.path.remote;
        conn.path = Some(rtr.path);
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

    fn ready_to_send(&mut self, now: Instant, id: ConnId, rts: Rts) {
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

    /// Resets the transport: destroys every connection and queue pair without a message to its peer, flushes all work
    /// requests, and frees every region and protection domain. Ports listened on and counters stay.
    pub fn reset(&mut self) {
        let ids: Vec<ConnId> = self.conns.iter().map(|c| c.id).collect();
        for id in ids {
            self.stop_qp(id);
            if self.unmanaged_state(id).is_err() {
                self.report_end(id, crate::DisconnectReason::Local, &[]);
            }
            self.conns.remove(id);
        }
        self.core.regions.clear();
    }

    /// A queue pair without connection management fails.
    pub(crate) fn fail_unmanaged(&mut self, id: ConnId, status: crate::WcStatus) {
        if let Some(conn) = self.conns.get_mut(id) {
            conn.phase = Phase::Unmanaged(QpState::Err);
            self.core.events.push_back(Event::QpFatal { conn: id, status });
        }
        self.touch(id);
    }
}
