// SPDX-License-Identifier: Apache-2.0
//! Cases on a connection: valid sequences of requests, changed here and there.

use super::{
    Step,
    frame::{Change, change},
    pick,
    transcript::{RESOURCES, STRANGER, Scene, Talk},
};
use crate::{
    Failure,
    peer::{Memory, Terms, raw_message, region},
    rules::pattern,
    station::build,
};
use nacelle_wire::{
    Psn, Qpn, RemoteAddr, Rkey,
    bth::{Aeth, AtomicAckEth, AtomicEth, Deth, ExtKind, Ieth, ImmDt, Opcode, Reth, Syndrome},
    cm,
    extensions::{Agreement, Extensions},
    mrsp::{AarRegion, RegionFlags},
    transport::Ext,
};

/// One packet.
#[derive(Clone, Debug)]
struct Shot {
    opcode: Opcode,
    /// From the PSN that is expected next.
    psn: i32,
    /// From the begin of the first region.
    offset: i64,
    length: u32,
    key: Key,
    payload: Payload,
    immediate: u32,
    operands: (u64, u64),
    quiet: bool,
    changes: Vec<Change>,
}

/// Which key a request has.
#[derive(Clone, Copy, Debug)]
enum Key {
    Own,
    Old,
    OfAnother,
    Flipped(u32),
    Zero,
}

/// What a packet carries.
#[derive(Clone, Debug)]
enum Payload {
    Pattern(usize),
    Message(Vec<u8>),
}

const PREFILL: usize = 8192;

/// What ends a message for the service.
const ENDS_OF_SENDS: [Opcode; 6] = [
    Opcode::SendLast,
    Opcode::SendLastImm,
    Opcode::SendLastInvalidate,
    Opcode::SendOnly,
    Opcode::SendOnlyImm,
    Opcode::SendOnlyInvalidate,
];

/// Runs a case.
pub(super) fn play(scene: &mut Scene<'_>, rng: &mut fastrand::Rng) -> Result<Vec<Step>, Failure> {
    let terms = Terms {
        mtu: pick(rng, &[1, 1, 1, 2, 3, 5]),
        ack_timeout: 20,
        initiator_depth: pick(rng, &[0, 1, 4, 4, RESOURCES]),
        offer: Agreement::new(if rng.u8(..4) == 0 { Extensions::SELECTIVE_REPEAT } else { Extensions::NONE }, 0),
        ..Terms::default()
    };
    let caller = scene.caller;
    scene.peer.act_as(caller);
    let mut talk = scene.open(&terms, &[PREFILL as u32, 64])?;
    if rng.bool() {
        talk.old = talk.qp.regions.clone();
        scene.peer.set_up_regions(&mut talk.qp, &[PREFILL as u32, 64])?;
    }
    let memory = talk.qp.regions[0];
    scene.peer.write_bytes(&mut talk.qp, &memory, 0, &pattern(5, PREFILL))?;
    let mut steps =
        vec![Step { sent: format!("{terms:?}"), answered: vec![format!("resources {}", talk.qp.responder_resources)] }];
    for _ in 0..rng.usize(1..=6) {
        let shots = burst(rng, talk.qp.mtu);
        for shot in &shots {
            let mut bytes = frame(scene, &talk, shot)?;
            change(&mut bytes, &shot.changes);
            scene.peer.station.send_frame(&bytes)?;
        }
        let service = shots.iter().any(reaches_the_service);
        let message = shots.iter().any(|shot| ENDS_OF_SENDS.contains(&shot.opcode));
        let answered = scene.answers(&mut talk, service, message)?;
        let sent = shots.iter().map(|shot| format!("{shot:?}")).collect::<Vec<_>>().join(" + ");
        steps.push(Step { sent, answered });
        if talk.over {
            break;
        }
    }
    if !talk.over && talk.qp.responder_resources > 0 {
        // What has become of the memory.
        let psn = talk.qp.next;
        scene.peer.send_quietly(&talk.qp, Opcode::ReadRequest, psn, Ext::Reth(memory.reth(0, 1024)), &[])?;
        let answered = scene.answers(&mut talk, false, false)?;
        steps.push(Step { sent: "READ of the first KiB".into(), answered });
    }
    scene.close(&talk)?;
    Ok(steps)
}

fn frame(scene: &Scene<'_>, talk: &Talk, shot: &Shot) -> Result<Vec<u8>, Failure> {
    let Memory { addr, rkey } = talk.qp.regions[0];
    let key = match shot.key {
        Key::Own => rkey,
        Key::Old => talk.old.first().map_or(Rkey(rkey.0 ^ 0x4000_0000), |old| old.rkey),
        Key::OfAnother => scene.witness.regions[0].rkey,
        Key::Flipped(bit) => Rkey(rkey.0 ^ 1 << bit),
        Key::Zero => Rkey(0),
    };
    let at = RemoteAddr(addr.0.wrapping_add_signed(shot.offset));
    let reth = Reth::new(at, key, shot.length);
    let imm = ImmDt::new(shot.immediate);
    let ext = match shot.opcode.ext() {
        ExtKind::None => Ext::None,
        ExtKind::Imm => Ext::Imm(imm),
        ExtKind::Reth => Ext::Reth(reth),
        ExtKind::RethImm => Ext::RethImm(reth, imm),
        ExtKind::Aeth => Ext::Aeth(Aeth::new(Syndrome::ACK, 1)),
        ExtKind::AethAtomic => Ext::AethAtomic(Aeth::new(Syndrome::ACK, 1), AtomicAckEth::new(7)),
        ExtKind::Atomic => Ext::Atomic(AtomicEth::new(at, key, shot.operands.0, shot.operands.1)),
        ExtKind::Ieth => Ext::Ieth(Ieth::new(key)),
        ExtKind::Deth => Ext::Deth(Deth::new(cm::GSI_Q_KEY, Qpn::GSI)),
        ExtKind::DethImm => Ext::DethImm(Deth::new(cm::GSI_Q_KEY, Qpn::GSI), imm),
        ExtKind::Cnp => Ext::Cnp(nacelle_wire::bth::CnpReserved::default()),
    };
    let psn = Psn::new(talk.qp.next.get().wrapping_add_signed(shot.psn) & 0xff_ffff);
    let mut headers = scene.peer.headers(&talk.qp, shot.opcode, psn, ext);
    headers.bth.set_ack_req(!shot.quiet);
    let payload = match &shot.payload {
        Payload::Pattern(len) => pattern(rng_byte(shot), *len),
        Payload::Message(bytes) => bytes.clone(),
    };
    build(&headers, &payload)
}

/// It may end a message, or start a call.
fn reaches_the_service(shot: &Shot) -> bool {
    ENDS_OF_SENDS.contains(&shot.opcode)
        || matches!(shot.opcode, Opcode::WriteLastImm | Opcode::WriteOnlyImm)
        || shot.changes.iter().any(|change| matches!(change, Change::Opcode(_)))
}

/// A pattern that depends on what is written where.
fn rng_byte(shot: &Shot) -> u8 {
    (shot.offset as u8).wrapping_mul(3).wrapping_add(shot.psn as u8)
}

/// What is sent together: a request of one or more packets, mostly right, or a few of any kind.
fn burst(rng: &mut fastrand::Rng, mtu: usize) -> Vec<Shot> {
    let mut shots = match rng.u8(..10) {
        0..=3 => vec![single(rng, mtu)],
        4..=6 => in_packets(rng, mtu),
        7 => (0..rng.i32(2..5)).map(|i| Shot { psn: i, ..write(rng, mtu) }).collect(),
        8 => vec![message(rng, mtu)],
        _ => vec![call(rng)],
    };
    // Changes: none, in one packet, or a packet lost or repeated.
    match rng.u8(..8) {
        0 | 1 => {}
        2 if shots.len() > 1 => {
            shots.remove(rng.usize(..shots.len()));
        }
        3 => {
            let again = shots[rng.usize(..shots.len())].clone();
            shots.push(again);
        }
        _ => {
            let index = rng.usize(..shots.len());
            spoil(rng, &mut shots[index], mtu);
        }
    }
    // Two messages at once may find one receive or two: one is enough.
    let mut receives = 0;
    shots.retain(|shot| {
        let needs = matches!(
            shot.opcode,
            Opcode::SendFirst | Opcode::SendOnly | Opcode::SendOnlyImm | Opcode::SendOnlyInvalidate
        ) || matches!(shot.opcode.ext(), ExtKind::Imm | ExtKind::RethImm);
        receives += u32::from(needs);
        !needs || receives <= 1
    });
    shots
}

fn shot(opcode: Opcode, payload: Payload) -> Shot {
    Shot {
        opcode,
        psn: 0,
        offset: 0,
        length: 0,
        key: Key::Own,
        payload,
        immediate: 0,
        operands: (0, 0),
        quiet: false,
        changes: Vec::new(),
    }
}

fn write(rng: &mut fastrand::Rng, mtu: usize) -> Shot {
    let len = pick(rng, &[0, 1, 3, 4, 63, 64, 65, 200, mtu - 1, mtu]);
    Shot { offset: rng.i64(0..512), length: len as u32, ..shot(Opcode::WriteOnly, Payload::Pattern(len)) }
}

fn single(rng: &mut fastrand::Rng, mtu: usize) -> Shot {
    match rng.u8(..6) {
        0 | 1 => write(rng, mtu),
        2 | 3 => Shot {
            offset: rng.i64(0..512),
            length: pick(rng, &[0, 1, 64, 255, 256, 257, 2000]),
            ..shot(Opcode::ReadRequest, Payload::Pattern(0))
        },
        4 => Shot {
            offset: 8 * rng.i64(0..64),
            operands: (rng.u64(..), if rng.bool() { 0 } else { rng.u64(..) }),
            ..shot(if rng.bool() { Opcode::FetchAdd } else { Opcode::CmpSwap }, Payload::Pattern(0))
        },
        _ => shot(pick(rng, &Opcode::ALL), Payload::Pattern(if rng.bool() { 0 } else { rng.usize(..=mtu) })),
    }
}

fn in_packets(rng: &mut fastrand::Rng, mtu: usize) -> Vec<Shot> {
    let tail = rng.usize(1..=mtu.min(300));
    let middles = rng.usize(..3);
    let whole = (mtu * (1 + middles) + tail) as u32;
    let send = rng.u8(..3) == 0;
    let (first, middle, last) = if send {
        (
            Opcode::SendFirst,
            Opcode::SendMiddle,
            pick(rng, &[Opcode::SendLast, Opcode::SendLast, Opcode::SendLastImm, Opcode::SendLastInvalidate]),
        )
    } else {
        (
            Opcode::WriteFirst,
            Opcode::WriteMiddle,
            pick(rng, &[Opcode::WriteLast, Opcode::WriteLast, Opcode::WriteLastImm]),
        )
    };
    let mut shots = vec![Shot { length: whole, ..shot(first, Payload::Pattern(mtu)) }];
    shots.extend((0..middles).map(|_| shot(middle, Payload::Pattern(mtu))));
    shots.push(Shot { immediate: pick(rng, &[0, 0x83, 1]), ..shot(last, Payload::Pattern(tail)) });
    let all = shots.len();
    for (index, shot) in shots.iter_mut().enumerate() {
        shot.psn = index as i32;
        shot.quiet = index + 1 < all && rng.bool();
    }
    shots
}

/// A message of the region protocol, right or wrong.
fn message(rng: &mut fastrand::Rng, mtu: usize) -> Shot {
    let most = (mtu - 4) / size_of::<AarRegion>();
    let count = match rng.u8(..4) {
        0 => rng.usize(..=most.min(42)),
        _ => rng.usize(..=3),
    };
    let regions: Vec<AarRegion> = (0..count)
        .map(|i| {
            let flags = if rng.u8(..3) == 0 {
                RegionFlags::from_bits(rng.u8(..16))
            } else {
                RegionFlags::INPUT | RegionFlags::OUTPUT
            };
            let size = pick(rng, &[0, 1, 64, 4096, 10_000, 1 << 16, u32::MAX]);
            region(flags, i, if size > 10_000 && rng.bool() { 16 } else { size })
        })
        .collect();
    let kind = if rng.u8(..6) == 0 { rng.u8(..5) } else { 1 };
    let told = if rng.u8(..6) == 0 { rng.u8(..) } else { count as u8 };
    let mut bytes = raw_message(kind, told, &regions);
    if rng.u8(..8) == 0 {
        bytes.truncate(rng.usize(..=bytes.len()));
    }
    shot(Opcode::SendOnly, Payload::Message(bytes))
}

/// Functions that one of the devices has and another has not (`traffic`, `vector`): their results differ with the kernels, whatever
/// the protocol.
const FUNCTIONS_OF_ONE_DEVICE: [u32; 6] = [2, 64, 65, 66, 67, 68];
/// A function that no device has, in the immediate's bits 6..0.
const UNKNOWN_FUNCTION: u32 = 0x7f;

/// An immediate: a start, or none.
fn call(rng: &mut fastrand::Rng) -> Shot {
    let drawn = match rng.u8(..4) {
        0 => rng.u32(..),
        1 => u32::from(rng.u8(..)),
        2 => 0x81,
        _ => 0x83,
    };
    let of_one = FUNCTIONS_OF_ONE_DEVICE.contains(&(drawn & 0x7f));
    let immediate = if of_one { drawn | UNKNOWN_FUNCTION } else { drawn };
    Shot { immediate, ..shot(Opcode::WriteOnlyImm, Payload::Pattern(0)) }
}

/// Makes a packet wrong, or only unusual, in one or two ways.
fn spoil(rng: &mut fastrand::Rng, shot: &mut Shot, mtu: usize) {
    for _ in 0..rng.u8(1..=2) {
        match rng.u8(..12) {
            0 => shot.psn += pick(rng, &[-1, -2, -3, 1, 2, 100, 0x7f_ffff, -0x7f_ffff, 0x80_0000]),
            1 => {
                let bit = rng.u32(..32);
                shot.key = pick(rng, &[Key::Old, Key::OfAnother, Key::Zero, Key::Flipped(bit)])
            }
            2 => shot.offset = pick(rng, &[-1, -8, 8192, 8191, 8185, 1 << 40, -(1 << 33), i64::MAX]),
            3 => {
                shot.length = pick(
                    rng,
                    &[
                        0,
                        1,
                        shot.length.wrapping_add(1),
                        shot.length.saturating_sub(1),
                        8193,
                        1 << 31,
                        (1 << 31) + 1,
                        u32::MAX,
                    ],
                )
            }
            4 => shot.payload = Payload::Pattern(pick(rng, &[0, 1, mtu - 4, mtu - 1, mtu, mtu + 1, mtu + 4]).min(4096)),
            5 => shot.opcode = pick(rng, &Opcode::ALL),
            6 => shot.quiet = true,
            7 => shot.changes.push(Change::Opcode(rng.u8(..))),
            8 | 9 => {
                let wrong = transport(rng);
                shot.changes.push(wrong);
            }
            _ => {
                let wrong = below(rng);
                shot.changes.push(wrong);
            }
        }
    }
}

fn transport(rng: &mut fastrand::Rng) -> Change {
    match rng.u8(..6) {
        0 => Change::PadCount(rng.u8(..4)),
        1 => Change::Version(rng.u8(..16)),
        // Solicited event, MigReq, reserved bits, FECN, BECN.
        2 | 3 => pick(
            rng,
            &[
                Change::Flip { byte: 1, mask: 0x80 },
                Change::Flip { byte: 1, mask: 0x40 },
                Change::Flip { byte: 4, mask: 0x80 },
                Change::Flip { byte: 4, mask: 0x40 },
                Change::Flip { byte: 4, mask: 0x01 },
                Change::Flip { byte: 8, mask: 0x01 },
                Change::Flip { byte: 8, mask: 0x40 },
            ],
        ),
        4 => Change::PKey(pick(rng, &[0, 0x7fff, 0x8001, 0xfffe, 0x8000])),
        _ => Change::DestQp(pick(rng, &[0, 1, 0xff_ffff, 0x80_0002, 0xff_fffe])),
    }
}

fn below(rng: &mut fastrand::Rng) -> Change {
    let stranger = std::net::Ipv4Addr::new(10, 77, 0x80 | ((STRANGER + 256) >> 8) as u8, STRANGER as u8);
    match rng.u8(..16) {
        0 => Change::EthernetDestination(pick(rng, &[[0xff; 6], [0x01, 0, 0x5e, 0, 0, 1], [2, 0, 0, 0, 0, 9]])),
        1 => Change::EthernetSource(rng.u8(..)),
        2 => Change::EtherType(pick(rng, &[0x86dd, 0x8100, 0x0806, 0x0600, 0x8915])),
        3 => Change::IpByte { at: 0, value: pick(rng, &[0x46, 0x44, 0x65, 0x40, 0x4f]) },
        4 => Change::IpByte { at: 1, value: pick(rng, &[0x01, 0x02, 0xfc, 0x1d]) },
        5 => Change::IpByte { at: 6, value: pick(rng, &[0x00, 0x20, 0x80, 0x01, 0xc0]) },
        6 => Change::IpByte { at: 8, value: pick(rng, &[0, 1, 255]) },
        7 => Change::IpByte { at: 9, value: pick(rng, &[1, 6, 0, 255]) },
        8 => Change::IpLength(pick(rng, &[-1, -4, 1, 4, 100, -40])),
        9 => Change::IpChecksum,
        10 => {
            pick(rng, &[Change::Source(stranger), Change::Destination(stranger), Change::Destination([255; 4].into())])
        }
        11 => Change::UdpLength(pick(rng, &[-1, -4, 1, 4, 100])),
        12 => Change::UdpPort(pick(rng, &[4790, 4792, 0])),
        13 => Change::UdpChecksum { right: rng.bool() },
        14 => Change::Icrc(1 << rng.u8(..8)),
        _ if rng.bool() => Change::Cut(rng.usize(14..90)),
        _ => Change::Trailer(rng.usize(1..20)),
    }
}
