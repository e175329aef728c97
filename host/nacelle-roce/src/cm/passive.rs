// SPDX-License-Identifier: Apache-2.0
//! The side that is asked: REQ in, MRA, REP or REJ out, RTU in (IBTA 12.9.7.2).

use super::{
    Beginning, MESSAGE_REQ, Peer,
    active::{own_extensions, without_extensions},
    guid, nanos, private_data, private_data_fits, source_port,
};
use crate::{
    ConnId, ConnectError, ConnectFailure, ConnectOptions, Discard, DisconnectReason, Endpoint, Event, Instant, Phase,
    qp::Requester,
};
use core::{net::Ipv4Addr, time::Duration};
use nacelle_wire::{
    cm::{
        Extensions, Message, Mra, PathMtu, Rej, RejReason, Rep, Req, Rtu, service_port, set_private_data, timeout_code,
        timeout_nanos,
    },
    roce::Flow,
};

/// Time that the application has to answer a connection request.
const DECISION_TIME: Duration = Duration::from_secs(60);

/// Code of the longest time that a request can make this side wait for the answer to its REP or DREQ: 17 s.
const CM_TIMEOUT_LIMIT: u8 = 22;

impl Endpoint {
    /// Accepts connection requests on a port. They come as [`Event::ConnectRequest`].
    pub fn listen(&mut self, port: u16) {
        self.listening.insert(port);
    }

    /// Refuses connection requests on a port from now on; connections stay.
    pub fn unlisten(&mut self, port: u16) {
        self.listening.remove(&port);
    }

    /// Accepts a connection request. Post receives before: the peer's first SEND may follow within microseconds.
    pub fn accept(&mut self, now: Instant, id: ConnId, options: ConnectOptions) -> Result<(), ConnectError> {
        if !private_data_fits(&options, private_data::REP) {
            return Err(ConnectError::PrivateData);
        }
        let own_mac = self.net.mac;
        let c = self.conns.get_mut(id).filter(|c| c.phase == Phase::ReqReceived).ok_or(ConnectError::NotWaiting)?;
        c.requester = Requester::new(&options);
        c.requester.start(c.send_psn, c.path_mtu, c.peer_retry_count, c.peer_rnr_retry);
        c.responder.configure(&options);
        c.receive_psn = options.starting_psn.unwrap_or(c.receive_psn);
        c.responder.start(c.receive_psn, c.path_mtu.bytes());
        c.responder_resources = c.responder_resources.min(options.responder_resources);
        c.initiator_depth = c.initiator_depth.min(options.initiator_depth);
        c.cm_retries = c.cm_retries.min(options.cm_retries);
        c.options = options;
        c.phase = Phase::RepSent;
        let mut rep = Rep::new(c.local_comm_id, c.remote_comm_id, c.local_qpn, c.receive_psn);
        rep.responder_resources = c.responder_resources;
        rep.initiator_depth = c.initiator_depth;
        rep.local_ca_guid.set(guid(own_mac));
        rep.set_target_ack_delay(15);
        rep.set_rnr_retry_count(c.options.rnr_retry.min(7));
        set_private_data(&mut rep.private_data, &c.options.private_data).expect("checked above");
        c.selective_repeat &= own_extensions(&c.options, private_data::REP).contains(Extensions::SELECTIVE_REPEAT);
        if c.selective_repeat {
            Extensions::SELECTIVE_REPEAT.put(&mut rep.private_data).expect("there is room for it");
        }
        self.start_cm(now, id, Message::Rep(&rep));
        Ok(())
    }

    /// Refuses a connection request for the application's own reasons, with up to 148 bytes for the peer's.
    pub fn reject(&mut self, id: ConnId, private_data: &[u8]) -> Result<(), ConnectError> {
        self.reject_with(id, RejReason::CONSUMER, private_data)
    }

    /// Refuses a connection request for any reason that the standard has (IBTA 12.6.7.2).
    pub fn reject_with(&mut self, id: ConnId, reason: RejReason, private_data: &[u8]) -> Result<(), ConnectError> {
        if private_data.len() > private_data::REJ {
            return Err(ConnectError::PrivateData);
        }
        self.conns.get(id).filter(|c| c.phase == Phase::ReqReceived).ok_or(ConnectError::NotWaiting)?;
        self.send_rej(id, reason, private_data);
        self.flush(id);
        self.conns.remove(id);
        Ok(())
    }

    pub(super) fn receive_req(
        &mut self,
        now: Instant,
        peer: Peer,
        transaction_id: u64,
        req: &Req,
    ) -> Result<(), Discard> {
        let remote = req.local_comm_id.get();
        let known = self.conns.iter().find(|c| !c.active && c.peer_ip == peer.ip && c.remote_comm_id == remote);
        if let Some(c) = known {
            let id = c.id;
            return self.receive_known_req(id);
        }
        if let Err((reason, info)) = self.check_req(req) {
            let mut rej = Rej::new(0, remote, MESSAGE_REQ, reason);
            rej.set_information(&info);
            self.send_mad(peer, &Message::Rej(&rej).to_mad(transaction_id));
            return Ok(());
        }
        // The peer uses a queue pair anew that is still connected here: it has restarted. The old connection is dead,
        // and the peer tries again (IBTA 12.9.8.3.1).
        if let Some(old) = self.find_remote_qpn(peer, req.local_qpn()) {
            let rej = Rej::new(0, remote, MESSAGE_REQ, RejReason::STALE_CONNECTION);
            self.send_mad(peer, &Message::Rej(&rej).to_mad(transaction_id));
            self.release_stale(now, old);
            return Ok(());
        }
        if let Err(reason) = self.check_room(peer.ip) {
            let rej = Rej::new(0, remote, MESSAGE_REQ, reason);
            self.send_mad(peer, &Message::Rej(&rej).to_mad(transaction_id));
            return Ok(());
        }

        let port = service_port(req.service_id.get()).unwrap_or(0);
        let path_mtu = PathMtu::from_code(req.path_mtu()).unwrap_or(PathMtu::Mtu256);
        let options = ConnectOptions::default();
        let beginning = Beginning { active: false, peer_ip: peer.ip, next_hop: peer.ip, port, path_mtu, options };
        let id = self.insert(now, beginning);
        let (own_mac, own_ip) = (self.net.mac, self.net.ip);
        let Some(c) = self.conns.get_mut(id) else { return Ok(()) };
        c.transaction_id = transaction_id;
        c.remote_comm_id = remote;
        c.remote_qpn = req.local_qpn();
        c.send_psn = req.starting_psn();
        c.cm_timeout = Duration::from_nanos(timeout_nanos(req.local_cm_timeout().min(CM_TIMEOUT_LIMIT)));
        c.cm_retries = req.max_cm_retries();
        c.peer_retry_count = req.retry_count();
        c.peer_rnr_retry = req.rnr_retry_count();
        // What the peer can take; what this side wants comes with accept.
        c.responder_resources = req.initiator_depth;
        c.initiator_depth = req.responder_resources;
        let offered = Extensions::find(&req.private_data);
        c.selective_repeat = offered.is_some_and(|e| e.contains(Extensions::SELECTIVE_REPEAT));
        c.peer_mac = Some(peer.mac);
        c.flow = Some(Flow::new(own_mac, peer.mac, own_ip, peer.ip, source_port(c.local_qpn)));
        c.stats.resolved = Some(now);
        // An MRA in time, then the end of the application's patience.
        let peer_waits = Duration::from_nanos(timeout_nanos(req.remote_cm_timeout()));
        c.cm_deadline = Some(now + (peer_waits / 2).min(DECISION_TIME));
        let private_data = without_extensions(&req.private_data);
        self.core.events.push_back(Event::ConnectRequest { conn: id, port, peer: peer.ip, private_data });
        self.touch(id);
        Ok(())
    }

    /// A request for a connection that exists already. Its name is its sender's identifier, whatever the transaction.
    fn receive_known_req(&mut self, id: ConnId) -> Result<(), Discard> {
        let Some(c) = self.conns.get(id) else { return Ok(()) };
        match c.phase {
            Phase::ReqReceived => self.send_mra(id),
            Phase::RepSent | Phase::Established => self.repeat_cm(id),
            _ => return Err(Discard::CmUnexpected),
        }
        Ok(())
    }

    /// Whether a request can be offered to the application; if not, why, and additional information.
    fn check_req(&self, req: &Req) -> Result<(), (RejReason, Vec<u8>)> {
        let refuse = |reason| Err((reason, Vec::new()));
        if !service_port(req.service_id.get()).is_some_and(|port| self.listening.contains(&port)) {
            return refuse(RejReason::INVALID_SERVICE_ID);
        }
        if req.transport() != 0 {
            return refuse(RejReason::INVALID_TRANSPORT_TYPE);
        }
        if req.ip_cm.check().is_err() {
            return refuse(RejReason::UNSUPPORTED_REQUEST);
        }
        if req.ip_cm.dst() != self.net.ip {
            return Err((RejReason::INVALID_GID, self.net.ip.to_ipv6_mapped().octets().to_vec()));
        }
        let mtu = PathMtu::from_code(req.path_mtu());
        if mtu.is_none() || mtu > self.max_mtu {
            return Err((RejReason::INVALID_PATH_MTU, self.max_mtu.map(PathMtu::code).into_iter().collect()));
        }
        Ok(())
    }

    /// Whether there is room for one more connection of a peer; if not, why.
    fn check_room(&self, peer: Ipv4Addr) -> Result<(), RejReason> {
        if self.is_too_much(peer) {
            return Err(RejReason::NO_RESOURCES);
        }
        if self.conns.is_full() { Err(RejReason::NO_QP) } else { Ok(()) }
    }

    /// Whether one more connection, half open as yet, would be too many of this peer or of all.
    fn is_too_much(&self, peer: Ipv4Addr) -> bool {
        let opened = || self.conns.iter().filter(|c| !c.active);
        let half_open = || opened().filter(|c| matches!(c.phase, Phase::ReqReceived | Phase::RepSent));
        let reached = |limit: usize, count: usize| limit != 0 && count >= limit;
        reached(self.accept.per_peer, opened().filter(|c| c.peer_ip == peer).count())
            || reached(self.accept.half_open, half_open().count())
            || reached(self.accept.half_open_per_peer, half_open().filter(|c| c.peer_ip == peer).count())
    }

    /// The application has not decided yet: first the peer is asked for patience, at last refused.
    pub(super) fn run_decision_timer(&mut self, now: Instant, id: ConnId) {
        let Some(c) = self.conns.get_mut(id) else { return };
        let end = c.stats.started + DECISION_TIME;
        if now < end {
            c.cm_deadline = Some(end);
            self.send_mra(id);
        } else {
            self.send_rej(id, RejReason::TIMEOUT, &[]);
            self.abandon(id, ConnectFailure::Timeout);
        }
    }

    fn send_mra(&mut self, id: ConnId) {
        let Some(c) = self.conns.get(id) else { return };
        let Some(mac) = c.peer_mac else { return };
        let mra = Mra::new(c.local_comm_id, c.remote_comm_id, MESSAGE_REQ, timeout_code(nanos(DECISION_TIME)));
        let (peer, mad) = (Peer { mac, ip: c.peer_ip }, Message::Mra(&mra).to_mad(c.transaction_id));
        self.send_mad(peer, &mad);
    }

    pub(super) fn receive_rtu(&mut self, now: Instant, peer: Peer, rtu: &Rtu) -> Result<(), Discard> {
        let (local, remote) = (rtu.remote_comm_id.get(), rtu.local_comm_id.get());
        let id = self.find(peer, local, Some(remote), &[Phase::RepSent])?;
        self.establish(now, id, rtu.private_data.to_vec());
        Ok(())
    }

    /// Ends a connection that the peer has forgotten: the peer is told once more, in case it has not.
    pub(super) fn release_stale(&mut self, now: Instant, id: ConnId) {
        self.flush(id);
        self.tell_end(id, DisconnectReason::Remote, &[]);
        self.send_dreq(now, id, &[]);
    }
}
