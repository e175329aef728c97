// SPDX-License-Identifier: Apache-2.0
//! The transport: segments and time in, segments and events out.

mod gone;
mod memory;
mod receive;
mod send;
mod timers;
mod work;

pub use work::SendMark;

use crate::{
    AcceptLimits, Congestion, ConnId, ConnInfo, ConnStats, Event, Instant, Network, TransportConfig, TransportCounters,
    cm::CmQueue,
    conn::{Core, Table},
    region::RegionTable,
};
use core::net::IpAddr;
use nacelle_wire::{Psn, cm::PathMtu};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use std::collections::{HashSet, VecDeque};

/// The RoCEv2 transport: any number of reliable connections, and connection management, over UDP datagrams of either IP
/// version.
///
/// It never blocks, has no clock and touches no socket, and depends on the network only by [`Network`] and [`Path`](crate::Path). The
/// caller's loop:
///
/// 1. give received segments to [`handle`](Self::handle) or [`handle_all`](Self::handle_all);
/// 2. answer [`poll_path_request`](Self::poll_path_request) by [`path_resolved`](Self::path_resolved), now or later;
/// 3. call [`poll_transmit`](Self::poll_transmit) until it returns `None`, and send what it writes;
/// 4. take what happened from [`poll_event`](Self::poll_event);
/// 5. sleep until a segment arrives or [`next_deadline`](Self::next_deadline) comes.
///
/// [`Endpoint`](crate::Endpoint) does this over Ethernet and IPv4.
#[derive(Debug)]
pub struct Transport {
    pub(crate) conns: Table,
    pub(crate) core: Core,
    pub(crate) network: Network,
    /// GUID of this channel adapter.
    pub(crate) guid: u64,
    pub(crate) rng: ChaCha8Rng,
    pub(crate) listening: HashSet<u16>,
    pub(crate) accept: AcceptLimits,
    congestion: Congestion,
    /// Next PSN of the general service interface.
    pub(crate) gsi_psn: Psn,
    pub(crate) cm_queue: CmQueue,
    /// Peers of connections that wait for a path.
    pub(crate) path_requests: VecDeque<IpAddr>,
    /// Connections whose responder has an ACK, NAK or atomic response to send.
    acknowledging: VecDeque<ConnId>,
    /// Connections with a request or READ response to send; served in turn.
    sending: VecDeque<ConnId>,
    /// Connections that were watched, and something has happened to them.
    moved: VecDeque<ConnId>,
    /// Connections whose timers have expired; empty between calls.
    due: Vec<ConnId>,
}

impl Transport {
    /// A transport without connections.
    pub fn new(config: TransportConfig) -> Self {
        let mut rng = ChaCha8Rng::from_seed(config.seed);
        Self {
            conns: Table::new(config.max_connections, rng.next_u32()),
            core: Core {
                regions: RegionTable::new(config.max_regions),
                counters: TransportCounters::default(),
                events: VecDeque::new(),
            },
            network: config.network,
            guid: config.guid,
            rng,
            listening: HashSet::new(),
            accept: config.accept,
            congestion: config.congestion,
            gsi_psn: Psn::default(),
            cm_queue: CmQueue::default(),
            path_requests: VecDeque::new(),
            acknowledging: VecDeque::new(),
            sending: VecDeque::new(),
            moved: VecDeque::new(),
            due: Vec::new(),
        }
    }

    /// The largest path MTU that the network carries.
    pub(crate) fn max_path_mtu(&self) -> Option<PathMtu> {
        PathMtu::for_ip_mtu(self.network.ip_mtu)
    }

    /// A peer to which a connection needs a path. Answer by [`Self::path_resolved`].
    pub fn poll_path_request(&mut self) -> Option<IpAddr> {
        self.path_requests.pop_front()
    }

    /// The oldest event not taken yet.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.core.events.pop_front()
    }

    /// Has [`Self::poll_watched`] give this connection, once, when anything has happened to it: so an application with many need not
    /// look at each after every segment.
    pub fn watch(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id) {
            conn.is_watched = true;
        }
    }

    /// A connection to which something has happened since [`Self::watch`]: a packet has left or arrived, a timer has expired, or the
    /// application has changed it. It may have ended meanwhile.
    pub fn poll_watched(&mut self) -> Option<ConnId> {
        self.moved.pop_front()
    }

    /// When to call [`Self::poll_transmit`] again at the latest, if no segment arrives before. `None`: no timer runs.
    ///
    /// It may be earlier than necessary, never later.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.conns.next_deadline()
    }

    /// Bytes that the longest segment of this transport takes.
    pub fn segment_len(&self) -> usize {
        self.network.segment_len()
    }

    /// State of a connection or queue pair; `None` once it is gone.
    pub fn connection(&self, id: ConnId) -> Option<ConnInfo> {
        self.conns.get(id).map(|c| c.info())
    }

    /// The statistics of a connection, without a copy; `None` once it is gone.
    pub fn stats(&self, id: ConnId) -> Option<&ConnStats> {
        self.conns.get(id).map(|c| &c.stats)
    }

    /// All connections and queue pairs.
    pub fn connections(&self) -> impl Iterator<Item = (ConnId, ConnInfo)> {
        self.conns.iter().map(|c| (c.id, c.info()))
    }

    /// The transport's counters, with those of all its connections, past and present, added up.
    pub fn counters(&self) -> TransportCounters {
        let mut total = self.core.counters;
        self.conns.add_counters(&mut total);
        total
    }

    /// Changes congestion control; in use from the next event of each connection on.
    pub fn set_congestion(&mut self, congestion: Congestion) {
        self.congestion = congestion;
    }

    /// A random number.
    pub(crate) fn random(&mut self) -> u32 {
        self.rng.next_u32()
    }
}
