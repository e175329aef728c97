// SPDX-License-Identifier: Apache-2.0
//! The client against a device in the hands of the test: several threads at once, failures half way, and a device that is
//! slow, hanging or hostile.

mod peer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nacelle::{Call, Device, Error, ErrorCode, FunctionCode, Region, Step};
use nacelle_roce::{SendWr, WcStatus};
use nacelle_wire::cm::RejReason;
use nacelle_wire::mrsp::{ARegion, AarRegion, MAX_MESSAGE, Message, RegionFlags};
use nacelle_wire::{RemoteAddr, Rkey};
use peer::{IP, Manners, Outgoing, close, increment, options, reply_only, start};

/// No thread may wait longer for the lock, however busy the machine is.
const LOCK_WITHIN: Duration = Duration::from_millis(100);

const MS: fn(u64) -> Duration = Duration::from_millis;

fn increments(device: &Device, bytes: Vec<u8>) -> Call {
    device.create(FunctionCode::INCREMENT, vec![Region::inout(bytes)]).unwrap()
}

fn timed<T>(action: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = action();
    (result, started.elapsed())
}

// ---- several threads at once ----

#[test]
fn a_call_that_ends_during_a_ping_of_a_clone_has_ended() {
    let manners =
        Manners { kernel: MS(200), sends: Box::new(|frame| frame != Outgoing::EchoReply), ..Manners::default() };
    let (_peer, device) = start(manners, &options());
    let mut call = increments(&device, vec![1; 10]);
    call.invoke().unwrap();
    let (ping, took) = timed(|| device.clone().ping(1, 56, MS(700)));
    assert!(matches!(ping, Err(Error::Unreachable { ip, .. }) if ip == IP), "{ping:?}");
    assert!(took >= MS(700) && took < Duration::from_secs(3), "{took:?}");
    let (ended, took) = timed(|| call.wait());
    ended.expect("its reply came during the ping");
    assert!(took < MS(500), "{took:?}");
    assert_eq!(close(call), [[2; 10]]);
}

#[test]
fn pings_under_the_same_number_are_told_apart() {
    let (_peer, device) = start(Manners::default(), &options());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| assert!(device.ping(7, 100, Duration::from_secs(5)).is_ok())));
        }
    });
}

#[test]
fn pings_are_answered_while_calls_run_in_other_threads() {
    let (_peer, device) = start(Manners { kernel: MS(5), ..Manners::default() }, &options());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..3u8 {
            let (device, over) = (&device, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let mut call = increments(device, vec![seed; 30_000]);
                    call.invoke().unwrap();
                    call.wait().unwrap();
                    assert!(close(call)[0].iter().all(|byte| *byte == seed + 1));
                }
            });
        }
        for sequence in 0..100 {
            device.ping(sequence, 56, Duration::from_secs(5)).unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn nobody_waits_long_for_the_lock_while_others_wait_for_the_device() {
    let (_peer, device) = start(Manners { kernel: Duration::from_secs(3), ..Manners::default() }, &options());
    let mut calls: Vec<Call> = (0..4).map(|_| increments(&device, vec![0; 100_000])).collect();
    let own = calls.pop().unwrap();
    std::thread::scope(|scope| {
        for mut call in calls {
            scope.spawn(move || {
                call.invoke().unwrap();
                call.wait().unwrap();
            });
        }
        let (started, mut longest) = (Instant::now(), Duration::ZERO);
        while started.elapsed() < Duration::from_secs(2) {
            let mut bytes = [0; 8];
            let (read, took) = timed(|| own.read(0, &mut bytes));
            read.unwrap();
            longest = longest.max(took);
            std::thread::sleep(MS(2));
        }
        println!("the longest wait for the lock: {longest:?}");
        assert!(longest < LOCK_WITHIN, "{longest:?}");
    });
}

#[test]
fn nobody_waits_long_for_the_lock_while_others_move_data() {
    let (_peer, device) = start(Manners::default(), &options());
    let own = increments(&device, vec![0; 8]);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut call = increments(&device, vec![0; 2_000_000]);
                while !over.load(Ordering::Relaxed) {
                    call.invoke().unwrap();
                    call.wait().unwrap();
                }
            });
        }
        let (started, mut longest) = (Instant::now(), Duration::ZERO);
        while started.elapsed() < Duration::from_secs(2) {
            let mut bytes = [0; 8];
            let (read, took) = timed(|| own.read(0, &mut bytes));
            read.unwrap();
            longest = longest.max(took);
            std::thread::sleep(MS(2));
        }
        over.store(true, Ordering::Relaxed);
        println!("the longest wait for the lock: {longest:?}");
        assert!(longest < LOCK_WITHIN, "{longest:?}");
    });
}

#[test]
fn looking_at_a_call_never_waits_and_brings_it_to_its_end() {
    let (_peer, device) = start(Manners { kernel: MS(300), ..Manners::default() }, &options());
    let look_until_it_ends = |call: &mut Call| {
        let (started, mut longest, mut looks) = (Instant::now(), Duration::ZERO, 0u32);
        loop {
            let (ended, took) = timed(|| call.test().unwrap());
            longest = longest.max(took);
            looks += 1;
            if ended {
                return (longest, looks);
            }
            assert!(started.elapsed() < Duration::from_secs(20), "it makes no progress");
            std::thread::sleep(MS(1));
        }
    };
    // Alone.
    let mut call = increments(&device, vec![5; 1_000_000]);
    call.invoke().unwrap();
    let (longest, looks) = look_until_it_ends(&mut call);
    assert!(longest < LOCK_WITHIN && looks > 10, "{longest:?} in {looks} looks");
    // And while others wait.
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let (device, over) = (&device, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let mut call = increments(device, vec![0; 100]);
                    call.invoke().unwrap();
                    call.wait().unwrap();
                }
            });
        }
        call.invoke().unwrap();
        let (longest, looks) = look_until_it_ends(&mut call);
        over.store(true, Ordering::Relaxed);
        println!("the longest look: {longest:?}");
        assert!(longest < LOCK_WITHIN && looks > 10, "{longest:?} in {looks} looks");
    });
    assert!(close(call)[0].iter().all(|byte| *byte == 7));
}

// ---- what fails half way ----

#[test]
fn a_call_that_does_not_fit_the_send_queue_sends_nothing() {
    let mut options = options();
    options.connect.send_depth = 1;
    let (peer, device) = start(Manners::default(), &options);
    let regions = vec![Region::input(vec![1; 10]), Region::inout(vec![2; 10])];
    let mut call = device.create(FunctionCode::INCREMENT, regions).unwrap();
    for _ in 0..3 {
        let error = call.invoke().unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument, "{error}");
        assert!(error.to_string().contains('2') && error.to_string().contains("send"), "{error}");
        assert!(call.test().unwrap(), "nothing runs");
    }
    device.ping(1, 10, Duration::from_secs(2)).unwrap();
    assert_eq!(peer.inside.lock().unwrap().endpoint.counters().rx_write_requests, 0);
    assert_eq!(close(call), [[1; 10], [2; 10]]);
}

#[test]
fn a_refusal_says_what_to_do_about_its_reason() {
    let cases = [
        (RejReason::NO_QP, "wait until another caller has ended"),
        (RejReason::NO_RESOURCES, "limit for one caller"),
        (RejReason::UNSUPPORTED_REQUEST, "does not support"),
        (RejReason::INVALID_SERVICE_ID, "--port"),
        (RejReason::STALE_CONNECTION, "try again"),
        (RejReason::CONSUMER, "application"),
    ];
    for (reason, said) in cases {
        let (_peer, device) = start(Manners { refuses: Some(reason), ..Manners::default() }, &options());
        let error = device.create(FunctionCode::INCREMENT, vec![Region::output(1)]).err().unwrap();
        assert!(matches!(error, Error::Refused { reason: told, .. } if told == reason.0), "{error}");
        assert!(error.hint().contains(said), "{}: {}", reason.0, error.hint());
        let waits = error.hint().contains("another caller");
        assert_eq!(waits, reason == RejReason::NO_QP, "{}: {}", reason.0, error.hint());
    }
}

// ---- a device that is slow or does not answer ----

/// A device that never agrees to the end of a connection.
fn clinging() -> Manners {
    Manners { sends: Box::new(|frame| frame != Outgoing::Drep), ..Manners::default() }
}

#[test]
fn the_end_of_a_call_waits_for_nobody() {
    let (_peer, device) = start(clinging(), &options());
    let (result, took) = timed(|| {
        let mut call = increments(&device, vec![1; 10]);
        call.invoke().unwrap();
        call.wait().unwrap();
        close(call)
    });
    assert_eq!(result, [[2; 10]]);
    assert!(took < MS(900), "close: {took:?}");
    let call = increments(&device, vec![1; 10]);
    let ((), took) = timed(|| drop(call));
    assert!(took < MS(500), "drop: {took:?}");
}

#[test]
fn reports_tell_inputs_from_compute() {
    // Whether the device acknowledges the inputs, or its outputs alone say that it has them.
    for acknowledges in [true, false] {
        let silent = Arc::new(AtomicBool::new(false));
        let (filter, at_end) = (Arc::clone(&silent), Arc::clone(&silent));
        let manners = Manners {
            kernel: MS(400),
            sends: Box::new(move |frame| frame != Outgoing::Ack || !filter.load(Ordering::Relaxed)),
            reply: Box::new(move |endpoint, caller| {
                at_end.store(false, Ordering::Relaxed);
                increment(endpoint, caller);
            }),
            ..Manners::default()
        };
        let mut options = options();
        options.connect.ack_timeout = MS(600);
        let (_peer, device) = start(manners, &options);
        let mut call = increments(&device, vec![1; 20_000]);
        silent.store(!acknowledges, Ordering::Relaxed);
        call.invoke().unwrap();
        call.wait().unwrap();
        let wall = |step: Step| call.report().steps.iter().find(|s| s.step == step).unwrap().wall;
        assert!(wall(Step::Inputs) < MS(200), "{acknowledges}: {:?}", call.report());
        assert!(wall(Step::Compute) > MS(300), "{acknowledges}: {:?}", call.report());
        assert!(wall(Step::Outputs) < MS(400), "{acknowledges}: {:?}", call.report());
    }
}

// ---- a device that is hostile ----

/// What creating a call against this answer to the region request says.
fn answered_by(answer: impl Fn(&mut Vec<ARegion>) -> Option<Vec<u8>> + Send + 'static) -> Error {
    let (_peer, device) = start(Manners { answer: Box::new(answer), ..Manners::default() }, &options());
    let regions = vec![Region::input(vec![1; 100]), Region::internal(50), Region::output(200)];
    device.create(FunctionCode::INCREMENT, regions).err().expect("no device may answer so")
}

fn message(message: &Message<'_>) -> Vec<u8> {
    let mut bytes = vec![0; MAX_MESSAGE];
    let length = message.write(&mut bytes).unwrap();
    bytes.truncate(length);
    bytes
}

#[test]
fn an_answer_that_no_device_may_give_is_refused_with_a_reason() {
    type Change = fn(&mut Vec<ARegion>);
    let changed = |change: Change| {
        answered_by(move |given| {
            change(given);
            None
        })
    };
    let at = |address: u64, given: &ARegion| ARegion::new(RemoteAddr(address), given.rkey(), given.size());
    let sized = |size: u32, given: &ARegion| ARegion::new(given.address(), given.rkey(), size);
    let bytes = |bytes: Vec<u8>| answered_by(move |_| Some(bytes.clone()));
    let cases: [(Error, &str); 13] = [
        (changed(|given| given.clear()), "0 regions for 2"),
        (changed(|given| given.truncate(1)), "1 regions for 2"),
        (changed(|given| given.push(given[0])), "3 regions for 2"),
        (
            answered_by(move |given| {
                given[1] = sized(199, &given[1]);
                None
            }),
            "199 bytes for region 2 of 200",
        ),
        (
            answered_by(move |given| {
                given[1] = sized(u32::MAX, &given[1]);
                None
            }),
            "4294967295 bytes for region 2 of 200",
        ),
        (
            answered_by(move |given| {
                given[0] = at(u64::MAX - 98, &given[0]);
                None
            }),
            "beyond the end of the address space",
        ),
        (
            answered_by(move |given| {
                given[1] = at(given[0].address().0 + 99, &given[1]);
                None
            }),
            "overlap",
        ),
        (
            bytes(message(&Message::Aar(&[AarRegion::parameter(RegionFlags::INPUT, 0, RemoteAddr(0), Rkey(1), 1)]))),
            "one of its own",
        ),
        (bytes(vec![]), "is wrong"),
        (bytes(vec![2, 2, 0, 0]), "is wrong"),
        (bytes(vec![9, 0, 0, 0]), "is wrong"),
        (bytes(vec![0xff; MAX_MESSAGE]), "is wrong"),
        (bytes(vec![2; MAX_MESSAGE + 1]), "local length error"),
    ];
    for (error, said) in cases {
        assert_eq!(error.code(), ErrorCode::Protocol, "{said}: {error}");
        assert!(error.to_string().contains(said), "{said}: {error}");
    }
    let refused = answered_by(|_| Some(message(&Message::Err(77))));
    assert!(matches!(refused, Error::RegionsRefused { code: 77, .. }), "{refused}");
}

/// A call that is replied to like this.
fn replied_by(reply: impl FnMut(&mut nacelle_roce::Endpoint, &peer::Caller) + Send + 'static) -> Error {
    let mut options = options();
    options.timeout = Duration::from_secs(2);
    let (_peer, device) = start(Manners { reply: Box::new(reply), ..Manners::default() }, &options);
    let mut call = increments(&device, vec![1; 100]);
    call.invoke().unwrap();
    let error = call.wait().expect_err("no device may reply so");
    // Whatever it was, the caller gets its bytes back.
    assert_eq!(close(call)[0].len(), 100);
    error
}

#[test]
fn a_reply_that_no_device_may_give_is_refused_with_a_reason() {
    let message =
        replied_by(|endpoint, caller| endpoint.transport.post_send(caller.conn, SendWr::send(0, &b""[..])).unwrap());
    assert!(matches!(&message, Error::Protocol { what, .. } if what.contains("immediate")), "{message}");
    let mut signed = SendWr::send(0, &b""[..]);
    signed.op = nacelle_roce::SendOp::Send { imm: Some(0) };
    let with_immediate =
        replied_by(move |endpoint, caller| endpoint.transport.post_send(caller.conn, signed.clone()).unwrap());
    assert!(matches!(&with_immediate, Error::Protocol { .. }), "{with_immediate}");
    let longer =
        replied_by(|endpoint, caller| endpoint.transport.post_send(caller.conn, SendWr::send(0, &b"x"[..])).unwrap());
    assert_eq!(longer.code(), ErrorCode::Protocol, "{longer}");
    // Beyond the region, below it, and under a key that is none.
    type Place = fn(RemoteAddr, Rkey) -> (RemoteAddr, Rkey);
    let places: [Place; 4] = [
        |address, key| (RemoteAddr(address.0 + 1), key),
        |address, key| (RemoteAddr(address.0 - 1), key),
        |address, key| (address, Rkey(key.0 ^ 1)),
        |_, key| (RemoteAddr(u64::MAX - 50), key),
    ];
    for place in places {
        let error = replied_by(move |endpoint, caller| {
            let (address, key) = place(caller.told[0].address(), caller.told[0].rkey());
            let bytes = vec![0xee; 100];
            endpoint.transport.post_send(caller.conn, SendWr::write_imm(0, bytes, address, key, 0)).unwrap();
        });
        assert!(matches!(&error, Error::Protocol { what, .. } if what.contains("access")), "{error}");
    }
    let code = replied_by(|endpoint, caller| reply_only(endpoint, caller, 0xffff_ff00));
    assert!(matches!(code, Error::Kernel { code: 0xff_ffff, .. }), "{code}");
}

#[test]
fn a_device_reaches_the_callers_regions_only_while_a_call_runs() {
    let (peer, device) = start(Manners::default(), &options());
    let mut call = increments(&device, vec![1; 100]);
    let write = |peer: &peer::Peer| {
        let mut inside = peer.inside.lock().unwrap();
        let caller = inside.callers.values().next().unwrap();
        let (conn, told) = (caller.conn, caller.told[0]);
        let wr = SendWr::write(0, vec![0xee; 100], told.address(), told.rkey());
        inside.endpoint.transport.post_send(conn, wr).unwrap();
    };
    let mut bytes = [0; 100];
    call.invoke().unwrap();
    call.wait().unwrap();
    write(&peer);
    for _ in 0..20 {
        device.ping(1, 10, Duration::from_secs(2)).unwrap();
    }
    call.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, [2; 100], "a write after the end of the call");
    assert_eq!(peer.failures(), [WcStatus::RemAccessErr]);
    let error = call.invoke().unwrap_err();
    assert!(matches!(&error, Error::Protocol { what, .. } if what.contains("access")), "{error}");

    // Nor before the first.
    let call = increments(&device, vec![1; 100]);
    write(&peer);
    for _ in 0..20 {
        device.ping(1, 10, Duration::from_secs(2)).unwrap();
    }
    call.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, [1; 100], "a write before the first call");
}
