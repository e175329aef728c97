// SPDX-License-Identifier: Apache-2.0
//! Time of an endpoint.

use std::time::{Duration, Instant};

/// Counts from the moment it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    /// A clock that begins now.
    #[must_use]
    pub fn start() -> Self {
        Self { epoch: Instant::now() }
    }

    /// This moment, as an endpoint counts it.
    #[must_use]
    pub fn now(&self) -> nacelle_roce::Instant {
        nacelle_roce::Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
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
