//! The interface for storing a client's sessions, in memory or beyond the process.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
};

use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

/// Store of a client's sessions, so that later connections can resume, even in another process.
/// Only s2n-tls uses one: rustls cannot turn its sessions into bytes, and refuses a store.
///
/// Pass it to [`ClientOptions::session_store`]. It stores opaque bytes; those of another version of
/// this library, or of another provider, are ignored.
///
/// # Security
/// Whoever has the bytes can resume the session and read its 0-RTT data: protect them like a
/// password. A resumed session presents no certificate, so that only clients with the same [`Trust`]
/// should share a store.
///
/// [`ClientOptions::session_store`]: crate::ClientOptions::session_store
/// [`Trust`]: crate::Trust
pub trait SessionStore: Send + Sync {
    /// Stores the newest session of a server, replacing an older one.
    fn put(&self, server_name: &str, session: &[u8]);

    /// Takes the session of a server out of the store.
    ///
    /// A provider that may use it again puts it back at once.
    fn take(&self, server_name: &str) -> Option<Vec<u8>>;
}

/// Number of servers that [`MemorySessions`] remembers.
const SERVERS: usize = 256;

/// Sessions in memory: the default. Stores one session for each of 256 servers.
#[derive(Default)]
pub struct MemorySessions(Mutex<ByServer>);

#[derive(Default)]
struct ByServer {
    sessions: HashMap<String, (u64, Zeroizing<Vec<u8>>)>,
    /// Counter of insertions, to find the oldest.
    clock: u64,
}

impl MemorySessions {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl SessionStore for MemorySessions {
    fn put(&self, server_name: &str, session: &[u8]) {
        let mut by_server = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        by_server.clock = by_server.clock.wrapping_add(1);
        let clock = by_server.clock;
        let sessions = &mut by_server.sessions;
        if sessions.len() >= SERVERS && !sessions.contains_key(server_name) {
            let oldest = sessions.iter().min_by_key(|(_, (put_at, _))| *put_at);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                sessions.remove(&oldest);
            }
        }
        let session = Zeroizing::new(session.to_vec());
        sessions.insert(server_name.to_owned(), (clock, session));
    }

    fn take(&self, server_name: &str) -> Option<Vec<u8>> {
        let mut by_server = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, mut session) = by_server.sessions.remove(server_name)?;
        Some(std::mem::take(&mut *session))
    }
}

impl fmt::Debug for MemorySessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySessions").finish_non_exhaustive()
    }
}
