// SPDX-License-Identifier: Apache-2.0
//! `nacelle._native`: the client library and the software device for the Python package `nacelle`.
//!
//! The package in `python/nacelle` is what users import; it says what functions mean, and this crate does what needs Rust:
//! devices and calls, buffers of Python objects as regions, errors, waits that signals interrupt, and kernels in Python.
//!
//! Every value of the library is behind a `handle::Handle`, which refuses what would go wrong: use after the end, by two
//! threads at a time, and after a fork.

#![deny(unsafe_op_in_unsafe_fn)]

mod acceptor;
mod arguments;
mod buffer;
mod call;
mod connection;
mod device;
mod dlpack;
mod error;
mod handle;
mod kernel;
mod lent;
mod region;
mod remote;
mod soft_device;
mod transfer;
mod wait;

use nacelle::ErrorCode;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The module.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<buffer::Buffer>()?;
    module.add_class::<device::Device>()?;
    module.add_class::<connection::Connection>()?;
    module.add_class::<call::Call>()?;
    module.add_class::<kernel::KernelCall>()?;
    module.add_class::<lent::Lent>()?;
    module.add_class::<remote::Remote>()?;
    module.add_class::<transfer::Transfer>()?;
    module.add_class::<acceptor::Acceptor>()?;
    module.add_class::<acceptor::Window>()?;
    module.add_class::<soft_device::SoftDevice>()?;
    module.add_function(wrap_pyfunction!(device::connect, module)?)?;
    module.add_function(wrap_pyfunction!(arguments::matmul_arguments, module)?)?;
    module.add_function(wrap_pyfunction!(arguments::vector_arguments, module)?)?;
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    let codes = PyDict::new(module.py());
    for code in ErrorCode::ALL {
        codes.set_item(format!("{code:?}"), code.number())?;
    }
    module.add("ERROR_CODES", codes)
}
