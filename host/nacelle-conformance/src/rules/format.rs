// SPDX-License-Identifier: Apache-2.0
//! Packets that are not what they should be: nothing happens, and the next good one is taken (IBTA 9.6, annex A17).

use super::{Rule, nacelle, not_linux, pattern, standard};
use crate::{
    Failure,
    peer::{Peer, Qp, Terms},
    station::build,
};
use nacelle_wire::{
    Ecn, Qpn, RoceHeaders,
    bth::{Bth, Deth, Opcode, Syndrome},
    cm,
    ethernet::EthernetHeader,
    icrc,
    ipv4::Ipv4Header,
    roce::{BASE_LEN, LOWER_LEN},
    transport::Ext,
    udp::UdpHeader,
};

pub(super) const RULES: &[Rule] = &[
    standard("format.wrong_icrc_is_silently_dropped", "IBTA A17.3.3", icrc_wrong),
    standard("format.any_corrupted_byte_is_silently_dropped", "IBTA A17.3.3", corrupted),
    standard("format.any_truncated_packet_is_silently_dropped", "IBTA 9.6.1", truncated),
    nacelle("format.wrong_udp_checksum_is_silently_dropped", "RFC 1122 4.1.3.4", udp_checksum),
    nacelle("format.packet_in_a_broadcast_or_foreign_frame_is_dropped", "RFC 1122 3.3.6", link_broadcast),
    standard("format.transport_version_other_than_0_is_dropped", "IBTA 9.6.1.1", version),
    standard("format.wrong_partition_is_dropped", "IBTA 9.6.1.1.2", partition),
    standard("format.unknown_queue_pair_is_dropped", "IBTA 9.6.1.1.1", unknown_qp),
    standard("format.datagram_opcode_on_a_connection_is_dropped", "IBTA 9.6.1.1", datagram),
    not_linux(
        "format.foreign_address_is_dropped",
        "IBTA 9.6.1.1",
        "it does not look at the source of requests",
        foreign,
    ),
    standard("format.ecn_ttl_and_source_port_may_be_anything", "IBTA A17.4", free_fields),
];

/// Sends a request spoiled in some way, then the same as it should be: the second is the first that is taken.
fn spoiled(peer: &mut Peer, spoil: impl Fn(&mut RoceHeaders)) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let mut headers = good(peer, &qp);
    spoil(&mut headers);
    peer.station.send(&headers, &pattern(1, 64))?;
    settled(peer, &mut qp)
}

fn good(peer: &Peer, qp: &Qp) -> RoceHeaders {
    let mut headers = peer.headers(qp, Opcode::WriteOnly, qp.next, Ext::Reth(qp.regions[0].reth(0, 64)));
    headers.bth.set_ack_req(true);
    headers
}

fn settled(peer: &mut Peer, qp: &mut Qp) -> Result<(), Failure> {
    let region = qp.regions[0];
    peer.write(qp, Ext::Reth(region.reth(0, 64)), Opcode::WriteOnly, &pattern(2, 64))?;
    peer.expect_bytes(qp, &region, 0, &pattern(2, 64))?;
    peer.disconnect(qp)
}

/// Sends frames made from the good one.
fn mangled(peer: &mut Peer, mangle: impl Fn(&mut Vec<u8>, usize) -> bool) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let frame = build(&good(peer, &qp), &pattern(1, 64))?;
    for step in 0.. {
        let mut copy = frame.clone();
        if !mangle(&mut copy, step) {
            break;
        }
        peer.station.send_frame(&copy)?;
    }
    settled(peer, &mut qp)
}

fn icrc_wrong(peer: &mut Peer) -> Result<(), Failure> {
    mangled(peer, |frame, step| {
        let at = frame.len() - icrc::LEN + step % icrc::LEN;
        frame[at] ^= 1 << (step % 8);
        step < 8
    })
}

/// Bytes of a frame that may be anything, or have a rule of their own: the UDP checksum, and the byte of the BTH with FECN and BECN. All others
/// are covered by the checksum of the IPv4 header or the ICRC, or say what the frame is.
const NOT_COVERED: [usize; 3] = [UDP_CHECKSUM, UDP_CHECKSUM + 1, BASE_LEN - 8];
const UDP_CHECKSUM: usize = EthernetHeader::LEN + Ipv4Header::LEN + 6;

fn corrupted(peer: &mut Peer) -> Result<(), Failure> {
    mangled(peer, |frame, step| {
        let covered = (EthernetHeader::LEN..frame.len()).filter(|at| !NOT_COVERED.contains(at)).nth(step);
        covered.is_some_and(|at| {
            frame[at] ^= 0x40;
            true
        })
    })
}

fn udp_checksum(peer: &mut Peer) -> Result<(), Failure> {
    mangled(peer, |frame, step| {
        // No packet of this kind has one of these sums: the right one is another.
        let wrong = [0x0001, 0xffff, 0x1234].get(step);
        wrong.is_some_and(|sum: &u16| {
            frame[UDP_CHECKSUM..UDP_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
            true
        })
    })
}

fn link_broadcast(peer: &mut Peer) -> Result<(), Failure> {
    mangled(peer, |frame, step| {
        let to = [[0xff; 6], [0x01, 0x00, 0x5e, 0, 0, 1], [0x02, 0, 0, 0, 0, 0x99]].get(step);
        to.is_some_and(|mac| {
            frame[..6].copy_from_slice(mac);
            true
        })
    })
}

fn truncated(peer: &mut Peer) -> Result<(), Failure> {
    mangled(peer, |frame, step| {
        let len = 15 + step;
        len < frame.len() && {
            frame.truncate(len);
            true
        }
    })
}

fn version(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let mut frame = build(&good(peer, &qp), &pattern(1, 64))?;
    frame[BASE_LEN - 11] |= 0x01; // TVer: low half of the second byte of the BTH
    reseal(&mut frame)?;
    peer.station.send_frame(&frame)?;
    settled(peer, &mut qp)
}

/// Gives a changed frame the right ICRC.
fn reseal(frame: &mut [u8]) -> Result<(), Failure> {
    let (ip, segment) = Ipv4Header::parse(&frame[EthernetHeader::LEN..])?;
    let (udp, _) = UdpHeader::parse(&ip, segment)?;
    let end = frame.len() - icrc::LEN;
    let crc = icrc::over_ipv4(&ip, &udp, &frame[LOWER_LEN..end]);
    frame[end..].copy_from_slice(&crc);
    Ok(())
}

fn partition(peer: &mut Peer) -> Result<(), Failure> {
    spoiled(peer, |h| h.bth.p_key.set(0x8001))
}

fn unknown_qp(peer: &mut Peer) -> Result<(), Failure> {
    spoiled(peer, |h| {
        let other = Qpn::new(h.bth.dest_qp().get() ^ 0x80_0000);
        let psn = h.bth.psn();
        h.bth = Bth::new(Opcode::WriteOnly, other, psn);
        h.bth.set_ack_req(true);
    })
}

fn datagram(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let ext = Ext::Deth(Deth::new(cm::GSI_Q_KEY, Qpn::GSI));
    peer.send(&qp, Opcode::UdSendOnly, qp.next, ext, &pattern(1, 64))?;
    settled(peer, &mut qp)
}

fn foreign(peer: &mut Peer) -> Result<(), Failure> {
    spoiled(peer, |h| {
        let [a, b, c, d] = h.ip.src().octets();
        h.ip = Ipv4Header::new([a, b, c, d ^ 0x40].into(), h.ip.dst(), h.ip.protocol);
    })
}

fn free_fields(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[4096])?;
    let mut headers = good(peer, &qp);
    headers.udp.src_port.set(1);
    headers.ip.ttl = 1;
    headers.ip = headers.ip.with_ecn(Ecn::Ect0);
    headers.bth.set_mig_req(false);
    peer.station.send(&headers, &pattern(1, 64))?;
    peer.expect_ack(&qp, qp.next, Syndrome::ACK)?;
    qp.next = qp.next.add(1);
    settled(peer, &mut qp)
}
