// SPDX-License-Identifier: Apache-2.0
//! Received segments.

use super::Transport;
use crate::{
    Discard, Instant, Phase, QpState, Segment,
    qp::{Packet, QpFailure},
};
use core::time::Duration;
use nacelle_memory::Source;
use nacelle_wire::{
    Ecn, ParseError, Qpn,
    bth::Opcode,
    transport::{self, MAX_HEADERS},
};

impl Transport {
    /// Receives a segment.
    ///
    /// One that fails any check changes nothing but a counter; the error says which check.
    pub fn handle(&mut self, now: Instant, segment: &Segment<'_>) -> Result<(), Discard> {
        let result = self.receive(now, segment);
        if let Err(why) = result {
            self.core.counters.discard(why);
        }
        result
    }

    /// Receives a batch of segments. The counters count discarded ones by reason.
    pub fn handle_all<'a>(&mut self, now: Instant, segments: impl IntoIterator<Item = Segment<'a>>) {
        for segment in segments {
            let _counted = self.handle(now, &segment);
        }
    }

    fn receive(&mut self, now: Instant, segment: &Segment<'_>) -> Result<(), Discard> {
        let packet = parse(segment.payload)?;
        // Full and limited members of the default partition may communicate with a full member (IBTA 10.9.1.1).
        if packet.headers.bth.p_key.get() & 0x7fff != 0x7fff {
            return Err(Discard::PKey);
        }
        if packet.opcode.is_ud() {
            if packet.headers.bth.dest_qp() == Qpn::GSI {
                self.receive_cm(now, segment.path, &packet)
            } else {
                Err(Discard::UnknownQp)
            }
        } else {
            self.receive_rc(now, segment, &packet)
        }
    }

    fn receive_rc(&mut self, now: Instant, segment: &Segment<'_>, packet: &Packet<'_>) -> Result<(), Discard> {
        let conn = self.conns.by_qpn(packet.headers.bth.dest_qp()).ok_or(Discard::UnknownQp)?;
        if conn.peer != segment.path.remote || conn.path.is_some_and(|path| path.local != segment.path.local) {
            return Err(Discard::WrongPeer);
        }
        let id = conn.id;
        match conn.phase {
            Phase::Established | Phase::Unmanaged(QpState::Rtr | QpState::Rts | QpState::Sqd) => {}
            // The RTU is late or lost; a packet on the connection has the same effect (IBTA 12.9.7.2).
            Phase::RepSent => self.establish(now, id, Vec::new()),
            Phase::Lingering | Phase::DreqSent | Phase::Unmanaged(QpState::Err) => return Err(Discard::QpError),
            _ => return Err(Discard::UnknownQp),
        }
        let conn = self.conns.get_mut(id).ok_or(Discard::UnknownQp)?;
        conn.stats.last_received = Some(now);
        conn.stats.rx_packets += 1;
        conn.stats.rx_bytes += (segment.payload.len() + self.network.overhead) as u64;
        if packet.opcode == Opcode::Cnp {
            let handled = conn.pace.notified(&self.congestion, now);
            conn.stats.counters.rp_cnp_handled += u64::from(handled);
            conn.stats.counters.rp_cnp_ignored += u64::from(!handled);
            self.touch(id);
            return Ok(());
        }
        if segment.ecn == Ecn::Ce {
            conn.stats.counters.np_ecn_marked_roce_packets += 1;
            conn.pace.marked(&self.congestion, now);
        }
        let traffic =
            if packet.opcode.is_response() { &mut conn.stats.rx_responses } else { &mut conn.stats.rx_requests };
        traffic.add(packet.payload.len());
        let (requester, responder, mut env) = conn.split(&mut self.core);
        let outcome = match packet.opcode {
            opcode if opcode.is_response() => requester.receive(now, packet, &mut env).map_err(|f| (f, Duration::ZERO)),
            // The NAK informs the peer, which gets time to end the connection itself.
            _ => responder.receive(now, packet, &mut env).map_err(|f| (f, conn.options.cm_timeout)),
        };
        match outcome {
            Ok(result) => {
                self.touch(id);
                result
            }
            Err((QpFailure(status), linger)) => {
                self.fail(now, id, status, linger);
                Ok(())
            }
        }
    }
}

/// Copies the headers, which the peer may change at any time, and reads the copy. The payload is not looked at.
fn parse(segment: Source<'_>) -> Result<Packet<'_>, ParseError> {
    let mut head = [0; MAX_HEADERS];
    let packet = transport::Packet::parse_head(segment.copy_head(&mut head), segment.len())?;
    Ok(packet.map(|payload| segment.split_at(payload.end).0.split_at(payload.start).1))
}
