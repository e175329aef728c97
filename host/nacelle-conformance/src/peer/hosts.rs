// SPDX-License-Identifier: Apache-2.0
//! The suite as several hosts: independent callers.

use super::{Answer, Peer, Qp, Terms};
use crate::Failure;
use core::net::Ipv4Addr;
use nacelle_wire::cm::{self, Message, Rej, RejReason, Req, Rtu};
use std::time::{Duration, Instant};

/// After this time a REQ that was not answered is sent again.
const REPEAT: Duration = Duration::from_millis(500);

impl Peer {
    /// From now on it is this host that connects.
    pub(crate) fn act_as(&mut self, ip: Ipv4Addr) {
        self.station.play(ip);
        self.ip = ip;
    }

    /// Another host than the suite's own: from now on it is this one that connects.
    pub(crate) fn act_as_host(&mut self, index: u16) -> Ipv4Addr {
        let ip = self.station.host(index);
        self.act_as(ip);
        ip
    }

    /// Removes this host with all its connections: it sends nothing more, and does not end them.
    pub(crate) fn vanish(&mut self, ip: Ipv4Addr) {
        self.station.vanish(ip);
        self.open.retain(|qp| qp.ip != ip);
        if self.ip == ip {
            self.ip = self.station.ip();
        }
    }

    /// Connects: `None` if the device refuses for lack of resources (REJ 3).
    ///
    /// # Errors
    /// It refuses for another reason, or does not answer.
    pub(crate) fn try_connect(&mut self, terms: &Terms) -> Result<Option<Qp>, Failure> {
        match self.try_half_open(terms)? {
            Some(qp) => {
                self.send_cm(qp.tid, Message::Rtu(&Rtu::new(qp.own_comm_id, qp.comm_id)))?;
                Ok(Some(qp))
            }
            None => Ok(None),
        }
    }

    /// As [`Self::try_connect`], but the RTU is not sent.
    ///
    /// # Errors
    /// As [`Self::try_connect`].
    pub(crate) fn try_half_open(&mut self, terms: &Terms) -> Result<Option<Qp>, Failure> {
        let (tid, req) = self.req(terms);
        let answer = self.ask_as_caller(tid, &req)?;
        match &answer {
            Answer::Rej(rej) if rej.reason() == RejReason::NO_RESOURCES => Ok(None),
            _ => Ok(Some(self.accepted(tid, &req, answer)?)),
        }
    }

    /// Sends a REQ until it is answered, as a caller's connection manager does: of REQs that come faster than they can be handled a
    /// device may drop some.
    ///
    /// # Errors
    /// [`Failure::Missing`] if none is answered.
    fn ask_as_caller(&mut self, tid: u64, req: &Req) -> Result<Answer, Failure> {
        let (patience, deadline) = (self.station.patience, Instant::now() + self.station.patience);
        self.station.patience = REPEAT.min(patience);
        let answer = loop {
            match self.ask(tid, req) {
                Err(Failure::Missing(_)) if Instant::now() < deadline => {}
                answer => break answer,
            }
        };
        self.station.patience = patience;
        answer
    }

    /// Ends a connection by a REJ instead of a DREQ. It is not answered.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn reject(&mut self, qp: &Qp) -> Result<(), Failure> {
        let own = qp.own_comm_id;
        self.open.retain(|q| q.own_comm_id != own);
        let rej = Rej::new(qp.own_comm_id, qp.comm_id, 1, RejReason::CONSUMER);
        self.send_cm_from(qp.ip, qp.tid, cm::Message::Rej(&rej))
    }
}
