// SPDX-License-Identifier: Apache-2.0
//! RDMA READ (IBTA 9.4.4, 9.7.5.1.9).

use super::{Rule, not_linux, pattern, standard};
use crate::{
    Failure,
    failure::ensure,
    peer::{Peer, Terms},
};
use nacelle_wire::{
    RemoteAddr, Rkey,
    bth::{NakCode, Opcode, Reth, Syndrome},
    transport::Ext,
};

pub(super) const RULES: &[Rule] = &[
    standard("read.returns_every_length_from_every_alignment", "IBTA 9.4.4", lengths),
    standard("read.uses_one_psn_per_response_packet", "IBTA 9.7.4.1", psns),
    standard("read.of_zero_length_needs_no_key", "IBTA 9.7.4.1.4", nothing),
    standard("read.first_and_last_response_carry_an_acknowledgement", "IBTA 9.7.5.1.9", aeth),
    standard("read.sees_the_writes_before_it", "IBTA 10.8.3.3", after_writes),
    standard("read.duplicate_request_is_executed_again", "IBTA 9.7.5.1.5", again),
    not_linux(
        "read.may_be_asked_for_again_from_the_middle",
        "IBTA 9.7.5.1.5",
        "its answer begins with READ response middle",
        middle,
    ),
    standard("read.several_outstanding_are_answered_in_order", "IBTA 9.7.5.1.9", several),
    standard("read.outside_the_region_is_refused", "IBTA 9.7.4.1.4", outside),
];

fn lengths(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[8192])?;
    let region = qp.regions[0];
    let bytes = pattern(3, 4096);
    peer.write_bytes(&mut qp, &region, 0, &bytes)?;
    for (i, len) in [1, 2, 3, 4, 63, 64, 65, 255, 256, 257, 511, 512, 513, 2000].into_iter().enumerate() {
        let offset = (i * 29) % 71;
        peer.expect_bytes(&mut qp, &region, offset as u64, &bytes[offset..offset + len])?;
    }
    peer.disconnect(&qp)
}

fn psns(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let region = qp.regions[0];
    peer.read_bytes(&mut qp, &region, 0, 1000)?; // four packets of 256
    let reth = Ext::Reth(region.reth(0, 8));
    peer.write(&mut qp, reth, Opcode::WriteOnly, &pattern(0, 8))?;
    peer.disconnect(&qp)
}

fn nothing(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[64])?;
    let nowhere = Reth::new(RemoteAddr(0xdead_0000_0000), Rkey(0xffff_ffff), 0);
    let packets = peer.read_packets(&qp, qp.next, nowhere)?;
    ensure!(packets[0].payload.is_empty(), "a READ of nothing brought {} bytes", packets[0].payload.len());
    qp.next = qp.next.add(1);
    peer.expect_silence(&mut qp)?;
    peer.disconnect(&qp)
}

fn aeth(peer: &mut Peer) -> Result<(), Failure> {
    let qp = peer.connect_with(&Terms::default(), &[4096])?;
    let packets = peer.read_packets(&qp, qp.next, qp.regions[0].reth(0, 3 * qp.mtu as u32))?;
    for packet in [&packets[0], &packets[2]] {
        let Ext::Aeth(aeth) = packet.headers.ext else { return Err(Failure::unexpected("an AETH", packet)) };
        ensure!(matches!(aeth.syndrome(), Syndrome::Ack(_)), "the syndrome is {:?}", aeth.syndrome());
    }
    peer.disconnect(&qp)
}

fn after_writes(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let region = qp.regions[0];
    for i in 0..20u8 {
        let bytes = pattern(i, 200);
        peer.send_quietly(&qp, Opcode::WriteOnly, qp.next, Ext::Reth(region.reth(7, 200)), &bytes)?;
        qp.next = qp.next.add(1);
        peer.expect_bytes(&mut qp, &region, 7, &bytes)?;
    }
    peer.disconnect(&qp)
}

fn again(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let region = qp.regions[0];
    let (psn, reth) = (qp.next, region.reth(0, 600));
    let first = peer.read_bytes(&mut qp, &region, 0, 600)?;
    let second: Vec<u8> = peer.read_packets(&qp, psn, reth)?.into_iter().flat_map(|p| p.payload).collect();
    ensure!(first == second, "the second answer differs from the first");
    peer.expect_silence(&mut qp)?;
    peer.disconnect(&qp)
}

fn middle(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let region = qp.regions[0];
    let bytes = pattern(5, 1000);
    peer.write_bytes(&mut qp, &region, 0, &bytes)?;
    let psn = qp.next;
    peer.expect_bytes(&mut qp, &region, 0, &bytes)?;
    let packets = peer.read_packets(&qp, psn.add(2), region.reth(512, 1000 - 512))?;
    let rest: Vec<u8> = packets.into_iter().flat_map(|p| p.payload).collect();
    ensure!(rest == bytes[512..], "the rest of a READ is not the rest of its bytes");
    peer.expect_silence(&mut qp)?;
    peer.disconnect(&qp)
}

fn several(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let region = qp.regions[0];
    let bytes = pattern(6, 4096);
    peer.write_bytes(&mut qp, &region, 0, &bytes)?;
    let count = u64::from(qp.responder_resources.clamp(1, 4));
    for i in 0..count {
        let psn = qp.next.add(2 * i as u32);
        peer.send_quietly(&qp, Opcode::ReadRequest, psn, Ext::Reth(region.reth(1000 * i, 500)), &[])?;
    }
    for i in 0..count {
        let mut found = Vec::new();
        for part in 0..2 {
            let packet = peer.response(&qp)?;
            let psn = qp.next.add(2 * i as u32 + part);
            if packet.headers.bth.psn() != psn {
                return Err(Failure::unexpected(format!("PSN {:#x}", psn.get()), &packet));
            }
            found.extend(packet.payload);
        }
        let at = 1000 * i as usize;
        ensure!(found == bytes[at..at + 500], "READ {i} of {count} brought other bytes");
    }
    qp.next = qp.next.add(2 * count as u32);
    peer.expect_silence(&mut qp)?;
    peer.disconnect(&qp)
}

fn outside(peer: &mut Peer) -> Result<(), Failure> {
    let qp = peer.connect_with(&Terms::default(), &[4096])?;
    let reth = qp.regions[0].reth(4000, 97);
    peer.send(&qp, Opcode::ReadRequest, qp.next, Ext::Reth(reth), &[])?;
    peer.expect_nak(&qp, qp.next, NakCode::RemoteAccessError)?;
    peer.disconnect(&qp)
}
