//! What the handles of an endpoint and its clients share.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Handle;

use crate::config::Shared;

/// What the handles of an endpoint and its clients share.
pub(super) struct Common {
    pub(super) shared: Shared,
    pub(super) runtime: Handle,
    pub(super) counts: [AtomicU64; 4],
}

/// Something that is counted.
#[derive(Clone, Copy)]
pub(super) enum Count {
    Accepted,
    Outgoing,
    Refused,
    Ignored,
}

impl Common {
    pub(super) fn add(&self, count: Count) {
        self.counts[count as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self, count: Count) -> u64 {
        self.counts[count as usize].load(Ordering::Relaxed)
    }
}
