// SPDX-License-Identifier: Apache-2.0
//! Connections with contexts: requests and answers whose immediates name one (docs/reference/calls.md).

use super::{Memory, OWN_RKEY, Output, Peer, Qp, Terms, own_address};
use crate::{Failure, failure::ensure, station::Packet};
use nacelle_wire::{
    bth::{Opcode, Syndrome},
    calls::{self, Context, Request},
    cm::Message as CmMessage,
    extensions::{Agreement, Extensions},
    mrsp::{AarRegion, Message, RegionFlags},
    transport::Ext,
};

/// Numbers of regions that one context takes, so that no two contexts announce the same address.
const NUMBERS: usize = 32;
/// Inputs that are returned.
const BOTH: RegionFlags = RegionFlags::from_bits(RegionFlags::INPUT.bits() | RegionFlags::OUTPUT.bits());

/// An answer of the device.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A message.
    Message {
        /// Its immediate.
        imm: Option<u32>,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// The end of a call.
    End {
        /// The context that its immediate names.
        context: u8,
        /// The result in its immediate.
        result: u32,
        /// The WRITEs since the last answer; the last one has the immediate.
        outputs: Vec<Output>,
    },
}

/// A connection with contexts.
pub(crate) struct Many {
    /// The connection.
    pub(crate) qp: Qp,
    /// The device's regions of each context.
    pub(crate) regions: Vec<Vec<Memory>>,
}

impl Peer {
    /// Takes the next answer of the device, and acknowledges it.
    ///
    /// # Errors
    /// It does not come, or not in the form that the standard asks for.
    pub(crate) fn take_reply(&mut self, qp: &mut Qp) -> Result<Reply, Failure> {
        let mut outputs = Vec::new();
        loop {
            let first = self.next_request(qp)?;
            if matches!(first.headers.ext, Ext::Reth(_) | Ext::RethImm(..)) {
                let output = self.take_rest_of_write(qp, first)?;
                let imm = output.imm;
                outputs.push(output);
                let Some(imm) = imm else { continue };
                self.acknowledge(qp, qp.expected.sub(1), Syndrome::ACK)?;
                let (context, result) = calls::parse_result(imm);
                ensure!(imm & 0x00ff_00ff == 0, "the immediate {imm:#010x} at the end of a call has other bits");
                return Ok(Reply::End { context: context.0, result: result.get(), outputs });
            }
            ensure!(outputs.is_empty(), "a message came between the WRITEs of a call");
            let (imm, bytes) = self.take_rest_of_message(qp, first)?;
            self.acknowledge(qp, qp.expected.sub(1), Syndrome::ACK)?;
            return Ok(Reply::Message { imm, bytes });
        }
    }

    /// Takes the SEND that begins with this packet, without acknowledging it.
    fn take_rest_of_message(&mut self, qp: &mut Qp, first: Packet) -> Result<(Option<u32>, Vec<u8>), Failure> {
        let mut bytes = first.payload.clone();
        let mut last = first;
        while matches!(last.opcode, Opcode::SendFirst | Opcode::SendMiddle) {
            last = self.next_request(qp)?;
            bytes.extend_from_slice(&last.payload);
        }
        match (last.opcode, last.headers.ext) {
            (Opcode::SendOnly | Opcode::SendLast, _) => Ok((None, bytes)),
            (Opcode::SendOnlyImm | Opcode::SendLastImm, Ext::Imm(imm)) => Ok((Some(imm.get()), bytes)),
            _ => Err(Failure::unexpected("a SEND", &last)),
        }
    }

    /// Connects, and asks for so many contexts, and for long set-up if it is `long`.
    ///
    /// # Errors
    /// [`Failure::NotTried`] if the device does not give as many.
    pub(crate) fn connect_contexts(&mut self, contexts: u8, long: bool) -> Result<Many, Failure> {
        let also = if long { Extensions::LONG_SET_UP } else { Extensions::NONE };
        let offer = Agreement::new(Extensions::CONTEXTS | also, contexts);
        let qp = self.connect(&Terms { mtu: 5, offer, ..Terms::default() })?;
        let agreed = qp.agreed.common(offer);
        if agreed.contexts < contexts || !agreed.extensions.contains(offer.extensions) {
            self.disconnect(&qp)?;
            return Err(Failure::NotTried(if long && agreed.contexts >= contexts {
                "the device has no long set-up"
            } else if agreed.contexts == 0 {
                "the device has no contexts"
            } else {
                "the device gives a connection fewer contexts"
            }));
        }
        Ok(Many { qp, regions: vec![Vec::new(); contexts.into()] })
    }

    /// As [`Self::connect_contexts`], with as many contexts as the device gives, up to 8.
    ///
    /// # Errors
    /// [`Failure::NotTried`] if it gives fewer than `least`.
    pub(crate) fn connect_most_contexts(&mut self, least: u8, long: bool) -> Result<Many, Failure> {
        let offer = Agreement::new(Extensions::CONTEXTS, 8);
        let qp = self.connect(&Terms { offer, ..Terms::default() })?;
        self.disconnect(&qp)?;
        self.connect_contexts(qp.agreed.common(offer).contexts.max(least), long)
    }

    /// Whether the device ends this connection: by a DREQ, or by a NAK.
    ///
    /// # Errors
    /// The link is broken.
    pub(crate) fn is_ended(&mut self, qp: &Qp) -> Result<bool, Failure> {
        let (own, id) = (qp.own_qpn, qp.own_comm_id);
        let ended = self.station.expect(|p| {
            let refused = matches!(p.headers.ext, Ext::Aeth(a) if matches!(a.syndrome(), Syndrome::Nak(_)));
            let dreq = || CmMessage::parse(&p.payload).map(|(_, m)| m);
            (p.headers.bth.dest_qp() == own && p.opcode.is_response() && refused)
                || (p.opcode == Opcode::UdSendOnly
                    && matches!(dreq(), Ok(CmMessage::Dreq(dreq)) if dreq.remote_comm_id.get() == id))
        })?;
        Ok(ended.is_some())
    }
}

impl Many {
    /// How many contexts it has.
    pub(crate) fn count(&self) -> u8 {
        self.regions.len() as u8
    }

    /// The region of a request that a context announces at its number.
    pub(crate) fn region(context: u8, index: usize, flags: RegionFlags, size: u32) -> AarRegion {
        AarRegion::parameter(flags, 0, own_address(usize::from(context) * NUMBERS + index), OWN_RKEY, size)
    }

    /// The context whose region has this address, and its number there.
    pub(crate) fn place_of(output: &Output) -> Option<(u8, usize)> {
        let index = (0..8 * NUMBERS).find(|&index| own_address(index) == output.reth.va())?;
        Some(((index / NUMBERS) as u8, index % NUMBERS))
    }

    /// Sends a message on a context; it is acknowledged.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn send(&mut self, peer: &mut Peer, context: u8, message: &[u8]) -> Result<(), Failure> {
        peer.post_named(&mut self.qp, Some(Request::Message(Context(context)).to_imm()), message)?;
        peer.expect_ack(&self.qp, self.qp.next.sub(1), Syndrome::ACK).map(|_| ())
    }

    /// Sends a message on a context, and takes the answer, which names the context.
    ///
    /// # Errors
    /// Something else comes.
    pub(crate) fn exchange(&mut self, peer: &mut Peer, context: u8, message: &[u8]) -> Result<Vec<u8>, Failure> {
        self.send(peer, context, message)?;
        match peer.take_reply(&mut self.qp)? {
            Reply::Message { imm: Some(imm), bytes } if imm == calls::answer_imm(Context(context)) => Ok(bytes),
            other => Err(Failure::Content(format!("a message of context {context} is answered by {other:x?}"))),
        }
    }

    /// Has regions with these flags and sizes on a context.
    ///
    /// # Errors
    /// The device refuses, or answers something else.
    pub(crate) fn set_up_with(
        &mut self,
        peer: &mut Peer,
        context: u8,
        asked: &[(RegionFlags, u32)],
    ) -> Result<(), Failure> {
        let regions: Vec<AarRegion> =
            asked.iter().enumerate().map(|(index, &(flags, size))| Self::region(context, index, flags, size)).collect();
        let answer = self.exchange(peer, context, &super::raw_message(1, regions.len() as u8, &regions))?;
        match Message::parse(&answer)? {
            Message::A(given) => self.regions[usize::from(context)] = given.iter().map(Memory::from).collect(),
            other => return Err(Failure::Content(format!("regions on context {context} are answered by {other:?}"))),
        }
        Ok(())
    }

    /// As [`Self::set_up_with`], each region input and output.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn set_up(&mut self, peer: &mut Peer, context: u8, sizes: &[u32]) -> Result<(), Failure> {
        let asked: Vec<_> = sizes.iter().map(|&size| (BOTH, size)).collect();
        self.set_up_with(peer, context, &asked)
    }

    /// Writes bytes to the begin of a region of a context.
    ///
    /// # Errors
    /// It is not acknowledged.
    pub(crate) fn write(&mut self, peer: &mut Peer, context: u8, region: usize, bytes: &[u8]) -> Result<(), Failure> {
        let memory = self.regions[usize::from(context)][region];
        peer.write_bytes(&mut self.qp, &memory, 0, bytes)
    }

    /// Checks the first bytes of a region of a context.
    ///
    /// # Errors
    /// They are others.
    pub(crate) fn expect(&mut self, peer: &mut Peer, context: u8, region: usize, bytes: &[u8]) -> Result<(), Failure> {
        let memory = self.regions[usize::from(context)][region];
        peer.expect_bytes(&mut self.qp, &memory, 0, bytes)
    }

    /// Sends the immediate of a WRITE for a context; it is acknowledged. `start` is what is behind the context.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn start(&mut self, peer: &mut Peer, context: u8, start: u32) -> Result<(), Failure> {
        peer.immediate(&mut self.qp, u32::from(context) << 24 | start)
    }

    /// Cancels the call of a context; the cancel is acknowledged.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn cancel(&mut self, peer: &mut Peer, context: u8) -> Result<(), Failure> {
        peer.post_named(&mut self.qp, Some(Request::Cancel(Context(context)).to_imm()), &[])?;
        peer.expect_ack(&self.qp, self.qp.next.sub(1), Syndrome::ACK).map(|_| ())
    }

    /// Checks that the device has nothing to say: a request that changes nothing is acknowledged, and nothing else comes before.
    ///
    /// # Errors
    /// Something has come.
    pub(crate) fn expect_silence(&mut self, peer: &mut Peer) -> Result<(), Failure> {
        peer.expect_silence(&mut self.qp)?;
        let (own, expected) = (self.qp.own_qpn, self.qp.expected);
        let new = |p: &Packet| p.headers.bth.psn().distance(expected) >= 0;
        match peer.station.take(|p| p.headers.bth.dest_qp() == own && !p.opcode.is_response() && new(p))?.first() {
            None => Ok(()),
            Some(packet) => Err(Failure::unexpected("nothing", packet)),
        }
    }

    /// Takes the end of a call: its context, its result, its outputs.
    ///
    /// # Errors
    /// Something else comes.
    pub(crate) fn end_of_call(&mut self, peer: &mut Peer) -> Result<(u8, u32, Vec<Output>), Failure> {
        match peer.take_reply(&mut self.qp)? {
            Reply::End { context, result, outputs } => Ok((context, result, outputs)),
            Reply::Message { bytes, .. } => {
                Err(Failure::Content(format!("a call is answered by a message {bytes:02x?}")))
            }
        }
    }

    /// Calls a function on a context while no other has a call; it ends with this result. Gives the outputs, empty WRITEs left out.
    ///
    /// # Errors
    /// It ends otherwise.
    pub(crate) fn call(
        &mut self,
        peer: &mut Peer,
        context: u8,
        start: u32,
        wanted: u32,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        self.start(peer, context, start)?;
        let (of, result, outputs) = self.end_of_call(peer)?;
        ensure!(
            of == context && result == wanted,
            "a call of context {context} that ends with {wanted} is answered by {result} of context {of}"
        );
        Ok(outputs.into_iter().map(|output| output.bytes).filter(|bytes| !bytes.is_empty()).collect())
    }
}
