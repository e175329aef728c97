// SPDX-License-Identifier: Apache-2.0
//! How often the loop looks for what has come.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nacelle_driver::{Limits, Medium, Pump, Station};
use nacelle_link::{LinkError, LinkStats};
use nacelle_roce::Batch;

/// A medium on which each look finds what a script says, and which keeps what is sent.
struct Scripted {
    looks: VecDeque<bool>,
    kept: usize,
    /// How much each flush has sent.
    flushed: Vec<usize>,
    never: UnixStream,
}

impl Scripted {
    fn new(script: &[bool]) -> Self {
        let (never, _) = UnixStream::pair().unwrap();
        Self { looks: script.iter().copied().collect(), kept: 0, flushed: Vec::new(), never }
    }
}

impl Medium for Scripted {
    type Received<'a> = ();
    type Sent = ();

    fn receive(&mut self, mut take: impl FnMut(())) -> Result<bool, LinkError> {
        let came = self.looks.pop_front().unwrap_or_default();
        if came {
            take(());
        }
        Ok(came)
    }

    fn transmit(&mut self, mut write: impl FnMut(&mut [u8], Batch) -> Option<()>) -> Result<bool, LinkError> {
        let sent = write(&mut [], 1.into()).is_some();
        self.kept += usize::from(sent);
        Ok(sent)
    }

    fn flush(&mut self) -> Result<(), LinkError> {
        self.flushed.push(std::mem::take(&mut self.kept));
        Ok(())
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.never.as_fd()
    }

    fn next_event(&self) -> Option<Instant> {
        None
    }

    fn spin(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn stats(&self) -> LinkStats {
        LinkStats::default()
    }
}

/// Counts what it receives, and has so much to send.
#[derive(Default)]
struct Counter {
    received: usize,
    to_send: usize,
}

impl Station<Scripted> for Counter {
    fn receive(&mut self, _: Instant, (): ()) {
        self.received += 1;
    }

    fn transmit(&mut self, _: Instant, _: &mut [u8], _: Batch) -> Option<()> {
        self.to_send = self.to_send.checked_sub(1)?;
        Some(())
    }

    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// What one turn receives after another, where looks find what `script` says.
fn turns(script: &[bool], count: usize) -> Vec<usize> {
    let mut pump = Pump::over(Scripted::new(script));
    let mut received = Counter::default();
    let mut turn = || {
        pump.turn(Instant::now(), &mut received, Limits::default()).unwrap();
        std::mem::take(&mut received.received)
    };
    (0..count).map(|_| turn()).collect()
}

/// The answer to it must not wait for a look that finds nothing.
#[test]
fn what_was_waited_for_is_worked_on_at_once() {
    // The first turn does not poll: nothing has moved yet. The second waits for one, behind which there is another.
    assert_eq!(turns(&[true, false, false, true, true, true, false], 3), [1, 1, 2]);
    // A whole turn without anything is waiting, too.
    let mut script = vec![true, false];
    script.extend([false; 6]);
    script.extend([true, true, true, false]);
    assert_eq!(turns(&script, 4), [1, 0, 1, 2]);
}

/// Where packets wait, a turn takes as many as it may.
#[test]
fn what_waits_is_taken_together() {
    let mut script = vec![true, false];
    script.extend([true; 20]);
    assert_eq!(turns(&script, 3), [1, 16, 4]);
}

/// It leaves together, and nothing stays behind when the turn ends.
#[test]
fn what_a_turn_sends_is_flushed_once() {
    let mut pump = Pump::over(Scripted::new(&[]));
    let mut station = Counter { to_send: 20, ..Counter::default() };
    let mut turn = || pump.turn(Instant::now(), &mut station, Limits::default()).unwrap();
    assert_eq!([turn(), turn(), turn()], [true, false, false]);
    assert_eq!(pump.medium().flushed, [16, 4, 0]);
}
