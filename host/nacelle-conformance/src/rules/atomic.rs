// SPDX-License-Identifier: Apache-2.0
//! FETCH-ADD and CMP-SWAP (IBTA 9.4.5).

use super::{Rule, standard};
use crate::{
    Failure,
    failure::ensure,
    peer::{Memory, Peer, Terms},
};
use nacelle_wire::{
    bth::{AtomicEth, NakCode, Opcode},
    transport::Ext,
};

pub(super) const RULES: &[Rule] = &[
    standard("atomic.fetch_add_adds_and_returns_the_original_value", "IBTA 9.4.5.1", fetch_add),
    standard("atomic.cmp_swap_swaps_only_on_equality", "IBTA 9.4.5.2", cmp_swap),
    standard("atomic.duplicate_request_returns_the_saved_result", "IBTA 9.7.5.1.5", replayed),
    standard("atomic.unaligned_address_is_refused", "IBTA 9.7.4.1.5", odd),
    standard("atomic.outside_the_region_is_refused", "IBTA 9.7.4.1.4", outside),
];

fn eth(at: &Memory, offset: u64, swap_add: u64, compare: u64) -> AtomicEth {
    AtomicEth::new(at.at(offset), at.rkey, swap_add, compare)
}

/// Numbers are in the memory of a device as in that of a PC: least significant byte first.
fn fetch_add(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let region = qp.regions[0];
    let mut value = 0x1122_3344_ffff_fff0u64;
    peer.write_bytes(&mut qp, &region, 72, &value.to_le_bytes())?;
    for add in [1, 0x20, u64::MAX, 1 << 63] {
        let before = peer.atomic(&mut qp, Opcode::FetchAdd, eth(&region, 72, add, 0))?;
        ensure!(before == value, "{before:#x} was returned instead of {value:#x}");
        value = value.wrapping_add(add);
    }
    peer.expect_bytes(&mut qp, &region, 72, &value.to_le_bytes())?;
    peer.disconnect(&qp)
}

fn cmp_swap(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let region = qp.regions[0];
    peer.write_bytes(&mut qp, &region, 8, &7u64.to_le_bytes())?;
    let before = peer.atomic(&mut qp, Opcode::CmpSwap, eth(&region, 8, 100, 8))?;
    ensure!(before == 7, "{before} was returned instead of 7");
    peer.expect_bytes(&mut qp, &region, 8, &7u64.to_le_bytes())?;
    let before = peer.atomic(&mut qp, Opcode::CmpSwap, eth(&region, 8, 100, 7))?;
    ensure!(before == 7, "{before} was returned instead of 7");
    peer.expect_bytes(&mut qp, &region, 8, &100u64.to_le_bytes())?;
    peer.disconnect(&qp)
}

fn replayed(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let region = qp.regions[0];
    peer.write_bytes(&mut qp, &region, 0, &40u64.to_le_bytes())?;
    let (psn, add) = (qp.next, eth(&region, 0, 2, 0));
    let first = peer.atomic(&mut qp, Opcode::FetchAdd, add)?;
    peer.send(&qp, Opcode::FetchAdd, psn, Ext::Atomic(add), &[])?;
    let second = peer.expect_atomic(&qp, psn)?;
    ensure!(first == 40 && second == 40, "{first}, then {second} was returned instead of 40 twice");
    peer.expect_bytes(&mut qp, &region, 0, &42u64.to_le_bytes())?;
    peer.disconnect(&qp)
}

fn odd(peer: &mut Peer) -> Result<(), Failure> {
    let qp = peer.connect_with(&Terms::default(), &[4096])?;
    peer.send(&qp, Opcode::FetchAdd, qp.next, Ext::Atomic(eth(&qp.regions[0], 4, 1, 0)), &[])?;
    peer.expect_nak(&qp, qp.next, NakCode::InvalidRequest)?;
    peer.disconnect(&qp)
}

fn outside(peer: &mut Peer) -> Result<(), Failure> {
    let qp = peer.connect_with(&Terms::default(), &[4096])?;
    peer.send(&qp, Opcode::CmpSwap, qp.next, Ext::Atomic(eth(&qp.regions[0], 4096, 1, 0)), &[])?;
    peer.expect_nak(&qp, qp.next, NakCode::RemoteAccessError)?;
    peer.disconnect(&qp)
}
