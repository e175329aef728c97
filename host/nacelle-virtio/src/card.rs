// SPDX-License-Identifier: Apache-2.0
//! The card, as a driver of the PCI transport sees it (virtio 1.2, 4.1.4 and 3.1.1): it is reset, told where rings are, and notified.
//! What is in the rings is between the card and the owner of their memory.
//!
//! The registers lie where docs/reference/virtio-net.md has them, at the begin of BAR 0.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use nacelle_pci::{Access, DmaBuffer, Interrupt, PciDevice, PciError};
use smallvec::SmallVec;

/// Rings of a card at most: four pairs, each to receive and to send, and one for commands.
pub const MAX_RINGS: usize = 9;

/// The BAR with the registers.
const BAR: u8 = 0;
/// Registers of the common configuration (4.1.4.3), at the begin of BAR 0.
pub mod common {
    /// Which half of the features is read.
    pub const DEVICE_FEATURE_SELECT: u64 = 0x00;
    /// Features that are offered.
    pub const DEVICE_FEATURE: u64 = 0x04;
    /// Which half of the features is written.
    pub const DRIVER_FEATURE_SELECT: u64 = 0x08;
    /// Features that are accepted.
    pub const DRIVER_FEATURE: u64 = 0x0c;
    /// The vector of changes of the configuration.
    pub const CONFIG_MSIX_VECTOR: u64 = 0x10;
    /// Rings that there are.
    pub const NUM_QUEUES: u64 = 0x12;
    /// Bits of [`status`](super::status).
    pub const DEVICE_STATUS: u64 = 0x14;
    /// Whose registers those from here on are.
    pub const QUEUE_SELECT: u64 = 0x16;
    /// Entries.
    pub const QUEUE_SIZE: u64 = 0x18;
    /// The vector of its interrupts.
    pub const QUEUE_MSIX_VECTOR: u64 = 0x1a;
    /// 1: it is in use.
    pub const QUEUE_ENABLE: u64 = 0x1c;
    /// Where its descriptors are,
    pub const QUEUE_DESC: u64 = 0x20;
    /// the ring of the driver,
    pub const QUEUE_DRIVER: u64 = 0x28;
    /// and that of the device.
    pub const QUEUE_DEVICE: u64 = 0x30;
}
/// Where the device configuration begins.
pub const DEVICE: u64 = 0x80;
/// Where notifications are written, 4 bytes for each ring.
pub const NOTIFY: u64 = 0x100;
/// How many pairs of queues are in use, and the codes of queues that have stopped.
const PAIRS: u64 = 0xc0;
const FAULT: u64 = 0x180;

/// Bits of the status (2.1).
pub mod status {
    /// The driver has found the card,
    pub const ACKNOWLEDGE: u8 = 1;
    /// knows how to drive it,
    pub const DRIVER: u8 = 2;
    /// and is ready.
    pub const DRIVER_OK: u8 = 4;
    /// The features are agreed on.
    pub const FEATURES_OK: u8 = 8;
    /// The card works no more before a reset.
    pub const NEEDS_RESET: u8 = 64;
}

/// Features of a card that work here. Bits of virtio 1.2, 5.1.3 and 6.
pub mod feature {
    /// The driver leaves checksums to the card.
    pub const CSUM: u64 = 1;
    /// The driver takes frames whose checksum the card has verified.
    pub const GUEST_CSUM: u64 = 1 << 1;
    /// The configuration has the longest packet.
    pub const MTU: u64 = 1 << 3;
    /// The configuration has the MAC address.
    pub const MAC: u64 = 1 << 5;
    /// The driver leaves it to the card to cut frames into segments of TCP over IPv4; needs [`CSUM`].
    pub const HOST_TSO4: u64 = 1 << 11;
    /// The same over IPv6.
    pub const HOST_TSO6: u64 = 1 << 12;
    /// The same of frames that tell of congestion (RFC 3168).
    pub const HOST_ECN: u64 = 1 << 13;
    /// A frame can have several buffers.
    pub const MRG_RXBUF: u64 = 1 << 15;
    /// The configuration has the state of the link.
    pub const STATUS: u64 = 1 << 16;
    /// There is a ring for commands.
    pub const CTRL_VQ: u64 = 1 << 17;
    /// Which addresses the driver receives.
    pub const CTRL_RX: u64 = 1 << 18;
    /// Which VLANs.
    pub const CTRL_VLAN: u64 = 1 << 19;
    /// Further modes of receiving.
    pub const CTRL_RX_EXTRA: u64 = 1 << 20;
    /// The driver is asked to tell the network of itself.
    pub const GUEST_ANNOUNCE: u64 = 1 << 21;
    /// There are several pairs of rings.
    pub const MQ: u64 = 1 << 22;
    /// The driver's own MAC address.
    pub const CTRL_MAC_ADDR: u64 = 1 << 23;
    /// Descriptors can be in a table of their own.
    pub const INDIRECT_DESC: u64 = 1 << 28;
    /// Interrupts and notifications are asked for by index.
    pub const EVENT_IDX: u64 = 1 << 29;
    /// The card is one of virtio 1.0 or later, and nothing else.
    pub const VERSION_1: u64 = 1 << 32;
    /// The hash of a packet chooses its ring.
    pub const RSS: u64 = 1 << 60;
    /// Those that work by commands.
    pub const BY_COMMANDS: u64 = CTRL_RX | CTRL_VLAN | CTRL_RX_EXTRA | GUEST_ANNOUNCE | MQ | CTRL_MAC_ADDR | RSS;
    /// All of these.
    pub const ALL: u64 = CSUM
        | GUEST_CSUM
        | MTU
        | MAC
        | HOST_TSO4
        | HOST_TSO6
        | HOST_ECN
        | MRG_RXBUF
        | STATUS
        | CTRL_VQ
        | BY_COMMANDS
        | INDIRECT_DESC
        | EVENT_IDX
        | VERSION_1;
}

/// Bytes of the device configuration that the card has.
const CONFIG_BYTES: usize = 24;
/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// The vector for changes of the configuration; those of the queues follow.
const CONFIG_VECTOR: u16 = 0;

/// Why a card does not begin to use rings, or one more.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It refuses what it is told.
    #[error("{0}")]
    Refused(&'static str),
    /// The function cannot be accessed.
    #[error(transparent)]
    Pci(#[from] PciError),
}

/// A ring as the card finds it: addresses of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// Entries, a power of two.
    pub size: u16,
    /// The table of descriptors.
    pub descriptors: u64,
    /// The driver's area.
    pub available: u64,
    /// The device's area.
    pub used: u64,
}

/// The rings that a card uses, by their numbers.
pub type Queues = [Option<Queue>; MAX_RINGS];

/// What the card has said since the last time.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Rings with something for the driver.
    pub rings: [bool; MAX_RINGS],
    /// Its configuration has changed, or it needs a reset.
    pub config: bool,
}

/// A card.
#[derive(Debug)]
pub struct Card<D> {
    device: D,
    interrupts: Vec<Interrupt>,
    offered: u64,
    /// Rings that it has: pairs, and one for commands.
    rings: usize,
    running: Option<Queues>,
    /// Pairs that it was told to use, other than by commands.
    pairs: u16,
    reset_timeout: Duration,
}

impl<D: PciDevice> Card<D> {
    /// Takes a card, and resets it. `reset_timeout` is how long it may take to end what it does in memory; then its function is reset.
    ///
    /// # Errors
    /// If it is no network card of virtio 1.0 or later, or cannot be accessed.
    pub fn new(mut device: D, reset_timeout: Duration) -> Result<Self, PciError> {
        let rings = usize::from(device.read16(BAR, common::NUM_QUEUES)?).min(MAX_RINGS);
        let interrupts = device.interrupts(CONFIG_VECTOR + 1 + rings as u16)?;
        let mut card = Self { device, interrupts, offered: 0, rings, running: None, pairs: 1, reset_timeout };
        card.halt()?;
        for (half, shift) in [(0, 0), (1, 32)] {
            card.device.write32(BAR, common::DEVICE_FEATURE_SELECT, half)?;
            card.offered |= u64::from(card.device.read32(BAR, common::DEVICE_FEATURE)?) << shift;
        }
        if card.offered & feature::VERSION_1 == 0 || rings < 2 {
            return Err(PciError::Unusable("it is no virtio network card"));
        }
        Ok(card)
    }

    /// What it offers of [`feature::ALL`].
    #[must_use]
    pub fn offered(&self) -> u64 {
        self.offered & feature::ALL
    }

    /// The rings that it has.
    #[must_use]
    pub fn rings(&self) -> usize {
        self.rings
    }

    /// The rings that it uses, if it runs.
    #[must_use]
    pub fn running(&self) -> Option<&Queues> {
        self.running.as_ref()
    }

    /// Whether it uses a ring.
    #[must_use]
    pub fn uses(&self, ring: usize) -> bool {
        self.running.is_some_and(|queues| queues[ring].is_some())
    }

    /// What to wait for while it runs: the interrupt for changes of the configuration, then one for each ring.
    #[must_use]
    pub fn interrupts(&self) -> &[Interrupt] {
        &self.interrupts
    }

    /// Memory of this process that it may access.
    ///
    /// # Errors
    /// As [`PciDevice::alloc_dma`].
    pub fn allocate(&mut self, bytes: usize) -> Result<DmaBuffer, PciError> {
        self.device.alloc_dma(bytes, Access::BOTH)
    }

    /// Gives it memory of another process, as [`PciDevice::share_dma`].
    ///
    /// # Errors
    /// As there.
    pub fn share(&mut self, iova: u64, len: u64, file: BorrowedFd<'_>, offset: u64) -> Result<(), PciError> {
        self.device.share_dma(iova, len, file, offset, Access::BOTH)
    }

    /// Takes that away from it, as [`PciDevice::unshare_dma`].
    ///
    /// # Errors
    /// As there.
    pub fn unshare(&mut self, iova: u64, len: u64) -> Result<(), PciError> {
        self.device.unshare_dma(iova, len)
    }

    /// Begins to use rings, with these features.
    ///
    /// # Errors
    /// [`StartError`]; a card that refuses is halted.
    pub fn start(&mut self, features: u64, queues: Queues) -> Result<(), StartError> {
        let started = self.set_up(features, &queues);
        match started {
            Ok(()) => self.running = Some(queues),
            Err(StartError::Refused(_)) => self.halt()?,
            Err(StartError::Pci(_)) => {}
        }
        started
    }

    fn set_up(&mut self, features: u64, queues: &Queues) -> Result<(), StartError> {
        let features = own_features(features);
        let device = &mut self.device;
        device.set_bus_master(true)?;
        let mut state = status::ACKNOWLEDGE;
        device.write8(BAR, common::DEVICE_STATUS, state)?;
        state |= status::DRIVER;
        device.write8(BAR, common::DEVICE_STATUS, state)?;
        for (half, word) in [(0, features as u32), (1, (features >> 32) as u32)] {
            device.write32(BAR, common::DRIVER_FEATURE_SELECT, half)?;
            device.write32(BAR, common::DRIVER_FEATURE, word)?;
        }
        state |= status::FEATURES_OK;
        device.write8(BAR, common::DEVICE_STATUS, state)?;
        if device.read8(BAR, common::DEVICE_STATUS)? & status::FEATURES_OK == 0 {
            return Err(StartError::Refused(
                "the card does not take the features: VERSION_1 is needed, and CSUM to cut frames into segments",
            ));
        }
        device.write16(BAR, common::CONFIG_MSIX_VECTOR, CONFIG_VECTOR)?;
        for (number, queue) in queues.iter().enumerate() {
            if let Some(queue) = queue {
                self.place(number, queue)?;
            }
        }
        self.pairs = 1;
        Ok(self.device.write8(BAR, common::DEVICE_STATUS, state | status::DRIVER_OK)?)
    }

    /// Tells it where a ring is, and lets it use that.
    fn place(&mut self, number: usize, queue: &Queue) -> Result<(), StartError> {
        let device = &mut self.device;
        device.write16(BAR, common::QUEUE_SELECT, number as u16)?;
        if queue.size > device.read16(BAR, common::QUEUE_SIZE)? {
            return Err(StartError::Refused("a ring is longer than the card's, or one that its features have not"));
        }
        device.write16(BAR, common::QUEUE_SIZE, queue.size)?;
        device.write16(BAR, common::QUEUE_MSIX_VECTOR, CONFIG_VECTOR + 1 + number as u16)?;
        let parts = [
            (common::QUEUE_DESC, queue.descriptors),
            (common::QUEUE_DRIVER, queue.available),
            (common::QUEUE_DEVICE, queue.used),
        ];
        for (register, address) in parts {
            device.write32(BAR, register, address as u32)?;
            device.write32(BAR, register + 4, (address >> 32) as u32)?;
        }
        Ok(device.write16(BAR, common::QUEUE_ENABLE, 1)?)
    }

    /// Lets it use one more ring, while it runs.
    ///
    /// # Errors
    /// [`StartError`]; the ring is not used then.
    pub fn add(&mut self, number: usize, queue: Queue) -> Result<(), StartError> {
        self.place(number, &queue)?;
        if let Some(queues) = &mut self.running {
            queues[number] = Some(queue);
        }
        Ok(())
    }

    /// How many pairs frames are for, where no command says so.
    ///
    /// # Errors
    /// If the function cannot be accessed.
    pub fn use_pairs(&mut self, pairs: u16) -> Result<(), PciError> {
        if pairs != self.pairs {
            self.pairs = pairs;
            self.device.write16(BAR, PAIRS, pairs)?;
        }
        Ok(())
    }

    /// Ends all that it does in memory: nothing is read, written or signalled any more when this returns.
    ///
    /// # Errors
    /// If the function cannot be accessed, also after a reset.
    pub fn halt(&mut self) -> Result<(), PciError> {
        self.running = None;
        self.device.write8(BAR, common::DEVICE_STATUS, 0)?;
        let deadline = Instant::now() + self.reset_timeout;
        while self.device.read8(BAR, common::DEVICE_STATUS)? != 0 {
            if Instant::now() > deadline {
                return self.reset();
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.quiet()
    }

    /// The same by a function-level reset, for a card that does not do what it is told.
    ///
    /// # Errors
    /// If the function cannot be reset.
    pub fn reset(&mut self) -> Result<(), PciError> {
        self.running = None;
        self.device.reset()?;
        self.quiet()
    }

    fn quiet(&mut self) -> Result<(), PciError> {
        self.device.set_bus_master(false)?;
        for interrupt in &self.interrupts {
            interrupt.take()?;
        }
        Ok(())
    }

    /// Tells it that there is something in a ring.
    ///
    /// # Errors
    /// If the function cannot be accessed.
    pub fn notify(&mut self, ring: usize) -> Result<(), PciError> {
        self.device.write16(BAR, NOTIFY + 4 * ring as u64, ring as u16)
    }

    /// Its interrupts since the last time.
    ///
    /// # Errors
    /// That of the system.
    pub fn news(&mut self) -> Result<News, PciError> {
        let mut news = News::default();
        for (vector, interrupt) in self.interrupts.iter().enumerate() {
            let came = interrupt.take()? > 0 && self.running.is_some();
            match vector.checked_sub(1 + usize::from(CONFIG_VECTOR)) {
                None => news.config = came,
                Some(ring) => news.rings[ring] = came,
            }
        }
        Ok(news)
    }

    /// The rings that it has given up, each with the reason's code (docs/reference/virtio-net.md).
    ///
    /// # Errors
    /// If the function cannot be accessed.
    pub fn faults(&mut self) -> Result<SmallVec<[(usize, u32); MAX_RINGS]>, PciError> {
        let mut faults = SmallVec::new();
        if self.device.read8(BAR, common::DEVICE_STATUS)? & status::NEEDS_RESET != 0 {
            for ring in (0..self.rings).filter(|ring| self.running.is_some_and(|queues| queues[*ring].is_some())) {
                let code = self.device.read32(BAR, FAULT + 4 * ring as u64)?;
                if code != 0 {
                    faults.push((ring, code));
                }
            }
        }
        Ok(faults)
    }

    /// Bytes of its configuration; beyond what it has, zeros.
    ///
    /// # Errors
    /// If the function cannot be accessed.
    pub fn config(&mut self, offset: usize, into: &mut [u8]) -> Result<(), PciError> {
        let mut all = [0; CONFIG_BYTES];
        for (word, at) in all.chunks_exact_mut(4).zip((DEVICE..).step_by(4)) {
            word.copy_from_slice(&self.device.read32(BAR, at)?.to_le_bytes());
        }
        into.fill(0);
        for (byte, value) in into.iter_mut().zip(all.iter().skip(offset)) {
            *byte = *value;
        }
        Ok(())
    }
}

/// The features that the card is given. A front end that has not agreed to the ring for commands serves it itself, as QEMU does: what works by
/// commands is not the card's then, but for the pairs, which it is told by a register.
fn own_features(features: u64) -> u64 {
    if features & feature::CTRL_VQ != 0 {
        return features;
    }
    let pairs = if features & feature::MQ != 0 { feature::MQ | feature::CTRL_VQ } else { 0 };
    features & !feature::BY_COMMANDS | pairs
}

/// A vector for each ring, and that of the configuration.
const _: () = assert!(MAX_RINGS < 16);
