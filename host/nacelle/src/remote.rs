// SPDX-License-Identifier: Apache-2.0
//! Memory of a peer that this side writes and reads by RDMA, without a call: device memory, or a window of a host.

mod transfer;

use std::sync::Arc;
use std::time::Duration;

use nacelle_memory::Memory;
use nacelle_roce::{PostError, SendOp, SendWr};
use nacelle_wire::calls::{self, Context, LongRegion, MAX_WRITE, Request, SetUp};
use nacelle_wire::extensions::Extensions;
use nacelle_wire::mrsp::{AarRegion, CallImm, FunctionCode, Message, RegionFlags, WindowNumber};
use nacelle_wire::{RemoteAddr, Rkey};

use crate::channel::Channel;
use crate::connection::Line;
use crate::engine::State;
use crate::exchange::Answer;
use crate::inbox::Timing;
use crate::slot::{After, Run, Then};
use crate::wake::Wake;
use crate::{Connection, Error, Step};
pub use transfer::Transfer;

/// Which way the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    ToPeer,
    FromPeer,
}

impl Way {
    fn step(self) -> Step {
        match self {
            Self::ToPeer => Step::Inputs,
            Self::FromPeer => Step::Outputs,
        }
    }
}

/// What a piece of memory at the peer is a part of.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Memory that the peer has for this connection.
    Own,
    Window(WindowNumber, Way),
}

impl Kind {
    fn flags(self) -> RegionFlags {
        match self {
            // Of an input a device returns nothing by itself.
            Self::Own | Self::Window(_, Way::ToPeer) => RegionFlags::INPUT,
            Self::Window(_, Way::FromPeer) => RegionFlags::OUTPUT,
        }
    }

    /// The region request.
    fn request(self, size: u64, is_long: bool, message: &mut [u8]) -> Result<usize, nacelle_wire::BuildError> {
        let (flags, window) = match self {
            Self::Own => (self.flags(), None),
            Self::Window(number, _) => (self.flags(), Some(number)),
        };
        match (u32::try_from(size), window) {
            (Ok(size), _) => {
                let requested = window.map_or(0, WindowNumber::to_requested);
                Message::Aar(&[AarRegion::parameter(flags, requested, RemoteAddr(0), Rkey(0), size)]).write(message)
            }
            (Err(_), _) if !is_long => Err(nacelle_wire::BuildError::TooLong),
            (Err(_), Some(number)) => {
                let regions = [LongRegion::of_window(flags, number, size)];
                SetUp { deadline_ms: 0, steps: &[], regions: &regions }.write(message)
            }
            (Err(_), None) => {
                let regions = [LongRegion::parameter(flags, RemoteAddr(0), Rkey(0), size)];
                SetUp { deadline_ms: 0, steps: &[], regions: &regions }.write(message)
            }
        }
    }
}

/// Memory of a peer, in a context of a connection: made by [`Connection::remote`], [`Connection::window_to_write`] and
/// [`Connection::window_to_read`]. Addresses and keys were exchanged when it was made, so each transfer is one RDMA WRITE or READ.
///
/// Any number of transfers may be under way at a time, from any thread; they take effect in the order in which they were begun. A transfer
/// that the peer refuses ends the connection, as the standard has it.
///
/// Dropping it gives the context back, when its last transfer has ended.
#[derive(Clone)]
pub struct Remote {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    channel: Arc<Channel>,
    context: u8,
    /// Notified when something has happened on the context.
    wake: Arc<Wake>,
    address: RemoteAddr,
    rkey: Rkey,
    size: u64,
    kind: Kind,
}

impl Connection {
    /// `size` bytes of the peer's memory, for this alone, all zero: in a device without calling a function.
    ///
    /// # Errors
    /// [`Error::NoFreeContext`] if all contexts are in use; [`Error::RegionsRefused`] by the peer; [`Error::Unsupported`] if only a long
    /// set-up can ask for that much, and the peer has none; [`Error::Timeout`] or [`Error::Lost`] if it falls silent.
    pub fn remote(&self, size: u64) -> Result<Remote, Error> {
        Remote::open(self.line(), Kind::Own, size)
    }

    /// The first `size` bytes of the peer's window `number` to be written: memory that the peer has for this alone, all zero.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the peer has no windows; else as [`Connection::remote`].
    pub fn window_to_write(&self, number: u32, size: u64) -> Result<Remote, Error> {
        Remote::open(self.line(), Kind::Window(WindowNumber(number), Way::ToPeer), size)
    }

    /// The first `size` bytes of the peer's window `number` to be read: its program's memory.
    ///
    /// # Errors
    /// As [`Connection::window_to_write`].
    pub fn window_to_read(&self, number: u32, size: u64) -> Result<Remote, Error> {
        Remote::open(self.line(), Kind::Window(WindowNumber(number), Way::FromPeer), size)
    }

    /// Writes `memory` to the peer's window `number`, tells its owner with this label, and waits for what the owner says of it. Returns the
    /// memory. Two exchanges: [`Connection::window_to_write`] makes the first one once for many writes.
    ///
    /// # Errors
    /// [`Error::Kernel`] with what the owner says; else as [`Connection::window_to_write`] and [`Transfer::wait`].
    pub fn write(&self, number: u32, memory: impl Into<Memory>, label: u16) -> Result<Memory, Error> {
        let memory = memory.into();
        let remote = self.window_to_write(number, memory.len() as u64)?;
        remote.write_and_notify(0, memory, label)?.finish()
    }

    /// Reads the first bytes of the peer's window `number` into all of `memory`, and returns it. No part of the owner's program takes part.
    ///
    /// # Errors
    /// As [`Connection::window_to_read`] and [`Transfer::wait`].
    pub fn read(&self, number: u32, memory: impl Into<Memory>) -> Result<Memory, Error> {
        let memory = memory.into();
        let remote = self.window_to_read(number, memory.len() as u64)?;
        remote.read(0, memory)?.finish()
    }
}

impl Remote {
    fn open(line: &Arc<Line>, kind: Kind, size: u64) -> Result<Self, Error> {
        if size == 0 {
            return Err(Error::invalid("memory of a peer has at least one byte"));
        }
        let (channel, context) = line.take_context()?;
        // From here on, dropping this gives the context back.
        let wake = channel.wake(context);
        let mut inner = Inner { channel, context, wake, address: RemoteAddr(0), rkey: Rkey(0), size, kind };
        let ip = inner.channel.shared.ip;
        let agreed = inner.channel.agreement.extensions;
        if matches!(kind, Kind::Window(..)) && !agreed.contains(Extensions::WINDOWS) {
            return Err(Error::Unsupported { ip, what: "windows" });
        }
        let mut message = [0; calls::MAX_MESSAGE];
        let length = kind
            .request(size, agreed.contains(Extensions::LONG_SET_UP), &mut message)
            .map_err(|_| Error::Unsupported { ip, what: "regions of 2^32 bytes and more" })?;
        match inner.channel.exchange(context, &message[..length])? {
            Answer::Refused(code) => return Err(Error::RegionsRefused { ip, code, bytes: size }),
            Answer::Given(given) => match given[..] {
                [given] if given.size == size && given.address.0.checked_add(size - 1).is_some() => {
                    (inner.address, inner.rkey) = (given.address, given.rkey);
                }
                _ => {
                    let what = format!("it gave {given:?} for one region of {size} bytes");
                    return Err(inner.channel.broken(Step::RegionSetup, what));
                }
            },
        }
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Its size, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.inner.size
    }

    /// Begins to write `memory` to `offset`. The transfer has ended when the bytes are there for every reader.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it does not all fit, is of a window to be read, or the send queue has no room;
    /// [`Error::Lost`] if the connection is gone.
    pub fn write(&self, offset: u64, memory: impl Into<Memory>) -> Result<Transfer, Error> {
        self.begin(Way::ToPeer, offset, Some(memory.into()), None)
    }

    /// As [`Remote::write`], and tells the owner of the window, which runs its callback with this label. The transfer has ended when the
    /// callback has returned; what it says is the result. One may be under way at a time.
    ///
    /// # Errors
    /// As [`Remote::write`] and [`Remote::notify`].
    pub fn write_and_notify(&self, offset: u64, memory: impl Into<Memory>, label: u16) -> Result<Transfer, Error> {
        self.begin(Way::ToPeer, offset, Some(memory.into()), Some(label))
    }

    /// Begins to read into all of `memory` from `offset`.
    ///
    /// # Errors
    /// As [`Remote::write`], for memory that cannot be written too; [`Error::Unsupported`] if the peer serves no READs.
    pub fn read(&self, offset: u64, memory: impl Into<Memory>) -> Result<Transfer, Error> {
        self.begin(Way::FromPeer, offset, Some(memory.into()), None)
    }

    /// Tells the owner of the window, which runs its callback with this label after all transfers before. One may be under way at a time.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if this is no window, or a notice is under way; [`Error::Lost`] if the connection is gone.
    pub fn notify(&self, label: u16) -> Result<Transfer, Error> {
        self.begin(Way::ToPeer, 0, None, Some(label))
    }

    /// Posts the work requests of a transfer: all of them or none.
    fn begin(&self, way: Way, offset: u64, memory: Option<Memory>, label: Option<u16>) -> Result<Transfer, Error> {
        self.check(way, offset, memory.as_ref(), label)?;
        let inner = &self.inner;
        let (shared, conn, context) = (&inner.channel.shared, inner.channel.id, inner.context);
        let ip = shared.ip;
        let imm = label.map(|label| inner.imm(label));
        shared.engine.act(|state| {
            let (now, began) = (state.now(), state.mark());
            let State { endpoint, inbox, .. } = state;
            let session = inbox.session(conn);
            if let Some(end) = &session.end {
                return Err(end.error(ip, way.step(), Duration::ZERO));
            }
            let length = memory.as_ref().map_or(0, Memory::len);
            let needed = length.div_ceil(MAX_WRITE).max(1);
            let waiting = endpoint.transport.connection(conn).map_or(0, |info| info.sends);
            let room = shared.connect.send_depth.saturating_sub(waiting);
            if needed > room {
                return Err(Error::invalid(format!(
                    "the transfer needs {needed} work requests, and the send queue has room for {room}"
                )));
            }
            let failed = |error: &dyn std::fmt::Display| Error::lost(ip, way.step(), error);
            if imm.is_some() {
                let slot = session.slot(context);
                if slot.awaits || slot.received.is_some() {
                    return Err(Error::invalid("a notice is under way: wait for its transfer first"));
                }
                session.expect_answer(&mut endpoint.transport, conn).map_err(|error| failed(&error))?;
                let slot = session.slot(context);
                (slot.awaits, slot.received) = (true, None);
            }
            let local = memory.map(|memory| endpoint.transport.register(memory, false, conn));
            let local = local.transpose().map_err(|error| failed(&error))?;
            let slot = session.slot(context);
            for piece in 0..needed {
                let at = piece * MAX_WRITE;
                let (remote, id) = (RemoteAddr(inner.address.0 + offset + at as u64), u64::from(context));
                let mut request = match (&local, way) {
                    (None, _) => SendWr::write(id, Vec::new(), remote, inner.rkey),
                    (Some(local), Way::ToPeer) => {
                        SendWr::write(id, local.slice(at, MAX_WRITE.min(length - at)), remote, inner.rkey)
                    }
                    (Some(local), Way::FromPeer) => {
                        SendWr::read(id, local.slice(at, MAX_WRITE.min(length - at)), remote, inner.rkey)
                    }
                };
                if let (true, SendOp::Write { imm: last, .. }) = (piece + 1 == needed, &mut request.op) {
                    (*last, request.solicited) = (imm, imm.is_some());
                }
                match endpoint.transport.post_send(conn, request) {
                    Ok(()) => slot.sends += 1,
                    // With the first one nothing has begun.
                    Err(error) => {
                        let unused = local.filter(|_| piece == 0);
                        unused.and_then(|local| endpoint.transport.deregister(local.id));
                        return Err(match error {
                            PostError::NotAgreed => Error::Unsupported { ip, what: "RDMA READ" },
                            error => failed(&error),
                        });
                    }
                }
            }
            let until = slot.completed + slot.sends as u64;
            if imm.is_some() {
                slot.mark = endpoint.transport.send_mark(conn);
                let timing = Timing::begin(endpoint, conn, began);
                let run = Run::begin(now, began, shared.timeout, None);
                inbox.begin(&mut endpoint.transport, conn, context, run, timing);
            }
            Ok(Transfer::new(Arc::clone(inner), way, local.map(|local| local.id), until, imm.is_some()))
        })?
    }

    /// Refuses what cannot be.
    fn check(&self, way: Way, offset: u64, memory: Option<&Memory>, label: Option<u16>) -> Result<(), Error> {
        let Inner { kind, size, .. } = *self.inner;
        if let Some(memory) = memory {
            let length = memory.len() as u64;
            if offset.checked_add(length).is_none_or(|end| end > size) {
                return Err(Error::invalid(format!("{length} bytes at {offset} are not within the peer's {size}")));
            }
            if length == 0 {
                return Err(Error::invalid("a transfer has at least one byte"));
            }
            if way == Way::FromPeer && !memory.is_writable() {
                return Err(Error::invalid("the memory is to be read into, and is read-only"));
            }
        }
        match kind {
            Kind::Window(number, Way::FromPeer) if way == Way::ToPeer && memory.is_some() => {
                Err(Error::invalid(format!("window {} was opened to be read", number.0)))
            }
            Kind::Own if label.is_some() => Err(Error::invalid("this memory has no owner that could be told")),
            _ => Ok(()),
        }
    }
}

impl Inner {
    /// Has something done on the context when its time has come.
    fn after(&self, after: After, then: Then) {
        let (conn, context) = (self.channel.id, self.context);
        // The link's error, if it is broken, has ended the connection, and so the transfer.
        let _ = self.channel.shared.engine.act(|state| state.after(conn, context, after, then));
    }

    /// The immediate that tells the owner of a window.
    fn imm(&self, label: u16) -> u32 {
        let [low, high] = label.to_le_bytes();
        let function = FunctionCode::WINDOW;
        if self.channel.agreement.extensions.contains(Extensions::CONTEXTS) {
            Request::Start { context: Context(self.context), function: Some(function), user: [low, high] }.to_imm()
        } else {
            CallImm::Start { function, user: [low, high, 0] }.to_u32()
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let (conn, context) = (self.channel.id, self.context);
        // The thread that drives next reports a broken link.
        let _ = self.channel.shared.engine.act(|state| state.release(conn, context, Vec::new()));
    }
}
