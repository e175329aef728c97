// SPDX-License-Identifier: Apache-2.0
//! What a simulated PCI Express function needs to appear in a slot: a program, or a guest of QEMU, finds it behind a UNIX socket that
//! speaks vfio-user, and drives it as it drives a function that the kernel's VFIO gives it.
//!
//! - [`Function`] is what the device does when it is accessed, and [`Host`] what it reaches from its slot.
//! - [`Server`] is the slot: a loop that the device's own clock drives, and that never waits.
//! - [`config_space`] is the function's configuration space.
//! - [`dma`] is the memory of the client, as the function reaches it; [`pages`] are memory that is shared.
//! - [`protocol`] and [`channel`] are vfio-user's messages and how they come and go, for both sides; [`listener`] is where they connect,
//!   [`eventfd`] how interrupts are signalled.
//!
//! See docs/reference/vfio-user.md.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod channel;
pub mod config_space;
pub mod dma;
pub mod eventfd;
mod function;
mod interrupts;
pub mod listener;
pub mod pages;
pub mod protocol;
mod server;

pub use function::{Answer, BarAccess, DmaToken, Function, ResetCause, Token, Transfer};
pub use interrupts::NoVector;
pub use rustix::io::Errno;
pub use server::{Doorbell, Host, MAX_DOORBELLS, MappedBar, Server, ServerConfig, ServerCounters, ServerError};
