// SPDX-License-Identifier: Apache-2.0
//! Guest time: guests of User-mode Linux whose clock is that of simulated devices, however long these take to simulate.
//!
//! A guest that is started with `time-travel=ext:NUMBER:SOCKET` asks a *calendar* for each step of its clock. Here the calendar is the devices: when
//! all guests wait, device time passes up to the earliest moment that one of them has asked for, or until a card interrupts its guest before.
//! One thread does all of it, so the order of everything is fixed. See docs/reference/guest-time.md.
//!
//! - [`calendar`]: whose turn it is
//! - [`connections`]: the guests' sockets
//! - [`devices`]: what devices are for this loop; two simulated ones
//! - [`world`], [`card`]: how their time passes, and how a driver reaches their cards

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nacelle_slot::channel;
use nacelle_vhost::{BackendError, Listener};
use rustix::event::{PollFd, PollFlags};

mod calendar;
mod card;
mod connections;
mod devices;
mod protocol;
mod world;

#[cfg(test)]
mod tests;

pub use calendar::Violation;
use calendar::{Calendar, Next};
use connections::{Connections, Said};
use devices::Devices;
pub use devices::{CardPair, DeviceCounters};

/// How long a request to end, or a guest that has ended, may go unnoticed.
const TICK: Duration = Duration::from_millis(100);
/// Device time that passes in one go, in nanoseconds: then requests to end are looked for.
const SLICE: u64 = 10_000_000;

/// Bounds of a run.
#[derive(Debug, Clone, Copy)]
pub struct GuestTimeConfig {
    /// Guests that take part: numbers 0 to this less 1.
    pub guests: usize,
    /// How long one may run, by the clock on the wall, before the run is given up.
    pub patience: Duration,
    /// When the run ends at the latest, in nanoseconds of device time.
    pub limit: u64,
    /// How long all guests may sleep with nothing to wake them, in nanoseconds of device time, before the run is given up.
    pub sleep: u64,
    /// The time of day that guests begin with, in nanoseconds since 1970.
    pub time_of_day: u64,
}

/// Why a run has ended before its guests did.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuestTimeError {
    /// A guest does not keep to the protocol.
    #[error("guest {guest} does not keep to the protocol of time travel: {violation}")]
    Protocol {
        /// Which.
        guest: usize,
        /// What it has done.
        violation: Violation,
    },
    /// A guest does not come, or neither waits nor ends.
    #[error("guest {guest} has run for {} s, or has not come: time stands still meanwhile", patience.as_secs())]
    Silent {
        /// Which.
        guest: usize,
        /// How long that was.
        patience: Duration,
    },
    /// A guest that waits sends to its card all the same, without end.
    #[error("a guest that waits has sent to its card for {} s, which holds time up", patience.as_secs())]
    Flood {
        /// How long that was.
        patience: Duration,
    },
    /// A guest does not answer an interrupt.
    #[error("a guest has not answered an interrupt of its card for {} s", patience.as_secs())]
    Unanswered {
        /// How long that was.
        patience: Duration,
    },
    /// A guest has found its card, and asks for no time.
    #[error("guest {guest} does not ask for its time: its kernel has no CONFIG_UML_TIME_TRAVEL_SUPPORT")]
    Untimed {
        /// Which.
        guest: usize,
    },
    /// Nothing can happen any more.
    #[error("all guests sleep, and nothing wakes them")]
    Asleep,
    /// The run has taken too long.
    #[error("the guests have not ended within {} ms of device time", .0 / 1_000_000)]
    Limit(u64),
    /// It was asked to end.
    #[error("it was interrupted")]
    Stopped,
    /// A guest's process has died.
    #[error("{0}")]
    Died(String),
    /// A card cannot be served.
    #[error(transparent)]
    Card(#[from] BackendError),
    /// The system.
    #[error("the guests' clock cannot be served: {0}")]
    System(#[from] io::Error),
}

/// What a run was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestTimeSummary {
    /// When the last guest ended, in nanoseconds of device time.
    pub now: u64,
    /// How often guests were told to run.
    pub runs: u32,
    /// Messages of guests to the calendar.
    pub messages: u64,
}

/// A run: some guests, and devices that are their clock.
pub struct GuestTime<D = CardPair> {
    config: GuestTimeConfig,
    calendar: Calendar,
    connections: Connections,
    devices: D,
    /// Up to where device time has passed.
    reached: u64,
}

impl GuestTime<CardPair> {
    /// Guests find their clock at `listener`, and begin when all have come.
    #[must_use]
    pub fn new(config: GuestTimeConfig, listener: Listener, devices: CardPair) -> Self {
        Self::with(config, listener, devices)
    }

    /// The devices.
    #[must_use]
    pub fn devices(&self) -> &CardPair {
        &self.devices
    }
}

#[expect(private_bounds, reason = "there are other devices in tests only")]
impl<D: Devices> GuestTime<D> {
    fn with(config: GuestTimeConfig, listener: Listener, devices: D) -> Self {
        let calendar = Calendar::new(config.guests, config.time_of_day);
        Self { config, calendar, connections: Connections::new(listener, config.guests), devices, reached: 0 }
    }

    /// What there has been so far.
    pub fn summary(&self) -> GuestTimeSummary {
        GuestTimeSummary { now: self.calendar.now(), runs: self.calendar.runs(), messages: self.connections.messages() }
    }

    /// Runs the guests until all have ended. `look` is called now and then: it gives the numbers of guests whose processes have ended in order, and an
    /// error if one has died.
    ///
    /// # Errors
    /// [`GuestTimeError`] says why the run has ended before. Guests that still run are not told; their sockets close with this value.
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        mut look: impl FnMut() -> Result<Vec<usize>, GuestTimeError>,
    ) -> Result<(), GuestTimeError> {
        let mut since = Instant::now();
        let mut looked = since;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(GuestTimeError::Stopped);
            }
            if looked.elapsed() >= TICK {
                looked = Instant::now();
                look()?.into_iter().for_each(|guest| self.calendar.gone(guest));
            }
            // All that guests have sent comes before time passes.
            if self.serve(Duration::ZERO)? {
                if since.elapsed() > self.config.patience {
                    self.give_up()?;
                }
                continue;
            }
            match self.calendar.next() {
                Next::Over => return Ok(()),
                Next::Busy(_) => {
                    self.serve(TICK)?;
                    if since.elapsed() > self.config.patience {
                        self.give_up()?;
                    }
                }
                Next::Run(guest, time) => {
                    self.step(Some((guest, time)))?;
                    since = Instant::now();
                }
                Next::Asleep => {
                    self.step(None)?;
                    since = Instant::now();
                }
            }
        }
    }

    /// The error of a guest that holds all others up.
    fn give_up(&self) -> Result<(), GuestTimeError> {
        match self.calendar.next() {
            Next::Busy(guest) => Err(GuestTimeError::Silent { guest, patience: self.config.patience }),
            _ => Err(GuestTimeError::Flood { patience: self.config.patience }),
        }
    }

    /// Does what guests have asked for; waits for that, `wait` at most. Whether there was something.
    fn serve(&mut self, wait: Duration) -> Result<bool, GuestTimeError> {
        let (clock, cards) = {
            let (clock, cards) = (self.connections.fds(), self.devices.fds());
            let count = clock.len();
            let all = clock.into_iter().chain(cards);
            let mut fds: Vec<PollFd<'_>> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            channel::wait(&mut fds, Some(wait))?;
            let ready = |fds: &[PollFd<'_>]| fds.iter().any(channel::is_ready);
            (ready(&fds[..count]), ready(&fds[count..]))
        };
        if cards {
            self.devices.turn()?;
            for guest in 0..self.config.guests {
                // It asks for its time before it looks for devices.
                if self.devices.has_guest(guest) && !self.calendar.has_come(guest) && !clock {
                    return Err(GuestTimeError::Untimed { guest });
                }
            }
        }
        if clock {
            let calendar = &mut self.calendar;
            self.connections.serve(|said| match said {
                Said::Begins(guest, message) => calendar.begins(guest, message).map(|()| None),
                Said::Message(guest, message) => calendar.handle(guest, message),
                Said::Gone(guest) => {
                    calendar.gone(guest);
                    Ok(None)
                }
            })?;
        }
        while let Some((guest, answer)) = self.calendar.admit() {
            self.connections.send(guest, answer);
        }
        Ok(clock || cards)
    }

    /// All guests wait: lets time pass until something happens, or until this guest is to run; or a piece of that time.
    fn step(&mut self, request: Option<(usize, u64)>) -> Result<(), GuestTimeError> {
        let limit = self.config.limit;
        let end = request.map_or(self.calendar.now().saturating_add(self.config.sleep), |(_, time)| time).min(limit);
        let until = end.min(self.reached.saturating_add(SLICE));
        let due = self.devices.advance(until);
        self.reached = due.unwrap_or(until).max(self.calendar.now());
        if let Some(due) = due {
            self.calendar.reach(due);
            self.devices.interrupt()?;
            return self.answered();
        }
        if until < end {
            return Ok(());
        }
        match request {
            Some((guest, time)) if time <= limit => {
                let message = self.calendar.run(guest);
                self.connections.send(guest, message);
                Ok(())
            }
            None if end < limit => Err(GuestTimeError::Asleep),
            _ => Err(GuestTimeError::Limit(limit)),
        }
    }

    /// Waits until guests that were interrupted have answered: they ask for the time meanwhile, and when they are to run.
    fn answered(&mut self) -> Result<(), GuestTimeError> {
        let since = Instant::now();
        while self.devices.is_called() {
            self.serve(TICK)?;
            if since.elapsed() > self.config.patience {
                return Err(GuestTimeError::Unanswered { patience: self.config.patience });
            }
        }
        Ok(())
    }
}
