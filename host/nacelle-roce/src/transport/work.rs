// SPDX-License-Identifier: Apache-2.0
//! Work requests.

use super::Transport;
use crate::{Completion, ConnId, Data, Instant, Phase, PostError, QpState, RecvWr, SendOp, SendWr, WcOpcode, WcStatus};
use core::time::Duration;

/// A place in a connection's send queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SendMark(u64);

impl Transport {
    /// Posts a work request to a connection's send queue.
    pub fn post_send(&mut self, id: ConnId, wr: SendWr) -> Result<(), PostError> {
        let alive = self.may_post_send(id, &wr)?;
        let conn = self.conns.get_mut(id).ok_or(PostError::UnknownConnection)?;
        let op = wr.op;
        conn.requester.post(wr, false)?;
        let (requester, _, mut env) = conn.split(&mut self.core);
        let c = env.counters();
        match op {
            SendOp::Send { .. } | SendOp::SendInvalidate { .. } => c.rdma_sends += 1,
            SendOp::Write { .. } => c.rdma_writes += 1,
            SendOp::Read { .. } => c.rdma_reads += 1,
            SendOp::FetchAdd { .. } | SendOp::CmpSwap { .. } => c.rdma_atomics += 1,
            SendOp::LocalInvalidate { .. } => {}
        }
        if !alive {
            requester.flush(&mut env, |_| WcStatus::WrFlushErr);
        }
        self.touch(id);
        Ok(())
    }

    /// What has been posted to a connection's send queue up to now, for [`Self::confirm`].
    pub fn send_mark(&self, id: ConnId) -> Option<SendMark> {
        self.conns.get(id).map(|conn| SendMark(conn.requester.posted()))
    }

    /// Work requests in a connection's send queue; 0 once it is gone.
    pub fn sends(&self, id: ConnId) -> usize {
        self.conns.get(id).map_or(0, |conn| conn.requester.len())
    }

    /// Whether both sides let acknowledgements follow the application's answers.
    pub fn acknowledges_late(&self, id: ConnId) -> bool {
        self.conns.get(id).is_some_and(|conn| conn.late_acknowledgement)
    }

    /// The peer has executed all requests before `mark`, as its application's answer shows: they complete as if acknowledged.
    /// What has not been sent, and READs and atomics without their responses, are left as they are.
    pub fn confirm(&mut self, now: Instant, id: ConnId, mark: SendMark) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        let (requester, _, mut env) = conn.split(&mut self.core);
        requester.confirm(now, mark.0, &mut env);
        self.touch(id);
    }

    /// Lets no request packet of a connection leave before `at`, and no acknowledgement wait for that: for a peer that needs time
    /// between its message and the next request.
    pub fn hold(&mut self, now: Instant, id: ConnId, at: Instant) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.not_before = (at > now).then_some(at);
        self.touch(id);
    }

    /// Lets the acknowledgement of a SEND, or of a WRITE without immediate, wait for so long, or until the peer's next message is
    /// acknowledged: for a peer that loses its own completion if that comes while it still handles the one before. `delay` should
    /// be much shorter than the peer's acknowledgement timeout. The acknowledgement of a message that consumes a receive is repeated
    /// three times within `delay`: such a peer may take no request before it has it, and it may be lost.
    pub fn delay_acknowledgements(&mut self, id: ConnId, delay: Duration) {
        if let Some(conn) = self.conns.get_mut(id) {
            conn.ack_delay = (!delay.is_zero()).then_some(delay);
        }
    }

    /// Posts a receive. Allowed before a connection is established, because the peer's first SEND may follow at once; for a
    /// queue pair without connection management from INIT on.
    pub fn post_recv(&mut self, id: ConnId, wr: RecvWr) -> Result<(), PostError> {
        let conn = self.conns.get_mut(id).ok_or(PostError::UnknownConnection)?;
        if matches!(conn.phase, Phase::Lingering | Phase::DreqSent | Phase::Unmanaged(QpState::Reset)) {
            return Err(PostError::NotConnected);
        }
        // An accepting side has not chosen its domain yet; the slice is checked again when it is filled.
        let domain = conn.options.domain;
        let fits = |slice| {
            let undecided = conn.phase == Phase::ReqReceived && self.core.regions.contains(slice);
            undecided || self.core.regions.is_usable(id, domain, slice)
        };
        if !wr.slice.is_none_or(fits) {
            return Err(PostError::BadSlice);
        }
        if conn.phase == Phase::Unmanaged(QpState::Err) {
            let (_, _, mut env) = conn.split(&mut self.core);
            env.complete(Completion::new(id, wr.id, WcOpcode::Recv, WcStatus::WrFlushErr));
            return Ok(());
        }
        conn.responder.post(wr)
    }

    /// Whether a work request can be posted now; `Ok(false)` if it can only be flushed.
    fn may_post_send(&self, id: ConnId, wr: &SendWr) -> Result<bool, PostError> {
        let conn = self.conns.get(id).ok_or(PostError::UnknownConnection)?;
        let alive = match conn.phase {
            Phase::Established | Phase::Unmanaged(QpState::Rts | QpState::Sqd) => true,
            Phase::Unmanaged(QpState::Err) => false,
            _ => return Err(PostError::NotConnected),
        };
        let usable = match (&wr.op, &wr.data) {
            (SendOp::FetchAdd { .. } | SendOp::CmpSwap { .. }, data) if data.len() != 8 => false,
            (_, Data::Region(slice)) => self.core.regions.is_usable(id, conn.options.domain, *slice),
            (op, Data::Inline(bytes)) => !op.has_response() || bytes.is_empty(),
        };
        if !usable {
            return Err(PostError::BadSlice);
        }
        if wr.op.has_response() && conn.initiator_depth == 0 {
            return Err(PostError::NotAgreed);
        }
        Ok(alive)
    }
}
