// SPDX-License-Identifier: Apache-2.0
//! Frames that Linux put on the wire: each parses, and comes out the same when it is built again.

mod support;

use nacelle_wire::{
    ParseError, Qpn, RemoteAddr, RocePacket,
    arp::ArpPacket,
    bth::{Opcode, Syndrome},
    cm::{self, IpCm, Message, PathMtu, RejReason, Rep, Req},
    icmp::EchoPacket,
    icrc, mrsp,
    transport::Ext,
};
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};
use support::{capture, captures, is_roce};

#[test]
fn every_roce_frame_comes_out_the_same() {
    let mut opcodes = BTreeMap::new();
    let mut bad_icrc = Vec::new();
    let mut total = 0;
    for (name, frames) in captures() {
        for (i, frame) in frames.iter().enumerate().filter(|(_, f)| is_roce(f)) {
            total += 1;
            match RocePacket::parse(frame) {
                Ok(packet) => {
                    let mut rebuilt = vec![0; frame.len()];
                    assert_eq!(packet.write(&mut rebuilt), Ok(frame.len()), "{name} frame {i}");
                    assert_eq!(rebuilt, *frame, "{name} frame {i}");
                    *opcodes.entry(packet.opcode as u8).or_insert(0) += 1;
                }
                Err(ParseError::Icrc) => bad_icrc.push((name.clone(), i)),
                Err(e) => panic!("{name} frame {i}: {e}"),
            }
        }
    }
    // The one bad frame was sent on purpose.
    assert!(bad_icrc.iter().all(|(name, _)| name == "f_badicrc"), "{bad_icrc:?}");
    assert!(!bad_icrc.is_empty());
    assert!(total >= 600, "{total}");
    let seen: Vec<Opcode> = opcodes.keys().map(|&o| Opcode::from_u8(o).unwrap()).collect();
    for needed in [
        Opcode::SendFirst,
        Opcode::SendMiddle,
        Opcode::SendLast,
        Opcode::SendOnly,
        Opcode::WriteFirst,
        Opcode::WriteMiddle,
        Opcode::WriteLast,
        Opcode::WriteLastImm,
        Opcode::WriteOnly,
        Opcode::WriteOnlyImm,
        Opcode::ReadRequest,
        Opcode::ReadResponseFirst,
        Opcode::ReadResponseMiddle,
        Opcode::ReadResponseLast,
        Opcode::ReadResponseOnly,
        Opcode::Acknowledge,
        Opcode::AtomicAcknowledge,
        Opcode::FetchAdd,
        Opcode::UdSendOnly,
        Opcode::UdSendOnlyImm,
    ] {
        assert!(seen.contains(&needed), "no {needed:?} in the captures");
    }
    println!("{total} frames: {opcodes:?}");
}

/// Whatever bit is flipped on the way, the packet is not accepted, unless the standard leaves the bit unprotected.
#[test]
fn every_protected_bit_is_protected() {
    let frames = capture("f_rnr");
    let frames: Vec<_> = frames.iter().filter(|f| is_roce(f) && f.len() < 400).collect();
    assert!(frames.len() > 10);
    for frame in frames {
        for bit in 0..frame.len() * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // Ethernet addresses, and the byte of FECN and BECN. A UDP checksum need not be there, but if so be right.
            let unprotected = matches!(bit / 8, 0..12 | 46);
            assert_eq!(RocePacket::parse(&flipped).is_ok(), unprotected, "byte {} of {:02x?}", bit / 8, frame);
        }
        for len in 0..frame.len() {
            assert!(RocePacket::parse(&frame[..len]).is_err());
        }
        // Ethernet padding is not part of the packet.
        let mut padded = frame.clone();
        padded.extend([0xaa; 7]);
        assert_eq!(RocePacket::parse(&padded).unwrap().payload, RocePacket::parse(frame).unwrap().payload);
    }
}

/// What Linux asks and answers in READs and atomics, field by field.
#[test]
fn linux_reads_and_atomics() {
    let (mut reads, mut atomics) = (0, 0);
    let (mut asked, mut compared) = (BTreeMap::new(), 0);
    for frame in capture("rxe-selection").iter().filter(|f| is_roce(f)) {
        let packet = RocePacket::parse(frame).unwrap();
        let psn = packet.headers.bth.psn().get();
        match (packet.opcode, packet.headers.ext) {
            (Opcode::ReadRequest, Ext::Reth(reth)) => {
                assert!(packet.payload.is_empty() && packet.headers.bth.ack_req());
                asked.insert(psn, reth.dma_len() as usize);
                reads += 1;
            }
            (Opcode::ReadResponseOnly, Ext::Aeth(aeth)) => {
                assert_eq!(aeth.syndrome(), Syndrome::ACK);
                if let Some(len) = asked.remove(&psn) {
                    assert_eq!(packet.payload.len(), len);
                    compared += 1;
                }
            }
            (Opcode::FetchAdd, Ext::Atomic(atomic)) => {
                assert!(packet.payload.is_empty() && packet.headers.bth.ack_req());
                assert_eq!((atomic.va().0 % 8, atomic.compare()), (0, 0));
                assert_ne!(atomic.rkey().0, 0);
                atomics += 1;
            }
            (Opcode::AtomicAcknowledge, Ext::AethAtomic(aeth, _)) => assert_eq!(aeth.syndrome(), Syndrome::ACK),
            _ => {}
        }
    }
    assert!(reads > 0 && atomics > 0 && compared > 0, "{reads} {atomics} {compared}");
}

#[test]
fn every_other_frame_comes_out_the_same() {
    let (mut arps, mut echoes) = (0, 0);
    for (name, frames) in captures() {
        for frame in &frames {
            if frame[12..14] == [8, 6] {
                let mut rebuilt = [0; 60];
                ArpPacket::parse(frame).unwrap().write(&mut rebuilt).unwrap();
                assert_eq!(rebuilt[..42], frame[..42], "{name}");
                arps += 1;
            } else if frame[12..14] == [8, 0] && frame[23] == 1 {
                let packet = EchoPacket::parse(frame).unwrap();
                let mut rebuilt = vec![0; frame.len().max(60)];
                packet.write(&mut rebuilt).unwrap();
                assert_eq!(rebuilt[..frame.len()], frame[..], "{name}");
                echoes += 1;
            }
        }
    }
    assert!(arps >= 4, "{arps}");
    println!("{arps} ARP frames, {echoes} echoes");
}

#[test]
fn every_cm_message_comes_out_the_same() {
    let mut kinds = BTreeMap::new();
    for (name, frames) in captures() {
        for frame in frames.iter().filter(|f| is_roce(f)) {
            let Ok(packet) = RocePacket::parse(frame) else { continue };
            if packet.headers.bth.dest_qp() != Qpn::GSI {
                continue;
            }
            let Ext::Deth(deth) = packet.headers.ext else { panic!("{name}: not a datagram") };
            assert_eq!(deth.q_key.get(), cm::GSI_Q_KEY);
            let (tid, message) = match Message::parse(packet.payload) {
                // Service ID resolution of udaddy: not supported by Nacelle.
                Err(ParseError::CmAttribute) => continue,
                parsed => parsed.unwrap(),
            };
            assert_eq!(message.to_mad(tid), *packet.payload, "{name}");
            let kind = format!("{message:?}");
            *kinds.entry(kind[..kind.find('(').unwrap()].to_owned()).or_insert(0) += 1;
        }
    }
    for kind in ["Req", "Rep", "Rtu", "Rej", "Dreq", "Drep"] {
        assert!(kinds.contains_key(kind), "no {kind}: {kinds:?}");
    }
    println!("{kinds:?}");
}

/// The messages of one NAAICE session, field by field.
#[test]
fn naaice_session() {
    let frames = capture("naaice-race");
    let mut packets: Vec<_> = frames.iter().filter(|f| is_roce(f)).map(|f| RocePacket::parse(f).unwrap()).collect();
    // Up to the REQ of the next session, which uses the same queue pair numbers.
    let is_req = |p: &RocePacket<'_>| matches!(Message::parse(p.payload), Ok((_, Message::Req(_))));
    packets.truncate(1 + packets[1..].iter().position(is_req).unwrap());
    let cm = |i: usize| Message::parse(packets[i].payload).unwrap().1;

    let Message::Req(req) = cm(0) else { panic!("{:?}", cm(0)) };
    assert_eq!(cm::service_port(req.service_id.get()), Some(mrsp::DEFAULT_PORT));
    assert_eq!((req.transport(), req.retry_count(), req.rnr_retry_count()), (0, 7, 6));
    assert_eq!((req.responder_resources, req.initiator_depth), (1, 1));
    assert_eq!(PathMtu::from_code(req.path_mtu()), Some(PathMtu::Mtu1024));
    assert_eq!((req.remote_cm_timeout(), req.local_cm_timeout(), req.local_ack_timeout()), (20, 20, 19));
    assert_eq!(req.max_cm_retries(), 15);
    assert_eq!(req.p_key.get(), 0xffff);
    req.ip_cm.check().unwrap();
    let (src, dst) = (packets[0].headers.ip.src().into(), packets[0].headers.ip.dst().into());
    assert_eq!((req.ip_cm.src(), req.ip_cm.dst()), (src, dst));
    assert_eq!(IpAddr::from(req.primary_sgid), src);
    assert_eq!(req.private_data, [0; 56]);

    let Message::Rep(rep) = cm(1) else { panic!("{:?}", cm(1)) };
    assert_eq!(rep.remote_comm_id, req.local_comm_id);
    assert_eq!((rep.rnr_retry_count(), rep.target_ack_delay()), (6, 15));
    let Message::Rtu(rtu) = cm(2) else { panic!("{:?}", cm(2)) };
    assert_eq!((rtu.local_comm_id, rtu.remote_comm_id), (req.local_comm_id, rep.local_comm_id));

    // Each side begins at the PSN that the other asked for.
    let first = |qpn: Qpn| packets.iter().find(|p| p.headers.bth.dest_qp() == qpn && !p.opcode.is_response()).unwrap();
    let request = first(rep.local_qpn());
    assert_eq!(request.headers.bth.psn(), rep.starting_psn());
    assert_eq!(first(req.local_qpn()).headers.bth.psn(), req.starting_psn());

    assert!(request.headers.bth.solicited() && request.headers.bth.ack_req());
    let mrsp::Message::Aar(asked) = mrsp::Message::parse(request.payload).unwrap() else { panic!() };
    let answer = first(req.local_qpn());
    let mrsp::Message::A(given) = mrsp::Message::parse(answer.payload).unwrap() else { panic!() };
    let parameters = asked.iter().filter(|r| !r.flags().contains(mrsp::RegionFlags::INTERNAL)).count();
    assert_eq!(given.len(), parameters);

    // The inputs go to the regions given, the last with the function; the outputs come back to the regions asked with.
    let writes: Vec<_> = packets
        .iter()
        .filter_map(|p| match p.headers.ext {
            Ext::Reth(reth) => Some((p.headers.bth.dest_qp(), reth, None)),
            Ext::RethImm(reth, imm) => Some((p.headers.bth.dest_qp(), reth, Some(imm.get()))),
            _ => None,
        })
        .collect();
    assert!(!writes.is_empty());
    for (qpn, reth, imm) in writes {
        let to_device = qpn == rep.local_qpn();
        let targets: Vec<(RemoteAddr, _, u32)> = if to_device {
            given.iter().map(|r| (r.address(), r.rkey(), r.size())).collect()
        } else if qpn == req.local_qpn() {
            asked.iter().map(|r| (r.address(), r.rkey(), r.size())).collect()
        } else {
            panic!("a WRITE without a region");
        };
        assert!(targets.iter().any(|t| t.0 == reth.va() && t.1 == reth.rkey() && reth.dma_len() <= t.2), "{reth:?}");
        match imm {
            Some(imm) if to_device => assert!(mrsp::CallImm::parse(imm).is_ok(), "{imm:08x}"),
            Some(imm) => assert_eq!(mrsp::ReturnCode::from_imm(imm), mrsp::ReturnCode::SUCCESS),
            None => {}
        }
    }
}

/// Built from what a REQ and a REP say, they are the bytes that Linux sent.
#[test]
fn req_and_rep_as_linux_builds_them() {
    let frames = capture("naaice-race");
    let packets: Vec<_> = frames.iter().filter(|f| is_roce(f)).map(|f| RocePacket::parse(f).unwrap()).collect();
    let (tid, Message::Req(linux)) = Message::parse(packets[0].payload).unwrap() else { panic!() };
    let ip_cm = IpCm::new(linux.ip_cm.src_port.get(), packets[0].headers.ip.src(), packets[0].headers.ip.dst());
    let mut own = Req::new(linux.local_comm_id.get(), 12345, linux.local_qpn(), linux.starting_psn(), ip_cm);
    own.local_ca_guid = linux.local_ca_guid;
    own.responder_resources = 1;
    own.initiator_depth = 1;
    own.set_remote_cm_timeout(20);
    own.set_local_cm_timeout(20);
    own.set_retry_count(7);
    own.set_rnr_retry_count(6);
    own.set_path_mtu(PathMtu::Mtu1024.code());
    own.set_max_cm_retries(15);
    own.set_local_ack_timeout(19);
    let mut expected: [u8; cm::MAD_LEN] = packets[0].payload.try_into().unwrap();
    expected[24 + 88..24 + 92].fill(0); // this Linux sets a flow label, which means nothing over IPv4
    assert_eq!(Message::Req(&own).to_mad(tid), expected);

    let (tid, Message::Rep(linux)) = Message::parse(packets[1].payload).unwrap() else { panic!() };
    let (local, remote) = (linux.local_comm_id.get(), linux.remote_comm_id.get());
    let mut own = Rep::new(local, remote, linux.local_qpn(), linux.starting_psn());
    own.local_ca_guid = linux.local_ca_guid;
    own.responder_resources = 1;
    own.initiator_depth = 1;
    own.set_target_ack_delay(15);
    own.set_rnr_retry_count(6);
    assert_eq!(Message::Rep(&own).to_mad(tid), *packets[1].payload);
}

/// What Linux answers to faults.
#[test]
fn faults() {
    let syndromes = |name: &str| -> Vec<Syndrome> {
        capture(name)
            .iter()
            .filter(|f| is_roce(f))
            .filter_map(|f| RocePacket::parse(f).ok())
            .filter_map(|p| if let Ext::Aeth(aeth) = p.headers.ext { Some(aeth.syndrome()) } else { None })
            .collect()
    };
    use nacelle_wire::bth::NakCode::{PsnSequenceError, RemoteAccessError};
    assert!(syndromes("f_badrkey").contains(&Syndrome::Nak(RemoteAccessError)));
    assert!(syndromes("f_badva").contains(&Syndrome::Nak(RemoteAccessError)));
    assert!(syndromes("f_ooo").contains(&Syndrome::Nak(PsnSequenceError)));
    let rnr = syndromes("f_rnr").into_iter().find_map(|s| if let Syndrome::RnrNak(t) = s { Some(t) } else { None });
    assert_eq!(rnr.unwrap().micros(), 1280);

    let rej = capture("f_rej");
    let rej = rej.iter().filter(|f| is_roce(f)).map(|f| RocePacket::parse(f).unwrap()).collect::<Vec<_>>();
    let Message::Rej(rej) = Message::parse(rej[1].payload).unwrap().1 else { panic!() };
    assert_eq!((rej.reason(), rej.message_rejected()), (RejReason::CONSUMER, 0));
}

/// What a socket does not see of an IPv4 packet is found from the rest.
#[test]
fn the_identification_of_every_frame_is_found() {
    let mut identifications = icrc::Identifications::default();
    let mut found = 0;
    for (name, frames) in captures() {
        for frame in frames.iter().filter(|f| is_roce(f)) {
            let Ok(packet) = RocePacket::parse(frame) else { continue };
            let [from, to] = [
                SocketAddr::from((packet.headers.ip.src(), packet.headers.udp.src_port.get())),
                SocketAddr::from((packet.headers.ip.dst(), packet.headers.udp.dst_port.get())),
            ];
            let end = 14 + usize::from(packet.headers.ip.total_length.get());
            let (transport, icrc) = icrc::split(&frame[42..end]).unwrap();
            let zero = icrc::of_datagram(from, to, 0, transport).unwrap();
            let expected = packet.headers.ip.identification.get();
            assert_eq!(identifications.find(transport.len(), zero, *icrc), Some(expected), "{name}");
            found += usize::from(expected != 0);
        }
    }
    assert!(found >= 600, "{found}");
}
