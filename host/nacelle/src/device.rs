// SPDX-License-Identifier: Apache-2.0
//! Devices: found, reached, and asked for calls.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nacelle_link::{Captured, Impaired, Impairments, Link, PcapngWriter, VirtualWire, WireDir};
use nacelle_roce::ConnectOptions;
use nacelle_wire::mrsp::{DEFAULT_PORT, FunctionCode};

use crate::control::Control;
use crate::engine::Engine;
use crate::port::Port;
use crate::report::{Mark, StepTimer, Tracer};
use crate::{Call, Descriptor, Error, Region, Step, discover};

/// The prefix that is assumed of a device which does not publish it, in bits: the smallest subnet in common use.
const ASSUMED_PREFIX_LEN: u8 = 24;

/// How a device is reached, and how long things may take.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory of the wire. Default: [`WireDir::default_path`].
    pub wire: Option<PathBuf>,
    /// The caller's own address and the length of its prefix. Default: a free one in the device's subnet.
    pub source: Option<(Ipv4Addr, u8)>,
    /// The port of the device's service. Default: what the device publishes, else 12345.
    pub port: Option<u16>,
    /// Longest IP packet, in bytes. Default: 4200, for a path MTU of 4096: the virtual wire carries such frames.
    pub mtu: usize,
    /// How long the device's address is asked for. Default: 3 s.
    pub resolve_timeout: Duration,
    /// How long nothing may move in a step before it has failed. Default: 60 s.
    pub timeout: Duration,
    /// How the connection behaves. The defaults are generous: a simulated device may be slow.
    pub connect: ConnectOptions,
    /// A pcapng file of all that this caller sends and receives. Default: none.
    pub capture: Option<PathBuf>,
    /// Whether reports ask the device for its cycles. Default: no, as it takes time.
    pub trace: bool,
    /// What is done to its frames. Default: nothing.
    pub impairments: Impairments,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            wire: None,
            source: None,
            port: None,
            mtu: 4200,
            resolve_timeout: Duration::from_secs(3),
            timeout: Duration::from_secs(60),
            connect: ConnectOptions { keepalive: Some(Duration::from_secs(5)), ..ConnectOptions::default() },
            capture: None,
            trace: false,
            impairments: Impairments::default(),
        }
    }
}

/// A device that has been reached. It is cheap to clone; clones share one network address, and their calls run side by side.
#[derive(Clone)]
pub struct Device {
    shared: Arc<Shared>,
}

/// What a device and its calls share.
pub(crate) struct Shared {
    engine: Mutex<Engine>,
    pub(crate) ip: Ipv4Addr,
    pub(crate) timeout: Duration,
    descriptor: Option<Descriptor>,
    /// Where to ask the device for its cycles.
    traced: Option<WireDir>,
}

impl Shared {
    /// The engine. Whoever holds it carries frames for all.
    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        // A panic elsewhere left no half-made state that a call could see: each call looks at its own session only.
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tracer of what passes at the device from now on, if it is wanted and the device is on this machine.
    pub(crate) fn tracer(&self) -> Option<Tracer> {
        let control = Control::open(self.traced.as_ref()?, &self.descriptor.as_ref()?.name).ok()?;
        Tracer::start(control, self.descriptor.as_ref()?.clock_hz)
    }
}

impl Device {
    /// Joins the wire, takes an address, and finds the device at `ip`.
    ///
    /// # Errors
    /// [`Error::Link`] if there is no wire, [`Error::Unreachable`] if nobody has the address.
    pub fn connect(ip: Ipv4Addr, options: &Options) -> Result<Self, Error> {
        let wire = WireDir::open(options.wire.clone().unwrap_or_else(WireDir::default_path))?;
        let link = VirtualWire::join_anonymous(&wire)?;
        Self::connect_over(Box::new(link), Some(wire), ip, options)
    }

    /// As [`Device::connect`], over any link. With `wire`, what the devices there publish is used: without, the subnet is
    /// guessed, and reports have no device cycles.
    ///
    /// # Errors
    /// As [`Device::connect`].
    pub fn connect_over(
        link: Box<dyn Link>,
        wire: Option<WireDir>,
        ip: Ipv4Addr,
        options: &Options,
    ) -> Result<Self, Error> {
        if ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() {
            return Err(Error::invalid(format!("{ip} is no address of a device")));
        }
        let devices = wire.as_ref().map(discover::list).unwrap_or_default();
        let descriptor = devices.iter().find(|found| found.alive && found.device.ip == ip).map(|f| f.device.clone());
        let taken: Vec<Ipv4Addr> = devices.iter().map(|found| found.device.ip).collect();
        let prefix_len = descriptor.as_ref().map_or(ASSUMED_PREFIX_LEN, |device| device.prefix_len);

        let link =
            if options.impairments.is_none() { link } else { Box::new(Impaired::new(link, options.impairments)) };
        let mut link = Captured::new(link);
        if let Some(path) = &options.capture {
            link.recorder().start(PcapngWriter::create(
                path,
                "caller",
                &format!("Nacelle caller of the device at {ip}"),
            )?);
        }
        let mut port = Port::new(Box::new(link), options.mtu, options.resolve_timeout);
        port.take_address(options.source, ip, prefix_len, &taken)?;

        let service = options.port.or(descriptor.as_ref().map(|device| device.port)).unwrap_or(DEFAULT_PORT);
        let shared = Shared {
            engine: Mutex::new(Engine::new(port, ip, service, options.connect.clone())),
            ip,
            timeout: options.timeout,
            descriptor,
            traced: wire.filter(|_| options.trace),
        };
        let tracer = shared.tracer();
        {
            let mut engine = shared.engine();
            let timer = StepTimer::start(Step::AddressResolution, Mark::now(engine.port()));
            engine.port().resolve(ip, options.resolve_timeout)?;
            let mut step = timer.stop(Mark::now(engine.port()));
            step.cycles = tracer.and_then(|mut tracer| tracer.take().resolution(ip));
            engine.resolution = Some(step);
        }
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The device's address.
    #[must_use]
    pub fn ip(&self) -> Ipv4Addr {
        self.shared.ip
    }

    /// What the device says of itself, if it publishes that on this wire.
    #[must_use]
    pub fn descriptor(&self) -> Option<&Descriptor> {
        self.shared.descriptor.as_ref()
    }

    /// Opens a connection for calls of `function` on `regions`, and agrees with the device on the regions.
    ///
    /// # Errors
    /// [`Error::Refused`] or [`Error::RegionsRefused`] by the device; [`Error::Timeout`] or [`Error::Lost`] if it falls
    /// silent; [`Error::InvalidArgument`] if there are no regions, too many, or some that no device could have.
    pub fn create(&self, function: FunctionCode, regions: Vec<Region>) -> Result<Call, Error> {
        Call::create(Arc::clone(&self.shared), function, regions)
    }

    /// Pings the device with `length` bytes of payload. Returns the time that the answer took.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if no answer comes within `patience`.
    pub fn ping(&self, sequence: u16, length: usize, patience: Duration) -> Result<Duration, Error> {
        self.shared.engine().port().ping(self.shared.ip, sequence, length, patience)
    }
}

/// The end of a step that may take `time` from now.
pub(crate) fn deadline_in(time: Duration) -> Instant {
    let now = Instant::now();
    // A century is as good as never, where the clock does not reach further.
    now.checked_add(time).unwrap_or_else(|| now + Duration::from_secs(3_000_000_000))
}
