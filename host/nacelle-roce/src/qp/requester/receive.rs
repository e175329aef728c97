// SPDX-License-Identifier: Apache-2.0
//! From responses to completions.

use super::{Requester, report};
use crate::{
    Data, Discard, Instant, WcStatus,
    qp::{Env, Packet, QpFailure},
};
use core::time::Duration;
use nacelle_wire::{
    Psn,
    bth::{Aeth, NakCode, Opcode, Syndrome},
    transport::Ext,
};

impl Requester {
    /// Receives a response.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
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
                    self.repeat_response(env)?;
                }
            }
            Syndrome::Nak(NakCode::PsnSequenceError) => {
                env.counters().packet_seq_err += 1;
                if reached < up_to {
                    self.repeat_response(env)?;
                } else if env.agreed.selective_repeat {
                    let cause = i64::from(Psn::new(aeth.msn()).distance(self.psn(seq)));
                    self.repeat_selectively(seq, seq.saturating_add_signed(cause), env)?;
                } else if self.next_send != self.unacked {
                    // A second NAK, before the packet is sent again, changes nothing.
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
                    // The peer answers, so what was lost before was not lost in a row: it may have no receive for long.
                    self.retries_used = 0;
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

    /// Receives the response to an atomic.
    fn receive_atomic(
        &mut self,
        now: Instant,
        seq: u64,
        aeth: &Aeth,
        original: u64,
        env: &mut Env<'_>,
    ) -> Result<Result<(), Discard>, QpFailure> {
        if let Err(discard) = self.next_response(now, seq, false, env)? {
            return Ok(Err(discard));
        }
        if !is_positive(aeth) {
            return Err(self.bad_response(env));
        }
        if let Data::Region(slice) = self.wqes[0].wr.data
            && env.write_local(slice, (&original.to_ne_bytes()).into()).is_none()
        {
            return Err(self.fail(0, WcStatus::LocProtErr, env));
        }
        env.counters().rx_atomic_responses += 1;
        env.stats.rx_payload += 8;
        self.advance(now, seq + 1, env);
        Ok(Ok(()))
    }

    /// Receives a packet of the response to a READ.
    fn receive_read(
        &mut self,
        now: Instant,
        seq: u64,
        packet: &Packet<'_>,
        env: &mut Env<'_>,
    ) -> Result<Result<(), Discard>, QpFailure> {
        if let Err(discard) = self.next_response(now, seq, true, env)? {
            return Ok(Err(discard));
        }
        let wqe = &self.wqes[0];
        let mtu = self.mtu.bytes();
        let total = wqe.wr.data.len();
        let offset = (seq - wqe.first) as usize * mtu;
        let len = total.min(offset + mtu) - offset;
        // The response to a repeated request begins within the READ: with FIRST or ONLY, or continues as the first one would.
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
        if let Data::Region(slice) = wqe.wr.data
            && env.write_local(slice.after(offset).first(len), packet.payload).is_none()
        {
            return Err(self.fail(0, WcStatus::LocProtErr, env));
        }
        env.counters().rx_read_responses += 1;
        env.stats.rx_payload += len as u64;
        if seq < self.next_send {
            self.responses_due -= 1;
        }
        self.advance(now, seq + 1, env);
        Ok(Ok(()))
    }

    /// The response is not one to this request.
    fn bad_response(&mut self, env: &mut Env<'_>) -> QpFailure {
        env.counters().req_bad_response += 1;
        self.fail(0, WcStatus::BadRespErr, env)
    }

    /// Whether `seq` is the response expected next, to a READ or an atomic; then its work request is at the front. It
    /// acknowledges what is before it, unless that includes a response that is missing: then that request is repeated.
    fn next_response(
        &mut self,
        now: Instant,
        seq: u64,
        read: bool,
        env: &mut Env<'_>,
    ) -> Result<Result<(), Discard>, QpFailure> {
        let wqe = self.wqes.get(self.index_of(seq));
        if !wqe.is_some_and(|w| w.wr.op.has_response() && w.is_read() == read) {
            return Ok(Err(Discard::UnexpectedResponse));
        }
        if self.acknowledge(now, seq, env) < seq {
            self.repeat_response(env)?;
            return Ok(Err(Discard::OutOfSequence));
        }
        Ok(Ok(()))
    }

    /// The peer has executed everything before `up_to`, as the application knows.
    pub(crate) fn confirm(&mut self, now: Instant, up_to: u64, env: &mut Env<'_>) {
        if up_to > self.unacked && up_to <= self.max_sent {
            self.acknowledge(now, up_to, env);
        }
    }

    /// The peer has received everything before `up_to`. Returns up to where that completes packets: not past a response that
    /// has not come.
    fn acknowledge(&mut self, now: Instant, up_to: u64, env: &mut Env<'_>) -> u64 {
        let missing = self.wqes.iter().take_while(|w| w.first < up_to).find(|w| w.wr.op.has_response());
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

    /// Completes the work requests at the front that are done.
    pub(super) fn retire(&mut self, env: &mut Env<'_>) {
        while self.wqes.front().is_some_and(|w| w.is_before(self.unacked))
            && let Some(wqe) = self.wqes.pop_front()
        {
            if self.cursor > 0 {
                self.cursor -= 1;
                self.responses_owed -= usize::from(wqe.wr.op.has_response());
            }
            report(wqe, WcStatus::Success, env);
        }
    }
}

/// Whether it is no NAK, which comes in packets of its own.
fn is_positive(aeth: &Aeth) -> bool {
    matches!(aeth.syndrome(), Syndrome::Ack(_))
}
