// SPDX-License-Identifier: Apache-2.0
//! Queue pairs: the reliable-connection transport (IBTA volume 1, chapter 9.7).

mod manual;
mod requester;
mod responder;

pub use manual::{QpError, QpModify, QpState, Rtr, Rts};
pub(crate) use requester::Requester;
pub(crate) use responder::{NextAnswer, Responder};

use crate::{
    Completion, ConnId, ConnStats, Event, ProtectionDomain, RegionSlice, WcStatus, counters::QpCounters,
    region::RegionTable,
};
use nacelle_wire::{RemoteAddr, Rkey};
use std::collections::VecDeque;

/// Packets that selective repeat keeps outstanding at most (docs/reference/extensions.md).
pub(crate) const SELECTIVE_WINDOW: u32 = 128;
/// Longest message in bytes (IBTA 9.7.7).
pub(crate) const MAX_MESSAGE: usize = 1 << 31;

/// A work request for the send queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendWr {
    /// Comes back in the completion.
    pub id: u64,
    /// What to do.
    pub op: SendOp,
    /// What to send; for READ and atomics where the answer goes, which must be in a region. The region must stay as it
    /// is until the completion: retransmission reads it again.
    pub data: Data,
    /// Ask for a wake-up at the receiver.
    pub solicited: bool,
    /// Report success. Failure is always reported.
    pub signaled: bool,
    /// Begin only when every READ and atomic before has completed (IBTA 10.8.3.3).
    pub fence: bool,
}

impl SendWr {
    fn new(id: u64, op: SendOp, data: Data) -> Self {
        Self { id, op, data, solicited: false, signaled: true, fence: false }
    }

    /// A signaled, solicited SEND.
    pub fn send(id: u64, data: impl Into<Data>) -> Self {
        Self { solicited: true, ..Self::new(id, SendOp::Send { imm: None }, data.into()) }
    }

    /// A signaled, solicited SEND that takes back a key of the peer.
    pub fn send_invalidate(id: u64, data: impl Into<Data>, rkey: Rkey) -> Self {
        Self { solicited: true, ..Self::new(id, SendOp::SendInvalidate { rkey }, data.into()) }
    }

    /// A signaled WRITE.
    pub fn write(id: u64, data: impl Into<Data>, addr: RemoteAddr, rkey: Rkey) -> Self {
        Self::new(id, SendOp::Write { addr, rkey, imm: None }, data.into())
    }

    /// A signaled, solicited WRITE with immediate.
    pub fn write_imm(id: u64, data: impl Into<Data>, addr: RemoteAddr, rkey: Rkey, imm: u32) -> Self {
        Self { solicited: true, ..Self::new(id, SendOp::Write { addr, rkey, imm: Some(imm) }, data.into()) }
    }

    /// A signaled READ into `to`.
    pub fn read(id: u64, to: RegionSlice, addr: RemoteAddr, rkey: Rkey) -> Self {
        Self::new(id, SendOp::Read { addr, rkey }, to.into())
    }

    /// A signaled FETCH-ADD; the value from before goes into the 8 bytes at `to`, in this machine's byte order.
    pub fn fetch_add(id: u64, to: RegionSlice, addr: RemoteAddr, rkey: Rkey, add: u64) -> Self {
        Self::new(id, SendOp::FetchAdd { addr, rkey, add }, to.into())
    }

    /// A signaled CMP-SWAP; the value from before goes into the 8 bytes at `to`, in this machine's byte order.
    pub fn cmp_swap(id: u64, to: RegionSlice, addr: RemoteAddr, rkey: Rkey, compare: u64, swap: u64) -> Self {
        Self::new(id, SendOp::CmpSwap { addr, rkey, compare, swap }, to.into())
    }

    /// A signaled invalidation of a key of this side.
    pub fn local_invalidate(id: u64, rkey: Rkey) -> Self {
        Self::new(id, SendOp::LocalInvalidate { rkey }, Data::Inline(Vec::new()))
    }
}

/// What a send work request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendOp {
    /// Fill a receive of the peer.
    Send {
        /// Immediate data.
        imm: Option<u32>,
    },
    /// Fill a receive of the peer and take back a key of the peer.
    SendInvalidate {
        /// The key; its region must allow it.
        rkey: Rkey,
    },
    /// Write into a region of the peer.
    Write {
        /// Where.
        addr: RemoteAddr,
        /// Key of the region.
        rkey: Rkey,
        /// Immediate data; uses up a receive of the peer.
        imm: Option<u32>,
    },
    /// Read from a region of the peer.
    Read {
        /// Where.
        addr: RemoteAddr,
        /// Key of the region.
        rkey: Rkey,
    },
    /// Add to 8 bytes of the peer, modulo 2^64.
    FetchAdd {
        /// Where; a multiple of 8.
        addr: RemoteAddr,
        /// Key of the region.
        rkey: Rkey,
        /// How much.
        add: u64,
    },
    /// Replace 8 bytes of the peer if they have a certain value.
    CmpSwap {
        /// Where; a multiple of 8.
        addr: RemoteAddr,
        /// Key of the region.
        rkey: Rkey,
        /// The value that they must have.
        compare: u64,
        /// The value that they get.
        swap: u64,
    },
    /// Take back a key of this side; nothing goes to the peer.
    LocalInvalidate {
        /// The key.
        rkey: Rkey,
    },
}

impl SendOp {
    /// Whether the peer answers with data: those count against the initiator depth.
    pub(crate) const fn is_answered(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::FetchAdd { .. } | Self::CmpSwap { .. })
    }
}

/// Where a work request's bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// In a registered region.
    Region(RegionSlice),
    /// Here.
    Inline(Vec<u8>),
}

impl Data {
    /// Bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Region(s) => s.len,
            Self::Inline(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<RegionSlice> for Data {
    fn from(slice: RegionSlice) -> Self {
        Self::Region(slice)
    }
}

impl From<Vec<u8>> for Data {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Inline(bytes)
    }
}

impl From<&[u8]> for Data {
    fn from(bytes: &[u8]) -> Self {
        Self::Inline(bytes.to_vec())
    }
}

/// A work request for the receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvWr {
    /// Comes back in the completion.
    pub id: u64,
    /// Where a SEND goes; `None` takes no byte, enough for a WRITE with immediate.
    pub slice: Option<RegionSlice>,
}

/// What both sides have agreed on, as far as it concerns packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    /// READs and atomics that this side serves at once.
    pub(crate) responder_resources: u8,
    /// READs and atomics that this side may have outstanding.
    pub(crate) initiator_depth: u8,
    /// Only lost packets are sent again.
    pub(crate) selective_repeat: bool,
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

    /// The bytes of a slice that a work request of this connection names.
    pub(crate) fn local(&self, slice: RegionSlice) -> Option<&[u8]> {
        self.regions.is_usable(self.conn, self.domain, slice).then(|| self.regions.slice(slice))?
    }

    /// The bytes of a slice that a work request of this connection names.
    pub(crate) fn local_mut(&mut self, slice: RegionSlice) -> Option<&mut [u8]> {
        self.regions.is_usable(self.conn, self.domain, slice).then(|| self.regions.slice_mut(slice))?
    }
}

/// A queue pair fails with this status of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QpFailure(pub(crate) WcStatus);
