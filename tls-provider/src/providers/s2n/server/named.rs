//! The policies of a server, each with the configurations in use for it.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::SystemTime,
};

use s2n_tls::config::Config;

use super::parts::{Parts, Scope};
use crate::{
    ClientHello, ConfigError, Group, KeyExchange, Lineage, SignatureScheme,
    providers::s2n::{
        policy::{self, Policy},
        session::Lineages,
    },
    tickets::s2n::Generation,
};

/// One key-exchange policy of the server and the configurations in use for it.
pub(super) struct Named {
    pub(super) key_exchange: KeyExchange,
    pub(super) policy: &'static Policy,
    pub(super) parts: Arc<Parts>,
    /// Schemes of the identities that the policy also has.
    pub(super) schemes: Option<Vec<SignatureScheme>>,
    live: RwLock<Live>,
    /// The same for clients that have pure ML-KEM alone, which the policy for all others lacks.
    pure: OnceLock<Option<Box<Self>>>,
}

/// Configurations in use, and the source of their ticket keys.
struct Live {
    keys: Option<Arc<Generation>>,
    /// Configurations of each context that tickets are bound to, newest last. Without tickets one
    /// entry serves all.
    scopes: VecDeque<(Box<[u8]>, Arc<Scope>)>,
}

/// Maximum number of contexts with configurations. A transport binds tickets to its version, and
/// has few of these.
const SCOPES: usize = 8;

impl Live {
    fn find(&self, scope: &[u8]) -> Option<Arc<Scope>> {
        let mut scopes = self.scopes.iter();
        let found = scopes.find(|(name, _)| **name == *scope || self.keys.is_none());
        found.map(|(_, found)| found.clone())
    }

    fn has_keys(&self, keys: Option<&Arc<Generation>>) -> bool {
        match (&self.keys, keys) {
            (Some(ours), Some(keys)) => Arc::ptr_eq(ours, keys),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    fn add(&mut self, name: &[u8], scope: Arc<Scope>) {
        if self.scopes.len() >= SCOPES {
            self.scopes.pop_front();
        }
        self.scopes.push_back((name.into(), scope));
    }
}

impl Named {
    pub(super) fn new(
        key_exchange: &KeyExchange,
        parts: &Arc<Parts>,
        policy: &'static Policy,
    ) -> Result<Self, ConfigError> {
        let now = SystemTime::now();
        let keys = parts.keys(now)?;
        let scope = parts.make(key_exchange, policy, keys.as_deref(), &[], now)?;
        let scopes = VecDeque::from([(Box::default(), Arc::new(scope))]);
        Ok(Self {
            key_exchange: key_exchange.clone(),
            policy,
            parts: parts.clone(),
            schemes: parts.schemes.clone().map(|mut schemes| {
                let of_policy = policy.schemes();
                schemes.retain(|scheme| of_policy.contains(scheme));
                schemes
            }),
            live: RwLock::new(Live { keys, scopes }),
            pure: OnceLock::new(),
        })
    }

    /// Returns the configurations for a client that has no post-quantum group of this policy, but
    /// one that only another policy of s2n-tls has. They are built for the first such client.
    pub(super) fn pure_for(&self, hello: &ClientHello) -> Option<&Self> {
        let strict = policy::strict_twin(&self.key_exchange, self.policy)?;
        let mut groups = strict.groups.iter();
        if !groups.any(|group| hello.groups().contains(group)) {
            return None;
        }
        let build = || {
            let named = Self::new(&self.key_exchange, &self.parts, strict).ok()?;
            Some(Box::new(named))
        };
        self.pure.get_or_init(build).as_deref()
    }

    /// Returns the configuration for a handshake with a group, with new ticket keys when they are
    /// due. s2n-tls takes keys only while a configuration is built.
    ///
    /// A ticket whose lineage the policy refuses, whose scope is another one, or whose key has
    /// expired gets a configuration that cannot open it, so that the handshake is a full one.
    pub(super) fn config(
        &self,
        group: Group,
        ticket: Option<&[u8]>,
        scope: &[u8],
        now: SystemTime,
    ) -> Option<(Lineages, Config)> {
        let scope = self.scope(scope, now)?;
        let issued = Lineage::of(group);
        let accepted = match (&scope.keys, ticket) {
            (Some(keys), Some(ticket)) => keys.lineage_of(ticket),
            _ => None,
        };
        let accepted = accepted
            .filter(|lineage| lineage.may_resume(&self.key_exchange))
            .unwrap_or(Lineage::PostQuantum);
        let wanted = Lineages { issued, accepted };
        let mut configs = scope.configs.iter();
        configs
            .find(|(lineages, _)| *lineages == wanted || scope.keys.is_none())
            .map(|(_, config)| (wanted, config.clone()))
    }

    /// Returns the configurations for a scope.
    fn scope(&self, name: &[u8], now: SystemTime) -> Option<Arc<Scope>> {
        let keys = self.parts.keys(now).ok()?;
        let current = |live: &Live| {
            let found = live.has_keys(keys.as_ref()).then(|| live.find(name));
            found.flatten()
        };
        if let Some(scope) = current(&self.live.read().unwrap_or_else(PoisonError::into_inner)) {
            return Some(scope);
        }
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(scope) = current(&live) {
            return Some(scope);
        }
        let (key_exchange, policy) = (&self.key_exchange, self.policy);
        let Ok(scope) = self
            .parts
            .make(key_exchange, policy, keys.as_deref(), name, now)
        else {
            // Without new configurations the old ones can still do full handshakes.
            return live.find(name);
        };
        if !live.has_keys(keys.as_ref()) {
            live.scopes.clear();
            live.keys = keys;
        }
        let scope = Arc::new(scope);
        live.add(name, scope.clone());
        Some(scope)
    }
}
