// SPDX-License-Identifier: Apache-2.0
//! Events, and the state of connections.

use crate::{ConnId, Instant, Path, ProtectionDomain, QpCounters, QpState};
use core::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};
use nacelle_wire::{
    MacAddr, Psn, Qpn, Rkey,
    admission::Token,
    cm::{PathMtu, RejReason},
    extensions::Agreement,
};

/// Something that happened at a [`Transport`](crate::Transport), oldest first.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A connection is ready for use, on either side.
    Connected {
        /// Which one.
        conn: ConnId,
        /// Private data of the peer's REP or RTU, padded with zeros; empty without an RTU.
        private_data: Vec<u8>,
    },
    /// A connection could not be made. Its `conn` is gone.
    ConnectFailed {
        /// Which one.
        conn: ConnId,
        /// Why.
        reason: ConnectFailure,
    },
    /// A peer's REQ for a port that is listened on. Answer by [`accept`](crate::Transport::accept) or
    /// [`reject`](crate::Transport::reject); post receives before accepting.
    ConnectRequest {
        /// The connection that it would be.
        conn: ConnId,
        /// The port.
        port: u16,
        /// The peer's address.
        peer: IpAddr,
        /// Private data of the request: 56 bytes, padded with zeros; without its token.
        private_data: Vec<u8>,
        /// The token that it carries.
        token: Option<Token>,
        /// What the peer's application offers; [`ConnectOptions::agreement`](crate::ConnectOptions::agreement) takes of it.
        offered: Agreement,
    },
    /// A connection has ended. Its `conn` is gone, and all its work requests have completed.
    Disconnected {
        /// Which one.
        conn: ConnId,
        /// Why.
        reason: DisconnectReason,
        /// Private data of the peer's DREQ or DREP, padded with zeros; empty without one.
        private_data: Vec<u8>,
        /// Its last statistics.
        stats: Box<ConnStats>,
    },
    /// A work request has completed.
    Completion(Completion),
    /// A queue pair without connection management has failed and is in ERR; its work requests have completed.
    QpFatal {
        /// Which one.
        conn: ConnId,
        /// Why.
        status: WcStatus,
    },
    /// All work requests that a queue pair in SQD had started are done.
    SendQueueDrained {
        /// Which one.
        conn: ConnId,
    },
}

/// Something that happened at an [`Interface`](crate::Interface), oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkEvent {
    /// A peer replied to an echo request.
    EchoReply {
        /// The peer.
        ip: Ipv4Addr,
        /// Number given to [`ping`](crate::Interface::ping).
        sequence: u16,
        /// Bytes of payload that came back.
        len: usize,
        /// From the request's transmission to the reply.
        rtt: Duration,
    },
    /// An echo request got no reply in time.
    EchoTimeout {
        /// The peer.
        ip: Ipv4Addr,
        /// Number given to [`ping`](crate::Interface::ping).
        sequence: u16,
    },
    /// An address is resolved that [`resolve`](crate::Interface::resolve) requested.
    Resolved {
        /// The address, or the router on the way to it.
        ip: Ipv4Addr,
        /// Its Ethernet address.
        mac: MacAddr,
    },
    /// No host replies for an address that [`resolve`](crate::Interface::resolve) or [`ping`](crate::Interface::ping)
    /// requested, or too many requests are outstanding.
    Unreachable {
        /// The address, or the router on the way to it.
        ip: Ipv4Addr,
    },
    /// A probe has ended (RFC 5227).
    AddressProbed {
        /// The address.
        ip: Ipv4Addr,
        /// The Ethernet address of the host that has it, if there is one.
        owner: Option<MacAddr>,
    },
}

/// Why a connection could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectFailure {
    /// There is no path to the address.
    Unreachable,
    /// The peer's connection manager does not answer.
    Timeout,
    /// The peer rejected the request.
    Rejected {
        /// Why.
        reason: RejReason,
        /// Private data of the REJ, padded with zeros.
        private_data: Vec<u8>,
    },
    /// The peer's reply is invalid.
    BadReply,
    /// Aborted by this side.
    Aborted,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// This side.
    Local,
    /// The peer.
    Remote,
    /// The queue pair failed with this status.
    Error(WcStatus),
    /// The network says that the peer is gone ([`Transport::peer_gone`](crate::Transport::peer_gone)).
    PeerGone,
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
    /// Key of this side that the peer has invalidated.
    pub invalidated: Option<Rkey>,
    /// The sender requested a solicited event.
    pub solicited: bool,
}

impl Completion {
    /// A completion with nothing more in it.
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
    /// A local invalidation of a key.
    LocalInvalidate,
    /// A receive, filled by a SEND.
    Recv,
    /// A receive, consumed by a WRITE with immediate. `byte_len` is the length of the WRITE.
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
    /// The local region no longer exists, or its memory cannot be accessed.
    #[error("local protection error")]
    LocProtErr,
    /// The connection ended first.
    #[error("flushed")]
    WrFlushErr,
    /// The peer's NAK: invalid request. Or the peer's request to invalidate a key that it may not invalidate.
    #[error("remote invalid request")]
    RemInvReqErr,
    /// The peer's NAK: wrong key, bounds or rights.
    #[error("remote access error")]
    RemAccessErr,
    /// The peer's NAK: remote operational error.
    #[error("remote operation error")]
    RemOpErr,
    /// The peer's response does not fit the request.
    #[error("bad response")]
    BadRespErr,
    /// The peer does not acknowledge.
    #[error("transport retry count exceeded")]
    RetryExceeded,
    /// The peer posted no receive in time.
    #[error("receiver-not-ready retry count exceeded")]
    RnrRetryExceeded,
    /// The peer violated the protocol: opcode sequence, length, too many READs. Or this connection may not invalidate the key.
    #[error("local QP operation error")]
    LocQpOpErr,
    /// The peer's request had a wrong key, bounds or rights.
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

/// Statistics of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnStats {
    /// When `connect` was called or the request arrived.
    pub started: Instant,
    /// When the path was known.
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
    /// Counters of its queue pair.
    pub counters: QpCounters,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnInfo {
    /// Its phase.
    pub phase: Phase,
    /// The peer's address.
    pub peer: IpAddr,
    /// The way to it, when known.
    pub path: Option<Path>,
    /// Its protection domain.
    pub domain: ProtectionDomain,
    /// Service port.
    pub port: u16,
    /// This side's queue pair.
    pub local_qpn: Qpn,
    /// The peer's queue pair, when known.
    pub remote_qpn: Option<Qpn>,
    /// GUID of the peer's channel adapter, when known; 0 if it gave none.
    pub remote_guid: Option<u64>,
    /// Payload bytes of a full packet.
    pub path_mtu: PathMtu,
    /// READs and atomics that this side serves at a time; agreed once established.
    pub responder_resources: u8,
    /// READs and atomics that this side may have outstanding; agreed once established.
    pub initiator_depth: u8,
    /// Whether only lost packets are sent again; agreed once established.
    pub selective_repeat: bool,
    /// Whether the peer has offered or agreed to extensions, as Nacelle's endpoints do; known once established.
    pub has_record: bool,
    /// Whether acknowledgements may follow the application's answers; agreed once established.
    pub late_acknowledgement: bool,
    /// What the applications have agreed on; final once established.
    pub agreement: Agreement,
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
    /// Statistics.
    pub stats: ConnStats,
}

/// Phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Waits for the path to the peer.
    Resolving,
    /// REQ sent.
    ReqSent,
    /// REQ received; the application has not accepted or rejected it.
    ReqReceived,
    /// REP sent.
    RepSent,
    /// Ready.
    Established,
    /// Failed; waits for the peer's DREQ for a time before it sends its own.
    Lingering,
    /// DREQ sent.
    DreqSent,
    /// A queue pair without connection management.
    Unmanaged(QpState),
}

impl Phase {
    /// The state of the queue pair.
    pub const fn qp_state(self) -> QpState {
        match self {
            Self::Resolving | Self::ReqSent | Self::ReqReceived => QpState::Init,
            Self::RepSent => QpState::Rtr,
            Self::Established => QpState::Rts,
            Self::Lingering | Self::DreqSent => QpState::Err,
            Self::Unmanaged(state) => state,
        }
    }
}
