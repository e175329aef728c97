// SPDX-License-Identifier: Apache-2.0
//! Region set-up (MRSP).

use super::{Memory, OWN_ADDR, OWN_RKEY, Peer, Qp, Terms, raw_message};
use crate::Failure;
use nacelle_wire::{
    RemoteAddr,
    mrsp::{self, ARegion, AarRegion, RegionFlags},
};
impl Peer {
    /// Requests regions of these sizes, each input and output, and stores the device's regions in `qp.regions`.
    ///
    /// # Errors
    /// The device refuses, or answers something else.
    pub(crate) fn set_up_regions(&mut self, qp: &mut Qp, sizes: &[u32]) -> Result<(), Failure> {
        self.send_message(qp, &region_request(sizes))?;
        self.take_regions(qp, sizes)
    }

    /// Takes the answer to a request for regions of these sizes.
    ///
    /// # Errors
    /// The device refuses, or answers something else.
    pub(crate) fn take_regions(&mut self, qp: &mut Qp, sizes: &[u32]) -> Result<(), Failure> {
        let answer = self.receive_message(qp)?;
        match mrsp::Message::parse(&answer)? {
            mrsp::Message::A(given) if given.len() == sizes.len() => {
                qp.regions = given.iter().map(Memory::from).collect();
                Ok(())
            }
            other => Err(Failure::Content(format!("{} regions were requested, the answer is {other:?}", sizes.len()))),
        }
    }

    /// Connects, and has regions of these sizes.
    ///
    /// # Errors
    /// The device refuses or does not answer.
    pub(crate) fn connect_with(&mut self, terms: &Terms, sizes: &[u32]) -> Result<Qp, Failure> {
        let mut qp = self.connect(terms)?;
        self.set_up_regions(&mut qp, sizes)?;
        Ok(qp)
    }
}

/// The message that requests regions of these sizes, each input and output.
pub(crate) fn region_request(sizes: &[u32]) -> Vec<u8> {
    let regions: Vec<AarRegion> =
        sizes.iter().enumerate().map(|(i, &size)| region(RegionFlags::INPUT | RegionFlags::OUTPUT, i, size)).collect();
    raw_message(1, regions.len() as u8, &regions)
}

/// Region `index` of a request.
pub(crate) fn region(flags: RegionFlags, index: usize, size: u32) -> AarRegion {
    AarRegion::parameter(flags, 0, own_address(index), OWN_RKEY, size)
}

/// The address that the suite announces for region `index`.
pub(crate) fn own_address(index: usize) -> RemoteAddr {
    RemoteAddr(OWN_ADDR + ((index as u64) << 32))
}

impl From<&ARegion> for Memory {
    fn from(region: &ARegion) -> Self {
        Self { addr: region.address(), rkey: region.rkey() }
    }
}
