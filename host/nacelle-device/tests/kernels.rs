// SPDX-License-Identifier: Apache-2.0
//! Kernels that take long, that never return, that fail: what they cost, and whom.

mod common;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use common::caller::{Bench, Caller, Session};
use nacelle_device::{Kernel, Memory, SoftConfig, Stop};
use nacelle_roce::{WcOpcode, WcStatus};
use nacelle_wire::mrsp::{ARegion, FunctionCode, ReturnCode};

const LONG: FunctionCode = FunctionCode::new(100).unwrap();
/// The immediate that starts the function that does nothing.
const START_EMPTY: u32 = 0x80 | 3;
const PANIC: FunctionCode = FunctionCode::new(101).unwrap();

/// A kernel that runs until the test ends it.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<usize>, Condvar)>);

impl Gate {
    /// Lets `count` kernels go on.
    fn open(&self, count: usize) {
        *self.0.0.lock().unwrap() += count;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let mut open = self.0.1.wait_while(self.0.0.lock().unwrap(), |open| *open == 0).unwrap();
        *open -= 1;
    }
}

/// What a long kernel reports: when it begins, the first byte of its region; at its end, the outcome of its last write.
struct Long {
    gate: Gate,
    begun: Receiver<u8>,
    ended: Receiver<Result<(), Stop>>,
}

impl Drop for Long {
    fn drop(&mut self) {
        self.gate.open(1000); // so that no thread outlives its test
    }
}

fn long(config: impl FnOnce(&mut SoftConfig) + Send + 'static) -> (Bench, Long) {
    let gate = Gate::default();
    let (begin, begun): (Sender<u8>, _) = channel();
    let (end, ended) = channel();
    let there = gate.clone();
    let run = move |memory: &mut dyn Memory| {
        let mut first = [0];
        memory.read(0, 0, &mut first)?;
        let _ = begin.send(first[0]);
        there.pass();
        let outcome = memory.write(0, 0, &[0xee]);
        let _ = end.send(outcome);
        outcome
    };
    let bench = Bench::new(move |soft| {
        soft.workers = 1;
        soft.kernels.push(Kernel::new(LONG, "long", run));
        soft.kernels.push(Kernel::new(PANIC, "panic", |_| panic!("as it should")));
        config(soft);
    });
    (bench, Long { gate, begun, ended })
}

/// A caller with one region of 8 bytes, the first of which is `mark`.
fn prepared(bench: &Bench, number: u8, mark: u8) -> (Caller, Session, ARegion) {
    let mut caller = bench.caller(number);
    let session = caller.connect(0);
    let region = caller.regions(session, &[8]).unwrap()[0];
    assert_eq!(caller.write(session, &region, &[mark; 8]), WcStatus::Success);
    (caller, session, region)
}

const WAIT: Duration = Duration::from_secs(10);

#[test]
fn a_kernel_of_an_hour_delays_no_acknowledgement_and_nobody_else() {
    let (bench, long) = long(|_| {});
    let (mut slow, session, region) = prepared(&bench, 1, 7);
    let (mut quick, other, _) = prepared(&bench, 2, 8);
    let started = Instant::now();
    slow.start(session, LONG);
    assert!(slow.received(session, WcOpcode::Write).is_ok(), "its start is acknowledged");
    assert!(started.elapsed() < Duration::from_millis(400), "{:?}", started.elapsed());
    assert_eq!(long.begun.recv_timeout(WAIT).unwrap(), 7);
    for _ in 0..50 {
        let started = Instant::now();
        quick.start(other, FunctionCode::INCREMENT);
        assert_eq!(quick.result(other), 0);
        assert!(started.elapsed() < Duration::from_millis(400), "{:?}", started.elapsed());
    }
    // Its caller reaches its own memory meanwhile, as it does on the RTL.
    assert_eq!(slow.read(session, &region).unwrap(), [7; 8]);
    assert_eq!(slow.write(session, &region, &[9; 8]), WcStatus::Success);
    long.gate.open(1);
    assert_eq!(slow.result(session), 0);
    assert_eq!(slow.ep.transport.region(session.here.id).unwrap().to_vec().unwrap()[..8], [0xee, 9, 9, 9, 9, 9, 9, 9]);
}

#[test]
fn a_kernel_that_does_not_end_in_time_loses_its_memory_and_its_thread() {
    let (bench, long) = long(|config| config.kernel_time = Some(Duration::from_millis(200)));
    let (mut slow, session, region) = prepared(&bench, 1, 7);
    slow.start(session, LONG);
    assert_eq!(slow.result(session), ReturnCode::KERNEL_TIMEOUT.get());
    assert_eq!((bench.counter("kernels.timeouts"), bench.counter("kernels.lost")), (1, 1));
    // Another thread does its work: a call too large for the network's thread succeeds.
    let (mut quick, other, _) = prepared(&bench, 2, 8);
    quick.regions(other, &[100_000]).unwrap();
    let other = Session {
        here: quick.ep.transport.register(vec![0; 100_000], nacelle_roce::Access::REMOTE_WRITE, other.conn).unwrap(),
        ..other
    };
    quick.regions(other, &[90_000]).unwrap();
    quick.start(other, FunctionCode::INCREMENT);
    assert_eq!(quick.result(other), 0);
    assert_eq!(quick.ep.transport.region(other.here.id).unwrap().to_vec().unwrap()[..90_000], [1; 90_000]);
    // The caller goes on with what it had, and the late kernel changes none of it.
    slow.start(session, FunctionCode::INCREMENT);
    assert_eq!(slow.result(session), 0);
    long.gate.open(1);
    assert_eq!(long.ended.recv_timeout(WAIT).unwrap(), Err(Stop::Ended));
    assert_eq!(slow.read(session, &region).unwrap(), [8; 8]);
    bench.wait_for_counter("kernels.lost", 0);
}

#[test]
fn memory_of_a_caller_that_closes_in_its_call_is_the_next_ones_alone() {
    let (bench, long) = long(|config| config.memory_bytes = 8);
    let (mut slow, session, _) = prepared(&bench, 1, 7);
    slow.start(session, LONG);
    assert_eq!(long.begun.recv_timeout(WAIT).unwrap(), 7);
    slow.disconnect(session);
    bench.wait_for_counter("memory.bytes_held", 0);
    let (mut next, other, region) = prepared(&bench, 2, 1);
    long.gate.open(1);
    assert_eq!(long.ended.recv_timeout(WAIT).unwrap(), Err(Stop::Ended));
    assert_eq!(next.read(other, &region).unwrap(), [1; 8]);
    bench.wait_for_counter("rpc.calls_failed", 1);
}

#[test]
fn calls_wait_in_the_order_in_which_they_came() {
    let (bench, long) = long(|_| {});
    let mut callers: Vec<_> = (1..=5).map(|number| prepared(&bench, number, number)).collect();
    for (index, (caller, session, _)) in callers.iter_mut().enumerate() {
        caller.start(*session, LONG);
        assert!(caller.received(*session, WcOpcode::Write).is_ok());
        bench.wait_for_counter("kernels.waiting", index.max(1) as u64 - u64::from(index == 0));
    }
    // A call whose caller has closed is skipped.
    let (mut gone, session, _) = callers.remove(2);
    gone.disconnect(session);
    bench.wait_for_counter("kernels.waiting", 3);
    long.gate.open(4);
    for (caller, session, _) in &mut callers {
        assert_eq!(caller.result(*session), 0);
    }
    assert_eq!(long.begun.try_iter().collect::<Vec<_>>(), [1, 2, 4, 5]);
}

#[test]
fn lost_threads_are_replaced_up_to_a_bound() {
    let (bench, long) = long(|config| {
        config.spare_workers = 1;
        config.kernel_time = Some(Duration::from_millis(100));
    });
    let (mut caller, session, _) = prepared(&bench, 1, 7);
    for _ in 0..2 {
        caller.start(session, LONG);
        assert_eq!(caller.result(session), ReturnCode::KERNEL_TIMEOUT.get());
    }
    caller.start(session, LONG);
    assert_eq!(caller.result(session), ReturnCode::SOCKET_UNAVAILABLE.get(), "no thread is left");
    long.gate.open(2);
    bench.wait_for_counter("kernels.lost", 0);
    long.gate.open(1);
    caller.start(session, LONG);
    assert_eq!(caller.result(session), 0);
}

#[test]
fn a_kernel_that_panics_fails_its_call_alone() {
    let (bench, long) = long(|_| {});
    let (mut caller, session, _) = prepared(&bench, 1, 7);
    caller.start(session, PANIC);
    assert_eq!(caller.result(session), ReturnCode::SOCKET_UNAVAILABLE.get());
    long.gate.open(1);
    caller.start(session, LONG);
    assert_eq!(caller.result(session), 0);
}

#[test]
fn starts_out_of_turn_are_ignored() {
    let (bench, long) = long(|_| {});
    let mut caller = bench.caller(1);
    let session = caller.connect(0);
    caller.immediate(session, START_EMPTY);
    bench.wait_for_counter("rpc.immediates_ignored", 1); // nothing is set up
    caller.regions(session, &[8]).unwrap();
    caller.immediate(session, 3);
    bench.wait_for_counter("rpc.immediates_ignored", 2); // no start
    caller.start(session, LONG);
    assert_eq!(long.begun.recv_timeout(WAIT).unwrap(), 0);
    for ignored in 3..6 {
        caller.immediate(session, START_EMPTY);
        bench.wait_for_counter("rpc.immediates_ignored", ignored);
    }
    assert_eq!(bench.counter("rpc.calls"), 1);
    caller.immediate(session, 0);
    bench.wait_for_counter("rpc.immediates_ignored", 6); // nor is a call given up that runs
    long.gate.open(1);
    assert_eq!(caller.result(session), 0);
    caller.immediate(session, 0);
    bench.wait_for_counter("rpc.calls_failed", 1);
}
