// SPDX-License-Identifier: Apache-2.0
//! Requests and acknowledgements that the application holds back.

use crate::sim::Net;
use nacelle_roce::{
    Access, ConnectOptions, RecvWr, SendWr,
    wire::{RemoteAddr, Rkey, bth::Opcode},
};
use std::time::Duration;

const HELD: Duration = Duration::from_millis(7);

#[test]
fn requests_are_held_and_acknowledgements_are_not() {
    let mut net = Net::new(3, 2);
    let o = ConnectOptions::default();
    let (a, b) = net.connect_with(0, 1, &o, &o, |_, _| {});
    for (node, conn) in [(0, a), (1, b)] {
        let transport = &mut net.ep(node).transport;
        let region = transport.register(vec![0; 16], Access::LOCAL, None).unwrap();
        transport.post_recv(conn, RecvWr { id: 1, slice: Some(region.all()) }).unwrap();
    }
    let begin = net.now;
    net.ep(0).transport.hold(begin, a, begin + HELD);
    net.ep(0).transport.post_send(a, SendWr::send(1, vec![1; 16])).unwrap();
    net.ep(1).transport.post_send(b, SendWr::send(2, vec![2; 16])).unwrap();
    assert!(net.success(0).opcode.is_recv());
    assert!(!net.success(1).opcode.is_recv(), "its message is acknowledged");
    assert!(net.now - begin < HELD);
    assert!(net.success(1).opcode.is_recv());
    assert!(net.now - begin >= HELD && net.now - begin < 2 * HELD, "{:?}", net.now - begin);
    // A time that has passed holds nothing.
    let now = net.now;
    net.success(0);
    net.ep(1).transport.post_recv(b, RecvWr { id: 2, slice: None }).unwrap();
    net.ep(0).transport.hold(now, a, begin);
    net.ep(0).transport.post_send(a, SendWr::send(3, Vec::new())).unwrap();
    assert!(net.success(1).opcode.is_recv());
    assert!(net.now - now < HELD);
}

#[test]
fn a_peer_that_agrees_to_extensions_is_known_by_that() {
    for selective_repeat in [false, true] {
        let mut net = Net::new(4, 2);
        let peer = ConnectOptions { selective_repeat, ..ConnectOptions::default() };
        let (a, b) = net.connect_with(0, 1, &ConnectOptions::default(), &peer, |_, _| {});
        assert_eq!(net.ep(0).transport.connection(a).unwrap().has_record, selective_repeat);
        assert!(net.ep(1).transport.connection(b).unwrap().has_record, "the REQ offers some");
    }
}

#[test]
fn acknowledgements_wait_for_what_follows() {
    let mut net = Net::new(5, 2);
    let o = ConnectOptions::default();
    let (a, b) = net.connect_with(0, 1, &o, &o, |_, _| {});
    net.ep(0).transport.delay_acknowledgements(a, HELD);
    let write = |id, imm: Option<u32>| match imm {
        Some(imm) => SendWr::write_imm(id, Vec::new(), RemoteAddr(0), Rkey(0), imm),
        None => SendWr::write(id, Vec::new(), RemoteAddr(0), Rkey(0)),
    };
    let mut acknowledged_after = |wrs: Vec<SendWr>| {
        let begin = net.now;
        for wr in wrs {
            net.ep(0).transport.post_recv(a, RecvWr { id: 0, slice: None }).unwrap();
            net.ep(1).transport.post_send(b, wr).unwrap();
        }
        net.success(1);
        let waited = net.now - begin;
        net.run(2 * HELD);
        net.nodes.iter_mut().for_each(|node| node.events.clear());
        waited
    };
    // Alone, a SEND or a WRITE waits for the whole time.
    for alone in [SendWr::send(1, Vec::new()), write(2, None)] {
        let waited = acknowledged_after(vec![alone]);
        assert!(waited >= HELD && waited < 2 * HELD, "{waited:?}");
    }
    // What ends by an immediate is acknowledged at once, with all before it.
    assert!(acknowledged_after(vec![write(3, Some(7))]) < HELD);
    assert!(acknowledged_after(vec![write(4, None), write(5, None), write(6, Some(7))]) < HELD);
}

#[test]
fn the_acknowledgement_of_a_message_is_repeated() {
    let mut net = Net::new(6, 2);
    let o = ConnectOptions::default();
    let (a, b) = net.connect_with(0, 1, &o, &o, |_, _| {});
    for (delay, times) in [(Duration::ZERO, 1), (HELD, 4)] {
        net.ep(0).transport.delay_acknowledgements(a, delay);
        net.ep(0).transport.post_recv(a, RecvWr { id: 1, slice: None }).unwrap();
        net.log = Some(Vec::new());
        net.ep(1).transport.post_send(b, SendWr::send(1, Vec::new())).unwrap();
        net.run(2 * HELD);
        let acknowledged =
            net.sent(0, |packet| (packet.opcode == Opcode::Acknowledge).then(|| packet.headers.bth.psn()));
        assert_eq!(acknowledged.len(), times, "{delay:?}");
        assert!(acknowledged.windows(2).all(|pair| pair[0] == pair[1]));
        net.nodes.iter_mut().for_each(|node| node.events.clear());
    }
}
