// SPDX-License-Identifier: Apache-2.0
//! The host memory of a hostile driver, which shows every byte that the device writes where it was not asked to.
//!
//! Three planes of equal length lie in one memory file: what the device sees, what should be there, and which bytes the driver has
//! offered to be written. A byte that is not offered must be as it should be. The parent process looks at them when the driver is dead.

use std::fs::OpenOptions;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nacelle_pci::{Access, Pages};

use crate::Failure;

/// Bytes of a plane.
pub(crate) const BYTES: usize = 512 << 10;
/// The IO virtual address of the first one. No other number that the device meets looks like it.
pub(crate) const IOVA: u64 = 0x5a3c_9000_0000_0000;
/// What is where nobody has written.
pub(crate) const GUARD: u8 = 0xa5;

/// What the parts of an arena are for. Only what is read from `PLAIN` leaves the device as frames, and `PLAIN` has no guard bytes: so a
/// frame with some of them was read elsewhere.
pub(crate) mod zone {
    use std::ops::Range;

    /// Rings of queues that receive; both rings of the copy engine.
    pub(crate) const RECEIVE_RINGS: Range<usize> = 0..0x1_0000;
    /// Rings of queues that send.
    pub(crate) const SEND_RINGS: Range<usize> = 0x1_0000..0x2_0000;
    /// Indirect tables of queues that receive, and of those that send.
    pub(crate) const RECEIVE_TABLES: Range<usize> = 0x2_0000..0x2_8000;
    pub(crate) const SEND_TABLES: Range<usize> = 0x2_8000..0x3_0000;
    /// Buffers that the device may write.
    pub(crate) const WRITABLE: Range<usize> = 0x3_0000..0x5_8000;
    /// Buffers that it reads.
    pub(crate) const PLAIN: Range<usize> = 0x5_8000..0x7_0000;
    /// A part that the device is never given.
    pub(crate) const NEVER: Range<usize> = 0x4_8000..0x4_a000;
}

/// A part of the memory that is mapped, or not, as a whole.
pub(crate) const PIECE: usize = 0x8000;

/// One memory file with its planes.
#[derive(Debug)]
pub(crate) struct Arena {
    pages: Pages,
    file: OwnedFd,
    /// Held while both planes of a byte are written: whoever kills this process takes it before.
    whole: Mutex<()>,
}

impl Arena {
    /// A new one, full of guard bytes, none of them offered.
    pub(crate) fn create() -> io::Result<Self> {
        let pages = Pages::create("nacelle-hostile", 3 * BYTES)?;
        let file = pages.file().ok_or(io::ErrorKind::Unsupported)?.try_clone_to_owned()?;
        let arena = Self { pages, file, whole: Mutex::new(()) };
        arena.put(0, &vec![GUARD; 2 * BYTES]);
        Ok(arena)
    }

    /// That of another process, by the path that it gives.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OwnedFd::from(OpenOptions::new().read(true).write(true).open(path)?);
        let pages = Pages::of(&file, 0, 3 * BYTES, Access::BOTH)?;
        Ok(Self { pages, file, whole: Mutex::new(()) })
    }

    /// Where other processes of this user find it, as long as this one lives.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// The file, whose first [`BYTES`] are for the device.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Lets `action` happen while no byte is half written.
    pub(crate) fn between_writes(&self, action: impl FnOnce()) {
        let _whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        action();
    }

    fn put(&self, at: usize, bytes: &[u8]) {
        self.pages.write(at as u64, bytes).expect("it lies within the planes");
    }

    fn get(&self, range: Range<usize>) -> Vec<u8> {
        let mut bytes = vec![0; range.len()];
        self.pages.read(range.start as u64, &mut bytes).expect("it lies within the planes");
        bytes
    }

    /// The driver's own write.
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        let _whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        self.put(BYTES + at, bytes);
        self.put(at, bytes);
    }

    /// From now on the device may write there.
    pub(crate) fn offer(&self, range: Range<usize>) {
        self.put(2 * BYTES + range.start, &vec![1; range.len()]);
    }

    /// From now on the device may write nothing there, and the guard bytes are back.
    pub(crate) fn withdraw(&self, range: Range<usize>) {
        let _whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        self.put(2 * BYTES + range.start, &vec![0; range.len()]);
        self.put(BYTES + range.start, &vec![GUARD; range.len()]);
        self.put(range.start, &vec![GUARD; range.len()]);
    }

    /// Looks for a byte that was written though it was not offered.
    pub(crate) fn check(&self, what: &str) -> Result<(), Failure> {
        let (there, should, offered) = (self.get(0..BYTES), self.get(BYTES..2 * BYTES), self.get(2 * BYTES..3 * BYTES));
        let wrong: Vec<usize> = (0..BYTES).filter(|at| offered[*at] == 0 && there[*at] != should[*at]).collect();
        let Some(first) = wrong.first() else { return Ok(()) };
        let end = BYTES.min(first + 16);
        Err(Failure::Written {
            when: what.to_owned(),
            count: wrong.len(),
            at: IOVA + *first as u64,
            there: format!("{:02x?}", &there[*first..end]),
            should: format!("{:02x?}", &should[*first..end]),
        })
    }

    /// As [`check`](Self::check), when the device has ended all that it was asked to do: from now on it may write nothing.
    pub(crate) fn settle(&self, what: &str) -> Result<(), Failure> {
        self.check(what)?;
        let _whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        self.put(BYTES, &self.get(0..BYTES));
        self.put(2 * BYTES, &[0; BYTES]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_seen_where_it_was_not_offered() {
        let arena = Arena::create().unwrap();
        let device = Arena::open(&arena.path()).unwrap();
        arena.write(100, b"ring");
        arena.offer(200..300);
        device.put(200, &[1; 100]);
        arena.check("offered").unwrap();
        for at in [199, 300, 100, BYTES - 1] {
            let before = device.get(at..at + 1);
            device.put(at, b"!");
            assert!(
                matches!(arena.check("not offered"), Err(Failure::Written { count: 1, at: seen, .. }) if seen == IOVA + at as u64)
            );
            device.put(at, &before);
        }
        // What was offered before the end is not any more.
        arena.settle("end").unwrap();
        device.put(250, b"!");
        assert!(arena.check("behind the end").is_err());
        arena.withdraw(200..300);
        arena.check("withdrawn").unwrap();
        device.put(299, b"!");
        assert!(arena.check("withdrawn").is_err());
    }
}
