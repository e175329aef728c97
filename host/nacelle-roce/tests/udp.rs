// SPDX-License-Identifier: Apache-2.0
//! The network layer of a UDP socket: the ICRC of what it sends is that of the Ethernet layer, and it finds what it cannot see.

use nacelle_roce::{
    Access, ConnId, ConnectOptions, Datagrams, Discard, Endpoint, Event, Hop, Instant, Numbering, Path, RecvWr, Region,
    SendWr, Transmit, TransportConfig, UdpInterface, WcStatus,
    memory::Bytes,
    wire::{
        Ecn, ParseError, Psn, Qpn, RocePacket,
        bth::{Bth, Opcode},
        ethernet::{ETHERTYPE_IPV4, EthernetHeader},
        ipv4::{Ipv4Header, PROTOCOL_UDP},
        roce::{LOWER_LEN, seal},
        transport::{Ext, Headers},
        udp::UdpHeader,
    },
};
use proptest::prelude::*;
use std::net::{Ipv4Addr, SocketAddr};

const NOW: Instant = Instant::ZERO;
const PORT: u16 = 12345;

fn v4(number: u8) -> SocketAddr {
    ([127, 0, 0, number], 4791).into()
}

fn v6(number: u16) -> SocketAddr {
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, number], 4791).into()
}

fn transmit(from: SocketAddr, to: SocketAddr, len: usize, segment_size: Option<usize>) -> Transmit {
    let path = Path { local: from.ip(), remote: to.ip(), hop: Hop::default() };
    Transmit { path, source_port: 0xc123, dscp: 0, ecn: Ecn::NotEct, len, segment_size }
}

/// A WRITE packet with room for its ICRC, which is not filled in.
fn packet(psn: u32, payload: &[u8]) -> Vec<u8> {
    let headers = Headers::new(Bth::new(Opcode::WriteMiddle, Qpn::new(9), Psn::new(psn)), Ext::None);
    let mut bytes = vec![0; headers.packet_len(payload.len())];
    headers.write(payload.len(), &mut bytes).unwrap().0.copy_from_slice(payload);
    bytes
}

/// The same packet as an Ethernet frame with this identification.
fn framed(from: SocketAddr, to: SocketAddr, identification: u16, packet: &[u8]) -> Vec<u8> {
    let ip = |address: SocketAddr| match address {
        SocketAddr::V4(address) => *address.ip(),
        SocketAddr::V6(_) => panic!("{address} is no IPv4 address"),
    };
    let mut header = Ipv4Header::new(ip(from), ip(to), PROTOCOL_UDP);
    header.identification.set(identification);
    let mut frame = vec![0; LOWER_LEN];
    frame.extend_from_slice(packet);
    let eth = EthernetHeader::new([2; 6].into(), [4; 6].into(), ETHERTYPE_IPV4);
    seal(eth, header, UdpHeader::roce(from.port()), &mut frame).unwrap();
    frame
}

proptest! {
    /// Every segment of a batch has the ICRC that the same packet has in an Ethernet frame whose identification is the segment's
    /// place in the batch.
    #[test]
    fn a_batch_is_sealed_as_its_frames_are(payload in proptest::collection::vec(any::<u8>(), 4..400), count in 1usize..20, last in 0usize..4) {
        let mut packets: Vec<Vec<u8>> = (0..count as u32).map(|psn| packet(psn, &payload)).collect();
        *packets.last_mut().unwrap() = packet(count as u32, &payload[..last]);
        let stride = packets[0].len();
        for numbering in [Numbering::Counted, Numbering::Alone] {
            let mut batch = packets.concat();
            let sent = transmit(v4(1), v4(2), batch.len(), (count > 1).then_some(stride));
            sent.seal(v4(1), &mut batch, numbering);
            for (index, segment) in batch.chunks(stride).enumerate() {
                let identification = if numbering == Numbering::Counted { index as u16 } else { 0 };
                let frame = framed(v4(1), v4(2), identification, &packets[index]);
                prop_assert_eq!(segment, &frame[LOWER_LEN..]);
                prop_assert!(RocePacket::parse(&frame).is_ok());
            }
        }
    }

    /// Whatever the identification, the length and the source port are, the identification is found.
    #[test]
    fn the_identification_is_found(payload in proptest::collection::vec(any::<u8>(), 0..300), identification: u16, port: u16, index in 0usize..64) {
        let from = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 7), port));
        let frame = framed(from, v4(2), identification, &packet(5, &payload));
        let found = UdpInterface::new(v4(2), 4200).identification(from, index, &frame[LOWER_LEN..]);
        prop_assert_eq!(found, Ok(identification));
    }

    /// Over IPv6 there is no identification, and every damage is noticed.
    #[test]
    fn ipv6_is_checked_in_full(payload in proptest::collection::vec(any::<u8>(), 0..300), flip in any::<prop::sample::Index>(), index in 0usize..64) {
        let mut segment = packet(5, &payload);
        let sent = transmit(v6(1), v6(2), segment.len(), None);
        sent.seal(v6(1), &mut segment, Numbering::Counted);
        let mut receiver = UdpInterface::new(v6(2), 4200);
        prop_assert_eq!(receiver.identification(v6(1), index, &segment), Ok(0));
        prop_assert_eq!(receiver.identification(v6(3), index, &segment), Err(ParseError::Icrc));
        let bit = flip.index(segment.len() * 8);
        prop_assume!(bit / 8 != 4); // FECN and BECN are left out
        segment[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(receiver.identification(v6(1), index, &segment), Err(ParseError::Icrc));
    }
}

/// Of random damage of IPv4 packets about one in 2^16 looks like another identification, and no more.
#[test]
fn damage_has_a_chance_of_one_in_65536() {
    let mut receiver = UdpInterface::new(v4(2), 4200);
    let mut segment = packet(5, &[0x5a; 64]);
    let sent = transmit(v4(1), v4(2), segment.len(), None);
    sent.seal(v4(1), &mut segment, Numbering::Counted);
    let mut random = 1u32;
    let mut passed = 0;
    for _ in 0..1 << 18 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let mut damaged = segment.clone();
        damaged[20..24].copy_from_slice(&(random ^ random >> 15).to_le_bytes());
        passed += u32::from(receiver.identification(v4(1), 0, &damaged).is_ok());
    }
    assert!((1..=12).contains(&passed), "{passed} of 2^18; 4 are to be expected");
    // A single inverted bit is noticed, wherever it is.
    for bit in (0..segment.len() * 8).filter(|bit| bit / 8 != 4) {
        let mut damaged = segment.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(receiver.identification(v4(1), 0, &damaged), Err(ParseError::Icrc), "bit {bit}");
    }
}

/// Two endpoints on sockets that coalesce what they receive.
struct Pair {
    ends: [(SocketAddr, Endpoint<UdpInterface>); 2],
    sends: usize,
    /// The ICRCs are left out.
    unsealed: bool,
}

impl Pair {
    fn new(addresses: [SocketAddr; 2]) -> Self {
        let end = |number: u8, address| {
            let interface = UdpInterface::new(address, 4200);
            let network = nacelle_roce::Network { ip_mtu: 0, overhead: 0 }; // the interface knows better
            (address, Endpoint::over_udp(interface, TransportConfig::new(network, number.into(), [number; 32])))
        };
        Self { ends: [end(1, addresses[0]), end(2, addresses[1])], sends: 0, unsealed: false }
    }

    fn exchange(&mut self) {
        let mut buf = vec![0; 65536];
        while let Some((from, sent)) =
            (0..2).find_map(|end| Some((end, self.ends[end].1.poll_transmit_batch(NOW, &mut buf, 15)?)))
        {
            self.sends += 1;
            let stride = sent.segment_size.unwrap_or(sent.len);
            let address = self.ends[from].0;
            let bytes = if self.unsealed {
                sent.leave_unsealed(&mut buf);
                Bytes::Shared((&buf[..sent.len]).into())
            } else {
                sent.seal(address, &mut buf, Numbering::Counted);
                buf[..sent.len].into()
            };
            let datagrams = Datagrams { from: address, ecn: sent.ecn, bytes, stride };
            self.ends[1 - from].1.handle(NOW, datagrams).unwrap();
        }
    }

    fn connect(&mut self) -> (ConnId, ConnId, Region) {
        let ip = self.ends[1].0.ip();
        self.ends[1].1.transport.listen(PORT);
        let here = self.ends[0].1.connect(NOW, ip, PORT, ConnectOptions::default()).unwrap();
        self.exchange();
        let Some(Event::ConnectRequest { conn, .. }) = self.ends[1].1.transport.poll_event() else { panic!() };
        let region = self.ends[1].1.transport.register(vec![0; 1 << 20], Access::REMOTE_WRITE, Some(conn)).unwrap();
        self.ends[1].1.transport.accept(NOW, conn, ConnectOptions::default()).unwrap();
        self.exchange();
        assert!(matches!(self.ends[0].1.transport.poll_event(), Some(Event::Connected { .. })));
        (here, conn, region)
    }
}

#[test]
fn endpoints_meet_over_both_families() {
    for (addresses, unsealed) in [([v4(1), v4(2)], false), ([v6(1), v6(2)], false), ([v4(1), v4(2)], true)] {
        let mut pair = Pair::new(addresses);
        pair.unsealed = unsealed;
        let (here, _, region) = pair.connect();
        let data: Vec<u8> = (0..1u32 << 20).map(|i| (i ^ i >> 8) as u8).collect();
        pair.sends = 0;
        pair.ends[0].1.transport.post_send(here, SendWr::write(1, &data[..], region.addr, region.rkey)).unwrap();
        pair.exchange();
        let Some(Event::Completion(done)) = pair.ends[0].1.transport.poll_event() else { panic!() };
        assert_eq!(done.status, WcStatus::Success);
        let there = &mut pair.ends[1].1;
        assert_eq!(there.transport.deregister(region.id).unwrap().into_vec().unwrap(), data);
        // 256 packets in batches of 15, and what acknowledges them.
        assert!(pair.sends < 40, "{}", pair.sends);
        assert_eq!(pair.ends[0].1.counters().discard_icrc, 0);
        assert!(pair.ends[0].1.counters().tx_frames >= 256);
        // The other family is not reached.
        let other = if addresses[0].is_ipv4() { v6(2) } else { v4(2) };
        assert!(pair.ends[0].1.connect(NOW, other.ip(), PORT, ConnectOptions::default()).is_err());
    }
}

/// A batch without ICRCs is one in memory that a peer shares. From a socket none of it is taken.
#[test]
fn what_is_left_unsealed_is_taken_from_shared_memory_only() {
    let mut pair = Pair::new([v4(1), v4(2)]);
    let (here, _, region) = pair.connect();
    let data = vec![7; 3 * 4096];
    pair.ends[0].1.transport.post_send(here, SendWr::write(1, &data[..], region.addr, region.rkey)).unwrap();
    let mut buf = vec![0xaa; 65536];
    let sent = pair.ends[0].1.poll_transmit_batch(NOW, &mut buf, 15).unwrap();
    let stride = sent.segment_size.unwrap();
    sent.leave_unsealed(&mut buf);
    assert!(buf[..sent.len].chunks(stride).all(|segment| segment.ends_with(&[0; 4])));
    assert_eq!(buf[sent.len..], vec![0xaa; 65536 - sent.len]);
    let there = &mut pair.ends[1].1;
    let datagrams = |bytes| Datagrams { from: v4(1), ecn: Ecn::NotEct, bytes, stride };
    let sealed = there.handle(NOW, datagrams(buf[..sent.len].into()));
    assert_eq!(sealed, Err(Discard::Malformed(ParseError::Icrc)));
    assert_eq!((there.counters().discard_icrc, there.counters().rx_request), (3, 0));
    there.handle(NOW, datagrams(Bytes::Shared((&buf[..sent.len]).into()))).unwrap();
    assert_eq!((there.counters().discard_icrc, there.counters().rx_request), (3, 3));
    assert!(there.transport.region(region.id).unwrap().to_vec().unwrap().starts_with(&data));
}

/// One wrong datagram among several costs itself only, and is counted.
#[test]
fn a_wrong_datagram_is_counted_and_dropped() {
    let mut pair = Pair::new([v4(1), v4(2)]);
    let (here, _, region) = pair.connect();
    let data = vec![7; 3 * 4096];
    pair.ends[0].1.transport.post_send(here, SendWr::write(1, &data[..], region.addr, region.rkey)).unwrap();
    let mut buf = vec![0; 65536];
    let sent = pair.ends[0].1.poll_transmit_batch(NOW, &mut buf, 15).unwrap();
    let stride = sent.segment_size.unwrap();
    sent.seal(v4(1), &mut buf, Numbering::Counted);
    buf[stride + 100] ^= 4;
    let mut bytes = buf[..sent.len].to_vec();
    bytes.extend_from_slice(&[1, 2, 3]); // too short to be a packet
    let datagrams = Datagrams { from: v4(1), ecn: Ecn::NotEct, bytes: bytes[..].into(), stride };
    let there = &mut pair.ends[1].1;
    assert_eq!(there.handle(NOW, datagrams), Err(Discard::Malformed(ParseError::Icrc)));
    let counters = there.counters();
    assert_eq!((counters.discard_icrc, counters.discard_malformed), (1, 1));
    assert_eq!(counters.rx_request, 2); // the first, and the third, ahead of the missing one
    // It is sent again.
    pair.exchange();
    assert!(pair.ends[1].1.transport.region(region.id).unwrap().to_vec().unwrap().starts_with(&data));
}

/// With late acknowledgement the ACK of a message that consumes a receive waits, for 200 µs at most; the application's answer
/// confirms the message before that. Without, it leaves at once.
#[test]
fn acknowledgements_wait_for_answers_where_agreed() {
    for late in [true, false] {
        let mut pair = Pair::new([v4(1), v4(2)]);
        let options = ConnectOptions { late_acknowledgement: late, ..ConnectOptions::default() };
        let ip = pair.ends[1].0.ip();
        pair.ends[1].1.transport.listen(PORT);
        let here = pair.ends[0].1.connect(NOW, ip, PORT, options.clone()).unwrap();
        pair.exchange();
        let Some(Event::ConnectRequest { conn: there, .. }) = pair.ends[1].1.transport.poll_event() else { panic!() };
        for id in 0..3 {
            pair.ends[1].1.transport.post_recv(there, RecvWr { id, slice: None }).unwrap();
        }
        pair.ends[1].1.transport.accept(NOW, there, options).unwrap();
        pair.exchange();
        assert!(matches!(pair.ends[0].1.transport.poll_event(), Some(Event::Connected { .. })));
        assert_eq!(pair.ends[0].1.transport.acknowledges_late(here), late);
        let send = |pair: &mut Pair| {
            let (address, key) = (nacelle_roce::wire::RemoteAddr(0), nacelle_roce::wire::Rkey(0));
            pair.ends[0].1.transport.post_send(here, SendWr::write_imm(1, Vec::new(), address, key, 5)).unwrap();
            pair.exchange();
            pair.ends[0].1.transport.send_mark(here).unwrap()
        };
        let acks = |pair: &Pair| pair.ends[1].1.counters().tx_ack;
        let completed = |pair: &mut Pair| matches!(pair.ends[0].1.transport.poll_event(), Some(Event::Completion(_)));
        let mark = send(&mut pair);
        assert_eq!((completed(&mut pair), acks(&pair)), (!late, u64::from(!late)));
        if !late {
            continue;
        }
        // As the application's answer shows.
        pair.ends[0].1.transport.confirm(NOW, here, mark);
        assert!(completed(&mut pair));
        // The next message waits no longer than the first, and one ACK serves both.
        send(&mut pair);
        let due = pair.ends[1].1.transport.next_deadline().unwrap();
        assert!(due.as_nanos() <= 200_000, "{due:?}");
        let mut buf = vec![0; 65536];
        let ack = pair.ends[1].1.poll_transmit(due, &mut buf).unwrap();
        ack.seal(v4(2), &mut buf, Numbering::Counted);
        let datagrams = Datagrams { from: v4(2), ecn: Ecn::NotEct, bytes: buf[..ack.len].into(), stride: ack.len };
        pair.ends[0].1.handle(due, datagrams).unwrap();
        assert!(completed(&mut pair));
        assert_eq!(acks(&pair), 1);
        // A confirmation of what has not been sent changes nothing.
        let (address, key) = (nacelle_roce::wire::RemoteAddr(0), nacelle_roce::wire::Rkey(0));
        let transport = &mut pair.ends[0].1.transport;
        transport.post_send(here, SendWr::write_imm(1, Vec::new(), address, key, 5)).unwrap();
        let mark = transport.send_mark(here).unwrap();
        transport.confirm(due, here, mark);
        assert!(!completed(&mut pair));
    }
}
