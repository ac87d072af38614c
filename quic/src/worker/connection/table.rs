//! The table of a worker's connections, and the queues of those that wait for their turn.

use std::{collections::VecDeque, sync::Arc};

use hybriq_proto::{endpoint::Slot, stats::MemoryHeld};

use super::{SharedConnection, attempt::Promise};
use crate::{
    sync::timers::Deadline,
    worker::{meter::Life, sockets::Used},
};

/// Largest number of connections whose memory is measured in one turn.
const CENSUS: usize = 256;

/// The connections of a worker, by slot.
#[derive(Default)]
pub(in crate::worker) struct Connections {
    entries: Vec<Option<Entry>>,
    len: usize,
}

/// A connection and the state that its worker keeps about it.
pub(in crate::worker) struct Entry {
    pub(in crate::worker) connection: Arc<SharedConnection>,
    /// Promise to the task that waits for the handshake.
    pub(in crate::worker) promise: Option<Promise>,
    pub(in crate::worker) deadline: Deadline,
    /// Sockets that the connection uses, if the worker has several.
    pub(in crate::worker) sockets: Used,
    /// True while the connection waits to be serviced.
    pub(in crate::worker) touched: bool,
    /// True while the connection waits to transmit.
    pub(in crate::worker) sending: bool,
    /// True once the end of the connection was traced.
    pub(in crate::worker) told_end: bool,
    /// Times of the connection, for metrics.
    pub(in crate::worker) life: Life,
}

impl Connections {
    pub(in crate::worker) const fn len(&self) -> usize {
        self.len
    }

    pub(in crate::worker) fn get(&mut self, slot: Slot) -> Option<&mut Entry> {
        self.entries.get_mut(slot.0 as usize)?.as_mut()
    }

    pub(in crate::worker) fn insert(
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

    pub(in crate::worker) fn remove(&mut self, slot: Slot) -> Option<Entry> {
        let removed = self.entries.get_mut(slot.0 as usize)?.take();
        self.len -= usize::from(removed.is_some());
        removed
    }

    /// Returns the memory that the connections of some slots hold, starting at one, and the slot to
    /// continue with; `None` after the last.
    pub(in crate::worker) fn memory_held(&self, from: usize) -> (MemoryHeld, Option<usize>) {
        let mut held = MemoryHeld::default();
        let end = self.entries.len().min(from.saturating_add(CENSUS));
        for entry in self.entries.get(from..end).into_iter().flatten().flatten() {
            held += entry.connection.lock().core.memory_held();
        }
        (held, (end < self.entries.len()).then_some(end))
    }

    pub(in crate::worker) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the first connection at or after this index, with its index.
    pub(in crate::worker) fn first_from(&mut self, index: usize) -> Option<(usize, &mut Entry)> {
        let rest = self.entries.iter_mut().enumerate().skip(index);
        rest.into_iter()
            .find_map(|(index, entry)| Some((index, entry.as_mut()?)))
    }

    pub(in crate::worker) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().flatten()
    }

    pub(in crate::worker) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut().flatten()
    }
}

/// Connections that wait for their turn. Each connection is in a queue at most once.
#[derive(Debug, Default)]
pub(in crate::worker) struct Queues {
    /// Connections to be serviced in this turn.
    pub(in crate::worker) touched: Vec<Slot>,
    /// Connections that may have something to send, in the order of sending.
    pub(in crate::worker) sending: VecDeque<Slot>,
}

impl Queues {
    /// Adds a connection to those to be serviced.
    pub(in crate::worker) fn touch(&mut self, entry: &mut Entry) {
        if !entry.touched {
            entry.touched = true;
            self.touched.push(entry.connection.slot);
        }
    }

    /// Adds a connection to those that may send.
    pub(in crate::worker) fn let_send(&mut self, entry: &mut Entry) {
        if !entry.sending {
            entry.sending = true;
            self.sending.push_back(entry.connection.slot);
        }
    }

    /// Removes all connections, keeping the memory.
    pub(in crate::worker) fn clear(&mut self) {
        self.touched.clear();
        self.sending.clear();
    }
}
