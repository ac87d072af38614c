//! Streams over QUIC whose data the client does not take.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use hybriq::{StreamId, transport::Blocked};

/// The streams that were blocked when the watch looked last, with what they had, and since when.
#[derive(Debug, Default)]
pub(crate) struct Stalls(BTreeMap<StreamId, (u64, Instant)>);

impl Stalls {
    /// Returns true if no stream was blocked.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of streams that were blocked.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes the streams that are blocked now. Returns those that are for this time.
    pub(crate) fn look(
        &mut self,
        blocked: impl Iterator<Item = Blocked>,
        now: Instant,
        time: Duration,
    ) -> Vec<StreamId> {
        let before = std::mem::take(&mut self.0);
        let mut stalled = Vec::new();
        for Blocked { id, progress, .. } in blocked {
            let since = match before.get(&id) {
                Some(&(had, since)) if had == progress => since,
                _ => now,
            };
            if now.saturating_duration_since(since) >= time {
                stalled.push(id);
            } else {
                self.0.insert(id, (progress, since));
            }
        }
        stalled
    }
}
