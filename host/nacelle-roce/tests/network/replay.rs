// SPDX-License-Identifier: Apache-2.0
//! A session that Linux had with another Linux, replayed to the endpoint: connection, region set-up, call, good-bye.
//!
//! Frames of the client go in as they were captured, except for what the endpoint chose differently from the other
//! Linux: identifier, queue pair number, region addresses and keys.

use nacelle_roce::{
    Access, ConnectOptions, Endpoint, EndpointConfig, Event, Instant, QpModify, RecvWr, Region, Rtr, SendWr, WcOpcode,
    WcStatus,
    wire::{
        Qpn, RoceHeaders, RocePacket,
        bth::{AtomicEth, Bth, Opcode, Reth, Syndrome},
        cm::{Message, PathMtu},
        mrsp,
        transport::Ext,
    },
};
use std::{fs, path::Path};

fn frames(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nacelle-wire/tests/data").join(name);
    let bytes = fs::read(path).unwrap();
    let mut rest = &bytes[24..];
    let mut frames = Vec::new();
    while let Some((header, body)) = rest.split_first_chunk::<16>() {
        let len = u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
        frames.push(body[..len].to_vec());
        rest = &body[len..];
    }
    frames
}

fn rewrite(packet: &RocePacket<'_>, qpn: Qpn, ext: Ext) -> Vec<u8> {
    let b = packet.headers.bth;
    let mut bth = Bth::new(packet.opcode, qpn, b.psn());
    bth.set_ack_req(b.ack_req());
    bth.set_solicited(b.solicited());
    bth.set_mig_req(b.mig_req());
    let mut buf = vec![0; 2000];
    let len = RoceHeaders { bth, ext, ..packet.headers }.write(packet.payload, &mut buf).unwrap();
    buf.truncate(len);
    buf
}

#[test]
fn linux_client_session() {
    let frames = frames("naaice-race.pcap");
    let packets: Vec<_> = frames.iter().filter_map(|f| RocePacket::parse(f).ok()).collect();
    let client = packets[0].headers;
    let Message::Rep(linux_rep) = Message::parse(packets[1].payload).unwrap().1 else { panic!() };
    let linux_server = linux_rep.local_qpn();

    let now = Instant::from_nanos(1);
    let mut ep = Endpoint::new(EndpointConfig::new(client.eth.dst, client.ip.dst(), [9; 32]));
    ep.transport.listen(mrsp::DEFAULT_PORT);
    let mut buf = vec![0; ep.frame_len()];
    let mut sent = move |ep: &mut Endpoint| {
        let mut all = Vec::new();
        while let Some(len) = ep.poll_transmit(now, &mut buf) {
            all.push(buf[..len].to_vec());
        }
        all
    };

    let mut conn = None;
    let mut comm_id = 0;
    let mut qpn = Qpn::default();
    let mut regions: Vec<(mrsp::ARegion, Region)> = Vec::new();
    let mut asked: Vec<mrsp::AarRegion> = Vec::new();
    let mut started = false;
    let mut finished = false;
    for (raw, packet) in frames.iter().filter_map(|f| RocePacket::parse(f).ok().map(|p| (f, p))) {
        if packet.headers.eth.src != client.eth.src {
            // The other Linux's advertisement has the address that the client uses below.
            if let Ok(mrsp::Message::A(given)) = mrsp::Message::parse(packet.payload)
                && regions.is_empty()
                && packet.opcode == Opcode::SendOnly
            {
                for g in given {
                    let r = ep.transport.register(vec![0; g.size() as usize], Access::REMOTE_WRITE, conn).unwrap();
                    regions.push((*g, r));
                }
                let own: Vec<_> = regions.iter().map(|(g, r)| mrsp::ARegion::new(r.addr, r.rkey, g.size())).collect();
                let mut message = [0; mrsp::MAX_MESSAGE];
                let len = mrsp::Message::A(&own).write(&mut message).unwrap();
                ep.transport.post_send(conn.unwrap(), SendWr::send(1, &message[..len])).unwrap();
                assert_eq!(sent(&mut ep).len(), 1);
            }
            continue;
        }
        if packet.opcode == Opcode::UdSendOnly {
            match Message::parse(packet.payload).unwrap() {
                (_, Message::Req(req)) if conn.is_none() => {
                    ep.handle(now, raw).unwrap(); // exactly as Linux sent it
                    let Some(Event::ConnectRequest { conn: c, port, peer, .. }) = ep.transport.poll_event() else {
                        panic!()
                    };
                    assert_eq!((port, peer), (mrsp::DEFAULT_PORT, client.ip.src().into()));
                    let recv = ep.transport.register(vec![0; mrsp::MAX_MESSAGE], Access::LOCAL, None).unwrap();
                    ep.transport.post_recv(c, RecvWr { id: 0, slice: Some(recv.all()) }).unwrap();
                    ep.transport.post_recv(c, RecvWr { id: 1, slice: None }).unwrap();
                    let starting_psn = Some(linux_rep.starting_psn());
                    ep.transport.accept(now, c, ConnectOptions { starting_psn, ..ConnectOptions::default() }).unwrap();
                    let info = ep.transport.connection(c).unwrap();
                    assert_eq!(info.path_mtu, PathMtu::Mtu1024);
                    assert_eq!(info.remote_qpn, Some(req.local_qpn()));
                    qpn = info.local_qpn;
                    let rep = sent(&mut ep).pop().unwrap();
                    let rep = RocePacket::parse(&rep).unwrap();
                    // The reply is laid out as Linux's: nothing differs but what each side chooses.
                    let (tid, Message::Rep(own)) = Message::parse(rep.payload).unwrap() else { panic!() };
                    let (linux_tid, _) = Message::parse(packets[1].payload).unwrap();
                    assert_eq!(tid, linux_tid);
                    comm_id = own.local_comm_id.get();
                    let mut expected = *own;
                    expected.local_comm_id = linux_rep.local_comm_id;
                    expected.local_ca_guid = linux_rep.local_ca_guid;
                    let mut theirs = *linux_rep;
                    theirs.clone_from(linux_rep);
                    let same = |m: &nacelle_roce::wire::cm::Rep| {
                        (m.remote_comm_id, m.starting_psn(), m.rnr_retry_count(), m.target_ack_delay(), m.private_data)
                    };
                    assert_eq!(same(&expected), same(&theirs));
                    conn = Some(c);
                }
                (tid, Message::Rtu(rtu)) if !started => {
                    let mut own = *rtu;
                    own.remote_comm_id.set(comm_id);
                    let mad = Message::Rtu(&own).to_mad(tid);
                    let p = RocePacket { payload: &mad, ..packet };
                    ep.handle(now, &rewrite(&p, Qpn::GSI, p.headers.ext)).unwrap();
                    assert!(matches!(ep.transport.poll_event(), Some(Event::Connected { .. })));
                    started = true;
                }
                (tid, Message::Dreq(dreq)) => {
                    let own = nacelle_roce::wire::cm::Dreq::new(dreq.local_comm_id.get(), comm_id, qpn);
                    let mad = Message::Dreq(&own).to_mad(tid);
                    let p = RocePacket { payload: &mad, ..packet };
                    ep.handle(now, &rewrite(&p, Qpn::GSI, p.headers.ext)).unwrap();
                    assert!(matches!(ep.transport.poll_event(), Some(Event::Disconnected { .. })));
                    let drep = sent(&mut ep).pop().unwrap();
                    let drep = RocePacket::parse(&drep).unwrap();
                    assert!(matches!(Message::parse(drep.payload), Ok((t, Message::Drep(_))) if t == tid));
                    finished = true;
                    break;
                }
                other => panic!("{other:?}"),
            }
            continue;
        }
        assert_eq!(packet.headers.bth.dest_qp(), linux_server);
        let mine = |reth: Reth| {
            let (g, r) = regions.iter().find(|(g, _)| g.rkey() == reth.rkey() && g.address() == reth.va()).unwrap();
            assert!(reth.dma_len() <= g.size());
            Reth::new(r.addr, r.rkey, reth.dma_len())
        };
        let ext = match packet.headers.ext {
            Ext::Reth(reth) => Ext::Reth(mine(reth)),
            Ext::RethImm(reth, imm) => Ext::RethImm(mine(reth), imm),
            other => other,
        };
        ep.handle(now, &rewrite(&packet, qpn, ext)).unwrap();
        let answers = sent(&mut ep);
        if packet.headers.bth.ack_req() && packet.opcode != Opcode::Acknowledge {
            let ack = RocePacket::parse(&answers[0]).unwrap();
            assert!(matches!(ack.headers.ext, Ext::Aeth(a) if a.syndrome() == Syndrome::ACK));
            assert_eq!(ack.headers.bth.psn(), packet.headers.bth.psn());
            assert_eq!(answers[0].len(), 62);
        }
        while let Some(event) = ep.transport.poll_event() {
            let Event::Completion(c) = event else { panic!("{event:?}") };
            assert_eq!(c.status, WcStatus::Success);
            match c.opcode {
                WcOpcode::Recv => {
                    let mrsp::Message::Aar(r) = mrsp::Message::parse(packet.payload).unwrap() else { panic!() };
                    asked = r.to_vec();
                    assert!(c.solicited);
                }
                WcOpcode::RecvWrite => {
                    assert!(matches!(mrsp::CallImm::parse(c.imm.unwrap()), Ok(mrsp::CallImm::Start { .. })));
                    // The answer, as in the capture: outputs back, the last with the status; the client's ACKs follow.
                    let outputs: Vec<_> =
                        asked.iter().filter(|r| r.flags().contains(mrsp::RegionFlags::OUTPUT)).collect();
                    for (i, out) in outputs.iter().enumerate() {
                        let data = vec![0; out.size() as usize];
                        let last = i + 1 == outputs.len();
                        let wr = if last {
                            SendWr::write_imm(2, data, out.address(), out.rkey(), 0)
                        } else {
                            SendWr::write(2, data, out.address(), out.rkey())
                        };
                        ep.transport.post_send(conn.unwrap(), wr).unwrap();
                    }
                    sent(&mut ep);
                }
                _ => {}
            }
        }
    }
    assert!(finished, "the session has an end");
    assert!(!asked.is_empty() && !regions.is_empty());
}

/// READs and atomics that a Linux asked another Linux, asked here: the answers are laid out like Linux's, PSN by PSN.
#[test]
fn linux_reads_and_atomics() {
    let frames = frames("rxe-selection.pcap");
    let packets: Vec<_> = frames.iter().filter_map(|f| RocePacket::parse(f).ok()).collect();
    let now = Instant::from_nanos(1);
    let (mut reads, mut atomics) = (0, 0);
    for (i, request) in packets.iter().enumerate() {
        let h = request.headers;
        let len = match h.ext {
            Ext::Reth(reth) if request.opcode == Opcode::ReadRequest => reth.dma_len() as usize,
            Ext::Atomic(_) => 8,
            _ => continue,
        };
        let mtu = PathMtu::Mtu1024;
        let count = len.div_ceil(mtu.bytes()).max(1) as u32;
        // Linux's answer: the packets that follow from the other side with the PSNs of this request.
        let answers: Vec<_> = packets[i..]
            .iter()
            .filter(|p| p.opcode.is_response() && p.opcode != Opcode::Acknowledge && p.headers.ip.src() == h.ip.dst())
            .filter(|p| p.headers.bth.psn().since(h.bth.psn()) < count)
            .take(count as usize)
            .collect();
        if answers.len() != count as usize {
            continue; // the selection does not have all of it
        }
        let linux: Vec<u8> = answers.iter().flat_map(|p| p.payload.to_vec()).collect();
        let content = match answers[0].headers.ext {
            Ext::AethAtomic(_, atomic) => atomic.original().to_ne_bytes().to_vec(),
            _ => linux.clone(),
        };

        let mut ep = Endpoint::new(EndpointConfig::new(h.eth.dst, h.ip.dst(), [5; 32]));
        let conn = ep.transport.create_qp(now, ConnectOptions::default()).unwrap();
        let path = nacelle_roce::Path { local: h.ip.dst().into(), remote: h.ip.src().into(), hop: h.eth.src.into() };
        let to = Rtr::new(path, answers[0].headers.bth.dest_qp(), h.bth.psn(), mtu);
        ep.transport.modify_qp(now, conn, QpModify::Init).unwrap();
        ep.transport.modify_qp(now, conn, QpModify::Rtr(to)).unwrap();
        let region = ep.transport.register(content, Access::REMOTE_READ | Access::REMOTE_ATOMIC, conn).unwrap();
        let ext = match h.ext {
            Ext::Atomic(a) => Ext::Atomic(AtomicEth::new(region.addr, region.rkey, a.swap_add(), a.compare())),
            _ => Ext::Reth(Reth::new(region.addr, region.rkey, len as u32)),
        };
        let qpn = ep.transport.connection(conn).unwrap().local_qpn;
        ep.handle(now, &rewrite(request, qpn, ext)).unwrap();
        let mut buf = vec![0; ep.frame_len()];
        for theirs in answers {
            let len = ep.poll_transmit(now, &mut buf).expect("as many packets as Linux");
            let ours = RocePacket::parse(&buf[..len]).unwrap();
            let shape =
                |p: &RocePacket<'_>| (p.opcode, p.headers.bth.psn(), p.headers.bth.dest_qp(), p.payload.to_vec());
            assert_eq!(shape(&ours), shape(theirs));
            let said = |ext: Ext| match ext {
                Ext::Aeth(aeth) => (Some(aeth.syndrome()), None),
                Ext::AethAtomic(aeth, atomic) => (Some(aeth.syndrome()), Some(atomic.original())),
                _ => (None, None),
            };
            assert_eq!(said(ours.headers.ext), said(theirs.headers.ext));
        }
        assert_eq!(ep.poll_transmit(now, &mut buf), None, "more packets than Linux");
        match h.ext {
            Ext::Atomic(_) => atomics += 1,
            _ => reads += 1,
        }
    }
    assert!(reads > 0 && atomics > 0, "{reads} READs, {atomics} atomics");
}
