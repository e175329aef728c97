// SPDX-License-Identifier: Apache-2.0
//! Memory that this process shares with the kernel: places for frames, and the rings that say whose they are.

use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

use super::{CHUNK, LONGEST};
use crate::interface::Numbers;

/// Mapped memory, as long as this value lives.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no reference to it outlives this value.
        let _nothing_can_be_done = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Places for frames, of [`CHUNK`] bytes each.
#[derive(Debug)]
pub(super) struct Frames(Mapping);

impl Frames {
    pub(super) fn new(count: usize) -> io::Result<Self> {
        let len = count * CHUNK;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of this process.
        let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, protection, flags)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self(Mapping { start, len }))
    }

    /// Where they begin in memory, and how many bytes they have.
    pub(super) fn extent(&self) -> (u64, u64) {
        (self.0.start.as_ptr() as u64, self.0.len as u64)
    }

    /// The bytes at `at`, `len` at most, and none beyond the end.
    fn bytes(&self, at: u64, len: usize) -> (NonNull<u8>, usize) {
        let at = usize::try_from(at).map_or(self.0.len, |at| at.min(self.0.len));
        // SAFETY: `at` is not beyond the end of the mapping.
        (unsafe { self.0.start.add(at) }, len.min(self.0.len - at))
    }

    /// Copies a frame of `len` bytes out. The place must be one that the kernel has given back by a ring.
    pub(super) fn read(&self, at: u64, len: usize, buffer: &mut [u8]) -> usize {
        let (from, len) = self.bytes(at, len.min(buffer.len()));
        // SAFETY: `len` bytes are there on both sides, `buffer` is no part of the mapping, and the kernel does not write to a place
        // that is this process's.
        unsafe { from.copy_to_nonoverlapping(NonNull::from(buffer).cast(), len) };
        len
    }

    /// Copies a frame in, cut to what a place holds. The place must be one that no ring has given to the kernel.
    pub(super) fn write(&mut self, at: u64, frame: &[u8]) -> usize {
        let (to, len) = self.bytes(at, frame.len().min(LONGEST));
        // SAFETY: `len` bytes are there on both sides, `frame` is no part of the mapping, and the kernel does not look at a place
        // that is this process's.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(frame).cast(), len) };
        len
    }
}

/// No ring has more bytes than this.
const LARGEST: usize = 1 << 20;

/// A ring of entries with one writer and one reader, one of which is the kernel.
#[derive(Debug)]
pub(super) struct Ring<T> {
    map: Mapping,
    /// Where the shared words and the entries are, in bytes. They have been checked.
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    /// A power of two.
    size: u32,
    /// The position of this side: how many entries it has written, or read.
    own: u32,
    /// That of the other side, when it was last looked at.
    other: u32,
    kind: PhantomData<T>,
}

impl<T: Numbers> Ring<T> {
    /// Maps the ring of a socket that is found at `page`. It has `size` entries, a power of two, and is new.
    pub(super) fn map(socket: BorrowedFd<'_>, page: u64, at: &libc::xdp_ring_offset, size: u32) -> io::Result<Self> {
        let offset = |offset: u64| usize::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidData));
        let (producer, consumer) = (offset(at.producer)?, offset(at.consumer)?);
        let (flags, entries) = (offset(at.flags)?, offset(at.desc)?);
        let len = entries.saturating_add(size as usize * size_of::<T>());
        let fits =
            [producer, consumer, flags].iter().all(|word| word.is_multiple_of(4) && *word <= len.saturating_sub(4));
        if !fits || len > LARGEST || !entries.is_multiple_of(align_of::<T>()) || !size.is_power_of_two() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (protection, flag) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of this process.
        let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, protection, flag, socket, page)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let map = Mapping { start, len };
        Ok(Self { map, producer, consumer, flags, entries, size, own: 0, other: 0, kind: PhantomData })
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the word is in the mapping and aligned (`map`), lives as long as it, and both sides use it by atomic operations
        // only.
        unsafe { AtomicU32::from_ptr(self.map.start.add(at).as_ptr().cast()) }
    }

    fn entry(&self, position: u32) -> NonNull<T> {
        let index = (position & (self.size - 1)) as usize;
        // SAFETY: the mapping has `size` entries from there on (`map`), and the index is less.
        unsafe { self.map.start.add(self.entries).cast::<T>().add(index) }
    }

    /// Whether the kernel wants to be woken to look at the ring.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.word(self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// How many entries the kernel has not read, or has not said so of. For rings that the kernel reads.
    pub(super) fn unread(&self) -> u32 {
        self.own.wrapping_sub(self.word(self.consumer).load(Ordering::Relaxed)).min(self.size)
    }

    /// Writes an entry and publishes it; false if the ring is full. For rings that the kernel reads.
    pub(super) fn push(&mut self, entry: T) -> bool {
        if self.own.wrapping_sub(self.other) >= self.size {
            self.other = self.word(self.consumer).load(Ordering::Acquire);
            if self.own.wrapping_sub(self.other) >= self.size {
                return false;
            }
        }
        // SAFETY: the pointer is to an entry, aligned (`map`), and the kernel has read what was there: it reads it again only when
        // this side has published it.
        unsafe { self.entry(self.own).write(entry) };
        self.own = self.own.wrapping_add(1);
        self.word(self.producer).store(self.own, Ordering::Release);
        true
    }

    /// Reads the next entry, if there is one. For rings that the kernel writes.
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.own == self.other {
            let other = self.word(self.producer).load(Ordering::Acquire);
            // More than the ring holds is not there, whatever was written into the word.
            if !(1..=self.size).contains(&other.wrapping_sub(self.own)) {
                return None;
            }
            self.other = other;
        }
        // SAFETY: the pointer is to an entry, aligned (`map`), which the kernel has published, and does not write until this side
        // says that it has read it. Any bits are a value.
        let entry = unsafe { self.entry(self.own).read() };
        self.own = self.own.wrapping_add(1);
        self.word(self.consumer).store(self.own, Ordering::Release);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    const AT: libc::xdp_ring_offset = libc::xdp_ring_offset { producer: 0, consumer: 64, desc: 128, flags: 68 };

    /// A ring of 4 entries in a file, to which the test writes as the kernel does.
    fn ring() -> (Ring<u64>, File) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(128 + 4 * 8).unwrap();
        (Ring::map(file.as_fd(), 0, &AT, 4).unwrap(), file)
    }

    fn set(file: &File, at: u64, word: u32) {
        file.write_all_at(&word.to_ne_bytes(), at).unwrap();
    }

    fn word(file: &File, at: u64) -> u32 {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, at).unwrap();
        u32::from_ne_bytes(bytes)
    }

    #[test]
    fn what_is_pushed_is_unread_until_the_kernel_has_read_it() {
        let (mut ring, file) = ring();
        for round in 0..3u32 {
            assert!((0..4).all(|entry| ring.push(entry)) && !ring.push(4));
            assert_eq!((ring.unread(), word(&file, AT.producer)), (4, 4 * round + 4));
            set(&file, AT.consumer, 4 * round + 3);
            assert_eq!(ring.unread(), 1);
            set(&file, AT.consumer, 4 * round + 4);
            assert_eq!(ring.unread(), 0);
        }
    }

    #[test]
    fn what_the_kernel_has_written_comes_in_order() {
        let (mut ring, file) = ring();
        for position in 0..9u32 {
            assert_eq!(ring.pop(), None);
            file.write_all_at(&u64::from(position).to_ne_bytes(), AT.desc + u64::from(position & 3) * 8).unwrap();
            set(&file, AT.producer, position + 1);
            assert_eq!(ring.pop(), Some(u64::from(position)));
            assert_eq!(word(&file, AT.consumer), position + 1);
        }
    }

    /// A position that no kernel writes: it has written more than fits, or read more than there is.
    #[test]
    fn positions_beyond_the_ring_are_none() {
        for position in [5, 1000, u32::MAX] {
            let (mut ring, file) = ring();
            set(&file, AT.producer, position);
            assert_eq!(ring.pop(), None, "{position}");
            set(&file, AT.consumer, position);
            assert!(ring.unread() <= 4, "{position}");
        }
    }

    #[test]
    fn offsets_that_are_no_ring_are_refused() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        for at in [
            libc::xdp_ring_offset { producer: 1, ..AT },
            libc::xdp_ring_offset { consumer: 158, ..AT },
            libc::xdp_ring_offset { flags: 160, ..AT },
            libc::xdp_ring_offset { desc: 132, ..AT },
            libc::xdp_ring_offset { producer: u64::MAX, ..AT },
            libc::xdp_ring_offset { desc: !7, ..AT },
        ] {
            let refused = Ring::<u64>::map(file.as_fd(), 0, &at, 4).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{at:?}");
        }
    }

    /// Of a place that is not there nothing is read, and nothing is written to it.
    #[test]
    fn places_beyond_the_memory_have_no_bytes() {
        let mut frames = Frames::new(2).unwrap();
        let end = 2 * CHUNK as u64;
        assert_eq!(frames.write(CHUNK as u64, &[7; 5000]), LONGEST);
        let mut buffer = [0; 9000];
        assert_eq!(frames.read(CHUNK as u64, usize::MAX, &mut buffer), CHUNK);
        assert_eq!((buffer[LONGEST - 1], buffer[LONGEST]), (7, 0));
        for at in [end, end + 1, u64::MAX] {
            assert_eq!((frames.write(at, &[1; 60]), frames.read(at, 60, &mut buffer)), (0, 0));
        }
    }
}
