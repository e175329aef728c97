// SPDX-License-Identifier: Apache-2.0
//! `nacelle bench`: how fast a device is for this caller.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use nacelle::{Agreed, Call, Chosen, ConnectionOptions, Device, Error, FunctionCode, Region, Step};
use serde::Serialize;

use crate::args::{BenchArgs, Cli};
use crate::failure::Failure;
use crate::list;
use crate::output::{print, print_json, table};

/// Bytes of the transfers whose latency is measured.
const SMALL: usize = 8;
/// Set-ups at most: each is a connection.
const SET_UPS: usize = 20;
/// Runs of other measurements at most.
const RUNS: usize = 100_000;
/// Runs that are not counted.
const WARM_UP: usize = 3;
/// A size is left out when a transfer of it would take longer, in seconds.
const TOO_LONG: f64 = 1.0;
/// How long the device may take to agree to the end of the connections.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct Outcome {
    device: IpAddr,
    #[serde(flatten)]
    chosen: Chosen,
    agreed: Option<Agreed>,
    latencies: Vec<Latency>,
    throughput: Vec<Throughput>,
    /// What could not be measured, and why.
    notes: Vec<String>,
}

/// Times of one thing that was done several times.
#[derive(Serialize)]
struct Latency {
    what: &'static str,
    runs: usize,
    p50_us: f64,
    p99_us: f64,
}

/// Bytes of each transfer, one after the other, and bytes in a second.
#[derive(Serialize)]
struct Throughput {
    bytes: usize,
    write: f64,
    read: f64,
}

pub(crate) fn bench(cli: &Cli, args: &BenchArgs) -> Result<(), Failure> {
    let wire = cli.wire()?;
    let ip = list::address(&wire, &args.device)?;
    let chosen = args.way.link.to(ip, &wire);
    let device = Device::connect(ip, &args.way.options(&wire, args.timeout))?;
    let (mut latencies, mut notes) = (Vec::new(), Vec::new());
    let connection = device.open(&ConnectionOptions::default())?;
    let agreed = connection.agreed();
    connection.close()?;
    set_up(&device, args.seconds, &mut latencies)?;
    calls(&device, args.seconds, &mut latencies, &mut notes)?;
    let throughput = throughput(&device, args, &mut notes)?;
    let _it_notices_by_itself_later = device.settle(CLOSE_WITHIN)?;
    let outcome = Outcome { device: ip, chosen, agreed, latencies, throughput, notes };
    if cli.json {
        return print_json(&outcome);
    }
    for note in &outcome.notes {
        eprintln!("{note}");
    }
    print(&outcome.text())
}

/// The time to open a connection, and the time to set a small region up.
fn set_up(device: &Device, time: Duration, latencies: &mut Vec<Latency>) -> Result<(), Failure> {
    let (mut connect, mut regions) = (Vec::new(), Vec::new());
    let deadline = Instant::now() + time;
    while connect.is_empty() || connect.len() < SET_UPS && Instant::now() < deadline {
        let call = device.create(FunctionCode::EMPTY, vec![Region::inout(vec![0; SMALL])])?;
        for step in &call.report().steps {
            match step.step {
                Step::Connect => connect.push(step.wall),
                Step::RegionSetup => regions.push(step.wall),
                _ => {}
            }
        }
        call.close()?;
    }
    latencies.push(Latency::of("connect", connect));
    latencies.push(Latency::of("region set-up", regions));
    Ok(())
}

/// The time of an empty call, and of a small WRITE and READ.
fn calls(
    device: &Device,
    time: Duration,
    latencies: &mut Vec<Latency>,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    let described = device.describe()?.map(|description| &description.functions[..]).unwrap_or_default();
    let empty = described.iter().find(|function| function.name == "empty");
    let function = empty.and_then(|function| FunctionCode::new(function.code));
    let mut call = device.create(function.unwrap_or(FunctionCode::EMPTY), vec![Region::inout(vec![0; SMALL])])?;
    if function.is_some() {
        let times = measure(time, || {
            call.invoke()?;
            call.wait()
        })?;
        latencies.push(Latency::of("empty call, 8 bytes there and back", times));
    } else {
        notes.push("the device describes no function 'empty': calls are not measured".into());
    }
    latencies.push(Latency::of("WRITE of 8 bytes", measure(time, || call.write_region(0))?));
    latencies.push(Latency::of("READ of 8 bytes", measure(time, || call.read_region(0))?));
    call.close()?;
    Ok(())
}

/// One WRITE or READ after the other, of each size.
fn throughput(device: &Device, args: &BenchArgs, notes: &mut Vec<String>) -> Result<Vec<Throughput>, Failure> {
    let mut all = Vec::new();
    for bytes in args.sizes.iter().map(|bytes| *bytes as usize) {
        let slowest = all.last().map(|last: &Throughput| last.write.min(last.read));
        if let Some(seconds) = slowest.map(|speed| bytes as f64 / speed).filter(|seconds| *seconds > TOO_LONG) {
            notes.push(format!("{bytes} bytes are not measured: a transfer would take about {seconds:.0} s"));
            continue;
        }
        let mut call = match device.create(FunctionCode::EMPTY, vec![Region::inout(vec![0; bytes])]) {
            Ok(call) => call,
            Err(error @ Error::RegionsRefused { .. }) => {
                notes.push(format!("{bytes} bytes are not measured: {error}"));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let mut speed = |transfer: fn(&mut Call, usize) -> Result<(), Error>| {
            Ok::<_, Error>(rate(bytes, &measure(args.seconds, || transfer(&mut call, 0))?))
        };
        let (write, read) = (speed(Call::write_region)?, speed(Call::read_region)?);
        call.close()?;
        all.push(Throughput { bytes, write, read });
    }
    Ok(all)
}

/// Times of single runs, until they have taken `time` together.
fn measure(time: Duration, mut run: impl FnMut() -> Result<(), Error>) -> Result<Vec<Duration>, Error> {
    let deadline = Instant::now() + time;
    for _ in 0..WARM_UP {
        run()?;
        if Instant::now() > deadline {
            break;
        }
    }
    let deadline = Instant::now() + time;
    let mut times = Vec::new();
    while times.is_empty() || times.len() < RUNS && Instant::now() < deadline {
        let began = Instant::now();
        run()?;
        times.push(began.elapsed());
    }
    Ok(times)
}

/// Bytes in a second of transfers that took these times, one after the other.
fn rate(bytes: usize, times: &[Duration]) -> f64 {
    (bytes * times.len()) as f64 / times.iter().sum::<Duration>().as_secs_f64()
}

impl Latency {
    fn of(what: &'static str, mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let micros = |percent| percentile(&times, percent).as_secs_f64() * 1e6;
        Self { what, runs: times.len(), p50_us: micros(50), p99_us: micros(99) }
    }
}

/// The smallest time that at least so many percent of all do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

impl Outcome {
    fn text(&self) -> String {
        let mut rows = vec![["LATENCY", "RUNS", "P50", "P99"].map(str::to_owned).to_vec()];
        rows.extend(self.latencies.iter().map(|one| {
            vec![
                one.what.into(),
                one.runs.to_string(),
                format!("{:.1} µs", one.p50_us),
                format!("{:.1} µs", one.p99_us),
            ]
        }));
        let mut text = table(&rows, 1);
        let mut rows = vec![["BYTES", "WRITE", "READ"].map(str::to_owned).to_vec()];
        let rate = |bytes: f64| format!("{:.3} Gbit/s", bytes * 8.0 / 1e9);
        rows.extend(self.throughput.iter().map(|one| vec![one.bytes.to_string(), rate(one.write), rate(one.read)]));
        text.push('\n');
        text.push_str(&table(&rows, 0));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_occurred() {
        let times: Vec<_> = (1..=200).map(Duration::from_micros).collect();
        let micros = |count: usize, percent| percentile(&times[..count], percent).as_micros();
        assert_eq!((micros(200, 50), micros(200, 99)), (100, 198));
        assert_eq!((micros(3, 50), micros(3, 99)), (2, 3));
        assert_eq!((micros(1, 99), micros(0, 50)), (1, 0));
    }

    #[test]
    fn a_rate_counts_all_transfers_and_their_times() {
        let times = [1, 3, 4].map(Duration::from_millis);
        assert_eq!((rate(1000, &times), rate(4000, &times[..1])), (375_000.0, 4_000_000.0));
    }
}
