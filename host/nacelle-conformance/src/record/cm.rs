// SPDX-License-Identifier: Apache-2.0
//! Cases of connection management: REQs with unusual fields, and unexpected messages.

use super::{
    Step, pick,
    transcript::{Scene, cm_in_words},
};
use crate::{Failure, peer::Terms, station::Packet};
use nacelle_wire::{
    Psn, Qpn, RoceHeaders,
    bth::{Bth, Deth, Opcode},
    cm::{self, Drep, Dreq, Message, Mra, Rej, RejReason, Rep, Req, Rtu},
    transport::Ext,
};

/// A connection that a REQ of the case asks for, as far as it has come.
struct Asked {
    tid: u64,
    req: Box<Req>,
    /// The device's communication id and queue pair, once they are known.
    device: Option<(u32, Qpn)>,
}

/// Which connection a message is about.
#[derive(Clone, Copy, Debug)]
enum About {
    Right,
    WrongLocal,
    WrongRemote,
    Nobody,
}

/// One message.
#[derive(Clone, Copy, Debug)]
enum Sent {
    Req,
    ReqAgain { tid: bool, qpn: bool },
    Rtu(About),
    Dreq { about: About, qpn: bool },
    Rej { about: About, reason: u16 },
    Mra(About),
    Rep(About),
    Drep(About),
}

/// A change to the datagram: bytes of the MAD, or what is around it.
#[derive(Clone, Debug)]
enum Change {
    Mad { at: usize, value: Vec<u8> },
    QKey(u32),
    SourceQp(u32),
    DestQp(u32),
    PKey(u16),
    Length(usize),
    Psn(u32),
    AckReq,
}

/// Runs a case.
pub(super) fn play(scene: &mut Scene<'_>, rng: &mut fastrand::Rng) -> Result<Vec<Step>, Failure> {
    let caller = scene.caller;
    scene.peer.act_as(caller);
    let mut asked: Vec<Asked> = Vec::new();
    let mut steps = Vec::new();
    for _ in 0..rng.usize(1..=5) {
        let sent = if asked.is_empty() || rng.u8(..4) == 0 { Sent::Req } else { any(rng) };
        let changes: Vec<Change> =
            if rng.u8(..3) == 0 { Vec::new() } else { (0..rng.u8(1..=2)).map(|_| odd(rng, sent)).collect() };
        let mad = message(scene, rng, &mut asked, sent);
        send(scene, mad, &changes)?;
        let packets = scene.cm_answers()?;
        for packet in &packets {
            note(&mut asked, packet);
        }
        let mut answered: Vec<String> = packets.iter().filter_map(cm_in_words).collect();
        answered.dedup();
        steps.push(Step { sent: format!("{sent:?} {changes:x?}"), answered });
    }
    end(scene, &asked)?;
    Ok(steps)
}

fn any(rng: &mut fastrand::Rng) -> Sent {
    let about =
        pick(rng, &[About::Right, About::Right, About::Right, About::WrongLocal, About::WrongRemote, About::Nobody]);
    match rng.u8(..10) {
        0 => Sent::ReqAgain { tid: rng.bool(), qpn: rng.bool() },
        1..=3 => Sent::Rtu(about),
        4 | 5 => Sent::Dreq { about, qpn: rng.u8(..4) == 0 },
        6 => Sent::Rej { about, reason: pick(rng, &[4, 28, 10, 6]) },
        7 => Sent::Mra(about),
        8 => Sent::Rep(about),
        _ => Sent::Drep(about),
    }
}

fn message(scene: &mut Scene<'_>, rng: &mut fastrand::Rng, asked: &mut Vec<Asked>, sent: Sent) -> Vec<u8> {
    if matches!(sent, Sent::Req) {
        let (tid, req) = scene.peer.req(&Terms::default());
        let mad = Message::Req(&req).to_mad(tid).to_vec();
        asked.push(Asked { tid, req: Box::new(req), device: None });
        return mad;
    }
    let last = asked.last().expect("something was asked for first");
    let local = last.req.local_comm_id.get();
    let (remote, qpn) = last.device.unwrap_or((0x7777_7777, Qpn::new(0x777)));
    let ids = |about| match about {
        About::Right => (local, remote),
        About::WrongLocal => (local ^ 0x0100_0000, remote),
        About::WrongRemote => (local, remote ^ 0x0100_0000),
        About::Nobody => (local ^ 0x0100_0000, remote ^ 0x0100_0000),
    };
    let tid = last.tid;
    let mad = match sent {
        Sent::Req => unreachable!("it was made above"),
        Sent::ReqAgain { tid: other, qpn } => {
            let mut req = *last.req;
            if qpn {
                req.initiator_depth ^= 1;
            }
            return Message::Req(&req).to_mad(tid + u64::from(other)).to_vec();
        }
        Sent::Rtu(about) => Message::Rtu(&Rtu::new(ids(about).0, ids(about).1)).to_mad(tid),
        Sent::Dreq { about, qpn: wrong } => {
            let qpn = if wrong { Qpn::new(qpn.get() ^ 1) } else { qpn };
            Message::Dreq(&Dreq::new(ids(about).0, ids(about).1, qpn)).to_mad(tid + 1)
        }
        Sent::Rej { about, reason } => {
            Message::Rej(&Rej::new(ids(about).0, ids(about).1, rng.u8(..3), RejReason(reason))).to_mad(tid)
        }
        Sent::Mra(about) => Message::Mra(&Mra::new(ids(about).0, ids(about).1, rng.u8(..3), 15)).to_mad(tid),
        Sent::Rep(about) => {
            Message::Rep(&Rep::new(ids(about).0, ids(about).1, Qpn::new(0x99), Psn::new(5))).to_mad(tid)
        }
        Sent::Drep(about) => Message::Drep(&Drep::new(ids(about).0, ids(about).1)).to_mad(tid + 1),
    };
    mad.to_vec()
}

/// Bytes of a MAD's header are before this offset.
const BODY: usize = 24;

fn odd(rng: &mut fastrand::Rng, sent: Sent) -> Change {
    let mad = |at, value: &[u8]| Change::Mad { at, value: value.to_vec() };
    if matches!(sent, Sent::Req | Sent::ReqAgain { .. }) && rng.u8(..4) > 0 {
        let body = |at: usize, value: &[u8]| mad(BODY + at, value);
        return match rng.u8(..20) {
            0 => body(8, &[0, 0, 0, 0, 1, 6, 0, 1]),
            1 => body(8, &[0, 0, 0, 0, 1, 0x11, 0x30, 0x39]),
            2 => body(8, &[1, 0, 0, 0, 1, 6, 0x30, 0x39]),
            3 => body(35, &[rng.u8(..)]),
            4 => body(39, &[rng.u8(..)]),
            5 => body(43, &[0x90 | rng.u8(..8)]),
            6 => body(47, &[0x98 | rng.u8(..8)]),
            7 => body(48, &[0x80, 0x01]),
            8 => body(50, &[rng.u8(..)]),
            9 => body(51, &[rng.u8(..)]),
            10 => body(52, &[0, 1, 0, 2]),
            11 => body(56, &[0xfe, 0x80]),
            12 => body(72, &[0xfe, 0x80]),
            13 => body(93, &[rng.u8(..)]),
            14 => body(95, &[rng.u8(..)]),
            15 => body(140, &[pick(rng, &[0x01, 0x10, 0xff])]),
            16 => body(141, &[pick(rng, &[0x00, 0x60, 0x41])]),
            17 => body(144 + 12, &[10, 77, 1, 2]),
            18 => body(160 + 12, &[10, 77, 1, 2]),
            // The record of extensions: right, of another version, with unknown bits.
            _ => {
                let (version, bits) = pick(rng, &[(1, 1), (2, 1), (1, 0xff), (1, 0), (0, 1)]);
                body(176 + 48, &[0x4e, 0x41, 0x43, 0x4c, version, bits, 0, 0])
            }
        };
    }
    match rng.u8(..14) {
        0 => mad(0, &[pick(rng, &[0, 2, 0x81])]),
        1 => mad(1, &[pick(rng, &[3, 1, 0x81])]),
        2 => mad(2, &[pick(rng, &[0, 1, 3])]),
        3 => mad(3, &[pick(rng, &[1, 2, 0x83, 0x81])]),
        4 => mad(4, &[0, 1]),
        5 => mad(16, &[0, rng.u8(..0x20)]),
        6 => mad(20, &[0, 0, 0, 1]),
        7 => Change::QKey(pick(rng, &[0, 0x8001_0001, 0x1_0000])),
        8 => Change::SourceQp(pick(rng, &[0, 2, 0xff_ffff])),
        9 => Change::DestQp(pick(rng, &[0, 0xff_ffff])),
        10 => Change::PKey(pick(rng, &[0x7fff, 0x8001, 0])),
        11 => Change::Length(pick(rng, &[0, 24, 252, 255, 260, 512])),
        12 => Change::Psn(rng.u32(..1 << 24)),
        _ => Change::AckReq,
    }
}

fn send(scene: &mut Scene<'_>, mut mad: Vec<u8>, changes: &[Change]) -> Result<(), Failure> {
    let (mut q_key, mut source, mut dest, mut p_key, mut psn, mut ack) =
        (cm::GSI_Q_KEY, Qpn::GSI, Qpn::GSI, 0xffff, 0, false);
    for change in changes {
        match change {
            Change::Mad { at, value } => mad[*at..at + value.len()].copy_from_slice(value),
            Change::QKey(value) => q_key = *value,
            Change::SourceQp(value) => source = Qpn::new(*value),
            Change::DestQp(value) => dest = Qpn::new(*value),
            Change::PKey(value) => p_key = *value,
            Change::Psn(value) => psn = *value,
            Change::AckReq => ack = true,
            Change::Length(_) => {}
        }
    }
    for change in changes {
        if let Change::Length(len) = change {
            mad.resize(*len, 0);
        }
    }
    let flow = scene.peer.station.flow_from(scene.caller);
    let mut bth = Bth::new(Opcode::UdSendOnly, dest, Psn::new(psn));
    bth.p_key.set(p_key);
    bth.set_ack_req(ack);
    let headers = RoceHeaders::new(&flow, bth, Ext::Deth(Deth::new(q_key, source)));
    scene.peer.station.send(&headers, &mad)
}

/// Stores the identifiers of a REP.
fn note(asked: &mut [Asked], packet: &Packet) {
    if let Ok((_, Message::Rep(rep))) = Message::parse(&packet.payload)
        && let Some(one) = asked.iter_mut().find(|a| a.req.local_comm_id == rep.remote_comm_id)
    {
        one.device = Some((rep.local_comm_id.get(), rep.local_qpn()));
    }
}

/// Ends what the case has begun.
fn end(scene: &mut Scene<'_>, asked: &[Asked]) -> Result<(), Failure> {
    for one in asked {
        let Some((remote, qpn)) = one.device else { continue };
        scene.peer.send_cm(one.tid + 7, Message::Dreq(&Dreq::new(one.req.local_comm_id.get(), remote, qpn)))?;
    }
    scene.cm_answers().map(|_| ())
}
