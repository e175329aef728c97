// SPDX-License-Identifier: Apache-2.0
//! Moves frames between a link and a station.

use nacelle_link::{Link, LinkError, MAX_FRAME, wait_readable};
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// What sends and receives frames: an endpoint, a simulated device, or a shared form of one.
pub trait Station {
    /// Whether it can take a frame now. While not, frames wait in the link.
    fn is_ready(&mut self) -> bool {
        true
    }

    /// Takes a received frame.
    fn receive(&mut self, frame: &[u8]);

    /// Does what received frames cause, in bounded time, before frames are sent.
    fn work(&mut self) {}

    /// Writes the next frame to send and returns its length; `None` if there is none now.
    fn transmit(&mut self, frame: &mut [u8]) -> Option<usize>;

    /// When it must run again though nothing was received.
    fn next_deadline(&self) -> Option<Instant>;
}

/// Most frames that one turn moves.
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

/// A link, and room for a frame in each direction.
#[derive(Debug)]
pub struct Pump<L> {
    link: L,
    rx: Vec<u8>,
    tx: Vec<u8>,
}

impl<L: Link> Pump<L> {
    /// Moves the frames of this link.
    pub fn new(link: L) -> Self {
        Self { link, rx: vec![0; MAX_FRAME], tx: vec![0; MAX_FRAME] }
    }

    /// The link.
    pub fn link(&self) -> &L {
        &self.link
    }

    /// The link, for frames that are not the station's.
    pub fn link_mut(&mut self) -> &mut L {
        &mut self.link
    }

    /// One turn, without waiting. Returns whether a frame was received, or more may be waiting to be sent.
    ///
    /// # Errors
    /// If the link is broken.
    pub fn turn(&mut self, station: &mut impl Station, limits: Limits) -> Result<bool, LinkError> {
        let received = self.receive(station, limits.receive)?;
        station.work();
        Ok(self.transmit(station, limits.transmit)? || received)
    }

    /// Gives the station frames that are there, up to `limit`. Returns whether there was one.
    ///
    /// # Errors
    /// If the link is broken.
    pub fn receive(&mut self, station: &mut impl Station, limit: usize) -> Result<bool, LinkError> {
        for count in 0..limit {
            let length = if station.is_ready() { self.link.recv(&mut self.rx, Instant::now())? } else { None };
            let Some(length) = length else { return Ok(count > 0) };
            station.receive(&self.rx[..length]);
        }
        Ok(limit > 0)
    }

    /// Sends frames of the station, up to `limit`. Returns whether more may be waiting.
    ///
    /// # Errors
    /// If the link is broken.
    pub fn transmit(&mut self, station: &mut impl Station, limit: usize) -> Result<bool, LinkError> {
        for _ in 0..limit {
            let Some(length) = station.transmit(&mut self.tx) else { return Ok(false) };
            self.link.send(&self.tx[..length])?;
        }
        Ok(true)
    }

    /// Sends all frames of the station, until `deadline` at most.
    ///
    /// # Errors
    /// If the link is broken.
    pub fn transmit_until(&mut self, station: &mut impl Station, deadline: Instant) -> Result<(), LinkError> {
        while self.transmit(station, Limits::default().transmit)? && Instant::now() < deadline {}
        Ok(())
    }

    /// Sleeps until a frame may be there, one of `fds` is readable, a timer of the link has expired, or `until`.
    ///
    /// # Errors
    /// If the link is broken.
    pub fn sleep<'a>(&'a self, fds: impl IntoIterator<Item = BorrowedFd<'a>>, until: Instant) -> Result<(), LinkError> {
        let until = self.link.next_event().map_or(until, |at| at.min(until));
        wait_readable(std::iter::once(self.link.poll_fd()).chain(fds), Some(until))
            .map_err(|source| LinkError::Io { what: "wait for frames".into(), source })
    }
}
