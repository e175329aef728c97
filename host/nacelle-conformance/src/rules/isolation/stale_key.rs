// SPDX-License-Identifier: Apache-2.0
//! The attack of a few frames: a caller gives its memory back by a request for regions that cannot be granted, and right behind it, without waiting, begins a WRITE, a
//! READ or atomics under its old key, which are admitted. The memory goes to the next caller; what was admitted must not reach it there.

use super::{CONTRACT, Rule, nacelle};
use crate::{
    Failure,
    failure::ensure,
    peer::{Memory, Peer, Qp, Terms, raw_message, region},
    rules::pattern,
    station::Packet,
};
use nacelle_wire::{
    Psn,
    bth::{AtomicEth, NakCode, Opcode, Syndrome},
    cm::Message,
    mrsp::RegionFlags,
    roce::Ext,
};
use std::time::Duration;

pub(super) const RULES: &[Rule] = &[
    nacelle("isolation.write_under_an_old_key_right_behind_the_new_set_up", CONTRACT, |p| write(p, When::RightBehind)),
    nacelle("isolation.write_under_an_old_key_goes_on_after_the_error", CONTRACT, |p| write(p, When::AfterTheError)),
    nacelle("isolation.write_under_an_old_key_goes_on_during_the_next_set_up", CONTRACT, |p| {
        write(p, When::DuringTheNext)
    }),
    nacelle("isolation.write_under_an_old_key_goes_on_after_the_next_set_up", CONTRACT, |p| {
        write(p, When::AfterTheNext)
    }),
    nacelle("isolation.read_under_an_old_key_shows_nothing_of_the_next_caller", CONTRACT, read),
    nacelle("isolation.atomics_under_an_old_key_change_nothing_of_the_next_caller", CONTRACT, atomics),
];

/// The attack is tried so often with each timing: whether the WRITE is admitted depends on a few cycles.
const ROUNDS: u16 = 3;
/// Memory that changes hands.
const SIZE: u32 = 64 << 10;
/// For READs that are still under way when it has changed hands.
const LONG: u32 = 1 << 20;

/// So many of them.
const READS: u32 = 3;
/// What the second caller writes.
const SECRET: u8 = 0x50;

/// When the rest of the WRITE comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    RightBehind,
    AfterTheError,
    DuringTheNext,
    AfterTheNext,
}

/// A request for more memory than there is.
pub(super) fn impossible() -> Vec<u8> {
    let regions: Vec<_> = (0..3).map(|i| region(RegionFlags::INPUT | RegionFlags::OUTPUT, i, u32::MAX)).collect();
    raw_message(1, 3, &regions)
}

/// Two callers: the first has memory, the second is to get it.
struct Pair {
    first: Qp,
    second: Qp,
    /// What the first has.
    old: Memory,
}

fn pair(peer: &mut Peer, round: u16, size: u32) -> Result<Pair, Failure> {
    let terms = Terms { mtu: 5, initiator_depth: 16, ..Terms::default() };
    peer.act_as_host(2 * round);
    let second = peer.connect(&terms)?;
    peer.act_as_host(2 * round + 1);
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

    /// The second caller gets its memory, and fills it.
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

    /// Waits until the first caller has its error message, or is told that its key is dead.
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

fn is_nak(packet: &Packet) -> bool {
    matches!(packet.headers.ext, Ext::Aeth(aeth) if matches!(aeth.syndrome(), Syndrome::Nak(_)))
}

/// Everything that the device has answered on the attacker's connection until it is over, or until nothing more comes.
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

/// The answers contain one NAK remote access error, and behind it nothing; nothing from this PSN on is acknowledged.
fn cut_off(answers: &[Packet], from: Psn) -> Result<(), Failure> {
    let naks = answers.iter().filter(|p| is_nak(p)).count();
    ensure!(naks == 1, "{naks} NAKs came on the connection whose key is dead, instead of 1");
    let last = answers.last().expect("there is a NAK");
    let refused = matches!(last.headers.ext, Ext::Aeth(a) if a.syndrome() == Syndrome::Nak(NakCode::RemoteAccessError));
    if !refused {
        return Err(Failure::unexpected("NAK remote access error as the last answer", last));
    }
    match answers.iter().find(|p| !is_nak(p) && p.headers.bth.psn().distance(from) >= 0) {
        Some(packet) => Err(Failure::unexpected("no answer to what came under a dead key", packet)),
        None => Ok(()),
    }
}

fn write(peer: &mut Peer, when: When) -> Result<(), Failure> {
    for round in 0..ROUNDS {
        let mut pair = pair(peer, round, SIZE)?;
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
        let secret = pair
            .change_hands(peer, SIZE, |peer, qp| if when == When::DuringTheNext { rest(peer, qp) } else { Ok(()) })?;
        if when == When::AfterTheNext {
            rest(peer, &pair.first)?;
        }
        let found = answers(peer, &pair.first)?;
        let region = pair.second.regions[0];
        peer.expect_bytes(&mut pair.second, &region, 0, &secret)?;
        // All of it may have been carried out while the memory was still the first caller's.
        let before = when == When::RightBehind && !found.iter().any(is_nak);
        if !before {
            cut_off(&found, begin.add(2))?;
        }
        pair.end(peer)?;
    }
    Ok(())
}

/// Asks for all of the old memory so often, with READs that take long; returns the PSN behind them.
fn ask_for_all(peer: &mut Peer, pair: &Pair) -> Result<Psn, Failure> {
    let packets = LONG / pair.first.mtu as u32;
    for i in 0..READS {
        let reth = Ext::Reth(pair.old.reth(0, LONG));
        peer.send_quietly(&pair.first, Opcode::ReadRequest, pair.first.next.add(i * packets), reth, &[])?;
    }
    Ok(pair.first.next.add(READS * packets))
}

fn read(peer: &mut Peer) -> Result<(), Failure> {
    let mut pair = pair(peer, 0, LONG)?;
    peer.post_message(&mut pair.first, &impossible())?;
    let (begin, mtu) = (pair.first.next, pair.first.mtu);
    let end = ask_for_all(peer, &pair)?;
    pair.error_or_nak(peer)?;
    pair.change_hands(peer, LONG, |_, _| Ok(()))?;
    let found = answers(peer, &pair.first)?;
    let own = pattern(1, LONG as usize);
    for packet in found.iter().filter(|p| !p.payload.is_empty()) {
        let at = packet.headers.bth.psn().since(begin) as usize * mtu % own.len();
        ensure!(
            packet.payload == own[at..(at + packet.payload.len()).min(own.len())],
            "a READ that was admitted before brought bytes at {at} that are not the first caller's"
        );
    }
    // It may have been carried out while the memory was still the first caller's.
    if !found.iter().any(|p| p.headers.bth.psn() == end.sub(1) && !is_nak(p)) {
        cut_off(&found, end.sub(1))?;
    }
    pair.end(peer)
}

fn atomics(peer: &mut Peer) -> Result<(), Failure> {
    let mut pair = pair(peer, 0, LONG)?;
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
