// SPDX-License-Identifier: Apache-2.0
//! A PCI function of a simulated device, for code of this process that takes the place of the host: without configuration space and
//! without vfio-user. A back end that speaks another protocol with its clients, such as vhost-user, is a [`FunctionHost`].
//!
//! No device time passes in any of these calls; what takes device time is answered by an event. Memory is read and written here, as the
//! function asks for it, so that an event comes behind all that the function has written before.

use std::os::fd::OwnedFd;
use std::time::Instant;

use nacelle_slot::dma::{DmaTable, MapError, Reach};
use nacelle_slot::pages::Access as Rights;
use rustc_hash::FxHashSet;

use crate::Sim;
use crate::engine::WakeFds;
use crate::sim::{SlotFacts, SlotMessage, SlotSpace, Unmapped};

/// Most ranges of memory that a function is given.
const MAX_RANGES: usize = 1024;
/// Longest access of a function to memory, in bytes.
const LONGEST: usize = 4096;
/// Where the device sends its interrupts: the number of the vector is the data.
pub(crate) const INTERRUPTS: u64 = 0xfee0_0000;
/// The BAR with the registers and the MSI-X table.
pub(crate) const REGISTERS: u8 = 0;
/// Bus and device in bits 15 to 3, and the read completion boundary, as the model has them by default.
const DEVICE: u32 = 0x100;
const RCB: u32 = 64;
/// The longest payload and the longest read request of the model, in bytes.
pub(crate) const MAX_PAYLOAD: u16 = 256;
const MAX_READ_REQUEST: u32 = 512;

/// How an access of the host to a BAR has failed (Base Specification 2.3.1, 2.7.2, 2.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SlotAccessError {
    /// Nothing is there.
    #[error("nothing is there: unsupported request")]
    Unsupported,
    /// The device cannot do it.
    #[error("the device cannot do it: completer abort")]
    Abort,
    /// The device did not answer in time.
    #[error("the device did not answer in time")]
    Timeout,
    /// The answer was poisoned.
    #[error("the answer was poisoned")]
    Poisoned,
}

impl SlotAccessError {
    /// That of a status of the model.
    pub(crate) fn of(status: u32) -> Option<Self> {
        match status {
            0 => None,
            1 => Some(Self::Unsupported),
            16 => Some(Self::Timeout),
            17 => Some(Self::Poisoned),
            _ => Some(Self::Abort),
        }
    }
}

/// Names an access to a BAR until it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AccessToken(u64);

/// What has happened at a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionEvent<'a> {
    /// An access has ended: with the bytes that were read, or none.
    Accessed {
        /// Which.
        token: AccessToken,
        /// How.
        result: Result<&'a [u8], SlotAccessError>,
    },
    /// The function has sent the message of this vector: all that it has written before is in memory.
    Interrupt(u16),
    /// The reset that was begun last has ended.
    Reset,
}

/// What takes the place of the host for a function.
///
/// It is called in the loop of the device, so none of this may wait.
pub trait FunctionHost {
    /// Does what its clients want, at this time. Called between steps of the device, and when one of [`fds`](Self::fds) is readable.
    fn poll(&mut self, function: &mut PciFunction<'_>, now: Instant);

    /// Takes an event. Those of one function come in their order.
    fn event(&mut self, function: &mut PciFunction<'_>, event: FunctionEvent<'_>);

    /// What to wait for while the device is idle: readable when it wants to be polled.
    fn fds(&self) -> WakeFds<'_>;

    /// When it wants to be polled though none of these is readable, at the latest.
    fn wake_at(&self) -> Option<Instant> {
        None
    }

    /// What it has counted, by name.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// What is kept of a function between calls.
pub(crate) struct FunctionState {
    number: u8,
    facts: SlotFacts,
    memory: DmaTable,
    /// Writes to the table of vectors that the function does not have yet: the host knows nothing of these.
    posted: FxHashSet<u64>,
    resetting: bool,
    refused: u64,
}

impl FunctionState {
    /// `None`: the device has no such function.
    pub(crate) fn new(sim: &mut Sim, number: u8) -> Option<Self> {
        let facts = sim.slot_facts(number)?;
        Some(Self {
            number,
            facts,
            memory: DmaTable::new(MAX_RANGES),
            posted: FxHashSet::default(),
            resetting: false,
            refused: 0,
        })
    }

    /// What the function has done since the last time: its memory is accessed, `host` is told of the rest.
    pub(crate) fn take_news(&mut self, sim: &mut Sim, host: &mut dyn FunctionHost) {
        while let Some(message) = sim.pull_slot_message(self.number) {
            self.serve(sim, &message);
        }
        sim.take_slot_faults(self.number);
        while let Some(interrupt) = sim.pull_slot_interrupt(self.number) {
            host.event(&mut self.function(sim), FunctionEvent::Interrupt(interrupt.data as u16));
        }
        while let Some(answer) = sim.pull_slot_answer(self.number) {
            if self.posted.remove(&answer.token) {
                continue;
            }
            let result = SlotAccessError::of(answer.status).map_or(Ok(answer.bytes()), Err);
            let event = FunctionEvent::Accessed { token: AccessToken(answer.token), result };
            host.event(&mut self.function(sim), event);
        }
        if self.resetting && sim.slot_reset_done(self.number) {
            self.resetting = false;
            host.event(&mut self.function(sim), FunctionEvent::Reset);
        }
    }

    /// The function, for the host's own calls.
    pub(crate) fn function<'a>(&'a mut self, sim: &'a mut Sim) -> PciFunction<'a> {
        PciFunction { sim, state: self }
    }

    /// Does an access of the function to memory.
    fn serve(&mut self, sim: &mut Sim, message: &SlotMessage) {
        let mut bytes = [0; LONGEST];
        let into = &mut bytes[..message.len()];
        let reach = match message.written() {
            Some(written) => self.memory.write(message.address, written),
            None => self.memory.read(message.address, into),
        };
        let done = matches!(reach, Ok(Reach::Done));
        self.refused += u64::from(!done);
        sim.answer_slot_message(message.token, (done && message.written().is_none()).then_some(into));
    }
}

/// A function of the device, while no device time passes.
pub struct PciFunction<'a> {
    sim: &'a mut Sim,
    state: &'a mut FunctionState,
}

impl PciFunction<'_> {
    /// What it has: the sizes of its BARs, its vectors.
    #[must_use]
    pub fn facts(&self) -> SlotFacts {
        self.state.facts
    }

    /// Its accesses to memory that is mapped and could not be reached: the file has become shorter.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.state.refused
    }

    /// Switches its BARs and its requests to memory on or off, as the Command register does; both are off after a reset. Each vector's
    /// message is set up with the BARs: those of the function come as events.
    pub fn enable(&mut self, memory_space: bool, bus_master: bool) {
        let number = self.state.number;
        let space = SlotSpace {
            mps: MAX_PAYLOAD.into(),
            mrrs: MAX_READ_REQUEST,
            extended_tags: 1,
            ..slot_space(number, memory_space, bus_master)
        };
        let taken = self.sim.set_slot_space(number, &space);
        debug_assert!(taken, "the model's own sizes");
        if memory_space {
            self.state.posted.extend(write_vectors(self.sim, number, &self.state.facts));
        }
    }

    /// Begins to read up to 64 bytes of a BAR, within 4 KiB. `None`: they do not all exist, or 1024 accesses wait.
    pub fn read(&mut self, bar: u8, offset: u64, length: usize) -> Option<AccessToken> {
        self.sim.slot_read(self.state.number, bar, offset, length).map(AccessToken)
    }

    /// Begins to write up to 4096 bytes of a BAR, behind all accesses before. As [`read`](Self::read); it has ended when the function has
    /// it.
    pub fn write(&mut self, bar: u8, offset: u64, bytes: &[u8]) -> Option<AccessToken> {
        self.sim.slot_write(self.state.number, bar, offset, bytes).map(AccessToken)
    }

    /// Gives it memory at IO virtual addresses from `address` on, in pages of 4 KiB: those of `file` from `offset` on. It may access it by
    /// `rights`. What is not mapped is a fault: reads fail, writes are lost.
    ///
    /// # Errors
    /// [`MapError`], also if these are no whole pages or lie beyond 2^63. Nothing has changed then.
    pub fn map(&mut self, address: u64, size: u64, file: OwnedFd, offset: u64, rights: Rights) -> Result<(), MapError> {
        let range = self.state.memory.map(address, size, rights, Some((file, offset)))?;
        if self.sim.slot_map(self.state.number, address, size, rights.read, rights.write) {
            return Ok(());
        }
        self.state.memory.unmap(&range);
        Err(MapError::Pages)
    }

    /// Takes memory away: the function cannot access it any more. False: no range begins there with this size.
    pub fn unmap(&mut self, address: u64, size: u64) -> bool {
        let taken = self.sim.slot_unmap(self.state.number, address, size);
        debug_assert_ne!(taken, Unmapped::Busy, "all messages of before are answered");
        if taken != Unmapped::Done {
            return false;
        }
        self.state.memory.unmap(&(address..=address));
        true
    }

    /// Begins a function-level reset: all of it, but its memory here, becomes as after power-on. What is under way ends with errors;
    /// [`FunctionEvent::Reset`] comes when that is so.
    pub fn reset(&mut self) {
        self.enable(false, false);
        self.sim.begin_slot_reset(self.state.number);
        self.state.resetting = true;
    }
}

/// What configuration space says of a function that has no sizes yet.
pub(crate) fn slot_space(function: u8, memory_space: bool, bus_master: bool) -> SlotSpace {
    SlotSpace {
        id: DEVICE + u32::from(function),
        mps: 128,
        mrrs: 128,
        rcb: RCB,
        extended_tags: 0,
        memory_space: memory_space.into(),
        bus_master: bus_master.into(),
        // Whoever is in the host's place holds interrupts back.
        msix_enable: 1,
        msix_mask: 0,
    }
}

/// Writes the MSI-X table of a function: the message of each vector is its number, at [`INTERRUPTS`], and none is masked. Gives the writes.
pub(crate) fn write_vectors(sim: &mut Sim, function: u8, facts: &SlotFacts) -> Vec<u64> {
    let entry = |vector: u32| [INTERRUPTS as u32, (INTERRUPTS >> 32) as u32, vector, 0].map(u32::to_le_bytes);
    let table: Vec<u8> = (0..facts.vectors).flat_map(entry).flatten().collect();
    let write = |(part, bytes): (usize, &[u8])| {
        sim.slot_write(function, REGISTERS, u64::from(facts.msix_table) + (part * LONGEST) as u64, bytes)
    };
    table.chunks(LONGEST).enumerate().filter_map(write).collect()
}
