// SPDX-License-Identifier: Apache-2.0
//! A driver in user space for virtio network cards (virtio 1.2, 5.1), over any way to a PCI function ([`nacelle_pci::PciDevice`]).
//!
//! - [`VirtioLink`] is the whole driver: a [`Link`](nacelle_link::Link) of Ethernet frames, as a TAP device or a packet socket is one.
//! - [`card`] is the card alone, for a program whose rings are another's: a back end of vhost-user.
//!
//! The registers lie where docs/reference/virtio-net.md has them. See docs/how-to/use-the-device-as-a-network-card.md.

#![forbid(unsafe_code)]

pub mod card;
mod link;
mod ring;

pub use link::{LinkConfig, VirtioError, VirtioLink};
pub use ring::BrokenRing;
