// SPDX-License-Identifier: Apache-2.0
//! Errors.

use core::net::IpAddr;
use nacelle_wire::ParseError;

/// Why a received frame or segment was discarded. Each reason has a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Discard {
    /// It is not well-formed.
    #[error("malformed frame: {0}")]
    Malformed(#[from] ParseError),
    /// It is for another host.
    #[error("not for this address")]
    NotForUs,
    /// The ARP packet concerns no address of this cache.
    #[error("unsolicited ARP packet")]
    ArpIgnored,
    /// An echo reply without a request.
    #[error("unexpected echo reply")]
    UnexpectedEcho,
    /// The partition key is not the default one.
    #[error("wrong P_Key")]
    PKey,
    /// The Q_Key of a CM message is wrong.
    #[error("wrong Q_Key")]
    QKey,
    /// No such queue pair, or not in a state to receive.
    #[error("no such queue pair")]
    UnknownQp,
    /// The packet's source is not the connection's peer.
    #[error("packet from another host than the peer")]
    WrongPeer,
    /// The CM message comes from another queue pair than QP1, or not from a unicast address.
    #[error("CM message from a source that cannot be replied to")]
    CmSource,
    /// The CM message fits no connection, or not its phase.
    #[error("unexpected CM message")]
    CmUnexpected,
    /// The queue pair has failed.
    #[error("queue pair is in error")]
    QpError,
    /// An earlier packet is missing.
    #[error("out of sequence")]
    OutOfSequence,
    /// Executed before.
    #[error("duplicate request")]
    Duplicate,
    /// No receive is posted.
    #[error("receiver not ready")]
    ReceiverNotReady,
    /// An acknowledgement of nothing that is outstanding.
    #[error("stale acknowledgement")]
    StaleAck,
    /// An acknowledgement with a reserved syndrome, or a response without a request.
    #[error("unexpected response")]
    UnexpectedResponse,
}

/// Why a connection attempt was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The connection table is full.
    #[error("too many connections")]
    TooMany,
    /// The address is not on this network, and there is no gateway.
    #[error("no route to {0}")]
    NoRoute(IpAddr),
    /// Too much private data for the message.
    #[error("too much private data")]
    PrivateData,
    /// The link's MTU does not even fit the smallest path MTU.
    #[error("the link's MTU is too small")]
    MtuTooSmall,
    /// The connection is not a request that waits to be accepted or rejected.
    #[error("no connection request waits to be accepted or rejected")]
    NotWaiting,
}

/// Why there is no path to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The address is not on this network, and there is no gateway; or it is of another IP version.
    #[error("no route to {0}")]
    NoRoute(IpAddr),
    /// The Ethernet address on the way to it is not known: resolve it first.
    #[error("the Ethernet address of {0} is not known")]
    Unresolved(IpAddr),
}

/// Why a work request was not posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// No such connection.
    #[error("no such connection")]
    UnknownConnection,
    /// It is not established.
    #[error("not connected")]
    NotConnected,
    /// The queue is full.
    #[error("the queue is full")]
    QueueFull,
    /// The local slice is not within a registered region that this connection may use; or a READ or atomic has no region for
    /// its response, or an atomic one that is not of 8 bytes.
    #[error("the slice is not within a registered region for this operation and connection")]
    BadSlice,
    /// The peer serves no READs and atomics.
    #[error("the peer serves no READs and atomics")]
    NotAgreed,
    /// Longer than 2^31 bytes.
    #[error("the message is too long")]
    TooLong,
}

/// Why a region was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// The table is full.
    #[error("too many regions")]
    TooMany,
    /// No such connection.
    #[error("no such connection")]
    UnknownConnection,
    /// No such protection domain.
    #[error("no such protection domain")]
    UnknownDomain,
    /// Peers were to write, and the memory is read-only.
    #[error("the memory is read-only")]
    ReadOnly,
}

/// Why a protection domain was not freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// No such domain.
    #[error("no such protection domain")]
    Unknown,
    /// A region or a connection is in it, or it is the default one.
    #[error("the protection domain is in use")]
    Busy,
}
