//! Reports to the recorder of the process.

use std::sync::Arc;

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
