// SPDX-License-Identifier: Apache-2.0
//! The simulated device's library behind a safe interface: with what is below it the only place with unsafe code in this crate.
//!
//! The library is loaded at run time, so this crate builds where there is no simulator. `sim/nacelle_sim.h` says what each
//! function does; the structures here are laid out as there.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::rc::Rc;

use libloading::Library;
use rustc_hash::FxHashMap;

use crate::DeviceError;
use crate::loading::reason;

mod line;
mod slot;

pub(crate) use line::Pair;
pub use line::{LineConfig, LineStats};
pub use slot::{SlotAnswer, SlotFacts, SlotInterrupt, SlotMessage, SlotSettings, SlotSpace, SlotStats, Unmapped};

/// The ABI of this wrapper (`NACELLE_SIM_ABI`).
const ABI: u32 = 7;
/// Room for the sentence that says why a device could not be made, in bytes.
const ERROR_SIZE: usize = 512;

/// What a library was built as (`nacelle_sim_info`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimInfo {
    /// The library's ABI.
    pub abi: u32,
    /// Width of the data path, in bits.
    pub data_w: u32,
    /// The clock at which cycles are converted to time, in Hz.
    pub clock_hz: u32,
    /// Longest Ethernet frame taken, in bytes.
    pub max_frame: u32,
    /// Device memory, in bytes.
    pub dram_bytes: u64,
}

/// Bits of a memory that flip by themselves (`nacelle_sim_faults`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryFaults {
    /// Chance that a bit of a word has flipped, in millionths of the beats read.
    pub one_ppm: u32,
    /// The same for two bits of a word.
    pub two_ppm: u32,
    /// Not 0: the memory's controller corrects by itself.
    pub controller_ecc: u32,
}

/// How a simulated device is made. `None` and 0 select the library's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimConfig {
    /// Ethernet rate model, in Mbit/s; `u32::MAX`: no limit, one beat a cycle.
    pub line_rate_mbps: u32,
    /// DRAM latency, in device cycles.
    pub dram_latency_cycles: u32,
    /// DRAM bandwidth, in bytes a cycle in each direction.
    pub dram_bytes_per_cycle: u32,
    /// Seeds the model's own randomness.
    pub random_seed: u64,
    /// What goes wrong in each memory.
    pub faults: MemoryFaults,
    /// Where to write an FST waveform.
    pub wave: Option<PathBuf>,
}

/// When a frame crossed the MAC interface, in device cycles (`nacelle_sim_stamp`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Cycle of the first beat.
    pub first_beat: u64,
    /// Cycle of the last beat.
    pub last_beat: u64,
}

/// What the model counted (`nacelle_sim_stats`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimStats {
    /// Device time: cycles simulated and skipped.
    pub cycles: u64,
    /// Cycles simulated.
    pub cycles_simulated: u64,
    /// Frames into the device.
    pub rx_frames: u64,
    /// Bytes of those.
    pub rx_bytes: u64,
    /// Frames out of the device.
    pub tx_frames: u64,
    /// Bytes of those.
    pub tx_bytes: u64,
    /// Cycles between the first and last beat of a sent frame without a beat.
    pub tx_idle_beats: u64,
    /// DRAM read commands.
    pub dram_reads: u64,
    /// Bytes of those.
    pub dram_read_bytes: u64,
    /// DRAM write commands.
    pub dram_writes: u64,
    /// Bytes of those.
    pub dram_write_bytes: u64,
    /// Cycle of the newest read command.
    pub dram_last_read: u64,
    /// Cycle of the newest beat written.
    pub dram_last_write: u64,
    /// Bits of DRAM that have flipped.
    pub dram_flips: u64,
}

/// `nacelle_sim_config`.
#[repr(C)]
struct RawConfig {
    abi: u32,
    line_rate_mbps: u32,
    dram_latency_cycles: u32,
    dram_bytes_per_cycle: u32,
    random_seed: u64,
    wave_path: *const c_char,
}

/// `nacelle_sim`, opaque.
#[repr(C)]
struct RawSim {
    _opaque: [u8; 0],
}

/// The library's functions, each with the type that the header gives it.
struct Functions {
    get_info: unsafe extern "C" fn(*mut SimInfo),
    create: unsafe extern "C" fn(*const RawConfig, *mut c_char, usize) -> *mut RawSim,
    destroy: unsafe extern "C" fn(*mut RawSim),
    step: unsafe extern "C" fn(*mut RawSim, u64, c_int) -> u64,
    idle: unsafe extern "C" fn(*const RawSim) -> c_int,
    skip: unsafe extern "C" fn(*mut RawSim, u64) -> u64,
    push_frame: unsafe extern "C" fn(*mut RawSim, *const u8, usize) -> c_int,
    pop_rx_stamp: unsafe extern "C" fn(*mut RawSim, *mut Stamp) -> c_int,
    pull_frame: unsafe extern "C" fn(*mut RawSim, *mut u8, usize, *mut Stamp) -> i64,
    reg_read: unsafe extern "C" fn(*mut RawSim, u32, *mut u32) -> c_int,
    reg_write: unsafe extern "C" fn(*mut RawSim, u32, u32) -> c_int,
    dram_read: unsafe extern "C" fn(*mut RawSim, u64, *mut c_void, usize) -> c_int,
    dram_write: unsafe extern "C" fn(*mut RawSim, u64, *const c_void, usize) -> c_int,
    set_faults: unsafe extern "C" fn(*mut RawSim, u32, *const MemoryFaults) -> c_int,
    get_stats: unsafe extern "C" fn(*const RawSim, *mut SimStats),
    slot: slot::Functions,
    line: line::LineFunctions,
    // Last, so that the code outlives the pointers into it.
    _library: Library,
}

/// A loaded library of the simulated device.
#[derive(Clone)]
pub struct SimLibrary {
    functions: Rc<Functions>,
    info: SimInfo,
    path: PathBuf,
}

impl SimLibrary {
    /// Loads a library and checks that it has this ABI.
    ///
    /// # Errors
    /// [`DeviceError::Library`] if there is none, or it is something else.
    pub fn load(path: &Path) -> Result<Self, DeviceError> {
        let failed = |why: String| DeviceError::Library { path: path.to_owned(), why };
        if !path.is_file() {
            return Err(failed("there is no such file".into()));
        }
        let path = path.canonicalize().map_err(|error| failed(error.to_string()))?;
        // SAFETY: the user names this file to be run as the device; its initialisers are those of a Verilated model, which
        // only set up its own data. The types below are those of the header, whose version is checked before any call
        // that could depend on it.
        let functions = unsafe {
            let library = Library::new(&path).map_err(|error| failed(reason(&error)))?;
            macro_rules! symbol {
                ($name:literal) => {
                    *library.get($name).map_err(|error| failed(reason(&error)))?
                };
            }
            Functions {
                get_info: symbol!(b"nacelle_sim_get_info\0"),
                create: symbol!(b"nacelle_sim_create\0"),
                destroy: symbol!(b"nacelle_sim_destroy\0"),
                step: symbol!(b"nacelle_sim_step\0"),
                idle: symbol!(b"nacelle_sim_idle\0"),
                skip: symbol!(b"nacelle_sim_skip\0"),
                push_frame: symbol!(b"nacelle_sim_push_frame\0"),
                pop_rx_stamp: symbol!(b"nacelle_sim_pop_rx_stamp\0"),
                pull_frame: symbol!(b"nacelle_sim_pull_frame\0"),
                reg_read: symbol!(b"nacelle_sim_reg_read\0"),
                reg_write: symbol!(b"nacelle_sim_reg_write\0"),
                dram_read: symbol!(b"nacelle_sim_dram_read\0"),
                dram_write: symbol!(b"nacelle_sim_dram_write\0"),
                set_faults: symbol!(b"nacelle_sim_set_faults\0"),
                get_stats: symbol!(b"nacelle_sim_get_stats\0"),
                slot: slot::Functions::of(&library).map_err(|error| failed(reason(&error)))?,
                line: line::LineFunctions::of(&library).map_err(|error| failed(reason(&error)))?,
                _library: library,
            }
        };
        let mut info = SimInfo::default();
        // SAFETY: `info` is a whole nacelle_sim_info, written only during the call.
        unsafe { (functions.get_info)(&raw mut info) };
        if info.abi != ABI {
            return Err(failed(format!("it has ABI {}, this program has ABI {ABI}", info.abi)));
        }
        Ok(Self { functions: Rc::new(functions), info, path })
    }

    /// What the library was built as.
    #[must_use]
    pub fn info(&self) -> SimInfo {
        self.info
    }

    /// The library's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a device, in reset and not configured.
    ///
    /// # Errors
    /// [`DeviceError::Create`] with the library's own sentence.
    pub fn create(&self, config: &SimConfig) -> Result<Sim, DeviceError> {
        let wave = match &config.wave {
            Some(path) => Some(
                CString::new(path.as_os_str().as_bytes())
                    .map_err(|_| DeviceError::Create { why: "the waveform's path contains a zero byte".into() })?,
            ),
            None => None,
        };
        let raw = RawConfig {
            abi: ABI,
            line_rate_mbps: config.line_rate_mbps,
            dram_latency_cycles: config.dram_latency_cycles,
            dram_bytes_per_cycle: config.dram_bytes_per_cycle,
            random_seed: config.random_seed,
            wave_path: wave.as_ref().map_or(std::ptr::null(), |path| path.as_ptr()),
        };
        let mut error = [0u8; ERROR_SIZE];
        // SAFETY: `raw`, the path in it and `error` live through the call, and the size passed is that of `error`.
        let sim = unsafe { (self.functions.create)(&raw const raw, error.as_mut_ptr().cast(), error.len()) };
        let Some(sim) = NonNull::new(sim) else {
            return Err(DeviceError::Create { why: slot::text(&error) });
        };
        let mut sim = Sim { sim, messages: FxHashMap::default(), functions: Rc::clone(&self.functions) };
        if config.faults != MemoryFaults::default() {
            if !sim.set_faults(0, &config.faults) {
                let why = "its memory's controller cannot correct what the device itself keeps by a code".into();
                return Err(DeviceError::Create { why });
            }
            let mut memory = 1;
            while sim.set_faults(memory, &config.faults) {
                memory += 1;
            }
        }
        Ok(sim)
    }
}

/// What ends a step before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Nothing.
    Never,
    /// The device has sent a frame, or is idle.
    Frame,
    /// It has sent a frame, or is idle, or something of its slot waits: an answer, an interrupt, a message, a fault.
    FrameOrSlot,
}

impl Stop {
    /// `NACELLE_SIM_STOP_SLOT`
    const SLOT: c_int = 2;

    /// `NACELLE_SIM_STOP_FRAME`, `NACELLE_SIM_STOP_SLOT`, `NACELLE_SIM_STOP_IDLE`.
    const fn bits(self) -> c_int {
        match self {
            Self::Never => 0,
            Self::Frame => 1 | 4,
            Self::FrameOrSlot => 1 | Self::SLOT | 4,
        }
    }
}

/// Why a frame was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushError {
    /// It is empty or longer than the device takes.
    Length,
    /// As many frames wait as can.
    Full,
}

/// One simulated device. Time passes in it only inside its functions.
pub struct Sim {
    sim: NonNull<RawSim>,
    /// Messages of the slot that are not answered, and how long each is.
    messages: FxHashMap<u64, usize>,
    functions: Rc<Functions>,
}

// SAFETY of every call below: `self.sim` came from this library's create() and is destroyed only in drop(), so it is a live
// device; it is not Sync, and functions that change it take `&mut self`, so there is one caller at a time. Pointers that are
// passed come from references or slices, with their own lengths, and the library keeps none beyond the call.
impl Sim {
    /// Runs until `cycles` have passed, or something has happened that stops it. Returns the cycles that passed.
    pub fn step(&mut self, cycles: u64, stop: Stop) -> u64 {
        // SAFETY: see above.
        unsafe { (self.functions.step)(self.sim.as_ptr(), cycles, stop.bits()) }
    }

    /// True if only timers can change the device's state.
    #[must_use]
    pub fn idle(&self) -> bool {
        // SAFETY: see above.
        unsafe { (self.functions.idle)(self.sim.as_ptr()) != 0 }
    }

    /// Lets device time pass at once, if idle. Returns the cycles that passed.
    pub fn skip(&mut self, cycles: u64) -> u64 {
        // SAFETY: see above.
        unsafe { (self.functions.skip)(self.sim.as_ptr(), cycles) }
    }

    /// Queues a frame for the device.
    ///
    /// # Errors
    /// [`PushError`] if it was not taken.
    pub fn push_frame(&mut self, frame: &[u8]) -> Result<(), PushError> {
        // SAFETY: see above.
        match unsafe { (self.functions.push_frame)(self.sim.as_ptr(), frame.as_ptr(), frame.len()) } {
            0 => Ok(()),
            -2 => Err(PushError::Full),
            _ => Err(PushError::Length),
        }
    }

    /// When the oldest pushed frame not yet reported entered the device, if it has.
    pub fn pop_rx_stamp(&mut self) -> Option<Stamp> {
        let mut stamp = Stamp::default();
        // SAFETY: see above.
        let entered = unsafe { (self.functions.pop_rx_stamp)(self.sim.as_ptr(), &raw mut stamp) } != 0;
        entered.then_some(stamp)
    }

    /// Takes the oldest frame that the device sent: its length and when it left. `None` if there is none that fits.
    pub fn pull_frame(&mut self, buffer: &mut [u8]) -> Option<(usize, Stamp)> {
        let mut stamp = Stamp::default();
        // SAFETY: see above.
        let length = unsafe {
            (self.functions.pull_frame)(self.sim.as_ptr(), buffer.as_mut_ptr(), buffer.len(), &raw mut stamp)
        };
        usize::try_from(length).ok().filter(|length| *length > 0).map(|length| (length.min(buffer.len()), stamp))
    }

    /// Reads a register.
    ///
    /// # Errors
    /// [`DeviceError::Register`] if the device answers with an error.
    pub fn reg_read(&mut self, address: u32) -> Result<u32, DeviceError> {
        let mut value = 0;
        // SAFETY: see above.
        match unsafe { (self.functions.reg_read)(self.sim.as_ptr(), address, &raw mut value) } {
            0 => Ok(value),
            _ => Err(DeviceError::Register { address }),
        }
    }

    /// Writes a register.
    ///
    /// # Errors
    /// [`DeviceError::Register`] if the device answers with an error.
    pub fn reg_write(&mut self, address: u32, value: u32) -> Result<(), DeviceError> {
        // SAFETY: see above.
        match unsafe { (self.functions.reg_write)(self.sim.as_ptr(), address, value) } {
            0 => Ok(()),
            _ => Err(DeviceError::Register { address }),
        }
    }

    /// Reads device memory by the back door.
    ///
    /// # Errors
    /// [`DeviceError::Memory`] if the range is outside of it.
    pub fn dram_read(&mut self, address: u64, data: &mut [u8]) -> Result<(), DeviceError> {
        // SAFETY: see above.
        match unsafe { (self.functions.dram_read)(self.sim.as_ptr(), address, data.as_mut_ptr().cast(), data.len()) } {
            0 => Ok(()),
            _ => Err(DeviceError::Memory { address, length: data.len() }),
        }
    }

    /// Writes device memory by the back door.
    ///
    /// # Errors
    /// [`DeviceError::Memory`] if the range is outside of it.
    pub fn dram_write(&mut self, address: u64, data: &[u8]) -> Result<(), DeviceError> {
        // SAFETY: see above.
        match unsafe { (self.functions.dram_write)(self.sim.as_ptr(), address, data.as_ptr().cast(), data.len()) } {
            0 => Ok(()),
            _ => Err(DeviceError::Memory { address, length: data.len() }),
        }
    }

    /// Sets what goes wrong in a memory from now on. False if there is no such memory, or if its controller shall correct what the
    /// device corrects.
    pub fn set_faults(&mut self, memory: u32, faults: &MemoryFaults) -> bool {
        // SAFETY: see above.
        unsafe { (self.functions.set_faults)(self.sim.as_ptr(), memory, faults) == 0 }
    }

    /// What the model counted so far.
    #[must_use]
    pub fn stats(&self) -> SimStats {
        let mut stats = SimStats::default();
        // SAFETY: see above.
        unsafe { (self.functions.get_stats)(self.sim.as_ptr(), &raw mut stats) };
        stats
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        // SAFETY: the device is live, and cannot be used after this.
        unsafe { (self.functions.destroy)(self.sim.as_ptr()) };
    }
}
