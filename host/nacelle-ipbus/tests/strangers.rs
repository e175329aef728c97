// SPDX-License-Identifier: Apache-2.0
//! What others than the owner can do to a device: read what is public, and nothing else.

mod support;

use std::net::SocketAddr;
use std::time::Duration;

use nacelle_ipbus::{Budget, Server, ServerConfig, SourceFilter};
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
    assert_eq!(bench.server.counters().login_wrong, 16);
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

/// A flood of clients throws out those who have not logged in, and neither one that has, nor one that logs in.
#[test]
fn many_clients_do_not_keep_the_owner_out() {
    let mut bench = Bench::new(config());
    let read = TransactionHeader { id: 0, words: 1, kind: TransactionKind::Read, info: InfoCode::Request }.to_word();
    let stranger =
        |bench: &mut Bench, n: u32| bench.packet((n.to_be_bytes(), 7), PacketKind::Control, 1, &[read, 0]).is_some();
    let flood = |bench: &mut Bench| (0..1000).filter(|n| stranger(bench, 0x0a00_1000 + n)).count();
    assert!(bench.packet(OWNER, PacketKind::Control, 1, &[read, 0]).is_some());
    assert_eq!(flood(&mut bench), 1000);
    assert!(bench.packet(OWNER, PacketKind::Control, 2, &[read, 0]).is_none(), "its place in the sequence is lost");
    assert_eq!(bench.log_in(OWNER, TOKEN), InfoCode::Success);
    assert!(bench.packet(OWNER, PacketKind::Control, 1, &[read, 0]).is_some());
    // However long it is silent within its session.
    bench.now += Duration::from_secs(50);
    assert_eq!(flood(&mut bench), 1000);
    assert!(bench.packet(OWNER, PacketKind::Control, 2, &[read, 0]).is_some());
    assert_eq!(bench.write(OWNER, AUTHORISED, 5), InfoCode::Success);
}

/// The contexts are those of clients with the token: strangers have none left, and a fifth client waits until one is silent.
#[test]
fn contexts_in_use_are_nobody_elses() {
    let mut bench = Bench::new(config());
    let read = TransactionHeader { id: 0, words: 1, kind: TransactionKind::Read, info: InfoCode::Request }.to_word();
    let client = |n: u8| ([10, 0, 0, n], 3);
    for n in 0..4 {
        assert_eq!(bench.log_in(client(n), TOKEN), InfoCode::Success);
        bench.now += Duration::from_millis(100);
    }
    assert_eq!(bench.log_in(client(4), TOKEN), InfoCode::WriteError);
    assert_eq!(bench.server.counters().login_refused, 1);
    assert!(bench.packet(client(4), PacketKind::Control, 1, &[read, 0]).is_none());
    assert_eq!(bench.server.counters().drop_context, 1);
    // What is public is read outside the sequence.
    assert_eq!(bench.read(client(4), 0).0, InfoCode::Success);
    bench.now += Duration::from_millis(1600);
    assert_eq!(bench.write(client(0), AUTHORISED, 1), InfoCode::Success);
    // 1 is silent for the longest time, for 2 s in 100 ms.
    assert_eq!(bench.log_in(client(4), TOKEN), InfoCode::WriteError);
    bench.now += Duration::from_millis(100);
    assert_eq!(bench.log_in(client(4), TOKEN), InfoCode::Success);
    let may_write = |n| bench.write(client(n), AUTHORISED, 1) == InfoCode::Success;
    assert_eq!([0, 1, 2, 3, 4].map(may_write), [true, false, true, true, true]);
}

#[test]
fn strangers_have_a_budget_and_clients_have_none() {
    let strangers = Budget { burst: 8, pause: Duration::from_micros(16) };
    let mut bench = Bench::new(ServerConfig { strangers, ..config() });
    assert_eq!(bench.log_in(OWNER, TOKEN), InfoCode::Success);
    let taken = |bench: &mut Bench, packets: u32| {
        let status =
            |n: &u32| bench.packet((n.to_be_bytes(), 7), PacketKind::Status, 0, &[0; STATUS_WORDS - 1]).is_some();
        (0..packets).filter(status).count()
    };
    // One of eight was the login.
    assert_eq!(taken(&mut bench, 100), 7);
    assert!((0..100).all(|_| bench.write(OWNER, AUTHORISED, 1) == InfoCode::Success));
    bench.now += Duration::from_micros(15);
    assert_eq!(taken(&mut bench, 100), 0);
    bench.now += Duration::from_micros(1);
    assert_eq!(taken(&mut bench, 100), 1);
    bench.now += Duration::from_micros(40);
    assert_eq!(taken(&mut bench, 100), 2);
    bench.now += Duration::from_secs(1);
    assert_eq!(taken(&mut bench, 100), 8);
    assert_eq!(bench.server.counters().drop_rate, 93 + 100 + 99 + 98 + 92);
}

/// The first transaction that fails ends its packet, and says how far it came.
#[test]
fn what_is_behind_a_failure_is_not_done() {
    let mut bench = Bench::new(config());
    let header = |kind, words| TransactionHeader { id: 3, words, kind, info: InfoCode::Request };
    let (end, base) = (LOCAL / 4, AUTHORISED / 4);
    assert_eq!(bench.log_in(OWNER, TOKEN), InfoCode::Success);
    let (write, read) = (header(TransactionKind::Write, 3), header(TransactionKind::Read, 3));
    let packet = [write.to_word(), end - 2, 7, 8, 9, header(TransactionKind::Write, 1).to_word(), base, 1];
    let answer = bench.packet(OWNER, PacketKind::Control, 0, &packet).unwrap();
    assert_eq!(answer[1..], [TransactionHeader { words: 2, info: InfoCode::WriteError, ..write }.to_word()]);
    assert_eq!(bench.registers.0[end as usize - 2..][..3], [7, 8, end]);
    assert_eq!(bench.registers.0[base as usize], base);
    let answer = bench.packet(OWNER, PacketKind::Control, 0, &[read.to_word(), end - 2]).unwrap();
    assert_eq!(answer[1..], [TransactionHeader { words: 2, info: InfoCode::ReadError, ..read }.to_word(), 7, 8]);
    // A modification has one word.
    for words in [0, 2] {
        let sum = header(TransactionKind::RmwSum, words);
        let answer = bench.packet(OWNER, PacketKind::Control, 0, &[sum.to_word(), base, 1]).unwrap();
        assert_eq!(answer[1..], [TransactionHeader { words: 0, info: InfoCode::BadHeader, ..sum }.to_word()]);
    }
    assert_eq!(bench.registers.0[base as usize], base);
    // A stranger reads one word in a transaction.
    let stranger = ([10, 0, 0, 9], 1);
    assert_eq!(bench.access(stranger, TransactionKind::Read, 2, &[0]), (InfoCode::ReadError, vec![]));
}

/// A login is one block of four words at the right address.
#[test]
fn a_token_in_parts_is_none() {
    let mut bench = Bench::new(config());
    let words: Vec<u32> = TOKEN.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
    for (index, word) in words.iter().enumerate() {
        assert_eq!(bench.write(OWNER, LOGIN + 4 * index as u32, *word), InfoCode::WriteError);
        assert_eq!(bench.write(OWNER, LOGIN, *word), InfoCode::WriteError);
    }
    let packet = |words: &[u32], at: u32| [&[at / 4], words].concat();
    let five = packet(&[&words[..], &[0]].concat(), LOGIN);
    assert_eq!(bench.access(OWNER, TransactionKind::Write, 5, &five).0, InfoCode::WriteError);
    assert_eq!(
        bench.access(OWNER, TransactionKind::NonIncrementingWrite, 4, &packet(&words, LOGIN + 4)).0,
        InfoCode::WriteError
    );
    assert_eq!((bench.server.counters().login_wrong, bench.server.counters().login), (0, 0));
    assert_eq!(
        bench.access(OWNER, TransactionKind::NonIncrementingWrite, 4, &packet(&words, LOGIN)).0,
        InfoCode::Success
    );
    assert_eq!(bench.write(OWNER, AUTHORISED, 1), InfoCode::Success);
}

#[test]
fn the_configuration_space_says_what_answers() {
    let mut bench = Bench::new(config());
    let mut word = |at: u32| bench.access(OWNER, TransactionKind::ConfigurationRead, 1, &[at]);
    assert_eq!(word(0), (InfoCode::Success, vec![u32::from_be_bytes(*b"NACL")]));
    assert_eq!(word(2).1, [4 << 24 | 2 << 16 | 1472]);
    assert_eq!((word(3).1, word(4).0), (vec![0], InfoCode::ReadError));
    assert_eq!(bench.log_in(OWNER, TOKEN), InfoCode::Success);
    assert_eq!(bench.access(OWNER, TransactionKind::ConfigurationRead, 3, &[1]).1, [1, 4 << 24 | 2 << 16 | 1472, 1]);
    assert_eq!(bench.access(OWNER, TransactionKind::ConfigurationWrite, 1, &[1, 0]).0, InfoCode::WriteError);
}

#[test]
fn only_hosts_of_the_filter_are_answered() {
    let sources = SourceFilter { prefix: [10, 0, 0, 0].into(), bits: 30 };
    let mut bench = Bench::new(ServerConfig { sources, ..config() });
    assert_eq!(bench.read(([10, 0, 0, 3], 1), 0).0, InfoCode::Success);
    assert!(bench.packet(([10, 0, 0, 4], 1), PacketKind::Status, 0, &[0; STATUS_WORDS - 1]).is_none());
    assert!(bench.packet((std::net::Ipv6Addr::LOCALHOST, 1), PacketKind::Status, 0, &[0; STATUS_WORDS - 1]).is_none());
    assert_eq!(bench.server.counters().drop_source, 2);
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
    assert_eq!(again, 3);
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
    assert_eq!(answer[1..], [write.to_word() & !0xf, write.to_word() & !0xffff | 0x91]);
    assert_eq!(bench.registers.0[base as usize], 1);
    // The words of the last transaction are missing; it is a response.
    let long = TransactionHeader { words: 3, ..write };
    let response = TransactionHeader { info: InfoCode::Success, ..write };
    for header in [long, response] {
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
    let counters = bench.server.counters();
    assert_eq!((counters.drop_malformed, counters.drop_length), (4, 1));
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
    /// Whatever a stranger sends: nothing is written, nothing secret is told, and what is sent back is no more than four times as much.
    #[test]
    fn strangers_change_nothing(packets in prop::collection::vec((0_u8..4, 0_u16..4, prop::collection::vec(word(), 0..40)), 1..20)) {
        let mut bench = Bench::new(config());
        let (mut sent, mut answered) = (0, 0);
        for (kind, id, words) in packets {
            let header = 0x2000_00f0 | u32::from(id) << 8 | u32::from(kind);
            let datagram: Vec<u8> = std::iter::once(&header).chain(&words).flat_map(|word| word.to_be_bytes()).collect();
            sent += datagram.len();
            answered += bench.raw(([10, 0, 0, 7], 9), &datagram).map_or(0, |answer| answer.len());
            prop_assert!(answered <= 4 * sent);
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
