// SPDX-License-Identifier: Apache-2.0
//! What a device answered, without what it may choose: numbers are relative, addresses, keys and identifiers have names. Acknowledgements may be
//! merged, so of those that came together the newest counts.

use crate::{
    Failure,
    peer::{EMPTY, Memory, OWN_RKEY, Peer, Qp, Terms, own_address},
    station::Packet,
};
use core::net::Ipv4Addr;
use nacelle_wire::{
    Psn, RemoteAddr, Rkey,
    bth::{NakCode, Opcode, Reth, Syndrome},
    cm::{Dreq, Message, RejReason},
    extensions::{Agreement, Extensions},
    mrsp,
    transport::Ext,
};
use std::collections::BTreeMap;

/// Rounds of the bystander without another packet after which every request has been answered.
const QUIET: u32 = 3;
/// And if something must be answered that is not: after so many.
const GIVES_UP: u32 = 100;
/// The same for a message to the service, which may clear memory first: 512 KiB and more at the pace of a round of the RTL device.
const SERVICE_GIVES_UP: u32 = 400;
/// READs and atomics at once that every device takes; it may take more.
pub(super) const RESOURCES: u8 = 8;
/// Hosts of the suite.
const WITNESS: u16 = 900;
const CALLER: u16 = 901;
pub(super) const STRANGER: u16 = 902;

/// The suite, with a connection that has nothing to do with the cases: its answers show that what was sent before has been seen.
pub(super) struct Scene<'a> {
    pub(super) peer: &'a mut Peer,
    pub(super) witness: Qp,
    pub(super) caller: Ipv4Addr,
}

/// The connection that a case is about.
pub(super) struct Talk {
    pub(super) qp: Qp,
    /// The first PSNs of both directions.
    start: Psn,
    expected_start: Psn,
    /// Keys that were valid once.
    pub(super) old: Vec<Memory>,
    /// The device has ended it.
    pub(super) over: bool,
}

impl<'a> Scene<'a> {
    /// Connects the bystander.
    ///
    /// # Errors
    /// The device does not take it.
    pub(super) fn new(peer: &'a mut Peer) -> Result<Self, Failure> {
        peer.act_as_host(WITNESS);
        let witness = peer.connect_with(&Terms::default(), &[4096])?;
        let caller = peer.act_as_host(CALLER);
        Ok(Self { peer, witness, caller })
    }

    /// Ends the bystander's connection.
    ///
    /// # Errors
    /// The device does not agree.
    pub(super) fn end(self) -> Result<(), Failure> {
        self.peer.disconnect(&self.witness)
    }

    /// A connection for a case, with regions of these sizes.
    pub(super) fn open(&mut self, terms: &Terms, sizes: &[u32]) -> Result<Talk, Failure> {
        let mut qp = self.peer.connect(terms)?;
        let (start, expected_start) = (qp.next, qp.expected);
        self.peer.set_up_regions(&mut qp, sizes)?;
        Ok(Talk { qp, start, expected_start, old: Vec::new(), over: false })
    }

    /// The bystander sends a request, and gets the response.
    fn round(&mut self) -> Result<(), Failure> {
        let nothing = Ext::Reth(Reth::new(RemoteAddr(0), Rkey(0), 0));
        self.peer.send(&self.witness, Opcode::WriteOnly, self.witness.next, nothing, &[])?;
        let own = self.witness.own_qpn;
        self.peer
            .station
            .expect(|p| p.headers.bth.dest_qp() == own && p.opcode == Opcode::Acknowledge)?
            .ok_or(Failure::Missing("answer to the bystander"))?;
        self.witness.next = self.witness.next.add(1);
        Ok(())
    }

    /// So does the service, which carries out one call of a kernel after another.
    fn service_round(&mut self) -> Result<(), Failure> {
        self.peer.send_message(&mut self.witness, &[9, 0, 0, 0])?;
        self.peer.receive_message(&mut self.witness)?;
        self.peer.call(&mut self.witness, EMPTY).map(|_| ())
    }

    /// So does connection management, which works at its own pace.
    fn cm_round(&mut self) -> Result<(), Failure> {
        let (ip, tid) = (self.witness.ip, fastrand::u64(..));
        let unknown = Dreq::new(fastrand::u32(..), fastrand::u32(..) | 0x8000_0000, self.witness.qpn);
        self.peer.send_cm_from(ip, tid, Message::Dreq(&unknown))?;
        self.peer.expect_cm("DREP", |t, m| t == tid && matches!(m, Message::Drep(_)))?;
        Ok(())
    }

    /// Everything that the device sends until it has nothing more to say. Its requests are acknowledged.
    fn settle(&mut self, mut talk: Option<&mut Talk>, cm: bool, message: bool) -> Result<Vec<Packet>, Failure> {
        let mut all = Vec::new();
        let (mut quiet, mut missing, mut untold) = (0, talk.is_some(), message);
        let patience = |missing, untold| match (missing, untold) {
            (_, true) => SERVICE_GIVES_UP,
            (true, false) => GIVES_UP,
            (false, false) => QUIET,
        };
        while quiet < patience(missing, untold) {
            self.round()?;
            if cm {
                self.cm_round()?;
            }
            let caller = self.caller;
            let news = self.peer.station.take(|p| p.headers.ip.dst() == caller)?;
            quiet = if news.is_empty() { quiet + 1 } else { 0 };
            if let Some(talk) = &mut talk {
                let own = talk.qp.own_qpn;
                missing &= !news.iter().any(|p| p.headers.bth.dest_qp() == own && p.opcode.is_response());
                untold &= !news.iter().any(|p| is_request(&talk.qp, p) || is_fatal(talk, p));
                self.acknowledge(talk, &news)?;
            }
            all.extend(news);
        }
        Ok(all)
    }

    /// Acknowledges what the device has asked for.
    fn acknowledge(&mut self, talk: &mut Talk, news: &[Packet]) -> Result<(), Failure> {
        let mut newest = None;
        for packet in news {
            if !is_request(&talk.qp, packet) {
                continue;
            }
            if packet.headers.bth.psn() == talk.qp.expected {
                talk.qp.expected = talk.qp.expected.add(1);
            }
            newest = Some(talk.qp.expected.sub(1));
        }
        match newest {
            Some(psn) => self.peer.acknowledge(&talk.qp, psn, Syndrome::ACK),
            None => Ok(()),
        }
    }

    /// All messages of connection management that the device sends in answer.
    ///
    /// # Errors
    /// The bystander is not answered.
    pub(super) fn cm_answers(&mut self) -> Result<Vec<Packet>, Failure> {
        self.settle(None, true, false)
    }

    /// The answers on a connection, in words. Moves its PSN on past what the device has taken. If there is a `message` among what
    /// was sent, the service answers that, maybe after it has cleared memory.
    ///
    /// # Errors
    /// The bystander is not answered.
    pub(super) fn answers(&mut self, talk: &mut Talk, service: bool, message: bool) -> Result<Vec<String>, Failure> {
        // A request that was made before is answered with the newest acknowledgement.
        let nothing = Ext::Reth(Reth::new(RemoteAddr(0), Rkey(0), 0));
        self.peer.send(&talk.qp, Opcode::WriteOnly, talk.qp.next.sub(1), nothing, &[])?;
        if service {
            self.service_round()?;
        }
        let packets = self.settle(Some(&mut *talk), false, message)?;
        let fatal = packets.iter().any(|p| is_fatal(talk, p));
        let mut newest = Newest::default();
        let mut words = Vec::new();
        let mut requests = BTreeMap::new();
        for packet in &packets {
            if let Some(text) = cm_in_words(packet) {
                // A device closes a queue pair in error, at once or a while later.
                talk.over |= text == "DREQ";
                words.extend((text != "DREQ" || !fatal).then_some(text));
            } else if packet.headers.bth.dest_qp() != talk.qp.own_qpn {
                words.push(format!("{:?} for another queue pair", packet.opcode));
            } else if packet.opcode.is_response() {
                let word = response_in_words(talk, packet, &mut newest);
                // What is asked for twice at once may be answered once or twice.
                words.extend(word.filter(|word| !words.contains(word)));
            } else if packet.opcode == Opcode::Cnp {
                words.push("CNP".into());
            } else {
                let index = packet.headers.bth.psn().distance(talk.expected_start);
                requests.entry(index).or_insert_with(|| request_in_words(talk, packet));
            }
        }
        talk.over |= fatal;
        if let Some(taken) = newest.taken {
            // A gap that is still open; one that was closed may have been reported or not.
            let gap = newest.gap.filter(|(psn, _)| psn.distance(taken) > 0);
            // An acknowledgement may be merged with a NAK behind it.
            let msn = newest.msn.filter(|_| !talk.over && gap.is_none());
            words.extend(gap.map(|(_, text)| text));
            words.insert(0, format!("taken to {}, msn {msn:?}", taken.distance(talk.start)));
            if taken.distance(talk.qp.next) >= 0 {
                talk.qp.next = taken.add(1);
            }
        }
        words.extend(requests.into_iter().map(|(index, text)| format!("{index}: {text}")));
        Ok(words)
    }

    /// Ends the connection of a case. If the device does so too, its DREQ and this one cross.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn close(&mut self, talk: &Talk) -> Result<(), Failure> {
        self.peer.disconnect_only(&talk.qp)?;
        let caller = self.caller;
        self.peer.station.take(|p| p.headers.ip.dst() == caller).map(|_| ())
    }
}

fn is_request(qp: &Qp, packet: &Packet) -> bool {
    packet.headers.bth.dest_qp() == qp.own_qpn && !packet.opcode.is_response() && packet.opcode != Opcode::Cnp
}

/// A NAK after which the queue pair is in error.
fn is_fatal(talk: &Talk, packet: &Packet) -> bool {
    packet.headers.bth.dest_qp() == talk.qp.own_qpn
        && matches!(packet.headers.ext, Ext::Aeth(aeth)
            if matches!(aeth.syndrome(), Syndrome::Nak(code) if code != NakCode::PsnSequenceError))
}

/// How far the device has executed requests, whichever packets acknowledge them.
#[derive(Default)]
struct Newest {
    /// The last PSN that it has taken.
    taken: Option<Psn>,
    /// The MSN of the last acknowledgement.
    msn: Option<u32>,
    /// The last gap that it has reported: its PSN, and the text.
    gap: Option<(Psn, String)>,
}

impl Newest {
    fn taken(&mut self, psn: Psn) {
        if self.taken.is_none_or(|before| psn.distance(before) > 0) {
            self.taken = Some(psn);
        }
    }
}

/// A response in words, unless it is one of those that may be merged.
fn response_in_words(talk: &Talk, packet: &Packet, newest: &mut Newest) -> Option<String> {
    let psn = packet.headers.bth.psn();
    let at = psn.distance(talk.start);
    match packet.headers.ext {
        Ext::Aeth(aeth) if packet.opcode == Opcode::Acknowledge => match aeth.syndrome() {
            Syndrome::Ack(_) => {
                newest.taken(psn);
                newest.msn = Some(aeth.msn());
                None
            }
            refusal => {
                newest.taken(psn.sub(1));
                let words = format!("{refusal:?} {at}");
                if refusal == Syndrome::Nak(NakCode::PsnSequenceError) {
                    // With selective repeat the MSN is the PSN that showed the gap.
                    let cause = talk
                        .qp
                        .agreed
                        .extensions
                        .contains(Extensions::SELECTIVE_REPEAT)
                        .then(|| Psn::new(aeth.msn()).distance(talk.start));
                    newest.gap = Some((psn, format!("{words} {cause:?}")));
                    return None;
                }
                Some(format!("{words} msn {}", aeth.msn()))
            }
        },
        Ext::AethAtomic(_, ack) => {
            newest.taken(psn);
            Some(format!("atomic {at}: {:#x}", ack.original()))
        }
        _ => {
            newest.taken(psn);
            Some(format!("{:?} {at}: {} bytes, {}", packet.opcode, packet.payload.len(), digest(&packet.payload)))
        }
    }
}

fn request_in_words(talk: &Talk, packet: &Packet) -> String {
    let head = format!("{:?}{}", packet.opcode, if packet.headers.bth.solicited() { ", solicited" } else { "" });
    let place = |reth: &Reth| {
        let region = (0..64).find(|&i| own_address(i) == reth.va());
        let key = if reth.rkey() == OWN_RKEY { "" } else { ", another key" };
        format!("region {region:?}{key}, {} bytes announced", reth.dma_len())
    };
    let body = || format!("{} bytes, {}", packet.payload.len(), digest(&packet.payload));
    match packet.headers.ext {
        Ext::Reth(reth) => format!("{head}: {}; {}", place(&reth), body()),
        Ext::RethImm(reth, imm) => format!("{head}: {}; immediate {:#x}; {}", place(&reth), imm.get(), body()),
        Ext::Imm(imm) => format!("{head}: immediate {:#x}; {}", imm.get(), body()),
        _ => match mrsp::Message::parse(&packet.payload) {
            Ok(mrsp::Message::A(given)) => {
                let sizes: Vec<u32> = given.iter().map(mrsp::ARegion::size).collect();
                let known = given.iter().any(|r| talk.old.iter().any(|old| old.rkey == r.rkey()));
                format!("{head}: A {sizes:?}{}", if known { ", with an old key" } else { "" })
            }
            Ok(mrsp::Message::Err(code)) => format!("{head}: ERR {code}"),
            _ => format!("{head}: {} bytes", packet.payload.len()),
        },
    }
}

/// A CM message in words.
pub(super) fn cm_in_words(packet: &Packet) -> Option<String> {
    if packet.opcode != Opcode::UdSendOnly {
        return None;
    }
    Some(match Message::parse(&packet.payload) {
        Ok((_, Message::Rep(rep))) => format!(
            "REP: responder resources {}, initiator depth {}, rnr retry {}, extensions {:?}",
            rep.responder_resources.min(RESOURCES),
            rep.initiator_depth.min(RESOURCES),
            rep.rnr_retry_count(),
            // Windows are a program's, so a device in RTL has none.
            Agreement::find(&rep.private_data).map(|agreed| agreed.extensions.without(Extensions::WINDOWS))
        ),
        Ok((_, Message::Rej(rej))) => format!(
            "REJ {} of message {}, information {:?}",
            rej.reason().0,
            rej.message_rejected(),
            // A GUID, or a proposal that need not be made.
            if matches!(rej.reason(), RejReason::TIMEOUT | RejReason::INVALID_GID) { &[] } else { rej.information() }
        ),
        Ok((_, Message::Dreq(_))) => "DREQ".into(),
        Ok((_, Message::Drep(_))) => "DREP".into(),
        Ok((_, Message::Mra(mra))) => format!("MRA of message {}", mra.message_mraed()),
        Ok((_, Message::Rtu(_))) => "RTU".into(),
        Ok((_, Message::Req(_))) => "REQ".into(),
        Err(error) => format!("unknown MAD: {error}"),
    })
}

/// Bytes in a word.
fn digest(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "none".into();
    }
    // FNV-1a
    let sum = bytes.iter().fold(0x811c_9dc5u32, |sum, b| (sum ^ u32::from(*b)).wrapping_mul(0x0100_0193));
    format!("{sum:08x}")
}
