// SPDX-License-Identifier: Apache-2.0
//! How other threads wake the network's.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The end that is waited at.
#[derive(Debug)]
pub(super) struct Wake {
    stream: UnixStream,
    woken: Arc<AtomicBool>,
}

/// An end that wakes.
#[derive(Debug, Clone)]
pub(super) struct Waker {
    stream: Arc<UnixStream>,
    /// Set behind each byte, so that the other end need not look for bytes where there are none.
    woken: Arc<AtomicBool>,
}

/// Two ends that belong together.
///
/// # Errors
/// If the system has no socket left.
pub(super) fn wake() -> io::Result<(Wake, Waker)> {
    let (here, there) = UnixStream::pair()?;
    here.set_nonblocking(true)?;
    there.set_nonblocking(true)?;
    let woken = Arc::new(AtomicBool::new(false));
    Ok((Wake { stream: here, woken: Arc::clone(&woken) }, Waker { stream: Arc::new(there), woken }))
}

impl Wake {
    /// Readable when there is something to look for.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Clears the wake-up. Queues must be checked after this, so that no event is missed.
    pub(super) fn clear(&self) {
        if !self.woken.load(Ordering::Relaxed) || !self.woken.swap(false, Ordering::AcqRel) {
            return;
        }
        let mut bytes = [0; 64];
        while (&self.stream).read(&mut bytes).is_ok_and(|length| length == bytes.len()) {}
    }
}

impl Waker {
    /// Wakes. If the socket is full, that has been done.
    pub(super) fn wake(&self) {
        let _ = (&*self.stream).write(&[0]);
        self.woken.store(true, Ordering::Release);
    }
}
