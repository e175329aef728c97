// SPDX-License-Identifier: Apache-2.0
//! Connection management, as the side that is called; and a connection that the device has opened (IBTA 12.9, annex A11).

use super::{Rule, nacelle, not_linux, standard};
use crate::{
    Failure,
    failure::ensure,
    peer::{Answer, Peer, Terms},
};
use nacelle_wire::{
    Psn, Qpn, RemoteAddr, Rkey, RoceHeaders,
    bth::{Bth, Deth, Opcode, Reth, Syndrome},
    cm::{self, Dreq, Message, RejReason, Rep, Rtu},
    transport::Ext,
};

pub(super) const RULES: &[Rule] = &[
    standard("cm.connects_and_disconnects", "IBTA 12.9.7", connects),
    standard("cm.reply_has_the_transaction_id_of_the_request", "IBTA 12.6", transaction),
    not_linux(
        "cm.repeated_req_gets_the_same_answer",
        "IBTA 12.9.8.3",
        "it repeats its answer when its own time is over, not when it is asked again",
        repeated_req,
    ),
    standard("cm.rep_is_repeated_until_the_rtu", "IBTA 12.9.8.7", repeated_rep),
    standard("cm.packet_on_the_connection_replaces_the_rtu", "IBTA 12.9.7.2", no_rtu),
    standard("cm.port_without_a_service_is_rejected", "IBTA 12.6.7.2", no_service),
    standard("cm.repeated_dreq_is_answered_again", "IBTA 12.9.8.8", repeated_dreq),
    nacelle("cm.duplicate_req_gets_its_reply_in_any_transaction", "cm: messages", known_req),
    nacelle("cm.dreq_for_another_queue_pair_is_dropped", "cm: messages", wrong_dreq),
    nacelle("cm.unexpected_rep_is_rejected", "IBTA 12.9.8.3; cm: messages", unasked_rep),
    nacelle("cm.datagram_of_another_queue_pair_is_dropped", "IBTA 13.5.3.3; cm: limits", not_gsi),
    standard("cm.dreq_of_an_unknown_connection_is_answered", "IBTA 12.9.8.8", unknown_dreq),
    standard("cm.queue_pair_is_unusable_after_disconnection", "IBTA 12.9.7", dead),
    standard("cm.connections_can_be_established_repeatedly", "IBTA 12.9.7", again),
    nacelle("cm.connection_of_the_device_answers_a_keep_alive", "IBTA 9.7.4.1.4", own_keep_alive),
    standard("cm.several_connections_coexist", "IBTA 12.9.7", beside),
];

fn connects(peer: &mut Peer) -> Result<(), Failure> {
    let qp = peer.connect(&Terms::default())?;
    peer.disconnect(&qp)
}

fn transaction(peer: &mut Peer) -> Result<(), Failure> {
    let terms = Terms::default();
    let (tid, req) = peer.req(&terms);
    peer.send_cm(tid, Message::Req(&req))?;
    let mad = peer.expect_cm("REP", |_, m| matches!(m, Message::Rep(r) if r.remote_comm_id == req.local_comm_id))?;
    let (answered, message) = Message::parse(&mad)?;
    ensure!(answered == tid, "the REP has transaction {answered:#x} instead of {tid:#x}");
    let Message::Rep(rep) = message else { return Err(Failure::Missing("REP")) };
    let qp = peer.accepted(tid, &req, Answer::Rep(Box::new(*rep)))?;
    peer.send_cm(tid, Message::Rtu(&Rtu::new(qp.own_comm_id, qp.comm_id)))?;
    peer.disconnect(&qp)
}

fn repeated_req(peer: &mut Peer) -> Result<(), Failure> {
    let terms = Terms::default();
    let (tid, req) = peer.req(&terms);
    let first = peer.ask(tid, &req)?;
    let first = peer.accepted(tid, &req, first)?;
    let second = peer.ask(tid, &req)?;
    let second = peer.accepted(tid, &req, second)?;
    ensure!(
        first.comm_id == second.comm_id && first.qpn == second.qpn && first.next == second.next,
        "the second REP is about another connection"
    );
    peer.send_cm(tid, Message::Rtu(&Rtu::new(first.own_comm_id, first.comm_id)))?;
    peer.disconnect(&first)
}

fn repeated_rep(peer: &mut Peer) -> Result<(), Failure> {
    let (tid, mut req) = peer.req(&Terms::default());
    req.set_local_cm_timeout(15); // 134 ms
    req.set_remote_cm_timeout(15);
    let answer = peer.ask(tid, &req)?;
    let qp = peer.accepted(tid, &req, answer)?;
    let patience = peer.station.patience;
    peer.station.patience = patience * 5; // Linux waits for its own estimate of the time, not for ours
    let again =
        peer.expect_cm("second REP", |_, m| matches!(m, Message::Rep(r) if r.local_comm_id.get() == qp.comm_id));
    peer.station.patience = patience;
    again?;
    peer.send_cm(tid, Message::Rtu(&Rtu::new(qp.own_comm_id, qp.comm_id)))?;
    peer.disconnect(&qp)
}

fn no_rtu(peer: &mut Peer) -> Result<(), Failure> {
    let (tid, req) = peer.req(&Terms::default());
    let answer = peer.ask(tid, &req)?;
    let mut qp = peer.accepted(tid, &req, answer)?;
    peer.set_up_regions(&mut qp, &[64])?;
    peer.disconnect(&qp)
}

fn no_service(peer: &mut Peer) -> Result<(), Failure> {
    let port = peer.port;
    peer.port = 1;
    let (tid, req) = peer.req(&Terms::default());
    peer.port = port;
    match peer.ask(tid, &req)? {
        Answer::Rej(rej) => {
            ensure!(
                rej.reason() == RejReason::INVALID_SERVICE_ID || rej.reason() == RejReason::CONSUMER,
                "the reason is {}",
                rej.reason().0
            );
            Ok(())
        }
        Answer::Rep(_) => Err(Failure::Content("a port without a service accepted the connection".into())),
    }
}

fn repeated_dreq(peer: &mut Peer) -> Result<(), Failure> {
    let qp = peer.connect(&Terms::default())?;
    peer.disconnect(&qp)?;
    peer.disconnect(&qp)
}

fn known_req(peer: &mut Peer) -> Result<(), Failure> {
    let (tid, req) = peer.req(&Terms::default());
    let first = peer.ask(tid, &req)?;
    let first = peer.accepted(tid, &req, first)?;
    let second = peer.ask(tid + 1, &req)?;
    let second = peer.accepted(tid, &req, second)?;
    ensure!(first.comm_id == second.comm_id && first.qpn == second.qpn, "the second REP is about another connection");
    peer.disconnect(&first)
}

/// The message gets no reply: the first reply is that to a DREQ of an unknown connection.
fn unanswered(peer: &mut Peer) -> Result<(), Failure> {
    let tid = 0x7777;
    let unknown = Dreq::new(0x1234_5678, 0x8765_4321, Qpn::new(0x1234));
    peer.send_cm(tid, Message::Dreq(&unknown))?;
    let mad = peer.expect_cm("DREP", |_, _| true)?;
    let (answered, _) = Message::parse(&mad)?;
    ensure!(answered == tid, "it is answered, in transaction {answered:#x}");
    Ok(())
}

fn wrong_dreq(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[64])?;
    let other = Qpn::new(qp.qpn.get() ^ 1);
    peer.send_cm(qp.tid + 9, Message::Dreq(&Dreq::new(qp.own_comm_id, qp.comm_id, other)))?;
    unanswered(peer)?;
    peer.expect_silence(&mut qp)?;
    peer.disconnect(&qp)
}

fn unasked_rep(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect_with(&Terms::default(), &[64])?;
    // Of a connection that the device has not asked for, and of none at all.
    for (own, device) in [(qp.own_comm_id, qp.comm_id), (0x1357_9bdf, 0x0246_8ace)] {
        let rep = Rep::new(own, device, Qpn::new(0x99), Psn::new(5));
        peer.send_cm(0x99, Message::Rep(&rep))?;
        let mad = peer.expect_cm("REJ", |_, m| matches!(m, Message::Rej(r) if r.remote_comm_id.get() == own))?;
        let Message::Rej(rej) = Message::parse(&mad)?.1 else { return Err(Failure::Missing("REJ")) };
        ensure!(rej.reason() == RejReason::INVALID_COMM_ID, "the reason is {}", rej.reason().0);
    }
    peer.expect_silence(&mut qp)?;
    peer.disconnect(&qp)
}

fn not_gsi(peer: &mut Peer) -> Result<(), Failure> {
    let (tid, req) = peer.req(&Terms::default());
    for (q_key, source) in [(cm::GSI_Q_KEY, 2), (cm::GSI_Q_KEY, 0xff_ffff), (0x1234, 1)] {
        let ext = Ext::Deth(Deth::new(q_key, Qpn::new(source)));
        let bth = Bth::new(Opcode::UdSendOnly, Qpn::GSI, Psn::new(0));
        let headers = RoceHeaders::new(&peer.station.flow(), bth, ext);
        peer.station.send(&headers, &Message::Req(&req).to_mad(tid))?;
    }
    unanswered(peer)
}

fn unknown_dreq(peer: &mut Peer) -> Result<(), Failure> {
    let mut qp = peer.connect(&Terms::default())?;
    peer.disconnect(&qp)?;
    qp.comm_id ^= 0x5a5a_0000;
    qp.own_comm_id ^= 0x0001_0000;
    peer.disconnect(&qp)
}

fn dead(peer: &mut Peer) -> Result<(), Failure> {
    let mut witness = peer.connect(&Terms::default())?;
    let qp = peer.connect(&Terms::default())?;
    peer.disconnect(&qp)?;
    peer.send(&qp, Opcode::WriteOnly, qp.next, Ext::Reth(Reth::new(RemoteAddr(0), Rkey(0), 0)), &[])?;
    peer.expect_silence(&mut witness)?;
    let own = qp.own_qpn;
    if let Some(packet) = peer.station.wait(core::time::Duration::ZERO, |p| {
        p.headers.bth.dest_qp() == own
            && matches!(p.headers.ext, Ext::Aeth(a) if matches!(a.syndrome(), Syndrome::Ack(_)))
    })? {
        return Err(Failure::unexpected("nothing", &packet));
    }
    peer.disconnect(&witness)
}

fn again(peer: &mut Peer) -> Result<(), Failure> {
    for _ in 0..40 {
        let qp = peer.connect_with(&Terms::default(), &[64])?;
        peer.disconnect(&qp)?;
    }
    Ok(())
}

fn beside(peer: &mut Peer) -> Result<(), Failure> {
    let mut qps = Vec::new();
    for _ in 0..8 {
        qps.push(peer.connect_with(&Terms::default(), &[64])?);
    }
    for qp in qps.iter_mut().rev() {
        peer.expect_silence(qp)?;
    }
    for qp in &qps {
        peer.disconnect(qp)?;
    }
    Ok(())
}

/// A WRITE of 0 bytes: the keep-alive of both devices.
fn own_keep_alive(peer: &mut Peer) -> Result<(), Failure> {
    let mut called = peer.called(1024, 1)?;
    peer.expect_silence(&mut called.qp)?;
    peer.hang_up(&called)
}
