// SPDX-License-Identifier: Apache-2.0
//! Threads in which kernels run, apart from the network's.
//!
//! Calls wait for one of a bounded number of threads; connections take turns. A call takes its regions with it and brings them
//! back when its function returns. A function cannot be stopped, only asked to return: when its time has passed, or its call is
//! cancelled. One that does not return then has lost its call and keeps its regions, and when its time has passed, too, another
//! thread takes its place, up to a bound. When it returns after all, so does its memory, and the thread is used again.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use nacelle_roce::ConnId;
use nacelle_roce::memory::Memory;
use nacelle_wire::mrsp::ReturnCode;
use rustc_hash::FxHashMap;

use super::turns::Turns;
use super::wake::Waker;
use crate::kernel::{Call, Cancellation, Failure, Run};

/// How long a function that is asked to return may take for it, before its call ends without it.
const GRACE: Duration = Duration::from_secs(1);

/// Names a call of a device, with all functions of its chain. Never used again.
pub(super) type CallId = u64;

/// Bounds of the threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Kernels that run at a time.
    pub(super) workers: usize,
    /// Threads that are started in place of lost ones.
    pub(super) spares: usize,
    /// Time of a kernel; none is without limit.
    pub(super) time: Option<Duration>,
}

/// What a function works for.
pub(super) struct Task {
    pub(super) run: Arc<Run>,
    pub(super) regions: Vec<Memory>,
    /// How many of the regions are parameters.
    pub(super) parameters: usize,
    pub(super) user: u32,
}

impl Task {
    /// Runs the function in this thread. What it leaves half done when it panics is its caller's memory alone.
    pub(super) fn run(&mut self, cancellation: &Cancellation) -> ReturnCode {
        let (parameters, internal) = self.regions.split_at_mut(self.parameters);
        let mut call = Call {
            // All of it is heap memory, so all is there.
            parameters: parameters.iter_mut().filter_map(Memory::bytes_mut).collect(),
            internal: internal.iter_mut().filter_map(Memory::bytes_mut).collect(),
            user: self.user,
            cancellation: cancellation.clone(),
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.run)(&mut call))).unwrap_or(Err(Failure::UNAVAILABLE));
        outcome.map_or_else(|failure| ReturnCode::new(failure.code().into()), |()| ReturnCode::SUCCESS)
    }
}

/// What has happened to a call.
pub(super) enum Notice {
    /// It has a result, and its regions are back.
    Ended(CallId, ReturnCode, Vec<Memory>),
    /// Its function has not returned in time and has its regions still. It may end later.
    Lost(CallId),
    /// Its function runs from now on.
    Began(CallId),
}

/// A message from a thread: the call, the result, the regions.
type Message = (CallId, ReturnCode, Vec<Memory>);

struct Job {
    call: CallId,
    task: Task,
    cancellation: Cancellation,
}

struct Running {
    /// The thread, by the end of its channel.
    worker: Sender<Job>,
    cancellation: Cancellation,
    /// When its time has passed.
    deadline: Option<Instant>,
    /// It is asked to return, and has time for that until then.
    asked: Option<Instant>,
    /// It has not returned, and its call has ended.
    orphaned: bool,
    /// That, and its own time has passed, too: it is not waited for any more.
    lost: bool,
}

impl Running {
    fn ask(&mut self, now: Instant) {
        self.cancellation.cancel();
        self.asked.get_or_insert(now + GRACE);
    }

    /// When something is to be done about it, if it does not return before.
    fn next(&self) -> Option<Instant> {
        match self.asked {
            Some(asked) if !self.orphaned => Some(asked),
            _ => self.deadline.filter(|_| !self.lost),
        }
    }
}

/// The threads and what they do.
pub(super) struct Workers {
    limits: Limits,
    idle: Vec<Sender<Job>>,
    running: FxHashMap<CallId, Running>,
    waiting: Turns<Job>,
    messages: Receiver<Message>,
    /// For new threads.
    to_messages: Sender<Message>,
    waker: Waker,
    next: CallId,
    timeouts: u64,
}

impl Workers {
    /// No thread is started before the first call. `waker` wakes the polling thread.
    pub(super) fn new(limits: Limits, waker: Waker) -> Self {
        let (to_messages, messages) = channel();
        Self {
            limits,
            idle: Vec::new(),
            running: FxHashMap::default(),
            waiting: Turns::default(),
            messages,
            to_messages,
            waker,
            next: 0,
            timeouts: 0,
        }
    }

    /// A name for a new call.
    pub(super) fn name_call(&mut self) -> CallId {
        self.next += 1;
        self.next
    }

    /// Queues a function for a call of a connection. [`Workers::poll`] returns its outcome.
    pub(super) fn start(&mut self, call: CallId, owner: ConnId, task: Task) {
        self.waiting.push(owner, Job { call, task, cancellation: Cancellation::default() });
    }

    /// Asks the function of a call of a connection to return. If it has not begun, it will not, and its regions are back; else [`Workers::poll`] says
    /// when it has returned, or has had time to.
    pub(super) fn cancel(&mut self, call: CallId, owner: ConnId, now: Instant) -> Option<Vec<Memory>> {
        if let Some(running) = self.running.get_mut(&call) {
            running.ask(now);
        }
        self.waiting.remove(owner, |job| job.call == call).map(|job| job.task.regions)
    }

    /// What has happened by now; ask until there is nothing more.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Notice> {
        while let Ok((call, code, regions)) = self.messages.try_recv() {
            let Some(running) = self.running.remove(&call) else { continue };
            // A thread that was replaced, and came back, is one too many.
            if !running.lost || self.in_time() + self.idle.len() < self.limits.workers {
                self.idle.push(running.worker);
            }
            let code = if running.asked.is_none() { code } else { ReturnCode::KERNEL_TIMEOUT };
            return Some(Notice::Ended(call, code, regions));
        }
        self.overdue(now).or_else(|| self.dispatch(now))
    }

    /// When the next function has run for too long.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.running.values().filter_map(Running::next).min()
    }

    /// Calls that wait for a thread, kernels that did not end in time, and those that are lost now.
    pub(super) fn figures(&self) -> [(&'static str, u64); 4] {
        let lost = self.running.len() - self.in_time();
        let (running, waiting) = self.load();
        let timeouts = ("timeouts", self.timeouts);
        [("running", running.into()), ("waiting", waiting.into()), timeouts, ("lost", lost as u64)]
    }

    /// Time that a kernel has.
    pub(super) fn time(&self) -> Option<Duration> {
        self.limits.time
    }

    /// Gives the kernels of calls from now on so much time.
    pub(super) fn set_time(&mut self, time: Option<Duration>) {
        self.limits.time = time;
    }

    /// Kernels that run, and calls that wait for a thread.
    pub(super) fn load(&self) -> (u32, u32) {
        (self.running.len() as u32, self.waiting.len() as u32)
    }

    /// Functions that are not lost.
    fn in_time(&self) -> usize {
        self.running.values().filter(|running| !running.lost).count()
    }

    fn overdue(&mut self, now: Instant) -> Option<Notice> {
        for (call, running) in &mut self.running {
            let passed = |at: Option<Instant>| at.is_some_and(|at| now >= at);
            if passed(running.deadline) && running.asked.is_none() {
                self.timeouts += 1;
                running.ask(now);
            }
            running.lost |= running.orphaned && passed(running.deadline);
            if passed(running.asked) && !running.orphaned {
                running.orphaned = true;
                running.lost = passed(running.deadline);
                return Some(Notice::Lost(*call));
            }
        }
        None
    }

    /// Gives the next call to a free thread. A call that no thread will ever be free for has a result at once.
    fn dispatch(&mut self, now: Instant) -> Option<Notice> {
        if !self.waiting.is_empty() {
            let in_time = self.in_time();
            let all = self.running.len() + self.idle.len();
            if in_time < self.limits.workers
                && all < self.limits.workers + self.limits.spares
                && self.idle.is_empty()
                && let Ok(worker) = self.spawn()
            {
                self.idle.push(worker);
            }
            if self.idle.is_empty() && in_time != 0 {
                return None;
            }
            let job = self.waiting.pop()?;
            let call = job.call;
            let Some(worker) = self.idle.pop() else {
                return Some(Notice::Ended(call, ReturnCode::SOCKET_UNAVAILABLE, job.task.regions));
            };
            let cancellation = job.cancellation.clone();
            if let Err(unsent) = worker.send(job) {
                return Some(Notice::Ended(call, ReturnCode::SOCKET_UNAVAILABLE, unsent.0.task.regions));
            }
            let deadline = self.limits.time.and_then(|time| now.checked_add(time));
            let running = Running { worker, cancellation, deadline, asked: None, orphaned: false, lost: false };
            self.running.insert(call, running);
            return Some(Notice::Began(call));
        }
        None
    }

    fn spawn(&self) -> io::Result<Sender<Job>> {
        let (jobs, to_do) = channel::<Job>();
        let (messages, waker) = (self.to_messages.clone(), self.waker.clone());
        std::thread::Builder::new().name("nacelle-kernel".into()).spawn(move || {
            while let Ok(Job { call, mut task, cancellation }) = to_do.recv() {
                let code = task.run(&cancellation);
                let there = messages.send((call, code, task.regions)).is_ok();
                waker.wake();
                if !there {
                    return;
                }
            }
        })?;
        Ok(jobs)
    }
}

impl Drop for Workers {
    /// Functions that are under way end soon, if they can be asked to.
    fn drop(&mut self) {
        self.running.values().for_each(|running| running.cancellation.cancel());
    }
}
