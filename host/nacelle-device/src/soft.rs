// SPDX-License-Identifier: Apache-2.0
//! The software device: the same wire protocols as the RTL, with kernels that run on this machine's CPU.
//!
//! Time in it is that of this machine, in nanoseconds. Kernels run in threads apart from the network's, so that a long one
//! delays nobody but those who wait for a thread.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use nacelle::{DeviceKind, FunctionInfo};
use nacelle_roce::wire::cm::RejReason;
use nacelle_roce::{
    AcceptLimits, Access, Completion, ConnId, ConnectOptions, Endpoint, EndpointConfig, Event, RecvWr, Region, SendWr,
    WcOpcode, WcStatus,
};
use nacelle_wire::MacAddr;
use nacelle_wire::mrsp::{
    ARegion, AarRegion, CallImm, DEFAULT_PORT, MAX_MESSAGE, Message, RegionFlags, ReturnCode, reason,
};

use crate::kernels::{Kernel, Layout, Memory, Stop};
use crate::{DeviceError, Engine, Facts, Identity, PushError, Stamp};

mod managed;
mod memory;
mod wake;
mod workers;

use managed::ManagedTable;
use memory::{MemoryThread, OrderId};
use wake::Wake;
use workers::{CallId, Limits, Notice, Workers};

/// Connections at a time.
const MAX_CONNECTIONS: usize = 256;
/// Regions of a connection, internal ones included.
const MAX_REGIONS: usize = 32;
/// A receive for messages, in bytes.
const RECEIVE: usize = 1024;
/// Accesses of kernels to memory that are served in one turn.
const ACCESSES: usize = 4;
/// Longest IP packet, in bytes: room for a path MTU of 4096.
const IP_MTU: usize = 4200;
/// Receives of one connection: for what is in hand, and for what comes next.
const RECEIVES: usize = 2;
/// Numbers of the requests that make an answer: the last one's completion ends it.
const PART: u64 = 0;
const LAST: u64 = 1;

/// A region of a caller, and its counterpart here.
struct Held {
    asked: AarRegion,
    here: Region,
}

/// What has come from a caller and is not taken up yet. Its receive is posted again when it is.
enum Arrival {
    Message { receive: u64, length: usize },
    Start { receive: u64, imm: u32 },
}

/// What one connection holds. It does one thing at a time: until a call has its result, and an answer is acknowledged, its
/// regions stay as they are, since they may have to be sent again.
struct Session {
    peer: Ipv4Addr,
    messages: Region,
    regions: Vec<Held>,
    bytes: u64,
    answering: bool,
    /// What it has asked for, until there is memory for it.
    set_up: Option<(OrderId, Vec<AarRegion>)>,
    /// Its call, from its start to its result.
    call: Option<CallId>,
    arrivals: VecDeque<Arrival>,
}

/// The software device.
pub struct SoftEngine {
    endpoint: Endpoint,
    epoch: Instant,
    sessions: HashMap<ConnId, Session>,
    /// Whose a call is that waits or runs.
    calls: HashMap<CallId, ConnId>,
    workers: Workers,
    /// A kernel may wait for its memory.
    more: bool,
    bytes: u64,
    entered: VecDeque<Stamp>,
    counters: Counted,
    frame_len: usize,
    config: SoftConfig,
    managed: ManagedTable,
    memory: MemoryThread,
    wake: Wake,
}

/// What the service has counted.
#[derive(Debug, Default)]
struct Counted {
    calls: u64,
    calls_failed: u64,
    immediates_ignored: u64,
    regions_refused: u64,
    messages_malformed: u64,
}

/// What a software device is made with.
#[derive(Debug, Clone)]
pub struct SoftConfig {
    /// Memory for regions, in bytes. Default: 1 GiB.
    pub memory_bytes: u64,
    /// Memory that one caller (an IPv4 address) may have, in bytes; 0 for no limit of its own. Default: 0.
    pub memory_per_caller: u64,
    /// Connections that one caller may have, of the 256 that there are; 0 for no limit of its own. Default: 64.
    pub connections_per_caller: usize,
    /// Kernels that run at a time, at least 1. Default: one for each processor.
    pub workers: usize,
    /// Threads that are started in place of those whose kernels did not return in time. Default: 16.
    pub spare_workers: usize,
    /// Time that a kernel has; its caller gets result 2 when it has passed. `None` for no limit. Default: 60 s.
    pub kernel_time: Option<Duration>,
    /// The functions that it offers. Default: [`Kernel::standard`].
    pub kernels: Vec<Kernel>,
    /// How connections behave. By default a caller that says nothing for 5 s is asked whether it still lives, and a CM
    /// message is repeated 3 times.
    pub connect: ConnectOptions,
}

impl Default for SoftConfig {
    fn default() -> Self {
        let connect =
            ConnectOptions { keepalive: Some(Duration::from_secs(5)), cm_retries: 3, ..ConnectOptions::default() };
        Self {
            memory_bytes: 1 << 30,
            memory_per_caller: 0,
            connections_per_caller: MAX_CONNECTIONS / 4,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            spare_workers: 16,
            kernel_time: Some(Duration::from_secs(60)),
            kernels: Kernel::standard(),
            connect,
        }
    }
}

impl SoftConfig {
    fn endpoint(&self, identity: &Identity, seed: u32) -> Endpoint {
        let mut random = [0; 32];
        // Without the system's random numbers, keys would be as good as known: then it is better not to start.
        getrandom::fill(&mut random).expect("the system gives random numbers");
        random[..4].copy_from_slice(&seed.to_be_bytes());
        let mut config = EndpointConfig::new(identity.mac, identity.ip, random);
        config.prefix_len = identity.prefix_len;
        config.gateway = identity.gateway;
        config.ip_mtu = IP_MTU;
        config.max_connections = MAX_CONNECTIONS;
        config.accept = AcceptLimits::for_device(MAX_CONNECTIONS, self.connections_per_caller);
        config.congestion.rp_enable = true;
        config.congestion.np_enable = true;
        Endpoint::new(config)
    }
}

/// The regions of a call, for a kernel that runs in the network's thread.
struct Direct<'a> {
    endpoint: &'a mut Endpoint,
    regions: &'a [Region],
    layout: Layout,
}

impl Memory for Direct<'_> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, region: usize, at: usize, into: &mut [u8]) -> Result<(), Stop> {
        self.layout.check(region, at, into.len())?;
        let bytes = self.endpoint.region(self.regions[region].id).ok_or(Stop::Ended)?;
        into.copy_from_slice(&bytes[at..at + into.len()]);
        Ok(())
    }

    fn write(&mut self, region: usize, at: usize, bytes: &[u8]) -> Result<(), Stop> {
        self.layout.check(region, at, bytes.len())?;
        let all = self.endpoint.region_mut(self.regions[region].id).ok_or(Stop::Ended)?;
        all[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

impl SoftEngine {
    /// A device that is not configured.
    ///
    /// # Panics
    /// If the system has no socket or thread left.
    #[must_use]
    pub fn new(config: SoftConfig) -> Self {
        let nobody = Identity { mac: MacAddr::default(), ip: Ipv4Addr::UNSPECIFIED, prefix_len: 0, gateway: None };
        let endpoint = config.endpoint(&nobody, 0);
        let frame_len = endpoint.frame_len();
        let limits = Limits { workers: config.workers.max(1), spares: config.spare_workers, time: config.kernel_time };
        let (wake, waker) = wake::wake().expect("the system has a socket left");
        let memory = MemoryThread::start(waker.clone()).expect("the system has a thread left");
        Self {
            endpoint,
            epoch: Instant::now(),
            sessions: HashMap::new(),
            calls: HashMap::new(),
            workers: Workers::new(limits, waker),
            more: false,
            bytes: 0,
            entered: VecDeque::new(),
            counters: Counted::default(),
            frame_len,
            config,
            managed: ManagedTable::default(),
            memory,
            wake,
        }
    }

    fn now(&self) -> nacelle_roce::Instant {
        nacelle_roce::Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    fn stamp(&self) -> Stamp {
        Stamp { first_beat: self.cycles(), last_beat: self.cycles() }
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::ConnectRequest { conn, peer, .. } => self.admit(conn, peer),
            Event::Completion(completion) if self.is_managed(completion.conn) => self.managed_completed(&completion),
            Event::Completion(Completion { conn, id, opcode, status: WcStatus::Success, byte_len, imm, .. }) => {
                let Some(session) = self.sessions.get_mut(&conn) else { return };
                match opcode {
                    WcOpcode::Recv => session.arrivals.push_back(Arrival::Message { receive: id, length: byte_len }),
                    // A start during a call is not kept, unless something waits that came before it.
                    WcOpcode::RecvWrite if session.call.is_some() && session.arrivals.is_empty() => {
                        let messages = session.messages;
                        self.counters.immediates_ignored += 1;
                        let _gone_if_not = self.post_receive(conn, messages, id);
                    }
                    WcOpcode::RecvWrite => {
                        session.arrivals.push_back(Arrival::Start { receive: id, imm: imm.unwrap_or_default() });
                    }
                    _ => session.answering &= id != LAST,
                }
                self.go_on(conn);
            }
            Event::Connected { conn, private_data } => self.managed_established(conn, &private_data),
            Event::ConnectFailed { conn, reason } if self.is_managed(conn) => self.managed_failed(conn, reason),
            Event::Disconnected { conn, .. } if self.is_managed(conn) => self.managed_closed(conn),
            Event::ConnectFailed { conn, .. } | Event::Disconnected { conn, .. } => self.release(conn),
            // A failed work request ends its connection, which is told by its own event; the rest answers what this
            // device never asks.
            _ => {}
        }
    }

    fn admit(&mut self, conn: ConnId, peer: Ipv4Addr) {
        if self.open(conn, peer).is_none() {
            // It is gone already if this fails too.
            let _ = self.endpoint.reject_with(conn, RejReason::NO_RESOURCES, &[]);
        }
    }

    /// Takes a caller in. `None` if there is no room.
    fn open(&mut self, conn: ConnId, peer: Ipv4Addr) -> Option<()> {
        let messages = self.endpoint.register(vec![0; RECEIVES * RECEIVE], Access::LOCAL, Some(conn)).ok()?;
        let session = Session {
            peer,
            messages,
            regions: Vec::new(),
            bytes: 0,
            answering: false,
            set_up: None,
            call: None,
            arrivals: VecDeque::with_capacity(RECEIVES),
        };
        self.sessions.insert(conn, session);
        // Ready before the answer: the caller's first message may follow it at once.
        let begun = (0..RECEIVES as u64)
            .try_for_each(|receive| self.post_receive(conn, messages, receive))
            .and_then(|()| self.endpoint.accept(self.now(), conn, self.config.connect.clone()).ok());
        if begun.is_none() {
            self.release(conn);
        }
        begun
    }

    fn post_receive(&mut self, conn: ConnId, messages: Region, receive: u64) -> Option<()> {
        let slice = messages.slice(receive as usize * RECEIVE, RECEIVE);
        self.endpoint.post_recv(conn, RecvWr { id: receive, slice: Some(slice) }).ok()
    }

    /// Forgets a caller and closes the window of its call.
    fn release(&mut self, conn: ConnId) {
        self.release_regions(conn);
        if let Some(session) = self.sessions.remove(&conn) {
            if let Some(call) = session.call {
                self.workers.cancel(call);
                self.calls.remove(&call);
                self.counters.calls_failed += 1;
            }
            self.endpoint.deregister(session.messages.id);
        }
    }

    fn release_regions(&mut self, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        self.bytes -= std::mem::take(&mut session.bytes);
        for held in session.regions.drain(..) {
            if let Some(memory) = self.endpoint.deregister(held.here.id) {
                self.memory.discard(memory);
            }
        }
    }

    /// Takes up what has come from a caller, until a call runs or an answer is on its way.
    fn go_on(&mut self, conn: ConnId) {
        while let Some(session) = self.sessions.get_mut(&conn)
            && !session.answering
            && session.set_up.is_none()
            && session.call.is_none()
            && let Some(arrival) = session.arrivals.pop_front()
        {
            let messages = session.messages;
            let (Arrival::Message { receive, .. } | Arrival::Start { receive, .. }) = arrival;
            let asked = match arrival {
                Arrival::Message { length, .. } => {
                    let offset = receive as usize * RECEIVE;
                    let message = self.endpoint.region(messages.id).and_then(|all| all.get(offset..offset + length));
                    asked_for(message.unwrap_or_default())
                }
                Arrival::Start { .. } => Err(reason::MALFORMED),
            };
            // Before the answer: the caller's next message may follow it at once.
            let _gone_if_not = self.post_receive(conn, messages, receive);
            match arrival {
                Arrival::Message { .. } => self.set_up(conn, asked),
                Arrival::Start { imm, .. } => self.call(conn, imm),
            }
        }
    }

    /// Posts a request of an answer.
    fn answer(&mut self, conn: ConnId, request: SendWr) {
        if request.id == LAST
            && let Some(session) = self.sessions.get_mut(&conn)
        {
            session.answering = true;
        }
        let _gone_if_not = self.endpoint.post_send(conn, request);
    }

    /// Answers a region request. One that is wrong in its head changes nothing; any other takes the place of what the caller
    /// had, whatever comes of it.
    fn set_up(&mut self, conn: ConnId, asked: Result<Vec<AarRegion>, u8>) {
        let given = asked.and_then(|asked| {
            self.release_regions(conn);
            self.reserve(conn, &asked)?;
            match self.memory.make(asked.iter().map(|region| region.size() as usize).collect()) {
                Ok(buffers) => self.hold(conn, &asked, buffers).map(Some),
                Err(order) => {
                    if let Some(session) = self.sessions.get_mut(&conn) {
                        session.set_up = Some((order, asked));
                    }
                    Ok(None)
                }
            }
        });
        if let Some(given) = given.transpose() {
            self.answer_set_up(conn, given);
        }
    }

    fn answer_set_up(&mut self, conn: ConnId, given: Result<Vec<ARegion>, u8>) {
        match &given {
            Ok(_) => {}
            Err(reason::NO_MEMORY | reason::NO_KEY) => self.counters.regions_refused += 1,
            Err(_) => self.counters.messages_malformed += 1,
        }
        let mut answer = [0; MAX_MESSAGE];
        let message = given.as_deref().map_or_else(|code| Message::Err(*code), Message::A);
        let length = message.write(&mut answer).expect("an answer of 32 regions fits");
        self.answer(conn, SendWr::send(LAST, &answer[..length]));
    }

    /// Takes the memory for regions out of what is left, if there is enough.
    fn reserve(&mut self, conn: ConnId, asked: &[AarRegion]) -> Result<(), u8> {
        let parameters = parameters(asked);
        if parameters == 0 || !asked[parameters..].iter().all(is_internal) {
            return Err(reason::MALFORMED);
        }
        let bytes: u64 = asked.iter().map(|region| u64::from(region.size())).sum();
        let peer = self.sessions.get(&conn).map(|session| session.peer);
        let callers = self.sessions.values().filter(|session| Some(session.peer) == peer);
        let callers: u64 = callers.map(|session| session.bytes).sum();
        let quota = Some(self.config.memory_per_caller).filter(|quota| *quota != 0).unwrap_or(u64::MAX);
        if self.bytes + bytes > self.config.memory_bytes || callers + bytes > quota {
            return Err(reason::NO_MEMORY);
        }
        if let Some(session) = self.sessions.get_mut(&conn) {
            session.bytes = bytes;
            self.bytes += bytes;
        }
        Ok(())
    }

    /// Gives a caller its regions, of these buffers; all or none.
    fn hold(&mut self, conn: ConnId, asked: &[AarRegion], buffers: Vec<Vec<u8>>) -> Result<Vec<ARegion>, u8> {
        let rights = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        for (asked, buffer) in asked.iter().zip(buffers) {
            let here = self.endpoint.register(buffer, rights, Some(conn));
            match (here, self.sessions.get_mut(&conn)) {
                (Ok(here), Some(session)) => session.regions.push(Held { asked: *asked, here }),
                _ => {
                    self.release_regions(conn);
                    return Err(reason::NO_KEY);
                }
            }
        }
        let Some(session) = self.sessions.get(&conn) else { return Err(reason::NO_KEY) };
        let given = session.regions[..parameters(asked)].iter();
        Ok(given.map(|held| ARegion::new(held.here.addr, held.here.rkey, held.asked.size())).collect())
    }

    /// Goes on with set-ups that there is memory for now.
    fn serve_set_ups(&mut self) {
        while let Some((order, buffers)) = self.memory.poll() {
            let ordered = |session: &Session| session.set_up.as_ref().is_some_and(|(id, _)| *id == order);
            let found = self.sessions.iter_mut().find(|(_, session)| ordered(session));
            let set_up = found.and_then(|(conn, session)| Some((*conn, session.set_up.take()?.1)));
            match set_up {
                Some((conn, asked)) => {
                    let given = self.hold(conn, &asked, buffers);
                    self.answer_set_up(conn, given);
                    self.go_on(conn);
                }
                // Its caller has gone.
                None => buffers.into_iter().for_each(|buffer| self.memory.discard(buffer)),
            }
        }
    }

    /// Begins a call.
    fn call(&mut self, conn: ConnId, imm: u32) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        let function = match CallImm::parse(imm) {
            Ok(CallImm::Start { function, .. }) if !session.regions.is_empty() => function,
            // The caller gives its call up.
            Ok(CallImm::HostError) => return self.counters.calls_failed += 1,
            Ok(CallImm::Start { .. }) | Err(_) => return self.counters.immediates_ignored += 1,
        };
        self.counters.calls += 1;
        let layout = Layout {
            sizes: session.regions.iter().map(|held| held.here.len).collect(),
            parameters: parameters(session.regions.iter().map(|held| &held.asked)),
        };
        let Some(kernel) = self.config.kernels.iter().find(|kernel| kernel.code == function) else {
            return self.finish(conn, ReturnCode::UNKNOWN_FUNCTION);
        };
        if layout.sizes.iter().sum::<usize>() <= kernel.quick {
            let regions: Vec<Region> = session.regions.iter().map(|held| held.here).collect();
            let mut memory = Direct { endpoint: &mut self.endpoint, regions: &regions, layout };
            let code = match (kernel.run)(&mut memory) {
                Ok(()) => ReturnCode::SUCCESS,
                Err(Stop::Failed(code)) => code,
                Err(Stop::Ended) => return, // without its regions, its caller has gone
            };
            return self.finish(conn, code);
        }
        let call = self.workers.start(kernel, layout);
        session.call = Some(call);
        self.calls.insert(call, conn);
        self.more = true;
    }

    /// Serves kernels: some of their accesses, and the results that there are.
    fn serve_kernels(&mut self) {
        self.more = false;
        let mut left = ACCESSES;
        while let Some(notice) = self.workers.poll(Instant::now()) {
            match notice {
                Notice::Access(access) => {
                    let call = access.call;
                    let bytes = self.access(access);
                    self.workers.answer(call, bytes);
                    left -= 1;
                    if left == 0 {
                        self.more = true;
                        return;
                    }
                }
                Notice::Done(call, code) => {
                    let Some(conn) = self.calls.remove(&call) else { continue };
                    if let Some(session) = self.sessions.get_mut(&conn) {
                        session.call = None;
                    }
                    self.finish(conn, code);
                    self.go_on(conn);
                }
            }
        }
    }

    /// Does what a kernel wants of its memory. `None` if its caller has gone.
    fn access(&mut self, access: workers::Access) -> Option<Vec<u8>> {
        let workers::Access { call, region, at, write, mut bytes } = access;
        let session = self.sessions.get(self.calls.get(&call)?)?;
        let memory = self.endpoint.region_mut(session.regions.get(region)?.here.id)?;
        let there = memory.get_mut(at..at + bytes.len())?;
        if write {
            there.copy_from_slice(&bytes);
        } else {
            bytes.copy_from_slice(there);
        }
        Some(bytes)
    }

    /// Answers a call.
    fn finish(&mut self, conn: ConnId, code: ReturnCode) {
        let Some(session) = self.sessions.get(&conn) else { return };
        self.counters.calls_failed += u64::from(code != ReturnCode::SUCCESS);
        let outputs: Vec<&Held> = session.regions.iter().filter(|held| is_returned(&held.asked)).collect();
        let imm = code.to_imm();
        let mut requests: Vec<SendWr> = Vec::with_capacity(outputs.len().max(1));
        if code == ReturnCode::SUCCESS {
            for (index, held) in outputs.iter().enumerate() {
                let (data, address, rkey) = (held.here.all(), held.asked.address(), held.asked.rkey());
                requests.push(if index + 1 == outputs.len() {
                    SendWr::write_imm(LAST, data, address, rkey, imm)
                } else {
                    SendWr::write(PART, data, address, rkey)
                });
            }
        }
        if requests.is_empty()
            && let Some(held) = outputs.first().copied().or(session.regions.first())
        {
            requests.push(SendWr::write_imm(LAST, Vec::new(), held.asked.address(), held.asked.rkey(), imm));
        }
        for request in requests {
            self.answer(conn, request);
        }
    }
}

/// A region is returned if it is an output and no scratch memory.
fn is_returned(region: &AarRegion) -> bool {
    region.flags().contains(RegionFlags::OUTPUT) && !is_internal(region)
}

fn is_internal(region: &AarRegion) -> bool {
    region.flags().contains(RegionFlags::INTERNAL)
}

/// How many of the regions are parameters, which come first.
fn parameters<'a>(asked: impl IntoIterator<Item = &'a AarRegion>) -> usize {
    asked.into_iter().take_while(|region| !is_internal(region)).count()
}

/// The regions that a message asks for, or the code of what is wrong with its head.
fn asked_for(message: &[u8]) -> Result<Vec<AarRegion>, u8> {
    match Message::parse(message) {
        Ok(Message::Aar([])) => Err(reason::MALFORMED),
        Ok(Message::Aar(asked)) if asked.len() > MAX_REGIONS => Err(reason::TOO_MANY_REGIONS),
        Ok(Message::Aar(asked)) => Ok(asked.to_vec()),
        _ => Err(reason::MALFORMED),
    }
}

impl Engine for SoftEngine {
    fn facts(&self) -> Facts {
        Facts { kind: DeviceKind::Soft, data_w: 0, clock_hz: 1_000_000_000, memory_bytes: self.config.memory_bytes }
    }

    fn configure(&mut self, identity: &Identity, seed: u32) -> Result<(), DeviceError> {
        self.endpoint = self.config.endpoint(identity, seed);
        self.endpoint.listen(DEFAULT_PORT);
        Ok(())
    }

    fn functions(&mut self) -> Result<Vec<FunctionInfo>, DeviceError> {
        let kernels = self.config.kernels.iter();
        Ok(kernels.map(|kernel| FunctionInfo::known(kernel.code.get(), kernel.name, 1)).collect())
    }

    fn push(&mut self, frame: &[u8]) -> Result<(), PushError> {
        self.entered.push_back(self.stamp());
        // What is wrong with a frame, the endpoint's counters say.
        let _ = self.endpoint.handle(self.now(), frame);
        Ok(())
    }

    fn run(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            self.note(event);
        }
        self.wake.clear();
        self.serve_set_ups();
        self.serve_kernels();
    }

    fn rx_stamp(&mut self) -> Option<Stamp> {
        self.entered.pop_front()
    }

    fn pull(&mut self, buffer: &mut [u8]) -> Option<(usize, Stamp)> {
        let buffer = buffer.get_mut(..self.frame_len)?;
        let length = self.endpoint.poll_transmit(self.now(), buffer)?;
        Some((length, self.stamp()))
    }

    fn idle(&self) -> bool {
        !self.more // all other work is done when it comes
    }

    fn pass(&mut self, _time: Duration) {}

    fn wake_at(&self) -> Option<Instant> {
        let endpoint = self.endpoint.next_deadline().map(|at| self.epoch + Duration::from_nanos(at.as_nanos()));
        [endpoint, self.workers.deadline()].into_iter().flatten().min()
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wake.fd())
    }

    fn cycles(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, DeviceError> {
        let mut all: BTreeMap<String, u64> =
            self.endpoint.counters().iter().map(|(name, value)| (format!("roce.{name}"), value)).collect();
        let Counted { calls, calls_failed, immediates_ignored, regions_refused, messages_malformed } = self.counters;
        let figures = [
            ("rpc.calls", calls),
            ("rpc.calls_failed", calls_failed),
            ("rpc.immediates_ignored", immediates_ignored),
            ("rpc.regions_refused", regions_refused),
            ("rpc.messages_malformed", messages_malformed),
            ("rpc.callers", self.sessions.len() as u64),
            ("memory.bytes_held", self.bytes),
        ];
        all.extend(figures.map(|(name, value)| (name.to_owned(), value)));
        all.extend(self.workers.figures().map(|(name, value)| (format!("kernels.{name}"), value)));
        Ok(all)
    }
}
