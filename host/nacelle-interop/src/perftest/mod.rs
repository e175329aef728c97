// SPDX-License-Identifier: Apache-2.0
//! perftest with `-R`: `ib_write_bw`, `ib_write_lat`, `ib_read_bw`, `ib_read_lat`, `ib_send_bw`, `ib_send_lat`, `ib_atomic_bw`,
//! `ib_atomic_lat`.
//!
//! Two connections to one port: the first for the exchange of parameters ([`exchange`]), the second for the test.

mod client;
mod exchange;
mod server;

pub(crate) use client::client;
pub(crate) use server::server;

use clap::ValueEnum;
use nacelle_roce::{Access, ConnId, ConnectOptions, Region, wire::RemoteAddr, wire::Rkey};

/// Port that perftest takes by itself.
pub(crate) const PORT: u16 = 18515;
/// Receives posted for the exchange.
const EXCHANGE_SLOTS: usize = 16;
/// perftest walks through a buffer of so many bytes, by cache lines, when messages are short.
const CYCLE: usize = 4096;

/// The program that the other side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tool {
    #[value(name = "ib_write_bw")]
    WriteBw,
    #[value(name = "ib_write_lat")]
    WriteLat,
    #[value(name = "ib_read_bw")]
    ReadBw,
    #[value(name = "ib_read_lat")]
    ReadLat,
    #[value(name = "ib_send_bw")]
    SendBw,
    #[value(name = "ib_send_lat")]
    SendLat,
    #[value(name = "ib_atomic_bw")]
    AtomicBw,
    #[value(name = "ib_atomic_lat")]
    AtomicLat,
}

impl Tool {
    /// Whether the sides take turns.
    fn is_latency(self) -> bool {
        matches!(self, Self::WriteLat | Self::ReadLat | Self::SendLat | Self::AtomicLat)
    }

    fn is_send(self) -> bool {
        matches!(self, Self::SendBw | Self::SendLat)
    }

    fn is_atomic(self) -> bool {
        matches!(self, Self::AtomicBw | Self::AtomicLat)
    }

    /// Bytes of a message, if `asked` is what was asked for.
    pub(crate) fn size(self, asked: usize) -> usize {
        if self.is_atomic() { 8 } else { asked }
    }

    fn is_read(self) -> bool {
        matches!(self, Self::ReadBw | Self::ReadLat)
    }

    /// READs and atomics in flight that this side asks for and offers; perftest leaves them at 0 where it needs none.
    fn options(self) -> ConnectOptions {
        let depth = if self.is_read() || self.is_atomic() { 16 } else { 0 };
        ConnectOptions { responder_resources: depth, initiator_depth: depth, rnr_retry: 7, ..ConnectOptions::default() }
    }

    /// What the peer may do with the test's memory.
    fn access(self) -> Access {
        match self {
            Self::WriteBw | Self::WriteLat => Access::REMOTE_WRITE,
            Self::ReadBw | Self::ReadLat => Access::REMOTE_READ,
            Self::SendBw | Self::SendLat => Access::LOCAL,
            Self::AtomicBw | Self::AtomicLat => Access::REMOTE_ATOMIC,
        }
    }
}

/// What is the same for both roles.
pub(crate) struct Plan {
    pub(crate) tool: Tool,
    pub(crate) port: u16,
    /// Messages (`-n`).
    pub(crate) iterations: u32,
    /// Bytes of a message (`-s`).
    pub(crate) size: usize,
}

impl Plan {
    /// Bytes of the memory that the peer gets.
    fn memory(&self) -> usize {
        self.size.max(1).next_multiple_of(CYCLE)
    }
}

/// The connection of the test on this side.
struct Test {
    conn: ConnId,
    region: Region,
}

/// Memory of the other side.
#[derive(Clone, Copy)]
struct Remote {
    addr: RemoteAddr,
    rkey: Rkey,
}
