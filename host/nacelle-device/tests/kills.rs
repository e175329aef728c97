// SPDX-License-Identifier: Apache-2.0
//! Clients and devices in processes of their own, which are killed at random moments (SIGKILL), by UDP and on the wire. With
//! NACELLE_LONG=1 a thousand times.
//!
//! The processes are this test itself: the ignored test `process` runs as what the environment says.

use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nacelle::{Device, DeviceKind, Error, ErrorCode, FunctionCode, LinkChoice, Options, Region};
use nacelle_device::{DEFAULT_ADDRESS, Host, Place, SoftConfig, SoftEngine};
use nacelle_driver::DatagramMedium;
use nacelle_link::{SwitchHost, UdpLink, VirtualWire, WireDir};
use nacelle_manage::{Control, Stats};
use nacelle_roce::ConnectOptions;

/// What a process is, the device's address if it is reached by UDP, and the directory of the wire.
const ROLE: &str = "NACELLE_KILLS_ROLE";
const UDP: &str = "NACELLE_KILLS_UDP";
const WIRE: &str = "NACELLE_KILLS_WIRE";
const NAME: &str = "mortal";
/// Bytes of a client's region, at most.
const BYTES: usize = 200_000;
/// What a busy machine may add to any time.
const SLACK: Duration = Duration::from_secs(8);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// By these a dead peer is found in 1.6 s.
fn options() -> ConnectOptions {
    ConnectOptions {
        keepalive: Some(millis(300)),
        ack_timeout: millis(20),
        max_ack_timeout: millis(250),
        cm_timeout: millis(200),
        cm_retries: 5,
        ..ConnectOptions::default()
    }
}

/// A dead peer is found in this time, also one that has died in the middle of connection management.
fn bound() -> Duration {
    let cm = options().cm_timeout * (u32::from(options().cm_retries) + 1);
    options().dead_after().unwrap() + cm + SLACK
}

/// How often a long run kills; else `few`.
fn kills(few: u64) -> u64 {
    if std::env::var_os("NACELLE_LONG").is_some() { 250 } else { few }
}

// What the processes are

#[test]
#[ignore = "it is the processes of the other tests"]
fn process() {
    let variable = |name| std::env::var(name).expect("another test starts it");
    let udp = std::env::var(UDP).ok().map(|address| address.parse().unwrap());
    let wire = WireDir::open(variable(WIRE)).unwrap();
    match variable(ROLE).as_str() {
        "device" => device(&wire, udp),
        role => client(&wire, udp, role == "survivor"),
    }
}

fn device(wire: &WireDir, udp: Option<Ipv4Addr>) {
    let engine = SoftEngine::new(SoftConfig { connect: options(), ..SoftConfig::default() });
    let never = AtomicBool::new(false);
    if let Some(address) = udp {
        let link = UdpLink::bind(address.into()).unwrap();
        let place = Place::by_udp(wire, DeviceKind::Soft, Some(NAME), address.into()).unwrap();
        let mut host = Host::by_udp(engine, &place, DatagramMedium::new(Box::new(link)), 1).unwrap();
        println!("ready");
        return host.run(&never).unwrap();
    }
    let place = Place::find(wire, DeviceKind::Soft, Some(NAME), Some(DEFAULT_ADDRESS)).unwrap();
    let _switch = SwitchHost::start(wire).unwrap();
    let link = VirtualWire::join(wire, NAME).unwrap();
    let mut host = Host::new(engine, &place, Box::new(link), 1).unwrap();
    println!("ready");
    host.run(&never).unwrap();
}

/// Calls, looks at the results, and says so, until its input ends. A survivor goes on after the loss of the device.
fn client(wire: &WireDir, udp: Option<Ipv4Addr>, survivor: bool) {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    std::thread::spawn(move || {
        let _ends_with_the_other_side = std::io::stdin().read(&mut [0]);
        seen.store(true, Ordering::Relaxed);
    });
    let link = if udp.is_some() { LinkChoice::Udp } else { LinkChoice::Wire };
    let options = Options {
        link,
        wire: Some(wire.path().to_owned()),
        reconnect: survivor,
        connect: options(),
        ..Options::default()
    };
    let device = Device::connect(IpAddr::from(udp.unwrap_or(DEFAULT_ADDRESS.0)), &options).unwrap();
    while !stop.load(Ordering::Relaxed) {
        let length = fastrand::usize(1..=BYTES);
        let create = || device.create(FunctionCode::INCREMENT, vec![Region::inout(vec![0; length])]);
        let Some(mut call) = insist(survivor, &stop, create) else { return };
        for _ in 0..fastrand::u32(1..20) {
            let mut bytes: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(length).collect();
            let run = || {
                // A call that failed may have changed them in part.
                call.write(0, &bytes)?;
                call.invoke()?;
                call.wait()
            };
            let Some(()) = insist(survivor, &stop, run) else { return };
            bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
            let mut found = vec![0; length];
            call.read(0, &mut found).unwrap();
            assert!(found == bytes, "a call returned other bytes");
            println!("right");
        }
        call.close().unwrap();
    }
    assert!(device.settle(bound()).unwrap(), "the device confirms the end");
}

/// Does it. A survivor does it again if the device is lost, which it must be told in time; none if it is to end meanwhile.
fn insist<T>(survivor: bool, stop: &AtomicBool, mut what: impl FnMut() -> Result<T, Error>) -> Option<T> {
    loop {
        let began = Instant::now();
        let error = match what() {
            Err(error) if survivor => error,
            outcome => return Some(outcome.unwrap()),
        };
        assert!(began.elapsed() < bound(), "{:?}: {error}", began.elapsed());
        let expected = [ErrorCode::Lost, ErrorCode::Timeout, ErrorCode::Unreachable];
        assert!(expected.contains(&error.code()), "{:?}: {error}", error.code());
        println!("lost {error}");
        std::thread::sleep(millis(20));
        if stop.load(Ordering::Relaxed) {
            return None;
        }
    }
}

// What the tests see of them

/// A process, and what it has said.
struct Process {
    child: Child,
    role: &'static str,
    right: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
}

struct Bench {
    wire: WireDir,
    udp: Option<Ipv4Addr>,
    _temp: tempfile::TempDir,
}

impl Bench {
    /// With a device on a loopback address, or on a wire.
    fn new(udp: Option<Ipv4Addr>) -> Self {
        let temp = tempfile::Builder::new().prefix("nk").tempdir_in("/tmp").unwrap();
        let wire = WireDir::open(temp.path().join("wire")).unwrap();
        Self { wire, udp, _temp: temp }
    }

    fn start(&self, role: &'static str) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process", "--ignored", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(WIRE, self.wire.path())
            .envs(self.udp.map(|address| (UDP, address.to_string())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (right, lost) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let counted = [("right", Arc::clone(&right)), ("ready", Arc::clone(&right)), ("lost", Arc::clone(&lost))];
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let said = counted.iter().filter(|(word, _)| line.contains(word));
                said.for_each(|(_, count)| count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed));
            }
        });
        Process { child, role, right, lost }
    }

    /// A device that answers.
    fn device(&self) -> Process {
        let mut device = self.start("device");
        device.await_right(1);
        device
    }

    /// What the device has counted, its queue pairs and its regions.
    fn held(&self) -> (Stats, usize, usize) {
        let mut control = Control::open(&self.wire, NAME).unwrap();
        (control.stats().unwrap(), control.queue_pairs().unwrap().len(), control.regions().unwrap().len())
    }

    fn callers(&self) -> u64 {
        self.held().0.counters["rpc.callers"]
    }

    /// Waits until the device has no more than these callers, and what belongs to them.
    fn await_callers(&self, callers: u64) {
        let until = Instant::now() + bound();
        loop {
            let (stats, pairs, regions) = self.held();
            let (found, bytes) = (stats.counters["rpc.callers"], stats.counters["memory.bytes_held"]);
            // A caller's queue pair, its messages and its one region; the device's description.
            let most = callers as usize;
            if found <= callers && bytes <= callers * BYTES as u64 && pairs <= most && regions <= 1 + 2 * most {
                return;
            }
            assert!(Instant::now() < until, "{found} callers, {bytes} bytes, {pairs} queue pairs, {regions} regions");
            std::thread::sleep(millis(20));
        }
    }
}

impl Process {
    fn right(&self) -> u64 {
        self.right.load(Ordering::Relaxed)
    }

    /// Waits until it has done so much more that is right.
    fn await_right(&mut self, more: u64) {
        let (goal, until) = (self.right() + more, Instant::now() + bound() * 2);
        while self.right() < goal {
            self.assert_runs();
            assert!(Instant::now() < until, "the {} does not go on", self.role);
            std::thread::sleep(millis(2));
        }
    }

    fn assert_runs(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "the {} has ended by itself: {ended:?}", self.role);
    }

    fn kill(&mut self) {
        self.assert_runs();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// It ends by itself when its input ends, with success.
    fn end(mut self) -> u64 {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success(), "the {} has seen something wrong", self.role);
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _it_may_have_ended = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Clients are killed in any state; the device frees what they held, and another client sees nothing of it.
fn clients_are_killed(udp: Option<Ipv4Addr>) {
    let bench = Bench::new(udp);
    let _device = bench.device();
    let mut bystander = bench.start("bystander");
    bystander.await_right(1);
    let mut clients: Vec<Process> = (0..2).map(|_| bench.start("client")).collect();
    let mut killed = Vec::new();
    for _ in 0..kills(6) {
        std::thread::sleep(millis(fastrand::u64(..200)));
        let one = fastrand::usize(..clients.len());
        clients[one].kill();
        killed.push(Instant::now());
        clients[one] = bench.start("client");
        killed.retain(|at| at.elapsed() < bound());
        let most = 1 + clients.len() + killed.len();
        let callers = bench.callers();
        assert!(callers <= most as u64, "{callers} callers, and {most} at most that are not long dead");
        clients.iter_mut().chain([&mut bystander]).for_each(Process::assert_runs);
    }
    clients.iter_mut().for_each(|client| client.await_right(1));
    clients.iter_mut().for_each(Process::kill);
    bench.await_callers(1);
    bystander.await_right(3);
    assert_eq!(bystander.end(), 0);
    bench.await_callers(0);
}

/// The device is killed in any state, and starts again; clients get an error in time, and go on.
fn devices_are_killed(udp: Option<Ipv4Addr>) {
    let bench = Bench::new(udp);
    let mut device = bench.device();
    let mut clients: Vec<Process> = (0..3).map(|_| bench.start("survivor")).collect();
    clients.iter_mut().for_each(|client| client.await_right(1));
    for _ in 0..kills(4) {
        std::thread::sleep(millis(fastrand::u64(..300)));
        device.kill();
        std::thread::sleep(millis(fastrand::u64(..300)));
        device = bench.device();
        // One call may have been returned before; this one was begun behind it.
        clients.iter_mut().for_each(|client| client.await_right(2));
    }
    let lost: u64 = clients.into_iter().map(Process::end).sum();
    assert!(lost >= kills(4), "the loss of a device is an error of its callers' calls, {lost} times");
    bench.await_callers(0);
}

#[test]
fn clients_by_udp_are_killed() {
    clients_are_killed(Some(Ipv4Addr::new(127, 0, 0, 93)));
}

#[test]
fn clients_on_the_wire_are_killed() {
    clients_are_killed(None);
}

#[test]
fn devices_by_udp_are_killed() {
    devices_are_killed(Some(Ipv4Addr::new(127, 0, 0, 94)));
}

#[test]
fn devices_on_the_wire_are_killed() {
    devices_are_killed(None);
}
