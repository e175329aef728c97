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

    /// Keeps those of which this is true.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.0.retain_mut(|(_, queue)| {
            queue.retain(&mut keep);
            !queue.is_empty()
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|(_, queue)| queue.len()).sum()
    }
}
