// SPDX-License-Identifier: Apache-2.0
//! Management of devices.
//!
//! - A device publishes a [`Descriptor`] on its wire; [`discover`] finds them.
//! - [`Control`] is a client of a device's management socket, in the [`Request`]s and [`Reply`]s of its protocol.
//! - [`Manage`] is what a device does for it: queue pairs, regions, domains, registers, and connections that it opens itself.
//! - [`admission`] says who may connect.
//! - [`classifier`] has the rules for received frames.
//! - [`event_log`] says what has happened.
//! - [`frame_trace`] has the frames that a device has recorded at its MAC.
//! - [`histograms`] say how long calls take.
//! - [`sensors`] say what its board measures.
//! - [`images`] has the files of images of kernels, and brings them into a device.
//! - [`map`] has the registers by name, and finds the blocks of a device.
//! - [`AddressState`] is the IPv4 address of a device that gets one by itself; [`Ipv6State`] has its IPv6 addresses.
//! - [`Mailbox`] drives the management port of the RTL over any access to its [`Registers`].
//!
//! See docs/reference/management.md.
#![forbid(unsafe_code)]

mod address;
pub mod admission;
mod bytes;
pub mod classifier;
mod control;
mod descriptor;
pub mod discover;
mod error;
pub mod event_log;
mod frame;
pub mod frame_trace;
pub mod histograms;
pub mod images;
mod ipv6;
mod kernels;
mod mailbox;
mod manage;
pub mod map;
mod protocol;
mod registers;
pub mod sensors;

pub use address::{AddressMode, AddressOrigin, AddressState, DhcpState};
pub use bytes::Bytes;
pub use control::Control;
pub use descriptor::{Descriptor, DeviceKind, LinkKind, parse_mac};
pub use error::Error;
pub use frame::FrameKind;
pub use ipv6::{Ipv6Mode, Ipv6Origin, Ipv6State};
pub use kernels::{ChangeError, Digest, KernelImage, KernelSocket};
pub use mailbox::{
    Args, Attention, Command, CommandError, CompletionWords, EventWords, Mailbox, QueryWords, RegionWords, peer_args,
    private_args,
};
pub use manage::{
    Completion, ConnectionState, DEFAULT_MTU, MAX_MESSAGE, MAX_PRIVATE, Manage, MemoryRegion, Opened, Owner, Progress,
    QP_COUNTERS, QpState, QueuePair, QueuePairCounters, Refusal, Reset, Work, access_names,
};
pub use protocol::{Done, MAX_ACCESSES, MAX_REQUEST, Reply, Request, Stats, Trace, TraceFrame};
pub use registers::{Access, Registers, access};
