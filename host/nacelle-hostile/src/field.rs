// SPDX-License-Identifier: Apache-2.0
//! The device of a campaign, on a wire of its own, in a slot that the seed decides; beside it the peer and the station, in threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use nacelle_device::{Host, Place, RtlEngine, SimConfig, SimLibrary, SlotSettings};
use nacelle_link::{SwitchHost, VirtualWire, WireDir};
use nacelle_manage::{Control, DeviceKind, Stats};
use nacelle_wire::MacAddr;

use crate::Failure;
use crate::honest::{self, Seen};

/// How long the model's host waits for a register, in its own time.
const HOST_TIMEOUT_US: u32 = 1000;
/// Of a million reads of host memory, so many go wrong in each way.
const CHANCE_PPM: u32 = 2000;

/// Whether things go wrong by chance in the slot of this seed.
pub(crate) fn has_chance(seed: u64) -> bool {
    seed % 4 == 3
}

/// The slot of a seed: as it is by default; slow and out of order; with little room; with answers that are wrong or lost.
fn settings(seed: u64) -> SlotSettings {
    let usual = SlotSettings { host_timeout_us: HOST_TIMEOUT_US, random_seed: seed, ..SlotSettings::default() };
    let slow =
        SlotSettings { jitter_ns: 400, reorder: 1, split: 2, tail_ppm: 5000, tail_ns: 5000, iommu_entries: 8, ..usual };
    match seed % 4 {
        1 => usual,
        2 => slow,
        3 => SlotSettings {
            unsupported_ppm: CHANCE_PPM,
            abort_ppm: CHANCE_PPM,
            poison_ppm: CHANCE_PPM,
            loss_ppm: CHANCE_PPM,
            fault_aborts: 1,
            ..slow
        },
        _ => SlotSettings {
            mps: 128,
            mrrs: 128,
            tags: 8,
            posted_headers: 2,
            posted_data: 32,
            non_posted_headers: 2,
            credit_stall_ns: 500,
            credit_stall_every_ns: 3000,
            ..slow
        },
    }
}

/// A thread that ends with an error if something is wrong.
type Task = JoinHandle<Result<(), Failure>>;

fn joined(task: Task) -> Result<(), Failure> {
    task.join().unwrap_or_else(|_| Err(Failure::Device("a thread has panicked".into())))
}

/// All that is there for the rounds of a campaign.
pub(crate) struct Field {
    pub(crate) slot: PathBuf,
    pub(crate) card: PathBuf,
    pub(crate) card_mac: [u8; 6],
    pub(crate) partner: VirtualWire,
    pub(crate) seen: Arc<Seen>,
    place: Place,
    stop: Arc<AtomicBool>,
    device: Option<Task>,
    /// The peer and the station.
    beside: Vec<Task>,
    _temp: tempfile::TempDir,
}

/// Runs the device until it is told to stop.
fn device(
    library: &Path,
    [slot, card]: [&Path; 2],
    place: &Place,
    seed: u64,
    ready: &Sender<()>,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let failed = |error: nacelle_device::DeviceError| Failure::Device(error.to_string());
    let library = SimLibrary::load(library).map_err(failed)?;
    let config = SimConfig { random_seed: seed, ..SimConfig::default() };
    let mut engine = RtlEngine::new(&library, &config).map_err(failed)?;
    engine.sim().set_slot(&settings(seed)).map_err(failed)?;
    let mac = place.identity.mac;
    let engine = engine.with_slot(slot, mac).and_then(|engine| engine.with_network_slot(card, mac)).map_err(failed)?;
    let lost = |error: nacelle_link::LinkError| Failure::Device(error.to_string());
    let _switch = SwitchHost::start(&place.wire).map_err(lost)?;
    let link = Box::new(VirtualWire::join(&place.wire, &place.name).map_err(lost)?);
    let mut host = Host::new(engine, place, link, seed as u32).map_err(failed)?;
    let _ = ready.send(());
    host.run(stop).map_err(lost)?;
    host.engine().sim().slot_violation().map_or(Ok(()), |rule| Err(Failure::Device(rule)))
}

impl Field {
    pub(crate) fn new(library: &Path, seed: u64) -> Result<Self, Failure> {
        let wrong = |error: &dyn std::fmt::Display| Failure::Device(error.to_string());
        let temp = tempfile::tempdir()?;
        let wire = WireDir::open(temp.path().join("wire")).map_err(|error| wrong(&error))?;
        let place = Place::find(&wire, DeviceKind::Rtl, None, None).map_err(|error| wrong(&error))?;
        let [slot, card] = ["slot", "card"].map(|name| temp.path().join(name));
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, started) = channel();
        let task = std::thread::spawn({
            let (library, slot, card) = (library.to_owned(), slot.clone(), card.clone());
            let (place, stop) = (place.clone(), Arc::clone(&stop));
            move || device(&library, [&slot, &card], &place, seed, &ready, &stop)
        });
        if started.recv().is_err() {
            return Err(joined(task).err().unwrap_or_else(|| Failure::Device("it has not begun".into())));
        }
        let MacAddr(card_mac) = place.identity.network_card_mac();
        let join = |name| VirtualWire::join(&wire, name).map_err(|error| wrong(&error));
        let (partner, station) = (join("partner")?, join("station")?);
        let seen = Arc::new(Seen::default());
        let ip = place.identity.ip;
        let peer = std::thread::spawn({
            let seen = Arc::clone(&seen);
            move || honest::peer(&wire, ip, seed, &seen)
        });
        let station = std::thread::spawn({
            let seen = Arc::clone(&seen);
            move || honest::station(station, card_mac, seed, &seen)
        });
        let beside = vec![peer, station];
        Ok(Self { slot, card, card_mac, partner, seen, place, stop, device: Some(task), beside, _temp: temp })
    }

    /// Whether the device, the peer or the station has given up.
    pub(crate) fn look(&mut self) -> Result<(), Failure> {
        if let Some(device) = self.device.take_if(|device| device.is_finished()) {
            joined(device)?;
            return Err(Failure::Device("it has ended".into()));
        }
        while let Some(at) = self.beside.iter().position(JoinHandle::is_finished) {
            joined(self.beside.swap_remove(at))?;
        }
        Ok(())
    }

    /// What the device has counted.
    pub(crate) fn stats(&self) -> Result<Stats, Failure> {
        let asked = Control::open(&self.place.wire, &self.place.name).and_then(|mut control| control.stats());
        asked.map_err(|error| Failure::Device(error.to_string()))
    }

    /// Ends all, first the well-behaved.
    pub(crate) fn end(mut self) -> Result<(), Failure> {
        self.seen.stop.store(true, Ordering::Relaxed);
        let beside = std::mem::take(&mut self.beside).into_iter().try_for_each(joined);
        self.stop.store(true, Ordering::Relaxed);
        let device = self.device.take().map_or(Ok(()), joined);
        beside.and(device)
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        self.seen.stop.store(true, Ordering::Relaxed);
        self.stop.store(true, Ordering::Relaxed);
        for task in self.beside.drain(..).chain(self.device.take()) {
            let _ = task.join();
        }
    }
}
