// SPDX-License-Identifier: Apache-2.0
//! Limits of the transport, on both of their sides.

use crate::raw::{Packet, Raw, TO_ENDPOINT, TO_PEER, options};
use nacelle_roce::{
    Access, ConnectOptions, Event, PostError, RecvWr, SendWr, WcStatus,
    wire::{
        RemoteAddr, Rkey, RocePacket,
        bth::{ImmDt, NakCode, Opcode, Reth, RnrTimer, Syndrome},
        transport::Ext,
    },
};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const AT: u64 = 0x10_0000;
const KEY: Rkey = Rkey(0x77);
/// The longest message (IBTA 9.7.7).
const LONGEST: u32 = 1 << 31;

/// PSNs of packets, counted from where the endpoint began.
fn numbers(packets: &[Packet]) -> Vec<u32> {
    packets.iter().map(|p| p.headers.bth.psn().since(TO_PEER)).collect()
}

/// Those of them that ask for an acknowledgement.
fn asking(packets: &[Packet]) -> Vec<u32> {
    let asking: Vec<Packet> = packets.iter().filter(|p| p.headers.bth.ack_req()).cloned().collect();
    numbers(&asking)
}

fn write(len: usize) -> SendWr {
    SendWr::write(1, vec![0; len], RemoteAddr(AT), KEY)
}

/// An ACK is asked for by the last packet of a message, twice a window, and by the packet that exhausts the window.
#[test]
fn when_an_acknowledgement_is_asked_for() {
    let mut raw = Raw::active(ConnectOptions { window: 8, ..options() });
    raw.ep.transport.post_send(raw.conn, write(1)).unwrap();
    raw.ep.transport.post_send(raw.conn, write(256 * 40)).unwrap();
    let sent = raw.drain();
    assert_eq!((numbers(&sent), asking(&sent)), ((0..8).collect(), vec![0, 4, 7]));
    raw.answer(TO_PEER.add(7), Syndrome::ACK).unwrap();
    let sent = raw.drain();
    assert_eq!((numbers(&sent), asking(&sent)), ((8..16).collect(), vec![11, 15]));
    // After going back the count begins anew.
    raw.answer(TO_PEER.add(9), Syndrome::Nak(NakCode::PsnSequenceError)).unwrap();
    let sent = raw.drain();
    assert_eq!((numbers(&sent), asking(&sent)), ((9..17).collect(), vec![12, 16]));
}

/// Seven RNR retries are without limit, fewer are counted.
#[test]
fn rnr_retries() {
    for (rnr_retry, limit) in [(0, Some(0)), (6, Some(6)), (7, None), (200, None)] {
        let mut raw = Raw::active(ConnectOptions { rnr_retry, ..options() });
        raw.ep.transport.post_send(raw.conn, SendWr::send(1, vec![1])).unwrap();
        let mut tries = 0;
        for _ in 0..300 {
            raw.wait(MS);
            raw.answer(TO_PEER, Syndrome::RnrNak(RnrTimer::new(1))).unwrap();
            match raw.ep.transport.poll_event() {
                None => tries += 1,
                Some(Event::Completion(c)) => {
                    assert_eq!(c.status, WcStatus::RnrRetryExceeded);
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(tries, limit.unwrap_or(300), "{rnr_retry}");
        // What is said while this side waits already does not count, and does not make it wait longer.
        if limit.is_none() {
            raw.answer(TO_PEER, Syndrome::RnrNak(RnrTimer::new(0))).unwrap();
            assert_eq!(raw.wait(MS).len(), 1);
            assert_eq!(raw.ep.counters().retry_rnr_exceeded_err, 0);
        }
    }
}

/// A peer without a receive answers for as long as it has none; in that time more packets are lost than there are retries.
#[test]
fn rnr_naks_restore_the_retries() {
    let mut raw = Raw::active(ConnectOptions { rnr_retry: 7, retry_count: 1, ack_timeout: 10 * MS, ..options() });
    raw.ep.transport.post_send(raw.conn, SendWr::send(1, vec![1])).unwrap();
    assert_eq!(raw.drain().len(), 1);
    for _ in 0..3 {
        assert_eq!(raw.wait(20 * MS).len(), 1, "after a timeout");
        raw.answer(TO_PEER, Syndrome::RnrNak(RnrTimer::new(1))).unwrap();
        assert_eq!(raw.wait(MS).len(), 1, "after the time of the RNR NAK");
        assert_eq!(raw.ep.transport.poll_event(), None);
    }
    assert_eq!(raw.ep.counters().local_ack_timeout_err, 3);
}

/// A longer message than 2^31 bytes is none, though there is memory for it.
#[test]
fn the_longest_message() {
    let invalid = Syndrome::Nak(NakCode::InvalidRequest);
    for (len, fits) in [(LONGEST, true), (LONGEST + 1, false)] {
        let answer = |mut raw: Raw, opcode: Opcode, imm: bool, payload: &[u8]| {
            let rights = Access::REMOTE_WRITE | Access::REMOTE_READ;
            let region = raw.ep.transport.register(vec![0; LONGEST as usize + 1], rights, raw.conn).unwrap();
            raw.ep.transport.post_recv(raw.conn, RecvWr { id: 1, slice: None }).unwrap();
            let reth = Reth::new(region.addr, region.rkey, len);
            let ext = if imm { Ext::RethImm(reth, ImmDt::new(1)) } else { Ext::Reth(reth) };
            raw.send(opcode, TO_ENDPOINT, ext, payload).unwrap();
            let mut buf = vec![0; raw.ep.frame_len()];
            let len = raw.ep.poll_transmit(raw.now, &mut buf).unwrap();
            let Ext::Aeth(aeth) = RocePacket::parse(&buf[..len]).unwrap().headers.ext else { panic!() };
            aeth.syndrome()
        };
        let expected = if fits { Syndrome::ACK } else { invalid };
        assert_eq!(answer(Raw::passive(), Opcode::WriteFirst, false, &[0; 256]), expected);
        assert_eq!(answer(Raw::passive(), Opcode::ReadRequest, false, &[]), expected);
        assert_eq!(answer(Raw::selective(), Opcode::WriteOnlyImm, true, &[0; 256]), expected);
    }
    let mut raw = Raw::active(options());
    raw.ep.transport.post_send(raw.conn, write(LONGEST as usize)).unwrap();
    assert_eq!(raw.ep.transport.post_send(raw.conn, write(LONGEST as usize + 1)), Err(PostError::TooLong));
    assert_eq!(raw.ep.transport.connection(raw.conn).unwrap().sends, 1);
}

/// WRITEs that touch without a common byte do not wait for each other in selective repeat.
#[test]
fn neighbours_do_not_overlap() {
    let at = |offset: u64, len| SendWr::write(1, vec![1; len], RemoteAddr(AT + offset), KEY);
    for (offset, len, waits) in [(0, 100, false), (1, 100, true), (200, 1, false), (199, 1, true)] {
        let mut raw = Raw::selective();
        raw.ep.transport.post_send(raw.conn, at(100, 100)).unwrap();
        raw.ep.transport.post_send(raw.conn, at(offset, len)).unwrap();
        assert_eq!(numbers(&raw.drain()), if waits { vec![0] } else { vec![0, 1] }, "{len} bytes at {offset}");
    }
    // Eight bytes are changed by an atomic, and a READ changes nothing.
    for (offset, waits) in [(92, false), (93, true), (107, true), (108, false)] {
        let mut raw = Raw::selective();
        let to = raw.ep.transport.register(vec![0; 8], Access::LOCAL, None).unwrap();
        raw.ep.transport.post_send(raw.conn, SendWr::cmp_swap(1, to.all(), RemoteAddr(AT + 100), KEY, 0, 1)).unwrap();
        raw.ep.transport.post_send(raw.conn, at(offset, if offset < 100 { 8 } else { 1 })).unwrap();
        assert_eq!(numbers(&raw.drain()), if waits { vec![0] } else { vec![0, 1] }, "at {offset}");
    }
    let mut raw = Raw::selective();
    let to = raw.ep.transport.register(vec![0; 8], Access::LOCAL, None).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::read(1, to.all(), RemoteAddr(AT + 100), KEY)).unwrap();
    raw.ep.transport.post_send(raw.conn, at(100, 8)).unwrap();
    assert_eq!(numbers(&raw.drain()), [0, 1]);
}
