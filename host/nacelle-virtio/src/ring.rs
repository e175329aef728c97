// SPDX-License-Identifier: Apache-2.0
//! A split virtqueue as its driver has it (virtio 1.2, 2.7): each entry is one buffer, which lies beside the ring.
//!
//! The card is not trusted: what it says of a buffer is checked, and copied out.

use nacelle_pci::DmaBuffer;

use crate::card::Queue;

/// Bytes of an entry: of the table of descriptors, the available and the used ring.
const DESCRIPTOR: u64 = 16;
const AVAILABLE: u64 = 2;
const USED: u64 = 8;
/// What is before the entries of a ring: flags and index.
const HEAD: u64 = 4;
/// Behind its entries there is a word for `VIRTIO_F_EVENT_IDX`, which is not used.
const EVENT: u64 = 2;
/// The index, in a ring.
const INDEX: u64 = 2;
/// `VIRTQ_DESC_F_WRITE`: the card writes to the buffer.
const WRITE: u16 = 2;
/// What buffers are aligned to: a line of the processor's cache.
const LINE: u64 = 64;

/// The card says what cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrokenRing {
    /// It gives back a buffer that it does not have.
    #[error("the card gives back buffer {0}, which it does not have")]
    NotGiven(u32),
    /// It has written more than there is room for.
    #[error("the card says that it has written {0} bytes, which the buffer does not have")]
    TooMuch(u32),
    /// More buffers come back than it was given.
    #[error("the card gives back more buffers than it has")]
    TooMany,
}

/// Which way the buffers of a ring go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The card writes to them.
    Receive,
    /// The card reads them.
    Send,
}

/// A ring, with its buffers.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: DmaBuffer,
    size: u16,
    /// Bytes of a buffer.
    room: u32,
    direction: Direction,
    /// Which buffers the card has.
    given: Vec<bool>,
    /// The others.
    free: Vec<u16>,
    /// Entries that were made available, modulo 2^16.
    available: u16,
    /// Entries that came back.
    used: u16,
}

/// Offsets of the parts in the memory of a ring of that size: available ring, used ring, buffers.
fn parts(size: u16) -> [u64; 3] {
    let size = u64::from(size);
    let available = DESCRIPTOR * size;
    let used = (available + HEAD + AVAILABLE * size + EVENT).next_multiple_of(4);
    [available, used, (used + HEAD + USED * size + EVENT).next_multiple_of(LINE)]
}

/// From one buffer to the next.
fn stride(room: u32) -> u64 {
    u64::from(room).next_multiple_of(LINE)
}

impl Ring {
    /// Bytes of memory that a ring needs.
    pub(crate) fn bytes(size: u16, room: u32) -> usize {
        (parts(size)[2] + u64::from(size) * stride(room)) as usize
    }

    /// An empty ring in memory of zeros, of `size` entries, a power of two, with buffers of `room` bytes.
    pub(crate) fn new(memory: DmaBuffer, size: u16, room: u32, direction: Direction) -> Self {
        assert!(size.is_power_of_two() && memory.len() >= Self::bytes(size, room), "the memory is that of the ring");
        let (given, free) = (vec![false; size.into()], (0..size).rev().collect());
        Self { memory, size, room, direction, given, free, available: 0, used: 0 }
    }

    /// Where the card finds it.
    pub(crate) fn queue(&self) -> Queue {
        let [available, used, _] = parts(self.size).map(|part| self.memory.iova() + part);
        Queue { size: self.size, descriptors: self.memory.iova(), available, used }
    }

    /// A buffer that the card does not have.
    pub(crate) fn free(&mut self) -> Option<u16> {
        self.free.pop()
    }

    fn buffer(&self, index: u16) -> u64 {
        parts(self.size)[2] + u64::from(index) * stride(self.room)
    }

    /// Writes to a buffer that the card does not have.
    pub(crate) fn fill(&mut self, index: u16, offset: u32, bytes: &[u8]) {
        debug_assert!(!self.given[usize::from(index)]);
        let at = self.buffer(index) + u64::from(offset);
        self.memory.write(at, bytes).expect("who fills a buffer knows its length");
    }

    /// Reads from a buffer.
    pub(crate) fn read(&self, index: u16, offset: u32, into: &mut [u8]) {
        let at = self.buffer(index) + u64::from(offset);
        self.memory.read(at, into).expect("who reads a buffer knows its length");
    }

    /// Gives the card `len` bytes of a buffer.
    pub(crate) fn give(&mut self, index: u16, len: u32) {
        let [available, _, _] = parts(self.size);
        let mut descriptor = [0; DESCRIPTOR as usize];
        descriptor[..8].copy_from_slice(&(self.memory.iova() + self.buffer(index)).to_le_bytes());
        descriptor[8..12].copy_from_slice(&len.to_le_bytes());
        let flags = if self.direction == Direction::Receive { WRITE } else { 0 };
        descriptor[12..14].copy_from_slice(&flags.to_le_bytes());
        let entry = available + HEAD + AVAILABLE * u64::from(self.available % self.size);
        self.put(DESCRIPTOR * u64::from(index), &descriptor);
        self.put(entry, &index.to_le_bytes());
        self.given[usize::from(index)] = true;
        self.available = self.available.wrapping_add(1);
        // Behind the entry, for the card may read it at once.
        self.put(available + INDEX, &self.available.to_le_bytes());
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        self.memory.write(at, bytes).expect("it is a part of the ring");
    }

    fn get<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory.read(at, &mut bytes).expect("it is a part of the ring");
        bytes
    }

    /// How many entries the card has given back and were not taken.
    pub(crate) fn waiting(&self) -> u16 {
        let [_, used, _] = parts(self.size);
        u16::from_le_bytes(self.get(used + INDEX)).wrapping_sub(self.used)
    }

    /// A buffer that the card has given back, and how many bytes of it the card has written. It is free again.
    pub(crate) fn take(&mut self) -> Result<Option<(u16, u32)>, BrokenRing> {
        let [_, used, _] = parts(self.size);
        match self.waiting() {
            0 => return Ok(None),
            waiting if waiting > self.size => return Err(BrokenRing::TooMany),
            _ => {}
        }
        let entry: [u8; USED as usize] = self.get(used + HEAD + USED * u64::from(self.used % self.size));
        let word = |at: usize| u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
        let (number, len) = (word(0), word(4));
        let index = u16::try_from(number).ok().filter(|index| self.given.get(usize::from(*index)) == Some(&true));
        let index = index.ok_or(BrokenRing::NotGiven(number))?;
        if len > if self.direction == Direction::Receive { self.room } else { 0 } {
            return Err(BrokenRing::TooMuch(len));
        }
        self.given[usize::from(index)] = false;
        self.free.push(index);
        self.used = self.used.wrapping_add(1);
        Ok(Some((index, len)))
    }
}
