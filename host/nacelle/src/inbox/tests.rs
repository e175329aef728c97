// SPDX-License-Identifier: Apache-2.0
//! Calls of the library over two endpoints, in simulated time.

use std::time::Duration;

use nacelle_roce::{Access, ConnId, EndpointConfig, Event, Instant, Received, RecvWr, SendWr, Sent};
use nacelle_wire::extensions::Agreement;
use nacelle_wire::{RemoteAddr, Rkey};

use super::{Inbox, Timing};
use crate::engine::Endpoint;
use crate::report::Mark;
use crate::slot::{Cause, Deadline, Outcome, Run, look_interval};
use crate::transport::Arrived;
use crate::{Options, Step};

const TIMEOUT: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A caller, a device, the wire between them, and a clock that jumps from event to event.
struct World {
    now: Instant,
    caller: Endpoint,
    device: nacelle_roce::Endpoint,
    inbox: Inbox,
    conn: ConnId,
    device_conn: ConnId,
    /// Whether the device has died.
    dead: bool,
    frame: Vec<u8>,
    mark: Mark,
}

impl World {
    fn new() -> Self {
        let ip = |end: u8| [10, 0, 0, end];
        let endpoint = |end| {
            let config = EndpointConfig::new([2, 0, 0, 0, 0, end].into(), ip(end).into(), [end; 32]);
            nacelle_roce::Endpoint::new(config)
        };
        let (mut caller, mut device): (Endpoint, _) = (endpoint(1).into(), endpoint(2));
        device.transport.listen(1);
        let options = Options::default().connect;
        let conn = caller.connect(Instant::ZERO, ip(2).into(), 1, options.clone()).unwrap();
        let mut inbox = Inbox::default();
        inbox.open(conn);
        let frame = vec![0; device.frame_len()];
        let mark = Mark { at: std::time::Instant::now(), traffic: [0; 4] };
        let now = Instant::ZERO;
        let mut world = Self { now, caller, device, inbox, conn, device_conn: conn, dead: false, frame, mark };
        world.exchange();
        let Some(Event::ConnectRequest { conn: device_conn, .. }) = world.device.transport.poll_event() else {
            panic!("no request")
        };
        world.device_conn = device_conn;
        world.device.transport.post_recv(device_conn, RecvWr { id: 0, slice: None }).unwrap();
        world.device.transport.accept(now, device_conn, options).unwrap();
        world.exchange();
        let session = world.inbox.session(conn);
        assert!(session.connected);
        session.agree(Agreement::default());
        world
    }

    /// Moves frames until neither side has any.
    fn exchange(&mut self) {
        loop {
            let now = self.now;
            if let Some(Sent::Frame(length)) = self.caller.poll_transmit_batch(now, &mut self.frame, 1.into()) {
                self.take(1);
                if !self.dead {
                    self.device.handle(now, &self.frame[..length]).unwrap();
                }
            } else if !self.dead
                && let Some(length) = self.device.poll_transmit(now, &mut self.frame)
            {
                self.caller.handle(now, Arrived::Packets(Received::Frame(&self.frame[..length])));
                self.take(1);
            } else {
                self.take(0);
                return;
            }
        }
    }

    /// Files what has happened since so many frames ago.
    fn take(&mut self, frames: u64) {
        let before = self.mark;
        self.mark.traffic[0] += frames;
        self.inbox.take(&mut self.caller, self.now, before, self.mark);
    }

    /// Starts a call.
    fn start(&mut self, deadline: Option<Deadline>) {
        let (conn, transport) = (self.conn, &mut self.caller.transport);
        let session = self.inbox.session(conn);
        session.expect_answer(transport, conn).unwrap();
        transport.post_send(conn, SendWr::write_imm(0, Vec::new(), RemoteAddr(0), Rkey(0), 0x81)).unwrap();
        let slot = session.slot(0);
        (slot.awaits, slot.sends) = (true, 1);
        let timing = Timing::begin(&self.caller, conn, self.mark);
        let run = Run::begin(self.now, self.mark, TIMEOUT, deadline);
        self.inbox.begin(&mut self.caller.transport, conn, 0, run, timing);
        self.exchange();
    }

    /// The device ends the call.
    fn reply(&mut self) {
        let conn = self.device_conn;
        let wr = SendWr::write_imm(0, Vec::new(), RemoteAddr(0), Rkey(0), 0);
        self.device.transport.post_send(conn, wr).unwrap();
        self.exchange();
    }

    /// Lets time pass until there is something to say of the call, or until `end`.
    fn pass(&mut self, end: Instant) -> Option<Outcome> {
        loop {
            if let Some(outcome) = self.inbox.outcome(self.conn, 0, self.now) {
                return Some(outcome);
            }
            let device = if self.dead { None } else { self.device.next_deadline() };
            let timers = [self.caller.next_deadline(), device, self.inbox.next_look()];
            let next = timers.into_iter().flatten().min().expect("the call is looked at").max(self.now);
            if next >= end {
                self.now = end;
                return None;
            }
            self.now = next;
            self.inbox.look(&mut self.caller, next);
            self.exchange();
        }
    }
}

#[test]
fn a_call_may_last_a_day() {
    let mut world = World::new();
    let begin = world.now;
    world.start(Some(Deadline { at: begin + DAY + HOUR, in_device: true }));
    let outcome = world.pass(begin + DAY);
    assert!(outcome.is_none(), "{outcome:?}");
    let stats = *world.caller.transport.stats(world.conn).unwrap();
    // One packet in five seconds asks whether the device is alive.
    assert!((17_000..18_000).contains(&stats.tx_requests.packets), "{stats:?}");
    assert_eq!(stats.counters.local_ack_timeout_err, 0);
    world.reply();
    let outcome = world.inbox.outcome(world.conn, 0, world.now);
    assert!(matches!(outcome, Some(Outcome::Replied(_))), "{outcome:?}");
}

#[test]
fn without_a_deadline_each_minute_without_a_sign_is_reported_and_the_call_goes_on() {
    let mut world = World::new();
    world.start(None);
    for _ in 0..24 * 60 {
        let before = world.now;
        let outcome = world.pass(world.now + HOUR);
        assert!(matches!(outcome, Some(Outcome::Stalled(Step::Compute, _))), "{outcome:?}");
        let waited = world.now - before;
        assert!(waited >= TIMEOUT && waited < TIMEOUT + Duration::from_secs(2), "{waited:?}");
    }
    world.reply();
    let outcome = world.inbox.outcome(world.conn, 0, world.now);
    assert!(matches!(outcome, Some(Outcome::Replied(_))), "{outcome:?}");
}

#[test]
fn a_device_that_dies_under_a_long_kernel_is_noticed_in_time() {
    let bound = Options::default().connect.dead_after().unwrap();
    assert_eq!(bound, Duration::from_millis(5_000 + 500 + 1_000 + 2_000 + 5 * 4_000));
    for after in [HOUR, HOUR + Duration::from_millis(2_500), HOUR + Duration::from_millis(4_999)] {
        let mut world = World::new();
        let begin = world.now;
        world.start(Some(Deadline { at: begin + DAY, in_device: true }));
        assert!(world.pass(begin + after).is_none());
        world.dead = true;
        let outcome = world.pass(begin + DAY);
        assert!(matches!(&outcome, Some(Outcome::Ended(..))), "{outcome:?}");
        let noticed = world.now - (begin + after);
        assert!(noticed <= bound && noticed > bound - Duration::from_secs(6), "{noticed:?} of {bound:?}");
    }
}

#[test]
fn a_deadline_that_this_side_keeps_ends_the_call_to_the_moment() {
    let mut world = World::new();
    let begin = world.now;
    world.start(Some(Deadline { at: begin + HOUR, in_device: false }));
    let outcome = world.pass(begin + DAY);
    assert!(matches!(outcome, Some(Outcome::Ended(..))), "{outcome:?}");
    assert_eq!(world.now - begin, HOUR);
    assert_eq!(world.inbox.finish(world.conn, 0).unwrap().cause, Some(Cause::Deadline));
}

#[test]
fn a_reply_that_is_not_taken_leaves_nothing_to_do_when_the_deadline_passes() {
    let mut world = World::new();
    let begin = world.now;
    world.start(Some(Deadline { at: begin + HOUR, in_device: false }));
    world.reply();
    world.now = begin + HOUR;
    world.inbox.look(&mut world.caller, world.now);
    assert!(world.inbox.next_look().is_none_or(|at| at > world.now), "it would be looked at without end");
    let outcome = world.inbox.outcome(world.conn, 0, world.now);
    assert!(matches!(outcome, Some(Outcome::Replied(_))), "{outcome:?}");
}

#[test]
fn calls_that_follow_each_other_are_looked_at_in_time_and_forgotten_with_their_connection() {
    let mut world = World::new();
    for _ in 0..100 {
        world.start(None);
        assert!(world.inbox.next_look().expect("it runs") <= world.now + look_interval(TIMEOUT));
        world.device.transport.post_recv(world.device_conn, RecvWr { id: 0, slice: None }).unwrap();
        world.reply();
        assert!(world.inbox.finish(world.conn, 0).is_some());
        world.now = world.now + Duration::from_millis(3);
    }
    // What was planned for the first is still there for the last, and nothing else is.
    assert_eq!(world.inbox.looks.len(), 1);
    world.start(None);
    let outcome = world.pass(world.now + HOUR);
    assert!(matches!(outcome, Some(Outcome::Stalled(Step::Compute, _))), "{outcome:?}");
    world.inbox.forget(&mut world.caller.transport, world.conn);
    assert_eq!(world.inbox.next_look(), None);
}

#[test]
fn the_first_output_is_noted_when_it_comes_and_not_with_the_reply() {
    let mut world = World::new();
    let region = world.caller.transport.register(vec![0; 8], true, world.conn).unwrap();
    world.caller.transport.set_access(region.id, Access::REMOTE_WRITE);
    world.start(None);
    let later = |mark: Mark, seconds| Mark { at: mark.at + Duration::from_secs(seconds), ..mark };
    let (output, reply) = (later(world.mark, 1), later(world.mark, 2));
    world.mark = output;
    let wr = SendWr::write(0, &b"8 bytes."[..], region.addr, region.rkey);
    world.device.transport.post_send(world.device_conn, wr).unwrap();
    world.exchange();
    world.mark = reply;
    world.reply();
    let timing = world.inbox.session(world.conn).slot(0).timing.unwrap();
    assert_eq!((timing.output.unwrap().at, timing.end.at), (output.at, reply.at));
}
