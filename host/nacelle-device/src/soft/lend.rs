// SPDX-License-Identifier: Apache-2.0
//! Regions of a call: the function has them alone, from its start to its return.
//!
//! A region that is lent keeps its key; what its caller asks of it meanwhile is answered by an RNR NAK. A caller that is gone,
//! or a context that has had the result of a function that did not return, loses its regions; their memory counts as held, for
//! its holder too, until the function returns.

use nacelle_roce::memory::Memory;

use super::SoftEngine;
use super::holdings::Holder;
use super::session::At;
use super::workers::CallId;

/// Memory that a function has and its caller has not any more.
pub(super) struct Orphaned {
    pub(super) holder: Holder,
    pub(super) bytes: u64,
}

impl SoftEngine {
    /// Takes the regions of the part of a call that is to run. `None` if they are not all there.
    pub(super) fn lend_regions(&mut self, at: At) -> Option<Vec<Memory>> {
        let state = self.sessions.context(at)?;
        let transport = &mut self.endpoint.transport;
        let held = &state.regions[state.call.as_ref()?.lent.clone()];
        let mut regions = std::mem::take(&mut self.spare);
        for held in held {
            regions.push(transport.lend(held.here.id)?);
        }
        Some(regions)
    }

    /// Gives a context the regions back that its call had.
    pub(super) fn return_regions(&mut self, at: At, mut regions: Vec<Memory>) {
        let Some(state) = self.sessions.context(at) else { return };
        let Some(call) = &state.call else { return };
        for (held, memory) in state.regions[call.lent.clone()].iter().zip(regions.drain(..)) {
            // They are there: a context that has lost its regions has no call.
            let _ = self.endpoint.transport.give_back(held.here.id, memory);
        }
        self.spare = regions;
    }

    /// The caller of a call has gone: its function is asked to return.
    pub(super) fn abandon_call(&mut self, at: At) {
        let Some(call) = self.sessions.context(at).and_then(|state| state.call.as_ref()) else { return };
        if let Some(id) = call.id {
            match self.workers.cancel(id, at.conn, self.turn) {
                Some(regions) => self.return_regions(at, regions),
                None => self.orphan(at, id),
            }
        }
        self.counters.calls_failed += 1;
        self.forget_call(at);
    }

    /// The regions of a context are no longer its own: their keys are invalid. What its function has comes back with the call,
    /// the rest is freed.
    pub(super) fn orphan(&mut self, at: At, call: CallId) {
        let Some(session) = self.sessions.0.get_mut(&at.conn) else { return };
        let holder = session.holder();
        let Some(state) = session.contexts.get_mut(usize::from(at.context.0)) else { return };
        let mut kept = std::mem::take(&mut state.bytes);
        for held in &state.regions {
            if let Some(memory) = self.endpoint.transport.deregister(held.here.id) {
                let bytes = if held.shared { 0 } else { memory.len() as u64 };
                kept -= bytes;
                self.held.give_back(holder, bytes);
                self.memory.discard(memory);
            }
        }
        self.orphaned.insert(call, Orphaned { holder, bytes: kept });
    }

    /// Frees memory whose function has returned at last.
    pub(super) fn free_orphaned(&mut self, call: CallId, regions: Vec<Memory>) {
        if let Some(Orphaned { holder, bytes }) = self.orphaned.remove(&call) {
            self.held.give_back(holder, bytes);
        }
        regions.into_iter().for_each(|memory| self.memory.discard(memory));
    }
}
