// SPDX-License-Identifier: Apache-2.0
//! Requests that have been executed before.

use super::{
    Responder,
    execute::open,
    has_response,
    responses::{Data, Response, psns},
};
use crate::{
    qp::{Env, Packet},
    region::Access,
};
use nacelle_wire::{
    bth::{Opcode, Reth, Syndrome},
    transport::Ext,
};

impl Responder {
    /// Takes a request that has been executed before (IBTA 9.7.5.1.4): READs are read again, the
    /// original values of atomics were kept, all else is acknowledged again.
    pub(super) fn receive_duplicate(&mut self, seq: u64, packet: &Packet<'_>, env: &mut Env<'_>) {
        if has_response(packet.opcode) && !packet.payload.is_empty() {
            return;
        }
        match (packet.opcode, &packet.headers.ext) {
            (Opcode::ReadRequest, Ext::Reth(reth)) => self.read_again(seq, reth, env),
            (Opcode::FetchAdd | Opcode::CmpSwap, _) => {
                let known = self.atomics.iter().find(|(s, _)| *s == seq).map(|(_, original)| *original);
                if let Some(original) = known
                    && !self.responses.iter().any(|r| r.seq == seq)
                {
                    self.respond_again(seq, Data::Atomic(original), env);
                }
            }
            _ => {
                self.acknowledge.get_or_insert(Syndrome::ACK);
            }
        }
    }

    /// Reads again, from where the requester lost the response. If it may no longer read there, or the memory
    /// is lent, it gets no response.
    fn read_again(&mut self, seq: u64, reth: &Reth, env: &mut Env<'_>) {
        let len = reth.dma_len() as usize;
        let end = seq + psns(len, self.mtu);
        let Ok(rest) = open(reth, Access::REMOTE_READ, env) else { return };
        if end > self.expected || rest.is_some_and(|rest| env.regions.is_lent(rest)) {
            return;
        }
        let what = Data::Read { rest, fresh: true };
        let mtu = self.mtu;
        let overlaps = |r: &Response| matches!(r.what, Data::Read { .. }) && r.seq < end && seq < r.end(mtu);
        // The response that is under way restarts from there.
        let same = self.responses.iter().position(overlaps);
        match same.and_then(|i| self.responses.get_mut(i)) {
            Some(response) => {
                response.seq = seq;
                response.what = what;
                env.counters().rx_read_requests += 1;
            }
            None => {
                if self.respond_again(seq, what, env) {
                    env.counters().rx_read_requests += 1;
                }
            }
        }
    }

    /// Queues a response by its PSN, if there is room, which there is for at least one. The requester repeats a request
    /// without a response.
    fn respond_again(&mut self, seq: u64, what: Data, env: &Env<'_>) -> bool {
        let again = self.responses.iter().filter(|r| r.again).count();
        let room = again < usize::from(env.agreed.responder_resources).max(1);
        if room {
            let at = self.responses.partition_point(|r| r.seq < seq);
            self.responses.insert(at, Response { seq, msn: self.msn, what, again: true });
        }
        room
    }
}
