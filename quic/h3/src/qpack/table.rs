//! The dynamic table (RFC 9204 §3.2).

use std::collections::VecDeque;

use bytes::Bytes;

/// Bytes of an entry besides its name and value (RFC 9204 §3.2.1).
pub(super) const OVERHEAD: usize = 32;

/// An entry.
#[derive(Clone, Debug)]
pub(super) struct Entry<M> {
    pub(super) name: Bytes,
    pub(super) value: Bytes,
    /// What an end notes about it.
    pub(super) note: M,
}

/// A dynamic table. Entries have absolute indices, from 0, in the order in which they were inserted.
#[derive(Debug)]
pub(super) struct Table<M> {
    entries: VecDeque<Entry<M>>,
    size: usize,
    capacity: usize,
    /// Number of entries that were ever inserted.
    inserted: u64,
}

impl<M> Entry<M> {
    pub(super) fn size(&self) -> usize {
        size_of(&self.name, &self.value)
    }
}

/// Returns the size of an entry (RFC 9204 §3.2.1).
pub(super) const fn size_of(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + OVERHEAD
}

impl<M> Table<M> {
    pub(super) const fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            size: 0,
            capacity: 0,
            inserted: 0,
        }
    }

    pub(super) const fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) const fn size(&self) -> usize {
        self.size
    }

    pub(super) const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the absolute index of the oldest entry.
    pub(super) fn oldest(&self) -> u64 {
        self.inserted - self.entries.len() as u64
    }

    /// Returns an entry by its absolute index.
    pub(super) fn get(&self, index: u64) -> Option<&Entry<M>> {
        let place = index.checked_sub(self.oldest())?;
        self.entries.get(usize::try_from(place).ok()?)
    }

    pub(super) fn get_mut(&mut self, index: u64) -> Option<&mut Entry<M>> {
        let place = index.checked_sub(self.oldest())?;
        self.entries.get_mut(usize::try_from(place).ok()?)
    }

    /// Returns the entries with their absolute indices, the newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = (u64, &Entry<M>)> {
        let indices = (self.oldest()..self.inserted).rev();
        indices.zip(self.entries.iter().rev())
    }

    /// Removes the oldest entry.
    pub(super) fn evict(&mut self) -> Option<Entry<M>> {
        let entry = self.entries.pop_front()?;
        self.size -= entry.size();
        Some(entry)
    }

    /// Sets the capacity, and evicts what is beyond it.
    pub(super) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.make_room(0);
    }

    /// Evicts entries until `bytes` more fit. Returns false if there cannot be.
    pub(super) fn make_room(&mut self, bytes: usize) -> bool {
        if bytes > self.capacity {
            return false;
        }
        while self.size > self.capacity - bytes {
            self.evict();
        }
        true
    }

    /// Inserts an entry, for which there is room. Returns its absolute index.
    pub(super) fn insert(&mut self, name: Bytes, value: Bytes, note: M) -> u64 {
        let entry = Entry { name, value, note };
        self.size += entry.size();
        self.entries.push_back(entry);
        self.inserted += 1;
        self.inserted - 1
    }

    /// Returns the bytes of memory that the table itself takes.
    pub(super) fn memory(&self) -> usize {
        self.entries.capacity() * std::mem::size_of::<Entry<M>>() + self.size
    }
}
