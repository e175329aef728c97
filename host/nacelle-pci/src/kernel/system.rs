// SPDX-License-Identifier: Apache-2.0
//! The system below, of which tests have a model. All unsafe code of this crate is here.

use std::ffi::{CStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nacelle_slot::pages::{Access, Pages};
use rustix::fs::{Mode, OFlags};

use super::calls::Call;

/// What a call is given.
#[derive(Debug)]
pub enum Argument<'a> {
    /// Nothing.
    None,
    /// A number.
    Number(u64),
    /// A name.
    Name(&'a CStr),
    /// A descriptor.
    Descriptor(BorrowedFd<'a>),
    /// A structure, whose first four bytes say how long it is; the answer is in it.
    Structure(&'a mut [u8]),
}

/// What the kernel is asked for.
pub trait System {
    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// That of the system; likewise for the others.
    fn open(&self, path: &Path) -> io::Result<OwnedFd>;

    /// Where a link leads to.
    fn link(&self, path: &Path) -> io::Result<PathBuf>;

    /// The names in a folder.
    fn names(&self, path: &Path) -> io::Result<Vec<OsString>>;

    /// ioctl(2).
    fn call(&self, file: BorrowedFd<'_>, call: Call, argument: Argument<'_>) -> io::Result<i32>;

    /// A call that gives a descriptor.
    fn call_for_descriptor(&self, file: BorrowedFd<'_>, call: Call, argument: Argument<'_>) -> io::Result<OwnedFd>;

    /// pread(2).
    fn read_at(&self, file: BorrowedFd<'_>, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// pwrite(2).
    fn write_at(&self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// mmap(2).
    fn map(&self, file: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Pages>;
}

/// Linux.
#[derive(Debug, Clone, Copy, Default)]
pub struct Linux;

impl System for Linux {
    fn open(&self, path: &Path) -> io::Result<OwnedFd> {
        Ok(rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
    }

    fn link(&self, path: &Path) -> io::Result<PathBuf> {
        fs::read_link(path)
    }

    fn names(&self, path: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn call(&self, file: BorrowedFd<'_>, call: Call, argument: Argument<'_>) -> io::Result<i32> {
        let request = call as libc::Ioctl;
        let file = file.as_raw_fd();
        // SAFETY: the descriptor is open. A call takes a number, or a pointer that is good for as long as the call lasts: to a text with
        // its end, to a descriptor, or to a structure whose length it finds there, which is checked to be no more than the bytes. What
        // a structure points at is memory that the process shares with the device, and is accessed as such (`Pages`).
        let result = unsafe {
            match argument {
                Argument::None => libc::ioctl(file, request, 0u64),
                Argument::Number(number) => libc::ioctl(file, request, number),
                Argument::Name(name) => libc::ioctl(file, request, name.as_ptr()),
                Argument::Descriptor(descriptor) => {
                    let descriptor = descriptor.as_raw_fd();
                    libc::ioctl(file, request, std::ptr::from_ref(&descriptor))
                }
                Argument::Structure(bytes) => {
                    check_length(bytes)?;
                    libc::ioctl(file, request, bytes.as_mut_ptr())
                }
            }
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
    }

    fn call_for_descriptor(&self, file: BorrowedFd<'_>, call: Call, argument: Argument<'_>) -> io::Result<OwnedFd> {
        let descriptor = self.call(file, call, argument)?;
        // SAFETY: the kernel has made it for this call, and nobody else has it.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    fn read_at(&self, file: BorrowedFd<'_>, into: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pread(file, into, offset)?)
    }

    fn write_at(&self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pwrite(file, bytes, offset)?)
    }

    fn map(&self, file: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Pages> {
        Pages::of_device(file, offset, len, Access::BOTH)
    }
}

/// The kernel writes no more than the length that a structure says.
fn check_length(bytes: &[u8]) -> io::Result<()> {
    let said = bytes.first_chunk().map(|said| u32::from_ne_bytes(*said) as usize);
    if said.is_some_and(|said| said <= bytes.len()) { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    /// No file here is one of VFIO: what can be tried is that a call is made, and that a structure that is too short is not.
    #[test]
    fn calls_reach_the_kernel_and_short_structures_do_not() {
        let null = Linux.open("/dev/null".as_ref()).unwrap();
        let refused = Linux.call(null.as_fd(), Call::GetApiVersion, Argument::None).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOTTY));
        let mut long = 5u32.to_ne_bytes();
        let refused = Linux.call(null.as_fd(), Call::DeviceGetInfo, Argument::Structure(&mut long)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        let mut exact = 4u32.to_ne_bytes();
        let refused = Linux.call(null.as_fd(), Call::DeviceGetInfo, Argument::Structure(&mut exact)).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOTTY));
    }
}
