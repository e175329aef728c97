// SPDX-License-Identifier: Apache-2.0
//! SEND and RDMA WRITE: opcode sequence and lengths (IBTA 9.7.4.1).

use super::{Rule, nacelle, pattern, standard};
use crate::{
    Failure,
    peer::{Peer, Qp, Terms},
};
use core::ops::RangeInclusive;
use nacelle_wire::{
    RemoteAddr, Rkey,
    bth::{NakCode, Opcode, Reth},
    transport::Ext,
};

pub(super) const RULES: &[Rule] = &[
    standard("write.places_every_length_at_every_alignment", "IBTA 9.4.3", places),
    standard("write.accepts_every_path_mtu", "IBTA 9.3.1", |p| path_mtus(p, 1..=3)),
    // Linux takes them too, where its Ethernet has room for them.
    nacelle("write.accepts_the_path_mtus_of_jumbo_frames", "IBTA 9.3.1", |p| path_mtus(p, 4..=5)),
    standard("write.of_zero_length_needs_no_key", "IBTA 9.7.4.1.4", nothing),
    standard("send.in_several_packets_is_one_message", "IBTA 9.4.1", send_in_packets),
    standard("sequence.middle_without_first_is_refused", "IBTA 9.7.4.1.2", middle_alone),
    standard("sequence.last_without_first_is_refused", "IBTA 9.7.4.1.2", last_alone),
    standard("sequence.first_inside_a_message_is_refused", "IBTA 9.7.4.1.2", first_inside),
    standard("sequence.send_inside_a_write_is_refused", "IBTA 9.7.4.1.2", other_inside),
    standard("length.first_shorter_than_the_mtu_is_refused", "IBTA 9.7.4.1.6", short_first),
    standard("length.write_longer_than_announced_is_refused", "IBTA 9.7.4.1.6", too_long),
    nacelle("length.comes_after_the_key_and_the_bounds", "IBTA 9.7.4.1", key_first),
    standard("length.write_shorter_than_announced_is_refused", "IBTA 9.7.4.1.6", too_short),
];

fn places(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[8192])?;
    let region = qp.regions[0];
    let mtu = qp.mtu;
    for (i, len) in
        [1, 2, 3, 4, 5, 63, 64, 65, mtu - 1, mtu, mtu + 1, 2 * mtu, 2 * mtu + 3, 1500].into_iter().enumerate()
    {
        let offset = (i as u64 * 13) % 67;
        let blank = pattern(200, len + 2);
        peer.write_bytes(&mut qp, &region, offset, &blank)?;
        let bytes = pattern(i as u8, len);
        peer.write_bytes(&mut qp, &region, offset + 1, &bytes)?;
        // The bytes beside them stay.
        let whole = [&blank[..1], &bytes, &blank[len + 1..]].concat();
        peer.expect_bytes(&mut qp, &region, offset, &whole)?;
    }
    peer.disconnect(&qp)
}

fn path_mtus(peer: &mut Peer, codes: RangeInclusive<u8>) -> Result<(), Failure> {
    for mtu in codes {
        let mut qp = peer.connect_with(&Terms { mtu, ..Terms::default() }, &[16_384])?;
        let region = qp.regions[0];
        let bytes = pattern(mtu, 3 * qp.mtu + 17);
        peer.write_bytes(&mut qp, &region, 5, &bytes)?;
        peer.expect_bytes(&mut qp, &region, 5, &bytes)?;
        peer.disconnect(&qp)?;
    }
    Ok(())
}

fn nothing(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[64])?;
    let nowhere = Ext::Reth(Reth::new(RemoteAddr(0xdead_0000_0000), Rkey(0xffff_ffff), 0));
    peer.write(&mut qp, nowhere, Opcode::WriteOnly, &[])?;
    peer.disconnect(&qp)
}

fn send_in_packets(peer: &mut Peer) -> Result<(), Failure> {
    // A request for 15 regions has 364 bytes: two packets, of 256 at most.
    let qp = peer.connect_with(&Terms::default(), &[64; 15])?;
    peer.disconnect(&qp)
}

/// Tries a packet that does not fit what went before: the device refuses it, and the connection is over.
fn refused(peer: &mut Peer, before: impl Fn(&Qp) -> Vec<(Opcode, Ext, usize)>) -> Result<(), Failure> {
    let qp = peer.connect_with(&Terms::default(), &[4096])?;
    let packets = before(&qp);
    let count = packets.len() as u32;
    for (i, (opcode, ext, len)) in packets.into_iter().enumerate() {
        let mut headers = peer.headers(&qp, opcode, qp.next.add(i as u32), ext);
        headers.bth.set_ack_req(i as u32 + 1 == count);
        peer.station.send(&headers, &pattern(9, len))?;
    }
    peer.expect_nak(&qp, qp.next.add(count - 1), NakCode::InvalidRequest)?;
    peer.disconnect(&qp)
}

fn middle_alone(peer: &mut Peer) -> Result<(), Failure> {
    refused(peer, |qp| vec![(Opcode::WriteMiddle, Ext::None, qp.mtu)])
}

fn last_alone(peer: &mut Peer) -> Result<(), Failure> {
    refused(peer, |_| vec![(Opcode::SendLast, Ext::None, 16)])
}

fn first_inside(peer: &mut Peer) -> Result<(), Failure> {
    refused(peer, |qp| {
        let first = (Opcode::WriteFirst, Ext::Reth(qp.regions[0].reth(0, 3 * qp.mtu as u32)), qp.mtu);
        vec![first, first]
    })
}

fn other_inside(peer: &mut Peer) -> Result<(), Failure> {
    refused(peer, |qp| {
        let first = (Opcode::WriteFirst, Ext::Reth(qp.regions[0].reth(0, 3 * qp.mtu as u32)), qp.mtu);
        vec![first, (Opcode::SendMiddle, Ext::None, qp.mtu)]
    })
}

fn short_first(peer: &mut Peer) -> Result<(), Failure> {
    refused(peer, |qp| vec![(Opcode::WriteFirst, Ext::Reth(qp.regions[0].reth(0, 2 * qp.mtu as u32)), qp.mtu - 4)])
}

fn too_long(peer: &mut Peer) -> Result<(), Failure> {
    refused(peer, |qp| vec![(Opcode::WriteOnly, Ext::Reth(qp.regions[0].reth(0, 16)), 32)])
}

/// A WRITE that is wrong in its length and outside of its region: the request is validated in the order of the standard.
fn key_first(peer: &mut Peer) -> Result<(), Failure> {
    for (length, payload) in [(1 << 20, 64), (4097, 32)] {
        let qp = peer.connect_with(&Terms::default(), &[4096])?;
        peer.send(&qp, Opcode::WriteOnly, qp.next, Ext::Reth(qp.regions[0].reth(0, length)), &pattern(9, payload))?;
        peer.expect_nak(&qp, qp.next, NakCode::RemoteAccessError)?;
        peer.disconnect(&qp)?;
    }
    Ok(())
}

fn too_short(peer: &mut Peer) -> Result<(), Failure> {
    refused(peer, |qp| vec![(Opcode::WriteOnly, Ext::Reth(qp.regions[0].reth(0, 32)), 16)])
}
