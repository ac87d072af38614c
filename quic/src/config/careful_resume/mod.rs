//! What connections saw of their paths, in memory.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use hashbrown::HashMap;

use hybriq_proto::{
    config::PathMemory,
    known_path::{KnownPath, PathKey},
    saved_path::SavedPath,
};

#[cfg(test)]
mod tests;

/// Paths that are remembered; the oldest are forgotten. Less than 200 bytes each.
const MOST_PATHS: usize = 16 * 1024;

/// Lets connections start from what earlier ones saw of the same path, instead of finding its
/// capacity anew (Careful Resume, RFC 9959). Off unless it is given to
/// [`TransportConfig::careful_resume`](crate::TransportConfig::careful_resume).
///
/// Half of what the path carried is sent at once, spread over a round trip, as soon as the initial
/// window arrived and took about as long as then. If that is too much, the connection falls back to
/// half of what got through. It matters where a transfer is short compared with the time slow start
/// takes: on paths of many round trips' worth of data, above all by satellite.
///
/// Each end remembers for the direction that it sends in:
/// - A server keeps what it saw under a digest of the session ticket that it issued, and uses it for
///   the client that comes back with that ticket from the same address. Without tickets it
///   remembers nothing. This needs no support of the TLS library; both that are built in do.
/// - A client keeps what it saw under the server's name and address, resumed or not.
///
/// All of it is in memory and shared by the clones of this value, so give the configuration of each
/// connection a clone of the same one. What an application keeps itself, across restarts, it gives
/// back with [`CarefulResume::path`]. It is gone with the process, and servers of a fleet do not share
/// it. What is used for one connection is not used for another until that one is over and had
/// something to remember.
///
/// Every controller resumes. BBR starts from the saved rate and then believes what it measures.
///
/// # Examples
/// ```
/// use hybriq::{CarefulResume, TransportConfig};
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
    /// The keys in the order they came.
    order: BTreeMap<u64, PathKey>,
    next: u64,
    /// What the application gave, for the next connection.
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
    /// Nothing remembered yet; jumps to 32 MiB at most, for an hour.
    pub fn new() -> Self {
        Self {
            max_jump: 32 * 1024 * 1024,
            lifetime: Duration::from_secs(60 * 60),
            memory: Arc::default(),
        }
    }

    /// Bytes that a connection jumps to at most, whatever the path carried. Default 32 MiB.
    #[must_use]
    pub const fn max_jump(mut self, bytes: u64) -> Self {
        self.max_jump = bytes;
        self
    }

    /// How long what was seen is believed. Default one hour; minutes are better for paths that
    /// change or that many share (RFC 9959 §4.2.2).
    #[must_use]
    pub const fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Gives the next connection that starts what an earlier one saw, so long ago. Set the
    /// [lifetime](Self::lifetime) first: what is older is not taken, nor is it used for a peer at
    /// another address. Default: nothing is given.
    ///
    /// # Examples
    /// ```
    /// # use std::time::SystemTime;
    /// # fn resume(bytes: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    /// use hybriq::{CarefulResume, SavedPath};
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

    /// What the application gave for another path does not hide what is remembered.
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
