// SPDX-License-Identifier: Apache-2.0
//! Joins two links: what comes from one goes to the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::{Link, LinkError, MAX_FRAME, wait_readable};

/// How long a stop request may go unnoticed.
const TICK: Duration = Duration::from_millis(200);
/// Frames carried one way before the other way gets its turn.
const BURST: usize = 64;

/// Carries frames between two links until `stop` is set.
///
/// # Errors
/// If one of the links is broken for good.
pub fn bridge(a: &mut dyn Link, b: &mut dyn Link, stop: &AtomicBool) -> Result<(), LinkError> {
    let mut frame = vec![0; MAX_FRAME];
    while !stop.load(Ordering::Relaxed) {
        let events = [Some(Instant::now() + TICK), a.next_event(), b.next_event()];
        wait_readable([a.poll_fd(), b.poll_fd()], events.into_iter().flatten().min())
            .map_err(LinkError::io("wait for frames"))?;
        carry(a, b, &mut frame)?;
        carry(b, a, &mut frame)?;
    }
    Ok(())
}

fn carry(from: &mut dyn Link, to: &mut dyn Link, frame: &mut [u8]) -> Result<(), LinkError> {
    for _ in 0..BURST {
        let Some(length) = from.recv(frame, Instant::now())? else { break };
        // What is shorter than a frame here is padded by the other side's Ethernet, or not for it.
        match to.send(&frame[..length]) {
            Ok(()) | Err(LinkError::FrameLength { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
