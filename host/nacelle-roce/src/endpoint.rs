// SPDX-License-Identifier: Apache-2.0
//! The endpoint: frames and time in, frames and events out.

use crate::{
    AcceptLimits, Access, Congestion, ConnId, ConnInfo, ConnStats, Counters, Discard, DisconnectReason, EndpointConfig,
    Event, Instant, Phase, PostError, QpState, RecvWr, Region, RegionId, RegionInfo, RegisterError, Scope, SendOp,
    SendWr, WcOpcode, WcStatus,
    conn::{Core, Table},
    netif::Netif,
    qp::{NextAnswer, QpFailure},
    region::RegionTable,
    time::earliest,
};
use core::{net::Ipv4Addr, time::Duration};
use nacelle_wire::{
    MacAddr, ParseError, Psn, Qpn, RemoteAddr, Rkey, RoceHeaders, RocePacket,
    bth::Opcode,
    cm::PathMtu,
    ethernet::{ETHERTYPE_ARP, EthernetHeader},
    ipv4::Ecn,
    roce::BASE_LEN,
};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use std::collections::{HashSet, VecDeque};

/// A RoCEv2 endpoint: one Ethernet and IPv4 address with any number of connections behind it.
///
/// It never blocks, has no clock and touches no socket. See the [crate documentation](crate) for how to drive it.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) conns: Table,
    pub(crate) core: Core,
    pub(crate) net: Netif,
    pub(crate) rng: ChaCha8Rng,
    pub(crate) listening: HashSet<u16>,
    pub(crate) max_mtu: Option<PathMtu>,
    pub(crate) accept: AcceptLimits,
    congestion: Congestion,
    /// Next PSN of the general service interface.
    pub(crate) gsi_psn: Psn,
    /// Connections whose responder has a short answer to send.
    answers: VecDeque<ConnId>,
    /// Connections with a request, or data of a READ, to send; served in turn.
    sends: VecDeque<ConnId>,
    /// No timer is due before this moment.
    wake: Option<Instant>,
    frame_len: usize,
}

impl Endpoint {
    /// An endpoint without connections.
    pub fn new(config: EndpointConfig) -> Self {
        let mut rng = ChaCha8Rng::from_seed(config.seed);
        let max_mtu = PathMtu::for_ip_mtu(config.ip_mtu);
        Self {
            conns: Table::new(config.max_connections, rng.next_u32()),
            core: Core {
                regions: RegionTable::new(config.max_regions),
                counters: Counters::default(),
                events: VecDeque::new(),
            },
            net: Netif::new(&config, rng.next_u32() as u16),
            rng,
            listening: HashSet::new(),
            max_mtu,
            accept: config.accept,
            congestion: config.congestion,
            gsi_psn: Psn::default(),
            answers: VecDeque::new(),
            sends: VecDeque::new(),
            wake: None,
            frame_len: EthernetHeader::LEN + config.ip_mtu.max(576),
        }
    }

    /// Takes a received frame, from its Ethernet header on, without FCS.
    ///
    /// A frame that fails any check changes nothing but a counter; the error says which check.
    pub fn handle(&mut self, now: Instant, frame: &[u8]) -> Result<(), Discard> {
        self.core.counters.rx_frames += 1;
        self.core.counters.rx_bytes += frame.len() as u64;
        let result = self.receive(now, frame);
        if let Err(why) = result {
            self.core.counters.discard(why);
        }
        result
    }

    fn receive(&mut self, now: Instant, frame: &[u8]) -> Result<(), Discard> {
        let (eth, _) = EthernetHeader::parse(frame)?;
        if eth.ethertype == ETHERTYPE_ARP && (eth.dst == self.net.mac || eth.dst.is_multicast()) {
            let result = self.net.receive_arp(now, frame, &mut self.core.counters, &mut self.core.events);
            self.after_net(now);
            return result;
        }
        if eth.dst != self.net.mac {
            return Err(Discard::NotForUs);
        }
        let packet = match RocePacket::parse(frame) {
            Err(ParseError::IpProtocol) => {
                let result = self.net.receive_echo(now, frame, &mut self.core.counters, &mut self.core.events);
                self.after_net(now);
                return result;
            }
            parsed => parsed?,
        };
        if packet.headers.ip.dst() != self.net.ip {
            return Err(Discard::NotForUs);
        }
        // Full and limited members of the default partition may talk to a full member (IBTA 10.9.1.1).
        if packet.headers.bth.p_key.get() & 0x7fff != 0x7fff {
            return Err(Discard::PKey);
        }
        if packet.opcode.is_ud() {
            if packet.headers.bth.dest_qp() == Qpn::GSI {
                self.receive_cm(now, &packet)
            } else {
                Err(Discard::UnknownQp)
            }
        } else {
            self.receive_rc(now, frame.len(), &packet)
        }
    }

    fn receive_rc(&mut self, now: Instant, frame_len: usize, packet: &RocePacket<'_>) -> Result<(), Discard> {
        let conn = self.conns.by_qpn(packet.headers.bth.dest_qp()).ok_or(Discard::UnknownQp)?;
        if conn.peer_ip != packet.headers.ip.src() {
            return Err(Discard::WrongPeer);
        }
        let id = conn.id;
        match conn.phase {
            Phase::Established | Phase::Manual(QpState::Rtr | QpState::Rts | QpState::Sqd) => {}
            // The RTU is late or lost; a packet on the connection says the same (IBTA 12.9.7.2).
            Phase::RepSent => self.establish(now, id, Vec::new()),
            Phase::Lingering | Phase::DreqSent | Phase::Manual(QpState::Err) => return Err(Discard::QpError),
            _ => return Err(Discard::UnknownQp),
        }
        let conn = self.conns.get_mut(id).ok_or(Discard::UnknownQp)?;
        conn.stats.last_received = Some(now);
        conn.stats.rx_packets += 1;
        conn.stats.rx_bytes += frame_len as u64;
        if packet.opcode == Opcode::Cnp {
            let handled = conn.pace.notified(&self.congestion, now);
            conn.stats.counters.rp_cnp_handled += u64::from(handled);
            conn.stats.counters.rp_cnp_ignored += u64::from(!handled);
            self.touch(id);
            return Ok(());
        }
        if packet.headers.ip.ecn() == Ecn::Ce {
            conn.stats.counters.np_ecn_marked_roce_packets += 1;
            conn.pace.marked(&self.congestion, now);
        }
        let traffic =
            if packet.opcode.is_response() { &mut conn.stats.rx_responses } else { &mut conn.stats.rx_requests };
        traffic.add(packet.payload.len());
        let (requester, responder, mut env) = conn.split(&mut self.core);
        let outcome = match packet.opcode {
            opcode if opcode.is_response() => requester.receive(now, packet, &mut env).map_err(|f| (f, Duration::ZERO)),
            // The NAK tells the peer first; it gets time to end the connection itself.
            _ => responder.receive(packet, &mut env).map_err(|f| (f, conn.options.cm_timeout)),
        };
        match outcome {
            Ok(result) => {
                self.touch(id);
                result
            }
            Err((QpFailure(status), linger)) => {
                self.fail(now, id, status, linger);
                Ok(())
            }
        }
    }

    /// Writes the next frame to put on the wire into `buf` and returns its length; `None` if there is nothing to send
    /// now. Also does what is due by time, so call it whenever [`Self::next_deadline`] has come, and after
    /// [`Self::handle`], until it returns `None`.
    ///
    /// Acknowledgements and atomic responses go first, then ARP, ICMP and connection management, then requests and data
    /// of READs, one packet of each connection in turn, of both kinds by turns.
    ///
    /// # Panics
    ///
    /// If `buf` is shorter than [`Self::frame_len`].
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        assert!(buf.len() >= self.frame_len, "the buffer must hold {} bytes", self.frame_len);
        if self.wake.is_some_and(|t| t <= now) {
            self.run_timers(now);
        }
        let len = self
            .transmit_answers(now, buf)
            .or_else(|| self.net.queue.pop(buf))
            .or_else(|| self.transmit_turn(now, buf))?;
        self.core.counters.tx_frames += 1;
        self.core.counters.tx_bytes += len as u64;
        Some(len)
    }

    fn transmit_answers(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        while let Some(id) = self.answers.pop_front() {
            let Some(conn) = self.conns.get_mut(id) else { continue };
            conn.answer_queued = false;
            if conn.pace.take_cnp()
                && let Some(len) = self.transmit_cnp(id, buf)
            {
                return Some(len);
            }
            let Some(conn) = self.conns.get_mut(id) else { continue };
            if conn.responder.next_answer() == Some(NextAnswer::Short)
                && let Some(len) = self.transmit_answer(now, id, buf)
            {
                return Some(len);
            }
        }
        None
    }

    fn transmit_cnp(&mut self, id: ConnId, buf: &mut [u8]) -> Option<usize> {
        let conn = self.conns.get_mut(id)?;
        let mut headers = RoceHeaders::cnp(&conn.flow?, conn.remote_qpn);
        headers.ip.tos = self.congestion.cnp_dscp << 2;
        headers.ip.identification.set(self.net.next_ip_id());
        let len = headers.write(&[], buf).expect("the caller's buffer holds the longest frame");
        conn.stats.counters.np_cnp_sent += 1;
        conn.stats.tx_packets += 1;
        conn.stats.tx_bytes += len as u64;
        self.touch(id);
        Some(len)
    }

    fn transmit_answer(&mut self, now: Instant, id: ConnId, buf: &mut [u8]) -> Option<usize> {
        let conn = self.conns.get_mut(id)?;
        let mut flow = conn.flow?;
        if self.congestion.rp_enable && conn.responder.next_answer() == Some(NextAnswer::Data) {
            flow = flow.with_ecn(Ecn::Ect0);
        }
        let dest_qp = conn.remote_qpn;
        let timeout = conn.options.cm_timeout;
        let (_, responder, mut env) = conn.split(&mut self.core);
        let (len, outcome) = responder.answer(&flow, self.net.next_ip_id(), dest_qp, &mut env, buf)?;
        env.stats.tx_packets += 1;
        env.stats.tx_bytes += len as u64;
        match outcome {
            Ok(()) => self.touch(id),
            Err(QpFailure(status)) => self.fail(now, id, status, timeout),
        }
        Some(len)
    }

    fn transmit_turn(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        while let Some(id) = self.sends.pop_front() {
            let Some(conn) = self.conns.get_mut(id) else { continue };
            conn.send_queued = false;
            let (data, request) = (conn.wants_to_send_data(), conn.wants_to_send());
            if !(data || request) {
                continue;
            }
            if !conn.pace.may_send(&self.congestion, now) {
                self.touch(id);
                continue;
            }
            let answers = data && !(request && conn.responder.had_turn);
            conn.responder.had_turn = answers;
            let sent = if answers { self.transmit_answer(now, id, buf) } else { self.transmit_request(now, id, buf) };
            if let Some(len) = sent {
                if let Some(conn) = self.conns.get_mut(id) {
                    conn.pace.sent(&self.congestion, now, len);
                }
                self.touch(id);
                return sent;
            }
        }
        None
    }

    fn transmit_request(&mut self, now: Instant, id: ConnId, buf: &mut [u8]) -> Option<usize> {
        let conn = self.conns.get_mut(id)?;
        let mut flow = conn.flow?;
        if self.congestion.rp_enable {
            flow = flow.with_ecn(Ecn::Ect0);
        }
        // Acknowledgements are asked for twice a window. At a low rate that is too late for the ACK timeout.
        let half_window = conn.options.window as usize / 2 * self.frame_len;
        if conn.pace.time_for(half_window).is_some_and(|t| t > conn.options.ack_timeout / 2) {
            conn.requester.ask_for_ack();
        }
        let dest_qp = conn.remote_qpn;
        let (requester, _, mut env) = conn.split(&mut self.core);
        match requester.send(now, &flow, self.net.next_ip_id(), dest_qp, &mut env, buf) {
            Ok(sent) => {
                if let Some(len) = sent {
                    env.stats.tx_packets += 1;
                    env.stats.tx_bytes += len as u64;
                }
                self.touch(id);
                sent
            }
            Err(QpFailure(status)) => {
                self.fail(now, id, status, Duration::ZERO);
                None
            }
        }
    }

    /// When to call [`Self::poll_transmit`] again at the latest, if no frame arrives before. `None`: nothing is timed.
    ///
    /// It may be earlier than necessary, never later.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.wake
    }

    /// The oldest event not taken yet.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.core.events.pop_front()
    }

    fn run_timers(&mut self, now: Instant) {
        self.net.run_timers(now, &mut self.core.counters, &mut self.core.events);
        self.after_net(now);
        let due: Vec<ConnId> =
            self.conns.iter().filter(|c| c.next_deadline().is_some_and(|t| t <= now)).map(|c| c.id).collect();
        for id in due {
            self.run_cm_timer(now, id);
            let Some(conn) = self.conns.get_mut(id) else { continue };
            conn.pace.run_timers(now);
            let keepalive = conn.keepalive_deadline().is_some_and(|t| t <= now);
            let (requester, _, mut env) = conn.split(&mut self.core);
            if keepalive {
                // A zero-length WRITE disturbs nobody and must be acknowledged. The queue is empty: there is room.
                let mut wr = SendWr::write(0, Vec::new(), RemoteAddr(0), Rkey(0));
                wr.signaled = false;
                let _ = requester.post(wr, true);
            }
            if let Err(QpFailure(status)) = requester.run_timers(now, &mut env) {
                self.fail(now, id, status, Duration::ZERO);
            }
            self.touch(id);
        }
        self.wake = self.conns.iter().map(|c| c.next_deadline()).fold(self.net.next_deadline(), earliest);
    }

    /// Connections that waited for an address go on, and the network's deadlines count.
    pub(crate) fn after_net(&mut self, now: Instant) {
        for (hop, mac) in core::mem::take(&mut self.net.resolved) {
            self.neighbour_resolved(now, hop, mac);
        }
        self.wake = earliest(self.wake, self.net.next_deadline());
    }

    /// Puts a connection that has something to send in the queues for it, and its deadline under the endpoint's.
    pub(crate) fn touch(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        if conn.wants_to_answer() && !conn.answer_queued {
            conn.answer_queued = true;
            self.answers.push_back(id);
        }
        if conn.requester.has_drained() {
            self.core.events.push_back(Event::SendQueueDrained { conn: id });
        }
        if (conn.wants_to_send_data() || conn.wants_to_send()) && !conn.send_queued {
            conn.send_queued = true;
            self.sends.push_back(id);
        }
        self.wake = earliest(self.wake, conn.next_deadline());
    }

    /// Ends all work of a connection; the requests still queued are flushed.
    pub(crate) fn flush(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id) {
            let (requester, responder, mut env) = conn.split(&mut self.core);
            requester.flush(&mut env, |_| WcStatus::WrFlushErr);
            responder.flush(&mut env);
        }
    }

    /// A queue pair fails: its work ends, the user is told, and after `linger` the peer, unless it speaks first.
    fn fail(&mut self, now: Instant, id: ConnId, status: WcStatus, linger: Duration) {
        self.flush(id);
        if self.conns.get(id).is_some_and(|c| matches!(c.phase, Phase::Manual(_))) {
            return self.fail_manual(id, status);
        }
        self.tell_end(id, DisconnectReason::Error(status), &[]);
        if let Some(conn) = self.conns.get_mut(id) {
            conn.phase = Phase::Lingering;
            conn.cm_deadline = Some(now + linger);
        }
        self.touch(id);
    }

    /// Posts a work request to a connection's send queue.
    pub fn post_send(&mut self, id: ConnId, wr: SendWr) -> Result<(), PostError> {
        let alive = self.may_post_send(id, &wr)?;
        let conn = self.conns.get_mut(id).ok_or(PostError::UnknownConnection)?;
        let op = wr.op;
        conn.requester.post(wr, false)?;
        let (requester, _, mut env) = conn.split(&mut self.core);
        let c = env.counters();
        match op {
            SendOp::Send { .. } | SendOp::SendInvalidate { .. } => c.rdma_sends += 1,
            SendOp::Write { .. } => c.rdma_writes += 1,
            SendOp::Read { .. } => c.rdma_reads += 1,
            SendOp::FetchAdd { .. } | SendOp::CmpSwap { .. } => c.rdma_atomics += 1,
            SendOp::LocalInvalidate { .. } => {}
        }
        if !alive {
            requester.flush(&mut env, |_| WcStatus::WrFlushErr);
        }
        self.touch(id);
        Ok(())
    }

    /// Posts a receive. Allowed from the first moment of a connection, before it is established, because the peer's
    /// first SEND may follow at once; by hand from INIT on.
    pub fn post_recv(&mut self, id: ConnId, wr: RecvWr) -> Result<(), PostError> {
        let conn = self.conns.get_mut(id).ok_or(PostError::UnknownConnection)?;
        if matches!(conn.phase, Phase::Lingering | Phase::DreqSent | Phase::Manual(QpState::Reset)) {
            return Err(PostError::NotConnected);
        }
        // The side that accepts has no domain of its own before; the slice is checked again when it is filled.
        let domain = conn.options.domain;
        let fits = |slice| {
            let undecided = conn.phase == Phase::ReqReceived && self.core.regions.slice(slice).is_some();
            undecided || self.core.regions.is_usable(id, domain, slice)
        };
        if !wr.slice.is_none_or(fits) {
            return Err(PostError::BadSlice);
        }
        if conn.phase == Phase::Manual(QpState::Err) {
            let (_, _, mut env) = conn.split(&mut self.core);
            env.complete(crate::Completion::new(id, wr.id, WcOpcode::Recv, WcStatus::WrFlushErr));
            return Ok(());
        }
        conn.responder.post(wr)
    }

    /// Gives the endpoint a buffer for its own work requests and, under a random key and with these rights, for the peers
    /// in `scope`: one connection, a protection domain, or nobody (`None`). The region lives until [`Self::deregister`],
    /// also beyond its connection.
    pub fn register(
        &mut self,
        buffer: Vec<u8>,
        access: Access,
        scope: impl Into<Scope>,
    ) -> Result<Region, RegisterError> {
        let scope = scope.into();
        if matches!(scope, Scope::Connection(id) if self.conns.get(id).is_none()) {
            return Err(RegisterError::UnknownConnection);
        }
        self.core.regions.register(buffer, access, scope, || self.rng.next_u32())
    }

    /// Takes a buffer back. From now on nothing reaches it; work requests that need it fail.
    pub fn deregister(&mut self, region: RegionId) -> Option<Vec<u8>> {
        self.core.regions.deregister(region)
    }

    /// Takes the key of a region back: no peer reaches it any more. Returns whether it was valid.
    pub fn invalidate(&mut self, region: RegionId) -> bool {
        self.core.regions.invalidate(region)
    }

    /// Gives a region a new key, whether or not the old one was still valid; that one opens nothing any more.
    pub fn rekey(&mut self, region: RegionId) -> Option<Region> {
        self.core.regions.rekey(region, || self.rng.next_u32())
    }

    /// Changes what peers may do with a region, under the same key. Returns whether there is such a region.
    pub fn set_access(&mut self, region: RegionId, access: Access) -> bool {
        self.core.regions.set_access(region, access)
    }

    /// All regions.
    pub fn regions(&self) -> impl Iterator<Item = RegionInfo> {
        self.core.regions.iter()
    }

    /// The bytes of a region.
    pub fn region(&self, region: RegionId) -> Option<&[u8]> {
        self.core.regions.get(region)
    }

    /// The bytes of a region, to change.
    pub fn region_mut(&mut self, region: RegionId) -> Option<&mut [u8]> {
        self.core.regions.get_mut(region)
    }

    /// A connection or queue pair at a glance; `None` once it is gone.
    pub fn connection(&self, id: ConnId) -> Option<ConnInfo> {
        self.conns.get(id).map(|c| c.info())
    }

    /// The figures of a connection, without a copy; `None` once it is gone.
    pub fn stats(&self, id: ConnId) -> Option<&ConnStats> {
        self.conns.get(id).map(|c| &c.stats)
    }

    /// All connections and queue pairs.
    pub fn connections(&self) -> impl Iterator<Item = (ConnId, ConnInfo)> {
        self.conns.iter().map(|c| (c.id, c.info()))
    }

    /// The endpoint's counters, with those of all its connections, past and present, added up.
    pub fn counters(&self) -> Counters {
        let mut total = self.core.counters;
        self.conns.add_counters(&mut total);
        total
    }

    /// Changes congestion control; in use from the next event of each connection on.
    pub fn set_congestion(&mut self, congestion: Congestion) {
        self.congestion = congestion;
    }

    /// Ethernet address.
    pub fn mac(&self) -> MacAddr {
        self.net.mac
    }

    /// IPv4 address.
    pub fn ip(&self) -> Ipv4Addr {
        self.net.ip
    }

    /// Bytes that the longest frame of this endpoint takes, without FCS.
    pub fn frame_len(&self) -> usize {
        self.frame_len.max(BASE_LEN)
    }

    /// Takes an address and announces it. Connections of the old one no longer receive anything.
    pub fn set_address(&mut self, ip: Ipv4Addr, prefix_len: u8, gateway: Option<Ipv4Addr>) {
        self.net.set_address(ip, prefix_len, gateway);
        self.net.announce(&mut self.core.counters);
    }

    /// Asks whether anybody has `ip`, before it is taken (RFC 5227). [`Event::AddressProbed`] tells.
    pub fn probe_address(&mut self, now: Instant, ip: Ipv4Addr) {
        self.net.probe(now, ip);
        self.after_net(now);
    }

    /// Asks for the Ethernet address on the way to `ip`. [`Event::Resolved`] or [`Event::Unreachable`] tells.
    pub fn resolve(&mut self, now: Instant, ip: Ipv4Addr) {
        match self.net.next_hop(ip) {
            None => self.core.events.push_back(Event::Unreachable { ip }),
            Some(hop) => match self.net.lookup(now, hop) {
                Some(mac) => self.core.events.push_back(Event::Resolved { ip: hop, mac }),
                None => self.net.resolve(now, hop, true),
            },
        }
        self.after_net(now);
    }

    /// Sends an ICMP echo request with `len` bytes of payload. [`Event::EchoReply`], [`Event::EchoTimeout`] or
    /// [`Event::Unreachable`] tells. Returns whether it could be begun: there is a route, `len` fits a frame, and not
    /// too many are under way.
    pub fn ping(&mut self, now: Instant, ip: Ipv4Addr, sequence: u16, len: usize, timeout: Duration) -> bool {
        let begun = self.net.ping(now, ip, sequence, len, timeout);
        self.after_net(now);
        begun
    }
}
