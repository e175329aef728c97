// SPDX-License-Identifier: Apache-2.0
//! The functions of the simulated device as PCI Express functions of other programs: the slot model of its library, and a vfio-user server for
//! each.
//!
//! The server has the configuration space, the client's memory and its eventfds; the model has the link and the root complex; the device
//! is the RTL. What happens between them happens here, in [`Slot::poll`], while no device time passes. docs/reference/slot-model.md,
//! "In a slot of another program".

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Range, RangeInclusive};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nacelle_slot::config_space::{ConfigEvent, ConfigSpace, Settings, VECTOR_BYTES};
use nacelle_slot::dma::Fault;
use nacelle_slot::pages::Access as Rights;
use nacelle_slot::{
    Answer, BarAccess, DmaToken, Errno, Function, Host, ResetCause, Server, ServerConfig, ServerError, Token, Transfer,
};
use nacelle_wire::MacAddr;
use rustc_hash::{FxHashMap, FxHashSet};

use self::description::{REGISTERS, description};
use crate::sim::{SlotAnswer, SlotFacts, SlotMessage, SlotSpace, Unmapped};
use crate::{DeviceError, Sim};

mod description;

/// Functions of the device: the device itself, and its network card.
pub(super) const DEVICE: u8 = 0;
pub(crate) const NETWORK_CARD: u8 = 1;
/// Bus, device and function of the first one, and the read completion boundary, as the model has them by default.
const ID: u32 = 0x100;
const RCB: u32 = 64;
/// No access waits for the simulation longer than this, by the clock on the wall: less than what clients wait for.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes that a command reads or writes at most: a second of simulation.
const MAX_TRANSFER: usize = 64 << 10;
/// Bytes of a BAR that one access of the model reads and writes at most, and at multiples of which they end.
const READ_BYTES: u64 = 64;
const WRITE_BYTES: u64 = 4096;
/// Where the device sends its interrupts: the number of the vector is the data.
const INTERRUPTS: u64 = 0xfee0_0000;
/// Accesses that the model has at a time.
const WINDOW: usize = 256;

/// How an access of the client to a BAR has failed (Base Specification 2.3.1, 2.7.2, 2.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum AccessError {
    #[error("nothing is there: unsupported request")]
    Unsupported,
    #[error("the device cannot do it: completer abort")]
    Abort,
    #[error("the device did not answer in time")]
    Timeout,
    #[error("the answer was poisoned")]
    Poisoned,
}

impl AccessError {
    /// That of a status of the model.
    fn of(status: u32) -> Option<Self> {
        match status {
            0 => None,
            1 => Some(Self::Unsupported),
            16 => Some(Self::Timeout),
            17 => Some(Self::Poisoned),
            _ => Some(Self::Abort),
        }
    }

    /// What the client is told.
    fn errno(self) -> Errno {
        match self {
            Self::Unsupported => Errno::NXIO,
            Self::Abort => Errno::IO,
            Self::Timeout => Errno::TIMEDOUT,
            Self::Poisoned => Errno::BADMSG,
        }
    }
}

/// A slot with a function of the device in it.
pub(super) struct Slot {
    server: Server,
    card: Card,
    since: Instant,
    /// Failures of the system.
    failures: u64,
}

impl Slot {
    /// A slot at `path` with function `number` of a device that has this MAC address.
    ///
    /// # Errors
    /// [`DeviceError::Without`] if the device has no such function; [`DeviceError::Slot`] if the socket cannot be made.
    pub(super) fn new(sim: &mut Sim, number: u8, path: &Path, mac: MacAddr) -> Result<Self, DeviceError> {
        Self::with(sim, number, mac, |space, config| Server::bind(path, space, config))
    }

    /// A slot with function `number` of a device, and the client at the other end of `socket`.
    ///
    /// # Errors
    /// [`DeviceError::Without`] if the device has no such function.
    pub(super) fn connected(sim: &mut Sim, number: u8, socket: UnixStream, mac: MacAddr) -> Result<Self, DeviceError> {
        Self::with(sim, number, mac, |space, config| Server::connected(socket, space, config))
    }

    fn with(
        sim: &mut Sim,
        number: u8,
        mac: MacAddr,
        serve: impl FnOnce(ConfigSpace, ServerConfig) -> Result<Server, ServerError>,
    ) -> Result<Self, DeviceError> {
        let what = if number == DEVICE { "[pcie], for a slot" } else { "network_card in [pcie]" };
        let facts = sim.slot_facts(number).ok_or(DeviceError::Without { what })?;
        let unusable = |error: nacelle_slot::config_space::ConfigError| DeviceError::Create { why: error.to_string() };
        let space = ConfigSpace::new(description(number, &facts, mac)).map_err(unusable)?;
        let config = ServerConfig {
            device_timeout: DEVICE_TIMEOUT,
            max_transfer: MAX_TRANSFER,
            // A client that does not answer would hold up what the device sends behind such a write: its own, but not another's.
            dma_messages: number == DEVICE,
            ..ServerConfig::default()
        };
        let server = serve(space, config)?;
        let mut card = Card::new(number, facts);
        card.settle(sim, &server.config_space().settings());
        Ok(Self { server, card, since: Instant::now(), failures: 0 })
    }

    /// Does what the client and the device have asked each other for.
    pub(super) fn poll(&mut self, sim: &mut Sim, now: Instant) {
        let time = now.saturating_duration_since(self.since);
        let done = self.server.poll(time, Duration::ZERO, &mut Seat { sim, card: &mut self.card });
        // The system has no memory or no descriptors now: it is tried again.
        self.failures += u64::from(done.is_err());
    }

    /// What to wait for while the device is idle.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.server.fds()
    }

    /// Whether the client has not taken all that it was sent.
    pub(super) fn is_sending(&self) -> bool {
        self.server.is_sending()
    }

    /// What was counted here.
    pub(super) fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let server = self.server.counters();
        let counted = [
            server.clients,
            server.turned_away,
            server.thrown_out,
            self.failures,
            server.commands,
            server.failed,
            server.dma_messages,
            server.dma_timeouts,
            self.card.refused,
        ];
        let names = if self.card.number == DEVICE { &COUNTERS } else { &CARD_COUNTERS };
        names.iter().copied().zip(counted)
    }
}

/// The names of what is counted of the slot of the device, and of that of its network card.
const COUNTERS: [&str; 9] = [
    "slot.clients",
    "slot.clients_turned_away",
    "slot.clients_thrown_out",
    "slot.failures",
    "slot.commands",
    "slot.commands_failed",
    "slot.dma_messages",
    "slot.dma_timeouts",
    "slot.dma_refused",
];
const CARD_COUNTERS: [&str; 9] = [
    "slot_net.clients",
    "slot_net.clients_turned_away",
    "slot_net.clients_thrown_out",
    "slot_net.failures",
    "slot_net.commands",
    "slot_net.commands_failed",
    "slot_net.dma_messages",
    "slot_net.dma_timeouts",
    "slot_net.dma_refused",
];

/// What the model has counted of all functions.
pub(super) fn model_counters(sim: &Sim) -> impl Iterator<Item = (&'static str, u64)> + use<> {
    let model = sim.slot_stats();
    [
        ("slot.reads", model.reads),
        ("slot.read_bytes", model.read_bytes),
        ("slot.writes", model.writes),
        ("slot.write_bytes", model.write_bytes),
        ("slot.interrupts", model.interrupts),
        ("slot.iommu_faults", model.faults),
        ("slot.violations", model.violations),
    ]
    .into_iter()
}

/// An access of the client to a BAR, in parts as the model takes them.
struct Access {
    token: Token,
    bar: u8,
    offset: u64,
    /// What is written, or was read.
    bytes: Vec<u8>,
    writes: bool,
    /// So much of it was begun.
    begun: usize,
    /// Reads that are under way, by the model's token.
    parts: Vec<(u64, Range<usize>)>,
}

/// A function-level reset, and whether the model has begun it.
struct Reset {
    /// Of the client that waits for it; `None`: its client has gone.
    token: Option<Token>,
    begun: bool,
}

/// An access of the device to memory that the client was asked for.
struct Asked {
    message: u64,
    reads: bool,
}

/// What is under way between the client and the model.
struct Card {
    /// The function.
    number: u8,
    facts: SlotFacts,
    /// What the model was told last of configuration space.
    space: Option<SlotSpace>,
    /// The device has the addresses of its interrupts.
    has_table: bool,
    access: Option<Access>,
    /// Writes that the device has not taken yet.
    posted: FxHashSet<u64>,
    reset: Option<Reset>,
    /// Memory that the model has: first address and bytes.
    memory: BTreeMap<u64, u64>,
    /// What the client has taken away, and the device still waits for.
    leaving: Vec<(u64, u64)>,
    unmapping: Option<Token>,
    asked: FxHashMap<DmaToken, Asked>,
    /// Accesses of the device for which the client has no room yet, in their order.
    held: VecDeque<SlotMessage>,
    /// Accesses of the device to memory that the client, or what it has given, refused.
    refused: u64,
}

impl Card {
    fn new(number: u8, facts: SlotFacts) -> Self {
        Self {
            number,
            facts,
            space: None,
            has_table: false,
            access: None,
            posted: FxHashSet::default(),
            reset: None,
            memory: BTreeMap::new(),
            leaving: Vec::new(),
            unmapping: None,
            asked: FxHashMap::default(),
            held: VecDeque::new(),
            refused: 0,
        }
    }

    /// Tells the model what configuration space says, once what was written before has arrived: a write to it does not pass one to a BAR.
    fn settle(&mut self, sim: &mut Sim, settings: &Settings) {
        let space = SlotSpace {
            id: ID + u32::from(self.number),
            mps: settings.max_payload.into(),
            mrrs: settings.max_read_request.into(),
            rcb: RCB,
            extended_tags: settings.extended_tags.into(),
            memory_space: settings.memory_space.into(),
            bus_master: settings.bus_master.into(),
            // The server holds interrupts back, and has the pending bits.
            msix_enable: 1,
            msix_mask: 0,
        };
        if self.reset.is_some() || !self.posted.is_empty() {
            return;
        }
        if self.space != Some(space) {
            let taken = sim.set_slot_space(self.number, &space);
            debug_assert!(taken, "the slot has all sizes that the function says: {space:?}");
            self.space = Some(space);
        }
        // A client of VFIO keeps the table, which is the device's all the same.
        self.has_table &= settings.memory_space;
        if settings.memory_space && !self.has_table {
            let entry = |vector: u32| [INTERRUPTS as u32, (INTERRUPTS >> 32) as u32, vector, 0].map(u32::to_le_bytes);
            let table: Vec<u8> = (0..self.facts.vectors).flat_map(entry).flatten().collect();
            debug_assert_eq!(table.len() as u64, u64::from(self.facts.vectors) * VECTOR_BYTES);
            for (part, bytes) in table.chunks(WRITE_BYTES as usize).enumerate() {
                let at = u64::from(self.facts.msix_table) + part as u64 * WRITE_BYTES;
                self.posted.extend(sim.slot_write(self.number, REGISTERS, at, bytes));
            }
            self.has_table = true;
        }
    }

    /// Begins what the model takes of an access. Whether all of it was begun.
    fn go_on(&mut self, sim: &mut Sim) -> bool {
        let Some(access) = &mut self.access else { return true };
        if self.reset.is_some() {
            return false;
        }
        while access.begun < access.bytes.len() && access.parts.len() + self.posted.len() < WINDOW {
            let at = access.offset + access.begun as u64;
            let most = if access.writes { WRITE_BYTES } else { READ_BYTES };
            let end = access.bytes.len().min(access.begun + (most - at % most) as usize);
            let part = access.begun..end;
            let begun = if access.writes {
                sim.slot_write(self.number, access.bar, at, &access.bytes[part.clone()])
                    .map(|token| _ = self.posted.insert(token))
            } else {
                sim.slot_read(self.number, access.bar, at, part.len()).map(|token| access.parts.push((token, part)))
            };
            if begun.is_none() {
                break;
            }
            access.begun = end;
        }
        access.begun == access.bytes.len()
    }

    /// An access of the host has ended.
    fn ended(&mut self, host: &mut Host<'_>, answer: &SlotAnswer) {
        if self.posted.remove(&answer.token) {
            return;
        }
        let Some(access) = &mut self.access else { return };
        let Some(number) = access.parts.iter().position(|(token, _)| *token == answer.token) else { return };
        let (_, part) = access.parts.swap_remove(number);
        let token = access.token;
        match AccessError::of(answer.status) {
            None if answer.bytes().len() == part.len() => access.bytes[part].copy_from_slice(answer.bytes()),
            error => {
                let error = error.unwrap_or(AccessError::Abort);
                self.access = None;
                host.complete(token, Err(error.errno()));
                return;
            }
        }
        if access.parts.is_empty() && access.begun == access.bytes.len() {
            host.complete(token, Ok(&access.bytes));
            self.access = None;
        }
    }

    /// Does an access of the device to memory, or begins it. False: the client has no room for it now.
    fn serve(&mut self, sim: &mut Sim, host: &mut Host<'_>, message: &SlotMessage) -> bool {
        let mut bytes = [0; WRITE_BYTES as usize];
        let into = &mut bytes[..message.len()];
        let transfer = match message.written() {
            _ if self.reset.is_some() => Err(Fault::BusMaster),
            Some(written) => host.dma_write(message.address, written),
            None => host.dma_read(message.address, into),
        };
        match transfer {
            Ok(Transfer::Done) => {
                _ = sim.answer_slot_message(message.token, message.written().is_none().then_some(into))
            }
            Ok(Transfer::Later(token)) => {
                let asked = Asked { message: message.token, reads: message.written().is_none() };
                self.asked.insert(token, asked);
            }
            Err(Fault::Busy) => return false,
            Err(_) => self.refuse(sim, message.token),
        }
        true
    }

    fn refuse(&mut self, sim: &mut Sim, message: u64) {
        self.refused += 1;
        sim.answer_slot_message(message, None);
    }

    /// Serves the device's accesses to memory, in their order as far as the client has room.
    fn serve_all(&mut self, sim: &mut Sim, host: &mut Host<'_>) {
        while let Some(message) = self.held.pop_front() {
            if !self.serve(sim, host, &message) {
                self.held.push_front(message);
                break;
            }
        }
        while let Some(message) = sim.pull_slot_message(self.number) {
            if !self.held.is_empty() || !self.serve(sim, host, &message) {
                self.held.push_back(message);
            }
        }
    }

    /// Nothing that the device has asked for is done any more.
    fn refuse_all(&mut self, sim: &mut Sim) {
        let asked: Vec<u64> = self.asked.drain().map(|(_, asked)| asked.message).collect();
        let held: Vec<u64> = self.held.drain(..).map(|message| message.token).collect();
        for message in asked.into_iter().chain(held) {
            self.refuse(sim, message);
        }
        while let Some(message) = sim.pull_slot_message(self.number) {
            self.refuse(sim, message.token);
        }
    }

    /// Takes memory away from the device: all that begins in these addresses.
    fn take_away(&mut self, sim: &mut Sim, range: &RangeInclusive<u64>) {
        self.leaving.extend(self.memory.extract_if(range.clone(), |_, _| true));
        self.let_go(sim);
    }

    fn let_go(&mut self, sim: &mut Sim) {
        let number = self.number;
        self.leaving.retain(|(first, size)| sim.slot_unmap(number, *first, *size) == Unmapped::Busy);
    }

    fn reset_goes_on(&mut self, sim: &mut Sim, host: &mut Host<'_>) {
        let Some(reset) = &mut self.reset else { return };
        if !reset.begun {
            // What was written before arrives before.
            if !self.posted.is_empty() {
                return;
            }
            sim.begin_slot_reset(self.number);
            self.space = None; // the model has changed it
            reset.begun = true;
        }
        if sim.slot_reset_done(self.number) {
            let token = reset.token;
            self.reset = None;
            self.has_table = false;
            while sim.pull_slot_interrupt(self.number).is_some() {}
            if let Some(token) = token {
                host.complete(token, Ok(&[]));
            }
        }
    }

    /// What the device has done since the last time.
    fn take_news(&mut self, sim: &mut Sim, host: &mut Host<'_>) {
        self.serve_all(sim, host);
        while let Some(interrupt) = sim.pull_slot_interrupt(self.number) {
            let _the_device_has_no_more_vectors = host.interrupt(interrupt.data as u16);
        }
        sim.take_slot_faults(self.number);
        while let Some(answer) = sim.pull_slot_answer(self.number) {
            self.ended(host, &answer);
        }
    }
}

/// The device in its slot, while no time passes.
struct Seat<'a> {
    sim: &'a mut Sim,
    card: &'a mut Card,
}

impl Seat<'_> {
    fn begin(&mut self, host: &Host<'_>, to: BarAccess, bytes: Vec<u8>, writes: bool) -> bool {
        let BarAccess { bar, offset, token } = to;
        self.card.settle(self.sim, &host.settings());
        // One of before was given up.
        self.card.access = Some(Access { token, bar, offset, bytes, writes, begun: 0, parts: Vec::new() });
        self.card.go_on(self.sim)
    }
}

impl Function for Seat<'_> {
    fn bar_read(&mut self, host: &mut Host<'_>, access: BarAccess, into: &mut [u8]) -> Result<Answer, Errno> {
        self.begin(host, access, vec![0; into.len()], false);
        Ok(Answer::Later)
    }

    /// Writes are posted: they are answered when the model has them all.
    fn bar_write(&mut self, host: &mut Host<'_>, access: BarAccess, bytes: &[u8]) -> Result<Answer, Errno> {
        if !self.begin(host, access, bytes.to_vec(), true) {
            return Ok(Answer::Later);
        }
        self.card.access = None;
        Ok(Answer::Now)
    }

    fn step(&mut self, host: &mut Host<'_>, _now: Duration) {
        let Self { sim, card } = self;
        card.take_news(sim, host);
        card.let_go(sim);
        if card.leaving.is_empty()
            && let Some(token) = card.unmapping.take()
        {
            host.complete(token, Ok(&[]));
        }
        card.reset_goes_on(sim, host);
        card.settle(sim, &host.settings());
        if card.go_on(sim)
            && let Some(access) = card.access.take_if(|access| access.writes)
        {
            host.complete(access.token, Ok(&[]));
        }
    }

    fn config_event(&mut self, host: &mut Host<'_>, _event: ConfigEvent) {
        self.card.settle(self.sim, &host.settings());
    }

    fn reset(&mut self, host: &mut Host<'_>, _cause: ResetCause, token: Token) -> Result<Answer, Errno> {
        self.card.refuse_all(self.sim);
        self.card.access = None;
        self.card.reset = Some(Reset { token: Some(token), begun: false });
        self.card.reset_goes_on(self.sim, host);
        Ok(Answer::Later)
    }

    fn mapping(&mut self, _host: &mut Host<'_>, range: RangeInclusive<u64>, rights: Rights) -> Result<(), Errno> {
        let (first, size) = (*range.start(), range.end() - range.start() + 1);
        if !self.sim.slot_map(self.card.number, first, size, rights.read, rights.write) {
            return Err(if (first | size) % WRITE_BYTES == 0 { Errno::BUSY } else { Errno::INVAL });
        }
        self.card.memory.insert(first, size);
        Ok(())
    }

    fn unmapping(&mut self, _host: &mut Host<'_>, range: RangeInclusive<u64>, token: Token) -> Answer {
        self.card.take_away(self.sim, &range);
        if self.card.leaving.is_empty() {
            return Answer::Now;
        }
        self.card.unmapping = Some(token);
        Answer::Later
    }

    fn dma_done(&mut self, _host: &mut Host<'_>, token: DmaToken, result: Result<&[u8], Fault>) {
        let Some(Asked { message, reads }) = self.card.asked.remove(&token) else { return };
        match result {
            Ok(bytes) => _ = self.sim.answer_slot_message(message, reads.then_some(bytes)),
            Err(_) => self.card.refuse(self.sim, message),
        }
    }

    /// A client that has gone leaves nothing under way, as the kernel's VFIO sees to: the function is reset. Else what it has begun (copies,
    /// for example) would go on in the memory of the next one, which can have the same addresses.
    fn client(&mut self, host: &mut Host<'_>, present: bool) {
        if !present {
            self.card.refuse_all(self.sim);
            self.card.access = None;
            self.card.unmapping = None;
            self.card.take_away(self.sim, &(0..=u64::MAX));
            let begun = self.card.reset.as_ref().is_some_and(|reset| reset.begun);
            self.card.reset = Some(Reset { token: None, begun });
            self.card.reset_goes_on(self.sim, host);
        }
    }
}
