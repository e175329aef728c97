// SPDX-License-Identifier: Apache-2.0
//! A connection to a device's service: opened, waited on, closed.

use std::sync::{Arc, Condvar};
use std::time::{Duration, Instant};

use nacelle_link::LinkError;
use nacelle_roce::ConnId;

use crate::device::Shared;
use crate::engine::State;
use crate::inbox::Session;
use crate::report::Mark;
use crate::{Error, Step};

/// A thread that waits checks this often during its timeout whether anything has moved, and at least every second.
const LOOKS: u32 = 16;

/// An established connection. Dropping it closes it.
pub(crate) struct Connection {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: ConnId,
    /// Notified when something has happened on the connection.
    pub(crate) wake: Arc<Condvar>,
    closed: bool,
}

/// When something last moved.
pub(crate) struct Progress {
    mark: (usize, u64),
    at: Instant,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { mark: (0, 0), at: Instant::now() }
    }

    /// Notes whether anything has moved: an acknowledgement of what was sent, or payload that came. Signs of life alone do
    /// not count, so a kernel that hangs is noticed. Returns how long nothing has moved.
    pub(crate) fn look(&mut self, state: &mut State, conn: ConnId) -> Duration {
        let sends = state.inbox.session(conn).sends;
        let stats = state.endpoint.transport.stats(conn);
        let moved = stats.map(|stats| if sends > 0 { stats.rx_packets } else { stats.rx_payload });
        if let Some(moved) = moved
            && self.mark != (sends, moved)
        {
            *self = Self { mark: (sends, moved), at: Instant::now() };
        }
        self.at.elapsed()
    }
}

impl Connection {
    /// Connects to the service of a device. Returns the connection, and when it was begun.
    ///
    /// # Errors
    /// As [`crate::Device::create`].
    pub(crate) fn open(shared: Arc<Shared>) -> Result<(Self, Mark), Error> {
        let (ip, service) = (shared.ip, shared.service);
        let (id, wake, began) = shared.engine.act(|state| {
            let (now, began) = (state.now(), state.mark());
            let id = state.endpoint.connect(now, ip, service, shared.connect.clone());
            let id = id.map_err(|error| Error::invalid(error.to_string()))?;
            Ok::<_, Error>((id, state.inbox.open(id), began))
        })??;
        let connection = Self { shared, id, wake, closed: false };
        connection.wait_until(Step::Connect, |session| session.connected)?;
        Ok((connection, began))
    }

    /// Waits until `done`, the end of the connection, or until nothing has moved for too long.
    pub(crate) fn wait_until(&self, step: Step, done: impl Fn(&Session) -> bool) -> Result<(), Error> {
        let (ip, timeout) = (self.shared.ip, self.shared.timeout);
        let mut progress = Progress::new();
        loop {
            let look = |state: &mut State| {
                let waited = progress.look(state, self.id);
                let session = state.inbox.session(self.id);
                match session.end.clone() {
                    _ if done(session) => Some(Ok(())),
                    Some(end) => Some(Err(end.error(ip, step, waited))),
                    None if waited > timeout => Some(Err(Error::Timeout { ip, step, waited })),
                    None => None,
                }
            };
            if let Some(outcome) = self.shared.engine.wait(&self.wake, self.shared.next_look(), look)? {
                return outcome;
            }
        }
    }

    /// The device has broken the protocol.
    pub(crate) fn broken(&self, step: Step, what: String) -> Error {
        Error::Protocol { ip: self.shared.ip, step, what }
    }

    /// The queue pairs of the device and of the caller.
    pub(crate) fn queue_pairs(&self) -> Option<(u32, u32)> {
        let info = self.shared.engine.lock().endpoint.transport.connection(self.id)?;
        Some((info.remote_qpn?.get(), info.local_qpn.get()))
    }

    /// Closes the connection, after `change`. Does not wait for the device to agree.
    ///
    /// # Errors
    /// If the link is broken.
    pub(crate) fn close(&mut self, change: impl FnOnce(&mut State)) -> Result<(), LinkError> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        shared.engine.act(|state| {
            change(state);
            let now = state.now();
            state.endpoint.transport.disconnect(now, self.id);
            state.inbox.forget(self.id);
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The timers of the device free its resources if the DREQ does not arrive.
        let _ = self.close(|_| {});
    }
}

impl Shared {
    /// When a waiting thread checks whether anything has moved, if nothing has woken it before.
    pub(crate) fn next_look(&self) -> Instant {
        Instant::now() + (self.timeout / LOOKS).clamp(Duration::from_millis(1), Duration::from_secs(1))
    }
}
