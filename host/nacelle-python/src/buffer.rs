// SPDX-License-Identifier: Apache-2.0
//! Memory of Python objects, used in place: by the buffer protocol, or by DLPack.
//!
//! The owner of a buffer keeps it in its place for as long as it is exported: it cannot be freed or resized meanwhile.

use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

use nacelle::memory::{Extent, StableBytes};
use pyo3::buffer::{ElementType, PyUntypedBuffer};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::dlpack::{self, Tensor};
use crate::error::Failure;

/// Whose memory it is.
enum Source {
    Exported(PyUntypedBuffer),
    Tensor(Tensor),
}

impl Source {
    fn of(object: &Bound<'_, PyAny>) -> Result<Self, Failure> {
        // SAFETY: the object lives.
        if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0 {
            return Ok(Self::Exported(PyUntypedBuffer::get(object)?));
        }
        if let Some(tensor) = dlpack::take(object)? {
            return Ok(Self::Tensor(tensor));
        }
        let text = format!("{} has neither the buffer protocol nor __dlpack__", object.get_type().name()?);
        Err(PyTypeError::new_err(text).into())
    }

    fn bytes(&self) -> NonNull<[u8]> {
        match self {
            Self::Exported(buffer) => {
                let start = NonNull::new(buffer.buf_ptr().cast()).unwrap_or(NonNull::dangling());
                NonNull::slice_from_raw_parts(start, buffer.len_bytes())
            }
            Self::Tensor(tensor) => tensor.bytes,
        }
    }

    fn is_writable(&self) -> bool {
        match self {
            Self::Exported(buffer) => !buffer.readonly(),
            Self::Tensor(tensor) => tensor.writable,
        }
    }

    fn is_contiguous(&self) -> bool {
        match self {
            Self::Exported(buffer) => buffer.is_c_contiguous(),
            Self::Tensor(tensor) => tensor.contiguous,
        }
    }

    fn shape(&self) -> Vec<usize> {
        match self {
            Self::Exported(buffer) => buffer.shape().to_vec(),
            Self::Tensor(tensor) => tensor.shape.clone(),
        }
    }

    fn dtype(&self) -> Option<String> {
        let buffer = match self {
            Self::Exported(buffer) => buffer,
            Self::Tensor(tensor) => return tensor.dtype.clone(),
        };
        if matches!(buffer.format().to_bytes().first(), Some(b'>' | b'!')) {
            return None;
        }
        match ElementType::from_format(buffer.format()) {
            ElementType::SignedInteger { bytes } => Some(format!("int{}", bytes * 8)),
            ElementType::UnsignedInteger { bytes } => Some(format!("uint{}", bytes * 8)),
            ElementType::Float { bytes } => Some(format!("float{}", bytes * 8)),
            ElementType::Bool => Some("bool".into()),
            ElementType::Unknown => None,
        }
    }
}

/// Memory that calls have given back.
struct GivenBack {
    _source: Source,
    before: *mut GivenBack,
}

/// The last of it, until a thread with the interpreter's lock releases it: whoever drops it may hold a lock of the library that such a
/// thread waits for. A list without a lock, which a fork cannot leave locked.
static GIVEN_BACK: AtomicPtr<GivenBack> = AtomicPtr::new(null_mut());

fn give_back(source: Source) {
    let last = Box::into_raw(Box::new(GivenBack { _source: source, before: null_mut() }));
    let mut before = GIVEN_BACK.load(Ordering::Relaxed);
    loop {
        // SAFETY: the box that was just made, which no other thread knows yet.
        unsafe { (*last).before = before };
        match GIVEN_BACK.compare_exchange_weak(before, last, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => before = other,
        }
    }
}

/// Releases the memory that calls have given back.
pub(crate) fn release(_py: Python<'_>) {
    let mut last = GIVEN_BACK.swap(null_mut(), Ordering::Acquire);
    while !last.is_null() {
        // SAFETY: a box of `give_back`, which the exchange has taken from all other threads.
        let given = unsafe { Box::from_raw(last) };
        last = given.before;
        // Releasing may run code of Python, which may come here again.
        drop(given);
    }
}

/// The memory of an object, as a region has it.
pub(crate) struct Bytes {
    /// `None` when it is dropped.
    source: Option<Source>,
    bytes: NonNull<[u8]>,
    writable: bool,
}

// SAFETY: exported memory and that of tensors may be used by any thread.
unsafe impl Send for Bytes {}
// SAFETY: an object keeps exported memory in its place, and so does the owner of a tensor, until the value is dropped. Code of Python
// may change the bytes while a call runs, as C programs may; nothing here makes a reference to them.
unsafe impl StableBytes for Bytes {
    fn bytes(&self) -> NonNull<[u8]> {
        self.bytes
    }

    fn is_writable(&self) -> bool {
        self.writable
    }
}

impl Bytes {
    /// The memory of an object; `written` if a device writes it.
    ///
    /// # Errors
    /// If it has none, it is not C-contiguous, or it is to be written and read-only.
    pub(crate) fn of(object: &Bound<'_, PyAny>, written: bool) -> Result<Self, Failure> {
        let source = Source::of(object)?;
        let kind = object.get_type().name()?;
        if !source.is_contiguous() {
            let text = format!("the {kind} is not C-contiguous");
            return Err(Failure::invalid(text, "copy it, for example by numpy.ascontiguousarray or .contiguous()"));
        }
        if written && !source.is_writable() {
            let text = format!("the device writes it, and the {kind} is read-only");
            return Err(Failure::invalid(text, "give a bytearray, or an array that can be written"));
        }
        Ok(Self { bytes: source.bytes(), writable: written, source: Some(source) })
    }

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Its addresses, if it has any.
    pub(crate) fn extent(&self) -> Option<Extent> {
        let first = self.bytes.cast::<u8>().as_ptr().addr();
        let last = first + self.len().checked_sub(1)?;
        Some(Extent { first, last, written: self.writable })
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Some(source) = self.source.take() {
            give_back(source);
        }
    }
}

/// What an object with memory is: size, shape, type of its elements.
#[pyclass(frozen, module = "nacelle._native")]
pub(crate) struct Buffer {
    source: Source,
}

#[pymethods]
impl Buffer {
    #[new]
    fn new(object: &Bound<'_, PyAny>) -> Result<Self, Failure> {
        Ok(Self { source: Source::of(object)? })
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.source.bytes().len()
    }

    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.source.shape()
    }

    #[getter]
    fn dtype(&self) -> Option<String> {
        self.source.dtype()
    }

    #[getter]
    fn readonly(&self) -> bool {
        !self.source.is_writable()
    }

    #[getter]
    fn contiguous(&self) -> bool {
        self.source.is_contiguous()
    }

    #[getter]
    fn address(&self) -> usize {
        self.source.bytes().cast::<u8>().as_ptr().addr()
    }
}
