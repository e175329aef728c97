// SPDX-License-Identifier: Apache-2.0
//! Calls: kernels are started, served with memory, and their results returned.

use std::time::Instant;

use nacelle_roce::{ConnId, Region, SendWr, Transport};
use nacelle_wire::mrsp::{AarRegion, CallImm, RegionFlags, ReturnCode};

use super::session::Held;
use super::setup::{is_internal, parameters};
use super::workers::{self, Notice};
use super::{LAST, PART, SoftEngine};
use crate::kernels::{Layout, Memory, Stop};

/// Accesses of kernels to memory that are served in one turn.
const ACCESSES: usize = 4;

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

impl SoftEngine {
    /// Begins a call.
    pub(super) fn call(&mut self, conn: ConnId, imm: u32) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        let function = match CallImm::parse(imm) {
            Ok(CallImm::Start { function, .. }) if !session.regions.is_empty() => function,
            // The caller gives its call up.
            Ok(CallImm::HostError) => return self.counters.calls_failed += 1,
            Ok(CallImm::Start { .. }) | Err(_) => return self.counters.immediates_ignored += 1,
        };
        self.counters.calls += 1;
        let layout = Layout {
            sizes: session.regions.iter().map(|held| held.here.len).collect(),
            parameters: parameters(session.regions.iter().map(|held| &held.asked)),
        };
        let Some(kernel) = self.config.kernels.iter().find(|kernel| kernel.code == function) else {
            return self.finish(conn, ReturnCode::UNKNOWN_FUNCTION);
        };
        if layout.sizes.iter().sum::<usize>() <= kernel.quick {
            let regions: Vec<Region> = session.regions.iter().map(|held| held.here).collect();
            let mut memory = Direct { transport: &mut self.endpoint.transport, regions: &regions, layout };
            let code = match (kernel.run)(&mut memory) {
                Ok(()) => ReturnCode::SUCCESS,
                Err(Stop::Failed(code)) => code,
                Err(Stop::Ended) => return, // without its regions, its caller has gone
            };
            return self.finish(conn, code);
        }
        let call = self.workers.start(kernel, layout);
        session.call = Some(call);
        self.calls.insert(call, conn);
        self.more = true;
    }

    /// Serves kernels: some of their accesses, and the results that there are.
    pub(super) fn serve_kernels(&mut self) {
        self.more = false;
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
                Notice::Done(call, code) => {
                    let Some(conn) = self.calls.remove(&call) else { continue };
                    if let Some(session) = self.sessions.get_mut(&conn) {
                        session.call = None;
                    }
                    self.finish(conn, code);
                    self.go_on(conn);
                }
            }
        }
    }

    /// Carries out a kernel's access to its memory. `None` if its caller has gone.
    fn access(&mut self, access: workers::Access) -> Option<Vec<u8>> {
        let workers::Access { call, region, at, write, mut bytes } = access;
        let session = self.sessions.get(self.calls.get(&call)?)?;
        let memory = self.endpoint.transport.region_mut(session.regions.get(region)?.here.id)?;
        if write { memory.write(at, &bytes) } else { memory.read(at, &mut bytes) }.ok()?;
        Some(bytes)
    }

    /// Answers a call.
    fn finish(&mut self, conn: ConnId, code: ReturnCode) {
        let Some(session) = self.sessions.get(&conn) else { return };
        self.counters.calls_failed += u64::from(code != ReturnCode::SUCCESS);
        let outputs: Vec<&Held> = session.regions.iter().filter(|held| is_returned(&held.asked)).collect();
        let imm = code.to_imm();
        let mut requests: Vec<SendWr> = Vec::with_capacity(outputs.len().max(1));
        if code == ReturnCode::SUCCESS {
            for (index, held) in outputs.iter().enumerate() {
                let (data, address, rkey) = (held.here.all(), held.asked.address(), held.asked.rkey());
                requests.push(if index + 1 == outputs.len() {
                    SendWr::write_imm(LAST, data, address, rkey, imm)
                } else {
                    SendWr::write(PART, data, address, rkey)
                });
            }
        }
        if requests.is_empty()
            && let Some(held) = outputs.first().copied().or(session.regions.first())
        {
            requests.push(SendWr::write_imm(LAST, Vec::new(), held.asked.address(), held.asked.rkey(), imm));
        }
        for request in requests {
            self.answer(conn, request);
        }
    }
}

/// A region is returned if it is an output and no scratch memory.
fn is_returned(region: &AarRegion) -> bool {
    region.flags().contains(RegionFlags::OUTPUT) && !is_internal(region)
}
