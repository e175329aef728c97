// SPDX-License-Identifier: Apache-2.0
//! The responder: requests in PSN order to memory and receives, each answered by ACK, NAK or RNR NAK (IBTA 9.7.4,
//! 9.7.5).
//!
//! A packet is checked completely before it changes anything. At most one answer waits for transmission; it speaks for
//! all packets before it, so that several requests handled before the next transmission share one ACK.

use super::{Env, QpFailure, RecvWr};
use crate::{Completion, Discard, PostError, RegionSlice, WcOpcode, WcStatus, config::ConnectOptions, region::Access};
use nacelle_wire::{
    Psn, Qpn, RoceHeaders, RocePacket,
    bth::{Aeth, Bth, NakCode, Opcode, Reth, RnrTimer, Syndrome},
    roce::{Ext, Flow},
};
use std::collections::VecDeque;

/// A message of which more packets are to come.
#[derive(Clone, Copy, Debug)]
enum Partial {
    /// A SEND: bytes received so far.
    Send(usize),
    /// A WRITE: what remains of its place, and its total length.
    Write(RegionSlice, usize),
}

/// Position of a packet in its message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    First,
    Middle,
    Last,
    Only,
}

/// How a packet is refused.
enum Refusal {
    Rnr,
    Invalid(WcStatus),
    Access,
}

#[derive(Debug)]
pub(crate) struct Responder {
    expected: Psn,
    msn: u32,
    partial: Option<Partial>,
    recvs: VecDeque<RecvWr>,
    depth: usize,
    mtu: usize,
    rnr_timer: RnrTimer,
    answer: Option<Syndrome>,
    /// The packet at `expected` has been asked for again; what comes ahead of it is dropped without another NAK.
    waiting: bool,
}

impl Responder {
    pub(crate) fn new(options: &ConnectOptions) -> Self {
        Self {
            expected: Psn::default(),
            msn: 0,
            partial: None,
            recvs: VecDeque::new(),
            depth: options.recv_depth,
            mtu: 0,
            rnr_timer: options.rnr_timer,
            answer: None,
            waiting: false,
        }
    }

    /// Takes the options of the side that accepts, which come after the first receives.
    pub(crate) fn configure(&mut self, options: &ConnectOptions) {
        self.depth = options.recv_depth;
        self.rnr_timer = options.rnr_timer;
    }

    /// The connection is set up: the peer begins at `psn` with packets of up to `mtu` bytes.
    pub(crate) fn start(&mut self, psn: Psn, mtu: usize) {
        self.expected = psn;
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

    /// Takes a request.
    pub(crate) fn receive(
        &mut self,
        packet: &RocePacket<'_>,
        env: &mut Env<'_>,
    ) -> Result<Result<(), Discard>, QpFailure> {
        let distance = packet.headers.bth.psn().distance(self.expected);
        if distance < 0 {
            env.stats.duplicates += 1;
            self.answer.get_or_insert(Syndrome::ACK);
            return Ok(Err(Discard::Duplicate));
        }
        if distance > 0 {
            env.stats.out_of_sequence += 1;
            if !self.waiting {
                self.waiting = true;
                self.answer = Some(Syndrome::Nak(NakCode::PsnSequenceError));
            }
            return Ok(Err(Discard::OutOfSequence));
        }
        match self.execute(packet, env) {
            Ok(()) => {
                self.expected = self.expected.add(1);
                self.waiting = false;
                self.answer = if packet.headers.bth.ack_req() {
                    Some(Syndrome::ACK)
                } else {
                    // An ACK that still waits may speak for this packet too; a NAK has become untrue.
                    self.answer.filter(|a| *a == Syndrome::ACK)
                };
                env.counters.rx_request += 1;
                env.stats.rx_payload += packet.payload.len() as u64;
                Ok(Ok(()))
            }
            Err(Refusal::Rnr) => {
                self.waiting = true;
                self.answer = Some(Syndrome::RnrNak(self.rnr_timer));
                Ok(Err(Discard::ReceiverNotReady))
            }
            Err(Refusal::Invalid(status)) => {
                self.answer = Some(Syndrome::Nak(NakCode::InvalidRequest));
                env.counters.discard_invalid_request += 1;
                Err(QpFailure(status))
            }
            Err(Refusal::Access) => {
                self.answer = Some(Syndrome::Nak(NakCode::RemoteAccessError));
                env.counters.discard_remote_access += 1;
                Err(QpFailure(WcStatus::LocAccessErr))
            }
        }
    }

    fn execute(&mut self, packet: &RocePacket<'_>, env: &mut Env<'_>) -> Result<(), Refusal> {
        use Opcode::*;
        match packet.opcode {
            SendFirst => self.execute_send(packet, Form::First, env),
            SendMiddle => self.execute_send(packet, Form::Middle, env),
            SendLast | SendLastImm => self.execute_send(packet, Form::Last, env),
            SendOnly | SendOnlyImm => self.execute_send(packet, Form::Only, env),
            WriteFirst => self.execute_write(packet, Form::First, env),
            WriteMiddle => self.execute_write(packet, Form::Middle, env),
            WriteLast | WriteLastImm => self.execute_write(packet, Form::Last, env),
            WriteOnly | WriteOnlyImm => self.execute_write(packet, Form::Only, env),
            _ => Err(Refusal::Invalid(WcStatus::LocQpOpErr)),
        }
    }

    /// The length that a packet of this form may have (IBTA 9.7.4.1.6).
    fn check_length(&self, form: Form, len: usize) -> Result<(), Refusal> {
        let ok = match form {
            Form::First | Form::Middle => len == self.mtu,
            Form::Last => len >= 1 && len <= self.mtu,
            Form::Only => len <= self.mtu,
        };
        if ok { Ok(()) } else { Err(Refusal::Invalid(WcStatus::LocQpOpErr)) }
    }

    fn execute_send(&mut self, packet: &RocePacket<'_>, form: Form, env: &mut Env<'_>) -> Result<(), Refusal> {
        let done = match (form, self.partial) {
            (Form::First | Form::Only, None) => 0,
            (Form::Middle | Form::Last, Some(Partial::Send(done))) => done,
            _ => return Err(Refusal::Invalid(WcStatus::LocQpOpErr)),
        };
        let payload = packet.payload;
        self.check_length(form, payload.len())?;
        let recv = *self.recvs.front().ok_or(Refusal::Rnr)?;
        let end = done + payload.len();
        let room = recv.slice.map_or(0, |s| s.len);
        let target = if payload.is_empty() {
            None
        } else if end > room {
            return Err(self.fail_recv(recv, WcStatus::LocLenErr, env));
        } else {
            recv.slice.map(|s| RegionSlice { offset: s.offset + done, len: payload.len(), ..s })
        };
        if let Some(target) = target {
            match env.regions.slice_mut(target) {
                Some(bytes) => bytes.copy_from_slice(payload),
                None => return Err(self.fail_recv(recv, WcStatus::LocProtErr, env)),
            }
        }
        if matches!(form, Form::Last | Form::Only) {
            self.finish(packet, WcOpcode::Recv, end, env);
            env.counters.rdma_recvs += 1;
        } else {
            self.partial = Some(Partial::Send(end));
        }
        Ok(())
    }

    fn execute_write(&mut self, packet: &RocePacket<'_>, form: Form, env: &mut Env<'_>) -> Result<(), Refusal> {
        let payload = packet.payload;
        self.check_length(form, payload.len())?;
        let invalid = Refusal::Invalid(WcStatus::LocQpOpErr);
        // Where the rest of the message goes; `None` for a message without a byte, whose key and address do not count
        // (IBTA 9.7.4.1.5).
        let (rest, total) = match (form, self.partial, &packet.headers.ext) {
            (Form::First | Form::Only, None, Ext::Reth(reth) | Ext::RethImm(reth, _)) => {
                let total = reth.dma_len() as usize;
                let fits = if form == Form::Only { payload.len() == total } else { total > payload.len() };
                if !fits || total > 1 << 31 {
                    return Err(invalid);
                }
                (self.open(reth, env)?, total)
            }
            (Form::Middle | Form::Last, Some(Partial::Write(rest, total)), _) => {
                let fits = if form == Form::Last { payload.len() == rest.len } else { payload.len() < rest.len };
                if !fits {
                    return Err(invalid);
                }
                (Some(rest), total)
            }
            _ => return Err(invalid),
        };
        let with_imm = matches!(packet.opcode, Opcode::WriteLastImm | Opcode::WriteOnlyImm);
        if with_imm && self.recvs.is_empty() {
            return Err(Refusal::Rnr);
        }
        if let Some(rest) = rest {
            let here = RegionSlice { len: payload.len(), ..rest };
            env.regions.slice_mut(here).ok_or(Refusal::Access)?.copy_from_slice(payload);
            let left = RegionSlice { offset: rest.offset + payload.len(), len: rest.len - payload.len(), ..rest };
            self.partial = Some(Partial::Write(left, total));
        }
        if matches!(form, Form::Last | Form::Only) {
            env.counters.rdma_writes_rcvd += 1;
            if with_imm {
                self.finish(packet, WcOpcode::RecvWrite, total, env);
            } else {
                self.partial = None;
                self.msn = self.msn.wrapping_add(1);
            }
        }
        Ok(())
    }

    fn open(&self, reth: &Reth, env: &Env<'_>) -> Result<Option<RegionSlice>, Refusal> {
        let len = reth.dma_len() as usize;
        if len == 0 {
            return Ok(None);
        }
        let place = env.regions.remote(env.conn, reth.rkey(), reth.va(), len, Access::REMOTE_WRITE);
        place.map(Some).ok_or(Refusal::Access)
    }

    /// A message is complete and uses up a receive.
    fn finish(&mut self, packet: &RocePacket<'_>, opcode: WcOpcode, byte_len: usize, env: &mut Env<'_>) {
        let Some(recv) = self.recvs.pop_front() else { return };
        let imm = match packet.headers.ext {
            Ext::Imm(imm) | Ext::RethImm(_, imm) => Some(imm.get()),
            _ => None,
        };
        self.partial = None;
        self.msn = self.msn.wrapping_add(1);
        let conn = env.conn;
        env.complete(Completion {
            conn,
            id: recv.id,
            opcode,
            status: WcStatus::Success,
            byte_len,
            imm,
            solicited: packet.headers.bth.solicited(),
        });
    }

    /// The receive at the front cannot take the message.
    fn fail_recv(&mut self, recv: RecvWr, status: WcStatus, env: &mut Env<'_>) -> Refusal {
        self.recvs.pop_front();
        let conn = env.conn;
        env.complete(Completion {
            conn,
            id: recv.id,
            opcode: WcOpcode::Recv,
            status,
            byte_len: 0,
            imm: None,
            solicited: false,
        });
        Refusal::Invalid(status)
    }

    /// All receives end unsuccessfully.
    pub(crate) fn flush(&mut self, env: &mut Env<'_>) {
        let conn = env.conn;
        for recv in self.recvs.drain(..) {
            env.events.push_back(crate::Event::Completion(Completion {
                conn,
                id: recv.id,
                opcode: WcOpcode::Recv,
                status: WcStatus::WrFlushErr,
                byte_len: 0,
                imm: None,
                solicited: false,
            }));
        }
        self.partial = None;
    }

    pub(crate) fn wants_to_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// Builds the answer that waits.
    pub(crate) fn answer(
        &mut self,
        flow: &Flow,
        ip_id: u16,
        dest_qp: Qpn,
        env: &mut Env<'_>,
        buf: &mut [u8],
    ) -> Option<usize> {
        let syndrome = self.answer.take()?;
        let (psn, counter) = match syndrome {
            Syndrome::Ack(_) => (self.expected.sub(1), &mut env.counters.tx_ack),
            Syndrome::RnrNak(_) => (self.expected, &mut env.counters.send_rnr_err),
            Syndrome::Nak(NakCode::PsnSequenceError) => (self.expected, &mut env.counters.send_seq_err),
            Syndrome::Nak(_) | Syndrome::Reserved(_) => (self.expected, &mut env.counters.tx_nak),
        };
        *counter += 1;
        let bth = Bth::new(Opcode::Acknowledge, dest_qp, psn);
        let mut headers = RoceHeaders::new(flow, bth, Ext::Aeth(Aeth::new(syndrome, self.msn)));
        headers.ip.identification.set(ip_id);
        Some(headers.write(&[], buf).expect("the caller's buffer holds the longest frame"))
    }
}
