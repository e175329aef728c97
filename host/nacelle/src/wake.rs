// SPDX-License-Identifier: Apache-2.0
//! A condition that threads wait for under the lock of the engine's state. To notify costs nothing while none waits.

use std::sync::PoisonError;
use std::time::Duration;

use crate::sync::{AtomicUsize, Condvar, MutexGuard, Ordering};

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

/// Every order in which threads can wait and be woken: `RUSTFLAGS="--cfg loom" cargo test -p nacelle loom`.
#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::Mutex;
    use std::collections::VecDeque;
    use std::sync::Arc;

    /// The times of a model do not pass: a thread that is not woken waits for ever, which fails.
    const EVER: Duration = Duration::MAX;

    #[test]
    fn a_notice_under_the_lock_is_never_missed() {
        loom::model(|| {
            let shared = Arc::new((Mutex::new(false), Wake::default()));
            let waiters: [_; 2] = core::array::from_fn(|_| {
                let shared = Arc::clone(&shared);
                loom::thread::spawn(move || {
                    let mut done = shared.0.lock().unwrap();
                    while !*done {
                        done = shared.1.wait_timeout(done, EVER);
                    }
                })
            });
            let mut done = shared.0.lock().unwrap();
            *done = true;
            shared.1.notify_all();
            drop(done);
            waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        });
    }

    /// The link is with one thread at a time, as in the engine: who puts it back wakes the next that waits for it.
    #[test]
    fn the_link_is_handed_over_in_any_order() {
        struct State {
            link: Option<u32>,
            waiting: VecDeque<Arc<Wake>>,
        }
        loom::model(|| {
            let state = Arc::new(Mutex::new(State { link: Some(0), waiting: VecDeque::new() }));
            let drive = |state: &Mutex<State>| {
                let wake = Arc::new(Wake::default());
                let mut guard = state.lock().unwrap();
                let driven = loop {
                    if let Some(link) = guard.link.take() {
                        break link + 1;
                    }
                    guard.waiting.push_back(Arc::clone(&wake));
                    guard = wake.wait_timeout(guard, EVER);
                    guard.waiting.retain(|waiting| !Arc::ptr_eq(waiting, &wake));
                };
                drop(guard);
                loom::thread::yield_now();
                let mut guard = state.lock().unwrap();
                assert!(guard.link.replace(driven).is_none(), "two threads had the link");
                if let Some(next) = guard.waiting.front() {
                    next.notify_one();
                }
            };
            let threads: [_; 2] = core::array::from_fn(|_| {
                let state = Arc::clone(&state);
                loom::thread::spawn(move || drive(&state))
            });
            drive(&state);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(state.lock().unwrap().link, Some(3));
        });
    }
}
