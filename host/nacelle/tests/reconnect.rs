// SPDX-License-Identifier: Apache-2.0
//! The loss of a device, and what comes after it.

mod peer;

use std::time::{Duration, Instant};

use nacelle::{Call, ConnectionOptions, Device, Error, ErrorCode, FunctionCode, Options, Region};
use peer::{Cable, IP, Manners, Peer, close, extended, serve};

const MS: fn(u64) -> Duration = Duration::from_millis;
const NEVER: Duration = Duration::from_secs(600);

/// A device that dies and comes back.
struct Mortal {
    cable: Cable,
    peer: Option<Peer>,
}

impl Mortal {
    fn die(&mut self) {
        self.peer = None;
    }

    fn live(&mut self, manners: Manners) {
        self.peer = Some(serve(Box::new(self.cable.try_clone()), manners));
    }
}

/// One that is noticed soon when it has died.
fn options(reconnect: bool) -> Options {
    let mut options = Options { reconnect, ..peer::options() };
    options.connect.keepalive = Some(MS(200));
    options.connect.ack_timeout = MS(50);
    options.connect.max_ack_timeout = MS(100);
    options
}

fn start(manners: Manners, options: &Options) -> (Mortal, Device) {
    let (near, far) = peer::cable();
    let mut mortal = Mortal { cable: far, peer: None };
    mortal.live(manners);
    let device = Device::connect_over(Box::new(near), None, IP, options).unwrap();
    (mortal, device)
}

fn kernel(takes: Duration) -> Manners {
    Manners { kernel: takes, ..Manners::default() }
}

fn run(call: &mut Call) {
    call.invoke().unwrap();
    call.wait().unwrap();
}

/// Waits for a call whose device has died.
fn assert_lost(call: &mut Call, within: Duration) {
    let began = Instant::now();
    let error = call.wait().unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    assert!(began.elapsed() < within + MS(1500), "{:?}, not {within:?}", began.elapsed());
    assert!(!call.is_running());
}

#[test]
fn a_dead_device_is_noticed_within_the_documented_time() {
    let options = options(false);
    let (mut mortal, device) = start(kernel(NEVER), &options);
    let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(vec![1])]).unwrap();
    call.invoke().unwrap();
    assert!(!call.wait_timeout(MS(500)).unwrap());
    mortal.die();
    assert_lost(&mut call, options.connect.dead_after().unwrap());
    // Without reconnection it stays lost, also when the device is back.
    mortal.live(Manners::default());
    let error = call.invoke().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Lost, "{error}");
    assert_eq!(close(call), [[1]]);
}

#[test]
fn the_next_call_after_a_loss_opens_a_new_connection() {
    let options = options(true);
    let (mut mortal, device) = start(kernel(MS(10)), &options);
    let regions = vec![Region::inout(vec![1; 5000]), Region::input_once(vec![7; 100]), Region::internal(50)];
    let mut call = device.create(FunctionCode::INCREMENT, regions).unwrap();
    run(&mut call);
    for round in 0..2 {
        mortal.die();
        call.invoke().unwrap();
        // A call under way is not repeated.
        assert_lost(&mut call, options.connect.dead_after().unwrap());
        mortal.live(kernel(MS(10)));
        run(&mut call);
        let mut bytes = [0; 8];
        call.read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [3 + round; 8]);
        // What is sent once was sent again: the device has forgotten it.
        let peer = mortal.peer.as_ref().unwrap();
        let inside = peer.inside.lock().unwrap();
        let caller = inside.callers.values().find(|caller| caller.own.len() == 2).unwrap();
        assert_eq!(inside.endpoint.transport.region(caller.own[1].id).unwrap().to_vec().unwrap(), [7; 100]);
    }
    assert_eq!(close(call)[0], [4; 5000]);
}

#[test]
fn calls_of_a_shared_connection_share_the_next_one() {
    let options = options(true);
    let (mut mortal, device) = start(extended(4, kernel(MS(10))), &options);
    let connection = device.open(&ConnectionOptions::default()).unwrap();
    let create = |seed| connection.create(FunctionCode::INCREMENT, vec![Region::inout(vec![seed; 100])]).unwrap();
    let mut calls: Vec<Call> = (0..4).map(create).collect();
    calls.iter_mut().for_each(run);
    mortal.die();
    calls.iter_mut().for_each(|call| call.invoke().unwrap());
    calls.iter_mut().for_each(|call| assert_lost(call, options.connect.dead_after().unwrap()));
    mortal.live(extended(4, kernel(MS(10))));
    calls.iter_mut().for_each(|call| call.invoke().unwrap());
    calls.iter_mut().for_each(|call| call.wait().unwrap());
    assert_eq!(connection.free_contexts(), 0);
    let connections = mortal.peer.as_ref().unwrap().inside.lock().unwrap().endpoint.transport.connections().count();
    assert_eq!(connections, 1);
    for (seed, call) in calls.into_iter().enumerate() {
        assert_eq!(close(call), [[seed as u8 + 2; 100]]);
    }
}

#[test]
fn a_device_that_stays_away_is_asked_again_by_each_call() {
    let mut options = options(true);
    options.connect.cm_timeout = MS(50);
    options.connect.cm_retries = 2;
    let (mut mortal, device) = start(kernel(MS(10)), &options);
    let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(vec![1])]).unwrap();
    mortal.die();
    call.invoke().unwrap();
    assert_lost(&mut call, options.connect.dead_after().unwrap());
    for _ in 0..2 {
        let error = call.invoke().unwrap_err();
        assert!(matches!(error.code(), ErrorCode::Timeout | ErrorCode::Unreachable), "{error}");
        assert!(!call.is_running());
    }
    mortal.live(kernel(MS(10)));
    run(&mut call);
    assert_eq!(close(call), [[2]]);
}

#[test]
fn a_call_that_was_cancelled_with_its_connection_goes_on_with_the_next() {
    let (_mortal, device) = start(kernel(MS(300)), &options(true));
    let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(vec![1])]).unwrap();
    call.invoke().unwrap();
    call.cancel().unwrap();
    assert_eq!(call.wait().unwrap_err().code(), ErrorCode::Cancelled);
    run(&mut call);
    assert_eq!(close(call), [[2]]);
}
