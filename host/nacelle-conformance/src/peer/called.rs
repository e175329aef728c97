// SPDX-License-Identifier: Apache-2.0
//! Connections that the device opens to the suite, through its management: set-up, work requests, completions, and the end.

use super::{Peer, Qp};
use crate::{Failure, failure::ensure};
use core::time::Duration;
use nacelle_manage::{Completion, ConnectionState, Work};
use nacelle_wire::{
    Psn, Qpn,
    cm::{self, Drep, Message, Rep, Req},
    extensions::Agreement,
};
use std::time::Instant;

/// The port on which the suite is called.
const PORT: u16 = 12_346;
/// First PSN of the device's requests: they wrap soon.
const FIRST_PSN: Psn = Psn::new(0xff_fffe);
/// Interval at which management is polled.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// A connection that the device has opened.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    /// Its number with management.
    pub(crate) number: u16,
    /// Its queue pairs.
    pub(crate) qp: Qp,
    /// The device's REQ.
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
            agreed: Agreement::default(),
            responder_resources: req.responder_resources,
            regions: Vec::new(),
        };
        self.open.push(qp.clone());
        self.expect_cm("RTU", |_, m| matches!(m, Message::Rtu(r) if r.remote_comm_id.get() == id))?;
        self.until_state(number, "established", |state| *state == ConnectionState::Established)?;
        Ok(Called { number, qp, req })
    }

    /// Posts a work request on such a connection. Packets that the device sent before are discarded.
    ///
    /// # Errors
    /// Management refuses.
    pub(crate) fn give(&mut self, called: &Called, work: Work) -> Result<(), Failure> {
        let own = called.qp.own_qpn;
        self.station.take(|p| p.headers.bth.dest_qp() == own)?;
        self.manage()?.post(called.number, work)
    }

    /// Waits for the completion of the work request.
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

    /// Waits until the device ends the connection by itself, and answers its DREQ. Returns the completion of the work request.
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
        self.until_state(called.number, "ended", ConnectionState::is_over)
    }

    /// Polls management until the connection has reached a state.
    fn until_state(
        &mut self,
        number: u16,
        name: &str,
        reached: impl Fn(&ConnectionState) -> bool,
    ) -> Result<(), Failure> {
        let until = Instant::now() + self.station.patience;
        while !reached(&self.manage()?.poll(number)?.state) {
            ensure!(Instant::now() < until, "the device does not take its connection for {name}");
            self.pass(ASK_EVERY)?;
        }
        Ok(())
    }

    /// Waits. Packets that arrive are kept.
    fn pass(&mut self, time: Duration) -> Result<(), Failure> {
        self.station.wait(time, |_| false).map(|_| ())
    }
}
