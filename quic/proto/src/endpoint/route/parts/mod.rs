//! A hash table whose growth never takes long.

use std::hash::{BuildHasher, Hash};

use hashbrown::{HashTable, hash_table::Entry};

#[cfg(test)]
mod tests;

/// Number of parts: with a million entries, the growth of one moves 16,000.
const PARTS: usize = 64;

/// Smallest capacity at which a part gives memory back.
const LARGE: usize = 32;

/// Hash table in parts that grow one by one. A single table would double in one step, and with
/// 100,000 connections everything else would wait for that.
#[derive(Debug)]
pub(in crate::endpoint) struct Parts<K, V, S> {
    tables: Box<[HashTable<(K, V)>; PARTS]>,
    hasher: S,
    len: usize,
}

impl<K: Eq + Hash, V, S: BuildHasher> Parts<K, V, S> {
    pub(in crate::endpoint) fn new(hasher: S) -> Self {
        Self {
            tables: Box::new([const { HashTable::new() }; PARTS]),
            hasher,
            len: 0,
        }
    }

    pub(in crate::endpoint) const fn len(&self) -> usize {
        self.len
    }

    pub(in crate::endpoint) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the part of a hash, chosen by bits that its table does not use.
    #[inline]
    const fn part(hash: u64) -> usize {
        (hash >> 40) as usize % PARTS
    }

    #[inline]
    pub(in crate::endpoint) fn get(&self, key: &K) -> Option<&V> {
        let hash = self.hasher.hash_one(key);
        let part = self.tables.get(Self::part(hash))?;
        part.find(hash, |(known, _)| known == key)
            .map(|(_, value)| value)
    }

    pub(in crate::endpoint) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let entries = self.tables.iter().flat_map(HashTable::iter);
        entries.map(|(key, value)| (key, value))
    }

    /// Adds an entry or replaces its value.
    pub(in crate::endpoint) fn insert(&mut self, key: K, value: V) {
        let hash = self.hasher.hash_one(&key);
        let hasher = &self.hasher;
        let Some(part) = self.tables.get_mut(Self::part(hash)) else {
            return;
        };
        match part.entry(
            hash,
            |(known, _)| *known == key,
            |(known, _)| hasher.hash_one(known),
        ) {
            Entry::Occupied(mut entry) => entry.get_mut().1 = value,
            Entry::Vacant(entry) => {
                entry.insert((key, value));
                self.len += 1;
            }
        }
    }

    /// Removes an entry, and gives memory back after a burst.
    pub(in crate::endpoint) fn remove(&mut self, key: &K) -> Option<V> {
        let hash = self.hasher.hash_one(key);
        let hasher = &self.hasher;
        let part = self.tables.get_mut(Self::part(hash))?;
        let found = part.find_entry(hash, |(known, _)| known == key).ok()?;
        let ((_, value), _) = found.remove();
        self.len -= 1;
        if part.is_empty() || part.capacity() > LARGE && part.len() < part.capacity() / 8 {
            part.shrink_to(part.len() * 2, |(known, _)| hasher.hash_one(known));
        }
        Some(value)
    }
}
