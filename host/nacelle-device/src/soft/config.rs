// SPDX-License-Identifier: Apache-2.0
//! Configuration of the software device.

use std::time::Duration;

use nacelle_roce::{
    AcceptLimits, Congestion, ConnectOptions, Endpoint, EndpointConfig, NetworkLayer, TransportConfig, UdpInterface,
};

use super::windows::Windows;
use crate::Identity;
use crate::kernel::KernelSet;

/// Longest IP packet, in bytes: room for a path MTU of 4096.
const IP_MTU: usize = 4200;
/// Connections, if nothing else is said.
const CONNECTIONS: usize = 256;

/// Configuration of a software device.
#[derive(Debug, Clone)]
pub struct SoftConfig {
    /// Memory for regions, in bytes. Default: 1 GiB.
    pub memory_bytes: u64,
    /// Memory that one caller (an IPv4 address) may have, in bytes; 0 for no limit of its own. Default: 0.
    pub memory_per_caller: u64,
    /// Connections at a time, of all callers together, up to 4096. Default: 256.
    pub connections: usize,
    /// Connections that one caller may have, of all that there are; 0 for no limit of its own. Default: 64.
    pub connections_per_caller: usize,
    /// Contexts that one connection may have, up to 32; 0 for connections without contexts. Default: 8.
    pub contexts: u8,
    /// Kernels that run at a time, at least 1. Default: one for each processor.
    pub workers: usize,
    /// Threads that are started in place of those whose kernels did not return in time. Default: 16.
    pub spare_workers: usize,
    /// Time that a kernel has. When it has passed, the kernel is cancelled, and its caller gets result 2: when the kernel
    /// returns, or after a second. `None` for no limit. Default: 60 s.
    pub kernel_time: Option<Duration>,
    /// The kernels that it offers. Default: [`KernelSet::standard`].
    pub kernels: KernelSet,
    /// The windows that callers find from its start on; more may be opened, here and at [`SoftDevice::windows`](crate::SoftDevice::windows),
    /// while it runs. Devices that are given the same have all of them. Default: none.
    pub windows: Windows,
    /// How connections behave. By default a caller that says nothing for 5 s is asked whether it still lives, and a CM
    /// message is repeated 3 times.
    pub connect: ConnectOptions,
}

impl Default for SoftConfig {
    fn default() -> Self {
        let connect =
            ConnectOptions { keepalive: Some(Duration::from_secs(5)), cm_retries: 3, ..ConnectOptions::default() };
        Self {
            memory_bytes: 1 << 30,
            memory_per_caller: 0,
            connections: CONNECTIONS,
            connections_per_caller: CONNECTIONS / 4,
            contexts: 8,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            spare_workers: 16,
            kernel_time: Some(Duration::from_secs(60)),
            kernels: KernelSet::standard(),
            windows: Windows::new(),
            connect,
        }
    }
}

impl SoftConfig {
    pub(super) fn endpoint(&self, identity: &Identity, random: [u8; 32]) -> Endpoint {
        let mut config = EndpointConfig::new(identity.mac, identity.ip, random);
        config.interface.prefix_len = identity.prefix_len;
        config.interface.gateway = identity.gateway;
        config.interface.ip_mtu = IP_MTU;
        self.limit(&mut config.transport);
        Endpoint::new(config)
    }

    pub(super) fn endpoint_over_udp(&self, interface: UdpInterface, random: [u8; 32]) -> Endpoint<UdpInterface> {
        // A locally administered GUID (EUI-64), as there is no Ethernet address to make one of.
        let guid = u64::from_be_bytes([0x02, random[4], random[5], 0xff, 0xfe, random[6], random[7], random[8]]);
        let mut config = TransportConfig::new(interface.network(), guid, random);
        self.limit(&mut config);
        Endpoint::over_udp(interface, config)
    }

    fn limit(&self, config: &mut TransportConfig) {
        config.max_connections = self.connections;
        config.accept = AcceptLimits::for_device(self.connections, self.connections_per_caller);
        config.congestion = congestion();
    }
}

/// Congestion control, until registers say something else.
pub(super) fn congestion() -> Congestion {
    Congestion { rp_enable: true, np_enable: true, ..Congestion::default() }
}
