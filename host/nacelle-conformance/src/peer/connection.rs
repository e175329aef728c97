// SPDX-License-Identifier: Apache-2.0
//! Connection management: REQs, their answers, and the end of connections.

use super::{Answer, Peer, Qp, RECOVERY, Terms};
use crate::Failure;
use core::net::Ipv4Addr;
use nacelle_wire::{
    Psn, Qpn, RoceHeaders,
    bth::{Bth, Deth, Opcode},
    cm::{self, Dreq, IpCm, Message, Req, Rtu},
    extensions::Agreement,
    transport::Ext,
};
use std::time::{Duration, Instant};
impl Peer {
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
        if terms.offer != Agreement::default() {
            terms.offer.put(&mut req.private_data).expect("the field has room for the record");
        }
        if let Some(token) = terms.token {
            token.put(&mut req.private_data).expect("the field has room for a token");
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
            agreed: Agreement::find(&rep.private_data).unwrap_or_default(),
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
}
