// SPDX-License-Identifier: Apache-2.0
//! A virtqueue, as the front end describes it: where it is, how it is kicked, and how the driver is called.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nacelle_slot::eventfd::{is_eventfd, signal};
use nacelle_virtio::card::Queue;
use rustix::io::{Errno, ReadWriteFlags};
use rustix::net::{AddressFamily, SendFlags};

use crate::Refusal;
use crate::memory::Memory;
use crate::protocol::RingAddress;

/// Entries of a ring at most, as the standard has it (virtio 1.2, 2.7). A card may have fewer.
const MAX_SIZE: u32 = 32_768;

/// How the driver is told that a ring has something for it.
#[derive(Debug)]
enum Call {
    Eventfd(OwnedFd),
    /// Eight bytes on a socket, as User-mode Linux has it.
    Socket(OwnedFd),
}

/// A ring.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    size: u16,
    address: Option<RingAddress>,
    /// Where the card is to begin. It can only begin a ring from its start.
    base: u16,
    kick: Option<OwnedFd>,
    call: Option<Call>,
    error: Option<OwnedFd>,
    /// The front end has set it up since it was stopped.
    pub(crate) started: bool,
    pub(crate) enabled: bool,
    /// The driver has put something into it, and the card was not told yet.
    pub(crate) kicked: bool,
    /// The card has put something into it, and the driver was not told yet.
    pub(crate) calling: bool,
}

impl Ring {
    /// Whether the card can use it.
    pub(crate) fn is_ready(&self) -> bool {
        self.started && self.enabled && self.size > 0 && self.address.is_some()
    }

    pub(crate) fn resize(&mut self, size: u32) -> Result<(), Refusal> {
        if !size.is_power_of_two() || size > MAX_SIZE {
            return Err(Refusal("the size of a ring is no power of two up to 32768"));
        }
        self.size = size as u16;
        Ok(())
    }

    pub(crate) fn place(&mut self, address: RingAddress) {
        self.address = Some(address);
    }

    /// The card can only begin at 0.
    pub(crate) fn begin_at(&mut self, base: u32) -> Result<(), Refusal> {
        if base != 0 {
            return Err(Refusal("a ring is to go on in its middle (its base is not 0), which the card cannot"));
        }
        self.base = 0;
        Ok(())
    }

    /// The ring as the card finds it.
    pub(crate) fn queue(&self, memory: &Memory) -> Result<Queue, Refusal> {
        let address = self.address.ok_or(Refusal("a ring has no addresses"))?;
        let size = u64::from(self.size);
        let find = |user: u64, len: u64, align: u64| {
            let guest = memory.guest(user, len).ok_or(Refusal("a ring is not in the memory that was given"))?;
            if guest % align == 0 { Ok(guest) } else { Err(Refusal("a part of a ring is not aligned")) }
        };
        if self.base != 0 {
            return Err(Refusal("a ring that was in use is to go on, which the card cannot: it begins at 0"));
        }
        Ok(Queue {
            size: self.size,
            descriptors: find(address.descriptors, 16 * size, 16)?,
            available: find(address.available, 6 + 2 * size, 2)?,
            used: find(address.used, 6 + 8 * size, 4)?,
        })
    }

    /// The card has stopped; what it has given back says where it would go on.
    pub(crate) fn halted(&mut self, used: Option<u16>) {
        self.base = used.unwrap_or(u16::MAX);
        self.calling = false;
    }

    /// The front end takes it back. Where the card would go on.
    pub(crate) fn stop(&mut self) -> u16 {
        self.started = false;
        self.kick = None;
        self.call = None;
        std::mem::take(&mut self.base)
    }

    /// Kicks come by this eventfd from now on.
    pub(crate) fn kick_by(&mut self, eventfd: OwnedFd) -> Result<(), Refusal> {
        if !is_eventfd(&eventfd) {
            return Err(Refusal("a ring is to be kicked by what is no eventfd"));
        }
        self.kick = Some(eventfd);
        self.started = true;
        // It may have been kicked before.
        self.kicked = true;
        Ok(())
    }

    /// The driver is called by this descriptor from now on, or not at all; and once at once, as it may have missed a call by the one before.
    pub(crate) fn call_by(&mut self, descriptor: Option<OwnedFd>) -> Result<(), Refusal> {
        self.call = match descriptor {
            None => None,
            Some(eventfd) if is_eventfd(&eventfd) => Some(Call::Eventfd(eventfd)),
            Some(socket) if is_unix_socket(&socket) => Some(Call::Socket(socket)),
            Some(_) => return Err(Refusal("a driver is to be called by what is neither an eventfd nor a socket")),
        };
        self.calling |= self.call.is_some();
        Ok(())
    }

    /// The driver is told of errors by this eventfd from now on, or not at all.
    pub(crate) fn complain_by(&mut self, eventfd: Option<OwnedFd>) -> Result<(), Refusal> {
        if eventfd.as_ref().is_some_and(|eventfd| !is_eventfd(eventfd)) {
            return Err(Refusal("a driver is to be told of errors by what is no eventfd"));
        }
        self.error = eventfd;
        Ok(())
    }

    /// What to wait for, while it is used.
    pub(crate) fn kick_fd(&self) -> Option<BorrowedFd<'_>> {
        self.kick.as_ref().map(AsFd::as_fd)
    }

    /// Takes the kicks that have come. Never waits, whoever else reads the eventfd.
    pub(crate) fn take_kick(&mut self) {
        let Some(kick) = &self.kick else { return };
        let mut times = [0; 8];
        let read = rustix::io::preadv2(kick, &mut [IoSliceMut::new(&mut times)], u64::MAX, ReadWriteFlags::NOWAIT);
        self.kicked |= read == Ok(8);
    }

    /// Whether the driver is called by a descriptor.
    pub(crate) fn has_call(&self) -> bool {
        self.call.is_some()
    }

    /// Calls the driver, if there is a way to.
    pub(crate) fn call(&mut self) {
        match &self.call {
            None => return,
            Some(Call::Eventfd(eventfd)) => signal(eventfd),
            Some(Call::Socket(socket)) => {
                let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                // One that is full has calls that were not read yet.
                let sent = rustix::net::send(socket, &1u64.to_ne_bytes(), flags);
                if sent.is_err_and(|error| error != Errno::AGAIN) {
                    self.call = None;
                }
            }
        }
        self.calling = false;
    }

    /// Tells the driver that the card has given the ring up.
    pub(crate) fn complain(&self) {
        if let Some(eventfd) = &self.error {
            signal(eventfd);
        }
    }
}

/// Whether a descriptor is a socket of this machine: nothing that is sent leaves it.
pub(crate) fn is_unix_socket(descriptor: &OwnedFd) -> bool {
    rustix::net::sockopt::socket_domain(descriptor) == Ok(AddressFamily::UNIX)
}
