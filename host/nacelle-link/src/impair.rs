// SPDX-License-Identifier: Apache-2.0
//! Links that lose, double, reorder, damage and delay frames or datagrams, by a seed.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::ops::AddAssign;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::{DatagramLink, Delivery, Icrc, Incoming, Link, LinkError, LinkStats, Outgoing};

/// How long a frame is held back for a later one to overtake it, at most.
const OVERTAKE_WITHIN: Duration = Duration::from_millis(50);
/// Frames that wait in one direction at most.
const MAX_DELAYED: usize = 4096;
/// Length of the Ethernet header, in bytes; damage begins behind it.
const ETHERNET_HEADER: usize = 14;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];

/// What happens to frames, or datagrams, in each direction alike. The defaults change nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Impairments {
    /// Probability that a frame is lost, 0 to 1.
    pub loss: f64,
    /// Probability that a frame comes twice, 0 to 1.
    pub duplicate: f64,
    /// Probability that a frame is overtaken by the next one, 0 to 1.
    pub reorder: f64,
    /// Probability that one bit of a datagram, or of an IPv4 frame behind its Ethernet header, is inverted, 0 to 1. Other
    /// protocols are spared: ARP has no checksum and counts on that of Ethernet.
    pub corrupt: f64,
    /// Time that every frame takes longer.
    pub delay: Duration,
    /// The same seed does the same to the same frames.
    pub seed: u64,
}

impl Impairments {
    /// True if frames pass as they are.
    #[must_use]
    pub fn is_none(&self) -> bool {
        let chances = [self.loss, self.duplicate, self.reorder, self.corrupt];
        chances.iter().all(|chance| *chance <= 0.0) && self.delay.is_zero()
    }
}

/// Counts of frames by what was done to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImpairmentCounts {
    /// Frames that were to pass.
    pub frames: u64,
    /// Those lost.
    pub lost: u64,
    /// Those that came twice.
    pub duplicated: u64,
    /// Those held back for the next one to overtake them.
    pub overtaken: u64,
    /// Those with an inverted bit.
    pub damaged: u64,
}

impl AddAssign for ImpairmentCounts {
    fn add_assign(&mut self, other: Self) {
        self.frames += other.frames;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.overtaken += other.overtaken;
        self.damaged += other.damaged;
    }
}

/// A frame or datagram on its way: where it comes from or goes to, and its bytes.
type Item<W> = (W, Vec<u8>);

/// One direction.
#[derive(Debug)]
struct Lane<W> {
    rules: Impairments,
    counts: ImpairmentCounts,
    random: fastrand::Rng,
    delayed: VecDeque<(Instant, Item<W>)>,
    held: Option<(Instant, Item<W>)>,
}

impl<W: Copy> Lane<W> {
    fn new(rules: Impairments, lane: u64) -> Self {
        let random = fastrand::Rng::with_seed(rules.seed.wrapping_mul(2).wrapping_add(lane));
        Self { rules, counts: ImpairmentCounts::default(), random, delayed: VecDeque::new(), held: None }
    }

    fn happens(&mut self, chance: f64) -> bool {
        self.random.f64() < chance
    }

    /// Takes what is to pass; damage spares the first `spared` bytes.
    fn admit(&mut self, now: Instant, way: W, bytes: &[u8], spared: usize) {
        // Every frame draws as many numbers, so what is done to one does not change what is done to others.
        let [lost, twice, overtaken, damaged] =
            [self.rules.loss, self.rules.duplicate, self.rules.reorder, self.rules.corrupt].map(|c| self.happens(c));
        let spot = self.random.f64();
        self.counts.frames += 1;
        if lost || self.delayed.len() + 2 > MAX_DELAYED {
            self.counts.lost += 1;
            return;
        }
        let mut item = (way, bytes.to_vec());
        if damaged && spared < bytes.len() {
            let bits = (bytes.len() - spared) * 8;
            let bit = ((spot * bits as f64) as usize).min(bits.saturating_sub(1));
            if let Some(byte) = item.1.get_mut(spared + bit / 8) {
                *byte ^= 1 << (bit % 8);
                self.counts.damaged += 1;
            }
        }
        let due = now + self.rules.delay;
        if overtaken && self.held.is_none() {
            self.counts.overtaken += 1;
            self.held = Some((due + OVERTAKE_WITHIN, item));
            return;
        }
        if twice {
            self.counts.duplicated += 1;
            self.delayed.push_back((due, item.clone()));
        }
        self.delayed.push_back((due, item));
        if let Some((_, held)) = self.held.take() {
            self.delayed.push_back((due, held));
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let delayed = self.delayed.front().map(|(due, _)| *due);
        let held = self.held.as_ref().map(|(due, _)| *due);
        delayed.into_iter().chain(held).min()
    }

    fn take_due(&mut self, now: Instant) -> Option<Item<W>> {
        if self.delayed.front().is_some_and(|(due, _)| *due <= now) {
            return self.delayed.pop_front().map(|(_, item)| item);
        }
        if self.held.as_ref().is_some_and(|(due, _)| *due <= now) {
            return self.held.take().map(|(_, item)| item);
        }
        None
    }
}

/// Bytes of a frame that damage spares.
fn spared(frame: &[u8]) -> usize {
    if frame.get(12..ETHERNET_HEADER) == Some(&ETHERTYPE_IPV4[..]) { ETHERNET_HEADER } else { frame.len() }
}

/// A link with [`Impairments`] in both directions. What it sends late leaves when `recv` is called.
#[derive(Debug)]
pub struct Impaired<L> {
    link: L,
    tx: Lane<()>,
    rx: Lane<()>,
}

impl<L: Link> Impaired<L> {
    /// Wraps `link`.
    pub fn new(link: L, rules: Impairments) -> Self {
        Self { link, tx: Lane::new(rules, 0), rx: Lane::new(rules, 1) }
    }

    /// What has happened to frames so far, in both directions together.
    #[must_use]
    pub fn counts(&self) -> ImpairmentCounts {
        let mut both = self.tx.counts;
        both += self.rx.counts;
        both
    }

    fn send_due(&mut self) -> Result<(), LinkError> {
        while let Some(((), frame)) = self.tx.take_due(Instant::now()) {
            self.link.send(&frame)?;
        }
        Ok(())
    }
}

impl<L: Link> Link for Impaired<L> {
    fn send(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        crate::check_length(frame)?;
        self.tx.admit(Instant::now(), (), frame, spared(frame));
        self.send_due()
    }

    fn recv(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<Option<usize>, LinkError> {
        loop {
            self.send_due()?;
            let now = Instant::now();
            if let Some(((), frame)) = self.rx.take_due(now) {
                let length = frame.len().min(buffer.len());
                buffer[..length].copy_from_slice(&frame[..length]);
                return Ok(Some(length));
            }
            let until = self.next_event().map_or(deadline, |event| event.min(deadline));
            match self.link.recv(buffer, until)? {
                Some(length) => {
                    let frame = &buffer[..length];
                    self.rx.admit(Instant::now(), (), frame, spared(frame));
                }
                None if Instant::now() >= deadline && self.next_event().is_none_or(|event| event > deadline) => {
                    return Ok(None);
                }
                None => {}
            }
        }
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.link.poll_fd()
    }

    fn next_event(&self) -> Option<Instant> {
        [self.tx.next_due(), self.rx.next_due(), self.link.next_event()].into_iter().flatten().min()
    }

    fn stats(&self) -> LinkStats {
        self.link.stats()
    }
}

/// A datagram link with [`Impairments`] in both directions, which sends and receives each datagram alone. What it sends late
/// leaves when `recv` is called. The link keeps ICRCs ([`Icrc::Kept`]), without which nobody would notice damage.
#[derive(Debug)]
pub struct ImpairedDatagrams<L> {
    link: L,
    tx: Lane<(IpAddr, u8)>,
    rx: Lane<(SocketAddr, u8)>,
}

impl<L: DatagramLink> ImpairedDatagrams<L> {
    /// Wraps `link`.
    pub fn new(link: L, rules: Impairments) -> Self {
        Self { link, tx: Lane::new(rules, 0), rx: Lane::new(rules, 1) }
    }

    fn send_due(&mut self) -> Result<(), LinkError> {
        while let Some(((to, ecn), bytes)) = self.tx.take_due(Instant::now()) {
            self.link.send(Outgoing { to, ecn, bytes: &bytes, segment_size: None })?;
        }
        Ok(())
    }
}

impl<L: DatagramLink> DatagramLink for ImpairedDatagrams<L> {
    fn local(&self) -> SocketAddr {
        self.link.local()
    }

    fn max_segments(&self) -> usize {
        1
    }

    fn icrc(&self, to: IpAddr) -> Icrc {
        self.link.icrc(to)
    }

    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<Delivery, LinkError> {
        if outgoing.segment_size.is_some() {
            return Ok(Delivery::NotSegmented);
        }
        self.tx.admit(Instant::now(), (outgoing.to, outgoing.ecn), outgoing.bytes, 0);
        self.send_due().map(|()| Delivery::Done)
    }

    fn recv(&mut self, take: &mut dyn FnMut(Incoming<'_>)) -> Result<bool, LinkError> {
        self.send_due()?;
        let rx = &mut self.rx;
        self.link.recv(&mut |incoming| {
            for datagram in incoming.bytes.chunks(incoming.stride) {
                rx.admit(Instant::now(), (incoming.from, incoming.ecn), &datagram.source().to_vec(), 0);
            }
        })?;
        let mut any = false;
        while let Some(((from, ecn), bytes)) = self.rx.take_due(Instant::now()) {
            take(Incoming { from, ecn, bytes: bytes[..].into(), stride: bytes.len().max(1) });
            any = true;
        }
        Ok(any)
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
        [self.tx.next_due(), self.rx.next_due(), self.link.next_event()].into_iter().flatten().min()
    }

    fn stats(&self) -> LinkStats {
        self.link.stats()
    }
}
