// SPDX-License-Identifier: Apache-2.0
//! Keys, with a source of random numbers that repeats itself.

use super::*;

/// A key is never 0, and never one that is in use.
#[test]
fn keys_are_unique() {
    let mut drawn = [0, 5, 0, 5, 6, 5, 6, 0, 7].into_iter();
    let mut random = || drawn.next().unwrap();
    let mut table = RegionTable::new(9);
    let mut register = || table.register(Memory::zeroed(8), Access::LOCAL, Scope::Local, &mut random).unwrap();
    let regions = [register(), register()];
    assert_eq!(regions.map(|r| r.rkey), [Rkey(5), Rkey(6)]);
    // A new key is another one than the old.
    assert_eq!(table.rekey(regions[0].id, &mut random).unwrap().rkey, Rkey(7));
    // A key that is no longer in use can be drawn again.
    assert_eq!(table.rekey(regions[1].id, || 5).unwrap().rkey, Rkey(5));
    assert!(table.invalidate(regions[1].id));
    assert_eq!(table.rekey(regions[0].id, || 5).unwrap().rkey, Rkey(5));
}
