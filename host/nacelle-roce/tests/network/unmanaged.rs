// SPDX-License-Identifier: Apache-2.0
//! Queue pairs without connection management: states, transitions, draining; protection domains, listings and reset.

use crate::{
    raw::{PEER_QPN, Raw, TO_ENDPOINT, TO_PEER, options},
    sim::{Net, ip, path, region_bytes},
};
use nacelle_roce::{
    Access, ConnId, ConnectOptions, Discard, DisconnectReason, DomainError, Event, NetworkEvent, PathError, Phase,
    PostError, ProtectionDomain, QpError, QpModify, QpState, RecvWr, RegisterError, Rtr, Rts, Scope, SendWr, WcOpcode,
    WcStatus,
    wire::{
        Psn, Qpn, RemoteAddr, Rkey,
        bth::{Opcode, Reth, Syndrome},
        cm::PathMtu,
        transport::Ext,
    },
};
use std::{net::IpAddr, time::Duration};

const LONG: Duration = Duration::from_secs(10);

fn rtr(remote: Qpn) -> Rtr {
    Rtr::new(path(0, 1), remote, TO_ENDPOINT, PathMtu::Mtu256)
}

fn state(raw: &Raw, id: ConnId) -> QpState {
    let info = raw.ep.transport.connection(id).unwrap();
    assert_eq!(info.phase, Phase::Unmanaged(info.phase.qp_state()));
    info.phase.qp_state()
}

/// Every transition from every state: the verbs have exactly these.
#[test]
fn transitions() {
    use QpState::*;
    let rtr = QpModify::Rtr(rtr(PEER_QPN));
    let rts = QpModify::Rts(self::Rts::new(TO_PEER));
    let steps = [QpModify::Init, rtr, rts, QpModify::Sqd];
    let states = [Reset, Init, Rtr, Rts, Sqd, Err];
    let all = [
        (QpModify::Reset, Reset, &states[..]),
        (QpModify::Init, Init, &[Reset, Init]),
        (rtr, Rtr, &[Init]),
        (rts, Rts, &[Rtr]),
        (QpModify::Sqd, Sqd, &[Rts]),
        (QpModify::Resume, Rts, &[Sqd]),
        (QpModify::Err, Err, &states),
    ];
    for (depth, from) in states.into_iter().enumerate() {
        for (modify, to, allowed) in all {
            let mut raw = Raw::passive();
            let id = raw.ep.transport.create_qp(raw.now, options()).unwrap();
            if from == Err {
                raw.ep.transport.modify_qp(raw.now, id, QpModify::Err).unwrap();
            } else {
                steps[..depth].iter().for_each(|step| raw.ep.transport.modify_qp(raw.now, id, *step).unwrap());
            }
            assert_eq!(state(&raw, id), from);
            let result = raw.ep.transport.modify_qp(raw.now, id, modify);
            let expected = if allowed.contains(&from) { Ok(()) } else { Result::Err(QpError::Transition(from)) };
            assert_eq!(result, expected, "{from:?} {modify:?}");
            assert_eq!(state(&raw, id), if expected.is_ok() { to } else { from });
            raw.ep.transport.destroy_qp(id).unwrap();
            assert_eq!(
                (raw.ep.transport.connection(id), raw.ep.transport.destroy_qp(id)),
                (None, Result::Err(QpError::Unknown))
            );
        }
    }
}

#[test]
fn what_cannot_be() {
    let mut raw = Raw::passive();
    let (now, conn) = (raw.now, raw.conn);
    assert_eq!(raw.ep.transport.modify_qp(now, conn, QpModify::Err), Err(QpError::Managed));
    assert_eq!(raw.ep.transport.destroy_qp(conn), Err(QpError::Managed));
    let domain = raw.ep.transport.alloc_domain();
    let id = raw.ep.transport.create_qp(now, ConnectOptions { domain, ..options() }).unwrap();
    assert_eq!(raw.ep.transport.dealloc_domain(domain), Err(DomainError::Busy));
    raw.ep.transport.modify_qp(now, id, QpModify::Init).unwrap();
    let mut begin = |to: Rtr| raw.ep.transport.modify_qp(now, id, QpModify::Rtr(to));
    assert_eq!(begin(rtr(Qpn::GSI)), Err(QpError::RemoteQpn));
    assert_eq!(begin(Rtr { path_mtu: PathMtu::Mtu4096, ..rtr(PEER_QPN) }), Err(QpError::Mtu));
    for far in [IpAddr::from([192, 168, 9, 9]), "2001:db8::1".parse().unwrap()] {
        assert_eq!(raw.ep.interface.path(now, far), Err(PathError::NoRoute(far)));
    }
    let unknown = ip(7).into();
    assert_eq!(raw.ep.interface.path(now, unknown), Err(PathError::Unresolved(unknown)));
    raw.ep.transport.destroy_qp(id).unwrap();
    raw.ep.transport.dealloc_domain(domain).unwrap();
    let options = ConnectOptions { domain, ..options() };
    assert_eq!(raw.ep.transport.create_qp(now, options), Err(QpError::UnknownDomain));
}

/// What works in which state, for the application and for the peer.
#[test]
fn states_from_both_sides() {
    use QpState::*;
    let mut raw = Raw::passive();
    let now = raw.now;
    let id = raw.ep.transport.create_qp(now, options()).unwrap();
    let qpn = raw.ep.transport.connection(id).unwrap().local_qpn;
    let recv = RecvWr { id: 1, slice: None };
    let send = || SendWr::send(2, vec![]);
    let mut n = 0;
    let mut check = |raw: &mut Raw, state: QpState, recv_ok: bool, send_ok: bool, peer: Result<(), Discard>| {
        assert_eq!(raw.ep.transport.connection(id).unwrap().phase.qp_state(), state);
        assert_eq!(raw.ep.transport.post_recv(id, recv).is_ok(), recv_ok, "{state:?}");
        assert_eq!(raw.ep.transport.post_send(id, send()).is_ok(), send_ok, "{state:?}");
        let h = crate::raw::headers(
            qpn,
            Opcode::WriteOnly,
            TO_ENDPOINT.add(n),
            Ext::Reth(Reth::new(RemoteAddr(0), Rkey(0), 0)),
        );
        assert_eq!(raw.ep.handle(now, &crate::raw::frame(&h, &[])), peer, "{state:?}");
        n += u32::from(peer.is_ok());
        raw.drain().len()
    };
    check(&mut raw, Reset, false, false, Result::Err(Discard::WrongPeer));
    raw.ep.transport.modify_qp(now, id, QpModify::Init).unwrap();
    check(&mut raw, Init, true, false, Result::Err(Discard::WrongPeer));
    raw.ep.transport.modify_qp(now, id, QpModify::Rtr(rtr(PEER_QPN))).unwrap();
    assert_eq!(check(&mut raw, Rtr, true, false, Ok(())), 1);
    raw.ep.transport.modify_qp(now, id, QpModify::Rts(self::Rts::new(TO_PEER))).unwrap();
    assert_eq!(check(&mut raw, Rts, true, true, Ok(())), 2);
    raw.ep.transport.modify_qp(now, id, QpModify::Sqd).unwrap();
    assert_eq!(check(&mut raw, Sqd, true, true, Ok(())), 1, "an ACK, and no request");
    raw.ep.transport.modify_qp(now, id, QpModify::Err).unwrap();
    let flushed = |raw: &mut Raw| match raw.ep.transport.poll_event() {
        Some(Event::Completion(c)) => (c.id, c.opcode, c.status),
        other => panic!("{other:?}"),
    };
    for _ in 0..2 {
        assert_eq!(flushed(&mut raw), (2, WcOpcode::Send, WcStatus::WrFlushErr));
    }
    for _ in 0..4 {
        assert_eq!(flushed(&mut raw), (1, WcOpcode::Recv, WcStatus::WrFlushErr));
    }
    // In ERR work is taken and flushed at once.
    assert_eq!(check(&mut raw, Err, true, true, Result::Err(Discard::QpError)), 0);
    assert_eq!(flushed(&mut raw).0, 1);
    assert_eq!(flushed(&mut raw).0, 2);
    raw.ep.transport.modify_qp(now, id, QpModify::Reset).unwrap();
    assert_eq!(raw.ep.transport.post_recv(id, recv), Result::Err(PostError::NotConnected));
    assert_eq!(raw.ep.transport.poll_event(), None);
}

/// SQD completes the requests that have begun, reports that, and continues after RTS.
#[test]
fn draining() {
    let mut raw = Raw::unmanaged(ConnectOptions { window: 2, ..options() }, |_| {}, |_| {});
    let (now, conn) = (raw.now, raw.conn);
    raw.ep.transport.post_send(conn, SendWr::write(1, vec![1; 256 * 4], RemoteAddr(0), Rkey(1))).unwrap();
    raw.ep.transport.post_send(conn, SendWr::write(2, vec![1], RemoteAddr(0), Rkey(1))).unwrap();
    assert_eq!(raw.drain().len(), 2);
    raw.ep.transport.modify_qp(now, conn, QpModify::Sqd).unwrap();
    assert_eq!(raw.ep.transport.poll_event(), None);
    raw.answer(TO_PEER.add(1), Syndrome::ACK).unwrap();
    assert_eq!(raw.drain().len(), 2, "the rest of the message");
    raw.answer(TO_PEER.add(3), Syndrome::ACK).unwrap();
    assert!(matches!(raw.ep.transport.poll_event(), Some(Event::Completion(c)) if c.id == 1));
    assert_eq!(raw.ep.transport.poll_event(), Some(Event::SendQueueDrained { conn }));
    assert!(raw.drain().is_empty());
    raw.ep.transport.modify_qp(now, conn, QpModify::Resume).unwrap();
    assert_eq!(raw.drain().len(), 1);
    raw.answer(TO_PEER.add(4), Syndrome::ACK).unwrap();
    assert!(matches!(raw.ep.transport.poll_event(), Some(Event::Completion(c)) if c.id == 2));
    // Nothing under way: it is drained at once.
    raw.ep.transport.modify_qp(now, conn, QpModify::Sqd).unwrap();
    assert_eq!(raw.ep.transport.poll_event(), Some(Event::SendQueueDrained { conn }));
}

#[test]
fn failure_is_told_and_can_be_repaired() {
    let mut raw = Raw::unmanaged(options(), |_| {}, |_| {});
    let (now, conn) = (raw.now, raw.conn);
    raw.ep.transport.post_recv(conn, RecvWr { id: 3, slice: None }).unwrap();
    raw.send(Opcode::WriteMiddle, TO_ENDPOINT, Ext::None, &[0; 256]).unwrap();
    let status = WcStatus::LocQpOpErr;
    assert!(matches!(raw.ep.transport.poll_event(), Some(Event::Completion(c)) if c.status == WcStatus::WrFlushErr));
    assert_eq!(raw.ep.transport.poll_event(), Some(Event::QpFatal { conn, status }));
    assert_eq!(state(&raw, conn), QpState::Err);
    assert!(matches!(raw.one_answer().1, Syndrome::Nak(_)), "the peer gets a NAK");
    for step in [QpModify::Reset, QpModify::Init, QpModify::Rtr(rtr(PEER_QPN)), QpModify::Rts(Rts::new(TO_PEER))] {
        raw.ep.transport.modify_qp(now, conn, step).unwrap();
    }
    raw.send(Opcode::WriteOnly, TO_ENDPOINT, Ext::Reth(Reth::new(RemoteAddr(0), Rkey(0), 0)), &[]).unwrap();
    assert_eq!(raw.one_answer(), (TO_ENDPOINT, Syndrome::ACK, 1));
}

/// Two endpoints connected without connection management, with messages both ways, READs and atomics, and an end at any time.
#[test]
fn between_two_endpoints() {
    for selective_repeat in [false, true] {
        let mut net = Net::new(1, 2);
        let now = net.now;
        net.ep(0).interface.resolve(now, ip(1));
        assert!(matches!(net.network_event(0, LONG), Some(NetworkEvent::Resolved { .. })));
        let now = net.now;
        let domain = net.ep(1).transport.alloc_domain();
        let a = net.ep(0).transport.create_qp(now, options()).unwrap();
        let b = net.ep(1).transport.create_qp(now, ConnectOptions { domain, ..options() }).unwrap();
        let qpns = [(0, a), (1, b)].map(|(i, c)| net.ep(i).transport.connection(c).unwrap().local_qpn);
        for (i, c, peer) in [(0, a, 1), (1, b, 0)] {
            let psn = |of: usize| Psn::new(if of == 0 { 5 } else { 0xff_ffff });
            let path = if i == 0 { net.ep(0).interface.path(now, ip(1).into()).unwrap() } else { path(1, 0) };
            let to = Rtr { selective_repeat, ..Rtr::new(path, qpns[peer], psn(peer), PathMtu::Mtu1024) };
            for step in [QpModify::Init, QpModify::Rtr(to), QpModify::Rts(Rts::new(psn(i)))] {
                net.ep(i).transport.modify_qp(now, c, step).unwrap();
            }
            assert_eq!(net.ep(i).transport.connection(c).unwrap().selective_repeat, selective_repeat);
        }
        let all = Access::REMOTE_READ | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
        let region = net.ep(1).transport.register(vec![0; 5000], all, domain).unwrap();
        let back = net.ep(0).transport.register(vec![0; 5000], Access::LOCAL, None).unwrap();
        let data: Vec<u8> = (0..4000).map(|i| i as u8).collect();
        net.ep(0).transport.post_send(a, SendWr::write(1, data.clone(), region.addr, region.rkey)).unwrap();
        net.ep(0).transport.post_send(a, SendWr::read(2, back.slice(0, 4000), region.addr, region.rkey)).unwrap();
        net.ep(0)
            .transport
            .post_send(a, SendWr::fetch_add(3, back.slice(4000, 8), region.addr, region.rkey, 1))
            .unwrap();
        for (id, opcode) in [(1, WcOpcode::Write), (2, WcOpcode::Read), (3, WcOpcode::FetchAdd)] {
            let c = net.success(0);
            assert_eq!((c.id, c.opcode), (id, opcode));
        }
        assert_eq!(region_bytes(net.ep(0), back.id)[..4000], data);
        assert_eq!(region_bytes(net.ep(0), back.id)[4000..4008], data[..8]);
        // One side is destroyed without a message; the other detects it.
        net.ep(1).transport.destroy_qp(b).unwrap();
        net.ep(0).transport.post_send(a, SendWr::send(4, vec![1])).unwrap();
        assert_eq!(net.completion(0).status, WcStatus::RetryExceeded);
        let status = WcStatus::RetryExceeded;
        assert_eq!(net.event(0, LONG), Some(Event::QpFatal { conn: a, status }));
        net.ep(0).transport.destroy_qp(a).unwrap();
        assert_eq!(net.ep(1).transport.dealloc_domain(domain), Err(DomainError::Busy), "a region is left");
        net.ep(1).transport.deregister(region.id).unwrap();
        net.ep(1).transport.dealloc_domain(domain).unwrap();
    }
}

#[test]
fn domains() {
    let mut raw = Raw::passive();
    let (a, b) = (raw.ep.transport.alloc_domain(), raw.ep.transport.alloc_domain());
    assert_eq!(raw.ep.transport.domains().collect::<Vec<_>>(), [ProtectionDomain::DEFAULT, a, b]);
    assert_eq!(raw.ep.transport.dealloc_domain(ProtectionDomain::DEFAULT), Err(DomainError::Busy));
    let region = raw.ep.transport.register(vec![0; 8], Access::REMOTE_READ, a).unwrap();
    assert_eq!(raw.ep.transport.dealloc_domain(a), Err(DomainError::Busy));
    raw.ep.transport.deregister(region.id).unwrap();
    raw.ep.transport.dealloc_domain(a).unwrap();
    assert_eq!(raw.ep.transport.dealloc_domain(a), Err(DomainError::Unknown));
    assert_eq!(raw.ep.transport.register(vec![], Access::LOCAL, a), Err(RegisterError::UnknownDomain));
    assert_ne!(raw.ep.transport.alloc_domain(), a, "a number does not come back");
}

/// Connections of two domains at one endpoint: each peer reaches its own domain's regions, and a violation costs only the
/// one who tried.
#[test]
fn connections_belong_to_domains() {
    let mut net = Net::new(9, 2);
    let domains = [net.ep(1).transport.alloc_domain(), net.ep(1).transport.alloc_domain()];
    let rights = Access::REMOTE_READ | Access::REMOTE_WRITE;
    let regions = domains.map(|domain| net.ep(1).transport.register(vec![7; 8], rights, domain).unwrap());
    let conns = domains.map(|domain| {
        let passive = ConnectOptions { domain, ..ConnectOptions::default() };
        net.connect_with(0, 1, &ConnectOptions::default(), &passive, |_, _| {})
    });
    let to = net.ep(0).transport.register(vec![0; 8], Access::LOCAL, None).unwrap();
    for ((here, there), (domain, region)) in conns.into_iter().zip(domains.into_iter().zip(regions)) {
        assert_eq!(net.ep(1).transport.connection(there).unwrap().domain, domain);
        net.ep(0).transport.post_send(here, SendWr::read(1, to.all(), region.addr, region.rkey)).unwrap();
        assert_eq!(net.success(0).byte_len, 8);
    }
    assert_eq!(region_bytes(net.ep(0), to.id), [7; 8]);
    // The first peer has learned the second one's key.
    let (foe, friend) = (conns[0].0, conns[1].0);
    net.ep(0).transport.post_send(foe, SendWr::write(2, vec![0; 8], regions[1].addr, regions[1].rkey)).unwrap();
    assert_eq!(net.completion(0).status, WcStatus::RemAccessErr);
    let reason = DisconnectReason::Error(WcStatus::RemAccessErr);
    assert!(matches!(net.event(0, LONG), Some(Event::Disconnected { reason: r, .. }) if r == reason));
    assert_eq!(region_bytes(net.ep(1), regions[1].id), [7; 8]);
    assert_eq!(net.ep(1).counters().resp_remote_access_errors, 1);
    net.ep(0).transport.post_send(friend, SendWr::write(3, vec![1; 8], regions[1].addr, regions[1].rkey)).unwrap();
    assert_eq!(net.success(0).id, 3);
    assert_eq!(region_bytes(net.ep(1), regions[1].id), [1; 8]);
    // The other side's own work is held to the domain as well.
    let reply = SendWr::send(4, regions[0].all());
    assert_eq!(net.ep(1).transport.post_send(conns[1].1, reply), Err(PostError::BadSlice));
}

#[test]
fn listings_and_reset() {
    let mut raw = Raw::passive();
    let unmanaged = raw.ep.transport.create_qp(raw.now, options()).unwrap();
    let domain = raw.ep.transport.alloc_domain();
    raw.ep.transport.register(vec![0; 8], Access::REMOTE_READ, domain).unwrap();
    raw.ep.transport.register(vec![0; 9], Access::REMOTE_WRITE, raw.conn).unwrap();
    raw.ep.transport.post_recv(raw.conn, RecvWr { id: 4, slice: None }).unwrap();
    raw.send(Opcode::WriteOnly, TO_ENDPOINT, Ext::Reth(Reth::new(RemoteAddr(0), Rkey(0), 0)), &[]).unwrap();
    let states: Vec<_> =
        raw.ep.transport.connections().map(|(id, info)| (id, info.phase.qp_state(), info.recvs)).collect();
    assert_eq!(states, [(raw.conn, QpState::Rts, 1), (unmanaged, QpState::Reset, 0)]);
    let regions: Vec<_> = raw.ep.transport.regions().map(|r| (r.region.len, r.scope, r.valid)).collect();
    assert_eq!(regions, [(8, Scope::Domain(domain), true), (9, Scope::Connection(raw.conn), true)]);
    let before = raw.ep.counters();
    assert_eq!(before.rx_write_requests, 1);

    raw.ep.transport.reset();
    assert!(
        matches!(raw.ep.transport.poll_event(), Some(Event::Completion(c)) if (c.id, c.status) == (4, WcStatus::WrFlushErr))
    );
    let end = raw.ep.transport.poll_event();
    assert!(matches!(end, Some(Event::Disconnected { reason: DisconnectReason::Local, .. })), "{end:?}");
    assert_eq!(raw.ep.transport.poll_event(), None);
    assert_eq!(
        (
            raw.ep.transport.connections().count(),
            raw.ep.transport.regions().count(),
            raw.ep.transport.domains().count()
        ),
        (0, 0, 1)
    );
    assert!(raw.drain().is_empty());
    let after = raw.ep.counters();
    assert_eq!((after.rx_write_requests, after.resp_cqe_flush_error), (1, 1), "past connections still count");
}

/// What a connection counts for itself and what the endpoint counts are the same names.
#[test]
fn counters_of_one_and_of_all() {
    let mut raw = Raw::unmanaged(options(), |_| {}, |_| {});
    for n in [0, 0, 2] {
        let empty = Ext::Reth(Reth::new(RemoteAddr(0), Rkey(0), 0));
        let _ = raw.send(Opcode::WriteOnly, TO_ENDPOINT.add(n), empty, &[]);
    }
    let own = raw.ep.transport.connection(raw.conn).unwrap().stats.counters;
    assert_eq!((own.rx_write_requests, own.duplicate_request, own.out_of_seq_request), (1, 1, 1));
    let total: std::collections::HashMap<_, _> = raw.ep.counters().iter().collect();
    for (name, value) in own.iter() {
        assert_eq!(total[name], value, "{name}");
    }
    for linux in ["packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err", "np_cnp_sent"]
    {
        assert!(total.contains_key(linux));
    }
}

/// RESET initialises a queue pair: it has no peer, counts messages from 0, and takes the new PSNs.
#[test]
fn reset_forgets() {
    let mut raw = Raw::unmanaged(options(), |_| {}, |_| {});
    let (now, conn) = (raw.now, raw.conn);
    let empty = Ext::Reth(Reth::new(RemoteAddr(0), Rkey(0), 0));
    for n in 0..3 {
        raw.send(Opcode::WriteOnly, TO_ENDPOINT.add(n), empty, &[]).unwrap();
    }
    assert_eq!(raw.one_answer(), (TO_ENDPOINT.add(2), Syndrome::ACK, 3));
    raw.ep.transport.post_send(conn, SendWr::send(1, vec![1])).unwrap();
    raw.drain();
    raw.ep.transport.modify_qp(now, conn, QpModify::Reset).unwrap();
    assert!(matches!(raw.ep.transport.poll_event(), Some(Event::Completion(c)) if c.status == WcStatus::WrFlushErr));
    let info = raw.ep.transport.connection(conn).unwrap();
    let none = std::net::Ipv4Addr::UNSPECIFIED.into();
    assert_eq!((info.peer, info.path, info.remote_qpn), (none, None, None));
    assert_eq!((info.next_psn, info.oldest_psn), (Psn::new(0), Psn::new(0)));
    for step in [QpModify::Init, QpModify::Rtr(rtr(PEER_QPN)), QpModify::Rts(Rts::new(TO_PEER))] {
        raw.ep.transport.modify_qp(now, conn, step).unwrap();
    }
    raw.send(Opcode::WriteOnly, TO_ENDPOINT, empty, &[]).unwrap();
    assert_eq!(raw.one_answer(), (TO_ENDPOINT, Syndrome::ACK, 1));
    raw.ep.transport.post_send(conn, SendWr::send(2, vec![1])).unwrap();
    assert_eq!(raw.drain()[0].headers.bth.psn(), TO_PEER);
}
