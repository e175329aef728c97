// SPDX-License-Identifier: Apache-2.0
//! What a function reaches from its slot: the client's memory, interrupts, and the answers that it owes.

use rustix::io::Errno;
use zerocopy::IntoBytes;

use crate::channel::{Descriptors, Message};
use crate::config_space::Settings;
use crate::dma::{Fault, Reach};
use crate::function::{DmaToken, Function, Token, Transfer};
use crate::interrupts::NoVector;
use crate::protocol::{DmaAccess, Header, command, flag, split};

use super::State;
use super::link::{InFlight, What};

/// The slot, as the function in it sees it.
#[derive(Debug)]
pub struct Host<'a>(pub(super) &'a mut State);

impl Host<'_> {
    /// Copies bytes of the client's memory into `into`, at once if the client has shared it, or asks the client for them.
    ///
    /// # Errors
    /// If that cannot be done. Then it has no effect.
    pub fn dma_read(&mut self, address: u64, into: &mut [u8]) -> Result<Transfer, Fault> {
        self.may_send()?;
        match self.0.dma.read(address, into)? {
            Reach::Done => Ok(Transfer::Done),
            Reach::ByMessage => self.request(command::DMA_READ, address, into.len(), &[]),
        }
    }

    /// Copies `bytes` into the client's memory, at once if the client has shared it, or asks the client to.
    ///
    /// # Errors
    /// As [`dma_read`](Self::dma_read).
    pub fn dma_write(&mut self, address: u64, bytes: &[u8]) -> Result<Transfer, Fault> {
        self.may_send()?;
        match self.0.dma.write(address, bytes)? {
            Reach::Done => Ok(Transfer::Done),
            Reach::ByMessage => self.request(command::DMA_WRITE, address, bytes.len(), bytes),
        }
    }

    /// Raises an interrupt. It is pending while it may not be sent.
    ///
    /// # Errors
    /// If there is no such vector.
    pub fn interrupt(&mut self, vector: u16) -> Result<(), NoVector> {
        let settings = self.0.space.settings();
        self.0.interrupts.raise(vector, &settings)
    }

    /// Answers an access, with the bytes that were read, or none. Says whether it was still waited for: not if the client has gone or
    /// it took too long.
    pub fn complete(&mut self, token: Token, result: Result<&[u8], Errno>) -> bool {
        self.0.finish(token, result)
    }

    /// What software has set.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.0.space.settings()
    }

    /// Bytes of a BAR now.
    #[must_use]
    pub fn bar_size(&self, bar: u8) -> u64 {
        self.0.space.bar_size(bar)
    }

    fn may_send(&self) -> Result<(), Fault> {
        if self.0.space.settings().bus_master { Ok(()) } else { Err(Fault::BusMaster) }
    }

    fn request(&mut self, command: u16, address: u64, len: usize, bytes: &[u8]) -> Result<Transfer, Fault> {
        if !self.0.config.dma_messages {
            return Err(Fault::Unreachable);
        }
        let token = self.0.token();
        let deadline = self.0.now + self.0.config.client_timeout;
        let link = self.0.link.as_mut().ok_or(Fault::NoClient)?;
        if len > link.peer.transfer.min(self.0.config.max_transfer) {
            return Err(Fault::TooLong);
        }
        if link.in_flight.len() >= self.0.config.max_in_flight {
            return Err(Fault::Busy);
        }
        let id = link.request_id();
        let access = DmaAccess { address, count: len as u64 };
        let header = Header { id, command, ..Header::default() };
        link.channel.queue(header, &[access.as_bytes(), bytes], Descriptors::new());
        link.in_flight.push(InFlight { id, token, command, address, len, deadline });
        self.0.counters.dma_messages += 1;
        Ok(Transfer::Later(DmaToken(token)))
    }
}

impl State {
    /// The client has answered a request of the function.
    pub(super) fn reply_of_client<F: Function + ?Sized>(&mut self, message: Message, function: &mut F) {
        let Some(link) = &mut self.link else { return };
        let id = message.header.id;
        let Some(place) = link.in_flight.iter().position(|request| request.id == id) else {
            self.counters.stray_replies += 1;
            link.channel.give_back(message);
            return;
        };
        let request = link.in_flight.swap_remove(place);
        let result = answer(&request, &message);
        function.dma_done(&mut Host(self), DmaToken(request.token), result);
        self.settle_unmap();
        if let Some(link) = &mut self.link {
            link.channel.give_back(message);
        }
    }

    /// Ends requests that the client has not answered in time.
    pub(super) fn expire_requests<F: Function + ?Sized>(&mut self, function: &mut F) -> bool {
        let mut any = false;
        let now = self.now;
        while let Some(link) = &mut self.link
            && let Some(place) = link.in_flight.iter().position(|request| request.deadline <= now)
        {
            let request = link.in_flight.swap_remove(place);
            self.counters.dma_timeouts += 1;
            any = true;
            function.dma_done(&mut Host(self), DmaToken(request.token), Err(Fault::Timeout));
        }
        if any {
            self.settle_unmap();
        }
        any
    }

    /// Unmaps what the function has left, once the client has answered all that concerns it.
    fn settle_unmap(&mut self) {
        let pending = self.link.as_ref().and_then(|link| link.pending.as_ref());
        if let Some(pending) = pending
            && matches!(pending.what, What::Unmap { left: true, .. })
        {
            self.finish(Token(pending.token), Ok(&[]));
        }
    }
}

/// What an answer of the client says.
fn answer<'a>(request: &InFlight, message: &'a Message) -> Result<&'a [u8], Fault> {
    let Header { command, flags, .. } = message.header;
    if command != request.command || flags & flag::ERROR != 0 || message.too_long {
        return Err(Fault::Refused);
    }
    let said = split::<DmaAccess>(message.payload());
    if command == command::DMA_WRITE {
        // Some answer a write with a count of 4 bytes, as the specification's table has it, some with nothing.
        let whole = said.is_none_or(|(access, _)| access.count == request.len as u64);
        return if whole { Ok(&[]) } else { Err(Fault::Refused) };
    }
    let (access, bytes) = said.ok_or(Fault::Refused)?;
    let asked = DmaAccess { address: request.address, count: request.len as u64 };
    if access == asked && bytes.len() == request.len { Ok(bytes) } else { Err(Fault::Refused) }
}
