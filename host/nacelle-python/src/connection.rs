// SPDX-License-Identifier: Apache-2.0
//! Connections on which several calls run side by side.

use nacelle::ChainStep;
use pyo3::prelude::*;

use crate::buffer;
use crate::call::{Call, options, user_bytes};
use crate::error::Failure;
use crate::handle::Handle;
use crate::region::{Given, function, regions};
use crate::remote::{self, Remote};
use crate::wait;

/// A connection that is open.
#[pyclass(frozen, module = "nacelle._native")]
pub(crate) struct Connection {
    connection: Handle<nacelle::Connection>,
}

impl Connection {
    pub(crate) fn new(connection: nacelle::Connection) -> Self {
        Self { connection: Handle::new("connection", connection) }
    }

    fn get(&self) -> Result<nacelle::Connection, Failure> {
        self.connection.with(|connection| Ok(connection.clone()))
    }
}

#[pymethods]
impl Connection {
    /// Creates a call.
    fn create(&self, py: Python<'_>, code: i64, given: Vec<Given<'_>>, deadline: Option<f64>) -> Result<Call, Failure> {
        let (connection, code, options) = (self.get()?, function(code)?, options(deadline)?);
        let regions = regions(py, &given)?;
        let call = wait::interruptible(py, move || connection.create_with(code, regions, &options))?;
        Call::made(py, call)
    }

    /// Creates a call of a chain: steps of a function, the first region, how many, and the user bytes.
    fn create_chain(
        &self,
        py: Python<'_>,
        steps: Vec<(i64, usize, usize, u32)>,
        given: Vec<Given<'_>>,
        deadline: Option<f64>,
    ) -> Result<Call, Failure> {
        let (connection, options) = (self.get()?, options(deadline)?);
        let steps = steps.into_iter().map(|(code, first, count, user)| {
            let mut step = ChainStep::new(function(code)?, first..first.saturating_add(count));
            step.user = user_bytes(user)?;
            Ok(step)
        });
        let steps = steps.collect::<Result<Vec<_>, Failure>>()?;
        let regions = regions(py, &given)?;
        let call = wait::interruptible(py, move || connection.create_chain(&steps, regions, &options))?;
        Call::made(py, call)
    }

    /// Writes a buffer to a window of the peer, and waits for what its owner says.
    fn write(&self, py: Python<'_>, window: u32, buffer: &Bound<'_, PyAny>, label: u16) -> Result<(), Failure> {
        let (connection, memory) = (self.get()?, remote::memory(buffer, false)?);
        let written = wait::interruptible(py, move || connection.write(window, memory, label).map(drop));
        buffer::release(py);
        Ok(written??)
    }

    /// Reads from a window of the peer into a buffer.
    fn read(&self, py: Python<'_>, window: u32, buffer: &Bound<'_, PyAny>) -> Result<(), Failure> {
        let (connection, memory) = (self.get()?, remote::memory(buffer, true)?);
        let read = wait::interruptible(py, move || connection.read(window, memory).map(drop));
        buffer::release(py);
        Ok(read??)
    }

    /// Memory of the peer.
    fn remote(&self, py: Python<'_>, size: u64) -> Result<Remote, Failure> {
        let connection = self.get()?;
        Ok(Remote::new(wait::interruptible(py, move || connection.remote(size))??))
    }

    /// A part of a window of the peer to be written.
    fn window_to_write(&self, py: Python<'_>, window: u32, size: u64) -> Result<Remote, Failure> {
        let connection = self.get()?;
        Ok(Remote::new(wait::interruptible(py, move || connection.window_to_write(window, size))??))
    }

    /// A part of a window of the peer to be read.
    fn window_to_read(&self, py: Python<'_>, window: u32, size: u64) -> Result<Remote, Failure> {
        let connection = self.get()?;
        Ok(Remote::new(wait::interruptible(py, move || connection.window_to_read(window, size))??))
    }

    /// How many calls it can have at a time.
    #[getter]
    fn contexts(&self) -> Result<usize, Failure> {
        Ok(self.get()?.contexts())
    }

    /// How many more it can have now.
    #[getter]
    fn free_contexts(&self) -> Result<usize, Failure> {
        Ok(self.get()?.free_contexts())
    }

    /// Whether calls can be cancelled one by one.
    #[getter]
    fn can_cancel(&self) -> Result<bool, Failure> {
        Ok(self.get()?.can_cancel())
    }

    /// Whether there are chains, and deadlines that the device keeps.
    #[getter]
    fn has_long_set_up(&self) -> Result<bool, Failure> {
        Ok(self.get()?.has_long_set_up())
    }

    /// Ends it, and its calls.
    fn close(&self, py: Python<'_>) -> Result<(), Failure> {
        match self.connection.take()? {
            Some(connection) => Ok(py.detach(|| connection.close())?),
            None => Ok(()),
        }
    }
}
