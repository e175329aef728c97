// SPDX-License-Identifier: Apache-2.0
//! A gate at which kernels wait until the test lets them go on.

use std::sync::{Arc, Condvar, Mutex};

/// Opens for so many kernels.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<usize>, Condvar)>);

impl Gate {
    /// Lets `count` kernels go on.
    pub(crate) fn open(&self, count: usize) {
        *self.0.0.lock().unwrap() += count;
        self.0.1.notify_all();
    }

    /// Waits until the gate is open, and passes it.
    pub(crate) fn pass(&self) {
        let mut open = self.0.1.wait_while(self.0.0.lock().unwrap(), |open| *open == 0).unwrap();
        *open -= 1;
    }

    /// Whether it can be passed: then it is.
    pub(crate) fn passes(&self) -> bool {
        let mut open = self.0.0.lock().unwrap();
        let passes = *open > 0;
        *open -= usize::from(passes);
        passes
    }
}
