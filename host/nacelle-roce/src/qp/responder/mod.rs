// SPDX-License-Identifier: Apache-2.0
//! The responder: requests in PSN order to memory and receives, and the responses: ACK, NAK, RNR NAK or data (IBTA 9.7.4,
//! 9.7.5).
//!
//! - `execute`: the expected packet, checked completely before it changes anything.
//! - `selective`: packets ahead of it, which selective repeat places at once.
//! - `duplicate`: packets that have been executed before.
//! - `responses`: what is sent back.

mod duplicate;
mod execute;
mod responses;
mod selective;

pub(crate) use responses::NextResponse;

use super::{Env, Packet, QpFailure};
use crate::{Completion, Discard, Instant, PostError, RecvWr, WcOpcode, WcStatus, config::ConnectOptions};
use core::time::Duration;
use execute::Partial;
use nacelle_wire::{
    Psn,
    bth::{NakCode, Opcode, RnrTimer, Syndrome},
};
use responses::Response;
use std::collections::VecDeque;

/// Why the expected packet is not executed.
enum Refusal {
    /// Try again after this time.
    Rnr(RnrTimer),
    Invalid(WcStatus),
    Access(WcStatus),
}

/// How long an acknowledgement may wait for the application's answer, where the peer agrees: longer than a small call takes, much
/// shorter than any acknowledgement timeout.
const LATE: Duration = Duration::from_micros(200);

/// How often the ACK of a message is repeated where ACKs are delayed: one that is lost would be repeated after the peer's timeout only.
const ACK_REPEATS: u8 = 3;

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
    /// Responses with data, in PSN order.
    responses: VecDeque<Response>,
    /// Latest atomics and their original values, for duplicate requests.
    atomics: VecDeque<(u64, u64)>,
    /// The ACK or NAK that waits behind them. It covers all packets before it, so one serves several requests.
    acknowledge: Option<Syndrome>,
    /// Until when an ACK waits for the application's answer.
    late: Option<Instant>,
    /// When the ACK of a message is sent once more, how much later again, and how often.
    repeat: Option<(Instant, Duration, u8)>,
    /// The packet that caused a sequence error NAK (selective repeat).
    cause: Psn,
    /// A NAK for the packet at `expected` has been sent; packets ahead of it are dropped without another.
    waiting: bool,
    /// No receive was posted for the packet at `expected`, or its memory is lent. The requester sends it again after the RNR
    /// timer.
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
            acknowledge: None,
            late: None,
            repeat: None,
            cause: Psn::default(),
            waiting: false,
            not_ready: false,
            early: 0,
            had_turn: false,
        }
    }

    /// Sets the options of an accepting side, which are known after the first receives.
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
        now: Instant,
        packet: &Packet<'_>,
        env: &mut Env<'_>,
    ) -> Result<Result<(), Discard>, QpFailure> {
        let waits = self.late.take().filter(|_| self.acknowledge == Some(Syndrome::ACK));
        let was_due = self.acknowledge.is_some() && waits.is_none();
        let received = self.take(packet, env);
        if self.acknowledge == Some(Syndrome::ACK) && !was_due {
            let executed = matches!(received, Ok(Ok(())));
            let answered = env.agreed.late_acknowledgement && is_answered(packet);
            let delay = answered.then_some(LATE).or(env.agreed.ack_delay.filter(|_| is_continued(packet)));
            // A packet that requests no acknowledgement lets the one before it wait on.
            let silent = executed && !packet.headers.bth.ack_req();
            self.late = match delay.filter(|_| executed) {
                Some(delay) => waits.or(Some(now + delay)),
                None => waits.filter(|_| silent),
            };
            if let Some(delay) = env.agreed.ack_delay.filter(|_| executed && is_answered(packet)) {
                let every = delay / u32::from(ACK_REPEATS + 1);
                self.repeat = Some((self.late.unwrap_or(now) + every, every, ACK_REPEATS));
            }
        }
        received
    }

    /// The ACK has waited for long enough.
    pub(crate) fn run_timers(&mut self, now: Instant) {
        self.late = self.late.filter(|at| *at > now);
        if let Some((_, every, left)) = self.repeat.filter(|(at, ..)| *at <= now) {
            self.acknowledge.get_or_insert(Syndrome::ACK);
            self.repeat = (left > 1).then_some((now + every, every, left - 1));
        }
    }

    /// When an ACK that waits is due.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        crate::time::earliest(self.late, self.repeat.map(|(at, ..)| at))
    }

    fn take(&mut self, packet: &Packet<'_>, env: &mut Env<'_>) -> Result<Result<(), Discard>, QpFailure> {
        let distance = packet.headers.bth.psn().distance(self.psn(self.expected));
        if distance < 0 {
            env.counters().duplicate_request += 1;
            self.receive_duplicate(self.expected.saturating_add_signed(distance.into()), packet, env);
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
            Err(Refusal::Rnr(timer)) => {
                self.waiting = true;
                self.not_ready = true;
                self.acknowledge = Some(Syndrome::RnrNak(timer));
                Ok(Err(Discard::ReceiverNotReady))
            }
            Err(Refusal::Invalid(status)) => {
                self.acknowledge = Some(Syndrome::Nak(NakCode::InvalidRequest));
                let c = env.counters();
                let length = status == WcStatus::LocLenErr;
                *(if length { &mut c.resp_local_length_error } else { &mut c.resp_remote_invalid_requests }) += 1;
                Err(QpFailure(status))
            }
            Err(Refusal::Access(status)) => {
                self.acknowledge = Some(Syndrome::Nak(NakCode::RemoteAccessError));
                env.counters().resp_remote_access_errors += 1;
                Err(QpFailure(status))
            }
        }
    }

    /// The expected packet has been executed and used `count` numbers; packets placed early behind it are received now.
    fn go_on(&mut self, count: u64, packet: &Packet<'_>) {
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
        self.acknowledge = if self.waiting {
            // There is another gap.
            self.cause = packet.headers.bth.psn();
            Some(Syndrome::Nak(NakCode::PsnSequenceError))
        } else if has_response(packet.opcode) && !closed_gap {
            // Its response acknowledges it, and all before it.
            None
        } else if packet.headers.bth.ack_req() || closed_gap {
            Some(Syndrome::ACK)
        } else {
            // An ACK that waits covers this packet too; a NAK is no longer true.
            self.acknowledge.filter(|a| *a == Syndrome::ACK)
        };
    }

    /// All receives end unsuccessfully.
    pub(crate) fn flush(&mut self, env: &mut Env<'_>) {
        for recv in self.recvs.drain(..) {
            env.complete(Completion::new(env.conn, recv.id, WcOpcode::Recv, WcStatus::WrFlushErr));
        }
        self.partial = None;
    }
}

/// Whether a packet ends what consumes a receive: an application may answer it.
fn is_answered(packet: &Packet<'_>) -> bool {
    use Opcode::{SendLast, SendLastImm, SendOnly, SendOnlyImm, WriteLastImm, WriteOnlyImm};
    matches!(packet.opcode, SendLast | SendLastImm | SendOnly | SendOnlyImm | WriteLastImm | WriteOnlyImm)
}

/// Whether a packet ends a message after which the peer does not wait for an answer: it sends more, or waits for a request.
fn is_continued(packet: &Packet<'_>) -> bool {
    use Opcode::{SendLast, SendLastImm, SendOnly, SendOnlyImm, WriteLast, WriteOnly};
    matches!(packet.opcode, SendLast | SendLastImm | SendOnly | SendOnlyImm | WriteLast | WriteOnly)
}

/// Whether a request gets a response with data.
const fn has_response(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::ReadRequest | Opcode::FetchAdd | Opcode::CmpSwap)
}
