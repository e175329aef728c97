// SPDX-License-Identifier: Apache-2.0
//! How requests are acknowledged (IBTA 9.7.5.1).

use super::{Rule, pattern, standard};
use crate::{
    Failure,
    failure::ensure,
    peer::{Peer, Terms},
};
use nacelle_wire::{
    bth::{Opcode, Syndrome},
    transport::Ext,
};

pub(super) const RULES: &[Rule] = &[
    standard("acknowledge.request_that_asks_is_acknowledged_with_its_psn", "IBTA 9.7.5.1", own_psn),
    standard("acknowledge.one_acknowledgement_covers_all_before_it", "IBTA 9.7.5.1.2", covers),
    standard("acknowledge.packet_in_a_message_may_ask", "IBTA 9.7.5.1.2", inside),
    standard("acknowledge.msn_counts_completed_messages", "IBTA 9.7.5.1.1", msn),
];

fn own_psn(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    for i in 0..5 {
        let reth = qp.regions[0].reth(64 * i, 64);
        peer.write(&mut qp, Ext::Reth(reth), Opcode::WriteOnly, &pattern(i as u8, 64))?;
    }
    peer.disconnect(&qp)
}

fn covers(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    for i in 0..8 {
        let reth = Ext::Reth(qp.regions[0].reth(64 * i, 64));
        peer.send_quietly(&qp, Opcode::WriteOnly, qp.next, reth, &pattern(i as u8, 64))?;
        qp.next = qp.next.add(1);
    }
    peer.expect_silence(&mut qp)?;
    for i in 0..8 {
        let region = qp.regions[0];
        peer.expect_bytes(&mut qp, &region, 64 * i, &pattern(i as u8, 64))?;
    }
    peer.disconnect(&qp)
}

fn inside(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let reth = Ext::Reth(qp.regions[0].reth(0, 3 * qp.mtu as u32));
    let part = pattern(1, qp.mtu);
    peer.send_quietly(&qp, Opcode::WriteFirst, qp.next, reth, &part)?;
    peer.send(&qp, Opcode::WriteMiddle, qp.next.add(1), Ext::None, &part)?;
    peer.expect_ack(&qp, qp.next.add(1), Syndrome::ACK)?;
    peer.send(&qp, Opcode::WriteLast, qp.next.add(2), Ext::None, &part)?;
    peer.expect_ack(&qp, qp.next.add(2), Syndrome::ACK)?;
    qp.next = qp.next.add(3);
    peer.disconnect(&qp)
}

fn msn(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let mut last = None;
    for i in 0..4u32 {
        let reth = Ext::Reth(qp.regions[0].reth(0, 8));
        peer.send(&qp, Opcode::WriteOnly, qp.next, reth, &pattern(i as u8, 8))?;
        let msn = peer.expect_ack(&qp, qp.next, Syndrome::ACK)?.msn();
        qp.next = qp.next.add(1);
        if let Some(before) = last.replace(msn) {
            ensure!(msn == (before + 1) & 0xff_ffff, "MSN {msn} follows MSN {before} after one message");
        }
    }
    peer.disconnect(&qp)
}
