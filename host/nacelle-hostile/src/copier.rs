// SPDX-License-Identifier: Apache-2.0
//! A hostile driver of the copy engine (docs/reference/copy.md): rings of every size anywhere, a producer that jumps, descriptors full of
//! noise or changed while they are read, copies from nowhere to nowhere, memory that goes, resets in the middle.
//!
//! The engine may use all memory of the device, as whoever has the function may by its BARs. So what is left alone here is the memory of
//! calls, which belongs to the well-behaved.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use nacelle_copy::{COMPLETION_BYTES, DESCRIPTOR_BYTES, HOST, INTERRUPT, REPORT};
use nacelle_manage::map::{Register, copy};
use nacelle_pci::{PciDevice, UserDevice};

use crate::Failure;
use crate::arena::{Arena, IOVA, zone};
use crate::driver::{Driver, tolerated};

const BAR: u8 = 0;
const DESCRIPTOR: usize = DESCRIPTOR_BYTES as usize;
/// No memory of the device has such an address.
const BEYOND: u64 = 1 << 40;

/// A ring of descriptors in the arena.
#[derive(Debug, Clone)]
struct Ring {
    at: usize,
    entries: u16,
    producer: u16,
}

/// The driver.
pub(crate) struct Copier {
    driver: Driver,
    /// The host's part of the device's memory.
    near: Range<u64>,
    ring: Option<Ring>,
}

fn set(device: &mut UserDevice, register: Register, value: u32) -> Result<(), Failure> {
    Ok(device.write32(BAR, register.at(copy::BASE).into(), value)?)
}

fn get(device: &mut UserDevice, register: Register) -> Result<u32, Failure> {
    Ok(device.read32(BAR, register.at(copy::BASE).into())?)
}

impl Copier {
    pub(crate) fn new(slot: &Path, arena: Arc<Arena>, random: fastrand::Rng) -> Result<Self, Failure> {
        let mut driver = Driver::new(slot, arena, random)?;
        let device = &mut driver.device;
        device.interrupts(1)?;
        let mut wide = |low, high| -> Result<u64, Failure> {
            Ok(u64::from(get(device, low)?) | u64::from(get(device, high)?) << 32)
        };
        let start = wide(copy::MEMORY_LO, copy::MEMORY_HI)?;
        let near = start..start + wide(copy::MEMORY_SIZE_LO, copy::MEMORY_SIZE_HI)?;
        let numbers: Vec<u8> = (0..zone::PLAIN.len()).map(|_| driver.random.u8(..)).collect();
        driver.arena.write(zone::PLAIN.start, &numbers);
        Ok(Self { driver, near, ring: None })
    }

    /// Does so many things, and ends the queue.
    pub(crate) fn run(&mut self, operations: u32) -> Result<(), Failure> {
        for _ in 0..operations {
            self.step()?;
        }
        self.end()
    }

    fn step(&mut self) -> Result<(), Failure> {
        if self.ring.is_none() {
            return self.begin();
        }
        match self.driver.random.u8(..64) {
            0..40 => self.post(),
            40..44 => self.change(),
            44..46 => self.jump(),
            46..48 => self.driver.remap(),
            48 => self.bus_master(),
            49 => self.reset(),
            50..52 => self.end(),
            52..54 => self.write_anything(),
            54..57 if get(&mut self.driver.device, copy::STATE)? >> 8 != 0 => self.end(),
            _ => {
                self.driver.pause();
                Ok(())
            }
        }
    }

    /// Tells the engine of rings, and begins.
    fn begin(&mut self) -> Result<(), Failure> {
        let random = &mut self.driver.random;
        let mut logs = [(); 2].map(|()| random.u32(5..=7));
        if random.u8(..16) == 0 {
            logs[random.usize(..2)] = random.u32(..16);
        }
        let [descriptors, completions] = logs;
        // A ring lies at a multiple of its bytes.
        let bytes = DESCRIPTOR << descriptors.min(10);
        let at = self.driver.place(zone::RECEIVE_RINGS, bytes, bytes);
        let report_bytes = COMPLETION_BYTES << completions;
        let reports = if self.driver.random.u8(..16) == 0 {
            HOST + self.driver.nowhere() % HOST
        } else {
            let bytes = report_bytes.min(0x8000) as usize;
            HOST + IOVA + self.driver.place(zone::SEND_RINGS, bytes, bytes) as u64
        };
        if let Some(iova) = reports.checked_sub(HOST) {
            self.driver.offer(iova & !(report_bytes - 1), report_bytes);
        }
        let ring = if self.driver.random.u8(..16) == 0 {
            HOST + self.driver.nowhere() % HOST
        } else {
            HOST + IOVA + at as u64
        };
        let sizes = descriptors | completions << 8 | self.driver.random.u32(..4) << 16;
        let device = &mut self.driver.device;
        set(device, copy::DESCRIPTORS_LO, ring as u32)?;
        set(device, copy::DESCRIPTORS_HI, (ring >> 32) as u32)?;
        set(device, copy::COMPLETIONS_LO, reports as u32)?;
        set(device, copy::COMPLETIONS_HI, (reports >> 32) as u32)?;
        set(device, copy::SIZES, sizes)?;
        set(device, copy::CTRL, 1)?;
        self.ring = Some(Ring { at, entries: 1 << descriptors.min(10), producer: 0 });
        Ok(())
    }

    /// Ends the queue, and waits until it has ended.
    fn end(&mut self) -> Result<(), Failure> {
        self.ring = None;
        set(&mut self.driver.device, copy::CTRL, 0)?;
        let running = |device: &mut UserDevice| Ok(copy::STATE_RUNNING.of(get(device, copy::STATE)?) == 0);
        self.driver.until("the end of the copy queue", running)?;
        self.driver.ended("after the end of the copy queue")
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.ring = None;
        self.driver.device.reset()?;
        self.driver.ended("after a function-level reset of the device")?;
        self.driver.device.set_bus_master(true)?;
        // What stopped by the reset begins again only behind this.
        self.end()
    }

    fn bus_master(&mut self) -> Result<(), Failure> {
        self.driver.device.set_bus_master(false)?;
        self.driver.pause();
        Ok(self.driver.device.set_bus_master(true)?)
    }

    fn length(&mut self) -> u32 {
        let random = &mut self.driver.random;
        match random.u16(..256) {
            0 => random.u32(..1 << 20),
            1..16 => 0,
            16..64 => random.u32(1..65),
            _ => random.u32(1..8000),
        }
    }

    /// Where a copy begins or ends: host memory, the host's memory in the device, nowhere.
    fn end_of_copy(&mut self, zone: Range<usize>) -> u64 {
        match self.driver.random.u8(..24) {
            0 => HOST + self.driver.nowhere() % HOST,
            1 => BEYOND + self.driver.random.u64(..1 << 40),
            2..12 => self.near.start + self.driver.random.u64(..self.near.end - self.near.start - (1 << 21)),
            _ => HOST + IOVA + self.driver.place(zone, 64, 1) as u64,
        }
    }

    /// Writes a descriptor, most often a right one.
    fn descriptor(&mut self, at: usize) {
        let (source, destination) = (self.end_of_copy(zone::PLAIN), self.end_of_copy(zone::WRITABLE));
        let length = self.length();
        let mut flags = self.driver.random.u32(..4) & (REPORT | INTERRUPT);
        if self.driver.random.u8(..64) == 0 {
            flags = self.driver.random.u32(..);
        }
        if let Some(iova) = destination.checked_sub(HOST) {
            self.driver.says(at, iova, length, true);
        } else {
            // Its length may be read together with an earlier destination.
            self.driver.says(at, 0, length, true);
        }
        let mut bytes = source.to_le_bytes().to_vec();
        bytes.extend(destination.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(self.driver.random.u32(..).to_le_bytes());
        bytes.extend([0; 4]);
        self.driver.arena.write(at, &bytes);
    }

    fn ring_to(&mut self, producer: u16) -> Result<(), Failure> {
        if let Some(ring) = &mut self.ring {
            ring.producer = producer;
        }
        set(&mut self.driver.device, copy::PRODUCER, producer.into())
    }

    /// Some descriptors behind the last ones, as far as there is room for them, as a rule.
    fn post(&mut self) -> Result<(), Failure> {
        let Some(ring) = self.ring.clone() else { return Ok(()) };
        let consumer = get(&mut self.driver.device, copy::CONSUMER)? as u16;
        let room = ring.entries.saturating_sub(ring.producer.wrapping_sub(consumer));
        let mut count = self.driver.random.u16(1..=8);
        if self.driver.random.u8(..64) != 0 {
            count = count.min(room);
        }
        for number in 0..count {
            let place = usize::from(ring.producer.wrapping_add(number) % ring.entries);
            self.descriptor(ring.at + DESCRIPTOR * place);
        }
        self.ring_to(ring.producer.wrapping_add(count))
    }

    /// Another descriptor in the place of one that the engine may be reading.
    fn change(&mut self) -> Result<(), Failure> {
        let Some(ring) = self.ring.clone() else { return Ok(()) };
        let place = self.driver.random.usize(..usize::from(ring.entries));
        self.descriptor(ring.at + DESCRIPTOR * place);
        Ok(())
    }

    /// The doorbell alone, forwards by little or by much, or back.
    fn jump(&mut self) -> Result<(), Failure> {
        let Some(ring) = self.ring.clone() else { return Ok(()) };
        let by = match self.driver.random.u8(..4) {
            0 => self.driver.random.u16(..),
            1 => u16::MAX,
            _ => self.driver.random.u16(..ring.entries),
        };
        self.ring_to(ring.producer.wrapping_add(by))
    }

    /// A setting while it runs, which is ignored, or a register that there is not.
    fn write_anything(&mut self) -> Result<(), Failure> {
        let value = self.driver.random.u32(..);
        if get(&mut self.driver.device, copy::STATE)? & 1 == 1 {
            let register =
                *self.driver.random.choice(&[copy::SIZES, copy::STATE, copy::COPIES]).expect("there are some");
            tolerated(self.driver.device.write32(BAR, register.at(copy::BASE).into(), value))?;
        }
        let at = copy::BASE + 4 * self.driver.random.u32(0x40..0x400);
        tolerated(self.driver.device.read32(BAR, at.into()))?;
        Ok(())
    }
}
