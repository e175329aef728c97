// SPDX-License-Identifier: Apache-2.0
//! The transport of an RDMA NIC, with the functions and events of the user-space one.

use core::net::{IpAddr, SocketAddr};
use core::ptr;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use nacelle_memory::Memory;
use nacelle_roce::{
    Access, Completion, ConnId, ConnInfo, ConnStats, ConnectError, ConnectFailure, ConnectOptions, Data,
    DisconnectReason, Event, Hop, Instant, Path, Phase, PostError, ProtectionDomain, RecvWr, Region, RegionId, SendOp,
    SendWr, WcOpcode, WcStatus,
};
use nacelle_wire::cm::{PathMtu, RejReason};
use nacelle_wire::description::DescriptionLocation;
use nacelle_wire::extensions::Agreement;
use nacelle_wire::{Psn, Qpn};

use crate::abi::{self, RecvRequest, SendRequest, Sge, WorkCompletion};
use crate::connection::Connection;
use crate::hardware::Hardware;
use crate::inlet::{Arrival, Inlet, Kind, Management};
use crate::region::Regions;
use crate::{Place, VerbsError};

/// The longest message (IBTA 9.7.7).
const MAX_MESSAGE: usize = 1 << 31;

/// A work request in a queue.
struct Work {
    conn: ConnId,
    /// The number that its owner gave it; `None` if it is the NIC's own, to see whether the peer is alive.
    id: Option<u64>,
    opcode: WcOpcode,
    len: usize,
    is_reported: bool,
    /// Bytes of its own, registered until it completes.
    inline: Option<RegionId>,
}

/// Connections, regions and queue pairs of an RDMA NIC.
///
/// Names, work requests and events are those of [`nacelle_roce::Transport`]; the packets are the NIC's. What has come is read from
/// the [`Inlet`] and given to [`handle`](Self::handle).
pub struct Nic {
    // The order matters: connections, then their memory, then the device.
    connections: HashMap<ConnId, Connection>,
    regions: Regions,
    works: HashMap<u64, Work>,
    posted: u64,
    connected: u64,
    events: VecDeque<Event>,
    /// Connections that were watched, and have moved.
    moved: VecDeque<ConnId>,
    traffic: [u64; 4],
    hardware: Arc<Hardware>,
}

/// The name of the connection that an identifier's context says.
fn named(key: u64) -> ConnId {
    ConnId::new(key as u32, (key >> 32) as u32)
}

impl Nic {
    /// Opens the device that has an address.
    ///
    /// # Errors
    /// If a library or the device's provider is missing, this user may not use it, or its port is not active.
    pub fn open(place: Place) -> Result<(Self, Inlet), VerbsError> {
        let hardware = Arc::new(Hardware::open(place)?);
        let inlet = Inlet::new(Arc::clone(&hardware));
        let nic = Self {
            connections: HashMap::new(),
            regions: Regions::default(),
            works: HashMap::new(),
            posted: 0,
            connected: 0,
            events: VecDeque::new(),
            moved: VecDeque::new(),
            traffic: [0; 4],
            hardware,
        };
        Ok((nic, inlet))
    }

    /// The device, and the address of this side.
    #[must_use]
    pub fn place(&self) -> Place {
        self.hardware.place
    }

    /// The largest path MTU of the port.
    #[must_use]
    pub fn path_mtu(&self) -> Option<PathMtu> {
        PathMtu::from_code(self.hardware.limits.mtu)
    }

    /// Messages and bytes of their payload sent, and received.
    #[must_use]
    pub fn traffic(&self) -> [u64; 4] {
        self.traffic
    }

    /// Begins to connect to a service. [`Event::Connected`] or [`Event::ConnectFailed`] follows.
    ///
    /// # Errors
    /// If the private data does not fit, or the addresses are of different families.
    pub fn connect(
        &mut self,
        now: Instant,
        peer: IpAddr,
        port: u16,
        options: ConnectOptions,
    ) -> Result<ConnId, ConnectError> {
        if !Connection::fits(&options) {
            return Err(ConnectError::PrivateData);
        }
        if peer.is_ipv4() != self.hardware.place.address.is_ipv4() {
            return Err(ConnectError::NoRoute(peer));
        }
        self.connected += 1;
        let (key, conn) = (self.connected, named(self.connected));
        match Connection::begin(&self.hardware, now, key, SocketAddr::new(peer, port), options) {
            Ok(connection) => _ = self.connections.insert(conn, connection),
            // The kernel knows no way.
            Err(_) => self.events.push_back(Event::ConnectFailed { conn, reason: ConnectFailure::Unreachable }),
        }
        Ok(conn)
    }

    /// Ends a connection: work requests that have not completed are flushed, and the peer no longer accesses memory by it.
    pub fn disconnect(&mut self, now: Instant, conn: ConnId) {
        match self.connections.get_mut(&conn) {
            Some(connection) if connection.phase == Phase::Established => {
                connection.close(now, DisconnectReason::Local);
            }
            Some(connection) if connection.phase != Phase::DreqSent => self.abandon(conn, ConnectFailure::Aborted),
            _ => {}
        }
    }

    /// Registers memory, for one connection or for all. Unlike in the user-space transport peers have their rights for as long as
    /// it is registered.
    ///
    /// # Errors
    /// [`VerbsError::MemoryLock`] if no more memory may be locked; [`VerbsError::System`] if the NIC does not take it.
    pub fn register(&mut self, memory: Memory, access: Access, owner: Option<ConnId>) -> Result<Region, VerbsError> {
        self.regions.register(&self.hardware, memory, access, owner)
    }

    /// Takes a region back: then the NIC no longer accesses its memory.
    pub fn deregister(&mut self, id: RegionId) -> Option<Memory> {
        self.regions.deregister(id)
    }

    /// The memory of a region.
    #[must_use]
    pub fn region(&self, id: RegionId) -> Option<&Memory> {
        self.regions.get(id)
    }

    /// The memory of a region.
    pub fn region_mut(&mut self, id: RegionId) -> Option<&mut Memory> {
        self.regions.get_mut(id)
    }

    /// Lets no request leave before `at`.
    pub fn hold(&mut self, now: Instant, conn: ConnId, at: Instant) {
        if let Some(connection) = self.connections.get_mut(&conn) {
            // What is held back already goes first.
            connection.not_before = (at > now || !connection.held.is_empty()).then_some(at);
        }
    }

    /// Posts a work request: SEND, WRITE, or READ.
    ///
    /// # Errors
    /// As [`nacelle_roce::Transport::post_send`]; [`PostError::NotAgreed`] for other operations.
    pub fn post_send(&mut self, conn: ConnId, request: SendWr) -> Result<(), PostError> {
        let connection = self.connections.get_mut(&conn).ok_or(PostError::UnknownConnection)?;
        if connection.phase != Phase::Established {
            return Err(PostError::NotConnected);
        }
        if connection.sends >= connection.options.send_depth {
            return Err(PostError::QueueFull);
        }
        if connection.not_before.is_some() {
            check(&self.regions, conn, &request)?;
            connection.held.push_back(request);
        } else {
            self.submit(conn, &request)?;
        }
        let connection = self.connections.get_mut(&conn).ok_or(PostError::UnknownConnection)?;
        connection.sends += 1;
        Ok(())
    }

    /// Gives a work request to the NIC.
    fn submit(&mut self, conn: ConnId, request: &SendWr) -> Result<(), PostError> {
        let (opcode, wr, imm, remote) = operation(&request.op)?;
        check(&self.regions, conn, request)?;
        if self.works.len() >= self.hardware.capacity {
            return Err(PostError::QueueFull);
        }
        let (mut sge, mut inline) = (None, None);
        match &request.data {
            _ if request.data.is_empty() => {}
            Data::Region(slice) => sge = self.regions.sge(conn, *slice),
            Data::Inline(bytes) => {
                let copy = self.regions.register(&self.hardware, bytes.clone().into(), Access::LOCAL, Some(conn));
                let copy = copy.map_err(|_| PostError::QueueFull)?;
                inline = Some(copy.id);
                sge = self.regions.sge(conn, copy.all());
            }
        }
        let mut flags = abi::SEND_SIGNALED;
        for (wanted, flag) in [(request.solicited, abi::SEND_SOLICITED), (request.fence, abi::SEND_FENCE)] {
            flags |= if wanted { flag } else { 0 };
        }
        self.posted += 1;
        let mut posted = SendRequest {
            wr_id: self.posted,
            next: ptr::null_mut(),
            sg_list: sge.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
            num_sge: sge.is_some().into(),
            opcode: wr,
            send_flags: flags,
            imm_data: imm.unwrap_or(0).to_be(),
            remote_addr: remote.map_or(0, |(addr, _)| addr),
            rkey: remote.map_or(0, |(_, rkey)| rkey),
            rest: [0; 9],
        };
        let connection = self.connections.get(&conn).ok_or(PostError::UnknownConnection)?;
        if connection.post_send(&mut posted).is_err() {
            inline.map(|id| self.regions.deregister(id));
            return Err(PostError::QueueFull);
        }
        let len = request.data.len();
        let work = Work { conn, id: Some(request.id), opcode, len, is_reported: request.signaled, inline };
        self.works.insert(self.posted, work);
        Ok(())
    }

    /// Posts a receive.
    ///
    /// # Errors
    /// As [`nacelle_roce::Transport::post_recv`].
    pub fn post_recv(&mut self, conn: ConnId, request: RecvWr) -> Result<(), PostError> {
        let connection = self.connections.get_mut(&conn).ok_or(PostError::UnknownConnection)?;
        if connection.phase == Phase::DreqSent {
            return Err(PostError::NotConnected);
        }
        if connection.recvs >= connection.options.recv_depth || self.works.len() >= self.hardware.capacity {
            return Err(PostError::QueueFull);
        }
        let mut sge = match request.slice {
            Some(slice) => Some(self.regions.sge(conn, slice).ok_or(PostError::BadSlice)?),
            None => None,
        };
        self.posted += 1;
        let mut posted = RecvRequest {
            wr_id: self.posted,
            next: ptr::null_mut(),
            sg_list: sge.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
            num_sge: sge.is_some().into(),
        };
        connection.post_recv(&mut posted).map_err(|_| PostError::QueueFull)?;
        connection.recvs += 1;
        let opcode = WcOpcode::Recv;
        let work = Work { conn, id: Some(request.id), opcode, len: 0, is_reported: true, inline: None };
        self.works.insert(self.posted, work);
        Ok(())
    }

    /// The oldest event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Has [`poll_watched`](Self::poll_watched) give this connection, once, when a work request of it has completed.
    pub fn watch(&mut self, conn: ConnId) {
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.is_watched = true;
        }
    }

    /// A connection of which a work request has completed since [`watch`](Self::watch). It may have ended meanwhile.
    pub fn poll_watched(&mut self) -> Option<ConnId> {
        self.moved.pop_front()
    }

    /// Takes what has come.
    pub fn handle(&mut self, now: Instant, arrival: Arrival<'_>) {
        match arrival.0 {
            Kind::Completions(all) => all.iter().for_each(|completion| self.complete(now, completion)),
            Kind::Management(management) => self.manage(now, management),
        }
    }

    fn complete(&mut self, now: Instant, completion: &WorkCompletion) {
        let Some(work) = self.works.remove(&completion.wr_id) else { return };
        work.inline.map(|id| self.regions.deregister(id));
        let status = wc_status(completion.status);
        let ok = status == WcStatus::Success;
        let is_recv = work.opcode.is_recv();
        let Some(connection) = self.connections.get_mut(&work.conn) else { return };
        if core::mem::take(&mut connection.is_watched) {
            self.moved.push_back(work.conn);
        }
        if ok {
            connection.alive_at = now;
            connection.stats.last_received = Some(now);
        }
        let Some(id) = work.id else {
            connection.is_probing = false;
            if !ok {
                self.fail(now, work.conn, status);
            }
            return;
        };
        let byte_len = if is_recv { completion.byte_len as usize } else { work.len };
        let queue = if is_recv { &mut connection.recvs } else { &mut connection.sends };
        *queue = queue.saturating_sub(1);
        if ok {
            let [messages, bytes] = if is_recv { [2, 3] } else { [0, 1] };
            self.traffic[messages] += 1;
            self.traffic[bytes] += byte_len as u64;
            let mtu = PathMtu::from_code(self.hardware.limits.mtu).map_or(4096, PathMtu::bytes);
            let stats = &mut connection.stats;
            stats.rx_packets += 1;
            if is_recv || work.opcode == WcOpcode::Read {
                stats.rx_payload += byte_len as u64;
            } else {
                stats.tx_requests.packets += byte_len.div_ceil(mtu).max(1) as u64;
                stats.tx_requests.payload += byte_len as u64;
            }
        }
        let opcode = match completion.opcode {
            abi::WC_RECV_WRITE if is_recv && ok => WcOpcode::RecvWrite,
            _ => work.opcode,
        };
        let has_imm = ok && is_recv && completion.wc_flags & abi::WC_WITH_IMM != 0;
        if work.is_reported || !ok {
            self.events.push_back(Event::Completion(Completion {
                conn: work.conn,
                id,
                opcode,
                status,
                byte_len: if ok { byte_len } else { 0 },
                imm: has_imm.then(|| u32::from_be(completion.imm_data)),
                invalidated: None,
                solicited: false,
            }));
        }
        if !ok {
            self.fail(now, work.conn, status);
        }
    }

    /// A work request has failed: the queue pair has stopped.
    fn fail(&mut self, now: Instant, conn: ConnId, status: WcStatus) {
        // Flushed before any other failure: the peer's request was wrong.
        let status = if status == WcStatus::WrFlushErr { WcStatus::LocQpOpErr } else { status };
        if let Some(connection) = self.connections.get_mut(&conn).filter(|one| one.phase == Phase::Established) {
            connection.close(now, DisconnectReason::Error(status));
            // A peer that has vanished answers no DREQ: who waits hears of the end now.
            connection.is_told = true;
            let (reason, stats) = (connection.reason, Box::new(connection.stats));
            self.events.push_back(Event::Disconnected { conn, reason, private_data: Vec::new(), stats });
        }
    }

    /// Takes what has completed until now.
    fn drain(&mut self, now: Instant) {
        let mut found = [WorkCompletion::default(); 16];
        loop {
            let count = self.hardware.poll(&mut found);
            found[..count].iter().for_each(|completion| self.complete(now, completion));
            if count < found.len() {
                return;
            }
        }
    }

    fn manage(&mut self, now: Instant, management: Management) {
        let conn = named(management.connection);
        if management.event == abi::CM_DISCONNECTED {
            // What the peer sent before its DREQ.
            self.drain(now);
        }
        // It may have been abandoned.
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let unreachable = ConnectFailure::Unreachable;
        if connection.phase == Phase::Resolving {
            if Self::resolve(now, connection, &management).is_err() {
                self.abandon(conn, unreachable);
            }
            return;
        }
        match (management.event, connection.phase) {
            (abi::CM_ESTABLISHED, Phase::ReqSent) => self.establish(now, conn, management),
            (abi::CM_UNREACHABLE, Phase::ReqSent) => {
                // Host or network is unknown to the kernel, or there was no answer.
                let known = -management.status == libc::ETIMEDOUT;
                self.abandon(conn, if known { ConnectFailure::Timeout } else { unreachable });
            }
            (abi::CM_REJECTED, Phase::ReqSent) => {
                let reason = RejReason(u16::try_from(management.status).unwrap_or(0));
                let private_data = management.private_data;
                self.abandon(conn, ConnectFailure::Rejected { reason, private_data });
            }
            (abi::CM_CONNECT_ERROR, Phase::ReqSent) => self.abandon(conn, ConnectFailure::BadReply),
            (abi::CM_DISCONNECTED, Phase::Established) => {
                connection.close(now, DisconnectReason::Remote);
                self.finish(conn, management.private_data);
            }
            (abi::CM_DISCONNECTED | abi::CM_TIMEWAIT_EXIT, Phase::DreqSent) => {
                self.finish(conn, management.private_data);
            }
            (abi::CM_DEVICE_REMOVAL, Phase::Established | Phase::DreqSent) => self.finish(conn, Vec::new()),
            (abi::CM_DEVICE_REMOVAL, _) => self.abandon(conn, unreachable),
            _ => {}
        }
    }

    /// Goes on to look for the way to a peer.
    fn resolve(now: Instant, connection: &mut Connection, management: &Management) -> io::Result<()> {
        match management.event {
            abi::CM_ADDR_RESOLVED => {
                connection.stats.resolved.get_or_insert(now);
                connection.address_resolved()
            }
            abi::CM_ROUTE_RESOLVED => connection.request(now),
            // The deadline ends it.
            abi::CM_ADDR_ERROR if -management.status == libc::ETIMEDOUT => connection.resolve(),
            abi::CM_ADDR_ERROR | abi::CM_ROUTE_ERROR | abi::CM_DEVICE_REMOVAL => {
                Err(io::ErrorKind::HostUnreachable.into())
            }
            _ => Ok(()),
        }
    }

    /// The peer has accepted.
    fn establish(&mut self, now: Instant, conn: ConnId, management: Management) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let mut private_data = management.private_data;
        let taken = Agreement::find(&private_data);
        // Where nothing is agreed on, the record of its description shows a device of Nacelle's.
        connection.has_record = taken.is_some() || DescriptionLocation::find(&private_data).is_some();
        connection.agreement = connection.offer().common(taken.unwrap_or_default());
        if let (Some(_), Some(record)) = (taken, private_data.last_chunk_mut::<{ Agreement::LEN }>()) {
            record.fill(0);
        }
        connection.phase = Phase::Established;
        connection.deadline = None;
        connection.alive_at = now;
        connection.stats.established.get_or_insert(now);
        connection.remote_qpn = management.remote_qpn;
        connection.responder_resources = connection.options.responder_resources.min(management.responder_resources);
        connection.initiator_depth = connection.options.initiator_depth.min(management.initiator_depth);
        self.events.push_back(Event::Connected { conn, private_data });
    }

    /// Gives an attempt to connect up.
    fn abandon(&mut self, conn: ConnId, reason: ConnectFailure) {
        self.remove(conn);
        self.events.push_back(Event::ConnectFailed { conn, reason });
    }

    /// A connection is over.
    fn finish(&mut self, conn: ConnId, private_data: Vec<u8>) {
        if let Some(Ended { reason, stats, is_told: false }) = self.remove(conn) {
            let stats = Box::new(stats);
            self.events.push_back(Event::Disconnected { conn, reason, private_data, stats });
        }
    }

    /// Destroys a connection's queue pair, and forgets its work requests.
    fn remove(&mut self, conn: ConnId) -> Option<Ended> {
        let connection = self.connections.remove(&conn)?;
        let ended = Ended { reason: connection.reason, stats: connection.stats, is_told: connection.is_told };
        drop(connection);
        // Completions that are still in the queue belong to nobody.
        let (regions, mut left) = (&mut self.regions, Vec::new());
        self.works.retain(|_, work| {
            if work.conn == conn {
                left.extend(work.inline);
            }
            work.conn != conn
        });
        left.into_iter().for_each(|id| drop(regions.deregister(id)));
        Some(ended)
    }

    /// Does what it is time for.
    pub fn run_timers(&mut self, now: Instant) {
        let due: Vec<ConnId> = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.next_deadline().is_some_and(|at| at <= now))
            .map(|(conn, _)| *conn)
            .collect();
        for conn in due {
            self.run_timer(now, conn);
        }
    }

    fn run_timer(&mut self, now: Instant, conn: ConnId) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if connection.deadline.is_some_and(|at| at <= now) {
            return match connection.phase {
                Phase::DreqSent => self.finish(conn, Vec::new()),
                Phase::Resolving => self.abandon(conn, ConnectFailure::Unreachable),
                _ => self.abandon(conn, ConnectFailure::Timeout),
            };
        }
        if connection.not_before.is_some_and(|at| at <= now) {
            connection.not_before = None;
            for request in core::mem::take(&mut connection.held) {
                if self.submit(conn, &request).is_err() {
                    return self.fail(now, conn, WcStatus::LocProtErr);
                }
            }
            return;
        }
        self.probe(conn);
    }

    /// Sees by a WRITE without a byte whether the peer is alive: its acknowledgement needs no key (IBTA 9.7.4.1.5).
    fn probe(&mut self, conn: ConnId) {
        self.posted += 1;
        let mut posted = SendRequest {
            wr_id: self.posted,
            next: ptr::null_mut(),
            sg_list: ptr::null_mut::<Sge>(),
            num_sge: 0,
            opcode: abi::WR_WRITE,
            send_flags: abi::SEND_SIGNALED,
            imm_data: 0,
            remote_addr: 0,
            rkey: 0,
            rest: [0; 9],
        };
        if let Some(connection) = self.connections.get_mut(&conn)
            && connection.post_send(&mut posted).is_ok()
        {
            connection.is_probing = true;
            let opcode = WcOpcode::Write;
            let work = Work { conn, id: None, opcode, len: 0, is_reported: false, inline: None };
            self.works.insert(self.posted, work);
        }
    }

    /// When to call [`run_timers`](Self::run_timers) at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.connections.values().filter_map(Connection::next_deadline).min()
    }

    /// The state of every connection.
    pub fn connections(&self) -> impl Iterator<Item = (ConnId, ConnInfo)> {
        self.connections.keys().filter_map(|conn| Some((*conn, self.connection(*conn)?)))
    }

    /// The state of a connection. What only packets show has its default.
    #[must_use]
    pub fn connection(&self, conn: ConnId) -> Option<ConnInfo> {
        let connection = self.connections.get(&conn)?;
        let local = self.hardware.place.address;
        let path = Path { local, remote: connection.peer, hop: Hop::default() };
        Some(ConnInfo {
            phase: connection.phase,
            peer: connection.peer,
            path: Some(path).filter(|_| connection.stats.resolved.is_some()),
            domain: ProtectionDomain::DEFAULT,
            port: connection.port,
            local_qpn: Qpn::new(connection.local_qpn()),
            remote_qpn: Some(Qpn::new(connection.remote_qpn)).filter(|_| connection.stats.established.is_some()),
            remote_guid: None,
            path_mtu: self.path_mtu().unwrap_or(PathMtu::Mtu1024),
            responder_resources: connection.responder_resources,
            initiator_depth: connection.initiator_depth,
            selective_repeat: false,
            has_record: connection.has_record,
            late_acknowledgement: false,
            agreement: connection.agreement,
            next_psn: Psn::new(0),
            oldest_psn: Psn::new(0),
            sends: connection.sends,
            recvs: connection.recvs,
            rate_limit: None,
            stats: connection.stats,
        })
    }

    /// Work requests in the send queue of a connection.
    #[must_use]
    pub fn sends(&self, conn: ConnId) -> usize {
        self.connections.get(&conn).map_or(0, |connection| connection.sends)
    }

    /// Statistics of a connection: messages in place of packets.
    #[must_use]
    pub fn stats(&self, conn: ConnId) -> Option<&ConnStats> {
        self.connections.get(&conn).map(|connection| &connection.stats)
    }
}

/// What is left to say of a connection.
struct Ended {
    reason: DisconnectReason,
    stats: ConnStats,
    /// Whether its end was reported.
    is_told: bool,
}

/// What a work request does: as a completion and as a request names it, its immediate, its place at the peer.
type Operation = (WcOpcode, u32, Option<u32>, Option<(u64, u32)>);

fn operation(op: &SendOp) -> Result<Operation, PostError> {
    Ok(match *op {
        SendOp::Send { imm: None } => (WcOpcode::Send, abi::WR_SEND, None, None),
        SendOp::Send { imm } => (WcOpcode::Send, abi::WR_SEND_IMM, imm, None),
        SendOp::Write { addr, rkey, imm } => {
            let wr = if imm.is_some() { abi::WR_WRITE_IMM } else { abi::WR_WRITE };
            (WcOpcode::Write, wr, imm, Some((addr.0, rkey.0)))
        }
        SendOp::Read { addr, rkey } => (WcOpcode::Read, abi::WR_READ, None, Some((addr.0, rkey.0))),
        _ => return Err(PostError::NotAgreed),
    })
}

/// Whether a work request's bytes are where this connection may use them.
fn check(regions: &Regions, conn: ConnId, request: &SendWr) -> Result<(), PostError> {
    operation(&request.op)?;
    if request.data.len() > MAX_MESSAGE {
        return Err(PostError::TooLong);
    }
    match &request.data {
        Data::Region(slice) if regions.sge(conn, *slice).is_none() => Err(PostError::BadSlice),
        Data::Inline(bytes) if matches!(request.op, SendOp::Read { .. }) && !bytes.is_empty() => {
            Err(PostError::BadSlice)
        }
        _ => Ok(()),
    }
}

/// `enum ibv_wc_status`.
const fn wc_status(status: u32) -> WcStatus {
    match status {
        0 => WcStatus::Success,
        1 => WcStatus::LocLenErr,
        4 => WcStatus::LocProtErr,
        5 => WcStatus::WrFlushErr,
        7 => WcStatus::BadRespErr,
        8 => WcStatus::LocAccessErr,
        9 => WcStatus::RemInvReqErr,
        10 => WcStatus::RemAccessErr,
        11 => WcStatus::RemOpErr,
        12 => WcStatus::RetryExceeded,
        13 => WcStatus::RnrRetryExceeded,
        // Those of the NIC itself, and of services that are not used here.
        _ => WcStatus::LocQpOpErr,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_keep_the_names_that_verbs_give_them() {
        let all = [
            (0, WcStatus::Success),
            (2, WcStatus::LocQpOpErr),
            (5, WcStatus::WrFlushErr),
            (12, WcStatus::RetryExceeded),
        ];
        for (number, status) in all {
            assert_eq!(wc_status(number), status);
        }
        assert_eq!(wc_status(19), WcStatus::LocQpOpErr, "a fatal error");
    }
}
