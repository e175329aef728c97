// SPDX-License-Identifier: Apache-2.0
//! Deadlines of many connections: which is next, in a time that grows with the logarithm of their number.

#[cfg(test)]
mod tests;

use crate::Instant;

/// Not in the heap.
const NOWHERE: u32 = u32::MAX;

/// One deadline for each of some small numbers: a binary heap that knows where the deadline of each number lies, so that it can be
/// moved. Equal deadlines come in the order of the numbers. It allocates only when a number is used that is larger than all before.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    /// No entry is before its parent, which lies at `(place - 1) / 2`.
    heap: Vec<(Instant, u32)>,
    /// Where the deadline of a number lies in the heap.
    places: Vec<u32>,
}

impl Deadlines {
    /// The next deadline.
    pub(crate) fn first(&self) -> Option<Instant> {
        self.heap.first().map(|(at, _)| *at)
    }

    /// Sets the deadline of a number that has none, or brings it forward; one that is earlier stays.
    pub(crate) fn bring_forward(&mut self, number: u32, at: Instant) {
        let index = number as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, NOWHERE);
            self.heap.reserve(index + 1 - self.heap.len());
        }
        let mut place = self.places[index] as usize;
        if self.places[index] == NOWHERE {
            place = self.heap.len();
            self.heap.push((at, number));
        } else if at < self.heap[place].0 {
            self.heap[place].0 = at;
        } else {
            return;
        }
        self.rise(place);
    }

    /// Takes the deadline of a number away, if it has one.
    pub(crate) fn clear(&mut self, number: u32) {
        if let Some(&place) = self.places.get(number as usize).filter(|place| **place != NOWHERE) {
            self.remove(place as usize);
        }
    }

    /// Takes the next deadline away if it has come, and gives its number.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<u32> {
        let (_, number) = self.heap.first().copied().filter(|(at, _)| *at <= now)?;
        self.remove(0);
        Some(number)
    }

    fn remove(&mut self, place: usize) {
        let (_, number) = self.heap.swap_remove(place);
        self.places[number as usize] = NOWHERE;
        if place < self.heap.len() {
            self.rise(place);
            self.sink(place);
        }
    }

    /// Moves the entry at `place` towards the root, as far as it belongs there.
    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.heap[place] < self.heap[(place - 1) / 2] {
            let parent = (place - 1) / 2;
            self.swap(place, parent);
            place = parent;
        }
        self.places[self.heap[place].1 as usize] = place as u32;
    }

    /// Moves the entry at `place` away from the root, as far as it belongs there.
    fn sink(&mut self, mut place: usize) {
        let earliest = |heap: &[(Instant, u32)], place: usize| {
            let children = 2 * place + 1..(2 * place + 3).min(heap.len());
            children.min_by_key(|child| heap[*child]).filter(|child| heap[*child] < heap[place])
        };
        while let Some(child) = earliest(&self.heap, place) {
            self.swap(place, child);
            place = child;
        }
        self.places[self.heap[place].1 as usize] = place as u32;
    }

    fn swap(&mut self, place: usize, other: usize) {
        self.heap.swap(place, other);
        self.places[self.heap[place].1 as usize] = place as u32;
        self.places[self.heap[other].1 as usize] = other as u32;
    }
}
