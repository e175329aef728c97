// SPDX-License-Identifier: Apache-2.0
//! Events of the endpoint, filed by what they belong to: a connection, a ping, or the resolution of an address.
//!
//! Only this module takes events apart. Filing one wakes the thread that waits for it; one that no thread waits for is
//! dropped.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nacelle_memory::Memory;
use nacelle_roce::{
    Completion, ConnId, ConnStats, ConnectFailure, DisconnectReason, Event, Interface, NetworkEvent, PostError, RecvWr,
    Region, RegionId, SendOp, SendWr, WcOpcode, WcStatus,
};
use nacelle_wire::MacAddr;
use nacelle_wire::admission::Why;
use nacelle_wire::calls::{self, Context, Request};
use nacelle_wire::extensions::{Agreement, Extensions};
use nacelle_wire::mrsp;
use rustc_hash::FxHashMap;

use crate::engine::Endpoint;
use crate::report::Mark;
use crate::slot::{After, Cause, Notices, Outcome, Run, Slot, Then};
use crate::transport::{RegisterError, Transport};
use crate::wake::Wake;
use crate::{Error, Step};

/// Why a connection has ended.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Failed(ConnectFailure),
    /// The device does not admit this caller.
    NotAdmitted(Why),
    Disconnected(DisconnectReason),
    /// The device admits this caller no longer.
    AdmissionEnded(Why),
    Completion(WcStatus),
    /// The device broke the protocol.
    Broken(String),
    /// By this side, and why.
    Closed(&'static str),
    /// The link is broken.
    Link(String),
}

/// What has happened on a connection.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) connected: bool,
    /// That of the device's REP.
    pub(crate) private_data: Vec<u8>,
    pub(crate) end: Option<End>,
    /// When the last answer of the device came.
    pub(crate) answered_at: Option<nacelle_roce::Instant>,
    /// Time that the device gets between its answer and what follows.
    pub(crate) gap: Duration,
    /// How long the acknowledgement of an answer by SEND waits.
    pub(crate) ack_delay: Duration,
    agreement: Agreement,
    /// One for each context; the first is there from the beginning.
    slots: Vec<Slot>,
    /// Receives posted.
    receives: usize,
    /// Memory of the receives: one piece for each context.
    buffers: Option<Region>,
    /// Pieces that no receive has.
    free: Vec<u8>,
}

/// When the steps of a call ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    payload_before: u64,
    packets_before: u64,
    /// Request packets that had left, repetitions aside.
    left: u64,
    /// When a part of the inputs left or was acknowledged last, before the first output.
    pub(crate) inputs: Mark,
    /// When the first output came.
    pub(crate) output: Option<Mark>,
    /// When the reply, or the last acknowledgement if that came later, was there.
    pub(crate) end: Mark,
}

impl Timing {
    /// Of a call on `conn` that begins now.
    pub(crate) fn begin(endpoint: &Endpoint, conn: ConnId, now: Mark) -> Self {
        let payload_before = endpoint.transport.stats(conn).map_or(0, |stats| stats.rx_payload);
        let left = packets_left(endpoint, conn);
        Self { payload_before, packets_before: left, left, inputs: now, output: None, end: now }
    }

    /// Request packets that have left since the call began, repetitions aside.
    pub(crate) fn packets(&self, stats: &ConnStats) -> u64 {
        new_packets(stats).saturating_sub(self.packets_before)
    }

    /// Bytes of payload that have come since.
    pub(crate) fn payload(&self, stats: &ConnStats) -> u64 {
        stats.rx_payload.saturating_sub(self.payload_before)
    }

    /// Notes what a frame that came or left at `now` means to the steps; `before` is the moment before the frame.
    fn note(&mut self, endpoint: &Endpoint, conn: ConnId, sends: usize, before: Mark, now: Mark) {
        let left = packets_left(endpoint, conn);
        // When all inputs are acknowledged, only a packet that asks whether the device is alive may leave.
        if sends > 0 && left != self.left {
            (self.left, self.inputs) = (left, now);
        }
        if endpoint.transport.stats(conn).is_some_and(|stats| stats.rx_payload > self.payload_before) {
            self.output = Some(before);
        }
    }

    fn completed(&mut self, received: bool, before: Mark, now: Mark) {
        if received {
            self.output.get_or_insert(before);
        } else if self.output.is_none() {
            self.inputs = now;
        }
        self.end = now;
    }
}

fn packets_left(endpoint: &Endpoint, conn: ConnId) -> u64 {
    endpoint.transport.stats(conn).map_or(0, new_packets)
}

/// Request packets that have left, repetitions aside.
fn new_packets(stats: &ConnStats) -> u64 {
    stats.tx_requests.packets - stats.counters.retransmitted
}

/// A ping under way.
#[derive(Debug, Default)]
struct Ping {
    wake: Arc<Wake>,
    /// How it ended: the time that the answer took, or that none came.
    outcome: Option<Option<Duration>>,
}

/// Results of address resolution. One thread requests them, before there are calls.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    pub(crate) wake: Arc<Wake>,
    /// An address that was probed, and the MAC address that uses it.
    pub(crate) probed: Option<(Ipv4Addr, Option<MacAddr>)>,
    /// The Ethernet address that was asked for, or that no host replied.
    pub(crate) resolved: Option<Option<MacAddr>>,
}

/// Everything that has happened and was not asked for yet.
#[derive(Default)]
pub(crate) struct Inbox {
    sessions: FxHashMap<ConnId, Session>,
    /// When to look at the calls that run, each by its context. A slot says whether it is here.
    looks: BTreeSet<(nacelle_roce::Instant, ConnId, u8)>,
    pub(crate) notices: Notices,
    pings: FxHashMap<u16, Ping>,
    pub(crate) addresses: Addresses,
}

impl Inbox {
    /// Files what happens on `conn` from now on.
    pub(crate) fn open(&mut self, conn: ConnId) {
        self.sessions.insert(conn, Session { slots: vec![Slot::default()], ..Session::default() });
    }

    pub(crate) fn session(&mut self, conn: ConnId) -> &mut Session {
        self.sessions.entry(conn).or_default()
    }

    /// Drops the events of `conn` from now on.
    pub(crate) fn forget(&mut self, transport: &mut Transport, conn: ConnId) {
        let Some(Session { buffers, slots, .. }) = self.sessions.remove(&conn) else { return };
        if let Some(buffers) = buffers {
            transport.deregister(buffers.id);
        }
        for (context, slot) in (0..).zip(slots) {
            if let Some(at) = slot.look_at {
                self.looks.remove(&(at, conn, context));
            }
        }
    }

    /// A call runs on a context from now on.
    pub(crate) fn begin(&mut self, transport: &mut Transport, conn: ConnId, context: u8, run: Run, timing: Timing) {
        transport.watch(conn);
        let slot = self.session(conn).slot(context);
        (slot.run, slot.timing) = (Some(run), Some(timing));
        self.plan_look(conn, context);
    }

    /// Has the call on a context looked at in time. What is planned already and is not too late stays: so calls that follow each other
    /// closely cost nothing here.
    fn plan_look(&mut self, conn: ConnId, context: u8) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        let Some(slot) = session.slots.get_mut(usize::from(context)) else { return };
        let Some(at) = slot.run.as_ref().map(Run::look_at) else { return };
        if slot.look_at.is_some_and(|planned| planned <= at) {
            return;
        }
        if let Some(planned) = slot.look_at.replace(at) {
            self.looks.remove(&(planned, conn, context));
        }
        self.looks.insert((at, conn, context));
    }

    /// What there is to say of the call on a context.
    pub(crate) fn outcome(&mut self, conn: ConnId, context: u8, now: nacelle_roce::Instant) -> Option<Outcome> {
        let session = self.session(conn);
        session.slots.get_mut(usize::from(context))?.outcome(session.end.as_ref(), now)
    }

    /// The call on a context has ended, and its outcome was taken.
    pub(crate) fn finish(&mut self, conn: ConnId, context: u8) -> Option<Run> {
        let session = self.session(conn);
        session.take_answer(context, |_| ());
        let slot = session.slot(context);
        (slot.waker, slot.received) = (None, None);
        slot.run.take()
    }

    /// Whose a context is.
    pub(crate) fn owner(&self, conn: ConnId, context: u8) -> Option<u64> {
        self.sessions.get(&conn)?.slots.get(usize::from(context))?.owner
    }

    /// The owner of a context leaves it, and these regions: they stay until an outstanding request was answered.
    pub(crate) fn release(&mut self, endpoint: &mut Endpoint, conn: ConnId, context: u8, left: Vec<RegionId>) {
        let session = self.sessions.entry(conn).or_default();
        let ended = session.end.is_some();
        let slot = session.slot(context);
        (slot.on_finish, slot.waker) = (None, None);
        slot.abandoned = Some(left);
        slot.note_end(ended, endpoint, &mut self.notices);
    }

    /// Has something done on a context when its time has come: now, if it has.
    pub(crate) fn after(&mut self, endpoint: &mut Endpoint, conn: ConnId, context: u8, after: After, then: Then) {
        let session = self.sessions.entry(conn).or_default();
        let ended = session.end.is_some();
        let slot = session.slot(context);
        slot.then.push((after, then));
        slot.note_end(ended, endpoint, &mut self.notices);
    }

    /// When to look at the running calls, at the latest.
    pub(crate) fn next_look(&self) -> Option<nacelle_roce::Instant> {
        self.looks.first().map(|(at, ..)| *at)
    }

    /// Looks at the calls whose time it is: whether anything has moved, and whether their deadline has passed.
    pub(crate) fn look(&mut self, endpoint: &mut Endpoint, now: nacelle_roce::Instant) {
        while let Some((_, conn, context)) = self.looks.first().copied().filter(|(at, ..)| *at <= now) {
            self.looks.pop_first();
            let Some(session) = self.sessions.get_mut(&conn) else { continue };
            let Some(slot) = session.slots.get_mut(usize::from(context)) else { continue };
            slot.look_at = None;
            let (step, sends) = (slot.step(), slot.sends);
            // There may be none any more, or the next.
            let due = slot.run.as_mut().filter(|run| now >= run.look_at());
            let is_late = due.as_ref().is_some_and(|run| run.is_late(now));
            if due.is_some_and(|run| run.look(endpoint, conn, sends, step, now)) {
                slot.tell(&mut self.notices);
                slot.note_end(false, endpoint, &mut self.notices);
            }
            if is_late {
                self.cancel(endpoint, now, conn, context, Cause::Deadline);
            }
            self.plan_look(conn, context);
        }
    }

    /// Makes the call on a context end, if one runs: by the protocol if it has a way, else by ending the connection.
    pub(crate) fn cancel(
        &mut self,
        endpoint: &mut Endpoint,
        now: nacelle_roce::Instant,
        conn: ConnId,
        context: u8,
        cause: Cause,
    ) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        let (ended, has_contexts) = (session.end.is_some(), session.has_contexts());
        let Some(slot) = session.slots.get_mut(usize::from(context)) else { return };
        let Some(run) = slot.run.as_mut().filter(|run| run.cause.is_none() && !ended) else { return };
        if slot.received.is_some() {
            return; // its reply has come
        }
        run.cause = Some(cause);
        if has_contexts {
            let imm = Some(Request::Cancel(Context(context)).to_imm());
            let request = SendWr { op: SendOp::Send { imm }, ..SendWr::send(u64::from(context), Vec::new()) };
            if endpoint.transport.post_send(conn, request).is_ok() {
                slot.sends += 1;
                return;
            }
        }
        self.end(endpoint, now, conn, End::Closed("it was ended to end a call, which this device cannot do alone"));
    }

    /// Ends a connection from this side.
    pub(crate) fn end(&mut self, endpoint: &mut Endpoint, now: nacelle_roce::Instant, conn: ConnId, end: End) {
        endpoint.transport.disconnect(now, conn);
        self.note(endpoint, conn, |session| session.ended(end));
    }

    /// The link is broken: all connections have ended.
    pub(crate) fn break_all(&mut self, endpoint: &mut Endpoint, what: &str) {
        for session in self.sessions.values_mut() {
            session.ended(End::Link(what.to_owned()));
            session.tell(None, endpoint, &mut self.notices);
        }
    }

    /// A number for a ping that no outstanding one has: `wanted`, or the next free one.
    pub(crate) fn open_ping(&mut self, wanted: u16) -> (u16, Arc<Wake>) {
        let mut numbers = (0..=u16::MAX).map(|offset| wanted.wrapping_add(offset));
        let number = numbers.find(|number| !self.pings.contains_key(number)).unwrap_or(wanted);
        (number, Arc::clone(&self.pings.entry(number).or_default().wake))
    }

    /// How a ping has ended, if it has.
    pub(crate) fn ping_outcome(&self, number: u16) -> Option<Option<Duration>> {
        self.pings.get(&number)?.outcome
    }

    /// Gives the number of a ping back.
    pub(crate) fn close_ping(&mut self, number: u16) {
        self.pings.remove(&number);
    }

    /// Takes all events of the endpoint, after a frame that came or left at `now`, which is `at` to the endpoint.
    pub(crate) fn take(&mut self, endpoint: &mut Endpoint, at: nacelle_roce::Instant, before: Mark, now: Mark) {
        // Nothing is to be noted of the steps of calls where no frame has passed.
        if before.traffic != now.traffic {
            self.note_steps(endpoint, before, now);
        }
        while let Some(event) = endpoint.transport.poll_event() {
            self.file(event, endpoint, at, before, now);
        }
        while let Some(event) = endpoint.ethernet().and_then(Interface::poll_event) {
            self.file_network(event);
        }
    }

    /// Notes what a frame means to the steps of the calls that wait for their first output.
    fn note_steps(&mut self, endpoint: &mut Endpoint, before: Mark, now: Mark) {
        while let Some(conn) = endpoint.transport.poll_watched() {
            if self.sessions.get_mut(&conn).is_some_and(|session| session.note_frame(endpoint, conn, before, now)) {
                endpoint.transport.watch(conn);
            }
        }
    }

    fn file(&mut self, event: Event, endpoint: &mut Endpoint, at: nacelle_roce::Instant, before: Mark, now: Mark) {
        match event {
            Event::Connected { conn, private_data } => self.note(endpoint, conn, |session| {
                session.connected = true;
                session.private_data = private_data;
                None
            }),
            Event::ConnectFailed { conn, reason } => {
                let why = match &reason {
                    ConnectFailure::Rejected { private_data, .. } => Why::find(private_data).ok(),
                    _ => None,
                };
                self.note(endpoint, conn, |session| session.ended(why.map_or(End::Failed(reason), End::NotAdmitted)));
            }
            Event::Disconnected { conn, reason, private_data, .. } => {
                let end = match (reason, Why::find(&private_data)) {
                    (DisconnectReason::Remote, Ok(why)) => End::AdmissionEnded(why),
                    (reason, _) => End::Disconnected(reason),
                };
                self.note(endpoint, conn, |session| session.ended(end));
            }
            Event::Completion(completion) => {
                let conn = completion.conn;
                let mut answered = None;
                self.note(endpoint, conn, |session| {
                    if completion.opcode.is_recv() {
                        session.answered_at = Some(at);
                    }
                    let context = session.complete(completion, before, now);
                    answered = context.filter(|_| completion.opcode.is_recv());
                    context
                });
                // The device answers what it has received: all of it need not be acknowledged too.
                let slot =
                    answered.and_then(|context| self.sessions.get_mut(&conn)?.slots.get_mut(usize::from(context)));
                if let Some(mark) = slot.and_then(|slot| slot.mark.take()) {
                    endpoint.transport.confirm(at, conn, mark);
                }
                // What cannot be on this connection ends it.
                if let Some(Session { end: Some(End::Broken(_)), .. }) = self.sessions.get(&conn) {
                    endpoint.transport.disconnect(at, conn);
                }
            }
            // A caller does not listen and creates no queue pairs without connection management.
            Event::ConnectRequest { .. } | Event::QpFatal { .. } | Event::SendQueueDrained { .. } => {}
        }
    }

    /// Notes what has happened on a connection, and tells who waits for it: on the context that `change` returns, or on all.
    fn note(&mut self, endpoint: &mut Endpoint, conn: ConnId, change: impl FnOnce(&mut Session) -> Option<u8>) {
        if let Some(session) = self.sessions.get_mut(&conn) {
            let context = change(session);
            session.tell(context, endpoint, &mut self.notices);
        }
    }

    fn file_network(&mut self, event: NetworkEvent) {
        match event {
            NetworkEvent::EchoReply { sequence, rtt, .. } => self.end_ping(sequence, Some(rtt)),
            NetworkEvent::EchoTimeout { sequence, .. } => self.end_ping(sequence, None),
            NetworkEvent::AddressProbed { ip, owner } => {
                self.addresses.probed = Some((ip, owner));
                self.addresses.wake.notify_one();
            }
            NetworkEvent::Resolved { mac, .. } => self.end_resolution(Some(mac)),
            // A ping to such an address ends by its own timeout.
            NetworkEvent::Unreachable { .. } => self.end_resolution(None),
        }
    }

    fn end_ping(&mut self, number: u16, outcome: Option<Duration>) {
        if let Some(ping) = self.pings.get_mut(&number) {
            ping.outcome = Some(outcome);
            ping.wake.notify_one();
        }
    }

    fn end_resolution(&mut self, outcome: Option<MacAddr>) {
        self.addresses.resolved = Some(outcome);
        self.addresses.wake.notify_one();
    }
}

impl Session {
    /// Notes what a frame of this connection means to the steps of its calls. Returns whether there are calls that wait for their first
    /// output still.
    fn note_frame(&mut self, endpoint: &Endpoint, conn: ConnId, before: Mark, now: Mark) -> bool {
        let mut waits = false;
        for slot in self.slots.iter_mut().filter(|slot| slot.run.is_some()) {
            if let Some(timing) = slot.timing.as_mut().filter(|timing| timing.output.is_none()) {
                timing.note(endpoint, conn, slot.sends, before, now);
                waits |= timing.output.is_none();
            }
        }
        waits
    }

    /// When the device can take what follows its last answer, if it needs time for that.
    pub(crate) fn ready_at(&self) -> Option<nacelle_roce::Instant> {
        self.answered_at.filter(|_| !self.gap.is_zero()).map(|at| at + self.ack_delay + self.gap)
    }

    pub(crate) fn has_contexts(&self) -> bool {
        self.agreement.extensions.contains(Extensions::CONTEXTS)
    }

    /// The connection is ready, and both sides have agreed on this.
    pub(crate) fn agree(&mut self, agreement: Agreement) {
        self.agreement = agreement;
        let contexts = agreement.contexts.max(1);
        self.slots.resize_with(usize::from(contexts), Slot::default);
        self.free = (0..contexts).rev().collect();
    }

    /// What a context holds.
    pub(crate) fn slot(&mut self, context: u8) -> &mut Slot {
        let index = usize::from(context);
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, Slot::default);
        }
        &mut self.slots[index]
    }

    /// Takes a free context.
    pub(crate) fn take_context(&mut self) -> Option<u8> {
        let index = self.slots.iter().position(|slot| slot.owner.is_none())?;
        let slot = &mut self.slots[index];
        slot.owners += 1;
        slot.owner = Some(slot.owners);
        u8::try_from(index).ok()
    }

    /// Contexts that no call has.
    pub(crate) fn free_contexts(&self) -> usize {
        self.slots.iter().filter(|slot| slot.owner.is_none()).count()
    }

    /// Posts a receive for the answer to a request that is about to be made, unless one is posted for it.
    pub(crate) fn expect_answer(&mut self, transport: &mut Transport, conn: ConnId) -> Result<(), ExpectError> {
        let outstanding = self.slots.iter().filter(|slot| slot.awaits).count();
        if self.receives > outstanding {
            return Ok(());
        }
        let length = self.message_len();
        let buffers = match self.buffers {
            Some(buffers) => buffers,
            None => {
                let memory = Memory::zeroed(length * self.slots.len());
                *self.buffers.insert(transport.register(memory, false, conn)?)
            }
        };
        // There are as many as contexts, and each has one request at a time.
        let Some(&buffer) = self.free.last() else { return Ok(()) };
        let slice = Some(buffers.slice(usize::from(buffer) * length, length));
        transport.post_recv(conn, RecvWr { id: u64::from(buffer), slice })?;
        self.free.pop();
        self.receives += 1;
        Ok(())
    }

    /// The longest message that the device may send, in bytes.
    fn message_len(&self) -> usize {
        if self.agreement.extensions.contains(Extensions::LONG_SET_UP) { calls::MAX_MESSAGE } else { mrsp::MAX_MESSAGE }
    }

    /// Takes the answer of a context, and reads its place if it is a message.
    pub(crate) fn take_answer<T>(
        &mut self,
        context: u8,
        read: impl FnOnce(nacelle_roce::RegionSlice) -> T,
    ) -> Option<(Completion, Option<T>)> {
        let length = self.message_len();
        let completion = self.slot(context).received.take()?;
        let buffers = self.buffers.filter(|_| completion.opcode == WcOpcode::Recv);
        let text = buffers.map(|all| read(all.slice(completion.id as usize * length, completion.byte_len)));
        if text.is_some() {
            self.free.push(completion.id as u8);
        }
        Some((completion, text))
    }

    /// The first end is the one that counts.
    fn ended(&mut self, end: End) -> Option<u8> {
        self.end.get_or_insert(end);
        None
    }

    /// Tells who waits on a context, or on any.
    fn tell(&mut self, context: Option<u8>, endpoint: &mut Endpoint, notices: &mut Notices) {
        let ended = self.end.is_some();
        let all = match context {
            Some(context) => usize::from(context)..usize::from(context) + 1,
            None => 0..self.slots.len(),
        };
        for slot in &mut self.slots[all] {
            slot.wake.notify_all();
            slot.note_end(ended, endpoint, notices);
        }
    }

    /// A work request has completed. Returns the context that it belongs to; `None` if it matters to all.
    fn complete(&mut self, completion: Completion, before: Mark, now: Mark) -> Option<u8> {
        match completion.status {
            WcStatus::Success if completion.opcode.is_recv() => self.answered(completion, before, now),
            WcStatus::Success => {
                let slot = self.slots.get_mut(completion.id as usize)?;
                slot.sends = slot.sends.saturating_sub(1);
                slot.completed += 1;
                if let Some(timing) = &mut slot.timing {
                    timing.completed(false, before, now);
                }
                Some(completion.id as u8)
            }
            // What the end of the connection flushed says nothing that the end itself does not say better.
            WcStatus::WrFlushErr => None,
            status => self.ended(End::Completion(status)),
        }
    }

    fn answered(&mut self, completion: Completion, before: Mark, now: Mark) -> Option<u8> {
        self.receives -= 1;
        let is_message = completion.opcode == WcOpcode::Recv;
        if !is_message {
            self.free.push(completion.id as u8);
        }
        let context = match completion.imm {
            Some(imm) if self.has_contexts() => Request::context_of(imm).0,
            _ => 0,
        };
        match self.slots.get_mut(usize::from(context)).filter(|slot| slot.awaits) {
            Some(slot) => {
                slot.awaits = false;
                if is_message && slot.abandoned.is_some() {
                    self.free.push(completion.id as u8);
                } else {
                    slot.received = Some(completion);
                }
                if let Some(timing) = &mut slot.timing {
                    timing.completed(true, before, now);
                }
                Some(context)
            }
            None => self.ended(End::Broken(format!("it answered a request that context {context} has not made"))),
        }
    }
}

/// Why no answer can be received.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExpectError {
    #[error(transparent)]
    Post(#[from] PostError),
    #[error(transparent)]
    Register(#[from] RegisterError),
}

impl End {
    /// What the end of a connection to the device at `ip` means to a call in `step`.
    pub(crate) fn error(&self, ip: IpAddr, step: Step, waited: Duration) -> Error {
        let status = match self {
            Self::Broken(what) => return Error::Protocol { ip, step, what: what.clone() },
            Self::Closed(why) => return Error::Closed { ip, why },
            Self::Link(what) => return Error::lost(ip, step, format!("the link is broken: {what}")),
            Self::Failed(ConnectFailure::Unreachable) => return Error::Unreachable { ip, waited },
            Self::Failed(ConnectFailure::Timeout) => return Error::Timeout { ip, step, waited, mtu: None },
            Self::NotAdmitted(why) => return Error::NotAdmitted { ip, why: *why },
            Self::AdmissionEnded(why) => return Error::AdmissionEnded { ip, step, why: *why },
            Self::Failed(ConnectFailure::Rejected { reason, .. }) => {
                return Error::Refused { ip, reason: reason.0, text: reason.text().to_owned() };
            }
            Self::Failed(ConnectFailure::BadReply) => {
                return Error::Protocol { ip, step, what: "its reply to the connection request is invalid".into() };
            }
            Self::Failed(ConnectFailure::Aborted) | Self::Disconnected(DisconnectReason::Local) => {
                return Error::lost(ip, step, "the connection was closed from this side");
            }
            Self::Disconnected(DisconnectReason::Remote) => {
                return Error::lost(ip, step, "it closed the connection");
            }
            Self::Disconnected(DisconnectReason::PeerGone) => {
                return Error::lost(ip, step, "its process has ended");
            }
            Self::Disconnected(DisconnectReason::Error(status)) | Self::Completion(status) => *status,
        };
        match status {
            WcStatus::RetryExceeded => {
                Error::lost(ip, step, "it no longer acknowledges (transport retry count exceeded)")
            }
            WcStatus::RnrRetryExceeded => {
                Error::lost(ip, step, "it was never ready to receive (RNR retry count exceeded)")
            }
            WcStatus::LocQpOpErr | WcStatus::LocAccessErr | WcStatus::LocLenErr => {
                Error::Protocol { ip, step, what: status.to_string() }
            }
            _ => Error::Transport { ip, step, detail: status.to_string() },
        }
    }
}

/// The end of a wait that may take `time` from now.
pub(crate) fn deadline_in(time: Duration) -> Instant {
    let now = Instant::now();
    // A century is as good as never, where the clock does not reach further.
    now.checked_add(time).unwrap_or_else(|| now + Duration::from_secs(3_000_000_000))
}

/// As long as the clock reaches, for a wait that something else bounds.
pub(crate) fn far() -> Instant {
    deadline_in(Duration::MAX)
}
