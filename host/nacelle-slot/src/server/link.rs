// SPDX-License-Identifier: Apache-2.0
//! The connection with a client: what it has sent, and what waits for whom.

use std::collections::VecDeque;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::channel::{Channel, Message};
use crate::protocol::{Capabilities, DmaUnmap, Header, RegionAccess};

use super::ServerConfig;

/// Bytes of a command besides what is read or written.
const OVERHEAD: usize = 64;

/// A command that the function has not answered.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) token: u64,
    pub(super) header: Header,
    pub(super) what: What,
    pub(super) deadline: Duration,
}

/// What it was.
#[derive(Debug, Clone)]
pub(super) enum What {
    Read(RegionAccess),
    /// Bytes of a BAR that were read by a window of the configuration space: fewer than were asked for, perhaps.
    WindowRead(RegionAccess),
    Write(RegionAccess),
    Reset,
    /// A write to the configuration space that reset the function.
    ConfigReset(RegionAccess),
    Unmap {
        command: DmaUnmap,
        range: RangeInclusive<u64>,
        /// The function has said that it accesses nothing there any more.
        left: bool,
    },
}

impl What {
    /// Whether it resets the function.
    pub(super) fn is_reset(&self) -> bool {
        matches!(self, Self::Reset | Self::ConfigReset(_))
    }
}

/// A request of the function that waits for the client.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) id: u16,
    pub(super) token: u64,
    pub(super) command: u16,
    pub(super) address: u64,
    pub(super) len: usize,
    pub(super) deadline: Duration,
}

impl InFlight {
    pub(super) fn touches(&self, range: &RangeInclusive<u64>) -> bool {
        self.address <= *range.end() && self.address + (self.len as u64 - 1) >= *range.start()
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) channel: Channel,
    pub(super) peer: Capabilities,
    /// The version is agreed on.
    pub(super) agreed: bool,
    pub(super) since: Duration,
    pub(super) pending: Option<Pending>,
    pub(super) backlog: VecDeque<Message>,
    pub(super) in_flight: Vec<InFlight>,
    pub(super) next_id: u16,
    pub(super) partial_since: Option<Duration>,
    pub(super) unsent_since: Option<Duration>,
}

impl Link {
    pub(super) fn new(socket: UnixStream, config: &ServerConfig, now: Duration) -> io::Result<Self> {
        Ok(Self {
            channel: Channel::new(socket, config.max_transfer + OVERHEAD)?,
            peer: Capabilities::default(),
            agreed: false,
            since: now,
            pending: None,
            backlog: VecDeque::with_capacity(config.max_backlog),
            in_flight: Vec::with_capacity(config.max_in_flight),
            next_id: 0,
            partial_since: None,
            unsent_since: None,
        })
    }

    /// Whether more is read of what the client sends: not while it does not take what it was sent.
    pub(super) fn takes_more(&self, config: &ServerConfig) -> bool {
        self.backlog.len() < config.max_backlog && self.channel.unsent() <= config.max_transfer + OVERHEAD
    }

    /// When the client has been too slow.
    pub(super) fn client_deadline(&self, config: &ServerConfig) -> Option<Duration> {
        let greeting = (!self.agreed && self.pending.is_none()).then_some(self.since);
        let since = [greeting, self.partial_since, self.unsent_since].into_iter().flatten().min()?;
        Some(since + config.client_timeout)
    }

    /// When any time limit ends.
    pub(super) fn deadline(&self, config: &ServerConfig) -> Option<Duration> {
        let requests = self.in_flight.iter().map(|request| request.deadline);
        let pending = self.pending.as_ref().map(|pending| pending.deadline);
        self.client_deadline(config).into_iter().chain(pending).chain(requests).min()
    }

    /// An identifier that no request has which waits.
    pub(super) fn request_id(&mut self) -> u16 {
        loop {
            self.next_id = self.next_id.wrapping_add(1);
            if self.in_flight.iter().all(|request| request.id != self.next_id) {
                return self.next_id;
            }
        }
    }
}
