// SPDX-License-Identifier: Apache-2.0
//! A descriptor for the event loop of a program: readable when a frame, a timer or news of a call is there.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// A set of the link, a timer and a counter of news.
pub(super) struct Pollable {
    set: OwnedFd,
    timer: OwnedFd,
    news: OwnedFd,
}

impl Pollable {
    pub(super) fn new(link: BorrowedFd<'_>) -> io::Result<Self> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let news = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        for fd in [link, timer.as_fd(), news.as_fd()] {
            epoll::add(&set, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        Ok(Self { set, timer, news })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }

    /// Makes it readable at this moment too.
    pub(super) fn arm(&self, at: Option<Instant>) {
        // A time of zero would stop the timer.
        let left = at.map(|at| at.saturating_duration_since(Instant::now()).as_nanos().max(1));
        let nanos = left.map_or(0, |left| u64::try_from(left).unwrap_or(u64::MAX));
        let (secs, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        let it_value = Timespec { tv_sec: secs as i64, tv_nsec: nanos as i64 };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).expect("the time is valid");
    }

    /// There is news of a call.
    pub(super) fn announce(&self) {
        // A counter that is full says so already.
        let _ = rustix::io::write(&self.news, &1u64.to_ne_bytes());
    }

    /// The news has been noticed.
    pub(super) fn clear_news(&self) {
        clear(&self.news);
    }

    /// The timer's expiry has been noticed.
    pub(super) fn clear_timer(&self) {
        clear(&self.timer);
    }
}

fn clear(counter: &OwnedFd) {
    // It may be zero.
    let _ = rustix::io::read(counter, &mut [0; 8]);
}
