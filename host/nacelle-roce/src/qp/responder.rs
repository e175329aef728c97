// SPDX-License-Identifier: Apache-2.0
//! The responder: requests in PSN order to memory and receives, each answered by ACK, NAK, RNR NAK or data (IBTA 9.7.4,
//! 9.7.5).
//!
//! A packet is checked completely before it changes anything, in the order of IBTA 9.7.4.1: sequence of opcodes, READs
//! and atomics at once, a posted receive, length of the packet, key and bounds, length of the message.
//!
//! Answers to READs and atomics wait in PSN order; behind them at most one ACK or NAK waits. It speaks for all packets before it, so that several requests handled before the
//! next transmission share one ACK, and the newest counts.

use super::{Env, MAX_MESSAGE, QpFailure, RecvWr, SELECTIVE_WINDOW};
use crate::{
    Completion, Discard, PostError, WcOpcode, WcStatus,
    config::ConnectOptions,
    region::{Access, Grant},
};
use nacelle_wire::{
    Psn, Qpn, RoceHeaders, RocePacket,
    bth::{Aeth, AtomicAckEth, AtomicEth, Bth, NakCode, Opcode, Reth, RnrTimer, Syndrome},
    roce::{Ext, Flow},
};
use std::collections::VecDeque;

/// A message of which more packets are to come.
#[derive(Clone, Copy, Debug)]
enum Partial {
    /// A SEND: bytes received so far.
    Send(usize),
    /// A WRITE: what remains of its place, and its total length.
    Write(Grant, usize),
}

/// Position of a packet in its message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    First,
    Middle,
    Last,
    Only,
}

impl Form {
    fn ends(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }
}

/// How a packet is refused.
enum Refusal {
    Rnr,
    Invalid(WcStatus),
    Access(WcStatus),
}

/// An answer with data.
#[derive(Clone, Copy, Debug)]
struct Response {
    /// Number of its next packet.
    seq: u64,
    msn: u32,
    what: Answer,
    /// To a request that was answered before: it does not count against what was agreed.
    again: bool,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    /// What is left to read, and whether nothing of it has been sent; `None` reads nothing.
    Read { rest: Option<Grant>, fresh: bool },
    /// The value from before.
    Atomic(u64),
}

impl Response {
    /// One behind the number of its last packet.
    fn end(&self, mtu: usize) -> u64 {
        match self.what {
            Answer::Read { rest: Some(rest), .. } => self.seq + psns(rest.len(), mtu),
            _ => self.seq + 1,
        }
    }
}

/// Numbers that a READ of `len` bytes uses.
fn psns(len: usize, mtu: usize) -> u64 {
    len.div_ceil(mtu).max(1) as u64
}

/// What kind of answer is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextAnswer {
    /// A small one, which goes first.
    Short,
    /// Data of a READ, which takes its turn among the requests.
    Data,
}

/// Numbers begin here, so that half a circle of earlier ones has a place.
const START: u64 = 1 << 32;

#[derive(Debug)]
pub(crate) struct Responder {
    /// Number of the next request; PSNs are counted from `base`.
    expected: u64,
    base: Psn,
    msn: u32,
    partial: Option<Partial>,
    recvs: VecDeque<RecvWr>,
    depth: usize,
    mtu: usize,
    rnr_timer: RnrTimer,
    responses: VecDeque<Response>,
    /// Latest atomics and the values from before them, for repetition.
    atomics: VecDeque<(u64, u64)>,
    answer: Option<Syndrome>,
    /// The packet that a sequence error NAK blames (selective repeat).
    cause: Psn,
    /// The packet at `expected` has been asked for again; what comes ahead of it is dropped without another NAK.
    waiting: bool,
    /// The packet at `expected` has met no receive; it comes again by itself.
    not_ready: bool,
    /// Packets placed ahead of `expected`, which is bit 0.
    early: u128,
    /// Data of a READ was sent in the connection's last turn.
    pub(crate) had_turn: bool,
}

impl Responder {
    pub(crate) fn new(options: &ConnectOptions) -> Self {
        Self {
            expected: START,
            base: Psn::default(),
            msn: 0,
            partial: None,
            recvs: VecDeque::new(),
            depth: options.recv_depth,
            mtu: 0,
            rnr_timer: options.rnr_timer,
            responses: VecDeque::new(),
            atomics: VecDeque::new(),
            answer: None,
            cause: Psn::default(),
            waiting: false,
            not_ready: false,
            early: 0,
            had_turn: false,
        }
    }

    /// Takes the options of the side that accepts, which come after the first receives.
    pub(crate) fn configure(&mut self, options: &ConnectOptions) {
        self.depth = options.recv_depth;
        self.rnr_timer = options.rnr_timer;
    }

    /// The connection is set up: the peer begins at `psn` with packets of up to `mtu` bytes.
    pub(crate) fn start(&mut self, psn: Psn, mtu: usize) {
        self.base = psn;
        self.mtu = mtu;
    }

    pub(crate) fn len(&self) -> usize {
        self.recvs.len()
    }

    pub(crate) fn post(&mut self, wr: RecvWr) -> Result<(), PostError> {
        if self.recvs.len() >= self.depth {
            return Err(PostError::QueueFull);
        }
        self.recvs.push_back(wr);
        Ok(())
    }

    /// PSN of a number; `START` is a multiple of 2^24.
    fn psn(&self, seq: u64) -> Psn {
        self.base.add(seq as u32)
    }

    /// Takes a request.
    pub(crate) fn receive(
        &mut self,
        packet: &RocePacket<'_>,
        env: &mut Env<'_>,
    ) -> Result<Result<(), Discard>, QpFailure> {
        let distance = packet.headers.bth.psn().distance(self.psn(self.expected));
        if distance < 0 {
            env.counters().duplicate_request += 1;
            self.receive_again(self.expected.saturating_add_signed(distance.into()), packet, env);
            return Ok(Err(Discard::Duplicate));
        }
        if distance > 0 {
            return Ok(self.receive_early(distance as u32, packet, env));
        }
        match self.execute(packet, env) {
            Ok(count) => {
                self.go_on(count, packet);
                env.counters().rx_request += 1;
                env.stats.rx_payload += packet.payload.len() as u64;
                Ok(Ok(()))
            }
            Err(Refusal::Rnr) => {
                self.waiting = true;
                self.not_ready = true;
                self.answer = Some(Syndrome::RnrNak(self.rnr_timer));
                Ok(Err(Discard::ReceiverNotReady))
            }
            Err(Refusal::Invalid(status)) => {
                self.answer = Some(Syndrome::Nak(NakCode::InvalidRequest));
                let c = env.counters();
                let length = status == WcStatus::LocLenErr;
                *(if length { &mut c.resp_local_length_error } else { &mut c.resp_remote_invalid_requests }) += 1;
                Err(QpFailure(status))
            }
            Err(Refusal::Access(status)) => {
                self.answer = Some(Syndrome::Nak(NakCode::RemoteAccessError));
                env.counters().resp_remote_access_errors += 1;
                Err(QpFailure(status))
            }
        }
    }

    /// The expected packet has been executed and used `count` numbers: what has been placed behind it counts now.
    fn go_on(&mut self, count: u64, packet: &RocePacket<'_>) {
        self.expected += count;
        self.early = u32::try_from(count).ok().and_then(|n| self.early.checked_shr(n)).unwrap_or(0);
        let mut closed_gap = false;
        while self.early & 1 == 1 {
            self.early >>= 1;
            self.expected += 1;
            self.msn = self.msn.wrapping_add(1);
            closed_gap = true;
        }
        self.not_ready = false;
        self.waiting = self.early != 0;
        self.answer = if self.waiting {
            // There is another gap.
            self.cause = packet.headers.bth.psn();
            Some(Syndrome::Nak(NakCode::PsnSequenceError))
        } else if is_answered(packet.opcode) && !closed_gap {
            // Its answer says that it arrived, and all before it.
            None
        } else if packet.headers.bth.ack_req() || closed_gap {
            Some(Syndrome::ACK)
        } else {
            // An ACK that still waits may speak for this packet too; a NAK has become untrue.
            self.answer.filter(|a| *a == Syndrome::ACK)
        };
    }

    /// Takes a request ahead of the expected one.
    fn receive_early(&mut self, ahead: u32, packet: &RocePacket<'_>, env: &mut Env<'_>) -> Result<(), Discard> {
        env.counters().out_of_seq_request += 1;
        if !env.agreed.selective_repeat {
            if !self.waiting {
                self.waiting = true;
                self.answer = Some(Syndrome::Nak(NakCode::PsnSequenceError));
            }
            return Err(Discard::OutOfSequence);
        }
        let placed = ahead < SELECTIVE_WINDOW && self.place_early(ahead, packet, env);
        if !self.not_ready {
            self.waiting = true;
            self.cause = packet.headers.bth.psn();
            self.answer = Some(Syndrome::Nak(NakCode::PsnSequenceError));
        }
        if placed { Ok(()) } else { Err(Discard::OutOfSequence) }
    }

    /// Places an RDMA WRITE Only that is ahead, if it passes every check and is new.
    fn place_early(&mut self, ahead: u32, packet: &RocePacket<'_>, env: &mut Env<'_>) -> bool {
        let (Opcode::WriteOnly, Ext::Reth(reth)) = (packet.opcode, &packet.headers.ext) else { return false };
        let len = packet.payload.len();
        if self.early >> ahead & 1 == 1 || len > self.mtu || len != reth.dma_len() as usize {
            return false;
        }
        let Ok(place) = open(reth, Access::REMOTE_WRITE, env) else { return false };
        if let Some(place) = place {
            match env.regions.granted_mut(place) {
                Some(bytes) => bytes.copy_from_slice(packet.payload),
                None => return false,
            }
        }
        self.early |= 1 << ahead;
        env.stats.rx_payload += len as u64;
        let c = env.counters();
        c.placed_early += 1;
        c.rx_request += 1;
        c.rx_write_requests += 1;
        true
    }

    /// Takes a request that has been executed before (IBTA 9.7.5.1.4): READs are read again, atomics answered again from
    /// memory, all else acknowledged again.
    fn receive_again(&mut self, seq: u64, packet: &RocePacket<'_>, env: &mut Env<'_>) {
        if is_answered(packet.opcode) && !packet.payload.is_empty() {
            return;
        }
        match (packet.opcode, &packet.headers.ext) {
            (Opcode::ReadRequest, Ext::Reth(reth)) => self.read_again(seq, reth, env),
            (Opcode::FetchAdd | Opcode::CmpSwap, _) => {
                let known = self.atomics.iter().find(|(s, _)| *s == seq).map(|(_, original)| *original);
                if let Some(original) = known
                    && !self.responses.iter().any(|r| r.seq == seq)
                {
                    self.respond_again(seq, Answer::Atomic(original), env);
                }
            }
            _ => {
                self.answer.get_or_insert(Syndrome::ACK);
            }
        }
    }

    /// Reads again, from wherever the requester lost the answer. What it may not read any more, it gets no answer to.
    fn read_again(&mut self, seq: u64, reth: &Reth, env: &mut Env<'_>) {
        let len = reth.dma_len() as usize;
        let end = seq + psns(len, self.mtu);
        let Ok(rest) = open(reth, Access::REMOTE_READ, env) else { return };
        if end > self.expected {
            return;
        }
        let what = Answer::Read { rest, fresh: true };
        let mtu = self.mtu;
        let overlaps = |r: &Response| matches!(r.what, Answer::Read { .. }) && r.seq < end && seq < r.end(mtu);
        // The answer that is under way begins anew from there.
        let same = self.responses.iter().position(overlaps);
        match same.and_then(|i| self.responses.get_mut(i)) {
            Some(response) => {
                response.seq = seq;
                response.what = what;
                env.counters().rx_read_requests += 1;
            }
            None => {
                if self.respond_again(seq, what, env) {
                    env.counters().rx_read_requests += 1;
                }
            }
        }
    }

    /// Puts an answer in its place by PSN, if there is room, for one at least. The requester repeats what gets none.
    fn respond_again(&mut self, seq: u64, what: Answer, env: &Env<'_>) -> bool {
        let again = self.responses.iter().filter(|r| r.again).count();
        let room = again < usize::from(env.agreed.responder_resources).max(1);
        if room {
            let at = self.responses.partition_point(|r| r.seq < seq);
            self.responses.insert(at, Response { seq, msn: self.msn, what, again: true });
        }
        room
    }

    /// Executes the expected packet. Returns how many numbers it uses.
    fn execute(&mut self, packet: &RocePacket<'_>, env: &mut Env<'_>) -> Result<u64, Refusal> {
        use Opcode::*;
        match packet.opcode {
            SendFirst => self.execute_send(packet, Form::First, env),
            SendMiddle => self.execute_send(packet, Form::Middle, env),
            SendLast | SendLastImm | SendLastInvalidate => self.execute_send(packet, Form::Last, env),
            SendOnly | SendOnlyImm | SendOnlyInvalidate => self.execute_send(packet, Form::Only, env),
            WriteFirst => self.execute_write(packet, Form::First, env),
            WriteMiddle => self.execute_write(packet, Form::Middle, env),
            WriteLast | WriteLastImm => self.execute_write(packet, Form::Last, env),
            WriteOnlyImm if env.agreed.selective_repeat => self.execute_write_end(packet, env),
            WriteOnly | WriteOnlyImm => self.execute_write(packet, Form::Only, env),
            ReadRequest => return self.execute_read(packet, env),
            FetchAdd | CmpSwap => self.execute_atomic(packet, env),
            _ => Err(INVALID),
        }
        .map(|()| 1)
    }

    /// The length that a packet of this form may have (IBTA 9.7.4.1.6).
    fn check_length(&self, form: Form, len: usize) -> Result<(), Refusal> {
        let ok = match form {
            Form::First | Form::Middle => len == self.mtu,
            Form::Last => len >= 1 && len <= self.mtu,
            Form::Only => len <= self.mtu,
        };
        if ok { Ok(()) } else { Err(INVALID) }
    }

    fn execute_send(&mut self, packet: &RocePacket<'_>, form: Form, env: &mut Env<'_>) -> Result<(), Refusal> {
        let done = match (form, self.partial) {
            (Form::First | Form::Only, None) => 0,
            (Form::Middle | Form::Last, Some(Partial::Send(done))) => done,
            _ => return Err(INVALID),
        };
        let payload = packet.payload;
        let recv = *self.recvs.front().ok_or(Refusal::Rnr)?;
        self.check_length(form, payload.len())?;
        let invalidates = match packet.headers.ext {
            Ext::Ieth(ieth) => Some(ieth.rkey()),
            _ => None,
        };
        let region =
            invalidates.and_then(|key| env.regions.of_key(env.conn, env.domain, key, Access::REMOTE_INVALIDATE));
        if invalidates.is_some() && region.is_none() {
            return Err(Refusal::Access(self.fail_recv(recv, WcStatus::RemInvReqErr, env)));
        }
        let end = done + payload.len();
        let room = recv.slice.map_or(0, |s| s.len);
        let target = if payload.is_empty() {
            None
        } else if end > room {
            return Err(Refusal::Invalid(self.fail_recv(recv, WcStatus::LocLenErr, env)));
        } else {
            recv.slice.map(|s| s.after(done).first(payload.len()))
        };
        if let Some(target) = target {
            match env.local_mut(target) {
                Some(bytes) => bytes.copy_from_slice(payload),
                None => return Err(Refusal::Invalid(self.fail_recv(recv, WcStatus::LocProtErr, env))),
            }
        }
        if !form.ends() {
            self.partial = Some(Partial::Send(end));
            return Ok(());
        }
        if let Some(region) = region {
            env.regions.invalidate(region);
            env.counters().rx_invalidations += 1;
        }
        env.counters().rdma_recvs += 1;
        self.finish(packet, WcOpcode::Recv, end, invalidates, env);
        Ok(())
    }

    fn execute_write(&mut self, packet: &RocePacket<'_>, form: Form, env: &mut Env<'_>) -> Result<(), Refusal> {
        let payload = packet.payload;
        let begins = matches!(form, Form::First | Form::Only);
        if begins == matches!(self.partial, Some(Partial::Write(..))) {
            return Err(INVALID);
        }
        self.check_receive(packet)?;
        self.check_length(form, payload.len())?;
        // Where the rest of the message goes; `None` for a message without a byte, whose key and address do not count
        // (IBTA 9.7.4.1.5).
        let (rest, total) = match (self.partial, &packet.headers.ext) {
            (None, Ext::Reth(reth) | Ext::RethImm(reth, _)) => open_write(reth, env)?,
            (Some(Partial::Write(rest, total)), _) => {
                env.regions.granted(rest).ok_or(ACCESS)?;
                (Some(rest), total)
            }
            _ => return Err(INVALID),
        };
        let left = rest.map_or(0, Grant::len);
        let fits = if form.ends() { payload.len() == left } else { payload.len() < left };
        if !fits {
            return Err(INVALID);
        }
        if let Some(rest) = rest {
            env.regions.granted_mut(rest.first(payload.len())).ok_or(ACCESS)?.copy_from_slice(payload);
            self.partial = Some(Partial::Write(rest.after(payload.len()), total));
        }
        if form.ends() {
            self.finish_write(packet, total, env);
        }
        Ok(())
    }

    /// The last packet of a WRITE with immediate by selective repeat: its payload is the end of the range that its RETH
    /// names.
    fn execute_write_end(&mut self, packet: &RocePacket<'_>, env: &mut Env<'_>) -> Result<(), Refusal> {
        let payload = packet.payload;
        let (None, Ext::RethImm(reth, _)) = (self.partial, &packet.headers.ext) else { return Err(INVALID) };
        self.check_receive(packet)?;
        self.check_length(Form::Only, payload.len())?;
        if payload.is_empty() != (reth.dma_len() == 0) {
            return Err(INVALID);
        }
        let (place, total) = open_write(reth, env)?;
        if payload.len() > total {
            return Err(INVALID);
        }
        if let Some(place) = place {
            let end = place.after(total - payload.len());
            env.regions.granted_mut(end).ok_or(ACCESS)?.copy_from_slice(payload);
        }
        self.finish_write(packet, total, env);
        Ok(())
    }

    /// Whether a receive is posted, if the packet needs one.
    fn check_receive(&self, packet: &RocePacket<'_>) -> Result<(), Refusal> {
        if is_with_imm(packet.opcode) && self.recvs.is_empty() { Err(Refusal::Rnr) } else { Ok(()) }
    }

    fn finish_write(&mut self, packet: &RocePacket<'_>, total: usize, env: &mut Env<'_>) {
        env.counters().rx_write_requests += 1;
        if is_with_imm(packet.opcode) {
            self.finish(packet, WcOpcode::RecvWrite, total, None, env);
        } else {
            self.partial = None;
            self.msn = self.msn.wrapping_add(1);
        }
    }

    /// Whether another answer with data may wait (IBTA 9.7.4.1.4).
    fn check_resources(&self, env: &Env<'_>) -> Result<(), Refusal> {
        let waiting = self.responses.iter().filter(|r| !r.again).count();
        if waiting < usize::from(env.agreed.responder_resources) { Ok(()) } else { Err(INVALID) }
    }

    fn execute_read(&mut self, packet: &RocePacket<'_>, env: &mut Env<'_>) -> Result<u64, Refusal> {
        let (None, Ext::Reth(reth), true) = (self.partial, &packet.headers.ext, packet.payload.is_empty()) else {
            return Err(INVALID);
        };
        let len = reth.dma_len() as usize;
        if len > MAX_MESSAGE {
            return Err(INVALID);
        }
        self.check_resources(env)?;
        let rest = open(reth, Access::REMOTE_READ, env)?;
        self.respond(Answer::Read { rest, fresh: true });
        env.counters().rx_read_requests += 1;
        Ok(psns(len, self.mtu))
    }

    /// The bytes are a number in this machine's byte order, as for any program on it.
    fn execute_atomic(&mut self, packet: &RocePacket<'_>, env: &mut Env<'_>) -> Result<(), Refusal> {
        let (None, Ext::Atomic(atomic), true) = (self.partial, &packet.headers.ext, packet.payload.is_empty()) else {
            return Err(INVALID);
        };
        if atomic.va().0 % 8 != 0 {
            return Err(INVALID);
        }
        self.check_resources(env)?;
        let who = (env.conn, env.domain);
        let place = env.regions.remote(who, atomic.rkey(), atomic.va(), 8, Access::REMOTE_ATOMIC).ok_or(ACCESS)?;
        let bytes = env.regions.granted_mut(place).and_then(|b| <&mut [u8; 8]>::try_from(b).ok()).ok_or(ACCESS)?;
        let original = u64::from_ne_bytes(*bytes);
        *bytes = new_value(packet.opcode, atomic, original).to_ne_bytes();
        if self.atomics.len() >= usize::from(env.agreed.responder_resources) {
            self.atomics.pop_front();
        }
        self.atomics.push_back((self.expected, original));
        self.respond(Answer::Atomic(original));
        env.counters().rx_atomic_requests += 1;
        Ok(())
    }

    /// The expected request gets an answer with data.
    fn respond(&mut self, what: Answer) {
        self.msn = self.msn.wrapping_add(1);
        self.responses.push_back(Response { seq: self.expected, msn: self.msn, what, again: false });
    }

    /// A message is complete and uses up a receive.
    fn finish(
        &mut self,
        packet: &RocePacket<'_>,
        opcode: WcOpcode,
        byte_len: usize,
        invalidated: Option<nacelle_wire::Rkey>,
        env: &mut Env<'_>,
    ) {
        let Some(recv) = self.recvs.pop_front() else { return };
        let imm = match packet.headers.ext {
            Ext::Imm(imm) | Ext::RethImm(_, imm) => Some(imm.get()),
            _ => None,
        };
        self.partial = None;
        self.msn = self.msn.wrapping_add(1);
        let solicited = packet.headers.bth.solicited();
        let done = Completion::new(env.conn, recv.id, opcode, WcStatus::Success);
        env.complete(Completion { byte_len, imm, invalidated, solicited, ..done });
    }

    /// The receive at the front ends with `status`.
    fn fail_recv(&mut self, recv: RecvWr, status: WcStatus, env: &mut Env<'_>) -> WcStatus {
        self.recvs.pop_front();
        env.complete(Completion::new(env.conn, recv.id, WcOpcode::Recv, status));
        status
    }

    /// All receives end unsuccessfully.
    pub(crate) fn flush(&mut self, env: &mut Env<'_>) {
        for recv in self.recvs.drain(..) {
            env.complete(Completion::new(env.conn, recv.id, WcOpcode::Recv, WcStatus::WrFlushErr));
        }
        self.partial = None;
    }

    /// Nothing more is said.
    pub(crate) fn hush(&mut self) {
        self.responses.clear();
        self.answer = None;
    }

    /// What waits for transmission.
    pub(crate) fn next_answer(&self) -> Option<NextAnswer> {
        match self.responses.front() {
            Some(Response { what: Answer::Read { .. }, .. }) => Some(NextAnswer::Data),
            Some(_) => Some(NextAnswer::Short),
            None => self.answer.map(|_| NextAnswer::Short),
        }
    }

    /// Builds the next answer. Fails if the key of what is to be read is gone; then the answer says so.
    pub(crate) fn answer(
        &mut self,
        flow: &Flow,
        ip_id: u16,
        dest_qp: Qpn,
        env: &mut Env<'_>,
        buf: &mut [u8],
    ) -> Option<(usize, Result<(), QpFailure>)> {
        let write = |opcode, psn, ext, payload: &[u8], buf: &mut [u8]| {
            let mut headers = RoceHeaders::new(flow, Bth::new(opcode, dest_qp, psn), ext);
            headers.ip.identification.set(ip_id);
            headers.write(payload, buf).expect("the caller's buffer holds the longest frame")
        };
        if let Some(&Response { seq, msn, what, again }) = self.responses.front() {
            let psn = self.psn(seq);
            let aeth = Aeth::new(Syndrome::ACK, msn);
            match what {
                Answer::Atomic(original) => {
                    self.responses.pop_front();
                    env.stats.tx_responses.add(0);
                    env.counters().tx_atomic_responses += 1;
                    let ext = Ext::AethAtomic(aeth, AtomicAckEth::new(original));
                    return Some((write(Opcode::AtomicAcknowledge, psn, ext, &[], buf), Ok(())));
                }
                Answer::Read { rest, fresh } => {
                    let here = rest.map(|rest| rest.first(rest.len().min(self.mtu)));
                    let left = rest.map(|rest| rest.after(rest.len().min(self.mtu))).filter(|left| left.len() > 0);
                    let payload = here.map_or(Some(&[][..]), |here| env.regions.granted(here));
                    let Some(payload) = payload else {
                        // The key is gone, and with it the connection.
                        self.hush();
                        env.stats.tx_responses.add(0);
                        env.counters().tx_nak += 1;
                        env.counters().resp_remote_access_errors += 1;
                        let ext = Ext::Aeth(Aeth::new(Syndrome::Nak(NakCode::RemoteAccessError), msn));
                        let len = write(Opcode::Acknowledge, psn, ext, &[], buf);
                        return Some((len, Err(QpFailure(WcStatus::LocAccessErr))));
                    };
                    let (opcode, ext) = match (fresh, left.is_none()) {
                        (true, true) => (Opcode::ReadResponseOnly, Ext::Aeth(aeth)),
                        (true, false) => (Opcode::ReadResponseFirst, Ext::Aeth(aeth)),
                        (false, false) => (Opcode::ReadResponseMiddle, Ext::None),
                        (false, true) => (Opcode::ReadResponseLast, Ext::Aeth(aeth)),
                    };
                    let sent = payload.len();
                    let len = write(opcode, psn, ext, payload, buf);
                    env.stats.tx_responses.add(sent);
                    env.counters().tx_read_responses += 1;
                    self.responses.pop_front();
                    if left.is_some() {
                        let what = Answer::Read { rest: left, fresh: false };
                        self.responses.push_front(Response { seq: seq + 1, msn, what, again });
                    }
                    return Some((len, Ok(())));
                }
            }
        }
        let syndrome = self.answer.take()?;
        env.stats.tx_responses.add(0);
        let selective = env.agreed.selective_repeat;
        let c = env.counters();
        let (seq, msn, counter) = match syndrome {
            Syndrome::Ack(_) => (self.expected - 1, self.msn, &mut c.tx_ack),
            Syndrome::RnrNak(_) => (self.expected, self.msn, &mut c.send_rnr_err),
            Syndrome::Nak(NakCode::PsnSequenceError) if selective => {
                (self.expected, self.cause.get(), &mut c.send_seq_err)
            }
            Syndrome::Nak(NakCode::PsnSequenceError) => (self.expected, self.msn, &mut c.send_seq_err),
            Syndrome::Nak(_) | Syndrome::Reserved(_) => (self.expected, self.msn, &mut c.tx_nak),
        };
        *counter += 1;
        let ext = Ext::Aeth(Aeth::new(syndrome, msn));
        Some((write(Opcode::Acknowledge, self.psn(seq), ext, &[], buf), Ok(())))
    }
}

const INVALID: Refusal = Refusal::Invalid(WcStatus::LocQpOpErr);
const ACCESS: Refusal = Refusal::Access(WcStatus::LocAccessErr);

const fn is_with_imm(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::WriteLastImm | Opcode::WriteOnlyImm)
}

const fn is_answered(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::ReadRequest | Opcode::FetchAdd | Opcode::CmpSwap)
}

/// What an atomic leaves behind (IBTA 9.4.5).
const fn new_value(opcode: Opcode, atomic: &AtomicEth, original: u64) -> u64 {
    match opcode {
        Opcode::FetchAdd => original.wrapping_add(atomic.swap_add()),
        _ if original == atomic.compare() => atomic.swap_add(),
        _ => original,
    }
}

/// Where a WRITE leads, and its length.
fn open_write(reth: &Reth, env: &Env<'_>) -> Result<(Option<Grant>, usize), Refusal> {
    let total = reth.dma_len() as usize;
    if total > MAX_MESSAGE {
        return Err(INVALID);
    }
    Ok((open(reth, Access::REMOTE_WRITE, env)?, total))
}

/// Where an access leads; nowhere if it has no byte, and then key and address do not count.
fn open(reth: &Reth, access: Access, env: &Env<'_>) -> Result<Option<Grant>, Refusal> {
    let len = reth.dma_len() as usize;
    if len == 0 {
        return Ok(None);
    }
    let place = env.regions.remote((env.conn, env.domain), reth.rkey(), reth.va(), len, access);
    place.map(Some).ok_or(ACCESS)
}
