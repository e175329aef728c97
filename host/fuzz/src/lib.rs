// SPDX-License-Identifier: Apache-2.0
//! Bodies of the fuzz targets. Each takes any bytes and panics if a rule is broken.
#![forbid(unsafe_code)]

mod device;
mod slot;
mod texts;
mod vhost;

pub use device::device;
pub use slot::slot;
pub use texts::texts;
pub use vhost::vhost;

use nacelle_roce::{
    Access, ConnId, ConnectOptions, Datagrams, Endpoint, EndpointConfig, Event, Instant, Network, Phase, RecvWr,
    SendWr, TransportConfig, UdpInterface,
    memory::Bytes,
    wire::{
        DescriptionLocation, Ecn, MacAddr, ParseError, Psn, Qpn, RemoteAddr, Rkey, RoceHeaders, RocePacket,
        admission::{Token, Why},
        arp::ArpPacket,
        bth::{Aeth, AtomicAckEth, AtomicEth, Bth, Deth, Ieth, ImmDt, Opcode, Reth, Syndrome},
        calls,
        cm::{self, IpCm, Message, Rep, Req},
        extensions::Agreement,
        icmp::EchoPacket,
        icrc,
        kernel::{matmul, vector},
        mrsp,
        roce::{Flow, MAX_FRAME},
        transport::Ext,
    },
};
use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

/// What parses as a RoCE packet is built again into the same packet.
pub fn roce_packet(data: &[u8]) {
    let Ok(packet) = RocePacket::parse(data) else { return };
    let mut again = vec![0; data.len()];
    let len = packet.write(&mut again).expect("it fitted before");
    let second = RocePacket::parse(&again[..len]).expect("what is built can be read");
    assert_eq!(second.payload, packet.payload);
    assert_eq!(second.headers.ext, packet.headers.ext);
    assert_eq!(second.headers.bth, packet.headers.bth);
}

/// Every other parser: no panic, and what parses is built again into the same bytes.
pub fn messages(data: &[u8]) {
    let mut buf = [0; 2048];
    if let Ok(packet) = ArpPacket::parse(data) {
        let len = packet.write(&mut buf).expect("60 bytes are enough");
        assert_eq!(ArpPacket::parse(&buf[..len]), Ok(packet));
    }
    if let Ok(packet) = EchoPacket::parse(data)
        && let Ok(len) = packet.write(&mut buf)
    {
        assert_eq!(EchoPacket::parse(&buf[..len]).map(|p| p.payload), Ok(packet.payload));
    }
    if let Ok((tid, message)) = Message::parse(data) {
        let mad = message.to_mad(tid);
        assert_eq!(Message::parse(&mad), Ok((tid, message)));
    }
    let mut private_data = data.to_vec();
    if let Some(token) = Token::take(&mut private_data) {
        assert_eq!(Token::take(&mut private_data).map(|token| *token.bytes()), Some([0; Token::LEN]));
        token.put(&mut private_data).expect("it was there before");
        assert_eq!(Token::take(&mut private_data), Some(token));
    } else {
        assert_eq!(private_data, data, "nothing is taken out of what has no token");
    }
    if let Ok(why) = Why::find(data) {
        assert_eq!(data[..6], why.note()[..6]);
    }
    if let Ok(message) = mrsp::Message::parse(data)
        && let Ok(len) = message.write(&mut buf)
    {
        assert_eq!(mrsp::Message::parse(&buf[..len]), Ok(message));
    }
    if let Ok(message) = calls::SetUp::parse(data) {
        let len = message.write(&mut buf).expect("a message that was read has a length that can be written");
        assert_eq!(calls::SetUp::parse(&buf[..len]), Ok(message));
    }
    if let Ok(message) = calls::SetUpAnswer::parse(data)
        && let Ok(len) = message.write(&mut buf)
    {
        assert_eq!(calls::SetUpAnswer::parse(&buf[..len]), Ok(message));
    }
    if let Some(agreement) = Agreement::find(data) {
        agreement.put(&mut buf).expect("there is room");
        assert_eq!(Agreement::find(&buf), Some(agreement));
    }
    if let Some(location) = DescriptionLocation::find(data) {
        location.put(&mut buf).expect("there is room");
        assert_eq!(DescriptionLocation::find(&buf), Some(location));
    }
    if let Some(block) = data.first_chunk()
        && let Ok(args) = matmul::Args::parse(block)
    {
        assert_eq!(args.to_bytes(), *block);
    }
    if let Some(block) = data.first_chunk()
        && let Ok(args) = vector::Args::parse(block)
    {
        assert_eq!(args.to_bytes(), *block);
    }
    if let Some(&imm) = data.first_chunk()
        && let Ok(call) = mrsp::CallImm::parse(u32::from_be_bytes(imm))
    {
        assert_eq!(call.to_u32().to_be_bytes(), imm);
    }
    if let Some(&imm) = data.first_chunk()
        && let Ok(request) = calls::Request::of_write(u32::from_be_bytes(imm))
    {
        assert_eq!(calls::Request::of_write(request.to_imm()), Ok(request));
    }
    let imm = data.first_chunk().map(|&imm| u32::from_be_bytes(imm));
    if let Ok(request) = calls::Request::of_send(imm)
        && imm.is_some()
    {
        assert_eq!(calls::Request::of_send(Some(request.to_imm())), Ok(request));
    }
}

/// What a UDP socket may give: any bytes from any port, coalesced by any length. The first bytes say how.
///
/// Some are in memory that the peer shares, and have no ICRC that counts.
///
/// Rules: no panic; each datagram is counted once; one whose ICRC is called right is so under the identification that is found.
pub fn datagrams(data: &[u8]) {
    let Some((&[kind, stride, port], bytes)) = data.split_first_chunk() else { return };
    let address = |number: u8| -> SocketAddr {
        if kind & 1 == 0 {
            ([127, 0, 0, number], 4791).into()
        } else {
            ([0, 0, 0, 0, 0, 0, 0, number.into()], 4791).into()
        }
    };
    let (local, mut from) = (address(1), address(2));
    from.set_port(u16::from(port) << 8 | 0xb7);
    let stride = usize::from(stride) * 4;
    // Half of the inputs have right ICRCs, so that what is behind the check is reached.
    let mut sealed = bytes.to_vec();
    if kind & 8 == 0 {
        for (index, datagram) in sealed.chunks_mut(stride.max(1)).enumerate() {
            if let Some((transport, crc)) = datagram.split_last_chunk_mut()
                && transport.len() >= Bth::LEN
            {
                *crc = icrc::of_datagram(from, local, index as u16, transport).expect("one family");
            }
        }
    }
    let bytes = if kind & 16 == 0 { Bytes::Own(&sealed) } else { Bytes::Shared((&sealed).into()) };
    let received = Datagrams { from, ecn: Ecn::from_bits(kind >> 1), bytes, stride };
    let mut check = UdpInterface::new(local, 4200);
    for (index, datagram) in received.iter().enumerate() {
        if let Bytes::Own(datagram) = datagram
            && let Ok(identification) = check.identification(from, index, datagram)
        {
            let (transport, crc) = icrc::split(datagram).expect("it has an ICRC");
            assert_eq!(icrc::of_datagram(from, local, identification, transport), Some(*crc));
        }
    }
    let network = Network { ip_mtu: 4200, overhead: 28 };
    let mut ep = Endpoint::over_udp(check, TransportConfig::new(network, 1, [3; 32]));
    ep.transport.listen(1);
    let _ = ep.handle(Instant::from_nanos(1), received);
    assert_eq!(ep.counters().rx_frames, received.iter().count() as u64);
    let mut buf = vec![0; 1 << 16];
    for _ in 0..1000 {
        if ep.poll_transmit_batch(Instant::from_nanos(2), &mut buf, 15).is_none() {
            return;
        }
    }
    panic!("it sends for ever");
}

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const PEER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PSN: Psn = Psn::new(0xff_fff0);
const REGION: usize = 600;

/// An endpoint with a passive and an active connection, driven by a byte string: each command sends it a packet made
/// of the following bytes, calls its API, or lets time pass.
///
/// Rules: no panic; a buffer outside the region given to the peer never changes; after a long silence no connection,
/// no timer is left, and every work request has completed.
pub fn endpoint(data: &[u8]) {
    let mut world = World::new();
    let mut input = data;
    while let Some((&command, rest)) = input.split_first() {
        input = rest;
        world.command(command, &mut input);
    }
    world.settle();
}

/// Everything that a peer may be allowed.
fn rights() -> Access {
    Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::REMOTE_INVALIDATE
}

struct World {
    ep: Endpoint,
    now: Instant,
    passive: ConnId,
    active: ConnId,
    target: nacelle_roce::Region,
    secret: nacelle_roce::Region,
    /// Where answers to READs and atomics go.
    answers: nacelle_roce::Region,
    posted: u64,
    completed: u64,
}

fn take<'a>(input: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(len.min(input.len()));
    *input = rest;
    taken
}

fn number(input: &mut &[u8]) -> u32 {
    take(input, 4).iter().fold(0, |n, &b| n << 8 | u32::from(b))
}

impl World {
    fn new() -> Self {
        let now = Instant::from_nanos(1);
        let mut ep = Endpoint::new(EndpointConfig::new(MAC, IP, [3; 32]));
        ep.transport.listen(1);
        let options = ConnectOptions {
            starting_psn: Some(PSN),
            path_mtu: Some(cm::PathMtu::Mtu256),
            retry_count: 1,
            cm_retries: 1,
            ..ConnectOptions::default()
        };
        let mut ask = Req::new(7, 1, Qpn::new(0x11), PSN, IpCm::new(1, PEER_IP, IP));
        ask.set_path_mtu(1);
        ask.set_retry_count(1);
        ask.responder_resources = 4;
        // Selective repeat on this connection, go-back-N on the other.
        ask.private_data[48..].copy_from_slice(b"NACL\x01\x01\0\0");
        ask.initiator_depth = 4;
        let mut world = Self {
            passive: ep.connect(now, PEER_IP, 1, options.clone()).expect("a route"),
            active: ep.connect(now, PEER_IP, 2, options.clone()).expect("a route"),
            target: ep.transport.register(vec![0; REGION], Access::LOCAL, None).expect("room"),
            secret: ep.transport.register(vec![0x5a; REGION], rights(), None).expect("room"),
            answers: ep.transport.register(vec![0; REGION], Access::LOCAL, None).expect("room"),
            ep,
            now,
            posted: 0,
            completed: 0,
        };
        world.ep.transport.disconnect(now, world.passive);
        world.mad(1, &Message::Req(&ask));
        while let Some(event) = world.ep.transport.poll_event() {
            if let Event::ConnectRequest { conn, .. } = event {
                world.passive = conn;
            }
        }
        world.ep.transport.accept(now, world.passive, options).expect("a request waits");
        world.target = world.ep.transport.register(vec![0; REGION], rights(), Some(world.passive)).expect("room");
        // The other one is connected by us.
        let mut arp = [0; 60];
        let len = ArpPacket::request(MAC, IP, PEER_IP).reply(PEER_MAC).write(&mut arp).expect("60 bytes");
        let _ = world.ep.handle(now, &arp[..len]);
        if let Some((tid, id)) = world.drain_req() {
            let mut rep = Rep::new(8, id, Qpn::new(0x12), PSN);
            rep.set_rnr_retry_count(1);
            rep.responder_resources = 4;
            world.mad(tid, &Message::Rep(&rep));
        }
        let phase = |conn| world.ep.transport.connection(conn).map(|c| c.phase);
        assert_eq!(phase(world.passive), Some(Phase::RepSent));
        assert_eq!(phase(world.active), Some(Phase::Established));
        world
    }

    fn flow() -> Flow {
        Flow::new(PEER_MAC, MAC, PEER_IP, IP, 0xc000)
    }

    fn send(&mut self, headers: &RoceHeaders, payload: &[u8]) {
        let mut frame = [0; MAX_FRAME];
        if let Ok(len) = headers.write(payload, &mut frame) {
            let _ = self.ep.handle(self.now, &frame[..len]);
        }
    }

    fn mad(&mut self, tid: u64, message: &Message<'_>) {
        let ext = Ext::Deth(Deth::new(cm::GSI_Q_KEY, Qpn::GSI));
        let headers = RoceHeaders::new(&Self::flow(), Bth::new(Opcode::UdSendOnly, Qpn::GSI, Psn::new(0)), ext);
        self.send(&headers, &message.to_mad(tid));
    }

    /// Sends everything; returns the transaction and the identifier of the last REQ.
    fn drain_req(&mut self) -> Option<(u64, u32)> {
        let mut frame = vec![0; self.ep.frame_len()];
        let mut id = None;
        let mut sent = 0;
        while let Some(len) = self.ep.poll_transmit(self.now, &mut frame) {
            sent += 1;
            assert!(sent < 100_000, "it sends for ever");
            if let Err(e) = RocePacket::parse(&frame[..len]) {
                assert!(matches!(e, ParseError::EtherType | ParseError::IpProtocol), "it sends nonsense: {e}");
            } else if let Ok(packet) = RocePacket::parse(&frame[..len])
                && let Ok((tid, Message::Req(req))) = Message::parse(packet.payload)
            {
                id = Some((tid, req.local_comm_id.get()));
            }
        }
        while let Some(event) = self.ep.transport.poll_event() {
            if let Event::Completion(_) = event {
                self.completed += 1;
            }
        }
        id
    }

    fn command(&mut self, command: u8, input: &mut &[u8]) {
        let conn = if command & 0x80 == 0 { self.passive } else { self.active };
        let qpn = self.ep.transport.connection(conn).map_or(Qpn::new(0x1000), |c| c.local_qpn);
        match command & 15 {
            0..=5 => {
                let [opcode, psn, flags, len] = *take(input, 4) else { return };
                let Ok(opcode) = Opcode::from_u8(opcode & 0x1f) else { return };
                let psn = PSN.add(u32::from(psn)).sub(8);
                let len = usize::from(len) + if flags & 4 != 0 { 256 } else { 0 };
                let reth = |input: &mut &[u8]| {
                    let at = take(input, 2).iter().fold(0, |n, &b| n << 8 | u64::from(b)) % (REGION as u64 + 9);
                    let region = if flags & 8 != 0 { self.secret } else { self.target };
                    let dma = if flags & 16 != 0 { number(input) } else { len as u32 };
                    Reth::new(RemoteAddr(region.addr.0.wrapping_add(at)), Rkey(region.rkey.0), dma)
                };
                use nacelle_wire::bth::ExtKind;
                let ext = match opcode.ext() {
                    ExtKind::None => Ext::None,
                    ExtKind::Imm => Ext::Imm(ImmDt::new(1)),
                    ExtKind::Reth => Ext::Reth(reth(input)),
                    ExtKind::RethImm => Ext::RethImm(reth(input), ImmDt::new(1)),
                    ExtKind::Aeth => {
                        let said = number(input);
                        Ext::Aeth(Aeth::new(Syndrome::from_u8(said as u8), PSN.sub(8).get().wrapping_add(said >> 24)))
                    }
                    ExtKind::AethAtomic => Ext::AethAtomic(Aeth::new(Syndrome::ACK, 0), AtomicAckEth::new(7)),
                    ExtKind::Atomic => {
                        let place = reth(input);
                        Ext::Atomic(AtomicEth::new(place.va(), place.rkey(), 1, 0))
                    }
                    ExtKind::Ieth => Ext::Ieth(Ieth::new(reth(input).rkey())),
                    _ => return,
                };
                let mut bth = Bth::new(opcode, qpn, psn);
                bth.set_ack_req(flags & 1 != 0);
                bth.set_solicited(flags & 2 != 0);
                self.send(&RoceHeaders::new(&Self::flow(), bth, ext), &vec![0xee; len]);
            }
            6 => {
                let frame = take(input, 64);
                let _ = self.ep.handle(self.now, frame);
            }
            7 => {
                // Any CM message; the identifiers are often right.
                let mut mad = [0; cm::MAD_LEN];
                mad[..4].copy_from_slice(&[1, 7, 2, 3]);
                let body = take(input, 24);
                mad[17] = 0x10 + command / 16 % 8;
                mad[24..24 + body.len()].copy_from_slice(body);
                let ext = Ext::Deth(Deth::new(cm::GSI_Q_KEY, Qpn::GSI));
                let bth = Bth::new(Opcode::UdSendOnly, Qpn::GSI, Psn::new(0));
                self.send(&RoceHeaders::new(&Self::flow(), bth, ext), &mad);
            }
            8 | 9 => {
                let slice = self.answers.slice(0, usize::from(command));
                let (addr, rkey) = (RemoteAddr(0), Rkey(0));
                let wr = match command >> 4 & 7 {
                    0 | 1 => SendWr::write(self.posted, slice, addr, rkey),
                    2 => SendWr::read(self.posted, self.answers.slice(0, 500), addr, rkey),
                    3 => SendWr::fetch_add(self.posted, self.answers.slice(0, 8), addr, rkey, 1),
                    4 => SendWr::write_imm(self.posted, self.answers.all(), addr, rkey, 1),
                    5 => SendWr { fence: true, ..SendWr::send_invalidate(self.posted, slice, rkey) },
                    6 => SendWr::local_invalidate(self.posted, self.secret.rkey),
                    _ => SendWr::send(self.posted, vec![1; 300]),
                };
                self.posted += u64::from(self.ep.transport.post_send(conn, wr).is_ok());
            }
            10 | 11 => {
                let slice = (command & 16 == 0).then(|| self.target.slice(1, 500));
                self.posted += u64::from(self.ep.transport.post_recv(conn, RecvWr { id: self.posted, slice }).is_ok());
            }
            12 => self.now = self.now + Duration::from_nanos(u64::from(number(input))),
            13 if command & 0x70 == 0 => self.ep.transport.disconnect(self.now, conn),
            _ => {
                self.drain_req();
            }
        }
        let secret = self.ep.transport.region(self.secret.id).and_then(|memory| memory.to_vec().ok());
        let secret = secret.expect("it is registered");
        assert!(secret.iter().all(|&b| b == 0x5a), "memory that is not the peer's has changed");
    }

    fn settle(&mut self) {
        for conn in [self.passive, self.active] {
            self.ep.transport.disconnect(self.now, conn);
        }
        for _ in 0..10_000 {
            self.drain_req();
            let Some(next) = self.ep.next_deadline() else { break };
            self.now = if next > self.now { next } else { self.now };
        }
        self.drain_req();
        assert_eq!(self.ep.next_deadline(), None, "a timer is left");
        assert_eq!(self.ep.transport.connections().count(), 0, "a connection is left");
        assert_eq!(self.completed, self.posted, "work requests and completions differ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path};

    /// SplitMix64.
    struct Rng(u64);

    impl Rng {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ z >> 31
        }
    }

    /// Frames and messages of the captures.
    fn corpus() -> Vec<Vec<u8>> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nacelle-wire/tests/data");
        let mut all = Vec::new();
        for name in ["naaice-race.pcap", "f_rnr.pcap", "f_rej.pcap", "rxe-selection.pcap"] {
            let bytes = fs::read(dir.join(name)).unwrap();
            let mut rest = &bytes[24..];
            while let Some((header, body)) = rest.split_first_chunk::<16>() {
                let len = u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
                all.push(body[..len].to_vec());
                if let Ok(packet) = RocePacket::parse(&body[..len]) {
                    all.push(packet.payload.to_vec());
                }
                rest = &body[len..];
            }
        }
        assert!(all.len() > 500);
        all
    }

    /// Inputs: all of a corpus, mutants of them, then random ones, `runs` at least.
    fn drive(name: &str, corpus: &[Vec<u8>], runs: u64, target: fn(&[u8])) {
        for (i, input) in corpus.iter().enumerate() {
            target(input);
            // Mutants: a few bytes changed, cut short, or continued.
            let mut rng = Rng(i as u64);
            for _ in 0..8 {
                let mut mutant = input.clone();
                for _ in 0..1 + rng.next() % 4 {
                    if !mutant.is_empty() {
                        let at = rng.next() as usize % mutant.len();
                        mutant[at] = rng.next() as u8;
                    }
                }
                mutant.truncate(rng.next() as usize % (mutant.len() * 2 + 1));
                target(&mutant);
            }
        }
        // Random bytes, and mutants of the corpus by turns. More than the usual runs, if there is time for them, or so many.
        let limit = |name| std::env::var(name).ok().map(|count| count.parse::<u64>().expect("a number"));
        let runs = limit("NACELLE_FUZZ_INPUTS").unwrap_or(runs);
        let begin = std::time::Instant::now();
        let until = begin + Duration::from_secs(limit("NACELLE_FUZZ_SECONDS").unwrap_or(0));
        let mut done = 0;
        for seed in (0..).take_while(|seed| *seed < runs || std::time::Instant::now() < until) {
            let mut rng = Rng(seed);
            let input = if seed % 2 == 0 { random(&mut rng) } else { mutant(&mut rng, corpus) };
            if std::panic::catch_unwind(|| target(&input)).is_err() {
                panic!("failed with seed {seed}");
            }
            done = seed + 1;
        }
        let rate = done as f64 / begin.elapsed().as_secs_f64();
        println!("{name}: {done} inputs, {rate:.0} a second, 100 million take {:.1} hours", 1e8 / rate / 3600.0);
    }

    fn random(rng: &mut Rng) -> Vec<u8> {
        let len = rng.next() as usize % 600;
        (0..len).map(|_| rng.next() as u8).collect()
    }

    /// One of the corpus with some bytes changed, or with a part of another in it.
    fn mutant(rng: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
        let pick = |rng: &mut Rng| corpus[rng.next() as usize % corpus.len()].clone();
        let mut input = pick(rng);
        let other = pick(rng);
        if rng.next().is_multiple_of(4) && !input.is_empty() && !other.is_empty() {
            let (at, from) = (rng.next() as usize % input.len(), rng.next() as usize % other.len());
            input.truncate(at);
            input.extend(&other[from..]);
        }
        for _ in 0..rng.next() % 4 {
            if !input.is_empty() {
                let at = rng.next() as usize % input.len();
                input[at] = rng.next() as u8;
            }
        }
        input
    }

    #[test]
    fn roce_packet_holds() {
        drive("roce_packet", &corpus(), 20_000, roce_packet);
    }

    #[test]
    fn messages_hold() {
        drive("messages", &corpus(), 20_000, messages);
    }

    #[test]
    fn datagrams_hold() {
        drive("datagrams", &corpus(), 20_000, datagrams);
    }

    #[test]
    fn endpoint_holds() {
        drive("endpoint", &corpus(), 3_000, endpoint);
    }

    #[test]
    fn texts_hold() {
        drive("texts", &texts::samples(), 20_000, texts);
    }

    #[test]
    fn slot_holds() {
        drive("slot", &slot::samples(), 10_000, slot);
    }

    #[test]
    fn vhost_holds() {
        drive("vhost", &vhost::samples(), 10_000, vhost);
    }

    #[test]
    fn device_holds() {
        drive("device", &device::samples(), 4_000, device);
    }
}
