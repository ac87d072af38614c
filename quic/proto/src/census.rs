//! What an endpoint, a connection or a server holds, table by table.

use std::fmt;

/// Every table, queue, task, timer and permit of something, with its entries and their bytes.
///
/// A connection at rest holds what it held when it was fresh: whatever is left after its streams,
/// sessions and requests are over is a leak. [`grown_since`](Self::grown_since) finds it.
///
/// # Examples
/// ```
/// use hybriq_proto::census::Census;
///
/// let fresh = Census::default().with("streams", 0, 0);
/// let later = Census::default().with("streams", 2, 64);
/// assert_eq!(later.grown_since(&fresh).to_string(), "streams: 2 (64 bytes)");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census(Vec<Holding>);

/// One table of a [`Census`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holding {
    /// Name of the table.
    pub name: &'static str,
    /// Number of entries.
    pub entries: usize,
    /// Bytes of the entries and of what they own, without spare capacity.
    pub bytes: usize,
}

impl Census {
    /// Counts a table. Tables of the same name are added up.
    pub fn add(&mut self, name: &'static str, entries: usize, bytes: usize) {
        match self.0.iter_mut().find(|holding| holding.name == name) {
            Some(holding) => {
                holding.entries += entries;
                holding.bytes += bytes;
            }
            None => self.0.push(Holding {
                name,
                entries,
                bytes,
            }),
        }
    }

    /// Counts a table whose entries own nothing on the heap: their bytes follow from `T`.
    pub fn add_of<T>(&mut self, name: &'static str, entries: usize) {
        self.add(name, entries, entries * size_of::<T>());
    }

    /// Counts a table; the by-value twin of [`add`](Self::add).
    #[must_use]
    pub fn with(mut self, name: &'static str, entries: usize, bytes: usize) -> Self {
        self.add(name, entries, bytes);
        self
    }

    /// Adds all tables of another census.
    pub fn extend(&mut self, other: &Self) {
        for holding in &other.0 {
            self.add(holding.name, holding.entries, holding.bytes);
        }
    }

    /// Returns the tables, in the order in which they were counted.
    pub fn holdings(&self) -> &[Holding] {
        &self.0
    }

    /// Returns the number of entries of a table, 0 if nobody counted it.
    pub fn entries(&self, name: &str) -> usize {
        let found = self.0.iter().find(|holding| holding.name == name);
        found.map_or(0, |holding| holding.entries)
    }

    /// Returns the bytes of all tables.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|holding| holding.bytes).sum()
    }

    /// Returns what is held in addition to `fresh`: the tables with more entries or more bytes, and by
    /// how much. It is [empty](Self::is_empty) at rest.
    #[must_use]
    pub fn grown_since(&self, fresh: &Self) -> Self {
        let grown = self.0.iter().filter_map(|now| {
            let before = fresh.0.iter().find(|before| before.name == now.name);
            let (entries, bytes) = before.map_or((0, 0), |before| (before.entries, before.bytes));
            let grown = Holding {
                name: now.name,
                entries: now.entries.saturating_sub(entries),
                bytes: now.bytes.saturating_sub(bytes),
            };
            (grown.entries > 0 || grown.bytes > 0).then_some(grown)
        });
        Self(grown.collect())
    }

    /// Returns true if no table was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, holding) in self.0.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            let Holding {
                name,
                entries,
                bytes,
            } = holding;
            write!(f, "{separator}{name}: {entries} ({bytes} bytes)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_grew_is_told() {
        let fresh = Census::default()
            .with("streams", 1, 10)
            .with("timers", 2, 20);
        let later = Census::default()
            .with("streams", 1, 12)
            .with("timers", 1, 10)
            .with("tasks", 3, 30);
        let grown = later.grown_since(&fresh);
        assert_eq!(
            grown,
            Census::default().with("streams", 0, 2).with("tasks", 3, 30)
        );
        assert!(fresh.grown_since(&fresh).is_empty());
    }

    #[test]
    fn tables_of_one_name_are_added_up() {
        let mut census = Census::default().with("streams", 1, 10);
        census.add_of::<u64>("streams", 2);
        assert_eq!(census.entries("streams"), 3);
        assert_eq!(census.bytes(), 26);
    }
}
