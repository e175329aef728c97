// SPDX-License-Identifier: Apache-2.0
//! The requester: work requests to packets, acknowledgements to completions, go-back-N in between (IBTA 9.7.3, 9.7.5).
//!
//! Every work request owns a run of PSNs from the moment it is posted. Four PSNs describe the state, in this order
//! round the circle: `unacked` (first not acknowledged), `next_send`, `max_sent` (one behind the last ever sent) and
//! `next_post` (the next work request's first). Going back is nothing but setting `next_send`; the packets are built
//! again from the work requests.

use super::{Data, Env, QpFailure, SendOp, SendWr};
use crate::{Completion, Discard, Instant, PostError, WcOpcode, WcStatus, config::ConnectOptions};
use core::time::Duration;
use nacelle_wire::{
    Psn, Qpn, RoceHeaders,
    bth::{Aeth, Bth, ImmDt, NakCode, Opcode, Reth, Syndrome},
    cm::PathMtu,
    roce::{Ext, Flow},
};
use std::collections::VecDeque;

/// Longest message (IBTA 9.7.7, and half of the 2^23 PSNs that comparisons can tell apart).
const MAX_MESSAGE: usize = 1 << 31;
const MAX_POSTED_PACKETS: u32 = 1 << 22;

/// A posted work request.
#[derive(Debug)]
struct PostedSend {
    wr: SendWr,
    first: Psn,
    packets: u32,
    /// Posted by the endpoint itself; its completion is nobody's business.
    internal: bool,
}

#[derive(Debug)]
pub(crate) struct Requester {
    wqes: VecDeque<PostedSend>,
    /// Index of the work request that `next_send` belongs to.
    cursor: usize,
    unacked: Psn,
    next_send: Psn,
    max_sent: Psn,
    next_post: Psn,
    mtu: PathMtu,
    window: u32,
    depth: usize,
    /// Packets since the last one that asked for an acknowledgement.
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
            unacked: Psn::default(),
            next_send: Psn::default(),
            max_sent: Psn::default(),
            next_post: Psn::default(),
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

    /// The connection is set up: packets begin at `psn` and are up to `mtu` long; the peer asks for at most these
    /// retries.
    pub(crate) fn start(&mut self, psn: Psn, mtu: PathMtu, retry_count: u8, rnr_retry: u8) {
        self.unacked = psn;
        self.next_send = psn;
        self.max_sent = psn;
        self.next_post = psn;
        self.mtu = mtu;
        self.retry_count = self.retry_count.min(retry_count);
        self.rnr_retry = self.rnr_retry.min(rnr_retry);
    }

    pub(crate) fn len(&self) -> usize {
        self.wqes.len()
    }

    pub(crate) fn post(&mut self, wr: SendWr, internal: bool) -> Result<(), PostError> {
        let len = wr.data.len();
        if len > MAX_MESSAGE {
            return Err(PostError::TooLong);
        }
        let packets = len.div_ceil(self.mtu.bytes()).max(1) as u32;
        if packets > MAX_POSTED_PACKETS {
            return Err(PostError::TooLong);
        }
        if self.wqes.len() >= self.depth || self.next_post.since(self.unacked) + packets > MAX_POSTED_PACKETS {
            return Err(PostError::QueueFull);
        }
        self.wqes.push_back(PostedSend { wr, first: self.next_post, packets, internal });
        self.next_post = self.next_post.add(packets);
        Ok(())
    }

    /// Whether a packet could be sent now.
    pub(crate) fn wants_to_send(&self) -> bool {
        self.cursor < self.wqes.len() && self.rnr_until.is_none() && self.in_flight() < self.window
    }

    fn in_flight(&self) -> u32 {
        self.next_send.since(self.unacked)
    }

    /// Builds the next packet into `buf`. Call only if [`Self::wants_to_send`].
    pub(crate) fn send(
        &mut self,
        now: Instant,
        flow: &Flow,
        ip_id: u16,
        dest_qp: Qpn,
        env: &mut Env<'_>,
        buf: &mut [u8],
    ) -> Result<usize, QpFailure> {
        let wqe = &self.wqes[self.cursor];
        let mtu = self.mtu.bytes();
        let total = wqe.wr.data.len();
        let index = self.next_send.since(wqe.first);
        let offset = index as usize * mtu;
        let first = index == 0;
        let last = index + 1 == wqe.packets;
        let payload = match &wqe.wr.data {
            Data::Inline(bytes) => Some(&bytes[offset..total.min(offset + mtu)]),
            Data::Region(s) => env.regions.slice(*s).map(|bytes| &bytes[offset..total.min(offset + mtu)]),
        };
        let Some(payload) = payload else {
            return Err(self.fail(self.cursor, WcStatus::LocProtErr, env));
        };

        let (opcode, ext) = packet_form(wqe.wr.op, first, last, total as u32);
        let mut bth = Bth::new(opcode, dest_qp, self.next_send);
        bth.set_solicited(last && wqe.wr.solicited);
        // Long messages are acknowledged on the way: twice a window, and when the window is exhausted.
        self.since_ack_req += 1;
        let due = self.since_ack_req * 2 >= self.window || self.in_flight() + 1 == self.window;
        bth.set_ack_req(last || due);
        if last || due {
            self.since_ack_req = 0;
        }
        let mut headers = RoceHeaders::new(flow, bth, ext);
        headers.ip.identification.set(ip_id);
        let len = headers.write(payload, buf).expect("the caller's buffer holds the longest frame");

        env.stats.tx_payload += payload.len() as u64;
        env.counters.tx_request += 1;
        if self.next_send.in_window(self.unacked, self.max_sent) {
            env.counters.retransmitted += 1;
            env.stats.retransmitted += 1;
        } else {
            self.max_sent = self.next_send.add(1);
        }
        self.next_send = self.next_send.add(1);
        if last {
            self.cursor += 1;
        }
        self.ack_deadline.get_or_insert(now + self.current_timeout());
        Ok(len)
    }

    fn current_timeout(&self) -> Duration {
        self.ack_timeout.saturating_mul(1 << self.retries_used.min(16)).min(self.max_ack_timeout)
    }

    /// Takes an acknowledgement.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        psn: Psn,
        aeth: &Aeth,
        env: &mut Env<'_>,
    ) -> Result<Result<(), Discard>, QpFailure> {
        if !psn.in_window(self.unacked, self.max_sent) {
            return Ok(Err(Discard::StaleAck));
        }
        match aeth.syndrome() {
            Syndrome::Ack(_) => {
                env.counters.rx_ack += 1;
                self.acknowledge(now, psn.add(1), env);
            }
            Syndrome::Nak(NakCode::PsnSequenceError) => {
                env.counters.rcvd_seq_err += 1;
                env.stats.naks += 1;
                self.acknowledge(now, psn, env);
                // A second NAK for what is about to be sent again changes nothing.
                if self.next_send != self.unacked {
                    self.count_retry(env)?;
                    self.go_back(psn);
                }
            }
            Syndrome::RnrNak(timer) => {
                env.counters.rcvd_rnr_err += 1;
                env.stats.rnr_naks += 1;
                self.acknowledge(now, psn, env);
                if self.rnr_until.is_none() {
                    if self.rnr_retry < 7 && self.rnr_retries_used >= self.rnr_retry {
                        env.counters.retry_rnr_exceeded_err += 1;
                        return Err(self.fail(0, WcStatus::RnrRetryExceeded, env));
                    }
                    self.rnr_retries_used = self.rnr_retries_used.saturating_add(1);
                    self.go_back(psn);
                    self.rnr_until = Some(now + Duration::from_micros(timer.micros().into()));
                }
            }
            Syndrome::Nak(code) => {
                env.counters.rx_nak += 1;
                env.stats.naks += 1;
                self.acknowledge(now, psn, env);
                let status = match code {
                    NakCode::RemoteAccessError => WcStatus::RemAccessErr,
                    NakCode::RemoteOperationalError => WcStatus::RemOpErr,
                    _ => WcStatus::RemInvReqErr,
                };
                return Err(self.fail(0, status, env));
            }
            Syndrome::Reserved(_) => return Ok(Err(Discard::UnexpectedResponse)),
        }
        Ok(Ok(()))
    }

    /// Everything before `up_to` has arrived.
    fn acknowledge(&mut self, now: Instant, up_to: Psn, env: &mut Env<'_>) {
        let progress = up_to.since(self.unacked);
        if progress == 0 {
            return;
        }
        let behind = self.next_send.since(self.unacked) < progress;
        self.unacked = up_to;
        while let Some(wqe) = self.wqes.front()
            && self.unacked.distance(wqe.first.add(wqe.packets)) >= 0
        {
            let wqe = self.wqes.pop_front().expect("there is a front");
            self.cursor = self.cursor.saturating_sub(1);
            report(wqe, WcStatus::Success, env);
        }
        if behind {
            self.go_back(up_to);
        }
        self.retries_used = 0;
        self.rnr_retries_used = 0;
        self.ack_deadline = (self.in_flight() > 0).then(|| now + self.current_timeout());
    }

    /// The next packet to send is `psn`, which is not acknowledged yet.
    fn go_back(&mut self, psn: Psn) {
        self.next_send = psn;
        self.cursor = self.wqes.iter().position(|w| psn.since(w.first) < w.packets).unwrap_or(self.wqes.len());
        self.since_ack_req = 0;
        self.ack_deadline = None;
    }

    fn count_retry(&mut self, env: &mut Env<'_>) -> Result<(), QpFailure> {
        if self.retries_used >= self.retry_count {
            env.counters.retry_exceeded_err += 1;
            return Err(self.fail(0, WcStatus::RetryExceeded, env));
        }
        self.retries_used += 1;
        Ok(())
    }

    /// Does what is due.
    pub(crate) fn run_timers(&mut self, now: Instant, env: &mut Env<'_>) -> Result<(), QpFailure> {
        if self.rnr_until.is_some_and(|t| t <= now) {
            self.rnr_until = None;
        }
        if self.ack_deadline.is_some_and(|t| t <= now) {
            env.counters.ack_timeouts += 1;
            env.stats.timeouts += 1;
            self.count_retry(env)?;
            self.go_back(self.unacked);
        }
        Ok(())
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        crate::time::earliest(self.ack_deadline, self.rnr_until)
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
        self.cursor = 0;
        self.unacked = self.next_post;
        self.next_send = self.next_post;
        self.max_sent = self.next_post;
        self.ack_deadline = None;
        self.rnr_until = None;
    }
}

fn report(wqe: PostedSend, status: WcStatus, env: &mut Env<'_>) {
    let success = status == WcStatus::Success;
    if wqe.internal || success && !wqe.wr.signaled {
        return;
    }
    let conn = env.conn;
    env.complete(Completion {
        conn,
        id: wqe.wr.id,
        opcode: match wqe.wr.op {
            SendOp::Send { .. } => WcOpcode::Send,
            SendOp::Write { .. } => WcOpcode::Write,
        },
        status,
        byte_len: if success { wqe.wr.data.len() } else { 0 },
        imm: None,
        solicited: false,
    });
}

/// Opcode and extension headers of one packet of a message (IBTA 9.7.2, table 38).
fn packet_form(op: SendOp, first: bool, last: bool, len: u32) -> (Opcode, Ext) {
    match op {
        SendOp::Send { imm } => match (first, last, imm) {
            (true, false, _) => (Opcode::SendFirst, Ext::None),
            (false, false, _) => (Opcode::SendMiddle, Ext::None),
            (false, true, None) => (Opcode::SendLast, Ext::None),
            (false, true, Some(i)) => (Opcode::SendLastImm, Ext::Imm(ImmDt::new(i))),
            (true, true, None) => (Opcode::SendOnly, Ext::None),
            (true, true, Some(i)) => (Opcode::SendOnlyImm, Ext::Imm(ImmDt::new(i))),
        },
        SendOp::Write { addr, rkey, imm } => {
            let reth = Reth::new(addr, rkey, len);
            match (first, last, imm) {
                (true, false, _) => (Opcode::WriteFirst, Ext::Reth(reth)),
                (false, false, _) => (Opcode::WriteMiddle, Ext::None),
                (false, true, None) => (Opcode::WriteLast, Ext::None),
                (false, true, Some(i)) => (Opcode::WriteLastImm, Ext::Imm(ImmDt::new(i))),
                (true, true, None) => (Opcode::WriteOnly, Ext::Reth(reth)),
                (true, true, Some(i)) => (Opcode::WriteOnlyImm, Ext::RethImm(reth, ImmDt::new(i))),
            }
        }
    }
}
