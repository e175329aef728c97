// SPDX-License-Identifier: Apache-2.0
//! An attack of a few frames: requests under a key are refused once it is invalid, and other callers' memory is not touched.

use super::{CONTRACT, Rule, nacelle};
use crate::{
    Failure,
    attack::stale_key::{self, Answers, When, is_nak},
    failure::ensure,
    peer::Peer,
};
use nacelle_wire::{
    bth::{NakCode, Syndrome},
    transport::Ext,
};

pub(super) const RULES: &[Rule] = &[
    nacelle("isolation.write_under_an_old_key_right_behind_the_new_set_up", CONTRACT, |p| write(p, When::RightBehind)),
    nacelle("isolation.write_under_an_old_key_goes_on_after_the_error", CONTRACT, |p| write(p, When::AfterTheError)),
    nacelle("isolation.write_under_an_old_key_goes_on_during_the_next_set_up", CONTRACT, |p| {
        write(p, When::DuringTheNext)
    }),
    nacelle("isolation.write_under_an_old_key_goes_on_after_the_next_set_up", CONTRACT, |p| {
        write(p, When::AfterTheNext)
    }),
    nacelle("isolation.read_under_an_old_key_shows_nothing_of_the_next_caller", CONTRACT, read),
    nacelle("isolation.atomics_under_an_old_key_change_nothing_of_the_next_caller", CONTRACT, atomics),
];

/// The attack is tried so often with each timing: whether the WRITE is admitted depends on a few cycles.
const ROUNDS: u16 = 3;

/// If it was not carried out before: the answers contain one NAK remote access error, and behind it nothing; nothing from this PSN on is acknowledged.
fn cut_off(answers: &Answers) -> Result<(), Failure> {
    let Answers { all: answers, refused_from: Some(from) } = answers else { return Ok(()) };
    let naks = answers.iter().filter(|p| is_nak(p)).count();
    ensure!(naks == 1, "{naks} NAKs came on the connection whose key was deregistered, instead of 1");
    let last = answers.last().expect("there is a NAK");
    let refused = matches!(last.headers.ext, Ext::Aeth(a) if a.syndrome() == Syndrome::Nak(NakCode::RemoteAccessError));
    if !refused {
        return Err(Failure::unexpected("NAK remote access error as the last answer", last));
    }
    match answers.iter().find(|p| !is_nak(p) && p.headers.bth.psn().distance(*from) >= 0) {
        Some(packet) => Err(Failure::unexpected("no answer to a request with a deregistered key", packet)),
        None => Ok(()),
    }
}

fn write(peer: &mut Peer, when: When) -> Result<(), Failure> {
    (0..ROUNDS).try_for_each(|round| cut_off(&stale_key::write(peer, 2 * round, when)?))
}

fn read(peer: &mut Peer) -> Result<(), Failure> {
    cut_off(&stale_key::read(peer, 0)?)
}

fn atomics(peer: &mut Peer) -> Result<(), Failure> {
    stale_key::atomics(peer, 0)
}
