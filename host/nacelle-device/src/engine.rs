// SPDX-License-Identifier: Apache-2.0
//! What the host program needs of a device, whatever it is made of.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use nacelle_manage::{DeviceKind, Manage};
use nacelle_roce::{Batch, Datagrams, Transmit, UdpInterface};
use nacelle_wire::MacAddr;
use smallvec::SmallVec;

use crate::{DeviceError, PushError, Stamp};

/// What a device waits for beside its link.
pub type WakeFds<'a> = SmallVec<[BorrowedFd<'a>; 2]>;

/// What a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// What it is made of.
    pub kind: DeviceKind,
    /// Width of the data path, in bits; 0 if it has none.
    pub data_w: u32,
    /// The clock at which cycles are converted to time, in Hz.
    pub clock_hz: u32,
    /// Device memory, in bytes.
    pub memory_bytes: u64,
}

/// The addresses of a device on the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Its MAC address.
    pub mac: MacAddr,
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
    /// Length of its subnet's prefix, in bits.
    pub prefix_len: u8,
    /// Where packets for other subnets go.
    pub gateway: Option<Ipv4Addr>,
}

impl Identity {
    /// The MAC address of the device's network card, unless it shares the device's: that of the device with one bit inverted, locally
    /// administered (docs/reference/network-card.md).
    #[must_use]
    pub fn network_card_mac(&self) -> MacAddr {
        let MacAddr([first, b, c, d, e, f]) = self.mac;
        MacAddr([(first ^ 4) | 2, b, c, d, e, f])
    }
}

/// A device without a network: the caller advances the time, and moves what goes in and comes out: frames ([`FrameEngine`]) or
/// datagrams ([`DatagramEngine`]).
pub trait Engine: Manage {
    /// What it is.
    fn facts(&self) -> Facts;

    /// Does some work, from `now` on: a few milliseconds at most.
    fn run(&mut self, now: Instant);

    /// True if only time or a frame can change it.
    fn idle(&self) -> bool;

    /// Lets `time` pass at once, while idle.
    fn pass(&mut self, time: Duration);

    /// When it must run again though no frame came, at the latest.
    fn wake_at(&self) -> Option<Instant>;

    /// Readable, any of them, when it must run again though no frame came.
    fn wake_fds(&self) -> WakeFds<'_> {
        WakeFds::new()
    }

    /// Ends its connections in order, if it can: their peers are told by DREQs, which it sends from now on.
    fn leave(&mut self) {}

    /// Whether some of them have not ended yet.
    fn is_leaving(&self) -> bool {
        false
    }

    /// The IPv4 address that it has now and the length of its prefix, if it can change by itself; unspecified: it has none.
    fn address(&mut self) -> Option<(Ipv4Addr, u8)> {
        None
    }

    /// Device time, in cycles.
    fn cycles(&self) -> u64;

    /// Everything that it counted, by name.
    ///
    /// # Errors
    /// If the device does not answer.
    fn counters(&mut self) -> Result<BTreeMap<String, u64>, DeviceError>;
}

/// A device with an Ethernet port.
pub trait FrameEngine: Engine {
    /// Gives it its addresses and the seed of its keys, and enables it.
    ///
    /// # Errors
    /// If the device does not take them.
    fn configure(&mut self, identity: &Identity, seed: u32) -> Result<(), DeviceError>;

    /// Gives it a frame.
    ///
    /// # Errors
    /// [`PushError`] if it was not taken.
    fn push(&mut self, frame: &[u8]) -> Result<(), PushError>;

    /// When the oldest pushed frame not yet reported entered, if it has.
    fn rx_stamp(&mut self) -> Option<Stamp>;

    /// Takes the oldest frame that it sent: its length, and when it left.
    fn pull(&mut self, buffer: &mut [u8]) -> Option<(usize, Stamp)>;
}

/// A device behind the IP stack of the system.
pub trait DatagramEngine: Engine {
    /// Gives it its side of a UDP socket and the seed of its keys, and enables it.
    fn configure_udp(&mut self, interface: UdpInterface, seed: u32);

    /// Gives it what a socket has received.
    fn receive(&mut self, now: Instant, datagrams: Datagrams<'_>);

    /// Tells it that a peer is gone for good.
    fn peer_gone(&mut self, peer: IpAddr);

    /// Takes what it sends next, up to `batch` segments, into `buffer`.
    fn transmit(&mut self, now: Instant, buffer: &mut [u8], batch: Batch) -> Option<Transmit>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_card_has_a_locally_administered_address_of_its_own() {
        for (device, card) in [(0x02, 0x06), (0x00, 0x06), (0x06, 0x02), (0x04, 0x02)] {
            let mac = MacAddr([device, 1, 2, 3, 4, 5]);
            let identity = Identity { mac, ip: Ipv4Addr::UNSPECIFIED, prefix_len: 0, gateway: None };
            assert_eq!(identity.network_card_mac(), MacAddr([card, 1, 2, 3, 4, 5]));
        }
    }
}
