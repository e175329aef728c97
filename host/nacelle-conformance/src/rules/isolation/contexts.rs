// SPDX-License-Identifier: Apache-2.0
//! A caller that fills all contexts of its connection delays no other.

use super::{CONTRACT, Rule, bystander::Bystander, nacelle};
use crate::{
    Failure,
    attack::contexts,
    failure::ensure,
    peer::{LongCall, Peer, Terms},
};
use nacelle_wire::extensions::{Agreement, Extensions};

pub(super) const RULES: &[Rule] = &[
    nacelle("isolation.long_calls_on_all_contexts_delay_no_other", CONTRACT, long_calls),
    nacelle("isolation.long_calls_on_all_contexts_take_turns_with_another", CONTRACT, turns),
    nacelle("isolation.flood_on_all_contexts_delays_no_other", CONTRACT, flood),
];

fn long_calls(peer: &mut Peer) -> Result<(), Failure> {
    peer.act_as_host(0);
    peer.long_call()?;
    let mut bystander = Bystander::new(peer)?;
    peer.act_as_host(0);
    let mut many = contexts::long_calls(peer)?;
    for _ in 0..4 {
        bystander.works_on(peer)?;
        bystander.brings_another(peer)?;
    }
    for context in 0..many.count() {
        many.cancel(peer, context)?;
    }
    for _ in 0..many.count() {
        many.end_of_call(peer)?;
    }
    peer.disconnect_only(&many.qp)?;
    bystander.leaves(peer)
}

/// The other caller's long call is over before those of the one with many, which all came before it. A device with as many kernels as
/// calls runs them all at once: then it does not come much later.
fn turns(peer: &mut Peer) -> Result<(), Failure> {
    peer.act_as_host(0);
    let long = peer.long_call()?;
    peer.act_as_host(1);
    let mut other = peer.connect_contexts(1, false)?;
    long.prepare(peer, &mut other, 0)?;
    peer.act_as_host(0);
    let mut many = contexts::long_calls(peer)?;
    let count = many.count();
    other.start(peer, 0, LongCall::START)?;
    peer.station.patience *= 8;
    let (mut before, mut ended) = (0, false);
    let outcome = (0..count).try_for_each(|_| {
        // What has come for the other when an answer for the first is there.
        many.end_of_call(peer)?;
        let own = other.qp.own_qpn;
        ended = ended || peer.station.is_there(|p| p.headers.bth.dest_qp() == own && !p.opcode.is_response())?;
        before += u8::from(!ended);
        Ok::<(), Failure>(())
    });
    let end = outcome.and_then(|()| other.end_of_call(peer));
    peer.station.patience /= 8;
    let (_, result, _) = end?;
    ensure!(result == 0, "the other caller's call ends with {result}");
    ensure!(before < count, "all {count} calls of one caller ended before the only one of another");
    peer.disconnect(&many.qp)?;
    peer.disconnect(&other.qp)
}

fn flood(peer: &mut Peer) -> Result<(), Failure> {
    peer.act_as_host(0);
    let offer = Agreement::new(Extensions::CONTEXTS, 8);
    let first = peer.connect(&Terms { offer, ..Terms::default() })?;
    peer.disconnect(&first)?;
    if first.agreed.contexts == 0 {
        return Err(Failure::NotTried("the device has no contexts"));
    }
    let mut bystander = Bystander::new(peer)?;
    for host in 0..6 {
        peer.act_as_host(host);
        let mut many = peer.connect_contexts(first.agreed.contexts, false)?;
        let contexts = many.count();
        contexts::torrent(peer, &mut many.qp, contexts)?;
        bystander.works_on(peer)?;
        contexts::torrent(peer, &mut many.qp, contexts)?;
        bystander.brings_another(peer)?;
        bystander.works_on(peer)?;
        // Ended by the device or not.
        peer.disconnect_only(&many.qp)?;
    }
    bystander.works_on(peer)?;
    bystander.leaves(peer)
}
