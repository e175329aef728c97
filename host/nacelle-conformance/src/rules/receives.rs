// SPDX-License-Identifier: Apache-2.0
//! A device that has no receive posted: RNR NAK (IBTA 9.7.5.2.8), and SEND with invalidate (IBTA 9.4.1.1).

use super::{Rule, nacelle};
use crate::{
    Failure,
    failure::ensure,
    peer::{Peer, Qp, Terms, raw_message, region_request},
};
use nacelle_wire::{
    Rkey,
    bth::{Ieth, NakCode, Opcode, RnrTimer, Syndrome},
    transport::Ext,
};

pub(super) const RULES: &[Rule] = &[
    nacelle("receive.third_message_waiting_gets_an_rnr_nak", "IBTA 9.7.5.2.8; device contract", third),
    nacelle("receive.packet_after_an_rnr_nak_is_silently_dropped", "IBTA 9.7.5.2.8", behind),
    nacelle("receive.write_without_immediate_needs_none", "IBTA 9.7.5.2.8", write),
    nacelle("receive.first_packet_of_a_message_is_refused_not_its_last", "IBTA 9.7.5.2.8", first_packet),
    nacelle("receive.invalidation_of_an_unknown_key_is_refused", "IBTA 9.4.1.1; device contract", unknown_key),
];

/// Receives that the device has posted for a caller.
const RECEIVES: u32 = 2;

/// A connection whose device has an answer under way that the suite does not acknowledge: what comes now waits, until no receive is left.
fn full(peer: &mut Peer) -> Result<Qp, Failure> {
    let mut qp = peer.connect_with(&Terms { ack_timeout: 20, ..Terms::default() }, &[256])?;
    peer.send_message(&mut qp, &region_request(&[256]))?;
    let answer = peer.request(&qp)?;
    ensure!(answer.headers.bth.psn() == qp.expected, "the answer has another PSN");
    for _ in 0..RECEIVES {
        peer.send_message(&mut qp, &raw_message(9, 0, &[]))?;
    }
    Ok(qp)
}

fn expect_rnr(peer: &mut Peer, qp: &Qp) -> Result<RnrTimer, Failure> {
    let packet = peer.response(qp)?;
    match packet.headers.ext {
        Ext::Aeth(aeth) if packet.headers.bth.psn() == qp.next => match aeth.syndrome() {
            Syndrome::RnrNak(timer) => Ok(timer),
            _ => Err(Failure::unexpected("RNR NAK", &packet)),
        },
        _ => Err(Failure::unexpected("RNR NAK", &packet)),
    }
}

/// The suite acknowledges, and everything is answered in its turn.
fn go_on(peer: &mut Peer, qp: &mut Qp, waiting: u32) -> Result<(), Failure> {
    peer.acknowledge(qp, qp.expected, Syndrome::ACK)?;
    qp.expected = qp.expected.add(1);
    for _ in 0..waiting {
        let answer = peer.receive_message(qp)?;
        ensure!(answer.len() == 4 && answer[..2] == [0, 1], "the answer is {answer:02x?}");
    }
    Ok(())
}

fn third(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = full(peer)?;
    let message = raw_message(9, 0, &[]);
    let mut timers = Vec::new();
    for _ in 0..3 {
        peer.send(&qp, Opcode::SendOnly, qp.next, Ext::None, &message)?;
        timers.push(expect_rnr(peer, &qp)?);
    }
    ensure!(timers.iter().all(|t| *t == timers[0]), "the timers are {timers:?}");
    let wait = timers[0].micros();
    ensure!((10..=700_000).contains(&wait), "the peer is to wait {wait} us");
    go_on(peer, &mut qp, RECEIVES)?;
    peer.send_message(&mut qp, &message)?;
    peer.receive_message(&mut qp)?;
    peer.disconnect(&qp)
}

fn behind(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = full(peer)?;
    let message = raw_message(9, 0, &[]);
    peer.send(&qp, Opcode::SendOnly, qp.next, Ext::None, &message)?;
    expect_rnr(peer, &qp)?;
    for ahead in 1..4 {
        peer.send(&qp, Opcode::SendOnly, qp.next.add(ahead), Ext::None, &message)?;
    }
    // The same again is the next that is answered.
    peer.send(&qp, Opcode::SendOnly, qp.next, Ext::None, &message)?;
    expect_rnr(peer, &qp)?;
    go_on(peer, &mut qp, RECEIVES)?;
    peer.send_message(&mut qp, &message)?;
    peer.receive_message(&mut qp)?;
    peer.disconnect(&qp)
}

fn write(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = full(peer)?;
    peer.expect_silence(&mut qp)?;
    go_on(peer, &mut qp, RECEIVES)?;
    peer.disconnect(&qp)
}

fn first_packet(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = full(peer)?;
    let message = vec![9; 2 * qp.mtu];
    peer.send_quietly(&qp, Opcode::SendFirst, qp.next, Ext::None, &message[..qp.mtu])?;
    expect_rnr(peer, &qp)?;
    go_on(peer, &mut qp, RECEIVES)?;
    peer.send_message(&mut qp, &message)?;
    peer.receive_message(&mut qp)?;
    peer.disconnect(&qp)
}

fn unknown_key(peer: &mut Peer) -> Result<(), Failure> {
    for opcode in [Opcode::SendOnlyInvalidate, Opcode::SendLastInvalidate] {
        let mut qp = peer.connect_with(&Terms::default(), &[64])?;
        if opcode == Opcode::SendLastInvalidate {
            peer.send_quietly(&qp, Opcode::SendFirst, qp.next, Ext::None, &vec![1; qp.mtu])?;
            qp.next = qp.next.add(1);
        }
        let key = Rkey(qp.regions[0].rkey.0 ^ 0x0f00_0000);
        peer.send(&qp, opcode, qp.next, Ext::Ieth(Ieth::new(key)), &[1; 4])?;
        peer.expect_nak(&qp, qp.next, NakCode::RemoteAccessError)?;
        peer.disconnect(&qp)?;
    }
    Ok(())
}
