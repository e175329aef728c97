// SPDX-License-Identifier: Apache-2.0
//! Attacks of hostile callers, shared by the rules of `isolation` and by the soak. An attack checks here what must hold on any wire and
//! beside any traffic; the rules check the exact answers, which are only deterministic on an idle wire.
//!
//! An attack acts as several hosts of its peer, numbered from a base: attacks whose bases are far enough apart have no host in common.

pub(crate) mod contexts;
pub(crate) mod dead;
pub(crate) mod flood;
pub(crate) mod half_open;
pub(crate) mod keys;
pub(crate) mod quota;
pub(crate) mod stale_key;
