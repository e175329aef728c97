// SPDX-License-Identifier: Apache-2.0
//! The requester: work requests to packets, responses to completions, retransmission in between (IBTA 9.7.3, 9.7.5).
//!
//! Every work request owns a run of numbers from the moment it is posted; a number's low 24 bits, counted from the
//! starting PSN, are its PSN. A READ owns one for each of its response packets. Four numbers describe the state, in
//! this order: `unacked` (first not acknowledged), `next_send`, `max_sent` (one behind the last ever sent) and
//! `next_post` (the next work request's first). Going back is nothing but setting `next_send`; the packets are built
//! again from the work requests. A READ that is gone back into asks for the rest from there on.

use super::{Data, Env, MAX_MESSAGE, QpFailure, SELECTIVE_WINDOW, SendOp, SendWr};
use crate::{Completion, Discard, Instant, PostError, WcOpcode, WcStatus, config::ConnectOptions, region::Access};
use core::time::Duration;
use nacelle_wire::{
    Psn, Qpn, RemoteAddr, RoceHeaders, RocePacket,
    bth::{Aeth, AtomicEth, Bth, Ieth, ImmDt, NakCode, Opcode, Reth, Syndrome},
    cm::PathMtu,
    roce::{Ext, Flow},
};
use std::collections::VecDeque;

/// Most PSNs in flight: half the circle, so that the responder can tell old from new (IBTA 9.7.2).
const MAX_IN_FLIGHT: u64 = 1 << 23;
/// Most response packets under way to READs, unless one READ alone has more: they come as fast as the peer can send, and
/// queues on the way must hold them.
const MAX_RESPONSES: u64 = 256;

/// A posted work request.
#[derive(Debug)]
struct PostedSend {
    wr: SendWr,
    first: u64,
    /// Numbers that it owns; a local operation owns none.
    packets: u32,
    /// A local operation has been done.
    done: bool,
    /// Posted by the endpoint itself; its completion is nobody's business.
    internal: bool,
}

impl PostedSend {
    const fn end(&self) -> u64 {
        self.first + self.packets as u64
    }

    const fn is_local(&self) -> bool {
        self.packets == 0
    }

    /// Whether all of it has been sent once everything before `seq` has.
    const fn is_before(&self, seq: u64) -> bool {
        if self.is_local() { self.done && self.first <= seq } else { self.end() <= seq }
    }

    fn is_read(&self) -> bool {
        matches!(self.wr.op, SendOp::Read { .. })
    }

    /// First of its packets from `from` on that selective repeat takes in order only: all but those of a WRITE without
    /// their immediate.
    fn next_in_order(&self, from: u64) -> Option<u64> {
        let from = from.max(self.first);
        let next = match self.wr.op {
            SendOp::Write { imm: None, .. } => return None,
            SendOp::Write { imm: Some(_), .. } => self.end() - 1,
            SendOp::Read { .. } => self.first,
            _ => from,
        };
        (next >= from && next < self.end()).then_some(next)
    }

    /// The peer's memory that it changes: address and length.
    fn changes(&self) -> Option<(u64, u64)> {
        match self.wr.op {
            SendOp::Write { addr, .. } => Some((addr.0, self.wr.data.len() as u64)),
            SendOp::FetchAdd { addr, .. } | SendOp::CmpSwap { addr, .. } => Some((addr.0, 8)),
            _ => None,
        }
    }
}

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
    /// READs and atomics among the work requests before the cursor: sent, and not answered completely.
    answers_due: usize,
    /// Response packets among what is in flight: they take no room in the window.
    responses_due: u64,
    /// The packet to send again next, and where that ends (selective repeat).
    repeat: Option<(u64, u64)>,
    repeated: Option<Repeated>,
    /// The missing response that has been asked for again.
    hole: Option<u64>,
    /// Begin no work request that has not begun (SQD).
    paused: bool,
    /// The user is to be told when everything that has begun is over.
    draining: bool,
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
            unacked: 0,
            next_send: 0,
            max_sent: 0,
            next_post: 0,
            base: Psn::default(),
            answers_due: 0,
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

    /// The connection is set up: packets begin at `psn` and are up to `mtu` long; the peer asks for at most these
    /// retries.
    pub(crate) fn start(&mut self, psn: Psn, mtu: PathMtu, retry_count: u8, rnr_retry: u8) {
        self.base = psn;
        self.mtu = mtu;
        self.retry_count = self.retry_count.min(retry_count);
        self.rnr_retry = self.rnr_retry.min(rnr_retry);
    }

    pub(crate) fn len(&self) -> usize {
        self.wqes.len()
    }

    /// Stops to begin work requests, or goes on.
    pub(crate) fn pause(&mut self, on: bool) {
        self.paused = on;
        self.draining = on;
    }

    /// Whether everything that has begun before [`Self::pause`] is over: says so once.
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

    /// Whether a packet could be sent now, or a local operation done.
    pub(crate) fn wants_to_send(&self, initiator_depth: u8, selective: bool) -> bool {
        if self.rnr_until.is_some() {
            return false;
        }
        self.repeat.is_some() || self.may_go_on(initiator_depth, selective)
    }

    /// Whether the work request at the cursor may go on.
    fn may_go_on(&self, initiator_depth: u8, selective: bool) -> bool {
        let Some(wqe) = self.wqes.get(self.cursor) else { return false };
        if self.paused && wqe.first >= self.max_sent || wqe.wr.fence && self.answers_due > 0 {
            return false;
        }
        if wqe.is_local() {
            return true;
        }
        if wqe.wr.op.is_answered() && self.answers_due >= usize::from(initiator_depth) {
            return false;
        }
        if selective && wqe.first >= self.max_sent && self.next_send == wqe.first && self.must_not_overtake(wqe) {
            return false;
        }
        let in_flight = self.in_flight();
        let fits = if selective {
            in_flight < u64::from(self.window.min(SELECTIVE_WINDOW))
        } else {
            in_flight - self.responses_due < u64::from(self.window)
        };
        let now = if wqe.is_read() { wqe.end() - self.next_send } else { 1 };
        let floods = wqe.is_read() && self.responses_due > 0 && self.responses_due + now > MAX_RESPONSES;
        fits && !floods && in_flight + now <= MAX_IN_FLIGHT
    }

    /// Whether a WRITE goes where an earlier work request still changes something: placed ahead of it, it would be
    /// overwritten by what is older.
    fn must_not_overtake(&self, wqe: &PostedSend) -> bool {
        let (SendOp::Write { .. }, Some((start, len))) = (wqe.wr.op, wqe.changes()) else { return false };
        let meets = |(s, l): (u64, u64)| s < start.saturating_add(len) && start < s.saturating_add(l);
        self.wqes.iter().take(self.cursor).filter_map(PostedSend::changes).any(meets)
    }

    fn in_flight(&self) -> u64 {
        self.next_send - self.unacked
    }

    /// The next packet asks for its acknowledgement.
    pub(crate) fn ask_for_ack(&mut self) {
        self.since_ack_req = self.window;
    }

    /// Index of the work request that owns `seq`, or of the first one not yet sent.
    fn index_of(&self, seq: u64) -> usize {
        self.wqes.partition_point(|w| w.is_before(seq))
    }

    /// Does the local operations that are next.
    fn run_local(&mut self, env: &mut Env<'_>) -> Result<(), QpFailure> {
        while let Some(wqe) = self.wqes.get_mut(self.cursor)
            && let SendOp::LocalInvalidate { rkey } = wqe.wr.op
            && !(wqe.wr.fence && self.answers_due > 0)
            && !(self.paused && wqe.first >= self.max_sent)
        {
            if !wqe.done {
                let region = env.regions.of_key(env.conn, env.domain, rkey, Access::LOCAL);
                if !region.is_some_and(|region| env.regions.invalidate(region)) {
                    return Err(self.fail(self.cursor, WcStatus::LocQpOpErr, env));
                }
                wqe.done = true;
            }
            self.cursor += 1;
        }
        self.retire(env);
        Ok(())
    }

    /// Builds the next packet into `buf`; `None` if there is none after all.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        flow: &Flow,
        ip_id: u16,
        dest_qp: Qpn,
        env: &mut Env<'_>,
        buf: &mut [u8],
    ) -> Result<Option<usize>, QpFailure> {
        self.run_local(env)?;
        let repeat = self.repeat.take().and_then(|(seq, end)| {
            let seq = if seq >= self.unacked { Some(seq) } else { self.next_in_order(self.unacked, end) };
            seq.filter(|&seq| seq < self.next_send).map(|seq| (seq, end))
        });
        if repeat.is_none() && !self.may_go_on(env.agreed.initiator_depth, env.agreed.selective_repeat) {
            return Ok(None);
        }
        let seq = repeat.map_or(self.next_send, |(seq, _)| seq);
        let index = if repeat.is_some() { self.index_of(seq) } else { self.cursor };
        let wqe = &self.wqes[index];
        let mtu = self.mtu.bytes();
        let total = wqe.wr.data.len();
        let offset = (seq - wqe.first) as usize * mtu;
        let answered = wqe.wr.op.is_answered();
        let end = if wqe.is_read() { wqe.end() } else { seq + 1 };
        let last = end == wqe.end();
        let here = total.min(offset + mtu);
        let payload = match &wqe.wr.data {
            _ if answered => Some(&[][..]),
            Data::Inline(bytes) => Some(&bytes[offset..here]),
            Data::Region(s) => env.local(s.after(offset).first(here - offset)),
        };
        let Some(payload) = payload else {
            return Err(self.fail(index, WcStatus::LocProtErr, env));
        };
        let sent = payload.len();

        let place = Place { offset, here, total, first: seq == wqe.first, last };
        let (opcode, ext) = packet_form(wqe.wr.op, &place, env.agreed.selective_repeat);
        let mut bth = Bth::new(opcode, dest_qp, self.psn(seq));
        bth.set_solicited(last && wqe.wr.solicited);
        // Long messages are acknowledged on the way: twice a window, and when the window is exhausted.
        self.since_ack_req += 1;
        let window = if env.agreed.selective_repeat { self.window.min(SELECTIVE_WINDOW) } else { self.window };
        let due = self.since_ack_req * 2 >= window || self.in_flight() + 1 == u64::from(window);
        let ask = last || due || repeat.is_some();
        bth.set_ack_req(ask);
        if ask {
            self.since_ack_req = 0;
        }
        let mut headers = RoceHeaders::new(flow, bth, ext);
        headers.ip.identification.set(ip_id);
        let len = headers.write(payload, buf).expect("the caller's buffer holds the longest frame");

        env.stats.tx_requests.add(sent);
        env.counters().tx_request += 1;
        let again = seq < self.max_sent;
        if again {
            env.counters().retransmitted += 1;
        }
        if repeat.is_none() {
            let read = self.wqes[index].is_read();
            self.next_send = end;
            self.max_sent = self.max_sent.max(end);
            if read {
                self.responses_due += end - seq;
            }
            if last {
                self.cursor += 1;
                self.answers_due += usize::from(answered);
            }
        }
        if again && seq == self.unacked {
            self.repeated = Some(Repeated { from: seq, to: seq, unsent: self.next_send });
        }
        if let Some((seq, last)) = repeat {
            if let Some(repeated) = &mut self.repeated {
                repeated.to = seq;
            }
            self.repeat = self.next_in_order(end, last).map(|next| (next, last));
        }
        self.ack_deadline.get_or_insert(now + self.current_timeout());
        Ok(Some(len))
    }

    /// The first packet from `from` on and before `end` that selective repeat takes in order only.
    fn next_in_order(&self, from: u64, end: u64) -> Option<u64> {
        let wqes = self.wqes.range(self.index_of(from)..).take_while(|w| w.first < end);
        wqes.filter_map(|w| w.next_in_order(from)).next().filter(|&seq| seq < end)
    }

    fn current_timeout(&self) -> Duration {
        self.ack_timeout.saturating_mul(1 << self.retries_used.min(16)).min(self.max_ack_timeout)
    }

    /// Takes a response.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        packet: &RocePacket<'_>,
        env: &mut Env<'_>,
    ) -> Result<Result<(), Discard>, QpFailure> {
        let psn = packet.headers.bth.psn();
        let seq = self.unacked + u64::from(psn.since(self.psn(self.unacked)));
        if seq >= self.max_sent {
            return Ok(Err(Discard::StaleAck));
        }
        match &packet.headers.ext {
            Ext::Aeth(aeth) if packet.opcode == Opcode::Acknowledge => self.receive_ack(now, seq, aeth, env),
            Ext::AethAtomic(aeth, atomic) => self.receive_atomic(now, seq, aeth, atomic.original(), env),
            _ => self.receive_read(now, seq, packet, env),
        }
    }

    fn receive_ack(
        &mut self,
        now: Instant,
        seq: u64,
        aeth: &Aeth,
        env: &mut Env<'_>,
    ) -> Result<Result<(), Discard>, QpFailure> {
        let syndrome = aeth.syndrome();
        let up_to = if matches!(syndrome, Syndrome::Ack(_)) { seq + 1 } else { seq };
        if let Syndrome::Reserved(_) = syndrome {
            return Ok(Err(Discard::UnexpectedResponse));
        }
        let reached = self.acknowledge(now, up_to, env);
        match syndrome {
            Syndrome::Ack(_) => {
                env.counters().rx_ack += 1;
                if reached < up_to {
                    self.ask_again(env)?;
                }
            }
            Syndrome::Nak(NakCode::PsnSequenceError) => {
                env.counters().packet_seq_err += 1;
                if reached < up_to {
                    self.ask_again(env)?;
                } else if env.agreed.selective_repeat {
                    let cause = i64::from(Psn::new(aeth.msn()).distance(self.psn(seq)));
                    self.repeat_one(seq, seq.saturating_add_signed(cause), env)?;
                } else if self.next_send != self.unacked {
                    // A second NAK for what is about to be sent again changes nothing.
                    self.count_retry(env)?;
                    self.go_back(reached);
                }
            }
            Syndrome::RnrNak(timer) => {
                env.counters().rnr_nak_retry_err += 1;
                if self.rnr_until.is_none() {
                    if self.rnr_retry < 7 && self.rnr_retries_used >= self.rnr_retry {
                        env.counters().retry_rnr_exceeded_err += 1;
                        return Err(self.fail(self.index_of(seq), WcStatus::RnrRetryExceeded, env));
                    }
                    self.rnr_retries_used = self.rnr_retries_used.saturating_add(1);
                    self.go_back(reached);
                    self.rnr_until = Some(now + Duration::from_micros(timer.micros().into()));
                }
            }
            Syndrome::Nak(code) => {
                let c = env.counters();
                c.rx_nak += 1;
                let (status, counter) = match code {
                    NakCode::RemoteAccessError => (WcStatus::RemAccessErr, &mut c.req_remote_access_errors),
                    NakCode::RemoteOperationalError => (WcStatus::RemOpErr, &mut c.req_remote_operational_errors),
                    _ => (WcStatus::RemInvReqErr, &mut c.req_remote_invalid_request),
                };
                *counter += 1;
                return Err(self.fail(self.index_of(seq), status, env));
            }
            Syndrome::Reserved(_) => {}
        }
        Ok(Ok(()))
    }

    /// Takes the answer to an atomic.
    fn receive_atomic(
        &mut self,
        now: Instant,
        seq: u64,
        aeth: &Aeth,
        original: u64,
        env: &mut Env<'_>,
    ) -> Result<Result<(), Discard>, QpFailure> {
        if let Err(discard) = self.next_answer(now, seq, false, env)? {
            return Ok(Err(discard));
        }
        if !is_positive(aeth) {
            return Err(self.bad_response(env));
        }
        if let Data::Region(slice) = self.wqes[0].wr.data {
            match env.local_mut(slice) {
                Some(bytes) => bytes.copy_from_slice(&original.to_ne_bytes()),
                None => return Err(self.fail(0, WcStatus::LocProtErr, env)),
            }
        }
        env.counters().rx_atomic_responses += 1;
        env.stats.rx_payload += 8;
        self.advance(now, seq + 1, env);
        Ok(Ok(()))
    }

    /// Takes a packet of the answer to a READ.
    fn receive_read(
        &mut self,
        now: Instant,
        seq: u64,
        packet: &RocePacket<'_>,
        env: &mut Env<'_>,
    ) -> Result<Result<(), Discard>, QpFailure> {
        if let Err(discard) = self.next_answer(now, seq, true, env)? {
            return Ok(Err(discard));
        }
        let wqe = &self.wqes[0];
        let mtu = self.mtu.bytes();
        let total = wqe.wr.data.len();
        let offset = (seq - wqe.first) as usize * mtu;
        let len = total.min(offset + mtu) - offset;
        // An answer to a repeated request begins within the READ: with FIRST or ONLY, or goes on as the first one would have.
        let (begins, ends) = (seq == wqe.first, seq + 1 == wqe.end());
        let in_place = match packet.opcode {
            Opcode::ReadResponseFirst => !ends,
            Opcode::ReadResponseMiddle => !begins && !ends,
            Opcode::ReadResponseLast => !begins && ends,
            _ => ends,
        };
        let positive = !matches!(&packet.headers.ext, Ext::Aeth(aeth) if !is_positive(aeth));
        if packet.payload.len() != len || !in_place || !positive {
            return Err(self.bad_response(env));
        }
        if let Data::Region(slice) = wqe.wr.data {
            match env.local_mut(slice.after(offset).first(len)) {
                Some(bytes) => bytes.copy_from_slice(packet.payload),
                None => return Err(self.fail(0, WcStatus::LocProtErr, env)),
            }
        }
        env.counters().rx_read_responses += 1;
        env.stats.rx_payload += len as u64;
        if seq < self.next_send {
            self.responses_due -= 1;
        }
        self.advance(now, seq + 1, env);
        Ok(Ok(()))
    }

    /// The answer that is due is none that may come.
    fn bad_response(&mut self, env: &mut Env<'_>) -> QpFailure {
        env.counters().req_bad_response += 1;
        self.fail(0, WcStatus::BadRespErr, env)
    }

    /// Whether `seq` is an answer that is due next, to a READ or not; then its work request is at the front. What came
    /// before is acknowledged by it, unless it is an answer that is missing: then it is asked for again.
    fn next_answer(
        &mut self,
        now: Instant,
        seq: u64,
        read: bool,
        env: &mut Env<'_>,
    ) -> Result<Result<(), Discard>, QpFailure> {
        let wqe = self.wqes.get(self.index_of(seq));
        if !wqe.is_some_and(|w| w.wr.op.is_answered() && w.is_read() == read) {
            return Ok(Err(Discard::UnexpectedResponse));
        }
        if self.acknowledge(now, seq, env) < seq {
            self.ask_again(env)?;
            return Ok(Err(Discard::OutOfSequence));
        }
        Ok(Ok(()))
    }

    /// Everything before `up_to` has arrived at the peer. Returns how far that makes this side go: not past an answer
    /// that has not come.
    fn acknowledge(&mut self, now: Instant, up_to: u64, env: &mut Env<'_>) -> u64 {
        let missing = self.wqes.iter().take_while(|w| w.first < up_to).find(|w| w.wr.op.is_answered());
        let reached = missing.map_or(up_to, |w| w.first.max(self.unacked));
        self.advance(now, reached, env);
        reached
    }

    /// The first number that is not acknowledged is now `to`.
    fn advance(&mut self, now: Instant, to: u64, env: &mut Env<'_>) {
        if to == self.unacked {
            return;
        }
        self.unacked = to;
        self.retire(env);
        if self.next_send < to {
            self.go_back(to);
        }
        self.retries_used = 0;
        self.rnr_retries_used = 0;
        self.ack_deadline = (self.in_flight() > 0).then(|| now + self.current_timeout());
    }

    /// Completes the work requests at the front that are over.
    fn retire(&mut self, env: &mut Env<'_>) {
        while self.wqes.front().is_some_and(|w| w.is_before(self.unacked))
            && let Some(wqe) = self.wqes.pop_front()
        {
            if self.cursor > 0 {
                self.cursor -= 1;
                self.answers_due -= usize::from(wqe.wr.op.is_answered());
            }
            report(wqe, WcStatus::Success, env);
        }
    }

    /// The next packet to send is `seq`, which is not acknowledged yet.
    fn go_back(&mut self, seq: u64) {
        self.next_send = seq;
        self.cursor = self.index_of(seq);
        let unacked = self.unacked;
        let sent = self.wqes.iter().take(self.cursor);
        self.answers_due = sent.clone().filter(|w| w.wr.op.is_answered()).count();
        self.responses_due = sent.filter(|w| w.is_read()).map(|w| w.end() - w.first.max(unacked)).sum();
        self.repeat = None;
        self.since_ack_req = 0;
        self.ack_deadline = None;
    }

    /// The oldest answer is missing though a later one came, which is as good as a NAK (IBTA 9.7.5.1.1). It and what
    /// follows is asked for again, once: what was on its way meanwhile says the same.
    fn ask_again(&mut self, env: &mut Env<'_>) -> Result<(), QpFailure> {
        if self.hole == Some(self.unacked) || self.next_send <= self.unacked {
            return Ok(());
        }
        env.counters().implied_nak_seq_err += 1;
        self.count_retry(env)?;
        self.hole = Some(self.unacked);
        self.go_back(self.unacked);
        Ok(())
    }

    /// Packet `oldest` is missing, as packet `cause` shows: it is sent again, unless it has been since and `cause` was on
    /// its way already; and with it those behind it that the peer has dropped, because it takes them in order only
    /// (docs/reference/extensions.md).
    fn repeat_one(&mut self, oldest: u64, cause: u64, env: &mut Env<'_>) -> Result<(), QpFailure> {
        let in_order = self.next_in_order(oldest, oldest + 1).is_some();
        let on_its_way = self
            .repeated
            .is_some_and(|r| cause < r.unsent && (oldest == r.from || in_order && oldest > r.from && oldest <= r.to));
        if on_its_way || oldest >= self.next_send || self.repeat.is_some_and(|(seq, _)| seq == oldest) {
            return Ok(());
        }
        self.count_retry(env)?;
        self.repeat = Some((oldest, self.next_send));
        Ok(())
    }

    fn count_retry(&mut self, env: &mut Env<'_>) -> Result<(), QpFailure> {
        if self.retries_used >= self.retry_count {
            env.counters().retry_exceeded_err += 1;
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
            env.counters().local_ack_timeout_err += 1;
            self.count_retry(env)?;
            self.hole = Some(self.unacked);
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
        self.unacked = self.next_post;
        self.max_sent = self.next_post;
        self.go_back(self.next_post);
        self.rnr_until = None;
    }
}

/// A NAK comes alone, not with what was asked for.
fn is_positive(aeth: &Aeth) -> bool {
    matches!(aeth.syndrome(), Syndrome::Ack(_))
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

/// Where in its message a packet is.
struct Place {
    /// First byte of its payload.
    offset: usize,
    /// First byte behind its payload.
    here: usize,
    /// Bytes of the message.
    total: usize,
    first: bool,
    last: bool,
}

/// Opcode and extension headers of one packet of a message (IBTA 9.7.2, table 38; selective repeat: extensions.md).
fn packet_form(op: SendOp, place: &Place, selective: bool) -> (Opcode, Ext) {
    let total = place.total as u32;
    let at = |addr: RemoteAddr| RemoteAddr(addr.0.wrapping_add(place.offset as u64));
    let imm_dt = |imm| Ext::Imm(ImmDt::new(imm));
    match op {
        SendOp::Send { imm } => match (place.first, place.last, imm) {
            (true, false, _) => (Opcode::SendFirst, Ext::None),
            (false, false, _) => (Opcode::SendMiddle, Ext::None),
            (false, true, None) => (Opcode::SendLast, Ext::None),
            (false, true, Some(i)) => (Opcode::SendLastImm, imm_dt(i)),
            (true, true, None) => (Opcode::SendOnly, Ext::None),
            (true, true, Some(i)) => (Opcode::SendOnlyImm, imm_dt(i)),
        },
        SendOp::SendInvalidate { rkey } => match (place.first, place.last) {
            (true, false) => (Opcode::SendFirst, Ext::None),
            (false, false) => (Opcode::SendMiddle, Ext::None),
            (false, true) => (Opcode::SendLastInvalidate, Ext::Ieth(Ieth::new(rkey))),
            (true, true) => (Opcode::SendOnlyInvalidate, Ext::Ieth(Ieth::new(rkey))),
        },
        SendOp::Write { addr, rkey, imm } if selective => match (place.last, imm) {
            (true, Some(i)) => (Opcode::WriteOnlyImm, Ext::RethImm(Reth::new(addr, rkey, total), ImmDt::new(i))),
            _ => (Opcode::WriteOnly, Ext::Reth(Reth::new(at(addr), rkey, (place.here - place.offset) as u32))),
        },
        SendOp::Write { addr, rkey, imm } => {
            let reth = Reth::new(addr, rkey, total);
            match (place.first, place.last, imm) {
                (true, false, _) => (Opcode::WriteFirst, Ext::Reth(reth)),
                (false, false, _) => (Opcode::WriteMiddle, Ext::None),
                (false, true, None) => (Opcode::WriteLast, Ext::None),
                (false, true, Some(i)) => (Opcode::WriteLastImm, imm_dt(i)),
                (true, true, None) => (Opcode::WriteOnly, Ext::Reth(reth)),
                (true, true, Some(i)) => (Opcode::WriteOnlyImm, Ext::RethImm(reth, ImmDt::new(i))),
            }
        }
        SendOp::Read { addr, rkey } => {
            (Opcode::ReadRequest, Ext::Reth(Reth::new(at(addr), rkey, total - place.offset as u32)))
        }
        SendOp::FetchAdd { addr, rkey, add } => (Opcode::FetchAdd, Ext::Atomic(AtomicEth::new(addr, rkey, add, 0))),
        SendOp::CmpSwap { addr, rkey, compare, swap } => {
            (Opcode::CmpSwap, Ext::Atomic(AtomicEth::new(addr, rkey, swap, compare)))
        }
        SendOp::LocalInvalidate { .. } => unreachable!("a local operation has no packet"),
    }
}
