// SPDX-License-Identifier: Apache-2.0
//! Callbacks of the program that are not run any more once what they belong to was closed.

use std::ffi::c_void;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// What a program gives with its callback.
#[derive(Clone, Copy)]
pub(crate) struct Data(pub(crate) *mut c_void);

// SAFETY: the program promises that its callback may be called with it by any thread.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl Data {
    pub(crate) fn get(self) -> *mut c_void {
        self.0
    }
}

/// Lets callbacks of the program run until it is closed.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    idle: Condvar,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// The threads that run one now.
    running: Vec<ThreadId>,
}

/// A callback runs until this is dropped.
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
        // No callback runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a callback, unless it is closed.
    pub(crate) fn run<R>(&self, callback: impl FnOnce() -> R) -> Option<R> {
        {
            let mut state = self.lock();
            if state.closed {
                return None;
            }
            state.running.push(thread::current().id());
        }
        let _inside = Inside(self);
        Some(callback())
    }

    /// Waits for the other threads that run a callback; none runs any more after this.
    pub(crate) fn close(&self) {
        let own = thread::current().id();
        let mut state = self.lock();
        state.closed = true;
        while state.running.iter().any(|id| *id != own) {
            state = self.idle.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A callback, and whether it may be run.
pub(crate) struct Notifier {
    callback: Box<dyn Fn() + Send + Sync>,
    gate: Gate,
}

impl Notifier {
    pub(crate) fn new(callback: impl Fn() + Send + Sync + 'static) -> Self {
        Self { callback: Box::new(callback), gate: Gate::default() }
    }

    /// Runs it, unless it was closed.
    pub(crate) fn run(&self) {
        self.gate.run(&self.callback);
    }

    /// Waits for the other threads that run it; none runs it any more after this.
    pub(crate) fn close(&self) {
        self.gate.close();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_closed_callback_is_not_run_and_a_running_one_is_waited_for() {
        let count = Arc::new(AtomicU32::new(0));
        let (inside, outside) = (mpsc::channel::<()>(), mpsc::channel::<()>());
        let (counted, entered, leave) = (Arc::clone(&count), inside.0, Mutex::new(outside.1));
        let notifier = Arc::new(Notifier::new(move || {
            entered.send(()).unwrap();
            leave.lock().unwrap().recv().unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
        }));
        let runner = Arc::clone(&notifier);
        let running = thread::spawn(move || runner.run());
        inside.1.recv().unwrap();
        let closing = thread::spawn({
            let notifier = Arc::clone(&notifier);
            move || notifier.close()
        });
        thread::sleep(Duration::from_millis(50));
        assert!(!closing.is_finished(), "it waits for the callback that runs");
        outside.0.send(()).unwrap();
        closing.join().unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 1);
        running.join().unwrap();
        notifier.run();
        assert_eq!(count.load(Ordering::SeqCst), 1, "closed");
    }

    #[test]
    fn a_callback_may_close_itself() {
        let own: Arc<Mutex<Option<Arc<Notifier>>>> = Arc::default();
        let inside = Arc::clone(&own);
        let notifier = Arc::new(Notifier::new(move || inside.lock().unwrap().as_ref().unwrap().close()));
        *own.lock().unwrap() = Some(Arc::clone(&notifier));
        notifier.run();
        notifier.run();
        // It owns itself until then.
        *own.lock().unwrap() = None;
    }
}
