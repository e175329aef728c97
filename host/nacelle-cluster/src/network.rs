// SPDX-License-Identifier: Apache-2.0
//! The network: a line from each node to a switch, with everything that can happen on the way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::Ipv4Addr;
use std::time::Duration;

use fastrand::Rng;
use nacelle_roce::Instant;
use nacelle_wire::MacAddr;

/// Of each line. 100 Gb/s.
const NANOS_PER_BYTE: f64 = 0.08;
/// How many times the delay a frame takes at most that others overtake.
const OVERTAKEN: u64 = 60;
const BROADCAST: [u8; 6] = [0xff; 6];
const UDP: u8 = 17;

/// What happens to frames; chances in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) delay: Duration,
    /// At most so much is added to the delay. Frames stay in order.
    pub(crate) jitter: Duration,
    pub(crate) loss: f64,
    pub(crate) duplicate: f64,
    pub(crate) corrupt: f64,
    pub(crate) reorder: f64,
}

/// Frames that were sent, and what became of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frames {
    pub(crate) sent: u64,
    pub(crate) bytes: u64,
    pub(crate) lost: u64,
    pub(crate) cut: u64,
    pub(crate) repeated: u64,
    pub(crate) overtaken: u64,
    pub(crate) corrupted: u64,
}

/// Due at a moment, in the order of their numbers: for whom, and the bytes.
type Flight = Reverse<(Instant, u64, usize, Vec<u8>)>;

/// The network of a cluster.
pub(crate) struct Network {
    pub(crate) conditions: Conditions,
    pub(crate) frames: Frames,
    rng: Rng,
    nodes: usize,
    /// How many cuts there are, by sender and receiver.
    cuts: Vec<u32>,
    /// Until when a node's line is busy.
    busy: Vec<Instant>,
    /// When the last frame in order arrives, by sender and receiver.
    last: Vec<Instant>,
    flights: BinaryHeap<Flight>,
    number: u64,
    /// Buffers for frames to come.
    spare: Vec<Vec<u8>>,
}

/// The Ethernet address of a node.
pub(crate) fn mac(node: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, node as u8 + 1])
}

/// The IP address of a node.
pub(crate) fn ip(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, node as u8 + 1)
}

impl Network {
    pub(crate) fn new(nodes: usize, conditions: Conditions, seed: u64) -> Self {
        Self {
            conditions,
            frames: Frames::default(),
            rng: Rng::with_seed(seed),
            nodes,
            cuts: vec![0; nodes * nodes],
            busy: vec![Instant::ZERO; nodes],
            last: vec![Instant::ZERO; nodes * nodes],
            flights: BinaryHeap::new(),
            number: 0,
            spare: Vec::new(),
        }
    }

    /// Cuts a direction once more, or once less.
    pub(crate) fn cut(&mut self, from: usize, to: usize, on: bool) {
        let cuts = &mut self.cuts[from * self.nodes + to];
        *cuts = if on { *cuts + 1 } else { *cuts - 1 };
    }

    /// Whether a direction is cut.
    pub(crate) fn is_cut(&self, from: usize, to: usize) -> bool {
        self.cuts[from * self.nodes + to] > 0
    }

    /// When the next frame arrives.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.flights.peek().map(|Reverse(flight)| flight.0)
    }

    /// The next frame that has arrived by now, and for whom. Give it back.
    pub(crate) fn arrived(&mut self, now: Instant) -> Option<(usize, Vec<u8>)> {
        if self.next()? > now {
            return None;
        }
        self.flights.pop().map(|Reverse((_, _, to, frame))| (to, frame))
    }

    pub(crate) fn give_back(&mut self, frame: Vec<u8>) {
        self.spare.push(frame);
    }

    /// A node sends a frame.
    pub(crate) fn send(&mut self, now: Instant, from: usize, frame: &[u8]) {
        self.frames.sent += 1;
        self.frames.bytes += frame.len() as u64;
        let time = Duration::from_nanos((frame.len() as f64 * NANOS_PER_BYTE) as u64 + 1);
        self.busy[from] = self.busy[from].max(now) + time;
        match frame.first_chunk::<6>() {
            Some(&BROADCAST) => (0..self.nodes).filter(|&to| to != from).for_each(|to| self.carry(from, to, frame)),
            Some(&address) => {
                if let Some(to) = (0..self.nodes).find(|&node| mac(node).0 == address) {
                    self.carry(from, to, frame);
                }
            }
            None => {}
        }
    }

    fn percent(&mut self, percent: f64) -> bool {
        percent > 0.0 && self.rng.f64() * 100.0 < percent
    }

    fn carry(&mut self, from: usize, to: usize, frame: &[u8]) {
        let conditions = self.conditions;
        if self.is_cut(from, to) {
            return self.frames.cut += 1;
        }
        if self.percent(conditions.loss) {
            return self.frames.lost += 1;
        }
        let mut copies = 1;
        if self.percent(conditions.duplicate) {
            self.frames.repeated += 1;
            copies = 2;
        }
        for _ in 0..copies {
            let jitter = self.rng.u64(0..=conditions.jitter.as_nanos() as u64);
            let in_order = &mut self.last[from * self.nodes + to];
            let mut due = (self.busy[from] + conditions.delay + Duration::from_nanos(jitter)).max(*in_order);
            *in_order = due;
            if self.percent(conditions.reorder) {
                self.frames.overtaken += 1;
                due = due + Duration::from_nanos(self.rng.u64(0..OVERTAKEN * conditions.delay.as_nanos() as u64));
            }
            let mut copy = self.spare.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(frame);
            if self.percent(conditions.corrupt) {
                self.frames.corrupted += 1;
                // On a line the FCS finds it, in a switch only the ICRC: so ARP, which has none, is spared.
                if frame.get(23) != Some(&UDP) {
                    continue;
                }
                let at = self.rng.usize(..copy.len());
                copy[at] ^= 1 << self.rng.u8(..8);
            }
            self.flights.push(Reverse((due, self.number, to, copy)));
            self.number += 1;
        }
    }
}
