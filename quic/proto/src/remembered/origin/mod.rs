//! What a client remembers about a server: the group that it chose, and until when it must stay
//! post-quantum.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use hybriq_tls::{Group, KeyExchange, Lineage};

mod record;
#[cfg(test)]
mod tests;

pub use self::record::{InvalidOriginRecord, OriginRecord};
pub use crate::wire::error::Downgrade;

/// Longest time for which a server can commit itself, and for which a client remembers on its own.
pub const LONGEST_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Time for which a client remembers that a server was post-quantum, unless configured otherwise.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What a client does if a server that was post-quantum no longer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Continuity {
    /// It does nothing, and remembers nothing for this purpose.
    #[default]
    Off,
    /// It connects, and reports the downgrade: in `Handshake::downgrade`, which events and qlog
    /// also contain, in a warning of the crate `tracing`, and in the metric
    /// `hybriq_downgrades_total`.
    Report,
    /// It refuses the server, with `ConnectionError::Downgraded`.
    Refuse,
}

/// A store of what a client remembers about servers.
///
/// The default, `MemoryOrigins`, can be written to a file. Implement this trait to keep the records
/// elsewhere. The methods are called while connections are driven: they must not block.
///
/// An origin is a server name in lower case and a port: `example.com:443`. Only handshakes that were
/// completed, with a verified server, change a record.
///
/// # Security
/// Whoever can write to the store can disable the alarm. Whoever can read it knows which servers
/// were visited.
pub trait OriginStore: Send + Sync {
    /// Returns the record of an origin.
    fn get(&self, origin: &str) -> Option<OriginRecord>;

    /// Changes the record of an origin, or creates one. No other change may happen in between, so
    /// that two connections that end their handshakes at the same time both count.
    ///
    /// A full store must not drop a record that is [pinned](OriginRecord::is_pinned) at this time
    /// for one that is not stored yet.
    fn update(&self, now: SystemTime, origin: &str, change: &dyn Fn(&mut OriginRecord));
}

/// Certificates of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certificates {
    /// All of them are post-quantum, keys and signatures.
    PostQuantum,
    /// One of them is not, or cannot be parsed.
    Classical,
    /// None were presented, because a session was resumed that began with post-quantum ones.
    ResumedPostQuantum,
    /// None were presented, because another session was resumed.
    Resumed,
}

/// Facts about a completed handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) group: Group,
    pub(crate) lineage: Lineage,
    pub(crate) certificates: Certificates,
    /// Time for which the server commits itself to post-quantum certificates.
    pub(crate) commitment: Option<Duration>,
}

/// Whether a client begins with the key share that a server will probably choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prediction {
    /// It does.
    #[default]
    On,
    /// It always begins with the first group of its policy.
    Off,
}

/// A client's memory of servers, and how it is used. `ClientConfig` fills it in.
#[doc(hidden)]
#[derive(Clone)]
pub struct Origins {
    store: Arc<dyn OriginStore>,
    continuity: Continuity,
    lifetime: Duration,
    prediction: Prediction,
    hints: Vec<(Box<str>, Vec<Group>)>,
    /// The same moment on both clocks.
    clock: Option<(Instant, SystemTime)>,
}

impl Origins {
    /// Creates a memory that predicts groups and does nothing else.
    pub fn new(store: Arc<dyn OriginStore>) -> Self {
        Self {
            store,
            continuity: Continuity::Off,
            lifetime: LIFETIME,
            prediction: Prediction::On,
            hints: Vec::new(),
            clock: None,
        }
    }

    /// Sets the store.
    pub fn set_store(&mut self, store: Arc<dyn OriginStore>) {
        self.store = store;
    }

    /// Sets what happens if a server is no longer post-quantum.
    pub fn set_continuity(&mut self, continuity: Continuity) {
        self.continuity = continuity;
    }

    /// Sets how long a server is remembered, at most a year.
    pub fn set_lifetime(&mut self, lifetime: Duration) {
        self.lifetime = lifetime.min(LONGEST_LIFETIME);
    }

    /// Sets whether groups are predicted.
    pub fn set_prediction(&mut self, prediction: Prediction) {
        self.prediction = prediction;
    }

    /// Sets the groups that a server accepts, replacing earlier ones for the same name.
    pub fn set_hint(&mut self, server_name: &str, groups: Vec<Group>) {
        let name = canonical(server_name);
        self.hints.retain(|(known, _)| **known != *name);
        self.hints.push((name.into(), groups));
    }

    /// Returns the groups of all hints.
    pub fn hinted(&self) -> impl Iterator<Item = (&str, &[Group])> {
        self.hints.iter().map(|(name, groups)| (&**name, &**groups))
    }

    /// Sets the time of day that corresponds to an instant.
    pub fn set_clock(&mut self, now: Instant, time: SystemTime) {
        self.clock = Some((now, time));
    }

    pub(crate) const fn continuity(&self) -> Continuity {
        self.continuity
    }

    /// Returns the time of day; `None` without a clock.
    pub(crate) fn time(&self, now: Instant) -> Option<SystemTime> {
        let (then, time) = self.clock?;
        time.checked_add(now.saturating_duration_since(then))
    }

    pub(crate) fn recall(&self, origin: &str) -> OriginRecord {
        self.store.get(origin).unwrap_or_default()
    }

    /// Returns the group that a server will probably choose: that of the last handshake; otherwise
    /// the first of the application's hint that is in the policy.
    pub(crate) fn predict(
        &self,
        record: &OriginRecord,
        server_name: &str,
        policy: &KeyExchange,
    ) -> Option<Group> {
        if self.prediction == Prediction::Off {
            return None;
        }
        let known = record.group.filter(|group| policy.has(*group));
        known.or_else(|| {
            if self.hints.is_empty() {
                return None;
            }
            let name = canonical(server_name);
            let mut hints = self.hints.iter().filter(|(hinted, _)| **hinted == *name);
            let (_, groups) = hints.next()?;
            groups.iter().copied().find(|group| policy.has(*group))
        })
    }

    /// Stores the facts of a handshake, unless that changes next to nothing.
    pub(crate) fn learn(&self, now: SystemTime, origin: &str, before: &OriginRecord, seen: &Seen) {
        let learn = |record: &mut OriginRecord| self.apply(now, record, seen);
        let mut after = *before;
        learn(&mut after);
        if after.differs(before, now) {
            self.store.update(now, origin, &learn);
        }
    }

    fn apply(&self, now: SystemTime, record: &mut OriginRecord, seen: &Seen) {
        if self.prediction == Prediction::On {
            record.group = Some(seen.group);
        }
        if self.continuity != Continuity::Off {
            record.learn(now, self.lifetime, seen);
        }
    }
}

impl fmt::Debug for Origins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origins")
            .field("continuity", &self.continuity)
            .field("lifetime", &self.lifetime)
            .field("prediction", &self.prediction)
            .finish_non_exhaustive()
    }
}

/// Returns the key of a server in the store: its name in lower case, without the trailing dot, and
/// its port.
#[must_use]
pub fn origin(server_name: &str, port: u16) -> String {
    let mut origin = canonical(server_name);
    origin.push(':');
    origin.push_str(&port.to_string());
    origin
}

fn canonical(server_name: &str) -> String {
    let name = server_name.strip_suffix('.').unwrap_or(server_name);
    name.to_ascii_lowercase()
}
