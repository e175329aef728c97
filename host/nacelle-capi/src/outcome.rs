// SPDX-License-Identifier: Apache-2.0
//! How something stands that runs and ends: the calls of a session, and a transfer.

use std::time::{Duration, Instant};

use nacelle::Error;

use crate::edge::{EdgeCode, Failure};

/// How it stands, as the last look has found it.
#[derive(Debug, Clone, Default)]
pub(crate) enum State {
    /// It was not started.
    #[default]
    Ready,
    Running,
    /// It has ended with success.
    Done,
    Failed(Failure),
}

impl State {
    /// Its number in `enum nacelle_call_state`.
    pub(crate) fn number(&self) -> u32 {
        match self {
            Self::Ready => 0,
            Self::Running => 1,
            Self::Done => 2,
            Self::Failed(_) => 3,
        }
    }
}

/// How it stands, and what has come of it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) state: State,
    /// The result code in the last answer of the device, or of the owner of a window.
    pub(crate) result: u32,
}

impl Outcome {
    /// It runs from now on.
    pub(crate) fn running() -> Self {
        Self { state: State::Running, result: 0 }
    }

    /// Whether it has ended, and its error if it has failed: if that is not known, `ask` says it, and whether it runs on after an error,
    /// because it has only taken too long.
    pub(crate) fn look(&mut self, ask: impl FnOnce() -> (Result<bool, Error>, bool)) -> Result<bool, Failure> {
        if matches!(self.state, State::Running) {
            self.state = match ask() {
                (Ok(false), _) => return Ok(false),
                (Ok(true), _) => State::Done,
                (Err(error), true) => return Err(error.into()),
                (Err(error), false) => {
                    self.result = result(&error);
                    State::Failed(error.into())
                }
            };
        }
        match &self.state {
            State::Failed(failure) => Err(failure.clone()),
            State::Done | State::Running => Ok(true),
            State::Ready => Err(Failure {
                hint: "start one first".into(),
                ..Failure::invalid("no call was started on these regions")
            }),
        }
    }
}

/// Waits for the end of `it`, for `patience` at most. Returns whether it has come.
pub(crate) fn wait<T>(
    it: &mut T,
    patience: Option<Duration>,
    wait_until: fn(&mut T, Instant) -> Result<bool, Error>,
    wait: fn(&mut T) -> Result<(), Error>,
) -> Result<bool, Error> {
    match patience.and_then(|patience| Instant::now().checked_add(patience)) {
        Some(until) => wait_until(it, until),
        None => wait(it).map(|()| true),
    }
}

/// The result of a wait for `what`.
pub(crate) fn waited(ended: bool, what: &str, hint: &str) -> Result<(), Failure> {
    let pending = || Failure::edge(EdgeCode::Pending, format!("the {what} has not ended in this time"), hint);
    if ended { Ok(()) } else { Err(pending()) }
}

/// The result code that an error stands for, if it is what the device has answered.
fn result(error: &Error) -> u32 {
    match error {
        Error::SocketUnavailable { .. } => 1,
        Error::KernelTimeout { .. } => 2,
        Error::UnknownFunction { .. } => 3,
        Error::Kernel { code, .. } => *code,
        _ => 0,
    }
}
