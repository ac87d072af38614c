//! How long a request and its response may stand still.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::MOST_TIME;

/// No limit.
const FOREVER: u64 = u64::MAX;

/// Time in which an exchange must make progress in one of its directions, and the progress that it has made. A stream
/// of gRPC may be silent in one direction as long as messages flow in the other.
///
/// Requests with a body have one among their extensions; for others, it would cost more than it is worth.
#[derive(Debug)]
pub(crate) struct Patience {
    /// In nanoseconds.
    time: AtomicU64,
    /// Parts of the request that arrived, and parts of the response that were accepted.
    progress: AtomicU64,
}

impl Patience {
    pub(crate) fn new(time: Duration) -> Arc<Self> {
        let patience = Self {
            time: AtomicU64::new(FOREVER),
            progress: AtomicU64::new(0),
        };
        patience.set(Some(time));
        Arc::new(patience)
    }

    /// Sets the time, or that there is no limit.
    pub(crate) fn set(&self, time: Option<Duration>) {
        let nanos = |time: Duration| u64::try_from(time.min(MOST_TIME).as_nanos()).ok();
        let time = time.and_then(nanos).unwrap_or(FOREVER);
        self.time.store(time, Ordering::Relaxed);
    }

    /// Returns the time, unless there is no limit.
    pub(crate) fn time(&self) -> Option<Duration> {
        let time = self.time.load(Ordering::Relaxed);
        (time != FOREVER).then(|| Duration::from_nanos(time))
    }

    pub(crate) fn on_progress(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }
}
