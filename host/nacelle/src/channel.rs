// SPDX-License-Identifier: Apache-2.0
//! One reliable connection to a device's service: opened, waited on, closed.

use std::sync::Arc;
use std::time::Duration;

use nacelle_link::LinkError;
use nacelle_roce::ConnId;
use nacelle_wire::extensions::Agreement;

use crate::device::Shared;
use crate::engine::State;
use crate::inbox::{End, Session, deadline_in};
use crate::report::StepReport;
use crate::slot::{Progress, look_interval};
use crate::wake::Wake;
use crate::{Error, Step};

/// How long a device that is not Nacelle's may take to get ready for the completion of what it has just sent. NAAICE's software device
/// loses a completion that comes earlier, and then the call that follows.
const ACK_DELAY: Duration = Duration::from_millis(10);

/// An established connection. Dropping it closes it.
pub(crate) struct Channel {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: ConnId,
    /// What both sides have agreed on.
    pub(crate) agreement: Agreement,
    /// What opening it cost.
    pub(crate) opened: StepReport,
}

impl Channel {
    /// Connects to the service of a device, and offers this.
    ///
    /// # Errors
    /// As [`crate::Device::create`].
    pub(crate) fn open(shared: Arc<Shared>, offer: Agreement) -> Result<Self, Error> {
        let (ip, service) = (shared.ip, shared.service);
        let (id, began) = shared.engine.act(|state| {
            let (now, began) = (state.now(), state.mark());
            let options = nacelle_roce::ConnectOptions { agreement: offer, ..shared.connect.clone() };
            let id = state.endpoint.connect(now, ip, service, options);
            let id = id.map_err(|error| Error::invalid(error.to_string()))?;
            state.inbox.open(id);
            Ok::<_, Error>((id, began))
        })??;
        let opened = StepReport::between(Step::Connect, began, began);
        let mut channel = Self { shared, id, agreement: Agreement::default(), opened };
        channel.wait_until(Step::Connect, 0, |session| session.connected)?;
        let mut state = channel.shared.engine.lock_now();
        let agreement = state.endpoint.transport.connection(id).map(|info| info.agreement).unwrap_or_default();
        state.inbox.session(id).agree(agreement);
        let is_foreign = state.endpoint.transport.connection(id).is_some_and(|info| !info.has_record);
        if is_foreign
            && channel.shared.answer_gap != Some(Duration::ZERO)
            && state.endpoint.transport.delay_acknowledgements(id, ACK_DELAY)
        {
            state.inbox.session(id).ack_delay = ACK_DELAY;
        }
        let opened = StepReport::between(Step::Connect, began, state.mark());
        drop(state);
        (channel.agreement, channel.opened) = (agreement, opened);
        Ok(channel)
    }

    /// Takes a free context. `None` if there is none.
    pub(crate) fn take_context(&self) -> Option<u8> {
        self.shared.engine.lock().inbox.session(self.id).take_context()
    }

    /// Notified when something has happened on a context.
    pub(crate) fn wake(&self, context: u8) -> Arc<Wake> {
        Arc::clone(&self.shared.engine.lock().inbox.session(self.id).slot(context).wake)
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.shared.engine.lock().inbox.session(self.id).end.is_some()
    }

    /// Waits until `done`, the end of the connection, or until nothing has moved for too long.
    pub(crate) fn wait_until(&self, step: Step, context: u8, done: impl Fn(&mut Session) -> bool) -> Result<(), Error> {
        let (ip, timeout, wake) = (self.shared.ip, self.shared.timeout, self.wake(context));
        let mut progress = None;
        loop {
            let look = |state: &mut State| {
                let now = state.now();
                let session = state.inbox.session(self.id);
                let progress = progress.get_or_insert(Progress::new(now));
                let waited = progress.look(&state.endpoint, self.id, session.slot(context).sends, now);
                if done(session) {
                    return Some(Ok(()));
                }
                match &session.end {
                    Some(end) => Some(Err(end.error(ip, step, waited).with_mtu(self.shared.doubtful_mtu))),
                    None if waited > timeout => Some(Err(Error::Timeout { ip, step, waited, mtu: None })),
                    None => None,
                }
            };
            if let Some(outcome) = self.shared.engine.wait(&wake, deadline_in(look_interval(timeout)), look)? {
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

    /// Waits until the device can take what follows its last answer: the end of the connection, which may otherwise overtake in
    /// the device what belongs to the answer. No time at all for Nacelle's.
    pub(crate) fn give_time(&self) {
        let ready = {
            let mut state = self.shared.engine.lock_now();
            let session = state.inbox.session(self.id);
            session.ready_at().filter(|_| session.end.is_none()).map(|at| at.saturating_since(state.now()))
        };
        if let Some(left) = ready.filter(|left| !left.is_zero()) {
            // Who uses the link next learns that it is broken.
            let _nothing_to_find = self.shared.engine.wait(&Arc::default(), deadline_in(left), |_| None::<()>);
        }
    }

    /// Ends the connection, after `change`. Does not wait for the device to agree.
    ///
    /// # Errors
    /// If the link is broken.
    pub(crate) fn close(&self, change: impl FnOnce(&mut State)) -> Result<(), LinkError> {
        self.give_time();
        self.shared.engine.act(|state| {
            change(state);
            state.end(self.id, End::Closed("the connection was closed"));
        })
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // The timers of the device free its resources if the DREQ does not arrive.
        let _ = self.close(|_| {});
        self.shared.engine.lock().forget(self.id);
    }
}
