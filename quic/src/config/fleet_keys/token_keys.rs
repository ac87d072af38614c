//! Keys of address validation tokens, shared by endpoints and rotated while they run.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use hybriq_proto::{
    random::Random as _,
    remembered::token::{Keys, Ring},
};
use zeroize::Zeroizing;

use crate::config::random::SystemRandom;

/// Keys that seal a server's address validation tokens (RFC 9000 §8.1), in Retry packets and for
/// later connections.
///
/// Servers behind one address share a secret, so that a client may return to a different server
/// from the one that issued its token. A rotation applies to every endpoint that uses a clone of
/// the keys.
///
/// The clocks of the machines in a fleet must agree to within a few seconds.
///
/// # Examples
/// To rotate the secret of a fleet, let every machine [accept](Self::also_accept) the next one
/// before the first [rotates](Self::rotate_to) to it:
/// ```no_run
/// use hybriq::{Endpoint, Identity, ServerConfig, fleet::TokenKeys};
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
/// Whoever knows a secret can forge tokens for any address, and use the server to flood that
/// address.
#[derive(Clone)]
pub struct TokenKeys(Arc<RwLock<Arc<Ring>>>);

impl TokenKeys {
    /// Creates keys only for this process, from the system's random generator. This is the default.
    ///
    /// # Panics
    /// The system delivers no random bytes.
    pub fn random() -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        SystemRandom::new().fill(secret.as_mut());
        Self::of(&secret)
    }

    /// Creates keys from a shared secret, which must be random: the same secret gives the same
    /// keys.
    pub fn from_secret(secret: [u8; 32]) -> Self {
        Self::of(&Zeroizing::new(secret))
    }

    pub(in crate::config) fn of(secret: &[u8; 32]) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(Ring::new(secret)))))
    }

    /// Seals new tokens with this secret. Tokens of the last three secrets stay valid until they
    /// expire.
    pub fn rotate_to(&self, secret: [u8; 32]) {
        let secret = Zeroizing::new(secret);
        self.change(|ring| ring.rotate(&secret));
    }

    /// Accepts tokens sealed with this secret, without sealing any with it yet.
    pub fn also_accept(&self, secret: [u8; 32]) {
        let secret = Zeroizing::new(secret);
        self.change(|ring| ring.accept(&secret));
    }

    fn change(&self, change: impl FnOnce(&mut Ring)) {
        let mut ring = self.0.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut ring));
    }
}

// For programs that drive the core themselves: the trait is its, not this crate's.
#[doc(hidden)]
impl Keys for TokenKeys {
    fn ring(&self) -> Arc<Ring> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenKeys").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Keys as _, TokenKeys};
    use hybriq_proto::remembered::token::Binding;

    #[test]
    fn clones_rotate_together_and_old_secrets_still_open() {
        let keys = TokenKeys::from_secret([1; 32]);
        let clone = keys.clone();
        let binding = Binding::new_token([192, 0, 2, 1].into(), 1);
        let seal = |keys: &TokenKeys| {
            let ring = keys.ring();
            ring.seal(
                &binding,
                [7; 16],
                0,
                &hybriq_proto::wire::packet::Cid::EMPTY,
            )
        };
        let opens = |keys: &TokenKeys, token: &[u8]| keys.ring().open(&binding, token).is_some();
        let (first, next) = (seal(&keys).unwrap(), TokenKeys::from_secret([2; 32]));
        assert!(!opens(&next, &first));
        clone.rotate_to([2; 32]);
        let second = seal(&keys).unwrap();
        assert!(opens(&next, &second) && opens(&keys, &first) && opens(&keys, &second));
        next.also_accept([1; 32]);
        assert!(opens(&next, &first));
    }
}
