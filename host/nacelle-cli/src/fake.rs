// SPDX-License-Identifier: Apache-2.0
//! For tests: what is known of a device that is not there.

use nacelle_manage::Registers;
use nacelle_manage::histograms::Histograms;

/// Registers that all read as the frequency of the device's clock.
struct Clock(u32);

impl Registers for Clock {
    type Error = ();

    fn read(&mut self, _: u32) -> Result<u32, ()> {
        Ok(self.0)
    }

    fn write(&mut self, _: u32, _: u32) -> Result<(), ()> {
        Err(())
    }
}

/// The histograms of a device with a clock of so many Hz.
pub(crate) fn histograms(clock_hz: u32) -> Histograms {
    Histograms::at(&mut Clock(clock_hz), 0).unwrap()
}
