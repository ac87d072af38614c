use std::collections::VecDeque;

use super::StreamId;

/// Streams that wait for their turn, each at most once.
///
/// Taking a stream out of the middle would be a search; it is counted as stale instead and skipped
/// when its turn comes.
#[derive(Debug, Default)]
pub(super) struct Queue {
    ids: VecDeque<StreamId>,
    stale: usize,
    /// Bytes the stream in front sent in its turn.
    turn: usize,
}

/// Stale entries that are not worth cleaning up.
const STALE: usize = 32;

impl Queue {
    /// Whether no stream waits, stale ones aside.
    pub(super) fn is_empty(&self) -> bool {
        self.ids.len() <= self.stale
    }

    pub(super) fn push(&mut self, id: StreamId) {
        self.ids.push_back(id);
    }

    pub(super) fn front(&self) -> Option<StreamId> {
        self.ids.front().copied()
    }

    /// The stream in front is done.
    pub(super) fn pop(&mut self) {
        self.ids.pop_front();
        self.turn = 0;
    }

    /// The entry in front turned out to be stale.
    pub(super) fn pop_stale(&mut self) {
        self.pop();
        self.stale = self.stale.saturating_sub(1);
    }

    /// The stream in front sent something; after `quantum` bytes it goes behind the others.
    #[inline]
    pub(super) fn sent(&mut self, bytes: usize, quantum: usize) {
        self.turn += bytes;
        if self.turn >= quantum {
            self.turn = 0;
            if self.ids.len() > 1 {
                self.ids.rotate_left(1);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.ids.len()
    }

    /// One of the waiting streams no longer is. `waits` tells the others from the stale ones.
    pub(super) fn abandon(&mut self, waits: impl Fn(StreamId) -> bool) {
        self.stale += 1;
        if self.stale > STALE && self.stale > self.ids.len() / 2 {
            self.ids.retain(|&id| waits(id));
            self.stale = 0;
            self.turn = 0;
        }
    }
}
