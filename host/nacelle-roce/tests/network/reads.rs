// SPDX-License-Identifier: Apache-2.0
//! READ, atomics and invalidation, rule by rule, against a raw peer.

use crate::raw::{Packet, Raw, TO_ENDPOINT, TO_PEER, options};
use crate::sim::region_bytes;
use nacelle_roce::{
    Access, Completion, ConnectOptions, Data, Discard, DisconnectReason, Event, PostError, ProtectionDomain, RecvWr,
    Region, Scope, SendOp, SendWr, WcOpcode, WcStatus,
    wire::{
        Psn, RemoteAddr, Rkey,
        bth::{Aeth, AtomicAckEth, AtomicEth, Ieth, NakCode, Opcode, Reth, RnrTimer, Syndrome},
        transport::Ext,
    },
};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const INVALID: Syndrome = Syndrome::Nak(NakCode::InvalidRequest);
const ACCESS: Syndrome = Syndrome::Nak(NakCode::RemoteAccessError);
const SEQUENCE: Syndrome = Syndrome::Nak(NakCode::PsnSequenceError);

fn all() -> Access {
    Access::REMOTE_READ | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC | Access::REMOTE_INVALIDATE
}

fn psn(n: u32) -> Psn {
    TO_ENDPOINT.add(n)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 256) as u8).collect()
}

fn shared(raw: &mut Raw, len: usize) -> Region {
    raw.ep.transport.register(pattern(len), all(), raw.conn).unwrap()
}

fn reth(region: &Region, offset: u64, len: u32) -> Ext {
    Ext::Reth(Reth::new(RemoteAddr(region.addr.0 + offset), region.rkey, len))
}

fn read(raw: &mut Raw, n: u32, region: &Region, offset: u64, len: u32) -> Result<(), Discard> {
    raw.send(Opcode::ReadRequest, psn(n), reth(region, offset, len), &[])
}

fn fetch_add(raw: &mut Raw, n: u32, region: &Region, offset: u64, add: u64) -> Result<(), Discard> {
    let eth = AtomicEth::new(RemoteAddr(region.addr.0 + offset), region.rkey, add, 0);
    raw.send(Opcode::FetchAdd, psn(n), Ext::Atomic(eth), &[])
}

fn cmp_swap(raw: &mut Raw, n: u32, region: &Region, compare: u64, swap: u64) -> Result<(), Discard> {
    let eth = AtomicEth::new(region.addr, region.rkey, swap, compare);
    raw.send(Opcode::CmpSwap, psn(n), Ext::Atomic(eth), &[])
}

fn completion(raw: &mut Raw) -> Completion {
    match raw.ep.transport.poll_event() {
        Some(Event::Completion(c)) => c,
        other => panic!("{other:?}"),
    }
}

fn assert_failed(raw: &mut Raw, status: WcStatus) {
    match raw.ep.transport.poll_event() {
        Some(Event::Disconnected { reason, .. }) => assert_eq!(reason, DisconnectReason::Error(status)),
        other => panic!("{other:?}"),
    }
}

/// Opcode and PSN of packets, counted from where the peer began.
fn forms(packets: &[Packet]) -> Vec<(Opcode, u32)> {
    packets.iter().map(|p| (p.opcode, p.headers.bth.psn().since(TO_ENDPOINT))).collect()
}

fn payload(packets: &[Packet]) -> Vec<u8> {
    packets.iter().flat_map(|p| p.payload.clone()).collect()
}

fn word(raw: &Raw, region: &Region) -> u64 {
    u64::from_ne_bytes(region_bytes(&raw.ep, region.id)[..8].try_into().unwrap())
}

// Responder

#[test]
fn reads_of_every_form() {
    use Opcode::*;
    let mut raw = Raw::passive();
    let region = shared(&mut raw, 2000);
    let expected = pattern(2000);
    let mut n = 0;
    for (len, opcodes) in [
        (0, vec![ReadResponseOnly]),
        (1, vec![ReadResponseOnly]),
        (256, vec![ReadResponseOnly]),
        (257, vec![ReadResponseFirst, ReadResponseLast]),
        (1000, vec![ReadResponseFirst, ReadResponseMiddle, ReadResponseMiddle, ReadResponseLast]),
    ] {
        read(&mut raw, n, &region, 100, len).unwrap();
        let answer = raw.drain();
        let numbered: Vec<_> = opcodes.iter().enumerate().map(|(i, o)| (*o, n + i as u32)).collect();
        assert_eq!(forms(&answer), numbered, "a PSN for each packet, and no ACK besides");
        assert_eq!(payload(&answer), expected[100..][..len as usize]);
        for p in answer.iter().filter(|p| p.opcode != ReadResponseMiddle) {
            let Ext::Aeth(aeth) = p.headers.ext else { panic!("{p:?}") };
            assert_eq!(aeth.syndrome(), Syndrome::ACK);
        }
        n += opcodes.len() as u32;
    }
    // The next request follows the last response.
    raw.send(Opcode::WriteOnly, psn(n), reth(&region, 0, 1), &[9]).unwrap();
    assert_eq!(raw.one_answer(), (psn(n), Syndrome::ACK, 6));
    let c = raw.ep.counters();
    assert_eq!((c.rx_read_requests, c.tx_read_responses, c.rx_write_requests), (5, 9, 1));
}

#[test]
fn a_duplicate_read_may_begin_anywhere() {
    let mut raw = Raw::passive();
    let region = shared(&mut raw, 2000);
    read(&mut raw, 0, &region, 0, 1000).unwrap();
    assert_eq!(raw.drain().len(), 4);
    raw.send(Opcode::WriteOnly, psn(4), reth(&region, 1999, 1), &[9]).unwrap();
    assert_eq!(raw.one_answer().0, psn(4));
    // The requester has lost the third response.
    assert_eq!(read(&mut raw, 2, &region, 512, 488), Err(Discard::Duplicate));
    let again = raw.drain();
    assert_eq!(forms(&again), [(Opcode::ReadResponseFirst, 2), (Opcode::ReadResponseLast, 3)]);
    assert_eq!(payload(&again), pattern(2000)[512..1000]);
    // Whole, while the answer is under way: it begins anew, once.
    assert_eq!(read(&mut raw, 0, &region, 0, 1000), Err(Discard::Duplicate));
    let mut buf = vec![0; raw.ep.frame_len()];
    assert!(raw.ep.poll_transmit(raw.now, &mut buf).is_some());
    assert_eq!(read(&mut raw, 0, &region, 0, 1000), Err(Discard::Duplicate));
    assert_eq!(forms(&raw.drain()).iter().map(|f| f.1).collect::<Vec<_>>(), [0, 1, 2, 3]);
    // More than was ever asked, no READ by its form, or what it may not read any more: silence.
    assert_eq!(read(&mut raw, 2, &region, 512, 4 * 256), Err(Discard::Duplicate));
    let with_payload = raw.send(Opcode::ReadRequest, psn(0), reth(&region, 0, 1000), &[1]);
    assert_eq!(with_payload, Err(Discard::Duplicate));
    assert!(raw.ep.transport.invalidate(region.id));
    assert_eq!(read(&mut raw, 0, &region, 0, 1000), Err(Discard::Duplicate));
    assert!(raw.drain().is_empty());
    assert_eq!(raw.ep.transport.poll_event(), None);
}

/// There is room for one that comes again, whatever was agreed.
#[test]
fn a_duplicate_read_finds_room() {
    let mut raw = Raw::passive_with(ConnectOptions { responder_resources: 0, ..options() }, |_, _| {});
    let region = shared(&mut raw, 8);
    raw.send(Opcode::WriteOnly, psn(0), reth(&region, 0, 1), &[9]).unwrap();
    raw.drain();
    assert_eq!(read(&mut raw, 0, &region, 0, 8), Err(Discard::Duplicate));
    assert_eq!(forms(&raw.drain()), [(Opcode::ReadResponseOnly, 0)]);
}

#[test]
fn atomics_are_executed_once() {
    let mut raw = Raw::passive_with(ConnectOptions { responder_resources: 2, ..options() }, |_, _| {});
    let region = raw.ep.transport.register(5u64.to_ne_bytes().to_vec(), all(), raw.conn).unwrap();
    let original = |raw: &mut Raw, n| {
        let packets = raw.drain();
        assert_eq!(forms(&packets), [(Opcode::AtomicAcknowledge, n)]);
        let Ext::AethAtomic(aeth, atomic) = packets[0].headers.ext else { panic!() };
        assert_eq!(aeth.syndrome(), Syndrome::ACK);
        atomic.original()
    };
    fetch_add(&mut raw, 0, &region, 0, u64::MAX).unwrap();
    assert_eq!((original(&mut raw, 0), word(&raw, &region)), (5, 4));
    cmp_swap(&mut raw, 1, &region, 5, 100).unwrap();
    assert_eq!((original(&mut raw, 1), word(&raw, &region)), (4, 4));
    cmp_swap(&mut raw, 2, &region, 4, 100).unwrap();
    assert_eq!((original(&mut raw, 2), word(&raw, &region)), (4, 100));
    // Duplicates get the answer again, as far back as was agreed; nothing is done again.
    assert_eq!(cmp_swap(&mut raw, 2, &region, 4, 100), Err(Discard::Duplicate));
    assert_eq!(original(&mut raw, 2), 4);
    assert_eq!(cmp_swap(&mut raw, 1, &region, 5, 100), Err(Discard::Duplicate));
    assert_eq!(cmp_swap(&mut raw, 1, &region, 5, 100), Err(Discard::Duplicate));
    assert_eq!(original(&mut raw, 1), 4);
    assert_eq!(fetch_add(&mut raw, 0, &region, 0, u64::MAX), Err(Discard::Duplicate));
    assert!(raw.drain().is_empty());
    assert_eq!(word(&raw, &region), 100);
    assert_eq!(raw.ep.counters().rx_atomic_requests, 3);
}

#[test]
fn rights_of_reads_and_atomics() {
    let refused = |access: Access, opcode: Opcode, ext: &dyn Fn(&Region) -> Ext, syndrome: Syndrome| {
        let mut raw = Raw::passive();
        let region = raw.ep.transport.register(pattern(64), access, raw.conn).unwrap();
        raw.send(opcode, psn(0), ext(&region), &[]).unwrap();
        assert_eq!(raw.one_answer(), (psn(0), syndrome, 0));
        let status = if syndrome == ACCESS { WcStatus::LocAccessErr } else { WcStatus::LocQpOpErr };
        assert_failed(&mut raw, status);
        assert_eq!(region_bytes(&raw.ep, region.id), pattern(64));
        let c = raw.ep.counters();
        let wrong = (u64::from(syndrome == ACCESS), u64::from(syndrome == INVALID));
        assert_eq!((c.resp_remote_access_errors, c.resp_remote_invalid_requests), wrong);
    };
    let add = |offset: u64| move |r: &Region| Ext::Atomic(AtomicEth::new(RemoteAddr(r.addr.0 + offset), r.rkey, 1, 0));
    let (r, w, a) = (Access::REMOTE_READ, Access::REMOTE_WRITE, Access::REMOTE_ATOMIC);
    refused(w | a, Opcode::ReadRequest, &|r| reth(r, 0, 8), ACCESS);
    refused(all(), Opcode::ReadRequest, &|r| reth(r, 60, 8), ACCESS);
    refused(all(), Opcode::ReadRequest, &|r| Ext::Reth(Reth::new(r.addr, Rkey(r.rkey.0 ^ 1), 8)), ACCESS);
    refused(r | w, Opcode::FetchAdd, &add(0), ACCESS);
    refused(r | w, Opcode::CmpSwap, &add(0), ACCESS);
    refused(a, Opcode::FetchAdd, &add(64), ACCESS);
    for offset in 1..8 {
        refused(a, Opcode::FetchAdd, &add(offset), INVALID);
    }
}

#[test]
fn more_at_once_than_agreed() {
    for resources in [0, 1, 16] {
        let options = ConnectOptions { responder_resources: resources, ..options() };
        let mut raw = Raw::passive_with(options, |_, _| {});
        assert_eq!(raw.ep.transport.connection(raw.conn).unwrap().responder_resources, resources);
        let region = shared(&mut raw, 64);
        for n in 0..u32::from(resources) {
            match n % 2 {
                0 => read(&mut raw, n, &region, 0, 8).unwrap(),
                _ => fetch_add(&mut raw, n, &region, 0, 1).unwrap(),
            }
        }
        read(&mut raw, resources.into(), &region, 0, 8).unwrap();
        // What was in order is answered, in order; then the NAK.
        let packets = raw.drain();
        assert_eq!(packets.len(), usize::from(resources) + 1);
        let numbers: Vec<u32> = packets.iter().map(|p| p.headers.bth.psn().since(TO_ENDPOINT)).collect();
        assert_eq!(numbers, (0..=u32::from(resources)).collect::<Vec<_>>());
        let Ext::Aeth(aeth) = packets.last().unwrap().headers.ext else { panic!() };
        assert_eq!(aeth.syndrome(), INVALID);
        assert_failed(&mut raw, WcStatus::LocQpOpErr);
    }
}

/// An ACK or NAK waits behind the data of READs that were asked before; ACKs become one.
#[test]
fn answers_keep_their_order() {
    let mut raw = Raw::passive();
    let region = shared(&mut raw, 2000);
    raw.send(Opcode::WriteOnly, psn(0), reth(&region, 0, 1), &[0]).unwrap();
    read(&mut raw, 1, &region, 0, 300).unwrap();
    fetch_add(&mut raw, 3, &region, 0, 0).unwrap();
    for n in 4..10 {
        raw.send(Opcode::WriteOnly, psn(n), reth(&region, 0, 1), &[0]).unwrap();
    }
    let answer = raw.drain();
    use Opcode::*;
    let expected = [(ReadResponseFirst, 1), (ReadResponseLast, 2), (AtomicAcknowledge, 3), (Acknowledge, 9)];
    assert_eq!(forms(&answer), expected);
    assert_eq!(raw.ep.counters().tx_ack, 1);

    read(&mut raw, 10, &region, 0, 300).unwrap();
    assert_eq!(read(&mut raw, 13, &region, 0, 300), Err(Discard::OutOfSequence));
    let answer = raw.drain();
    assert_eq!(forms(&answer), [(ReadResponseFirst, 10), (ReadResponseLast, 11), (Acknowledge, 12)]);
    let Ext::Aeth(aeth) = answer[2].headers.ext else { panic!() };
    assert_eq!(aeth.syndrome(), SEQUENCE);
}

#[test]
fn a_region_that_goes_away_while_it_is_read() {
    let mut raw = Raw::passive();
    let region = shared(&mut raw, 2000);
    read(&mut raw, 0, &region, 0, 1000).unwrap();
    let mut buf = vec![0; raw.ep.frame_len()];
    assert!(raw.ep.poll_transmit(raw.now, &mut buf).is_some());
    raw.ep.transport.deregister(region.id).unwrap();
    assert_eq!(raw.one_answer(), (psn(1), ACCESS, 1));
    assert_failed(&mut raw, WcStatus::LocAccessErr);
}

#[test]
fn send_with_invalidate() {
    let mut raw = Raw::passive();
    let region = shared(&mut raw, 600);
    let inbox = raw.ep.transport.register(vec![0; 600], Access::LOCAL, None).unwrap();
    for id in 0..3 {
        raw.ep.transport.post_recv(raw.conn, RecvWr { id, slice: Some(inbox.all()) }).unwrap();
    }
    raw.send(Opcode::SendFirst, psn(0), Ext::None, &[1; 256]).unwrap();
    assert!(raw.ep.transport.regions().any(|r| r.region == region && r.valid));
    raw.send(Opcode::SendLastInvalidate, psn(1), Ext::Ieth(Ieth::new(region.rkey)), &[2; 4]).unwrap();
    let c = completion(&mut raw);
    assert_eq!((c.id, c.byte_len, c.invalidated), (0, 260, Some(region.rkey)));
    assert!(raw.ep.transport.regions().any(|r| r.region == region && !r.valid));
    raw.drain();
    // A new key opens the region again, the old one does not.
    let renewed = raw.ep.transport.rekey(region.id).unwrap();
    assert_ne!(renewed.rkey, region.rkey);
    read(&mut raw, 2, &renewed, 0, 1).unwrap();
    assert_eq!(forms(&raw.drain()), [(Opcode::ReadResponseOnly, 2)]);
    raw.send(Opcode::SendOnlyInvalidate, psn(3), Ext::Ieth(Ieth::new(renewed.rkey)), &[]).unwrap();
    assert_eq!(completion(&mut raw).invalidated, Some(renewed.rkey));
    raw.drain();
    read(&mut raw, 4, &renewed, 0, 1).unwrap();
    assert_eq!(raw.one_answer().1, ACCESS);
    assert_eq!(raw.ep.counters().rx_invalidations, 2);
}

#[test]
fn keys_that_a_peer_may_not_invalidate() {
    for case in 0..4 {
        let mut raw = Raw::passive();
        let other = raw.ep.transport.alloc_domain();
        let key = match case {
            0 => Rkey(77),
            1 => raw.ep.transport.register(vec![0], all(), other).unwrap().rkey,
            2 => raw.ep.transport.register(vec![0], Access::REMOTE_READ, raw.conn).unwrap().rkey,
            _ => raw.ep.transport.register(vec![0], all(), None).unwrap().rkey,
        };
        raw.ep.transport.post_recv(raw.conn, RecvWr { id: 1, slice: None }).unwrap();
        raw.send(Opcode::SendOnlyInvalidate, psn(0), Ext::Ieth(Ieth::new(key)), &[]).unwrap();
        assert_eq!(raw.one_answer(), (psn(0), ACCESS, 0));
        assert_eq!(completion(&mut raw).status, WcStatus::RemInvReqErr);
        assert_failed(&mut raw, WcStatus::RemInvReqErr);
        assert!(raw.ep.transport.regions().all(|r| r.valid));
        assert_eq!(raw.ep.counters().resp_cqe_error, 1);
    }
}

/// Every region is for one connection, for one domain, or not remotely accessible.
#[test]
fn scopes() {
    let opens = |scope: &dyn Fn(&mut Raw) -> Scope| {
        let mut raw = Raw::passive();
        let scope = scope(&mut raw);
        let region = raw.ep.transport.register(pattern(8), all(), scope).unwrap();
        read(&mut raw, 0, &region, 0, 8).unwrap();
        raw.drain()[0].opcode == Opcode::ReadResponseOnly
    };
    assert!(opens(&|raw| raw.conn.into()));
    assert!(opens(&|_| ProtectionDomain::DEFAULT.into()));
    assert!(!opens(&|_| Scope::Local));
    assert!(!opens(&|raw| raw.ep.transport.alloc_domain().into()));
    assert!(!opens(&|raw| raw.ep.transport.create_qp(raw.now, options()).unwrap().into()));
}

// Requester

fn numbers(packets: &[Packet]) -> Vec<(Opcode, u32)> {
    packets.iter().map(|p| (p.opcode, p.headers.bth.psn().since(TO_PEER))).collect()
}

fn sink(raw: &mut Raw, len: usize) -> Region {
    raw.ep.transport.register(vec![0; len], Access::LOCAL, None).unwrap()
}

const AT: RemoteAddr = RemoteAddr(0x1000);
const KEY: Rkey = Rkey(0x77);

/// The peer answers packet `n` of a READ.
fn respond(raw: &mut Raw, n: u32, opcode: Opcode, bytes: &[u8]) -> Result<(), Discard> {
    let ext = if opcode == Opcode::ReadResponseMiddle { Ext::None } else { Ext::Aeth(Aeth::new(Syndrome::ACK, 0)) };
    raw.send(opcode, TO_PEER.add(n), ext, bytes)
}

fn answer_atomic(raw: &mut Raw, n: u32, value: u64) -> Result<(), Discard> {
    let ext = Ext::AethAtomic(Aeth::new(Syndrome::ACK, 0), AtomicAckEth::new(value));
    raw.send(Opcode::AtomicAcknowledge, TO_PEER.add(n), ext, &[])
}

#[test]
fn a_read_and_its_answer() {
    use Opcode::*;
    let mut raw = Raw::active(options());
    let region = sink(&mut raw, 1000);
    raw.ep.transport.post_send(raw.conn, SendWr::read(1, region.slice(10, 600), AT, KEY)).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::write(2, vec![1], AT, KEY)).unwrap();
    let packets = raw.drain();
    assert_eq!(numbers(&packets), [(ReadRequest, 0), (WriteOnly, 3)]);
    assert_eq!(packets[0].headers.ext, Ext::Reth(Reth::new(AT, KEY, 600)));
    assert!(packets[0].headers.bth.ack_req() && packets[0].payload.is_empty());
    let data = pattern(600);
    respond(&mut raw, 0, ReadResponseFirst, &data[..256]).unwrap();
    respond(&mut raw, 1, ReadResponseMiddle, &data[256..512]).unwrap();
    assert_eq!(raw.ep.transport.poll_event(), None);
    respond(&mut raw, 2, ReadResponseLast, &data[512..]).unwrap();
    let c = completion(&mut raw);
    assert_eq!((c.id, c.opcode, c.status, c.byte_len), (1, WcOpcode::Read, WcStatus::Success, 600));
    raw.answer(TO_PEER.add(3), Syndrome::ACK).unwrap();
    assert_eq!(completion(&mut raw).id, 2);
    let bytes = region_bytes(&raw.ep, region.id);
    assert_eq!(bytes[10..610], data);
    assert!(bytes[..10].iter().chain(&bytes[610..]).all(|&b| b == 0));
    // A ghost of it comes too late.
    assert_eq!(respond(&mut raw, 2, ReadResponseLast, &data[512..]), Err(Discard::StaleAck));
}

#[test]
fn the_rest_of_a_read_is_asked_for_again() {
    use Opcode::*;
    let mut raw = Raw::active(options());
    let region = sink(&mut raw, 1000);
    let data = pattern(1000);
    raw.ep.transport.post_send(raw.conn, SendWr::write(1, vec![1], AT, KEY)).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::read(2, region.all(), AT, KEY)).unwrap();
    assert_eq!(raw.drain().len(), 2);
    // The first response acknowledges the WRITE.
    respond(&mut raw, 1, ReadResponseFirst, &data[..256]).unwrap();
    assert_eq!(completion(&mut raw).id, 1);
    // The second is lost.
    assert_eq!(respond(&mut raw, 3, ReadResponseMiddle, &data[512..768]), Err(Discard::OutOfSequence));
    let again = raw.drain();
    assert_eq!(numbers(&again), [(ReadRequest, 2)]);
    assert_eq!(again[0].headers.ext, Ext::Reth(Reth::new(RemoteAddr(AT.0 + 256), KEY, 744)));
    assert_eq!(respond(&mut raw, 4, ReadResponseLast, &data[768..]), Err(Discard::OutOfSequence));
    assert!(raw.drain().is_empty(), "asked for once");
    assert_eq!(raw.ep.counters().implied_nak_seq_err, 1);
    respond(&mut raw, 2, ReadResponseFirst, &data[256..512]).unwrap();
    respond(&mut raw, 3, ReadResponseMiddle, &data[512..768]).unwrap();
    respond(&mut raw, 4, ReadResponseLast, &data[768..]).unwrap();
    assert_eq!(completion(&mut raw).status, WcStatus::Success);
    assert_eq!(region_bytes(&raw.ep, region.id), data);
    assert!(raw.wait(MS * 100).is_empty(), "a timer is left");
}

/// Answers come as fast as the peer can send; no more of them are asked for than queues on the way can hold.
#[test]
fn reads_do_not_flood_this_side() {
    let mut raw = Raw::active(options());
    let region = sink(&mut raw, 300 * 256);
    for id in 0..4 {
        raw.ep.transport.post_send(raw.conn, SendWr::read(id, region.slice(0, 100 * 256), AT, KEY)).unwrap();
    }
    // 100 and 100 packets; the third READ waits for the first.
    assert_eq!(numbers(&raw.drain()), [(Opcode::ReadRequest, 0), (Opcode::ReadRequest, 100)]);
    for n in 0..43 {
        respond(&mut raw, n, if n == 0 { Opcode::ReadResponseFirst } else { Opcode::ReadResponseMiddle }, &[0; 256])
            .unwrap();
        assert!(raw.drain().is_empty(), "{n}");
    }
    respond(&mut raw, 43, Opcode::ReadResponseMiddle, &[0; 256]).unwrap();
    assert_eq!(numbers(&raw.drain()), [(Opcode::ReadRequest, 200)]);

    // One that is longer goes alone.
    let mut raw = Raw::active(options());
    let region = sink(&mut raw, 300 * 256);
    for id in 0..2 {
        raw.ep.transport.post_send(raw.conn, SendWr::read(id, region.all(), AT, KEY)).unwrap();
    }
    assert_eq!(numbers(&raw.drain()), [(Opcode::ReadRequest, 0)]);
}

/// An acknowledgement of a later request implies that the response is lost; so does a timeout.
#[test]
fn lost_answers_are_noticed() {
    let mut raw = Raw::active(options());
    let region = sink(&mut raw, 64);
    raw.ep.transport.post_send(raw.conn, SendWr::fetch_add(1, region.slice(8, 8), AT, KEY, 3)).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::send(2, vec![1])).unwrap();
    raw.drain();
    raw.answer(TO_PEER.add(1), Syndrome::ACK).unwrap();
    assert_eq!(numbers(&raw.drain()), [(Opcode::FetchAdd, 0), (Opcode::SendOnly, 1)]);
    assert_eq!(raw.ep.transport.poll_event(), None);
    // The repeated acknowledgement says nothing new.
    raw.answer(TO_PEER.add(1), Syndrome::ACK).unwrap();
    assert!(raw.drain().is_empty());
    assert_eq!(numbers(&raw.wait(MS * 2)), [(Opcode::FetchAdd, 0), (Opcode::SendOnly, 1)]);
    answer_atomic(&mut raw, 0, 0x0102_0304_0506_0708).unwrap();
    let c = completion(&mut raw);
    assert_eq!((c.id, c.opcode, c.byte_len), (1, WcOpcode::FetchAdd, 8));
    assert_eq!(region_bytes(&raw.ep, region.id)[8..16], 0x0102_0304_0506_0708u64.to_ne_bytes());
    raw.answer(TO_PEER.add(1), Syndrome::ACK).unwrap();
    assert_eq!(completion(&mut raw).id, 2);
}

#[test]
fn wrong_answers() {
    use Opcode::*;
    // Of the wrong kind: nothing happens.
    let mut raw = Raw::active(options());
    let region = sink(&mut raw, 600);
    raw.ep.transport.post_send(raw.conn, SendWr::cmp_swap(1, region.slice(0, 8), AT, KEY, 1, 2)).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::read(2, region.all(), AT, KEY)).unwrap();
    let packets = raw.drain();
    assert_eq!(packets[0].headers.ext, Ext::Atomic(AtomicEth::new(AT, KEY, 2, 1)));
    assert_eq!(respond(&mut raw, 0, ReadResponseOnly, &[0; 8]), Err(Discard::UnexpectedResponse));
    assert_eq!(answer_atomic(&mut raw, 1, 1), Err(Discard::UnexpectedResponse));
    answer_atomic(&mut raw, 0, 1).unwrap();
    assert_eq!(completion(&mut raw).opcode, WcOpcode::CmpSwap);
    // Of the wrong length or form: the connection fails.
    respond(&mut raw, 1, ReadResponseFirst, &[0; 255]).unwrap();
    let c = completion(&mut raw);
    assert_eq!((c.id, c.status), (2, WcStatus::BadRespErr));
    assert_failed(&mut raw, WcStatus::BadRespErr);
    assert_eq!(raw.ep.counters().req_bad_response, 1);
}

/// A READ of three packets whose answer has this one in its place, behind those that are right.
fn out_of_form(n: u32, opcode: Opcode, syndrome: Syndrome) {
    let mut raw = Raw::active(options());
    let region = sink(&mut raw, 600);
    raw.ep.transport.post_send(raw.conn, SendWr::read(1, region.all(), AT, KEY)).unwrap();
    raw.drain();
    for (n, opcode) in (0..n).zip([Opcode::ReadResponseFirst, Opcode::ReadResponseMiddle]) {
        respond(&mut raw, n, opcode, &[0; 256]).unwrap();
    }
    let ext = if opcode == Opcode::ReadResponseMiddle { Ext::None } else { Ext::Aeth(Aeth::new(syndrome, 0)) };
    raw.send(opcode, TO_PEER.add(n), ext, &[0; 256][..if n == 2 { 88 } else { 256 }]).unwrap();
    let completion = completion(&mut raw);
    assert_eq!((completion.id, completion.status), (1, WcStatus::BadRespErr), "{opcode:?} as packet {n}, {syndrome:?}");
    assert_failed(&mut raw, WcStatus::BadRespErr);
    assert_eq!(raw.ep.counters().req_bad_response, 1);
}

#[test]
fn answers_out_of_form() {
    use Opcode::*;
    for (n, opcode) in [
        (0, ReadResponseMiddle),
        (0, ReadResponseLast),
        (0, ReadResponseOnly),
        (1, ReadResponseLast),
        (1, ReadResponseOnly),
        (2, ReadResponseFirst),
        (2, ReadResponseMiddle),
    ] {
        out_of_form(n, opcode, Syndrome::ACK);
    }
    for syndrome in [Syndrome::Nak(NakCode::RemoteAccessError), Syndrome::RnrNak(RnrTimer::new(1))] {
        out_of_form(0, ReadResponseFirst, syndrome);
        out_of_form(2, ReadResponseLast, syndrome);

        let mut raw = Raw::active(options());
        let region = sink(&mut raw, 8);
        raw.ep.transport.post_send(raw.conn, SendWr::fetch_add(1, region.all(), AT, KEY, 3)).unwrap();
        raw.drain();
        let ext = Ext::AethAtomic(Aeth::new(syndrome, 0), AtomicAckEth::new(1));
        raw.send(AtomicAcknowledge, TO_PEER, ext, &[]).unwrap();
        assert_eq!(completion(&mut raw).status, WcStatus::BadRespErr);
        assert_failed(&mut raw, WcStatus::BadRespErr);
        assert_eq!(region_bytes(&raw.ep, region.id), [0; 8]);
    }
}

#[test]
fn no_more_outstanding_than_agreed() {
    let mut raw = Raw::active(ConnectOptions { initiator_depth: 2, ..options() });
    let region = sink(&mut raw, 600);
    for id in 0..4 {
        raw.ep.transport.post_send(raw.conn, SendWr::read(id, region.slice(0, 8), AT, KEY)).unwrap();
    }
    assert_eq!(raw.drain().len(), 2);
    respond(&mut raw, 0, Opcode::ReadResponseOnly, &[0; 8]).unwrap();
    assert_eq!(numbers(&raw.drain()), [(Opcode::ReadRequest, 2)]);

    let mut raw = Raw::active(ConnectOptions { initiator_depth: 0, ..options() });
    let region = sink(&mut raw, 8);
    let refused = raw.ep.transport.post_send(raw.conn, SendWr::read(1, region.all(), AT, KEY));
    assert_eq!(refused, Err(PostError::NotAgreed));
}

#[test]
fn a_fence_waits_for_reads() {
    let mut raw = Raw::active(options());
    let region = sink(&mut raw, 600);
    raw.ep.transport.post_send(raw.conn, SendWr::read(1, region.all(), AT, KEY)).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::write(2, vec![1], AT, KEY)).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr { fence: true, ..SendWr::send(3, vec![1]) }).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::send(4, vec![1])).unwrap();
    assert_eq!(numbers(&raw.drain()), [(Opcode::ReadRequest, 0), (Opcode::WriteOnly, 3)]);
    for (n, opcode) in [Opcode::ReadResponseFirst, Opcode::ReadResponseMiddle].into_iter().enumerate() {
        respond(&mut raw, n as u32, opcode, &[0; 256]).unwrap();
        assert!(raw.drain().is_empty());
    }
    respond(&mut raw, 2, Opcode::ReadResponseLast, &[0; 88]).unwrap();
    assert_eq!(numbers(&raw.drain()), [(Opcode::SendOnly, 4), (Opcode::SendOnly, 5)]);
}

#[test]
fn local_invalidation_takes_its_turn() {
    let mut raw = Raw::active(options());
    let region = shared(&mut raw, 8);
    raw.ep.transport.post_send(raw.conn, SendWr::send(1, vec![1])).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::local_invalidate(2, region.rkey)).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::send_invalidate(3, vec![1; 300], KEY)).unwrap();
    let packets = raw.drain();
    let expected = [(Opcode::SendOnly, 0), (Opcode::SendFirst, 1), (Opcode::SendLastInvalidate, 2)];
    assert_eq!(numbers(&packets), expected);
    assert_eq!(packets[2].headers.ext, Ext::Ieth(Ieth::new(KEY)));
    assert!(raw.ep.transport.regions().all(|r| !r.valid));
    assert_eq!(raw.ep.transport.poll_event(), None, "completions keep their order");
    // Going back does not invalidate again.
    let renewed = raw.ep.transport.rekey(region.id).unwrap();
    raw.answer(TO_PEER, SEQUENCE).unwrap();
    assert_eq!(numbers(&raw.drain()), expected);
    assert!(raw.ep.transport.regions().any(|r| r.region == renewed && r.valid));
    raw.answer(TO_PEER, Syndrome::ACK).unwrap();
    assert_eq!((completion(&mut raw).id, completion(&mut raw).opcode), (1, WcOpcode::LocalInvalidate));
    raw.answer(TO_PEER.add(2), Syndrome::ACK).unwrap();
    assert_eq!(completion(&mut raw).id, 3);
    // Alone in the queue it needs no packet.
    raw.ep.transport.post_send(raw.conn, SendWr::local_invalidate(4, renewed.rkey)).unwrap();
    assert!(raw.drain().is_empty());
    assert_eq!(completion(&mut raw).id, 4);
    assert!(raw.wait(MS * 100).is_empty());
    assert_eq!(raw.ep.next_deadline(), None);
    // A key of another connection.
    raw.ep.transport.post_send(raw.conn, SendWr::local_invalidate(5, KEY)).unwrap();
    raw.drain();
    assert_eq!(completion(&mut raw).status, WcStatus::LocQpOpErr);
    assert_failed(&mut raw, WcStatus::LocQpOpErr);
}

#[test]
fn answers_need_a_place() {
    let mut raw = Raw::active(options());
    let conn = raw.conn;
    let region = sink(&mut raw, 16);
    let foreign = raw.ep.transport.alloc_domain();
    let elsewhere = raw.ep.transport.register(vec![0; 16], Access::LOCAL, foreign).unwrap();
    let inline =
        SendWr { op: SendOp::Read { addr: AT, rkey: KEY }, data: Data::Inline(vec![0; 4]), ..SendWr::send(1, vec![]) };
    for wr in [
        inline.clone(),
        SendWr::fetch_add(1, region.slice(0, 4), AT, KEY, 1),
        SendWr::cmp_swap(1, region.slice(0, 16), AT, KEY, 1, 2),
        SendWr::read(1, region.slice(9, 8), AT, KEY),
        SendWr::read(1, elsewhere.all(), AT, KEY),
        SendWr::send(1, elsewhere.all()),
    ] {
        assert_eq!(raw.ep.transport.post_send(conn, wr), Err(PostError::BadSlice));
    }
    let slice = Some(elsewhere.all());
    assert_eq!(raw.ep.transport.post_recv(conn, RecvWr { id: 1, slice }), Err(PostError::BadSlice));
    // Nothing needs no place.
    raw.ep.transport.post_send(conn, SendWr { data: Data::Inline(Vec::new()), ..inline }).unwrap();
    assert_eq!(raw.drain()[0].headers.ext, Ext::Reth(Reth::new(AT, KEY, 0)));
    respond(&mut raw, 0, Opcode::ReadResponseOnly, &[]).unwrap();
    assert_eq!(completion(&mut raw).status, WcStatus::Success);
    // A place that goes away.
    raw.ep.transport.post_send(conn, SendWr::read(2, region.all(), AT, KEY)).unwrap();
    raw.drain();
    raw.ep.transport.deregister(region.id).unwrap();
    respond(&mut raw, 1, Opcode::ReadResponseOnly, &[0; 16]).unwrap();
    assert_eq!(completion(&mut raw).status, WcStatus::LocProtErr);
    assert_failed(&mut raw, WcStatus::LocProtErr);
}

/// The longest message at the smallest MTU uses half of all PSNs.
#[test]
fn two_gibibytes() {
    const LEN: usize = 1 << 31;
    let mut raw = Raw::active(options());
    let region = sink(&mut raw, LEN);
    raw.ep.transport.post_send(raw.conn, SendWr::read(1, region.all(), AT, KEY)).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::send(2, vec![1])).unwrap();
    let packets = raw.drain();
    assert_eq!(numbers(&packets), [(Opcode::ReadRequest, 0)], "no PSN is left for more");
    assert_eq!(packets[0].headers.ext, Ext::Reth(Reth::new(AT, KEY, LEN as u32)));
    respond(&mut raw, 0, Opcode::ReadResponseFirst, &[7; 256]).unwrap();
    assert_eq!(numbers(&raw.drain()), [(Opcode::SendOnly, 1 << 23)]);
    assert_eq!(respond(&mut raw, (1 << 23) - 1, Opcode::ReadResponseLast, &[7; 256]), Err(Discard::OutOfSequence));
    let again = raw.drain();
    assert_eq!(again[0].headers.ext, Ext::Reth(Reth::new(RemoteAddr(AT.0 + 256), KEY, LEN as u32 - 256)));
    let long = SendWr::read(1, nacelle_roce::RegionSlice { len: LEN + 1, ..region.all() }, AT, KEY);
    assert!(matches!(raw.ep.transport.post_send(raw.conn, long), Err(PostError::BadSlice | PostError::TooLong)));

    let mut raw = Raw::passive();
    let region = raw.ep.transport.register(vec![0; LEN], all(), raw.conn).unwrap();
    read(&mut raw, 0, &region, 0, LEN as u32).unwrap();
    let mut buf = vec![0; raw.ep.frame_len()];
    assert!(raw.ep.poll_transmit(raw.now, &mut buf).is_some());
    // The very last packet is asked for again, instead of the rest.
    let last = (1 << 23) - 1;
    let ext = reth(&region, u64::from(last) * 256, 256);
    assert_eq!(raw.send(Opcode::ReadRequest, psn(last), ext, &[]), Err(Discard::Duplicate));
    assert_eq!(forms(&raw.drain()), [(Opcode::ReadResponseOnly, last)]);
    raw.send(Opcode::WriteOnly, psn(last + 1), reth(&region, 0, 1), &[9]).unwrap();
    assert_eq!(raw.one_answer(), (psn(last + 1), Syndrome::ACK, 2));
}

/// RNR and fatal NAKs behind a READ whose answer is lost.
#[test]
fn naks_behind_a_lost_answer() {
    let mut raw = Raw::active(options());
    let region = sink(&mut raw, 8);
    let begin = |raw: &mut Raw| {
        raw.ep.transport.post_send(raw.conn, SendWr::read(1, region.all(), AT, KEY)).unwrap();
        raw.ep.transport.post_send(raw.conn, SendWr::send(2, vec![1])).unwrap();
        raw.drain();
    };
    begin(&mut raw);
    raw.answer(TO_PEER.add(1), Syndrome::RnrNak(RnrTimer::new(1))).unwrap();
    assert!(raw.drain().is_empty());
    assert_eq!(numbers(&raw.wait(Duration::from_micros(10))), [(Opcode::ReadRequest, 0), (Opcode::SendOnly, 1)]);
    respond(&mut raw, 0, Opcode::ReadResponseOnly, &[1; 8]).unwrap();
    raw.answer(TO_PEER.add(1), Syndrome::ACK).unwrap();
    assert_eq!((completion(&mut raw).id, completion(&mut raw).id), (1, 2));
    raw.ep.transport.post_send(raw.conn, SendWr::read(3, region.all(), AT, KEY)).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::send(4, vec![1])).unwrap();
    raw.drain();
    raw.answer(TO_PEER.add(3), INVALID).unwrap();
    let seen = [completion(&mut raw), completion(&mut raw)].map(|c| (c.id, c.status));
    assert_eq!(seen, [(3, WcStatus::WrFlushErr), (4, WcStatus::RemInvReqErr)]);
    assert_failed(&mut raw, WcStatus::RemInvReqErr);
    let c = raw.ep.counters();
    assert_eq!((c.req_remote_invalid_request, c.req_cqe_error, c.req_cqe_flush_error), (1, 1, 1));
}

/// Data of READs and requests share the wire by packet; a connection with much to say does not keep others waiting.
#[test]
fn everybody_gets_a_turn() {
    let mut raw = Raw::unmanaged(options(), |_| {}, |_| {});
    let region = raw.ep.transport.register(pattern(256 * 40), all(), ProtectionDomain::DEFAULT).unwrap();
    let other = raw.ep.transport.create_qp(raw.now, options()).unwrap();
    use nacelle_roce::{QpModify::*, Rtr as To, Rts as From, wire::cm::PathMtu};
    let to = To::new(crate::sim::path(0, 1), crate::raw::PEER_QPN, TO_ENDPOINT, PathMtu::Mtu256);
    for step in [Init, Rtr(to), Rts(From::new(TO_PEER))] {
        raw.ep.transport.modify_qp(raw.now, other, step).unwrap();
    }
    read(&mut raw, 0, &region, 0, 256 * 40).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::write(1, vec![1; 256 * 20], AT, KEY)).unwrap();
    raw.ep.transport.post_send(other, SendWr::write(1, vec![2; 256 * 20], AT, KEY)).unwrap();
    let packets = raw.drain();
    assert_eq!(packets.len(), 80);
    // While all three have something to say, each connection has every second packet, and the kinds take turns.
    let kind = |p: &Packet| match p.payload[..] {
        [2, 2, 2, ..] => 'o',
        _ if p.opcode.is_response() => 'd',
        _ => 'r',
    };
    let order: String = packets.iter().map(kind).collect();
    let first: Vec<char> = order[..40].chars().collect();
    assert_eq!(first.iter().filter(|&&k| k == 'o').count(), 20, "{order}");
    assert!(first.windows(2).all(|w| (w[0] == 'o') != (w[1] == 'o')), "{order}");
    let own: String = order.chars().filter(|&k| k != 'o').collect();
    assert!(own.starts_with("drdrdrdrdr"), "{own}");
}
