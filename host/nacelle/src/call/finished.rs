// SPDX-License-Identifier: Apache-2.0
//! The end of a call as a future.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Call;
use crate::Error;

/// The end of a call; made by [`Call::finished`]. Dropping it leaves the call running.
#[must_use = "futures do nothing unless polled"]
pub struct Finished<'a> {
    call: &'a mut Call,
}

impl Call {
    /// The end of the call, as a future for any executor. It resolves to what [`Call::wait`] returns, but does not ask the
    /// device what a kernel's result code means. After [`Error::Timeout`] the call still runs: this may be called again.
    ///
    /// A future does nothing by itself, so something has to make progress: a thread
    /// ([`Options::progress_thread`](crate::Options::progress_thread)), or an event loop that polls
    /// [`Device::fd`](crate::Device::fd) and calls [`Device::progress`](crate::Device::progress).
    ///
    /// # Errors
    /// The future resolves to [`Error::InvalidArgument`] if there is neither, rather than never.
    pub fn finished(&mut self) -> Finished<'_> {
        Finished { call: self }
    }
}

impl Future for Finished<'_> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let call = &mut *self.call;
        if !call.is_running() {
            return Poll::Ready(Ok(()));
        }
        if let Err(error) = call.shared().engine.poll() {
            return Poll::Ready(Err(error.into()));
        }
        let mut state = call.line.shared.engine.lock_now();
        let outcome = call.look(&mut state);
        if outcome.is_none() {
            if !state.is_driven {
                return Poll::Ready(Err(Error::invalid(
                    "nothing would wake this future: set Options::progress_thread, or poll Device::fd and call \
                     Device::progress",
                )));
            }
            let slot = state.inbox.session(call.channel.id).slot(call.context);
            if slot.waker.as_ref().is_none_or(|waker| !waker.will_wake(context.waker())) {
                slot.waker = Some(context.waker().clone());
            }
        }
        drop(state);
        match outcome {
            Some(outcome) => Poll::Ready(call.end(outcome)),
            None => Poll::Pending,
        }
    }
}
