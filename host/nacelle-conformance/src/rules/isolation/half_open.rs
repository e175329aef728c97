// SPDX-License-Identifier: Apache-2.0
//! REQs that nobody follows up: connections that are half open are few for each address, and few in all.

use super::{CONTRACT, Rule, bystander::Bystander, nacelle};
use crate::{
    Failure,
    failure::ensure,
    peer::{Peer, Terms},
};
use nacelle_wire::cm::{Message, Rtu};

pub(super) const RULES: &[Rule] = &[
    nacelle("isolation.half_open_connections_of_one_address_are_bounded", CONTRACT, of_one),
    nacelle("isolation.half_open_connections_in_all_are_bounded", CONTRACT, in_all),
];

/// An address may have so many.
pub(super) const OF_ONE: usize = 8;
/// No device has twice as many connections as this.
const MOST: usize = 512;
fn of_one(peer: &mut Peer) -> Result<(), Failure> {
    let mut bystander = Bystander::new(peer)?;
    peer.act_as_host(0);
    let mut open = Vec::new();
    while open.len() <= OF_ONE
        && let Some(half) = peer.try_half_open(&Terms::default())?
    {
        open.push(half);
    }
    ensure!(open.len() == OF_ONE, "an address has {} half-open connections, not {OF_ONE}", open.len());
    // A connection that is taken up counts no more.
    let (tid, qp) = &open[0];
    peer.send_cm(*tid, Message::Rtu(&Rtu::new(qp.own_comm_id, qp.comm_id)))?;
    let Some(more) = peer.try_half_open(&Terms::default())? else {
        return Err(Failure::Content("an established connection still counts as half open".into()));
    };
    open.push(more);
    bystander.works_on(peer)?;
    bystander.brings_another(peer)?;
    for (_, qp) in &open {
        peer.disconnect_only(qp)?;
    }
    bystander.leaves(peer)
}

fn in_all(peer: &mut Peer) -> Result<(), Failure> {
    let mut bystander = Bystander::new(peer)?;
    let mut open = Vec::new();
    let mut host = 0;
    'all: while open.len() < MOST {
        peer.act_as_host(host);
        host += 1;
        for _ in 0..OF_ONE {
            let Some((_, qp)) = peer.try_half_open(&Terms::default())? else { break 'all };
            open.push(qp);
        }
    }
    ensure!(open.len() < MOST, "{} connections are half open at once", open.len());
    bystander.works_on(peer)?;
    // There is as much room again for those that are taken up: half are half open at most.
    let half = open.len();
    for qp in &open {
        peer.send_cm_from(qp.ip, qp.tid, Message::Rtu(&Rtu::new(qp.own_comm_id, qp.comm_id)))?;
    }
    let mut more = 0;
    while more + 2 < half {
        peer.act_as_host(host + (more / OF_ONE) as u16);
        let Some((_, qp)) = peer.try_half_open(&Terms::default())? else { break };
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
