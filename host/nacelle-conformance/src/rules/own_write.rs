// SPDX-License-Identifier: Apache-2.0
//! The device as the requester of WRITEs: the output of a call, which the suite loses, refuses or acknowledges in part
//! (IBTA 9.7.5.2, 9.7.6, 9.9.2).

use super::{Rule, nacelle, pattern, requester::over};
use crate::{
    Failure,
    failure::ensure,
    peer::{EMPTY, OWN_RKEY, Peer, Qp, Terms, own_address},
    station::Packet,
};
use nacelle_wire::{
    Psn,
    bth::{NakCode, Opcode, RnrTimer, Syndrome},
    transport::Ext,
};
use std::time::{Duration, Instant};

pub(super) const RULES: &[Rule] = &[
    nacelle("own_write.is_cut_at_the_path_mtu", "IBTA 9.4.3", form),
    nacelle("own_write.is_repeated_from_the_first_unacknowledged_packet", "IBTA 9.7.6.1.3", timeout),
    nacelle("own_write.goes_back_to_the_psn_of_a_nak_in_its_middle", "IBTA 9.7.5.2.8", sequence_error),
    nacelle("own_write.with_immediate_waits_for_the_rnr_timer", "IBTA 9.7.5.2.8", not_ready),
    nacelle("own_write.ignores_acknowledgements_of_unsent_packets", "IBTA 9.7.5.1.2", ghost),
    nacelle("own_write.with_a_wrong_key_ends_the_connection", "IBTA 9.9.2.2", refused),
    nacelle("own_write.with_another_nak_ends_the_connection", "IBTA 9.9.2.2", failed),
    nacelle("own_write.ignores_responses_for_other_connections", "IBTA 9.6.1.1", foreign),
    nacelle("own_write.gives_up_after_its_retries", "IBTA 9.9.2.1.1", gives_up),
];

/// Packets of the output.
const PACKETS: u32 = 4;

/// A call whose output is under way: four packets, of which none is acknowledged.
fn calling(peer: &mut Peer, terms: &Terms) -> Result<Qp, Failure> {
    let size = 4 * (128 << terms.mtu) - 7;
    let mut qp = peer.connect_with(terms, &[size])?;
    let memory = qp.regions[0];
    peer.write_bytes(&mut qp, &memory, 0, &pattern(3, size as usize))?;
    peer.immediate(&mut qp, EMPTY)?;
    Ok(qp)
}

/// The next packets of the output are those from this one on.
fn packets(peer: &mut Peer, qp: &Qp, from: u32) -> Result<Vec<Packet>, Failure> {
    (from..PACKETS)
        .map(|index| {
            let packet = peer.request(qp)?;
            let opcode = match index {
                0 => Opcode::WriteFirst,
                3 => Opcode::WriteLastImm,
                _ => Opcode::WriteMiddle,
            };
            // Sent again from within, it may begin with a FIRST that says where.
            let begun_again = index == from && matches!(packet.opcode, Opcode::WriteFirst | Opcode::WriteOnlyImm);
            if packet.headers.bth.psn() != qp.expected.add(index) || packet.opcode != opcode && !begun_again {
                return Err(Failure::unexpected(
                    format!("{opcode:?} of PSN {:#x}", qp.expected.add(index).get()),
                    &packet,
                ));
            }
            check(&packet, qp, index)?;
            Ok(packet)
        })
        .collect()
}

fn check(packet: &Packet, qp: &Qp, index: u32) -> Result<(), Failure> {
    let at = index as usize * qp.mtu;
    let whole = pattern(3, 4 * qp.mtu - 7);
    let wanted = &whole[at..whole.len().min(at + qp.mtu)];
    ensure!(packet.payload == wanted, "packet {index} of the output has other bytes");
    if let Ext::Reth(reth) | Ext::RethImm(reth, _) = packet.headers.ext {
        let place = own_address(0).0 + at as u64;
        ensure!(reth.va().0 == place && reth.rkey() == OWN_RKEY, "the WRITE goes to {:#x}", reth.va().0);
        let left = whole.len() - at;
        ensure!(reth.dma_len() as usize == left, "the WRITE announces {} bytes of {left}", reth.dma_len());
    }
    Ok(())
}

fn finish(peer: &mut Peer, mut qp: Qp) -> Result<(), Failure> {
    peer.acknowledge(&qp, qp.expected.add(PACKETS - 1), Syndrome::ACK)?;
    qp.expected = qp.expected.add(PACKETS);
    let outputs = peer.outputs_of_nothing(&mut qp)?;
    ensure!(outputs[0] == pattern(3, outputs[0].len()), "the next call has another output");
    peer.disconnect(&qp)
}

fn form(peer: &mut Peer) -> Result<(), Failure> {
    for mtu in 1..=5 {
        let qp = calling(peer, &Terms { mtu, ..Terms::default() })?;
        let all = packets(peer, &qp, 0)?;
        ensure!(matches!(all[0].headers.ext, Ext::Reth(_)), "the first packet has no RETH");
        ensure!(all[3].headers.bth.ack_req(), "the last packet asks for no acknowledgement");
        finish(peer, qp)?;
    }
    Ok(())
}

fn timeout(peer: &mut Peer) -> Result<(), Failure> {
    let qp = calling(peer, &Terms::default())?;
    packets(peer, &qp, 0)?;
    packets(peer, &qp, 0)?;
    // Two packets are acknowledged: only the others come again.
    peer.station.forget()?;
    peer.acknowledge(&qp, qp.expected.add(1), Syndrome::ACK)?;
    let first = peer.request(&qp)?;
    let ahead = first.headers.bth.psn().since(qp.expected);
    ensure!(ahead >= 2, "packet {ahead} comes again, though it was acknowledged");
    finish(peer, qp)
}

fn sequence_error(peer: &mut Peer) -> Result<(), Failure> {
    for lost in 0..PACKETS {
        let qp = calling(peer, &Terms { ack_timeout: 19, ..Terms::default() })?;
        packets(peer, &qp, 0)?;
        let asked = Instant::now();
        peer.acknowledge(&qp, qp.expected.add(lost), Syndrome::Nak(NakCode::PsnSequenceError))?;
        packets(peer, &qp, lost)?;
        let took = asked.elapsed();
        ensure!(took < Duration::from_millis(2100), "the repetition took {took:?}: that was the time-out, not the NAK");
        finish(peer, qp)?;
    }
    Ok(())
}

fn not_ready(peer: &mut Peer) -> Result<(), Failure> {
    let qp = calling(peer, &Terms { ack_timeout: 19, ..Terms::default() })?;
    packets(peer, &qp, 0)?;
    for _ in 0..2 {
        let timer = RnrTimer::new(20); // 10.24 ms
        let asked = Instant::now();
        peer.acknowledge(&qp, qp.expected.add(3), Syndrome::RnrNak(timer))?;
        packets(peer, &qp, 3)?;
        let took = asked.elapsed();
        let least = Duration::from_micros(timer.micros().into());
        ensure!(took * 10 > least * 9, "the repetition came after {took:?} instead of {least:?}");
    }
    finish(peer, qp)
}

fn ghost(peer: &mut Peer) -> Result<(), Failure> {
    let qp = calling(peer, &Terms::default())?;
    packets(peer, &qp, 0)?;
    for ahead in [PACKETS, PACKETS + 1, 0x40_0000, 0x7f_ffff] {
        peer.acknowledge(&qp, qp.expected.add(ahead), Syndrome::ACK)?;
        peer.acknowledge(&qp, qp.expected.add(ahead), Syndrome::Nak(NakCode::RemoteAccessError))?;
        peer.acknowledge(&qp, qp.expected.add(ahead), Syndrome::Nak(NakCode::PsnSequenceError))?;
    }
    // Nor of what was acknowledged long ago.
    peer.acknowledge(&qp, qp.expected.sub(1), Syndrome::ACK)?;
    peer.acknowledge(&qp, Psn::new(qp.expected.get() ^ 0x80_0000), Syndrome::ACK)?;
    packets(peer, &qp, 0)?;
    finish(peer, qp)
}

fn refused(peer: &mut Peer) -> Result<(), Failure> {
    let qp = calling(peer, &Terms { ack_timeout: 12, ..Terms::default() })?;
    packets(peer, &qp, 0)?;
    peer.acknowledge(&qp, qp.expected, Syndrome::Nak(NakCode::RemoteAccessError))?;
    over(peer, &qp)
}

fn failed(peer: &mut Peer) -> Result<(), Failure> {
    for code in [NakCode::InvalidRequest, NakCode::RemoteOperationalError] {
        let qp = calling(peer, &Terms { ack_timeout: 12, ..Terms::default() })?;
        packets(peer, &qp, 0)?;
        peer.acknowledge(&qp, qp.expected.add(2), Syndrome::Nak(code))?;
        over(peer, &qp)?;
    }
    Ok(())
}

fn foreign(peer: &mut Peer) -> Result<(), Failure> {
    let qp = calling(peer, &Terms::default())?;
    packets(peer, &qp, 0)?;
    // Another host acknowledges, and refuses, what is not its own.
    let mut thief = qp.clone();
    thief.ip = peer.act_as_host(0);
    for syndrome in [Syndrome::ACK, Syndrome::Nak(NakCode::RemoteAccessError)] {
        peer.acknowledge(&thief, qp.expected.add(PACKETS - 1), syndrome)?;
    }
    packets(peer, &qp, 0)?;
    finish(peer, qp)
}

fn gives_up(peer: &mut Peer) -> Result<(), Failure> {
    let qp = calling(peer, &Terms { retry_count: 1, ack_timeout: 12, ..Terms::default() })?;
    packets(peer, &qp, 0)?;
    packets(peer, &qp, 0)?;
    over(peer, &qp)
}
