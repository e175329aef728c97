// SPDX-License-Identifier: Apache-2.0
//! The endpoint: a transport over a network.

use crate::{
    AnyInterface, Batch, ConnId, ConnectError, ConnectOptions, Counters, Discard, EndpointConfig, Instant, Interface,
    NetworkLayer, Transport, TransportConfig, UdpInterface, time::earliest,
};
use core::net::IpAddr;

/// A RoCEv2 endpoint: a [`Transport`] over an Ethernet [`Interface`], the datagrams of a UDP socket ([`UdpInterface`]), or either
/// ([`AnyInterface`]).
///
/// It never blocks, has no clock and touches no socket. See the [crate documentation](crate) for how to drive it.
#[derive(Debug)]
pub struct Endpoint<N = Interface> {
    /// What is below the transport.
    pub interface: N,
    /// Connections, regions and queue pairs.
    pub transport: Transport,
}

impl Endpoint {
    /// An endpoint on an Ethernet, without connections.
    pub fn new(mut config: EndpointConfig) -> Self {
        config.transport.network = config.interface.network();
        let mut transport = Transport::new(config.transport);
        let interface = Interface::new(&config.interface, transport.random() as u16);
        Self { interface, transport }
    }

    /// Bytes that the longest frame of this endpoint takes, without FCS.
    pub fn frame_len(&self) -> usize {
        self.interface.frame_len()
    }
}

impl Endpoint<UdpInterface> {
    /// An endpoint on a UDP socket, without connections. `config.network` is that of `interface`.
    pub fn over_udp(interface: UdpInterface, mut config: TransportConfig) -> Self {
        config.network = interface.network();
        Self { interface, transport: Transport::new(config) }
    }
}

impl From<Endpoint> for Endpoint<AnyInterface> {
    fn from(Endpoint { interface, transport }: Endpoint) -> Self {
        Self { interface: AnyInterface::Ethernet(Box::new(interface)), transport }
    }
}

impl From<Endpoint<UdpInterface>> for Endpoint<AnyInterface> {
    fn from(Endpoint { interface, transport }: Endpoint<UdpInterface>) -> Self {
        Self { interface: AnyInterface::Udp(interface), transport }
    }
}

impl<N: NetworkLayer> Endpoint<N> {
    /// Receives a frame, from its Ethernet header on, without FCS; or datagrams.
    ///
    /// What fails any check changes nothing but a counter; the error says which check.
    pub fn handle(&mut self, now: Instant, received: N::Received<'_>) -> Result<(), Discard> {
        self.interface.handle(now, &mut self.transport, received)
    }

    /// Writes the next frame or datagram to send into `buf` and returns its length, or how to send it; `None` if there is nothing
    /// to send now. Also handles timers, so call it when [`Self::next_deadline`] has come, and after each call of another
    /// function, until it returns `None`.
    ///
    /// ARP and ICMP go first, then what [`Transport::poll_transmit`] gives.
    ///
    /// # Panics
    ///
    /// If `buf` is shorter than [`Self::buffer_len`].
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<N::Sent> {
        self.poll_transmit_batch(now, buf, 1)
    }

    /// The same for several segments at once, where the network can send several. The others lie behind the first as far as `buf` has
    /// room.
    ///
    /// # Panics
    ///
    /// As [`Self::poll_transmit`].
    pub fn poll_transmit_batch(&mut self, now: Instant, buf: &mut [u8], batch: impl Into<Batch>) -> Option<N::Sent> {
        assert!(buf.len() >= self.buffer_len(), "the buffer must hold {} bytes", self.buffer_len());
        self.interface.poll_transmit(now, &mut self.transport, buf, batch.into())
    }

    /// When to call [`Self::poll_transmit`] again at the latest, if nothing is received before. `None`: no timer runs.
    ///
    /// It may be earlier than necessary, never later.
    pub fn next_deadline(&self) -> Option<Instant> {
        earliest(self.interface.next_deadline(), self.transport.next_deadline())
    }

    /// Bytes that the longest frame or datagram of this endpoint takes.
    pub fn buffer_len(&self) -> usize {
        self.interface.buffer_len()
    }

    /// Begins to connect to a service, as [`Transport::connect`], if there is a route to it.
    pub fn connect(
        &mut self,
        now: Instant,
        peer: impl Into<IpAddr>,
        port: u16,
        options: ConnectOptions,
    ) -> Result<ConnId, ConnectError> {
        let peer = peer.into();
        if !self.interface.reaches(peer) {
            return Err(ConnectError::NoRoute(peer));
        }
        let conn = self.transport.connect(now, peer, port, options)?;
        self.interface.resolve_paths(now, &mut self.transport);
        Ok(conn)
    }

    /// The counters of network and transport, with those of all connections, past and present, added up.
    pub fn counters(&self) -> Counters {
        Counters::new(self.interface.counters(), &self.transport.counters())
    }
}
