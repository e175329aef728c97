// SPDX-License-Identifier: Apache-2.0
//! A thread that makes progress.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar};
use std::thread::{self, JoinHandle};

use super::Engine;
use crate::inbox::far;

/// The thread. It ends when this value is dropped, or when the link breaks.
pub(crate) struct ProgressThread {
    engine: Arc<Engine>,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

/// Tells the thread to end.
#[derive(Default)]
struct Stop {
    wanted: AtomicBool,
    wake: Arc<Condvar>,
}

impl ProgressThread {
    /// # Errors
    /// If the system has no threads left.
    pub(crate) fn start(engine: Arc<Engine>) -> io::Result<Self> {
        let stop = Arc::new(Stop::default());
        let (driven, seen) = (Arc::clone(&engine), Arc::clone(&stop));
        engine.lock().is_driven = true;
        let thread = thread::Builder::new().name("nacelle-progress".into()).spawn(move || {
            let stopped = || seen.wanted.load(Ordering::Relaxed).then_some(());
            // With a broken link all calls have ended, and nothing is left to move.
            while let Ok(None) = driven.wait(&seen.wake, far(), |_| stopped()) {}
            driven.lock().is_driven = false;
        })?;
        Ok(Self { engine, stop, thread: Some(thread) })
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        self.stop.wanted.store(true, Ordering::Relaxed);
        self.engine.nudge(&self.stop.wake);
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // A panic of a callback has been reported by its thread.
            let _ = thread.join();
        }
    }
}
