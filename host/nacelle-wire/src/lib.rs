// SPDX-License-Identifier: Apache-2.0
//! Every header and message that Nacelle puts on the wire, one module a protocol.
//!
//! This crate is the one place where bytes are named. Headers are plain structs in network order that lie directly
//! over a frame ([`zerocopy`]); multi-bit fields have accessors with the standard's names. Nothing here allocates,
//! keeps state or contains unsafe code, and no input makes it panic: what is wrong with a frame comes back as a
//! [`ParseError`].
//!
//! [`transport::Packet`] is what the transport sees of a packet, and [`RocePacket`] the whole way from Ethernet to ICRC, in
//! both directions:
//!
//! ```
//! use nacelle_wire::{RocePacket, RoceHeaders, Qpn, Psn, bth::{Bth, Opcode}, roce::Flow, transport::Ext};
//!
//! let flow = Flow::new([2, 0, 0, 0, 0, 1].into(), [2, 0, 0, 0, 0, 2].into(), [10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 0xc001);
//! let mut headers = RoceHeaders::new(&flow, Bth::new(Opcode::SendOnly, Qpn::new(17), Psn::new(5)), Ext::None);
//! headers.bth.set_ack_req(true);
//!
//! let mut frame = [0; 128];
//! let len = headers.write(b"hello", &mut frame)?;
//!
//! let packet = RocePacket::parse(&frame[..len])?;
//! assert_eq!(packet.payload, b"hello");
//! assert_eq!(packet.headers.bth.psn(), Psn::new(5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

pub mod admission;
pub mod arp;
pub mod bth;
pub mod calls;
pub mod cm;
pub mod description;
mod error;
pub mod ethernet;
pub mod extensions;
pub mod icmp;
pub mod icrc;
pub mod ipbus;
pub mod ipv4;
pub mod kernel;
pub mod mrsp;
pub mod roce;
pub mod transport;
mod types;
pub mod udp;

pub use description::{DescriptionLocation, LoadRecord};
pub use error::{BuildError, ParseError};
pub use ethernet::MacAddr;
pub use roce::{RoceHeaders, RocePacket};
pub use types::{Ecn, Psn, Qpn, RemoteAddr, Rkey, U24};
