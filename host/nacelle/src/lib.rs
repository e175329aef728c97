// SPDX-License-Identifier: Apache-2.0
//! Calls accelerators over the network.

#![forbid(unsafe_code)]

pub mod control;
pub mod discover;
mod error;
mod frame;

pub use discover::{Descriptor, DeviceKind, FunctionInfo};
pub use error::{Error, ErrorCode, Step};
pub use frame::FrameKind;
