// SPDX-License-Identifier: Apache-2.0
//! A virtio network card in software, as a PCI function: the registers of docs/reference/virtio-net.md, two pairs of split rings and one
//! for commands, and a network that gives each frame back, to the pair that sent it. It tests the back end without the RTL.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nacelle_pci::{UserConfig, UserDevice};
use nacelle_slot::config_space::{Bar, ConfigSpace, Description, Identity, Link, Msix, Place};
use nacelle_slot::dma::Fault;
use nacelle_slot::pages::Access;
use nacelle_slot::{Answer, BarAccess, Errno, Function, Host, ResetCause, Server, ServerConfig, Token, Transfer};

pub const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const MTU: u16 = 1500;
pub const MAX_SIZE: u16 = 256;
pub const PAIRS: usize = 2;
/// The ring for commands, if the driver takes all pairs.
const CONTROL: usize = 2 * PAIRS;
/// `VERSION_1`, `MQ`, `CTRL_VQ`, `STATUS`, `MAC`, `MTU`, segmentation with `CSUM`, and `HOST_UFO`, which the back end does not hand on.
pub const OFFERED: u64 = 1 << 32 | MQ | 1 << 17 | 1 << 16 | 1 << 14 | 1 << 13 | 1 << 12 | 1 << 11 | 1 << 5 | 1 << 3 | 1;
const MQ: u64 = 1 << 22;
const HEADER: usize = 12;
/// The code of a queue whose memory failed.
pub const MEMORY_FAILED: u32 = 11;

/// What a test sees of the card.
#[derive(Debug, Default)]
pub struct Seen {
    /// Ranges of memory that it has.
    pub memory: AtomicUsize,
    /// It has been started, and not been reset since.
    pub running: AtomicBool,
    /// Frames that were sent.
    pub frames: AtomicUsize,
    /// Accesses to registers.
    pub accesses: AtomicUsize,
    /// Pairs that frames are for.
    pub pairs: AtomicUsize,
    /// Commands that were answered.
    pub commands: AtomicUsize,
    /// A reset is not done before this is cleared.
    pub stuck: AtomicBool,
    /// Function-level resets.
    pub resets: AtomicUsize,
    /// It sends nothing before this is cleared.
    pub deaf: AtomicBool,
    /// What it says against the rules when it gives a buffer back.
    pub lie: Mutex<Option<Lie>>,
    /// Rings, as it was told.
    pub rings: Mutex<Vec<[u64; 4]>>,
}

/// A way to break the rules of a used ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// A buffer that there is not.
    NoBuffer,
    /// One that it has given back before.
    Twice,
    /// More bytes than the buffer has.
    TooMuch,
    /// More buffers than it has.
    TooMany,
}

#[derive(Debug, Default, Clone, Copy)]
struct Queue {
    size: u16,
    vector: u16,
    enabled: bool,
    /// Descriptors, available, used.
    parts: [u64; 3],
    next: u16,
    used: u16,
    code: u32,
}

/// The number of a chain, and its pieces: address, length, whether it is written.
type Chain = (u16, Vec<(u64, u32, bool)>);

#[derive(Debug, Default)]
struct SoftCard {
    seen: Arc<Seen>,
    device_select: u32,
    driver_select: u32,
    features: u64,
    config_vector: u16,
    status: u8,
    select: u16,
    /// The last one is for commands.
    queues: [Queue; CONTROL + 1],
    notified: [bool; CONTROL + 1],
    frames: [VecDeque<Vec<u8>>; PAIRS],
    resetting: bool,
}

fn read(host: &mut Host<'_>, at: u64, into: &mut [u8]) -> Result<(), Fault> {
    host.dma_read(at, into).map(|transfer| assert_eq!(transfer, Transfer::Done))
}

fn write(host: &mut Host<'_>, at: u64, bytes: &[u8]) -> Result<(), Fault> {
    host.dma_write(at, bytes).map(|transfer| assert_eq!(transfer, Transfer::Done))
}

fn half(host: &mut Host<'_>, at: u64) -> Result<u16, Fault> {
    let mut bytes = [0; 2];
    read(host, at, &mut bytes).map(|()| u16::from_le_bytes(bytes))
}

impl SoftCard {
    fn clear(&mut self) {
        *self = Self { seen: Arc::clone(&self.seen), ..Self::default() };
        self.queues = [Queue { size: MAX_SIZE, vector: 0xffff, ..Queue::default() }; CONTROL + 1];
        self.seen.pairs.store(1, Ordering::Relaxed);
        self.seen.running.store(false, Ordering::Relaxed);
    }

    /// The queue that the driver gives a number.
    fn number(&self, number: usize) -> Option<usize> {
        match number {
            2 if self.features & MQ == 0 => Some(CONTROL),
            0 | 1 => Some(number),
            _ if self.features & MQ == 0 => None,
            _ => Some(number).filter(|number| *number <= CONTROL),
        }
    }

    fn queue(&mut self) -> Option<&mut Queue> {
        let number = self.number(self.select.into())?;
        self.queues.get_mut(number)
    }

    fn word(&mut self, at: u64) -> u32 {
        let (select, status) = (u32::from(self.select), u32::from(self.status));
        let queue = self.queue().copied();
        match at {
            0x00 => self.device_select,
            0x04 => (OFFERED >> (32 * self.device_select.min(1))) as u32,
            0x10 => (CONTROL as u32 + 1) << 16 | u32::from(self.config_vector),
            0x14 => select << 16 | status,
            0x18 => queue.map_or(0, |queue| u32::from(queue.vector) << 16 | u32::from(queue.size)),
            0x80 => u32::from_le_bytes([MAC[0], MAC[1], MAC[2], MAC[3]]),
            0x84 => u32::from_le_bytes([MAC[4], MAC[5], 1, 0]),
            0x88 => u32::from(MTU) << 16 | PAIRS as u32,
            0x180..0x194 => self.number((at as usize - 0x180) / 4).map_or(0, |number| self.queues[number].code),
            _ => 0,
        }
    }

    /// A field, by the width that the standard gives it.
    fn set(&mut self, at: u64, bytes: &[u8]) {
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        let value = u32::from_le_bytes(word);
        match (at, bytes.len()) {
            (0x00, 4) => self.device_select = value,
            (0x08, 4) => self.driver_select = value,
            (0x0c, 4) => {
                let shift = 32 * self.driver_select;
                self.features = self.features & !(0xffff_ffff << shift) | u64::from(value) << shift;
            }
            (0x10, 2) => self.config_vector = value as u16,
            (0x14, 1) if value == 0 => {
                self.resetting = true;
                self.seen.running.store(false, Ordering::Relaxed);
            }
            (0x14, 1) => {
                let segments = self.features & (1 << 12 | 1 << 11) != 0;
                let fits = self.features & 1 << 32 != 0
                    && (self.features & MQ == 0 || self.features & 1 << 17 != 0)
                    && (!segments || self.features & 1 != 0)
                    && self.features & !OFFERED == 0;
                self.status = value as u8 & if fits { 0xff } else { !8 };
                if self.status & 4 != 0 {
                    self.seen.running.store(true, Ordering::Relaxed);
                    let told = |queue: &Queue| [queue.size.into(), queue.parts[0], queue.parts[1], queue.parts[2]];
                    *self.seen.rings.lock().unwrap() =
                        self.queues.iter().filter(|queue| queue.enabled).map(told).collect();
                }
            }
            (0x16, 2) => self.select = value as u16,
            (0x18, 2) => _ = self.queue().map(|queue| queue.size = value as u16),
            (0x1a, 2) => _ = self.queue().map(|queue| queue.vector = value as u16),
            (0x1c, 2) => _ = self.queue().map(|queue| queue.enabled = value == 1),
            (0x20..0x38, 4) => {
                let (part, shift) = ((at as usize - 0x20) / 8, 32 * ((at / 4) & 1));
                let _there_is_none = self.queue().map(|queue| {
                    queue.parts[part] = queue.parts[part] & !(0xffff_ffff << shift) | u64::from(value) << shift;
                });
            }
            (0xc0, 2) => self.seen.pairs.store(value as usize, Ordering::Relaxed),
            (0x100..0x114, 2) => {
                let number = self.number((at as usize - 0x100) / 4).expect("a queue that there is");
                self.notified[number] = true;
            }
            _ => panic!("no field of {} bytes is at {at:#x}", bytes.len()),
        }
    }

    fn work(&mut self, host: &mut Host<'_>) {
        if self.resetting {
            if !self.seen.stuck.load(Ordering::Relaxed) {
                self.clear();
            }
            return;
        }
        if self.status & 4 == 0 {
            return;
        }
        for number in [CONTROL, 1, 3, 0, 2] {
            let queue = self.queues[number];
            if !queue.enabled || queue.code != 0 {
                continue;
            }
            let result = match number {
                CONTROL => self.command(host),
                _ if number % 2 == 1 => self.send(host, number),
                _ => self.receive(host, number),
            };
            if result.is_err() {
                self.queues[number].code = MEMORY_FAILED;
                self.status |= 64;
                let _it_has_none = host.interrupt(self.config_vector);
            }
        }
    }

    /// The next chain of a queue.
    fn chain(&mut self, host: &mut Host<'_>, number: usize) -> Result<Option<Chain>, Fault> {
        let queue = self.queues[number];
        let available = half(host, queue.parts[1] + 2)?;
        if available == queue.next {
            return Ok(None);
        }
        let head = half(host, queue.parts[1] + 4 + 2 * u64::from(queue.next % queue.size))?;
        let (mut pieces, mut at) = (Vec::new(), head);
        for _ in 0..queue.size {
            let mut bytes = [0; 16];
            read(host, queue.parts[0] + 16 * u64::from(at % queue.size), &mut bytes)?;
            let address = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            let len = u32::from_le_bytes(bytes[8..12].try_into().unwrap());
            pieces.push((address, len, bytes[12] & 2 != 0));
            if bytes[12] & 1 == 0 {
                break;
            }
            at = u16::from_le_bytes([bytes[14], bytes[15]]);
        }
        Ok(Some((head, pieces)))
    }

    fn give_back(&mut self, host: &mut Host<'_>, number: usize, head: u16, len: u32) -> Result<(), Fault> {
        let lie = *self.seen.lie.lock().unwrap();
        let queue = &mut self.queues[number];
        let (head, len) = match lie {
            Some(Lie::NoBuffer) => (u32::from(queue.size), len),
            Some(Lie::Twice) => (0, len),
            Some(Lie::TooMuch) => (head.into(), 1 << 20),
            _ => (head.into(), len),
        };
        let element = [head.to_le_bytes(), len.to_le_bytes()].concat();
        write(host, queue.parts[2] + 4 + 8 * u64::from(queue.used % queue.size), &element)?;
        queue.used = queue.used.wrapping_add(if lie == Some(Lie::TooMany) { queue.size + 1 } else { 1 });
        queue.next = queue.next.wrapping_add(1);
        write(host, queue.parts[2] + 2, &queue.used.to_le_bytes())?;
        let _it_has_none = host.interrupt(queue.vector);
        Ok(())
    }

    /// All commands are good.
    fn command(&mut self, host: &mut Host<'_>) -> Result<(), Fault> {
        if !std::mem::take(&mut self.notified[CONTROL]) {
            return Ok(());
        }
        while let Some((head, pieces)) = self.chain(host, CONTROL)? {
            let (ack, _, written) = *pieces.last().unwrap();
            assert!(written);
            write(host, ack, &[0])?;
            self.give_back(host, CONTROL, head, 1)?;
            self.seen.commands.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn send(&mut self, host: &mut Host<'_>, number: usize) -> Result<(), Fault> {
        if self.seen.deaf.load(Ordering::Relaxed) || !std::mem::take(&mut self.notified[number]) {
            return Ok(());
        }
        while let Some((head, pieces)) = self.chain(host, number)? {
            let mut frame = Vec::new();
            for (at, len, _) in pieces {
                let from = frame.len();
                frame.resize(from + len as usize, 0);
                read(host, at, &mut frame[from..])?;
            }
            self.give_back(host, number, head, 0)?;
            self.seen.frames.fetch_add(1, Ordering::Relaxed);
            let pair = Some(number / 2).filter(|pair| *pair < self.seen.pairs.load(Ordering::Relaxed)).unwrap_or(0);
            self.frames[pair].push_back(frame.split_off(HEADER.min(frame.len())));
        }
        Ok(())
    }

    fn receive(&mut self, host: &mut Host<'_>, number: usize) -> Result<(), Fault> {
        while !self.frames[number / 2].is_empty() {
            let Some((head, pieces)) = self.chain(host, number)? else { break };
            let Some(frame) = self.frames[number / 2].pop_front() else { break };
            let mut bytes = vec![0; HEADER];
            bytes[10] = 1;
            bytes.extend(frame);
            let mut rest = &bytes[..];
            for (at, len, written) in pieces {
                assert!(written);
                let (piece, others) = rest.split_at(rest.len().min(len as usize));
                write(host, at, piece)?;
                rest = others;
            }
            self.give_back(host, number, head, bytes.len() as u32)?;
        }
        Ok(())
    }
}

impl Function for SoftCard {
    fn bar_read(&mut self, _: &mut Host<'_>, access: BarAccess, into: &mut [u8]) -> Result<Answer, Errno> {
        self.seen.accesses.fetch_add(1, Ordering::Relaxed);
        let word = self.word(access.offset & !3).to_le_bytes();
        into.copy_from_slice(&word[(access.offset & 3) as usize..][..into.len()]);
        Ok(Answer::Now)
    }

    fn bar_write(&mut self, _: &mut Host<'_>, access: BarAccess, bytes: &[u8]) -> Result<Answer, Errno> {
        self.seen.accesses.fetch_add(1, Ordering::Relaxed);
        self.set(access.offset, bytes);
        Ok(Answer::Now)
    }

    fn step(&mut self, host: &mut Host<'_>, _: Duration) {
        self.work(host);
    }

    fn reset(&mut self, _: &mut Host<'_>, _: ResetCause, _: Token) -> Result<Answer, Errno> {
        self.seen.resets.fetch_add(1, Ordering::Relaxed);
        self.clear();
        Ok(Answer::Now)
    }

    fn mapping(&mut self, _: &mut Host<'_>, _: RangeInclusive<u64>, _: Access) -> Result<(), Errno> {
        self.seen.memory.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn unmapping(&mut self, _: &mut Host<'_>, _: RangeInclusive<u64>, _: Token) -> Answer {
        self.seen.memory.fetch_sub(1, Ordering::Relaxed);
        Answer::Now
    }
}

/// The card in a slot, in a thread of its own, until it is dropped.
pub struct Slot {
    pub seen: Arc<Seen>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Slot {
    /// The slot, and the function in it as a driver sees it.
    pub fn new() -> (Self, UserDevice) {
        let (here, there) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut card = SoftCard::default();
        card.clear();
        let seen = Arc::clone(&card.seen);
        let mut server = Server::connected(there, space(), ServerConfig::default()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let begin = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                server.poll(begin.elapsed(), Duration::from_millis(1), &mut card).unwrap();
            }
        });
        (Self { seen, stop, thread: Some(thread) }, UserDevice::over(here, UserConfig::default()).unwrap())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _a_failed_card_has_said_so = thread.join();
        }
    }
}

fn space() -> ConfigSpace {
    let place = |offset| Place { bar: 0, offset };
    ConfigSpace::new(Description {
        identity: Identity::default(),
        bars: vec![Bar { index: 0, size: 0x2000, wide: true, prefetchable: false, sizes: 0 }],
        msix: Msix { vectors: 8, table: place(0x1000), pending: place(0x1800) },
        vendor: Vec::new(),
        link: Link { generation: 3, lanes: 16 },
        max_payload: 256,
    })
    .unwrap()
}
