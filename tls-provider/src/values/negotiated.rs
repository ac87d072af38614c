//! The outcome of a handshake.

use std::fmt;

use crate::{CertificateMessage, Group, Lineage, Suite};

/// A TLS signature scheme by its IANA code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SignatureScheme(pub u16);

impl SignatureScheme {
    /// ECDSA on P-256 with SHA-256.
    pub const ECDSA_SECP256R1_SHA256: Self = Self(0x0403);
    /// ECDSA on P-384 with SHA-384.
    pub const ECDSA_SECP384R1_SHA384: Self = Self(0x0503);
    /// ECDSA on P-521 with SHA-512.
    pub const ECDSA_SECP521R1_SHA512: Self = Self(0x0603);
    /// Ed25519.
    pub const ED25519: Self = Self(0x0807);
    /// RSA-PSS with SHA-256, for keys of the kind `rsaEncryption`.
    pub const RSA_PSS_RSAE_SHA256: Self = Self(0x0804);
    /// RSA-PSS with SHA-384, for keys of the kind `rsaEncryption`.
    pub const RSA_PSS_RSAE_SHA384: Self = Self(0x0805);
    /// RSA-PSS with SHA-512, for keys of the kind `rsaEncryption`.
    pub const RSA_PSS_RSAE_SHA512: Self = Self(0x0806);
    /// RSA-PSS with SHA-256, for keys of the kind `RSASSA-PSS`.
    pub const RSA_PSS_PSS_SHA256: Self = Self(0x0809);
    /// RSA-PSS with SHA-384, for keys of the kind `RSASSA-PSS`.
    pub const RSA_PSS_PSS_SHA384: Self = Self(0x080a);
    /// RSA-PSS with SHA-512, for keys of the kind `RSASSA-PSS`.
    pub const RSA_PSS_PSS_SHA512: Self = Self(0x080b);

    /// ML-DSA-44 (draft-ietf-tls-mldsa).
    pub const MLDSA44: Self = Self(0x0904);
    /// ML-DSA-65.
    pub const MLDSA65: Self = Self(0x0905);
    /// ML-DSA-87.
    pub const MLDSA87: Self = Self(0x0906);

    /// Returns the IANA name, or `None` for a scheme this build does not know.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0x0403 => "ecdsa_secp256r1_sha256",
            0x0503 => "ecdsa_secp384r1_sha384",
            0x0603 => "ecdsa_secp521r1_sha512",
            0x0804 => "rsa_pss_rsae_sha256",
            0x0805 => "rsa_pss_rsae_sha384",
            0x0806 => "rsa_pss_rsae_sha512",
            0x0807 => "ed25519",
            0x0809 => "rsa_pss_pss_sha256",
            0x080a => "rsa_pss_pss_sha384",
            0x080b => "rsa_pss_pss_sha512",
            0x0904 => "mldsa44",
            0x0905 => "mldsa65",
            0x0906 => "mldsa87",
            _ => return None,
        })
    }
}

impl SignatureScheme {
    /// Finds the scheme with an IANA name, ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            0x0403, 0x0503, 0x0603, 0x0804, 0x0805, 0x0806, 0x0807, 0x0809, 0x080a, 0x080b, 0x0904,
            0x0905, 0x0906,
        ]
        .into_iter()
        .map(Self)
        .find(|scheme| {
            scheme
                .name()
                .is_some_and(|known| known.eq_ignore_ascii_case(name))
        })
    }
}

impl fmt::Display for SignatureScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "signature scheme {:#06x}", self.0),
        }
    }
}

/// Outcome of a handshake. Fields are `None` until they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Negotiated {
    /// Key-exchange group.
    pub group: Option<Group>,
    /// True if the server sent a HelloRetryRequest.
    pub hello_retry: bool,
    /// Cipher suite.
    pub suite: Option<Suite>,
    /// Scheme of the server's signature. `None` when resumed, or if the library does not report it.
    pub signature_scheme: Option<SignatureScheme>,
    /// Scheme of the client's signature. `None` when resumed, if the client presented no
    /// certificate, or if the library does not report it.
    pub client_signature_scheme: Option<SignatureScheme>,
    /// Application protocol.
    pub alpn: Option<Vec<u8>>,
    /// Server name that the client asked for.
    pub server_name: Option<String>,
    /// True if a session ticket replaced the certificate.
    pub resumed: bool,
    /// True if 0-RTT data was accepted.
    pub early_data: bool,
    /// Lineage of the session: that of its own full handshake, or of the first one in its chain of
    /// tickets. Known at completion.
    pub lineage: Option<Lineage>,
    /// Message in which the peer presented its certificates. `None` if it presented none, or if the
    /// library does not report it.
    pub certificate_message: Option<CertificateMessage>,
    /// True if the library ran on a FIPS module whose self tests have passed, and both the group and
    /// the cipher suite are approved. It says nothing about the certificates.
    pub fips: bool,
}
