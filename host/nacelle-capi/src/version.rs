// SPDX-License-Identifier: Apache-2.0
//! The version of the library that a program runs with.

use std::ffi::c_char;

/// "0.1.0", with a zero byte.
const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_version_string() -> *const c_char {
    TEXT.as_ptr().cast()
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_version() -> u32 {
    let mut parts = env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse().unwrap_or(0));
    let mut part = || -> u32 { parts.next().unwrap_or(0) };
    part() << 16 | part() << 8 | part()
}
