// SPDX-License-Identifier: Apache-2.0
//! Puts a device on a link: moves packets, lets time pass, and answers on the management socket.

use std::fs::{self, File};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nacelle_driver::{DatagramMedium, Medium, Pump};
use nacelle_link::{Link, LinkError, PcapngWriter, WireDir};
use nacelle_manage::{
    DEFAULT_MTU, Descriptor, Done, LinkKind, MAX_ACCESSES, Manage, Refusal, Reply, Request, Stats,
    discover::DESCRIPTOR_SUFFIX,
};
use nacelle_roce::UdpInterface;
use nacelle_wire::MacAddr;
use nacelle_wire::cm::PathMtu;
use serde::Serialize;

use crate::{DatagramEngine, DeviceError, Engine, EthernetPort, FrameEngine, Management, Place, Port, UdpPort};

/// The port of the service, in the TCP port space of the RDMA connection manager: NAAICE's.
pub const SERVICE_PORT: u16 = 12_345;
/// How long a stop request or a waiting answer may go unnoticed, at most.
const TICK: Duration = Duration::from_millis(200);
/// How soon to look again after a client that does not take its answer.
const WRITE_AGAIN: Duration = Duration::from_millis(1);
/// How often to see whether the wire is still there.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// The management socket is looked at this often while the device is busy.
const MANAGE_EVERY: Duration = Duration::from_millis(20);
/// How long the peers of a device that ends may take to agree.
const LEAVE_WITHIN: Duration = Duration::from_millis(200);

/// Longest IP packet of a device on a UDP socket, in bytes: room for a path MTU of 4096. A caller requests less where its way
/// takes less.
const UDP_IP_MTU: usize = 4200;

/// A device that runs on a link.
pub struct Host<P: Port> {
    port: P,
    pump: Pump<P::Medium>,
    management: Management,
    descriptor: Published,
    idle_since: Option<Instant>,
    shutdown: bool,
}

impl<E: FrameEngine> Host<EthernetPort<E>> {
    /// Configures and enables the device, and publishes it.
    ///
    /// # Errors
    /// If the name is taken, the device does not take its settings, or the wire cannot be written.
    pub fn new(engine: E, place: &Place, link: Box<dyn Link>, seed: u32) -> Result<Self, DeviceError> {
        Self::by_frames(engine, place, link, LinkKind::Wire, seed)
    }

    /// The same for a device that is a host of an interface's network ([`nacelle_link::PacketLink`],
    /// [`nacelle_link::XdpLink`]).
    ///
    /// # Errors
    /// As [`Host::new`].
    pub fn on_interface(engine: E, place: &Place, link: Box<dyn Link>, seed: u32) -> Result<Self, DeviceError> {
        Self::by_frames(engine, place, link, LinkKind::Packet, seed)
    }

    fn by_frames(
        mut engine: E,
        place: &Place,
        link: Box<dyn Link>,
        kind: LinkKind,
        seed: u32,
    ) -> Result<Self, DeviceError> {
        let management = Management::open(place)?;
        engine.configure(&place.identity, seed)?;
        let mut descriptor = describe(&engine, &place.name, place.identity.ip.into());
        descriptor.link = kind;
        descriptor.prefix_len = place.identity.prefix_len;
        descriptor.mac = place.identity.mac;
        if let Some((ip, prefix_len)) = engine.address() {
            (descriptor.ip, descriptor.prefix_len) = (ip.into(), prefix_len);
        }
        let port = EthernetPort::new(engine, descriptor.clock_hz);
        Self::over(port, Pump::new(link), management, place, descriptor)
    }
}

impl<E: DatagramEngine> Host<UdpPort<E>> {
    /// The same for a device on a UDP socket, which callers reach through the kernel's network.
    ///
    /// # Errors
    /// If the name is taken, or the wire cannot be written.
    pub fn by_udp(
        mut engine: E,
        place: &Place<IpAddr>,
        medium: DatagramMedium,
        seed: u32,
    ) -> Result<Self, DeviceError> {
        let management = Management::open(place)?;
        engine.configure_udp(UdpInterface::new(medium.local(), UDP_IP_MTU), seed);
        let mut descriptor = describe(&engine, &place.name, place.identity);
        descriptor.link = LinkKind::Udp;
        Self::over(UdpPort::new(engine), Pump::over(medium), management, place, descriptor)
    }
}

/// What is said of a device at this address, on the wire.
fn describe(engine: &impl Engine, name: &str, ip: IpAddr) -> Descriptor {
    let facts = engine.facts();
    Descriptor {
        name: name.to_owned(),
        kind: facts.kind,
        link: LinkKind::Wire,
        ip,
        prefix_len: if ip.is_ipv4() { 32 } else { 128 },
        mac: MacAddr::default(),
        port: SERVICE_PORT,
        data_w: facts.data_w,
        clock_hz: facts.clock_hz,
        memory_bytes: facts.memory_bytes,
        pid: std::process::id(),
    }
}

impl<P: Port> Host<P> {
    fn over<I>(
        port: P,
        pump: Pump<P::Medium>,
        management: Management,
        place: &Place<I>,
        descriptor: Descriptor,
    ) -> Result<Self, DeviceError> {
        let descriptor = Published::new(place.wire.clone(), descriptor)?;
        Ok(Self { port, pump, management, descriptor, idle_since: None, shutdown: false })
    }

    /// The device itself, for what its link does not show.
    pub fn engine(&mut self) -> &mut P::Engine {
        self.port.engine()
    }

    /// What the device says of itself.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor.descriptor
    }

    /// Captures to a file from now on. Its time stamps are device time, cycles of the stated clock since the device's start; on a
    /// UDP socket the system's time.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn capture(&mut self, path: &Path) -> Result<(), LinkError> {
        let writer = self.descriptor.capture(path)?;
        self.port.recorder(self.pump.medium_mut()).start(writer);
        Ok(())
    }

    /// Runs the device until `stop` is set or a client asks for its end.
    ///
    /// # Errors
    /// [`LinkError`] if the link is broken for good, or the wire's directory was removed: then the device could not be reached
    /// any more, nor ended.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), LinkError> {
        let (mut manage_at, mut check_at) = (Instant::now() + MANAGE_EVERY, Instant::now() + CHECK_EVERY);
        while !stop.load(Ordering::Relaxed) && !self.shutdown {
            let now = Instant::now();
            if let Some(since) = self.idle_since.take() {
                self.port.engine().pass(now - since);
            }
            if now > check_at {
                check_at = now + CHECK_EVERY;
                self.descriptor.check()?;
                if let Some((ip, prefix_len)) = self.port.engine().address() {
                    self.descriptor.moved(ip.into(), prefix_len)?;
                }
            }
            self.pump.turn(now, &mut self.port, P::LIMITS)?;
            self.port.record();
            let idle = self.port.is_idle() && !self.pump.pause(now);
            // A request may have given the device something to do, or to send.
            let asked = (idle || now > manage_at) && {
                manage_at = now + MANAGE_EVERY;
                self.manage()
            };
            if idle && !asked {
                self.idle_since = Some(Instant::now());
                self.sleep(now)?;
            }
        }
        self.manage(); // the answer to the request that ended it
        self.leave()
    }

    /// Sends the answers of calls that have ended, and ends all connections, so that callers need not find out by themselves.
    fn leave(&mut self) -> Result<(), LinkError> {
        let deadline = Instant::now() + LEAVE_WITHIN;
        self.pump.turn(Instant::now(), &mut self.port, P::LIMITS)?;
        self.port.engine().leave();
        loop {
            let now = Instant::now();
            let moved = self.pump.turn(now, &mut self.port, P::LIMITS)?;
            self.port.record();
            if now >= deadline || !self.port.engine().is_leaving() {
                return Ok(());
            }
            if !moved {
                let until = self.port.next_deadline().map_or(deadline, |at| at.min(deadline));
                self.pump.sleep(now, self.port.wake_fds(), until)?;
            }
        }
    }

    fn sleep(&mut self, now: Instant) -> Result<(), LinkError> {
        let tick = now + if self.management.is_writing() { WRITE_AGAIN } else { TICK };
        let until = self.port.next_deadline().map_or(tick, |at| at.min(tick));
        self.pump.sleep(now, self.port.wake_fds().into_iter().chain(self.management.fds()), until)
    }

    /// Answers management requests. Returns whether there were any.
    fn manage(&mut self) -> bool {
        let Self { port, pump, management, descriptor, shutdown, .. } = self;
        let mut asked = false;
        management.turn(|request| {
            asked = true;
            let engine = port.engine();
            match request {
                Request::Info {} => reply(&descriptor.descriptor),
                Request::Stats {} => match engine.counters() {
                    Ok(mut counters) => {
                        let link = pump.medium().stats();
                        counters.insert("link.rx_dropped".into(), link.rx_dropped);
                        counters.insert("link.tx_dropped".into(), link.tx_dropped);
                        counters.insert("link.tx_no_carrier".into(), link.tx_no_carrier);
                        reply(&Stats { cycles: engine.cycles(), counters })
                    }
                    Err(error) => Reply::Error(error.to_string()),
                },
                Request::Trace { since } => match port.trace(since) {
                    Some(trace) => reply(&trace),
                    None => Reply::Error("a device on a UDP socket sees no frames, and stores none".into()),
                },
                Request::CaptureStart { path } if path.is_absolute() => match descriptor.capture(&path) {
                    Ok(writer) => {
                        port.recorder(pump.medium_mut()).start(writer);
                        reply(&Done {})
                    }
                    Err(error) => Reply::Error(error.to_string()),
                },
                Request::CaptureStart { path } => Reply::Error(format!("{} is no absolute path", path.display())),
                Request::CaptureStop {} => match port.recorder(pump.medium_mut()).stop() {
                    Ok(true) => reply(&Done {}),
                    Ok(false) => Reply::Error("no capture runs".into()),
                    Err(error) => Reply::Error(format!("the capture had ended before: {error}")),
                },
                Request::Shutdown {} => {
                    *shutdown = true;
                    reply(&Done {})
                }
                Request::QueuePairs {} => answer(engine.queue_pairs()),
                Request::QueuePairCounters { qpn } => answer(engine.queue_pair_counters(qpn)),
                Request::ResetQueuePairs { qpn } => answer(engine.reset(qpn)),
                Request::Regions {} => answer(engine.regions()),
                Request::Domains {} => answer(engine.domains()),
                Request::Registers { accesses } if accesses.len() > MAX_ACCESSES => {
                    Reply::Error(format!("{} accesses are more than {MAX_ACCESSES}", accesses.len()))
                }
                Request::Registers { accesses } => answer(engine.registers(&accesses)),
                Request::Kernels {} => answer(engine.kernels()),
                Request::ActivateKernel { socket, image, digest } => {
                    answer(engine.activate_kernel(socket, image, digest).map(|()| Done {}))
                }
                Request::RollBackKernel { socket } => answer(engine.roll_back_kernel(socket).map(|()| Done {})),
                Request::CutKernel { socket } => answer(engine.cut_kernel(socket).map(|()| Done {})),
                Request::Connect { peer, port, private, mtu } => {
                    answer(path_mtu(mtu).and_then(|mtu| engine.connect(peer, port, mtu, &private.0)))
                }
                Request::Post { connection, work } => answer(engine.post(connection, work).map(|()| Done {})),
                Request::Poll { connection } => answer(engine.poll(connection)),
                Request::Close { connection } => answer(engine.close(connection).map(|()| Done {})),
            }
        });
        asked
    }
}

/// The path MTU that is asked for.
fn path_mtu(bytes: Option<u16>) -> Result<PathMtu, Refusal> {
    let Some(bytes) = bytes else { return Ok(DEFAULT_MTU) };
    let mtu = PathMtu::ALL.into_iter().find(|mtu| mtu.bytes() == usize::from(bytes));
    mtu.ok_or_else(|| Refusal(format!("{bytes} bytes are no path MTU: it is 256, 512, 1024, 2048 or 4096")))
}

fn answer(outcome: Result<impl Serialize, Refusal>) -> Reply<serde_json::Value> {
    match outcome {
        Ok(answer) => reply(&answer),
        Err(refusal) => Reply::Error(refusal.to_string()),
    }
}

fn reply(answer: &impl Serialize) -> Reply<serde_json::Value> {
    match serde_json::to_value(answer) {
        Ok(value) => Reply::Ok(value),
        Err(error) => Reply::Error(error.to_string()),
    }
}

fn file_name(descriptor: &Descriptor) -> String {
    format!("{}{DESCRIPTOR_SUFFIX}", descriptor.name)
}

/// A descriptor's file, as long as the device runs.
struct Published {
    descriptor: Descriptor,
    wire: WireDir,
    path: PathBuf,
}

impl Published {
    fn new(wire: WireDir, descriptor: Descriptor) -> Result<Self, DeviceError> {
        let path = wire.file(&file_name(&descriptor));
        let published = Self { descriptor, wire, path };
        published.write().map_err(DeviceError::io(format!("write {}", published.path.display())))?;
        Ok(published)
    }

    fn write(&self) -> std::io::Result<()> {
        self.wire.publish(&file_name(&self.descriptor), &serde_json::to_vec_pretty(&self.descriptor)?)
    }

    /// The device has this address now.
    fn moved(&mut self, ip: IpAddr, prefix_len: u8) -> Result<(), LinkError> {
        if (self.descriptor.ip, self.descriptor.prefix_len) == (ip, prefix_len) {
            return Ok(());
        }
        (self.descriptor.ip, self.descriptor.prefix_len) = (ip, prefix_len);
        self.write().map_err(|source| LinkError::Io { what: format!("write {}", self.path.display()), source })
    }

    /// Detects that the wire was removed.
    fn check(&self) -> Result<(), LinkError> {
        if self.path.exists() {
            return Ok(());
        }
        Err(LinkError::BadPath { path: self.path.clone(), why: "it was removed while the device ran" })
    }

    /// Begins a capture file that says whose it is.
    fn capture(&self, path: &Path) -> Result<PcapngWriter<File>, LinkError> {
        let Descriptor { name, kind, ip, mac, .. } = &self.descriptor;
        let what = match self.descriptor.link {
            LinkKind::Wire | LinkKind::Packet | LinkKind::Xdp => {
                format!("{ip}, {mac}: its Ethernet port, in device time")
            }
            LinkKind::Udp | LinkKind::Shm | LinkKind::Verbs => format!("{ip}: its UDP socket, and shared memory"),
        };
        PcapngWriter::create(path, &[name], &format!("Nacelle device {name} ({kind}) at {what}"))
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        let _gone_already_is_fine = fs::remove_file(&self.path);
    }
}
