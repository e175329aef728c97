// SPDX-License-Identifier: Apache-2.0
//! The transport below the calls: the user-space endpoint, or that of an RDMA NIC.
//!
//! What the two have in common is here under one name, and nothing else: so engine and calls do not ask which it is. Where a NIC
//! has no such thing (packets, an Ethernet interface, rights that change), it is said here what takes its place.

use std::net::IpAddr;

use nacelle_driver::AnyMedium;
use nacelle_link::LinkError;
use nacelle_memory::Memory;
use nacelle_roce::{
    Access, AnyInterface, Batch, ConnId, ConnInfo, ConnStats, ConnectError, ConnectOptions, Event, Instant, Interface,
    NetworkLayer, PostError, Received, RecvWr, Region, RegionId, SendMark, SendWr, Sent,
};
use nacelle_verbs::{Arrival, Inlet, Nic, VerbsError};
use nacelle_wire::cm::PathMtu;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Connections, regions and queue pairs that threads share.
pub(crate) struct Endpoint {
    pub(crate) transport: Transport,
}

/// Either kind of transport.
pub(crate) enum Transport {
    /// In this process, on an Ethernet or on datagrams.
    Software(Box<nacelle_roce::Endpoint<AnyInterface>>),
    /// In a NIC.
    Nic(Box<Nic>),
}

/// What either kind receives.
pub(crate) enum Arrived<'a> {
    Packets(Received<'a>),
    Nic(Arrival<'a>),
}

impl<N> From<nacelle_roce::Endpoint<N>> for Endpoint
where
    nacelle_roce::Endpoint<N>: Into<nacelle_roce::Endpoint<AnyInterface>>,
{
    fn from(endpoint: nacelle_roce::Endpoint<N>) -> Self {
        Self { transport: Transport::Software(Box::new(endpoint.into())) }
    }
}

impl From<Nic> for Endpoint {
    fn from(nic: Nic) -> Self {
        Self { transport: Transport::Nic(Box::new(nic)) }
    }
}

impl Endpoint {
    /// Begins to connect to a service.
    ///
    /// # Errors
    /// As [`nacelle_roce::Endpoint::connect`].
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        peer: IpAddr,
        port: u16,
        options: ConnectOptions,
    ) -> Result<ConnId, ConnectError> {
        match &mut self.transport {
            Transport::Software(endpoint) => endpoint.connect(now, peer, port, options),
            Transport::Nic(nic) => nic.connect(now, peer, port, options),
        }
    }

    /// Takes what was received.
    pub(crate) fn handle(&mut self, now: Instant, arrived: Arrived<'_>) {
        match (&mut self.transport, arrived) {
            (Transport::Software(endpoint), Arrived::Packets(received)) => {
                // The endpoint's counters count what is discarded by reason.
                let _counted = endpoint.handle(now, received);
            }
            (Transport::Nic(nic), Arrived::Nic(arrival)) => nic.handle(now, arrival),
            (Transport::Software(_), Arrived::Nic(_)) | (Transport::Nic(_), Arrived::Packets(_)) => {}
        }
    }

    /// Does what it is time for, and writes what to send next: a NIC sends by itself.
    pub(crate) fn poll_transmit_batch(&mut self, now: Instant, buffer: &mut [u8], batch: Batch) -> Option<Sent> {
        match &mut self.transport {
            Transport::Software(endpoint) => endpoint.poll_transmit_batch(now, buffer, batch),
            Transport::Nic(nic) => {
                nic.run_timers(now);
                None
            }
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match &self.transport {
            Transport::Software(endpoint) => endpoint.next_deadline(),
            Transport::Nic(nic) => nic.next_deadline(),
        }
    }

    /// The Ethernet interface, if there is one.
    pub(crate) fn ethernet(&mut self) -> Option<&mut Interface> {
        match &mut self.transport {
            Transport::Software(endpoint) => endpoint.interface.ethernet(),
            Transport::Nic(_) => None,
        }
    }

    /// Packets and bytes sent, packets and bytes received; of a NIC messages and bytes of their payload.
    pub(crate) fn traffic(&self) -> [u64; 4] {
        match &self.transport {
            Transport::Software(endpoint) => {
                let counters = endpoint.interface.counters();
                [counters.tx_frames, counters.tx_bytes, counters.rx_frames, counters.rx_bytes]
            }
            Transport::Nic(nic) => nic.traffic(),
        }
    }

    /// The largest path MTU, if there is one.
    pub(crate) fn largest_path_mtu(&self) -> Option<PathMtu> {
        match &self.transport {
            Transport::Software(endpoint) => PathMtu::for_ip_mtu(endpoint.interface.network().ip_mtu),
            Transport::Nic(nic) => nic.path_mtu(),
        }
    }
}

impl Transport {
    pub(crate) fn disconnect(&mut self, now: Instant, conn: ConnId) {
        match self {
            Self::Software(endpoint) => endpoint.transport.disconnect(now, conn),
            Self::Nic(nic) => nic.disconnect(now, conn),
        }
    }

    /// Registers memory that the peer of `conn` writes if `comes_back`: of the user-space transport only while
    /// [`set_access`](Self::set_access) says so, of a NIC for as long as it is registered.
    ///
    /// # Errors
    /// If there is no room, or the NIC does not take it.
    pub(crate) fn register(
        &mut self,
        memory: impl Into<Memory>,
        comes_back: bool,
        conn: ConnId,
    ) -> Result<Region, RegisterError> {
        Ok(match self {
            Self::Software(endpoint) => endpoint.transport.register(memory, Access::LOCAL, Some(conn))?,
            Self::Nic(nic) => {
                let access = if comes_back { Access::REMOTE_WRITE } else { Access::LOCAL };
                nic.register(memory.into(), access, Some(conn))?
            }
        })
    }

    pub(crate) fn deregister(&mut self, id: RegionId) -> Option<Memory> {
        match self {
            Self::Software(endpoint) => endpoint.transport.deregister(id),
            Self::Nic(nic) => nic.deregister(id),
        }
    }

    pub(crate) fn region(&self, id: RegionId) -> Option<&Memory> {
        match self {
            Self::Software(endpoint) => endpoint.transport.region(id),
            Self::Nic(nic) => nic.region(id),
        }
    }

    pub(crate) fn region_mut(&mut self, id: RegionId) -> Option<&mut Memory> {
        match self {
            Self::Software(endpoint) => endpoint.transport.region_mut(id),
            Self::Nic(nic) => nic.region_mut(id),
        }
    }

    /// Changes what the peer may do with a region; in a NIC that takes as long as to register it anew, and is not done.
    pub(crate) fn set_access(&mut self, id: RegionId, access: Access) {
        if let Self::Software(endpoint) = self {
            endpoint.transport.set_access(id, access);
        }
    }

    pub(crate) fn post_send(&mut self, conn: ConnId, request: SendWr) -> Result<(), PostError> {
        match self {
            Self::Software(endpoint) => endpoint.transport.post_send(conn, request),
            Self::Nic(nic) => nic.post_send(conn, request),
        }
    }

    pub(crate) fn post_recv(&mut self, conn: ConnId, request: RecvWr) -> Result<(), PostError> {
        match self {
            Self::Software(endpoint) => endpoint.transport.post_recv(conn, request),
            Self::Nic(nic) => nic.post_recv(conn, request),
        }
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        match self {
            Self::Software(endpoint) => endpoint.transport.poll_event(),
            Self::Nic(nic) => nic.poll_event(),
        }
    }

    /// Has [`poll_watched`](Self::poll_watched) give a connection, once, when a packet of it has passed; of a NIC, when a work request has
    /// completed.
    pub(crate) fn watch(&mut self, conn: ConnId) {
        match self {
            Self::Software(endpoint) => endpoint.transport.watch(conn),
            Self::Nic(nic) => nic.watch(conn),
        }
    }

    pub(crate) fn poll_watched(&mut self) -> Option<ConnId> {
        match self {
            Self::Software(endpoint) => endpoint.transport.poll_watched(),
            Self::Nic(nic) => nic.poll_watched(),
        }
    }

    pub(crate) fn stats(&self, conn: ConnId) -> Option<&ConnStats> {
        match self {
            Self::Software(endpoint) => endpoint.transport.stats(conn),
            Self::Nic(nic) => nic.stats(conn),
        }
    }

    /// Work requests in the send queue of a connection.
    pub(crate) fn sends(&self, conn: ConnId) -> usize {
        match self {
            Self::Software(endpoint) => endpoint.transport.sends(conn),
            Self::Nic(nic) => nic.sends(conn),
        }
    }

    pub(crate) fn connection(&self, conn: ConnId) -> Option<ConnInfo> {
        match self {
            Self::Software(endpoint) => endpoint.transport.connection(conn),
            Self::Nic(nic) => nic.connection(conn),
        }
    }

    /// Whether the state of a connection is one that `wanted` accepts.
    pub(crate) fn any_connection(&self, wanted: impl Fn(&ConnInfo) -> bool) -> bool {
        match self {
            Self::Software(endpoint) => endpoint.transport.connections().any(|(_, info)| wanted(&info)),
            Self::Nic(nic) => nic.connections().any(|(_, info)| wanted(&info)),
        }
    }

    /// What has been posted up to now, for [`confirm`](Self::confirm): in a NIC acknowledgements alone confirm.
    pub(crate) fn send_mark(&self, conn: ConnId) -> Option<SendMark> {
        match self {
            Self::Software(endpoint) => endpoint.transport.send_mark(conn),
            Self::Nic(_) => None,
        }
    }

    pub(crate) fn confirm(&mut self, now: Instant, conn: ConnId, mark: SendMark) {
        if let Self::Software(endpoint) = self {
            endpoint.transport.confirm(now, conn, mark);
        }
    }

    pub(crate) fn hold(&mut self, now: Instant, conn: ConnId, at: Instant) {
        match self {
            Self::Software(endpoint) => endpoint.transport.hold(now, conn, at),
            Self::Nic(nic) => nic.hold(now, conn, at),
        }
    }

    /// Lets acknowledgements wait; a NIC acknowledges when it does. Returns whether they wait.
    pub(crate) fn delay_acknowledgements(&mut self, conn: ConnId, delay: Duration) -> bool {
        match self {
            Self::Software(endpoint) => {
                endpoint.transport.delay_acknowledgements(conn, delay);
                true
            }
            Self::Nic(_) => false,
        }
    }

    pub(crate) fn peer_gone(&mut self, peer: IpAddr) {
        if let Self::Software(endpoint) = self {
            endpoint.transport.peer_gone(peer);
        }
    }
}

/// Why memory was not registered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegisterError {
    #[error(transparent)]
    Software(#[from] nacelle_roce::RegisterError),
    #[error(transparent)]
    Nic(#[from] VerbsError),
}

/// What is wrong with a NIC, as a fault of the link.
pub(crate) fn link_error(error: &VerbsError) -> LinkError {
    LinkError::Nic { what: error.to_string(), hint: error.hint() }
}

/// Where packets are sent and received, or where a NIC says what has happened.
pub(crate) enum Medium {
    Packets(Box<AnyMedium>),
    Nic { inlet: Box<Inlet>, spin: Duration },
}

impl nacelle_driver::Medium for Medium {
    type Received<'a> = Arrived<'a>;
    type Sent = Sent;

    fn receive(&mut self, mut take: impl FnMut(Arrived<'_>)) -> Result<bool, LinkError> {
        match self {
            Self::Packets(medium) => medium.receive(|received| take(Arrived::Packets(received))),
            Self::Nic { inlet, .. } => {
                inlet.receive(|arrival| take(Arrived::Nic(arrival))).map_err(|error| link_error(&error))
            }
        }
    }

    fn transmit(&mut self, mut write: impl FnMut(&mut [u8], Batch) -> Option<Sent>) -> Result<bool, LinkError> {
        match self {
            Self::Packets(medium) => medium.transmit(write),
            // The NIC sends by itself; its timers run.
            Self::Nic { .. } => Ok(write(&mut [], 0.into()).is_some()),
        }
    }

    fn flush(&mut self) -> Result<(), LinkError> {
        match self {
            Self::Packets(medium) => medium.flush(),
            // Nothing is kept.
            Self::Nic { .. } => Ok(()),
        }
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Packets(medium) => medium.poll_fd(),
            Self::Nic { inlet, .. } => inlet.poll_fd(),
        }
    }

    fn arm(&mut self) {
        match self {
            Self::Packets(medium) => medium.arm(),
            Self::Nic { inlet, .. } => inlet.arm(),
        }
    }

    fn poll_gone(&mut self) -> Option<IpAddr> {
        match self {
            Self::Packets(medium) => medium.poll_gone(),
            Self::Nic { .. } => None,
        }
    }

    fn next_event(&self) -> Option<std::time::Instant> {
        match self {
            Self::Packets(medium) => medium.next_event(),
            Self::Nic { .. } => None,
        }
    }

    fn spin(&self) -> Duration {
        match self {
            Self::Packets(medium) => medium.spin(),
            Self::Nic { spin, .. } => *spin,
        }
    }

    fn stats(&self) -> nacelle_link::LinkStats {
        match self {
            Self::Packets(medium) => medium.stats(),
            Self::Nic { .. } => nacelle_link::LinkStats::default(),
        }
    }
}
