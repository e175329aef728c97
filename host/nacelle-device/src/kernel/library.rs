// SPDX-License-Identifier: Apache-2.0
//! Kernels from shared libraries. `include/nacelle_kernel.h` says what each field means; the structures here are laid out as
//! there.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::sync::Arc;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use nacelle::description::{RegionAccess, RegionInfo};
use nacelle_wire::mrsp::FunctionCode;

use super::description::{Described, Description};
use super::{Call, Cancellation, Failure, Kernel, KernelError};
use crate::loading::reason;

/// The version of the interface (`NACELLE_KERNEL_ABI`).
const ABI: u32 = 1;
/// Most functions, regions or errors that one description has.
const MAX_COUNT: u32 = 128;

#[repr(C)]
struct RawMemory {
    bytes: *mut u8,
    length: usize,
}

#[repr(C)]
struct RawCall {
    size: usize,
    user: u32,
    parameters: u32,
    count: u32,
    regions: *const RawMemory,
    context: *const Cancellation,
    is_cancelled: extern "C" fn(*const Cancellation) -> c_int,
}

#[repr(C)]
struct RawRegion {
    name: *const c_char,
    access: u32,
    repeated: u32,
    doc: *const c_char,
}

#[repr(C)]
struct RawFunction {
    code: u32,
    region_count: u32,
    name: *const c_char,
    doc: *const c_char,
    regions: *const RawRegion,
    run: Option<RawRun>,
}

type RawRun = unsafe extern "C" fn(*const RawCall) -> u32;

#[repr(C)]
struct RawError {
    code: u32,
    meaning: *const c_char,
}

#[repr(C)]
struct RawKernel {
    abi: u32,
    size: u32,
    name: *const c_char,
    major: u16,
    minor: u16,
    function_count: u32,
    error_count: u32,
    functions: *const RawFunction,
    errors: *const RawError,
}

impl Kernel {
    /// The kernel in a shared library, which must keep the interface of `nacelle_kernel.h`. It stays loaded as long as the kernel
    /// or a call of it is there.
    ///
    /// The library becomes part of this process: it must be trusted.
    ///
    /// # Errors
    /// [`KernelError::Library`]; [`KernelError::Description`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, KernelError> {
        let path = path.as_ref();
        let fail = |why: String| KernelError::Library { path: path.to_owned(), why };
        // A name without a slash would be looked for where the system has its libraries.
        let file = path.canonicalize().map_err(|error| fail(error.to_string()))?;
        // SAFETY: what the library does when it is loaded is trusted, as the documentation says.
        let library =
            unsafe { Library::open(Some(&file), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| fail(reason(&error)))?;
        let library = Arc::new(library);
        let image = std::fs::read(&file).map_err(|error| fail(error.to_string()))?;
        // SAFETY: the header declares the function like this.
        let describe =
            unsafe { library.get::<unsafe extern "C" fn() -> *const RawKernel>(b"nacelle_kernel_describe\0") };
        let describe = describe.map_err(|_| fail("it has no function nacelle_kernel_describe".into()))?;
        // SAFETY: it is called once, from one thread, and returns a description that stays as long as the library, or nothing.
        let description = unsafe { describe() };
        // SAFETY: as above; the first two fields are the same in every version.
        let (abi, size) = match unsafe { description.as_ref() } {
            Some(kernel) => (kernel.abi, kernel.size),
            None => return Err(fail("nacelle_kernel_describe returns nothing".into())),
        };
        if abi != ABI {
            return Err(fail(format!("it is made for version {abi} of the interface, and this device has {ABI}")));
        }
        if (size as usize) < size_of::<RawKernel>() {
            return Err(fail(format!("its description has {size} bytes, fewer than {}", size_of::<RawKernel>())));
        }
        // SAFETY: it has all fields of this version, and stays as long as the library, which is held until the end.
        let (description, code) = unsafe { read(&*description) }.map_err(fail)?;
        code.into_iter().try_fold(Self::described(description, &image)?, |kernel, (code, run)| {
            let library = Arc::clone(&library);
            // The description was checked: its codes are codes, and each is there once.
            let code = FunctionCode::new(code).ok_or_else(|| fail(format!("{code} is no code")))?;
            kernel.with(code, move |call| {
                let _loaded = &library;
                run_raw(run, call)
            })
        })
    }
}

/// What a library says of its kernel, and the code of its functions.
///
/// # Safety
/// Every pointer is null, or is what the header says.
unsafe fn read(kernel: &RawKernel) -> Result<(Description, Vec<(u8, RawRun)>), String> {
    // SAFETY: as the caller promises.
    let (name, functions, errors) = unsafe {
        (
            text("its name", kernel.name)?,
            array("functions", kernel.functions, kernel.function_count)?,
            array("errors", kernel.errors, kernel.error_count)?,
        )
    };
    let mut description =
        Description { name, version: (kernel.major, kernel.minor), functions: Vec::new(), errors: Vec::new() };
    for error in errors {
        let code = u8::try_from(error.code).unwrap_or(u8::MAX);
        // SAFETY: as the caller promises.
        description.errors.push((code, unsafe { text("the meaning of an error", error.meaning) }?));
    }
    let mut code = Vec::new();
    for function in functions {
        let number = u8::try_from(function.code)
            .map_err(|_| format!("the code {} of a function is not between 1 and 127", function.code))?;
        let run = function.run.ok_or_else(|| format!("function {number} has no code"))?;
        // SAFETY: as the caller promises.
        description.functions.push(unsafe { read_function(number, function) }?);
        code.push((number, run));
    }
    Ok((description, code))
}

/// # Safety
/// As of [`read`].
unsafe fn read_function(code: u8, function: &RawFunction) -> Result<Described, String> {
    let of = |what: &str| format!("the {what} of function {code}");
    // SAFETY: as the caller promises.
    let (name, doc, raw) = unsafe {
        (
            text(&of("name"), function.name)?,
            text(&of("text"), function.doc)?,
            array(&format!("regions of function {code}"), function.regions, function.region_count)?,
        )
    };
    let mut regions = Vec::new();
    for region in raw {
        let access = match region.access {
            0 => RegionAccess::In,
            1 => RegionAccess::Out,
            2 => RegionAccess::Inout,
            3 => RegionAccess::Internal,
            other => return Err(format!("a region of function {code} has the access {other}, which there is not")),
        };
        // SAFETY: as the caller promises.
        let (name, doc) =
            unsafe { (text(&of("regions' name"), region.name)?, text(&of("regions' text"), region.doc)?) };
        regions.push(RegionInfo::new(&name, access, region.repeated != 0, &doc));
    }
    Ok(Described { code, name, doc, regions })
}

/// # Safety
/// `from` is null, or a text that ends in 0.
unsafe fn text(what: &str, from: *const c_char) -> Result<String, String> {
    if from.is_null() {
        return Err(format!("{what} is missing"));
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { CStr::from_ptr(from) };
    bytes.to_str().map(str::to_owned).map_err(|_| format!("{what} is no text"))
}

/// # Safety
/// `from` is null, or so many of these are there for as long as the result is used.
unsafe fn array<'a, T>(what: &str, from: *const T, count: u32) -> Result<&'a [T], String> {
    match count {
        0 => Ok(&[]),
        _ if count > MAX_COUNT => Err(format!("it has {count} {what}, more than {MAX_COUNT}")),
        _ if from.is_null() => Err(format!("it says that it has {count} {what}, and they are missing")),
        // SAFETY: as the caller promises.
        _ => Ok(unsafe { std::slice::from_raw_parts(from, count as usize) }),
    }
}

extern "C" fn is_cancelled(context: *const Cancellation) -> c_int {
    // SAFETY: the context of a call is borrowed until the function returns.
    unsafe { &*context }.is_cancelled().into()
}

fn run_raw(run: RawRun, call: &mut Call<'_>) -> Result<(), Failure> {
    let parameters = call.parameters.len() as u32;
    let all = call.parameters.iter_mut().chain(&mut call.internal);
    let regions: Vec<RawMemory> =
        all.map(|region| RawMemory { bytes: region.as_mut_ptr(), length: region.len() }).collect();
    let raw = RawCall {
        size: size_of::<RawCall>(),
        user: call.user,
        parameters,
        count: regions.len() as u32,
        regions: regions.as_ptr(),
        context: &raw const call.cancellation,
        is_cancelled,
    };
    // SAFETY: the library is loaded, and the header says that this is the function's type. The regions are borrowed exclusively
    // until it returns.
    match unsafe { run(&raw) } {
        0 => Ok(()),
        code if code == u32::from(Failure::CANCELLED.code()) => Err(Failure::CANCELLED),
        code => Err(u8::try_from(code).ok().and_then(Failure::new).unwrap_or(Failure::UNAVAILABLE)),
    }
}
