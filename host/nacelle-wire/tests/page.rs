// SPDX-License-Identifier: Apache-2.0
//! The golden bytes on the pages `docs/reference/wire.md`, `calls.md` and `transfers.md` are what the crate reads and writes.

use nacelle_wire::{
    RemoteAddr, Rkey, RocePacket,
    calls::{self, Context, LongGiven, LongRegion, Request, SetUp, SetUpAnswer, Step},
    extensions::{Agreement, Extensions},
    kernel::matmul,
    mrsp::{AarRegion, CallImm, FunctionCode, Message, RegionFlags, ReturnCode, WindowNumber},
};

const WIRE: &str = include_str!("../../../docs/reference/wire.md");
const TRANSFERS: &str = include_str!("../../../docs/reference/transfers.md");
const CALLS: &str = include_str!("../../../docs/reference/calls.md");

/// Hexadecimal contents of a page's code blocks of one kind; text behind `|` explains.
fn blocks(page: &str, kind: &str) -> Vec<Vec<u8>> {
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
    let frames = blocks(WIRE, "frame");
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
    let messages = blocks(WIRE, "mrsp");
    assert_eq!(messages.len(), 3);
    for bytes in messages {
        let message = Message::parse(&bytes).unwrap();
        let mut again = vec![0; bytes.len()];
        message.write(&mut again).unwrap();
        assert_eq!(again, bytes);
    }
}

#[test]
fn windows() {
    let [message] = blocks(TRANSFERS, "mrsp").try_into().unwrap();
    let Message::Aar([region]) = Message::parse(&message).unwrap() else { panic!("it is a request of one region") };
    assert_eq!((region.window(), region.flags(), region.size()), (Some(WindowNumber(7)), RegionFlags::OUTPUT, 4096));
    let asked = AarRegion::parameter(RegionFlags::OUTPUT, WindowNumber(7).to_requested(), RemoteAddr(0), Rkey(0), 4096);
    assert_eq!(*region, asked);
    let long = LongRegion::of_window(RegionFlags::INPUT, WindowNumber(u32::MAX), 5 << 30);
    assert_eq!((long.window(), long.flags(), long.size()), (Some(WindowNumber(u32::MAX)), RegionFlags::INPUT, 5 << 30));
    // What asks for an address as upstream's callers do names no window.
    for requested in [0, 4096, 0x4e_4158_0000_0000, u64::MAX >> 8] {
        assert_eq!(WindowNumber::of_requested(requested), None, "{requested:#x}");
    }
}

#[test]
fn immediates() {
    let [call, result] = blocks(WIRE, "imm").try_into().unwrap();
    let call = u32::from_be_bytes(call.try_into().unwrap());
    assert_eq!(CallImm::parse(call).unwrap().to_u32(), call);
    let result = u32::from_be_bytes(result.try_into().unwrap());
    assert_eq!(ReturnCode::from_imm(result), ReturnCode::KERNEL_TIMEOUT);
}

#[test]
fn arguments() {
    let [block] = blocks(WIRE, "args").try_into().unwrap();
    let block = block.try_into().unwrap();
    assert_eq!(matmul::Args::parse(&block).unwrap().to_bytes(), block);
}

#[test]
fn agreement() {
    let [asked, taken] = blocks(CALLS, "agreement").try_into().unwrap();
    let all = Extensions::SELECTIVE_REPEAT | Extensions::CONTEXTS | Extensions::LONG_SET_UP;
    for (bytes, contexts) in [(asked, 16), (taken, 8)] {
        let agreement = Agreement::new(all, contexts);
        assert_eq!(Agreement::find(&bytes), Some(agreement));
        let mut again = [0; 8];
        agreement.put(&mut again).unwrap();
        assert_eq!(again, *bytes);
    }
}

#[test]
fn immediates_of_contexts() {
    let words: Vec<u32> = blocks(CALLS, "imm").iter().map(|b| u32::from_be_bytes(b[..].try_into().unwrap())).collect();
    let [start, chain, failed, message, cancel, answer, result] = words.try_into().unwrap();
    let context = Context(3);
    let function = Some(FunctionCode::INCREMENT);
    assert_eq!(Request::of_write(start), Ok(Request::Start { context, function, user: [0xaa, 0xbb] }));
    assert_eq!(Request::of_write(chain), Ok(Request::Start { context, function: None, user: [0, 0] }));
    assert_eq!(Request::of_write(failed), Ok(Request::HostError(context)));
    assert_eq!(Request::of_send(Some(message)), Ok(Request::Message(context)));
    assert_eq!(Request::of_send(Some(cancel)), Ok(Request::Cancel(context)));
    assert_eq!(calls::answer_imm(context), answer);
    assert_eq!(calls::result_imm(context, ReturnCode::CANCELLED), result);
}

#[test]
fn long_messages() {
    let [set_up, answer] = blocks(CALLS, "mrsp").try_into().unwrap();
    let step = |function, first, count, user| Step::new(FunctionCode::new(function).unwrap(), first, count, user);
    let output = RegionFlags::INPUT | RegionFlags::OUTPUT;
    let expected = SetUp {
        deadline_ms: 1500,
        steps: &[step(16, 0, 2, 0x01_0203), step(1, 1, 2, 0)],
        regions: &[
            LongRegion::parameter(RegionFlags::INPUT, RemoteAddr(0x1122_3344_5566_0000), Rkey(0x0102_0304), 4096),
            LongRegion::parameter(output, RemoteAddr(0x1122_3344_5567_0000), Rkey(0x0a0b_0c0d), 5 << 30),
            LongRegion::internal(32),
        ],
    };
    assert_eq!(SetUp::parse(&set_up), Ok(expected));
    let mut again = vec![0; set_up.len()];
    expected.write(&mut again).unwrap();
    assert_eq!(again, set_up);

    let expected = SetUpAnswer(&[
        LongGiven::new(RemoteAddr(0x2000), Rkey(0x0506_0708), 4096),
        LongGiven::new(RemoteAddr(0x3000), Rkey(0x0506_0709), 5 << 30),
    ]);
    assert_eq!(SetUpAnswer::parse(&answer), Ok(expected));
    let mut again = vec![0; answer.len()];
    expected.write(&mut again).unwrap();
    assert_eq!(again, answer);
}
