// SPDX-License-Identifier: Apache-2.0
//! Where flows are: two banks of rows, of which the hash names one each for a flow; a row has three slots, for three flows of IPv4 or one of
//! IPv6. Where both rows are full, flows that are there move to their other row (cuckoo hashing).

use std::collections::HashSet;

use super::flow::{Flow, FlowKey};

/// Rows of a bank.
const ROWS: usize = 1 << ROW_BITS;
const ROW_BITS: u32 = 10;
const BANKS: usize = 2;
/// Slots of a row.
const SLOTS: usize = 3;
const CHUNK_BITS: usize = 6;
const CHUNK_ROWS: usize = 1 << CHUNK_BITS;
const CHUNKS: usize = 50;
/// Flows that may have to move for one, at most as many behind each other.
const DEPTHS: [usize; 8] = [0, 1, 2, 4, 8, 16, 64, 512];

/// A slot of a row; the bank is the upper bit of the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) row: usize,
    pub(super) slot: usize,
}

impl Place {
    /// As the registers name it, for a flow of IPv6 or another.
    pub(super) fn word(self, whole: bool) -> u32 {
        (self.row | self.slot << (ROW_BITS + 1) | usize::from(whole) << (ROW_BITS + 3)) as u32
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..BANKS * ROWS).flat_map(|row| (0..SLOTS).map(move |slot| Self { row, slot }))
    }

    /// The word of the register of what is in use, and the bit.
    pub(super) fn used(self) -> (usize, usize) {
        (self.slot * BANKS * ROWS / 32 + self.row / 32, self.row % 32)
    }
}

/// The hash of the hardware, for a seed.
#[derive(Debug, Clone)]
pub(super) struct Hash(Vec<[u32; CHUNK_ROWS]>);

impl Hash {
    pub(super) fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut number = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 32) as u32).wrapping_add(state as u32) >> (32 - 2 * ROW_BITS)
        };
        Self((0..CHUNKS).map(|_| std::array::from_fn(|_| number())).collect())
    }

    /// The rows in which a flow can be.
    pub(super) fn rows(&self, key: &FlowKey) -> [usize; BANKS] {
        let words = key.words();
        let bit = |bit: usize| words.get(bit / 32).map_or(0, |word| (word >> (bit % 32) & 1) as usize);
        let found = self.0.iter().enumerate().fold(0, |found, (chunk, numbers)| {
            let at = (0..CHUNK_BITS).fold(0, |at, place| at | bit(chunk * CHUNK_BITS + place) << place);
            found ^ numbers[at]
        }) as usize;
        [found % ROWS, ROWS + found / ROWS]
    }
}

/// What is in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Slot {
    #[default]
    Free,
    /// This; of IPv6 it is in slot 0 and takes the row.
    Flow(Flow),
    /// What no [`Flow`] says: it stays where it is.
    Foreign,
}

/// A step of a change: each of them is one for frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Put(Place, Flow),
    Delete(Place, bool),
}

/// What is where.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) hash: Hash,
    rows: Vec<[Slot; SLOTS]>,
    /// What has been done to it.
    pub(super) steps: Vec<Step>,
    /// Flows that have moved.
    pub(super) moved: usize,
}

impl Places {
    pub(super) fn new(hash: Hash) -> Self {
        Self { hash, rows: vec![[Slot::Free; SLOTS]; BANKS * ROWS], steps: Vec::new(), moved: 0 }
    }

    /// What is there, without a step.
    pub(super) fn set(&mut self, place: Place, slot: Slot) {
        self.rows[place.row][place.slot] = slot;
    }

    /// The places that a flow can have.
    pub(super) fn candidates(&self, key: &FlowKey) -> Vec<Place> {
        self.hash.rows(key).into_iter().flat_map(|row| (0..SLOTS).map(move |slot| Place { row, slot })).collect()
    }

    pub(super) fn find(&self, key: &FlowKey) -> Option<(Place, Flow)> {
        self.candidates(key).into_iter().find_map(|place| match self.rows[place.row][place.slot] {
            Slot::Flow(flow) if flow.key == *key => Some((place, flow)),
            _ => None,
        })
    }

    /// All that is in use.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Place, Slot)> + '_ {
        Place::all().map(|place| (place, self.rows[place.row][place.slot])).filter(|(_, slot)| *slot != Slot::Free)
    }

    pub(super) fn put(&mut self, place: Place, flow: Flow) {
        self.rows[place.row][place.slot] = Slot::Flow(flow);
        self.steps.push(Step::Put(place, flow));
    }

    pub(super) fn delete(&mut self, place: Place) {
        let whole = matches!(self.rows[place.row][place.slot], Slot::Flow(flow) if flow.key.is_v6());
        self.rows[place.row][place.slot] = Slot::Free;
        self.steps.push(Step::Delete(place, whole));
    }

    /// Puts a flow that is not here into a place; others move out of its way if they may. False: there is no room, and nothing has changed.
    pub(super) fn insert(&mut self, flow: Flow, others_move: bool) -> bool {
        let mut rows = self.hash.rows(&flow.key);
        rows.sort_by_key(|row| self.rows[*row].iter().filter(|slot| **slot != Slot::Free).count());
        for depth in DEPTHS.into_iter().take_while(|depth| *depth == 0 || others_move) {
            for row in rows {
                let (steps, moved) = (self.steps.len(), self.moved);
                if let Some(slot) = self.make_room(row, flow.key.is_v6(), depth, &mut HashSet::new()) {
                    self.put(Place { row, slot }, flow);
                    return true;
                }
                self.undo(steps, moved);
            }
        }
        false
    }

    /// A slot of the row that is free, or has become so. None: some flows may have moved.
    fn make_room(&mut self, row: usize, whole: bool, depth: usize, on_the_way: &mut HashSet<usize>) -> Option<usize> {
        if on_the_way.contains(&row) {
            return None;
        }
        if let Some(slot) = self.free(row, whole) {
            return Some(slot);
        }
        if depth == 0 {
            return None;
        }
        on_the_way.insert(row);
        let mut found = None;
        for slot in 0..SLOTS {
            let Slot::Flow(flow) = self.rows[row][slot] else { continue };
            let [one, other] = self.hash.rows(&flow.key);
            let to = if row == one { other } else { one };
            match self.make_room(to, flow.key.is_v6(), depth - 1, on_the_way) {
                // It is in both places for a time, and so never in none.
                Some(free) => {
                    self.put(Place { row: to, slot: free }, flow);
                    self.delete(Place { row, slot });
                    self.moved += 1;
                }
                None if whole => return None,
                None => continue,
            }
            found = self.free(row, whole);
            if found.is_some() {
                break;
            }
        }
        found
    }

    fn free(&self, row: usize, whole: bool) -> Option<usize> {
        let slots = &self.rows[row];
        if whole || matches!(slots[0], Slot::Flow(flow) if flow.key.is_v6()) {
            return slots.iter().all(|slot| *slot == Slot::Free).then_some(0);
        }
        slots.iter().position(|slot| *slot == Slot::Free)
    }

    fn undo(&mut self, steps: usize, moved: usize) {
        while self.steps.len() > steps {
            // A move is a put, with the delete of the same flow behind it.
            let (Some(Step::Delete(from, _)), Some(Step::Put(to, flow))) = (self.steps.pop(), self.steps.pop()) else {
                unreachable!("only moves are undone");
            };
            self.rows[to.row][to.slot] = Slot::Free;
            self.rows[from.row][from.slot] = Slot::Flow(flow);
        }
        self.moved = moved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn flow(text: &str) -> Flow {
        text.parse().unwrap()
    }

    fn neighbours(count: u32) -> impl Iterator<Item = Flow> {
        (0..count)
            .map(|n| flow(&format!("src 10.0.0.1 dst 10.0.{}.{} tcp src-port 80 dst-port {n} drop", n >> 8, n & 255)))
    }

    /// Does the steps one by one, and looks at all flows behind each of those that are the first ones.
    fn replay(steps: &[Step], hash: &Hash) -> HashMap<Place, Flow> {
        let mut now: HashMap<Place, Flow> = HashMap::new();
        for step in steps {
            match *step {
                Step::Put(place, flow) => {
                    assert!(hash.rows(&flow.key).contains(&place.row));
                    let row = |slot| now.get(&Place { row: place.row, slot });
                    let taken = if flow.key.is_v6() {
                        (0..SLOTS).any(|slot| row(slot).is_some())
                    } else {
                        row(place.slot).is_some() || row(0).is_some_and(|flow| flow.key.is_v6())
                    };
                    assert!(!taken, "{place:?} is in use");
                    now.insert(place, flow);
                }
                Step::Delete(place, whole) => {
                    let gone = now.remove(&place).unwrap();
                    assert_eq!(gone.key.is_v6(), whole);
                    assert!(now.values().any(|flow| flow.key == gone.key), "{gone} is nowhere for a time");
                }
            }
        }
        now
    }

    /// 4096 flows of IPv4 have room, whatever the seed; the table is nearly full before one has none.
    #[test]
    fn four_thousand_flows_have_room() {
        for seed in [1, 0x1234_5678_9abc_def0, u64::MAX] {
            let hash = Hash::new(seed);
            let mut places = Places::new(hash.clone());
            let held = neighbours(6144).take_while(|flow| places.insert(*flow, true)).count();
            assert!(held > 5600, "{held}");
            assert_eq!(replay(&places.steps, &hash).len(), held);
            assert!(places.moved > 100);
            let before = places.iter().count();
            assert_eq!(before, held);
        }
    }

    #[test]
    fn flows_of_ipv6_have_room_beside_others() {
        let hash = Hash::new(77);
        let mut places = Places::new(hash.clone());
        for other in neighbours(1500) {
            assert!(places.insert(other, true));
        }
        let wide = |n: u32| flow(&format!("src 2001:db8::1 dst 2001:db8::{n:x} udp src-port 5 dst-port 6 mirror"));
        let held = (0..2000).take_while(|n| places.insert(wide(*n), true)).count();
        assert!(held > 400, "{held}");
        let now = replay(&places.steps, &hash);
        assert_eq!(now.len(), 1500 + held);
        for other in neighbours(1500) {
            assert_eq!(places.find(&other.key).map(|(place, _)| now[&place]), Some(other));
        }
        // One for which there was no room has changed nothing.
        let before = places.steps.len();
        assert!(!places.insert(wide(held as u32), true));
        assert_eq!(places.steps.len(), before);
        assert_eq!(replay(&places.steps, &hash), now);
    }

    /// As rtl/testing/nacelle_tb/classifier.py has it, against which the RTL is tested.
    #[test]
    fn the_hash_is_that_of_the_hardware() {
        let hash = Hash::new(0x0123_4567_89ab_cdef);
        let rows = |text: &str| hash.rows(&text.parse::<FlowKey>().unwrap());
        assert_eq!(rows("src 10.0.0.1 dst 10.0.0.2 tcp src-port 80 dst-port 5000"), [925, 1401]);
        assert_eq!(rows("src 2001:db8::1 dst fe80::2 udp src-port 7 dst-port 65535"), [753, 1894]);
        assert_eq!(rows("src 10.0.0.1 dst 10.0.0.2 protocol 1"), [10, 1073]);
    }
}
