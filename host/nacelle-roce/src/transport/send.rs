// SPDX-License-Identifier: Apache-2.0
//! Segments to send.

use super::Transport;
use crate::{
    Batch, Congestion, ConnId, Instant, Network, Path, Transmit,
    conn::{Connection, Core},
    qp::{NextResponse, QpFailure},
};
use core::time::Duration;
use nacelle_wire::{Ecn, transport::Headers};

impl Transport {
    /// Writes segments to send into `buf` and describes them; `None` if there is nothing to send now. Also handles timers, so call
    /// it when [`Self::next_deadline`] has come, and after [`Self::handle`], until it returns `None`.
    ///
    /// One call gives a [`Batch`] of one connection, equally long but for the last (UDP_SEGMENT). ACKs, NAKs and
    /// atomic responses go first, then connection management, then requests and READ responses: a batch of each connection in
    /// turn, of both kinds by turns.
    ///
    /// # Panics
    ///
    /// If `buf` is shorter than [`Self::segment_len`].
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8], batch: impl Into<Batch>) -> Option<Transmit> {
        let Batch { segments, past_cache } = batch.into();
        self.core.regions.past_cache = past_cache;
        let segment_len = self.segment_len();
        assert!(buf.len() >= segment_len, "the buffer must hold {segment_len} bytes");
        if self.next_deadline().is_some_and(|t| t <= now) {
            self.run_timers(now);
        }
        self.send_acknowledges(now, buf).or_else(|| self.send_cm(buf)).or_else(|| self.send_turn(now, buf, segments))
    }

    fn send_acknowledges(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        while let Some(id) = self.acknowledging.pop_front() {
            let Some(conn) = self.conns.get_mut(id) else { continue };
            conn.acknowledge_queued = false;
            if conn.pace.take_cnp()
                && let Some(sent) = self.send_cnp(id, buf)
            {
                return Some(sent);
            }
            let Some(conn) = self.conns.get_mut(id) else { continue };
            if conn.responder.next_response() == Some(NextResponse::Short)
                && let Some(sent) = self.send_short(now, id, buf)
            {
                return Some(sent);
            }
        }
        None
    }

    fn send_cnp(&mut self, id: ConnId, buf: &mut [u8]) -> Option<Transmit> {
        let conn = self.conns.get_mut(id)?;
        let path = conn.path?;
        let (_, len) =
            Headers::cnp(conn.remote_qpn).write(0, buf).expect("the caller's buffer holds the longest segment");
        conn.stats.counters.np_cnp_sent += 1;
        conn.sent(len + self.network.overhead);
        let sent = Transmit { dscp: self.congestion.cnp_dscp, ..conn.transmit(path, len) };
        self.touch(id);
        Some(sent)
    }

    /// Requests and READ responses of the connection whose turn it is.
    fn send_turn(&mut self, now: Instant, buf: &mut [u8], max_segments: usize) -> Option<Transmit> {
        while let Some(id) = self.sending.pop_front() {
            let Some(conn) = self.conns.get_mut(id) else { continue };
            conn.send_queued = false;
            let sent = self.send_batch(now, id, buf, max_segments);
            self.touch(id);
            if sent.is_some() {
                return sent;
            }
        }
        None
    }

    /// The next request and READ response packets of a connection: as many as are equally long, and one that is shorter.
    fn send_batch(&mut self, now: Instant, id: ConnId, buf: &mut [u8], max_segments: usize) -> Option<Transmit> {
        let segment_len = self.segment_len();
        let Self { conns, core, congestion, network, .. } = self;
        let conn = conns.get_mut(id)?;
        let ecn = if congestion.rp_enable { Ecn::Ect0 } else { Ecn::NotEct };
        let mut batch = Transmit { ecn, ..conn.transmit(conn.path?, 0) };
        let (mut size, mut count, mut failure) = (0, 0, None);
        while count == 0 || count < max_segments && buf.len() - batch.len >= segment_len {
            let limit = if count == 0 { usize::MAX } else { size };
            let (sent, failed) = conn.send_data(now, core, congestion, *network, limit, &mut buf[batch.len..]);
            failure = failed;
            let Some(len) = sent else { break };
            batch.len += len;
            count += 1;
            if count == 1 {
                size = len;
            }
            if len < size || failure.is_some() {
                break;
            }
        }
        if let Some((QpFailure(status), linger)) = failure {
            self.fail(now, id, status, linger);
        }
        batch.segment_size = (count > 1).then_some(size);
        (count > 0).then_some(batch)
    }

    /// The next ACK, NAK or atomic response of a connection.
    fn send_short(&mut self, now: Instant, id: ConnId, buf: &mut [u8]) -> Option<Transmit> {
        let conn = self.conns.get_mut(id)?;
        let path = conn.path?;
        let (sent, failure) = conn.send_response(&mut self.core, self.network, usize::MAX, buf);
        let sent = sent.map(|len| conn.transmit(path, len));
        if let Some((QpFailure(status), linger)) = failure {
            self.fail(now, id, status, linger);
        }
        if sent.is_some() {
            self.touch(id);
        }
        sent
    }
}

/// What a connection has sent: bytes of the packet, if there is one, and how it has failed by that, and when its peer is told at the
/// latest.
type Sent = (Option<usize>, Option<(QpFailure, Duration)>);

impl Connection {
    /// The next request or READ response, unless it is longer than `limit`.
    fn send_data(
        &mut self,
        now: Instant,
        core: &mut Core,
        congestion: &Congestion,
        network: Network,
        limit: usize,
        buf: &mut [u8],
    ) -> Sent {
        let (data, request) = (self.wants_to_send_data(), self.wants_to_send());
        if !(data || request) || !self.pace.may_send(congestion, now) {
            return (None, None);
        }
        let responds = data && !(request && self.responder.had_turn);
        self.responder.had_turn = responds;
        let sent = if responds {
            self.send_response(core, network, limit, buf)
        } else {
            self.send_request(now, core, network, limit, buf)
        };
        if let (Some(len), _) = sent {
            self.pace.sent(congestion, now, len + network.overhead);
        }
        sent
    }

    fn send_response(&mut self, core: &mut Core, network: Network, limit: usize, buf: &mut [u8]) -> Sent {
        let (to, timeout) = (self.remote_qpn, self.options.cm_timeout);
        let (_, responder, mut env) = self.split(core);
        let Some((len, outcome)) = responder.send(to, limit, &mut env, buf) else { return (None, None) };
        self.sent(len + network.overhead);
        (Some(len), outcome.err().map(|failure| (failure, timeout)))
    }

    fn send_request(&mut self, now: Instant, core: &mut Core, network: Network, limit: usize, buf: &mut [u8]) -> Sent {
        let to = self.remote_qpn;
        // Acknowledgements are requested twice a window. At a low rate that is too late for the ACK timeout.
        let half_window = self.options.window as usize / 2 * (network.segment_len() + network.overhead);
        if self.pace.time_for(half_window).is_some_and(|t| t > self.options.ack_timeout / 2) {
            self.requester.ask_for_ack();
        }
        let (requester, _, mut env) = self.split(core);
        match requester.send(now, to, limit, &mut env, buf) {
            Ok(sent) => {
                if let Some(len) = sent {
                    self.sent(len + network.overhead);
                }
                (sent, None)
            }
            Err(failure) => (None, Some((failure, Duration::ZERO))),
        }
    }

    /// A segment of `len` bytes on its way.
    fn transmit(&self, path: Path, len: usize) -> Transmit {
        let source_port = crate::cm::source_port(self.local_qpn);
        Transmit { path, source_port, dscp: 0, ecn: Ecn::NotEct, len, segment_size: None }
    }

    /// Counts a packet that was sent.
    fn sent(&mut self, len: usize) {
        self.stats.tx_packets += 1;
        self.stats.tx_bytes += len as u64;
    }
}
