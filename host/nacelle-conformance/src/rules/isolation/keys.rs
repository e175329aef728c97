// SPDX-License-Identifier: Apache-2.0
//! Keys that are invalid, of another caller, or guessed.

use super::{CONTRACT, Rule, nacelle};
use crate::{
    Failure,
    attack::{
        keys::{OPERATIONS, refused},
        stale_key::impossible,
    },
    failure::ensure,
    peer::{Memory, Peer, Terms},
    rules::pattern,
};
use nacelle_wire::{
    Rkey,
    bth::{Ieth, NakCode, Opcode},
    transport::Ext,
};

pub(super) const RULES: &[Rule] = &[
    nacelle("isolation.old_key_is_invalid_after_a_new_setup", CONTRACT, after_set_up),
    nacelle("isolation.old_key_is_invalid_after_a_refused_setup", CONTRACT, after_refusal),
    nacelle("isolation.old_key_is_invalid_after_disconnection", CONTRACT, after_close),
    nacelle("isolation.key_of_another_caller_is_refused_in_every_operation", CONTRACT, of_another),
    nacelle("isolation.keys_adjacent_to_a_key_are_refused", CONTRACT, neighbours),
    nacelle("isolation.regions_of_a_call_cannot_be_invalidated", CONTRACT, invalidate),
];

fn after_set_up(peer: &mut Peer) -> Result<(), Failure> {
    for opcode in OPERATIONS {
        let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
        let old = qp.regions[0];
        peer.set_up_regions(&mut qp, &[4096])?;
        ensure!(qp.regions[0].rkey != old.rkey, "a new region has the key of the old one");
        refused(peer, &qp, opcode, &old)?;
        peer.disconnect(&qp)?;
    }
    Ok(())
}

fn after_refusal(peer: &mut Peer) -> Result<(), Failure> {
    for opcode in OPERATIONS {
        let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
        peer.send_message(&mut qp, &impossible())?;
        peer.receive_message(&mut qp)?;
        let old = qp.regions[0];
        refused(peer, &qp, opcode, &old)?;
        peer.disconnect(&qp)?;
    }
    Ok(())
}

fn after_close(peer: &mut Peer) -> Result<(), Failure> {
    for opcode in OPERATIONS {
        let old = peer.connect_with(&Terms::default(), &[4096])?;
        peer.disconnect(&old)?;
        let qp = peer.connect_with(&Terms::default(), &[4096])?;
        refused(peer, &qp, opcode, &old.regions[0])?;
        peer.disconnect(&qp)?;
    }
    Ok(())
}

fn of_another(peer: &mut Peer) -> Result<(), Failure> {
    let mut owner = peer.connect_with(&Terms::default(), &[4096])?;
    let region = owner.regions[0];
    let bytes = pattern(1, 256);
    peer.write_bytes(&mut owner, &region, 0, &bytes)?;
    peer.act_as_host(0);
    for opcode in OPERATIONS {
        let thief = peer.connect_with(&Terms::default(), &[4096])?;
        refused(peer, &thief, opcode, &region)?;
        peer.disconnect(&thief)?;
    }
    peer.expect_bytes(&mut owner, &region, 0, &bytes)?;
    peer.disconnect(&owner)
}

fn neighbours(peer: &mut Peer) -> Result<(), Failure> {
    let mut owner = peer.connect_with(&Terms::default(), &[4096; 3])?;
    let region = owner.regions[1];
    let bytes = pattern(1, 256);
    peer.write_bytes(&mut owner, &region, 0, &bytes)?;
    peer.act_as_host(0);
    let steps =
        [1, 2, 3, 0x100, 0x400, 0x1_0000, 0x100_0000].into_iter().flat_map(|step: u32| [step, step.wrapping_neg()]);
    for step in steps {
        let thief = peer.connect_with(&Terms::default(), &[4096])?;
        let guess = Rkey(region.rkey.0.wrapping_add(step));
        if guess != thief.regions[0].rkey && owner.regions.iter().all(|own| own.rkey != guess) {
            refused(peer, &thief, Opcode::ReadRequest, &Memory { rkey: guess, ..region })?;
        }
        peer.disconnect(&thief)?;
    }
    peer.expect_bytes(&mut owner, &region, 0, &bytes)?;
    peer.disconnect(&owner)
}

/// The service grants no right to invalidate, neither to the owner nor to others.
fn invalidate(peer: &mut Peer) -> Result<(), Failure> {
    let mut owner = peer.connect_with(&Terms::default(), &[4096])?;
    let region = owner.regions[0];
    let bytes = pattern(1, 256);
    peer.write_bytes(&mut owner, &region, 0, &bytes)?;
    peer.act_as_host(0);
    let thief = peer.connect_with(&Terms::default(), &[4096])?;
    for key in [region.rkey, thief.regions[0].rkey] {
        let qp = peer.connect_with(&Terms::default(), &[4096])?;
        peer.send(&qp, Opcode::SendOnlyInvalidate, qp.next, Ext::Ieth(Ieth::new(key)), &[1; 4])?;
        peer.expect_nak(&qp, qp.next, NakCode::RemoteAccessError)?;
        peer.disconnect(&qp)?;
    }
    // The owner itself may not either; and what was refused has no effect on others.
    peer.expect_bytes(&mut owner, &region, 0, &bytes)?;
    peer.send(&owner, Opcode::SendOnlyInvalidate, owner.next, Ext::Ieth(Ieth::new(region.rkey)), &[1; 4])?;
    peer.expect_nak(&owner, owner.next, NakCode::RemoteAccessError)?;
    peer.disconnect(&thief)?;
    peer.disconnect(&owner)
}
