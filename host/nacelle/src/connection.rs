// SPDX-License-Identifier: Apache-2.0
//! Connections that several calls share: each call has a context of its own.

use std::sync::{Arc, Mutex, PoisonError};

use nacelle_manage::LinkKind;
use nacelle_wire::cm::RejReason;
use nacelle_wire::extensions::{Agreement, Extensions};
use nacelle_wire::mrsp::FunctionCode;

use crate::call::{Call, CallOptions, ChainStep, Program};
use crate::channel::Channel;
use crate::device::Shared;
use crate::{Error, Region, Step};

/// How a connection for several calls is opened.
#[derive(Debug, Clone)]
pub struct ConnectionOptions {
    /// Contexts that are asked for: as many calls run side by side. The device may give fewer, and one that does not know
    /// contexts gives 1. A device divides the regions of a connection among its contexts. Default: 4.
    pub contexts: u8,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self { contexts: 4 }
    }
}

/// A connection to a device, for several calls. Clones are the same connection; it ends when the last of them, and the last
/// call on it, is dropped.
#[derive(Clone)]
pub struct Connection {
    line: Arc<Line>,
}

impl Connection {
    pub(crate) fn open(shared: Arc<Shared>, options: &ConnectionOptions) -> Result<Self, Error> {
        if options.contexts == 0 {
            return Err(Error::invalid("a connection needs at least one context"));
        }
        let extensions = Extensions::CONTEXTS | Extensions::LONG_SET_UP | Extensions::WINDOWS;
        let line = Line::new(shared, Agreement::new(extensions, options.contexts));
        line.channel()?;
        Ok(Self { line: Arc::new(line) })
    }

    /// Creates a call of `function` on `regions`, in a free context.
    ///
    /// # Errors
    /// [`Error::NoFreeContext`] if all have calls; else as [`Device::create`](crate::Device::create).
    pub fn create(&self, function: FunctionCode, regions: Vec<Region>) -> Result<Call, Error> {
        self.create_with(function, regions, &CallOptions::default())
    }

    /// As [`Connection::create`], with options.
    ///
    /// # Errors
    /// As [`Connection::create`].
    pub fn create_with(
        &self,
        function: FunctionCode,
        regions: Vec<Region>,
        options: &CallOptions,
    ) -> Result<Call, Error> {
        Call::create(Arc::clone(&self.line), Program::Function(function), regions, options)
    }

    /// Creates a call of a chain: the device runs the steps one after the other, and writes the outputs once, at the end.
    /// Internal regions come after all others.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the device does not know chains; [`Error::InvalidArgument`] if there are no steps, more than 4,
    /// or one names regions that there are not; else as [`Connection::create`].
    pub fn create_chain(
        &self,
        steps: &[ChainStep],
        regions: Vec<Region>,
        options: &CallOptions,
    ) -> Result<Call, Error> {
        Call::create(Arc::clone(&self.line), Program::Chain(steps.to_vec()), regions, options)
    }

    pub(crate) fn line(&self) -> &Arc<Line> {
        &self.line
    }

    /// The connection itself, ended or not.
    pub(crate) fn current(&self) -> Option<Arc<Channel>> {
        self.line.lock().clone()
    }

    /// How many calls the connection can have at a time.
    #[must_use]
    pub fn contexts(&self) -> usize {
        self.line.agreement().map_or(1, |agreement| usize::from(agreement.contexts.max(1)))
    }

    /// How many more calls can be created now.
    #[must_use]
    pub fn free_contexts(&self) -> usize {
        let current = self.line.lock();
        current.as_ref().map_or(0, |channel| channel.shared.engine.lock().inbox.session(channel.id).free_contexts())
    }

    /// Whether calls can be cancelled without ending the connection.
    #[must_use]
    pub fn can_cancel(&self) -> bool {
        self.line.has(Extensions::CONTEXTS)
    }

    /// Whether there are chains, regions of 2^32 bytes and more, and deadlines that the device keeps.
    #[must_use]
    pub fn has_long_set_up(&self) -> bool {
        self.line.has(Extensions::LONG_SET_UP)
    }

    /// Ends the connection now. Calls that run on it end with [`Error::Closed`].
    ///
    /// # Errors
    /// [`Error::Link`] if the wire is broken.
    pub fn close(&self) -> Result<(), Error> {
        match &*self.line.lock() {
            Some(channel) => Ok(channel.close(|_| {})?),
            None => Ok(()),
        }
    }
}

/// Where calls get their contexts: a connection, and after its loss the next one.
pub(crate) struct Line {
    pub(crate) shared: Arc<Shared>,
    /// What is offered to the device.
    offer: Agreement,
    current: Mutex<Option<Arc<Channel>>>,
}

impl Line {
    pub(crate) fn new(shared: Arc<Shared>, offer: Agreement) -> Self {
        Self { shared, offer, current: Mutex::new(None) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<Channel>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn agreement(&self) -> Option<Agreement> {
        self.lock().as_ref().map(|channel| channel.agreement)
    }

    fn has(&self, extension: Extensions) -> bool {
        self.agreement().is_some_and(|agreement| agreement.extensions.contains(extension))
    }

    /// The connection; a new one if there is none, or if it has ended and is to be opened again.
    fn channel(&self) -> Result<Arc<Channel>, Error> {
        let mut current = self.lock();
        if let Some(channel) = &*current
            && (!self.shared.reconnect || !channel.has_ended())
        {
            return Ok(Arc::clone(channel));
        }
        let open = || Channel::open(Arc::clone(&self.shared), self.offer);
        let opened = match open() {
            // A device that has restarted may name its queue pairs as before, and the connection that was lost is then in the way
            // of the new one, once.
            Err(Error::Protocol { step: Step::Connect, .. }) if current.is_some() => open(),
            // What it shares is its memory no more: the link is opened again with the next attempt.
            Err(Error::Unreachable { .. }) if current.is_some() && self.shared.link == LinkKind::Shm => open(),
            Err(Error::Refused { reason, .. })
                if current.is_some() && RejReason(reason) == RejReason::STALE_CONNECTION =>
            {
                open()
            }
            opened => opened,
        };
        Ok(Arc::clone(current.insert(Arc::new(opened?))))
    }

    /// Takes a context for a call.
    ///
    /// # Errors
    /// [`Error::NoFreeContext`], or those of opening a connection.
    pub(crate) fn take_context(&self) -> Result<(Arc<Channel>, u8), Error> {
        let channel = self.channel()?;
        let (ip, contexts) = (self.shared.ip, channel.agreement.contexts.max(1));
        match channel.take_context() {
            Some(context) => Ok((channel, context)),
            None => Err(Error::NoFreeContext { ip, contexts }),
        }
    }

    /// Whether a call has the connection for itself.
    pub(crate) fn is_private(&self) -> bool {
        self.offer.contexts == 0
    }
}
