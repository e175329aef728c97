// SPDX-License-Identifier: Apache-2.0
//! Calls against a device in the hands of the test: arguments, deadlines, ends before the end, and several at once.

mod peer;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nacelle::{
    Call, CallOptions, ChainStep, Connection, ConnectionOptions, Device, Error, ErrorCode, FunctionCode, Options,
    Region, Step,
};
use nacelle_wire::extensions::{Agreement, Extensions};
use peer::{Manners, Outgoing, Peer, close, extended, options, start};

const MS: fn(u64) -> Duration = Duration::from_millis;
const LONG: Duration = Duration::from_secs(20);

fn increments(device: &Device, bytes: Vec<u8>) -> Call {
    device.create(FunctionCode::INCREMENT, vec![Region::inout(bytes)]).unwrap()
}

fn function(code: u8) -> FunctionCode {
    FunctionCode::new(code).unwrap()
}

fn kernel(takes: Duration) -> Manners {
    Manners { kernel: takes, ..Manners::default() }
}

/// A device with contexts, and a connection to it.
fn open(contexts: u8, manners: Manners, options: &Options) -> (Peer, Device, Connection) {
    let (peer, device) = start(extended(contexts, manners), options);
    let connection = device.open(&ConnectionOptions { contexts: 16 }).unwrap();
    (peer, device, connection)
}

fn on(connection: &Connection, bytes: Vec<u8>) -> Call {
    connection.create(FunctionCode::INCREMENT, vec![Region::inout(bytes)]).unwrap()
}

fn run(call: &mut Call) {
    call.invoke().unwrap();
    call.wait().unwrap();
}

fn bytes(call: &Call) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    let length = call.read(0, &mut bytes).unwrap();
    bytes.truncate(length);
    bytes
}

// ---- arguments ----

#[test]
fn functions_and_user_bytes_arrive() {
    let (peer, device) = start(Manners::default(), &options());
    let mut call = increments(&device, vec![1]);
    run(&mut call);
    call.invoke_with([1, 2, 3]).unwrap();
    let error = call.set_function(function(9)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument, "{error}");
    call.wait().unwrap();
    call.set_function(function(9)).unwrap();
    call.invoke_with([0, 0, 0xff]).unwrap();
    call.wait().unwrap();
    let started = peer.inside.lock().unwrap().callers.values().next().unwrap().started.clone();
    assert_eq!(started, [(1, 0), (1, 0x03_0201), (9, 0xff_0000)]);
    assert_eq!(close(call), [[4]]);
}

#[test]
fn with_contexts_there_are_two_user_bytes() {
    let (peer, _device, connection) = open(2, Manners::default(), &options());
    let _first = on(&connection, vec![1]);
    let mut call = on(&connection, vec![1]);
    let error = call.invoke_with([1, 2, 3]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unsupported, "{error}");
    assert!(!call.is_running());
    call.invoke_with([1, 2, 0]).unwrap();
    call.wait().unwrap();
    let inside = peer.inside.lock().unwrap();
    let started: Vec<_> = inside.callers.iter().map(|((_, context), caller)| (*context, &caller.started)).collect();
    assert!(started.contains(&(1, &vec![(1, 0x0201)])) && started.contains(&(0, &vec![])), "{started:?}");
}

// ---- deadlines of waits and of calls ----

#[test]
fn a_wait_with_a_deadline_leaves_the_call_running() {
    let (_peer, device) = start(kernel(MS(300)), &options());
    let mut call = increments(&device, vec![1]);
    assert!(call.wait_timeout(Duration::ZERO).unwrap(), "nothing runs");
    let began = Instant::now();
    call.invoke().unwrap();
    assert!(!call.wait_timeout(Duration::ZERO).unwrap());
    assert!(!call.wait_timeout(MS(50)).unwrap());
    assert!(began.elapsed() >= MS(50) && began.elapsed() < MS(250), "{:?}", began.elapsed());
    assert!(!call.wait_until(began).unwrap() && call.is_running());
    assert!(call.wait_until(began + LONG).unwrap() && !call.is_running());
    assert!(began.elapsed() >= MS(300) && began.elapsed() < LONG / 2, "{:?}", began.elapsed());
    // Looking again and again brings a call to its end too.
    call.invoke().unwrap();
    while !call.wait_timeout(Duration::ZERO).unwrap() {
        assert!(began.elapsed() < LONG);
        std::thread::sleep(MS(1));
    }
    assert_eq!(close(call), [[3]]);
}

#[test]
fn without_progress_a_wait_ends_with_a_timeout_each_time() {
    let options = Options { timeout: MS(200), ..options() };
    let (_peer, device) = start(kernel(MS(700)), &options);
    let mut call = increments(&device, vec![1]);
    call.invoke().unwrap();
    for _ in 0..2 {
        let error = call.wait().unwrap_err();
        assert!(matches!(error, Error::Timeout { step: Step::Compute, waited, .. } if waited > MS(200)), "{error}");
        assert!(call.is_running());
    }
    assert!(call.wait_until(Instant::now() + LONG).is_err() || !call.is_running());
    while call.is_running() {
        let _timeout = call.wait();
    }
    assert_eq!(close(call), [[2]]);
}

fn deadline(deadline: Duration) -> CallOptions {
    CallOptions { deadline: Some(deadline) }
}

fn assert_late(call: &mut Call, after: Duration) {
    let began = Instant::now();
    call.invoke().unwrap();
    let error = call.wait().unwrap_err();
    assert!(matches!(error, Error::DeadlineExceeded { deadline, function: 1, .. } if deadline == after), "{error}");
    assert!(began.elapsed() >= after && began.elapsed() < LONG, "{:?}", began.elapsed());
}

#[test]
fn a_deadline_is_kept_by_this_side_if_the_device_cannot() {
    let (_peer, device) = start(kernel(Duration::from_secs(60)), &options());
    let regions = || vec![Region::inout(vec![1])];
    let mut call = device.create_with(FunctionCode::INCREMENT, regions(), &deadline(MS(100))).unwrap();
    assert_late(&mut call, MS(100));
    // The device cannot end a call: the connection has ended.
    let error = call.invoke().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Closed, "{error}");
    assert_eq!(close(call), [[1]]);

    // With contexts but no long set-ups, it is cancelled.
    let agrees = Agreement::new(Extensions::CONTEXTS, 2);
    let (_peer, device) = start(Manners { agrees, ..kernel(Duration::from_secs(60)) }, &options());
    let connection = device.open(&ConnectionOptions::default()).unwrap();
    assert!(connection.can_cancel() && !connection.has_long_set_up());
    let mut call = connection.create_with(FunctionCode::INCREMENT, regions(), &deadline(MS(100))).unwrap();
    assert_late(&mut call, MS(100));
    assert_late(&mut call, MS(100));
}

#[test]
fn a_deadline_is_kept_by_the_device_if_it_can() {
    let (peer, _device, connection) = open(2, kernel(Duration::from_secs(60)), &options());
    let regions = vec![Region::inout(vec![1])];
    let mut call = connection.create_with(FunctionCode::INCREMENT, regions, &deadline(MS(100))).unwrap();
    assert_late(&mut call, MS(100));
    assert_late(&mut call, MS(100));
    let inside = peer.inside.lock().unwrap();
    assert!(inside.callers.values().any(|caller| caller.deadline == MS(100)));
}

#[test]
fn until_its_deadline_a_kernel_may_compute_without_a_sign() {
    let options = Options { timeout: MS(100), ..options() };
    let (_peer, _device, connection) = open(1, kernel(MS(500)), &options);
    let regions = vec![Region::inout(vec![1])];
    let mut call = connection.create_with(FunctionCode::INCREMENT, regions, &deadline(LONG)).unwrap();
    run(&mut call);
    assert_eq!(close(call), [[2]]);
}

// ---- calls that are cancelled ----

#[test]
fn a_cancelled_call_ends_and_its_connection_goes_on() {
    let (_peer, _device, connection) = open(2, kernel(Duration::from_secs(60)), &options());
    let mut call = on(&connection, vec![1]);
    call.cancel().unwrap();
    for _ in 0..3 {
        let began = Instant::now();
        call.invoke().unwrap();
        call.cancel().unwrap();
        call.cancel().unwrap();
        let error = call.wait().unwrap_err();
        assert!(matches!(error, Error::Cancelled { function: 1, .. }), "{error}");
        assert!(began.elapsed() < LONG && !call.is_running());
    }
    assert_eq!(close(call), [[1]]);
    assert_eq!(connection.free_contexts(), 2);
}

#[test]
fn a_call_is_cancelled_while_another_thread_waits_for_it() {
    let (_peer, _device, connection) = open(2, kernel(Duration::from_secs(60)), &options());
    let mut call = on(&connection, vec![1]);
    let canceller = call.canceller();
    call.invoke().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(MS(100));
            canceller.cancel().unwrap();
        });
        assert_eq!(call.wait().unwrap_err().code(), ErrorCode::Cancelled);
    });
    // A handle of a call that has gone does nothing to the next one in its context.
    drop(call);
    let mut next = on(&connection, vec![1]);
    next.invoke().unwrap();
    canceller.cancel().unwrap();
    assert!(!next.wait_timeout(MS(100)).unwrap());
    next.cancel().unwrap();
    assert_eq!(next.wait().unwrap_err().code(), ErrorCode::Cancelled);
}

#[test]
fn a_cancel_that_comes_too_late_changes_nothing() {
    let (_peer, _device, connection) = open(2, Manners::default(), &options());
    let mut call = on(&connection, vec![0]);
    for _ in 0..200 {
        call.invoke().unwrap();
        call.cancel().unwrap();
        if let Err(error) = call.wait() {
            assert_eq!(error.code(), ErrorCode::Cancelled, "{error}");
        }
        // Whatever became of it, the next call is whole.
        let before = bytes(&call)[0];
        run(&mut call);
        assert_eq!(bytes(&call), [before.wrapping_add(1)]);
    }
}

#[test]
fn without_the_protocol_a_cancel_ends_the_connection_and_says_so() {
    let (_peer, device) = start(kernel(Duration::from_secs(60)), &options());
    let mut call = increments(&device, vec![1]);
    call.invoke().unwrap();
    let began = Instant::now();
    call.cancel().unwrap();
    let error = call.wait().unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
    assert!(began.elapsed() < LONG);
    let error = call.invoke().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Closed, "{error}");
    assert!(error.to_string().contains("cannot do alone"), "{error}");
    assert_eq!(close(call), [[1]]);
}

// ---- several calls at once ----

#[test]
fn calls_on_one_connection_run_side_by_side() {
    let (peer, _device, connection) = open(8, kernel(MS(300)), &options());
    assert_eq!((connection.contexts(), connection.free_contexts()), (8, 8));
    let mut calls: Vec<Call> = (0..8).map(|seed| on(&connection, vec![seed; 3000])).collect();
    let error = connection.create(FunctionCode::INCREMENT, vec![Region::output(1)]).err().unwrap();
    assert!(matches!(error, Error::NoFreeContext { contexts: 8, .. }), "{error}");
    for round in 1..=2 {
        let began = Instant::now();
        calls.iter_mut().for_each(|call| call.invoke().unwrap());
        // In any order.
        calls.iter_mut().rev().for_each(|call| call.wait().unwrap());
        assert!(began.elapsed() >= MS(300) && began.elapsed() < MS(1500), "{:?}", began.elapsed());
        for (seed, call) in calls.iter().enumerate() {
            assert_eq!(bytes(call), [seed as u8 + round; 8]);
        }
    }
    assert_eq!(peer.inside.lock().unwrap().endpoint.transport.connections().count(), 1);
    drop(calls.pop());
    assert_eq!(connection.free_contexts(), 1);
    run(&mut on(&connection, vec![0; 10]));
}

#[test]
fn calls_on_one_connection_are_waited_for_by_different_threads() {
    let (_peer, _device, connection) = open(4, kernel(MS(1)), &options());
    std::thread::scope(|scope| {
        for seed in 0..4u8 {
            let connection = &connection;
            scope.spawn(move || {
                let mut call = on(connection, vec![seed; 8]);
                (0..100).for_each(|_| run(&mut call));
                assert_eq!(bytes(&call), [seed + 100; 8]);
            });
        }
    });
    assert_eq!(connection.free_contexts(), 4);
}

#[test]
fn a_device_without_contexts_gives_one() {
    let (_peer, device) = start(Manners::default(), &options());
    let connection = device.open(&ConnectionOptions::default()).unwrap();
    assert_eq!((connection.contexts(), connection.can_cancel(), connection.has_long_set_up()), (1, false, false));
    let mut call = on(&connection, vec![1]);
    call.invoke_with([1, 2, 3]).unwrap();
    call.wait().unwrap();
    let error = connection.create(FunctionCode::INCREMENT, vec![Region::output(1)]).err().unwrap();
    assert_eq!(error.code(), ErrorCode::NoFreeContext, "{error}");
    assert_eq!(close(call), [[2]]);
    let mut again = on(&connection, vec![5]);
    run(&mut again);
    let steps = [ChainStep::new(FunctionCode::INCREMENT, 0..1)];
    drop(again);
    let chain = connection.create_chain(&steps, vec![Region::inout(vec![1])], &CallOptions::default());
    let error = chain.err().unwrap();
    assert!(matches!(error, Error::Unsupported { what: "chains", .. }), "{error}");
    assert_eq!(connection.free_contexts(), 1, "a call that could not be created gives its context back");
}

#[test]
fn a_dropped_call_is_cancelled_and_its_neighbours_go_on() {
    let (peer, _device, connection) = open(2, kernel(MS(300)), &options());
    let mut neighbour = on(&connection, vec![1]);
    for _ in 0..3 {
        neighbour.invoke().unwrap();
        let mut dropped = on(&connection, vec![1; 1000]);
        dropped.invoke().unwrap();
        drop(dropped);
        neighbour.wait().unwrap();
        assert_eq!(connection.free_contexts(), 1);
    }
    let mut closed = on(&connection, vec![1; 4]);
    closed.invoke().unwrap();
    assert_eq!(close(closed), [[1; 4]], "a cancelled call does not write");
    assert_eq!(peer.failures(), []);
    assert_eq!(bytes(&neighbour), [4]);
}

#[test]
fn a_closed_call_gets_its_memory_back_though_the_device_does_not_cancel() {
    let options = Options { timeout: MS(300), ..options() };
    let manners = Manners { cancels: false, ..kernel(Duration::from_secs(60)) };
    let (_peer, _device, connection) = open(2, manners, &options);
    let mut call = on(&connection, vec![1]);
    call.invoke().unwrap();
    let began = Instant::now();
    assert_eq!(close(call), [[1]]);
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
}

#[test]
fn closing_a_connection_ends_its_calls() {
    let (_peer, _device, connection) = open(2, kernel(Duration::from_secs(60)), &options());
    let mut call = on(&connection, vec![1]);
    call.invoke().unwrap();
    connection.close().unwrap();
    assert_eq!(call.wait().unwrap_err().code(), ErrorCode::Closed);
    assert_eq!(call.invoke().unwrap_err().code(), ErrorCode::Closed);
    assert_eq!(close(call), [[1]]);
}

// ---- chains and long regions ----

#[test]
fn a_chain_runs_its_steps_without_the_caller() {
    let (peer, _device, connection) = open(2, Manners::default(), &options());
    let regions = || vec![Region::inout(vec![1; 8]), Region::inout(vec![10; 8]), Region::internal(100)];
    let steps = [
        ChainStep { user: [1, 2, 3], ..ChainStep::new(FunctionCode::INCREMENT, 0..1) },
        ChainStep::new(FunctionCode::INCREMENT, 0..2),
        ChainStep::new(FunctionCode::INCREMENT, 0..3),
    ];
    let mut call = connection.create_chain(&steps, regions(), &CallOptions::default()).unwrap();
    assert_eq!(call.function(), None);
    let error = call.invoke_with([1, 0, 0]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument, "{error}");
    run(&mut call);
    {
        let inside = peer.inside.lock().unwrap();
        let caller = inside.callers.values().find(|caller| !caller.started.is_empty()).unwrap();
        assert_eq!(caller.started, [(0, 0)]);
        assert_eq!(caller.steps, [(0..1, 0x03_0201), (0..2, 0), (0..3, 0)]);
    }
    call.set_function(FunctionCode::INCREMENT).unwrap();
    run(&mut call);
    let memories = close(call);
    assert_eq!(memories[..2], [vec![5; 8], vec![13; 8]]);

    type Bad = (Vec<ChainStep>, Vec<Region>, &'static str);
    let step = |regions| ChainStep::new(FunctionCode::INCREMENT, regions);
    let bad: [Bad; 5] = [
        (vec![], regions(), "1 to 4 steps"),
        (vec![step(0..1); 5], regions(), "1 to 4 steps"),
        (vec![step(0..4)], regions(), "step 0"),
        (vec![step(0..1), step(1..1)], regions(), "step 1"),
        (vec![step(0..1)], vec![Region::internal(1), Region::output(1)], "internal"),
    ];
    for (steps, regions, said) in bad {
        let error = connection.create_chain(&steps, regions, &CallOptions::default()).err().unwrap();
        assert!(error.code() == ErrorCode::InvalidArgument && error.to_string().contains(said), "{error}");
    }
    assert_eq!(connection.free_contexts(), 2);
}

#[test]
fn a_long_region_needs_a_long_set_up() {
    let (_peer, device) = start(Manners::default(), &options());
    let regions = vec![Region::output(1), Region::internal(5 << 30)];
    let error = device.create(FunctionCode::INCREMENT, regions).err().unwrap();
    assert!(matches!(error, Error::Unsupported { what, .. } if what.contains("2^32")), "{error}");
}

#[test]
fn a_long_region_is_asked_for_by_a_long_set_up() {
    let (peer, _device, connection) = open(1, Manners::default(), &options());
    let regions = vec![Region::inout(vec![1]), Region::internal(5 << 30)];
    let mut call = connection.create(FunctionCode::INCREMENT, regions).unwrap();
    run(&mut call);
    let inside = peer.inside.lock().unwrap();
    assert_eq!(inside.callers.values().next().unwrap().sizes, [1, 5 << 30]);
}

// ---- callbacks ----

#[test]
fn a_callback_runs_at_the_end_of_each_call() {
    let (_peer, device) = start(kernel(MS(20)), &options());
    let mut call = increments(&device, vec![1]);
    let ends = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ends);
    call.on_finish(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    for round in 1..=3 {
        call.invoke().unwrap();
        assert_eq!(ends.load(Ordering::Relaxed), round - 1);
        call.wait().unwrap();
        assert_eq!(ends.load(Ordering::Relaxed), round);
    }
    call.invoke().unwrap();
    call.cancel().unwrap();
    assert_eq!(ends.load(Ordering::Relaxed), 4, "the connection has ended, and the call with it");
}

#[test]
fn a_callback_may_use_other_calls() {
    let (_peer, device) = start(kernel(MS(5)), &options());
    let other = std::sync::Mutex::new(increments(&device, vec![1]));
    let mut call = increments(&device, vec![1]);
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    call.on_finish(move || {
        let mut other = other.lock().unwrap();
        run(&mut other);
        counted.fetch_add(1, Ordering::Relaxed);
    });
    run(&mut call);
    run(&mut call);
    assert_eq!(ran.load(Ordering::Relaxed), 2);
}

#[test]
fn a_frame_that_is_lost_is_sent_again() {
    let dropped = AtomicUsize::new(0);
    let sends = Box::new(move |frame| frame != Outgoing::Other || dropped.fetch_add(1, Ordering::Relaxed) % 7 != 6);
    let mut options = options();
    options.connect.ack_timeout = MS(20);
    options.connect.cm_timeout = MS(50);
    let (_peer, _device, connection) = open(4, Manners { sends, ..Manners::default() }, &options);
    let mut calls: Vec<Call> = (0..4).map(|_| on(&connection, vec![0; 20_000])).collect();
    for _ in 0..5 {
        calls.iter_mut().for_each(|call| call.invoke().unwrap());
        calls.iter_mut().for_each(|call| call.wait().unwrap());
    }
    calls.iter().for_each(|call| assert_eq!(bytes(call), [5; 8]));
}
