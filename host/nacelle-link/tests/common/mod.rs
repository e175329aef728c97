// SPDX-License-Identifier: Apache-2.0
//! A link without a wire: two ends joined by channels.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use nacelle_link::{Link, LinkError, LinkStats};

/// One end.
pub(crate) struct Pipe {
    to: Sender<Vec<u8>>,
    from: Receiver<Vec<u8>>,
    kept: Vec<Vec<u8>>,
    never_polled: std::fs::File,
}

impl Pipe {
    pub(crate) fn pair() -> (Self, Self) {
        let end =
            |to, from| Self { to, from, kept: Vec::new(), never_polled: std::fs::File::open("/dev/null").unwrap() };
        let ((to_b, from_a), (to_a, from_b)) = (channel(), channel());
        (end(to_b, from_b), end(to_a, from_a))
    }
}

impl Link for Pipe {
    fn send(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        self.send_more(frame)?;
        self.flush()
    }

    fn send_more(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        self.kept.push(frame.to_vec());
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LinkError> {
        self.kept.drain(..).for_each(|frame| self.to.send(frame).unwrap());
        Ok(())
    }

    fn recv(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<Option<usize>, LinkError> {
        let Ok(frame) = self.from.recv_timeout(deadline.saturating_duration_since(Instant::now())) else {
            return Ok(None);
        };
        buffer[..frame.len()].copy_from_slice(&frame);
        Ok(Some(frame.len()))
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.never_polled.as_fd()
    }

    fn stats(&self) -> LinkStats {
        LinkStats::default()
    }
}
