// SPDX-License-Identifier: Apache-2.0
//! A device in the hands of a test: a real endpoint, on a cable of its own or on any link, whose manners the test chooses.

#![allow(dead_code)] // not every test uses all of it

use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nacelle::{Device, Options};
use nacelle_link::{Link, LinkError, LinkStats, MAX_FRAME, wait_readable};
use nacelle_roce::{
    Access, ConnId, ConnectOptions, Endpoint, EndpointConfig, Event, RecvWr, Region, SendOp, SendWr, WcOpcode, WcStatus,
};
use nacelle_wire::bth::Opcode;
use nacelle_wire::calls::{self, Context, LongGiven, Request, SetUp, SetUpAnswer};
use nacelle_wire::cm::RejReason;
use nacelle_wire::extensions::{Agreement, Extensions};
use nacelle_wire::icmp::{EchoPacket, Kind};
use nacelle_wire::mrsp::{ARegion, AarRegion, CallImm, DEFAULT_PORT, MAX_MESSAGE, Message, RegionFlags, ReturnCode};
use nacelle_wire::{MacAddr, Qpn, RemoteAddr, Rkey, RocePacket, cm};

/// Where the device is.
pub(crate) const IP: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// One end of a cable.
pub(crate) struct Cable {
    socket: UnixDatagram,
    /// Frames that the socket had no room for.
    waiting: VecDeque<Vec<u8>>,
}

/// Frames that wait at most; what comes then is lost.
const WAITING: usize = 4096;

impl Cable {
    fn new(socket: UnixDatagram) -> Self {
        Self { socket, waiting: VecDeque::new() }
    }

    /// The same end once more.
    pub(crate) fn try_clone(&self) -> Self {
        Self::new(self.socket.try_clone().unwrap())
    }

    /// Sends what waits, as far as there is room. A cable whose other end is gone is unplugged.
    fn flush(&mut self) {
        let is_full = |sent: std::io::Result<usize>| sent.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock);
        while let Some(frame) = self.waiting.front()
            && !is_full(self.socket.send(frame))
        {
            self.waiting.pop_front();
        }
    }
}

impl Link for Cable {
    fn send(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        if self.waiting.len() < WAITING {
            self.waiting.push_back(frame.to_vec());
        }
        self.flush();
        Ok(())
    }

    fn recv(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<Option<usize>, LinkError> {
        loop {
            self.flush();
            if let Ok(length) = self.socket.recv(buffer) {
                return Ok(Some(length));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            let again = self.next_event().map_or(deadline, |at| at.min(deadline));
            wait_readable([self.socket.as_fd()], Some(again)).unwrap();
        }
    }

    fn next_event(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then(|| Instant::now() + Duration::from_micros(100))
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn stats(&self) -> LinkStats {
        LinkStats::default()
    }
}

/// What a frame is that the device is about to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outgoing {
    EchoReply,
    Drep,
    Ack,
    Other,
}

fn kind(frame: &[u8]) -> Outgoing {
    if EchoPacket::parse(frame).is_ok_and(|echo| echo.kind == Kind::Reply) {
        return Outgoing::EchoReply;
    }
    let Ok(packet) = RocePacket::parse(frame) else { return Outgoing::Other };
    let drep = || matches!(cm::Message::parse(packet.payload), Ok((_, cm::Message::Drep(_))));
    match packet.opcode {
        Opcode::Acknowledge => Outgoing::Ack,
        _ if packet.headers.bth.dest_qp() == Qpn::GSI && drep() => Outgoing::Drep,
        _ => Outgoing::Other,
    }
}

/// What the device holds for one context of one caller.
pub(crate) struct Caller {
    pub(crate) conn: ConnId,
    context: Option<Context>,
    /// The caller's regions, from its request.
    pub(crate) told: Vec<AarRegion>,
    /// The device's, one for each that is not internal.
    pub(crate) own: Vec<Region>,
    /// The functions that have been started, each with its user bytes; function 0 is a chain.
    pub(crate) started: Vec<(u8, u32)>,
    /// The chain of the set-up: regions and user bytes of each step.
    pub(crate) steps: Vec<(std::ops::Range<usize>, u32)>,
    /// Sizes of the regions of a long set-up, internal ones included.
    pub(crate) sizes: Vec<u64>,
    /// The deadline of the set-up.
    pub(crate) deadline: Duration,
    /// When to reply to a start.
    reply_at: Option<Instant>,
    late: bool,
}

impl Caller {
    fn new(conn: ConnId, context: Option<Context>) -> Self {
        Self {
            conn,
            context,
            told: Vec::new(),
            own: Vec::new(),
            started: Vec::new(),
            steps: Vec::new(),
            sizes: Vec::new(),
            deadline: Duration::ZERO,
            reply_at: None,
            late: false,
        }
    }

    /// The immediate of a result.
    fn result(&self, code: u32) -> u32 {
        let code = ReturnCode::new(code);
        self.context.map_or(code.to_imm(), |context| calls::result_imm(context, code))
    }
}

type Answer = dyn Fn(&mut Vec<ARegion>) -> Option<Vec<u8>> + Send;
type Reply = dyn FnMut(&mut Endpoint, &Caller) + Send;
type Filter = dyn Fn(Outgoing) -> bool + Send;

/// How the device behaves.
pub(crate) struct Manners {
    /// Changes its answer to the region request, or gives other bytes instead.
    pub(crate) answer: Box<Answer>,
    /// What it does at the end of a kernel, instead of adding 1 to each byte and writing the outputs back.
    pub(crate) reply: Box<Reply>,
    /// How long a kernel takes.
    pub(crate) kernel: Duration,
    /// Whether a frame leaves.
    pub(crate) sends: Box<Filter>,
    /// Why it refuses every connection, if it does.
    pub(crate) refuses: Option<RejReason>,
    /// What it agrees to.
    pub(crate) agrees: Agreement,
    /// Whether it answers a cancel.
    pub(crate) cancels: bool,
    /// Whether it agrees to extensions of the transport, as all of Nacelle's do.
    pub(crate) extends: bool,
}

/// A device with these manners, and with contexts and long set-ups.
pub(crate) fn extended(contexts: u8, manners: Manners) -> Manners {
    Manners { agrees: Agreement::new(Extensions::CONTEXTS | Extensions::LONG_SET_UP, contexts), ..manners }
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            answer: Box::new(|_| None),
            reply: Box::new(increment),
            kernel: Duration::ZERO,
            sends: Box::new(|_| true),
            refuses: None,
            agrees: Agreement::default(),
            cancels: true,
            extends: true,
        }
    }
}

/// Writes the outputs back, each byte one higher, the last with the immediate.
pub(crate) fn increment(endpoint: &mut Endpoint, caller: &Caller) {
    let outputs: Vec<_> =
        caller.told.iter().zip(&caller.own).filter(|(told, _)| told.flags().contains(RegionFlags::OUTPUT)).collect();
    for (index, (told, own)) in outputs.iter().enumerate() {
        let memory = endpoint.transport.region_mut(own.id).unwrap();
        let is_chain = caller.started.last().is_some_and(|started| started.0 == 0);
        let place = caller.own.iter().position(|region| region.id == own.id).unwrap();
        let times = caller.steps.iter().filter(|(regions, _)| regions.contains(&place)).count() as u8;
        let by = if is_chain { times } else { 1 };
        let more: Vec<u8> = memory.to_vec().unwrap().iter().map(|byte| byte.wrapping_add(by)).collect();
        memory.write(0, &more).unwrap();
        let wr = if index + 1 == outputs.len() {
            SendWr::write_imm(0, own.all(), told.address(), told.rkey(), caller.result(0))
        } else {
            SendWr::write(0, own.all(), told.address(), told.rkey())
        };
        endpoint.transport.post_send(caller.conn, wr).unwrap();
    }
    if outputs.is_empty() {
        reply_only(endpoint, caller, caller.result(0));
    }
}

/// Replies without a byte.
pub(crate) fn reply_only(endpoint: &mut Endpoint, caller: &Caller, imm: u32) {
    let wr = SendWr::write_imm(0, Vec::new(), caller.told[0].address(), caller.told[0].rkey(), imm);
    endpoint.transport.post_send(caller.conn, wr).unwrap();
}

/// What a test may look at and do while the device runs.
pub(crate) struct Inside {
    pub(crate) endpoint: Endpoint,
    pub(crate) callers: HashMap<(ConnId, u8), Caller>,
    /// Receives of each connection, in the order of their numbers.
    receives: HashMap<ConnId, Vec<Region>>,
    /// Why the device's own requests failed.
    pub(crate) failures: Vec<WcStatus>,
    /// When it has sent its first answer, and how long after that this was acknowledged.
    answered: Option<Instant>,
    pub(crate) acknowledged_after: Option<Duration>,
}

/// A device that runs in a thread.
pub(crate) struct Peer {
    pub(crate) inside: Arc<Mutex<Inside>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Peer {
    /// Why requests of the device failed.
    pub(crate) fn failures(&self) -> Vec<WcStatus> {
        self.inside.lock().unwrap().failures.clone()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "the device of the test panicked");
    }
}

/// Times short enough for a test.
pub(crate) fn options() -> Options {
    Options {
        timeout: Duration::from_secs(5),
        resolve_timeout: Duration::from_secs(2),
        connect: ConnectOptions { ack_timeout: Duration::from_secs(2), ..ConnectOptions::default() },
        ..Options::default()
    }
}

/// A device with these manners, and the way to it.
pub(crate) fn start(manners: Manners, options: &Options) -> (Peer, Device) {
    let (near, far) = cable();
    let peer = serve(Box::new(far), manners);
    let device = Device::connect_over(Box::new(near), None, IP, options).unwrap();
    (peer, device)
}

/// The two ends of a cable.
pub(crate) fn cable() -> (Cable, Cable) {
    let (near, far) = UnixDatagram::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    (Cable::new(near), Cable::new(far))
}

/// A device with these manners on a link.
pub(crate) fn serve(link: Box<dyn Link>, manners: Manners) -> Peer {
    let mut config = EndpointConfig::new(MacAddr([2, 0, 0, 0, 0, 2]), IP, [7; 32]);
    config.interface.prefix_len = 16;
    config.interface.ip_mtu = 4200;
    let mut endpoint = Endpoint::new(config);
    endpoint.transport.listen(DEFAULT_PORT);
    let inside = Arc::new(Mutex::new(Inside {
        endpoint,
        callers: HashMap::new(),
        receives: HashMap::new(),
        failures: Vec::new(),
        answered: None,
        acknowledged_after: None,
    }));
    let stop = Arc::new(AtomicBool::new(false));
    let (shared, seen) = (Arc::clone(&inside), Arc::clone(&stop));
    let thread = std::thread::spawn(move || run(&shared, &seen, link, manners));
    Peer { inside, stop, thread: Some(thread) }
}

fn run(inside: &Mutex<Inside>, stop: &AtomicBool, mut link: Box<dyn Link>, mut manners: Manners) {
    let epoch = Instant::now();
    let now = || nacelle_roce::Instant::from_nanos(epoch.elapsed().as_nanos() as u64);
    let (mut rx, mut tx) = (vec![0; MAX_FRAME], vec![0; MAX_FRAME]);
    while !stop.load(Ordering::Relaxed) {
        let received = link.recv(&mut rx, Instant::now() + Duration::from_millis(1)).unwrap();
        let mut inside = inside.lock().unwrap();
        if let Some(length) = received {
            let _counted_there = inside.endpoint.handle(now(), &rx[..length]);
        }
        while let Some(event) = inside.endpoint.transport.poll_event() {
            inside.note(event, &manners, now());
        }
        let Inside { endpoint, callers, .. } = &mut *inside;
        for caller in callers.values_mut() {
            if caller.reply_at.is_some_and(|at| at <= Instant::now()) {
                caller.reply_at = None;
                if std::mem::take(&mut caller.late) {
                    reply_only(endpoint, caller, caller.result(4));
                } else {
                    (manners.reply)(endpoint, caller);
                }
            }
        }
        while let Some(length) = inside.endpoint.poll_transmit(now(), &mut tx) {
            if (manners.sends)(kind(&tx[..length])) {
                link.send(&tx[..length]).unwrap();
            }
        }
    }
}

impl Inside {
    fn note(&mut self, event: Event, manners: &Manners, now: nacelle_roce::Instant) {
        match event {
            Event::ConnectRequest { conn, .. } if manners.refuses.is_some() => {
                self.endpoint.transport.reject_with(conn, manners.refuses.unwrap(), &[]).unwrap();
            }
            Event::ConnectRequest { conn, offered, .. } => {
                let agreed = manners.agrees.common(offered);
                let receives = (0..2 * u64::from(agreed.contexts) + 2).map(|id| {
                    let region = self.endpoint.transport.register(vec![0; 1024], Access::LOCAL, Some(conn)).unwrap();
                    self.endpoint.transport.post_recv(conn, RecvWr { id, slice: Some(region.all()) }).unwrap();
                    region
                });
                self.receives.insert(conn, receives.collect());
                for context in 0..agreed.contexts.max(1) {
                    let named = (agreed.contexts > 0).then_some(Context(context));
                    self.callers.insert((conn, context), Caller::new(conn, named));
                }
                let options = ConnectOptions {
                    agreement: manners.agrees,
                    selective_repeat: manners.extends,
                    ..ConnectOptions::default()
                };
                self.endpoint.transport.accept(now, conn, options).unwrap();
            }
            Event::Completion(done) if done.status == WcStatus::WrFlushErr => {}
            Event::Completion(done) if done.status != WcStatus::Success => self.failures.push(done.status),
            Event::Completion(done) if done.opcode.is_recv() => {
                let Some(receive) = self.receives.get(&done.conn).map(|all| all[done.id as usize]) else { return };
                let bytes = self.endpoint.transport.region(receive.id).unwrap().to_vec().unwrap();
                let context = done.imm.filter(|_| self.has_contexts(done.conn)).map_or(0, |imm| (imm >> 24) as u8);
                let caller = self.callers.get_mut(&(done.conn, context)).expect("callers keep to their contexts");
                match done.opcode {
                    WcOpcode::Recv => {
                        let cancel = caller.context.map(|context| Request::Cancel(context).to_imm());
                        if done.imm.is_some() && done.imm == cancel {
                            if manners.cancels && caller.reply_at.take().is_some() {
                                reply_only(&mut self.endpoint, caller, caller.result(5));
                            }
                        } else {
                            let answer = give(&mut self.endpoint, caller, &bytes[..done.byte_len], manners);
                            let mut request = SendWr::send(0, answer);
                            request.op = SendOp::Send { imm: caller.context.map(calls::answer_imm) };
                            self.endpoint.transport.post_send(done.conn, request).unwrap();
                            self.answered.get_or_insert_with(Instant::now);
                        }
                    }
                    _ => caller.start(done.imm.unwrap(), manners.kernel),
                }
                let again = RecvWr { id: done.id, slice: Some(receive.all()) };
                self.endpoint.transport.post_recv(done.conn, again).unwrap();
            }
            Event::Completion(_) => {
                let answered = self.answered;
                self.acknowledged_after = self.acknowledged_after.or_else(|| answered.map(|at| at.elapsed()));
            }
            Event::Disconnected { conn, .. } | Event::ConnectFailed { conn, .. } => {
                self.callers.retain(|place, _| place.0 != conn);
                self.receives.remove(&conn);
            }
            _ => {}
        }
    }

    fn has_contexts(&self, conn: ConnId) -> bool {
        self.callers.get(&(conn, 0)).is_some_and(|caller| caller.context.is_some())
    }
}

impl Caller {
    /// Begins a call.
    fn start(&mut self, imm: u32, kernel: Duration) {
        let (function, user) = if self.context.is_some() {
            let Ok(Request::Start { function, user: [a, b], .. }) = Request::of_write(imm) else { panic!("{imm:#x}") };
            (function.map_or(0, |function| function.get()), u32::from_le_bytes([a, b, 0, 0]))
        } else {
            let Ok(CallImm::Start { function, user: [a, b, c] }) = CallImm::parse(imm) else { panic!("{imm:#x}") };
            (function.get(), u32::from_le_bytes([a, b, c, 0]))
        };
        assert!(self.reply_at.is_none(), "a start during a call");
        self.started.push((function, user));
        self.late = self.deadline != Duration::ZERO && kernel > self.deadline;
        let takes = if self.late { self.deadline } else { kernel };
        self.reply_at = Some(Instant::now() + takes);
    }
}

/// Memory for the requested regions, and the answer to the request.
fn give(endpoint: &mut Endpoint, caller: &mut Caller, asked: &[u8], manners: &Manners) -> Vec<u8> {
    let is_long = SetUp::is_one(asked);
    if is_long {
        let set_up = SetUp::parse(asked).unwrap();
        caller.told = set_up
            .regions
            .iter()
            .map(|region| {
                // Internal memory is not made here.
                let size = u32::try_from(region.size()).unwrap_or(u32::MAX);
                AarRegion::parameter(region.flags(), 0, region.address(), region.rkey(), size)
            })
            .collect();
        caller.steps = set_up.steps.iter().map(|step| (step.regions(), step.user())).collect();
        caller.sizes = set_up.regions.iter().map(|region| region.size()).collect();
        caller.deadline = Duration::from_millis(set_up.deadline_ms.into());
    } else {
        let Ok(Message::Aar(told)) = Message::parse(asked) else { panic!("no region request: {asked:?}") };
        caller.told = told.to_vec();
    }
    caller.told.retain(|region| !region.flags().contains(RegionFlags::INTERNAL));
    let conn = caller.conn;
    let own = caller.told.iter().map(|region| {
        endpoint.transport.register(vec![0; region.size() as usize], Access::REMOTE_WRITE, Some(conn)).unwrap()
    });
    caller.own = own.collect();
    let mut message = vec![0; calls::MAX_MESSAGE.max(MAX_MESSAGE)];
    if is_long {
        let given = caller.own.iter().map(|own| LongGiven::new(RemoteAddr(own.addr.0), own.rkey, own.len as u64));
        let length = SetUpAnswer(&given.collect::<Vec<_>>()).write(&mut message).unwrap();
        message.truncate(length);
        return message;
    }
    let mut given: Vec<_> =
        caller.own.iter().map(|own| ARegion::new(RemoteAddr(own.addr.0), Rkey(own.rkey.0), own.len as u32)).collect();
    if let Some(instead) = (manners.answer)(&mut given) {
        return instead;
    }
    let length = Message::A(&given).write(&mut message).unwrap();
    message.truncate(length);
    message
}

/// Ends a call. Returns the bytes of its regions.
pub(crate) fn close(call: nacelle::Call) -> Vec<Vec<u8>> {
    let regions = call.close().unwrap();
    regions.into_iter().map(|memory| memory.into_vec().unwrap()).collect()
}
