// SPDX-License-Identifier: Apache-2.0
//! Memory of a device in a slot, and copies between it and host memory: any alignment, any length, scatter lists, many under way, from
//! any number of threads.
//!
//! ```no_run
//! use nacelle_copy::{Options, Slot};
//!
//! let slot = Slot::open("card.sock".as_ref(), &Options::default())?;
//! let (host, near) = (slot.alloc_host(1 << 16)?, slot.alloc_device(1 << 16)?);
//! host.write(0, b"to the device")?;
//! slot.copy(&host, &near)?;
//!
//! // The same without waiting, and a part of it back.
//! let copy = slot.copy_async(near.part(0..13)?, host.part(1000..1013)?)?;
//! copy.wait()?;
//! # Ok::<(), nacelle_copy::Error>(())
//! ```
//!
//! [`Slot`] has the buffers and copies; beneath it is [`Engine`], the driver of the copy engine, whose descriptors have plain device
//! addresses. docs/reference/copy.md has the rings, docs/how-to/copy-memory.md has more examples.

#![forbid(unsafe_code)]

mod buffers;
mod engine;
mod error;
mod heap;
mod rings;
mod slot;

pub use buffers::{DeviceBuffer, HostBuffer, Part};
pub use engine::{Engine, Options, Ticket};
pub use error::{CopyError, Error, Failure, Stop};
pub use rings::{COMPLETION_BYTES, DESCRIPTOR_BYTES, Descriptor, HOST, INTERRUPT, REPORT};
pub use slot::{Copy, Slot};

/// The examples of the how-to compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/copy-memory.md")]
struct HowTo;
