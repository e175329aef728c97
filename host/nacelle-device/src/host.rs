// SPDX-License-Identifier: Apache-2.0
//! Puts an engine on a link: moves frames, lets time pass, and answers on the management socket.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use nacelle_driver::{Limits, Pump, Station};
use nacelle_link::{Claim, Direction, Link, LinkError, PcapngWriter, Recorder, WireDir};
use nacelle_manage::{
    DEFAULT_MTU, Descriptor, DeviceKind, Done, Refusal, Reply, Request, Stats, discover::DESCRIPTOR_SUFFIX,
};
use nacelle_wire::cm::PathMtu;
use serde::Serialize;

use crate::{DeviceError, Engine, Identity, Management, PushError, Stamp, TraceLog};

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
/// Most frames that one turn moves: all that the device has to send.
const LIMITS: Limits = Limits { receive: 64, transmit: usize::MAX };
/// Accesses to registers in one request.
const MAX_ACCESSES: usize = 256;

/// Where a device is on a wire. No other device gets its name and address for as long as this value, or a copy of it, lives.
#[derive(Debug, Clone)]
pub struct Place {
    /// The wire.
    pub wire: WireDir,
    /// The device's name there.
    pub name: String,
    /// Its addresses.
    pub identity: Identity,
    _claims: Arc<[Claim; 2]>,
}

impl Place {
    /// Takes a name and an address that no device on the wire has: those that are named, else the first free ones. Of several
    /// that look at the same time, each gets others.
    ///
    /// # Errors
    /// [`DeviceError::Taken`] if a named one is taken; [`DeviceError::Link`] if the wire's directory cannot be used.
    pub fn find(
        wire: &WireDir,
        kind: DeviceKind,
        name: Option<&str>,
        address: Option<(Ipv4Addr, u8)>,
    ) -> Result<Self, DeviceError> {
        let claim_name = |name: &str| wire.claim(&format!("{name}.device"));
        let claim_ip = |ip: Ipv4Addr| wire.claim(&format!("{ip}.address"));
        let (name, name_claim) = match name {
            Some(name) => (name.to_owned(), claim_name(name)?),
            None => first_free((0..).map(|number| format!("{kind}{number}")), |name| claim_name(name))?,
        };
        let Some(name_claim) = name_claim else { return Err(DeviceError::Taken { what: format!("the name {name}") }) };
        let (first, default_len) = DEFAULT_ADDRESS;
        let (ip, ip_claim) = match address {
            Some((ip, _)) => (ip, claim_ip(ip)?),
            None => first_free((first.to_bits()..).map(Ipv4Addr::from_bits), |ip| claim_ip(*ip))?,
        };
        let Some(ip_claim) = ip_claim else { return Err(DeviceError::Taken { what: format!("the address {ip}") }) };
        let prefix_len = address.map_or(default_len, |(_, prefix_len)| prefix_len);
        let [_, b, c, d] = ip.octets();
        // Locally administered, and different for each address of a /8.
        let mac = [0x02, 0x4e, 0x41, b, c, d].into();
        let identity = Identity { mac, ip, prefix_len, gateway: None };
        Ok(Self { wire: wire.clone(), name, identity, _claims: Arc::new([name_claim, ip_claim]) })
    }
}

/// The first that can be claimed.
fn first_free<T>(
    all: impl Iterator<Item = T>,
    claim: impl Fn(&T) -> Result<Option<Claim>, LinkError>,
) -> Result<(T, Option<Claim>), LinkError> {
    for one in all {
        let claim = claim(&one)?;
        if claim.is_some() {
            return Ok((one, claim));
        }
    }
    unreachable!("there are more names and addresses than devices")
}

/// The address of the first device on a wire, and the length of its prefix.
pub const DEFAULT_ADDRESS: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 77, 0, 2), 16);

/// A device that runs on a link.
pub struct Host<E> {
    port: EthernetPort<E>,
    pump: Pump<Box<dyn Link>>,
    management: Management,
    descriptor: Published,
    idle_since: Option<Instant>,
    shutdown: bool,
}

impl<E: Engine> Host<E> {
    /// Configures and enables the device, and publishes it.
    ///
    /// # Errors
    /// If the name is taken, the device does not take its settings, or the wire cannot be written.
    pub fn new(mut engine: E, place: &Place, link: Box<dyn Link>, seed: u32) -> Result<Self, DeviceError> {
        let management = Management::open(place)?;
        engine.configure(&place.identity, seed)?;
        let facts = engine.facts();
        let descriptor = Descriptor {
            name: place.name.clone(),
            kind: facts.kind,
            ip: place.identity.ip,
            prefix_len: place.identity.prefix_len,
            mac: place.identity.mac,
            port: SERVICE_PORT,
            data_w: facts.data_w,
            clock_hz: facts.clock_hz,
            memory_bytes: facts.memory_bytes,
            pid: std::process::id(),
        };
        Ok(Self {
            port: EthernetPort::new(engine, descriptor.clock_hz),
            pump: Pump::new(link),
            management,
            descriptor: Published::new(&place.wire, descriptor)?,
            idle_since: None,
            shutdown: false,
        })
    }

    /// What the device says of itself.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor.descriptor
    }

    /// Captures to a file from now on. Its time stamps are device time: cycles of the stated clock since the device's start.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn capture(&mut self, path: &Path) -> Result<(), LinkError> {
        self.port.recorder.start(self.descriptor.capture(path)?);
        Ok(())
    }

    /// Runs the device until `stop` is set or a client asks for its end.
    ///
    /// # Errors
    /// [`LinkError`] if the link is broken for good, or the wire's directory was removed: then the device could not be reached
    /// any more, nor ended.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), LinkError> {
        let mut managed = Instant::now();
        let mut checked = Instant::now();
        while !stop.load(Ordering::Relaxed) && !self.shutdown {
            let now = Instant::now();
            if let Some(since) = self.idle_since.take() {
                self.port.engine.pass(now - since);
            }
            if now - checked > CHECK_EVERY {
                checked = now;
                self.descriptor.check()?;
            }
            self.pump.turn(&mut self.port, LIMITS)?;
            self.port.record();
            let idle = self.port.engine.idle() && self.port.waiting.is_none();
            // A request may have given the device something to do, or to send.
            let asked = (idle || managed.elapsed() > MANAGE_EVERY) && {
                managed = Instant::now();
                self.manage()
            };
            if idle && !asked {
                self.idle_since = Some(Instant::now());
                self.sleep()?;
            }
        }
        self.manage(); // the answer to the request that ended it
        Ok(())
    }

    fn sleep(&self) -> Result<(), LinkError> {
        let tick = Instant::now() + if self.management.is_writing() { WRITE_AGAIN } else { TICK };
        let until = self.port.next_deadline().map_or(tick, |at| at.min(tick));
        self.pump.sleep(self.port.engine.wake_fd().into_iter().chain(self.management.fds()), until)
    }

    /// Answers management requests. Returns whether there were any.
    fn manage(&mut self) -> bool {
        let Self { port: EthernetPort { engine, trace, recorder, .. }, pump, management, descriptor, shutdown, .. } =
            self;
        let mut asked = false;
        management.turn(|request| {
            asked = true;
            match request {
                Request::Info {} => reply(&descriptor.descriptor),
                Request::Stats {} => match engine.counters() {
                    Ok(mut counters) => {
                        let link = pump.link().stats();
                        counters.insert("link.tx_dropped".into(), link.tx_dropped);
                        counters.insert("link.tx_no_carrier".into(), link.tx_no_carrier);
                        reply(&Stats { cycles: engine.cycles(), counters })
                    }
                    Err(error) => Reply::Error(error.to_string()),
                },
                Request::Trace { since } => reply(&trace.since(since)),
                Request::CaptureStart { path } if path.is_absolute() => match descriptor.capture(&path) {
                    Ok(writer) => {
                        recorder.start(writer);
                        reply(&Done {})
                    }
                    Err(error) => Reply::Error(error.to_string()),
                },
                Request::CaptureStart { path } => Reply::Error(format!("{} is no absolute path", path.display())),
                Request::CaptureStop {} => match recorder.stop() {
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

/// A device's Ethernet port: what it takes and sends, with a record of both.
struct EthernetPort<E> {
    engine: E,
    /// Cycles of device time in a second.
    clock_hz: f64,
    /// The system's time when the device's time was zero.
    epoch: SystemTime,
    /// A frame that the device did not take.
    waiting: Option<Vec<u8>>,
    /// Frames that the device took, and of which it has not said when.
    entering: VecDeque<Vec<u8>>,
    /// Frames that passed since the last record.
    passed: Vec<(Stamp, Direction, Vec<u8>)>,
    trace: TraceLog,
    recorder: Recorder,
}

impl<E: Engine> EthernetPort<E> {
    fn new(engine: E, clock_hz: u32) -> Self {
        Self {
            engine,
            clock_hz: f64::from(clock_hz.max(1)),
            epoch: SystemTime::now(),
            waiting: None,
            entering: VecDeque::new(),
            passed: Vec::new(),
            trace: TraceLog::default(),
            recorder: Recorder::default(),
        }
    }

    fn push(&mut self, frame: Vec<u8>) {
        match self.engine.push(&frame) {
            Ok(()) => self.entering.push_back(frame),
            Err(PushError::Full) => self.waiting = Some(frame),
            // The device's Ethernet port drops it too.
            Err(PushError::Length) => {}
        }
    }

    /// Records the frames that have passed, in the order of device time.
    fn record(&mut self) {
        while let Some(stamp) = self.engine.rx_stamp() {
            self.passed.extend(self.entering.pop_front().map(|frame| (stamp, Direction::Inbound, frame)));
        }
        self.passed.sort_by_key(|(stamp, direction, _)| (stamp.first_beat, *direction == Direction::Outbound));
        for (stamp, direction, frame) in self.passed.drain(..) {
            let at = self.epoch + Duration::from_secs_f64(stamp.first_beat as f64 / self.clock_hz);
            self.recorder.record(at, direction, &frame);
            self.trace.add(stamp, direction, frame);
        }
    }
}

impl<E: Engine> Station for EthernetPort<E> {
    fn is_ready(&mut self) -> bool {
        if let Some(frame) = self.waiting.take() {
            self.push(frame);
        }
        self.waiting.is_none()
    }

    fn receive(&mut self, frame: &[u8]) {
        self.push(frame.to_vec());
    }

    fn work(&mut self) {
        self.engine.run();
    }

    fn transmit(&mut self, frame: &mut [u8]) -> Option<usize> {
        let (length, stamp) = self.engine.pull(frame)?;
        self.passed.push((stamp, Direction::Outbound, frame[..length].to_vec()));
        Some(length)
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.engine.wake_at()
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

/// A descriptor's file, as long as the device runs.
struct Published {
    descriptor: Descriptor,
    path: PathBuf,
}

impl Published {
    fn new(wire: &WireDir, descriptor: Descriptor) -> Result<Self, DeviceError> {
        let name = format!("{}{DESCRIPTOR_SUFFIX}", descriptor.name);
        let path = wire.file(&name);
        let what = || format!("write {}", path.display());
        let text = serde_json::to_vec_pretty(&descriptor).map_err(|error| DeviceError::io(what())(error.into()))?;
        wire.publish(&name, &text).map_err(DeviceError::io(what()))?;
        Ok(Self { descriptor, path })
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
        PcapngWriter::create(
            path,
            name,
            &format!("Nacelle device {name} ({kind}) at {ip}, {mac}: its Ethernet port, in device time"),
        )
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        let _gone_already_is_fine = fs::remove_file(&self.path);
    }
}
