// SPDX-License-Identifier: Apache-2.0
//! Calls on a set of regions, and how the last one stands: what both interfaces are made of.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nacelle::{Device, Error, FunctionCode, Region, Step};

use crate::edge::{EdgeCode, Failure};

/// How long a thread sleeps at most between two looks at a call.
const LOOK_EVERY: Duration = Duration::from_micros(200);

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

/// Calls of one function on one set of regions.
pub(crate) struct Session {
    call: nacelle::Call,
    device: Arc<Device>,
    pub(crate) state: State,
    /// The result code of the device in its last answer.
    pub(crate) device_result: u32,
    /// Whether the last look found that nothing had moved for too long, and the kernel was at work.
    pub(crate) kernel_is_slow: bool,
}

impl Session {
    pub(crate) fn create(device: Arc<Device>, function: u32, regions: Vec<Region>) -> Result<Self, Failure> {
        let code = u8::try_from(function).ok().and_then(FunctionCode::new);
        let code = code.ok_or_else(|| Failure::invalid(format!("function {function} is not 1 to 127")))?;
        let call = device.create(code, regions)?;
        Ok(Self { call, device, state: State::default(), device_result: 0, kernel_is_slow: false })
    }

    /// Starts a call, with three bytes for the kernel.
    pub(crate) fn invoke(&mut self, user: [u8; 3]) -> Result<(), Failure> {
        if matches!(self.state, State::Running) {
            return Err(Failure {
                hint: "wait for its end first".into(),
                ..Failure::invalid("a call runs on these regions already")
            });
        }
        match self.call.invoke_with(user) {
            Ok(()) => {
                (self.state, self.device_result) = (State::Running, 0);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the call has ended; its error if it has failed. Does not wait.
    pub(crate) fn test(&mut self) -> Result<bool, Failure> {
        match &self.state {
            State::Ready => Err(Failure {
                hint: "start one first".into(),
                ..Failure::invalid("no call was started on these regions")
            }),
            State::Done => Ok(true),
            State::Failed(failure) => Err(failure.clone()),
            State::Running => self.look(),
        }
    }

    fn look(&mut self) -> Result<bool, Failure> {
        self.kernel_is_slow = false;
        let ended = match self.call.test() {
            // What has only taken too long may still end.
            Err(error @ Error::Timeout { step, .. }) => {
                self.kernel_is_slow = step == Step::Compute;
                return Err(error.into());
            }
            Err(error) => {
                self.device_result = device_result(&error);
                State::Failed(error.into())
            }
            Ok(true) => State::Done,
            Ok(false) => return Ok(false),
        };
        self.state = ended;
        self.test()
    }

    /// Waits for the end of the call, for `patience` at most.
    pub(crate) fn wait(&mut self, patience: Option<Duration>) -> Result<(), Failure> {
        let until = patience.and_then(|patience| Instant::now().checked_add(patience));
        while !self.test()? {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                let hint = "wait again, or close the call";
                return Err(Failure::edge(EdgeCode::Pending, "the call has not ended in this time", hint));
            }
            std::thread::sleep(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY)));
        }
        Ok(())
    }

    /// Bytes of outputs that the last call has brought.
    pub(crate) fn received(&self) -> u64 {
        self.call.received()
    }

    pub(crate) fn report(&self) -> Result<String, Failure> {
        serde_json::to_string(self.call.report()).map_err(|error| Failure::invalid(error.to_string()))
    }

    /// Ends the connection. After this nothing accesses the memory of the regions any more, whatever is returned.
    pub(crate) fn close(self) -> Result<Arc<Device>, Failure> {
        self.call.close()?;
        Ok(self.device)
    }
}

/// The result code that an error stands for, if it is what the device has answered to a call.
fn device_result(error: &Error) -> u32 {
    match error {
        Error::SocketUnavailable { .. } => 1,
        Error::KernelTimeout { .. } => 2,
        Error::UnknownFunction { .. } => 3,
        Error::Kernel { code, .. } => *code,
        _ => 0,
    }
}
