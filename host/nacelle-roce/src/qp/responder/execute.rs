// SPDX-License-Identifier: Apache-2.0
//! The expected packet. It is checked completely before it changes anything, in the order of IBTA 9.7.4.1: sequence of
//! opcodes, number of READs and atomics, a posted receive, length of the packet, key and bounds, length of the message.

use super::{
    Refusal, Responder,
    responses::{Data, Response, psns},
};
use crate::{
    Completion, RecvWr, WcOpcode, WcStatus,
    qp::{Env, MAX_MESSAGE, Packet},
    region::{Access, Grant},
};
use nacelle_wire::{
    Rkey,
    bth::{AtomicEth, Opcode, Reth, RnrTimer},
    transport::Ext,
};

const INVALID: Refusal = Refusal::Invalid(WcStatus::LocQpOpErr);
/// After which a peer tries again to access memory that is lent: the longest, 655 ms, since retries may be few.
const LENT_TIMER: RnrTimer = RnrTimer::new(0);
const ACCESS: Refusal = Refusal::Access(WcStatus::LocAccessErr);

/// A message of which more packets are to come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Partial {
    /// A SEND: bytes received so far.
    Send(usize),
    /// A WRITE: the bytes that it still has to write, and its total length.
    Write(Grant, usize),
}

/// Position of a packet in its message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    First,
    Middle,
    Last,
    Only,
}

impl Form {
    fn ends(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }
}

impl Responder {
    /// Executes the expected packet. Returns how many numbers it uses.
    pub(super) fn execute(&mut self, packet: &Packet<'_>, env: &mut Env<'_>) -> Result<u64, Refusal> {
        use Opcode::*;
        match packet.opcode {
            SendFirst => self.execute_send(packet, Form::First, env),
            SendMiddle => self.execute_send(packet, Form::Middle, env),
            SendLast | SendLastImm | SendLastInvalidate => self.execute_send(packet, Form::Last, env),
            SendOnly | SendOnlyImm | SendOnlyInvalidate => self.execute_send(packet, Form::Only, env),
            WriteFirst => self.execute_write(packet, Form::First, env),
            WriteMiddle => self.execute_write(packet, Form::Middle, env),
            WriteLast | WriteLastImm => self.execute_write(packet, Form::Last, env),
            WriteOnlyImm if env.agreed.selective_repeat => self.execute_write_end(packet, env),
            WriteOnly | WriteOnlyImm => self.execute_write(packet, Form::Only, env),
            ReadRequest => return self.execute_read(packet, env),
            FetchAdd | CmpSwap => self.execute_atomic(packet, env),
            _ => Err(INVALID),
        }
        .map(|()| 1)
    }

    /// The length that a packet of this form may have (IBTA 9.7.4.1.6).
    fn check_length(&self, form: Form, len: usize) -> Result<(), Refusal> {
        let ok = match form {
            Form::First | Form::Middle => len == self.mtu,
            Form::Last => len >= 1 && len <= self.mtu,
            Form::Only => len <= self.mtu,
        };
        if ok { Ok(()) } else { Err(INVALID) }
    }

    fn execute_send(&mut self, packet: &Packet<'_>, form: Form, env: &mut Env<'_>) -> Result<(), Refusal> {
        let done = match (form, self.partial) {
            (Form::First | Form::Only, None) => 0,
            (Form::Middle | Form::Last, Some(Partial::Send(done))) => done,
            _ => return Err(INVALID),
        };
        let payload = packet.payload;
        let recv = *self.recvs.front().ok_or(Refusal::Rnr(self.rnr_timer))?;
        self.check_length(form, payload.len())?;
        let invalidates = match packet.headers.ext {
            Ext::Ieth(ieth) => Some(ieth.rkey()),
            _ => None,
        };
        let region =
            invalidates.and_then(|key| env.regions.of_key(env.conn, env.domain, key, Access::REMOTE_INVALIDATE));
        if invalidates.is_some() && region.is_none() {
            return Err(Refusal::Access(self.fail_recv(recv, WcStatus::RemInvReqErr, env)));
        }
        let end = done + payload.len();
        let room = recv.slice.map_or(0, |s| s.len);
        let target = if payload.is_empty() {
            None
        } else if end > room {
            return Err(Refusal::Invalid(self.fail_recv(recv, WcStatus::LocLenErr, env)));
        } else {
            recv.slice.map(|s| s.after(done).first(payload.len()))
        };
        if target.is_some_and(|target| env.write_local(target, payload).is_none()) {
            return Err(Refusal::Invalid(self.fail_recv(recv, WcStatus::LocProtErr, env)));
        }
        if !form.ends() {
            self.partial = Some(Partial::Send(end));
            return Ok(());
        }
        if let Some(region) = region {
            env.regions.invalidate(region);
            env.counters().rx_invalidations += 1;
        }
        env.counters().rdma_recvs += 1;
        self.finish(packet, WcOpcode::Recv, end, invalidates, env);
        Ok(())
    }

    fn execute_write(&mut self, packet: &Packet<'_>, form: Form, env: &mut Env<'_>) -> Result<(), Refusal> {
        let payload = packet.payload;
        let begins = matches!(form, Form::First | Form::Only);
        if begins == matches!(self.partial, Some(Partial::Write(..))) {
            return Err(INVALID);
        }
        self.check_receive(packet)?;
        self.check_length(form, payload.len())?;
        // Where the rest of the message goes; `None` for a message without a byte, whose key and address do not count
        // (IBTA 9.7.4.1.5).
        let (rest, total) = match (self.partial, &packet.headers.ext) {
            (None, Ext::Reth(reth) | Ext::RethImm(reth, _)) => open_write(reth, env)?,
            (Some(Partial::Write(rest, total)), _) => {
                if !env.regions.is_granted(rest) {
                    return Err(ACCESS);
                }
                (Some(rest), total)
            }
            _ => return Err(INVALID),
        };
        let left = rest.map_or(0, Grant::len);
        let fits = if form.ends() { payload.len() == left } else { payload.len() < left };
        if !fits {
            return Err(INVALID);
        }
        if let Some(rest) = rest {
            check_present(rest, env)?;
            env.regions.write_granted(rest.first(payload.len()), payload).ok_or(ACCESS)?;
            self.partial = Some(Partial::Write(rest.after(payload.len()), total));
        }
        if form.ends() {
            self.finish_write(packet, total, env);
        }
        Ok(())
    }

    /// The last packet of a WRITE with immediate by selective repeat: its payload is the end of the range that its RETH
    /// names.
    fn execute_write_end(&mut self, packet: &Packet<'_>, env: &mut Env<'_>) -> Result<(), Refusal> {
        let payload = packet.payload;
        let (None, Ext::RethImm(reth, _)) = (self.partial, &packet.headers.ext) else { return Err(INVALID) };
        self.check_receive(packet)?;
        self.check_length(Form::Only, payload.len())?;
        if payload.is_empty() != (reth.dma_len() == 0) {
            return Err(INVALID);
        }
        let (place, total) = open_write(reth, env)?;
        if payload.len() > total {
            return Err(INVALID);
        }
        if let Some(place) = place {
            check_present(place, env)?;
            let end = place.after(total - payload.len());
            env.regions.write_granted(end, payload).ok_or(ACCESS)?;
        }
        self.finish_write(packet, total, env);
        Ok(())
    }

    /// Whether a receive is posted, if the packet needs one.
    fn check_receive(&self, packet: &Packet<'_>) -> Result<(), Refusal> {
        if is_with_imm(packet.opcode) && self.recvs.is_empty() { Err(Refusal::Rnr(self.rnr_timer)) } else { Ok(()) }
    }

    fn finish_write(&mut self, packet: &Packet<'_>, total: usize, env: &mut Env<'_>) {
        env.counters().rx_write_requests += 1;
        if is_with_imm(packet.opcode) {
            self.finish(packet, WcOpcode::RecvWrite, total, None, env);
        } else {
            self.partial = None;
            self.msn = self.msn.wrapping_add(1);
        }
    }

    /// Whether one more response with data may wait (IBTA 9.7.4.1.4).
    fn check_resources(&self, env: &Env<'_>) -> Result<(), Refusal> {
        let waiting = self.responses.iter().filter(|r| !r.again).count();
        if waiting < usize::from(env.agreed.responder_resources) { Ok(()) } else { Err(INVALID) }
    }

    fn execute_read(&mut self, packet: &Packet<'_>, env: &mut Env<'_>) -> Result<u64, Refusal> {
        let (None, Ext::Reth(reth), true) = (self.partial, &packet.headers.ext, packet.payload.is_empty()) else {
            return Err(INVALID);
        };
        let len = reth.dma_len() as usize;
        if len > MAX_MESSAGE {
            return Err(INVALID);
        }
        self.check_resources(env)?;
        let rest = open(reth, Access::REMOTE_READ, env)?;
        rest.map_or(Ok(()), |rest| check_present(rest, env))?;
        self.respond(Data::Read { rest, fresh: true });
        env.counters().rx_read_requests += 1;
        Ok(psns(len, self.mtu))
    }

    /// The bytes are a number in this machine's byte order.
    fn execute_atomic(&mut self, packet: &Packet<'_>, env: &mut Env<'_>) -> Result<(), Refusal> {
        let (None, Ext::Atomic(atomic), true) = (self.partial, &packet.headers.ext, packet.payload.is_empty()) else {
            return Err(INVALID);
        };
        if atomic.va().0 % 8 != 0 {
            return Err(INVALID);
        }
        self.check_resources(env)?;
        let user = (env.conn, env.domain);
        let place = env.regions.remote(user, atomic.rkey(), atomic.va(), 8, Access::REMOTE_ATOMIC).ok_or(ACCESS)?;
        check_present(place, env)?;
        let mut bytes = [0; 8];
        env.regions.read_granted(place, &mut bytes).ok_or(ACCESS)?;
        let original = u64::from_ne_bytes(bytes);
        let new = new_value(packet.opcode, atomic, original).to_ne_bytes();
        env.regions.write_granted(place, (&new).into()).ok_or(ACCESS)?;
        if self.atomics.len() >= usize::from(env.agreed.responder_resources) {
            self.atomics.pop_front();
        }
        self.atomics.push_back((self.expected, original));
        self.respond(Data::Atomic(original));
        env.counters().rx_atomic_requests += 1;
        Ok(())
    }

    /// Queues a response with data to the expected request.
    fn respond(&mut self, what: Data) {
        self.msn = self.msn.wrapping_add(1);
        self.responses.push_back(Response { seq: self.expected, msn: self.msn, what, again: false });
    }

    /// A message is complete and consumes a receive.
    fn finish(
        &mut self,
        packet: &Packet<'_>,
        opcode: WcOpcode,
        byte_len: usize,
        invalidated: Option<Rkey>,
        env: &mut Env<'_>,
    ) {
        let Some(recv) = self.recvs.pop_front() else { return };
        let imm = match packet.headers.ext {
            Ext::Imm(imm) | Ext::RethImm(_, imm) => Some(imm.get()),
            _ => None,
        };
        self.partial = None;
        self.msn = self.msn.wrapping_add(1);
        let solicited = packet.headers.bth.solicited();
        let done = Completion::new(env.conn, recv.id, opcode, WcStatus::Success);
        env.complete(Completion { byte_len, imm, invalidated, solicited, ..done });
    }

    /// The receive at the front ends with `status`.
    fn fail_recv(&mut self, recv: RecvWr, status: WcStatus, env: &mut Env<'_>) -> WcStatus {
        self.recvs.pop_front();
        env.complete(Completion::new(env.conn, recv.id, WcOpcode::Recv, status));
        status
    }
}

const fn is_with_imm(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::WriteLastImm | Opcode::WriteOnlyImm)
}

/// What an atomic writes (IBTA 9.4.5).
const fn new_value(opcode: Opcode, atomic: &AtomicEth, original: u64) -> u64 {
    match opcode {
        Opcode::FetchAdd => original.wrapping_add(atomic.swap_add()),
        _ if original == atomic.compare() => atomic.swap_add(),
        _ => original,
    }
}

/// The bytes that a WRITE may use, and its length.
fn open_write(reth: &Reth, env: &Env<'_>) -> Result<(Option<Grant>, usize), Refusal> {
    let total = reth.dma_len() as usize;
    if total > MAX_MESSAGE {
        return Err(INVALID);
    }
    Ok((open(reth, Access::REMOTE_WRITE, env)?, total))
}

/// Whether memory is there; it is not while it is lent.
fn check_present(place: Grant, env: &Env<'_>) -> Result<(), Refusal> {
    if env.regions.is_lent(place) { Err(Refusal::Rnr(LENT_TIMER)) } else { Ok(()) }
}

/// The bytes that an access may use; none if its length is 0, and then key and address are not checked.
pub(super) fn open(reth: &Reth, access: Access, env: &Env<'_>) -> Result<Option<Grant>, Refusal> {
    let len = reth.dma_len() as usize;
    if len == 0 {
        return Ok(None);
    }
    let place = env.regions.remote((env.conn, env.domain), reth.rkey(), reth.va(), len, access);
    place.map(Some).ok_or(ACCESS)
}
