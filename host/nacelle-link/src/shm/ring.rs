// SPDX-License-Identifier: Apache-2.0
//! A ring of records in memory that two processes share: one of them writes, the other reads.
//!
//! Positions count bytes since the beginning and never wrap; a byte's place is its position modulo the ring's length, a power of
//! two. A record begins at a cache line, with its header: one word that is not 0. Where no record is yet, that word is 0: the writer
//! clears the next one before it publishes a record by its header. So the reader finds a short record by the one line that it looks
//! at, which is all that passes between two processors. The reader publishes its position behind each record that it has used.
//!
//! The contents of a record have no break, so that they can be written and used in place. One for which there is no room before the ring
//! begins again is written at its beginning, and a word in its place says so ([`SKIP`]).
//!
//! Each side remembers its own position, and of the shared words reads only a record's header or the reader's position, once, and
//! checks it. So whatever the other process writes into them, and whenever, all that it can cause is a wrong record, which is checked
//! like a packet of a network, or [`Broken`]. Every operation ends after one record.
//!
//! A reader that is going to sleep says so; the writer that finds this behind its next record takes the note away and wakes it.

use std::sync::atomic::Ordering;

/// Shared words and bytes.
pub(super) trait Words {
    /// Reads the word at a multiple of 8.
    fn load(&self, offset: usize, order: Ordering) -> u64;
    /// Writes it.
    fn store(&self, offset: usize, value: u64, order: Ordering);
    /// Copies bytes out.
    fn read(&self, offset: usize, into: &mut [u8]);
    /// Copies bytes in.
    fn write(&self, offset: usize, bytes: &[u8]);
    /// Orders all accesses before it before all behind it, for all that do the same.
    fn fence(&self);
}

/// Records begin at multiples of this: a cache line.
const LINE: usize = 64;
/// Of the shared words at the beginning of a ring, each on a line of its own: the reader's position,
const READ: usize = 0;
/// and whether the reader sleeps.
const ASLEEP: usize = LINE;
/// Bytes before those of records.
const HEAD: usize = 2 * LINE;
/// Bytes before the contents of a record.
const HEADER: usize = 8;
/// Instead of a header: the next record is at the ring's beginning. No header has this bit.
const SKIP: u64 = 1 << 63;

/// The other process has written what no ring can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken;

/// What is said of a record's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Bytes of the contents: at least one.
    pub(super) len: usize,
    /// Bytes of each datagram but the last: at least one.
    pub(super) stride: usize,
    /// The ECN bits.
    pub(super) ecn: u8,
}

impl Header {
    fn encode(self) -> u64 {
        self.len as u64 | (self.stride as u64) << 24 | u64::from(self.ecn & 3) << 48
    }

    /// `None` if it is none of a record of up to `room` bytes.
    fn decode(word: u64, room: usize) -> Option<Self> {
        let (len, stride) = ((word & 0xff_ffff) as usize, (word >> 24 & 0xff_ffff) as usize);
        let header = Self { len, stride, ecn: (word >> 48) as u8 };
        (len > 0 && len <= room && stride > 0 && word >> 50 == 0).then_some(header)
    }

    /// Bytes that the record takes.
    const fn record(self) -> u64 {
        record(self.len)
    }
}

/// Bytes that a record of `len` bytes takes.
const fn record(len: usize) -> u64 {
    (HEADER + len).next_multiple_of(LINE) as u64
}

/// Where a ring is in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    offset: usize,
    capacity: usize,
}

impl Place {
    /// Bytes that a ring takes.
    pub(super) const fn len(capacity: usize) -> usize {
        HEAD + capacity
    }

    /// A ring of `capacity` bytes, a power of two, at `offset`, a multiple of a line.
    pub(super) const fn new(offset: usize, capacity: usize) -> Self {
        assert!(offset.is_multiple_of(LINE) && capacity.is_power_of_two() && capacity >= 2 * LINE);
        Self { offset, capacity }
    }

    const fn at(self, word: usize) -> usize {
        self.offset + word
    }

    /// Where the byte at a position is, and how many bytes, with it, come before the ring begins again.
    const fn find(self, position: u64) -> (usize, u64) {
        let place = position as usize & (self.capacity - 1);
        (self.offset + HEAD + place, (self.capacity - place) as u64)
    }

    /// The bytes between two positions, if there can be so many.
    fn between(self, behind: u64, before: u64) -> Result<u64, Broken> {
        let bytes = before.wrapping_sub(behind);
        if bytes <= self.capacity as u64 && bytes.is_multiple_of(LINE as u64) { Ok(bytes) } else { Err(Broken) }
    }
}

/// The side that writes.
#[derive(Debug)]
pub(super) struct Writer {
    place: Place,
    written: u64,
    /// The reader's position when it was needed last.
    read: u64,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// It is there.
    Done,
    /// It is there, and the reader sleeps: it is to be woken.
    Wake,
    /// There is no room for it now.
    Full,
}

impl Writer {
    /// For a ring of which nothing is used yet.
    pub(super) const fn new(place: Place) -> Self {
        Self { place, written: 0, read: 0 }
    }

    /// Adds a record: `header.len` bytes.
    pub(super) fn write(&mut self, words: &impl Words, header: Header, bytes: &[u8]) -> Result<Written, Broken> {
        debug_assert!(header.len == bytes.len());
        let Some(at) = self.room(words, header.len)? else { return Ok(Written::Full) };
        words.write(at, bytes);
        Ok(self.publish(words, header))
    }

    /// Where up to `len` bytes of the next record's contents can be written, which [`Self::publish`] then publishes; `None` if there
    /// is no room for them now.
    pub(super) fn room(&mut self, words: &impl Words, len: usize) -> Result<Option<usize>, Broken> {
        let (_, before_end) = self.place.find(self.written);
        if record(len) > before_end {
            if !self.fits(words, before_end)? {
                return Ok(None);
            }
            self.append(words, SKIP, before_end);
        }
        let (at, _) = self.place.find(self.written);
        Ok(self.fits(words, record(len))?.then_some(at + HEADER))
    }

    /// Whether so many bytes are free, and behind them the place of the next header.
    fn fits(&mut self, words: &impl Words, bytes: u64) -> Result<bool, Broken> {
        let Self { place, written, .. } = *self;
        let end = written.wrapping_add(bytes);
        let fits = |read: u64| end.wrapping_sub(read) < place.capacity as u64;
        if !fits(self.read) {
            let read = words.load(place.at(READ), Ordering::Acquire);
            place.between(read, written)?;
            place.between(self.read, read)?;
            self.read = read;
        }
        Ok(fits(self.read))
    }

    /// Publishes what takes so many bytes, by its first word.
    fn append(&mut self, words: &impl Words, word: u64, bytes: u64) {
        let Self { place, written, .. } = *self;
        self.written = written.wrapping_add(bytes);
        words.store(place.find(self.written).0, 0, Ordering::Relaxed);
        words.store(place.find(written).0, word, Ordering::Release);
    }

    /// Publishes a record whose contents were written where there is room for them.
    pub(super) fn publish(&mut self, words: &impl Words, header: Header) -> Written {
        debug_assert!(header.len > 0 && header.stride > 0);
        let place = self.place;
        self.append(words, header.encode(), header.record());
        // Either the reader sees the record when it looks again after its note, or the note is seen here.
        words.fence();
        if words.load(place.at(ASLEEP), Ordering::Relaxed) == 0 {
            return Written::Done;
        }
        // If the reader has read this record by now and sleeps again, it is woken all the same.
        words.store(place.at(ASLEEP), 0, Ordering::Relaxed);
        Written::Wake
    }
}

/// The side that reads.
#[derive(Debug)]
pub(super) struct Reader {
    place: Place,
    read: u64,
}

impl Reader {
    /// For a ring of which nothing is used yet.
    pub(super) const fn new(place: Place) -> Self {
        Self { place, read: 0 }
    }

    /// The header of the oldest record; 0 if there is none.
    fn look(&self, words: &impl Words) -> u64 {
        words.load(self.place.find(self.read).0, Ordering::Acquire)
    }

    /// Gives the oldest record to `take`, if there is one, and returns whether there was: its header, and where its contents are. The
    /// writer uses their place again behind `take`. What is longer than `longest`, or than a ring's record may be, is no record.
    pub(super) fn read(
        &mut self,
        words: &impl Words,
        longest: usize,
        take: impl FnOnce(Header, usize),
    ) -> Result<bool, Broken> {
        let mut word = self.look(words);
        let (_, before_end) = self.place.find(self.read);
        if word == SKIP && before_end < self.place.capacity as u64 {
            self.release(words, before_end);
            word = self.look(words);
        }
        if word == 0 {
            return Ok(false);
        }
        let header = Header::decode(word, longest).ok_or(Broken)?;
        let (at, before_end) = self.place.find(self.read);
        if header.record() > before_end || header.record() >= self.place.capacity as u64 {
            return Err(Broken);
        }
        take(header, at + HEADER);
        self.release(words, header.record());
        Ok(true)
    }

    /// The writer may use the next so many bytes again.
    fn release(&mut self, words: &impl Words, bytes: u64) {
        self.read = self.read.wrapping_add(bytes);
        words.store(self.place.at(READ), self.read, Ordering::Release);
    }

    /// Notes that this side is going to sleep. Returns whether there is a record all the same: then it must not.
    pub(super) fn arm(&self, words: &impl Words) -> bool {
        words.store(self.place.at(ASLEEP), 1, Ordering::Relaxed);
        words.fence();
        self.look(words) != 0
    }

    /// Takes the note back.
    pub(super) fn disarm(&self, words: &impl Words) {
        words.store(self.place.at(ASLEEP), 0, Ordering::Relaxed);
    }

    /// The most records that there can be from now on if nothing more is written.
    pub(super) fn at_most(&self) -> usize {
        self.place.capacity / LINE
    }
}

#[cfg(test)]
mod tests;
