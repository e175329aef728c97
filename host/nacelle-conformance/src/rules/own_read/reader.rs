// SPDX-License-Identifier: Apache-2.0
//! A connection on which the device READs, and the suite's responses.

use super::{MTU, WRONG};
use crate::{
    Failure,
    failure::ensure,
    peer::{Called, OWN_RKEY, Peer, own_address},
    rules::pattern,
};
use core::ops::Range;
use nacelle_manage::{Bytes, Work};
use nacelle_roce::WcStatus;
use nacelle_wire::{
    Psn,
    bth::{Aeth, Opcode, Syndrome},
    transport::Ext,
};

/// A connection of the device, and the READ that is under way on it.
pub(super) struct Reader {
    pub(super) called: Called,
    /// The bytes that it reads.
    pub(super) bytes: Vec<u8>,
}

impl Reader {
    pub(super) fn new(peer: &mut Peer) -> Result<Self, Failure> {
        Self::with_mtu(peer, MTU)
    }

    pub(super) fn with_mtu(peer: &mut Peer, mtu: u16) -> Result<Self, Failure> {
        Ok(Self { called: peer.called(mtu, 1)?, bytes: Vec::new() })
    }

    /// Response packets of the READ.
    pub(super) fn packets(&self) -> u32 {
        self.bytes.len().div_ceil(self.called.qp.mtu).max(1) as u32
    }

    pub(super) fn psn(&self, index: u32) -> Psn {
        self.called.qp.expected.add(index)
    }

    /// Lets the device read, and takes its request.
    pub(super) fn begin(&mut self, peer: &mut Peer, seed: u8, length: usize) -> Result<(), Failure> {
        self.bytes = pattern(seed, length);
        let work = Work::Read { address: own_address(0).0, rkey: OWN_RKEY.0, length: length as u32 };
        peer.give(&self.called, work)?;
        self.request(peer, 0..1).map(|_| ())
    }

    /// Checks that the device's next request is the READ from one of these response packets to the end. Returns which.
    pub(super) fn request(&self, peer: &mut Peer, from: Range<u32>) -> Result<u32, Failure> {
        let packet = peer.request(&self.called.qp)?;
        let index = packet.headers.bth.psn().since(self.psn(0));
        let Ext::Reth(reth) = packet.headers.ext else { return Err(Failure::unexpected("a READ", &packet)) };
        if packet.opcode != Opcode::ReadRequest || !from.contains(&index) {
            return Err(Failure::unexpected(format!("a READ from response packet {from:?} on"), &packet));
        }
        let at = index as usize * self.called.qp.mtu;
        ensure!(reth.va().0 == own_address(0).0 + at as u64, "the READ is of address {:#x}", reth.va().0);
        ensure!(reth.rkey() == OWN_RKEY, "the READ has key {:#x}", reth.rkey().0);
        let left = self.bytes.len() - at;
        ensure!(reth.dma_len() as usize == left, "the READ is of {} bytes instead of {left}", reth.dma_len());
        ensure!(packet.payload.is_empty(), "the request has {} bytes of payload", packet.payload.len());
        ensure!(!packet.headers.bth.solicited(), "a READ request has the solicited event bit set");
        Ok(index)
    }

    /// Payload of a response packet.
    pub(super) fn part(&self, index: u32) -> &[u8] {
        let mtu = self.called.qp.mtu;
        let at = index as usize * mtu;
        &self.bytes[at..self.bytes.len().min(at + mtu)]
    }

    /// Opcode of a response packet, of a request that began at another.
    pub(super) fn opcode(&self, from: u32, index: u32) -> Opcode {
        match (index == from, index + 1 == self.packets()) {
            (true, true) => Opcode::ReadResponseOnly,
            (true, false) => Opcode::ReadResponseFirst,
            (false, false) => Opcode::ReadResponseMiddle,
            (false, true) => Opcode::ReadResponseLast,
        }
    }

    /// Sends the right response packets of these indices.
    pub(super) fn answer(&self, peer: &mut Peer, from: u32, indices: Range<u32>) -> Result<(), Failure> {
        indices.into_iter().try_for_each(|index| self.respond(peer, self.opcode(from, index), index, self.part(index)))
    }

    /// Sends response packets that are valid but carry the wrong payload.
    pub(super) fn mislead(&self, peer: &mut Peer, indices: Range<u32>) -> Result<(), Failure> {
        let mut indices = indices.into_iter();
        indices.try_for_each(|i| self.respond(peer, self.opcode(0, i), i, &vec![WRONG; self.part(i).len()]))
    }

    /// Sends a response packet.
    pub(super) fn respond(&self, peer: &mut Peer, opcode: Opcode, index: u32, payload: &[u8]) -> Result<(), Failure> {
        respond(peer, &self.called, opcode, self.psn(index), Syndrome::ACK, payload)
    }

    /// Answers the READ with this syndrome.
    pub(super) fn refuse(&self, peer: &mut Peer, syndrome: Syndrome) -> Result<(), Failure> {
        peer.acknowledge(&self.called.qp, self.psn(0), syndrome)
    }

    /// The READ is complete, with the right bytes.
    pub(super) fn complete(&mut self, peer: &mut Peer) -> Result<(), Failure> {
        let completion = peer.completion(&self.called)?;
        ensure!(completion.ok && !completion.receive, "the READ ended with: {}", completion.status);
        let (found, wanted) = (&completion.data.0, &self.bytes);
        ensure!(found.len() == wanted.len(), "the READ brought {} bytes instead of {}", found.len(), wanted.len());
        if let Some(at) = found.iter().zip(wanted).position(|(a, b)| a != b) {
            let (found, wanted) = (found[at], wanted[at]);
            return Err(Failure::Content(format!("byte {at} of the READ is {found:#04x} instead of {wanted:#04x}")));
        }
        self.called.qp.expected = self.psn(self.packets());
        Ok(())
    }

    /// Answers the READ from here on. It is complete then.
    pub(super) fn finish(&mut self, peer: &mut Peer, from: u32) -> Result<(), Failure> {
        self.answer(peer, from, from..self.packets())?;
        self.complete(peer)
    }

    /// Answers the READ from here on, and ends the connection.
    pub(super) fn end(mut self, peer: &mut Peer, from: u32) -> Result<(), Failure> {
        self.finish(peer, from)?;
        peer.hang_up(&self.called)
    }

    /// The READ fails, and ends the connection.
    pub(super) fn fails(self, peer: &mut Peer, status: WcStatus) -> Result<(), Failure> {
        let completion = peer.broken(&self.called)?;
        let wanted = status.to_string();
        ensure!(completion.status == wanted, "the READ ended with: {}, not: {wanted}", completion.status);
        ensure!(completion.data.0.is_empty(), "a READ that failed brought {} bytes", completion.data.0.len());
        Ok(())
    }

    pub(super) fn timeouts(&self, peer: &mut Peer) -> Result<u64, Failure> {
        peer.manage()?.timeouts(self.called.qp.qpn.get())
    }

    /// A WRITE of the device has the next PSN.
    pub(super) fn write(&mut self, peer: &mut Peer) -> Result<(), Failure> {
        let work = Work::Write { data: Bytes(pattern(9, 8)), address: own_address(1).0, rkey: OWN_RKEY.0 };
        peer.give(&self.called, work)?;
        self.written(peer)
    }

    pub(super) fn written(&self, peer: &mut Peer) -> Result<(), Failure> {
        let packet = peer.request(&self.called.qp)?;
        if packet.opcode != Opcode::WriteOnly || packet.headers.bth.psn() != self.psn(0) {
            return Err(Failure::unexpected(format!("a WRITE of PSN {:#x}", self.psn(0).get()), &packet));
        }
        Ok(())
    }

    /// Acknowledges that WRITE.
    pub(super) fn acknowledge(&mut self, peer: &mut Peer) -> Result<(), Failure> {
        peer.acknowledge(&self.called.qp, self.psn(0), Syndrome::ACK)?;
        let completion = peer.completion(&self.called)?;
        ensure!(completion.ok, "the WRITE ended with: {}", completion.status);
        ensure!(completion.data.0.is_empty(), "a WRITE brought {} bytes", completion.data.0.len());
        self.called.qp.expected = self.psn(1);
        Ok(())
    }
}

/// Sends a READ response packet.
pub(super) fn respond(
    peer: &mut Peer,
    called: &Called,
    opcode: Opcode,
    psn: Psn,
    syndrome: Syndrome,
    payload: &[u8],
) -> Result<(), Failure> {
    let ext = match opcode {
        Opcode::ReadResponseMiddle => Ext::None,
        _ => Ext::Aeth(Aeth::new(syndrome, 1)),
    };
    peer.send_quietly(&called.qp, opcode, psn, ext, payload)
}
