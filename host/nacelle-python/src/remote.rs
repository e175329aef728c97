// SPDX-License-Identifier: Apache-2.0
//! Memory of a peer, and what begins transfers to and from it.

use nacelle::{Error, Memory};
use pyo3::prelude::*;

use crate::buffer::Bytes;
use crate::error::Failure;
use crate::handle::Handle;
use crate::transfer::Transfer;

/// Memory of a peer.
#[pyclass(frozen, module = "nacelle._native")]
pub(crate) struct Remote {
    remote: Handle<nacelle::Remote>,
}

/// The memory of an object in place; `written` if what is read goes there.
pub(crate) fn memory(buffer: &Bound<'_, PyAny>, written: bool) -> Result<Memory, Failure> {
    Ok(Memory::new(Bytes::of(buffer, written)?))
}

impl Remote {
    pub(crate) fn new(remote: nacelle::Remote) -> Self {
        Self { remote: Handle::new("remote", remote) }
    }

    fn begin(
        &self,
        py: Python<'_>,
        begin: impl FnOnce(&nacelle::Remote) -> Result<nacelle::Transfer, Error> + Send,
    ) -> Result<Transfer, Failure> {
        let remote = self.remote.with(|remote| Ok(remote.clone()))?;
        Transfer::made(py, py.detach(|| begin(&remote)))
    }
}

#[pymethods]
impl Remote {
    /// Bytes.
    #[getter]
    fn size(&self) -> Result<u64, Failure> {
        self.remote.with(|remote| Ok(remote.size()))
    }

    /// Begins to write a buffer.
    fn write(&self, py: Python<'_>, offset: u64, buffer: &Bound<'_, PyAny>) -> Result<Transfer, Failure> {
        let memory = memory(buffer, false)?;
        self.begin(py, move |remote| remote.write(offset, memory))
    }

    /// The same, and tells the owner of the window.
    fn write_and_notify(
        &self,
        py: Python<'_>,
        offset: u64,
        buffer: &Bound<'_, PyAny>,
        label: u16,
    ) -> Result<Transfer, Failure> {
        let memory = memory(buffer, false)?;
        self.begin(py, move |remote| remote.write_and_notify(offset, memory, label))
    }

    /// Begins to read into a buffer.
    fn read(&self, py: Python<'_>, offset: u64, buffer: &Bound<'_, PyAny>) -> Result<Transfer, Failure> {
        let memory = memory(buffer, true)?;
        self.begin(py, move |remote| remote.read(offset, memory))
    }

    /// Tells the owner of the window.
    fn notify(&self, py: Python<'_>, label: u16) -> Result<Transfer, Failure> {
        self.begin(py, move |remote| remote.notify(label))
    }

    /// Gives the memory back when its transfers have ended.
    fn close(&self, py: Python<'_>) -> Result<(), Failure> {
        let remote = self.remote.take()?;
        py.detach(|| drop(remote));
        Ok(())
    }
}
