// SPDX-License-Identifier: Apache-2.0
//! Random long runs against a device: many connections at once, every operation mixed, over a wire that loses, repeats, reorders
//! and spoils frames, with peers that come back without having said goodbye; every byte is compared with what it must be.
//!
//! Each seed is a run of its own: it decides the number of connections, their sizes, what they do and what happens to the frames.
//! A run fails on a wrong byte, a request that fails, or when nothing moves for too long. At the end the device must take as many
//! connections as at the start, or something leaked. The first failure ends it, with the command that runs its seed again; a summary of
//! all that was done comes last, whatever happened.

mod caller;
mod run;

use clap::Parser;
use core::{net::Ipv4Addr, time::Duration};
use nacelle_link::{LinkError, WireDir};
use run::{Run, Tally, Target};
use std::{path::PathBuf, process::ExitCode, time::Instant};

/// Runs, if nothing is said of them.
const DEFAULT_SEEDS: u64 = 10;

/// Run random traffic against a device and check every byte.
#[derive(Parser)]
#[command(version)]
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
    /// Most connections in a run.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Operations of each connection, at most.
    #[arg(long, default_value_t = 60)]
    operations: u32,
    /// Stop to begin runs after so many minutes.
    #[arg(long)]
    minutes: Option<f64>,
    /// Seconds in which something must move.
    #[arg(long, default_value_t = 60.0)]
    patience: f64,
    /// Peers end without a word and come back.
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
}

impl Failure {
    /// Counts it under what it is.
    fn count(&self, tally: &mut Tally) {
        *match self {
            Self::Stuck(..) => &mut tally.hangs,
            Self::Content(_) => &mut tally.wrong,
            Self::Link(_) | Self::Failed(_) => &mut tally.failed,
        } += 1;
    }
}

fn main() -> ExitCode {
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
    let room = match Run::capacity(&target) {
        Ok(room) => room,
        Err(failure) => {
            eprintln!("nacelle-soak: {failure}");
            return ExitCode::from(2);
        }
    };
    println!("the device takes {room} connections");
    let mut tally = Tally::default();
    let outcome = all_seeds(&args, &target, room, begin, &mut tally).and_then(|()| {
        nothing_leaked(&args, &target, room, &mut tally).map_err(|why| format!("FAILED at the end: {why}"))
    });
    if let Err(why) = &outcome {
        println!("{why}");
    }
    println!("{tally}\n{:.0} s", begin.elapsed().as_secs_f64());
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the seeds until one fails, all are done or the time is over. Fails with what to tell, and how to run the seed again.
fn all_seeds(args: &Args, target: &Target, room: usize, begin: Instant, tally: &mut Tally) -> Result<(), String> {
    // Peers that vanish leave connections behind until the device has noticed.
    let most = args.connections.min(if args.restarts { room / 2 } else { room }).max(1);
    let seeds = args.seeds.unwrap_or(if args.minutes.is_some() { u64::MAX } else { DEFAULT_SEEDS });
    for seed in args.first..args.first.saturating_add(seeds) {
        if args.minutes.is_some_and(|m| begin.elapsed().as_secs_f64() > m * 60.0) {
            break;
        }
        let run = Run::new(seed, most, args.operations, args.restarts);
        println!("{run}");
        if let Err(failure) = run.execute(target, tally) {
            failure.count(tally);
            let restarts = if args.restarts { " --restarts" } else { "" };
            return Err(format!(
                "FAILED with seed {seed}: {failure}\nagain: nacelle-soak {} --first {seed} --seeds 1 --connections {most} --operations {}{restarts}",
                args.device, args.operations
            ));
        }
    }
    Ok(())
}

/// Waits until the device takes as many connections as at the start. What vanished peers left behind it takes back in its time,
/// which stands still for a simulated device that is kept busy: it is left alone for longer and longer.
fn nothing_leaked(args: &Args, target: &Target, room: usize, tally: &mut Tally) -> Result<(), String> {
    let rests: &[u64] = if args.restarts { &[2, 4, 8, 16, 32, 64, 128] } else { &[2, 4, 8] };
    let mut rests = rests.iter();
    loop {
        let now = Run::capacity(target).map_err(|failure| {
            failure.count(tally);
            failure.to_string()
        })?;
        if now >= room {
            return Ok(());
        }
        let Some(rest) = rests.next() else {
            tally.leaked = room - now;
            return Err(format!("the device takes {now} connections now, {room} at the start: something leaked"));
        };
        std::thread::sleep(Duration::from_secs(*rest));
    }
}
