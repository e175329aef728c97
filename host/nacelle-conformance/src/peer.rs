// SPDX-License-Identifier: Apache-2.0
//! A peer of the device, packet by packet: connections, requests of any form, and their responses.

mod called;
mod calls;
mod hosts;

use crate::{
    Failure,
    manage::Manage,
    station::{Packet, Station},
};
use core::net::Ipv4Addr;
use nacelle_wire::{
    Psn, Qpn, RemoteAddr, Rkey, RoceHeaders,
    bth::{Aeth, AtomicEth, Bth, Deth, NakCode, Opcode, Reth, Syndrome},
    cm::{self, Dreq, Extensions, IpCm, Message, Rej, Rep, Req, Rtu},
    mrsp::{self, ARegion, AarRegion, RegionFlags},
    transport::Ext,
};
use std::time::{Duration, Instant};

/// After a failed rule: how long [`Peer::recover`] waits for the device to free its queue pairs.
const RECOVERY: Duration = Duration::from_secs(12);

pub(crate) use called::Called;
pub(crate) use calls::{EMPTY, Output, raw_message};

/// The suite's side of a connection with the device.
#[derive(Clone, Debug)]
pub(crate) struct Qp {
    /// The host that the suite is on this connection.
    pub(crate) ip: Ipv4Addr,
    /// The device's queue pair.
    pub(crate) qpn: Qpn,
    /// The suite's.
    pub(crate) own_qpn: Qpn,
    /// The device's communication id, and the suite's.
    pub(crate) comm_id: u32,
    /// The suite's.
    pub(crate) own_comm_id: u32,
    /// Transaction of the REQ.
    pub(crate) tid: u64,
    /// The next PSN to the device.
    pub(crate) next: Psn,
    /// The next PSN of the device's own requests.
    pub(crate) expected: Psn,
    /// Payload of a full packet, in bytes.
    pub(crate) mtu: usize,
    /// What the REP agreed to.
    pub(crate) extensions: Extensions,
    /// READs and atomics that the device takes at once.
    pub(crate) responder_resources: u8,
    /// The device's regions, in the order of the request.
    pub(crate) regions: Vec<Memory>,
}

/// Memory of the device that the connection may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Address of its first byte.
    pub(crate) addr: RemoteAddr,
    /// Its key.
    pub(crate) rkey: Rkey,
}

impl Memory {
    /// An address in it.
    pub(crate) fn at(&self, offset: u64) -> RemoteAddr {
        RemoteAddr(self.addr.0.wrapping_add(offset))
    }

    /// RETH for `len` bytes from `offset` on.
    pub(crate) fn reth(&self, offset: u64, len: u32) -> Reth {
        Reth::new(self.at(offset), self.rkey, len)
    }
}

/// Key and address of the caller's own regions, which have no memory: the suite only checks the device's packets to them.
pub(crate) const OWN_RKEY: Rkey = Rkey(0x0ca1_1e57);
const OWN_ADDR: u64 = 0x7000_0000_0000;

/// The parameters of a REQ.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Path MTU code, 1 (256 bytes) to 5 (4096).
    pub(crate) mtu: u8,
    /// PSN at which the device begins to send.
    pub(crate) device_psn: Psn,
    /// Local ACK timeout code for the device's queue pair: 4.096 us * 2^code.
    pub(crate) ack_timeout: u8,
    /// Retries that the device's requests may have.
    pub(crate) retry_count: u8,
    /// And on RNR NAKs.
    pub(crate) rnr_retry_count: u8,
    /// READs and atomics that the suite may have outstanding.
    pub(crate) initiator_depth: u8,
    /// What is offered beyond the standard.
    pub(crate) extensions: Extensions,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            mtu: 1,
            device_psn: Psn::new(0xff_fffe),
            ack_timeout: 14,
            retry_count: 7,
            rnr_retry_count: 7,
            initiator_depth: 4,
            extensions: Extensions::default(),
        }
    }
}

/// The suite as a peer of one device.
pub(crate) struct Peer {
    /// Its station on the wire.
    pub(crate) station: Station,
    /// The device's service port.
    pub(crate) port: u16,
    /// The host that connects: the suite's own address, or another that it acts as.
    pub(crate) ip: Ipv4Addr,
    /// The device's management, if the suite can reach it.
    manage: Option<Manage>,
    next_id: u32,
    /// Connections that have not ended.
    open: Vec<Qp>,
}

/// How a REQ ended.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Accepted.
    Rep(Box<Rep>),
    /// Refused.
    Rej(Box<Rej>),
}

impl Peer {
    /// A peer of the station's device.
    pub(crate) fn new(station: Station, port: u16, manage: Option<Manage>) -> Self {
        let ip = station.ip();
        Self { station, port, ip, manage, next_id: fastrand::u32(1..0x7fff_ffff) & !0xff, open: Vec::new() }
    }

    /// The device's management.
    ///
    /// # Errors
    /// The suite cannot reach it.
    pub(crate) fn manage(&mut self) -> Result<&mut Manage, Failure> {
        self.manage.as_mut().ok_or(Failure::NotTried("the device's management is not on this wire"))
    }

    // ---- connection management ----

    /// Sends a CM message of the host that connects now.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn send_cm(&mut self, tid: u64, message: Message<'_>) -> Result<(), Failure> {
        self.send_cm_from(self.ip, tid, message)
    }

    /// Sends a CM message of this host.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn send_cm_from(&mut self, ip: Ipv4Addr, tid: u64, message: Message<'_>) -> Result<(), Failure> {
        let ext = Ext::Deth(Deth::new(cm::GSI_Q_KEY, Qpn::GSI));
        let headers =
            RoceHeaders::new(&self.station.flow_from(ip), Bth::new(Opcode::UdSendOnly, Qpn::GSI, Psn::new(0)), ext);
        self.station.send(&headers, &message.to_mad(tid))
    }

    /// The next CM message with this transaction for which `wanted` holds.
    ///
    /// # Errors
    /// [`Failure::Missing`] if none comes.
    pub(crate) fn expect_cm(
        &mut self,
        what: &'static str,
        wanted: impl Fn(u64, &Message<'_>) -> bool,
    ) -> Result<Vec<u8>, Failure> {
        let found = self.station.expect(|p| {
            p.opcode == Opcode::UdSendOnly && Message::parse(&p.payload).is_ok_and(|(tid, m)| wanted(tid, &m))
        })?;
        found.map(|p| p.payload).ok_or(Failure::Missing(what))
    }

    /// A REQ with these terms and new identifiers.
    pub(crate) fn req(&mut self, terms: &Terms) -> (u64, Req) {
        self.next_id += 1;
        let id = self.next_id;
        let ip_cm = IpCm::new(0x4000 | id as u16 & 0x3fff, self.ip, self.station.peer_ip());
        let mut req = Req::new(id, self.port, Qpn::new(id & 0xff_ffff), terms.device_psn, ip_cm);
        req.local_ca_guid.set(0x0200_00ff_fe00_0001);
        req.responder_resources = 4;
        req.initiator_depth = terms.initiator_depth;
        req.set_remote_cm_timeout(20);
        req.set_local_cm_timeout(20);
        req.set_retry_count(terms.retry_count);
        req.set_rnr_retry_count(terms.rnr_retry_count);
        req.set_max_cm_retries(15);
        req.set_path_mtu(terms.mtu);
        req.set_local_ack_timeout(terms.ack_timeout);
        if terms.extensions != Extensions::default() {
            terms.extensions.put(&mut req.private_data).expect("the field has room for the record");
        }
        (u64::from(id) << 16 | 0xc0, req)
    }

    /// Sends a REQ, and waits for its answer.
    ///
    /// # Errors
    /// [`Failure::Missing`] if there is none.
    pub(crate) fn ask(&mut self, tid: u64, req: &Req) -> Result<Answer, Failure> {
        self.send_cm(tid, Message::Req(req))?;
        self.answer(req)
    }

    /// The answer to a REQ that was sent.
    ///
    /// # Errors
    /// [`Failure::Missing`] if there is none.
    fn answer(&mut self, req: &Req) -> Result<Answer, Failure> {
        let id = req.local_comm_id.get();
        let mad = self.expect_cm("REP or REJ", |_, m| match m {
            Message::Rep(rep) => rep.remote_comm_id.get() == id,
            Message::Rej(rej) => rej.remote_comm_id.get() == id,
            _ => false,
        })?;
        match Message::parse(&mad)? {
            (_, Message::Rep(rep)) => Ok(Answer::Rep(Box::new(*rep))),
            (_, Message::Rej(rej)) => Ok(Answer::Rej(Box::new(*rej))),
            _ => Err(Failure::Missing("REP or REJ")),
        }
    }

    /// The connection of a REQ that was sent. The RTU is not sent.
    ///
    /// # Errors
    /// The device refuses or does not answer.
    pub(crate) fn answered(&mut self, tid: u64, req: &Req) -> Result<Qp, Failure> {
        let answer = self.answer(req)?;
        self.accepted(tid, req, answer)
    }

    /// The connection of a REP to a REQ. The RTU is not sent.
    ///
    /// # Errors
    /// [`Failure::Refused`] if it was a REJ.
    pub(crate) fn accepted(&mut self, tid: u64, req: &Req, answer: Answer) -> Result<Qp, Failure> {
        let rep = match answer {
            Answer::Rep(rep) => rep,
            Answer::Rej(rej) => return Err(Failure::Refused(rej.reason())),
        };
        let qp = Qp {
            ip: self.ip,
            qpn: rep.local_qpn(),
            own_qpn: req.local_qpn(),
            comm_id: rep.local_comm_id.get(),
            own_comm_id: req.local_comm_id.get(),
            tid,
            next: rep.starting_psn(),
            expected: req.starting_psn(),
            mtu: 128 << req.path_mtu(),
            extensions: Extensions::find(&rep.private_data).unwrap_or_default(),
            responder_resources: rep.responder_resources,
            regions: Vec::new(),
        };
        self.open.push(qp.clone());
        Ok(qp)
    }

    /// Connects.
    ///
    /// # Errors
    /// The device refuses or does not answer.
    pub(crate) fn connect(&mut self, terms: &Terms) -> Result<Qp, Failure> {
        let (tid, req) = self.req(terms);
        let answer = self.ask(tid, &req)?;
        let qp = self.accepted(tid, &req, answer)?;
        self.send_cm(tid, Message::Rtu(&Rtu::new(qp.own_comm_id, qp.comm_id)))?;
        Ok(qp)
    }

    /// Disconnects, and waits for the DREP. Packets of the connection that the device has sent are discarded.
    ///
    /// # Errors
    /// [`Failure::Missing`] if there is no DREP.
    pub(crate) fn disconnect(&mut self, qp: &Qp) -> Result<(), Failure> {
        self.disconnect_only(qp)?;
        self.station.forget()
    }

    /// As [`Self::disconnect`], but packets of other connections are kept.
    ///
    /// # Errors
    /// [`Failure::Missing`] if there is no DREP.
    pub(crate) fn disconnect_only(&mut self, qp: &Qp) -> Result<(), Failure> {
        let tid = qp.tid + 1;
        self.send_cm_from(qp.ip, tid, Message::Dreq(&Dreq::new(qp.own_comm_id, qp.comm_id, qp.qpn)))?;
        let own = qp.own_comm_id;
        self.open.retain(|q| q.own_comm_id != own);
        self.expect_cm("DREP", |t, m| t == tid && matches!(m, Message::Drep(d) if d.remote_comm_id.get() == own))?;
        Ok(())
    }

    /// Disconnects what a failed rule has left open, so that the next rule finds an idle device.
    ///
    /// # Errors
    /// The link is broken. A missing DREP is ignored.
    pub(crate) fn tidy(&mut self) -> Result<(), Failure> {
        for qp in core::mem::take(&mut self.open) {
            if let Err(Failure::Link(broken)) = self.disconnect(&qp) {
                return Err(Failure::Link(broken));
            }
        }
        self.ip = self.station.ip();
        self.station.alone();
        self.station.forget()
    }

    /// Sends a DREQ on every open connection, without waiting for the DREPs. Its hosts stay, and send nothing more.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn abandon(&mut self) -> Result<(), Failure> {
        for qp in core::mem::take(&mut self.open) {
            let dreq = Dreq::new(qp.own_comm_id, qp.comm_id, qp.qpn);
            self.send_cm_from(qp.ip, qp.tid + 1, Message::Dreq(&dreq))?;
        }
        self.ip = self.station.ip();
        self.station.forget()
    }

    /// Leaves this connection open: [`Self::tidy`] does not end it.
    pub(crate) fn leave(&mut self, qp: &Qp) {
        self.open.retain(|q| q.own_comm_id != qp.own_comm_id);
    }

    /// After a failed rule: waits until the device has freed all queue pairs, if its management is reachable, for a limited time.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn recover(&mut self) -> Result<(), Failure> {
        self.tidy()?;
        let until = Instant::now() + RECOVERY;
        while let Some(manage) = &mut self.manage
            && manage.queue_pairs().is_ok_and(|pairs| !pairs.is_empty())
            && Instant::now() < until
        {
            self.station.gather(Duration::from_millis(200))?;
        }
        Ok(())
    }

    // ---- packets ----

    /// Headers of a packet to the device.
    pub(crate) fn headers(&self, qp: &Qp, opcode: Opcode, psn: Psn, ext: Ext) -> RoceHeaders {
        RoceHeaders::new(&self.station.flow_from(qp.ip), Bth::new(opcode, qp.qpn, psn), ext)
    }

    /// Sends a packet with AckReq set.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn send(&mut self, qp: &Qp, opcode: Opcode, psn: Psn, ext: Ext, payload: &[u8]) -> Result<(), Failure> {
        let mut headers = self.headers(qp, opcode, psn, ext);
        headers.bth.set_ack_req(true);
        self.station.send(&headers, payload)
    }

    /// Sends a packet without AckReq.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn send_quietly(
        &mut self,
        qp: &Qp,
        opcode: Opcode,
        psn: Psn,
        ext: Ext,
        payload: &[u8],
    ) -> Result<(), Failure> {
        let headers = self.headers(qp, opcode, psn, ext);
        self.station.send(&headers, payload)
    }

    /// The next response of the device: acknowledgement, READ response or atomic acknowledgement.
    ///
    /// # Errors
    /// [`Failure::Missing`] if none comes.
    pub(crate) fn response(&mut self, qp: &Qp) -> Result<Packet, Failure> {
        let own = qp.own_qpn;
        self.station
            .expect(|p| p.headers.bth.dest_qp() == own && p.opcode.is_response())?
            .ok_or(Failure::Missing("response"))
    }

    /// The next request of the device.
    ///
    /// # Errors
    /// [`Failure::Missing`] if none comes.
    pub(crate) fn request(&mut self, qp: &Qp) -> Result<Packet, Failure> {
        let own = qp.own_qpn;
        self.station
            .expect(|p| p.headers.bth.dest_qp() == own && !p.opcode.is_response())?
            .ok_or(Failure::Missing("request of the device"))
    }

    /// Checks that the next response is an acknowledgement with this PSN and syndrome.
    ///
    /// # Errors
    /// [`Failure::Unexpected`] if it is something else.
    pub(crate) fn expect_ack(&mut self, qp: &Qp, psn: Psn, syndrome: Syndrome) -> Result<Aeth, Failure> {
        let packet = self.response(qp)?;
        let Ext::Aeth(aeth) = packet.headers.ext else {
            return Err(Failure::unexpected("an acknowledgement", &packet));
        };
        let same = match (aeth.syndrome(), syndrome) {
            (Syndrome::Ack(_), Syndrome::Ack(_)) | (Syndrome::RnrNak(_), Syndrome::RnrNak(_)) => true,
            (a, b) => a == b,
        };
        if packet.opcode != Opcode::Acknowledge || packet.headers.bth.psn() != psn || !same {
            return Err(Failure::unexpected(format!("{syndrome:?} of PSN {:#x}", psn.get()), &packet));
        }
        Ok(aeth)
    }

    /// Checks that the device answers the packet with this PSN, which it expected, with this NAK.
    ///
    /// # Errors
    /// [`Failure::Unexpected`] if it does not.
    pub(crate) fn expect_nak(&mut self, qp: &Qp, psn: Psn, code: NakCode) -> Result<(), Failure> {
        self.expect_ack(qp, psn, Syndrome::Nak(code)).map(|_| ())
    }

    /// Checks that the device has sent nothing: the first packet from it is the acknowledgement of a new request.
    ///
    /// # Errors
    /// [`Failure::Unexpected`] with an earlier packet.
    pub(crate) fn expect_silence(&mut self, qp: &mut Qp) -> Result<(), Failure> {
        self.write(qp, Ext::Reth(Reth::new(RemoteAddr(0), Rkey(0), 0)), Opcode::WriteOnly, &[])
    }

    /// Sends a request of one packet that is acknowledged alone.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn write(&mut self, qp: &mut Qp, ext: Ext, opcode: Opcode, payload: &[u8]) -> Result<(), Failure> {
        self.send(qp, opcode, qp.next, ext, payload)?;
        self.expect_ack(qp, qp.next, Syndrome::ACK)?;
        qp.next = qp.next.add(1);
        Ok(())
    }

    // ---- whole messages ----

    /// Writes bytes to device memory, in as many packets as it takes.
    ///
    /// # Errors
    /// It is not acknowledged.
    pub(crate) fn write_bytes(&mut self, qp: &mut Qp, to: &Memory, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let reth = Ext::Reth(to.reth(offset, bytes.len() as u32));
        let last = bytes.len().div_ceil(qp.mtu).max(1) - 1;
        for index in 0..=last {
            let part = &bytes[index * qp.mtu..bytes.len().min((index + 1) * qp.mtu)];
            let (opcode, ext) = match (index == 0, index == last) {
                (true, true) => (Opcode::WriteOnly, reth),
                (true, false) => (Opcode::WriteFirst, reth),
                (false, false) => (Opcode::WriteMiddle, Ext::None),
                (false, true) => (Opcode::WriteLast, Ext::None),
            };
            let mut headers = self.headers(qp, opcode, qp.next.add(index as u32), ext);
            headers.bth.set_ack_req(index == last);
            self.station.send(&headers, part)?;
        }
        let newest = qp.next.add(last as u32);
        self.expect_ack(qp, newest, Syndrome::ACK)?;
        qp.next = newest.add(1);
        Ok(())
    }

    /// Sends a READ request with this PSN and returns its response packets.
    ///
    /// # Errors
    /// They do not come, or not in order.
    pub(crate) fn read_packets(&mut self, qp: &Qp, psn: Psn, reth: Reth) -> Result<Vec<Packet>, Failure> {
        self.send_quietly(qp, Opcode::ReadRequest, psn, Ext::Reth(reth), &[])?;
        let count = (reth.dma_len() as usize).div_ceil(qp.mtu).max(1);
        (0..count)
            .map(|index| {
                let packet = self.response(qp)?;
                let opcode = match (index == 0, index + 1 == count) {
                    (true, true) => Opcode::ReadResponseOnly,
                    (true, false) => Opcode::ReadResponseFirst,
                    (false, false) => Opcode::ReadResponseMiddle,
                    (false, true) => Opcode::ReadResponseLast,
                };
                let wanted = psn.add(index as u32);
                if packet.opcode != opcode || packet.headers.bth.psn() != wanted {
                    return Err(Failure::unexpected(format!("{opcode:?} of PSN {:#x}", wanted.get()), &packet));
                }
                Ok(packet)
            })
            .collect()
    }

    /// Reads bytes of device memory.
    ///
    /// # Errors
    /// See [`Self::read_packets`].
    pub(crate) fn read_bytes(
        &mut self,
        qp: &mut Qp,
        from: &Memory,
        offset: u64,
        len: usize,
    ) -> Result<Vec<u8>, Failure> {
        let packets = self.read_packets(qp, qp.next, from.reth(offset, len as u32))?;
        qp.next = qp.next.add(packets.len() as u32);
        let bytes: Vec<u8> = packets.into_iter().flat_map(|p| p.payload).collect();
        if bytes.len() != len {
            return Err(Failure::Content(format!("a READ of {len} bytes brought {}", bytes.len())));
        }
        Ok(bytes)
    }

    /// Checks the content of device memory by reading it.
    ///
    /// # Errors
    /// [`Failure::Content`] at the first difference.
    pub(crate) fn expect_bytes(
        &mut self,
        qp: &mut Qp,
        from: &Memory,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let found = self.read_bytes(qp, from, offset, bytes.len())?;
        match found.iter().zip(bytes).position(|(a, b)| a != b) {
            None => Ok(()),
            Some(at) => Err(Failure::Content(format!(
                "byte {at} of {} is {:#04x} instead of {:#04x}",
                bytes.len(),
                found[at],
                bytes[at]
            ))),
        }
    }

    /// One atomic operation; returns the value before it.
    ///
    /// # Errors
    /// It is not answered with an ATOMIC ACKNOWLEDGE of its PSN.
    pub(crate) fn atomic(&mut self, qp: &mut Qp, opcode: Opcode, eth: AtomicEth) -> Result<u64, Failure> {
        self.send(qp, opcode, qp.next, Ext::Atomic(eth), &[])?;
        let original = self.expect_atomic(qp, qp.next)?;
        qp.next = qp.next.add(1);
        Ok(original)
    }

    /// The ATOMIC ACKNOWLEDGE of this PSN.
    ///
    /// # Errors
    /// Something else comes, or nothing.
    pub(crate) fn expect_atomic(&mut self, qp: &Qp, psn: Psn) -> Result<u64, Failure> {
        let packet = self.response(qp)?;
        match packet.headers.ext {
            Ext::AethAtomic(_, ack) if packet.headers.bth.psn() == psn => Ok(ack.original()),
            _ => Err(Failure::unexpected(format!("ATOMIC ACKNOWLEDGE of PSN {:#x}", psn.get()), &packet)),
        }
    }

    // ---- regions ----

    /// Requests regions of these sizes, each input and output, and stores the device's regions in `qp.regions`.
    ///
    /// # Errors
    /// The device refuses, or answers something else.
    pub(crate) fn set_up_regions(&mut self, qp: &mut Qp, sizes: &[u32]) -> Result<(), Failure> {
        self.send_message(qp, &region_request(sizes))?;
        self.take_regions(qp, sizes)
    }

    /// Takes the answer to a request for regions of these sizes.
    ///
    /// # Errors
    /// The device refuses, or answers something else.
    pub(crate) fn take_regions(&mut self, qp: &mut Qp, sizes: &[u32]) -> Result<(), Failure> {
        let answer = self.receive_message(qp)?;
        match mrsp::Message::parse(&answer)? {
            mrsp::Message::A(given) if given.len() == sizes.len() => {
                qp.regions = given.iter().map(Memory::from).collect();
                Ok(())
            }
            other => Err(Failure::Content(format!("{} regions were requested, the answer is {other:?}", sizes.len()))),
        }
    }

    /// Sends a message by SEND, in as many packets as it takes, and waits for its acknowledgement.
    ///
    /// # Errors
    /// It is not acknowledged.
    pub(crate) fn send_message(&mut self, qp: &mut Qp, message: &[u8]) -> Result<(), Failure> {
        self.post_message(qp, message)?;
        self.expect_ack(qp, qp.next.sub(1), Syndrome::ACK).map(|_| ())
    }

    /// Sends a message by SEND, in as many packets as it takes. Its acknowledgement is still to come.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn post_message(&mut self, qp: &mut Qp, message: &[u8]) -> Result<(), Failure> {
        let last = message.len().div_ceil(qp.mtu).max(1) - 1;
        for index in 0..=last {
            let part = &message[index * qp.mtu..message.len().min((index + 1) * qp.mtu)];
            let opcode = match (index == 0, index == last) {
                (true, true) => Opcode::SendOnly,
                (true, false) => Opcode::SendFirst,
                (false, false) => Opcode::SendMiddle,
                (false, true) => Opcode::SendLast,
            };
            let mut headers = self.headers(qp, opcode, qp.next.add(index as u32), Ext::None);
            headers.bth.set_ack_req(index == last);
            headers.bth.set_solicited(index == last);
            self.station.send(&headers, part)?;
        }
        qp.next = qp.next.add(last as u32 + 1);
        Ok(())
    }

    /// Takes a message that the device SENDs, and acknowledges it.
    ///
    /// # Errors
    /// None comes, or one out of order.
    pub(crate) fn receive_message(&mut self, qp: &mut Qp) -> Result<Vec<u8>, Failure> {
        let mut message = Vec::new();
        loop {
            let packet = self.request(qp)?;
            if packet.headers.bth.psn() != qp.expected {
                return Err(Failure::unexpected(format!("PSN {:#x}", qp.expected.get()), &packet));
            }
            qp.expected = qp.expected.add(1);
            message.extend_from_slice(&packet.payload);
            match packet.opcode {
                Opcode::SendFirst | Opcode::SendMiddle => {}
                Opcode::SendLast | Opcode::SendOnly => break,
                _ => return Err(Failure::unexpected("a SEND", &packet)),
            }
        }
        let newest = qp.expected.sub(1);
        self.acknowledge(qp, newest, Syndrome::ACK)?;
        Ok(message)
    }

    /// Sends an acknowledgement.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn acknowledge(&mut self, qp: &Qp, psn: Psn, syndrome: Syndrome) -> Result<(), Failure> {
        self.send_quietly(qp, Opcode::Acknowledge, psn, Ext::Aeth(Aeth::new(syndrome, 1)), &[])
    }

    /// Connects, and has regions of these sizes.
    ///
    /// # Errors
    /// The device refuses or does not answer.
    pub(crate) fn connect_with(&mut self, terms: &Terms, sizes: &[u32]) -> Result<Qp, Failure> {
        let mut qp = self.connect(terms)?;
        self.set_up_regions(&mut qp, sizes)?;
        Ok(qp)
    }
}

/// The message that requests regions of these sizes, each input and output.
pub(crate) fn region_request(sizes: &[u32]) -> Vec<u8> {
    let regions: Vec<AarRegion> =
        sizes.iter().enumerate().map(|(i, &size)| region(RegionFlags::INPUT | RegionFlags::OUTPUT, i, size)).collect();
    raw_message(1, regions.len() as u8, &regions)
}

/// Region `index` of a request.
pub(crate) fn region(flags: RegionFlags, index: usize, size: u32) -> AarRegion {
    AarRegion::parameter(flags, 0, own_address(index), OWN_RKEY, size)
}

/// The address that the suite announces for region `index`.
pub(crate) fn own_address(index: usize) -> RemoteAddr {
    RemoteAddr(OWN_ADDR + ((index as u64) << 32))
}

impl From<&ARegion> for Memory {
    fn from(region: &ARegion) -> Self {
        Self { addr: region.address(), rkey: region.rkey() }
    }
}
