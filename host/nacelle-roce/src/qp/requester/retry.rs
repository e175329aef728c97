// SPDX-License-Identifier: Apache-2.0
//! Retransmission: go-back-N, selective repeat, and their timers.

use super::Requester;
use crate::{
    Instant, WcStatus,
    qp::{Env, QpFailure},
};
use core::time::Duration;

impl Requester {
    pub(super) fn current_timeout(&self) -> Duration {
        self.ack_timeout.saturating_mul(1 << self.retries_used.min(16)).min(self.max_ack_timeout)
    }

    /// The next packet to send is `seq`, which is not acknowledged yet.
    pub(super) fn go_back(&mut self, seq: u64) {
        self.next_send = seq;
        self.cursor = self.index_of(seq);
        let unacked = self.unacked;
        let sent = self.wqes.iter().take(self.cursor);
        self.responses_owed = sent.clone().filter(|w| w.wr.op.has_response()).count();
        self.responses_due = sent.filter(|w| w.is_read()).map(|w| w.end() - w.first.max(unacked)).sum();
        self.repeat = None;
        self.since_ack_req = 0;
        self.ack_deadline = None;
    }

    /// The oldest response is missing though a later one came: an implied NAK (IBTA 9.7.5.1.1). Its request and what
    /// follows are repeated, once: later responses that were under way imply the same.
    pub(super) fn repeat_response(&mut self, env: &mut Env<'_>) -> Result<(), QpFailure> {
        if self.hole == Some(self.unacked) || self.next_send <= self.unacked {
            return Ok(());
        }
        env.counters().implied_nak_seq_err += 1;
        self.count_retry(env)?;
        self.hole = Some(self.unacked);
        self.go_back(self.unacked);
        Ok(())
    }

    /// Packet `oldest` is missing, as packet `cause` shows: it is sent again, unless that was done after `cause` was sent;
    /// and with it those behind it that the peer has dropped, because it takes them in order only
    /// (docs/reference/extensions.md).
    pub(super) fn repeat_selectively(&mut self, oldest: u64, cause: u64, env: &mut Env<'_>) -> Result<(), QpFailure> {
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

    pub(super) fn count_retry(&mut self, env: &mut Env<'_>) -> Result<(), QpFailure> {
        if self.retries_used >= self.retry_count {
            env.counters().retry_exceeded_err += 1;
            return Err(self.fail(0, WcStatus::RetryExceeded, env));
        }
        self.retries_used += 1;
        Ok(())
    }

    /// Handles timers that have expired.
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
}
