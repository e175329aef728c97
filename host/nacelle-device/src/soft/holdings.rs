// SPDX-License-Identifier: Apache-2.0
//! Device memory that callers hold: in all, and at each address, without a look at every caller.

use std::collections::HashMap;
use std::net::IpAddr;

/// Bytes that are held.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    total: u64,
    /// No address is here with nothing.
    by_peer: HashMap<IpAddr, u64>,
}

impl Holdings {
    /// Bytes of all callers.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of all callers at an address, and of functions that have not returned what callers there have lost.
    pub(super) fn of(&self, peer: IpAddr) -> u64 {
        self.by_peer.get(&peer).copied().unwrap_or_default()
    }

    /// A caller at this address gets so many bytes.
    pub(super) fn take(&mut self, peer: IpAddr, bytes: u64) {
        if bytes > 0 {
            self.total += bytes;
            *self.by_peer.entry(peer).or_default() += bytes;
        }
    }

    /// So many bytes of this address are free again.
    pub(super) fn give_back(&mut self, peer: IpAddr, bytes: u64) {
        self.total -= bytes;
        if let Some(held) = self.by_peer.get_mut(&peer) {
            *held -= bytes;
            if *held == 0 {
                self.by_peer.remove(&peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_own_and_none_is_kept_with_nothing() {
        let peers = [1, 2].map(|end| IpAddr::from([10, 0, 0, end]));
        let mut holdings = Holdings::default();
        holdings.take(peers[0], 5);
        holdings.take(peers[1], 7);
        holdings.take(peers[0], 11);
        holdings.take(peers[1], 0);
        assert_eq!((holdings.total(), holdings.of(peers[0]), holdings.of(peers[1])), (23, 16, 7));
        holdings.give_back(peers[0], 5);
        holdings.give_back(peers[1], 7);
        assert_eq!((holdings.total(), holdings.of(peers[0]), holdings.of(peers[1])), (11, 11, 0));
        assert_eq!(holdings.by_peer.len(), 1);
    }
}
