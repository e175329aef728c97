// SPDX-License-Identifier: Apache-2.0
//! Functions of the program that are not run any more once what they belong to was closed.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Lets functions of a program run, by any threads, until it is closed.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    idle: Condvar,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    /// The threads that run one now.
    running: Vec<ThreadId>,
}

/// A function runs until this is dropped.
struct Inside<'a>(&'a Gate);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let own = state.running.iter().position(|id| *id == thread::current().id());
        own.map(|at| state.running.swap_remove(at));
        self.0.idle.notify_all();
    }
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No function runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a function, unless it is closed.
    pub fn run<R>(&self, function: impl FnOnce() -> R) -> Option<R> {
        {
            let mut state = self.lock();
            if state.closed {
                return None;
            }
            state.running.push(thread::current().id());
        }
        let _inside = Inside(self);
        Some(function())
    }

    /// Closes it: no function begins any more. Waits for those that other threads run, for `patience` at most; a thread does not wait for
    /// the one that it runs itself. Returns whether others have ended.
    pub fn close(&self, patience: Duration) -> bool {
        let (own, until) = (thread::current().id(), Instant::now().checked_add(patience));
        let mut state = self.lock();
        state.closed = true;
        while state.running.iter().any(|id| *id != own) {
            state = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => self.idle.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return false,
                Some(left) => self.idle.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        true
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_closed_gate_runs_nothing_and_what_runs_is_waited_for() {
        let gate = Arc::new(Gate::default());
        let ((entered, inside), (leave, outside)) = (channel(), channel::<()>());
        let runs = Arc::clone(&gate);
        let running = thread::spawn(move || {
            runs.run(|| {
                entered.send(()).unwrap();
                outside.recv().unwrap();
            })
        });
        inside.recv().unwrap();
        assert!(!gate.close(Duration::from_millis(20)), "it runs longer than this waits");
        assert!(gate.is_closed() && gate.run(|| ()).is_none());
        let closes = Arc::clone(&gate);
        let closing = thread::spawn(move || closes.close(Duration::MAX));
        thread::sleep(Duration::from_millis(50));
        assert!(!closing.is_finished(), "it waits for what runs");
        leave.send(()).unwrap();
        assert!(closing.join().unwrap() && running.join().unwrap().is_some());
    }

    #[test]
    fn what_runs_may_close_its_own_gate() {
        let gate = Gate::default();
        assert_eq!(gate.run(|| gate.close(Duration::MAX)), Some(true));
        assert_eq!(gate.run(|| ()), None);
    }
}
