//! The record of one server.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hybriq_tls::{Group, Lineage};

use super::{Certificates, Downgrade, LONGEST_LIFETIME, Seen};

/// What a client remembers of one port of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OriginRecord {
    /// Group of the last handshake.
    pub group: Option<Group>,
    /// Time until which its key exchange must be post-quantum.
    pub key_exchange_until: Option<SystemTime>,
    /// Time until which all of its certificates must be post-quantum.
    pub certificates_until: Option<SystemTime>,
}

const VERSION: u8 = 1;

/// Shorter extensions are not stored (draft-sheffer-tls-pqc-continuity §5.2).
const LEAST_EXTENSION: Duration = Duration::from_secs(24 * 60 * 60);

impl OriginRecord {
    /// Number of bytes of a record.
    pub(in crate::remembered) const LEN: usize = 19;

    /// Returns true if the server must be post-quantum at this time.
    pub fn is_pinned(&self, now: SystemTime) -> bool {
        is_ahead(self.key_exchange_until, now) || is_ahead(self.certificates_until, now)
    }

    /// Returns true if nothing is remembered that matters at this time.
    pub fn is_empty(&self, now: SystemTime) -> bool {
        self.group.is_none() && !self.is_pinned(now)
    }

    /// Forgets that the server must be post-quantum.
    pub fn unpin(&mut self) {
        self.key_exchange_until = None;
        self.certificates_until = None;
    }

    pub(crate) fn pins_key_exchange(&self, now: SystemTime) -> bool {
        is_ahead(self.key_exchange_until, now)
    }

    pub(crate) fn pins_certificates(&self, now: SystemTime) -> bool {
        is_ahead(self.certificates_until, now)
    }

    /// Writes the record. Times are in whole seconds.
    pub(in crate::remembered) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let group = self.group.map_or(0, |group| group.0).to_be_bytes();
        let times = [self.key_exchange_until, self.certificates_until].map(seconds);
        let fields = [VERSION].into_iter().chain(group);
        let fields = fields.chain(times.into_iter().flat_map(u64::to_be_bytes));
        for (byte, field) in bytes.iter_mut().zip(fields) {
            *byte = field;
        }
        bytes
    }

    /// Reads a record of this version.
    pub(in crate::remembered) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first()?;
        let (group, rest) = rest.split_first_chunk()?;
        let (key_exchange, rest) = rest.split_first_chunk()?;
        let certificates = rest.try_into().ok().filter(|_| *version == VERSION)?;
        Some(Self {
            group: Some(Group(u16::from_be_bytes(*group))).filter(|group| group.0 != 0),
            key_exchange_until: time(u64::from_be_bytes(*key_exchange))?,
            certificates_until: time(u64::from_be_bytes(certificates))?,
        })
    }

    /// Returns the required properties that the server lacks.
    pub(crate) fn downgrade(&self, now: SystemTime, seen: &Seen) -> Option<Downgrade> {
        let mut found = Downgrade::default();
        if self.pins_key_exchange(now) {
            found.group = Some(seen.group).filter(|group| !group.is_post_quantum());
            found.session = seen.lineage != Lineage::PostQuantum && found.group.is_none();
        }
        let commits = seen.commitment.is_some_and(|time| !time.is_zero());
        found.certificates = match seen.certificates {
            Certificates::Classical => commits || self.pins_certificates(now),
            Certificates::Resumed => self.pins_certificates(now),
            Certificates::PostQuantum | Certificates::ResumedPostQuantum => false,
        };
        found.found()
    }

    /// Remembers the server's properties. A missing property never shortens a time; only the
    /// server's own word does, given with post-quantum certificates.
    pub(super) fn learn(&mut self, now: SystemTime, lifetime: Duration, seen: &Seen) {
        for time in [&mut self.key_exchange_until, &mut self.certificates_until] {
            *time = time.filter(|until| *until > now);
        }
        if seen.group.is_post_quantum() && seen.lineage == Lineage::PostQuantum {
            extend(&mut self.key_exchange_until, now, lifetime);
        }
        if seen.certificates == Certificates::PostQuantum {
            match seen.commitment {
                Some(Duration::ZERO) => self.certificates_until = None,
                Some(committed) => extend(&mut self.certificates_until, now, committed),
                None => extend(&mut self.certificates_until, now, lifetime),
            }
        }
    }

    /// Returns true if a record says more than before, by more than a short time: a day, or an
    /// eighth of the remaining time if that is shorter.
    pub(super) fn differs(&self, before: &Self, now: SystemTime) -> bool {
        let differ = |after: Option<SystemTime>, before: Option<SystemTime>| match (after, before) {
            (Some(after), Some(before)) => match after.duration_since(before) {
                Ok(later) => {
                    let left = after.duration_since(now).unwrap_or_default();
                    !later.is_zero() && later >= LEAST_EXTENSION.min(left / 8)
                }
                Err(_) => true,
            },
            (after, before) => after != before,
        };
        self.group != before.group
            || differ(self.key_exchange_until, before.key_exchange_until)
            || differ(self.certificates_until, before.certificates_until)
    }
}

fn is_ahead(until: Option<SystemTime>, now: SystemTime) -> bool {
    until.is_some_and(|until| until > now)
}

fn extend(until: &mut Option<SystemTime>, now: SystemTime, time: Duration) {
    *until = (*until).max(now.checked_add(time.min(LONGEST_LIFETIME)));
}

/// Returns the seconds since 1970, rounded up; 0 for none.
fn seconds(time: Option<SystemTime>) -> u64 {
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| {
        since.as_secs() + u64::from(since.subsec_nanos() > 0)
    })
}

/// Returns the time of a number of seconds, none for 0. What the system cannot tell was not written by
/// it.
#[expect(clippy::option_option, reason = "the outer one is the error")]
fn time(seconds: u64) -> Option<Option<SystemTime>> {
    if seconds == 0 {
        return Some(None);
    }
    UNIX_EPOCH
        .checked_add(Duration::from_secs(seconds))
        .map(Some)
}
