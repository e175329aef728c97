// SPDX-License-Identifier: Apache-2.0
//! Regions in memory that belongs to the C program.

use std::ffi::c_void;
use std::ptr::NonNull;

use nacelle::memory::{Extent, Shared, StableBytes, find_overlap};
use nacelle::{Memory, Region, Role};

use crate::edge::Failure;

/// Bytes of the program, which it keeps until the call that has them is closed.
struct CallerBytes {
    bytes: NonNull<[u8]>,
    writable: bool,
}

// SAFETY: memory of a C program may be used by any of its threads.
unsafe impl Send for CallerBytes {}
// SAFETY: the caller of `Buffer::new` promises that the range stays, may be accessed from any thread, and is left alone while
// a call runs. No reference to it is made: `Memory` copies.
unsafe impl StableBytes for CallerBytes {
    fn bytes(&self) -> NonNull<[u8]> {
        self.bytes
    }

    fn is_writable(&self) -> bool {
        self.writable
    }
}

/// A region as a C program describes it.
#[derive(Clone, Copy)]
pub(crate) struct Buffer {
    role: Role,
    /// Null for an internal region.
    data: *mut u8,
    size: usize,
}

impl Buffer {
    /// # Safety
    /// Until the call that gets the region is closed, the `size` bytes at `data` stay, and may be read, and written if the
    /// region comes back, from any thread. While the call runs, the program leaves them alone.
    pub(crate) unsafe fn new(role: Role, data: *mut c_void, size: usize) -> Self {
        Self { role, data: data.cast(), size }
    }

    #[cfg(test)]
    pub(crate) fn role(&self) -> Role {
        self.role
    }

    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Its addresses, if it has any in this process.
    fn extent(&self) -> Option<Extent> {
        let first = self.data.addr();
        let written = self.role.comes_back();
        (!self.data.is_null() && self.size > 0).then(|| Extent { first, last: first + (self.size - 1), written })
    }

    /// What is wrong with it by itself.
    fn check(&self) -> Result<(), String> {
        let internal = self.role == Role::Internal;
        if internal && !self.data.is_null() {
            return Err("is internal, so its data must be NULL".into());
        }
        if !internal && self.data.is_null() {
            return Err("has no data: NULL".into());
        }
        if isize::try_from(self.size).is_err() || self.data.addr().checked_add(self.size).is_none() {
            return Err(format!("has {} bytes, more than there can be at {:p}", self.size, self.data));
        }
        Ok(())
    }

    fn region(&self) -> Region {
        let Some(start) = NonNull::new(self.data) else { return Region::internal(self.size) };
        let bytes = NonNull::slice_from_raw_parts(start, self.size);
        let memory = Memory::new(CallerBytes { bytes, writable: self.role.comes_back() });
        match self.role {
            Role::Input => Region::input(memory),
            Role::InputOnce => Region::input_once(memory),
            Role::Output => Region::output_to(memory),
            Role::InOut => Region::inout(memory),
            Role::InOutOnce => Region::inout_once(memory),
            Role::Internal => Region::internal(self.size),
        }
    }
}

/// Bytes of the program that the library leaves alone once the value was dropped.
///
/// # Safety
/// Until then the `size` bytes at `data` stay, and may be read, and written if `writable`, from any thread.
pub(crate) unsafe fn shared(data: *mut c_void, size: usize, writable: bool) -> Result<Shared, Failure> {
    let role = if writable { Role::Output } else { Role::Input };
    let buffer = Buffer { role, data: data.cast(), size };
    buffer.check().map_err(|what| Failure::invalid(format!("the buffer {what}")))?;
    let start = NonNull::new(buffer.data).ok_or_else(|| Failure::invalid("the buffer is NULL"))?;
    // SAFETY: as this function. No reference to the bytes is made: `Memory` copies.
    Ok(unsafe { Shared::from_raw(NonNull::slice_from_raw_parts(start, size), writable) })
}

/// All of the bytes as memory for a transfer.
pub(crate) fn all(shared: &Shared, writable: bool) -> Result<Memory, Failure> {
    shared.memory(0..shared.len(), writable).map_err(|error| Failure::invalid(error.to_string()))
}

/// Bytes of the regions that come back.
pub(crate) fn output_bytes(buffers: &[Buffer]) -> u64 {
    buffers.iter().filter(|buffer| buffer.role.comes_back()).map(|buffer| buffer.size as u64).sum()
}

/// Regions in the memory of the program, for a call. Two may have the same memory only if the device writes neither.
pub(crate) fn regions(buffers: &[Buffer]) -> Result<Vec<Region>, Failure> {
    for (index, buffer) in buffers.iter().enumerate() {
        buffer.check().map_err(|what| Failure::invalid(format!("region {index} {what}")))?;
    }
    if let Some((one, other)) = find_overlap(buffers.iter().map(Buffer::extent)) {
        return Err(Failure {
            hint: "give each region memory of its own, or use one region for input and output".into(),
            ..Failure::invalid(format!("the buffers of regions {one} and {other} overlap, and one is an output"))
        });
    }
    Ok(buffers.iter().map(Buffer::region).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(buffers: &[(Role, usize, usize)]) -> Result<(), String> {
        let pointer = |at: usize| std::ptr::without_provenance_mut(at);
        // SAFETY: no byte of it is accessed.
        let buffers = buffers.iter().map(|(role, at, size)| unsafe { Buffer::new(*role, pointer(*at), *size) });
        regions(&buffers.collect::<Vec<_>>()).map(|_| ()).map_err(|failure| failure.text)
    }

    #[test]
    fn overlapping_outputs_are_refused() {
        use Role::{InOut, Input, Internal, Output};
        check(&[(Input, 0x1000, 16), (Output, 0x1010, 16), (Internal, 0, 99)]).unwrap();
        check(&[(Input, 0x1000, 16), (Input, 0x1008, 16), (Output, 0x1018, 4)]).unwrap();
        for (pair, names) in [
            ([(Input, 0x1000, 16), (Output, 0x100f, 16)], "0 and 1"),
            ([(Output, 0x1008, 1), (Input, 0x1000, 9)], "1 and 0"),
            ([(InOut, 0x1000, 16), (InOut, 0x1000, 16)], "0 and 1"),
        ] {
            let said = check(&pair).unwrap_err();
            assert!(said.contains(names) && said.contains("overlap"), "{said}");
        }
        // A long region before a short one does not hide the third.
        assert!(check(&[(Output, 0x1000, 100), (Input, 0x1100, 1), (Input, 0x1050, 1)]).is_err());
        assert!(check(&[(Input, 0x1000, 100), (Input, 0x1001, 1), (Output, 0x1050, 1)]).is_err());
    }

    #[test]
    fn impossible_buffers_are_refused() {
        assert!(check(&[(Role::Input, 0, 4)]).unwrap_err().contains("NULL"));
        assert!(check(&[(Role::Internal, 0x1000, 4)]).unwrap_err().contains("internal"));
        assert!(check(&[(Role::Input, usize::MAX - 4, 8)]).unwrap_err().contains("more than"));
        assert!(check(&[(Role::Input, 0x1000, usize::MAX)]).unwrap_err().contains("more than"));
    }
}
