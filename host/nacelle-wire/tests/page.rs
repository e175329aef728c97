// SPDX-License-Identifier: Apache-2.0
//! The golden bytes on the page `docs/reference/wire.md` are what the crate reads and writes.

use nacelle_wire::{
    RocePacket,
    kernel::matmul,
    mrsp::{CallImm, Message, ReturnCode},
};

/// Hexadecimal contents of the page's code blocks of one kind; text behind `|` explains.
fn blocks(kind: &str) -> Vec<Vec<u8>> {
    let page = include_str!("../../../docs/reference/wire.md");
    let start = format!("```{kind}\n");
    page.split(&start)
        .skip(1)
        .map(|rest| {
            let block = rest.split("```").next().unwrap();
            let bytes = block.lines().map(|line| line.split('|').next().unwrap());
            let digits: String = bytes.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect();
            (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
        })
        .collect()
}

#[test]
fn frames() {
    let frames = blocks("frame");
    assert_eq!(frames.len(), 5);
    for frame in frames {
        let packet = RocePacket::parse(&frame).unwrap();
        let mut again = vec![0; frame.len()];
        packet.write(&mut again).unwrap();
        assert_eq!(again, frame);
    }
}

#[test]
fn mrsp() {
    let messages = blocks("mrsp");
    assert_eq!(messages.len(), 3);
    for bytes in messages {
        let message = Message::parse(&bytes).unwrap();
        let mut again = vec![0; bytes.len()];
        message.write(&mut again).unwrap();
        assert_eq!(again, bytes);
    }
}

#[test]
fn immediates() {
    let [call, result] = blocks("imm").try_into().unwrap();
    let call = u32::from_be_bytes(call.try_into().unwrap());
    assert_eq!(CallImm::parse(call).unwrap().to_u32(), call);
    let result = u32::from_be_bytes(result.try_into().unwrap());
    assert_eq!(ReturnCode::from_imm(result), ReturnCode::KERNEL_TIMEOUT);
}

#[test]
fn arguments() {
    let [block] = blocks("args").try_into().unwrap();
    let block = block.try_into().unwrap();
    assert_eq!(matmul::Args::parse(&block).unwrap().to_bytes(), block);
}
