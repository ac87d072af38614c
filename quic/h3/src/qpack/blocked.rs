//! Streams whose field sections wait for entries.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::size_of,
};

/// Streams that wait for entries, in the order of the entries, and streams that are ready.
#[derive(Debug)]
pub(super) struct Blocked {
    /// Insert counts for which streams wait.
    required: BTreeMap<u64, u64>,
    /// The same with their streams.
    order: BTreeSet<(u64, u64)>,
    /// Streams whose entries came, until the caller knows.
    ready: BTreeSet<u64>,
}

impl Blocked {
    pub(super) const fn new() -> Self {
        Self {
            required: BTreeMap::new(),
            order: BTreeSet::new(),
            ready: BTreeSet::new(),
        }
    }

    /// Returns the number of streams that wait.
    pub(super) fn waiting(&self) -> usize {
        self.order.len()
    }

    /// Returns true if a stream waits.
    pub(super) fn contains(&self, stream: u64) -> bool {
        self.required.contains_key(&stream)
    }

    /// Notes that a stream waits until `required` entries have been inserted.
    pub(super) fn insert(&mut self, stream: u64, required: u64) {
        self.remove(stream);
        self.required.insert(stream, required);
        self.order.insert((required, stream));
    }

    /// Forgets a stream.
    pub(super) fn remove(&mut self, stream: u64) {
        if let Some(required) = self.required.remove(&stream) {
            self.order.remove(&(required, stream));
        }
        self.ready.remove(&stream);
    }

    /// Notes the number of entries that were inserted.
    pub(super) fn on_inserted(&mut self, inserted: u64) {
        while let Some(&(required, stream)) = self.order.first() {
            if required > inserted {
                return;
            }
            self.remove(stream);
            self.ready.insert(stream);
        }
    }

    /// Returns a stream whose entries came, once.
    pub(super) fn next_ready(&mut self) -> Option<u64> {
        self.ready.pop_first()
    }

    /// Returns the bytes of memory that the streams take. Nodes of trees are half full at least.
    pub(super) fn memory(&self) -> usize {
        let waiting = 2 * size_of::<(u64, u64)>() * self.waiting();
        2 * (waiting + size_of::<u64>() * self.ready.len())
    }
}
