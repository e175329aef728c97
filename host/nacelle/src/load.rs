// SPDX-License-Identifier: Apache-2.0
//! How busy a device is, as it says itself over the network.

use serde::{Deserialize, Serialize};

use crate::{ConnectionOptions, Device, Error, Step};

/// The window in which devices that have windows say how busy they are (docs/reference/transfers.md).
pub const LOAD_WINDOW: u32 = u32::MAX;
/// Bytes of it; behind the text there are zeros.
pub const LOAD_LENGTH: usize = 512;

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
        let connection = self.open(&ConnectionOptions { contexts: 1 })?;
        let text = match connection.read(LOAD_WINDOW, vec![0; LOAD_LENGTH]) {
            Ok(text) => text.into_vec().unwrap_or_default(),
            Err(Error::Unsupported { .. } | Error::RegionsRefused { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        let what = |error: serde_json::Error| format!("its load cannot be read: {error}");
        let load = serde_json::from_slice(&text[..end]).map_err(what);
        load.map(Some).map_err(|what| Error::Protocol { ip: self.ip(), step: Step::Description, what })
    }
}
