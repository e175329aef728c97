// SPDX-License-Identifier: Apache-2.0
//! Whole messages in as many packets as they take: WRITEs, READs, atomics and SENDs.

use super::{Memory, Peer, Qp};
use crate::{Failure, station::Packet};
use nacelle_wire::{
    Psn,
    bth::{AtomicEth, ImmDt, Opcode, Reth, Syndrome},
    transport::Ext,
};
impl Peer {
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
        self.post_named(qp, None, message)
    }

    /// As [`Self::post_message`], with an immediate.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn post_named(&mut self, qp: &mut Qp, imm: Option<u32>, message: &[u8]) -> Result<(), Failure> {
        let last = message.len().div_ceil(qp.mtu).max(1) - 1;
        for index in 0..=last {
            let part = &message[index * qp.mtu..message.len().min((index + 1) * qp.mtu)];
            let imm = imm.filter(|_| index == last).map(ImmDt::new);
            let opcode = match (index == 0, index == last, imm) {
                (true, true, None) => Opcode::SendOnly,
                (true, true, Some(_)) => Opcode::SendOnlyImm,
                (true, false, _) => Opcode::SendFirst,
                (false, false, _) => Opcode::SendMiddle,
                (false, true, None) => Opcode::SendLast,
                (false, true, Some(_)) => Opcode::SendLastImm,
            };
            let ext = imm.map_or(Ext::None, Ext::Imm);
            let mut headers = self.headers(qp, opcode, qp.next.add(index as u32), ext);
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
}
