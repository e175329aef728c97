// SPDX-License-Identifier: Apache-2.0
//! What others than the owner can do to a device: read what is public, and nothing else.

mod support;

use std::net::SocketAddr;
use std::time::Duration;

use nacelle_ipbus::{Server, ServerConfig, SourceFilter};
use nacelle_wire::ipbus::{
    ByteOrder, InfoCode, PacketHeader, PacketKind, STATUS_WORDS, Status, TransactionHeader, TransactionKind,
};
use proptest::prelude::*;
use support::{AUTHORISED, LOCAL, LOGIN, LOGOUT, Registers, TOKEN, config};

const OWNER: ([u8; 4], u16) = ([10, 0, 0, 1], 1000);

struct Bench {
    server: Server,
    registers: Registers,
    now: Duration,
}

impl Bench {
    fn new(config: ServerConfig) -> Self {
        Self { server: Server::new(config), registers: Registers::new(), now: Duration::ZERO }
    }

    fn raw(&mut self, from: impl Into<SocketAddr>, datagram: &[u8]) -> Option<Vec<u8>> {
        self.server.receive(from.into(), datagram, self.now, &mut self.registers)
    }

    fn packet(&mut self, from: impl Into<SocketAddr>, kind: PacketKind, id: u16, words: &[u32]) -> Option<Vec<u32>> {
        let header = PacketHeader { kind, id }.to_word();
        let datagram: Vec<u8> = std::iter::once(&header).chain(words).flat_map(|word| word.to_be_bytes()).collect();
        let answer = self.raw(from, &datagram)?;
        Some(answer.as_chunks::<4>().0.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect())
    }

    /// One transaction outside the sequence: its info code and its words.
    fn access(
        &mut self,
        from: impl Into<SocketAddr>,
        kind: TransactionKind,
        words: u8,
        rest: &[u32],
    ) -> (InfoCode, Vec<u32>) {
        let header = TransactionHeader { id: 9, words, kind, info: InfoCode::Request }.to_word();
        let answer = self.packet(from, PacketKind::Control, 0, &[&[header], rest].concat()).unwrap();
        (TransactionHeader::from_word(answer[1]).unwrap().info, answer[2..].to_vec())
    }

    fn read(&mut self, from: impl Into<SocketAddr>, address: u32) -> (InfoCode, Vec<u32>) {
        self.access(from, TransactionKind::Read, 1, &[address / 4])
    }

    fn write(&mut self, from: impl Into<SocketAddr>, address: u32, value: u32) -> InfoCode {
        self.access(from, TransactionKind::Write, 1, &[address / 4, value]).0
    }

    fn log_in(&mut self, from: impl Into<SocketAddr>, token: [u8; 16]) -> InfoCode {
        let words: Vec<u32> = token.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
        self.access(from, TransactionKind::Write, 4, &[&[LOGIN / 4], &words[..]].concat()).0
    }
}

#[test]
fn only_what_is_public_is_open_to_all() {
    let mut bench = Bench::new(config());
    assert_eq!(bench.read(OWNER, 0x10), (InfoCode::Success, vec![4]));
    assert_eq!(bench.write(OWNER, 0x10, 7), InfoCode::WriteError);
    assert_eq!(bench.read(OWNER, AUTHORISED), (InfoCode::ReadError, vec![]));
    assert_eq!(bench.write(OWNER, AUTHORISED, 7), InfoCode::WriteError);
    assert_eq!(bench.access(OWNER, TransactionKind::RmwBits, 1, &[4, 0, 7]).0, InfoCode::WriteError);
    assert_eq!(bench.access(OWNER, TransactionKind::RmwSum, 1, &[AUTHORISED / 4, 7]).0, InfoCode::ReadError);
    assert_eq!(bench.registers.0, Registers::new().0);
    assert_eq!(bench.server.counters().refused, 5);

    assert_eq!(bench.log_in(OWNER, TOKEN), InfoCode::Success);
    assert_eq!(bench.write(OWNER, AUTHORISED, 7), InfoCode::Success);
    assert_eq!(bench.read(OWNER, AUTHORISED), (InfoCode::Success, vec![7]));
    assert_eq!(bench.access(OWNER, TransactionKind::RmwBits, 1, &[AUTHORISED / 4, 4, 9]), (InfoCode::Success, vec![7]));
    assert_eq!(bench.read(OWNER, AUTHORISED), (InfoCode::Success, vec![13]));
    // Not even the owner.
    assert_eq!(bench.read(OWNER, LOCAL).0, InfoCode::ReadError);
    assert_eq!(bench.write(OWNER, LOCAL, 1), InfoCode::WriteError);
    // Another host, or another program on the same host.
    assert_eq!(bench.write(([10, 0, 0, 2], 1000), AUTHORISED, 8), InfoCode::WriteError);
    assert_eq!(bench.write(([10, 0, 0, 1], 1001), AUTHORISED, 8), InfoCode::WriteError);
    assert_eq!(bench.write(OWNER, LOGOUT, 0), InfoCode::Success);
    assert_eq!(bench.write(OWNER, AUTHORISED, 8), InfoCode::WriteError);
}

#[test]
fn a_login_takes_the_whole_token_and_ends_by_silence() {
    let mut bench = Bench::new(config());
    for byte in 0..16 {
        let mut wrong = TOKEN;
        wrong[byte] ^= 1;
        assert_eq!(bench.log_in(OWNER, wrong), InfoCode::WriteError);
        assert_eq!(bench.write(OWNER, AUTHORISED, 8), InfoCode::WriteError);
    }
    assert_eq!(bench.server.counters().wrong_tokens, 16);
    // Wrong tokens of others do not keep the owner out.
    assert_eq!(bench.log_in(OWNER, TOKEN), InfoCode::Success);
    assert_eq!(bench.log_in(([10, 0, 0, 9], 5), [0; 16]), InfoCode::WriteError);
    bench.now += Duration::from_secs(59);
    assert_eq!(bench.write(OWNER, AUTHORISED, 8), InfoCode::Success);
    bench.now += Duration::from_secs(61);
    assert_eq!(bench.write(OWNER, AUTHORISED, 9), InfoCode::WriteError);

    let mut closed = Bench::new(ServerConfig { token: None, ..config() });
    assert_eq!(closed.log_in(OWNER, [0; 16]), InfoCode::WriteError);
    assert_eq!(closed.log_in(OWNER, TOKEN), InfoCode::WriteError);
}

/// A flood of clients neither throws out one that works, nor keeps the owner out.
#[test]
fn many_clients_do_not_keep_the_owner_out() {
    let mut bench = Bench::new(config());
    let read = TransactionHeader { id: 0, words: 1, kind: TransactionKind::Read, info: InfoCode::Request }.to_word();
    let stranger =
        |bench: &mut Bench, n: u32| bench.packet((n.to_be_bytes(), 7), PacketKind::Control, 1, &[read, 0]).is_some();
    assert!(bench.packet(OWNER, PacketKind::Control, 1, &[read, 0]).is_some());
    let served = (0..1000).filter(|n| stranger(&mut bench, 0x0a00_1000 + n)).count();
    assert_eq!(served, 3);
    assert_eq!(bench.server.counters().no_room, 997);
    assert!(bench.packet(OWNER, PacketKind::Control, 2, &[read, 0]).is_some());
    // An owner who comes later: public registers are read as ever, and the token makes room.
    let late = ([10, 0, 0, 5], 3);
    assert_eq!(bench.read(late, 0).0, InfoCode::Success);
    assert_eq!(bench.log_in(late, TOKEN), InfoCode::Success);
    assert_eq!(bench.write(late, AUTHORISED, 5), InfoCode::Success);
    for n in 0..1000 {
        stranger(&mut bench, 0x0a00_2000 + n);
    }
    assert_eq!(bench.write(late, AUTHORISED, 6), InfoCode::Success);
    // Silent clients make room.
    bench.now += Duration::from_secs(11);
    assert!(stranger(&mut bench, 0x0a00_3000));
}

#[test]
fn only_hosts_of_the_filter_are_answered() {
    let sources = SourceFilter { prefix: [10, 0, 0, 0].into(), bits: 30 };
    let mut bench = Bench::new(ServerConfig { sources, ..config() });
    assert_eq!(bench.read(([10, 0, 0, 3], 1), 0).0, InfoCode::Success);
    assert!(bench.packet(([10, 0, 0, 4], 1), PacketKind::Status, 0, &[0; STATUS_WORDS - 1]).is_none());
    assert!(bench.packet((std::net::Ipv6Addr::LOCALHOST, 1), PacketKind::Status, 0, &[0; STATUS_WORDS - 1]).is_none());
    assert_eq!(bench.server.counters().filtered, 2);
}

#[test]
fn status_and_resend() {
    let mut bench = Bench::new(config());
    let status = |bench: &mut Bench| {
        Status::from_words(&bench.packet(OWNER, PacketKind::Status, 0, &[0; STATUS_WORDS - 1]).unwrap())
    };
    assert_eq!(status(&mut bench), Some(Status { mtu: 1472, buffers: 2, next: 1 }));
    let count = TransactionHeader { id: 0, words: 1, kind: TransactionKind::RmwSum, info: InfoCode::Request }.to_word();
    bench.log_in(OWNER, TOKEN);
    let first = bench.packet(OWNER, PacketKind::Control, 1, &[count, AUTHORISED / 4, 1]).unwrap();
    assert_eq!(status(&mut bench).unwrap().next, 2);
    // A duplicate, and one that is not the next.
    assert_eq!(bench.packet(OWNER, PacketKind::Control, 1, &[count, AUTHORISED / 4, 1]), None);
    assert_eq!(bench.packet(OWNER, PacketKind::Control, 3, &[count, AUTHORISED / 4, 1]), None);
    assert_eq!(bench.read(OWNER, AUTHORISED).1, [AUTHORISED / 4 + 1]);
    assert_eq!(bench.packet(OWNER, PacketKind::Resend, 1, &[]), Some(first));
    // Not that of another client.
    assert_eq!(bench.packet(([10, 0, 0, 2], 1000), PacketKind::Resend, 1, &[]), None);
    // A stranger gets it a few times only: the address may be a victim's.
    assert!(bench.packet(([10, 0, 0, 7], 1), PacketKind::Control, 1, &[0; 300]).is_some());
    let again = (0..100).filter(|_| bench.packet(([10, 0, 0, 7], 1), PacketKind::Resend, 1, &[]).is_some()).count();
    assert_eq!(again, 4);
    for id in [2, 3] {
        bench.packet(OWNER, PacketKind::Control, id, &[]).unwrap();
    }
    // There are two buffers.
    assert_eq!(bench.packet(OWNER, PacketKind::Resend, 1, &[]), None);
}

/// What makes no sense is answered by a bad header up to which everything was done, or not at all.
#[test]
fn malformed_packets() {
    let mut bench = Bench::new(config());
    bench.log_in(OWNER, TOKEN);
    let write = TransactionHeader { id: 1, words: 1, kind: TransactionKind::Write, info: InfoCode::Request };
    let base = AUTHORISED / 4;
    let transactions = [write.to_word(), base, 1, write.to_word() & !0xf0 | 0x90, base, 2];
    let answer = bench.packet(OWNER, PacketKind::Control, 0, &transactions).unwrap();
    assert_eq!(answer[1..], [write.to_word() & !0xf, write.to_word() & !0xff | 0x91]);
    assert_eq!(bench.registers.0[base as usize], 1);
    // The words of the last transaction are missing; it is a response; the configuration space, which a device does not have.
    let long = TransactionHeader { words: 3, ..write };
    let response = TransactionHeader { info: InfoCode::Success, ..write };
    let configuration = TransactionHeader { kind: TransactionKind::ConfigurationWrite, ..write };
    for header in [long, response, configuration] {
        let answer = bench.packet(OWNER, PacketKind::Control, 0, &[header.to_word(), base, 2]).unwrap();
        assert_eq!(answer[1] & 0xf, 1);
    }
    assert_eq!(bench.registers.0[base as usize], 1);
    // Half a word, no word, too long, an unknown kind, a status request that is shorter than its answer.
    let header = PacketHeader { kind: PacketKind::Control, id: 0 }.to_word().to_be_bytes();
    assert!(bench.raw(OWNER, &[&header[..], &[0]].concat()).is_none());
    assert!(bench.raw(OWNER, &[]).is_none());
    assert!(bench.raw(OWNER, &[&header[..], &[0; 1472]].concat()).is_none());
    assert!(bench.raw(OWNER, &[0x20, 0, 0, 0xf7]).is_none());
    assert!(bench.raw(OWNER, &[0x20, 0, 0, 0xf1]).is_none());
    assert_eq!(bench.server.counters().dropped, 5);
}

/// Words may have either byte order, and the answer has the same.
#[test]
fn little_endian_clients() {
    let mut bench = Bench::new(config());
    let read = TransactionHeader { id: 1, words: 1, kind: TransactionKind::Read, info: InfoCode::Request };
    let words = [PacketHeader { kind: PacketKind::Control, id: 0 }.to_word(), read.to_word(), 5];
    let datagram: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let answer = bench.raw(OWNER, &datagram).unwrap();
    let answer: Vec<u32> = answer.as_chunks::<4>().0.iter().map(|bytes| ByteOrder::Little.word(*bytes)).collect();
    assert_eq!(answer, [words[0], read.to_word() & !0xf, 5]);
}

proptest! {
    /// Whatever a stranger sends: nothing is written, nothing secret is told, and what is sent back is no more than five times as much.
    #[test]
    fn strangers_change_nothing(packets in prop::collection::vec((0_u8..4, 0_u16..4, prop::collection::vec(word(), 0..40)), 1..20)) {
        let mut bench = Bench::new(config());
        let (mut sent, mut answered) = (0, 0);
        for (kind, id, words) in packets {
            let header = 0x2000_00f0 | u32::from(id) << 8 | u32::from(kind);
            let datagram: Vec<u8> = std::iter::once(&header).chain(&words).flat_map(|word| word.to_be_bytes()).collect();
            sent += datagram.len();
            answered += bench.raw(([10, 0, 0, 7], 9), &datagram).map_or(0, |answer| answer.len());
            prop_assert!(answered <= 5 * sent);
        }
        prop_assert_eq!(bench.registers.0, Registers::new().0);
    }
}

/// Words that are often headers and addresses of registers.
fn word() -> impl Strategy<Value = u32> {
    prop_oneof![
        (0_u32..9, 0_u32..6).prop_map(|(kind, words)| 0x2000_000f | kind << 4 | words << 8),
        (0_u32..LOCAL / 4 + 8),
        any::<u32>(),
    ]
}
