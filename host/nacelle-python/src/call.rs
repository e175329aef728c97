// SPDX-License-Identifier: Apache-2.0
//! Calls on a set of regions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nacelle::{CallOptions, Canceller, Error};
use pyo3::prelude::*;

use crate::buffer;
use crate::error::Failure;
use crate::handle::Handle;
use crate::region::function;
use crate::wait;

/// A call that is created.
#[pyclass(frozen, module = "nacelle._native")]
pub(crate) struct Call {
    call: Handle<nacelle::Call>,
    canceller: Handle<Canceller>,
    /// Set when the call has ended, or has run into its timeout.
    news: Arc<AtomicBool>,
}

/// Options of a call with a deadline in seconds.
pub(crate) fn options(deadline: Option<f64>) -> Result<CallOptions, Failure> {
    let deadline = deadline.map(|seconds| wait::duration(seconds, "the deadline")).transpose()?;
    // One of 2^32 ms is as good as none.
    Ok(CallOptions { deadline: deadline.filter(|deadline| *deadline < Duration::from_millis(u32::MAX.into())) })
}

/// Three bytes for a function.
pub(crate) fn user_bytes(user: u32) -> Result<[u8; 3], Failure> {
    match user.to_le_bytes() {
        [first, second, third, 0] => Ok([first, second, third]),
        _ => Err(Failure::invalid(format!("the immediate {user:#x} has more than 24 bits"), "give 0 to 0xffffff")),
    }
}

impl Call {
    /// A call as the library has made it.
    ///
    /// # Errors
    /// That of the library; then nothing uses its buffers any more.
    pub(crate) fn made(py: Python<'_>, call: Result<nacelle::Call, Error>) -> Result<Self, Failure> {
        buffer::release(py);
        Ok(Self::new(call?))
    }

    fn new(mut call: nacelle::Call) -> Self {
        let news = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&news);
        call.on_finish(move || seen.store(true, Ordering::Release));
        let canceller = Handle::new("call", call.canceller());
        Self { call: Handle::new("call", call), canceller, news }
    }
}

impl Drop for Call {
    /// Gives its buffers back at once, if it does not run on a connection that goes on.
    fn drop(&mut self) {
        // In a forked process it stays as it is.
        drop(self.call.take());
        let _interpreter_gone = Python::try_attach(buffer::release);
    }
}

#[pymethods]
impl Call {
    /// Starts it.
    fn invoke(&self, py: Python<'_>, user: u32) -> Result<(), Failure> {
        let user = user_bytes(user)?;
        self.call.with(|call| {
            self.news.store(false, Ordering::Release);
            Ok(py.detach(|| call.invoke_with(user))?)
        })
    }

    /// Whether it has ended.
    fn test(&self, py: Python<'_>) -> Result<bool, Failure> {
        self.call.with(|call| Ok(py.detach(|| call.test())?))
    }

    /// Waits for its end, for `timeout` seconds at most. Returns whether it has ended.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> Result<bool, Failure> {
        let timeout = timeout.map(|seconds| wait::duration(seconds, "the timeout")).transpose()?;
        let deadline = wait::deadline_in(timeout);
        self.call.with(|call| wait::sliced(py, deadline, |until| call.wait_until(until)))
    }

    /// Whether `test` has something to say since this was asked last.
    fn take_news(&self) -> bool {
        self.news.swap(false, Ordering::AcqRel)
    }

    /// Makes the call end that runs. Another thread may be waiting for it.
    fn cancel(&self, py: Python<'_>) -> Result<(), Failure> {
        let canceller = self.canceller.with(|canceller| Ok(canceller.clone()))?;
        Ok(py.detach(|| canceller.cancel())?)
    }

    /// Whether it was invoked and its end was not seen.
    #[getter]
    fn running(&self) -> Result<bool, Failure> {
        self.call.with(|call| Ok(call.is_running()))
    }

    /// Has another function run from the next start on.
    fn set_function(&self, code: i64) -> Result<(), Failure> {
        self.call.with(|call| Ok(call.set_function(function(code)?)?))
    }

    /// What its steps cost, as JSON.
    fn report(&self) -> Result<String, Failure> {
        self.call.with(|call| {
            serde_json::to_string(call.report())
                .map_err(|error| Failure::invalid(error.to_string(), "report this defect"))
        })
    }

    /// Ends it. After this nothing uses its buffers.
    fn close(&self, py: Python<'_>) -> Result<(), Failure> {
        let Some(call) = self.call.take()? else { return Ok(()) };
        self.canceller.take()?;
        let closed = if call.is_running() {
            wait::interruptible(py, move || call.close().map(drop))
        } else {
            Ok(py.detach(|| call.close().map(drop)))
        };
        buffer::release(py);
        Ok(closed??)
    }

    /// Leaves it without waiting: if it runs on a connection that goes on, its buffers are free when the device has answered.
    fn abandon(&self, py: Python<'_>) -> Result<(), Failure> {
        let call = self.call.take()?;
        self.canceller.take()?;
        py.detach(|| drop(call));
        buffer::release(py);
        Ok(())
    }
}
