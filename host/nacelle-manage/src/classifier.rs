// SPDX-License-Identifier: Apache-2.0
//! The classifier of a device: rules that say which received frames its units and its network card get (docs/reference/classifier.md).
//!
//! A [`Rule`] is typed, and has a text form for people and files. [`Classifier`] keeps the rules of a device in its table, so that each
//! change is one for every frame: a frame sees the rules before it or those behind it.

mod key;
mod rule;
mod table;

pub use rule::{Action, Family, Match, Prefix, Rule, RuleError, Target, Window, parse_rules};
pub use table::{Classifier, ClassifierError, Counts, Placed, Rules};
