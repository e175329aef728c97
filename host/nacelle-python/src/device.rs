// SPDX-License-Identifier: Apache-2.0
//! Devices: reached, asked, closed.

use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Duration;

use nacelle::{ConnectionOptions, Error, ErrorCode, Options, Target};
use pyo3::prelude::*;

use crate::buffer;
use crate::call::{Call, options};
use crate::connection::Connection;
use crate::error::Failure;
use crate::handle::Handle;
use crate::region::{Given, function, regions};
use crate::wait;

/// How long the device may take to confirm the end of its connections.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);
/// The prefix of a source address without one, in bits.
const ASSUMED_PREFIX_LEN: u8 = 24;

/// How a device is reached, as the package gives it.
#[derive(FromPyObject)]
pub(crate) struct Wanted {
    wire: Option<PathBuf>,
    link: String,
    source: Option<String>,
    port: Option<u16>,
    mtu: Option<usize>,
    timeout: Option<f64>,
    resolve_timeout: Option<f64>,
    acknowledge_timeout: Option<f64>,
    spin: Option<f64>,
    capture: Option<PathBuf>,
    trace: bool,
    progress_thread: bool,
    reconnect: bool,
}

impl Wanted {
    fn options(self) -> Result<Options, Failure> {
        let time = |seconds: Option<f64>, name: &str, default: Duration| {
            seconds.map_or(Ok(default), |seconds| wait::duration(seconds, name))
        };
        let mut options = Options::default();
        options.link = self.link.parse()?;
        options.source = self.source.as_deref().map(own_address).transpose()?;
        options.wire = self.wire;
        options.port = self.port;
        options.mtu = self.mtu.or(options.mtu);
        options.timeout = time(self.timeout, "timeout", options.timeout)?;
        options.resolve_timeout = time(self.resolve_timeout, "resolve_timeout", options.resolve_timeout)?;
        let acknowledge = time(self.acknowledge_timeout, "acknowledge_timeout", options.connect.ack_timeout)?;
        options.connect.ack_timeout = acknowledge;
        options.connect.max_ack_timeout = options.connect.max_ack_timeout.max(acknowledge);
        options.spin = self.spin.map(|seconds| wait::duration(seconds, "spin")).transpose()?;
        options.capture = self.capture;
        options.trace = self.trace;
        options.progress_thread = self.progress_thread;
        options.reconnect = self.reconnect;
        Ok(options)
    }
}

/// The caller's own address: "ADDRESS" or "ADDRESS/PREFIX".
fn own_address(text: &str) -> Result<(IpAddr, u8), Failure> {
    let (ip, prefix_len) = text.split_once('/').map_or((text, None), |(ip, length)| (ip, Some(length)));
    let parsed = ip.parse().ok().zip(prefix_len.map_or(Some(ASSUMED_PREFIX_LEN), |length| length.parse().ok()));
    let valid = parsed.filter(|(ip, length): &(IpAddr, u8)| *length <= if ip.is_ipv4() { 32 } else { 128 });
    valid.ok_or_else(|| Failure::invalid(format!("'{text}' is not ADDRESS or ADDRESS/PREFIX"), "correct the source"))
}

/// Reaches a single target: an address, a name on the wire, or that of a host.
fn reach(text: &str, options: &Options) -> Result<nacelle::Device, Error> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let target = match bare.parse::<IpAddr>() {
        Ok(ip) => Target::Address(ip.to_canonical()),
        Err(_) => text.parse()?,
    };
    let is_name = matches!(target, Target::Name(_));
    let missing = match nacelle::Device::connect(target, options) {
        Err(error) if is_name && matches!(error.code(), ErrorCode::NoSuchDevice | ErrorCode::Link) => error,
        outcome => return outcome,
    };
    // The resolver wants a port; it is not used. A device and its caller cannot both have ::1, which stands first for localhost.
    let found = (text, 0).to_socket_addrs().into_iter().flatten().map(|address| address.ip());
    let found: Vec<IpAddr> = found.filter(|ip| ip.is_ipv4() || !ip.is_loopback()).collect();
    match found.as_slice() {
        [] => Err(missing),
        [one] => nacelle::Device::connect(*one, options),
        several => nacelle::Device::connect(several.to_vec(), options),
    }
}

/// Reaches the first of these targets that can be reached.
#[pyfunction]
pub(crate) fn connect(py: Python<'_>, targets: Vec<String>, wanted: Wanted) -> Result<Device, Failure> {
    let options = wanted.options()?;
    let found = wait::interruptible(py, move || {
        if let [one] = targets.as_slice() {
            return reach(one, &options);
        }
        let mut tried = Vec::new();
        for target in targets {
            match reach(&target, &options) {
                Ok(device) => return Ok(device),
                Err(error) => tried.push((target, error)),
            }
        }
        Err(Error::NoTarget { tried })
    })??;
    let name = found.descriptor().map(|device| device.name.clone());
    Ok(Device { ip: found.ip(), by_udp: found.is_by_udp(), name, device: Handle::new("device", found) })
}

/// A device that was reached.
#[pyclass(frozen, module = "nacelle._native")]
pub(crate) struct Device {
    device: Handle<nacelle::Device>,
    ip: IpAddr,
    by_udp: bool,
    name: Option<String>,
}

impl Device {
    fn get(&self) -> Result<nacelle::Device, Failure> {
        self.device.with(|device| Ok(device.clone()))
    }
}

#[pymethods]
impl Device {
    /// Its address.
    #[getter]
    fn address(&self) -> String {
        self.ip.to_string()
    }

    /// Whether it is reached by UDP.
    #[getter]
    fn by_udp(&self) -> bool {
        self.by_udp
    }

    /// The name that it publishes on this machine.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Its description of itself, as JSON.
    fn describe(&self, py: Python<'_>) -> Result<Option<Vec<u8>>, Failure> {
        let device = self.get()?;
        let read = move || device.describe().map(|description| description.map(nacelle::Description::to_json));
        Ok(wait::interruptible(py, read)??)
    }

    /// How busy it is, by the names of the figures; nothing if it does not say.
    fn load(&self, py: Python<'_>) -> Result<Option<BTreeMap<&'static str, u64>>, Failure> {
        let device = self.get()?;
        let load = wait::interruptible(py, move || device.load())??;
        Ok(load.map(|load| {
            BTreeMap::from([
                ("connections", load.connections),
                ("memory_bytes", load.memory_bytes),
                ("memory_held", load.memory_held),
                ("calls", load.calls),
                ("running", load.running),
                ("waiting", load.waiting),
            ])
        }))
    }

    /// Creates a call on a connection of its own.
    fn create(&self, py: Python<'_>, code: i64, given: Vec<Given<'_>>, deadline: Option<f64>) -> Result<Call, Failure> {
        let (device, code, options) = (self.get()?, function(code)?, options(deadline)?);
        let regions = regions(py, &given)?;
        let call = wait::interruptible(py, move || device.create_with(code, regions, &options))?;
        Call::made(py, call)
    }

    /// Opens a connection for several calls.
    fn open(&self, py: Python<'_>, contexts: u8) -> Result<Connection, Failure> {
        let device = self.get()?;
        let opened = wait::interruptible(py, move || device.open(&ConnectionOptions { contexts }))?;
        Ok(Connection::new(opened?))
    }

    /// A descriptor to poll. It is the device's.
    fn fd(&self) -> Result<i32, Failure> {
        Ok(self.get()?.fd()?.as_raw_fd())
    }

    /// Moves what can be moved at once.
    fn progress(&self, py: Python<'_>) -> Result<(), Failure> {
        let device = self.get()?;
        py.detach(|| device.progress())?;
        buffer::release(py);
        Ok(())
    }

    /// The time in seconds that an answer takes.
    fn ping(&self, py: Python<'_>, timeout: f64) -> Result<f64, Failure> {
        let (device, patience) = (self.get()?, wait::duration(timeout, "the timeout")?);
        Ok(wait::interruptible(py, move || device.ping(0, 0, patience))??.as_secs_f64())
    }

    /// Ends it, once the device has confirmed the end of its connections, or has had a second for that.
    fn close(&self, py: Python<'_>) -> Result<(), Failure> {
        let Some(device) = self.device.take()? else { return Ok(()) };
        let settled = wait::interruptible(py, move || device.settle(CLOSE_WITHIN))?;
        buffer::release(py);
        settled?;
        Ok(())
    }
}
