// SPDX-License-Identifier: Apache-2.0
//! A hostile driver of the network card (virtio 1.2): chains that loop, leave their table, point nowhere or the wrong way, have no bytes;
//! indices that jump; descriptors that change while the card reads them; memory that goes; resets of every kind in the middle.

use std::path::Path;
use std::sync::Arc;

use nacelle_pci::PciDevice;
use nacelle_virtio::card::{self, MAX_RINGS, common, feature, status};

use crate::arena::{Arena, IOVA, zone};
use crate::driver::{Driver, tolerated};
use crate::{Failure, STATION, UNKNOWN};

const BAR: u8 = 0;
const BAR_BYTES: u64 = 0x2000;
/// The addresses of a queue lie from `QUEUE_DESC` to before this.
const QUEUE_END: u64 = common::QUEUE_DEVICE + 8;
/// Bits of descriptors (2.7.5).
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// Queues of the card, with that for commands.
const QUEUES: u16 = MAX_RINGS as u16;
/// Entries of a queue at most, and bytes of the used ring then.
const LONGEST: u16 = 256;
const USED_BYTES: u64 = 4 + 8 * LONGEST as u64 + 2;
const DESCRIPTOR: usize = 16;
/// Bytes from one frame in the plain zone to the next, and of the header before it.
const FRAME: usize = 2048;
const HEADER: usize = 12;

/// A queue, as the card was told of it. Parts that lie outside of the arena are `None`.
#[derive(Debug, Clone)]
struct Queue {
    number: u16,
    size: u16,
    table: Option<usize>,
    available: Option<usize>,
    index: u16,
    next: u16,
}

impl Queue {
    fn receives(&self) -> bool {
        self.number.is_multiple_of(2)
    }
}

/// The driver.
pub(crate) struct Card {
    driver: Driver,
    queues: Vec<Queue>,
    /// One of so many things goes wrong, until the next set-up: a queue that has stopped is no target.
    calm: u8,
}

impl Card {
    pub(crate) fn new(slot: &Path, arena: Arc<Arena>, random: fastrand::Rng) -> Result<Self, Failure> {
        let mut card = Self { driver: Driver::new(slot, arena, random)?, queues: Vec::new(), calm: 1 };
        card.driver.device.interrupts(QUEUES + 1)?;
        card.frames()?;
        Ok(card)
    }

    /// Frames to be sent, each with a header: no byte of them is a guard.
    fn frames(&mut self) -> Result<(), Failure> {
        let mut own = [0; 6];
        self.driver.device.bar_read(BAR, card::DEVICE, &mut own)?;
        let random = &mut self.driver.random;
        let mut bytes: Vec<u8> = (0..zone::PLAIN.len()).map(|_| random.u8(..0x80)).collect();
        for frame in bytes.chunks_exact_mut(FRAME) {
            frame[..HEADER].fill(0);
            if random.u8(..4) == 0 {
                // Flags, gso_type, hdr_len, gso_size, csum_start, csum_offset.
                frame[..10].fill_with(|| random.u8(..6));
            }
            let to = [STATION, UNKNOWN, [0xff; 6], [1, 0x80, 0xc2, 0, 0, 1]][random.usize(..4)];
            frame[HEADER..HEADER + 6].copy_from_slice(&to);
            frame[HEADER + 6..HEADER + 12].copy_from_slice(if random.u8(..8) == 0 { &UNKNOWN } else { &own });
        }
        self.driver.arena.write(zone::PLAIN.start, &bytes);
        Ok(())
    }

    /// Does so many things; a reset follows.
    pub(crate) fn run(&mut self, operations: u32) -> Result<(), Failure> {
        for _ in 0..operations {
            self.step()?;
        }
        self.reset()
    }

    fn step(&mut self) -> Result<(), Failure> {
        if self.queues.is_empty() || self.driver.random.u8(..40) == 0 {
            // As a rule after a reset.
            if self.driver.random.u8(..8) != 0 {
                self.reset()?;
            }
            return self.set_up();
        }
        if !self.attacks() {
            self.post()?;
            // Time for the card: it is far slower than this process, and writes are posted.
            let linger = if self.driver.random.bool() { self.driver.random.u8(..4) } else { 0 };
            for _ in 0..linger {
                self.needs_reset()?;
            }
            return Ok(());
        }
        match self.driver.random.u8(..24) {
            0..4 => self.change(),
            4..6 => self.tear(),
            6..8 => self.notify_anything(),
            8..10 => self.read_anything(),
            10 => self.write_anything(),
            11..13 => self.driver.remap(),
            13 => self.bus_master(),
            14 => self.function_reset(),
            15 => self.begin_reset(),
            _ if self.needs_reset()? => self.reset(),
            _ => {
                self.driver.pause();
                Ok(())
            }
        }
    }

    fn needs_reset(&mut self) -> Result<bool, Failure> {
        let status = tolerated(self.driver.device.read8(BAR, common::DEVICE_STATUS))?;
        Ok(status.is_some_and(|status| status & status::NEEDS_RESET != 0))
    }

    /// By the status (2.4.1), and waits until it is done.
    fn reset(&mut self) -> Result<(), Failure> {
        self.begin_reset()?;
        self.driver.until("a reset of the card", |device| Ok(device.read8(BAR, common::DEVICE_STATUS)? == 0))?;
        self.driver.ended("after a reset of the card")
    }

    fn begin_reset(&mut self) -> Result<(), Failure> {
        self.queues.clear();
        Ok(self.driver.device.write8(BAR, common::DEVICE_STATUS, 0)?)
    }

    fn function_reset(&mut self) -> Result<(), Failure> {
        self.queues.clear();
        self.driver.device.reset()?;
        self.driver.ended("after a function-level reset of the card")?;
        Ok(self.driver.device.set_bus_master(true)?)
    }

    fn bus_master(&mut self) -> Result<(), Failure> {
        self.driver.device.set_bus_master(false)?;
        self.driver.pause();
        Ok(self.driver.device.set_bus_master(true)?)
    }

    fn set(&mut self, register: u64, value: u16) -> Result<(), Failure> {
        Ok(self.driver.device.write16(BAR, register, value)?)
    }

    /// Whether something goes wrong now.
    fn attacks(&mut self) -> bool {
        self.driver.random.u8(..self.calm) == 0
    }

    /// As the standard has it (3.1.1), with a step left out now and then.
    fn set_up(&mut self) -> Result<(), Failure> {
        self.calm = [4, 16, 64][self.driver.random.usize(..3)];
        self.driver.device.write8(BAR, common::DEVICE_STATUS, status::ACKNOWLEDGE | status::DRIVER)?;
        let mut features = 0;
        for (half, shift) in [(0, 0), (1, 32)] {
            self.driver.device.write32(BAR, common::DEVICE_FEATURE_SELECT, half)?;
            features |= u64::from(self.driver.device.read32(BAR, common::DEVICE_FEATURE)?) << shift;
        }
        features &= match self.driver.random.u8(..4) {
            0 => u64::MAX,
            1 => self.driver.random.u64(..),
            _ => !(feature::EVENT_IDX & self.driver.random.u64(..)),
        };
        if self.driver.random.u8(..16) != 0 {
            features |= feature::VERSION_1;
        }
        for (half, shift) in [(0, 0), (1, 32)] {
            self.driver.device.write32(BAR, common::DRIVER_FEATURE_SELECT, half)?;
            self.driver.device.write32(BAR, common::DRIVER_FEATURE, (features >> shift) as u32)?;
        }
        if self.driver.random.u8(..16) != 0 {
            self.driver.device.write8(
                BAR,
                common::DEVICE_STATUS,
                status::ACKNOWLEDGE | status::DRIVER | status::FEATURES_OK,
            )?;
        }
        self.set(common::CONFIG_MSIX_VECTOR, 0)?;
        let mut numbers: Vec<u16> = (0..QUEUES).collect();
        self.driver.random.shuffle(&mut numbers);
        // Most often the first pair, which gets what others send.
        numbers.truncate(self.driver.random.usize(..4));
        numbers.extend([0, 1].into_iter().filter(|_| self.driver.random.u8(..8) != 0));
        for number in numbers {
            self.place(number)?;
        }
        if self.driver.random.u8(..16) != 0 {
            let ok = status::ACKNOWLEDGE | status::DRIVER | status::FEATURES_OK | status::DRIVER_OK;
            self.driver.device.write8(BAR, common::DEVICE_STATUS, ok)?;
        }
        for number in 0..self.queues.len() {
            if self.queues[number].receives() {
                self.fill(number);
                self.notify(self.queues[number].number)?;
            }
        }
        Ok(())
    }

    /// Somewhere for a part of a queue: in the arena, or nowhere.
    fn part(&mut self, receives: bool, bytes: usize, align: usize) -> (u64, Option<usize>) {
        let rings = if receives { zone::RECEIVE_RINGS } else { zone::SEND_RINGS };
        let at = self.driver.place(rings, bytes, align);
        match self.driver.random.u8(..32) {
            0 => (self.driver.nowhere(), None),
            // Not where it should begin.
            1 => (IOVA + at as u64 + self.driver.random.u64(1..16), Some(at)),
            _ => (IOVA + at as u64, Some(at)),
        }
    }

    fn place(&mut self, number: u16) -> Result<(), Failure> {
        let receives = number.is_multiple_of(2);
        let size = match self.driver.random.u8(..16) {
            0 => self.driver.random.u16(..),
            1 => 1,
            _ => 1 << self.driver.random.u8(1..=8),
        };
        let entries = usize::from(size.min(LONGEST));
        let (table, table_at) = self.part(receives, DESCRIPTOR * entries, 16);
        let (available, available_at) = self.part(receives, 6 + 2 * entries, 2);
        let (used, _) = self.part(receives, USED_BYTES as usize, 4);
        // Whatever becomes of its lowest bits.
        self.driver.offer(used & !15, USED_BYTES + 32);
        if let Some(at) = available_at {
            self.driver.arena.write(at, &[0; 4]);
        }
        self.set(common::QUEUE_SELECT, number)?;
        self.set(common::QUEUE_SIZE, size)?;
        let vector = if self.driver.random.bool() { number + 1 } else { 0xffff };
        self.set(common::QUEUE_MSIX_VECTOR, vector)?;
        for (at, address) in
            [(common::QUEUE_DESC, table), (common::QUEUE_DRIVER, available), (common::QUEUE_DEVICE, used)]
        {
            self.driver.device.write64(BAR, at, address)?;
        }
        self.set(common::QUEUE_ENABLE, 1)?;
        let queue = Queue { number, size: size.max(1), table: table_at, available: available_at, index: 0, next: 0 };
        self.queues.push(queue);
        Ok(())
    }

    fn notify(&mut self, queue: u16) -> Result<(), Failure> {
        self.set(card::NOTIFY + 4 * u64::from(queue), queue)
    }

    /// Buffers for half of a queue that receives.
    fn fill(&mut self, which: usize) {
        for _ in 0..self.queues[which].size.min(LONGEST) / 2 {
            let at = self.driver.place(zone::WRITABLE, FRAME, 1);
            let head = self.slot(which);
            self.descriptor(which, head, (IOVA + at as u64, FRAME as u32), WRITE, 0);
            self.available(which, head);
        }
        self.publish(which);
    }

    /// The next descriptor of a queue.
    fn slot(&mut self, which: usize) -> u16 {
        let queue = &mut self.queues[which];
        queue.next = (queue.next + 1) % queue.size.min(LONGEST);
        queue.next
    }

    fn descriptor(&mut self, which: usize, slot: u16, buffer: (u64, u32), flags: u16, next: u16) {
        if let Some(table) = self.queues[which].table {
            self.write_descriptor(table + DESCRIPTOR * usize::from(slot), buffer, flags, next);
        }
    }

    fn write_descriptor(&mut self, at: usize, (address, len): (u64, u32), flags: u16, next: u16) {
        self.driver.says(at, address, len, flags & WRITE != 0);
        let mut bytes = address.to_le_bytes().to_vec();
        bytes.extend(len.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        self.driver.arena.write(at, &bytes);
    }

    /// Puts a head into the available ring.
    fn available(&mut self, which: usize, head: u16) {
        let queue = &mut self.queues[which];
        let place = usize::from(queue.index % queue.size.min(LONGEST));
        queue.index = queue.index.wrapping_add(1);
        if let Some(at) = queue.available {
            self.driver.arena.write(at + 4 + 2 * place, &head.to_le_bytes());
        }
    }

    fn publish(&mut self, which: usize) {
        let queue = &self.queues[which];
        if let Some(at) = queue.available {
            self.driver.arena.write(at + 2, &queue.index.to_le_bytes());
        }
    }

    /// A buffer for a queue, and its direction.
    fn buffer(&mut self, receives: bool) -> ((u64, u32), u16) {
        let attack = self.attacks();
        let random = &mut self.driver.random;
        let len = match random.u8(..64) {
            0 if attack => random.u32(..),
            1..16 if attack => 0,
            16..20 => random.u32(1..13),
            20..32 => random.u32(1..4000),
            _ => *random.choice(&[HEADER as u32 + 60, 64, 256, 1526, FRAME as u32]).expect("there are some"),
        };
        let mut flags = if receives { WRITE } else { 0 };
        if attack && random.u8(..8) == 0 {
            flags ^= WRITE;
        }
        let nowhere = attack && random.u8(..4) == 0;
        let any = random.u8(..4) == 0;
        let address = match (nowhere, receives) {
            (true, _) => self.driver.nowhere(),
            (false, true) => IOVA + self.driver.place(zone::WRITABLE, 64, 1) as u64,
            // Never beyond the plain zone, as far as it is sent.
            (false, false) if any => IOVA + self.driver.place(zone::PLAIN, 4096, 1) as u64,
            (false, false) => IOVA + self.driver.place(zone::PLAIN, FRAME, FRAME) as u64,
        };
        let len = if receives || nowhere { len } else { len.min(4096) };
        ((address, len), flags)
    }

    /// A chain of a queue, good or bad; its head.
    fn chain(&mut self, which: usize) -> u16 {
        let (receives, size) = (self.queues[which].receives(), self.queues[which].size.min(LONGEST));
        let head = self.slot(which);
        if self.driver.random.u8(..6) == 0 {
            self.indirect(which, head, receives);
            return head;
        }
        let attack = if self.attacks() { self.driver.random.u8(8..16) } else { 0 };
        let count = if attack == 8 { self.driver.random.u16(1..=80) } else { self.driver.random.u16(1..=3) };
        let mut slot = head;
        for left in (0..count).rev() {
            let (buffer, mut flags) = self.buffer(receives);
            let mut next = self.slot(which);
            if left > 0 {
                flags |= NEXT;
            } else {
                match attack {
                    9 => (flags, next) = (flags | NEXT, head),
                    10 => (flags, next) = (flags | NEXT, slot),
                    11 => (flags, next) = (flags | NEXT, size.saturating_add(self.driver.random.u16(..3))),
                    12 => (flags, next) = (flags | NEXT, self.driver.random.u16(..)),
                    13 => flags |= self.driver.random.u16(..),
                    _ => {}
                }
            }
            self.descriptor(which, slot, buffer, flags, next);
            slot = next % size;
        }
        match attack {
            14 => size.saturating_add(self.driver.random.u16(..2)),
            15 => self.driver.random.u16(..),
            _ => head,
        }
    }

    /// An indirect table, with something wrong now and then.
    fn indirect(&mut self, which: usize, head: u16, receives: bool) {
        let tables = if receives { zone::RECEIVE_TABLES } else { zone::SEND_TABLES };
        let count = self.driver.random.u16(1..=6);
        let at = self.driver.place(tables, DESCRIPTOR * usize::from(count), 16);
        let attack = if self.attacks() { self.driver.random.u8(..7) } else { 7 };
        for entry in 0..count {
            let (buffer, mut flags) = self.buffer(receives);
            let mut next = entry + 1;
            if entry + 1 < count {
                flags |= NEXT;
            } else {
                match attack {
                    0 => (flags, next) = (flags | NEXT, self.driver.random.u16(..8)),
                    1 => flags |= INDIRECT,
                    _ => {}
                }
            }
            self.write_descriptor(at + DESCRIPTOR * usize::from(entry), buffer, flags, next);
        }
        let bytes = DESCRIPTOR as u32 * u32::from(count);
        let len = match attack {
            2 => bytes + self.driver.random.u32(1..16),
            3 => 0,
            4 => u32::MAX - 15,
            _ => bytes,
        };
        let address = if attack == 5 { self.driver.nowhere() } else { IOVA + at as u64 };
        let flags = INDIRECT | if attack == 6 { NEXT } else { 0 };
        // It is a table, not a buffer: nothing is written there.
        if let Some(table) = self.queues[which].table {
            let at = table + DESCRIPTOR * usize::from(head);
            self.write_descriptor(at, (address, len), flags, head);
        }
    }

    /// Some chains for some queue.
    fn post(&mut self) -> Result<(), Failure> {
        let which = self.driver.random.usize(..self.queues.len());
        for _ in 0..self.driver.random.u8(1..=4) {
            let head = self.chain(which);
            self.available(which, head);
        }
        self.publish(which);
        self.notify(self.queues[which].number)
    }

    /// Another descriptor in the place of one that the card may be reading.
    fn change(&mut self) -> Result<(), Failure> {
        let which = self.driver.random.usize(..self.queues.len());
        let (receives, size) = (self.queues[which].receives(), self.queues[which].size.min(LONGEST));
        let (buffer, flags) = self.buffer(receives);
        let slot = self.driver.random.u16(..size);
        self.descriptor(which, slot, buffer, flags, 0);
        Ok(())
    }

    /// The index alone, forwards by little or by much, or back.
    fn tear(&mut self) -> Result<(), Failure> {
        let which = self.driver.random.usize(..self.queues.len());
        let by = match self.driver.random.u8(..4) {
            0 => self.driver.random.u16(..),
            1 => u16::MAX,
            2 => self.queues[which].size,
            _ => self.driver.random.u16(1..4),
        };
        self.queues[which].index = self.queues[which].index.wrapping_add(by);
        self.publish(which);
        self.notify(self.queues[which].number)
    }

    fn notify_anything(&mut self) -> Result<(), Failure> {
        let at = card::NOTIFY + self.driver.random.u64(..0x80);
        let value = self.driver.random.u32(..);
        tolerated(self.driver.device.write32(BAR, at & !3, value))?;
        let queue = self.driver.random.u16(..QUEUES);
        self.notify(queue)
    }

    fn read_anything(&mut self) -> Result<(), Failure> {
        let mut bytes = [0; 8];
        let len = 1 << self.driver.random.u8(..4);
        let at = self.driver.random.u64(..=BAR_BYTES - len as u64);
        tolerated(self.driver.device.bar_read(BAR, at, &mut bytes[..len]))?;
        Ok(())
    }

    /// Any register but the addresses of queues, since nobody knows then what the card was offered.
    fn write_anything(&mut self) -> Result<(), Failure> {
        let value = self.driver.random.u64(..).to_le_bytes();
        let len = 1 << self.driver.random.u8(..3);
        let at = self.driver.random.u64(..=BAR_BYTES - len as u64);
        if at + len as u64 > common::QUEUE_DESC && at < QUEUE_END {
            return Ok(());
        }
        // It may have been a reset.
        tolerated(self.driver.device.bar_write(BAR, at, &value[..len]))?;
        Ok(())
    }
}
