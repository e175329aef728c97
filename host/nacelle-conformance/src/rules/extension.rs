// SPDX-License-Identifier: Apache-2.0
//! What Nacelle devices agree on beyond the standard (docs/reference/extensions.md).

use super::{Rule, nacelle, pattern};
use crate::{
    Failure,
    failure::ensure,
    peer::{Peer, Qp, Terms},
};
use nacelle_wire::{
    bth::{ImmDt, NakCode, Opcode, Syndrome},
    extensions::{Agreement, Extensions},
    transport::Ext,
};

const SELECTIVE_REPEAT: Agreement = Agreement::new(Extensions::SELECTIVE_REPEAT, 0);

pub(super) const RULES: &[Rule] = &[
    nacelle("extension.is_agreed_when_it_is_offered", "extensions: agreement", agreed),
    nacelle("extension.is_not_used_when_it_is_not_offered", "extensions: agreement", not_offered),
    nacelle("extension.write_ahead_is_placed", "extensions: selective repeat", kept),
    nacelle("extension.every_packet_ahead_causes_a_nak_with_its_psn", "extensions: selective repeat", complained),
    nacelle("extension.second_gap_causes_a_nak_when_the_first_is_closed", "extensions: selective repeat", second_gap),
    nacelle("extension.expected_psn_advances_past_placed_packets", "extensions: selective repeat", moves_on),
    nacelle("extension.other_requests_are_accepted_in_order_only", "extensions: selective repeat", in_order),
    nacelle("extension.msn_counts_messages_up_to_the_psn_acknowledged", "IBTA 9.7.5.1.1", msn),
    nacelle("extension.immediate_reports_the_whole_write", "extensions: selective repeat", whole),
];

fn offering(peer: &mut Peer) -> Result<Qp, Failure> {
    let qp = peer.connect_with(&Terms { offer: SELECTIVE_REPEAT, ..Terms::default() }, &[8192])?;
    ensure!(
        qp.agreed.extensions.contains(Extensions::SELECTIVE_REPEAT),
        "the device did not agree to selective repeat"
    );
    Ok(qp)
}

fn agreed(peer: &mut Peer) -> Result<(), Failure> {
    let qp = offering(peer)?;
    peer.disconnect(&qp)
}

fn not_offered(peer: &mut Peer) -> Result<(), Failure> {
    let qp = peer.connect(&Terms::default())?;
    ensure!(qp.agreed == Agreement::default(), "the device agreed to extensions that were not offered");
    peer.disconnect(&qp)
}

/// Sends the WRITE with this index of a row of 64 bytes each.
fn send(peer: &mut Peer, qp: &Qp, index: u32) -> Result<(), Failure> {
    let reth = Ext::Reth(qp.regions[0].reth(64 * u64::from(index), 64));
    peer.send(qp, Opcode::WriteOnly, qp.next.add(index), reth, &pattern(index as u8, 64))
}

/// The NAK for the packet expected, caused by the one with this index.
fn expect_gap(peer: &mut Peer, qp: &Qp, expected: u32, cause: u32) -> Result<(), Failure> {
    let aeth = peer.expect_ack(qp, qp.next.add(expected), Syndrome::Nak(NakCode::PsnSequenceError))?;
    let wanted = qp.next.add(cause).get();
    ensure!(aeth.msn() == wanted, "the NAK names the cause {:#x} instead of {wanted:#x}", aeth.msn());
    Ok(())
}

fn finish(peer: &mut Peer, mut qp: Qp, count: u32) -> Result<(), Failure> {
    qp.next = qp.next.add(count);
    let region = qp.regions[0];
    for i in 0..count {
        peer.expect_bytes(&mut qp, &region, 64 * u64::from(i), &pattern(i as u8, 64))?;
    }
    peer.disconnect(&qp)
}

fn kept(peer: &mut Peer) -> Result<(), Failure> {
    let qp = offering(peer)?;
    for i in 1..5 {
        send(peer, &qp, i)?;
        expect_gap(peer, &qp, 0, i)?;
    }
    send(peer, &qp, 0)?;
    peer.expect_ack(&qp, qp.next.add(4), Syndrome::ACK)?;
    finish(peer, qp, 5)
}

fn complained(peer: &mut Peer) -> Result<(), Failure> {
    let qp = offering(peer)?;
    for i in [2, 1, 2, 1] {
        send(peer, &qp, i)?;
        expect_gap(peer, &qp, 0, i)?;
    }
    send(peer, &qp, 0)?;
    peer.expect_ack(&qp, qp.next.add(2), Syndrome::ACK)?;
    finish(peer, qp, 3)
}

fn second_gap(peer: &mut Peer) -> Result<(), Failure> {
    let qp = offering(peer)?;
    for i in [1, 3, 4] {
        send(peer, &qp, i)?;
        expect_gap(peer, &qp, 0, i)?;
    }
    send(peer, &qp, 0)?;
    expect_gap(peer, &qp, 2, 0)?;
    send(peer, &qp, 2)?;
    peer.expect_ack(&qp, qp.next.add(4), Syndrome::ACK)?;
    finish(peer, qp, 5)
}

/// Within a message too, which no peer that keeps to the extension sends: what was placed has been taken.
fn moves_on(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = offering(peer)?;
    let region = qp.regions[0];
    send(peer, &qp, 1)?;
    expect_gap(peer, &qp, 0, 1)?;
    let part = pattern(7, qp.mtu);
    let reth = Ext::Reth(region.reth(4096, 2 * qp.mtu as u32));
    peer.send(&qp, Opcode::WriteFirst, qp.next, reth, &part)?;
    peer.expect_ack(&qp, qp.next.add(1), Syndrome::ACK)?;
    peer.send(&qp, Opcode::WriteLast, qp.next.add(2), Ext::None, &part)?;
    peer.expect_ack(&qp, qp.next.add(2), Syndrome::ACK)?;
    qp.next = qp.next.add(3);
    peer.expect_bytes(&mut qp, &region, 4096, &[&part[..], &part[..]].concat())?;
    peer.expect_bytes(&mut qp, &region, 64, &pattern(1, 64))?;
    peer.disconnect(&qp)
}

fn in_order(peer: &mut Peer) -> Result<(), Failure> {
    let qp = offering(peer)?;
    let read = Ext::Reth(qp.regions[0].reth(0, 64));
    peer.send(&qp, Opcode::ReadRequest, qp.next.add(1), read, &[])?;
    expect_gap(peer, &qp, 0, 1)?;
    send(peer, &qp, 0)?;
    peer.expect_ack(&qp, qp.next, Syndrome::ACK)?;
    finish(peer, qp, 1)
}

/// A WRITE ahead of its turn is no message yet to whom the acknowledgement is for.
fn msn(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = offering(peer)?;
    let reth = Ext::Reth(qp.regions[0].reth(4096, 8));
    peer.send(&qp, Opcode::WriteOnly, qp.next, reth, &pattern(0, 8))?;
    let before = peer.expect_ack(&qp, qp.next, Syndrome::ACK)?.msn();
    qp.next = qp.next.add(1);
    send(peer, &qp, 1)?;
    expect_gap(peer, &qp, 0, 1)?;
    // A repeated packet brings the newest acknowledgement.
    peer.send(&qp, Opcode::WriteOnly, qp.next.sub(1), reth, &pattern(0, 8))?;
    let now = peer.expect_ack(&qp, qp.next.sub(1), Syndrome::ACK)?.msn();
    ensure!(now == before, "the MSN is {now} instead of {before}, though the next message has not come");
    send(peer, &qp, 0)?;
    let after = peer.expect_ack(&qp, qp.next.add(1), Syndrome::ACK)?.msn();
    ensure!(after == (before + 2) & 0xff_ffff, "the MSN is {after} two messages after {before}");
    finish(peer, qp, 2)
}

fn whole(peer: &mut Peer) -> Result<(), Failure> {
    // The second packet of two: the range is that of both, its payload the end of it. The function code is 0: no call.
    let mut qp = offering(peer)?;
    let region = qp.regions[0];
    let part = Ext::Reth(region.reth(0, 64));
    peer.write(&mut qp, part, Opcode::WriteOnly, &pattern(0, 64))?;
    let both = Ext::RethImm(region.reth(0, 128), ImmDt::new(0));
    peer.write(&mut qp, both, Opcode::WriteOnlyImm, &pattern(1, 64))?;
    peer.expect_bytes(&mut qp, &region, 0, &[pattern(0, 64), pattern(1, 64)].concat())?;
    peer.disconnect(&qp)
}
