// SPDX-License-Identifier: Apache-2.0
//! How busy the device is, for callers to read: a window that the device itself has.

use std::sync::Arc;

use nacelle::{LOAD_LENGTH, Load};
use nacelle_roce::memory::Memory;
use nacelle_wire::mrsp::{RegionFlags, reason};

use super::SoftEngine;
use super::windows::Found;

impl SoftEngine {
    /// What a caller gets that asks for this window: how busy the device is at this moment, in memory of its own.
    pub(super) fn load_window(&self, flags: RegionFlags, size: u64) -> Result<Found, u8> {
        if flags != RegionFlags::OUTPUT {
            return Err(reason::NO_WINDOW);
        }
        if size > LOAD_LENGTH as u64 {
            return Err(reason::WINDOW_TOO_SMALL);
        }
        let (running, waiting) = self.workers.load();
        let mut load = Load::default();
        load.connections = self.sessions.0.len() as u64;
        (load.memory_bytes, load.memory_held) = (self.config.memory_bytes, self.held.total());
        (load.calls, load.running, load.waiting) = (self.counters.calls, running, waiting);
        let mut text = serde_json::to_vec(&load).unwrap_or_default();
        text.resize(size as usize, 0);
        Ok(Found { run: Arc::new(|_| Ok(())), memory: Some(Memory::from(text)) })
    }
}
