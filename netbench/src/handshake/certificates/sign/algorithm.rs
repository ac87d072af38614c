//! The signature algorithms and the digests that go with each (RFC 9882 §3.3).

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use aws_lc_rs::digest;
use cms::cert::x509::der::asn1::ObjectIdentifier;
use rustls::SignatureScheme;
use rustls::pki_types::SignatureVerificationAlgorithm;

/// A parameter set of ML-DSA (FIPS 204).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MlDsa {
    P44,
    P65,
    P87,
}

impl MlDsa {
    const ALL: [Self; 3] = [Self::P44, Self::P65, Self::P87];

    /// Returns the parameter set with an identifier (RFC 9881 §2).
    pub(super) fn of(oid: ObjectIdentifier) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.oid() == oid)
    }

    pub(super) const fn oid(self) -> ObjectIdentifier {
        ObjectIdentifier::new_unwrap(match self {
            Self::P44 => "2.16.840.1.101.3.4.3.17",
            Self::P65 => "2.16.840.1.101.3.4.3.18",
            Self::P87 => "2.16.840.1.101.3.4.3.19",
        })
    }

    /// Returns the name by which rustls knows it. TLS signs as CMS does: without a context.
    pub(super) const fn scheme(self) -> SignatureScheme {
        match self {
            Self::P44 => SignatureScheme::ML_DSA_44,
            Self::P65 => SignatureScheme::ML_DSA_65,
            Self::P87 => SignatureScheme::ML_DSA_87,
        }
    }

    /// Returns what checks its signatures.
    pub(super) fn verification(self) -> &'static dyn SignatureVerificationAlgorithm {
        match self {
            Self::P44 => webpki::aws_lc_rs::ML_DSA_44,
            Self::P65 => webpki::aws_lc_rs::ML_DSA_65,
            Self::P87 => webpki::aws_lc_rs::ML_DSA_87,
        }
    }

    /// Returns what checks the signatures of a chain.
    pub(super) fn verifications() -> [&'static dyn SignatureVerificationAlgorithm; 3] {
        Self::ALL.map(Self::verification)
    }

    /// Bytes of a signature.
    pub(super) const fn signature_len(self) -> usize {
        match self {
            Self::P44 => 2_420,
            Self::P65 => 3_309,
            Self::P87 => 4_627,
        }
    }

    /// Returns true if the digest is as strong as the signature.
    pub(super) const fn allows(self, digest: Digest) -> bool {
        match self {
            Self::P44 => true,
            Self::P65 => !matches!(digest, Digest::Sha256),
            Self::P87 => matches!(digest, Digest::Sha512),
        }
    }
}

impl fmt::Display for MlDsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::P44 => "ML-DSA-44",
            Self::P65 => "ML-DSA-65",
            Self::P87 => "ML-DSA-87",
        })
    }
}

/// A digest of the signed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Digest {
    Sha256,
    Sha384,
    Sha512,
}

impl Digest {
    const ALL: [Self; 3] = [Self::Sha256, Self::Sha384, Self::Sha512];

    pub(super) fn of(oid: ObjectIdentifier) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.oid() == oid)
    }

    pub(super) const fn oid(self) -> ObjectIdentifier {
        ObjectIdentifier::new_unwrap(match self {
            Self::Sha256 => "2.16.840.1.101.3.4.2.1",
            Self::Sha384 => "2.16.840.1.101.3.4.2.2",
            Self::Sha512 => "2.16.840.1.101.3.4.2.3",
        })
    }

    /// Computes the digest of a file of any size.
    pub(super) fn of_file(self, path: &Path) -> io::Result<digest::Digest> {
        let mut context = digest::Context::new(match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        });
        let mut file = File::open(path)?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(context.finish()),
                len => context.update(&buffer[..len]),
            }
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sha256 => "SHA-256",
            Self::Sha384 => "SHA-384",
            Self::Sha512 => "SHA-512",
        })
    }
}
