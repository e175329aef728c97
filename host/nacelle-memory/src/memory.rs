// SPDX-License-Identifier: Apache-2.0
//! A range of bytes with its owner.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use std::any::Any;
use std::sync::{Arc, Weak};

use crate::Source;
use crate::scope::{Ending, Gate};

/// Why memory was not accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// Not all of the range lies in the memory.
    #[error("the range is not within the memory")]
    Bounds,
    /// The memory may only be read.
    #[error("the memory is read-only")]
    ReadOnly,
    /// It was borrowed, and the scope of the borrow has ended.
    #[error("the memory was borrowed, and the borrow has ended")]
    Ended,
}

/// An owner of bytes that stay where they are.
///
/// # Safety
///
/// From the first call of [`bytes`](Self::bytes) until the value is dropped, also while the value itself moves:
///
/// - `bytes` returns the same range, and the range does not lie within the value itself;
/// - all of the range may be read, and written if [`is_writable`](Self::is_writable), from any thread;
/// - there is no reference (`&` or `&mut`) to any of it;
/// - accesses from elsewhere in this process follow the rules of the [crate documentation](crate#concurrent-access).
pub unsafe trait StableBytes: Send + 'static {
    /// The range.
    fn bytes(&self) -> NonNull<[u8]>;

    /// Whether the range may be written.
    fn is_writable(&self) -> bool {
        true
    }
}

/// What keeps the bytes alive.
enum Owner {
    /// The allocation of a `Vec<u8>` of this capacity.
    Heap { capacity: usize },
    /// A vector that the range is a part of.
    Within { _all: Vec<u8> },
    /// A [`StableBytes`].
    Other(Box<dyn Any + Send>),
    /// A borrow, until its gate is closed.
    Scope(Arc<Gate>),
}

/// A range of bytes that can be registered, and what keeps it alive.
pub struct Memory {
    start: NonNull<u8>,
    len: usize,
    writable: bool,
    owner: Owner,
}

// SAFETY: a heap allocation may be used from any thread, and so may the range of a `StableBytes` by its contract; its owner is
// `Send`. A borrowed slice of `u8` may be used from any thread, and only under its gate.
unsafe impl Send for Memory {}
// SAFETY: `&Memory` gives nothing but reads of bytes, and the owner is out of reach.
unsafe impl Sync for Memory {}

impl Memory {
    /// The bytes of `owner`, in place.
    pub fn new<T: StableBytes>(owner: T) -> Self {
        let (bytes, writable) = (owner.bytes(), owner.is_writable());
        Self { start: bytes.cast(), len: bytes.len(), writable, owner: Owner::Other(Box::new(owner)) }
    }

    /// `len` bytes of zeros on the heap.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        vec![0; len].into()
    }

    /// `len` bytes of zeros on the heap, the first at a multiple of `alignment`, which is a power of two. Those that nobody has
    /// touched cost the system nothing, which they would if they were allocated aligned.
    #[must_use]
    pub fn zeroed_aligned(len: usize, alignment: usize) -> Self {
        let mut all = vec![0; len + alignment - 1];
        let first = all.as_ptr().align_offset(alignment);
        let start = NonNull::from(&mut all[first..][..len]).cast();
        Self { start, len, writable: true, owner: Owner::Within { _all: all } }
    }

    /// A range that is accessed under `gate` only.
    ///
    /// # Safety
    /// As long as the gate is open, the range may be read, and written if `writable`, and nothing accesses it but under the gate,
    /// except, if it is not `writable`, by reading.
    pub(crate) unsafe fn borrowed(bytes: NonNull<[u8]>, writable: bool, gate: Arc<Gate>) -> Self {
        Self { start: bytes.cast(), len: bytes.len(), writable, owner: Owner::Scope(gate) }
    }

    /// Bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the first byte is.
    pub(crate) const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Whether it may be written.
    #[must_use]
    pub const fn is_writable(&self) -> bool {
        self.writable
    }

    /// Where the bytes are, for a NIC that accesses them by DMA, which no method here sees.
    ///
    /// Until the NIC has stopped, the memory must be kept, and [`bytes_mut`](Self::bytes_mut) and
    /// [`into_vec`](Self::into_vec) are out of bounds; the bytes may change at any time. Of a borrow, the access ends by
    /// [`at_end`](Self::at_end).
    #[must_use]
    pub const fn as_ptr(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.start, self.len)
    }

    /// Has `ending` stopped before borrowed bytes are given back, unless it was dropped by then. Of other memory, whose bytes live as
    /// long as it does, nothing is kept.
    ///
    /// # Errors
    /// If the borrow has ended.
    pub fn at_end(&self, ending: Weak<dyn Ending>) -> Result<(), AccessError> {
        match &self.owner {
            Owner::Scope(gate) => gate.at_end(ending).then_some(()).ok_or(AccessError::Ended),
            Owner::Heap { .. } | Owner::Within { .. } | Owner::Other(_) => Ok(()),
        }
    }

    /// Copies the bytes from `offset` on into `into`, which they fill.
    ///
    /// # Errors
    /// If they do not all exist, or the borrow has ended. Nothing is copied then.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), AccessError> {
        let from = self.place(offset, into.len())?;
        self.access(|| {
            // SAFETY: `place` has checked that the bytes lie in the range, which may be read while the owner lives and, of a
            // borrow, within `access`. `into` is a reference, so it is not part of the range.
            unsafe { from.copy_to_nonoverlapping(NonNull::from(&mut *into).cast(), into.len()) }
        })
    }

    /// As [`read`](Self::read), past the cache of this processor where it can do that: for bytes that another processor reads next. To
    /// write where that has read before takes much longer otherwise.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_past_cache(&self, offset: usize, into: &mut [u8]) -> Result<(), AccessError> {
        let from = self.place(offset, into.len())?;
        self.access(|| {
            // SAFETY: as in `read`.
            unsafe { crate::past_cache::copy(from, into) }
        })
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Errors
    /// If there is no room for all of them, the memory is read-only, or the borrow has ended. Nothing is copied then.
    pub fn write<'a>(&mut self, offset: usize, bytes: impl Into<Source<'a>>) -> Result<(), AccessError> {
        let bytes = bytes.into();
        if !self.writable {
            return Err(AccessError::ReadOnly);
        }
        let to = self.place(offset, bytes.len())?;
        self.access(|| {
            // SAFETY: as in `read`; the range may be written, because it is writable. A source is no part of a memory.
            unsafe { bytes.copy_to_raw(to) }
        })
    }

    /// All bytes in place, of heap memory. `None` of other memory, which may be reached in other ways.
    #[must_use]
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        match self.owner {
            Owner::Heap { .. } | Owner::Within { .. } => {
                // SAFETY: the range lies in a vector that `self` owns and does not use but through its pointer, so the
                // exclusive borrow of `self` is one of the bytes. They were zeros or bytes from the start.
                Some(unsafe { NonNull::slice_from_raw_parts(self.start, self.len).as_mut() })
            }
            Owner::Other(_) | Owner::Scope(_) => None,
        }
    }

    /// All bytes, copied.
    ///
    /// # Errors
    /// If the borrow has ended.
    pub fn to_vec(&self) -> Result<Vec<u8>, AccessError> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes)?;
        Ok(bytes)
    }

    /// All bytes: without a copy if this was made of a vector.
    ///
    /// # Errors
    /// If the borrow has ended.
    pub fn into_vec(self) -> Result<Vec<u8>, AccessError> {
        match self.owner {
            Owner::Heap { capacity } => {
                let this = ManuallyDrop::new(self);
                // SAFETY: the parts of the vector that `this` was made of, which does not free them any more.
                Ok(unsafe { Vec::from_raw_parts(this.start.as_ptr(), this.len, capacity) })
            }
            Owner::Within { .. } | Owner::Other(_) | Owner::Scope(_) => self.to_vec(),
        }
    }

    /// The owner that [`Memory::new`] was given, or the memory again if it has another.
    ///
    /// # Errors
    /// If the owner is not a `T`.
    pub fn into_owner<T: StableBytes>(mut self) -> Result<T, Self> {
        // What is left behind owns nothing.
        match core::mem::replace(&mut self.owner, Owner::Heap { capacity: 0 }) {
            Owner::Other(owner) => match owner.downcast() {
                Ok(owner) => Ok(*owner),
                Err(owner) => {
                    self.owner = Owner::Other(owner);
                    Err(self)
                }
            },
            owner => {
                self.owner = owner;
                Err(self)
            }
        }
    }

    /// Where `offset` is, if `len` bytes are there.
    fn place(&self, offset: usize, len: usize) -> Result<NonNull<u8>, AccessError> {
        let end = offset.checked_add(len).ok_or(AccessError::Bounds)?;
        if end > self.len {
            return Err(AccessError::Bounds);
        }
        // SAFETY: `offset` is at most the length of the range, which is one allocation or mapping.
        Ok(unsafe { self.start.add(offset) })
    }

    /// Accesses the range while it is there.
    fn access(&self, copy: impl FnOnce()) -> Result<(), AccessError> {
        match &self.owner {
            Owner::Scope(gate) => gate.pass(copy).ok_or(AccessError::Ended),
            Owner::Heap { .. } | Owner::Within { .. } | Owner::Other(_) => {
                copy();
                Ok(())
            }
        }
    }
}

impl From<Vec<u8>> for Memory {
    fn from(bytes: Vec<u8>) -> Self {
        let mut bytes = ManuallyDrop::new(bytes);
        let owner = Owner::Heap { capacity: bytes.capacity() };
        // Not by a slice, which has no right to the rest of the allocation.
        let start = NonNull::new(bytes.as_mut_ptr()).expect("the pointer of a vector is not null");
        Self { start, len: bytes.len(), writable: true, owner }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Owner::Heap { capacity } = self.owner
            && capacity > 0
        {
            // SAFETY: the parts of the vector that this was made of; nothing uses them after this.
            drop(unsafe { Vec::from_raw_parts(self.start.as_ptr(), self.len, capacity) });
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("len", &self.len).field("writable", &self.writable).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Memory from outside, as a mapping would be.
    struct Mapping {
        bytes: NonNull<[u8]>,
        unmapped: Arc<AtomicBool>,
        writable: bool,
    }

    // SAFETY: a pointer to an allocation that this value alone uses.
    unsafe impl Send for Mapping {}
    // SAFETY: the allocation lives and stays until `drop`, and only the pointer reaches it.
    unsafe impl StableBytes for Mapping {
        fn bytes(&self) -> NonNull<[u8]> {
            self.bytes
        }
        fn is_writable(&self) -> bool {
            self.writable
        }
    }

    impl Mapping {
        fn new(len: usize, writable: bool) -> (Self, Arc<AtomicBool>) {
            let unmapped = Arc::new(AtomicBool::new(false));
            let bytes = NonNull::from(Box::leak(vec![7; len].into_boxed_slice()));
            (Self { bytes, unmapped: Arc::clone(&unmapped), writable }, unmapped)
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            self.unmapped.store(true, Ordering::Relaxed);
            // SAFETY: the box that was leaked, freed once.
            drop(unsafe { Box::from_raw(self.bytes.as_ptr()) });
        }
    }

    #[test]
    fn heap_memory_is_read_and_written_within_its_bounds() {
        let mut memory = Memory::from(vec![1, 2, 3, 4]);
        memory.write(1, &[8, 9]).unwrap();
        let mut two = [0; 2];
        memory.read(2, &mut two).unwrap();
        assert_eq!(two, [9, 4]);
        memory.read_past_cache(1, &mut two).unwrap();
        assert_eq!(two, [8, 9]);
        memory.read(4, &mut []).unwrap();
        for (offset, len) in [(3, 2), (4, 1), (5, 0), (usize::MAX, 1), (usize::MAX, 2)] {
            assert_eq!(memory.read(offset, &mut vec![0; len]), Err(AccessError::Bounds), "{offset} {len}");
            assert_eq!(memory.read_past_cache(offset, &mut vec![0; len]), Err(AccessError::Bounds), "{offset} {len}");
            assert_eq!(memory.write(offset, &vec![0; len]), Err(AccessError::Bounds), "{offset} {len}");
        }
        assert_eq!(memory.into_vec().unwrap(), [1, 8, 9, 4]);
    }

    #[test]
    fn a_vector_comes_back_without_a_copy() {
        let mut bytes = Vec::with_capacity(100);
        bytes.extend([5; 10]);
        let start = bytes.as_ptr();
        let back = Memory::from(bytes).into_vec().unwrap();
        assert_eq!((back.as_ptr(), back.len(), back.capacity()), (start, 10, 100));
        assert!(Memory::from(Vec::new()).is_empty());
    }

    #[test]
    fn aligned_memory_is_zero_and_used_in_place() {
        let longest = if cfg!(miri) { 1 << 13 } else { 1 << 20 };
        for length in [0, 1, 63, 64, 4096, longest] {
            let mut memory = Memory::zeroed_aligned(length, 64);
            assert!(memory.to_vec().unwrap() == vec![0; length]);
            assert!(memory.write(0, &vec![7; length + 1]).is_err());
            memory.write(0, &vec![7; length]).unwrap();
            let mut moved = Box::new(memory);
            let bytes = moved.bytes_mut().unwrap();
            assert_eq!(bytes.as_ptr().addr() % 64, 0);
            assert!(bytes == vec![7; length]);
            bytes.fill(8);
            assert!(moved.into_vec().unwrap() == vec![8; length]);
        }
    }

    #[test]
    fn only_heap_memory_is_used_in_place() {
        let mut vector = Memory::from(vec![1, 2]);
        vector.bytes_mut().unwrap()[1] = 3;
        assert_eq!(vector.into_vec().unwrap(), [1, 3]);
        let (mapping, _unmapped) = Mapping::new(16, true);
        assert!(Memory::new(mapping).bytes_mut().is_none());
    }

    #[test]
    fn an_owner_lives_as_long_as_its_memory_and_comes_back() {
        let (mapping, unmapped) = Mapping::new(16, true);
        let mut memory = Memory::new(mapping);
        memory.write(15, &[1]).unwrap();
        assert_eq!(memory.to_vec().unwrap()[14..], [7, 1]);
        let moved = std::thread::spawn(move || memory).join().unwrap();
        assert!(!unmapped.load(Ordering::Relaxed));
        let mapping = moved.into_owner::<Mapping>().unwrap();
        assert!(!unmapped.load(Ordering::Relaxed));
        drop(Memory::new(mapping));
        assert!(unmapped.load(Ordering::Relaxed));
        assert_eq!(Memory::from(vec![3]).into_owner::<Mapping>().err().unwrap().into_vec().unwrap(), [3]);
    }

    #[test]
    fn read_only_memory_is_not_written() {
        let (mapping, _) = Mapping::new(4, false);
        let mut memory = Memory::new(mapping);
        assert_eq!(memory.write(0, &[1]), Err(AccessError::ReadOnly));
        assert_eq!(memory.into_vec().unwrap(), [7; 4]);
    }
}
