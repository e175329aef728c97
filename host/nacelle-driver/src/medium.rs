// SPDX-License-Identifier: Apache-2.0
//! What a pump moves: the frames of a link, the datagrams of a UDP socket, or either.

use crate::datagrams::DatagramMedium;
use nacelle_link::{Link, LinkError, LinkStats, MAX_FRAME};
use nacelle_roce::{Batch, Received, Sent};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Where something is sent and received.
pub trait Medium {
    /// What is received at once.
    type Received<'a>;
    /// What says how much of the buffer to send, and to whom.
    type Sent;

    /// Gives what is there to `take`: one frame, or the datagrams of one call. Returns whether there was anything.
    ///
    /// # Errors
    /// If the link is broken.
    fn receive(&mut self, take: impl FnMut(Self::Received<'_>)) -> Result<bool, LinkError>;

    /// Sends what `write` writes into the buffer, at once or with the next [`flush`](Self::flush); it is told how.
    /// Returns whether there was anything.
    ///
    /// # Errors
    /// If the link is broken.
    fn transmit(&mut self, write: impl FnMut(&mut [u8], Batch) -> Option<Self::Sent>) -> Result<bool, LinkError>;

    /// Sends what [`transmit`](Self::transmit) has kept.
    ///
    /// # Errors
    /// If the link is broken.
    fn flush(&mut self) -> Result<(), LinkError> {
        Ok(())
    }

    /// Readable when something may be there; of some media only after [`arm`](Self::arm).
    fn poll_fd(&self) -> BorrowedFd<'_>;

    /// Announces that nobody looks from now on until the descriptor is readable. The next `receive` ends it.
    fn arm(&mut self) {}

    /// A peer that is known to be gone for good, once.
    fn poll_gone(&mut self) -> Option<IpAddr> {
        None
    }

    /// When to receive though nothing is readable; `None` if never.
    fn next_event(&self) -> Option<Instant>;

    /// For how long after the last traffic to look for more before sleeping. Where the peers simulate, the processor is theirs.
    fn spin(&self) -> Duration {
        Duration::ZERO
    }

    /// What has passed so far.
    fn stats(&self) -> LinkStats;
}

/// A link's frames, with room for one in each direction.
#[derive(Debug)]
pub struct Frames<L> {
    pub(crate) link: L,
    rx: Vec<u8>,
    tx: Vec<u8>,
}

impl<L: Link> Frames<L> {
    /// The frames of this link.
    pub fn new(link: L) -> Self {
        Self { link, rx: vec![0; MAX_FRAME], tx: vec![0; MAX_FRAME] }
    }
}

impl<L: Link> Medium for Frames<L> {
    type Received<'a> = &'a [u8];
    type Sent = usize;

    fn receive(&mut self, mut take: impl FnMut(&[u8])) -> Result<bool, LinkError> {
        let Some(length) = self.link.recv(&mut self.rx, Instant::now())? else { return Ok(false) };
        take(&self.rx[..length]);
        Ok(true)
    }

    fn transmit(&mut self, mut write: impl FnMut(&mut [u8], Batch) -> Option<usize>) -> Result<bool, LinkError> {
        let Some(length) = write(&mut self.tx, 1.into()) else { return Ok(false) };
        self.link.send_more(&self.tx[..length])?;
        Ok(true)
    }

    fn flush(&mut self) -> Result<(), LinkError> {
        self.link.flush()
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.link.poll_fd()
    }

    fn next_event(&self) -> Option<Instant> {
        self.link.next_event()
    }

    fn stats(&self) -> LinkStats {
        self.link.stats()
    }
}

/// Frames or datagrams, where a program chooses when it runs.
pub enum AnyMedium {
    /// Ethernet frames.
    Frames(Frames<Box<dyn Link>>),
    /// UDP datagrams.
    Datagrams(DatagramMedium),
}

impl Medium for AnyMedium {
    type Received<'a> = Received<'a>;
    type Sent = Sent;

    fn receive(&mut self, mut take: impl FnMut(Received<'_>)) -> Result<bool, LinkError> {
        match self {
            Self::Frames(medium) => medium.receive(|frame| take(Received::Frame(frame))),
            Self::Datagrams(medium) => medium.receive(|datagrams| take(Received::Datagrams(datagrams))),
        }
    }

    fn transmit(&mut self, mut write: impl FnMut(&mut [u8], Batch) -> Option<Sent>) -> Result<bool, LinkError> {
        // What an interface of the other kind would send goes nowhere.
        match self {
            Self::Frames(medium) => medium.transmit(|buffer, batch| match write(buffer, batch)? {
                Sent::Frame(length) => Some(length),
                Sent::Datagrams(_) => None,
            }),
            Self::Datagrams(medium) => medium.transmit(|buffer, batch| match write(buffer, batch)? {
                Sent::Datagrams(sent) => Some(sent),
                Sent::Frame(_) => None,
            }),
        }
    }

    fn flush(&mut self) -> Result<(), LinkError> {
        match self {
            Self::Frames(medium) => medium.flush(),
            Self::Datagrams(medium) => medium.flush(),
        }
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Frames(medium) => medium.poll_fd(),
            Self::Datagrams(medium) => medium.poll_fd(),
        }
    }

    fn arm(&mut self) {
        match self {
            Self::Frames(medium) => medium.arm(),
            Self::Datagrams(medium) => medium.arm(),
        }
    }

    fn poll_gone(&mut self) -> Option<IpAddr> {
        match self {
            Self::Frames(medium) => medium.poll_gone(),
            Self::Datagrams(medium) => medium.poll_gone(),
        }
    }

    fn next_event(&self) -> Option<Instant> {
        match self {
            Self::Frames(medium) => medium.next_event(),
            Self::Datagrams(medium) => medium.next_event(),
        }
    }

    fn spin(&self) -> Duration {
        match self {
            Self::Frames(medium) => medium.spin(),
            Self::Datagrams(medium) => medium.spin(),
        }
    }

    fn stats(&self) -> LinkStats {
        match self {
            Self::Frames(medium) => medium.stats(),
            Self::Datagrams(medium) => medium.stats(),
        }
    }
}
