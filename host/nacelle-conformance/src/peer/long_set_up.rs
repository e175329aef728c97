// SPDX-License-Identifier: Apache-2.0
//! Long set-ups: 64-bit sizes, deadline, chain (docs/reference/calls.md).

use super::{Many, Memory, OWN_RKEY, Peer};
use crate::{Failure, failure::ensure};
use nacelle_wire::{
    calls::{self, LongGiven, LongRegion, SetUp, SetUpAnswer, Step},
    mrsp::{FunctionCode, RegionFlags},
};

impl From<&LongGiven> for Memory {
    fn from(region: &LongGiven) -> Self {
        Self { addr: region.address(), rkey: region.rkey() }
    }
}

/// A step of a chain.
pub(crate) fn step(function: u8, first: u8, count: u8) -> Step {
    Step::new(FunctionCode::new(function).expect("the rules name functions from 1 to 127"), first, count, 0)
}

/// Region `index` of a long set-up of a context.
pub(crate) fn long_region(context: u8, index: usize, flags: RegionFlags, size: u64) -> LongRegion {
    LongRegion::parameter(flags, Many::region(context, index, flags, 0).address(), OWN_RKEY, size)
}

/// The message.
pub(crate) fn long_message(deadline_ms: u32, steps: &[Step], regions: &[LongRegion]) -> Result<Vec<u8>, Failure> {
    let mut buffer = vec![0; calls::MAX_MESSAGE];
    let length = SetUp { deadline_ms, steps, regions }.write(&mut buffer)?;
    buffer.truncate(length);
    Ok(buffer)
}

impl Many {
    /// Has regions with these flags and sizes on a context, by a long set-up.
    ///
    /// # Errors
    /// The device refuses, or answers something else.
    pub(crate) fn set_up_long(
        &mut self,
        peer: &mut Peer,
        context: u8,
        deadline_ms: u32,
        steps: &[Step],
        asked: &[(RegionFlags, u32)],
    ) -> Result<(), Failure> {
        let regions: Vec<LongRegion> = asked
            .iter()
            .enumerate()
            .map(|(index, &(flags, size))| long_region(context, index, flags, size.into()))
            .collect();
        let answer = self.exchange(peer, context, &long_message(deadline_ms, steps, &regions)?)?;
        let SetUpAnswer(given) = SetUpAnswer::parse(&answer)?;
        let wanted = asked.iter().filter(|(flags, _)| !flags.contains(RegionFlags::INTERNAL));
        ensure!(
            given.iter().map(LongGiven::size).eq(wanted.map(|(_, size)| u64::from(*size))),
            "the answer to a long set-up has {given:?}"
        );
        self.regions[usize::from(context)] = given.iter().map(Memory::from).collect();
        Ok(())
    }
}
