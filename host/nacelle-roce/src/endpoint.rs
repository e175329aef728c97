// SPDX-License-Identifier: Apache-2.0
//! The endpoint: a transport over an Ethernet interface.

use crate::{
    ConnId, ConnectError, ConnectOptions, Counters, Discard, EndpointConfig, Instant, Interface, PathError, Transport,
    time::earliest,
};
use core::net::{IpAddr, Ipv4Addr};
use nacelle_wire::roce::LOWER_LEN;

/// A RoCEv2 endpoint: a [`Transport`] behind one Ethernet [`Interface`].
///
/// It never blocks, has no clock and touches no socket. See the [crate documentation](crate) for how to drive it.
#[derive(Debug)]
pub struct Endpoint {
    /// Ethernet, IPv4, ARP and ICMP.
    pub interface: Interface,
    /// Connections, regions and queue pairs.
    pub transport: Transport,
    /// Peers that connections need a path to, and the neighbours on the way.
    resolving: Vec<(IpAddr, Ipv4Addr)>,
}

impl Endpoint {
    /// An endpoint without connections.
    pub fn new(mut config: EndpointConfig) -> Self {
        config.transport.network = config.interface.network();
        let mut transport = Transport::new(config.transport);
        let interface = Interface::new(&config.interface, transport.random() as u16);
        Self { interface, transport, resolving: Vec::new() }
    }

    /// Receives a frame, from its Ethernet header on, without FCS.
    ///
    /// A frame that fails any check changes nothing but a counter; the error says which check.
    pub fn handle(&mut self, now: Instant, frame: &[u8]) -> Result<(), Discard> {
        match self.interface.handle(now, frame)? {
            Some(segment) => self.transport.handle(now, &segment),
            None => {
                self.resolve_paths(now);
                Ok(())
            }
        }
    }

    /// Writes the next frame to send into `frame` and returns its length; `None` if there is nothing to send now. Also handles
    /// timers, so call it when [`Self::next_deadline`] has come, and after each call of another function, until it returns
    /// `None`.
    ///
    /// ARP and ICMP go first, then what [`Transport::poll_transmit`] gives.
    ///
    /// # Panics
    ///
    /// If `frame` is shorter than [`Self::frame_len`].
    pub fn poll_transmit(&mut self, now: Instant, frame: &mut [u8]) -> Option<usize> {
        assert!(frame.len() >= self.frame_len(), "the buffer must hold {} bytes", self.frame_len());
        self.resolve_paths(now);
        if let Some(len) = self.interface.poll_transmit(now, frame) {
            return Some(len);
        }
        self.resolve_paths(now);
        let segment = self.transport.poll_transmit(now, &mut frame[LOWER_LEN..], 1)?;
        Some(self.interface.encapsulate(&segment, frame))
    }

    /// When to call [`Self::poll_transmit`] again at the latest, if no frame arrives before. `None`: no timer runs.
    ///
    /// It may be earlier than necessary, never later.
    pub fn next_deadline(&self) -> Option<Instant> {
        earliest(self.interface.next_deadline(), self.transport.next_deadline())
    }

    /// Bytes that the longest frame of this endpoint takes, without FCS.
    pub fn frame_len(&self) -> usize {
        self.interface.frame_len()
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
        self.interface.hop_to(peer).map_err(|_| ConnectError::NoRoute(peer))?;
        let conn = self.transport.connect(now, peer, port, options)?;
        self.resolve_paths(now);
        Ok(conn)
    }

    /// The counters of interface and transport, with those of all connections, past and present, added up.
    pub fn counters(&self) -> Counters {
        Counters::new(self.interface.counters(), &self.transport.counters())
    }

    /// Resolves the paths that the transport requests.
    fn resolve_paths(&mut self, now: Instant) {
        while let Some(peer) = self.transport.poll_path_request() {
            match (self.interface.path(now, peer), self.interface.hop_to(peer)) {
                (Ok(path), _) => self.transport.path_resolved(now, peer, Some(path)),
                (Err(PathError::Unresolved(_)), Ok(hop)) => {
                    self.resolving.push((peer, hop));
                    self.interface.resolve_path(now, hop);
                }
                _ => self.transport.path_resolved(now, peer, None),
            }
        }
        for (hop, mac) in self.interface.take_resolved() {
            let (ended, rest) = core::mem::take(&mut self.resolving).into_iter().partition(|(_, via)| *via == hop);
            self.resolving = rest;
            for (peer, _) in Vec::<(IpAddr, Ipv4Addr)>::into_iter(ended) {
                self.transport.path_resolved(now, peer, mac.map(|mac| self.interface.path_by(peer, mac)));
            }
        }
    }
}
