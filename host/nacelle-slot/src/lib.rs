// SPDX-License-Identifier: Apache-2.0
//! What a simulated PCI Express function needs to appear in a slot: a program, or a guest of QEMU, finds it behind a UNIX socket that
//! speaks vfio-user, and drives it as it drives a function that the kernel's VFIO gives it.
//!
//! - [`config_space`] is its configuration space.
//! - [`dma`] is the memory of the client, as the function reaches it; [`pages`] are memory that is shared.
//!
//! See docs/reference/slot.md.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod config_space;
pub mod dma;
pub mod pages;
pub mod protocol;
