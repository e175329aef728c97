// SPDX-License-Identifier: Apache-2.0
//! Moves what is received and sent between a medium and a station.

use crate::{Frames, Medium, Spin};
use nacelle_link::{Link, LinkError, wait_readable};
use nacelle_roce::Batch;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// What sends and receives: an endpoint, a simulated device, or a shared form of one.
///
/// The time that its functions are given is that at which the turn began: the clock is read once a turn.
pub trait Station<M: Medium> {
    /// Whether it can take something now. While not, what comes waits in the link.
    fn is_ready(&mut self) -> bool {
        true
    }

    /// Takes what was received.
    fn receive(&mut self, now: Instant, received: M::Received<'_>);

    /// Does what was received causes, in bounded time, before anything is sent.
    fn work(&mut self, _now: Instant) {}

    /// Writes what to send next, a batch if there is more; `None` if there is nothing now.
    fn transmit(&mut self, now: Instant, buffer: &mut [u8], batch: Batch) -> Option<M::Sent>;

    /// The link says that a peer is gone for good.
    fn peer_gone(&mut self, _peer: IpAddr) {}

    /// When it must run again though nothing was received.
    fn next_deadline(&self) -> Option<Instant>;
}

/// Looks for something received in a turn, while more is expected.
const LOOKS: usize = 6;

/// How often one turn receives and sends at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Into the station.
    pub receive: usize,
    /// Out of it.
    pub transmit: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { receive: 16, transmit: 16 }
    }
}

/// The loop over a medium.
#[derive(Debug)]
pub struct Pump<M> {
    medium: M,
    /// On a medium where it is worth to look for more.
    spin: Spin,
    /// The last time nothing was received.
    was_empty: bool,
}

impl<L: Link> Pump<Frames<L>> {
    /// Moves the frames of this link.
    pub fn new(link: L) -> Self {
        Self::over(Frames::new(link))
    }

    /// The link.
    pub fn link(&self) -> &L {
        &self.medium.link
    }

    /// The link, for frames that are not the station's.
    pub fn link_mut(&mut self) -> &mut L {
        &mut self.medium.link
    }
}

impl<M: Medium> Pump<M> {
    /// Moves what passes on this medium.
    pub fn over(medium: M) -> Self {
        let spin = Spin::new(medium.spin());
        Self { medium, spin, was_empty: true }
    }

    /// The medium.
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// The medium, to change how it works.
    pub fn medium_mut(&mut self) -> &mut M {
        &mut self.medium
    }

    /// One turn, which begins now, without waiting. Returns whether anything was received, or more may be waiting to be sent.
    ///
    /// # Errors
    /// If the link is broken.
    pub fn turn(&mut self, now: Instant, station: &mut impl Station<M>, limits: Limits) -> Result<bool, LinkError> {
        let received = self.receive(now, station, limits.receive)?;
        while let Some(peer) = self.medium.poll_gone() {
            station.peer_gone(peer);
        }
        station.work(now);
        Ok(self.transmit(now, station, limits.transmit)? || received)
    }

    /// Gives the station what is there, up to `limit` times. Returns whether there was anything.
    ///
    /// # Errors
    /// If the link is broken.
    pub fn receive(&mut self, now: Instant, station: &mut impl Station<M>, limit: usize) -> Result<bool, LinkError> {
        let mut count = 0;
        while count < limit {
            let polls = count == 0 && self.spin.is_on();
            // A look costs less than what else a turn does.
            let looks = if polls { LOOKS } else { 1 };
            let mut misses = 0;
            while misses < looks
                && !(station.is_ready() && self.medium.receive(|received| station.receive(now, received))?)
            {
                misses += 1;
            }
            if misses == looks {
                break;
            }
            count += 1;
            // What came while this looked for it came alone: to look for more would delay the answer to it.
            if polls && (misses > 0 || self.was_empty) {
                break;
            }
        }
        self.was_empty = count == 0;
        self.note(now, count > 0);
        Ok(count > 0)
    }

    /// Sends what the station has, up to `limit` times. Returns whether more may be waiting.
    ///
    /// # Errors
    /// If the link is broken.
    pub fn transmit(&mut self, now: Instant, station: &mut impl Station<M>, limit: usize) -> Result<bool, LinkError> {
        let mut count = 0;
        while count < limit && self.medium.transmit(|buffer, batch| station.transmit(now, buffer, batch))? {
            count += 1;
        }
        self.medium.flush()?;
        self.note(now, count > 0);
        Ok(count == limit)
    }

    /// Sends all that the station has, until `deadline` at most.
    ///
    /// # Errors
    /// If the link is broken.
    pub fn transmit_until(
        &mut self,
        mut now: Instant,
        station: &mut impl Station<M>,
        deadline: Instant,
    ) -> Result<(), LinkError> {
        while self.transmit(now, station, Limits::default().transmit)? && now < deadline {
            now = Instant::now();
        }
        Ok(())
    }

    fn note(&mut self, now: Instant, moved: bool) {
        if moved {
            self.spin.note(now);
        }
    }

    /// Waits a moment if something moved so shortly before `now` that it is better to look again than to sleep, and returns whether it
    /// has.
    pub fn pause(&mut self, now: Instant) -> bool {
        self.spin.pause(now)
    }

    /// Sleeps until something may be there, one of `fds` is readable, a timer of the link has expired, or `until`. Returns early
    /// where it is better to look again ([`Self::pause`]).
    ///
    /// # Errors
    /// If the link is broken.
    pub fn sleep<'a>(
        &'a mut self,
        now: Instant,
        fds: impl IntoIterator<Item = BorrowedFd<'a>>,
        until: Instant,
    ) -> Result<(), LinkError> {
        if self.pause(now) {
            return Ok(());
        }
        self.medium.arm();
        let until = self.medium.next_event().map_or(until, |at| at.min(until));
        wait_readable(std::iter::once(self.medium.poll_fd()).chain(fds), Some(until))
            .map_err(|source| LinkError::Io { what: "wait for packets".into(), source })
    }
}
