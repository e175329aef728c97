// SPDX-License-Identifier: Apache-2.0
//! Long set-ups: sizes, deadline, chain (docs/reference/calls.md).

use super::{Rule, nacelle, pattern};
use crate::{
    Failure,
    failure::ensure,
    peer::{EMPTY, LongCall, Many, Output, Peer, long_message, long_region, step},
};
use nacelle_wire::{
    calls::Step,
    kernel::matmul::{Args, Dtype},
    mrsp::{RegionFlags, reason},
};
use std::time::{Duration, Instant};

pub(super) const RULES: &[Rule] = &[
    nacelle("long_set_up.gives_regions_like_the_short_one", LONG, like_short),
    nacelle("long_set_up.malformed_message_gets_error_1", LONG, malformed),
    nacelle("long_set_up.without_agreement_gets_error_1", LONG, not_agreed),
    nacelle("long_set_up.sizes_are_not_cut_to_32_bits", LONG, sizes),
    nacelle("long_set_up.more_regions_than_a_context_has_get_error_3", LONG, too_many),
    nacelle("long_set_up.reserved_bytes_are_ignored", LONG, reserved),
    nacelle("deadline.ends_a_call_that_takes_longer", LONG, deadline),
    nacelle("deadline.leaves_a_call_that_ends_in_time", LONG, in_time),
    nacelle("chain.runs_its_steps_in_order", CHAIN, order),
    nacelle("chain.step_reaches_its_own_regions_only", CHAIN, own_regions),
    nacelle("chain.ends_with_the_first_result_other_than_0", CHAIN, error),
    nacelle("chain.may_have_a_function_on_its_regions_alone", CHAIN, one_function),
    nacelle("chain.without_steps_has_result_3", CHAIN, no_steps),
    nacelle("chain.is_cancelled_as_a_whole", CHAIN, cancelled),
];

const LONG: &str = "calls: long set-up";
const CHAIN: &str = "calls: chains";

/// Starts the chain.
const CHAIN_START: u32 = 0x80;
const INCREMENT: u8 = 1;
const MATMUL: u8 = 16;
const NO_FUNCTION: u8 = 0x77;
/// Results.
const UNKNOWN: u32 = 3;
const DEADLINE: u32 = 4;
const CANCELLED: u32 = 5;
const BAD_ARGUMENTS: u32 = 0x10;
const IN: RegionFlags = RegionFlags::INPUT;
const OUT: RegionFlags = RegionFlags::OUTPUT;
const BOTH: RegionFlags = RegionFlags::from_bits(IN.bits() | OUT.bits());

fn expect_error(peer: &mut Peer, many: &mut Many, what: &str, message: &[u8], code: u8) -> Result<(), Failure> {
    let answer = many.exchange(peer, 0, message)?;
    ensure!(
        answer.len() == 4 && answer[..2] == [0, code],
        "{what} is answered by {:02x?} instead of the error {code}",
        &answer[..answer.len().min(8)]
    );
    Ok(())
}

fn like_short(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_contexts(2, true)?;
    for context in [1, 0] {
        let asked = [(IN, 300), (BOTH, 5000), (OUT, 0), (RegionFlags::INTERNAL, 100)];
        many.set_up_long(peer, context, 0, &[], &asked)?;
        many.write(peer, context, 0, &pattern(context, 300))?;
        many.write(peer, context, 1, &pattern(context, 5000))?;
    }
    for context in [0, 1] {
        let outputs = many.call(peer, context, EMPTY, 0)?;
        ensure!(outputs == [pattern(context, 5000)], "context {context} returns other bytes");
        many.expect(peer, context, 0, &pattern(context, 300))?;
    }
    // The short one takes its place, and the other way round.
    many.set_up(peer, 0, &[64])?;
    many.write(peer, 0, 0, &pattern(4, 64))?;
    let outputs = many.call(peer, 0, EMPTY, 0)?;
    ensure!(outputs == [pattern(4, 64)], "a short set-up behind a long one gives other regions");
    peer.disconnect(&many.qp)
}

fn malformed(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_contexts(1, true)?;
    many.set_up_long(peer, 0, 0, &[], &[(BOTH, 64)])?;
    many.write(peer, 0, 0, &pattern(1, 64))?;
    let region = long_region(0, 0, IN, 64);
    let message = |steps: &[Step], count: usize| long_message(0, steps, &vec![region; count]);
    let with = |message: Result<Vec<u8>, Failure>, at: usize, byte: u8| -> Result<Vec<u8>, Failure> {
        let mut message = message?;
        message[at] = byte;
        Ok(message)
    };
    let one = step(INCREMENT, 0, 1);
    let internal = long_region(0, 1, RegionFlags::INTERNAL, 64);
    for (what, message) in [
        ("a set-up without a region", message(&[], 0)?),
        ("one region too few", with(message(&[], 2), 1, 3)?),
        ("one region too many", with(message(&[], 2), 1, 1)?),
        ("a step too few", with(message(&[one], 1), 2, 2)?),
        ("steps that are counted as regions", with(message(&[one; 4], 1), 2, 0)?),
        ("five steps", with(message(&[one; 4], 2), 2, 5)?),
        ("a message that is cut in its head", message(&[], 1)?[..7].to_vec()),
        ("a step without a function", with(message(&[one], 1), 8, 0)?),
        ("a step with function 128", with(message(&[one], 1), 8, 0x80)?),
        ("a step without regions", with(message(&[one], 1), 10, 0)?),
        ("a step with one region too many", with(message(&[one], 2), 10, 3)?),
        ("a step behind the regions", with(message(&[one], 2), 9, 2)?),
        ("a step whose last region is number 256", with(with(message(&[one], 2), 9, 255), 10, 2)?),
        ("a wrong second step", with(message(&[one, one], 2), 18, 3)?),
    ] {
        expect_error(peer, &mut many, what, &message, reason::MALFORMED)?;
        many.expect(peer, 0, 0, &pattern(1, 64))?;
    }
    for (what, regions) in
        [("internal regions alone", &[internal][..]), ("a parameter behind one", &[internal, region])]
    {
        expect_error(peer, &mut many, what, &long_message(0, &[], regions)?, reason::MALFORMED)?;
    }
    peer.disconnect(&many.qp)
}

fn not_agreed(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_contexts(1, false)?;
    let message = long_message(0, &[], &[long_region(0, 0, IN, 64)])?;
    expect_error(peer, &mut many, "a long set-up that is not agreed to", &message, reason::MALFORMED)?;
    peer.disconnect(&many.qp)
}

fn sizes(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_contexts(1, true)?;
    // No device of the suite has a pebibyte; what is left of it in 32 bits, it has.
    let pebi = 1 << 50;
    for sizes in [&[pebi + 64][..], &[64, pebi], &[u64::MAX], &[1 << 63, 1 << 63], &[u64::MAX, 65], &[1 << 62; 4]] {
        let regions: Vec<_> = (0..).zip(sizes).map(|(index, &size)| long_region(0, index, BOTH, size)).collect();
        let message = long_message(0, &[], &regions)?;
        expect_error(peer, &mut many, &format!("regions of {sizes:x?}"), &message, reason::NO_MEMORY)?;
    }
    many.set_up_long(peer, 0, 0, &[], &[(BOTH, 64)])?;
    many.call(peer, 0, EMPTY, 0)?;
    peer.disconnect(&many.qp)
}

fn too_many(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_contexts(2, true)?;
    let regions: Vec<_> = (0..17).map(|index| long_region(0, index, IN, 64)).collect();
    expect_error(peer, &mut many, "17 regions", &long_message(0, &[], &regions)?, reason::TOO_MANY_REGIONS)?;
    many.set_up_long(peer, 0, 0, &[], &[(IN, 64); 16])?;
    peer.disconnect(&many.qp)
}

fn reserved(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_contexts(1, true)?;
    let regions = [long_region(0, 0, BOTH, 64)];
    let mut message = long_message(0, &[step(INCREMENT, 0, 1)], &regions)?;
    for at in [3, 11, 12, 17, 23, 44, 47] {
        message[at] = 0xff;
    }
    // Flags without a meaning, as in a short one.
    message[16] |= 0xf0;
    let answer = many.exchange(peer, 0, &message)?;
    ensure!(answer.len() == 28 && answer[..2] == [0x12, 1], "the answer is {answer:02x?}");
    let outputs = many.call(peer, 0, CHAIN_START, 0)?;
    ensure!(outputs == [[1; 64]], "the chain returns other bytes");
    peer.disconnect(&many.qp)
}

/// Milliseconds that have passed on the device since `begin`.
fn device_time(peer: &mut Peer) -> Result<Duration, Failure> {
    peer.manage()?.time()
}

/// Runs the long call of context 0 on a device that may be simulated, on a machine that may be busy: its result, and what it returns.
fn slow_call(peer: &mut Peer, many: &mut Many) -> Result<(u32, Vec<Output>), Failure> {
    const PATIENCE: u32 = 16;
    many.start(peer, 0, LongCall::START)?;
    peer.station.patience *= PATIENCE;
    let end = many.end_of_call(peer);
    peer.station.patience /= PATIENCE;
    let (_, result, outputs) = end?;
    Ok((result, outputs))
}

fn deadline(peer: &mut Peer) -> Result<(), Failure> {
    const MS: u32 = 1;
    const TRIES: u32 = 5;
    let mut long = peer.long_call()?;
    let mut many = peer.connect_contexts(1, true)?;
    let mut late = 0;
    // On a device that is much slower than its own clock a call must be longer.
    loop {
        many.set_up_long(peer, 0, MS, &[], &long.regions(BOTH))?;
        long.write_arguments(peer, &mut many, 0)?;
        let (began, begin) = (device_time(peer)?, Instant::now());
        let (result, outputs) = slow_call(peer, &mut many)?;
        let took = device_time(peer)?.saturating_sub(began);
        if result == DEADLINE {
            ensure!(
                outputs.iter().all(|o| o.bytes.is_empty()),
                "outputs of a call that did not end in time are written"
            );
            // It ran until then, and is stopped soon after. A simulated device's clock may be a tenth too fast.
            ensure!(took * 10 >= Duration::from_millis(MS.into()) * 9, "a deadline of {MS} ms passed after {took:?}");
            break;
        }
        ensure!(result == 0, "a call with a deadline ends with {result}");
        // Its end may be seen late, since this machine is busy with something else. That does not happen each time.
        if took >= Duration::from_millis(MS.into()) * 8 {
            late += 1;
            ensure!(late < TRIES, "a call with a deadline of {MS} ms took {took:?}, and {TRIES} of them as long");
            continue;
        }
        late = 0;
        if begin.elapsed() > Duration::from_secs(10) {
            return Err(Failure::NotTried("the device has no function that runs past a deadline"));
        }
        long = long.times(2);
    }
    // It holds for each call, but one that only just ran past it may end in time the next time.
    let mut again = false;
    for _ in 0..TRIES {
        again |= slow_call(peer, &mut many)?.0 == DEADLINE;
        if again {
            break;
        }
    }
    ensure!(again, "a deadline of {MS} ms holds for the first call only");
    // It goes with its set-up.
    many.set_up_with(peer, 0, &long.regions(IN))?;
    long.write_arguments(peer, &mut many, 0)?;
    let (result, _) = slow_call(peer, &mut many)?;
    ensure!(result == 0, "a call without a deadline ends with {result}");
    many.expect_silence(peer)?;
    peer.disconnect(&many.qp)
}

fn in_time(peer: &mut Peer) -> Result<(), Failure> {
    let long = peer.long_call()?;
    let mut many = peer.connect_contexts(1, true)?;
    for milliseconds in [u32::MAX, 60_000] {
        many.set_up_long(peer, 0, milliseconds, &[], &long.regions(IN))?;
        long.write_arguments(peer, &mut many, 0)?;
        many.call(peer, 0, LongCall::START, 0)?;
    }
    peer.disconnect(&many.qp)
}

/// The sides of the product that a chain makes.
const SIDE: usize = 4;
const MATRIX: usize = 4 * SIDE * SIDE;

/// Regions of a product: its arguments, A, B, and the product, which is returned. A is 0, B counts up.
fn product(peer: &mut Peer, steps: &[Step]) -> Result<Many, Failure> {
    let mut many = peer.connect_contexts(1, true)?;
    let size = MATRIX as u32;
    many.set_up_long(peer, 0, 0, steps, &[(IN, 64), (IN, size), (IN, size), (BOTH, size)])?;
    let side = SIDE as u32;
    many.write(peer, 0, 0, &Args { dtype: Dtype::Int32, m: side, n: side, k: side }.to_bytes())?;
    many.write(peer, 0, 1, &[0; MATRIX])?;
    many.write(peer, 0, 2, &(1..=(SIDE * SIDE) as i32).flat_map(i32::to_le_bytes).collect::<Vec<_>>())?;
    many.write(peer, 0, 3, &[0; MATRIX])?;
    Ok(many)
}

/// The product of a matrix whose bytes are all `a`, and B; with `more` added to each byte.
fn bytes_of_product(a: u8, more: u8) -> Vec<u8> {
    let a = i32::from_le_bytes([a; 4]);
    let row = (0..SIDE as i32).map(|column| {
        (0..SIDE as i32).fold(0i32, |sum, row| sum.wrapping_add(a.wrapping_mul(1 + row * SIDE as i32 + column)))
    });
    let row: Vec<u8> = row.flat_map(i32::to_le_bytes).map(|byte| byte.wrapping_add(more)).collect();
    row.repeat(SIDE)
}

fn order(peer: &mut Peer) -> Result<(), Failure> {
    let increments = |first| step(INCREMENT, first, 1);
    // Two steps before the product change A, one behind it changes the product.
    let mut many = product(peer, &[increments(1), increments(1), step(MATMUL, 0, 4), increments(3)])?;
    for round in 1..=3u8 {
        let outputs = many.call(peer, 0, CHAIN_START, 0)?;
        ensure!(outputs.len() == 1, "a chain returns {} outputs instead of 1", outputs.len());
        ensure!(outputs[0] == bytes_of_product(2 * round, 1), "chain {round} returns {:02x?}", outputs[0]);
    }
    many.expect_silence(peer)?;
    peer.disconnect(&many.qp)
}

fn own_regions(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_contexts(1, true)?;
    let steps = [step(INCREMENT, 1, 2), step(INCREMENT, 2, 2)];
    many.set_up_long(peer, 0, 0, &steps, &[(BOTH, 100), (BOTH, 4097), (IN, 64), (BOTH, 1), (BOTH, 64)])?;
    let outputs = many.call(peer, 0, CHAIN_START, 0)?;
    let found: Vec<_> = outputs.iter().map(|bytes| (bytes.len(), bytes[0], bytes[bytes.len() - 1])).collect();
    ensure!(found == [(100, 0, 0), (4097, 1, 1), (1, 1, 1), (64, 0, 0)], "the chain returns {found:?}");
    many.expect(peer, 0, 2, &[2; 64])?;
    peer.disconnect(&many.qp)
}

fn error(peer: &mut Peer) -> Result<(), Failure> {
    let before = step(INCREMENT, 0, 1);
    let behind = step(INCREMENT, 2, 1);
    // A function that the device does not have, and one that refuses its arguments.
    for (wrong, result) in [(step(NO_FUNCTION, 0, 3), UNKNOWN), (step(MATMUL, 0, 3), BAD_ARGUMENTS)] {
        let mut many = peer.connect_contexts(1, true)?;
        many.set_up_long(peer, 0, 0, &[before, wrong, behind], &[(BOTH, 64), (BOTH, 64), (BOTH, 64)])?;
        for round in 1..=2 {
            let outputs = many.call(peer, 0, CHAIN_START, result)?;
            ensure!(outputs.is_empty(), "outputs of a chain that ends with {result} are written");
            many.expect(peer, 0, 0, &[round; 64])?;
            many.expect(peer, 0, 2, &[0; 64])?;
        }
        peer.disconnect(&many.qp)?;
    }
    Ok(())
}

fn one_function(peer: &mut Peer) -> Result<(), Failure> {
    let mut many = peer.connect_contexts(1, true)?;
    many.set_up_long(peer, 0, 0, &[step(INCREMENT, 0, 1)], &[(BOTH, 16), (BOTH, 16)])?;
    let outputs = many.call(peer, 0, 0x80 | u32::from(INCREMENT), 0)?;
    ensure!(outputs == [[1; 16], [1; 16]], "a function on a set-up with a chain returns {outputs:02x?}");
    let outputs = many.call(peer, 0, CHAIN_START, 0)?;
    ensure!(outputs == [[2; 16], [1; 16]], "the chain returns {outputs:02x?}");
    peer.disconnect(&many.qp)
}

fn no_steps(peer: &mut Peer) -> Result<(), Failure> {
    for long in [false, true] {
        let mut many = peer.connect_contexts(1, long)?;
        if long {
            many.set_up_long(peer, 0, 0, &[step(INCREMENT, 0, 1)], &[(BOTH, 16)])?;
            many.set_up_long(peer, 0, 0, &[], &[(BOTH, 16)])?;
        } else {
            many.set_up(peer, 0, &[16])?;
        }
        let outputs = many.call(peer, 0, CHAIN_START, UNKNOWN)?;
        ensure!(outputs.is_empty(), "outputs of a chain without steps are written");
        many.call(peer, 0, EMPTY, 0)?;
        peer.disconnect(&many.qp)?;
    }
    Ok(())
}

fn cancelled(peer: &mut Peer) -> Result<(), Failure> {
    let long = peer.long_call()?;
    let mut many = peer.connect_contexts(1, true)?;
    many.set_up_long(peer, 0, 0, &[step(MATMUL, 0, 4); 4], &long.regions(BOTH))?;
    long.write_arguments(peer, &mut many, 0)?;
    // In its first step, and in a later one.
    for after in [long.time / 4, long.time * 5 / 4] {
        many.start(peer, 0, CHAIN_START)?;
        std::thread::sleep(after);
        many.cancel(peer, 0)?;
        let (_, result, outputs) = many.end_of_call(peer)?;
        ensure!(result == CANCELLED, "a cancelled chain ends with {result}");
        ensure!(outputs.iter().all(|o| o.bytes.is_empty()), "outputs of a cancelled chain are written");
        many.expect_silence(peer)?;
    }
    many.call(peer, 0, EMPTY, 0)?;
    peer.disconnect(&many.qp)
}
