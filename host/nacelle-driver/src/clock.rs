// SPDX-License-Identifier: Apache-2.0
//! Time of an endpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Counts from the moment it was made, or as its [`ClockHand`] says.
#[derive(Clone, Debug)]
pub struct Clock {
    epoch: Instant,
    /// The time of a clock that a program sets, in nanoseconds.
    hand: Option<Arc<AtomicU64>>,
}

/// Sets a clock.
#[derive(Debug)]
pub struct ClockHand(Arc<AtomicU64>);

impl ClockHand {
    /// It is `now` from now on, also for clones of the clock.
    pub fn set(&self, now: nacelle_roce::Instant) {
        self.0.store(now.as_nanos(), Ordering::Relaxed);
    }
}

impl Clock {
    /// A clock that begins now.
    #[must_use]
    pub fn start() -> Self {
        Self { epoch: Instant::now(), hand: None }
    }

    /// A clock that stands still until it is set: for simulations in virtual time.
    #[must_use]
    pub fn set_by_hand() -> (Self, ClockHand) {
        let hand = Arc::new(AtomicU64::new(0));
        (Self { epoch: Instant::now(), hand: Some(Arc::clone(&hand)) }, ClockHand(hand))
    }

    /// This moment, as an endpoint counts it.
    #[must_use]
    pub fn now(&self) -> nacelle_roce::Instant {
        nacelle_roce::Instant::from_nanos(match &self.hand {
            Some(hand) => hand.load(Ordering::Relaxed),
            None => self.epoch.elapsed().as_nanos() as u64,
        })
    }

    /// This moment in the system's time, by this clock.
    #[must_use]
    pub fn system_now(&self) -> Instant {
        self.system_at(Instant::now())
    }

    /// `now`, a moment of the system's time that has just been read, by this clock.
    #[must_use]
    pub fn system_at(&self, now: Instant) -> Instant {
        match &self.hand {
            Some(_) => self.at(self.now()),
            None => now,
        }
    }

    /// A moment of the system's time, as an endpoint counts it.
    #[must_use]
    pub fn of(&self, moment: Instant) -> nacelle_roce::Instant {
        nacelle_roce::Instant::from_nanos(moment.saturating_duration_since(self.epoch).as_nanos() as u64)
    }

    /// A moment of an endpoint in the system's time.
    #[must_use]
    pub fn at(&self, moment: nacelle_roce::Instant) -> Instant {
        self.epoch + Duration::from_nanos(moment.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_by_hand_says_what_it_was_set_to() {
        let (clock, hand) = Clock::set_by_hand();
        assert_eq!(clock.now(), nacelle_roce::Instant::ZERO);
        let day = nacelle_roce::Instant::from_nanos(86_400_000_000_000);
        hand.set(day);
        assert_eq!((clock.now(), clock.clone().now()), (day, day));
        assert_eq!(clock.of(clock.system_now()), day);
        let now = Instant::now();
        assert_eq!((clock.of(clock.system_at(now)), Clock::start().system_at(now)), (day, now));
    }
}
