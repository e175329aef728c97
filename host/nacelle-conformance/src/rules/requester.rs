// SPDX-License-Identifier: Apache-2.0
//! The device's own requests: the answer to a region request is a SEND of the device, which the suite loses, refuses or repeats
//! (IBTA 9.7.6, 9.9.2).

use super::{Rule, not_linux, standard};
use crate::{
    Failure,
    failure::ensure,
    peer::{Peer, Qp, Terms},
    station::Packet,
};
use core::time::Duration;
use nacelle_wire::{
    Psn, RoceHeaders,
    bth::{NakCode, Opcode, RnrTimer, Syndrome},
    cm::Message,
    mrsp::{self, AarRegion, RegionFlags},
    {RemoteAddr, Rkey},
};
use std::time::Instant;

pub(super) const RULES: &[Rule] = &[
    standard("requester.begins_with_the_psn_of_the_req", "IBTA 12.6.5", first_psn),
    standard("requester.psn_wraps", "IBTA 9.7.2", wraps),
    standard("requester.last_packet_requests_an_acknowledgement", "IBTA 9.7.5.1.2", asks),
    standard("requester.repeats_unacknowledged_packets", "IBTA 9.7.6.1.3", repeats),
    standard("requester.goes_back_to_the_psn_of_a_nak", "IBTA 9.7.5.2.8", goes_back),
    standard("requester.waits_for_the_rnr_timer", "IBTA 9.7.5.2.8", waits),
    not_linux(
        "requester.ignores_acknowledgements_of_unsent_packets",
        "IBTA 9.7.5.1.2",
        "it takes a PSN ahead for an acknowledgement of all that waits",
        ghost,
    ),
    standard("requester.cnp_is_no_acknowledgement", "IBTA A17.9.4", no_cnp),
    standard("requester.duplicate_acknowledgement_completes_once", "IBTA 9.7.5.1.3", twice),
    standard("requester.gives_up_after_its_retries", "IBTA 9.9.2.1.1", gives_up),
    standard("requester.gives_up_after_its_rnr_retries", "IBTA 9.9.2.1.2", gives_up_rnr),
    standard("requester.fails_on_a_remote_access_error", "IBTA 9.9.2.2", fails),
];

/// A connection whose device has a SEND of several packets to send: the answer for 20 regions, 324 bytes.
fn provoked(peer: &mut Peer, terms: &Terms) -> Result<Qp, Failure> {
    let mut qp = peer.connect(terms)?;
    let request: Vec<AarRegion> = (0..20u64)
        .map(|i| {
            AarRegion::parameter(
                RegionFlags::INPUT | RegionFlags::OUTPUT,
                0,
                RemoteAddr(i << 32 | 1 << 40),
                Rkey(7),
                64,
            )
        })
        .collect();
    let mut message = [0; mrsp::MAX_MESSAGE];
    let len = mrsp::Message::Aar(&request).write(&mut message)?;
    peer.send_message(&mut qp, &message[..len])?;
    Ok(qp)
}

fn both(peer: &mut Peer, qp: &Qp) -> Result<[Packet; 2], Failure> {
    Ok([packet(peer, qp, 0)?, packet(peer, qp, 1)?])
}

/// The next request of the device, which must be the one with this index.
fn packet(peer: &mut Peer, qp: &Qp, index: u32) -> Result<Packet, Failure> {
    let packet = peer.request(qp)?;
    let wanted = (qp.expected.add(index), if index == 0 { Opcode::SendFirst } else { Opcode::SendLast });
    if (packet.headers.bth.psn(), packet.opcode) != wanted {
        return Err(Failure::unexpected(format!("{:?} of PSN {:#x}", wanted.1, wanted.0.get()), &packet));
    }
    Ok(packet)
}

fn finish(peer: &mut Peer, qp: &Qp) -> Result<(), Failure> {
    peer.acknowledge(qp, qp.expected.add(1), Syndrome::ACK)?;
    peer.disconnect(qp)
}

fn first_psn(peer: &mut Peer) -> Result<(), Failure> {
    let qp = provoked(peer, &Terms { device_psn: Psn::new(0x12_3456), ..Terms::default() })?;
    both(peer, &qp)?;
    finish(peer, &qp)
}

fn wraps(peer: &mut Peer) -> Result<(), Failure> {
    let qp = provoked(peer, &Terms { device_psn: Psn::new(0xff_ffff), ..Terms::default() })?;
    let [_, last] = both(peer, &qp)?;
    ensure!(last.headers.bth.psn() == Psn::new(0), "PSN {:#x} follows 0xffffff", last.headers.bth.psn().get());
    finish(peer, &qp)
}

fn asks(peer: &mut Peer) -> Result<(), Failure> {
    let qp = provoked(peer, &Terms::default())?;
    let [_, last] = both(peer, &qp)?;
    ensure!(last.headers.bth.ack_req(), "the last packet of a message does not ask for an acknowledgement");
    finish(peer, &qp)
}

fn repeats(peer: &mut Peer) -> Result<(), Failure> {
    let qp = provoked(peer, &Terms::default())?;
    let once = both(peer, &qp)?;
    let again = both(peer, &qp)?;
    for (a, b) in once.iter().zip(&again) {
        ensure!(a.payload == b.payload, "a repeated packet has another content");
    }
    finish(peer, &qp)
}

fn no_cnp(peer: &mut Peer) -> Result<(), Failure> {
    // The PSN of a CNP is 0 and says nothing, wherever the device's own are.
    for device_psn in [0xff_fffe, 0xff_ffff, 0x00_0001] {
        let qp = provoked(peer, &Terms { device_psn: Psn::new(device_psn), ..Terms::default() })?;
        both(peer, &qp)?;
        let cnp = RoceHeaders::cnp(&peer.station.flow(), qp.qpn);
        peer.station.send(&cnp, &[])?;
        both(peer, &qp)?;
        finish(peer, &qp)?;
    }
    Ok(())
}

fn goes_back(peer: &mut Peer) -> Result<(), Failure> {
    let qp = provoked(peer, &Terms { ack_timeout: 19, ..Terms::default() })?;
    both(peer, &qp)?;
    let asked = Instant::now();
    peer.acknowledge(&qp, qp.expected.add(1), Syndrome::Nak(NakCode::PsnSequenceError))?;
    packet(peer, &qp, 1)?;
    let took = asked.elapsed();
    ensure!(took < Duration::from_millis(2100), "the repetition took {took:?}: that was the time-out, not the NAK");
    finish(peer, &qp)
}

fn waits(peer: &mut Peer) -> Result<(), Failure> {
    let qp = provoked(peer, &Terms { ack_timeout: 19, ..Terms::default() })?;
    both(peer, &qp)?;
    let timer = RnrTimer::new(24); // 40.96 ms
    let asked = Instant::now();
    peer.acknowledge(&qp, qp.expected, Syndrome::RnrNak(timer))?;
    both(peer, &qp)?;
    let took = asked.elapsed();
    let least = Duration::from_micros(timer.micros().into());
    // A simulated device's clock may run slower than this one, never faster than a tenth too fast.
    ensure!(took * 10 > least * 9, "the repetition came after {took:?} instead of {least:?}");
    finish(peer, &qp)
}

fn ghost(peer: &mut Peer) -> Result<(), Failure> {
    let qp = provoked(peer, &Terms::default())?;
    both(peer, &qp)?;
    for ahead in [2, 3, 1000, 0x7f_ffff] {
        peer.acknowledge(&qp, qp.expected.add(ahead), Syndrome::ACK)?;
    }
    // Still not acknowledged: it comes again.
    both(peer, &qp)?;
    finish(peer, &qp)
}

fn twice(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = provoked(peer, &Terms::default())?;
    both(peer, &qp)?;
    for _ in 0..4 {
        peer.acknowledge(&qp, qp.expected.add(1), Syndrome::ACK)?;
    }
    peer.expect_silence(&mut qp)?;
    peer.disconnect(&qp)
}

/// The device ends the connection by itself, or at least says nothing more on it; the suite never acknowledges.
pub(super) fn over(peer: &mut Peer, qp: &Qp) -> Result<(), Failure> {
    let own = qp.own_qpn;
    let id = qp.own_comm_id;
    let patience = peer.station.patience * 4;
    let end = peer.station.wait(patience, |p| {
        Message::parse(&p.payload).is_ok_and(|(_, m)| matches!(m, Message::Dreq(d) if d.remote_comm_id.get() == id))
    })?;
    // Once it has said so, what it still does shows soon.
    let silence = if end.is_some() { Duration::from_millis(500) } else { peer.station.patience };
    if end.is_some() {
        peer.station.forget()?;
    }
    let still = peer.station.wait(silence, |p| p.headers.bth.dest_qp() == own && !p.opcode.is_response())?;
    match still {
        Some(packet) => Err(Failure::unexpected("nothing on a connection that has failed", &packet)),
        None => Ok(()),
    }
}

fn gives_up(peer: &mut Peer) -> Result<(), Failure> {
    let qp = provoked(peer, &Terms { retry_count: 1, ack_timeout: 12, ..Terms::default() })?;
    both(peer, &qp)?;
    both(peer, &qp)?;
    over(peer, &qp)
}

fn gives_up_rnr(peer: &mut Peer) -> Result<(), Failure> {
    let qp = provoked(peer, &Terms { rnr_retry_count: 1, ack_timeout: 19, ..Terms::default() })?;
    for _ in 0..2 {
        both(peer, &qp)?;
        peer.acknowledge(&qp, qp.expected, Syndrome::RnrNak(RnrTimer::new(1)))?;
    }
    over(peer, &qp)
}

fn fails(peer: &mut Peer) -> Result<(), Failure> {
    let qp = provoked(peer, &Terms { ack_timeout: 12, ..Terms::default() })?;
    both(peer, &qp)?;
    peer.acknowledge(&qp, qp.expected, Syndrome::Nak(NakCode::RemoteAccessError))?;
    over(peer, &qp)
}
