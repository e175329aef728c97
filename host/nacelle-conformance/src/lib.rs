// SPDX-License-Identifier: Apache-2.0
//! Judges a RoCEv2 device from outside, by what it answers to frames: rule by rule ([`suite`]), and in random long runs ([`soak`]).
//!
//! Both are stations on the device's wire, and need nothing of the device but its address: the RTL, the software device and, for the
//! rules, Linux soft-RoCE are judged by the same tests.

mod attack;
mod failure;
mod manage;
mod peer;
mod record;
mod rules;
pub mod soak;
mod station;
pub mod suite;

use failure::Failure;
