//! Stand-in for the metrics, for builds without them. It has no data and does nothing.

use std::{sync::Arc, time::Instant};

use hybriq_proto::{
    connection::Connection,
    events::agreement::Handshake,
    stats::{EndpointStats, MemoryHeld},
    wire::error::ConnectionError,
};
use hybriq_tls::Side;

/// Metrics that are not counted.
pub(in crate::worker) struct Meter;

/// Counters that are not added up.
pub(in crate::worker) struct LastStats;

/// Times of a connection that are not measured.
pub(in crate::worker) struct Life;

#[expect(clippy::unused_self, reason = "the same methods as with metrics")]
impl Meter {
    pub(in crate::worker) const fn new(_: Option<&Arc<str>>, _: u8) -> Self {
        Self
    }

    pub(in crate::worker) const fn begin_turn(&self, _: Instant) {}

    pub(in crate::worker) const fn pause(&self) {}

    pub(in crate::worker) const fn resume(&self, _: Instant) {}

    pub(in crate::worker) const fn end_turn(&self) {}

    pub(in crate::worker) const fn on_requests(&self, _: usize) {}

    pub(in crate::worker) const fn on_started(&self, _: Side, _: Instant) -> Life {
        Life
    }

    pub(in crate::worker) const fn on_handshake(&self, _: &Life, _: &Handshake, _: Instant) {}

    pub(in crate::worker) const fn on_path_changed(&self) {}

    pub(in crate::worker) const fn on_path_failed(&self) {}

    pub(in crate::worker) const fn last_stats(_: &Connection) -> LastStats {
        LastStats
    }

    pub(in crate::worker) const fn on_end(
        &self,
        _: &Life,
        _: &LastStats,
        _: Option<&ConnectionError>,
        _: Instant,
    ) {
    }

    pub(in crate::worker) const fn on_failed(&self, _: &Life, _: &ConnectionError) {}

    pub(in crate::worker) fn take_census(
        &self,
        _: Instant,
        _: impl Fn(usize) -> (MemoryHeld, Option<usize>),
    ) {
    }

    pub(in crate::worker) const fn publish(&self, _: Instant, _: &EndpointStats) {}

    pub(in crate::worker) const fn finish(&self, _: &EndpointStats) {}

    pub(in crate::worker) const fn next_timeout(&self) -> Option<Instant> {
        None
    }
}
