// SPDX-License-Identifier: Apache-2.0
//! How other threads wake the network's.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// The end that is waited at.
#[derive(Debug)]
pub(super) struct Wake(UnixStream);

/// An end that wakes.
#[derive(Debug, Clone)]
pub(super) struct Waker(Arc<UnixStream>);

/// Two ends that belong together.
///
/// # Errors
/// If the system has no socket left.
pub(super) fn wake() -> io::Result<(Wake, Waker)> {
    let (wake, waker) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    waker.set_nonblocking(true)?;
    Ok((Wake(wake), Waker(Arc::new(waker))))
}

impl Wake {
    /// Readable when there is something to look for.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Forgets that it was woken. What was to be told must be looked for after this, so that nothing is missed.
    pub(super) fn clear(&self) {
        let mut bytes = [0; 64];
        while (&self.0).read(&mut bytes).is_ok_and(|length| length == bytes.len()) {}
    }
}

impl Waker {
    /// Wakes. If the socket is full, that has been done.
    pub(super) fn wake(&self) {
        let _ = (&*self.0).write(&[0]);
    }
}
