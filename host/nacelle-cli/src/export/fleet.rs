// SPDX-License-Identifier: Apache-2.0
//! The devices that are looked at: all at once, each within a time of its own.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nacelle_link::WireDir;
use nacelle_manage::histograms::{Histograms, Times};
use nacelle_manage::map::{Chain, ChainError, Found, histograms, sensors, socket};
use nacelle_manage::sensors::{Sensor, Sensors};
use nacelle_manage::{
    Control, Descriptor, Error, KernelSocket, MemoryRegion, QueuePair, QueuePairCounters, Registers, Stats, discover,
};

use super::metrics;

/// Devices on a wire.
pub(super) struct Fleet {
    wire: WireDir,
    /// Names and addresses; none for all that are on the wire.
    wanted: Vec<String>,
    timeout: Duration,
    /// Looks that failed, by device. Held while devices are asked: each answers one look at a time.
    errors: Mutex<BTreeMap<String, u64>>,
}

/// One look at a device.
pub(super) struct Look {
    /// Its name, or what it is called on the command line if no device is called so.
    pub(super) device: String,
    /// How long it took.
    pub(super) took: Duration,
    /// Looks at it that failed so far.
    pub(super) errors: u64,
    /// What was seen.
    pub(super) seen: Result<Seen, Error>,
}

/// What a device answered.
pub(super) struct Seen {
    pub(super) identity: Descriptor,
    pub(super) stats: Stats,
    pub(super) pairs: Vec<QueuePair>,
    pub(super) pair_counters: Vec<QueuePairCounters>,
    pub(super) regions: Vec<MemoryRegion>,
    pub(super) kernels: Vec<KernelSocket>,
    /// By the number of the socket; of a device that has registers of sockets.
    pub(super) sockets: Vec<Socket>,
    /// What was measured of calls, and by which clock.
    pub(super) times: Option<(Histograms, Times)>,
    /// Of its board; none of a device without the block.
    pub(super) sensors: Vec<Sensor>,
}

/// What the registers of a socket say.
pub(super) struct Socket {
    pub(super) busy: bool,
    pub(super) jobs: u32,
    pub(super) timeouts: u32,
}

impl Fleet {
    /// Of the devices that have these names or addresses, or of all. Each has `timeout` for all its answers together.
    pub(super) fn new(wire: WireDir, wanted: Vec<String>, timeout: Duration) -> Self {
        Self { wire, wanted, timeout, errors: Mutex::default() }
    }

    /// Looks at all devices in parallel, and gives what they say as Prometheus reads it.
    ///
    /// # Errors
    /// If two devices say what cannot be told in one text.
    pub(super) fn scrape(&self) -> Result<String, prometheus::Error> {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let mut looks: Vec<Look> = thread::scope(|scope| {
            let running: Vec<_> = self.names().into_iter().map(|name| scope.spawn(|| self.look(name))).collect();
            running.into_iter().filter_map(|look| look.join().ok()).collect()
        });
        for look in &mut looks {
            let failed = errors.entry(look.device.clone()).or_default();
            *failed += u64::from(look.seen.is_err());
            look.errors = *failed;
        }
        metrics::text(&looks)
    }

    /// Each device once, also if it is meant by its name and by its address.
    fn names(&self) -> Vec<String> {
        let published = discover::published(&self.wire);
        let called = |wanted: &String| {
            let is_it = |one: &&Descriptor| one.name == *wanted || Ok(one.ip) == wanted.parse();
            published.iter().find(is_it).map_or_else(|| wanted.clone(), |one| one.name.clone())
        };
        let mut names: Vec<String> = match &self.wanted[..] {
            [] => published.iter().map(|one| one.name.clone()).collect(),
            wanted => wanted.iter().map(called).collect(),
        };
        names.sort();
        names.dedup();
        names
    }

    fn look(&self, device: String) -> Look {
        let begin = Instant::now();
        let seen = self.ask(&device, begin + self.timeout);
        Look { device, took: begin.elapsed(), errors: 0, seen }
    }

    fn ask(&self, device: &str, deadline: Instant) -> Result<Seen, Error> {
        let mut control = Control::open(&self.wire, device)?;
        control.answer_by(deadline);
        let identity = control.info()?;
        let blocks = blocks(&mut control)?;
        let sockets = sockets(&mut control, &blocks)?;
        let times = times(&mut control, &blocks)?;
        let sensors = board(&mut control, &blocks)?;
        let pairs = control.queue_pairs()?;
        let pair_counters = if pairs.is_empty() { Vec::new() } else { control.queue_pair_counters(None)? };
        Ok(Seen {
            stats: control.stats()?,
            pairs,
            pair_counters,
            regions: control.regions()?,
            kernels: control.kernels()?,
            identity,
            sockets,
            times,
            sensors,
        })
    }
}

fn blocks(control: &mut Control) -> Result<Vec<Found>, Error> {
    Chain::new(control).collect::<Result<Vec<_>, _>>().map_err(|error| match error {
        ChainError::Access { error, .. } => error,
        wrong => Error::Management { name: "device".into(), why: wrong.to_string() },
    })
}

fn board(control: &mut Control, blocks: &[Found]) -> Result<Vec<Sensor>, Error> {
    let Some(found) = blocks.iter().find(|found| found.is_a(&sensors::BLOCK)) else { return Ok(Vec::new()) };
    Sensors::at(control, found.address)?.read(control)
}

fn times(control: &mut Control, blocks: &[Found]) -> Result<Option<(Histograms, Times)>, Error> {
    let Some(found) = blocks.iter().find(|found| found.is_a(&histograms::BLOCK)) else { return Ok(None) };
    let histograms = Histograms::at(control, found.address)?;
    Ok(Some((histograms, histograms.read(control)?)))
}

fn sockets(control: &mut Control, blocks: &[Found]) -> Result<Vec<Socket>, Error> {
    let sockets = blocks.iter().filter(|found| found.is_a(&socket::BLOCK));
    let registers = [socket::STATUS, socket::JOBS, socket::TIMEOUTS];
    let addresses: Vec<u32> = sockets.flat_map(|found| registers.map(|register| register.at(found.address))).collect();
    let words = control.read_all(&addresses)?;
    let socket = |[status, jobs, timeouts]: &[u32; 3]| Socket {
        busy: socket::STATUS_BUSY.of(*status) == 1,
        jobs: *jobs,
        timeouts: *timeouts,
    };
    Ok(words.as_chunks().0.iter().map(socket).collect())
}
