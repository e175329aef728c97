// SPDX-License-Identifier: Apache-2.0
//! Why a shared library was not loaded.

use std::error::Error;

/// What the system's loader said.
pub(crate) fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
