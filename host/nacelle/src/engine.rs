// SPDX-License-Identifier: Apache-2.0
//! Carries the frames of one endpoint for all threads that wait for something of it.
//!
//! The endpoint, and what has happened at it, are the [`State`]. Its lock is held to compute only, for one frame at a time.
//! The link lies in the state while nobody waits. A thread that has to wait takes it out and *drives*: it alone sends,
//! receives and sleeps, without the lock, and files what happens for all. Others that wait sleep meanwhile, each until its own
//! thing has happened. When the driver's own wait is over, it puts the link back and wakes another, which drives then.
//! Whoever changes the endpoint while another drives rings a bell, so that the driver sends what is to be sent and looks at the
//! timers again.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nacelle_link::{Link, LinkError, MAX_FRAME, wait_readable};
use nacelle_roce::{ConnId, Endpoint, EndpointConfig, Phase};

use crate::inbox::Inbox;
use crate::report::Mark;

/// Frames that one look takes at most.
const LOOK_FRAMES: usize = 64;
/// Frames that are sent before one is received again: the other side may be waiting for room as well.
const BURST: usize = 16;
/// How long a thread that does not wait may send.
const SEND_WITHIN: Duration = Duration::from_millis(20);
/// How often a thread that waits for what nobody files looks again.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// An endpoint, and all that its threads share.
pub(crate) struct Engine {
    state: Mutex<State>,
    /// The end of the bell that rings.
    bell: UnixStream,
}

/// What the lock protects.
pub(crate) struct State {
    pub(crate) endpoint: Endpoint,
    pub(crate) inbox: Inbox,
    epoch: Instant,
    /// Packets and bytes sent, packets and bytes received.
    traffic: [u64; 4],
    /// Taken out by the driver.
    carrier: Option<Carrier>,
    /// Whether the bell was rung since the driver looked.
    rung: bool,
    /// Threads that wait and do not drive.
    waiting: VecDeque<Arc<Condvar>>,
}

/// What moves frames.
struct Carrier {
    link: Box<dyn Link>,
    rx: Vec<u8>,
    tx: Vec<u8>,
    /// The end of the bell that is heard.
    bell: UnixStream,
}

impl State {
    /// The endpoint's time.
    pub(crate) fn now(&self) -> nacelle_roce::Instant {
        nacelle_roce::Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    /// This moment, and what has passed until now.
    pub(crate) fn mark(&self) -> Mark {
        Mark { at: Instant::now(), traffic: self.traffic }
    }

    /// Writes the next frame to send, and files what is due by time.
    fn next_frame(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let (now, before) = (self.now(), self.mark());
        let length = self.endpoint.poll_transmit(now, buffer);
        if let Some(length) = length {
            self.traffic[0] += 1;
            self.traffic[1] += length as u64;
        }
        self.file(before);
        length
    }

    /// Takes a frame that has come, and files what it causes.
    fn take_frame(&mut self, frame: &[u8]) {
        let (now, before) = (self.now(), self.mark());
        self.traffic[2] += 1;
        self.traffic[3] += frame.len() as u64;
        // What is wrong with a frame, the endpoint's counters say.
        let _counted_there = self.endpoint.handle(now, frame);
        self.file(before);
    }

    fn file(&mut self, before: Mark) {
        let now = self.mark();
        self.inbox.take(&mut self.endpoint, before, now);
    }

    fn ring(&mut self, mut bell: &UnixStream) {
        if self.carrier.is_none() && !self.rung {
            self.rung = true;
            // It holds one byte at most: there is room.
            let _ = bell.write(&[0]);
        }
    }

    /// Wakes a thread that is to drive, if nobody does.
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
    pub(crate) fn new(link: Box<dyn Link>, config: EndpointConfig) -> Result<Self, LinkError> {
        let io = |source| LinkError::Io { what: "make a socket".into(), source };
        let (bell, heard) = UnixStream::pair().map_err(io)?;
        bell.set_nonblocking(true).map_err(io)?;
        heard.set_nonblocking(true).map_err(io)?;
        let endpoint = Endpoint::new(config);
        let tx = vec![0; endpoint.frame_len()];
        let state = State {
            endpoint,
            inbox: Inbox::default(),
            epoch: Instant::now(),
            traffic: [0; 4],
            carrier: Some(Carrier { link, rx: vec![0; MAX_FRAME], tx, bell: heard }),
            rung: false,
            waiting: VecDeque::new(),
        };
        Ok(Self { state: Mutex::new(state), bell })
    }

    /// The state. Nobody sleeps or does I/O under this lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere left no half-made state that a call could see: each call looks at its own session only.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the endpoint, and sends what that causes: now, or by the thread that drives. Does not wait for anything to come.
    ///
    /// # Errors
    /// If the link is broken.
    pub(crate) fn act<T>(&self, change: impl FnOnce(&mut State) -> T) -> Result<T, LinkError> {
        let mut state = self.lock();
        let before = state.mark();
        let result = change(&mut state);
        state.file(before);
        state.ring(&self.bell);
        if let Some(mut driver) = Driver::take(self, state) {
            driver.transmit_all(Instant::now() + SEND_WITHIN)?;
        }
        Ok(result)
    }

    /// Moves the frames that can be moved at once, unless another thread does so anyway.
    ///
    /// # Errors
    /// If the link is broken.
    pub(crate) fn look(&self) -> Result<(), LinkError> {
        let Some(mut driver) = Driver::take(self, self.lock()) else { return Ok(()) };
        let until = Instant::now() + SEND_WITHIN;
        for _ in 0..LOOK_FRAMES {
            let busy = driver.transmit()?;
            if !(driver.receive()? || busy) || Instant::now() >= until {
                break;
            }
        }
        driver.transmit().map(|_| ())
    }

    /// Waits until `look` makes something of the state, for which it is asked whenever `wake` is notified; `None` if it did not
    /// until `deadline`.
    ///
    /// # Errors
    /// If the link is broken.
    pub(crate) fn wait<T>(
        &self,
        wake: &Arc<Condvar>,
        deadline: Instant,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>, LinkError> {
        let mut state = self.lock();
        loop {
            let found = look(&mut state);
            if found.is_some() || Instant::now() >= deadline {
                state.hand_over();
                return Ok(found);
            }
            if state.carrier.is_some() {
                let Some(mut driver) = Driver::take(self, state) else { unreachable!("the link was there") };
                return driver.drive(deadline, look);
            }
            state.waiting.push_back(Arc::clone(wake));
            let left = deadline.saturating_duration_since(Instant::now());
            (state, _) = wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = state.waiting.iter().position(|waiting| Arc::ptr_eq(waiting, wake)) {
                state.waiting.remove(place);
            }
        }
    }

    /// Waits until no connection is about to end. Returns whether that was before `deadline`.
    ///
    /// # Errors
    /// If the link is broken.
    pub(crate) fn settle(&self, deadline: Instant) -> Result<bool, LinkError> {
        let nobody = Arc::default();
        loop {
            let tick = deadline.min(Instant::now() + LOOK_EVERY);
            let ending =
                |(_, info): (ConnId, nacelle_roce::ConnInfo)| matches!(info.phase, Phase::Lingering | Phase::DreqSent);
            let settled =
                self.wait(&nobody, tick, |state| (!state.endpoint.connections().any(ending)).then_some(()))?;
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
    carrier: Option<Carrier>,
}

impl<'a> Driver<'a> {
    /// Takes the link, if nobody else has it.
    fn take(engine: &'a Engine, mut state: MutexGuard<'_, State>) -> Option<Self> {
        let carrier = state.carrier.take()?;
        Some(Self { engine, carrier: Some(carrier) })
    }

    fn carrier(&mut self) -> &mut Carrier {
        self.carrier.as_mut().expect("it is put back at the end only")
    }

    /// Sends some of what waits. Returns whether more may wait.
    fn transmit(&mut self) -> Result<bool, LinkError> {
        let engine = self.engine;
        let carrier = self.carrier();
        for _ in 0..BURST {
            let Some(length) = engine.lock().next_frame(&mut carrier.tx) else { return Ok(false) };
            carrier.link.send(&carrier.tx[..length])?;
        }
        Ok(true)
    }

    /// Sends what waits, until `deadline` at most.
    fn transmit_all(&mut self, deadline: Instant) -> Result<(), LinkError> {
        while self.transmit()? && Instant::now() < deadline {}
        Ok(())
    }

    /// Takes a frame that is there. Returns whether there was one.
    fn receive(&mut self) -> Result<bool, LinkError> {
        let engine = self.engine;
        let carrier = self.carrier();
        let Some(length) = carrier.link.recv(&mut carrier.rx, Instant::now())? else { return Ok(false) };
        engine.lock().take_frame(&carrier.rx[..length]);
        Ok(true)
    }

    /// Carries frames until `look` makes something of the state, or until `deadline`.
    fn drive<T>(
        &mut self,
        deadline: Instant,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>, LinkError> {
        loop {
            let busy = self.transmit()?;
            let received = self.receive()?;
            let found = look(&mut self.engine.lock());
            if found.is_some() || Instant::now() >= deadline {
                // What was received may be answered at once.
                self.transmit()?;
                return Ok(found);
            }
            if !(received || busy) {
                self.sleep(deadline)?;
            }
        }
    }

    /// Sleeps until a frame may be there, the bell rings, a timer is due, or `deadline`.
    fn sleep(&mut self, deadline: Instant) -> Result<(), LinkError> {
        let engine = self.engine;
        let carrier = self.carrier();
        let timer = {
            let mut state = engine.lock();
            if carrier.hear(&mut state) {
                return Ok(());
            }
            state.endpoint.next_deadline().map(|at| state.epoch + Duration::from_nanos(at.as_nanos()))
        };
        let until = [timer, carrier.link.next_event()].into_iter().flatten().fold(deadline, Instant::min);
        wait_readable(&[carrier.link.poll_fd(), carrier.bell.as_fd()], Some(until))
            .map_err(|source| LinkError::Io { what: "wait for frames".into(), source })
    }
}

impl Carrier {
    /// Whether the bell was rung; it is silent again then.
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
        // What others want to be sent is sent before the link is left alone. Another driver would do that too.
        while self.carrier().hear(&mut state) && state.waiting.is_empty() && !std::thread::panicking() {
            drop(state);
            // A link that is broken tells whoever drives next.
            let _ = self.transmit_all(Instant::now() + SEND_WITHIN);
            state = self.engine.lock();
        }
        state.carrier = self.carrier.take();
        state.hand_over();
    }
}
