// SPDX-License-Identifier: Apache-2.0
//! The loop between a medium and an endpoint.
//!
//! Endpoints are pure: they have no socket and no clock. Here is what moves their packets, in three layers, of which each
//! program takes the highest that fits:
//!
//! - [`Port`] owns an endpoint, its link, its clock and the events that no one has taken yet: for a program with one thread.
//! - [`Pump`] is the loop itself, over a [`Medium`] and any [`Station`]: for a station that is shared between threads (the client
//!   library), or is no endpoint (a simulated device).
//! - [`Clock`] converts between the system's time and an endpoint's.
//!
//! A medium is a link of Ethernet frames ([`Frames`]), a UDP socket ([`DatagramMedium`]), or either ([`AnyMedium`]).
//!
//! One turn of the loop: what was received goes to the station, up to a limit; the station works; what it has is sent, up to a
//! limit, because the other side may wait for room too. If nothing moved, the loop sleeps until the link is readable, a timer
//! of the station or the link expires, or another descriptor of the program is readable. Over a UDP socket it looks for more
//! for some microseconds first: waking a thread takes longer than an answer does. It never sleeps past a timer.
#![forbid(unsafe_code)]

mod capture;
mod clock;
mod datagrams;
mod medium;
mod port;
mod pump;
mod spin;

pub use clock::{Clock, ClockHand};
pub use datagrams::DatagramMedium;
pub use medium::{AnyMedium, Frames, Medium};
pub use port::Port;
pub use pump::{Limits, Pump, Station};
pub use spin::Spin;
