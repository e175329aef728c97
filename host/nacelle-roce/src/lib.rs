// SPDX-License-Identifier: Apache-2.0
//! A RoCEv2 reliable-connection endpoint as a pure state machine.
//!
//! [`Endpoint`] is one station on an Ethernet: ARP, ICMP echo, connection management, and queue pairs with every
//! operation of the reliable connection: SEND, RDMA WRITE, RDMA READ, atomics and invalidation. It has no socket, no thread and no clock: frames and the
//! time are arguments, frames and events are results. So the same code runs over any link, and a whole network of
//! endpoints runs in one thread under a simulator.
//!
//! The caller's loop:
//!
//! 1. give every received frame to [`Endpoint::handle`];
//! 2. call [`Endpoint::poll_transmit`] until it returns `None`, and send what it writes;
//! 3. take what happened from [`Endpoint::poll_event`];
//! 4. sleep until a frame arrives or [`Endpoint::next_deadline`] comes.
//!
//! ```
//! use nacelle_roce::{Access, ConnectOptions, Endpoint, EndpointConfig, Event, Instant, RecvWr, SendWr, WcOpcode};
//!
//! let client_ip = [10, 0, 0, 1].into();
//! let server_ip = [10, 0, 0, 2].into();
//! let mut client = Endpoint::new(EndpointConfig::new([2, 0, 0, 0, 0, 1].into(), client_ip, [1; 32]));
//! let mut server = Endpoint::new(EndpointConfig::new([2, 0, 0, 0, 0, 2].into(), server_ip, [2; 32]));
//! let now = Instant::ZERO;
//!
//! // The wire: what one sends, the other receives, until nobody has anything to send.
//! fn exchange(now: Instant, a: &mut Endpoint, b: &mut Endpoint) {
//!     let mut frame = vec![0; a.frame_len().max(b.frame_len())];
//!     loop {
//!         if let Some(len) = a.poll_transmit(now, &mut frame) {
//!             let _ = b.handle(now, &frame[..len]); // the reason of a discard is counted
//!         } else if let Some(len) = b.poll_transmit(now, &mut frame) {
//!             let _ = a.handle(now, &frame[..len]);
//!         } else {
//!             return;
//!         }
//!     }
//! }
//!
//! server.listen(12345);
//! let conn = client.connect(now, server_ip, 12345, ConnectOptions::default())?;
//! exchange(now, &mut client, &mut server);
//!
//! // The server posts a receive and shares a region with this one peer, then accepts.
//! let Some(Event::ConnectRequest { conn: peer, .. }) = server.poll_event() else { panic!() };
//! let region = server.register(vec![0; 64], Access::REMOTE_WRITE, Some(peer))?;
//! server.post_recv(peer, RecvWr { id: 1, slice: None })?;
//! server.accept(now, peer, ConnectOptions::default())?;
//! exchange(now, &mut client, &mut server);
//! assert!(matches!(client.poll_event(), Some(Event::Connected { .. })));
//! assert!(matches!(server.poll_event(), Some(Event::Connected { .. })));
//!
//! // Address and key travel in a message of the application; here they are just known.
//! client.post_send(conn, SendWr::write_imm(7, &b"hello"[..], region.addr, region.rkey, 42))?;
//! exchange(now, &mut client, &mut server);
//!
//! let Some(Event::Completion(done)) = server.poll_event() else { panic!() };
//! assert_eq!((done.opcode, done.imm), (WcOpcode::RecvWrite, Some(42)));
//! assert_eq!(&server.region(region.id).unwrap()[..5], b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod cc;
mod cm;
mod config;
mod conn;
mod counters;
mod endpoint;
mod error;
mod event;
mod netif;
mod qp;
mod region;
mod time;

pub use cc::Congestion;
pub use config::{AcceptLimits, ArpConfig, ConnectOptions, EndpointConfig};
pub use conn::ConnId;
pub use counters::{Counters, QpCounters};
pub use endpoint::Endpoint;
pub use error::{ConnectError, Discard, DomainError, PostError, RegisterError};
pub use event::{
    Completion, ConnInfo, ConnStats, ConnectFailure, DisconnectReason, Event, Phase, Traffic, WcOpcode, WcStatus,
};
pub use qp::{Data, QpError, QpModify, QpState, RecvWr, Rtr, Rts, SendOp, SendWr};
pub use region::{Access, ProtectionDomain, Region, RegionId, RegionInfo, RegionSlice, Scope};
pub use time::Instant;

pub use nacelle_wire as wire;
