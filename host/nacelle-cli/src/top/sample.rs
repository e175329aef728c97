// SPDX-License-Identifier: Apache-2.0
//! What a device has counted at a moment, and the change from one moment to the next.

use std::time::Instant;

use nacelle::Descriptor;
use nacelle_link::WireDir;
use nacelle_manage::{Control, Error, QueuePair, Stats, discover};
use serde::Serialize;

use crate::failure::Failure;

/// Asks a device again and again, also after it was started anew under its name.
pub(super) struct Sampler {
    wire: WireDir,
    device: Descriptor,
    control: Option<Control>,
}

/// What was seen of a device.
pub(super) struct Sample {
    at: Instant,
    seen: Result<(Stats, Vec<QueuePair>), Error>,
}

impl Sampler {
    /// Of the device with this name or address, which may have ended.
    pub(super) fn new(wire: WireDir, device: &str) -> Result<Self, Failure> {
        let found =
            discover::published(&wire).into_iter().find(|one| one.name == device || Ok(one.ip) == device.parse());
        let missing = || Error::NoSuchDevice { name: device.into(), wire: wire.path().into() };
        let device = found.ok_or_else(missing)?;
        Ok(Self { wire, device, control: None })
    }

    pub(super) fn device(&self) -> &Descriptor {
        &self.device
    }

    /// Which device it is, in words.
    pub(super) fn title(&self) -> String {
        let Descriptor { name, ip, kind, .. } = &self.device;
        format!("{name} at {ip} ({kind})")
    }

    /// Asks the device. It has 10 s for each answer.
    pub(super) fn sample(&mut self) -> Sample {
        let seen = self.ask();
        if seen.is_err() {
            self.control = None;
        }
        Sample { at: Instant::now(), seen }
    }

    fn ask(&mut self) -> Result<(Stats, Vec<QueuePair>), Error> {
        let control = match &mut self.control {
            Some(control) => control,
            none => none.insert(Control::open(&self.wire, &self.device.name)?),
        };
        Ok((control.stats()?, control.queue_pairs()?))
    }
}

/// What has changed between the last two samples.
#[derive(Default)]
pub(super) struct Change {
    before: Option<Sample>,
    now: Option<Sample>,
}

/// A counter.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Counter {
    name: String,
    total: u64,
    per_second: Option<f64>,
}

impl Sample {
    fn stats(&self) -> Option<&Stats> {
        self.seen.as_ref().ok().map(|(stats, _)| stats)
    }
}

impl Change {
    /// Takes the next sample.
    pub(super) fn take(&mut self, sample: Sample) {
        self.before = self.now.take();
        self.now = Some(sample);
    }

    fn seen(&self) -> Option<&Result<(Stats, Vec<QueuePair>), Error>> {
        self.now.as_ref().map(|sample| &sample.seen)
    }

    /// Whether the device has answered.
    pub(super) fn is_alive(&self) -> bool {
        self.seen().is_some_and(Result::is_ok)
    }

    /// Why it has not.
    pub(super) fn error(&self) -> Option<&Error> {
        self.seen()?.as_ref().err()
    }

    /// Its state in a word.
    pub(super) fn state(&self) -> &'static str {
        match self.seen() {
            None => "asked",
            Some(Ok(_)) => "up",
            Some(Err(_)) => "dead",
        }
    }

    /// Time between the samples, if the device has answered both.
    pub(super) fn seconds(&self) -> Option<f64> {
        let (before, now) = (self.before.as_ref()?, self.now.as_ref()?);
        let both = before.stats().is_some() && now.stats().is_some();
        both.then(|| now.at.duration_since(before.at).as_secs_f64()).filter(|seconds| *seconds > 0.0)
    }

    pub(super) fn queue_pairs(&self) -> &[QueuePair] {
        self.seen().and_then(|seen| seen.as_ref().ok()).map_or(&[], |(_, pairs)| pairs)
    }

    /// The counters that are not 0: the fastest first, then those that stand, by name.
    pub(super) fn counters(&self) -> Vec<Counter> {
        let Some(now) = self.now.as_ref().and_then(Sample::stats) else { return Vec::new() };
        let before = self.before.as_ref().and_then(Sample::stats).zip(self.seconds());
        let rate = |name: &str, total: u64| {
            let (before, seconds) = before?;
            // A device that was started anew counts from 0.
            Some(total.saturating_sub(before.counters.get(name).copied().unwrap_or_default()) as f64 / seconds)
        };
        let all = now.counters.iter().filter(|(_, total)| **total > 0);
        let mut all: Vec<_> = all
            .map(|(name, total)| Counter { name: name.clone(), total: *total, per_second: rate(name, *total) })
            .collect();
        let speed = |counter: &Counter| counter.per_second.unwrap_or_default();
        all.sort_by(|a, b| speed(b).total_cmp(&speed(a)).then_with(|| a.name.cmp(&b.name)));
        all
    }

    /// A row of heads, and one for each counter.
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let mut rows = vec![["COUNTER", "TOTAL", "PER SECOND"].map(str::to_owned).to_vec()];
        rows.extend(self.counters().into_iter().map(|Counter { name, total, per_second }| {
            let rate = per_second.map_or_else(|| "-".into(), |rate| format!("{rate:.1}"));
            vec![name, total.to_string(), rate]
        }));
        rows
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sample(at: Instant, counters: &[(&str, u64)]) -> Sample {
        let counters = counters.iter().map(|(name, total)| ((*name).to_owned(), *total)).collect();
        Sample { at, seen: Ok((Stats { cycles: 0, counters }, Vec::new())) }
    }

    #[test]
    fn rates_are_of_the_last_interval_and_the_fastest_comes_first() {
        let began = Instant::now();
        let mut change = Change::default();
        change.take(sample(began, &[("calls", 10), ("frames", 5), ("drops", 3), ("none", 0)]));
        assert_eq!(change.rows().len(), 4, "what is 0 is left out");
        assert!(change.rows()[1..].iter().all(|row| row[2] == "-"), "one sample has no rate");
        let after = |seconds| began + Duration::from_secs(seconds);
        change.take(sample(after(2), &[("calls", 14), ("frames", 105), ("drops", 3), ("none", 0)]));
        let expected = [
            ["COUNTER", "TOTAL", "PER SECOND"],
            ["frames", "105", "50.0"],
            ["calls", "14", "2.0"],
            ["drops", "3", "0.0"],
        ];
        assert_eq!(change.rows(), expected.map(|row| row.map(str::to_owned).to_vec()));

        // The device is gone, comes back, and counts from 0.
        let dead = Error::Management { name: "d".into(), why: "gone".into() };
        change.take(Sample { at: after(3), seen: Err(dead) });
        assert_eq!((change.state(), change.rows().len(), change.seconds()), ("dead", 1, None));
        change.take(sample(after(4), &[("calls", 1)]));
        assert_eq!((change.state(), &change.rows()[1][2][..]), ("up", "-"));
        change.take(sample(after(5), &[("calls", 0), ("frames", 7)]));
        assert_eq!(change.rows()[1], ["frames", "7", "7.0"]);
    }
}
