// SPDX-License-Identifier: Apache-2.0
//! A call that takes long: a matrix multiplication, as large as this device needs for it.

use super::{Many, Peer, Qp, Terms, raw_message, region};
use crate::Failure;
use nacelle_wire::{
    kernel::matmul::{Args, Dtype},
    mrsp::RegionFlags,
};
use std::time::{Duration, Instant};

/// How long it takes, about.
const TIME: Duration = Duration::from_millis(200);
/// A product that takes this long is measured well enough.
const MEASURED: Duration = Duration::from_millis(60);
/// Sides of the matrices that are tried: the longer they are, the less memory a product needs for its time.
const LEAST_SIDE: u32 = 32;
const MOST_SIDE: u32 = 4096;

/// A product of `rows` x `side` and `side` x `side`, of zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongCall {
    side: u32,
    rows: u32,
    /// What it takes on a device that does nothing else.
    pub(crate) time: Duration,
}

impl LongCall {
    /// Starts it.
    pub(crate) const START: u32 = 0x90;

    /// The same `factor` times as long, with as little memory as that needs: all sides grow.
    pub(crate) fn times(self, factor: u32) -> Self {
        let grown = |side: u32| (f64::from(side) * f64::from(factor).cbrt()).ceil() as u32;
        Self { side: grown(self.side), rows: grown(self.rows), time: self.time * factor }
    }

    fn arguments(self) -> Vec<u8> {
        Args { dtype: Dtype::Int32, m: self.rows, n: self.side, k: self.side }.to_bytes().to_vec()
    }

    /// Its parameters. The product is never returned: it is long. The arguments are, if they have the flag.
    pub(crate) fn regions(self, arguments: RegionFlags) -> [(RegionFlags, u32); 4] {
        let input = RegionFlags::INPUT;
        let (a, b) = (4 * self.rows * self.side, 4 * self.side * self.side);
        [(arguments, 64), (input, a), (input, b), (input, a)]
    }

    /// Prepares a context for it. Nothing is returned.
    ///
    /// # Errors
    /// The device refuses the memory.
    pub(crate) fn prepare(self, peer: &mut Peer, many: &mut Many, context: u8) -> Result<(), Failure> {
        self.prepare_with(peer, many, context, RegionFlags::INPUT)
    }

    /// Prepares a context for it, with these flags for the arguments.
    ///
    /// # Errors
    /// The device refuses the memory.
    pub(crate) fn prepare_with(
        self,
        peer: &mut Peer,
        many: &mut Many,
        context: u8,
        arguments: RegionFlags,
    ) -> Result<(), Failure> {
        many.set_up_with(peer, context, &self.regions(arguments))?;
        self.write_arguments(peer, many, context)
    }

    /// Starts it on a connection without contexts. Nothing is returned when it ends.
    ///
    /// # Errors
    /// The device refuses the memory, or does not take the start.
    pub(crate) fn start(self, peer: &mut Peer, qp: &mut Qp) -> Result<(), Failure> {
        let asked = self.regions(RegionFlags::INPUT);
        let regions: Vec<_> = (0..).zip(asked).map(|(index, (flags, size))| region(flags, index, size)).collect();
        peer.send_message(qp, &raw_message(1, regions.len() as u8, &regions))?;
        peer.take_regions(qp, &asked.map(|(_, size)| size))?;
        let arguments = qp.regions[0];
        peer.write_bytes(qp, &arguments, 0, &self.arguments())?;
        peer.immediate(qp, Self::START)
    }

    /// Writes the arguments into the first region of a context.
    ///
    /// # Errors
    /// They are not acknowledged.
    pub(crate) fn write_arguments(self, peer: &mut Peer, many: &mut Many, context: u8) -> Result<(), Failure> {
        many.write(peer, context, 0, &self.arguments())
    }
}

impl Peer {
    /// A call that takes long on this device.
    ///
    /// # Errors
    /// [`Failure::NotTried`] if it has none.
    pub(crate) fn long_call(&mut self) -> Result<LongCall, Failure> {
        if let Some(long) = self.long_call {
            return Ok(long);
        }
        let mut call = LongCall { side: LEAST_SIDE, rows: LEAST_SIDE, time: Duration::ZERO };
        loop {
            call.time = self.measure(call)?;
            if call.time >= MEASURED {
                break;
            }
            if call.side >= MOST_SIDE {
                return Err(Failure::NotTried("the device has no function that takes long"));
            }
            let side = call.side * 3 / 2;
            (call.side, call.rows) = (side, side);
        }
        // The machine may have been busy with something else: what was measured may be too much, never too little.
        call.time = call.time.min(self.measure(call)?);
        let factor = (TIME.as_secs_f64() / call.time.as_secs_f64()).ceil().max(1.0) as u32;
        let mut long = call.times(factor);
        long.time = long.time.min(self.measure(long)?);
        self.long_call = Some(long);
        Ok(long)
    }

    /// What a call takes on a connection of its own.
    fn measure(&mut self, call: LongCall) -> Result<Duration, Failure> {
        let mut qp = self.connect(&Terms::default())?;
        let asked = call.regions(RegionFlags::INPUT);
        let regions: Vec<_> = (0..).zip(asked).map(|(index, (flags, size))| region(flags, index, size)).collect();
        self.send_message(&mut qp, &raw_message(1, regions.len() as u8, &regions))?;
        self.take_regions(&mut qp, &asked.map(|(_, size)| size))?;
        let arguments = qp.regions[0];
        self.write_bytes(&mut qp, &arguments, 0, &call.arguments())?;
        let begin = Instant::now();
        let outputs = self.call(&mut qp, LongCall::START)?;
        let time = begin.elapsed();
        self.disconnect(&qp)?;
        match outputs.last().and_then(|output| output.imm) {
            Some(0) => Ok(time),
            _ => Err(Failure::NotTried("the device does not multiply matrices")),
        }
    }
}
