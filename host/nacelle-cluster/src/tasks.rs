// SPDX-License-Identifier: Apache-2.0
//! What is to be done at which moment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use nacelle_roce::Instant;

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    /// A side of a connection does its next operation.
    Act(u64, usize),
    /// A connection must have made progress, or have ended.
    Watch(u64),
    /// A new connection is opened.
    Open,
    /// Something breaks.
    Fault,
    /// These directions are whole again; they were cut for long or not.
    Mend(Vec<(usize, usize)>, bool),
    /// A node starts again.
    Restart(usize),
    /// A device must have freed what callers held that have gone.
    Freed(usize),
}

/// Tasks in order of time, those of the same moment in the order in which they were added.
#[derive(Default)]
pub(crate) struct Tasks {
    heap: BinaryHeap<Reverse<(Instant, u64, Task)>>,
    number: u64,
}

impl Tasks {
    pub(crate) fn add(&mut self, at: Instant, task: Task) {
        self.heap.push(Reverse((at, self.number, task)));
        self.number += 1;
    }

    /// When the next is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next that is due by now.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Task> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, _, task))| task)
    }
}
