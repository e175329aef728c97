// SPDX-License-Identifier: Apache-2.0
//! The guests' sockets to the calendar: which guest is at which, and messages in and out of bytes.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use nacelle_vhost::Listener;

use super::GuestTimeError;
use super::calendar::Violation;
use super::protocol::{BYTES, Message, Op};

/// Messages of one guest that are taken in one go.
const MAX_MESSAGES: usize = 64;

/// What has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A connection says that it is this guest.
    Begins(usize, Message),
    /// A message of a guest.
    Message(usize, Message),
    /// A guest's connection has ended.
    Gone(usize),
}

struct Connection {
    stream: UnixStream,
    guest: Option<usize>,
    /// The begin of a message.
    partial: [u8; BYTES],
    filled: usize,
}

/// What reading gives.
enum Heard {
    Message(Option<Message>),
    Nothing,
    Closed,
}

impl Connection {
    fn read(&mut self) -> Heard {
        while self.filled < BYTES {
            match self.stream.read(&mut self.partial[self.filled..]) {
                Ok(0) => return Heard::Closed,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Heard::Nothing,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Heard::Closed,
            }
        }
        self.filled = 0;
        Heard::Message(Message::of(&self.partial))
    }
}

/// All of them.
pub(super) struct Connections {
    listener: Listener,
    /// As many as there are guests, at most.
    all: Vec<Connection>,
    guests: usize,
    messages: u64,
}

impl Connections {
    pub(super) fn new(listener: Listener, guests: usize) -> Self {
        Self { listener, all: Vec::new(), guests, messages: 0 }
    }

    /// Messages that have come.
    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    /// What to wait for.
    pub(super) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        std::iter::once(self.listener.socket()).chain(self.all.iter().map(|one| one.stream.as_fd())).collect()
    }

    /// Takes what has come. `handle` gives the answer to send, if there is one.
    pub(super) fn serve(
        &mut self,
        mut handle: impl FnMut(Said) -> Result<Option<Message>, Violation>,
    ) -> Result<(), GuestTimeError> {
        while let Some(stream) = self.listener.accept() {
            // One too many finds its connection closed.
            if self.all.len() < self.guests && stream.set_nonblocking(true).is_ok() {
                self.all.push(Connection { stream, guest: None, partial: [0; BYTES], filled: 0 });
            }
        }
        let mut number = 0;
        while number < self.all.len() {
            if self.serve_one(number, &mut handle)? {
                number += 1;
            } else {
                self.all.remove(number);
            }
        }
        Ok(())
    }

    /// The same for one connection; whether it goes on.
    fn serve_one(
        &mut self,
        number: usize,
        handle: &mut impl FnMut(Said) -> Result<Option<Message>, Violation>,
    ) -> Result<bool, GuestTimeError> {
        for _ in 0..MAX_MESSAGES {
            let connection = &mut self.all[number];
            let message = match connection.read() {
                Heard::Nothing => return Ok(true),
                Heard::Closed => {
                    if let Some(guest) = connection.guest {
                        let _nobody_is_answered = handle(Said::Gone(guest));
                    }
                    return Ok(false);
                }
                Heard::Message(message) => message,
            };
            self.messages += 1;
            let answer = match (connection.guest, message) {
                (Some(guest), Some(message)) => handle(Said::Message(guest, message))
                    .map_err(|violation| GuestTimeError::Protocol { guest, violation })?,
                (Some(guest), None) => {
                    return Err(GuestTimeError::Protocol { guest, violation: Violation::Operation });
                }
                // A connection is a guest's when it says whose it is; what says something else first is none.
                (None, Some(message)) if message.op == Op::Start => {
                    let guest = usize::try_from(message.time).unwrap_or(usize::MAX);
                    if handle(Said::Begins(guest, message)).is_err() {
                        return Ok(false);
                    }
                    connection.guest = Some(guest);
                    None
                }
                (None, _) => return Ok(false),
            };
            if let Some(answer) = answer {
                write(&mut self.all[number].stream, answer);
            }
        }
        Ok(true)
    }

    /// Sends a message to a guest, if it is there.
    pub(super) fn send(&mut self, guest: usize, message: Message) {
        if let Some(connection) = self.all.iter_mut().find(|one| one.guest == Some(guest)) {
            write(&mut connection.stream, message);
        }
    }
}

/// A guest has one message under way at a time, for which its socket has room. One that does not take it waits for it in vain, and is found out by
/// its silence.
fn write(stream: &mut UnixStream, message: Message) {
    let _found_by_its_silence = stream.write_all(&message.bytes());
}
