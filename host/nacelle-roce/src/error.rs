// SPDX-License-Identifier: Apache-2.0
//! Errors.

use core::net::Ipv4Addr;
use nacelle_wire::ParseError;

/// Why a received frame had no effect. Each reason has a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Discard {
    /// It is not well-formed.
    #[error("malformed frame: {0}")]
    Malformed(#[from] ParseError),
    /// It is for another station.
    #[error("not for this address")]
    NotForUs,
    /// Nobody asked for this ARP packet.
    #[error("ARP packet of no interest")]
    ArpIgnored,
    /// An echo reply that nobody waits for.
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
    #[error("packet from a stranger")]
    WrongPeer,
    /// The CM message comes from another queue pair than QP1, or from no single host.
    #[error("CM message from nobody that can be answered")]
    CmSource,
    /// The CM message belongs to no connection, or not to its state.
    #[error("CM message out of place")]
    CmUnexpected,
    /// The queue pair has failed.
    #[error("queue pair is in error")]
    QpError,
    /// An earlier packet is missing.
    #[error("out of sequence")]
    OutOfSequence,
    /// Seen before.
    #[error("duplicate request")]
    Duplicate,
    /// No receive is posted.
    #[error("receiver not ready")]
    ReceiverNotReady,
    /// An acknowledgement of nothing that is outstanding.
    #[error("stale acknowledgement")]
    StaleAck,
    /// An acknowledgement with a reserved syndrome, or a response to nothing that was asked.
    #[error("unexpected response")]
    UnexpectedResponse,
}

/// Why a connection attempt was not even begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The connection table is full.
    #[error("too many connections")]
    TooMany,
    /// The address is not on this network, and there is no gateway.
    #[error("no route to {0}")]
    NoRoute(Ipv4Addr),
    /// Too much private data for the message.
    #[error("too much private data")]
    PrivateData,
    /// The link's MTU does not even fit the smallest path MTU.
    #[error("the link's MTU is too small")]
    MtuTooSmall,
    /// The connection is not one that waits for this.
    #[error("no connection request waits for this answer")]
    NotWaiting,
}

/// Why a work request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// No such connection.
    #[error("no such connection")]
    UnknownConnection,
    /// It is not established, or not any more.
    #[error("not connected")]
    NotConnected,
    /// The queue is full.
    #[error("the queue is full")]
    QueueFull,
    /// The local slice is not within a registered region that this connection may use; or the answer of a READ or atomic
    /// has no region, or not 8 bytes, to go to.
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
}

/// Why a protection domain was not given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// No such domain.
    #[error("no such protection domain")]
    Unknown,
    /// A region or a connection is in it, or it is the default one.
    #[error("the protection domain is in use")]
    Busy,
}
