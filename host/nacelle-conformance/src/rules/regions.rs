// SPDX-License-Identifier: Apache-2.0
//! The region protocol: what a caller asks for in a SEND, and how it is answered (docs/reference/rpc.md, NAAICE's MRSP).

use super::{Rule, nacelle, pattern};
use crate::{
    Failure,
    failure::ensure,
    peer::{EMPTY, Memory, Peer, Qp, Terms, raw_message, region},
};
use nacelle_wire::{
    RemoteAddr, Rkey,
    bth::{NakCode, Opcode, Syndrome},
    mrsp::{AarRegion, Message, RegionFlags},
    transport::Ext,
};

pub(super) const RULES: &[Rule] = &[
    nacelle("regions.request_is_acknowledged_before_it_is_answered", "NAAICE: ordering", acknowledged_first),
    nacelle("regions.answer_lists_the_parameters_in_their_order", MESSAGES, parameters),
    nacelle("regions.answer_is_solicited", "NAAICE: messages", solicited),
    nacelle("regions.do_not_overlap", MESSAGES, apart),
    nacelle("regions.of_zero_length_are_granted", MESSAGES, empty),
    nacelle("regions.unknown_flags_pad_and_requested_address_are_ignored", MESSAGES, ignored),
    nacelle("regions.maximum_number_is_granted", MESSAGES, most),
    nacelle("regions.malformed_request_gets_error_1", ERRORS, malformed),
    nacelle("regions.malformed_request_changes_nothing", ERRORS, changes_nothing),
    nacelle("regions.larger_than_memory_get_error_2", ERRORS, too_large),
    nacelle("regions.more_than_there_may_be_get_error_3", ERRORS, too_many),
    nacelle("regions.without_a_key_left_get_error_4", ERRORS, no_key),
    nacelle("regions.can_be_requested_after_an_error", ERRORS, after_error),
    nacelle("regions.request_longer_than_the_receive_is_refused", "IBTA 9.7.4.1.6; device contract", too_long),
    nacelle("regions.request_with_an_immediate_is_a_request", "IBTA 9.4.1; device contract", with_immediate),
];

const MESSAGES: &str = "rpc: messages";
const ERRORS: &str = "rpc: error codes";

/// Bytes of a receive.
const RECEIVE: usize = 1024;
const MAX_REGIONS: usize = 32;
/// Bytes of a region in a request.
const ENTRY: usize = size_of::<AarRegion>();
const BOTH: RegionFlags = RegionFlags::from_bits(RegionFlags::INPUT.bits() | RegionFlags::OUTPUT.bits());

fn regions(count: usize, size: u32) -> Vec<AarRegion> {
    (0..count).map(|i| region(BOTH, i, size)).collect()
}

/// Sends a message and checks that the answer is this error.
fn expect_error(peer: &mut Peer, qp: &mut Qp, what: &str, message: &[u8], code: u8) -> Result<(), Failure> {
    peer.send_message(qp, message)?;
    let answer = peer.receive_message(qp)?;
    ensure!(
        answer.len() == 4 && answer[..2] == [0, code],
        "{what} is answered by {:02x?} instead of the error {code}",
        &answer[..answer.len().min(8)]
    );
    Ok(())
}

fn acknowledged_first(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect(&Terms::default())?;
    for count in [1, 3, 20] {
        peer.post_message(&mut qp, &raw_message(1, count, &regions(count.into(), 64)))?;
        let own = qp.own_qpn;
        let first = peer.station.expect(|p| p.headers.bth.dest_qp() == own)?.ok_or(Failure::Missing("answer"))?;
        let acknowledges = matches!(first.headers.ext, Ext::Aeth(a) if matches!(a.syndrome(), Syndrome::Ack(_)));
        if !acknowledges || first.headers.bth.psn() != qp.next.sub(1) {
            return Err(Failure::unexpected("the acknowledgement of the request first", &first));
        }
        peer.receive_message(&mut qp)?;
    }
    peer.disconnect(&qp)
}

fn parameters(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect(&Terms::default())?;
    let sizes = [100, 4096, 7];
    let mut asked: Vec<AarRegion> = sizes.iter().enumerate().map(|(i, &size)| region(BOTH, i, size)).collect();
    asked.extend([AarRegion::internal(0, 5000), AarRegion::internal(0, 1)]);
    peer.send_message(&mut qp, &raw_message(1, 5, &asked))?;
    let answer = peer.receive_message(&mut qp)?;
    let Message::A(given) = Message::parse(&answer)? else {
        return Err(Failure::Content(format!("the answer is {answer:02x?}")));
    };
    let found: Vec<u32> = given.iter().map(|region| region.size()).collect();
    ensure!(found == sizes, "regions of {sizes:?} bytes were asked for, the answer has {found:?}");
    ensure!(answer[2..4] == [0, 0], "the pad of the answer is {:02x?}", &answer[2..4]);
    peer.disconnect(&qp)
}

fn solicited(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect(&Terms::default())?;
    for message in [raw_message(1, 1, &regions(1, 64)), raw_message(9, 0, &[])] {
        peer.send_message(&mut qp, &message)?;
        let packet = peer.request(&qp)?;
        ensure!(packet.headers.bth.solicited(), "a message of the device asks for no solicited event");
        peer.acknowledge(&qp, packet.headers.bth.psn(), Syndrome::ACK)?;
    }
    peer.disconnect(&qp)
}

fn apart(peer: &mut Peer) -> Result<(), Failure> {
    let sizes = [1, 4096, 4097, 64, 10_000, 0, 5];
    let mut qp = peer.connect_with(&Terms::default(), &sizes)?;
    let mut spans: Vec<(u64, u64)> =
        qp.regions.iter().zip(sizes).map(|(r, size)| (r.addr.0, r.addr.0 + u64::from(size))).collect();
    spans.retain(|(from, to)| from < to);
    spans.sort_unstable();
    ensure!(spans.is_sorted_by(|a, b| a.1 <= b.0), "regions overlap: {spans:x?}");
    let mut keys: Vec<u32> = qp.regions.iter().map(|r| r.rkey.0).collect();
    keys.sort_unstable();
    keys.dedup();
    ensure!(keys.len() == sizes.len(), "{} regions have {} keys", sizes.len(), keys.len());
    // What is written to one is in no other.
    for (index, memory) in qp.regions.clone().iter().enumerate() {
        peer.write_bytes(&mut qp, memory, 0, &pattern(index as u8, sizes[index] as usize))?;
    }
    for (index, memory) in qp.regions.clone().iter().enumerate() {
        peer.expect_bytes(&mut qp, memory, 0, &pattern(index as u8, sizes[index] as usize))?;
    }
    peer.disconnect(&qp)
}

fn empty(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[0, 0])?;
    let outputs = peer.outputs_of_nothing(&mut qp)?;
    ensure!(outputs.iter().all(Vec::is_empty), "regions of no bytes have outputs of {:?}", outputs);
    peer.disconnect(&qp)
}

fn ignored(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect(&Terms::default())?;
    let mut message = raw_message(1, 2, &regions(2, 64));
    message[2..4].fill(0xff);
    message[4] |= 0xf0; // flags
    message[5..12].fill(0xaa); // requested address
    peer.send_message(&mut qp, &message)?;
    peer.take_regions(&mut qp, &[64, 64])?;
    let outputs = peer.outputs_of_nothing(&mut qp)?;
    ensure!(outputs.len() == 2, "{} outputs", outputs.len());
    peer.disconnect(&qp)
}

fn most(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[16; MAX_REGIONS])?;
    let outputs = peer.outputs_of_nothing(&mut qp)?;
    ensure!(outputs.len() == MAX_REGIONS, "{} outputs", outputs.len());
    peer.disconnect(&qp)
}

/// Requests that are wrong in their head: type, count or length.
fn wrong_heads() -> Vec<(&'static str, Vec<u8>)> {
    let two = regions(2, 64);
    let with_rest = |rest: &[u8]| [&raw_message(1, 2, &two), rest].concat();
    vec![
        ("an ERR", raw_message(0, 2, &two)),
        ("an A", raw_message(2, 2, &two)),
        ("an R", raw_message(3, 2, &two)),
        ("type 255", raw_message(255, 2, &two)),
        ("a count that is too small", raw_message(1, 1, &two)),
        ("a count that is too large", raw_message(1, 3, &two)),
        ("no region", raw_message(1, 0, &[])),
        ("a count of 255", raw_message(1, 255, &two)),
        ("one byte too many", with_rest(&[0])),
        ("half a region too many", with_rest(&[0; ENTRY / 2])),
        ("one byte too few", raw_message(1, 2, &two)[..4 + 2 * ENTRY - 1].to_vec()),
        ("a message of no bytes", Vec::new()),
        ("a message of 1 byte", vec![1]),
        ("a message of 3 bytes", vec![1, 0, 0]),
    ]
}

fn malformed(peer: &mut Peer) -> Result<(), Failure> {
    let internal = || AarRegion::internal(0, 64);
    let bodies = [
        ("internal regions only", raw_message(1, 2, &[internal(), internal()])),
        (
            "a parameter behind an internal region",
            raw_message(1, 3, &[region(BOTH, 0, 64), internal(), region(BOTH, 1, 64)]),
        ),
        ("an internal region first", raw_message(1, 2, &[internal(), region(BOTH, 0, 64)])),
    ];
    let mut qp = peer.connect(&Terms::default())?;
    for (what, message) in wrong_heads().into_iter().chain(bodies) {
        expect_error(peer, &mut qp, what, &message, 1)?;
    }
    peer.set_up_regions(&mut qp, &[64])?;
    peer.disconnect(&qp)
}

fn changes_nothing(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[256])?;
    let memory = qp.regions[0];
    let bytes = pattern(3, 256);
    peer.write_bytes(&mut qp, &memory, 0, &bytes)?;
    for (what, message) in wrong_heads() {
        expect_error(peer, &mut qp, what, &message, 1)?;
    }
    peer.expect_bytes(&mut qp, &memory, 0, &bytes)?;
    let outputs = peer.outputs_of_nothing(&mut qp)?;
    ensure!(outputs == [bytes], "a message that is no request changed the regions");
    peer.disconnect(&qp)
}

fn too_large(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect(&Terms::default())?;
    for count in [3u8, 8, 32] {
        let message = raw_message(1, count, &regions(count.into(), u32::MAX));
        expect_error(peer, &mut qp, "more than all memory", &message, 2)?;
    }
    let internal = [region(BOTH, 0, 1), AarRegion::internal(0, u32::MAX), AarRegion::internal(0, u32::MAX)];
    expect_error(peer, &mut qp, "more than all memory in internal regions", &raw_message(1, 3, &internal), 2)?;
    peer.disconnect(&qp)
}

fn too_many(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect(&Terms::default())?;
    for count in [MAX_REGIONS + 1, MAX_REGIONS + 2, (RECEIVE - 4) / ENTRY] {
        let message = raw_message(1, count as u8, &regions(count, 16));
        expect_error(peer, &mut qp, &format!("a request for {count} regions"), &message, 3)?;
    }
    peer.disconnect(&qp)
}

fn no_key(peer: &mut Peer) -> Result<(), Failure> {
    let mut open = Vec::new();
    for _ in 0..48 {
        let mut qp = peer.connect(&Terms::default())?;
        open.push(qp.clone());
        peer.send_message(&mut qp, &raw_message(1, MAX_REGIONS as u8, &regions(MAX_REGIONS, 16)))?;
        let answer = peer.receive_message(&mut qp)?;
        if let Message::Err(code) = Message::parse(&answer)? {
            ensure!(code == 4, "the error is {code}, though only keys can have run out");
            break;
        }
    }
    for qp in &open {
        peer.disconnect_only(qp)?;
    }
    // All keys are back.
    let qp = peer.connect_with(&Terms::default(), &[16; MAX_REGIONS])?;
    peer.disconnect(&qp)
}

fn after_error(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[64])?;
    expect_error(peer, &mut qp, "too much", &raw_message(1, 3, &regions(3, u32::MAX)), 2)?;
    // It took what was there before.
    peer.immediate(&mut qp, EMPTY)?;
    peer.set_up_regions(&mut qp, &[128])?;
    let outputs = peer.outputs_of_nothing(&mut qp)?;
    ensure!(outputs.len() == 1 && outputs[0].len() == 128, "the outputs are not those of the new regions");
    peer.disconnect(&qp)
}

fn too_long(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect(&Terms { mtu: 5, ..Terms::default() })?;
    let whole = vec![9; RECEIVE + 1];
    expect_error(peer, &mut qp, "a message as long as a receive", &whole[..RECEIVE], 1)?;
    peer.send(&qp, Opcode::SendOnly, qp.next, Ext::None, &whole)?;
    peer.expect_nak(&qp, qp.next, NakCode::InvalidRequest)?;
    peer.disconnect(&qp)?;
    // In several packets it is the one that does not fit that is refused.
    let qp = peer.connect(&Terms::default())?;
    for (index, part) in whole.chunks(qp.mtu).enumerate() {
        let opcode = match index {
            0 => Opcode::SendFirst,
            4 => Opcode::SendLast,
            _ => Opcode::SendMiddle,
        };
        peer.send_quietly(&qp, opcode, qp.next.add(index as u32), Ext::None, part)?;
    }
    peer.expect_nak(&qp, qp.next.add(4), NakCode::InvalidRequest)?;
    peer.disconnect(&qp)
}

fn with_immediate(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect(&Terms::default())?;
    let imm = nacelle_wire::bth::ImmDt::new(EMPTY);
    let message = raw_message(1, 1, &regions(1, 64));
    peer.send(&qp, Opcode::SendOnlyImm, qp.next, Ext::Imm(imm), &message)?;
    peer.expect_ack(&qp, qp.next, Syndrome::ACK)?;
    qp.next = qp.next.add(1);
    peer.take_regions(&mut qp, &[64])?;
    // In two packets.
    let message = raw_message(1, 20, &regions(20, 64));
    let (first, last) = message.split_at(qp.mtu);
    peer.send_quietly(&qp, Opcode::SendFirst, qp.next, Ext::None, first)?;
    peer.send(&qp, Opcode::SendLastImm, qp.next.add(1), Ext::Imm(imm), last)?;
    peer.expect_ack(&qp, qp.next.add(1), Syndrome::ACK)?;
    qp.next = qp.next.add(2);
    peer.take_regions(&mut qp, &[64; 20])?;
    // The immediate started nothing.
    peer.expect_silence(&mut qp)?;
    ensure!(qp.regions.iter().all(|m: &Memory| m.addr != RemoteAddr(0) || m.rkey != Rkey(0)), "a region without a key");
    peer.disconnect(&qp)
}
