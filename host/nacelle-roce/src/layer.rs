// SPDX-License-Identifier: Apache-2.0
//! What an endpoint has below its transport.

use crate::{
    Batch, Datagrams, Discard, Instant, Interface, InterfaceCounters, Network, Transmit, Transport, UdpInterface,
};
use core::net::IpAddr;

/// The network below a transport: an Ethernet interface, the datagrams of a UDP socket, or one of these as a program has chosen.
pub trait NetworkLayer {
    /// What is received at once.
    type Received<'a>;
    /// What is sent at once: how much of the buffer, and to whom.
    type Sent;

    /// What it offers the transport.
    fn network(&self) -> Network;

    /// Whether there may be a way to this address.
    fn reaches(&self, peer: IpAddr) -> bool;

    /// Receives.
    ///
    /// What fails any check changes nothing but a counter; the error says which check.
    fn handle(&mut self, now: Instant, transport: &mut Transport, received: Self::Received<'_>) -> Result<(), Discard>;

    /// Writes what to send next into `buf`.
    fn poll_transmit(
        &mut self,
        now: Instant,
        transport: &mut Transport,
        buf: &mut [u8],
        batch: Batch,
    ) -> Option<Self::Sent>;

    /// Answers the path requests of the transport, or begins to find the answers.
    fn resolve_paths(&mut self, now: Instant, transport: &mut Transport);

    /// When to call [`Self::poll_transmit`] again at the latest, beside the transport's own timers.
    fn next_deadline(&self) -> Option<Instant>;

    /// Bytes that the longest thing to send takes.
    fn buffer_len(&self) -> usize;

    /// Its counters.
    fn counters(&self) -> &InterfaceCounters;
}

/// Either kind of network, where a program chooses when it runs.
#[derive(Debug)]
pub enum AnyInterface {
    /// Frames.
    Ethernet(Box<Interface>),
    /// Datagrams.
    Udp(UdpInterface),
}

/// What either kind receives.
#[derive(Clone, Copy, Debug)]
pub enum Received<'a> {
    /// A frame, from its Ethernet header on, without FCS.
    Frame(&'a [u8]),
    /// Datagrams of one sender.
    Datagrams(Datagrams<'a>),
}

/// What either kind sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// A frame of this many bytes.
    Frame(usize),
    /// Datagrams to one peer.
    Datagrams(Transmit),
}

impl AnyInterface {
    /// The Ethernet interface, if it is one.
    pub fn ethernet(&mut self) -> Option<&mut Interface> {
        match self {
            Self::Ethernet(interface) => Some(interface),
            Self::Udp(_) => None,
        }
    }
}

impl NetworkLayer for AnyInterface {
    type Received<'a> = Received<'a>;
    type Sent = Sent;

    fn network(&self) -> Network {
        match self {
            Self::Ethernet(interface) => interface.network(),
            Self::Udp(interface) => interface.network(),
        }
    }

    fn reaches(&self, peer: IpAddr) -> bool {
        match self {
            Self::Ethernet(interface) => interface.reaches(peer),
            Self::Udp(interface) => interface.reaches(peer),
        }
    }

    fn handle(&mut self, now: Instant, transport: &mut Transport, received: Received<'_>) -> Result<(), Discard> {
        match (self, received) {
            (Self::Ethernet(interface), Received::Frame(frame)) => {
                NetworkLayer::handle(&mut **interface, now, transport, frame)
            }
            (Self::Udp(interface), Received::Datagrams(datagrams)) => interface.handle(now, transport, datagrams),
            (Self::Ethernet(_), Received::Datagrams(_)) | (Self::Udp(_), Received::Frame(_)) => Err(Discard::NotForUs),
        }
    }

    fn poll_transmit(&mut self, now: Instant, transport: &mut Transport, buf: &mut [u8], batch: Batch) -> Option<Sent> {
        match self {
            Self::Ethernet(interface) => {
                NetworkLayer::poll_transmit(&mut **interface, now, transport, buf, batch).map(Sent::Frame)
            }
            Self::Udp(interface) => interface.poll_transmit(now, transport, buf, batch).map(Sent::Datagrams),
        }
    }

    fn resolve_paths(&mut self, now: Instant, transport: &mut Transport) {
        match self {
            Self::Ethernet(interface) => interface.resolve_paths(now, transport),
            Self::Udp(interface) => interface.resolve_paths(now, transport),
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Ethernet(interface) => interface.next_deadline(),
            Self::Udp(interface) => interface.next_deadline(),
        }
    }

    fn buffer_len(&self) -> usize {
        match self {
            Self::Ethernet(interface) => interface.buffer_len(),
            Self::Udp(interface) => interface.buffer_len(),
        }
    }

    fn counters(&self) -> &InterfaceCounters {
        match self {
            Self::Ethernet(interface) => interface.counters(),
            Self::Udp(interface) => interface.counters(),
        }
    }
}
