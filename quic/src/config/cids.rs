//! Settings for an endpoint's connection ids.

use std::sync::Arc;

use hybriq_proto::{
    endpoint::{Endpoint, StatelessReset},
    owners::cids::{CidGenerator, RandomCids, ResetKey, Steering, ZeroLength},
    wire::limits,
};

use super::ServerConfig;
use crate::{config::random::SystemRandom, errors::EndpointError};

/// Generator of an endpoint's connection ids, and its settings for stateless resets.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    pub(crate) generator: Arc<dyn CidGenerator>,
    pub(crate) reset_key: Option<ResetKey>,
    pub(crate) resets: StatelessReset,
}

impl Default for Ids {
    fn default() -> Self {
        Self {
            generator: Arc::new(RandomCids::default()),
            reset_key: None,
            resets: StatelessReset::On,
        }
    }
}

impl Ids {
    pub(crate) fn without_length(&mut self) {
        self.generator = Arc::new(ZeroLength);
    }

    /// Checks that an endpoint can use these ids; a server needs ids that are not empty.
    pub(crate) fn check(&self, server: Option<&ServerConfig>) -> Result<(), EndpointError> {
        match self.generator.len() {
            0 if server.is_some() => Err(EndpointError::ZeroLengthCids),
            0 | limits::MIN_LOCAL_CID..=limits::MAX_CID_LEN => Ok(()),
            len => Err(EndpointError::CidLength(len)),
        }
    }

    /// Draws the reset key if none was given, so that all workers use the same.
    pub(crate) fn draw_reset_key(&mut self) {
        self.reset_key
            .get_or_insert_with(|| ResetKey::generate(&mut SystemRandom::new()));
    }

    /// Returns the generator with the key, if it takes one.
    fn generator(&self) -> Arc<dyn CidGenerator> {
        let keyed = self.reset_key.as_ref().map(|key| self.generator.keyed(key));
        keyed.flatten().unwrap_or_else(|| self.generator.clone())
    }

    /// Returns the function with which the system can find the worker of an id, if there is one.
    pub(crate) fn steering(&self) -> Option<Steering> {
        self.generator().steering()
    }

    /// Returns the number that was written into an id, if it can be read.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn number(&self, cid: &[u8]) -> Option<u8> {
        let generator = self.generator();
        (cid.len() == generator.len()).then(|| generator.worker(cid))?
    }

    /// Generates an id with a number.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn sample(&self, number: u8) -> Vec<u8> {
        use hybriq_proto::random::Random as _;

        let generator = self.generator();
        let mut cid = vec![0; generator.len()];
        SystemRandom::new().fill(&mut cid);
        generator.generate(number, &mut cid);
        cid
    }

    /// Returns true if ids are empty.
    pub(crate) fn are_empty(&self) -> bool {
        self.generator.is_empty()
    }

    pub(crate) fn apply(&self, endpoint: &mut Endpoint, workers: usize) {
        endpoint.set_cid_generator(self.generator());
        if let Some(key) = &self.reset_key {
            endpoint.set_reset_key(key.clone());
        }
        endpoint.set_stateless_reset(self.resets);
        endpoint.set_workers(u8::try_from(workers).unwrap_or(u8::MAX));
    }
}
