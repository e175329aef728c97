// SPDX-License-Identifier: Apache-2.0
//! A ControlHub (IPbus project): clients send control packets by TCP, and the hub gets each executed exactly once by a device that it
//! reaches by UDP. With it the uHAL library survives lost packets (`chtcp-2.0://hub:10203?target=device:50001`).
//!
//! Unlike the ControlHub of the IPbus project it has a session of its own with the device for every client: a login is that of one
//! client only.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread;
use std::time::Duration;

use nacelle_wire::ipbus::{ByteOrder, PacketHeader, PacketKind};

use crate::tcp::{self, Place};
use crate::{Remote, RemoteError, SessionConfig, SessionError};

/// Devices of one client.
const MAX_TARGETS: usize = 64;
/// Longest message of a client, in bytes.
const MAX_MESSAGE: usize = 1 << 20;
/// Groups of packets of one message that may fail. Each takes the time of all attempts: the rest is answered as failed without any, so
/// that a message to many devices that are gone does not keep its client's place for hours.
const MAX_FAILURES: u32 = 8;

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

/// Bounds of a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HubConfig {
    /// Of the sessions with devices.
    pub session: SessionConfig,
    /// Clients at once; further ones are disconnected.
    pub clients: usize,
    /// How long a client may be silent between two messages.
    pub silence: Duration,
    /// How long it may take to send the rest of a message, and to take an answer.
    pub patience: Duration,
}

impl Default for HubConfig {
    /// 64 clients, 10 minutes, 10 s.
    fn default() -> Self {
        Self {
            session: SessionConfig::default(),
            clients: 64,
            silence: Duration::from_secs(600),
            patience: Duration::from_secs(10),
        }
    }
}

/// A hub that listens.
#[derive(Debug)]
pub struct Hub {
    listener: TcpListener,
    config: HubConfig,
}

impl Hub {
    /// Listens at `address`. Who reaches it reaches every device that this host reaches: the loopback address is a good one.
    ///
    /// # Errors
    /// Of the socket.
    pub fn bind(address: SocketAddr, config: HubConfig) -> io::Result<Self> {
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
        let places = Arc::new(AtomicUsize::new(0));
        loop {
            let (stream, _) = match self.listener.accept() {
                Ok(accepted) => accepted,
                // The client is gone already.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            let Some(place) = Place::take(&places, self.config.clients) else { continue };
            let config = self.config;
            thread::spawn(move || {
                let _place = place;
                // It ends when the client goes, breaks the protocol, stalls, or is silent for too long.
                let _ = Client { stream, config, sessions: HashMap::new() }.serve();
            });
        }
    }
}

struct Client {
    stream: TcpStream,
    config: HubConfig,
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
        loop {
            let mut length = [0; 4];
            // A message begins within the time of silence, and goes on within that of patience.
            tcp::read_all(&mut self.stream, &mut length[..1], self.config.silence)?;
            tcp::read_all(&mut self.stream, &mut length[1..], self.config.patience)?;
            let length = u32::from_be_bytes(length) as usize;
            if length > MAX_MESSAGE {
                return Err(ErrorKind::InvalidData.into());
            }
            let mut message = vec![0; length];
            tcp::read_all(&mut self.stream, &mut message, self.config.patience)?;
            let requests = parse(&message).ok_or(ErrorKind::InvalidData)?;
            let mut answer = vec![0; 4];
            let mut failures = 0;
            // Packets to one device in a row go together, so that several are under way.
            for group in requests.chunk_by(|a, b| a.target == b.target) {
                failures += u32::from(!self.group(group, failures < MAX_FAILURES, &mut answer));
            }
            let length = (answer.len() - 4) as u32;
            answer[..4].copy_from_slice(&length.to_be_bytes());
            tcp::write_all(&mut self.stream, &answer, self.config.patience)?;
        }
    }

    /// Answers packets to one device, trying to reach it only if `reach` says so; whether that has worked.
    fn group(&mut self, group: &[Request], reach: bool, answer: &mut Vec<u8>) -> bool {
        let good = || group.iter().filter_map(|request| request.words.clone());
        let done = if reach { self.exchange(group[0].target, good()) } else { Err(Code::NoControlReply) };
        let (mut answers, code) = match done {
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
        matches!(code, Code::Success)
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
                entry.insert(Remote::connect(target.into(), self.config.session).map_err(|error| match error {
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
