// SPDX-License-Identifier: Apache-2.0
//! Which devices are on a wire.
//!
//! Each device publishes `<wire>/<name>.device.json` while it runs. A file whose device does not answer on its management
//! socket belongs to a device that has died: it is listed as such.

use std::fs;
use std::time::Duration;

use nacelle_link::WireDir;
use serde::Serialize;

use crate::{Control, Descriptor};

/// How the names of descriptor files end.
pub const DESCRIPTOR_SUFFIX: &str = ".device.json";
/// How long a device may take to say that it runs when all are listed, and when it is the one that is meant.
const LISTED_WITHIN: Duration = Duration::from_secs(1);
const MEANT_WITHIN: Duration = Duration::from_secs(3);
/// Longest descriptor read, in bytes.
const MAX_DESCRIPTOR: u64 = 1 << 20;

/// A device found on a wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Its descriptor.
    #[serde(flatten)]
    pub device: Descriptor,
    /// Whether it answers.
    pub alive: bool,
}

/// What the devices on a wire have published, by name, whether or not they still run. Other files are
/// ignored.
#[must_use]
pub fn published(wire: &WireDir) -> Vec<Descriptor> {
    let Ok(entries) = fs::read_dir(wire.path()) else { return Vec::new() };
    let mut found: Vec<Descriptor> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(DESCRIPTOR_SUFFIX))
        .filter(|entry| entry.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_DESCRIPTOR))
        .filter_map(|entry| serde_json::from_slice::<Descriptor>(&fs::read(entry.path()).ok()?).ok())
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// All devices that published themselves on a wire, by name. They are queried in parallel, for a second at
/// most.
#[must_use]
pub fn list(wire: &WireDir) -> Vec<Found> {
    ask(wire, published(wire), LISTED_WITHIN)
}

/// The first of `devices` that answers; all are queried in parallel, for 3 s at most.
#[must_use]
pub fn alive(wire: &WireDir, devices: Vec<Descriptor>) -> Option<Descriptor> {
    ask(wire, devices, MEANT_WITHIN).into_iter().find(|found| found.alive).map(|found| found.device)
}

fn ask(wire: &WireDir, devices: Vec<Descriptor>, patience: Duration) -> Vec<Found> {
    let alive: Vec<bool> = std::thread::scope(|scope| {
        let ask = |device: &Descriptor| {
            let name = device.name.clone();
            scope.spawn(move || Control::is_alive(wire, &name, patience))
        };
        let answers: Vec<_> = devices.iter().map(ask).collect();
        answers.into_iter().map(|answer| answer.join().unwrap_or_default()).collect()
    });
    devices.into_iter().zip(alive).map(|(device, alive)| Found { device, alive }).collect()
}
