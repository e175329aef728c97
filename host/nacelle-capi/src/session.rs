// SPDX-License-Identifier: Apache-2.0
//! Calls on a set of regions, and how the last one stands: what both interfaces are made of.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nacelle::{Call, Canceller, Error, FunctionCode};

use crate::edge::{EdgeCode, Failure};
use crate::notifier::Notifier;

/// How the last call stands.
#[derive(Debug, Clone, Default)]
pub(crate) enum State {
    /// There was none yet.
    #[default]
    Ready,
    Running,
    /// It has ended with success.
    Done,
    Failed(Failure),
}

/// Calls on one set of regions.
pub(crate) struct Session {
    call: Call,
    /// Bytes of the regions that come back.
    output_bytes: u64,
    notifier: Option<Arc<Notifier>>,
    pub(crate) state: State,
    /// The result code of the device in its last answer.
    pub(crate) device_result: u32,
}

/// The function with this code.
pub(crate) fn function(code: u32) -> Result<FunctionCode, Failure> {
    let known = u8::try_from(code).ok().and_then(FunctionCode::new);
    known.ok_or_else(|| Failure::invalid(format!("function {code} is not 1 to 127")))
}

impl Session {
    pub(crate) fn new(call: Call, output_bytes: u64) -> Self {
        Self { call, output_bytes, notifier: None, state: State::default(), device_result: 0 }
    }

    pub(crate) fn canceller(&self) -> Canceller {
        self.call.canceller()
    }

    /// Starts a call, with three bytes for the kernel.
    pub(crate) fn invoke(&mut self, user: [u8; 3]) -> Result<(), Failure> {
        if matches!(self.state, State::Running) {
            return Err(Failure {
                hint: "wait for its end first".into(),
                ..Failure::invalid("a call runs on these regions already")
            });
        }
        self.call.invoke_with(user)?;
        (self.state, self.device_result) = (State::Running, 0);
        Ok(())
    }

    /// Whether the call has ended; its error if it has failed. Does not wait.
    pub(crate) fn test(&mut self) -> Result<bool, Failure> {
        self.look(Call::test)
    }

    /// Waits for the end of the call, for `patience` at most.
    pub(crate) fn wait(&mut self, patience: Option<Duration>) -> Result<(), Failure> {
        let until = patience.and_then(|patience| Instant::now().checked_add(patience));
        let ended = self.look(|call| match until {
            Some(until) => call.wait_until(until),
            None => call.wait().map(|()| true),
        })?;
        if ended {
            return Ok(());
        }
        let hint = "wait again, cancel the call, or close it";
        Err(Failure::edge(EdgeCode::Pending, "the call has not ended in this time", hint))
    }

    /// The outcome of the last call; that of one that runs is asked for by `ask`.
    fn look(&mut self, ask: impl FnOnce(&mut Call) -> Result<bool, Error>) -> Result<bool, Failure> {
        if matches!(self.state, State::Running) {
            self.state = match ask(&mut self.call) {
                Ok(false) => return Ok(false),
                Ok(true) => State::Done,
                // It runs on if it has only taken too long.
                Err(error) if self.call.is_running() => return Err(error.into()),
                Err(error) => {
                    self.device_result = device_result(&error);
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

    /// Bytes of outputs that the last call has brought: a device writes them whole, and only if the call succeeds.
    pub(crate) fn received(&self) -> u64 {
        if matches!(self.state, State::Done) { self.output_bytes } else { 0 }
    }

    /// Runs `callback` whenever a call has ended, in place of the one before, until the session ends.
    pub(crate) fn on_finish(&mut self, callback: impl Fn() + Send + Sync + 'static) {
        let notifier = Arc::new(Notifier::new(callback));
        let runner = Arc::clone(&notifier);
        self.call.on_finish(move || runner.run());
        if let Some(before) = self.notifier.replace(notifier) {
            before.close();
        }
    }

    pub(crate) fn report(&self) -> Result<String, Failure> {
        serde_json::to_string(self.call.report()).map_err(|error| Failure::invalid(error.to_string()))
    }

    /// Ends the calls. After this nothing accesses the memory of the regions any more, and no callback runs, whatever is
    /// returned.
    pub(crate) fn close(self) -> Result<(), Failure> {
        let closed = self.call.close();
        if let Some(notifier) = self.notifier {
            notifier.close();
        }
        closed?;
        Ok(())
    }
}

/// The result code that an error stands for, if it is what the device has answered to a call.
pub(crate) fn device_result(error: &Error) -> u32 {
    match error {
        Error::SocketUnavailable { .. } => 1,
        Error::KernelTimeout { .. } => 2,
        Error::UnknownFunction { .. } => 3,
        Error::Kernel { code, .. } => *code,
        _ => 0,
    }
}
