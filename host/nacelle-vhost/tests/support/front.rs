// SPDX-License-Identifier: Apache-2.0
//! A front end for tests: says what it is told to, and has a driver of two split rings in memory that it shares.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nacelle_slot::channel::{self, Channel, Descriptors, Received};
use nacelle_vhost::protocol::{Header, MemoryRegion, MemoryTable, RingAddress, RingState, flag, request};
use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::fs::{MemfdFlags, SealFlags};
use zerocopy::IntoBytes;

/// Where the guest and the front end find the memory.
pub const GUEST: u64 = 0x10_0000;
pub const USER: u64 = 0x7f00_0000_0000;
pub const MEMORY: u64 = 0x8_0000;
pub const SIZE: u16 = 16;
/// Rings and buffers in memory: for each ring descriptors, available, used, and then 2 KiB for each descriptor.
const RING: u64 = 0x1000;
const BUFFERS: u64 = 0x1_0000;
const BUFFER: u64 = 0x800;
const HEADER: usize = 12;
/// Two pairs, and one for commands.
pub const RINGS: usize = 5;
/// Enough for a simulation on a machine with much other work.
const SOON: Duration = Duration::from_secs(100);

/// How the driver is called, and kicks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Eventfd,
    /// Eight bytes on a socket for a call.
    Socket,
    /// Messages.
    Message,
}

pub struct Front {
    pub channel: Channel<Header>,
    pub raw: UnixStream,
    pub memory: OwnedFd,
    pub acknowledge: bool,
    pub kicks: [OwnedFd; RINGS],
    pub error: OwnedFd,
    calls: [OwnedFd; RINGS],
    /// The back end's ends of the sockets, or the same eventfds.
    calls_there: [OwnedFd; RINGS],
    pub requests: Option<Channel<Header>>,
    by: By,
    available: [u16; RINGS],
    used: [u16; RINGS],
}

pub fn eventfd() -> OwnedFd {
    rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

pub fn memory(sealed: bool) -> OwnedFd {
    let file = rustix::fs::memfd_create("front", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&file, MEMORY).unwrap();
    if sealed {
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
    }
    file
}

impl Front {
    pub fn connect(path: &Path, by: By, sealed: bool) -> Self {
        let raw = UnixStream::connect(path).unwrap();
        let pair = || -> (OwnedFd, OwnedFd) {
            if by == By::Socket {
                let (here, there) = UnixStream::pair().unwrap();
                (here.into(), there.into())
            } else {
                let eventfd = eventfd();
                (eventfd.try_clone().unwrap(), eventfd)
            }
        };
        let calls: [(OwnedFd, OwnedFd); RINGS] = std::array::from_fn(|_| pair());
        let calls_there = calls.each_ref().map(|(_, there)| there.try_clone().unwrap());
        Self {
            channel: Channel::new(raw.try_clone().unwrap(), 4096).unwrap(),
            raw,
            memory: memory(sealed),
            acknowledge: true,
            kicks: std::array::from_fn(|_| eventfd()),
            error: eventfd(),
            calls: calls.map(|(here, _)| here),
            calls_there,
            requests: None,
            by,
            available: [0; RINGS],
            used: [0; RINGS],
        }
    }

    pub fn say(&mut self, request: u32, flags: u32, payload: &[u8], descriptors: &[&OwnedFd]) {
        let header = Header { request, flags: flag::VERSION | flags, size: 0 };
        let descriptors: Descriptors = descriptors.iter().map(|one| one.try_clone().unwrap()).collect();
        self.channel.queue(header, &[payload], descriptors);
        let _it_may_be_closed = self.channel.flush();
    }

    /// The next message. `None`: the back end has closed the connection.
    pub fn hear(&mut self) -> Option<(Header, Vec<u8>)> {
        hear(&mut self.channel)
    }

    /// Asks for what has a reply of its own.
    pub fn ask(&mut self, request: u32, payload: &[u8]) -> Vec<u8> {
        self.say(request, 0, payload, &[]);
        let (header, payload) = self.hear().expect("a reply");
        assert_eq!((header.request, header.flags), (request, flag::VERSION | flag::REPLY));
        payload
    }

    pub fn number(&mut self, request: u32) -> u64 {
        u64::from_ne_bytes(self.ask(request, &[]).try_into().unwrap())
    }

    /// Whether a request is done; without acknowledgements whether the connection is still there.
    pub fn tell(&mut self, request: u32, payload: &[u8], descriptors: &[&OwnedFd]) -> bool {
        if !self.acknowledge {
            self.say(request, 0, payload, descriptors);
            self.say(request::GET_FEATURES, 0, &[], &[]);
            return self.hear().is_some();
        }
        self.say(request, flag::NEED_REPLY, payload, descriptors);
        let Some((header, payload)) = self.hear() else { return false };
        assert_eq!((header.request, payload.len()), (request, 8));
        payload == [0; 8]
    }

    pub fn must(&mut self, request: u32, payload: &[u8], descriptors: &[&OwnedFd]) {
        assert!(self.tell(request, payload, descriptors), "request {request}");
    }

    pub fn state(index: u32, number: u32) -> Vec<u8> {
        RingState { index, number }.as_bytes().to_vec()
    }

    /// Features and protocol features, and acknowledgements from then on.
    pub fn agree(&mut self, features: u64, protocol: u64) {
        let acknowledge = std::mem::replace(&mut self.acknowledge, false);
        self.must(request::SET_OWNER, &[], &[]);
        self.must(request::SET_FEATURES, &features.to_ne_bytes(), &[]);
        self.must(request::SET_PROTOCOL_FEATURES, &protocol.to_ne_bytes(), &[]);
        self.acknowledge = acknowledge;
    }

    pub fn table(regions: &[MemoryRegion]) -> Vec<u8> {
        let head = MemoryTable { regions: regions.len() as u32, padding: 0 };
        [head.as_bytes(), regions.as_bytes()].concat()
    }

    pub fn region() -> MemoryRegion {
        MemoryRegion { guest: GUEST, size: MEMORY, user: USER, offset: 0 }
    }

    pub fn give_memory(&mut self) {
        // As long as two regions, as User-mode Linux sends it.
        let mut table = Self::table(&[Self::region()]);
        table.resize(8 + 2 * 32, 0);
        let memory = self.memory.try_clone().unwrap();
        self.must(request::SET_MEM_TABLE, &table, &[&memory]);
    }

    pub fn address(ring: u32) -> RingAddress {
        let base = USER + RING * u64::from(ring);
        RingAddress { index: ring, flags: 0, descriptors: base, available: base + 0x400, used: base + 0x800, log: 0 }
    }

    /// Sets a ring up and starts it.
    pub fn start_ring(&mut self, ring: u32) {
        self.must(request::SET_VRING_NUM, &Self::state(ring, SIZE.into()), &[]);
        self.must(request::SET_VRING_BASE, &Self::state(ring, 0), &[]);
        self.must(request::SET_VRING_ADDR, Self::address(ring).as_bytes(), &[]);
        let [call, kick, error] = [&self.calls_there[ring as usize], &self.kicks[ring as usize], &self.error]
            .map(|one| one.try_clone().unwrap());
        if self.by != By::Message {
            self.must(request::SET_VRING_CALL, &u64::from(ring).to_ne_bytes(), &[&call]);
            self.must(request::SET_VRING_ERR, &u64::from(ring).to_ne_bytes(), &[&error]);
            self.must(request::SET_VRING_KICK, &u64::from(ring).to_ne_bytes(), &[&kick]);
        }
    }

    pub fn enable(&mut self, on: u32) {
        self.enable_pair(0, on);
    }

    pub fn enable_pair(&mut self, pair: u32, on: u32) {
        for ring in 2 * pair..2 * pair + 2 {
            self.must(request::SET_VRING_ENABLE, &Self::state(ring, on), &[]);
        }
    }

    /// The rings as a driver makes them: all of the first receive ring's buffers are there.
    pub fn prepare(&mut self) {
        self.write(0, &[0; RINGS * RING as usize]);
        (self.available, self.used) = ([0; RINGS], [0; RINGS]);
        self.fill(0);
    }

    /// Puts all buffers of a receive ring into it.
    pub fn fill(&mut self, ring: usize) {
        for number in 0..SIZE {
            self.offer(ring, number, BUFFER as u32, 2);
        }
    }

    /// All of it, in the order of User-mode Linux. `protocol` are the features beside acknowledgements.
    pub fn set_up(&mut self, features: u64, protocol: u64) {
        self.agree(features | 1 << 30, protocol);
        self.give_memory();
        self.prepare();
        if self.by == By::Message {
            let (here, there) = UnixStream::pair().unwrap();
            self.must(request::SET_BACKEND_REQ_FD, &[], &[&there.into()]);
            self.requests = Some(Channel::new(here, 4096).unwrap());
        }
        for ring in 0..2 {
            self.start_ring(ring);
            self.must(request::SET_VRING_ENABLE, &Self::state(ring, 1), &[]);
        }
    }

    pub fn write(&self, at: u64, bytes: &[u8]) {
        assert_eq!(rustix::io::pwrite(&self.memory, bytes, at), Ok(bytes.len()));
    }

    pub fn read(&self, at: u64, into: &mut [u8]) {
        assert_eq!(rustix::io::pread(&self.memory, &mut *into, at), Ok(into.len()));
    }

    fn half(&self, at: u64) -> u16 {
        let mut bytes = [0; 2];
        self.read(at, &mut bytes);
        u16::from_le_bytes(bytes)
    }

    fn buffer(ring: usize, number: u16) -> u64 {
        BUFFERS + (ring as u64 * u64::from(SIZE) + u64::from(number)) * BUFFER
    }

    /// Puts a buffer of one descriptor into a ring.
    fn offer(&mut self, ring: usize, number: u16, len: u32, flags: u16) {
        let base = RING * ring as u64;
        let address = GUEST + Self::buffer(ring, number);
        let descriptor = [&address.to_le_bytes()[..], &len.to_le_bytes(), &flags.to_le_bytes(), &[0; 2]].concat();
        self.write(base + 16 * u64::from(number), &descriptor);
        let index = self.available[ring];
        self.write(base + 0x404 + 2 * u64::from(index % SIZE), &number.to_le_bytes());
        self.available[ring] = index.wrapping_add(1);
        self.write(base + 0x402, &self.available[ring].to_le_bytes());
    }

    pub fn kick(&mut self, ring: usize) {
        if self.by == By::Message {
            let payload = Self::state(ring as u32, 0);
            self.must(request::VRING_KICK, &payload, &[]);
        } else {
            rustix::io::write(&self.kicks[ring], &1u64.to_ne_bytes()).unwrap();
        }
    }

    /// Puts a frame into the ring to send, and kicks.
    pub fn send(&mut self, frame: &[u8]) {
        self.send_by(1, frame);
    }

    pub fn send_by(&mut self, ring: usize, frame: &[u8]) {
        let number = self.available[ring] % SIZE;
        let at = Self::buffer(ring, number);
        self.write(at, &[0; HEADER]);
        self.write(at + HEADER as u64, frame);
        self.offer(ring, number, (HEADER + frame.len()) as u32, 0);
        self.kick(ring);
    }

    /// Puts a command into a ring, and waits for its answer.
    pub fn command(&mut self, ring: usize, bytes: &[u8]) -> u8 {
        let base = RING * ring as u64;
        let at = Self::buffer(ring, 0);
        self.write(at, bytes);
        self.write(at + BUFFER - 1, &[0xee]);
        for (number, from, len, flags, next) in [(0, at, bytes.len() as u32, 1u16, 1u16), (1, at + BUFFER - 1, 1, 2, 0)]
        {
            let parts =
                [&(GUEST + from).to_le_bytes()[..], &len.to_le_bytes(), &flags.to_le_bytes(), &next.to_le_bytes()];
            self.write(base + 16 * number, &parts.concat());
        }
        let index = self.available[ring];
        self.write(base + 0x404 + 2 * u64::from(index % SIZE), &[0; 2]);
        self.available[ring] = index.wrapping_add(1);
        self.write(base + 0x402, &self.available[ring].to_le_bytes());
        self.kick(ring);
        let end = Instant::now() + SOON;
        while self.half(base + 0x802) != self.available[ring] {
            assert!(Instant::now() < end, "a command is answered");
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut answer = [0];
        self.read(at + BUFFER - 1, &mut answer);
        answer[0]
    }

    /// The next frame that the card has received, once the driver was called for it. `None`: none has come after `wait`.
    pub fn receive_within(&mut self, wait: Duration) -> Option<Vec<u8>> {
        self.receive_by(0, wait)
    }

    pub fn receive_by(&mut self, ring: usize, wait: Duration) -> Option<Vec<u8>> {
        let (base, deadline) = (RING * ring as u64, Instant::now() + wait);
        while self.half(base + 0x802) == self.used[ring] {
            if !self.called(ring, deadline.saturating_duration_since(Instant::now())) {
                return None;
            }
        }
        let at = base + 0x804 + 8 * u64::from(self.used[ring] % SIZE);
        self.used[ring] = self.used[ring].wrapping_add(1);
        let (number, len) = (self.half(at), self.half(at + 4));
        let mut frame = vec![0; usize::from(len)];
        self.read(Self::buffer(ring, number), &mut frame);
        self.offer(ring, number, BUFFER as u32, 2);
        self.kick(ring);
        Some(frame.split_off(HEADER))
    }

    pub fn receive(&mut self) -> Vec<u8> {
        self.receive_within(SOON).expect("a frame comes")
    }

    /// Whether the driver was called for a ring within this time.
    pub fn called(&mut self, ring: usize, wait: Duration) -> bool {
        let deadline = Instant::now() + wait;
        if self.by == By::Message {
            let Some(requests) = &mut self.requests else { return false };
            while let Some((header, payload)) = hear_within(requests, deadline) {
                if (header.request, &payload[..]) == (4, &Self::state(ring as u32, 0)[..]) {
                    return true;
                }
            }
            return false;
        }
        wait_for(&self.calls[ring], wait) && rustix::io::read(&self.calls[ring], &mut [0; 8]) == Ok(8)
    }

    /// Frames go to the card and come back.
    pub fn must_work(&mut self) {
        for (number, len) in [(1, 60), (2, 1514), (3, 64)] {
            let frame: Vec<u8> = (0..len).map(|byte| (byte as u8).wrapping_mul(number)).collect();
            self.send(&frame);
            assert!(self.receive() == frame, "frame {number} has come back");
        }
    }

    pub fn is_closed(&mut self) -> bool {
        self.hear().is_none()
    }

    /// Bytes of any kind.
    pub fn spill(&mut self, bytes: &[u8]) {
        let _it_may_be_closed = self.raw.write_all(bytes);
    }
}

/// Whether a descriptor can be read within this time.
pub fn wait_for(descriptor: &impl AsFd, wait: Duration) -> bool {
    let mut fds = [PollFd::new(descriptor, PollFlags::IN)];
    channel::wait(&mut fds, Some(wait)).unwrap();
    channel::is_ready(&fds[0])
}

fn hear(channel: &mut Channel<Header>) -> Option<(Header, Vec<u8>)> {
    hear_within(channel, Instant::now() + SOON)
}

fn hear_within(channel: &mut Channel<Header>, deadline: Instant) -> Option<(Header, Vec<u8>)> {
    loop {
        let _it_may_be_closed = channel.flush();
        match channel.receive() {
            Ok(Received::Message) => {
                let message = channel.take();
                return Some((message.header, message.payload().to_vec()));
            }
            Ok(Received::Nothing) => {}
            _ => return None,
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        let interest = channel::interest(channel, true);
        channel::wait(&mut [PollFd::from_borrowed_fd(channel.socket(), interest)], Some(left)).unwrap();
    }
}

/// Descriptors that this process has open.
pub fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
