// SPDX-License-Identifier: Apache-2.0
//! The requester: work requests to packets, responses to completions, retransmission in between (IBTA 9.7.3, 9.7.5).
//!
//! Every work request owns a run of numbers from the moment it is posted; a number's low 24 bits, counted from the
//! starting PSN, are its PSN. A READ owns one for each of its response packets. Four numbers describe the state, in
//! this order: `unacked` (first not acknowledged), `next_send`, `max_sent` (one behind the last ever sent) and
//! `next_post` (the next work request's first). Going back is nothing but setting `next_send`; the packets are built
//! again from the work requests. A READ that was partly answered then requests the rest.
//!
//! - `send`: what may be sent, and the packets.
//! - `receive`: responses.
//! - `retry`: retransmission and timers.

mod posted;
mod receive;
mod retry;
mod send;

use super::{Env, MAX_MESSAGE, QpFailure};
use crate::{Completion, Instant, PostError, SendOp, SendWr, WcOpcode, WcStatus, config::ConnectOptions};
use core::time::Duration;
use nacelle_wire::{Psn, cm::PathMtu};
use posted::PostedSend;
use std::collections::VecDeque;

/// What has been sent again by selective repeat.
#[derive(Clone, Copy, Debug)]
struct Repeated {
    /// The missing packet.
    from: u64,
    /// The last one that was sent again with it.
    to: u64,
    /// The first that had not been sent at all.
    unsent: u64,
}

#[derive(Debug)]
pub(crate) struct Requester {
    wqes: VecDeque<PostedSend>,
    /// Index of the work request that `next_send` belongs to.
    cursor: usize,
    unacked: u64,
    next_send: u64,
    max_sent: u64,
    next_post: u64,
    /// PSN of number 0.
    base: Psn,
    /// READs and atomics among the work requests before the cursor: sent, and without a complete response.
    responses_owed: usize,
    /// Response packets among what is in flight: they take no room in the window.
    responses_due: u64,
    /// The packet to send again next, and where that ends (selective repeat).
    repeat: Option<(u64, u64)>,
    repeated: Option<Repeated>,
    /// The missing response whose request has been repeated.
    hole: Option<u64>,
    /// Start no further work request (SQD).
    paused: bool,
    /// Report when all work requests that were started are done.
    draining: bool,
    mtu: PathMtu,
    window: u32,
    depth: usize,
    /// Packets since the last one with AckReq set.
    since_ack_req: u32,
    ack_timeout: Duration,
    max_ack_timeout: Duration,
    retry_count: u8,
    rnr_retry: u8,
    retries_used: u8,
    rnr_retries_used: u8,
    ack_deadline: Option<Instant>,
    rnr_until: Option<Instant>,
}

impl Requester {
    pub(crate) fn new(options: &ConnectOptions) -> Self {
        Self {
            wqes: VecDeque::new(),
            cursor: 0,
            unacked: 0,
            next_send: 0,
            max_sent: 0,
            next_post: 0,
            base: Psn::default(),
            responses_owed: 0,
            responses_due: 0,
            repeat: None,
            repeated: None,
            hole: None,
            paused: false,
            draining: false,
            mtu: PathMtu::Mtu256,
            window: options.window.clamp(1, 1 << 20),
            depth: options.send_depth,
            since_ack_req: 0,
            ack_timeout: options.ack_timeout,
            max_ack_timeout: options.max_ack_timeout.max(options.ack_timeout),
            retry_count: options.retry_count.min(7),
            rnr_retry: options.rnr_retry.min(7),
            retries_used: 0,
            rnr_retries_used: 0,
            ack_deadline: None,
            rnr_until: None,
        }
    }

    /// The connection is set up: packets begin at `psn` with up to `mtu` bytes of payload; with at most these
    /// retries of either kind, as agreed on with the peer.
    pub(crate) fn start(&mut self, psn: Psn, mtu: PathMtu, retry_count: u8, rnr_retry: u8) {
        self.base = psn;
        self.mtu = mtu;
        self.retry_count = self.retry_count.min(retry_count);
        self.rnr_retry = self.rnr_retry.min(rnr_retry);
    }

    pub(crate) fn len(&self) -> usize {
        self.wqes.len()
    }

    /// Stops starting work requests, or resumes.
    pub(crate) fn pause(&mut self, on: bool) {
        self.paused = on;
        self.draining = on;
    }

    /// Whether all work requests started before [`Self::pause`] are done; true once.
    pub(crate) fn has_drained(&mut self) -> bool {
        let drained = self.draining && self.wqes.front().is_none_or(|w| w.first >= self.max_sent);
        self.draining &= !drained;
        drained
    }

    fn psn(&self, seq: u64) -> Psn {
        self.base.add(seq as u32)
    }

    /// PSN of the next new packet.
    pub(crate) fn next_psn(&self) -> Psn {
        self.psn(self.max_sent)
    }

    /// PSN of the oldest packet that is not acknowledged.
    pub(crate) fn oldest_psn(&self) -> Psn {
        self.psn(self.unacked)
    }

    /// Takes a work request. Call only once started.
    pub(crate) fn post(&mut self, wr: SendWr, internal: bool) -> Result<(), PostError> {
        let len = wr.data.len();
        if len > MAX_MESSAGE {
            return Err(PostError::TooLong);
        }
        if self.wqes.len() >= self.depth {
            return Err(PostError::QueueFull);
        }
        let packets = match wr.op {
            SendOp::LocalInvalidate { .. } => 0,
            _ => len.div_ceil(self.mtu.bytes()).max(1) as u32,
        };
        let first = self.next_post;
        self.next_post += u64::from(packets);
        self.wqes.push_back(PostedSend { wr, first, packets, done: false, internal });
        Ok(())
    }

    /// The number behind the last work request.
    pub(crate) fn posted(&self) -> u64 {
        self.next_post
    }

    fn in_flight(&self) -> u64 {
        self.next_send - self.unacked
    }

    /// The next packet has AckReq set.
    pub(crate) fn ask_for_ack(&mut self) {
        self.since_ack_req = self.window;
    }

    /// Index of the work request that owns `seq`, or of the first one not yet sent.
    fn index_of(&self, seq: u64) -> usize {
        self.wqes.partition_point(|w| w.is_before(seq))
    }

    /// The work request at `index` ends with `status`, all others are flushed.
    fn fail(&mut self, index: usize, status: WcStatus, env: &mut Env<'_>) -> QpFailure {
        self.flush(env, |i| if i == index { status } else { WcStatus::WrFlushErr });
        QpFailure(status)
    }

    /// All work requests end unsuccessfully.
    pub(crate) fn flush(&mut self, env: &mut Env<'_>, status: impl Fn(usize) -> WcStatus) {
        for (i, wqe) in self.wqes.drain(..).enumerate() {
            report(wqe, status(i), env);
        }
        self.unacked = self.next_post;
        self.max_sent = self.next_post;
        self.go_back(self.next_post);
        self.rnr_until = None;
    }
}

fn report(wqe: PostedSend, status: WcStatus, env: &mut Env<'_>) {
    let success = status == WcStatus::Success;
    if wqe.internal || success && !wqe.wr.signaled {
        return;
    }
    let byte_len = if success { wqe.wr.data.len() } else { 0 };
    let opcode = match wqe.wr.op {
        SendOp::Send { .. } | SendOp::SendInvalidate { .. } => WcOpcode::Send,
        SendOp::Write { .. } => WcOpcode::Write,
        SendOp::Read { .. } => WcOpcode::Read,
        SendOp::FetchAdd { .. } => WcOpcode::FetchAdd,
        SendOp::CmpSwap { .. } => WcOpcode::CmpSwap,
        SendOp::LocalInvalidate { .. } => WcOpcode::LocalInvalidate,
    };
    env.complete(Completion { byte_len, ..Completion::new(env.conn, wqe.wr.id, opcode, status) });
}
