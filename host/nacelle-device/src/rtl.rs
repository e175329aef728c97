// SPDX-License-Identifier: Apache-2.0
//! The simulated RTL as an [`Engine`]: its registers, its counters, and how its time passes.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nacelle_manage::images::ImageKey;
use nacelle_manage::map::{Register, device};
use nacelle_manage::{AddressMode, DeviceKind, Ipv6Mode};
use nacelle_wire::MacAddr;

use crate::{
    DeviceError, Engine, Facts, FrameEngine, Identity, PushError, Sim, SimConfig, SimLibrary, SlotSettings, Stamp,
    Stop, WakeFds,
};

mod kernels;
mod managed;
mod slot;
mod vhost;

use kernels::KernelTable;
use managed::ManagedTable;
pub(crate) use slot::NETWORK_CARD;
use slot::{DEVICE, Slot, model_counters};
use vhost::VhostCard;

/// The data path's width if none is asked for, in bits.
const DEFAULT_DATA_W: u32 = 512;
/// Cycles simulated in one go: 2.5 ms at 100 000 cycles a second.
const SLICE: u64 = 256;
/// An idle device is looked at this often, so that its timers fire not much later than they should.
const IDLE_WAKE: Duration = Duration::from_millis(50);

/// Finds the library of the simulated device: `named`, else `$NACELLE_SIM_LIBRARY`, else
/// `build/sim/libnacelle_sim_512.so` in the current directory, in the program's, or in one above them. With a `device` it is that of
/// `devices/DEVICE.toml`, `libnacelle_sim_512_DEVICE.so`; with `waves` the one that can write waveforms, `libnacelle_sim_512_waves.so`.
///
/// # Errors
/// [`DeviceError::NoLibrary`] if there is none.
pub fn find_library(named: Option<&Path>, device: &str, waves: bool) -> Result<PathBuf, DeviceError> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let standard = device.is_empty() && !waves;
    if let Some(path) = std::env::var_os("NACELLE_SIM_LIBRARY").filter(|path| !path.is_empty() && standard) {
        return Ok(path.into());
    }
    let parts = [device, if waves { "waves" } else { "" }];
    let suffix: String = parts.iter().filter(|part| !part.is_empty()).map(|part| format!("_{part}")).collect();
    let file = PathBuf::from(format!("build/sim/libnacelle_sim_{DEFAULT_DATA_W}{suffix}.so"));
    let here = std::env::current_dir().ok();
    let program = std::env::current_exe().ok();
    let starts = [here.as_deref(), program.as_deref()];
    let above = starts.iter().flatten().flat_map(|start| start.ancestors());
    above.map(|dir| dir.join(&file)).find(|path| path.is_file()).ok_or(DeviceError::NoLibrary { file })
}

/// A read of a BAR that the device does not answer is given up after so much device time; the 50 ms of the standard would be minutes
/// here.
const HOST_TIMEOUT_US: u32 = 1000;
/// A client of the slot that does not take what it is sent is looked at this often.
const SENDING_WAKE: Duration = Duration::from_millis(1);

/// What one caller (an IPv4 address), and one kernel, may have of the simulated RTL. 0 is no bound, `None` what the device begins
/// with (docs/reference/registers.md). The registers hold no more than what each field says; a larger bound is that one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Connections of a caller, at most 65535.
    pub connections_per_caller: Option<usize>,
    /// Memory of all its connections, in bytes, at most 1 TiB less 1 KiB; in whole KiB, and at least one.
    pub memory_per_caller: Option<u64>,
    /// Time of a kernel, at most 4.6 hours; in whole milliseconds, and at least one.
    pub kernel_time: Option<Duration>,
}

impl Bounds {
    /// The registers, and their values.
    fn settings(&self) -> impl Iterator<Item = (Register, u32)> {
        let settings = [
            (device::MAX_CONNECTIONS_PER_PEER, self.connections_per_caller.map(|count| count as u128)),
            (device::MEMORY_PER_CALLER, self.memory_per_caller.map(|bytes| bytes.div_ceil(1 << 10).into())),
            (device::KERNEL_TIMEOUT_MS, self.kernel_time.map(|time| time.as_nanos().div_ceil(1_000_000))),
        ];
        settings.into_iter().filter_map(|(register, value)| Some((register, value?.min(register.mask.into()) as u32)))
    }
}

/// The simulated RTL.
pub struct RtlEngine {
    sim: Sim,
    bounds: Bounds,
    address_mode: AddressMode,
    ipv6: Ipv6Mode,
    idle_speed: u32,
    image_key: Option<ImageKey>,
    facts: Facts,
    managed: ManagedTable,
    kernels: KernelTable,
    /// The functions that clients of vfio-user have.
    slots: Vec<Slot>,
    card: Option<VhostCard>,
}

impl RtlEngine {
    /// Makes a device from a library, in reset and not configured.
    ///
    /// # Errors
    /// [`DeviceError::Create`] if the library refuses; [`DeviceError::Identity`] if what it made is no device.
    pub fn new(library: &SimLibrary, config: &SimConfig) -> Result<Self, DeviceError> {
        let info = library.info();
        let facts = Facts {
            kind: DeviceKind::Rtl,
            data_w: info.data_w,
            clock_hz: info.clock_hz,
            memory_bytes: info.dram_bytes,
        };
        let mut sim = library.create(config)?;
        expect(&mut sim, device::TYPE, u32::from_be_bytes(device::BLOCK.kind))?;
        expect(&mut sim, device::VERSION, device::BLOCK.version)?;
        if sim.slot_facts(0).is_some() {
            sim.set_slot(&SlotSettings { host_timeout_us: HOST_TIMEOUT_US, ..SlotSettings::default() })?;
        }
        let managed = ManagedTable::new(&mut sim)?;
        Ok(Self {
            sim,
            bounds: Bounds::default(),
            address_mode: AddressMode::default(),
            ipv6: Ipv6Mode::default(),
            idle_speed: 1,
            image_key: None,
            facts,
            managed,
            kernels: KernelTable::default(),
            slots: Vec::new(),
            card: None,
        })
    }

    /// The same device with these bounds, from its configuration on.
    #[must_use]
    pub fn with_bounds(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// The same device with an address from there, from its configuration on.
    #[must_use]
    pub fn with_address_mode(self, address_mode: AddressMode) -> Self {
        Self { address_mode, ..self }
    }

    /// The same device with these IPv6 addresses, from its configuration on.
    #[must_use]
    pub fn with_ipv6(self, ipv6: Ipv6Mode) -> Self {
        Self { ipv6, ..self }
    }

    /// The same device with a clock that runs so many times as fast while it is idle: its timers fire so much earlier.
    #[must_use]
    pub fn with_idle_speed(self, idle_speed: u32) -> Self {
        Self { idle_speed, ..self }
    }

    /// The same device, which takes images of kernels that are signed with this key, from its configuration on.
    #[must_use]
    pub fn with_image_key(self, image_key: Option<ImageKey>) -> Self {
        Self { image_key, ..self }
    }

    /// The same device in a slot: clients of vfio-user find it at the socket `path`. Its serial number is made of the MAC address.
    ///
    /// # Errors
    /// [`DeviceError::Without`] if it was not built for a slot; [`DeviceError::Slot`] if another device is there, or the socket cannot
    /// be made.
    pub fn with_slot(mut self, path: &Path, mac: MacAddr) -> Result<Self, DeviceError> {
        self.slots.push(Slot::new(&mut self.sim, DEVICE, path, mac)?);
        Ok(self)
    }

    /// The same device, whose network card is a guest's: front ends of vhost-user (User-mode Linux, QEMU, DPDK) find it at the socket
    /// `path`. What they are refused is told to `tell`.
    ///
    /// # Errors
    /// [`DeviceError::Without`] if it was built without a card; [`DeviceError::Slot`] if another process listens there;
    /// [`DeviceError::Slot`] or [`DeviceError::Io`] if the socket cannot be made.
    pub fn with_vhost_user(mut self, path: &Path, mac: MacAddr, tell: fn(&str)) -> Result<Self, DeviceError> {
        self.card = Some(VhostCard::new(&mut self.sim, path, mac, tell)?);
        Ok(self)
    }

    /// The same device, whose network card, a PCI function of its own, is for clients of vfio-user: they find it at the socket `path`. Either
    /// this or [`with_vhost_user`](Self::with_vhost_user).
    ///
    /// # Errors
    /// As [`with_slot`](Self::with_slot).
    pub fn with_network_slot(mut self, path: &Path, mac: MacAddr) -> Result<Self, DeviceError> {
        self.slots.push(Slot::new(&mut self.sim, NETWORK_CARD, path, mac)?);
        Ok(self)
    }

    /// What its slot has counted, if it is in one; part of [`counters`](Engine::counters), at no cost in device time.
    pub fn slot_counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let model = (self.card.is_some() || !self.slots.is_empty()).then(|| model_counters(&self.sim));
        self.slots.iter().flat_map(Slot::counters).chain(model.into_iter().flatten())
    }

    /// The device itself and its clock, without what makes it one of a wire.
    pub(crate) fn into_sim(self) -> (Sim, u32) {
        (self.sim, self.facts.clock_hz)
    }

    /// The device itself, for tools that look deeper.
    pub fn sim(&mut self) -> &mut Sim {
        &mut self.sim
    }
}

fn expect(sim: &mut Sim, register: Register, value: u32) -> Result<(), DeviceError> {
    let address = register.at(device::BASE);
    match sim.reg_read(address)? {
        found if found == value => Ok(()),
        found => Err(DeviceError::Identity { address, value: found }),
    }
}

impl Engine for RtlEngine {
    fn facts(&self) -> Facts {
        self.facts
    }

    fn run(&mut self, now: Instant) {
        if !self.sim.idle() {
            let in_slot = !self.slots.is_empty() || self.card.is_some();
            self.sim.step(SLICE, if in_slot { Stop::FrameOrSlot } else { Stop::Frame });
        }
        // Behind the step: what it has left of the slot would not be seen by an idle device.
        for slot in &mut self.slots {
            slot.poll(&mut self.sim, now);
        }
        if let Some(card) = &mut self.card {
            card.poll(&mut self.sim, now);
        }
    }

    fn idle(&self) -> bool {
        self.sim.idle()
    }

    fn pass(&mut self, time: Duration) {
        let cycles = time.as_nanos() * u128::from(self.facts.clock_hz) * u128::from(self.idle_speed) / 1_000_000_000;
        self.sim.skip(cycles as u64);
    }

    fn wake_at(&self) -> Option<Instant> {
        let sending = self.slots.iter().any(Slot::is_sending) || self.card.as_ref().is_some_and(VhostCard::is_sending);
        Some(Instant::now() + if sending { SENDING_WAKE } else { IDLE_WAKE })
    }

    fn wake_fds(&self) -> WakeFds<'_> {
        let card = self.card.iter().flat_map(VhostCard::fds);
        self.slots.iter().flat_map(Slot::fds).chain(card).collect()
    }

    fn address(&mut self) -> Option<(Ipv4Addr, u8)> {
        if self.address_mode == AddressMode::Static {
            return None;
        }
        let mut read = |register: Register| self.sim.reg_read(register.at(device::BASE)).ok();
        Some((Ipv4Addr::from_bits(read(device::ADDRESS_IP)?), read(device::ADDRESS_PREFIX)? as u8))
    }

    fn cycles(&self) -> u64 {
        self.sim.stats().cycles
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, DeviceError> {
        let mut all = BTreeMap::new();
        for counter in device::BLOCK.registers.iter().filter(|register| register.counter) {
            all.insert(counter.name.to_owned(), u64::from(self.sim.reg_read(counter.at(device::BASE))?));
        }
        let stats = self.sim.stats();
        let model = [
            ("sim.cycles_simulated", stats.cycles_simulated),
            ("sim.rx_frames", stats.rx_frames),
            ("sim.rx_bytes", stats.rx_bytes),
            ("sim.tx_frames", stats.tx_frames),
            ("sim.tx_bytes", stats.tx_bytes),
            ("sim.tx_idle_beats", stats.tx_idle_beats),
            ("sim.dram_reads", stats.dram_reads),
            ("sim.dram_read_bytes", stats.dram_read_bytes),
            ("sim.dram_writes", stats.dram_writes),
            ("sim.dram_write_bytes", stats.dram_write_bytes),
        ];
        all.extend(model.map(|(name, value)| (name.to_owned(), value)));
        all.extend(self.slot_counters().map(|(name, value)| (name.to_owned(), value)));
        let card = self.card.iter().flat_map(VhostCard::counters);
        all.extend(card.map(|(name, value)| (name.to_owned(), value)));
        Ok(all)
    }
}

impl FrameEngine for RtlEngine {
    fn configure(&mut self, identity: &Identity, seed: u32) -> Result<(), DeviceError> {
        let ipv6_state = self.sim.reg_read(device::IPV6_STATE.at(device::BASE))?;
        if self.ipv6 != Ipv6Mode::Off && device::IPV6_STATE_BUILT.of(ipv6_state) == 0 {
            return Err(DeviceError::Without { what: "IPv6" });
        }
        let [a, b, c, d, e, f] = identity.mac.0;
        let gateway = identity.gateway.map_or(0, |ip| ip.to_bits());
        let settings = [
            (device::MAC_LO, u32::from_be_bytes([c, d, e, f])),
            (device::MAC_HI, u32::from_be_bytes([0, 0, a, b])),
            (device::IP, identity.ip.to_bits()),
            (device::PREFIX_LEN, u32::from(identity.prefix_len)),
            (device::GATEWAY, gateway),
            (device::ADDRESS_MODE, self.address_mode.into()),
            (device::RANDOM_SEED, seed),
        ];
        if let Some(key) = self.image_key.take() {
            self.set_image_key(&key)?;
        }
        let enable = [(device::CTRL, device::CTRL_ENABLE.mask())];
        let mut all = settings.into_iter().chain(self.ipv6.settings()).chain(self.bounds.settings()).chain(enable);
        all.try_for_each(|(register, value)| self.sim.reg_write(register.at(device::BASE), value))
    }

    fn push(&mut self, frame: &[u8]) -> Result<(), PushError> {
        self.sim.push_frame(frame)
    }

    fn rx_stamp(&mut self) -> Option<Stamp> {
        self.sim.pop_rx_stamp()
    }

    fn pull(&mut self, buffer: &mut [u8]) -> Option<(usize, Stamp)> {
        self.sim.pull_frame(buffer)
    }
}
