//! The table of a worker's connections.

use std::sync::Arc;

use super::{
    attempt::Promise, connection::SharedConnection, meter::Life, sockets::Used, timers::Deadline,
};
use hybriq_proto::{endpoint::Slot, stats::MemoryHeld};

/// Largest number of connections that are asked for their memory in one turn.
const CENSUS: usize = 256;

/// The connections of a worker, by slot.
#[derive(Default)]
pub(super) struct Connections {
    entries: Vec<Option<Entry>>,
    len: usize,
}

/// A connection and the state that its worker keeps about it.
pub(super) struct Entry {
    pub(super) connection: Arc<SharedConnection>,
    /// Promise to the task that waits for the handshake.
    pub(super) promise: Option<Promise>,
    pub(super) deadline: Deadline,
    /// Sockets that it uses, if the worker has several.
    pub(super) sockets: Used,
    /// True while the connection waits to be serviced.
    pub(super) touched: bool,
    /// True while the connection waits to transmit.
    pub(super) sending: bool,
    /// True once the end of the connection was traced.
    pub(super) told_end: bool,
    /// Times of the connection, for metrics.
    pub(super) life: Life,
}

impl Connections {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&mut self, slot: Slot) -> Option<&mut Entry> {
        self.entries.get_mut(slot.0 as usize)?.as_mut()
    }

    pub(super) fn insert(
        &mut self,
        connection: Arc<SharedConnection>,
        promise: Promise,
        life: Life,
    ) {
        let index = connection.slot.0 as usize;
        if index >= self.entries.len() {
            self.entries.resize_with(index + 1, || None);
        }
        let entry = Entry {
            connection,
            promise: Some(promise),
            deadline: Deadline::default(),
            sockets: Used::default(),
            touched: false,
            sending: false,
            told_end: false,
            life,
        };
        if self.entries[index].replace(entry).is_none() {
            self.len += 1;
        }
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Option<Entry> {
        let removed = self.entries.get_mut(slot.0 as usize)?.take();
        self.len -= usize::from(removed.is_some());
        removed
    }

    /// Returns the memory that the connections of some slots hold, from one on, and the slot to go on
    /// with; `None` after the last.
    pub(super) fn memory_held(&self, from: usize) -> (MemoryHeld, Option<usize>) {
        let mut held = MemoryHeld::default();
        let end = self.entries.len().min(from.saturating_add(CENSUS));
        for entry in self.entries.get(from..end).into_iter().flatten().flatten() {
            held += entry.connection.lock().core.memory_held();
        }
        (held, (end < self.entries.len()).then_some(end))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the first connection at this index or behind it, with its index.
    pub(super) fn first_from(&mut self, index: usize) -> Option<(usize, &mut Entry)> {
        let rest = self.entries.iter_mut().enumerate().skip(index);
        rest.into_iter()
            .find_map(|(index, entry)| Some((index, entry.as_mut()?)))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut().flatten()
    }
}
