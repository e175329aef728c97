// SPDX-License-Identifier: Apache-2.0
//! The caller's own address, the device's Ethernet address, and pings.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use nacelle_roce::EndpointConfig;
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
    let mut seed = [0; 32];
    let mut mac = [0; 6];
    getrandom::fill(&mut seed).and_then(|()| getrandom::fill(&mut mac)).expect("the system gives random numbers");
    mac[0] = mac[0] & 0xfc | 0x02; // locally administered, unicast
    let mut config = EndpointConfig::new(MacAddr(mac), Ipv4Addr::UNSPECIFIED, seed);
    config.interface.ip_mtu = mtu;
    config.interface.arp.probes = PROBES;
    config.interface.arp.probe_interval = PROBE_INTERVAL;
    config.interface.arp.retry_interval = RESOLVE_EVERY;
    let tries = patience.as_millis().div_ceil(RESOLVE_EVERY.as_millis()).clamp(1, 255);
    config.interface.arp.tries = tries as u8;
    config
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
                return Err(Error::AddressTaken { ip, owner });
            }
            return Ok(self.act(|state| state.endpoint.interface.set_address(ip, prefix_len, None))?);
        }
        let hosts = u32::MAX.checked_shr(u32::from(peer_prefix_len)).unwrap_or(0);
        for _ in 0..ADDRESS_TRIES {
            let host = fastrand::u32(..) & hosts;
            let ip = Ipv4Addr::from_bits(peer.to_bits() & !hosts | host);
            if host == 0 || host == hosts || ip == peer || taken.contains(&ip) {
                continue;
            }
            if self.owner_of(ip)?.is_none() {
                return Ok(self.act(|state| state.endpoint.interface.set_address(ip, peer_prefix_len, None))?);
            }
        }
        Err(Error::NoFreeAddress { ip: peer })
    }

    fn owner_of(&self, ip: Ipv4Addr) -> Result<Option<MacAddr>, Error> {
        let wake = self.act(|state| {
            state.inbox.addresses.probed = None;
            let now = state.now();
            state.endpoint.interface.probe_address(now, ip);
            state.inbox.addresses.wake.clone()
        })?;
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
        let wake = self.act(|state| {
            state.inbox.addresses.resolved = None;
            let now = state.now();
            state.endpoint.interface.resolve(now, ip);
            state.inbox.addresses.wake.clone()
        })?;
        let deadline = deadline_in(patience.saturating_add(GRACE));
        let answer = self.wait(&wake, deadline, |state| state.inbox.addresses.resolved)?;
        answer.flatten().ok_or(Error::Unreachable { ip, waited: started.elapsed() })
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
            if state.endpoint.interface.ping(now, ip, number, length, patience) {
                return Ok((number, wake));
            }
            state.inbox.close_ping(number);
            Err(Error::invalid(format!("a ping of {length} bytes does not fit a packet, or too many are under way")))
        })??;
        let deadline = deadline_in(patience.saturating_add(GRACE));
        let answer = self.wait(&wake, deadline, |state| state.inbox.ping_outcome(number));
        self.lock().inbox.close_ping(number);
        answer?.flatten().ok_or(Error::Unreachable { ip, waited: started.elapsed() })
    }
}
