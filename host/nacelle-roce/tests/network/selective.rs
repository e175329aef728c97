// SPDX-License-Identifier: Apache-2.0
//! Selective repeat, rule by rule, against a raw peer (docs/reference/extensions.md).

use crate::raw::{Packet, Raw, TO_ENDPOINT, TO_PEER, options};
use crate::sim::region_bytes;
use nacelle_roce::{
    Access, Completion, ConnectOptions, Discard, Event, RecvWr, Region, SendWr, WcOpcode,
    wire::{
        Psn, RemoteAddr, Rkey,
        bth::{Aeth, ImmDt, NakCode, Opcode, Reth, Syndrome},
        transport::Ext,
    },
};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const SEQUENCE: Syndrome = Syndrome::Nak(NakCode::PsnSequenceError);

fn psn(n: u32) -> Psn {
    TO_ENDPOINT.add(n)
}

fn target(raw: &mut Raw, len: usize) -> Region {
    raw.ep.transport.register(vec![0; len], Access::REMOTE_WRITE | Access::REMOTE_READ, raw.conn).unwrap()
}

/// The peer WRITEs one byte at the place that its number names.
fn write(raw: &mut Raw, n: u32, region: &Region) -> Result<(), Discard> {
    let place = Reth::new(RemoteAddr(region.addr.0 + u64::from(n)), region.rkey, 1);
    raw.send(Opcode::WriteOnly, psn(n), Ext::Reth(place), &[n as u8 + 1])
}

/// The one answer: expected packet, syndrome, blamed packet.
fn nak(raw: &mut Raw) -> (Psn, Syndrome, Psn) {
    let (psn, syndrome, msn) = raw.one_answer();
    (psn, syndrome, Psn::new(msn))
}

fn completion(raw: &mut Raw) -> Completion {
    match raw.ep.transport.poll_event() {
        Some(Event::Completion(c)) => c,
        other => panic!("{other:?}"),
    }
}

// Responder

#[test]
fn what_is_early_goes_to_its_place() {
    let mut raw = Raw::selective();
    let region = target(&mut raw, 64);
    write(&mut raw, 0, &region).unwrap();
    assert_eq!(raw.one_answer(), (psn(0), Syndrome::ACK, 1));
    // 1 and 4 are lost.
    write(&mut raw, 2, &region).unwrap();
    assert_eq!(nak(&mut raw), (psn(1), SEQUENCE, psn(2)));
    write(&mut raw, 3, &region).unwrap();
    write(&mut raw, 5, &region).unwrap();
    assert_eq!(nak(&mut raw), (psn(1), SEQUENCE, psn(5)), "the newest counts");
    assert_eq!(region_bytes(&raw.ep, region.id)[..7], [1, 0, 3, 4, 0, 6, 0]);
    // Again: dropped, and the same answer.
    assert_eq!(write(&mut raw, 3, &region), Err(Discard::OutOfSequence));
    assert_eq!(nak(&mut raw), (psn(1), SEQUENCE, psn(3)));
    // The first gap closes; the second is asked for, blamed on what came.
    write(&mut raw, 1, &region).unwrap();
    assert_eq!(nak(&mut raw), (psn(4), SEQUENCE, psn(1)));
    write(&mut raw, 4, &region).unwrap();
    assert_eq!(raw.one_answer(), (psn(5), Syndrome::ACK, 6), "each packet is a message");
    assert_eq!(region_bytes(&raw.ep, region.id)[..7], [1, 2, 3, 4, 5, 6, 0]);
    let c = raw.ep.counters();
    assert_eq!((c.placed_early, c.rx_write_requests, c.rx_request), (3, 6, 6));
    assert_eq!(write(&mut raw, 4, &region), Err(Discard::Duplicate));
    assert_eq!(raw.one_answer().0, psn(5));
}

/// Also behind the first packet of a message, which no peer that keeps to the extension sends: what was placed has been taken.
#[test]
fn the_expected_psn_moves_on_within_a_message() {
    let mut raw = Raw::selective();
    let region = target(&mut raw, 300);
    write(&mut raw, 1, &region).unwrap();
    raw.drain();
    let reth = Ext::Reth(Reth::new(region.addr, region.rkey, 300));
    raw.send(Opcode::WriteFirst, psn(0), reth, &[7; 256]).unwrap();
    assert_eq!(raw.one_answer(), (psn(1), Syndrome::ACK, 1));
    assert_eq!(raw.send(Opcode::WriteLast, psn(1), Ext::None, &[8; 44]), Err(Discard::Duplicate));
    raw.drain();
    raw.send(Opcode::WriteLast, psn(2), Ext::None, &[9; 44]).unwrap();
    assert_eq!(raw.one_answer(), (psn(2), Syndrome::ACK, 2));
    assert_eq!(region_bytes(&raw.ep, region.id)[254..258], [7, 7, 9, 9]);
}

#[test]
fn the_window_is_128_packets() {
    let mut raw = Raw::selective();
    let region = target(&mut raw, 256);
    write(&mut raw, 127, &region).unwrap();
    assert_eq!(write(&mut raw, 128, &region), Err(Discard::OutOfSequence));
    assert_eq!(nak(&mut raw), (psn(0), SEQUENCE, psn(128)));
    for n in (0..127).rev() {
        write(&mut raw, n, &region).unwrap();
    }
    assert_eq!(raw.one_answer(), (psn(127), Syndrome::ACK, 128));
    assert_eq!(region_bytes(&raw.ep, region.id)[128], 0);
}

#[test]
fn all_else_is_taken_in_order_only() {
    let mut raw = Raw::selective();
    let region = target(&mut raw, 600);
    raw.ep.transport.post_recv(raw.conn, RecvWr { id: 1, slice: None }).unwrap();
    let reth = Reth::new(region.addr, region.rkey, 1);
    let wrong_key = Reth::new(region.addr, Rkey(region.rkey.0 ^ 1), 1);
    let wrong_len = Reth::new(region.addr, region.rkey, 2);
    for (opcode, ext, len) in [
        (Opcode::SendOnly, Ext::None, 0),
        (Opcode::WriteOnlyImm, Ext::RethImm(reth, ImmDt::new(1)), 1),
        (Opcode::WriteFirst, Ext::Reth(Reth::new(region.addr, region.rkey, 600)), 256),
        (Opcode::ReadRequest, Ext::Reth(reth), 0),
        (Opcode::WriteOnly, Ext::Reth(wrong_key), 1),
        (Opcode::WriteOnly, Ext::Reth(wrong_len), 1),
        (Opcode::WriteOnly, Ext::Reth(Reth::new(region.addr, region.rkey, 257)), 257),
    ] {
        assert_eq!(raw.send(opcode, psn(3), ext, &vec![7; len]), Err(Discard::OutOfSequence), "{opcode:?}");
        assert_eq!(nak(&mut raw), (psn(0), SEQUENCE, psn(3)));
    }
    assert!(region_bytes(&raw.ep, region.id).iter().all(|&b| b == 0));
    assert_eq!(raw.ep.transport.poll_event(), None);
}

#[test]
fn a_read_before_what_is_early() {
    let mut raw = Raw::selective();
    let region = target(&mut raw, 600);
    write(&mut raw, 3, &region).unwrap();
    raw.drain();
    let reth = Reth::new(region.addr, region.rkey, 600);
    raw.send(Opcode::ReadRequest, psn(0), Ext::Reth(reth), &[]).unwrap();
    let packets = raw.drain();
    assert_eq!(packets.len(), 4);
    assert_eq!((packets[3].opcode, packets[3].headers.bth.psn()), (Opcode::Acknowledge, psn(3)));
}

/// The last packet of a WRITE with immediate names the whole range and carries its end.
#[test]
fn the_end_of_a_write_with_immediate() {
    let mut raw = Raw::selective();
    let region = target(&mut raw, 600);
    let inside = |offset, len| Reth::new(RemoteAddr(region.addr.0 + offset), region.rkey, len);
    raw.send(Opcode::WriteOnly, psn(0), Ext::Reth(inside(100, 256)), &[1; 256]).unwrap();
    let end = Ext::RethImm(inside(100, 300), ImmDt::new(9));
    assert_eq!(raw.send(Opcode::WriteOnlyImm, psn(1), end, &[2; 44]), Err(Discard::ReceiverNotReady));
    // While it waits for a receive, what is early is placed without a word.
    raw.drain();
    raw.send(Opcode::WriteOnly, psn(2), Ext::Reth(inside(0, 1)), &[3]).unwrap();
    assert!(raw.drain().is_empty());
    raw.ep.transport.post_recv(raw.conn, RecvWr { id: 5, slice: None }).unwrap();
    raw.send(Opcode::WriteOnlyImm, psn(1), end, &[2; 44]).unwrap();
    assert_eq!(raw.one_answer(), (psn(2), Syndrome::ACK, 3));
    let c = completion(&mut raw);
    assert_eq!((c.id, c.opcode, c.byte_len, c.imm), (5, WcOpcode::RecvWrite, 300, Some(9)));
    let bytes = region_bytes(&raw.ep, region.id);
    assert_eq!((bytes[0], bytes[99..101].to_vec(), bytes[355..357].to_vec()), (3, vec![0, 1], vec![1, 2]));
    assert_eq!(bytes[399..401], [2, 0]);
    // More payload than range.
    raw.ep.transport.post_recv(raw.conn, RecvWr { id: 6, slice: None }).unwrap();
    raw.send(Opcode::WriteOnlyImm, psn(3), Ext::RethImm(inside(0, 1), ImmDt::new(1)), &[0; 2]).unwrap();
    assert_eq!(raw.one_answer().1, Syndrome::Nak(NakCode::InvalidRequest));
}

/// It carries a byte at least, unless there is none to write.
#[test]
fn the_end_of_a_write_is_not_empty() {
    for (len, expected) in [(0, Syndrome::ACK), (1, Syndrome::Nak(NakCode::InvalidRequest))] {
        let mut raw = Raw::selective();
        let region = target(&mut raw, 8);
        raw.ep.transport.post_recv(raw.conn, RecvWr { id: 1, slice: None }).unwrap();
        let end = Ext::RethImm(Reth::new(region.addr, region.rkey, len), ImmDt::new(1));
        raw.send(Opcode::WriteOnlyImm, psn(0), end, &[]).unwrap();
        assert_eq!(raw.one_answer().1, expected, "{len}");
    }
}

// Requester

const AT: u64 = 0x10_0000;
const KEY: Rkey = Rkey(0x77);

fn post(raw: &mut Raw, id: u64, offset: u64, len: usize) {
    raw.ep.transport.post_send(raw.conn, SendWr::write(id, vec![id as u8; len], RemoteAddr(AT + offset), KEY)).unwrap();
}

fn numbers(packets: &[Packet]) -> Vec<u32> {
    packets.iter().map(|p| p.headers.bth.psn().since(TO_PEER)).collect()
}

/// The peer misses packet `n`, as packet `cause` shows.
fn miss(raw: &mut Raw, n: u32, cause: u32) {
    let aeth = Aeth::new(SEQUENCE, TO_PEER.add(cause).get());
    raw.send(Opcode::Acknowledge, TO_PEER.add(n), Ext::Aeth(aeth), &[]).unwrap();
}

#[test]
fn writes_are_cut_into_packets_that_stand_alone() {
    let mut raw = Raw::selective();
    post(&mut raw, 1, 0, 600);
    let imm = SendWr::write_imm(2, vec![2; 300], RemoteAddr(AT + 1000), KEY, 7);
    raw.ep.transport.post_send(raw.conn, imm).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::send(3, vec![3; 300])).unwrap();
    let packets = raw.drain();
    let seen: Vec<_> = packets.iter().map(|p| (p.opcode, p.headers.ext, p.payload.len())).collect();
    let reth = |offset, len| Reth::new(RemoteAddr(AT + offset), KEY, len);
    assert_eq!(
        seen,
        [
            (Opcode::WriteOnly, Ext::Reth(reth(0, 256)), 256),
            (Opcode::WriteOnly, Ext::Reth(reth(256, 256)), 256),
            (Opcode::WriteOnly, Ext::Reth(reth(512, 88)), 88),
            (Opcode::WriteOnly, Ext::Reth(reth(1000, 256)), 256),
            (Opcode::WriteOnlyImm, Ext::RethImm(reth(1000, 300), ImmDt::new(7)), 44),
            (Opcode::SendFirst, Ext::None, 256),
            (Opcode::SendLast, Ext::None, 44),
        ]
    );
    let asked: Vec<bool> = packets.iter().map(|p| p.headers.bth.ack_req()).collect();
    assert_eq!(asked, [false, false, true, false, true, false, true], "once a message");
}

#[test]
fn only_what_is_lost_is_sent_again() {
    let mut raw = Raw::selective();
    post(&mut raw, 1, 0, 256 * 8);
    assert_eq!(raw.drain().len(), 8);
    miss(&mut raw, 2, 3);
    let again = raw.drain();
    assert_eq!(numbers(&again), [2]);
    assert!(again[0].headers.bth.ack_req());
    // What was on its way then says nothing new.
    for cause in 4..8 {
        miss(&mut raw, 2, cause);
    }
    assert!(raw.drain().is_empty());
    // What was sent later does: the repetition is lost as well.
    post(&mut raw, 2, 10_000, 256);
    assert_eq!(numbers(&raw.drain()), [8]);
    miss(&mut raw, 2, 8);
    assert_eq!(numbers(&raw.drain()), [2]);
    // Another gap, found when the first closed.
    miss(&mut raw, 5, 2);
    assert_eq!(numbers(&raw.drain()), [5]);
    raw.answer(TO_PEER.add(8), Syndrome::ACK).unwrap();
    assert_eq!((completion(&mut raw).id, completion(&mut raw).id), (1, 2));
    assert_eq!(raw.ep.counters().retransmitted, 3);
    assert!(raw.wait(MS * 100).is_empty(), "a timer is left");
}

#[test]
fn repetitions_without_progress_give_up() {
    let mut raw = Raw::selective(); // 3 retries
    post(&mut raw, 1, 0, 256);
    for n in 1..5 {
        post(&mut raw, 2, u64::from(n) * 256, 256);
        raw.drain();
        miss(&mut raw, 0, n);
    }
    assert_eq!(raw.ep.counters().retry_exceeded_err, 1);
}

/// What the peer takes in order only has been dropped behind a gap: it comes again with the missing packet.
#[test]
fn what_the_peer_dropped_is_sent_again_too() {
    let mut raw = Raw::selective();
    post(&mut raw, 1, 0, 512);
    raw.ep.transport.post_send(raw.conn, SendWr::write_imm(2, vec![2; 300], RemoteAddr(AT + 1000), KEY, 7)).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::send(3, vec![3; 300])).unwrap();
    let to = raw.ep.transport.register(vec![0; 600], Access::LOCAL, None).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::read(4, to.all(), RemoteAddr(AT), KEY)).unwrap();
    post(&mut raw, 5, 2000, 1);
    assert_eq!(numbers(&raw.drain()), [0, 1, 2, 3, 4, 5, 6, 9]);
    miss(&mut raw, 1, 2);
    assert_eq!(numbers(&raw.drain()), [1, 3, 4, 5, 6]);
    // The gap closed, and what was dropped is on its way.
    miss(&mut raw, 3, 1);
    assert!(raw.drain().is_empty());
    // Of two gaps the second is repeated with what was dropped behind it.
    post(&mut raw, 6, 3000, 1);
    assert_eq!(numbers(&raw.drain()), [10]);
    miss(&mut raw, 5, 10);
    assert_eq!(numbers(&raw.drain()), [5, 6]);
}

/// A WRITE placed early must not be overwritten by an older one.
#[test]
fn overlapping_writes_keep_their_order() {
    let mut raw = Raw::selective();
    post(&mut raw, 1, 0, 256);
    post(&mut raw, 2, 256, 256);
    post(&mut raw, 3, 255, 2);
    post(&mut raw, 4, 5000, 1);
    assert_eq!(numbers(&raw.drain()), [0, 1]);
    raw.answer(TO_PEER, Syndrome::ACK).unwrap();
    assert!(raw.drain().is_empty());
    raw.answer(TO_PEER.add(1), Syndrome::ACK).unwrap();
    assert_eq!(numbers(&raw.drain()), [2, 3]);
    // Also after an atomic.
    let to = raw.ep.transport.register(vec![0; 8], Access::LOCAL, None).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::fetch_add(5, to.all(), RemoteAddr(AT + 8000), KEY, 1)).unwrap();
    post(&mut raw, 6, 8007, 1);
    assert_eq!(numbers(&raw.drain()), [4]);
    // Empty ones have no effect.
    raw.answer(TO_PEER.add(3), Syndrome::ACK).unwrap();
    assert!(raw.drain().is_empty());
}

#[test]
fn at_most_128_outstanding() {
    let mut raw =
        Raw::unmanaged(ConnectOptions { window: 1000, ..options() }, |rtr| rtr.selective_repeat = true, |_| {});
    post(&mut raw, 1, 0, 256 * 200);
    let packets = raw.drain();
    assert_eq!(packets.len(), 128);
    assert!(packets[127].headers.bth.ack_req());
    raw.answer(TO_PEER.add(63), Syndrome::ACK).unwrap();
    assert_eq!(raw.drain().len(), 64);
}

#[test]
fn a_timeout_sends_everything_again() {
    let mut raw = Raw::selective();
    post(&mut raw, 1, 0, 256 * 4);
    raw.drain();
    miss(&mut raw, 1, 2);
    assert_eq!(numbers(&raw.drain()), [1]);
    assert_eq!(numbers(&raw.wait(MS * 8)), [1, 2, 3]);
    raw.answer(TO_PEER.add(3), Syndrome::ACK).unwrap();
    assert_eq!(completion(&mut raw).id, 1);
}
