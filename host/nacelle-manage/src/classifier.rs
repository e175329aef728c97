// SPDX-License-Identifier: Apache-2.0
//! The classifier of a device: rules that say which received frames its units and its network card get (docs/reference/classifier.md).
//!
//! A [`Rule`] is typed, and has a text form for people and files. [`Classifier`] keeps the rules of a device in its table, so that each
//! change is one for every frame: a frame sees the rules before it or those behind it. A [`Flow`] matches exactly, and goes before all rules;
//! each change of a flow is one for every frame. A [`Meter`] limits the rate of the frames of rules and flows that name it.

mod file;
mod flow;
mod flows;
mod key;
mod meter;
mod places;
mod rule;
mod table;

pub use file::RuleFile;
pub use flow::{Flow, FlowKey};
pub use flows::PlacedFlow;
pub use meter::{Meter, Metered};
pub use rule::{Action, Edit, Family, Match, Prefix, Rule, RuleError, Stream, Target, Window};
pub use table::{Classifier, ClassifierError, Counts, Placed, Rules};
