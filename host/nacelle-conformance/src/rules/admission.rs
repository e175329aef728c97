// SPDX-License-Identifier: Apache-2.0
//! Admission: who is not admitted is told why and gets nothing, quotas bind all connections of an entry and no other, and the end of an
//! entry ends its connections alone.

use super::{Rule, nacelle, pattern};
use crate::{
    Failure,
    failure::ensure,
    peer::{Answer, Peer, Qp, Terms, region_request},
};
use nacelle_manage::admission::NewEntry;
use nacelle_wire::{
    admission::{Token, Why},
    bth::Opcode,
    cm::{Drep, Message, RejReason},
    mrsp::{self, reason},
};
use std::time::{Duration, Instant};

const SOURCE: &str = "docs/reference/admission.md";

pub(super) const RULES: &[Rule] = &[
    nacelle("admission.only_callers_of_a_valid_entry_connect", SOURCE, |p| with(p, who_connects)),
    nacelle("admission.a_token_counts_from_the_network_of_its_entry_only", SOURCE, |p| with(p, from_where)),
    nacelle("admission.connections_of_an_entry_are_limited", SOURCE, |p| with(p, connections)),
    nacelle("admission.memory_of_an_entry_is_limited", SOURCE, |p| with(p, memory)),
    nacelle("admission.revocation_ends_the_connections_of_an_entry_and_no_other", SOURCE, |p| with(p, revocation)),
    nacelle("admission.a_revoked_token_is_of_no_use", SOURCE, |p| with(p, replay)),
    nacelle("admission.memory_of_a_revoked_caller_is_cleared", SOURCE, |p| with(p, cleared)),
    nacelle("admission.an_entry_ends_when_its_time_is_over", SOURCE, |p| with(p, time_over)),
    nacelle("admission.wrong_tokens_keep_nobody_out", SOURCE, |p| with(p, guesses)),
    nacelle("admission.tokens_are_not_shown", SOURCE, |p| with(p, not_shown)),
];

/// The end of a connection, from the end of its entry on: a device looks at deadlines once a second of its own time.
const ENDED_WITHIN: Duration = Duration::from_secs(20);
/// Guesses at a token.
const GUESSES: u16 = 300;
/// Hosts that guess.
const GUESSERS: std::ops::Range<u16> = 10..60;
const SIZE: u32 = 4096;
/// Code of the time after which a device repeats a DREQ that is not answered: 67 ms.
const SOON: u8 = 14;

/// Tries a rule while admission is on, and leaves the device as it was.
fn with(peer: &mut Peer, test: fn(&mut Peer) -> Result<(), Failure>) -> Result<(), Failure> {
    peer.manage()?.admit_all()?;
    peer.manage()?.turn_admission(true)?;
    let outcome = test(peer);
    let left = peer.tidy();
    peer.manage()?.admit_all()?;
    outcome.and(left)
}

fn token() -> Token {
    let mut bytes = [0; Token::LEN];
    bytes.fill_with(|| fastrand::u8(1..));
    Token::new(bytes).expect("it has no zeros")
}

fn terms(token: Option<Token>) -> Terms {
    Terms { token, mtu: 5, ..Terms::default() }
}

fn entry(token: Token) -> NewEntry {
    NewEntry { token: Some(token), ..NewEntry::default() }
}

/// Connects with this token, or none.
fn connect(peer: &mut Peer, token: Option<Token>) -> Result<Qp, Failure> {
    peer.connect(&terms(token))
}

/// It is refused for this reason, which the private data tell.
fn refused(peer: &mut Peer, token: Option<Token>, why: Why) -> Result<(), Failure> {
    let (tid, req) = peer.req(&terms(token));
    match peer.ask(tid, &req)? {
        Answer::Rep(_) => Err(Failure::Content(format!("a caller was accepted that should not be: {why:?}"))),
        Answer::Rej(rej) => {
            let reason = if why == Why::Connections { RejReason::NO_RESOURCES } else { RejReason::CONSUMER };
            let found = Why::find(&rej.private_data);
            ensure!(
                rej.reason() == reason && found == Ok(why),
                "refused for {:?}, {found:?}, not {why:?}",
                rej.reason()
            );
            ensure!(
                rej.private_data[Why::LEN..].iter().all(|byte| *byte == 0),
                "the refusal says more than its reason: {:02x?}",
                &rej.private_data[..]
            );
            Ok(())
        }
    }
}

/// A call on this connection is answered rightly.
fn works(peer: &mut Peer, qp: &mut Qp) -> Result<(), Failure> {
    let bytes = pattern(7, SIZE as usize);
    let region = qp.regions[0];
    peer.write_bytes(qp, &region, 0, &bytes)?;
    let outputs = peer.outputs_of_nothing(qp)?;
    ensure!(outputs == [bytes], "a call returned other bytes");
    Ok(())
}

fn who_connects(peer: &mut Peer) -> Result<(), Failure> {
    let (right, wrong) = (token(), token());
    refused(peer, Some(right), Why::Unknown)?;
    refused(peer, None, Why::NoToken)?;
    peer.manage()?.admit(&entry(right))?;
    let guest = peer.station.host(1);
    peer.manage()?.admit(&NewEntry { network: Some((guest.into(), 32)), ..NewEntry::default() })?;
    let mut nearly = *right.bytes();
    for at in [0, 7, 15] {
        nearly[at] ^= 0x10;
        refused(peer, Token::new(nearly), Why::Unknown)?;
        nearly[at] ^= 0x10;
    }
    refused(peer, Some(wrong), Why::Unknown)?;
    refused(peer, None, Why::NoToken)?;
    let mut qp = connect(peer, Some(right))?;
    peer.set_up_regions(&mut qp, &[SIZE])?;
    works(peer, &mut qp)?;
    peer.act_as(guest);
    let other = connect(peer, None)?;
    refused(peer, Some(wrong), Why::Unknown)?;
    peer.disconnect(&other)?;
    peer.disconnect(&qp)
}

fn from_where(peer: &mut Peer) -> Result<(), Failure> {
    let right = token();
    let near = peer.station.host(1);
    peer.manage()?.admit(&NewEntry { network: Some((near.into(), 32)), ..entry(right) })?;
    refused(peer, Some(right), Why::Unknown)?;
    peer.act_as(near);
    refused(peer, None, Why::NoToken)?;
    let qp = connect(peer, Some(right))?;
    peer.disconnect(&qp)
}

fn connections(peer: &mut Peer) -> Result<(), Failure> {
    let (few, other) = (token(), token());
    peer.manage()?.admit(&NewEntry { connections: 2, ..entry(few) })?;
    peer.manage()?.admit(&NewEntry { connections: 1, ..entry(other) })?;
    let first = connect(peer, Some(few))?;
    peer.act_as_host(1);
    let second = connect(peer, Some(few))?;
    for host in [0, 1, 2] {
        peer.act_as_host(host);
        refused(peer, Some(few), Why::Connections)?;
    }
    let third = connect(peer, Some(other))?;
    refused(peer, Some(other), Why::Connections)?;
    peer.disconnect(&second)?;
    let again = at_last(peer, Some(few))?;
    for qp in [first, third, again] {
        peer.disconnect(&qp)?;
    }
    Ok(())
}

/// Connects; a place that was left a moment ago may be in use yet.
fn at_last(peer: &mut Peer, token: Option<Token>) -> Result<Qp, Failure> {
    let until = Instant::now() + ENDED_WITHIN;
    loop {
        match peer.try_connect(&terms(token))? {
            Some(qp) => return Ok(qp),
            None if Instant::now() > until => return Err(Failure::Refused(RejReason::NO_RESOURCES)),
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn memory(peer: &mut Peer) -> Result<(), Failure> {
    let (small, other) = (token(), token());
    peer.manage()?.admit(&NewEntry { memory_kib: 64, ..entry(small) })?;
    peer.manage()?.admit(&entry(other))?;
    let mut first = connect(peer, Some(small))?;
    peer.act_as_host(1);
    let mut second = connect(peer, Some(small))?;
    peer.set_up_regions(&mut first, &[40 << 10])?;
    no_memory(peer, &mut second, 28 << 10)?;
    peer.set_up_regions(&mut second, &[24 << 10])?;
    no_memory(peer, &mut first, 44 << 10)?;
    peer.act_as_host(2);
    let mut third = connect(peer, Some(other))?;
    peer.set_up_regions(&mut third, &[1 << 20])?;
    for qp in [first, second, third] {
        peer.disconnect(&qp)?;
    }
    Ok(())
}

fn no_memory(peer: &mut Peer, qp: &mut Qp, size: u32) -> Result<(), Failure> {
    peer.send_message(qp, &region_request(&[size]))?;
    let answer = peer.receive_message(qp)?;
    let answer = mrsp::Message::parse(&answer)?;
    ensure!(
        matches!(answer, mrsp::Message::Err(reason::NO_MEMORY)),
        "{size} bytes too many were answered by {answer:?}"
    );
    Ok(())
}

/// The DREQ of a connection whose entry has ended, with this reason. It is answered.
fn ended(peer: &mut Peer, qp: &Qp, why: Why) -> Result<(), Failure> {
    let wanted = |payload: &[u8]| matches!(Message::parse(payload), Ok((_, Message::Dreq(dreq))) if dreq.remote_comm_id.get() == qp.own_comm_id);
    let found = peer.station.wait(ENDED_WITHIN, |p| p.opcode == Opcode::UdSendOnly && wanted(&p.payload))?;
    let mad = found.ok_or(Failure::Missing("DREQ of a connection whose entry has ended"))?.payload;
    let (tid, Message::Dreq(dreq)) = Message::parse(&mad)? else { return Err(Failure::Missing("DREQ")) };
    let said = Why::find(&dreq.private_data);
    ensure!(said == Ok(why), "the DREQ says {said:?} instead of {why:?}");
    ensure!(dreq.remote_qpn() == qp.own_qpn, "the DREQ names another queue pair");
    peer.send_cm_from(qp.ip, tid, Message::Drep(&Drep::new(qp.own_comm_id, qp.comm_id)))?;
    peer.leave(qp);
    Ok(())
}

fn revocation(peer: &mut Peer) -> Result<(), Failure> {
    // What a call takes is tried while everybody may connect.
    peer.manage()?.turn_admission(false)?;
    let long = peer.long_call()?.times(10);
    peer.manage()?.turn_admission(true)?;
    let (bad, good) = (token(), token());
    let number = peer.manage()?.admit(&entry(bad))?;
    peer.manage()?.admit(&entry(good))?;
    let mut others = Vec::new();
    for host in [1, 2] {
        peer.act_as_host(host);
        let mut qp = connect(peer, Some(good))?;
        peer.set_up_regions(&mut qp, &[SIZE])?;
        works(peer, &mut qp)?;
        others.push(qp);
    }
    let mut all = Vec::new();
    for host in [3, 3, 4] {
        peer.act_as_host(host);
        let mut qp = connect(peer, Some(bad))?;
        peer.set_up_regions(&mut qp, &[SIZE])?;
        all.push(qp);
    }
    // One of them is in a call, which does not delay the end.
    long.start(peer, &mut all[0])?;
    let began = Instant::now();
    peer.manage()?.revoke(number)?;
    for qp in &all {
        ended(peer, qp, Why::Revoked)?;
    }
    ensure!(began.elapsed() < long.time, "the end of an entry waits for its calls: {:?}", began.elapsed());
    for qp in &mut others {
        works(peer, qp)?;
    }
    // Its keys are of no use on its queue pair, which is not there any more.
    let region = all[1].regions[0];
    peer.station.forget()?;
    let written = peer.write_bytes(&mut all[1], &region, 0, &pattern(3, 64));
    ensure!(written.is_err(), "a caller whose entry was revoked can write");
    for qp in &mut others {
        works(peer, qp)?;
        peer.disconnect(&qp.clone())?;
    }
    peer.manage()?.remove_entry(number)
}

fn replay(peer: &mut Peer) -> Result<(), Failure> {
    let right = token();
    let number = peer.manage()?.admit(&entry(right))?;
    let (tid, mut req) = peer.req(&terms(Some(right)));
    req.set_local_cm_timeout(SOON);
    let answer = peer.ask(tid, &req)?;
    let qp = peer.accepted(tid, &req, answer)?;
    // Half open, and nobody answers what ends it.
    peer.manage()?.revoke(number)?;
    peer.leave(&qp);
    refused(peer, Some(right), Why::Revoked)?;
    peer.act_as_host(1);
    refused(peer, Some(right), Why::Revoked)?;
    peer.manage()?.remove_entry(number)?;
    refused(peer, Some(right), Why::Unknown)?;
    // The very REQ again, as somebody has recorded it.
    match peer.ask(tid, &req)? {
        Answer::Rej(rej) => {
            ensure!(rej.reason() == RejReason::CONSUMER, "a replayed REQ is refused for {:?}", rej.reason())
        }
        Answer::Rep(_) => return Err(Failure::Content("a replayed REQ was accepted".into())),
    }
    // The same number with another token is another entry.
    let other = token();
    peer.manage()?.admit(&entry(other))?;
    refused(peer, Some(right), Why::Unknown)?;
    let qp = connect(peer, Some(other))?;
    peer.disconnect(&qp)
}

fn cleared(peer: &mut Peer) -> Result<(), Failure> {
    let (first, second) = (token(), token());
    let number = peer.manage()?.admit(&entry(first))?;
    peer.manage()?.admit(&entry(second))?;
    let mut left = connect(peer, Some(first))?;
    peer.set_up_regions(&mut left, &[SIZE, 3 * SIZE])?;
    for region in left.regions.clone() {
        peer.write_bytes(&mut left, &region, 0, &pattern(9, SIZE as usize))?;
    }
    peer.manage()?.revoke(number)?;
    // At once: not a moment for the device to clear what nobody has asked for.
    peer.act_as_host(1);
    let mut next = connect(peer, Some(second))?;
    for _ in 0..6 {
        peer.set_up_regions(&mut next, &[SIZE, 3 * SIZE])?;
        for region in next.regions.clone() {
            let found = peer.read_bytes(&mut next, &region, 0, SIZE as usize)?;
            ensure!(found.iter().all(|byte| *byte == 0), "memory of a revoked caller is shown to the next one");
            peer.write_bytes(&mut next, &region, 0, &pattern(5, SIZE as usize))?;
        }
    }
    ended(peer, &left, Why::Revoked)?;
    peer.disconnect(&next)
}

fn time_over(peer: &mut Peer) -> Result<(), Failure> {
    let (short, long) = (token(), token());
    let of = |token, seconds| NewEntry { time: Some(Duration::from_secs(seconds)), ..entry(token) };
    peer.manage()?.admit(&of(short, 2))?;
    peer.manage()?.admit(&of(long, 10_000))?;
    let qp = connect(peer, Some(short))?;
    peer.act_as_host(1);
    let mut stays = connect(peer, Some(long))?;
    peer.set_up_regions(&mut stays, &[SIZE])?;
    ended(peer, &qp, Why::TimeOver)?;
    refused(peer, Some(short), Why::TimeOver)?;
    works(peer, &mut stays)?;
    peer.disconnect(&stays)
}

fn guesses(peer: &mut Peer) -> Result<(), Failure> {
    let right = token();
    peer.manage()?.admit(&entry(right))?;
    for guess in 0..GUESSES {
        peer.act_as_host(GUESSERS.start + guess % GUESSERS.len() as u16);
        let (tid, req) = peer.req(&terms(Some(token())));
        peer.send_cm(tid, Message::Req(&req))?;
    }
    // As the last of them: a wire may carry the frames of a host that it knows past those of others, and guesses
    // that come after the end of admission are taken for callers.
    peer.act_as_host(GUESSERS.end - 1);
    let qp = at_last(peer, Some(right))?;
    peer.disconnect(&qp)
}

fn not_shown(peer: &mut Peer) -> Result<(), Failure> {
    let own = token();
    let number = peer.manage()?.admit(&entry(own))?;
    let qp = connect(peer, Some(own))?;
    peer.disconnect_only(&qp)?;
    let sent = peer.station.gather(Duration::from_millis(300))?;
    let shows = |bytes: &[u8]| bytes.windows(4).any(|word| own.bytes().chunks(4).any(|part| part == word));
    ensure!(!sent.iter().any(|packet| shows(&packet.payload)), "a message of the device has a part of a token");
    for word in 0..4 {
        let read = peer.manage()?.read_token(number, word);
        ensure!(read.is_err(), "word {word} of a token can be read");
    }
    Ok(())
}
