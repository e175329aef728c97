// SPDX-License-Identifier: Apache-2.0
//! Values of the library behind Python objects: closed once, used by one thread at a time, and by one process.

use std::mem;
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::error::Failure;

/// A value, until it is taken out.
pub(crate) struct Handle<T> {
    what: &'static str,
    process: u32,
    value: Mutex<Option<T>>,
}

impl<T> Handle<T> {
    /// `what` is its name in errors.
    pub(crate) fn new(what: &'static str, value: T) -> Self {
        Self { what, process: process::id(), value: Mutex::new(Some(value)) }
    }

    /// Uses the value.
    ///
    /// # Errors
    /// If it was closed, if another thread uses it, and in a process that was forked since: its sockets are those of the process
    /// that opened it, and threads that held its locks are not here.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> Result<R, Failure>) -> Result<R, Failure> {
        f(self.lock()?.as_mut().ok_or_else(|| self.closed())?)
    }

    /// Takes the value out. `None` if that was done.
    ///
    /// # Errors
    /// As [`Self::with`].
    pub(crate) fn take(&self) -> Result<Option<T>, Failure> {
        Ok(self.lock()?.take())
    }

    fn closed(&self) -> Failure {
        let text = format!("the {} was closed", self.what);
        Failure::Edge { class: "ClosedHandle", text, hint: "use it before it is closed, or make another" }
    }

    /// Never waits.
    fn lock(&self) -> Result<MutexGuard<'_, Option<T>>, Failure> {
        if self.is_foreign() {
            let text = format!("the {} belongs to the process that forked this one", self.what);
            let hint = "connect again in this process, or start it by the method 'spawn'";
            return Err(Failure::Edge { class: "Forked", text, hint });
        }
        match self.value.try_lock() {
            Ok(value) => Ok(value),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let text = format!("another thread uses the {}", self.what);
                Err(Failure::Edge { class: "Busy", text, hint: "give each thread a call of its own, or wait for it" })
            }
        }
    }

    fn is_foreign(&self) -> bool {
        self.process != process::id()
    }
}

impl<T> Drop for Handle<T> {
    /// In a forked process nothing is done: it would end the connections of the process that opened them.
    fn drop(&mut self) {
        if self.is_foreign() {
            mem::forget(self.value.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}
