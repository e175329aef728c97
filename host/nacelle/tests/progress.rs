// SPDX-License-Identifier: Apache-2.0
//! Who makes progress: threads that wait, a thread of the library, or the program's event loop.

mod peer;

use std::future::Future;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use nacelle::{Call, ConnectionOptions, Device, Error, ErrorCode, FunctionCode, Options, Region};
use nacelle_link::{Link, LinkError, LinkStats, wait_readable};
use peer::{Manners, extended, options, start};

const MS: fn(u64) -> Duration = Duration::from_millis;
const LONG: Duration = Duration::from_secs(20);

fn kernel(takes: Duration) -> Manners {
    Manners { kernel: takes, ..Manners::default() }
}

fn threaded() -> Options {
    Options { progress_thread: true, ..options() }
}

fn increments(device: &Device, bytes: Vec<u8>) -> Call {
    device.create(FunctionCode::INCREMENT, vec![Region::inout(bytes)]).unwrap()
}

fn first(call: &Call) -> u8 {
    let mut bytes = [0];
    call.read(0, &mut bytes).unwrap();
    bytes[0]
}

/// The smallest executor: its thread sleeps until it is woken.
struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Sleeper(std::thread::current())));
    let (mut future, began) = (pin!(future), Instant::now());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        assert!(began.elapsed() < LONG, "it was not woken");
        std::thread::park_timeout(LONG);
    }
}

/// One turn of an event loop.
fn turn(device: &Device, fd: BorrowedFd<'_>) {
    let began = Instant::now();
    wait_readable([fd], Some(began + LONG)).unwrap();
    assert!(began.elapsed() < LONG, "the descriptor was not readable");
    device.progress().unwrap();
}

// ---- futures ----

#[test]
fn a_future_is_woken_by_the_thread_that_makes_progress() {
    let (_peer, device) = start(kernel(MS(100)), &threaded());
    let mut call = increments(&device, vec![1]);
    assert!(block_on(call.finished()).is_ok(), "nothing runs");
    for round in 1..=3 {
        let began = Instant::now();
        call.invoke().unwrap();
        block_on(call.finished()).unwrap();
        assert!(began.elapsed() >= MS(100) && began.elapsed() < LONG);
        assert_eq!(first(&call), 1 + round);
    }
}

#[test]
fn a_future_resolves_to_the_error_of_its_call() {
    let (_peer, device) = start(kernel(LONG * 3), &Options { timeout: MS(200), ..threaded() });
    let mut call = increments(&device, vec![1]);
    call.invoke().unwrap();
    let error = block_on(call.finished()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Timeout, "{error}");
    assert!(call.is_running());
    let canceller = call.canceller();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(MS(50));
            canceller.cancel().unwrap();
        });
        let mut error = error;
        while error.code() == ErrorCode::Timeout {
            error = block_on(call.finished()).unwrap_err();
        }
        assert_eq!(error.code(), ErrorCode::Cancelled, "{error}");
    });
}

#[test]
fn a_future_that_is_dropped_leaves_the_call_running() {
    let (_peer, device) = start(kernel(MS(100)), &threaded());
    let mut call = increments(&device, vec![1]);
    call.invoke().unwrap();
    {
        let mut future = pin!(call.finished());
        assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert!(call.is_running());
    block_on(call.finished()).unwrap();
    assert_eq!(first(&call), 2);
}

#[test]
fn a_future_that_nothing_would_wake_says_so() {
    let (_peer, device) = start(kernel(LONG), &options());
    let mut call = increments(&device, vec![1]);
    call.invoke().unwrap();
    let error = block_on(call.finished()).unwrap_err();
    assert!(matches!(&error, Error::InvalidArgument { what } if what.contains("progress_thread")), "{error}");
    assert!(call.is_running());
}

#[test]
fn futures_of_one_connection_run_side_by_side() {
    let (_peer, device) = start(extended(4, kernel(MS(200))), &threaded());
    let connection = device.open(&ConnectionOptions::default()).unwrap();
    let create = |seed| connection.create(FunctionCode::INCREMENT, vec![Region::inout(vec![seed; 100])]).unwrap();
    let mut calls: Vec<Call> = (0..4).map(create).collect();
    let began = Instant::now();
    calls.iter_mut().for_each(|call| call.invoke().unwrap());
    for call in &mut calls {
        block_on(call.finished()).unwrap();
    }
    assert!(began.elapsed() < MS(700), "{:?}", began.elapsed());
}

// ---- a thread that makes progress ----

#[test]
fn a_thread_makes_progress_while_the_program_does_something_else() {
    let (_peer, device) = start(kernel(MS(50)), &threaded());
    let mut call = increments(&device, vec![1; 100_000]);
    let ended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ended);
    call.on_finish(move || seen.store(true, Ordering::Relaxed));
    call.invoke().unwrap();
    let began = Instant::now();
    while !ended.load(Ordering::Relaxed) {
        assert!(began.elapsed() < LONG);
        std::thread::sleep(MS(1));
    }
    assert!(call.test().unwrap());
    assert_eq!(first(&call), 2);
    // And waits work beside it.
    for _ in 0..50 {
        call.invoke().unwrap();
        call.wait().unwrap();
    }
}

/// Threads of this process that have this name.
fn threads(name: &str) -> usize {
    let named = |task: &std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|text| text.trim() == name)
    };
    std::fs::read_dir("/proc/self/task").unwrap().flatten().filter(named).count()
}

#[test]
fn the_thread_ends_with_the_last_clone_and_the_last_call() {
    let weak = {
        let (_peer, device) = start(Manners::default(), &threaded());
        let marker = Arc::new(());
        let mut call = increments(&device, vec![1]);
        let (weak, clone) = (Arc::downgrade(&marker), device.clone());
        call.on_finish(move || drop(Arc::clone(&marker)));
        drop(device);
        call.invoke().unwrap();
        call.wait().unwrap();
        drop(clone);
        assert!(weak.upgrade().is_some());
        assert!(threads("nacelle-progres") >= 1);
        weak
    };
    // Dropping the last of them waits for the thread, which had the state.
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_callback_may_drop_the_last_device() {
    let (_peer, device) = start(kernel(MS(20)), &threaded());
    let mut call = increments(&device, vec![1]);
    let kept = std::sync::Mutex::new(Some(device));
    let dropped = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&dropped);
    let held = Arc::new(std::sync::Mutex::new(None::<Call>));
    let taken = Arc::clone(&held);
    call.on_finish(move || {
        drop(kept.lock().unwrap().take());
        let began = Instant::now();
        while began.elapsed() < LONG && taken.lock().unwrap().take().is_none() {}
        seen.store(true, Ordering::Relaxed);
    });
    call.invoke().unwrap();
    *held.lock().unwrap() = Some(call);
    let began = Instant::now();
    while !dropped.load(Ordering::Relaxed) && began.elapsed() < LONG {
        std::thread::sleep(MS(1));
    }
    assert!(dropped.load(Ordering::Relaxed));
}

// ---- an event loop ----

#[test]
fn an_event_loop_sees_calls_to_their_end() {
    let (_peer, device) = start(extended(4, kernel(MS(50))), &options());
    let connection = device.open(&ConnectionOptions::default()).unwrap();
    let create = |seed| connection.create(FunctionCode::INCREMENT, vec![Region::inout(vec![seed; 50_000])]).unwrap();
    let mut calls: Vec<Call> = (0..4).map(create).collect();
    let fd = device.fd().unwrap();
    for round in 1..=3 {
        calls.iter_mut().for_each(|call| call.invoke().unwrap());
        let mut turns = 0;
        while !calls.iter_mut().all(|call| call.test().unwrap()) {
            turn(&device, fd);
            turns += 1;
            assert!(turns < 5_000, "the descriptor is readable though there is nothing to do");
        }
        (0..4).for_each(|seed| assert_eq!(first(&calls[usize::from(seed)]), seed + round));
    }
}

#[test]
fn an_event_loop_wakes_futures_and_runs_callbacks() {
    let (_peer, device) = start(kernel(MS(50)), &options());
    let (mut one, mut other) = (increments(&device, vec![1]), increments(&device, vec![1]));
    let ends = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ends);
    other.on_finish(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let fd = device.fd().unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                wait_readable([fd], Some(Instant::now() + MS(20))).unwrap();
                device.progress().unwrap();
            }
        });
        one.invoke().unwrap();
        other.invoke().unwrap();
        block_on(one.finished()).unwrap();
        let began = Instant::now();
        while ends.load(Ordering::Relaxed) == 0 && began.elapsed() < LONG {
            std::thread::sleep(MS(1));
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(ends.load(Ordering::Relaxed), 1);
    assert!(other.test().unwrap());
}

#[test]
fn the_descriptor_is_readable_when_a_timer_expires() {
    let options = Options { timeout: MS(200), ..options() };
    let (_peer, device) = start(kernel(LONG * 3), &options);
    let mut call = increments(&device, vec![1]);
    let fd = device.fd().unwrap();
    call.invoke().unwrap();
    let began = Instant::now();
    let error = loop {
        match call.test() {
            Ok(ended) => assert!(!ended && began.elapsed() < LONG),
            Err(error) => break error,
        }
        turn(&device, fd);
    };
    assert_eq!(error.code(), ErrorCode::Timeout, "{error}");
    assert!(began.elapsed() < MS(2000), "{:?}", began.elapsed());
}

#[test]
fn the_descriptor_tells_of_calls_that_another_thread_saw_the_end_of() {
    let (_peer, device) = start(kernel(MS(50)), &options());
    let (mut polled, mut waited) = (increments(&device, vec![1]), increments(&device, vec![1]));
    let fd = device.fd().unwrap();
    // What setting up has left is taken.
    device.progress().unwrap();
    polled.invoke().unwrap();
    waited.invoke().unwrap();
    waited.wait().unwrap();
    std::thread::sleep(MS(50));
    device.ping(1, 8, LONG).unwrap();
    let began = Instant::now();
    while !polled.test().unwrap() {
        turn(&device, fd);
    }
    assert!(began.elapsed() < MS(2000));
}

// ---- spinning ----

#[test]
fn a_wait_that_spins_ends_as_one_that_sleeps() {
    for spin in [Duration::ZERO, MS(1), LONG] {
        let (_peer, device) = start(kernel(MS(5)), &Options { spin: Some(spin), ..options() });
        let mut call = increments(&device, vec![1]);
        for _ in 0..5 {
            call.invoke().unwrap();
            call.wait().unwrap();
        }
        call.invoke().unwrap();
        assert!(!call.wait_timeout(MS(1)).unwrap());
        call.wait().unwrap();
        assert_eq!(first(&call), 7);
    }
}

/// A cable that is torn when the test says so.
struct Torn {
    cable: peer::Cable,
    torn: Arc<AtomicBool>,
}

impl Torn {
    fn check(&self) -> Result<(), LinkError> {
        let source = || std::io::Error::other("torn");
        if self.torn.load(Ordering::Relaxed) {
            Err(LinkError::Io { what: "send".into(), source: source() })
        } else {
            Ok(())
        }
    }
}

impl Link for Torn {
    fn send(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        self.check()?;
        self.cable.send(frame)
    }

    fn recv(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<Option<usize>, LinkError> {
        self.check()?;
        self.cable.recv(buffer, deadline)
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.cable.poll_fd()
    }

    fn stats(&self) -> LinkStats {
        LinkStats::default()
    }
}

#[test]
fn a_link_that_breaks_ends_every_call() {
    let (near, far) = peer::cable();
    let torn = Arc::new(AtomicBool::new(false));
    let _peer = peer::serve(Box::new(far), kernel(LONG * 3));
    let link = Box::new(Torn { cable: near, torn: Arc::clone(&torn) });
    let device = Device::connect_over(link, None, peer::IP, &threaded()).unwrap();
    let (mut awaited, mut waited) = (increments(&device, vec![1]), increments(&device, vec![1]));
    awaited.invoke().unwrap();
    waited.invoke().unwrap();
    torn.store(true, Ordering::Relaxed);
    // A frame wakes the thread.
    let _broken = device.ping(1, 8, MS(100));
    let error = block_on(awaited.finished()).unwrap_err();
    assert!(matches!(error.code(), ErrorCode::Lost | ErrorCode::Link), "{error}");
    let error = waited.wait().unwrap_err();
    assert!(matches!(error.code(), ErrorCode::Lost | ErrorCode::Link), "{error}");
}
