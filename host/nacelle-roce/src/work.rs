// SPDX-License-Identifier: Apache-2.0
//! Work requests: what a program posts to the queues of a queue pair.

use crate::RegionSlice;
use nacelle_wire::{RemoteAddr, Rkey};

/// A work request for the send queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendWr {
    /// Returned in the completion.
    pub id: u64,
    /// What to do.
    pub op: SendOp,
    /// What to send; for READ and atomics where the response goes, which must be in a region. Leave the region unchanged
    /// until the completion: retransmission reads it again.
    pub data: Data,
    /// Request a solicited event at the receiver.
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

    /// A signaled, solicited SEND with immediate.
    pub fn send_imm(id: u64, data: impl Into<Data>, imm: u32) -> Self {
        Self { solicited: true, ..Self::new(id, SendOp::Send { imm: Some(imm) }, data.into()) }
    }

    /// A signaled, solicited SEND that invalidates a key of the peer.
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

    /// A signaled FETCH-ADD; the original value goes into the 8 bytes at `to`, in this machine's byte order.
    pub fn fetch_add(id: u64, to: RegionSlice, addr: RemoteAddr, rkey: Rkey, add: u64) -> Self {
        Self::new(id, SendOp::FetchAdd { addr, rkey, add }, to.into())
    }

    /// A signaled CMP-SWAP; the original value goes into the 8 bytes at `to`, in this machine's byte order.
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
    /// Fill a receive of the peer and invalidate a key of the peer.
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
    /// Invalidate a key of this side; nothing is sent.
    LocalInvalidate {
        /// The key.
        rkey: Rkey,
    },
}

impl SendOp {
    /// Whether the peer responds with data: these requests count against the initiator depth.
    pub(crate) const fn has_response(&self) -> bool {
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
    /// Returned in the completion.
    pub id: u64,
    /// Where a SEND goes; `None` takes no byte, enough for a WRITE with immediate.
    pub slice: Option<RegionSlice>,
}
