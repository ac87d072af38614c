//! The memory that clients take, against the budget of the server.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of a connection of HTTP/1.1 between requests: its task, TLS and the buffers of both. A test compares
/// these numbers with what is allocated.
pub(crate) const HTTP1_CONNECTION: u64 = 42 << 10;

/// Bytes of a connection of HTTP/2 without requests.
pub(crate) const HTTP2_CONNECTION: u64 = 48 << 10;

/// Bytes of a connection over QUIC without requests, beside those that the transport counts: its tasks, its TLS,
/// and the state of HTTP/3.
pub(crate) const QUIC_CONNECTION: u64 = 25 << 10;

/// Bytes of an ordinary request that is under way, without its body, beyond those of its connection.
pub(crate) const HTTP1_REQUEST: u64 = 1 << 10;

/// The same of HTTP/2: its task and its fields.
pub(crate) const HTTP2_REQUEST: u64 = 4 << 10;

/// The same of HTTP/3, with both halves of its stream.
pub(crate) const HTTP3_REQUEST: u64 = 15 << 9;

/// Counts the memory of clients: as the last look over all connections found it, and what came since.
#[derive(Debug)]
pub(crate) struct Memory {
    budget: u64,
    counted: AtomicU64,
    /// Bytes of connections that came since the last look began.
    added: AtomicU64,
    is_short: AtomicBool,
}

impl Memory {
    pub(crate) const fn new(budget: u64) -> Self {
        Self {
            budget,
            counted: AtomicU64::new(0),
            added: AtomicU64::new(0),
            is_short: AtomicBool::new(false),
        }
    }

    /// Returns true if there is a budget.
    pub(crate) const fn is_bounded(&self) -> bool {
        self.budget < u64::MAX
    }

    /// Returns true if new work must wait. It costs one load.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Counts a new connection.
    pub(crate) fn on_connection(&self, bytes: u64) {
        let added = self.added.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.judge(self.counted.load(Ordering::Relaxed), added);
    }

    /// Begins a look. Returns what is to be given to [`end_look`](Self::end_look).
    pub(crate) fn begin_look(&self) -> u64 {
        self.added.load(Ordering::Relaxed)
    }

    /// Takes what a look found. Returns the bytes beyond the budget.
    pub(crate) fn end_look(&self, counted: u64, added_before: u64) -> u64 {
        self.counted.store(counted, Ordering::Relaxed);
        let added = self.added.fetch_sub(added_before, Ordering::Relaxed) - added_before;
        self.judge(counted, added);
        (counted + added).saturating_sub(self.budget)
    }

    fn judge(&self, counted: u64, added: u64) {
        let is_short = counted.saturating_add(added) > self.budget;
        if self.is_short.load(Ordering::Relaxed) != is_short {
            self.is_short.store(is_short, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_during_a_look_counts_until_the_next() {
        let memory = Memory::new(100);
        memory.on_connection(60);
        let before = memory.begin_look();
        memory.on_connection(50);
        assert!(memory.is_short());
        assert_eq!(memory.end_look(60, before), 10);
        assert!(memory.is_short());
        let before = memory.begin_look();
        assert_eq!(memory.end_look(90, before), 0);
        assert!(!memory.is_short());
    }
}
