// SPDX-License-Identifier: Apache-2.0
//! One run: honest callers at several hosts, each host an endpoint on an impaired wire, and hostile callers beside them.

use super::{Failure, caller::Caller, clock::Clock, hostile::Hostile, tally::Tally};
use crate::attack::quota;
use core::{
    fmt,
    net::Ipv4Addr,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};
use nacelle_driver::Port;
use nacelle_link::{Impaired, Impairments, VirtualWire, WireDir};
use nacelle_roce::{
    ConnId, ConnectFailure, ConnectOptions, Endpoint, EndpointConfig, Event, Transport,
    wire::{
        MacAddr,
        cm::{PathMtu, RejReason},
    },
};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Instant,
};

/// Pause before a refused connection is tried again.
const PAUSE: Duration = Duration::from_millis(200);
/// Most hosts of honest callers.
const HOSTS: u8 = 4;
/// Last octet of the first of their addresses, in the device's network.
const FIRST_HOST: u8 = 200;

/// The device under test.
pub(super) struct Target {
    pub(super) wire: WireDir,
    pub(super) device: Ipv4Addr,
    pub(super) port: u16,
    /// Longest time that an honest caller may wait without progress.
    pub(super) patience: Duration,
}

/// State that all callers of a run share.
pub(super) struct Shared<'a> {
    pub(super) target: &'a Target,
    clock: &'a Clock,
    tally: &'a Mutex<Tally>,
    /// Connections of honest callers that were refused and are to be tried again.
    pub(super) waiting: AtomicUsize,
    /// The honest callers have finished.
    done: AtomicBool,
    /// A caller has failed.
    failed: AtomicBool,
}

impl<'a> Shared<'a> {
    /// For runs against this device.
    pub(super) fn new(target: &'a Target, clock: &'a Clock, tally: &'a Mutex<Tally>) -> Self {
        let (done, failed) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { target, clock, tally, waiting: AtomicUsize::new(0), done, failed }
    }

    /// Changes the tally.
    pub(super) fn tally(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether the run is over: the honest callers have finished, or a caller has failed.
    pub(super) fn over(&self) -> bool {
        self.done.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// Ends the run for all callers if `outcome` is an error.
    fn checked(&self, outcome: Result<(), Failure>) -> Result<(), Failure> {
        if outcome.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        outcome
    }
}

/// Bounds of a run.
pub(super) struct Size {
    /// Connections of honest callers.
    pub(super) connections: usize,
    /// Operations of each.
    pub(super) operations: u32,
    /// Hostile callers.
    pub(super) hostile: u8,
    /// Honest callers vanish and start again.
    pub(super) restarts: bool,
    /// Connections that each hostile caller may leave behind.
    pub(super) allowance: u16,
}

/// What a seed decides.
pub(super) struct Run {
    seed: u64,
    hosts: u8,
    connections: usize,
    operations: u32,
    impairments: Impairments,
    /// Times that honest callers vanish and come back.
    restarts: u32,
    hostile: u8,
    allowance: u16,
    /// All connections may be in use, or not released yet: the device may refuse others for a while.
    crowded: bool,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let i = &self.impairments;
        write!(
            f,
            "seed {:<6} {} hosts, {:>3} connections, {:>3} operations each; loss {:.2} %, twice {:.2} %, overtaken {:.2} %, spoiled {:.2} %; {} restarts",
            self.seed,
            self.hosts,
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

/// A host: an endpoint on an impaired wire.
struct Place(Port<Impaired<VirtualWire>>);

impl Place {
    fn new(target: &Target, rules: Impairments, host: u8) -> Result<Self, Failure> {
        let [a, b, c, _] = target.device.octets();
        let ip = Ipv4Addr::new(a, b, c, host);
        // Not from the seed: keys and identifiers must not come again, whatever is repeated.
        let mut seed = [0; 32];
        fastrand::Rng::new().fill(&mut seed);
        let mut config = EndpointConfig::new(MacAddr([0x02, 0x50, 0xac, b, c, host]), ip, seed);
        config.interface.ip_mtu = 4200;
        config.interface.arp.tries = 40;
        config.interface.arp.retry_interval = Duration::from_millis(100);
        config.transport.max_connections = 1024;
        let link = Impaired::new(VirtualWire::join_anonymous(&target.wire)?, rules);
        Ok(Self(Port::new(Endpoint::new(config), link)))
    }

    /// One turn of the loop, of 20 ms at most.
    fn turn(&mut self) -> Result<(), Failure> {
        Ok(self.0.turn(Instant::now() + Duration::from_millis(20))?)
    }

    fn transport(&mut self) -> &mut Transport {
        &mut self.0.endpoint.transport
    }

    /// Waits until all connections are closed, with the retransmissions that this needs.
    fn part(&mut self, patience: Duration) -> Result<(), Failure> {
        let mut moved = Instant::now();
        while self.transport().connections().count() > 0 {
            self.turn()?;
            while self.0.poll_event().is_some() {
                moved = Instant::now();
            }
            if moved.elapsed() > patience {
                return Err(Failure::Stuck(patience, "connections that are being closed".into()));
            }
        }
        Ok(())
    }
}

/// Refused connections: since when each has waited, and when they are tried again.
#[derive(Default)]
struct Refused {
    since: Vec<Instant>,
    again: Option<Instant>,
}

impl Run {
    /// The run that this seed decides, within the bounds of `size`.
    pub(super) fn new(seed: u64, size: &Size) -> Self {
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
            0 => rng.usize(1..=size.connections.min(4)),
            1 => rng.usize(1..=size.connections.min(16)),
            _ => rng.usize(1..=size.connections),
        };
        Self {
            seed,
            hosts: rng.u8(1..=HOSTS.min(connections as u8)),
            connections,
            operations: rng.u32(1..=size.operations.max(1)),
            impairments,
            restarts: if size.restarts { rng.u32(0..=2) } else { 0 },
            hostile: size.hostile,
            allowance: size.allowance,
            crowded: size.restarts || size.hostile > 0,
        }
    }

    /// Options of a connection. The timeouts grow with the number of connections: a simulated device is slow, and retransmissions that
    /// come too early load it further.
    fn options(&self, rng: &mut fastrand::Rng, target: &Target) -> ConnectOptions {
        let mtus = [PathMtu::Mtu256, PathMtu::Mtu512, PathMtu::Mtu1024, PathMtu::Mtu2048, PathMtu::Mtu4096];
        ConnectOptions {
            cm_timeout: Duration::from_millis(300 * (1 + self.connections as u64 / 8)),
            cm_retries: 15,
            ack_timeout: Duration::from_millis(67 * (1 + self.connections as u64 / 4)),
            max_ack_timeout: target.patience / 8,
            retry_count: 7,
            rnr_retry: 7,
            path_mtu: Some(*rng.choice(&mtus).expect("there are some")),
            selective_repeat: rng.bool(),
            ..ConnectOptions::default()
        }
    }

    /// Executes the run and adds it to the tally, also when it fails.
    pub(super) fn execute(&self, shared: &Shared<'_>) -> Result<(), Failure> {
        shared.tally(|tally| tally.runs += 1);
        for flag in [&shared.done, &shared.failed] {
            flag.store(false, Ordering::Relaxed);
        }
        shared.waiting.store(0, Ordering::Relaxed);
        let mut hostile = (0..self.hostile)
            .map(|number| Hostile::new(shared, self.seed, number, self.allowance))
            .collect::<Result<Vec<_>, _>>()?;
        std::thread::scope(|threads| {
            let honest: Vec<_> =
                (0..self.hosts).map(|host| threads.spawn(move || shared.checked(self.host(shared, host)))).collect();
            let hostile: Vec<_> =
                hostile.iter_mut().map(|one| threads.spawn(|| shared.checked(one.run(shared)))).collect();
            let join = |outcome: std::thread::ScopedJoinHandle<'_, _>| outcome.join().expect("no caller panics");
            let honest: Vec<_> = honest.into_iter().map(join).collect();
            shared.done.store(true, Ordering::Relaxed);
            honest.into_iter().chain(hostile.into_iter().map(join)).collect()
        })
    }

    /// Number of connections of this host.
    fn share(&self, host: u8) -> usize {
        let (all, hosts, host) = (self.connections, usize::from(self.hosts), usize::from(host));
        all / hosts + usize::from(host < all % hosts)
    }

    /// Executes all lives of a host: it vanishes and starts again `restarts` times.
    fn host(&self, shared: &Shared<'_>, host: u8) -> Result<(), Failure> {
        for life in 0..=u64::from(self.restarts) {
            // All lives but the last end in the middle of their work, without a DREQ.
            let last = life == u64::from(self.restarts);
            shared.tally(|tally| tally.restarts += u64::from(life > 0));
            let mut place = Place::new(shared.target, self.impairments, FIRST_HOST + host)?;
            let mut callers = HashMap::new();
            let rng = fastrand::Rng::with_seed(self.seed ^ life << 32 ^ u64::from(host) << 40);
            let mut refused = Refused::default();
            let outcome = self.live(shared, rng, self.share(host), last, &mut place, &mut callers, &mut refused);
            shared.waiting.fetch_sub(refused.since.len(), Ordering::Relaxed);
            shared.tally(|tally| {
                // Callers that finished have been counted before.
                callers.values().for_each(|caller| tally.add(caller));
                tally.frames += place.0.link().counts();
            });
            outcome?;
            if shared.failed.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Begins a connection whose caller has waited since `since`.
    fn begin(
        &self,
        target: &Target,
        rng: &mut fastrand::Rng,
        place: &mut Place,
        since: Instant,
    ) -> Result<(ConnId, Caller), Failure> {
        let options = self.options(rng, target);
        let now = place.0.now();
        let conn = place
            .0
            .endpoint
            .connect(now, target.device, target.port, options)
            .map_err(|e| Failure::Failed(format!("no connection can be begun: {e}")))?;
        Ok((conn, Caller::new(place.transport(), conn, rng.fork(), self.operations, since)?))
    }

    #[expect(clippy::too_many_arguments, reason = "what it changes is looked at when it has failed")]
    fn live(
        &self,
        shared: &Shared<'_>,
        mut rng: fastrand::Rng,
        connections: usize,
        last: bool,
        place: &mut Place,
        callers: &mut HashMap<ConnId, Caller>,
        refused: &mut Refused,
    ) -> Result<(), Failure> {
        let target = shared.target;
        for _ in 0..connections {
            let (conn, caller) = self.begin(target, &mut rng, place, Instant::now())?;
            callers.insert(conn, caller);
        }
        shared.tally(|tally| tally.connections += connections as u64);
        let vanish = (!last).then(|| Instant::now() + Duration::from_millis(rng.u64(5..600)));
        while !callers.is_empty() || !refused.since.is_empty() {
            if vanish.is_some_and(|t| Instant::now() > t) || shared.failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            place.turn()?;
            while let Some(event) = place.0.poll_event() {
                match event {
                    Event::Connected { conn, .. } => {
                        if let Some(caller) = callers.get_mut(&conn) {
                            caller.connected(place.transport())?;
                        }
                    }
                    Event::Completion(done) => {
                        if let Some(caller) = callers.get_mut(&done.conn) {
                            caller.completed(place.transport(), &done, shared.clock)?;
                        }
                    }
                    // Beside attacks and restarts the device may be full for a while, and a new life may use a QPN of which the device
                    // still has the connection of the life before: try again.
                    Event::ConnectFailed { conn, reason: ConnectFailure::Rejected { reason, .. } }
                        if self.crowded && (quota::is_full(reason) || reason == RejReason::STALE_CONNECTION) =>
                    {
                        let Some(caller) = callers.remove(&conn) else { continue };
                        refused.since.push(caller.since());
                        caller.give_back(place.transport());
                        refused.again = Some(Instant::now() + PAUSE);
                        shared.waiting.fetch_add(1, Ordering::Relaxed);
                        shared.tally(|tally| tally.refused += 1);
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
            if refused.again.is_some_and(|t| Instant::now() > t) {
                refused.again = None;
                for since in core::mem::take(&mut refused.since) {
                    shared.waiting.fetch_sub(1, Ordering::Relaxed);
                    let (conn, caller) = self.begin(target, &mut rng, place, since)?;
                    callers.insert(conn, caller);
                }
            }
            let mut over = Vec::new();
            for (conn, caller) in &mut *callers {
                caller.act(place.transport(), shared.clock)?;
                if caller.is_over() {
                    over.push(*conn);
                } else if caller.is_stuck(target.patience, shared.clock) {
                    return Err(Failure::Stuck(caller.since().elapsed(), caller.describe()));
                }
            }
            for conn in over {
                let caller = callers.remove(&conn).expect("it was there");
                shared.tally(|tally| tally.add(&caller));
                let now = place.0.now();
                place.transport().disconnect(now, conn);
            }
        }
        place.part(target.patience)
    }
}
