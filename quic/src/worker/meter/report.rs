//! Reports to the recorder of the process, and measurements that are recorded one by one.

use std::sync::Arc;

use hybriq_proto::stats::Metric;
use metrics::{
    Counter, Gauge, Histogram, Key, Label, Level, Metadata, SharedString, with_recorder,
};

const METADATA: Metadata<'static> =
    Metadata::new("hybriq", Level::INFO, Some("hybriq::worker::meter"));

/// A label of one value of a metric.
pub(super) type Mark = (&'static str, SharedString);

/// Labels that all values of a worker or of its connections have.
#[derive(Clone, Debug)]
pub(super) struct Common(Vec<Label>);

impl Common {
    /// Returns the labels of an endpoint.
    pub(super) fn new(endpoint: Option<&Arc<str>>) -> Self {
        let label = |name: &Arc<str>| Label::new("endpoint", SharedString::from(name.clone()));
        Self(endpoint.map(label).into_iter().collect())
    }

    /// Adds another label.
    pub(super) fn and(mut self, name: &'static str, value: impl Into<SharedString>) -> Self {
        self.0.push(Label::new(name, value));
        self
    }

    fn key(&self, name: &'static str, marks: &[Mark]) -> Key {
        let marks = marks
            .iter()
            .map(|(name, value)| Label::new(*name, value.clone()));
        let labels: Vec<_> = self.0.iter().cloned().chain(marks).collect();
        Key::from_parts(name, labels)
    }

    pub(super) fn counter(&self, name: &'static str, marks: &[Mark]) -> Counter {
        let key = self.key(name, marks);
        with_recorder(|recorder| recorder.register_counter(&key, &METADATA))
    }

    pub(super) fn gauge(&self, name: &'static str, marks: &[Mark]) -> Gauge {
        let key = self.key(name, marks);
        with_recorder(|recorder| recorder.register_gauge(&key, &METADATA))
    }

    pub(super) fn histogram(&self, name: &'static str, marks: &[Mark]) -> Histogram {
        let key = self.key(name, marks);
        with_recorder(|recorder| recorder.register_histogram(&key, &METADATA))
    }
}

const TURNS: Metric = Metric::new(
    "hybriq_turn_seconds",
    "Time that a worker works before it looks for new datagrams again.",
);
const YIELDS: Metric = Metric::new(
    "hybriq_yield_seconds",
    "Time that a worker waits in a turn for tasks of the application that share its thread.",
);
const DEPTHS: Metric = Metric::new(
    "hybriq_queue_depth",
    "Messages from applications and other workers that a worker finds in a turn, if any.",
);
const HANDSHAKES: Metric = Metric::new(
    "hybriq_handshake_seconds",
    "Time from the start of a connection to the end of its handshake.",
);
const LIFETIMES: Metric = Metric::new("hybriq_connection_seconds", "Lifetime of a connection.");
const RTTS: Metric = Metric::new(
    "hybriq_connection_rtt_seconds",
    "Smoothed round-trip time at the end of a connection.",
);

/// Histograms of a worker and its connections.
pub(super) struct Histograms {
    pub(super) turns: Histogram,
    pub(super) yields: Histogram,
    pub(super) depths: Histogram,
    /// Handshakes as a client, and as a server.
    pub(super) handshakes: [Histogram; 2],
    pub(super) lifetimes: Histogram,
    pub(super) rtts: Histogram,
}

impl Histograms {
    pub(super) const METRICS: [Metric; 6] = [TURNS, YIELDS, DEPTHS, HANDSHAKES, LIFETIMES, RTTS];

    pub(super) fn new(endpoint: &Common, worker: &Common) -> Self {
        let handshake =
            |role: &'static str| endpoint.histogram(HANDSHAKES.name, &[("role", role.into())]);
        Self {
            turns: worker.histogram(TURNS.name, &[]),
            yields: worker.histogram(YIELDS.name, &[]),
            depths: worker.histogram(DEPTHS.name, &[]),
            handshakes: ["client", "server"].map(handshake),
            lifetimes: endpoint.histogram(LIFETIMES.name, &[]),
            rtts: endpoint.histogram(RTTS.name, &[]),
        }
    }
}
