//! The configuration of an endpoint.

use std::{fmt, sync::Arc};

use hybriq::fleet::ResetKey;

use super::{Shared, known_version};
use crate::crypto::HmacKey;

/// Configuration of an endpoint.
#[derive(Clone)]
pub struct EndpointConfig {
    generator: Arc<dyn Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync>,
    reset_key: Option<Arc<dyn HmacKey>>,
    pub(crate) shared: Shared,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            generator: Arc::new(|| Box::<RandomConnectionIdGenerator>::default()),
            reset_key: None,
            shared: Shared {
                versions: Vec::new(),
                grease: true,
            },
        }
    }
}

impl fmt::Debug for EndpointConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointConfig")
            .field("cid_len", &self.cid_len())
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}

impl EndpointConfig {
    /// Creates a configuration whose stateless resets are derived from a key: use the same after a restart. The default has
    /// a random one.
    pub fn new(reset_key: Arc<dyn HmacKey>) -> Self {
        Self {
            reset_key: Some(reset_key),
            ..Self::default()
        }
    }

    /// Sets the key from which stateless resets are derived.
    pub fn reset_key(&mut self, key: Arc<dyn HmacKey>) -> &mut Self {
        self.reset_key = Some(key);
        self
    }

    /// Returns the key of resets for hybriq.
    pub(crate) fn hybriq_reset_key(&self) -> Option<ResetKey> {
        let key = self.reset_key.as_ref()?;
        let mut tag = vec![0; key.signature_len()];
        key.sign(b"hybriq-quinn stateless resets", &mut tag);
        let mut secret = [0; 32];
        for (to, from) in secret.iter_mut().zip(tag) {
            *to = from;
        }
        Some(ResetKey::from_secret(secret))
    }

    /// Sets the generator of connection ids, of which only the length is used.
    ///
    /// An endpoint without a server configuration may have empty ids. One that accepts connections uses at least 8
    /// bytes: hybriq finds the connection of a packet by its id.
    pub fn cid_generator<F>(&mut self, factory: F) -> &mut Self
    where
        F: Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
    {
        self.generator = Arc::new(factory);
        self
    }

    /// Sets the supported versions of QUIC, the preferred one first; unknown ones are left out. Default: version 2,
    /// version 1.
    pub fn supported_versions(&mut self, versions: Vec<u32>) -> &mut Self {
        self.shared.versions = versions.into_iter().filter_map(known_version).collect();
        self
    }

    /// Sets whether bits that carry nothing get random values (RFC 9287). Default: they do.
    pub fn grease_quic_bit(&mut self, value: bool) -> &mut Self {
        self.shared.grease = value;
        self
    }

    /// Returns the length of connection ids.
    pub(crate) fn cid_len(&self) -> usize {
        (self.generator)().cid_len()
    }
}

/// A generator of connection ids. Ids are random, whatever the generator is.
pub trait ConnectionIdGenerator: Send + Sync {
    /// Returns the length of the ids, in bytes.
    fn cid_len(&self) -> usize;
}

/// Random connection ids.
#[derive(Clone, Copy, Debug)]
pub struct RandomConnectionIdGenerator {
    len: usize,
}

impl RandomConnectionIdGenerator {
    /// Creates a generator of ids of this length, in bytes.
    pub const fn new(cid_len: usize) -> Self {
        Self { len: cid_len }
    }
}

impl Default for RandomConnectionIdGenerator {
    fn default() -> Self {
        Self::new(8)
    }
}

impl ConnectionIdGenerator for RandomConnectionIdGenerator {
    fn cid_len(&self) -> usize {
        self.len
    }
}
