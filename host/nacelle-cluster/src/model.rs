// SPDX-License-Identifier: Apache-2.0
//! What must be in memory that a peer writes and reads.

use std::collections::VecDeque;

/// Bytes that a peer writes and reads; behind them are the words of its atomics.
pub(crate) const BYTES: usize = 12_000;
/// Of 8 bytes.
pub(crate) const WORDS: usize = 8;

/// What a request changes.
struct Effect {
    request: u64,
    at: usize,
    bytes: Vec<u8>,
}

/// The content of memory, as its one peer has to expect it.
pub(crate) struct Model {
    /// When all that was posted is done.
    posted: Vec<u8>,
    /// When no more is done than has completed.
    done: Vec<u8>,
    /// What is between them, in order.
    open: VecDeque<Effect>,
}

impl Model {
    /// Memory with this content.
    pub(crate) fn new(content: Vec<u8>) -> Self {
        Self { done: content.clone(), posted: content, open: VecDeque::new() }
    }

    /// What a request that is posted now will find.
    pub(crate) fn range(&self, at: usize, length: usize) -> &[u8] {
        &self.posted[at..at + length]
    }

    /// A request is posted that changes this.
    pub(crate) fn post(&mut self, request: u64, at: usize, bytes: Vec<u8>) {
        self.posted[at..at + bytes.len()].copy_from_slice(&bytes);
        self.open.push_back(Effect { request, at, bytes });
    }

    /// A request has completed, and with it all before it.
    pub(crate) fn complete(&mut self, request: u64) {
        while let Some(effect) = self.open.pop_front_if(|effect| effect.request <= request) {
            self.done[effect.at..effect.at + effect.bytes.len()].copy_from_slice(&effect.bytes);
        }
    }

    /// Whether memory is as it must be when all requests are done.
    pub(crate) fn is_complete(&self, memory: &[u8]) -> bool {
        memory == self.posted
    }

    /// Whether memory may be so when the connection was cut off: what has completed is there, and beyond it only what was posted.
    pub(crate) fn is_possible(&self, memory: &[u8]) -> bool {
        // Packets of one message, and of messages without order between them, may have been placed in any number.
        let same = |at: usize, length: usize| {
            let found = &memory[at..at + length];
            found == &self.done[at..at + length]
                || self.open.iter().any(|effect| {
                    at.checked_sub(effect.at).and_then(|from| effect.bytes.get(from..from + length)) == Some(found)
                })
        };
        let words = (0..WORDS).map(|word| BYTES + 8 * word);
        memory[..BYTES] == self.done[..BYTES] && self.open.is_empty()
            || (0..BYTES).all(|at| same(at, 1)) && words.into_iter().all(|at| same(at, 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_possible_lies_between_what_has_completed_and_what_was_posted() {
        let start = vec![0; BYTES + 8 * WORDS];
        let mut model = Model::new(start.clone());
        model.post(1, 10, vec![1; 4]);
        model.post(2, 12, vec![2; 4]);
        model.post(3, BYTES, vec![3; 8]);
        model.complete(1);
        let memory = |changes: &[(usize, u8)]| {
            let mut memory = start.clone();
            changes.iter().for_each(|(at, byte)| memory[*at] = *byte);
            memory
        };
        let one = [(10, 1), (11, 1), (12, 1), (13, 1)];
        assert!(model.is_possible(&memory(&one)));
        assert!(!model.is_possible(&memory(&one[1..])), "what has completed must be there");
        assert!(model.is_possible(&memory(&[(10, 1), (11, 1), (12, 2), (13, 1), (15, 2)])));
        assert!(!model.is_possible(&memory(&[(10, 1), (11, 1), (12, 1), (13, 1), (16, 2)])), "nothing else changes");
        let mut words = memory(&one);
        words[BYTES..BYTES + 8].fill(3);
        assert!(model.is_possible(&words));
        words[BYTES] = 0;
        assert!(!model.is_possible(&words), "an atomic changes all of its word");
        words[10..16].copy_from_slice(&[1, 1, 2, 2, 2, 2]);
        words[BYTES] = 3;
        assert!(model.is_complete(&words));
    }
}
