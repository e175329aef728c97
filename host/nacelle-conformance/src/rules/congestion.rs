// SPDX-License-Identifier: Apache-2.0
//! Congestion notification (RoCEv2 annex A17.9).

use super::{Rule, not_linux, pattern, standard};
use crate::{
    Failure,
    failure::ensure,
    peer::{Peer, Terms},
};
use core::time::Duration;
use nacelle_wire::{
    Ecn, RoceHeaders,
    bth::{Opcode, Syndrome},
    transport::Ext,
};
use std::time::Instant;

pub(super) const RULES: &[Rule] = &[
    not_linux("congestion.marked_packet_is_answered_with_a_cnp", "IBTA A17.9.3", "it sends no CNPs", answered),
    not_linux("congestion.cnps_are_not_sent_for_every_mark", "IBTA A17.9.3", "it sends no CNPs", spaced),
    standard("congestion.unmarked_packet_gets_no_cnp", "IBTA A17.9.3", unmarked),
    standard("congestion.cnp_leaves_the_connection_intact", "IBTA A17.9.4", taken),
];

fn marked(peer: &mut Peer, ecn: Ecn, count: u64) -> Result<(usize, crate::peer::Qp), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    for i in 0..count {
        let reth = Ext::Reth(qp.regions[0].reth(64 * (i % 64), 64));
        let mut headers = peer.headers(&qp, Opcode::WriteOnly, qp.next, reth);
        headers.ip = headers.ip.with_ecn(ecn);
        headers.bth.set_ack_req(i + 1 == count);
        peer.station.send(&headers, &pattern(i as u8, 64))?;
        qp.next = qp.next.add(1);
    }
    peer.expect_ack(&qp, qp.next.sub(1), Syndrome::ACK)?;
    let own = qp.own_qpn;
    let mut cnps = 0;
    while let Some(cnp) =
        peer.station.wait(Duration::from_millis(200), |p| p.opcode == Opcode::Cnp && p.headers.bth.dest_qp() == own)?
    {
        ensure!(cnp.headers.bth.becn(), "a CNP without BECN");
        cnps += 1;
    }
    Ok((cnps, qp))
}

fn answered(peer: &mut Peer) -> Result<(), Failure> {
    let (cnps, qp) = marked(peer, Ecn::Ce, 1)?;
    ensure!(cnps == 1, "{cnps} CNPs came for one marked packet");
    peer.disconnect(&qp)
}

/// Least time between two CNPs of a connection (docs/reference/congestion.md), in microseconds.
const SPACING: u128 = 50;

fn spaced(peer: &mut Peer) -> Result<(), Failure> {
    let clock = |peer: &mut Peer, begin: Instant| match peer.manage() {
        Ok(manage) => manage.time(),
        Err(_) => Ok(begin.elapsed()),
    };
    let begin = Instant::now();
    let from = clock(peer, begin)?;
    let (cnps, qp) = marked(peer, Ecn::Ce, 64)?;
    // Without the device's own clock, ours is no later.
    let most = 2 + (clock(peer, begin)? - from).as_micros() / SPACING;
    ensure!(cnps > 0, "no CNP came for 64 marked packets");
    ensure!((cnps as u128) < most.min(64), "{cnps} CNPs came for 64 marked packets; there was time for {most}");
    peer.disconnect(&qp)
}

fn unmarked(peer: &mut Peer) -> Result<(), Failure> {
    let (cnps, qp) = marked(peer, Ecn::Ect0, 4)?;
    ensure!(cnps == 0, "{cnps} CNPs came for packets without a mark");
    peer.disconnect(&qp)
}

fn taken(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    for _ in 0..3 {
        let cnp = RoceHeaders::cnp(&peer.station.flow(), qp.qpn);
        peer.station.send(&cnp, &[])?;
    }
    peer.expect_silence(&mut qp)?;
    peer.disconnect(&qp)
}
