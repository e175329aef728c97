// SPDX-License-Identifier: Apache-2.0
//! Device memory that callers hold: in all, and of each holder, without a look at every caller.

use std::collections::HashMap;
use std::net::IpAddr;

/// Whose memory counts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    /// Of all callers at an address.
    Peer(IpAddr),
    /// Of all callers that an entry of admission has admitted.
    Entry(u8),
}

/// Bytes that are held.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    total: u64,
    /// No holder is here with nothing.
    by_holder: HashMap<Holder, u64>,
}

impl Holdings {
    /// Bytes of all callers.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of a holder, and of functions that have not returned what its callers have lost.
    pub(super) fn of(&self, holder: Holder) -> u64 {
        self.by_holder.get(&holder).copied().unwrap_or_default()
    }

    /// A caller of this holder gets so many bytes.
    pub(super) fn take(&mut self, holder: Holder, bytes: u64) {
        if bytes > 0 {
            self.total += bytes;
            *self.by_holder.entry(holder).or_default() += bytes;
        }
    }

    /// So many bytes of this holder are free again.
    pub(super) fn give_back(&mut self, holder: Holder, bytes: u64) {
        self.total -= bytes;
        if let Some(held) = self.by_holder.get_mut(&holder) {
            *held -= bytes;
            if *held == 0 {
                self.by_holder.remove(&holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_holder_has_its_own_and_none_is_kept_with_nothing() {
        let peers = [Holder::Peer([10, 0, 0, 1].into()), Holder::Entry(1)];
        let mut holdings = Holdings::default();
        holdings.take(peers[0], 5);
        holdings.take(peers[1], 7);
        holdings.take(peers[0], 11);
        holdings.take(peers[1], 0);
        assert_eq!((holdings.total(), holdings.of(peers[0]), holdings.of(peers[1])), (23, 16, 7));
        holdings.give_back(peers[0], 5);
        holdings.give_back(peers[1], 7);
        assert_eq!((holdings.total(), holdings.of(peers[0]), holdings.of(peers[1])), (11, 11, 0));
        assert_eq!(holdings.by_holder.len(), 1);
    }
}
