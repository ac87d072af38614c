//! Algorithms of certificates: of the public key and of the issuer's signature (RFC 5280 §4.1).

use std::fmt;

use super::{from_validity, item};
use crate::SignatureScheme;

const SEQUENCE: u8 = super::SEQUENCE;
const INTEGER: u8 = super::INTEGER;
const OBJECT_IDENTIFIER: u8 = 0x06;
const BIT_STRING: u8 = 0x03;

/// Algorithm of the public key in a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyAlgorithm {
    /// RSA.
    Rsa {
        /// Bits of the modulus.
        bits: u32,
    },
    /// ECDSA on P-256.
    EcdsaP256,
    /// ECDSA on P-384.
    EcdsaP384,
    /// ECDSA on P-521.
    EcdsaP521,
    /// Ed25519.
    Ed25519,
    /// ML-DSA-44 (FIPS 204, RFC 9881).
    MlDsa44,
    /// ML-DSA-65.
    MlDsa65,
    /// ML-DSA-87.
    MlDsa87,
    /// An algorithm that this build does not know.
    Unknown,
}

/// Algorithm with which the issuer signed a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SignatureAlgorithm {
    /// RSA PKCS #1 v1.5 with SHA-256.
    RsaSha256,
    /// RSA PKCS #1 v1.5 with SHA-384.
    RsaSha384,
    /// RSA PKCS #1 v1.5 with SHA-512.
    RsaSha512,
    /// RSA-PSS.
    RsaPss,
    /// ECDSA with SHA-256.
    EcdsaSha256,
    /// ECDSA with SHA-384.
    EcdsaSha384,
    /// ECDSA with SHA-512.
    EcdsaSha512,
    /// Ed25519.
    Ed25519,
    /// ML-DSA-44.
    MlDsa44,
    /// ML-DSA-65.
    MlDsa65,
    /// ML-DSA-87.
    MlDsa87,
    /// An algorithm that this build does not know.
    Unknown,
}

/// Algorithms of one certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CertificateAlgorithms {
    /// Public key of the owner.
    pub key: KeyAlgorithm,
    /// Signature of the issuer.
    pub signature: SignatureAlgorithm,
}

/// Returns the number of bits of a certificate's signature, in whole bytes; `None` if it is malformed.
pub(crate) fn signature_bits(certificate: &[u8]) -> Option<u32> {
    let (whole, _) = item(certificate, SEQUENCE)?;
    let (_body, rest) = item(whole, SEQUENCE)?;
    let (_algorithm, rest) = item(rest, SEQUENCE)?;
    let (signature, _) = item(rest, BIT_STRING)?;
    let (_unused_bits, signature) = signature.split_first()?;
    u32::try_from(signature.len()).ok()?.checked_mul(8)
}

impl CertificateAlgorithms {
    /// Creates a value from both algorithms.
    pub const fn new(key: KeyAlgorithm, signature: SignatureAlgorithm) -> Self {
        Self { key, signature }
    }

    /// Reads the algorithms of a DER certificate; `None` if it is malformed.
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let (whole, _) = item(certificate, SEQUENCE)?;
        let (_body, rest) = item(whole, SEQUENCE)?;
        let (algorithm, _) = item(rest, SEQUENCE)?;
        let (_validity, rest) = item(from_validity(certificate)?, SEQUENCE)?;
        let (_subject, rest) = item(rest, SEQUENCE)?;
        let (key, _) = item(rest, SEQUENCE)?;
        Some(Self {
            key: KeyAlgorithm::of(key)?,
            signature: SignatureAlgorithm::of(algorithm)?,
        })
    }

    /// Returns true if a quantum computer can break neither the key nor the signature.
    pub fn is_post_quantum(&self) -> bool {
        self.key.is_post_quantum() && self.signature.is_post_quantum()
    }
}

/// Returns true if a PKCS #8 private key is an ML-DSA key by its own declaration, in whatever form.
#[cfg(any(feature = "rustls", all(unix, feature = "s2n-tls")))]
pub(super) fn is_ml_dsa_key(pkcs8: &[u8]) -> bool {
    let algorithm = || {
        let (whole, _) = item(pkcs8, SEQUENCE)?;
        let (_version, rest) = item(whole, INTEGER)?;
        let (algorithm, _) = item(rest, SEQUENCE)?;
        SignatureAlgorithm::of(algorithm)
    };
    algorithm().is_some_and(SignatureAlgorithm::is_post_quantum)
}

/// Splits the OBJECT IDENTIFIER off the front of an AlgorithmIdentifier.
fn identifier(algorithm: &[u8]) -> Option<(&[u8], &[u8])> {
    item(algorithm, OBJECT_IDENTIFIER)
}

impl KeyAlgorithm {
    /// Reads the contents of a SubjectPublicKeyInfo.
    fn of(info: &[u8]) -> Option<Self> {
        let (algorithm, rest) = item(info, SEQUENCE)?;
        let (id, parameters) = identifier(algorithm)?;
        Some(match id {
            b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01" | b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a" => {
                let (key, _) = item(rest, BIT_STRING)?;
                Self::Rsa {
                    bits: modulus_bits(key)?,
                }
            }
            b"\x2a\x86\x48\xce\x3d\x02\x01" => match identifier(parameters)?.0 {
                b"\x2a\x86\x48\xce\x3d\x03\x01\x07" => Self::EcdsaP256,
                b"\x2b\x81\x04\x00\x22" => Self::EcdsaP384,
                b"\x2b\x81\x04\x00\x23" => Self::EcdsaP521,
                _ => Self::Unknown,
            },
            b"\x2b\x65\x70" => Self::Ed25519,
            b"\x60\x86\x48\x01\x65\x03\x04\x03\x11" => Self::MlDsa44,
            b"\x60\x86\x48\x01\x65\x03\x04\x03\x12" => Self::MlDsa65,
            b"\x60\x86\x48\x01\x65\x03\x04\x03\x13" => Self::MlDsa87,
            _ => Self::Unknown,
        })
    }

    /// Returns true if a quantum computer cannot break the key.
    pub const fn is_post_quantum(self) -> bool {
        matches!(self, Self::MlDsa44 | Self::MlDsa65 | Self::MlDsa87)
    }

    /// Returns the schemes with which such a key may sign a handshake; none if they are unknown.
    /// Both kinds of RSA keys count as one here.
    pub(crate) const fn schemes(self) -> &'static [SignatureScheme] {
        match self {
            Self::Rsa { .. } => &[
                SignatureScheme::RSA_PSS_RSAE_SHA256,
                SignatureScheme::RSA_PSS_RSAE_SHA384,
                SignatureScheme::RSA_PSS_RSAE_SHA512,
                SignatureScheme::RSA_PSS_PSS_SHA256,
                SignatureScheme::RSA_PSS_PSS_SHA384,
                SignatureScheme::RSA_PSS_PSS_SHA512,
            ],
            Self::EcdsaP256 => &[SignatureScheme::ECDSA_SECP256R1_SHA256],
            Self::EcdsaP384 => &[SignatureScheme::ECDSA_SECP384R1_SHA384],
            Self::EcdsaP521 => &[SignatureScheme::ECDSA_SECP521R1_SHA512],
            Self::Ed25519 => &[SignatureScheme::ED25519],
            Self::MlDsa44 => &[SignatureScheme::MLDSA44],
            Self::MlDsa65 => &[SignatureScheme::MLDSA65],
            Self::MlDsa87 => &[SignatureScheme::MLDSA87],
            Self::Unknown => &[],
        }
    }
}

/// Returns the bits of the modulus of an RSAPublicKey in a BIT STRING.
fn modulus_bits(key: &[u8]) -> Option<u32> {
    let (_unused_bits, key) = key.split_first()?;
    let (key, _) = item(key, SEQUENCE)?;
    let (modulus, _) = item(key, INTEGER)?;
    let leading = modulus.iter().position(|byte| *byte != 0)?;
    let significant = modulus.get(leading..)?;
    let bits = significant.len().checked_mul(8)? as u32;
    Some(bits - significant.first()?.leading_zeros())
}

impl SignatureAlgorithm {
    /// Reads the contents of an AlgorithmIdentifier.
    fn of(algorithm: &[u8]) -> Option<Self> {
        Some(match identifier(algorithm)?.0 {
            b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b" => Self::RsaSha256,
            b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c" => Self::RsaSha384,
            b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d" => Self::RsaSha512,
            b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a" => Self::RsaPss,
            b"\x2a\x86\x48\xce\x3d\x04\x03\x02" => Self::EcdsaSha256,
            b"\x2a\x86\x48\xce\x3d\x04\x03\x03" => Self::EcdsaSha384,
            b"\x2a\x86\x48\xce\x3d\x04\x03\x04" => Self::EcdsaSha512,
            b"\x2b\x65\x70" => Self::Ed25519,
            b"\x60\x86\x48\x01\x65\x03\x04\x03\x11" => Self::MlDsa44,
            b"\x60\x86\x48\x01\x65\x03\x04\x03\x12" => Self::MlDsa65,
            b"\x60\x86\x48\x01\x65\x03\x04\x03\x13" => Self::MlDsa87,
            _ => Self::Unknown,
        })
    }

    /// Returns true if the signature cannot be forged with a quantum computer.
    pub const fn is_post_quantum(self) -> bool {
        matches!(self, Self::MlDsa44 | Self::MlDsa65 | Self::MlDsa87)
    }
}

impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rsa { bits } => return write!(f, "RSA-{bits}"),
            Self::EcdsaP256 => "ECDSA P-256",
            Self::EcdsaP384 => "ECDSA P-384",
            Self::EcdsaP521 => "ECDSA P-521",
            Self::Ed25519 => "Ed25519",
            Self::MlDsa44 => "ML-DSA-44",
            Self::MlDsa65 => "ML-DSA-65",
            Self::MlDsa87 => "ML-DSA-87",
            Self::Unknown => "of an unknown kind",
        })
    }
}

impl fmt::Display for SignatureAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RsaSha256 => "RSA with SHA-256",
            Self::RsaSha384 => "RSA with SHA-384",
            Self::RsaSha512 => "RSA with SHA-512",
            Self::RsaPss => "RSA-PSS",
            Self::EcdsaSha256 => "ECDSA with SHA-256",
            Self::EcdsaSha384 => "ECDSA with SHA-384",
            Self::EcdsaSha512 => "ECDSA with SHA-512",
            Self::Ed25519 => "Ed25519",
            Self::MlDsa44 => "ML-DSA-44",
            Self::MlDsa65 => "ML-DSA-65",
            Self::MlDsa87 => "ML-DSA-87",
            Self::Unknown => "of an unknown kind",
        })
    }
}

impl fmt::Display for CertificateAlgorithms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} key signed by {}", self.key, self.signature)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, Issuer, KeyPair, SignatureAlgorithm as Rcgen};

    use super::*;

    fn certificate(key: &'static Rcgen, signed_by: &'static Rcgen) -> Vec<u8> {
        let pair = |algorithm| KeyPair::generate_for(algorithm).expect("a key");
        let params = || CertificateParams::new(vec!["example.test".to_owned()]).expect("names");
        let issuer = Issuer::new(params(), pair(signed_by));
        let signed = params().signed_by(&pair(key), &issuer);
        signed.expect("a certificate").der().to_vec()
    }

    #[test]
    fn keys_and_signatures_are_told_apart() {
        let found = |key, signed_by| {
            let found = CertificateAlgorithms::of(&certificate(key, signed_by)).expect("both");
            (found.key, found.signature)
        };
        assert_eq!(
            found(
                &rcgen::PKCS_ECDSA_P256_SHA256,
                &rcgen::PKCS_ECDSA_P384_SHA384
            ),
            (KeyAlgorithm::EcdsaP256, SignatureAlgorithm::EcdsaSha384)
        );
        assert_eq!(
            found(&rcgen::PKCS_ED25519, &rcgen::PKCS_ECDSA_P256_SHA256),
            (KeyAlgorithm::Ed25519, SignatureAlgorithm::EcdsaSha256)
        );
        assert_eq!(
            found(&rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519),
            (KeyAlgorithm::EcdsaP384, SignatureAlgorithm::Ed25519)
        );
    }

    #[test]
    fn the_modulus_of_rsa_is_counted_in_bits() {
        let key = |modulus: &[u8]| {
            let modulus = [&[INTEGER, modulus.len() as u8], modulus].concat();
            let sequence = [&[SEQUENCE, modulus.len() as u8], &*modulus].concat();
            [&[0][..], &sequence].concat()
        };
        assert_eq!(modulus_bits(&key(&[0, 0x80, 0])), Some(16));
        assert_eq!(modulus_bits(&key(&[0x7f, 0])), Some(15));
        assert_eq!(modulus_bits(&key(&[0, 0])), None);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(mut bytes in prop::collection::vec(any::<u8>(), 0..200),
                                    cut in 0_usize..900, at in 0_usize..900, to in any::<u8>()) {
            CertificateAlgorithms::of(&bytes);
            bytes = certificate(&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P256_SHA256);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = to;
            }
            CertificateAlgorithms::of(&bytes);
            bytes.truncate(cut);
            CertificateAlgorithms::of(&bytes);
        }
    }
}
