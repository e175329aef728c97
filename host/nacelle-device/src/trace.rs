// SPDX-License-Identifier: Apache-2.0
//! Remembers the last frames that passed a device, with the cycles in which they did.

use std::collections::VecDeque;

use nacelle::FrameKind;
use nacelle::control::{Trace, TraceFrame};

use crate::Stamp;

/// Frames remembered.
const MAX_FRAMES: usize = 65_536;
/// Frames in one answer, so that it stays below a megabyte.
const PAGE: usize = 4096;

/// The frames that passed.
#[derive(Debug, Default)]
pub struct TraceLog {
    frames: VecDeque<TraceFrame>,
    /// Frames that were given to the device but have not entered it yet: length and kind.
    entering: VecDeque<(u32, FrameKind)>,
    next: u64,
}

impl TraceLog {
    /// A frame waits to enter the device.
    pub fn pushed(&mut self, frame: &[u8]) {
        if self.entering.len() < MAX_FRAMES {
            self.entering.push_back((frame.len() as u32, FrameKind::of(frame)));
        }
    }

    /// The oldest frame that waited has entered.
    pub fn entered(&mut self, stamp: Stamp) {
        if let Some((length, kind)) = self.entering.pop_front() {
            self.add(true, stamp, length, kind);
        }
    }

    /// A frame has left the device.
    pub fn left(&mut self, frame: &[u8], stamp: Stamp) {
        self.add(false, stamp, frame.len() as u32, FrameKind::of(frame));
    }

    fn add(&mut self, rx: bool, stamp: Stamp, length: u32, kind: FrameKind) {
        if self.frames.len() >= MAX_FRAMES {
            self.frames.pop_front();
        }
        let Stamp { first_beat, last_beat } = stamp;
        self.frames.push_back(TraceFrame { number: self.next, rx, first_beat, last_beat, length, kind });
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
