// SPDX-License-Identifier: Apache-2.0
//! A caller made of single steps, to do what the client library would not.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use nacelle::DeviceKind;
use nacelle_device::{Place, SoftConfig, SoftEngine};
use nacelle_link::{Link, MAX_FRAME, VirtualWire, WireDir};
use nacelle_manage::Control;
use nacelle_roce::wire::mrsp::{ARegion, AarRegion, CallImm, Message, RegionFlags};
use nacelle_roce::{
    Access, Completion, ConnId, ConnectFailure, ConnectOptions, Endpoint, EndpointConfig, Event, RecvWr, Region,
    SendWr, WcOpcode, WcStatus,
};
use nacelle_wire::mrsp::{DEFAULT_PORT, FunctionCode};

use super::Running;

/// How long anything may take that is to happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// A software device on a wire of its own.
pub(crate) struct Bench {
    pub(crate) place: Place,
    _device: Running,
    _temp: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new(config: impl FnOnce(&mut SoftConfig) + Send + 'static) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let wire = WireDir::open(temp.path().join("wire")).unwrap();
        let place = Place::find(&wire, DeviceKind::Soft, None, None).unwrap();
        let device = Running::start(&place, || {
            let mut soft = SoftConfig::default();
            config(&mut soft);
            SoftEngine::new(soft)
        });
        Self { place, _device: device, _temp: temp }
    }

    pub(crate) fn caller(&self, number: u8) -> Caller {
        Caller::join(&self.place.wire, self.place.identity.ip, number)
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        Control::open(&self.place.wire, &self.place.name).unwrap().stats().unwrap().counters[name]
    }

    pub(crate) fn wait_for_counter(&self, name: &str, value: u64) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.counter(name) != value {
            assert!(Instant::now() < deadline, "{name} is {}, not {value}", self.counter(name));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A station on the wire.
pub(crate) struct Caller {
    pub(crate) ep: Endpoint,
    pub(crate) device: Ipv4Addr,
    pub(crate) ip: Ipv4Addr,
    link: VirtualWire,
    epoch: Instant,
    events: Vec<Event>,
}

/// A connection, with a buffer here that the device may write to.
#[derive(Clone, Copy)]
pub(crate) struct Session {
    pub(crate) conn: ConnId,
    pub(crate) here: Region,
}

impl Caller {
    /// The station 10.77.9.`number`.
    pub(crate) fn join(wire: &WireDir, device: Ipv4Addr, number: u8) -> Self {
        let ip = Ipv4Addr::new(10, 77, 9, number);
        let mut config = EndpointConfig::new([2, 0, 0, 0, 9, number].into(), ip, [number; 32]);
        config.interface.prefix_len = 16;
        config.transport.max_connections = 1024;
        let link = VirtualWire::join(wire, &format!("caller{number}")).unwrap();
        Self { ep: Endpoint::new(config), device, ip, link, epoch: Instant::now(), events: Vec::new() }
    }

    fn now(&self) -> nacelle_roce::Instant {
        nacelle_roce::Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    /// Sends what waits, and takes what comes for a moment.
    pub(crate) fn turn(&mut self) {
        let mut frame = vec![0; MAX_FRAME];
        while let Some(length) = self.ep.poll_transmit(self.now(), &mut frame) {
            self.link.send(&frame[..length]).unwrap();
        }
        let mut until = Instant::now() + Duration::from_millis(1);
        while let Some(length) = self.link.recv(&mut frame, until).unwrap() {
            let _counted = self.ep.handle(self.now(), &frame[..length]);
            until = Instant::now();
        }
        while let Some(event) = self.ep.transport.poll_event() {
            self.events.push(event);
        }
    }

    /// The next event that `wanted` makes something of; others stay.
    pub(crate) fn wait<T>(&mut self, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            for (index, event) in self.events.iter().enumerate() {
                if let Some(found) = wanted(event) {
                    self.events.remove(index);
                    return found;
                }
            }
            assert!(Instant::now() < deadline, "it did not happen: {:?}", self.events);
            self.turn();
        }
    }

    /// Lets time pass.
    pub(crate) fn idle(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.turn();
        }
    }

    /// Begins to connect.
    pub(crate) fn begin(&mut self) -> ConnId {
        self.begin_with(ConnectOptions::default())
    }

    /// Begins to connect with these options.
    pub(crate) fn begin_with(&mut self, options: ConnectOptions) -> ConnId {
        let now = self.now();
        self.ep.connect(now, self.device, DEFAULT_PORT, options).unwrap()
    }

    /// Accepts a connection that the device asks for.
    pub(crate) fn accept(&mut self, conn: ConnId, options: ConnectOptions) {
        let now = self.now();
        self.ep.transport.accept(now, conn, options).unwrap();
    }

    /// What became of a connection: the reason if it was refused.
    pub(crate) fn outcome(&mut self, wanted: ConnId) -> Result<(), u16> {
        self.wait(|event| match event {
            Event::Connected { conn, .. } if *conn == wanted => Some(Ok(())),
            Event::ConnectFailed { conn, reason: ConnectFailure::Rejected { reason, .. } } if *conn == wanted => {
                Some(Err(reason.0))
            }
            Event::ConnectFailed { conn, reason } if *conn == wanted => panic!("{reason:?}"),
            _ => None,
        })
    }

    /// Connects, with a buffer of `length` bytes here.
    pub(crate) fn connect(&mut self, length: usize) -> Session {
        let conn = self.begin();
        self.outcome(conn).unwrap();
        let access = Access::REMOTE_WRITE | Access::REMOTE_READ;
        let here = self.ep.transport.register(vec![0; length.max(2048)], access, conn).unwrap();
        Session { conn, here }
    }

    pub(crate) fn disconnect(&mut self, session: Session) {
        let now = self.now();
        self.ep.transport.disconnect(now, session.conn);
        self.wait(|event| matches!(event, Event::Disconnected { conn, .. } if *conn == session.conn).then_some(()));
        self.ep.transport.deregister(session.here.id);
    }

    /// Sends a message and returns the answer's bytes.
    pub(crate) fn ask(&mut self, session: Session, message: &[u8]) -> Vec<u8> {
        self.say(session, message);
        self.answer(session)
    }

    /// Sends a message; its answer comes to the last 1024 bytes of the buffer.
    pub(crate) fn say(&mut self, session: Session, message: &[u8]) {
        let slice = Some(session.here.slice(session.here.len - 1024, 1024));
        self.ep.transport.post_recv(session.conn, RecvWr { id: 0, slice }).unwrap();
        let send = SendWr { signaled: false, ..SendWr::send(1, message) };
        self.ep.transport.post_send(session.conn, send).unwrap();
        self.turn();
    }

    /// The answer to a message.
    pub(crate) fn answer(&mut self, session: Session) -> Vec<u8> {
        let done = self.received(session, WcOpcode::Recv).unwrap();
        self.ep.transport.region(session.here.id).unwrap().to_vec().unwrap()[session.here.len - 1024..][..done.byte_len]
            .to_vec()
    }

    /// The next receive that completes, or how the connection ended.
    pub(crate) fn received(&mut self, session: Session, wanted: WcOpcode) -> Result<Completion, WcStatus> {
        self.wait(|event| match event {
            Event::Completion(done) if done.conn == session.conn && done.status != WcStatus::Success => {
                (done.status != WcStatus::WrFlushErr).then_some(Err(done.status))
            }
            Event::Completion(done) if done.conn == session.conn && done.opcode == wanted => Some(Ok(*done)),
            _ => None,
        })
    }

    /// Asks for regions of these sizes, each an input and an output: what the device gives, or its error code.
    pub(crate) fn regions(&mut self, session: Session, sizes: &[u32]) -> Result<Vec<ARegion>, u8> {
        let answer = self.ask(session, &request(session, sizes));
        match Message::parse(&answer).unwrap() {
            Message::A(given) => Ok(given.to_vec()),
            Message::Err(code) => Err(code),
            Message::Aar(_) => panic!("a device does not ask"),
        }
    }

    /// Starts a function with a WRITE of nothing.
    pub(crate) fn start(&mut self, session: Session, function: FunctionCode) {
        self.ep.transport.post_recv(session.conn, RecvWr { id: 2, slice: None }).unwrap();
        self.immediate(session, CallImm::Start { function, user: [0; 3] }.to_u32());
    }

    /// Sends an immediate that has no answer.
    pub(crate) fn immediate(&mut self, session: Session, imm: u32) {
        let request = SendWr::write_imm(3, Vec::new(), session.here.addr, session.here.rkey, imm);
        self.ep.transport.post_send(session.conn, request).unwrap();
        self.turn();
    }

    /// The result of a call.
    pub(crate) fn result(&mut self, session: Session) -> u32 {
        self.received(session, WcOpcode::RecvWrite).unwrap().imm.unwrap() >> 8
    }

    /// Writes into a region of the device. How it ended.
    pub(crate) fn write(&mut self, session: Session, to: &ARegion, data: &[u8]) -> WcStatus {
        self.ep.transport.post_send(session.conn, SendWr::write(4, data, to.address(), to.rkey())).unwrap();
        self.received(session, WcOpcode::Write).map_or_else(|status| status, |done| done.status)
    }

    /// Reads a region of the device, up to the length of the buffer here.
    pub(crate) fn read(&mut self, session: Session, from: &ARegion) -> Result<Vec<u8>, WcStatus> {
        let length = from.size() as usize;
        let read = SendWr::read(5, session.here.slice(0, length), from.address(), from.rkey());
        self.ep.transport.post_send(session.conn, read).unwrap();
        self.received(session, WcOpcode::Read)?;
        Ok(self.ep.transport.region(session.here.id).unwrap().to_vec().unwrap()[..length].to_vec())
    }
}

/// A request for regions of these sizes.
pub(crate) fn request(session: Session, sizes: &[u32]) -> Vec<u8> {
    let flags = RegionFlags::INPUT | RegionFlags::OUTPUT;
    let (addr, rkey) = (session.here.addr, session.here.rkey);
    let regions = sizes.iter().map(|size| AarRegion::parameter(flags, 0, addr, rkey, *size));
    message(&regions.collect::<Vec<_>>())
}

/// A message of any number of regions, also of more than the protocol allows.
pub(crate) fn message(regions: &[AarRegion]) -> Vec<u8> {
    let mut bytes = vec![1, regions.len() as u8, 0, 0];
    for region in regions {
        let mut one = [0; 64];
        let length = Message::Aar(std::slice::from_ref(region)).write(&mut one).unwrap();
        bytes.extend_from_slice(&one[4..length]);
    }
    bytes
}
