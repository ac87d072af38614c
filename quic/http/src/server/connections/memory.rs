//! The memory that clients take, compared with the budget of the server.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

/// Bytes of an HTTP/1.1 connection between requests: its task, TLS and the buffers of both. A test compares these
/// numbers with what is allocated.
pub(crate) const HTTP1_CONNECTION: u64 = 42 << 10;

/// Bytes of an HTTP/2 connection without requests.
pub(crate) const HTTP2_CONNECTION: u64 = 48 << 10;

/// Bytes of a QUIC connection without requests, in addition to what the transport counts: its tasks, its TLS, and the
/// state of HTTP/3.
pub(crate) const QUIC_CONNECTION: u64 = 23 << 9;

/// Bytes of a request in progress over HTTP/1.1, without its fields and body, in addition to those of its connection.
pub(crate) const HTTP1_REQUEST: u64 = 1 << 10;

/// The same for HTTP/2, including its task.
pub(crate) const HTTP2_REQUEST: u64 = 15 << 8;

/// The same for HTTP/3, including both halves of its stream.
pub(crate) const HTTP3_REQUEST: u64 = 13 << 9;

/// Counts the memory of clients: the bytes booked to their accounts, and what the last visit to all connections found
/// in addition.
#[derive(Debug)]
pub(crate) struct Memory {
    budget: u64,
    booked: AtomicU64,
    /// Those booked for clients whose address may be forged.
    unproven: AtomicU64,
    found: AtomicU64,
}

/// Bytes that a connection and its requests take, from its arrival until this is dropped, so that a flood between two
/// visits counts.
#[derive(Debug)]
pub(crate) struct Account {
    memory: Arc<Memory>,
    held: Mutex<Held>,
}

/// What is booked to an account.
#[derive(Debug)]
struct Held {
    bytes: u64,
    /// True if the client proved its address.
    is_proven: bool,
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
            unproven: AtomicU64::new(0),
            found: AtomicU64::new(0),
        }
    }

    /// Returns true if there is a budget.
    pub(crate) const fn is_bounded(&self) -> bool {
        self.budget < u64::MAX
    }

    /// Returns true if new work must wait.
    pub(crate) fn is_short(&self) -> bool {
        self.counted() > self.budget
    }

    /// Records the bytes that a visit found in addition to the accounts. Returns the bytes to free if clients with a
    /// proved address exceed the budget: enough to leave an eighth of it to newcomers.
    pub(crate) fn on_look(&self, found: u64) -> u64 {
        self.found.store(found, Ordering::Relaxed);
        let proven = self.proven();
        if proven > self.budget {
            proven - (self.budget - self.budget / 8)
        } else {
            0
        }
    }

    /// Returns the bytes that are booked to accounts.
    pub(crate) fn booked(&self) -> u64 {
        self.booked.load(Ordering::Relaxed)
    }

    fn counted(&self) -> u64 {
        self.booked()
            .saturating_add(self.found.load(Ordering::Relaxed))
    }

    fn proven(&self) -> u64 {
        let unproven = self.unproven.load(Ordering::Relaxed);
        self.counted().saturating_sub(unproven)
    }
}

impl Account {
    /// Opens the account of a connection whose client proved its address, with `bytes` booked.
    pub(crate) fn open(memory: &Arc<Memory>, bytes: u64) -> Arc<Self> {
        Self::new(memory, bytes, true)
    }

    /// Opens the account of a connection whose client may have forged its address. Such clients take at most half of
    /// what the others leave; beyond that, returns `None`.
    pub(crate) fn open_unproven(memory: &Arc<Memory>, bytes: u64) -> Option<Arc<Self>> {
        let unproven = memory.unproven.load(Ordering::Relaxed);
        let most = memory.budget.saturating_sub(memory.proven()) / 2;
        let has_room = unproven.saturating_add(bytes) <= most;
        has_room.then(|| Self::new(memory, bytes, false))
    }

    fn new(memory: &Arc<Memory>, bytes: u64, is_proven: bool) -> Arc<Self> {
        let account = Self {
            memory: memory.clone(),
            held: Mutex::new(Held {
                bytes: 0,
                is_proven,
            }),
        };
        account.add(bytes);
        Arc::new(account)
    }

    /// Notes that the client proved its address.
    pub(crate) fn prove(&self) {
        let mut held = self.held();
        if !held.is_proven {
            held.is_proven = true;
            self.memory
                .unproven
                .fetch_sub(held.bytes, Ordering::Relaxed);
        }
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
        self.held().bytes
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, bytes: u64) {
        let mut held = self.held();
        held.bytes += bytes;
        self.memory.booked.fetch_add(bytes, Ordering::Relaxed);
        if !held.is_proven {
            self.memory.unproven.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn remove(&self, bytes: u64) {
        let mut held = self.held();
        held.bytes -= bytes;
        self.memory.booked.fetch_sub(bytes, Ordering::Relaxed);
        if !held.is_proven {
            self.memory.unproven.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.remove(self.bytes());
    }
}

impl Share {
    /// Books more bytes of the request.
    pub(crate) fn grow(&mut self, bytes: u64) {
        self.account.add(bytes);
        self.bytes += bytes;
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
        let mut share = second.share(10);
        share.grow(20);
        assert_eq!(second.bytes(), 50);
        assert!(memory.is_short());
        drop(first);
        assert!(!memory.is_short());
        assert_eq!(memory.on_look(70), 32, "an eighth is to spare");
        assert!(memory.is_short());
        drop(second);
        assert!(memory.is_short(), "a request keeps the account");
        drop(share);
        assert!(!memory.is_short());
    }

    #[test]
    fn forged_addresses_take_half_of_what_is_free() {
        let memory = Arc::new(Memory::new(100));
        let first = Account::open_unproven(&memory, 20).unwrap();
        let share = first.share(20);
        let other = Account::open_unproven(&memory, 10).unwrap();
        assert!(Account::open_unproven(&memory, 1).is_none());
        assert_eq!(memory.booked(), 50);
        // One that is proven frees their share, and takes from what they may share.
        first.prove();
        assert!(Account::open_unproven(&memory, 21).is_none());
        let last = Account::open_unproven(&memory, 20).unwrap();
        drop((share, first, other));
        assert_eq!(memory.on_look(100), 0, "nobody ends for them");
        assert!(memory.is_short());
        assert_eq!(memory.on_look(101), 13);
        drop(last);
        assert_eq!(memory.booked(), 0);
        memory.on_look(0);
        assert!(Account::open_unproven(&memory, 50).is_some());
    }
}
