// SPDX-License-Identifier: Apache-2.0
//! How long the calls of each socket take, and how many wait, by the registers of the histograms (docs/reference/histograms.md).

use crate::Registers;
use crate::map::{Chain, Register, histograms as map};

/// Sockets that there can be: words of an array for one bin.
pub const MAX_SOCKETS: u32 = 16;
/// Bins of the calls that one finds before it.
pub const QUEUE_BINS: u32 = map::QUEUE.count.unwrap() / MAX_SOCKETS;
/// Bins of a time.
pub const TIME_BINS: u32 = map::LATENCY.count.unwrap() / MAX_SOCKETS;
/// Cycles in a unit of SINCE, as a power of two.
pub const SINCE_SHIFT: u32 = 8;
/// Bits of a sum.
pub const SUM_BITS: u32 = 56;
/// Bits of NOW.
pub const NOW_BITS: u32 = 48;

/// Values in bins: those of each bin are below a bound, and in no bin before; the last bin has no bound.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    /// How many, by bin; modulo 2<sup>32</sup>.
    pub counts: Vec<u32>,
    /// Sum of all values, modulo 2<sup>56</sup>.
    pub sum: u64,
    /// Bound of the first bin, as a power of two; that of each other is twice that of the one before.
    pub first: u32,
}

impl Histogram {
    /// The bound of each bin but the last.
    pub fn bounds(&self) -> impl Iterator<Item = u64> {
        let bins = self.counts.len().saturating_sub(1) as u32;
        (self.first..self.first + bins).map(|bits| 1 << bits.min(63))
    }

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// What has come since `before`. One that was cleared since counts from 0.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let counts = self.counts.iter().zip(&before.counts).map(|(now, before)| now.wrapping_sub(*before)).collect();
        let sum = self.sum.wrapping_sub(before.sum) & ((1 << SUM_BITS) - 1);
        Self { counts, sum, first: self.first }
    }

    /// The value that this part of all values does not exceed, estimated: those of a bin are taken to lie evenly in it, those of the last at its
    /// begin. `None` without a value.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let rank = part.clamp(0.0, 1.0) * total as f64;
        let (mut low, mut below) = (0.0, 0.0);
        for (count, bound) in self.counts.iter().zip(self.bounds()) {
            let (count, bound) = (f64::from(*count), bound as f64);
            if count > 0.0 && below + count >= rank {
                return Some(low + (bound - low) * ((rank - below) / count).max(0.0));
            }
            below += count;
            low = bound;
        }
        Some(low)
    }

    /// What no value reaches: the bound of the last bin that has one. `None` without a value, or without a bound.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        let last = self.counts.iter().rposition(|count| *count > 0)?;
        self.bounds().nth(last)
    }
}

/// What was measured of a socket.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SocketTimes {
    /// Cycles from the arrival of a call to its result.
    pub latency: Histogram,
    /// Cycles of these that it had the socket.
    pub run: Histogram,
    /// Calls that the socket had when another one came: value v is in the bin whose bound is above v.
    pub queue: Histogram,
    /// Cycles that the socket had calls, the one that runs included.
    pub busy: u64,
}

/// What was measured at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Times {
    /// Cycles since reset, modulo 2<sup>48</sup>.
    pub now: u64,
    /// How often all was set to 0.
    pub clears: u32,
    /// By the number of the socket.
    pub sockets: Vec<SocketTimes>,
}

/// The histograms of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Histograms {
    base: u32,
    /// Cycles of a second.
    pub clock_hz: u32,
    sockets: u32,
    bins: u32,
    first: u32,
}

impl Histograms {
    /// Those of this device, if it has some.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn find<R: Registers>(registers: &mut R) -> Result<Option<Self>, R::Error> {
        let found = Chain::new(registers).first(&map::BLOCK)?;
        found.map(|found| Self::at(registers, found.address)).transpose()
    }

    /// Those whose block is at this address.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn at<R: Registers>(registers: &mut R, base: u32) -> Result<Self, R::Error> {
        let [clock_hz, shape] = [&map::CLOCK_HZ, &map::SHAPE].map(|register| registers.read(register.at(base)));
        let (clock_hz, shape) = (clock_hz?, shape?);
        Ok(Self {
            base,
            clock_hz: clock_hz.max(1),
            sockets: map::SHAPE_SOCKETS.of(shape).min(MAX_SOCKETS),
            bins: map::SHAPE_BINS.of(shape).clamp(1, TIME_BINS),
            first: map::SHAPE_FIRST.of(shape),
        })
    }

    /// What was measured so far.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn read<R: Registers>(&self, registers: &mut R) -> Result<Times, R::Error> {
        let one = |register: &Register| register.at(self.base);
        let word = |register: &Register, index: u32| register.word(self.base, index);
        // Halves that change are read as upper, lower, upper.
        let mut addresses = vec![one(&map::STATUS)];
        for socket in 0..self.sockets {
            for (array, bins) in [(&map::LATENCY, self.bins), (&map::RUN, self.bins), (&map::QUEUE, QUEUE_BINS)] {
                addresses.extend((0..bins).map(|bin| word(array, bin * MAX_SOCKETS + socket)));
            }
            for (low, high) in [
                (&map::LATENCY_SUM_LO, &map::LATENCY_SUM_HI),
                (&map::RUN_SUM_LO, &map::RUN_SUM_HI),
                (&map::QUEUE_SUM_LO, &map::QUEUE_SUM_HI),
            ] {
                addresses.extend([word(high, socket), word(low, socket), word(high, socket)]);
            }
        }
        addresses.push(one(&map::RUNNING));
        addresses.extend((0..self.sockets).map(|socket| word(&map::SINCE, socket)));
        addresses.extend([one(&map::NOW_HI), one(&map::NOW_LO), one(&map::NOW_HI)]);
        let mut words = registers.read_all(&addresses)?.into_iter();
        let mut next = move || words.next().unwrap_or_default();
        let mut times = Times { clears: map::STATUS_CLEARS.of(next()), ..Times::default() };
        for _ in 0..self.sockets {
            let mut histogram = |bins, first| Histogram { counts: (0..bins).map(|_| next()).collect(), sum: 0, first };
            let latency = histogram(self.bins, self.first);
            let run = histogram(self.bins, self.first);
            let queue = histogram(QUEUE_BINS, 0);
            let mut socket = SocketTimes { latency, run, queue, busy: 0 };
            for sum in [&mut socket.latency.sum, &mut socket.run.sum, &mut socket.queue.sum] {
                *sum = whole([next(), next(), next()]);
            }
            socket.busy = socket.run.sum;
            times.sockets.push(socket);
        }
        let running = next();
        let since: Vec<u32> = (0..self.sockets).map(|_| next()).collect();
        times.now = whole([next(), next(), next()]);
        for (number, (socket, since)) in times.sockets.iter_mut().zip(since).enumerate() {
            if running >> number & 1 == 1 {
                let units = ((times.now >> SINCE_SHIFT) as u32).wrapping_sub(since);
                socket.busy += u64::from(units) << SINCE_SHIFT;
            }
        }
        Ok(times)
    }
}

/// A number of which the upper half was read, the lower, and the upper again.
fn whole([before, low, after]: [u32; 3]) -> u64 {
    // The upper half changes when the lower one wraps: one that is small was read behind that.
    let high = if low < 1 << 31 { after } else { before };
    u64::from(high) << 32 | u64::from(low)
}

impl Times {
    /// Cycles from `before` to this.
    #[must_use]
    pub const fn cycles_since(&self, before: &Self) -> u64 {
        self.now.wrapping_sub(before.now) & ((1 << NOW_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn times(counts: &[u32]) -> Histogram {
        Histogram { counts: counts.to_vec(), sum: 0, first: 8 }
    }

    #[test]
    fn quantiles_lie_in_their_bins() {
        assert_eq!((times(&[0; 4]).quantile(0.5), times(&[0; 4]).limit()), (None, None));
        let all = times(&[0, 10, 0, 0]);
        assert_eq!((all.quantile(0.5), all.quantile(1.0), all.limit()), (Some(384.0), Some(512.0), Some(512)));
        let all = times(&[1, 98, 0, 1]);
        assert_eq!(all.quantile(0.01), Some(256.0));
        assert_eq!(all.quantile(0.99), Some(512.0));
        assert_eq!((all.quantile(1.0), all.limit()), (Some(1024.0), None), "the last bin has no bound");
    }

    #[test]
    fn the_change_is_that_of_the_last_interval() {
        let before = Histogram { counts: vec![u32::MAX, 3], sum: (1 << SUM_BITS) - 10, first: 8 };
        let now = Histogram { counts: vec![1, 3], sum: 90, first: 8 };
        assert_eq!(now.since(&before), Histogram { counts: vec![2, 0], sum: 100, first: 8 });
    }

    #[test]
    fn a_half_that_changes_while_it_is_read_is_that_of_the_other() {
        assert_eq!(whole([1, u32::MAX, 2]), 0x1_ffff_ffff);
        assert_eq!(whole([1, 5, 2]), 0x2_0000_0005);
        assert_eq!(whole([7, 5, 7]), 0x7_0000_0005);
    }

    #[derive(Default)]
    struct Words(BTreeMap<u32, u32>);

    impl Registers for Words {
        type Error = ();

        fn read(&mut self, address: u32) -> Result<u32, ()> {
            Ok(self.0.get(&address).copied().unwrap_or_default())
        }

        fn write(&mut self, _: u32, _: u32) -> Result<(), ()> {
            Err(())
        }
    }

    #[test]
    fn a_call_that_runs_is_part_of_the_busy_time() {
        let base = map::BASE;
        let mut words = Words::default();
        let shape = TIME_BINS | 2 << 8 | 8 << 16;
        words.0.extend([
            (map::CLOCK_HZ.at(base), 1000),
            (map::SHAPE.at(base), shape),
            (map::NOW_LO.at(base), 0x1_0000),
            (map::RUNNING.at(base), 2),
            (map::SINCE.word(base, 0), 0x80),
            (map::SINCE.word(base, 1), 0xf0),
            (map::RUN_SUM_LO.word(base, 1), 5),
            (map::LATENCY.word(base, 3 * MAX_SOCKETS + 1), 7),
            (map::QUEUE.word(base, MAX_SOCKETS), 9),
        ]);
        let histograms = Histograms::at(&mut words, base).unwrap();
        let times = histograms.read(&mut words).unwrap();
        assert_eq!((histograms.clock_hz, times.now, times.sockets.len()), (1000, 0x1_0000, 2));
        let [idle, busy] = &times.sockets[..] else { panic!() };
        assert_eq!((idle.busy, busy.busy), (0, 5 + 0x1000));
        assert_eq!((busy.latency.counts[3], busy.latency.count(), idle.queue.counts[1]), (7, 7, 9));
    }
}
