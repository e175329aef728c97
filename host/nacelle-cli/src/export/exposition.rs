// SPDX-License-Identifier: Apache-2.0
//! One text for Prometheus, family by family.

use std::collections::BTreeMap;

use nacelle_manage::histograms::Histogram;
use prometheus::proto::{self, Bucket, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{CounterVec, GaugeVec, IntCounterVec, Opts, Registry, TextEncoder};

/// Labels of a sample: names and values.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// Metrics so far. All samples of a family have the same names of labels.
#[derive(Default)]
pub(super) struct Exposition {
    registry: Registry,
    gauges: BTreeMap<String, GaugeVec>,
    counters: BTreeMap<String, IntCounterVec>,
    seconds: BTreeMap<String, CounterVec>,
    /// What devices have counted in bins: the registry only has histograms that count themselves.
    histograms: BTreeMap<String, MetricFamily>,
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

    /// A time that only grows while the device runs.
    pub(super) fn seconds(&mut self, name: &str, help: &str, labels: Labels, value: f64) -> prometheus::Result<()> {
        let (names, values): (Vec<_>, Vec<_>) = labels.iter().copied().unzip();
        if !self.seconds.contains_key(name) {
            let family = CounterVec::new(Opts::new(name, help), &names)?;
            self.registry.register(Box::new(family.clone()))?;
            self.seconds.insert(name.to_owned(), family);
        }
        self.seconds[name].get_metric_with_label_values(&values)?.inc_by(value);
        Ok(())
    }

    /// Values in bins, as the metric has them: `bound` of a bin's bound, and `sum` of all.
    pub(super) fn histogram(
        &mut self,
        name: &str,
        help: &str,
        labels: Labels,
        values: &Histogram,
        bound: impl Fn(u64) -> f64,
        sum: f64,
    ) {
        let mut below = 0;
        let buckets = values.bounds().zip(&values.counts).map(|(limit, count)| {
            below += u64::from(*count);
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(bound(limit));
            bucket.set_cumulative_count(below);
            bucket
        });
        let mut histogram = proto::Histogram::default();
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(values.count());
        histogram.set_sample_sum(sum);
        let pair = |(name, value): &(&str, &str)| {
            let mut pair = LabelPair::default();
            pair.set_name((*name).to_owned());
            pair.set_value((*value).to_owned());
            pair
        };
        let mut metric = Metric::from_label(labels.iter().map(pair).collect());
        metric.set_histogram(histogram);
        let family = self.histograms.entry(name.to_owned()).or_insert_with(|| {
            let mut family = MetricFamily::default();
            family.set_name(name.to_owned());
            family.set_help(help.to_owned());
            family.set_field_type(MetricType::HISTOGRAM);
            family
        });
        family.mut_metric().push(metric);
    }

    /// All of it.
    pub(super) fn text(&self) -> prometheus::Result<String> {
        let mut all = self.registry.gather();
        all.extend(self.histograms.values().cloned());
        TextEncoder::new().encode_to_string(&all)
    }
}
