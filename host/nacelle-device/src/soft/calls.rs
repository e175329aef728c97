// SPDX-License-Identifier: Apache-2.0
//! Calls: kernels are started, served with memory, and their results returned.

use std::ops::Range;
use std::time::Instant;

use nacelle_roce::{Region, RegionSlice, SendWr, Transport};
use nacelle_wire::calls::{MAX_STEPS, MAX_WRITE, result_imm};
use nacelle_wire::mrsp::{FunctionCode, ReturnCode};
use nacelle_wire::{RemoteAddr, Rkey};
use smallvec::SmallVec;

use super::SoftEngine;
use super::requests::Start;
use super::session::{At, ContextState, Held};
use super::setup::parameters;
use super::workers::{self, CallId, Notice};
use crate::kernels::{Layout, MOST_REGIONS, Memory, Stop};

/// Accesses of kernels to memory that are served in one turn.
const ACCESSES: usize = 4;

/// A function on some regions of a context.
struct Part {
    function: FunctionCode,
    regions: Range<usize>,
}

/// A call: one function, or those of a chain.
pub(super) struct Call {
    /// Its name among the threads; none before the first of its kernels needs one.
    id: Option<CallId>,
    /// When it must have ended.
    until: Option<Instant>,
    /// What is still to be run.
    parts: smallvec::IntoIter<[Part; MAX_STEPS]>,
    /// First region of the part that runs.
    first: usize,
    /// Its result, whatever becomes of the kernel that still runs.
    verdict: Option<ReturnCode>,
}

/// The regions of a call, for a kernel that runs in the network's thread.
struct Direct<'a> {
    transport: &'a mut Transport,
    regions: &'a [Region],
    layout: Layout,
}

impl Memory for Direct<'_> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, region: usize, at: usize, into: &mut [u8]) -> Result<(), Stop> {
        self.layout.check(region, at, into.len())?;
        let memory = self.transport.region(self.regions[region].id).ok_or(Stop::Ended)?;
        memory.read(at, into).map_err(|_| Stop::Ended)
    }

    fn write(&mut self, region: usize, at: usize, bytes: &[u8]) -> Result<(), Stop> {
        self.layout.check(region, at, bytes.len())?;
        let memory = self.transport.region_mut(self.regions[region].id).ok_or(Stop::Ended)?;
        memory.write(at, bytes).map_err(|_| Stop::Ended)
    }
}

impl ContextState {
    /// What a start asks for.
    fn parts(&self, function: Option<FunctionCode>) -> SmallVec<[Part; MAX_STEPS]> {
        match function {
            Some(function) => SmallVec::from_iter([Part { function, regions: 0..self.regions.len() }]),
            None => self
                .steps
                .iter()
                .filter_map(|step| Some(Part { function: step.function()?, regions: step.regions() }))
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
        let parts = state.parts(start.function);
        if start.cancelled || parts.is_empty() {
            let code = if start.cancelled { ReturnCode::CANCELLED } else { ReturnCode::UNKNOWN_FUNCTION };
            return self.finish(at, code);
        }
        let until = state.deadline.and_then(|time| start.arrived.checked_add(time));
        state.call = Some(Call { id: None, until, parts: parts.into_iter(), first: 0, verdict: None });
        self.advance(at);
    }

    /// Runs the kernels of a call that are left, up to one that needs a thread.
    fn advance(&mut self, at: At) {
        let code = loop {
            let Some(state) = self.sessions.context_mut(at) else { return };
            let Some(call) = &mut state.call else { return };
            if call.until.is_some_and(|until| Instant::now() >= until) {
                break ReturnCode::DEADLINE;
            }
            let Some(Part { function, regions }) = call.parts.next() else { break ReturnCode::SUCCESS };
            let Some(kernel) = self.config.kernels.iter().find(|kernel| kernel.code == function) else {
                break ReturnCode::UNKNOWN_FUNCTION;
            };
            call.first = regions.start;
            let held = &state.regions[regions];
            let layout = Layout {
                sizes: held.iter().map(|held| held.here.len).collect(),
                parameters: parameters(held.iter().map(|held| &held.asked)),
            };
            if layout.sizes.iter().sum::<usize>() <= kernel.quick {
                let regions: SmallVec<[Region; MOST_REGIONS]> = held.iter().map(|held| held.here).collect();
                let mut memory = Direct { transport: &mut self.endpoint.transport, regions: &regions, layout };
                match (kernel.run)(&mut memory) {
                    Ok(()) => continue,
                    Err(Stop::Failed(code)) => break code,
                    Err(Stop::Ended) => return, // without its regions, its caller has gone
                }
            }
            let id = *call.id.get_or_insert_with(|| self.workers.name_call());
            self.calls.insert(id, at);
            self.deadlines.extend(call.until.map(|until| (until, id)));
            self.workers.start(id, at.conn, kernel, layout);
            self.more = true;
            return;
        };
        self.end_call(at, code);
    }

    /// Serves kernels: some of their accesses, and the results that there are.
    pub(super) fn serve_kernels(&mut self) {
        self.more = false;
        self.stop_late_calls();
        let mut left = ACCESSES;
        while let Some(notice) = self.workers.poll(Instant::now()) {
            match notice {
                Notice::Access(access) => {
                    let call = access.call;
                    let bytes = self.access(access);
                    self.workers.answer(call, bytes);
                    left -= 1;
                    if left == 0 {
                        self.more = true;
                        return;
                    }
                }
                Notice::Done(id, code) => {
                    let Some(&at) = self.calls.get(&id) else { continue };
                    let verdict = self.sessions.context(at).and_then(|state| state.call.as_ref()?.verdict);
                    match verdict {
                        None if code == ReturnCode::SUCCESS => self.advance(at),
                        verdict => self.end_call(at, verdict.unwrap_or(code)),
                    }
                    self.go_on(at);
                }
            }
        }
    }

    /// Carries out a kernel's access to its memory. `None` if its caller has gone.
    fn access(&mut self, access: workers::Access) -> Option<Vec<u8>> {
        let workers::Access { call, region, at, write, mut bytes } = access;
        let state = self.sessions.context(*self.calls.get(&call)?)?;
        let region = state.call.as_ref()?.first + region;
        let memory = self.endpoint.transport.region_mut(state.regions.get(region)?.here.id)?;
        if write { memory.write(at, &bytes) } else { memory.read(at, &mut bytes) }.ok()?;
        Some(bytes)
    }

    /// Stops the calls whose deadline has passed.
    fn stop_late_calls(&mut self) {
        let now = Instant::now();
        while let Some((_, id)) = self.deadlines.first().copied().filter(|(until, _)| *until <= now) {
            self.deadlines.pop_first();
            if let Some(&at) = self.calls.get(&id) {
                self.stop_call(at, ReturnCode::DEADLINE);
            }
        }
    }

    /// Stops the call of a context, which ends with this result: at once, or when its kernel reaches memory no longer.
    pub(super) fn stop_call(&mut self, at: At, code: ReturnCode) {
        let Some(call) = self.sessions.context_mut(at).and_then(|state| state.call.as_mut()) else { return };
        let (Some(id), None) = (call.id, call.verdict) else { return };
        call.verdict = Some(code);
        if self.workers.cancel(id, Instant::now()) {
            self.end_call(at, code);
            self.go_on(at);
        }
    }

    /// A call whose caller has gone has no result.
    pub(super) fn abandon_call(&mut self, at: At) {
        if let Some(call) = self.forget_call(at) {
            self.counters.calls_failed += 1;
            if let Some(id) = call.id {
                self.workers.cancel(id, Instant::now());
            }
        }
    }

    /// The call of a context is over.
    fn forget_call(&mut self, at: At) -> Option<Call> {
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
        let mut pieces: SmallVec<[Piece; MOST_REGIONS]> = SmallVec::new();
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
    let Held { asked, here } = *held;
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
            let asked = Asked { flags: RegionFlags::OUTPUT, address, rkey: Rkey(7), size: length as u64 };
            let pieces: Vec<Piece> = pieces_of(&Held { asked, here }, 4).collect();
            let expected = expected.iter().map(|&(from, len)| Piece {
                slice: here.slice(from, len),
                address: RemoteAddr(address.0.wrapping_add(from as u64)),
                rkey: Rkey(7),
            });
            assert_eq!(pieces, expected.collect::<Vec<_>>(), "{length}");
        }
    }
}
