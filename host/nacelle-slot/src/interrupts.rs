// SPDX-License-Identifier: Apache-2.0
//! The vectors of MSI-X: where each is signalled, and what waits because it may not be.
//!
//! Clients of VFIO keep the table in the BAR themselves and give an eventfd for each vector; who may send is in the configuration
//! space. A vector that is raised and may not be sent is pending (PCI Express base specification 7.7.2.4) until it may.

use std::os::fd::OwnedFd;

use crate::config_space::Settings;
use crate::eventfd::signal;

/// A function has fewer vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no such vector")]
pub struct NoVector;

#[derive(Debug, Default)]
struct Vector {
    eventfd: Option<OwnedFd>,
    masked: bool,
    pending: bool,
}

/// All vectors of a function.
#[derive(Debug)]
pub(crate) struct Interrupts {
    vectors: Vec<Vector>,
}

/// Whether MSI-X as a whole may send: it is a memory write of a bus master.
fn may_send(settings: &Settings) -> bool {
    settings.msix_enable && !settings.msix_mask && settings.bus_master
}

impl Interrupts {
    pub(crate) fn new(count: u16) -> Self {
        Self { vectors: (0..count).map(|_| Vector::default()).collect() }
    }

    /// Raises a vector.
    pub(crate) fn raise(&mut self, vector: u16, settings: &Settings) -> Result<(), NoVector> {
        let vector = self.vectors.get_mut(usize::from(vector)).ok_or(NoVector)?;
        vector.pending = true;
        vector.send(settings);
        Ok(())
    }

    /// Sends what may be sent by now.
    pub(crate) fn settle(&mut self, settings: &Settings) {
        if may_send(settings) {
            for vector in self.vectors.iter_mut().filter(|vector| vector.pending) {
                vector.send(settings);
            }
        }
    }

    /// Gives a vector an eventfd, or none.
    pub(crate) fn assign(&mut self, vector: usize, eventfd: Option<OwnedFd>) {
        if let Some(vector) = self.vectors.get_mut(vector) {
            vector.eventfd = eventfd;
        }
    }

    pub(crate) fn mask(&mut self, vector: usize, masked: bool) {
        if let Some(vector) = self.vectors.get_mut(vector) {
            vector.masked = masked;
        }
    }

    /// Whether any vector has an eventfd.
    pub(crate) fn any_assigned(&self) -> bool {
        self.vectors.iter().any(|vector| vector.eventfd.is_some())
    }

    /// Takes back eventfds and masks. What is pending stays.
    pub(crate) fn release(&mut self) {
        for vector in &mut self.vectors {
            vector.eventfd = None;
            vector.masked = false;
        }
    }

    /// Forgets what is pending.
    pub(crate) fn reset(&mut self) {
        for vector in &mut self.vectors {
            vector.pending = false;
        }
    }

    /// Bytes of the pending bits, from `offset` on.
    pub(crate) fn pending_bits(&self, offset: u64, into: &mut [u8]) {
        for (byte, at) in into.iter_mut().zip(offset..) {
            *byte = (0..8).fold(0, |bits, bit| {
                let vector = usize::try_from(at).ok().and_then(|at| self.vectors.get(at * 8 + bit));
                bits | u8::from(vector.is_some_and(|vector| vector.pending)) << bit
            });
        }
    }
}

impl Vector {
    fn send(&mut self, settings: &Settings) {
        if let Some(eventfd) = self.eventfd.as_ref().filter(|_| !self.masked && may_send(settings)) {
            signal(eventfd);
            self.pending = false;
        }
    }
}
