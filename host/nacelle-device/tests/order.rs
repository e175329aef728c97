// SPDX-License-Identifier: Apache-2.0
//! The software device without a wire, so that a test says in which order frames arrive.

use std::time::{Duration, Instant};

use nacelle_device::{Engine, FrameEngine, Identity, SoftConfig, SoftEngine};
use nacelle_roce::wire::mrsp::{AarRegion, CallImm, DEFAULT_PORT, FunctionCode, Message, RegionFlags};
use nacelle_roce::{Access, ConnectOptions, Endpoint, EndpointConfig, Event, RecvWr, SendWr, WcOpcode, WcStatus};

const LENGTH: u32 = 100_000;

/// A device and a caller in this thread.
struct Pair {
    device: SoftEngine,
    caller: Endpoint,
    epoch: Instant,
    events: Vec<Event>,
}

impl Pair {
    fn new() -> Self {
        let identity =
            Identity { mac: [2, 0, 0, 0, 0, 1].into(), ip: [10, 0, 0, 1].into(), prefix_len: 16, gateway: None };
        let mut device = SoftEngine::new(SoftConfig::default());
        device.configure(&identity, 1).unwrap();
        let caller = Endpoint::new(EndpointConfig::new([2, 0, 0, 0, 0, 2].into(), [10, 0, 0, 2].into(), [7; 32]));
        Self { device, caller, epoch: Instant::now(), events: Vec::new() }
    }

    fn now(&self) -> nacelle_roce::Instant {
        nacelle_roce::Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    /// Gives the device all that the caller has to send. How many frames that is.
    fn send(&mut self) -> usize {
        let mut frame = vec![0; 8192];
        let mut count = 0;
        while let Some(length) = self.caller.poll_transmit(self.now(), &mut frame) {
            self.device.push(&frame[..length]).unwrap();
            count += 1;
        }
        count
    }

    /// Gives the caller what the device has to send, up to so many frames.
    fn receive(&mut self, limit: usize) {
        let mut frame = vec![0; 8192];
        for _ in 0..limit {
            let Some((length, _)) = self.device.pull(&mut frame) else { break };
            let _counted = self.caller.handle(self.now(), &frame[..length]);
        }
        self.events.extend(std::iter::from_fn(|| self.caller.transport.poll_event()));
    }

    /// Lets both go on until such an event comes.
    fn wait(&mut self, wanted: impl Fn(&Event) -> bool) -> Event {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(at) = self.events.iter().position(&wanted) {
                return self.events.remove(at);
            }
            assert!(Instant::now() < deadline, "it did not happen: {:?}", self.events);
            self.send();
            self.device.run(Instant::now());
            self.receive(usize::MAX);
        }
    }

    fn completed(&mut self, opcode: WcOpcode) -> Event {
        self.wait(|event| matches!(event, Event::Completion(done) if done.opcode == opcode && done.status == WcStatus::Success))
    }
}

/// A READ from before a start is answered with what was there before the start, although its response takes long.
#[test]
fn a_call_waits_for_the_reads_before_it() {
    let mut pair = Pair::new();
    let now = pair.now();
    let conn = pair
        .caller
        .connect(now, std::net::Ipv4Addr::new(10, 0, 0, 1), DEFAULT_PORT, ConnectOptions::default())
        .unwrap();
    pair.wait(|event| matches!(event, Event::Connected { .. }));
    let transport = &mut pair.caller.transport;
    let here = transport.register(vec![0; LENGTH as usize + 64], Access::REMOTE_WRITE, conn).unwrap();
    let asked = AarRegion::parameter(RegionFlags::INPUT, 0, here.addr, here.rkey, LENGTH);
    let mut message = [0; 64];
    let length = Message::Aar(&[asked]).write(&mut message).unwrap();
    transport.post_recv(conn, RecvWr { id: 0, slice: Some(here.slice(LENGTH as usize, 64)) }).unwrap();
    transport.post_send(conn, SendWr::send(1, &message[..length])).unwrap();
    pair.completed(WcOpcode::Recv);
    pair.send(); // the acknowledgement
    let transport = &mut pair.caller.transport;
    let answer = transport.region(here.id).unwrap().to_vec().unwrap()[LENGTH as usize..][..20].to_vec();
    let Ok(Message::A([region])) = Message::parse(&answer) else { panic!("{answer:?}") };

    let start = CallImm::Start { function: FunctionCode::INCREMENT, user: [0; 3] }.to_u32();
    let read = SendWr::read(2, here.slice(0, LENGTH as usize), region.address(), region.rkey());
    transport.post_recv(conn, RecvWr { id: 3, slice: None }).unwrap();
    transport.post_send(conn, read.clone()).unwrap();
    transport.post_send(conn, SendWr::write_imm(4, Vec::new(), here.addr, here.rkey, start)).unwrap();
    assert_eq!(pair.send(), 2, "both are there before anything is answered");
    pair.device.run(Instant::now());
    assert!(!pair.device.idle(), "it will look at the start again");
    pair.receive(3);
    pair.device.run(Instant::now());
    pair.completed(WcOpcode::Read);
    let bytes =
        |pair: &Pair| pair.caller.transport.region(here.id).unwrap().to_vec().unwrap()[..LENGTH as usize].to_vec();
    assert!(bytes(&pair) == vec![0; LENGTH as usize]);
    pair.completed(WcOpcode::RecvWrite);
    assert!(pair.device.idle());
    pair.caller.transport.post_send(conn, read).unwrap();
    pair.completed(WcOpcode::Read);
    assert!(bytes(&pair) == vec![1; LENGTH as usize]);
}
