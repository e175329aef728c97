// SPDX-License-Identifier: Apache-2.0
//! The passive side: REQ in, MRA, REP or REJ out, RTU in (IBTA 12.9.7.2).

use super::{
    MESSAGE_REQ, Origin,
    active::{own_offer, split_agreement, without_record},
    nanos, private_data, private_data_fits,
};
use crate::{
    ConnId, ConnectError, ConnectFailure, ConnectOptions, Discard, DisconnectReason, Event, Instant, Path, Phase,
    Transport, qp::Requester,
};
use core::{net::IpAddr, time::Duration};
use nacelle_wire::admission::Token;
use nacelle_wire::cm::{
    Gid, Message, Mra, PathMtu, Rej, RejReason, Rep, Req, Rtu, service_port, set_private_data, timeout_code,
    timeout_nanos,
};
use nacelle_wire::extensions::Agreement;

/// Time that the application has to accept or reject a connection request.
const DECISION_TIME: Duration = Duration::from_secs(60);

/// Code of the longest time that a request can set for replies to REP and DREQ: 17 s.
const CM_TIMEOUT_LIMIT: u8 = 22;

impl Transport {
    /// Accepts connection requests on a port. They come as [`Event::ConnectRequest`].
    pub fn listen(&mut self, port: u16) {
        self.listening.insert(port);
    }

    /// Rejects connection requests on a port from now on; connections stay.
    pub fn unlisten(&mut self, port: u16) {
        self.listening.remove(&port);
    }

    /// Accepts a connection request. Post receives before: the peer's first SEND may follow within microseconds.
    pub fn accept(&mut self, now: Instant, id: ConnId, options: ConnectOptions) -> Result<(), ConnectError> {
        if !private_data_fits(&options, private_data::REP) {
            return Err(ConnectError::PrivateData);
        }
        let guid = self.guid;
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
        rep.local_ca_guid.set(guid);
        rep.set_target_ack_delay(15);
        rep.set_rnr_retry_count(c.options.rnr_retry.min(7));
        set_private_data(&mut rep.private_data, &c.options.private_data).expect("checked above");
        let agreed = own_offer(&c.options, private_data::REP).common(c.offered);
        let (transport, application) = split_agreement(agreed);
        c.extend(transport, application);
        if agreed != Agreement::default() {
            agreed.put(&mut rep.private_data).expect("there is room for it");
        }
        self.start_cm(now, id, Message::Rep(&rep));
        Ok(())
    }

    /// Rejects a connection request (consumer reject), with up to 148 bytes of private data.
    pub fn reject(&mut self, id: ConnId, private_data: &[u8]) -> Result<(), ConnectError> {
        self.reject_with(id, RejReason::CONSUMER, private_data)
    }

    /// Rejects a connection request with any reason of the standard (IBTA 12.6.7.2).
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
        path: Path,
        transaction_id: u64,
        req: &Req,
    ) -> Result<(), Discard> {
        let remote = req.local_comm_id.get();
        let known = self.conns.iter().find(|c| !c.active && c.peer == path.remote && c.remote_comm_id == remote);
        if let Some(c) = known {
            let id = c.id;
            return self.receive_known_req(id, path);
        }
        if let Err((reason, info)) = self.check_req(path, req) {
            let mut rej = Rej::new(0, remote, MESSAGE_REQ, reason);
            rej.set_information(&info);
            self.queue_mad(path, Message::Rej(&rej).to_mad(transaction_id));
            return Ok(());
        }
        // The peer reuses a queue pair that is still connected here: it has restarted. The old connection ends, and the peer
        // repeats its request (IBTA 12.9.8.3.1).
        if let Some(old) = self.find_remote_qpn(path.remote, req.local_qpn()) {
            let rej = Rej::new(0, remote, MESSAGE_REQ, RejReason::STALE_CONNECTION);
            self.queue_mad(path, Message::Rej(&rej).to_mad(transaction_id));
            self.release_stale(now, old);
            return Ok(());
        }
        if let Err(reason) = self.check_room(path.remote) {
            let rej = Rej::new(0, remote, MESSAGE_REQ, reason);
            self.queue_mad(path, Message::Rej(&rej).to_mad(transaction_id));
            return Ok(());
        }

        let port = service_port(req.service_id.get()).unwrap_or(0);
        let path_mtu = PathMtu::from_code(req.path_mtu()).unwrap_or(PathMtu::Mtu256);
        let options = ConnectOptions::default();
        let peer = path.remote;
        let id = self.insert(now, Origin { active: false, peer, path: Some(path), port, path_mtu, options });
        let Some(c) = self.conns.get_mut(id) else { return Ok(()) };
        c.transaction_id = transaction_id;
        c.remote_comm_id = remote;
        c.remote_qpn = req.local_qpn();
        c.remote_guid = Some(req.local_ca_guid.get());
        c.send_psn = req.starting_psn();
        c.cm_timeout = Duration::from_nanos(timeout_nanos(req.local_cm_timeout().min(CM_TIMEOUT_LIMIT)));
        c.cm_retries = req.max_cm_retries();
        c.peer_retry_count = req.retry_count();
        c.peer_rnr_retry = req.rnr_retry_count();
        // What the peer offers; the values of this side come with accept.
        c.responder_resources = req.initiator_depth;
        c.initiator_depth = req.responder_resources;
        let record = Agreement::find(&req.private_data);
        c.has_record = record.is_some();
        c.offered = record.unwrap_or_default();
        let (_, offered) = split_agreement(c.offered);
        c.stats.resolved = Some(now);
        // First an MRA in time, then the end of the decision time.
        let peer_waits = Duration::from_nanos(timeout_nanos(req.remote_cm_timeout()));
        c.cm_deadline = Some(now + (peer_waits / 2).min(DECISION_TIME));
        let mut private_data = req.private_data;
        let token = Token::take(&mut private_data);
        let private_data = without_record(&private_data);
        self.core.events.push_back(Event::ConnectRequest { conn: id, port, peer, private_data, token, offered });
        self.touch(id);
        Ok(())
    }

    /// A repeated request. It is recognised by its sender's identifier, whatever the transaction.
    fn receive_known_req(&mut self, id: ConnId, path: Path) -> Result<(), Discard> {
        let Some(c) = self.conns.get_mut(id) else { return Ok(()) };
        // Its sender has no answer yet. No ICRC protects the Ethernet address that was to be answered: this one may be right.
        if matches!(c.phase, Phase::ReqReceived | Phase::RepSent) {
            c.path = Some(path);
        }
        match c.phase {
            Phase::ReqReceived => self.send_mra(id),
            Phase::RepSent | Phase::Established => self.repeat_cm(id),
            _ => return Err(Discard::CmUnexpected),
        }
        Ok(())
    }

    /// Whether a request can be passed to the application; if not, the reason and additional information.
    fn check_req(&self, path: Path, req: &Req) -> Result<(), (RejReason, Vec<u8>)> {
        let refuse = |reason| Err((reason, Vec::new()));
        if !service_port(req.service_id.get()).is_some_and(|port| self.listening.contains(&port)) {
            return refuse(RejReason::INVALID_SERVICE_ID);
        }
        if req.transport() != 0 {
            return refuse(RejReason::INVALID_TRANSPORT_TYPE);
        }
        if req.ip_cm.check().is_err() || req.ip_cm.dst().is_ipv4() != path.local.is_ipv4() {
            return refuse(RejReason::UNSUPPORTED_REQUEST);
        }
        if req.ip_cm.dst() != path.local {
            return Err((RejReason::INVALID_GID, Gid::from(path.local).0.to_vec()));
        }
        let mtu = PathMtu::from_code(req.path_mtu());
        if mtu.is_none() || mtu > self.max_path_mtu() {
            return Err((RejReason::INVALID_PATH_MTU, self.max_path_mtu().map(PathMtu::code).into_iter().collect()));
        }
        Ok(())
    }

    /// Whether there is room for one more connection of a peer; if not, the reason.
    fn check_room(&self, peer: IpAddr) -> Result<(), RejReason> {
        if self.exceeds_limits(peer) {
            return Err(RejReason::NO_RESOURCES);
        }
        if self.conns.is_full() { Err(RejReason::NO_QP) } else { Ok(()) }
    }

    /// Whether one more half-open connection would exceed the limits of this peer or of all.
    fn exceeds_limits(&self, peer: IpAddr) -> bool {
        let opened = || self.conns.iter().filter(|c| !c.active);
        let half_open = || opened().filter(|c| matches!(c.phase, Phase::ReqReceived | Phase::RepSent));
        let reached = |limit: usize, count: usize| limit != 0 && count >= limit;
        reached(self.accept.per_peer, opened().filter(|c| c.peer == peer).count())
            || reached(self.accept.half_open, half_open().count())
            || reached(self.accept.half_open_per_peer, half_open().filter(|c| c.peer == peer).count())
    }

    /// The application has not decided yet: first an MRA is sent, at the end a REJ.
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
        let Some((c, path)) = self.conns.get(id).and_then(|c| Some((c, c.path?))) else { return };
        let mra = Mra::new(c.local_comm_id, c.remote_comm_id, MESSAGE_REQ, timeout_code(nanos(DECISION_TIME)));
        let mad = Message::Mra(&mra).to_mad(c.transaction_id);
        self.queue_mad(path, mad);
    }

    pub(super) fn receive_rtu(&mut self, now: Instant, path: Path, rtu: &Rtu) -> Result<(), Discard> {
        let (local, remote) = (rtu.remote_comm_id.get(), rtu.local_comm_id.get());
        let id = self.find(path.remote, local, Some(remote), &[Phase::RepSent])?;
        self.establish(now, id, rtu.private_data.to_vec());
        Ok(())
    }

    /// Ends a connection that no longer exists at the peer; a DREQ ends it at the peer in case it does.
    pub(super) fn release_stale(&mut self, now: Instant, id: ConnId) {
        self.flush(id);
        self.report_end(id, DisconnectReason::Remote, &[]);
        self.send_dreq(now, id, &[]);
    }
}
