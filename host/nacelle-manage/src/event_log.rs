// SPDX-License-Identifier: Apache-2.0
//! What has happened to a device, by its registers (docs/reference/event-log.md).

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use nacelle_wire::admission::Why;
use nacelle_wire::cm::RejReason;
use serde::{Serialize, Serializer};

use crate::Registers;
use crate::map::{BLOCKS, event_log};

/// Rings of entries.
pub const RINGS: u32 = 4;
/// Entries of a ring.
pub const RING_ENTRIES: u32 = 32;
/// Words of an entry.
const ENTRY_WORDS: u32 = 4;
/// Bits of a time.
const TIME_BITS: u32 = 48;
/// What stands for no entry of admission.
pub const NO_ENTRY: u8 = 0xff;

/// A kind of entry. Its upper two bits are its ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind(pub u8);

impl Kind {
    /// The device takes frames and answers: its address.
    pub const ENABLED: Self = Self(0x00);
    /// The device no longer does.
    pub const DISABLED: Self = Self(0x01);
    /// An entry of admission is valid: its number.
    pub const ENTRY_ADDED: Self = Self(0x02);
    /// Likewise, was revoked.
    pub const ENTRY_REVOKED: Self = Self(0x03);
    /// Likewise, its time is over.
    pub const ENTRY_TIME_OVER: Self = Self(0x04);
    /// Likewise, is free.
    pub const ENTRY_FREED: Self = Self(0x05);
    /// A client of the registers over the network has logged in: its address.
    pub const LOGIN: Self = Self(0x06);
    /// Such a client was silent for too long.
    pub const SESSION_EXPIRED: Self = Self(0x07);
    /// A socket has another kernel: socket, image.
    pub const KERNEL_REPLACED: Self = Self(0x08);
    /// A kernel took too long: socket.
    pub const KERNEL_TIMEOUT: Self = Self(0x40);
    /// A kernel reached beyond its memory, or this failed: socket.
    pub const KERNEL_MEMORY: Self = Self(0x41);
    /// Memory reported errors: counter, how many so far.
    pub const MEMORY_ERROR: Self = Self(0x42);
    /// The copy engine has stopped: why, descriptors that it had taken.
    pub const COPY_STOPPED: Self = Self(0x43);
    /// The kernel on the path of the network card was cut off: why, in which direction.
    pub const STREAM_CUT: Self = Self(0x44);
    /// A connection was opened: peer, by which entry, queue pair.
    pub const OPENED: Self = Self(0x80);
    /// A connection has ended: peer, why, queue pair.
    pub const CLOSED: Self = Self(0x81);
    /// A connection that the device opens was refused: peer, reason.
    pub const CONNECT_FAILED: Self = Self(0x82);
    /// A queue pair failed: status, queue pair.
    pub const QP_FAILED: Self = Self(0x83);
    /// A caller was refused: peer, reasons.
    pub const REFUSED: Self = Self(0xc0);
    /// A login with a wrong token: address.
    pub const LOGIN_WRONG: Self = Self(0xc1);
    /// A login for which there was no room: address.
    pub const LOGIN_REFUSED: Self = Self(0xc2);
    /// Something was dropped: counter, how many so far.
    pub const DROPPED: Self = Self(0xc3);
    /// Another host has the IPv6 address that the device probed for: its prefix.
    pub const DUPLICATE: Self = Self(0xc4);

    /// Every kind, and its name.
    pub const ALL: [(Self, &'static str); 23] = [
        (Self::ENABLED, "enabled"),
        (Self::DISABLED, "disabled"),
        (Self::ENTRY_ADDED, "entry-added"),
        (Self::ENTRY_REVOKED, "entry-revoked"),
        (Self::ENTRY_TIME_OVER, "entry-time-over"),
        (Self::ENTRY_FREED, "entry-freed"),
        (Self::LOGIN, "login"),
        (Self::SESSION_EXPIRED, "session-expired"),
        (Self::KERNEL_REPLACED, "kernel-replaced"),
        (Self::KERNEL_TIMEOUT, "kernel-timeout"),
        (Self::KERNEL_MEMORY, "kernel-memory"),
        (Self::MEMORY_ERROR, "memory-error"),
        (Self::COPY_STOPPED, "copy-stopped"),
        (Self::STREAM_CUT, "stream-cut"),
        (Self::OPENED, "opened"),
        (Self::CLOSED, "closed"),
        (Self::CONNECT_FAILED, "connect-failed"),
        (Self::QP_FAILED, "qp-failed"),
        (Self::REFUSED, "refused"),
        (Self::LOGIN_WRONG, "login-wrong"),
        (Self::LOGIN_REFUSED, "login-refused"),
        (Self::DROPPED, "dropped"),
        (Self::DUPLICATE, "duplicate"),
    ];

    /// Its ring.
    #[must_use]
    pub const fn ring(self) -> u32 {
        (self.0 >> 6) as u32
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::ALL.iter().find(|(kind, _)| kind == self) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "kind-{:#04x}", self.0),
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Why a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Closed {
    /// By its peer.
    Peer,
    /// Its peer did not answer.
    Timeout,
    /// By the device, or its queue pair failed.
    Device,
    /// The peer no longer has it.
    Stale,
    /// The entry that admitted it was revoked.
    Revoked,
    /// The time of that entry is over.
    TimeOver,
}

/// An entry: when, what, and two words about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its number in its ring.
    pub number: u32,
    /// When, in ticks since the device's reset, modulo 2<sup>48</sup>.
    pub ticks: u64,
    /// What.
    pub kind: Kind,
    /// First word.
    pub a: u32,
    /// Second word.
    pub b: u32,
}

impl Entry {
    /// From its words.
    #[must_use]
    pub fn from_words(number: u32, words: [u32; 4]) -> Self {
        let [low, middle, a, b] = words;
        let ticks = u64::from(middle & 0xffff) << 32 | u64::from(low);
        Self { number, ticks, kind: Kind((middle >> 24) as u8), a, b }
    }

    /// Its words.
    #[must_use]
    pub const fn words(&self) -> [u32; 4] {
        let high = (self.ticks >> 32) as u32 & 0xffff;
        [self.ticks as u32, (self.kind.0 as u32) << 24 | high, self.a, self.b]
    }

    /// The two words in their meanings.
    #[must_use]
    pub fn details(&self) -> Details {
        let none = Details::default();
        let address = Some(Ipv4Addr::from_bits(self.a));
        let qpn = Some(self.b & 0x00ff_ffff);
        let about = (self.b >> 24) as u8;
        match self.kind {
            Kind::ENABLED | Kind::LOGIN | Kind::LOGIN_WRONG | Kind::LOGIN_REFUSED => Details { address, ..none },
            Kind::ENTRY_ADDED | Kind::ENTRY_REVOKED | Kind::ENTRY_TIME_OVER | Kind::ENTRY_FREED => {
                Details { entry: Some(self.a as u8), ..none }
            }
            Kind::KERNEL_REPLACED => Details { socket: Some(self.a), image: Some(self.b), ..none },
            Kind::KERNEL_TIMEOUT | Kind::KERNEL_MEMORY => Details { socket: Some(self.a), ..none },
            Kind::MEMORY_ERROR | Kind::DROPPED => {
                Details { counter: Some(counter_at(self.a)), count: Some(self.b), ..none }
            }
            Kind::COPY_STOPPED => {
                Details { reason: Some(copy_stopped(self.a).to_owned()), count: Some(self.b), ..none }
            }
            Kind::STREAM_CUT => Details { reason: Some(stream_cut(self.a, self.b)), ..none },
            Kind::DUPLICATE => {
                let prefix = u128::from(self.a) << 96 | u128::from(self.b) << 64;
                Details { prefix: Some(Ipv6Addr::from_bits(prefix)), ..none }
            }
            Kind::OPENED => Details { address, qpn, entry: (about != NO_ENTRY).then_some(about), ..none },
            Kind::CLOSED => Details { address, qpn, reason: Some(closed(about)), ..none },
            Kind::CONNECT_FAILED => Details { address, reason: Some(refused(self.b as u16, 0)), ..none },
            Kind::QP_FAILED => Details { qpn, reason: Some(status(self.a)), ..none },
            Kind::REFUSED => {
                let why = self.b as u16;
                Details { address, reason: Some(refused((self.b >> 16) as u16, why)), ..none }
            }
            _ => Details { words: Some([self.a, self.b]), ..none },
        }
    }
}

/// What is known beside the kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct Details {
    /// The other side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Ipv4Addr>,
    /// The queue pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qpn: Option<u32>,
    /// The entry of admission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<u8>,
    /// The socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<u32>,
    /// The image that is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<u32>,
    /// The IPv6 prefix that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Ipv6Addr>,
    /// What has counted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<String>,
    /// How often so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Both words, of a kind that is not known here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<[u32; 2]>,
}

/// Why the copy engine has stopped, in words.
#[must_use]
pub fn copy_stopped(why: u32) -> &'static str {
    match why {
        1 => "a ring has a size that none can have",
        2 => "the doorbell is further ahead than the ring is long",
        3 => "descriptors could not be read",
        4 => "a completion could not be written",
        5 => "a bad descriptor",
        6 => "the function was reset",
        _ => "a reason that is not known",
    }
}

fn stream_cut(why: u32, tx: u32) -> String {
    let what = match why {
        1 => "was late",
        2 => "left that it had not been given",
        3 => "was too long",
        4 => "was malformed",
        _ => "was wrong in a way that is not known",
    };
    format!("a {} frame {what}", if tx == 0 { "received" } else { "sent" })
}

fn counter_at(address: u32) -> String {
    let device = BLOCKS.iter().find(|block| block.name == "device");
    let counter = device.and_then(|block| block.registers.iter().find(|register| register.offset == address));
    counter.map_or_else(|| format!("register {address:#x}"), |register| register.name.to_owned())
}

fn closed(code: u8) -> String {
    let all = [
        (Closed::Peer, "by its peer"),
        (Closed::Timeout, "its peer did not answer"),
        (Closed::Device, "by the device, or its queue pair failed"),
        (Closed::Stale, "its peer no longer has it"),
        (Closed::Revoked, "its admission was revoked"),
        (Closed::TimeOver, "the time of its admission is over"),
    ];
    let found = all.iter().find(|(closed, _)| *closed as u8 == code);
    found.map_or_else(|| format!("reason {code}"), |(_, text)| (*text).to_owned())
}

/// In words: what admission says if it was that, else the reason of the REJ.
fn refused(reason: u16, why: u16) -> String {
    match Why::ALL.into_iter().find(|known| *known as u16 == why) {
        Some(why) => why.text().to_owned(),
        None if reason == 0 => "the device did not answer".to_owned(),
        None => RejReason(reason).text().to_owned(),
    }
}

/// In words: the status of a work request, by the number that verbs gives it.
fn status(code: u32) -> String {
    match code {
        1 => "local length error".into(),
        2 => "local QP operation error".into(),
        4 => "local protection error".into(),
        5 => "flushed".into(),
        7 => "bad response".into(),
        8 => "local access violation".into(),
        9 => "remote invalid request".into(),
        10 => "remote access error".into(),
        11 => "remote operation error".into(),
        12 => "transport retry count exceeded".into(),
        13 => "receiver-not-ready retry count exceeded".into(),
        code => format!("status {code}"),
    }
}

/// What is new.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// In the order of their times, the oldest first.
    pub entries: Vec<Entry>,
    /// Entries that were written and are no longer there, of each ring.
    pub missed: [u32; RINGS as usize],
    /// Events that were never taken down, since the device's reset.
    pub lost: u32,
    /// Ticks now.
    pub now: u64,
}

/// Why the log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError<E> {
    /// The registers cannot be accessed.
    #[error(transparent)]
    Access(E),
    /// The device has none.
    #[error("the device has no event log")]
    None,
}

/// The log of a device, by any way to its registers, and how far it was read.
pub struct EventLog<'a, R> {
    registers: &'a mut R,
    ticks_hz: u32,
    next: [u32; RINGS as usize],
}

impl<'a, R: Registers> EventLog<'a, R> {
    /// That of this device, from its oldest entries on.
    ///
    /// # Errors
    /// If it has none.
    pub fn new(registers: &'a mut R) -> Result<Self, LogError<R::Error>> {
        let mut own = Self { registers, ticks_hz: 1, next: [0; RINGS as usize] };
        let kind = own.read(event_log::TYPE.at(event_log::BASE))?;
        if kind.to_be_bytes() != event_log::BLOCK.kind {
            return Err(LogError::None);
        }
        own.ticks_hz = own.read(event_log::TICKS_HZ.at(event_log::BASE))?.max(1);
        Ok(own)
    }

    fn read(&mut self, address: u32) -> Result<u32, LogError<R::Error>> {
        self.registers.read(address).map_err(LogError::Access)
    }

    fn read_all(&mut self, addresses: &[u32]) -> Result<Vec<u32>, LogError<R::Error>> {
        self.registers.read_all(addresses).map_err(LogError::Access)
    }

    /// The device's time; its halves are two registers.
    fn now(&mut self) -> Result<u64, LogError<R::Error>> {
        let [low, high] = [&event_log::NOW_LO, &event_log::NOW_HI].map(|register| register.at(event_log::BASE));
        loop {
            let before = self.read(high)?;
            let now = self.read(low)?;
            if self.read(high)? == before {
                return Ok(u64::from(before) << 32 | u64::from(now));
            }
        }
    }

    fn heads(&mut self) -> Result<Vec<u32>, LogError<R::Error>> {
        let addresses: Vec<u32> = (0..RINGS).map(|ring| event_log::HEAD.word(event_log::BASE, ring)).collect();
        self.read_all(&addresses)
    }

    /// What was written since the last time.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn news(&mut self) -> Result<News, LogError<R::Error>> {
        let mut news = News::default();
        let heads = self.heads()?;
        for (ring, head) in (0..).zip(heads) {
            let next = self.next[ring as usize];
            let first = if head.wrapping_sub(next) > RING_ENTRIES { head.wrapping_sub(RING_ENTRIES) } else { next };
            let numbers: Vec<u32> = (0..head.wrapping_sub(first)).map(|i| first.wrapping_add(i)).collect();
            let place = |number: u32| (ring * RING_ENTRIES + number % RING_ENTRIES) * ENTRY_WORDS;
            let addresses: Vec<u32> = numbers
                .iter()
                .flat_map(|number| (0..ENTRY_WORDS).map(|word| place(*number) + word))
                .map(|word| event_log::WORDS.word(event_log::BASE, word))
                .collect();
            let words = self.read_all(&addresses)?;
            // An entry may have been written over while it was read; the one that is next may be at any time, before HEAD says so.
            let after = if numbers.is_empty() { head } else { self.read(event_log::HEAD.word(event_log::BASE, ring))? };
            let oldest = after.wrapping_sub(RING_ENTRIES - 1);
            let is_there = |number: u32| number.wrapping_sub(oldest) < RING_ENTRIES;
            let before = news.entries.len();
            for (number, words) in numbers.iter().zip(words.chunks_exact(ENTRY_WORDS as usize)) {
                if let (true, Ok(words)) = (is_there(*number), <[u32; 4]>::try_from(words)) {
                    news.entries.push(Entry::from_words(*number, words));
                }
            }
            news.missed[ring as usize] = head.wrapping_sub(next) - (news.entries.len() - before) as u32;
            self.next[ring as usize] = head;
        }
        news.lost = self.read(event_log::LOST.at(event_log::BASE))?;
        news.now = self.now()?;
        let now = news.now;
        news.entries.sort_by_key(|entry| std::cmp::Reverse(ticks_since(now, entry.ticks)));
        Ok(news)
    }

    /// How long a number of ticks is.
    #[must_use]
    pub fn time(&self, ticks: u64) -> Duration {
        let (hz, nanos) = (u64::from(self.ticks_hz), 1_000_000_000);
        Duration::new(ticks / hz, (ticks % hz * nanos / hz) as u32)
    }
}

/// Ticks from one time to a later one.
#[must_use]
pub const fn ticks_since(now: u64, then: u64) -> u64 {
    now.wrapping_sub(then) & ((1 << TIME_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device with this log; a reader that looks away for long is overtaken.
    #[derive(Default)]
    struct Fake {
        heads: [u32; 4],
        words: Vec<u32>,
        /// Entries that come while a ring is read.
        late: u32,
    }

    impl Fake {
        fn new() -> Self {
            Self { words: vec![0; 512], ..Self::default() }
        }

        fn write(&mut self, kind: Kind, ticks: u64, a: u32) {
            let ring = kind.ring();
            let number = self.heads[ring as usize];
            let at = ((ring * RING_ENTRIES + number % RING_ENTRIES) * ENTRY_WORDS) as usize;
            self.words[at..at + 4].copy_from_slice(&Entry { number, ticks, kind, a, b: 0 }.words());
            self.heads[ring as usize] += 1;
        }
    }

    impl Registers for Fake {
        type Error = ();

        fn read(&mut self, address: u32) -> Result<u32, ()> {
            let offset = address.checked_sub(event_log::BASE).ok_or(())?;
            Ok(match offset {
                0x000 => u32::from_be_bytes(event_log::BLOCK.kind),
                0x00c => 1000,
                0x010 => 5_000,
                0x014 | 0x018 => 0,
                0x020..0x030 => self.heads[(offset - 0x20) as usize / 4],
                0x800..=0xfff => {
                    for i in 0..std::mem::take(&mut self.late) {
                        self.write(Kind::OPENED, 4_000 + u64::from(i), 1000 + i);
                    }
                    self.words[(offset - 0x800) as usize / 4]
                }
                _ => return Err(()),
            })
        }

        fn write(&mut self, _: u32, _: u32) -> Result<(), ()> {
            Err(())
        }
    }

    #[test]
    fn entries_are_read_once_in_the_order_of_time() {
        let mut device = Fake::new();
        device.write(Kind::OPENED, 20, 1);
        device.write(Kind::ENABLED, 10, 2);
        device.write(Kind::REFUSED, 30, 3);
        let mut log = EventLog::new(&mut device).unwrap();
        assert_eq!(log.time(1500), Duration::from_millis(1500));
        let news = log.news().unwrap();
        assert_eq!(news.entries.iter().map(|entry| entry.a).collect::<Vec<_>>(), [2, 1, 3]);
        assert_eq!((news.missed, news.now), ([0; 4], 5_000));
        assert_eq!(log.news().unwrap().entries, []);
        log.registers.write(Kind::CLOSED, 40, 4);
        assert_eq!(log.news().unwrap().entries[0].a, 4);
    }

    #[test]
    fn what_was_written_over_is_missed_not_shown() {
        let mut device = Fake::new();
        for i in 0..100 {
            device.write(Kind::OPENED, i, i as u32);
        }
        device.late = 5;
        let mut log = EventLog::new(&mut device).unwrap();
        let news = log.news().unwrap();
        let seen: Vec<u32> = news.entries.iter().map(|entry| entry.a).collect();
        assert_eq!(seen, (74..100).collect::<Vec<_>>(), "68 to 72 were written over, 73 may be at any time");
        assert_eq!(news.missed, [0, 0, 74, 0]);
        assert_eq!(log.news().unwrap().entries.len(), 5);
    }

    #[test]
    fn details_are_named() {
        let entry = |kind, a, b| Entry { number: 0, ticks: 0, kind, a, b }.details();
        let peer = Some(Ipv4Addr::new(10, 0, 0, 7));
        let opened = entry(Kind::OPENED, 0x0a00_0007, 0x0300_0005);
        assert_eq!((opened.address, opened.qpn, opened.entry), (peer, Some(5), Some(3)));
        assert_eq!(entry(Kind::OPENED, 0, 0xff00_0005).entry, None);
        let refused = entry(Kind::REFUSED, 0x0a00_0007, 28 << 16 | 4);
        assert_eq!((refused.address, refused.reason.as_deref()), (peer, Some(Why::Unknown.text())));
        let refused = entry(Kind::REFUSED, 0, 8 << 16);
        assert_eq!(refused.reason.as_deref(), Some("no service listens on this port"));
        let closed = entry(Kind::CLOSED, 0, 4 << 24 | 9);
        assert_eq!((closed.qpn, closed.reason.as_deref()), (Some(9), Some("its admission was revoked")));
        assert_eq!(entry(Kind::DROPPED, 0x400, 8).counter.as_deref(), Some("packet_rx_frame"));
        assert_eq!(entry(Kind(0x3f), 1, 2).words, Some([1, 2]));
        assert_eq!(Kind(0x3f).to_string(), "kind-0x3f");
    }
}
