//! Counters of a worker, as they were last published.

use hybriq_proto::stats::{EndpointStats, Kind, Label, Metric};

use crate::worker::meter::report::Common;

/// Counters of a worker as they were last published.
#[derive(Debug, Default)]
pub(in crate::worker::meter) struct Published(EndpointStats);

impl Published {
    pub(in crate::worker::meter) fn is(&self, stats: &EndpointStats) -> bool {
        self.0 == *stats
    }

    /// Publishes what changed. Gauges are updated by differences too, so that endpoints without a
    /// name add up.
    pub(in crate::worker::meter) fn update(&mut self, common: &Common, stats: &EndpointStats) {
        let mut before = values(&self.0).into_iter();
        stats.metrics(|metric, label, value| {
            let (.., before) = before.next().unwrap_or((metric, label, 0));
            let marks = label.map(|(name, value)| (name, value.into()));
            match metric.kind() {
                Kind::Counter => common
                    .counter(metric.name, marks.as_slice())
                    .increment(grown(before, value)),
                Kind::Gauge => common
                    .gauge(metric.name, marks.as_slice())
                    .increment(value as f64 - before as f64),
            }
        });
        self.0 = *stats;
    }

    /// Publishes the end of the worker: the last counts, and zero for all gauges.
    pub(in crate::worker::meter) fn end(&mut self, common: &Common, stats: &EndpointStats) {
        self.update(common, &stats.without_gauges());
    }
}

fn values(stats: &EndpointStats) -> Vec<(&'static Metric, Label, u64)> {
    let mut values = Vec::new();
    stats.metrics(|metric, label, value| values.push((metric, label, value)));
    values
}

/// Returns the growth of a counter, which starts again from 0 after a worker fails.
const fn grown(before: u64, now: u64) -> u64 {
    if now >= before { now - before } else { now }
}

#[cfg(test)]
mod tests {
    use super::grown;

    #[test]
    fn a_counter_that_starts_again_loses_nothing() {
        assert_eq!(grown(5, 9), 4);
        assert_eq!(grown(5, 5), 0);
        assert_eq!(grown(5, 2), 2);
    }
}
