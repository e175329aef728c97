// SPDX-License-Identifier: Apache-2.0
//! A software device and one caller, who says whatever the input has.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use nacelle_device::{Engine, Failure, FrameEngine, Identity, SoftConfig, SoftEngine, Window};
use nacelle_driver::{Clock, ClockHand};
use nacelle_manage::Manage;
use nacelle_roce::memory::Shared;
use nacelle_roce::wire::calls::{Context, Request};
use nacelle_roce::wire::extensions::{Agreement, Extensions};
use nacelle_roce::wire::mrsp::{CallImm, DEFAULT_PORT, FunctionCode, WindowNumber};
use nacelle_roce::wire::{MacAddr, RemoteAddr, Rkey};
use nacelle_roce::{
    Access, ConnId, ConnectOptions, Endpoint, EndpointConfig, Event, Instant, ProtectionDomain, RecvWr, Region, SendWr,
};

use crate::{number, take};

const CALLER: (MacAddr, Ipv4Addr) = (MacAddr([2, 0, 0, 0, 0, 2]), Ipv4Addr::new(10, 0, 0, 2));
const DEVICE: (MacAddr, Ipv4Addr) = (MacAddr([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 1));
/// So little that every kernel runs at once, in the device's own thread.
const MEMORY: u64 = 8 << 10;
/// Codes of the device's functions, the chain, and one that it does not have.
const KERNELS: [u8; 7] = [1, 3, 16, 32, 0, 99, 127];
/// Bytes of its windows, one to be written and one to be read.
const WINDOW: usize = 1000;
/// How often to look whether a callback, which has a thread of its own, has returned; a millisecond apart.
const LOOKS: u32 = 1000;
/// Turns in which both are quiet again.
const TURNS: usize = 10_000;

/// A software device that gets messages, immediates, WRITEs, READs and frames made of the input, from a caller with or without
/// contexts.
///
/// Rules: no panic; it always comes to rest; when the caller has gone, it has no queue pair, no caller and no memory left.
pub fn device(data: &[u8]) {
    let mut input = data;
    let contexts = take(&mut input, 1).first().copied().unwrap_or_default() % 4;
    let mut pair = Pair::new(contexts);
    while let Some((&command, rest)) = input.split_first() {
        input = rest;
        pair.command(command, &mut input);
        pair.exchange();
    }
    pair.part();
}

/// How the caller connects: with contexts, or without.
fn options(contexts: u8) -> ConnectOptions {
    let agreement = match contexts {
        0 => Agreement::default(),
        count => Agreement::new(Extensions::CONTEXTS | Extensions::LONG_SET_UP, count),
    };
    ConnectOptions { agreement, ..ConnectOptions::default() }
}

fn home(caller: &mut Endpoint) -> Region {
    let access = Access::REMOTE_WRITE;
    caller.transport.register(vec![0; MEMORY as usize], access, ProtectionDomain::DEFAULT).expect("there is room")
}

struct Pair {
    device: SoftEngine,
    _windows: [Window; 2],
    _shared: Arc<Shared>,
    clock: Clock,
    hand: ClockHand,
    caller: Endpoint,
    now: Instant,
    contexts: u8,
    conn: ConnId,
    /// Where the device writes results, and its answers go.
    home: Region,
    /// Of the last answer of the device: addresses and keys of regions.
    given: Option<(RemoteAddr, Rkey)>,
    frame: Vec<u8>,
}

impl Pair {
    fn new(contexts: u8) -> Self {
        let (clock, hand) = Clock::set_by_hand();
        let config = SoftConfig { memory_bytes: MEMORY, workers: 1, ..SoftConfig::default() };
        let mut device = SoftEngine::simulated(config, clock.clone(), [3; 32]);
        let (windows, shared) = (device.windows(), Arc::new(Shared::new(vec![5; WINDOW])));
        let written = windows.accept_incoming_write(1, WINDOW, |write| {
            write.bytes.fill(1);
            if write.label == 7 { Err(Failure::BAD_ARGUMENTS) } else { Ok(()) }
        });
        let windows = [written, windows.accept_incoming_read(2, &shared, |_| Ok(()))]
            .map(|open| open.expect("the number is free"));
        let identity = Identity { mac: DEVICE.0, ip: DEVICE.1, prefix_len: 24, gateway: None };
        device.configure(&identity, 0).expect("it takes any address");
        let mut caller = Endpoint::new(EndpointConfig::new(CALLER.0, CALLER.1, [4; 32]));
        let now = Instant::from_nanos(1);
        let options = options(contexts);
        let conn = caller.connect(now, DEVICE.1, DEFAULT_PORT, options).expect("there is room");
        let home = home(&mut caller);
        let frame = vec![0; 9000];
        let mut pair = Self {
            device,
            _windows: windows,
            _shared: shared,
            clock,
            hand,
            caller,
            now,
            contexts,
            conn,
            home,
            given: None,
            frame,
        };
        pair.begin();
        pair
    }

    /// Connects anew.
    fn connect(&mut self) {
        let options = options(self.contexts);
        self.conn = self.caller.connect(self.now, DEVICE.1, DEFAULT_PORT, options).expect("there is room");
        self.begin();
    }

    fn begin(&mut self) {
        for _ in 0..16 {
            self.receive();
        }
        self.exchange();
    }

    fn receive(&mut self) {
        // Without a connection there is nothing to receive.
        let _ = self.caller.transport.post_recv(self.conn, RecvWr { id: 0, slice: Some(self.home.slice(0, 1024)) });
    }

    fn post(&mut self, request: SendWr) {
        let _ = self.caller.transport.post_send(self.conn, request);
    }

    /// Frames pass until neither has one.
    fn exchange(&mut self) {
        self.hand.set(self.now);
        for turn in 0.. {
            assert!(turn < TURNS, "they never come to rest");
            let mut quiet = true;
            while let Some(length) = self.caller.poll_transmit(self.now, &mut self.frame) {
                quiet = false;
                self.device.push(&self.frame[..length]).expect("it takes every frame");
            }
            self.device.run(std::time::Instant::now());
            while let Some((length, _)) = self.device.pull(&mut self.frame) {
                quiet = false;
                let _ = self.caller.handle(self.now, &self.frame[..length]);
            }
            while self.device.rx_stamp().is_some() {}
            while let Some(event) = self.caller.transport.poll_event() {
                if let Event::Completion(done) = event
                    && done.opcode.is_recv()
                {
                    self.note_answer();
                    self.receive();
                }
            }
            if quiet && self.device.idle() {
                return;
            }
        }
    }

    /// Where the first region of an answer is, so that later commands can reach it.
    fn note_answer(&mut self) {
        let mut answer = [0; 20];
        let memory = self.caller.transport.region(self.home.id).expect("it is registered");
        memory.read(0, &mut answer).expect("it is long enough");
        if answer[0] == 2
            && let (Some(addr), Some(rkey)) = (answer[4..12].first_chunk(), answer[12..16].first_chunk())
        {
            self.given = Some((RemoteAddr(u64::from_be_bytes(*addr)), Rkey(u32::from_be_bytes(*rkey))));
        }
    }

    /// A region request that is right but for the sizes and flags, which the input has.
    fn set_up(&self, input: &mut &[u8]) -> Vec<u8> {
        let long = take(input, 1).first().is_some_and(|byte| byte & 1 != 0);
        let count = take(input, 1).first().map_or(1, |byte| byte % 5 + 1);
        let steps = if long { take(input, 1).first().map_or(0, |byte| byte % 5) } else { 0 };
        let mut message = if long { vec![0x11, count, steps, 0] } else { vec![1, count, 0, 0] };
        if long {
            message.extend(take(input, 4));
            message.extend(take(input, 8 * usize::from(steps)));
        }
        for _ in 0..count {
            let (flags, size) = (take(input, 1).first().copied().unwrap_or(0x0c), number(input) % 4096);
            let window = match flags >> 4 {
                window @ 1..=3 => WindowNumber(window.into()).to_requested(),
                _ => 0,
            };
            message.extend((u64::from(flags & 0x0f).rotate_right(8) | window).to_be_bytes());
            message.extend(self.home.addr.0.to_be_bytes());
            message.extend(if long {
                u64::from(size).to_be_bytes().to_vec()
            } else {
                self.home.rkey.0.to_be_bytes().to_vec()
            });
            message.extend(if long { self.home.rkey.0.to_be_bytes() } else { size.to_be_bytes() });
            if long {
                message.extend([0; 4]);
            }
        }
        message
    }

    fn context(&self, command: u8) -> Context {
        Context((command >> 4) % self.contexts.max(1))
    }

    fn command(&mut self, command: u8, input: &mut &[u8]) {
        if self.caller.transport.connection(self.conn).is_none() {
            self.connect();
        }
        let (addr, rkey) = self.given.unwrap_or((RemoteAddr(0), Rkey(0)));
        match command & 15 {
            0 | 1 => {
                let message = self.set_up(input);
                self.post(SendWr::send(0, message));
            }
            2 => {
                let (context, message) = (self.context(command), self.set_up(input));
                self.post(SendWr::send_imm(0, message, Request::Message(context).to_imm()));
            }
            3 if command >> 4 == 0 => {
                let imm = number(input);
                self.post(SendWr::send_imm(0, Vec::new(), imm));
            }
            3 => {
                let message = take(input, usize::from(command >> 4) * 16).to_vec();
                self.post(SendWr::send(0, message));
            }
            4 => self.post(SendWr::send_imm(0, Vec::new(), Request::Cancel(self.context(command)).to_imm())),
            5..=7 => {
                let [kernel, a, b] = *take(input, 3) else { return };
                let function = KERNELS.get(usize::from(kernel)).and_then(|code| FunctionCode::new(*code));
                let imm = match (self.contexts, function.or(FunctionCode::new(kernel))) {
                    (0, Some(function)) => CallImm::Start { function, user: [a, b, 0] }.to_u32(),
                    (0, None) => CallImm::HostError.to_u32(),
                    (_, function) => Request::Start { context: self.context(command), function, user: [a, b] }.to_imm(),
                };
                self.post(SendWr::write_imm(0, Vec::new(), RemoteAddr(0), Rkey(0), imm));
            }
            8 => {
                let imm = number(input);
                self.post(SendWr::write_imm(0, Vec::new(), RemoteAddr(0), Rkey(0), imm));
            }
            9 | 10 => {
                let bytes = take(input, usize::from(command >> 4) * 32).to_vec();
                self.post(SendWr::write(0, bytes, addr, rkey));
            }
            11 => self.post(SendWr::read(0, self.home.slice(0, usize::from(command >> 4) * 64), addr, rkey)),
            12 => {
                let frame = take(input, 80);
                self.device.push(frame).expect("it takes every frame");
            }
            13 => self.now = self.now + Duration::from_nanos(u64::from(number(input)) << 4),
            14 if command >> 4 == 0 => self.caller.transport.disconnect(self.now, self.conn),
            // The caller forgets everything.
            15 if command >> 4 == 1 => {
                self.caller.transport.reset();
                self.home = home(&mut self.caller);
            }
            _ => {}
        }
    }

    /// The caller goes without a word; the device notices, by its keep-alive.
    fn part(&mut self) {
        for _ in 0..TURNS {
            self.hand.set(self.now);
            self.device.run(std::time::Instant::now());
            while self.device.pull(&mut self.frame).is_some() {}
            let Some(next) = self.device.wake_at() else { break };
            self.now = self.now.max(self.clock.of(next));
        }
        for _ in 0..LOOKS {
            if self.device.counters().expect("it answers")["memory.bytes_held"] == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
            self.device.run(std::time::Instant::now());
        }
        let pairs = self.device.queue_pairs().expect("it answers").len();
        let counters = self.device.counters().expect("it answers");
        let held = [pairs as u64, counters["rpc.callers"], counters["memory.bytes_held"]];
        assert_eq!(held, [0; 3], "queue pairs, callers and bytes are left");
    }
}

/// Programs that make sense, to be changed.
#[cfg(test)]
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let set_up = |long: bool, context: u8| {
        let mut bytes = vec![context << 4 | 2, u8::from(long), 1];
        bytes.extend(if long { [1, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0].as_slice() } else { &[] });
        bytes.extend([0x0c, 0, 0, 1, 0, 0x0c, 0, 0, 2, 0]);
        bytes
    };
    let write = |count: u8| [vec![count << 4 | 9], vec![0xa5; usize::from(count) * 32]].concat();
    let start = |kernel: u8, context: u8| vec![context << 4 | 5, kernel, 7, 0];
    let read = vec![0x4b];
    let time = vec![13, 0x10, 0, 0, 0];
    let with = |contexts: u8, parts: &[Vec<u8>]| [vec![contexts], parts.concat()].concat();
    vec![
        with(
            0,
            &[vec![0, 0, 1, 0x0c, 0, 0, 1, 0, 0x08, 0, 0, 0, 9], write(3), start(0, 0), read.clone(), time.clone()],
        ),
        with(0, &[vec![0, 0, 0, 0x0c, 0, 0, 1, 0], start(1, 0), start(2, 0), vec![0x30, 0, 0], write(2), start(5, 0)]),
        with(1, &[set_up(false, 0), write(2), start(0, 0), vec![14], set_up(false, 0), start(0, 0), time.clone()]),
        with(
            3,
            &[set_up(true, 0), set_up(true, 2), start(0, 2), start(4, 0), vec![0x24], start(0, 0), read.clone(), time],
        ),
        with(
            0,
            &[
                vec![0, 0, 0, 0x14, 0, 0, 1, 0],
                write(2),
                start(6, 0),
                read.clone(),
                vec![0, 0, 0, 0x28, 0, 0, 1, 0],
                start(6, 0),
            ],
        ),
        with(2, &[set_up(true, 1), vec![0x1f], set_up(false, 1), write(4), start(0, 1), start(3, 1)]),
    ]
}
