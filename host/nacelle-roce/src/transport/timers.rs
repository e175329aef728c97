// SPDX-License-Identifier: Apache-2.0
//! Timers, and what is to be done for a connection after each event.

#[cfg(test)]
mod tests;

use super::Transport;
use crate::{ConnId, DisconnectReason, Event, Instant, Phase, SendWr, WcStatus, qp::QpFailure};
use core::time::Duration;
use nacelle_wire::{RemoteAddr, Rkey};

impl Transport {
    pub(super) fn run_timers(&mut self, now: Instant) {
        // All that is due now is found before any of it is handled: what that makes due comes with the next call.
        let mut due = std::mem::take(&mut self.due);
        due.extend(std::iter::from_fn(|| self.conns.pop_due(now)));
        for id in due.drain(..) {
            self.run_cm_timer(now, id);
            let Some(conn) = self.conns.get_mut(id) else { continue };
            conn.pace.run_timers(now);
            conn.not_before = conn.not_before.filter(|&at| now < at);
            let keepalive = conn.keepalive_deadline().is_some_and(|t| t <= now);
            let (requester, responder, mut env) = conn.split(&mut self.core);
            responder.run_timers(now);
            if keepalive {
                // A zero-length WRITE changes nothing and must be acknowledged. The queue is empty: there is room.
                let mut wr = SendWr::write(0, Vec::new(), RemoteAddr(0), Rkey(0));
                wr.signaled = false;
                let _ = requester.post(wr, true);
            }
            if let Err(QpFailure(status)) = requester.run_timers(now, &mut env) {
                self.fail(now, id, status, Duration::ZERO);
            }
            self.touch(id);
        }
        self.due = due;
    }

    /// Queues a connection that has something to send, and takes its deadline into account.
    pub(crate) fn touch(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        if conn.wants_to_acknowledge() && !conn.acknowledge_queued {
            conn.acknowledge_queued = true;
            self.acknowledging.push_back(id);
        }
        if conn.requester.has_drained() {
            self.core.events.push_back(Event::SendQueueDrained { conn: id });
        }
        if (conn.wants_to_send_data() || conn.wants_to_send()) && !conn.send_queued {
            conn.send_queued = true;
            self.sending.push_back(id);
        }
        if std::mem::take(&mut conn.is_watched) {
            self.moved.push_back(id);
        }
        if let Some(at) = conn.next_deadline() {
            self.conns.note_deadline(id, at);
        }
    }

    /// Flushes all work requests of a connection.
    pub(crate) fn flush(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id) {
            let (requester, responder, mut env) = conn.split(&mut self.core);
            requester.flush(&mut env, |_| WcStatus::WrFlushErr);
            responder.flush(&mut env);
        }
    }

    /// A queue pair fails: its work ends, the user gets an event, and after `linger` the peer a DREQ, unless it sends one first.
    pub(super) fn fail(&mut self, now: Instant, id: ConnId, status: WcStatus, linger: Duration) {
        self.flush(id);
        if self.conns.get(id).is_some_and(|c| matches!(c.phase, Phase::Unmanaged(_))) {
            return self.fail_unmanaged(id, status);
        }
        self.report_end(id, DisconnectReason::Error(status), &[]);
        if let Some(conn) = self.conns.get_mut(id) {
            conn.phase = Phase::Lingering;
            conn.cm_deadline = Some(now + linger);
        }
        self.touch(id);
    }
}
