// SPDX-License-Identifier: Apache-2.0
//! The transport over UDP datagrams alone, without an interface of this crate: IPv6 in memory, in batches as UDP_SEGMENT and
//! UDP_GRO have them; and both IP versions over sockets of the kernel, which does IP and hides its header.

use nacelle_roce::{
    Access, ConnId, ConnInfo, ConnectFailure, ConnectOptions, Discard, Event, Hop, Instant, Network, Path, RecvWr,
    Region, Segment, SendWr, Transmit, Transport, TransportConfig, WcOpcode, WcStatus,
    wire::{Ecn, cm::PathMtu, icrc},
};
use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    time::Duration,
};

const PORT: u16 = 12345;
const NOW: Instant = Instant::ZERO;

fn transport(number: u8, ip_mtu: usize) -> Transport {
    let network = Network { ip_mtu, overhead: 48 };
    Transport::new(TransportConfig::new(network, u64::from(number), [number; 32]))
}

/// Answers the path requests of a transport at `local`.
fn resolve(transport: &mut Transport, local: IpAddr) {
    while let Some(remote) = transport.poll_path_request() {
        transport.path_resolved(NOW, remote, Some(Path { local, remote, hop: Hop::default() }));
    }
}

/// A network in memory that carries batches from one transport to the other.
struct Pair {
    ends: [(IpAddr, Transport); 2],
    max_segments: usize,
    /// Every batch sent: by whom, and how.
    batches: Vec<(usize, Transmit)>,
}

impl Pair {
    fn new(max_segments: usize) -> Self {
        let ips = ["2001:db8::1", "2001:db8::2"].map(|ip| ip.parse().unwrap());
        let ends = [(ips[0], transport(1, 1500)), (ips[1], transport(2, 1500))];
        Self { ends, max_segments, batches: Vec::new() }
    }

    fn exchange(&mut self) {
        let mut buf = vec![0; 65536];
        let mut silent = 0;
        for from in [0, 1].into_iter().cycle() {
            let (ip, end) = &mut self.ends[from];
            resolve(end, *ip);
            let Some(sent) = end.poll_transmit(NOW, &mut buf, self.max_segments) else {
                silent += 1;
                if silent == 2 {
                    return;
                }
                continue;
            };
            silent = 0;
            assert_eq!(sent.path.local, *ip);
            let path = Path { local: sent.path.remote, remote: sent.path.local, hop: Hop::default() };
            let stride = sent.segment_size.unwrap_or(sent.len);
            let segments: Vec<_> = Segment::coalesced(path, sent.ecn, buf[..sent.len].into(), stride).collect();
            assert!(segments.iter().map(|s| s.payload.len()).eq(sent.segment_lens()));
            assert!(segments.len() <= self.max_segments);
            self.ends[1 - from].1.handle_all(NOW, segments);
            self.batches.push((from, sent));
        }
    }

    /// Connects the first to the second, and registers `len` bytes there.
    fn connect(&mut self, len: usize) -> (ConnId, ConnId, Region) {
        let (server_ip, server) = &mut self.ends[1];
        let server_ip = *server_ip;
        server.listen(PORT);
        let here = self.ends[0].1.connect(NOW, server_ip, PORT, ConnectOptions::default()).unwrap();
        self.exchange();
        let (client_ip, (_, server)) = (self.ends[0].0, &mut self.ends[1]);
        let Some(Event::ConnectRequest { conn: there, peer, .. }) = server.poll_event() else { panic!() };
        assert_eq!(peer, client_ip);
        let region = server.register(vec![0; len], Access::REMOTE_WRITE | Access::REMOTE_READ, Some(there)).unwrap();
        server.post_recv(there, RecvWr { id: 1, slice: None }).unwrap();
        server.accept(NOW, there, ConnectOptions::default()).unwrap();
        self.exchange();
        for (_, end) in &mut self.ends {
            assert!(matches!(end.poll_event(), Some(Event::Connected { .. })));
        }
        (here, there, region)
    }

    fn info(&self, end: usize, conn: ConnId) -> ConnInfo {
        self.ends[end].1.connection(conn).unwrap()
    }
}

fn success(transport: &mut Transport, opcode: WcOpcode) {
    match transport.poll_event() {
        Some(Event::Completion(c)) => assert_eq!((c.opcode, c.status), (opcode, WcStatus::Success)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn ipv6_in_batches() {
    let data: Vec<u8> = (0..100_001u32).map(|i| (i ^ i >> 8) as u8).collect();
    for max_segments in [1, 2, 64] {
        let mut pair = Pair::new(max_segments);
        let (here, there, region) = pair.connect(data.len());
        assert_eq!(pair.info(0, here).path_mtu, PathMtu::Mtu1024);
        assert_eq!(pair.info(1, there).path.unwrap().remote, pair.ends[0].0);
        pair.batches.clear();
        let client = &mut pair.ends[0].1;
        client.post_send(here, SendWr::write_imm(1, &data[..], region.addr, region.rkey, 7)).unwrap();
        let target = client.register(vec![0; data.len()], Access::LOCAL, Some(here)).unwrap();
        client.post_send(here, SendWr::read(2, target.all(), region.addr, region.rkey)).unwrap();
        pair.exchange();
        success(&mut pair.ends[0].1, WcOpcode::Write);
        success(&mut pair.ends[0].1, WcOpcode::Read);
        success(&mut pair.ends[1].1, WcOpcode::RecvWrite);
        assert!(pair.ends[0].1.deregister(target.id).unwrap().into_vec().unwrap() == data);
        // Both the WRITE and the READ response have 98 packets; a batch has as many as the window and the sizes let.
        for from in [0, 1] {
            let sizes: Vec<usize> = pair
                .batches
                .iter()
                .filter(|(end, sent)| *end == from && sent.len > 100)
                .map(|(_, sent)| sent.segment_lens().count())
                .collect();
            assert!(sizes.iter().sum::<usize>() >= 98, "{sizes:?}");
            assert!(sizes.len() <= 98_usize.div_ceil(max_segments) + 4, "{max_segments}: {sizes:?}");
        }
        // Equal segments, but for the last.
        for (_, sent) in &pair.batches {
            let lens: Vec<usize> = sent.segment_lens().collect();
            assert!(lens[..lens.len() - 1].iter().all(|len| Some(*len) == sent.segment_size), "{lens:?}");
            assert!(*lens.last().unwrap() <= lens[0], "{lens:?}");
        }
    }
}

/// Messages of growing length: each packet is longer than the one before, so no two of them share a batch.
#[test]
fn a_longer_segment_begins_a_batch_of_its_own() {
    let mut pair = Pair::new(64);
    let (here, _, region) = pair.connect(4096);
    pair.batches.clear();
    for (i, len) in [1, 100, 200, 300, 300, 250].into_iter().enumerate() {
        let addr = region.addr.checked_add(512 * i as u64).unwrap();
        let request = SendWr::write(1, vec![len as u8; len], addr, region.rkey);
        pair.ends[0].1.post_send(here, request).unwrap();
    }
    pair.exchange();
    let counts: Vec<usize> =
        pair.batches.iter().filter(|(from, _)| *from == 0).map(|(_, sent)| sent.segment_lens().count()).collect();
    assert_eq!(counts, [1, 1, 1, 3]);
    (0..6).for_each(|_| success(&mut pair.ends[0].1, WcOpcode::Write));
}

/// A packet of the right queue pair between other addresses is not the connection's, whatever the IP version.
#[test]
fn both_addresses_are_checked() {
    let mut pair = Pair::new(1);
    let (here, _, region) = pair.connect(16);
    pair.ends[0].1.post_send(here, SendWr::write(1, vec![1], region.addr, region.rkey)).unwrap();
    let mut buf = vec![0; 2000];
    let sent = pair.ends[0].1.poll_transmit(NOW, &mut buf, 1).unwrap();
    let path = Path { local: sent.path.remote, remote: sent.path.local, hop: Hop::default() };
    let stranger = "2001:db8::99".parse().unwrap();
    let v4 = "10.0.0.1".parse().unwrap();
    let server = &mut pair.ends[1].1;
    for wrong in [
        Path { remote: stranger, ..path },
        Path { local: stranger, ..path },
        Path { remote: v4, ..path },
        Path { local: v4, ..path },
    ] {
        let segment = Segment { path: wrong, ecn: Ecn::NotEct, payload: (&buf[..sent.len]).into() };
        assert_eq!(server.handle(NOW, &segment), Err(Discard::WrongPeer));
    }
    assert_eq!(server.counters().discard_wrong_peer, 4);
    server.handle(NOW, &Segment { path, ecn: Ecn::NotEct, payload: (&buf[..sent.len]).into() }).unwrap();
}

#[test]
fn a_peer_without_a_path_is_unreachable() {
    let mut transport = transport(1, 1500);
    let peer = "2001:db8::7".parse().unwrap();
    let conn = transport.connect(NOW, peer, PORT, ConnectOptions::default()).unwrap();
    assert_eq!((transport.poll_path_request(), transport.poll_path_request()), (Some(peer), None));
    assert_eq!(transport.poll_transmit(NOW, &mut [0; 2000], 1), None);
    transport.path_resolved(NOW, peer, None);
    let reason = ConnectFailure::Unreachable;
    assert_eq!(transport.poll_event(), Some(Event::ConnectFailed { conn, reason }));
}

/// A transport over a socket of the kernel. Of the IP header it has the addresses and, of what Linux sends from an unconnected
/// socket, that the identification of IPv4 is 0: all that the ICRC covers.
struct Node {
    transport: Transport,
    socket: UdpSocket,
    wrong: usize,
}

impl Node {
    fn new(number: u8, socket: UdpSocket) -> Self {
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        Self { transport: transport(number, 4200), socket, wrong: 0 }
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    /// Sends what there is, and takes what has come.
    fn turn(&mut self, peer: SocketAddr) {
        let own = self.address();
        resolve(&mut self.transport, own.ip());
        let mut buf = vec![0; 65536];
        while let Some(sent) = self.transport.poll_transmit(NOW, &mut buf, 8) {
            let mut rest = &mut buf[..sent.len];
            for len in sent.segment_lens() {
                let (segment, behind) = std::mem::take(&mut rest).split_at_mut(len);
                rest = behind;
                let (packet, crc) = segment.split_at_mut(len - icrc::LEN);
                crc.copy_from_slice(&icrc::of_datagram(own, peer, 0, packet).unwrap());
                self.socket.send_to(segment, peer).unwrap();
            }
        }
        while let Ok((len, from)) = self.socket.recv_from(&mut buf) {
            let (packet, crc) = icrc::split(&buf[..len]).unwrap();
            if icrc::of_datagram(from, own, 0, packet) != Some(*crc) {
                self.wrong += 1;
                continue;
            }
            let path = Path { local: own.ip(), remote: from.ip(), hop: Hop::default() };
            let segment = Segment { path, ecn: Ecn::NotEct, payload: (&buf[..len]).into() };
            self.transport.handle(NOW, &segment).unwrap();
        }
    }
}

fn over_sockets(local: &str) {
    let Ok(sockets) = (0..2).map(|_| UdpSocket::bind((local, 0))).collect::<Result<Vec<_>, _>>() else {
        eprintln!("{local} does not exist here");
        return;
    };
    let mut nodes: Vec<Node> = (1..).zip(sockets).map(|(number, socket)| Node::new(number, socket)).collect();
    let addresses = [nodes[0].address(), nodes[1].address()];
    let turn = |nodes: &mut Vec<Node>| (0..2).for_each(|i| nodes[i].turn(addresses[1 - i]));
    nodes[1].transport.listen(PORT);
    let here = nodes[0].transport.connect(NOW, addresses[1].ip(), PORT, ConnectOptions::default()).unwrap();
    let there = loop {
        turn(&mut nodes);
        if let Some(Event::ConnectRequest { conn, peer, .. }) = nodes[1].transport.poll_event() {
            assert_eq!(peer, addresses[0].ip());
            break conn;
        }
    };
    let region = nodes[1].transport.register(vec![0; 20_000], Access::REMOTE_WRITE, Some(there)).unwrap();
    nodes[1].transport.accept(NOW, there, ConnectOptions::default()).unwrap();
    while !matches!(nodes[0].transport.poll_event(), Some(Event::Connected { .. })) {
        turn(&mut nodes);
    }
    // A datagram with a wrong ICRC, as if it was damaged on its way.
    nodes[0].socket.send_to(&[0; 64], addresses[1]).unwrap();
    let data: Vec<u8> = (0..20_000u32).map(|i| i as u8).collect();
    nodes[0].transport.post_send(here, SendWr::write(1, &data[..], region.addr, region.rkey)).unwrap();
    loop {
        turn(&mut nodes);
        if let Some(Event::Completion(done)) = nodes[0].transport.poll_event() {
            assert_eq!(done.status, WcStatus::Success);
            break;
        }
    }
    assert!(nodes[1].transport.deregister(region.id).unwrap().into_vec().unwrap() == data);
    assert_eq!((nodes[0].wrong, nodes[1].wrong), (0, 1));
}

#[test]
fn over_udp_sockets_of_the_kernel() {
    over_sockets("::1");
    over_sockets("127.0.0.1");
}
