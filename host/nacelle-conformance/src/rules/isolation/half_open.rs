// SPDX-License-Identifier: Apache-2.0
//! REQs without an RTU: half-open connections leave room for others, whether one address has them or many.

use super::{CONTRACT, Rule, bystander::Bystander, nacelle};
use crate::{
    Failure,
    failure::ensure,
    peer::{Peer, Qp, Terms},
};
use nacelle_wire::{
    RemoteAddr, Rkey,
    bth::{Opcode, Reth},
    cm::{Message, Rtu},
    transport::Ext,
};

pub(super) const RULES: &[Rule] = &[
    nacelle("isolation.half_open_connections_of_one_address_are_bounded", CONTRACT, of_one),
    nacelle("isolation.half_open_connections_in_all_are_bounded", CONTRACT, in_all),
];

/// Connections of each of many hosts: fewer than any device grants one.
pub(super) const EACH: usize = 8;
/// An honest host may open so many at once.
const AT_ONCE: usize = 16;
/// No device has twice as many connections as this.
const MOST: usize = 512;

fn of_one(peer: &mut Peer) -> Result<(), Failure> {
    let mut bystander = Bystander::new(peer)?;
    peer.act_as_host(0);
    let mut open = Vec::new();
    while open.len() < MOST
        && let Some(qp) = peer.try_half_open(&Terms::default())?
    {
        open.push(qp);
    }
    let count = open.len();
    ensure!(count < MOST, "{count} connections of one address are half open");
    ensure!(count >= AT_ONCE, "an address may open only {count} connections at once");
    bystander.works_on(peer)?;
    if let Err(Failure::Refused(_)) = bystander.brings_another(peer) {
        return Err(Failure::Content(format!(
            "one address has {count} half-open connections, and no other can connect"
        )));
    }
    // One that ends makes room for another.
    if let Some(ended) = open.pop() {
        peer.disconnect_only(&ended)?;
    }
    let Some(more) = peer.try_half_open(&Terms::default())? else {
        return Err(Failure::Content("a connection that has ended still counts".into()));
    };
    open.push(more);
    for qp in &open {
        peer.disconnect_only(qp)?;
    }
    bystander.leaves(peer)
}

fn in_all(peer: &mut Peer) -> Result<(), Failure> {
    let mut bystander = Bystander::new(peer)?;
    let mut open = Vec::new();
    let mut host = 0;
    // A host that has no connection is refused: it is not its own bound that is reached.
    loop {
        peer.act_as_host(host);
        host += 1;
        let before = open.len();
        while open.len() < before + EACH
            && let Some(qp) = peer.try_half_open(&Terms::default())?
        {
            open.push(qp);
        }
        if open.len() == before {
            break;
        }
        ensure!(open.len() < MOST, "{} connections are half open at once", open.len());
    }
    bystander.works_on(peer)?;
    // There is as much room again for those that are taken up: half are half open at most.
    let half = open.len();
    for qp in &mut open {
        take_up(peer, qp)?;
    }
    let mut more = 0;
    while more + 2 < half {
        peer.act_as_host(host + (more / EACH) as u16);
        let Some(qp) = peer.try_half_open(&Terms::default())? else { break };
        open.push(qp);
        more += 1;
    }
    ensure!(
        more + 2 >= half,
        "{half} connections may be half open, but beside as many established ones only {more} were"
    );
    bystander.works_on(peer)?;
    for qp in &open {
        peer.disconnect_only(qp)?;
    }
    bystander.leaves(peer)
}

/// The caller takes its connection up. Of many RTUs at once some may be dropped, as any datagram; then its first request, which is
/// acknowledged, says as much (IBTA 12.9.7.2).
fn take_up(peer: &mut Peer, qp: &mut Qp) -> Result<(), Failure> {
    peer.send_cm_from(qp.ip, qp.tid, Message::Rtu(&Rtu::new(qp.own_comm_id, qp.comm_id)))?;
    peer.write(qp, Ext::Reth(Reth::new(RemoteAddr(0), Rkey(0), 0)), Opcode::WriteOnly, &[])
}
