// SPDX-License-Identifier: Apache-2.0
//! A virtio network card behind vhost-user: a guest (User-mode Linux, QEMU) or DPDK finds it at a UNIX socket and uses it as its own.
//!
//! The card is a PCI function with the registers of virtio 1.2, however it is reached ([`nacelle_pci::PciDevice`]). It reads and writes
//! the guest's rings and buffers itself. The back end is its driver, and does what a guest's driver would do if it had the registers:
//! it gives the card the guest's memory, agrees on features, says where the rings are, hands on notifications and interrupts.
//!
//! [`Backend`] has a socket, one front end at a time, and its own thread: whatever a front end does, nothing else waits for it. See
//! docs/reference/vhost-user.md.

#![forbid(unsafe_code)]

mod backend;
mod memory;
pub mod protocol;
mod ring;
mod session;

use nacelle_pci::PciError;
use nacelle_virtio::card::StartError;

pub use backend::{Backend, BackendConfig, Counters};
pub use nacelle_slot::ServerError;
pub use nacelle_slot::listener::Listener;
pub use nacelle_virtio::card::{MAX_RINGS, feature};

/// Why a request is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refusal(pub(crate) &'static str);

/// Why a request was not done: what was asked for cannot be, or the card failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Card(#[from] PciError),
}

impl From<StartError> for Trouble {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Pci(error) => Self::Card(error),
            StartError::Refused(why) => Refusal(why).into(),
        }
    }
}

/// Why there is no back end, or no longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The card does not do what it should.
    #[error("the network card cannot be used: {0}")]
    Card(#[from] PciError),
    /// The system.
    #[error("the network card cannot be served: {0}")]
    System(#[from] std::io::Error),
}
