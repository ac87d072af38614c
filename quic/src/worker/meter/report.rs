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

/// Labels of what a histogram is of.
#[derive(Clone, Copy)]
pub(super) struct Scopes<'a> {
    pub(super) endpoint: &'a Common,
    pub(super) worker: &'a Common,
}

/// Declares the histograms: a field, what it is of, its name and its meaning. Those by role are one for
/// each side.
macro_rules! histograms {
    ($($field:ident: $of:ident $(by $role:ident)? => $name:literal, $help:literal;)+) => {
        /// Histograms of a worker and its connections.
        pub(super) struct Histograms {
            $(pub(super) $field: histograms!(@type $($role)?),)+
        }

        impl Histograms {
            pub(super) fn metrics() -> impl Iterator<Item = Metric> {
                [$(Metric::new($name, $help)),+].into_iter()
            }

            pub(super) fn new(scopes: Scopes<'_>) -> Self {
                Self { $($field: histograms!(@new scopes.$of, $name, $($role)?),)+ }
            }
        }
    };

    (@type) => { Histogram };
    (@type role) => { [Histogram; 2] };
    (@new $of:expr, $name:literal,) => { $of.histogram($name, &[]) };
    (@new $of:expr, $name:literal, role) => {
        ["client", "server"].map(|role| $of.histogram($name, &[("role", role.into())]))
    };
}

histograms! {
    turns: worker => "hybriq_turn_seconds",
        "Time that a worker works before it looks for new datagrams again.";
    yields: worker => "hybriq_yield_seconds",
        "Time that a worker waits in a turn for tasks of the application that share its thread.";
    depths: worker => "hybriq_queue_depth",
        "Messages from applications and other workers that a worker finds in a turn, if any.";
    handshakes: endpoint by role => "hybriq_handshake_seconds",
        "Time from the start of a connection to the end of its handshake.";
    lifetimes: endpoint => "hybriq_connection_seconds", "Lifetime of a connection.";
    rtts: endpoint => "hybriq_connection_rtt_seconds",
        "Smoothed round-trip time at the end of a connection.";
}
