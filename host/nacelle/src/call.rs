// SPDX-License-Identifier: Apache-2.0
//! A call: create, invoke, test or wait, close.

mod setup;

use std::sync::Arc;
use std::time::Duration;

use nacelle_link::LinkError;
use nacelle_memory::{AccessError, Memory};
use nacelle_roce::{Access, Completion, Endpoint, RecvWr, SendOp, SendWr, WcOpcode};
use nacelle_wire::RemoteAddr;
use nacelle_wire::mrsp::{ARegion, CallImm, FunctionCode, MAX_REGIONS, ReturnCode};

use crate::connection::{Connection, Progress};
use crate::device::Shared;
use crate::engine::State;
use crate::inbox::{Session, Timing};
use crate::region::{Region, Role};
use crate::report::{Mark, Report, StepReport, Tracer};
use crate::{Error, Step};

/// The longest WRITE, in bytes (IBTA 9.7.7).
const MAX_WRITE: usize = 1 << 31;

/// A region that both sides have registered.
struct Parameter {
    role: Role,
    local: nacelle_roce::Region,
    remote: ARegion,
}

/// Calls of a device over one connection, on the same regions.
pub struct Call {
    connection: Connection,
    function: FunctionCode,
    parameters: Vec<Parameter>,
    /// Index of the parameter for each region that was given; `None` for internal ones.
    places: Vec<Option<usize>>,
    calls: u64,
    /// Bytes of outputs of the last call that has ended.
    received: u64,
    running: Option<Running>,
    report: Report,
    setup_steps: usize,
}

/// A call that runs.
struct Running {
    began: Mark,
    tracer: Option<Tracer>,
    progress: Progress,
}

impl Call {
    pub(crate) fn create(shared: Arc<Shared>, function: FunctionCode, regions: Vec<Region>) -> Result<Self, Error> {
        check(&regions)?;
        let tracer = shared.tracer();
        let clock_hz = tracer.as_ref().map_or(0, |tracer| tracer.clock_hz);
        let steps = vec![shared.resolution.clone()];
        let (connection, began) = Connection::open(shared)?;
        let connected = connection.shared.engine.lock().mark();
        let mut call = Self {
            connection,
            function,
            parameters: Vec::new(),
            places: Vec::new(),
            calls: 0,
            received: 0,
            running: None,
            report: Report { clock_hz, steps },
            setup_steps: 0,
        };
        call.set_up(regions)?;
        let ready = call.connection.shared.engine.lock().mark();
        let mut connect = StepReport::between(Step::Connect, began, connected);
        let mut setup = StepReport::between(Step::RegionSetup, connected, ready);
        if let (Some(mut tracer), Some((device, caller))) = (tracer, call.connection.queue_pairs()) {
            let passed = tracer.take();
            connect.cycles = passed.connect();
            setup.cycles = passed.region_setup(device, caller);
        }
        call.report.steps.extend([connect, setup]);
        call.setup_steps = call.report.steps.len();
        Ok(call)
    }

    /// Starts the call and returns at once. If it cannot be started, nothing is sent.
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
    /// As [`Call::invoke`].
    pub fn invoke_with(&mut self, user: [u8; 3]) -> Result<(), Error> {
        if self.running.is_some() {
            return Err(Error::invalid("the call runs already: wait for it first"));
        }
        let shared = Arc::clone(&self.connection.shared);
        let tracer = shared.tracer();
        shared.engine.act(|state| {
            let began = state.mark();
            self.post(state, user)?;
            state.inbox.time(self.connection.id, Timing::begin(&state.endpoint, self.connection.id, began));
            self.report.steps.truncate(self.setup_steps);
            self.calls += 1;
            self.running = Some(Running { began, tracer, progress: Progress::new() });
            Ok(())
        })?
    }

    /// Posts the receive for the reply, and the inputs: all of them or none.
    fn post(&self, state: &mut State, user: [u8; 3]) -> Result<(), Error> {
        let (ip, conn) = (self.connection.shared.ip, self.connection.id);
        if let Some(end) = state.inbox.session(conn).end.clone() {
            return Err(end.error(ip, Step::Inputs, Duration::ZERO));
        }
        let lost = |error: nacelle_roce::PostError| Error::Lost { ip, step: Step::Inputs, detail: error.to_string() };
        let requests = self.requests(user);
        let waiting = state.endpoint.transport.connection(conn).map_or(0, |info| info.sends);
        let room = self.connection.shared.connect.send_depth.saturating_sub(waiting);
        if requests.len() > room {
            return Err(Error::invalid(format!(
                "the call needs {} work requests, and the send queue has room for {room}",
                requests.len()
            )));
        }
        // A receive that a call before did not use serves this one.
        if !state.inbox.session(conn).receives {
            state.endpoint.transport.post_recv(conn, RecvWr { id: 0, slice: None }).map_err(lost)?;
        }
        let session = state.inbox.session(conn);
        session.receives = true;
        session.received = None;
        for request in requests {
            state.endpoint.transport.post_send(conn, request).map_err(lost)?;
            state.inbox.session(conn).sends += 1;
        }
        self.open(&mut state.endpoint, Access::REMOTE_WRITE);
        Ok(())
    }

    /// The WRITEs of a call, the last with the immediate that starts it.
    fn requests(&self, user: [u8; 3]) -> Vec<SendWr> {
        let imm = CallImm::Start { function: self.function, user }.to_u32();
        let inputs = self.parameters.iter().filter(|parameter| parameter.role.is_sent(self.calls));
        let pieces = inputs.flat_map(|input| (0..input.local.len).step_by(MAX_WRITE).map(move |at| (input, at)));
        let mut requests: Vec<SendWr> = pieces
            .map(|(input, at)| {
                let data = input.local.slice(at, MAX_WRITE.min(input.local.len - at));
                SendWr::write(0, data, RemoteAddr(input.remote.address().0 + at as u64), input.remote.rkey())
            })
            .collect();
        if requests.is_empty() {
            // Nothing to send but the call itself.
            let first = &self.parameters[0].remote;
            requests.push(SendWr::write(0, Vec::new(), first.address(), first.rkey()));
        }
        if let Some(SendWr { op: SendOp::Write { imm: last, .. }, solicited, .. }) = requests.last_mut() {
            (*last, *solicited) = (Some(imm), true);
        }
        requests
    }

    /// What the device may do with the regions that come back.
    fn open(&self, endpoint: &mut Endpoint, access: Access) {
        for parameter in self.parameters.iter().filter(|parameter| parameter.role.comes_back()) {
            endpoint.transport.set_access(parameter.local.id, access);
        }
    }

    /// Whether the call has ended. Never waits: moves the frames that can be moved at once, and nothing more.
    ///
    /// # Errors
    /// As [`Call::wait`].
    pub fn test(&mut self) -> Result<bool, Error> {
        if self.running.is_none() {
            return Ok(true);
        }
        let shared = Arc::clone(&self.connection.shared);
        shared.engine.poll()?;
        let outcome = self.look(&mut shared.engine.lock());
        outcome.map_or(Ok(false), |outcome| self.end(outcome).map(|()| true))
    }

    /// Waits until the call has ended.
    ///
    /// # Errors
    /// What the device says of the call ([`Error::UnknownFunction`], [`Error::Kernel`] and others); [`Error::Timeout`] with
    /// the step that did not end; [`Error::Lost`] if the device is gone. After a timeout the call may still be running:
    /// wait again, or close.
    pub fn wait(&mut self) -> Result<(), Error> {
        let (shared, wake) = (Arc::clone(&self.connection.shared), Arc::clone(&self.connection.wake));
        while self.running.is_some() {
            if let Some(outcome) = shared.engine.wait(&wake, shared.next_look(), |state| self.look(state))? {
                return self.end(outcome).map_err(|error| self.explain(error));
            }
        }
        Ok(())
    }

    /// Reads what a kernel's result code means, if the device's description has not been read.
    fn explain(&self, error: Error) -> Error {
        let shared = &self.connection.shared;
        match error {
            Error::Kernel { ip, function, code, .. } => {
                // Without a description the code is all that is known.
                let _ = shared.describe();
                Error::Kernel { ip, function, code, text: shared.kernel_code(function, code) }
            }
            other => other,
        }
    }

    /// How the call has ended: the reply, or an error. `None` if it has not.
    fn look(&mut self, state: &mut State) -> Option<Result<Completion, Error>> {
        let running = self.running.as_mut()?;
        let (ip, timeout) = (self.connection.shared.ip, self.connection.shared.timeout);
        let waited = running.progress.look(state, self.connection.id);
        let session = state.inbox.session(self.connection.id);
        let step = step(session);
        match (session.received, session.end.clone()) {
            (Some(completion), _) if session.sends == 0 => Some(Ok(completion)),
            (_, Some(end)) => Some(Err(end.error(ip, step, waited))),
            _ if waited > timeout => {
                // What was begun may still end: the caller may wait again.
                running.progress = Progress::new();
                Some(Err(Error::Timeout { ip, step, waited }))
            }
            _ => None,
        }
    }

    /// Ends the call, unless it has only run into its timeout, and returns the meaning of the reply.
    fn end(&mut self, outcome: Result<Completion, Error>) -> Result<(), Error> {
        if let Err(error @ Error::Timeout { .. }) = outcome {
            return Err(error);
        }
        let shared = Arc::clone(&self.connection.shared);
        let Some(running) = self.running.take() else { return Ok(()) };
        {
            let mut state = shared.engine.lock();
            self.open(&mut state.endpoint, Access::LOCAL);
            let timing = state.inbox.session(self.connection.id).timing;
            self.received = timing.map_or(0, |timing| timing.received(&state.endpoint, self.connection.id));
            let session = state.inbox.session(self.connection.id);
            self.report.steps.extend(steps(session, running.began));
        }
        let completion = outcome?;
        if let (Some(mut tracer), Some((device, caller))) = (running.tracer, self.connection.queue_pairs()) {
            let cycles = tracer.take().call(device, caller);
            for (step, cycles) in self.report.steps[self.setup_steps..].iter_mut().zip(cycles) {
                step.cycles = cycles;
            }
        }
        match (completion.opcode, completion.imm) {
            (WcOpcode::RecvWrite, Some(imm)) => self.judge(ReturnCode::from_imm(imm)),
            _ => {
                Err(self.connection.broken(Step::Outputs, "it replied by a SEND, not by a WRITE with immediate".into()))
            }
        }
    }

    /// What a return code means.
    fn judge(&self, code: ReturnCode) -> Result<(), Error> {
        let (ip, function) = (self.connection.shared.ip, self.function.get());
        Err(match code.get() {
            0x00 => return Ok(()),
            0x01 => Error::SocketUnavailable { ip, function },
            0x02 => Error::KernelTimeout { ip, function },
            0x03 => Error::UnknownFunction { ip, function },
            code => Error::Kernel { ip, function, code, text: self.connection.shared.kernel_code(function, code) },
        })
    }

    /// Bytes of outputs that the device has written for the call that runs, or ran last.
    #[must_use]
    pub fn received(&self) -> u64 {
        if self.running.is_none() {
            return self.received;
        }
        let mut state = self.connection.shared.engine.lock();
        let timing = state.inbox.session(self.connection.id).timing;
        timing.map_or(0, |timing| timing.received(&state.endpoint, self.connection.id))
    }

    /// Copies what region `index` holds into `bytes`, as far as both go. Returns how many bytes that were.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the caller has no such region.
    pub fn read(&self, index: usize, bytes: &mut [u8]) -> Result<usize, Error> {
        let parameter = self.parameter(index)?;
        let state = self.connection.shared.engine.lock();
        let length = parameter.local.len.min(bytes.len());
        match state.endpoint.transport.region(parameter.local.id) {
            Some(memory) => memory.read(0, &mut bytes[..length]).map_err(|error| inaccessible(index, error))?,
            None => return Ok(0),
        }
        Ok(length)
    }

    /// Gives region `index` new contents for the next call.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the caller has no such region, a call runs, or the length differs from the region's.
    pub fn write(&mut self, index: usize, bytes: &[u8]) -> Result<(), Error> {
        if self.running.is_some() {
            return Err(Error::invalid("the call runs: its regions belong to the device until it ends"));
        }
        let parameter = self.parameter(index)?;
        if bytes.len() != parameter.local.len {
            let (got, want) = (bytes.len(), parameter.local.len);
            return Err(Error::invalid(format!("{got} bytes for region {index} of {want} bytes")));
        }
        match self.connection.shared.engine.lock().endpoint.transport.region_mut(parameter.local.id) {
            Some(memory) => memory.write(0, bytes).map_err(|error| inaccessible(index, error)),
            None => Ok(()),
        }
    }

    fn parameter(&self, index: usize) -> Result<&Parameter, Error> {
        let place = self.places.get(index).copied().flatten();
        place.map(|at| &self.parameters[at]).ok_or_else(|| Error::invalid(format!("there is no region {index} here")))
    }

    /// What the set-up and the last call cost.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Ends the connection and returns the regions' memory, in the order in which it was given; that of internal ones is
    /// empty. Does not wait for the device to agree: [`Device::settle`](crate::Device::settle) does.
    ///
    /// # Errors
    /// [`Error::Link`] if the wire is broken.
    pub fn close(mut self) -> Result<Vec<Memory>, Error> {
        let (regions, told) = self.leave();
        told?;
        Ok(regions)
    }

    /// Deregisters the regions, so that the device no longer writes them, and ends the connection.
    fn leave(&mut self) -> (Vec<Memory>, Result<(), LinkError>) {
        let mut memories = Vec::new();
        let parameters = std::mem::take(&mut self.parameters);
        let closed = self.connection.close(|state| {
            let ids = parameters.iter().map(|parameter| parameter.local.id);
            memories.extend(ids.map(|id| state.endpoint.transport.deregister(id)));
        });
        let regions = self.places.drain(..).map(|place| place.and_then(|at| memories[at].take()));
        (regions.map(|memory| memory.unwrap_or_else(|| Memory::zeroed(0))).collect(), closed)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // As when a connection is dropped; nothing is left to do if the call was closed.
        let _ = self.leave();
    }
}

/// The step that a call is in.
fn step(session: &Session) -> Step {
    match session.timing {
        Some(Timing { output: Some(_), .. }) => Step::Outputs,
        _ if session.sends == 0 => Step::Compute,
        _ => Step::Inputs,
    }
}

/// What the steps of a call cost that has ended, up to the one in which it did.
fn steps(session: &Session, began: Mark) -> Vec<StepReport> {
    let Some(timing) = session.timing else { return Vec::new() };
    let computed = timing.output.unwrap_or(timing.end);
    let mut steps = vec![
        StepReport::between(Step::Inputs, began, timing.inputs),
        StepReport::between(Step::Compute, timing.inputs, computed),
        StepReport::between(Step::Outputs, computed, timing.end),
    ];
    let reached = match step(session) {
        Step::Inputs => 1,
        Step::Compute => 2,
        _ => 3,
    };
    steps.truncate(reached);
    steps
}

/// The caller's memory of region `index` cannot be accessed.
fn inaccessible(index: usize, error: AccessError) -> Error {
    Error::invalid(format!("region {index}: {error}"))
}

/// Refuses regions that no device could have.
fn check(regions: &[Region]) -> Result<(), Error> {
    if regions.iter().all(|region| region.role == Role::Internal) {
        return Err(Error::invalid("a call needs at least one region that is not internal"));
    }
    if regions.len() > MAX_REGIONS {
        return Err(Error::invalid(format!("{} regions are more than the {MAX_REGIONS} of a call", regions.len())));
    }
    for (index, region) in regions.iter().enumerate() {
        if region.role.comes_back() && !region.memory.is_writable() {
            return Err(Error::invalid(format!("region {index} comes back, and its memory is read-only")));
        }
        if region.size == 0 || u32::try_from(region.size).is_err() {
            return Err(Error::invalid(format!("region {index} has {} bytes, not 1 to 2^32 - 1", region.size)));
        }
    }
    Ok(())
}
