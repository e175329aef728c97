// SPDX-License-Identifier: Apache-2.0
//! The rules of the reliable connection, one by one, against a raw peer.

use crate::raw::{PEER_QPN, Raw, TO_ENDPOINT, TO_PEER, options};
use crate::sim::region_bytes;
use nacelle_roce::{
    Access, Completion, ConnectOptions, Discard, DisconnectReason, Event, PostError, RecvWr, Region, SendOp, SendWr,
    WcOpcode, WcStatus,
    wire::{
        Psn, RemoteAddr, Rkey,
        bth::{AtomicEth, Ieth, ImmDt, NakCode, Opcode, Reth, RnrTimer, Syndrome},
        transport::Ext,
    },
};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const INVALID: Syndrome = Syndrome::Nak(NakCode::InvalidRequest);
const ACCESS: Syndrome = Syndrome::Nak(NakCode::RemoteAccessError);
const SEQUENCE: Syndrome = Syndrome::Nak(NakCode::PsnSequenceError);

fn reth(region: &Region, offset: u64, len: u32) -> Ext {
    Ext::Reth(Reth::new(RemoteAddr(region.addr.0 + offset), region.rkey, len))
}

fn psn(n: u32) -> Psn {
    TO_ENDPOINT.add(n)
}

fn target(raw: &mut Raw, len: usize) -> Region {
    raw.ep.transport.register(vec![0; len], Access::REMOTE_WRITE, Some(raw.conn)).unwrap()
}

fn completion(raw: &mut Raw) -> Completion {
    match raw.ep.transport.poll_event() {
        Some(Event::Completion(c)) => c,
        other => panic!("{other:?}"),
    }
}

/// The connection has failed with this status, after these completions.
fn assert_failed(raw: &mut Raw, status: WcStatus) {
    match raw.ep.transport.poll_event() {
        Some(Event::Disconnected { reason, .. }) => assert_eq!(reason, DisconnectReason::Error(status)),
        other => panic!("{other:?}"),
    }
    let write = SendWr::write(1, Vec::new(), RemoteAddr(0), Rkey(0));
    assert_eq!(raw.ep.transport.post_send(raw.conn, write), Err(PostError::NotConnected));
}

// Responder

#[test]
fn write_of_every_form() {
    let mut raw = Raw::passive();
    let region = target(&mut raw, 1000);
    let data: Vec<u8> = (0..700).map(|i| i as u8).collect();
    // First, middle, last; PSNs wrap in between.
    raw.send(Opcode::WriteFirst, psn(0), reth(&region, 100, 700), &data[..256]).unwrap();
    assert_eq!(raw.one_answer(), (psn(0), Syndrome::ACK, 0));
    raw.send(Opcode::WriteMiddle, psn(1), Ext::None, &data[256..512]).unwrap();
    assert_eq!(raw.one_answer(), (psn(1), Syndrome::ACK, 0));
    raw.send(Opcode::WriteLast, psn(2), Ext::None, &data[512..]).unwrap();
    assert_eq!(raw.one_answer(), (psn(2), Syndrome::ACK, 1));
    assert_eq!(psn(2).get(), 0);
    let bytes = region_bytes(&raw.ep, region.id);
    assert!(bytes[..100].iter().chain(&bytes[800..]).all(|&b| b == 0));
    assert_eq!(bytes[100..800], data);

    raw.send(Opcode::WriteOnly, psn(3), reth(&region, 999, 1), &[7]).unwrap();
    assert_eq!(raw.one_answer(), (psn(3), Syndrome::ACK, 2));
    assert_eq!(region_bytes(&raw.ep, region.id)[999], 7);
    assert_eq!(raw.ep.transport.poll_event(), None);
}

#[test]
fn zero_length_write_needs_no_key() {
    let mut raw = Raw::passive();
    let nowhere = Reth::new(RemoteAddr(0), Rkey(0), 0);
    raw.send(Opcode::WriteOnly, psn(0), Ext::Reth(nowhere), &[]).unwrap();
    assert_eq!(raw.one_answer(), (psn(0), Syndrome::ACK, 1));
    raw.ep.transport.post_recv(raw.conn, RecvWr { id: 5, slice: None }).unwrap();
    raw.send(Opcode::WriteOnlyImm, psn(1), Ext::RethImm(nowhere, ImmDt::new(9)), &[]).unwrap();
    assert_eq!(raw.one_answer(), (psn(1), Syndrome::ACK, 2));
    let c = completion(&mut raw);
    assert_eq!((c.id, c.opcode, c.imm, c.byte_len), (5, WcOpcode::RecvWrite, Some(9), 0));
}

#[test]
fn missing_packet_is_asked_for_once() {
    let mut raw = Raw::passive();
    let region = target(&mut raw, 1000);
    let one = |n| (Opcode::WriteOnly, psn(n), reth(&region, u64::from(n), 1));
    let send = |raw: &mut Raw, n| {
        let (o, p, e) = one(n);
        raw.send(o, p, e, &[n as u8 + 1])
    };
    send(&mut raw, 0).unwrap();
    assert_eq!(raw.one_answer(), (psn(0), Syndrome::ACK, 1));
    assert_eq!(send(&mut raw, 2), Err(Discard::OutOfSequence));
    assert_eq!(raw.one_answer(), (psn(1), SEQUENCE, 1));
    assert_eq!(send(&mut raw, 3), Err(Discard::OutOfSequence));
    assert!(raw.drain().is_empty(), "a second NAK for the same packet");
    assert_eq!(region_bytes(&raw.ep, region.id)[..4], [1, 0, 0, 0]);
    for n in 1..4 {
        send(&mut raw, n).unwrap();
        assert_eq!(raw.one_answer(), (psn(n), Syndrome::ACK, n + 1));
    }
    assert_eq!(send(&mut raw, 9), Err(Discard::OutOfSequence));
    assert_eq!(raw.one_answer(), (psn(4), SEQUENCE, 4));
}

#[test]
fn duplicate_is_acknowledged_and_not_executed() {
    let mut raw = Raw::passive();
    let region = target(&mut raw, 8);
    raw.send(Opcode::WriteOnly, psn(0), reth(&region, 0, 1), &[1]).unwrap();
    raw.send(Opcode::WriteOnly, psn(1), reth(&region, 0, 1), &[2]).unwrap();
    assert_eq!(raw.one_answer(), (psn(1), Syndrome::ACK, 2));
    assert_eq!(raw.send(Opcode::WriteOnly, psn(0), reth(&region, 0, 1), &[3]), Err(Discard::Duplicate));
    assert_eq!(raw.one_answer(), (psn(1), Syndrome::ACK, 2), "the newest PSN");
    assert_eq!(region_bytes(&raw.ep, region.id)[0], 2);
    // Half the circle back is still a duplicate, one further is ahead.
    assert_eq!(raw.send(Opcode::SendOnly, psn(2).sub(1 << 23), Ext::None, &[]), Err(Discard::Duplicate));
    assert_eq!(raw.send(Opcode::SendOnly, psn(1).sub(1 << 23), Ext::None, &[]), Err(Discard::OutOfSequence));
}

#[test]
fn a_waiting_nak_is_not_lost_to_a_duplicate() {
    let mut raw = Raw::passive();
    let region = target(&mut raw, 8);
    raw.send(Opcode::WriteOnly, psn(0), reth(&region, 0, 1), &[1]).unwrap();
    raw.drain();
    let _ = raw.send(Opcode::WriteOnly, psn(2), reth(&region, 0, 1), &[1]);
    let _ = raw.send(Opcode::WriteOnly, psn(0), reth(&region, 0, 1), &[1]);
    assert_eq!(raw.one_answer(), (psn(1), SEQUENCE, 1));
}

#[test]
fn send_fills_receives_in_order() {
    let mut raw = Raw::passive();
    let region = raw.ep.transport.register(vec![0; 2000], Access::LOCAL, None).unwrap();
    raw.ep.transport.post_recv(raw.conn, RecvWr { id: 1, slice: Some(region.slice(10, 300)) }).unwrap();
    raw.ep.transport.post_recv(raw.conn, RecvWr { id: 2, slice: Some(region.slice(1000, 5)) }).unwrap();
    raw.send(Opcode::SendFirst, psn(0), Ext::None, &[1; 256]).unwrap();
    raw.send(Opcode::SendLastImm, psn(1), Ext::Imm(ImmDt::new(0xabcd)), &[2; 44]).unwrap();
    raw.send(Opcode::SendOnly, psn(2), Ext::None, &[3; 5]).unwrap();
    assert_eq!(raw.one_answer(), (psn(2), Syndrome::ACK, 2), "one ACK for what came before it was sent");
    let c = completion(&mut raw);
    assert_eq!((c.id, c.byte_len, c.imm), (1, 300, Some(0xabcd)));
    let c = completion(&mut raw);
    assert_eq!((c.id, c.byte_len, c.imm), (2, 5, None));
    let bytes = region_bytes(&raw.ep, region.id);
    assert_eq!(bytes[9..11], [0, 1]);
    assert_eq!(bytes[265..267], [1, 2]);
    assert_eq!(bytes[309..311], [2, 0]);
    assert_eq!(bytes[999..1006], [0, 3, 3, 3, 3, 3, 0]);
}

#[test]
fn receiver_not_ready() {
    let mut raw = Raw::passive_with(ConnectOptions { rnr_timer: RnrTimer::new(14), ..options() }, |_, _| {});
    let region = target(&mut raw, 8);
    assert_eq!(raw.send(Opcode::SendOnly, psn(0), Ext::None, &[1]), Err(Discard::ReceiverNotReady));
    assert_eq!(raw.one_answer(), (psn(0), Syndrome::RnrNak(RnrTimer::new(14)), 0));
    // What follows is dropped without a word.
    assert_eq!(raw.send(Opcode::SendOnly, psn(1), Ext::None, &[2]), Err(Discard::OutOfSequence));
    assert!(raw.drain().is_empty());
    raw.ep.transport.post_recv(raw.conn, RecvWr { id: 1, slice: Some(region.all()) }).unwrap();
    raw.send(Opcode::SendOnly, psn(0), Ext::None, &[1]).unwrap();
    assert_eq!(raw.one_answer(), (psn(0), Syndrome::ACK, 1));
    assert_eq!(completion(&mut raw).byte_len, 1);

    // A WRITE with immediate has no effect either as long as it has no receive.
    let Ext::Reth(place) = reth(&region, 4, 1) else { unreachable!() };
    let imm = Ext::RethImm(place, ImmDt::new(1));
    assert_eq!(raw.send(Opcode::WriteOnlyImm, psn(1), imm, &[9]), Err(Discard::ReceiverNotReady));
    assert_eq!(raw.one_answer(), (psn(1), Syndrome::RnrNak(RnrTimer::new(14)), 1));
    assert_eq!(region_bytes(&raw.ep, region.id)[4], 0);
}

#[test]
fn wrong_key_bounds_rights_and_owner() {
    let refused = |place: &dyn Fn(&mut Raw) -> Ext| {
        let mut raw = Raw::passive();
        let guard = target(&mut raw, 100);
        let ext = place(&mut raw);
        assert_eq!(raw.send(Opcode::WriteOnly, psn(0), ext, &[0xff; 10]), Ok(()));
        assert_eq!(raw.one_answer(), (psn(0), ACCESS, 0));
        assert_failed(&mut raw, WcStatus::LocAccessErr);
        assert_eq!(region_bytes(&raw.ep, guard.id), [0; 100]);
        // From now on silence.
        assert_eq!(raw.send(Opcode::SendOnly, psn(1), Ext::None, &[]), Err(Discard::QpError));
        assert_eq!(raw.ep.counters().resp_remote_access_errors, 1);
    };
    refused(&|raw| {
        let r = target(raw, 100);
        Ext::Reth(Reth::new(r.addr, Rkey(r.rkey.0 ^ 1), 10))
    });
    refused(&|raw| {
        let r = target(raw, 100);
        reth(&r, 91, 10)
    });
    refused(&|raw| {
        let r = target(raw, 100);
        Ext::Reth(Reth::new(RemoteAddr(r.addr.0 - 1), r.rkey, 10))
    });
    refused(&|raw| {
        let r = target(raw, 100);
        Ext::Reth(Reth::new(RemoteAddr(u64::MAX - 4), r.rkey, 10))
    });
    refused(&|raw| {
        let r = raw.ep.transport.register(vec![0; 100], Access::REMOTE_READ, Some(raw.conn)).unwrap();
        reth(&r, 0, 10)
    });
    refused(&|raw| {
        let r = raw.ep.transport.register(vec![0; 100], Access::REMOTE_WRITE, None).unwrap();
        reth(&r, 0, 10)
    });
    refused(&|raw| {
        let now = raw.now;
        let other = raw.ep.connect(now, [10, 0, 0, 77], 1, ConnectOptions::default()).unwrap();
        raw.drain();
        let r = raw.ep.transport.register(vec![0; 100], Access::REMOTE_WRITE, Some(other)).unwrap();
        reth(&r, 0, 10)
    });
    refused(&|raw| {
        let r = target(raw, 100);
        raw.ep.transport.deregister(r.id).unwrap();
        reth(&r, 0, 10)
    });
}

/// The whole message must fit; its first packet alone would.
#[test]
fn bounds_are_those_of_the_message() {
    for (len, fits) in [(600, true), (601, false)] {
        let mut raw = Raw::passive();
        let region = target(&mut raw, 600);
        raw.send(Opcode::WriteFirst, psn(0), reth(&region, 0, len), &[1; 256]).unwrap();
        let (at, syndrome, _) = raw.one_answer();
        assert_eq!((at, syndrome), (psn(0), if fits { Syndrome::ACK } else { ACCESS }));
        assert_eq!(region_bytes(&raw.ep, region.id)[0], u8::from(fits));
    }
}

#[test]
fn a_region_that_goes_away_under_a_message() {
    let mut raw = Raw::passive();
    let region = target(&mut raw, 600);
    raw.send(Opcode::WriteFirst, psn(0), reth(&region, 0, 600), &[1; 256]).unwrap();
    raw.drain();
    assert_eq!(raw.ep.transport.deregister(region.id).unwrap().into_vec().unwrap()[255..257], [1, 0]);
    raw.send(Opcode::WriteMiddle, psn(1), Ext::None, &[1; 256]).unwrap();
    assert_eq!(raw.one_answer(), (psn(1), ACCESS, 0));
    assert_failed(&mut raw, WcStatus::LocAccessErr);
}

#[test]
fn invalid_requests() {
    let refused = |prefix: &[(Opcode, usize)], opcode: Opcode, ext: Option<&dyn Fn(&Region) -> Ext>, len: usize| {
        let mut raw = Raw::passive();
        let region = target(&mut raw, 4096);
        let recv = raw.ep.transport.register(vec![0; 4096], Access::LOCAL, None).unwrap();
        raw.ep.transport.post_recv(raw.conn, RecvWr { id: 1, slice: Some(recv.all()) }).unwrap();
        let default = |o: Opcode, len: usize| match o.ext() {
            nacelle_roce::wire::bth::ExtKind::Reth => reth(&region, 0, len as u32),
            _ => Ext::None,
        };
        let mut n = 0;
        for &(o, len) in prefix {
            raw.send(o, psn(n), default(o, 1024), &vec![0; len]).unwrap();
            n += 1;
        }
        raw.drain();
        let ext = ext.map_or_else(|| default(opcode, len), |ext| ext(&region));
        assert_eq!(raw.send(opcode, psn(n), ext, &vec![1; len]), Ok(()), "{opcode:?}");
        let (at, syndrome, _) = raw.one_answer();
        assert_eq!((at, syndrome), (psn(n), INVALID), "{prefix:?} {opcode:?} {len}");
        let flushed = completion(&mut raw);
        assert_eq!((flushed.id, flushed.status), (1, WcStatus::WrFlushErr));
        assert_failed(&mut raw, WcStatus::LocQpOpErr);
        assert!(region_bytes(&raw.ep, region.id).iter().all(|&b| b == 0));
    };
    use Opcode::*;
    // Opcode sequence.
    refused(&[], SendMiddle, None, 256);
    refused(&[], SendLast, None, 1);
    refused(&[], WriteMiddle, None, 256);
    refused(&[], WriteLast, None, 1);
    refused(&[(SendFirst, 256)], SendFirst, None, 256);
    refused(&[(SendFirst, 256)], SendOnly, None, 1);
    refused(&[(SendFirst, 256)], WriteLast, None, 1);
    refused(&[(WriteFirst, 256)], SendLast, None, 1);
    refused(&[(WriteFirst, 256)], WriteOnly, None, 1);
    // Packet length against path MTU.
    refused(&[], SendFirst, None, 255);
    refused(&[(SendFirst, 256)], SendMiddle, None, 100);
    refused(&[(SendFirst, 256)], SendLast, None, 0);
    refused(&[], SendOnly, None, 257);
    // Packet length against DMA length.
    refused(&[], WriteOnly, Some(&|r| reth(r, 0, 2)), 1);
    refused(&[], WriteOnly, Some(&|r| reth(r, 0, 0)), 1);
    refused(&[], WriteFirst, Some(&|r| reth(r, 0, 256)), 256);
    refused(&[], WriteFirst, Some(&|r| reth(r, 0, u32::MAX)), 256);
    refused(&[(WriteFirst, 256), (WriteMiddle, 256)], WriteLast, None, 256);
    refused(&[(WriteFirst, 256), (WriteMiddle, 256), (WriteMiddle, 256)], WriteMiddle, None, 256);
    // READ and atomics inside of another message, with payload, or misaligned.
    refused(&[], ReadRequest, None, 1);
    refused(&[], ReadRequest, Some(&|r| reth(r, 0, u32::MAX)), 0);
    refused(&[(SendFirst, 256)], ReadRequest, None, 0);
    let atomic = |_: &Region| Ext::Atomic(AtomicEth::new(RemoteAddr(4), Rkey(0), 0, 0));
    refused(&[], FetchAdd, Some(&atomic), 0);
    refused(&[], CmpSwap, Some(&atomic), 0);
    refused(&[], FetchAdd, Some(&atomic), 4);
    refused(&[(WriteFirst, 256)], CmpSwap, Some(&atomic), 0);
}

/// A request that is wrong in several ways is refused for the first of them: sequence of opcodes, a receive, length of the packet, key
/// and bounds, length of the message (IBTA 9.7.4.1).
#[test]
fn checks_have_an_order() {
    let answer = |receives: bool, opcode: Opcode, ext: &dyn Fn(&Region) -> Ext, len: usize| {
        let mut raw = Raw::passive();
        let region = target(&mut raw, 4096);
        if receives {
            raw.ep.transport.post_recv(raw.conn, RecvWr { id: 1, slice: None }).unwrap();
        }
        let ext = ext(&region);
        let _ = raw.send(opcode, psn(0), ext, &vec![1; len]);
        assert_eq!(region_bytes(&raw.ep, region.id), [0; 4096]);
        raw.one_answer().1
    };
    use Opcode::*;
    let rnr = Syndrome::RnrNak(options().rnr_timer);
    let with_imm = |reth: Ext| match reth {
        Ext::Reth(reth) => Ext::RethImm(reth, ImmDt::new(1)),
        other => other,
    };
    let nobodys = |_: &Region| Ext::Ieth(Ieth::new(Rkey(77)));
    assert_eq!(answer(false, SendMiddle, &|_| Ext::None, 1), INVALID);
    assert_eq!(answer(false, SendFirst, &|_| Ext::None, 1), rnr);
    assert_eq!(answer(false, SendOnlyInvalidate, &nobodys, 300), rnr);
    assert_eq!(answer(true, SendOnlyInvalidate, &nobodys, 300), INVALID);
    // Longer than the receive, too.
    assert_eq!(answer(true, SendOnlyInvalidate, &nobodys, 10), ACCESS);
    assert_eq!(answer(false, WriteOnlyImm, &|r| with_imm(reth(r, 0, u32::MAX)), 300), rnr);
    assert_eq!(answer(true, WriteOnlyImm, &|r| with_imm(reth(r, 4096, 300)), 300), INVALID);
    assert_eq!(answer(true, WriteOnly, &|r| reth(r, 4096, u32::MAX), 256), INVALID);
    // Outside of the region, and of another length than announced.
    assert_eq!(answer(true, WriteOnly, &|r| reth(r, 0, 1 << 20), 64), ACCESS);
    assert_eq!(answer(true, WriteFirst, &|r| reth(r, 4096, 200), 256), ACCESS);
    assert_eq!(answer(true, WriteOnly, &|r| reth(r, 0, 65), 64), INVALID);

    // Within a WRITE: its key is gone, and the packet is too long.
    for (opcode, len, revoked, expected) in
        [(WriteLast, 257, true, INVALID), (WriteLast, 250, true, ACCESS), (WriteLast, 250, false, INVALID)]
    {
        let mut raw = Raw::passive();
        let region = target(&mut raw, 4096);
        raw.send(WriteFirst, psn(0), reth(&region, 0, 300), &[1; 256]).unwrap();
        raw.drain();
        if revoked {
            raw.ep.transport.invalidate(region.id);
        }
        raw.send(opcode, psn(1), Ext::None, &vec![1; len]).unwrap();
        assert_eq!(raw.one_answer(), (psn(1), expected, 0), "{opcode:?} {len} {revoked}");
    }
}

#[test]
fn message_longer_than_its_receive() {
    let mut raw = Raw::passive();
    let recv = raw.ep.transport.register(vec![0; 1000], Access::LOCAL, None).unwrap();
    raw.ep.transport.post_recv(raw.conn, RecvWr { id: 1, slice: Some(recv.slice(0, 300)) }).unwrap();
    raw.ep.transport.post_recv(raw.conn, RecvWr { id: 2, slice: None }).unwrap();
    raw.send(Opcode::SendFirst, psn(0), Ext::None, &[1; 256]).unwrap();
    raw.drain();
    raw.send(Opcode::SendLast, psn(1), Ext::None, &[1; 45]).unwrap();
    assert_eq!(raw.one_answer(), (psn(1), INVALID, 0));
    assert_eq!(completion(&mut raw).status, WcStatus::LocLenErr);
    assert_eq!(completion(&mut raw).status, WcStatus::WrFlushErr);
    assert_failed(&mut raw, WcStatus::LocLenErr);
    assert_eq!(region_bytes(&raw.ep, recv.id)[256..], [0; 744]);
}

#[test]
fn packets_that_are_nobodys() {
    let mut raw = Raw::passive();
    let good = crate::raw::headers(raw.qpn, Opcode::SendOnly, psn(0), Ext::None);
    let mut send = |change: &dyn Fn(&mut nacelle_roce::wire::RoceHeaders)| {
        let mut h = good;
        change(&mut h);
        raw.ep.handle(raw.now, &crate::raw::frame(&h, &[]))
    };
    use nacelle_roce::wire::{Qpn, bth::Bth, ipv4::Ipv4Header};
    let stranger = Ipv4Header::new([10, 0, 0, 99].into(), [10, 0, 0, 1].into(), 17);
    let elsewhere = Ipv4Header::new([10, 0, 0, 2].into(), [10, 0, 0, 99].into(), 17);
    assert_eq!(send(&|h| h.eth.dst.0[5] ^= 1), Err(Discard::NotForUs));
    assert_eq!(send(&|h| h.ip = elsewhere), Err(Discard::NotForUs));
    assert_eq!(send(&|h| h.ip = stranger), Err(Discard::WrongPeer));
    assert_eq!(send(&|h| h.bth.p_key.set(0x8001)), Err(Discard::PKey));
    assert_eq!(send(&|h| h.bth = Bth::new(Opcode::SendOnly, Qpn::new(99), psn(0))), Err(Discard::UnknownQp));
    // A limited member of the partition, either migration state, any type of service and source port.
    assert_eq!(send(&|h| h.bth.p_key.set(0x7fff)), Err(Discard::ReceiverNotReady));
    assert_eq!(send(&|h| h.bth.set_mig_req(false)), Err(Discard::ReceiverNotReady));
    assert_eq!(send(&|h| h.ip.tos = 2), Err(Discard::ReceiverNotReady));
    assert_eq!(send(&|h| h.udp.src_port.set(1)), Err(Discard::ReceiverNotReady));
}

// Requester

fn write(id: u64, len: usize) -> SendWr {
    SendWr::write(id, vec![id as u8; len], RemoteAddr(0x1000), Rkey(0x77))
}

fn numbers(packets: &[crate::raw::Packet]) -> Vec<u32> {
    packets.iter().map(|p| p.headers.bth.psn().since(TO_PEER)).collect()
}

#[test]
fn packet_forms_sent() {
    let mut raw = Raw::active(options());
    let forms = |raw: &mut Raw, op, len| {
        let wr = SendWr { id: 1, op, data: vec![5; len].into(), solicited: true, signaled: false, fence: false };
        raw.ep.transport.post_send(raw.conn, wr).unwrap();
        let packets = raw.drain();
        let (last, others) = packets.split_last().unwrap();
        assert!(last.headers.bth.solicited() && last.headers.bth.ack_req());
        assert!(others.iter().all(|p| !p.headers.bth.solicited() && p.payload.len() == 256));
        assert!(packets.iter().all(|p| p.headers.bth.dest_qp() == PEER_QPN && p.headers.bth.mig_req()));
        assert_eq!(packets.iter().map(|p| p.payload.len()).sum::<usize>(), len);
        let last = last.headers.bth.psn();
        raw.answer(last, Syndrome::ACK).unwrap();
        packets.into_iter().map(|p| (p.opcode, p.headers.ext)).collect::<Vec<_>>()
    };
    use Opcode::*;
    let imm = Some(0x0102_0304);
    let dt = ImmDt::new(0x0102_0304);
    let (addr, rkey) = (RemoteAddr(0x1234_5678_9abc), Rkey(0x77));
    let place = |len| Reth::new(addr, rkey, len);
    let send = |imm| SendOp::Send { imm };
    let to = |imm| SendOp::Write { addr, rkey, imm };
    assert_eq!(forms(&mut raw, send(None), 0), [(SendOnly, Ext::None)]);
    assert_eq!(forms(&mut raw, send(None), 256), [(SendOnly, Ext::None)]);
    assert_eq!(forms(&mut raw, send(imm), 1), [(SendOnlyImm, Ext::Imm(dt))]);
    assert_eq!(forms(&mut raw, send(None), 257), [(SendFirst, Ext::None), (SendLast, Ext::None)]);
    assert_eq!(
        forms(&mut raw, send(imm), 513),
        [(SendFirst, Ext::None), (SendMiddle, Ext::None), (SendLastImm, Ext::Imm(dt))]
    );
    assert_eq!(forms(&mut raw, to(None), 0), [(WriteOnly, Ext::Reth(place(0)))]);
    assert_eq!(forms(&mut raw, to(imm), 3), [(WriteOnlyImm, Ext::RethImm(place(3), dt))]);
    assert_eq!(
        forms(&mut raw, to(None), 768),
        [(WriteFirst, Ext::Reth(place(768))), (WriteMiddle, Ext::None), (WriteLast, Ext::None)]
    );
    assert_eq!(forms(&mut raw, to(imm), 512), [(WriteFirst, Ext::Reth(place(512))), (WriteLastImm, Ext::Imm(dt))]);
    assert_eq!(raw.ep.transport.poll_event(), None, "unsignaled");
}

#[test]
fn like_linux_on_the_wire() {
    let mut raw = Raw::active(options());
    for id in 0..3 {
        raw.ep.transport.post_send(raw.conn, write(id, 1)).unwrap();
    }
    let packets = raw.drain();
    let ids: Vec<u16> = packets.iter().map(|p| p.headers.ip.identification.get()).collect();
    assert_eq!((ids[1] - ids[0], ids[2] - ids[1]), (1, 1));
    for p in &packets {
        assert_eq!((p.headers.ip.ttl, p.headers.ip.tos, p.headers.ip.flags_fragment.get()), (64, 0, 0x4000));
        assert_eq!((p.headers.udp.checksum.get(), p.headers.bth.p_key.get()), (0, 0xffff));
        assert!(p.headers.udp.src_port.get() >= 0xc000);
        assert_eq!(p.headers.udp.src_port, packets[0].headers.udp.src_port);
    }
}

#[test]
fn cumulative_acknowledgement() {
    let mut raw = Raw::active(options());
    for id in 0..4 {
        raw.ep.transport.post_send(raw.conn, write(id, 300)).unwrap();
    }
    assert_eq!(numbers(&raw.drain()), [0, 1, 2, 3, 4, 5, 6, 7]);
    raw.answer(TO_PEER.add(4), Syndrome::ACK).unwrap();
    assert_eq!(completion(&mut raw).id, 0);
    assert_eq!(completion(&mut raw).id, 1);
    assert_eq!(raw.ep.transport.poll_event(), None, "half of a message is not all of it");
    // Old, and not yet sent.
    assert_eq!(raw.answer(TO_PEER.add(3), Syndrome::ACK), Err(Discard::StaleAck));
    assert_eq!(raw.answer(TO_PEER.add(8), Syndrome::ACK), Err(Discard::StaleAck));
    assert_eq!(raw.answer(TO_PEER.sub(1), Syndrome::ACK), Err(Discard::StaleAck));
    raw.answer(TO_PEER.add(7), Syndrome::Ack(0)).unwrap();
    assert_eq!((completion(&mut raw).id, completion(&mut raw).byte_len), (2, 300));
    assert!(raw.wait(MS * 1000).is_empty(), "nothing is outstanding");
}

#[test]
fn sequence_nak_goes_back() {
    let mut raw = Raw::active(options());
    for id in 0..4 {
        raw.ep.transport.post_send(raw.conn, write(id, 300)).unwrap();
    }
    raw.drain();
    raw.answer(TO_PEER.add(3), SEQUENCE).unwrap();
    assert_eq!(completion(&mut raw).id, 0);
    let again = raw.drain();
    assert_eq!(numbers(&again), [3, 4, 5, 6, 7]);
    assert_eq!((again[0].opcode, again[0].payload.len()), (Opcode::WriteLast, 44));
    assert_eq!(raw.ep.counters().retransmitted, 5);
    raw.answer(TO_PEER.add(7), Syndrome::ACK).unwrap();
    for id in 1..4 {
        assert_eq!(completion(&mut raw).id, id);
    }
}

/// An acknowledgement of the first sending may overtake the second.
#[test]
fn acknowledgement_while_going_back() {
    let mut raw = Raw::active(ConnectOptions { window: 4, ..options() });
    for id in 0..4 {
        raw.ep.transport.post_send(raw.conn, write(id, 512)).unwrap();
    }
    assert_eq!(numbers(&raw.drain()), [0, 1, 2, 3]);
    raw.answer(TO_PEER, SEQUENCE).unwrap();
    raw.answer(TO_PEER.add(2), Syndrome::ACK).unwrap();
    assert_eq!(completion(&mut raw).id, 0);
    assert_eq!(numbers(&raw.drain()), [3, 4, 5, 6], "not again what has arrived");
}

#[test]
fn the_window_bounds_what_is_in_flight() {
    let mut raw = Raw::active(ConnectOptions { window: 8, ..options() });
    raw.ep.transport.post_send(raw.conn, write(0, 256 * 20)).unwrap();
    let packets = raw.drain();
    assert_eq!(numbers(&packets), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(packets[7].headers.bth.ack_req(), "an exhausted window asks for an ACK");
    raw.answer(TO_PEER.add(3), Syndrome::ACK).unwrap();
    assert_eq!(numbers(&raw.drain()), [8, 9, 10, 11]);
}

#[test]
fn timeout_backs_off_and_gives_up() {
    let mut raw = Raw::active(options()); // 1 ms, up to 8 ms, 3 retries
    raw.ep.transport.post_send(raw.conn, write(0, 300)).unwrap();
    raw.ep.transport.post_send(raw.conn, write(1, 1)).unwrap();
    assert_eq!(numbers(&raw.drain()), [0, 1, 2]);
    for ms in [1, 2, 4] {
        assert!(raw.wait(MS * ms - Duration::from_nanos(1)).is_empty(), "{ms}");
        assert_eq!(numbers(&raw.wait(Duration::from_nanos(1))), [0, 1, 2], "{ms}");
        // The deadline is there for the caller to sleep until.
        let next = raw.ep.next_deadline().unwrap();
        assert!(next > raw.now && next <= raw.now + MS * ms * 2);
    }
    assert!(raw.wait(MS * 8 - Duration::from_nanos(1)).is_empty());
    assert_eq!(raw.ep.transport.poll_event(), None);
    let dreq = raw.wait(Duration::from_nanos(1));
    let c = completion(&mut raw);
    assert_eq!((c.id, c.status, c.byte_len), (0, WcStatus::RetryExceeded, 0));
    let c = completion(&mut raw);
    assert_eq!((c.id, c.status), (1, WcStatus::WrFlushErr));
    assert_failed(&mut raw, WcStatus::RetryExceeded);
    assert_eq!(raw.ep.counters().local_ack_timeout_err, 4);
    assert_eq!(raw.ep.counters().retry_exceeded_err, 1);
    // The DREQ is repeated until the peer answers, a limited number of times.
    let mut dreqs = dreq.len();
    for _ in 0..20 {
        dreqs += raw.wait(Duration::from_secs(1)).len();
    }
    assert_eq!(dreqs, 8);
    assert_eq!((raw.ep.transport.connection(raw.conn), raw.ep.next_deadline()), (None, None));
    assert_eq!(raw.ep.transport.poll_event(), None, "one end is enough");
}

#[test]
fn progress_renews_the_retries() {
    let mut raw = Raw::active(options());
    raw.ep.transport.post_send(raw.conn, write(0, 256 * 10)).unwrap();
    raw.drain();
    for n in 0..10 {
        for ms in [1, 2, 4] {
            assert_eq!(numbers(&raw.wait(MS * ms)), (n..10).collect::<Vec<_>>());
        }
        raw.answer(TO_PEER.add(n), Syndrome::ACK).unwrap();
    }
    assert_eq!(completion(&mut raw).status, WcStatus::Success);
}

#[test]
fn repeated_sequence_naks_give_up() {
    let mut raw = Raw::active(options());
    raw.ep.transport.post_send(raw.conn, write(0, 1)).unwrap();
    for _ in 0..4 {
        raw.drain();
        raw.answer(TO_PEER, SEQUENCE).unwrap();
    }
    assert_eq!(completion(&mut raw).status, WcStatus::RetryExceeded);
    assert_failed(&mut raw, WcStatus::RetryExceeded);
}

#[test]
fn receiver_not_ready_waits_and_gives_up() {
    let mut raw = Raw::active(options()); // 2 RNR retries
    raw.ep.transport.post_send(raw.conn, write(0, 256)).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::send(1, vec![1])).unwrap();
    assert_eq!(numbers(&raw.drain()), [0, 1]);
    for _ in 0..2 {
        raw.answer(TO_PEER.add(1), Syndrome::RnrNak(RnrTimer::new(18))).unwrap(); // 5.12 ms
        assert!(raw.drain().is_empty());
        assert!(raw.wait(Duration::from_micros(5119)).is_empty(), "too early, and no ACK timeout meanwhile");
        assert_eq!(numbers(&raw.wait(Duration::from_micros(1))), [1]);
    }
    assert_eq!(completion(&mut raw).id, 0, "an RNR NAK acknowledges what came before");
    raw.answer(TO_PEER.add(1), Syndrome::RnrNak(RnrTimer::new(18))).unwrap();
    let c = completion(&mut raw);
    assert_eq!((c.id, c.status), (1, WcStatus::RnrRetryExceeded));
    assert_failed(&mut raw, WcStatus::RnrRetryExceeded);
}

#[test]
fn fatal_naks() {
    for (code, status) in [
        (NakCode::InvalidRequest, WcStatus::RemInvReqErr),
        (NakCode::RemoteAccessError, WcStatus::RemAccessErr),
        (NakCode::RemoteOperationalError, WcStatus::RemOpErr),
    ] {
        let mut raw = Raw::active(options());
        raw.ep.transport.post_recv(raw.conn, RecvWr { id: 9, slice: None }).unwrap();
        for id in 0..3 {
            raw.ep.transport.post_send(raw.conn, write(id, 1)).unwrap();
        }
        raw.drain();
        raw.answer(TO_PEER.add(1), Syndrome::Nak(code)).unwrap();
        let seen: Vec<_> = (0..4).map(|_| completion(&mut raw)).map(|c| (c.id, c.status)).collect();
        let flushed = WcStatus::WrFlushErr;
        assert_eq!(seen, [(0, WcStatus::Success), (1, status), (2, flushed), (9, flushed)]);
        assert_failed(&mut raw, status);
    }
}

#[test]
fn meaningless_responses_change_nothing() {
    let mut raw = Raw::active(options());
    raw.ep.transport.post_send(raw.conn, write(0, 1)).unwrap();
    raw.drain();
    assert_eq!(raw.answer(TO_PEER, Syndrome::Reserved(0x40)), Err(Discard::UnexpectedResponse));
    let aeth = Ext::Aeth(nacelle_roce::wire::bth::Aeth::new(Syndrome::ACK, 1));
    assert_eq!(raw.send(Opcode::ReadResponseOnly, TO_PEER, aeth, &[1]), Err(Discard::UnexpectedResponse));
    assert_eq!(raw.ep.transport.poll_event(), None);
    raw.answer(TO_PEER, Syndrome::ACK).unwrap();
    assert_eq!(completion(&mut raw).status, WcStatus::Success);
}

#[test]
fn posting_is_checked() {
    let mut raw = Raw::active(ConnectOptions { send_depth: 2, recv_depth: 1, ..options() });
    let region = raw.ep.transport.register(vec![0; 10], Access::LOCAL, None).unwrap();
    let conn = raw.conn;
    let send = |slice| SendWr::send(0, slice);
    assert_eq!(raw.ep.transport.post_send(conn, send(region.slice(5, 6))), Err(PostError::BadSlice));
    assert_eq!(raw.ep.transport.post_send(conn, send(region.slice(usize::MAX, 2))), Err(PostError::BadSlice));
    assert_eq!(
        raw.ep.transport.post_recv(conn, RecvWr { id: 0, slice: Some(region.slice(11, 0)) }),
        Err(PostError::BadSlice)
    );
    raw.ep.transport.post_recv(conn, RecvWr { id: 0, slice: None }).unwrap();
    assert_eq!(raw.ep.transport.post_recv(conn, RecvWr { id: 0, slice: None }), Err(PostError::QueueFull));
    raw.ep.transport.post_send(conn, send(region.slice(10, 0))).unwrap();
    raw.ep.transport.post_send(conn, send(region.all())).unwrap();
    assert_eq!(raw.ep.transport.post_send(conn, send(region.all())), Err(PostError::QueueFull));
    // A region that goes away before its bytes are sent.
    raw.ep.transport.deregister(region.id).unwrap();
    raw.drain();
    let seen: Vec<_> = (0..3).map(|_| completion(&mut raw).status).collect();
    assert!(seen.contains(&WcStatus::LocProtErr) && !seen.contains(&WcStatus::Success), "{seen:?}");
    assert_failed(&mut raw, WcStatus::LocProtErr);
    assert!(raw.ep.transport.region(region.id).is_none());
}

/// Answers go out before this side's own requests: a caller that sees the reply before its ACK fails.
#[test]
fn answers_go_first() {
    let mut raw = Raw::passive();
    let region = target(&mut raw, 8);
    raw.send(Opcode::WriteOnly, psn(0), reth(&region, 0, 1), &[1]).unwrap();
    for id in 0..5 {
        raw.ep.transport.post_send(raw.conn, write(id, 300)).unwrap();
    }
    let packets = raw.drain();
    assert_eq!(packets[0].opcode, Opcode::Acknowledge);
    assert_eq!(packets.len(), 11);
}

#[test]
fn keepalive_finds_a_dead_peer() {
    let mut raw = Raw::active(ConnectOptions { keepalive: Some(MS * 100), ..options() });
    assert!(raw.wait(MS * 99).is_empty());
    let probe = raw.wait(MS);
    assert_eq!((probe.len(), probe[0].opcode, probe[0].payload.len()), (1, Opcode::WriteOnly, 0));
    raw.answer(TO_PEER, Syndrome::ACK).unwrap();
    assert!(raw.wait(MS * 99).is_empty());
    assert_eq!(raw.wait(MS).len(), 1);
    for ms in [1, 2, 4, 8] {
        raw.wait(MS * ms);
    }
    assert_failed(&mut raw, WcStatus::RetryExceeded);
}

#[test]
fn stats_tell_what_happened() {
    let mut raw = Raw::active(options());
    raw.ep.transport.post_send(raw.conn, write(0, 300)).unwrap();
    raw.drain();
    raw.answer(TO_PEER, SEQUENCE).unwrap();
    raw.drain();
    raw.answer(TO_PEER.add(1), Syndrome::ACK).unwrap();
    let info = raw.ep.transport.connection(raw.conn).unwrap();
    let stats = info.stats;
    assert_eq!((stats.tx_packets, stats.counters.retransmitted, stats.counters.packet_seq_err), (4, 2, 1));
    assert_eq!(stats.rx_packets, 2);
    assert_eq!(
        (stats.tx_requests.packets, stats.tx_requests.payload, stats.counters.local_ack_timeout_err),
        (4, 600, 0)
    );
    assert_eq!((stats.rx_responses.packets, stats.rx_requests.packets, stats.tx_responses.packets), (2, 0, 0));
    assert_eq!(stats.rx_bytes, 124);
    assert!(stats.resolved.is_some() && stats.established.is_some());
    assert_eq!(info.remote_qpn, Some(PEER_QPN));
}
