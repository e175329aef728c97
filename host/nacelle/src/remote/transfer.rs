// SPDX-License-Identifier: Apache-2.0
//! One transfer: waited for, looked at, awaited, or with a callback.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use nacelle_memory::Memory;
use nacelle_roce::{RegionId, WcOpcode};
use nacelle_wire::calls;
use nacelle_wire::extensions::Extensions;
use nacelle_wire::mrsp::{FunctionCode, ReturnCode};

use super::{Inner, Way};
use crate::engine::State;
use crate::inbox::{deadline_in, far};
use crate::slot::{After, Then};
use crate::{Error, Step};

/// A transfer that was begun; made by [`Remote`](super::Remote). As a future it resolves to its memory, and needs something that makes
/// progress, as [`Call::finished`](crate::Call::finished) does. If it is dropped, it goes on, and its memory is dropped at its end.
#[must_use = "a transfer has an end, and its memory comes back then"]
pub struct Transfer {
    inner: Arc<Inner>,
    way: Way,
    /// None once the memory was returned, and of a notice.
    region: Option<RegionId>,
    after: After,
    has_ended: bool,
}

impl Transfer {
    pub(super) fn new(inner: Arc<Inner>, way: Way, region: Option<RegionId>, sends: u64, answer: bool) -> Self {
        Self { inner, way, region, after: After { sends, answer }, has_ended: false }
    }

    /// Whether it has been seen to end: an error of [`Transfer::wait`] that leaves it under way is its timeout.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether it has ended. Never waits: moves the packets that can be moved at once, and nothing more.
    ///
    /// # Errors
    /// As [`Transfer::wait`].
    pub fn test(&mut self) -> Result<bool, Error> {
        if self.has_ended {
            return Ok(true);
        }
        self.inner.channel.shared.engine.poll()?;
        let outcome = self.look(&mut self.inner.channel.shared.engine.lock());
        outcome.map_or(Ok(false), |outcome| self.end(outcome).map(|()| true))
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// [`Error::Transport`] if the peer refuses the access; [`Error::Timeout`] or [`Error::Lost`] if it falls silent; of a notice what the
    /// owner of the window says: [`Error::Kernel`] with its code, [`Error::UnknownFunction`] if the window was set up anew.
    pub fn wait(&mut self) -> Result<(), Error> {
        while !self.wait_until(far())? {}
        Ok(())
    }

    /// Waits until it has ended, for `patience` at most. Returns whether it has.
    ///
    /// # Errors
    /// As [`Transfer::wait`].
    pub fn wait_timeout(&mut self, patience: Duration) -> Result<bool, Error> {
        self.wait_until(deadline_in(patience))
    }

    /// Waits until it has ended, until `deadline` at most. Returns whether it has.
    ///
    /// # Errors
    /// As [`Transfer::wait`].
    pub fn wait_until(&mut self, deadline: Instant) -> Result<bool, Error> {
        if self.has_ended || Instant::now() >= deadline {
            return self.test();
        }
        let inner = Arc::clone(&self.inner);
        match inner.channel.shared.engine.wait(&inner.wake, deadline, |state| self.look(state))? {
            Some(outcome) => self.end(outcome).map(|()| true),
            None => Ok(false),
        }
    }

    /// Waits until it has ended, and returns its memory; none for a notice.
    ///
    /// # Errors
    /// As [`Transfer::wait`]; the memory is dropped then. [`Transfer::into_memory`] after [`Transfer::wait`] keeps it.
    pub fn finish(mut self) -> Result<Memory, Error> {
        self.wait()?;
        Ok(self.take_memory())
    }

    /// Its memory, after its end; none for a notice.
    ///
    /// # Errors
    /// The transfer itself, if it has not been seen to end.
    pub fn into_memory(mut self) -> Result<Memory, Self> {
        if self.has_ended { Ok(self.take_memory()) } else { Err(self) }
    }

    /// Has `callback` run with the memory, or what went wrong, when it has ended. It is run by whichever thread makes progress, without any
    /// lock: it must not block for long, and must not panic. If it has ended already, this runs it. The
    /// connection stays until then.
    pub fn on_finish(self, callback: impl FnOnce(Result<Memory, Error>) + Send + 'static) {
        let (inner, after) = (Arc::clone(&self.inner), self.rest());
        let mut transfer = self;
        let run = Box::new(move || {
            let outcome = transfer.look(&mut transfer.inner.channel.shared.engine.lock());
            // It runs once there is an outcome.
            let ended = outcome.map_or(Ok(()), |outcome| transfer.end(outcome));
            callback(ended.map(|()| transfer.take_memory()));
        });
        inner.after(after, Then::Run(run));
    }

    /// Has `callback` run once, as [`Transfer::on_finish`] does, when it has ended or has run into its timeout: [`Transfer::test`] says
    /// which. For who keeps the transfer.
    pub fn on_end(&self, callback: impl FnOnce() + Send + 'static) {
        self.inner.after(self.rest(), Then::Run(Box::new(callback)));
    }

    /// What it has still to wait for: the answer of one that has ended was taken.
    fn rest(&self) -> After {
        After { answer: self.after.answer && !self.has_ended, ..self.after }
    }

    /// What there is to say. `None` if it is under way.
    fn look(&self, state: &mut State) -> Option<Outcome> {
        if self.has_ended {
            return Some(Outcome::Done);
        }
        let session = state.inbox.session(self.inner.channel.id);
        let end = session.end.clone();
        let slot = session.slot(self.inner.context);
        if slot.is_after(self.after) {
            return Some(Outcome::Done);
        }
        let error = |end: crate::inbox::End| end.error(self.inner.channel.shared.ip, self.step(), Duration::ZERO);
        if let Some(end) = end {
            return Some(Outcome::Failed(error(end)));
        }
        let stalled = slot.run.as_mut().filter(|_| self.after.answer).and_then(|run| run.take_stall());
        stalled.map(|waited| {
            let ip = self.inner.channel.shared.ip;
            Outcome::Stalled(Error::Timeout { ip, step: self.step(), waited, mtu: None })
        })
    }

    fn step(&self) -> Step {
        if self.after.answer { Step::Compute } else { self.way.step() }
    }

    /// It has ended, unless it has only run into its timeout.
    fn end(&mut self, outcome: Outcome) -> Result<(), Error> {
        match outcome {
            Outcome::Stalled(error) => return Err(error),
            Outcome::Failed(error) => {
                self.conclude();
                return Err(error);
            }
            Outcome::Done if self.has_ended => return Ok(()),
            Outcome::Done => {}
        }
        self.conclude().map_or(Ok(()), |code| self.meaning(code))
    }

    /// Marks it as ended, and takes the owner's answer.
    fn conclude(&mut self) -> Option<Result<ReturnCode, String>> {
        self.has_ended = true;
        if !self.after.answer {
            return None;
        }
        let channel = &self.inner.channel;
        let mut state = channel.shared.engine.lock();
        let slot = state.inbox.session(channel.id).slot(self.inner.context);
        let completion = slot.received;
        state.inbox.finish(channel.id, self.inner.context);
        let completion = completion?;
        let (WcOpcode::RecvWrite, Some(imm)) = (completion.opcode, completion.imm) else {
            return Some(Err("it answered a notice by a SEND, not by a WRITE with immediate".into()));
        };
        let has_contexts = channel.agreement.extensions.contains(Extensions::CONTEXTS);
        Some(Ok(if has_contexts { calls::parse_result(imm).1 } else { ReturnCode::from_imm(imm) }))
    }

    /// What the owner's answer means.
    fn meaning(&self, code: Result<ReturnCode, String>) -> Result<(), Error> {
        let (ip, function) = (self.inner.channel.shared.ip, FunctionCode::WINDOW.get());
        let code = code.map_err(|what| self.inner.channel.broken(Step::Compute, what))?;
        Err(match code.get() {
            0x00 => return Ok(()),
            0x01 => Error::SocketUnavailable { ip, function },
            0x02 => Error::KernelTimeout { ip, function },
            0x03 => Error::UnknownFunction { ip, function },
            code => Error::Kernel { ip, function, code, text: "what the owner of the window says of it".into() },
        })
    }

    fn take_memory(&mut self) -> Memory {
        let region = self.region.take();
        let mut state = self.inner.channel.shared.engine.lock();
        region.and_then(|id| state.endpoint.transport.deregister(id)).unwrap_or_else(|| Memory::zeroed(0))
    }
}

/// What there is to say of a transfer.
enum Outcome {
    Done,
    Failed(Error),
    /// It is under way, and nothing has moved for as long as its timeout allows.
    Stalled(Error),
}

impl Future for Transfer {
    type Output = Result<Memory, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let transfer = &mut *self;
        let inner = Arc::clone(&transfer.inner);
        let engine = &inner.channel.shared.engine;
        if let Err(error) = engine.poll() {
            return Poll::Ready(Err(error.into()));
        }
        let mut state = engine.lock();
        let outcome = transfer.look(&mut state);
        if outcome.is_none() {
            if !state.is_driven {
                return Poll::Ready(Err(Error::invalid(
                    "nothing would wake this future: set Options::progress_thread, or poll Device::fd and call \
                     Device::progress",
                )));
            }
            state.after(inner.channel.id, inner.context, transfer.after, Then::Wake(context.waker().clone()));
        }
        drop(state);
        match outcome {
            Some(outcome) => Poll::Ready(transfer.end(outcome).map(|()| transfer.take_memory())),
            None => Poll::Pending,
        }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        let region = self.region.take();
        if region.is_none() && self.has_ended {
            return;
        }
        self.inner.after(self.rest(), Then::Forget(region));
    }
}
