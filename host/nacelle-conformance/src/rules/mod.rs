// SPDX-License-Identifier: Apache-2.0
//! The rules: one test each, named after what the device has to do.

mod acknowledge;
mod admission;
mod arp;
mod atomic;
mod calls;
mod cancel;
mod cm;
mod congestion;
mod contexts;
mod extension;
mod format;
mod icmp;
mod isolation;
mod long_set_up;
mod order;
mod own_read;
mod own_write;
mod protection;
mod read;
mod receives;
mod regions;
mod requester;
mod write;

use crate::{Failure, peer::Peer};

/// What a rule is tried with.
pub(crate) type Test = fn(&mut Peer) -> Result<(), Failure>;

/// Whom a rule binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Every RoCEv2 device.
    Standard,
    /// Everybody, but Linux soft-RoCE does otherwise, for this reason.
    NotLinux(&'static str),
    /// Nacelle devices.
    Nacelle,
}

/// One rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// What the device has to do: group and sentence.
    pub(crate) name: &'static str,
    /// Where it is written.
    pub(crate) source: &'static str,
    /// Whom it binds.
    pub(crate) scope: Scope,
    /// The test.
    pub(crate) test: Test,
}

/// Every rule, in the order in which they are tried.
pub(crate) fn all() -> impl Iterator<Item = &'static Rule> {
    [
        arp::RULES,
        icmp::RULES,
        cm::RULES,
        admission::RULES,
        acknowledge::RULES,
        write::RULES,
        read::RULES,
        atomic::RULES,
        order::RULES,
        protection::RULES,
        format::RULES,
        requester::RULES,
        regions::RULES,
        calls::RULES,
        receives::RULES,
        contexts::RULES,
        cancel::RULES,
        long_set_up::RULES,
        own_write::RULES,
        own_read::RULES,
        congestion::RULES,
        extension::RULES,
    ]
    .into_iter()
    .flatten()
    .chain(isolation::all())
}

/// A rule of the standard that all devices keep.
const fn standard(name: &'static str, source: &'static str, test: Test) -> Rule {
    Rule { name, source, scope: Scope::Standard, test }
}

/// A rule of the standard that Linux soft-RoCE does not keep.
const fn not_linux(name: &'static str, source: &'static str, why: &'static str, test: Test) -> Rule {
    Rule { name, source, scope: Scope::NotLinux(why), test }
}

/// A rule of Nacelle's own.
const fn nacelle(name: &'static str, source: &'static str, test: Test) -> Rule {
    Rule { name, source, scope: Scope::Nacelle, test }
}

/// Bytes that differ from each other, from zeros, and from those of other seeds.
pub(crate) fn pattern(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(7).wrapping_add((i >> 8) as u8).wrapping_add(seed) | 1).collect()
}
