// SPDX-License-Identifier: Apache-2.0
//! What a function gets, and how it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nacelle_wire::mrsp::ReturnCode;
use smallvec::SmallVec;

/// Regions of a call. With more than any set-up may have they are allocated.
pub type Regions<'a> = SmallVec<[&'a mut [u8]; 32]>;

/// A call, as the function sees it that works for it.
///
/// The regions are the caller's memory itself: nothing is copied. From the start of the function to its return they are its
/// alone; what the caller asks of them meanwhile waits. On a [`crate::SoftEngine`] each begins at a multiple of 64.
#[derive(Debug)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The regions that are parameters, in index order. Their number and lengths are the caller's choice: check them.
    pub parameters: Regions<'a>,
    /// The internal ones: scratch memory, which the caller never sees. Zero at the first call, then as the last call left it.
    pub internal: Regions<'a>,
    /// The 24 bits of the immediate that are the function's: a number below 2^24.
    pub user: u32,
    /// Whether the result is still needed.
    pub cancellation: Cancellation,
}

impl<'a> Call<'a> {
    /// A call with these regions, for tests of a kernel without a device.
    #[must_use]
    pub fn new(parameters: Vec<&'a mut [u8]>, internal: Vec<&'a mut [u8]>, user: u32) -> Self {
        let [parameters, internal] = [parameters, internal].map(SmallVec::from_vec);
        Self { parameters, internal, user: user & 0xff_ffff, cancellation: Cancellation::default() }
    }
}

/// Says when the result of a call is no longer needed: its time has passed, or its caller has gone. Clones say the same, also
/// in other threads.
#[derive(Debug, Clone)]
pub struct Cancellation(Option<Arc<AtomicBool>>);

impl Default for Cancellation {
    fn default() -> Self {
        Self(Some(Arc::default()))
    }
}

impl Cancellation {
    /// That of a call which is over before anybody could cancel it.
    pub(crate) const NEVER: Self = Self(None);

    /// Whether the function should return now, with whatever result.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
    }

    /// Ends a function that asks every now and then, by `?`.
    ///
    /// # Errors
    /// [`Failure::CANCELLED`] if the function should return now.
    pub fn check(&self) -> Result<(), Failure> {
        if self.is_cancelled() { Err(Failure::CANCELLED) } else { Ok(()) }
    }

    /// The result is no longer needed.
    pub fn cancel(&self) {
        if let Some(cancelled) = &self.0 {
            cancelled.store(true, Ordering::Relaxed);
        }
    }
}

/// The result code of a function that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure(u8);

impl Failure {
    /// Arguments are wrong.
    pub const BAD_ARGUMENTS: Self = Self(0x10);
    /// A region is smaller than the arguments need.
    pub const REGION_TOO_SMALL: Self = Self(0x11);
    /// Memory cannot be used.
    pub const MEMORY_ERROR: Self = Self(0x12);
    /// The function has returned because it was cancelled.
    pub const CANCELLED: Self = Self(ReturnCode::KERNEL_TIMEOUT.get() as u8);
    /// Nobody has run: what was to run is gone, has panicked, or its result is none that a kernel may give.
    pub const UNAVAILABLE: Self = Self(ReturnCode::SOCKET_UNAVAILABLE.get() as u8);

    /// A code of the kernel's own: 0x10 to 0x7f.
    #[must_use]
    pub const fn new(code: u8) -> Option<Self> {
        if code >= 0x10 && code <= 0x7f { Some(Self(code)) } else { None }
    }

    /// The code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.0
    }
}
