// SPDX-License-Identifier: Apache-2.0
//! A software device in this process, in a thread of its own.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nacelle::{Descriptor, DeviceKind};
use nacelle_device::{DeviceError, Host, KernelSet, Place, Port, SoftConfig, SoftEngine};
use nacelle_driver::DatagramMedium;
use nacelle_link::{DatagramLink, SwitchHost, UdpLink, VirtualWire, WireDir};
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

/// How it is found: on the wire, or by UDP.
enum Where {
    Wire(Option<(Ipv4Addr, u8)>),
    Udp(IpAddr),
}

impl Wanted {
    fn place(&self) -> Result<Where, Failure> {
        let wrong = |text: &str, hint| Failure::invalid(format!("'{text}' is no address for the device"), hint);
        match &self.address {
            None if self.udp => Err(Failure::invalid("a device by UDP needs an address", "give one of this machine")),
            None => Ok(Where::Wire(None)),
            Some(text) if self.udp => {
                text.parse().map(Where::Udp).map_err(|_| wrong(text, "give one of this machine, as 127.0.0.2"))
            }
            Some(text) => {
                let parsed =
                    text.split_once('/').and_then(|(ip, prefix)| Some((ip.parse().ok()?, prefix.parse().ok()?)));
                let valid = parsed.filter(|(_, prefix): &(Ipv4Addr, u8)| *prefix <= 32);
                Ok(Where::Wire(Some(valid.ok_or_else(|| wrong(text, "give ADDRESS/PREFIX, as 10.77.0.2/16"))?)))
            }
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

/// Makes it end, at the latest when this is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A device that runs.
struct Running {
    descriptor: Descriptor,
    stop: Stop,
    thread: JoinHandle<Result<(), DeviceError>>,
}

/// A software device.
#[pyclass(frozen, module = "nacelle._native")]
pub(crate) struct SoftDevice {
    running: Handle<Running>,
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
        let seen = Arc::new(AtomicBool::new(false));
        let stop = Stop(Arc::clone(&seen));
        let (ready, started) = channel();
        let thread = thread::Builder::new().name("nacelle-device".into()).spawn(move || match place {
            Where::Wire(address) => serve_on_wire(&wire, name.as_deref(), address, config, &seen, &ready),
            Where::Udp(address) => serve_by_udp(&wire, name.as_deref(), address, config, &seen, &ready),
        });
        let io = |source| DeviceError::Io { what: "start a thread".into(), source };
        let thread = thread.map_err(io)?;
        match py.detach(move || started.recv()) {
            Ok(descriptor) => Ok(Self { running: Handle::new("device", Running { descriptor, stop, thread }) }),
            // It has ended, and says why.
            Err(_) => Err(py
                .detach(|| end(thread))
                .err()
                .unwrap_or_else(|| Failure::invalid("the device has ended", "try again"))),
        }
    }

    /// Its name on the wire.
    #[getter]
    fn name(&self) -> Result<String, Failure> {
        self.running.with(|running| Ok(running.descriptor.name.clone()))
    }

    /// Its address.
    #[getter]
    fn address(&self) -> Result<String, Failure> {
        self.running.with(|running| Ok(running.descriptor.ip.to_string()))
    }

    /// Waits for its end, for `timeout` seconds at most. Returns whether it has ended: a client may ask for that.
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> Result<bool, Failure> {
        let timeout = timeout.map(|seconds| wait::duration(seconds, "the timeout")).transpose()?;
        let deadline = wait::deadline_in(timeout);
        self.running.with(|running| {
            wait::sliced(py, deadline, |until| {
                while !running.thread.is_finished() && std::time::Instant::now() < until {
                    thread::sleep(Duration::from_millis(10));
                }
                Ok::<_, Failure>(running.thread.is_finished())
            })
        })
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) -> Result<(), Failure> {
        let Some(Running { stop, thread, .. }) = self.running.take()? else { return Ok(()) };
        drop(stop);
        py.detach(|| end(thread))
    }
}

/// Waits for the device's thread, and returns how it has ended.
fn end(thread: JoinHandle<Result<(), DeviceError>>) -> Result<(), Failure> {
    let ended = thread.join();
    Ok(ended.unwrap_or_else(|_| Err(DeviceError::Create { why: "its thread has failed".into() }))?)
}

fn serve_on_wire(
    wire: &WireDir,
    name: Option<&str>,
    address: Option<(Ipv4Addr, u8)>,
    config: SoftConfig,
    stop: &AtomicBool,
    ready: &Sender<Descriptor>,
) -> Result<(), DeviceError> {
    let place = Place::find(wire, DeviceKind::Soft, name, address)?;
    let _switch = SwitchHost::start(wire)?;
    let link = VirtualWire::join(wire, &place.name)?;
    run(Host::new(SoftEngine::new(config), &place, Box::new(link), seed()?)?, stop, ready)
}

fn serve_by_udp(
    wire: &WireDir,
    name: Option<&str>,
    address: IpAddr,
    config: SoftConfig,
    stop: &AtomicBool,
    ready: &Sender<Descriptor>,
) -> Result<(), DeviceError> {
    let link = UdpLink::bind(address)?;
    let place = Place::by_udp(wire, DeviceKind::Soft, name, link.local().ip())?;
    let host = Host::by_udp(SoftEngine::new(config), &place, DatagramMedium::new(Box::new(link)), seed()?)?;
    run(host, stop, ready)
}

fn run<P: Port>(mut host: Host<P>, stop: &AtomicBool, ready: &Sender<Descriptor>) -> Result<(), DeviceError> {
    // Whoever started it waits for this.
    let _ = ready.send(host.descriptor().clone());
    Ok(host.run(stop)?)
}

fn seed() -> Result<u32, DeviceError> {
    let mut seed = [0; 4];
    let io = |error: getrandom::Error| DeviceError::Io {
        what: "get random numbers".into(),
        source: std::io::Error::other(error),
    };
    getrandom::fill(&mut seed).map_err(io)?;
    Ok(u32::from_ne_bytes(seed))
}
