// SPDX-License-Identifier: Apache-2.0
//! What waits, in the order in which it is its turn: connections one after the other, and of each the oldest first. So a
//! connection with much that waits delays what another has by one of its own.

use std::collections::VecDeque;

use nacelle_roce::ConnId;

/// What waits, by its owner, in the order of turns. No owner is here with nothing.
#[derive(Debug)]
pub(super) struct Turns<T>(VecDeque<(ConnId, VecDeque<T>)>);

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Turns<T> {
    /// Adds one, behind what its owner has.
    pub(super) fn push(&mut self, owner: ConnId, one: T) {
        match self.0.iter_mut().find(|(conn, _)| *conn == owner) {
            Some((_, queue)) => queue.push_back(one),
            None => self.0.push_back((owner, VecDeque::from([one]))),
        }
    }

    /// The next; then it is the next owner's turn.
    pub(super) fn pop(&mut self) -> Option<T> {
        let (owner, mut queue) = self.0.pop_front()?;
        let one = queue.pop_front();
        if !queue.is_empty() {
            self.0.push_back((owner, queue));
        }
        one
    }

    /// Takes the one of which this is true out of its turn.
    pub(super) fn remove(&mut self, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let find = |queue: &VecDeque<T>| queue.iter().position(&is_it);
        let (owner, place) = self.0.iter().enumerate().find_map(|(owner, (_, queue))| Some((owner, find(queue)?)))?;
        let queue = &mut self.0[owner].1;
        let one = queue.remove(place);
        if queue.is_empty() {
            self.0.remove(owner);
        }
        one
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|(_, queue)| queue.len()).sum()
    }
}
