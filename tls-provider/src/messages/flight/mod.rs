//! Sizes of a server's handshake messages, before a handshake.

use crate::values::compression::Compressed;
use crate::{
    CertificateAlgorithms, CertificateCompression, CertificateDer, ClientHello, Group,
    KeyAlgorithm, Suite,
};

#[cfg(test)]
mod tests;

/// Sizes of the server's messages in a full handshake, for one ClientHello and one certificate
/// chain.
///
/// A transport uses it to forecast what the answer costs on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerFlight {
    /// Position of the identity in the order in which they were added, from 0.
    pub identity: usize,
    /// Key-exchange group.
    pub group: Group,
    /// Bytes of the HelloRetryRequest, if the client did not send a share of the group.
    pub retry_request: Option<usize>,
    /// Bytes of the ServerHello.
    pub server_hello: usize,
    /// Bytes of the messages from EncryptedExtensions to Finished, with the longest signature that the
    /// key can make.
    pub handshake: usize,
    /// Bytes by which `handshake` may be smaller: ECDSA signatures vary in length.
    pub varies: usize,
    /// Bytes of the message with the certificates, included in `handshake`.
    pub certificate: usize,
    /// Algorithm with which it is compressed, if it is.
    pub compression: Option<CertificateCompression>,
    /// True if a quantum computer can break no key and no signature in the chain.
    pub post_quantum: bool,
}

/// Facts about the server and its choices that determine the sizes.
#[cfg(any(feature = "rustls", all(unix, feature = "s2n-tls")))]
pub(crate) struct Answer<'a> {
    pub(crate) hello: &'a ClientHello,
    pub(crate) group: Group,
    pub(crate) suite: Suite,
    /// Application protocols of the server, first choice first.
    pub(crate) alpn: &'a [Vec<u8>],
    /// Bytes of the transport parameters.
    pub(crate) params: usize,
    /// Bytes of the CertificateRequest; 0 if there is none.
    pub(crate) request: usize,
}

/// Bytes of a message's header.
const HEADER: usize = 4;

/// Bytes of an extension before its contents.
const EXTENSION: usize = 4;

#[cfg(any(feature = "rustls", all(unix, feature = "s2n-tls")))]
impl Answer<'_> {
    /// Returns the sizes with a chain; `compressed` gives its bytes if it is compressed. `None` if
    /// the sizes of the key's signatures or of the group's shares are unknown.
    pub(crate) fn with(
        &self,
        identity: usize,
        chain: &[CertificateDer<'_>],
        compressed: Option<Compressed>,
    ) -> Option<ServerFlight> {
        let leaf = CertificateAlgorithms::of(chain.first()?)?;
        let (signature, varies) = signature_len(leaf.key)?;
        let share = self.group.share_sizes()?.server;
        let mut shares = self.hello.key_shares().iter();
        let has_share = shares.any(|share| share.group == self.group);
        let certificate = match compressed {
            Some(Compressed { len, .. }) => HEADER + 2 + 3 + 3 + len,
            None => HEADER + body_len(chain),
        };
        let verify = HEADER + 2 + 2 + signature;
        let finished = HEADER + hash_len(self.suite);
        Some(ServerFlight {
            identity,
            group: self.group,
            retry_request: (!has_share).then(|| self.hello_len(2)),
            server_hello: self.hello_len(2 + 2 + share),
            handshake: self.extensions() + self.request + certificate + verify + finished,
            varies,
            certificate,
            compression: compressed.map(|compressed| compressed.algorithm),
            post_quantum: is_post_quantum(chain),
        })
    }

    /// Returns the bytes of a ServerHello with this many bytes in its `key_share` extension.
    fn hello_len(&self, key_share: usize) -> usize {
        let session_id = self.hello.session_id_len();
        let fixed = 2 + 32 + 1 + session_id + 2 + 1;
        HEADER + fixed + 2 + (EXTENSION + 2) + (EXTENSION + key_share)
    }

    /// Returns the bytes of EncryptedExtensions.
    fn extensions(&self) -> usize {
        let mut ours = self.alpn.iter();
        let chosen = ours.find(|ours| self.hello.alpn().any(|theirs| theirs == **ours));
        let alpn = chosen.map_or(0, |name| EXTENSION + 2 + 1 + name.len());
        let name = self.hello.server_name().map_or(0, |_| EXTENSION);
        HEADER + 2 + alpn + name + EXTENSION + self.params
    }
}

/// Returns the bytes of a Certificate message's body for a server's chain.
pub(crate) fn body_len(chain: &[CertificateDer<'_>]) -> usize {
    let entries = chain.iter().map(|certificate| 3 + certificate.len() + 2);
    1 + 3 + entries.sum::<usize>()
}

/// Returns true if a quantum computer can break no key and no signature in a chain.
pub(crate) fn is_post_quantum(chain: &[CertificateDer<'_>]) -> bool {
    let mut algorithms = chain.iter().map(|it| CertificateAlgorithms::of(it));
    !chain.is_empty() && algorithms.all(|it| it.is_some_and(|it| it.is_post_quantum()))
}

/// Returns the largest size of a signature, and by how many bytes it may be smaller.
const fn signature_len(key: KeyAlgorithm) -> Option<(usize, usize)> {
    Some(match key {
        KeyAlgorithm::Rsa { bits } => ((bits as usize).div_ceil(8), 0),
        // Two integers in DER, which lose leading zeros: more than four bytes once in a billion.
        KeyAlgorithm::EcdsaP256 => (72, 8),
        KeyAlgorithm::EcdsaP384 => (104, 8),
        KeyAlgorithm::EcdsaP521 => (139, 8),
        KeyAlgorithm::Ed25519 => (64, 0),
        KeyAlgorithm::MlDsa44 => (2420, 0),
        KeyAlgorithm::MlDsa65 => (3309, 0),
        KeyAlgorithm::MlDsa87 => (4627, 0),
        KeyAlgorithm::Unknown => return None,
    })
}

const fn hash_len(suite: Suite) -> usize {
    match suite {
        Suite::Aes256GcmSha384 => 48,
        Suite::Aes128GcmSha256 | Suite::ChaCha20Poly1305Sha256 => 32,
    }
}
