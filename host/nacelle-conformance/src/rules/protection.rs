// SPDX-License-Identifier: Apache-2.0
//! Keys, bounds and owners: no peer accesses what it has no right to, and an error affects only its own connection (IBTA
//! 9.7.4.1.4, 10.6.3).

use super::{Rule, pattern, standard};
use crate::{
    Failure,
    peer::{Memory, Peer, Qp, Terms},
};
use nacelle_wire::{
    RemoteAddr, Rkey,
    bth::{NakCode, Opcode, Reth, Syndrome},
    cm::Message,
    transport::Ext,
};

pub(super) const RULES: &[Rule] = &[
    standard("protection.unknown_key_is_refused", "IBTA 9.7.4.1.4", unknown_key),
    standard("protection.write_before_the_region_is_refused", "IBTA 9.7.4.1.4", before),
    standard("protection.write_beyond_the_region_is_refused", "IBTA 9.7.4.1.4", beyond),
    standard("protection.range_that_wraps_is_refused", "IBTA 9.7.4.1.4", wraps),
    standard("protection.long_write_is_refused_at_its_first_packet", "IBTA 9.7.4.1.4", long),
    standard("protection.key_of_a_closed_connection_is_invalid", "IBTA 10.6.3", dead_key),
    super::nacelle("protection.key_of_another_connection_is_refused", "device contract", other_key),
    standard("protection.error_ends_only_its_own_connection", "IBTA 9.9.2.4", costs_itself),
    super::nacelle("protection.nak_leaves_before_the_disconnection", "device contract", nak_first),
    standard("protection.requests_after_an_error_are_dropped", "IBTA 9.9.2.4", nothing_after),
];

fn refused(peer: &mut Peer, qp: &Qp, reth: Reth, len: usize) -> Result<(), Failure> {
    peer.send(qp, Opcode::WriteOnly, qp.next, Ext::Reth(reth), &pattern(99, len))?;
    peer.expect_nak(qp, qp.next, NakCode::RemoteAccessError)
}

fn case(peer: &mut Peer, reth: impl Fn(&Memory) -> Reth) -> Result<(), Failure> {
    let qp = peer.connect_with(&Terms::default(), &[4096])?;
    refused(peer, &qp, reth(&qp.regions[0]), 64)?;
    peer.disconnect(&qp)
}

fn unknown_key(peer: &mut Peer) -> Result<(), Failure> {
    case(peer, |m| Reth::new(m.addr, Rkey(m.rkey.0 ^ 0x0100_0000), 64))
}

fn before(peer: &mut Peer) -> Result<(), Failure> {
    case(peer, |m| Reth::new(RemoteAddr(m.addr.0 - 1), m.rkey, 64))
}

fn beyond(peer: &mut Peer) -> Result<(), Failure> {
    case(peer, |m| m.reth(4096 - 63, 64))
}

fn wraps(peer: &mut Peer) -> Result<(), Failure> {
    case(peer, |m| Reth::new(RemoteAddr(u64::MAX - 31), m.rkey, 64))
}

fn long(peer: &mut Peer) -> Result<(), Failure> {
    let qp = peer.connect_with(&Terms::default(), &[4096])?;
    let reth = Ext::Reth(qp.regions[0].reth(0, 4097));
    peer.send(&qp, Opcode::WriteFirst, qp.next, reth, &pattern(1, qp.mtu))?;
    peer.expect_nak(&qp, qp.next, NakCode::RemoteAccessError)?;
    peer.disconnect(&qp)
}

fn dead_key(peer: &mut Peer) -> Result<(), Failure> {
    let old = peer.connect_with(&Terms::default(), &[4096])?;
    peer.disconnect(&old)?;
    let qp = peer.connect_with(&Terms::default(), &[4096])?;
    refused(peer, &qp, old.regions[0].reth(0, 64), 64)?;
    peer.disconnect(&qp)
}

fn other_key(peer: &mut Peer) -> Result<(), Failure> {
    let mut owner = peer.connect_with(&Terms::default(), &[4096])?;
    let region = owner.regions[0];
    peer.write_bytes(&mut owner, &region, 0, &pattern(1, 64))?;
    let other = peer.connect_with(&Terms::default(), &[4096])?;
    refused(peer, &other, region.reth(0, 64), 64)?;
    peer.expect_bytes(&mut owner, &region, 0, &pattern(1, 64))?;
    peer.disconnect(&other)?;
    peer.disconnect(&owner)
}

fn costs_itself(peer: &mut Peer) -> Result<(), Failure> {
    let mut good = peer.connect_with(&Terms::default(), &[4096])?;
    let bad = peer.connect_with(&Terms::default(), &[4096])?;
    let region = good.regions[0];
    let part = pattern(1, good.mtu);
    // The fault comes in the middle of the other's message.
    let reth = Ext::Reth(region.reth(0, 2 * good.mtu as u32));
    peer.send_quietly(&good, Opcode::WriteFirst, good.next, reth, &part)?;
    refused(peer, &bad, Reth::new(RemoteAddr(8), Rkey(1), 64), 64)?;
    peer.send(&good, Opcode::WriteLast, good.next.add(1), Ext::None, &part)?;
    peer.expect_ack(&good, good.next.add(1), Syndrome::ACK)?;
    good.next = good.next.add(2);
    peer.expect_bytes(&mut good, &region, 0, &[&part[..], &part[..]].concat())?;
    peer.disconnect(&bad)?;
    peer.disconnect(&good)
}

/// Behind WRITEs that keep memory busy: the NAK waits for them, and the DREQ of the queue pair in error for the NAK.
fn nak_first(peer: &mut Peer) -> Result<(), Failure> {
    for _ in 0..4 {
        let qp = peer.connect_with(&Terms { mtu: 5, ..Terms::default() }, &[4096])?;
        let reth = Ext::Reth(qp.regions[0].reth(0, 4096));
        for i in 0..8 {
            peer.send_quietly(&qp, Opcode::WriteOnly, qp.next.add(i), reth, &pattern(1, 4096))?;
        }
        peer.send(
            &qp,
            Opcode::WriteOnly,
            qp.next.add(8),
            Ext::Reth(Reth::new(RemoteAddr(8), Rkey(1), 64)),
            &pattern(1, 64),
        )?;
        let own = qp.own_qpn;
        let id = qp.own_comm_id;
        let first = peer.station.expect(|p| {
            matches!(p.headers.ext, Ext::Aeth(a) if p.headers.bth.dest_qp() == own && matches!(a.syndrome(), Syndrome::Nak(_)))
                || Message::parse(&p.payload).is_ok_and(|(_, m)| matches!(m, Message::Dreq(d) if d.remote_comm_id.get() == id))
        })?;
        let first = first.ok_or(Failure::Missing("NAK"))?;
        if first.opcode != Opcode::Acknowledge {
            return Err(Failure::unexpected("the NAK before the DREQ", &first));
        }
        peer.disconnect(&qp)?;
    }
    Ok(())
}

fn nothing_after(peer: &mut Peer) -> Result<(), Failure> {
    let mut witness = peer.connect_with(&Terms::default(), &[4096])?;
    let qp = peer.connect_with(&Terms::default(), &[4096])?;
    refused(peer, &qp, Reth::new(RemoteAddr(8), Rkey(1), 64), 64)?;
    peer.send(&qp, Opcode::WriteOnly, qp.next, Ext::Reth(qp.regions[0].reth(0, 8)), &pattern(1, 8))?;
    // The witness is answered behind it: had the packet been taken, its answer would be here.
    peer.expect_silence(&mut witness)?;
    let own = qp.own_qpn;
    let answer = peer.station.wait(core::time::Duration::ZERO, |p| {
        p.headers.bth.dest_qp() == own
            && matches!(p.headers.ext, Ext::Aeth(a) if matches!(a.syndrome(), Syndrome::Ack(_)))
    })?;
    if let Some(packet) = answer {
        return Err(Failure::unexpected("nothing", &packet));
    }
    peer.disconnect(&qp)?;
    peer.disconnect(&witness)
}
