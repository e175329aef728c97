// SPDX-License-Identifier: Apache-2.0
//! Counts of what the soak did and of the failures that it found.

use super::{Failure, caller::Caller};
use core::{fmt, net::Ipv4Addr, time::Duration};
use nacelle_link::ImpairmentCounts;
use std::collections::{BTreeMap, HashSet};

/// The counts of all runs.
#[derive(Clone, Default)]
pub(super) struct Tally {
    pub(super) runs: u64,
    pub(super) connections: u64,
    calls: u64,
    operations: u64,
    bytes: u64,
    /// The longest call of an honest caller, in the device's time.
    worst: Duration,
    /// Connections of honest callers that were refused and tried again.
    pub(super) refused: u64,
    pub(super) restarts: u64,
    pub(super) frames: ImpairmentCounts,
    attacks: BTreeMap<&'static str, (u64, u64)>,
    dead: HashSet<Ipv4Addr>,
    /// Leak checks between runs.
    pub(super) looks: u64,
    hangs: u64,
    wrong: u64,
    failed: u64,
    leaks: u64,
}

impl Tally {
    /// Adds the counts of an honest caller.
    pub(super) fn add(&mut self, caller: &Caller) {
        self.calls += caller.calls;
        self.operations += caller.operations;
        self.bytes += caller.bytes;
        self.worst = self.worst.max(caller.worst);
    }

    /// Counts an attack, and whether it was cut short by a missing answer or a refusal.
    pub(super) fn attack(&mut self, name: &'static str, cut_short: bool) {
        let (all, cut) = self.attacks.entry(name).or_default();
        *all += 1;
        *cut += u64::from(cut_short);
    }

    /// Counts an address whose host vanished or never existed.
    pub(super) fn dead(&mut self, ip: Ipv4Addr) {
        self.dead.insert(ip);
    }

    /// Counts a failure by its kind.
    pub(super) fn failure(&mut self, failure: &Failure) {
        *match failure {
            Failure::Stuck(..) => &mut self.hangs,
            Failure::Content(_) => &mut self.wrong,
            Failure::Leaked(_) => &mut self.leaks,
            Failure::Link(_) | Failure::Failed(_) => &mut self.failed,
        } += 1;
    }

    /// The line of progress.
    pub(super) fn in_short(&self) -> String {
        let attacks: u64 = self.attacks.values().map(|(all, _)| all).sum();
        format!(
            "seeds {}, at rest {}, calls {}, {:.1} MB, attacks {attacks}, dead addresses {}, worst honest call {:.3} ms",
            self.runs,
            self.looks,
            self.calls,
            self.bytes as f64 / 1e6,
            self.dead.len(),
            self.worst.as_secs_f64() * 1e3
        )
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ImpairmentCounts { frames, lost, duplicated, overtaken, damaged } = self.frames;
        let megabytes = self.bytes as f64 / 1e6;
        writeln!(
            f,
            "seeds {}, connections {}, calls {}, other operations {}, {megabytes:.1} MB",
            self.runs, self.connections, self.calls, self.operations
        )?;
        writeln!(f, "frames {frames}: lost {lost}, twice {duplicated}, overtaken {overtaken}, spoiled {damaged}")?;
        for (name, (all, cut)) in &self.attacks {
            writeln!(f, "attack {name}: {all}, cut short {cut}")?;
        }
        writeln!(
            f,
            "dead addresses {}, restarts {}, refused and come again {}, looks at the quiet device {}",
            self.dead.len(),
            self.restarts,
            self.refused,
            self.looks
        )?;
        writeln!(f, "worst honest call {:.3} ms of the device's time", self.worst.as_secs_f64() * 1e3)?;
        write!(
            f,
            "hangs {}, wrong bytes {}, failed requests {}, leaks {}",
            self.hangs, self.wrong, self.failed, self.leaks
        )
    }
}
