// SPDX-License-Identifier: Apache-2.0
//! A device in the hands of a test: a real endpoint, on a cable of its own or on any link, whose manners the test chooses.

#![allow(dead_code)] // not every test uses all of it

use std::collections::HashMap;
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
    Access, ConnId, ConnectOptions, Endpoint, EndpointConfig, Event, RecvWr, Region, SendWr, WcOpcode, WcStatus,
};
use nacelle_wire::bth::Opcode;
use nacelle_wire::cm::RejReason;
use nacelle_wire::icmp::{EchoPacket, Kind};
use nacelle_wire::mrsp::{ARegion, AarRegion, DEFAULT_PORT, MAX_MESSAGE, Message, RegionFlags};
use nacelle_wire::{MacAddr, Qpn, RemoteAddr, Rkey, RocePacket, cm};

/// Where the device is.
pub(crate) const IP: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// One end of a cable.
pub(crate) struct Cable(UnixDatagram);

impl Link for Cable {
    fn send(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        // A queue that stays full loses the frame, and one whose other end is gone is an unplugged cable.
        for _ in 0..100 {
            match self.0.send(frame) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_micros(50));
                }
                _ => break,
            }
        }
        Ok(())
    }

    fn recv(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<Option<usize>, LinkError> {
        loop {
            if let Ok(length) = self.0.recv(buffer) {
                return Ok(Some(length));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            wait_readable([self.0.as_fd()], Some(deadline)).unwrap();
        }
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
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

/// What the device holds for one caller.
pub(crate) struct Caller {
    pub(crate) conn: ConnId,
    /// The caller's regions, from its request.
    pub(crate) told: Vec<AarRegion>,
    /// The device's, one for each that is not internal.
    pub(crate) own: Vec<Region>,
    /// When to reply to a start.
    reply_at: Option<Instant>,
    messages: Vec<Region>,
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
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            answer: Box::new(|_| None),
            reply: Box::new(increment),
            kernel: Duration::ZERO,
            sends: Box::new(|_| true),
            refuses: None,
        }
    }
}

/// Writes the outputs back, each byte one higher, the last with the immediate.
pub(crate) fn increment(endpoint: &mut Endpoint, caller: &Caller) {
    let outputs: Vec<_> =
        caller.told.iter().zip(&caller.own).filter(|(told, _)| told.flags().contains(RegionFlags::OUTPUT)).collect();
    for (index, (told, own)) in outputs.iter().enumerate() {
        let memory = endpoint.transport.region_mut(own.id).unwrap();
        let more: Vec<u8> = memory.to_vec().unwrap().iter().map(|byte| byte.wrapping_add(1)).collect();
        memory.write(0, &more).unwrap();
        let wr = if index + 1 == outputs.len() {
            SendWr::write_imm(0, own.all(), told.address(), told.rkey(), 0)
        } else {
            SendWr::write(0, own.all(), told.address(), told.rkey())
        };
        endpoint.transport.post_send(caller.conn, wr).unwrap();
    }
    if outputs.is_empty() {
        reply_only(endpoint, caller, 0);
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
    pub(crate) callers: HashMap<ConnId, Caller>,
    /// Why the device's own requests failed.
    pub(crate) failures: Vec<WcStatus>,
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
    let (near, far) = UnixDatagram::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    let peer = serve(Box::new(Cable(far)), manners);
    let device = Device::connect_over(Box::new(Cable(near)), None, IP, options).unwrap();
    (peer, device)
}

/// A device with these manners on a link.
pub(crate) fn serve(link: Box<dyn Link>, manners: Manners) -> Peer {
    let mut config = EndpointConfig::new(MacAddr([2, 0, 0, 0, 0, 2]), IP, [7; 32]);
    config.interface.prefix_len = 16;
    config.interface.ip_mtu = 4200;
    let mut endpoint = Endpoint::new(config);
    endpoint.transport.listen(DEFAULT_PORT);
    let inside = Arc::new(Mutex::new(Inside { endpoint, callers: HashMap::new(), failures: Vec::new() }));
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
                (manners.reply)(endpoint, caller);
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
            Event::ConnectRequest { conn, .. } => {
                let buffer = |endpoint: &mut Endpoint| {
                    let region = endpoint.transport.register(vec![0; 1024], Access::LOCAL, Some(conn)).unwrap();
                    endpoint.transport.post_recv(conn, RecvWr { id: 0, slice: Some(region.all()) }).unwrap();
                    region
                };
                let messages = vec![buffer(&mut self.endpoint)];
                let caller = Caller { conn, told: Vec::new(), own: Vec::new(), reply_at: None, messages };
                self.callers.insert(conn, caller);
                self.endpoint.transport.accept(now, conn, ConnectOptions::default()).unwrap();
            }
            Event::Completion(done) if done.status == WcStatus::WrFlushErr => {}
            Event::Completion(done) if done.status != WcStatus::Success => self.failures.push(done.status),
            Event::Completion(done) => {
                let Some(caller) = self.callers.get_mut(&done.conn) else { return };
                match done.opcode {
                    WcOpcode::Recv => {
                        let bytes = self.endpoint.transport.region(caller.messages[0].id).unwrap().to_vec().unwrap()
                            [..done.byte_len]
                            .to_vec();
                        let answer = give(&mut self.endpoint, caller, &bytes, manners);
                        self.endpoint.transport.post_recv(done.conn, RecvWr { id: 0, slice: None }).unwrap();
                        self.endpoint.transport.post_send(done.conn, SendWr::send(0, answer)).unwrap();
                    }
                    WcOpcode::RecvWrite => {
                        caller.reply_at = Some(Instant::now() + manners.kernel);
                        self.endpoint.transport.post_recv(done.conn, RecvWr { id: 0, slice: None }).unwrap();
                    }
                    _ => {}
                }
            }
            Event::Disconnected { conn, .. } | Event::ConnectFailed { conn, .. } => {
                self.callers.remove(&conn);
            }
            _ => {}
        }
    }
}

/// Memory for the requested regions, and the answer to the request.
fn give(endpoint: &mut Endpoint, caller: &mut Caller, asked: &[u8], manners: &Manners) -> Vec<u8> {
    let Ok(Message::Aar(told)) = Message::parse(asked) else { panic!("no region request: {asked:?}") };
    let told = told.iter().filter(|region| !region.flags().contains(RegionFlags::INTERNAL));
    caller.told = told.copied().collect();
    let conn = caller.conn;
    let own = caller.told.iter().map(|region| {
        endpoint.transport.register(vec![0; region.size() as usize], Access::REMOTE_WRITE, Some(conn)).unwrap()
    });
    caller.own = own.collect();
    let mut given: Vec<_> =
        caller.own.iter().map(|own| ARegion::new(RemoteAddr(own.addr.0), Rkey(own.rkey.0), own.len as u32)).collect();
    if let Some(instead) = (manners.answer)(&mut given) {
        return instead;
    }
    let mut message = vec![0; MAX_MESSAGE];
    let length = Message::A(&given).write(&mut message).unwrap();
    message.truncate(length);
    message
}

/// Ends a call. Returns the bytes of its regions.
pub(crate) fn close(call: nacelle::Call) -> Vec<Vec<u8>> {
    let regions = call.close().unwrap();
    regions.into_iter().map(|memory| memory.into_vec().unwrap()).collect()
}
