//! State that a client or a server keeps from one connection to the next: traits that the driver of
//! the core implements, because shared state needs a lock.

use std::{fmt, sync::Arc, time::Instant};

use bytes::Bytes;
use hybriq_tls::EarlyDataPolicy;

use crate::{
    remembered::{
        known_path::{KnownPath, PathKey},
        origin::Origins,
    },
    wire::packet::Version,
};

/// A store in which a client keeps the tokens that servers give it for later connections
/// (RFC 9000 §8.1.3).
///
/// The default, `MemoryTokenStore`, is lost when the process ends; implement this trait for one
/// that outlives it. Its methods are called while connections are driven: they must not block.
///
/// # Security
/// A server recognises the client by the token it returns. Use separate stores for connections that
/// must not be linked.
pub trait TokenStore: Send + Sync {
    /// Stores a token of the server with this name, received on a connection of this QUIC version.
    /// The same token may be stored twice.
    fn put(&self, server_name: &str, version: u32, token: Bytes);

    /// Removes a token and returns it: each is valid for one connection, and only for its version
    /// (RFC 9369 §5).
    fn take(&self, server_name: &str, version: u32) -> Option<Bytes>;
}

/// A memory of the version that a client last used with each server.
///
/// A ticket or a token is valid only for connections of one version (RFC 9369 §5), so a client
/// should start with the version that its last connection ended with. The methods are called while
/// connections are driven: they must not block.
pub trait VersionMemory: fmt::Debug + Send + Sync {
    /// Returns the version of the last connection to the server with this name.
    fn get(&self, server_name: &str) -> Option<Version>;

    /// Stores the version of a connection.
    fn put(&self, server_name: &str, version: Version);
}

/// A memory of observed paths, from which later connections start (Careful Resume, RFC 9959).
///
/// `hybriq::memory::CarefulResume` is an implementation in memory. The methods are called while connections
/// are driven: they must not block.
pub trait PathMemory: fmt::Debug + Send + Sync {
    /// Returns the largest window in bytes that a connection may jump to, whatever the path
    /// carried.
    fn max_jump(&self) -> u64;

    /// Removes the state of a path and returns it, so that no other connection uses it at the same
    /// time.
    ///
    /// `is_here` returns true for a path that may be the current one; other paths are not returned.
    fn take(
        &self,
        now: Instant,
        key: Option<&PathKey>,
        is_here: &dyn Fn(&KnownPath) -> bool,
    ) -> Option<KnownPath>;

    /// Stores the state of a path.
    fn put(&self, now: Instant, key: PathKey, path: KnownPath);
}

/// A client's state from earlier connections. `ClientConfig` fills it in.
#[derive(Clone)]
pub(crate) struct ClientMemory {
    /// Whether to offer 0-RTT data.
    pub(crate) early_data: EarlyDataPolicy,
    pub(crate) tokens: Option<Arc<dyn TokenStore>>,
    pub(crate) versions: Option<Arc<dyn VersionMemory>>,
    pub(crate) origins: Option<Arc<Origins>>,
}

impl ClientMemory {
    pub(super) const NONE: Self = Self {
        early_data: EarlyDataPolicy::Off,
        tokens: None,
        versions: None,
        origins: None,
    };
}

impl fmt::Debug for ClientMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientMemory")
            .field("early_data", &self.early_data)
            .field("tokens", &self.tokens.is_some())
            .field("versions", &self.versions)
            .field("origins", &self.origins)
            .finish()
    }
}
