// SPDX-License-Identifier: Apache-2.0
//! One text for Prometheus, family by family.

use std::collections::BTreeMap;

use prometheus::{GaugeVec, IntCounterVec, Opts, Registry, TextEncoder};

/// Labels of a sample: names and values.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// Metrics so far. All samples of a family have the same names of labels.
#[derive(Default)]
pub(super) struct Exposition {
    registry: Registry,
    gauges: BTreeMap<String, GaugeVec>,
    counters: BTreeMap<String, IntCounterVec>,
}

impl Exposition {
    /// A value that rises and falls.
    pub(super) fn gauge(&mut self, name: &str, help: &str, labels: Labels, value: f64) -> prometheus::Result<()> {
        let (names, values): (Vec<_>, Vec<_>) = labels.iter().copied().unzip();
        if !self.gauges.contains_key(name) {
            let family = GaugeVec::new(Opts::new(name, help), &names)?;
            self.registry.register(Box::new(family.clone()))?;
            self.gauges.insert(name.to_owned(), family);
        }
        self.gauges[name].get_metric_with_label_values(&values)?.set(value);
        Ok(())
    }

    /// A value that only rises while the device runs.
    pub(super) fn counter(&mut self, name: &str, help: &str, labels: Labels, value: u64) -> prometheus::Result<()> {
        let (names, values): (Vec<_>, Vec<_>) = labels.iter().copied().unzip();
        if !self.counters.contains_key(name) {
            let family = IntCounterVec::new(Opts::new(name, help), &names)?;
            self.registry.register(Box::new(family.clone()))?;
            self.counters.insert(name.to_owned(), family);
        }
        self.counters[name].get_metric_with_label_values(&values)?.inc_by(value);
        Ok(())
    }

    /// All of it.
    pub(super) fn text(&self) -> prometheus::Result<String> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}
