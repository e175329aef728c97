// SPDX-License-Identifier: Apache-2.0
//! Whole messages, with the descriptors that come along, over a UNIX stream socket that never blocks. Both sides use it.
//!
//! A message is read in two pieces, its header and the rest, so never beyond its end: the kernel ends a read behind bytes that
//! descriptors came with, so all that come during a message are the message's. One that is longer than the channel takes is read to
//! its end and said to be so, which keeps the stream in step.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use smallvec::SmallVec;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::protocol::Header;

/// Descriptors that a message may have.
pub const MAX_DESCRIPTORS: usize = 16;
/// Bytes that the buffer of a message has at first. It grows to what messages need, up to the channel's limit.
const FIRST_BUFFER: usize = 4096;
/// Buffers that are kept for further messages.
const SPARE_BUFFERS: usize = 2;

/// What a message begins with.
pub trait Head: FromBytes + IntoBytes + Immutable + KnownLayout + Copy + Default {
    /// Bytes behind it. `None`: it makes no sense.
    fn payload(&self) -> Option<usize>;

    /// The same of a message with so many bytes behind it.
    #[must_use]
    fn with_payload(self, len: usize) -> Self;
}

impl Head for Header {
    fn payload(&self) -> Option<usize> {
        (self.size as usize).checked_sub(Self::LEN)
    }

    fn with_payload(self, len: usize) -> Self {
        Self { size: (Self::LEN + len) as u32, ..self }
    }
}

/// Descriptors of a message.
pub type Descriptors = SmallVec<[OwnedFd; MAX_DESCRIPTORS]>;

/// What a socket gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Nothing more for now.
    Nothing,
    /// A message, to be [taken](Channel::take).
    Message,
    /// The peer has gone.
    Closed,
    /// The header makes no sense: the message is shorter than its header, for example. Where the next one begins is unknown.
    OutOfStep,
}

/// A message that came.
#[derive(Debug)]
pub struct Message<H = Header> {
    /// Its header.
    pub header: H,
    /// What came with it.
    pub descriptors: Descriptors,
    /// Whether it had more bytes than the channel takes. It has none then.
    pub too_long: bool,
    /// Whether more descriptors came with it than may.
    pub too_many_descriptors: bool,
    buffer: Vec<u8>,
    len: usize,
}

impl<H> Message<H> {
    /// What is behind the header.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.buffer[size_of::<H>()..self.len]
    }
}

/// One side of a connection whose messages begin so.
#[derive(Debug)]
pub struct Channel<H = Header> {
    socket: UnixStream,
    /// The message that comes: its header, then its payload.
    buffer: Vec<u8>,
    filled: usize,
    /// Bytes of a message that is too long, which are still to come.
    skip: usize,
    too_long: bool,
    descriptors: Descriptors,
    too_many: bool,
    /// Bytes of a message without its header.
    limit: usize,
    /// Buffers of messages that were given back.
    spare: Vec<Vec<u8>>,
    out: Vec<u8>,
    sent: usize,
    /// Descriptors to be sent with the byte at a place of `out`.
    out_descriptors: VecDeque<(usize, Descriptors)>,
    head: PhantomData<H>,
}

impl<H: Head> Channel<H> {
    /// Bytes of a header.
    const HEAD: usize = size_of::<H>();

    /// Over a connected socket, for messages with a payload of `limit` bytes.
    ///
    /// # Errors
    /// That of the system.
    pub fn new(socket: UnixStream, limit: usize) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            buffer: vec![0; FIRST_BUFFER],
            filled: 0,
            skip: 0,
            too_long: false,
            descriptors: Descriptors::new(),
            too_many: false,
            limit,
            spare: Vec::new(),
            out: Vec::with_capacity(FIRST_BUFFER),
            sent: 0,
            out_descriptors: VecDeque::new(),
            head: PhantomData,
        })
    }

    /// The socket, to wait for it.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether the begin of a message has come, and not its end.
    #[must_use]
    pub fn within_message(&self) -> bool {
        self.filled > 0
    }

    /// Takes the message that has come whole, and begins the next one.
    pub fn take(&mut self) -> Message<H> {
        let next = self.spare.pop().unwrap_or_else(|| vec![0; FIRST_BUFFER]);
        let message = Message {
            header: self.header(),
            descriptors: std::mem::take(&mut self.descriptors),
            too_long: std::mem::take(&mut self.too_long),
            too_many_descriptors: std::mem::take(&mut self.too_many),
            buffer: std::mem::replace(&mut self.buffer, next),
            len: self.filled,
        };
        self.filled = 0;
        message
    }

    /// Gives a message back, so that its room can be used again.
    pub fn give_back(&mut self, message: Message<H>) {
        if self.spare.len() < SPARE_BUFFERS {
            self.spare.push(message.buffer);
        }
    }

    fn header(&self) -> H {
        H::read_from_prefix(&self.buffer).map_or_else(|_| H::default(), |(header, _)| header)
    }

    /// Reads on in the message that comes.
    ///
    /// # Errors
    /// That of the system.
    pub fn receive(&mut self) -> io::Result<Received> {
        loop {
            let wanted = if self.filled < Self::HEAD {
                Self::HEAD - self.filled
            } else {
                let Some(payload) = self.header().payload() else { return Ok(Received::OutOfStep) };
                let size = self.begin_payload(payload);
                match (size - self.filled, self.skip) {
                    (0, 0) => return Ok(Received::Message),
                    (0, skip) => return self.skip(skip),
                    (left, _) => left,
                }
            };
            match self.read(self.filled, wanted)? {
                None => return Ok(Received::Nothing),
                Some(0) => return Ok(Received::Closed),
                Some(count) => self.filled += count,
            }
        }
    }

    /// Sees that there is room for a message with so many bytes behind its header, and says how many of it are kept.
    fn begin_payload(&mut self, payload: usize) -> usize {
        if payload > self.limit {
            if !self.too_long {
                self.too_long = true;
                self.skip = payload;
            }
            return Self::HEAD;
        }
        let size = Self::HEAD + payload;
        if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
        size
    }

    /// Reads what is not kept, into room behind the header.
    fn skip(&mut self, left: usize) -> io::Result<Received> {
        self.skip = left;
        while self.skip > 0 {
            let piece = self.skip.min(self.buffer.len() - Self::HEAD);
            match self.read(Self::HEAD, piece)? {
                None => return Ok(Received::Nothing),
                Some(0) => return Ok(Received::Closed),
                Some(count) => self.skip -= count,
            }
        }
        Ok(Received::Message)
    }

    /// Reads `len` bytes at most to a place of the buffer. `None` if there are none now.
    fn read(&mut self, at: usize, len: usize) -> io::Result<Option<usize>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut self.buffer[at..at + len])];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let came = match rustix::net::recvmsg(&self.socket, &mut parts, &mut control, flags) {
            Ok(came) => came,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(Errno::CONNRESET) => return Ok(Some(0)),
            Err(errno) => return Err(errno.into()),
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                for descriptor in descriptors {
                    if self.descriptors.len() < MAX_DESCRIPTORS {
                        self.descriptors.push(descriptor);
                    } else {
                        self.too_many = true;
                    }
                }
            }
        }
        self.too_many |= came.flags.contains(ReturnFlags::CTRUNC);
        Ok(Some(came.bytes))
    }

    /// Puts a message behind those that wait to be sent. Its size is found here.
    pub fn queue(&mut self, header: H, parts: &[&[u8]], descriptors: Descriptors) {
        if !descriptors.is_empty() {
            self.out_descriptors.push_back((self.out.len(), descriptors));
        }
        let payload: usize = parts.iter().map(|part| part.len()).sum();
        self.out.extend_from_slice(header.with_payload(payload).as_bytes());
        for part in parts {
            self.out.extend_from_slice(part);
        }
    }

    /// Bytes that wait to be sent.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Sends what the socket takes. Whether anything was sent.
    ///
    /// # Errors
    /// That of the system: the peer has gone, for example.
    pub fn flush(&mut self) -> io::Result<bool> {
        let before = self.sent;
        while self.sent < self.out.len() {
            let with = self.out_descriptors.front().is_some_and(|(at, _)| *at == self.sent);
            let end = self.out_descriptors.get(usize::from(with)).map_or(self.out.len(), |(at, _)| *at);
            match self.send(self.sent..end, with) {
                Ok(count) => self.sent += count,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(errno) => return Err(errno.into()),
            }
            if with {
                self.out_descriptors.pop_front();
            }
        }
        let any = self.sent > before;
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
        Ok(any)
    }

    fn send(&self, bytes: std::ops::Range<usize>, with: bool) -> rustix::io::Result<usize> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let Some((_, descriptors)) = self.out_descriptors.front().filter(|_| with) else {
            return rustix::net::send(&self.socket, &self.out[bytes], flags);
        };
        let borrowed: SmallVec<[BorrowedFd<'_>; MAX_DESCRIPTORS]> = descriptors.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&borrowed)) {
            return Err(Errno::INVAL);
        }
        rustix::net::sendmsg(&self.socket, &[IoSlice::new(&self.out[bytes])], &mut control, flags)
    }
}

/// Waits until one of the descriptors is ready, `wait` at most; sets what is.
///
/// # Errors
/// That of the system.
pub fn wait(descriptors: &mut [PollFd<'_>], wait: Option<Duration>) -> io::Result<()> {
    let timeout = wait.map(|wait| Timespec {
        tv_sec: wait.as_secs().min(i64::MAX as u64) as i64,
        tv_nsec: wait.subsec_nanos().into(),
    });
    match rustix::event::poll(descriptors, timeout.as_ref()) {
        Ok(_) => Ok(()),
        Err(Errno::INTR) => {
            for descriptor in descriptors {
                descriptor.clear_revents();
            }
            Ok(())
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Whether a descriptor that was waited for has something, also that its other side has gone.
#[must_use]
pub fn is_ready(descriptor: &PollFd<'_>) -> bool {
    !descriptor.revents().is_empty()
}

/// What a socket is waited for: messages, and room for more if some wait to be sent.
#[must_use]
pub fn interest<H: Head>(channel: &Channel<H>, messages: bool) -> PollFlags {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, messages);
    flags.set(PollFlags::OUT, channel.unsent() > 0);
    flags
}
