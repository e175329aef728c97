// SPDX-License-Identifier: Apache-2.0
//! A run: connections come and go while things break; at the end all is whole again, and nothing may be left.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use fastrand::Rng;
use nacelle_roce::{ConnId, ConnectFailure, DisconnectReason, Event, Instant};

use crate::caller::Caller;
use crate::network::Network;
use crate::node::{Device, Station};
use crate::pair::Pair;
use crate::plan::{PORT, Plan};
use crate::report::Report;
use crate::session::{Around, Body, Cause, Session, Watch};
use crate::tasks::{Task, Tasks};
use crate::world::World;

/// Steps of a run; more are one without end.
const MAX_STEPS: u64 = 2_000_000_000;

/// A cluster while it runs.
struct Cluster<'a> {
    plan: &'a Plan,
    world: World,
    rng: Rng,
    tasks: Tasks,
    report: Report,
    sessions: BTreeMap<u64, Session>,
    owners: HashMap<(usize, ConnId), (u64, usize)>,
    /// Requests for connections that were refused.
    refused: HashSet<(usize, ConnId)>,
    /// Cuts that are longer than retries bridge, by sender and receiver.
    long: HashMap<(usize, usize), u32>,
    /// When each way was last mended.
    mended: HashMap<(usize, usize), Instant>,
    /// When callers of each device ended, of the last time in which it must have freed them.
    left: HashMap<usize, VecDeque<Instant>>,
    serial: u64,
    /// Things break and connections are opened until then.
    until: Instant,
}

/// Runs what a plan says.
///
/// # Panics
/// If anything is not as it must be; the message says what.
#[must_use]
pub fn run(plan: &Plan) -> Report {
    let mut rng = Rng::with_seed(plan.seed);
    let network = Network::new(plan.nodes, plan.conditions(&mut rng), rng.u64(..));
    let world = World::new(network, plan.nodes);
    let until = world.now + plan.time;
    let mut cluster = Cluster {
        plan,
        world,
        rng,
        tasks: Tasks::default(),
        report: Report::default(),
        sessions: BTreeMap::new(),
        owners: HashMap::new(),
        refused: HashSet::new(),
        long: HashMap::new(),
        mended: HashMap::new(),
        left: HashMap::new(),
        serial: 0,
        until,
    };
    let begin = cluster.world.now;
    cluster.begin();
    cluster.go(|cluster| cluster.world.now >= cluster.until);
    cluster.finish();
    let mut report = cluster.report;
    report.count(cluster.world.network.frames);
    report.time = cluster.world.now - begin;
    report
}

impl Cluster<'_> {
    fn begin(&mut self) {
        (0..self.plan.nodes).for_each(|node| self.start(node));
        for _ in 0..self.plan.connections() {
            let after = self.plan.units(self.rng.f64() * 20.0);
            self.later(after, Task::Open);
        }
        self.later(self.plan.units(20.0), Task::Fault);
    }

    fn later(&mut self, after: std::time::Duration, task: Task) {
        self.tasks.add(self.world.now + after, task);
    }

    fn start(&mut self, node: usize) {
        let mut random = [0; 32];
        self.rng.fill(&mut random);
        let station = if node < self.plan.endpoints() {
            Station::endpoint(node, self.plan.ip_mtu(&mut self.rng), random, self.plan.units(2.0))
        } else {
            Station::Device(Box::new(Device::start(node, self.plan.device(), random)))
        };
        self.world.start(node, station);
        if node < self.plan.endpoints() {
            self.world.transport(node).listen(PORT);
        }
    }

    /// Lets things happen until `done`.
    fn go(&mut self, done: impl Fn(&Self) -> bool) {
        for step in 0.. {
            assert!(step < MAX_STEPS, "a run without end");
            while self.world.settle() {
                while let Some((node, event)) = self.world.events.pop_front() {
                    self.event(node, event);
                }
            }
            if done(self) {
                return;
            }
            let next = self.world.next().into_iter().chain(self.tasks.next()).min();
            self.world.pass(next.expect("there is always something to do"));
            while let Some(task) = self.tasks.due(self.world.now) {
                self.task(task);
            }
        }
    }

    /// Lets a connection do something.
    fn with<T>(&mut self, serial: u64, what: impl FnOnce(&mut Session, &mut Around<'_>) -> T) -> Option<T> {
        let session = self.sessions.get_mut(&serial)?;
        let Self { world, rng, report, plan, owners, .. } = self;
        let result = what(session, &mut Around { world, rng, report, plan, owners });
        self.look(serial);
        Some(result)
    }

    /// Sees whether a connection has begun to end, or is over.
    fn look(&mut self, serial: u64) {
        let Some(session) = self.sessions.get(&serial) else { return };
        if !session.is_over() {
            return;
        }
        session.finish();
        let [_, to] = session.watch.nodes;
        self.sessions.remove(&serial);
        if to >= self.plan.endpoints() {
            self.left.entry(to).or_default().push_back(self.world.now);
            self.later(self.plan.limit(), Task::Freed(to));
        }
        if self.world.now < self.until {
            let after = self.plan.units(self.rng.f64() * 5.0);
            self.later(after, Task::Open);
        }
    }

    fn event(&mut self, node: usize, event: Event) {
        let owner = |cluster: &Self, conn: ConnId| cluster.owners.get(&(node, conn)).copied();
        match event {
            Event::ConnectRequest { conn, private_data, .. } => {
                let serial = private_data.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)).expect("56 bytes");
                let taken = self
                    .with(serial, |session, around| session.watch.nodes[1] == node && session.requested(around, conn));
                // A late copy of a request, or one of a node that has crashed since.
                if taken != Some(true) && self.world.transport(node).reject(conn, &[]).is_ok() {
                    self.refused.insert((node, conn));
                }
            }
            Event::Connected { conn, .. } => {
                let (serial, side) = owner(self, conn).expect("a connection that is made was asked for");
                self.with(serial, |session, around| session.connected(around, side));
            }
            Event::Completion(done) => {
                let (serial, side) = owner(self, done.conn).expect("a work request belongs to a connection");
                self.with(serial, |session, around| session.completed(around, side, &done));
            }
            Event::ConnectFailed { conn, reason } => {
                let reason = match reason {
                    ConnectFailure::Rejected { reason, .. } => format!("rejected, {reason:?}"),
                    other => format!("not connected, {other:?}"),
                };
                if let Some((serial, side)) = owner(self, conn) {
                    self.with(serial, |session, around| session.ended(around, side, &reason));
                } else {
                    assert!(self.refused.remove(&(node, conn)), "a connection fails that nobody knows");
                }
            }
            Event::Disconnected { conn, reason, stats, .. } => {
                let reason = match reason {
                    DisconnectReason::Local => "disconnected by this side".to_owned(),
                    DisconnectReason::Remote => "disconnected by the peer".to_owned(),
                    DisconnectReason::Error(status) => format!("failed, {status}"),
                    DisconnectReason::PeerGone => unreachable!("this network does not tell that a node is gone"),
                };
                self.report.retransmitted += stats.counters.retransmitted;
                let (serial, side) = owner(self, conn).expect("a connection that ends was there");
                self.with(serial, |session, around| session.ended(around, side, &reason));
            }
            other => panic!("{other:?}"),
        }
    }

    fn task(&mut self, task: Task) {
        match task {
            Task::Act(serial, side) => {
                if let Some(Some(after)) = self.with(serial, |session, around| session.act(around, side)) {
                    self.later(after, Task::Act(serial, side));
                }
            }
            Task::Watch(serial) => self.watch(serial),
            Task::Open => self.open(),
            Task::Fault => {
                if self.world.now < self.until {
                    self.fault();
                    let after = self.plan.units(self.rng.f64() * 60.0);
                    self.later(after, Task::Fault);
                }
            }
            Task::Mend(ways, long) => self.mend(&ways, long),
            Task::Restart(node) => self.start(node),
            Task::Freed(device) => self.freed(device),
        }
    }

    /// A new connection, of any endpoint with any other node.
    fn open(&mut self) {
        if self.world.now >= self.until {
            return;
        }
        let from = self.rng.usize(..self.plan.endpoints());
        let to = (from + self.rng.usize(1..self.plan.nodes)) % self.plan.nodes;
        if !self.world.is_up(from) {
            return self.later(self.plan.units(10.0), Task::Open);
        }
        self.serial += 1;
        let serial = self.serial;
        let mut watch = Watch { serial, nodes: [from, to], cause: None, ending: None, moved: self.world.now };
        if !self.world.is_up(to) {
            watch.excuse(Cause::Crash);
        }
        if self.long.contains_key(&(from, to)) || self.long.contains_key(&(to, from)) {
            watch.excuse(Cause::Cut);
        }
        let Self { world, rng, report, plan, owners, .. } = self;
        let mut around = Around { world, rng, report, plan, owners };
        let body = match to < plan.endpoints() {
            true => Body::Pair(Box::new(Pair::open(&mut around, &watch))),
            false => Body::Caller(Caller::open(&mut around, &watch)),
        };
        self.report.connections += 1;
        self.sessions.insert(serial, Session { watch, body });
        for side in [0, 1] {
            let after = self.plan.think(&mut self.rng);
            self.later(after, Task::Act(serial, side));
        }
        self.later(self.plan.limit(), Task::Watch(serial));
    }

    /// A connection must have moved in the time that was given to it, or have ended.
    fn watch(&mut self, serial: u64) {
        let Some(session) = self.sessions.get_mut(&serial) else { return };
        let (now, limit) = (self.world.now, self.plan.limit());
        let [from, to] = session.watch.nodes;
        if self.world.network.is_cut(from, to) || self.world.network.is_cut(to, from) {
            session.watch.moved = now;
        }
        let last = session.watch.ending.unwrap_or(session.watch.moved);
        // What begins to end must end, whatever else happens.
        assert!(now <= last + limit, "it hangs: {}", session.describe());
        self.tasks.add(last + limit + self.plan.unit, Task::Watch(serial));
    }

    /// A device must have freed what its callers had.
    fn freed(&mut self, device: usize) {
        let (now, limit) = (self.world.now, self.plan.limit());
        let left = self.left.entry(device).or_default();
        while left.pop_front_if(|at| *at + limit <= now).is_some() {}
        let open = self.sessions.values().filter(|session| session.watch.nodes[1] == device).count();
        let most = open + left.len();
        if let Some(found) = self.world.device(device).map(Device::callers) {
            assert!(found <= most as u64, "device {device} has {found} callers, of which there are {most} at most");
        }
    }

    /// Something breaks.
    fn fault(&mut self) {
        match self.rng.u8(..10) {
            0..3 => self.cut(false),
            3..5 => self.cut(true),
            5..7 => self.crash(),
            7..9 => {
                let serials: Vec<u64> = self.sessions.keys().copied().collect();
                if !serials.is_empty() {
                    let serial = serials[self.rng.usize(..serials.len())];
                    self.with(serial, |session, around| {
                        if session.watch.ending.is_none() {
                            session.close(around);
                        }
                    });
                }
            }
            _ => self.world.network.conditions = self.plan.conditions(&mut self.rng),
        }
    }

    /// The network is cut: between two nodes, between one and all others, or in two parts; in both directions, or in one.
    fn cut(&mut self, long: bool) {
        let nodes = self.plan.nodes;
        let rng = &mut self.rng;
        let (first, second) = (rng.usize(..nodes), rng.usize(..nodes));
        let part: Vec<bool> = match rng.u8(..3) {
            0 => (0..nodes).map(|node| node == first).collect(),
            1 => (0..nodes).map(|_| rng.bool()).collect(),
            _ => Vec::new(),
        };
        let apart = |from: usize, to: usize| match part.is_empty() {
            true => (from, to) == (first, second),
            false => part[from] && !part[to],
        };
        let both = rng.bool();
        let all = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
        let ways: Vec<_> = all.filter(|&(a, b)| a != b && (apart(a, b) || both && apart(b, a))).collect();
        let time = match long {
            true => self.plan.units(20.0 + rng.f64() * 400.0),
            false => self.plan.bridged().mul_f64(rng.f64()),
        };
        self.report.cuts[usize::from(long)] += 1;
        let now = self.world.now;
        for &(from, to) in &ways {
            // One short cut after another is as bad as a long one.
            let again = [(from, to), (to, from)].iter().any(|&(from, to)| {
                self.world.network.is_cut(from, to)
                    || self.mended.get(&(from, to)).is_some_and(|at| now < *at + self.plan.units(200.0))
            });
            self.world.network.cut(from, to, true);
            if long || again {
                self.excuse(from, to);
            }
            if long {
                *self.long.entry((from, to)).or_default() += 1;
            }
        }
        self.tasks.add(now + time, Task::Mend(ways, long));
    }

    /// Connections between two nodes may fail from now on.
    fn excuse(&mut self, from: usize, to: usize) {
        for session in self.sessions.values_mut() {
            if [[from, to], [to, from]].contains(&session.watch.nodes) {
                session.watch.excuse(Cause::Cut);
            }
        }
    }

    fn mend(&mut self, ways: &[(usize, usize)], long: bool) {
        let now = self.world.now;
        for &(from, to) in ways {
            self.world.network.cut(from, to, false);
            self.mended.insert((from, to), now);
            if long && let Some(cuts) = self.long.get_mut(&(from, to)) {
                *cuts -= 1;
                if *cuts == 0 {
                    self.long.remove(&(from, to));
                }
            }
            for session in self.sessions.values_mut() {
                if [[from, to], [to, from]].contains(&session.watch.nodes) {
                    session.watch.moved = now;
                }
            }
        }
    }

    /// A node goes down, and starts again without what it knew.
    fn crash(&mut self) {
        let node = self.rng.usize(..self.plan.nodes);
        if !self.world.is_up(node) {
            return;
        }
        self.report.crashes += 1;
        self.world.stop(node);
        self.owners.retain(|(at, _), _| *at != node);
        self.refused.retain(|(at, _)| *at != node);
        self.left.remove(&node);
        let now = self.world.now;
        let serials: Vec<u64> = self.sessions.keys().copied().collect();
        for serial in serials {
            self.with(serial, |session, _| session.crashed(now, node));
        }
        let after = self.plan.units(self.rng.f64() * 300.0);
        self.later(after, Task::Restart(node));
    }

    /// All that is under way comes to its end, and then nothing may be left.
    fn finish(&mut self) {
        self.sessions.values_mut().for_each(Session::hurry);
        // What is cut and down now will be mended; then each connection has the time of its last operations.
        let longest = self.plan.units(500.0) + self.plan.limit() * 4 + self.plan.pace * 100;
        let end = self.world.now + longest;
        self.go(|cluster| cluster.sessions.is_empty() || cluster.world.now > end);
        let open: Vec<_> = self.sessions.values().map(Session::describe).collect();
        assert!(open.is_empty(), "connections do not end: {open:#?}");
        // The network has its frames to bring still, and devices find the last callers dead.
        let quiet = self.world.now + self.plan.units(500.0) + self.plan.limit() * 2;
        self.later(quiet - self.world.now, Task::Open);
        self.go(|cluster| cluster.world.now >= quiet);
        for node in 0..self.plan.nodes {
            assert!(self.world.is_up(node), "every node has started again");
            if node < self.plan.endpoints() {
                self.world.transport(node).unlisten(PORT);
            }
            if let Some(left) = self.world.left(node) {
                panic!("node {node} has something left: {left}");
            }
        }
    }
}
