// SPDX-License-Identifier: Apache-2.0
//! From work requests to packets: what may be sent next, and what it looks like.

use super::{Repeated, Requester, posted::PostedSend};
use crate::{
    Data, Instant, SendOp, WcStatus,
    qp::{Env, QpFailure, SELECTIVE_WINDOW},
    region::Access,
};
use nacelle_wire::{
    Qpn, RemoteAddr,
    bth::{AtomicEth, Bth, Ieth, ImmDt, Opcode, Reth},
    transport::{Ext, Headers},
};

/// Most PSNs in flight: half the circle, so that the responder can distinguish duplicates from new packets (IBTA 9.7.2).
const MAX_IN_FLIGHT: u64 = 1 << 23;
/// Most response packets outstanding to READs, unless one READ alone has more: they come as fast as the peer can send, and
/// queues on the way must hold them.
const MAX_RESPONSES: u64 = 256;

impl Requester {
    /// Whether a packet can be sent now, or a local operation done.
    pub(crate) fn wants_to_send(&self, initiator_depth: u8, selective: bool) -> bool {
        if self.rnr_until.is_some() {
            return false;
        }
        self.repeat.is_some() || self.may_continue(initiator_depth, selective)
    }

    /// Whether the work request at the cursor may go on.
    fn may_continue(&self, initiator_depth: u8, selective: bool) -> bool {
        let Some(wqe) = self.wqes.get(self.cursor) else { return false };
        if self.paused && wqe.first >= self.max_sent || wqe.wr.fence && self.responses_owed > 0 {
            return false;
        }
        if wqe.is_local() {
            return true;
        }
        if wqe.wr.op.has_response() && self.responses_owed >= usize::from(initiator_depth) {
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

    /// Does the local operations that are next.
    fn run_local(&mut self, env: &mut Env<'_>) -> Result<(), QpFailure> {
        while let Some(wqe) = self.wqes.get_mut(self.cursor)
            && let SendOp::LocalInvalidate { rkey } = wqe.wr.op
            && !(wqe.wr.fence && self.responses_owed > 0)
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

    /// Builds the next packet into `buf` and returns its length; `None` if there is none after all, or it is longer than
    /// `limit`.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        to: Qpn,
        limit: usize,
        env: &mut Env<'_>,
        buf: &mut [u8],
    ) -> Result<Option<usize>, QpFailure> {
        self.run_local(env)?;
        self.repeat = self.repeat.and_then(|(seq, end)| {
            let seq = if seq >= self.unacked { Some(seq) } else { self.next_in_order(self.unacked, end) };
            seq.filter(|&seq| seq < self.next_send).map(|seq| (seq, end))
        });
        let repeat = self.repeat;
        if repeat.is_none() && !self.may_continue(env.agreed.initiator_depth, env.agreed.selective_repeat) {
            return Ok(None);
        }
        let seq = repeat.map_or(self.next_send, |(seq, _)| seq);
        let index = if repeat.is_some() { self.index_of(seq) } else { self.cursor };
        let wqe = &self.wqes[index];
        let mtu = self.mtu.bytes();
        let total = wqe.wr.data.len();
        let offset = (seq - wqe.first) as usize * mtu;
        let has_response = wqe.wr.op.has_response();
        let end = if wqe.is_read() { wqe.end() } else { seq + 1 };
        let last = end == wqe.end();
        let here = total.min(offset + mtu);
        let sent = if has_response { 0 } else { here - offset };

        let place = Place { offset, here, total, first: seq == wqe.first, last };
        let (opcode, ext) = packet_form(wqe.wr.op, &place, env.agreed.selective_repeat);
        let mut bth = Bth::new(opcode, to, self.psn(seq));
        bth.set_solicited(last && wqe.wr.solicited);
        // Long messages are acknowledged on the way: twice a window, and when the window is exhausted.
        let since_ack_req = self.since_ack_req + 1;
        let window = if env.agreed.selective_repeat { self.window.min(SELECTIVE_WINDOW) } else { self.window };
        let due = since_ack_req * 2 >= window || self.in_flight() + 1 == u64::from(window);
        let ask = last || due || repeat.is_some();
        bth.set_ack_req(ask);
        let headers = Headers::new(bth, ext);
        if headers.packet_len(sent) > limit {
            return Ok(None);
        }
        let (payload, len) = headers.write(sent, buf).expect("the caller's buffer holds the longest segment");
        let read = match &wqe.wr.data {
            _ if has_response => Some(()),
            Data::Inline(bytes) => {
                payload.copy_from_slice(&bytes[offset..here]);
                Some(())
            }
            Data::Region(s) => env.read_local(s.after(offset).first(sent), payload),
        };
        if read.is_none() {
            return Err(self.fail(index, WcStatus::LocProtErr, env));
        }
        self.repeat = None;
        self.since_ack_req = if ask { 0 } else { since_ack_req };

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
                self.responses_owed += usize::from(has_response);
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
    pub(super) fn next_in_order(&self, from: u64, end: u64) -> Option<u64> {
        let wqes = self.wqes.range(self.index_of(from)..).take_while(|w| w.first < end);
        wqes.filter_map(|w| w.next_in_order(from)).next().filter(|&seq| seq < end)
    }
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
