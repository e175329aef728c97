// SPDX-License-Identifier: Apache-2.0
//! Memory that another process maps too. All unsafe code of the shared-memory link is here.
//!
//! The other process may write any of it at any time. So there is no reference to what it has written: words are read and written
//! by atomic operations, each once, and bytes are copied, by what is given no more than a [`Source`]. What was copied does not change
//! any more, and is checked like what comes from a network. Only what this process writes may be written in place ([`Mapping::room`]).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use nacelle_memory::Source;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use super::ring::Words;

/// `f_type` of memory files (statfs(2)): neither a file of huge pages, of which there may be none when one is touched, nor one of a
/// file system that another program serves.
const TMPFS: i64 = 0x0102_1994;
/// What a memory file must be sealed against: its pages stay there for as long as they are mapped.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Where the memory comes from, and how it goes.
#[derive(Debug)]
enum Owner {
    /// mmap(2).
    File,
    /// The heap, for tests in one process, also those under Miri.
    #[cfg(test)]
    Heap,
    /// Another value.
    #[cfg(test)]
    Borrowed,
}

/// Shared memory of a fixed length, as long as this value lives.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u64>,
    /// In bytes, a multiple of 8.
    len: usize,
    owner: Owner,
}

// SAFETY: nothing in it belongs to a thread, and all that it offers works from any thread.
unsafe impl Send for Mapping {}

/// Makes a memory file of `len` bytes that exist and stay: the system has no memory for it now, or never has.
pub(super) fn memory_file(len: usize) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("nacelle-shm", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, len as u64)?;
    rustix::fs::fcntl_add_seals(&file, SEALS)?;
    Ok(file)
}

impl Mapping {
    /// Maps a memory file that another process may have made. It must be one, of exactly this length, and sealed so.
    ///
    /// # Errors
    /// `InvalidInput` if it is something else; the error of the system.
    pub(super) fn of(file: impl AsFd, len: usize) -> io::Result<Self> {
        let bad = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        if len == 0 || !len.is_multiple_of(8) || rustix::fs::fstatfs(&file)?.f_type as i64 != TMPFS {
            return bad("it is no memory file");
        }
        if !rustix::fs::fcntl_get_seals(&file)?.contains(SEALS) {
            return bad("the memory file is not sealed, so its memory could vanish");
        }
        if u64::try_from(rustix::fs::fstat(&file)?.st_size).ok() != Some(len as u64) {
            return bad("the memory file has another length");
        }
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of this process. The file is at least `len`
        // bytes long and cannot shrink.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                &file,
                0,
            )?
        };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len, owner: Owner::File })
    }

    /// Memory of the heap that two values share: the first owns it, and must outlive the other.
    #[cfg(test)]
    pub(super) fn pair(len: usize) -> (Self, Self) {
        let words = Box::leak(vec![0u64; len / 8].into_boxed_slice());
        let start = NonNull::from(words).cast();
        (Self { start, len, owner: Owner::Heap }, Self { start, len, owner: Owner::Borrowed })
    }

    /// The word at `offset`.
    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < self.len, "a word at {offset} of {}", self.len);
        // SAFETY: the word lies in the mapping, which lives as long as `self`, and is aligned: the mapping begins at a page, or is a
        // slice of words. This process accesses it by atomic operations, or by copies that the ring's protocol keeps apart from them.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().byte_add(offset)) }
    }

    /// `len` bytes from `offset` on, to be written in place. Another process that breaks the ring's protocol may change them at any
    /// time, so nothing may depend on what is read back of them.
    pub(super) fn room(&mut self, offset: usize, len: usize) -> &mut [u8] {
        let start = self.place(offset, len);
        // SAFETY: `place` has checked the range, whose bytes are initialised: the kernel's zeros, or what was written since. By the
        // ring's protocol nothing in this process accesses them but by this borrow, until the writer publishes them. Another process
        // that writes them all the same is outside of this program, as a device is that writes by DMA: then some mixture of bytes is
        // read back, and any bytes are a valid value.
        unsafe { NonNull::slice_from_raw_parts(start, len).as_mut() }
    }

    /// `len` bytes from `offset` on, to be copied. By the ring's protocol nothing in this process writes them meanwhile.
    pub(super) fn source(&self, offset: usize, len: usize) -> Source<'_> {
        let start = self.place(offset, len);
        // SAFETY: `place` has checked the range, which is there as long as `self`. It may be read, and nothing in this process writes
        // it: the ring's reader keeps the writer, if that is in this process too, from the record until it was used, and the other ring
        // is elsewhere. No `Memory` is made of it.
        unsafe { Source::from_raw(NonNull::slice_from_raw_parts(start, len)) }
    }

    /// The address of `len` bytes from `offset` on.
    fn place(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(len <= self.len && offset <= self.len - len, "{len} bytes at {offset} of {}", self.len);
        // SAFETY: the place lies in the mapping, or at its end if there are no bytes.
        unsafe { self.start.cast::<u8>().add(offset) }
    }
}

impl Words for Mapping {
    fn load(&self, offset: usize, order: Ordering) -> u64 {
        self.word(offset).load(order)
    }

    fn store(&self, offset: usize, value: u64, order: Ordering) {
        self.word(offset).store(value, order);
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        let from = self.place(offset, into.len());
        // SAFETY: `place` has checked the range, and `into`, a reference, is no part of it. In this process nothing writes the bytes
        // meanwhile, by the ring's protocol. Another process may: like what a device writes by DMA, it is outside of this program, and
        // then some mixture of old and new bytes is copied. Any bytes are a valid value.
        unsafe { from.copy_to_nonoverlapping(NonNull::from(&mut *into).cast(), into.len()) }
    }

    fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.place(offset, bytes.len());
        // SAFETY: as in `read`; in this process nothing reads the bytes meanwhile either.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) }
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        match self.owner {
            #[cfg(test)]
            Owner::Heap => {
                let words = std::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.len / 8);
                // SAFETY: it came from `Box::leak`, and the value that shares it is gone.
                drop(unsafe { Box::from_raw(words) });
            }
            #[cfg(test)]
            Owner::Borrowed => {}
            Owner::File => {
                // SAFETY: the range is that of a mapping of this value's own, and nothing refers to it any more.
                let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
                debug_assert!(unmapped.is_ok(), "a whole mapping can be unmapped");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_file_is_shared_sealed_and_of_one_length() {
        let file = memory_file(8192).unwrap();
        let (here, there) = (Mapping::of(&file, 8192).unwrap(), Mapping::of(&file, 8192).unwrap());
        here.write(5, b"across");
        let mut got = [0; 6];
        there.read(5, &mut got);
        assert_eq!(&got, b"across");
        here.store(64, 7, Ordering::Release);
        assert_eq!(there.load(64, Ordering::Acquire), 7);
        assert!(rustix::fs::ftruncate(&file, 4096).is_err() && rustix::fs::ftruncate(&file, 1 << 20).is_err());
        for wrong in [0, 4096, 8191, 16384] {
            assert!(Mapping::of(&file, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_whose_memory_could_vanish_are_refused() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let open = rustix::fs::memfd_create("open", flags).unwrap();
        rustix::fs::ftruncate(&open, 4096).unwrap();
        assert_eq!(Mapping::of(&open, 4096).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let pipe = std::io::pipe().unwrap().0;
        assert!(Mapping::of(&pipe, 4096).is_err());
        let zero = std::fs::File::open("/dev/zero").unwrap();
        assert!(Mapping::of(&zero, 4096).is_err());
    }

    #[test]
    #[should_panic(expected = "9 bytes at 8184 of 8192")]
    fn nothing_outside_is_accessed() {
        let file = memory_file(8192).unwrap();
        Mapping::of(&file, 8192).unwrap().write(8184, &[0; 9]);
    }
}
