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
    frame: Vec<u8>,
}

/// The frames that passed.
#[derive(Debug, Default)]
pub struct TraceLog {
    frames: VecDeque<Passed>,
    bytes: usize,
    next: u64,
}

impl TraceLog {
    /// A frame has passed.
    pub fn add(&mut self, stamp: Stamp, direction: Direction, frame: Vec<u8>) {
        self.bytes += frame.len();
        self.frames.push_back(Passed { stamp, direction, frame });
        self.next += 1;
        while self.frames.len() > MAX_FRAMES || self.bytes > MAX_BYTES {
            let Some(oldest) = self.frames.pop_front() else { break };
            self.bytes -= oldest.frame.len();
        }
    }

    /// The frames from number `since` on, as many as one answer holds.
    #[must_use]
    pub fn since(&self, since: u64) -> Trace {
        let oldest = self.next - self.frames.len() as u64;
        let first = since.clamp(oldest, self.next);
        let skipped = self.frames.iter().skip((first - oldest) as usize).take(PAGE);
        let frames: Vec<TraceFrame> = (first..)
            .zip(skipped)
            .map(|(number, Passed { stamp, direction, frame })| TraceFrame {
                number,
                rx: *direction == Direction::Inbound,
                first_beat: stamp.first_beat,
                last_beat: stamp.last_beat,
                length: frame.len() as u32,
                kind: FrameKind::of(frame),
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
                log.add(stamp, Direction::Inbound, vec![0; length]);
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
