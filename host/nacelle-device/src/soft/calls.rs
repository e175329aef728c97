// SPDX-License-Identifier: Apache-2.0
//! Calls: functions are started, one or those of a chain, and their results returned.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use nacelle_manage::event_log::Kind;
use nacelle_roce::memory::Memory;
use nacelle_roce::{RegionSlice, SendWr};
use nacelle_wire::calls::{MAX_STEPS, MAX_WRITE, result_imm};
use nacelle_wire::mrsp::{FunctionCode, ReturnCode};
use nacelle_wire::{RemoteAddr, Rkey};
use smallvec::SmallVec;

use super::SoftEngine;
use super::histograms::{self, Timed};
use super::requests::Start;
use super::session::{At, ContextState, Held};
use super::setup::{MAX_REGIONS, parameters};
use super::workers::{CallId, Notice, Task};
use crate::kernel::{Cancellation, Origin};

/// A function on some regions of a context.
struct Part {
    function: FunctionCode,
    regions: Range<usize>,
    user: u32,
}

/// A call: one function, or those of a chain.
pub(super) struct Call {
    /// Its name among the threads; none before the first of its kernels needs one.
    pub(super) id: Option<CallId>,
    /// When it must have ended.
    until: Option<Instant>,
    /// What is still to be run.
    parts: smallvec::IntoIter<[Part; MAX_STEPS]>,
    /// The regions of the part that runs.
    pub(super) lent: Range<usize>,
    /// Where its function is from; none for that of a window.
    pub(super) origin: Option<Origin>,
    /// The function that is measured.
    pub(super) timed: Option<Timed>,
    /// Its result, whatever becomes of the function that still runs.
    verdict: Option<ReturnCode>,
}

impl ContextState {
    /// What a start asks for.
    fn parts(&self, Start { function, user, .. }: Start) -> SmallVec<[Part; MAX_STEPS]> {
        match function {
            Some(function) => SmallVec::from_iter([Part { function, regions: 0..self.regions.len(), user }]),
            None => self
                .steps
                .iter()
                .filter_map(|step| {
                    Some(Part { function: step.function()?, regions: step.regions(), user: step.user() })
                })
                .collect(),
        }
    }
}

impl SoftEngine {
    /// Begins a call.
    pub(super) fn call(&mut self, at: At, start: Start) {
        let Some(state) = self.sessions.context_mut(at) else { return };
        if state.regions.is_empty() {
            return self.counters.immediates_ignored += 1;
        }
        self.counters.calls += 1;
        let parts = state.parts(start);
        if start.cancelled || parts.is_empty() {
            let code = if start.cancelled { ReturnCode::CANCELLED } else { ReturnCode::UNKNOWN_FUNCTION };
            return self.finish(at, code);
        }
        let until = state.deadline.and_then(|time| start.arrived.checked_add(time));
        let parts = parts.into_iter();
        state.call = Some(Call { id: None, until, parts, lent: 0..0, origin: None, timed: None, verdict: None });
        self.advance(at);
    }

    /// Runs the functions of a call that are left, up to one that needs a thread.
    fn advance(&mut self, at: At) {
        let code = loop {
            let Some(state) = self.sessions.context_mut(at) else { return };
            let Some(call) = &mut state.call else { return };
            if call.until.is_some_and(|until| self.clock.system_now() >= until) {
                break ReturnCode::DEADLINE;
            }
            let Some(Part { function, regions, user }) = call.parts.next() else { break ReturnCode::SUCCESS };
            let offered = match (&state.window, self.config.kernels.get(function)) {
                // It may do anything, so it runs in a thread of its own.
                (Some(told), _) if function == FunctionCode::WINDOW => Some((told, None, None)),
                (_, offered) => offered.map(|offered| (&offered.run, Some(offered.quick), Some(offered.origin))),
            };
            let Some((run, quick, origin)) = offered else { break ReturnCode::UNKNOWN_FUNCTION };
            let run = Arc::clone(run);
            call.origin = origin;
            let now = histograms::cycles(&self.clock);
            call.timed = origin.map(|origin| self.histograms.arrive(origin.socket, now));
            let parameters = parameters(state.regions[regions.clone()].iter().map(|held| &held.asked));
            call.lent = regions;
            // They are not there if a function has them that did not return.
            let Some(regions) = self.lend_regions(at) else { break ReturnCode::SOCKET_UNAVAILABLE };
            let bytes: usize = regions.iter().map(Memory::len).sum();
            let mut task = Task { run, regions, parameters, user };
            if quick.is_some_and(|quick| bytes <= quick) {
                self.begin_timed(at);
                let code = task.run(&Cancellation::NEVER);
                self.end_timed(at);
                self.return_regions(at, task.regions);
                if code == ReturnCode::SUCCESS {
                    continue;
                }
                break code;
            }
            return self.queue(at, task);
        };
        self.end_call(at, code);
    }

    /// Gives the part of a call that is next to the threads.
    fn queue(&mut self, at: At, task: Task) {
        let Some(call) = self.sessions.context_mut(at).and_then(|state| state.call.as_mut()) else { return };
        let id = *call.id.get_or_insert_with(|| self.workers.name_call());
        self.calls.insert(id, at);
        self.deadlines.extend(call.until.map(|until| (until, id)));
        self.workers.start(id, at.conn, task);
    }

    /// Handles what has become of calls.
    pub(super) fn serve_kernels(&mut self) {
        self.stop_late_calls();
        while let Some(notice) = self.workers.poll(self.turn) {
            let (id, code, regions) = match notice {
                Notice::Ended(id, code, regions) => (id, code, Some(regions)),
                Notice::Lost(id) => (id, ReturnCode::KERNEL_TIMEOUT, None),
                Notice::Began(id) => {
                    if let Some(&at) = self.calls.get(&id) {
                        self.begin_timed(at);
                    }
                    continue;
                }
            };
            match (self.calls.get(&id).copied(), regions) {
                (Some(at), regions) => {
                    self.end_timed(at);
                    match regions {
                        Some(regions) => self.return_regions(at, regions),
                        None => self.orphan(at, id),
                    }
                    let verdict = self.sessions.context(at).and_then(|state| state.call.as_ref()?.verdict);
                    match verdict {
                        None if code == ReturnCode::SUCCESS => self.advance(at),
                        verdict => self.end_call(at, verdict.unwrap_or(code)),
                    }
                    self.go_on(at);
                }
                (None, Some(regions)) => self.free_orphaned(id, regions),
                (None, None) => {}
            }
        }
    }

    /// Stops the calls whose deadline has passed.
    fn stop_late_calls(&mut self) {
        let now = self.turn;
        while let Some((_, id)) = self.deadlines.first().copied().filter(|(until, _)| *until <= now) {
            self.deadlines.pop_first();
            if let Some(&at) = self.calls.get(&id) {
                self.stop_call(at, ReturnCode::DEADLINE);
            }
        }
    }

    /// Stops the call of a context, which ends with this result: at once if it waits for a thread, else when its function has
    /// returned, or has lost its regions.
    pub(super) fn stop_call(&mut self, at: At, code: ReturnCode) {
        let Some(call) = self.sessions.context_mut(at).and_then(|state| state.call.as_mut()) else { return };
        let (Some(id), None) = (call.id, call.verdict) else { return };
        call.verdict = Some(code);
        if let Some(regions) = self.workers.cancel(id, at.conn, self.turn) {
            self.return_regions(at, regions);
            self.end_call(at, code);
            self.go_on(at);
        }
    }

    /// The call of a context is over.
    pub(super) fn forget_call(&mut self, at: At) -> Option<Call> {
        self.end_timed(at);
        let call = self.sessions.context_mut(at)?.call.take()?;
        if let Some(id) = call.id {
            self.calls.remove(&id);
            if let Some(until) = call.until {
                self.deadlines.remove(&(until, id));
            }
        }
        Some(call)
    }

    fn end_call(&mut self, at: At, code: ReturnCode) {
        if code == ReturnCode::KERNEL_TIMEOUT {
            self.log(Kind::KERNEL_TIMEOUT, 0, 0);
        }
        self.forget_call(at);
        self.finish(at, code);
    }

    /// Answers a start.
    fn finish(&mut self, at: At, code: ReturnCode) {
        let Some(session) = self.sessions.0.get(&at.conn) else { return };
        let imm = if session.has_contexts() { result_imm(at.context, code) } else { code.to_imm() };
        let Some(state) = self.sessions.context(at) else { return };
        self.counters.calls_failed += u64::from(code != ReturnCode::SUCCESS);
        let outputs = || state.regions.iter().filter(|held| held.asked.is_returned());
        let mut pieces: SmallVec<[Piece; MAX_REGIONS]> = SmallVec::new();
        if code == ReturnCode::SUCCESS {
            pieces.extend(outputs().flat_map(|held| pieces_of(held, MAX_WRITE)));
        }
        let last = match (pieces.pop(), outputs().next().or(state.regions.first())) {
            (Some(Piece { slice, address, rkey }), _) => SendWr::write_imm(0, slice, address, rkey, imm),
            (None, Some(Held { asked, .. })) => SendWr::write_imm(0, Vec::new(), asked.address, asked.rkey, imm),
            (None, None) => return,
        };
        for Piece { slice, address, rkey } in pieces {
            self.answer(at, false, SendWr::write(0, slice, address, rkey));
        }
        self.answer(at, true, last);
    }
}

/// What one WRITE returns of a region, and where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    slice: RegionSlice,
    address: RemoteAddr,
    rkey: Rkey,
}

/// A region in pieces of at most `longest` bytes; one piece if it has none.
fn pieces_of(held: &Held, longest: usize) -> impl Iterator<Item = Piece> {
    let Held { asked, here, .. } = *held;
    (0..here.len.max(1)).step_by(longest).map(move |from| Piece {
        slice: here.slice(from, longest.min(here.len - from)),
        address: RemoteAddr(asked.address.0.wrapping_add(from as u64)),
        rkey: asked.rkey,
    })
}

#[cfg(test)]
mod tests {
    use super::super::session::Asked;
    use super::*;
    use nacelle_roce::{Access, Endpoint, EndpointConfig};
    use nacelle_wire::MacAddr;
    use nacelle_wire::mrsp::RegionFlags;
    use std::net::Ipv4Addr;

    #[test]
    fn a_region_longer_than_a_write_is_returned_in_pieces() {
        let config = EndpointConfig::new(MacAddr::default(), Ipv4Addr::LOCALHOST, [0; 32]);
        let mut transport = Endpoint::new(config).transport;
        for (length, expected) in [
            (0, &[(0, 0)][..]),
            (1, &[(0, 1)]),
            (4, &[(0, 4)]),
            (5, &[(0, 4), (4, 1)]),
            (12, &[(0, 4), (4, 4), (8, 4)]),
        ] {
            let here = transport.register(vec![0; length], Access::LOCAL, None).unwrap();
            let address = RemoteAddr(u64::MAX - 5);
            let asked = Asked { flags: RegionFlags::OUTPUT, address, rkey: Rkey(7), size: length as u64, window: None };
            let pieces: Vec<Piece> = pieces_of(&Held { asked, here, shared: false }, 4).collect();
            let expected = expected.iter().map(|&(from, len)| Piece {
                slice: here.slice(from, len),
                address: RemoteAddr(address.0.wrapping_add(from as u64)),
                rkey: Rkey(7),
            });
            assert_eq!(pieces, expected.collect::<Vec<_>>(), "{length}");
        }
    }
}
