// SPDX-License-Identifier: Apache-2.0
//! Addresses of buffers, as the device sees them.

use std::collections::BTreeMap;
use std::ops::Range;

/// Behind the first 4 GiB, where IOMMUs have reserved addresses (those of MSI, for example), and below 2^38, which the narrowest have.
const ADDRESSES: Range<u64> = 1 << 32..1 << 38;
/// What mapping counts in.
pub(crate) const PAGE: u64 = 4096;

/// Which addresses are in use.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// By the first: the one behind the last.
    used: BTreeMap<u64, u64>,
}

impl Addresses {
    /// The lowest place with room for `len` bytes, a multiple of the page size.
    pub(crate) fn take(&mut self, len: u64) -> Option<u64> {
        let mut place = ADDRESSES.start;
        for (first, end) in &self.used {
            if first.checked_sub(place).is_some_and(|gap| gap >= len) {
                break;
            }
            place = place.max(*end);
        }
        let end = place.checked_add(len).filter(|end| *end <= ADDRESSES.end)?;
        self.used.insert(place, end);
        Some(place)
    }

    /// Takes `len` bytes from `first` on, wherever that is. False: there are none, or some are in use.
    pub(crate) fn claim(&mut self, first: u64, len: u64) -> bool {
        let Some(end) = first.checked_add(len).filter(|_| len > 0) else { return false };
        let free = self.used.range(..end).next_back().is_none_or(|(_, before)| *before <= first);
        if free {
            self.used.insert(first, end);
        }
        free
    }

    /// Gives back the place that begins there.
    pub(crate) fn give(&mut self, first: u64) {
        self.used.remove(&first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_overlap_and_are_used_again() {
        let mut addresses = Addresses::default();
        let [a, b, c] = [0x1000, 0x3000, 0x1000].map(|len| addresses.take(len).unwrap());
        assert_eq!((a, b, c), (1 << 32, (1 << 32) + 0x1000, (1 << 32) + 0x4000));
        addresses.give(b);
        assert_eq!(addresses.take(0x4000), Some(c + 0x1000));
        assert_eq!(addresses.take(0x2000), Some(b));
        assert_eq!(addresses.take(0x1000), Some(b + 0x2000));
        assert_eq!(addresses.take(1 << 38), None);
        assert_eq!(addresses.take(u64::MAX), None);
    }

    #[test]
    fn places_of_others_are_left_alone() {
        let mut addresses = Addresses::default();
        assert!(addresses.claim(0, 0x1000) && addresses.claim(1 << 32, 0x2000));
        for (first, len) in
            [(0, 0x1000), (0xfff, 1), ((1 << 32) - 1, 2), ((1 << 32) + 0x1fff, 1), (u64::MAX, 1), (0, 0)]
        {
            assert!(!addresses.claim(first, len), "{first:#x}, {len:#x}");
        }
        assert!(addresses.claim(0x1000, (1 << 32) - 0x1000));
        assert_eq!(addresses.take(0x1000), Some((1 << 32) + 0x2000));
        addresses.give(1 << 32);
        assert_eq!(addresses.take(0x2000), Some(1 << 32));
    }
}
