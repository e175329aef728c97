// SPDX-License-Identifier: Apache-2.0
//! Interrupts, as eventfds.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nacelle_slot::channel;
use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::io::Errno;

/// An interrupt of a function. Its descriptor can be read once it has come.
#[derive(Debug)]
pub struct Interrupt {
    eventfd: OwnedFd,
}

impl Interrupt {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { eventfd: rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// How often it has come since the last time; does not wait.
    ///
    /// # Errors
    /// That of the system.
    pub fn take(&self) -> io::Result<u64> {
        let mut times = [0; 8];
        match rustix::io::read(&self.eventfd, &mut times) {
            Ok(_) => Ok(u64::from_ne_bytes(times)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(errno) => Err(errno.into()),
        }
    }

    /// How often it has come since the last time. Waits for it, `wait` at most; 0 if it has not come then.
    ///
    /// # Errors
    /// That of the system.
    pub fn wait(&self, wait: Duration) -> io::Result<u64> {
        channel::wait(&mut [PollFd::new(&self.eventfd, PollFlags::IN)], Some(wait))?;
        self.take()
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}
