// SPDX-License-Identifier: Apache-2.0
//! The software device: the same wire protocols as the RTL, with kernels that run on this machine's CPU.
//!
//! Its time is that of this machine, in nanoseconds. Kernels run in threads of their own, so that a long one delays only calls
//! that wait for a thread.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use nacelle_driver::Clock;
use nacelle_manage::DeviceKind;
use nacelle_roce::memory::Memory;
use nacelle_roce::{
    AnyInterface, Batch, Completion, Congestion, Datagrams, Endpoint, Event, Phase, Received, Sent, Transmit,
    UdpInterface, WcOpcode, WcStatus,
};
use nacelle_wire::mrsp::DEFAULT_PORT;
use nacelle_wire::{DescriptionLocation, MacAddr};
use rustc_hash::FxHashMap;

use crate::{DatagramEngine, DeviceError, Engine, Facts, FrameEngine, Identity, PushError, Stamp, WakeFds};

mod admission;
mod calls;
mod config;
mod description;
mod event_log;
mod histograms;
mod holdings;
mod lend;
mod load;
mod managed;
mod memory;
mod registers;
mod requests;
mod services;
mod session;
mod setup;
mod turns;
mod wake;
mod windows;
mod workers;

use admission::Admission;
pub use config::SoftConfig;
use event_log::EventLog;
use histograms::Histograms;
use holdings::Holdings;
use lend::Orphaned;
use load::Told;
use managed::ManagedTable;
use memory::MemoryThread;
use services::Services;
use session::{At, Sessions};
use wake::Wake;
pub use windows::{IncomingRead, IncomingWrite, Window, Windows};
use workers::{CallId, Limits, Workers};

/// The software device.
pub struct SoftEngine {
    endpoint: Endpoint<AnyInterface>,
    clock: Clock,
    /// When this turn began, by the clock, to the system and to the endpoint.
    turn: Instant,
    now: nacelle_roce::Instant,
    sessions: Sessions,
    /// Whose a call is that waits or runs.
    calls: FxHashMap<CallId, At>,
    /// When those of them must have ended that have a deadline.
    deadlines: BTreeSet<(Instant, CallId)>,
    workers: Workers,
    /// Memory of calls whose caller is gone or has its result.
    orphaned: FxHashMap<CallId, Orphaned>,
    /// Contexts whose call waits until their READs before it are answered.
    delayed: Vec<At>,
    held: Holdings,
    admission: Admission,
    event_log: EventLog,
    histograms: Box<Histograms>,
    /// Empty, for the regions of the next call: so a call allocates nothing.
    spare: Vec<Memory>,
    entered: VecDeque<Stamp>,
    counters: Counted,
    /// Where callers read what this device is.
    description: Option<DescriptionLocation>,
    /// What they read there of its load.
    told: Option<Told>,
    config: SoftConfig,
    windows: Windows,
    managed: ManagedTable,
    memory: MemoryThread,
    wake: Wake,
    /// Its addresses; unset on a UDP socket.
    identity: Identity,
    /// What the endpoint does.
    congestion: Congestion,
    services: Services,
    /// Beside the system's random numbers, or in place of them.
    random: Option<[u8; 32]>,
}

/// What the service has counted.
#[derive(Debug, Default)]
struct Counted {
    calls: u64,
    calls_failed: u64,
    immediates_ignored: u64,
    regions_refused: u64,
    messages_malformed: u64,
    callers_expelled: u64,
    refused_no_token: u64,
    refused_token: u64,
    refused_per_entry: u64,
    admission_ended: u64,
}

impl SoftEngine {
    /// A device that is not configured.
    ///
    /// # Panics
    /// If the system has no socket or thread left.
    #[must_use]
    pub fn new(config: SoftConfig) -> Self {
        Self::with(config, Clock::start(), None)
    }

    /// The same in a simulation: its time is that of `clock`, and all its random numbers come from `random`, so that a run can be
    /// repeated. Peers that know `random` know its keys.
    ///
    /// # Panics
    /// If the system has no socket or thread left.
    #[must_use]
    pub fn simulated(config: SoftConfig, clock: Clock, random: [u8; 32]) -> Self {
        Self::with(config, clock, Some(random))
    }

    fn with(config: SoftConfig, clock: Clock, random: Option<[u8; 32]>) -> Self {
        let unset = Identity { mac: MacAddr::default(), ip: Ipv4Addr::UNSPECIFIED, prefix_len: 0, gateway: None };
        let endpoint = config.endpoint(&unset, [0; 32]).into();
        let limits = Limits { workers: config.workers.max(1), spares: config.spare_workers, time: config.kernel_time };
        let (wake, waker) = wake::wake().expect("the system has a socket left");
        let memory = MemoryThread::start(waker.clone()).expect("the system has a thread left");
        let began = clock.system_now();
        Self {
            endpoint,
            turn: began,
            now: clock.now(),
            clock,
            sessions: Sessions::default(),
            calls: FxHashMap::default(),
            deadlines: BTreeSet::new(),
            workers: Workers::new(limits, waker),
            orphaned: FxHashMap::default(),
            delayed: Vec::new(),
            held: Holdings::default(),
            admission: Admission::new(began),
            event_log: EventLog::default(),
            histograms: Box::default(),
            spare: Vec::new(),
            entered: VecDeque::new(),
            counters: Counted::default(),
            description: None,
            told: None,
            windows: config.windows.clone(),
            config,
            managed: ManagedTable::default(),
            identity: unset,
            congestion: config::congestion(),
            services: Services::default(),
            memory,
            wake,
            random,
        }
    }

    /// Its windows: those of its configuration.
    #[must_use]
    pub fn windows(&self) -> Windows {
        self.windows.clone()
    }

    /// Serves callers by this endpoint from now on.
    fn serve_on(&mut self, endpoint: Endpoint<AnyInterface>) {
        self.endpoint = endpoint;
        self.endpoint.transport.set_congestion(self.congestion);
        self.publish();
        self.endpoint.transport.listen(DEFAULT_PORT);
    }

    /// The seed of keys and numbers.
    fn random(&self, seed: u32) -> [u8; 32] {
        self.random.unwrap_or_else(|| {
            let mut random = [0; 32];
            // Without the system's random numbers, keys would be as good as known: then it is better not to start.
            getrandom::fill(&mut random).expect("the system gives random numbers");
            random[..4].copy_from_slice(&seed.to_be_bytes());
            random
        })
    }

    /// A turn begins at this moment of the system's time.
    fn begin_turn(&mut self, now: Instant) {
        let turn = self.clock.system_at(now);
        if self.turn != turn {
            (self.turn, self.now) = (turn, self.clock.of(turn));
        }
    }

    /// When this turn began.
    const fn now(&self) -> nacelle_roce::Instant {
        self.now
    }

    fn stamp(&self) -> Stamp {
        Stamp { first_beat: self.cycles(), last_beat: self.cycles() }
    }

    fn note(&mut self, event: Event) {
        self.log_event(&event);
        match event {
            Event::ConnectRequest { conn, peer, offered, token, .. } => self.admit(conn, peer, token, offered),
            Event::Completion(completion) if self.is_managed(completion.conn) => self.managed_completed(&completion),
            Event::Completion(Completion { conn, id, opcode, status: WcStatus::Success, byte_len, imm, .. }) => {
                match opcode {
                    WcOpcode::Recv => self.send_arrived(conn, id, byte_len, imm),
                    WcOpcode::RecvWrite => self.write_arrived(conn, id, imm.unwrap_or_default()),
                    _ => self.answered(conn, id),
                }
            }
            Event::Connected { conn, private_data } => self.managed_established(conn, &private_data),
            Event::ConnectFailed { conn, reason } if self.is_managed(conn) => self.managed_failed(conn, reason),
            Event::Disconnected { conn, .. } if self.is_managed(conn) => self.managed_closed(conn),
            Event::ConnectFailed { conn, .. } | Event::Disconnected { conn, .. } => self.release(conn),
            // A failed work request ends its connection, which has an event of its own; the rest answers what this
            // device never asks.
            _ => {}
        }
    }
}

impl Engine for SoftEngine {
    fn facts(&self) -> Facts {
        Facts { kind: DeviceKind::Soft, data_w: 0, clock_hz: 1_000_000_000, memory_bytes: self.config.memory_bytes }
    }

    fn run(&mut self, now: Instant) {
        self.begin_turn(now);
        while let Some(event) = self.endpoint.transport.poll_event() {
            self.note(event);
        }
        self.wake.clear();
        self.serve_set_ups();
        for at in std::mem::take(&mut self.delayed) {
            self.go_on(at);
        }
        self.serve_kernels();
        self.serve_admission();
        self.tell_load(false);
    }

    fn idle(&self) -> bool {
        self.delayed.is_empty() // all other work is done when it comes
    }

    fn pass(&mut self, _time: Duration) {}

    fn wake_at(&self) -> Option<Instant> {
        let endpoint = self.endpoint.next_deadline().map(|at| self.clock.at(at));
        let call = self.deadlines.first().map(|(until, _)| *until);
        [endpoint, self.workers.deadline(), call, self.load_due(), self.admission.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    fn wake_fds(&self) -> WakeFds<'_> {
        WakeFds::from_iter([self.wake.fd()])
    }

    fn leave(&mut self) {
        let now = self.now();
        let all: Vec<_> = self.endpoint.transport.connections().map(|(conn, _)| conn).collect();
        for conn in all {
            self.endpoint.transport.disconnect(now, conn);
        }
    }

    fn is_leaving(&self) -> bool {
        self.endpoint.transport.connections().any(|(_, info)| info.phase == Phase::DreqSent)
    }

    fn cycles(&self) -> u64 {
        self.clock.now().as_nanos()
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, DeviceError> {
        let mut all: BTreeMap<String, u64> =
            self.endpoint.counters().iter().map(|(name, value)| (format!("roce.{name}"), value)).collect();
        let Counted {
            calls,
            calls_failed,
            immediates_ignored,
            regions_refused,
            messages_malformed,
            callers_expelled,
            refused_no_token,
            refused_token,
            refused_per_entry,
            admission_ended,
        } = self.counters;
        let figures = [
            ("rpc.calls", calls),
            ("rpc.calls_failed", calls_failed),
            ("rpc.immediates_ignored", immediates_ignored),
            ("rpc.regions_refused", regions_refused),
            ("rpc.messages_malformed", messages_malformed),
            ("rpc.callers_expelled", callers_expelled),
            ("cm.refused_no_token", refused_no_token),
            ("cm.refused_token", refused_token),
            ("cm.refused_per_entry", refused_per_entry),
            ("cm.admission_ended", admission_ended),
            ("rpc.callers", self.sessions.0.len() as u64),
            ("memory.bytes_held", self.held.total()),
        ];
        all.extend(figures.map(|(name, value)| (name.to_owned(), value)));
        all.extend(self.services.counters().map(|(name, value)| (format!("service.{name}"), value)));
        all.extend(self.workers.figures().map(|(name, value)| (format!("kernels.{name}"), value)));
        Ok(all)
    }
}

impl FrameEngine for SoftEngine {
    fn configure(&mut self, identity: &Identity, seed: u32) -> Result<(), DeviceError> {
        self.identity = *identity;
        self.serve_on(self.config.endpoint(identity, self.random(seed)).into());
        self.log_enabled(identity.ip.into());
        Ok(())
    }

    fn push(&mut self, frame: &[u8]) -> Result<(), PushError> {
        self.entered.push_back(self.stamp());
        if !self.serve_frame(frame) {
            // What is wrong with a frame, the endpoint's counters say.
            let _ = self.endpoint.handle(self.clock.now(), Received::Frame(frame));
        }
        Ok(())
    }

    fn rx_stamp(&mut self) -> Option<Stamp> {
        self.entered.pop_front()
    }

    fn pull(&mut self, buffer: &mut [u8]) -> Option<(usize, Stamp)> {
        if let Some(length) = self.services.pull(buffer) {
            return Some((length, self.stamp()));
        }
        let buffer = buffer.get_mut(..self.endpoint.buffer_len())?;
        match self.endpoint.poll_transmit(self.clock.now(), buffer)? {
            Sent::Frame(length) => Some((length, self.stamp())),
            Sent::Datagrams(_) => None,
        }
    }
}

impl DatagramEngine for SoftEngine {
    fn configure_udp(&mut self, interface: UdpInterface, seed: u32) {
        // Its calls are confirmed by what follows them.
        self.config.connect.late_acknowledgement = true;
        let address = interface.local().ip();
        self.serve_on(self.config.endpoint_over_udp(interface, self.random(seed)).into());
        self.log_enabled(address);
    }

    fn receive(&mut self, now: Instant, datagrams: Datagrams<'_>) {
        self.begin_turn(now);
        // What is wrong with a datagram, the endpoint's counters say.
        let _ = self.endpoint.handle(self.now(), Received::Datagrams(datagrams));
    }

    fn peer_gone(&mut self, peer: IpAddr) {
        self.endpoint.transport.peer_gone(peer);
    }

    fn transmit(&mut self, now: Instant, buffer: &mut [u8], batch: Batch) -> Option<Transmit> {
        self.begin_turn(now);
        match self.endpoint.poll_transmit_batch(self.now(), buffer, batch)? {
            Sent::Datagrams(sent) => Some(sent),
            Sent::Frame(_) => None,
        }
    }
}
