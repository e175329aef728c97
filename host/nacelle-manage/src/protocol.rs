// SPDX-License-Identifier: Apache-2.0
//! The protocol of the management socket: JSON lines over `<wire>/<name>.ctl`.
//!
//! Each line from the client is a [`Request`]; the device answers each with one line, a [`Reply`]. The device's traffic is not
//! touched.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Access, Bytes, Digest, FrameKind, Work};
// For the documentation.
#[cfg(doc)]
use crate::{Descriptor, KernelSocket, MemoryRegion, QueuePair, QueuePairCounters, Reset};

/// Longest request, in bytes, its newline included.
pub const MAX_REQUEST: usize = 64 << 10;
/// Most accesses to registers of one request.
pub const MAX_ACCESSES: usize = 256;

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// What the device is: answered by a [`Descriptor`].
    Info {},
    /// What it counted: answered by [`Stats`].
    Stats {},
    /// Which frames passed: answered by [`Trace`].
    Trace {
        /// Number of the first frame wanted.
        #[serde(default)]
        since: u64,
    },
    /// Begin to write what passes to a pcapng file, instead of to an earlier one: answered by [`Done`].
    CaptureStart {
        /// The file, as an absolute path.
        path: PathBuf,
    },
    /// End the capture: answered by [`Done`].
    CaptureStop {},
    /// End the device: answered by [`Done`] before it ends.
    Shutdown {},
    /// Its queue pairs: answered by a list of [`QueuePair`].
    QueuePairs {},
    /// What a queue pair counted, or without a number each that is not in RESET: answered by a list of [`QueuePairCounters`].
    QueuePairCounters {
        /// Its number.
        #[serde(default)]
        qpn: Option<u32>,
    },
    /// Reset a queue pair, or all without a number: answered by [`Reset`].
    ResetQueuePairs {
        /// Its number.
        #[serde(default)]
        qpn: Option<u32>,
    },
    /// Its memory regions: answered by a list of [`MemoryRegion`].
    Regions {},
    /// The numbers of its protection domains: answered by a list of `u32`.
    Domains {},
    /// Read and write registers, with nothing of other clients between: answered by a list of what the reads gave.
    Registers {
        /// In this order.
        accesses: Vec<Access>,
    },
    /// Its sockets, and the kernels that they can hold: answered by a list of [`KernelSocket`].
    Kernels {},
    /// Begin to put an image into a socket: answered by [`Done`]. [`Request::Kernels`] says when it is there, or why it is not.
    ActivateKernel {
        /// The socket's number.
        socket: u16,
        /// The image's number.
        image: u8,
        /// The image's digest. Another one is no reason to change anything.
        digest: Digest,
    },
    /// Begin to put the former image back into a socket: answered by [`Done`], as above.
    RollBackKernel {
        /// The socket's number.
        socket: u16,
    },
    /// Cut off the calls that such a change waits for: answered by [`Done`], also if it waits for none.
    CutKernel {
        /// The socket's number.
        socket: u16,
    },
    /// Open a connection from the device: answered by its number, a `u16`.
    Connect {
        /// The peer.
        peer: IpAddr,
        /// Its port, in the TCP port space of the RDMA connection manager.
        port: u16,
        /// For the peer's application, up to [`MAX_PRIVATE`](crate::MAX_PRIVATE) bytes.
        #[serde(default)]
        private: Bytes,
        /// Payload of its full packets, in bytes: 256, 512, 1024, 2048 or 4096; without, that of
        /// [`DEFAULT_MTU`](crate::DEFAULT_MTU).
        #[serde(default)]
        mtu: Option<u16>,
    },
    /// Give such a connection something to do: answered by [`Done`].
    Post {
        /// Its number.
        connection: u16,
        /// What to do.
        work: Work,
    },
    /// What has happened to it: answered by [`Progress`](crate::Progress).
    Poll {
        /// Its number.
        connection: u16,
    },
    /// Close it: answered by [`Done`].
    Close {
        /// Its number.
        connection: u16,
    },
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply<T> {
    /// It was done.
    Ok(T),
    /// It was not, and why.
    Error(String),
}

/// Nothing more to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {}

/// What a device counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Device time, in cycles.
    pub cycles: u64,
    /// All counters by name.
    pub counters: BTreeMap<String, u64>,
}

/// Frames that passed the device's MAC interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Number of the next frame, for the next request.
    pub next: u64,
    /// Frames requested but no longer stored.
    pub lost: u64,
    /// The frames, oldest first.
    pub frames: Vec<TraceFrame>,
}

/// One frame that passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFrame {
    /// Its number, counted from the device's start.
    pub number: u64,
    /// Whether it went into the device, not out of it.
    pub rx: bool,
    /// Device cycle of its first beat.
    pub first_beat: u64,
    /// Device cycle of its last beat.
    pub last_beat: u64,
    /// Its length, in bytes.
    pub length: u32,
    /// What it is.
    #[serde(flatten)]
    pub kind: FrameKind,
}
