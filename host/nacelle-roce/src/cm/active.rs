// SPDX-License-Identifier: Apache-2.0
//! The active side: REQ out, REP or REJ in, RTU out (IBTA 12.9.7.1).

use super::{MESSAGE_REP, Origin, nanos, private_data, private_data_fits, source_port};
use crate::{
    ConnId, ConnectError, ConnectFailure, ConnectOptions, Discard, DisconnectReason, Instant, Path, Phase, Transport,
    conn::Connection,
};
use core::net::IpAddr;
use nacelle_wire::{
    Qpn,
    cm::{IpCm, MAD_LEN, Message, PathMtu, Rej, RejReason, Rep, Req, Rtu, flow_label, set_private_data, timeout_code},
    extensions::{Agreement, Extensions},
};

impl Transport {
    /// Begins to connect to a service. A path request follows, then [`Event::Connected`](crate::Event::Connected) or
    /// [`Event::ConnectFailed`](crate::Event::ConnectFailed).
    pub fn connect(
        &mut self,
        now: Instant,
        peer: IpAddr,
        port: u16,
        options: ConnectOptions,
    ) -> Result<ConnId, ConnectError> {
        if !private_data_fits(&options, private_data::REQ) {
            return Err(ConnectError::PrivateData);
        }
        let largest = self.max_path_mtu().ok_or(ConnectError::MtuTooSmall)?;
        let path_mtu = options.path_mtu.unwrap_or(largest).min(largest);
        if self.conns.is_full() {
            return Err(ConnectError::TooMany);
        }
        let id = self.insert(now, Origin { active: true, peer, path: None, port, path_mtu, options });
        self.path_requests.push_back(peer);
        Ok(id)
    }

    /// The path to a peer is known, or there is none: connections that wait for it continue, or fail.
    pub fn path_resolved(&mut self, now: Instant, peer: IpAddr, path: Option<Path>) {
        let waiting: Vec<ConnId> =
            self.conns.iter().filter(|c| c.phase == Phase::Resolving && c.peer == peer).map(|c| c.id).collect();
        for id in waiting {
            match path {
                Some(path) => self.send_req(now, id, path),
                None => self.abandon(id, ConnectFailure::Unreachable),
            }
        }
    }

    fn send_req(&mut self, now: Instant, id: ConnId, path: Path) {
        let guid = self.guid;
        let Some(c) = self.conns.get_mut(id) else { return };
        c.phase = Phase::ReqSent;
        c.path = Some(path);
        c.stats.resolved.get_or_insert(now);
        // RoCE does not use the source port; Linux takes an ephemeral one.
        let ip_cm = IpCm::new(source_port(c.local_qpn), path.local, path.remote);
        let mut req = Req::new(c.local_comm_id, c.port, c.local_qpn, c.receive_psn, ip_cm);
        let cm_code = timeout_code(nanos(c.options.cm_timeout));
        req.local_ca_guid.set(guid);
        req.responder_resources = c.options.responder_resources;
        req.initiator_depth = c.options.initiator_depth;
        req.set_remote_cm_timeout(cm_code);
        req.set_local_cm_timeout(cm_code);
        req.set_retry_count(c.options.retry_count.min(7));
        req.set_rnr_retry_count(c.options.rnr_retry.min(7));
        req.set_path_mtu(c.path_mtu.code());
        req.set_max_cm_retries(c.options.cm_retries.min(15));
        req.set_local_ack_timeout(timeout_code(nanos(c.options.ack_timeout)));
        req.set_flow_label(flow_label(ip_cm.src_port.get(), c.port));
        set_private_data(&mut req.private_data, &c.options.private_data).expect("checked by connect");
        let offer = own_offer(&c.options, private_data::REQ);
        if offer != Agreement::default() {
            offer.put(&mut req.private_data).expect("there is room for it");
        }
        if let Some(token) = &c.options.token {
            token.put(&mut req.private_data).expect("there is room for it");
        }
        self.start_cm(now, id, Message::Req(&req));
    }

    pub(super) fn receive_rep(
        &mut self,
        now: Instant,
        path: Path,
        transaction_id: u64,
        rep: &Rep,
    ) -> Result<(), Discard> {
        let (local, remote) = (rep.remote_comm_id.get(), rep.local_comm_id.get());
        let Some(c) = self.conns.iter().find(|c| c.active && c.local_comm_id == local && c.peer == path.remote) else {
            // The peer must not keep a connection that does not exist here (IBTA 12.9.8.3.2).
            let rej = Rej::new(local, remote, MESSAGE_REP, RejReason::INVALID_COMM_ID);
            self.queue_mad(path, Message::Rej(&rej).to_mad(transaction_id));
            return Err(Discard::CmUnexpected);
        };
        let id = c.id;
        match c.phase {
            // The RTU was lost.
            Phase::Established if c.remote_comm_id == remote => {
                let mad = rtu(c, transaction_id);
                self.queue_mad(path, mad);
                Ok(())
            }
            Phase::ReqSent if c.transaction_id == transaction_id => {
                self.accept_rep(now, path, id, rep);
                Ok(())
            }
            _ => Err(Discard::CmUnexpected),
        }
    }

    /// Accepts the REP that a connection waits for.
    fn accept_rep(&mut self, now: Instant, path: Path, id: ConnId, rep: &Rep) {
        let stale = self.find_remote_qpn(path.remote, rep.local_qpn());
        let Some(c) = self.conns.get_mut(id) else { return };
        c.remote_comm_id = rep.local_comm_id.get();
        c.remote_qpn = rep.local_qpn();
        c.remote_guid = Some(rep.local_ca_guid.get());
        if c.remote_qpn.get() <= Qpn::GSI.get() {
            self.abandon(id, ConnectFailure::BadReply);
            return;
        }
        if let Some(old) = stale {
            // The peer reuses a queue pair that is still connected here: it has restarted (IBTA 12.9.8.3.1).
            let rej = Rej::new(c.local_comm_id, c.remote_comm_id, MESSAGE_REP, RejReason::STALE_CONNECTION);
            let mad = Message::Rej(&rej).to_mad(c.transaction_id);
            self.queue_mad(path, mad);
            self.abandon(id, ConnectFailure::BadReply);
            self.release_stale(now, old);
            return;
        }
        c.responder_resources = c.options.responder_resources.min(rep.initiator_depth);
        c.initiator_depth = c.options.initiator_depth.min(rep.responder_resources);
        let taken = Agreement::find(&rep.private_data);
        c.has_record = taken.is_some();
        let agreed = own_offer(&c.options, private_data::REQ).common(taken.unwrap_or_default());
        let (transport, application) = split_agreement(agreed);
        c.extend(transport, application);
        c.requester.start(rep.starting_psn(), c.path_mtu, c.options.retry_count, rep.rnr_retry_count());
        c.responder.start(c.receive_psn, c.path_mtu.bytes());
        let mad = rtu(c, c.transaction_id);
        let private_data = without_record(&rep.private_data);
        self.queue_mad(path, mad);
        self.establish(now, id, private_data);
    }

    pub(super) fn receive_rej(
        &mut self,
        now: Instant,
        path: Path,
        transaction_id: u64,
        rej: &Rej,
    ) -> Result<(), Discard> {
        let (local, remote) = (rej.remote_comm_id.get(), rej.local_comm_id.get());
        // A peer that aborts before it has seen a REP does not have this side's identifier.
        let named = |c: &&Connection| c.local_comm_id == local || local == 0 && !c.active && c.remote_comm_id == remote;
        let found = self.conns.iter().find(|c| c.peer == path.remote && named(c)).map(|c| c.id);
        let found = found.and_then(|id| self.conns.get_mut(id));
        let c = found.ok_or(Discard::CmUnexpected)?;
        let id = c.id;
        match c.phase {
            // To this request, not to an earlier one with a larger MTU.
            Phase::ReqSent if c.transaction_id == transaction_id => {}
            Phase::ReqReceived | Phase::RepSent if c.remote_comm_id == remote => {}
            // The peer aborted the connection before it was ready there.
            Phase::Established | Phase::Lingering if c.remote_comm_id == remote => {
                self.finish(id, DisconnectReason::Remote, &rej.private_data);
                return Ok(());
            }
            Phase::DreqSent if c.remote_comm_id == remote => {
                self.finish(id, DisconnectReason::Local, &rej.private_data);
                return Ok(());
            }
            _ => return Err(Discard::CmUnexpected),
        }
        // The peer proposes a smaller MTU: repeat the request with that one.
        let named = rej.information().first().and_then(|&code| PathMtu::from_code(code));
        let smaller = named.filter(|&mtu| mtu < c.path_mtu);
        if let (Phase::ReqSent, RejReason::INVALID_PATH_MTU, Some(mtu)) = (c.phase, rej.reason(), smaller)
            && let Some(path) = c.path
        {
            c.path_mtu = mtu;
            c.transaction_id = c.transaction_id.wrapping_add(1);
            self.send_req(now, id, path);
            return Ok(());
        }
        let reason = ConnectFailure::Rejected { reason: rej.reason(), private_data: rej.private_data.to_vec() };
        self.abandon(id, reason);
        Ok(())
    }
}

/// The RTU of a connection.
fn rtu(c: &Connection, transaction_id: u64) -> [u8; MAD_LEN] {
    let mut rtu = Rtu::new(c.local_comm_id, c.remote_comm_id);
    set_private_data(&mut rtu.private_data, &c.options.rtu_data).expect("checked by connect");
    Message::Rtu(&rtu).to_mad(transaction_id)
}

/// The extensions that concern the transport alone.
const TRANSPORT: Extensions =
    Extensions(Extensions::SELECTIVE_REPEAT.0 | Extensions::LATE_ACKNOWLEDGEMENT.0 | Extensions::TOKEN.0);

/// What this side offers: nothing unless the application's private data leaves room for the record.
pub(super) fn own_offer(options: &ConnectOptions, room: usize) -> Agreement {
    if options.private_data.len() + Agreement::LEN > room {
        return Agreement::default();
    }
    let Agreement { extensions, contexts } = options.agreement;
    let choose = |on, extension| if on { extension } else { Extensions::NONE };
    let transport = choose(options.selective_repeat, Extensions::SELECTIVE_REPEAT)
        | choose(options.late_acknowledgement, Extensions::LATE_ACKNOWLEDGEMENT);
    Agreement::new(extensions.without(TRANSPORT) | transport, contexts)
}

/// The part of an agreement that is the transport's, and the part that is the applications'.
pub(super) fn split_agreement(agreed: Agreement) -> (Extensions, Agreement) {
    let Agreement { extensions, contexts } = agreed;
    (extensions & TRANSPORT, Agreement::new(extensions.without(TRANSPORT), contexts))
}

/// Private data for the application: zeros in place of the record.
pub(super) fn without_record(private_data: &[u8]) -> Vec<u8> {
    let mut bytes = private_data.to_vec();
    if Agreement::find(private_data).is_some()
        && let Some(record) = bytes.last_chunk_mut::<{ Agreement::LEN }>()
    {
        record.fill(0);
    }
    bytes
}
