// SPDX-License-Identifier: Apache-2.0
//! Calls that are made to end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nacelle_roce::ConnId;

use super::Call;
use crate::Error;
use crate::channel::Channel;
use crate::device::Shared;
use crate::slot::Cause;

/// Where a call is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    conn: ConnId,
    context: u8,
    /// Which of the context's owners it is.
    owner: Option<u64>,
}

impl Place {
    pub(super) fn of(channel: &Channel, context: u8) -> Self {
        let owner = channel.shared.engine.lock().inbox.session(channel.id).slot(context).owner;
        Self { conn: channel.id, context, owner }
    }
}

pub(super) fn lock(place: &Mutex<Place>) -> MutexGuard<'_, Place> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Cancels a call from anywhere, as [`Call::cancel`]: also while another thread waits for it. Does nothing once the call was
/// closed.
#[derive(Clone)]
pub struct Canceller {
    shared: Arc<Shared>,
    place: Arc<Mutex<Place>>,
}

impl Canceller {
    /// Makes the call end that runs; does nothing if none runs.
    ///
    /// # Errors
    /// [`Error::Link`] if the wire is broken.
    pub fn cancel(&self) -> Result<(), Error> {
        let Place { conn, context, owner } = *lock(&self.place);
        Ok(self.shared.engine.act(|state| {
            if owner.is_some() && state.inbox.owner(conn, context) == owner {
                state.cancel(conn, context, Cause::Cancelled);
            }
        })?)
    }
}

impl Call {
    /// Makes the call end that runs, and returns at once; does nothing if none runs. The call ends with
    /// [`Error::Cancelled`], which a wait returns as soon as the device no longer accesses memory, or as it would have ended
    /// if its end was under way.
    ///
    /// Where the connection has [no contexts](crate::Connection::can_cancel), a call cannot be ended alone: the connection
    /// ends. Then the call ends with [`Error::Cancelled`] at once, and a later [`Call::invoke`] with [`Error::Closed`], or on
    /// a new connection with [`Options::reconnect`](crate::Options::reconnect).
    ///
    /// # Errors
    /// [`Error::Link`] if the wire is broken.
    pub fn cancel(&mut self) -> Result<(), Error> {
        self.canceller().cancel()
    }

    /// A handle that cancels this call, for other threads.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        Canceller { shared: Arc::clone(self.shared()), place: Arc::clone(&self.place) }
    }
}
