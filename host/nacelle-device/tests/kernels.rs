// SPDX-License-Identifier: Apache-2.0
//! Kernels that take long, that never return, that fail: what they cost, and whom.

mod common;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use common::caller::{Bench, Caller, Session, message};
use common::gate::Gate;
use nacelle_device::{Call, Cancellation, Failure, Kernel, SoftConfig};
use nacelle_roce::{SendWr, WcOpcode, WcStatus};
use nacelle_wire::mrsp::{ARegion, AarRegion, CallImm, FunctionCode, ReturnCode};

const LONG: FunctionCode = FunctionCode::new(100).unwrap();
const PANIC: FunctionCode = FunctionCode::new(101).unwrap();
/// Reports what it gets.
const LOOK: FunctionCode = FunctionCode::new(102).unwrap();
/// Runs until it is cancelled, and then fails.
const PATIENT: FunctionCode = FunctionCode::new(103).unwrap();
/// The immediate that starts the function that does nothing.
const START_EMPTY: u32 = 0x80 | 3;

/// What a long kernel reports: when it begins, the first byte of its region; at its end, whether it was cancelled.
struct Long {
    gate: Gate,
    begun: Receiver<u8>,
    ended: Receiver<bool>,
    looked: Receiver<Looked>,
}

/// The call as [`LOOK`] sees it: the lengths of parameters and internal regions, the user bits, the first bytes' addresses.
type Looked = (Vec<usize>, Vec<usize>, u32, Vec<usize>);

impl Drop for Long {
    fn drop(&mut self) {
        self.gate.open(1000); // so that no thread outlives its test
    }
}

fn described(code: FunctionCode, name: &str) -> String {
    let code = code.get();
    format!("[[functions]]\ncode = {code}\nname = \"{name}\"\ndoc = \"\"\nregions = []\n")
}

fn long(config: impl FnOnce(&mut SoftConfig) + Send + 'static) -> (Bench, Long) {
    let gate = Gate::default();
    let (begin, begun): (Sender<u8>, _) = channel();
    let ((end, ended), (look, looked)) = (channel(), channel());
    let there = gate.clone();
    let run = move |call: &mut Call<'_>| {
        let _ = begin.send(call.parameters[0][0]);
        there.pass();
        call.parameters[0][0] = 0xee;
        let _ = end.send(call.cancellation.is_cancelled());
        Ok(())
    };
    let look = move |call: &mut Call<'_>| {
        let lengths = |regions: &[&mut [u8]]| regions.iter().map(|region| region.len()).collect::<Vec<_>>();
        let places = call.parameters.iter().chain(&call.internal).map(|region| region.as_ptr().addr()).collect();
        let _ = look.send((lengths(&call.parameters), lengths(&call.internal), call.user, places));
        for (index, region) in call.parameters.iter_mut().chain(&mut call.internal).enumerate() {
            region.fill(index as u8 + 1);
        }
        Err(Failure::new(0x7f).unwrap())
    };
    let bench = Bench::new(move |soft| {
        soft.workers = 1;
        let functions = [(LONG, "long"), (PANIC, "panic"), (LOOK, "look"), (PATIENT, "patient")];
        let functions: String = functions.map(|(code, name)| described(code, name)).concat();
        let kernel = Kernel::from_toml(&format!("name = \"strange\"\nversion = \"1.0\"\n{functions}")).unwrap();
        let kernel = kernel.with(LONG, run).unwrap().with(PANIC, |_| panic!("as it should")).unwrap();
        let kernel = kernel.with(LOOK, look).unwrap().with(PATIENT, patient).unwrap();
        soft.kernels.add(kernel).unwrap();
        config(soft);
    });
    (bench, Long { gate, begun, ended, looked })
}

fn patient(call: &mut Call<'_>) -> Result<(), Failure> {
    call.parameters[0][0] = 0xdd;
    loop {
        call.cancellation.check()?;
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A caller with one region of 8 bytes, the first of which is `mark`.
fn prepared(bench: &Bench, number: u8, mark: u8) -> (Caller, Session, ARegion) {
    let mut caller = bench.caller(number);
    let session = caller.connect(100_000);
    let region = caller.regions(session, &[8]).unwrap()[0];
    assert_eq!(caller.write(session, &region, &[mark; 8]), WcStatus::Success);
    (caller, session, region)
}

/// The bytes that the device wrote to the caller.
fn returned(caller: &Caller, session: Session, length: usize) -> Vec<u8> {
    caller.ep.transport.region(session.here.id).unwrap().to_vec().unwrap()[..length].to_vec()
}

const WAIT: Duration = Duration::from_secs(10);

#[test]
fn a_kernel_of_an_hour_delays_no_acknowledgement_and_nobody_else() {
    let (bench, long) = long(|_| {});
    let (mut slow, session, _) = prepared(&bench, 1, 7);
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
    long.gate.open(1);
    assert_eq!(slow.result(session), 0);
    assert_eq!(returned(&slow, session, 8), [0xee, 7, 7, 7, 7, 7, 7, 7]);
    assert_eq!(long.ended.recv_timeout(WAIT), Ok(false));
}

#[test]
fn a_function_gets_regions_in_place_internal_ones_and_user_bits() {
    let (bench, long) = long(|_| {});
    let mut caller = bench.caller(1);
    let session = caller.connect(0);
    let request = |sizes: &[u32], internal: &[u32]| {
        let internal: Vec<_> = internal.iter().map(|size| AarRegion::internal(0, *size)).collect();
        let count = (sizes.len() + internal.len()) as u8;
        [&[1, count, 0, 0], &common::caller::request(session, sizes)[4..], &message(&internal)[4..]].concat()
    };
    for (sizes, internal) in [(&[0, 1, 100][..], &[50, 0][..]), (&[30_000, 7], &[]), (&[1], &[100_000])] {
        assert_eq!(caller.ask(session, &request(sizes, internal))[0], 2, "granted");
        caller.ep.transport.post_recv(session.conn, nacelle_roce::RecvWr { id: 2, slice: None }).unwrap();
        caller.immediate(session, CallImm::Start { function: LOOK, user: [0x33, 0x22, 0x11] }.to_u32());
        assert_eq!(caller.result(session), 0x7f);
        let (parameters, scratch, user, places) = long.looked.recv_timeout(WAIT).unwrap();
        let lengths = |sizes: &[u32]| sizes.iter().map(|size| *size as usize).collect::<Vec<_>>();
        assert_eq!((parameters, scratch, user), (lengths(sizes), lengths(internal), 0x11_2233));
        assert!(places.iter().all(|place| place % 64 == 0), "{places:x?}");
    }
    // It has written to the memory that the caller reads.
    let given = caller.regions(session, &[8, 2000]).unwrap();
    caller.start(session, LOOK);
    assert_eq!(caller.result(session), 0x7f);
    assert_eq!(caller.read(session, &given[0]).unwrap(), [1; 8]);
    assert_eq!(caller.read(session, &given[1]).unwrap(), [2; 2000]);
}

/// What a caller asks of its regions during its call waits for the end of the call; before it nothing is read or written.
#[test]
fn regions_are_the_functions_alone_while_it_runs() {
    let (bench, long) = long(|_| {});
    let (mut caller, session, region) = prepared(&bench, 1, 7);
    caller.start(session, LONG);
    assert_eq!(long.begun.recv_timeout(WAIT).unwrap(), 7);
    assert!(caller.received(session, WcOpcode::Write).is_ok());
    let (address, key) = (region.address(), region.rkey());
    caller.ep.transport.post_send(session.conn, SendWr::write(4, vec![9; 4], address, key)).unwrap();
    caller.idle(Duration::from_millis(100));
    assert!(bench.counter("roce.send_rnr_err") > 0, "it waits");
    caller.ep.transport.post_send(session.conn, SendWr::read(5, session.here.slice(64, 8), address, key)).unwrap();
    long.gate.open(1);
    assert_eq!(caller.result(session), 0);
    assert_eq!(returned(&caller, session, 8), [0xee, 7, 7, 7, 7, 7, 7, 7]);
    assert!(caller.received(session, WcOpcode::Write).is_ok());
    assert!(caller.received(session, WcOpcode::Read).is_ok());
    assert_eq!(returned(&caller, session, 72)[64..], [9, 9, 9, 9, 7, 7, 7, 7]);
}

#[test]
fn a_kernel_that_returns_when_it_is_cancelled_keeps_its_callers_regions() {
    let (bench, _long) = long(|config| config.kernel_time = Some(Duration::from_millis(100)));
    let (mut caller, session, region) = prepared(&bench, 1, 7);
    let started = Instant::now();
    caller.start(session, PATIENT);
    assert_eq!(caller.result(session), ReturnCode::KERNEL_TIMEOUT.get());
    assert!(started.elapsed() < Duration::from_millis(900), "not only after the second that it has then");
    assert_eq!((bench.counter("kernels.timeouts"), bench.counter("kernels.lost")), (1, 0));
    assert_eq!(caller.read(session, &region).unwrap(), [0xdd, 7, 7, 7, 7, 7, 7, 7]);
    caller.start(session, FunctionCode::INCREMENT);
    assert_eq!(caller.result(session), 0);
    assert_eq!(returned(&caller, session, 8), [0xde, 8, 8, 8, 8, 8, 8, 8]);
}

#[test]
fn a_kernel_that_does_not_end_in_time_is_lost_with_its_thread_and_its_memory() {
    let (bench, long) = long(|config| {
        config.kernel_time = Some(Duration::from_millis(200));
        config.memory_bytes = 100_008;
        config.memory_per_caller = 100_000;
    });
    let (mut slow, session, region) = prepared(&bench, 1, 7);
    slow.start(session, LONG);
    assert_eq!(slow.result(session), ReturnCode::KERNEL_TIMEOUT.get());
    assert_eq!((bench.counter("kernels.timeouts"), bench.counter("kernels.lost")), (1, 1));
    // Another thread does its work: a call too large for the network's thread succeeds.
    let mut quick = bench.caller(2);
    let other = quick.connect(100_000);
    quick.regions(other, &[100_000]).unwrap();
    quick.start(other, FunctionCode::INCREMENT);
    assert_eq!(quick.result(other), 0);
    assert_eq!(returned(&quick, other, 100_000), [1; 100_000]);
    // The caller has lost its regions, which count as its own as long as the function has them.
    for _ in 0..2 {
        slow.start(session, FunctionCode::EMPTY);
        assert_eq!(slow.result(session), ReturnCode::SOCKET_UNAVAILABLE.get());
    }
    assert_eq!(bench.counter("memory.bytes_held"), 100_008);
    assert_eq!(slow.regions(session, &[1]), Err(2), "the device has no memory left");
    quick.disconnect(other);
    bench.wait_for_counter("memory.bytes_held", 8);
    assert_eq!(slow.regions(session, &[99_993]), Err(2), "its quota counts them");
    slow.regions(session, &[99_992]).unwrap();
    slow.start(session, FunctionCode::INCREMENT);
    assert_eq!(slow.result(session), 0);
    // The late kernel reaches only what was lost.
    long.gate.open(1);
    assert_eq!(long.ended.recv_timeout(WAIT), Ok(true));
    bench.wait_for_counter("kernels.lost", 0);
    bench.wait_for_counter("memory.bytes_held", 99_992);
    assert_eq!(slow.read(session, &region), Err(WcStatus::RemAccessErr), "the old key is gone");
}

#[test]
fn memory_of_a_caller_that_closes_in_its_call_is_kept_until_the_function_returns() {
    let (bench, long) = long(|config| config.memory_bytes = 8);
    let (mut slow, session, _) = prepared(&bench, 1, 7);
    slow.start(session, LONG);
    assert_eq!(long.begun.recv_timeout(WAIT).unwrap(), 7);
    slow.disconnect(session);
    bench.wait_for_counter("rpc.callers", 0);
    assert_eq!(bench.counter("memory.bytes_held"), 8);
    let mut next = bench.caller(2);
    let other = next.connect(0);
    assert_eq!(next.regions(other, &[1]), Err(2));
    long.gate.open(1);
    assert_eq!(long.ended.recv_timeout(WAIT), Ok(true), "it is told");
    bench.wait_for_counter("memory.bytes_held", 0);
    let region = next.regions(other, &[8]).unwrap()[0];
    assert_eq!(next.read(other, &region).unwrap(), [0; 8]);
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
    // A call whose caller has closed is skipped, and its memory is free at once.
    let (mut gone, session, _) = callers.remove(2);
    gone.disconnect(session);
    bench.wait_for_counter("kernels.waiting", 3);
    bench.wait_for_counter("memory.bytes_held", 32);
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
        caller.regions(session, &[8]).unwrap();
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
    let (mut caller, session, region) = prepared(&bench, 1, 7);
    caller.start(session, PANIC);
    assert_eq!(caller.result(session), ReturnCode::SOCKET_UNAVAILABLE.get());
    assert_eq!(caller.read(session, &region).unwrap(), [7; 8]);
    long.gate.open(1);
    caller.start(session, LONG);
    assert_eq!(caller.result(session), 0);
}

#[test]
fn a_cancellation_is_seen_by_its_clones() {
    let cancellation = Cancellation::default();
    let clone = cancellation.clone();
    assert_eq!(clone.check(), Ok(()));
    cancellation.cancel();
    assert!(clone.is_cancelled());
    assert_eq!(clone.check(), Err(Failure::CANCELLED));
    assert_eq!([0x0f, 0x10, 0x7f, 0x80].map(|code| Failure::new(code).is_some()), [false, true, true, false]);
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
