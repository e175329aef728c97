// SPDX-License-Identifier: Apache-2.0
//! The caller's own address, the device's Ethernet address, and pings.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use nacelle_link::LinkError;
use nacelle_roce::{EndpointConfig, Interface};
use nacelle_wire::MacAddr;

use crate::Error;
use crate::engine::Engine;
use crate::inbox::deadline_in;

/// Probes for a new address, and the time between them. RFC 5227 waits seconds for slow networks; a wire is not slow.
const PROBES: u8 = 3;
const PROBE_INTERVAL: Duration = Duration::from_millis(40);
/// An address is asked for this often.
const RESOLVE_EVERY: Duration = Duration::from_millis(250);
/// Addresses tried before a subnet counts as full.
const ADDRESS_TRIES: u32 = 16;
/// How late an event may be that the endpoint promises.
const GRACE: Duration = Duration::from_secs(1);

/// An endpoint without an address, with a random MAC address. Its requests time out after `patience`.
/// `mtu` is the longest IP packet, in bytes.
pub(crate) fn config(mtu: usize, patience: Duration) -> EndpointConfig {
    let [mut mac @ .., _, _] = random::<8>();
    mac[0] = mac[0] & 0xfc | 0x02; // locally administered, unicast
    let mut config = EndpointConfig::new(MacAddr(mac), Ipv4Addr::UNSPECIFIED, seed());
    config.interface.ip_mtu = mtu;
    config.interface.arp.probes = PROBES;
    config.interface.arp.probe_interval = PROBE_INTERVAL;
    config.interface.arp.retry_interval = RESOLVE_EVERY;
    let tries = patience.as_millis().div_ceil(RESOLVE_EVERY.as_millis()).clamp(1, 255);
    config.interface.arp.tries = tries as u8;
    config
}

/// The seed of keys and numbers.
pub(crate) fn seed() -> [u8; 32] {
    random()
}

/// A GUID for an endpoint without an Ethernet address: locally administered (EUI-64).
pub(crate) fn guid() -> u64 {
    let [_, _, c, _, _, f, g, h] = random::<8>();
    u64::from_be_bytes([0x02, 0x4e, c, 0xff, 0xfe, f, g, h])
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system gives random numbers");
    bytes
}

impl Engine {
    /// Takes the address that is asked for, or a free one beside `peer`, after probing it (RFC 5227).
    /// Those in `taken` are not tried.
    ///
    /// # Errors
    /// [`Error::AddressTaken`] or [`Error::NoFreeAddress`].
    pub(crate) fn take_address(
        &self,
        wanted: Option<(Ipv4Addr, u8)>,
        peer: Ipv4Addr,
        peer_prefix_len: u8,
        taken: &[Ipv4Addr],
    ) -> Result<(), Error> {
        if let Some((ip, prefix_len)) = wanted {
            if let Some(owner) = self.owner_of(ip)? {
                return Err(Error::AddressTaken { ip: ip.into(), owner });
            }
            return self.set_address(ip, prefix_len);
        }
        let hosts = u32::MAX.checked_shr(u32::from(peer_prefix_len)).unwrap_or(0);
        for _ in 0..ADDRESS_TRIES {
            let host = fastrand::u32(..) & hosts;
            let ip = Ipv4Addr::from_bits(peer.to_bits() & !hosts | host);
            if host == 0 || host == hosts || ip == peer || taken.contains(&ip) {
                continue;
            }
            if self.owner_of(ip)?.is_none() {
                return self.set_address(ip, peer_prefix_len);
            }
        }
        Err(Error::NoFreeAddress { ip: peer.into() })
    }

    fn set_address(&self, ip: Ipv4Addr, prefix_len: u8) -> Result<(), Error> {
        self.on_ethernet(|_, interface| interface.set_address(ip, prefix_len, None))?;
        Ok(())
    }

    /// Changes the Ethernet interface, if this engine has one.
    fn on_ethernet<T>(
        &self,
        change: impl FnOnce(nacelle_roce::Instant, &mut Interface) -> T,
    ) -> Result<Option<T>, LinkError> {
        self.act(|state| {
            let now = state.now();
            state.endpoint.ethernet().map(|interface| change(now, interface))
        })
    }

    fn owner_of(&self, ip: Ipv4Addr) -> Result<Option<MacAddr>, Error> {
        let wake = {
            let mut state = self.lock();
            state.inbox.addresses.probed = None;
            state.inbox.addresses.wake.clone()
        };
        self.on_ethernet(|now, interface| interface.probe_address(now, ip))?;
        let deadline = Instant::now() + PROBE_INTERVAL * u32::from(PROBES) + GRACE;
        let owner = self.wait(&wake, deadline, |state| match state.inbox.addresses.probed {
            Some((probed, owner)) if probed == ip => Some(owner),
            _ => None,
        })?;
        Ok(owner.flatten())
    }

    /// Finds the MAC address on the way to `ip`.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if no host answers within `patience`.
    pub(crate) fn resolve(&self, ip: Ipv4Addr, patience: Duration) -> Result<MacAddr, Error> {
        let started = Instant::now();
        let wake = {
            let mut state = self.lock();
            state.inbox.addresses.resolved = None;
            state.inbox.addresses.wake.clone()
        };
        self.on_ethernet(|now, interface| interface.resolve(now, ip))?;
        let deadline = deadline_in(patience.saturating_add(GRACE));
        let answer = self.wait(&wake, deadline, |state| state.inbox.addresses.resolved)?;
        answer.flatten().ok_or(Error::Unreachable { ip: ip.into(), waited: started.elapsed() })
    }

    /// Sends one ICMP echo request with `length` bytes of payload. Returns the time that the answer took.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if no host answers within `patience`; [`Error::InvalidArgument`] if it is too long a ping.
    pub(crate) fn ping(
        &self,
        ip: Ipv4Addr,
        sequence: u16,
        length: usize,
        patience: Duration,
    ) -> Result<Duration, Error> {
        let started = Instant::now();
        let (number, wake) = self.act(|state| {
            let (number, wake) = state.inbox.open_ping(sequence);
            let now = state.now();
            let interface = state.endpoint.ethernet();
            if interface.is_some_and(|interface| interface.ping(now, ip, number, length, patience)) {
                return Ok((number, wake));
            }
            state.inbox.close_ping(number);
            Err(Error::invalid(format!("a ping of {length} bytes does not fit a packet, or too many are under way")))
        })??;
        let deadline = deadline_in(patience.saturating_add(GRACE));
        let answer = self.wait(&wake, deadline, |state| state.inbox.ping_outcome(number));
        self.lock().inbox.close_ping(number);
        answer?.flatten().ok_or(Error::Unreachable { ip: ip.into(), waited: started.elapsed() })
    }
}
