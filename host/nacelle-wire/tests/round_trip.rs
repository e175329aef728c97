// SPDX-License-Identifier: Apache-2.0
//! Parser and builder of each format undo each other, and no bytes make a parser panic.

use nacelle_wire::{
    BuildError, Ecn, MacAddr, ParseError, Psn, Qpn, RemoteAddr, Rkey, RoceHeaders, RocePacket, U24,
    arp::{ArpPacket, Operation},
    bth::{Aeth, AtomicAckEth, AtomicEth, Bth, ExtKind, Ieth, Opcode, Reth, Syndrome},
    calls::{self, Context, LongGiven, LongRegion, Request, SetUp, SetUpAnswer, Step},
    cm::{self, Message, PathMtu},
    extensions::{Agreement, Extensions},
    icmp::{EchoPacket, Kind},
    icrc,
    ipv4::{Ipv4Header, PROTOCOL_ICMP, checksum},
    kernel::{matmul, vector},
    mrsp::{self, ARegion, AarRegion, CallImm, FunctionCode, RegionFlags, ReturnCode},
    roce::{Flow, MAX_FRAME},
    transport::{Ext, Headers, MAX_HEADERS, Packet},
};
use proptest::{collection::vec, prelude::*};
use std::net::{IpAddr, Ipv4Addr};
use zerocopy::{FromBytes, IntoBytes};

fn mac() -> impl Strategy<Value = MacAddr> {
    any::<[u8; 6]>().prop_map(MacAddr)
}

/// A header of any contents.
fn header<T: FromBytes + core::fmt::Debug, const N: usize>() -> impl Strategy<Value = T> {
    any::<[u8; N]>().prop_map(|b| T::read_from_bytes(&b).unwrap())
}

fn ext(kind: ExtKind) -> BoxedStrategy<Ext> {
    match kind {
        ExtKind::None => Just(Ext::None).boxed(),
        ExtKind::Imm => header::<_, 4>().prop_map(Ext::Imm).boxed(),
        ExtKind::Reth => header::<_, 16>().prop_map(Ext::Reth).boxed(),
        ExtKind::RethImm => (header::<_, 16>(), header::<_, 4>()).prop_map(|(a, b)| Ext::RethImm(a, b)).boxed(),
        ExtKind::Aeth => header::<_, 4>().prop_map(Ext::Aeth).boxed(),
        ExtKind::AethAtomic => (header::<_, 4>(), header::<_, 8>()).prop_map(|(a, b)| Ext::AethAtomic(a, b)).boxed(),
        ExtKind::Atomic => header::<_, 28>().prop_map(Ext::Atomic).boxed(),
        ExtKind::Ieth => header::<_, 4>().prop_map(Ext::Ieth).boxed(),
        ExtKind::Deth => header::<_, 8>().prop_map(Ext::Deth).boxed(),
        ExtKind::DethImm => (header::<_, 8>(), header::<_, 4>()).prop_map(|(a, b)| Ext::DethImm(a, b)).boxed(),
        ExtKind::Cnp => header::<_, 16>().prop_map(Ext::Cnp).boxed(),
    }
}

fn opcode_and_ext() -> impl Strategy<Value = (Opcode, Ext)> {
    (0..Opcode::ALL.len()).prop_flat_map(|i| (Just(Opcode::ALL[i]), ext(Opcode::ALL[i].ext())))
}

prop_compose! {
    fn headers()(
        (opcode, ext) in opcode_and_ext(),
        (src, dst) in (mac(), mac()),
        (src_ip, dst_ip) in any::<(Ipv4Addr, Ipv4Addr)>(),
        (port, id, qpn, psn) in any::<(u16, u16, u32, u32)>(),
        (tos, ttl, solicited, mig, ack) in any::<(u8, u8, bool, bool, bool)>(),
        (fecn, becn) in any::<(bool, bool)>(),
    ) -> RoceHeaders {
        let flow = Flow::new(src, dst, src_ip, dst_ip, port);
        let mut h = RoceHeaders::new(&flow, Bth::new(opcode, Qpn::new(qpn), Psn::new(psn)), ext);
        h.ip.identification.set(id);
        h.ip.tos = tos;
        h.ip.ttl = ttl;
        h.bth.set_solicited(solicited);
        h.bth.set_mig_req(mig);
        h.bth.set_ack_req(ack);
        h.bth.set_fecn(fecn);
        h.bth.set_becn(becn);
        h
    }
}

prop_compose! {
    fn aar_region()(flags in 0u8..16, bytes in any::<[u8; 23]>()) -> AarRegion {
        let mut all = [flags; 24];
        all[1..].copy_from_slice(&bytes);
        AarRegion::read_from_bytes(&all).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn roce(h in headers(), payload in vec(any::<u8>(), 0..=4096)) {
        let mut frame = vec![0xee; MAX_FRAME];
        let len = h.write(&payload, &mut frame).unwrap();
        let packet = RocePacket::parse(&frame[..len]).unwrap();
        prop_assert_eq!(packet.payload, &payload[..]);
        prop_assert_eq!(packet.headers.ext, h.ext);
        prop_assert_eq!(packet.headers.eth, h.eth);
        prop_assert_eq!(packet.headers.bth.psn(), h.bth.psn());
        prop_assert_eq!(packet.headers.bth.dest_qp(), h.bth.dest_qp());
        prop_assert_eq!(packet.headers.bth.solicited(), h.bth.solicited());
        prop_assert_eq!(packet.headers.bth.ack_req(), h.bth.ack_req());
        prop_assert_eq!(packet.headers.bth.mig_req(), h.bth.mig_req());
        prop_assert_eq!(packet.headers.bth.fecn(), h.bth.fecn());
        prop_assert_eq!(packet.headers.bth.becn(), h.bth.becn());
        prop_assert_eq!(packet.headers.ip.ecn(), h.ip.ecn());
        prop_assert_eq!(usize::from(packet.headers.bth.pad_count()), payload.len().wrapping_neg() % 4);
        prop_assert_eq!(packet.headers.ip.src(), h.ip.src());
        let mut again = vec![0; len];
        packet.write(&mut again).unwrap();
        prop_assert_eq!(&again[..], &frame[..len]);
        // A buffer one byte too short is refused, with the right need.
        prop_assert_eq!(h.write(&payload, &mut again[..len - 1]), Err(BuildError::BufferTooShort { needed: len }));
    }

    #[test]
    fn roce_refuses_foreign_extensions(h in headers(), (_, other) in opcode_and_ext()) {
        let wrong = RoceHeaders { ext: other, ..h };
        let fits = other.kind() == h.ext.kind();
        prop_assert_eq!(wrong.write(&[], &mut [0; MAX_FRAME]).is_ok(), fits);
    }

    /// Fields of the headers that READ, atomics and invalidation bring.
    #[test]
    fn extension_fields(va in any::<u64>(), key in any::<u32>(), [a, b] in any::<[u64; 2]>(), len in any::<u32>()) {
        let atomic = AtomicEth::new(RemoteAddr(va), Rkey(key), a, b);
        prop_assert_eq!((atomic.va(), atomic.rkey()), (RemoteAddr(va), Rkey(key)));
        prop_assert_eq!((atomic.swap_add(), atomic.compare()), (a, b));
        let mut golden = va.to_be_bytes().to_vec();
        golden.extend(key.to_be_bytes());
        golden.extend([a, b].map(u64::to_be_bytes).concat());
        prop_assert_eq!(atomic.as_bytes(), &golden[..]);
        prop_assert_eq!(AtomicAckEth::new(a).original(), a);
        prop_assert_eq!(AtomicAckEth::new(a).as_bytes().to_vec(), a.to_be_bytes());
        prop_assert_eq!(Ieth::new(Rkey(key)).rkey(), Rkey(key));
        prop_assert_eq!(Ieth::new(Rkey(key)).as_bytes().to_vec(), key.to_be_bytes());
        let read = Reth::new(RemoteAddr(va), Rkey(key), len);
        prop_assert_eq!((read.va(), read.rkey(), read.dma_len()), (RemoteAddr(va), Rkey(key), len));
    }

    /// A switch may mark a packet on its way: the ECN and FECN bits are outside the ICRC, and nothing else changes.
    #[test]
    fn marks_on_the_way(h in headers(), payload in vec(any::<u8>(), 0..64)) {
        let mut frame = [0; MAX_FRAME];
        let len = h.write(&payload, &mut frame).unwrap();
        let (mut ip, _) = Ipv4Header::read_from_prefix(&frame[14..]).unwrap();
        ip = ip.with_ecn(Ecn::Ce);
        let udp_len = len - 34;
        ip.finish(udp_len);
        frame[14..34].copy_from_slice(ip.as_bytes());
        frame[46] |= 0x80;
        let packet = RocePacket::parse(&frame[..len]).unwrap();
        prop_assert_eq!(packet.headers.ip.ecn(), Ecn::Ce);
        prop_assert_eq!(packet.headers.ip.tos >> 2, h.ip.tos >> 2);
        prop_assert!(packet.headers.bth.fecn());
        prop_assert_eq!(packet.headers.ext, h.ext);
        prop_assert_eq!(packet.payload, &payload[..]);
    }

    #[test]
    fn arp(dst in mac(), src in mac(), ask in any::<bool>(), sender in mac(), target in mac(),
           sender_ip in any::<Ipv4Addr>(), target_ip in any::<Ipv4Addr>()) {
        let operation = if ask { Operation::Request } else { Operation::Reply };
        let packet = ArpPacket { dst, src, operation, sender_mac: sender, sender_ip, target_mac: target, target_ip };
        let mut frame = [0xee; 64];
        let len = packet.write(&mut frame).unwrap();
        prop_assert_eq!(ArpPacket::parse(&frame[..len]), Ok(packet));
        prop_assert_eq!(ArpPacket::parse(&frame[..41]), Err(ParseError::Truncated));
    }

    #[test]
    fn icmp(dst in mac(), src in mac(), src_ip in any::<Ipv4Addr>(), dst_ip in any::<Ipv4Addr>(), ask in any::<bool>(),
            identifier in any::<u16>(), sequence in any::<u16>(), payload in vec(any::<u8>(), 0..1500), flip in any::<prop::sample::Index>()) {
        let kind = if ask { Kind::Request } else { Kind::Reply };
        let ip = Ipv4Header::new(src_ip, dst_ip, PROTOCOL_ICMP);
        let packet = EchoPacket { dst, src, ip, kind, identifier, sequence, payload: &payload };
        let mut frame = [0xee; 1600];
        let len = packet.write(&mut frame).unwrap();
        let parsed = EchoPacket::parse(&frame[..len]).unwrap();
        prop_assert_eq!(EchoPacket { ip, ..parsed }, packet);
        // The checksums detect any one flipped bit behind the Ethernet header, but not in the padding.
        let bit = flip.index((EchoPacket::HEADER_LEN + payload.len() - 14) * 8);
        frame[14 + bit / 8] ^= 1 << (bit % 8);
        prop_assert!(EchoPacket::parse(&frame[..len]).is_err());
    }

    #[test]
    fn cm_message(attribute in 0x10u8..=0x16, tid in any::<u64>(), body in vec(any::<u8>(), 232)) {
        let mut mad = vec![1, 7, 2, 3, 0, 0, 0, 0];
        mad.extend(tid.to_be_bytes());
        mad.extend([0, attribute, 0, 0, 0, 0, 0, 0]);
        mad.extend(body);
        let (parsed_tid, message) = Message::parse(&mad).unwrap();
        prop_assert_eq!(parsed_tid, tid);
        prop_assert_eq!(&message.to_mad(tid)[..], &mad[..]);
        prop_assert_eq!(Message::parse(&mad[..255]), Err(ParseError::Mad));
    }

    #[test]
    fn mrsp_aar(regions in vec(aar_region(), 0..=mrsp::MAX_REGIONS), lie in 0u8..=255) {
        let mut buf = [0xee; mrsp::MAX_MESSAGE];
        let len = mrsp::Message::Aar(&regions).write(&mut buf).unwrap();
        prop_assert_eq!(mrsp::Message::parse(&buf[..len]), Ok(mrsp::Message::Aar(&regions)));
        let honest = usize::from(lie) == regions.len();
        buf[1] = lie;
        prop_assert_eq!(mrsp::Message::parse(&buf[..len]).is_ok(), honest);
    }

    #[test]
    fn long_set_up(
        deadline_ms in any::<u32>(),
        regions in vec(header::<LongRegion, 32>(), 1..=calls::MAX_REGIONS),
        chain in vec((1u8..128, any::<(u8, u8, u32)>()), 0..=calls::MAX_STEPS),
        (count, steps) in any::<(u8, u8)>(),
    ) {
        let chain: Vec<Step> = chain
            .into_iter()
            .map(|(function, (first, more, user))| {
                let first = first % regions.len() as u8;
                let count = 1 + more % (regions.len() as u8 - first);
                Step::new(FunctionCode::new(function).unwrap(), first, count, user)
            })
            .collect();
        let set_up = SetUp { deadline_ms, steps: &chain, regions: &regions };
        let mut buf = [0xee; 2048];
        let written = set_up.write(&mut buf);
        let needed = 8 + 8 * chain.len() + 32 * regions.len();
        prop_assert_eq!(&written, &if needed <= 1024 { Ok(needed) } else { Err(BuildError::TooLong) });
        let Ok(len) = written else { return Ok(()) };
        prop_assert_eq!(SetUp::parse(&buf[..len]), Ok(set_up));
        prop_assert_eq!(set_up.write(&mut [0; 1024][..len - 1]), Err(BuildError::BufferTooShort { needed: len }));
        // Counts that do not fit the length, or steps that are regions: 4 steps are as long as one region.
        let honest = (usize::from(count), usize::from(steps)) == (regions.len(), chain.len());
        (buf[1], buf[2]) = (count, steps);
        let fits = usize::from(steps) <= 4 && 8 + 8 * usize::from(steps) + 32 * usize::from(count) == len;
        match SetUp::parse(&buf[..len]) {
            Ok(parsed) => prop_assert!(fits && (honest || parsed != set_up)),
            Err(error) => prop_assert!(!honest && (error == ParseError::MrspStep) == fits),
        }
    }

    #[test]
    fn long_answer(regions in vec(header::<LongGiven, 24>(), 0..=calls::MAX_REGIONS), lie in 0u8..=255) {
        let mut buf = [0xee; calls::MAX_MESSAGE];
        let len = SetUpAnswer(&regions).write(&mut buf).unwrap();
        prop_assert_eq!(SetUpAnswer::parse(&buf[..len]), Ok(SetUpAnswer(&regions)));
        let honest = usize::from(lie) == regions.len();
        buf[1] = lie;
        prop_assert_eq!(SetUpAnswer::parse(&buf[..len]).is_ok(), honest);
    }

    #[test]
    fn immediates_of_contexts(imm: u32, code in 0u32..256) {
        let context = Context((imm >> 24) as u8);
        prop_assert_eq!(Request::context_of(imm), context);
        let (low, bare) = (imm as u8, imm & 0xff00_00ff);
        prop_assert_eq!(Request::of_write(imm).is_ok(), low >= 0x80 || low == 0);
        if let Ok(request) = Request::of_write(imm) {
            prop_assert_eq!(request.to_imm(), if low == 0 { bare } else { imm });
        }
        for (low, of_send) in [(1, Request::Message(context)), (2, Request::Cancel(context))] {
            let imm = imm & !0xff | low;
            prop_assert_eq!(Request::of_send(Some(imm)), Ok(of_send));
            prop_assert_eq!(of_send.to_imm(), imm & 0xff00_00ff);
        }
        prop_assert_eq!(Request::of_send(Some(imm)).is_ok(), low == 1 || low == 2);
        let code = ReturnCode::new(code);
        prop_assert_eq!(calls::parse_result(calls::result_imm(context, code)), (context, code));
        prop_assert_eq!(calls::parse_result(calls::answer_imm(context)), (context, ReturnCode::SUCCESS));
    }

    #[test]
    fn agreement(extensions: u8, contexts: u8) {
        let agreement = Agreement { extensions: Extensions(extensions), contexts };
        let mut private_data = [0xee; 56];
        agreement.put(&mut private_data).unwrap();
        prop_assert_eq!(Agreement::find(&private_data), Some(agreement));
        prop_assert_eq!(&private_data[..48], &[0xee; 48]);
    }

    #[test]
    fn mrsp_a(regions in vec(header::<ARegion, 16>(), 0..=mrsp::MAX_REGIONS), lie in 0u8..=255) {
        let mut buf = [0xee; mrsp::MAX_MESSAGE];
        let len = mrsp::Message::A(&regions).write(&mut buf).unwrap();
        prop_assert_eq!(mrsp::Message::parse(&buf[..len]), Ok(mrsp::Message::A(&regions)));
        let honest = usize::from(lie) == regions.len();
        buf[1] = lie;
        prop_assert_eq!(mrsp::Message::parse(&buf[..len]).is_ok(), honest);
    }

    #[test]
    fn immediates(imm in any::<u32>()) {
        if let Ok(call) = CallImm::parse(imm) {
            prop_assert_eq!(call.to_u32(), imm);
        } else {
            prop_assert!(imm != 0 && (imm & 0x80 == 0 || imm & 0x7f == 0));
        }
        prop_assert_eq!(ReturnCode::from_imm(imm).to_imm(), imm & 0xffff_ff00);
    }

    #[test]
    fn matmul_args(float in any::<bool>(), m in any::<u32>(), n in any::<u32>(), k in any::<u32>(), at in 20usize..64) {
        let dtype = if float { matmul::Dtype::Float32 } else { matmul::Dtype::Int32 };
        let args = matmul::Args { dtype, m, n, k };
        let mut block = args.to_bytes();
        prop_assert_eq!(matmul::Args::parse(&block), Ok(args));
        block[at] ^= 0x10;
        prop_assert_eq!(matmul::Args::parse(&block), Err(ParseError::ArgsReserved));
    }

    #[test]
    fn vector_args(dtype in 0usize..4, operation in any::<u32>(), count in any::<u64>(), scalar in any::<[u8; 8]>(), at in 32usize..64) {
        let dtype = vector::Dtype::ALL[dtype];
        let mut scalar = scalar;
        scalar[dtype.size()..].fill(0);
        let args = vector::Args { dtype, operation, count, scalar };
        let mut block = args.to_bytes();
        prop_assert_eq!(vector::Args::parse(&block), Ok(args));
        block[at] ^= 0x10;
        prop_assert_eq!(vector::Args::parse(&block), Err(ParseError::ArgsReserved));
    }

    #[test]
    fn psn_arithmetic(a in 0u32..1 << 24, n in 0u32..1 << 23) {
        let (p, q) = (Psn::new(a), Psn::new(a).add(n));
        prop_assert_eq!(q.since(p), n);
        prop_assert_eq!(q.distance(p), n as i32);
        prop_assert_eq!(p.distance(q), -(n as i32));
        prop_assert_eq!(q.sub(n), p);
        prop_assert!(!q.in_window(p, q));
        prop_assert_eq!(p.in_window(p, q), n > 0);
        prop_assert_eq!(U24::from(q).get(), (a + n) % (1 << 24));
    }

    /// A UDP checksum may be there; then it must be right.
    #[test]
    fn udp_checksums(h in headers(), payload in vec(any::<u8>(), 0..64), wrong in 1u16..) {
        let mut frame = vec![0; MAX_FRAME];
        let len = h.write(&payload, &mut frame).unwrap();
        frame.truncate(len);
        let right = match udp_checksum_of(&frame) {
            0 => 0xffff,
            sum => sum,
        };
        frame[40..42].copy_from_slice(&right.to_be_bytes());
        prop_assert!(RocePacket::parse(&frame).is_ok());
        prop_assume!(wrong != right && (wrong, right) != (0xffff, 0));
        frame[40..42].copy_from_slice(&wrong.to_be_bytes());
        prop_assert_eq!(RocePacket::parse(&frame), Err(ParseError::UdpChecksum));
    }

    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..600)) {
        let _ = RocePacket::parse(&bytes);
        let _ = ArpPacket::parse(&bytes);
        let _ = EchoPacket::parse(&bytes);
        let _ = Message::parse(&bytes);
        let _ = mrsp::Message::parse(&bytes);
        let _ = SetUp::parse(&bytes);
        let _ = SetUpAnswer::parse(&bytes);
        if let Some(block) = bytes.first_chunk() {
            let _ = matmul::Args::parse(block);
            let _ = vector::Args::parse(block);
        }
    }

    /// Random bytes behind right lower layers, so that the checks above them are reached.
    #[test]
    fn any_transport_bytes(transport in vec(any::<u8>(), 0..200), opcode in prop::sample::select(&Opcode::ALL[..])) {
        let mut frame = nearly_a_frame(&transport, opcode as u8);
        if transport.len() >= 16 {
            let icrc = icrc_of(&frame);
            let end = frame.len();
            frame[end - 4..].copy_from_slice(&icrc);
        }
        match RocePacket::parse(&frame) {
            Ok(packet) => {
                let mut rebuilt = vec![0; frame.len()];
                prop_assert_eq!(packet.write(&mut rebuilt), Ok(frame.len()));
            }
            Err(e) => prop_assert!(
                matches!(e, ParseError::Truncated | ParseError::BthVersion | ParseError::BthPad),
                "{:?}", e
            ),
        }
    }
}

/// Ethernet, IPv4 and UDP around `transport`, whose first byte becomes `opcode`.
fn nearly_a_frame(transport: &[u8], opcode: u8) -> Vec<u8> {
    let mut ip = Ipv4Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 17);
    ip.finish(8 + transport.len());
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend(zerocopy::IntoBytes::as_bytes(&ip));
    frame.extend([0xc0, 1, 0x12, 0xb7]);
    frame.extend((8 + transport.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(transport);
    if let Some(byte) = frame.get_mut(42) {
        *byte = opcode;
    }
    frame
}

/// The ICRC by the words of the standard, bit by bit: an oracle that shares nothing with the crate.
fn icrc_of(frame: &[u8]) -> [u8; 4] {
    let mut bytes = vec![0xff; 8];
    bytes.extend(&frame[14..frame.len() - 4]);
    for masked in [1, 8, 10, 11, 26, 27, 32] {
        bytes[8 + masked] = 0xff;
    }
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    (!crc).to_le_bytes()
}

/// The UDP checksum of a frame that has none, by the words of RFC 768: an oracle that shares nothing with the crate.
fn udp_checksum_of(frame: &[u8]) -> u16 {
    let mut bytes = frame[26..34].to_vec();
    bytes.extend([0, 17, frame[38], frame[39]]);
    bytes.extend(&frame[34..]);
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let sum = bytes.chunks(2).map(word).fold(0, |sum, word| (sum + word) % 0xffff);
    !sum as u16
}

/// Bytes that the upstream NAAICE library printed.
#[test]
fn mrsp_golden() {
    fn unhex(s: &str) -> Vec<u8> {
        let digits: Vec<u8> = s.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).unwrap() as u8).collect();
        digits.chunks(2).map(|d| d[0] << 4 | d[1]).collect()
    }
    fn check(message: mrsp::Message<'_>, golden: &str) {
        let golden = unhex(golden);
        let mut buf = [0; mrsp::MAX_MESSAGE];
        let len = message.write(&mut buf).unwrap();
        assert_eq!(buf[..len], golden);
        assert_eq!(mrsp::Message::parse(&golden), Ok(message));
    }
    let addresses = [RemoteAddr(0x1122_3344_5566_0000), RemoteAddr(0x1122_3344_5567_0000)];
    let aar = [
        AarRegion::parameter(
            RegionFlags::SINGLE_SEND | RegionFlags::INPUT,
            0xa1_b2c3_d4e5_f000,
            addresses[0],
            Rkey(0x0102_0304),
            4096,
        ),
        AarRegion::parameter(RegionFlags::INPUT | RegionFlags::OUTPUT, 0x1000, addresses[1], Rkey(0x0a0b_0c0d), 64),
        AarRegion::internal(0x2000, 32),
    ];
    check(
        mrsp::Message::Aar(&aar),
        "01030000 06a1b2c3d4e5f000 1122334455660000 0102030400001000 0c00000000001000 1122334455670000 \
         0a0b0c0d00000040 0100000000002000 0000000000000000 0000000000000020",
    );
    let a = [ARegion::new(addresses[0], Rkey(0x0102_0304), 4096), ARegion::new(addresses[1], Rkey(0x0a0b_0c0d), 64)];
    check(mrsp::Message::A(&a), "02020000 1122334455660000 0102030400001000 1122334455670000 0a0b0c0d00000040");
    check(mrsp::Message::Err(1), "00010000");

    let call = CallImm::Start { function: FunctionCode::INCREMENT, user: [0xaa, 0xbb, 0xcc] };
    assert_eq!(call.to_u32(), 0xccbb_aa81);
    assert_eq!(CallImm::parse(0xccbb_aa81), Ok(call));
    assert_eq!(CallImm::parse(0), Ok(CallImm::HostError));
    for (imm, code) in [(0, 0), (1, 0), (0x100, 1), (0x1000, 16), (0x1_0000, 0x100)] {
        assert_eq!(ReturnCode::from_imm(imm).get(), code);
    }
}

#[test]
fn long_set_up_refuses() {
    let region = LongRegion::parameter(RegionFlags::INPUT, RemoteAddr(1), Rkey(2), 3);
    let message = |steps: &[Step]| {
        let mut buf = [0; calls::MAX_MESSAGE];
        let len = SetUp { deadline_ms: 0, steps, regions: &[region; 2] }.write(&mut buf).unwrap();
        buf[..len].to_vec()
    };
    let step = |first, count| Step::new(FunctionCode::EMPTY, first, count, 0);
    for (first, count, ok) in
        [(0, 2, true), (1, 1, true), (0, 0, false), (1, 2, false), (2, 1, false), (255, 255, false)]
    {
        let message = message(&[step(0, 1), step(first, count)]);
        assert_eq!(SetUp::parse(&message).is_ok(), ok, "{first} {count}");
    }
    for function in [0, 128, 255] {
        let mut message = message(&[step(0, 1)]);
        message[8] = function;
        assert_eq!(SetUp::parse(&message), Err(ParseError::MrspStep));
    }
    // Reserved bytes have no meaning, and so are not checked.
    let mut reserved = message(&[step(0, 1)]);
    for at in [3, 11, 12, 17, 23, 44, 47] {
        reserved[at] = 0xff;
    }
    let parsed = SetUp::parse(&reserved).unwrap();
    assert_eq!((parsed.steps[0].user(), parsed.regions[0].size()), (0, 3));
    assert_eq!(SetUp::parse(&[0x11; 7]), Err(ParseError::Truncated));
    assert_eq!(SetUp::parse(&[0x12, 0, 0, 0, 0, 0, 0, 0]), Err(ParseError::MrspType));
    assert_eq!(SetUpAnswer::parse(&[0x11, 0, 0, 0]), Err(ParseError::MrspType));
    assert!(SetUp::is_one(&[0x11]) && !SetUp::is_one(&[1]) && !SetUp::is_one(&[]));
    let too_many = SetUp { deadline_ms: 0, steps: &[step(0, 1); 5], regions: &[region] };
    assert_eq!(too_many.write(&mut [0; 1024]), Err(BuildError::TooLong));
    assert_eq!(calls::MAX_REGIONS, 31);
}

#[test]
fn mrsp_refuses() {
    use mrsp::Message;
    assert_eq!(Message::parse(&[1, 0, 0]), Err(ParseError::Truncated));
    assert_eq!(Message::parse(&[3, 0, 0, 0]), Err(ParseError::MrspType));
    assert_eq!(Message::parse(&[0, 1, 0, 0, 0]), Err(ParseError::MrspCount));
    let too_many = [AarRegion::internal(0, 0); 32];
    assert_eq!(Message::Aar(&too_many).write(&mut [0; 1024]), Err(BuildError::TooLong));
    assert_eq!(mrsp::MAX_REGIONS, 31);
    assert_eq!(RegionFlags::from_bits(0xf5), RegionFlags::INTERNAL | RegionFlags::INPUT);
}

#[test]
fn matmul_golden() {
    let args = matmul::Args { dtype: matmul::Dtype::Float32, m: 2, n: 3, k: 4 };
    let mut golden = [0; 64];
    golden[..20].copy_from_slice(b"NAMM\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0");
    assert_eq!(args.to_bytes(), golden);
    golden[0] ^= 1;
    assert_eq!(matmul::Args::parse(&golden), Err(ParseError::ArgsMagic));
    golden[0] ^= 1;
    golden[4] = 2;
    assert_eq!(matmul::Args::parse(&golden), Err(ParseError::ArgsType));
}

#[test]
fn vector_golden() {
    use vector::{Args, Binary, Dtype, Reduction, Unary, Vector};
    let operation = Binary::Axpy.number();
    let args = Args { dtype: Dtype::Float32, operation, count: 0x1_0000_0002, scalar: *b"abcd\0\0\0\0" };
    let mut golden = [0; 64];
    golden[..28].copy_from_slice(b"NAVE\x01\0\0\0\x05\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0abcd");
    assert_eq!(args.to_bytes(), golden);
    for (at, error) in [
        (0, ParseError::ArgsMagic),
        (4, ParseError::ArgsType),
        (12, ParseError::ArgsReserved),
        (28, ParseError::ArgsReserved),
        (31, ParseError::ArgsReserved),
    ] {
        let mut wrong = golden;
        wrong[at] ^= 0x40;
        assert_eq!(Args::parse(&wrong), Err(error), "byte {at}");
    }
    assert_eq!(Vector::ALL.map(|function| function.code().get()), [64, 65, 66, 67, 68]);
    assert_eq!(Dtype::ALL.map(Dtype::size), [4, 4, 8, 8]);
    assert_eq!((0..8).filter(|n| Binary::from_number(*n).map(Binary::number) == Ok(*n)).count(), 6);
    assert_eq!((0..8).filter(|n| Unary::from_number(*n).map(Unary::number) == Ok(*n)).count(), 2);
    assert_eq!((0..8).filter(|n| Reduction::from_number(*n).map(Reduction::number) == Ok(*n)).count(), 5);
    assert_eq!(Binary::from_number(6), Err(ParseError::ArgsOperation));
}

/// Each check below the transport has its own error.
#[test]
fn typed_errors() {
    let flow = Flow::new([2; 6].into(), [4; 6].into(), [10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 0xc000);
    let bth = Bth::new(Opcode::WriteOnly, Qpn::new(2), Psn::new(3));
    let h = RoceHeaders::new(&flow, bth, Ext::Reth(Reth::new(RemoteAddr(0), Rkey(0), 5)));
    let mut good = [0; 128];
    let len = h.write(b"hello", &mut good).unwrap();
    let good = &good[..len];

    // Changes bytes, repairs the IPv4 checksum and the ICRC, parses.
    let with = |changes: &[(usize, u8)]| {
        let mut frame = good.to_vec();
        for &(at, value) in changes {
            frame[at] = value;
        }
        frame[24..26].fill(0);
        let sum = checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        let icrc = icrc_of(&frame);
        frame[len - 4..].copy_from_slice(&icrc);
        RocePacket::parse(&frame).map(|p| p.payload.len())
    };
    assert_eq!(with(&[]), Ok(5));
    assert_eq!(with(&[(12, 0x86)]), Err(ParseError::EtherType));
    assert_eq!(with(&[(14, 0x65)]), Err(ParseError::IpVersion));
    assert_eq!(with(&[(14, 0x46)]), Err(ParseError::IpOptions));
    assert_eq!(with(&[(16, 0x10)]), Err(ParseError::IpLength));
    assert_eq!(with(&[(17, 19)]), Err(ParseError::IpLength));
    assert_eq!(with(&[(20, 0x20)]), Err(ParseError::IpFragment));
    assert_eq!(with(&[(21, 1)]), Err(ParseError::IpFragment));
    assert_eq!(with(&[(23, 6)]), Err(ParseError::IpProtocol));
    assert_eq!(with(&[(37, 0xb8)]), Err(ParseError::UdpPort));
    assert_eq!(with(&[(39, 9)]), Err(ParseError::UdpLength));
    assert_eq!(with(&[(41, 1)]), Err(ParseError::UdpChecksum));
    assert_eq!(with(&[(42, 0x15)]), Err(ParseError::BthOpcode));
    assert_eq!(with(&[(43, 0x31)]), Err(ParseError::BthVersion));
    assert_eq!(with(&[(43, 0x20)]), Ok(6));

    let mut frame = good.to_vec();
    frame[24] ^= 1;
    assert_eq!(RocePacket::parse(&frame), Err(ParseError::IpChecksum));
    let mut frame = good.to_vec();
    frame[len - 1] ^= 1;
    assert_eq!(RocePacket::parse(&frame), Err(ParseError::Icrc));
    assert_eq!(icrc_of(good), good[len - 4..]);
    // A packet without payload that claims padding.
    let bth = Bth::new(Opcode::Acknowledge, Qpn::new(2), Psn::new(3));
    let ack = RoceHeaders::new(&flow, bth, Ext::Aeth(Aeth::new(Syndrome::ACK, 1)));
    let mut frame = [0; 62];
    assert_eq!(ack.write(&[], &mut frame), Ok(62));
    frame[43] |= 0x10;
    let icrc = icrc_of(&frame);
    frame[58..].copy_from_slice(&icrc);
    assert_eq!(RocePacket::parse(&frame), Err(ParseError::BthPad));
}

/// A CNP byte by byte, behind the IPv4 header.
#[test]
fn cnp_golden() {
    let flow = Flow::new([2; 6].into(), [4; 6].into(), [10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 0xc000);
    let mut frame = [0xee; 80];
    assert_eq!(RoceHeaders::cnp(&flow.with_ecn(Ecn::Ect0), Qpn::new(0x12_3456)).write(&[], &mut frame), Ok(74));
    assert_eq!(frame[15] & 3, 2);
    let mut golden = vec![0xc0, 0, 0x12, 0xb7, 0, 40, 0, 0];
    golden.extend([0x81, 0x40, 0xff, 0xff, 0x40, 0x12, 0x34, 0x56, 0, 0, 0, 0]);
    golden.extend([0; 16]);
    assert_eq!(frame[34..70], golden);
    assert_eq!(frame[70..74], icrc_of(&frame[..74]));
    let packet = RocePacket::parse(&frame[..74]).unwrap();
    assert_eq!((packet.opcode, packet.headers.bth.becn(), packet.payload), (Opcode::Cnp, true, &[][..]));
    assert!(!packet.opcode.is_response() && !packet.opcode.is_ud());
    // The reserved bytes must be there.
    let mut short = frame[..58].to_vec();
    short[16..18].copy_from_slice(&44u16.to_be_bytes());
    short[38..40].copy_from_slice(&24u16.to_be_bytes());
    short[24..26].fill(0);
    let sum = checksum(&short[14..34]);
    short[24..26].copy_from_slice(&sum.to_be_bytes());
    let icrc = icrc_of(&short);
    short[54..].copy_from_slice(&icrc);
    assert_eq!(RocePacket::parse(&short), Err(ParseError::Truncated));
}

#[test]
fn codes() {
    assert_eq!(PathMtu::ALL.map(PathMtu::bytes), [256, 512, 1024, 2048, 4096]);
    assert_eq!(PathMtu::for_ip_mtu(1500), Some(PathMtu::Mtu1024));
    assert_eq!(PathMtu::for_ip_mtu(4200), Some(PathMtu::Mtu4096));
    assert_eq!(PathMtu::for_ip_mtu(300), None);
    assert_eq!(cm::timeout_code(1_000_000_000), 18);
    assert_eq!(cm::timeout_nanos(20), 4_294_967_296);
    assert_eq!(cm::timeout_code(u64::MAX), 31);
    assert_eq!(cm::service_id(12345), 0x0106_3039);
    assert_eq!(cm::service_port(0x0111_3039), None);
    for byte in 0..=255 {
        assert_eq!(Syndrome::from_u8(byte).to_u8(), byte);
    }
    for opcode in Opcode::ALL {
        assert_eq!(Opcode::from_u8(opcode as u8), Ok(opcode));
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// Packets that scapy built, with values in every field that the ICRC leaves out.
#[test]
fn the_icrc_over_ipv6_and_ipv4_is_that_of_scapy() {
    let over_v6 = unhex(concat!(
        "62a123450020113f20010db8000000000000000000000001fe800000000000000000000000020003c00112b7002005920430ffff",
        "000000118000000568656c6c6f000000fc6e369c"
    ));
    let (transport, icrc) = icrc::split(&over_v6[48..]).unwrap();
    let (src, dst) = ("[2001:db8::1]:49153".parse().unwrap(), "[fe80::2:3]:4791".parse().unwrap());
    assert_eq!(icrc::of_datagram(src, dst, 99, transport), Some(*icrc));
    let other = "[fe80::2:4]:4791".parse().unwrap();
    assert_ne!(icrc::of_datagram(src, other, 99, transport), Some(*icrc));

    let over_v4 = unhex(
        "452a0034000740003f1127860a0000010a000002c00112b70020a0a00430ffff000000118000000568656c6c6f000000a8dd075c",
    );
    let (transport, icrc) = icrc::split(&over_v4[28..]).unwrap();
    let (src, dst) = ("10.0.0.1:49153".parse().unwrap(), "10.0.0.2:4791".parse().unwrap());
    assert_eq!(icrc::of_datagram(src, dst, 7, transport), Some(*icrc));
    assert_ne!(icrc::of_datagram(src, dst, 8, transport), Some(*icrc));
    assert_eq!(icrc::of_datagram(src, other, 7, transport), None);
    assert_eq!(icrc::split(&[0; 15]), Err(ParseError::Truncated));
}

/// The same packet, whether its payload is given or filled in.
#[test]
fn transport_headers_leave_the_payload_to_the_caller() {
    let headers = Headers::new(Bth::new(Opcode::SendOnly, Qpn::new(17), Psn::new(5)), Ext::None);
    let mut buf = [0xaa; 64];
    let (payload, len) = headers.write(5, &mut buf).unwrap();
    payload.copy_from_slice(b"hello");
    assert_eq!((len, headers.packet_len(5)), (24, 24));
    assert_eq!(buf[12..20], *b"hello\0\0\0");
    assert_eq!(buf[20..], [0xaa; 44]);
    let packet = Packet::parse(&buf[..len]).unwrap();
    assert_eq!((packet.payload, packet.opcode), (&b"hello"[..], Opcode::SendOnly));
    assert_eq!(headers.write(5, &mut buf[..23]).unwrap_err(), BuildError::BufferTooShort { needed: 24 });
}

/// The first bytes of a packet say all of it but the payload, for each kind of extension headers; fewer do not.
#[test]
fn a_packet_is_read_by_its_first_bytes() {
    let longest = Ext::Atomic(AtomicEth::new(RemoteAddr(8), Rkey(1), 2, 3));
    let reth = Ext::Reth(Reth::new(RemoteAddr(8), Rkey(1), 100));
    for (opcode, ext, payload) in [
        (Opcode::CmpSwap, longest, 0),
        (Opcode::WriteOnly, reth, 101),
        (Opcode::SendMiddle, Ext::None, 4096),
        (Opcode::SendOnly, Ext::None, 0),
    ] {
        let headers = Headers::new(Bth::new(opcode, Qpn::new(17), Psn::new(5)), ext);
        let mut buf = vec![0xaa; 5000];
        let (_, len) = headers.write(payload, &mut buf).unwrap();
        let whole = Packet::parse(&buf[..len]).unwrap();
        let head = &buf[..len.min(MAX_HEADERS)];
        let packet = Packet::parse_head(head, len).unwrap();
        assert_eq!((packet.headers, packet.opcode), (whole.headers, whole.opcode));
        assert_eq!(&buf[packet.payload], whole.payload);
        assert_eq!(whole.payload.len(), payload);
        for (head, len) in [(&head[..11], len), (head, len - payload - 5), (&[], 0), (head, 0)] {
            assert_eq!(Packet::parse_head(head, len), Err(ParseError::Truncated), "{opcode:?}, {len} bytes");
        }
    }
}

#[test]
fn addresses_of_both_families_pass_through_gid_and_ip_cm() {
    let v4: (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let v6: (IpAddr, IpAddr) = ("2001:db8::1".parse().unwrap(), "fe80::2".parse().unwrap());
    for (src, dst) in [v4, v6] {
        let ip_cm = cm::IpCm::new(5, src, dst);
        ip_cm.check().unwrap();
        assert_eq!((ip_cm.src(), ip_cm.dst()), (src, dst));
        assert_eq!(IpAddr::from(cm::Gid::from(src)), src);
    }
    assert_eq!(cm::Gid::from(v4.0).0[10..], [0xff, 0xff, 10, 0, 0, 1]);
}
