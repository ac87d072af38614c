//! A client's memory of tokens for later connections.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use hashbrown::HashMap;
use hybriq_proto::config::TokenStore;

#[cfg(test)]
mod tests;

/// Number of servers whose tokens are kept; a new one replaces the least recently used.
const SERVERS: usize = 256;

/// Number of tokens kept for one server; a new one replaces the oldest.
const TOKENS: usize = 4;

/// Store that keeps tokens in memory: four for each of 256 servers.
#[derive(Default)]
pub struct MemoryTokenStore(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    servers: HashMap<String, Server>,
    /// Counter of changes, to find the server least recently used.
    turn: u64,
}

#[derive(Default)]
struct Server {
    tokens: VecDeque<(u32, Bytes)>,
    turn: u64,
}

impl MemoryTokenStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, change: impl FnOnce(&mut Memory) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl TokenStore for MemoryTokenStore {
    fn put(&self, server_name: &str, version: u32, token: Bytes) {
        self.with(|memory| memory.put(server_name, (version, token)));
    }

    fn take(&self, server_name: &str, version: u32) -> Option<Bytes> {
        self.with(|memory| {
            let server = memory.servers.get_mut(server_name)?;
            // The newest is valid longest.
            let place = server.tokens.iter().rposition(|(of, _)| *of == version)?;
            let (_, token) = server.tokens.remove(place)?;
            if server.tokens.is_empty() {
                memory.servers.remove(server_name);
            }
            Some(token)
        })
    }
}

impl Memory {
    fn put(&mut self, server_name: &str, token: (u32, Bytes)) {
        self.turn += 1;
        if self.servers.len() >= SERVERS && !self.servers.contains_key(server_name) {
            self.forget_oldest();
        }
        let server = self.servers.entry_ref(server_name).or_default();
        server.turn = self.turn;
        if server.tokens.contains(&token) {
            return;
        }
        if server.tokens.len() >= TOKENS {
            server.tokens.pop_front();
        }
        server.tokens.push_back(token);
    }

    fn forget_oldest(&mut self) {
        let oldest = self.servers.iter().min_by_key(|(_, server)| server.turn);
        if let Some(name) = oldest.map(|(name, _)| name.clone()) {
            self.servers.remove(&name);
        }
    }
}

impl fmt::Debug for MemoryTokenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTokenStore").finish_non_exhaustive()
    }
}
