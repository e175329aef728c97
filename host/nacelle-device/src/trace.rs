// SPDX-License-Identifier: Apache-2.0
//! Stores the last frames that passed a device, with their cycles.
//!
//! Frames are kept as they are, and parsed only on request: a frame that passes costs no more than its place here.

use std::collections::VecDeque;

use nacelle_link::Direction;
use nacelle_manage::{FrameKind, Trace, TraceFrame};

use crate::Stamp;

/// Frames stored, and their bytes.
const MAX_FRAMES: usize = 65_536;
const MAX_BYTES: usize = 64 << 20;
/// Frames in one answer, so that it takes a few milliseconds.
const PAGE: usize = 1024;

#[derive(Debug)]
struct Passed {
    stamp: Stamp,
    direction: Direction,
    length: usize,
}

/// The frames that passed. Their room is reserved at the beginning and used from the first frame on.
#[derive(Debug)]
pub struct TraceLog {
    frames: VecDeque<Passed>,
    /// The bytes of all frames, one behind the other.
    bytes: VecDeque<u8>,
    next: u64,
}

impl Default for TraceLog {
    fn default() -> Self {
        Self { frames: VecDeque::with_capacity(MAX_FRAMES), bytes: VecDeque::with_capacity(MAX_BYTES), next: 0 }
    }
}

impl TraceLog {
    /// A frame has passed.
    pub fn add(&mut self, stamp: Stamp, direction: Direction, frame: &[u8]) {
        while self.frames.len() >= MAX_FRAMES || self.bytes.len() + frame.len() > MAX_BYTES {
            let Some(oldest) = self.frames.pop_front() else { break };
            self.bytes.drain(..oldest.length);
        }
        self.bytes.extend(frame);
        self.frames.push_back(Passed { stamp, direction, length: frame.len() });
        self.next += 1;
    }

    /// The frames from number `since` on, as many as one answer holds.
    #[must_use]
    pub fn since(&self, since: u64) -> Trace {
        let oldest = self.next - self.frames.len() as u64;
        let first = since.clamp(oldest, self.next);
        let before = (first - oldest) as usize;
        let mut at: usize = self.frames.iter().take(before).map(|passed| passed.length).sum();
        let mut text = Vec::new();
        let skipped = self.frames.iter().skip(before).take(PAGE);
        let frames: Vec<TraceFrame> = (first..)
            .zip(skipped)
            .map(|(number, Passed { stamp, direction, length })| {
                text.clear();
                text.extend(self.bytes.range(at..at + length));
                at += length;
                TraceFrame {
                    number,
                    rx: *direction == Direction::Inbound,
                    first_beat: stamp.first_beat,
                    last_beat: stamp.last_beat,
                    length: *length as u32,
                    kind: FrameKind::of(&text),
                }
            })
            .collect();
        Trace { next: first + frames.len() as u64, lost: oldest.saturating_sub(since), frames }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded_in_frames_and_in_bytes() {
        for (length, kept) in [(60, 65_536), (4096, 16_384)] {
            let mut log = TraceLog::default();
            for number in 0..70_000 {
                let stamp = Stamp { first_beat: number, last_beat: number + 1 };
                log.add(stamp, Direction::Inbound, &vec![0; length]);
            }
            assert_eq!(log.since(0).lost, 70_000 - kept);
            let mut next = 0;
            let mut numbers = Vec::new();
            loop {
                let page = log.since(next);
                if page.frames.is_empty() {
                    break;
                }
                next = page.next;
                assert!(page.frames.iter().all(|frame| frame.first_beat == frame.number));
                numbers.extend(page.frames.iter().map(|frame| frame.number));
            }
            assert!(numbers.iter().copied().eq(70_000 - kept..70_000));
            assert_eq!(log.since(u64::MAX).next, 70_000);
        }
    }
}
