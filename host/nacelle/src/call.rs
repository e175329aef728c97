// SPDX-License-Identifier: Apache-2.0
//! A call: create, invoke, test or wait, close.

mod access;
mod cancel;
mod finished;
mod setup;
mod start;
mod transfer;

use std::net::IpAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nacelle_link::LinkError;
use nacelle_memory::{AccessError, Memory};
use nacelle_roce::{Access, RegionId, WcOpcode};
use nacelle_wire::extensions::Extensions;
use nacelle_wire::mrsp::{FunctionCode, MAX_REGIONS, ReturnCode};
use nacelle_wire::{RemoteAddr, Rkey, calls};

use crate::channel::Channel;
use crate::connection::Line;
use crate::device::Shared;
use crate::engine::State;
use crate::inbox::{End, deadline_in, far};
use crate::region::{Region, Role};
use crate::report::{Mark, Report, StepReport, Tracer};
use crate::slot::{Callback, Cause, Outcome, Slot};
use crate::wake::Wake;
use crate::{Error, Step};
pub use cancel::Canceller;
pub use finished::Finished;
pub use transfer::Transferred;

/// A step of a chain: a function, the regions that it gets, and its user bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainStep {
    /// The function.
    pub function: FunctionCode,
    /// The regions, by their place in the call. The kernel gets them as if they were all, numbered from 0.
    pub regions: Range<usize>,
    /// Three bytes for the function.
    pub user: [u8; 3],
}

impl ChainStep {
    /// `function` on these regions, with zeros for the function.
    #[must_use]
    pub fn new(function: FunctionCode, regions: Range<usize>) -> Self {
        Self { function, regions, user: [0; 3] }
    }
}

/// How a call is made.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// How long a call may take from [`Call::invoke`] to its end; one that takes longer is ended with
    /// [`Error::DeadlineExceeded`]. The device keeps it, from the arrival of the start on, if the connection has
    /// [long set-ups](crate::Connection::has_long_set_up); else this side does, as [`Call::cancel`]. Until then a kernel may
    /// compute without a sign of progress for longer than [`Options::timeout`](crate::Options::timeout). Default: none.
    pub deadline: Option<Duration>,
}

/// What a call runs.
#[derive(Debug, Clone)]
pub(crate) enum Program {
    Function(FunctionCode),
    Chain(Vec<ChainStep>),
}

/// A region that both sides have registered.
struct Parameter {
    role: Role,
    local: nacelle_roce::Region,
    /// Where it is at the device, and under which key.
    address: RemoteAddr,
    rkey: Rkey,
}

/// Calls of a device over one connection, on the same regions.
pub struct Call {
    line: Arc<Line>,
    channel: Arc<Channel>,
    context: u8,
    /// Notified when something has happened on the context.
    wake: Arc<Wake>,
    program: Program,
    deadline: Option<Duration>,
    parameters: Vec<Parameter>,
    /// Sizes of the internal regions.
    internal: Vec<u64>,
    /// Index of the parameter for each region that was given; `None` for internal ones.
    places: Vec<Option<usize>>,
    is_set_up: bool,
    /// Calls since the set-up.
    calls: u64,
    running: Option<Running>,
    on_finish: Option<Callback>,
    /// Where handles find the call.
    place: Arc<Mutex<cancel::Place>>,
    report: Report,
    setup_steps: usize,
    /// Whether its regions were given back.
    closed: bool,
}

/// A call that runs.
struct Running {
    tracer: Option<Tracer>,
}

impl Call {
    pub(crate) fn create(
        line: Arc<Line>,
        program: Program,
        regions: Vec<Region>,
        options: &CallOptions,
    ) -> Result<Self, Error> {
        check(&regions)?;
        if let Program::Chain(steps) = &program {
            check_chain(steps, &regions)?;
        }
        let tracer = line.shared.tracer();
        let (channel, context) = line.take_context()?;
        let is_long = channel.agreement.extensions.contains(Extensions::LONG_SET_UP);
        let most = if is_long { calls::MAX_REGIONS } else { MAX_REGIONS };
        let wake = channel.wake(context);
        let place = Arc::new(Mutex::new(cancel::Place::of(&channel, context)));
        let mut call = Self {
            line,
            channel,
            context,
            wake,
            program,
            deadline: options.deadline,
            parameters: Vec::new(),
            internal: Vec::new(),
            places: Vec::new(),
            is_set_up: false,
            calls: 0,
            running: None,
            on_finish: None,
            place,
            report: Report::default(),
            setup_steps: 0,
            closed: false,
        };
        // From here on, dropping the call gives the context back.
        if regions.len() > most {
            return Err(Error::invalid(format!("{} regions are more than the {most} of a call", regions.len())));
        }
        call.register(regions)?;
        call.set_up_reported(tracer)?;
        Ok(call)
    }

    /// Sets the regions up, and begins the report anew.
    fn set_up_reported(&mut self, tracer: Option<Tracer>) -> Result<(), Error> {
        let connected = self.shared().engine.lock_now().mark();
        self.set_up()?;
        let ready = self.shared().engine.lock_now().mark();
        let mut connect = self.channel.opened.clone();
        let mut setup = StepReport::between(Step::RegionSetup, connected, ready);
        self.report.clock_hz = tracer.as_ref().map_or(0, |tracer| tracer.clock_hz);
        if let (Some(mut tracer), Some((device, caller))) = (tracer, self.channel.queue_pairs()) {
            let passed = tracer.take();
            connect.cycles = passed.connect();
            setup.cycles = passed.region_setup(device, caller);
        }
        self.report.steps = vec![self.shared().resolution.clone(), connect, setup];
        self.setup_steps = self.report.steps.len();
        // Those of a call come in the same memory each time.
        self.report.steps.reserve(CALL_STEPS);
        Ok(())
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.line.shared
    }

    /// The function that [`Call::invoke`] runs; `None` if it is a chain.
    #[must_use]
    pub fn function(&self) -> Option<FunctionCode> {
        match &self.program {
            Program::Function(function) => Some(*function),
            Program::Chain(_) => None,
        }
    }

    /// Runs another function on the same regions from the next [`Call::invoke`] on. In place of a chain it runs alone, on all
    /// regions.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] while a call runs.
    pub fn set_function(&mut self, function: FunctionCode) -> Result<(), Error> {
        if self.running.is_some() {
            return Err(Error::invalid("the call runs: wait for it before its function is changed"));
        }
        self.program = Program::Function(function);
        Ok(())
    }

    /// Whether it runs: it was invoked, and its end has not been collected by [`Call::test`] or a wait.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Has `callback` run whenever the call has ended or has run into its timeout, so that [`Call::test`] has something to
    /// say; in place of the callback before. It is run by whichever thread makes progress, without any lock: it may use other
    /// calls, must not block for long, and must not panic.
    pub fn on_finish(&mut self, callback: impl Fn() + Send + Sync + 'static) {
        let callback: Callback = Arc::new(callback);
        self.on_finish = Some(Arc::clone(&callback));
        self.with_slot(|slot| slot.on_finish = Some(callback));
    }

    fn with_slot<T>(&self, change: impl FnOnce(&mut Slot) -> T) -> T {
        change(self.shared().engine.lock().inbox.session(self.channel.id).slot(self.context))
    }

    /// Whether the call has ended. Never waits: moves the frames that can be moved at once, and nothing more.
    ///
    /// # Errors
    /// As [`Call::wait`].
    pub fn test(&mut self) -> Result<bool, Error> {
        if self.running.is_none() {
            return Ok(true);
        }
        self.shared().engine.poll()?;
        let outcome = self.look(&mut self.shared().engine.lock_now());
        outcome.map_or(Ok(false), |outcome| self.end(outcome).map(|()| true))
    }

    /// Waits until the call has ended.
    ///
    /// # Errors
    /// What the device says of the call ([`Error::UnknownFunction`], [`Error::Kernel`] and others); [`Error::Cancelled`] and
    /// [`Error::DeadlineExceeded`] if it was made to end; [`Error::Timeout`] with the step that did not end;
    /// [`Error::Lost`] if the device is gone. After a timeout the call may still be running: wait again, cancel, or close.
    pub fn wait(&mut self) -> Result<(), Error> {
        while !self.wait_until(far())? {}
        Ok(())
    }

    /// Waits until the call has ended, for `patience` at most. Returns whether it has; if not, it still runs.
    ///
    /// # Errors
    /// As [`Call::wait`].
    pub fn wait_timeout(&mut self, patience: Duration) -> Result<bool, Error> {
        self.wait_until(deadline_in(patience))
    }

    /// Waits until the call has ended, until `deadline` at most. Returns whether it has; if not, it still runs. A deadline in
    /// the past means: as [`Call::test`].
    ///
    /// # Errors
    /// As [`Call::wait`].
    pub fn wait_until(&mut self, deadline: Instant) -> Result<bool, Error> {
        if self.running.is_none() || Instant::now() >= deadline {
            return self.test();
        }
        let engine = &self.shared().engine;
        match engine.wait(&self.wake, deadline, |state| self.look(state))? {
            Some(outcome) => self.end(outcome).map(|()| true).map_err(|error| self.explain(error)),
            None => Ok(false),
        }
    }

    /// Reads what a kernel's result code means, if the device's description has not been read.
    fn explain(&self, error: Error) -> Error {
        match error {
            Error::Kernel { ip, function, code, .. } => {
                // Without a description the code is all that is known.
                let _ = self.shared().describe();
                Error::Kernel { ip, function, code, text: self.shared().kernel_code(function, code) }
            }
            other => other,
        }
    }

    /// What there is to say of the call. `None` if it runs.
    fn look(&self, state: &mut State) -> Option<Outcome> {
        let now = state.now();
        state.inbox.outcome(self.channel.id, self.context, now)
    }

    /// Ends the call, unless it has only run into its timeout, and returns the meaning of the reply.
    fn end(&mut self, outcome: Outcome) -> Result<(), Error> {
        let ip = self.shared().ip;
        if let Outcome::Stalled(step, waited) = outcome {
            return Err(Error::Timeout { ip, step, waited, mtu: None }.with_mtu(self.shared().doubtful_mtu));
        }
        let Some(running) = self.running.take() else { return Ok(()) };
        let cause = {
            let mut state = self.line.shared.engine.lock();
            let state = &mut *state;
            self.open(&mut state.endpoint, Access::LOCAL);
            let run = state.inbox.finish(self.channel.id, self.context);
            let slot = state.inbox.session(self.channel.id).slot(self.context);
            self.report.steps.extend(run.iter().flat_map(|run| steps(slot, run.began)).flatten());
            run.and_then(|run| run.cause)
        };
        let function = self.function().map_or(0, FunctionCode::get);
        let completion = match (outcome, cause) {
            (Outcome::Ended(End::Closed(_), ..), Some(cause)) => return Err(self.made_to_end(cause)),
            (Outcome::Ended(end, step, waited), _) => {
                return Err(end.error(ip, step, waited).with_mtu(self.shared().doubtful_mtu));
            }
            (Outcome::Replied(completion), _) => completion,
            (Outcome::Stalled(..), _) => return Ok(()),
        };
        if let Some(mut tracer) = running.tracer
            && let Some((device, caller)) = self.channel.queue_pairs()
        {
            let cycles = tracer.take().call(device, caller);
            for (step, cycles) in self.report.steps[self.setup_steps..].iter_mut().zip(cycles) {
                step.cycles = cycles;
            }
        }
        let (WcOpcode::RecvWrite, Some(imm)) = (completion.opcode, completion.imm) else {
            let what = "it replied by a SEND, not by a WRITE with immediate".into();
            return Err(self.channel.broken(Step::Outputs, what));
        };
        let has_contexts = self.channel.agreement.extensions.contains(Extensions::CONTEXTS);
        let code = if has_contexts { calls::parse_result(imm).1 } else { ReturnCode::from_imm(imm) };
        Err(match code.get() {
            0x00 => return Ok(()),
            0x01 => Error::SocketUnavailable { ip, function },
            0x02 => Error::KernelTimeout { ip, function },
            0x03 => Error::UnknownFunction { ip, function },
            0x04 if has_contexts => self.made_to_end(Cause::Deadline),
            0x05 if has_contexts => self.made_to_end(cause.unwrap_or(Cause::Cancelled)),
            code => Error::Kernel { ip, function, code, text: self.shared().kernel_code(function, code) },
        })
    }

    /// The call has ended because this side wanted it to.
    fn made_to_end(&self, cause: Cause) -> Error {
        let (ip, function) = (self.shared().ip, self.function().map_or(0, FunctionCode::get));
        match cause {
            Cause::Cancelled => Error::Cancelled { ip, function },
            Cause::Deadline => Error::DeadlineExceeded { ip, function, deadline: self.deadline.unwrap_or_default() },
        }
    }

    /// Copies what region `index` holds into `bytes`, as far as both go. Returns how many bytes that were.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the caller has no such region.
    pub fn read(&self, index: usize, bytes: &mut [u8]) -> Result<usize, Error> {
        let parameter = self.parameter(index)?;
        let state = self.shared().engine.lock();
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
        match self.shared().engine.lock().endpoint.transport.region_mut(parameter.local.id) {
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

    /// Ends the calls and returns the regions' memory, in the order in which it was given; that of internal ones is empty.
    /// A connection of its own ends, and this does not wait for the device to agree:
    /// [`Device::settle`](crate::Device::settle) does. On a connection with other calls, a call that runs is cancelled
    /// first, and this waits for its end.
    ///
    /// # Errors
    /// [`Error::Link`] if the wire is broken.
    pub fn close(mut self) -> Result<Vec<Memory>, Error> {
        if self.running.is_some() && self.leaves_connection() {
            self.cancel()?;
            // If it does not end in time, the connection has to.
            if matches!(self.wait(), Err(Error::Timeout { .. })) {
                self.channel.close(|_| {})?;
            }
        }
        let (regions, told) = self.leave();
        told?;
        Ok(regions)
    }

    /// Whether the connection goes on without this call.
    fn leaves_connection(&self) -> bool {
        !self.line.is_private() && self.channel.agreement.extensions.contains(Extensions::CONTEXTS)
    }

    /// Deregisters the regions, so that the device no longer writes them, and leaves the connection.
    fn leave(&mut self) -> (Vec<Memory>, Result<(), LinkError>) {
        self.closed = true;
        let mut memories = Vec::new();
        let parameters = std::mem::take(&mut self.parameters);
        let (conn, context) = (self.channel.id, self.context);
        let ends = self.running.is_some() || self.line.is_private();
        if ends {
            self.channel.give_time();
        }
        let closed = self.shared().engine.act(|state| {
            let ids = parameters.iter().map(|parameter| parameter.local.id);
            memories.extend(ids.map(|id| state.endpoint.transport.deregister(id)));
            if ends {
                state.end(conn, End::Closed("its call was closed"));
            }
            state.release(conn, context, Vec::new());
        });
        let regions = self.places.drain(..).map(|place| place.and_then(|at| memories[at].take()));
        (regions.map(|memory| memory.unwrap_or_else(|| Memory::zeroed(0))).collect(), closed)
    }

    /// Leaves a call that runs on a connection that goes on: it is cancelled, and its regions stay until it has ended.
    fn abandon(&mut self) {
        let (conn, context) = (self.channel.id, self.context);
        let left: Vec<RegionId> = self.parameters.drain(..).map(|parameter| parameter.local.id).collect();
        // The thread that drives next reports a broken link.
        let _ = self.shared().engine.act(|state| {
            state.cancel(conn, context, Cause::Cancelled);
            state.release(conn, context, left);
        });
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.closed {
        } else if self.running.is_some() && self.leaves_connection() {
            self.abandon();
        } else {
            // As when a connection is dropped.
            let _ = self.leave();
        }
    }
}

/// Steps of one call in a report.
const CALL_STEPS: usize = 3;

/// What the steps of a call cost that has ended, up to the one in which it did.
fn steps(slot: &Slot, began: Mark) -> [Option<StepReport>; CALL_STEPS] {
    let Some(timing) = slot.timing else { return [None, None, None] };
    let computed = timing.output.unwrap_or(timing.end);
    let reached = slot.step();
    [
        Some(StepReport::between(Step::Inputs, began, timing.inputs)),
        (reached != Step::Inputs).then(|| StepReport::between(Step::Compute, timing.inputs, computed)),
        (reached == Step::Outputs).then(|| StepReport::between(Step::Outputs, computed, timing.end)),
    ]
}

/// The connection is gone: `detail` says so.
fn lost(ip: IpAddr, step: Step, detail: &dyn std::fmt::Display) -> Error {
    Error::lost(ip, step, detail)
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
    for (index, region) in regions.iter().enumerate() {
        if region.role.comes_back() && !region.memory.is_writable() {
            return Err(Error::invalid(format!("region {index} comes back, and its memory is read-only")));
        }
        if region.size == 0 {
            return Err(Error::invalid(format!("region {index} has no bytes")));
        }
    }
    Ok(())
}

/// Refuses chains that no device could run.
fn check_chain(steps: &[ChainStep], regions: &[Region]) -> Result<(), Error> {
    if steps.is_empty() || steps.len() > calls::MAX_STEPS {
        let (count, most) = (steps.len(), calls::MAX_STEPS);
        return Err(Error::invalid(format!("a chain has 1 to {most} steps, not {count}")));
    }
    if regions.iter().skip_while(|region| region.role != Role::Internal).any(|region| region.role != Role::Internal) {
        return Err(Error::invalid("the internal regions of a chain come after all others"));
    }
    for (index, step) in steps.iter().enumerate() {
        if step.regions.is_empty() || step.regions.end > regions.len() {
            let (range, count) = (&step.regions, regions.len());
            return Err(Error::invalid(format!("step {index} of the chain names regions {range:?} of {count}")));
        }
    }
    Ok(())
}
