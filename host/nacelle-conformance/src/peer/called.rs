// SPDX-License-Identifier: Apache-2.0
//! Connections that the device opens to the suite, by management: set-up, and what becomes of the work that they are given.

use super::{Peer, Qp};
use crate::{Failure, failure::ensure};
use core::time::Duration;
use nacelle::management::{Completion, ConnectionState, Work};
use nacelle_wire::{
    Psn, Qpn,
    cm::{self, Drep, Extensions, Message, Rep, Req},
};
use std::time::Instant;

/// The port on which the suite is called.
const PORT: u16 = 12_346;
/// PSN at which the device begins to send: its requests soon pass the end of the numbers.
const FIRST_PSN: Psn = Psn::new(0xff_fffe);
/// How often management is asked what has happened.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// A connection that the device has opened.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    /// Its number with management.
    pub(crate) number: u16,
    /// Its queue pairs.
    pub(crate) qp: Qp,
    /// What the device asked for.
    pub(crate) req: Req,
}

impl Peer {
    /// Lets the device open a connection with this path MTU in bytes to a peer that takes so many READs at once.
    ///
    /// # Errors
    /// It does not, or asks for another MTU.
    pub(crate) fn called(&mut self, mtu: u16, responder_resources: u8) -> Result<Called, Failure> {
        let ip = self.ip;
        let number = self.manage()?.connect(ip, PORT, Some(mtu))?;
        let ours = cm::service_id(PORT);
        let mad = self.expect_cm("REQ", |_, m| matches!(m, Message::Req(r) if r.service_id.get() == ours))?;
        let (tid, Message::Req(req)) = Message::parse(&mad)? else { return Err(Failure::Missing("REQ")) };
        let req = *req;
        ensure!(128 << req.path_mtu() == mtu, "the REQ has path MTU {} instead of {mtu}", 128 << req.path_mtu());
        self.next_id += 1;
        let id = self.next_id;
        let mut rep = Rep::new(id, req.local_comm_id.get(), Qpn::new(id & 0xff_ffff), FIRST_PSN);
        rep.responder_resources = responder_resources;
        rep.set_rnr_retry_count(7);
        self.send_cm(tid, Message::Rep(&rep))?;
        let qp = Qp {
            ip,
            qpn: req.local_qpn(),
            own_qpn: rep.local_qpn(),
            comm_id: req.local_comm_id.get(),
            own_comm_id: id,
            tid,
            next: req.starting_psn(),
            expected: FIRST_PSN,
            mtu: mtu.into(),
            extensions: Extensions::default(),
            responder_resources: req.responder_resources,
            regions: Vec::new(),
        };
        self.open.push(qp.clone());
        self.expect_cm("RTU", |_, m| matches!(m, Message::Rtu(r) if r.remote_comm_id.get() == id))?;
        let until = Instant::now() + self.station.patience;
        while self.manage()?.poll(number)?.state != ConnectionState::Established {
            ensure!(Instant::now() < until, "the device does not take its connection for established");
            self.pass(ASK_EVERY)?;
        }
        Ok(Called { number, qp, req })
    }

    /// Gives such a connection something to do. What the device had sent before is forgotten.
    ///
    /// # Errors
    /// Management refuses.
    pub(crate) fn give(&mut self, called: &Called, work: Work) -> Result<(), Failure> {
        let own = called.qp.own_qpn;
        self.station.take(|p| p.headers.bth.dest_qp() == own)?;
        self.manage()?.post(called.number, work)
    }

    /// How the work of such a connection ended.
    ///
    /// # Errors
    /// It does not end.
    pub(crate) fn completion(&mut self, called: &Called) -> Result<Completion, Failure> {
        let until = Instant::now() + self.station.patience * 4;
        loop {
            let progress = self.manage()?.poll(called.number)?;
            if let Some(completion) = progress.completions.into_iter().next() {
                return Ok(completion);
            }
            ensure!(!progress.state.is_over(), "the connection has ended, and its work has no completion");
            ensure!(Instant::now() < until, "the device's work has no completion");
            self.pass(ASK_EVERY)?;
        }
    }

    /// The connection ends by itself, and with it its work: what the work's completion says. The device's DREQ is answered.
    ///
    /// # Errors
    /// It does not end, or not with one completion.
    pub(crate) fn broken(&mut self, called: &Called) -> Result<Completion, Failure> {
        let id = called.qp.own_comm_id;
        let until = Instant::now() + self.station.patience * 10;
        let (mut completions, mut over, mut told) = (Vec::new(), false, false);
        while !over || !told {
            if !over {
                let progress = self.manage()?.poll(called.number)?;
                completions.extend(progress.completions);
                over = progress.state.is_over();
            }
            let dreq = self.station.wait(ASK_EVERY, |p| {
                let message = Message::parse(&p.payload);
                message.is_ok_and(|(_, m)| matches!(m, Message::Dreq(d) if d.remote_comm_id.get() == id))
            })?;
            if let Some(dreq) = dreq {
                let (tid, _) = Message::parse(&dreq.payload)?;
                self.send_cm_from(called.qp.ip, tid, Message::Drep(&Drep::new(id, called.qp.comm_id)))?;
                told = true;
            }
            ensure!(over || Instant::now() < until, "the connection does not end; its completions: {completions:?}");
            ensure!(told || Instant::now() < until, "the device has ended the connection without a DREQ");
        }
        self.leave(&called.qp);
        match <[Completion; 1]>::try_from(completions) {
            Ok([completion]) => Ok(completion),
            Err(completions) => Err(Failure::Content(format!("one completion should have come: {completions:?}"))),
        }
    }

    /// Ends such a connection, at both sides.
    ///
    /// # Errors
    /// The device does not agree.
    pub(crate) fn hang_up(&mut self, called: &Called) -> Result<(), Failure> {
        self.disconnect(&called.qp)?;
        let until = Instant::now() + self.station.patience;
        while !self.manage()?.poll(called.number)?.state.is_over() {
            ensure!(Instant::now() < until, "the device does not take its connection for ended");
            self.pass(ASK_EVERY)?;
        }
        Ok(())
    }

    /// Lets time pass. What comes is kept.
    fn pass(&mut self, time: Duration) -> Result<(), Failure> {
        self.station.wait(time, |_| false).map(|_| ())
    }
}
