// SPDX-License-Identifier: Apache-2.0
//! The device as the requester of READs: management lets it open a connection and read memory of the suite, which loses, changes or
//! refuses what it answers (IBTA 9.7.5.1.9, 9.7.6, 9.9.2).

mod reader;

use super::{Rule, nacelle};
use crate::{
    Failure,
    failure::ensure,
    peer::{OWN_RKEY, Peer, own_address},
};
use core::time::Duration;
use nacelle_manage::Work;
use nacelle_roce::WcStatus;
use nacelle_wire::bth::{NakCode, Opcode, RnrTimer, Syndrome};
use reader::{Reader, respond};
use std::time::Instant;

pub(super) const RULES: &[Rule] = &[
    nacelle("requester.read_is_answered_in_packets_of_the_path_mtu", "IBTA 9.4.4", every_mtu),
    nacelle("requester.read_returns_every_length", "IBTA 9.4.4", lengths),
    nacelle("requester.read_uses_a_psn_per_response_packet", "IBTA 9.7.3.1", psns),
    nacelle("requester.read_is_repeated_without_a_response", "IBTA 9.7.6.1.3", timeout),
    nacelle("requester.read_is_repeated_from_the_missing_response", "IBTA 9.7.5.1.2", gap),
    nacelle("requester.read_is_repeated_at_once_after_a_nak", "IBTA 9.7.5.2.8", sequence_error),
    nacelle("requester.read_waits_for_the_rnr_timer", "IBTA 9.7.5.2.8", not_ready),
    nacelle("requester.read_is_not_completed_by_an_acknowledgement", "IBTA 9.7.5.1.2", acknowledged),
    nacelle("requester.read_accepts_each_response_once", "IBTA 9.7.6.1", twice),
    nacelle("requester.read_ignores_responses_to_an_earlier_read", "IBTA 9.7.6.1", stale),
    nacelle("requester.read_ignores_responses_to_unsent_requests", "IBTA 9.7.6.1", ghost),
    nacelle("requester.read_ignores_responses_from_another_host", "IBTA 9.6.1.1", foreign),
    nacelle("requester.read_response_acknowledges_no_write", "IBTA 9.7.6.1", for_a_write),
    nacelle("requester.read_completes_in_error_on_a_response_out_of_order", "IBTA 9.9.2.2", disorder),
    nacelle("requester.read_completes_in_error_on_a_wrong_response_length", "IBTA 9.9.2.2", wrong_length),
    nacelle("requester.read_completes_in_error_on_a_negative_response", "IBTA 9.9.2.2", negative),
    nacelle("requester.read_completes_in_error_on_a_nak", "IBTA 9.9.2.2", refused),
    nacelle("requester.read_gives_up_after_its_retries", "IBTA 9.9.2.1.1", gives_up),
    nacelle("requester.failed_read_ignores_responses", "IBTA 9.9.2.1.1", late),
    nacelle("requester.read_is_not_sent_without_responder_resources", "IBTA 12.6.8", none_taken),
];

/// Path MTU of most rules, and a length of four packets.
const MTU: u16 = 256;
const LENGTH: usize = 1000;
const PACKETS: u32 = 4;
/// Retries of both devices, the most that there are.
const RETRIES: u32 = 7;
/// Payload of forged responses, which must not reach memory.
const WRONG: u8 = 0xee;

fn every_mtu(peer: &mut Peer) -> Result<(), Failure> {
    for mtu in [256, 512, 1024, 2048, 4096] {
        let mut reader = Reader::with_mtu(peer, mtu)?;
        for (seed, length) in [(1, 2048), (2, 2041)] {
            reader.begin(peer, seed, length)?;
            reader.finish(peer, 0)?;
        }
        peer.hang_up(&reader.called)?;
    }
    Ok(())
}

fn lengths(peer: &mut Peer) -> Result<(), Failure> {
    let mut reader = Reader::new(peer)?;
    let lengths = [0, 1, 2, 3, 4, 63, 64, 65, 255, 256, 257, 511, 512, 513, 2047];
    for (seed, length) in (1..).zip(lengths) {
        reader.begin(peer, seed, length)?;
        reader.finish(peer, 0)?;
    }
    peer.hang_up(&reader.called)
}

fn psns(peer: &mut Peer) -> Result<(), Failure> {
    let mut reader = Reader::new(peer)?;
    for length in [LENGTH, 1, 257, 0] {
        reader.begin(peer, 1, length)?;
        reader.finish(peer, 0)?;
        reader.write(peer)?;
        reader.acknowledge(peer)?;
    }
    peer.hang_up(&reader.called)
}

fn timeout(peer: &mut Peer) -> Result<(), Failure> {
    let mut reader = Reader::new(peer)?;
    // The whole response is lost, then its end.
    for arrives in [0, 1, PACKETS - 1] {
        reader.begin(peer, arrives as u8, LENGTH)?;
        reader.answer(peer, 0, 0..arrives)?;
        let from = reader.request(peer, 0..arrives + 1)?;
        reader.finish(peer, from)?;
    }
    peer.hang_up(&reader.called)
}

fn gap(peer: &mut Peer) -> Result<(), Failure> {
    let mut reader = Reader::new(peer)?;
    for lost in 0..PACKETS - 1 {
        at_once(peer, &mut reader, |peer, reader| {
            reader.answer(peer, 0, 0..lost)?;
            // Packets behind the gap are dropped.
            reader.mislead(peer, lost + 1..PACKETS)?;
            reader.request(peer, 0..lost + 1)
        })?;
    }
    peer.hang_up(&reader.called)
}

fn sequence_error(peer: &mut Peer) -> Result<(), Failure> {
    let mut reader = Reader::new(peer)?;
    at_once(peer, &mut reader, |peer, reader| {
        reader.refuse(peer, Syndrome::Nak(NakCode::PsnSequenceError))?;
        reader.request(peer, 0..1)
    })?;
    peer.hang_up(&reader.called)
}

/// The retransmission is caused by this event, not by the ACK timeout. On a busy machine the timeout may expire as well, so this is tried
/// more than once.
fn at_once(
    peer: &mut Peer,
    reader: &mut Reader,
    asks_again: impl Fn(&mut Peer, &Reader) -> Result<u32, Failure>,
) -> Result<(), Failure> {
    for _ in 0..3 {
        let before = reader.timeouts(peer)?;
        reader.begin(peer, 1, LENGTH)?;
        let from = asks_again(peer, reader)?;
        let after = reader.timeouts(peer)?;
        reader.finish(peer, from)?;
        if before == after {
            return Ok(());
        }
    }
    Err(Failure::Content("the device retransmitted only after its ACK timeout".into()))
}

fn not_ready(peer: &mut Peer) -> Result<(), Failure> {
    let mut reader = Reader::new(peer)?;
    reader.begin(peer, 1, LENGTH)?;
    for _ in 0..2 {
        let timer = RnrTimer::new(24); // 40.96 ms
        let asked = Instant::now();
        reader.refuse(peer, Syndrome::RnrNak(timer))?;
        reader.request(peer, 0..1)?;
        let took = asked.elapsed();
        let least = Duration::from_micros(timer.micros().into());
        // The clock of a simulated device may be slower than this one, and up to 10 % faster.
        ensure!(took * 10 > least * 9, "the repetition came after {took:?} instead of {least:?}");
    }
    reader.end(peer, 0)
}

fn acknowledged(peer: &mut Peer) -> Result<(), Failure> {
    let mut reader = Reader::new(peer)?;
    for acknowledged in [0, PACKETS - 1] {
        reader.begin(peer, 1, LENGTH)?;
        peer.acknowledge(&reader.called.qp, reader.psn(acknowledged), Syndrome::ACK)?;
        let from = reader.request(peer, 0..1)?;
        reader.finish(peer, from)?;
    }
    peer.hang_up(&reader.called)
}

fn twice(peer: &mut Peer) -> Result<(), Failure> {
    let mut reader = Reader::new(peer)?;
    reader.begin(peer, 1, LENGTH)?;
    for index in 0..PACKETS - 1 {
        reader.answer(peer, 0, index..index + 1)?;
        reader.mislead(peer, 0..index + 1)?;
    }
    reader.answer(peer, 0, PACKETS - 1..PACKETS)?;
    reader.complete(peer)?;
    peer.hang_up(&reader.called)
}

fn stale(peer: &mut Peer) -> Result<(), Failure> {
    let mut reader = Reader::new(peer)?;
    reader.begin(peer, 1, LENGTH)?;
    reader.finish(peer, 0)?;
    let earlier = reader.psn(0).sub(PACKETS);
    reader.begin(peer, 2, LENGTH)?;
    for index in 0..PACKETS {
        let wrong = vec![WRONG; reader.part(index).len()];
        respond(peer, &reader.called, reader.opcode(0, index), earlier.add(index), Syndrome::ACK, &wrong)?;
    }
    reader.end(peer, 0)
}

fn ghost(peer: &mut Peer) -> Result<(), Failure> {
    let mut reader = Reader::new(peer)?;
    // While nothing is under way, and while a READ is.
    let wrong = [WRONG; MTU as usize];
    for ahead in [0, 1, 1000, 0x7f_ffff] {
        reader.respond(peer, Opcode::ReadResponseOnly, ahead, &wrong)?;
    }
    // They have been processed when a later packet is acknowledged.
    reader.write(peer)?;
    reader.acknowledge(peer)?;
    reader.begin(peer, 1, LENGTH)?;
    for ahead in [PACKETS, PACKETS + 1, 1000, 0x7f_ffff] {
        for opcode in [Opcode::ReadResponseFirst, Opcode::ReadResponseMiddle, Opcode::ReadResponseOnly] {
            reader.respond(peer, opcode, ahead, &wrong)?;
        }
    }
    reader.end(peer, 0)
}

fn foreign(peer: &mut Peer) -> Result<(), Failure> {
    let mut reader = Reader::new(peer)?;
    reader.begin(peer, 1, LENGTH)?;
    let ip = reader.called.qp.ip;
    reader.called.qp.ip = peer.act_as_host(0);
    reader.mislead(peer, 0..PACKETS)?;
    reader.refuse(peer, Syndrome::Nak(NakCode::RemoteAccessError))?;
    reader.called.qp.ip = ip;
    reader.end(peer, 0)
}

fn for_a_write(peer: &mut Peer) -> Result<(), Failure> {
    let mut reader = Reader::new(peer)?;
    reader.write(peer)?;
    for opcode in [Opcode::ReadResponseOnly, Opcode::ReadResponseFirst, Opcode::ReadResponseLast] {
        reader.respond(peer, opcode, 0, &[WRONG; 8])?;
    }
    // Not acknowledged: it is retransmitted.
    reader.written(peer)?;
    reader.acknowledge(peer)?;
    peer.hang_up(&reader.called)
}

fn disorder(peer: &mut Peer) -> Result<(), Failure> {
    use Opcode::{ReadResponseFirst, ReadResponseLast, ReadResponseMiddle, ReadResponseOnly};
    let cases = [
        (0, ReadResponseMiddle),
        (0, ReadResponseLast),
        (0, ReadResponseOnly),
        (1, ReadResponseLast),
        (1, ReadResponseOnly),
        (PACKETS - 1, ReadResponseMiddle),
        (PACKETS - 1, ReadResponseFirst),
    ];
    for (index, opcode) in cases {
        let mut reader = Reader::new(peer)?;
        reader.begin(peer, 1, LENGTH)?;
        reader.answer(peer, 0, 0..index)?;
        reader.respond(peer, opcode, index, reader.part(index))?;
        reader.fails(peer, WcStatus::BadRespErr)?;
    }
    // One packet is the whole response.
    for opcode in [ReadResponseFirst, ReadResponseMiddle, ReadResponseLast] {
        let mut reader = Reader::new(peer)?;
        reader.begin(peer, 1, MTU.into())?;
        reader.respond(peer, opcode, 0, reader.part(0))?;
        reader.fails(peer, WcStatus::BadRespErr)?;
    }
    Ok(())
}

fn wrong_length(peer: &mut Peer) -> Result<(), Failure> {
    let tail = LENGTH - (PACKETS as usize - 1) * usize::from(MTU);
    let cases =
        [(0, 0), (0, 252), (0, 255), (1, 255), (PACKETS - 1, 0), (PACKETS - 1, tail - 1), (PACKETS - 1, tail + 1)];
    for (index, length) in cases {
        let mut reader = Reader::new(peer)?;
        reader.begin(peer, 1, LENGTH)?;
        reader.answer(peer, 0, 0..index)?;
        reader.respond(peer, reader.opcode(0, index), index, &vec![WRONG; length])?;
        reader.fails(peer, WcStatus::BadRespErr)?;
    }
    Ok(())
}

fn negative(peer: &mut Peer) -> Result<(), Failure> {
    for syndrome in [Syndrome::Nak(NakCode::RemoteAccessError), Syndrome::RnrNak(RnrTimer::new(1))] {
        for index in [0, PACKETS - 1] {
            let mut reader = Reader::new(peer)?;
            reader.begin(peer, 1, LENGTH)?;
            reader.answer(peer, 0, 0..index)?;
            let opcode = reader.opcode(0, index);
            respond(peer, &reader.called, opcode, reader.psn(index), syndrome, reader.part(index))?;
            reader.fails(peer, WcStatus::BadRespErr)?;
        }
    }
    Ok(())
}

fn refused(peer: &mut Peer) -> Result<(), Failure> {
    let cases = [
        (NakCode::RemoteAccessError, WcStatus::RemAccessErr),
        (NakCode::InvalidRequest, WcStatus::RemInvReqErr),
        (NakCode::RemoteOperationalError, WcStatus::RemOpErr),
    ];
    for (code, status) in cases {
        let mut reader = Reader::new(peer)?;
        reader.begin(peer, 1, LENGTH)?;
        reader.refuse(peer, Syndrome::Nak(code))?;
        reader.fails(peer, status)?;
    }
    // The memory is deregistered in the middle of the response.
    let mut reader = Reader::new(peer)?;
    reader.begin(peer, 1, LENGTH)?;
    reader.answer(peer, 0, 0..2)?;
    peer.acknowledge(&reader.called.qp, reader.psn(2), Syndrome::Nak(NakCode::RemoteAccessError))?;
    reader.fails(peer, WcStatus::RemAccessErr)
}

fn gives_up(peer: &mut Peer) -> Result<(), Failure> {
    let mut reader = Reader::new(peer)?;
    reader.begin(peer, 1, LENGTH)?;
    // NAKs use up retries as timeouts do, in less time.
    for _ in 0..RETRIES - 1 {
        reader.refuse(peer, Syndrome::Nak(NakCode::PsnSequenceError))?;
        reader.request(peer, 0..1)?;
    }
    let patience = peer.station.patience;
    peer.station.patience = patience * 10;
    let last = reader.request(peer, 0..1);
    peer.station.patience = patience;
    last?;
    let own = reader.called.qp.own_qpn;
    reader.fails(peer, WcStatus::RetryExceeded)?;
    let more = peer.station.take(|p| p.headers.bth.dest_qp() == own)?;
    ensure!(more.is_empty(), "{} packets came after the last retry", more.len());
    Ok(())
}

fn late(peer: &mut Peer) -> Result<(), Failure> {
    let mut reader = Reader::new(peer)?;
    reader.begin(peer, 1, LENGTH)?;
    for _ in 0..RETRIES {
        reader.refuse(peer, Syndrome::Nak(NakCode::PsnSequenceError))?;
        reader.request(peer, 0..1)?;
    }
    reader.refuse(peer, Syndrome::Nak(NakCode::PsnSequenceError))?;
    let dead = Reader { called: reader.called.clone(), bytes: reader.bytes.clone() };
    reader.fails(peer, WcStatus::RetryExceeded)?;
    // They have no effect on the next connection either, which may have the same number.
    dead.mislead(peer, 0..PACKETS)?;
    let mut next = Reader::new(peer)?;
    dead.mislead(peer, 0..PACKETS)?;
    next.begin(peer, 2, LENGTH)?;
    next.end(peer, 0)
}

fn none_taken(peer: &mut Peer) -> Result<(), Failure> {
    let called = peer.called(MTU, 0)?;
    ensure!(called.req.initiator_depth > 0, "the REQ has an initiator depth of 0");
    let work = Work::Read { address: own_address(0).0, rkey: OWN_RKEY.0, length: LENGTH as u32 };
    // Either management refuses it, or the queue pair.
    if peer.give(&called, work).is_ok() {
        let completion = peer.completion(&called)?;
        ensure!(!completion.ok, "a READ succeeded that the peer does not support");
        ensure!(completion.data.0.is_empty(), "a READ that failed brought {} bytes", completion.data.0.len());
    }
    // The next request uses its PSN.
    let mut reader = Reader { called, bytes: Vec::new() };
    reader.write(peer)?;
    reader.acknowledge(peer)?;
    peer.hang_up(&reader.called)
}
