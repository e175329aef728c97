// SPDX-License-Identifier: Apache-2.0
//! The end of connections: DREQ and DREP, either way (IBTA 12.9.9).

use super::private_data;
use crate::{ConnId, ConnectError, ConnectFailure, Discard, DisconnectReason, Event, Instant, Path, Phase, Transport};
use nacelle_wire::cm::{Drep, Dreq, Message, RejReason, set_private_data};
use rand_chacha::rand_core::Rng;

impl Transport {
    /// Ends a connection, in any phase. Its work requests are flushed at once; [`Event::Disconnected`] or
    /// [`Event::ConnectFailed`] follows when the peer has replied or does not reply in time.
    pub fn disconnect(&mut self, now: Instant, id: ConnId) {
        self.disconnect_with(now, id, &[]).expect("no private data fits every message");
    }

    /// The same, with private data for the peer's application: up to 220 bytes, 148 before the connection is ready.
    pub fn disconnect_with(&mut self, now: Instant, id: ConnId, private_data: &[u8]) -> Result<(), ConnectError> {
        let Some(c) = self.conns.get(id) else { return Ok(()) };
        let room = if c.phase == Phase::Established { private_data::DREQ } else { private_data::REJ };
        if private_data.len() > room {
            return Err(ConnectError::PrivateData);
        }
        match c.phase {
            Phase::Resolving => self.abandon(id, ConnectFailure::Aborted),
            Phase::ReqSent | Phase::ReqReceived | Phase::RepSent => {
                let reason = if c.active { RejReason::TIMEOUT } else { RejReason::CONSUMER };
                self.send_rej(id, reason, private_data);
                self.abandon(id, ConnectFailure::Aborted);
            }
            Phase::Established => {
                self.flush(id);
                self.send_dreq(now, id, private_data);
            }
            // A queue pair without connection management is destroyed, not disconnected.
            Phase::Lingering | Phase::DreqSent | Phase::Unmanaged(_) => {}
        }
        Ok(())
    }

    pub(super) fn send_dreq(&mut self, now: Instant, id: ConnId, private_data: &[u8]) {
        let transaction_id = self.rng.next_u64();
        let Some(c) = self.conns.get_mut(id) else { return };
        c.phase = Phase::DreqSent;
        c.transaction_id = transaction_id;
        let mut dreq = Dreq::new(c.local_comm_id, c.remote_comm_id, c.remote_qpn);
        set_private_data(&mut dreq.private_data, private_data).expect("checked by disconnect");
        self.start_cm(now, id, Message::Dreq(&dreq));
    }

    pub(super) fn receive_dreq(&mut self, path: Path, transaction_id: u64, dreq: &Dreq) -> Result<(), Discard> {
        let (local, remote) = (dreq.remote_comm_id.get(), dreq.local_comm_id.get());
        let connected = [Phase::RepSent, Phase::Established, Phase::Lingering, Phase::DreqSent];
        let found = self.find(path.remote, local, Some(remote), &connected).ok().and_then(|id| self.conns.get(id));
        if found.is_some_and(|c| c.local_qpn != dreq.remote_qpn()) {
            return Err(Discard::CmUnexpected);
        }
        // Sent also when the connection is gone already: the first DREP may have been lost.
        let mut drep = Drep::new(local, remote);
        if let Some(c) = found {
            set_private_data(&mut drep.private_data, &c.options.drep_data).expect("checked by connect and accept");
        }
        let ended = found.map(|c| (c.id, c.phase));
        self.queue_mad(path, Message::Drep(&drep).to_mad(transaction_id));
        match ended {
            // Both sides have sent a DREQ: this side ended it as well.
            Some((id, Phase::DreqSent)) => self.finish(id, DisconnectReason::Local, &dreq.private_data),
            Some((id, _)) => self.finish(id, DisconnectReason::Remote, &dreq.private_data),
            None => {}
        }
        Ok(())
    }

    pub(super) fn receive_drep(&mut self, path: Path, drep: &Drep) -> Result<(), Discard> {
        let (local, remote) = (drep.remote_comm_id.get(), drep.local_comm_id.get());
        let id = self.find(path.remote, local, Some(remote), &[Phase::DreqSent])?;
        self.finish(id, DisconnectReason::Local, &drep.private_data);
        Ok(())
    }

    /// Reports, once, that a connection has ended, with the peer's private data.
    pub(crate) fn report_end(&mut self, id: ConnId, reason: DisconnectReason, private_data: &[u8]) {
        let Some(c) = self.conns.get_mut(id).filter(|c| !c.end_reported) else { return };
        c.end_reported = true;
        let event = if c.stats.established.is_some() {
            let (private_data, stats) = (private_data.to_vec(), Box::new(c.stats));
            Event::Disconnected { conn: id, reason, private_data, stats }
        } else {
            Event::ConnectFailed { conn: id, reason: ConnectFailure::Aborted }
        };
        self.core.events.push_back(event);
    }

    /// A connection ends and its place becomes free.
    pub(crate) fn finish(&mut self, id: ConnId, reason: DisconnectReason, private_data: &[u8]) {
        self.flush(id);
        self.report_end(id, reason, private_data);
        self.conns.remove(id);
    }
}
