// SPDX-License-Identifier: Apache-2.0
//! A call: create, invoke, test or wait, close.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nacelle_roce::{Access, ConnId, RecvWr, SendWr};
use nacelle_wire::mrsp::{ARegion, AarRegion, CallImm, FunctionCode, MAX_MESSAGE, MAX_REGIONS, Message, ReturnCode};
use nacelle_wire::{RemoteAddr, Rkey};

use crate::device::{Shared, deadline_in};
use crate::engine::Engine;
use crate::region::{Region, Role};
use crate::report::{Mark, Report, StepTimer, Tracer};
use crate::{Error, Step};

/// Device memory is asked for in pages of this size, as upstream callers do.
const PAGE: u64 = 4096;
/// How long one turn may hold the engine, so that calls in other threads get theirs.
const TURN: Duration = Duration::from_millis(20);
/// Frames that one look at a call takes at most.
const TEST_FRAMES: usize = 64;
/// How long a device may take to agree that a connection is closed.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

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
    function: FunctionCode,
    parameters: Vec<Parameter>,
    /// Index of the parameter for each region that was given; `None` for internal ones.
    places: Vec<Option<usize>>,
    calls: u64,
    running: Option<Running>,
    report: Report,
    setup_steps: usize,
}

/// A call that runs.
struct Running {
    timer: StepTimer,
    step: Step,
    tracer: Option<Tracer>,
    progress: Progress,
    payload_before: u64,
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
    /// not count, so a kernel that hangs is noticed.
    fn look(&mut self, engine: &mut Engine, conn: ConnId) {
        let sends = engine.session(conn).sends;
        let Some(info) = engine.info(conn) else { return };
        let moved = if sends > 0 { info.stats.rx_packets } else { info.stats.rx_payload };
        if self.mark != (sends, moved) {
            *self = Self { mark: (sends, moved), at: Instant::now() };
        }
    }
}

impl Call {
    pub(crate) fn create(shared: Arc<Shared>, function: FunctionCode, regions: Vec<Region>) -> Result<Self, Error> {
        check(&regions)?;
        let tracer = shared.tracer();
        let clock_hz = tracer.as_ref().map_or(0, |tracer| tracer.clock_hz);
        let (conn, steps) = {
            let mut engine = shared.engine();
            let steps: Vec<_> = engine.resolution.clone().into_iter().collect();
            (engine.connect()?, steps)
        };
        let mut call = Self {
            shared,
            conn,
            function,
            parameters: Vec::new(),
            places: Vec::new(),
            calls: 0,
            running: None,
            report: Report { clock_hz, steps },
            setup_steps: 0,
        };
        // From here on, dropping `call` closes what was opened.
        let mut timer = StepTimer::start(Step::Connect, call.mark());
        call.wait_until(Step::Connect, |session| session.connected)?;
        let connect = timer.next(Step::RegionSetup, call.mark());
        call.set_up(regions)?;
        let setup = timer.stop(call.mark());
        call.report.steps.extend([connect, setup]);
        call.setup_steps = call.report.steps.len();

        if let (Some(mut tracer), Some((device, caller))) = (tracer, call.queue_pairs()) {
            let passed = tracer.take();
            let [.., connect, setup] = &mut call.report.steps[..] else { unreachable!("both were added above") };
            connect.cycles = passed.connect();
            setup.cycles = passed.region_setup(device, caller);
        }
        Ok(call)
    }

    /// Tells the device of the regions, and learns of the device's.
    fn set_up(&mut self, regions: Vec<Region>) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let conn = self.conn;
        let failed = |error: &dyn std::fmt::Display| Error::Lost {
            ip: shared.ip,
            step: Step::RegionSetup,
            detail: error.to_string(),
        };

        let mut asked = 0u64;
        let mut place = |size: usize| {
            let at = asked;
            asked += (size as u64).next_multiple_of(PAGE);
            at
        };
        let internal: Vec<AarRegion> = regions
            .iter()
            .filter(|region| region.role == Role::Internal)
            .map(|region| AarRegion::internal(place(region.size), region.size as u32))
            .collect();
        let mut aar = Vec::new();
        let answer = {
            let mut engine = shared.engine();
            for Region { role, bytes, size } in regions {
                if role == Role::Internal {
                    self.places.push(None);
                    continue;
                }
                let access = if role.comes_back() { Access::REMOTE_WRITE } else { Access::LOCAL };
                let local = engine.port().endpoint().register(bytes, access, Some(conn)).map_err(|e| failed(&e))?;
                self.places.push(Some(self.parameters.len()));
                let remote = ARegion::new(RemoteAddr(0), Rkey(0), 0);
                self.parameters.push(Parameter { role, local, remote });
                aar.push(AarRegion::parameter(role.flags(), place(size), local.addr, local.rkey, size as u32));
            }
            aar.extend(internal);
            let mut message = [0; MAX_MESSAGE];
            let length = Message::Aar(&aar).write(&mut message).map_err(|e| Error::invalid(e.to_string()))?;
            let answer = engine
                .port()
                .endpoint()
                .register(vec![0; MAX_MESSAGE], Access::LOCAL, Some(conn))
                .map_err(|e| failed(&e))?;
            let endpoint = engine.port().endpoint();
            endpoint.post_recv(conn, RecvWr { id: 0, slice: Some(answer.all()) }).map_err(|e| failed(&e))?;
            endpoint.post_send(conn, SendWr::send(0, &message[..length])).map_err(|e| failed(&e))?;
            engine.session(conn).sends += 1;
            answer
        };
        let outcome = self.wait_until(Step::RegionSetup, |session| session.received.is_some() && session.sends == 0);
        let mut engine = shared.engine();
        let length = engine.session(conn).received.take().map_or(0, |completion| completion.byte_len);
        let message = engine.port().endpoint().deregister(answer.id).unwrap_or_default();
        drop(engine);
        outcome?;
        self.accept_regions(message.get(..length).unwrap_or_default(), asked)
    }

    fn accept_regions(&mut self, message: &[u8], asked: u64) -> Result<(), Error> {
        let (ip, step) = (self.shared.ip, Step::RegionSetup);
        let broken = |what: String| Error::Protocol { ip, step, what };
        match Message::parse(message) {
            Ok(Message::A(given)) if given.len() == self.parameters.len() => {
                for (index, (parameter, given)) in self.parameters.iter_mut().zip(given).enumerate() {
                    if (given.size() as usize) < parameter.local.len {
                        let (got, want) = (given.size(), parameter.local.len);
                        return Err(broken(format!("it gave {got} bytes for region {index} of {want} bytes")));
                    }
                    parameter.remote = *given;
                }
                Ok(())
            }
            Ok(Message::A(given)) => {
                Err(broken(format!("it gave {} regions for {}", given.len(), self.parameters.len())))
            }
            Ok(Message::Err(code)) => Err(Error::RegionsRefused { ip, code, bytes: asked }),
            Ok(Message::Aar(_)) => Err(broken("it answered a region request by one of its own".into())),
            Err(error) => Err(broken(format!("its answer to the region request is wrong: {error}"))),
        }
    }

    /// Starts the call and returns at once.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if one runs already; [`Error::Lost`] if the connection is gone.
    pub fn invoke(&mut self) -> Result<(), Error> {
        if self.running.is_some() {
            return Err(Error::invalid("the call runs already: wait for it first"));
        }
        let tracer = self.shared.tracer();
        let mut engine = self.shared.engine();
        if let Some(end) = engine.session(self.conn).end.clone() {
            return Err(engine.error(&end, Step::Inputs, Duration::ZERO));
        }
        let ip = self.shared.ip;
        let lost = |error: nacelle_roce::PostError| Error::Lost { ip, step: Step::Inputs, detail: error.to_string() };
        self.report.steps.truncate(self.setup_steps);
        let timer = StepTimer::start(Step::Inputs, Mark::now(engine.port()));
        let payload_before = engine.info(self.conn).map_or(0, |info| info.stats.rx_payload);

        let imm = CallImm::Start { function: self.function, user: [0; 3] }.to_u32();
        let inputs: Vec<&Parameter> = self.parameters.iter().filter(|p| p.role.is_sent(self.calls)).collect();
        let endpoint = engine.port().endpoint();
        endpoint.post_recv(self.conn, RecvWr { id: 0, slice: None }).map_err(lost)?;
        let count = inputs.len().max(1);
        for (index, input) in inputs.iter().enumerate() {
            let (address, rkey, data) = (input.remote.address(), input.remote.rkey(), input.local.all());
            let request = if index + 1 == count {
                SendWr::write_imm(index as u64, data, address, rkey, imm)
            } else {
                SendWr::write(index as u64, data, address, rkey)
            };
            endpoint.post_send(self.conn, request).map_err(lost)?;
        }
        if inputs.is_empty() {
            // Nothing to send but the call itself.
            let (address, rkey) = (self.parameters[0].remote.address(), self.parameters[0].remote.rkey());
            endpoint.post_send(self.conn, SendWr::write_imm(0, Vec::new(), address, rkey, imm)).map_err(lost)?;
        }
        let session = engine.session(self.conn);
        session.received = None;
        session.sends += count;
        engine.port().flush()?;
        drop(engine);
        self.calls += 1;
        self.running = Some(Running { timer, step: Step::Inputs, tracer, progress: Progress::new(), payload_before });
        Ok(())
    }

    /// Whether the call has ended. Never waits: takes what has come, and nothing more.
    ///
    /// # Errors
    /// As [`Call::wait`].
    pub fn test(&mut self) -> Result<bool, Error> {
        for _ in 0..TEST_FRAMES {
            if self.advance(Instant::now())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits until the call has ended.
    ///
    /// # Errors
    /// What the device says of the call ([`Error::UnknownFunction`], [`Error::Kernel`] and others); [`Error::Timeout`] with
    /// the step that did not end; [`Error::Lost`] if the device is gone. After a timeout the call may still be running:
    /// wait again, or close.
    pub fn wait(&mut self) -> Result<(), Error> {
        while !self.advance(Instant::now() + TURN)? {}
        Ok(())
    }

    /// Carries at most one frame, waiting for it until `deadline`. Returns whether the call has ended.
    fn advance(&mut self, deadline: Instant) -> Result<bool, Error> {
        let Some(running) = &mut self.running else { return Ok(true) };
        let (ip, timeout) = (self.shared.ip, self.shared.timeout);
        let mut engine = self.shared.engine();
        let before = Mark::now(engine.port());
        engine.turn(deadline)?;
        let after = Mark::now(engine.port());
        running.progress.look(&mut engine, self.conn);

        let payload = engine.info(self.conn).map_or(0, |info| info.stats.rx_payload);
        let session = engine.session(self.conn);
        let (received, sends, end) = (session.received, session.sends, session.end.clone());
        let arrived = payload > running.payload_before || received.is_some();
        if running.step == Step::Inputs && (sends == 0 || arrived) {
            // The last acknowledgement belongs to the inputs; if it was lost, the first output says the same.
            self.report.steps.push(running.timer.next(Step::Compute, if arrived { before } else { after }));
            running.step = Step::Compute;
        }
        if running.step == Step::Compute && arrived {
            self.report.steps.push(running.timer.next(Step::Outputs, before));
            running.step = Step::Outputs;
        }
        let waited = running.progress.at.elapsed();
        let outcome = match (received, end) {
            (Some(completion), _) if sends == 0 => Ok(completion.imm.unwrap_or_default()),
            (_, Some(end)) => Err(engine.error(&end, running.step, waited)),
            _ if waited > timeout => {
                // What was begun may still end: the caller may wait again.
                let step = running.step;
                running.progress = Progress::new();
                return Err(Error::Timeout { ip, step, waited });
            }
            _ => return Ok(false),
        };
        let running = self.running.take().expect("it was running just now");
        self.report.steps.push(running.timer.stop(after));
        drop(engine);
        let imm = outcome?;
        if let (Some(mut tracer), Some((device, caller))) = (running.tracer, self.queue_pairs()) {
            let cycles = tracer.take().call(device, caller);
            for (step, cycles) in self.report.steps[self.setup_steps..].iter_mut().zip(cycles) {
                step.cycles = cycles;
            }
        }
        self.judge(ReturnCode::from_imm(imm)).map(|()| true)
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
        let mut engine = self.shared.engine();
        let region = engine.port().endpoint().region(parameter.local.id).unwrap_or_default();
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
        let mut engine = self.shared.engine();
        if let Some(region) = engine.port().endpoint().region_mut(parameter.local.id) {
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

    /// Closes the connection and gives back the regions' bytes, in the order in which they were given; those of internal
    /// ones are empty. A device that does not agree within 5 s is left alone.
    ///
    /// # Errors
    /// [`Error::Link`] if the wire is broken.
    pub fn close(mut self) -> Result<Vec<Vec<u8>>, Error> {
        let regions = self.release();
        let shared = Arc::clone(&self.shared);
        shared.engine().disconnect(self.conn)?;
        let deadline = deadline_in(CLOSE_WITHIN.min(shared.timeout));
        while Instant::now() < deadline {
            let mut engine = shared.engine();
            if engine.session(self.conn).gone {
                break;
            }
            engine.turn(deadline.min(Instant::now() + TURN))?;
        }
        Ok(regions)
    }

    /// Takes the regions back: from now on nobody else writes them.
    fn release(&mut self) -> Vec<Vec<u8>> {
        let mut engine = self.shared.engine();
        let mut bytes: Vec<Vec<u8>> = self
            .parameters
            .drain(..)
            .map(|parameter| engine.port().endpoint().deregister(parameter.local.id).unwrap_or_default())
            .collect();
        self.places.drain(..).map(|place| place.map_or(Vec::new(), |at| std::mem::take(&mut bytes[at]))).collect()
    }

    /// Carries frames until `done`, the end of the connection, or until nothing has moved for too long.
    fn wait_until(&self, step: Step, done: impl Fn(&crate::engine::Session) -> bool) -> Result<(), Error> {
        let (ip, timeout) = (self.shared.ip, self.shared.timeout);
        let mut progress = Progress::new();
        loop {
            let mut engine = self.shared.engine();
            engine.turn(Instant::now() + TURN)?;
            progress.look(&mut engine, self.conn);
            let waited = progress.at.elapsed();
            let session = engine.session(self.conn);
            if done(session) {
                return Ok(());
            }
            if let Some(end) = session.end.clone() {
                return Err(engine.error(&end, step, waited));
            }
            if waited > timeout {
                return Err(Error::Timeout { ip, step, waited });
            }
        }
    }

    fn mark(&self) -> Mark {
        Mark::now(self.shared.engine().port())
    }

    /// The queue pairs of the device and of the caller.
    fn queue_pairs(&self) -> Option<(u32, u32)> {
        let info = self.shared.engine().info(self.conn)?;
        Some((info.remote_qpn?.get(), info.local_qpn.get()))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.release();
        let mut engine = self.shared.engine();
        // Nobody is left to tell of an error; the device's own timers free what it holds if this does not arrive.
        let _ = engine.disconnect(self.conn);
        engine.forget(self.conn);
    }
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
