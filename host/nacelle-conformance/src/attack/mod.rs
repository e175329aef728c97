// SPDX-License-Identifier: Apache-2.0
//! What hostile callers do. Here is the doing, and the checks that hold on any wire and beside any traffic; what a device must answer
//! when nothing else happens, the rules of `isolation` check.
//!
//! The hosts of an attack are those of its peer from a number on: attacks with numbers that are far enough apart share none.

pub(crate) mod dead;
pub(crate) mod flood;
pub(crate) mod half_open;
pub(crate) mod keys;
pub(crate) mod quota;
pub(crate) mod stale_key;
