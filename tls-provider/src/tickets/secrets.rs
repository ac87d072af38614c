//! Secrets from which ticket keys derive, shared by the servers of a fleet.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, SystemTime},
};

use aws_lc_rs::hkdf;
use zeroize::Zeroizing;

/// Time during which one key makes tickets.
pub(crate) const EPOCH: Duration = Duration::from_secs(12 * 3600);
/// Number of secrets that open tickets.
const MOST: usize = 4;

/// Secrets that open tickets. Clones share them.
#[derive(Clone)]
pub(crate) struct Secrets(Arc<RwLock<Ring>>);

struct Ring {
    /// The secret that makes tickets, followed by the others.
    secrets: Vec<Zeroizing<[u8; 32]>>,
    /// Number of changes so far.
    changes: u64,
}

impl Secrets {
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Self(Arc::new(RwLock::new(Ring {
            secrets: vec![Zeroizing::new(secret)],
            changes: 0,
        })))
    }

    /// Makes tickets with this secret.
    pub(crate) fn rotate_to(&self, secret: [u8; 32]) {
        self.change(secret, 0);
    }

    /// Also opens tickets of this secret.
    pub(crate) fn also_accept(&self, secret: [u8; 32]) {
        self.change(secret, 1);
    }

    fn change(&self, secret: [u8; 32], place: usize) {
        let mut ring = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if ring
            .secrets
            .get(place)
            .is_some_and(|known| **known == secret)
        {
            return;
        }
        let is_first = ring.secrets.first().is_some_and(|first| **first == secret);
        if place > 0 && is_first {
            return;
        }
        ring.secrets.retain(|known| **known != secret);
        let place = place.min(ring.secrets.len());
        ring.secrets.insert(place, Zeroizing::new(secret));
        ring.secrets.truncate(MOST);
        ring.changes += 1;
    }

    /// Returns the number of changes so far.
    pub(crate) fn changes(&self) -> u64 {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .changes
    }

    /// Derives the keys for a purpose at a time: the one that makes tickets, followed by those that
    /// open them, which belong to the epochs before and, in case clocks differ, after.
    pub(crate) fn keys(&self, purpose: &str, now: SystemTime) -> Vec<Derived> {
        let ring = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let epoch = epoch(now);
        let epochs = [epoch, epoch.wrapping_sub(1), epoch + 1];
        let all = ring.secrets.iter();
        all.flat_map(|secret| epochs.map(|epoch| Derived::new(secret, purpose, epoch)))
            .collect()
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// Returns the number of the epoch at a time.
pub(crate) fn epoch(now: SystemTime) -> u64 {
    let unix = now.duration_since(SystemTime::UNIX_EPOCH);
    unix.unwrap_or_default().as_secs() / EPOCH.as_secs()
}

/// A key, and the name by which a ticket identifies it.
#[derive(Clone)]
pub(crate) struct Derived {
    pub(crate) name: [u8; 16],
    pub(crate) secret: Zeroizing<[u8; 32]>,
}

impl Derived {
    fn new(secret: &[u8; 32], purpose: &str, epoch: u64) -> Self {
        #[cfg(test)]
        DERIVED.set(DERIVED.get() + 1);
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, b"hybriq tickets").extract(secret);
        let epoch = epoch.to_be_bytes();
        let mut derived = Self {
            name: [0; 16],
            secret: Zeroizing::new([0; 32]),
        };
        expand(
            &prk,
            &[b"name", purpose.as_bytes(), &epoch],
            &mut derived.name,
        );
        expand(
            &prk,
            &[b"key", purpose.as_bytes(), &epoch],
            &mut *derived.secret,
        );
        derived
    }
}

#[cfg(test)]
thread_local! {
    /// Number of keys that this thread derived.
    pub(crate) static DERIVED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Length of derived bytes.
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand(prk: &hkdf::Prk, info: &[&[u8]], to: &mut [u8]) {
    let filled = prk
        .expand(info, Length(to.len()))
        .and_then(|okm| okm.fill(to));
    // HKDF allows at most 255 times the size of the hash.
    filled.expect("a key is short");
}
