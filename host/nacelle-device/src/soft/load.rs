// SPDX-License-Identifier: Apache-2.0
//! How busy the device is, for callers to read: a record in its memory, before its description.

use std::time::{Duration, Instant};

use nacelle_roce::RegionId;
use nacelle_wire::LoadRecord;

use super::SoftEngine;

/// The record is written at most so often, but for each new connection.
const INTERVAL: Duration = Duration::from_millis(1);

/// The record in memory.
#[derive(Debug)]
pub(super) struct Told {
    /// The region that begins with it.
    pub(super) region: RegionId,
    /// What it says,
    pub(super) load: LoadRecord,
    /// and since when.
    pub(super) since: Instant,
}

impl Told {
    fn due(&self, load: LoadRecord) -> Option<Instant> {
        (load != self.load).then(|| self.since + INTERVAL)
    }
}

impl SoftEngine {
    /// How busy it is at this moment.
    fn load(&self) -> LoadRecord {
        let (running, waiting) = self.workers.load();
        LoadRecord {
            connections: self.sessions.0.len() as u32,
            running,
            waiting,
            changes: self.config.kernels.changes(),
            memory_held: self.held.total(),
            calls: self.counters.calls,
        }
    }

    /// When the record must be written again.
    pub(super) fn load_due(&self) -> Option<Instant> {
        self.told.as_ref().and_then(|told| told.due(self.load()))
    }

    /// Writes the record again if that is due, or has changed and is to be written `now`.
    pub(super) fn tell_load(&mut self, now: bool) {
        let load = self.load();
        let turn = self.turn;
        let Some(told) = &mut self.told else { return };
        if !told.due(load).is_some_and(|at| now || at <= turn) {
            return;
        }
        (told.load, told.since) = (load, turn);
        if let Some(memory) = self.endpoint.transport.region_mut(told.region) {
            // The region has room for it.
            let _ = memory.write(0, &load.to_bytes());
        }
    }
}
