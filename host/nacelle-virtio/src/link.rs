// SPDX-License-Identifier: Apache-2.0
//! A network card as a link of Ethernet frames.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nacelle_link::{Link, LinkError, LinkStats, MAX_FRAME, MIN_FRAME, wait_readable};
use nacelle_pci::{PciDevice, PciError};
use rustix::event::epoll;

use crate::card::{Card, MAX_RINGS, Queues, StartError, feature};
use crate::ring::{BrokenRing, Direction, Ring};

/// Numbers of the rings (virtio 1.2, 5.1.2).
const RECEIVE: usize = 0;
const SEND: usize = 1;
/// Bytes of `virtio_net_hdr`, which is before each frame (5.1.6).
const HEADER: u32 = 12;
/// Ethernet header and a VLAN tag: what a frame has besides the packet that the MTU is about.
const ETHERNET: u16 = 18;
/// The MTU of a card that does not say one.
const USUAL_MTU: u16 = 1500;
/// Bit of the status in the configuration (5.1.4).
const LINK_UP: u16 = 1;
/// What is used of what a card offers: it completes no checksums and cuts nothing.
const FEATURES: u64 = feature::VERSION_1 | feature::MAC | feature::MTU | feature::STATUS;
/// What a readable descriptor is about, beside the interrupts of the card.
const ALARM: u64 = u64::MAX;

/// How a card is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkConfig {
    /// Entries of each ring: a power of two, no more than the card's.
    pub ring_size: u16,
    /// How long the card may take to end what it does in memory; then its function is reset. A simulated one is slow.
    pub reset_timeout: Duration,
    /// How long a frame waits for room in the ring before it is dropped. The ring is the queue: longer waits only hold up the sender.
    pub patience: Duration,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self { ring_size: 256, reset_timeout: Duration::from_secs(10), patience: Duration::from_millis(50) }
    }
}

/// Why a card cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VirtioError {
    /// It does not begin.
    #[error("the network card cannot be used: {0}")]
    Start(#[from] StartError),
    /// Its function cannot be accessed.
    #[error("the network card cannot be reached: {0}")]
    Pci(#[from] PciError),
    /// The system.
    #[error("the network card cannot be waited for: {0}")]
    System(#[from] io::Error),
}

/// Why a link has ended: the inner error of a [`LinkError::Io`].
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error(transparent)]
    Pci(#[from] PciError),
    #[error(transparent)]
    Ring(#[from] BrokenRing),
    #[error("the card has given up ring {ring}, code {code} (docs/reference/virtio-net.md)")]
    GivenUp { ring: usize, code: u32 },
}

/// A virtio network card whose driver is this process: what is sent here leaves the card, and what the card receives comes here. Frames
/// are without FCS. The card is halted when this value goes.
///
/// Frames carry their own checksums and are cut by their sender, as on any link here; the card's offloads are not used.
#[derive(Debug)]
pub struct VirtioLink<D: PciDevice> {
    card: Card<D>,
    rings: [Ring; 2],
    /// Bytes that a frame may have.
    longest: usize,
    mac: [u8; 6],
    link_up: bool,
    /// The interrupts of the card, and what hangs up when it goes.
    ready: OwnedFd,
    _alarm: Option<OwnedFd>,
    patience: Duration,
    /// Something was put into the ring of frames to send, and the card was not told.
    untold: bool,
    stats: LinkStats,
}

impl<D: PciDevice> VirtioLink<D> {
    /// Takes a card, which is reset, and begins to use it.
    ///
    /// # Errors
    /// [`VirtioError`] if it is no virtio network card, does not take what it is told, or cannot be reached.
    pub fn new(device: D, config: LinkConfig) -> Result<Self, VirtioError> {
        let alarm = device.alarm()?;
        let mut card = Card::new(device, config.reset_timeout)?;
        let features = card.offered() & FEATURES;
        let mut about = [0; 12];
        card.config(0, &mut about)?;
        let [a, b, c, d, e, f, status_low, status_high, _, _, mtu_low, mtu_high] = about;
        let mtu = if features & feature::MTU == 0 { USUAL_MTU } else { u16::from_le_bytes([mtu_low, mtu_high]) };
        let longest = u32::from(mtu) + u32::from(ETHERNET);
        let room = HEADER + longest;
        let bytes = Ring::bytes(config.ring_size, room);
        let mut ring = |direction| -> Result<Ring, PciError> {
            Ok(Ring::new(card.allocate(bytes)?, config.ring_size, room, direction))
        };
        let mut rings = [ring(Direction::Receive)?, ring(Direction::Send)?];
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let watch = |fd: BorrowedFd<'_>, number, events| -> io::Result<()> {
            Ok(epoll::add(&ready, fd, epoll::EventData::new_u64(number), events)?)
        };
        for (number, interrupt) in (0..).zip(card.interrupts()) {
            watch(interrupt.as_fd(), number, epoll::EventFlags::IN)?;
        }
        if let Some(alarm) = &alarm {
            watch(alarm.as_fd(), ALARM, epoll::EventFlags::RDHUP)?;
        }
        while let Some(index) = rings[RECEIVE].free() {
            rings[RECEIVE].give(index, room);
        }
        let mut queues = Queues::default();
        for (queue, ring) in queues.iter_mut().zip(&rings) {
            *queue = Some(ring.queue());
        }
        card.start(features, queues)?;
        card.notify(RECEIVE)?;
        Ok(Self {
            link_up: is_up(features, [status_low, status_high]),
            card,
            rings,
            longest: longest as usize,
            mac: [a, b, c, d, e, f],
            ready,
            _alarm: alarm,
            patience: config.patience,
            untold: false,
            stats: LinkStats::default(),
        })
    }

    /// The address that frames of this station have.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// The longest packet that a frame can carry, in bytes.
    #[must_use]
    pub fn mtu(&self) -> u16 {
        (self.longest - usize::from(ETHERNET)) as u16
    }

    /// Whether the card's own link worked when it was looked at last.
    #[must_use]
    pub fn link_up(&self) -> bool {
        self.link_up
    }

    /// Takes note of what the card has said.
    fn news(&mut self) -> Result<(), Ended> {
        let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; MAX_RINGS + 2];
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        let (said, _) = epoll::wait(&self.ready, &mut events, Some(&now)).unwrap_or_default();
        if said.iter().any(|event| event.data.u64() == ALARM) {
            return Err(PciError::Gone.into());
        }
        if said.is_empty() || !self.card.news()?.config {
            return Ok(());
        }
        let mut status = [0; 2];
        self.card.config(6, &mut status)?;
        self.link_up = is_up(self.card.offered(), status);
        match self.card.faults()?.first() {
            Some(&(ring, code)) => Err(Ended::GivenUp { ring, code }),
            None => Ok(()),
        }
    }

    /// Puts a frame into the ring, if there is room for it.
    fn put(&mut self, frame: &[u8]) -> Result<bool, Ended> {
        let ring = &mut self.rings[SEND];
        while ring.take()?.is_some() {}
        let Some(index) = ring.free() else { return Ok(false) };
        ring.fill(index, 0, &[0; HEADER as usize]);
        ring.fill(index, HEADER, frame);
        ring.give(index, HEADER + frame.len() as u32);
        self.untold = true;
        Ok(true)
    }

    /// As [`put`](Self::put), and waits for room.
    fn put_patiently(&mut self, frame: &[u8]) -> Result<bool, Ended> {
        let deadline = Instant::now() + self.patience;
        while !self.put(frame)? {
            self.tell()?;
            if Instant::now() >= deadline {
                return Ok(false);
            }
            self.card.interrupts()[1 + SEND].wait(deadline - Instant::now()).map_err(PciError::from)?;
        }
        Ok(true)
    }

    /// Tells the card what it was not told.
    fn tell(&mut self) -> Result<(), PciError> {
        if std::mem::take(&mut self.untold) {
            self.card.notify(SEND)?;
        }
        Ok(())
    }

    /// A frame that has come: its length in `into`.
    fn take(&mut self, into: &mut [u8]) -> Result<Option<usize>, Ended> {
        let ring = &mut self.rings[RECEIVE];
        while let Some((index, written)) = ring.take()? {
            let taken = ring.free();
            debug_assert_eq!(taken, Some(index), "all others are the card's");
            let length = (written.saturating_sub(HEADER) as usize).min(into.len());
            ring.read(index, HEADER, &mut into[..length]);
            ring.give(index, HEADER + self.longest as u32);
            self.card.notify(RECEIVE)?;
            if length >= MIN_FRAME {
                return Ok(Some(length));
            }
        }
        Ok(None)
    }
}

/// Whether the card's link works, which one without a status does not say.
fn is_up(features: u64, status: [u8; 2]) -> bool {
    features & feature::STATUS == 0 || u16::from_le_bytes(status) & LINK_UP != 0
}

/// The link has ended.
fn ended(what: &'static str) -> impl FnOnce(Ended) -> LinkError {
    move |why| LinkError::Io { what: what.into(), source: io::Error::other(why) }
}

impl<D: PciDevice + Send> Link for VirtioLink<D> {
    fn send(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        self.send_more(frame)?;
        self.flush()
    }

    fn send_more(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        if !(MIN_FRAME..=MAX_FRAME).contains(&frame.len()) {
            return Err(LinkError::FrameLength { length: frame.len() });
        }
        let sent = frame.len() <= self.longest
            && self.put_patiently(frame).map_err(ended("send a frame by the network card"))?;
        if sent {
            self.stats.tx_frames += 1;
            self.stats.tx_bytes += frame.len() as u64;
        } else {
            self.stats.tx_dropped += 1;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LinkError> {
        self.tell().map_err(Ended::from).map_err(ended("send frames by the network card"))
    }

    fn recv(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<Option<usize>, LinkError> {
        const WHAT: &str = "receive a frame from the network card";
        loop {
            // What comes behind this is signalled again.
            self.news().map_err(ended(WHAT))?;
            if let Some(length) = self.take(buffer).map_err(ended(WHAT))? {
                self.stats.rx_frames += 1;
                self.stats.rx_bytes += length as u64;
                return Ok(Some(length));
            }
            self.flush()?;
            if Instant::now() >= deadline {
                return Ok(None);
            }
            wait_readable([self.ready.as_fd()], Some(deadline))
                .map_err(|source| LinkError::Io { what: WHAT.into(), source })?;
        }
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    /// Frames that have come, though their interrupt was taken: at once.
    fn next_event(&self) -> Option<Instant> {
        (self.rings[RECEIVE].waiting() > 0).then(Instant::now)
    }

    fn stats(&self) -> LinkStats {
        self.stats
    }
}

impl<D: PciDevice> Drop for VirtioLink<D> {
    fn drop(&mut self) {
        // A card that cannot be halted has gone, or is reset by the next driver.
        let _ = self.card.halt();
    }
}
