// SPDX-License-Identifier: Apache-2.0
//! Eventfds that somebody else made: nothing here waits for who has the other end.

use std::os::fd::{AsFd, AsRawFd};

use rustix::event::{PollFd, PollFlags, Timespec};

/// The link in /proc of a descriptor that is an eventfd.
const EVENTFD: &[u8] = b"anon_inode:[eventfd]";

/// Adds one to an eventfd, unless that would block. One whose counter is full says what it shall already.
pub fn signal(eventfd: &impl AsFd) {
    let mut ready = [PollFd::new(eventfd, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if rustix::event::poll(&mut ready, Some(&now)) == Ok(1) && ready[0].revents() == PollFlags::OUT {
        let _its_reader_may_be_gone = rustix::io::write(eventfd, &1u64.to_ne_bytes());
    }
}

/// Whether a descriptor is an eventfd, as far as can be found out: writes to others could block.
#[must_use]
pub fn is_eventfd(descriptor: &impl AsFd) -> bool {
    let link = format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd());
    rustix::fs::readlink(link, Vec::new()).map_or(true, |link| link.as_bytes() == EVENTFD)
}
