// SPDX-License-Identifier: Apache-2.0
//! Calls: functions are started, and their results returned.

use std::sync::Arc;
use std::time::Instant;

use nacelle_roce::{ConnId, SendWr};
use nacelle_wire::mrsp::{AarRegion, CallImm, RegionFlags, ReturnCode};

use super::buffer::Buffer;
use super::session::Held;
use super::setup::{is_internal, parameters};
use super::workers::{Notice, Task};
use super::{LAST, PART, SoftEngine};
use crate::kernel::Cancellation;

impl SoftEngine {
    /// Begins a call.
    pub(super) fn call(&mut self, conn: ConnId, imm: u32) {
        let Some(session) = self.sessions.get(&conn) else { return };
        let (function, user) = match CallImm::parse(imm) {
            Ok(CallImm::Start { function, user: [a, b, c] }) if !session.regions.is_empty() => {
                (function, u32::from_le_bytes([a, b, c, 0]))
            }
            // The caller gives its call up.
            Ok(CallImm::HostError) => return self.counters.calls_failed += 1,
            Ok(CallImm::Start { .. }) | Err(_) => return self.counters.immediates_ignored += 1,
        };
        self.counters.calls += 1;
        let parameters = parameters(session.regions.iter().map(|held| &held.asked));
        let lost = session.lost;
        let Some(offered) = self.config.kernels.get(function) else {
            return self.finish(conn, ReturnCode::UNKNOWN_FUNCTION);
        };
        let (run, quick) = (Arc::clone(&offered.run), offered.quick);
        let regions = if lost { None } else { self.lend_regions(conn) };
        let Some(regions) = regions else { return self.finish(conn, ReturnCode::SOCKET_UNAVAILABLE) };
        let bytes: usize = regions.iter().map(Buffer::len).sum();
        let mut task = Task { run, regions, parameters, user };
        if bytes <= quick {
            let code = task.run(&Cancellation::default());
            self.return_regions(conn, task.regions);
            return self.finish(conn, code);
        }
        let call = self.workers.start(task);
        if let Some(session) = self.sessions.get_mut(&conn) {
            session.call = Some(call);
        }
        self.calls.insert(call, conn);
    }

    /// Handles what has become of calls.
    pub(super) fn serve_kernels(&mut self) {
        while let Some(notice) = self.workers.poll(Instant::now()) {
            let (call, code, regions) = match notice {
                Notice::Ended(call, code, regions) => (call, code, Some(regions)),
                Notice::Lost(call) => (call, ReturnCode::KERNEL_TIMEOUT, None),
            };
            match (self.calls.remove(&call), regions) {
                (Some(conn), regions) => {
                    if let Some(session) = self.sessions.get_mut(&conn) {
                        session.call = None;
                    }
                    match regions {
                        Some(regions) => self.return_regions(conn, regions),
                        None => self.orphan(conn, call),
                    }
                    self.finish(conn, code);
                    self.go_on(conn);
                }
                (None, Some(regions)) => self.free_orphaned(call, regions),
                (None, None) => {}
            }
        }
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
