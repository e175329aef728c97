// SPDX-License-Identifier: Apache-2.0
//! Cancel: the call of a context ends, and nothing else (docs/reference/calls.md).

use super::{Rule, nacelle, pattern};
use crate::{
    Failure,
    failure::ensure,
    peer::{EMPTY, LongCall, Many, Output, Peer, own_address},
};
use nacelle_wire::{bth::Syndrome, mrsp::RegionFlags};
use std::time::{Duration, Instant};

pub(super) const RULES: &[Rule] = &[
    nacelle("cancel.ends_a_running_call", CANCEL, running),
    nacelle("cancel.ends_a_call_that_waits", CANCEL, waiting),
    nacelle("cancel.right_behind_the_start_ends_it", CANCEL, right_behind),
    nacelle("cancel.ends_a_start_behind_an_answer_without_acknowledgement", CANCEL, behind_an_answer),
    nacelle("cancel.leaves_other_contexts_alone", CANCEL, alone),
    nacelle("cancel.without_a_call_has_no_effect", CANCEL, without_call),
    nacelle("cancel.every_start_is_answered_exactly_once", CANCEL, exactly_once),
    nacelle("cancel.context_calls_again_at_once", CANCEL, again),
];

const CANCEL: &str = "calls: cancel";

const INCREMENT: u32 = 0x81;
const CANCELLED: u32 = 5;
const BOTH: RegionFlags = RegionFlags::from_bits(RegionFlags::INPUT.bits() | RegionFlags::OUTPUT.bits());
/// How often a call is tried that may end before its cancel arrives.
const ATTEMPTS: usize = 4;

/// The answer to a cancelled call is one WRITE of nothing.
fn is_bare(outputs: &[Output]) -> Result<(), Failure> {
    ensure!(
        outputs.iter().all(|output| output.bytes.is_empty()),
        "outputs of a cancelled call are written: {} bytes",
        outputs.iter().map(|output| output.bytes.len()).sum::<usize>()
    );
    Ok(())
}

fn running(peer: &mut Peer) -> Result<(), Failure> {
    let long = peer.long_call()?.times(8);
    let mut many = peer.connect_contexts(1, false)?;
    long.prepare_with(peer, &mut many, 0, BOTH)?;
    many.start(peer, 0, LongCall::START)?;
    std::thread::sleep(long.time / 8);
    let begin = Instant::now();
    many.cancel(peer, 0)?;
    let (context, result, outputs) = many.end_of_call(peer)?;
    let took = begin.elapsed();
    ensure!((context, result) == (0, CANCELLED), "a cancelled call ends with {result} of context {context}");
    is_bare(&outputs)?;
    ensure!(outputs[0].reth.va() == own_address(0), "the answer goes to {:#x}", outputs[0].reth.va().0);
    ensure!(took < long.time / 2, "a call of {:?} ended {took:?} after its cancel", long.time);
    many.expect_silence(peer)?;
    peer.disconnect(&many.qp)
}

/// Long calls on every context: more than there are kernels on most devices.
fn all_long(peer: &mut Peer, factor: u32) -> Result<Many, Failure> {
    let long = peer.long_call()?.times(factor);
    let mut many = peer.connect_most_contexts(2, false)?;
    for context in 0..many.count() {
        long.prepare(peer, &mut many, context)?;
    }
    for context in 0..many.count() {
        many.start(peer, context, LongCall::START)?;
    }
    Ok(many)
}

fn waiting(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = all_long(peer, 4)?;
    // The last first: it waits longest for a kernel.
    for context in (0..many.count()).rev() {
        many.cancel(peer, context)?;
        let (of, result, outputs) = many.end_of_call(peer)?;
        ensure!(
            (of, result) == (context, CANCELLED),
            "the cancel of context {context} is answered by {result} of {of}"
        );
        is_bare(&outputs)?;
    }
    many.expect_silence(peer)?;
    peer.disconnect(&many.qp)
}

fn right_behind(peer: &mut Peer) -> Result<(), Failure> {
    let long = peer.long_call()?;
    let mut many = peer.connect_contexts(1, false)?;
    long.prepare(peer, &mut many, 0)?;
    for _ in 0..3 {
        peer.post_immediate(&mut many.qp, LongCall::START)?;
        peer.post_named(&mut many.qp, Some(2), &[])?;
        let (_, result, _) = many.end_of_call(peer)?;
        ensure!(result == CANCELLED, "a call that is cancelled at once ends with {result}");
        // The acknowledgements of both, merged or not.
        peer.station.forget()?;
    }
    many.expect_silence(peer)?;
    peer.disconnect(&many.qp)
}

/// A caller may start again when it has the answer, before the device has the acknowledgement of it.
fn behind_an_answer(peer: &mut Peer) -> Result<(), Failure> {
    let long = peer.long_call()?;
    let mut many = peer.connect_contexts(1, false)?;
    long.prepare(peer, &mut many, 0)?;
    for _ in 0..3 {
        many.start(peer, 0, EMPTY)?;
        let answer = peer.request(&many.qp)?;
        many.start(peer, 0, LongCall::START)?;
        many.cancel(peer, 0)?;
        many.qp.expected = answer.headers.bth.psn().add(1);
        peer.acknowledge(&many.qp, answer.headers.bth.psn(), Syndrome::ACK)?;
        let (_, result, _) = many.end_of_call(peer)?;
        ensure!(
            result == CANCELLED,
            "a call that is cancelled before the answer to the last is acknowledged ends with {result}"
        );
    }
    many.expect_silence(peer)?;
    peer.disconnect(&many.qp)
}

fn alone(peer: &mut Peer) -> Result<(), Failure> {
    let long = peer.long_call()?.times(2);
    let mut many = peer.connect_contexts(2, false)?;
    for context in [0, 1] {
        long.prepare(peer, &mut many, context)?;
        many.start(peer, context, LongCall::START)?;
    }
    many.cancel(peer, 1)?;
    let (context, result, _) = many.end_of_call(peer)?;
    ensure!(
        (context, result) == (1, CANCELLED),
        "the cancel of context 1 is answered by {result} of context {context}"
    );
    let (context, result, _) = many.end_of_call(peer)?;
    ensure!((context, result) == (0, 0), "the call of context 0 ends with {result} of context {context}");
    many.expect_silence(peer)?;
    peer.disconnect(&many.qp)
}

fn without_call(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_contexts(2, false)?;
    // Before a set-up, before a call, behind one.
    many.cancel(peer, 1)?;
    many.cancel(peer, 0)?;
    many.set_up(peer, 1, &[64])?;
    many.write(peer, 1, 0, &[0; 64])?;
    for round in 1..=3 {
        many.cancel(peer, 1)?;
        let outputs = many.call(peer, 1, INCREMENT, 0)?;
        ensure!(outputs == [[round; 64]], "a cancel before call {round} had an effect");
        many.cancel(peer, 1)?;
        many.expect_silence(peer)?;
    }
    many.expect(peer, 1, 0, &[3; 64])?;
    peer.disconnect(&many.qp)
}

fn exactly_once(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_most_contexts(2, false)?;
    let count = many.count();
    let long = peer.long_call()?;
    // Short calls, which end around the time of their cancel, and long ones.
    for context in 0..count {
        if context % 3 == 2 {
            long.prepare(peer, &mut many, context)?;
        } else {
            many.set_up(peer, context, &[2048])?;
        }
    }
    for round in 0..8u8 {
        for context in 0..count {
            let start = if context % 3 == 2 { LongCall::START } else { [EMPTY, INCREMENT][usize::from(round % 2)] };
            many.start(peer, context, start)?;
            if (context + round) % 2 == 0 || context % 3 == 2 {
                many.cancel(peer, context)?;
            }
        }
        let mut waiting: Vec<u8> = (0..count).collect();
        while !waiting.is_empty() {
            let (context, result, _) = many.end_of_call(peer)?;
            let place = waiting.iter().position(|&waits| waits == context);
            let place = place.ok_or_else(|| Failure::Content(format!("context {context} is answered twice")))?;
            waiting.remove(place);
            let cancelled = (context + round) % 2 == 0 || context % 3 == 2;
            ensure!(
                result == 0 || (result == CANCELLED && cancelled),
                "a call of context {context}, {}, ends with {result}",
                if cancelled { "cancelled" } else { "not cancelled" }
            );
        }
        many.expect_silence(peer)?;
    }
    peer.disconnect(&many.qp)
}

fn again(peer: &mut Peer) -> Result<(), Failure> {
    let long = peer.long_call()?.times(2);
    let mut many = peer.connect_contexts(1, false)?;
    for attempt in 0..ATTEMPTS {
        long.prepare(peer, &mut many, 0)?;
        many.start(peer, 0, LongCall::START)?;
        std::thread::sleep(Duration::from_millis(10));
        many.cancel(peer, 0)?;
        let (_, result, _) = many.end_of_call(peer)?;
        ensure!(result == CANCELLED, "cancelled call {attempt} ends with {result}");
        // On the same regions, and on others: what the cancelled call left does not reach them.
        many.call(peer, 0, EMPTY, 0)?;
        many.set_up(peer, 0, &[4096])?;
        many.write(peer, 0, 0, &pattern(9, 4096))?;
        let outputs = many.call(peer, 0, EMPTY, 0)?;
        ensure!(outputs == [pattern(9, 4096)], "a cancelled call has changed the regions of the next");
    }
    peer.disconnect(&many.qp)
}
