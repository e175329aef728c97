// SPDX-License-Identifier: Apache-2.0
//! Contexts of a connection: agreement, set-ups, and calls side by side (docs/reference/calls.md).

use super::{Rule, nacelle, pattern};
use crate::{
    Failure,
    failure::ensure,
    peer::{EMPTY, LongCall, Many, Peer, Reply, Terms, own_address, raw_message, region_request},
};
use nacelle_wire::{
    bth::{NakCode, Opcode, Syndrome},
    extensions::{Agreement, Extensions},
    mrsp::{AarRegion, Message, RegionFlags, reason},
    transport::Ext,
};

pub(super) const RULES: &[Rule] = &[
    nacelle("contexts.are_agreed_when_they_are_offered", AGREEMENT, agreed),
    nacelle("contexts.are_never_more_than_asked_for", AGREEMENT, no_more),
    nacelle("contexts.are_not_agreed_when_they_are_not_offered", AGREEMENT, not_offered),
    nacelle("contexts.answer_to_a_message_names_its_context", CONTEXTS, answers),
    nacelle("contexts.send_without_immediate_is_a_message_of_context_0", CONTEXTS, without_immediate),
    nacelle("contexts.set_up_leaves_the_regions_of_the_others", CONTEXTS, set_up_alone),
    nacelle("contexts.set_up_invalidates_the_keys_of_the_one_before", CONTEXTS, own_keys),
    nacelle("contexts.malformed_message_changes_nothing", CONTEXTS, malformed),
    nacelle("contexts.have_their_share_of_the_regions", CONTEXTS, share),
    nacelle("contexts.end_of_a_call_names_its_context", CONTEXTS, ends),
    nacelle("contexts.calls_run_side_by_side", CONTEXTS, side_by_side),
    nacelle("contexts.failed_caller_gets_no_answer", CONTEXTS, failed),
    nacelle("contexts.unknown_immediates_are_ignored", CONTEXTS, unknown_immediates),
    nacelle("contexts.start_before_set_up_is_ignored", CONTEXTS, before_set_up),
    nacelle("contexts.second_start_during_a_call_is_ignored", CONTEXTS, second_start),
    nacelle("contexts.message_on_one_that_does_not_exist_ends_the_connection", CONTEXTS, |peer| unknown(peer, 0)),
    nacelle("contexts.start_on_one_that_does_not_exist_ends_the_connection", CONTEXTS, |peer| unknown(peer, 1)),
    nacelle("contexts.cancel_on_one_that_does_not_exist_ends_the_connection", CONTEXTS, |peer| unknown(peer, 2)),
];

const AGREEMENT: &str = "calls: agreement";
const CONTEXTS: &str = "calls: contexts";

/// Starts the function that adds 1 to every byte.
const INCREMENT: u32 = 0x81;
const MAX_REGIONS: u8 = 32;
/// Those that a device may agree to here: the bits of docs/reference/extensions.md but late acknowledgement, which needs a UDP socket.
const ALL: Extensions = Extensions(0b1_0111);

/// What a device agrees to; nothing without a record.
fn agreement(peer: &mut Peer, offer: Agreement) -> Result<Agreement, Failure> {
    let qp = peer.connect(&Terms { offer, ..Terms::default() })?;
    peer.disconnect(&qp)?;
    Ok(qp.agreed)
}

fn agreed(peer: &mut Peer) -> Result<(), Failure> {
    let found = agreement(peer, Agreement::new(ALL, 3))?;
    if !found.extensions.contains(Extensions::CONTEXTS) {
        return Err(Failure::NotTried("the device has no contexts"));
    }
    ensure!((1..=3).contains(&found.contexts), "3 contexts were asked for, and {} are given", found.contexts);
    let again = agreement(peer, Agreement::new(ALL, 3))?;
    ensure!(again == found, "the same request is agreed to as {found:?} and as {again:?}");
    Ok(())
}

fn no_more(peer: &mut Peer) -> Result<(), Failure> {
    let bits = |bits: u8, contexts| Agreement { extensions: Extensions(bits), contexts };
    for offer in [bits(2, 1), bits(2, 2), bits(6, 1), bits(7, 5), bits(3, 255), bits(0xff, 7), bits(6, 255)] {
        let found = agreement(peer, offer)?;
        let taken = found.extensions.without(offer.extensions);
        ensure!(taken == Extensions::NONE, "{offer:?} was offered, and {found:?} is agreed to");
        ensure!(found.extensions.without(ALL) == Extensions::NONE, "unknown bits are agreed to: {found:?}");
        ensure!(found.contexts <= offer.contexts, "{} contexts were asked for: {found:?}", offer.contexts);
        ensure!(found == found.common(found), "what is agreed to does not go together: {found:?}");
    }
    Ok(())
}

fn not_offered(peer: &mut Peer) -> Result<(), Failure> {
    let bits = |bits: u8, contexts| Agreement { extensions: Extensions(bits), contexts };
    // No record; no contexts among the bits; contexts without a number; long set-up without contexts.
    for offer in [bits(0, 0), bits(1, 0), bits(1, 4), bits(2, 0), bits(6, 0), bits(4, 4)] {
        let found = agreement(peer, offer)?;
        let wanted = Agreement::new(found.extensions & Extensions::SELECTIVE_REPEAT, 0);
        ensure!(found == wanted, "{offer:?} was offered, and {found:?} is agreed to");
    }
    // The first byte of an immediate is the function's then.
    let terms = Terms { offer: Agreement::new(Extensions::SELECTIVE_REPEAT, 0), ..Terms::default() };
    let mut qp = peer.connect_with(&terms, &[16])?;
    let outputs = peer.call(&mut qp, 0x0700_0000 | EMPTY)?;
    ensure!(outputs[0].imm == Some(0), "the immediate is {:x?}", outputs[0].imm);
    peer.disconnect(&qp)
}

fn answers(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_most_contexts(2, false)?;
    // Each after the other, then all at once.
    for context in (0..many.count()).rev() {
        many.set_up(peer, context, &[64, 128])?;
        let error = many.exchange(peer, context, &raw_message(9, 0, &[]))?;
        ensure!(error[..2] == [0, reason::MALFORMED], "a malformed message is answered by {error:02x?}");
    }
    for context in 0..many.count() {
        let asked = Many::region(context, 0, RegionFlags::INPUT, 16 + u32::from(context));
        many.send(peer, context, &raw_message(1, 1, &[asked]))?;
    }
    let mut waiting: Vec<u8> = (0..many.count()).collect();
    while !waiting.is_empty() {
        let Reply::Message { imm: Some(imm), bytes } = peer.take_reply(&mut many.qp)? else {
            return Err(Failure::Missing("message with immediate"));
        };
        let context = (imm >> 24) as u8;
        let place = waiting.iter().position(|&waits| waits == context && imm << 8 == 0);
        let place = place.ok_or_else(|| Failure::Content(format!("an answer has the immediate {imm:#010x}")))?;
        waiting.remove(place);
        match Message::parse(&bytes)? {
            Message::A([given]) if given.size() == 16 + u32::from(context) => {}
            other => return Err(Failure::Content(format!("the set-up of context {context} is answered by {other:?}"))),
        }
    }
    many.expect_silence(peer)?;
    peer.disconnect(&many.qp)
}

fn without_immediate(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_contexts(2, false)?;
    many.set_up(peer, 1, &[64])?;
    many.write(peer, 1, 0, &pattern(1, 64))?;
    // The answer has no immediate either, as set_up_regions wants it.
    peer.set_up_regions(&mut many.qp, &[32])?;
    many.regions[0] = many.qp.regions.clone();
    many.write(peer, 0, 0, &pattern(2, 32))?;
    let outputs = many.call(peer, 0, EMPTY, 0)?;
    ensure!(outputs == [pattern(2, 32)], "context 0 has other regions than were given for a SEND without immediate");
    let outputs = many.call(peer, 1, EMPTY, 0)?;
    ensure!(outputs == [pattern(1, 64)], "a SEND without immediate has changed context 1");
    peer.disconnect(&many.qp)
}

fn set_up_alone(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_most_contexts(2, false)?;
    let count = many.count();
    for context in 0..count {
        many.set_up(peer, context, &[300, 50])?;
        many.write(peer, context, 0, &pattern(context, 300))?;
    }
    for changed in 0..count {
        many.set_up(peer, changed, &[300, 50])?;
        many.expect(peer, changed, 0, &[0; 300])?;
        many.write(peer, changed, 0, &pattern(changed, 300))?;
        for context in 0..count {
            many.expect(peer, context, 0, &pattern(context, 300))?;
            let outputs = many.call(peer, context, EMPTY, 0)?;
            ensure!(outputs[0] == pattern(context, 300), "context {context} has other bytes");
        }
    }
    peer.disconnect(&many.qp)
}

fn own_keys(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_contexts(2, false)?;
    for context in [0, 1] {
        many.set_up(peer, context, &[64])?;
    }
    let old = many.regions[1][0];
    many.set_up(peer, 1, &[64])?;
    many.write(peer, 0, 0, &[1; 64])?;
    many.write(peer, 1, 0, &[2; 64])?;
    peer.send(&many.qp, Opcode::WriteOnly, many.qp.next, Ext::Reth(old.reth(0, 4)), &[3; 4])?;
    peer.expect_nak(&many.qp, many.qp.next, NakCode::RemoteAccessError)?;
    peer.disconnect(&many.qp)
}

fn malformed(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_contexts(2, false)?;
    for context in [0, 1] {
        many.set_up(peer, context, &[64])?;
        many.write(peer, context, 0, &pattern(context, 64))?;
    }
    let answer = many.exchange(peer, 1, &raw_message(1, 3, &[]))?;
    ensure!(answer[..2] == [0, reason::MALFORMED], "a malformed message is answered by {answer:02x?}");
    for context in [0, 1] {
        many.expect(peer, context, 0, &pattern(context, 64))?;
    }
    peer.disconnect(&many.qp)
}

fn share(peer: &mut Peer) -> Result<(), Failure> {
    for contexts in [2, 3, 4, 8] {
        let mut many = match peer.connect_contexts(contexts, false) {
            // It may give 4 where 3 are asked for, or 4 at most.
            Err(Failure::NotTried(_)) if contexts > 2 => continue,
            many => many?,
        };
        let share = MAX_REGIONS / contexts;
        for context in 0..contexts {
            many.set_up(peer, context, &vec![64; share.into()])?;
        }
        // One more is refused, and only this context has lost its regions.
        let more: Vec<AarRegion> = (0..=share.into()).map(|i| Many::region(0, i, RegionFlags::INPUT, 64)).collect();
        let answer = many.exchange(peer, 0, &raw_message(1, share + 1, &more))?;
        ensure!(
            answer[..2] == [0, reason::TOO_MANY_REGIONS],
            "{} regions of a context of {contexts} are answered by {answer:02x?}",
            share + 1
        );
        for context in 1..contexts {
            many.write(peer, context, usize::from(share) - 1, &pattern(context, 64))?;
            let outputs = many.call(peer, context, EMPTY, 0)?;
            ensure!(outputs.last() == Some(&pattern(context, 64)), "context {context} has other bytes");
        }
        peer.disconnect(&many.qp)?;
    }
    Ok(())
}

fn ends(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_most_contexts(2, false)?;
    let count = many.count();
    for context in 0..count {
        many.set_up(peer, context, &[100, 3000])?;
    }
    for round in 0..4u8 {
        for context in 0..count {
            many.write(peer, context, 1, &pattern(context ^ round << 4, 3000))?;
        }
        for context in 0..count {
            // The second byte is the function's.
            many.start(peer, context, 0x00ab_cd00 | EMPTY)?;
        }
        let mut waiting: Vec<u8> = (0..count).collect();
        let mut found = Vec::new();
        while !waiting.is_empty() {
            let (context, result, outputs) = many.end_of_call(peer)?;
            ensure!(result == 0, "the call of context {context} ends with {result}");
            let place = waiting.iter().position(|&waits| waits == context);
            let place = place.ok_or_else(|| Failure::Content(format!("context {context} has no call to end")))?;
            waiting.remove(place);
            found.extend(outputs);
            let here = found.iter().filter(|o| Many::place_of(o).is_some_and(|(of, _)| of == context)).count();
            ensure!(here == 2, "{here} outputs of context {context} came before the end of its call");
        }
        for output in &found {
            let (context, index) = Many::place_of(output).ok_or(Failure::Missing("output of a region"))?;
            let wanted = pattern(context ^ round << 4, 3000);
            ensure!(index == 0 || output.bytes == wanted, "context {context} returns other bytes");
        }
    }
    many.expect_silence(peer)?;
    peer.disconnect(&many.qp)
}

fn side_by_side(peer: &mut Peer) -> Result<(), Failure> {
    let long = peer.long_call()?.times(4);
    let mut many = peer.connect_contexts(2, false)?;
    long.prepare(peer, &mut many, 0)?;
    many.set_up(peer, 1, &[64])?;
    many.write(peer, 1, 0, &[0; 64])?;
    many.start(peer, 0, LongCall::START)?;
    // The second context calls, and is set up again, while the first has its call.
    for round in 1..=3 {
        let outputs = many.call(peer, 1, INCREMENT, 0)?;
        ensure!(outputs == [[round; 64]], "call {round} of context 1 returns other bytes");
    }
    many.set_up(peer, 1, &[32])?;
    peer.station.patience *= 4;
    let end = many.end_of_call(peer);
    peer.station.patience /= 4;
    let (context, result, _) = end?;
    ensure!((context, result) == (0, 0), "the long call of context 0 ends with {result} of context {context}");
    peer.disconnect(&many.qp)
}

fn failed(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_contexts(2, false)?;
    for context in [0, 1] {
        many.set_up(peer, context, &[16])?;
        many.start(peer, context, 0)?;
    }
    many.expect_silence(peer)?;
    for context in [1, 0] {
        many.call(peer, context, EMPTY, 0)?;
    }
    peer.disconnect(&many.qp)
}

fn unknown_immediates(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_contexts(2, false)?;
    many.set_up(peer, 1, &[16])?;
    for low in [1, 3, 0x7f] {
        many.start(peer, 1, low)?;
    }
    for low in [0, 3, 0x81, 0xff] {
        peer.post_named(&mut many.qp, Some(1 << 24 | low), &region_request(&[64]))?;
        peer.expect_ack(&many.qp, many.qp.next.sub(1), Syndrome::ACK)?;
    }
    many.write(peer, 1, 0, &pattern(3, 16))?;
    let outputs = many.call(peer, 1, EMPTY, 0)?;
    ensure!(outputs == [pattern(3, 16)], "an immediate without a meaning had an effect");
    many.expect_silence(peer)?;
    peer.disconnect(&many.qp)
}

fn before_set_up(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_contexts(2, false)?;
    many.set_up(peer, 0, &[16])?;
    many.start(peer, 1, EMPTY)?;
    many.call(peer, 0, EMPTY, 0)?;
    many.expect_silence(peer)?;
    peer.disconnect(&many.qp)
}

fn second_start(peer: &mut Peer) -> Result<(), Failure> {
    let long = peer.long_call()?.times(2);
    let mut many = peer.connect_contexts(2, false)?;
    long.prepare(peer, &mut many, 0)?;
    many.set_up(peer, 1, &[64])?;
    many.write(peer, 1, 0, &[0; 64])?;
    many.start(peer, 0, LongCall::START)?;
    many.start(peer, 0, INCREMENT)?;
    let outputs = many.call(peer, 1, INCREMENT, 0)?;
    ensure!(outputs == [[1; 64]], "a second start on one context has changed another");
    let (context, result, outputs) = many.end_of_call(peer)?;
    ensure!((context, result) == (0, 0), "the call of context 0 ends with {result} of context {context}");
    ensure!(outputs[0].reth.va() == own_address(0), "the answer goes to {:#x}", outputs[0].reth.va().0);
    many.expect_silence(peer)?;
    // Nor does it start anything afterwards.
    many.call(peer, 0, EMPTY, 0)?;
    many.expect(peer, 0, 3, &[0; 64])?;
    peer.disconnect(&many.qp)
}

/// A message, start or cancel on the first context that the connection does not have.
fn unknown(peer: &mut Peer, request: u8) -> Result<(), Failure> {
    for context in [2u8, 255] {
        let mut many = peer.connect_contexts(2, false)?;
        for context in [0, 1] {
            many.set_up(peer, context, &[16])?;
        }
        let named = |low| Some(u32::from(context) << 24 | low);
        match request {
            0 => peer.post_named(&mut many.qp, named(1), &region_request(&[64]))?,
            1 => peer.post_immediate(&mut many.qp, u32::from(context) << 24 | EMPTY)?,
            _ => peer.post_named(&mut many.qp, named(2), &[])?,
        }
        ensure!(peer.is_ended(&many.qp)?, "a connection goes on after a request on context {context} of 2");
        peer.disconnect(&many.qp)?;
    }
    let mut qp = peer.connect_with(&Terms::default(), &[16])?;
    peer.outputs_of_nothing(&mut qp)?;
    peer.disconnect(&qp)
}
