// SPDX-License-Identifier: Apache-2.0
//! Devices in slots: their buffers, and copies (`nacelle_slot.h`).

use std::ffi::{c_char, c_void};
use std::path::Path;
use std::time::{Duration, Instant};

use nacelle_copy::{Copy as Copying, CopyError, DeviceBuffer, Error, HostBuffer, Options, Part, Slot};

use crate::edge::{Failure, guard};
use crate::handle::{BufferHandle, CopyHandle, SlotHandle, registry};
use crate::outcome;
use crate::sized::{self, Growing};
use crate::text;

/// `nacelle_slot_options`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct SlotOptions {
    size: usize,
    timeout_ms: u32,
    ring_log: u32,
    poll: u32,
    reserved: u32,
}
// SAFETY: numbers only, without padding.
unsafe impl Growing for SlotOptions {}

impl SlotOptions {
    fn options(self) -> Result<Options, Failure> {
        let default = Options::default();
        if self.reserved != 0 || self.poll > 1 {
            return Err(Failure::invalid("nacelle_slot_options: poll must be 0 or 1, reserved 0"));
        }
        if self.ring_log != 0 && !(5..=15).contains(&self.ring_log) {
            return Err(Failure::invalid(format!("ring_log is {}; it must be from 5 to 15", self.ring_log)));
        }
        Ok(Options {
            timeout: if self.timeout_ms == 0 { default.timeout } else { Duration::from_millis(self.timeout_ms.into()) },
            ring_log: if self.ring_log == 0 { default.ring_log } else { self.ring_log },
            poll: self.poll == 1,
            ..default
        })
    }
}

/// `nacelle_copy_entry`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CopyEntry {
    from: BufferHandle,
    from_offset: u64,
    to: BufferHandle,
    to_offset: u64,
    size: u64,
}

/// What the handle of a buffer names.
pub(crate) enum Buffer {
    Host(HostBuffer),
    Device(DeviceBuffer),
}

impl Buffer {
    fn part(&self, offset: u64, size: u64) -> Result<Part, Error> {
        let range = offset..offset.saturating_add(size);
        match self {
            Self::Host(buffer) => buffer.part(range),
            Self::Device(buffer) => buffer.part(range),
        }
    }

    fn device_address(&self) -> u64 {
        match self {
            Self::Host(buffer) => buffer.device_address(),
            Self::Device(buffer) => buffer.device_address(),
        }
    }
}

/// The entries of the program.
///
/// # Safety
/// `entries` has `count` of them, or is null.
unsafe fn list(entries: *const CopyEntry, count: usize) -> Result<Vec<(Part, Part)>, Failure> {
    if entries.is_null() || count > isize::MAX as usize / size_of::<CopyEntry>() {
        return Err(Failure::invalid("entries is NULL, or they are more than there can be"));
    }
    let buffers = &registry().buffers;
    (0..count)
        .map(|index| {
            // SAFETY: as this function.
            let entry = unsafe { entries.add(index).read_unaligned() };
            let from = buffers.get(entry.from.id)?.part(entry.from_offset, entry.size)?;
            let to = buffers.get(entry.to.id)?.part(entry.to_offset, entry.size)?;
            Ok((from, to))
        })
        .collect()
}

/// See `nacelle_slot.h`.
///
/// # Safety
/// `address` ends with a zero; `options` is null or begins with its size; `slot` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_slot_open(
    r#where: *const c_char,
    options: *const SlotOptions,
    slot: *mut SlotHandle,
) -> u32 {
    guard(|| {
        text::place(slot, "slot")?;
        // SAFETY: as this function.
        let (place, options) = unsafe {
            slot.write(SlotHandle { id: 0 });
            (text::read(r#where, "where")?, sized::read(options, "nacelle_slot_options")?)
        };
        let place = place.ok_or_else(|| Failure::invalid("where is NULL"))?;
        let options = options.map_or(Ok(Options::default()), SlotOptions::options)?;
        let opened = Slot::open(Path::new(place), &options)?;
        let id = registry().slots.insert(opened)?;
        // SAFETY: as this function.
        unsafe { slot.write(SlotHandle { id }) };
        Ok(())
    })
}

/// See `nacelle_slot.h`.
///
/// # Safety
/// `address` and `size` are null or may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_slot_get_memory(slot: SlotHandle, address: *mut u64, size: *mut u64) -> u32 {
    guard(|| {
        let memory = registry().slots.get(slot.id)?.memory();
        for (place, value) in [(address, memory.start), (size, memory.end - memory.start)] {
            if !place.is_null() {
                // SAFETY: as this function.
                unsafe { place.write(value) };
            }
        }
        Ok(())
    })
}

/// See `nacelle_slot.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_slot_close(slot: SlotHandle) -> u32 {
    guard(|| registry().slots.remove(slot.id).map(drop))
}

/// Takes a buffer of a slot, and makes a handle for it.
///
/// # Safety
/// `buffer` may be written.
unsafe fn take(
    slot: SlotHandle,
    buffer: *mut BufferHandle,
    take: impl FnOnce(&Slot) -> Result<Buffer, Error>,
) -> Result<(), Failure> {
    text::place(buffer, "buffer")?;
    // SAFETY: as this function.
    unsafe { buffer.write(BufferHandle { id: 0 }) };
    let taken = take(&*registry().slots.get(slot.id)?)?;
    let id = registry().buffers.insert(taken)?;
    // SAFETY: as this function.
    unsafe { buffer.write(BufferHandle { id }) };
    Ok(())
}

/// See `nacelle_slot.h`.
///
/// # Safety
/// `buffer` and `data` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_slot_alloc_host(
    slot: SlotHandle,
    size: usize,
    buffer: *mut BufferHandle,
    data: *mut *mut c_void,
) -> u32 {
    guard(|| {
        text::place(data, "data")?;
        let mut first = 0;
        // SAFETY: as this function.
        unsafe {
            take(slot, buffer, |slot| {
                let host = slot.alloc_host(size)?;
                first = host.address();
                Ok(Buffer::Host(host))
            })?;
            data.write(std::ptr::with_exposed_provenance_mut(first as usize));
        }
        Ok(())
    })
}

/// See `nacelle_slot.h`.
///
/// # Safety
/// `buffer` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_slot_alloc_device(
    slot: SlotHandle,
    size: u64,
    buffer: *mut BufferHandle,
) -> u32 {
    // SAFETY: as this function.
    guard(|| unsafe { take(slot, buffer, |slot| slot.alloc_device(size).map(Buffer::Device)) })
}

/// See `nacelle_slot.h`.
///
/// # Safety
/// `buffer` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_slot_alloc_device_at(
    slot: SlotHandle,
    offset: u64,
    size: u64,
    buffer: *mut BufferHandle,
) -> u32 {
    // SAFETY: as this function.
    guard(|| unsafe { take(slot, buffer, |slot| slot.alloc_device_at(offset, size).map(Buffer::Device)) })
}

/// See `nacelle_slot.h`.
///
/// # Safety
/// `address` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_buffer_get_address(buffer: BufferHandle, address: *mut u64) -> u32 {
    guard(|| {
        text::place(address, "address")?;
        let found = registry().buffers.get(buffer.id)?.device_address();
        // SAFETY: as this function.
        unsafe { address.write(found) };
        Ok(())
    })
}

/// See `nacelle_slot.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_buffer_close(buffer: BufferHandle) -> u32 {
    guard(|| registry().buffers.remove(buffer.id).map(drop))
}

/// See `nacelle_slot.h`.
///
/// # Safety
/// `entries` has `count` entries.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_slot_copy(slot: SlotHandle, entries: *const CopyEntry, count: usize) -> u32 {
    guard(|| {
        let slot = registry().slots.get(slot.id)?;
        // SAFETY: as this function.
        Ok(slot.copy_all(&unsafe { list(entries, count) }?)?)
    })
}

/// See `nacelle_slot.h`.
///
/// # Safety
/// `entries` has `count` entries; `copy` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_slot_copy_start(
    slot: SlotHandle,
    entries: *const CopyEntry,
    count: usize,
    copy: *mut CopyHandle,
) -> u32 {
    guard(|| {
        text::place(copy, "copy")?;
        // SAFETY: as this function.
        unsafe { copy.write(CopyHandle { id: 0 }) };
        let slot = registry().slots.get(slot.id)?;
        // SAFETY: as this function.
        let begun = slot.copy_list(&unsafe { list(entries, count) }?)?;
        let id = registry().copies.insert(begun)?;
        // SAFETY: as this function.
        unsafe { copy.write(CopyHandle { id }) };
        Ok(())
    })
}

/// Whether it has ended, and its error if it has failed.
fn ended(outcome: Option<Result<(), CopyError>>) -> Result<bool, Failure> {
    match outcome {
        None => Ok(false),
        Some(Ok(())) => Ok(true),
        Some(Err(error)) => Err(Error::Copy(error).into()),
    }
}

/// See `nacelle_slot.h`.
///
/// # Safety
/// `done` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_copy_test(copy: CopyHandle, done: *mut bool) -> u32 {
    guard(|| {
        text::place(done, "done")?;
        let tested = registry().copies.get(copy.id).and_then(|copy| ended(copy.poll()));
        // SAFETY: as this function. A loop that looks at it alone ends after an error, too.
        unsafe { done.write(!matches!(tested, Ok(false))) };
        tested.map(|_| ())
    })
}

/// See `nacelle_slot.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_copy_wait(copy: CopyHandle, timeout_ms: i64) -> u32 {
    let patience = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
    let until = patience.and_then(|patience| Instant::now().checked_add(patience));
    guard(|| {
        let copy = registry().copies.get(copy.id)?;
        let outcome = until.map_or_else(|| Some(Copying::wait(&copy)), |until| copy.wait_until(until));
        outcome::waited(ended(outcome)?, "copy", "wait again, or close it")
    })
}

/// See `nacelle_slot.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_copy_close(copy: CopyHandle) -> u32 {
    guard(|| registry().copies.remove(copy.id).map(drop))
}

/// See `nacelle_slot.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_slot_fill(
    slot: SlotHandle,
    buffer: BufferHandle,
    offset: u64,
    size: u64,
    byte: u32,
) -> u32 {
    guard(|| {
        let byte = u8::try_from(byte).map_err(|_| Failure::invalid(format!("the byte is {byte}")))?;
        let (slot, buffer) = (registry().slots.get(slot.id)?, registry().buffers.get(buffer.id)?);
        Ok(slot.fill(buffer.part(offset, size)?, byte)?)
    })
}

/// See `nacelle_slot.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_slot_reset(slot: SlotHandle) -> u32 {
    guard(|| Ok(registry().slots.get(slot.id)?.reset()?))
}
