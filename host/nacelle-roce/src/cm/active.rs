// SPDX-License-Identifier: Apache-2.0
//! The side that asks for a connection: REQ out, REP or REJ in, RTU out (IBTA 12.9.7.1).

use super::{Beginning, MESSAGE_REP, Peer, guid, nanos, private_data, private_data_fits, source_port};
use crate::{
    ConnId, ConnectError, ConnectFailure, ConnectOptions, Discard, DisconnectReason, Endpoint, Instant, Phase,
    conn::Connection,
};
use core::net::Ipv4Addr;
use nacelle_wire::{
    MacAddr, Qpn,
    cm::{
        Extensions, IpCm, MAD_LEN, Message, PathMtu, Rej, RejReason, Rep, Req, Rtu, flow_label, set_private_data,
        timeout_code,
    },
    roce::Flow,
};

impl Endpoint {
    /// Begins to connect to a service. [`Event::Connected`](crate::Event::Connected) or
    /// [`Event::ConnectFailed`](crate::Event::ConnectFailed) follows.
    pub fn connect(
        &mut self,
        now: Instant,
        ip: Ipv4Addr,
        port: u16,
        options: ConnectOptions,
    ) -> Result<ConnId, ConnectError> {
        if !private_data_fits(&options, private_data::REQ) {
            return Err(ConnectError::PrivateData);
        }
        let next_hop = self.net.next_hop(ip).ok_or(ConnectError::NoRoute(ip))?;
        let largest = self.max_mtu.ok_or(ConnectError::MtuTooSmall)?;
        let path_mtu = options.path_mtu.unwrap_or(largest).min(largest);
        if self.conns.is_full() {
            return Err(ConnectError::TooMany);
        }
        let id = self.insert(now, Beginning { active: true, peer_ip: ip, next_hop, port, path_mtu, options });
        match self.net.lookup(now, next_hop) {
            Some(mac) => self.send_req(now, id, mac),
            None => {
                self.net.resolve(now, next_hop, false);
                self.touch(id);
                self.after_net(now);
            }
        }
        Ok(id)
    }

    /// A resolution has ended: connections that waited for it go on, or fail.
    pub(crate) fn neighbour_resolved(&mut self, now: Instant, hop: Ipv4Addr, mac: Option<MacAddr>) {
        let waiting: Vec<ConnId> =
            self.conns.iter().filter(|c| c.phase == Phase::Resolving && c.next_hop == hop).map(|c| c.id).collect();
        for id in waiting {
            match mac {
                Some(mac) => self.send_req(now, id, mac),
                None => self.abandon(id, ConnectFailure::Unreachable),
            }
        }
    }

    fn send_req(&mut self, now: Instant, id: ConnId, mac: MacAddr) {
        let (own_mac, own_ip) = (self.net.mac, self.net.ip);
        let Some(c) = self.conns.get_mut(id) else { return };
        c.phase = Phase::ReqSent;
        c.peer_mac = Some(mac);
        c.flow = Some(Flow::new(own_mac, mac, own_ip, c.peer_ip, source_port(c.local_qpn)));
        c.stats.resolved.get_or_insert(now);
        // The source port means nothing to RoCE; Linux takes an ephemeral one, and so does this.
        let ip_cm = IpCm::new(source_port(c.local_qpn), own_ip, c.peer_ip);
        let mut req = Req::new(c.local_comm_id, c.port, c.local_qpn, c.receive_psn, ip_cm);
        let cm_code = timeout_code(nanos(c.options.cm_timeout));
        req.local_ca_guid.set(guid(own_mac));
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
        let extensions = own_extensions(&c.options, private_data::REQ);
        if extensions != Extensions::default() {
            extensions.put(&mut req.private_data).expect("there is room for it");
        }
        self.start_cm(now, id, Message::Req(&req));
    }

    pub(super) fn receive_rep(
        &mut self,
        now: Instant,
        peer: Peer,
        transaction_id: u64,
        rep: &Rep,
    ) -> Result<(), Discard> {
        let (local, remote) = (rep.remote_comm_id.get(), rep.local_comm_id.get());
        let Some(c) = self.conns.iter().find(|c| c.active && c.local_comm_id == local && c.peer_ip == peer.ip) else {
            // A reply to nothing: the peer must not keep a connection that does not exist here (IBTA 12.9.8.3.2).
            let rej = Rej::new(local, remote, MESSAGE_REP, RejReason::INVALID_COMM_ID);
            self.send_mad(peer, &Message::Rej(&rej).to_mad(transaction_id));
            return Err(Discard::CmUnexpected);
        };
        let id = c.id;
        match c.phase {
            // The RTU was lost.
            Phase::Established if c.remote_comm_id == remote => {
                let mad = rtu(c, transaction_id);
                self.send_mad(peer, &mad);
                Ok(())
            }
            Phase::ReqSent if c.transaction_id == transaction_id => {
                self.take_rep(now, peer, id, rep);
                Ok(())
            }
            _ => Err(Discard::CmUnexpected),
        }
    }

    /// Takes the answer that a connection waits for.
    fn take_rep(&mut self, now: Instant, peer: Peer, id: ConnId, rep: &Rep) {
        let stale = self.find_remote_qpn(peer, rep.local_qpn());
        let Some(c) = self.conns.get_mut(id) else { return };
        c.remote_comm_id = rep.local_comm_id.get();
        c.remote_qpn = rep.local_qpn();
        if c.remote_qpn.get() <= Qpn::GSI.get() {
            self.abandon(id, ConnectFailure::BadReply);
            return;
        }
        if let Some(old) = stale {
            // The peer uses a queue pair anew that is still connected here: it has restarted (IBTA 12.9.8.3.1).
            let rej = Rej::new(c.local_comm_id, c.remote_comm_id, MESSAGE_REP, RejReason::STALE_CONNECTION);
            let mad = Message::Rej(&rej).to_mad(c.transaction_id);
            self.send_mad(peer, &mad);
            self.abandon(id, ConnectFailure::BadReply);
            self.release_stale(now, old);
            return;
        }
        c.responder_resources = c.options.responder_resources.min(rep.initiator_depth);
        c.initiator_depth = c.options.initiator_depth.min(rep.responder_resources);
        let offered = own_extensions(&c.options, private_data::REQ);
        let agreed = Extensions::find(&rep.private_data);
        c.selective_repeat = agreed.is_some_and(|e| e.contains(Extensions::SELECTIVE_REPEAT))
            && offered.contains(Extensions::SELECTIVE_REPEAT);
        c.requester.start(rep.starting_psn(), c.path_mtu, c.options.retry_count, rep.rnr_retry_count());
        c.responder.start(c.receive_psn, c.path_mtu.bytes());
        let mad = rtu(c, c.transaction_id);
        let private_data = without_extensions(&rep.private_data);
        self.send_mad(peer, &mad);
        self.establish(now, id, private_data);
    }

    pub(super) fn receive_rej(
        &mut self,
        now: Instant,
        peer: Peer,
        transaction_id: u64,
        rej: &Rej,
    ) -> Result<(), Discard> {
        let (local, remote) = (rej.remote_comm_id.get(), rej.local_comm_id.get());
        // A peer that gives up before it has seen a REP does not know this side's identifier.
        let named = |c: &&Connection| c.local_comm_id == local || local == 0 && !c.active && c.remote_comm_id == remote;
        let found = self.conns.iter().find(|c| c.peer_ip == peer.ip && named(c)).map(|c| c.id);
        let found = found.and_then(|id| self.conns.get_mut(id));
        let c = found.ok_or(Discard::CmUnexpected)?;
        let id = c.id;
        match c.phase {
            // To this request, not to an earlier one with a larger MTU.
            Phase::ReqSent if c.transaction_id == transaction_id => {}
            Phase::ReqReceived | Phase::RepSent if c.remote_comm_id == remote => {}
            // The peer gave the connection up before it was ready there.
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
        // The peer names a smaller MTU: ask again with that one.
        let named = rej.information().first().and_then(|&code| PathMtu::from_code(code));
        let smaller = named.filter(|&mtu| mtu < c.path_mtu);
        if let (Phase::ReqSent, RejReason::INVALID_PATH_MTU, Some(mtu)) = (c.phase, rej.reason(), smaller)
            && let Some(mac) = c.peer_mac
        {
            c.path_mtu = mtu;
            c.transaction_id = c.transaction_id.wrapping_add(1);
            self.send_req(now, id, mac);
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

/// What this side wants beyond the standard: nothing unless the application's data leaves room for the record.
pub(super) fn own_extensions(options: &ConnectOptions, room: usize) -> Extensions {
    if options.selective_repeat && options.private_data.len() + Extensions::LEN <= room {
        Extensions::SELECTIVE_REPEAT
    } else {
        Extensions::default()
    }
}

/// Private data as the application gets it: zeros in place of the record.
pub(super) fn without_extensions(private_data: &[u8]) -> Vec<u8> {
    let mut bytes = private_data.to_vec();
    if Extensions::find(private_data).is_some()
        && let Some(record) = bytes.last_chunk_mut::<{ Extensions::LEN }>()
    {
        record.fill(0);
    }
    bytes
}
