// SPDX-License-Identifier: Apache-2.0
//! Callers: what each holds, on each of its contexts.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use nacelle_manage::event_log::Closed;
use nacelle_roce::wire::cm::RejReason;
use nacelle_roce::{Access, ConnId, RecvWr, Region, SendMark, SendWr};
use nacelle_wire::admission::{Token, Why};
use nacelle_wire::calls::{Context, LongRegion, Step};
use nacelle_wire::extensions::{Agreement, Extensions};
use nacelle_wire::mrsp::{AarRegion, RegionFlags, WindowNumber};
use nacelle_wire::{RemoteAddr, Rkey};
use rustc_hash::FxHashMap;

use super::SoftEngine;
use super::calls::Call;
use super::event_log::Party;
use super::holdings::Holder;
use super::memory::OrderId;
use super::requests::Arrival;
use super::setup::{MAX_REGIONS, Pending};
use crate::kernel::Run;

/// A receive for messages, in bytes.
pub(super) const RECEIVE: usize = 1024;
/// Receives of one context: for the current request, and for a cancel or the next.
pub(super) const RECEIVES: usize = 2;

/// Number of the requests that make an answer: the last one's completion ends it.
const LAST: u64 = 1;

/// A context of a connection. Without the extension a connection is its only context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    pub(super) conn: ConnId,
    pub(super) context: Context,
}

/// A region that a caller asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) flags: RegionFlags,
    pub(super) address: RemoteAddr,
    pub(super) rkey: Rkey,
    pub(super) size: u64,
    /// The window that it is to be a part of.
    pub(super) window: Option<WindowNumber>,
}

impl Asked {
    /// Whether it is scratch memory.
    pub(super) fn is_internal(&self) -> bool {
        self.flags.contains(RegionFlags::INTERNAL)
    }

    /// Whether it is returned: it is an output, no scratch memory, and not a window's, which the caller reads by itself.
    pub(super) fn is_returned(&self) -> bool {
        self.flags.contains(RegionFlags::OUTPUT) && !self.is_internal() && self.window.is_none()
    }
}

impl From<&AarRegion> for Asked {
    fn from(region: &AarRegion) -> Self {
        let (flags, size, window) = (region.flags(), u64::from(region.size()), region.window());
        Self { flags, address: region.address(), rkey: region.rkey(), size, window }
    }
}

impl From<&LongRegion> for Asked {
    fn from(region: &LongRegion) -> Self {
        let (flags, size, window) = (region.flags(), region.size(), region.window());
        Self { flags, address: region.address(), rkey: region.rkey(), size, window }
    }
}

/// A region of a caller, and its counterpart here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) asked: Asked,
    pub(super) here: Region,
    /// It is memory of the program, which does not count as the caller's.
    pub(super) shared: bool,
}

/// State of one context. It does one thing at a time: until a call has its result, and an answer is acknowledged, its regions
/// stay unchanged, since they may have to be retransmitted.
#[derive(Default)]
pub(super) struct ContextState {
    pub(super) regions: Vec<Held>,
    pub(super) bytes: u64,
    /// What calls of this set-up may take.
    pub(super) deadline: Option<Duration>,
    /// The chain of this set-up.
    pub(super) steps: Vec<Step>,
    /// What tells the owner of the window that the region is a part of.
    pub(super) window: Option<Arc<Run>>,
    pub(super) answering: bool,
    /// The end of the last answer in the send queue.
    pub(super) answer: Option<SendMark>,
    /// What it has asked for, until there is memory for it.
    pub(super) set_up: Option<Pending>,
    /// Its call, from its start to its result.
    pub(super) call: Option<Call>,
    pub(super) arrivals: VecDeque<Arrival>,
}

/// State of one connection.
pub(super) struct Session {
    pub(super) party: Party,
    /// The entry by which it was admitted.
    pub(super) by: Option<u8>,
    pub(super) messages: Region,
    pub(super) agreed: Agreement,
    pub(super) contexts: Vec<ContextState>,
}

impl Session {
    /// With whom its memory counts.
    pub(super) fn holder(&self) -> Holder {
        self.by.map_or(Holder::Peer(self.party.peer), Holder::Entry)
    }

    /// Whether immediates name contexts.
    pub(super) fn has_contexts(&self) -> bool {
        self.agreed.extensions.contains(Extensions::CONTEXTS)
    }

    /// Regions that one context may have, internal ones included.
    pub(super) fn max_regions(&self) -> usize {
        MAX_REGIONS / self.contexts.len()
    }
}

/// All callers.
#[derive(Default)]
pub(super) struct Sessions(pub(super) FxHashMap<ConnId, Session>);

impl Sessions {
    pub(super) fn context(&self, at: At) -> Option<&ContextState> {
        self.0.get(&at.conn)?.contexts.get(usize::from(at.context.0))
    }

    pub(super) fn context_mut(&mut self, at: At) -> Option<&mut ContextState> {
        self.0.get_mut(&at.conn)?.contexts.get_mut(usize::from(at.context.0))
    }

    /// The context whose set-up waits for this memory, and what it waits with.
    pub(super) fn ordered(&mut self, order: OrderId) -> Option<(At, Pending)> {
        self.0.iter_mut().find_map(|(&conn, session)| {
            (0..).zip(&mut session.contexts).find_map(|(context, state)| {
                let pending = state.set_up.take_if(|pending| pending.waits_for(order))?;
                Some((At { conn, context: Context(context) }, pending))
            })
        })
    }
}

impl SoftEngine {
    pub(super) fn admit(&mut self, conn: ConnId, peer: IpAddr, token: Option<Token>, offered: Agreement) {
        match self.admission.judge(token, peer) {
            Ok(by) => {
                if self.open(conn, peer, by, offered).is_none() {
                    self.log_refused(peer, RejReason::NO_RESOURCES, None);
                    // It is gone already if this fails too.
                    let _ = self.endpoint.transport.reject_with(conn, RejReason::NO_RESOURCES, &[]);
                }
            }
            Err(why) => {
                let (reason, count) = match why {
                    Why::NoToken => (RejReason::CONSUMER, &mut self.counters.refused_no_token),
                    Why::Connections => (RejReason::NO_RESOURCES, &mut self.counters.refused_per_entry),
                    Why::Unknown | Why::Revoked | Why::TimeOver => {
                        (RejReason::CONSUMER, &mut self.counters.refused_token)
                    }
                };
                *count += 1;
                self.log_refused(peer, reason, Some(why));
                let _ = self.endpoint.transport.reject_with(conn, reason, &why.note());
            }
        }
    }

    /// Accepts a caller. `None` if there is no room.
    fn open(&mut self, conn: ConnId, peer: IpAddr, by: Option<u8>, offered: Agreement) -> Option<()> {
        let options = self.accept_options();
        let agreed = options.agreement.common(offered);
        let contexts = usize::from(agreed.contexts).max(1);
        let receives = contexts * RECEIVES;
        let messages = self.endpoint.transport.register(vec![0; receives * RECEIVE], Access::LOCAL, Some(conn)).ok()?;
        let contexts = (0..contexts).map(|_| ContextState::default()).collect();
        let qpn = self.endpoint.transport.connection(conn).map_or(0, |info| info.local_qpn.get());
        let party = Party { peer, qpn };
        self.sessions.0.insert(conn, Session { party, by, messages, agreed, contexts });
        self.count_caller(by, true);
        // Ready before the answer: the caller's first message may follow it at once.
        let begun = (0..receives as u64)
            .try_for_each(|receive| self.post_receive(conn, messages, receive))
            .and_then(|()| self.endpoint.transport.accept(self.now(), conn, options).ok());
        match begun {
            Some(()) => self.log_opened(party, by),
            None => self.release(conn),
        }
        // A caller that connects to ask learns how it is now.
        self.tell_load(true);
        begun
    }

    pub(super) fn post_receive(&mut self, conn: ConnId, messages: Region, receive: u64) -> Option<()> {
        let slice = messages.slice(receive as usize * RECEIVE, RECEIVE);
        self.endpoint.transport.post_recv(conn, RecvWr { id: receive, slice: Some(slice) }).ok()
    }

    /// Releases all that a caller holds, and cancels its calls.
    pub(super) fn release(&mut self, conn: ConnId) {
        let contexts = self.sessions.0.get(&conn).map_or(0, |session| session.contexts.len());
        for context in (0..contexts as u8).map(Context) {
            let at = At { conn, context };
            self.abandon_call(at);
            self.release_regions(at);
        }
        if let Some(session) = self.sessions.0.remove(&conn) {
            self.endpoint.transport.deregister(session.messages.id);
            self.count_caller(session.by, false);
        }
    }

    pub(super) fn release_regions(&mut self, at: At) {
        let Some(session) = self.sessions.0.get_mut(&at.conn) else { return };
        let holder = session.holder();
        let Some(state) = session.contexts.get_mut(usize::from(at.context.0)) else { return };
        self.held.give_back(holder, std::mem::take(&mut state.bytes));
        state.window = None;
        for held in state.regions.drain(..) {
            if let Some(memory) = self.endpoint.transport.deregister(held.here.id) {
                self.memory.discard(memory);
            }
        }
    }

    /// Ends the connection of a caller that does not keep to the rules.
    pub(super) fn expel(&mut self, conn: ConnId) {
        self.counters.callers_expelled += 1;
        if let Some(session) = self.sessions.0.get(&conn) {
            self.log_closed(session.party, Closed::Device);
        }
        self.release(conn);
        self.endpoint.transport.disconnect(self.now(), conn);
    }

    /// Posts a request of an answer. `last` ends it.
    pub(super) fn answer(&mut self, at: At, last: bool, mut request: SendWr) {
        request.id = u64::from(at.context.0) << 1 | u64::from(last);
        if last && let Some(state) = self.sessions.context_mut(at) {
            state.answering = true;
        }
        let _gone_if_not = self.endpoint.transport.post_send(at.conn, request);
        if last && let Some(state) = self.sessions.context_mut(at) {
            state.answer = self.endpoint.transport.send_mark(at.conn);
        }
    }

    /// A caller requests something in a context: so it has received the last answer there, if it knows that this is taken for the
    /// acknowledgement.
    pub(super) fn requested(&mut self, at: At) {
        if self.endpoint.transport.acknowledges_late(at.conn)
            && let Some(state) = self.sessions.context_mut(at).filter(|state| state.answering)
            && let Some(mark) = state.answer.take()
        {
            self.endpoint.transport.confirm(self.now(), at.conn, mark);
        }
    }

    /// A request of an answer is acknowledged.
    pub(super) fn answered(&mut self, conn: ConnId, id: u64) {
        let at = At { conn, context: Context((id >> 1) as u8) };
        if id & LAST != 0
            && let Some(state) = self.sessions.context_mut(at)
        {
            state.answering = false;
            self.go_on(at);
        }
    }
}
