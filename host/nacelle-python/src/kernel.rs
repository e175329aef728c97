// SPDX-License-Identifier: Apache-2.0
//! Kernels of the software device whose functions are written in Python.

use std::ptr::NonNull;
use std::thread;
use std::time::Duration;

use nacelle_device::{Call, Cancellation, Failure as KernelFailure, Kernel};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::error::Failure;
use crate::lent::Lent;
use crate::region::function;

/// How often a kernel whose function kept views looks whether they are gone.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A call as a function in Python sees it.
#[pyclass(frozen, module = "nacelle._native")]
pub(crate) struct KernelCall {
    /// The 24 bits of the start that are the function's.
    #[pyo3(get)]
    user: u32,
    cancellation: Cancellation,
}

#[pymethods]
impl KernelCall {
    /// Whether the result is no longer needed.
    #[getter]
    fn cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// Raises `KernelCancelled` if it is not.
    fn check(&self) -> Result<(), Failure> {
        if !self.cancellation.is_cancelled() {
            return Ok(());
        }
        let hint = "let it pass";
        Err(Failure::Edge { class: "KernelCancelled", text: "the result is no longer needed".into(), hint })
    }
}

/// A kernel with this description, whose function with this code is `run(parameters, internal, call)`: it returns a result code.
pub(crate) fn kernel(description: &str, code: i64, run: Py<PyAny>) -> Result<Kernel, Failure> {
    let failed = |error: nacelle_device::KernelError| Failure::from(nacelle_device::DeviceError::from(error));
    let kernel = Kernel::from_toml(description).map_err(failed)?;
    kernel.with(function(code)?, move |call| run_in_python(&run, call)).map_err(failed)
}

/// Regions as objects with the buffer protocol.
///
/// # Safety
/// As [`Lent::new`], for each slice.
pub(crate) unsafe fn lend(py: Python<'_>, regions: &mut [&mut [u8]]) -> PyResult<Vec<Py<Lent>>> {
    // SAFETY: as this function.
    regions.iter_mut().map(|region| Py::new(py, unsafe { Lent::new(NonNull::from(&mut **region), true) })).collect()
}

fn run_in_python(run: &Py<PyAny>, call: &mut Call<'_>) -> Result<(), KernelFailure> {
    let attached = Python::try_attach(|py| {
        let context = KernelCall { user: call.user, cancellation: call.cancellation.clone() };
        // SAFETY: the slices are this call's until this function returns, which is not before `give_back` has seen that no view is
        // left; they are not used meanwhile.
        let lent = unsafe { (lend(py, &mut call.parameters), lend(py, &mut call.internal)) };
        let (Ok(parameters), Ok(internal)) = lent else { return (Err(KernelFailure::MEMORY_ERROR), Vec::new()) };
        let ran = || -> PyResult<u8> {
            let (parameters, internal) = (PyList::new(py, &parameters)?, PyList::new(py, &internal)?);
            run.call1(py, (parameters, internal, context))?.extract(py)
        };
        let outcome = match ran() {
            Ok(0) => Ok(()),
            Ok(code) => Err(KernelFailure::new(code).unwrap_or(KernelFailure::CANCELLED)),
            // The package turns every exception into a code: this one came from outside, to end the kernel.
            Err(error) => {
                drop(error);
                Err(KernelFailure::CANCELLED)
            }
        };
        (outcome, parameters.into_iter().chain(internal).collect())
    });
    // Without an interpreter, which is ending, nothing was lent.
    let Some((outcome, lent)) = attached else { return Err(KernelFailure::CANCELLED) };
    give_back(&lent, run);
    outcome
}

/// Returns when no view of the memory is left. A function that has kept one is told so, and keeps its caller waiting until its time is over,
/// as every function that does not return; without the interpreter's lock.
pub(crate) fn give_back(lent: &[Py<Lent>], run: &Py<PyAny>) {
    lent.iter().for_each(|lent| lent.get().close());
    let viewed = || lent.iter().any(|lent| lent.get().is_viewed());
    if !viewed() {
        return;
    }
    let collected = Python::try_attach(|py| {
        let collected = py.import("gc").and_then(|gc| gc.call_method0("collect")).map(drop);
        let told = || if viewed() { run.call_method0(py, "kept_views").map(drop) } else { Ok(()) };
        collected.and_then(|()| told())
    });
    if let Some(Err(error)) = collected {
        let _interpreter_gone = Python::try_attach(|py| error.write_unraisable(py, None));
    }
    while viewed() {
        thread::sleep(LOOK_EVERY);
    }
}
