//! Measurements of the client.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::drivers::{Negotiated, Stats, Traffic};
use crate::report::results::{Histogram, KindResult, Repetition};
use crate::system::outcome::{Failed, Kind};

/// Counts and times everything of one phase.
#[derive(Default)]
pub(crate) struct Recorder {
    kinds: RefCell<Vec<Counted>>,
    pub(crate) totals: Totals,
    network: RefCell<Network>,
    negotiated: RefCell<Option<Negotiated>>,
    /// Time of the last event.
    last_event: Cell<Option<Instant>>,
}

/// Totals so far.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) connections: Cell<u64>,
    pub(crate) requests: Cell<u64>,
    pub(crate) failures: Cell<u64>,
    pub(crate) bytes_sent: Cell<u64>,
    pub(crate) bytes_received: Cell<u64>,
    /// Number of connections that began and have not ended.
    pub(crate) under_way: Cell<u64>,
}

#[derive(Clone, Copy, Default)]
struct Network {
    handshake: Traffic,
    data: Traffic,
    packets_lost: u64,
    timeouts: u64,
}

/// Connections of one label.
#[derive(Default)]
struct Counted {
    label: String,
    ok: u64,
    failures: BTreeMap<Kind, (u64, String)>,
    result: KindResult,
}

/// Index of a label's connections.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label(usize);

impl Recorder {
    /// Finds or adds a label.
    pub(crate) fn label(&self, label: &str) -> Label {
        let mut kinds = self.kinds.borrow_mut();
        let known = kinds.iter().position(|kind| kind.label == label);
        Label(known.unwrap_or_else(|| {
            kinds.push(Counted {
                label: label.to_owned(),
                ..Counted::default()
            });
            kinds.len() - 1
        }))
    }

    fn with<T: Default>(&self, label: Label, act: impl FnOnce(&mut Counted) -> T) -> T {
        match self.kinds.borrow_mut().get_mut(label.0) {
            Some(kind) => act(kind),
            None => T::default(),
        }
    }

    pub(crate) fn last_event(&self) -> Option<Instant> {
        self.last_event.get()
    }

    fn happened(&self) {
        self.last_event.set(Some(Instant::now()));
    }

    pub(crate) fn begin(&self) {
        self.totals.under_way.set(self.totals.under_way.get() + 1);
    }

    /// Counts the end of a connection.
    pub(crate) fn end(&self, label: Label, outcome: Result<Duration, Failed>) {
        let totals = &self.totals;
        totals.under_way.set(totals.under_way.get() - 1);
        totals.connections.set(totals.connections.get() + 1);
        match outcome {
            Ok(took) => {
                self.happened();
                self.with(label, |kind| {
                    kind.ok += 1;
                    kind.result.connection.record(took);
                });
            }
            Err(failed) => self.fail(label, failed, 1),
        }
    }

    /// Counts connections that should have begun and never did.
    pub(crate) fn never_began(&self, label: Label, count: u64) {
        if count > 0 {
            let totals = &self.totals;
            totals.connections.set(totals.connections.get() + count);
            let failed = Failed::new(Kind::Unfinished, "there was no time left to begin it");
            self.fail(label, failed, count);
        }
    }

    fn fail(&self, label: Label, failed: Failed, count: u64) {
        self.totals.failures.set(self.totals.failures.get() + count);
        self.with(label, |kind| {
            let entry = kind.failures.entry(failed.kind);
            entry.or_insert_with(|| (0, failed.detail)).0 += count;
        });
    }

    pub(crate) fn handshake(&self, label: Label, took: Duration, negotiated: &Negotiated) {
        self.with(label, |kind| kind.result.handshake.record(took));
        let mut first = self.negotiated.borrow_mut();
        if first.is_none() {
            *first = Some(negotiated.clone());
        }
    }

    pub(crate) fn first_byte(&self, label: Label, took: Duration) {
        self.with(label, |kind| kind.result.first_byte.record(took));
    }

    pub(crate) fn request(&self, label: Label, name: &str, took: Duration) {
        self.happened();
        self.totals.requests.set(self.totals.requests.get() + 1);
        self.with(label, |kind| {
            let requests = &mut kind.result.requests;
            if let Some(histogram) = requests.get_mut(name) {
                histogram.record(took);
            } else {
                let mut histogram = Histogram::default();
                histogram.record(took);
                requests.insert(name.to_owned(), histogram);
            }
        });
    }

    pub(crate) fn echo(&self, label: Label, took: Duration) {
        self.with(label, |kind| kind.result.datagrams.record(took));
    }

    pub(crate) fn lost(&self, label: Label, count: u64) {
        self.with(label, |kind| kind.result.datagrams_lost += count);
    }

    pub(crate) fn sent(&self, label: Label, bytes: u64) {
        let sum = &self.totals.bytes_sent;
        sum.set(sum.get() + bytes);
        self.with(label, |kind| kind.result.stream_bytes_sent += bytes);
    }

    pub(crate) fn received(&self, label: Label, bytes: u64) {
        self.happened();
        let sum = &self.totals.bytes_received;
        sum.set(sum.get() + bytes);
        self.with(label, |kind| kind.result.stream_bytes_received += bytes);
    }

    /// Adds a connection's counters: those when it was established, if it was, and those at its
    /// end.
    pub(crate) fn traffic(&self, established: Option<Stats>, end: Stats) {
        let mut network = self.network.borrow_mut();
        network.packets_lost += end.packets_lost;
        network.timeouts += end.timeouts;
        let Some(all) = end.traffic else {
            return;
        };
        let handshake = established.map_or(all, |stats| stats.traffic.unwrap_or_default());
        network.handshake += handshake;
        network.data += all.since(handshake);
    }

    /// Returns the distributions of handshakes and of requests, over all labels.
    pub(crate) fn distributions(&self) -> (Histogram, Histogram) {
        let (mut handshakes, mut requests) = (Histogram::default(), Histogram::default());
        for kind in self.kinds.borrow().iter() {
            handshakes.add(&kind.result.handshake);
            kind.result
                .requests
                .values()
                .for_each(|histogram| requests.add(histogram));
        }
        (handshakes, requests)
    }

    /// Writes the counters into a report.
    pub(crate) fn report(&self, into: &mut Repetition) {
        let network = *self.network.borrow();
        into.handshake_traffic = network.handshake;
        into.data_traffic = network.data;
        into.packets_lost = network.packets_lost;
        into.timeouts = network.timeouts;
        into.negotiated = self.negotiated.borrow().clone().unwrap_or_default();
        for kind in self.kinds.borrow().iter() {
            into.client.completed += kind.ok;
            into.client.failed += kind.failures.values().map(|(count, _)| count).sum::<u64>();
            into.kinds.insert(kind.label.clone(), kind.report());
        }
    }
}

impl Counted {
    fn report(&self) -> KindResult {
        let mut result = self.result.clone();
        if self.ok > 0 {
            result.outcomes.insert("ok".to_owned(), self.ok);
        }
        for (kind, (count, detail)) in &self.failures {
            result.outcomes.insert(kind.to_string(), *count);
            result.details.insert(kind.to_string(), detail.clone());
        }
        result
    }
}
