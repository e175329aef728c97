// SPDX-License-Identifier: Apache-2.0
//! Calls on a set of regions, and how the last one stands: what both interfaces are made of.

use std::sync::Arc;
use std::time::Duration;

use nacelle::{Call, Canceller, Error, FunctionCode};

use crate::edge::Failure;
use crate::notifier::Notifier;
use crate::outcome::{self, Outcome, State};

/// Calls on one set of regions.
pub(crate) struct Session {
    call: Call,
    /// Bytes of the regions that come back.
    output_bytes: u64,
    notifier: Option<Arc<Notifier>>,
    /// How the last call stands.
    pub(crate) outcome: Outcome,
}

/// The function with this code.
pub(crate) fn function(code: u32) -> Result<FunctionCode, Failure> {
    let known = u8::try_from(code).ok().and_then(FunctionCode::new);
    known.ok_or_else(|| Failure::invalid(format!("function {code} is not 1 to 127")))
}

impl Session {
    pub(crate) fn new(call: Call, output_bytes: u64) -> Self {
        Self { call, output_bytes, notifier: None, outcome: Outcome::default() }
    }

    pub(crate) fn canceller(&self) -> Canceller {
        self.call.canceller()
    }

    /// Starts a call, with three bytes for the kernel.
    pub(crate) fn invoke(&mut self, user: [u8; 3]) -> Result<(), Failure> {
        if matches!(self.outcome.state, State::Running) {
            return Err(Failure {
                hint: "wait for its end first".into(),
                ..Failure::invalid("a call runs on these regions already")
            });
        }
        self.call.invoke_with(user)?;
        self.outcome = Outcome::running();
        Ok(())
    }

    /// Whether the call has ended; its error if it has failed. Does not wait.
    pub(crate) fn test(&mut self) -> Result<bool, Failure> {
        self.look(Call::test)
    }

    /// Waits for the end of the call, for `patience` at most.
    pub(crate) fn wait(&mut self, patience: Option<Duration>) -> Result<(), Failure> {
        let ended = self.look(|call| outcome::wait(call, patience, Call::wait_until, Call::wait))?;
        outcome::waited(ended, "call", "wait again, cancel the call, or close it")
    }

    /// The outcome of the last call; that of one that runs is asked for by `ask`.
    fn look(&mut self, ask: impl FnOnce(&mut Call) -> Result<bool, Error>) -> Result<bool, Failure> {
        let call = &mut self.call;
        self.outcome.look(|| (ask(call), call.is_running()))
    }

    /// Bytes of outputs that the last call has brought: a device writes them whole, and only if the call succeeds.
    pub(crate) fn received(&self) -> u64 {
        if matches!(self.outcome.state, State::Done) { self.output_bytes } else { 0 }
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
