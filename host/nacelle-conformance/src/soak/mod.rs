// SPDX-License-Identifier: Apache-2.0
//! Soak test of a device: honest callers at several addresses, with many connections each and all operations mixed, over a wire that
//! loses, duplicates, reorders and corrupts frames, beside hostile callers. Every byte that is read back is compared with a model.
//!
//! Each seed is a run: it decides the numbers of hosts and connections, the sizes, operations, impairments and attacks. A run fails on a
//! wrong byte, on a failed request, or when an honest caller makes no progress for too long. After each run the device must hold the same
//! resources as at the start. The first failure ends the program and prints the command that repeats its seed. The summary comes last in
//! any case.

mod caller;
mod clock;
mod hostile;
mod quiet;
mod run;
mod tally;

use clap::Parser;
use clock::Clock;
use core::{net::Ipv4Addr, time::Duration};
use nacelle_link::{LinkError, WireDir};
use quiet::Quiet;
use run::{Run, Shared, Size, Target};
use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{Mutex, PoisonError, mpsc},
    time::Instant,
};
use tally::Tally;

/// Runs without `--seeds` and `--minutes`.
const DEFAULT_SEEDS: u64 = 10;
/// Interval of the progress lines.
const REPORT: Duration = Duration::from_secs(60);
/// Time in which the device must free what dead callers held, in multiples of the patience.
const FOUND_DEAD: u32 = 2;

/// Run random traffic beside attacks against a device and check every byte.
#[derive(Parser)]
#[command(name = "nacelle-soak", version)]
struct Args {
    /// The device's IPv4 address.
    device: Ipv4Addr,
    /// Port of its service.
    #[arg(long, default_value_t = nacelle_wire::mrsp::DEFAULT_PORT)]
    port: u16,
    /// Folder of the virtual wire. Default: that of the nacelle command.
    #[arg(long)]
    wire: Option<PathBuf>,
    /// Runs, each with a seed of its own [default: 10, or with --minutes as many as there is time for]
    #[arg(long)]
    seeds: Option<u64>,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Most connections of honest callers in a run.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Operations of each connection, at most.
    #[arg(long, default_value_t = 200)]
    operations: u32,
    /// Hostile callers at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=3))]
    hostile: u8,
    /// Stop to begin runs after so many minutes.
    #[arg(long)]
    minutes: Option<f64>,
    /// Seconds that an honest caller may wait without progress; 10 s of the device's own time are added.
    #[arg(long, default_value_t = 120.0)]
    patience: f64,
    /// Let honest callers vanish, too, and start again under the same address.
    #[arg(long)]
    restarts: bool,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The wire is broken.
    #[error("the wire failed: {0}")]
    Link(#[from] LinkError),
    /// An honest caller makes no progress.
    #[error("nothing moved for {0:?}: {1}")]
    Stuck(Duration, String),
    /// A request or a connection of an honest caller failed.
    #[error("{0}")]
    Failed(String),
    /// Wrong bytes were read, or foreign memory was reached.
    #[error("{0}")]
    Content(String),
    /// The device holds more than at the start, or grants less.
    #[error("something leaked: {0}")]
    Leaked(String),
}

impl From<crate::Failure> for Failure {
    fn from(failure: crate::Failure) -> Self {
        match failure {
            crate::Failure::Link(error) => Self::Link(error),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// Entry point of `nacelle-soak`.
#[must_use]
pub fn main() -> ExitCode {
    let args = Args::parse();
    let begin = Instant::now();
    let wire = match WireDir::open(args.wire.clone().unwrap_or_else(WireDir::default_path)) {
        Ok(wire) => wire,
        Err(error) => {
            eprintln!("nacelle-soak: {error}");
            return ExitCode::from(2);
        }
    };
    let patience = Duration::from_secs_f64(args.patience.clamp(1.0, 3600.0));
    let target = Target { wire, device: args.device, port: args.port, patience };
    let mut quiet = match Quiet::begin(&target) {
        Ok(quiet) => quiet,
        Err(failure) => {
            eprintln!("nacelle-soak: {failure}");
            return ExitCode::from(2);
        }
    };
    println!("the device takes {} connections, {} of one caller", quiet.room.connections, quiet.room.share);
    let clock = Clock::start(&target.wire, target.device);
    let tally = Mutex::new(Tally::default());
    let shared = Shared::new(&target, &clock, &tally);
    let outcome = reported(&tally, begin, || all_seeds(&args, &shared, &mut quiet, begin));
    let outcome = outcome.and_then(|()| {
        quiet.end(&target, patience * FOUND_DEAD).map_err(|failure| {
            shared.tally(|tally| tally.failure(&failure));
            format!("FAILED at the end: {failure}\nagain: {}", command(&args, args.first, args.seeds))
        })
    });
    if let Err(why) = &outcome {
        println!("{why}");
    }
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{tally}\n{:.0} s", begin.elapsed().as_secs_f64());
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs `work`, and prints a line of progress once a minute.
fn reported<T>(tally: &Mutex<Tally>, begin: Instant, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|threads| {
        let (done, end) = mpsc::channel::<()>();
        threads.spawn(move || {
            while end.recv_timeout(REPORT) == Err(mpsc::RecvTimeoutError::Timeout) {
                let line = tally.lock().unwrap_or_else(PoisonError::into_inner).in_short();
                println!("{:.0} min: {line}", begin.elapsed().as_secs_f64() / 60.0);
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// The command line that repeats these runs.
fn command(args: &Args, first: u64, seeds: Option<u64>) -> String {
    let Args { device, connections, operations, hostile, .. } = args;
    let seeds = seeds.map_or_else(String::new, |seeds| format!(" --seeds {seeds}"));
    let minutes = args.minutes.filter(|_| seeds.is_empty()).map_or_else(String::new, |m| format!(" --minutes {m}"));
    let restarts = if args.restarts { " --restarts" } else { "" };
    format!(
        "nacelle-soak {device} --first {first}{seeds}{minutes} --connections {connections} --operations {operations} --hostile {hostile}{restarts}"
    )
}

/// Runs the seeds until one fails, all are done or the time is over. The error is the report, with the command that repeats the seed.
fn all_seeds(args: &Args, shared: &Shared<'_>, quiet: &mut Quiet, begin: Instant) -> Result<(), String> {
    let seeds = args.seeds.unwrap_or(if args.minutes.is_some() { u64::MAX } else { DEFAULT_SEEDS });
    for seed in args.first..args.first.saturating_add(seeds) {
        if args.minutes.is_some_and(|m| begin.elapsed().as_secs_f64() > m * 60.0) {
            break;
        }
        // The connections of vanished callers exist until the device detects it: leave room for those of several lives.
        let room = quiet.room.connections / if args.restarts { 6 } else { 2 };
        let size = Size {
            connections: args.connections.min(room).max(1),
            operations: args.operations,
            hostile: args.hostile,
            restarts: args.restarts,
            // All hostile callers together may leave an eighth of the connections behind.
            allowance: (quiet.room.connections / 8) as u16 / u16::from(args.hostile.max(1)),
        };
        let run = Run::new(seed, &size);
        println!("{run}");
        let outcome = run.execute(shared).and_then(|()| {
            shared.tally(|tally| tally.looks += 1);
            quiet.settle(shared.target.patience * FOUND_DEAD)
        });
        if let Err(failure) = outcome {
            shared.tally(|tally| tally.failure(&failure));
            return Err(format!("FAILED with seed {seed}: {failure}\nagain: {}", command(args, seed, Some(1))));
        }
    }
    Ok(())
}
