//! The memory that clients take, against the budget of the server.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Bytes of a connection of HTTP/1.1 between requests: its task, TLS and the buffers of both. A test compares
/// these numbers with what is allocated.
pub(crate) const HTTP1_CONNECTION: u64 = 42 << 10;

/// Bytes of a connection of HTTP/2 without requests.
pub(crate) const HTTP2_CONNECTION: u64 = 48 << 10;

/// Bytes of a connection over QUIC without requests, beside those that the transport counts: its tasks, its TLS,
/// and the state of HTTP/3.
pub(crate) const QUIC_CONNECTION: u64 = 25 << 10;

/// Bytes of a request that is under way, without its fields and body, beyond those of its connection.
pub(crate) const HTTP1_REQUEST: u64 = 1 << 10;

/// The same of HTTP/2, with its task.
pub(crate) const HTTP2_REQUEST: u64 = 15 << 8;

/// The same of HTTP/3, with both halves of its stream.
pub(crate) const HTTP3_REQUEST: u64 = 13 << 9;

/// Counts the memory of clients: what is booked to their accounts, and what the last look over all connections found
/// besides.
#[derive(Debug)]
pub(crate) struct Memory {
    budget: u64,
    booked: AtomicU64,
    found: AtomicU64,
}

/// Bytes that a connection and its requests take, from when it comes until this is dropped: a flood between two looks counts.
#[derive(Debug)]
pub(crate) struct Account {
    memory: Arc<Memory>,
    bytes: AtomicU64,
}

/// Bytes of a request, which count until this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    account: Arc<Account>,
    bytes: u64,
}

impl Memory {
    pub(crate) const fn new(budget: u64) -> Self {
        Self {
            budget,
            booked: AtomicU64::new(0),
            found: AtomicU64::new(0),
        }
    }

    /// Returns true if there is a budget.
    pub(crate) const fn is_bounded(&self) -> bool {
        self.budget < u64::MAX
    }

    /// Returns true if new work must wait.
    pub(crate) fn is_short(&self) -> bool {
        self.is_bounded() && self.beyond() > 0
    }

    /// Takes the bytes that a look found beside the accounts. Returns those beyond the budget.
    pub(crate) fn on_look(&self, found: u64) -> u64 {
        self.found.store(found, Ordering::Relaxed);
        self.beyond()
    }

    fn beyond(&self) -> u64 {
        let booked = self.booked.load(Ordering::Relaxed);
        let counted = booked.saturating_add(self.found.load(Ordering::Relaxed));
        counted.saturating_sub(self.budget)
    }
}

impl Account {
    /// Opens the account of a connection that takes so many bytes.
    pub(crate) fn open(memory: &Arc<Memory>, bytes: u64) -> Arc<Self> {
        let account = Self {
            memory: memory.clone(),
            bytes: AtomicU64::new(0),
        };
        account.add(bytes);
        Arc::new(account)
    }

    /// Books bytes of a request.
    pub(crate) fn share(self: &Arc<Self>, bytes: u64) -> Share {
        self.add(bytes);
        Share {
            account: self.clone(),
            bytes,
        }
    }

    /// Returns the bytes that are booked.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        // All threads share this one.
        if self.memory.is_bounded() {
            self.memory.booked.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn remove(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if self.memory.is_bounded() {
            self.memory.booked.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.remove(self.bytes());
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.account.remove(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_counts_beside_what_a_look_found_until_it_is_dropped() {
        let memory = Arc::new(Memory::new(100));
        let first = Account::open(&memory, 60);
        assert!(!memory.is_short());
        let second = Account::open(&memory, 20);
        let share = second.share(30);
        assert_eq!(second.bytes(), 50);
        assert!(memory.is_short());
        drop(first);
        assert!(!memory.is_short());
        assert_eq!(memory.on_look(70), 20);
        assert!(memory.is_short());
        drop(second);
        assert!(memory.is_short(), "a request keeps the account");
        drop(share);
        assert!(!memory.is_short());
    }
}
