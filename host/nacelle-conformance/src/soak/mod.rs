// SPDX-License-Identifier: Apache-2.0
//! Random long runs against a device: honest callers at several addresses, with many connections each and every operation mixed, over a
//! wire that loses, repeats, reorders and spoils frames, beside hostile ones; every byte is compared with what it must be.
//!
//! Each seed is a run of its own: it decides the number of hosts and connections, their sizes, what they do, what happens to the frames,
//! and the attacks. A run fails on a wrong byte, a request that fails, or when an honest caller waits for too long. When all is quiet the
//! device must hold what it held at the start. The first failure ends it, with the command that runs its seed again; a summary of all
//! that was done comes last, whatever happened.

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

/// Runs, if nothing is said of them.
const DEFAULT_SEEDS: u64 = 10;
/// Between two lines that say how far it is.
const REPORT: Duration = Duration::from_secs(60);
/// A device has so many times as long as an answer may take to find out that callers have died.
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
    /// Seconds that an honest caller may wait for anything; then 10 more of the device's own time.
    #[arg(long, default_value_t = 120.0)]
    patience: f64,
    /// Honest callers, too, end without a word and come back.
    #[arg(long)]
    restarts: bool,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The wire is broken.
    #[error("the wire failed: {0}")]
    Link(#[from] LinkError),
    /// Nothing moves any more.
    #[error("nothing moved for {0:?}: {1}")]
    Stuck(Duration, String),
    /// A request failed that should not.
    #[error("{0}")]
    Failed(String),
    /// Wrong bytes.
    #[error("{0}")]
    Content(String),
    /// Something is not given back.
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

/// The program.
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

/// Does this, and says once a minute how far it is.
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

/// The command that does this again.
fn command(args: &Args, first: u64, seeds: Option<u64>) -> String {
    let Args { device, connections, operations, hostile, .. } = args;
    let seeds = seeds.map_or_else(String::new, |seeds| format!(" --seeds {seeds}"));
    let minutes = args.minutes.filter(|_| seeds.is_empty()).map_or_else(String::new, |m| format!(" --minutes {m}"));
    let restarts = if args.restarts { " --restarts" } else { "" };
    format!(
        "nacelle-soak {device} --first {first}{seeds}{minutes} --connections {connections} --operations {operations} --hostile {hostile}{restarts}"
    )
}

/// Runs the seeds until one fails, all are done or the time is over. Fails with what to tell, and how to run the seed again.
fn all_seeds(args: &Args, shared: &Shared<'_>, quiet: &mut Quiet, begin: Instant) -> Result<(), String> {
    let seeds = args.seeds.unwrap_or(if args.minutes.is_some() { u64::MAX } else { DEFAULT_SEEDS });
    for seed in args.first..args.first.saturating_add(seeds) {
        if args.minutes.is_some_and(|m| begin.elapsed().as_secs_f64() > m * 60.0) {
            break;
        }
        // Callers that vanish leave connections behind until the device has noticed: there is room for several lives.
        let room = quiet.room.connections / if args.restarts { 6 } else { 2 };
        let size = Size {
            connections: args.connections.min(room).max(1),
            operations: args.operations,
            hostile: args.hostile,
            restarts: args.restarts,
            // All that hostile callers leave behind is an eighth.
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
