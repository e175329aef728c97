// SPDX-License-Identifier: Apache-2.0
//! Waits without the interpreter's lock, which signals of Python interrupt.

use std::process;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::error::Failure;

/// How long a signal may go unnoticed.
const SLICE: Duration = Duration::from_millis(50);

/// A time in seconds as Python gives it.
///
/// # Errors
/// If it is negative or no number.
pub(crate) fn duration(seconds: f64, name: &str) -> Result<Duration, Failure> {
    if seconds == f64::INFINITY {
        return Ok(Duration::MAX);
    }
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Failure::invalid(format!("{name} is {seconds} s"), "give seconds, 0 or more"))
}

/// The moment in which a time from now is over; `None` if that is never.
pub(crate) fn deadline_in(time: Option<Duration>) -> Option<Instant> {
    time.and_then(|time| Instant::now().checked_add(time))
}

/// Waits by `wait`, which is given moments until which it waits at most, and returns whether it is over. Returns the same.
pub(crate) fn sliced<E: Send + Into<Failure>>(
    py: Python<'_>,
    deadline: Option<Instant>,
    mut wait: impl FnMut(Instant) -> Result<bool, E> + Send,
) -> Result<bool, Failure> {
    loop {
        let slice = Instant::now() + SLICE;
        let until = deadline.map_or(slice, |deadline| deadline.min(slice));
        if py.detach(|| wait(until)).map_err(Into::into)? {
            return Ok(true);
        }
        py.check_signals()?;
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok(false);
        }
    }
}

/// Does what blocks for as long as the network takes. In the main thread, where Python handles signals, another thread does it, and an
/// exception of a handler ends the wait: then the result is dropped when it is there.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let is_main = rustix::thread::gettid().as_raw_nonzero().get() == process::id().cast_signed();
    if !is_main {
        return Ok(py.detach(work));
    }
    let (done, mut result) = sync_channel(1);
    let started = thread::Builder::new().name("nacelle-wait".into()).spawn(move || {
        // Nobody waits for it any more if a signal has come.
        let _ = done.send(work());
    });
    started
        .map_err(|error| Failure::invalid(format!("the system has no thread left: {error}"), "end other threads"))?;
    loop {
        let receiver = &mut result;
        match py.detach(move || receiver.recv_timeout(SLICE)) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::invalid("a thread of the library has failed", "report this defect"));
            }
        }
    }
}
