// SPDX-License-Identifier: Apache-2.0
//! Callbacks of the program that are not run any more once what they belong to was closed.

use std::ffi::c_void;
use std::time::Duration;

use nacelle_device::Gate;

/// What a program gives with its callback.
#[derive(Clone, Copy)]
pub(crate) struct Data(pub(crate) *mut c_void);

// SAFETY: the program promises that its callback may be called with it by any thread.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl Data {
    pub(crate) fn get(self) -> *mut c_void {
        self.0
    }
}

/// A callback, and whether it may be run.
pub(crate) struct Notifier {
    callback: Box<dyn Fn() + Send + Sync>,
    gate: Gate,
}

impl Notifier {
    pub(crate) fn new(callback: impl Fn() + Send + Sync + 'static) -> Self {
        Self { callback: Box::new(callback), gate: Gate::default() }
    }

    /// Runs it, unless it was closed.
    pub(crate) fn run(&self) {
        self.gate.run(&self.callback);
    }

    /// Waits for the other threads that run it; none runs it any more after this.
    pub(crate) fn close(&self) {
        self.gate.close(Duration::MAX);
    }
}
