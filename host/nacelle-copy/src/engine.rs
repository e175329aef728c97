// SPDX-License-Identifier: Apache-2.0
//! The driver of the copy engine: lists of descriptors go in, and each list ends with a result.
//!
//! Any thread can put lists in and wait. One of those that wait, the *leader*, sleeps until the device interrupts; the others sleep until
//! the leader has looked at the completions. So no thread of the driver's own is needed, and no wait holds a lock that another one needs.
//!
//! Locks are taken in this order: `state`, `device`.

use std::any::Any;
use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nacelle_manage::map::{Register, copy, device};
use nacelle_pci::{Interrupt, PciDevice, PciError};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::error::{CopyError, Error, Stop};
use crate::rings::{Descriptor, Rings};

/// The BAR with the registers.
const REGISTERS: u8 = 0;
/// What a register reads as when the function has gone from its bus.
const GONE: u32 = u32::MAX;
/// Rings have 2^5 to 2^15 entries.
const RING_LOG: std::ops::RangeInclusive<u32> = 5..=15;
/// A leader looks this often whether somebody else has found that the device has gone.
const SLICE: Duration = Duration::from_millis(250);

/// How a device is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How long the device may take to answer an access to a register, or to end what it does.
    pub timeout: Duration,
    /// The rings have 2<sup>n</sup> places, n from 5 to 15: so many copies can be under way.
    pub ring_log: u32,
    /// A thread that waits polls the memory, and no interrupts are asked for. It occupies a processor, and is the fastest.
    pub poll: bool,
    /// When nothing has ended for so long, it is asked whether the engine has stopped. That it stops is told by an interrupt, but not when
    /// it may send none.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(60), ring_log: 10, poll: false, patience: Duration::from_secs(10) }
    }
}

/// A device with its copy engine, which this process has for itself.
pub struct Engine {
    options: Options,
    memory: Range<u64>,
    interrupt: Interrupt,
    alarm: Option<OwnedFd>,
    device: Mutex<Box<dyn PciDevice + Send>>,
    state: Mutex<State>,
    /// The leader has looked, or there is none any more.
    changed: Condvar,
}

/// What is under way.
struct State {
    rings: Rings,
    /// What the engine has not ended, in its order.
    pending: VecDeque<Pending>,
    /// The first failure of the list whose descriptors are in front.
    failed: Option<CopyError>,
    /// A thread sleeps until the interrupt.
    leader: bool,
    /// Completions were taken since the interrupt was.
    news: bool,
    /// When something ended, or it was found that nothing has.
    since: Instant,
    gone: Option<Arc<PciError>>,
}

/// A descriptor that the engine has.
struct Pending {
    descriptor: Descriptor,
    /// Of its list.
    index: usize,
    /// Of the last one: its list.
    last: Option<Arc<List>>,
}

type Held = Box<dyn Any + Send>;

/// A list that was put in.
struct List {
    outcome: OnceLock<Result<(), CopyError>>,
    /// What must stay until its end.
    held: Mutex<Option<Held>>,
}

/// Names a list that was put in.
#[derive(Clone)]
pub struct Ticket(Arc<List>);

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Ticket").field(&self.0.outcome.get()).finish()
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("memory", &self.memory).finish_non_exhaustive()
    }
}

fn read(device: &mut dyn PciDevice, base: u32, register: Register) -> Result<u32, PciError> {
    match device.read32(REGISTERS, register.at(base).into())? {
        GONE => Err(PciError::Gone),
        value => Ok(value),
    }
}

fn write(device: &mut dyn PciDevice, register: Register, value: u32) -> Result<(), PciError> {
    device.write32(REGISTERS, register.at(copy::BASE).into(), value)
}

/// The two halves of a number.
fn read_wide(device: &mut dyn PciDevice, low: Register, high: Register) -> Result<u64, PciError> {
    let low = read(device, copy::BASE, low)?;
    Ok(u64::from(read(device, copy::BASE, high)?) << 32 | u64::from(low))
}

/// The host's part of the device's memory, in device addresses.
fn hosts_memory(device: &mut dyn PciDevice, version: u32) -> Result<Range<u64>, PciError> {
    // Version 1.0 of the block does not say.
    if version & 0xffff == 0 {
        return Ok(0..0);
    }
    let base = read_wide(device, copy::MEMORY_LO, copy::MEMORY_HI)?;
    let bytes = read_wide(device, copy::MEMORY_SIZE_LO, copy::MEMORY_SIZE_HI)?;
    let end = base.checked_add(bytes).ok_or(PciError::Unusable("its memory has no end"))?;
    Ok(base..end)
}

impl Engine {
    /// Takes the engine of a device. The function is reset: whatever was begun by others ends.
    ///
    /// # Errors
    /// [`Error::NoEngine`], [`Error::NotEnabled`], [`Error::Stuck`]; [`Error::Pci`] if it cannot be accessed or refuses.
    pub fn new(mut device: Box<dyn PciDevice + Send>, options: Options) -> Result<Self, Error> {
        let own = device.as_mut();
        if !RING_LOG.contains(&options.ring_log) {
            return Err(PciError::Unusable("its rings have 2^5 to 2^15 places").into());
        }
        // Before it may send requests again: they would reach the memory of this process.
        own.reset()?;
        let kind = read(own, copy::BASE, copy::TYPE)?;
        let version = read(own, copy::BASE, copy::VERSION)?;
        if kind != u32::from_be_bytes(copy::BLOCK.kind) || version >> 16 != copy::BLOCK.version >> 16 {
            return Err(Error::NoEngine);
        }
        if device::CTRL_ENABLE.of(read(own, device::BASE, device::CTRL)?) == 0 {
            return Err(Error::NotEnabled);
        }
        let memory = hosts_memory(own, version)?;
        let mut rings = Rings::new(own, options.ring_log)?;
        let interrupt = own.interrupts(1)?.pop().ok_or(PciError::NoVector { has: 0 })?;
        begin(own, &mut rings, options.timeout)?;
        let alarm = own.alarm()?;
        let state = State {
            rings,
            pending: VecDeque::new(),
            failed: None,
            leader: false,
            news: false,
            since: Instant::now(),
            gone: None,
        };
        Ok(Self {
            options,
            memory,
            interrupt,
            alarm,
            device: Mutex::new(device),
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    /// The part of the device's memory that is the host's, in device addresses: the device gives it to nobody.
    #[must_use]
    pub fn memory(&self) -> Range<u64> {
        self.memory.clone()
    }

    /// Descriptors that can be under way.
    #[must_use]
    pub fn places(&self) -> usize {
        1 << self.options.ring_log
    }

    /// The device itself, while no other access to it is made.
    pub(crate) fn device(&self) -> MutexGuard<'_, Box<dyn PciDevice + Send>> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a list in, and rings the doorbell. Its descriptors are copied in their order but for their data: none may read what another one
    /// of the list writes. `held` stays until the list has ended.
    ///
    /// # Errors
    /// [`Error::NoCopies`], [`Error::TooLong`], [`Error::Full`]; [`CopyError::Gone`]. Then nothing was put in.
    pub fn put(&self, list: &[Descriptor], held: Held) -> Result<Ticket, Error> {
        let mut done = Vec::new();
        let mut state = self.state();
        let put = self.put_in(&mut state, list, held, &mut done);
        drop(state);
        // Not under the lock: what was held may give memory back.
        drop(done);
        put
    }

    fn put_in(
        &self,
        state: &mut State,
        list: &[Descriptor],
        held: Held,
        done: &mut Vec<Held>,
    ) -> Result<Ticket, Error> {
        let places = state.rings.places();
        if list.is_empty() {
            return Err(Error::NoCopies);
        }
        if list.len() > places {
            return Err(Error::TooLong { needed: list.len(), places });
        }
        self.look(state, done);
        // An interrupt that no completion explains: the engine may have stopped when nothing was under way.
        if !state.leader
            && !state.news
            && state.pending.is_empty()
            && self.interrupt.take().is_ok_and(|times| times > 0)
        {
            self.ask(state, done);
        }
        if let Some(why) = &state.gone {
            return Err(CopyError::Gone { why: Arc::clone(why) }.into());
        }
        if list.len() > places - state.pending.len() {
            return Err(Error::Full { needed: list.len() });
        }
        if state.pending.is_empty() {
            state.since = Instant::now();
        }
        let ticket = Ticket(Arc::new(List { outcome: OnceLock::new(), held: Mutex::new(Some(held)) }));
        for (index, descriptor) in list.iter().enumerate() {
            let last = index + 1 == list.len();
            state.rings.put(descriptor, last && !self.options.poll)?;
            let last = last.then(|| Arc::clone(&ticket.0));
            state.pending.push_back(Pending { descriptor: *descriptor, index, last });
        }
        // The ring is written before, and a device sees writes in their order.
        fence(Ordering::SeqCst);
        let rung = write(self.device().as_mut(), copy::PRODUCER, state.rings.put as u32 & 0xffff);
        if let Err(error) = rung {
            self.lose(state, error, done);
        }
        Ok(ticket)
    }

    /// Takes all completions that are there.
    fn look(&self, state: &mut State, done: &mut Vec<Held>) {
        while let Some(front) = state.pending.front() {
            let number = state.rings.taken as u32;
            let Some(completion) = state.rings.take() else { return };
            if completion.tag != number {
                let error = PciError::Unusable("its completions are not those of the copies");
                return self.lose(state, error, done);
            }
            if let Some(why) = completion.failure {
                let failed = CopyError::Failed { index: front.index, descriptor: front.descriptor, why };
                state.failed.get_or_insert(failed);
            }
            (state.news, state.since) = (true, Instant::now());
            if let Some(Pending { last: Some(list), .. }) = state.pending.pop_front() {
                list.end(state.failed.take().map_or(Ok(()), Err), done);
            }
        }
    }

    /// All that is under way ends with an error; that of a list which has failed already is its own.
    fn end_all(&self, state: &mut State, error: &CopyError, done: &mut Vec<Held>) {
        for pending in std::mem::take(&mut state.pending) {
            if let Some(list) = pending.last {
                list.end(Err(state.failed.take().unwrap_or_else(|| error.clone())), done);
            }
        }
        self.changed.notify_all();
    }

    /// The device can no longer be used.
    fn lose(&self, state: &mut State, error: PciError, done: &mut Vec<Held>) {
        let why = Arc::clone(state.gone.get_or_insert_with(|| Arc::new(error)));
        self.end_all(state, &CopyError::Gone { why }, done);
    }

    /// Asks the engine whether it has stopped. If so, what is under way has ended, and it begins again.
    fn ask(&self, state: &mut State, done: &mut Vec<Held>) {
        state.since = Instant::now();
        if state.gone.is_some() {
            return;
        }
        let asked = read(self.device().as_mut(), copy::BASE, copy::STATE);
        match asked.map(|value| Stop::of(copy::STATE_STOPPED.of(value))) {
            Ok(None) => {}
            Ok(Some(why)) => {
                // What it has written before it stopped.
                self.look(state, done);
                self.restart(state, why, done);
            }
            Err(error) => self.lose(state, error, done),
        }
    }

    fn restart(&self, state: &mut State, why: Stop, done: &mut Vec<Held>) {
        self.end_all(state, &CopyError::Stopped { why }, done);
        let begun = begin(self.device().as_mut(), &mut state.rings, self.options.timeout);
        if let Err(error) = begun {
            let error = match error {
                Error::Pci(error) => error,
                _ => PciError::Unusable("its copy engine does not begin again"),
            };
            self.lose(state, error, done);
        }
    }

    /// Resets the function, and begins again: all that is under way ends with [`CopyError::Stopped`].
    ///
    /// # Errors
    /// If the device refuses or has gone.
    pub fn reset(&self) -> Result<(), Error> {
        let mut done = Vec::new();
        let mut state = self.state();
        self.look(&mut state, &mut done);
        if state.gone.is_none() {
            let reset = self.device().reset();
            match reset {
                Ok(()) => {
                    self.look(&mut state, &mut done);
                    self.restart(&mut state, Stop::Reset, &mut done);
                }
                Err(error) => self.lose(&mut state, error, &mut done),
            }
        }
        let gone = state.gone.clone();
        drop(state);
        drop(done);
        gone.map_or(Ok(()), |why| Err(CopyError::Gone { why }.into()))
    }

    /// How a list has ended; `None`: it has not. Does not wait.
    #[must_use]
    pub fn poll(&self, ticket: &Ticket) -> Option<Result<(), CopyError>> {
        self.wait_for(Some(Instant::now()), |_| ticket.0.outcome.get().cloned())
    }

    /// Waits until a list has ended, or `until`.
    #[must_use]
    pub fn wait(&self, ticket: &Ticket, until: Option<Instant>) -> Option<Result<(), CopyError>> {
        self.wait_for(until, |_| ticket.0.outcome.get().cloned())
    }

    /// Waits until there is room for so many descriptors, or the device has gone.
    pub(crate) fn wait_for_room(&self, needed: usize) {
        let room = |state: &State| state.gone.is_some() || state.rings.places() - state.pending.len() >= needed;
        self.wait_for(None, |state| room(state).then_some(()));
    }

    /// Waits until there is something to find, or `until`.
    fn wait_for<T>(&self, until: Option<Instant>, find: impl Fn(&State) -> Option<T>) -> Option<T> {
        let mut done = Vec::new();
        let mut state = self.state();
        let mut over = false;
        let found = loop {
            self.look(&mut state, &mut done);
            let found = find(&state);
            if found.is_some() || over {
                break found;
            }
            // At its end it still looks once for what is no completion.
            let left = until.map_or(SLICE, |until| until.saturating_duration_since(Instant::now()).min(SLICE));
            over = left.is_zero();
            if state.leader {
                (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.leader = true;
            drop(state);
            // Gives memory back, perhaps.
            done.clear();
            let slept = self.sleep(if self.options.poll { Duration::ZERO } else { left });
            state = self.state();
            state.leader = false;
            match slept {
                Ok(Woken { gone: true, .. }) => {
                    self.look(&mut state, &mut done);
                    self.lose(&mut state, PciError::Gone, &mut done);
                }
                Ok(Woken { interrupts, .. }) => {
                    self.look(&mut state, &mut done);
                    let told = interrupts > 0 && !std::mem::take(&mut state.news);
                    if told || !state.pending.is_empty() && state.since.elapsed() >= self.options.patience {
                        self.ask(&mut state, &mut done);
                    }
                }
                Err(error) => self.lose(&mut state, error.into(), &mut done),
            }
            self.changed.notify_all();
        };
        drop(state);
        drop(done);
        found
    }

    /// Sleeps until the device has interrupted or gone, `wait` at most.
    fn sleep(&self, wait: Duration) -> std::io::Result<Woken> {
        let ends = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let mut both = [
            PollFd::new(&self.interrupt, PollFlags::IN),
            PollFd::from_borrowed_fd(self.alarm.as_ref().map_or(self.interrupt.as_fd(), AsFd::as_fd), ends),
        ];
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        let watched = if self.alarm.is_some() { &mut both[..] } else { &mut both[..1] };
        match rustix::event::poll(watched, Some(&wait)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Woken { gone: false, interrupts: 0 }),
            Err(errno) => return Err(errno.into()),
        }
        let gone = self.alarm.is_some() && both[1].revents().intersects(ends);
        Ok(Woken { gone, interrupts: self.interrupt.take()? })
    }
}

/// What has ended a sleep.
struct Woken {
    gone: bool,
    interrupts: u64,
}

impl List {
    fn end(&self, outcome: Result<(), CopyError>, done: &mut Vec<Held>) {
        // It ends once.
        let _ended = self.outcome.set(outcome);
        done.extend(self.held.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Ends what the queue does, and begins it with empty rings.
fn begin(device: &mut dyn PciDevice, rings: &mut Rings, timeout: Duration) -> Result<(), Error> {
    end(device, timeout)?;
    rings.clear()?;
    device.set_bus_master(true)?;
    let (descriptors, completions) = rings.addresses();
    let log = rings.log();
    let settings = [
        (copy::DESCRIPTORS_LO, descriptors as u32),
        (copy::DESCRIPTORS_HI, (descriptors >> 32) as u32),
        (copy::COMPLETIONS_LO, completions as u32),
        (copy::COMPLETIONS_HI, (completions >> 32) as u32),
        (copy::SIZES, log | log << 8),
        (copy::CTRL, 1),
    ];
    for (register, value) in settings {
        write(device, register, value)?;
    }
    let state = read(device, copy::BASE, copy::STATE)?;
    let runs = copy::STATE_RUNNING.of(state) == 1 && copy::STATE_STOPPED.of(state) == 0;
    if runs { Ok(()) } else { Err(Error::Stuck) }
}

/// Ends the queue, and waits for it.
fn end(device: &mut dyn PciDevice, timeout: Duration) -> Result<(), Error> {
    write(device, copy::CTRL, 0)?;
    let until = Instant::now() + timeout;
    while copy::STATE_RUNNING.of(read(device, copy::BASE, copy::STATE)?) == 1 {
        if Instant::now() >= until {
            return Err(Error::Stuck);
        }
    }
    Ok(())
}

impl Drop for Engine {
    /// Leaves a device that does nothing: the memory of this process goes.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let device = self.device.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut();
        if state.gone.is_some() {
            return;
        }
        let idle = state.pending.is_empty() && end(device, self.options.timeout).is_ok();
        // What fails here has no memory to reach any more.
        let _quiet = if idle { Ok(()) } else { device.reset() };
        let _off = device.set_bus_master(false);
    }
}
