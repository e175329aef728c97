// SPDX-License-Identifier: Apache-2.0
//! Devices: found, reached, and asked for calls.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nacelle_link::{Impairments, Link, LinkError, PacketLink, VirtualWire, WireDir, XdpLink};
use nacelle_manage::{Control, Descriptor, LinkKind, discover};
use nacelle_roce::ConnectOptions;
use nacelle_verbs::DeviceName;
use nacelle_wire::extensions::Agreement;
use nacelle_wire::mrsp::{DEFAULT_PORT, FunctionCode};

use crate::call::{CallOptions, Program};
use crate::connection::Line;
use crate::description::{self, Description};
use crate::engine::{Engine, ProgressThread};
use crate::inbox::deadline_in;
use crate::mtu::Found;
use crate::reach::{self, LinkChoice};
use crate::report::{StepReport, Tracer};
use crate::token::token_of_environment;
use crate::{Call, Connection, ConnectionOptions, Error, Region, Step, Target, ping};

/// The prefix that is assumed of a device which does not publish it, in bits: the smallest subnet in common use.
const ASSUMED_PREFIX_LEN: u8 = 24;

/// How a device is reached, and how long things may take.
#[derive(Debug, Clone)]
pub struct Options {
    /// The link by which the device is reached. Default: chosen by its address.
    pub link: LinkChoice,
    /// The directory of the wire. Default: [`WireDir::default_path`].
    pub wire: Option<PathBuf>,
    /// The caller's own address and the length of its prefix. Default: on the wire a free one in the device's subnet; by UDP a free
    /// loopback address for a device on this machine, else the address from which packets to it leave.
    pub source: Option<(IpAddr, u8)>,
    /// The port of the device's service. Default: what the device publishes, else 12345.
    pub port: Option<u16>,
    /// Longest IP packet, in bytes. Default: the longest that is known to arrive, up to 4200, for a path MTU of 4096. On the wire
    /// that is 4200 for a device that publishes itself there; any other host is asked by pings of these lengths, and one that does
    /// not answer gets 1500. By UDP it is at most what the kernel says of the way to the device, in any case.
    /// [`ConnectOptions::path_mtu`] bounds it too.
    pub mtu: Option<usize>,
    /// How long the device's address is asked for. Default: 3 s.
    pub resolve_timeout: Duration,
    /// How long nothing may move in a step before it has failed. Default: 60 s.
    pub timeout: Duration,
    /// How the connection behaves. The defaults are generous: a simulated device may be slow. Its token is what the device admits this
    /// caller by; without one it is that of the file that the environment variable NACELLE_TOKEN_FILE names, if any.
    pub connect: ConnectOptions,
    /// A pcapng file of all that this caller sends and receives. Default: none.
    pub capture: Option<PathBuf>,
    /// Whether reports ask the device for its cycles. Default: no, as it takes time.
    pub trace: bool,
    /// What is done to its frames. Default: nothing.
    pub impairments: Impairments,
    /// Whether a thread makes progress from now until the last clone of the device, and its last call, is dropped. Without one,
    /// threads that wait make progress, and programs that call [`Device::progress`]. Default: no.
    pub progress_thread: bool,
    /// Whether a call opens a new connection when it is invoked after the loss of the device. Default: no.
    pub reconnect: bool,
    /// Time that a device which is not Nacelle's (it agrees to no extension) gets between its answer and the next call: some, as
    /// NAAICE's software device, lose a call that follows their answer at once. A call that is invoked sooner leaves later. Default:
    /// sixteen times as long as it took to answer the region request, 100 ms at most: a slow device needs more time than a fast one.
    pub answer_gap: Option<Duration>,
    /// How long a blocking wait, after something moved, polls for more before it sleeps: this saves the time of waking up, at
    /// the cost of a busy processor. 0 is allowed. Default: 200 µs by UDP and shared memory; none on the wire, where the processor is better left
    /// to the device.
    pub spin: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            link: LinkChoice::Auto,
            wire: None,
            source: None,
            port: None,
            mtu: None,
            resolve_timeout: Duration::from_secs(3),
            timeout: Duration::from_secs(60),
            connect: ConnectOptions { keepalive: Some(Duration::from_secs(5)), ..ConnectOptions::default() },
            capture: None,
            trace: false,
            impairments: Impairments::default(),
            progress_thread: false,
            reconnect: false,
            answer_gap: None,
            spin: None,
        }
    }
}

/// A device that has been reached. It is cheap to clone; clones share one network address, and their calls run side by side.
#[derive(Clone)]
pub struct Device {
    pub(crate) shared: Arc<Shared>,
}

/// What a device and its calls share.
pub(crate) struct Shared {
    pub(crate) engine: Arc<Engine>,
    /// Makes progress, if it was asked for.
    _thread: Option<ProgressThread>,
    pub(crate) link: LinkKind,
    pub(crate) ip: IpAddr,
    /// The port of the device's service.
    pub(crate) service: u16,
    pub(crate) connect: ConnectOptions,
    /// The path MTU in bytes, if it may be too long for the way.
    pub(crate) doubtful_mtu: Option<usize>,
    pub(crate) timeout: Duration,
    pub(crate) reconnect: bool,
    pub(crate) answer_gap: Option<Duration>,
    /// How the device's address was found.
    pub(crate) resolution: StepReport,
    descriptor: Option<Descriptor>,
    /// Its description of itself, once it was read; `None` if it has none.
    description: OnceLock<Option<Description>>,
    /// Where to ask the device for its cycles.
    traced: Option<WireDir>,
}

impl Shared {
    /// As [`Device::describe`].
    pub(crate) fn describe(self: &Arc<Self>) -> Result<Option<&Description>, Error> {
        if let Some(known) = self.description.get() {
            return Ok(known.as_ref());
        }
        let read = description::read(self)?;
        Ok(self.description.get_or_init(|| read).as_ref())
    }

    /// What a result code of a function means, as far as the device's description has been read.
    pub(crate) fn kernel_code(&self, function: u8, code: u32) -> String {
        let described = self.description.get().and_then(Option::as_ref).and_then(|all| all.function(function));
        let text = described.and_then(|function| function.errors.get(&u8::try_from(code).ok()?));
        text.map_or_else(|| "a result code of its kernel".into(), Clone::clone)
    }

    /// A tracer of what passes at the device from now on, if it is wanted and the device is on this machine.
    pub(crate) fn tracer(&self) -> Option<Tracer> {
        tracer(self.traced.as_ref()?, self.descriptor.as_ref()?)
    }
}

fn tracer(wire: &WireDir, device: &Descriptor) -> Option<Tracer> {
    Tracer::start(Control::open(wire, &device.name).ok()?, device.clock_hz)
}

/// What the device at `ip` publishes on a wire, if it runs. Only this device is queried: others may be slow, or may have been
/// killed.
fn published(wire: &WireDir, ip: IpAddr) -> Option<Descriptor> {
    let meant = discover::published(wire).into_iter().filter(|device| device.ip == ip).collect();
    discover::alive(wire, meant)
}

fn ipv4(device: &Descriptor) -> Option<Ipv4Addr> {
    match device.ip {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}

fn check(ip: IpAddr) -> Result<(), Error> {
    if ip.is_unspecified() || ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST) {
        return Err(Error::invalid(format!("{ip} is no address of a device")));
    }
    Ok(())
}

/// How a device was reached.
struct Reached {
    link: LinkKind,
    ip: IpAddr,
    /// What it publishes on this machine.
    descriptor: Option<Descriptor>,
    /// What it cost to find it.
    resolution: StepReport,
    /// The path MTU, if the link has one.
    found: Option<Found>,
    /// The wire whose device tells the cycles of its steps.
    traced: Option<WireDir>,
}

impl Device {
    /// Chooses a link ([`Options::link`]), takes an address there, and finds a device: at an address, by the name that it
    /// publishes on this machine, or the first of several that can be reached, in their order.
    ///
    /// By UDP and shared memory nothing is asked of the device yet: whether one is there shows in [`Device::create`], unless the address is one of
    /// this machine.
    ///
    /// # Errors
    /// [`Error::Link`] if there is no wire, or no address or port for a UDP socket; [`Error::Unreachable`] if no host has the
    /// address; `NoSuchDevice` if none has the name; [`Error::NoTarget`] if none of several can be reached.
    pub fn connect<T>(target: T, options: &Options) -> Result<Self, Error>
    where
        T: TryInto<Target>,
        Error: From<T::Error>,
    {
        target.try_into()?.try_each(|target| {
            let wire = WireDir::open(options.wire.clone().unwrap_or_else(WireDir::default_path));
            let ip = match (target, &wire) {
                (Target::Address(ip), _) => *ip,
                (_, Ok(wire)) => target.address(wire)?,
                (_, Err(_)) => return Err(wire.map(|_| ()).unwrap_err().into()),
            };
            Self::connect_to(ip, wire, options)
        })
    }

    fn connect_to(ip: IpAddr, wire: Result<WireDir, LinkError>, options: &Options) -> Result<Self, Error> {
        let link = options.link.resolve(ip, options.source.map(|(ip, _)| ip), wire.as_ref().ok()).link;
        let is_asked = options.link == LinkChoice::Shm;
        match (link, ip) {
            (LinkKind::Shm, _) => {
                let by_shm = |wire: &WireDir| Self::connect_by_shm(ip, wire.clone(), options);
                match wire.as_ref().map(by_shm) {
                    // It may have no room, or have ended a moment ago.
                    Ok(Err(Error::Link(_))) if !is_asked => Self::connect_by_udp(ip, wire.ok(), options),
                    Ok(outcome) => outcome,
                    Err(_) => Err(wire.map(|_| ()).unwrap_err().into()),
                }
            }
            (LinkKind::Packet | LinkKind::Xdp, IpAddr::V4(ip)) => Self::connect_on_interface(link, ip, options),
            (LinkKind::Udp, _) => Self::connect_by_udp(ip, wire.ok(), options),
            (LinkKind::Verbs, _) => match options.link {
                LinkChoice::Verbs(device) => Self::connect_by_nic(ip, device, wire.ok(), options),
                // A NIC shows no packets.
                _ if options.capture.is_some() || !options.impairments.is_none() => {
                    Self::connect_by_udp(ip, wire.ok(), options)
                }
                _ => Self::connect_by_nic(ip, None, wire.ok(), options),
            },
            (LinkKind::Wire, IpAddr::V4(ip)) => {
                let wire = wire?;
                let link = VirtualWire::join_anonymous(&wire)?;
                Self::connect_over(Box::new(link), Some(wire), ip, options)
            }
            (LinkKind::Wire | LinkKind::Packet | LinkKind::Xdp, IpAddr::V6(_)) => {
                Err(Error::invalid(format!("{ip} cannot be reached by frames: that link carries IPv4 only")))
            }
        }
    }

    fn connect_on_interface(kind: LinkKind, ip: Ipv4Addr, options: &Options) -> Result<Self, Error> {
        let (LinkChoice::Packet(interface) | LinkChoice::Xdp(interface)) = options.link else {
            return Err(Error::invalid("the link names no interface"));
        };
        // Which addresses of a network are free, only its administrator knows.
        let Some((IpAddr::V4(source), _)) = options.source else {
            return Err(Error::invalid(format!(
                "a host on {interface} needs an IPv4 address of its own: name one as the source"
            )));
        };
        let (link, ip_mtu): (Box<dyn Link>, _) = if kind == LinkKind::Xdp {
            let link = XdpLink::open(interface, source)?;
            let ip_mtu = link.ip_mtu();
            (Box::new(link), ip_mtu)
        } else {
            let link = PacketLink::open(interface)?;
            let ip_mtu = link.ip_mtu();
            (Box::new(link), ip_mtu)
        };
        let mtu = options.mtu.map_or(ip_mtu, |mtu| mtu.min(ip_mtu));
        Self::over_frames(link, kind, None, ip, &Options { mtu: Some(mtu), ..options.clone() })
    }

    fn connect_by_shm(ip: IpAddr, wire: WireDir, options: &Options) -> Result<Self, Error> {
        let engine = reach::on_shm(ip, &wire, options)?;
        Self::over_datagrams(engine, LinkKind::Shm, ip, Some(wire), options)
    }

    fn connect_by_udp(ip: IpAddr, wire: Option<WireDir>, options: &Options) -> Result<Self, Error> {
        check(ip)?;
        let engine = reach::on_udp(ip, options)?;
        Self::over_datagrams(engine, LinkKind::Udp, ip, wire, options)
    }

    fn connect_by_nic(
        ip: IpAddr,
        device: Option<DeviceName>,
        wire: Option<WireDir>,
        options: &Options,
    ) -> Result<Self, Error> {
        check(ip)?;
        let engine = reach::on_nic(ip, device, options)?;
        Self::over_datagrams(engine, LinkKind::Verbs, ip, wire, options)
    }

    fn over_datagrams(
        engine: Engine,
        link: LinkKind,
        ip: IpAddr,
        wire: Option<WireDir>,
        options: &Options,
    ) -> Result<Self, Error> {
        let descriptor = wire.as_ref().and_then(|wire| published(wire, ip));
        let began = engine.lock_now().mark();
        let resolution = StepReport::between(Step::AddressResolution, began, began);
        let mut options = options.clone();
        options.connect.late_acknowledgement = true;
        let local = ip.is_loopback() || descriptor.is_some();
        let found = engine.largest_path_mtu().map(|path_mtu| Found { path_mtu, is_proven: local });
        let reached = Reached { link, ip, descriptor, resolution, found, traced: None };
        Self::new(engine, reached, &options)
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
        Self::over_frames(link, LinkKind::Wire, wire, ip, options)
    }

    fn over_frames(
        link: Box<dyn Link>,
        kind: LinkKind,
        wire: Option<WireDir>,
        ip: Ipv4Addr,
        options: &Options,
    ) -> Result<Self, Error> {
        check(ip.into())?;
        let source = match options.source {
            None => None,
            Some((IpAddr::V4(source), prefix_len)) => Some((source, prefix_len)),
            Some((source, _)) => {
                return Err(Error::invalid(format!("{source} cannot be on the wire, which carries IPv4")));
            }
        };
        let taken: Vec<Ipv4Addr> =
            wire.as_ref().map(discover::published).unwrap_or_default().iter().filter_map(ipv4).collect();
        let descriptor = wire.as_ref().and_then(|wire| published(wire, ip.into()));
        let prefix_len = descriptor.as_ref().map_or(ASSUMED_PREFIX_LEN, |device| device.prefix_len);

        let engine = reach::on_frames(link, ip, options)?;
        engine.take_address(source, ip, prefix_len, &taken)?;

        let traced = wire.filter(|_| options.trace);
        let tracer = traced.as_ref().zip(descriptor.as_ref()).and_then(|(wire, device)| tracer(wire, device));
        let began = engine.lock_now().mark();
        engine.resolve(ip, options.resolve_timeout)?;
        let mut resolution = StepReport::between(Step::AddressResolution, began, engine.lock_now().mark());
        resolution.cycles = tracer.and_then(|mut tracer| tracer.take().resolution(ip.into()));
        let is_published = descriptor.is_some();
        let most = engine.largest_path_mtu().map(|most| options.connect.path_mtu.map_or(most, |own| own.min(most)));
        let found = match most {
            Some(most) if !is_published && options.mtu.is_none() => {
                Some(Found { path_mtu: engine.probe_path_mtu(ip, most)?, is_proven: true })
            }
            most => most.map(|path_mtu| Found { path_mtu, is_proven: is_published }),
        };
        let reached = Reached { link: kind, ip: ip.into(), descriptor, resolution, found, traced };
        Self::new(engine, reached, options)
    }

    fn new(engine: Engine, reached: Reached, options: &Options) -> Result<Self, Error> {
        let Reached { link, ip, descriptor, resolution, found, traced } = reached;
        let token = match options.connect.token {
            None => token_of_environment()?,
            token => token,
        };
        let service = options.port.or(descriptor.as_ref().map(|device| device.port)).unwrap_or(DEFAULT_PORT);
        let engine = Arc::new(engine);
        let thread = options.progress_thread.then(|| ProgressThread::start(Arc::clone(&engine))).transpose();
        let thread = thread.map_err(|source| LinkError::Io { what: "start a thread".into(), source })?;
        let shared = Shared {
            engine,
            _thread: thread,
            link,
            ip,
            service,
            connect: ConnectOptions {
                path_mtu: found.map(|found| found.path_mtu).into_iter().chain(options.connect.path_mtu).min(),
                token,
                ..options.connect.clone()
            },
            doubtful_mtu: found.and_then(Found::doubtful),
            timeout: options.timeout,
            reconnect: options.reconnect,
            answer_gap: options.answer_gap,
            resolution,
            descriptor,
            description: OnceLock::new(),
            traced,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The device's address.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        self.shared.ip
    }

    /// By which link it is reached.
    #[must_use]
    pub fn link(&self) -> LinkKind {
        self.shared.link
    }

    /// Whether it is reached by datagrams, of a UDP socket, by shared memory or by an RDMA NIC: then there is no ICMP.
    #[must_use]
    pub fn is_by_udp(&self) -> bool {
        matches!(self.shared.link, LinkKind::Udp | LinkKind::Shm | LinkKind::Verbs)
    }

    /// Reads the device's description of itself over the network, once: its functions, their regions, what result codes mean.
    /// `None` if it has none.
    ///
    /// # Errors
    /// [`Error::Refused`] by the device; [`Error::Timeout`] or [`Error::Lost`] if it stops responding; [`Error::Protocol`] if the
    /// description cannot be read.
    pub fn describe(&self) -> Result<Option<&Description>, Error> {
        self.shared.describe()
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
        self.create_with(function, regions, &CallOptions::default())
    }

    /// As [`Device::create`], with options.
    ///
    /// # Errors
    /// As [`Device::create`].
    pub fn create_with(
        &self,
        function: FunctionCode,
        regions: Vec<Region>,
        options: &CallOptions,
    ) -> Result<Call, Error> {
        let line = Line::new(Arc::clone(&self.shared), Agreement::default());
        Call::create(Arc::new(line), Program::Function(function), regions, options)
    }

    /// Opens a connection on which several calls run side by side, can be cancelled one by one, and may be chains, as far as
    /// the device agrees.
    ///
    /// # Errors
    /// [`Error::Refused`] by the device; [`Error::Timeout`] or [`Error::Lost`] if it stops responding.
    pub fn open(&self, options: &ConnectionOptions) -> Result<Connection, Error> {
        Connection::open(Arc::clone(&self.shared), options)
    }

    /// A descriptor for the program's event loop: readable when [`Device::progress`] has something to do, or there is news
    /// of a call. It belongs to the device: poll it only, level-triggered.
    ///
    /// # Errors
    /// [`Error::Link`] if the system has no descriptors left.
    pub fn fd(&self) -> Result<BorrowedFd<'_>, Error> {
        Ok(self.shared.engine.pollable()?)
    }

    /// Moves what can be moved at once, for all calls of the device, and never waits. Then look at the calls by
    /// [`Call::test`].
    ///
    /// # Errors
    /// [`Error::Link`] if the wire is broken.
    pub fn progress(&self) -> Result<(), Error> {
        Ok(self.shared.engine.progress()?)
    }

    /// Pings the device with `length` bytes of payload, under the number `sequence`, or the next that no other ping under way
    /// has. Returns the time that the answer took. Calls go on meanwhile.
    ///
    /// By UDP, where ICMP is the kernel's, it is an RDMA WRITE without payload on a connection of its own, and the time is that to
    /// its acknowledgement.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if no answer comes within `patience`.
    pub fn ping(&self, sequence: u16, length: usize, patience: Duration) -> Result<Duration, Error> {
        match self.shared.ip {
            IpAddr::V4(ip) if !self.is_by_udp() => self.shared.engine.ping(ip, sequence, length, patience),
            _ => ping::by_write(&self.shared, patience),
        }
    }

    /// Waits until the device has confirmed the end (DREP) of every call that was closed or dropped, for `patience` at most. Returns
    /// whether it has. [`Call::close`] does not wait for that: a device that does not receive the DREQ detects the end by its keep-alive,
    /// which takes longer.
    ///
    /// # Errors
    /// [`Error::Link`] if the wire is broken.
    pub fn settle(&self, patience: Duration) -> Result<bool, Error> {
        Ok(self.shared.engine.settle(deadline_in(patience))?)
    }
}
