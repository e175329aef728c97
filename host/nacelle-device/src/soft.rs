// SPDX-License-Identifier: Apache-2.0
//! The software device: the same wire protocols as the RTL, with kernels that run on this machine's CPU.
//!
//! Time in it is that of this machine, in nanoseconds. A kernel runs to its end within one step, so a long one holds up the
//! other callers, as it does where they share a socket.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use nacelle::{DeviceKind, FunctionInfo};
use nacelle_roce::{
    Access, Completion, ConnId, ConnectOptions, Endpoint, EndpointConfig, Event, RecvWr, Region, SendWr, WcOpcode,
    WcStatus,
};
use nacelle_wire::MacAddr;
use nacelle_wire::kernel::matmul::{Args, Dtype};
use nacelle_wire::mrsp::{
    ARegion, AarRegion, CallImm, DEFAULT_PORT, FunctionCode, MAX_MESSAGE, Message, RegionFlags, ReturnCode,
};

use crate::{DeviceError, Engine, Facts, Identity, PushError, Stamp};

mod managed;

use managed::ManagedTable;

/// Connections at a time.
const MAX_SESSIONS: usize = 256;
/// Longest IP packet, in bytes: room for a path MTU of 4096.
const IP_MTU: usize = 4200;
/// Receives of one connection: for what is in hand, and for what comes next.
const RECEIVES: usize = 2;
/// Numbers of the requests that make an answer: the last one's completion ends it.
const PART: u64 = 0;
const LAST: u64 = 1;
/// The only error code of MRSP.
const MRSP_ERROR: u8 = 1;

/// Kernel codes of matrix multiply.
const BAD_ARGUMENTS: ReturnCode = ReturnCode::new(0x10);
const BAD_SIZE: ReturnCode = ReturnCode::new(0x11);
/// The code for functions that the device does not have.
const UNKNOWN_FUNCTION: ReturnCode = ReturnCode::new(0x03);

/// A region of a caller, and its counterpart here.
struct Held {
    asked: AarRegion,
    here: Region,
}

/// What a caller wants, in the order in which it came. The receive is posted again when it is taken up.
enum Wish {
    Regions { receive: u64, length: usize },
    Call { receive: u64, imm: u32 },
}

/// What one connection holds. It does one thing at a time: until an answer is acknowledged its regions stay as they are, since
/// they may have to be sent again.
struct Session {
    messages: Region,
    regions: Vec<Held>,
    bytes: u64,
    answering: bool,
    wishes: VecDeque<Wish>,
}

/// The software device.
pub struct SoftEngine {
    endpoint: Endpoint,
    epoch: Instant,
    sessions: HashMap<ConnId, Session>,
    bytes: u64,
    entered: VecDeque<Stamp>,
    calls: u64,
    frame_len: usize,
    config: SoftConfig,
    managed: ManagedTable,
}

/// What a software device is made with.
#[derive(Debug, Clone)]
pub struct SoftConfig {
    /// Memory for regions, in bytes. Default: 1 GiB.
    pub memory_bytes: u64,
    /// How connections behave. By default a caller that says nothing for 5 s is asked whether it still lives.
    pub connect: ConnectOptions,
}

impl Default for SoftConfig {
    fn default() -> Self {
        let connect = ConnectOptions { keepalive: Some(Duration::from_secs(5)), ..ConnectOptions::default() };
        Self { memory_bytes: 1 << 30, connect }
    }
}

fn endpoint(mac: MacAddr, ip: Ipv4Addr, prefix_len: u8, gateway: Option<Ipv4Addr>, seed: u32) -> Endpoint {
    let mut random = [0; 32];
    // Without the system's random numbers, keys would be as good as known: then it is better not to start.
    getrandom::fill(&mut random).expect("the system gives random numbers");
    random[..4].copy_from_slice(&seed.to_be_bytes());
    let mut config = EndpointConfig::new(mac, ip, random);
    config.prefix_len = prefix_len;
    config.gateway = gateway;
    config.ip_mtu = IP_MTU;
    config.max_connections = MAX_SESSIONS + 1; // room to refuse one more
    config.congestion.rp_enable = true;
    config.congestion.np_enable = true;
    Endpoint::new(config)
}

impl SoftEngine {
    /// A device that is not configured.
    #[must_use]
    pub fn new(config: SoftConfig) -> Self {
        let endpoint = endpoint(MacAddr::default(), Ipv4Addr::UNSPECIFIED, 0, None, 0);
        let frame_len = endpoint.frame_len();
        Self {
            endpoint,
            epoch: Instant::now(),
            sessions: HashMap::new(),
            bytes: 0,
            entered: VecDeque::new(),
            calls: 0,
            frame_len,
            config,
            managed: ManagedTable::default(),
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
            Event::ConnectRequest { conn, .. } => self.admit(conn),
            Event::Completion(completion) if self.is_managed(completion.conn) => self.managed_completed(&completion),
            Event::Completion(Completion { conn, id, opcode, status: WcStatus::Success, byte_len, imm, .. }) => {
                let Some(session) = self.sessions.get_mut(&conn) else { return };
                match opcode {
                    WcOpcode::Recv => session.wishes.push_back(Wish::Regions { receive: id, length: byte_len }),
                    WcOpcode::RecvWrite => {
                        session.wishes.push_back(Wish::Call { receive: id, imm: imm.unwrap_or_default() });
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

    fn admit(&mut self, conn: ConnId) {
        if self.open(conn).is_none() {
            // It is gone already if this fails too.
            let _ = self.endpoint.reject(conn, b"too many callers\0");
        }
    }

    /// Takes a caller in. `None` if there is no room.
    fn open(&mut self, conn: ConnId) -> Option<()> {
        if self.sessions.len() >= MAX_SESSIONS {
            return None;
        }
        let messages = self.endpoint.register(vec![0; RECEIVES * MAX_MESSAGE], Access::LOCAL, Some(conn)).ok()?;
        let session = Session {
            messages,
            regions: Vec::new(),
            bytes: 0,
            answering: false,
            wishes: VecDeque::with_capacity(RECEIVES),
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
        let slice = messages.slice(receive as usize * MAX_MESSAGE, MAX_MESSAGE);
        self.endpoint.post_recv(conn, RecvWr { id: receive, slice: Some(slice) }).ok()
    }

    fn release(&mut self, conn: ConnId) {
        self.release_regions(conn);
        if let Some(session) = self.sessions.remove(&conn) {
            self.endpoint.deregister(session.messages.id);
        }
    }

    fn release_regions(&mut self, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        self.bytes -= std::mem::take(&mut session.bytes);
        for held in session.regions.drain(..) {
            self.endpoint.deregister(held.here.id);
        }
    }

    /// Does what a caller wants, until an answer is on its way.
    fn go_on(&mut self, conn: ConnId) {
        while let Some(session) = self.sessions.get_mut(&conn)
            && !session.answering
            && let Some(wish) = session.wishes.pop_front()
        {
            let messages = session.messages;
            let (Wish::Regions { receive, .. } | Wish::Call { receive, .. }) = wish;
            let asked = match wish {
                Wish::Regions { length, .. } => {
                    let offset = receive as usize * MAX_MESSAGE;
                    let message = self.endpoint.region(messages.id).and_then(|all| all.get(offset..offset + length));
                    match Message::parse(message.unwrap_or_default()) {
                        Ok(Message::Aar(asked)) => Some(asked.to_vec()),
                        _ => None,
                    }
                }
                Wish::Call { .. } => None,
            };
            // Before the answer: the caller's next message may follow it at once.
            let _gone_if_not = self.post_receive(conn, messages, receive);
            match wish {
                Wish::Regions { .. } => self.set_up(conn, asked),
                Wish::Call { imm, .. } => self.call(conn, imm),
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

    /// Answers a region request; `None` is one that could not be read, and changes nothing. Any other takes the place of what
    /// the caller had, whatever comes of it.
    fn set_up(&mut self, conn: ConnId, asked: Option<Vec<AarRegion>>) {
        let given = asked.and_then(|asked| {
            self.release_regions(conn);
            self.hold(conn, &asked)
        });
        let mut answer = [0; MAX_MESSAGE];
        let message = given.as_deref().map_or(Message::Err(MRSP_ERROR), Message::A);
        // An answer has fewer bytes than its request, which fitted.
        let length = message.write(&mut answer).unwrap_or(0);
        self.answer(conn, SendWr::send(LAST, &answer[..length]));
    }

    /// Allocates the regions that are asked for; all or none.
    fn hold(&mut self, conn: ConnId, asked: &[AarRegion]) -> Option<Vec<ARegion>> {
        let bytes: u64 = asked.iter().map(|region| u64::from(region.size())).sum();
        let parameters = asked.iter().filter(|region| !region.flags().contains(RegionFlags::INTERNAL)).count();
        if parameters == 0 || self.bytes + bytes > self.config.memory_bytes {
            return None;
        }
        let rights = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let mut regions = Vec::new();
        for asked in asked {
            match self.endpoint.register(vec![0; asked.size() as usize], rights, Some(conn)) {
                Ok(here) => regions.push(Held { asked: *asked, here }),
                Err(_) => {
                    regions.iter().for_each(|held| drop(self.endpoint.deregister(held.here.id)));
                    return None;
                }
            }
        }
        let given = regions
            .iter()
            .filter(|held| !held.asked.flags().contains(RegionFlags::INTERNAL))
            .map(|held| ARegion::new(held.here.addr, held.here.rkey, held.asked.size()))
            .collect();
        self.bytes += bytes;
        let session = self.sessions.get_mut(&conn)?;
        session.bytes = bytes;
        session.regions = regions;
        Some(given)
    }

    /// Runs a kernel and sends its outputs.
    fn call(&mut self, conn: ConnId, imm: u32) {
        let Some(session) = self.sessions.get(&conn) else { return };
        let function = match CallImm::parse(imm) {
            Ok(CallImm::Start { function, .. }) => function,
            // The caller gave its call up, or nobody can say what it wants: there is nothing to do.
            Ok(CallImm::HostError) | Err(_) => return,
        };
        self.calls += 1;
        let regions: Vec<Region> = session.regions.iter().map(|held| held.here).collect();
        let code = run_kernel(&mut self.endpoint, function, &regions);
        let outputs: Vec<&Held> = session
            .regions
            .iter()
            .filter(|held| held.asked.flags().contains(RegionFlags::OUTPUT) && code == ReturnCode::SUCCESS)
            .collect();
        let imm = code.to_imm();
        let mut requests: Vec<SendWr> = Vec::with_capacity(outputs.len().max(1));
        for (index, held) in outputs.iter().enumerate() {
            let (data, address, rkey) = (held.here.all(), held.asked.address(), held.asked.rkey());
            requests.push(if index + 1 == outputs.len() {
                SendWr::write_imm(LAST, data, address, rkey, imm)
            } else {
                SendWr::write(PART, data, address, rkey)
            });
        }
        if outputs.is_empty()
            && let Some(held) = session.regions.first()
        {
            requests.push(SendWr::write_imm(LAST, Vec::new(), held.asked.address(), held.asked.rkey(), imm));
        }
        for request in requests {
            self.answer(conn, request);
        }
    }
}

impl Engine for SoftEngine {
    fn facts(&self) -> Facts {
        Facts { kind: DeviceKind::Soft, data_w: 0, clock_hz: 1_000_000_000, memory_bytes: self.config.memory_bytes }
    }

    fn configure(&mut self, identity: &Identity, seed: u32) -> Result<(), DeviceError> {
        let Identity { mac, ip, prefix_len, gateway } = *identity;
        self.endpoint = endpoint(mac, ip, prefix_len, gateway, seed);
        self.endpoint.listen(DEFAULT_PORT);
        Ok(())
    }

    fn functions(&mut self) -> Result<Vec<FunctionInfo>, DeviceError> {
        let functions =
            [(FunctionCode::INCREMENT, "increment"), (FunctionCode::EMPTY, "empty"), (FunctionCode::MATMUL, "matmul")];
        Ok(functions.map(|(code, name)| FunctionInfo::known(code.get(), name, 1)).to_vec())
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
        true // all work is done when it comes
    }

    fn pass(&mut self, _time: Duration) {}

    fn wake_at(&self) -> Option<Instant> {
        self.endpoint.next_deadline().map(|at| self.epoch + Duration::from_nanos(at.as_nanos()))
    }

    fn cycles(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, DeviceError> {
        let mut all: BTreeMap<String, u64> =
            self.endpoint.counters().iter().map(|(name, value)| (format!("roce.{name}"), value)).collect();
        all.insert("rpc.calls".into(), self.calls);
        all.insert("rpc.callers".into(), self.sessions.len() as u64);
        all.insert("memory.bytes_held".into(), self.bytes);
        Ok(all)
    }
}

/// Runs a function on the regions of a call.
fn run_kernel(endpoint: &mut Endpoint, function: FunctionCode, regions: &[Region]) -> ReturnCode {
    match function {
        FunctionCode::INCREMENT => {
            for region in regions {
                let bytes = endpoint.region_mut(region.id).unwrap_or_default();
                bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
            }
            ReturnCode::SUCCESS
        }
        FunctionCode::EMPTY => ReturnCode::SUCCESS,
        FunctionCode::MATMUL => matmul(endpoint, regions).err().unwrap_or(ReturnCode::SUCCESS),
        _ => UNKNOWN_FUNCTION,
    }
}

fn matmul(endpoint: &mut Endpoint, regions: &[Region]) -> Result<(), ReturnCode> {
    let [block, a, b, c, ..] = regions else { return Err(BAD_SIZE) };
    let bytes = |region: &Region| endpoint.region(region.id).unwrap_or_default();
    let block = bytes(block).first_chunk().ok_or(BAD_ARGUMENTS)?;
    let Args { dtype, m, n, k } = Args::parse(block).map_err(|_| BAD_ARGUMENTS)?;
    let sides = [m, n, k].map(|side| side as usize);
    let [m, n, k] = sides;
    if sides.contains(&0) {
        return Err(BAD_ARGUMENTS);
    }
    let size = |rows: usize, columns: usize| rows.checked_mul(columns)?.checked_mul(dtype.size());
    let needed = [size(m, k), size(k, n), size(m, n)];
    for (region, needed) in [a, b, c].into_iter().zip(needed) {
        if needed.is_none_or(|needed| needed > region.len) {
            return Err(BAD_SIZE);
        }
    }
    let (a, b) = (words(bytes(a)), words(bytes(b)));
    let product: Vec<u8> = match dtype {
        Dtype::Int32 => {
            let [a, b] = [a, b].map(|words| words.map(i32::from_le_bytes).collect::<Vec<_>>());
            multiply(&a, &b, sides, |sum: i32, x, y| sum.wrapping_add(x.wrapping_mul(y)))
                .flat_map(i32::to_le_bytes)
                .collect()
        }
        Dtype::Float32 => {
            let [a, b] = [a, b].map(|words| words.map(f32::from_le_bytes).collect::<Vec<_>>());
            multiply(&a, &b, sides, |sum: f32, x, y| sum + x * y).flat_map(f32::to_le_bytes).collect()
        }
    };
    let out = endpoint.region_mut(c.id).unwrap_or_default();
    out[..product.len()].copy_from_slice(&product);
    Ok(())
}

fn words(bytes: &[u8]) -> impl Iterator<Item = [u8; 4]> {
    bytes.chunks_exact(4).map(|word| [word[0], word[1], word[2], word[3]])
}

/// The elements of the product, row after row. The regions may be larger than the matrices.
fn multiply<T: Copy + Default>(
    a: &[T],
    b: &[T],
    [m, n, k]: [usize; 3],
    add: impl Fn(T, T, T) -> T + Copy,
) -> impl Iterator<Item = T> {
    (0..m * n).map(move |at| {
        let (row, column) = (at / n, at % n);
        (0..k).fold(T::default(), |sum, i| add(sum, a[row * k + i], b[i * n + column]))
    })
}
