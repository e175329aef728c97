// SPDX-License-Identifier: Apache-2.0
//! What is sent again, and what a repetition must leave alone.

use crate::raw::{Packet, Raw, TO_ENDPOINT, TO_PEER, options};
use nacelle_roce::{
    Access, ConnectOptions, Discard, Event, RecvWr, Region, SendWr, WcOpcode, WcStatus,
    wire::{
        Psn, RemoteAddr, Rkey,
        bth::{Aeth, AtomicEth, ImmDt, NakCode, Opcode, Reth, Syndrome},
        transport::Ext,
    },
};

const AT: RemoteAddr = RemoteAddr(0x10_0000);
const KEY: Rkey = Rkey(0x77);
const SEQUENCE: Syndrome = Syndrome::Nak(NakCode::PsnSequenceError);

fn psn(n: u32) -> Psn {
    TO_ENDPOINT.add(n)
}

fn shared(raw: &mut Raw, len: usize) -> Region {
    let rights = Access::REMOTE_READ | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
    raw.ep.transport.register(vec![7; len], rights, raw.conn).unwrap()
}

fn reth(region: &Region, offset: u64, len: u32) -> Ext {
    Ext::Reth(Reth::new(RemoteAddr(region.addr.0 + offset), region.rkey, len))
}

/// PSNs of packets, counted from where the endpoint began.
fn numbers(packets: &[Packet]) -> Vec<u32> {
    packets.iter().map(|p| p.headers.bth.psn().since(TO_PEER)).collect()
}

/// PSNs of packets, counted from where the peer began.
fn answered(packets: &[Packet]) -> Vec<u32> {
    packets.iter().map(|p| p.headers.bth.psn().since(TO_ENDPOINT)).collect()
}

/// The peer misses packet `n`, as packet `cause` shows.
fn miss(raw: &mut Raw, n: u32, cause: u32) {
    let aeth = Aeth::new(SEQUENCE, TO_PEER.add(cause).get());
    raw.send(Opcode::Acknowledge, TO_PEER.add(n), Ext::Aeth(aeth), &[]).unwrap();
}

fn respond(raw: &mut Raw, n: u32, opcode: Opcode, len: usize) {
    let ext = if opcode == Opcode::ReadResponseMiddle { Ext::None } else { Ext::Aeth(Aeth::new(Syndrome::ACK, 0)) };
    raw.send(opcode, TO_PEER.add(n), ext, &vec![3; len]).unwrap();
}

// Requester

/// A READ whose answer has begun to arrive is not asked for again with what is repeated around it.
#[test]
fn a_read_that_is_being_answered_is_not_repeated() {
    let mut raw = Raw::selective();
    let to = raw.ep.transport.register(vec![0; 600], Access::LOCAL, None).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::send(1, vec![1])).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::read(2, to.all(), AT, KEY)).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::send(3, vec![3])).unwrap();
    assert_eq!(numbers(&raw.drain()), [0, 1, 4]);
    miss(&mut raw, 0, 4);
    respond(&mut raw, 1, Opcode::ReadResponseFirst, 256);
    assert_eq!(numbers(&raw.drain()), [4]);
    respond(&mut raw, 2, Opcode::ReadResponseMiddle, 256);
    respond(&mut raw, 3, Opcode::ReadResponseLast, 88);
    raw.answer(TO_PEER.add(4), Syndrome::ACK).unwrap();
    let done = std::iter::from_fn(|| raw.ep.transport.poll_event())
        .filter(|event| matches!(event, Event::Completion(c) if c.status == WcStatus::Success));
    assert_eq!(done.count(), 3);
}

/// A local operation behind a fence waits for the READ before it, also while other packets are repeated.
#[test]
fn a_fence_holds_local_operations() {
    let mut raw = Raw::selective();
    let to = shared(&mut raw, 8);
    raw.ep.transport.post_send(raw.conn, SendWr::send(1, vec![1])).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::read(2, to.all(), AT, KEY)).unwrap();
    let invalidate = SendWr { fence: true, ..SendWr::local_invalidate(3, to.rkey) };
    raw.ep.transport.post_send(raw.conn, invalidate).unwrap();
    assert_eq!(numbers(&raw.drain()), [0, 1]);
    miss(&mut raw, 0, 1);
    assert_eq!(numbers(&raw.drain()), [0, 1]);
    assert!(raw.ep.transport.regions().all(|r| r.valid), "not before the READ is over");
    respond(&mut raw, 1, Opcode::ReadResponseOnly, 8);
    assert!(raw.drain().is_empty());
    assert!(raw.ep.transport.regions().all(|r| !r.valid));
    let ids: Vec<u64> = std::iter::from_fn(|| raw.ep.transport.poll_event())
        .map(|event| if let Event::Completion(c) = event { c.id } else { panic!("{event:?}") })
        .collect();
    assert_eq!(ids, [1, 2, 3]);
}

/// Of two missing packets the second is no part of what was repeated behind the first, if the peer takes it early.
#[test]
fn a_second_gap_among_what_was_repeated() {
    let mut raw = Raw::selective();
    raw.ep.transport.post_send(raw.conn, SendWr::write(1, vec![1; 512], AT, KEY)).unwrap();
    let far = RemoteAddr(AT.0 + 1000);
    raw.ep.transport.post_send(raw.conn, SendWr::write_imm(2, vec![2; 300], far, KEY, 7)).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::send(3, vec![3; 300])).unwrap();
    assert_eq!(numbers(&raw.drain()), [0, 1, 2, 3, 4, 5]);
    // 1 and 2 are lost; 3 shows the first of them.
    miss(&mut raw, 1, 3);
    assert_eq!(numbers(&raw.drain()), [1, 3, 4, 5]);
    miss(&mut raw, 2, 1);
    assert_eq!(numbers(&raw.drain()), [2, 3, 4, 5]);
}

/// A work request in a queue that drains does not begin, also while others are repeated.
#[test]
fn a_queue_that_drains_begins_nothing() {
    let mut raw = Raw::selective();
    let region = shared(&mut raw, 8);
    raw.ep.transport.post_send(raw.conn, SendWr::write(1, vec![1; 512], AT, KEY)).unwrap();
    assert_eq!(numbers(&raw.drain()), [0, 1]);
    raw.ep.transport.modify_qp(raw.now, raw.conn, nacelle_roce::QpModify::Sqd).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::local_invalidate(2, region.rkey)).unwrap();
    miss(&mut raw, 0, 1);
    assert_eq!(numbers(&raw.drain()), [0]);
    assert!(raw.ep.transport.regions().all(|r| r.valid));
    raw.answer(TO_PEER.add(1), Syndrome::ACK).unwrap();
    assert!(matches!(raw.ep.transport.poll_event(), Some(Event::Completion(c)) if c.id == 1));
    assert_eq!(raw.ep.transport.poll_event(), Some(Event::SendQueueDrained { conn: raw.conn }));
    raw.drain();
    assert!(raw.ep.transport.regions().all(|r| r.valid));
    raw.ep.transport.modify_qp(raw.now, raw.conn, nacelle_roce::QpModify::Resume).unwrap();
    raw.drain();
    assert!(raw.ep.transport.regions().all(|r| !r.valid));
    assert!(
        matches!(raw.ep.transport.poll_event(), Some(Event::Completion(c)) if c.opcode == WcOpcode::LocalInvalidate)
    );
}

// Responder

/// A READ that comes again is answered again and takes nothing from another one that still waits.
#[test]
fn a_duplicate_read_beside_a_new_one() {
    let mut raw = Raw::passive();
    let region = shared(&mut raw, 2000);
    raw.send(Opcode::ReadRequest, psn(0), reth(&region, 0, 600), &[]).unwrap();
    assert_eq!(answered(&raw.drain()), [0, 1, 2]);
    raw.send(Opcode::ReadRequest, psn(3), reth(&region, 600, 400), &[]).unwrap();
    let again = raw.send(Opcode::ReadRequest, psn(0), reth(&region, 0, 600), &[]);
    assert_eq!(again, Err(Discard::Duplicate));
    assert_eq!(answered(&raw.drain()), [0, 1, 2, 3, 4]);
    // Both orders: the new one first, then what came before it.
    raw.send(Opcode::ReadRequest, psn(5), reth(&region, 0, 600), &[]).unwrap();
    assert_eq!(raw.drain().len(), 3);
    let _ = raw.send(Opcode::ReadRequest, psn(5), reth(&region, 0, 600), &[]);
    let _ = raw.send(Opcode::ReadRequest, psn(3), reth(&region, 600, 400), &[]);
    assert_eq!(answered(&raw.drain()), [3, 4, 5, 6, 7]);
    assert_eq!(raw.ep.counters().rx_read_requests, 6, "repetitions included");
    // What begins anew while it is under way is another execution, too.
    let mut buf = vec![0; raw.ep.frame_len()];
    let _ = raw.send(Opcode::ReadRequest, psn(5), reth(&region, 0, 600), &[]);
    assert!(raw.ep.poll_transmit(raw.now, &mut buf).is_some());
    let _ = raw.send(Opcode::ReadRequest, psn(5), reth(&region, 0, 600), &[]);
    assert_eq!(answered(&raw.drain()), [5, 6, 7]);
    assert_eq!(raw.ep.counters().rx_read_requests, 8);
}

/// Repeated answers wait beside new ones, as many as were agreed of each.
#[test]
fn repeated_answers_are_bounded() {
    let mut raw = Raw::passive_with(ConnectOptions { responder_resources: 2, ..options() }, |_, _| {});
    let region = shared(&mut raw, 64);
    let read = |raw: &mut Raw, n: u32| raw.send(Opcode::ReadRequest, psn(n), reth(&region, u64::from(n), 1), &[]);
    for n in 0..4 {
        read(&mut raw, n).unwrap();
        raw.drain();
    }
    for n in [2, 0, 3, 1] {
        assert_eq!(read(&mut raw, n), Err(Discard::Duplicate));
    }
    // New ones have their own room.
    read(&mut raw, 4).unwrap();
    read(&mut raw, 5).unwrap();
    assert_eq!(answered(&raw.drain()), [0, 2, 4, 5], "the first two that came again, by PSN");
    assert_eq!(raw.ep.counters().rx_read_requests, 8);
    // The same atomic waits once, however often it comes.
    let add = Ext::Atomic(AtomicEth::new(region.addr, region.rkey, 1, 0));
    for n in [6, 7] {
        raw.send(Opcode::FetchAdd, psn(n), add, &[]).unwrap();
        raw.drain();
    }
    for n in [6, 6, 7, 7] {
        assert_eq!(raw.send(Opcode::FetchAdd, psn(n), add, &[]), Err(Discard::Duplicate));
    }
    assert_eq!(answered(&raw.drain()), [6, 7]);
}

/// Without selective repeat a WRITE Only with immediate carries all that its RETH names.
#[test]
fn a_write_with_immediate_is_whole() {
    for selective in [false, true] {
        let mut raw = Raw::unmanaged(options(), |rtr| rtr.selective_repeat = selective, |_| {});
        let region = shared(&mut raw, 600);
        raw.ep.transport.post_recv(raw.conn, RecvWr { id: 1, slice: None }).unwrap();
        let end = Ext::RethImm(Reth::new(region.addr, region.rkey, 300), ImmDt::new(9));
        raw.send(Opcode::WriteOnlyImm, psn(0), end, &[2; 44]).unwrap();
        let invalid = Syndrome::Nak(NakCode::InvalidRequest);
        assert_eq!(raw.one_answer().1, if selective { Syndrome::ACK } else { invalid });
    }
}
