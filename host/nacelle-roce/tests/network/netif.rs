// SPDX-License-Identifier: Apache-2.0
//! ARP, address probing, echo.

use crate::sim::{Net, config, ip, mac};
use nacelle_roce::{ConnectOptions, Discard, Endpoint, Instant, NetworkEvent, wire::arp::ArpPacket};
use std::{net::Ipv4Addr, time::Duration};

const SEC: Duration = Duration::from_secs(1);

#[test]
fn ping() {
    let mut net = Net::new(1, 2);
    let now = net.now;
    assert!(net.ep(0).interface.ping(now, ip(1), 7, 56, SEC));
    let Some(NetworkEvent::EchoReply { ip: from, sequence, len, rtt }) = net.network_event(0, SEC * 2) else {
        panic!()
    };
    assert_eq!((from, sequence, len), (ip(1), 7, 56));
    assert!(rtt >= Duration::from_micros(10) && rtt < Duration::from_micros(20), "{rtt:?}");
    assert_eq!(net.ep(1).counters().rx_echo_request, 1);
    // The largest that fits the link, and one byte more.
    let now = net.now;
    assert!(net.ep(0).interface.ping(now, ip(1), 8, 1472, SEC));
    assert!(matches!(net.network_event(0, SEC * 2), Some(NetworkEvent::EchoReply { len: 1472, .. })));
    assert!(!net.ep(0).interface.ping(now, ip(1), 9, 1473, SEC));
    assert!(!net.ep(0).interface.ping(now, [8, 8, 8, 8].into(), 9, 1, SEC));
}

#[test]
fn ping_without_answer() {
    let mut net = Net::new(2, 2);
    net.filter = Some(Box::new(|_, frame| frame[12..14] == [8, 6] || frame[34] == 8));
    let now = net.now;
    assert!(net.ep(0).interface.ping(now, ip(1), 7, 56, SEC));
    assert_eq!(net.network_event(0, SEC * 2), Some(NetworkEvent::EchoTimeout { ip: ip(1), sequence: 7 }));
    assert_eq!(net.now - now, SEC);
    let now = net.now;
    assert!(net.ep(0).interface.ping(now, ip(9), 8, 56, SEC * 30));
    assert_eq!(net.network_event(0, SEC * 20), Some(NetworkEvent::Unreachable { ip: ip(9) }));
    assert_eq!(net.network_event(0, SEC * 40), Some(NetworkEvent::EchoTimeout { ip: ip(9), sequence: 8 }));
}

#[test]
fn resolve_caches_and_forgets() {
    let mut net = Net::new(3, 2);
    let resolve = |net: &mut Net| {
        let now = net.now;
        net.ep(0).interface.resolve(now, ip(1));
        assert_eq!(net.network_event(0, SEC * 20), Some(NetworkEvent::Resolved { ip: ip(1), mac: mac(1) }));
        net.ep(0).counters().tx_arp
    };
    assert_eq!(resolve(&mut net), 1);
    assert_eq!(resolve(&mut net), 1, "known");
    net.run(SEC * 61);
    assert_eq!(resolve(&mut net), 2, "the entry has expired");
    let now = net.now;
    net.ep(0).interface.resolve(now, ip(5));
    assert_eq!(net.network_event(0, SEC * 20), Some(NetworkEvent::Unreachable { ip: ip(5) }));
    assert_eq!(net.ep(0).counters().tx_arp, 7);
}

#[test]
fn through_a_gateway() {
    // The gateway's address is node 1's; it does not forward, but its address is what frames go to.
    let mut net = Net::with(
        4,
        (0..2).map(|i| {
            let mut c = config(i, 4);
            c.interface.gateway = (i == 0).then(|| ip(1));
            c
        }),
    );
    net.log = Some(Vec::new());
    let now = net.now;
    net.ep(0).connect(now, [192, 168, 7, 7], 1, ConnectOptions::default()).unwrap();
    net.run(Duration::from_micros(100));
    let sent = net.sent(0, |p| Some((p.headers.eth.dst, p.headers.ip.dst())));
    assert_eq!(sent, [(mac(1), Ipv4Addr::new(192, 168, 7, 7))]);
    assert_eq!(net.ep(1).counters().discard_not_ours, 1);
}

#[test]
fn probing_an_address() {
    let mut net = Net::new(5, 3);
    net.log = Some(Vec::new());
    let now = net.now;
    net.ep(0).interface.probe_address(now, ip(2));
    let taken = NetworkEvent::AddressProbed { ip: ip(2), owner: Some(mac(2)) };
    assert_eq!(net.network_event(0, SEC), Some(taken));

    let free = Ipv4Addr::new(10, 0, 0, 99);
    let now = net.now;
    net.ep(0).interface.probe_address(now, free);
    assert_eq!(net.network_event(0, SEC), Some(NetworkEvent::AddressProbed { ip: free, owner: None }));
    assert_eq!(net.now - now, Duration::from_millis(300));
    assert_eq!(net.ep(0).counters().tx_arp, 4);
    for (_, frame) in net.log.as_ref().unwrap() {
        let arp = ArpPacket::parse(frame).unwrap();
        assert!(arp.sender_ip.is_unspecified() || arp.sender_mac == mac(2), "a probe claims nothing");
    }
    // Taken and announced, it answers.
    net.ep(0).interface.set_address(free, 24, None);
    let now = net.now;
    net.ep(1).interface.resolve(now, free);
    assert_eq!(net.network_event(1, SEC), Some(NetworkEvent::Resolved { ip: free, mac: mac(0) }));
}

#[test]
fn two_probe_the_same_address() {
    let mut net = Net::new(6, 2);
    let free = Ipv4Addr::new(10, 0, 0, 99);
    let now = net.now;
    net.ep(0).interface.probe_address(now, free);
    net.ep(1).interface.probe_address(now, free);
    for i in 0..2 {
        let Some(NetworkEvent::AddressProbed { owner, .. }) = net.network_event(i, SEC) else { panic!() };
        assert_eq!(owner, Some(mac(1 - i)));
    }
}

#[test]
fn arp_is_not_believed_unasked() {
    let mut ep = Endpoint::new(config(0, 7));
    let now = Instant::ZERO;
    let mut buf = [0; 60];
    let stray = ArpPacket::request(mac(1), ip(1), ip(1)).reply(mac(1));
    for packet in [ArpPacket { dst: mac(0), ..stray }, ArpPacket::request(mac(1), ip(1), ip(2))] {
        packet.write(&mut buf).unwrap();
        assert_eq!(ep.handle(now, &buf), Err(Discard::ArpIgnored));
    }
    ep.interface.resolve(now, ip(1));
    assert_eq!(ep.transport.poll_event(), None, "not in the cache");
    // Nor does an endpoint without an address answer.
    let mut c = config(0, 7);
    c.interface.ip = Ipv4Addr::UNSPECIFIED;
    let mut ep = Endpoint::new(c);
    ArpPacket::request(mac(1), ip(1), Ipv4Addr::UNSPECIFIED).write(&mut buf).unwrap();
    assert_eq!(ep.handle(now, &buf), Err(Discard::ArpIgnored));
}

/// A flood of requests fills a bounded queue, and is counted.
#[test]
fn floods_are_bounded() {
    let mut ep = Endpoint::new(config(0, 8));
    let mut buf = [0; 60];
    for n in 0..5000u32 {
        let from = Ipv4Addr::from_bits(0x0a00_0100 + n);
        ArpPacket::request(mac(1), from, ip(0)).write(&mut buf).unwrap();
        ep.handle(Instant::ZERO, &buf).unwrap();
    }
    let mut out = vec![0; ep.frame_len()];
    let answers = std::iter::from_fn(|| ep.poll_transmit(Instant::ZERO, &mut out)).count();
    assert_eq!(answers, 256);
    assert_eq!(ep.counters().tx_queue_full, 5000 - 256);
}
