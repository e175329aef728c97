// SPDX-License-Identifier: Apache-2.0
//! Attacks: a caller, correct or hostile, present or vanished, neither accesses other callers' memory nor delays their calls.

mod bystander;
mod contexts;
mod dead;
mod flood;
mod half_open;
mod keys;
mod memory;
mod quota;
mod stale_key;

use super::{Rule, nacelle};

/// Every rule, in the order in which they are tried: at the end those that keep a device busy for long if it breaks them.
pub(super) fn all() -> impl Iterator<Item = &'static Rule> {
    [
        keys::RULES,
        stale_key::RULES,
        memory::RULES,
        flood::RULES,
        contexts::RULES,
        quota::RULES,
        half_open::RULES,
        dead::RULES,
    ]
    .into_iter()
    .flatten()
}

/// Where these rules are written.
const CONTRACT: &str = "device contract: isolation";
