// SPDX-License-Identifier: Apache-2.0
//! Remembers the last frames that passed a device, with the cycles in which they did.

use std::collections::VecDeque;

use nacelle::FrameKind;
use nacelle::control::{Trace, TraceFrame};
use nacelle_link::Direction;

use crate::Stamp;

/// Frames remembered.
const MAX_FRAMES: usize = 65_536;
/// Frames in one answer, so that it stays below a megabyte.
const PAGE: usize = 4096;

/// The frames that passed.
#[derive(Debug, Default)]
pub struct TraceLog {
    frames: VecDeque<TraceFrame>,
    next: u64,
}

impl TraceLog {
    /// A frame has passed.
    pub fn add(&mut self, stamp: Stamp, direction: Direction, frame: &[u8]) {
        if self.frames.len() >= MAX_FRAMES {
            self.frames.pop_front();
        }
        let Stamp { first_beat, last_beat } = stamp;
        self.frames.push_back(TraceFrame {
            number: self.next,
            rx: direction == Direction::Inbound,
            first_beat,
            last_beat,
            length: frame.len() as u32,
            kind: FrameKind::of(frame),
        });
        self.next += 1;
    }

    /// The frames from number `since` on, as many as one answer holds.
    #[must_use]
    pub fn since(&self, since: u64) -> Trace {
        let oldest = self.frames.front().map_or(self.next, |frame| frame.number);
        let skip = since.saturating_sub(oldest).min(self.frames.len() as u64) as usize;
        let frames: Vec<TraceFrame> = self.frames.iter().skip(skip).take(PAGE).cloned().collect();
        let next = frames.last().map_or(self.next, |frame| frame.number + 1);
        Trace { next, lost: oldest.saturating_sub(since), frames }
    }
}
