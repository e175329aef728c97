// SPDX-License-Identifier: Apache-2.0
//! Regions of a call, in memory of Python objects.

use nacelle::memory::find_overlap;
use nacelle::{FunctionCode, Memory, Region};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::buffer::{self, Bytes};
use crate::error::Failure;

/// A region as the package gives it.
#[derive(FromPyObject)]
pub(crate) struct Given<'py> {
    /// "in", "in once", "out", "inout", "inout once" or "internal".
    role: String,
    /// Its name in errors; may be empty.
    name: String,
    /// Whose memory it is; none of an internal region.
    buffer: Option<Bound<'py, PyAny>>,
    /// Bytes of an internal region.
    size: usize,
}

impl Given<'_> {
    fn is_written(&self) -> bool {
        matches!(self.role.as_str(), "out" | "inout" | "inout once")
    }

    /// How errors name it.
    fn place(&self, index: usize) -> String {
        if self.name.is_empty() { format!("region {index}") } else { format!("region {index} ({})", self.name) }
    }

    fn bytes(&self, index: usize) -> Result<Option<Bytes>, Failure> {
        let Some(object) = &self.buffer else { return Ok(None) };
        let place = |text: &str| format!("{}: {text}", self.place(index));
        let bytes = Bytes::of(object, self.is_written()).map_err(|failure| match failure {
            Failure::Edge { class, text, hint } => Failure::Edge { class, text: place(&text), hint },
            Failure::Python(error) if error.is_instance_of::<PyTypeError>(object.py()) => {
                PyTypeError::new_err(place(&error.value(object.py()).to_string())).into()
            }
            other => other,
        })?;
        Ok(Some(bytes))
    }
}

/// The function with this code.
///
/// # Errors
/// If it is not 1 to 127.
pub(crate) fn function(code: i64) -> Result<FunctionCode, Failure> {
    let known = u8::try_from(code).ok().and_then(FunctionCode::new);
    known.ok_or_else(|| Failure::invalid(format!("function {code} is not 1 to 127"), "give the code of a function"))
}

/// Regions in place of what is given. Two may have the same memory only if the device writes neither.
///
/// # Errors
/// If one cannot be a region.
pub(crate) fn regions(py: Python<'_>, given: &[Given<'_>]) -> Result<Vec<Region>, Failure> {
    // What earlier calls have given back can be used again.
    buffer::release(py);
    let made = in_place(given);
    if made.is_err() {
        buffer::release(py);
    }
    made
}

fn in_place(given: &[Given<'_>]) -> Result<Vec<Region>, Failure> {
    let bytes = given.iter().enumerate().map(|(index, given)| given.bytes(index));
    let bytes = bytes.collect::<Result<Vec<_>, _>>()?;
    if let Some((one, other)) = find_overlap(bytes.iter().map(|bytes| bytes.as_ref()?.extent())) {
        let (one, other) = (given[one].place(one), given[other].place(other));
        let text = format!("the buffers of {one} and {other} overlap, and the device writes one");
        return Err(Failure::invalid(
            text,
            "give each region memory of its own, or use one region for input and output",
        ));
    }
    let made = given.iter().zip(bytes).map(|(given, bytes)| {
        let Some(bytes) = bytes else { return Ok(Region::internal(given.size)) };
        let memory = Memory::new(bytes);
        Ok(match given.role.as_str() {
            "in" => Region::input(memory),
            "in once" => Region::input_once(memory),
            "out" => Region::output_to(memory),
            "inout" => Region::inout(memory),
            "inout once" => Region::inout_once(memory),
            role => {
                return Err(Failure::invalid(format!("'{role}' is no role of a region with a buffer"), "correct it"));
            }
        })
    });
    made.collect()
}
