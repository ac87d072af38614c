//! The key of stateless reset tokens.

use std::fmt;

use aws_lc_rs::{cmac, hmac};
use zeroize::Zeroizing;

use crate::{
    random::Random,
    wire::{ResetToken, packet::Cid},
};

/// Key of stateless reset tokens (RFC 9000 §10.3.2). Only its holder can end the connections for
/// whose ids it made tokens.
///
/// With the same key, a server that lost its connections in a restart, or another machine that
/// packets reach after a routing change, can tell the clients that their connections are lost.
/// Otherwise the clients wait for their idle timeout.
///
/// # Security
/// Machines that share a key must not use the same ids for different connections, and a packet must
/// not be routed to a machine that does not hold its connection while another machine does: the
/// wrong machine would end the connection.
///
/// # Examples
/// ```no_run
/// use hybriq::{Endpoint, Identity, ServerConfig, fleet::ResetKey};
///
/// # fn run(secret: [u8; 32]) -> Result<(), Box<dyn std::error::Error>> {
/// let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
/// let server = Endpoint::builder()
///     .server(ServerConfig::new(identity).alpn(["echo"]))
///     .reset_key(ResetKey::from_secret(secret)) // the same on every machine, and after a restart
///     .bind("[::]:4433")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ResetKey {
    /// Key of the tokens, which are AES-CMACs (RFC 4493) of ids: one or two blocks of AES, where HMAC
    /// takes two of SHA-256.
    tokens: cmac::Key,
    /// Key from which the others are derived.
    root: hmac::Key,
}

#[cfg(test)]
thread_local! {
    /// Number of tokens that this thread computed.
    pub(crate) static TOKENS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl ResetKey {
    /// Generates a random key, as an endpoint does by default.
    pub fn generate(random: &mut dyn Random) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        random.fill(&mut *secret);
        Self::from_secret(*secret)
    }

    /// Creates a key from a secret that is used for nothing else.
    pub fn from_secret(secret: [u8; 32]) -> Self {
        Self::from_root(hmac::Key::new(hmac::HMAC_SHA256, &secret))
    }

    fn from_root(root: hmac::Key) -> Self {
        let tokens = derive(&root, b"how the tokens of stateless resets are computed");
        Self {
            tokens: cmac::Key::new(cmac::AES_256, &*tokens)
                .expect("SHA-256 has the length of a key of AES-256"),
            root,
        }
    }

    /// Derives a key for one worker from a secret that also serves another purpose.
    pub(crate) fn derived(secret: [u8; 16]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let secret = derive(&key, b"stateless reset");
        Self::from_root(hmac::Key::new(hmac::HMAC_SHA256, &*secret))
    }

    /// Returns the reset token of an id.
    pub(crate) fn token(&self, cid: &Cid) -> ResetToken {
        #[cfg(test)]
        TOKENS.set(TOKENS.get() + 1);
        ResetToken::new(self.tag(cid.as_bytes()))
    }

    fn tag(&self, input: &[u8]) -> [u8; 16] {
        let mut tag = [0; 16];
        cmac::sign_to_buffer(&self.tokens, input, &mut tag)
            .expect("AES-CMAC takes any input, and has 16 bytes");
        tag
    }
}

impl ResetKey {
    /// Returns a value by which two processes can check that they have the same key, and compute the
    /// same tokens from it. It reveals nothing else.
    #[doc(hidden)]
    pub fn fingerprint(&self) -> [u8; 16] {
        // Longer than an id, so that no token is equal.
        self.tag(b"by this two processes know the same key")
    }

    /// Returns a key derived from this one, for the mask of [`super::QuicLb`].
    pub(super) fn mask(&self) -> [u8; 16] {
        let tag = hmac::sign(&self.root, b"how the worker of an unencrypted id is hidden");
        tag.as_ref().first_chunk().copied().unwrap_or_default()
    }

    /// Returns words derived from the key, for [`super::Steering`].
    pub(super) fn words(&self) -> [u32; 2] {
        let tag = hmac::sign(&self.root, b"how the system finds the worker of an id");
        let mut words = tag.as_ref().chunks_exact(4).map(|word| {
            word.iter()
                .fold(0, |value, byte| value << 8 | u32::from(*byte))
        });
        [words.next(), words.next()].map(Option::unwrap_or_default)
    }
}

/// Computes HMAC of a text that says what the secret is for.
fn derive(key: &hmac::Key, purpose: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut derived = Zeroizing::new([0; 32]);
    hmac::sign_to_buffer(key, purpose, &mut *derived).expect("SHA-256 has 32 bytes");
    derived
}

impl fmt::Debug for ResetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::{ResetKey, cmac};

    #[test]
    fn keys_that_compute_other_tokens_have_other_fingerprints() {
        let key = ResetKey::from_secret([7; 32]);
        let same = ResetKey::from_secret([7; 32]);
        assert_eq!(key.fingerprint(), same.fingerprint());
        let other = ResetKey {
            tokens: cmac::Key::new(cmac::AES_256, &[7; 32]).expect("a key"),
            ..same
        };
        assert_ne!(key.fingerprint(), other.fingerprint());
    }
}
