// SPDX-License-Identifier: Apache-2.0
//! Numbers that an endpoint gives out: of queue pairs, ports, regions and domains.

use crate::{
    raw::{self, PEER_QPN, Raw, TO_ENDPOINT, TO_PEER, options},
    sim::{config, ip, mac, path, region_bytes},
};
use nacelle_roce::{
    Access, ConnectOptions, Data, Endpoint, Event, Instant, QpError, QpModify, RecvWr, RegisterError, Rtr, Rts, Scope,
    SendWr, WcOpcode,
    wire::{
        RemoteAddr, Rkey,
        bth::{Opcode, Syndrome},
        cm::PathMtu,
        transport::Ext,
    },
};
use std::collections::HashSet;

const NOW: Instant = Instant::from_nanos(1);

/// A late packet of a queue pair that is gone must not meet its successor.
#[test]
fn a_queue_pair_number_comes_back_last() {
    let mut ep = raw::endpoint(50);
    let mut next = || {
        let id = ep.transport.create_qp(NOW, options()).unwrap();
        let qpn = ep.transport.connection(id).unwrap().local_qpn.get();
        ep.transport.destroy_qp(id).unwrap();
        qpn
    };
    let first = next();
    let mut seen = HashSet::from([first]);
    for _ in 1..4095 {
        let qpn = next();
        assert!((2..1 << 24).contains(&qpn), "{qpn:#x}");
        assert!(seen.insert(qpn), "{qpn:#x} is back after {}", seen.len());
    }
    assert_eq!(next(), first, "all numbers of the place are used");
}

#[test]
fn queue_pairs_of_all_places_are_found() {
    let mut config = config(0, 51);
    config.transport.max_connections = usize::MAX;
    let mut ep = Endpoint::new(config);
    let ids: Vec<_> = (0..4096).map(|_| ep.transport.create_qp(NOW, options()).unwrap()).collect();
    assert_eq!(ep.transport.create_qp(NOW, options()), Err(QpError::TooMany));
    let qpns: HashSet<u32> = ids.iter().map(|&id| ep.transport.connection(id).unwrap().local_qpn.get()).collect();
    assert_eq!(qpns.len(), 4096);
    // A place that is free again can be had at once.
    ep.transport.destroy_qp(ids[7]).unwrap();
    let again = ep.transport.create_qp(NOW, options()).unwrap();
    assert_eq!((ep.transport.connection(ids[7]), ep.transport.connection(again).is_some()), (None, true));
    // A packet finds its queue pair by all of the number.
    let qpn = ep.transport.connection(ids[4095]).unwrap().local_qpn;
    let frame = |qpn| raw::write_from(ip(1).into(), qpn, TO_ENDPOINT);
    use nacelle_roce::{Discard, wire::Qpn};
    assert_eq!(ep.handle(NOW, &frame(qpn)), Err(Discard::WrongPeer));
    assert_eq!(ep.handle(NOW, &frame(Qpn::new(qpn.get() ^ 1 << 12))), Err(Discard::UnknownQp));
}

/// Queue pairs have different UDP source ports, so that a network spreads them over its links; all packets of one have
/// the same, so that they keep their order.
#[test]
fn queue_pairs_differ_by_their_port() {
    let mut ep = raw::endpoint(52);
    let to = Rtr::new(path(0, 1), PEER_QPN, TO_ENDPOINT, PathMtu::Mtu256);
    let mut ports = HashSet::new();
    for _ in 0..64 {
        let id = ep.transport.create_qp(NOW, options()).unwrap();
        for step in [QpModify::Init, QpModify::Rtr(to), QpModify::Rts(Rts::new(TO_PEER))] {
            ep.transport.modify_qp(NOW, id, step).unwrap();
        }
        ep.transport.post_send(id, SendWr::send(1, vec![0; 600])).unwrap();
        let sent: Vec<u16> = raw::drain(&mut ep, NOW).iter().map(|p| p.headers.udp.src_port.get()).collect();
        let qpn = ep.transport.connection(id).unwrap().local_qpn.get();
        let port = 0xc000 | (qpn ^ qpn >> 14) as u16 & 0x3fff;
        assert_eq!(sent, [port; 3]);
        ports.insert(port);
    }
    assert_eq!(ports.len(), 64);
}

#[test]
fn regions_lie_apart() {
    let mut ep = raw::endpoint(53);
    let lengths = [0, 1, 4095, 4096, 4097, 10_000];
    let regions: Vec<_> =
        lengths.iter().map(|&len| ep.transport.register(vec![0; len], Access::LOCAL, None).unwrap()).collect();
    for (here, next) in regions.iter().zip(&regions[1..]) {
        let gap = next.addr.0 - here.addr.0 - here.len as u64;
        assert!((4096..8192).contains(&gap), "{gap} bytes between {here:?} and {next:?}");
        assert_eq!(next.addr.0 % 4096, 0);
    }
    let keys: HashSet<Rkey> = regions.iter().map(|r| r.rkey).collect();
    assert_eq!(keys.len(), lengths.len());
}

#[test]
fn regions_are_bounded() {
    let mut config = config(0, 54);
    config.transport.max_regions = 3;
    let mut ep = Endpoint::new(config);
    let register = |ep: &mut Endpoint, byte| ep.transport.register(vec![byte; 8], Access::LOCAL, None);
    let regions: Vec<_> = (0..3).map(|byte| register(&mut ep, byte).unwrap()).collect();
    assert_eq!(register(&mut ep, 9), Err(RegisterError::TooMany));
    assert_eq!(ep.transport.deregister(regions[1].id).unwrap().into_vec(), Ok(vec![1; 8]));
    // A name that is gone opens nothing, though its place is taken again.
    let again = register(&mut ep, 7).unwrap();
    assert_ne!(again.id, regions[1].id);
    assert!(ep.transport.region(regions[1].id).is_none());
    assert!(ep.transport.region_mut(regions[1].id).is_none());
    assert!(ep.transport.deregister(regions[1].id).is_none() && ep.transport.rekey(regions[1].id).is_none());
    assert!(!ep.transport.invalidate(regions[1].id) && !ep.transport.set_access(regions[1].id, Access::LOCAL));
    assert_eq!(region_bytes(&ep, again.id), [7; 8]);
    assert_eq!(register(&mut ep, 9), Err(RegisterError::TooMany));
}

/// What can be asked of a region, and what it says of itself.
#[test]
fn a_region_and_its_key() {
    let mut ep = raw::endpoint(55);
    let region = ep.transport.register(vec![1, 2, 3], Access::REMOTE_READ, Scope::Local).unwrap();
    assert_eq!(region.all(), region.slice(0, 3));
    ep.transport.region_mut(region.id).unwrap().write(1, &[9]).unwrap();
    assert_eq!(region_bytes(&ep, region.id), [1, 9, 3]);
    assert!(ep.transport.set_access(region.id, Access::REMOTE_WRITE));
    let info = ep.transport.regions().next().unwrap();
    assert_eq!((info.region, info.access, info.scope, info.valid), (region, Access::REMOTE_WRITE, Scope::Local, true));
    assert!(ep.transport.invalidate(region.id));
    assert!(!ep.transport.invalidate(region.id), "it was not valid any more");
    assert!(!ep.transport.regions().next().unwrap().valid);
    let renewed = ep.transport.rekey(region.id).unwrap();
    assert_eq!((renewed.id, renewed.addr, renewed.len), (region.id, region.addr, region.len));
    assert_ne!(renewed.rkey, region.rkey);
    let info = ep.transport.regions().next().unwrap();
    assert_eq!((info.region, info.valid), (renewed, true));
    assert!(ep.transport.invalidate(region.id));
}

#[test]
fn rights_add_up() {
    let (read, write) = (Access::REMOTE_READ, Access::REMOTE_WRITE);
    let both = read | write;
    assert!(both.contains(read) && both.contains(write) && both.contains(both) && both.contains(Access::LOCAL));
    assert!(!both.contains(Access::REMOTE_ATOMIC) && !both.contains(both | Access::REMOTE_ATOMIC));
    assert!(!read.contains(both));
    assert_eq!(both | read, both);
}

#[test]
fn domains_are_numbered() {
    let mut ep = raw::endpoint(56);
    let numbers: Vec<u32> = (0..3).map(|_| ep.transport.alloc_domain().number()).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(ep.transport.domains().next().unwrap().number(), 0);
    ep.transport.reset();
    assert_eq!(ep.transport.domains().map(|domain| domain.number()).collect::<Vec<_>>(), [0]);
    assert_eq!(ep.transport.alloc_domain().number(), 4, "a number does not come back");
}

#[test]
fn work_requests_tell_their_length() {
    let region = raw::endpoint(57).transport.register(vec![0; 8], Access::LOCAL, None).unwrap();
    for (data, len) in [(Data::from(region.slice(2, 5)), 5), (vec![0; 3].into(), 3), (b"ab"[..].into(), 2)] {
        assert_eq!((data.len(), data.is_empty()), (len, false));
    }
    assert!(Data::from(region.slice(2, 0)).is_empty() && Data::from(Vec::new()).is_empty());
    let received: Vec<bool> = [WcOpcode::Recv, WcOpcode::RecvWrite, WcOpcode::Send].map(WcOpcode::is_recv).into();
    assert_eq!(received, [true, true, false]);
}

/// Messages that use up a receive set the solicited event, on the wire and in the completion; others do not.
#[test]
fn what_asks_for_a_wake_up() {
    let (addr, rkey) = (RemoteAddr(0x1000), Rkey(7));
    let mut raw = Raw::active(options());
    for (wr, asks) in [
        (SendWr::send(1, vec![1]), true),
        (SendWr::send_invalidate(1, vec![1], rkey), true),
        (SendWr::write_imm(1, vec![1], addr, rkey, 2), true),
        (SendWr::write(1, vec![1], addr, rkey), false),
        (SendWr { solicited: false, ..SendWr::send(1, vec![1]) }, false),
    ] {
        assert!(wr.signaled && !wr.fence);
        raw.ep.transport.post_send(raw.conn, wr).unwrap();
        let sent = raw.drain().pop().unwrap();
        assert_eq!(sent.headers.bth.solicited(), asks, "{:?}", sent.opcode);
    }
    let mut raw = Raw::passive();
    for (n, asks) in [(0, true), (1, false)] {
        raw.ep.transport.post_recv(raw.conn, RecvWr { id: 1, slice: None }).unwrap();
        let mut send = raw::headers(raw.qpn, Opcode::SendOnly, TO_ENDPOINT.add(n), Ext::None);
        send.bth.set_solicited(asks);
        raw.ep.handle(raw.now, &raw::frame(&send, &[])).unwrap();
        assert!(matches!(raw.ep.transport.poll_event(), Some(Event::Completion(c)) if c.solicited == asks));
    }
}

/// What an endpoint says of a connection, in one piece or without a copy.
#[test]
fn a_connection_at_a_glance() {
    let mut raw = Raw::active(ConnectOptions { keepalive: None, ..options() });
    assert_eq!((raw.ep.interface.mac(), raw.ep.interface.ip()), (mac(0), ip(0)));
    let info = |raw: &Raw| raw.ep.transport.connection(raw.conn).unwrap();
    let before = info(&raw);
    assert_eq!((before.next_psn, before.oldest_psn, before.sends), (TO_PEER, TO_PEER, 0));
    assert_eq!((before.peer, before.path, before.local_qpn), (ip(1).into(), Some(path(0, 1)), raw.qpn));
    assert_eq!((before.path_mtu, before.port, before.rate_limit), (PathMtu::Mtu256, crate::sim::PORT, None));
    raw.ep.transport.post_send(raw.conn, SendWr::write(1, vec![0; 300], RemoteAddr(0), Rkey(0))).unwrap();
    raw.ep.transport.post_send(raw.conn, SendWr::write(2, vec![0; 300], RemoteAddr(0), Rkey(0))).unwrap();
    raw.drain();
    raw.answer(TO_PEER, Syndrome::ACK).unwrap();
    let now = info(&raw);
    assert_eq!((now.next_psn, now.oldest_psn, now.sends), (TO_PEER.add(4), TO_PEER.add(1), 2));
    assert_eq!(raw.ep.transport.stats(raw.conn), Some(&now.stats));
    assert_eq!(now.stats.tx_packets, 4);
    raw.ep.transport.reset();
    assert_eq!(raw.ep.transport.stats(raw.conn), None);
    assert!(matches!(raw.ep.transport.poll_event(), Some(Event::Completion(_))));
}
