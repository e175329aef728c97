// SPDX-License-Identifier: Apache-2.0
//! Connection management, both roles (IBTA volume 1, chapter 12; RDMA IP-CM service, annex A11).
//!
//! Here: datagrams in and out, repetition, and what both roles share. [`active`] asks for connections, [`passive`]
//! answers, [`close`] ends them.

mod active;
mod close;
mod passive;

use crate::{
    ConnId, ConnStats, ConnectFailure, ConnectOptions, Discard, Endpoint, Event, Instant, Phase,
    cc::Pace,
    conn::Connection,
    netif::is_one_host,
    qp::{Requester, Responder},
};
use core::{net::Ipv4Addr, time::Duration};
use nacelle_wire::{
    MacAddr, Psn, Qpn, RoceHeaders, RocePacket,
    bth::{Bth, Deth, Opcode},
    cm::{GSI_Q_KEY, MAD_LEN, Message, Mra, PathMtu, Rej, RejReason, set_private_data, timeout_nanos},
    roce::{Ext, Flow},
};
use rand_chacha::rand_core::Rng;

/// Longest time that one MRA of a peer can make this side wait.
const MRA_LIMIT: Duration = Duration::from_secs(60);

/// Values of a REJ's "message rejected" and, the first two, an MRA's "message MRAed" (IBTA 12.6.6.1, 12.6.7.1).
const MESSAGE_REQ: u8 = 0;
const MESSAGE_REP: u8 = 1;
const NO_MESSAGE: u8 = 2;

/// Bytes that each message leaves to the application (IBTA 12.6; annex A11 for the REQ).
mod private_data {
    pub(super) const REQ: usize = 56;
    pub(super) const REP: usize = 196;
    pub(super) const REJ: usize = 148;
    pub(super) const RTU: usize = 224;
    pub(super) const DREQ: usize = 220;
    pub(super) const DREP: usize = 224;
}

/// UDP source port by queue pair, as Linux chooses it: the same for all packets of one, different between them.
pub(crate) fn source_port(qpn: Qpn) -> u16 {
    0xc000 | ((qpn.get() ^ qpn.get() >> 14) & 0x3fff) as u16
}

/// Where a CM message came from, or goes to.
#[derive(Clone, Copy)]
struct Peer {
    mac: MacAddr,
    ip: Ipv4Addr,
}

/// What both roles know of a connection when it begins.
pub(crate) struct Beginning {
    pub(crate) active: bool,
    pub(crate) peer_ip: Ipv4Addr,
    pub(crate) next_hop: Ipv4Addr,
    pub(crate) port: u16,
    pub(crate) path_mtu: PathMtu,
    pub(crate) options: ConnectOptions,
}

/// Whether the private data of `options` fits the messages; `first` is the room in the REQ or REP.
fn private_data_fits(options: &ConnectOptions, first: usize) -> bool {
    options.private_data.len() <= first
        && options.rtu_data.len() <= private_data::RTU
        && options.drep_data.len() <= private_data::DREP
}

impl Endpoint {
    /// Takes a place for a connection. Call only if there is one.
    pub(crate) fn insert(&mut self, now: Instant, beginning: Beginning) -> ConnId {
        let Beginning { active, peer_ip, next_hop, port, path_mtu, options } = beginning;
        let local_comm_id = loop {
            let id = self.rng.next_u32();
            if id != 0 && self.conns.iter().all(|c| c.local_comm_id != id) {
                break id;
            }
        };
        let transaction_id = self.rng.next_u64();
        let receive_psn = options.starting_psn.unwrap_or(Psn::new(self.rng.next_u32()));
        let (cm_timeout, cm_retries) = (options.cm_timeout, options.cm_retries);
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
            cm_timeout,
            cm_retries,
            peer_retry_count: 7,
            peer_rnr_retry: 7,
            responder_resources: 0,
            initiator_depth: 0,
            selective_repeat: false,
            mad: Box::new([0; MAD_LEN]),
            tries_left: 0,
            cm_deadline: None,
            told: false,
            pace: Pace::default(),
            stats: ConnStats { started: now, ..ConnStats::default() },
            answer_queued: false,
            send_queued: false,
        })
    }

    /// Sends a message of a connection, and again until it is answered or the tries are used up.
    fn start_cm(&mut self, now: Instant, id: ConnId, message: Message<'_>) {
        let Some(c) = self.conns.get_mut(id) else { return };
        *c.mad = message.to_mad(c.transaction_id);
        c.tries_left = c.cm_retries;
        c.cm_deadline = Some(now + c.cm_timeout);
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
            Phase::Resolving | Phase::Established | Phase::Manual(_) => c.cm_deadline = None,
            Phase::Lingering => self.send_dreq(now, id, &[]),
            Phase::ReqReceived => self.run_decision_timer(now, id),
            Phase::ReqSent | Phase::RepSent | Phase::DreqSent if c.tries_left > 0 => {
                c.tries_left -= 1;
                c.cm_deadline = Some(now + c.cm_timeout);
                self.repeat_cm(id);
            }
            Phase::ReqSent | Phase::RepSent => {
                self.send_rej(id, RejReason::TIMEOUT, &[]);
                self.abandon(id, ConnectFailure::Timeout);
            }
            Phase::DreqSent => self.finish(id, crate::DisconnectReason::Local, &[]),
        }
    }

    /// A connection that never came to be ends.
    fn abandon(&mut self, id: ConnId, reason: ConnectFailure) {
        self.flush(id);
        if self.conns.remove(id).is_some_and(|c| !c.told) {
            self.core.events.push_back(Event::ConnectFailed { conn: id, reason });
        }
    }

    /// Sends a REJ for a connection that is being set up.
    fn send_rej(&mut self, id: ConnId, reason: RejReason, private_data: &[u8]) {
        let guid = guid(self.net.mac);
        let Some(c) = self.conns.get(id) else { return };
        let Some(mac) = c.peer_mac else { return };
        // An active side has not seen a REP yet, and an accepting one has answered the REQ: neither refuses a message.
        let rejected = if c.phase == Phase::ReqReceived { MESSAGE_REQ } else { NO_MESSAGE };
        let mut rej = Rej::new(c.local_comm_id, c.remote_comm_id, rejected, reason);
        if reason == RejReason::TIMEOUT {
            // A peer that has not seen this side's identifier finds the connection by GUID (IBTA 12.6.7.2).
            rej.set_information(&guid.to_be_bytes());
        }
        set_private_data(&mut rej.private_data, private_data).expect("checked by the caller");
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
        // From the general service interface of a single host: nobody else can be answered (IBTA 13.5.3.3).
        if deth.src_qp() != Qpn::GSI || !is_one_host(peer.mac, peer.ip) {
            return Err(Discard::CmSource);
        }
        let (transaction_id, message) = Message::parse(packet.payload)?;
        match message {
            Message::Req(req) => self.receive_req(now, peer, transaction_id, req),
            Message::Rep(rep) => self.receive_rep(now, peer, transaction_id, rep),
            Message::Rtu(rtu) => self.receive_rtu(now, peer, rtu),
            Message::Rej(rej) => self.receive_rej(now, peer, transaction_id, rej),
            Message::Mra(mra) => self.receive_mra(now, peer, mra),
            Message::Dreq(dreq) => self.receive_dreq(peer, transaction_id, dreq),
            Message::Drep(drep) => self.receive_drep(peer, drep),
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

    /// The connection with `peer` whose queue pair there is `qpn`, if it has not ended here.
    fn find_remote_qpn(&self, peer: Peer, qpn: Qpn) -> Option<ConnId> {
        let alive = [Phase::RepSent, Phase::Established];
        self.conns
            .iter()
            .find(|c| c.peer_ip == peer.ip && c.remote_qpn == qpn && alive.contains(&c.phase))
            .map(|c| c.id)
    }

    /// The peer needs longer for its answer. Each MRA uses up one repetition, so that nobody waits for ever.
    fn receive_mra(&mut self, now: Instant, peer: Peer, mra: &Mra) -> Result<(), Discard> {
        let (waiting, remote) = match mra.message_mraed() {
            MESSAGE_REQ => (Phase::ReqSent, None),
            MESSAGE_REP => (Phase::RepSent, Some(mra.local_comm_id.get())),
            _ => return Err(Discard::CmUnexpected),
        };
        let id = self.find(peer, mra.remote_comm_id.get(), remote, &[waiting])?;
        if let Some(c) = self.conns.get_mut(id)
            && c.tries_left > 0
        {
            c.tries_left -= 1;
            let asked = Duration::from_nanos(timeout_nanos(mra.service_timeout())).min(MRA_LIMIT);
            c.cm_deadline = Some(now + asked + c.cm_timeout);
        }
        Ok(())
    }
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

/// A channel adapter's GUID from its Ethernet address (EUI-64, as Linux makes it).
fn guid(mac: MacAddr) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}
