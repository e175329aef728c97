// SPDX-License-Identifier: Apache-2.0
//! ARP (RFC 826, RFC 5227): whom the device answers, and how.

use super::{Rule, nacelle};
use crate::{Failure, failure::ensure, peer::Peer, station::mac_of};
use core::net::Ipv4Addr;
use nacelle_wire::{
    MacAddr,
    arp::{ArpPacket, Operation},
    ethernet::MIN_FRAME,
};
use std::time::Duration;

pub(super) const RULES: &[Rule] = &[
    nacelle("arp.request_is_answered_to_its_sender", "RFC 826", request),
    nacelle("arp.unicast_request_is_answered", "RFC 826", unicast),
    nacelle("arp.probe_is_answered", "RFC 5227 2.1.1", probe),
    nacelle("arp.request_for_another_address_is_not_answered", "RFC 826", other),
    nacelle("arp.reply_and_announcement_are_not_answered", "RFC 826", reply),
    nacelle("arp.invalid_operations_and_lengths_are_not_answered", "RFC 826", wrong),
];

fn frame(arp: &ArpPacket) -> Result<Vec<u8>, Failure> {
    let mut bytes = vec![0; MIN_FRAME];
    arp.write(&mut bytes)?;
    Ok(bytes)
}

/// A question of this host for the device.
fn question(peer: &mut Peer, host: u16) -> (Ipv4Addr, ArpPacket) {
    let ip = peer.station.host(host);
    peer.station.play(ip);
    (ip, ArpPacket::request(mac_of(ip), ip, peer.station.peer_ip()))
}

/// The next ARP frame of the device that is no question.
fn answer(peer: &mut Peer, time: Duration) -> Result<Option<(usize, ArpPacket)>, Failure> {
    peer.station.plain(time, |frame| {
        ArpPacket::parse(frame).ok().filter(|arp| arp.operation == Operation::Reply).map(|arp| (frame.len(), arp))
    })
}

fn expect_answer(peer: &mut Peer, to: MacAddr, ip: Ipv4Addr) -> Result<(), Failure> {
    let patience = peer.station.patience;
    let (len, arp) = answer(peer, patience)?.ok_or(Failure::Missing("ARP reply"))?;
    ensure!(len >= MIN_FRAME, "the reply has {len} bytes, less than an Ethernet frame may have");
    ensure!(
        (arp.dst, arp.target_mac, arp.target_ip) == (to, to, ip),
        "the reply goes to {} and is for {} at {}",
        arp.dst,
        arp.target_ip,
        arp.target_mac
    );
    let own = (peer.station.peer_mac(), peer.station.peer_mac(), peer.station.peer_ip());
    ensure!(
        (arp.src, arp.sender_mac, arp.sender_ip) == own,
        "the reply says {} is at {}",
        arp.sender_ip,
        arp.sender_mac
    );
    Ok(())
}

/// Sends what must not be answered, and then a question of another host: its answer is the first that comes.
fn unanswered(peer: &mut Peer, frames: &[Vec<u8>]) -> Result<(), Failure> {
    for frame in frames {
        peer.station.send_frame(frame)?;
    }
    let (ip, good) = question(peer, 9);
    peer.station.send_frame(&frame(&good)?)?;
    expect_answer(peer, mac_of(ip), ip)
}

fn request(peer: &mut Peer) -> Result<(), Failure> {
    for host in 0..4 {
        let (ip, arp) = question(peer, host);
        peer.station.send_frame(&frame(&arp)?)?;
        expect_answer(peer, mac_of(ip), ip)?;
    }
    Ok(())
}

fn unicast(peer: &mut Peer) -> Result<(), Failure> {
    let (ip, mut arp) = question(peer, 0);
    arp.dst = peer.station.peer_mac();
    peer.station.send_frame(&frame(&arp)?)?;
    expect_answer(peer, mac_of(ip), ip)
}

fn probe(peer: &mut Peer) -> Result<(), Failure> {
    let (ip, mut arp) = question(peer, 0);
    arp.sender_ip = Ipv4Addr::UNSPECIFIED;
    peer.station.send_frame(&frame(&arp)?)?;
    expect_answer(peer, mac_of(ip), Ipv4Addr::UNSPECIFIED)
}

fn other(peer: &mut Peer) -> Result<(), Failure> {
    let (_, mut arp) = question(peer, 0);
    let [a, b, c, d] = arp.target_ip.octets();
    let mut frames = Vec::new();
    for target in [[a, b, c, d ^ 1], [a, b, c ^ 1, d], [a, b, 255, 255], [0, 0, 0, 0], [255, 255, 255, 255]] {
        arp.target_ip = target.into();
        frames.push(frame(&arp)?);
    }
    // For the device, but the frame is for another station.
    let (_, mut arp) = question(peer, 0);
    arp.dst = MacAddr([0x02, 0, 0, 0, 0, 0x99]);
    frames.push(frame(&arp)?);
    unanswered(peer, &frames)
}

fn reply(peer: &mut Peer) -> Result<(), Failure> {
    let (ip, ask) = question(peer, 0);
    let announcement = ArpPacket { target_ip: ip, ..ask };
    let said = ArpPacket { operation: Operation::Reply, dst: peer.station.peer_mac(), ..ask };
    let gratuitous = ArpPacket { operation: Operation::Reply, target_ip: ip, ..ask };
    let frames = [frame(&announcement)?, frame(&said)?, frame(&gratuitous)?];
    unanswered(peer, &frames)
}

fn wrong(peer: &mut Peer) -> Result<(), Failure> {
    let (_, ask) = question(peer, 0);
    let good = frame(&ask)?;
    // Hardware and protocol type, their lengths, the operation: the byte, and what it is instead.
    let fields =
        [(15, 2), (15, 6), (16, 0x86), (17, 1), (18, 8), (18, 0), (19, 16), (19, 0), (21, 0), (21, 3), (20, 1)];
    let mut frames: Vec<Vec<u8>> = fields
        .iter()
        .map(|&(at, value)| {
            let mut bytes = good.clone();
            bytes[at] = value;
            bytes
        })
        .collect();
    frames.extend([14, 15, 20, 28, 41].map(|len| good[..len].to_vec()));
    unanswered(peer, &frames)
}
