// SPDX-License-Identifier: Apache-2.0
//! Calls, packet by packet: the start, and the WRITEs that answer it.

use super::{OWN_RKEY, Peer, Qp, own_address};
use crate::{Failure, failure::ensure, station::Packet};
use nacelle_wire::{
    RemoteAddr, Rkey,
    bth::{ImmDt, Opcode, Reth, Syndrome},
    mrsp::AarRegion,
    transport::Ext,
};
use zerocopy::IntoBytes;

/// One WRITE of the device.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// Where it goes.
    pub(crate) reth: Reth,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    /// With this immediate.
    pub(crate) imm: Option<u32>,
    /// Its last packet asks for a solicited event.
    pub(crate) solicited: bool,
}

/// A message of the region protocol with any head.
pub(crate) fn raw_message(kind: u8, count: u8, regions: &[AarRegion]) -> Vec<u8> {
    [&[kind, count, 0, 0][..], regions.as_bytes()].concat()
}

impl Peer {
    /// Sends an immediate with a WRITE of no bytes; it is still to be acknowledged.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn post_immediate(&mut self, qp: &mut Qp, imm: u32) -> Result<(), Failure> {
        let ext = Ext::RethImm(Reth::new(RemoteAddr(0), Rkey(0), 0), ImmDt::new(imm));
        self.send(qp, Opcode::WriteOnlyImm, qp.next, ext, &[])?;
        qp.next = qp.next.add(1);
        Ok(())
    }

    /// Sends an immediate, which is acknowledged.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn immediate(&mut self, qp: &mut Qp, imm: u32) -> Result<(), Failure> {
        self.post_immediate(qp, imm)?;
        self.expect_ack(qp, qp.next.sub(1), Syndrome::ACK).map(|_| ())
    }

    /// Takes the WRITEs of the device up to the one with immediate, and acknowledges them.
    ///
    /// # Errors
    /// They do not come, or not in the form that the standard asks for.
    pub(crate) fn take_outputs(&mut self, qp: &mut Qp) -> Result<Vec<Output>, Failure> {
        let mut outputs = Vec::new();
        loop {
            let output = self.take_write(qp)?;
            let last = output.imm.is_some();
            outputs.push(output);
            if last {
                self.acknowledge(qp, qp.expected.sub(1), Syndrome::ACK)?;
                return Ok(outputs);
            }
        }
    }

    /// Takes one WRITE of the device, without acknowledging it.
    fn take_write(&mut self, qp: &mut Qp) -> Result<Output, Failure> {
        let first = self.next_request(qp)?;
        self.take_rest_of_write(qp, first)
    }

    /// Takes the WRITE that begins with this packet, without acknowledging it.
    ///
    /// # Errors
    /// The rest of it does not come, or not in the form that the standard asks for.
    pub(super) fn take_rest_of_write(&mut self, qp: &mut Qp, first: Packet) -> Result<Output, Failure> {
        let (Ext::Reth(reth) | Ext::RethImm(reth, _)) = first.headers.ext else {
            return Err(Failure::unexpected("the begin of a WRITE", &first));
        };
        let mut bytes = first.payload.clone();
        let mut last = first;
        while matches!(last.opcode, Opcode::WriteFirst | Opcode::WriteMiddle) {
            ensure!(last.payload.len() == qp.mtu, "{:?} with {} bytes", last.opcode, last.payload.len());
            last = self.next_request(qp)?;
            if !matches!(last.opcode, Opcode::WriteMiddle | Opcode::WriteLast | Opcode::WriteLastImm) {
                return Err(Failure::unexpected("the rest of a WRITE", &last));
            }
            bytes.extend_from_slice(&last.payload);
        }
        ensure!(bytes.len() == reth.dma_len() as usize, "a WRITE of {} has {} bytes", reth.dma_len(), bytes.len());
        let imm = match last.headers.ext {
            Ext::Imm(imm) | Ext::RethImm(_, imm) => Some(imm.get()),
            _ => None,
        };
        Ok(Output { reth, bytes, imm, solicited: last.headers.bth.solicited() })
    }

    /// The next request of the device, which must be the one expected. One that was acknowledged and comes again is acknowledged again.
    ///
    /// # Errors
    /// None comes, or one out of order.
    pub(super) fn next_request(&mut self, qp: &mut Qp) -> Result<Packet, Failure> {
        loop {
            let packet = self.request(qp)?;
            let ahead = packet.headers.bth.psn().distance(qp.expected);
            if ahead < 0 {
                self.acknowledge(qp, qp.expected.sub(1), Syndrome::ACK)?;
                continue;
            }
            if ahead > 0 {
                return Err(Failure::unexpected(format!("PSN {:#x}", qp.expected.get()), &packet));
            }
            qp.expected = qp.expected.add(1);
            return Ok(packet);
        }
    }

    /// Calls a function and takes its outputs.
    ///
    /// # Errors
    /// The device does not take it, or does not answer as a WRITE for each output.
    pub(crate) fn call(&mut self, qp: &mut Qp, imm: u32) -> Result<Vec<Output>, Failure> {
        self.immediate(qp, imm)?;
        self.take_outputs(qp)
    }

    /// Calls the empty function on a connection whose regions are all outputs: their content.
    ///
    /// # Errors
    /// The call fails.
    pub(crate) fn outputs_of_nothing(&mut self, qp: &mut Qp) -> Result<Vec<Vec<u8>>, Failure> {
        let outputs = self.call(qp, EMPTY)?;
        ensure!(outputs.len() == qp.regions.len(), "{} regions, {} outputs", qp.regions.len(), outputs.len());
        for (index, output) in outputs.iter().enumerate() {
            ensure!(
                output.reth.va() == own_address(index) && output.reth.rkey() == OWN_RKEY,
                "output {index} goes to {:#x}, key {:#x}",
                output.reth.va().0,
                output.reth.rkey().0
            );
        }
        Ok(outputs.into_iter().map(|output| output.bytes).collect())
    }
}

/// Starts the function that does nothing.
pub(crate) const EMPTY: u32 = 0x83;
