//! The metrics of a worker.

#[cfg(feature = "metrics")]
pub(super) mod published;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hybriq_proto::{
    connection::Connection,
    events::agreement::Handshake,
    stats::{ConnectionStats, EndpointStats, MemoryHeld},
    wire::error::ConnectionError,
};
use hybriq_tls::Side;
use metrics::with_recorder;

use self::published::Published;
use super::{
    census::Census,
    connections::{Counts, Life, Phase},
    describe::describe,
    report::{Common, Histograms, Scopes},
};
use crate::sync::clock;

/// Shortest time between two publications of a worker.
const INTERVAL: Duration = Duration::from_secs(1);

/// Metrics of a worker and of its connections.
pub(in crate::worker) struct Meter {
    /// Labels of connections.
    endpoint: Common,
    /// Labels of the worker.
    worker: Common,
    published: Published,
    counts: Counts,
    census: Census,
    histograms: Histograms,
    /// Time of the last publication.
    last: Option<Instant>,
    /// Time of the next publication; `None` while there are no changes.
    due: Option<Instant>,
    turn: Turn,
}

/// Measurements of a turn.
#[derive(Debug, Default)]
struct Turn {
    /// Start of the work in progress.
    since: Option<Instant>,
    worked: Duration,
    /// Start of the wait for applications.
    paused: Option<Instant>,
    waited: Option<Duration>,
    depth: usize,
}

impl Meter {
    /// Creates the metrics of a worker, for the recorder that the process has now.
    pub(in crate::worker) fn new(endpoint: Option<&Arc<str>>, worker: u8) -> Self {
        with_recorder(describe);
        let endpoint = Common::new(endpoint);
        let worker = endpoint.clone().and("worker", worker.to_string());
        Self {
            histograms: Histograms::new(Scopes {
                endpoint: &endpoint,
                worker: &worker,
            }),
            endpoint,
            worker,
            published: Published::default(),
            counts: Counts::default(),
            census: Census::default(),
            last: None,
            due: None,
            turn: Turn::default(),
        }
    }

    pub(in crate::worker) fn begin_turn(&mut self, now: Instant) {
        self.turn = Turn {
            since: Some(now),
            ..Turn::default()
        };
    }

    /// Stops the clock while applications run.
    pub(in crate::worker) fn pause(&mut self) {
        if let Some(since) = self.turn.since.take() {
            let now = clock::now();
            self.turn.worked += now.saturating_duration_since(since);
            self.turn.paused = Some(now);
        }
    }

    pub(in crate::worker) fn resume(&mut self, now: Instant) {
        self.turn.since = Some(now);
        if let Some(paused) = self.turn.paused.take() {
            let waited = now.saturating_duration_since(paused);
            self.turn.waited = Some(self.turn.waited.unwrap_or_default() + waited);
        }
    }

    pub(in crate::worker) fn end_turn(&mut self) {
        self.pause();
        self.histograms.turns.record(self.turn.worked);
        if let Some(waited) = self.turn.waited {
            self.histograms.yields.record(waited);
        }
        if self.turn.depth > 0 {
            self.histograms.depths.record(self.turn.depth as f64);
        }
    }

    /// Counts requests found in the mailbox.
    pub(in crate::worker) const fn on_requests(&mut self, count: usize) {
        self.turn.depth += count;
    }

    pub(in crate::worker) fn on_started(&mut self, side: Side, now: Instant) -> Life {
        self.counts.on_started(side);
        Life {
            side,
            since: now,
            phase: Phase::Handshake,
        }
    }

    pub(in crate::worker) fn on_handshake(
        &mut self,
        life: &mut Life,
        handshake: &Handshake,
        now: Instant,
    ) {
        life.phase = Phase::Established;
        self.counts.on_handshake(life.side, handshake);
        let [client, server] = &self.histograms.handshakes;
        let histogram = match life.side {
            Side::Client => client,
            Side::Server => server,
        };
        histogram.record(now.saturating_duration_since(life.since));
    }

    pub(in crate::worker) fn on_path_changed(&mut self) {
        self.counts.on_path_changed();
    }

    pub(in crate::worker) fn on_path_failed(&mut self) {
        self.counts.on_path_failed();
    }

    /// Returns the counters of a connection that ends. The recorder sees them once the connection
    /// is unlocked.
    pub(in crate::worker) fn last_stats(core: &Connection) -> ConnectionStats {
        core.stats()
    }

    /// Counts the end of a connection.
    pub(in crate::worker) fn on_end(
        &mut self,
        life: &Life,
        stats: &ConnectionStats,
        error: Option<&ConnectionError>,
        now: Instant,
    ) {
        self.counts.on_closed(life, error);
        self.counts.on_stats(stats);
        let lifetime = now.saturating_duration_since(life.since);
        self.histograms.lifetimes.record(lifetime);
        if life.phase == Phase::Established {
            self.histograms.rtts.record(stats.rtt);
        }
    }

    /// Counts the end of a connection whose state can no longer be trusted.
    pub(in crate::worker) fn on_failed(&mut self, life: &Life, error: &ConnectionError) {
        self.counts.on_closed(life, Some(error));
    }

    /// Publishes changes, if the last publication is old enough.
    pub(in crate::worker) fn publish(&mut self, now: Instant, stats: &EndpointStats) {
        let is_new = self.last.is_none() || self.counts.are_new() || !self.published.is(stats);
        if is_new {
            self.census.ask(now, stats.connections);
        }
        if (is_new || self.census.is_new()) && self.due.is_none() {
            self.due = Some(self.last.map_or(now, |last| now.max(last + INTERVAL)));
        }
        if self.due.is_some_and(|at| at <= now) {
            self.due = None;
            self.last = Some(now);
            self.published.update(&self.worker, stats);
            self.counts.publish(&self.endpoint);
            self.census.publish(&self.worker);
            // Registered again, in case the recorder forgets metrics that were idle for long.
            self.histograms = Histograms::new(Scopes {
                endpoint: &self.endpoint,
                worker: &self.worker,
            });
        }
    }

    /// Publishes everything at the end of the worker.
    pub(in crate::worker) fn finish(&mut self, stats: &EndpointStats) {
        self.published.end(&self.worker, stats);
        self.counts.publish(&self.endpoint);
        self.census.end(&self.worker);
    }

    /// Continues to add up the memory of all connections, some in each turn.
    pub(in crate::worker) fn take_census(
        &mut self,
        now: Instant,
        held: impl Fn(usize) -> (MemoryHeld, Option<usize>),
    ) {
        self.census.go_on(now, held);
    }

    /// Returns the time at which something must be published or measured.
    pub(in crate::worker) fn next_timeout(&self) -> Option<Instant> {
        let times = [self.due, self.census.next_timeout()];
        times.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
