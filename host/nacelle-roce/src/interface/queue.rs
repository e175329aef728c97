// SPDX-License-Identifier: Apache-2.0
//! Frames that wait for transmission.

use nacelle_wire::BuildError;
use std::collections::VecDeque;

/// Most frames that wait. Others are lost, as in a busy network: all of them are repeated.
const LIMIT: usize = 256;

/// Frames that wait for transmission; their buffers are reused.
#[derive(Debug)]
pub(super) struct FrameQueue {
    frames: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    pub(super) frame_len: usize,
}

impl FrameQueue {
    /// A queue of frames of up to `frame_len` bytes.
    pub(super) fn new(frame_len: usize) -> Self {
        Self { frames: VecDeque::new(), spare: Vec::new(), frame_len }
    }

    /// Adds the frame that `build` writes. Returns whether there was room, and the frame could be built.
    pub(super) fn push(&mut self, build: impl FnOnce(&mut [u8]) -> Result<usize, BuildError>) -> bool {
        if self.frames.len() >= LIMIT {
            return false;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(self.frame_len, 0);
        match build(&mut buffer) {
            Ok(len) => {
                buffer.truncate(len);
                self.frames.push_back(buffer);
                true
            }
            Err(_) => {
                self.spare.push(buffer);
                false
            }
        }
    }

    /// Moves the oldest frame into `out`.
    pub(super) fn pop(&mut self, out: &mut [u8]) -> Option<usize> {
        let frame = self.frames.pop_front()?;
        let len = frame.len();
        out[..len].copy_from_slice(&frame);
        self.spare.push(frame);
        Some(len)
    }
}
