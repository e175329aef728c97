// SPDX-License-Identifier: Apache-2.0
//! Who may connect: the entries of the RTL (docs/reference/admission.md), and their registers.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use nacelle_manage::admission::{ENTRIES, EntryState};
use nacelle_manage::event_log::{Closed, Kind};
use nacelle_manage::map::{Register, admission as map, event_log};
use nacelle_roce::ConnId;
use nacelle_wire::admission::{Token, Why};

use super::SoftEngine;
use super::holdings::Holder;

/// The registers of what an entry says, its token last.
const WORDS: [&Register; 13] = [
    &map::HANDLE,
    &map::CONNECTIONS,
    &map::MEMORY,
    &map::DEADLINE,
    &map::ADDRESS,
    &map::ADDRESS_1,
    &map::ADDRESS_2,
    &map::ADDRESS_3,
    &map::PREFIX,
    &map::TOKEN_0,
    &map::TOKEN_1,
    &map::TOKEN_2,
    &map::TOKEN_3,
];
const CONNECTIONS: usize = 1;
const MEMORY: usize = 2;
const DEADLINE: usize = 3;
/// The first of four words of an address, the last 32 bits first.
const ADDRESS: usize = 4;
const PREFIX: usize = 8;
const TOKEN: usize = 9;

/// An entry.
#[derive(Clone, Copy)]
struct Entry {
    state: EntryState,
    words: [u32; WORDS.len()],
    used: u16,
}

impl Entry {
    const FREE: Self = Self { state: EntryState::Free, words: [0; WORDS.len()], used: 0 };

    fn token(&self) -> Option<Token> {
        let mut bytes = [0; Token::LEN];
        for (bytes, word) in bytes.chunks_mut(4).zip(&self.words[TOKEN..]) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        Token::new(bytes)
    }

    /// Its network and the length of the prefix, one of IPv4 as that of mapped addresses; from everywhere is length 0.
    fn network(&self) -> (u128, u32) {
        let prefix = self.words[PREFIX];
        let length = map::PREFIX_LENGTH.of(prefix);
        let words =
            |from: usize| (from..4).rev().fold(0, |bits, word| bits << 32 | u128::from(self.words[ADDRESS + word]));
        if map::PREFIX_IPV6.of(prefix) == 1 {
            return (words(0), length.min(128));
        }
        let address = Ipv4Addr::from_bits(self.words[ADDRESS]);
        (to_bits(address.into()), if length == 0 { 0 } else { 96 + length.min(32) })
    }

    /// Whether it is for a caller with this token at this address.
    fn is_for(&self, token: Option<Token>, peer: IpAddr) -> bool {
        let (network, prefix) = self.network();
        let is_near = prefix == 0 || (to_bits(peer) ^ network).unbounded_shr(128 - prefix) == 0;
        let is_meant = match (token, self.token()) {
            (Some(sent), Some(own)) => sent == own,
            (None, None) => prefix != 0,
            _ => false,
        };
        is_near & is_meant
    }
}

/// An address as one of IPv6, that of IPv4 in mapped form (RFC 4291, 2.5.5.2).
fn to_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// All entries.
pub(super) struct Admission {
    is_on: bool,
    entries: [Entry; ENTRIES as usize],
    began: Instant,
}

impl Admission {
    pub(super) fn new(now: Instant) -> Self {
        Self { is_on: false, entries: [Entry::FREE; ENTRIES as usize], began: now }
    }

    /// By which entry a caller is admitted; `None` while everybody is. All entries are looked at, whichever is for it.
    pub(super) fn judge(&self, token: Option<Token>, peer: IpAddr) -> Result<Option<u8>, Why> {
        if !self.is_on {
            return Ok(None);
        }
        let mut valid = None;
        let mut former = None;
        for (number, entry) in (0..).zip(&self.entries) {
            let is_for = entry.is_for(token, peer);
            match entry.state {
                EntryState::Valid if is_for => valid = valid.or(Some((number, entry))),
                EntryState::Revoked if is_for => former = Some(Why::Revoked),
                EntryState::TimeOver if is_for => former = Some(Why::TimeOver),
                _ => {}
            }
        }
        match (valid, former) {
            (Some((number, entry)), _) => {
                let most = entry.words[CONNECTIONS];
                if most != 0 && u32::from(entry.used) >= most { Err(Why::Connections) } else { Ok(Some(number)) }
            }
            (None, Some(why)) => Err(why),
            (None, None) => Err(if token.is_some() { Why::Unknown } else { Why::NoToken }),
        }
    }

    /// Bytes that the callers of an entry may have; `None` if it does not say.
    pub(super) fn memory(&self, entry: u8) -> Option<u64> {
        let kib = self.entries[usize::from(entry)].words[MEMORY];
        // In whole pages, as the RTL counts them.
        (kib != 0).then(|| u64::from(kib & !3) << 10)
    }

    fn used(&mut self, entry: u8) -> &mut u16 {
        &mut self.entries[usize::from(entry)].used
    }

    fn why_ended(&self, entry: u8) -> Option<Why> {
        match self.entries[usize::from(entry)].state {
            EntryState::Revoked => Some(Why::Revoked),
            EntryState::TimeOver => Some(Why::TimeOver),
            _ => None,
        }
    }

    fn seconds(&self, now: Instant) -> u32 {
        now.saturating_duration_since(self.began).as_secs() as u32
    }

    /// The entries whose time is over since the last time.
    fn expire(&mut self, now: Instant) -> Vec<u8> {
        let seconds = self.seconds(now);
        let mut expired = Vec::new();
        for (number, entry) in (0..).zip(&mut self.entries) {
            let deadline = entry.words[DEADLINE];
            if entry.state == EntryState::Valid && deadline != 0 && seconds.wrapping_sub(deadline) < 1 << 31 {
                entry.state = EntryState::TimeOver;
                expired.push(number);
            }
        }
        expired
    }

    /// When the next deadline is.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let valid = self.entries.iter().filter(|entry| entry.state == EntryState::Valid);
        let seconds = valid.map(|entry| entry.words[DEADLINE]).filter(|deadline| *deadline != 0).min()?;
        self.began.checked_add(Duration::from_secs(seconds.into()))
    }
}

/// The entry whose word of this register is at `address`.
fn entry_of(register: &Register, address: u32) -> Option<usize> {
    let offset = address.checked_sub(register.at(map::BASE))?;
    (offset % 4 == 0 && offset / 4 < ENTRIES.into()).then_some(offset as usize / 4)
}

impl SoftEngine {
    /// Reads a register of admission; `None` if there is none that can be read.
    pub(super) fn read_admission(&self, address: u32) -> Option<u32> {
        let table = &self.admission;
        let is = |register: &Register| address == register.at(map::BASE);
        if is(&map::TYPE) {
            return Some(u32::from_be_bytes(map::BLOCK.kind));
        } else if is(&map::VERSION) {
            return Some(map::BLOCK.version);
        } else if is(&map::NEXT) {
            return Some(event_log::BASE);
        } else if is(&map::CTRL) {
            return Some(table.is_on.into());
        } else if is(&map::SECONDS) {
            return Some(table.seconds(self.clock.system_now()));
        } else if let Some(entry) = entry_of(&map::STATE, address) {
            return Some(table.entries[entry].state.code());
        } else if let Some(entry) = entry_of(&map::USED, address) {
            return Some(table.entries[entry].used.into());
        }
        let (word, entry) = WORDS[..TOKEN]
            .iter()
            .enumerate()
            .find_map(|(word, register)| Some((word, entry_of(register, address)?)))?;
        Some(table.entries[entry].words[word])
    }

    /// Writes a register of admission; `None` if there is none that can be written.
    pub(super) fn write_admission(&mut self, address: u32, value: u32) -> Option<()> {
        if address == map::CTRL.at(map::BASE) {
            self.admission.is_on = value & 1 != 0;
            return Some(());
        }
        if let Some(entry) = entry_of(&map::STATE, address) {
            self.change_entry(entry as u8, value);
            return Some(());
        }
        let (word, register, entry) = WORDS
            .iter()
            .enumerate()
            .find_map(|(word, register)| Some((word, register, entry_of(register, address)?)))?;
        let entry = &mut self.admission.entries[entry];
        if entry.state == EntryState::Free {
            entry.words[word] = value & register.mask;
        }
        Some(())
    }

    /// STATE is written.
    fn change_entry(&mut self, number: u8, value: u32) {
        let entry = &mut self.admission.entries[usize::from(number)];
        match (entry.state, value) {
            (EntryState::Free, 1) => {
                entry.state = EntryState::Valid;
                self.log(Kind::ENTRY_ADDED, number.into(), 0);
            }
            (EntryState::Valid, 2) => {
                entry.state = EntryState::Revoked;
                self.log(Kind::ENTRY_REVOKED, number.into(), 0);
                self.end_callers();
            }
            // What a function has yet that has not returned is its callers', too.
            (EntryState::Revoked | EntryState::TimeOver, 0)
                if entry.used == 0 && self.held.of(Holder::Entry(number)) == 0 =>
            {
                entry.state = EntryState::Free;
                self.log(Kind::ENTRY_FREED, number.into(), 0);
            }
            _ => {}
        }
    }

    /// A caller of this entry has a connection, or has it no longer.
    pub(super) fn count_caller(&mut self, entry: Option<u8>, opens: bool) {
        if let Some(entry) = entry {
            let used = self.admission.used(entry);
            *used = if opens { used.saturating_add(1) } else { used.saturating_sub(1) };
        }
    }

    /// Ends the connections of entries whose time is over.
    pub(super) fn serve_admission(&mut self) {
        let expired = self.admission.expire(self.turn);
        for &entry in &expired {
            self.log(Kind::ENTRY_TIME_OVER, entry.into(), 0);
        }
        if !expired.is_empty() {
            self.end_callers();
        }
    }

    /// Closes all connections whose entries have ended, with the reason.
    fn end_callers(&mut self) {
        let admission = &self.admission;
        let ends = |by: Option<u8>| by.and_then(|entry| admission.why_ended(entry));
        let ended: Vec<(ConnId, Why)> =
            self.sessions.0.iter().filter_map(|(conn, session)| Some((*conn, ends(session.by)?))).collect();
        let now = self.clock.now();
        for (conn, why) in ended {
            self.counters.admission_ended += 1;
            if let Some(session) = self.sessions.0.get(&conn) {
                let how = if why == Why::Revoked { Closed::Revoked } else { Closed::TimeOver };
                self.log_closed(session.party, how);
            }
            self.release(conn);
            // It has room for a note in every phase.
            let _ = self.endpoint.transport.disconnect_with(now, conn, &why.note());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry without a token for this network.
    fn of(network: IpAddr, prefix: u32) -> Entry {
        let mut entry = Entry { state: EntryState::Valid, ..Entry::FREE };
        let bits = to_bits(network);
        for word in 0..4 {
            entry.words[ADDRESS + word] = (bits >> (32 * word)) as u32;
        }
        entry.words[PREFIX] = map::PREFIX_IPV6.put(prefix, network.is_ipv6().into());
        entry
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn networks_of_ipv6_are_compared_bit_by_bit() {
        let network = 0x2001_0db8_0001_0002_8003_0004_0005_0006_u128;
        for prefix in 1..=128 {
            let entry = of(IpAddr::V6(network.into()), prefix);
            for bit in 0..128 {
                let peer = IpAddr::V6((network ^ 1 << bit).into());
                assert_eq!(entry.is_for(None, peer), bit < 128 - prefix, "{peer} for a prefix of {prefix}");
            }
        }
    }

    #[test]
    fn networks_of_ipv6_and_of_ipv4_are_apart() {
        let v4 = of(ip("10.1.2.3"), 24);
        assert!(v4.is_for(None, ip("10.1.2.77")) && v4.is_for(None, ip("::ffff:10.1.2.77")));
        for other in ["10.1.3.3", "::10.1.2.3", "::fffe:10.1.2.3", "2001:db8::10.1.2.3", "8000::ffff:10.1.2.3"] {
            assert!(!v4.is_for(None, ip(other)), "{other}");
        }
        let v6 = of(ip("2001:db8::10.1.2.3"), 64);
        assert!(v6.is_for(None, ip("2001:db8::1")));
        assert!(!v6.is_for(None, ip("10.1.2.3")) && !v6.is_for(None, ip("2001:db9::10.1.2.3")));
        let all_of_v4 = of(ip("::ffff:0:0"), 96);
        assert!(all_of_v4.is_for(None, ip("192.0.2.1")) && !all_of_v4.is_for(None, ip("2001:db8::1")));
    }
}
