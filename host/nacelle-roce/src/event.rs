// SPDX-License-Identifier: Apache-2.0
//! What an endpoint tells its user.

use crate::{ConnId, Instant, ProtectionDomain, QpCounters, QpState};
use core::{net::Ipv4Addr, time::Duration};
use nacelle_wire::{
    MacAddr, Psn, Qpn, Rkey,
    cm::{PathMtu, RejReason},
};

/// Something that happened. Taken by [`poll_event`](crate::Endpoint::poll_event), oldest first.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A connection is ready for use, on either side.
    Connected {
        /// Which one.
        conn: ConnId,
        /// What the peer's application said with its REP or RTU, zeros at the end; empty without an RTU.
        private_data: Vec<u8>,
    },
    /// A connection could not be made. Its `conn` is gone.
    ConnectFailed {
        /// Which one.
        conn: ConnId,
        /// Why.
        reason: ConnectFailure,
    },
    /// A peer wants to connect to a port that is listened on. Answer by [`accept`](crate::Endpoint::accept) or
    /// [`reject`](crate::Endpoint::reject); post receives before accepting.
    ConnectRequest {
        /// The connection that it would be.
        conn: ConnId,
        /// The port.
        port: u16,
        /// The peer's address.
        peer: Ipv4Addr,
        /// What the peer's application says: 56 bytes, zeros at the end.
        private_data: Vec<u8>,
    },
    /// A connection has ended. Its `conn` is gone, and all its work requests have completed.
    Disconnected {
        /// Which one.
        conn: ConnId,
        /// Why.
        reason: DisconnectReason,
        /// What the peer's application said with its DREQ or DREP, zeros at the end; empty if it said nothing.
        private_data: Vec<u8>,
        /// Its last figures.
        stats: Box<ConnStats>,
    },
    /// A work request has completed.
    Completion(Completion),
    /// A queue pair by hand has failed and is in ERR; its work requests have completed.
    QpFatal {
        /// Which one.
        conn: ConnId,
        /// Why.
        status: WcStatus,
    },
    /// Everything that a queue pair in SQD had begun is over.
    SendQueueDrained {
        /// Which one.
        conn: ConnId,
    },
    /// A peer answered a ping.
    EchoReply {
        /// The peer.
        ip: Ipv4Addr,
        /// Number given to [`ping`](crate::Endpoint::ping).
        sequence: u16,
        /// Bytes of payload that came back.
        len: usize,
        /// From the request's transmission to the reply.
        rtt: Duration,
    },
    /// A ping got no answer within its time.
    EchoTimeout {
        /// The peer.
        ip: Ipv4Addr,
        /// Number given to [`ping`](crate::Endpoint::ping).
        sequence: u16,
    },
    /// An address asked for by [`resolve`](crate::Endpoint::resolve) is known.
    Resolved {
        /// The address, or the router on the way to it.
        ip: Ipv4Addr,
        /// Its Ethernet address.
        mac: MacAddr,
    },
    /// Nobody answers for an address asked for by [`resolve`](crate::Endpoint::resolve) or
    /// [`ping`](crate::Endpoint::ping).
    Unreachable {
        /// The address, or the router on the way to it.
        ip: Ipv4Addr,
    },
    /// A probe has ended (RFC 5227).
    AddressProbed {
        /// The address.
        ip: Ipv4Addr,
        /// Who has it, if somebody does.
        owner: Option<MacAddr>,
    },
}

/// Why a connection could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectFailure {
    /// Nobody answers for the address (ARP).
    Unreachable,
    /// Somebody has the address, but no connection manager answers.
    Timeout,
    /// The peer refused.
    Rejected {
        /// Why.
        reason: RejReason,
        /// What its application says; zeros at the end.
        private_data: Vec<u8>,
    },
    /// The peer's answer makes no sense.
    BadReply,
    /// Given up from this side.
    Aborted,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// This side asked for it.
    Local,
    /// The peer asked for it.
    Remote,
    /// The queue pair failed; this status tells how.
    Error(WcStatus),
}

/// How a work request ended, as in verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The connection.
    pub conn: ConnId,
    /// The work request's number.
    pub id: u64,
    /// What it was.
    pub opcode: WcOpcode,
    /// How it ended.
    pub status: WcStatus,
    /// Bytes received, or sent. 0 unless the status is success.
    pub byte_len: usize,
    /// Immediate data received.
    pub imm: Option<u32>,
    /// Key of this side that the peer has taken back.
    pub invalidated: Option<Rkey>,
    /// The sender asked for a wake-up.
    pub solicited: bool,
}

impl Completion {
    /// One without more to say.
    pub(crate) const fn new(conn: ConnId, id: u64, opcode: WcOpcode, status: WcStatus) -> Self {
        Self { conn, id, opcode, status, byte_len: 0, imm: None, invalidated: None, solicited: false }
    }
}

/// What completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WcOpcode {
    /// A SEND of this side.
    Send,
    /// A WRITE of this side.
    Write,
    /// A READ of this side.
    Read,
    /// A FETCH-ADD of this side.
    FetchAdd,
    /// A CMP-SWAP of this side.
    CmpSwap,
    /// An invalidation of a key of this side, by itself.
    LocalInvalidate,
    /// A receive, filled by a SEND.
    Recv,
    /// A receive, used up by a WRITE with immediate. `byte_len` is the length of the WRITE.
    RecvWrite,
}

impl WcOpcode {
    /// Whether it was in the receive queue.
    pub const fn is_recv(self) -> bool {
        matches!(self, Self::Recv | Self::RecvWrite)
    }
}

/// Status of a completion, as in verbs (`ibv_wc_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum WcStatus {
    /// Done.
    #[error("success")]
    Success,
    /// The message is longer than the receive posted for it.
    #[error("local length error")]
    LocLenErr,
    /// The local region is gone.
    #[error("local protection error")]
    LocProtErr,
    /// The connection ended first.
    #[error("flushed")]
    WrFlushErr,
    /// The peer says that the request cannot be; or it asked for the invalidation of a key that it may not invalidate.
    #[error("remote invalid request")]
    RemInvReqErr,
    /// The peer says: wrong key, bounds or rights.
    #[error("remote access error")]
    RemAccessErr,
    /// The peer could not do it.
    #[error("remote operation error")]
    RemOpErr,
    /// The peer's answer to a READ is not what it was asked for.
    #[error("bad response")]
    BadRespErr,
    /// The peer does not acknowledge.
    #[error("transport retry count exceeded")]
    RetryExceeded,
    /// The peer posts no receive.
    #[error("receiver-not-ready retry count exceeded")]
    RnrRetryExceeded,
    /// The peer broke the protocol towards this side: opcode sequence, length, too many at once. Or the key to
    /// invalidate is none of this connection's.
    #[error("local QP operation error")]
    LocQpOpErr,
    /// The peer tried what it may not: wrong key, bounds or rights.
    #[error("local access violation")]
    LocAccessErr,
}

/// Packets of one kind in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many.
    pub packets: u64,
    /// Bytes of their payload, without padding.
    pub payload: u64,
}

impl Traffic {
    /// Counts a packet.
    pub(crate) const fn add(&mut self, payload: usize) {
        self.packets += 1;
        self.payload += payload as u64;
    }
}

/// Figures of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnStats {
    /// When `connect` was called or the request arrived.
    pub started: Instant,
    /// When the Ethernet address was known.
    pub resolved: Option<Instant>,
    /// When the connection was ready.
    pub established: Option<Instant>,
    /// When the last packet of the peer arrived.
    pub last_received: Option<Instant>,
    /// RC packets sent, retransmissions and acknowledgements included.
    pub tx_packets: u64,
    /// Bytes of their frames.
    pub tx_bytes: u64,
    /// RC packets received.
    pub rx_packets: u64,
    /// Bytes of their frames.
    pub rx_bytes: u64,
    /// Bytes of payload accepted.
    pub rx_payload: u64,
    /// Request packets sent, retransmissions included.
    pub tx_requests: Traffic,
    /// Response packets sent: acknowledgements, NAKs, READ responses, atomic acknowledgements.
    pub tx_responses: Traffic,
    /// Request packets received in a state that takes them, duplicates and those out of sequence included.
    pub rx_requests: Traffic,
    /// Response packets received in such a state.
    pub rx_responses: Traffic,
    /// What its queue pair counted.
    pub counters: QpCounters,
}

/// A connection at a glance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnInfo {
    /// How far it is.
    pub phase: Phase,
    /// The peer's address.
    pub peer_ip: Ipv4Addr,
    /// The Ethernet address on the way to it, when known.
    pub peer_mac: Option<MacAddr>,
    /// Its protection domain.
    pub domain: ProtectionDomain,
    /// Service port.
    pub port: u16,
    /// This side's queue pair.
    pub local_qpn: Qpn,
    /// The peer's queue pair, when known.
    pub remote_qpn: Option<Qpn>,
    /// Payload bytes of a full packet.
    pub path_mtu: PathMtu,
    /// READs and atomics that this side serves at once; agreed once established.
    pub responder_resources: u8,
    /// READs and atomics that this side may have outstanding; agreed once established.
    pub initiator_depth: u8,
    /// Whether only lost packets are sent again; agreed once established.
    pub selective_repeat: bool,
    /// PSN of the next new request packet.
    pub next_psn: Psn,
    /// PSN of the oldest request packet that is not acknowledged; `next_psn` if all are.
    pub oldest_psn: Psn,
    /// Work requests in the send queue.
    pub sends: usize,
    /// Receives posted.
    pub recvs: usize,
    /// Limit that congestion control sets to sending, in Mb/s.
    pub rate_limit: Option<f64>,
    /// Figures.
    pub stats: ConnStats,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Waits for the peer's Ethernet address.
    Resolving,
    /// REQ sent.
    ReqSent,
    /// REQ received; the application decides.
    ReqReceived,
    /// REP sent.
    RepSent,
    /// Ready.
    Established,
    /// Failed; waits a moment for the peer's DREQ before it sends its own.
    Lingering,
    /// DREQ sent.
    DreqSent,
    /// A queue pair by hand, without connection management.
    Manual(QpState),
}

impl Phase {
    /// The state of the queue pair.
    pub const fn qp_state(self) -> QpState {
        match self {
            Self::Resolving | Self::ReqSent | Self::ReqReceived => QpState::Init,
            Self::RepSent => QpState::Rtr,
            Self::Established => QpState::Rts,
            Self::Lingering | Self::DreqSent => QpState::Err,
            Self::Manual(state) => state,
        }
    }
}
