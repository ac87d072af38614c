//! HTTP/3 responses that the client does not accept.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use hybriq::{StreamId, transport::Blocked};

use crate::limits::Patience;

/// The streams that were blocked at the last visit of the watch: their progress, and since when it has been the same.
#[derive(Debug, Default)]
pub(super) struct Stalls(BTreeMap<StreamId, (u64, Instant)>);

impl Stalls {
    /// Returns true if no stream was blocked.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of streams that were blocked.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Records the streams that are blocked now. Returns those that have been blocked for `time`, or for that of their
    /// route, while nothing arrived.
    pub(super) fn look<'a>(
        &mut self,
        blocked: impl Iterator<Item = Blocked>,
        patience: impl Fn(StreamId) -> Option<&'a Patience>,
        now: Instant,
        time: Duration,
    ) -> Vec<StreamId> {
        let before = std::mem::take(&mut self.0);
        let mut stalled = Vec::new();
        for Blocked { id, progress, .. } in blocked {
            let patience = patience(id);
            let Some(time) = patience.map_or(Some(time), Patience::time) else {
                continue;
            };
            let progress = progress.wrapping_add(patience.map_or(0, Patience::progress));
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

/// Stream of an ordinary request that was answered.
pub(super) struct Answered {
    pub(super) stream: StreamId,
    /// Of a request with a body, or a route with its own time.
    pub(super) patience: Option<Arc<Patience>>,
    /// True once nothing more of the response will be sent. It may still wait for the client.
    pub(super) is_over: bool,
}

/// Forgets the responses that are over and completely delivered. A response in progress may pause, and one that waits
/// for the network may have to wait for the client later.
pub(super) fn forget_taken(answered: &mut Vec<Answered>, is_delivered: impl Fn(StreamId) -> bool) {
    answered.retain(|answered| !answered.is_over || !is_delivered(answered.stream));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a response waits for when the watch looks, it is watched until the client has it.
    #[test]
    fn responses_are_watched_until_they_are_delivered() {
        let answer = |stream, is_over| Answered {
            stream: StreamId(stream),
            patience: None,
            is_over,
        };
        let mut answered = vec![answer(0, true), answer(4, false), answer(8, true)];
        forget_taken(&mut answered, |stream| stream == StreamId(0));
        let left = answered.iter().map(|answered| answered.stream.0);
        assert_eq!(left.collect::<Vec<_>>(), [4, 8]);
        forget_taken(&mut answered, |_| true);
        assert_eq!(answered.len(), 1, "one that is being sent");
    }
}
