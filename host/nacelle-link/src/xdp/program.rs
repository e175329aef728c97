// SPDX-License-Identifier: Apache-2.0
//! The XDP program that takes a host's frames off an interface, in eBPF.
//!
//! It redirects to the socket of the queue that a frame has come from: every frame for the host's own Ethernet address, and the ARP
//! requests to a group that ask for its IP address. All else goes on to the kernel, as do frames of queues that have no socket. An
//! XDP program gives a frame to one party: the kernel does not see what the socket gets.

use std::net::Ipv4Addr;

/// Fields of an instruction's code (`linux/bpf.h`, `linux/bpf_common.h`).
mod code {
    pub(super) const LOAD_U32: u8 = 0x61;
    pub(super) const LOAD_U16: u8 = 0x69;
    pub(super) const LOAD_U8: u8 = 0x71;
    /// The next instruction has the upper half of the number.
    pub(super) const LOAD_NUMBER: u8 = 0x18;
    pub(super) const MOVE: u8 = 0xbf;
    pub(super) const MOVE_NUMBER: u8 = 0xb7;
    pub(super) const ADD_NUMBER: u8 = 0x07;
    /// Of registers, 64 bits.
    pub(super) const JUMP_IF_GREATER: u8 = 0x2d;
    /// Of a register's lower 32 bits and a number, which is not extended then.
    pub(super) const JUMP_UNLESS_EQUAL: u8 = 0x56;
    pub(super) const JUMP_IF_EQUAL: u8 = 0x16;
    pub(super) const JUMP_IF_BITS: u8 = 0x46;
    pub(super) const JUMP: u8 = 0x05;
    pub(super) const CALL: u8 = 0x85;
    pub(super) const EXIT: u8 = 0x95;
}

/// The source register of [`code::LOAD_NUMBER`] says that the number is a descriptor of a map (`BPF_PSEUDO_MAP_FD`).
const MAP: u8 = 1;
/// `bpf_redirect_map`, among the kernel's functions.
const REDIRECT_MAP: i32 = 51;
/// The verdict that leaves a frame to the kernel (`XDP_PASS`).
pub(super) const PASS: i32 = 2;
/// The verdict that gives it to a socket (`XDP_REDIRECT`).
#[cfg(test)]
pub(super) const REDIRECT: u32 = 4;

/// Where the program's context (`struct xdp_md`) has the frame's begin and end, and its queue.
const BEGIN: i16 = 0;
const END: i16 = 4;
const QUEUE: i16 = 16;

/// Where a frame has its type, and an ARP packet the address that is asked for.
const TYPE: i16 = 12;
const TARGET: i16 = 38;
/// Bytes of a frame with an ARP packet. No frame for a host of RoCE is shorter.
const SHORTEST: i32 = 42;
const ARP: u16 = 0x0806;
/// In the first byte of an Ethernet address: it is one of a group.
const GROUP: i32 = 1;

/// An instruction (`struct bpf_insn`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    number: i32,
}

/// Where a jump goes, before the instructions are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Group,
    Redirect,
    Pass,
}

/// Instructions, and jumps among them whose ends are not known yet.
#[derive(Default)]
struct Assembler {
    instructions: Vec<Instruction>,
    jumps: Vec<(usize, Label)>,
    labels: Vec<(Label, usize)>,
}

impl Assembler {
    fn push(&mut self, code: u8, destination: u8, source: u8, offset: i16, number: i32) -> &mut Self {
        let registers = if cfg!(target_endian = "big") { destination << 4 | source } else { source << 4 | destination };
        self.instructions.push(Instruction { code, registers, offset, number });
        self
    }

    fn jump(&mut self, code: u8, register: u8, source: u8, number: i32, to: Label) -> &mut Self {
        self.jumps.push((self.instructions.len(), to));
        self.push(code, register, source, 0, number)
    }

    fn label(&mut self, label: Label) -> &mut Self {
        self.labels.push((label, self.instructions.len()));
        self
    }

    fn finish(mut self) -> Vec<Instruction> {
        for (from, label) in self.jumps {
            let (_, to) = self.labels.iter().find(|(at, _)| *at == label).expect("every label is set");
            self.instructions[from].offset = (*to - from - 1) as i16;
        }
        self.instructions
    }
}

/// The program for a host with these addresses. Without an Ethernet address there are no frames for it yet but ARP requests.
/// `sockets` is the descriptor of the map of sockets.
pub(super) fn redirect(mac: Option<[u8; 6]>, ip: Ipv4Addr, sockets: i32) -> Vec<Instruction> {
    // As the processor reads them out of a frame.
    let half = |bytes: [u8; 2]| i32::from(u16::from_ne_bytes(bytes));
    let mut program = Assembler::default();
    program
        .push(code::LOAD_U32, 2, 1, BEGIN, 0)
        .push(code::LOAD_U32, 3, 1, END, 0)
        .push(code::MOVE, 4, 2, 0, 0)
        .push(code::ADD_NUMBER, 4, 0, 0, SHORTEST)
        .jump(code::JUMP_IF_GREATER, 4, 3, 0, Label::Pass);
    if let Some([a, b, c, d, e, f]) = mac {
        program
            .push(code::LOAD_U32, 5, 2, 0, 0)
            .jump(code::JUMP_UNLESS_EQUAL, 5, 0, i32::from_ne_bytes([a, b, c, d]), Label::Group)
            .push(code::LOAD_U16, 5, 2, 4, 0)
            .jump(code::JUMP_IF_EQUAL, 5, 0, half([e, f]), Label::Redirect);
    }
    program
        .label(Label::Group)
        .push(code::LOAD_U16, 5, 2, TYPE, 0)
        .jump(code::JUMP_UNLESS_EQUAL, 5, 0, half(ARP.to_be_bytes()), Label::Pass)
        .push(code::LOAD_U32, 5, 2, TARGET, 0)
        .jump(code::JUMP_UNLESS_EQUAL, 5, 0, i32::from_ne_bytes(ip.octets()), Label::Pass)
        .push(code::LOAD_U8, 5, 2, 0, 0)
        .jump(code::JUMP_IF_BITS, 5, 0, GROUP, Label::Redirect)
        .jump(code::JUMP, 0, 0, 0, Label::Pass)
        .label(Label::Redirect)
        .push(code::LOAD_U32, 2, 1, QUEUE, 0)
        .push(code::LOAD_NUMBER, 1, MAP, 0, sockets)
        .push(0, 0, 0, 0, 0)
        // Its result if the queue has no socket.
        .push(code::MOVE_NUMBER, 3, 0, 0, PASS)
        .push(code::CALL, 0, 0, 0, REDIRECT_MAP)
        .push(code::EXIT, 0, 0, 0, 0)
        .label(Label::Pass)
        .push(code::MOVE_NUMBER, 0, 0, 0, PASS)
        .push(code::EXIT, 0, 0, 0, 0);
    program.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [2, 0x4e, 0x41, 0, 0x80, 0xff];

    /// Jumps go forward, and none beyond the end: what the kernel's verifier asks for, too.
    #[test]
    fn every_jump_ends_in_the_program() {
        for mac in [None, Some(MAC)] {
            let program = redirect(mac, Ipv4Addr::new(10, 99, 0, 2), 3);
            for (at, instruction) in program.iter().enumerate() {
                let is_jump =
                    matches!(instruction.code & 7, 5 | 6) && ![code::CALL, code::EXIT].contains(&instruction.code);
                assert!(!is_jump || instruction.offset >= 0, "{at}");
                assert!(!is_jump || at + 1 + (instruction.offset as usize) < program.len(), "{at}");
            }
            assert_eq!(program.last().map(|last| last.code), Some(code::EXIT));
            assert_eq!(program.len(), if mac.is_some() { 24 } else { 20 });
        }
    }

    #[test]
    fn a_frame_that_is_passed_on_leaves_by_the_last_instructions() {
        let program = redirect(Some(MAC), Ipv4Addr::LOCALHOST, 3);
        let pass = program.len() - 2;
        assert_eq!((program[pass].code, program[pass].number), (code::MOVE_NUMBER, PASS));
        // A frame that is too short.
        assert_eq!(4 + 1 + program[4].offset as usize, pass);
    }
}
