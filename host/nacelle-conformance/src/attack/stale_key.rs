// SPDX-License-Identifier: Apache-2.0
//! Use of a key while it is deregistered. A caller gives its memory back by a request for regions that cannot be granted, and right behind
//! it, without waiting, begins a WRITE, a READ or atomics under its old key, which the device admits. The memory is then granted to a
//! second caller. What was admitted under the old key must not read or change it there.

use crate::{
    Failure,
    failure::ensure,
    peer::{Memory, Peer, Qp, Terms, raw_message, region},
    rules::pattern,
    station::Packet,
};
use nacelle_wire::{
    Psn,
    bth::{AtomicEth, Opcode, Syndrome},
    cm::Message,
    mrsp::RegionFlags,
    transport::Ext,
};
use std::time::Duration;

/// Bytes of the region that passes to the second caller.
const SIZE: u32 = 64 << 10;
/// Bytes of the region in the READ and atomic variants: long enough that READs are still under way when it has passed on.
const LONG: u32 = 1 << 20;
/// READs of the whole region that the attacker sends.
const READS: u32 = 3;
/// Seed of the pattern that the second caller writes.
const SECRET: u8 = 0x50;

/// When the attacker sends the MIDDLE and LAST packets of its WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Together with the FIRST packet.
    RightBehind,
    /// When its request for regions has been refused.
    AfterTheError,
    /// While the second caller sets up its region.
    DuringTheNext,
    /// When the second caller has its region.
    AfterTheNext,
}

/// A region request for more memory than a device has.
pub(crate) fn impossible() -> Vec<u8> {
    let regions: Vec<_> = (0..3).map(|i| region(RegionFlags::INPUT | RegionFlags::OUTPUT, i, u32::MAX)).collect();
    raw_message(1, 3, &regions)
}

/// Two callers: the first has a region, the second gets its memory afterwards.
struct Pair {
    first: Qp,
    second: Qp,
    /// The first caller's region.
    old: Memory,
}

fn pair(peer: &mut Peer, host: u16, size: u32) -> Result<Pair, Failure> {
    let terms = Terms { mtu: 5, initiator_depth: 16, ..Terms::default() };
    peer.act_as_host(host);
    let second = peer.connect(&terms)?;
    peer.act_as_host(host + 1);
    let mut first = peer.connect_with(&terms, &[size])?;
    let old = first.regions[0];
    peer.write_bytes(&mut first, &old, 0, &pattern(1, size as usize))?;
    Ok(Pair { first, second, old })
}

impl Pair {
    fn end(self, peer: &mut Peer) -> Result<(), Failure> {
        peer.disconnect(&self.first)?;
        peer.disconnect(&self.second)
    }

    /// Gives the second caller its region and fills it with the secret, which is returned. `meanwhile` runs during the set-up.
    fn change_hands(
        &mut self,
        peer: &mut Peer,
        size: u32,
        meanwhile: impl FnOnce(&mut Peer, &Qp) -> Result<(), Failure>,
    ) -> Result<Vec<u8>, Failure> {
        peer.post_message(&mut self.second, &crate::peer::region_request(&[size]))?;
        meanwhile(peer, &self.first)?;
        peer.expect_ack(&self.second, self.second.next.sub(1), Syndrome::ACK)?;
        peer.take_regions(&mut self.second, &[size])?;
        let secret = pattern(SECRET, size as usize);
        let region = self.second.regions[0];
        peer.write_bytes(&mut self.second, &region, 0, &secret)?;
        Ok(secret)
    }

    /// Waits until the first caller has the ERR message, or a NAK for the use of its old key.
    fn error_or_nak(&self, peer: &mut Peer) -> Result<(), Failure> {
        let own = self.first.own_qpn;
        let first = &self.first;
        let is_it = |p: &Packet| p.headers.bth.dest_qp() == own && (p.opcode == Opcode::SendOnly || is_nak(p));
        let packet = peer.station.look(is_it)?.ok_or(Failure::Missing("answer to the second region request"))?;
        if packet.opcode == Opcode::SendOnly {
            let psn = packet.headers.bth.psn();
            peer.acknowledge(first, psn, Syndrome::ACK)?;
        }
        Ok(())
    }
}

/// The device's answers to an attack that reached no foreign memory.
pub(crate) struct Answers {
    pub(crate) all: Vec<Packet>,
    /// `None`: all was carried out while the region was still the attacker's. Else nothing from this PSN on was carried out.
    pub(crate) refused_from: Option<Psn>,
}

/// Whether this is an acknowledge packet with a NAK syndrome.
pub(crate) fn is_nak(packet: &Packet) -> bool {
    matches!(packet.headers.ext, Ext::Aeth(aeth) if matches!(aeth.syndrome(), Syndrome::Nak(_)))
}

/// Gathers what the device answers on the attacker's connection until the DREQ, or until nothing more comes.
fn answers(peer: &mut Peer, qp: &Qp) -> Result<Vec<Packet>, Failure> {
    let (own, id) = (qp.own_qpn, qp.own_comm_id);
    let mut all: Vec<Packet> = Vec::new();
    loop {
        let time = if all.last().is_some_and(is_nak) { 50 } else { 300 };
        let next = peer.station.wait(Duration::from_millis(time), |p| {
            (p.headers.bth.dest_qp() == own && p.opcode.is_response())
                || Message::parse(&p.payload)
                    .is_ok_and(|(_, m)| matches!(m, Message::Dreq(d) if d.remote_comm_id.get() == id))
        })?;
        match next {
            Some(packet) if packet.opcode == Opcode::UdSendOnly => return Ok(all),
            Some(packet) => all.push(packet),
            None => return Ok(all),
        }
    }
}

/// Begins a WRITE under a key that is being deregistered, and sends the rest of it at `when`.
///
/// # Errors
/// The WRITE changed the second caller's memory.
pub(crate) fn write(peer: &mut Peer, host: u16, when: When) -> Result<Answers, Failure> {
    let mut pair = pair(peer, host, SIZE)?;
    peer.post_message(&mut pair.first, &impossible())?;
    let (begin, mtu) = (pair.first.next, pair.first.mtu);
    let bad = vec![0xbb; mtu];
    let reth = Ext::Reth(pair.old.reth(0, 3 * mtu as u32));
    peer.send_quietly(&pair.first, Opcode::WriteFirst, begin, reth, &bad)?;
    let rest = |peer: &mut Peer, qp: &Qp| {
        peer.send_quietly(qp, Opcode::WriteMiddle, begin.add(1), Ext::None, &bad)?;
        peer.send(qp, Opcode::WriteLast, begin.add(2), Ext::None, &bad)
    };
    if when == When::RightBehind {
        rest(peer, &pair.first)?;
    }
    pair.error_or_nak(peer)?;
    if when == When::AfterTheError {
        rest(peer, &pair.first)?;
    }
    let secret =
        pair.change_hands(peer, SIZE, |peer, qp| if when == When::DuringTheNext { rest(peer, qp) } else { Ok(()) })?;
    if when == When::AfterTheNext {
        rest(peer, &pair.first)?;
    }
    let all = answers(peer, &pair.first)?;
    let region = pair.second.regions[0];
    peer.expect_bytes(&mut pair.second, &region, 0, &secret)?;
    pair.end(peer)?;
    let before = when == When::RightBehind && !all.iter().any(is_nak);
    Ok(Answers { all, refused_from: (!before).then(|| begin.add(2)) })
}

/// Sends [`READS`] READs of the whole old region. Returns the PSN behind them.
fn ask_for_all(peer: &mut Peer, pair: &Pair) -> Result<Psn, Failure> {
    let packets = LONG / pair.first.mtu as u32;
    for i in 0..READS {
        let reth = Ext::Reth(pair.old.reth(0, LONG));
        peer.send_quietly(&pair.first, Opcode::ReadRequest, pair.first.next.add(i * packets), reth, &[])?;
    }
    Ok(pair.first.next.add(READS * packets))
}

/// Sends READs of a region that is deregistered while they are carried out.
///
/// # Errors
/// A READ returned bytes that are not the first caller's.
pub(crate) fn read(peer: &mut Peer, host: u16) -> Result<Answers, Failure> {
    let mut pair = pair(peer, host, LONG)?;
    peer.post_message(&mut pair.first, &impossible())?;
    let (begin, mtu) = (pair.first.next, pair.first.mtu);
    let end = ask_for_all(peer, &pair)?;
    pair.error_or_nak(peer)?;
    pair.change_hands(peer, LONG, |_, _| Ok(()))?;
    let all = answers(peer, &pair.first)?;
    let own = pattern(1, LONG as usize);
    for packet in all.iter().filter(|p| !p.payload.is_empty()) {
        let at = packet.headers.bth.psn().since(begin) as usize * mtu % own.len();
        ensure!(
            packet.payload == own[at..(at + packet.payload.len()).min(own.len())],
            "a READ that was admitted before brought bytes at {at} that are not the first caller's"
        );
    }
    pair.end(peer)?;
    let before = all.iter().any(|p| p.headers.bth.psn() == end.sub(1) && !is_nak(p));
    Ok(Answers { all, refused_from: (!before).then(|| end.sub(1)) })
}

/// Sends atomics behind long READs, on a region that is deregistered meanwhile.
///
/// # Errors
/// An atomic changed the second caller's memory.
pub(crate) fn atomics(peer: &mut Peer, host: u16) -> Result<(), Failure> {
    let mut pair = pair(peer, host, LONG)?;
    let count = u32::from(pair.first.responder_resources).saturating_sub(READS);
    ensure!(count > 0, "the device takes {} READs and atomics at once", pair.first.responder_resources);
    peer.post_message(&mut pair.first, &impossible())?;
    let behind = ask_for_all(peer, &pair)?;
    for i in 0..count {
        let at = 8 * i as usize;
        let (opcode, swap_add, compare) = match i % 2 {
            0 => (Opcode::FetchAdd, 0x0101_0101, 0),
            // The value that the second caller will have there.
            _ => (
                Opcode::CmpSwap,
                0xdead_beef,
                u64::from_le_bytes(pattern(SECRET, at + 8)[at..].try_into().expect("8 bytes")),
            ),
        };
        let eth = AtomicEth::new(pair.old.at(at as u64), pair.old.rkey, swap_add, compare);
        peer.send_quietly(&pair.first, opcode, behind.add(i), Ext::Atomic(eth), &[])?;
    }
    pair.error_or_nak(peer)?;
    let secret = pair.change_hands(peer, LONG, |_, _| Ok(()))?;
    answers(peer, &pair.first)?;
    let region = pair.second.regions[0];
    peer.expect_bytes(&mut pair.second, &region, 0, &secret[..4096])?;
    pair.end(peer)
}
