// SPDX-License-Identifier: Apache-2.0
//! Names that one process at a time holds.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, Mode, OFlags};

/// A name on a wire, held for as long as this value lives. The kernel releases it however the process ends.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    _file: File,
}

impl Claim {
    /// Locks the file at `path`, or returns `None` if another has.
    pub(crate) fn take(path: PathBuf) -> io::Result<Option<Self>> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let file = File::from(rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?);
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            }
            // Its last holder removes the file: then this lock is one on nothing, and others lock another file.
            let here = file.metadata()?;
            if fs::symlink_metadata(&path).is_ok_and(|there| (there.dev(), there.ino()) == (here.dev(), here.ino())) {
                return Ok(Some(Self { path, _file: file }));
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _gone_already_is_fine = fs::remove_file(&self.path);
    }
}
