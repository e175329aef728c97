// SPDX-License-Identifier: Apache-2.0
//! Bytes that are copied to where they belong, and by whom they may be changed until then.

use core::fmt;
use core::iter;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// Bytes that can be measured, divided and copied, and nothing else.
///
/// Some are of memory that another process writes when it likes, so there is never a reference to them: what looks at bytes copies
/// them first, and looks at the copy.
///
/// ```
/// use nacelle_memory::{Memory, Source};
///
/// let (head, body) = Source::from(b"ABhello").split_at(2);
/// let mut kind = [0; 2];
/// head.copy_to(&mut kind);
/// assert_eq!((&kind, body.len()), (b"AB", 5));
/// let mut memory = Memory::zeroed(6);
/// memory.write(1, body).unwrap();
/// assert_eq!(memory.to_vec().unwrap(), b"\0hello");
/// ```
#[derive(Clone, Copy)]
pub struct Source<'a> {
    start: NonNull<u8>,
    len: usize,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Source<'a> {
    /// Bytes of memory that another process or a device may write at any time.
    ///
    /// # Safety
    /// For `'a` the range may be read, nothing in this process writes it, and it is no part of a [`Memory`](crate::Memory).
    #[must_use]
    pub const unsafe fn from_raw(bytes: NonNull<[u8]>) -> Self {
        Self { start: bytes.cast(), len: bytes.len(), bytes: PhantomData }
    }

    /// Bytes.
    #[must_use]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The first `mid` bytes, and the others.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub const fn split_at(self, mid: usize) -> (Self, Self) {
        assert!(mid <= self.len, "there are fewer bytes");
        // SAFETY: the place is within the range, or at its end.
        let second = unsafe { self.start.add(mid) };
        (Self { len: mid, ..self }, Self { start: second, len: self.len - mid, bytes: PhantomData })
    }

    /// Copies all of them into `into`, which has the same length.
    ///
    /// # Panics
    /// If it has not.
    pub fn copy_to(self, into: &mut [u8]) {
        assert!(into.len() == self.len, "{} bytes do not fill {}", self.len, into.len());
        // SAFETY: `into` is a reference, so it is no part of the range, and has room for all of it.
        unsafe { self.copy_to_raw(NonNull::from(into).cast()) }
    }

    /// Copies the first of them into `into`, as many as it has room for, and returns the copy.
    pub fn copy_head(self, into: &mut [u8]) -> &[u8] {
        let len = self.len.min(into.len());
        let head = &mut into[..len];
        self.split_at(len).0.copy_to(head);
        head
    }

    /// Copies all of them to `to`.
    ///
    /// # Safety
    /// There is room for so many bytes, which are no part of the range.
    pub(crate) const unsafe fn copy_to_raw(self, to: NonNull<u8>) {
        // SAFETY: the range may be read, by the promise in `from_raw` or because it is borrowed, and nothing in this process writes it
        // meanwhile. Another process may: like what a device writes by DMA, that is outside of this program, and some mixture of old and
        // new bytes is copied. Any bytes are a valid value.
        unsafe { to.copy_from_nonoverlapping(self.start, self.len) }
    }

    /// All of them, copied.
    #[must_use]
    pub fn to_vec(self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.copy_to(&mut bytes);
        bytes
    }
}

impl<'a, T: AsRef<[u8]> + ?Sized> From<&'a T> for Source<'a> {
    fn from(bytes: &'a T) -> Self {
        let bytes = bytes.as_ref();
        Self { start: NonNull::from(bytes).cast(), len: bytes.len(), bytes: PhantomData }
    }
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("len", &self.len).finish_non_exhaustive()
    }
}

/// Bytes that have come from another process or machine.
#[derive(Clone, Copy, Debug)]
pub enum Bytes<'a> {
    /// Copied into memory of this process, as by a socket: they stay as they are.
    Own(&'a [u8]),
    /// Where the other process has written them, and may still.
    Shared(Source<'a>),
}

impl<'a> Bytes<'a> {
    /// Bytes.
    #[must_use]
    pub const fn len(self) -> usize {
        match self {
            Self::Own(bytes) => bytes.len(),
            Self::Shared(bytes) => bytes.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// To be copied.
    #[must_use]
    pub fn source(self) -> Source<'a> {
        match self {
            Self::Own(bytes) => bytes.into(),
            Self::Shared(bytes) => bytes,
        }
    }

    /// The first `mid` bytes, and the others.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub const fn split_at(self, mid: usize) -> (Self, Self) {
        match self {
            Self::Own(bytes) => {
                let (first, second) = bytes.split_at(mid);
                (Self::Own(first), Self::Own(second))
            }
            Self::Shared(bytes) => {
                let (first, second) = bytes.split_at(mid);
                (Self::Shared(first), Self::Shared(second))
            }
        }
    }

    /// Pieces of `size` bytes each but the last, which may be shorter.
    ///
    /// # Panics
    /// If `size` is 0.
    pub fn chunks(self, size: usize) -> impl Iterator<Item = Self> + use<'a> {
        assert!(size > 0, "pieces have bytes");
        let mut rest = self;
        iter::from_fn(move || {
            let (piece, others) = rest.split_at(size.min(rest.len()));
            rest = others;
            (!piece.is_empty()).then_some(piece)
        })
    }
}

impl<'a> From<&'a [u8]> for Bytes<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Own(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    /// Bytes of a ring, as far as this type can know.
    fn shared(bytes: &[u8]) -> Source<'_> {
        // SAFETY: they are borrowed.
        unsafe { Source::from_raw(NonNull::from(bytes)) }
    }

    #[test]
    fn bytes_are_copied_from_wherever_they_are() {
        let all: Vec<u8> = (0..50).collect();
        for bytes in [Bytes::from(&all[..]), Bytes::Shared(shared(&all))] {
            assert_eq!((bytes.len(), bytes.is_empty()), (50, false));
            let pieces: Vec<Vec<u8>> = bytes.chunks(20).map(|piece| piece.source().to_vec()).collect();
            assert_eq!(pieces, [&all[..20], &all[20..40], &all[40..]]);
            let (none, whole) = bytes.split_at(0);
            assert!(none.is_empty() && none.source().is_empty() && none.chunks(1).next().is_none());
            let mut memory = Memory::zeroed(52);
            memory.write(1, whole.source()).unwrap();
            assert_eq!(memory.to_vec().unwrap()[1..51], all);
            assert!(memory.write(3, whole.source()).is_err());
            assert_eq!(whole.source().copy_head(&mut [9; 2]), [0, 1]);
            assert_eq!(whole.source().split_at(1).0.copy_head(&mut [9; 2]), [0]);
            let mut tail = [0; 3];
            whole.source().split_at(47).1.copy_to(&mut tail);
            assert_eq!(tail, [47, 48, 49]);
        }
    }

    #[test]
    #[should_panic(expected = "there are fewer bytes")]
    fn nothing_behind_the_end_is_reached() {
        let _ = shared(&[1, 2]).split_at(3);
    }

    #[test]
    #[should_panic(expected = "2 bytes do not fill 3")]
    fn a_copy_fills_its_place() {
        shared(&[1, 2]).copy_to(&mut [0; 3]);
    }
}
