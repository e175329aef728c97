// SPDX-License-Identifier: Apache-2.0
//! Records what a device answers to odd requests: the same cases, made from a seed, for every device, and a transcript of the answers without anything that
//! a device may choose. Devices that keep the same contract have the same transcript.

mod cm;
mod frame;
mod rc;
mod transcript;

use crate::{Failure, peer::Peer};
use serde::Serialize;
use std::{fs::File, io::Write, path::Path};
use transcript::Scene;

/// One case.
#[derive(Serialize)]
struct Record {
    seed: u64,
    case: u64,
    steps: Vec<Step>,
}

/// What was sent together, and what was answered.
#[derive(Serialize)]
struct Step {
    sent: String,
    answered: Vec<String>,
}

/// One case in so many is about connection management.
const CM_SHARE: u64 = 4;

/// One of these.
fn pick<T: Copy>(rng: &mut fastrand::Rng, from: &[T]) -> T {
    from[rng.usize(..from.len())]
}

/// Runs a few cases, and ignores the answers.
///
/// # Errors
/// The device does not answer the bystander, or frames were lost.
pub(crate) fn play(peer: &mut Peer, rng: &mut fastrand::Rng) -> Result<(), Failure> {
    let mut scene = Scene::new(peer)?;
    for _ in 0..rng.u8(1..=4) {
        if rng.u64(..CM_SHARE) == 0 {
            cm::play(&mut scene, rng)?
        } else {
            rc::play(&mut scene, rng)?
        };
    }
    scene.end()
}

/// Runs these cases, and writes a line of JSON for each.
///
/// # Errors
/// The device is not there any more, or the file cannot be written.
pub(crate) fn record(peer: &mut Peer, path: &Path, seed: u64, cases: core::ops::Range<u64>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Content(format!("{}: {error}", path.display()));
    let mut file = File::create(path).map_err(failed)?;
    let mut scene = Scene::new(peer)?;
    for case in cases {
        // Everything about a case comes from here: it can be played alone.
        let mut rng = fastrand::Rng::with_seed(seed << 32 ^ case);
        let steps =
            if case % CM_SHARE == 0 { cm::play(&mut scene, &mut rng)? } else { rc::play(&mut scene, &mut rng)? };
        let line = serde_json::to_string(&Record { seed, case, steps }).expect("a record is plain");
        writeln!(file, "{line}").map_err(failed)?;
    }
    scene.end()
}
