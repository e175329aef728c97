// SPDX-License-Identifier: Apache-2.0
//! A ControlHub (IPbus project): clients send control packets by TCP, and the hub gets each executed exactly once by a device that it
//! reaches by UDP. With it the uHAL library survives lost packets (`chtcp-2.0://hub:10203?target=device:50001`).
//!
//! Unlike the ControlHub of the IPbus project it has a session of its own with the device for every client: a login is that of one
//! client only.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nacelle_wire::ipbus::{ByteOrder, PacketHeader, PacketKind};

use crate::{Remote, RemoteError, SessionConfig, SessionError};

/// Clients at once; further ones are disconnected.
const MAX_CLIENTS: usize = 64;
/// Devices of one client.
const MAX_TARGETS: usize = 64;
/// Longest message of a client, in bytes.
const MAX_MESSAGE: usize = 1 << 20;
/// How long a client may take to accept an answer, or to send the rest of a message.
const PATIENCE: Duration = Duration::from_secs(10);

/// The codes of answers.
#[derive(Clone, Copy)]
#[repr(u16)]
enum Code {
    Success = 0,
    NoControlReply = 1,
    NoStatusReply = 3,
    MalformedStatus = 5,
    WrongVersion = 6,
}

/// A hub that listens.
#[derive(Debug)]
pub struct Hub {
    listener: TcpListener,
    config: SessionConfig,
}

impl Hub {
    /// Listens at `address`. Who reaches it reaches every device that this host reaches: the loopback address is a good one.
    ///
    /// # Errors
    /// Of the socket.
    pub fn bind(address: SocketAddr, config: SessionConfig) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address)?, config })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Of the socket.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves clients, with a thread for each, until the process ends.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn serve(&self) -> io::Result<()> {
        let clients = Arc::new(AtomicUsize::new(0));
        loop {
            let (stream, _) = match self.listener.accept() {
                Ok(accepted) => accepted,
                // The client is gone already.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            if clients.fetch_add(1, Ordering::Relaxed) >= MAX_CLIENTS {
                clients.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (clients, config) = (clients.clone(), self.config);
            thread::spawn(move || {
                // It ends when the client goes or breaks the protocol.
                let _ = Client { stream, config, sessions: HashMap::new() }.serve();
                clients.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }
}

struct Client {
    stream: TcpStream,
    config: SessionConfig,
    sessions: HashMap<SocketAddrV4, Remote>,
}

/// One packet of a message.
struct Request {
    target: SocketAddrV4,
    /// The client's header word, which comes back as it was.
    header: [u8; 4],
    /// The words behind it; none if it is no control packet.
    words: Option<Vec<u32>>,
    order: ByteOrder,
}

impl Client {
    fn serve(&mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        self.stream.set_write_timeout(Some(PATIENCE))?;
        loop {
            let mut length = [0; 4];
            self.stream.set_read_timeout(None)?;
            self.stream.read_exact(&mut length)?;
            let length = u32::from_be_bytes(length) as usize;
            if length > MAX_MESSAGE {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let mut message = vec![0; length];
            self.stream.set_read_timeout(Some(PATIENCE))?;
            self.stream.read_exact(&mut message)?;
            let requests = parse(&message).ok_or(io::ErrorKind::InvalidData)?;
            let mut answer = vec![0; 4];
            // Packets to one device in a row go together, so that several are under way.
            for group in requests.chunk_by(|a, b| a.target == b.target) {
                self.group(group, &mut answer);
            }
            let length = (answer.len() - 4) as u32;
            answer[..4].copy_from_slice(&length.to_be_bytes());
            self.stream.write_all(&answer)?;
        }
    }

    fn group(&mut self, group: &[Request], answer: &mut Vec<u8>) {
        let good = || group.iter().filter_map(|request| request.words.clone());
        let (mut answers, code) = match self.exchange(group[0].target, good()) {
            Ok(answers) => (answers.into_iter(), Code::Success),
            Err(code) => (Vec::new().into_iter(), code),
        };
        for request in group {
            let reply = request.words.as_ref().and_then(|_| answers.next());
            let code = if request.words.is_none() { Code::WrongVersion } else { code };
            let bytes: Vec<u8> = match &reply {
                Some(words) => {
                    request.header.into_iter().chain(words.iter().flat_map(|word| request.order.bytes(*word))).collect()
                }
                None => Vec::new(),
            };
            answer.extend((bytes.len() as u32 + 8).to_be_bytes());
            answer.extend(request.target.ip().octets());
            answer.extend(request.target.port().to_be_bytes());
            answer.extend((code as u16).to_be_bytes());
            answer.extend(bytes);
        }
    }

    fn exchange(
        &mut self,
        target: SocketAddrV4,
        packets: impl Iterator<Item = Vec<u32>>,
    ) -> Result<Vec<Vec<u32>>, Code> {
        if !self.sessions.contains_key(&target) && self.sessions.len() >= MAX_TARGETS {
            self.sessions.clear();
        }
        let session = match self.sessions.entry(target) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                entry.insert(Remote::connect(target.into(), self.config).map_err(|error| match error {
                    RemoteError::Session(SessionError::Malformed) => Code::MalformedStatus,
                    _ => Code::NoStatusReply,
                })?)
            }
        };
        session.exchange(packets).map_err(|_| {
            // The next request begins anew.
            self.sessions.remove(&target);
            Code::NoControlReply
        })
    }
}

/// The packets of a message. `None` if it is not made of whole packets.
fn parse(mut message: &[u8]) -> Option<Vec<Request>> {
    let mut requests = Vec::new();
    while !message.is_empty() {
        let (head, rest) = message.split_first_chunk::<8>()?;
        let [a, b, c, d, port_high, port_low, words_high, words_low] = *head;
        let target = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([port_high, port_low]));
        let words = usize::from(u16::from_be_bytes([words_high, words_low]));
        let (packet, rest) = rest.split_at_checked(4 * words)?;
        let (chunks, _) = packet.as_chunks::<4>();
        let (header, body) = chunks.split_first()?;
        let known = PacketHeader::parse(*header).ok().filter(|(header, _)| header.kind == PacketKind::Control);
        let order = known.map_or(ByteOrder::Big, |(_, order)| order);
        let words = known.map(|_| body.iter().map(|bytes| order.word(*bytes)).collect());
        requests.push(Request { target, header: *header, words, order });
        message = rest;
    }
    Some(requests)
}
