// SPDX-License-Identifier: Apache-2.0
//! An endpoint on a link: carries frames between the two and gives the endpoint its time.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use nacelle_link::{Link, LinkError, MAX_FRAME};
use nacelle_roce::{Endpoint, EndpointConfig, Event};
use nacelle_wire::MacAddr;

use crate::Error;

/// Probes for a new address, and the time between them. RFC 5227 waits seconds for slow networks; a wire is not slow.
const PROBES: u8 = 3;
const PROBE_INTERVAL: Duration = Duration::from_millis(40);
/// An address is asked for this often.
const RESOLVE_EVERY: Duration = Duration::from_millis(250);
/// Addresses tried before a subnet counts as full.
const ADDRESS_TRIES: u32 = 16;

/// An endpoint on a link.
pub(crate) struct Port {
    endpoint: Endpoint,
    link: Box<dyn Link>,
    epoch: Instant,
    rx: Vec<u8>,
    tx: Vec<u8>,
    /// An event that was seen but not taken.
    event: Option<Event>,
}

impl Port {
    /// An endpoint without an address, under a random MAC address of its own. Whatever it asks for is asked for during
    /// `patience`. `mtu` is the longest IP packet, in bytes.
    pub(crate) fn new(link: Box<dyn Link>, mtu: usize, patience: Duration) -> Self {
        let mut seed = [0; 32];
        let mut mac = [0; 6];
        getrandom::fill(&mut seed).and_then(|()| getrandom::fill(&mut mac)).expect("the system gives random numbers");
        mac[0] = mac[0] & 0xfc | 0x02; // locally administered, unicast
        let mut config = EndpointConfig::new(MacAddr(mac), Ipv4Addr::UNSPECIFIED, seed);
        config.ip_mtu = mtu;
        config.arp.probes = PROBES;
        config.arp.probe_interval = PROBE_INTERVAL;
        config.arp.retry_interval = RESOLVE_EVERY;
        let tries = patience.as_millis().div_ceil(RESOLVE_EVERY.as_millis()).clamp(1, 255);
        config.arp.tries = tries as u8;
        let endpoint = Endpoint::new(config);
        let tx = vec![0; endpoint.frame_len()];
        Self { endpoint, link, epoch: Instant::now(), rx: vec![0; MAX_FRAME], tx, event: None }
    }

    /// The endpoint.
    pub(crate) fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// The endpoint's time.
    pub(crate) fn now(&self) -> nacelle_roce::Instant {
        nacelle_roce::Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    /// Sends what is to be sent.
    ///
    /// # Errors
    /// If the link is broken.
    pub(crate) fn flush(&mut self) -> Result<(), LinkError> {
        while let Some(length) = self.endpoint.poll_transmit(self.now(), &mut self.tx) {
            self.link.send(&self.tx[..length])?;
        }
        Ok(())
    }

    /// Sends what is to be sent, takes one frame if one comes until `deadline`, and sends what that causes. Returns early if
    /// an event waits.
    ///
    /// # Errors
    /// If the link is broken.
    pub(crate) fn turn(&mut self, deadline: Instant) -> Result<(), LinkError> {
        self.flush()?;
        self.event = self.event.take().or_else(|| self.endpoint.poll_event());
        if self.event.is_some() {
            return Ok(());
        }
        let timer = self.endpoint.next_deadline().map(|at| self.epoch + Duration::from_nanos(at.as_nanos()));
        let until = timer.map_or(deadline, |at| at.min(deadline));
        if let Some(length) = self.link.recv(&mut self.rx, until)? {
            // What is wrong with a frame, the endpoint's counters say.
            let _ = self.endpoint.handle(self.now(), &self.rx[..length]);
        }
        self.flush()
    }

    /// What has happened and was not taken yet, oldest first.
    pub(crate) fn event(&mut self) -> Option<Event> {
        self.event.take().or_else(|| self.endpoint.poll_event())
    }

    /// Waits for an event that `wanted` makes something of; others are dropped. `None` if none came within `patience`.
    ///
    /// # Errors
    /// If the link is broken.
    pub(crate) fn wait_for<T>(
        &mut self,
        patience: Duration,
        mut wanted: impl FnMut(&Event) -> Option<T>,
    ) -> Result<Option<T>, LinkError> {
        let deadline = Instant::now() + patience;
        loop {
            while let Some(event) = self.event() {
                if let Some(found) = wanted(&event) {
                    return Ok(Some(found));
                }
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            self.turn(deadline)?;
        }
    }

    /// Takes the address that is asked for, or a free one beside `peer`, after asking whether somebody has it (RFC 5227).
    /// Those in `taken` are not tried.
    ///
    /// # Errors
    /// [`Error::AddressTaken`] or [`Error::NoFreeAddress`].
    pub(crate) fn take_address(
        &mut self,
        wanted: Option<(Ipv4Addr, u8)>,
        peer: Ipv4Addr,
        peer_prefix_len: u8,
        taken: &[Ipv4Addr],
    ) -> Result<(), Error> {
        if let Some((ip, prefix_len)) = wanted {
            if let Some(owner) = self.owner_of(ip)? {
                return Err(Error::AddressTaken { ip, owner });
            }
            self.endpoint.set_address(ip, prefix_len, None);
            return Ok(());
        }
        let hosts = u32::MAX.checked_shr(u32::from(peer_prefix_len)).unwrap_or(0);
        for _ in 0..ADDRESS_TRIES {
            let host = fastrand::u32(..) & hosts;
            let ip = Ipv4Addr::from_bits(peer.to_bits() & !hosts | host);
            if host == 0 || host == hosts || ip == peer || taken.contains(&ip) {
                continue;
            }
            if self.owner_of(ip)?.is_none() {
                self.endpoint.set_address(ip, peer_prefix_len, None);
                return Ok(());
            }
        }
        Err(Error::NoFreeAddress { ip: peer })
    }

    fn owner_of(&mut self, ip: Ipv4Addr) -> Result<Option<MacAddr>, Error> {
        self.endpoint.probe_address(self.now(), ip);
        let patience = PROBE_INTERVAL * (u32::from(PROBES) + 2);
        let owner = self.wait_for(patience, |event| match event {
            Event::AddressProbed { ip: probed, owner } if *probed == ip => Some(*owner),
            _ => None,
        })?;
        Ok(owner.flatten())
    }

    /// Finds the MAC address on the way to `ip`.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if nobody answers within `patience`.
    pub(crate) fn resolve(&mut self, ip: Ipv4Addr, patience: Duration) -> Result<MacAddr, Error> {
        let started = Instant::now();
        self.endpoint.resolve(self.now(), ip);
        let answer = self.wait_for(patience + RESOLVE_EVERY, |event| match event {
            Event::Resolved { mac, .. } => Some(Some(*mac)),
            Event::Unreachable { .. } => Some(None),
            _ => None,
        })?;
        answer.flatten().ok_or(Error::Unreachable { ip, waited: started.elapsed() })
    }

    /// Sends one ICMP echo request with `length` bytes of payload. Returns the time that the answer took.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if nobody answers within `patience`; [`Error::InvalidArgument`] if it is too long a ping.
    pub(crate) fn ping(
        &mut self,
        ip: Ipv4Addr,
        sequence: u16,
        length: usize,
        patience: Duration,
    ) -> Result<Duration, Error> {
        let started = Instant::now();
        if !self.endpoint.ping(self.now(), ip, sequence, length, patience) {
            return Err(Error::invalid(format!("a ping of {length} bytes does not fit a packet")));
        }
        let answer = self.wait_for(patience + RESOLVE_EVERY, |event| match event {
            Event::EchoReply { sequence: answered, rtt, .. } if *answered == sequence => Some(Some(*rtt)),
            Event::EchoTimeout { sequence: lost, .. } if *lost == sequence => Some(None),
            Event::Unreachable { .. } => Some(None),
            _ => None,
        })?;
        answer.flatten().ok_or(Error::Unreachable { ip, waited: started.elapsed() })
    }
}
