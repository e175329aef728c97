// SPDX-License-Identifier: Apache-2.0
//! The C interface of Nacelle, and that of NAAICE's middleware: `libnacelle.so` and `libnacelle.a`.
//!
//! What each function does is documented where its callers read it, in `include/nacelle.h` and `include/naaice/naaice_ap2.h`.
//! This crate adds nothing to the Rust library but the edge: handles instead of values ([`handle`]), numbers instead of errors
//! and no panic that crosses ([`edge`]), sized structures ([`sized`]), and memory that belongs to the caller ([`memory`]).
//!
//! `unsafe` is needed to read what a C program points to. It is in the modules [`sized`] and [`memory`], in [`text`], and at
//! the beginning of each exported function; behind that, everything is safe Rust.

#![deny(unsafe_op_in_unsafe_fn)]

mod acceptor;
mod call;
mod connection;
mod device;
mod edge;
mod handle;
mod load;
mod memory;
mod naaice;
mod notifier;
mod outcome;
mod remote;
mod session;
mod sized;
mod slot;
mod text;
mod transfer;
mod version;
mod window;
