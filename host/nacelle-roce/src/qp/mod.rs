// SPDX-License-Identifier: Apache-2.0
//! Queue pairs: the reliable-connection transport (IBTA volume 1, chapter 9.7).

mod env;
mod requester;
mod responder;
mod unmanaged;

pub(crate) use env::{Agreed, Env, QpFailure};
pub(crate) use requester::Requester;
pub(crate) use responder::{NextResponse, Responder};
pub use unmanaged::{QpError, QpModify, QpState, Rtr, Rts};

use nacelle_memory::Source;
use nacelle_wire::transport;

/// Packets that selective repeat keeps outstanding at most (docs/reference/extensions.md).
pub(crate) const SELECTIVE_WINDOW: u32 = 128;
/// Longest message in bytes (IBTA 9.7.7).
pub(crate) const MAX_MESSAGE: usize = 1 << 31;

/// A received packet.
pub(crate) type Packet<'a> = transport::Packet<Source<'a>>;
