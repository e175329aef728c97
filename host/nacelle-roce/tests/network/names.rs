// SPDX-License-Identifier: Apache-2.0
//! CM messages act on the connection that their names, their address and its state allow, or on none.

use crate::{
    raw::{self, PEER_QPN, Raw, TO_PEER, endpoint, mad, options, req},
    sim::{PORT, ip, mac},
};
use nacelle_roce::{
    ConnId, ConnectFailure, ConnectOptions, Discard, DisconnectReason, Endpoint, Event, Instant, Phase,
    wire::{
        Psn, Qpn, RoceHeaders,
        arp::ArpPacket,
        bth::{Bth, Deth, Opcode},
        cm::{self, Drep, Dreq, IpCm, Message, Mra, PathMtu, Rej, RejReason, Rep, Req, Rtu},
        roce::Flow,
        transport::Ext,
    },
};
use std::time::Duration;

const SEC: Duration = Duration::from_secs(1);
const NOW: Instant = Instant::from_nanos(1);
/// What the raw peer calls its side of a connection.
const THEIRS: u32 = 0x0bad_cafe;

/// A CM message of a station that is not the peer.
fn stranger(tid: u64, message: Message<'_>) -> Vec<u8> {
    let ext = Ext::Deth(Deth::new(cm::GSI_Q_KEY, Qpn::GSI));
    let flow = Flow::new(mac(8), mac(0), ip(8), ip(0), 0xdead);
    let headers = RoceHeaders::new(&flow, Bth::new(Opcode::UdSendOnly, Qpn::GSI, Psn::new(0)), ext);
    raw::frame(&headers, &message.to_mad(tid))
}

/// Asks the raw peer for a connection: the connection, the transaction and the REQ.
fn ask(ep: &mut Endpoint, options: ConnectOptions) -> (ConnId, u64, Box<Req>) {
    let conn = ep.connect(NOW, ip(1), PORT, options).unwrap();
    let mut buf = [0; 60];
    raw::drain(ep, NOW);
    ArpPacket::request(mac(0), ip(0), ip(1)).reply(mac(1)).write(&mut buf).unwrap();
    ep.handle(NOW, &buf).unwrap();
    let (tid, req) = asked(ep);
    (conn, tid, req)
}

/// The REQ that the endpoint has to send.
fn asked(ep: &mut Endpoint) -> (u64, Box<Req>) {
    let sent = raw::drain(ep, NOW).pop().unwrap();
    let (tid, Message::Req(req)) = Message::parse(&sent.payload).unwrap() else { panic!("{sent:?}") };
    (tid, Box::new(*req))
}

/// The raw peer has asked for a connection, and the application has not answered.
fn undecided() -> (Endpoint, ConnId) {
    let mut ep = endpoint(70);
    ep.transport.listen(PORT);
    ep.handle(NOW, &mad(1, Message::Req(&req(TO_PEER)))).unwrap();
    let Some(Event::ConnectRequest { conn, .. }) = ep.transport.poll_event() else { panic!() };
    (ep, conn)
}

/// The same, and the application has accepted.
fn accepted() -> (Endpoint, ConnId, u32) {
    let (mut ep, conn) = undecided();
    ep.transport.accept(NOW, conn, options()).unwrap();
    let rep = raw::drain(&mut ep, NOW).pop().unwrap();
    let (_, Message::Rep(rep)) = Message::parse(&rep.payload).unwrap() else { panic!() };
    (ep, conn, rep.local_comm_id.get())
}

fn phase(ep: &Endpoint, conn: ConnId) -> Phase {
    ep.transport.connection(conn).unwrap().phase
}

/// Messages with the right identifiers from another address have no effect.
#[test]
fn strangers_reach_no_connection() {
    // The side that asked.
    let mut ep = endpoint(71);
    let (conn, tid, sent) = ask(&mut ep, options());
    let ours = sent.local_comm_id.get();
    for message in [
        Message::Rep(&Rep::new(THEIRS, ours, PEER_QPN, TO_PEER)),
        Message::Rej(&Rej::new(THEIRS, ours, 0, RejReason::CONSUMER)),
        Message::Mra(&Mra::new(THEIRS, ours, 0, 20)),
    ] {
        assert_eq!(ep.handle(NOW, &stranger(tid, message)), Err(Discard::CmUnexpected), "{message:?}");
    }
    assert_eq!((phase(&ep, conn), ep.transport.poll_event()), (Phase::ReqSent, None));
    // The side that was asked.
    let (mut ep, conn, ours) = accepted();
    for message in [
        Message::Rtu(&Rtu::new(THEIRS, ours)),
        Message::Rej(&Rej::new(THEIRS, ours, 1, RejReason::CONSUMER)),
        Message::Rej(&Rej::new(THEIRS, 0, 1, RejReason::TIMEOUT)),
        Message::Mra(&Mra::new(THEIRS, ours, 1, 20)),
    ] {
        assert_eq!(ep.handle(NOW, &stranger(1, message)), Err(Discard::CmUnexpected), "{message:?}");
    }
    assert_eq!((phase(&ep, conn), ep.transport.poll_event()), (Phase::RepSent, None));
    // The end. A DREQ from another address is answered, without effect.
    let mut raw = Raw::passive();
    raw.ep.handle(raw.now, &stranger(1, Message::Dreq(&Dreq::new(THEIRS, raw.comm_id, raw.qpn)))).unwrap();
    assert_eq!((phase(&raw.ep, raw.conn), raw.ep.transport.poll_event()), (Phase::Established, None));
    raw.ep.transport.disconnect(raw.now, raw.conn);
    let drep = stranger(1, Message::Drep(&Drep::new(THEIRS, raw.comm_id)));
    assert_eq!(raw.ep.handle(raw.now, &drep), Err(Discard::CmUnexpected));
    assert_eq!((phase(&raw.ep, raw.conn), raw.ep.transport.poll_event()), (Phase::DreqSent, None));
}

/// A name of the peer's that is not this connection's, from the peer.
#[test]
fn both_names_count() {
    let (mut ep, conn, ours) = accepted();
    assert_eq!(ep.handle(NOW, &mad(1, Message::Rtu(&Rtu::new(THEIRS ^ 1, ours)))), Err(Discard::CmUnexpected));
    assert_eq!(phase(&ep, conn), Phase::RepSent);
    let mut raw = Raw::passive();
    raw.ep.transport.disconnect(raw.now, raw.conn);
    let drep = mad(1, Message::Drep(&Drep::new(THEIRS ^ 1, raw.comm_id)));
    assert_eq!(raw.ep.handle(raw.now, &drep), Err(Discard::CmUnexpected));
    raw.ep.handle(raw.now, &mad(1, Message::Drep(&Drep::new(THEIRS, raw.comm_id)))).unwrap();
    assert!(matches!(raw.ep.transport.poll_event(), Some(Event::Disconnected { reason: DisconnectReason::Local, .. })));
}

/// An answer to an earlier transaction, or of another connection, is not taken for the one that is due.
#[test]
fn replies_belong_to_their_request() {
    let mut ep = endpoint(72);
    let (conn, tid, sent) = ask(&mut ep, options());
    let ours = sent.local_comm_id.get();
    let rep = |theirs| Rep::new(theirs, ours, PEER_QPN, TO_PEER);
    assert_eq!(ep.handle(NOW, &mad(tid ^ 1, Message::Rep(&rep(THEIRS)))), Err(Discard::CmUnexpected));
    let rej = Rej::new(THEIRS, ours, 0, RejReason::CONSUMER);
    assert_eq!(ep.handle(NOW, &mad(tid ^ 1, Message::Rej(&rej))), Err(Discard::CmUnexpected));
    assert_eq!((phase(&ep, conn), ep.transport.poll_event()), (Phase::ReqSent, None));
    ep.handle(NOW, &mad(tid, Message::Rep(&rep(THEIRS)))).unwrap();
    assert!(matches!(ep.transport.poll_event(), Some(Event::Connected { .. })));
    raw::drain(&mut ep, NOW);
    // Once connected, only the same connection's REP gets the RTU again.
    assert_eq!(ep.handle(NOW, &mad(tid, Message::Rep(&rep(THEIRS ^ 1)))), Err(Discard::CmUnexpected));
    assert!(raw::drain(&mut ep, NOW).is_empty());
}

/// A peer that times out before it has this side's identifier rejects with its own identifier alone (IBTA 12.6.7).
#[test]
fn a_reject_without_this_sides_name() {
    let rej = |theirs| mad(1, Message::Rej(&Rej::new(theirs, 0, 2, RejReason::TIMEOUT)));
    let (mut ep, conn) = undecided();
    assert_eq!(ep.handle(NOW, &rej(THEIRS ^ 1)), Err(Discard::CmUnexpected));
    assert_eq!(ep.transport.poll_event(), None);
    ep.handle(NOW, &rej(THEIRS)).unwrap();
    let Some(Event::ConnectFailed { conn: failed, reason }) = ep.transport.poll_event() else { panic!() };
    assert_eq!(failed, conn);
    assert!(matches!(reason, ConnectFailure::Rejected { reason: RejReason::TIMEOUT, .. }), "{reason:?}");
    // On the active side, the peer has both identifiers from the REQ.
    let mut raw = Raw::active(options());
    assert_eq!(raw.ep.handle(raw.now, &rej(THEIRS)), Err(Discard::CmUnexpected));
    assert_eq!(phase(&raw.ep, raw.conn), Phase::Established);
}

/// A reject in each phase: of the request, of the reply, of a connection, of a disconnect request.
#[test]
fn rejects_in_every_phase() {
    let (mut ep, conn, ours) = accepted();
    ep.handle(NOW, &mad(1, Message::Rej(&Rej::new(THEIRS, ours, 1, RejReason::CONSUMER)))).unwrap();
    assert!(matches!(
        ep.transport.poll_event(),
        Some(Event::ConnectFailed { reason: ConnectFailure::Rejected { .. }, .. })
    ));
    assert_eq!(ep.transport.connection(conn), None);

    let mut raw = Raw::passive();
    raw.ep.transport.disconnect(raw.now, raw.conn);
    let rej = Rej::new(THEIRS, raw.comm_id, 2, RejReason::CONSUMER);
    raw.ep.handle(raw.now, &mad(1, Message::Rej(&rej))).unwrap();
    assert!(matches!(raw.ep.transport.poll_event(), Some(Event::Disconnected { reason: DisconnectReason::Local, .. })));
    assert_eq!(raw.ep.transport.connection(raw.conn), None);
}

/// A peer that cannot take the path MTU names one that it can; this side asks again if that is smaller.
#[test]
fn a_smaller_path_mtu_is_tried() {
    let mut ep = endpoint(73);
    let (conn, tid, sent) = ask(&mut ep, ConnectOptions { path_mtu: Some(PathMtu::Mtu512), ..options() });
    assert_eq!(sent.path_mtu(), PathMtu::Mtu512.code());
    let refuse = |tid, sent: &Req, reason, named: PathMtu| {
        let mut rej = Rej::new(0, sent.local_comm_id.get(), 0, reason);
        rej.set_information(&[named.code()]);
        mad(tid, Message::Rej(&rej))
    };
    let first = refuse(tid, &sent, RejReason::INVALID_PATH_MTU, PathMtu::Mtu256);
    ep.handle(NOW, &first).unwrap();
    let (again, smaller) = asked(&mut ep);
    assert_eq!((smaller.path_mtu(), smaller.local_comm_id), (PathMtu::Mtu256.code(), sent.local_comm_id));
    assert_ne!(again, tid, "another request, so that answers to the first are not taken for its own");
    assert_eq!(ep.handle(NOW, &first), Err(Discard::CmUnexpected));
    assert_eq!((phase(&ep, conn), ep.transport.poll_event()), (Phase::ReqSent, None));
    // The same or a larger one, or the same information for another reason, ends it.
    for (reason, named) in [
        (RejReason::INVALID_PATH_MTU, PathMtu::Mtu512),
        (RejReason::INVALID_PATH_MTU, PathMtu::Mtu1024),
        (RejReason::CONSUMER, PathMtu::Mtu256),
    ] {
        let mut ep = endpoint(74);
        let (_, tid, sent) = ask(&mut ep, ConnectOptions { path_mtu: Some(PathMtu::Mtu512), ..options() });
        ep.handle(NOW, &refuse(tid, &sent, reason, named)).unwrap();
        let Some(Event::ConnectFailed { reason: failure, .. }) = ep.transport.poll_event() else { panic!() };
        assert!(matches!(failure, ConnectFailure::Rejected { reason: r, .. } if r == reason), "{failure:?}");
        assert!(raw::drain(&mut ep, NOW).is_empty());
    }
}

/// What this side asked for and what the peer asks for are different things, even under one name.
#[test]
fn a_request_under_the_name_of_a_past_connection() {
    let mut raw = Raw::active(options());
    raw.ep.transport.listen(PORT);
    raw.dreq().unwrap();
    assert!(matches!(raw.ep.transport.poll_event(), Some(Event::Disconnected { .. })));
    raw.ep.handle(raw.now, &mad(0, Message::Req(&req(TO_PEER)))).unwrap();
    assert!(matches!(raw.ep.transport.poll_event(), Some(Event::ConnectRequest { .. })));
    // And beside a connection that this side asked for and that still is.
    let mut raw = Raw::active(options());
    raw.ep.transport.listen(PORT);
    let mut other = Req::new(THEIRS, PORT, Qpn::new(0x999), TO_PEER, IpCm::new(5, ip(1), ip(0)));
    other.set_path_mtu(1);
    raw.ep.handle(raw.now, &mad(7, Message::Req(&other))).unwrap();
    assert!(matches!(raw.ep.transport.poll_event(), Some(Event::ConnectRequest { .. })));
}

/// The MRA is sent when half of the peer's timeout has passed, not before.
#[test]
fn patience_is_asked_for_at_half_time() {
    let mut ep = endpoint(75);
    ep.transport.listen(PORT);
    let mut ask = req(TO_PEER);
    ask.set_remote_cm_timeout(20); // 4.096 us * 2^20
    let wait = Duration::from_nanos(4096 << 20);
    ep.handle(NOW, &mad(1, Message::Req(&ask))).unwrap();
    assert_eq!(ep.next_deadline(), Some(NOW + wait / 2));
    assert!(raw::drain(&mut ep, NOW + (wait / 2 - Duration::from_nanos(1))).is_empty());
    let sent = raw::drain(&mut ep, NOW + wait / 2);
    assert!(matches!(Message::parse(&sent[0].payload), Ok((1, Message::Mra(_)))));
    // The application has a minute; then the request is refused, once.
    assert_eq!(ep.next_deadline(), Some(NOW + SEC * 60));
    let sent = raw::drain(&mut ep, NOW + SEC * 60);
    assert!(
        matches!(Message::parse(&sent[0].payload), Ok((1, Message::Rej(rej))) if rej.reason() == RejReason::TIMEOUT)
    );
    assert_eq!(sent.len(), 1);
}

/// An adapter is named by the EUI-64 of its Ethernet address (02:00:00:00:00:01), in the REQ and the REP alike.
#[test]
fn adapters_have_their_guid() {
    let (_, _, sent) = ask(&mut endpoint(76), options());
    assert_eq!(sent.local_ca_guid.get(), 0x0000_00ff_fe00_0001);
    let (mut ep, conn) = undecided();
    ep.transport.accept(NOW, conn, options()).unwrap();
    let rep = raw::drain(&mut ep, NOW).pop().unwrap();
    let (_, Message::Rep(rep)) = Message::parse(&rep.payload).unwrap() else { panic!() };
    assert_eq!(rep.local_ca_guid.get(), 0x0000_00ff_fe00_0001);
}
