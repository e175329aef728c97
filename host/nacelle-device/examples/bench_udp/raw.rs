// SPDX-License-Identifier: Apache-2.0
//! A ping-pong of UDP datagrams: the least that a call by UDP can cost.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{Peer, say, until_stdin_ends};
use crate::{Outcome, PATIENCE};

fn socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The other process: sends each datagram back, and polls for the next.
pub(crate) fn echo() -> Outcome {
    let stop = until_stdin_ends();
    let socket = socket()?;
    say(socket.local_addr()?)?;
    let mut buffer = [0; 2048];
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                socket.send_to(&buffer[..length], from)?;
                last = Instant::now();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // The processor is the other side's while that is measured.
                if last.elapsed() > Duration::from_millis(1) {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// This side.
pub(crate) struct Ping {
    socket: UdpSocket,
    to: SocketAddr,
    _echo: Peer,
}

impl Ping {
    /// Starts the other process.
    pub(crate) fn start() -> Outcome<Self> {
        let echo = Peer::start("echo")?;
        Ok(Self { socket: socket()?, to: echo.address, _echo: echo })
    }

    /// One datagram there and back.
    pub(crate) fn once(&self, length: usize) -> Outcome {
        let mut buffer = [0; 2048];
        self.socket.send_to(buffer.get(..length).ok_or("a datagram has at most 2048 bytes")?, self.to)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.socket.recv_from(&mut buffer) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error.into()),
                Err(_) if Instant::now() > deadline => return Err("no answer to a datagram".into()),
                Err(_) => {}
            }
        }
    }
}
