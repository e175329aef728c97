// SPDX-License-Identifier: Apache-2.0
//! What waits, in the order in which it is its turn: connections one after the other, and of each the oldest first. So a
//! connection with much that waits delays what another has by one of its own.

use std::collections::{HashMap, VecDeque};

use nacelle_roce::ConnId;

/// What waits. No owner is here with nothing.
#[derive(Debug)]
pub(super) struct Turns<T> {
    queues: HashMap<ConnId, VecDeque<T>>,
    /// The owners, the next one first.
    order: VecDeque<ConnId>,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { queues: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T> Turns<T> {
    /// Adds one, behind what its owner has.
    pub(super) fn push(&mut self, owner: ConnId, one: T) {
        let queue = self.queues.entry(owner).or_default();
        if queue.is_empty() {
            self.order.push_back(owner);
        }
        queue.push_back(one);
    }

    /// The next; then it is the next owner's turn.
    pub(super) fn pop(&mut self) -> Option<T> {
        let owner = self.order.pop_front()?;
        let queue = self.queues.get_mut(&owner)?;
        let one = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&owner);
        } else {
            self.order.push_back(owner);
        }
        one
    }

    /// Takes the one of an owner of which this is true out of its turn.
    pub(super) fn remove(&mut self, owner: ConnId, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let queue = self.queues.get_mut(&owner)?;
        let one = queue.remove(queue.iter().position(is_it)?);
        if queue.is_empty() {
            self.queues.remove(&owner);
            self.order.retain(|waiting| *waiting != owner);
        }
        one
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.queues.values().map(VecDeque::len).sum()
    }
}
