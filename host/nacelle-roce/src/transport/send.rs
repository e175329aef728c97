// SPDX-License-Identifier: Apache-2.0
//! Segments to send.

use super::Transport;
use crate::{
    ConnId, Instant, Path, Transmit,
    conn::Connection,
    qp::{NextResponse, QpFailure, Route},
};
use core::time::Duration;
use nacelle_wire::{Ecn, transport::Headers};

impl Transport {
    /// Writes segments to send into `buf` and describes them; `None` if there is nothing to send now. Also handles timers, so call
    /// it when [`Self::next_deadline`] has come, and after [`Self::handle`], until it returns `None`.
    ///
    /// One call gives up to `max_segments` of one connection, equally long but for the last (UDP_SEGMENT). ACKs, NAKs and
    /// atomic responses go first, then connection management, then requests and READ responses: a batch of each connection in
    /// turn, of both kinds by turns.
    ///
    /// # Panics
    ///
    /// If `buf` is shorter than [`Self::segment_len`].
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8], max_segments: usize) -> Option<Transmit> {
        let segment_len = self.segment_len();
        assert!(buf.len() >= segment_len, "the buffer must hold {segment_len} bytes");
        if self.next_deadline().is_some_and(|t| t <= now) {
            self.run_timers(now);
        }
        self.send_acknowledges(now, buf)
            .or_else(|| self.send_cm(buf))
            .or_else(|| self.send_turn(now, buf, max_segments))
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
                && let Some(sent) = self.send_response(now, id, buf, usize::MAX)
            {
                self.touch(id);
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
            if let Some(mut batch) = self.send_data(now, id, buf, usize::MAX) {
                let size = batch.len;
                let mut last = size;
                let mut count = 1;
                while count < max_segments && last == size && buf.len() - batch.len >= self.segment_len() {
                    let Some(next) = self.send_data(now, id, &mut buf[batch.len..], size) else { break };
                    last = next.len;
                    batch.len += last;
                    count += 1;
                }
                batch.segment_size = (count > 1).then_some(size);
                return Some(batch);
            }
        }
        None
    }

    /// The next request or READ response packet of a connection, unless it is longer than `limit`.
    fn send_data(&mut self, now: Instant, id: ConnId, buf: &mut [u8], limit: usize) -> Option<Transmit> {
        let conn = self.conns.get_mut(id)?;
        let (data, request) = (conn.wants_to_send_data(), conn.wants_to_send());
        if !(data || request) {
            return None;
        }
        if !conn.pace.may_send(&self.congestion, now) {
            self.touch(id);
            return None;
        }
        let responds = data && !(request && conn.responder.had_turn);
        conn.responder.had_turn = responds;
        let sent =
            if responds { self.send_response(now, id, buf, limit) } else { self.send_request(now, id, buf, limit) };
        if let (Some(sent), Some(conn)) = (&sent, self.conns.get_mut(id)) {
            conn.pace.sent(&self.congestion, now, sent.len + self.network.overhead);
        }
        self.touch(id);
        sent
    }

    fn send_response(&mut self, now: Instant, id: ConnId, buf: &mut [u8], limit: usize) -> Option<Transmit> {
        let data_ecn = self.data_ecn();
        let conn = self.conns.get_mut(id)?;
        let route = conn.route()?;
        let data = conn.responder.next_response() == Some(NextResponse::Data);
        let timeout = conn.options.cm_timeout;
        let (_, responder, mut env) = conn.split(&mut self.core);
        let (len, outcome) = responder.send(&route, limit, &mut env, buf)?;
        conn.sent(len + self.network.overhead);
        let ecn = if data { data_ecn } else { Ecn::NotEct };
        let sent = Transmit { ecn, ..conn.transmit(route.path, len) };
        if let Err(QpFailure(status)) = outcome {
            self.fail(now, id, status, timeout);
        }
        Some(sent)
    }

    fn send_request(&mut self, now: Instant, id: ConnId, buf: &mut [u8], limit: usize) -> Option<Transmit> {
        let data_ecn = self.data_ecn();
        let packet_len = self.segment_len() + self.network.overhead;
        let conn = self.conns.get_mut(id)?;
        let route = conn.route()?;
        // Acknowledgements are requested twice a window. At a low rate that is too late for the ACK timeout.
        let half_window = conn.options.window as usize / 2 * packet_len;
        if conn.pace.time_for(half_window).is_some_and(|t| t > conn.options.ack_timeout / 2) {
            conn.requester.ask_for_ack();
        }
        let (requester, _, mut env) = conn.split(&mut self.core);
        match requester.send(now, &route, limit, &mut env, buf) {
            Ok(len) => len.map(|len| {
                conn.sent(len + self.network.overhead);
                Transmit { ecn: data_ecn, ..conn.transmit(route.path, len) }
            }),
            Err(QpFailure(status)) => {
                self.fail(now, id, status, Duration::ZERO);
                None
            }
        }
    }

    /// Whether switches may mark packets with data.
    fn data_ecn(&self) -> Ecn {
        if self.congestion.rp_enable { Ecn::Ect0 } else { Ecn::NotEct }
    }
}

impl Connection {
    /// How its packets are addressed, once that is known.
    fn route(&self) -> Option<Route> {
        Some(Route { path: self.path?, remote_qpn: self.remote_qpn })
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
