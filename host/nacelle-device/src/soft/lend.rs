// SPDX-License-Identifier: Apache-2.0
//! Regions of a call: the function has them alone, from its start to its return.
//!
//! A region that is lent keeps its key; what its caller asks of it meanwhile is answered by an RNR NAK. A caller that is gone,
//! or that has had the result of a function that did not return, loses its regions; their memory counts as held, for its address
//! too, until the function returns.

use std::net::IpAddr;

use nacelle_roce::ConnId;
use nacelle_roce::memory::Memory;

use super::SoftEngine;
use super::buffer::Buffer;
use super::workers::CallId;

/// Memory that a function has and its caller has not any more.
pub(super) struct Orphaned {
    pub(super) peer: IpAddr,
    pub(super) bytes: u64,
}

impl SoftEngine {
    /// Takes the regions of a caller. `None` if they are not all there.
    pub(super) fn lend_regions(&mut self, conn: ConnId) -> Option<Vec<Buffer>> {
        let session = self.sessions.get(&conn)?;
        let transport = &mut self.endpoint.transport;
        let lent = session.regions.iter().map(|held| transport.lend(held.here.id)?.into_owner().ok());
        lent.collect()
    }

    /// Gives a caller its regions back.
    pub(super) fn return_regions(&mut self, conn: ConnId, regions: Vec<Buffer>) {
        let Some(session) = self.sessions.get(&conn) else { return };
        for (held, buffer) in session.regions.iter().zip(regions) {
            // They are there: a caller that has lost its regions has no call.
            let _ = self.endpoint.transport.give_back(held.here.id, Memory::new(buffer));
        }
    }

    /// The caller of a running call has gone: its function is asked to return.
    pub(super) fn abandon(&mut self, conn: ConnId, call: CallId) {
        self.calls.remove(&call);
        self.counters.calls_failed += 1;
        match self.workers.cancel(call) {
            Some(regions) => self.return_regions(conn, regions),
            None => self.orphan(conn, call),
        }
    }

    /// The regions of a caller are no longer its own: their keys are invalid, and their memory comes back with the call.
    pub(super) fn orphan(&mut self, conn: ConnId, call: CallId) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        session.lost = true;
        let orphaned = Orphaned { peer: session.peer, bytes: std::mem::take(&mut session.bytes) };
        self.orphaned.insert(call, orphaned);
        for held in &session.regions {
            self.endpoint.transport.deregister(held.here.id);
        }
    }

    /// Frees memory whose function has returned at last.
    pub(super) fn free_orphaned(&mut self, call: CallId, regions: Vec<Buffer>) {
        self.bytes -= self.orphaned.remove(&call).map_or(0, |orphaned| orphaned.bytes);
        regions.into_iter().for_each(|buffer| self.memory.discard(buffer));
    }

    /// Memory of an address that functions have and callers have not any more.
    pub(super) fn orphaned_by(&self, peer: IpAddr) -> u64 {
        self.orphaned.values().filter(|orphaned| orphaned.peer == peer).map(|orphaned| orphaned.bytes).sum()
    }
}
