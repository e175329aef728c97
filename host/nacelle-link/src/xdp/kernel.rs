// SPDX-License-Identifier: Apache-2.0
//! What the link asks of the kernel. All unsafe code that is the AF_XDP link's alone is in this module.

mod bpf;
mod memory;
mod socket;

#[cfg(test)]
pub(super) use bpf::try_program;
pub(super) use bpf::{Attachment, Program, Sockets};
pub(super) use socket::{Room, Socket};

/// Bytes of a place for a frame, a page: the kernel takes no more.
const CHUNK: usize = 4096;
/// What the kernel keeps of it (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// The longest frame that fits.
pub(super) const LONGEST: usize = CHUNK - HEADROOM;
