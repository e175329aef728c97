// SPDX-License-Identifier: Apache-2.0
//! Memory of a call that a kernel in Python has until it returns.

use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

/// A region, for as long as its kernel has it. Views of it count: the memory is given back when there are none.
#[pyclass(frozen, module = "nacelle._native")]
pub(crate) struct Lent {
    bytes: NonNull<[u8]>,
    writable: bool,
    open: AtomicBool,
    views: AtomicUsize,
}

// SAFETY: the memory is a byte slice that the kernel's thread has exclusively, and lends until it has seen that no view is left; code of
// Python accesses it under the interpreter's lock, or by its own arrangement.
unsafe impl Send for Lent {}
// SAFETY: as above; the other fields are atomic.
unsafe impl Sync for Lent {}

impl Lent {
    /// # Safety
    /// The slice stays, and is used through the views alone, until [`Self::close`] was called and [`Self::is_viewed`] is false.
    pub(crate) unsafe fn new(bytes: NonNull<[u8]>, writable: bool) -> Self {
        Self { bytes, writable, open: AtomicBool::new(true), views: AtomicUsize::new(0) }
    }

    /// No new view is made from now on.
    pub(crate) fn close(&self) {
        self.open.store(false, Ordering::SeqCst);
    }

    /// Whether there are views.
    pub(crate) fn is_viewed(&self) -> bool {
        self.views.load(Ordering::SeqCst) != 0
    }
}

#[pymethods]
impl Lent {
    /// # Safety
    /// As Python calls it.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let lent = slf.get();
        // Before the check, so that whoever closes it sees this view or is seen.
        lent.views.fetch_add(1, Ordering::SeqCst);
        let made = if lent.open.load(Ordering::SeqCst) {
            let (start, length) = (lent.bytes.cast::<u8>().as_ptr().cast(), lent.bytes.len().cast_signed());
            // SAFETY: Python gives a view to be filled, and `slf` is its owner.
            let filled = unsafe {
                ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, c_int::from(!lent.writable), flags)
            };
            if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
        } else {
            Err(PyBufferError::new_err("the memory was lent for a call of a kernel, which has ended"))
        };
        if made.is_err() {
            lent.views.fetch_sub(1, Ordering::SeqCst);
            // SAFETY: as above; a view that was not made has no owner.
            unsafe { (*view).obj = std::ptr::null_mut() };
        }
        made
    }

    /// # Safety
    /// As Python calls it.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.views.fetch_sub(1, Ordering::SeqCst);
    }
}
