// SPDX-License-Identifier: Apache-2.0
//! The side of the device: what it does when it is accessed.

use std::ops::RangeInclusive;
use std::time::Duration;

use rustix::io::Errno;

use crate::config_space::ConfigEvent;
use crate::dma::Fault;
use crate::pages::Access;
use crate::server::Host;

/// An access that the function has not answered yet. No two have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub(crate) u64);

/// An access to the client's memory that waits for the client. No two of one connection have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DmaToken(pub(crate) u64);

/// A transfer between the function and the client's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// It is done.
    Done,
    /// It waits for the client; [`Function::dma_done`] tells its end.
    Later(DmaToken),
}

/// An access to a BAR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BarAccess {
    /// Which BAR.
    pub bar: u8,
    /// Bytes from its begin; all of the access lies in it.
    pub offset: u64,
    /// What to complete, if the answer is [`Answer::Later`].
    pub token: Token,
}

/// When an access is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Now: it is done, and what was read is there.
    Now,
    /// By [`Host::complete`]. Nothing that the client sends is worked on before.
    Later,
}

/// Why a reset is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetCause {
    /// A message of the client.
    Client,
    /// Initiate Function Level Reset, in the configuration space.
    FunctionLevel,
}

/// A PCI Express function, as its slot sees it. No method waits: an access whose answer takes time is completed later.
///
/// What lies in the MSI-X table, in the pending bits, and in parts of a BAR that are mapped, never comes here.
pub trait Function {
    /// The client reads bytes of a BAR, which fill `into` if the answer is now.
    ///
    /// # Errors
    /// What the client is told.
    fn bar_read(&mut self, host: &mut Host<'_>, access: BarAccess, into: &mut [u8]) -> Result<Answer, Errno>;

    /// The client writes bytes of a BAR.
    ///
    /// # Errors
    /// As [`bar_read`](Self::bar_read).
    fn bar_write(&mut self, host: &mut Host<'_>, access: BarAccess, bytes: &[u8]) -> Result<Answer, Errno>;

    /// Does what there is to do at `now`: the begin of each [`Server::poll`](crate::Server::poll).
    fn step(&mut self, _host: &mut Host<'_>, _now: Duration) {}

    /// Software has changed a setting; never a function level reset, which is [`reset`](Self::reset).
    fn config_event(&mut self, _host: &mut Host<'_>, _event: ConfigEvent) {}

    /// All state goes to that after power-on. Memory of the client stays mapped; no access of before is done any more.
    ///
    /// # Errors
    /// As [`bar_read`](Self::bar_read).
    fn reset(&mut self, host: &mut Host<'_>, cause: ResetCause, token: Token) -> Result<Answer, Errno>;

    /// The client gives memory, which the function may access from now on.
    ///
    /// # Errors
    /// What the client is told, if the function cannot use it. Then it is not mapped.
    fn mapping(&mut self, _host: &mut Host<'_>, _range: RangeInclusive<u64>, _access: Access) -> Result<(), Errno> {
        Ok(())
    }

    /// The client takes memory away. The answer says that no access to it is under way any more; until then it can be accessed.
    fn unmapping(&mut self, _host: &mut Host<'_>, _range: RangeInclusive<u64>, _token: Token) -> Answer {
        Answer::Now
    }

    /// A transfer that waited for the client has ended, with the bytes that were read.
    fn dma_done(&mut self, _host: &mut Host<'_>, _token: DmaToken, _result: Result<&[u8], Fault>) {}

    /// A doorbell was rung by way of its eventfd, so many times since the last time.
    fn doorbell(&mut self, _host: &mut Host<'_>, _index: usize, _times: u64) {}

    /// A client has come (`true`) or gone. What it asked for and was not answered is forgotten then; the state stays otherwise.
    fn client(&mut self, _host: &mut Host<'_>, _present: bool) {}
}
