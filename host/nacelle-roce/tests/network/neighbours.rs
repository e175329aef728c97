// SPDX-License-Identifier: Apache-2.0
//! The network interface at its bounds: which ARP frames it takes, which requests it answers, how many entries it has.

use crate::sim::{Net, PORT, config, ip, mac};
use nacelle_roce::{
    ConnectFailure, ConnectOptions, Discard, Endpoint, EndpointConfig, Event, Instant, NetworkEvent,
    wire::{
        MacAddr,
        arp::{ArpPacket, Operation},
        icmp::{EchoPacket, Kind},
        ipv4::{Ipv4Header, PROTOCOL_ICMP},
    },
};
use std::{net::Ipv4Addr, time::Duration};

const SEC: Duration = Duration::from_secs(1);
const NOW: Instant = Instant::from_nanos(1);

fn station(change: impl FnOnce(&mut EndpointConfig)) -> Endpoint {
    let mut config = config(0, 40);
    change(&mut config);
    Endpoint::new(config)
}

fn arp(packet: &ArpPacket) -> [u8; 60] {
    let mut buf = [0; 60];
    packet.write(&mut buf).unwrap();
    buf
}

/// `owner` sends the endpoint an ARP request, from which the endpoint takes its address.
fn introduce(ep: &mut Endpoint, now: Instant, owner: Ipv4Addr) {
    ep.handle(now, &arp(&ArpPacket::request(mac(1), owner, ip(0)))).unwrap();
    frames(ep, now);
}

fn frames(ep: &mut Endpoint, now: Instant) -> Vec<Vec<u8>> {
    let mut buf = vec![0; ep.frame_len()];
    std::iter::from_fn(|| ep.poll_transmit(now, &mut buf).map(|len| buf[..len].to_vec())).collect()
}

/// Whether the endpoint has the address without an ARP request.
fn knows(ep: &mut Endpoint, now: Instant, who: Ipv4Addr) -> bool {
    ep.interface.resolve(now, who);
    ep.interface.poll_event() == Some(NetworkEvent::Resolved { ip: who, mac: mac(1) })
}

/// Addresses of one large network: 10.0.1.0 and on.
fn many(n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0100 + n)
}

#[test]
fn an_address_is_believed_for_its_lifetime() {
    let mut ep = station(|_| {});
    introduce(&mut ep, NOW, ip(1));
    let end = NOW + SEC * 60;
    assert!(knows(&mut ep, Instant::from_nanos(end.as_nanos() - 1), ip(1)));
    assert!(!knows(&mut ep, end, ip(1)));
}

#[test]
fn the_oldest_address_makes_room() {
    let mut ep = station(|c| c.interface.prefix_len = 8);
    for n in 0..1024 {
        introduce(&mut ep, NOW + Duration::from_nanos(n.into()), many(n));
    }
    assert!((0..1024).all(|n| knows(&mut ep, NOW, many(n))));
    // One that has an entry already does not replace another.
    introduce(&mut ep, NOW + SEC, many(0));
    assert!((0..1024).all(|n| knows(&mut ep, NOW + SEC, many(n))));
    introduce(&mut ep, NOW + SEC, many(1024));
    let forgotten: Vec<u32> = (0..=1024).filter(|&n| !knows(&mut ep, NOW + SEC, many(n))).collect();
    assert_eq!(forgotten, [1], "0 has sent a frame since");
}

#[test]
fn routes() {
    let gateway = Ipv4Addr::new(10, 0, 0, 254);
    let near = [Ipv4Addr::new(10, 0, 0, 99), Ipv4Addr::new(10, 9, 9, 9), Ipv4Addr::new(192, 168, 0, 1)];
    for (prefix_len, local) in [(32, 0), (40, 0), (24, 1), (8, 2), (0, 3)] {
        for (i, who) in near.into_iter().enumerate() {
            for router in [None, Some(gateway)] {
                let mut ep = station(|c| (c.interface.prefix_len, c.interface.gateway) = (prefix_len, router));
                ep.interface.resolve(NOW, who);
                let hop = if i < local { Some(who) } else { router };
                let asked = frames(&mut ep, NOW).first().map(|frame| ArpPacket::parse(frame).unwrap().target_ip);
                assert_eq!(asked, hop, "{who} from a network of {prefix_len} bits");
                assert_eq!(ep.interface.poll_event(), hop.is_none().then_some(NetworkEvent::Unreachable { ip: who }));
            }
        }
    }
}

/// A connection and the user wait for the same address: both get the result.
#[test]
fn two_wait_for_one_address() {
    for user_first in [true, false] {
        let mut net = Net::new(41, 2);
        let now = net.now;
        if user_first {
            net.ep(0).interface.resolve(now, ip(1));
        }
        net.ep(0).connect(now, ip(1), PORT, ConnectOptions::default()).unwrap();
        if !user_first {
            net.ep(0).interface.resolve(now, ip(1));
        }
        assert_eq!(net.network_event(0, SEC), Some(NetworkEvent::Resolved { ip: ip(1), mac: mac(1) }));
        assert!(matches!(net.event(0, SEC), Some(Event::ConnectFailed { .. })), "no application listens there");
        assert_eq!(net.ep(0).counters().tx_arp, 1);
    }
}

/// An address that no host has fails only what waits for it.
#[test]
fn one_of_two_is_unreachable() {
    let mut net = Net::new(42, 2);
    net.filter = Some(Box::new(|_, frame| frame[12..14] == [8, 6]));
    let now = net.now;
    let lost = net.ep(0).connect(now, ip(7), PORT, ConnectOptions::default()).unwrap();
    let found = net.ep(0).connect(now, ip(1), PORT, ConnectOptions::default()).unwrap();
    let reason = ConnectFailure::Unreachable;
    assert_eq!(net.event(0, SEC * 6), Some(Event::ConnectFailed { conn: lost, reason }));
    assert!(net.ep(0).transport.connection(found).is_some());
}

/// Each ARP request has its own timer; one that is overdue is sent at the next poll.
#[test]
fn questions_are_asked_again_in_their_time() {
    let asked = |ep: &mut Endpoint, now| -> Vec<Ipv4Addr> {
        frames(ep, now).iter().map(|frame| ArpPacket::parse(frame).unwrap().target_ip).collect()
    };
    let mut ep = station(|_| {});
    ep.interface.resolve(NOW, ip(1));
    assert_eq!(asked(&mut ep, NOW), [ip(1)]);
    let half = NOW + SEC / 2;
    ep.interface.resolve(half, ip(2));
    assert_eq!(asked(&mut ep, half), [ip(2)]);
    assert_eq!(ep.next_deadline(), Some(NOW + SEC));
    assert_eq!(asked(&mut ep, NOW + SEC), [ip(1)]);
    let mut late = asked(&mut ep, NOW + SEC * 10);
    late.sort_unstable();
    assert_eq!(late, [ip(1), ip(2)]);
    assert_eq!(ep.next_deadline(), Some(NOW + SEC * 11));
}

/// Beyond 256 addresses at a time no request is sent, and what waits for the address fails at once.
#[test]
fn questions_are_bounded() {
    let mut ep = station(|c| (c.interface.prefix_len, c.transport.max_connections) = (8, 300));
    for n in 0..256 {
        ep.connect(NOW, many(n), PORT, ConnectOptions::default()).unwrap();
    }
    assert_eq!(ep.transport.poll_event(), None);
    let conn = ep.connect(NOW, many(256), PORT, ConnectOptions::default()).unwrap();
    assert_eq!(ep.transport.poll_event(), Some(Event::ConnectFailed { conn, reason: ConnectFailure::Unreachable }));
    // A program that asks for one more address gets an event.
    ep.interface.resolve(NOW, many(257));
    assert_eq!(ep.interface.poll_event(), Some(NetworkEvent::Unreachable { ip: many(257) }));
    // One more for an address that is asked for already costs nothing.
    ep.connect(NOW, many(0), PORT, ConnectOptions::default()).unwrap();
    assert_eq!(ep.transport.poll_event(), None);
    assert_eq!(frames(&mut ep, NOW).len(), 256);
}

#[test]
fn pings_are_bounded() {
    let mut ep = station(|_| {});
    for n in 0..256 {
        assert!(ep.interface.ping(NOW, ip(1), n, 8, SEC));
    }
    assert!(!ep.interface.ping(NOW, ip(1), 256, 8, SEC));
    frames(&mut ep, NOW + SEC);
    let over = std::iter::from_fn(|| ep.interface.poll_event())
        .filter(|e| matches!(e, NetworkEvent::EchoTimeout { .. }))
        .count();
    assert_eq!(over, 256);
    assert!(ep.interface.ping(NOW + SEC, ip(1), 256, 8, SEC));
}

fn echo(src: Ipv4Addr, kind: Kind, identifier: u16, sequence: u16) -> EchoPacket<'static> {
    let ip = Ipv4Header::new(src, ip(0), PROTOCOL_ICMP);
    EchoPacket { dst: mac(0), src: mac(1), ip, kind, identifier, sequence, payload: b"abc" }
}

fn bytes(packet: &EchoPacket<'_>) -> Vec<u8> {
    let mut buf = vec![0; 1514];
    let len = packet.write(&mut buf).unwrap();
    buf.truncate(len);
    buf
}

/// Two stations are asked under the same number: each reply is its own station's.
#[test]
fn replies_find_their_ping() {
    let mut ep = station(|_| {});
    introduce(&mut ep, NOW, ip(1));
    introduce(&mut ep, NOW, ip(2));
    for (who, sequence) in [(1, 7), (2, 7), (2, 8)] {
        assert!(ep.interface.ping(NOW, ip(who), sequence, 3, SEC));
    }
    let asked = frames(&mut ep, NOW);
    let identifier = EchoPacket::parse(&asked[0]).unwrap().identifier;
    let later = NOW + Duration::from_micros(30);
    for (who, identifier, sequence) in [(2, identifier ^ 1, 7), (2, identifier, 9), (3, identifier, 7)] {
        let stray = bytes(&echo(ip(who), Kind::Reply, identifier, sequence));
        assert_eq!(ep.handle(later, &stray), Err(Discard::UnexpectedEcho));
    }
    for (who, sequence) in [(2, 8), (2, 7), (1, 7)] {
        ep.handle(later, &bytes(&echo(ip(who), Kind::Reply, identifier, sequence))).unwrap();
        let rtt = Duration::from_micros(30);
        assert_eq!(ep.interface.poll_event(), Some(NetworkEvent::EchoReply { ip: ip(who), sequence, len: 3, rtt }));
    }
    let again = bytes(&echo(ip(1), Kind::Reply, identifier, 7));
    assert_eq!(ep.handle(later, &again), Err(Discard::UnexpectedEcho));
    let c = ep.counters();
    assert_eq!((c.rx_echo_reply, c.discard_echo, c.rx_echo_request), (3, 4, 0));
}

/// An echo request is answered only if its source is a single host (RFC 1122, 3.2.1.3).
#[test]
fn only_single_hosts_get_an_echo() {
    let mut ep = station(|_| {});
    let good = echo(Ipv4Addr::new(223, 255, 255, 255), Kind::Request, 5, 6);
    ep.handle(NOW, &bytes(&good)).unwrap();
    let answer = frames(&mut ep, NOW);
    let answer = EchoPacket::parse(&answer[0]).unwrap();
    assert_eq!((answer.dst, answer.src, answer.ip.src(), answer.ip.dst()), (mac(1), mac(0), ip(0), good.ip.src()));
    assert_eq!((answer.kind, answer.identifier, answer.sequence, answer.payload), (Kind::Reply, 5, 6, &b"abc"[..]));
    let group = MacAddr([3, 0, 0, 0, 0, 1]);
    for bad in [
        echo(Ipv4Addr::UNSPECIFIED, Kind::Request, 5, 6),
        echo(Ipv4Addr::new(224, 0, 0, 1), Kind::Request, 5, 6),
        echo(Ipv4Addr::BROADCAST, Kind::Request, 5, 6),
        EchoPacket { src: group, ..good },
        EchoPacket { ip: Ipv4Header::new(ip(1), ip(3), PROTOCOL_ICMP), ..good },
    ] {
        assert_eq!(ep.handle(NOW, &bytes(&bad)), Err(Discard::NotForUs), "{bad:?}");
    }
    assert!(frames(&mut ep, NOW).is_empty());
    assert_eq!((ep.counters().rx_echo_request, ep.counters().discard_not_ours), (1, 5));
    // What finds the queue full is counted there.
    for _ in 0..300 {
        ep.handle(NOW, &bytes(&good)).unwrap();
    }
    assert_eq!(frames(&mut ep, NOW).len(), 256);
    assert_eq!((ep.counters().rx_echo_request, ep.counters().tx_queue_full), (257, 44));
}

/// Each echo request and reply is a datagram of its own.
#[test]
fn identifications_differ() {
    let mut ep = station(|_| {});
    for n in 0..3 {
        ep.handle(NOW, &bytes(&echo(ip(1), Kind::Request, 1, n))).unwrap();
    }
    let sent = frames(&mut ep, NOW);
    let ids: Vec<u16> = sent.iter().map(|f| EchoPacket::parse(f).unwrap().ip.identification.get()).collect();
    assert_eq!(ids, [ids[0], ids[0] + 1, ids[0] + 2]);
}

/// An entry is created by an ARP frame to this station, or by a requested reply; by no other frame.
#[test]
fn what_an_arp_packet_teaches() {
    let request = ArpPacket::request(mac(1), ip(1), ip(0));
    let cases = [
        ("a question to this station", request, Ok(()), true),
        ("a question to another", ArpPacket { target_ip: ip(5), ..request }, Err(Discard::ArpIgnored), false),
        ("this station's own", ArpPacket { sender_mac: mac(0), ..request }, Err(Discard::ArpIgnored), false),
        (
            "from a group",
            ArpPacket { sender_mac: MacAddr([3, 0, 0, 0, 0, 1]), ..request },
            Err(Discard::ArpIgnored),
            false,
        ),
        ("an unrequested reply", ArpPacket { operation: Operation::Reply, ..request }, Err(Discard::ArpIgnored), true),
    ];
    for (name, packet, result, learned) in cases {
        let mut ep = station(|_| {});
        assert_eq!(ep.handle(NOW, &arp(&packet)), result, "{name}");
        assert_eq!(frames(&mut ep, NOW).len(), usize::from(result.is_ok()), "{name}");
        let c = ep.counters();
        assert_eq!((c.rx_arp, c.discard_arp), if result.is_ok() { (1, 0) } else { (0, 1) }, "{name}");
        assert_eq!(knows(&mut ep, NOW, ip(1)), learned, "{name}");
    }
}

/// A probe is answered; its sender has no address yet, so no entry is created.
#[test]
fn a_probe_by_another() {
    let mut ep = station(|_| {});
    ep.handle(NOW, &arp(&ArpPacket::request(mac(1), Ipv4Addr::UNSPECIFIED, ip(0)))).unwrap();
    let answer = frames(&mut ep, NOW);
    let answer = ArpPacket::parse(&answer[0]).unwrap();
    assert_eq!((answer.operation, answer.sender_ip, answer.sender_mac), (Operation::Reply, ip(0), mac(0)));
    assert_eq!(ep.counters().rx_arp, 1);
}

/// What is said of the address under probe ends the probe; what is said of others does not.
#[test]
fn conflicts_of_a_probe() {
    let free = Ipv4Addr::new(10, 0, 0, 99);
    let nobody = Ipv4Addr::UNSPECIFIED;
    let rival = ArpPacket::request(mac(1), nobody, free);
    for (packet, conflict) in [
        (rival, true),
        (ArpPacket::request(mac(1), free, ip(5)), true),
        (ArpPacket { target_ip: ip(5), ..rival }, false),
        (ArpPacket { operation: Operation::Reply, ..rival }, false),
        (ArpPacket { sender_ip: ip(1), ..rival }, false),
    ] {
        let mut ep = station(|_| {});
        ep.interface.probe_address(NOW, free);
        frames(&mut ep, NOW);
        let expected = if conflict { Ok(()) } else { Err(Discard::ArpIgnored) };
        assert_eq!(ep.handle(NOW, &arp(&packet)), expected, "{packet:?}");
        let event = conflict.then_some(NetworkEvent::AddressProbed { ip: free, owner: Some(mac(1)) });
        assert_eq!(ep.interface.poll_event(), event, "{packet:?}");
        let left: usize = (1..=9).map(|n| frames(&mut ep, NOW + SEC * n).len()).sum();
        assert_eq!(left, if conflict { 0 } else { 2 }, "three probes in all: {packet:?}");
    }
}
