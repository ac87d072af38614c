//! What a client remembers about a server: the group that it chose, and until when it must stay
//! post-quantum.

use std::time::{Duration, SystemTime};

use hybriq_tls::{Group, KeyExchange, Lineage};

mod record;
#[cfg(test)]
mod tests;

pub use self::record::OriginRecord;
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
#[non_exhaustive]
pub enum Prediction {
    /// It does.
    #[default]
    On,
    /// It always begins with the first group of its policy.
    Off,
}

/// Use of what a client remembers of its servers' ports. `ClientConfig` fills it in.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Origins {
    continuity: Continuity,
    lifetime: Duration,
    prediction: Prediction,
    hints: Vec<(Box<str>, Vec<Group>)>,
}

impl Default for Origins {
    /// Predicts groups and does nothing else.
    fn default() -> Self {
        Self {
            continuity: Continuity::Off,
            lifetime: LIFETIME,
            prediction: Prediction::On,
            hints: Vec::new(),
        }
    }
}

impl Origins {
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

    pub(crate) const fn continuity(&self) -> Continuity {
        self.continuity
    }

    /// Returns the group that a server will probably choose: the one of the last handshake, or else
    /// the first of the application's hint that the policy has.
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

    /// Returns true if the facts of a handshake change more than next to nothing.
    pub(crate) fn would_change(&self, now: SystemTime, before: &OriginRecord, seen: &Seen) -> bool {
        let mut after = *before;
        self.learn(now, &mut after, seen);
        after.differs(before, now)
    }

    /// Adds the facts of a handshake to a record.
    pub(crate) fn learn(&self, now: SystemTime, record: &mut OriginRecord, seen: &Seen) {
        if self.prediction == Prediction::On {
            record.group = Some(seen.group);
        }
        if self.continuity != Continuity::Off {
            record.learn(now, self.lifetime, seen);
        }
    }
}

/// Returns a server name in lower case, without the dot of the root.
pub(super) fn canonical(server_name: &str) -> String {
    let name = server_name.strip_suffix('.').unwrap_or(server_name);
    name.to_ascii_lowercase()
}
