// SPDX-License-Identifier: Apache-2.0
//! Callers that vanish during a call, or never existed, at a hundred addresses and more: no other is delayed, and all that they held is free again.

use super::{CONTRACT, Rule, bystander::Bystander, half_open::EACH, nacelle};
use crate::{
    Failure,
    attack::{dead::caller, half_open::forged},
    failure::ensure,
    peer::{Peer, Terms},
};
use nacelle_manage::ConnectionState;
use std::time::{Duration, Instant};

pub(super) const RULES: &[Rule] = &[
    nacelle("isolation.connection_to_an_unreachable_address_delays_no_other", CONTRACT, dead_address),
    nacelle("isolation.flood_of_requests_from_forged_addresses_affects_no_other", CONTRACT, flood),
    nacelle("isolation.vanished_callers_delay_no_other", CONTRACT, died),
];

/// So many callers die.
const DEAD: u16 = 150;
/// In groups of this many, with others at work between them.
const GROUP: u16 = 25;
/// What they held is free after this time: their retries, and the device's own of its DREQ.
const FORGOTTEN: Duration = Duration::from_secs(30);

/// REQs from addresses without a host.
const FLOOD: u16 = 256;

fn died(peer: &mut Peer) -> Result<(), Failure> {
    let mut bystander = Bystander::new(peer)?;
    let mut theirs = Vec::new();
    for index in 0..DEAD {
        let ip = peer.act_as_host(index);
        let qp = caller(peer)?;
        peer.vanish(ip);
        theirs.push(qp);
        if index % GROUP == GROUP - 1 {
            bystander.works_on(peer)?;
            bystander.brings_another(peer)?;
        }
    }
    let until = Instant::now() + FORGOTTEN;
    loop {
        bystander.works_on(peer)?;
        bystander.brings_another(peer)?;
        let held = match peer.manage() {
            Ok(manage) => {
                let pairs = manage.queue_pairs()?;
                theirs.iter().filter(|qp| pairs.iter().any(|p| p.peer == Some(qp.ip.into()))).count()
            }
            Err(_) => break,
        };
        if held == 0 {
            break;
        }
        ensure!(
            Instant::now() < until,
            "{held} of {DEAD} connections of vanished callers still exist after {FORGOTTEN:?}"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    bystander.leaves(peer)
}

fn dead_address(peer: &mut Peer) -> Result<(), Failure> {
    let mut bystander = Bystander::new(peer)?;
    // The device resolves an address without a host.
    let mut numbers = Vec::new();
    for index in 0..4 {
        let absent = peer.station.host(3000 + index);
        numbers.push(peer.manage()?.connect(absent, 12_345, None)?);
        bystander.works_on(peer)?;
        bystander.brings_another(peer)?;
    }
    // And for one that answers ARP and nothing else.
    let mute = peer.station.host(3100);
    peer.station.play(mute);
    numbers.push(peer.manage()?.connect(mute, 12_345, None)?);
    for _ in 0..4 {
        bystander.works_on(peer)?;
        bystander.brings_another(peer)?;
    }
    for number in numbers {
        let manage = peer.manage()?;
        let state = manage.poll(number)?.state;
        ensure!(state != ConnectionState::Established, "the device is connected with an address without a host");
        manage.close(number)?;
    }
    bystander.leaves(peer)
}

fn flood(peer: &mut Peer) -> Result<(), Failure> {
    let mut bystander = Bystander::new(peer)?;
    let begin = Instant::now();
    for index in 0..FLOOD {
        forged(peer, index)?;
        if index % 32 == 31 {
            bystander.works_on(peer)?;
            bystander.brings_another(peer)?;
        }
    }
    // When they have timed out, no connection is half open.
    let late = Duration::from_secs(3).saturating_sub(begin.elapsed());
    peer.station.gather(late)?;
    peer.act_as_host(FLOOD);
    for _ in 0..EACH {
        let Some(qp) = peer.try_half_open(&Terms::default())? else {
            return Err(Failure::Content("connections of a flood are half open for ever".into()));
        };
        peer.disconnect_only(&qp)?;
    }
    bystander.leaves(peer)
}
