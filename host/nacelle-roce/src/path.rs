// SPDX-License-Identifier: Apache-2.0
//! What passes between the transport and the network below it: segments, and the paths that they take.
//!
//! A segment is what one UDP datagram carries, from the BTH to the ICRC. The ICRC protects headers of the network layer, so
//! the network fills it in and checks it: the transport only leaves room for it. Where both ends have agreed to leave it out, it is zeros.

use core::net::IpAddr;
use nacelle_memory::{Bytes, Source};
use nacelle_wire::{Ecn, MacAddr};

/// The neighbour on the way to a peer, as the network below names it. The transport keeps it with each connection and gives it
/// back with each segment, so that nothing need be looked up to send one. A network that has no use for it takes the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hop(u64);

impl From<MacAddr> for Hop {
    fn from(mac: MacAddr) -> Self {
        let [a, b, c, d, e, f] = mac.0;
        Self(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }
}

impl Hop {
    /// The Ethernet address that it was made of.
    pub const fn mac(self) -> MacAddr {
        let [_, _, a, b, c, d, e, f] = self.0.to_be_bytes();
        MacAddr([a, b, c, d, e, f])
    }
}

/// Both ends of a way through the network. The addresses are of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// This side's address.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// The neighbour on the way.
    pub hop: Hop,
}

/// What the network below the transport can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Longest IP packet that it carries, in bytes.
    pub ip_mtu: usize,
    /// Bytes of the headers that it puts before a segment. They count in the statistics and in the rates of congestion
    /// control.
    pub overhead: usize,
}

impl Network {
    /// Longest segment, in bytes: at least what a message of connection management takes.
    pub(crate) const fn segment_len(self) -> usize {
        // IPv4 and UDP headers; and what every host takes (RFC 791).
        let ip_packet = if self.ip_mtu > 576 { self.ip_mtu } else { 576 };
        ip_packet - 28
    }
}

/// A received segment, whose ICRC is right, or was left out by agreement.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// The way that it came.
    pub path: Path,
    /// Congestion mark of its IP header.
    pub ecn: Ecn,
    /// From the BTH to the ICRC. It may be where a peer can change it: the transport copies the headers before it looks at them, and
    /// the payload to where it belongs.
    pub payload: Source<'a>,
}

impl<'a> Segment<'a> {
    /// The segments of one receive call that has coalesced some (UDP_GRO): all have `stride` bytes but the last, which may be
    /// shorter.
    pub fn coalesced(path: Path, ecn: Ecn, bytes: Bytes<'a>, stride: usize) -> impl Iterator<Item = Self> {
        bytes.chunks(stride.max(1)).map(move |segment| Self { path, ecn, payload: segment.source() })
    }
}

/// Segments to send, which lie one behind the other in the caller's buffer. They share everything but their contents, so one
/// call can send all of them (UDP_SEGMENT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The way that they take.
    pub path: Path,
    /// UDP source port: the same for all segments of a connection, so that they take one of several equal paths.
    pub source_port: u16,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Whether switches may mark instead of drop.
    pub ecn: Ecn,
    /// Bytes of all segments. The last 4 of each are left to the network, for the ICRC.
    pub len: usize,
    /// Bytes of each segment but the last, which may be shorter; `None` if there is one only.
    pub segment_size: Option<usize>,
}

/// How segments are to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// How many at most, where the network can send several at once.
    pub segments: usize,
    /// The buffer is memory that another processor reads next, and this one does not: what is copied from regions goes past its cache.
    pub past_cache: bool,
}

impl From<usize> for Batch {
    /// So many segments, in a buffer that this processor reads next.
    fn from(segments: usize) -> Self {
        Self { segments, past_cache: false }
    }
}

impl Transmit {
    /// Bytes of each segment in turn.
    pub fn segment_lens(&self) -> impl Iterator<Item = usize> + use<> {
        let (len, size) = (self.len, self.segment_size.unwrap_or(self.len).max(1));
        (0..len).step_by(size).map(move |at| size.min(len - at))
    }
}
