// SPDX-License-Identifier: Apache-2.0
//! A call that lasts long, over a network that is not good.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use fastrand::Rng;
use nacelle_device::{Kernel, KernelSet, SoftConfig};
use nacelle_roce::wire::mrsp::{
    AarRegion, CallImm, DEFAULT_PORT, FunctionCode, MAX_MESSAGE, Message, RegionFlags, ReturnCode,
};
use nacelle_roce::wire::{RemoteAddr, Rkey};
use nacelle_roce::{
    Access, Completion, ConnId, ConnectOptions, Event, Instant, RecvWr, Region, SendWr, WcOpcode, WcStatus,
};

use crate::network::{Conditions, Network, ip};
use crate::node::{Device, Station};
use crate::report::Report;
use crate::world::World;

const CALLER: usize = 0;
const DEVICE: usize = 1;
/// Bytes of the call's region.
const BYTES: usize = 10_000;
/// Both sides ask after so long whether the other still lives, as a device does by default.
const KEEPALIVE: Duration = Duration::from_secs(5);
const HOUR: Duration = Duration::from_secs(3600);
/// For what takes no time by itself.
const SOON: Duration = Duration::from_secs(60);
/// Real time in which a kernel returns that may.
const RETURNS: Duration = Duration::from_secs(30);
const KERNEL: &str = r#"
name = "sleeper"
version = "1.0"
[[functions]]
code = 80
name = "sleep"
doc = "Returns the bytes inverted, when it may."
regions = [{ name = "data", access = "inout", doc = "any bytes" }]
"#;

/// Calls a function of a software device that runs for `time`, with keep-alives on both sides, over a network that loses, repeats
/// and reorders frames, and is cut for some seconds every hour. The call must return, with the right bytes.
///
/// # Panics
/// If it does not.
#[must_use]
pub fn long_call(seed: u64, time: Duration) -> Report {
    let mut rng = Rng::with_seed(seed);
    let gate = Arc::new(Barrier::new(2));
    let mut world = world(&mut rng, &gate);
    let begin = world.now;
    let mut call = Call::set_up(&mut world);
    let mut content = vec![0; BYTES];
    rng.fill(&mut content);
    call.start(&mut world, &content);
    let end = begin + time;
    while world.now < end {
        assert_eq!(world.event((end - world.now).min(HOUR)), None, "nothing happens to the caller");
        // Within what retries bridge.
        let ways = [(CALLER, DEVICE), (DEVICE, CALLER)];
        let ways = &ways[rng.usize(..2)..];
        ways.iter().for_each(|&(from, to)| world.network.cut(from, to, true));
        assert_eq!(world.event(Duration::from_secs_f64(rng.f64() * 8.0)), None, "a short cut does no harm");
        ways.iter().for_each(|&(from, to)| world.network.cut(from, to, false));
    }
    gate.wait();
    call.finish(&mut world, content);
    let mut report = Report { time: world.now - begin, connections: 1, calls: 1, ..Report::default() };
    report.count(world.network.frames);
    report
}

fn world(rng: &mut Rng, gate: &Arc<Barrier>) -> World {
    let delay = Duration::from_micros(100);
    let conditions = Conditions { delay, jitter: delay, loss: 2.0, duplicate: 1.0, corrupt: 1.0, reorder: 1.0 };
    let mut world = World::new(Network::new(2, conditions, rng.u64(..)), 2);
    let mut random = || {
        let mut random = [0; 32];
        rng.fill(&mut random);
        random
    };
    let gate = Arc::clone(gate);
    let function = FunctionCode::new(80).expect("a code of kernels");
    let kernel = Kernel::from_toml(KERNEL).expect("a description");
    let kernel = kernel.with(function, move |call| {
        gate.wait();
        call.parameters.iter_mut().flat_map(|region| region.iter_mut()).for_each(|byte| *byte = !*byte);
        Ok(())
    });
    let mut kernels = KernelSet::new();
    kernels.add(kernel.expect("it is described")).expect("it is the only one");
    let config = SoftConfig { kernels, kernel_time: None, workers: 1, ..SoftConfig::default() };
    world.start(CALLER, Station::endpoint(CALLER, 1500, random(), Duration::from_secs(1)));
    world.start(DEVICE, Station::Device(Box::new(Device::start(DEVICE, config, random()))));
    world
}

/// The caller's side.
struct Call {
    conn: ConnId,
    home: Region,
    remote: (RemoteAddr, Rkey),
}

/// The next event of the caller; it is a completion.
fn completion(world: &mut World) -> Completion {
    match world.event(SOON) {
        Some((CALLER, Event::Completion(done))) if done.status == WcStatus::Success => done,
        other => panic!("no completion but {other:?}"),
    }
}

impl Call {
    fn set_up(world: &mut World) -> Self {
        let now = world.now;
        let options = ConnectOptions { keepalive: Some(KEEPALIVE), ..ConnectOptions::default() };
        let endpoint = world.endpoint(CALLER);
        let conn = endpoint.connect(now, ip(DEVICE), DEFAULT_PORT, options).expect("there is room");
        let transport = &mut endpoint.transport;
        let mut register =
            |len| transport.register(vec![0; len], Access::REMOTE_WRITE, Some(conn)).expect("there is room");
        let (home, answer) = (register(BYTES), register(MAX_MESSAGE));
        for id in [0, 1] {
            transport.post_recv(conn, RecvWr { id, slice: Some(answer.all()) }).expect("there is room");
        }
        let event = world.event(SOON);
        assert!(matches!(event, Some((CALLER, Event::Connected { .. }))), "{event:?}");
        let flags = RegionFlags::INPUT | RegionFlags::OUTPUT;
        let region = AarRegion::parameter(flags, 0, home.addr, home.rkey, home.len as u32);
        let mut message = [0; MAX_MESSAGE];
        let length = Message::Aar(&[region]).write(&mut message).expect("it fits");
        let request = SendWr { signaled: false, ..SendWr::send(0, &message[..length]) };
        world.transport(CALLER).post_send(conn, request).expect("it is connected");
        assert_eq!(completion(world).opcode, WcOpcode::Recv);
        let message = world.transport(CALLER).deregister(answer.id).and_then(|memory| memory.into_vec().ok());
        let message = message.expect("it was registered");
        let Ok(Message::A([given])) = Message::parse(&message[..20]) else { panic!("the set-up is refused") };
        Self { conn, home, remote: (given.address(), given.rkey()) }
    }

    fn start(&mut self, world: &mut World, content: &[u8]) {
        let (addr, rkey) = self.remote;
        let imm = CallImm::Start { function: FunctionCode::new(80).expect("a code"), user: [0; 3] }.to_u32();
        let write = SendWr { signaled: false, ..SendWr::write(0, content, addr, rkey) };
        let transport = world.transport(CALLER);
        transport.post_send(self.conn, write).expect("it is connected");
        transport
            .post_send(self.conn, SendWr::write_imm(1, Vec::new(), RemoteAddr(0), Rkey(0), imm))
            .expect("it is connected");
        assert_eq!(completion(world).opcode, WcOpcode::Write);
    }

    fn finish(self, world: &mut World, mut content: Vec<u8>) {
        // Its thread returns at a time of its own, in which nothing else passes.
        world.device(DEVICE).expect("it is up").wait(std::time::Instant::now() + RETURNS);
        let done = completion(world);
        assert_eq!((done.opcode, done.imm.map(ReturnCode::from_imm)), (WcOpcode::RecvWrite, Some(ReturnCode::SUCCESS)));
        content.iter_mut().for_each(|byte| *byte = !*byte);
        let memory = world.transport(CALLER).deregister(self.home.id).and_then(|memory| memory.into_vec().ok());
        assert!(memory == Some(content), "the call returned other bytes");
        let now: Instant = world.now;
        world.transport(CALLER).disconnect(now, self.conn);
        let event = world.event(SOON);
        assert!(matches!(event, Some((CALLER, Event::Disconnected { .. }))), "{event:?}");
        assert_eq!(world.event(SOON), None);
        assert_eq!((world.left(CALLER), world.left(DEVICE)), (None, None));
    }
}
