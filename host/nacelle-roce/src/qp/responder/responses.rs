// SPDX-License-Identifier: Apache-2.0
//! What is sent back: responses with data in PSN order, and behind them at most one ACK or NAK.

use super::Responder;
use crate::{
    WcStatus,
    qp::{Env, QpFailure},
    region::{Grant, RegionId},
};
use nacelle_wire::{
    Psn, Qpn,
    bth::{Aeth, AtomicAckEth, Bth, NakCode, Opcode, Syndrome},
    transport::{Ext, Headers},
};

/// A response with data, in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Response {
    /// Number of its next packet.
    pub(super) seq: u64,
    pub(super) msn: u32,
    pub(super) what: Data,
    /// To a duplicate request: it does not count against the agreed number.
    pub(super) again: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Data {
    /// What is left to read, and whether nothing of it has been sent; `None` reads nothing.
    Read { rest: Option<Grant>, fresh: bool },
    /// The original value.
    Atomic(u64),
}

impl Response {
    /// One behind the number of its last packet.
    pub(super) fn end(&self, mtu: usize) -> u64 {
        match self.what {
            Data::Read { rest: Some(rest), .. } => self.seq + psns(rest.len(), mtu),
            _ => self.seq + 1,
        }
    }
}

/// Numbers that a READ of `len` bytes uses.
pub(super) fn psns(len: usize, mtu: usize) -> u64 {
    len.div_ceil(mtu).max(1) as u64
}

/// Kind of the next response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextResponse {
    /// ACK, NAK or atomic response, which goes first.
    Short,
    /// READ response, which takes turns with requests.
    Data,
}

impl Responder {
    /// Drops everything that waits to be sent.
    pub(crate) fn discard_responses(&mut self) {
        self.responses.clear();
        self.acknowledge = None;
    }

    /// Whether data of a region waits to be sent.
    pub(crate) fn is_reading(&self, region: RegionId) -> bool {
        let reads = |what: &Data| matches!(what, Data::Read { rest: Some(rest), .. } if rest.region() == region);
        self.responses.iter().any(|response| reads(&response.what))
    }

    /// Kind of the response that is sent next.
    pub(crate) fn next_response(&self) -> Option<NextResponse> {
        match self.responses.front() {
            Some(Response { what: Data::Read { .. }, .. }) => Some(NextResponse::Data),
            Some(_) => Some(NextResponse::Short),
            None => self.acknowledge.filter(|_| self.late.is_none()).map(|_| NextResponse::Short),
        }
    }

    /// Builds the next response into `buf`, unless it is longer than `limit`. Returns its length. Fails if the key of what is to
    /// be read was invalidated; then it is a NAK.
    pub(crate) fn send(
        &mut self,
        to: Qpn,
        limit: usize,
        env: &mut Env<'_>,
        buf: &mut [u8],
    ) -> Option<(usize, Result<(), QpFailure>)> {
        match self.responses.front().copied() {
            Some(response) => match response.what {
                Data::Atomic(original) => {
                    let ext = Ext::AethAtomic(Aeth::new(Syndrome::ACK, response.msn), AtomicAckEth::new(original));
                    let len = put(&headers(to, Opcode::AtomicAcknowledge, self.psn(response.seq), ext), limit, buf)?;
                    self.responses.pop_front();
                    env.stats.tx_responses.add(0);
                    env.counters().tx_atomic_responses += 1;
                    Some((len, Ok(())))
                }
                Data::Read { rest, fresh } => self.send_read(to, response, (rest, fresh), limit, env, buf),
            },
            None => {
                let (seq, msn) = self.acknowledged(self.acknowledge?, env);
                let ext = Ext::Aeth(Aeth::new(self.acknowledge?, msn));
                let len = put(&headers(to, Opcode::Acknowledge, self.psn(seq), ext), limit, buf)?;
                let syndrome = self.acknowledge.take()?;
                env.stats.tx_responses.add(0);
                let c = env.counters();
                *match syndrome {
                    Syndrome::Ack(_) => &mut c.tx_ack,
                    Syndrome::RnrNak(_) => &mut c.send_rnr_err,
                    Syndrome::Nak(NakCode::PsnSequenceError) => &mut c.send_seq_err,
                    Syndrome::Nak(_) | Syndrome::Reserved(_) => &mut c.tx_nak,
                } += 1;
                Some((len, Ok(())))
            }
        }
    }

    /// The number that an ACK or NAK names, and the MSN in it.
    fn acknowledged(&self, syndrome: Syndrome, env: &Env<'_>) -> (u64, u32) {
        match syndrome {
            Syndrome::Ack(_) => (self.expected - 1, self.msn),
            Syndrome::Nak(NakCode::PsnSequenceError) if env.agreed.selective_repeat => {
                (self.expected, self.cause.get())
            }
            _ => (self.expected, self.msn),
        }
    }

    /// Builds the next packet of the response to a READ, of which `rest` is left.
    fn send_read(
        &mut self,
        to: Qpn,
        response: Response,
        (rest, fresh): (Option<Grant>, bool),
        limit: usize,
        env: &mut Env<'_>,
        buf: &mut [u8],
    ) -> Option<(usize, Result<(), QpFailure>)> {
        let Response { seq, msn, again, .. } = response;
        let psn = self.psn(seq);
        let here = rest.map(|rest| rest.first(rest.len().min(self.mtu)));
        let left = rest.map(|rest| rest.after(rest.len().min(self.mtu))).filter(|left| left.len() > 0);
        let aeth = Aeth::new(Syndrome::ACK, msn);
        let (opcode, ext) = match (fresh, left.is_none()) {
            (true, true) => (Opcode::ReadResponseOnly, Ext::Aeth(aeth)),
            (true, false) => (Opcode::ReadResponseFirst, Ext::Aeth(aeth)),
            (false, false) => (Opcode::ReadResponseMiddle, Ext::None),
            (false, true) => (Opcode::ReadResponseLast, Ext::Aeth(aeth)),
        };
        let packet = headers(to, opcode, psn, ext);
        let sent = here.map_or(0, Grant::len);
        if packet.packet_len(sent) > limit {
            return None;
        }
        let (payload, len) = packet.write(sent, buf).expect("the caller's buffer holds the longest segment");
        if here.is_some_and(|here| env.regions.read_granted(here, payload).is_none()) {
            // The key was invalidated: the connection fails.
            self.discard_responses();
            env.stats.tx_responses.add(0);
            env.counters().tx_nak += 1;
            env.counters().resp_remote_access_errors += 1;
            let ext = Ext::Aeth(Aeth::new(Syndrome::Nak(NakCode::RemoteAccessError), msn));
            let len = put(&headers(to, Opcode::Acknowledge, psn, ext), usize::MAX, buf)?;
            return Some((len, Err(QpFailure(WcStatus::LocAccessErr))));
        }
        env.stats.tx_responses.add(sent);
        env.counters().tx_read_responses += 1;
        self.responses.pop_front();
        if left.is_some() {
            let what = Data::Read { rest: left, fresh: false };
            self.responses.push_front(Response { seq: seq + 1, msn, what, again });
        }
        Some((len, Ok(())))
    }
}

fn headers(to: Qpn, opcode: Opcode, psn: Psn, ext: Ext) -> Headers {
    Headers::new(Bth::new(opcode, to, psn), ext)
}

/// Writes a packet without payload, unless it is longer than `limit`. Returns its length.
fn put(headers: &Headers, limit: usize, buf: &mut [u8]) -> Option<usize> {
    let fits = headers.packet_len(0) <= limit;
    fits.then(|| headers.write(0, buf).expect("the caller's buffer holds the longest segment").1)
}
