// SPDX-License-Identifier: Apache-2.0
//! Calls: an immediate starts a function, WRITEs bring its outputs back (docs/reference/rpc.md, NAAICE).

use super::{Rule, nacelle, pattern};
use crate::{
    Failure,
    failure::ensure,
    peer::{EMPTY, Output, Peer, Qp, Terms, own_address, raw_message, region},
};
use nacelle_wire::{
    bth::{ImmDt, Opcode, Syndrome},
    mrsp::{AarRegion, RegionFlags},
    transport::Ext,
};

pub(super) const RULES: &[Rule] = &[
    nacelle("call.is_acknowledged_before_it_is_answered", "NAAICE: ordering", acknowledged_first),
    nacelle("call.outputs_are_written_in_index_order_the_last_with_immediate", CALLS, outputs),
    nacelle("call.changes_inputs_and_returns_outputs_only", CALLS, inputs),
    nacelle("call.immediate_of_success_is_0_and_solicited", "NAAICE: immediate", success),
    nacelle("call.user_bytes_of_the_immediate_start_the_same_function", "NAAICE: immediate", user_bytes),
    nacelle("call.is_started_by_the_last_packet_of_a_write", CALLS, by_a_write),
    nacelle("call.single_send_region_keeps_its_contents", "NAAICE: single send", single_send),
    nacelle("call.single_send_region_may_be_an_output", "rpc: messages", single_send_output),
    nacelle("call.internal_region_is_never_returned", "rpc: messages", internal),
    nacelle("call.without_output_is_answered_by_a_zero_length_write", CALLS, no_output),
    nacelle("call.of_an_unknown_function_has_result_3", RESULTS, unknown),
    nacelle("call.that_fails_is_answered_by_a_zero_length_write", RESULTS, fails),
    nacelle("call.immediate_0_is_no_call", CALLS, given_up),
    nacelle("call.immediate_without_the_start_bit_is_ignored", CALLS, no_start),
    nacelle("call.before_region_setup_is_ignored", "rpc: connections", before_set_up),
    nacelle("call.may_follow_another_immediately", "rpc: connections", one_after_another),
];

const CALLS: &str = "rpc: calls";
const RESULTS: &str = "rpc: results";

/// Starts the function that adds 1 to every byte.
const INCREMENT: u32 = 0x81;
/// Starts the matrix multiplication, and its result for bad arguments.
const MATMUL: u32 = 0x90;
const BAD_ARGUMENTS: u32 = 0x10;
const UNKNOWN: u32 = 3;
const IN: RegionFlags = RegionFlags::INPUT;
const OUT: RegionFlags = RegionFlags::OUTPUT;

/// Connects, and asks for regions with these flags.
fn with_regions(peer: &mut Peer, terms: &Terms, asked: &[(RegionFlags, u32)]) -> Result<Qp, Failure> {
    let mut qp = peer.connect(terms)?;
    let regions: Vec<AarRegion> = asked.iter().enumerate().map(|(i, &(flags, size))| region(flags, i, size)).collect();
    peer.send_message(&mut qp, &raw_message(1, regions.len() as u8, &regions))?;
    let internal = |flags: &RegionFlags| flags.contains(RegionFlags::INTERNAL);
    let sizes: Vec<u32> = asked.iter().filter(|(flags, _)| !internal(flags)).map(|(_, size)| *size).collect();
    peer.take_regions(&mut qp, &sizes)?;
    Ok(qp)
}

/// The answer is one WRITE of nothing to region `index`, with this result.
fn nothing_but(outputs: &[Output], index: usize, result: u32) -> Result<(), Failure> {
    let [only] = outputs else { return Err(Failure::Content(format!("{} WRITEs answer the call", outputs.len()))) };
    ensure!(only.bytes.is_empty(), "the answer has {} bytes", only.bytes.len());
    ensure!(only.imm == Some(result << 8), "the immediate is {:x?} instead of {:#x}", only.imm, result << 8);
    ensure!(only.reth.va() == own_address(index), "the answer goes to {:#x}, not to region {index}", only.reth.va().0);
    Ok(())
}

/// Immediates that start nothing: after each, a call is the next thing that is answered.
fn starts_nothing(peer: &mut Peer, qp: &mut Qp, immediates: &[u32]) -> Result<(), Failure> {
    for imm in immediates {
        peer.immediate(qp, *imm)?;
        peer.write_bytes(qp, &qp.regions[0].clone(), 0, &imm.to_be_bytes())?;
        let outputs = peer.outputs_of_nothing(qp)?;
        ensure!(outputs[0][..4] == imm.to_be_bytes(), "the immediate {imm:#x} has started something");
    }
    Ok(())
}

fn acknowledged_first(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[64, 1000])?;
    for imm in [EMPTY, INCREMENT, 0xff] {
        peer.post_immediate(&mut qp, imm)?;
        let own = qp.own_qpn;
        let first = peer.station.expect(|p| p.headers.bth.dest_qp() == own)?.ok_or(Failure::Missing("answer"))?;
        let acknowledges = matches!(first.headers.ext, Ext::Aeth(a) if matches!(a.syndrome(), Syndrome::Ack(_)));
        if !acknowledges || first.headers.bth.psn() != qp.next.sub(1) {
            return Err(Failure::unexpected("the acknowledgement of the start first", &first));
        }
        peer.take_outputs(&mut qp)?;
    }
    peer.disconnect(&qp)
}

fn outputs(peer: &mut Peer) -> Result<(), Failure> {
    for mtu in [1, 4] {
        let sizes = [700, 1, 256, 4096, 0, 257];
        let mut qp = peer.connect_with(&Terms { mtu, ..Terms::default() }, &sizes)?;
        for (index, memory) in qp.regions.clone().iter().enumerate() {
            peer.write_bytes(&mut qp, memory, 0, &pattern(index as u8, sizes[index] as usize))?;
        }
        let returned = peer.outputs_of_nothing(&mut qp)?;
        for (index, bytes) in returned.iter().enumerate() {
            ensure!(*bytes == pattern(index as u8, sizes[index] as usize), "output {index} has other bytes");
        }
        peer.disconnect(&qp)?;
    }
    Ok(())
}

fn inputs(peer: &mut Peer) -> Result<(), Failure> {
    let asked = [(IN, 300), (OUT, 40), (IN | OUT, 513), (IN, 8)];
    let mut qp = with_regions(peer, &Terms::default(), &asked)?;
    for (index, memory) in qp.regions.clone().iter().enumerate() {
        peer.write_bytes(&mut qp, memory, 0, &pattern(index as u8, asked[index].1 as usize))?;
    }
    let outputs = peer.call(&mut qp, INCREMENT)?;
    let places: Vec<_> = outputs.iter().map(|o| o.reth.va()).collect();
    ensure!(places == [own_address(1), own_address(2)], "outputs go to {places:x?}");
    for (output, index) in outputs.iter().zip([1, 2]) {
        let wanted: Vec<u8> =
            pattern(index, asked[index as usize].1 as usize).iter().map(|b| b.wrapping_add(1)).collect();
        ensure!(output.bytes == wanted, "output {index} has other bytes");
    }
    peer.disconnect(&qp)
}

fn success(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[16, 16, 16])?;
    let outputs = peer.call(&mut qp, EMPTY)?;
    let found: Vec<_> = outputs.iter().map(|o| (o.imm, o.solicited)).collect();
    ensure!(found == [(None, false), (None, false), (Some(0), true)], "immediates and solicited events are {found:?}");
    peer.disconnect(&qp)
}

fn user_bytes(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[16])?;
    for user in [0x0000_0100, 0xaabb_cc00, 0xffff_ff00] {
        let outputs = peer.call(&mut qp, EMPTY | user)?;
        ensure!(outputs[0].imm == Some(0), "the immediate is {:x?}", outputs[0].imm);
    }
    peer.disconnect(&qp)
}

fn by_a_write(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[512])?;
    let memory = qp.regions[0];
    let bytes = pattern(4, 512);
    let (first, last) = bytes.split_at(qp.mtu);
    peer.send_quietly(&qp, Opcode::WriteFirst, qp.next, Ext::Reth(memory.reth(0, 512)), first)?;
    peer.send(&qp, Opcode::WriteLastImm, qp.next.add(1), Ext::Imm(ImmDt::new(EMPTY)), last)?;
    peer.expect_ack(&qp, qp.next.add(1), Syndrome::ACK)?;
    qp.next = qp.next.add(2);
    let outputs = peer.take_outputs(&mut qp)?;
    ensure!(outputs[0].bytes == bytes, "the call did not see the WRITE that started it");
    // In one packet, with payload.
    let only = Ext::RethImm(memory.reth(0, 64), ImmDt::new(EMPTY));
    peer.send(&qp, Opcode::WriteOnlyImm, qp.next, only, &pattern(5, 64))?;
    peer.expect_ack(&qp, qp.next, Syndrome::ACK)?;
    qp.next = qp.next.add(1);
    let outputs = peer.take_outputs(&mut qp)?;
    ensure!(outputs[0].bytes[..64] == pattern(5, 64), "the call did not see the WRITE that started it");
    peer.disconnect(&qp)
}

fn single_send(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = with_regions(peer, &Terms::default(), &[(RegionFlags::SINGLE_SEND, 64), (OUT, 64)])?;
    let memory = qp.regions[0];
    peer.write_bytes(&mut qp, &memory, 0, &pattern(1, 64))?;
    for _ in 0..3 {
        let outputs = peer.call(&mut qp, EMPTY)?;
        ensure!(outputs.len() == 1, "{} regions are returned instead of the output", outputs.len());
        peer.expect_bytes(&mut qp, &memory, 0, &pattern(1, 64))?;
    }
    peer.disconnect(&qp)
}

fn single_send_output(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = with_regions(peer, &Terms::default(), &[(RegionFlags::SINGLE_SEND | OUT, 64), (OUT, 8)])?;
    let memory = qp.regions[0];
    peer.write_bytes(&mut qp, &memory, 0, &pattern(1, 64))?;
    for _ in 0..2 {
        let outputs = peer.call(&mut qp, EMPTY)?;
        ensure!(outputs.len() == 2 && outputs[0].bytes == pattern(1, 64), "it is not returned after each call");
    }
    peer.disconnect(&qp)
}

fn internal(peer: &mut Peer) -> Result<(), Failure> {
    let asked = [(OUT, 64), (RegionFlags::INTERNAL, 4096), (RegionFlags::INTERNAL | OUT | IN, 64)];
    let mut qp = with_regions(peer, &Terms::default(), &asked)?;
    let outputs = peer.call(&mut qp, EMPTY)?;
    ensure!(outputs.len() == 1, "{} regions are returned instead of the output", outputs.len());
    peer.disconnect(&qp)
}

fn no_output(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = with_regions(peer, &Terms::default(), &[(IN, 64), (IN, 64)])?;
    let outputs = peer.call(&mut qp, EMPTY)?;
    nothing_but(&outputs, 0, 0)?;
    peer.disconnect(&qp)
}

fn unknown(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = with_regions(peer, &Terms::default(), &[(IN, 64), (OUT, 64)])?;
    for function in [0x7f, 0x77, 0x55] {
        let outputs = peer.call(&mut qp, 0x80 | function)?;
        nothing_but(&outputs, 1, UNKNOWN)?;
    }
    let outputs = peer.call(&mut qp, EMPTY)?;
    ensure!(outputs.len() == 1 && outputs[0].imm == Some(0), "the next call fails too");
    peer.disconnect(&qp)
}

fn fails(peer: &mut Peer) -> Result<(), Failure> {
    // A block of arguments without its magic number.
    let mut qp = with_regions(peer, &Terms::default(), &[(IN, 64), (IN, 64), (IN, 64), (OUT, 64)])?;
    let memory = qp.regions[0];
    peer.write_bytes(&mut qp, &memory, 0, &[0; 64])?;
    let outputs = peer.call(&mut qp, MATMUL)?;
    nothing_but(&outputs, 3, BAD_ARGUMENTS)?;
    peer.disconnect(&qp)?;
    // Fewer and more parameters than the function has; the arguments are those of a product of 1 x 1.
    let arguments = [0x4d4d_414e_u32, 0, 1, 1, 1].map(u32::to_le_bytes).concat();
    for asked in [&[(OUT, 64)][..], &[(IN, 64), (IN, 64), (IN, 64), (OUT, 64), (IN, 64)]] {
        let mut qp = with_regions(peer, &Terms::default(), asked)?;
        let memory = qp.regions[0];
        peer.write_bytes(&mut qp, &memory, 0, &arguments)?;
        let outputs = peer.call(&mut qp, MATMUL)?;
        nothing_but(&outputs, asked.iter().position(|(flags, _)| *flags == OUT).unwrap_or(0), BAD_ARGUMENTS)?;
        peer.disconnect(&qp)?;
    }
    // An internal region is no parameter.
    let asked = [(IN, 64), (IN, 64), (IN, 64), (OUT, 64), (RegionFlags::INTERNAL, 64)];
    let mut qp = with_regions(peer, &Terms::default(), &asked)?;
    for (index, bytes) in [(0, &arguments[..]), (1, &6_u32.to_le_bytes()), (2, &7_u32.to_le_bytes())] {
        let memory = qp.regions[index];
        peer.write_bytes(&mut qp, &memory, 0, bytes)?;
    }
    let outputs = peer.call(&mut qp, MATMUL)?;
    ensure!(outputs[0].bytes.get(..4) == Some(&42_u32.to_le_bytes()), "6 x 7 is {:?}", outputs[0].bytes);
    peer.disconnect(&qp)
}

fn given_up(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[16])?;
    starts_nothing(peer, &mut qp, &[0, 0])?;
    peer.disconnect(&qp)
}

fn no_start(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[16])?;
    starts_nothing(peer, &mut qp, &[1, 3, 0x7f, 0x80, 0xffff_ff00, 0xffff_ff80])?;
    peer.disconnect(&qp)
}

fn before_set_up(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect(&Terms::default())?;
    for imm in [EMPTY, INCREMENT, 0xff] {
        peer.immediate(&mut qp, imm)?;
    }
    peer.set_up_regions(&mut qp, &[64])?;
    let outputs = peer.outputs_of_nothing(&mut qp)?;
    ensure!(outputs.len() == 1, "{} outputs", outputs.len());
    peer.expect_silence(&mut qp)?;
    peer.disconnect(&qp)
}

fn one_after_another(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[64])?;
    let memory = qp.regions[0];
    peer.write_bytes(&mut qp, &memory, 0, &[0; 64])?;
    for round in 1..=20u8 {
        let outputs = peer.call(&mut qp, INCREMENT)?;
        ensure!(outputs[0].bytes == [round; 64], "call {round} did not see what the one before has left");
    }
    peer.disconnect(&qp)
}
