// SPDX-License-Identifier: Apache-2.0
//! Transfers that were begun.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nacelle::Error;
use pyo3::prelude::*;

use crate::buffer;
use crate::error::Failure;
use crate::handle::Handle;
use crate::wait;

/// A transfer. Its buffer stays in use until it has ended, also when nobody has it any more.
#[pyclass(frozen, module = "nacelle._native")]
pub(crate) struct Transfer {
    transfer: Handle<nacelle::Transfer>,
    /// Set when it has ended, or has run into its timeout.
    news: Arc<AtomicBool>,
}

impl Transfer {
    /// A transfer as the library has begun it.
    ///
    /// # Errors
    /// That of the library; then nothing uses its buffer any more.
    pub(crate) fn made(py: Python<'_>, transfer: Result<nacelle::Transfer, Error>) -> Result<Self, Failure> {
        buffer::release(py);
        let this = Self { transfer: Handle::new("transfer", transfer?), news: Arc::default() };
        this.transfer.with(|transfer| {
            this.listen(transfer);
            Ok(())
        })?;
        Ok(this)
    }

    fn listen(&self, transfer: &nacelle::Transfer) {
        let news = Arc::clone(&self.news);
        transfer.on_end(move || news.store(true, Ordering::Release));
    }

    /// Listens again if it has only run into its timeout.
    fn after(&self, transfer: &nacelle::Transfer, looked: Result<bool, Failure>) -> Result<bool, Failure> {
        if looked.is_err() && !transfer.has_ended() {
            self.listen(transfer);
        }
        looked
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        // In a forked process it stays as it is.
        drop(self.transfer.take());
        let _interpreter_gone = Python::try_attach(buffer::release);
    }
}

#[pymethods]
impl Transfer {
    /// Whether it has ended.
    fn test(&self, py: Python<'_>) -> Result<bool, Failure> {
        self.transfer.with(|transfer| {
            let looked = py.detach(|| transfer.test()).map_err(Failure::from);
            self.after(transfer, looked)
        })
    }

    /// Waits for its end, for `timeout` seconds at most. Returns whether it has ended.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> Result<bool, Failure> {
        let timeout = timeout.map(|seconds| wait::duration(seconds, "the timeout")).transpose()?;
        let deadline = wait::deadline_in(timeout);
        self.transfer.with(|transfer| {
            let looked = wait::sliced(py, deadline, |until| transfer.wait_until(until));
            self.after(transfer, looked)
        })
    }

    /// Whether `test` has something to say since this was asked last.
    fn take_news(&self) -> bool {
        self.news.swap(false, Ordering::AcqRel)
    }

    /// Whether it has been seen to end.
    #[getter]
    fn has_ended(&self) -> Result<bool, Failure> {
        self.transfer.with(|transfer| Ok(transfer.has_ended()))
    }

    /// Leaves it without waiting: its buffer is free when it has ended.
    fn abandon(&self, py: Python<'_>) -> Result<(), Failure> {
        let transfer = self.transfer.take()?;
        py.detach(|| drop(transfer));
        buffer::release(py);
        Ok(())
    }
}
