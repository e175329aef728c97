// SPDX-License-Identifier: Apache-2.0
//! The datagrams of a UDP socket, between the link and an endpoint's [`UdpInterface`].

use crate::{Medium, capture};
use nacelle_link::{
    DatagramLink, Delivery, Direction, Icrc, LinkError, LinkStats, MAX_BATCH, Outgoing, Placed, Recorder,
};
use nacelle_roce::{
    Batch, Datagrams, Numbering, Transmit, UdpInterface,
    memory::Bytes,
    wire::{Ecn, icrc},
};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant, SystemTime};

/// How long to look for an answer before sleeping: longer than a peer on this machine takes for one, shorter than a person or
/// another program notices.
const SPIN: Duration = Duration::from_micros(200);

/// A send of so many bytes is a long one.
const LONG: usize = 16 << 10;

/// A datagram link, with room for a batch to send.
pub struct DatagramMedium {
    link: Box<dyn DatagramLink>,
    tx: Vec<u8>,
    /// The last send was a long one. The next is written where the link has room for it, which saves a copy, and past the cache of this
    /// processor. A short one is better written elsewhere and copied at once: the other side is looking at that place.
    in_place: bool,
    spin: Duration,
    recorder: Recorder,
    /// Finds what a capture says of received datagrams and the socket does not.
    check: UdpInterface,
}

impl DatagramMedium {
    /// The datagrams of this link.
    pub fn new(link: Box<dyn DatagramLink>) -> Self {
        let check = UdpInterface::new(link.local(), 0);
        Self { link, tx: vec![0; MAX_BATCH], in_place: false, spin: SPIN, recorder: Recorder::default(), check }
    }

    /// Looks for more for this long before sleeping. Default: 200 µs.
    #[must_use]
    pub fn with_spin(mut self, spin: Duration) -> Self {
        self.spin = spin;
        self
    }

    /// Address and port of the link.
    pub fn local(&self) -> SocketAddr {
        self.link.local()
    }

    /// The capture: frames as they pass on the loopback interface, with Ethernet addresses of zeros. The IPv4 identification of
    /// what is received is the one that makes its ICRC right. A packet whose ICRC was left out has it in the capture all the same.
    pub fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    fn send(&mut self, sent: &Transmit) -> Result<(), LinkError> {
        let Transmit { path, ecn, len, segment_size, .. } = *sent;
        let (to, ecn) = (path.remote, ecn as u8);
        // A capture has what is sent.
        if self.recorder.is_running() || self.link.icrc(to) == Icrc::Kept {
            sent.seal(self.link.local(), &mut self.tx, Numbering::Counted);
        } else {
            sent.leave_unsealed(&mut self.tx);
        }
        let bytes = &self.tx[..len];
        if self.recorder.is_running() {
            for (index, datagram) in bytes.chunks(segment_size.unwrap_or(len)).enumerate() {
                let frame = capture::frame(self.link.local(), to, index as u16, ecn, datagram);
                self.recorder.record(SystemTime::now(), Direction::Outbound, &frame);
            }
        }
        if self.link.send(Outgoing { to, ecn, bytes, segment_size })? == Delivery::NotSegmented {
            // Each alone then, as its ICRC must say.
            sent.seal(self.link.local(), &mut self.tx, Numbering::Alone);
            for datagram in self.tx[..len].chunks(segment_size.unwrap_or(len)) {
                self.link.send(Outgoing { to, ecn, bytes: datagram, segment_size: None })?;
            }
        }
        Ok(())
    }
}

/// The identification of a received datagram and its bytes, with a right ICRC if it came without.
fn captured(check: &mut UdpInterface, from: SocketAddr, index: usize, datagram: Bytes<'_>) -> (u16, Vec<u8>) {
    let mut bytes = datagram.source().to_vec();
    if let (Bytes::Shared(_), Ok((transport, _))) = (datagram, icrc::split(&bytes))
        && let Some(right) = icrc::of_datagram(from, check.local(), index as u16, transport)
    {
        let at = transport.len();
        bytes[at..].copy_from_slice(&right);
    }
    (check.identification(from, index, &bytes).unwrap_or_default(), bytes)
}

impl Medium for DatagramMedium {
    type Received<'a> = Datagrams<'a>;
    type Sent = Transmit;

    fn receive(&mut self, mut take: impl FnMut(Datagrams<'_>)) -> Result<bool, LinkError> {
        let Self { link, recorder, check, .. } = self;
        let local = link.local();
        link.recv(&mut |incoming| {
            let from = incoming.from;
            let ecn = Ecn::from_bits(incoming.ecn);
            let datagrams = Datagrams { from, ecn, bytes: incoming.bytes, stride: incoming.stride };
            if recorder.is_running() {
                for (index, datagram) in datagrams.iter().enumerate() {
                    let (identification, datagram) = captured(check, from, index, datagram);
                    let frame = capture::frame(from, local.ip(), identification, incoming.ecn, &datagram);
                    recorder.record(SystemTime::now(), Direction::Inbound, &frame);
                }
            }
            take(datagrams);
        })
    }

    fn transmit(&mut self, mut write: impl FnMut(&mut [u8], Batch) -> Option<Transmit>) -> Result<bool, LinkError> {
        let segments = self.link.max_segments();
        // A capture has what is sent, not what is read back of where it was placed.
        if self.in_place
            && !self.recorder.is_running()
            && let Some(room) = self.link.room()
        {
            let Some(sent) = write(room, Batch { segments, past_cache: true }) else { return Ok(false) };
            let Transmit { path, ecn, len, segment_size, .. } = sent;
            sent.leave_unsealed(room);
            self.in_place = len >= LONG;
            self.link.send_placed(Placed { to: path.remote, ecn: ecn as u8, len, segment_size });
            return Ok(true);
        }
        let Some(sent) = write(&mut self.tx, segments.into()) else { return Ok(false) };
        self.in_place = sent.len >= LONG;
        self.send(&sent)?;
        Ok(true)
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.link.poll_fd()
    }

    fn arm(&mut self) {
        self.link.arm();
    }

    fn poll_gone(&mut self) -> Option<IpAddr> {
        self.link.poll_gone()
    }

    fn next_event(&self) -> Option<Instant> {
        self.link.next_event()
    }

    fn spin(&self) -> Duration {
        self.spin
    }

    fn stats(&self) -> LinkStats {
        self.link.stats()
    }
}
