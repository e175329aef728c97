// SPDX-License-Identifier: Apache-2.0
//! The device's side, as a pure state machine: what a packet of a client does to the registers, and who may do what. It answers as the
//! RTL does (docs/reference/ipbus.md).

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

/// Packets that clients without authorisation may send, all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// So many at once,
    pub burst: u32,
    /// and one more after each of these times; 0 for no bound.
    pub pause: Duration,
}

/// Settings of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Contexts: clients at once that are authorised or served reliably.
    pub clients: usize,
    /// Responses that are stored for each.
    pub buffers: usize,
    /// Longest packet in bytes, in both directions.
    pub mtu: usize,
    /// The context of an authorised client that was silent for this long goes to another one that has the token, if there is no other.
    pub in_use: Duration,
    /// A client that was silent for this long is no longer authorised.
    pub session: Duration,
    /// What a client writes to log in; without it nobody can.
    pub token: Option<[u8; 16]>,
    /// Where the token is written, in bytes: its four words, the first byte most significant, at rising addresses or all to the first.
    pub login: u32,
    /// A write here logs out.
    pub logout: u32,
    /// Which hosts are answered.
    pub sources: SourceFilter,
    /// How much of those who have not logged in is taken.
    pub strangers: Budget,
}

/// How often a client that has not logged in gets a response again: its address may be another's, whom a stranger floods so.
const RESENDS: u32 = 3;
/// The first words of the configuration space: what this is, and the version of that space.
const CONFIGURATION: [u32; 2] = [u32::from_be_bytes(*b"NACL"), 1];

/// What a server counted: as the counters `service_*` of the RTL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCounters {
    /// Packets taken.
    pub rx_message: u64,
    /// Packets sent.
    pub tx_message: u64,
    /// Packets of hosts that the filter does not take.
    pub drop_source: u64,
    /// Packets of strangers over their budget.
    pub drop_rate: u64,
    /// Packets that are too long.
    pub drop_length: u64,
    /// Packets that are none.
    pub drop_malformed: u64,
    /// Control packets that are not the next of their client.
    pub drop_id: u64,
    /// Control packets of new clients, all contexts being authorised clients'.
    pub drop_context: u64,
    /// Accesses without permission.
    pub refused: u64,
    /// Accesses that a register answered with an error.
    pub bus_error: u64,
    /// Logins.
    pub login: u64,
    /// Wrong tokens.
    pub login_wrong: u64,
    /// Logins with the token for which there was no context.
    pub login_refused: u64,
    /// Sessions that ended by silence.
    pub session_expired: u64,
    /// Responses sent again.
    pub resent: u64,
    /// Requests for responses that are not kept, or were sent too often.
    pub resend_unknown: u64,
}

/// A server of IPbus packets for many clients.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    clients: Vec<Client>,
    counters: ServerCounters,
    /// When the budget of strangers is whole again.
    paid: Duration,
}

/// A client that has a context.
#[derive(Debug)]
struct Client {
    address: SocketAddr,
    seen: Duration,
    authorised: bool,
    next: u16,
    stored: VecDeque<Stored>,
}

#[derive(Debug)]
struct Stored {
    id: u16,
    answer: Vec<u8>,
    resends: u32,
}

/// The packet that is worked on: whose it is, and what is sent back.
struct Turn {
    from: SocketAddr,
    now: Duration,
    answer: Vec<u32>,
}

/// A transaction that can be carried out.
struct Asked<'a> {
    header: TransactionHeader,
    base: u32,
    data: &'a [u32],
}

impl Asked<'_> {
    fn address(&self, index: usize) -> u32 {
        let increments = matches!(self.header.kind, TransactionKind::Read | TransactionKind::Write);
        if increments { self.base.wrapping_add(index as u32) } else { self.base }
    }
}

impl Server {
    /// A server without clients.
    #[must_use]
    pub fn new(config: ServerConfig) -> Self {
        Self { config, clients: Vec::new(), counters: ServerCounters::default(), paid: Duration::ZERO }
    }

    /// Its settings, which may change at any time.
    pub fn config_mut(&mut self) -> &mut ServerConfig {
        &mut self.config
    }

    /// Its settings.
    #[must_use]
    pub fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// What it counted.
    #[must_use]
    pub fn counters(&self) -> ServerCounters {
        self.counters
    }

    /// Takes a datagram of a client, does what it says to `bus`, and gives the datagram that answers it.
    pub fn receive(&mut self, from: SocketAddr, datagram: &[u8], now: Duration, bus: &mut impl Bus) -> Option<Vec<u8>> {
        if !self.config.sources.takes(from.ip()) {
            self.counters.drop_source += 1;
            return None;
        }
        self.expire(now);
        if !self.is_authorised(from) && !self.afford(now) {
            self.counters.drop_rate += 1;
            return None;
        }
        if datagram.len() > self.config.mtu {
            self.counters.drop_length += 1;
            return None;
        }
        self.counters.rx_message += 1;
        let answer = self.packet(from, datagram, now, bus);
        self.counters.tx_message += u64::from(answer.is_some());
        answer
    }

    /// Sessions end by silence.
    fn expire(&mut self, now: Duration) {
        for client in &mut self.clients {
            if client.authorised && now.saturating_sub(client.seen) > self.config.session {
                client.authorised = false;
                self.counters.session_expired += 1;
            }
        }
    }

    /// Whether the budget of strangers has one packet more.
    fn afford(&mut self, now: Duration) -> bool {
        let Budget { burst, pause } = self.config.strangers;
        let owed = self.paid.saturating_sub(now);
        let within = owed <= pause * burst.saturating_sub(1);
        if within {
            self.paid = now + owed + pause;
        }
        within
    }

    fn client(&mut self, from: SocketAddr) -> Option<&mut Client> {
        self.clients.iter_mut().find(|client| client.address == from)
    }

    fn is_authorised(&self, from: SocketAddr) -> bool {
        self.clients.iter().any(|client| client.address == from && client.authorised)
    }

    fn packet(&mut self, from: SocketAddr, datagram: &[u8], now: Duration, bus: &mut impl Bus) -> Option<Vec<u8>> {
        let (chunks, rest) = datagram.as_chunks::<4>();
        let parsed = chunks.first().filter(|_| rest.is_empty()).and_then(|first| PacketHeader::parse(*first).ok());
        if let Some((header, order)) = parsed {
            let words: Vec<u32> = chunks.iter().map(|bytes| order.word(*bytes)).collect();
            match header.kind {
                // As long as its answer: nobody can have much sent to a third party.
                PacketKind::Status if header.id == 0 && words.len() == STATUS_WORDS => {
                    return Some(bytes(&self.status(from, now).to_words(), order));
                }
                PacketKind::Resend if header.id != 0 && words.len() == 1 => return self.resend(from, header.id, now),
                PacketKind::Control => {
                    return self.control(
                        Turn { from, now, answer: vec![header.to_word()] },
                        header.id,
                        &words[1..],
                        order,
                        bus,
                    );
                }
                _ => {}
            }
        }
        self.counters.drop_malformed += 1;
        None
    }

    fn status(&mut self, from: SocketAddr, now: Duration) -> Status {
        let next = self.client(from).map_or(1, |client| {
            client.seen = now;
            client.next
        });
        Status { mtu: self.config.mtu as u32, buffers: self.config.buffers as u32, next }
    }

    fn resend(&mut self, from: SocketAddr, id: u16, now: Duration) -> Option<Vec<u8>> {
        let answer = self.client(from).and_then(|client| {
            let stored = client.stored.iter_mut().find(|stored| stored.id == id)?;
            if !client.authorised {
                stored.resends = stored.resends.checked_sub(1)?;
            }
            client.seen = now;
            Some(stored.answer.clone())
        });
        match answer {
            Some(_) => self.counters.resent += 1,
            None => self.counters.resend_unknown += 1,
        }
        answer
    }

    fn control(
        &mut self,
        mut turn: Turn,
        id: u16,
        words: &[u32],
        order: ByteOrder,
        bus: &mut impl Bus,
    ) -> Option<Vec<u8>> {
        let Turn { from, now, .. } = turn;
        let next = self.client(from).map(|client| client.next);
        if id != 0 && id != next.unwrap_or(1) {
            self.counters.drop_id += 1;
            return None;
        }
        // A packet outside the sequence needs no context.
        if id != 0 && next.is_none() && !self.enter(from, now, false) {
            self.counters.drop_context += 1;
            return None;
        }
        if let Some(client) = self.client(from) {
            client.seen = now;
            client.next = if id == 0 { client.next } else { next_id(id) };
        }
        self.transactions(&mut turn, words, bus);
        let answer = bytes(&turn.answer, order);
        let buffers = self.config.buffers;
        if let Some(client) = self.client(from).filter(|_| id != 0) {
            client.stored.push_back(Stored { id, answer: answer.clone(), resends: RESENDS });
            client.stored.drain(..client.stored.len().saturating_sub(buffers));
        }
        Some(answer)
    }

    /// A context for a client that has none: a free one, else that of the one without authorisation that was silent for the longest time. One
    /// with the `token` gets that of an authorised client, too, if that has been silent for long. Whether there is one.
    fn enter(&mut self, from: SocketAddr, now: Duration, token: bool) -> bool {
        if self.clients.len() >= self.config.clients {
            let in_use = self.config.in_use;
            let gone = |client: &&Client| !client.authorised || token && now.saturating_sub(client.seen) >= in_use;
            let victim = self.clients.iter().filter(gone).min_by_key(|client| (client.authorised, client.seen));
            let Some(victim) = victim.map(|client| client.address) else { return false };
            self.clients.retain(|client| client.address != victim);
        }
        self.clients.push(Client { address: from, seen: now, authorised: false, next: 1, stored: VecDeque::new() });
        true
    }

    /// Does the transactions of a packet, up to the first that fails.
    fn transactions(&mut self, turn: &mut Turn, words: &[u32], bus: &mut impl Bus) {
        let max_words = self.config.mtu / 4;
        let mut rest = words;
        while let Some((&word, body)) = rest.split_first() {
            if turn.answer.len() >= max_words {
                return;
            }
            let Some((asked, behind)) = asked(word, body, max_words - turn.answer.len() - 1) else {
                // The words of the response that the header announces: none.
                turn.answer.push(word & 0x0fff_00f0 | 0x2000_0001);
                return;
            };
            let at = turn.answer.len();
            turn.answer.push(0);
            let (done, info) = match self.transaction(turn, &asked, bus) {
                Ok(()) => (asked.header.words, InfoCode::Success),
                Err((done, info)) => (done as u8, info),
            };
            turn.answer[at] = TransactionHeader { words: done, info, ..asked.header }.to_word();
            if info != InfoCode::Success {
                return;
            }
            rest = behind;
        }
    }

    /// Does one transaction. An error has the words that were done before.
    fn transaction(&mut self, turn: &mut Turn, asked: &Asked, bus: &mut impl Bus) -> Result<(), (usize, InfoCode)> {
        use TransactionKind as Kind;
        let words = usize::from(asked.header.words);
        let reads = matches!(asked.header.kind, Kind::Read | Kind::NonIncrementingRead | Kind::ConfigurationRead);
        if reads && words > 1 && !self.is_authorised(turn.from) {
            // Its response would be longer than the request, and the sender's address may be another's.
            self.counters.refused += 1;
            return Err((0, InfoCode::ReadError));
        }
        let mut token = [0; 4];
        for index in 0..words {
            let address = asked.address(index);
            let read = |BusError| (index, InfoCode::ReadError);
            let write = |BusError| (index, InfoCode::WriteError);
            match asked.header.kind {
                Kind::Read | Kind::NonIncrementingRead => {
                    let value = self.read(turn.from, address, bus).map_err(read)?;
                    turn.answer.push(value);
                }
                Kind::Write | Kind::NonIncrementingWrite if self.is_login(address) => {
                    let begins = address * 4 == self.config.login && words == token.len();
                    if index == 0 && !begins {
                        self.counters.refused += 1;
                        return Err(write(BusError));
                    }
                    token[index] = asked.data[index];
                    if index + 1 == words {
                        self.log_in(turn.from, turn.now, token).map_err(write)?;
                    }
                }
                Kind::Write | Kind::NonIncrementingWrite => {
                    self.write(turn.from, address, asked.data[index], bus).map_err(write)?;
                }
                Kind::RmwBits | Kind::RmwSum => {
                    let old = self.read(turn.from, address, bus).map_err(read)?;
                    let new = match asked.data {
                        [and, or] => old & and | or,
                        data => old.wrapping_add(data[0]),
                    };
                    self.write(turn.from, address, new, bus).map_err(write)?;
                    turn.answer.push(old);
                }
                Kind::ConfigurationRead => {
                    let at = address.wrapping_add(index as u32) as usize;
                    let value = self.configuration(turn.from).get(at).copied().ok_or(BusError).map_err(read)?;
                    turn.answer.push(value);
                }
                Kind::ConfigurationWrite => return Err(write(BusError)),
            }
        }
        Ok(())
    }

    /// The words of the configuration space, for this client.
    fn configuration(&self, from: SocketAddr) -> [u32; 4] {
        let ServerConfig { clients, buffers, mtu, .. } = self.config;
        let shape = (clients as u32) << 24 | (buffers as u32) << 16 | mtu as u32;
        [CONFIGURATION[0], CONFIGURATION[1], shape, self.is_authorised(from).into()]
    }

    fn is_login(&self, address: u32) -> bool {
        (self.config.login / 4..self.config.login / 4 + 4).contains(&address)
    }

    fn read(&mut self, from: SocketAddr, address: u32, bus: &mut impl Bus) -> Result<u32, BusError> {
        let address = self.permit(from, address, false, bus)?;
        let read = bus.read(address);
        self.counters.bus_error += u64::from(read.is_err());
        read
    }

    fn write(&mut self, from: SocketAddr, address: u32, value: u32, bus: &mut impl Bus) -> Result<(), BusError> {
        if self.is_login(address) {
            self.counters.refused += 1;
            return Err(BusError);
        }
        let address = self.permit(from, address, true, bus)?;
        if address == self.config.logout {
            if let Some(client) = self.client(from) {
                client.authorised = false;
            }
            return Ok(());
        }
        let written = bus.write(address, value);
        self.counters.bus_error += u64::from(written.is_err());
        written
    }

    /// The address in bytes of a word that this client may access.
    fn permit(&mut self, from: SocketAddr, address: u32, write: bool, bus: &mut impl Bus) -> Result<u32, BusError> {
        let address = address.checked_mul(4).ok_or(BusError)?;
        let may = match bus.permission(address, write) {
            Permission::Public => true,
            Permission::Authorised => self.is_authorised(from),
            Permission::Local => false,
        };
        self.counters.refused += u64::from(!may);
        if may { Ok(address) } else { Err(BusError) }
    }

    /// Lets a client in that has written the token.
    fn log_in(&mut self, from: SocketAddr, now: Duration, written: [u32; 4]) -> Result<(), BusError> {
        let token = self.config.token.filter(|token| *token != [0; 16]);
        let words = token.map(|token| {
            let (words, _) = token.as_chunks::<4>();
            // All words are compared, whichever differs.
            words
                .iter()
                .zip(written)
                .fold(0, |differs, (word, written)| differs | (u32::from_be_bytes(*word) ^ written))
        });
        if words != Some(0) {
            self.counters.login_wrong += 1;
            return Err(BusError);
        }
        if self.client(from).is_none() && !self.enter(from, now, true) {
            self.counters.login_refused += 1;
            return Err(BusError);
        }
        if let Some(client) = self.client(from) {
            client.authorised = true;
        }
        self.counters.login += 1;
        Ok(())
    }
}

/// A transaction from its header and what follows it, if it can be carried out and its response has room, and what is behind it.
fn asked(word: u32, body: &[u32], room: usize) -> Option<(Asked<'_>, &[u32])> {
    let header = TransactionHeader::from_word(word).filter(|header| header.info == InfoCode::Request)?;
    let modifies = matches!(header.kind, TransactionKind::RmwBits | TransactionKind::RmwSum);
    if (modifies && header.words != 1) || response_words(header) > room {
        return None;
    }
    let (arguments, behind) = body.split_at_checked(header.request_words())?;
    let (base, data) = arguments.split_first()?;
    Some((Asked { header, base: *base, data }, behind))
}

/// Words of the response behind its header.
fn response_words(header: TransactionHeader) -> usize {
    match header.kind {
        TransactionKind::Write | TransactionKind::NonIncrementingWrite | TransactionKind::ConfigurationWrite => 0,
        _ => header.words.into(),
    }
}

fn bytes(words: &[u32], order: ByteOrder) -> Vec<u8> {
    words.iter().flat_map(|word| order.bytes(*word)).collect()
}
