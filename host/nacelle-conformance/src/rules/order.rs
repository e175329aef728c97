// SPDX-License-Identifier: Apache-2.0
//! Lost, repeated and reordered requests (IBTA 9.7.3, 9.7.5.1).

use super::{Rule, pattern, standard};
use crate::{
    Failure,
    failure::ensure,
    peer::{Peer, Terms},
};
use nacelle_wire::{
    bth::{NakCode, Opcode, Syndrome},
    transport::Ext,
};

pub(super) const RULES: &[Rule] = &[
    standard("order.gap_is_answered_with_the_expected_psn", "IBTA 9.7.5.1.6", gap),
    standard("order.gap_causes_one_nak", "IBTA 9.7.5.1.6", once),
    standard("order.packet_after_a_gap_has_no_effect", "IBTA 9.7.5.1.6", no_effect),
    standard("order.duplicate_write_is_acknowledged_not_executed", "IBTA 9.7.5.1.3", repeated_write),
    standard("order.duplicate_is_answered_with_the_newest_acknowledgement", "IBTA 9.7.5.1.3", newest),
];

fn gap(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let region = qp.regions[0];
    let ext = |i: u64| Ext::Reth(region.reth(64 * i, 64));
    peer.send(&qp, Opcode::WriteOnly, qp.next.add(1), ext(1), &pattern(1, 64))?;
    peer.expect_nak(&qp, qp.next, NakCode::PsnSequenceError)?;
    for i in 0..2 {
        peer.write(&mut qp, ext(i), Opcode::WriteOnly, &pattern(i as u8, 64))?;
    }
    for i in 0..2 {
        peer.expect_bytes(&mut qp, &region, 64 * i, &pattern(i as u8, 64))?;
    }
    peer.disconnect(&qp)
}

fn once(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let ext = Ext::Reth(qp.regions[0].reth(0, 64));
    for i in 1..6 {
        peer.send(&qp, Opcode::WriteOnly, qp.next.add(i), ext, &pattern(1, 64))?;
    }
    peer.expect_nak(&qp, qp.next, NakCode::PsnSequenceError)?;
    peer.expect_silence(&mut qp)?;
    // The gap was closed: the next one is a new one.
    peer.send(&qp, Opcode::WriteOnly, qp.next.add(1), ext, &pattern(1, 64))?;
    peer.expect_nak(&qp, qp.next, NakCode::PsnSequenceError)?;
    peer.expect_silence(&mut qp)?;
    peer.disconnect(&qp)
}

fn no_effect(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let region = qp.regions[0];
    let before = pattern(1, 64);
    peer.write_bytes(&mut qp, &region, 0, &before)?;
    peer.send(&qp, Opcode::WriteOnly, qp.next.add(3), Ext::Reth(region.reth(0, 64)), &pattern(2, 64))?;
    peer.expect_nak(&qp, qp.next, NakCode::PsnSequenceError)?;
    peer.expect_bytes(&mut qp, &region, 0, &before)?;
    peer.disconnect(&qp)
}

fn repeated_write(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let region = qp.regions[0];
    let ext = Ext::Reth(region.reth(0, 64));
    let psn = qp.next;
    peer.write(&mut qp, ext, Opcode::WriteOnly, &pattern(1, 64))?;
    peer.write(&mut qp, ext, Opcode::WriteOnly, &pattern(2, 64))?;
    peer.send(&qp, Opcode::WriteOnly, psn, ext, &pattern(1, 64))?;
    peer.expect_ack(&qp, qp.next.sub(1), Syndrome::ACK)?;
    peer.expect_bytes(&mut qp, &region, 0, &pattern(2, 64))?;
    peer.disconnect(&qp)
}

fn newest(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let ext = Ext::Reth(qp.regions[0].reth(0, 64));
    let psn = qp.next;
    for i in 0..4 {
        peer.write(&mut qp, ext, Opcode::WriteOnly, &pattern(i, 64))?;
    }
    peer.send(&qp, Opcode::WriteOnly, psn.add(1), ext, &pattern(1, 64))?;
    let msn = peer.expect_ack(&qp, qp.next.sub(1), Syndrome::ACK)?.msn();
    peer.send(&qp, Opcode::WriteOnly, qp.next, ext, &pattern(4, 64))?;
    let after = peer.expect_ack(&qp, qp.next, Syndrome::ACK)?.msn();
    ensure!(after == (msn + 1) & 0xff_ffff, "MSN {after} follows MSN {msn}");
    peer.disconnect(&qp)
}
