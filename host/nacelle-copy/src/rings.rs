// SPDX-License-Identifier: Apache-2.0
//! The two rings of the copy engine, in host memory (docs/reference/copy.md, "Rings").

use nacelle_pci::{Access, DmaBuffer, PciDevice};

use crate::error::{Error, Failure};

/// The device address of the host's address 0.
pub const HOST: u64 = 1 << 63;
/// Bytes of a descriptor.
pub const DESCRIPTOR_BYTES: u64 = 32;
/// Bytes of a completion.
pub const COMPLETION_BYTES: u64 = 16;
/// Flag of a descriptor: it has a completion.
pub const REPORT: u32 = 1;
/// Flag of a descriptor: an interrupt follows its completion.
pub const INTERRUPT: u32 = 2;

/// A copy by device addresses, as the engine is told it. [`HOST`] and above are host memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// The first byte that is read.
    pub source: u64,
    /// The first byte that is written.
    pub destination: u64,
    /// Bytes.
    pub length: u32,
}

/// A device address in words.
pub(crate) fn place(address: u64) -> String {
    match address.checked_sub(HOST) {
        Some(iova) => format!("host memory at {iova:#x}"),
        None => format!("device memory at {address:#x}"),
    }
}

/// What the engine says of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) tag: u32,
    pub(crate) failure: Option<Failure>,
}

/// Both rings, of 2^`log` entries each. Each descriptor has a completion, so as many completions as there are places never overrun.
#[derive(Debug)]
pub(crate) struct Rings {
    memory: DmaBuffer,
    log: u32,
    /// Where the descriptors begin in `memory`; the completions are behind them.
    begin: u64,
    /// Descriptors that were ever put in, and completions that were taken, since the engine began.
    pub(crate) put: u64,
    pub(crate) taken: u64,
}

impl Rings {
    pub(crate) fn new(device: &mut dyn PciDevice, log: u32) -> Result<Self, Error> {
        let bytes = DESCRIPTOR_BYTES << log;
        // Twice as much: they begin at a multiple of their length.
        let memory = device.alloc_dma((2 * bytes + (COMPLETION_BYTES << log)) as usize, Access::BOTH)?;
        let begin = memory.iova().next_multiple_of(bytes) - memory.iova();
        Ok(Self { memory, log, begin, put: 0, taken: 0 })
    }

    /// As they are when the engine begins.
    pub(crate) fn clear(&mut self) -> Result<(), Error> {
        let zeros = vec![0; (COMPLETION_BYTES << self.log) as usize];
        self.memory.write(self.begin + (DESCRIPTOR_BYTES << self.log), &zeros)?;
        (self.put, self.taken) = (0, 0);
        Ok(())
    }

    /// Entries of each.
    pub(crate) fn places(&self) -> usize {
        1 << self.log
    }

    pub(crate) fn log(&self) -> u32 {
        self.log
    }

    /// Where the engine finds them: descriptors, completions.
    pub(crate) fn addresses(&self) -> (u64, u64) {
        let descriptors = HOST + self.memory.iova() + self.begin;
        (descriptors, descriptors + (DESCRIPTOR_BYTES << self.log))
    }

    /// Puts one in; the caller knows that there is room. Its tag is its number.
    pub(crate) fn put(&mut self, descriptor: &Descriptor, interrupt: bool) -> Result<(), Error> {
        let flags = REPORT | if interrupt { INTERRUPT } else { 0 };
        let mut bytes = [0; DESCRIPTOR_BYTES as usize];
        bytes[..8].copy_from_slice(&descriptor.source.to_le_bytes());
        bytes[8..16].copy_from_slice(&descriptor.destination.to_le_bytes());
        bytes[16..20].copy_from_slice(&descriptor.length.to_le_bytes());
        bytes[20..24].copy_from_slice(&flags.to_le_bytes());
        bytes[24..28].copy_from_slice(&(self.put as u32).to_le_bytes());
        let place = self.put % self.places() as u64;
        self.memory.write(self.begin + place * DESCRIPTOR_BYTES, &bytes)?;
        self.put += 1;
        Ok(())
    }

    /// Takes the next completion, if it is there.
    pub(crate) fn take(&mut self) -> Option<Completion> {
        let place = self.taken % self.places() as u64;
        let at = self.begin + (DESCRIPTOR_BYTES << self.log) + place * COMPLETION_BYTES;
        let mut half = [0; 8];
        // The half with the generation first: what was written before it is seen then.
        self.memory.read(at + 8, &mut half).ok()?;
        let status = (u64::from_le_bytes(half) >> 32) as u32;
        let generation = 1 - (self.taken >> self.log & 1) as u32;
        if status >> 31 != generation {
            return None;
        }
        self.memory.read(at, &mut half).ok()?;
        self.taken += 1;
        let failure = match status & 3 {
            0 => None,
            1 => Some(Failure::Source),
            2 => Some(Failure::Destination),
            _ => Some(Failure::Descriptor),
        };
        Some(Completion { tag: u64::from_le_bytes(half) as u32, failure })
    }
}
