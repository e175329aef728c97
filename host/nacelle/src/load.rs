// SPDX-License-Identifier: Apache-2.0
//! How busy a device is, as it says itself over the network.

use nacelle_wire::{LoadRecord, RemoteAddr};
use serde::{Deserialize, Serialize};

use crate::{Device, Error, description};

/// How busy a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Load {
    /// Connections of callers, the one that asks included.
    pub connections: u64,
    /// Device memory, in bytes.
    pub memory_bytes: u64,
    /// What callers have of it.
    pub memory_held: u64,
    /// Calls since the device's start.
    pub calls: u64,
    /// Kernels that run now.
    pub running: u64,
    /// Calls that wait for a thread.
    pub waiting: u64,
}

impl Device {
    /// How busy the device is at this moment: asked on a connection of its own. `None` if it does not say.
    ///
    /// # Errors
    /// [`Error::Refused`] by the device; [`Error::Timeout`] or [`Error::Lost`] if it stops responding; [`Error::Protocol`] if what it says
    /// cannot be read.
    pub fn load(&self) -> Result<Option<Load>, Error> {
        let Some(description) =
            self.describe()?.filter(|description| description.load_bytes as usize >= LoadRecord::LEN)
        else {
            return Ok(None);
        };
        let before = |RemoteAddr(addr)| addr.checked_sub(description.load_bytes.into()).map(RemoteAddr);
        let bytes = description::fetch(&self.shared, |place| match before(place.addr) {
            Some(addr) => Ok((addr, LoadRecord::LEN)),
            None => Err("its load would lie before all memory".to_owned()),
        })?;
        let record = bytes.and_then(|bytes| bytes.try_into().ok()).map(LoadRecord::from_bytes);
        Ok(record.map(|LoadRecord { connections, running, waiting, memory_held, calls, .. }| Load {
            connections: connections.into(),
            memory_bytes: description.memory_bytes,
            memory_held,
            calls,
            running: running.into(),
            waiting: waiting.into(),
        }))
    }
}
