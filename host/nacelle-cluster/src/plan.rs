// SPDX-License-Identifier: Apache-2.0
//! What a seed decides before a run begins.

use std::time::Duration;

use fastrand::Rng;
use nacelle_device::SoftConfig;
use nacelle_roce::ConnectOptions;
use nacelle_roce::wire::Psn;
use nacelle_roce::wire::bth::RnrTimer;
use nacelle_roce::wire::cm::PathMtu;

use crate::network::Conditions;

/// Where endpoints listen.
pub(crate) const PORT: u16 = 12345;
/// IP packets that a node's link carries, in bytes.
const MTUS: [usize; 4] = [400, 600, 1500, 4200];

/// The size of a run. What is not here, its seed decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// Nodes, 2 to 64. Default: as the seed has it.
    pub nodes: usize,
    /// How many of them, the last ones, are software devices. Default: as the seed has it.
    pub devices: usize,
    /// The time after which a packet is sent again. Everything else follows: keep-alives, faults, downtimes. Default: 1 ms.
    pub unit: Duration,
    /// Mean time between two operations of a side. Default: a tenth of the unit.
    pub pace: Duration,
    /// Virtual time in which connections are opened and things break. Default: 300 units.
    pub time: Duration,
}

/// The command that runs a seed again.
#[must_use]
pub fn command(plan: &Plan) -> String {
    let Plan { seed, nodes, devices, unit, pace, time } = plan;
    let millis = |time: &Duration| time.as_secs_f64() * 1e3;
    format!(
        "cargo run --release -p nacelle-cluster -- --first {seed} --seeds 1 --nodes {nodes} --devices {devices} --unit {} --pace {} --time {}",
        millis(unit),
        millis(pace),
        millis(time)
    )
}

impl Plan {
    /// What this seed decides.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0xc1a5);
        let nodes = [2, 3, 4, 5, 8, 16, 32, 64][rng.usize(..8)];
        let devices = if nodes == 2 { rng.usize(..2) } else { rng.usize(..=nodes / 3) };
        Self::default().of(seed, nodes, devices)
    }

    fn of(self, seed: u64, nodes: usize, devices: usize) -> Self {
        Self { seed, nodes, devices, ..self }
    }

    /// So many units.
    pub(crate) fn units(&self, count: f64) -> Duration {
        self.unit.mul_f64(count)
    }

    /// Endpoints come before devices.
    pub(crate) fn endpoints(&self) -> usize {
        self.nodes - self.devices
    }

    /// Connections at a time.
    pub(crate) fn connections(&self) -> usize {
        (self.nodes * 2).max(4)
    }

    pub(crate) fn conditions(&self, rng: &mut Rng) -> Conditions {
        let percent = |rng: &mut Rng, most: f64| if rng.bool() { 0.0 } else { rng.f64() * most };
        let delay = Duration::from_micros([1, 3, 10][rng.usize(..3)]);
        Conditions {
            delay,
            jitter: delay.mul_f64(rng.f64() * 3.0),
            loss: percent(rng, 3.0),
            duplicate: percent(rng, 4.0),
            corrupt: percent(rng, 2.0),
            reorder: percent(rng, 4.0),
        }
    }

    pub(crate) fn ip_mtu(&self, rng: &mut Rng) -> usize {
        MTUS[rng.usize(..MTUS.len())]
    }

    /// Time between two operations of a side.
    pub(crate) fn think(&self, rng: &mut Rng) -> Duration {
        self.pace.mul_f64(rng.f64() * 2.0)
    }

    /// Operations of a side of a connection. Its connections live for some tens of units, or for long.
    pub(crate) fn operations(&self, rng: &mut Rng) -> usize {
        let most = (self.units(60.0).as_secs_f64() / self.pace.as_secs_f64()) as usize;
        rng.usize(1..=most.clamp(20, 600))
    }

    /// How a connection behaves.
    pub(crate) fn options(&self, rng: &mut Rng) -> ConnectOptions {
        ConnectOptions {
            rnr_retry: 7,
            window: 1 + rng.u32(..100),
            path_mtu: (rng.u8(..3) == 0).then_some(PathMtu::Mtu256),
            starting_psn: rng.bool().then(|| Psn::new(0u32.wrapping_sub(rng.u32(..200)))),
            selective_repeat: rng.u8(..3) != 0,
            initiator_depth: rng.u8(1..=16),
            responder_resources: rng.u8(1..=16),
            ..self.times()
        }
    }

    fn times(&self) -> ConnectOptions {
        ConnectOptions {
            cm_timeout: self.unit,
            cm_retries: 15,
            ack_timeout: self.unit,
            max_ack_timeout: self.units(50.0),
            keepalive: Some(self.units(20.0)),
            // 40 µs, or the longest there is.
            rnr_timer: RnrTimer::new(if self.unit < Duration::from_millis(100) { 4 } else { 0 }),
            ..ConnectOptions::default()
        }
    }

    /// The configuration of the devices.
    pub(crate) fn device(&self) -> SoftConfig {
        SoftConfig { workers: 1, connect: self.times(), ..SoftConfig::default() }
    }

    /// The longest time for which a way may be cut and no connection fails.
    pub(crate) fn bridged(&self) -> Duration {
        self.units(6.0)
    }

    /// In this time a connection makes progress, or ends: a peer is found dead by the keep-alive and all retries, and then the
    /// retries of what says so to the peer pass.
    pub(crate) fn limit(&self) -> Duration {
        self.times().dead_after().expect("there is a keep-alive") * 2 + self.units(200.0)
    }
}

impl Default for Plan {
    fn default() -> Self {
        let unit = Duration::from_millis(1);
        Self { seed: 0, nodes: 2, devices: 0, unit, pace: unit / 10, time: unit * 300 }
    }
}
