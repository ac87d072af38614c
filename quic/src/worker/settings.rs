//! Everything that the workers of an endpoint are made with.

use std::{fmt, sync::Arc};

use hybriq_proto::{
    config::AddressValidation,
    endpoint::{Endpoint, Setup, SpentTokens, TokenRecord},
    events::Sampler,
    remembered::token::{Kind, SEED_LEN},
};

use crate::{
    config::{Ids, TokenKeys, random::SystemRandom},
    restart::Inheritance,
    sync::{Mutex, waiters::lock},
};

/// Everything that the workers of an endpoint are made with, also when they are restarted after a
/// failure.
pub(crate) struct WorkerSettings {
    /// Configuration of accepted connections.
    pub(crate) server: Mutex<Option<Setup>>,
    /// Generator of connection ids, and key of resets.
    pub(crate) ids: Ids,
    /// Number of workers.
    pub(crate) workers: usize,
    /// Keys of tokens.
    pub(crate) token_keys: TokenKeys,
    /// Policy on tokens.
    pub(crate) address_validation: AddressValidation,
    /// Number of clients that may wait for the application.
    pub(crate) accept_backlog: usize,
    /// Tokens that were already used.
    pub(crate) spent: Spent,
    /// Name of the endpoint in metrics and traces.
    pub(crate) name: Option<Arc<str>>,
    /// Sockets and connections of earlier processes.
    pub(crate) inheritance: Inheritance,
    /// Watcher of connections whose configuration has none.
    pub(crate) watcher: Watcher,
}

/// Sampler of all connections of an endpoint, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Watcher(pub(crate) Option<Arc<dyn Sampler>>);

impl Watcher {
    /// Makes sure that connections with this setup are sampled.
    pub(super) fn watch(&self, mut setup: Setup) -> Setup {
        if let Some(sampler) = self.0.as_ref().filter(|_| !setup.transport.has_sampler()) {
            Arc::make_mut(&mut setup.transport).set_sampler(sampler.clone());
        }
        setup
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Some" } else { "None" })
    }
}

/// Record of used tokens that all workers share. It is asked only for clients with a token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spent(Arc<Mutex<SpentTokens>>);

impl TokenRecord for Spent {
    fn spend(&mut self, kind: Kind, issued: u64, seed: &[u8; SEED_LEN]) -> bool {
        lock(&self.0).spend(kind, issued, seed)
    }

    fn contains(&mut self, kind: Kind, issued: u64, seed: &[u8; SEED_LEN]) -> bool {
        lock(&self.0).contains(kind, issued, seed)
    }
}

impl WorkerSettings {
    /// Replaces the configuration of connections that are accepted from now on, and tells the
    /// workers with `tell`, which returns false if one of them has ended. All of this happens under
    /// one lock: of two concurrent changes, the same one is the last for every worker, even for a
    /// worker that is restarted meanwhile.
    pub(crate) fn set_server(&self, setup: Setup, tell: impl FnOnce(&Setup) -> bool) -> bool {
        let setup = self.watcher.watch(setup);
        let mut server = lock(&self.server);
        let told = tell(&setup);
        if told {
            *server = Some(setup);
        }
        told
    }

    /// Returns true if the endpoint accepts connections.
    pub(super) fn accepts(&self) -> bool {
        lock(&self.server).is_some()
    }

    /// Creates the core of a worker.
    pub(super) fn endpoint(&self, worker: u8) -> Endpoint {
        let random = Box::new(SystemRandom::new());
        let server = lock(&self.server).clone();
        let server = server.map(|setup| self.watcher.watch(setup));
        let mut endpoint = Endpoint::new(worker, random, server);
        self.ids.apply(&mut endpoint, self.workers);
        endpoint.set_address_validation(self.token_keys.clone(), self.address_validation);
        endpoint.set_token_record(self.spent.clone());
        endpoint.set_accept_backlog(self.accept_backlog);
        self.inheritance.apply(&mut endpoint);
        endpoint
    }
}
