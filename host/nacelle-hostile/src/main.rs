// SPDX-License-Identifier: Apache-2.0
//! Hostile drivers of a simulated device in a slot, beside well-behaved users who must notice nothing (docs/how-to/judge-a-device.md).
//!
//! The device is the RTL with its network card. A seed decides a *campaign*: how the slot is, and rounds of hostile drivers. Each of
//! these is a process of its own, at the network card or at the copy engine or at both; some are killed in the middle. Meanwhile a peer
//! writes and reads the device's memory by RDMA, a well-behaved driver has the other function, and a station on the wire sends to the
//! card and looks at what it sends. All compare every byte. A round fails if something does not end in time, a byte is wrong, the
//! device has written where it was not asked to ([`arena`]), sends what it was not given, breaks a rule of PCI Express, or counts wrong.
//!
//! The clock is free-running: a seed decides what is done, not the cycle in which it meets the device.

mod arena;
mod card;
mod copier;
mod driver;
mod field;
mod honest;
mod rounds;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use nacelle_pci::PciError;
use rustix::io::Errno;

use crate::arena::Arena;
use crate::card::Card;
use crate::copier::Copier;

/// How long anything may take. A reset waits for reads that are never answered: a millisecond of the device, which on a machine with much
/// other work is a minute or more.
pub(crate) const BOUND: Duration = Duration::from_secs(300);
/// MAC addresses: of the station, of the partner of the card's well-behaved user, and of nobody.
pub(crate) const STATION: [u8; 6] = [2, 0, 0x5a, 0, 0, 1];
pub(crate) const PARTNER: [u8; 6] = [2, 0, 0x5a, 0, 0, 2];
pub(crate) const UNKNOWN: [u8; 6] = [2, 0, 0x5a, 0, 0, 3];

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Something takes too long.
    #[error("hang: {0}")]
    Hang(String),
    /// A well-behaved user is wronged.
    #[error("{0}")]
    Wrong(String),
    /// What a well-behaved user got is not what it should be.
    #[error("{0}")]
    Bytes(String),
    /// The device wrote where nobody asked it to.
    #[error("{count} bytes were written that were not offered, {when}: at {at:#x} there is {there}, not {should}")]
    Written { when: String, count: usize, at: u64, there: String, should: String },
    /// An access failed that must not.
    #[error("an access failed: {0}")]
    Pci(PciError),
    /// A hostile driver has found something, or fell.
    #[error("a hostile driver ended with {0}")]
    Driver(String),
    /// The device itself.
    #[error("the device: {0}")]
    Device(String),
    /// It breaks a rule of PCI Express; which one it says in the end.
    #[error("the device breaks a rule of PCI Express")]
    Rule,
    /// What was counted is not what happened.
    #[error("counted wrong: {0}")]
    Counted(String),
    /// No fault of the device.
    #[error("this machine: {0}")]
    System(#[from] std::io::Error),
}

impl From<PciError> for Failure {
    fn from(error: PciError) -> Self {
        match error {
            PciError::Timeout => Self::Hang("an access is not answered".into()),
            PciError::Refused { what, errno: Errno::TIMEDOUT } => Self::Hang(format!("{what} is not answered")),
            other => Self::Pci(other),
        }
    }
}

/// A function of the device, as the target of a hostile driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    Card,
    Copier,
}

/// Let hostile drivers loose on a simulated device in a slot, and see that nobody else notices.
#[derive(Parser)]
#[command(name = "nacelle-hostile", version)]
struct Args {
    /// The library of a device with a network card [default: build/sim/libnacelle_sim_64_nic.so].
    #[arg(long)]
    library: Option<PathBuf>,
    /// Begin no round after so many seconds.
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// The first campaign.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Rounds of a campaign: then there is another device, in another slot.
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// Things that a hostile driver does, unless it is killed before.
    #[arg(long, default_value_t = 150)]
    operations: u32,
    /// A hostile driver, which the program starts as a process of its own.
    #[arg(long, hide = true, requires_all = ["slot", "arena"])]
    target: Option<Target>,
    #[arg(long, hide = true)]
    slot: Option<PathBuf>,
    #[arg(long, hide = true)]
    arena: Option<PathBuf>,
    /// It ends after so long, by SIGKILL.
    #[arg(long, hide = true)]
    kill_ms: Option<u64>,
}

/// A hostile driver.
fn attack(args: &Args, target: Target) -> Result<(), Failure> {
    let (slot, arena) = (args.slot.clone().unwrap_or_default(), args.arena.clone().unwrap_or_default());
    let arena = Arc::new(Arena::open(&arena)?);
    if let Some(after) = args.kill_ms {
        let arena = Arc::clone(&arena);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(after));
            arena.between_writes(|| {
                let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            });
        });
    }
    let random = fastrand::Rng::with_seed(args.seed);
    match target {
        Target::Card => Card::new(&slot, arena, random)?.run(args.operations),
        Target::Copier => Copier::new(&slot, arena, random)?.run(args.operations),
    }
}

fn library(args: &Args) -> Result<PathBuf, Failure> {
    let built = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/sim/libnacelle_sim_64_nic.so"));
    let library = args.library.clone().unwrap_or(built);
    if library.is_file() {
        return Ok(library);
    }
    let why = format!("there is no {}; build it with sim/build.py --device nic --data-w 64", library.display());
    Err(Failure::System(std::io::Error::new(std::io::ErrorKind::NotFound, why)))
}

/// Campaigns until the time is over.
fn campaigns(args: &Args) -> Result<(), (u64, Failure)> {
    let library = library(args).map_err(|failure| (args.seed, failure))?;
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(args.seconds.clamp(0.0, 1e7));
    let mut tally = rounds::Tally::default();
    for seed in args.seed.. {
        let outcome = rounds::campaign(&library, seed, args.rounds, args.operations, end, &mut tally);
        println!("{:.0} s: {tally}", begin.elapsed().as_secs_f64());
        outcome.map_err(|failure| (seed, failure))?;
        if Instant::now() > end {
            break;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(target) = args.target {
        return match attack(&args, target) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("{failure}");
                ExitCode::FAILURE
            }
        };
    }
    match campaigns(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err((_, failure @ Failure::System(_))) => {
            eprintln!("nacelle-hostile: {failure}");
            ExitCode::from(2)
        }
        Err((seed, failure)) => {
            println!("FAILED with seed {seed}: {failure}");
            println!("again: nacelle-hostile --seed {seed} --rounds {} --operations {}", args.rounds, args.operations);
            ExitCode::FAILURE
        }
    }
}
