// SPDX-License-Identifier: Apache-2.0
//! Hosts that accept what others write, and give what others read.

use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nacelle::memory::{Shared, StableBytes};
use nacelle_device::{self as device, AcceptorOptions, DeviceError, SoftPlace};
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
    stage: Handle<Stage>,
    windows: device::Windows,
}

/// How far an acceptor is.
enum Stage {
    /// Peers cannot connect yet.
    Made(Box<AcceptorOptions>),
    /// A thread starts it.
    Starting,
    Listens(device::Acceptor),
}

impl Acceptor {
    /// What `tell` says of an acceptor that listens.
    fn listening<R>(&self, tell: impl FnOnce(&device::Acceptor) -> R) -> Result<R, Failure> {
        self.stage.with(|stage| match stage {
            Stage::Listens(acceptor) => Ok(tell(acceptor)),
            Stage::Made(_) | Stage::Starting => {
                Err(Failure::invalid("the acceptor does not listen yet", "let it listen first"))
            }
        })
    }

    /// Opens a window, unless the acceptor was closed.
    fn open(&self, open: impl FnOnce(&device::Windows) -> Result<Open, DeviceError>) -> Result<Window, Failure> {
        self.stage.with(|_| Ok(Window { open: Handle::new("window", open(&self.windows)?) }))
    }
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

impl Drop for Open {
    fn drop(&mut self) {
        // The package waits for callbacks: that must not keep the interpreter's lock, and not wait for views that one has kept.
        self.window.close(Duration::ZERO);
    }
}

/// A window.
#[pyclass(frozen, module = "nacelle._native")]
pub(crate) struct Window {
    open: Handle<Open>,
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
    /// One that does not listen yet.
    #[new]
    fn new(wanted: Wanted) -> Result<Self, Failure> {
        let windows = device::Windows::new();
        let options = wanted.options()?.with_windows(&windows);
        Ok(Self { stage: Handle::new("acceptor", Stage::Made(Box::new(options))), windows })
    }

    /// Lets peers connect.
    fn listen(&self, py: Python<'_>) -> Result<(), Failure> {
        let options = self.stage.with(|stage| match mem::replace(stage, Stage::Starting) {
            Stage::Made(options) => Ok(options),
            other => {
                *stage = other;
                Err(Failure::invalid("the acceptor listens already", "let it listen once"))
            }
        })?;
        // Other threads, and callbacks, may use it meanwhile.
        let started = py.detach(|| device::Acceptor::start(&options));
        self.stage.with(|stage| match started {
            Ok(acceptor) => {
                *stage = Stage::Listens(acceptor);
                Ok(())
            }
            Err(error) => {
                *stage = Stage::Made(options);
                Err(error.into())
            }
        })
    }

    /// The address that peers connect to.
    #[getter]
    fn address(&self) -> Result<String, Failure> {
        self.listening(|acceptor| acceptor.address().to_string())
    }

    /// The name that peers on this machine may use.
    #[getter]
    fn name(&self) -> Result<String, Failure> {
        self.listening(|acceptor| acceptor.name().to_owned())
    }

    /// Opens a window to be written.
    fn accept_incoming_write(&self, number: u32, longest: usize, run: Py<PyAny>) -> Result<Window, Failure> {
        let told = move |write: device::IncomingWrite<'_>| {
            tell(&run, Some(write.bytes), &write.peer.to_string(), write.window, write.label)
        };
        self.open(|windows| Ok(Open { window: windows.accept_incoming_write(number, longest, told)?, shown: None }))
    }

    /// Opens a window to be read.
    fn accept_incoming_read(&self, number: u32, object: &Bound<'_, PyAny>, run: Py<PyAny>) -> Result<Window, Failure> {
        let shown = Shown::new(Bytes::of(object, false)?);
        let told = move |read: device::IncomingRead| tell(&run, None, &read.peer.to_string(), read.window, read.label);
        self.open(|windows| {
            let window = windows.accept_incoming_read(number, &shown.shared, told)?;
            Ok(Open { window, shown: Some(shown) })
        })
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) -> Result<(), Failure> {
        match self.stage.take()? {
            Some(Stage::Listens(acceptor)) => Ok(py.detach(|| acceptor.close())?),
            Some(Stage::Made(_) | Stage::Starting) | None => Ok(()),
        }
    }
}

#[pymethods]
impl Window {
    /// Closes it. Nothing reads its buffer any more after this.
    fn close(&self, py: Python<'_>) -> Result<(), Failure> {
        if let Some(mut open) = self.open.take()? {
            open.window.close(Duration::ZERO);
            let shown = open.shown.take();
            py.detach(|| drop(shown));
        }
        buffer::release(py);
        Ok(())
    }
}
