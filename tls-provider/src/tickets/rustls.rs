//! Parts of rustls tickets that several servers share.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use ::rustls::server::ProducesTickets;
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};

use super::secrets::{self, Derived, EPOCH, Secrets};
use super::sessions::{CAPACITY, Sessions};
use crate::ConfigError;

/// Parts shared by all servers that accept each other's tickets.
pub(crate) struct Shared {
    quic: Slot,
    tcp: Slot,
    sessions: Arc<Sessions>,
    secrets: Option<Secrets>,
}

/// A ticketer, once there is one.
type Slot = Mutex<Option<Arc<dyn ProducesTickets>>>;

/// A ticketer whose keys derive from secrets. They are derived once for each epoch and each change
/// of the secrets: a ticket offered by a client is compared with the names of the keys, and costs
/// nothing more unless one of them made it.
#[derive(Debug)]
struct Derives {
    secrets: Secrets,
    purpose: &'static str,
    derived: RwLock<Option<Keys>>,
}

/// Keys of an epoch.
#[derive(Clone)]
struct Keys {
    epoch: u64,
    changes: u64,
    /// The key that makes tickets, followed by the others that open them.
    all: Arc<[Derived]>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

/// Lifetime of tickets in seconds: those from the start of an epoch can be opened until the end of
/// the next one.
const LIFETIME: u32 = EPOCH.as_secs() as u32;
/// Length of the name of a key.
const NAME: usize = 16;
/// Purposes of the keys: no ticket of one transport opens over the other.
const QUIC: &str = "rustls";
const TCP: &str = "rustls over TCP";

impl Derives {
    fn new(secrets: Secrets, purpose: &'static str) -> Self {
        Self {
            secrets,
            purpose,
            derived: RwLock::default(),
        }
    }

    fn keys(&self, now: SystemTime) -> Arc<[Derived]> {
        let (epoch, changes) = (secrets::epoch(now), self.secrets.changes());
        let known = self.derived.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref() {
            if (known.epoch, known.changes) == (epoch, changes) {
                return known.all.clone();
            }
        }
        drop(known);
        let keys: Arc<[Derived]> = self.secrets.keys(self.purpose, now).into();
        let mut derived = self.derived.write().unwrap_or_else(PoisonError::into_inner);
        *derived = Some(Keys {
            epoch,
            changes,
            all: keys.clone(),
        });
        keys
    }

    fn aead(key: &Derived) -> Option<RandomizedNonceKey> {
        RandomizedNonceKey::new(&AES_256_GCM, &*key.secret).ok()
    }
}

impl ProducesTickets for Derives {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let keys = self.keys(SystemTime::now());
        let key = keys.first()?;
        let mut sealed = plain.to_vec();
        let aad = Aad::from(key.name);
        let nonce = Self::aead(key)?
            .seal_in_place_append_tag(aad, &mut sealed)
            .ok()?;
        Some([&key.name[..], nonce.as_ref(), &sealed].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<NAME>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let keys = self.keys(SystemTime::now());
        let key = keys.iter().find(|key| key.name == *name)?;
        let mut plain = sealed.to_vec();
        let aead = Self::aead(key)?;
        let len = aead
            .open_in_place(Nonce::from(nonce), Aad::from(key.name), &mut plain)
            .ok()?
            .len();
        plain.truncate(len);
        Some(plain)
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            quic: Mutex::default(),
            tcp: Mutex::default(),
            sessions: Arc::new(Sessions::new(CAPACITY)),
            secrets: None,
        }
    }
}

impl Shared {
    /// Creates parts whose ticket keys derive from secrets.
    pub(crate) fn of(secrets: Secrets) -> Self {
        Self {
            secrets: Some(secrets),
            ..Self::default()
        }
    }

    /// Returns what makes the tickets of QUIC.
    pub(crate) fn ticketer(&self) -> Result<Arc<dyn ProducesTickets>, ConfigError> {
        self.of_slot(&self.quic, QUIC)
    }

    /// Returns what makes the tickets of TLS over TCP.
    pub(crate) fn ticketer_of_tcp(&self) -> Result<Arc<dyn ProducesTickets>, ConfigError> {
        self.of_slot(&self.tcp, TCP)
    }

    fn of_slot(
        &self,
        slot: &Slot,
        purpose: &'static str,
    ) -> Result<Arc<dyn ProducesTickets>, ConfigError> {
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ticketer) = &*slot {
            return Ok(ticketer.clone());
        }
        let made: Arc<dyn ProducesTickets> = match &self.secrets {
            Some(secrets) => Arc::new(Derives::new(secrets.clone(), purpose)),
            None => ::rustls::crypto::aws_lc_rs::Ticketer::new()
                .map_err(|error| ConfigError::unsupported("rustls", error.to_string()))?,
        };
        *slot = Some(made.clone());
        Ok(made)
    }

    pub(crate) fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
