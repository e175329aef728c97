// SPDX-License-Identifier: Apache-2.0
//! Hosts that accept what others write, and give what others read.

use std::path::PathBuf;
use std::sync::Arc;

use nacelle::memory::{Shared, StableBytes};
use nacelle_device::{self as device, AcceptorOptions, SoftPlace};
use pyo3::prelude::*;

use crate::buffer::{self, Bytes};
use crate::error::Failure;
use crate::handle::Handle;
use crate::kernel::{give_back, lend};
use crate::soft_device::{by_udp, on_wire};
use crate::wait;

/// What an acceptor is made from, as the package gives it.
#[derive(FromPyObject)]
pub(crate) struct Wanted {
    /// One of this machine, or "ADDRESS/PREFIX" on the wire; none is the first free one there.
    address: Option<String>,
    wire: Option<PathBuf>,
    name: Option<String>,
    memory: Option<u64>,
    memory_per_peer: Option<u64>,
    connections: Option<usize>,
    connections_per_peer: Option<usize>,
    callbacks: Option<usize>,
    callback_time: Option<f64>,
}

impl Wanted {
    fn options(self) -> Result<AcceptorOptions, Failure> {
        let place = match &self.address {
            None => SoftPlace::Wire(None),
            Some(text) if text.contains('/') => on_wire(text)?,
            Some(text) => by_udp(text)?,
        };
        let mut options = AcceptorOptions { wire: self.wire, name: self.name, ..AcceptorOptions::at(place) };
        let config = &mut options.config;
        config.memory_bytes = self.memory.unwrap_or(config.memory_bytes);
        config.memory_per_caller = self.memory_per_peer.unwrap_or(config.memory_per_caller);
        config.connections = self.connections.unwrap_or(config.connections);
        config.connections_per_caller = self.connections_per_peer.unwrap_or(config.connections_per_caller);
        config.workers = self.callbacks.unwrap_or(config.workers);
        if let Some(seconds) = self.callback_time {
            config.kernel_time = Some(wait::duration(seconds, "callback_time")?).filter(|time| !time.is_zero());
        }
        Ok(options)
    }
}

/// A host that accepts.
#[pyclass(frozen, module = "nacelle._native")]
pub(crate) struct Acceptor {
    acceptor: Handle<device::Acceptor>,
}

/// What peers read. The fields are dropped in this order: nothing reads the bytes any more when the buffer is given back.
struct Shown {
    shared: Arc<Shared>,
    _bytes: Bytes,
}

impl Shown {
    fn new(bytes: Bytes) -> Self {
        // SAFETY: the buffer keeps the bytes in their place until it is dropped, after the value. That is the only one but for the moment
        // in which a device looks a window up, and the window is closed first. Code of Python may change the bytes while peers read.
        let shared = unsafe { Shared::from_raw(bytes.bytes(), false) };
        Self { shared: Arc::new(shared), _bytes: bytes }
    }
}

/// A window that is open. The fields are dropped in this order.
struct Open {
    window: device::Window,
    shown: Option<Shown>,
}

/// A window.
#[pyclass(frozen, module = "nacelle._native")]
pub(crate) struct Window {
    open: Handle<Open>,
}

impl Window {
    fn new(window: device::Window, shown: Option<Shown>) -> Self {
        Self { open: Handle::new("window", Open { window, shown }) }
    }
}

/// Runs `run(bytes, peer, window, label)`, which returns a result code, with the bytes of a writer.
fn tell(run: &Py<PyAny>, bytes: Option<&mut [u8]>, peer: &str, window: u32, label: u32) -> Result<(), device::Failure> {
    let mut parts: Vec<&mut [u8]> = bytes.into_iter().collect();
    let attached = Python::try_attach(|py| {
        // SAFETY: the slice is this callback's until this function returns, which is not before `give_back` has seen that no view is
        // left; it is not used meanwhile.
        let Ok(lent) = (unsafe { lend(py, &mut parts) }) else {
            return (device::Failure::MEMORY_ERROR.code(), Vec::new());
        };
        let ran = run.call1(py, (lent.first(), peer, window, label)).and_then(|code| code.extract::<u8>(py));
        // The package turns every exception into a code: this one came from outside.
        (ran.unwrap_or(device::Failure::UNAVAILABLE.code()), lent)
    });
    // Without an interpreter, which is ending, nothing was lent.
    let Some((code, lent)) = attached else { return Err(device::Failure::UNAVAILABLE) };
    give_back(&lent, run);
    match code {
        0 => Ok(()),
        code => Err(device::Failure::new(code).unwrap_or(device::Failure::UNAVAILABLE)),
    }
}

#[pymethods]
impl Acceptor {
    /// Starts it.
    #[new]
    fn new(py: Python<'_>, wanted: Wanted) -> Result<Self, Failure> {
        let options = wanted.options()?;
        let acceptor = py.detach(|| device::Acceptor::start(&options))?;
        Ok(Self { acceptor: Handle::new("acceptor", acceptor) })
    }

    /// The address that peers connect to.
    #[getter]
    fn address(&self) -> Result<String, Failure> {
        self.acceptor.with(|acceptor| Ok(acceptor.address().to_string()))
    }

    /// The name that peers on this machine may use.
    #[getter]
    fn name(&self) -> Result<String, Failure> {
        self.acceptor.with(|acceptor| Ok(acceptor.name().to_owned()))
    }

    /// Opens a window to be written.
    fn accept_incoming_write(&self, number: u32, longest: usize, run: Py<PyAny>) -> Result<Window, Failure> {
        let told = move |write: device::IncomingWrite<'_>| {
            tell(&run, Some(write.bytes), &write.peer.to_string(), write.window, write.label)
        };
        self.acceptor.with(|acceptor| Ok(Window::new(acceptor.accept_incoming_write(number, longest, told)?, None)))
    }

    /// Opens a window to be read.
    fn accept_incoming_read(&self, number: u32, object: &Bound<'_, PyAny>, run: Py<PyAny>) -> Result<Window, Failure> {
        let shown = Shown::new(Bytes::of(object, false)?);
        let told = move |read: device::IncomingRead| tell(&run, None, &read.peer.to_string(), read.window, read.label);
        self.acceptor.with(|acceptor| {
            let window = acceptor.accept_incoming_read(number, &shown.shared, told)?;
            Ok(Window::new(window, Some(shown)))
        })
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) -> Result<(), Failure> {
        match self.acceptor.take()? {
            Some(acceptor) => Ok(py.detach(|| acceptor.close())?),
            None => Ok(()),
        }
    }
}

#[pymethods]
impl Window {
    /// Closes it. Nothing reads its buffer any more after this.
    fn close(&self, py: Python<'_>) -> Result<(), Failure> {
        if let Some(Open { window, shown }) = self.open.take()? {
            drop(window);
            py.detach(|| drop(shown));
        }
        buffer::release(py);
        Ok(())
    }
}
