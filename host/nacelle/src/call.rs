// SPDX-License-Identifier: Apache-2.0
//! A call: create, invoke, test or wait, close.

use std::sync::{Arc, Condvar};
use std::time::{Duration, Instant};

use nacelle_link::LinkError;
use nacelle_roce::{Access, Completion, ConnId, Endpoint, RecvWr, SendOp, SendWr, WcOpcode};
use nacelle_wire::mrsp::{ARegion, AarRegion, CallImm, FunctionCode, MAX_MESSAGE, MAX_REGIONS, Message, ReturnCode};
use nacelle_wire::{RemoteAddr, Rkey};

use crate::device::Shared;
use crate::engine::State;
use crate::inbox::{Session, Timing};
use crate::region::{Region, Role};
use crate::report::{Mark, Report, StepReport, Tracer};
use crate::{Error, Step};

/// Device memory is asked for in pages of this size, as upstream callers do.
const PAGE: u64 = 4096;
/// The longest WRITE, in bytes (IBTA 9.7.7).
const MAX_WRITE: usize = 1 << 31;
/// A thread that waits looks this often during its timeout whether anything has moved, and at least every second.
const LOOKS: u32 = 16;

/// A region that is known to both sides.
struct Parameter {
    role: Role,
    local: nacelle_roce::Region,
    remote: ARegion,
}

/// Calls of a device over one connection, on the same regions.
pub struct Call {
    shared: Arc<Shared>,
    conn: ConnId,
    /// Woken when something has happened on the connection.
    wake: Arc<Condvar>,
    function: FunctionCode,
    parameters: Vec<Parameter>,
    /// Index of the parameter for each region that was given; `None` for internal ones.
    places: Vec<Option<usize>>,
    calls: u64,
    running: Option<Running>,
    report: Report,
    setup_steps: usize,
    left: bool,
}

/// A call that runs.
struct Running {
    began: Mark,
    tracer: Option<Tracer>,
    progress: Progress,
}

/// When something last moved.
struct Progress {
    mark: (usize, u64),
    at: Instant,
}

impl Progress {
    fn new() -> Self {
        Self { mark: (0, 0), at: Instant::now() }
    }

    /// Notes whether anything has moved: an acknowledgement of what was sent, or payload that came. Signs of life alone do
    /// not count, so a kernel that hangs is noticed. Returns how long nothing has moved.
    fn look(&mut self, state: &mut State, conn: ConnId) -> Duration {
        let sends = state.inbox.session(conn).sends;
        let stats = state.endpoint.stats(conn);
        let moved = stats.map(|stats| if sends > 0 { stats.rx_packets } else { stats.rx_payload });
        if let Some(moved) = moved
            && self.mark != (sends, moved)
        {
            *self = Self { mark: (sends, moved), at: Instant::now() };
        }
        self.at.elapsed()
    }
}

impl Call {
    pub(crate) fn create(shared: Arc<Shared>, function: FunctionCode, regions: Vec<Region>) -> Result<Self, Error> {
        check(&regions)?;
        let tracer = shared.tracer();
        let clock_hz = tracer.as_ref().map_or(0, |tracer| tracer.clock_hz);
        let (ip, service) = (shared.ip, shared.service);
        let (conn, wake, began) = shared.engine.act(|state| {
            let (now, began) = (state.now(), state.mark());
            let conn = state.endpoint.connect(now, ip, service, shared.connect.clone());
            let conn = conn.map_err(|error| Error::invalid(error.to_string()))?;
            Ok::<_, Error>((conn, state.inbox.open(conn), began))
        })??;
        let steps = vec![shared.resolution.clone()];
        let mut call = Self {
            shared,
            conn,
            wake,
            function,
            parameters: Vec::new(),
            places: Vec::new(),
            calls: 0,
            running: None,
            report: Report { clock_hz, steps },
            setup_steps: 0,
            left: false,
        };
        // From here on, dropping `call` closes what was opened.
        call.wait_until(Step::Connect, |session| session.connected)?;
        let connected = call.shared.engine.lock().mark();
        call.set_up(regions)?;
        let ready = call.shared.engine.lock().mark();
        let mut connect = StepReport::between(Step::Connect, began, connected);
        let mut setup = StepReport::between(Step::RegionSetup, connected, ready);
        if let (Some(mut tracer), Some((device, caller))) = (tracer, call.queue_pairs()) {
            let passed = tracer.take();
            connect.cycles = passed.connect();
            setup.cycles = passed.region_setup(device, caller);
        }
        call.report.steps.extend([connect, setup]);
        call.setup_steps = call.report.steps.len();
        Ok(call)
    }

    /// Tells the device of the regions, and learns of the device's.
    fn set_up(&mut self, regions: Vec<Region>) -> Result<(), Error> {
        let (shared, conn) = (Arc::clone(&self.shared), self.conn);
        let mut asked = 0u64;
        let answer = shared.engine.act(|state| self.ask_for_regions(state, regions, &mut asked))??;
        let outcome = self.wait_until(Step::RegionSetup, |session| session.received.is_some() && session.sends == 0);
        let (completion, message) = {
            let mut state = shared.engine.lock();
            let message = state.endpoint.deregister(answer.id).unwrap_or_default();
            (state.inbox.session(conn).received.take(), message)
        };
        outcome?;
        match completion {
            Some(Completion { opcode: WcOpcode::Recv, byte_len, .. }) => {
                self.accept_regions(message.get(..byte_len).unwrap_or_default(), asked)
            }
            _ => Err(self.broken(Step::RegionSetup, "it answered the region request by a WRITE, not by a SEND".into())),
        }
    }

    /// Registers the regions and posts the region request. Returns where the answer goes, and in `asked` how many bytes of
    /// device memory were asked for.
    fn ask_for_regions(
        &mut self,
        state: &mut State,
        regions: Vec<Region>,
        asked: &mut u64,
    ) -> Result<nacelle_roce::Region, Error> {
        let (ip, conn) = (self.shared.ip, self.conn);
        let failed =
            |error: &dyn std::fmt::Display| Error::Lost { ip, step: Step::RegionSetup, detail: error.to_string() };
        let mut place = |size: usize| {
            let at = *asked;
            *asked += (size as u64).next_multiple_of(PAGE);
            at
        };
        let internal: Vec<AarRegion> = regions
            .iter()
            .filter(|region| region.role == Role::Internal)
            .map(|region| AarRegion::internal(place(region.size), region.size as u32))
            .collect();
        let mut aar = Vec::new();
        let endpoint = &mut state.endpoint;
        for Region { role, bytes, size } in regions {
            if role == Role::Internal {
                self.places.push(None);
                continue;
            }
            // The device may write it while a call runs, and only then.
            let local = endpoint.register(bytes, Access::LOCAL, Some(conn)).map_err(|e| failed(&e))?;
            self.places.push(Some(self.parameters.len()));
            let remote = ARegion::new(RemoteAddr(0), Rkey(0), 0);
            self.parameters.push(Parameter { role, local, remote });
            aar.push(AarRegion::parameter(role.flags(), place(size), local.addr, local.rkey, size as u32));
        }
        aar.extend(internal);
        let mut message = [0; MAX_MESSAGE];
        let length = Message::Aar(&aar).write(&mut message).map_err(|e| Error::invalid(e.to_string()))?;
        let answer = endpoint.register(vec![0; MAX_MESSAGE], Access::LOCAL, Some(conn)).map_err(|e| failed(&e))?;
        endpoint.post_recv(conn, RecvWr { id: 0, slice: Some(answer.all()) }).map_err(|e| failed(&e))?;
        state.inbox.session(conn).receives = true;
        endpoint.post_send(conn, SendWr::send(0, &message[..length])).map_err(|e| failed(&e))?;
        state.inbox.session(conn).sends += 1;
        Ok(answer)
    }

    fn accept_regions(&mut self, message: &[u8], asked: u64) -> Result<(), Error> {
        let ip = self.shared.ip;
        let what = match Message::parse(message) {
            Ok(Message::A(given)) => match self.check_regions(given) {
                Ok(()) => {
                    self.parameters.iter_mut().zip(given).for_each(|(parameter, given)| parameter.remote = *given);
                    return Ok(());
                }
                Err(what) => what,
            },
            Ok(Message::Err(code)) => return Err(Error::RegionsRefused { ip, code, bytes: asked }),
            Ok(Message::Aar(_)) => "it answered a region request by one of its own".into(),
            Err(error) => format!("its answer to the region request is wrong: {error}"),
        };
        Err(self.broken(Step::RegionSetup, what))
    }

    /// What is wrong with the regions that the device gives: each must be as long as was asked for, and none lie on another.
    fn check_regions(&self, given: &[ARegion]) -> Result<(), String> {
        if given.len() != self.parameters.len() {
            return Err(format!("it gave {} regions for {}", given.len(), self.parameters.len()));
        }
        let indices = self.places.iter().enumerate().filter_map(|(index, place)| place.map(|_| index));
        let mut extents = Vec::new();
        for ((index, parameter), given) in indices.zip(&self.parameters).zip(given) {
            let (got, want) = (given.size(), parameter.local.len);
            if got as usize != want {
                return Err(format!("it gave {got} bytes for region {index} of {want} bytes"));
            }
            let first = given.address().0;
            let Some(last) = first.checked_add(u64::from(got) - 1) else {
                return Err(format!("region {index} at {first:#x} lies beyond the end of the address space"));
            };
            extents.push((first, last, index));
        }
        extents.sort_unstable();
        match extents.windows(2).find(|pair| pair[1].0 <= pair[0].1) {
            Some(pair) => Err(format!("regions {} and {} overlap", pair[0].2, pair[1].2)),
            None => Ok(()),
        }
    }

    fn broken(&self, step: Step, what: String) -> Error {
        Error::Protocol { ip: self.shared.ip, step, what }
    }

    /// Starts the call and returns at once. If it cannot be started, nothing is sent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if one runs already, or needs more work requests than the connection's send queue has room
    /// for; [`Error::Lost`] if the connection is gone.
    pub fn invoke(&mut self) -> Result<(), Error> {
        if self.running.is_some() {
            return Err(Error::invalid("the call runs already: wait for it first"));
        }
        let shared = Arc::clone(&self.shared);
        let tracer = shared.tracer();
        shared.engine.act(|state| {
            let began = state.mark();
            self.post(state)?;
            state.inbox.time(self.conn, Timing::begin(&state.endpoint, self.conn, began));
            self.report.steps.truncate(self.setup_steps);
            self.calls += 1;
            self.running = Some(Running { began, tracer, progress: Progress::new() });
            Ok(())
        })?
    }

    /// Posts the receive for the reply, and the inputs: all of them or none.
    fn post(&self, state: &mut State) -> Result<(), Error> {
        let (ip, conn) = (self.shared.ip, self.conn);
        if let Some(end) = state.inbox.session(conn).end.clone() {
            return Err(end.error(ip, Step::Inputs, Duration::ZERO));
        }
        let lost = |error: nacelle_roce::PostError| Error::Lost { ip, step: Step::Inputs, detail: error.to_string() };
        let requests = self.requests();
        let waiting = state.endpoint.connection(conn).map_or(0, |info| info.sends);
        let room = self.shared.connect.send_depth.saturating_sub(waiting);
        if requests.len() > room {
            return Err(Error::invalid(format!(
                "the call needs {} work requests, and the send queue has room for {room}",
                requests.len()
            )));
        }
        // A receive that a call before did not use serves this one.
        if !state.inbox.session(conn).receives {
            state.endpoint.post_recv(conn, RecvWr { id: 0, slice: None }).map_err(lost)?;
        }
        let session = state.inbox.session(conn);
        session.receives = true;
        session.received = None;
        for request in requests {
            state.endpoint.post_send(conn, request).map_err(lost)?;
            state.inbox.session(conn).sends += 1;
        }
        self.open(&mut state.endpoint, Access::REMOTE_WRITE);
        Ok(())
    }

    /// The WRITEs of a call, the last with the immediate that starts it.
    fn requests(&self) -> Vec<SendWr> {
        let imm = CallImm::Start { function: self.function, user: [0; 3] }.to_u32();
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
            endpoint.set_access(parameter.local.id, access);
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
        let shared = Arc::clone(&self.shared);
        shared.engine.look()?;
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
        let (shared, wake) = (Arc::clone(&self.shared), Arc::clone(&self.wake));
        while self.running.is_some() {
            if let Some(outcome) = shared.engine.wait(&wake, shared.next_look(), |state| self.look(state))? {
                return self.end(outcome);
            }
        }
        Ok(())
    }

    /// How the call has ended: the reply, or an error. `None` if it has not.
    fn look(&mut self, state: &mut State) -> Option<Result<Completion, Error>> {
        let running = self.running.as_mut()?;
        let (ip, timeout) = (self.shared.ip, self.shared.timeout);
        let waited = running.progress.look(state, self.conn);
        let session = state.inbox.session(self.conn);
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

    /// Ends the call, unless it has only run into its timeout, and tells what the reply means.
    fn end(&mut self, outcome: Result<Completion, Error>) -> Result<(), Error> {
        if let Err(error @ Error::Timeout { .. }) = outcome {
            return Err(error);
        }
        let shared = Arc::clone(&self.shared);
        let Some(running) = self.running.take() else { return Ok(()) };
        {
            let mut state = shared.engine.lock();
            self.open(&mut state.endpoint, Access::LOCAL);
            let session = state.inbox.session(self.conn);
            self.report.steps.extend(steps(session, running.began));
        }
        let completion = outcome?;
        if let (Some(mut tracer), Some((device, caller))) = (running.tracer, self.queue_pairs()) {
            let cycles = tracer.take().call(device, caller);
            for (step, cycles) in self.report.steps[self.setup_steps..].iter_mut().zip(cycles) {
                step.cycles = cycles;
            }
        }
        match (completion.opcode, completion.imm) {
            (WcOpcode::RecvWrite, Some(imm)) => self.judge(ReturnCode::from_imm(imm)),
            _ => Err(self.broken(Step::Outputs, "it replied by a SEND, not by a WRITE with immediate".into())),
        }
    }

    /// What a return code means.
    fn judge(&self, code: ReturnCode) -> Result<(), Error> {
        let (ip, function) = (self.shared.ip, self.function.get());
        Err(match code.get() {
            0x00 => return Ok(()),
            0x01 => Error::SocketUnavailable { ip, function },
            0x02 => Error::KernelTimeout { ip, function },
            0x03 => Error::UnknownFunction { ip, function },
            code => Error::Kernel { ip, function, code, text: kernel_code(self.function, code) },
        })
    }

    /// Copies what region `index` holds into `bytes`, as far as both go. Returns how many bytes that were.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the caller has no such region.
    pub fn read(&self, index: usize, bytes: &mut [u8]) -> Result<usize, Error> {
        let parameter = self.parameter(index)?;
        let state = self.shared.engine.lock();
        let region = state.endpoint.region(parameter.local.id).unwrap_or_default();
        let length = region.len().min(bytes.len());
        bytes[..length].copy_from_slice(&region[..length]);
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
        if let Some(region) = self.shared.engine.lock().endpoint.region_mut(parameter.local.id) {
            region.copy_from_slice(bytes);
        }
        Ok(())
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

    /// Ends the connection and gives back the regions' bytes, in the order in which they were given; those of internal ones
    /// are empty. Does not wait for the device to agree: [`Device::settle`](crate::Device::settle) does.
    ///
    /// # Errors
    /// [`Error::Link`] if the wire is broken.
    pub fn close(mut self) -> Result<Vec<Vec<u8>>, Error> {
        let (regions, told) = self.leave();
        told?;
        Ok(regions)
    }

    /// Takes the regions back, so that nobody else writes them any more, and tells the device of the end.
    fn leave(&mut self) -> (Vec<Vec<u8>>, Result<(), LinkError>) {
        self.left = true;
        let (shared, conn) = (Arc::clone(&self.shared), self.conn);
        let mut bytes = Vec::new();
        let told = shared.engine.act(|state| {
            let taken = self.parameters.drain(..).map(|parameter| state.endpoint.deregister(parameter.local.id));
            bytes.extend(taken.map(Option::unwrap_or_default));
            let now = state.now();
            state.endpoint.disconnect(now, conn);
            state.inbox.forget(conn);
        });
        let regions = self.places.drain(..).map(|place| place.map_or(Vec::new(), |at| std::mem::take(&mut bytes[at])));
        (regions.collect(), told)
    }

    /// Waits until `done`, the end of the connection, or until nothing has moved for too long.
    fn wait_until(&self, step: Step, done: impl Fn(&Session) -> bool) -> Result<(), Error> {
        let (ip, timeout) = (self.shared.ip, self.shared.timeout);
        let mut progress = Progress::new();
        loop {
            let look = |state: &mut State| {
                let waited = progress.look(state, self.conn);
                let session = state.inbox.session(self.conn);
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

    /// The queue pairs of the device and of the caller.
    fn queue_pairs(&self) -> Option<(u32, u32)> {
        let info = self.shared.engine.lock().endpoint.connection(self.conn)?;
        Some((info.remote_qpn?.get(), info.local_qpn.get()))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.left {
            // Nobody is left to tell of an error; the device's own timers free what it holds if this does not arrive.
            let _ = self.leave();
        }
    }
}

impl Shared {
    /// When a thread that waits looks whether anything has moved, though nothing has happened that would wake it.
    fn next_look(&self) -> Instant {
        Instant::now() + (self.timeout / LOOKS).clamp(Duration::from_millis(1), Duration::from_secs(1))
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

/// Refuses regions that no device could have.
fn check(regions: &[Region]) -> Result<(), Error> {
    if regions.iter().all(|region| region.role == Role::Internal) {
        return Err(Error::invalid("a call needs at least one region that is not internal"));
    }
    if regions.len() > MAX_REGIONS {
        return Err(Error::invalid(format!("{} regions are more than the {MAX_REGIONS} of a call", regions.len())));
    }
    for (index, region) in regions.iter().enumerate() {
        if region.size == 0 || u32::try_from(region.size).is_err() {
            return Err(Error::invalid(format!("region {index} has {} bytes, not 1 to 2^32 - 1", region.size)));
        }
    }
    Ok(())
}

/// What a kernel's own codes mean, for the kernels that are documented.
fn kernel_code(function: FunctionCode, code: u32) -> &'static str {
    match (function, code) {
        (FunctionCode::MATMUL, 0x10) => "the argument block is wrong",
        (FunctionCode::MATMUL, 0x11) => "a region does not have the size that the shapes need",
        (FunctionCode::MATMUL, 0x12) => "the kernel could not reach its memory",
        _ => "the kernel says no more",
    }
}
