use std::fmt;

use crate::{Group, Lineage, Suite};

/// A TLS signature scheme by its IANA code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SignatureScheme(pub u16);

impl SignatureScheme {
    /// The IANA name, or `None` for one this build does not know.
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
    /// The scheme of an IANA name, whatever its case.
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

/// What a handshake agreed on. Fields are `None` until they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Negotiated {
    /// The key-exchange group.
    pub group: Option<Group>,
    /// Whether the server sent a HelloRetryRequest.
    pub hello_retry: bool,
    /// The cipher suite.
    pub suite: Option<Suite>,
    /// How the server signed. `None` when resumed, or where the library does not tell.
    pub signature_scheme: Option<SignatureScheme>,
    /// The application protocol.
    pub alpn: Option<Vec<u8>>,
    /// The server name the client asked for.
    pub server_name: Option<String>,
    /// Whether a session ticket replaced the certificate.
    pub resumed: bool,
    /// Whether 0-RTT data was accepted.
    pub early_data: bool,
    /// What the full handshake rested on that this session goes back to: its own, or the first of
    /// the chain of tickets. Known at completion.
    pub lineage: Option<Lineage>,
}
