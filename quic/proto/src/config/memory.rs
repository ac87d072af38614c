//! State that a client or a server keeps from one connection to the next.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use hybriq_tls::EarlyDataPolicy;

use crate::remembered::{
    known_path::{KnownPath, PathKey},
    server::Servers,
};

/// Use of observed paths, from which later connections start (Careful Resume, RFC 9959), and a server's
/// memory of them. A client's memory is that of its servers.
///
/// `hybriq::memory::CarefulResume` is an implementation in memory. The methods are called while connections
/// are driven: they must not block.
pub trait PathMemory: fmt::Debug + Send + Sync {
    /// Returns the largest window in bytes that a connection may jump to, whatever the path
    /// carried.
    fn max_jump(&self) -> u64;

    /// Returns the age from which the state of a path is not used.
    fn lifetime(&self) -> Duration;

    /// Removes the state of a path and returns it, so that no other connection uses it at the same
    /// time. Without a key, as clients call it, this is what the application supplied for the next
    /// connection.
    ///
    /// `is_here` returns true for a path that may be the current one; other paths are not returned.
    fn take(
        &self,
        now: Instant,
        key: Option<&PathKey>,
        is_here: &dyn Fn(&KnownPath) -> bool,
    ) -> Option<KnownPath>;

    /// Stores the state of a path to a client.
    fn put(&self, now: Instant, key: PathKey, path: KnownPath);
}

/// State of earlier connections for a client. `ClientConfig` fills it in.
#[derive(Clone, Debug)]
pub(crate) struct ClientMemory {
    /// Whether to offer 0-RTT data.
    pub(crate) early_data: EarlyDataPolicy,
    pub(crate) servers: Option<Arc<Servers>>,
}

impl ClientMemory {
    pub(super) const NONE: Self = Self {
        early_data: EarlyDataPolicy::Off,
        servers: None,
    };
}
