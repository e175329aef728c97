// SPDX-License-Identifier: Apache-2.0
//! Connection management, both roles (IBTA volume 1, chapter 12; RDMA IP-CM service, annex A11).
//!
//! Here: datagrams in and out, repetition, and what both roles share. [`active`] requests connections, [`passive`]
//! accepts them, [`close`] ends them.

mod active;
mod close;
mod passive;

use crate::{
    ConnId, ConnStats, ConnectFailure, ConnectOptions, Discard, DisconnectReason, Event, Instant, Path, Phase,
    Transmit, Transport,
    cc::Pace,
    conn::Connection,
    qp::{Packet, Requester, Responder},
};
use core::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};
use nacelle_wire::{
    Ecn, Psn, Qpn,
    admission::Token,
    bth::{Bth, Deth, Opcode},
    cm::{GSI_Q_KEY, MAD_LEN, Message, Mra, PathMtu, Rej, RejReason, set_private_data, timeout_nanos},
    extensions::Agreement,
    transport::{Ext, Headers},
};
use rand_chacha::rand_core::Rng;
use std::collections::VecDeque;

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

/// UDP source port of a queue pair's packets, as Linux chooses it.
pub(crate) fn source_port(qpn: Qpn) -> u16 {
    0xc000 | ((qpn.get() ^ qpn.get() >> 14) & 0x3fff) as u16
}

/// Most CM messages that wait to be sent. Others are lost, as in a busy network: all of them are repeated.
const QUEUE_LIMIT: usize = 256;

/// CM messages that wait to be sent, with their PSNs.
pub(crate) type CmQueue = VecDeque<(Path, Psn, [u8; MAD_LEN])>;

/// How a connection begins.
pub(crate) struct Origin {
    pub(crate) active: bool,
    pub(crate) peer: IpAddr,
    pub(crate) path: Option<Path>,
    pub(crate) port: u16,
    pub(crate) path_mtu: PathMtu,
    pub(crate) options: ConnectOptions,
}

/// Whether the private data of `options` fits the messages; `first` is the room in the REQ or REP.
fn private_data_fits(options: &ConnectOptions, first: usize) -> bool {
    let token = if options.token.is_some() { Token::LEN + Agreement::LEN } else { 0 };
    options.private_data.len() + token <= first
        && options.rtu_data.len() <= private_data::RTU
        && options.drep_data.len() <= private_data::DREP
}

impl Transport {
    /// Adds a connection. Call only if there is room.
    pub(crate) fn insert(&mut self, now: Instant, origin: Origin) -> ConnId {
        let Origin { active, peer, path, port, path_mtu, options } = origin;
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
            peer,
            path,
            port,
            local_qpn,
            remote_qpn: Qpn::default(),
            remote_guid: None,
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
            late_acknowledgement: false,
            ack_delay: None,
            has_record: false,
            not_before: None,
            agreement: Agreement::default(),
            offered: Agreement::default(),
            mad: Box::new([0; MAD_LEN]),
            tries_left: 0,
            cm_deadline: None,
            end_reported: false,
            pace: Pace::default(),
            stats: ConnStats { started: now, ..ConnStats::default() },
            acknowledge_queued: false,
            send_queued: false,
            is_watched: false,
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
            && let Some(path) = c.path
        {
            let mad = *c.mad;
            self.queue_mad(path, mad);
        }
    }

    /// Queues a CM message.
    fn queue_mad(&mut self, path: Path, mad: [u8; MAD_LEN]) {
        if self.cm_queue.len() < QUEUE_LIMIT {
            self.cm_queue.push_back((path, self.gsi_psn, mad));
            self.gsi_psn = self.gsi_psn.add(1);
            self.core.counters.tx_cm += 1;
        } else {
            self.core.counters.tx_cm_queue_full += 1;
        }
    }

    /// Builds the segment of the oldest CM message.
    pub(crate) fn send_cm(&mut self, buf: &mut [u8]) -> Option<Transmit> {
        let (path, psn, mad) = self.cm_queue.pop_front()?;
        let mut bth = Bth::new(Opcode::UdSendOnly, Qpn::GSI, psn);
        bth.set_ack_req(true); // as Linux does, though datagrams are not acknowledged
        let headers = Headers::new(bth, Ext::Deth(Deth::new(GSI_Q_KEY, Qpn::GSI)));
        let (payload, len) = headers.write(MAD_LEN, buf).expect("the caller's buffer holds a CM message");
        payload.copy_from_slice(&mad);
        let source_port = source_port(Qpn::GSI);
        Some(Transmit { path, source_port, dscp: 0, ecn: Ecn::NotEct, len, segment_size: None })
    }

    /// Handles the CM timer of a connection.
    pub(crate) fn run_cm_timer(&mut self, now: Instant, id: ConnId) {
        let Some(c) = self.conns.get_mut(id) else { return };
        if c.cm_deadline.is_none_or(|t| now < t) {
            return;
        }
        match c.phase {
            Phase::Resolving | Phase::Established | Phase::Unmanaged(_) => c.cm_deadline = None,
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
            Phase::DreqSent => self.finish(id, DisconnectReason::Local, &[]),
        }
    }

    /// A connection that was not established ends.
    pub(crate) fn abandon(&mut self, id: ConnId, reason: ConnectFailure) {
        self.flush(id);
        if self.conns.remove(id).is_some_and(|c| !c.end_reported) {
            self.core.events.push_back(Event::ConnectFailed { conn: id, reason });
        }
    }

    /// Sends a REJ for a connection that is being set up.
    fn send_rej(&mut self, id: ConnId, reason: RejReason, private_data: &[u8]) {
        let Some((c, path)) = self.conns.get(id).and_then(|c| Some((c, c.path?))) else { return };
        // An active side has not seen a REP yet, and an accepting one has replied to the REQ: neither refuses a message.
        let rejected = if c.phase == Phase::ReqReceived { MESSAGE_REQ } else { NO_MESSAGE };
        let mut rej = Rej::new(c.local_comm_id, c.remote_comm_id, rejected, reason);
        if reason == RejReason::TIMEOUT {
            // A peer that has not seen this side's identifier finds the connection by GUID (IBTA 12.6.7.2).
            rej.set_information(&self.guid.to_be_bytes());
        }
        set_private_data(&mut rej.private_data, private_data).expect("checked by the caller");
        let mad = Message::Rej(&rej).to_mad(c.transaction_id);
        self.queue_mad(path, mad);
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

    /// Receives a packet for the general service interface.
    pub(crate) fn receive_cm(&mut self, now: Instant, path: Path, packet: &Packet<'_>) -> Result<(), Discard> {
        let Ext::Deth(deth) = packet.headers.ext else { return Err(Discard::CmUnexpected) };
        if deth.q_key != GSI_Q_KEY {
            return Err(Discard::QKey);
        }
        // From the general service interface of a unicast address: only that can be replied to (IBTA 13.5.3.3).
        if deth.src_qp() != Qpn::GSI || !is_unicast(path.remote) {
            return Err(Discard::CmSource);
        }
        // One byte more, so that nothing longer is taken for one.
        let mut mad = [0; MAD_LEN + 1];
        let (transaction_id, message) = Message::parse(packet.payload.copy_head(&mut mad))?;
        match message {
            Message::Req(req) => self.receive_req(now, path, transaction_id, req),
            Message::Rep(rep) => self.receive_rep(now, path, transaction_id, rep),
            Message::Rtu(rtu) => self.receive_rtu(now, path, rtu),
            Message::Rej(rej) => self.receive_rej(now, path, transaction_id, rej),
            Message::Mra(mra) => self.receive_mra(now, path, mra),
            Message::Dreq(dreq) => self.receive_dreq(path, transaction_id, dreq),
            Message::Drep(drep) => self.receive_drep(path, drep),
        }?;
        self.core.counters.rx_cm += 1;
        Ok(())
    }

    /// The connection with `peer` that has the identifiers `local` and, if given, `remote`, in one of these phases.
    fn find(&self, peer: IpAddr, local: u32, remote: Option<u32>, phases: &[Phase]) -> Result<ConnId, Discard> {
        self.conns
            .iter()
            .find(|c| c.local_comm_id == local && c.peer == peer)
            .filter(|c| remote.is_none_or(|r| c.remote_comm_id == r) && phases.contains(&c.phase))
            .map(|c| c.id)
            .ok_or(Discard::CmUnexpected)
    }

    /// The connection with queue pair `qpn` of `peer`, if it has not ended.
    fn find_remote_qpn(&self, peer: IpAddr, qpn: Qpn) -> Option<ConnId> {
        let alive = [Phase::RepSent, Phase::Established];
        self.conns.iter().find(|c| c.peer == peer && c.remote_qpn == qpn && alive.contains(&c.phase)).map(|c| c.id)
    }

    /// The peer needs longer for its reply. Each MRA counts as one repetition, so the wait is bounded.
    fn receive_mra(&mut self, now: Instant, path: Path, mra: &Mra) -> Result<(), Discard> {
        let (waiting, remote) = match mra.message_mraed() {
            MESSAGE_REQ => (Phase::ReqSent, None),
            MESSAGE_REP => (Phase::RepSent, Some(mra.local_comm_id.get())),
            _ => return Err(Discard::CmUnexpected),
        };
        let id = self.find(path.remote, mra.remote_comm_id.get(), remote, &[waiting])?;
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

/// Whether an address is that of a single host.
fn is_unicast(ip: IpAddr) -> bool {
    let special = match ip {
        IpAddr::V4(ip) => ip == Ipv4Addr::BROADCAST || ip.octets()[0] >= 224,
        IpAddr::V6(ip) => ip.is_multicast(),
    };
    !special && !ip.is_unspecified()
}
