// SPDX-License-Identifier: Apache-2.0
//! Configuration of endpoints and connections.

use crate::{Congestion, Network, ProtectionDomain};
use core::{net::Ipv4Addr, time::Duration};
use nacelle_wire::{
    MacAddr, Psn, admission::Token, bth::RnrTimer, cm::PathMtu, extensions::Agreement, roce::LOWER_LEN,
};

/// Configuration of an [`Endpoint`](crate::Endpoint).
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Its Ethernet interface.
    pub interface: InterfaceConfig,
    /// Its transport.
    pub transport: TransportConfig,
}

impl EndpointConfig {
    /// Defaults for an endpoint with this address and seed.
    pub fn new(mac: MacAddr, ip: Ipv4Addr, seed: [u8; 32]) -> Self {
        let interface = InterfaceConfig::new(mac, ip);
        let transport = TransportConfig::new(interface.network(), guid(mac), seed);
        Self { interface, transport }
    }
}

/// Configuration of an [`Interface`](crate::Interface).
#[derive(Clone, Debug)]
pub struct InterfaceConfig {
    /// Ethernet address.
    pub mac: MacAddr,
    /// IPv4 address; 0.0.0.0 until one is set.
    pub ip: Ipv4Addr,
    /// Length of the network prefix of `ip`. Default 24.
    pub prefix_len: u8,
    /// Router for addresses outside the prefix. Default none: such addresses are unreachable.
    pub gateway: Option<Ipv4Addr>,
    /// Longest IP packet that the link carries, in bytes. Default 1500, which gives a path MTU of 1024.
    pub ip_mtu: usize,
    /// Times of address resolution.
    pub arp: ArpConfig,
}

impl InterfaceConfig {
    /// Defaults for an interface with this address.
    pub fn new(mac: MacAddr, ip: Ipv4Addr) -> Self {
        Self { mac, ip, prefix_len: 24, gateway: None, ip_mtu: 1500, arp: ArpConfig::default() }
    }

    /// What it offers a transport.
    pub const fn network(&self) -> Network {
        Network { ip_mtu: self.ip_mtu, overhead: LOWER_LEN }
    }
}

/// Configuration of a [`Transport`](crate::Transport).
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// The network below it. An [`Endpoint`](crate::Endpoint) sets it from its interface.
    pub network: Network,
    /// GUID of the channel adapter, by which connection management names it (IBTA 12.6.5).
    pub guid: u64,
    /// Seed of everything random: keys, queue pair numbers, PSNs, identifiers. Peers must not be able to guess it.
    pub seed: [u8; 32],
    /// Most connections at a time, up to 4096. Default 256.
    pub max_connections: usize,
    /// Limits on what peers may use. Default none.
    pub accept: AcceptLimits,
    /// Most registered regions at a time. Default 65536.
    pub max_regions: usize,
    /// Congestion control. Default off.
    pub congestion: Congestion,
}

impl TransportConfig {
    /// Defaults for a transport over this network, with this GUID and seed.
    pub fn new(network: Network, guid: u64, seed: [u8; 32]) -> Self {
        Self {
            network,
            guid,
            seed,
            max_connections: 256,
            accept: AcceptLimits::default(),
            max_regions: 65536,
            congestion: Congestion::default(),
        }
    }
}

/// A channel adapter's GUID from its Ethernet address (EUI-64, as Linux makes it).
const fn guid(mac: MacAddr) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

/// Limits on the connections that peers open. A request beyond one is rejected with
/// [`RejReason::NO_RESOURCES`](nacelle_wire::cm::RejReason::NO_RESOURCES). 0 is no limit.
///
/// A connection is half open from its request until the peer's RTU or first packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptLimits {
    /// Connections that one peer, by its address, has opened.
    pub per_peer: usize,
    /// Half-open connections of all peers together.
    pub half_open: usize,
    /// Half-open connections of one peer; 0: as many as `per_peer`, which counts them too.
    pub half_open_per_peer: usize,
}

impl AcceptLimits {
    /// For a device with `connections`, of which one peer may have `per_peer`, half open or not, and half may be half open.
    #[must_use]
    pub fn for_device(connections: usize, per_peer: usize) -> Self {
        Self { per_peer, half_open: (connections / 2).max(1), half_open_per_peer: 0 }
    }
}

/// Times of address resolution and address probing.
#[derive(Clone, Copy, Debug)]
pub struct ArpConfig {
    /// Lifetime of a cache entry. Default 60 s.
    pub lifetime: Duration,
    /// Time before a request is repeated. Default 1 s.
    pub retry_interval: Duration,
    /// Requests before the address counts as unreachable. Default 5.
    pub tries: u8,
    /// Probes before an address counts as free (RFC 5227: 3). Default 3.
    pub probes: u8,
    /// Time between probes and after the last one. Default 100 ms, suited to a local wire; RFC 5227 has 1 to 2 s.
    pub probe_interval: Duration,
}

impl Default for ArpConfig {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(60),
            retry_interval: Duration::from_secs(1),
            tries: 5,
            probes: 3,
            probe_interval: Duration::from_millis(100),
        }
    }
}

/// How a connection is set up and behaves; for [`connect`](crate::Endpoint::connect) and
/// [`accept`](crate::Transport::accept) alike.
///
/// All waiting is bounded by these times. A simulated device may be thousands of times slower than a real one:
/// stretch them all with [`scaled`](Self::scaled).
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Time before a CM message is sent again. Default 1 s. The accepting side uses the timeout of the REQ,
    /// 17 s at most.
    pub cm_timeout: Duration,
    /// How often a CM message is sent again, up to 15. Default 7. The accepting side uses the smaller of this and what
    /// the REQ requests.
    pub cm_retries: u8,
    /// Time before unacknowledged packets are sent again the first time; doubles with each retry. Default 500 ms.
    pub ack_timeout: Duration,
    /// Bound of the doubling. Default 4 s.
    pub max_ack_timeout: Duration,
    /// Retries without progress before the connection fails, up to 7. Default 7. The accepting side uses the smaller
    /// of this and the value in the REQ.
    pub retry_count: u8,
    /// Retries on receiver-not-ready before the connection fails, up to 7, where 7 is without limit. Default 6. The
    /// smaller of this and the peer's value is used.
    pub rnr_retry: u8,
    /// RNR timer: time that a peer waits after an RNR NAK of this side. Default code 12, 0.64 ms.
    pub rnr_timer: RnrTimer,
    /// Largest path MTU. Default: the largest that fits the link.
    pub path_mtu: Option<PathMtu>,
    /// Most packets in flight. Default 128.
    pub window: u32,
    /// Most work requests in the send queue. Default 1024.
    pub send_depth: usize,
    /// Most receives posted. Default 1024.
    pub recv_depth: usize,
    /// Protection domain of the connection. Default the one that is always there.
    pub domain: ProtectionDomain,
    /// Time without a packet of the peer after which a zero-length WRITE checks that it is alive. Default none.
    pub keepalive: Option<Duration>,
    /// PSN at which the peer begins to send. Default random.
    pub starting_psn: Option<Psn>,
    /// READs and atomics that this side can serve at a time. The smaller of this and the peer's value is used.
    /// Default 16.
    pub responder_resources: u8,
    /// READs and atomics that this side may have outstanding. The smaller of this and the peer's limit is used.
    /// Default 16.
    pub initiator_depth: u8,
    /// Send only lost packets again, if the peer can as well. Offered in the last 8 bytes of the private data of REQ
    /// and REP, so only if `private_data` leaves them free. Default true.
    pub selective_repeat: bool,
    /// Let the acknowledgement of a message that consumes a receive follow the application's answer to it, if the peer does as
    /// well: for applications that confirm by their answers ([`Transport::confirm`](crate::Transport::confirm)). Offered in the
    /// same place. Default false.
    pub late_acknowledgement: bool,
    /// What the application offers, or takes of what the peer's application offers, in the same record; the bits of the
    /// transport's own extensions are without effect here. Default nothing.
    pub agreement: Agreement,
    /// What the peer is to admit this side by. Sent in the last 16 bytes of the request's private data before the record, so only if
    /// `private_data` leaves them free: else the request fails. Default none.
    pub token: Option<Token>,
    /// For the peer's application: up to 56 bytes with a request (REQ), 196 with an answer (REP).
    pub private_data: Vec<u8>,
    /// For the peer's application, from the connecting side when the connection is ready (RTU): up to 224 bytes.
    pub rtu_data: Vec<u8>,
    /// Private data of the DREP for the peer's application: up to 224 bytes.
    pub drep_data: Vec<u8>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            cm_timeout: Duration::from_secs(1),
            cm_retries: 7,
            ack_timeout: Duration::from_millis(500),
            max_ack_timeout: Duration::from_secs(4),
            retry_count: 7,
            rnr_retry: 6,
            rnr_timer: RnrTimer::new(12),
            path_mtu: None,
            window: 128,
            send_depth: 1024,
            recv_depth: 1024,
            domain: ProtectionDomain::DEFAULT,
            keepalive: None,
            starting_psn: None,
            responder_resources: 16,
            initiator_depth: 16,
            selective_repeat: true,
            late_acknowledgement: false,
            agreement: Agreement::default(),
            token: None,
            private_data: Vec::new(),
            rtu_data: Vec::new(),
            drep_data: Vec::new(),
        }
    }
}

impl ConnectOptions {
    /// The same with every time multiplied by `factor`.
    #[must_use]
    pub fn scaled(mut self, factor: u32) -> Self {
        for time in [&mut self.cm_timeout, &mut self.ack_timeout, &mut self.max_ack_timeout] {
            *time = time.saturating_mul(factor);
        }
        self.keepalive = self.keepalive.map(|t| t.saturating_mul(factor));
        self
    }

    /// How long after the last packet of the peer a connection without work fails at the latest, if the peer is dead or
    /// cannot be reached: the keep-alive, and all retries of its packet. `None` without a keep-alive: then it never does.
    #[must_use]
    pub fn dead_after(&self) -> Option<Duration> {
        let timeout = |retries: u8| self.ack_timeout.saturating_mul(1 << retries).min(self.max_ack_timeout);
        let retries = (0..=self.retry_count.min(7)).map(timeout);
        self.keepalive.map(|idle| retries.fold(idle, Duration::saturating_add))
    }
}
