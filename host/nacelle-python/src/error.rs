// SPDX-License-Identifier: Apache-2.0
//! Errors as exceptions: one class of `nacelle._errors` for each kind.

use nacelle::{Error, ErrorCode};
use nacelle_device::DeviceError;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Why something failed.
pub(crate) enum Failure {
    /// The library says so.
    Library(Error),
    /// A device or an acceptor of this process says so.
    Device(DeviceError),
    /// It is wrong at the edge to Python.
    Edge {
        /// The class of the exception.
        class: &'static str,
        /// What has happened.
        text: String,
        /// What to try.
        hint: &'static str,
    },
    /// An exception of Python.
    Python(PyErr),
}

impl Failure {
    /// An argument that cannot be.
    pub(crate) fn invalid(text: impl Into<String>, hint: &'static str) -> Self {
        Self::Edge { class: "InvalidArgument", text: text.into(), hint }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let raised = |py: Python<'_>| {
            match failure {
                Failure::Library(error) => library(py, &error),
                Failure::Device(error) => exception(py, &class(error.code()), &error.to_string(), error.hint()),
                Failure::Edge { class, text, hint } => exception(py, class, &text, hint),
                Failure::Python(error) => return error,
            }
            .map_or_else(|error| error, Self::from_value)
        };
        Python::attach(raised)
    }
}

/// The name of the class of a code.
fn class(code: ErrorCode) -> String {
    format!("{code:?}")
}

/// An exception of the class of this name.
fn exception<'py>(py: Python<'py>, class: &str, text: &str, hint: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("nacelle._errors")?.getattr(class)?.call1((text, hint))
}

/// The exception of an error of the library, with what programs need of it.
fn library<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let raised = exception(py, &class(error.code()), &error.to_string(), error.hint())?;
    match error {
        Error::Kernel { code, .. } => raised.setattr("result", *code)?,
        Error::NoTarget { tried } => {
            let all = PyList::empty(py);
            for (target, why) in tried {
                all.append((target, library(py, why)?))?;
            }
            raised.setattr("tried", all)?;
        }
        _ => {}
    }
    Ok(raised)
}
