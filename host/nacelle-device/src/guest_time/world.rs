// SPDX-License-Identifier: Apache-2.0
//! Two simulated devices on a line, as the guests' clock: how their time passes, and what their network cards do in memory meanwhile.
//!
//! Device time never passes but in here. It may be ahead of the guests' time by what setting a card up has taken: a guest's messages for that take no
//! time of its own. What a card then does is at its own time, and guests learn of it when they are there.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use nacelle_pci::PciError;
use nacelle_slot::dma::{DmaTable, Reach};
use nacelle_slot::eventfd::signal;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::rtl::NETWORK_CARD;
use crate::sim::{Pair, SlotAnswer, SlotMessage};
use crate::{LineStats, Sim};

/// Idle time that is skipped in one go, in nanoseconds: the devices' own timers fire at its end.
const SKIP_NS: u64 = 1_000_000;
/// No access of a driver to its card takes longer, in cycles: 40 ms.
const ACCESS_CYCLES: u64 = 10_000_000;
/// Ranges of memory that a card has at most.
const MAX_RANGES: usize = 64;

/// An interrupt of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Interrupt {
    /// When it came, in nanoseconds.
    time: u64,
    card: usize,
    vector: u16,
}

/// What is under way between a card and its driver.
pub(super) struct Ends {
    pub(super) memory: DmaTable,
    /// Signalled by the card's interrupts.
    pub(super) eventfds: Vec<OwnedFd>,
    /// Writes that have not arrived.
    posted: FxHashSet<u64>,
    /// Answers to reads that somebody waits for.
    answers: FxHashMap<u64, SlotAnswer>,
    /// Accesses to memory that were refused: there was none.
    refused: u64,
}

/// The devices.
pub(super) struct World {
    devices: Pair,
    clock_hz: u64,
    /// The cycle that is time 0.
    origin: u64,
    pub(super) cards: [Ends; 2],
    interrupts: VecDeque<Interrupt>,
}

impl World {
    /// Time begins now.
    pub(super) fn new(devices: Pair, clock_hz: u32) -> Self {
        let ends = || Ends {
            memory: DmaTable::new(MAX_RANGES),
            eventfds: Vec::new(),
            posted: FxHashSet::default(),
            answers: FxHashMap::default(),
            refused: 0,
        };
        let origin = devices.cycles();
        Self { devices, clock_hz: clock_hz.into(), origin, cards: [ends(), ends()], interrupts: VecDeque::new() }
    }

    pub(super) fn device(&mut self, number: usize) -> &mut Sim {
        self.devices.device(number)
    }

    pub(super) fn line_stats(&self, from: usize) -> LineStats {
        self.devices.line_stats(from)
    }

    /// Accesses of a card to memory that was not there.
    pub(super) fn refused(&self, card: usize) -> u64 {
        self.cards[card].refused
    }

    /// Device time, in nanoseconds, rounded up.
    pub(super) fn now(&self) -> u64 {
        let cycles = u128::from(self.devices.cycles() - self.origin);
        (cycles * 1_000_000_000).div_ceil(self.clock_hz.into()) as u64
    }

    /// The first cycle that is not before a time.
    fn cycle_at(&self, time: u64) -> u64 {
        let cycles = (u128::from(time) * u128::from(self.clock_hz)).div_ceil(1_000_000_000);
        self.origin.saturating_add(u64::try_from(cycles).unwrap_or(u64::MAX))
    }

    /// Lets time pass until `time`, or until a card interrupts its driver before. When it did: an interrupt that is due and not taken.
    pub(super) fn advance(&mut self, time: u64) -> Option<u64> {
        let end = self.cycle_at(time);
        while self.interrupts.is_empty() && self.devices.cycles() < end {
            self.run(end - self.devices.cycles());
        }
        self.interrupts.front().map(|interrupt| interrupt.time).filter(|due| *due <= time)
    }

    /// Hands on all interrupts that came at the time of the oldest one; whose they were.
    pub(super) fn interrupt(&mut self) -> [bool; 2] {
        let mut whose = [false; 2];
        let Some(first) = self.interrupts.front().copied() else { return whose };
        while let Some(next) = self.interrupts.pop_front_if(|next| next.time == first.time) {
            if let Some(eventfd) = self.cards[next.card].eventfds.get(usize::from(next.vector)) {
                signal(eventfd);
                whose[next.card] = true;
            }
        }
        whose
    }

    /// Forgets a card's interrupts.
    pub(super) fn forget_interrupts(&mut self, card: usize) {
        self.interrupts.retain(|interrupt| interrupt.card != card);
    }

    /// Lets some cycles pass, one at least and `most` at most, and does what the cards have asked for.
    fn run(&mut self, most: u64) {
        let skip = self.clock_hz * SKIP_NS / 1_000_000_000;
        self.devices.run(most.min(skip));
        for card in 0..self.cards.len() {
            self.serve(card);
        }
    }

    /// What a card has asked for since the last time. Nothing of it takes device time here.
    fn serve(&mut self, number: usize) {
        let now = self.now();
        let (sim, card) = (self.devices.device(number), &mut self.cards[number]);
        while let Some(message) = sim.pull_slot_message(NETWORK_CARD) {
            card.access(sim, &message);
        }
        while let Some(interrupt) = sim.pull_slot_interrupt(NETWORK_CARD) {
            self.interrupts.push_back(Interrupt { time: now, card: number, vector: interrupt.data as u16 });
        }
        card.refused += sim.take_slot_faults(NETWORK_CARD);
        while let Some(answer) = sim.pull_slot_answer(NETWORK_CARD) {
            if !card.posted.remove(&answer.token) {
                card.answers.insert(answer.token, answer);
            }
        }
    }

    /// Lets time pass until something is so.
    pub(super) fn run_until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) -> Result<(), PciError> {
        let end = self.devices.cycles() + ACCESS_CYCLES;
        while !is_so(self) {
            if self.devices.cycles() >= end {
                return Err(PciError::Timeout);
            }
            self.run(end - self.devices.cycles());
        }
        Ok(())
    }

    /// Writes to a BAR of a card. It arrives in the order of writes, with time.
    pub(super) fn write(&mut self, card: usize, bar: u8, offset: u64, bytes: &[u8]) -> Result<(), PciError> {
        let range = PciError::Range { bar, offset, len: bytes.len() };
        let token = self.devices.device(card).slot_write(NETWORK_CARD, bar, offset, bytes).ok_or(range)?;
        self.cards[card].posted.insert(token);
        Ok(())
    }

    /// Reads of a BAR of a card, in the time that it takes.
    pub(super) fn read(&mut self, card: usize, bar: u8, offset: u64, into: &mut [u8]) -> Result<(), PciError> {
        let range = PciError::Range { bar, offset, len: into.len() };
        let token = self.devices.device(card).slot_read(NETWORK_CARD, bar, offset, into.len()).ok_or(range)?;
        self.run_until(|world| world.cards[card].answers.contains_key(&token))?;
        let answer = self.cards[card].answers.remove(&token);
        match answer.filter(|answer| answer.status == 0 && answer.bytes().len() == into.len()) {
            Some(answer) => into.copy_from_slice(answer.bytes()),
            None => return Err(PciError::Unusable("a register of the card cannot be read")),
        }
        Ok(())
    }

    /// Lets time pass until all that was written to a card has arrived.
    pub(super) fn arrive(&mut self, card: usize) -> Result<(), PciError> {
        self.run_until(|world| world.cards[card].posted.is_empty())
    }
}

impl Ends {
    /// An access of the card to memory.
    fn access(&mut self, sim: &mut Sim, message: &SlotMessage) {
        let mut bytes = vec![0; message.len()];
        let reached = match message.written() {
            Some(written) => self.memory.write(message.address, written),
            None => self.memory.read(message.address, &mut bytes),
        };
        let done = reached == Ok(Reach::Done);
        self.refused += u64::from(!done);
        sim.answer_slot_message(message.token, (done && message.written().is_none()).then_some(&bytes));
    }
}
