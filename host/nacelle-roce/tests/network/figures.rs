// SPDX-License-Identifier: Apache-2.0
//! Figures: each thing that happens is counted once, where its name says, and nowhere else.

use crate::raw::{self, PEER_QPN, Raw, TO_ENDPOINT, TO_PEER, endpoint, mad, options, req};
use nacelle_roce::{
    Access, Congestion, ConnectOptions, Discard, Event, RecvWr, Region, SendWr, Traffic,
    wire::{
        Ecn, Psn, Qpn, RemoteAddr, Rkey, RoceHeaders,
        bth::{Aeth, AtomicAckEth, AtomicEth, Deth, Ieth, NakCode, Opcode, Reth, RnrTimer, Syndrome},
        cm::{self, Message},
        transport::Ext,
    },
};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const AT: RemoteAddr = RemoteAddr(0x10_0000);
const KEY: Rkey = Rkey(0x77);

fn psn(n: u32) -> Psn {
    TO_ENDPOINT.add(n)
}

fn shared(raw: &mut Raw, len: usize) -> Region {
    let rights = Access::REMOTE_READ | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC | Access::REMOTE_INVALIDATE;
    raw.ep.transport.register(vec![7; len], rights, raw.conn).unwrap()
}

fn reth(region: &Region, len: u32) -> Ext {
    Ext::Reth(Reth::new(region.addr, region.rkey, len))
}

/// What the connection has counted: names and values of all counters that are not zero.
fn counted(raw: &Raw) -> Vec<(&'static str, u64)> {
    raw.ep.transport.stats(raw.conn).unwrap().counters.iter().filter(|c| c.1 != 0).collect()
}

/// The same of the endpoint.
fn total(ep: &nacelle_roce::Endpoint) -> Vec<(&'static str, u64)> {
    ep.counters().iter().filter(|c| c.1 != 0).collect()
}

#[test]
fn a_responder_counts() {
    let mut raw = Raw::passive();
    let region = shared(&mut raw, 600);
    let add = Ext::Atomic(AtomicEth::new(region.addr, region.rkey, 1, 0));
    assert_eq!(raw.send(Opcode::SendOnly, psn(0), Ext::None, &[1]), Err(Discard::ReceiverNotReady));
    raw.drain();
    for id in 0..2 {
        raw.ep.transport.post_recv(raw.conn, RecvWr { id, slice: Some(region.slice(0, 8)) }).unwrap();
    }
    raw.send(Opcode::SendOnly, psn(0), Ext::None, &[1, 2, 3]).unwrap();
    raw.drain();
    raw.send(Opcode::WriteFirst, psn(1), reth(&region, 300), &[1; 256]).unwrap();
    raw.send(Opcode::WriteLast, psn(2), Ext::None, &[1; 44]).unwrap();
    raw.drain();
    raw.send(Opcode::ReadRequest, psn(3), reth(&region, 600), &[]).unwrap();
    raw.send(Opcode::FetchAdd, psn(6), add, &[]).unwrap();
    raw.drain();
    assert_eq!(raw.send(Opcode::FetchAdd, psn(6), add, &[]), Err(Discard::Duplicate));
    raw.drain();
    assert_eq!(raw.send(Opcode::SendOnly, psn(9), Ext::None, &[1]), Err(Discard::OutOfSequence));
    raw.drain();
    raw.send(Opcode::SendOnlyInvalidate, psn(7), Ext::Ieth(Ieth::new(region.rkey)), &[]).unwrap();
    raw.drain();
    let expected = [
        ("rx_request", 6),
        ("tx_ack", 3),
        ("tx_read_responses", 3),
        ("tx_atomic_responses", 2),
        ("send_seq_err", 1),
        ("send_rnr_err", 1),
        ("out_of_seq_request", 1),
        ("duplicate_request", 1),
        ("rx_write_requests", 1),
        ("rx_read_requests", 1),
        ("rx_atomic_requests", 1),
        ("rdma_recvs", 2),
        ("rx_invalidations", 1),
    ];
    assert_eq!(counted(&raw), expected);
    let stats = raw.ep.transport.stats(raw.conn).unwrap();
    assert_eq!(stats.rx_payload, 303, "accepted bytes");
    assert_eq!(stats.rx_requests, Traffic { packets: 9, payload: 305 }, "what came");
    assert_eq!(stats.tx_responses, Traffic { packets: 10, payload: 600 });
    assert_eq!((stats.rx_packets, stats.tx_packets), (9, 10));
    assert_eq!((stats.tx_requests, stats.rx_responses), Default::default());
    // Ethernet 14, IPv4 20, UDP 8, BTH 12, AETH 4, atomic 8, ICRC 4: 62 and 70 bytes, 58 in the middle of a READ.
    assert_eq!(stats.tx_bytes, 5 * 62 + 2 * 70 + (62 + 256) + (58 + 256) + (62 + 88));
}

#[test]
fn a_requester_counts() {
    let mut raw = Raw::active(options());
    let to = raw.ep.transport.register(vec![0; 600], Access::LOCAL, None).unwrap();
    for wr in [
        SendWr::send(0, vec![0; 300]),
        SendWr::send_invalidate(1, vec![0; 3], KEY),
        SendWr::write(2, vec![0; 5], AT, KEY),
        SendWr::read(3, to.slice(0, 300), AT, KEY),
        SendWr::fetch_add(4, to.slice(0, 8), AT, KEY, 1),
        SendWr::cmp_swap(5, to.slice(0, 8), AT, KEY, 1, 2),
    ] {
        raw.ep.transport.post_send(raw.conn, wr).unwrap();
    }
    assert_eq!(raw.drain().len(), 7);
    raw.answer(TO_PEER, Syndrome::ACK).unwrap();
    raw.answer(TO_PEER.add(1), Syndrome::Nak(NakCode::PsnSequenceError)).unwrap();
    assert_eq!(raw.drain().len(), 6);
    raw.answer(TO_PEER.add(2), Syndrome::RnrNak(RnrTimer::new(1))).unwrap();
    assert_eq!(raw.wait(MS).len(), 5);
    assert_eq!(raw.wait(MS * 8).len(), 5, "an ACK timeout");
    raw.answer(TO_PEER.add(3), Syndrome::ACK).unwrap();
    let aeth = Aeth::new(Syndrome::ACK, 0);
    raw.send(Opcode::ReadResponseFirst, TO_PEER.add(4), Ext::Aeth(aeth), &[1; 256]).unwrap();
    raw.send(Opcode::ReadResponseLast, TO_PEER.add(5), Ext::Aeth(aeth), &[1; 44]).unwrap();
    let atomic = |raw: &mut Raw, n| {
        raw.send(Opcode::AtomicAcknowledge, TO_PEER.add(n), Ext::AethAtomic(aeth, AtomicAckEth::new(1)), &[])
    };
    // The first atomic's response is lost; the second one's implies that.
    assert_eq!(atomic(&mut raw, 7), Err(Discard::OutOfSequence));
    assert_eq!(raw.drain().len(), 2);
    atomic(&mut raw, 6).unwrap();
    atomic(&mut raw, 7).unwrap();
    let expected = [
        ("tx_request", 25),
        ("rx_ack", 2),
        ("rx_read_responses", 2),
        ("rx_atomic_responses", 2),
        ("packet_seq_err", 1),
        ("rnr_nak_retry_err", 1),
        ("implied_nak_seq_err", 1),
        ("retransmitted", 18),
        ("local_ack_timeout_err", 1),
        ("rdma_sends", 2),
        ("rdma_writes", 1),
        ("rdma_reads", 1),
        ("rdma_atomics", 2),
    ];
    assert_eq!(counted(&raw), expected);
    let stats = raw.ep.transport.stats(raw.conn).unwrap();
    assert_eq!(stats.rx_payload, 300 + 16);
    assert_eq!(stats.rx_responses, Traffic { packets: 9, payload: 300 });
    let payload = 300 + 3 + 5 + (44 + 3 + 5) + (3 + 5) + (3 + 5);
    assert_eq!(stats.tx_requests, Traffic { packets: 25, payload });
    assert_eq!((stats.tx_responses, stats.rx_requests), Default::default());
    // Each of the six is complete.
    assert_eq!(std::iter::from_fn(|| raw.ep.transport.poll_event()).count(), 6);
}

/// A failure is counted by its cause, with what it costs: the work request that it ends, and those that are flushed.
#[test]
fn failures_are_counted_by_their_cause() {
    // Of the requester, by what the peer answers.
    for (syndrome, expected) in [
        (Syndrome::Nak(NakCode::RemoteAccessError), [("rx_nak", 1), ("req_remote_access_errors", 1)]),
        (Syndrome::Nak(NakCode::RemoteOperationalError), [("rx_nak", 1), ("req_remote_operational_errors", 1)]),
        (Syndrome::Nak(NakCode::InvalidRequest), [("rx_nak", 1), ("req_remote_invalid_request", 1)]),
        (Syndrome::RnrNak(RnrTimer::new(1)), [("rnr_nak_retry_err", 1), ("retry_rnr_exceeded_err", 1)]),
        (Syndrome::Nak(NakCode::PsnSequenceError), [("packet_seq_err", 1), ("retry_exceeded_err", 1)]),
    ] {
        let mut raw = Raw::active(ConnectOptions { retry_count: 0, rnr_retry: 0, ..options() });
        raw.ep.transport.post_recv(raw.conn, RecvWr { id: 9, slice: None }).unwrap();
        for id in 0..3 {
            raw.ep.transport.post_send(raw.conn, SendWr::send(id, vec![1])).unwrap();
        }
        raw.drain();
        raw.answer(TO_PEER, syndrome).unwrap();
        let mut all: Vec<_> = expected.into_iter().collect();
        all.extend([("tx_request", 3), ("rdma_sends", 3)]);
        all.extend([("req_cqe_error", 1), ("req_cqe_flush_error", 2), ("resp_cqe_flush_error", 1)]);
        all.sort_unstable();
        let mut seen = counted(&raw);
        seen.sort_unstable();
        assert_eq!(seen, all, "{syndrome:?}");
    }
    // A malformed answer.
    let mut raw = Raw::active(options());
    let to = raw.ep.transport.register(vec![0; 8], Access::LOCAL, None).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::read(1, to.all(), AT, KEY)).unwrap();
    raw.drain();
    let aeth = Ext::Aeth(Aeth::new(Syndrome::ACK, 0));
    raw.send(Opcode::ReadResponseOnly, TO_PEER, aeth, &[1; 7]).unwrap();
    let expected = [("tx_request", 1), ("rdma_reads", 1), ("req_cqe_error", 1), ("req_bad_response", 1)];
    assert_eq!(counted(&raw), expected);
    // Of the responder, by what is wrong with the request; the NAK is an answer, too.
    let bad = Ext::Reth(Reth::new(AT, KEY, 1));
    for (opcode, ext, len, mine) in [
        (Opcode::WriteOnly, bad, 1, [("resp_cqe_flush_error", 1), ("resp_remote_access_errors", 1)]),
        (Opcode::SendLast, Ext::None, 1, [("resp_cqe_flush_error", 1), ("resp_remote_invalid_requests", 1)]),
        (Opcode::SendOnly, Ext::None, 9, [("resp_cqe_error", 1), ("resp_local_length_error", 1)]),
    ] {
        let mut raw = Raw::passive();
        let inbox = shared(&mut raw, 8);
        raw.ep.transport.post_recv(raw.conn, RecvWr { id: 1, slice: Some(inbox.all()) }).unwrap();
        raw.send(opcode, psn(0), ext, &vec![1; len]).unwrap();
        raw.drain();
        let expected: Vec<_> = [("tx_nak", 1)].into_iter().chain(mine).collect();
        assert_eq!(counted(&raw), expected, "{opcode:?}");
        assert_eq!(raw.ep.transport.stats(raw.conn).unwrap().tx_responses, Traffic { packets: 1, payload: 0 });
    }
    // A READ whose key is gone when its data is due.
    let mut raw = Raw::passive();
    let region = shared(&mut raw, 8);
    raw.send(Opcode::ReadRequest, psn(0), reth(&region, 8), &[]).unwrap();
    assert!(raw.ep.transport.invalidate(region.id));
    raw.drain();
    let expected = [("rx_request", 1), ("tx_nak", 1), ("rx_read_requests", 1), ("resp_remote_access_errors", 1)];
    assert_eq!(counted(&raw), expected);
    assert_eq!(raw.ep.transport.stats(raw.conn).unwrap().tx_responses, Traffic { packets: 1, payload: 0 });
}

/// Congestion notifications are packets of their connection.
#[test]
fn notifications_count() {
    let mut raw = Raw::passive();
    raw.ep.transport.set_congestion(Congestion { np_enable: true, rp_enable: true, ..Congestion::default() });
    let mut marked = raw::headers(raw.qpn, Opcode::WriteOnly, psn(0), Ext::Reth(Reth::new(AT, KEY, 0)));
    marked.bth.set_ack_req(false);
    marked.ip = marked.ip.with_ecn(Ecn::Ce);
    let cnp = RoceHeaders::cnp(&raw::flow(), raw.qpn);
    for headers in [marked, cnp] {
        raw.ep.handle(raw.now, &raw::frame(&headers, &[])).unwrap();
    }
    assert_eq!(raw.drain().len(), 1);
    let expected = [
        ("rx_request", 1),
        ("rx_write_requests", 1),
        ("np_ecn_marked_roce_packets", 1),
        ("np_cnp_sent", 1),
        ("rp_cnp_handled", 1),
    ];
    assert_eq!(counted(&raw), expected);
    let stats = raw.ep.transport.stats(raw.conn).unwrap();
    // A CNP has 16 reserved bytes behind its BTH; the WRITE has a RETH of the same length.
    assert_eq!((stats.rx_packets, stats.rx_bytes, stats.tx_packets, stats.tx_bytes), (2, 2 * 74, 1, 74));
    assert_eq!(stats.tx_responses, Traffic::default(), "it answers no request");
}

/// Frames, and those that end nowhere, each under its reason.
#[test]
fn an_endpoint_counts() {
    let mut ep = endpoint(60);
    let now = nacelle_roce::Instant::from_nanos(1);
    let ext = Ext::Deth(Deth::new(cm::GSI_Q_KEY, Qpn::GSI));
    let good = |opcode, ext| raw::headers(Qpn::GSI, opcode, Psn::new(0), ext);
    let datagram = |q_key| raw::frame(&good(Opcode::UdSendOnly, Ext::Deth(Deth::new(q_key, Qpn::GSI))), &[0; 256]);
    let mut icrc = mad(1, Message::Req(&req(TO_PEER)));
    *icrc.last_mut().unwrap() ^= 1;
    // Three bytes of padding behind no payload. A CRC is affine: the exclusive or of three good frames has a good one.
    let invalidate = Ext::Ieth(Ieth::new(KEY));
    let [a, b, c] = [
        raw::frame(&good(Opcode::SendOnly, Ext::None), &[0; 1]),
        raw::frame(&good(Opcode::SendOnly, Ext::None), &[0; 4]),
        raw::frame(&good(Opcode::SendOnlyInvalidate, invalidate), &[]),
    ];
    let padding = a.iter().zip(b).zip(c).map(|((a, b), c)| a ^ b ^ c).collect();
    let mut other = good(Opcode::UdSendOnly, ext);
    other.bth.p_key.set(0x1234);
    let udp_qp = raw::headers(Qpn::new(9), Opcode::UdSendOnly, Psn::new(0), ext);
    let rtu = Message::Rtu(&cm::Rtu::new(1, 2)).to_mad(1);
    let frames = [
        vec![0; 10],
        icrc,
        padding,
        datagram(cm::GSI_Q_KEY),
        datagram(5),
        raw::frame(&other, &[0; 256]),
        raw::frame(&udp_qp, &[0; 256]),
        raw::frame(&good(Opcode::UdSendOnly, ext), &rtu),
        raw::frame(&raw::headers(PEER_QPN, Opcode::SendOnly, Psn::new(0), Ext::None), &[]),
    ];
    let bytes: u64 = frames.iter().map(|f| f.len() as u64).sum();
    for frame in &frames {
        assert!(ep.handle(now, frame).is_err());
    }
    let expected = [
        ("rx_frames", 9),
        ("rx_bytes", bytes),
        ("discard_malformed", 1),
        ("discard_icrc", 1),
        ("discard_bth", 1),
        ("discard_mad", 1),
        ("discard_p_key", 1),
        ("discard_q_key", 1),
        ("discard_unknown_qp", 2),
        ("discard_cm", 1),
    ];
    assert_eq!(total(&ep), expected);
    assert_eq!(ep.transport.poll_event(), None);
    // A request that is refused: one message each way.
    let ask = mad(1, Message::Req(&req(TO_PEER)));
    ep.handle(now, &ask).unwrap();
    let mut buf = vec![0; ep.frame_len()];
    let len = ep.poll_transmit(now, &mut buf).unwrap();
    assert_eq!(ep.poll_transmit(now, &mut buf), None);
    let c = ep.counters();
    assert_eq!((c.rx_cm, c.tx_cm, c.rx_frames, c.tx_frames), (1, 1, 10, 1));
    assert_eq!((c.rx_bytes, c.tx_bytes), (bytes + ask.len() as u64, len as u64));
    assert_eq!(c.discard_cm, 1);
}

/// When each step of a connection was, and when the last packet of the peer arrived.
#[test]
fn times_of_a_connection() {
    let mut raw = Raw::active(options());
    let begin = raw.now;
    raw.now = begin + MS;
    raw.ep.transport.post_send(raw.conn, SendWr::send(1, vec![1])).unwrap();
    raw.drain();
    raw.now = begin + MS * 2;
    raw.answer(TO_PEER, Syndrome::ACK).unwrap();
    let stats = *raw.ep.transport.stats(raw.conn).unwrap();
    assert_eq!((stats.started, stats.resolved, stats.established), (begin, Some(begin), Some(begin)));
    assert_eq!(stats.last_received, Some(begin + MS * 2));
    assert!(matches!(raw.ep.transport.poll_event(), Some(Event::Completion(_))));
}
