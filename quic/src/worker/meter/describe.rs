//! Descriptions of all metrics, for the recorder.

use hybriq_proto::stats::{ConnectionStats, EndpointStats, Kind, Metric};
use metrics::{Recorder, SharedString, Unit};

use super::{census, connections, report::Histograms};

/// A metric, and what each of its values means.
struct Described {
    name: &'static str,
    kind: Kind,
    /// Label of the value, and its meaning.
    values: Vec<(&'static str, String)>,
}

impl Described {
    /// Returns the meaning of the metric. If its values are several counters, each gets its own
    /// sentences.
    fn help(&self) -> SharedString {
        let mut helps = self.values.iter().map(|(_, help)| help);
        let first = helps.next().cloned().unwrap_or_default();
        if helps.all(|help| *help == first) {
            return first.into();
        }
        let values = self.values.iter();
        let each: Vec<_> = values.map(|(of, help)| format!("`{of}`: {help}")).collect();
        each.join(" ").into()
    }
}

/// Describes all metrics.
pub(super) fn describe(recorder: &dyn Recorder) {
    let mut all: Vec<Described> = Vec::new();
    let mut add = |metric: &Metric, label: Option<(&'static str, &'static str)>, more: &str| {
        let value = (
            label.map_or("", |(_, value)| value),
            format!("{}{more}", metric.help),
        );
        match all.iter_mut().find(|known| known.name == metric.name) {
            Some(known) => known.values.push(value),
            None => all.push(Described {
                name: metric.name,
                kind: metric.kind(),
                values: vec![value],
            }),
        }
    };
    EndpointStats::default().metrics(|metric, label, _| add(metric, label, ""));
    let ended = " Of connections that ended.";
    ConnectionStats::default().metrics(|metric, label, _| add(metric, label, ended));
    for metric in connections::metrics().chain([census::MEMORY]) {
        add(&metric, None, "");
    }
    for metric in all {
        let (name, unit, help) = (metric.name.into(), Some(unit(metric.name)), metric.help());
        match metric.kind {
            Kind::Counter => recorder.describe_counter(name, unit, help),
            Kind::Gauge => recorder.describe_gauge(name, unit, help),
        }
    }
    for metric in Histograms::metrics() {
        let unit = Some(unit(metric.name));
        recorder.describe_histogram(metric.name.into(), unit, metric.help.into());
    }
}

/// Returns the unit of a metric, which follows from its name by the rules of Prometheus.
fn unit(name: &str) -> Unit {
    let name = name.trim_end_matches("_total");
    match name.rsplit('_').next() {
        Some("bytes") => Unit::Bytes,
        Some("seconds") => Unit::Seconds,
        _ => Unit::Count,
    }
}
