// SPDX-License-Identifier: Apache-2.0
//! ICMP echo (RFC 792, RFC 1122 3.2.2.6).

use super::{Rule, nacelle, pattern};
use crate::{
    Failure,
    failure::ensure,
    peer::Peer,
    station::{ECHO_IDENTIFIER, mac_of},
};
use nacelle_wire::{
    MacAddr,
    icmp::{EchoPacket, Kind},
    ipv4::{Ipv4Header, checksum},
};

pub(super) const RULES: &[Rule] = &[
    nacelle("icmp.echo_of_every_size_is_returned_as_it_came", "RFC 1122 3.2.2.6", sizes),
    nacelle("icmp.echo_with_a_wrong_checksum_is_dropped", "RFC 792", wrong_checksum),
    nacelle("icmp.other_messages_and_replies_are_not_answered", "RFC 1122 3.2.2", others),
    nacelle("icmp.echo_for_another_host_is_not_answered", "RFC 1122 3.2.1.3", not_for_us),
    nacelle("icmp.fragment_is_dropped", "device contract: packet plane", fragment),
    nacelle("icmp.truncated_echo_is_dropped", "RFC 791", cut_short),
];

/// Offset of the IPv4 header in a frame, and of the ICMP message.
const IP: usize = 14;
const ICMP: usize = IP + Ipv4Header::LEN;

/// An echo request of the suite's own host with this number.
fn echo(peer: &Peer, sequence: u16, payload: &[u8]) -> Result<Vec<u8>, Failure> {
    peer.station.echo(peer.station.ip(), sequence, payload)
}

/// The next echo of the device answers the request with this number.
fn expect_reply(peer: &mut Peer, sequence: u16, payload: &[u8]) -> Result<(), Failure> {
    let (own, device) = (peer.station.ip(), peer.station.peer_ip());
    let patience = peer.station.patience;
    let found = peer.station.plain(patience, |frame| {
        let echo = EchoPacket::parse(frame).ok()?;
        Some((echo.kind, echo.sequence, echo.identifier, echo.dst, echo.ip, echo.payload.to_vec()))
    })?;
    let (kind, number, identifier, dst, ip, bytes) = found.ok_or(Failure::Missing("echo reply"))?;
    ensure!(kind == Kind::Reply, "the device sends echo requests");
    ensure!(
        (number, identifier) == (sequence, ECHO_IDENTIFIER),
        "echo {sequence} is answered by {number}, {identifier:#x}"
    );
    ensure!(
        dst == mac_of(own) && (ip.src(), ip.dst()) == (device, own),
        "the reply goes from {} to {}",
        ip.src(),
        ip.dst()
    );
    ensure!(ip.ttl > 1, "the reply has a TTL of {}", ip.ttl);
    ensure!(bytes == payload, "the reply to {} bytes has {} other", payload.len(), bytes.len());
    Ok(())
}

/// Sends what must not be answered, and then a good request: its answer is the first that comes.
fn unanswered(peer: &mut Peer, frames: &[Vec<u8>]) -> Result<(), Failure> {
    for frame in frames {
        peer.station.send_frame(frame)?;
    }
    let good = echo(peer, 0x7777, b"good")?;
    peer.station.send_frame(&good)?;
    expect_reply(peer, 0x7777, b"good")
}

/// Gives a frame that was changed its IPv4 header checksum again.
fn reseal(frame: &mut [u8]) {
    frame[IP + 10..IP + 12].fill(0);
    let sum = checksum(&frame[IP..ICMP]);
    frame[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
}

/// The same for the ICMP message.
fn reseal_message(frame: &mut [u8], len: usize) {
    frame[ICMP + 2..ICMP + 4].fill(0);
    let sum = checksum(&frame[ICMP..ICMP + len]);
    frame[ICMP + 2..ICMP + 4].copy_from_slice(&sum.to_be_bytes());
}

fn sizes(peer: &mut Peer) -> Result<(), Failure> {
    for (number, size) in [0, 1, 2, 17, 18, 19, 56, 57, 63, 64, 65, 1000, 1471, 1472, 3000].into_iter().enumerate() {
        let payload = pattern(number as u8, size);
        let frame = echo(peer, number as u16, &payload)?;
        peer.station.send_frame(&frame)?;
        expect_reply(peer, number as u16, &payload)?;
    }
    Ok(())
}

fn wrong_checksum(peer: &mut Peer) -> Result<(), Failure> {
    let mut frames = Vec::new();
    for at in [ICMP + 2, ICMP + 3, ICMP + 8, ICMP + 47] {
        let mut frame = echo(peer, 1, &pattern(1, 40))?;
        frame[at] ^= 0x10;
        frames.push(frame);
    }
    // The IPv4 header's.
    let mut frame = echo(peer, 1, &pattern(1, 40))?;
    frame[IP + 10] ^= 1;
    frames.push(frame);
    unanswered(peer, &frames)
}

fn others(peer: &mut Peer) -> Result<(), Failure> {
    let mut frames = Vec::new();
    // Echo reply; unreachable, redirect, timestamp and address mask requests; echo with a code.
    for (kind, code) in [(0, 0), (3, 1), (5, 0), (13, 0), (17, 0), (8, 1), (255, 0)] {
        let mut frame = echo(peer, 1, &pattern(1, 40))?;
        (frame[ICMP], frame[ICMP + 1]) = (kind, code);
        reseal_message(&mut frame, 48);
        frames.push(frame);
    }
    unanswered(peer, &frames)
}

fn not_for_us(peer: &mut Peer) -> Result<(), Failure> {
    let [a, b, ..] = peer.station.peer_ip().octets();
    let mut frames = Vec::new();
    for destination in [[a, b, 255, 254], [255, 255, 255, 255], [a, b, 255, 255], [224, 0, 0, 1]] {
        let mut frame = echo(peer, 1 + frames.len() as u16, &pattern(1, 40))?;
        frame[IP + 16..IP + 20].copy_from_slice(&destination);
        if destination[3] != 254 {
            frame[..6].copy_from_slice(&MacAddr::BROADCAST.0);
        }
        reseal(&mut frame);
        frames.push(frame);
    }
    // Its sender is no single host: an answer would go to many.
    for source in [[255, 255, 255, 255], [224, 0, 0, 1], [0, 0, 0, 0]] {
        let mut frame = echo(peer, 1 + frames.len() as u16, &pattern(1, 40))?;
        frame[IP + 12..IP + 16].copy_from_slice(&source);
        reseal(&mut frame);
        frames.push(frame);
    }
    // For the device, in a frame for another station or for all (RFC 1122 3.3.6).
    for to in [[0x02, 0, 0, 0, 0, 0x99], [0xff; 6]] {
        let mut frame = echo(peer, 1 + frames.len() as u16, &pattern(1, 40))?;
        frame[..6].copy_from_slice(&to);
        frames.push(frame);
    }
    unanswered(peer, &frames)
}

fn fragment(peer: &mut Peer) -> Result<(), Failure> {
    let mut frames = Vec::new();
    for flags in [[0x20, 0], [0, 1], [0x3f, 0xff]] {
        let mut frame = echo(peer, 1, &pattern(1, 40))?;
        frame[IP + 6..IP + 8].copy_from_slice(&flags);
        reseal(&mut frame);
        frames.push(frame);
    }
    unanswered(peer, &frames)
}

fn cut_short(peer: &mut Peer) -> Result<(), Failure> {
    let mut frames = Vec::new();
    let whole = echo(peer, 1, &pattern(1, 400))?;
    for len in [60, 100, whole.len() - 1] {
        frames.push(whole[..len].to_vec());
    }
    // The IPv4 length says less than the message has.
    let mut frame = whole;
    frame[IP + 2..IP + 4].copy_from_slice(&(100u16).to_be_bytes());
    reseal(&mut frame);
    frames.push(frame);
    unanswered(peer, &frames)
}
