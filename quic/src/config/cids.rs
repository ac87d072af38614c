use std::sync::Arc;

use crate::{
    error::EndpointError,
    proto::{
        cids::{CidGenerator, InvalidQuicLb, QuicLb, RandomCids, ResetKey, ZeroLength},
        endpoint::{Endpoint, StatelessReset},
        limits,
        random::{Random as _, SystemRandom},
    },
};

impl ResetKey {
    /// A key of the system's randomness, which nobody else has. What an endpoint takes by itself.
    pub fn random() -> Self {
        let mut secret = [0; 32];
        SystemRandom::new().fill(&mut secret);
        Self::from_secret(secret)
    }
}

impl QuicLb {
    /// Ids that everybody can read. `rotation` is the configuration's codepoint, 0 to 6; `server_id`
    /// has 1 to 15 bytes, the nonce 4 or more, and both together 7 to 19.
    ///
    /// # Errors
    /// [`InvalidQuicLb`] says what to use instead.
    pub fn plaintext(
        rotation: u8,
        server_id: &[u8],
        nonce_len: usize,
    ) -> Result<Self, InvalidQuicLb> {
        let (mut mask, mut start) = ([0; 16], [0; 8]);
        let mut random = SystemRandom::new();
        random.fill(&mut mask);
        random.fill(&mut start);
        Self::new(
            rotation,
            server_id,
            nonce_len,
            (mask, u64::from_le_bytes(start)),
        )
    }

    /// Ids that only those can read who have the key: AES-128-ECB in one pass where server id and
    /// nonce fill a block of 16 bytes, else in four.
    ///
    /// # Errors
    /// [`InvalidQuicLb`] says what to use instead.
    pub fn encrypted(
        rotation: u8,
        server_id: &[u8],
        nonce_len: usize,
        key: [u8; 16],
    ) -> Result<Self, InvalidQuicLb> {
        Self::plaintext(rotation, server_id, nonce_len)?.with_key(key)
    }
}

/// How an endpoint's connection ids are made, and whether it answers for lost connections.
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

    /// Whether an endpoint can be made with it, and one that accepts connections.
    pub(crate) fn check(&self, accepts: bool) -> Result<(), EndpointError> {
        match self.generator.len() {
            0 if accepts => Err(EndpointError::ZeroLengthCids),
            0 | limits::MIN_LOCAL_CID..=limits::MAX_CID_LEN => Ok(()),
            len => Err(EndpointError::CidLength(len)),
        }
    }

    /// Draws what was left to chance, so that all workers have the same.
    pub(crate) fn settle(&mut self) {
        self.reset_key.get_or_insert_with(ResetKey::random);
    }

    pub(crate) fn apply(&self, endpoint: &mut Endpoint, workers: usize) {
        let keyed = self.reset_key.as_ref().map(|key| self.generator.keyed(key));
        let generator = keyed.flatten().unwrap_or_else(|| self.generator.clone());
        endpoint.set_cid_generator(generator);
        if let Some(key) = &self.reset_key {
            endpoint.set_reset_key(key.clone());
        }
        endpoint.set_stateless_reset(self.resets);
        endpoint.set_workers(u8::try_from(workers).unwrap_or(u8::MAX));
    }
}
