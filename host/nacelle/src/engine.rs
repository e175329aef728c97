// SPDX-License-Identifier: Apache-2.0
//! Moves the frames of one endpoint for all threads that wait for its events.
//!
//! The endpoint and its events are the [`State`]. Its lock is held for computation only, for one frame or batch at a time. The link lies
//! in the state while no thread waits. A thread that has to wait takes it out and *drives* the loop of `nacelle-driver`: it alone
//! sends, receives and sleeps, without the lock, and files events for all. Other threads that wait sleep meanwhile, each until
//! its own event is filed. When the driving thread's own wait is over, it puts the link back and wakes another, which drives
//! then. A thread that changes the endpoint while another drives rings a bell, so that the driving thread sends what there is to
//! send and looks at the timers again.
//!
//! What runs code of the program (wakers, callbacks, the release of memory) is noted in the state and done without the lock and
//! without the link, at the end of each function here.

mod pollable;
mod thread;

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nacelle_driver::{Clock, Limits, Medium as _, Pump, Spin, Station};
use nacelle_link::LinkError;
use nacelle_roce::{Batch, ConnId, Phase, RegionId, Sent};

use crate::inbox::{End, Inbox};
use crate::report::Mark;
use crate::slot::{After, Cause, Notice, Then};
use crate::sync::{Mutex, MutexGuard};
pub(crate) use crate::transport::Endpoint;
use crate::transport::{Arrived, Medium};
use crate::wake::Wake;
use pollable::Pollable;
pub(crate) use thread::ProgressThread;

/// Turns of the loop that a poll makes at most.
const POLL_TURNS: usize = 64;
/// One receive a turn: then the driving thread checks whether its own wait is over.
const LIMITS: Limits = Limits { receive: 1, transmit: 16 };
/// How long a thread that does not wait may send.
const SEND_WITHIN: Duration = Duration::from_millis(20);
/// How often a thread that waits for what is not an event looks again.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// An endpoint that threads share.
pub(crate) struct Engine {
    state: Mutex<State>,
    /// The bell's end that is written.
    bell: UnixStream,
    /// How long a thread that drives polls, after something moved, before it sleeps.
    spin: Duration,
    /// The descriptor of the link.
    link: OwnedFd,
    /// For programs that poll; made when it is asked for.
    pollable: OnceLock<Pollable>,
}

/// What the lock protects.
pub(crate) struct State {
    pub(crate) endpoint: Endpoint,
    pub(crate) inbox: Inbox,
    clock: Clock,
    /// When this turn, change or wait began, to the system and to the endpoint: the clock is read once for each.
    turn: Instant,
    now: nacelle_roce::Instant,
    /// Packets and bytes sent, packets and bytes received.
    traffic: [u64; 4],
    /// Taken out by the thread that drives; in a box, so that this costs little.
    carrier: Option<Box<Carrier>>,
    /// Whether the bell was rung since the driving thread checked.
    rung: bool,
    /// Threads that wait and do not drive.
    waiting: VecDeque<Arc<Wake>>,
    /// Whether a thread or an event loop makes progress while no call is waited for.
    pub(crate) is_driven: bool,
}

/// What moves frames.
struct Carrier {
    pump: Pump<Medium>,
    /// The bell's end that is read.
    bell: UnixStream,
}

impl State {
    /// The time, to the endpoint, at which this turn, change or wait began.
    pub(crate) fn now(&self) -> nacelle_roce::Instant {
        self.now
    }

    /// A turn, change or wait began at `now`. Time does not go back if one of another thread began later.
    fn begin(&mut self, now: Instant) {
        if now > self.turn {
            (self.turn, self.now) = (now, self.clock.of(now));
        }
    }

    /// The same, with the traffic until now.
    pub(crate) fn mark(&self) -> Mark {
        Mark { at: self.turn, traffic: self.traffic }
    }

    /// Writes what to send next, and files events.
    fn next_to_send(&mut self, now: Instant, buffer: &mut [u8], batch: Batch) -> Option<Sent> {
        self.begin(now);
        let before = self.mark();
        let sent = self.endpoint.poll_transmit_batch(self.now(), buffer, batch);
        self.count();
        self.file(before);
        sent
    }

    /// Handles what was received, and files events.
    fn take(&mut self, now: Instant, received: Arrived<'_>) {
        self.begin(now);
        let before = self.mark();
        self.endpoint.handle(self.now(), received);
        self.count();
        self.file(before);
    }

    /// The link says that a peer is gone.
    fn lose(&mut self, peer: IpAddr) {
        let before = self.mark();
        self.endpoint.transport.peer_gone(peer);
        self.file(before);
    }

    /// Takes over what the interface has counted.
    fn count(&mut self) {
        self.traffic = self.endpoint.traffic();
    }

    fn file(&mut self, before: Mark) {
        let (at, now) = (self.now(), self.mark());
        self.inbox.take(&mut self.endpoint, at, before, now);
    }

    /// Looks at the calls whose time it is.
    fn look(&mut self, now: Instant) {
        self.begin(now);
        let now = self.now();
        self.inbox.look(&mut self.endpoint, now);
    }

    /// When something is to be done though no frame came.
    fn next_deadline(&self) -> Option<Instant> {
        let deadlines = [self.endpoint.next_deadline(), self.inbox.next_look()];
        deadlines.into_iter().flatten().min().map(|at| self.clock.at(at))
    }

    /// Ends a connection from this side.
    pub(crate) fn end(&mut self, conn: ConnId, end: End) {
        let now = self.now();
        self.inbox.end(&mut self.endpoint, now, conn, end);
    }

    /// The owner of a context leaves it, and these regions.
    pub(crate) fn release(&mut self, conn: ConnId, context: u8, left: Vec<RegionId>) {
        self.inbox.release(&mut self.endpoint, conn, context, left);
    }

    /// Has something done on a context when its time has come: now, if it has.
    pub(crate) fn after(&mut self, conn: ConnId, context: u8, after: After, then: Then) {
        self.inbox.after(&mut self.endpoint, conn, context, after, then);
    }

    /// Makes a call end.
    pub(crate) fn cancel(&mut self, conn: ConnId, context: u8, cause: Cause) {
        let now = self.now();
        self.inbox.cancel(&mut self.endpoint, now, conn, context, cause);
    }

    /// Drops the events of a connection from now on.
    pub(crate) fn forget(&mut self, conn: ConnId) {
        self.inbox.forget(&mut self.endpoint.transport, conn);
    }

    fn ring(&mut self, mut bell: &UnixStream) {
        if self.carrier.is_none() && !self.rung {
            self.rung = true;
            // It holds one byte at most: there is room.
            let _ = bell.write(&[0]);
        }
    }

    /// Wakes a thread that is to drive, if none does.
    fn hand_over(&self) {
        if self.carrier.is_some()
            && let Some(next) = self.waiting.front()
        {
            next.notify_one();
        }
    }
}

impl Engine {
    /// # Errors
    /// If the system has no descriptors left.
    pub(crate) fn new(medium: Medium, endpoint: Endpoint, spin: Duration) -> Result<Self, LinkError> {
        let io = |source| LinkError::Io { what: "make a socket".into(), source };
        let (bell, heard) = UnixStream::pair().map_err(io)?;
        bell.set_nonblocking(true).map_err(io)?;
        heard.set_nonblocking(true).map_err(io)?;
        let link = medium.poll_fd().try_clone_to_owned().map_err(io)?;
        let state = State {
            endpoint,
            inbox: Inbox::default(),
            clock: Clock::start(),
            turn: Instant::now(),
            now: nacelle_roce::Instant::ZERO,
            traffic: [0; 4],
            carrier: Some(Box::new(Carrier { pump: Pump::over(medium), bell: heard })),
            rung: false,
            waiting: VecDeque::new(),
            is_driven: false,
        };
        Ok(Self { state: Mutex::new(state), bell, spin, link, pollable: OnceLock::new() })
    }

    /// The state. No thread sleeps or does I/O under this lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of another thread leaves no inconsistent state that a call could see: each looks at its own session only.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, at this moment.
    pub(crate) fn lock_now(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.begin(Instant::now());
        state
    }

    /// Changes the endpoint, and sends what that causes: now, or by the thread that drives. Does not wait for frames.
    ///
    /// # Errors
    /// If the link is broken.
    pub(crate) fn act<T>(&self, change: impl FnOnce(&mut State) -> T) -> Result<T, LinkError> {
        let mut state = self.lock_now();
        let now = state.turn;
        let before = state.mark();
        let result = change(&mut state);
        state.file(before);
        state.ring(&self.bell);
        let sent = match Driver::take(self, state) {
            Some(mut driver) => driver.transmit_all(now),
            None => Ok(()),
        };
        self.deliver();
        sent.map(|()| result)
    }

    /// Moves the frames that can be moved at once, unless another thread drives.
    ///
    /// # Errors
    /// If the link is broken.
    pub(crate) fn poll(&self) -> Result<(), LinkError> {
        let moved = self.move_some();
        self.deliver();
        moved
    }

    fn move_some(&self) -> Result<(), LinkError> {
        let Some(mut driver) = Driver::take(self, self.lock()) else { return Ok(()) };
        let mut now = Instant::now();
        let until = now + SEND_WITHIN;
        for _ in 0..POLL_TURNS {
            let more = driver.turn(now)?;
            self.lock().look(now);
            now = Instant::now();
            if !more || now >= until {
                break;
            }
        }
        Ok(())
    }

    /// Waits until `look` finds something in the state, which it is called for whenever `wake` is notified; `None` if it has not
    /// by `deadline`.
    ///
    /// # Errors
    /// If the link is broken.
    pub(crate) fn wait<T>(
        &self,
        wake: &Arc<Wake>,
        deadline: Instant,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>, LinkError> {
        let mut state = self.lock();
        loop {
            if !state.inbox.notices.is_empty() {
                drop(state);
                self.deliver();
                state = self.lock();
            }
            state.begin(Instant::now());
            let found = look(&mut state);
            if found.is_some() || state.turn >= deadline {
                state.hand_over();
                return Ok(found);
            }
            if state.carrier.is_some() {
                let Some(mut driver) = Driver::take(self, state) else { unreachable!("the link was there") };
                let found = driver.drive(deadline, &mut look);
                drop(driver);
                if found.is_err() {
                    self.break_all(&found);
                }
                self.deliver();
                let found = found?;
                if found.is_some() {
                    return Ok(found);
                }
                state = self.lock();
                continue;
            }
            state.waiting.push_back(Arc::clone(wake));
            let left = deadline.saturating_duration_since(state.turn);
            state = wake.wait_timeout(state, left);
            if let Some(place) = state.waiting.iter().position(|waiting| Arc::ptr_eq(waiting, wake)) {
                state.waiting.remove(place);
            }
        }
    }

    /// The link is broken: ends all connections.
    fn break_all<T>(&self, broken: &Result<T, LinkError>) {
        if let Err(error) = broken {
            let mut state = self.lock();
            let State { endpoint, inbox, .. } = &mut *state;
            inbox.break_all(endpoint, &error.to_string());
        }
    }

    /// Runs what was noted to be run without the lock: wakers and callbacks.
    fn deliver(&self) {
        let mut state = self.lock();
        if std::mem::take(&mut state.inbox.notices.news)
            && let Some(pollable) = self.pollable.get()
        {
            pollable.announce();
        }
        while let Some(notice) = state.inbox.notices.queue.pop_front() {
            drop(state);
            match notice {
                Notice::Wake(waker) => waker.wake(),
                Notice::Run(callback) => callback(),
                Notice::Once(callback) => callback(),
                Notice::Drop(memory) => drop(memory),
            }
            state = self.lock();
        }
    }

    /// A descriptor that is readable when [`Self::poll`] has something to do. From now on an event loop makes progress.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub(crate) fn pollable(&self) -> Result<BorrowedFd<'_>, LinkError> {
        if self.pollable.get().is_none() {
            let io = |source| LinkError::Io { what: "make a descriptor to poll".into(), source };
            let _other_thread_made_one = self.pollable.set(Pollable::new(self.link.as_fd()).map_err(io)?);
        }
        let Some(pollable) = self.pollable.get() else { unreachable!("it was set") };
        self.lock().is_driven = true;
        // Arms the timer.
        drop(Driver::take(self, self.lock()));
        Ok(pollable.fd())
    }

    /// As [`Self::poll`], for an event loop: what made the descriptor readable is taken.
    ///
    /// # Errors
    /// If the link is broken.
    pub(crate) fn progress(&self) -> Result<(), LinkError> {
        self.lock().is_driven = true;
        if let Some(pollable) = self.pollable.get() {
            pollable.clear_timer();
        }
        let moved = self.poll();
        if moved.is_err() {
            self.break_all(&moved);
            self.deliver();
        }
        // Who was told of news before this looks at the calls after it.
        if let Some(pollable) = self.pollable.get() {
            pollable.clear_news();
        }
        moved
    }

    /// Makes a thread look again that waits with `wake`, or drives.
    fn nudge(&self, wake: &Wake) {
        let mut state = self.lock();
        state.ring(&self.bell);
        wake.notify_all();
    }

    /// Waits until no connection is ending. Returns whether that was before `deadline`.
    ///
    /// # Errors
    /// If the link is broken.
    pub(crate) fn settle(&self, deadline: Instant) -> Result<bool, LinkError> {
        let unused = Arc::default();
        loop {
            let tick = deadline.min(Instant::now() + LOOK_EVERY);
            let ending = |info: &nacelle_roce::ConnInfo| matches!(info.phase, Phase::Lingering | Phase::DreqSent);
            let settled =
                self.wait(&unused, tick, |state| (!state.endpoint.transport.any_connection(ending)).then_some(()))?;
            if settled.is_some() || Instant::now() >= deadline {
                return Ok(settled.is_some());
            }
        }
    }
}

/// The one thread that moves frames, for as long as this value lives.
struct Driver<'a> {
    engine: &'a Engine,
    /// Always there, until it is put back.
    carrier: Option<Box<Carrier>>,
}

impl<'a> Driver<'a> {
    /// Takes the link, if no other thread has it.
    fn take(engine: &'a Engine, mut state: MutexGuard<'_, State>) -> Option<Self> {
        let carrier = state.carrier.take()?;
        Some(Self { engine, carrier: Some(carrier) })
    }

    fn carrier(&mut self) -> &mut Carrier {
        self.carrier.as_mut().expect("it is put back at the end only")
    }

    /// One turn of the loop. Returns whether there may be more to do.
    fn turn(&mut self, now: Instant) -> Result<bool, LinkError> {
        let mut station = self.engine;
        self.carrier().pump.turn(now, &mut station, LIMITS)
    }

    /// Sends what waits, for a bounded time.
    fn transmit_all(&mut self, now: Instant) -> Result<(), LinkError> {
        let mut station = self.engine;
        self.carrier().pump.transmit_until(now, &mut station, now + SEND_WITHIN)
    }

    /// Moves frames until `look` finds something in the state, until `deadline`, or until there is something to deliver.
    fn drive<T>(
        &mut self,
        deadline: Instant,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>, LinkError> {
        let mut spin = Spin::new(self.engine.spin);
        let mut now = Instant::now();
        spin.note(now);
        loop {
            let more = self.turn(now)?;
            let (found, notices) = {
                let mut state = self.engine.lock();
                state.look(now);
                (look(&mut state), !state.inbox.notices.is_empty())
            };
            if found.is_some() || notices || now >= deadline {
                return Ok(found);
            }
            let sleeps = !more && !spin.pause(now);
            if sleeps {
                self.sleep(now, deadline)?;
            }
            now = Instant::now();
            if more || sleeps {
                spin.note(now);
            }
        }
    }

    /// Sleeps until a frame may be there, the bell rings, a timer expires, or `deadline`.
    fn sleep(&mut self, now: Instant, deadline: Instant) -> Result<(), LinkError> {
        let engine = self.engine;
        let carrier = self.carrier();
        if carrier.hear(&mut engine.lock()) {
            return Ok(());
        }
        let until = engine.next_deadline().map_or(deadline, |at| at.min(deadline));
        carrier.pump.sleep(now, [carrier.bell.as_fd()], until)
    }
}

impl Station<Medium> for &Engine {
    fn receive(&mut self, now: Instant, received: Arrived<'_>) {
        self.lock().take(now, received);
    }

    fn transmit(&mut self, now: Instant, buffer: &mut [u8], batch: Batch) -> Option<Sent> {
        self.lock().next_to_send(now, buffer, batch)
    }

    fn peer_gone(&mut self, peer: IpAddr) {
        self.lock_now().lose(peer);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.lock().next_deadline()
    }
}

impl Carrier {
    /// Whether it was signalled; clears the signal.
    fn hear(&mut self, state: &mut State) -> bool {
        let rung = std::mem::take(&mut state.rung);
        if rung {
            // One byte was written when it was rung.
            let _ = self.bell.read(&mut [0]);
        }
        rung
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        let mut state = self.engine.lock();
        // What other threads have posted is sent before the link is put back, unless another thread drives next and sends it.
        while self.carrier().hear(&mut state) && state.waiting.is_empty() && !std::thread::panicking() {
            drop(state);
            // A broken link is reported to the thread that drives next.
            let _reported = self.transmit_all(Instant::now());
            state = self.engine.lock();
        }
        let link = self.carrier.as_ref().and_then(|carrier| carrier.pump.medium().next_event());
        if let (Some(_), Some(carrier)) = (self.engine.pollable.get(), self.carrier.as_mut()) {
            carrier.pump.medium_mut().arm();
        }
        state.carrier = self.carrier.take();
        if let Some(pollable) = self.engine.pollable.get() {
            pollable.arm([link, state.next_deadline()].into_iter().flatten().min());
        }
        state.hand_over();
    }
}
