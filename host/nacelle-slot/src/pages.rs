// SPDX-License-Identifier: Apache-2.0
//! Memory that another process or a device reaches too. All unsafe code of this crate is here.
//!
//! Whoever shares it may write any of it at any time, so there is no reference to it: it is copied in and out by atomic operations,
//! the widest that are aligned, from the lowest address on, each one in order behind those before it. So an aligned word of 2, 4 or 8
//! bytes is never torn, and who sees a word that was written sees all that was written before.
//!
//! A file that gets shorter takes its pages with it, and who touches them gets SIGBUS. So only memory files are mapped that are sealed
//! against it ([`Pages::of`]); those of a device are as its driver gives them ([`Pages::of_device`]).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// `f_type` of memory files (statfs(2)). One of huge pages has another: of those there may be none when one is touched.
const TMPFS: i64 = 0x0102_1994;
/// What mapping counts in.
const PAGE: u64 = 4096;

/// What may be done with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// It may be read.
    pub read: bool,
    /// It may be written.
    pub write: bool,
}

impl Access {
    /// Both.
    pub const BOTH: Self = Self { read: true, write: true };

    fn protection(self) -> ProtFlags {
        let mut flags = ProtFlags::empty();
        flags.set(ProtFlags::READ, self.read);
        flags.set(ProtFlags::WRITE, self.write);
        flags
    }
}

/// Not all of an access lies in the memory, or it may not be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the access is not within the memory, or is not allowed")]
pub struct OutOfPages;

/// Shared memory of a fixed length, as long as this value lives.
#[derive(Debug)]
pub struct Pages {
    /// The first byte, in a mapping that begins at a page.
    start: NonNull<u8>,
    len: usize,
    /// Bytes of the mapping before `start`.
    lead: usize,
    access: Access,
    file: Option<OwnedFd>,
}

// SAFETY: nothing in it belongs to a thread, and all that it offers works from any thread.
unsafe impl Send for Pages {}
// SAFETY: as above; what is behind `&self` is accessed by atomic operations alone.
unsafe impl Sync for Pages {}

impl Pages {
    /// A new memory file of `len` bytes of zeros, sealed, which can be given to others.
    ///
    /// # Errors
    /// That of the system.
    pub fn create(name: &str, len: usize) -> io::Result<Self> {
        let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, len as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let mut pages = Self::of(&file, 0, len, Access::BOTH)?;
        pages.file = Some(file);
        Ok(pages)
    }

    /// `len` bytes of a file that somebody else made, from `offset` on.
    ///
    /// # Errors
    /// `Unsupported` if its pages could vanish: it is no memory file, or not sealed against getting shorter. `InvalidInput` if it is
    /// shorter than that. Otherwise that of the system.
    pub fn of(file: impl AsFd, offset: u64, len: usize, access: Access) -> io::Result<Self> {
        let sealed = rustix::fs::fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
        if !sealed || rustix::fs::fstatfs(&file)?.f_type as i64 != TMPFS {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the file's memory could vanish"));
        }
        let size = u64::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(0);
        if len == 0 || offset.checked_add(len as u64).is_none_or(|end| end > size) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is shorter"));
        }
        Self::map(file.as_fd(), offset, len, access)
    }

    /// `len` bytes of a device's file, from `offset` on, a multiple of the page size.
    ///
    /// Its driver may take them away again: the kernel's VFIO does while memory space is off, and an access gets SIGBUS then.
    ///
    /// # Errors
    /// That of the system.
    pub fn of_device(file: impl AsFd, offset: u64, len: usize, access: Access) -> io::Result<Self> {
        Self::map(file.as_fd(), offset, len, access)
    }

    /// `len` bytes of zeros of this process.
    ///
    /// # Errors
    /// That of the system.
    pub fn anonymous(len: usize) -> io::Result<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of this process.
        let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, protection, flags)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len, lead: 0, access: Access::BOTH, file: None })
    }

    fn map(file: BorrowedFd<'_>, offset: u64, len: usize, access: Access) -> io::Result<Self> {
        let lead = (offset % PAGE) as usize;
        let bytes = len.checked_add(lead).ok_or(io::ErrorKind::InvalidInput)?;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of this process.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), bytes, access.protection(), flags, file, offset - lead as u64)?
        };
        let first = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the mapping has more bytes than that.
        let start = unsafe { first.add(lead) };
        Ok(Self { start, len, lead, access, file: None })
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The file, of memory that was [created](Self::create).
    #[must_use]
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }

    /// Where it is in this process, for a kernel or device that accesses it too.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.start.as_ptr().expose_provenance() as u64
    }

    /// Copies the bytes from `offset` on into `into`.
    ///
    /// # Errors
    /// If they do not all exist, or may not be read. Nothing is copied then.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), OutOfPages> {
        if !self.access.read {
            return Err(OutOfPages);
        }
        let mut from = self.place(offset, into.len())?;
        let mut rest = into;
        while !rest.is_empty() {
            let (piece, others) = rest.split_at_mut(widest(from, rest.len()));
            // SAFETY: `place` has checked the range, of which this is a part; it is aligned to its length.
            unsafe { load(from, piece) };
            // SAFETY: the place behind the piece is in the range, or at its end.
            from = unsafe { from.add(piece.len()) };
            rest = others;
        }
        Ok(())
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Errors
    /// If there is no room for all of them, or it may not be written. Nothing is copied then.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), OutOfPages> {
        if !self.access.write {
            return Err(OutOfPages);
        }
        let mut to = self.place(offset, bytes.len())?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, others) = rest.split_at(widest(to, rest.len()));
            // SAFETY: `place` has checked the range, of which this is a part; it is aligned to its length.
            unsafe { store(to, piece) };
            // SAFETY: the place behind the piece is in the range, or at its end.
            to = unsafe { to.add(piece.len()) };
            rest = others;
        }
        Ok(())
    }

    /// The address of `len` bytes from `offset` on.
    fn place(&self, offset: u64, len: usize) -> Result<NonNull<u8>, OutOfPages> {
        let offset = usize::try_from(offset).map_err(|_| OutOfPages)?;
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(OutOfPages);
        }
        // SAFETY: the place lies in the mapping, or at its end.
        Ok(unsafe { self.start.add(offset) })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping begins so many bytes before; it is of this value's own, and nothing refers to it any more.
        let unmapped = unsafe { rustix::mm::munmap(self.start.sub(self.lead).as_ptr().cast(), self.len + self.lead) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can be unmapped");
    }
}

/// Bytes of the widest word that is aligned at `at`, and no longer than `len`.
fn widest(at: NonNull<u8>, len: usize) -> usize {
    let aligned = 1 << at.addr().trailing_zeros().min(3);
    let fits = 1 << len.ilog2().min(3);
    usize::min(aligned, fits)
}

/// Loads a word of 1, 2, 4 or 8 bytes.
///
/// # Safety
/// It is there, aligned, and accessed by atomic operations in this process.
unsafe fn load(from: NonNull<u8>, into: &mut [u8]) {
    let from = from.as_ptr();
    // SAFETY: by the contract of this function. Another process is outside of this program, as a device is that writes by DMA.
    unsafe {
        match into.len() {
            8 => into.copy_from_slice(&AtomicU64::from_ptr(from.cast()).load(Ordering::Acquire).to_ne_bytes()),
            4 => into.copy_from_slice(&AtomicU32::from_ptr(from.cast()).load(Ordering::Acquire).to_ne_bytes()),
            2 => into.copy_from_slice(&AtomicU16::from_ptr(from.cast()).load(Ordering::Acquire).to_ne_bytes()),
            _ => into[0] = AtomicU8::from_ptr(from).load(Ordering::Acquire),
        }
    }
}

/// Stores a word of 1, 2, 4 or 8 bytes.
///
/// # Safety
/// As for [`load`].
unsafe fn store(to: NonNull<u8>, bytes: &[u8]) {
    let to = to.as_ptr();
    // SAFETY: as in `load`.
    unsafe {
        match *bytes {
            [a, b, c, d, e, f, g, h] => {
                AtomicU64::from_ptr(to.cast()).store(u64::from_ne_bytes([a, b, c, d, e, f, g, h]), Ordering::Release)
            }
            [a, b, c, d] => {
                AtomicU32::from_ptr(to.cast()).store(u32::from_ne_bytes([a, b, c, d]), Ordering::Release);
            }
            [a, b] => AtomicU16::from_ptr(to.cast()).store(u16::from_ne_bytes([a, b]), Ordering::Release),
            _ => AtomicU8::from_ptr(to).store(bytes[0], Ordering::Release),
        }
    }
}
