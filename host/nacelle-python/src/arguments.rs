// SPDX-License-Identifier: Apache-2.0
//! Argument blocks of Nacelle's own kernels.

use nacelle_wire::kernel::{matmul, vector};
use pyo3::prelude::*;

use crate::error::Failure;

/// The arguments of `matmul`.
#[pyfunction]
pub(crate) fn matmul_arguments(dtype: &str, m: u32, n: u32, k: u32) -> Result<Vec<u8>, Failure> {
    let dtype = match dtype {
        "int32" => matmul::Dtype::Int32,
        "float32" => matmul::Dtype::Float32,
        other => return Err(no_type(other, "int32 or float32")),
    };
    Ok(matmul::Args { dtype, m, n, k }.to_bytes().to_vec())
}

/// The arguments of the functions of `vector`; the scalar as the bytes of an element, or none.
#[pyfunction]
pub(crate) fn vector_arguments(
    function: &str,
    dtype: &str,
    operation: Option<&str>,
    count: u64,
    scalar: &[u8],
) -> Result<Vec<u8>, Failure> {
    let dtype = match dtype {
        "int32" => vector::Dtype::Int32,
        "float32" => vector::Dtype::Float32,
        "int64" => vector::Dtype::Int64,
        "float64" => vector::Dtype::Float64,
        other => return Err(no_type(other, "int32, int64, float32 or float64")),
    };
    let names: &[&str] = match function {
        "binary" => &["add", "sub", "mul", "min", "max", "axpy"],
        "unary" => &["scale", "prefix_sum"],
        "reduce" => &["sum", "min", "max", "argmin", "argmax"],
        _ => &[],
    };
    let operation = match operation {
        None if names.is_empty() => Some(0),
        operation => operation.and_then(|operation| names.iter().position(|name| *name == operation)),
    };
    let operation = operation.and_then(|index| u32::try_from(index).ok()).ok_or_else(|| {
        Failure::invalid(
            format!("{function} has no such operation"),
            "see docs/reference/python-api.md for the operations",
        )
    })?;
    let mut block = vector::Args { dtype, operation, count, scalar: [0; 8] };
    if !scalar.is_empty() {
        if scalar.len() != dtype.size() {
            return Err(Failure::invalid(format!("a scalar of {} bytes", scalar.len()), "give one element"));
        }
        block.scalar[..scalar.len()].copy_from_slice(scalar);
    }
    Ok(block.to_bytes().to_vec())
}

fn no_type(dtype: &str, known: &'static str) -> Failure {
    Failure::invalid(format!("the device has no elements of type {dtype}; it has {known}"), "convert the array")
}
