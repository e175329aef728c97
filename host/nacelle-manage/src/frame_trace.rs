// SPDX-License-Identifier: Apache-2.0
//! Frames that a device has recorded at its MAC, by its registers (docs/reference/trace.md).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use crate::Registers;
use crate::event_log::ticks_since;
use crate::map::{Register, event_log, trace};

/// Words that are seen at once.
const WINDOW_WORDS: u32 = 512;
/// Words of an entry.
const ENTRY_WORDS: u32 = 4;
/// Bytes of a word.
const WORD: u32 = 4;
const START: u32 = 1;
const STOP: u32 = 2;

/// Which way a frame went, seen from the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Received.
    Rx,
    /// Sent.
    Tx,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Rx, Self::Tx];
}

/// What a frame must have to match; all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Match {
    /// `EtherType`.
    pub ethertype: Option<u16>,
    /// UDP to the port of `RoCEv2`.
    pub roce: bool,
    /// Opcode of the BTH.
    pub opcode: Option<u8>,
    /// IPv4 address of the other side.
    pub peer: Option<Ipv4Addr>,
    /// Destination queue pair of what is received, and of what is sent: numbers of the device, and of its peer.
    pub qpn: Option<[u32; 2]>,
}

impl Match {
    /// Whether there is no condition.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }

    /// The terms, as MATCH has them.
    fn terms(&self) -> u32 {
        let set = [self.ethertype.is_some(), self.roce, self.opcode.is_some(), self.peer.is_some(), self.qpn.is_some()];
        (0..).zip(set).map(|(bit, set)| u32::from(set) << bit).sum()
    }
}

/// What makes a trace end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trigger {
    /// Nothing: it records from its start on.
    #[default]
    None,
    /// A frame that matches.
    Match,
    /// A drop.
    Drop,
}

/// How to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// What it waits for, recording meanwhile.
    pub trigger: Trigger,
    /// New frames take the place of the oldest; else they are missed when there is no room.
    pub ring: bool,
    /// Whether received and sent frames are recorded.
    pub directions: [bool; 2],
    /// Bytes of each frame.
    pub snap: u16,
    /// Frames after the trigger, or after the start, after which it stops; 0: none.
    pub after: u16,
    /// Which frames are recorded; with [`Trigger::Match`] all are, and this is the trigger.
    pub filter: Match,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            trigger: Trigger::None,
            ring: false,
            directions: [true; 2],
            snap: 384,
            after: 0,
            filter: Match::default(),
        }
    }
}

/// Where a trace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// It records.
    pub records: bool,
    /// The trigger has come.
    pub triggered: bool,
    /// Frames recorded since the start, received and sent.
    pub recorded: [u32; 2],
    /// Frames for which there was no room: at most 65535.
    pub missed: [u32; 2],
}

/// A recorded frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Which way it went.
    pub direction: Direction,
    /// Its number among those of its direction.
    pub number: u32,
    /// When it began, in ticks since the device's reset, modulo 2<sup>48</sup>.
    pub ticks: u64,
    /// Bytes on the wire, without FCS; 65535: at least.
    pub length: u16,
    /// The MAC found it bad.
    pub bad: bool,
    /// Its first bytes.
    pub data: Vec<u8>,
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// In the order of their times.
    pub frames: Vec<Frame>,
    /// When the trigger came, in ticks.
    pub trigger: Option<u64>,
    /// The state at the end.
    pub status: Status,
    /// Ticks when it was read.
    pub now: u64,
}

/// Why a trace cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TraceError<E> {
    /// The registers cannot be accessed.
    #[error(transparent)]
    Access(E),
    /// The device has none.
    #[error("the device has no trace of frames")]
    None,
    /// It records for somebody else.
    #[error("the device records frames already")]
    Busy,
    /// More of each frame than there is room for.
    #[error("{snap} bytes of each frame are more than the {most} that this device can record")]
    Snap {
        /// What was asked for.
        snap: u16,
        /// What there can be.
        most: u32,
    },
}

/// The trace of frames of a device, by any way to its registers.
pub struct FrameTrace<'a, R> {
    registers: &'a mut R,
    ticks_hz: u32,
    row_bytes: u32,
    rows: u32,
    frames: u32,
    snap: u32,
    ring: bool,
}

impl<'a, R: Registers> FrameTrace<'a, R> {
    /// That of this device.
    ///
    /// # Errors
    /// If it has none.
    pub fn new(registers: &'a mut R) -> Result<Self, TraceError<R::Error>> {
        let mut own = Self { registers, ticks_hz: 1, row_bytes: 1, rows: 1, frames: 1, snap: 0, ring: false };
        let kind = own.read(&trace::TYPE)?;
        if kind.to_be_bytes() != trace::BLOCK.kind {
            return Err(TraceError::None);
        }
        own.ticks_hz = own.read(&trace::TICKS_HZ)?.max(1);
        own.row_bytes = own.read(&trace::ROW_BYTES)?.max(1);
        own.rows = own.read(&trace::ROWS)?.max(1);
        own.frames = own.read(&trace::FRAMES)?.max(1);
        Ok(own)
    }

    /// Ticks of a second.
    #[must_use]
    pub const fn ticks_hz(&self) -> u32 {
        self.ticks_hz
    }

    /// How long a number of ticks is.
    #[must_use]
    pub fn time(&self, ticks: u64) -> Duration {
        let (hz, nanos) = (u64::from(self.ticks_hz), 1_000_000_000);
        Duration::new(ticks / hz, (ticks % hz * nanos / hz) as u32)
    }

    fn read(&mut self, register: &Register) -> Result<u32, TraceError<R::Error>> {
        self.registers.read(register.at(trace::BASE)).map_err(TraceError::Access)
    }

    fn write(&mut self, register: &Register, value: u32) -> Result<(), TraceError<R::Error>> {
        self.registers.write(register.at(trace::BASE), value).map_err(TraceError::Access)
    }

    /// A register of which there is one for each direction.
    fn read_pair(&mut self, register: &Register) -> Result<[u32; 2], TraceError<R::Error>> {
        let addresses = [0, 1].map(|direction| register.word(trace::BASE, direction));
        let values = self.registers.read_all(&addresses).map_err(TraceError::Access)?;
        Ok([0, 1].map(|direction| values.get(direction).copied().unwrap_or(0)))
    }

    /// The device's time, by the event log; its halves are two registers.
    fn now(&mut self) -> Result<u64, TraceError<R::Error>> {
        let [low, high] = [&event_log::NOW_LO, &event_log::NOW_HI].map(|register| register.at(event_log::BASE));
        loop {
            let values = self.registers.read_all(&[high, low, high]).map_err(TraceError::Access)?;
            if let [before, now, after] = values[..]
                && before == after
            {
                return Ok(u64::from(before) << 32 | u64::from(now));
            }
        }
    }

    /// Begins anew.
    ///
    /// # Errors
    /// If it records already, or cannot do what is asked.
    pub fn start(&mut self, settings: &Settings) -> Result<(), TraceError<R::Error>> {
        let rows = u32::from(settings.snap).div_ceil(self.row_bytes);
        // A frame whose place is not there yet takes that of others.
        let most = (self.rows / 2).min(trace::SNAP.mask / self.row_bytes);
        if rows > most {
            return Err(TraceError::Snap { snap: settings.snap, most: most * self.row_bytes });
        }
        if self.status()?.records {
            return Err(TraceError::Busy);
        }
        (self.snap, self.ring) = (settings.snap.into(), settings.ring);
        let filter = &settings.filter;
        let matching = settings.trigger != Trigger::Match && !filter.is_any();
        let [rx, tx] = settings.directions.map(u32::from);
        let mode =
            settings.trigger as u32 | u32::from(settings.ring) << 2 | u32::from(matching) << 3 | rx << 4 | tx << 5;
        let [qpn_rx, qpn_tx] = filter.qpn.unwrap_or_default();
        for (register, value) in [
            (&trace::MODE, mode),
            (&trace::SNAP, settings.snap.into()),
            (&trace::AFTER, settings.after.into()),
            (&trace::MATCH, filter.terms()),
            (&trace::ETHERTYPE, filter.ethertype.unwrap_or_default().into()),
            (&trace::OPCODE, filter.opcode.unwrap_or_default().into()),
            (&trace::PEER, filter.peer.unwrap_or(Ipv4Addr::UNSPECIFIED).to_bits()),
            (&trace::QPN_RX, qpn_rx),
            (&trace::QPN_TX, qpn_tx),
        ] {
            self.write(register, value)?;
        }
        self.write(&trace::COMMAND, START)
    }

    /// Ends it. What was recorded stays.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn stop(&mut self) -> Result<(), TraceError<R::Error>> {
        self.write(&trace::COMMAND, STOP)
    }

    /// Where it is.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn status(&mut self) -> Result<Status, TraceError<R::Error>> {
        let state = self.read(&trace::STATE)?;
        Ok(Status {
            records: state & 3 != 0,
            triggered: state >> 2 & 1 != 0,
            recorded: self.read_pair(&trace::RECORDED)?,
            missed: self.read_pair(&trace::PLACES)?.map(|places| places >> 16),
        })
    }

    /// Words of the rows or entries of a direction, by their numbers.
    fn words(
        &mut self,
        direction: Direction,
        entries: bool,
        numbers: impl IntoIterator<Item = u32>,
    ) -> Result<BTreeMap<u32, u32>, TraceError<R::Error>> {
        let mut pieces: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for number in numbers {
            pieces.entry(number / WINDOW_WORDS).or_default().push(number);
        }
        let mut found = BTreeMap::new();
        for (piece, numbers) in pieces {
            self.write(&trace::WINDOW, piece | u32::from(entries) << 12 | (direction as u32) << 13)?;
            let addresses: Vec<u32> =
                numbers.iter().map(|number| trace::WORDS.word(trace::BASE, number % WINDOW_WORDS)).collect();
            let words = self.registers.read_all(&addresses).map_err(TraceError::Access)?;
            found.extend(numbers.into_iter().zip(words));
        }
        Ok(found)
    }

    /// The frames of a direction that are whole.
    fn frames_of(
        &mut self,
        direction: Direction,
        recorded: u32,
        used: u32,
    ) -> Result<Vec<Frame>, TraceError<R::Error>> {
        let count = recorded.min(self.frames);
        // The newest first.
        let numbers: Vec<u32> = (1..=count).map(|back| recorded.wrapping_sub(back)).collect();
        let frames = self.frames;
        let place = |number: u32| number % frames * ENTRY_WORDS;
        let wanted = numbers.iter().flat_map(|number| (0..ENTRY_WORDS).map(|word| place(*number) + word));
        let entries = self.words(direction, true, wanted)?;
        let (row_bytes, rows, snap) = (self.row_bytes, self.rows, self.snap);
        let row_words = row_bytes / WORD;
        // One more frame may have begun in a ring.
        let margin = if self.ring { snap.div_ceil(row_bytes) } else { 0 };
        let mut found = Vec::new();
        let mut wanted = Vec::new();
        for number in numbers {
            let word = |word| entries.get(&(place(number) + word)).copied().unwrap_or(0);
            let (low, middle, high) = (word(0), word(1), word(2));
            let row = middle >> 16;
            if (used.wrapping_sub(row) & 0xffff) + margin > rows {
                break;
            }
            let length = high as u16;
            let kept = u32::from(length).min(snap);
            let first = row % rows * row_words;
            let places: Vec<u32> = (0..kept.div_ceil(WORD)).map(|word| (first + word) % (rows * row_words)).collect();
            wanted.extend_from_slice(&places);
            let ticks = u64::from(middle & 0xffff) << 32 | u64::from(low);
            let frame = Frame { direction, number, ticks, length, bad: high >> 16 & 1 != 0, data: Vec::new() };
            found.push((frame, places, kept as usize));
        }
        let words = self.words(direction, false, wanted)?;
        let whole = found.into_iter().map(|(mut frame, places, kept)| {
            let bytes = places.iter().flat_map(|place| words.get(place).copied().unwrap_or(0).to_le_bytes());
            frame.data = bytes.take(kept).collect();
            frame
        });
        Ok(whole.collect())
    }

    /// Reads what was recorded since [`start`](Self::start), once it is stopped.
    ///
    /// # Errors
    /// If it still records, or the registers cannot be accessed.
    pub fn recording(&mut self) -> Result<Recording, TraceError<R::Error>> {
        let status = self.status()?;
        if status.records {
            return Err(TraceError::Busy);
        }
        let used = self.read_pair(&trace::PLACES)?.map(|places| places & 0xffff);
        let mut frames = Vec::new();
        for direction in Direction::ALL {
            let at = direction as usize;
            frames.extend(self.frames_of(direction, status.recorded[at], used[at])?);
        }
        let trigger = match status.triggered {
            true => Some(u64::from(self.read(&trace::STATE)? >> 16) << 32 | u64::from(self.read(&trace::TRIGGER)?)),
            false => None,
        };
        let now = self.now()?;
        frames.sort_by_key(|frame| (std::cmp::Reverse(ticks_since(now, frame.ticks)), frame.direction, frame.number));
        Ok(Recording { frames, trigger, status, now })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW_BYTES: usize = 8;
    const ROWS: usize = 32;
    const FRAMES: u32 = 16;

    /// A device that has recorded frames. Memory is as the RTL fills it.
    struct Fake {
        registers: BTreeMap<u32, u32>,
        rows: [Vec<u8>; 2],
        entries: [Vec<u32>; 2],
    }

    impl Fake {
        fn new() -> Self {
            let facts = [
                (&trace::TYPE, u32::from_be_bytes(trace::BLOCK.kind)),
                (&trace::TICKS_HZ, 1_000_000),
                (&trace::ROW_BYTES, ROW_BYTES as u32),
                (&trace::ROWS, ROWS as u32),
                (&trace::FRAMES, FRAMES),
            ];
            Self {
                registers: facts.iter().map(|(register, value)| (register.offset, *value)).collect(),
                rows: [(); 2].map(|()| vec![0xee; ROWS * ROW_BYTES]),
                entries: [(); 2].map(|()| vec![0; (FRAMES * ENTRY_WORDS) as usize]),
            }
        }

        fn record(&mut self, direction: usize, ticks: u64, data: &[u8], snap: usize) {
            let (recorded, used) =
                (trace::RECORDED.offset + 4 * direction as u32, trace::PLACES.offset + 4 * direction as u32);
            let number = self.registers.get(&recorded).copied().unwrap_or(0);
            let row = self.registers.get(&used).copied().unwrap_or(0);
            let rows = data.len().min(snap).div_ceil(ROW_BYTES);
            for (i, byte) in data.iter().take(rows * ROW_BYTES).enumerate() {
                let at = (row as usize * ROW_BYTES + i) % (ROWS * ROW_BYTES);
                self.rows[direction][at] = *byte;
            }
            let at = (number % FRAMES * ENTRY_WORDS) as usize;
            self.entries[direction][at] = ticks as u32;
            self.entries[direction][at + 1] = row << 16 | (ticks >> 32) as u32 & 0xffff;
            self.entries[direction][at + 2] = data.len() as u32;
            self.registers.insert(recorded, number + 1);
            self.registers.insert(used, (row + rows as u32) & 0xffff);
        }
    }

    impl Registers for Fake {
        type Error = crate::Refusal;

        fn read(&mut self, address: u32) -> Result<u32, Self::Error> {
            if address < trace::BASE {
                return Ok(if address == event_log::NOW_LO.at(event_log::BASE) { 100 } else { 0 });
            }
            let offset = address - trace::BASE;
            if offset < trace::WORDS.offset {
                return Ok(self.registers.get(&offset).copied().unwrap_or(0));
            }
            let window = self.registers.get(&trace::WINDOW.offset).copied().unwrap_or(0);
            let number = ((window & 0xfff) * WINDOW_WORDS + (offset - trace::WORDS.offset) / WORD) as usize;
            let direction = (window >> 13) as usize;
            if window >> 12 & 1 != 0 {
                return Ok(self.entries[direction][number % (FRAMES * ENTRY_WORDS) as usize]);
            }
            let at = number * 4 % (ROWS * ROW_BYTES);
            Ok(u32::from_le_bytes(self.rows[direction][at..at + 4].try_into().unwrap()))
        }

        fn write(&mut self, address: u32, value: u32) -> Result<(), Self::Error> {
            self.registers.insert(address - trace::BASE, value);
            Ok(())
        }
    }

    #[test]
    fn frames_are_read_in_the_order_of_their_times() {
        let mut fake = Fake::new();
        let frames: Vec<Vec<u8>> = (1..=5u8).map(|n| (0..20 * n).map(|i| i ^ n).collect()).collect();
        for (i, frame) in frames.iter().enumerate() {
            fake.record(i % 2, 10 + i as u64, frame, 32);
        }
        let mut trace = FrameTrace::new(&mut fake).unwrap();
        trace.snap = 30;
        let found = trace.recording().unwrap();
        assert_eq!(found.frames.len(), 5);
        for (i, (frame, data)) in found.frames.iter().zip(&frames).enumerate() {
            assert_eq!((frame.ticks, usize::from(frame.length)), (10 + i as u64, data.len()));
            assert_eq!(frame.data, data[..data.len().min(30)]);
            assert_eq!(frame.direction, Direction::ALL[i % 2]);
        }
        assert_eq!(found.trigger, None);
    }

    #[test]
    fn what_was_written_over_is_left_out() {
        let mut fake = Fake::new();
        let frames: Vec<Vec<u8>> = (0..40u8).map(|n| vec![n; 40]).collect();
        for (i, frame) in frames.iter().enumerate() {
            fake.record(0, i as u64, frame, 24);
        }
        // Three rows each, of 32, three of which the next frame may have taken.
        for (ring, whole) in [(true, 9), (false, 10)] {
            let mut trace = FrameTrace::new(&mut fake).unwrap();
            (trace.snap, trace.ring) = (24, ring);
            let found = trace.recording().unwrap();
            assert_eq!(found.frames.len(), whole);
            for (frame, data) in found.frames.iter().zip(&frames[40 - whole..]) {
                assert_eq!(frame.data, data[..24]);
            }
        }
    }

    #[test]
    fn settings_are_written_before_the_start() {
        let mut fake = Fake::new();
        let filter = Match { peer: Some(Ipv4Addr::new(10, 0, 0, 9)), roce: true, ..Match::default() };
        let settings = Settings { filter, after: 7, ..Settings::default() };
        let error = FrameTrace::new(&mut fake).unwrap().start(&settings).unwrap_err();
        assert!(matches!(error, TraceError::Snap { snap: 384, most: 128 }), "{error}");
        FrameTrace::new(&mut fake).unwrap().start(&Settings { snap: 64, ..settings }).unwrap();
        let written = |register: &Register| fake.registers[&register.offset];
        assert_eq!((written(&trace::MODE), written(&trace::MATCH)), (0b11_1000, 0b1010));
        assert_eq!((written(&trace::PEER), written(&trace::AFTER)), (0x0a00_0009, 7));
        assert_eq!(written(&trace::COMMAND), START);
        let on_match = Settings { trigger: Trigger::Match, ring: true, snap: 64, ..settings };
        FrameTrace::new(&mut fake).unwrap().start(&on_match).unwrap();
        assert_eq!(fake.registers[&trace::MODE.offset], 0b11_0101, "all are recorded");
        fake.registers.insert(trace::STATE.offset, 1);
        let mut trace = FrameTrace::new(&mut fake).unwrap();
        assert!(matches!(trace.start(&on_match), Err(TraceError::Busy)));
        assert!(matches!(trace.recording(), Err(TraceError::Busy)));
    }

    #[test]
    fn a_device_may_have_none() {
        let mut fake = Fake::new();
        fake.registers.clear();
        assert!(matches!(FrameTrace::new(&mut fake), Err(TraceError::None)));
    }
}
