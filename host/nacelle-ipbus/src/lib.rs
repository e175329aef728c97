// SPDX-License-Identifier: Apache-2.0
//! IPbus 2.0: the registers of a device over UDP.
//!
//! - [`Session`] is a client's side of the reliability mechanism, [`Server`] the device's: pure state machines, without sockets and clocks.
//! - [`Remote`] is a session with a socket: what a program uses.
//! - [`Hub`] shares devices among clients that speak TCP: the ControlHub of the IPbus project, so that its uHAL library has reliable
//!   access.
//!
//! See docs/reference/ipbus.md.
#![forbid(unsafe_code)]

mod hub;
mod remote;
mod server;
mod session;
pub mod tcp;

pub use hub::{Hub, HubConfig};
pub use remote::{Remote, RemoteError, Transaction};
pub use server::{Budget, Bus, BusError, Permission, Server, ServerConfig, ServerCounters, SourceFilter};
pub use session::{Session, SessionConfig, SessionError};
