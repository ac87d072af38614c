//! The interface for storing a client's sessions, in memory or beyond the process.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
};

use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

/// Key of a session in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SessionKey<'a> {
    /// Name of the server.
    pub server_name: &'a str,
    /// Digest of the roots that the client trusts, of its certificate and its policy: a resumed session presents no
    /// certificate, so clients with other roots, certificates or policies must not use it.
    pub policy: [u8; 16],
}

impl<'a> SessionKey<'a> {
    /// Creates the key of a server for clients with this policy.
    pub const fn new(server_name: &'a str, policy: [u8; 16]) -> Self {
        Self {
            server_name,
            policy,
        }
    }
}

/// Store of a client's sessions, so that later connections resume, even in another process. Only
/// s2n-tls uses one: rustls has no bytes for its sessions, and refuses a store.
///
/// Pass it to [`ClientOptions::session_store`]. It stores opaque bytes; those of another version of
/// this library, or of another provider, are ignored.
///
/// # Security
/// Whoever has the bytes can resume the session and read its 0-RTT data: protect them like a
/// password. The policy of the key does not tell one [`Trust::also`] from another: clients with
/// different ones should not share a store.
///
/// [`ClientOptions::session_store`]: crate::ClientOptions::session_store
/// [`Trust::also`]: crate::Trust::also
pub trait SessionStore: Send + Sync {
    /// Stores the newest session of a key, replacing an older one.
    fn put(&self, key: SessionKey<'_>, session: &[u8]);

    /// Takes the session of a key out of the store.
    ///
    /// A provider that may use it again puts it back at once.
    fn take(&self, key: SessionKey<'_>) -> Option<Vec<u8>>;
}

/// Place of a client's sessions, for programs that keep them beyond the process:
/// [`Backend::session_memory`](crate::Backend::session_memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionMemory {
    /// They are bytes in a store, and resume in another process too.
    Stored,
    /// They end with the process: the TLS library cannot turn a session into bytes (rustls 0.23). A
    /// configuration keeps up to 8 tickets of each of 256 servers.
    Library,
    /// They end with the process: a stored session may have begun without the rules of the profile.
    Profile,
    /// They end with the process: a stored session may have begun without the checks of the
    /// application's [`Verifier`](crate::Verifier).
    Verifier,
    /// The application keeps them itself, in its own provider or store.
    Application,
    /// There are none, because resumption is off.
    Off,
}

/// Number of keys that [`MemorySessions`] remembers.
const SERVERS: usize = 256;

/// Sessions in memory: the default. Holds one session for each of 256 keys.
#[derive(Default)]
pub struct MemorySessions(Mutex<ByServer>);

#[derive(Default)]
struct ByServer {
    /// Sessions by policy and name.
    sessions: HashMap<([u8; 16], String), Stored>,
    /// Counter of insertions, to find the oldest.
    clock: u64,
}

struct Stored {
    put_at: u64,
    bytes: Zeroizing<Vec<u8>>,
}

impl MemorySessions {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl SessionStore for MemorySessions {
    fn put(&self, key: SessionKey<'_>, session: &[u8]) {
        let key = (key.policy, key.server_name.to_owned());
        let mut by_server = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        by_server.clock = by_server.clock.wrapping_add(1);
        let clock = by_server.clock;
        let sessions = &mut by_server.sessions;
        if sessions.len() >= SERVERS && !sessions.contains_key(&key) {
            let oldest = sessions.iter().min_by_key(|(_, stored)| stored.put_at);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                sessions.remove(&oldest);
            }
        }
        let bytes = Zeroizing::new(session.to_vec());
        let put_at = clock;
        sessions.insert(key, Stored { put_at, bytes });
    }

    fn take(&self, key: SessionKey<'_>) -> Option<Vec<u8>> {
        let key = (key.policy, key.server_name.to_owned());
        let mut by_server = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stored = by_server.sessions.remove(&key)?;
        Some(std::mem::take(&mut *stored.bytes))
    }
}

impl fmt::Debug for MemorySessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySessions").finish_non_exhaustive()
    }
}
