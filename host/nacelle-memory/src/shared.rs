// SPDX-License-Identifier: Apache-2.0
//! Bytes that the program and several regions reach at the same time.

use core::fmt;
use core::ops::Range;
use core::ptr::NonNull;
use std::sync::Arc;

use crate::scope::Gate;
use crate::{AccessError, Memory};

/// Longer accesses of the program are made in pieces, so that a peer's packet never waits longer than for one.
const PIECE: usize = 64 << 10;

/// Who frees the bytes.
enum Bytes {
    Own(Memory),
    Foreign { start: NonNull<u8>, len: usize, writable: bool },
}

/// Bytes that the program and any number of [`Memory`] values reach, one access at a time.
///
/// When it is dropped, every memory that was made of it ends, as when a [`scope`](fn@crate::scope) ends: what a peer does to a region in
/// it from then on fails.
///
/// ```
/// use nacelle_memory::Shared;
///
/// let shared = Shared::new(vec![1, 2, 3, 4]);
/// let region = shared.memory(1..3, false).unwrap();
/// shared.write(1, &[9]).unwrap();
/// assert_eq!(region.to_vec().unwrap(), [9, 3]);
/// drop(shared);
/// assert!(region.to_vec().is_err());
/// ```
pub struct Shared {
    bytes: Bytes,
    gate: Arc<Gate>,
}

// SAFETY: the bytes are reached under the gate only; those of a program by its promise in `from_raw` may be used by any thread.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// These bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes: Bytes::Own(bytes.into()), gate: Arc::default() }
    }

    /// Bytes of the program, in place.
    ///
    /// # Safety
    /// Until the value was dropped, the range may be read, and written if `writable`, from any thread, and there is no reference to any of
    /// it. Other accesses follow the rules of the [crate documentation](crate#concurrent-access).
    #[must_use]
    pub unsafe fn from_raw(bytes: NonNull<[u8]>, writable: bool) -> Self {
        Self { bytes: Bytes::Foreign { start: bytes.cast(), len: bytes.len(), writable }, gate: Arc::default() }
    }

    /// Bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        match &self.bytes {
            Bytes::Own(memory) => memory.len(),
            Bytes::Foreign { len, .. } => *len,
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A part of the bytes as memory that can be registered.
    ///
    /// # Errors
    /// If not all of the range is there, or it is to be writable and the bytes are not.
    pub fn memory(&self, range: Range<usize>, writable: bool) -> Result<Memory, AccessError> {
        let (start, len, may_write) = match &self.bytes {
            Bytes::Own(memory) => (memory.start(), memory.len(), true),
            Bytes::Foreign { start, len, writable } => (*start, *len, *writable),
        };
        if writable && !may_write {
            return Err(AccessError::ReadOnly);
        }
        if range.start > range.end || range.end > len {
            return Err(AccessError::Bounds);
        }
        // SAFETY: the start of the part is within the range, which is one allocation or mapping.
        let part = NonNull::slice_from_raw_parts(unsafe { start.add(range.start) }, range.end - range.start);
        // SAFETY: the bytes are there until the gate was closed, which `drop` does first; all accesses, also those of this value, are
        // under the gate. It does not move: a vector's allocation stays when the vector moves.
        Ok(unsafe { Memory::borrowed(part, writable, Arc::clone(&self.gate)) })
    }

    /// Copies the bytes from `offset` on into `into`, which they fill. A long copy is made in pieces, between which others may write.
    ///
    /// # Errors
    /// If they do not all exist. Nothing is copied then.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), AccessError> {
        let memory = self.part(offset, into.len(), false)?;
        let pieces = (0..).step_by(PIECE).zip(into.chunks_mut(PIECE));
        pieces.into_iter().try_for_each(|(at, piece)| memory.read(at, piece))
    }

    /// Copies `bytes` to `offset`. A long copy is made in pieces, between which others may read.
    ///
    /// # Errors
    /// If there is no room for all of them, or the bytes are read-only. Nothing is copied then.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), AccessError> {
        let mut memory = self.part(offset, bytes.len(), true)?;
        let pieces = (0..).step_by(PIECE).zip(bytes.chunks(PIECE));
        pieces.into_iter().try_for_each(|(at, piece)| memory.write(at, piece))
    }

    fn part(&self, offset: usize, len: usize, writable: bool) -> Result<Memory, AccessError> {
        let end = offset.checked_add(len).ok_or(AccessError::Bounds)?;
        self.memory(offset..end, writable)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Waits for the access that is under way.
        self.gate.close();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_the_same_bytes_until_the_end() {
        let shared = Shared::new((0..10).collect());
        let mut part = shared.memory(2..6, true).unwrap();
        let seen = shared.memory(0..10, false).unwrap();
        part.write(0, &[20, 30]).unwrap();
        assert_eq!(part.write(3, &[0, 0]), Err(AccessError::Bounds), "its neighbours are out of reach");
        shared.write(9, &[90]).unwrap();
        assert_eq!(seen.to_vec().unwrap(), [0, 1, 20, 30, 4, 5, 6, 7, 8, 90]);
        let mut three = [0; 3];
        shared.read(1, &mut three).unwrap();
        assert_eq!(three, [1, 20, 30]);
        drop(shared);
        assert_eq!(part.write(0, &[1]), Err(AccessError::Ended));
        assert_eq!(seen.read(0, &mut three), Err(AccessError::Ended));
    }

    #[test]
    fn what_is_not_there_or_not_allowed_is_refused() {
        let shared = Shared::new(vec![0; 4]);
        #[expect(clippy::reversed_empty_ranges, reason = "it is refused")]
        for range in [0..5, 5..5, 4..3, 1..usize::MAX] {
            assert_eq!(shared.memory(range.clone(), false).err(), Some(AccessError::Bounds), "{range:?}");
        }
        assert_eq!(shared.read(usize::MAX, &mut [0; 2]), Err(AccessError::Bounds));
        assert_eq!(shared.write(3, &[0; 2]), Err(AccessError::Bounds));
        let bytes = [1, 2, 3];
        // SAFETY: the array lives longer, and is only read.
        let read_only = unsafe { Shared::from_raw(NonNull::from(&bytes[..]), false) };
        assert_eq!(read_only.memory(0..3, true).err(), Some(AccessError::ReadOnly));
        assert_eq!(read_only.write(0, &[1]), Err(AccessError::ReadOnly));
        assert_eq!(read_only.memory(1..3, false).unwrap().to_vec().unwrap(), [2, 3]);
    }

    #[test]
    fn long_accesses_go_piece_by_piece() {
        let length = if cfg!(miri) { PIECE + 1 } else { 3 * PIECE + 1 };
        let shared = Shared::new(vec![0; length]);
        let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        shared.write(0, &bytes).unwrap();
        let mut back = vec![0; length - 1];
        shared.read(1, &mut back).unwrap();
        assert!(back == bytes[1..]);
    }
}
