// SPDX-License-Identifier: Apache-2.0
//! A condition that threads wait for under the lock of the engine's state. To notify costs nothing while none waits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, MutexGuard, PoisonError};
use std::time::Duration;

/// The condition. All of its functions are called under the lock.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    condition: Condvar,
    waiting: AtomicUsize,
}

impl Wake {
    /// Waits for a notice, for `time` at most.
    pub(crate) fn wait_timeout<'a, T>(&self, guard: MutexGuard<'a, T>, time: Duration) -> MutexGuard<'a, T> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let (guard, _) = self.condition.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// Wakes a thread that waits.
    pub(crate) fn notify_one(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.condition.notify_one();
        }
    }

    /// Wakes all threads that wait.
    pub(crate) fn notify_all(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.condition.notify_all();
        }
    }
}
