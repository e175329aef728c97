// SPDX-License-Identifier: Apache-2.0
//! A work request in the send queue.

use crate::{SendOp, SendWr};

/// A posted work request.
#[derive(Debug)]
pub(super) struct PostedSend {
    pub(super) wr: SendWr,
    pub(super) first: u64,
    /// Numbers that it owns; a local operation owns none.
    pub(super) packets: u32,
    /// A local operation has been done.
    pub(super) done: bool,
    /// Posted by the transport itself: its completion is not reported.
    pub(super) internal: bool,
}

impl PostedSend {
    pub(super) const fn end(&self) -> u64 {
        self.first + self.packets as u64
    }

    pub(super) const fn is_local(&self) -> bool {
        self.packets == 0
    }

    /// Whether all of it has been sent once everything before `seq` has.
    pub(super) const fn is_before(&self, seq: u64) -> bool {
        if self.is_local() { self.done && self.first <= seq } else { self.end() <= seq }
    }

    pub(super) fn is_read(&self) -> bool {
        matches!(self.wr.op, SendOp::Read { .. })
    }

    /// First of its packets from `from` on that selective repeat takes in order only: all but those of a WRITE that carry no
    /// immediate.
    pub(super) fn next_in_order(&self, from: u64) -> Option<u64> {
        let from = from.max(self.first);
        let next = match self.wr.op {
            SendOp::Write { imm: None, .. } => return None,
            SendOp::Write { imm: Some(_), .. } => self.end() - 1,
            SendOp::Read { .. } => self.first,
            _ => from,
        };
        (next >= from && next < self.end()).then_some(next)
    }

    /// The peer's memory that it changes: address and length.
    pub(super) fn changes(&self) -> Option<(u64, u64)> {
        match self.wr.op {
            SendOp::Write { addr, .. } => Some((addr.0, self.wr.data.len() as u64)),
            SendOp::FetchAdd { addr, .. } | SendOp::CmpSwap { addr, .. } => Some((addr.0, 8)),
            _ => None,
        }
    }
}
