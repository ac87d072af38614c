//! Sums over connections that ended.

use std::mem;

use hybriq_proto::stats::{ConnectionStats, Label, Metric};

use crate::worker::meter::report::Common;

/// Sums over connections that ended and are not yet published, in the order of
/// [`ConnectionStats::metrics`].
#[derive(Debug)]
pub(in crate::worker::meter) struct Sums(Vec<(&'static Metric, Label, u64)>);

impl Default for Sums {
    fn default() -> Self {
        let mut sums = Vec::new();
        ConnectionStats::default().metrics(|metric, label, none| sums.push((metric, label, none)));
        Self(sums)
    }
}

impl Sums {
    /// Adds the counters of a connection.
    pub(in crate::worker::meter) fn add(&mut self, stats: &ConnectionStats) {
        let mut sums = self.0.iter_mut();
        stats.metrics(|_, _, value| {
            if let Some((.., sum)) = sums.next() {
                *sum = sum.saturating_add(value);
            }
        });
    }

    pub(in crate::worker::meter) fn publish(&mut self, common: &Common) {
        for (metric, label, sum) in &mut self.0 {
            let marks = label.map(|(name, value)| (name, value.into()));
            let counter = common.counter(metric.name, marks.as_slice());
            counter.increment(mem::take(sum));
        }
    }
}
