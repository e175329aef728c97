// SPDX-License-Identifier: Apache-2.0
//! What a queue pair works with besides its own state.

use crate::{
    Completion, ConnId, ConnStats, Event, ProtectionDomain, RegionSlice, WcStatus, counters::QpCounters,
    region::RegionTable,
};
use core::time::Duration;
use nacelle_memory::Source;
use std::collections::VecDeque;

/// What both sides have agreed on that concerns packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    /// READs and atomics that this side serves at a time.
    pub(crate) responder_resources: u8,
    /// READs and atomics that this side may have outstanding.
    pub(crate) initiator_depth: u8,
    /// Only lost packets are sent again.
    pub(crate) selective_repeat: bool,
    /// Acknowledgements may follow the application's answers.
    pub(crate) late_acknowledgement: bool,
    /// How long the acknowledgement of a SEND, or of a WRITE without immediate, waits for that of what follows.
    pub(crate) ack_delay: Option<Duration>,
}

/// What a queue pair works with besides its own state.
pub(crate) struct Env<'a> {
    pub(crate) conn: ConnId,
    pub(crate) domain: ProtectionDomain,
    pub(crate) agreed: Agreed,
    pub(crate) regions: &'a mut RegionTable,
    pub(crate) events: &'a mut VecDeque<Event>,
    pub(crate) stats: &'a mut ConnStats,
}

impl Env<'_> {
    pub(crate) fn counters(&mut self) -> &mut QpCounters {
        &mut self.stats.counters
    }

    pub(crate) fn complete(&mut self, completion: Completion) {
        let c = &mut self.stats.counters;
        let error = match (completion.status, completion.opcode.is_recv()) {
            (WcStatus::Success, _) => None,
            (WcStatus::WrFlushErr, false) => Some(&mut c.req_cqe_flush_error),
            (WcStatus::WrFlushErr, true) => Some(&mut c.resp_cqe_flush_error),
            (_, false) => Some(&mut c.req_cqe_error),
            (_, true) => Some(&mut c.resp_cqe_error),
        };
        if let Some(counter) = error {
            *counter += 1;
        }
        self.events.push_back(Event::Completion(completion));
    }

    /// Copies the bytes of a slice that a work request of this connection names.
    pub(crate) fn read_local(&self, slice: RegionSlice, into: &mut [u8]) -> Option<()> {
        self.regions.is_usable(self.conn, self.domain, slice).then(|| self.regions.read(slice, into))?
    }

    /// Copies bytes into a slice that a work request of this connection names.
    pub(crate) fn write_local(&mut self, slice: RegionSlice, bytes: Source<'_>) -> Option<()> {
        self.regions.is_usable(self.conn, self.domain, slice).then(|| self.regions.write(slice, bytes))?
    }
}

/// A queue pair fails with this status of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QpFailure(pub(crate) WcStatus);
