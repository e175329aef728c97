// SPDX-License-Identifier: Apache-2.0
//! Bounds of a TCP server that has a thread for each client: how many there are, and how long each may take. The hub is one; programs
//! with another take the same.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A client's place; it is free again when this is dropped.
#[derive(Debug)]
pub struct Place(Arc<AtomicUsize>);

impl Place {
    /// One of `most` places, of which `taken` counts those that are in use. `None` if there is none.
    pub fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let place = Self(taken.clone());
        (taken.fetch_add(1, Ordering::Relaxed) < most).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads once, until `deadline`: how many bytes came, at least one.
///
/// # Errors
/// The time is over, the client has closed the connection, or it failed.
pub fn read_some(stream: &mut TcpStream, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
    stream.set_read_timeout(Some(left(deadline)?))?;
    match stream.read(buffer)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        length => Ok(length),
    }
}

/// Fills `buffer` within `time`, however few bytes come at once.
///
/// # Errors
/// As [`read_some`].
pub fn read_all(stream: &mut TcpStream, mut buffer: &mut [u8], time: Duration) -> io::Result<()> {
    let deadline = Instant::now() + time;
    while !buffer.is_empty() {
        let length = read_some(stream, buffer, deadline)?;
        buffer = &mut buffer[length..];
    }
    Ok(())
}

/// Writes all bytes within `time`, however few the client takes at once.
///
/// # Errors
/// The time is over, or the connection failed.
pub fn write_all(stream: &mut TcpStream, mut bytes: &[u8], time: Duration) -> io::Result<()> {
    let deadline = Instant::now() + time;
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        bytes = &bytes[stream.write(bytes)?..];
    }
    Ok(())
}

/// The time until `deadline`.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}
