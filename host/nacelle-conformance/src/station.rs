// SPDX-License-Identifier: Apache-2.0
//! One station on the wire that sends whatever it is told to and hears what is meant for it.

use crate::Failure;
use core::net::Ipv4Addr;
use nacelle_link::{Link, MAX_FRAME};
use nacelle_wire::{
    MacAddr, RoceHeaders, RocePacket,
    arp::{ArpPacket, Operation},
    bth::Opcode,
    roce::Flow,
};
use std::{
    collections::VecDeque,
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

/// The suite's place on the wire.
pub(crate) struct Station {
    link: Box<dyn Link>,
    mac: MacAddr,
    ip: Ipv4Addr,
    peer_ip: Ipv4Addr,
    peer_mac: MacAddr,
    /// How long an answer may take.
    pub(crate) patience: Duration,
    inbox: VecDeque<Packet>,
    buffer: Vec<u8>,
}

impl Station {
    /// A station at `ip` that faces the device at `peer_ip`, found by ARP.
    ///
    /// # Errors
    /// [`Failure::NoDevice`] if nobody answers for the address.
    pub(crate) fn new(
        link: Box<dyn Link>,
        ip: Ipv4Addr,
        peer_ip: Ipv4Addr,
        patience: Duration,
    ) -> Result<Self, Failure> {
        let [_, b, c, d] = ip.octets();
        let mac = MacAddr([0x02, 0xc0, 0xf0, b, c, d]);
        let mut station = Self {
            link,
            mac,
            ip,
            peer_ip,
            peer_mac: MacAddr([0; 6]),
            patience,
            inbox: VecDeque::new(),
            buffer: vec![0; MAX_FRAME],
        };
        for _ in 0..5 {
            let mut question = [0; 60];
            ArpPacket::request(mac, ip, peer_ip).write(&mut question)?;
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

    /// Packets from here to the device.
    pub(crate) fn flow(&self) -> Flow {
        Flow::new(self.mac, self.peer_mac, self.ip, self.peer_ip, 0xc123)
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

    /// The next packet of the device for which `wanted` holds, within the patience. Others stay for later.
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

    /// Forgets what has come so far.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn forget(&mut self) -> Result<(), Failure> {
        while self.pump(Instant::now())? {}
        self.inbox.clear();
        Ok(())
    }

    /// Takes one frame from the link; false when there is none until the deadline.
    fn pump(&mut self, deadline: Instant) -> Result<bool, Failure> {
        let Some(len) = self.link.recv(&mut self.buffer, deadline).map_err(Failure::Link)? else { return Ok(false) };
        let frame = &self.buffer[..len];
        if let Ok(arp) = ArpPacket::parse(frame) {
            if arp.operation == Operation::Request && arp.target_ip == self.ip {
                let mut answer = [0; 60];
                arp.reply(self.mac).write(&mut answer)?;
                self.send_frame(&answer)?;
            } else if arp.operation == Operation::Reply && arp.sender_ip == self.peer_ip {
                self.peer_mac = arp.sender_mac;
            }
        } else if let Ok(packet) = RocePacket::parse(frame)
            && packet.headers.eth.dst == self.mac
            && packet.headers.ip.src() == self.peer_ip
        {
            let RocePacket { headers, opcode, payload } = packet;
            self.inbox.push_back(Packet { headers, opcode, payload: payload.to_vec() });
        }
        Ok(true)
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
