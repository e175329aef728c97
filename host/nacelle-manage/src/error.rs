// SPDX-License-Identifier: Apache-2.0
//! Errors.

use std::path::PathBuf;

/// Why a device was not managed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No device of this name answers on the wire.
    #[error("no device named {name} answers on the wire {}", wire.display())]
    NoSuchDevice {
        /// The requested name.
        name: String,
        /// The wire's directory.
        wire: PathBuf,
    },
    /// A device answered a request with an error, or not at all.
    #[error("the device {name} did not do it: {why}")]
    Management {
        /// The device.
        name: String,
        /// Its answer, or that there is none.
        why: String,
    },
}
