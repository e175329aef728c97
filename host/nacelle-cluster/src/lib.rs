// SPDX-License-Identifier: Apache-2.0
//! Clusters of endpoints and software devices on a simulated network, in virtual time, in one thread.
//!
//! Endpoints ([`nacelle_roce::Endpoint`]) connect with each other and with devices ([`nacelle_device::SoftEngine`]), move data by
//! every operation, call functions, and part. Meanwhile the network delays, loses, repeats, reorders and corrupts frames, is cut in
//! one direction or both, and nodes crash and start again without what they knew. A seed decides all of it, so a failed run can be
//! repeated ([`command`]).
//!
//! [`run`] checks, and panics if not so:
//!
//! - each byte that was sent, read or returned is right, each message arrives once and in order, each atomic is executed once;
//! - each work request completes once, in order, before its connection ends;
//! - a connection fails only if there is a reason: a crash, a disconnect, or a cut that lasts longer than retries bridge;
//! - every connection makes progress or ends in bounded time, and so do those of a crashed peer;
//! - at the end no node has a connection, a timer or a region left, and no device a queue pair, a caller or memory.
#![forbid(unsafe_code)]

mod caller;
mod cluster;
mod day;
mod model;
mod network;
mod node;
mod pair;
mod plan;
mod report;
mod session;
mod tasks;
mod world;

pub use cluster::run;
pub use day::long_call;
pub use plan::{Plan, command};
pub use report::Report;
