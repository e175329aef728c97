// SPDX-License-Identifier: Apache-2.0
//! What can go wrong in a run.

use nacelle_link::LinkError;
use nacelle_roce::{
    Completion, ConnectError, ConnectFailure, DisconnectReason, PathError, PostError, QpError, RegisterError,
    memory::AccessError,
};

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The time of `--timeout` is over.
    #[error("timeout while {0}")]
    Timeout(String),
    /// The peer did something else than the tool does.
    #[error("{0}")]
    Wrong(String),
    /// A connection could not be made.
    #[error("cannot connect: {0:?}")]
    Connect(ConnectFailure),
    /// A connection ended too early.
    #[error("the connection ended: {0:?}")]
    Ended(DisconnectReason),
    /// A work request failed.
    #[error("work request {} ({:?}) failed: {}", .0.id, .0.opcode, .0.status)]
    Work(Completion),
    /// This side's own call was refused.
    #[error(transparent)]
    ConnectCall(#[from] ConnectError),
    /// This side's own call was refused.
    #[error(transparent)]
    Post(#[from] PostError),
    /// This side's own call was refused.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// This side's own call was refused.
    #[error(transparent)]
    Qp(#[from] QpError),
    /// There is no path to the peer.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Memory of a region cannot be accessed.
    #[error(transparent)]
    Memory(#[from] AccessError),
    /// The library says so.
    #[error(transparent)]
    Library(#[from] nacelle::Error),
    /// The host cannot accept.
    #[error(transparent)]
    Device(#[from] nacelle_device::DeviceError),
    /// The wire is broken.
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// How a step of a run ends.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Fails with a sentence unless a condition holds.
pub(crate) fn check(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(Failure::Wrong(otherwise())) }
}
