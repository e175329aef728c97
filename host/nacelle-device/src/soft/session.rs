// SPDX-License-Identifier: Apache-2.0
//! Callers: what each holds, and the messages and starts that have arrived from it.

use std::collections::VecDeque;
use std::net::IpAddr;

use nacelle_roce::wire::cm::RejReason;
use nacelle_roce::{Access, ConnId, RecvWr, Region, SendWr};
use nacelle_wire::mrsp::{AarRegion, reason};

use super::buffer::Buffer;
use super::memory::OrderId;
use super::setup::parse_request;
use super::workers::CallId;
use super::{LAST, SoftEngine};

/// A receive for messages, in bytes.
const RECEIVE: usize = 1024;
/// Receives of one connection: for the current message, and for the next.
const RECEIVES: usize = 2;

/// A region of a caller, and its counterpart here.
pub(super) struct Held {
    pub(super) asked: AarRegion,
    pub(super) here: Region,
}

/// A message or start that has arrived from a caller. Its receive is posted again when it is handled.
pub(super) enum Arrival {
    Message { receive: u64, length: usize },
    Start { receive: u64, imm: u32 },
}

/// State of one connection. It does one thing at a time: until a call has its result, and an answer is acknowledged, its
/// regions stay unchanged, since they may have to be retransmitted.
pub(super) struct Session {
    pub(super) peer: IpAddr,
    pub(super) messages: Region,
    pub(super) regions: Vec<Held>,
    pub(super) bytes: u64,
    /// A function that did not return in time has its regions: nothing can be called until others are set up.
    pub(super) lost: bool,
    pub(super) answering: bool,
    /// What it has asked for, until there is memory for it.
    pub(super) set_up: Option<(OrderId, Vec<AarRegion>)>,
    /// Its call, from its start to its result.
    pub(super) call: Option<CallId>,
    pub(super) arrivals: VecDeque<Arrival>,
}

impl SoftEngine {
    pub(super) fn admit(&mut self, conn: ConnId, peer: IpAddr) {
        if self.open(conn, peer).is_none() {
            // It is gone already if this fails too.
            let _ = self.endpoint.transport.reject_with(conn, RejReason::NO_RESOURCES, &[]);
        }
    }

    /// Accepts a caller. `None` if there is no room.
    fn open(&mut self, conn: ConnId, peer: IpAddr) -> Option<()> {
        let messages = self.endpoint.transport.register(vec![0; RECEIVES * RECEIVE], Access::LOCAL, Some(conn)).ok()?;
        let session = Session {
            peer,
            messages,
            regions: Vec::new(),
            bytes: 0,
            lost: false,
            answering: false,
            set_up: None,
            call: None,
            arrivals: VecDeque::with_capacity(RECEIVES),
        };
        self.sessions.insert(conn, session);
        // Ready before the answer: the caller's first message may follow it at once.
        let begun = (0..RECEIVES as u64)
            .try_for_each(|receive| self.post_receive(conn, messages, receive))
            .and_then(|()| self.endpoint.transport.accept(self.now(), conn, self.accept_options()).ok());
        if begun.is_none() {
            self.release(conn);
        }
        begun
    }

    pub(super) fn post_receive(&mut self, conn: ConnId, messages: Region, receive: u64) -> Option<()> {
        let slice = messages.slice(receive as usize * RECEIVE, RECEIVE);
        self.endpoint.transport.post_recv(conn, RecvWr { id: receive, slice: Some(slice) }).ok()
    }

    /// Releases all that a caller holds, and cancels its call.
    pub(super) fn release(&mut self, conn: ConnId) {
        if let Some(call) = self.sessions.get_mut(&conn).and_then(|session| session.call.take()) {
            self.abandon(conn, call);
        }
        self.release_regions(conn);
        if let Some(session) = self.sessions.remove(&conn) {
            self.endpoint.transport.deregister(session.messages.id);
        }
    }

    pub(super) fn release_regions(&mut self, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        self.bytes -= std::mem::take(&mut session.bytes);
        session.lost = false;
        for held in session.regions.drain(..) {
            let memory = self.endpoint.transport.deregister(held.here.id);
            if let Some(Ok(buffer)) = memory.map(|memory| memory.into_owner::<Buffer>()) {
                self.memory.discard(buffer);
            }
        }
    }

    /// Handles what has arrived from a caller, until a call runs or an answer is being sent.
    pub(super) fn go_on(&mut self, conn: ConnId) {
        while let Some(session) = self.sessions.get_mut(&conn)
            && !session.answering
            && session.set_up.is_none()
            && session.call.is_none()
            && let Some(arrival) = session.arrivals.front()
        {
            // A function has its regions alone. So what was to be read of them before it starts is read first.
            let transport = &self.endpoint.transport;
            let is_read = || session.regions.iter().any(|held| transport.is_being_read(conn, held.here.id));
            if matches!(arrival, Arrival::Start { .. }) && is_read() {
                if !self.delayed.contains(&conn) {
                    self.delayed.push(conn);
                }
                return;
            }
            let Some(arrival) = session.arrivals.pop_front() else { return };
            let messages = session.messages;
            let (Arrival::Message { receive, .. } | Arrival::Start { receive, .. }) = arrival;
            let asked = match arrival {
                Arrival::Message { length, .. } => {
                    let offset = receive as usize * RECEIVE;
                    let mut message = [0; RECEIVE];
                    let message = message.get_mut(..length).unwrap_or_default();
                    let memory = self.endpoint.transport.region(messages.id);
                    let read = memory.map(|memory| memory.read(offset, message));
                    if matches!(read, Some(Ok(()))) { parse_request(message) } else { Err(reason::MALFORMED) }
                }
                Arrival::Start { .. } => Err(reason::MALFORMED),
            };
            // Before the answer: the caller's next message may follow it at once.
            let _gone_if_not = self.post_receive(conn, messages, receive);
            match arrival {
                Arrival::Message { .. } => self.set_up(conn, asked),
                Arrival::Start { imm, .. } => self.call(conn, imm),
            }
        }
    }

    /// Posts a request of an answer.
    pub(super) fn answer(&mut self, conn: ConnId, request: SendWr) {
        if request.id == LAST
            && let Some(session) = self.sessions.get_mut(&conn)
        {
            session.answering = true;
        }
        let _gone_if_not = self.endpoint.transport.post_send(conn, request);
    }
}
