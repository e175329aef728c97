// SPDX-License-Identifier: Apache-2.0
//! The client's memory, as the function reaches it: which addresses there are, and how each is accessed.
//!
//! A client gives a range with a descriptor of its memory, or without. With one:
//!
//! - a memory file that is sealed against getting shorter is mapped, and accessed in place ([`Pages`]);
//! - any other file is read and written by system calls, as its pages could vanish under a mapping, which kills the process. Such an
//!   access of a file that has become shorter is a [`Fault`].
//!
//! Without one, the memory is reached by messages to the client, which are not sent here.
//!
//! Each access is looked up anew, so nothing of a range is used once it has been taken away.

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::pages::{Access, Pages};

/// Why a range is not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// It has no bytes.
    #[error("the range has no bytes")]
    Empty,
    /// It goes beyond the last address.
    #[error("the range goes beyond the last address")]
    Wraps,
    /// Some of it is another range's.
    #[error("some of the range is mapped already")]
    Overlaps,
    /// It may neither be read nor written.
    #[error("the range may neither be read nor written")]
    NoAccess,
    /// There are too many.
    #[error("there are {0} ranges already")]
    TooMany(usize),
    /// The file cannot be used.
    #[error("the memory cannot be accessed: {0}")]
    File(#[from] io::Error),
}

impl MapError {
    /// What a client is told.
    #[must_use]
    pub fn errno(&self) -> Errno {
        match self {
            Self::Empty | Self::Wraps | Self::NoAccess => Errno::INVAL,
            Self::Overlaps => Errno::EXIST,
            Self::TooMany(_) => Errno::NOSPC,
            Self::File(error) => Errno::from_io_error(error).unwrap_or(Errno::INVAL),
        }
    }
}

/// Why an access of the function failed. In the terms of PCI Express: it ends with unsupported request, or completion timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Some of the addresses are in no range.
    #[error("the addresses are not mapped")]
    Unmapped,
    /// The client does not allow it there.
    #[error("the memory may not be accessed so")]
    NotAllowed,
    /// The memory's file refused.
    #[error("the memory cannot be reached")]
    Unreachable,
    /// Bus Master Enable is off.
    #[error("the function may not send requests")]
    BusMaster,
    /// Longer than the client takes in a message, or part of it lies in another range.
    #[error("the access is too long for a message")]
    TooLong,
    /// As many messages are under way as may be.
    #[error("too many accesses are under way")]
    Busy,
    /// The client did not answer in time.
    #[error("the client does not answer")]
    Timeout,
    /// The client answered with an error, or with something else than what was asked for.
    #[error("the client refuses")]
    Refused,
    /// The client has gone.
    #[error("there is no client")]
    NoClient,
}

/// How an access is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It is done.
    Done,
    /// By a message to the client.
    ByMessage,
}

/// Where bytes of a range are.
#[derive(Debug)]
enum Backing {
    Mapped(Pages),
    File { file: OwnedFd, offset: u64 },
    Message,
}

#[derive(Debug)]
struct Region {
    last: u64,
    access: Access,
    backing: Backing,
}

/// The ranges.
#[derive(Debug)]
pub struct DmaTable {
    /// By their first address.
    regions: BTreeMap<u64, Region>,
    most: usize,
}

/// The addresses of `len` bytes from `first` on, if there are so many.
fn addresses(first: u64, len: u64) -> Option<RangeInclusive<u64>> {
    Some(first..=first.checked_add(len.checked_sub(1)?)?)
}

impl DmaTable {
    /// One without ranges, of which it takes so many.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { regions: BTreeMap::new(), most }
    }

    /// Ranges in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.regions.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Takes a range of `size` bytes, which are in `file` from `offset` on, or are reached by messages. Gives its addresses.
    ///
    /// # Errors
    /// If it cannot be, or is too much. Nothing has changed then.
    pub fn map(
        &mut self,
        address: u64,
        size: u64,
        access: Access,
        file: Option<(OwnedFd, u64)>,
    ) -> Result<RangeInclusive<u64>, MapError> {
        if size == 0 {
            return Err(MapError::Empty);
        }
        let range = addresses(address, size).ok_or(MapError::Wraps)?;
        if !access.read && !access.write {
            return Err(MapError::NoAccess);
        }
        if self.overlaps(&range) {
            return Err(MapError::Overlaps);
        }
        if self.regions.len() >= self.most {
            return Err(MapError::TooMany(self.most));
        }
        let backing = match file {
            None => Backing::Message,
            Some((file, offset)) => backing(file, offset, size, access)?,
        };
        self.regions.insert(address, Region { last: *range.end(), access, backing });
        Ok(range)
    }

    fn overlaps(&self, range: &RangeInclusive<u64>) -> bool {
        self.regions.range(..=*range.end()).next_back().is_some_and(|(_, region)| region.last >= *range.start())
    }

    /// The addresses of `size` bytes from `address` on, if no range lies in them in part. `None` also if there are no such addresses.
    #[must_use]
    pub fn whole(&self, address: u64, size: u64) -> Option<RangeInclusive<u64>> {
        let addresses = addresses(address, size)?;
        let reaches_in = |before: u64| self.regions.range(..before).next_back().is_some_and(|(_, r)| r.last >= before);
        let reaches_out = |(_, region): (&u64, &Region)| region.last > *addresses.end();
        let cut = reaches_in(address) || self.regions.range(..=*addresses.end()).next_back().is_some_and(reaches_out);
        (!cut).then_some(addresses)
    }

    /// Whether a range begins in these addresses.
    #[must_use]
    pub fn has_any(&self, addresses: &RangeInclusive<u64>) -> bool {
        self.regions.range(addresses.clone()).next().is_some()
    }

    /// Gives back the ranges that begin in these addresses.
    pub fn unmap(&mut self, addresses: &RangeInclusive<u64>) {
        self.regions.retain(|first, _| !addresses.contains(first));
    }

    /// Gives back all.
    pub fn clear(&mut self) {
        self.regions.clear();
    }

    /// Copies bytes of the client's memory into `into`, unless a message must fetch them.
    ///
    /// # Errors
    /// If not all of it can be read.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<Reach, Fault> {
        let reach = self.check(address, into.len(), |access| access.read)?;
        if reach == Reach::Done {
            let mut done = 0;
            while done < into.len() {
                let (region, within, len) = self.piece(address + done as u64, into.len() - done)?;
                let piece = &mut into[done..done + len];
                match &region.backing {
                    Backing::Mapped(pages) => pages.read(within, piece).map_err(|_| Fault::NotAllowed)?,
                    Backing::File { file, offset } => read_file(file, offset + within, piece)?,
                    Backing::Message => return Err(Fault::TooLong),
                }
                done += len;
            }
        }
        Ok(reach)
    }

    /// Copies `bytes` into the client's memory, unless a message must carry them.
    ///
    /// # Errors
    /// If not all of it can be written. Nothing is, but of a file that can no longer be written whole.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<Reach, Fault> {
        let reach = self.check(address, bytes.len(), |access| access.write)?;
        if reach == Reach::Done {
            let mut done = 0;
            while done < bytes.len() {
                let (region, within, len) = self.piece(address + done as u64, bytes.len() - done)?;
                let piece = &bytes[done..done + len];
                match &region.backing {
                    Backing::Mapped(pages) => pages.write(within, piece).map_err(|_| Fault::NotAllowed)?,
                    Backing::File { file, offset } => write_file(file, offset + within, piece)?,
                    Backing::Message => return Err(Fault::TooLong),
                }
                done += len;
            }
        }
        Ok(reach)
    }

    /// Whether all of an access is mapped and allowed, and how it is done. One that needs a message lies in one range.
    fn check(&self, address: u64, len: usize, allowed: impl Fn(Access) -> bool) -> Result<Reach, Fault> {
        if len == 0 {
            return Ok(Reach::Done);
        }
        addresses(address, len as u64).ok_or(Fault::Unmapped)?;
        let mut done = 0;
        while done < len {
            let (region, _, piece) = self.piece(address + done as u64, len - done)?;
            if !allowed(region.access) {
                return Err(Fault::NotAllowed);
            }
            if matches!(region.backing, Backing::Message) {
                return if piece == len { Ok(Reach::ByMessage) } else { Err(Fault::TooLong) };
            }
            done += piece;
        }
        Ok(Reach::Done)
    }

    /// The range at an address, how far in it that is, and how many of `len` bytes lie in it.
    fn piece(&self, address: u64, len: usize) -> Result<(&Region, u64, usize), Fault> {
        let (first, region) = self.regions.range(..=address).next_back().ok_or(Fault::Unmapped)?;
        if region.last < address {
            return Err(Fault::Unmapped);
        }
        let left = region.last - address;
        let piece = usize::try_from(left).map_or(len, |left| left.saturating_add(1).min(len));
        Ok((region, address - first, piece))
    }
}

/// How a file's bytes are accessed.
fn backing(file: OwnedFd, offset: u64, size: u64, access: Access) -> Result<Backing, MapError> {
    // Files have no bytes beyond this.
    if offset.checked_add(size).is_none_or(|end| end > i64::MAX as u64) {
        return Err(MapError::Wraps);
    }
    // What the device may only write is mapped for both: mappings that can be written and not read are rare among processors.
    let mapping = Access { read: true, write: access.write };
    let len = usize::try_from(size).map_err(|_| MapError::Wraps)?;
    match Pages::of(&file, offset, len, mapping) {
        Ok(pages) => Ok(Backing::Mapped(pages)),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            usable(&file, access)?;
            Ok(Backing::File { file, offset })
        }
        Err(error) => Err(error.into()),
    }
}

/// File systems whose files are not taken: what reads or writes one of FUSE waits for another program, perhaps for ever, and huge pages
/// cannot be written by pwrite(2).
const REFUSED: [i64; 2] = [0x6573_5546, 0x9584_58f6];

/// Whether a file that is not mapped can be read and written at any place, and so, as far as its descriptor says.
fn usable(file: &OwnedFd, access: Access) -> io::Result<()> {
    use rustix::fs::{FileType, OFlags};
    let kind = FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode);
    if kind != FileType::RegularFile {
        return Err(Errno::INVAL.into());
    }
    if REFUSED.contains(&(rustix::fs::fstatfs(file)?.f_type as i64)) {
        return Err(Errno::OPNOTSUPP.into());
    }
    let mode = rustix::fs::fcntl_getfl(file)? & OFlags::RWMODE;
    let denied = (access.write && mode == OFlags::RDONLY) || (access.read && mode == OFlags::WRONLY);
    if denied { Err(Errno::ACCESS.into()) } else { Ok(()) }
}

fn read_file(file: &OwnedFd, offset: u64, into: &mut [u8]) -> Result<(), Fault> {
    let mut done = 0;
    while done < into.len() {
        match rustix::io::pread(file, &mut into[done..], offset + done as u64) {
            Ok(0) => return Err(Fault::Unreachable),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(_) => return Err(Fault::Unreachable),
        }
    }
    Ok(())
}

/// A file that has become shorter is not made longer again.
fn write_file(file: &OwnedFd, offset: u64, bytes: &[u8]) -> Result<(), Fault> {
    let size = rustix::fs::fstat(file).map_err(|_| Fault::Unreachable)?.st_size;
    if u64::try_from(size).is_ok_and(|size| offset + bytes.len() as u64 > size) {
        return Err(Fault::Unreachable);
    }
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pwrite(file, &bytes[done..], offset + done as u64) {
            Ok(0) => return Err(Fault::Unreachable),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(_) => return Err(Fault::Unreachable),
        }
    }
    Ok(())
}
