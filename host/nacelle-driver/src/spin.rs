// SPDX-License-Identifier: Apache-2.0
//! Looking for more before sleeping.

use std::time::{Duration, Instant};

/// For so long the processor is kept: a peer that runs beside this thread answers within it.
const KEEP: Duration = Duration::from_micros(15);

/// How long a thread looks for more since something moved last. First it keeps the processor; then it gives it to other threads
/// between two looks, as the peer may wait for this very one.
#[derive(Clone, Copy, Debug)]
pub struct Spin {
    limit: Duration,
    moved: Option<Instant>,
}

impl Spin {
    /// Looks for more for up to `limit`.
    #[must_use]
    pub const fn new(limit: Duration) -> Self {
        Self { limit, moved: None }
    }

    /// Something has moved at `now`.
    pub fn note(&mut self, now: Instant) {
        if !self.limit.is_zero() {
            self.moved = Some(now);
        }
    }

    /// Whether something has moved, and it was not yet time to sleep.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.moved.is_some()
    }

    /// The pause between two looks, the first of which was at `now`. Returns false, at once, if it is time to sleep.
    pub fn pause(&mut self, now: Instant) -> bool {
        match self.moved.map(|at| now.saturating_duration_since(at)) {
            Some(since) if since < self.limit.min(KEEP) => std::hint::spin_loop(),
            Some(since) if since < self.limit => std::thread::yield_now(),
            _ => {
                self.moved = None;
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_for_as_long_as_it_may_after_the_last_movement() {
        let mut spin = Spin::new(Duration::from_millis(20));
        let began = Instant::now();
        let after = |millis| began + Duration::from_millis(millis);
        assert!(!spin.is_on() && !spin.pause(began), "nothing has moved");
        spin.note(began);
        assert!(spin.pause(began) && spin.pause(after(10)));
        spin.note(after(15));
        assert!(spin.pause(after(34)));
        assert!(!spin.pause(after(35)) && !spin.is_on());
        assert!(!spin.pause(after(36)));
        let mut never = Spin::new(Duration::ZERO);
        never.note(began);
        assert!(!never.is_on() && !never.pause(began));
    }
}
