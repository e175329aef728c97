// SPDX-License-Identifier: Apache-2.0
//! Transfers: looked at, waited for, closed.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use nacelle::memory::Shared;
use nacelle::{Error, Transfer};

use crate::edge::{Failure, guard};
use crate::handle::{TransferHandle, registry};
use crate::notifier::{Data, Notifier};
use crate::outcome::{self, Outcome, State};
use crate::sized::{self, Growing};
use crate::text;

/// `nacelle_transfer_status`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct TransferStatus {
    size: usize,
    state: u32,
    owner_result: u32,
}
// SAFETY: numbers only, without padding.
unsafe impl Growing for TransferStatus {}

/// A transfer that was begun.
pub(crate) struct Moving {
    transfer: Transfer,
    /// The program's bytes; none of a notice.
    bytes: Option<Shared>,
    notifier: Option<Arc<Notifier>>,
    outcome: Outcome,
}

impl Moving {
    pub(crate) fn new(transfer: Transfer, bytes: Option<Shared>) -> Self {
        Self { transfer, bytes, notifier: None, outcome: Outcome::running() }
    }

    /// Waits for its end, for `patience` at most.
    fn wait(&mut self, patience: Option<Duration>) -> Result<(), Failure> {
        let ended = self.look(|it| outcome::wait(it, patience, Transfer::wait_until, Transfer::wait))?;
        outcome::waited(ended, "transfer", "wait again, or close it")
    }

    /// Its outcome, which is asked for by `ask` if it is not known yet.
    fn look(&mut self, ask: impl FnOnce(&mut Transfer) -> Result<bool, Error>) -> Result<bool, Failure> {
        let transfer = &mut self.transfer;
        self.outcome.look(|| (ask(transfer), !transfer.has_ended()))
    }

    /// Runs `callback` once when it has ended, in place of the one before.
    fn on_finish(&mut self, callback: impl Fn() + Send + Sync + 'static) {
        let notifier = Arc::new(Notifier::new(callback));
        let runner = Arc::clone(&notifier);
        if let Some(before) = self.notifier.replace(notifier) {
            before.close();
        }
        self.transfer.on_end(move || runner.run());
    }

    /// Waits for its end, if it has not been seen. After this nothing accesses the bytes any more, and no callback runs, whatever is
    /// returned.
    fn close(mut self) -> Result<(), Failure> {
        let outcome = if matches!(self.outcome.state, State::Running) { self.wait(None) } else { Ok(()) };
        // Waits for the access that is under way, if it has not ended.
        drop(self.bytes);
        if let Some(notifier) = self.notifier {
            notifier.close();
        }
        outcome
    }
}

/// See `nacelle.h`.
///
/// # Safety
/// `done` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_transfer_test(transfer: TransferHandle, done: *mut bool) -> u32 {
    guard(|| {
        text::place(done, "done")?;
        let tested = registry().transfers.with(transfer.id, |moving| moving.look(Transfer::test));
        // SAFETY: as this function. A loop that looks at it alone ends after an error, too.
        unsafe { done.write(!matches!(tested, Ok(false))) };
        tested.map(|_| ())
    })
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_transfer_wait(transfer: TransferHandle, timeout_ms: i64) -> u32 {
    let patience = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
    guard(|| registry().transfers.with(transfer.id, |moving| moving.wait(patience)))
}

/// See `nacelle.h`.
///
/// # Safety
/// `callback` may be called with `data` by any thread until the transfer was closed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_transfer_on_finish(
    transfer: TransferHandle,
    callback: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
) -> u32 {
    guard(|| {
        let callback = callback.ok_or_else(|| Failure::invalid("callback is NULL"))?;
        let data = Data(data);
        registry().transfers.with(transfer.id, |moving| {
            // SAFETY: as this function.
            moving.on_finish(move || unsafe { callback(data.get()) });
            Ok(())
        })
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// `status` begins with its size and may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_transfer_get_status(
    transfer: TransferHandle,
    status: *mut TransferStatus,
) -> u32 {
    guard(|| {
        let now = registry().transfers.with(transfer.id, |moving| {
            let Outcome { state, result } = &moving.outcome;
            Ok(TransferStatus { size: 0, state: state.number(), owner_result: *result })
        })?;
        // SAFETY: as this function.
        unsafe { sized::write(status, now, "nacelle_transfer_status") }
    })
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_transfer_close(transfer: TransferHandle) -> u32 {
    guard(|| registry().transfers.take(transfer.id)?.close())
}
