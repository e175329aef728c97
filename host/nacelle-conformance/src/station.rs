// SPDX-License-Identifier: Apache-2.0
//! One station on the wire, which sends any frame and receives those for its addresses. It can act as several hosts at once: each address
//! has a MAC address of its own, and may stop answering at any time.

use crate::Failure;
use core::net::Ipv4Addr;
use nacelle_link::{Link, MAX_FRAME};
use nacelle_wire::{
    MacAddr, RoceHeaders, RocePacket,
    arp::{ArpPacket, Operation},
    bth::Opcode,
    ethernet::EthernetHeader,
    icmp::{EchoPacket, Kind},
    ipv4::{Ipv4Header, PROTOCOL_ICMP},
    roce::Flow,
};
use std::{
    collections::{HashSet, VecDeque},
    time::{Duration, Instant},
};

/// A packet that came, checked down to its ICRC.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Its headers.
    pub(crate) headers: RoceHeaders,
    /// Its operation.
    pub(crate) opcode: Opcode,
    /// Its payload.
    pub(crate) payload: Vec<u8>,
}

/// Identifier of echo requests.
pub(crate) const ECHO_IDENTIFIER: u16 = 0x4e61;
/// Number of hosts that a station can act as.
pub(crate) const MAX_HOSTS: u16 = 0x7f00;
/// Frames other than RoCE that are kept until they are read.
const PLAIN_FRAMES: usize = 64;

/// The suite's place on the wire.
pub(crate) struct Station {
    link: Box<dyn Link>,
    ip: Ipv4Addr,
    /// The addresses that answer ARP and take packets.
    present: HashSet<Ipv4Addr>,
    peer_ip: Ipv4Addr,
    peer_mac: MacAddr,
    /// Number of the first host that this station may act as.
    pub(crate) first_host: u16,
    /// How long an answer may take.
    pub(crate) patience: Duration,
    inbox: VecDeque<Packet>,
    /// ARP and ICMP.
    plain: VecDeque<Vec<u8>>,
    buffer: Vec<u8>,
}

/// The MAC address of a host that the suite acts as.
pub(crate) fn mac_of(ip: Ipv4Addr) -> MacAddr {
    let [_, b, c, d] = ip.octets();
    MacAddr([0x02, 0xc0, 0xf0, b, c, d])
}

impl Station {
    /// A station at `ip` that faces the device at `peer_ip`, found by ARP.
    ///
    /// # Errors
    /// [`Failure::NoDevice`] if there is no ARP reply for the address.
    pub(crate) fn new(
        link: Box<dyn Link>,
        ip: Ipv4Addr,
        peer_ip: Ipv4Addr,
        patience: Duration,
    ) -> Result<Self, Failure> {
        let mut station = Self {
            link,
            ip,
            present: HashSet::from([ip]),
            peer_ip,
            peer_mac: MacAddr([0; 6]),
            first_host: 0,
            patience,
            inbox: VecDeque::new(),
            plain: VecDeque::new(),
            buffer: vec![0; MAX_FRAME],
        };
        for _ in 0..5 {
            let mut question = [0; 60];
            ArpPacket::request(mac_of(ip), ip, peer_ip).write(&mut question)?;
            station.send_frame(&question)?;
            let until = Instant::now() + patience / 5;
            while station.peer_mac == MacAddr([0; 6]) && Instant::now() < until {
                station.pump(until)?;
            }
            if station.peer_mac != MacAddr([0; 6]) {
                return Ok(station);
            }
        }
        Err(Failure::NoDevice(peer_ip))
    }

    /// This station's address.
    pub(crate) fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// The device's address.
    pub(crate) fn peer_ip(&self) -> Ipv4Addr {
        self.peer_ip
    }

    /// The device's MAC address.
    pub(crate) fn peer_mac(&self) -> MacAddr {
        self.peer_mac
    }

    /// Another host of the device's network that the station may act as; each index is a separate host, up to [`MAX_HOSTS`] in all.
    pub(crate) fn host(&self, index: u16) -> Ipv4Addr {
        let [a, b, ..] = self.peer_ip.octets();
        let [c, d] = (self.first_host + index + 256).to_be_bytes();
        Ipv4Addr::new(a, b, c | 0x80, d)
    }

    /// From now on this host answers ARP and takes packets.
    pub(crate) fn play(&mut self, ip: Ipv4Addr) {
        self.present.insert(ip);
    }

    /// Removes this host: frames for it are neither received nor answered any more.
    pub(crate) fn vanish(&mut self, ip: Ipv4Addr) {
        self.present.remove(&ip);
        self.inbox.retain(|p| p.headers.ip.dst() != ip);
    }

    /// All hosts but the suite's own have died.
    pub(crate) fn alone(&mut self) {
        self.present.retain(|ip| *ip == self.ip);
        let own = self.ip;
        self.inbox.retain(|p| p.headers.ip.dst() == own);
    }

    /// Packets from here to the device.
    pub(crate) fn flow(&self) -> Flow {
        self.flow_from(self.ip)
    }

    /// Addresses of packets to the device from a host that the suite acts as.
    pub(crate) fn flow_from(&self, ip: Ipv4Addr) -> Flow {
        Flow::new(mac_of(ip), self.peer_mac, ip, self.peer_ip, 0xc123)
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// The link is broken, or the headers do not fit together.
    pub(crate) fn send(&mut self, headers: &RoceHeaders, payload: &[u8]) -> Result<(), Failure> {
        let frame = build(headers, payload)?;
        self.send_frame(&frame)
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn send_frame(&mut self, frame: &[u8]) -> Result<(), Failure> {
        self.link.send(frame).map_err(Failure::Link)
    }

    /// An echo request of this host with this number.
    ///
    /// # Errors
    /// The payload is too long.
    pub(crate) fn echo(&self, ip: Ipv4Addr, sequence: u16, payload: &[u8]) -> Result<Vec<u8>, Failure> {
        let packet = EchoPacket {
            dst: self.peer_mac,
            src: mac_of(ip),
            ip: Ipv4Header::new(ip, self.peer_ip, PROTOCOL_ICMP),
            kind: Kind::Request,
            identifier: ECHO_IDENTIFIER,
            sequence,
            payload,
        };
        let mut bytes = vec![0; EchoPacket::HEADER_LEN + payload.len().max(18)];
        let len = packet.write(&mut bytes)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    /// The next packet of the device for which `wanted` holds, within `patience`. Others are kept.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn expect(&mut self, wanted: impl Fn(&Packet) -> bool) -> Result<Option<Packet>, Failure> {
        self.wait(self.patience, wanted)
    }

    /// As [`Self::expect`], with another time.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn wait(&mut self, time: Duration, wanted: impl Fn(&Packet) -> bool) -> Result<Option<Packet>, Failure> {
        let deadline = Instant::now() + time;
        loop {
            if let Some(at) = self.inbox.iter().position(&wanted) {
                return Ok(self.inbox.remove(at));
            }
            if !self.pump(deadline)? {
                return Ok(None);
            }
        }
    }

    /// As [`Self::expect`], but the packet stays in its place among those that came.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn look(&mut self, wanted: impl Fn(&Packet) -> bool) -> Result<Option<&Packet>, Failure> {
        let deadline = Instant::now() + self.patience;
        loop {
            if let Some(at) = self.inbox.iter().position(&wanted) {
                return Ok(self.inbox.get(at));
            }
            if !self.pump(deadline)? {
                return Ok(None);
            }
        }
    }

    /// As [`Self::expect`], with the packets that came before it.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn expect_and_earlier(
        &mut self,
        wanted: impl Fn(&Packet) -> bool,
    ) -> Result<Option<(Packet, Vec<Packet>)>, Failure> {
        let deadline = Instant::now() + self.patience;
        loop {
            if let Some(at) = self.inbox.iter().position(&wanted) {
                let earlier = self.inbox.drain(..at).collect();
                return Ok(self.inbox.pop_front().map(|packet| (packet, earlier)));
            }
            if !self.pump(deadline)? {
                return Ok(None);
            }
        }
    }

    /// The next ARP or ICMP frame for which `wanted` finds something, within the time.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn plain<T>(
        &mut self,
        time: Duration,
        wanted: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let deadline = Instant::now() + time;
        loop {
            while let Some(frame) = self.plain.pop_front() {
                if let Some(found) = wanted(&frame) {
                    return Ok(Some(found));
                }
            }
            if !self.pump(deadline)? {
                return Ok(None);
            }
        }
    }

    /// Everything that has come so far, and what comes within the time.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn gather(&mut self, time: Duration) -> Result<Vec<Packet>, Failure> {
        let deadline = Instant::now() + time;
        while self.pump(deadline)? {}
        Ok(self.inbox.drain(..).collect())
    }

    /// Takes out of what has come so far that for which `wanted` holds.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn take(&mut self, wanted: impl Fn(&Packet) -> bool) -> Result<Vec<Packet>, Failure> {
        while self.pump(Instant::now())? {}
        let (found, rest) = self.inbox.drain(..).partition(wanted);
        self.inbox = Vec::into(rest);
        Ok(found)
    }

    /// Whether a packet has come by now for which `wanted` holds. It stays in its place.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn is_there(&mut self, wanted: impl Fn(&Packet) -> bool) -> Result<bool, Failure> {
        while self.pump(Instant::now())? {}
        Ok(self.inbox.iter().any(wanted))
    }

    /// Discards what has been received so far.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn forget(&mut self) -> Result<(), Failure> {
        while self.pump(Instant::now())? {}
        self.inbox.clear();
        self.plain.clear();
        Ok(())
    }

    /// Takes one frame from the link; false when there is none until the deadline.
    fn pump(&mut self, deadline: Instant) -> Result<bool, Failure> {
        let Some(len) = self.link.recv(&mut self.buffer, deadline).map_err(Failure::Link)? else { return Ok(false) };
        let frame = &self.buffer[..len];
        if let Ok(arp) = ArpPacket::parse(frame) {
            if arp.sender_ip == self.peer_ip {
                self.keep(len);
            }
            if arp.operation == Operation::Request && self.present.contains(&arp.target_ip) {
                let mut answer = [0; 60];
                arp.reply(mac_of(arp.target_ip)).write(&mut answer)?;
                self.send_frame(&answer)?;
            } else if arp.operation == Operation::Reply && arp.sender_ip == self.peer_ip {
                self.peer_mac = arp.sender_mac;
            }
        } else if let Ok(packet) = RocePacket::parse(frame) {
            let to = packet.headers.ip.dst();
            if packet.headers.ip.src() == self.peer_ip
                && self.present.contains(&to)
                && packet.headers.eth.dst == mac_of(to)
            {
                let RocePacket { headers, opcode, payload } = packet;
                self.inbox.push_back(Packet { headers, opcode, payload: payload.to_vec() });
            }
        } else if EthernetHeader::parse(frame).is_ok_and(|(eth, _)| eth.src == self.peer_mac)
            && EchoPacket::parse(frame).is_ok()
        {
            self.keep(len);
        }
        Ok(true)
    }
}

impl Station {
    /// Keeps a frame that is not RoCE, and not more of them than there is a use for.
    fn keep(&mut self, len: usize) {
        self.plain.truncate(PLAIN_FRAMES - 1);
        self.plain.push_back(self.buffer[..len].to_vec());
    }
}

/// The frame of a packet.
///
/// # Errors
/// The headers do not fit together.
pub(crate) fn build(headers: &RoceHeaders, payload: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut frame = vec![0; MAX_FRAME];
    let len = headers.write(payload, &mut frame)?;
    frame.truncate(len);
    Ok(frame)
}
