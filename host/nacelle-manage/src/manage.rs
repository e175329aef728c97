// SPDX-License-Identifier: Apache-2.0
//! Management of a device: its queue pairs, regions and domains, and connections that it opens itself.
//!
//! [`Manage`] is what every device implements (docs/reference/management.md).

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use nacelle_wire::cm::PathMtu;
use serde::{Deserialize, Serialize};

use crate::{Access, Bytes, Digest, KernelSocket};

/// Longest message of a connection that is opened by management, in bytes.
pub const MAX_MESSAGE: usize = 2048;
/// What each queue pair counts, in the order of the results of the management port's QP_COUNTERS.
pub const QP_COUNTERS: [&str; 18] = [
    "sent_pkts",
    "sent_bytes",
    "sent_responses",
    "sent_response_bytes",
    "rcvd_pkts",
    "rcvd_bytes",
    "rcvd_responses",
    "rcvd_response_bytes",
    "packet_retransmit",
    "local_ack_timeout_err",
    "rnr_nak_retry_err",
    "packet_seq_err",
    "duplicate_request",
    "out_of_seq_request",
    "sent_nak",
    "send_rnr_err",
    "np_cnp_sent",
    "rp_cnp_handled",
];
/// Its path MTU unless another is requested: fits every link, as the peer's is unknown.
pub const DEFAULT_MTU: PathMtu = PathMtu::Mtu1024;
/// Most private data with its request and its answer, in bytes.
pub const MAX_PRIVATE: usize = 48;

/// Why a device refused a request, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

impl Refusal {
    /// There is no such queue pair.
    #[must_use]
    pub fn no_queue_pair(qpn: u32) -> Self {
        Self(format!("it has no queue pair {qpn}"))
    }

    /// There is no such socket.
    #[must_use]
    pub fn no_socket(socket: u16) -> Self {
        Self(format!("it has no socket {socket}"))
    }

    /// The kernel of the socket is being changed.
    #[must_use]
    pub fn changing(socket: u16) -> Self {
        Self(format!("the kernel of socket {socket} is being changed"))
    }

    /// The socket can hold one kernel only.
    #[must_use]
    pub fn one_kernel(socket: u16) -> Self {
        Self(format!("socket {socket} can hold one kernel only"))
    }

    /// There is no such connection.
    #[must_use]
    pub fn no_connection(connection: u16) -> Self {
        Self(format!("it has no connection {connection} of its own"))
    }
}

/// The requests to a device.
pub trait Manage {
    /// All queue pairs that are not in RESET.
    ///
    /// # Errors
    /// If the device does not answer.
    fn queue_pairs(&mut self) -> Result<Vec<QueuePair>, Refusal>;

    /// What one queue pair has counted, or each that is not in RESET.
    ///
    /// # Errors
    /// If there is no such queue pair.
    fn queue_pair_counters(&mut self, qpn: Option<u32>) -> Result<Vec<QueuePairCounters>, Refusal>;

    /// Resets one queue pair, or all. One that has a connection is closed with a DREQ.
    ///
    /// # Errors
    /// If there is no such queue pair.
    fn reset(&mut self, qpn: Option<u32>) -> Result<Reset, Refusal>;

    /// All memory regions that have a key.
    ///
    /// # Errors
    /// If the device does not answer.
    fn regions(&mut self) -> Result<Vec<MemoryRegion>, Refusal>;

    /// The numbers of all protection domains that are in use.
    ///
    /// # Errors
    /// If the device does not answer.
    fn domains(&mut self) -> Result<Vec<u32>, Refusal>;

    /// Its sockets, and the kernels that they can hold.
    ///
    /// # Errors
    /// If the device does not answer.
    fn kernels(&mut self) -> Result<Vec<KernelSocket>, Refusal>;

    /// Begins to put an image into a socket. [`Manage::kernels`] returns the outcome.
    ///
    /// # Errors
    /// If there is no such socket, or its kernel is being changed.
    fn activate_kernel(&mut self, socket: u16, image: u8, digest: Digest) -> Result<(), Refusal>;

    /// Begins to put the former image back into a socket.
    ///
    /// # Errors
    /// As [`Manage::activate_kernel`].
    fn roll_back_kernel(&mut self, socket: u16) -> Result<(), Refusal>;

    /// Cuts off the calls that a change of a socket's kernel waits for.
    ///
    /// # Errors
    /// If there is no such socket.
    fn cut_kernel(&mut self, socket: u16) -> Result<(), Refusal>;

    /// Begins to open a connection with this path MTU, or the largest that the device's link carries if that is smaller.
    /// [`Manage::poll`] returns the outcome. Returns its number.
    ///
    /// # Errors
    /// If there is no room, or no way to the address.
    fn connect(&mut self, peer: IpAddr, port: u16, mtu: PathMtu, private: &[u8]) -> Result<u16, Refusal>;

    /// Gives a connection something to do: one receive, and one SEND, WRITE or READ, at a time.
    ///
    /// # Errors
    /// If it is not established, or has as much to do.
    fn post(&mut self, connection: u16, work: Work) -> Result<(), Refusal>;

    /// What has happened to a connection since the last poll. One that has ended is removed with this answer.
    ///
    /// # Errors
    /// If there is no such connection.
    fn poll(&mut self, connection: u16) -> Result<Progress, Refusal>;

    /// Begins to close a connection.
    ///
    /// # Errors
    /// If there is no such connection.
    fn close(&mut self, connection: u16) -> Result<(), Refusal>;

    /// Reads and writes registers, one after the other and with nothing of other clients between. Returns what the reads gave.
    ///
    /// # Errors
    /// If the device has no registers, or answers one with an error: those before it have been done.
    fn registers(&mut self, accesses: &[Access]) -> Result<Vec<u32>, Refusal>;
}

/// State of a queue pair (IBTA 10.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)] // the names are the standard's
pub enum QpState {
    Reset,
    Init,
    Rtr,
    Rts,
    Sqd,
    Sqe,
    Err,
}

impl QpState {
    /// By its number in registers.
    #[must_use]
    pub const fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::Reset,
            1 => Self::Init,
            2 => Self::Rtr,
            3 => Self::Rts,
            4 => Self::Sqd,
            5 => Self::Sqe,
            6 => Self::Err,
            _ => return None,
        })
    }
}

impl fmt::Display for QpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reset => "RESET",
            Self::Init => "INIT",
            Self::Rtr => "RTR",
            Self::Rts => "RTS",
            Self::Sqd => "SQD",
            Self::Sqe => "SQE",
            Self::Err => "ERR",
        })
    }
}

/// Whose a queue pair is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// The device's service: a caller's.
    Service,
    /// Software's, by management.
    Management,
    /// A kernel's.
    Kernel,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Service => "service",
            Self::Management => "management",
            Self::Kernel => "kernel",
        })
    }
}

/// A queue pair at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueuePair {
    /// Its number.
    pub qpn: u32,
    /// Its state.
    pub state: QpState,
    /// The peer's address, once known.
    pub peer: Option<IpAddr>,
    /// The peer's queue pair, once known.
    pub peer_qpn: Option<u32>,
    /// Whose it is.
    pub owner: Owner,
    /// Whether it has no connection management.
    pub unmanaged: bool,
    /// Number of its protection domain.
    pub domain: u32,
    /// PSN of the next new request packet.
    pub next_psn: u32,
    /// PSN of the oldest request packet that is not acknowledged; the same as `next_psn` if all are.
    pub oldest_psn: u32,
    /// What congestion control limits its sending to, in Mb/s.
    pub rate_limit: Option<f64>,
}

/// What a queue pair has counted since it was set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePairCounters {
    /// Its number.
    pub qpn: u32,
    /// By the names of [`QP_COUNTERS`].
    pub counters: BTreeMap<String, u64>,
}

impl QueuePairCounters {
    /// From values in the order of [`QP_COUNTERS`].
    #[must_use]
    pub fn new(qpn: u32, values: [u64; QP_COUNTERS.len()]) -> Self {
        Self { qpn, counters: QP_COUNTERS.map(str::to_owned).into_iter().zip(values).collect() }
    }
}

/// What a reset did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reset {
    /// Connections are being closed, with a DREQ each. Without, everything is in RESET.
    pub closing: bool,
}

/// A memory region at a glance. Its key is its peer's secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRegion {
    /// Address of its first byte.
    pub address: u64,
    /// Length in bytes.
    pub length: u64,
    /// What a peer may do: some of `write`, `read`, `atomic`, `invalidate`.
    pub access: Vec<String>,
    /// The only queue pair whose peer may; else all of its domain, if it has one.
    pub qpn: Option<u32>,
    /// Number of its protection domain.
    pub domain: Option<u32>,
}

/// The rights in a register's access bits.
#[must_use]
pub fn access_names(bits: u32) -> Vec<String> {
    let names = ["write", "read", "atomic", "invalidate"];
    let granted = names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
    granted.map(|(_, name)| (*name).to_owned()).collect()
}

/// Something to do for a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Work {
    /// Receive a message of up to [`MAX_MESSAGE`] bytes.
    Receive {},
    /// Send a message of up to [`MAX_MESSAGE`] bytes.
    Send {
        /// The message.
        data: Bytes,
    },
    /// Write up to [`MAX_MESSAGE`] bytes into a region of the peer.
    Write {
        /// What.
        data: Bytes,
        /// Where.
        address: u64,
        /// Key of the region.
        rkey: u32,
    },
    /// Read up to [`MAX_MESSAGE`] bytes from a region of the peer.
    Read {
        /// Where.
        address: u64,
        /// Key of the region.
        rkey: u32,
        /// How many.
        length: u32,
    },
}

impl Work {
    /// Refuses what is longer than [`MAX_MESSAGE`].
    ///
    /// # Errors
    /// If it is.
    pub fn check(&self) -> Result<(), Refusal> {
        let length = match self {
            Self::Receive {} => 0,
            Self::Send { data } | Self::Write { data, .. } => data.0.len(),
            Self::Read { length, .. } => *length as usize,
        };
        if length > MAX_MESSAGE {
            return Err(Refusal(format!("a message has at most {MAX_MESSAGE} bytes, not {length}")));
        }
        Ok(())
    }
}

/// What has happened to a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Where it is.
    pub state: ConnectionState,
    /// How it was established, if it ever was: also for a connection that ended before it was polled.
    pub opened: Option<Opened>,
    /// What has completed, in order.
    pub completions: Vec<Completion>,
}

/// How a connection was established.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The device's queue pair.
    pub qpn: u32,
    /// What the peer's application said, without the zeros at its end.
    pub private: Bytes,
}

/// Where a connection is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum ConnectionState {
    /// The peer has not answered.
    Connecting,
    /// It is there.
    Established,
    /// No host has the address, or none answers there.
    Unreachable,
    /// The peer refused it.
    Refused {
        /// Number of the reason (IBTA 12.6.7.2).
        reason: u16,
        /// The reason in words.
        text: String,
        /// What the peer's application said, without the zeros at its end.
        private: Bytes,
    },
    /// It has ended.
    Closed,
    /// It has ended because the device no longer has the address that it used.
    AddressLost,
}

impl ConnectionState {
    /// Whether nothing more can happen to it.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self, Self::Unreachable | Self::Refused { .. } | Self::Closed | Self::AddressLost)
    }
}

/// One piece of work that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// Whether it was a receive.
    pub receive: bool,
    /// Whether it succeeded.
    pub ok: bool,
    /// How it ended, in the words of verbs.
    pub status: String,
    /// What was received or read; nothing of a WRITE with immediate.
    pub data: Bytes,
    /// Immediate data received.
    pub immediate: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn work_has_a_greatest_length() {
        let data = |length| Bytes(vec![0; length]);
        let read = |length| Work::Read { address: u64::MAX, rkey: 1, length };
        let write = |length| Work::Write { data: data(length), address: 0, rkey: 1 };
        for length in [0, 1, MAX_MESSAGE] {
            let all = [Work::Send { data: data(length) }, write(length), read(length as u32)];
            assert!(all.iter().all(|work| work.check().is_ok()));
        }
        let all = [Work::Send { data: data(MAX_MESSAGE + 1) }, write(MAX_MESSAGE + 1), read(MAX_MESSAGE as u32 + 1)];
        for work in all {
            assert_eq!(work.check(), Err(Refusal("a message has at most 2048 bytes, not 2049".into())));
        }
        assert!(read(u32::MAX).check().is_err());
        assert!(Work::Receive {}.check().is_ok());
    }

    #[test]
    fn rights_are_named_by_their_bits() {
        assert_eq!(access_names(0b1011), ["write", "read", "invalidate"]);
        assert!(access_names(0).is_empty());
    }
}
