//! Use of what earlier connections measured on their paths, and a server's memory of it.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use hashbrown::HashMap;
use hybriq_proto::{
    config::PathMemory,
    remembered::{
        known_path::{KnownPath, PathKey},
        saved_path::SavedPath,
    },
};

#[cfg(test)]
mod tests;

/// Number of paths that are remembered, less than 200 bytes each; a new one replaces the oldest.
const MOST_PATHS: usize = 16 * 1024;

/// Lets connections start from what earlier ones measured on the same path, instead of probing its capacity again
/// (Careful Resume, RFC 9959). Off unless
/// [`TransportConfig::careful_resume`](crate::TransportConfig::careful_resume) gets one.
///
/// Once the initial window is acknowledged with a round-trip time like the remembered one, the
/// connection sends half of what the path carried, spread over a round trip. If that is too much,
/// it falls back to half of what got through. This helps transfers that are short compared with the
/// time slow start takes: on paths that hold much data, above all satellite links.
///
/// Each end remembers for the direction that it sends in:
/// - A server stores what it measured under a digest of the session ticket that it issued, and uses
///   it for the client that comes back with that ticket from the same address. Without tickets it
///   remembers nothing. This needs no support of the TLS library.
/// - A client stores what it measured in its memory of servers
///   ([`ServerMemory`](crate::memory::ServerMemory)), by the server's name and both addresses, resumed
///   or not.
///
/// Clones share a server's memory, so give the configuration of each connection a clone of the same
/// value. It ends with the process, and the servers of a fleet do not share it; an application that
/// stores paths itself passes them to [`CarefulResume::path`]. Only one connection uses an entry at
/// a time. When that connection ends, its measurements replace the entry.
///
/// Every controller can resume. BBR starts from the saved rate and then believes its own
/// measurements.
///
/// # Examples
/// ```
/// use hybriq::{TransportConfig, memory::CarefulResume};
///
/// let transport = TransportConfig::new().careful_resume(CarefulResume::new());
/// ```
#[derive(Clone)]
pub struct CarefulResume {
    max_jump: u64,
    lifetime: Duration,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    paths: HashMap<PathKey, Remembered>,
    /// Keys in insertion order.
    order: BTreeMap<u64, PathKey>,
    next: u64,
    /// Path that the application supplied for the next connection.
    given: Option<KnownPath>,
}

#[derive(Clone, Copy)]
struct Remembered {
    path: KnownPath,
    at: Instant,
    place: u64,
}

impl Default for CarefulResume {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CarefulResume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CarefulResume")
            .field("max_jump", &self.max_jump)
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}

impl CarefulResume {
    /// Creates an empty memory with a maximum jump of 32 MiB and a lifetime of one hour.
    pub fn new() -> Self {
        Self {
            max_jump: 32 * 1024 * 1024,
            lifetime: Duration::from_secs(60 * 60),
            memory: Arc::default(),
        }
    }

    /// Sets the largest number of bytes that a connection jumps to, regardless of what the path carried. Default: 32
    /// MiB.
    #[must_use]
    pub const fn max_jump(mut self, bytes: u64) -> Self {
        self.max_jump = bytes;
        self
    }

    /// Sets how long an entry is used. Default: one hour; minutes are better for paths that change
    /// or that many share (RFC 9959 §4.2.2).
    #[must_use]
    pub const fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Supplies a saved path of this age to the next connection that starts. Set the
    /// [lifetime](Self::lifetime) first: a path that is too old is ignored, and so is one to
    /// another address. Default: none.
    ///
    /// # Examples
    /// ```
    /// # use std::time::SystemTime;
    /// # fn resume(bytes: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    /// use hybriq::memory::{CarefulResume, SavedPath};
    ///
    /// let saved = SavedPath::from_bytes(bytes)?;
    /// let mut resume = CarefulResume::new();
    /// if let Some(age) = saved.age(SystemTime::now()) {
    ///     resume = resume.path(&saved, age);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn path(self, saved: &SavedPath, age: Duration) -> Self {
        self.with_memory(|memory| {
            memory.given = Some(saved.known()).filter(|_| age < self.lifetime);
        });
        self
    }

    fn with_memory<R>(&self, act: impl FnOnce(&mut Memory) -> R) -> R {
        act(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl PathMemory for CarefulResume {
    fn max_jump(&self) -> u64 {
        self.max_jump
    }

    fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// Falls back to the remembered path where the application's is for another peer.
    fn take(
        &self,
        now: Instant,
        key: Option<&PathKey>,
        is_here: &dyn Fn(&KnownPath) -> bool,
    ) -> Option<KnownPath> {
        self.with_memory(|memory| {
            let given = memory.given.take();
            let remembered = key.and_then(|key| memory.forget(key));
            let is_fresh =
                |known: &Remembered| now.saturating_duration_since(known.at) < self.lifetime;
            let remembered = remembered.filter(is_fresh).map(|known| known.path);
            given.filter(is_here).or(remembered.filter(is_here))
        })
    }

    fn put(&self, now: Instant, key: PathKey, path: KnownPath) {
        self.with_memory(|memory| memory.remember(now, key, path));
    }
}

impl Memory {
    fn forget(&mut self, key: &PathKey) -> Option<Remembered> {
        let known = self.paths.remove(key)?;
        self.order.remove(&known.place);
        Some(known)
    }

    fn remember(&mut self, now: Instant, key: PathKey, path: KnownPath) {
        self.forget(&key);
        if self.paths.len() >= MOST_PATHS {
            if let Some((_, oldest)) = self.order.pop_first() {
                self.paths.remove(&oldest);
            }
        }
        let (at, place) = (now, self.next);
        self.next += 1;
        self.order.insert(place, key);
        self.paths.insert(key, Remembered { path, at, place });
    }
}
