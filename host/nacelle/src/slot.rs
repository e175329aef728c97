// SPDX-License-Identifier: Apache-2.0
//! A context of a connection: the call that runs on it, and who is told of its end.
//!
//! Times here are those of the endpoint, so the rules hold under a simulated clock too.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use nacelle_memory::Memory;
use nacelle_roce::{Completion, ConnId, Instant, RegionId, SendMark};

use crate::Step;
use crate::engine::Endpoint;
use crate::inbox::{End, Timing};
use crate::report::Mark;
use crate::wake::Wake;

/// It is checked this often during a timeout whether anything has moved, and at least every second.
const LOOKS: u32 = 16;

/// What a program has run when a call has ended.
pub(crate) type Callback = Arc<dyn Fn() + Send + Sync>;

/// What is left to do without the lock: code of the program may run in it.
pub(crate) enum Notice {
    Wake(Waker),
    Run(Callback),
    Once(Box<dyn FnOnce() + Send>),
    Drop(Memory),
}

/// When something is to be done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct After {
    /// When as many work requests of the context have completed, ever.
    pub(crate) sends: u64,
    /// And when the answer to its request is there.
    pub(crate) answer: bool,
}

/// What is to be done then.
pub(crate) enum Then {
    Wake(Waker),
    Run(Box<dyn FnOnce() + Send>),
    /// Whoever began it has gone: its region is deregistered, and its answer dropped.
    Forget(Option<RegionId>),
}

/// Notices not delivered yet, and whether there is news for a program that polls.
#[derive(Default)]
pub(crate) struct Notices {
    pub(crate) queue: VecDeque<Notice>,
    pub(crate) news: bool,
}

impl Notices {
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && !self.news
    }
}

/// When something last moved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    mark: (usize, u64),
    at: Instant,
}

impl Progress {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { mark: (0, 0), at: now }
    }

    /// Notes whether anything has moved: an acknowledgement of what was sent, or payload that came. Signs of life alone do
    /// not count, so a kernel that hangs is noticed. Returns how long nothing has moved.
    pub(crate) fn look(&mut self, endpoint: &Endpoint, conn: ConnId, sends: usize, now: Instant) -> Duration {
        let stats = endpoint.transport.stats(conn);
        let moved = stats.map(|stats| if sends > 0 { stats.rx_packets } else { stats.rx_payload });
        if let Some(moved) = moved
            && self.mark != (sends, moved)
        {
            *self = Self { mark: (sends, moved), at: now };
        }
        now.saturating_since(self.at)
    }
}

/// Why a call is made to end before its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Cancelled,
    Deadline,
}

/// When a call has to have ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    /// Whether the device ends the call; else this side does.
    pub(crate) in_device: bool,
}

/// A call that runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) began: Mark,
    /// Why this side has ended it.
    pub(crate) cause: Option<Cause>,
    deadline: Option<Deadline>,
    timeout: Duration,
    progress: Progress,
    look_at: Instant,
    /// It has not moved for its timeout, in this step; not reported yet.
    stalled: Option<(Step, Duration)>,
    told: bool,
}

impl Run {
    /// One that begins now.
    pub(crate) fn begin(now: Instant, began: Mark, timeout: Duration, deadline: Option<Deadline>) -> Self {
        let progress = Progress::new(now);
        let mut run =
            Self { began, cause: None, deadline, timeout, progress, look_at: now, stalled: None, told: false };
        run.plan(now);
        if run.is_late(now) {
            run.look_at = now;
        }
        run
    }

    pub(crate) fn look_at(&self) -> Instant {
        self.look_at
    }

    /// Whether this side has to end it now.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        self.cause.is_none() && self.deadline.is_some_and(|deadline| !deadline.in_device && now >= deadline.at)
    }

    /// Notes whether anything has moved since. Returns whether it has run into its timeout.
    pub(crate) fn look(&mut self, endpoint: &Endpoint, conn: ConnId, sends: usize, step: Step, now: Instant) -> bool {
        let waited = self.progress.look(endpoint, conn, sends, now);
        self.plan(now);
        // A kernel may compute until the call's deadline, and its end takes time to arrive.
        let computes = step == Step::Compute && self.deadline.is_some_and(|deadline| now < deadline.at + self.timeout);
        let stalled = waited > self.timeout && !computes;
        if stalled {
            // What was begun may still end: the caller may wait again.
            self.progress = Progress::new(now);
            self.stalled = Some((step, waited));
        }
        stalled
    }

    /// How long nothing has moved, once, if it has run into its timeout.
    pub(crate) fn take_stall(&mut self) -> Option<Duration> {
        self.stalled.take().map(|(_, waited)| waited)
    }

    fn plan(&mut self, now: Instant) {
        self.look_at = now + look_interval(self.timeout);
        // One that has passed makes the call end in this look, if it can.
        if let Some(Deadline { at, in_device: false }) = self.deadline
            && self.cause.is_none()
            && at > now
        {
            self.look_at = self.look_at.min(at);
        }
    }
}

/// The time between two checks whether anything has moved.
pub(crate) fn look_interval(timeout: Duration) -> Duration {
    (timeout / LOOKS).clamp(Duration::from_millis(1), Duration::from_secs(1))
}

/// What there is to say of a call.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It has ended by a reply.
    Replied(Completion),
    /// It has ended with its connection, in this step.
    Ended(End, Step, Duration),
    /// It runs, and nothing has moved for as long as its timeout allows.
    Stalled(Step, Duration),
}

/// A context.
#[derive(Default)]
pub(crate) struct Slot {
    /// Notified when something has happened.
    pub(crate) wake: Arc<Wake>,
    /// Whose it is: counts its owners; `None` while it is free.
    pub(crate) owner: Option<u64>,
    pub(crate) owners: u64,
    /// Work requests of the send queue that have not completed.
    pub(crate) sends: usize,
    /// Those that have, ever.
    pub(crate) completed: u64,
    /// What is to be done later.
    pub(crate) then: Vec<(After, Then)>,
    /// The last request's place in the send queue: its answer shows that it has arrived.
    pub(crate) mark: Option<SendMark>,
    /// Whether a request is outstanding: its answer has not come.
    pub(crate) awaits: bool,
    /// The last answer.
    pub(crate) received: Option<Completion>,
    /// Of the call that runs, or ran last.
    pub(crate) timing: Option<Timing>,
    pub(crate) run: Option<Run>,
    /// When the call that runs is to be looked at, as planned.
    pub(crate) look_at: Option<Instant>,
    pub(crate) waker: Option<Waker>,
    pub(crate) on_finish: Option<Callback>,
    /// Its owner has gone while a request was outstanding, and has left these regions.
    pub(crate) abandoned: Option<Vec<RegionId>>,
}

impl Slot {
    /// The step that a call is in.
    pub(crate) fn step(&self) -> Step {
        match self.timing {
            Some(Timing { output: Some(_), .. }) => Step::Outputs,
            _ if self.sends == 0 => Step::Compute,
            _ => Step::Inputs,
        }
    }

    /// Whether this has come.
    pub(crate) fn is_after(&self, after: After) -> bool {
        self.completed >= after.sends && (!after.answer || self.received.is_some())
    }

    /// Notes what is to be done whose time has come: all of it when the connection has ended, and what waits for an answer also when
    /// that has taken too long.
    fn note_then(&mut self, ended: bool, endpoint: &mut Endpoint, notices: &mut Notices) {
        if self.then.is_empty() {
            return;
        }
        let is_stalled = self.run.as_ref().is_some_and(|run| run.stalled.is_some());
        let mut later = Vec::new();
        for (after, then) in std::mem::take(&mut self.then) {
            let stalls = after.answer && is_stalled && !matches!(then, Then::Forget(_));
            if !(ended || stalls || self.is_after(after)) {
                later.push((after, then));
                continue;
            }
            notices.news = true;
            notices.queue.extend(match then {
                Then::Wake(waker) => Some(Notice::Wake(waker)),
                Then::Run(run) => Some(Notice::Once(run)),
                Then::Forget(region) => {
                    if after.answer {
                        (self.run, self.received) = (None, None);
                    }
                    region.and_then(|region| endpoint.transport.deregister(region)).map(Notice::Drop)
                }
            });
        }
        self.then = later;
    }

    /// What there is to say of the call that runs, on a connection that has ended or not.
    pub(crate) fn outcome(&mut self, end: Option<&End>, now: Instant) -> Option<Outcome> {
        let step = self.step();
        let run = self.run.as_mut()?;
        let waited = now.saturating_since(run.progress.at);
        match (self.received, end) {
            (Some(completion), _) if self.sends == 0 => Some(Outcome::Replied(completion)),
            (_, Some(end)) => Some(Outcome::Ended(end.clone(), step, waited)),
            _ => {
                let (step, waited) = run.stalled.take()?;
                Some(Outcome::Stalled(step, waited))
            }
        }
    }

    /// Tells of the end of the call, once, and frees what its owner has left.
    pub(crate) fn note_end(&mut self, ended: bool, endpoint: &mut Endpoint, notices: &mut Notices) {
        self.note_then(ended, endpoint, notices);
        let over = ended || !self.awaits && self.sends == 0;
        if over && let Some(regions) = self.abandoned.take() {
            let left = regions.into_iter().filter_map(|id| endpoint.transport.deregister(id));
            notices.queue.extend(left.map(Notice::Drop));
            (self.run, self.received, self.owner) = (None, None, None);
        }
        let Some(run) = &mut self.run else { return };
        if !run.told && (ended || self.sends == 0 && self.received.is_some()) {
            run.told = true;
            self.tell(notices);
        }
    }

    /// Wakes whoever waits for the call.
    pub(crate) fn tell(&mut self, notices: &mut Notices) {
        self.wake.notify_all();
        notices.news = true;
        notices.queue.extend(self.waker.take().map(Notice::Wake));
        notices.queue.extend(self.on_finish.clone().map(Notice::Run));
    }
}
