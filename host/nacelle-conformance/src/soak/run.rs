// SPDX-License-Identifier: Apache-2.0
//! One run: an endpoint with its callers on a wire that is as bad as the seed says.

use crate::{Failure, caller::Caller};
use core::{fmt, net::Ipv4Addr, time::Duration};
use nacelle_link::{Fates, Impaired, Impairments, Link, MAX_FRAME, VirtualWire, WireDir};
use nacelle_roce::{
    ConnId, ConnectFailure, ConnectOptions, Endpoint, EndpointConfig, Event,
    wire::{MacAddr, cm::PathMtu},
};
use std::{collections::HashMap, time::Instant};

/// Before a device that had no place for a connection is asked again.
const PAUSE: Duration = Duration::from_millis(200);
/// Connections that are ended at once. A device drops the goodbyes that it has no room for, and a peer repeats its own so often only.
const PARTING: usize = 16;

/// The device that the runs are against.
pub(crate) struct Target {
    pub(crate) wire: WireDir,
    pub(crate) device: Ipv4Addr,
    pub(crate) port: u16,
    /// The time in which something must move.
    pub(crate) patience: Duration,
}

/// What a seed decides.
pub(crate) struct Run {
    seed: u64,
    connections: usize,
    operations: u32,
    impairments: Impairments,
    /// Peers that vanish and come back.
    restarts: u32,
    /// Peers of this or an earlier run have vanished: the device may be full of what they left, for a while.
    crowded: bool,
}

/// What has been done.
#[derive(Default)]
pub(crate) struct Tally {
    runs: u64,
    connections: u64,
    operations: u64,
    bytes: u64,
    restarts: u64,
    frames: Fates,
    /// Runs in which nothing moved any more.
    pub(crate) hangs: u64,
    /// Runs with wrong bytes.
    pub(crate) wrong: u64,
    /// Runs with a request or connection that failed.
    pub(crate) failed: u64,
    /// Connections that the device does not take any more.
    pub(crate) leaked: usize,
}

impl Tally {
    fn add(&mut self, caller: &Caller) {
        self.operations += caller.operations;
        self.bytes += caller.bytes;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fates { frames, lost, duplicated, overtaken, damaged } = self.frames;
        let megabytes = self.bytes as f64 / 1e6;
        writeln!(
            f,
            "seeds {}, connections {}, operations {}, {megabytes:.1} MB",
            self.runs, self.connections, self.operations
        )?;
        writeln!(f, "frames {frames}: lost {lost}, twice {duplicated}, overtaken {overtaken}, spoiled {damaged}")?;
        write!(
            f,
            "restarts {}, hangs {}, wrong bytes {}, failed requests {}, leaked connections {}",
            self.restarts, self.hangs, self.wrong, self.failed, self.leaked
        )
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let i = &self.impairments;
        write!(
            f,
            "seed {:<6} {:>3} connections, {:>3} operations each; loss {:.2} %, twice {:.2} %, overtaken {:.2} %, spoiled {:.2} %; {} restarts",
            self.seed,
            self.connections,
            self.operations,
            100.0 * i.loss,
            100.0 * i.duplicate,
            100.0 * i.reorder,
            100.0 * i.corrupt,
            self.restarts
        )
    }
}

/// An endpoint, its link and its clock.
struct Place {
    endpoint: Endpoint,
    link: Impaired<VirtualWire>,
    epoch: Instant,
    frame: Vec<u8>,
}

impl Place {
    fn new(target: &Target, rules: Impairments, host: u8) -> Result<Self, Failure> {
        let [a, b, c, _] = target.device.octets();
        let ip = Ipv4Addr::new(a, b, c, host);
        // Not from the seed: keys and identifiers must not come again, whatever is repeated.
        let mut seed = [0; 32];
        fastrand::Rng::new().fill(&mut seed);
        let mut config = EndpointConfig::new(MacAddr([0x02, 0x50, 0xac, b, c, host]), ip, seed);
        config.ip_mtu = 4200;
        config.max_connections = 1024;
        config.arp.tries = 40;
        config.arp.retry_interval = Duration::from_millis(100);
        let link = Impaired::new(VirtualWire::join_anonymous(&target.wire)?, rules);
        Ok(Self { endpoint: Endpoint::new(config), link, epoch: Instant::now(), frame: vec![0; MAX_FRAME] })
    }

    fn now(&self) -> nacelle_roce::Instant {
        nacelle_roce::Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    /// Sends everything that is to be sent, and takes what comes within a moment.
    fn turn(&mut self) -> Result<(), Failure> {
        while let Some(len) = self.endpoint.poll_transmit(self.now(), &mut self.frame) {
            self.link.send(&self.frame[..len])?;
        }
        let timer = self.endpoint.next_deadline().map(|t| self.epoch + Duration::from_nanos(t.as_nanos()));
        let mut until = Instant::now() + Duration::from_millis(20);
        until = timer.map_or(until, |t| t.min(until));
        // A few at once, so that answers do not wait behind all that came.
        for _ in 0..16 {
            let Some(len) = self.link.recv(&mut self.frame, until)? else { break };
            let _ = self.endpoint.handle(self.now(), &self.frame[..len]);
            until = Instant::now();
        }
        Ok(())
    }

    /// Says goodbye to these peers, and waits until no connection is left: goodbyes are answered, and repeated until they are.
    fn part(&mut self, mut open: Vec<ConnId>, patience: Duration) -> Result<(), Failure> {
        let mut moved = Instant::now();
        loop {
            let left = self.endpoint.connections().count();
            if left == 0 {
                return Ok(());
            }
            let parting = left.saturating_sub(open.len());
            let now = self.now();
            for conn in open.drain(..open.len().min(PARTING.saturating_sub(parting))) {
                self.endpoint.disconnect(now, conn);
            }
            self.turn()?;
            while self.endpoint.poll_event().is_some() {
                moved = Instant::now();
            }
            if moved.elapsed() > patience {
                return Err(Failure::Stuck(patience, "connections that are being closed".into()));
            }
        }
    }
}

impl Run {
    /// What this seed decides, within these bounds.
    pub(crate) fn new(seed: u64, connections: usize, operations: u32, restarts: bool) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut chance = |most: f64| if rng.bool() { most * rng.f64() * rng.f64() } else { 0.0 };
        let impairments = Impairments {
            loss: chance(0.05),
            duplicate: chance(0.05),
            reorder: chance(0.05),
            corrupt: chance(0.03),
            delay: Duration::ZERO,
            seed,
        };
        let connections = match rng.u8(..3) {
            0 => rng.usize(1..=connections.min(4)),
            1 => rng.usize(1..=connections.min(16)),
            _ => rng.usize(1..=connections),
        };
        let (crowded, restarts) = (restarts, if restarts { rng.u32(0..=2) } else { 0 });
        Self { seed, connections, operations: rng.u32(1..=operations.max(1)), impairments, restarts, crowded }
    }

    /// How a connection is to behave. The more of them, the longer each waits its turn, and a simulated device is slow: what is
    /// sent again too soon only makes it slower.
    fn options(&self, rng: &mut fastrand::Rng, target: &Target) -> ConnectOptions {
        let mtus = [PathMtu::Mtu256, PathMtu::Mtu512, PathMtu::Mtu1024, PathMtu::Mtu2048, PathMtu::Mtu4096];
        ConnectOptions {
            cm_timeout: Duration::from_millis(300 * (1 + self.connections as u64 / 8)),
            cm_retries: 15,
            ack_timeout: Duration::from_millis(67 * (1 + self.connections as u64 / 4)),
            max_ack_timeout: target.patience / 4,
            retry_count: 7,
            rnr_retry: 7,
            path_mtu: Some(*rng.choice(&mtus).expect("there are some")),
            selective_repeat: rng.bool(),
            ..ConnectOptions::default()
        }
    }

    /// Does it all, and adds it to the tally, whether it succeeds or not.
    pub(crate) fn execute(&self, target: &Target, tally: &mut Tally) -> Result<(), Failure> {
        tally.runs += 1;
        for life in 0..=u64::from(self.restarts) {
            // All but the last life end in the middle of their work, without a word.
            let last = life == u64::from(self.restarts);
            tally.restarts += u64::from(life > 0);
            let mut place = Place::new(target, self.impairments, 200)?;
            let mut callers = HashMap::new();
            let outcome = self.live(target, life, last, &mut place, &mut callers, tally);
            // Those that are over have been counted.
            callers.values().for_each(|caller| tally.add(caller));
            tally.frames += place.link.fates();
            outcome?;
        }
        Ok(())
    }

    /// Begins a connection.
    fn begin(&self, target: &Target, rng: &mut fastrand::Rng, place: &mut Place) -> Result<(ConnId, Caller), Failure> {
        let options = self.options(rng, target);
        let now = place.now();
        let conn = place
            .endpoint
            .connect(now, target.device, target.port, options)
            .map_err(|e| Failure::Failed(format!("no connection can be begun: {e}")))?;
        Ok((conn, Caller::new(&mut place.endpoint, conn, rng.fork(), self.operations)?))
    }

    fn live(
        &self,
        target: &Target,
        life: u64,
        last: bool,
        place: &mut Place,
        callers: &mut HashMap<ConnId, Caller>,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        let mut rng = fastrand::Rng::with_seed(self.seed ^ life << 32);
        for _ in 0..self.connections {
            let (conn, caller) = self.begin(target, &mut rng, place)?;
            callers.insert(conn, caller);
        }
        tally.connections += callers.len() as u64;
        let vanish = (!last).then(|| Instant::now() + Duration::from_millis(rng.u64(5..600)));
        let mut moved = Instant::now();
        let (mut refused, mut again) = (0, Instant::now());
        while !callers.is_empty() || refused > 0 {
            if vanish.is_some_and(|t| Instant::now() > t) {
                return Ok(());
            }
            place.turn()?;
            while let Some(event) = place.endpoint.poll_event() {
                if !matches!(event, Event::ConnectFailed { .. }) {
                    moved = Instant::now();
                }
                match event {
                    Event::Connected { conn, .. } => {
                        if let Some(caller) = callers.get_mut(&conn) {
                            caller.connected(&mut place.endpoint)?;
                        }
                    }
                    Event::Completion(done) => {
                        if let Some(caller) = callers.get_mut(&done.conn) {
                            caller.completed(&mut place.endpoint, &done)?;
                        }
                    }
                    // It takes the places back in time, if it is left some.
                    Event::ConnectFailed { conn, reason: ConnectFailure::Rejected { .. } } if self.crowded => {
                        let Some(caller) = callers.remove(&conn) else { continue };
                        caller.give_back(&mut place.endpoint);
                        refused += 1;
                        again = Instant::now() + PAUSE;
                    }
                    Event::ConnectFailed { conn, reason } => {
                        return Err(Failure::Failed(format!("{conn:?} could not connect: {reason:?}")));
                    }
                    Event::Disconnected { conn, reason, .. } => {
                        if let Some(caller) = callers.get(&conn) {
                            return Err(Failure::Failed(format!("disconnected by {reason:?}; {}", caller.describe())));
                        }
                    }
                    _ => {}
                }
            }
            if Instant::now() > again {
                for _ in 0..core::mem::take(&mut refused) {
                    let (conn, caller) = self.begin(target, &mut rng, place)?;
                    callers.insert(conn, caller);
                }
            }
            let mut over = Vec::new();
            for (conn, caller) in &mut *callers {
                caller.act(&mut place.endpoint)?;
                if caller.is_over() {
                    over.push(*conn);
                }
            }
            for conn in over {
                let caller = callers.remove(&conn).expect("it was there");
                tally.add(&caller);
                let now = place.now();
                place.endpoint.disconnect(now, conn);
            }
            if moved.elapsed() > target.patience {
                let report: Vec<String> = callers.values().map(Caller::describe).collect();
                return Err(Failure::Stuck(target.patience, report.join("; ")));
            }
        }
        place.part(Vec::new(), target.patience)
    }

    /// How many connections the device takes at once: as many as it accepts, up to 1024. All are closed again.
    pub(crate) fn capacity(target: &Target) -> Result<usize, Failure> {
        let mut place = Place::new(target, Impairments::default(), 201)?;
        let mut open = Vec::new();
        let begin = Instant::now();
        'more: while open.len() < 1024 {
            let options = ConnectOptions { cm_timeout: Duration::from_millis(300), ..ConnectOptions::default() };
            let now = place.now();
            let conn = place
                .endpoint
                .connect(now, target.device, target.port, options)
                .map_err(|e| Failure::Failed(format!("no connection can be begun: {e}")))?;
            loop {
                place.turn()?;
                match place.endpoint.poll_event() {
                    Some(Event::Connected { .. }) => break,
                    Some(Event::ConnectFailed { reason: ConnectFailure::Rejected { .. }, .. }) => break 'more,
                    Some(Event::ConnectFailed { reason, .. }) => {
                        return Err(Failure::Failed(format!("the device does not answer: {reason:?}")));
                    }
                    _ => {}
                }
                if begin.elapsed() > target.patience {
                    return Err(Failure::Stuck(target.patience, format!("{} connections were made", open.len())));
                }
            }
            open.push(conn);
        }
        let room = open.len();
        place.part(open, target.patience)?;
        Ok(room)
    }
}
