// SPDX-License-Identifier: Apache-2.0
//! Memory that a transport reads and writes in place, on behalf of peers.
//!
//! A [`Memory`] is a range of bytes and what keeps it alive. A transport takes it by value when it is registered and gives
//! it back when it is deregistered; the bytes never move and are never copied to register them. Four kinds of owner:
//!
//! - **Heap memory** (`Vec<u8>`, or aligned): the `Memory` owns it, and nothing else can reach it.
//! - **Borrowed slices**, in a [`scope()`]: the borrow lasts until the scope ends, and with it the access.
//! - **Shared bytes** ([`Shared`]): the program and several regions reach the same bytes, one access at a time.
//! - **Anything else** that implements [`StableBytes`]: a mapping of huge pages, memory shared with another process, a
//!   buffer of NumPy or C. This trait is the only thing to implement for it, and the only unsafe one.
//!
//! # Concurrent access
//!
//! A peer may write at any time, within its access rights. So no `&[u8]` to registered memory is ever made,
//! here or by a user of this crate: all access is by bounds-checked copies, [`Memory::read`] and [`Memory::write`]. Memory that a
//! transport has given back, also for a while, is used in place by [`Memory::bytes_mut`], if it is heap memory. What is written may be
//! in memory of another process too: a [`Source`] is what is copied from.
//!
//! - Heap memory and borrowed slices cannot be reached but through their `Memory`, which needs `&mut` to write. There is no
//!   data race, whatever the peer does.
//! - Memory of a [`StableBytes`] owner may be reached in other ways. As for memory that a device reaches by DMA, the owner
//!   sees to the order: between the post of a work request and its completion, and for as long as a peer has rights to it,
//!   the rest of the program leaves the bytes alone, or accepts that they change at any time and accesses them by volatile
//!   or atomic operations of its own. Other processes and devices may access them at any time; what is read then is some
//!   mixture of old and new bytes.

#![deny(unsafe_op_in_unsafe_fn)]

mod memory;
mod overlap;
mod past_cache;
mod scope;
mod shared;
mod source;

pub use memory::{AccessError, Memory, StableBytes};
pub use overlap::{Extent, find_overlap};
pub use scope::{Ending, Scope, scope};
pub use shared::Shared;
pub use source::{Bytes, Source};
