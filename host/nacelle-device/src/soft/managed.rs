// SPDX-License-Identifier: Apache-2.0
//! Management of the software device, and the connections that it opens for it.

use std::collections::HashMap;
use std::net::IpAddr;

use nacelle_manage::{
    Access as RegisterAccess, Bytes, Completion as Done, ConnectionState, Digest, KernelSocket, MAX_MESSAGE,
    MAX_PRIVATE, Manage, MemoryRegion, Opened, Owner, Progress, QpState, QueuePair, QueuePairCounters, Refusal, Reset,
    Work, access, access_names,
};
use nacelle_roce::{
    Access, Completion, ConnId, ConnInfo, ConnStats, ConnectFailure, ConnectOptions, RecvWr, Region, Scope, SendWr,
    WcOpcode, WcStatus,
};
use nacelle_wire::cm::PathMtu;
use nacelle_wire::mrsp::ReturnCode;
use nacelle_wire::{RemoteAddr, Rkey};

use super::SoftEngine;
use super::event_log::Party;
use super::registers::LocalBus;
use super::session::At;

/// Connections that management has at a time.
const MAX_MANAGED: usize = 16;
/// Numbers of its work requests.
const RECEIVE: u64 = 0;
const SEND: u64 = 1;

/// One connection that management opened.
struct Managed {
    conn: ConnId,
    party: Party,
    /// Where it receives, in the first half, and reads to, in the second. Gone with the connection.
    buffer: Option<Region>,
    state: ConnectionState,
    opened: Option<Opened>,
    receiving: bool,
    sending: bool,
    completions: Vec<Done>,
}

impl Managed {
    fn lives_on(&self, conn: ConnId) -> bool {
        self.conn == conn && !self.state.is_over()
    }
}

/// The connections that management opened, by their numbers.
#[derive(Default)]
pub(super) struct ManagedTable {
    connections: HashMap<u16, Managed>,
    next: u16,
}

impl ManagedTable {
    /// The live one with this connection of the endpoint.
    fn with_conn(&mut self, conn: ConnId) -> Option<&mut Managed> {
        self.connections.values_mut().find(|managed| managed.lives_on(conn))
    }

    fn get(&mut self, number: u16) -> Result<&mut Managed, Refusal> {
        self.connections.get_mut(&number).ok_or_else(|| Refusal::no_connection(number))
    }
}

impl SoftEngine {
    /// Whether this connection is management's.
    pub(super) fn is_managed(&self, conn: ConnId) -> bool {
        self.managed.connections.values().any(|managed| managed.lives_on(conn))
    }

    /// The two sides of one.
    pub(super) fn managed_party(&self, conn: ConnId) -> Option<Party> {
        self.managed.connections.values().find(|managed| managed.lives_on(conn)).map(|managed| managed.party)
    }

    /// One is established.
    pub(super) fn managed_established(&mut self, conn: ConnId, private: &[u8]) {
        let qpn = self.endpoint.transport.connection(conn).map_or(0, |info| info.local_qpn.get());
        let private = Bytes::trimmed(&private[..private.len().min(MAX_PRIVATE)]);
        if let Some(managed) = self.managed.with_conn(conn) {
            managed.state = ConnectionState::Established;
            managed.opened = Some(Opened { qpn, private });
        }
    }

    /// One was not made.
    pub(super) fn managed_failed(&mut self, conn: ConnId, reason: ConnectFailure) {
        let state = match reason {
            ConnectFailure::Unreachable | ConnectFailure::Timeout => ConnectionState::Unreachable,
            ConnectFailure::Rejected { reason, private_data } => ConnectionState::Refused {
                reason: reason.0,
                text: reason.text().into(),
                private: Bytes::trimmed(&private_data[..private_data.len().min(MAX_PRIVATE)]),
            },
            ConnectFailure::BadReply => {
                let text = "the peer's reply is invalid".into();
                ConnectionState::Refused { reason: 0, text, private: Bytes::default() }
            }
            ConnectFailure::Aborted => ConnectionState::Closed,
        };
        self.end(conn, state);
    }

    /// One has ended.
    pub(super) fn managed_closed(&mut self, conn: ConnId) {
        self.end(conn, ConnectionState::Closed);
    }

    fn end(&mut self, conn: ConnId, state: ConnectionState) {
        let Some(managed) = self.managed.with_conn(conn) else { return };
        if let Some(buffer) = managed.buffer.take() {
            self.endpoint.transport.deregister(buffer.id);
        }
        managed.state = state;
    }

    /// A work request of one has ended.
    pub(super) fn managed_completed(&mut self, completion: &Completion) {
        let Some(managed) = self.managed.with_conn(completion.conn) else { return };
        let place = match completion.opcode {
            WcOpcode::Recv => Some(0),
            WcOpcode::Read => Some(MAX_MESSAGE),
            _ => None,
        };
        let mut data = Vec::new();
        if let (Some(place), Some(buffer)) = (place, managed.buffer)
            && let Some(memory) = self.endpoint.transport.region(buffer.id)
        {
            data.resize(completion.byte_len, 0);
            memory.read(place, &mut data).expect("a receive or READ stays within its slice");
        }
        let receive = completion.opcode.is_recv();
        let busy = if receive { &mut managed.receiving } else { &mut managed.sending };
        *busy = false;
        managed.completions.push(Done {
            receive,
            ok: completion.status == WcStatus::Success,
            status: completion.status.to_string(),
            data: Bytes(data),
            immediate: completion.imm,
        });
    }
}

impl SoftEngine {
    /// Calls of a kernel that this socket has held before.
    fn calls_of_former(&self, socket: u16) -> Vec<At> {
        let is_one = |at: &At| {
            let call = self.sessions.context(*at).and_then(|state| state.call.as_ref());
            let origin = call.and_then(|call| call.origin);
            origin.is_some_and(|origin| origin.socket == socket && self.config.kernels.is_gone(origin))
        };
        self.calls.values().copied().filter(is_one).collect()
    }

    /// Calls that have begun end with the kernel that they have begun with; later ones find the new one, and so does whoever reads the
    /// description.
    fn change_kernel(&mut self, socket: u16, image: Option<(u8, Digest)>) -> Result<(), Refusal> {
        match self.config.kernels.image_count(socket) {
            None => return Err(Refusal::no_socket(socket)),
            Some(1) => return Err(Refusal::one_kernel(socket)),
            Some(_) => {}
        }
        if !self.calls_of_former(socket).is_empty() {
            return Err(Refusal::changing(socket));
        }
        let before = self.config.kernels.changes();
        self.config.kernels.activate(socket, image);
        if self.config.kernels.changes() != before {
            self.publish_again();
        }
        Ok(())
    }
}

/// What a connection has counted, in the order of the RTL.
fn counters(info: &ConnInfo) -> QueuePairCounters {
    let ConnStats { tx_requests, tx_responses, rx_requests, rx_responses, counters: c, .. } = info.stats;
    let values = [
        tx_requests.packets,
        tx_requests.payload,
        tx_responses.packets,
        tx_responses.payload,
        rx_requests.packets,
        rx_requests.payload,
        rx_responses.packets,
        rx_responses.payload,
        c.retransmitted,
        c.local_ack_timeout_err,
        c.rnr_nak_retry_err,
        c.packet_seq_err,
        c.duplicate_request,
        c.out_of_seq_request,
        c.tx_nak + c.send_seq_err,
        c.send_rnr_err,
        c.np_cnp_sent,
        c.rp_cnp_handled,
    ];
    QueuePairCounters::new(info.local_qpn.get(), values)
}

impl Manage for SoftEngine {
    fn queue_pairs(&mut self) -> Result<Vec<QueuePair>, Refusal> {
        let state = |code| QpState::from_code(code).unwrap_or(QpState::Err);
        let pairs = self.endpoint.transport.connections().map(|(conn, info)| QueuePair {
            qpn: info.local_qpn.get(),
            state: state(info.phase.qp_state() as u32),
            peer: Some(info.peer),
            peer_qpn: info.remote_qpn.map(|qpn| qpn.get()),
            owner: if self.is_managed(conn) { Owner::Management } else { Owner::Service },
            unmanaged: matches!(info.phase, nacelle_roce::Phase::Unmanaged(_)),
            domain: info.domain.number(),
            next_psn: info.next_psn.get(),
            oldest_psn: info.oldest_psn.get(),
            rate_limit: info.rate_limit,
        });
        Ok(pairs.collect())
    }

    fn queue_pair_counters(&mut self, qpn: Option<u32>) -> Result<Vec<QueuePairCounters>, Refusal> {
        let wanted = |info: &ConnInfo| qpn.is_none_or(|qpn| qpn == info.local_qpn.get());
        let infos = self.endpoint.transport.connections().map(|(_, info)| info).filter(wanted);
        let all: Vec<QueuePairCounters> = infos.map(|info| counters(&info)).collect();
        match qpn {
            Some(qpn) if all.is_empty() => Err(Refusal::no_queue_pair(qpn)),
            _ => Ok(all),
        }
    }

    fn reset(&mut self, qpn: Option<u32>) -> Result<Reset, Refusal> {
        let wanted = |number: u32| qpn.is_none_or(|qpn| qpn == number);
        let conns: Vec<ConnId> = self
            .endpoint
            .transport
            .connections()
            .filter(|(_, info)| wanted(info.local_qpn.get()))
            .map(|(conn, _)| conn)
            .collect();
        if let Some(qpn) = qpn
            && conns.is_empty()
        {
            return Err(Refusal::no_queue_pair(qpn));
        }
        let now = self.clock.now();
        conns.iter().for_each(|conn| self.endpoint.transport.disconnect(now, *conn));
        Ok(Reset { closing: !conns.is_empty() })
    }

    fn regions(&mut self) -> Result<Vec<MemoryRegion>, Refusal> {
        let rights = [Access::REMOTE_WRITE, Access::REMOTE_READ, Access::REMOTE_ATOMIC, Access::REMOTE_INVALIDATE];
        let valid = self.endpoint.transport.regions().filter(|info| info.valid);
        let regions = valid.map(|info| {
            let bits = rights.iter().enumerate().map(|(bit, right)| u32::from(info.access.contains(*right)) << bit);
            let (qpn, domain) = match info.scope {
                Scope::Local => (None, None),
                Scope::Domain(domain) => (None, Some(domain.number())),
                Scope::Connection(conn) => {
                    let owner = self.endpoint.transport.connection(conn);
                    (owner.map(|owner| owner.local_qpn.get()), owner.map(|owner| owner.domain.number()))
                }
            };
            MemoryRegion {
                address: info.region.addr.0,
                length: info.region.len as u64,
                access: access_names(bits.sum()),
                qpn,
                domain,
            }
        });
        Ok(regions.collect())
    }

    fn domains(&mut self) -> Result<Vec<u32>, Refusal> {
        Ok(self.endpoint.transport.domains().map(|domain| domain.number()).collect())
    }

    fn kernels(&mut self) -> Result<Vec<KernelSocket>, Refusal> {
        Ok(self.config.kernels.sockets(|socket| !self.calls_of_former(socket).is_empty()))
    }

    fn activate_kernel(&mut self, socket: u16, image: u8, digest: Digest) -> Result<(), Refusal> {
        self.change_kernel(socket, Some((image, digest)))
    }

    fn roll_back_kernel(&mut self, socket: u16) -> Result<(), Refusal> {
        self.change_kernel(socket, None)
    }

    fn cut_kernel(&mut self, socket: u16) -> Result<(), Refusal> {
        if self.config.kernels.image_count(socket).is_none() {
            return Err(Refusal::no_socket(socket));
        }
        for at in self.calls_of_former(socket) {
            self.stop_call(at, ReturnCode::SOCKET_UNAVAILABLE);
        }
        Ok(())
    }

    fn connect(&mut self, peer: IpAddr, port: u16, mtu: PathMtu, private: &[u8]) -> Result<u16, Refusal> {
        if private.len() > MAX_PRIVATE {
            return Err(Refusal(format!("private data have at most {MAX_PRIVATE} bytes")));
        }
        // A client that has gone away has not asked what became of its connection.
        if self.managed.connections.len() >= MAX_MANAGED {
            self.managed.connections.retain(|_, managed| !managed.state.is_over());
        }
        if self.managed.connections.len() >= MAX_MANAGED {
            return Err(Refusal(format!("it has {MAX_MANAGED} connections of its own already")));
        }
        let options =
            ConnectOptions { private_data: private.to_vec(), path_mtu: Some(mtu), ..self.config.connect.clone() };
        let conn =
            self.endpoint.connect(self.clock.now(), peer, port, options).map_err(|error| Refusal(error.to_string()))?;
        let Ok(buffer) = self.endpoint.transport.register(vec![0; 2 * MAX_MESSAGE], Access::LOCAL, Some(conn)) else {
            self.endpoint.transport.disconnect(self.clock.now(), conn);
            return Err(Refusal("it has no region left".into()));
        };
        while self.managed.connections.contains_key(&self.managed.next) {
            self.managed.next = self.managed.next.wrapping_add(1);
        }
        let number = self.managed.next;
        self.managed.next = number.wrapping_add(1);
        let qpn = self.endpoint.transport.connection(conn).map_or(0, |info| info.local_qpn.get());
        let managed = Managed {
            conn,
            party: Party { peer, qpn },
            buffer: Some(buffer),
            state: ConnectionState::Connecting,
            opened: None,
            receiving: false,
            sending: false,
            completions: Vec::new(),
        };
        self.managed.connections.insert(number, managed);
        Ok(number)
    }

    fn post(&mut self, connection: u16, work: Work) -> Result<(), Refusal> {
        work.check()?;
        let managed = self.managed.get(connection)?;
        let conn = managed.conn;
        let Some(buffer) = managed.buffer else { return Err(Refusal("the connection has ended".into())) };
        let busy = if matches!(work, Work::Receive {}) { &mut managed.receiving } else { &mut managed.sending };
        if *busy {
            return Err(Refusal("the last work of this kind has not completed".into()));
        }
        match work {
            Work::Receive {} => {
                let here = buffer.slice(0, MAX_MESSAGE);
                self.endpoint.transport.post_recv(conn, RecvWr { id: RECEIVE, slice: Some(here) })
            }
            Work::Send { data } => self.endpoint.transport.post_send(conn, SendWr::send(SEND, data.0)),
            Work::Write { data, address, rkey } => {
                self.endpoint.transport.post_send(conn, SendWr::write(SEND, data.0, RemoteAddr(address), Rkey(rkey)))
            }
            Work::Read { address, rkey, length } => {
                let here = buffer.slice(MAX_MESSAGE, length as usize);
                self.endpoint.transport.post_send(conn, SendWr::read(SEND, here, RemoteAddr(address), Rkey(rkey)))
            }
        }
        .map_err(|error| Refusal(error.to_string()))?;
        *busy = true;
        Ok(())
    }

    fn poll(&mut self, connection: u16) -> Result<Progress, Refusal> {
        let managed = self.managed.get(connection)?;
        let completions = std::mem::take(&mut managed.completions);
        let progress = Progress { state: managed.state.clone(), opened: managed.opened.clone(), completions };
        if progress.state.is_over() {
            self.managed.connections.remove(&connection);
        }
        Ok(progress)
    }

    fn close(&mut self, connection: u16) -> Result<(), Refusal> {
        let conn = self.managed.get(connection)?.conn;
        self.endpoint.transport.disconnect(self.clock.now(), conn);
        Ok(())
    }

    fn registers(&mut self, accesses: &[RegisterAccess]) -> Result<Vec<u32>, Refusal> {
        access(&mut LocalBus(self), accesses)
    }
}
