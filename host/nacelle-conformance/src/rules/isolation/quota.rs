// SPDX-License-Identifier: Apache-2.0
//! A caller may have a quarter of the connections. By default, that is: a device may be set up otherwise.

use super::{CONTRACT, Rule, bystander::Bystander, nacelle};
use crate::{
    Failure,
    attack::quota::{self, MOST, close},
    failure::ensure,
    peer::{Peer, Qp},
};
use nacelle_wire::cm::RejReason;

pub(super) const RULES: &[Rule] = &[
    nacelle("isolation.one_caller_cannot_take_all_connections", CONTRACT, quota),
    nacelle("isolation.closed_connections_no_longer_count", CONTRACT, given_back),
];

/// Hosts that no other rule uses.
const GREEDY: u16 = 3500;
/// Opens connections until the device refuses: the reason is that no resources are left.
fn fill(peer: &mut Peer) -> Result<Vec<Qp>, Failure> {
    let (open, refusal) = quota::fill(peer, MOST)?;
    if let Some(reason) = refusal {
        let count = open.len();
        ensure!(
            reason == RejReason::NO_RESOURCES,
            "after {count} connections the device refuses with reason {}, not 3",
            reason.0
        );
    }
    Ok(open)
}

fn quota(peer: &mut Peer) -> Result<(), Failure> {
    let mut bystander = Bystander::new(peer)?;
    peer.act_as_host(GREEDY);
    let greedy = fill(peer)?;
    bystander.works_on(peer)?;
    if let Err(Failure::Refused(_)) = bystander.brings_another(peer) {
        return Err(Failure::Content(format!(
            "one caller took {} connections, and no other can connect",
            greedy.len()
        )));
    }
    // It stays so, and a second caller has as many.
    ensure!(fill(peer)?.is_empty(), "a caller that had all that it may have got one more");
    peer.act_as_host(GREEDY + 1);
    let second = fill(peer)?;
    ensure!(greedy.len() == second.len(), "one caller may have {} connections, another {}", greedy.len(), second.len());
    bystander.brings_another(peer)?;
    close(peer, &greedy)?;
    close(peer, &second)?;
    bystander.leaves(peer)
}

fn given_back(peer: &mut Peer) -> Result<(), Failure> {
    peer.act_as_host(GREEDY + 2);
    let mut open = fill(peer)?;
    let room = open.len();
    close(peer, &open.split_off(room / 2))?;
    let again = fill(peer)?;
    ensure!(open.len() + again.len() == room, "{} of {room} connections can be had again", open.len() + again.len());
    close(peer, &open)?;
    close(peer, &again)
}
