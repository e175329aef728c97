// SPDX-License-Identifier: Apache-2.0
//! Which packets a switch may mark, and when a slow connection asks for acknowledgements.

use crate::raw::{self, Raw, TO_ENDPOINT, options};
use crate::sim::region_bytes;
use nacelle_roce::{
    Access, Congestion, ConnectOptions, RecvWr, SendWr,
    wire::{
        Ecn, RoceHeaders,
        bth::{AtomicEth, Opcode, Reth},
        transport::Ext,
    },
};
use std::time::Duration;

/// What is paced can be marked: requests and data of READs. Short answers are not paced.
#[test]
fn what_is_paced_can_be_marked() {
    for rp_enable in [true, false] {
        let mut raw = Raw::passive();
        raw.ep.transport.set_congestion(Congestion { rp_enable, ..Congestion::default() });
        let rights = Access::REMOTE_READ | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
        let region = raw.ep.transport.register(vec![0; 600], rights, raw.conn).unwrap();
        let whole = Ext::Reth(Reth::new(region.addr, region.rkey, 600));
        let add = Ext::Atomic(AtomicEth::new(region.addr, region.rkey, 1, 0));
        let byte = Ext::Reth(Reth::new(region.addr, region.rkey, 1));
        raw.send(Opcode::ReadRequest, TO_ENDPOINT, whole, &[]).unwrap();
        raw.send(Opcode::FetchAdd, TO_ENDPOINT.add(3), add, &[]).unwrap();
        raw.send(Opcode::WriteOnly, TO_ENDPOINT.add(4), byte, &[1]).unwrap();
        let mut seen: Vec<_> = raw.drain().iter().map(|p| (p.opcode, p.headers.ip.ecn())).collect();
        raw.ep.transport.post_send(raw.conn, SendWr::send(1, vec![1])).unwrap();
        seen.extend(raw.drain().iter().map(|p| (p.opcode, p.headers.ip.ecn())));
        let (paced, not) = (if rp_enable { Ecn::Ect0 } else { Ecn::NotEct }, Ecn::NotEct);
        let expected = [
            (Opcode::ReadResponseFirst, paced),
            (Opcode::ReadResponseMiddle, paced),
            (Opcode::ReadResponseLast, paced),
            (Opcode::AtomicAcknowledge, not),
            (Opcode::Acknowledge, not),
            (Opcode::SendOnly, paced),
        ];
        assert_eq!(seen, expected);
    }
}

/// If half a window takes longer than half of the ACK timeout, every packet asks for its acknowledgement.
#[test]
fn a_slow_connection_asks_for_every_acknowledgement() {
    // At 1 Mb/s a byte takes 8 us; frames count as the longest, 1514 bytes.
    let half_window = 4 / 2 * 1514 * Duration::from_micros(8);
    for (ack_timeout, asks) in [(half_window * 2, false), (half_window * 2 - Duration::from_nanos(2), true)] {
        let mut raw = Raw::active(ConnectOptions { window: 4, ack_timeout, ..options() });
        let slow = Congestion {
            rp_enable: true,
            rate_to_set_on_first_cnp: 1,
            rpg_time_reset: 0,
            rpg_byte_reset: 0,
            ..Congestion::default()
        };
        raw.ep.transport.set_congestion(slow);
        let cnp = raw::frame(&RoceHeaders::cnp(&raw::flow(), raw.qpn), &[]);
        raw.ep.handle(raw.now, &cnp).unwrap();
        raw.ep.transport.post_send(raw.conn, SendWr::send(1, vec![0; 1000])).unwrap();
        let first = raw.drain();
        assert_eq!((first.len(), first[0].headers.bth.ack_req()), (1, asks), "{ack_timeout:?}");
    }
}

/// Short answers of several connections take turns.
#[test]
fn short_answers_take_turns() {
    let mut raw = Raw::passive();
    let (own, theirs) = (raw.conn, raw::second(&mut raw));
    let region =
        raw.ep.transport.register(vec![0; 8], Access::REMOTE_ATOMIC, nacelle_roce::ProtectionDomain::DEFAULT).unwrap();
    let add = Ext::Atomic(AtomicEth::new(region.addr, region.rkey, 1, 0));
    assert!(raw.drain().is_empty());
    for n in 0..3 {
        raw.send(Opcode::FetchAdd, TO_ENDPOINT.add(n), add, &[]).unwrap();
    }
    let second = raw.ep.transport.connection(theirs).unwrap().local_qpn;
    let frame = raw::frame(&raw::headers(second, Opcode::FetchAdd, TO_ENDPOINT, add), &[]);
    raw.ep.handle(raw.now, &frame).unwrap();
    let to: Vec<_> = raw.drain().iter().map(|p| p.headers.bth.dest_qp()).collect();
    let [first, second] = [own, theirs].map(|id| raw.ep.transport.connection(id).unwrap().remote_qpn.unwrap());
    assert_eq!(to, [first, second, first, first]);
    // Nothing is left that would give one of them a turn too many.
    raw.ep.transport.post_recv(own, RecvWr { id: 1, slice: None }).unwrap();
    assert!(raw.drain().is_empty());
    assert_eq!(region_bytes(&raw.ep, region.id), 4u64.to_ne_bytes());
}
