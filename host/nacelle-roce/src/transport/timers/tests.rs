// SPDX-License-Identifier: Apache-2.0
//! Timers of many connections: none is forgotten, whatever happens.

use crate::{
    ConnId, ConnectOptions, Endpoint, EndpointConfig, Event, Instant, RecvWr, SendWr, Transport, conn::Connection,
};
use core::time::Duration;
use proptest::prelude::*;

const CONNECTIONS: usize = 20;

/// What happens to the connections of the first endpoint, by their places.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send(usize),
    Hold(usize),
    Close(usize),
    /// The frames that both have to send now; a share of them is lost.
    Exchange(u8),
    /// Time passes up to the first timer, and by so many microseconds.
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..CONNECTIONS).prop_map(Step::Send),
        2 => (0..CONNECTIONS).prop_map(Step::Hold),
        1 => (0..CONNECTIONS).prop_map(Step::Close),
        6 => any::<u8>().prop_map(Step::Exchange),
        6 => (0..2000u64).prop_map(Step::Pass),
    ]
}

/// The first timer of all connections, found by looking at each.
fn earliest(transport: &Transport) -> Option<Instant> {
    transport.conns.iter().filter_map(Connection::next_deadline).min()
}

/// Two endpoints and the wire between them.
struct World {
    now: Instant,
    ends: [Endpoint; 2],
    conns: Vec<ConnId>,
    frame: Vec<u8>,
    random: u8,
}

impl World {
    fn new() -> Self {
        let ip = |end: u8| core::net::Ipv4Addr::new(10, 0, 0, end);
        let mut ends =
            [1, 2].map(|end| Endpoint::new(EndpointConfig::new([2, 0, 0, 0, 0, end].into(), ip(end), [end; 32])));
        ends[1].transport.listen(1);
        let options = ConnectOptions { keepalive: Some(Duration::from_millis(3)), ..ConnectOptions::default() };
        let connect = |_| ends[0].connect(Instant::ZERO, ip(2), 1, options.clone()).unwrap();
        let conns = (0..CONNECTIONS).map(connect).collect();
        let frame = vec![0; ends[0].frame_len()];
        let mut world = Self { now: Instant::ZERO, ends, conns, frame, random: 1 };
        world.exchange(0);
        world
    }

    /// Moves frames until neither side has any, and accepts connections; `loss` of 256 frames are lost.
    fn exchange(&mut self, loss: u8) {
        let mut quiet = 0;
        while quiet < 2 {
            for from in [0, 1] {
                quiet += 1;
                while let Some(len) = self.ends[from].poll_transmit(self.now, &mut self.frame) {
                    quiet = 0;
                    self.random = self.random.wrapping_mul(13).wrapping_add(41);
                    if self.random >= loss {
                        let _counted = self.ends[1 - from].handle(self.now, &self.frame[..len]);
                    }
                    self.answer();
                }
            }
        }
    }

    fn answer(&mut self) {
        let transport = &mut self.ends[1].transport;
        while let Some(event) = transport.poll_event() {
            if let Event::ConnectRequest { conn, .. } = event {
                transport.post_recv(conn, RecvWr { id: 0, slice: None }).unwrap();
                transport.accept(self.now, conn, ConnectOptions::default()).unwrap();
            }
        }
    }

    fn step(&mut self, step: Step) {
        let now = self.now;
        let first = &mut self.ends[0].transport;
        match step {
            // A receive is missing for all but the first message of a connection: the others wait and end.
            Step::Send(place) => drop(first.post_send(self.conns[place], SendWr::send(0, vec![0; 8]))),
            Step::Hold(place) => first.hold(now, self.conns[place], now + Duration::from_micros(70)),
            Step::Close(place) => first.disconnect(now, self.conns[place]),
            Step::Exchange(loss) => self.exchange(loss),
            Step::Pass(more) => {
                let next = self.ends.iter().filter_map(Endpoint::next_deadline).min();
                self.now = next.map_or(now, |at| at.max(now)) + Duration::from_micros(more);
                self.exchange(0);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// After each step the transport looks at its timers no later than the first of them expires, and once it has done that, none is
    /// left that has expired.
    #[test]
    fn none_is_forgotten(steps in proptest::collection::vec(step(), 0..120)) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
            for end in &world.ends {
                let (earliest, looked_at) = (earliest(&end.transport), end.transport.next_deadline());
                prop_assert!(earliest.is_none_or(|at| looked_at.is_some_and(|looked_at| looked_at <= at)), "{step:?}");
                if matches!(step, Step::Exchange(_) | Step::Pass(_)) {
                    prop_assert!(earliest.is_none_or(|at| at > world.now), "{step:?}: {earliest:?} at {:?}", world.now);
                }
            }
        }
    }
}
