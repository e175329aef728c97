// SPDX-License-Identifier: Apache-2.0
//! A network of endpoints in virtual time. Everything random comes from one seed.

use nacelle_roce::{
    Completion, ConnId, ConnectOptions, Endpoint, EndpointConfig, Event, Hop, Instant, NetworkEvent, Path, RegionId,
    WcStatus,
    wire::{MacAddr, RocePacket},
};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    net::Ipv4Addr,
    time::Duration,
};

pub const PORT: u16 = 12345;

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// True with a probability of `percent` in a hundred.
    pub fn percent(&mut self, percent: f64) -> bool {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64 * 100.0 < percent
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// What the network does to frames; chances in percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Impairment {
    pub loss: f64,
    pub duplicate: f64,
    pub corrupt: f64,
    /// A frame takes up to a hundred times as long, so that others overtake it.
    pub reorder: f64,
}

type InFlight = Reverse<(Instant, u64, usize, Vec<u8>)>;

pub struct Node {
    pub ep: Endpoint,
    pub alive: bool,
    pub events: VecDeque<Event>,
    pub network_events: VecDeque<NetworkEvent>,
}

impl Node {
    fn new(config: EndpointConfig) -> Self {
        let (events, network_events) = (VecDeque::new(), VecDeque::new());
        Self { ep: Endpoint::new(config), alive: true, events, network_events }
    }
}

/// Decides about each frame: the sender, the frame; `false` loses it.
pub type Filter = Box<dyn FnMut(usize, &[u8]) -> bool>;

pub struct Net {
    pub now: Instant,
    pub nodes: Vec<Node>,
    pub rng: Rng,
    pub impairment: Impairment,
    pub filter: Option<Filter>,
    /// Every frame put on the wire: sender and bytes.
    pub log: Option<Vec<(usize, Vec<u8>)>>,
    in_flight: BinaryHeap<InFlight>,
    sequence: u64,
    latency: Duration,
    buf: Vec<u8>,
}

pub fn mac(i: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, i as u8 + 1])
}

pub fn ip(i: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, i as u8 + 1)
}

/// The way from one node to another.
pub fn path(from: usize, to: usize) -> Path {
    Path { local: ip(from).into(), remote: ip(to).into(), hop: Hop::from(mac(to)) }
}

/// The bytes of a region.
pub fn region_bytes(ep: &Endpoint, region: RegionId) -> Vec<u8> {
    ep.transport.region(region).expect("there is such a region").to_vec().expect("it is heap memory")
}

pub fn config(i: usize, seed: u64) -> EndpointConfig {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8] = i as u8;
    EndpointConfig::new(mac(i), ip(i), bytes)
}

impl Net {
    pub fn new(seed: u64, nodes: usize) -> Self {
        Self::with(seed, (0..nodes).map(|i| config(i, seed)))
    }

    pub fn with(seed: u64, configs: impl IntoIterator<Item = EndpointConfig>) -> Self {
        let nodes = configs.into_iter().map(Node::new).collect();
        Self {
            now: Instant::from_nanos(1_000_000),
            nodes,
            rng: Rng(seed),
            impairment: Impairment::default(),
            filter: None,
            log: None,
            in_flight: BinaryHeap::new(),
            sequence: 0,
            latency: Duration::from_micros(5),
            buf: vec![0; 9100],
        }
    }

    pub fn ep(&mut self, i: usize) -> &mut Endpoint {
        &mut self.nodes[i].ep
    }

    /// Puts a frame on the wire as if `from` had sent it.
    pub fn inject(&mut self, from: usize, frame: &[u8]) {
        if let Some(log) = &mut self.log {
            log.push((from, frame.to_vec()));
        }
        if self.filter.as_mut().is_some_and(|f| !f(from, frame)) || self.rng.percent(self.impairment.loss) {
            return;
        }
        let copies = if self.rng.percent(self.impairment.duplicate) { 2 } else { 1 };
        for _ in 0..copies {
            let mut delay = self.latency.as_nanos() as u64;
            delay += self.sequence % 64; // the line is not infinitely fast
            if self.rng.percent(self.impairment.reorder) {
                delay += self.rng.next() % (100 * delay);
            }
            let mut copy = frame.to_vec();
            if self.rng.percent(self.impairment.corrupt) {
                let at = self.rng.below(copy.len());
                copy[at] ^= 1 << self.rng.below(8);
            }
            for to in (0..self.nodes.len()).filter(|&to| to != from) {
                let due = self.now + Duration::from_nanos(delay);
                self.in_flight.push(Reverse((due, self.sequence, to, copy.clone())));
            }
            self.sequence += 1;
        }
    }

    /// Everybody sends what there is to send now.
    fn transmit(&mut self) {
        for rounds in 0.. {
            assert!(rounds < 1_000_000, "a node sends for ever");
            let mut quiet = true;
            for i in 0..self.nodes.len() {
                if !self.nodes[i].alive {
                    continue;
                }
                let mut buf = std::mem::take(&mut self.buf);
                if let Some(len) = self.nodes[i].ep.poll_transmit(self.now, &mut buf) {
                    self.inject(i, &buf[..len]);
                    quiet = false;
                }
                self.buf = buf;
            }
            if quiet {
                break;
            }
        }
        for node in &mut self.nodes {
            node.events.extend(std::iter::from_fn(|| node.ep.transport.poll_event()));
            node.network_events.extend(std::iter::from_fn(|| node.ep.interface.poll_event()));
        }
    }

    /// Goes to the next moment at which something happens. Returns whether there is one before `end`.
    pub fn step(&mut self, end: Instant) -> bool {
        self.transmit();
        let arrival = self.in_flight.peek().map(|Reverse(f)| f.0);
        let timers = self.nodes.iter().filter(|n| n.alive).filter_map(|n| n.ep.next_deadline());
        let Some(next) = timers.chain(arrival).min().filter(|&t| t <= end) else {
            self.now = end;
            return false;
        };
        assert!(next >= self.now || arrival != Some(next), "time runs backwards");
        self.now = self.now.max(next);
        while let Some(Reverse((due, ..))) = self.in_flight.peek()
            && *due <= self.now
        {
            let Some(Reverse((_, _, to, frame))) = self.in_flight.pop() else { break };
            if self.nodes[to].alive {
                let _ = self.nodes[to].ep.handle(self.now, &frame);
            }
        }
        self.transmit();
        true
    }

    /// Runs for a time.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
    }

    /// Runs until `done`, for at most `time`. Returns whether it was done.
    pub fn run_until(&mut self, time: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + time;
        loop {
            self.transmit();
            if done(self) {
                return true;
            }
            if !self.step(end) {
                return done(self);
            }
        }
    }

    /// The next event of a node, within `time`.
    pub fn event(&mut self, node: usize, time: Duration) -> Option<Event> {
        self.run_until(time, |net| !net.nodes[node].events.is_empty());
        self.nodes[node].events.pop_front()
    }

    /// The next event of a node's interface, within `time`.
    pub fn network_event(&mut self, node: usize, time: Duration) -> Option<NetworkEvent> {
        self.run_until(time, |net| !net.nodes[node].network_events.is_empty());
        self.nodes[node].network_events.pop_front()
    }

    /// The next event of a node, which is a completion.
    pub fn completion(&mut self, node: usize) -> Completion {
        match self.event(node, Duration::from_secs(100)) {
            Some(Event::Completion(c)) => c,
            other => panic!("no completion but {other:?}"),
        }
    }

    /// The next event of a node, which is a successful completion.
    pub fn success(&mut self, node: usize) -> Completion {
        let c = self.completion(node);
        assert_eq!(c.status, WcStatus::Success, "{c:?}");
        c
    }

    /// Connects node `a` to node `b`: the connection at each.
    pub fn connect(&mut self, a: usize, b: usize, options: &ConnectOptions) -> (ConnId, ConnId) {
        self.connect_with(a, b, options, options, |_, _| {})
    }

    /// Connects; `before_accept` may post receives.
    pub fn connect_with(
        &mut self,
        a: usize,
        b: usize,
        active: &ConnectOptions,
        passive: &ConnectOptions,
        before_accept: impl FnOnce(&mut Endpoint, ConnId),
    ) -> (ConnId, ConnId) {
        let long = Duration::from_secs(200);
        self.ep(b).transport.listen(PORT);
        let now = self.now;
        let target = self.ep(b).interface.ip();
        let ca = self.ep(a).connect(now, target, PORT, active.clone()).unwrap();
        let Some(Event::ConnectRequest { conn: cb, .. }) = self.event(b, long) else { panic!("no request") };
        before_accept(self.ep(b), cb);
        let now = self.now;
        self.ep(b).transport.accept(now, cb, passive.clone()).unwrap();
        match self.event(a, long) {
            Some(Event::Connected { conn, .. }) => assert_eq!(conn, ca),
            other => panic!("{other:?}"),
        }
        match self.event(b, long) {
            Some(Event::Connected { conn, .. }) => assert_eq!(conn, cb),
            other => panic!("{other:?}"),
        }
        (ca, cb)
    }

    /// RoCE packets in the log from a node, as parsed by `f`.
    pub fn sent<T>(&self, node: usize, f: impl Fn(&RocePacket<'_>) -> Option<T>) -> Vec<T> {
        let log = self.log.as_ref().expect("the log is on");
        let frames = log.iter().filter(|(from, _)| *from == node);
        frames.filter_map(|(_, frame)| RocePacket::parse(frame).ok().and_then(|p| f(&p))).collect()
    }
}

/// Runs a test for many seeds; a failure names its seed.
pub fn seeds(range: std::ops::Range<u64>, test: impl Fn(u64) + std::panic::RefUnwindSafe) {
    for seed in range {
        if let Err(panic) = std::panic::catch_unwind(|| test(seed)) {
            eprintln!("failed with seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
