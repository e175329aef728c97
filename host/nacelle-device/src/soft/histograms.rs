// SPDX-License-Identifier: Apache-2.0
//! How long calls take, as the RTL measures it (docs/reference/histograms.md), and its registers. Here several calls of a socket can run at
//! once: its time is the sum of theirs.

use nacelle_manage::histograms::{MAX_SOCKETS, NOW_BITS, QUEUE_BINS, SINCE_SHIFT, SUM_BITS, TIME_BINS};
use nacelle_manage::map::{Register, histograms as map};

use super::session::At;
use super::{Clock, SoftEngine};

/// Nanoseconds of a cycle.
const CYCLE: u64 = 10;
const CLOCK_HZ: u32 = 100_000_000;
/// Bound of the first bin of a time, as a power of two.
const FIRST: u32 = 8;
const SUM_MASK: u64 = (1 << SUM_BITS) - 1;

/// The time that is measured by.
pub(super) fn cycles(clock: &Clock) -> u64 {
    clock.now().as_nanos() / CYCLE
}

/// The bin of a value among `bins`, of which the first has what is below 2^first.
fn bin_of(value: u64, first: u32, bins: usize) -> usize {
    let bits = u64::BITS - value.leading_zeros();
    (bits.saturating_sub(first) as usize).min(bins - 1)
}

/// A sum: its halves, and where it is.
type Sum = (&'static Register, &'static Register, fn(&Socket) -> u64);

/// Values in bins.
struct Bins<const N: usize> {
    counts: [u32; N],
    sum: u64,
}

impl<const N: usize> Default for Bins<N> {
    fn default() -> Self {
        Self { counts: [0; N], sum: 0 }
    }
}

impl<const N: usize> Bins<N> {
    fn add(&mut self, value: u64, first: u32) {
        let count = &mut self.counts[bin_of(value, first, N)];
        *count = count.wrapping_add(1);
        self.sum = self.sum.wrapping_add(value) & SUM_MASK;
    }
}

/// What was measured of a socket, and what it has now.
#[derive(Default)]
struct Socket {
    latency: Bins<{ TIME_BINS as usize }>,
    run: Bins<{ TIME_BINS as usize }>,
    queue: Bins<{ QUEUE_BINS as usize }>,
    /// Calls that wait or run.
    calls: u64,
    running: u64,
    /// Sum of the times at which they began.
    began: u64,
}

/// Of all sockets.
#[derive(Default)]
pub(super) struct Histograms {
    sockets: [Socket; MAX_SOCKETS as usize],
    clears: u8,
}

/// The function of a call that waits or runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timed {
    socket: u16,
    came: u64,
    began: Option<u64>,
}

impl Histograms {
    /// A function is called in a socket, at this time.
    pub(super) fn arrive(&mut self, socket: u16, now: u64) -> Timed {
        if let Some(socket) = self.sockets.get_mut(usize::from(socket)) {
            socket.queue.add(socket.calls, 0);
            socket.calls += 1;
        }
        Timed { socket, came: now, began: None }
    }

    /// It runs from now on.
    pub(super) fn begin(&mut self, timed: &mut Timed, now: u64) {
        timed.began = Some(now);
        if let Some(socket) = self.sockets.get_mut(usize::from(timed.socket)) {
            socket.running += 1;
            socket.began = socket.began.wrapping_add(now);
        }
    }

    /// It has ended. One that never ran is in no histogram but that of its arrival.
    pub(super) fn end(&mut self, timed: Timed, now: u64) {
        let Some(socket) = self.sockets.get_mut(usize::from(timed.socket)) else { return };
        socket.calls -= 1;
        if let Some(began) = timed.began {
            socket.running -= 1;
            socket.began = socket.began.wrapping_sub(began);
            socket.latency.add(now - timed.came, FIRST);
            socket.run.add(now - began, FIRST);
        }
    }

    fn clear(&mut self) {
        self.clears = self.clears.wrapping_add(1);
        for socket in &mut self.sockets {
            let Socket { calls, running, began, .. } = *socket;
            *socket = Socket { calls, running, began, ..Socket::default() };
        }
    }

    /// Reads a register at this time.
    fn read(&self, address: u32, now: u64, sockets: u32) -> Option<u32> {
        let word = |register: &Register| {
            let offset = address.checked_sub(register.at(map::BASE))?;
            (offset % 4 == 0 && offset / 4 < register.count.unwrap_or(1)).then_some(offset / 4)
        };
        let is = |register: &Register| word(register).is_some();
        let of = |word: u32| (&self.sockets[(word % MAX_SOCKETS) as usize], (word / MAX_SOCKETS) as usize);
        let now = now & ((1 << NOW_BITS) - 1);
        if is(&map::TYPE) {
            return Some(u32::from_be_bytes(map::BLOCK.kind));
        } else if is(&map::VERSION) {
            return Some(map::BLOCK.version);
        } else if is(&map::NEXT) {
            return Some(0);
        } else if is(&map::CLOCK_HZ) {
            return Some(CLOCK_HZ);
        } else if is(&map::NOW_LO) {
            return Some(now as u32);
        } else if is(&map::NOW_HI) {
            return Some((now >> 32) as u32);
        } else if is(&map::SHAPE) {
            let shape = map::SHAPE_BINS.put(0, TIME_BINS);
            return Some(map::SHAPE_FIRST.put(map::SHAPE_SOCKETS.put(shape, sockets.min(MAX_SOCKETS)), FIRST));
        } else if is(&map::STATUS) {
            return Some(map::STATUS_CLEARS.put(0, self.clears.into()));
        } else if is(&map::RUNNING) {
            return Some((0..).zip(&self.sockets).map(|(bit, socket)| u32::from(socket.running > 0) << bit).sum());
        } else if let Some(socket) = word(&map::SINCE) {
            // As if one had run as long as all that run together.
            let (Socket { running, began, .. }, _) = of(socket);
            let together = now.wrapping_mul(*running).wrapping_sub(*began);
            return Some((now.wrapping_sub(together) >> SINCE_SHIFT) as u32);
        } else if let Some(word) = word(&map::LATENCY) {
            let (socket, bin) = of(word);
            return Some(socket.latency.counts[bin]);
        } else if let Some(word) = word(&map::RUN) {
            let (socket, bin) = of(word);
            return Some(socket.run.counts[bin]);
        } else if let Some(word) = word(&map::QUEUE) {
            let (socket, bin) = of(word);
            return Some(socket.queue.counts[bin]);
        }
        let sums: [Sum; 3] = [
            (&map::LATENCY_SUM_LO, &map::LATENCY_SUM_HI, |socket| socket.latency.sum),
            (&map::RUN_SUM_LO, &map::RUN_SUM_HI, |socket| socket.run.sum),
            (&map::QUEUE_SUM_LO, &map::QUEUE_SUM_HI, |socket| socket.queue.sum),
        ];
        sums.iter().find_map(|(low, high, sum)| {
            let low = word(low).map(|word| sum(of(word).0) as u32);
            low.or_else(|| word(high).map(|word| (sum(of(word).0) >> 32) as u32))
        })
    }
}

impl SoftEngine {
    pub(super) fn read_histograms(&self, address: u32) -> Option<u32> {
        let sockets = self.config.kernels.socket_count();
        self.histograms.read(address, cycles(&self.clock), sockets)
    }

    pub(super) fn write_histograms(&mut self, address: u32, value: u32) -> Option<()> {
        if address != map::COMMAND.at(map::BASE) {
            return None;
        }
        if map::COMMAND_CLEAR.of(value) == 1 {
            self.histograms.clear();
        }
        Some(())
    }

    /// The function that the call of a context waits for runs from now on.
    pub(super) fn begin_timed(&mut self, at: At) {
        let now = cycles(&self.clock);
        let call = self.sessions.context_mut(at).and_then(|state| state.call.as_mut());
        if let Some(timed) = call.and_then(|call| call.timed.as_mut()) {
            self.histograms.begin(timed, now);
        }
    }

    /// It has ended.
    pub(super) fn end_timed(&mut self, at: At) {
        let call = self.sessions.context_mut(at).and_then(|state| state.call.as_mut());
        if let Some(timed) = call.and_then(|call| call.timed.take()) {
            self.histograms.end(timed, cycles(&self.clock));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(histograms: &Histograms, register: &Register, index: u32) -> u32 {
        histograms.read(register.word(map::BASE, index), 1_000_000, 2).unwrap()
    }

    #[test]
    fn bins_are_those_of_the_rtl() {
        for (value, bin) in
            [(0, 0), (255, 0), (256, 1), (511, 1), (512, 2), ((1 << 30) - 1, 22), (1 << 30, 23), (u64::MAX, 23)]
        {
            assert_eq!(bin_of(value, FIRST, 24), bin, "{value}");
        }
        for (value, bin) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (63, 6), (64, 7), (1000, 7)] {
            assert_eq!(bin_of(value, 0, 8), bin, "{value}");
        }
    }

    #[test]
    fn calls_are_measured_and_one_that_never_ran_only_comes() {
        let mut all = Histograms::default();
        let mut first = all.arrive(1, 1000);
        let second = all.arrive(1, 1100);
        let mut third = all.arrive(1, 1200);
        all.begin(&mut first, 2000);
        all.end(second, 2100);
        all.begin(&mut third, 3000);
        assert_eq!(
            (word(&all, &map::RUNNING, 0), word(&all, &map::SINCE, 1)),
            (2, ((1_000_000 - 998_000 - 997_000_i64) >> 8) as u32)
        );
        all.end(first, 2000 + 300);
        all.end(third, 5000);
        let queue: Vec<u32> = (0..3).map(|bin| word(&all, &map::QUEUE, bin * MAX_SOCKETS + 1)).collect();
        assert_eq!(queue, [1, 1, 1]);
        assert_eq!(word(&all, &map::RUN, MAX_SOCKETS + 1), 1);
        assert_eq!([word(&all, &map::RUN_SUM_LO, 1), word(&all, &map::LATENCY_SUM_LO, 1)], [2300, 1300 + 3800]);
        assert_eq!((word(&all, &map::RUNNING, 0), word(&all, &map::RUN_SUM_LO, 0)), (0, 0));
        all.clear();
        assert_eq!((word(&all, &map::RUN_SUM_LO, 1), word(&all, &map::STATUS, 0)), (0, 1 << 16));
        assert_eq!(all.read(map::COMMAND.at(map::BASE), 0, 2), None);
    }
}
