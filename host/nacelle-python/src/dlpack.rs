// SPDX-License-Identifier: Apache-2.0
//! Tensors by [DLPack](https://dmlc.github.io/dlpack), those in the memory of the CPU.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::slice;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::Failure;

/// `DLDevice`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Device {
    kind: i32,
    _id: i32,
}

/// `DLDataType`.
#[derive(Clone, Copy)]
#[repr(C)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Raw {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: DataType,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Managed {
    tensor: Raw,
    _context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    major: u32,
    _minor: u32,
    _context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: Raw,
}

/// `kDLCPU`.
const CPU: i32 = 1;
/// `DLPACK_FLAG_BITMASK_READ_ONLY`.
const READ_ONLY: u64 = 1;
/// The version of the structures here.
const MAJOR: u32 = 1;

/// Whose tensor it is.
enum Owner {
    Managed(NonNull<Managed>),
    Versioned(NonNull<Versioned>),
}

/// A tensor that this process may use until the value is dropped.
pub(crate) struct Tensor {
    owner: Owner,
    pub(crate) bytes: NonNull<[u8]>,
    pub(crate) writable: bool,
    pub(crate) contiguous: bool,
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: Option<String>,
}

// SAFETY: a tensor's memory is that of the process, and its deleter may be called by any thread (it takes the interpreter's lock
// if it needs it).
unsafe impl Send for Tensor {}
// SAFETY: no method uses it but to read numbers.
unsafe impl Sync for Tensor {}

impl Drop for Tensor {
    fn drop(&mut self) {
        match self.owner {
            Owner::Managed(managed) => {
                // SAFETY: it is this value's alone, since its capsule was marked as used, and is deleted once.
                unsafe {
                    if let Some(delete) = managed.as_ref().deleter {
                        delete(managed.as_ptr());
                    }
                }
            }
            Owner::Versioned(managed) => {
                // SAFETY: as above.
                unsafe {
                    if let Some(delete) = managed.as_ref().deleter {
                        delete(managed.as_ptr());
                    }
                }
            }
        }
    }
}

/// Takes the tensor of an object that has `__dlpack__`. `None` if it has not.
///
/// # Errors
/// If the tensor is not in the memory of the CPU, or its owner does not give it.
pub(crate) fn take(object: &Bound<'_, PyAny>) -> Result<Option<Tensor>, Failure> {
    if !object.hasattr("__dlpack__")? || !object.hasattr("__dlpack_device__")? {
        return Ok(None);
    }
    let (kind, _id): (i32, i64) = object.call_method0("__dlpack_device__")?.extract()?;
    if kind != CPU {
        let text = format!("the tensor is on a device of DLPack's kind {kind}, not in the memory of the CPU");
        return Err(Failure::invalid(text, "copy it to the CPU first"));
    }
    let wanted = PyDict::new(object.py());
    wanted.set_item("max_version", (MAJOR, 0))?;
    let capsule = match object.call_method("__dlpack__", (), Some(&wanted)) {
        // One from before version 1.
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => object.call_method0("__dlpack__")?,
        other => other?,
    };
    Tensor::of(&capsule).map(Some)
}

/// What a capsule of this name points to, from now on that of the caller: the capsule gets the name of one that was used.
fn claim<T>(capsule: &Bound<'_, PyAny>, name: &CStr, used: &'static CStr) -> Result<Option<NonNull<T>>, Failure> {
    // SAFETY: the object lives, and its type and name are checked before its pointer is taken; `used` is static, as a name must be.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 0 {
            return Ok(None);
        }
        let pointer = NonNull::new(ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()));
        if pointer.is_none() || ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) != 0 {
            return Err(PyErr::fetch(capsule.py()).into());
        }
        Ok(pointer.map(NonNull::cast))
    }
}

impl Tensor {
    fn of(capsule: &Bound<'_, PyAny>) -> Result<Self, Failure> {
        if let Some(managed) = claim::<Versioned>(capsule, c"dltensor_versioned", c"used_dltensor_versioned")? {
            // SAFETY: a capsule of this name points to this structure, whose first fields are those of every version.
            let (major, flags, raw) = unsafe {
                let managed = managed.as_ref();
                (managed.major, managed.flags, managed.tensor)
            };
            // From here on the tensor is deleted whatever happens.
            let owned = Self::empty(Owner::Versioned(managed));
            if major != MAJOR {
                return Err(
                    PyValueError::new_err(format!("a tensor of DLPack {major}, which this is too old for")).into()
                );
            }
            // SAFETY: of a structure of this version.
            return unsafe { owned.fill(raw, flags & READ_ONLY == 0) };
        }
        if let Some(managed) = claim::<Managed>(capsule, c"dltensor", c"used_dltensor")? {
            // SAFETY: a capsule of this name points to this structure.
            let raw = unsafe { managed.as_ref().tensor };
            // SAFETY: as above.
            return unsafe { Self::empty(Owner::Managed(managed)).fill(raw, true) };
        }
        Err(PyTypeError::new_err("__dlpack__ has returned no capsule with a tensor, or one that was used").into())
    }

    fn empty(owner: Owner) -> Self {
        let bytes = NonNull::slice_from_raw_parts(NonNull::dangling(), 0);
        Self { owner, bytes, writable: false, contiguous: true, shape: Vec::new(), dtype: None }
    }

    /// # Safety
    /// The fields of `raw` are those of a tensor whose owner is `self.owner`.
    unsafe fn fill(mut self, raw: Raw, writable: bool) -> Result<Self, Failure> {
        let wrong =
            || Failure::invalid("the tensor's shape or data is none", "report it to the library that made the tensor");
        let ndim = usize::try_from(raw.ndim).map_err(|_| wrong())?;
        let list = |pointer: *const i64| match (ndim, pointer.is_null()) {
            (0, _) | (_, true) => &[],
            // SAFETY: shape and strides have `ndim` numbers, unless they are null.
            (_, false) => unsafe { slice::from_raw_parts(pointer, ndim) },
        };
        let (shape, strides) = (list(raw.shape), list(raw.strides));
        self.shape = shape.iter().map(|side| usize::try_from(*side)).collect::<Result<_, _>>().map_err(|_| wrong())?;
        if self.shape.len() != ndim || raw.device.kind != CPU {
            return Err(wrong());
        }
        let element = usize::from(raw.dtype.bits) * usize::from(raw.dtype.lanes) / 8;
        let length = self.shape.iter().try_fold(element, |length, side| length.checked_mul(*side));
        let length = length.filter(|length| isize::try_from(*length).is_ok()).ok_or_else(wrong)?;
        let mut packed = 1;
        for (side, stride) in shape.iter().zip(strides).rev() {
            self.contiguous &= *side == 1 || *stride == packed || length == 0;
            packed *= side;
        }
        self.writable = writable;
        self.dtype = dtype(raw.dtype);
        if length > 0 {
            let start = NonNull::new(raw.data.cast::<u8>()).ok_or_else(wrong)?;
            let offset = usize::try_from(raw.byte_offset).map_err(|_| wrong())?;
            // SAFETY: the first element is at this offset in the tensor's memory.
            self.bytes = NonNull::slice_from_raw_parts(unsafe { start.add(offset) }, length);
        }
        Ok(self)
    }
}

/// The name of a type of elements.
fn dtype(raw: DataType) -> Option<String> {
    let kind = match raw.code {
        0 => "int",
        1 => "uint",
        2 => "float",
        4 => "bfloat",
        5 => "complex",
        6 => return (raw.lanes == 1).then(|| "bool".into()),
        _ => return None,
    };
    (raw.lanes == 1).then(|| format!("{kind}{}", raw.bits))
}
