// SPDX-License-Identifier: Apache-2.0
//! The slot of a simulated device, as the library has it (docs/reference/slot-model.md). The caller is the host: it sets what
//! configuration space says, accesses BARs, answers accesses to memory, and takes interrupts.
//!
//! All memory is given without a pointer: each access of the device is a message, so that the library reaches no memory of this process.

use std::ffi::{c_char, c_int, c_void};

use libloading::Library;

use super::{ERROR_SIZE, RawSim, Sim};
use crate::DeviceError;

/// Longest payload of a TLP.
const LONGEST: usize = 4096;
/// Bytes that one access of the host reads at most.
const LONGEST_READ: usize = 64;

/// What the device has for a slot (`nacelle_sim_slot_facts`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlotFacts {
    /// Sizes of the BARs, all of 64 bits; 0: there is none.
    pub bar_bytes: [u64; 6],
    /// Vectors of MSI-X.
    pub vectors: u32,
    /// Where its table is, in BAR 0.
    pub msix_table: u32,
    /// Where its pending bits are.
    pub msix_pending: u32,
    reserved: u32,
}

/// What configuration space says (`nacelle_sim_slot_space`); not 0: on.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotSpace {
    /// Bus, device and function, from bit 15 on; not 0.
    pub id: u32,
    /// Longest payload, in bytes.
    pub mps: u32,
    /// Longest read request, in bytes.
    pub mrrs: u32,
    /// Read completion boundary, in bytes.
    pub rcb: u32,
    /// Tags have 8 bits.
    pub extended_tags: u32,
    /// BARs answer.
    pub memory_space: u32,
    /// Requests may be sent.
    pub bus_master: u32,
    /// MSI-X is on.
    pub msix_enable: u32,
    /// No vector is sent.
    pub msix_mask: u32,
}

/// How the slot is (`nacelle_sim_slot`); 0 is the default.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)] // docs/reference/slot-model.md has what each is
pub struct SlotSettings {
    pub generation: u32,
    pub lanes: u32,
    pub mps: u32,
    pub mrrs: u32,
    pub rcb: u32,
    pub tags: u32,
    pub request_bytes: u32,
    pub completion_bytes: u32,
    pub link_ns: u32,
    pub write_ns: u32,
    pub read_ns: u32,
    pub register_write_ns: u32,
    pub register_read_ns: u32,
    pub posted_headers: u32,
    pub posted_data: u32,
    pub non_posted_headers: u32,
    pub credit_stall_ns: u32,
    pub credit_stall_every_ns: u32,
    pub split: u32,
    pub jitter_ns: u32,
    pub reorder: u32,
    pub tail_ppm: u32,
    pub tail_ns: u32,
    pub iommu_entries: u32,
    pub iommu_miss_ns: u32,
    pub fault_aborts: u32,
    pub unsupported_ppm: u32,
    pub abort_ppm: u32,
    pub poison_ppm: u32,
    pub loss_ppm: u32,
    pub host_reads: u32,
    pub host_timeout_us: u32,
    pub reserved: u32,
    pub random_seed: u64,
}

/// How an access of the host has ended (`nacelle_sim_slot_answer`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotAnswer {
    /// What [`Sim::slot_read`] or [`Sim::slot_write`] has given.
    pub token: u64,
    /// Cycle at which it was asked for.
    pub issued: u64,
    /// Cycle at which it ended.
    pub finished: u64,
    /// 0, or why it failed: as in a completion (1 unsupported request, 4 completer abort), 16: none came, 17: it was poisoned.
    pub status: u32,
    length: u32,
    data: [u8; LONGEST_READ],
}

impl SlotAnswer {
    /// What was read.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.data[..(self.length as usize).min(LONGEST_READ)]
    }
}

/// An access of the device to memory (`nacelle_sim_slot_message`).
#[repr(C)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotMessage {
    /// For the answer.
    pub token: u64,
    /// The first byte.
    pub address: u64,
    length: u32,
    write: u32,
    data: [u8; LONGEST],
}

impl SlotMessage {
    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        (self.length as usize).min(LONGEST)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// What is written; `None`: it is a read.
    #[must_use]
    pub fn written(&self) -> Option<&[u8]> {
        (self.write != 0).then(|| &self.data[..self.len()])
    }
}

/// A message of the device that is an interrupt (`nacelle_sim_slot_interrupt`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlotInterrupt {
    /// Where.
    pub address: u64,
    /// What.
    pub data: u32,
    reserved: u32,
}

/// `nacelle_sim_slot_fault`
#[repr(C)]
#[derive(Default)]
pub(super) struct Fault {
    address: u64,
    length: u32,
    write: u32,
}

/// What the slot has counted (`nacelle_sim_slot_stats`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)] // sim/nacelle_sim.h has what each is
pub struct SlotStats {
    pub up_tlps: u64,
    pub up_bytes: u64,
    pub up_wire_bytes: u64,
    pub down_tlps: u64,
    pub down_bytes: u64,
    pub down_wire_bytes: u64,
    pub writes: u64,
    pub write_bytes: u64,
    pub reads: u64,
    pub read_bytes: u64,
    pub busy_cycles: u64,
    pub posted_dry_cycles: u64,
    pub non_posted_dry_cycles: u64,
    pub interrupts: u64,
    pub messages: u64,
    pub faults: u64,
    pub tlb_misses: u64,
    pub peer_tlps: u64,
    pub unsupported: u64,
    pub aborted: u64,
    pub poisoned: u64,
    pub lost: u64,
    pub violations: u64,
}

/// What became of memory that was taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmapped {
    /// The device cannot access it any more.
    Done,
    /// Messages of it wait for an answer: ask again.
    Busy,
    /// It was not given.
    Nothing,
}

/// The library's functions for a slot, each with the type that the header gives it.
pub(super) struct Functions {
    set: unsafe extern "C" fn(*mut RawSim, *const SlotSettings, *mut c_char, usize) -> c_int,
    get_facts: unsafe extern "C" fn(*mut RawSim, u32, *mut SlotFacts) -> c_int,
    set_space: unsafe extern "C" fn(*mut RawSim, u32, *const SlotSpace) -> c_int,
    reset: unsafe extern "C" fn(*mut RawSim, u32) -> c_int,
    reset_done: unsafe extern "C" fn(*mut RawSim, u32) -> c_int,
    map: unsafe extern "C" fn(*mut RawSim, u32, u64, u64, *mut c_void, u32) -> c_int,
    unmap: unsafe extern "C" fn(*mut RawSim, u32, u64, u64) -> c_int,
    read: unsafe extern "C" fn(*mut RawSim, u32, u32, u64, u32) -> i64,
    write: unsafe extern "C" fn(*mut RawSim, u32, u32, u64, *const c_void, u32) -> i64,
    pull_answer: unsafe extern "C" fn(*mut RawSim, u32, *mut SlotAnswer) -> c_int,
    pull_interrupt: unsafe extern "C" fn(*mut RawSim, u32, *mut SlotInterrupt) -> c_int,
    pull_message: unsafe extern "C" fn(*mut RawSim, u32, *mut SlotMessage) -> c_int,
    answer_message: unsafe extern "C" fn(*mut RawSim, u64, *const c_void) -> c_int,
    pull_fault: unsafe extern "C" fn(*mut RawSim, u32, *mut Fault) -> c_int,
    get_stats: unsafe extern "C" fn(*mut RawSim, *mut SlotStats) -> c_int,
    violation: unsafe extern "C" fn(*mut RawSim, *mut c_char, usize) -> i64,
}

impl Functions {
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
            set: symbol!(b"nacelle_sim_slot_set\0"),
            get_facts: symbol!(b"nacelle_sim_slot_get_facts\0"),
            set_space: symbol!(b"nacelle_sim_slot_set_space\0"),
            reset: symbol!(b"nacelle_sim_slot_reset\0"),
            reset_done: symbol!(b"nacelle_sim_slot_reset_done\0"),
            map: symbol!(b"nacelle_sim_slot_map\0"),
            unmap: symbol!(b"nacelle_sim_slot_unmap\0"),
            read: symbol!(b"nacelle_sim_slot_read\0"),
            write: symbol!(b"nacelle_sim_slot_write\0"),
            pull_answer: symbol!(b"nacelle_sim_slot_pull_answer\0"),
            pull_interrupt: symbol!(b"nacelle_sim_slot_pull_interrupt\0"),
            pull_message: symbol!(b"nacelle_sim_slot_pull_message\0"),
            answer_message: symbol!(b"nacelle_sim_slot_answer_message\0"),
            pull_fault: symbol!(b"nacelle_sim_slot_pull_fault\0"),
            get_stats: symbol!(b"nacelle_sim_slot_get_stats\0"),
            violation: symbol!(b"nacelle_sim_slot_violation\0"),
        })
    }
}

/// Text of a library that ends with a zero byte, or with the buffer.
pub(super) fn text(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(&buffer[..end]).into_owned()
}

/// Of a device that was built for a slot; of any other these do nothing.
// SAFETY of every call below: as in the module above.
impl Sim {
    /// Sets the slot, while nothing of it is under way.
    ///
    /// # Errors
    /// [`DeviceError::Create`] with the library's own sentence.
    pub fn set_slot(&mut self, settings: &SlotSettings) -> Result<(), DeviceError> {
        let mut error = [0u8; ERROR_SIZE];
        let (sim, size) = (self.sim.as_ptr(), error.len());
        // SAFETY: see above.
        match unsafe { (self.functions.slot.set)(sim, settings, error.as_mut_ptr().cast(), size) } {
            0 => Ok(()),
            _ => Err(DeviceError::Create { why: text(&error) }),
        }
    }

    /// What it has for a slot, if it was built for one.
    #[must_use]
    pub fn slot_facts(&self, function: u8) -> Option<SlotFacts> {
        let mut facts = SlotFacts::default();
        // SAFETY: see above.
        let there = unsafe { (self.functions.slot.get_facts)(self.sim.as_ptr(), function.into(), &raw mut facts) } == 0;
        there.then_some(facts)
    }

    /// Sets what configuration space says from now on. False: there is no such slot, or it does not have such a size.
    pub fn set_slot_space(&mut self, function: u8, space: &SlotSpace) -> bool {
        // SAFETY: see above.
        unsafe { (self.functions.slot.set_space)(self.sim.as_ptr(), function.into(), space) == 0 }
    }

    /// Begins a function-level reset.
    pub fn begin_slot_reset(&mut self, function: u8) {
        // SAFETY: see above.
        unsafe { (self.functions.slot.reset)(self.sim.as_ptr(), function.into()) };
    }

    /// Whether it has ended.
    #[must_use]
    pub fn slot_reset_done(&mut self, function: u8) -> bool {
        // SAFETY: see above.
        unsafe { (self.functions.slot.reset_done)(self.sim.as_ptr(), function.into()) != 0 }
    }

    /// Gives the device memory, in pages of 4 KiB, that it may read and write so. False: these are no whole pages, or some are given.
    pub fn slot_map(&mut self, function: u8, address: u64, size: u64, read: bool, write: bool) -> bool {
        let access = u32::from(read) | u32::from(write) << 1;
        // SAFETY: see above; there is no memory here.
        unsafe {
            (self.functions.slot.map)(self.sim.as_ptr(), function.into(), address, size, std::ptr::null_mut(), access)
                == 0
        }
    }

    /// Takes it away: from now on no access to it begins.
    pub fn slot_unmap(&mut self, function: u8, address: u64, size: u64) -> Unmapped {
        // SAFETY: see above.
        match unsafe { (self.functions.slot.unmap)(self.sim.as_ptr(), function.into(), address, size) } {
            0 => Unmapped::Done,
            1 => Unmapped::Busy,
            _ => Unmapped::Nothing,
        }
    }

    /// Begins to read up to 64 bytes of a BAR, within 4 KiB. Its token; `None`: they do not all exist, or too many accesses wait.
    pub fn slot_read(&mut self, function: u8, bar: u8, offset: u64, length: usize) -> Option<u64> {
        let length = u32::try_from(length).ok()?;
        // SAFETY: see above.
        let token =
            unsafe { (self.functions.slot.read)(self.sim.as_ptr(), function.into(), bar.into(), offset, length) };
        u64::try_from(token).ok()
    }

    /// Begins to write up to 4096 bytes of a BAR. As [`slot_read`](Self::slot_read).
    pub fn slot_write(&mut self, function: u8, bar: u8, offset: u64, bytes: &[u8]) -> Option<u64> {
        let length = u32::try_from(bytes.len()).ok()?;
        // SAFETY: see above; the library copies the bytes.
        let token = unsafe {
            (self.functions.slot.write)(
                self.sim.as_ptr(),
                function.into(),
                bar.into(),
                offset,
                bytes.as_ptr().cast(),
                length,
            )
        };
        u64::try_from(token).ok()
    }

    /// Takes the oldest answer.
    pub fn pull_slot_answer(&mut self, function: u8) -> Option<SlotAnswer> {
        let mut answer = SlotAnswer { token: 0, issued: 0, finished: 0, status: 0, length: 0, data: [0; LONGEST_READ] };
        // SAFETY: see above.
        let taken =
            unsafe { (self.functions.slot.pull_answer)(self.sim.as_ptr(), function.into(), &raw mut answer) } != 0;
        taken.then_some(answer)
    }

    /// Takes the oldest interrupt: all that the device has written before it is written.
    pub fn pull_slot_interrupt(&mut self, function: u8) -> Option<SlotInterrupt> {
        let mut interrupt = SlotInterrupt::default();
        // SAFETY: see above.
        let taken =
            unsafe { (self.functions.slot.pull_interrupt)(self.sim.as_ptr(), function.into(), &raw mut interrupt) }
                != 0;
        taken.then_some(interrupt)
    }

    /// Takes the oldest access to memory. Each is to be [answered](Self::answer_slot_message), writes as well.
    pub fn pull_slot_message(&mut self, function: u8) -> Option<SlotMessage> {
        let mut message = SlotMessage { token: 0, address: 0, length: 0, write: 0, data: [0; LONGEST] };
        // SAFETY: see above.
        let taken =
            unsafe { (self.functions.slot.pull_message)(self.sim.as_ptr(), function.into(), &raw mut message) } != 0;
        taken.then(|| {
            self.messages.insert(message.token, message.len());
            message
        })
    }

    /// Answers one by its token: a read with as many bytes as were asked for; `None`: it was written, or cannot be read. False: no
    /// such message waits, or it is of another length; then nothing has happened.
    pub fn answer_slot_message(&mut self, token: u64, bytes: Option<&[u8]>) -> bool {
        let Some(length) = self.messages.get(&token) else { return false };
        if bytes.is_some_and(|bytes| bytes.len() != *length) {
            return false;
        }
        self.messages.remove(&token);
        let data = bytes.map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast());
        // SAFETY: see above; the library takes as many bytes as it has asked for.
        unsafe { (self.functions.slot.answer_message)(self.sim.as_ptr(), token, data) == 0 }
    }

    /// Takes all accesses to what is not mapped, or not for this kind of access; how many there were.
    pub fn take_slot_faults(&mut self, function: u8) -> u64 {
        let mut fault = Fault::default();
        let mut count = 0;
        // SAFETY: see above.
        while unsafe { (self.functions.slot.pull_fault)(self.sim.as_ptr(), function.into(), &raw mut fault) } != 0 {
            count += 1;
        }
        count
    }

    /// What the slot has counted.
    #[must_use]
    pub fn slot_stats(&self) -> SlotStats {
        let mut stats = SlotStats::default();
        // SAFETY: see above.
        unsafe { (self.functions.slot.get_stats)(self.sim.as_ptr(), &raw mut stats) };
        stats
    }

    /// The first rule of PCI Express that the device has broken, if it has.
    #[must_use]
    pub fn slot_violation(&self) -> Option<String> {
        let mut said = [0u8; ERROR_SIZE];
        let (sim, size) = (self.sim.as_ptr(), said.len());
        // SAFETY: see above.
        let count = unsafe { (self.functions.slot.violation)(sim, said.as_mut_ptr().cast(), size) };
        (count > 0).then(|| text(&said))
    }
}
