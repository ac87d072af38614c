//! Keys of s2n-tls tickets that several servers share.
//!
//! There is one key for each lineage and for each context that the transport binds tickets to. An
//! s2n-tls ticket has no room for either, so the key that opens a ticket identifies them.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use aws_lc_rs::{hmac, rand};
use s2n_tls::config::Builder;
use s2n_tls::error::Error as S2nError;
use zeroize::Zeroizing;

use super::secrets::{Derived, Secrets, epoch};
use crate::{ConfigError, Lineage};

#[cfg(test)]
mod tests;

/// Time between new ticket keys. The previous keys still open their tickets.
pub(crate) const ROTATION: Duration = Duration::from_secs(12 * 3600);
/// Time during which a key encrypts, and then the same time again during which it decrypts. It
/// overlaps with the next key.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Age given to a key that must only decrypt. The extra hour is for clocks that are set back.
const DECRYPTS_ONLY: Duration = Duration::from_secs(25 * 3600);
/// First byte of a ticket; the name of its key follows.
const VERSION: u8 = 1;
const NAME_LEN: usize = 16;

/// Ticket keys shared by all servers that accept each other's tickets.
#[derive(Default)]
pub(crate) struct Keys {
    generation: Mutex<Option<Arc<Generation>>>,
    secrets: Option<Secrets>,
}

/// Keys in use until they are replaced, and the previous ones.
pub(crate) struct Generation {
    made: SystemTime,
    /// Number of changes of the secrets when the keys were derived.
    changes: u64,
    current: Arc<[Key; 2]>,
    previous: Vec<Arc<[Key; 2]>>,
}

struct Key {
    name: [u8; NAME_LEN],
    secret: Zeroizing<[u8; 32]>,
}

impl Key {
    fn random() -> Result<Self, ConfigError> {
        let mut key = Self {
            name: [0; NAME_LEN],
            secret: Zeroizing::new([0; 32]),
        };
        rand::fill(&mut key.name)
            .and_then(|()| rand::fill(&mut *key.secret))
            .map_err(|_| {
                ConfigError::unsupported(
                    "s2n-tls",
                    "the system gives no random bytes for ticket keys",
                )
            })?;
        Ok(key)
    }

    /// Derives the key for tickets of one scope, and its name.
    fn bound_to(&self, scope: &[u8]) -> Self {
        let derive = |label: &[u8], to: &mut [u8]| {
            let mut context =
                hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &*self.secret));
            context.update(label);
            context.update(&self.name);
            context.update(scope);
            for (to, from) in to.iter_mut().zip(context.sign().as_ref()) {
                *to = *from;
            }
        };
        let mut key = Self {
            name: [0; NAME_LEN],
            secret: Zeroizing::new([0; 32]),
        };
        derive(b"name", &mut key.name);
        derive(b"secret", &mut *key.secret);
        key
    }

    fn add(&self, builder: &mut Builder, since: SystemTime) -> Result<(), S2nError> {
        builder
            .add_session_ticket_key(&self.name, &*self.secret, since)
            .map(drop)
    }
}

fn of_lineage([classical, post_quantum]: &[Key; 2], lineage: Lineage) -> &Key {
    match lineage {
        Lineage::Classical => classical,
        Lineage::PostQuantum => post_quantum,
    }
}

impl Keys {
    /// Creates keys that derive from secrets.
    pub(crate) fn of(secrets: Secrets) -> Self {
        Self {
            generation: Mutex::default(),
            secrets: Some(secrets),
        }
    }

    /// Returns the keys for this time. The old ones stay if no new ones can be made.
    pub(crate) fn at(&self, now: SystemTime) -> Result<Arc<Generation>, ConfigError> {
        let mut slot = self
            .generation
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(secrets) = &self.secrets {
            let known = slot.as_ref().filter(|known| known.is_of(secrets, now));
            return Ok(match known {
                Some(known) => known.clone(),
                None => slot.insert(Arc::new(Generation::of(secrets, now))).clone(),
            });
        }
        if let Some(current) = slot.as_ref().filter(|current| !current.is_due(now)) {
            return Ok(current.clone());
        }
        match (Generation::new(slot.as_deref(), now), &*slot) {
            (Ok(next), _) => Ok(slot.insert(Arc::new(next)).clone()),
            (Err(_), Some(old)) => Ok(old.clone()),
            (Err(error), None) => Err(error),
        }
    }
}

impl Generation {
    fn new(before: Option<&Self>, now: SystemTime) -> Result<Self, ConfigError> {
        Ok(Self {
            made: now,
            changes: 0,
            current: Arc::new([Key::random()?, Key::random()?]),
            previous: before
                .map(|before| before.current.clone())
                .into_iter()
                .collect(),
        })
    }

    /// Derives the keys for this time.
    fn of(secrets: &Secrets, now: SystemTime) -> Self {
        let changes = secrets.changes();
        let [classical, post_quantum] =
            ["s2n-tls classical", "s2n-tls post-quantum"].map(|purpose| secrets.keys(purpose, now));
        let pairs = classical.into_iter().zip(post_quantum);
        let mut pairs = pairs.map(|(classical, post_quantum)| {
            Arc::new([classical, post_quantum].map(|Derived { name, secret }| Key { name, secret }))
        });
        let current = pairs.next().expect("there is a secret");
        Self {
            made: now,
            changes,
            current,
            previous: pairs.collect(),
        }
    }

    /// Returns true if these are the keys for this time.
    fn is_of(&self, secrets: &Secrets, now: SystemTime) -> bool {
        self.changes == secrets.changes() && epoch(self.made) == epoch(now)
    }

    /// Derives the keys for tickets of one scope.
    pub(crate) fn bound_to(&self, scope: &[u8]) -> Self {
        let bind = |keys: &Arc<[Key; 2]>| Arc::new(keys.each_ref().map(|key| key.bound_to(scope)));
        Self {
            made: self.made,
            changes: self.changes,
            current: bind(&self.current),
            previous: self.previous.iter().map(bind).collect(),
        }
    }

    fn is_due(&self, now: SystemTime) -> bool {
        now.duration_since(self.made)
            .is_ok_and(|age| age >= ROTATION)
    }

    fn all(&self) -> impl Iterator<Item = &Arc<[Key; 2]>> {
        std::iter::once(&self.current).chain(&self.previous)
    }

    /// Returns the lineage of a ticket, identified by the name of the key that opens it.
    pub(crate) fn lineage_of(&self, ticket: &[u8]) -> Option<Lineage> {
        let (&VERSION, rest) = ticket.split_first()? else {
            return None;
        };
        let name = rest.first_chunk::<NAME_LEN>()?;
        [Lineage::PostQuantum, Lineage::Classical]
            .into_iter()
            .find(|lineage| {
                self.all()
                    .any(|keys| of_lineage(keys, *lineage).name == *name)
            })
    }

    /// Adds the key that encrypts the tickets of full handshakes of the lineage `issued`, and those
    /// that decrypt tickets of the lineage `accepted`.
    pub(crate) fn add_to(
        &self,
        builder: &mut Builder,
        issued: Lineage,
        accepted: Lineage,
        now: SystemTime,
    ) -> Result<(), S2nError> {
        builder.set_ticket_key_encrypt_decrypt_lifetime(LIFETIME)?;
        builder.set_ticket_key_decrypt_lifetime(LIFETIME)?;
        of_lineage(&self.current, issued).add(builder, self.made)?;
        let decrypts_only = now.checked_sub(DECRYPTS_ONLY).unwrap_or(now);
        for keys in self.all() {
            if issued == accepted && Arc::ptr_eq(keys, &self.current) {
                continue;
            }
            of_lineage(keys, accepted).add(builder, decrypts_only)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}
