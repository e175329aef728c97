// SPDX-License-Identifier: Apache-2.0
//! Calls accelerators over the network: RoCEv2 in user space, no RDMA NIC, no kernel module, no root.
//!
//! ```no_run
//! use nacelle::{Device, FunctionCode, Options, Region};
//!
//! let device = Device::connect("10.77.0.2", &Options::default())?;
//! let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(vec![1, 2, 3])])?;
//! call.invoke()?;
//! call.wait()?;
//! let regions = call.close()?;
//! assert_eq!(regions[0].to_vec()?, [2, 3, 4]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The caller's memory is used in place. A slice is lent for the time of a scope:
//!
//! ```no_run
//! # use nacelle::{Device, FunctionCode, Options, Region};
//! # let device = Device::connect("10.77.0.2", &Options::default())?;
//! let mut bytes = [1, 2, 3];
//! nacelle::memory::scope(|scope| {
//!     let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(scope.lend_mut(&mut bytes))])?;
//!     call.invoke()?;
//!     call.wait()
//! })?;
//! assert_eq!(bytes, [2, 3, 4]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Several calls share a [`Connection`]; a call can be cancelled, awaited ([`Call::finished`]) and driven by an event loop
//! ([`Device::fd`]). docs/reference/library.md says who makes progress when, and what is bounded by which time;
//! docs/how-to/use-the-library.md has examples.
//!
//! A [`Device`] is an address that answers. [`Device::create`] opens a connection to it and agrees on regions of memory;
//! [`Call::invoke`] sends the inputs and starts the kernel, [`Call::wait`] and [`Call::test`] see to its end, and
//! [`Call::close`] gives the regions back. Every step has a deadline that counts from when something last moved, and every
//! error says which step it ended, and what to try ([`Error::hint`]).

#![forbid(unsafe_code)]

mod address;
mod agreed;
mod call;
mod channel;
mod connection;
pub mod description;
mod device;
mod engine;
mod error;
mod exchange;
pub mod explain;
mod inbox;
mod load;
mod matmul;
mod mtu;
mod ping;
mod reach;
mod region;
mod remote;
mod report;
mod slot;
mod sync;
mod target;
mod token;
mod transport;
mod wake;

pub use agreed::Agreed;
pub use call::{Call, CallOptions, Canceller, ChainStep, Finished, Transferred};
pub use connection::{Connection, ConnectionOptions};
pub use description::Description;
pub use device::{Device, Options};
pub use error::{Error, ErrorCode, Step};
pub use load::Load;
pub use matmul::{Element, matmul, matmul_with};
pub use nacelle_manage::{Descriptor, DeviceKind, LinkKind};
pub use nacelle_memory as memory;
pub use nacelle_memory::Memory;
pub use nacelle_verbs::DeviceName;
pub use nacelle_wire::admission::{Token, Why};
pub use nacelle_wire::mrsp::FunctionCode;
pub use reach::{Chosen, LinkChoice};
pub use region::{Region, Role};
pub use remote::{Remote, Transfer};
pub use report::{Report, StepReport};
pub use target::Target;
pub use token::token_of_file;

/// The examples of the how-to compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/use-the-library.md")]
struct HowTo;
