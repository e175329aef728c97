// SPDX-License-Identifier: Apache-2.0
//! Reliable connections of an RDMA NIC, or of Linux' soft-RoCE.
//!
//! [`Nic`] has the functions and the events of [`nacelle_roce::Transport`] that a caller needs: connect, register, post, poll. The
//! packets are the NIC's: libibverbs posts and polls, librdmacm connects. Both are loaded when the first NIC is opened, so programs
//! build and run on machines without them.
//!
//! [`Place::of`] finds the device and port that have an address, from what the kernel shows; [`Nic::open`] opens it.
//!
//! Work requests go out by [`Nic`], which a program keeps under its lock; what comes is read from the [`Inlet`] by the one thread
//! that waits, without the lock, and given to [`Nic::handle`]. All functions return at once.
//!
//! Unsafe code calls the libraries. Memory is registered in place, and goes back to its owner only after it was deregistered; so does
//! borrowed memory, whose registration ends with its borrow.
#![deny(unsafe_op_in_unsafe_fn)]

mod abi;
mod connection;
mod error;
mod hardware;
mod inlet;
mod library;
mod nic;
mod place;
mod region;

pub use error::VerbsError;
pub use inlet::{Arrival, Inlet};
pub use nic::Nic;
pub use place::{DeviceName, NameError, Place};

/// Whether the libraries can be loaded.
///
/// # Errors
/// [`VerbsError::Library`] if not.
pub fn available() -> Result<(), VerbsError> {
    library::Library::get().map(|_| ())
}
