// SPDX-License-Identifier: Apache-2.0
//! A peer made of single packets, to say things that an endpoint would not.

use crate::sim::{PORT, Rng, ip, mac, path};
use nacelle_roce::{
    ConnId, ConnectOptions, Discard, Endpoint, EndpointConfig, Event, Instant, QpModify, Rtr, Rts,
    wire::{
        Psn, Qpn, RemoteAddr, Rkey, RoceHeaders, RocePacket,
        bth::{Aeth, Bth, Deth, Opcode, Reth, Syndrome},
        cm::{self, Dreq, IpCm, Message, Rep, Req, Rtu},
        roce::Flow,
        transport::Ext,
    },
};
use std::{net::IpAddr, time::Duration};

/// PSN at which the raw peer sends, and at which it is sent to.
pub const TO_ENDPOINT: Psn = Psn::new(0xff_fffe);
pub const TO_PEER: Psn = Psn::new(100);
pub const PEER_QPN: Qpn = Qpn::new(0x4711);
const PEER_ID: u32 = 0x0bad_cafe;

/// A frame, parsed and kept.
#[derive(Clone, Debug)]
pub struct Packet {
    pub headers: RoceHeaders,
    pub opcode: Opcode,
    pub payload: Vec<u8>,
}

/// An endpoint, connected to a peer that this struct simulates.
pub struct Raw {
    pub ep: Endpoint,
    pub now: Instant,
    pub conn: ConnId,
    pub qpn: Qpn,
    pub comm_id: u32,
}

/// Options with starting PSNs and short times.
pub fn options() -> ConnectOptions {
    ConnectOptions {
        ack_timeout: Duration::from_millis(1),
        max_ack_timeout: Duration::from_millis(8),
        retry_count: 3,
        rnr_retry: 2,
        starting_psn: Some(TO_ENDPOINT),
        ..ConnectOptions::default()
    }
}

pub fn flow() -> Flow {
    Flow::new(mac(1), mac(0), ip(1), ip(0), 0xdead)
}

/// Headers of a packet to a queue pair of the endpoint.
pub fn headers(qpn: Qpn, opcode: Opcode, psn: Psn, ext: Ext) -> RoceHeaders {
    let mut h = RoceHeaders::new(&flow(), Bth::new(opcode, qpn, psn), ext);
    h.bth.set_ack_req(true);
    h
}

pub fn frame(h: &RoceHeaders, payload: &[u8]) -> Vec<u8> {
    let mut buf = vec![0; 9000];
    let len = h.write(payload, &mut buf).unwrap();
    buf.truncate(len);
    buf
}

/// A zero-length WRITE to a queue pair of the endpoint, from the station with this address.
pub fn write_from(peer: IpAddr, qpn: Qpn, psn: Psn) -> Vec<u8> {
    let IpAddr::V4(peer) = peer else { panic!("{peer} is not IPv4") };
    let reth = Reth::new(RemoteAddr(0), Rkey(0), 0);
    let flow = Flow::new(mac(1), mac(0), peer, ip(0), 0xdead);
    frame(&RoceHeaders::new(&flow, Bth::new(Opcode::WriteOnly, qpn, psn), Ext::Reth(reth)), &[])
}

/// A CM message to the endpoint.
pub fn mad(tid: u64, message: Message<'_>) -> Vec<u8> {
    let ext = Ext::Deth(Deth::new(cm::GSI_Q_KEY, Qpn::GSI));
    frame(&headers(Qpn::GSI, Opcode::UdSendOnly, Psn::new(0), ext), &message.to_mad(tid))
}

pub fn endpoint(seed: u64) -> Endpoint {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&Rng(seed).next().to_le_bytes());
    Endpoint::new(EndpointConfig::new(mac(0), ip(0), bytes))
}

/// What the endpoint has to send.
pub fn drain(ep: &mut Endpoint, now: Instant) -> Vec<Packet> {
    let mut buf = vec![0; ep.frame_len()];
    let mut packets = Vec::new();
    while let Some(len) = ep.poll_transmit(now, &mut buf) {
        if let Ok(RocePacket { headers, opcode, payload }) = RocePacket::parse(&buf[..len]) {
            packets.push(Packet { headers, opcode, payload: payload.to_vec() });
        }
    }
    packets
}

pub fn req(starting_psn: Psn) -> Req {
    let mut req = Req::new(PEER_ID, PORT, PEER_QPN, starting_psn, IpCm::new(5, ip(1), ip(0)));
    req.set_local_cm_timeout(18); // 1.07 s
    req.set_max_cm_retries(7);
    req.set_path_mtu(1);
    req.set_retry_count(7);
    req.set_rnr_retry_count(7);
    req.responder_resources = 16;
    req.initiator_depth = 16;
    req
}

/// A second queue pair of the endpoint, without connection management, to another one of the same peer.
pub fn second(raw: &mut Raw) -> ConnId {
    let conn = raw.ep.transport.create_qp(raw.now, options()).unwrap();
    let to = Rtr::new(path(0, 1), Qpn::new(PEER_QPN.get() + 1), TO_ENDPOINT, cm::PathMtu::Mtu256);
    for step in [QpModify::Init, QpModify::Rtr(to), QpModify::Rts(Rts::new(TO_PEER))] {
        raw.ep.transport.modify_qp(raw.now, conn, step).unwrap();
    }
    conn
}

impl Raw {
    /// The peer connects to the endpoint; path MTU 256.
    pub fn passive() -> Self {
        Self::passive_with(options(), |_, _| {})
    }

    pub fn passive_with(options: ConnectOptions, before_accept: impl FnOnce(&mut Endpoint, ConnId)) -> Self {
        let now = Instant::from_nanos(1);
        let mut ep = endpoint(1);
        ep.transport.listen(PORT);
        ep.handle(now, &mad(1, Message::Req(&req(TO_PEER)))).unwrap();
        let Some(Event::ConnectRequest { conn, .. }) = ep.transport.poll_event() else { panic!() };
        before_accept(&mut ep, conn);
        ep.transport.accept(now, conn, options).unwrap();
        let rep = drain(&mut ep, now).pop().unwrap();
        let (_, Message::Rep(rep)) = Message::parse(&rep.payload).unwrap() else { panic!() };
        assert_eq!(rep.starting_psn(), TO_ENDPOINT);
        let (qpn, comm_id) = (rep.local_qpn(), rep.local_comm_id.get());
        ep.handle(now, &mad(1, Message::Rtu(&Rtu::new(PEER_ID, comm_id)))).unwrap();
        assert!(matches!(ep.transport.poll_event(), Some(Event::Connected { .. })));
        Self { ep, now, conn, qpn, comm_id }
    }

    /// The endpoint connects to the peer; path MTU 256.
    pub fn active(mut options: ConnectOptions) -> Self {
        options.path_mtu = Some(cm::PathMtu::Mtu256);
        let now = Instant::from_nanos(1);
        let mut ep = endpoint(2);
        let conn = ep.connect(now, ip(1), PORT, options).unwrap();
        drain(&mut ep, now);
        let arp = nacelle_roce::wire::arp::ArpPacket::request(mac(0), ip(0), ip(1)).reply(mac(1));
        let mut buf = [0; 60];
        arp.write(&mut buf).unwrap();
        ep.handle(now, &buf).unwrap();
        let sent = drain(&mut ep, now).pop().unwrap();
        let (tid, Message::Req(req)) = Message::parse(&sent.payload).unwrap() else { panic!() };
        let mut rep = Rep::new(PEER_ID, req.local_comm_id.get(), PEER_QPN, TO_PEER);
        rep.set_rnr_retry_count(7);
        rep.responder_resources = 16;
        rep.initiator_depth = 16;
        ep.handle(now, &mad(tid, Message::Rep(&rep))).unwrap();
        assert!(matches!(ep.transport.poll_event(), Some(Event::Connected { .. })));
        let rtu = drain(&mut ep, now);
        assert!(matches!(Message::parse(&rtu[0].payload), Ok((_, Message::Rtu(_)))));
        Self { ep, now, conn, qpn: req.local_qpn(), comm_id: req.local_comm_id.get() }
    }

    /// A queue pair without connection management, connected to the peer; path MTU 256.
    pub fn unmanaged(options: ConnectOptions, rtr: impl FnOnce(&mut Rtr), rts: impl FnOnce(&mut Rts)) -> Self {
        let now = Instant::from_nanos(1);
        let mut ep = endpoint(3);
        let mut to = Rtr::new(path(0, 1), PEER_QPN, TO_ENDPOINT, cm::PathMtu::Mtu256);
        rtr(&mut to);
        let mut from = Rts::new(TO_PEER);
        from.ack_timeout = options.ack_timeout;
        from.retry_count = options.retry_count;
        from.rnr_retry = options.rnr_retry;
        rts(&mut from);
        let conn = ep.transport.create_qp(now, options).unwrap();
        for to in [QpModify::Init, QpModify::Rtr(to), QpModify::Rts(from)] {
            ep.transport.modify_qp(now, conn, to).unwrap();
        }
        let qpn = ep.transport.connection(conn).unwrap().local_qpn;
        Self { ep, now, conn, qpn, comm_id: 0 }
    }

    /// The same with selective repeat.
    pub fn selective() -> Self {
        Self::unmanaged(options(), |rtr| rtr.selective_repeat = true, |_| {})
    }

    /// Sends a packet to the endpoint.
    pub fn send(&mut self, opcode: Opcode, psn: Psn, ext: Ext, payload: &[u8]) -> Result<(), Discard> {
        let frame = frame(&headers(self.qpn, opcode, psn, ext), payload);
        self.ep.handle(self.now, &frame)
    }

    /// Acknowledges, or not.
    pub fn answer(&mut self, psn: Psn, syndrome: Syndrome) -> Result<(), Discard> {
        self.send(Opcode::Acknowledge, psn, Ext::Aeth(Aeth::new(syndrome, 0)), &[])
    }

    pub fn drain(&mut self) -> Vec<Packet> {
        drain(&mut self.ep, self.now)
    }

    /// The one answer that the endpoint has to send: PSN, syndrome, MSN.
    pub fn one_answer(&mut self) -> (Psn, Syndrome, u32) {
        let packets = self.drain();
        assert_eq!(packets.len(), 1, "{packets:?}");
        let Ext::Aeth(aeth) = packets[0].headers.ext else { panic!("{packets:?}") };
        assert_eq!(packets[0].headers.bth.dest_qp(), PEER_QPN);
        (packets[0].headers.bth.psn(), aeth.syndrome(), aeth.msn())
    }

    /// Lets time pass; returns what is sent at the end of it.
    pub fn wait(&mut self, time: Duration) -> Vec<Packet> {
        self.now = self.now + time;
        self.drain()
    }

    pub fn dreq(&mut self) -> Result<(), Discard> {
        self.ep.handle(self.now, &mad(9, Message::Dreq(&Dreq::new(PEER_ID, self.comm_id, self.qpn))))
    }
}
