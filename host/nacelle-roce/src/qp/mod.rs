// SPDX-License-Identifier: Apache-2.0
//! Queue pairs: the reliable-connection transport (IBTA volume 1, chapter 9.7).

mod requester;
mod responder;

pub(crate) use requester::Requester;
pub(crate) use responder::Responder;

use crate::{Completion, ConnId, ConnStats, Counters, Event, RegionSlice, WcStatus, region::RegionTable};
use nacelle_wire::{RemoteAddr, Rkey};
use std::collections::VecDeque;

/// A work request for the send queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendWr {
    /// Comes back in the completion.
    pub id: u64,
    /// What to do.
    pub op: SendOp,
    /// What to send. The region must stay as it is until the completion: retransmission reads it again.
    pub data: Data,
    /// Ask for a wake-up at the receiver.
    pub solicited: bool,
    /// Report success. Failure is always reported.
    pub signaled: bool,
}

impl SendWr {
    /// A signaled, solicited SEND.
    pub fn send(id: u64, data: impl Into<Data>) -> Self {
        Self { id, op: SendOp::Send { imm: None }, data: data.into(), solicited: true, signaled: true }
    }

    /// A signaled WRITE.
    pub fn write(id: u64, data: impl Into<Data>, addr: RemoteAddr, rkey: Rkey) -> Self {
        Self { id, op: SendOp::Write { addr, rkey, imm: None }, data: data.into(), solicited: false, signaled: true }
    }

    /// A signaled, solicited WRITE with immediate.
    pub fn write_imm(id: u64, data: impl Into<Data>, addr: RemoteAddr, rkey: Rkey, imm: u32) -> Self {
        Self {
            id,
            op: SendOp::Write { addr, rkey, imm: Some(imm) },
            data: data.into(),
            solicited: true,
            signaled: true,
        }
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
    /// Write into a region of the peer.
    Write {
        /// Where.
        addr: RemoteAddr,
        /// Key of the region.
        rkey: Rkey,
        /// Immediate data; uses up a receive of the peer.
        imm: Option<u32>,
    },
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

/// What a queue pair works with besides its own state.
pub(crate) struct Env<'a> {
    pub(crate) conn: ConnId,
    pub(crate) regions: &'a mut RegionTable,
    pub(crate) counters: &'a mut Counters,
    pub(crate) events: &'a mut VecDeque<Event>,
    pub(crate) stats: &'a mut ConnStats,
}

impl Env<'_> {
    pub(crate) fn complete(&mut self, completion: Completion) {
        self.events.push_back(Event::Completion(completion));
    }
}

/// A queue pair fails with this status of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QpFailure(pub(crate) WcStatus);
