//! The interface for private keys outside this process.

use crate::SignatureScheme;

/// A private key in a hardware module, in an agent or at a remote service.
///
/// [`Identity::from_signer`] turns it into an [`Identity`].
///
/// # Examples
/// ```
/// use hybriq_tls::{CertificateDer, Identity, SignError, SignatureScheme, Signer};
///
/// # struct Agent;
/// # impl Agent {
/// #     fn sign(&self, _: &str, _: &[u8]) -> std::io::Result<Vec<u8>> {
/// #         Ok(Vec::new())
/// #     }
/// # }
/// /// A P-256 key that an agent on this machine holds.
/// struct AgentKey {
///     agent: Agent,
///     name: String,
/// }
///
/// impl Signer for AgentKey {
///     fn schemes(&self) -> &[SignatureScheme] {
///         &[SignatureScheme::ECDSA_SECP256R1_SHA256]
///     }
///
///     fn sign(&self, _: SignatureScheme, message: &[u8]) -> Result<Vec<u8>, SignError> {
///         let signature = self.agent.sign(&self.name, message);
///         signature.map_err(|error| SignError(error.to_string()))
///     }
/// }
///
/// fn identity(chain: Vec<CertificateDer<'static>>, key: AgentKey) -> Identity {
///     Identity::from_signer(chain, key)
/// }
/// ```
///
/// [`Identity`]: crate::Identity
/// [`Identity::from_signer`]: crate::Identity::from_signer
pub trait Signer: Send + Sync {
    /// Returns the schemes that the key can sign with, first preference first.
    fn schemes(&self) -> &[SignatureScheme];

    /// Returns the public key (DER SubjectPublicKeyInfo, RFC 5280 §4.1), if it is known.
    ///
    /// With it, a provider refuses a certificate for another key when it is built; without it,
    /// every handshake with such a certificate fails.
    fn public_key(&self) -> Option<Vec<u8>> {
        None
    }

    /// Signs a message with one of [`schemes`](Self::schemes).
    ///
    /// The message is not hashed. The signature has the form that TLS 1.3 requires (RFC 8446
    /// §4.2.3): DER for ECDSA.
    ///
    /// The call blocks [`Session::drive`] and with it every connection on the thread: a key that
    /// takes 20 ms limits a thread to 50 full handshakes a second and delays its other connections
    /// by as much. Resumed handshakes need no signature.
    ///
    /// [`Session::drive`]: crate::Session::drive
    ///
    /// # Errors
    /// The key cannot be used now. The handshake fails with `internal_error`; the peer does not learn why.
    fn sign(&self, scheme: SignatureScheme, message: &[u8]) -> Result<Vec<u8>, SignError>;

    /// Returns true if [`sign_digest`](Self::sign_digest) works, which s2n-tls needs. Default: false.
    fn signs_digests(&self) -> bool {
        false
    }

    /// Signs a message already hashed with the hash of the scheme, otherwise like
    /// [`sign`](Self::sign). s2n-tls calls this method, and chooses among the schemes of the
    /// certificate's key regardless of [`schemes`](Self::schemes).
    ///
    /// # Errors
    /// The key cannot be used now, or does not sign digests.
    fn sign_digest(&self, scheme: SignatureScheme, digest: &[u8]) -> Result<Vec<u8>, SignError> {
        let _ = (scheme, digest);
        Err(SignError("it signs no digests".to_owned()))
    }
}

/// A signature that a [`Signer`] could not make.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signer failed: {0}")]
pub struct SignError(pub String);
