// SPDX-License-Identifier: Apache-2.0
//! Buffers of a program that share bytes.

/// Addresses of a buffer, and what is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The first byte.
    pub first: usize,
    /// The last byte.
    pub last: usize,
    /// Whether a device writes it.
    pub written: bool,
}

/// The places of two buffers that share bytes although one of them is written. A buffer without bytes is `None`.
#[must_use]
pub fn find_overlap(buffers: impl IntoIterator<Item = Option<Extent>>) -> Option<(usize, usize)> {
    let numbered = buffers.into_iter().enumerate();
    let mut extents: Vec<_> = numbered
        .filter_map(|(index, extent)| extent.map(|Extent { first, last, written }| (first, last, index, written)))
        .collect();
    extents.sort_unstable();
    // The furthest byte so far, of any buffer and of those that are written.
    let (mut any, mut furthest_written) = (None::<(usize, usize)>, None::<(usize, usize)>);
    for (first, last, index, written) in extents {
        let before = if written { any } else { furthest_written };
        if let Some((_, other)) = before.filter(|(end, _)| first <= *end) {
            return Some((other, index));
        }
        any = any.max(Some((last, index)));
        if written {
            furthest_written = furthest_written.max(Some((last, index)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(buffers: &[(usize, usize, bool)]) -> Option<(usize, usize)> {
        let extent = |&(first, size, written): &(usize, usize, bool)| {
            (size > 0).then(|| Extent { first, last: first + size - 1, written })
        };
        find_overlap(buffers.iter().map(extent))
    }

    #[test]
    fn buffers_that_share_bytes_are_found_if_one_is_written() {
        assert_eq!(find(&[(0x1000, 16, false), (0x1010, 16, true), (0x1018, 0, true)]), None);
        assert_eq!(find(&[(0x1000, 16, false), (0x1008, 16, false), (0x1018, 4, true)]), None);
        assert_eq!(find(&[(0x1000, 16, false), (0x100f, 16, true)]), Some((0, 1)));
        assert_eq!(find(&[(0x1008, 1, true), (0x1000, 9, false)]), Some((1, 0)));
        assert_eq!(find(&[(0x1000, 16, true), (0x1000, 16, true)]), Some((0, 1)));
        // A long buffer before a short one does not hide the third.
        assert_eq!(find(&[(0x1000, 0x200, true), (0x1100, 1, false), (0x1050, 1, false)]), Some((0, 2)));
        assert_eq!(find(&[(0x1000, 100, false), (0x1001, 1, false), (0x1050, 1, true)]), Some((0, 2)));
    }
}
