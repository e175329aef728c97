// SPDX-License-Identifier: Apache-2.0
//! What a device has counted at a moment, and the change from one moment to the next.

use std::time::Instant;

use nacelle::Descriptor;
use nacelle_link::WireDir;
use nacelle_manage::histograms::{Histogram, Histograms, SocketTimes, Times};
use nacelle_manage::{Control, Error, QueuePair, QueuePairCounters, Stats, discover};
use serde::Serialize;

use crate::failure::Failure;
use crate::manage;

/// Asks a device again and again, also after it was started anew under its name.
pub(super) struct Sampler {
    wire: WireDir,
    device: Descriptor,
    control: Option<(Control, Option<Histograms>)>,
}

/// What was seen of a device.
pub(super) struct Sample {
    at: Instant,
    seen: Result<Seen, Error>,
}

/// What a device answered.
#[derive(Default)]
struct Seen {
    stats: Stats,
    pairs: Vec<QueuePair>,
    pair_counters: Vec<QueuePairCounters>,
    /// If it measures calls.
    times: Option<(Histograms, Times)>,
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

    fn ask(&mut self) -> Result<Seen, Error> {
        let (control, histograms) = match &mut self.control {
            Some(known) => known,
            none => {
                let mut control = Control::open(&self.wire, &self.device.name)?;
                let found = Histograms::find(&mut control)?;
                none.insert((control, found))
            }
        };
        let times = match histograms {
            Some(histograms) => Some((*histograms, histograms.read(control)?)),
            None => None,
        };
        let (stats, pairs) = (control.stats()?, control.queue_pairs()?);
        let pair_counters = if pairs.is_empty() { Vec::new() } else { control.queue_pair_counters(None)? };
        Ok(Seen { stats, pairs, pair_counters, times })
    }
}

/// What has changed between the last two samples.
#[derive(Default)]
pub(super) struct Change {
    before: Option<Sample>,
    now: Option<Sample>,
}

/// A time of the device.
fn micros(seconds: f64) -> String {
    format!("{:.2} µs", seconds * 1e6)
}

/// A counter.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Counter {
    name: String,
    total: u64,
    per_second: Option<f64>,
}

/// What a queue pair moves.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Rate {
    qpn: u32,
    sent_bytes_per_second: f64,
    received_bytes_per_second: f64,
}

/// The calls of a socket; times in seconds of the device, over the last interval.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct SocketUse {
    socket: usize,
    /// That ended.
    calls: u64,
    calls_per_second: f64,
    /// Part of the time in which it had a call; more than 1 if several ran at once.
    utilisation: f64,
    latency_p50: Option<f64>,
    latency_p99: Option<f64>,
    /// What no call reached; unknown if it was longer than the device tells apart.
    latency_below: Option<f64>,
    run_p50: Option<f64>,
    run_p99: Option<f64>,
    /// Calls that a call found before it, on average.
    queue_mean: Option<f64>,
}

impl Sample {
    fn seen(&self) -> Option<&Seen> {
        self.seen.as_ref().ok()
    }

    fn stats(&self) -> Option<&Stats> {
        self.seen().map(|seen| &seen.stats)
    }

    fn times(&self) -> Option<&(Histograms, Times)> {
        self.seen()?.times.as_ref()
    }
}

impl Change {
    /// Takes the next sample.
    pub(super) fn take(&mut self, sample: Sample) {
        self.before = self.now.take();
        self.now = Some(sample);
    }

    fn seen(&self) -> Option<&Result<Seen, Error>> {
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
        self.seen().and_then(|seen| seen.as_ref().ok()).map_or(&[], |seen| &seen.pairs)
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

    /// What each queue pair moves.
    pub(super) fn rates(&self) -> Vec<Rate> {
        let both = self.before.as_ref().and_then(Sample::seen).zip(self.now.as_ref().and_then(Sample::seen));
        let (Some((before, now)), Some(seconds)) = (both, self.seconds()) else { return Vec::new() };
        let rate = |pair: &QueuePairCounters| {
            let former = before.pair_counters.iter().find(|former| former.qpn == pair.qpn)?;
            let moved = |names: [&str; 2]| -> f64 {
                let of = |all: &QueuePairCounters, name| all.counters.get(name).copied().unwrap_or_default();
                // One that was made anew counts from 0.
                let all = names.map(|name| of(pair, name).saturating_sub(of(former, name)));
                all.iter().sum::<u64>() as f64 / seconds
            };
            Some(Rate {
                qpn: pair.qpn,
                sent_bytes_per_second: moved(["sent_bytes", "sent_response_bytes"]),
                received_bytes_per_second: moved(["rcvd_bytes", "rcvd_response_bytes"]),
            })
        };
        now.pair_counters.iter().filter_map(rate).collect()
    }

    /// A row of heads, and one for each queue pair.
    pub(super) fn pair_rows(&self) -> Vec<Vec<String>> {
        let mut rows = manage::queue_pairs(self.queue_pairs());
        let rates = self.rates();
        if let Some((heads, rows)) = rows.split_first_mut() {
            heads.extend(["SENT B/S", "RECEIVED B/S"].map(str::to_owned));
            for (row, pair) in rows.iter_mut().zip(self.queue_pairs()) {
                let rate = rates.iter().find(|rate| rate.qpn == pair.qpn);
                let cell = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.0}"));
                row.push(cell(rate.map(|rate| rate.sent_bytes_per_second)));
                row.push(cell(rate.map(|rate| rate.received_bytes_per_second)));
            }
        }
        rows
    }

    /// The calls of each socket between the samples, by the device's time; from its start if there is one sample. A device that was
    /// started anew, or whose histograms were cleared, has none until the next one.
    pub(super) fn sockets(&self) -> Vec<SocketUse> {
        let Some((histograms, now)) = self.now.as_ref().and_then(Sample::times) else { return Vec::new() };
        let before = self.before.as_ref().and_then(Sample::times).map(|(_, times)| times);
        if before.is_some_and(|before| before.clears != now.clears || before.now > now.now) {
            return Vec::new();
        }
        let hz = f64::from(histograms.clock_hz);
        let cycles = before.map_or(now.now, |before| now.cycles_since(before)) as f64;
        let none = SocketTimes::default();
        let change = |number: usize, socket: &SocketTimes| {
            let before = before.and_then(|before| before.sockets.get(number));
            let since = |now: &Histogram, of: fn(&SocketTimes) -> &Histogram| match before {
                Some(before) => now.since(of(before)),
                None => now.clone(),
            };
            let latency = since(&socket.latency, |one| &one.latency);
            let run = since(&socket.run, |one| &one.run);
            let queue = since(&socket.queue, |one| &one.queue);
            let seconds = |cycles: f64| cycles / hz;
            let per_cycle = |value: f64| if cycles > 0.0 { value / cycles } else { 0.0 };
            let busy = socket.busy.saturating_sub(before.unwrap_or(&none).busy);
            SocketUse {
                socket: number,
                calls: latency.count(),
                calls_per_second: per_cycle(latency.count() as f64) * hz,
                utilisation: per_cycle(busy as f64),
                latency_p50: latency.quantile(0.5).map(seconds),
                latency_p99: latency.quantile(0.99).map(seconds),
                latency_below: latency.limit().map(|limit| seconds(limit as f64)),
                run_p50: run.quantile(0.5).map(seconds),
                run_p99: run.quantile(0.99).map(seconds),
                queue_mean: (queue.count() > 0).then(|| queue.sum as f64 / queue.count() as f64),
            }
        };
        now.sockets.iter().enumerate().map(|(number, socket)| change(number, socket)).collect()
    }

    /// A row of heads, and one for each socket; none of a device that does not measure calls.
    pub(super) fn socket_rows(&self) -> Vec<Vec<String>> {
        let sockets = self.sockets();
        if sockets.is_empty() {
            return Vec::new();
        }
        let heads = ["SOCKET", "CALLS/S", "BUSY", "LATENCY P50", "P99", "BELOW", "RUN P50", "P99", "FOUND BEFORE"];
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let time = |seconds: Option<f64>| or_dash(seconds.map(micros));
        let mut rows = vec![heads.map(str::to_owned).to_vec()];
        rows.extend(sockets.iter().map(|socket| {
            vec![
                socket.socket.to_string(),
                format!("{:.1}", socket.calls_per_second),
                format!("{:.1} %", socket.utilisation * 100.0),
                time(socket.latency_p50),
                time(socket.latency_p99),
                time(socket.latency_below),
                time(socket.run_p50),
                time(socket.run_p99),
                or_dash(socket.queue_mean.map(|mean| format!("{mean:.1}"))),
            ]
        }));
        rows
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
        Sample { at, seen: Ok(Seen { stats: Stats { cycles: 0, counters }, ..Seen::default() }) }
    }

    /// A device with one socket: its time, its busy time, and calls by the bin of their latency.
    fn measured(now: u64, busy: u64, counts: &[u32]) -> Sample {
        let histogram = |first| Histogram { counts: counts.to_vec(), sum: 0, first };
        let socket = SocketTimes { latency: histogram(8), run: histogram(8), queue: histogram(0), busy };
        let times = Times { now, clears: 0, sockets: vec![socket] };
        let histograms = crate::fake::histograms(1_000_000);
        Sample { at: Instant::now(), seen: Ok(Seen { times: Some((histograms, times)), ..Seen::default() }) }
    }

    #[test]
    fn sockets_are_those_of_the_last_interval_of_the_device() {
        let mut change = Change::default();
        change.take(measured(1_000_000, 900_000, &[50, 0, 0]));
        assert_eq!(change.sockets()[0].calls, 50);
        change.take(measured(3_000_000, 1_900_000, &[50, 4, 0]));
        let [socket] = &change.sockets()[..] else { panic!() };
        assert_eq!((socket.calls, socket.calls_per_second, socket.utilisation), (4, 2.0, 0.5));
        assert_eq!((socket.latency_p50, socket.latency_below), (Some(384e-6), Some(512e-6)));
        assert_eq!(&change.socket_rows()[1][..4], ["0", "2.0", "50.0 %", "384.00 µs"]);
        // Started anew.
        change.take(measured(1000, 0, &[0, 0, 0]));
        assert_eq!(change.socket_rows(), Vec::<Vec<String>>::new());
        change.take(measured(2000, 0, &[0, 0, 0]));
        assert_eq!(&change.socket_rows()[1][..4], ["0", "0.0", "0.0 %", "-"]);
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
