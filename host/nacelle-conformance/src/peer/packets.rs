// SPDX-License-Identifier: Apache-2.0
//! Packets of a connection, and the responses to them.

use super::{Peer, Qp};
use crate::{Failure, station::Packet};
use nacelle_wire::{
    Psn, RemoteAddr, Rkey, RoceHeaders,
    bth::{Aeth, Bth, NakCode, Opcode, Reth, Syndrome},
    transport::Ext,
};
impl Peer {
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

    /// Sends an acknowledgement.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn acknowledge(&mut self, qp: &Qp, psn: Psn, syndrome: Syndrome) -> Result<(), Failure> {
        self.send_quietly(qp, Opcode::Acknowledge, psn, Ext::Aeth(Aeth::new(syndrome, 1)), &[])
    }
}
