//! Counters of what is logged, and of what is not.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a [`Qlog`](super::Qlog).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QlogStats {
    /// Connections logged.
    pub connections: u64,
    /// Connections that were not in the sample.
    pub not_sampled: u64,
    /// Connections in the sample that were not logged because too many were already being logged.
    pub over_limit: u64,
    /// Events recorded.
    pub events: u64,
    /// Events missing from the logs: the writer fell behind, a log reached its limit, or writing
    /// failed.
    pub events_dropped: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Files removed because there were too many.
    pub files_removed: u64,
    /// Failed writes, each of which ends its log.
    pub write_errors: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connections: AtomicU64,
    pub(super) not_sampled: AtomicU64,
    pub(super) over_limit: AtomicU64,
    pub(super) events: AtomicU64,
    pub(super) events_dropped: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) files_removed: AtomicU64,
    pub(super) write_errors: AtomicU64,
}

pub(super) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Counters {
    pub(super) fn stats(&self) -> QlogStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        QlogStats {
            connections: read(&self.connections),
            not_sampled: read(&self.not_sampled),
            over_limit: read(&self.over_limit),
            events: read(&self.events),
            events_dropped: read(&self.events_dropped),
            bytes: read(&self.bytes),
            files_removed: read(&self.files_removed),
            write_errors: read(&self.write_errors),
        }
    }
}
