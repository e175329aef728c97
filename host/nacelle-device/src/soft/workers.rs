// SPDX-License-Identifier: Apache-2.0
//! Threads in which kernels run, apart from the network's.
//!
//! Calls wait for one of a bounded number of threads; connections take turns. A kernel asks for its memory by messages,
//! which the network's thread answers between frames: memory has one owner, and a call whose window is closed reaches nothing.
//! A kernel cannot be killed. One whose call is cancelled finds its window closed, and has a time to return before the call ends
//! without it. One that does not return in its own time is lost with its thread, and another thread takes its place, up
//! to a bound. When it returns after all, the thread is used again.

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use nacelle_roce::ConnId;
use nacelle_wire::mrsp::ReturnCode;

use super::turns::Turns;
use super::wake::Waker;
use crate::kernels::{Kernel, Layout, Memory, Run, Stop};

/// The longest piece of memory that one message carries, in bytes.
const PIECE: usize = 256 << 10;
/// How long the end of a cancelled call waits for its kernel.
const GRACE: Duration = Duration::from_millis(100);

/// Names a call of a device, with all kernels of its chain. Never used again.
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

/// A kernel's access to its memory.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) call: CallId,
    pub(super) region: usize,
    pub(super) at: usize,
    /// Whether `bytes` go into memory; else it is filled from there.
    pub(super) write: bool,
    pub(super) bytes: Vec<u8>,
}

/// What has happened to a call.
#[derive(Debug)]
pub(super) enum Notice {
    /// Answer it by [`Workers::answer`].
    Access(Access),
    /// It has a result.
    Done(CallId, ReturnCode),
}

/// Messages from the threads.
enum Message {
    Access(Access),
    Done(CallId, Result<(), Stop>),
}

struct Job {
    call: CallId,
    run: Arc<Run>,
    layout: Layout,
}

/// A thread, by the ends of its channels.
struct Worker {
    jobs: Sender<Job>,
    /// Bytes back, or nothing if the window is closed.
    memory: Sender<Option<Vec<u8>>>,
}

struct Running {
    worker: Worker,
    deadline: Option<Instant>,
    /// When its call ends without it, if it is cancelled.
    cancelled: Option<Instant>,
    /// Its call has ended.
    ended: bool,
    /// Its time has passed.
    lost: bool,
}

/// The threads and what they do.
pub(super) struct Workers {
    limits: Limits,
    idle: Vec<Worker>,
    running: HashMap<CallId, Running>,
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
            running: HashMap::new(),
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

    /// Queues a kernel for a call of a connection, on these regions. [`Workers::poll`] returns its outcome.
    pub(super) fn start(&mut self, call: CallId, owner: ConnId, kernel: &Kernel, layout: Layout) {
        self.waiting.push(owner, Job { call, run: Arc::clone(&kernel.run), layout });
    }

    /// Ends a call: its memory is not touched any more. True if it has no kernel now, else [`Workers::poll`] says when its kernel
    /// has returned, or has had time to.
    pub(super) fn cancel(&mut self, call: CallId, now: Instant) -> bool {
        self.waiting.retain(|job| job.call != call);
        match self.running.get_mut(&call) {
            Some(running) if !running.ended => {
                running.cancelled.get_or_insert(now + GRACE);
                false
            }
            _ => true,
        }
    }

    /// What has happened by now; ask until there is nothing more.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Notice> {
        while let Ok(message) = self.messages.try_recv() {
            match message {
                Message::Access(access) if self.is_closed(access.call) => self.answer(access.call, None),
                Message::Access(access) => return Some(Notice::Access(access)),
                Message::Done(call, outcome) => {
                    let Some(running) = self.running.remove(&call) else { continue };
                    let (over, was_lost) = (running.ended, running.lost);
                    // A thread that was replaced, and came back, is one too many.
                    if !was_lost || self.in_time() + self.idle.len() < self.limits.workers {
                        self.idle.push(running.worker);
                    }
                    if !over {
                        let code = match outcome {
                            Ok(()) => ReturnCode::SUCCESS,
                            Err(Stop::Failed(code)) => code,
                            Err(Stop::Ended) => ReturnCode::KERNEL_TIMEOUT,
                        };
                        return Some(Notice::Done(call, code));
                    }
                }
            }
        }
        self.overdue(now).or_else(|| self.dispatch(now))
    }

    /// Gives a kernel the bytes that it asked for, or its buffer back; nothing ends it.
    pub(super) fn answer(&mut self, call: CallId, bytes: Option<Vec<u8>>) {
        if let Some(running) = self.running.get(&call) {
            // A thread that has gone needs no answer.
            let _ = running.worker.memory.send(bytes);
        }
    }

    /// When the next kernel has run for too long, or has had its time to return.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let returns = |running: &Running| running.cancelled.filter(|_| !running.ended);
        let ends = |running: &Running| running.deadline.filter(|_| !running.lost);
        self.running.values().flat_map(|running| [returns(running), ends(running)]).flatten().min()
    }

    /// Calls that wait for a thread, kernels that did not end in time, and those of them that still run.
    pub(super) fn figures(&self) -> [(&'static str, u64); 3] {
        let lost = self.running.len() - self.in_time();
        [("waiting", self.waiting.len() as u64), ("timeouts", self.timeouts), ("lost", lost as u64)]
    }

    /// Whether a call's window is closed.
    fn is_closed(&self, call: CallId) -> bool {
        self.running.get(&call).is_none_or(|running| running.ended || running.cancelled.is_some())
    }

    /// Kernels that have time left.
    fn in_time(&self) -> usize {
        self.running.values().filter(|running| !running.lost).count()
    }

    fn overdue(&mut self, now: Instant) -> Option<Notice> {
        for (call, running) in &mut self.running {
            let passed = |at: Option<Instant>| at.is_some_and(|at| now >= at);
            if passed(running.deadline) && !running.lost {
                running.lost = true;
                self.timeouts += 1;
            }
            if (running.lost || passed(running.cancelled)) && !std::mem::replace(&mut running.ended, true) {
                return Some(Notice::Done(*call, ReturnCode::KERNEL_TIMEOUT));
            }
        }
        None
    }

    /// Gives calls to free threads. A call that no thread will ever be free for has a result at once.
    fn dispatch(&mut self, now: Instant) -> Option<Notice> {
        while !self.waiting.is_empty() {
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
            let Some(worker) = self.idle.pop().filter(|worker| worker.jobs.send(job).is_ok()) else {
                return Some(Notice::Done(call, ReturnCode::SOCKET_UNAVAILABLE));
            };
            let deadline = self.limits.time.and_then(|time| now.checked_add(time));
            self.running.insert(call, Running { worker, deadline, cancelled: None, ended: false, lost: false });
        }
        None
    }

    fn spawn(&self) -> io::Result<Worker> {
        let (jobs, to_do) = channel::<Job>();
        let (memory, from_memory) = channel();
        let to = Network { messages: self.to_messages.clone(), waker: self.waker.clone() };
        std::thread::Builder::new().name("nacelle-kernel".into()).spawn(move || {
            let mut buffer = Vec::new();
            while let Ok(Job { call, run, layout }) = to_do.recv() {
                let mut window =
                    Window { call, layout, to: &to, from: &from_memory, buffer: &mut buffer, closed: false };
                // What a kernel leaves half done is its caller's memory alone.
                let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut window)))
                    .unwrap_or(Err(Stop::Failed(ReturnCode::SOCKET_UNAVAILABLE)));
                if !to.tell(Message::Done(call, outcome)) {
                    return;
                }
            }
        })?;
        Ok(Worker { jobs, memory })
    }
}

/// The way to the network's thread.
struct Network {
    messages: Sender<Message>,
    waker: Waker,
}

impl Network {
    /// Whether a worker is there.
    fn tell(&self, message: Message) -> bool {
        let there = self.messages.send(message).is_ok();
        self.waker.wake();
        there
    }
}

/// The memory of a call, as its kernel reaches it.
struct Window<'a> {
    call: CallId,
    layout: Layout,
    to: &'a Network,
    from: &'a Receiver<Option<Vec<u8>>>,
    /// Goes there and back with each access.
    buffer: &'a mut Vec<u8>,
    /// The window is closed: there is nothing to ask for any more.
    closed: bool,
}

impl Window<'_> {
    fn access(&mut self, region: usize, at: usize, write: bool) -> Result<(), Stop> {
        if !self.closed {
            let bytes = std::mem::take(self.buffer);
            self.to.tell(Message::Access(Access { call: self.call, region, at, write, bytes }));
            let back = self.from.recv().ok().flatten();
            self.closed = back.is_none();
            *self.buffer = back.unwrap_or_default();
        }
        if self.closed { Err(Stop::Ended) } else { Ok(()) }
    }
}

impl Memory for Window<'_> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, region: usize, at: usize, into: &mut [u8]) -> Result<(), Stop> {
        self.layout.check(region, at, into.len())?;
        for (index, piece) in into.chunks_mut(PIECE).enumerate() {
            self.buffer.resize(piece.len(), 0);
            self.access(region, at + index * PIECE, false)?;
            piece.copy_from_slice(self.buffer);
        }
        Ok(())
    }

    fn write(&mut self, region: usize, at: usize, bytes: &[u8]) -> Result<(), Stop> {
        self.layout.check(region, at, bytes.len())?;
        for (index, piece) in bytes.chunks(PIECE).enumerate() {
            self.buffer.clear();
            self.buffer.extend_from_slice(piece);
            self.access(region, at + index * PIECE, true)?;
        }
        Ok(())
    }
}
