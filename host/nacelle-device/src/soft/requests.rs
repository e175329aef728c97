// SPDX-License-Identifier: Apache-2.0
//! What arrives from callers: messages, starts and cancels, each for its context.

use std::time::Instant;

use nacelle_roce::ConnId;
use nacelle_wire::calls::{Context, Request};
use nacelle_wire::mrsp::{CallImm, FunctionCode, ReturnCode, reason};

use super::SoftEngine;
use super::session::{At, RECEIVE, RECEIVES};
use super::setup::{Wanted, parse_request};

/// A start, as it arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    /// None for the chain.
    pub(super) function: Option<FunctionCode>,
    /// What the immediate has for the function.
    pub(super) user: u32,
    pub(super) arrived: Instant,
    /// A cancel followed it.
    pub(super) cancelled: bool,
}

/// A message or start that has arrived from a caller. Its receive is posted again when it is handled.
#[derive(Debug, Clone, Copy)]
pub(super) enum Arrival {
    Message {
        receive: u64,
        length: usize,
        /// Its immediate names its context, and so must that of its answer.
        named: bool,
    },
    Start {
        receive: u64,
        start: Start,
    },
}

impl SoftEngine {
    /// A SEND has arrived.
    pub(super) fn send_arrived(&mut self, conn: ConnId, receive: u64, length: usize, imm: Option<u32>) {
        let Some(session) = self.sessions.0.get(&conn) else { return };
        // Without contexts an immediate has no meaning.
        let imm = imm.filter(|_| session.has_contexts());
        let at = At { conn, context: imm.map_or(Context::default(), Request::context_of) };
        if self.sessions.context(at).is_none() {
            return self.expel(conn);
        }
        match Request::of_send(imm) {
            Ok(Request::Message(_)) => {
                self.requested(at);
                self.keep(at, Arrival::Message { receive, length, named: imm.is_some() });
            }
            Ok(Request::Cancel(_)) => {
                self.take_again(conn, receive);
                self.cancel(at);
            }
            _ => self.ignore(conn, receive),
        }
    }

    /// A WRITE with immediate has arrived.
    pub(super) fn write_arrived(&mut self, conn: ConnId, receive: u64, imm: u32) {
        let Some(session) = self.sessions.0.get(&conn) else { return };
        let (context, asked) = if session.has_contexts() {
            (Request::context_of(imm), with_context(imm))
        } else {
            (Context::default(), without_context(imm))
        };
        let at = At { conn, context };
        self.requested(at);
        let Some(state) = self.sessions.context(at) else { return self.expel(conn) };
        // A start during a call is not kept, unless something waits that came before it.
        if state.call.is_some() && state.arrivals.is_empty() {
            return self.ignore(conn, receive);
        }
        match asked {
            Some(Asked::Start { function, user }) => {
                let start = Start { function, user, arrived: self.turn, cancelled: false };
                self.keep(at, Arrival::Start { receive, start });
            }
            Some(Asked::NoCall) => {
                self.take_again(conn, receive);
                self.counters.calls_failed += 1;
            }
            None => self.ignore(conn, receive),
        }
    }

    /// Keeps what has arrived until it is its turn. A connection without contexts has no receive left for more than there is
    /// room for; one with contexts ends.
    fn keep(&mut self, at: At, arrival: Arrival) {
        let Some(state) = self.sessions.context_mut(at) else { return };
        if state.arrivals.len() >= RECEIVES {
            return self.expel(at.conn);
        }
        state.arrivals.push_back(arrival);
        self.go_on(at);
    }

    fn ignore(&mut self, conn: ConnId, receive: u64) {
        self.counters.immediates_ignored += 1;
        self.take_again(conn, receive);
    }

    /// Posts a receive again.
    fn take_again(&mut self, conn: ConnId, receive: u64) {
        let Some(session) = self.sessions.0.get(&conn) else { return };
        let _gone_if_not = self.post_receive(conn, session.messages, receive);
    }

    /// Ends the newest start of a context: one that waits gets its result in its turn.
    fn cancel(&mut self, at: At) {
        let Some(state) = self.sessions.context_mut(at) else { return };
        let waiting = state.arrivals.iter_mut().rev().find_map(|arrival| match arrival {
            Arrival::Start { start, .. } => Some(start),
            Arrival::Message { .. } => None,
        });
        match waiting {
            Some(start) => start.cancelled = true,
            None => self.stop_call(at, ReturnCode::CANCELLED),
        }
    }

    /// The request in a message that has arrived, or the code of what is wrong with it.
    fn read_message(&self, conn: ConnId, receive: u64, length: usize) -> Result<Wanted, u8> {
        let session = self.sessions.0.get(&conn).ok_or(reason::MALFORMED)?;
        let memory = self.endpoint.transport.region(session.messages.id).ok_or(reason::MALFORMED)?;
        let mut message = [0; RECEIVE];
        let message = message.get_mut(..length).ok_or(reason::MALFORMED)?;
        memory.read(receive as usize * RECEIVE, message).map_err(|_| reason::MALFORMED)?;
        parse_request(message, session)
    }

    /// Handles what has arrived on a context, until a call runs or an answer is being sent.
    pub(super) fn go_on(&mut self, at: At) {
        while let Some(state) = self.sessions.context_mut(at)
            && !state.answering
            && state.set_up.is_none()
            && state.call.is_none()
            && let Some(arrival) = state.arrivals.front()
        {
            // A function has its regions alone. So what was to be read of them before it starts is read first.
            let transport = &self.endpoint.transport;
            let is_read = || state.regions.iter().any(|held| transport.is_being_read(at.conn, held.here.id));
            if matches!(arrival, Arrival::Start { .. }) && is_read() {
                if !self.delayed.contains(&at) {
                    self.delayed.push(at);
                }
                return;
            }
            let Some(arrival) = state.arrivals.pop_front() else { return };
            match arrival {
                Arrival::Message { receive, length, named } => {
                    let asked = self.read_message(at.conn, receive, length);
                    // Before the answer: the caller's next message may follow it at once.
                    self.take_again(at.conn, receive);
                    self.set_up(at, named, asked);
                }
                Arrival::Start { receive, start } => {
                    self.take_again(at.conn, receive);
                    self.call(at, start);
                }
            }
        }
    }
}

/// What the immediate of a WRITE asks for.
enum Asked {
    Start {
        /// None for the chain.
        function: Option<FunctionCode>,
        user: u32,
    },
    /// The caller gives its call up.
    NoCall,
}

/// What an immediate asks for that names a context.
fn with_context(imm: u32) -> Option<Asked> {
    match Request::of_write(imm).ok()? {
        Request::Start { function, user, .. } => Some(Asked::Start { function, user: u16::from_le_bytes(user).into() }),
        Request::HostError(_) => Some(Asked::NoCall),
        Request::Message(_) | Request::Cancel(_) => None,
    }
}

/// What an immediate asks for on a connection without contexts.
fn without_context(imm: u32) -> Option<Asked> {
    match CallImm::parse(imm).ok()? {
        CallImm::Start { function, user: [a, b, c] } => {
            Some(Asked::Start { function: Some(function), user: u32::from_le_bytes([a, b, c, 0]) })
        }
        CallImm::HostError => Some(Asked::NoCall),
    }
}
