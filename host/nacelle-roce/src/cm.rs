// SPDX-License-Identifier: Apache-2.0
//! Connection management, both roles (IBTA volume 1, chapter 12; RDMA IP-CM service, annex A11).

use crate::{
    ConnId, ConnStats, ConnectError, ConnectFailure, ConnectOptions, Discard, DisconnectReason, Endpoint, Event,
    Instant, Phase,
    conn::Connection,
    qp::{Requester, Responder},
};
use core::{net::Ipv4Addr, time::Duration};
use nacelle_wire::{
    MacAddr, Psn, Qpn, RoceHeaders, RocePacket,
    bth::{Bth, Deth, Opcode},
    cm::{
        Drep, Dreq, GSI_Q_KEY, IpCm, MAD_LEN, Message, PathMtu, Rej, RejReason, Rep, Req, Rtu, service_port,
        set_private_data, timeout_code, timeout_nanos,
    },
    roce::{Ext, Flow},
};
use rand_chacha::rand_core::Rng;

/// Time that the application has to answer a connection request.
const DECISION_TIME: Duration = Duration::from_secs(60);
/// Longest time that a peer's MRA can make this side wait.
const MRA_LIMIT: Duration = Duration::from_secs(60);

/// Private data that a REQ leaves to the application.
const REQ_PRIVATE: usize = 56;
/// Private data of a REP.
const REP_PRIVATE: usize = 196;
/// Private data of a REJ.
const REJ_PRIVATE: usize = 148;

/// UDP source port by queue pair, as Linux chooses it: the same for all packets of one, different between them.
fn source_port(qpn: Qpn) -> u16 {
    0xc000 | ((qpn.get() ^ qpn.get() >> 14) & 0x3fff) as u16
}

/// Where a CM message came from, or goes to.
#[derive(Clone, Copy)]
struct Peer {
    mac: MacAddr,
    ip: Ipv4Addr,
}

impl Endpoint {
    /// Begins to connect to a service. [`Event::Connected`] or [`Event::ConnectFailed`] follows.
    pub fn connect(
        &mut self,
        now: Instant,
        ip: Ipv4Addr,
        port: u16,
        options: ConnectOptions,
    ) -> Result<ConnId, ConnectError> {
        if options.private_data.len() > REQ_PRIVATE {
            return Err(ConnectError::PrivateData);
        }
        let next_hop = self.net.next_hop(ip).ok_or(ConnectError::NoRoute(ip))?;
        let largest = self.max_mtu.ok_or(ConnectError::MtuTooSmall)?;
        let path_mtu = options.path_mtu.unwrap_or(largest).min(largest);
        if self.conns.is_full() {
            return Err(ConnectError::TooMany);
        }
        let id = self.insert(now, true, ip, next_hop, port, path_mtu, options);
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

    #[allow(clippy::too_many_arguments)] // the two roles know exactly these of a connection when it begins
    fn insert(
        &mut self,
        now: Instant,
        active: bool,
        peer_ip: Ipv4Addr,
        next_hop: Ipv4Addr,
        port: u16,
        path_mtu: PathMtu,
        options: ConnectOptions,
    ) -> ConnId {
        let local_comm_id = loop {
            let id = self.rng.next_u32();
            if id != 0 && self.conns.iter().all(|c| c.local_comm_id != id) {
                break id;
            }
        };
        let transaction_id = self.rng.next_u64();
        let receive_psn = options.starting_psn.unwrap_or(Psn::new(self.rng.next_u32()));
        self.conns.insert(|id, local_qpn| Connection {
            id,
            phase: if active { Phase::Resolving } else { Phase::ReqReceived },
            active,
            requester: Requester::new(&options),
            responder: Responder::new(&options),
            options,
            peer_ip,
            next_hop,
            peer_mac: None,
            flow: None,
            port,
            local_qpn,
            remote_qpn: Qpn::default(),
            local_comm_id,
            remote_comm_id: 0,
            transaction_id,
            path_mtu,
            receive_psn,
            send_psn: Psn::default(),
            peer_retry_count: 7,
            peer_rnr_retry: 7,
            responder_resources: 0,
            initiator_depth: 0,
            selective_repeat: false,
            mad: Box::new([0; MAD_LEN]),
            tries_left: 0,
            cm_deadline: None,
            told: false,
            stats: ConnStats { started: now, ..ConnStats::default() },
            answer_queued: false,
            send_queued: false,
        })
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
        set_private_data(&mut req.private_data, &c.options.private_data).expect("checked by connect");
        self.start_cm(now, id, Message::Req(&req));
    }

    /// Sends a message of a connection, and again until it is answered or the tries are used up.
    fn start_cm(&mut self, now: Instant, id: ConnId, message: Message<'_>) {
        let Some(c) = self.conns.get_mut(id) else { return };
        *c.mad = message.to_mad(c.transaction_id);
        c.tries_left = c.options.cm_retries;
        c.cm_deadline = Some(now + c.options.cm_timeout);
        self.repeat_cm(id);
        self.touch(id);
    }

    /// Sends a connection's last message again.
    fn repeat_cm(&mut self, id: ConnId) {
        if let Some(c) = self.conns.get(id)
            && let Some(mac) = c.peer_mac
        {
            let (peer, mad) = (Peer { mac, ip: c.peer_ip }, *c.mad);
            self.send_mad(peer, &mad);
        }
    }

    fn send_mad(&mut self, peer: Peer, mad: &[u8; MAD_LEN]) {
        let flow = Flow::new(self.net.mac, peer.mac, self.net.ip, peer.ip, source_port(Qpn::GSI));
        let mut bth = Bth::new(Opcode::UdSendOnly, Qpn::GSI, self.gsi_psn);
        bth.set_ack_req(true); // as Linux does, though nobody acknowledges a datagram
        self.gsi_psn = self.gsi_psn.add(1);
        let mut headers = RoceHeaders::new(&flow, bth, Ext::Deth(Deth::new(GSI_Q_KEY, Qpn::GSI)));
        headers.ip.identification.set(self.net.next_ip_id());
        if self.net.queue.push(|buf| headers.write(mad, buf)) {
            self.core.counters.tx_cm += 1;
        } else {
            self.core.counters.tx_queue_full += 1;
        }
    }

    /// What is due at a connection by the connection manager's clock.
    pub(crate) fn run_cm_timer(&mut self, now: Instant, id: ConnId) {
        let Some(c) = self.conns.get_mut(id) else { return };
        if c.cm_deadline.is_none_or(|t| now < t) {
            return;
        }
        match c.phase {
            Phase::Resolving | Phase::Established => c.cm_deadline = None,
            Phase::Lingering => self.send_dreq(now, id),
            Phase::ReqReceived => {
                self.send_rej(id, RejReason::TIMEOUT, &[]);
                self.abandon(id, ConnectFailure::Timeout);
            }
            Phase::ReqSent | Phase::RepSent | Phase::DreqSent if c.tries_left > 0 => {
                c.tries_left -= 1;
                c.cm_deadline = Some(now + c.options.cm_timeout);
                self.repeat_cm(id);
            }
            Phase::ReqSent | Phase::RepSent => {
                self.send_rej(id, RejReason::TIMEOUT, &[]);
                self.abandon(id, ConnectFailure::Timeout);
            }
            Phase::DreqSent => self.finish(id, DisconnectReason::Local),
        }
    }

    /// A connection that never came to be ends.
    fn abandon(&mut self, id: ConnId, reason: ConnectFailure) {
        self.flush(id);
        if self.conns.remove(id).is_some_and(|c| !c.told) {
            self.core.events.push_back(Event::ConnectFailed { conn: id, reason });
        }
    }

    /// Tells the user, once, that a connection has ended.
    pub(crate) fn tell_end(&mut self, id: ConnId, reason: DisconnectReason) {
        let Some(c) = self.conns.get_mut(id).filter(|c| !c.told) else { return };
        c.told = true;
        let event = if c.stats.established.is_some() {
            Event::Disconnected { conn: id, reason, private_data: Vec::new(), stats: Box::new(c.stats) }
        } else {
            Event::ConnectFailed { conn: id, reason: ConnectFailure::Aborted }
        };
        self.core.events.push_back(event);
    }

    /// A connection ends and its place becomes free.
    fn finish(&mut self, id: ConnId, reason: DisconnectReason) {
        self.flush(id);
        self.tell_end(id, reason);
        self.conns.remove(id);
    }

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
        if options.private_data.len() > REP_PRIVATE {
            return Err(ConnectError::PrivateData);
        }
        let own_mac = self.net.mac;
        let c = self.conns.get_mut(id).filter(|c| c.phase == Phase::ReqReceived).ok_or(ConnectError::NotWaiting)?;
        c.requester = Requester::new(&options);
        c.requester.start(c.send_psn, c.path_mtu, c.peer_retry_count, c.peer_rnr_retry);
        c.responder.configure(&options);
        c.receive_psn = options.starting_psn.unwrap_or(c.receive_psn);
        c.responder.start(c.receive_psn, c.path_mtu.bytes());
        c.options = options;
        c.phase = Phase::RepSent;
        let mut rep = Rep::new(c.local_comm_id, c.remote_comm_id, c.local_qpn, c.receive_psn);
        rep.responder_resources = c.options.responder_resources;
        rep.initiator_depth = c.options.initiator_depth;
        rep.local_ca_guid.set(guid(own_mac));
        rep.set_target_ack_delay(15);
        rep.set_rnr_retry_count(c.options.rnr_retry.min(7));
        set_private_data(&mut rep.private_data, &c.options.private_data).expect("checked above");
        self.start_cm(now, id, Message::Rep(&rep));
        Ok(())
    }

    /// Refuses a connection request, with up to 148 bytes for the peer's application.
    pub fn reject(&mut self, id: ConnId, private_data: &[u8]) -> Result<(), ConnectError> {
        if private_data.len() > REJ_PRIVATE {
            return Err(ConnectError::PrivateData);
        }
        self.conns.get(id).filter(|c| c.phase == Phase::ReqReceived).ok_or(ConnectError::NotWaiting)?;
        self.send_rej(id, RejReason::CONSUMER, private_data);
        self.conns.remove(id);
        Ok(())
    }

    /// Ends a connection, in whatever state it is. Its work requests are flushed at once;
    /// [`Event::Disconnected`] or [`Event::ConnectFailed`] follows when the peer has agreed or does not answer.
    pub fn disconnect(&mut self, now: Instant, id: ConnId) {
        let Some(c) = self.conns.get(id) else { return };
        match c.phase {
            Phase::Resolving => self.abandon(id, ConnectFailure::Aborted),
            Phase::ReqSent | Phase::ReqReceived | Phase::RepSent => {
                let reason = if c.active { RejReason::TIMEOUT } else { RejReason::CONSUMER };
                self.send_rej(id, reason, &[]);
                self.abandon(id, ConnectFailure::Aborted);
            }
            Phase::Established => {
                self.flush(id);
                self.send_dreq(now, id);
            }
            Phase::Lingering | Phase::DreqSent => {}
        }
    }

    fn send_dreq(&mut self, now: Instant, id: ConnId) {
        let transaction_id = self.rng.next_u64();
        let Some(c) = self.conns.get_mut(id) else { return };
        c.phase = Phase::DreqSent;
        c.transaction_id = transaction_id;
        let dreq = Dreq::new(c.local_comm_id, c.remote_comm_id, c.remote_qpn);
        self.start_cm(now, id, Message::Dreq(&dreq));
    }

    /// Sends a REJ for a connection that is being set up.
    fn send_rej(&mut self, id: ConnId, reason: RejReason, private_data: &[u8]) {
        let Some(c) = self.conns.get(id) else { return };
        let Some(mac) = c.peer_mac else { return };
        // An active side has not seen a REP yet: there is nothing of the peer's that it could refuse.
        let rejected = if c.active { NO_MESSAGE } else { MESSAGE_REQ };
        let mut rej = Rej::new(c.local_comm_id, c.remote_comm_id, rejected, reason);
        set_private_data(&mut rej.private_data, private_data).expect("checked by reject");
        let (peer, mad) = (Peer { mac, ip: c.peer_ip }, Message::Rej(&rej).to_mad(c.transaction_id));
        self.send_mad(peer, &mad);
    }

    /// The connection is ready.
    pub(crate) fn establish(&mut self, now: Instant, id: ConnId, private_data: Vec<u8>) {
        if let Some(c) = self.conns.get_mut(id) {
            c.phase = Phase::Established;
            c.cm_deadline = None;
            c.stats.established = Some(now);
            self.core.events.push_back(Event::Connected { conn: id, private_data });
            self.touch(id);
        }
    }

    /// Takes a packet to the general service interface.
    pub(crate) fn receive_cm(&mut self, now: Instant, packet: &RocePacket<'_>) -> Result<(), Discard> {
        let Ext::Deth(deth) = packet.headers.ext else { return Err(Discard::CmUnexpected) };
        if deth.q_key != GSI_Q_KEY {
            return Err(Discard::QKey);
        }
        let peer = Peer { mac: packet.headers.eth.src, ip: packet.headers.ip.src() };
        let (transaction_id, message) = Message::parse(packet.payload)?;
        match message {
            Message::Req(req) => self.receive_req(now, peer, transaction_id, req),
            Message::Rep(rep) => self.receive_rep(now, peer, transaction_id, rep),
            Message::Rtu(rtu) => {
                let id = self.find(peer, rtu.remote_comm_id.get(), Some(rtu.local_comm_id.get()), &[Phase::RepSent])?;
                self.establish(now, id, Vec::new());
                Ok(())
            }
            Message::Rej(rej) => self.receive_rej(now, peer, transaction_id, rej),
            Message::Mra(mra) => {
                let waiting = [Phase::ReqSent, Phase::RepSent];
                let id = self.find(peer, mra.remote_comm_id.get(), None, &waiting)?;
                if let Some(c) = self.conns.get_mut(id) {
                    let asked = Duration::from_nanos(timeout_nanos(mra.service_timeout())).min(MRA_LIMIT);
                    c.cm_deadline = Some(now + asked + c.options.cm_timeout);
                }
                Ok(())
            }
            Message::Dreq(dreq) => self.receive_dreq(peer, transaction_id, dreq),
            Message::Drep(drep) => {
                let waiting = [Phase::DreqSent];
                let id = self.find(peer, drep.remote_comm_id.get(), Some(drep.local_comm_id.get()), &waiting)?;
                self.finish(id, DisconnectReason::Local);
                Ok(())
            }
        }?;
        self.core.counters.rx_cm += 1;
        Ok(())
    }

    /// The connection with `peer` that is `local` here and `remote`, if given, there, in one of these phases.
    fn find(&self, peer: Peer, local: u32, remote: Option<u32>, phases: &[Phase]) -> Result<ConnId, Discard> {
        self.conns
            .iter()
            .find(|c| c.local_comm_id == local && c.peer_ip == peer.ip)
            .filter(|c| remote.is_none_or(|r| c.remote_comm_id == r) && phases.contains(&c.phase))
            .map(|c| c.id)
            .ok_or(Discard::CmUnexpected)
    }

    fn receive_req(&mut self, now: Instant, peer: Peer, transaction_id: u64, req: &Req) -> Result<(), Discard> {
        let remote = req.local_comm_id.get();
        let known = self.conns.iter().find(|c| !c.active && c.peer_ip == peer.ip && c.remote_comm_id == remote);
        if let Some(c) = known {
            // A repeated request gets the same answer again, once there is one.
            let (id, answered) = (c.id, matches!(c.phase, Phase::RepSent | Phase::Established));
            if answered && c.transaction_id == transaction_id {
                self.repeat_cm(id);
            }
            return Ok(());
        }
        if let Err((reason, info)) = self.check_req(req) {
            let mut rej = Rej::new(0, remote, MESSAGE_REQ, reason);
            if let Some(byte) = info {
                rej.set_info_length(1);
                rej.info[0] = byte;
            }
            self.send_mad(peer, &Message::Rej(&rej).to_mad(transaction_id));
            return Ok(());
        }
        // The peer uses a queue pair anew that is still connected here: it has restarted. The old connection is dead,
        // and the peer tries again (IBTA 12.9.8.3.1).
        let stale = self
            .conns
            .iter()
            .find(|c| c.peer_ip == peer.ip && c.remote_qpn == req.local_qpn() && c.phase != Phase::ReqReceived)
            .map(|c| c.id);
        if let Some(id) = stale {
            self.finish(id, DisconnectReason::Remote);
            let rej = Rej::new(0, remote, MESSAGE_REQ, RejReason::STALE_CONNECTION);
            self.send_mad(peer, &Message::Rej(&rej).to_mad(transaction_id));
            return Ok(());
        }

        let port = service_port(req.service_id.get()).unwrap_or(0);
        let mtu = PathMtu::from_code(req.path_mtu()).unwrap_or(PathMtu::Mtu256);
        let id = self.insert(now, false, peer.ip, peer.ip, port, mtu, ConnectOptions::default());
        let (own_mac, own_ip) = (self.net.mac, self.net.ip);
        let Some(c) = self.conns.get_mut(id) else { return Ok(()) };
        c.transaction_id = transaction_id;
        c.remote_comm_id = remote;
        c.remote_qpn = req.local_qpn();
        c.send_psn = req.starting_psn();
        c.peer_retry_count = req.retry_count();
        c.peer_rnr_retry = req.rnr_retry_count();
        c.peer_mac = Some(peer.mac);
        c.flow = Some(Flow::new(own_mac, peer.mac, own_ip, peer.ip, source_port(c.local_qpn)));
        c.stats.resolved = Some(now);
        c.cm_deadline = Some(now + DECISION_TIME);
        self.core.events.push_back(Event::ConnectRequest {
            conn: id,
            port,
            peer: peer.ip,
            private_data: req.private_data.to_vec(),
        });
        self.touch(id);
        Ok(())
    }

    /// Whether a request can be offered to the application; if not, why, and a byte of additional information.
    fn check_req(&self, req: &Req) -> Result<(), (RejReason, Option<u8>)> {
        let refuse = |reason| Err((reason, None));
        if req.transport() != 0 {
            return refuse(RejReason::INVALID_TRANSPORT_TYPE);
        }
        if !service_port(req.service_id.get()).is_some_and(|port| self.listening.contains(&port)) {
            return refuse(RejReason::INVALID_SERVICE_ID);
        }
        if req.ip_cm.check().is_err() {
            return refuse(RejReason::UNSUPPORTED_REQUEST);
        }
        if req.ip_cm.dst() != self.net.ip {
            return refuse(RejReason::INVALID_GID);
        }
        let mtu = PathMtu::from_code(req.path_mtu());
        if mtu.is_none() || mtu > self.max_mtu {
            return Err((RejReason::INVALID_PATH_MTU, self.max_mtu.map(PathMtu::code)));
        }
        if self.conns.is_full() {
            return refuse(RejReason::NO_RESOURCES);
        }
        Ok(())
    }

    fn receive_rep(&mut self, now: Instant, peer: Peer, transaction_id: u64, rep: &Rep) -> Result<(), Discard> {
        let (local, remote) = (rep.remote_comm_id.get(), rep.local_comm_id.get());
        let phases = [Phase::ReqSent, Phase::Established];
        let Ok(id) = self.find(peer, local, None, &phases) else {
            // A reply to nothing: the peer must not keep a connection that does not exist here (IBTA 12.9.8.3.2).
            let rej = Rej::new(local, remote, MESSAGE_REP, RejReason::INVALID_COMM_ID);
            self.send_mad(peer, &Message::Rej(&rej).to_mad(transaction_id));
            return Err(Discard::CmUnexpected);
        };
        let Some(c) = self.conns.get_mut(id).filter(|c| c.active) else { return Err(Discard::CmUnexpected) };
        let rtu = Rtu::new(local, remote);
        if c.phase == Phase::Established {
            // The RTU was lost.
            if c.remote_comm_id == remote {
                self.send_mad(peer, &Message::Rtu(&rtu).to_mad(transaction_id));
                return Ok(());
            }
            return Err(Discard::CmUnexpected);
        }
        c.remote_comm_id = remote;
        c.remote_qpn = rep.local_qpn();
        if c.remote_qpn.get() <= Qpn::GSI.get() {
            self.abandon(id, ConnectFailure::BadReply);
            return Ok(());
        }
        c.requester.start(rep.starting_psn(), c.path_mtu, c.options.retry_count, rep.rnr_retry_count());
        c.responder.start(c.receive_psn, c.path_mtu.bytes());
        self.send_mad(peer, &Message::Rtu(&rtu).to_mad(transaction_id));
        self.establish(now, id, rep.private_data.to_vec());
        Ok(())
    }

    fn receive_rej(&mut self, now: Instant, peer: Peer, transaction_id: u64, rej: &Rej) -> Result<(), Discard> {
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
            Phase::ReqReceived | Phase::RepSent => {}
            // The peer gave the connection up before it was ready there.
            Phase::Established | Phase::Lingering if c.remote_comm_id == remote => {
                self.finish(id, DisconnectReason::Remote);
                return Ok(());
            }
            Phase::DreqSent => {
                self.finish(id, DisconnectReason::Local);
                return Ok(());
            }
            _ => return Err(Discard::CmUnexpected),
        }
        // The peer names a smaller MTU: ask again with that one.
        let smaller = PathMtu::from_code(rej.info[0]).filter(|&mtu| mtu < c.path_mtu && rej.info_length() > 0);
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

    fn receive_dreq(&mut self, peer: Peer, transaction_id: u64, dreq: &Dreq) -> Result<(), Discard> {
        let (local, remote) = (dreq.remote_comm_id.get(), dreq.local_comm_id.get());
        // Answered also when the connection is gone already: the first DREP may have been lost.
        self.send_mad(peer, &Message::Drep(&Drep::new(local, remote)).to_mad(transaction_id));
        let connected = [Phase::RepSent, Phase::Established, Phase::Lingering, Phase::DreqSent];
        if let Ok(id) = self.find(peer, local, Some(remote), &connected)
            && let Some(c) = self.conns.get(id)
            && c.local_qpn == dreq.remote_qpn()
        {
            // Both sides may ask at once; then it was this side's wish as well.
            let crossed = c.phase == Phase::DreqSent;
            self.finish(id, if crossed { DisconnectReason::Local } else { DisconnectReason::Remote });
        }
        Ok(())
    }
}

/// Values of a REJ's "message rejected" (IBTA 12.6.7.1).
const MESSAGE_REQ: u8 = 0;
const MESSAGE_REP: u8 = 1;
const NO_MESSAGE: u8 = 2;

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

/// A channel adapter's GUID from its Ethernet address (EUI-64, as Linux makes it).
fn guid(mac: MacAddr) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}
