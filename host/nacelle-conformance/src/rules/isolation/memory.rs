// SPDX-License-Identifier: Apache-2.0
//! A caller's data does not outlive it: the next one finds zeros in memory, however the first one ended.

use super::{CONTRACT, Rule, nacelle};
use crate::{
    Failure,
    failure::ensure,
    peer::{Peer, Qp, Terms},
    rules::pattern,
};
use std::time::{Duration, Instant};

pub(super) const RULES: &[Rule] = &[
    nacelle("isolation.memory_of_a_caller_that_disconnected_is_cleared", CONTRACT, |p| left(p, Way::Dreq)),
    nacelle("isolation.memory_of_a_caller_that_rejected_is_cleared", CONTRACT, |p| left(p, Way::Rej)),
    nacelle("isolation.memory_freed_by_a_new_setup_is_cleared", CONTRACT, |p| left(p, Way::SetUp)),
    nacelle("isolation.memory_of_a_caller_that_vanished_is_cleared", CONTRACT, |p| left(p, Way::Vanished)),
    nacelle("isolation.memory_of_the_same_caller_is_cleared_too", CONTRACT, itself),
];

const SIZES: [u32; 3] = [4096, 20_000, 40_000];
/// A device that does not use addresses again is asked so often.
const TRIES: u32 = 8;
/// Keep-alive time of the device.
const KEEP_ALIVE_MS: u32 = 500;
/// The resources of a vanished caller are free within this time.
const FORGOTTEN: Duration = Duration::from_secs(12);

/// How the first caller goes.
#[derive(Clone, Copy)]
enum Way {
    Dreq,
    Rej,
    SetUp,
    Vanished,
}

fn left(peer: &mut Peer, way: Way) -> Result<(), Failure> {
    let ip = peer.act_as_host(0);
    let terms = Terms { ack_timeout: 12, retry_count: 1, mtu: 5, ..Terms::default() };
    let keep_alive = match way {
        Way::Vanished => peer.manage().ok().map(|m| m.keep_alive(KEEP_ALIVE_MS)).transpose()?.flatten(),
        _ => None,
    };
    let mut first = peer.connect_with(&terms, &SIZES)?;
    for (index, region) in first.regions.clone().iter().enumerate() {
        peer.write_bytes(&mut first, region, 0, &pattern(7, SIZES[index] as usize))?;
    }
    match way {
        Way::Dreq => peer.disconnect(&first)?,
        Way::Rej => peer.reject(&first)?,
        Way::SetUp => peer.set_up_regions(&mut first, &[64])?,
        Way::Vanished => peer.vanish(ip),
    }
    let old = first.regions[0].addr;
    peer.act_as_host(1);
    let mut next = peer.connect(&Terms { mtu: 5, ..Terms::default() })?;
    let until = Instant::now() + if matches!(way, Way::Vanished) { FORGOTTEN } else { Duration::ZERO };
    for attempt in 1.. {
        peer.set_up_regions(&mut next, &SIZES)?;
        zeros(peer, &mut next)?;
        if next.regions[0].addr == old || attempt >= TRIES && Instant::now() > until {
            break;
        }
        if Instant::now() < until {
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    if let Some(before) = keep_alive {
        peer.manage()?.keep_alive(before)?;
    }
    if matches!(way, Way::SetUp) {
        peer.disconnect(&first)?;
    }
    peer.disconnect(&next)
}

/// What the caller was given is zeros, read and as the outputs of a function that does nothing.
fn zeros(peer: &mut Peer, qp: &mut Qp) -> Result<(), Failure> {
    for (index, region) in qp.regions.clone().iter().enumerate() {
        let found = peer.read_bytes(qp, region, 0, SIZES[index] as usize)?;
        nothing("a READ", index, &found)?;
    }
    let outputs = peer.outputs_of_nothing(qp)?;
    outputs.iter().enumerate().try_for_each(|(index, bytes)| nothing("an output", index, bytes))
}

fn nothing(what: &str, index: usize, bytes: &[u8]) -> Result<(), Failure> {
    let at = bytes.iter().position(|b| *b != 0);
    let found = bytes.iter().filter(|b| **b != 0).count();
    ensure!(
        at.is_none(),
        "{what} of new region {index} shows {found} bytes that the last owner left, from byte {}",
        at.unwrap_or(0)
    );
    Ok(())
}

fn itself(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms { mtu: 5, ..Terms::default() }, &SIZES)?;
    for _ in 0..2 {
        zeros(peer, &mut qp)?;
        for (index, region) in qp.regions.clone().iter().enumerate() {
            peer.write_bytes(&mut qp, region, 0, &pattern(9, SIZES[index] as usize))?;
        }
        peer.set_up_regions(&mut qp, &SIZES)?;
    }
    zeros(peer, &mut qp)?;
    peer.disconnect(&qp)
}
