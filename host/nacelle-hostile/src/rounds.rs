// SPDX-License-Identifier: Apache-2.0
//! The rounds of a campaign: hostile drivers, each a process of its own, and what is looked at when they are gone.

use std::fmt;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nacelle_manage::Stats;
use nacelle_pci::PciDevice;

use crate::arena::Arena;
use crate::driver::connect;
use crate::field::{Field, has_chance};
use crate::{Failure, Target, honest};

/// How long a hostile driver may work: it does so many things, and waits for no more than a few resets.
const ROUND: Duration = Duration::from_secs(900);
/// In which frames that are on their way arrive.
const SETTLED: Duration = Duration::from_secs(10);
/// In which a driver is killed that is to be.
const KILL_WITHIN_MS: u64 = 1500;
const SIGKILL: i32 = 9;
/// The counters of the card (docs/reference/virtio-net.md), each of four pairs.
const COUNTERS: u64 = 0x200;
const PAIRS: u64 = 4;
const RECEIVED: std::ops::Range<u64> = 0..5;
const SENT: u64 = 5;
const STOPPED: u64 = 10;

/// What all rounds together were.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    campaigns: u64,
    rounds: u64,
    drivers: u64,
    killed: u64,
    copies: u64,
    exchanges: u64,
    transfers: u64,
    /// Queues of the card that have stopped, and frames that it has sent.
    stopped: u64,
    sent: u64,
    again: u64,
    /// Of the devices.
    cycles: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { campaigns, rounds, drivers, killed, copies, exchanges, transfers, stopped, sent, again, cycles } =
            self;
        write!(f, "{campaigns} campaigns, {rounds} rounds, {drivers} hostile drivers, {killed} of them killed; ")?;
        write!(f, "they stopped {stopped} queues and sent {sent} frames; ")?;
        write!(f, "right: {transfers} transfers, {copies} copies there and back, ")?;
        write!(f, "{exchanges} exchanges of frames, {again} sent again; {cycles} cycles")
    }
}

/// A hostile driver that is at work.
struct Hostile {
    target: Target,
    seed: u64,
    arena: Arc<Arena>,
    child: Child,
}

impl Hostile {
    fn start(field: &Field, target: Target, random: &mut fastrand::Rng, operations: u32) -> Result<Self, Failure> {
        let (arena, seed) = (Arc::new(Arena::create()?), random.u64(..));
        let (name, slot) = match target {
            Target::Card => ("card", &field.card),
            Target::Copier => ("copier", &field.slot),
        };
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--target", name, "--slot"]).arg(slot).arg("--arena").arg(arena.path());
        command.args(["--seed", &seed.to_string(), "--operations", &operations.to_string()]);
        if random.u8(..3) == 0 {
            command.args(["--kill-ms", &random.u64(..KILL_WITHIN_MS).to_string()]);
        }
        let child = command.stderr(Stdio::piped()).spawn()?;
        Ok(Self { target, seed, arena, child })
    }

    /// Whether it has ended. True if it was killed, as it was to be.
    fn ended(&mut self) -> Result<Option<bool>, Failure> {
        let Some(status) = self.child.try_wait()? else { return Ok(None) };
        if status.success() {
            return Ok(Some(false));
        }
        if status.signal() == Some(SIGKILL) {
            return Ok(Some(true));
        }
        let mut said = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            stderr.read_to_string(&mut said)?;
        }
        Err(Failure::Driver(format!("{status}: {:?} with seed {}: {}", self.target, self.seed, said.trim())))
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The hostile drivers of a round, until they have all ended.
struct Round {
    all: Vec<Hostile>,
    at_work: Vec<bool>,
    killed: u64,
    end: Instant,
}

impl Round {
    /// Whether some are at work.
    fn goes_on(&mut self) -> Result<bool, Failure> {
        for (hostile, at_work) in self.all.iter_mut().zip(&mut self.at_work) {
            if *at_work && let Some(killed) = hostile.ended()? {
                *at_work = false;
                self.killed += u64::from(killed);
            }
        }
        let some = self.at_work.contains(&true);
        if some && Instant::now() > self.end {
            return Err(Failure::Hang("a hostile driver waits for ever".into()));
        }
        Ok(some)
    }
}

/// Sums of a counter of the card over its pairs.
fn sum(values: &[u32], which: u64) -> u64 {
    values[(which * PAIRS) as usize..][..PAIRS as usize].iter().map(|value| u64::from(*value)).sum()
}

/// The counters of the card.
fn counters(card: &Path) -> Result<Vec<u32>, Failure> {
    let mut device = connect(card)?;
    let mut read = |at| Ok(device.read32(0, COUNTERS + 4 * at)?);
    (0..(STOPPED + 1) * PAIRS).map(&mut read).collect()
}

/// What is counted is what has happened: no rule of PCI Express was broken, every frame that the card has sent was seen or dropped for its
/// source, and it has received no more than it was given.
fn accounts(field: &mut Field, tally: &mut Tally) -> Result<(), Failure> {
    let end = Instant::now() + SETTLED;
    loop {
        honest::count_late(&mut field.partner, &field.seen)?;
        let values = counters(&field.card)?;
        let Stats { cycles, counters: stats } = field.stats()?;
        let count = |name: &str| stats.get(name).copied().unwrap_or_default();
        if count("slot.violations") != 0 {
            return Err(Failure::Rule);
        }
        for name in ["slot.failures", "slot_net.failures"] {
            if count(name) != 0 {
                return Err(Failure::Counted(format!("{name} is {}", count(name))));
            }
        }
        let received: u64 = RECEIVED.map(|which| sum(&values, which)).sum();
        if received > count("packet_rx_card") {
            let given = count("packet_rx_card");
            return Err(Failure::Counted(format!("the card has had {received} frames, of {given} that it was given")));
        }
        let (sent, left, dropped) = (sum(&values, SENT), count("packet_tx_card"), count("packet_drop_card_source"));
        let (seen, lost) = (field.seen.frames.load(Ordering::Relaxed), count("link.tx_dropped"));
        if sent == left + dropped && seen <= left && seen + lost >= left {
            (tally.sent, tally.stopped, tally.cycles) = (sent, sum(&values, STOPPED), cycles);
            return Ok(());
        }
        if Instant::now() > end {
            let why = format!(
                "the card has sent {sent} frames: {left} to the line, {dropped} were dropped for their source; {seen} were seen, {lost} lost"
            );
            return Err(Failure::Counted(why));
        }
        // Some may be on their way.
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One round. Returns the arenas, in which nothing may be written any more.
fn round(
    field: &mut Field,
    seed: u64,
    random: &mut fastrand::Rng,
    operations: u32,
    tally: &mut Tally,
) -> Result<Vec<Arc<Arena>>, Failure> {
    let targets: &[Target] = match random.u8(..3) {
        0 => &[Target::Card, Target::Copier],
        1 => &[Target::Copier],
        _ => &[Target::Card],
    };
    let start = |target: &Target| Hostile::start(field, *target, random, operations);
    let all = targets.iter().map(start).collect::<Result<Vec<_>, _>>()?;
    let mut round = Round { at_work: vec![true; all.len()], all, killed: 0, end: Instant::now() + ROUND };
    let chance = has_chance(seed);
    let mut failed = Ok(());
    let mut go_on = || {
        // The first failure is the one that says why.
        failed.is_ok() && round.goes_on().map_err(|failure| failed = Err(failure)) == Ok(true)
    };
    match targets {
        [Target::Card] => tally.copies += honest::copier(&field.slot, chance, random, &mut go_on)?,
        [Target::Copier] => {
            let (partner, seen) = (&mut field.partner, &field.seen);
            tally.exchanges +=
                honest::card_user(&field.card, partner, field.card_mac, chance, random, seen, &mut go_on)?;
        }
        _ => {}
    }
    while go_on() {
        std::thread::sleep(Duration::from_millis(5));
    }
    failed?;
    // Both functions serve the next ones at once, and by then what belonged to the last ones is left alone.
    let (partner, seen) = (&mut field.partner, &field.seen);
    tally.exchanges += honest::card_user(&field.card, partner, field.card_mac, chance, random, seen, || false)?;
    tally.copies += honest::copier(&field.slot, chance, random, || false)?;
    for hostile in &round.all {
        hostile.arena.settle(&format!("by the end of {:?} with seed {}", hostile.target, hostile.seed))?;
    }
    (tally.drivers, tally.killed) = (tally.drivers + round.all.len() as u64, tally.killed + round.killed);
    accounts(field, tally)?;
    field.look()?;
    Ok(round.all.iter().map(|hostile| Arc::clone(&hostile.arena)).collect())
}

/// The rounds of a seed, until the time is over.
pub(crate) fn campaign(
    library: &Path,
    seed: u64,
    rounds: u32,
    operations: u32,
    end: Instant,
    tally: &mut Tally,
) -> Result<(), Failure> {
    println!("campaign {seed}");
    let mut field = Field::new(library, seed)?;
    let before = (tally.sent, tally.stopped, tally.cycles);
    (tally.sent, tally.stopped, tally.cycles) = (0, 0, 0);
    let outcome = all_rounds(&mut field, seed, rounds, operations, end, tally);
    tally.transfers += field.seen.transfers.load(Ordering::Relaxed);
    tally.again += field.seen.again.load(Ordering::Relaxed);
    // Those of this device, as far as a round has seen them, and those before.
    tally.sent += before.0;
    tally.stopped += before.1;
    tally.cycles += before.2;
    tally.campaigns += 1;
    match (outcome, field.end()) {
        (Err(Failure::Rule), Err(which)) => Err(which),
        (outcome, ended) => outcome.and(ended),
    }
}

fn all_rounds(
    field: &mut Field,
    seed: u64,
    rounds: u32,
    operations: u32,
    end: Instant,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut left = Vec::new();
    for number in 0..rounds {
        if number > 0 && Instant::now() > end {
            break;
        }
        let arenas = round(field, seed, &mut random, operations, tally)?;
        // Those of the round before: nothing has come since.
        for arena in std::mem::replace(&mut left, arenas) {
            arena.check("long after the end of its driver")?;
        }
        tally.rounds += 1;
    }
    Ok(())
}
