// SPDX-License-Identifier: Apache-2.0
//! The start of a call: its inputs, and the immediate that starts it.

use nacelle_roce::{Access, SendOp, SendWr};
use nacelle_wire::calls::{Context, Request};
use nacelle_wire::extensions::Extensions;
use nacelle_wire::mrsp::CallImm;

use super::{Call, Parameter, Program, Running, lost};
use crate::engine::{Endpoint, State};
use crate::inbox::Timing;
use crate::slot::{Deadline, Run};
use crate::{Error, Step};
use nacelle_wire::RemoteAddr;
use std::time::Duration;

/// The longest WRITE, in bytes (IBTA 9.7.7).
pub(super) const MAX_WRITE: usize = 1 << 31;

impl Call {
    /// Starts the call and returns at once. If it cannot be started, nothing is sent.
    ///
    /// After the loss of the device, with [`Options::reconnect`](crate::Options::reconnect), this first opens a new
    /// connection and sets the regions up again, which takes as long as [`Device::create`](crate::Device::create).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if one runs already, or needs more work requests than the connection's send queue has room
    /// for; [`Error::Lost`] if the connection is gone.
    pub fn invoke(&mut self) -> Result<(), Error> {
        self.invoke_with([0; 3])
    }

    /// As [`Call::invoke`], with three bytes for the function: the low 24 bits of the kernel's `user` argument, the first
    /// byte lowest.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the third byte is not 0 on a connection with contexts, which carries two; else as
    /// [`Call::invoke`].
    pub fn invoke_with(&mut self, user: [u8; 3]) -> Result<(), Error> {
        if self.running.is_some() {
            return Err(Error::invalid("the call runs already: wait for it first"));
        }
        if self.shared().reconnect && (!self.is_set_up || self.channel.has_ended()) {
            self.reconnect()?;
        }
        let imm = self.start(user)?;
        let shared = self.shared().clone();
        let tracer = shared.tracer();
        shared.engine.act(|state| {
            let began = state.mark();
            self.post(state, imm)?;
            let (now, conn) = (state.now(), self.channel.id);
            let in_device = self.channel.agreement.extensions.contains(Extensions::LONG_SET_UP);
            let deadline = self.deadline.map(|after| Deadline { at: now + after, in_device });
            let timing = Timing::begin(&state.endpoint, conn, began);
            let run = Run::begin(now, began, shared.timeout, deadline);
            state.inbox.begin(&mut state.endpoint.transport, conn, self.context, run, timing);
            self.report.steps.truncate(self.setup_steps);
            self.calls += 1;
            self.running = Some(Running { tracer });
            Ok(())
        })?
    }

    /// The immediate that starts the call.
    fn start(&self, user: [u8; 3]) -> Result<u32, Error> {
        let ip = self.shared().ip;
        let [low, high, highest] = user;
        let has_contexts = self.channel.agreement.extensions.contains(Extensions::CONTEXTS);
        match &self.program {
            Program::Function(function) if !has_contexts => Ok(CallImm::Start { function: *function, user }.to_u32()),
            _ if highest != 0 => Err(Error::Unsupported { ip, what: "third user byte: with contexts there are two" }),
            Program::Chain(_) if user != [0; 3] => {
                Err(Error::invalid("a chain has user bytes in its steps, not in its start"))
            }
            program => {
                let function = match program {
                    Program::Function(function) => Some(*function),
                    Program::Chain(_) => None,
                };
                Ok(Request::Start { context: Context(self.context), function, user: [low, high] }.to_imm())
            }
        }
    }

    /// Opens a connection in place of the one that has ended, and sets the regions up again.
    fn reconnect(&mut self) -> Result<(), Error> {
        let tracer = self.shared().tracer();
        if self.channel.has_ended() {
            let (channel, context) = self.line.take_context()?;
            self.wake = channel.wake(context);
            (self.channel, self.context, self.is_set_up) = (channel, context, false);
            *super::cancel::lock(&self.place) = super::cancel::Place::of(&self.channel, context);
            self.register_again()?;
        }
        self.set_up_reported(tracer)?;
        let callback = self.on_finish.clone();
        self.with_slot(|slot| slot.on_finish = callback);
        Ok(())
    }

    /// Posts the receive for the reply, and the inputs: all of them or none.
    fn post(&self, state: &mut State, imm: u32) -> Result<(), Error> {
        let (ip, conn) = (self.line.shared.ip, self.channel.id);
        let now = state.now();
        let State { endpoint, inbox, .. } = state;
        let session = inbox.session(conn);
        if let Some(end) = &session.end {
            return Err(end.error(ip, Step::Inputs, Duration::ZERO));
        }
        if !self.is_set_up {
            return Err(Error::invalid("the regions could not be set up: create the call again"));
        }
        let needed = self.inputs().map(|input| input.local.len.div_ceil(MAX_WRITE)).sum::<usize>().max(1);
        let room = self.line.shared.connect.send_depth.saturating_sub(endpoint.transport.sends(conn));
        if needed > room {
            return Err(Error::invalid(format!(
                "the call needs {needed} work requests, and the send queue has room for {room}"
            )));
        }
        session
            .expect_answer(&mut endpoint.transport, conn)
            .map_err(|error| lost(self.line.shared.ip, Step::Inputs, &error))?;
        if let Some(at) = session.ready_at() {
            endpoint.transport.hold(now, conn, at);
        }
        let slot = session.slot(self.context);
        (slot.awaits, slot.received) = (true, None);
        self.post_inputs(endpoint, imm, needed, &mut slot.sends)?;
        slot.mark = endpoint.transport.send_mark(conn);
        self.open(endpoint, Access::REMOTE_WRITE);
        Ok(())
    }

    /// The parameters that go to the device with this call.
    fn inputs(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.role.is_sent(self.calls))
    }

    /// Posts the WRITEs of a call, the last with the immediate that starts it.
    fn post_inputs(&self, endpoint: &mut Endpoint, imm: u32, needed: usize, posted: &mut usize) -> Result<(), Error> {
        let pieces = self.inputs().flat_map(|input| {
            let pieces = (0..input.local.len).step_by(MAX_WRITE);
            pieces.map(move |at| {
                let data = input.local.slice(at, MAX_WRITE.min(input.local.len - at));
                SendWr::write(0, data, RemoteAddr(input.address.0 + at as u64), input.rkey)
            })
        });
        // If there is nothing to send but the call itself.
        let first = &self.parameters[0];
        let nothing = || SendWr::write(0, Vec::new(), first.address, first.rkey);
        let mut pieces = pieces.chain(std::iter::repeat_with(nothing)).take(needed);
        for left in (0..needed).rev() {
            let Some(mut request) = pieces.next() else { break };
            request.id = u64::from(self.context);
            if let (0, SendOp::Write { imm: last, .. }) = (left, &mut request.op) {
                *last = Some(imm);
                request.solicited = true;
            }
            let sent = endpoint.transport.post_send(self.channel.id, request);
            sent.map_err(|error| lost(self.line.shared.ip, Step::Inputs, &error))?;
            *posted += 1;
        }
        Ok(())
    }

    /// What the device may do with the regions that come back.
    pub(super) fn open(&self, endpoint: &mut Endpoint, access: Access) {
        for parameter in self.parameters.iter().filter(|parameter| parameter.role.comes_back()) {
            endpoint.transport.set_access(parameter.local.id, access);
        }
    }
}
