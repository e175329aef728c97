// SPDX-License-Identifier: Apache-2.0
//! The small part of an IPv4 host that every party on a wire needs.
//!
//! A station answers ARP requests and pings for its address, remembers who asked, and finds the MAC address of others. It
//! is a state machine: frames go in and come out, and the blocking helpers at the end drive it over a [`Link`].

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use nacelle_wire::MacAddr;
use nacelle_wire::arp::{ArpPacket, Operation};
use nacelle_wire::icmp::{EchoPacket, Kind};
use nacelle_wire::ipv4::{Ipv4Header, PROTOCOL_ICMP};

use crate::{Link, LinkError, MAX_FRAME};

/// Addresses remembered at most.
const MAX_NEIGHBOURS: usize = 256;
/// How long an address is believed without news (Linux: `base_reachable_time`).
const BELIEVED_FOR: Duration = Duration::from_secs(30);
/// A question is asked again after this time, which doubles each time up to one second.
const FIRST_RETRY: Duration = Duration::from_millis(100);
/// How often and how long a new address is probed for. RFC 5227 waits seconds for slow switches; a wire is faster.
const PROBES: u32 = 3;
const PROBE_WAIT: Duration = Duration::from_millis(40);

/// Who a party is on the network.
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
    /// The subnet's mask.
    #[must_use]
    pub fn mask(&self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.prefix_len.min(32))).unwrap_or(0)
    }

    /// Whom to ask for, to reach `ip`: itself in this subnet, else the gateway if there is one.
    #[must_use]
    pub fn next_hop(&self, ip: Ipv4Addr) -> Ipv4Addr {
        let near = (ip.to_bits() ^ self.ip.to_bits()) & self.mask() == 0;
        self.gateway.filter(|_| !near).unwrap_or(ip)
    }
}

/// What a station makes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// It was for the station, and nothing is to be sent.
    Done,
    /// It was for the station, which answers with so many bytes at the start of the output buffer.
    Answer(usize),
    /// Another party uses this station's address.
    Conflict(MacAddr),
    /// A ping came back.
    Echo(EchoPacket<'a>),
    /// It is for this station, but for others in it.
    Other,
    /// It is for somebody else.
    NotMine,
}

/// One IPv4 address on a link.
#[derive(Debug)]
pub struct Station {
    identity: Identity,
    neighbours: HashMap<Ipv4Addr, (MacAddr, Instant)>,
}

impl Station {
    /// A station that knows nobody yet.
    #[must_use]
    pub fn new(identity: Identity) -> Self {
        Self { identity, neighbours: HashMap::new() }
    }

    /// Who it is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The MAC address that reaches `ip`, if it is known.
    #[must_use]
    pub fn lookup(&self, now: Instant, ip: Ipv4Addr) -> Option<MacAddr> {
        let (mac, heard) = self.neighbours.get(&self.identity.next_hop(ip))?;
        (now.saturating_duration_since(*heard) < BELIEVED_FOR).then_some(*mac)
    }

    /// Writes the question for the MAC address that reaches `ip` into `out`, which must have 60 bytes. Returns its length.
    pub fn ask(&self, ip: Ipv4Addr, out: &mut [u8]) -> usize {
        let Identity { mac, ip: own, .. } = self.identity;
        ArpPacket::request(mac, own, self.identity.next_hop(ip)).write(out).unwrap_or(0)
    }

    /// Takes one frame. `out` has room for the answer: [`MAX_FRAME`] bytes are enough for any.
    pub fn handle<'a>(&mut self, now: Instant, frame: &'a [u8], out: &mut [u8]) -> Verdict<'a> {
        let me = self.identity;
        let Some(dst) = frame.first_chunk::<6>().map(|bytes| MacAddr(*bytes)) else { return Verdict::NotMine };
        if dst != me.mac && !dst.is_multicast() {
            return Verdict::NotMine;
        }
        if let Ok(arp) = ArpPacket::parse(frame) {
            return self.handle_arp(now, &arp, out);
        }
        match EchoPacket::parse(frame) {
            Ok(echo) if dst != me.mac || echo.ip.dst() != me.ip => Verdict::NotMine,
            Ok(echo) if echo.kind == Kind::Reply => Verdict::Echo(echo),
            Ok(echo) => {
                let ip = Ipv4Header::new(me.ip, echo.ip.src(), PROTOCOL_ICMP);
                let reply = EchoPacket { dst: echo.src, src: me.mac, ip, kind: Kind::Reply, ..echo };
                reply.write(out).map_or(Verdict::Done, Verdict::Answer)
            }
            Err(_) if dst == me.mac => Verdict::Other,
            Err(_) => Verdict::NotMine,
        }
    }

    fn handle_arp<'a>(&mut self, now: Instant, arp: &ArpPacket, out: &mut [u8]) -> Verdict<'a> {
        let me = self.identity;
        if arp.sender_mac == me.mac {
            return Verdict::NotMine;
        }
        if arp.sender_ip == me.ip {
            return Verdict::Conflict(arp.sender_mac);
        }
        // As RFC 826 says: news of known ones is always believed, strangers are remembered only if they want us.
        let wants_us = arp.target_ip == me.ip;
        let known = self.neighbours.contains_key(&arp.sender_ip);
        if !arp.sender_ip.is_unspecified() && (known || (wants_us && self.neighbours.len() < MAX_NEIGHBOURS)) {
            self.neighbours.insert(arp.sender_ip, (arp.sender_mac, now));
        } else if wants_us {
            self.neighbours.retain(|_, (_, heard)| now.saturating_duration_since(*heard) < BELIEVED_FOR);
        }
        if wants_us && arp.operation == Operation::Request {
            return arp.reply(me.mac).write(out).map_or(Verdict::Done, Verdict::Answer);
        }
        Verdict::Done
    }

    /// Finds the MAC address that reaches `ip`; asks again and again until `deadline`. Frames for others in this station
    /// are dropped meanwhile.
    ///
    /// # Errors
    /// If the link is broken.
    pub fn resolve(&mut self, link: &mut impl Link, ip: Ipv4Addr, deadline: Instant) -> Result<Option<MacAddr>, LinkError> {
        let mut question = [0; 60];
        let length = self.ask(ip, &mut question);
        let mut retry = FIRST_RETRY;
        loop {
            let now = Instant::now();
            if let Some(mac) = self.lookup(now, ip) {
                return Ok(Some(mac));
            }
            if now >= deadline {
                return Ok(None);
            }
            link.send(&question[..length])?;
            let until = (now + retry).min(deadline);
            self.listen(link, until, |station, _| station.lookup(Instant::now(), ip).is_some())?;
            retry = (retry * 2).min(Duration::from_secs(1));
        }
    }

    /// Sends one ping to `ip` and waits for its answer until `deadline`. Returns the time it took. `mac` reaches `ip`.
    ///
    /// # Errors
    /// If the link is broken.
    pub fn ping(
        &mut self,
        link: &mut impl Link,
        (ip, mac): (Ipv4Addr, MacAddr),
        (identifier, sequence): (u16, u16),
        payload: &[u8],
        deadline: Instant,
    ) -> Result<Option<Duration>, LinkError> {
        let me = self.identity;
        let header = Ipv4Header::new(me.ip, ip, PROTOCOL_ICMP);
        let echo = EchoPacket { dst: mac, src: me.mac, ip: header, kind: Kind::Request, identifier, sequence, payload };
        let mut frame = vec![0; MAX_FRAME];
        let Ok(length) = echo.write(&mut frame) else { return Err(LinkError::FrameLength { length: payload.len() }) };
        let sent = Instant::now();
        link.send(&frame[..length])?;
        let answered = self.listen(link, deadline, |_, verdict| {
            matches!(verdict, Verdict::Echo(answer) if answer.ip.src() == ip
                && (answer.identifier, answer.sequence, answer.payload) == (identifier, sequence, payload))
        })?;
        Ok(answered.then(|| sent.elapsed()))
    }

    /// Takes frames, and answers them, until `done` says so or `deadline` has passed. Returns whether it was done.
    fn listen(
        &mut self,
        link: &mut impl Link,
        deadline: Instant,
        mut done: impl FnMut(&Self, Verdict<'_>) -> bool,
    ) -> Result<bool, LinkError> {
        let (mut frame, mut out) = (vec![0; MAX_FRAME], vec![0; MAX_FRAME]);
        while let Some(length) = link.recv(&mut frame, deadline)? {
            let verdict = self.handle(Instant::now(), &frame[..length], &mut out);
            if let Verdict::Answer(length) = verdict {
                link.send(&out[..length])?;
            }
            if done(self, verdict) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Asks whether `ip` is taken, as RFC 5227 does before an address is used: by whom, or `None` if nobody defends it.
///
/// # Errors
/// If the link is broken.
pub fn probe(link: &mut impl Link, mac: MacAddr, ip: Ipv4Addr) -> Result<Option<MacAddr>, LinkError> {
    let mut question = [0; 60];
    let length = ArpPacket::request(mac, Ipv4Addr::UNSPECIFIED, ip).write(&mut question).unwrap_or(0);
    let mut frame = vec![0; MAX_FRAME];
    for _ in 0..PROBES {
        link.send(&question[..length])?;
        let until = Instant::now() + PROBE_WAIT;
        while let Some(length) = link.recv(&mut frame, until)? {
            let Ok(arp) = ArpPacket::parse(&frame[..length]) else { continue };
            // Either its owner, or another who probes for it at the same time.
            let owner = arp.sender_ip == ip;
            let rival = arp.sender_ip.is_unspecified() && arp.target_ip == ip;
            if arp.sender_mac != mac && (owner || rival) {
                return Ok(Some(arp.sender_mac));
            }
        }
    }
    Ok(None)
}

/// Tells everybody that `ip` is reached by `mac` (RFC 5227, section 2.3), so that old beliefs end.
///
/// # Errors
/// If the link is broken.
pub fn announce(link: &mut impl Link, mac: MacAddr, ip: Ipv4Addr) -> Result<(), LinkError> {
    let mut frame = [0; 60];
    let length = ArpPacket::request(mac, ip, ip).write(&mut frame).unwrap_or(0);
    link.send(&frame[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(number: u8) -> Identity {
        Identity {
            mac: MacAddr([2, 0, 0, 0, 0, number]),
            ip: Ipv4Addr::new(10, 77, 0, number),
            prefix_len: 16,
            gateway: Some(Ipv4Addr::new(10, 77, 0, 254)),
        }
    }

    /// What `to` makes of `frame`, and the frame that it answers with.
    fn give(to: &mut Station, frame: &[u8]) -> (String, Vec<u8>) {
        let mut out = vec![0; MAX_FRAME];
        let verdict = to.handle(Instant::now(), frame, &mut out);
        let answer = if let Verdict::Answer(length) = verdict { out[..length].to_vec() } else { Vec::new() };
        (format!("{verdict:?}"), answer)
    }

    #[test]
    fn two_stations_find_each_other_by_one_question() {
        let (mut a, mut b) = (Station::new(identity(1)), Station::new(identity(2)));
        let now = Instant::now();
        assert_eq!(a.lookup(now, identity(2).ip), None);
        let mut question = [0; 60];
        let length = a.ask(identity(2).ip, &mut question);
        let (_, answer) = give(&mut b, &question[..length]);
        give(&mut a, &answer);
        assert_eq!(a.lookup(Instant::now(), identity(2).ip), Some(identity(2).mac));
        assert_eq!(b.lookup(Instant::now(), identity(1).ip), Some(identity(1).mac));
        let later = Instant::now() + BELIEVED_FOR * 2;
        assert_eq!(a.lookup(later, identity(2).ip), None, "not believed for ever");
    }

    #[test]
    fn other_subnets_are_reached_by_the_gateway() {
        let me = identity(1);
        assert_eq!(me.next_hop(Ipv4Addr::new(10, 77, 255, 9)), Ipv4Addr::new(10, 77, 255, 9));
        assert_eq!(me.next_hop(Ipv4Addr::new(10, 78, 0, 9)), Ipv4Addr::new(10, 77, 0, 254));
        let alone = Identity { gateway: None, prefix_len: 0, ..me };
        assert_eq!(alone.next_hop(Ipv4Addr::new(1, 1, 1, 1)), Ipv4Addr::new(1, 1, 1, 1));
    }

    #[test]
    fn a_ping_comes_back_as_it_was_and_only_to_its_address() {
        let mut b = Station::new(identity(2));
        let echo = |dst: Identity| {
            let mut frame = vec![0; 200];
            let ip = Ipv4Header::new(identity(1).ip, dst.ip, PROTOCOL_ICMP);
            let packet = EchoPacket {
                dst: identity(2).mac,
                src: identity(1).mac,
                ip,
                kind: Kind::Request,
                identifier: 7,
                sequence: 8,
                payload: b"0123456789",
            };
            let length = packet.write(&mut frame).unwrap();
            frame.truncate(length);
            frame
        };
        let (_, answer) = give(&mut b, &echo(identity(2)));
        let answer = EchoPacket::parse(&answer).unwrap();
        assert_eq!((answer.kind, answer.identifier, answer.sequence), (Kind::Reply, 7, 8));
        assert_eq!((answer.payload, answer.ip.dst()), (&b"0123456789"[..], identity(1).ip));
        assert_eq!(give(&mut b, &echo(identity(3))).0, "NotMine");
        let mut damaged = echo(identity(2));
        damaged[45] ^= 1;
        assert_eq!(give(&mut b, &damaged).0, "Other", "no answer to what fails its checksum");
    }

    #[test]
    fn strangers_do_not_fill_the_memory_and_a_double_is_noticed() {
        let mut me = Station::new(identity(1));
        let mut frame = [0; 60];
        for number in 0..2000u32 {
            let mac = MacAddr([2, 1, 0, 0, (number >> 8) as u8, number as u8]);
            let ip = Ipv4Addr::from_bits(0x0a4e_0000 + number);
            let length = ArpPacket::request(mac, ip, identity(1).ip).write(&mut frame).unwrap();
            assert!(!give(&mut me, &frame[..length]).1.is_empty(), "everybody gets an answer");
        }
        assert!(me.neighbours.len() <= MAX_NEIGHBOURS);
        let double = ArpPacket::request(MacAddr([2, 9, 9, 9, 9, 9]), identity(1).ip, identity(1).ip);
        let length = double.write(&mut frame).unwrap();
        assert!(give(&mut me, &frame[..length]).0.starts_with("Conflict"));
    }
}
