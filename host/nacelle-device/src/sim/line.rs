// SPDX-License-Identifier: Apache-2.0
//! Two simulated devices on a line, as the library has it (docs/reference/simulated-device.md): a cycle of one is a cycle of the other.

use std::ffi::{c_char, c_int};
use std::ptr::NonNull;
use std::rc::Rc;

use libloading::Library;

use super::{ABI, ERROR_SIZE, Functions, RawSim, Sim, Stop, slot};
use crate::DeviceError;

/// `nacelle_sim_line`, opaque.
#[repr(C)]
pub(super) struct RawLine {
    _opaque: [u8; 0],
}

/// `nacelle_sim_line_config`
#[repr(C)]
#[derive(Default)]
pub(super) struct RawConfig {
    abi: u32,
    delay_cycles: u32,
    rate_mbps: u32,
    queue_bytes: u32,
    mark_bytes: u32,
    loss_ppm: u32,
    corrupt_ppm: u32,
    duplicate_ppm: u32,
    reorder_ppm: u32,
    reorder_cycles: u32,
    random_seed: u64,
}

/// What happens to the frames between two devices, in both directions alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineConfig {
    /// From the last beat out of one device to the first into the other, in cycles.
    pub delay_cycles: u32,
    /// Of a switch in the middle, which holds frames back, in Mbit/s; 0: there is none.
    pub rate_mbps: u32,
    /// Frames that are lost by chance, in millionths.
    pub loss_ppm: u32,
    /// Of that chance.
    pub random_seed: u64,
}

/// What has happened to the frames of one direction (`nacelle_sim_line_stats`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineStats {
    /// Frames that a device has sent.
    pub sent: u64,
    /// Those that were lost by chance.
    pub lost: u64,
    /// Those that were damaged.
    pub corrupted: u64,
    /// Those that came twice.
    pub duplicated: u64,
    /// Those that came late.
    pub delayed: u64,
    /// Those for which the switch had no room.
    pub overflowed: u64,
    /// Those that the switch has marked.
    pub marked: u64,
}

/// The library's functions for a line.
pub(super) struct LineFunctions {
    create: unsafe extern "C" fn(*mut RawSim, *mut RawSim, *const RawConfig, *mut c_char, usize) -> *mut RawLine,
    destroy: unsafe extern "C" fn(*mut RawLine),
    run: unsafe extern "C" fn(*mut RawLine, u64, c_int) -> u64,
    get_stats: unsafe extern "C" fn(*const RawLine, c_int, *mut LineStats),
}

impl LineFunctions {
    /// Those of a library.
    ///
    /// # Safety
    /// It is one of the simulated device.
    pub(super) unsafe fn of(library: &Library) -> Result<Self, libloading::Error> {
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: by the contract of this function; the types are those of the header.
                *unsafe { library.get($name) }?
            };
        }
        Ok(Self {
            create: symbol!(b"nacelle_sim_line_create\0"),
            destroy: symbol!(b"nacelle_sim_line_destroy\0"),
            run: symbol!(b"nacelle_sim_line_run\0"),
            get_stats: symbol!(b"nacelle_sim_line_get_stats\0"),
        })
    }
}

/// Two devices on a line.
pub(crate) struct Pair {
    line: NonNull<RawLine>,
    functions: Rc<Functions>,
    sims: [Sim; 2],
}

// SAFETY of every call below: the line came from this library's create() and is destroyed in drop(), before the devices on it. These are in
// this value alone, which is not Sync and whose functions take `&mut self`: while one of them runs, or a device is borrowed, which may
// step the other one too, nobody has a reference to either's model.
impl Pair {
    /// Joins two devices of one library.
    ///
    /// # Errors
    /// [`DeviceError::Create`] with the library's own sentence.
    pub(crate) fn join(mut sims: [Sim; 2], config: &LineConfig) -> Result<Self, DeviceError> {
        // A line is for devices of the same age.
        let ages = [sims[0].stats().cycles, sims[1].stats().cycles];
        sims[usize::from(ages[1] < ages[0])].step(ages[0].abs_diff(ages[1]), Stop::Never);
        let raw = RawConfig {
            abi: ABI,
            delay_cycles: config.delay_cycles.saturating_sub(1),
            rate_mbps: config.rate_mbps,
            loss_ppm: config.loss_ppm,
            random_seed: config.random_seed,
            ..RawConfig::default()
        };
        let mut error = [0u8; ERROR_SIZE];
        let functions = Rc::clone(&sims[0].functions);
        let [a, b] = [&sims[0], &sims[1]].map(|sim| sim.sim.as_ptr());
        // SAFETY: see above; `raw` and `error` live through the call, and the size passed is that of `error`.
        let line = unsafe { (functions.line.create)(a, b, &raw const raw, error.as_mut_ptr().cast(), ERROR_SIZE) };
        match NonNull::new(line) {
            Some(line) => Ok(Self { line, functions, sims }),
            None => Err(DeviceError::Create { why: slot::text(&error) }),
        }
    }

    /// One of them, which must not be replaced by another.
    pub(crate) fn device(&mut self, number: usize) -> &mut Sim {
        &mut self.sims[number]
    }

    /// Cycles that have passed.
    pub(crate) fn cycles(&self) -> u64 {
        self.sims[0].stats().cycles
    }

    /// Runs until `cycles` have passed, or something of a slot waits. Idle time is skipped; timers that are due in it fire at its end.
    pub(crate) fn run(&mut self, cycles: u64) -> u64 {
        // SAFETY: see above.
        unsafe { (self.functions.line.run)(self.line.as_ptr(), cycles, Stop::SLOT) }
    }

    /// What has happened to the frames of a device.
    pub(crate) fn line_stats(&self, from: usize) -> LineStats {
        let mut stats = LineStats::default();
        // SAFETY: see above; there are two directions.
        unsafe { (self.functions.line.get_stats)(self.line.as_ptr(), (from != 0).into(), &raw mut stats) };
        stats
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // SAFETY: see above; the devices are dropped after this.
        unsafe { (self.functions.line.destroy)(self.line.as_ptr()) };
    }
}
