// SPDX-License-Identifier: Apache-2.0
//! Which parts of the device's memory are in use.

use std::collections::BTreeMap;
use std::ops::Range;

/// What buffers begin at a multiple of: the widest beat of device memory.
pub(crate) const ALIGNMENT: u64 = 64;

/// A range of addresses, given out in parts.
#[derive(Debug)]
pub(crate) struct Heap {
    range: Range<u64>,
    /// By the first: the one behind the last.
    used: BTreeMap<u64, u64>,
}

impl Heap {
    pub(crate) fn new(range: Range<u64>) -> Self {
        Self { range, used: BTreeMap::new() }
    }

    pub(crate) fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Free parts, from the lowest on.
    fn gaps(&self) -> impl Iterator<Item = Range<u64>> {
        let begins = std::iter::once(self.range.start).chain(self.used.values().copied());
        let ends = self.used.keys().copied().chain(std::iter::once(self.range.end));
        begins.zip(ends).map(|(begin, end)| begin..end)
    }

    /// The lowest place with room for `len` bytes.
    pub(crate) fn take(&mut self, len: u64) -> Option<u64> {
        let room = |gap: &Range<u64>| {
            let first = gap.start.checked_next_multiple_of(ALIGNMENT)?;
            (first.checked_add(len)? <= gap.end).then_some(first)
        };
        let first = self.gaps().find_map(|gap| room(&gap))?;
        self.used.insert(first, first + len);
        Some(first)
    }

    /// Takes these addresses, if all of them are free.
    pub(crate) fn take_at(&mut self, first: u64, len: u64) -> bool {
        let end = first.checked_add(len);
        let free = end.is_some_and(|end| self.gaps().any(|gap| gap.start <= first && end <= gap.end));
        if free {
            self.used.insert(first, first + len);
        }
        free
    }

    /// Gives back what begins there.
    pub(crate) fn give(&mut self, first: u64) {
        self.used.remove(&first);
    }

    /// Bytes of the largest part that can be taken.
    pub(crate) fn largest(&self) -> u64 {
        let room = |gap: Range<u64>| gap.end.saturating_sub(gap.start.next_multiple_of(ALIGNMENT));
        self.gaps().map(room).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap_and_are_used_again() {
        let mut heap = Heap::new(0x1000..0x2000);
        let [a, b, c] = [1, 64, 65].map(|len| heap.take(len).unwrap());
        assert_eq!([a, b, c], [0x1000, 0x1040, 0x1080]);
        assert_eq!(heap.largest(), 0x2000 - 0x1100);
        heap.give(b);
        assert_eq!(heap.take(65), Some(0x1100));
        assert_eq!(heap.take(64), Some(b));
        assert_eq!(heap.take(0x1000), None);
        assert_eq!(heap.take(u64::MAX), None);
        for first in [a, b, c, 0x1100] {
            heap.give(first);
        }
        assert_eq!((heap.largest(), heap.take(0x1000)), (0x1000, Some(0x1000)));
        assert_eq!((heap.largest(), heap.take(1)), (0, None));
    }

    #[test]
    fn a_place_is_taken_once() {
        let mut heap = Heap::new(0x1000..0x2000);
        assert!(heap.take_at(0x1801, 7));
        for (first, len) in [(0x1801, 7), (0x1807, 1), (0x1800, 2), (0xfff, 1), (0x1fff, 2), (0x1fff, u64::MAX)] {
            assert!(!heap.take_at(first, len), "{first:#x}, {len}");
        }
        assert!(heap.take_at(0x1808, 0x7f8) && heap.take_at(0x1000, 0x801));
        assert_eq!(heap.largest(), 0);
    }

    #[test]
    fn nothing_has_no_parts() {
        let mut heap = Heap::new(0..0);
        assert_eq!((heap.largest(), heap.take(1), heap.take_at(0, 1)), (0, None, false));
    }
}
