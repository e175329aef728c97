// SPDX-License-Identifier: Apache-2.0
//! A RoCEv2 reliable-connection endpoint as a pure state machine.
//!
//! [`Transport`] is RoCEv2 proper, over UDP datagrams of IPv4 or IPv6: connection management, and queue pairs with every
//! operation of the reliable connection: SEND, RDMA WRITE, RDMA READ, atomics and invalidation. [`Interface`] is the network
//! below it on an Ethernet: IPv4, ARP, ICMP echo; [`UdpInterface`] is that of a UDP socket. [`Endpoint`] is a transport and
//! one of them ([`NetworkLayer`]). They meet in [`Segment`] and [`Transmit`] (compare `Medium` and `DeviceCapabilities` of
//! smoltcp, and `Transmit` of quinn-udp).
//!
//! None of them has a socket, a thread or a clock: frames or segments and the time are arguments, frames or segments and
//! events are results. So the same code runs over any link, and a whole network of endpoints runs in one thread under a
//! simulator. Registered memory stays where it is and is accessed by bounds-checked copies ([`nacelle_memory`]).
//!
//! The caller's loop around an endpoint (the crate `nacelle-driver` has it over a link):
//!
//! 1. give every received frame to [`Endpoint::handle`];
//! 2. call [`Endpoint::poll_transmit`] until it returns `None`, and send what it writes;
//! 3. take what happened from [`Transport::poll_event`] and [`Interface::poll_event`];
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
//! // The wire: what one sends, the other receives, until neither has anything to send.
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
//! server.transport.listen(12345);
//! let conn = client.connect(now, server_ip, 12345, ConnectOptions::default())?;
//! exchange(now, &mut client, &mut server);
//!
//! // The server posts a receive and shares a region with this one peer, then accepts.
//! let Some(Event::ConnectRequest { conn: peer, .. }) = server.transport.poll_event() else { panic!() };
//! let region = server.transport.register(vec![0; 64], Access::REMOTE_WRITE, Some(peer))?;
//! server.transport.post_recv(peer, RecvWr { id: 1, slice: None })?;
//! server.transport.accept(now, peer, ConnectOptions::default())?;
//! exchange(now, &mut client, &mut server);
//! assert!(matches!(client.transport.poll_event(), Some(Event::Connected { .. })));
//! assert!(matches!(server.transport.poll_event(), Some(Event::Connected { .. })));
//!
//! // Applications send address and key in a message; here they are known.
//! client.transport.post_send(conn, SendWr::write_imm(7, &b"hello"[..], region.addr, region.rkey, 42))?;
//! exchange(now, &mut client, &mut server);
//!
//! let Some(Event::Completion(done)) = server.transport.poll_event() else { panic!() };
//! assert_eq!((done.opcode, done.imm), (WcOpcode::RecvWrite, Some(42)));
//! let memory = server.transport.deregister(region.id).unwrap().into_vec()?;
//! assert_eq!(&memory[..5], b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod cc;
mod cm;
mod config;
mod conn;
mod counters;
mod deadlines;
mod endpoint;
mod error;
mod event;
mod interface;
mod layer;
mod path;
mod qp;
mod region;
mod time;
mod transport;
mod udp;
mod work;

pub use cc::Congestion;
pub use config::{AcceptLimits, ArpConfig, ConnectOptions, EndpointConfig, InterfaceConfig, TransportConfig};
pub use conn::ConnId;
pub use counters::{Counters, InterfaceCounters, QpCounters, TransportCounters};
pub use endpoint::Endpoint;
pub use error::{ConnectError, Discard, DomainError, PathError, PostError, RegisterError};
pub use event::{
    Completion, ConnInfo, ConnStats, ConnectFailure, DisconnectReason, Event, NetworkEvent, Phase, Traffic, WcOpcode,
    WcStatus,
};
pub use interface::Interface;
pub use layer::{AnyInterface, NetworkLayer, Received, Sent};
pub use path::{Batch, Hop, Network, Path, Segment, Transmit};
pub use qp::{QpError, QpModify, QpState, Rtr, Rts};
pub use region::{Access, ProtectionDomain, Region, RegionId, RegionInfo, RegionSlice, Scope};
pub use time::Instant;
pub use transport::{SendMark, Transport};
pub use udp::{Datagrams, Numbering, UdpInterface};
pub use work::{Data, RecvWr, SendOp, SendWr};

pub use nacelle_memory as memory;
pub use nacelle_wire as wire;
