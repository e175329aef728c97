// SPDX-License-Identifier: Apache-2.0
//! Argument blocks of Nacelle's own kernels, little-endian, as they lie in region 0 of a call.

pub mod matmul;
pub mod vector;
