//! The interface for the application's own certificate checks.

use crate::{CertificateDer, Error, Side};

/// Certificates of a peer, with facts about it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PeerChain<'a> {
    /// Owner of the certificates: [`Side::Server`] if a client verifies.
    pub owner: Side,
    /// Certificate of the peer, then its issuers. rustls passes the chain as the peer sent it,
    /// s2n-tls the chain it verified, root included. Never empty.
    pub certificates: &'a [CertificateDer<'a>],
    /// Name or address that the client connects to. `None` if a server verifies.
    pub server_name: Option<&'a str>,
    /// Stapled OCSP response, unverified. Empty if there is none; s2n-tls provides none.
    pub ocsp_response: &'a [u8],
}

/// Accepts or refuses the certificates of peers.
///
/// Pass it to [`Trust::also`], to run after the built-in check, or to [`Trust::verifier`], to
/// replace that check. Closures implement this trait.
///
/// The provider itself verifies that the peer holds the key of its certificate. A resumed
/// connection presents no certificates, so no verifier is called. A rustls server resumes only
/// sessions that its own verifier accepted; an s2n-tls server with a verifier resumes none.
///
/// # Examples
/// ```
/// use hybriq_tls::{Alert, Error, PeerChain, Trust};
///
/// # let pinned: Vec<u8> = Vec::new();
/// let trust = Trust::system().also(move |peer: &PeerChain<'_>| {
///     if peer.certificates.iter().any(|it| it[..] == pinned[..]) {
///         return Ok(());
///     }
///     Err(Error::new(Alert::CERTIFICATE_UNKNOWN, "the chain has no pinned certificate"))
/// });
/// ```
///
/// [`Trust::also`]: crate::Trust::also
/// [`Trust::verifier`]: crate::Trust::verifier
pub trait Verifier: Send + Sync {
    /// Accepts the peer, or refuses it with the alert and the reason of the error.
    ///
    /// The call blocks [`Session::drive`] and with it every connection on the thread, so it should
    /// not use the network.
    ///
    /// [`Session::drive`]: crate::Session::drive
    ///
    /// # Errors
    /// The peer is not acceptable. It receives the alert; it receives the detail only if the error
    /// was created with [`Error::told`].
    fn verify(&self, peer: &PeerChain<'_>) -> Result<(), Error>;
}

impl<F> Verifier for F
where
    F: Fn(&PeerChain<'_>) -> Result<(), Error> + Send + Sync,
{
    fn verify(&self, peer: &PeerChain<'_>) -> Result<(), Error> {
        self(peer)
    }
}
