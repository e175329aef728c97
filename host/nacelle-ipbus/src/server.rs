// SPDX-License-Identifier: Apache-2.0
//! The device's side, as a pure state machine: what a packet of a client does to the registers, and who may do what.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use nacelle_wire::ipbus::{
    ByteOrder, InfoCode, PacketHeader, PacketKind, STATUS_WORDS, Status, TransactionHeader, TransactionKind, next_id,
};

/// Who may access a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Everybody.
    Public,
    /// Clients that have logged in.
    Authorised,
    /// Nobody on the network.
    Local,
}

/// A register answered an access with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusError;

/// The registers of a device. Addresses count bytes.
pub trait Bus {
    /// Who may read or write the register.
    fn permission(&self, address: u32, write: bool) -> Permission;

    /// Reads one.
    ///
    /// # Errors
    /// If there is none, or it refuses.
    fn read(&mut self, address: u32) -> Result<u32, BusError>;

    /// Writes one.
    ///
    /// # Errors
    /// As [`Bus::read`].
    fn write(&mut self, address: u32, value: u32) -> Result<(), BusError>;
}

/// Hosts that are answered: those whose address begins with `bits` bits of `prefix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFilter {
    /// The address.
    pub prefix: IpAddr,
    /// How much of it counts.
    pub bits: u8,
}

impl SourceFilter {
    fn takes(self, source: IpAddr) -> bool {
        let number = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => (u128::from(u32::from(ip)) << 96, 32),
            IpAddr::V6(ip) => (u128::from(ip), 128),
        };
        let ((wanted, width), (found, found_width)) = (number(self.prefix), number(source));
        width == found_width && (self.bits == 0 || (wanted ^ found) >> (128 - u32::from(self.bits.min(width))) == 0)
    }
}

/// Settings of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Clients at once that are served reliably.
    pub clients: usize,
    /// Responses that are stored for each.
    pub buffers: usize,
    /// Longest packet in bytes, in both directions.
    pub mtu: usize,
    /// A client that was silent for this long makes room for another.
    pub idle: Duration,
    /// A client that was silent for this long is no longer logged in.
    pub login_idle: Duration,
    /// What a client writes to log in; without it nobody can.
    pub token: Option<[u8; 16]>,
    /// Where the token is written, in bytes: its four words, the first byte most significant, at rising addresses or all to the first.
    pub login: u32,
    /// A write here logs out.
    pub logout: u32,
    /// Which hosts are answered.
    pub sources: SourceFilter,
}

/// How often a client that has not logged in gets a response again: its address may be another's, whom a stranger floods so.
const RESENDS: u32 = 4;

/// What a server counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCounters {
    /// Packets of hosts that the filter does not take.
    pub filtered: u64,
    /// Packets that are none, or not the next of their client.
    pub dropped: u64,
    /// Packets of new clients for which there was no room.
    pub no_room: u64,
    /// Accesses without permission.
    pub refused: u64,
    /// Wrong tokens.
    pub wrong_tokens: u64,
}

/// A server of IPbus packets for many clients.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    clients: Vec<Client>,
    counters: ServerCounters,
}

#[derive(Debug)]
struct Client {
    address: SocketAddr,
    seen: Duration,
    authorised: bool,
    login: Login,
    next: u16,
    stored: VecDeque<Stored>,
}

#[derive(Debug)]
struct Stored {
    id: u16,
    answer: Vec<u8>,
    resends: u32,
}

/// The words of a token so far.
#[derive(Debug, Default, Clone, Copy)]
struct Login {
    words: [u32; 4],
    count: usize,
}

impl Client {
    fn new(address: SocketAddr, now: Duration) -> Self {
        Self { address, seen: now, authorised: false, login: Login::default(), next: 1, stored: VecDeque::new() }
    }
}

impl Server {
    /// A server without clients.
    #[must_use]
    pub fn new(config: ServerConfig) -> Self {
        Self { config, clients: Vec::new(), counters: ServerCounters::default() }
    }

    /// What it counted.
    #[must_use]
    pub fn counters(&self) -> ServerCounters {
        self.counters
    }

    /// Takes a datagram of a client, does what it says to `bus`, and gives the datagram that answers it.
    pub fn receive(&mut self, from: SocketAddr, datagram: &[u8], now: Duration, bus: &mut impl Bus) -> Option<Vec<u8>> {
        if !self.config.sources.takes(from.ip()) {
            self.counters.filtered += 1;
            return None;
        }
        let answer = self.packet(from, datagram, now, bus);
        self.counters.dropped += u64::from(answer.is_none());
        answer
    }

    fn packet(&mut self, from: SocketAddr, datagram: &[u8], now: Duration, bus: &mut impl Bus) -> Option<Vec<u8>> {
        let (chunks, rest) = datagram.as_chunks::<4>();
        if !rest.is_empty() || datagram.len() > self.config.mtu {
            return None;
        }
        let (header, order) = PacketHeader::parse(*chunks.first()?).ok()?;
        let words: Vec<u32> = chunks.iter().map(|bytes| order.word(*bytes)).collect();
        let known = self.clients.iter().position(|client| client.address == from);
        match header.kind {
            // As long as its answer: nobody can have much sent to a third party.
            PacketKind::Status if header.id == 0 && words.len() == STATUS_WORDS => {
                let next = known.map_or(1, |client| self.clients[client].next);
                let status = Status { mtu: self.config.mtu as u32, buffers: self.config.buffers as u32, next };
                Some(bytes(&status.to_words(), order))
            }
            PacketKind::Resend if words.len() == 1 => {
                let client = &mut self.clients[known?];
                let stored = client.stored.iter_mut().find(|stored| stored.id == header.id)?;
                stored.resends += 1;
                (client.authorised || stored.resends <= RESENDS).then(|| stored.answer.clone())
            }
            PacketKind::Control => self.control(from, known, header, &words, order, now, bus),
            _ => None,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one packet")]
    fn control(
        &mut self,
        from: SocketAddr,
        known: Option<usize>,
        header: PacketHeader,
        words: &[u32],
        order: ByteOrder,
        now: Duration,
        bus: &mut impl Bus,
    ) -> Option<Vec<u8>> {
        // A packet outside the sequence needs no state: it is served also when there is no room for its client.
        let mut client = match known {
            Some(index) => self.clients.swap_remove(index),
            None => Client::new(from, now),
        };
        if now.saturating_sub(client.seen) > self.config.login_idle {
            client.authorised = false;
        }
        let keep = known.is_some() || header.id != 0;
        let expected = header.id == 0 || header.id == client.next;
        if !expected || (known.is_none() && keep && !self.make_room(now, false)) {
            if known.is_some() {
                self.clients.push(client);
            }
            return None;
        }
        client.seen = now;
        let mut answer = vec![header.to_word()];
        self.transactions(&mut client, words, &mut answer, bus);
        let answer = bytes(&answer, order);
        if header.id != 0 {
            client.next = next_id(client.next);
            client.stored.push_back(Stored { id: header.id, answer: answer.clone(), resends: 0 });
            client.stored.drain(..client.stored.len().saturating_sub(self.config.buffers));
        }
        if keep || (client.authorised && self.make_room(now, true)) {
            self.clients.push(client);
        }
        Some(answer)
    }

    /// Room for one client more: that of one that has been silent for long, or for who has the token that of any who has not.
    fn make_room(&mut self, now: Duration, token: bool) -> bool {
        if self.clients.len() < self.config.clients {
            return true;
        }
        let gone =
            |client: &&Client| now.saturating_sub(client.seen) > self.config.idle || (token && !client.authorised);
        let oldest = self
            .clients
            .iter()
            .filter(gone)
            .min_by_key(|client| (client.authorised, client.seen))
            .map(|client| client.address);
        self.counters.no_room += u64::from(oldest.is_none());
        self.clients.retain(|client| Some(client.address) != oldest);
        oldest.is_some()
    }

    /// Does the transactions of a packet, up to the first whose header is bad.
    fn transactions(&mut self, client: &mut Client, words: &[u32], answer: &mut Vec<u32>, bus: &mut impl Bus) {
        let mut rest = &words[1..];
        while let Some((&word, body)) = rest.split_first() {
            // Who has not logged in gets no more than was sent: the sender's address may be another's.
            let room =
                if client.authorised { self.config.mtu / 4 } else { words.len() }.saturating_sub(answer.len() + 1);
            let header = TransactionHeader::from_word(word).filter(|header| header.info == InfoCode::Request);
            let Some(header) = header.filter(|header| known_kind(header.kind) && body.len() >= header.request_words())
            else {
                answer.push(word & !0xf | 1);
                return;
            };
            let (arguments, behind) = body.split_at(header.request_words());
            let results = response_words(header);
            if results > room {
                let info = if results > self.config.mtu / 4 { InfoCode::BadHeader } else { InfoCode::ReadError };
                answer.push(TransactionHeader { words: 0, info, ..header }.to_word());
                return;
            }
            self.transaction(client, header, arguments, answer, bus);
            rest = behind;
        }
    }

    fn transaction(
        &mut self,
        client: &mut Client,
        header: TransactionHeader,
        arguments: &[u32],
        answer: &mut Vec<u32>,
        bus: &mut impl Bus,
    ) {
        let at = answer.len();
        answer.push(0);
        let (base, data) = (arguments[0], &arguments[1..]);
        let increments = matches!(header.kind, TransactionKind::Read | TransactionKind::Write);
        let address = |index: usize| if increments { base.wrapping_add(index as u32) } else { base };
        let result = match header.kind {
            TransactionKind::Read | TransactionKind::NonIncrementingRead => (0..usize::from(header.words))
                .try_for_each(|index| {
                    answer.push(self.read(client, address(index), bus).map_err(|BusError| InfoCode::ReadError)?);
                    Ok(())
                }),
            TransactionKind::Write | TransactionKind::NonIncrementingWrite => {
                data.iter().enumerate().try_for_each(|(index, value)| {
                    self.write(client, address(index), *value, bus).map_err(|BusError| InfoCode::WriteError)
                })
            }
            _ => self.read(client, base, bus).map_err(|BusError| InfoCode::ReadError).and_then(|old| {
                let new = match data {
                    [and, or] => old & and | or,
                    _ => old.wrapping_add(data[0]),
                };
                self.write(client, base, new, bus).map_err(|BusError| InfoCode::WriteError)?;
                answer.push(old);
                Ok(())
            }),
        };
        let info = result.err().unwrap_or(InfoCode::Success);
        let words = match info {
            InfoCode::Success => header.words,
            // So many were read.
            InfoCode::ReadError => (answer.len() - at - 1) as u8,
            _ => 0,
        };
        answer[at] = TransactionHeader { words, info, ..header }.to_word();
    }

    fn read(&mut self, client: &Client, address: u32, bus: &mut impl Bus) -> Result<u32, BusError> {
        let address = address.checked_mul(4).ok_or(BusError)?;
        self.permit(client, bus.permission(address, false))?;
        bus.read(address)
    }

    fn write(&mut self, client: &mut Client, address: u32, value: u32, bus: &mut impl Bus) -> Result<(), BusError> {
        let address = address.checked_mul(4).ok_or(BusError)?;
        if (self.config.login..self.config.login + 16).contains(&address) {
            return self.login(client, value);
        }
        if address == self.config.logout {
            client.authorised = false;
            return Ok(());
        }
        self.permit(client, bus.permission(address, true))?;
        bus.write(address, value)
    }

    fn permit(&mut self, client: &Client, permission: Permission) -> Result<(), BusError> {
        let may = match permission {
            Permission::Public => true,
            Permission::Authorised => client.authorised,
            Permission::Local => false,
        };
        self.counters.refused += u64::from(!may);
        if may { Ok(()) } else { Err(BusError) }
    }

    /// Takes the next word of a token. The fourth decides.
    fn login(&mut self, client: &mut Client, word: u32) -> Result<(), BusError> {
        client.login.words[client.login.count] = word;
        client.login.count += 1;
        if client.login.count < client.login.words.len() {
            return Ok(());
        }
        let written = std::mem::take(&mut client.login).words;
        client.authorised = false;
        let Some(token) = self.config.token else { return Err(BusError) };
        let (token, _) = token.as_chunks::<4>();
        // All words are compared, whichever differs.
        let differs =
            token.iter().zip(written).fold(0, |differs, (token, word)| differs | (u32::from_be_bytes(*token) ^ word));
        if differs != 0 {
            self.counters.wrong_tokens += 1;
            return Err(BusError);
        }
        client.authorised = true;
        Ok(())
    }
}

/// There is no configuration space.
fn known_kind(kind: TransactionKind) -> bool {
    !matches!(kind, TransactionKind::ConfigurationRead | TransactionKind::ConfigurationWrite)
}

/// Words of the response behind its header.
fn response_words(header: TransactionHeader) -> usize {
    match header.kind {
        TransactionKind::Read | TransactionKind::NonIncrementingRead => header.words.into(),
        TransactionKind::RmwBits | TransactionKind::RmwSum => 1,
        _ => 0,
    }
}

fn bytes(words: &[u32], order: ByteOrder) -> Vec<u8> {
    words.iter().flat_map(|word| order.bytes(*word)).collect()
}
