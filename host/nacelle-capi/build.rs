// SPDX-License-Identifier: Apache-2.0
//! Gives the shared library a soname with the major version, so that programs find the library that they were linked with.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnacelle.so.{major}");
}
