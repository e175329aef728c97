// SPDX-License-Identifier: Apache-2.0
//! Connections: how they begin and end, between endpoints and against a raw peer.

use crate::{
    raw::{self, PEER_QPN, Raw, TO_ENDPOINT, TO_PEER, endpoint, mad, options, req},
    sim::{Impairment, Net, PORT, config, ip, mac, region_bytes, seeds},
};
use nacelle_roce::{
    AcceptLimits, Access, ConnectError, ConnectFailure, ConnectOptions, Discard, DisconnectReason, Endpoint,
    EndpointConfig, Event, Instant, Phase, PostError, RecvWr, SendWr, WcStatus,
    wire::{
        Psn, Qpn, RemoteAddr, Rkey, RoceHeaders, RocePacket,
        bth::{Bth, Deth, Opcode},
        cm::{self, Drep, Dreq, IpCm, Message, Mra, PathMtu, Rej, RejReason, Rep, Req, Rtu},
        extensions::{Agreement, Extensions},
        ipv4::Ipv4Header,
        roce::Flow,
        transport::Ext,
    },
};
use std::{cell::RefCell, rc::Rc, time::Duration};

const LONG: Duration = Duration::from_secs(300);

fn failure(net: &mut Net, node: usize) -> ConnectFailure {
    match net.event(node, LONG) {
        Some(Event::ConnectFailed { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

fn assert_quiet(net: &mut Net) {
    net.run(LONG);
    for node in &mut net.nodes {
        if node.alive {
            assert_eq!(node.ep.transport.connections().count(), 0);
            assert_eq!(node.ep.next_deadline(), None);
            assert_eq!(node.events, []);
        }
    }
}

#[test]
fn private_data_both_ways() {
    let mut net = Net::new(1, 2);
    net.ep(1).transport.listen(PORT);
    let now = net.now;
    let ask = ConnectOptions { private_data: vec![1; 56], ..ConnectOptions::default() };
    net.ep(0).connect(now, ip(1), PORT, ask).unwrap();
    let Some(Event::ConnectRequest { conn, port, peer, private_data, token: None, offered }) = net.event(1, LONG)
    else {
        panic!()
    };
    assert_eq!((port, peer, private_data), (PORT, ip(0).into(), vec![1; 56]));
    assert_eq!(offered, Agreement::default());
    let answer = ConnectOptions { private_data: vec![2; 196], ..ConnectOptions::default() };
    let now = net.now;
    net.ep(1).transport.accept(now, conn, answer).unwrap();
    let Some(Event::Connected { private_data, .. }) = net.event(0, LONG) else { panic!() };
    assert_eq!(private_data, [2; 196]);

    for (len, error) in [(56, Ok(())), (57, Err(ConnectError::PrivateData))] {
        let o = ConnectOptions { private_data: vec![0; len], ..ConnectOptions::default() };
        assert_eq!(net.ep(0).connect(now, ip(1), PORT, o).map(|_| ()), error);
    }
}

#[test]
fn the_first_send_may_follow_at_once() {
    let mut net = Net::new(2, 2);
    let o = ConnectOptions::default();
    let (a, b) = net.connect_with(0, 1, &o, &o, |ep, conn| {
        let region = ep.transport.register(vec![0; 16], Access::LOCAL, None).unwrap();
        ep.transport.post_recv(conn, RecvWr { id: 1, slice: Some(region.all()) }).unwrap();
    });
    net.ep(0).transport.post_send(a, SendWr::send(1, vec![1; 16])).unwrap();
    assert_eq!(net.success(1).byte_len, 16);
    assert_eq!(net.ep(1).counters().send_rnr_err, 0);
    assert_eq!(net.ep(1).transport.connection(b).unwrap().phase, Phase::Established);
}

#[test]
fn mtu_is_agreed() {
    for (mtus, expected) in
        [((1500, 1500), 3), ((4200, 4200), 5), ((4200, 1500), 3), ((1500, 4200), 3), ((9000, 400), 1)]
    {
        let mut net = Net::with(
            3,
            [(0, mtus.0), (1, mtus.1)].map(|(i, m)| {
                let mut c = config(i, 3);
                c.interface.ip_mtu = m;
                c
            }),
        );
        let (a, b) = net.connect(0, 1, &ConnectOptions::default());
        let mtu = PathMtu::from_code(expected).unwrap();
        assert_eq!(net.ep(0).transport.connection(a).unwrap().path_mtu, mtu);
        assert_eq!(net.ep(1).transport.connection(b).unwrap().path_mtu, mtu);
    }
    let mut net = Net::with(
        3,
        [config(0, 3)].map(|mut c| {
            c.interface.ip_mtu = 200;
            c
        }),
    );
    let now = net.now;
    let small = net.ep(0).connect(now, ip(1), PORT, ConnectOptions::default());
    assert_eq!(small, Err(ConnectError::MtuTooSmall));
}

#[test]
fn nobody_there() {
    let mut net = Net::new(4, 2);
    net.nodes[1].alive = false;
    let now = net.now;
    net.ep(0).connect(now, ip(1), PORT, ConnectOptions::default()).unwrap();
    assert_eq!(failure(&mut net, 0), ConnectFailure::Unreachable);
    let waited = net.now - now;
    assert!(waited >= Duration::from_secs(5) && waited < Duration::from_secs(6), "{waited:?}");
    let outside = [192, 168, 0, 1].into();
    let result = net.ep(0).connect(now, outside, PORT, ConnectOptions::default());
    assert_eq!(result, Err(ConnectError::NoRoute(outside)));
    assert_quiet(&mut net);
}

#[test]
fn somebody_there_but_silent() {
    let mut net = Net::new(5, 2);
    net.filter = Some(Box::new(|from, frame| from == 0 || frame[12..14] == [8, 6]));
    net.ep(1).transport.listen(PORT);
    let now = net.now;
    net.ep(0).connect(now, ip(1), PORT, ConnectOptions::default()).unwrap();
    assert_eq!(failure(&mut net, 0), ConnectFailure::Timeout);
    assert!(net.now - now < Duration::from_secs(9));
    // The other side is not left with half a connection.
    assert!(matches!(net.event(1, LONG), Some(Event::ConnectRequest { .. })));
    assert!(matches!(failure(&mut net, 1), ConnectFailure::Rejected { reason: RejReason::TIMEOUT, .. }));
    assert_quiet(&mut net);
}

#[test]
fn rejects() {
    let mut net = Net::new(6, 2);
    let now = net.now;
    net.ep(0).connect(now, ip(1), PORT, ConnectOptions::default()).unwrap();
    let ConnectFailure::Rejected { reason, .. } = failure(&mut net, 0) else { panic!() };
    assert_eq!(reason, RejReason::INVALID_SERVICE_ID);

    net.ep(1).transport.listen(PORT);
    let now = net.now;
    net.ep(0).connect(now, ip(1), PORT, ConnectOptions::default()).unwrap();
    let Some(Event::ConnectRequest { conn, .. }) = net.event(1, LONG) else { panic!() };
    net.ep(1).transport.reject(conn, b"no").unwrap();
    let ConnectFailure::Rejected { reason, private_data } = failure(&mut net, 0) else { panic!() };
    assert_eq!((reason, &private_data[..3]), (RejReason::CONSUMER, &b"no\0"[..]));
    assert_eq!(net.ep(1).transport.reject(conn, b""), Err(ConnectError::NotWaiting));
    net.ep(1).transport.unlisten(PORT);
    let now = net.now;
    net.ep(0).connect(now, ip(1), PORT, ConnectOptions::default()).unwrap();
    assert!(matches!(failure(&mut net, 0), ConnectFailure::Rejected { .. }));
    assert_quiet(&mut net);
}

#[test]
fn an_application_that_never_answers() {
    let mut net = Net::new(7, 2);
    net.ep(1).transport.listen(PORT);
    let now = net.now;
    net.ep(0).connect(now, ip(1), PORT, ConnectOptions::default()).unwrap();
    assert!(matches!(net.event(1, LONG), Some(Event::ConnectRequest { .. })));
    // An MRA extends the caller's timeout, so that the other side's timeout comes first.
    assert!(matches!(failure(&mut net, 0), ConnectFailure::Rejected { reason: RejReason::TIMEOUT, .. }));
    assert!(net.now - now >= Duration::from_secs(60));
    assert_eq!(failure(&mut net, 1), ConnectFailure::Timeout);
    assert_quiet(&mut net);
}

#[test]
fn the_table_is_bounded() {
    let mut net = Net::with(
        8,
        (0..2).map(|i| {
            let mut c = config(i, 8);
            c.transport.max_connections = if i == 1 { 3 } else { 256 };
            c
        }),
    );
    let first: Vec<_> = (0..3).map(|_| net.connect(0, 1, &ConnectOptions::default())).collect();
    let now = net.now;
    net.ep(0).connect(now, ip(1), PORT, ConnectOptions::default()).unwrap();
    let ConnectFailure::Rejected { reason, .. } = failure(&mut net, 0) else { panic!() };
    assert_eq!(reason, RejReason::NO_QP);
    let refused = net.ep(1).connect(now, ip(0), PORT, ConnectOptions::default());
    assert_eq!(refused, Err(ConnectError::TooMany));
    // A place that becomes free can be used again, under another number.
    let now = net.now;
    let old = net.ep(1).transport.connection(first[0].1).unwrap().local_qpn;
    net.ep(0).transport.disconnect(now, first[0].0);
    assert!(matches!(net.event(0, LONG), Some(Event::Disconnected { reason: DisconnectReason::Local, .. })));
    assert!(matches!(net.event(1, LONG), Some(Event::Disconnected { reason: DisconnectReason::Remote, .. })));
    let (_, again) = net.connect(0, 1, &ConnectOptions::default());
    assert_ne!(net.ep(1).transport.connection(again).unwrap().local_qpn, old);
    assert_eq!(net.ep(1).transport.connection(first[0].1), None);
    assert_eq!(
        net.ep(1).transport.post_recv(first[0].1, RecvWr { id: 0, slice: None }),
        Err(PostError::UnknownConnection)
    );
}

/// What one peer, and all peers that do not finish what they begin, can take.
#[test]
fn what_peers_open_is_bounded() {
    let answers = |ep: &mut Endpoint, now| -> Vec<Option<RejReason>> {
        let messages = raw::drain(ep, now).into_iter().map(|packet| match Message::parse(&packet.payload).unwrap() {
            (_, Message::Rej(rej)) => Some(rej.reason()),
            (_, Message::Rep(_)) => None,
            other => panic!("{other:?}"),
        });
        messages.collect()
    };
    let mut config = EndpointConfig::new(mac(0), ip(0), [7; 32]);
    config.transport.max_connections = 20;
    config.transport.accept = AcceptLimits::for_device(20, 5);
    assert_eq!(config.transport.accept, AcceptLimits { per_peer: 5, half_open: 10, half_open_per_peer: 0 });
    config.transport.accept.half_open_per_peer = 3;
    let mut ep = Endpoint::new(config);
    ep.transport.listen(PORT);
    let now = Instant::from_nanos(1);
    // Sends a REQ of a peer, lets the application accept it, and returns the answer.
    let ask = |ep: &mut Endpoint, peer: usize, id: u32| {
        let mut req = Req::new(id, PORT, Qpn::new(0x100 + id), TO_PEER, IpCm::new(5, ip(peer), ip(0)));
        req.set_path_mtu(1);
        let ext = Ext::Deth(Deth::new(cm::GSI_Q_KEY, Qpn::GSI));
        let flow = Flow::new(mac(peer), mac(0), ip(peer), ip(0), 0xdead);
        let headers = RoceHeaders::new(&flow, Bth::new(Opcode::UdSendOnly, Qpn::GSI, Psn::new(0)), ext);
        let frame = raw::frame(&headers, &Message::Req(&req).to_mad(id.into()));
        ep.handle(now, &frame).unwrap();
        if let Some(Event::ConnectRequest { conn, .. }) = ep.transport.poll_event() {
            let options = ConnectOptions { starting_psn: Some(TO_ENDPOINT), ..ConnectOptions::default() };
            ep.transport.accept(now, conn, options).unwrap();
        }
        let said = answers(ep, now);
        assert_eq!(said.len(), 1);
        said[0]
    };
    let refused = Some(RejReason::NO_RESOURCES);
    assert_eq!([1, 2, 3, 4].map(|id| ask(&mut ep, 1, id)), [None, None, None, refused], "half open, of one peer");
    for (peer, id) in [(2, 10), (3, 20), (4, 30)] {
        let expected = if peer == 4 { [None, refused, refused] } else { [None; 3] };
        assert_eq!([id, id + 1, id + 2].map(|id| ask(&mut ep, peer, id)), expected, "half open, of all");
    }
    // Those that finish are no longer half open.
    for info in ep.transport.connections().map(|(_, info)| info).collect::<Vec<_>>() {
        let frame = raw::write_from(info.peer, info.local_qpn, TO_ENDPOINT);
        ep.handle(now, &frame).unwrap();
    }
    while ep.transport.poll_event().is_some() {}
    raw::drain(&mut ep, now);
    assert_eq!([40, 41, 42].map(|id| ask(&mut ep, 1, id)), [None, None, refused], "of one peer");
    assert_eq!([50, 51].map(|id| ask(&mut ep, 5, id)), [None, None]);
    // An end makes room.
    ep.transport.reset();
    while ep.transport.poll_event().is_some() {}
    assert_eq!(ask(&mut ep, 1, 60), None);
}

#[test]
fn crossed_disconnects() {
    let mut net = Net::new(9, 2);
    let (a, b) = net.connect(0, 1, &ConnectOptions::default());
    let now = net.now;
    net.ep(0).transport.disconnect(now, a);
    net.ep(1).transport.disconnect(now, b);
    for i in 0..2 {
        let Some(Event::Disconnected { reason, .. }) = net.event(i, LONG) else { panic!() };
        assert_eq!(reason, DisconnectReason::Local);
        assert!(net.now - now < Duration::from_millis(1));
    }
    assert_quiet(&mut net);
}

#[test]
fn disconnect_from_a_dead_peer_ends() {
    let mut net = Net::new(10, 2);
    let (a, _) = net.connect(0, 1, &ConnectOptions::default());
    net.nodes[1].alive = false;
    let now = net.now;
    net.ep(0).transport.disconnect(now, a);
    assert!(matches!(net.event(0, LONG), Some(Event::Disconnected { reason: DisconnectReason::Local, .. })));
    assert!(net.now - now < Duration::from_secs(9));
    assert_quiet(&mut net);
}

#[test]
fn disconnect_flushes() {
    let mut net = Net::new(11, 2);
    let (a, b) = net.connect(0, 1, &ConnectOptions::default());
    net.ep(1).transport.post_recv(b, RecvWr { id: 3, slice: None }).unwrap();
    net.filter = Some(Box::new(|_, frame| frame[42] >= 0x60)); // only CM
    net.ep(0).transport.post_send(a, SendWr::write(1, vec![0; 9], RemoteAddr(0), Rkey(0))).unwrap();
    net.run(Duration::from_micros(100));
    let now = net.now;
    net.ep(0).transport.disconnect(now, a);
    assert_eq!(net.completion(0).status, WcStatus::WrFlushErr);
    assert!(matches!(net.event(0, LONG), Some(Event::Disconnected { .. })));
    let c = net.completion(1);
    assert_eq!((c.id, c.status), (3, WcStatus::WrFlushErr));
    assert!(matches!(net.event(1, LONG), Some(Event::Disconnected { .. })));
}

#[test]
fn abort_in_every_phase() {
    seeds(0..60, |seed| {
        let mut net = Net::new(seed, 2);
        net.ep(1).transport.listen(PORT);
        let now = net.now;
        let conn = net.ep(0).connect(now, ip(1), PORT, ConnectOptions::default()).unwrap();
        // Up to 30 us: address resolution, REQ, REP, RTU each take 5.
        let patience = Duration::from_nanos(net.rng.next() % 30_000);
        let end = net.now + patience;
        let mut accepted = None;
        while net.step(end) {
            if let Some(Event::ConnectRequest { conn, .. }) = net.nodes[1].events.front() {
                let (conn, now) = (*conn, net.now);
                net.nodes[1].events.clear();
                net.ep(1).transport.accept(now, conn, ConnectOptions::default()).unwrap();
                accepted = Some(conn);
            }
        }
        let (now, by_server) = (net.now, net.rng.below(2) == 1);
        match accepted {
            Some(conn) if by_server => net.ep(1).transport.disconnect(now, conn),
            _ => net.ep(0).transport.disconnect(now, conn),
        }
        net.run(Duration::from_secs(80));
        for i in 0..2 {
            let events = std::mem::take(&mut net.nodes[i].events);
            let ends = events.iter().filter(|e| matches!(e, Event::ConnectFailed { .. } | Event::Disconnected { .. }));
            let begins = events.iter().filter(|e| matches!(e, Event::Connected { .. })).count();
            let known =
                i == 0 || accepted.is_some() || events.iter().any(|e| matches!(e, Event::ConnectRequest { .. }));
            assert_eq!(ends.count(), usize::from(known), "{events:?}");
            assert!(begins <= 1);
        }
        assert_quiet(&mut net);
    });
}

/// A peer that dies costs its connection and nothing else, and may come back under the same address.
#[test]
fn crash_and_restart() {
    seeds(0..30, |seed| {
        let mut net = Net::new(seed, 3);
        net.impairment = Impairment { loss: (seed % 4) as f64, ..Impairment::default() };
        let o = ConnectOptions {
            cm_timeout: Duration::from_millis(10),
            ack_timeout: Duration::from_millis(5),
            ..ConnectOptions::default()
        };
        let (victim, _) = net.connect(0, 1, &o);
        let (witness, other) = net.connect(0, 2, &o);
        net.nodes[1].alive = false;
        net.ep(0).transport.post_send(victim, SendWr::write(1, vec![0; 5000], RemoteAddr(0), Rkey(0))).unwrap();
        let region = net.ep(2).transport.register(vec![0; 5000], Access::REMOTE_WRITE, Some(other)).unwrap();
        net.ep(0).transport.post_send(witness, SendWr::write(2, vec![7; 5000], region.addr, region.rkey)).unwrap();
        assert_eq!(net.success(0).id, 2);
        assert_eq!(region_bytes(net.ep(2), region.id), [7; 5000]);

        if seed % 2 == 0 {
            // It restarts without state: requests get no answer.
            net.nodes[1].ep = Endpoint::new(config(1, seed + 1000));
            net.nodes[1].events.clear();
            net.nodes[1].alive = true;
        }
        let c = net.completion(0);
        assert_eq!((c.id, c.status), (1, WcStatus::RetryExceeded));
        let Some(Event::Disconnected { conn, reason, .. }) = net.event(0, LONG) else { panic!() };
        assert_eq!((conn, reason), (victim, DisconnectReason::Error(WcStatus::RetryExceeded)));
        if seed % 2 == 0 {
            net.connect(0, 1, &o);
        }
        assert_eq!(net.ep(0).transport.connection(witness).unwrap().phase, Phase::Established);
    });
}

#[test]
fn many_connections_at_once() {
    let mut net = Net::new(12, 9);
    net.impairment = Impairment { loss: 5.0, ..Impairment::default() };
    let o = ConnectOptions {
        cm_timeout: Duration::from_millis(5),
        ack_timeout: Duration::from_millis(2),
        ..ConnectOptions::default()
    };
    let pairs: Vec<_> = (1..9).flat_map(|i| [i, i]).map(|i| (i, net.connect(i, 0, &o))).collect();
    let mut targets = Vec::new();
    for &(i, (client, server)) in &pairs {
        let region = net.ep(0).transport.register(vec![0; 30_000], Access::REMOTE_WRITE, Some(server)).unwrap();
        let fill = vec![client_byte(i, targets.len()); 30_000];
        net.ep(i).transport.post_send(client, SendWr::write(1, fill, region.addr, region.rkey)).unwrap();
        targets.push((i, region));
    }
    for &(i, _) in &targets {
        net.success(i);
    }
    for (n, (i, region)) in targets.into_iter().enumerate() {
        let bytes = net.ep(0).transport.deregister(region.id).unwrap().into_vec().unwrap();
        assert!(bytes.iter().all(|&b| b == client_byte(i, n)));
    }
}

fn client_byte(i: usize, n: usize) -> u8 {
    (i * 16 + n + 1) as u8
}

// Against a raw peer

fn cm_answers(packets: &[raw::Packet]) -> Vec<String> {
    let name = |p: &raw::Packet| match Message::parse(&p.payload).unwrap() {
        (tid, Message::Rej(rej)) => format!("Rej {} {tid}", rej.reason().0),
        (tid, message) => format!("{} {tid}", &format!("{message:?}")[..4].trim_end_matches('(')),
    };
    packets.iter().map(name).collect()
}

#[test]
fn a_repeated_request_is_answered_the_same_way() {
    let mut ep = endpoint(3);
    let now = Instant::ZERO;
    ep.transport.listen(PORT);
    let ask = mad(77, Message::Req(&req(TO_PEER)));
    ep.handle(now, &ask).unwrap();
    assert!(raw::drain(&mut ep, now).is_empty());
    ep.handle(now, &ask).unwrap();
    assert_eq!(cm_answers(&raw::drain(&mut ep, now)), ["Mra 77"]);
    let Some(Event::ConnectRequest { conn, .. }) = ep.transport.poll_event() else { panic!() };
    assert_eq!(ep.transport.poll_event(), None);
    ep.transport.accept(now, conn, options()).unwrap();
    let first = raw::drain(&mut ep, now);
    assert_eq!(cm_answers(&first), ["Rep 77"]);
    for _ in 0..2 {
        ep.handle(now, &ask).unwrap();
        let again = raw::drain(&mut ep, now);
        assert_eq!(again[0].payload, first[0].payload);
    }
    // The name of a connection is its identifier, whatever the transaction is; the answer is that of the first.
    ep.handle(now, &mad(78, Message::Req(&req(TO_PEER)))).unwrap();
    assert_eq!(raw::drain(&mut ep, now)[0].payload, first[0].payload);
    // It also repeats itself, for a while.
    assert_eq!(cm_answers(&raw::drain(&mut ep, now + Duration::from_millis(1074))), ["Rep 77"]);
}

/// No ICRC protects a frame's Ethernet addresses: one that a switch has changed costs a repetition and not the connection.
#[test]
fn a_repeated_request_corrects_the_way_back() {
    let mut net = Net::new(1, 2);
    net.ep(1).transport.listen(PORT);
    let first = Rc::new(RefCell::new(None));
    let kept = Rc::clone(&first);
    net.filter = Some(Box::new(move |from, frame| {
        let is_request = from == 0 && RocePacket::parse(frame).is_ok() && kept.borrow().is_none();
        is_request.then(|| kept.replace(Some(frame.to_vec()))).is_none()
    }));
    let now = net.now;
    let conn = net.ep(0).connect(now, ip(1), PORT, ConnectOptions::default()).unwrap();
    net.run(Duration::from_millis(1));
    let mut changed = first.borrow_mut().take().unwrap();
    first.replace(Some(Vec::new()));
    changed[11] ^= 0x10;
    net.inject(0, &changed);
    let Some(Event::ConnectRequest { conn: there, .. }) = net.event(1, Duration::from_millis(1)) else { panic!() };
    let now = net.now;
    net.ep(1).transport.accept(now, there, ConnectOptions::default()).unwrap();
    assert_eq!(net.event(0, Duration::from_millis(100)), None, "the REP goes to another");
    let event = net.event(0, Duration::from_secs(1));
    assert!(matches!(event, Some(Event::Connected { conn: ready, .. }) if ready == conn), "{event:?}");
}

/// Without an RTU the connection is half open for the time in the REQ, within bounds.
#[test]
fn a_half_open_connection_lives_as_long_as_its_request_says() {
    let code = |code: u8| Duration::from_nanos(cm::timeout_nanos(code));
    // Code and retries of the request, retries of this side; what is done.
    for (timeout, asked, own, wait, retries) in
        [(15, 1, 7, code(15), 1), (0, 0, 7, code(0), 0), (20, 15, 3, code(20), 3), (31, 1, 7, code(22), 1)]
    {
        let mut ep = endpoint(40);
        let mut now = Instant::ZERO;
        ep.transport.listen(PORT);
        let mut ask = req(TO_PEER);
        ask.set_local_cm_timeout(timeout);
        ask.set_max_cm_retries(asked);
        ep.handle(now, &mad(1, Message::Req(&ask))).unwrap();
        let Some(Event::ConnectRequest { conn, .. }) = ep.transport.poll_event() else { panic!() };
        ep.transport.accept(now, conn, ConnectOptions { cm_retries: own, ..options() }).unwrap();
        let expected = |n| [if n <= retries { "Rep 1" } else { "Rej 4 1" }];
        for n in 0..=retries + 1 {
            assert_eq!(cm_answers(&raw::drain(&mut ep, now)), expected(n), "{timeout} {asked} {own}: {n}");
            now = now + (wait - Duration::from_nanos(1));
            assert!(raw::drain(&mut ep, now).is_empty(), "{timeout} {asked} {own}: {n}");
            now = now + Duration::from_nanos(1);
        }
        assert_eq!(ep.transport.connections().count(), 0);
        assert!(matches!(
            ep.transport.poll_event(),
            Some(Event::ConnectFailed { reason: ConnectFailure::Timeout, .. })
        ));
    }
}

/// Only the general service interface at a unicast address gets replies.
#[test]
fn a_message_from_no_unicast_source_is_dropped() {
    let mut ep = endpoint(41);
    ep.transport.listen(PORT);
    let send = |ep: &mut Endpoint, source: u32, change: &dyn Fn(&mut RoceHeaders)| {
        let ext = Ext::Deth(Deth::new(cm::GSI_Q_KEY, Qpn::new(source)));
        let mut headers = raw::headers(Qpn::GSI, Opcode::UdSendOnly, Psn::new(0), ext);
        change(&mut headers);
        ep.handle(Instant::ZERO, &raw::frame(&headers, &Message::Req(&req(TO_PEER)).to_mad(1)))
    };
    for source in [0, 2, 0xff_ffff] {
        assert_eq!(send(&mut ep, source, &|_| {}), Err(Discard::CmSource));
    }
    for from in [[0, 0, 0, 0], [224, 0, 0, 1], [255; 4]] {
        let group = |h: &mut RoceHeaders| h.ip = Ipv4Header::new(from.into(), h.ip.dst(), h.ip.protocol);
        assert_eq!(send(&mut ep, 1, &group), Err(Discard::CmSource));
    }
    assert_eq!(send(&mut ep, 1, &|h| h.eth.src.0[0] |= 1), Err(Discard::NotForUs));
    assert_eq!((raw::drain(&mut ep, Instant::ZERO).len(), ep.transport.poll_event()), (0, None));
    send(&mut ep, 1, &|_| {}).unwrap();
    assert!(matches!(ep.transport.poll_event(), Some(Event::ConnectRequest { .. })));
}

#[test]
fn data_stands_for_a_lost_rtu() {
    let mut ep = endpoint(4);
    let now = Instant::ZERO;
    ep.transport.listen(PORT);
    ep.handle(now, &mad(1, Message::Req(&req(TO_PEER)))).unwrap();
    let Some(Event::ConnectRequest { conn, .. }) = ep.transport.poll_event() else { panic!() };
    ep.transport.post_recv(conn, RecvWr { id: 1, slice: None }).unwrap();
    ep.transport.accept(now, conn, options()).unwrap();
    let qpn = ep.transport.connection(conn).unwrap().local_qpn;
    let send = raw::frame(&raw::headers(qpn, Opcode::SendOnly, TO_ENDPOINT, Ext::None), &[]);
    raw::drain(&mut ep, now);
    ep.handle(now, &send).unwrap();
    assert!(matches!(ep.transport.poll_event(), Some(Event::Connected { .. })));
    assert!(matches!(ep.transport.poll_event(), Some(Event::Completion(_))));
    assert_eq!(raw::drain(&mut ep, now + Duration::from_secs(2)).len(), 1, "the ACK, and no more REP");
}

#[test]
fn a_lost_rtu_is_sent_again() {
    let mut raw = Raw::active(options());
    let mut rep = Rep::new(0x0bad_cafe, raw.comm_id, PEER_QPN, TO_PEER);
    rep.set_rnr_retry_count(7);
    raw.ep.handle(raw.now, &mad(5, Message::Rep(&rep))).unwrap();
    assert_eq!(cm_answers(&raw.drain()), ["Rtu 5"]);
    assert_eq!(raw.ep.transport.poll_event(), None);
    // Another connection's reply is refused.
    let stray = Rep::new(1, 2, PEER_QPN, TO_PEER);
    assert_eq!(raw.ep.handle(raw.now, &mad(6, Message::Rep(&stray))), Err(Discard::CmUnexpected));
    assert_eq!(cm_answers(&raw.drain()), ["Rej 6 6"]);
}

#[test]
fn requests_are_checked() {
    let mut ep = endpoint(5);
    ep.transport.listen(PORT);
    let mut refused = |tid, change: &dyn Fn(&mut cm::Req)| {
        let mut r = req(TO_PEER);
        change(&mut r);
        ep.handle(Instant::ZERO, &mad(tid, Message::Req(&r))).unwrap();
        assert_eq!(ep.transport.poll_event(), None);
        cm_answers(&raw::drain(&mut ep, Instant::ZERO))
    };
    assert_eq!(refused(1, &|r| r.set_transport(1)), ["Rej 9 1"]);
    assert_eq!(refused(2, &|r| r.service_id.set(cm::service_id(1))), ["Rej 8 2"]);
    assert_eq!(refused(3, &|r| r.service_id.set(0x1_0000_0000 | cm::service_id(PORT))), ["Rej 8 3"]);
    assert_eq!(refused(4, &|r| r.ip_cm = IpCm::new(5, ip(1), ip(2))), ["Rej 12 4"]);
    assert_eq!(refused(5, &|r| r.set_path_mtu(6)), ["Rej 26 5"]);
    assert_eq!(refused(6, &|r| r.set_path_mtu(4)), ["Rej 26 6"]);
    // An IP CM header for IPv6.
    let mut bytes = Message::Req(&req(TO_PEER)).to_mad(7);
    bytes[24 + 140 + 1] = 6 << 4;
    let ext = Ext::Deth(Deth::new(cm::GSI_Q_KEY, Qpn::GSI));
    let v6 = raw::frame(&raw::headers(Qpn::GSI, Opcode::UdSendOnly, Psn::new(0), ext), &bytes);
    ep.handle(Instant::ZERO, &v6).unwrap();
    assert_eq!(cm_answers(&raw::drain(&mut ep, Instant::ZERO)), ["Rej 5 7"]);
    assert_eq!(ep.transport.connections().count(), 0);
}

#[test]
fn mra_buys_time_but_not_for_ever() {
    let mut ep = endpoint(6);
    let mut now = Instant::ZERO;
    let conn = ep.connect(now, ip(1), PORT, options()).unwrap();
    raw::drain(&mut ep, now);
    let mut buf = [0; 60];
    nacelle_roce::wire::arp::ArpPacket::request(mac(0), ip(0), ip(1)).reply(mac(1)).write(&mut buf).unwrap();
    ep.handle(now, &buf).unwrap();
    let sent = raw::drain(&mut ep, now).pop().unwrap();
    let (tid, Message::Req(sent)) = Message::parse(&sent.payload).unwrap() else { panic!() };
    let mra = Mra::new(9, sent.local_comm_id.get(), 0, 31); // more than two hours
    ep.handle(now, &mad(tid, Message::Mra(&mra))).unwrap();
    now = now + Duration::from_secs(60);
    assert!(raw::drain(&mut ep, now).is_empty());
    now = now + Duration::from_secs(1);
    assert_eq!(raw::drain(&mut ep, now).len(), 1);
    assert_eq!(ep.transport.connection(conn).unwrap().phase, Phase::ReqSent);
}

#[test]
fn a_disconnect_request_is_always_answered() {
    let mut raw = Raw::passive();
    // Not this connection.
    raw.ep.handle(raw.now, &mad(8, Message::Dreq(&Dreq::new(1, raw.comm_id, raw.qpn)))).unwrap();
    assert_eq!(cm_answers(&raw.drain()), ["Drep 8"]);
    // This one, but not its queue pair.
    let wrong = Dreq::new(0x0bad_cafe, raw.comm_id, Qpn::new(5));
    assert_eq!(raw.ep.handle(raw.now, &mad(8, Message::Dreq(&wrong))), Err(Discard::CmUnexpected));
    assert!(raw.drain().is_empty());
    assert_eq!(raw.ep.transport.poll_event(), None);
    for _ in 0..2 {
        raw.dreq().unwrap();
        let answer = raw.drain();
        assert_eq!(cm_answers(&answer), ["Drep 9"]);
        let (_, Message::Drep(drep)) = Message::parse(&answer[0].payload).unwrap() else { panic!() };
        assert_eq!(*drep, Drep::new(raw.comm_id, 0x0bad_cafe));
    }
    assert!(matches!(
        raw.ep.transport.poll_event(),
        Some(Event::Disconnected { reason: DisconnectReason::Remote, .. })
    ));
    assert_eq!(raw.ep.transport.poll_event(), None);
    assert_eq!(raw.ep.transport.connection(raw.conn), None);
}

#[test]
fn a_queue_pair_used_anew_ends_its_old_connection() {
    let mut raw = Raw::passive();
    let mut anew = req(Psn::new(1));
    anew.local_comm_id.set(0x5555);
    raw.ep.handle(raw.now, &mad(3, Message::Req(&anew))).unwrap();
    let answers = raw.drain();
    assert_eq!(cm_answers(&answers[..1]), ["Rej 10 3"]);
    assert!(matches!(Message::parse(&answers[1].payload), Ok((_, Message::Dreq(_)))), "{answers:?}");
    assert_eq!(answers.len(), 2);
    assert!(matches!(
        raw.ep.transport.poll_event(),
        Some(Event::Disconnected { reason: DisconnectReason::Remote, .. })
    ));
    raw.ep.handle(raw.now, &mad(4, Message::Req(&anew))).unwrap();
    assert!(matches!(raw.ep.transport.poll_event(), Some(Event::ConnectRequest { .. })));
    // The old connection ends when its DREQs are not answered, without a further event.
    for _ in 0..9 {
        raw.wait(Duration::from_millis(1100));
    }
    assert_eq!((raw.ep.transport.connection(raw.conn), raw.ep.transport.poll_event()), (None, None));
}

/// The same, seen from the side that asks.
#[test]
fn a_reply_with_a_connected_queue_pair_is_refused() {
    let mut raw = Raw::active(options());
    let second = raw.ep.connect(raw.now, ip(1), PORT, options()).unwrap();
    let sent = raw.drain().pop().unwrap();
    let (tid, Message::Req(sent)) = Message::parse(&sent.payload).unwrap() else { panic!() };
    let rep = Rep::new(0x9999, sent.local_comm_id.get(), PEER_QPN, TO_PEER);
    raw.ep.handle(raw.now, &mad(tid, Message::Rep(&rep))).unwrap();
    let answers = raw.drain();
    assert_eq!(cm_answers(&answers[..1]), [format!("Rej 10 {tid}")]);
    let (_, Message::Dreq(dreq)) = Message::parse(&answers[1].payload).unwrap() else { panic!("{answers:?}") };
    assert_eq!((dreq.local_comm_id.get(), dreq.remote_qpn()), (raw.comm_id, PEER_QPN));
    let reason = ConnectFailure::BadReply;
    assert_eq!(raw.ep.transport.poll_event(), Some(Event::ConnectFailed { conn: second, reason }));
    assert!(matches!(
        raw.ep.transport.poll_event(),
        Some(Event::Disconnected { reason: DisconnectReason::Remote, .. })
    ));
}

#[test]
fn messages_out_of_place_change_nothing() {
    let mut raw = Raw::passive();
    for message in [
        Message::Rtu(&Rtu::new(0x0bad_cafe, raw.comm_id)),
        Message::Rej(&Rej::new(0x0bad_cafe, raw.comm_id ^ 1, 2, RejReason::CONSUMER)),
        Message::Rej(&Rej::new(0x0bad_caff, raw.comm_id, 2, RejReason::CONSUMER)),
        Message::Drep(&Drep::new(0x0bad_cafe, raw.comm_id)),
        Message::Mra(&Mra::new(0x0bad_cafe, raw.comm_id, 1, 20)),
    ] {
        assert_eq!(raw.ep.handle(raw.now, &mad(1, message)), Err(Discard::CmUnexpected), "{message:?}");
    }
    assert_eq!(raw.ep.transport.poll_event(), None);
    assert_eq!(raw.ep.transport.connection(raw.conn).unwrap().phase, Phase::Established);
    assert!(raw.drain().is_empty());
}

/// The peer aborts while its REP is on the way.
#[test]
fn a_reject_ends_a_connection_that_the_peer_never_had() {
    let mut raw = Raw::active(options());
    let rej = Rej::new(0x0bad_cafe, raw.comm_id, 2, RejReason::CONSUMER);
    raw.ep.handle(raw.now, &mad(1, Message::Rej(&rej))).unwrap();
    assert!(matches!(
        raw.ep.transport.poll_event(),
        Some(Event::Disconnected { reason: DisconnectReason::Remote, .. })
    ));
    assert_eq!(raw.ep.transport.connection(raw.conn), None);
}

/// After a failure that this side noticed as responder, the peer has time to say good-bye itself.
#[test]
fn a_failed_connection_is_closed_with_the_peer() {
    let mut raw = Raw::passive();
    raw.send(Opcode::SendLast, TO_ENDPOINT, Ext::None, &[1]).unwrap();
    assert_eq!(raw.drain().len(), 1, "the NAK");
    assert!(matches!(
        raw.ep.transport.poll_event(),
        Some(Event::Disconnected { reason: DisconnectReason::Error(_), .. })
    ));
    let later = raw.wait(Duration::from_secs(1));
    assert_eq!(cm_answers(&later).len(), 1);
    let (tid, Message::Dreq(dreq)) = Message::parse(&later[0].payload).unwrap() else { panic!() };
    assert_eq!((dreq.remote_qpn(), dreq.local_comm_id.get()), (PEER_QPN, raw.comm_id));
    let drep = Drep::new(0x0bad_cafe, raw.comm_id);
    raw.ep.handle(raw.now, &mad(tid, Message::Drep(&drep))).unwrap();
    assert_eq!((raw.ep.transport.connection(raw.conn), raw.ep.transport.poll_event()), (None, None));
}

fn hex(c: u8, len: usize) -> Vec<u8> {
    vec![c; len]
}

/// Starts with `said`, then zeros.
fn padded(said: &[u8], len: usize) -> Vec<u8> {
    let mut bytes = said.to_vec();
    bytes.resize(len, 0);
    bytes
}

#[test]
fn every_message_carries_private_data() {
    for (active_closes, selective_repeat) in [(true, true), (false, true), (true, false)] {
        let mut net = Net::new(20, 2);
        net.ep(1).transport.listen(PORT);
        let now = net.now;
        let ask = ConnectOptions {
            private_data: hex(1, 48),
            rtu_data: hex(2, 224),
            drep_data: hex(3, 224),
            selective_repeat,
            ..ConnectOptions::default()
        };
        let a = net.ep(0).connect(now, ip(1), PORT, ask).unwrap();
        let Some(Event::ConnectRequest { conn: b, private_data, .. }) = net.event(1, LONG) else { panic!() };
        assert_eq!(private_data, padded(&hex(1, 48), 56), "the record is not the application's");
        let answer = ConnectOptions { private_data: hex(4, 188), drep_data: hex(5, 224), ..ConnectOptions::default() };
        let now = net.now;
        net.ep(1).transport.accept(now, b, answer).unwrap();
        let Some(Event::Connected { private_data, .. }) = net.event(0, LONG) else { panic!() };
        assert_eq!(private_data, padded(&hex(4, 188), 196));
        let Some(Event::Connected { private_data, .. }) = net.event(1, LONG) else { panic!() };
        assert_eq!(private_data, hex(2, 224));
        for (i, conn) in [(0, a), (1, b)] {
            assert_eq!(net.ep(i).transport.connection(conn).unwrap().selective_repeat, selective_repeat);
        }

        let (closer, conn, drep) = if active_closes { (0, a, 5) } else { (1, b, 3) };
        let now = net.now;
        assert_eq!(net.ep(closer).transport.disconnect_with(now, conn, &[6; 221]), Err(ConnectError::PrivateData));
        net.ep(closer).transport.disconnect_with(now, conn, &[6; 220]).unwrap();
        let Some(Event::Disconnected { private_data, reason, .. }) = net.event(1 - closer, LONG) else { panic!() };
        assert_eq!((reason, private_data), (DisconnectReason::Remote, hex(6, 220)));
        let Some(Event::Disconnected { private_data, reason, .. }) = net.event(closer, LONG) else { panic!() };
        assert_eq!((reason, private_data), (DisconnectReason::Local, hex(drep, 224)));
        assert_quiet(&mut net);
    }
    let mut ep = endpoint(21);
    for o in [
        ConnectOptions { rtu_data: hex(0, 225), ..options() },
        ConnectOptions { drep_data: hex(0, 225), ..options() },
        ConnectOptions { private_data: hex(0, 57), ..options() },
    ] {
        assert_eq!(ep.connect(Instant::ZERO, ip(1), PORT, o), Err(ConnectError::PrivateData));
    }
}

/// Extensions need the agreement of both sides and 8 bytes of each message.
#[test]
fn selective_repeat_is_agreed() {
    let with = |selective_repeat, len| ConnectOptions {
        selective_repeat,
        private_data: hex(7, len),
        ..ConnectOptions::default()
    };
    for (active, passive, agreed) in [
        (with(true, 48), with(true, 188), true),
        (with(true, 49), with(true, 0), false),
        (with(true, 0), with(true, 189), false),
        (with(false, 0), with(true, 0), false),
        (with(true, 0), with(false, 0), false),
    ] {
        let mut net = Net::new(22, 2);
        let (a, b) = net.connect_with(0, 1, &active, &passive, |_, _| {});
        assert_eq!(net.ep(0).transport.connection(a).unwrap().selective_repeat, agreed);
        assert_eq!(net.ep(1).transport.connection(b).unwrap().selective_repeat, agreed);
    }
    // A REP that takes an extension that was not offered, or another version of it, has no effect.
    for (offered, change, agreed) in [(true, 0, true), (false, 0, false), (true, 1, false)] {
        let mut ep = endpoint(23);
        let o = ConnectOptions { selective_repeat: offered, ..options() };
        let (conn, tid, sent) = request(&mut ep, o);
        let mut rep = Rep::new(9, sent.local_comm_id.get(), PEER_QPN, TO_PEER);
        Agreement::new(Extensions::SELECTIVE_REPEAT, 0).put(&mut rep.private_data).unwrap();
        rep.private_data[192] += change;
        ep.handle(Instant::ZERO, &mad(tid, Message::Rep(&rep))).unwrap();
        assert_eq!(ep.transport.connection(conn).unwrap().selective_repeat, agreed);
    }
}

/// The applications agree on the extensions that both offer, and the smaller number of contexts; selective repeat is apart.
#[test]
fn applications_agree_in_the_same_record() {
    let offer = |extensions, contexts| Agreement::new(Extensions(extensions), contexts);
    let with = |agreement, selective_repeat, len| ConnectOptions {
        agreement,
        selective_repeat,
        private_data: hex(7, len),
        ..ConnectOptions::default()
    };
    for (active, passive, agreed, selective) in [
        (with(offer(6, 8), true, 48), with(offer(6, 4), true, 188), offer(6, 4), true),
        (with(offer(6, 3), false, 0), with(offer(6, 4), true, 0), offer(6, 3), false),
        (with(offer(2, 3), true, 0), with(offer(6, 4), false, 0), offer(2, 3), false),
        // The bit of selective repeat is not the application's.
        (with(offer(7, 3), false, 0), with(offer(7, 3), true, 0), offer(6, 3), false),
        (with(offer(0, 0), true, 0), with(offer(6, 4), true, 0), offer(0, 0), true),
        (with(offer(6, 4), true, 0), with(offer(0, 0), true, 0), offer(0, 0), true),
        (with(offer(6, 8), true, 49), with(offer(6, 4), true, 0), offer(0, 0), false),
        (with(offer(6, 8), true, 0), with(offer(6, 4), true, 189), offer(0, 0), false),
    ] {
        let mut net = Net::new(28, 2);
        net.ep(1).transport.listen(PORT);
        let now = net.now;
        let offers = active.private_data.len() <= 48;
        let expected =
            if offers { offer(active.agreement.extensions.0 & !1, active.agreement.contexts) } else { offer(0, 0) };
        let a = net.ep(0).connect(now, ip(1), PORT, active).unwrap();
        let Some(Event::ConnectRequest { conn: b, offered, .. }) = net.event(1, LONG) else { panic!() };
        assert_eq!(offered, expected);
        let now = net.now;
        net.ep(1).transport.accept(now, b, passive).unwrap();
        assert!(matches!(net.event(0, LONG), Some(Event::Connected { .. })));
        for (i, conn) in [(0, a), (1, b)] {
            let info = net.ep(i).transport.connection(conn).unwrap();
            assert_eq!((info.agreement, info.selective_repeat), (agreed, selective));
        }
    }
    // A REP that takes more than was offered.
    let mut ep = endpoint(29);
    let (conn, tid, sent) = request(&mut ep, ConnectOptions { agreement: offer(2, 4), ..options() });
    assert_eq!(sent.private_data[48..], *b"NACL\x01\x03\x04\x00");
    let mut rep = Rep::new(9, sent.local_comm_id.get(), PEER_QPN, TO_PEER);
    offer(7, 9).put(&mut rep.private_data).unwrap();
    ep.handle(Instant::ZERO, &mad(tid, Message::Rep(&rep))).unwrap();
    assert_eq!(ep.transport.connection(conn).unwrap().agreement, offer(2, 4));
}

/// Connects to the raw peer up to the REQ, which is returned with its transaction.
fn request(ep: &mut Endpoint, options: ConnectOptions) -> (nacelle_roce::ConnId, u64, Box<cm::Req>) {
    let now = Instant::ZERO;
    let conn = ep.connect(now, ip(1), PORT, options).unwrap();
    raw::drain(ep, now);
    let mut buf = [0; 60];
    nacelle_roce::wire::arp::ArpPacket::request(mac(0), ip(0), ip(1)).reply(mac(1)).write(&mut buf).unwrap();
    ep.handle(now, &buf).unwrap();
    let sent = raw::drain(ep, now).pop().unwrap();
    let (tid, Message::Req(sent)) = Message::parse(&sent.payload).unwrap() else { panic!() };
    (conn, tid, Box::new(*sent))
}

#[test]
fn reads_in_flight_are_agreed() {
    let with = |responder_resources, initiator_depth| ConnectOptions {
        responder_resources,
        initiator_depth,
        ..ConnectOptions::default()
    };
    for (active, passive, expected) in [
        (ConnectOptions::default(), ConnectOptions::default(), [(16, 16), (16, 16)]),
        (with(4, 200), with(16, 2), [(2, 16), (16, 2)]),
        (with(0, 1), with(5, 5), [(0, 1), (1, 0)]),
    ] {
        let mut net = Net::new(24, 2);
        let (a, b) = net.connect_with(0, 1, &active, &passive, |_, _| {});
        let agreed = [(0, a), (1, b)].map(|(i, conn)| {
            let info = net.ep(i).transport.connection(conn).unwrap();
            (info.responder_resources, info.initiator_depth)
        });
        assert_eq!(agreed, expected);
    }
    // A peer that promises more than was asked for.
    let mut ep = endpoint(25);
    let (conn, tid, sent) = request(&mut ep, with(2, 3));
    assert_eq!((sent.responder_resources, sent.initiator_depth), (2, 3));
    let mut rep = Rep::new(9, sent.local_comm_id.get(), PEER_QPN, TO_PEER);
    (rep.responder_resources, rep.initiator_depth) = (255, 255);
    ep.handle(Instant::ZERO, &mad(tid, Message::Rep(&rep))).unwrap();
    let info = ep.transport.connection(conn).unwrap();
    assert_eq!((info.responder_resources, info.initiator_depth), (2, 3));
}

/// The flow label is the one that Linux makes of the ports.
#[test]
fn requests_look_like_those_of_linux() {
    let (_, _, sent) = request(&mut endpoint(26), options());
    let label = (u32::from(sent.ip_cm.src_port.get()) * 31 + u32::from(PORT)) & 0xf_ffff;
    assert_eq!(sent.flow_label(), label);
    assert_eq!(sent.private_data[..48], [0; 48]);
    assert_eq!(sent.private_data[48..], *b"NACL\x01\x01\0\0");
    let (_, _, plain) = request(&mut endpoint(26), ConnectOptions { selective_repeat: false, ..options() });
    assert_eq!(plain.private_data, [0; 56]);
}

#[test]
fn every_port_can_be_listened_on() {
    for port in [1, 4791, 18515, 0xffff] {
        let mut net = Net::new(27, 2);
        net.ep(1).transport.listen(port);
        let now = net.now;
        net.ep(0).connect(now, ip(1), port, ConnectOptions::default()).unwrap();
        let Some(Event::ConnectRequest { port: asked, .. }) = net.event(1, LONG) else { panic!() };
        assert_eq!(asked, port);
    }
}

#[test]
fn every_reject_reason_arrives() {
    for reason in (1..=33).map(RejReason) {
        let mut net = Net::new(28, 2);
        net.ep(1).transport.listen(PORT);
        let now = net.now;
        net.ep(0).connect(now, ip(1), PORT, ConnectOptions::default()).unwrap();
        let Some(Event::ConnectRequest { conn, .. }) = net.event(1, LONG) else { panic!() };
        assert_eq!(net.ep(1).transport.reject_with(conn, reason, &[1; 149]), Err(ConnectError::PrivateData));
        net.ep(1).transport.reject_with(conn, reason, &[8; 148]).unwrap();
        assert_eq!(failure(&mut net, 0), ConnectFailure::Rejected { reason, private_data: hex(8, 148) });
        assert_ne!(reason.text(), "refused", "{reason:?} has a name");
        assert_quiet(&mut net);
    }
}

/// The passive side's application decides late; the peer, with the timeout of Linux or less, gets an MRA.
#[test]
fn a_slow_application_sends_an_mra_in_time() {
    for cm_timeout in [Duration::from_millis(10), Duration::from_secs(1), Duration::from_secs(5)] {
        let mut net = Net::new(29, 2);
        net.log = Some(Vec::new());
        net.ep(1).transport.listen(PORT);
        let now = net.now;
        let o = ConnectOptions { cm_timeout, cm_retries: 1, ..ConnectOptions::default() };
        net.ep(0).connect(now, ip(1), PORT, o).unwrap();
        let Some(Event::ConnectRequest { conn, .. }) = net.event(1, LONG) else { panic!() };
        net.run(Duration::from_secs(50));
        let now = net.now;
        net.ep(1).transport.accept(now, conn, ConnectOptions::default()).unwrap();
        assert!(matches!(net.event(0, LONG), Some(Event::Connected { .. })));
        assert!(matches!(net.event(1, LONG), Some(Event::Connected { .. })));
        let kinds =
            |node| net.sent(node, |p| Message::parse(p.payload).ok().map(|(_, m)| format!("{m:?}")[..3].to_owned()));
        assert_eq!(kinds(0), ["Req", "Rtu"]);
        assert_eq!(kinds(1), ["Mra", "Rep"]);
    }
}

#[test]
fn mras_do_not_buy_time_for_ever() {
    let mut ep = endpoint(30);
    let (conn, tid, sent) = request(&mut ep, ConnectOptions { cm_retries: 3, ..options() });
    let mut now = Instant::ZERO;
    // One for a REP is out of place; one for the REQ counts as a repetition.
    let mra = |message| mad(tid, Message::Mra(&Mra::new(9, sent.local_comm_id.get(), message, 18)));
    assert_eq!(ep.handle(now, &mra(1)), Err(Discard::CmUnexpected));
    assert_eq!(ep.handle(now, &mra(2)), Err(Discard::CmUnexpected));
    for _ in 0..100 {
        ep.handle(now, &mra(0)).unwrap();
        now = now + Duration::from_secs(1);
        raw::drain(&mut ep, now);
        if ep.transport.connection(conn).is_none() {
            break;
        }
    }
    assert!(matches!(ep.transport.poll_event(), Some(Event::ConnectFailed { reason: ConnectFailure::Timeout, .. })));
    assert!(now <= Instant::ZERO + Duration::from_secs(10), "{now:?}");

    // The same for a REP.
    let mut ep = endpoint(31);
    let now = Instant::ZERO;
    ep.transport.listen(PORT);
    ep.handle(now, &mad(1, Message::Req(&req(TO_PEER)))).unwrap();
    let Some(Event::ConnectRequest { conn, .. }) = ep.transport.poll_event() else { panic!() };
    ep.transport.accept(now, conn, options()).unwrap();
    let rep = raw::drain(&mut ep, now).pop().unwrap();
    let (_, Message::Rep(rep)) = Message::parse(&rep.payload).unwrap() else { panic!() };
    let local = rep.local_comm_id.get();
    let peers = rep.remote_comm_id.get();
    for (id, message) in [(peers, 0), (9, 1)] {
        let mra = Mra::new(id, local, message, 22);
        assert_eq!(ep.handle(now, &mad(1, Message::Mra(&mra))), Err(Discard::CmUnexpected));
    }
    ep.handle(now, &mad(1, Message::Mra(&Mra::new(peers, local, 1, 22)))).unwrap();
    assert!(raw::drain(&mut ep, now + Duration::from_secs(17)).is_empty());
    assert_eq!(cm_answers(&raw::drain(&mut ep, now + Duration::from_secs(19))), ["Rep 1"]);
}

/// A duplicate of a REQ that arrives after the end of its connection is a new REQ, as for Linux. The peer has no such connection, and rejects the REP.
#[test]
fn a_request_after_the_end_is_a_new_one() {
    let mut raw = Raw::passive();
    raw.dreq().unwrap();
    raw.drain();
    assert!(matches!(raw.ep.transport.poll_event(), Some(Event::Disconnected { .. })));
    raw.ep.handle(raw.now, &mad(1, Message::Req(&req(TO_PEER)))).unwrap();
    let Some(Event::ConnectRequest { conn, .. }) = raw.ep.transport.poll_event() else { panic!() };
    raw.ep.transport.accept(raw.now, conn, options()).unwrap();
    let answer = raw.drain().pop().unwrap();
    let (_, Message::Rep(rep)) = Message::parse(&answer.payload).unwrap() else { panic!() };
    assert_ne!(rep.local_comm_id.get(), raw.comm_id);
    // Not by a message that names another connection.
    let refusal = |own| Rej::new(own, rep.local_comm_id.get(), 1, RejReason::INVALID_COMM_ID);
    let other = raw.ep.handle(raw.now, &mad(1, Message::Rej(&refusal(0x5555))));
    assert_eq!(other, Err(Discard::CmUnexpected));
    raw.ep.handle(raw.now, &mad(1, Message::Rej(&refusal(rep.remote_comm_id.get())))).unwrap();
    let Some(Event::ConnectFailed { reason: ConnectFailure::Rejected { reason, .. }, .. }) =
        raw.ep.transport.poll_event()
    else {
        panic!()
    };
    assert_eq!(reason, RejReason::INVALID_COMM_ID);
    assert_eq!(raw.ep.transport.connections().count(), 0);
}

/// A REJ for a timeout has the GUID of this side's adapter: a peer without an identifier yet finds the connection by it.
#[test]
fn a_timeout_names_the_adapter() {
    let mut ep = endpoint(33);
    let (conn, _, sent) = request(&mut ep, options());
    ep.transport.disconnect(Instant::ZERO, conn);
    let rej = raw::drain(&mut ep, Instant::ZERO).pop().unwrap();
    let (_, Message::Rej(rej)) = Message::parse(&rej.payload).unwrap() else { panic!() };
    assert_eq!((rej.reason(), rej.message_rejected()), (RejReason::TIMEOUT, 2));
    assert_eq!(rej.information(), sent.local_ca_guid.get().to_be_bytes());
}

/// Two endpoints ask each other at once: two connections, as with Linux.
#[test]
fn crossed_requests() {
    seeds(0..20, |seed| {
        let mut net = Net::new(seed, 2);
        net.impairment =
            Impairment { loss: (seed % 3) as f64 * 10.0, duplicate: 20.0, reorder: 20.0, ..Impairment::default() };
        let o = ConnectOptions { cm_timeout: Duration::from_millis(5), cm_retries: 15, ..ConnectOptions::default() };
        let now = net.now;
        for i in 0..2 {
            net.ep(i).transport.listen(PORT);
            net.ep(i).connect(now, ip(1 - i), PORT, o.clone()).unwrap();
        }
        let mut connected = [0; 2];
        net.run_until(LONG, |net| {
            for (i, connected) in connected.iter_mut().enumerate() {
                while let Some(event) = net.nodes[i].events.pop_front() {
                    match event {
                        Event::ConnectRequest { conn, .. } => {
                            let now = net.now;
                            net.ep(i).transport.accept(now, conn, o.clone()).unwrap();
                        }
                        Event::Connected { .. } => *connected += 1,
                        other => panic!("{other:?}"),
                    }
                }
            }
            connected == [2, 2]
        });
        assert_eq!(connected, [2, 2]);
        // Good-byes cross as well, in a network that loses and repeats.
        let now = net.now;
        for i in 0..2 {
            let all: Vec<_> = net.ep(i).transport.connections().map(|(id, _)| id).collect();
            assert_eq!(all.len(), 2);
            for id in all {
                net.ep(i).transport.disconnect(now, id);
            }
        }
        net.run(LONG);
        for i in 0..2 {
            let events = std::mem::take(&mut net.nodes[i].events);
            assert_eq!(events.len(), 2, "{events:?}");
            assert!(events.iter().all(|e| matches!(e, Event::Disconnected { .. })), "{events:?}");
        }
        assert_quiet(&mut net);
    });
}
