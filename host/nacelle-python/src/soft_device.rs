// SPDX-License-Identifier: Apache-2.0
//! A software device in this process, in a thread of its own.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use nacelle_device::{DeviceError, KernelSet, SoftConfig, SoftPlace};
use nacelle_link::WireDir;
use pyo3::prelude::*;

use crate::error::Failure;
use crate::handle::Handle;
use crate::kernel;
use crate::wait;

/// What a device is made from, as the package gives it.
#[derive(FromPyObject)]
pub(crate) struct Wanted {
    wire: Option<PathBuf>,
    name: Option<String>,
    /// On the wire: "ADDRESS/PREFIX". By UDP: an address of this machine.
    address: Option<String>,
    udp: bool,
    standard_kernels: bool,
    memory: Option<u64>,
    workers: Option<usize>,
    kernel_time: Option<f64>,
}

impl Wanted {
    fn place(&self) -> Result<SoftPlace, Failure> {
        match &self.address {
            None if self.udp => Err(Failure::invalid("a device by UDP needs an address", "give one of this machine")),
            None => Ok(SoftPlace::Wire(None)),
            Some(text) if self.udp => by_udp(text),
            Some(text) => on_wire(text),
        }
    }

    fn config(&self, kernels: KernelSet) -> Result<SoftConfig, Failure> {
        let default = SoftConfig::default();
        let time = self.kernel_time.map(|seconds| wait::duration(seconds, "kernel_time")).transpose()?;
        Ok(SoftConfig {
            memory_bytes: self.memory.unwrap_or(default.memory_bytes),
            workers: self.workers.unwrap_or(default.workers),
            kernel_time: time.map_or(default.kernel_time, |time| Some(time).filter(|time| !time.is_zero())),
            kernels,
            ..default
        })
    }
}

/// An address of this machine.
pub(crate) fn by_udp(text: &str) -> Result<SoftPlace, Failure> {
    text.parse().map(SoftPlace::Udp).map_err(|_| wrong(text, "give one of this machine, as 127.0.0.2"))
}

/// "ADDRESS/PREFIX" on the wire.
pub(crate) fn on_wire(text: &str) -> Result<SoftPlace, Failure> {
    let parsed = text.split_once('/').and_then(|(ip, prefix)| Some((ip.parse().ok()?, prefix.parse().ok()?)));
    let valid = parsed.filter(|(_, prefix): &(Ipv4Addr, u8)| *prefix <= 32);
    Ok(SoftPlace::Wire(Some(valid.ok_or_else(|| wrong(text, "give ADDRESS/PREFIX, as 10.77.0.2/16"))?)))
}

fn wrong(text: &str, hint: &'static str) -> Failure {
    Failure::invalid(format!("'{text}' is no address for it"), hint)
}

/// A software device.
#[pyclass(frozen, module = "nacelle._native")]
pub(crate) struct SoftDevice {
    device: Handle<nacelle_device::SoftDevice>,
}

#[pymethods]
impl SoftDevice {
    /// Starts it: `kernels` are descriptions with a code and a function each.
    #[new]
    fn new(py: Python<'_>, kernels: Vec<(String, i64, Py<PyAny>)>, wanted: Wanted) -> Result<Self, Failure> {
        let mut set = if wanted.standard_kernels { KernelSet::standard() } else { KernelSet::new() };
        for (description, code, run) in kernels {
            set.add(kernel::kernel(&description, code, run)?).map_err(DeviceError::from)?;
        }
        let (config, place) = (wanted.config(set)?, wanted.place()?);
        let wire = WireDir::open(wanted.wire.unwrap_or_else(WireDir::default_path)).map_err(DeviceError::from)?;
        let name = wanted.name;
        let device = py.detach(|| nacelle_device::SoftDevice::start(config, &wire, name.as_deref(), place))?;
        Ok(Self { device: Handle::new("device", device) })
    }

    /// Its name on the wire.
    #[getter]
    fn name(&self) -> Result<String, Failure> {
        self.device.with(|device| Ok(device.descriptor().name.clone()))
    }

    /// Its address.
    #[getter]
    fn address(&self) -> Result<String, Failure> {
        self.device.with(|device| Ok(device.descriptor().ip.to_string()))
    }

    /// Waits for its end, for `timeout` seconds at most. Returns whether it has ended: a client may ask for that.
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> Result<bool, Failure> {
        let timeout = timeout.map(|seconds| wait::duration(seconds, "the timeout")).transpose()?;
        let deadline = wait::deadline_in(timeout);
        self.device.with(|device| {
            wait::sliced(py, deadline, |until| {
                while !device.has_ended() && std::time::Instant::now() < until {
                    thread::sleep(Duration::from_millis(10));
                }
                Ok::<_, Failure>(device.has_ended())
            })
        })
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) -> Result<(), Failure> {
        let Some(device) = self.device.take()? else { return Ok(()) };
        Ok(py.detach(|| device.close())?)
    }
}
