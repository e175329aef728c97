// SPDX-License-Identifier: Apache-2.0
//! The client library and the software device by shared memory.

mod common;

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::datagrams::Bench;
use nacelle::{Call, Device, Error, FunctionCode, LinkChoice, LinkKind, Options, Region};
use nacelle_link::{Impairments, UdpLink, wait_readable};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, SocketType,
};

fn bench() -> Bench {
    Bench::sharing(UdpLink::for_peer(Ipv4Addr::LOCALHOST.into()).unwrap())
}

fn increments(device: &Device) -> Call {
    device.create(FunctionCode::INCREMENT, vec![Region::inout(vec![1; 100])]).unwrap()
}

fn run(call: &mut Call) -> u8 {
    call.invoke().unwrap();
    call.wait().unwrap();
    let mut first = [0];
    call.read(0, &mut first).unwrap();
    first[0]
}

/// Waits until a counter of the device has a value.
fn wait_for(bench: &Bench, name: &str, value: u64) {
    let began = Instant::now();
    while bench.counter(name) != value {
        assert!(began.elapsed() < Duration::from_secs(2), "{name} is {}", bench.counter(name));
    }
}

#[test]
fn calls_by_shared_memory_of_every_size() {
    let bench = bench();
    let chosen = LinkChoice::Auto.resolve(bench.place.identity, None, Some(&bench.place.wire));
    assert_eq!((chosen.link, chosen.why.contains("shares memory")), (LinkKind::Shm, true), "{chosen:?}");
    let named = LinkChoice::Auto.resolve(bench.place.identity, Some([127, 0, 9, 1].into()), Some(&bench.place.wire));
    assert_eq!(named.link, LinkKind::Udp, "a caller with an address of its own");
    let device = bench.connect();
    assert_eq!((device.link(), device.is_by_udp()), (LinkKind::Shm, true));
    assert_eq!(device.descriptor().map(|said| (said.link, said.ip)), Some((LinkKind::Udp, bench.place.identity)));
    assert!(device.describe().unwrap().is_some());
    for length in [1, 8, 4096, 4097, 100_000, 3_000_001] {
        bench.increments(&device, length);
    }
    assert!(device.ping(1, 0, Duration::from_secs(5)).unwrap() < Duration::from_secs(5));
    assert_eq!((bench.counter("roce.discard_icrc"), bench.counter("roce.discard_malformed")), (0, 0));
    assert_eq!(bench.counter("roce.retransmitted"), 0);
}

/// Side by side, by shared memory and by UDP, and over IPv6, where a machine has one loopback address.
#[test]
fn callers_by_shared_memory_and_by_udp_side_by_side() {
    let over_v6 = UdpLink::bind(Ipv6Addr::LOCALHOST.into()).map(Bench::sharing);
    for bench in [Some(bench()), over_v6.ok()].iter().flatten() {
        let is_v4 = bench.place.identity.is_ipv4();
        std::thread::scope(|scope| {
            for length in [100, 200_000, 500_000] {
                scope.spawn(move || bench.increments(&bench.connect(), length));
            }
            if is_v4 {
                let options = Options { link: LinkChoice::Udp, ..bench.options() };
                let device = Device::connect(bench.place.identity, &options).unwrap();
                assert_eq!(device.link(), LinkKind::Udp);
                bench.increments(&device, 200_000);
            }
        });
        assert_eq!(bench.counter("rpc.calls"), if is_v4 { 8 } else { 6 });
    }
}

#[test]
fn who_names_an_address_or_finds_no_memory_uses_udp() {
    let bench = bench();
    let named = Options { source: Some((Ipv4Addr::new(127, 88, 8, 8).into(), 8)), ..bench.options() };
    assert_eq!(Device::connect(bench.place.identity, &named).unwrap().link(), LinkKind::Udp);
    // As when its device has been killed: a socket that nobody listens at.
    let socket = bench.place.wire.file(&format!("{}.shm", bench.place.name));
    std::fs::remove_file(&socket).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert_eq!(bench.connect().link(), LinkKind::Udp);
    let asked = Options { link: LinkChoice::Shm, ..bench.options() };
    assert!(matches!(Device::connect(bench.place.identity, &asked), Err(Error::Link(_))));
    let nobody: IpAddr = Ipv4Addr::new(127, 9, 9, 9).into();
    assert!(matches!(Device::connect(nobody, &asked), Err(Error::InvalidArgument { .. })));
}

#[test]
fn damage_and_loss_in_shared_memory_cost_time_but_no_byte() {
    let bench = bench();
    let impairments =
        Impairments { loss: 0.02, duplicate: 0.02, reorder: 0.02, corrupt: 0.02, seed: 5, ..Impairments::default() };
    let device = Device::connect(bench.place.identity, &Options { impairments, ..bench.options() }).unwrap();
    assert_eq!(device.link(), LinkKind::Shm);
    bench.increments(&device, 1_000_000);
    assert!(bench.counter("roce.discard_icrc") > 0, "damage was noticed");
}

/// Not when retries have run out: at once. (What a killed one leaves is in `nacelle-link/tests/shm.rs` and `kills.rs`.)
#[test]
fn a_device_that_ends_is_noticed_at_once() {
    let mut bench = bench();
    let patient = Options { timeout: Duration::from_secs(60), ..bench.options() };
    let mut call = increments(&Device::connect(bench.place.identity, &patient).unwrap());
    assert_eq!(run(&mut call), 2);
    bench.end();
    let began = Instant::now();
    let error = call.invoke().and_then(|()| call.wait()).unwrap_err();
    assert!(matches!(error, Error::Lost { .. }) && error.to_string().contains("closed the connection"), "{error}");
    assert!(began.elapsed() < Duration::from_millis(200), "{:?}", began.elapsed());
}

#[test]
fn callers_that_are_gone_hold_nothing() {
    let bench = bench();
    let kept = increments(&bench.connect());
    let program = std::env::current_exe().unwrap();
    // A process that is killed in the middle.
    let mut child = std::process::Command::new(program)
        .args(["--exact", "a_caller_that_is_killed", "--include-ignored", "--nocapture"])
        .env("NACELLE_TEST_WIRE", bench.place.wire.path())
        .env("NACELLE_TEST_DEVICE", bench.place.identity.to_string())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_for(&bench, "rpc.callers", 2);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for(&bench, "rpc.callers", 1);
    kept.close().unwrap();
}

#[test]
#[ignore = "the other process of the test above"]
fn a_caller_that_is_killed() {
    let (Ok(wire), Ok(ip)) = (std::env::var("NACELLE_TEST_WIRE"), std::env::var("NACELLE_TEST_DEVICE")) else { return };
    let options = Options { wire: Some(wire.into()), link: LinkChoice::Shm, ..Options::default() };
    let _call = increments(&Device::connect(ip.as_str(), &options).unwrap());
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_call_goes_on_with_the_next_device() {
    let mut bench = bench();
    let options = Options { reconnect: true, ..bench.options() };
    let mut call = increments(&Device::connect(bench.place.identity, &options).unwrap());
    assert_eq!(run(&mut call), 2);
    bench.end();
    assert!(call.invoke().and_then(|()| call.wait()).is_err());
    bench.begin();
    assert_eq!(run(&mut call), 3);
}

/// Nobody polls: every packet wakes its receiver.
#[test]
fn threads_that_sleep_and_event_loops_are_woken() {
    let bench = bench();
    let options = Options { spin: Some(Duration::ZERO), ..bench.options() };
    let device = Device::connect(bench.place.identity, &options).unwrap();
    let mut call = increments(&device);
    for round in 0..20 {
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(run(&mut call), round + 2);
    }
    for _ in 0..20 {
        call.invoke().unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        while !call.test().unwrap() {
            assert!(Instant::now() < deadline);
            wait_readable([device.fd().unwrap()], Some(deadline)).unwrap();
            device.progress().unwrap();
        }
    }
}

#[test]
fn a_capture_has_what_passed_by_shared_memory() {
    let bench = bench();
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("call.pcapng");
    let options = Options { capture: Some(path.clone()), ..bench.options() };
    let device = Device::connect(bench.place.identity, &options).unwrap();
    bench.increments(&device, 50_000);
    drop(device);
    let (caller, device) = bench.frames(&std::fs::read(&path).unwrap());
    assert!(caller >= 26 && device >= 26, "{caller} {device}: 13 packets each way in each of two calls");
}

/// What callers and their device share, and who passes their greetings on: the memory of the last one, and the sockets of all.
#[derive(Default)]
struct Between {
    memory: Mutex<Option<OwnedFd>>,
    sockets: Mutex<Vec<OwnedFd>>,
}

impl Between {
    /// Passes the greetings of the next caller on, and keeps the memory.
    fn pass_on(&self, listener: &OwnedFd, device: &SocketAddrUnix) -> rustix::io::Result<()> {
        let caller = rustix::net::accept(listener)?;
        let hub = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
        rustix::net::connect(&hub, device)?;
        let mut message = [0; 64];
        let (_, len) = rustix::net::recv(&caller, &mut message[..], RecvFlags::empty())?;
        if len == 0 {
            return Ok(());
        }
        rustix::net::send(&hub, &message[..len], SendFlags::NOSIGNAL)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let came = rustix::net::recvmsg(&hub, &mut [IoSliceMut::new(&mut message)], &mut control, RecvFlags::empty())?;
        let rights = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        let fds: Vec<OwnedFd> = rights.flatten().collect();
        let borrowed: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&borrowed)));
        let parts = [IoSlice::new(&message[..came.bytes])];
        rustix::net::sendmsg(&caller, &parts, &mut control, SendFlags::NOSIGNAL)?;
        *self.memory.lock().unwrap() = fds.into_iter().next();
        self.sockets.lock().unwrap().extend([caller, hub]);
        Ok(())
    }
}

/// Ends the other threads of a test, also when it fails.
struct End<'a> {
    done: &'a AtomicBool,
    /// Where one of them waits for the next caller.
    listener: &'a Path,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        let connect = || {
            let last = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
            rustix::net::connect(&last, &SocketAddrUnix::new(self.listener)?)
        };
        let _nobody_waits = connect();
    }
}

/// Headers and payloads that change all the time, also while the device takes them: whose they are loses its connections, and no byte of
/// another caller changes.
#[test]
fn packets_that_are_rewritten_all_the_time_cost_their_caller_only() {
    const RING: u64 = 1 << 20;
    let bench = bench();
    let honest = bench.connect();
    let path = bench.place.wire.file(&format!("{}.shm", bench.place.name));
    let hidden = path.with_extension("hidden");
    std::fs::rename(&path, &hidden).unwrap();
    let device = SocketAddrUnix::new(&hidden).unwrap();
    let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    rustix::net::listen(&listener, 4).unwrap();
    let (between, done, failures) = (Between::default(), AtomicBool::new(false), AtomicU64::new(0));
    let is_done = || done.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done() {
                // One that fails is a caller that has gone.
                let _ = between.pass_on(&listener, &device);
            }
        });
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(11);
            while !is_done() {
                // All but the first word of each line, so that the ring itself goes on.
                let at = 128 + 64 * random.u64(..RING / 64) + random.u64(8..60);
                if let Some(memory) = &*between.memory.lock().unwrap() {
                    rustix::io::pwrite(memory, &random.u32(..).to_ne_bytes(), at).unwrap();
                }
            }
        });
        scope.spawn(|| {
            let quick = Options { timeout: Duration::from_millis(300), link: LinkChoice::Shm, ..bench.options() };
            while !is_done() {
                let run = || -> Result<(), Error> {
                    let device = Device::connect(bench.place.identity, &quick)?;
                    let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(vec![1; 300_000])])?;
                    while !is_done() {
                        call.invoke()?;
                        call.wait()?;
                    }
                    Ok(())
                };
                failures.fetch_add(u64::from(run().is_err()), Ordering::Relaxed);
            }
        });
        let _at_the_end = End { done: &done, listener: &path };
        let began = Instant::now();
        while failures.load(Ordering::Relaxed) < 3 && began.elapsed() < Duration::from_secs(20) {
            bench.increments(&honest, 100_000);
        }
    });
    assert!(failures.load(Ordering::Relaxed) >= 3, "nothing was rewritten");
    bench.increments(&honest, 100_000);
}
