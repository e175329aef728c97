// SPDX-License-Identifier: Apache-2.0
//! Packets ahead of the expected one: placed at once by selective repeat (docs/reference/extensions.md), else dropped with a
//! sequence error NAK.

use super::{Responder, execute::open};
use crate::{
    Discard,
    qp::{Env, Packet, SELECTIVE_WINDOW},
    region::Access,
};
use nacelle_wire::{
    bth::{NakCode, Opcode, Syndrome},
    transport::Ext,
};

impl Responder {
    /// Takes a request ahead of the expected one.
    pub(super) fn receive_early(&mut self, ahead: u32, packet: &Packet<'_>, env: &mut Env<'_>) -> Result<(), Discard> {
        env.counters().out_of_seq_request += 1;
        if !env.agreed.selective_repeat {
            if !self.waiting {
                self.waiting = true;
                self.acknowledge = Some(Syndrome::Nak(NakCode::PsnSequenceError));
            }
            return Err(Discard::OutOfSequence);
        }
        let placed = ahead < SELECTIVE_WINDOW && self.place_early(ahead, packet, env);
        if !self.not_ready {
            self.waiting = true;
            self.cause = packet.headers.bth.psn();
            self.acknowledge = Some(Syndrome::Nak(NakCode::PsnSequenceError));
        }
        if placed { Ok(()) } else { Err(Discard::OutOfSequence) }
    }

    /// Places an RDMA WRITE Only that is ahead, if it passes every check and is new.
    fn place_early(&mut self, ahead: u32, packet: &Packet<'_>, env: &mut Env<'_>) -> bool {
        let (Opcode::WriteOnly, Ext::Reth(reth)) = (packet.opcode, &packet.headers.ext) else { return false };
        let len = packet.payload.len();
        if self.early >> ahead & 1 == 1 || len > self.mtu || len != reth.dma_len() as usize {
            return false;
        }
        let Ok(place) = open(reth, Access::REMOTE_WRITE, env) else { return false };
        if place.is_some_and(|place| env.regions.write_granted(place, packet.payload).is_none()) {
            return false;
        }
        self.early |= 1 << ahead;
        env.stats.rx_payload += len as u64;
        let c = env.counters();
        c.placed_early += 1;
        c.rx_request += 1;
        c.rx_write_requests += 1;
        true
    }
}
