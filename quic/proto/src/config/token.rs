use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use zeroize::Zeroizing;

use crate::{
    random::{Random as _, SystemRandom},
    token::Ring,
};

/// The keys that a server seals its address validation tokens with (RFC 9000 §8.1): those of Retry
/// packets, and those that clients keep for their next connection.
///
/// Servers behind one address share a secret, so that a client may return to another one than sent
/// it away. Clones are the same keys: what is rotated here is rotated for every endpoint that uses
/// them.
///
/// The machines of a fleet need clocks that agree to a few seconds.
///
/// # Examples
/// To rotate the secret of a fleet, let every machine [accept](Self::also_accept) the next one
/// before the first [rotates](Self::rotate_to) to it:
/// ```no_run
/// use hybriq::{Endpoint, Identity, ServerConfig, TokenKeys};
///
/// # async fn run(secret: [u8; 32], next: [u8; 32]) -> Result<(), Box<dyn std::error::Error>> {
/// # let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
/// let keys = TokenKeys::from_secret(secret);
/// let server = Endpoint::builder()
///     .server(ServerConfig::new(identity))
///     .token_keys(keys.clone())
///     .bind("[::]:4433")?;
/// keys.also_accept(next); // on every machine
/// keys.rotate_to(next); // then on every machine
/// # Ok(())
/// # }
/// ```
///
/// # Security
/// Whoever knows a secret can prove any address, and use the server to flood it.
#[derive(Clone)]
pub struct TokenKeys(Arc<RwLock<Ring>>);

impl TokenKeys {
    /// Keys of this process alone, drawn from the system's generator. The default.
    pub fn random() -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        SystemRandom::new().fill(secret.as_mut());
        Self::of(&secret)
    }

    /// Keys that others can have as well: the same secret makes the same keys. It must be random.
    pub fn from_secret(secret: [u8; 32]) -> Self {
        Self::of(&Zeroizing::new(secret))
    }

    fn of(secret: &[u8; 32]) -> Self {
        Self(Arc::new(RwLock::new(Ring::new(secret))))
    }

    /// Seals with another secret from now on. Tokens of the last three are good until they expire.
    pub fn rotate_to(&self, secret: [u8; 32]) {
        let secret = Zeroizing::new(secret);
        self.change(|ring| ring.rotate(&secret));
    }

    /// Takes tokens that were sealed with another secret, and seals none with it yet.
    pub fn also_accept(&self, secret: [u8; 32]) {
        let secret = Zeroizing::new(secret);
        self.change(|ring| ring.accept(&secret));
    }

    fn change(&self, change: impl FnOnce(&mut Ring)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn with<T>(&self, use_ring: impl FnOnce(&Ring) -> T) -> T {
        use_ring(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenKeys").finish_non_exhaustive()
    }
}

/// When a server sends clients away with a Retry packet to prove that they receive at their address
/// (RFC 9000 §8.1.2). It costs them a round trip, and an attacker with a forged address everything.
///
/// A client that returns with a token of an earlier connection needs no Retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressValidation {
    /// While handshakes keep the server busy, or many are unfinished. The default.
    ///
    /// Retry starts once handshakes take three quarters of a worker's time, or 2,048 clients have
    /// not completed theirs. It goes on for at least five seconds, for longer each time the load
    /// returns at once, and until less than a third of the time goes into handshakes and fewer than
    /// 512 clients are on their way.
    #[default]
    Adaptive,
    /// Always. Nothing is held for a client before it proved its address.
    Always,
    /// Not by itself: only where the application calls `Incoming::retry`.
    Never,
}
