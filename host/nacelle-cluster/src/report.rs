// SPDX-License-Identifier: Apache-2.0
//! What runs did.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::network::Frames;

/// Counts of one run, or of several.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Virtual time that has passed.
    pub time: Duration,
    /// Frames that nodes sent.
    pub frames: u64,
    /// Frames that the network lost, cuts included.
    pub lost: u64,
    /// Frames that came twice.
    pub repeated: u64,
    /// Frames that others have overtaken.
    pub overtaken: u64,
    /// Frames with a wrong bit.
    pub corrupted: u64,
    /// Bytes of all frames.
    pub bytes: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// Work requests that completed with success.
    pub operations: u64,
    /// Calls that returned with the right bytes.
    pub calls: u64,
    /// Packets that endpoints sent again.
    pub retransmitted: u64,
    /// Nodes that crashed.
    pub crashes: u64,
    /// Cuts, by whether retries bridge them.
    pub cuts: [u64; 2],
    /// How connections ended, as each side had it.
    pub ends: BTreeMap<String, u64>,
    /// Longest time from the reason of an end to the end.
    pub worst_end: Duration,
}

impl Report {
    /// Adds what another run did.
    pub fn add(&mut self, other: Self) {
        self.time += other.time;
        self.frames += other.frames;
        self.lost += other.lost;
        self.repeated += other.repeated;
        self.overtaken += other.overtaken;
        self.corrupted += other.corrupted;
        self.bytes += other.bytes;
        self.connections += other.connections;
        self.operations += other.operations;
        self.calls += other.calls;
        self.retransmitted += other.retransmitted;
        self.crashes += other.crashes;
        self.cuts.iter_mut().zip(other.cuts).for_each(|(cuts, more)| *cuts += more);
        other.ends.into_iter().for_each(|(why, count)| *self.ends.entry(why).or_default() += count);
        self.worst_end = self.worst_end.max(other.worst_end);
    }

    pub(crate) fn count(&mut self, frames: Frames) {
        (self.frames, self.bytes) = (frames.sent, frames.bytes);
        (self.lost, self.repeated) = (frames.lost + frames.cut, frames.repeated);
        (self.overtaken, self.corrupted) = (frames.overtaken, frames.corrupted);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, frames, lost, repeated, overtaken, corrupted, bytes, retransmitted, .. } = self;
        let Self { connections, operations, calls, crashes, cuts: [short, long], worst_end, .. } = self;
        writeln!(f, "virtual time {:.1} s, {frames} frames, {:.1} MB", time.as_secs_f64(), *bytes as f64 / 1e6)?;
        writeln!(f, "frames lost {lost}, twice {repeated}, overtaken {overtaken}, corrupted {corrupted}")?;
        writeln!(
            f,
            "connections {connections}, operations {operations}, calls {calls}, packets sent again {retransmitted}"
        )?;
        writeln!(f, "crashes {crashes}, short cuts {short}, long cuts {long}")?;
        for (why, count) in &self.ends {
            writeln!(f, "ended {count} times: {why}")?;
        }
        write!(f, "longest time from the reason of an end to the end {worst_end:?}")
    }
}
