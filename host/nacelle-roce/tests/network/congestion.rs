// SPDX-License-Identifier: Apache-2.0
//! Several senders to one receiver behind a switch that marks packets.

use crate::{
    raw::{self, PEER_QPN, Raw, TO_ENDPOINT, options},
    sim::config,
};
use nacelle_roce::{
    Access, Congestion, ConnId, ConnectOptions, Endpoint, Event, Instant, Region, SendWr,
    wire::{
        Ecn, RemoteAddr, Rkey, RoceHeaders,
        bth::Opcode,
        ethernet::EthernetHeader,
        ipv4::{Ipv4Header, checksum},
        roce::Flow,
        transport::Ext,
    },
};
use std::{cmp::Reverse, collections::BinaryHeap, net::IpAddr, time::Duration};

const PORT: u16 = 12345;
const MESSAGE: usize = 32 * 1024;
/// The receiver's line: 1 Gb/s.
const NANOS_PER_BYTE: u64 = 8;
/// What the switch can hold, and beyond which it marks.
const BUFFER: u64 = 100_000;
const THRESHOLD: u64 = 20_000;

/// A frame under way: arrival, number, destination, bytes.
type Flying = Reverse<(Instant, u64, usize, Vec<u8>)>;

/// Node 0 receives, the others send.
struct Incast {
    now: Instant,
    nodes: Vec<Endpoint>,
    /// At the receiver, by sender: its connection, and a region that everything goes to.
    conns: Vec<Option<(ConnId, Region)>>,
    flying: BinaryHeap<Flying>,
    sequence: u64,
    line_free: Instant,
    dropped: u64,
    marked: u64,
    buf: Vec<u8>,
}

/// Marks a frame as a switch does.
fn mark(frame: &mut [u8]) {
    let ip = &mut frame[EthernetHeader::LEN..][..Ipv4Header::LEN];
    ip[1] |= Ecn::Ce as u8;
    ip[10..12].fill(0);
    let sum = checksum(ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Last octet of an IPv4 address.
fn last_octet(ip: IpAddr) -> u8 {
    let IpAddr::V4(ip) = ip else { panic!("{ip} is not IPv4") };
    ip.octets()[3]
}

impl Incast {
    fn new(senders: usize, congestion: Congestion) -> Self {
        let node = |i| {
            let mut c = config(i, 77);
            c.transport.congestion = congestion;
            Endpoint::new(c)
        };
        let mut incast = Self {
            now: Instant::from_nanos(1),
            nodes: (0..=senders).map(node).collect(),
            conns: vec![None; senders + 1],
            flying: BinaryHeap::new(),
            sequence: 0,
            line_free: Instant::ZERO,
            dropped: 0,
            marked: 0,
            buf: vec![0; 2000],
        };
        incast.nodes[0].transport.listen(PORT);
        let (now, target) = (incast.now, incast.nodes[0].interface.ip());
        for ep in &mut incast.nodes[1..] {
            let ack_timeout = Duration::from_millis(2);
            let o = ConnectOptions { ack_timeout, ..ConnectOptions::default() };
            ep.connect(now, target, PORT, o).unwrap();
        }
        incast
    }

    fn carry(&mut self, from: usize, mut frame: Vec<u8>) {
        self.sequence += 1;
        let mut due = self.now + Duration::from_micros(2);
        if from != 0 {
            let waiting = (self.line_free - self.now).as_nanos() as u64 / NANOS_PER_BYTE;
            if waiting + frame.len() as u64 > BUFFER {
                self.dropped += 1;
                return;
            }
            if waiting > THRESHOLD && frame[EthernetHeader::LEN + 1] & 3 == Ecn::Ect0 as u8 {
                self.marked += 1;
                mark(&mut frame);
            }
            self.line_free = self.line_free.max(self.now) + Duration::from_nanos(frame.len() as u64 * NANOS_PER_BYTE);
            due = self.line_free + Duration::from_micros(2);
        }
        for to in (0..self.nodes.len()).filter(|&to| to != from && (from == 0 || to == 0)) {
            self.flying.push(Reverse((due, self.sequence, to, frame.clone())));
        }
    }

    fn serve(&mut self, i: usize) {
        while let Some(event) = self.nodes[i].transport.poll_event() {
            match event {
                Event::ConnectRequest { conn, peer, .. } => {
                    let buffer = vec![0; 2 * MESSAGE];
                    let region = self.nodes[0].transport.register(buffer, Access::REMOTE_WRITE, Some(conn)).unwrap();
                    self.conns[usize::from(last_octet(peer)) - 1] = Some((conn, region));
                    self.nodes[0].transport.accept(self.now, conn, ConnectOptions::default()).unwrap();
                }
                // Two messages are always under way, to places of their own.
                Event::Connected { conn, .. } if i != 0 => (0..2).for_each(|slot| self.write(i, conn, slot)),
                Event::Completion(c) => self.write(i, c.conn, c.id),
                Event::Connected { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        while let Some(len) = self.nodes[i].poll_transmit(self.now, &mut self.buf) {
            let frame = self.buf[..len].to_vec();
            self.carry(i, frame);
        }
    }

    fn write(&mut self, i: usize, conn: ConnId, slot: u64) {
        let (_, region) = self.conns[i].expect("connected");
        let addr = RemoteAddr(region.addr.0 + slot * MESSAGE as u64);
        let wr = SendWr::write(slot, vec![1; MESSAGE], addr, region.rkey);
        self.nodes[i].transport.post_send(conn, wr).unwrap();
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            for i in 0..self.nodes.len() {
                self.serve(i);
            }
            let arrival = self.flying.peek().map(|Reverse(f)| f.0);
            let next = self.nodes.iter().filter_map(Endpoint::next_deadline).chain(arrival).min().unwrap();
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            while self.flying.peek().is_some_and(|Reverse(f)| f.0 <= self.now) {
                let Some(Reverse((_, _, to, frame))) = self.flying.pop() else { break };
                let _ = self.nodes[to].handle(self.now, &frame);
            }
        }
    }

    /// Bytes that each sender's connection has brought so far.
    fn received(&self) -> Vec<u64> {
        let bytes =
            |c: &Option<(ConnId, Region)>| self.nodes[0].transport.connection(c.unwrap().0).unwrap().stats.rx_payload;
        self.conns[1..].iter().map(bytes).collect()
    }
}

/// Parameters for a line of 1 Gb/s.
fn on() -> Congestion {
    Congestion {
        rp_enable: true,
        np_enable: true,
        line_rate: 10_000,
        rpg_ai_rate: 5,
        rpg_hai_rate: 50,
        rpg_byte_reset: 150_000,
        ..Congestion::default()
    }
}

#[test]
fn senders_share_a_line_without_loss() {
    for senders in [2, 4] {
        let mut incast = Incast::new(senders, on());
        incast.run(Duration::from_millis(40));
        let (before, drops) = (incast.received(), incast.dropped);
        incast.run(Duration::from_millis(200));
        assert_eq!(incast.dropped, drops, "the queue stays short once the rates are found");
        assert!(incast.marked > 0);
        let shares: Vec<u64> = incast.received().iter().zip(before).map(|(now, before)| now - before).collect();
        let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
        assert!(*most < 2 * least, "{shares:?}");
        // 25 MB in 200 ms, headers included.
        assert!(shares.iter().sum::<u64>() > 18_000_000, "{shares:?}");
        for ep in &incast.nodes[1..] {
            assert!(ep.counters().rp_cnp_handled > 0);
            assert!(ep.transport.connections().next().unwrap().1.rate_limit.is_some());
        }
        let receiver = incast.nodes[0].counters();
        assert_eq!(receiver.np_ecn_marked_roce_packets, incast.marked);
        assert!(receiver.np_cnp_sent <= receiver.np_ecn_marked_roce_packets);

        let mut without = Incast::new(senders, Congestion::default());
        without.run(Duration::from_millis(40));
        assert_eq!(without.marked, 0, "only what takes part is marked");
        assert!(without.dropped > 0, "the scene needs congestion control");
    }
}

fn congested(mut raw: Raw, congestion: Congestion) -> Raw {
    raw.ep.transport.set_congestion(congestion);
    raw
}

/// A request of the raw peer that a switch has marked: an empty WRITE.
fn marked_write(raw: &mut Raw, n: u32) {
    let reth = nacelle_roce::wire::bth::Reth::new(RemoteAddr(0), Rkey(0), 0);
    let headers = raw::headers(raw.qpn, Opcode::WriteOnly, TO_ENDPOINT.add(n), Ext::Reth(reth));
    let mut frame = raw::frame(&headers, &[]);
    mark(&mut frame);
    raw.ep.handle(raw.now, &frame).unwrap();
}

#[test]
fn marked_packets_are_answered_by_cnps() {
    let mut raw = congested(Raw::passive(), Congestion { cnp_dscp: 40, ..on() });
    let opcodes = |raw: &mut Raw| raw.drain().iter().map(|p| p.opcode).collect::<Vec<_>>();
    marked_write(&mut raw, 0);
    marked_write(&mut raw, 1);
    let packets = raw.drain();
    let cnp = packets.iter().find(|p| p.opcode == Opcode::Cnp).unwrap();
    assert_eq!((cnp.headers.bth.dest_qp(), cnp.headers.bth.becn()), (PEER_QPN, true));
    assert_eq!(cnp.headers.ip.tos, 40 << 2);
    assert_eq!(packets.len(), 2, "one CNP, one ACK: {packets:?}");
    raw.now = raw.now + Duration::from_micros(49);
    marked_write(&mut raw, 2);
    assert_eq!(opcodes(&mut raw), [Opcode::Acknowledge]);
    raw.now = raw.now + Duration::from_micros(1);
    marked_write(&mut raw, 3);
    assert_eq!(opcodes(&mut raw), [Opcode::Cnp, Opcode::Acknowledge]);
    assert_eq!((raw.ep.counters().np_cnp_sent, raw.ep.counters().np_ecn_marked_roce_packets), (2, 4));

    let mut raw = congested(Raw::passive(), Congestion { np_enable: false, ..on() });
    marked_write(&mut raw, 0);
    assert_eq!(opcodes(&mut raw), [Opcode::Acknowledge]);
}

#[test]
fn cnps_slow_a_connection_down() {
    for enabled in [true, false] {
        let congestion = Congestion { rp_enable: enabled, ..on() };
        let mut raw =
            congested(Raw::active(ConnectOptions { ack_timeout: Duration::from_secs(1), ..options() }), congestion);
        let cnp = raw::frame(&RoceHeaders::cnp(&raw::flow(), raw.qpn), &[]);
        for _ in 0..10 {
            raw.ep.handle(raw.now, &cnp).unwrap();
            raw.now = raw.now + Duration::from_micros(50);
        }
        let counters = raw.ep.counters();
        let expected = if enabled { (10, 0) } else { (0, 10) };
        assert_eq!((counters.rp_cnp_handled, counters.rp_cnp_ignored), expected);
        let limit = raw.ep.transport.connection(raw.conn).unwrap().rate_limit;
        assert_eq!(limit.is_some_and(|rate| rate < 20.0), enabled, "{limit:?}");

        // Forty packets: at once without a limit, at more than 100 us each with it, but for what idle time allows.
        raw.ep.transport.post_send(raw.conn, SendWr::send(1, vec![0; 40 * 256])).unwrap();
        let mut sent = raw.drain();
        assert_eq!(sent.len() < 40, enabled);
        let begin = raw.now;
        while sent.len() < 40 {
            raw.now = raw.ep.next_deadline().unwrap().max(raw.now);
            sent.extend(raw.drain());
        }
        assert_eq!(raw.now - begin > Duration::from_millis(1), enabled);
        let ecn = if enabled { Ecn::Ect0 } else { Ecn::NotEct };
        assert!(sent.iter().all(|p| p.headers.ip.ecn() == ecn));
        // Switched off, it has no limit any more.
        raw.ep.transport.set_congestion(Congestion::default());
        raw.ep.transport.post_send(raw.conn, SendWr::send(2, vec![0; 40 * 256])).unwrap();
        raw.now = raw.now + Duration::from_micros(500);
        assert_eq!(raw.drain().len(), 40);
        assert_eq!(raw.ep.transport.connection(raw.conn).unwrap().rate_limit, None);
    }
}

/// At the lowest rate a window takes longer than the ACK timeout; nothing is sent twice for that.
#[test]
fn a_slow_connection_does_not_time_out() {
    let slow = Congestion { rate_to_set_on_first_cnp: 1, rpg_time_reset: 0, rpg_byte_reset: 0, ..on() };
    let mut incast = Incast::new(1, slow);
    incast.run(Duration::from_millis(1));
    let (conn, info) = incast.nodes[1].transport.connections().next().expect("connected");
    let flow = Flow::new(
        incast.nodes[0].interface.mac(),
        incast.nodes[1].interface.mac(),
        incast.nodes[0].interface.ip(),
        incast.nodes[1].interface.ip(),
        0xc000,
    );
    let cnp = raw::frame(&RoceHeaders::cnp(&flow, info.local_qpn), &[]);
    incast.nodes[1].handle(incast.now, &cnp).unwrap();
    let before = incast.nodes[1].transport.connection(conn).expect("alive").stats.tx_bytes;
    incast.run(Duration::from_secs(3));
    let info = incast.nodes[1].transport.connection(conn).expect("alive");
    assert_eq!(info.rate_limit, Some(1.0));
    let sent = info.stats.tx_bytes - before;
    assert!((300_000..500_000).contains(&sent), "{sent} bytes in three seconds");
    let counters = incast.nodes[1].counters();
    assert_eq!((counters.local_ack_timeout_err, counters.retransmitted), (0, 0));
}
