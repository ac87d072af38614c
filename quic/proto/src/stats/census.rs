//! What an endpoint, a connection or a server holds, table by table.

use std::fmt;

/// Tables that may be larger at rest than they were when the connection or the server was fresh,
/// each with the reason. All of them are limited by the protocol or by a limit of this library, and
/// [`Census::grown_since`] leaves them out.
pub const MAY_GROW: [(&str, &str); 14] = [
    (
        "ranges of received packets",
        "until a packet that acknowledges was acknowledged itself; `limits::ACK_RANGES` at most",
    ),
    (
        "records of sent packets",
        "packets with nothing but acknowledgements leave at the next ACK frame; `limits::SENT_PACKETS` at most",
    ),
    (
        "records of lost packets",
        "they may still be acknowledged, and expire with the next loss; `limits::LOST_PACKETS` at most",
    ),
    (
        "skipped packet numbers",
        "a few numbers, kept so that acknowledging them is noticed (RFC 9000 §21.4)",
    ),
    (
        "own connection ids",
        "the peer asks for as many as it wants; `limits::LOCAL_CIDS` at most, and as many that it retires",
    ),
    (
        "connection ids of the peer",
        "spare ones arrive after the handshake; `limits::PEER_CIDS` at most",
    ),
    (
        "routes by connection id",
        "one for each of the connection ids that peers may use",
    ),
    (
        "tokens of stateless resets",
        "one for each of the connection ids that peers gave",
    ),
    (
        "TLS sessions",
        "a client keeps its session until the server's tickets came, or for a few seconds",
    ),
    (
        "timers of partial ClientHellos",
        "what is over leaves the queue when its time comes",
    ),
    (
        "timers of early packets",
        "what is over leaves the queue when its time comes",
    ),
    (
        "handles of the application",
        "as many as the application wants",
    ),
    (
        "numbers of sessions that are over",
        "the last 64 of a connection, so that streams that come late for them are refused at once",
    ),
    (
        "numbers of requests that are over",
        "the last 64 of a connection with HTTP Datagrams, so that those that come late are dropped",
    ),
];

/// Tables that a connection has as long as it lives; [`Census::leftovers`] leaves them out.
pub const FOR_LIFE: [&str; 10] = [
    "connections",
    "paths",
    "packet number spaces",
    "keys of 1-RTT packets",
    "streams of handshake messages",
    "outcomes of the handshake",
    "certificates of the peer",
    "token that was spent",
    "names of the server",
    "records of the server",
];

/// Every table, queue, task, timer and permit of an object, with its entries and their bytes.
///
/// A connection at rest holds what it held when it was fresh: whatever is left after its streams,
/// sessions and requests are over is a leak. [`grown_since`](Self::grown_since) finds leaks.
///
/// # Examples
/// ```
/// use hybriq_proto::stats::census::Census;
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
    /// Counts a table. Tables with the same name are added up.
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

    /// Returns the number of entries of a table; 0 if the table was not counted.
    pub fn entries(&self, name: &str) -> usize {
        let found = self.0.iter().find(|holding| holding.name == name);
        found.map_or(0, |holding| holding.entries)
    }

    /// Returns the bytes of all tables.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|holding| holding.bytes).sum()
    }

    /// Returns what is held in addition to `fresh`: the tables with more entries or more bytes, and by
    /// how much. It is [empty](Self::is_empty) at rest. Tables that [`MAY_GROW`] are left out.
    #[must_use]
    pub fn grown_since(&self, fresh: &Self) -> Self {
        let must_not_grow = |now: &&Holding| MAY_GROW.iter().all(|(name, _)| *name != now.name);
        let grown = self.0.iter().filter(must_not_grow).filter_map(|now| {
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

    /// Returns what a single connection at rest should not hold: everything but the tables that it has [for
    /// life](FOR_LIFE) and those that [`MAY_GROW`]. It is [empty](Self::is_empty) once the handshake was
    /// confirmed, all streams are over and everything was acknowledged.
    #[must_use]
    pub fn leftovers(&self) -> Self {
        let holds = |held: &&Holding| held.entries > 0 || held.bytes > 0;
        let left = self.0.iter().filter(holds);
        let left = left.filter(|held| !FOR_LIFE.contains(&held.name));
        let left = left.filter(|held| MAY_GROW.iter().all(|(name, _)| *name != held.name));
        Self(left.copied().collect())
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
    fn what_may_grow_and_what_is_for_life_is_left_out() {
        let census = Census::default()
            .with("paths", 1, 100)
            .with("own connection ids", 4, 64)
            .with("stream data to read", 0, 7)
            .with("pieces of stream data", 0, 0);
        let left = Census::default().with("stream data to read", 0, 7);
        assert_eq!(census.leftovers(), left);
        assert_eq!(
            census.grown_since(&Census::default()),
            Census::default()
                .with("paths", 1, 100)
                .with("stream data to read", 0, 7)
        );
    }

    #[test]
    fn tables_of_one_name_are_added_up() {
        let mut census = Census::default().with("streams", 1, 10);
        census.add_of::<u64>("streams", 2);
        assert_eq!(census.entries("streams"), 3);
        assert_eq!(census.bytes(), 26);
    }
}
