// SPDX-License-Identifier: Apache-2.0
//! One end of a connection by shared memory: a ring in each direction, a way to wake the other end and to be woken, and the socket
//! that says whether the other end is still there.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

use nacelle_memory::Bytes;

use super::mapping::{Mapping, memory_file};
use super::ring::{Broken, Header, Place, Reader, Words, Writer, Written};
use crate::udp::MAX_BATCH;
use crate::{Icrc, Outgoing, Placed};

/// Bytes of each ring: for two connections with all the packets in flight that they may have.
pub(super) const RING: usize = 1 << 20;
/// Where the rings are: to the device, and to the caller.
const TO_DEVICE: Place = Place::new(0, RING);
const TO_CALLER: Place = Place::new(SECOND, RING);
const SECOND: usize = Place::len(RING).next_multiple_of(4096);
/// Bytes of shared memory.
pub(super) const MEMORY: usize = SECOND + Place::len(RING).next_multiple_of(4096);

/// Which end this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Device,
    Caller,
}

/// What both ends share, as descriptors: the memory, and what wakes each end.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) memory: OwnedFd,
    pub(super) wakes_device: OwnedFd,
    pub(super) wakes_caller: OwnedFd,
}

impl Shared {
    /// New ones.
    pub(super) fn new() -> io::Result<Self> {
        let counter = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self { memory: memory_file(MEMORY)?, wakes_device: counter()?, wakes_caller: counter()? })
    }
}

/// How the other end has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Not yet.
    Open,
    /// Its process is gone, or wants no more: this many records of it may still be taken.
    Closed(usize),
}

/// One end.
#[derive(Debug)]
pub(super) struct Channel {
    mapping: Mapping,
    reader: Reader,
    writer: Writer,
    wakes_peer: OwnedFd,
    wakes_this: OwnedFd,
    /// A message socket: nothing comes by it but the end.
    socket: OwnedFd,
    ending: Ending,
    armed: bool,
    /// Where records are copied to whose ICRCs are to be checked; none if those are left out.
    copy: Option<Box<[u8]>>,
}

impl Channel {
    /// Takes what was made or received.
    pub(super) fn new(end: End, shared: Shared, socket: OwnedFd, icrc: Icrc) -> io::Result<Self> {
        let mapping = Mapping::of(&shared.memory, MEMORY)?;
        let (to_read, to_write, wakes_this, wakes_peer) = match end {
            End::Device => (TO_DEVICE, TO_CALLER, shared.wakes_device, shared.wakes_caller),
            End::Caller => (TO_CALLER, TO_DEVICE, shared.wakes_caller, shared.wakes_device),
        };
        // Wakes of a peer that counts up to the end would otherwise stop this process.
        rustix::fs::fcntl_setfl(&wakes_peer, rustix::fs::OFlags::NONBLOCK)?;
        rustix::fs::fcntl_setfl(&wakes_this, rustix::fs::OFlags::NONBLOCK)?;
        let (reader, writer) = (Reader::new(to_read), Writer::new(to_write));
        let copy = (icrc == Icrc::Kept).then(|| vec![0; MAX_BATCH].into_boxed_slice());
        Ok(Self { mapping, reader, writer, wakes_peer, wakes_this, socket, ending: Ending::Open, armed: false, copy })
    }

    /// Readable when this end is to wake up.
    pub(super) fn wake_fd(&self) -> impl AsFd {
        &self.wakes_this
    }

    /// Readable when the other end is gone.
    pub(super) fn socket(&self) -> impl AsFd {
        &self.socket
    }

    /// Whether both ends want the ICRCs.
    pub(super) const fn icrc(&self) -> Icrc {
        if self.copy.is_some() { Icrc::Kept } else { Icrc::LeftOut }
    }

    /// Sends, and waits for room until `patience` is over. Returns whether it was sent.
    pub(super) fn send(&mut self, outgoing: &Outgoing<'_>, patience: Duration) -> Result<bool, Broken> {
        let Outgoing { bytes, ecn, segment_size, .. } = *outgoing;
        if bytes.is_empty() || bytes.len() > MAX_BATCH || self.ending != Ending::Open {
            return Ok(false);
        }
        let header = Header { len: bytes.len(), stride: segment_size.unwrap_or(bytes.len()).max(1), ecn };
        let mut began = None;
        loop {
            match self.writer.write(&self.mapping, header, bytes)? {
                Written::Done => return Ok(true),
                Written::Wake => {
                    self.wake();
                    return Ok(true);
                }
                Written::Full if began.get_or_insert_with(Instant::now).elapsed() >= patience => return Ok(false),
                Written::Full => std::thread::yield_now(),
            }
        }
    }

    /// Room for a batch without ICRCs, in the ring itself, if there is some now.
    pub(super) fn room(&mut self) -> Option<&mut [u8]> {
        if self.ending != Ending::Open || self.icrc() == Icrc::Kept {
            return None;
        }
        // A ring that is broken is noticed by `send`.
        let at = self.writer.room(&self.mapping, MAX_BATCH).ok()??;
        Some(self.mapping.room(at, MAX_BATCH))
    }

    /// Sends what was written in the last room.
    pub(super) fn send_placed(&mut self, Placed { ecn, len, segment_size, .. }: Placed) {
        let header = Header { len, stride: segment_size.unwrap_or(len), ecn };
        if self.writer.publish(&self.mapping, header) == Written::Wake {
            self.wake();
        }
    }

    fn wake(&self) {
        // A counter that is full wakes too.
        let _ = rustix::io::write(&self.wakes_peer, &1u64.to_ne_bytes());
    }

    /// Gives the oldest record to `take`: what is said of it, and its contents. Returns whether there was one.
    pub(super) fn recv(&mut self, take: impl FnOnce(Header, Bytes<'_>)) -> Result<bool, Broken> {
        if let Ending::Closed(left) = &mut self.ending {
            *left = left.checked_sub(1).ok_or(Broken)?;
        }
        let Self { mapping, reader, copy, .. } = self;
        let found = reader.read(mapping, MAX_BATCH, |header, at| match copy {
            None => take(header, Bytes::Shared(mapping.source(at, header.len))),
            Some(copy) => {
                let copy = &mut copy[..header.len];
                mapping.read(at, copy);
                take(header, Bytes::Own(copy));
            }
        })?;
        match self.ending {
            Ending::Closed(_) if !found => Err(Broken),
            _ => Ok(found),
        }
    }

    /// The other end is gone: what it has sent before may be taken, then [`Self::recv`] fails.
    pub(super) fn close(&mut self) {
        if self.ending == Ending::Open {
            self.ending = Ending::Closed(self.reader.at_most());
        }
    }

    /// Whether the other end is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.ending != Ending::Open
    }

    /// From now on `wake_fd` becomes readable when something is there, at once if it is already.
    pub(super) fn arm(&mut self) {
        self.armed = true;
        if self.is_closed() || self.reader.arm(&self.mapping) {
            let _ = rustix::io::write(&self.wakes_this, &1u64.to_ne_bytes());
        }
    }

    /// It need not any more.
    pub(super) fn disarm(&mut self) {
        if std::mem::take(&mut self.armed) {
            self.reader.disarm(&self.mapping);
        }
    }

    /// Its waking was noticed.
    pub(super) fn clear_wake(&self) {
        let _ = rustix::io::read(&self.wakes_this, &mut [0; 8]);
    }
}
