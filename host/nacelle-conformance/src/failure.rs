// SPDX-License-Identifier: Apache-2.0
//! Why a rule does not hold.

use crate::station::Packet;
use core::net::Ipv4Addr;
use nacelle_link::LinkError;
use nacelle_wire::{BuildError, ParseError, cm::RejReason};

/// Why a rule does not hold, or could not be tried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The wire is broken.
    #[error("the wire failed: {0}")]
    Link(#[source] LinkError),
    /// The suite built a packet wrongly.
    #[error("a packet could not be built: {0}")]
    Build(#[from] BuildError),
    /// What came cannot be read.
    #[error("an answer could not be read: {0}")]
    Parse(#[from] ParseError),
    /// ARP got no answer.
    #[error("no host answers for {0}; is the device running, and on this wire?")]
    NoDevice(Ipv4Addr),
    /// The device did not do what it should.
    #[error("no {0} came in time")]
    Missing(&'static str),
    /// It did something else.
    #[error("expected {wanted}, got {got}")]
    Unexpected {
        /// What the rule asks for.
        wanted: String,
        /// What came.
        got: String,
    },
    /// The REQ was refused.
    #[error("the device refused the connection: {}", .0.text())]
    Refused(RejReason),
    /// The rule cannot be tried here.
    #[error("{0}")]
    NotTried(&'static str),
    /// Bytes or numbers are not what they should be.
    #[error("{0}")]
    Content(String),
}

impl Failure {
    /// `wanted` should have come instead of this packet.
    pub(crate) fn unexpected(wanted: impl Into<String>, packet: &Packet) -> Self {
        let got = format!(
            "{:?} of PSN {:#x}, {:?}, {} bytes",
            packet.opcode,
            packet.headers.bth.psn().get(),
            packet.headers.ext,
            packet.payload.len()
        );
        Self::Unexpected { wanted: wanted.into(), got }
    }
}

/// Fails with this text unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)*) => {
        if !$condition {
            return Err($crate::failure::Failure::Content(format!($($text)*)));
        }
    };
}
pub(crate) use ensure;
