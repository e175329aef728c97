// SPDX-License-Identifier: Apache-2.0
//! Adds 1 to every byte of every region.

use super::{Call, Failure};

/// Bytes between two looks at the cancellation.
const BLOCK: usize = 1 << 20;

pub(super) fn run(call: &mut Call<'_>) -> Result<(), Failure> {
    for region in call.parameters.iter_mut().chain(&mut call.internal) {
        for block in region.chunks_mut(BLOCK) {
            call.cancellation.check()?;
            block.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
        }
    }
    Ok(())
}
