//! Requests to a running server, and its reports.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Channel on which a test makes requests to a running server, and gets its reports.
#[derive(Debug, Default)]
pub struct Activity {
    updates_keys: AtomicBool,
    key_updates: AtomicU64,
    addresses: Mutex<HashSet<SocketAddr>>,
}

impl Activity {
    /// Requests a key update with every later stream.
    pub fn update_keys(&self) {
        self.updates_keys.store(true, Ordering::Relaxed);
    }

    /// Returns true if a key update was requested.
    pub fn is_to_update_keys(&self) -> bool {
        self.updates_keys.load(Ordering::Relaxed)
    }

    /// Notes the number of key updates on its connection.
    pub fn saw_key_updates(&self, count: u64) {
        self.key_updates.fetch_max(count, Ordering::Relaxed);
    }

    /// Returns the number of key updates that it has seen, if it tells.
    pub fn key_updates(&self) -> u64 {
        self.key_updates.load(Ordering::Relaxed)
    }

    /// Notes the address of its client.
    pub fn saw_client_at(&self, address: SocketAddr) {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(address);
    }

    /// Returns the number of addresses at which its clients were seen.
    pub fn client_addresses(&self) -> usize {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }
}
