//! Configurations of s2n-tls: certificates, keys, roots, and limitations.

use std::sync::Arc;

use s2n_tls::callbacks::VerifyHostNameCallback;
use s2n_tls::cert_chain::{self, CertificateChain};
use s2n_tls::config::Builder;
use s2n_tls::error::Error as S2nError;
use s2n_tls::security;

use super::{policy::Policy, reason, unsupported};
use crate::{
    CertificateCompression, CertificateDer, ConfigError, Identity, PrivateKeyDer, Signer, Trust,
    options::{Anchors, Key},
    policy::certificate,
};
use base64ct::{Base64, Encoding};
use zeroize::{Zeroize, Zeroizing};

/// Returns a builder with what both sides need: QUIC, a policy and the application protocols.
pub(super) fn builder(policy: &Policy, alpn: &[Vec<u8>]) -> Result<Builder, ConfigError> {
    check_alpn(alpn)?;
    let build = || -> Result<Builder, S2nError> {
        let mut builder = Builder::new();
        builder.with_system_certs(false)?;
        builder.enable_quic()?;
        builder.set_security_policy(&security::Policy::from_version(policy.name)?)?;
        builder.set_application_protocol_preference(alpn)?;
        Ok(builder)
    };
    build().map_err(|error| unsupported(format!("policy `{}`: {}", policy.name, reason(&error))))
}

/// Refuses protocol names that s2n-tls handles wrongly: it mistakes an answer of one byte for no
/// answer, and returns the answer as a C string.
pub(super) fn check_alpn(alpn: &[Vec<u8>]) -> Result<(), ConfigError> {
    if alpn
        .iter()
        .all(|protocol| protocol.len() > 1 && !protocol.contains(&0))
    {
        return Ok(());
    }
    Err(unsupported(
        "its ALPN protocol names have at least two bytes and no zero byte; give other names or \
         use rustls",
    ))
}

/// Loads an identity.
pub(super) fn chain(identity: &Identity) -> Result<CertificateChain<'static>, ConfigError> {
    let key = match identity.key() {
        Key::Der(key) => key,
        Key::Signer(signer) => return public_chain(identity, signer),
    };
    let is_ml_dsa = || {
        let leaf = crate::CertificateAlgorithms::of(identity.certificates().first()?)?;
        Some(leaf.key.is_post_quantum())
    };
    if !super::HAS_ML_DSA && is_ml_dsa() == Some(true) {
        return Err(ConfigError::Identity(super::NO_ML_DSA.to_owned()));
    }
    let remedy = certificate::key_remedy(key.secret_der());
    let key = key_pem(key).ok_or_else(|| {
        ConfigError::Identity(
            "the private key has an unknown format; give PKCS #8, PKCS #1 or SEC1".to_owned(),
        )
    })?;
    let load = || -> Result<CertificateChain<'static>, S2nError> {
        let mut builder = cert_chain::Builder::new()?;
        builder.load_pem(
            chain_pem(identity.certificates()).as_bytes(),
            key.as_bytes(),
        )?;
        builder.build()
    };
    load().map_err(|error| {
        ConfigError::Identity(match error.name() {
            "S2N_ERR_KEY_MISMATCH" => crate::error::KEY_MISMATCH.to_owned(),
            _ => format!("{}; {remedy}", reason(&error)),
        })
    })
}

/// Describes a chain with an external key that s2n-tls cannot load.
fn unreadable(error: &S2nError) -> String {
    format!(
        "{}; give an X.509 chain with a key of ECDSA or RSA",
        reason(error)
    )
}

/// Loads a chain with an external key.
fn public_chain(
    identity: &Identity,
    signer: &Arc<dyn Signer>,
) -> Result<CertificateChain<'static>, ConfigError> {
    if !signer.signs_digests() {
        return Err(unsupported(
            "it gives a signer only a digest, which this one does not sign; implement \
             Signer::sign_digest, or use rustls",
        ));
    }
    let leaf = identity.certificates().first();
    let certified = leaf.and_then(|leaf| certificate::public_key(leaf));
    if let Some(key) = signer.public_key() {
        if certified.is_some_and(|certified| certified != key) {
            return Err(ConfigError::Identity(crate::error::KEY_MISMATCH.to_owned()));
        }
    }
    let load = || -> Result<CertificateChain<'static>, S2nError> {
        let mut builder = cert_chain::Builder::new()?;
        builder.load_public_pem(chain_pem(identity.certificates()).as_bytes())?;
        builder.set_application_context(signer.clone())?;
        builder.build()
    };
    load().map_err(|error| ConfigError::Identity(unreadable(&error)))
}

/// Adds a certificate chain, which all configurations share.
pub(super) fn add_chain(
    builder: &mut Builder,
    chain: &CertificateChain<'static>,
    policy: &Policy,
) -> Result<(), ConfigError> {
    builder
        .load_chain(chain.clone())
        .map(drop)
        .map_err(|error| {
            ConfigError::Identity(format!(
                "{} under the policy `{}`; give a certificate that it accepts, or use rustls",
                reason(&error),
                policy.name
            ))
        })
}

/// Refuses certificate compression.
pub(super) fn refuse_compression(wanted: &[CertificateCompression]) -> Result<(), ConfigError> {
    if wanted.is_empty() {
        return Ok(());
    }
    Err(unsupported(
        "it has no certificate compression; leave certificate_compression out, or use rustls",
    ))
}

/// Refuses options that change the rustls configuration.
#[cfg(feature = "rustls")]
pub(super) fn refuse_change(of_rustls: Option<()>) -> Result<(), ConfigError> {
    match of_rustls {
        None => Ok(()),
        Some(()) => Err(unsupported(
            "change_rustls has nothing to change here; leave it out, or use rustls",
        )),
    }
}

/// Refuses key shares made ahead of time, which s2n-tls does not support.
pub(super) fn refuse_shares_ahead(pairs: usize) -> Result<(), ConfigError> {
    match pairs {
        0 => Ok(()),
        _ => Err(unsupported(
            "it makes its key shares itself when it needs them; leave key_shares_ahead out, or use \
             rustls",
        )),
    }
}

/// Trusted roots in the form that s2n-tls reads.
#[derive(Clone)]
pub(super) enum Roots {
    Pem(Arc<[String]>),
    Anyone,
}

impl Roots {
    pub(super) fn new(trust: &Trust) -> Result<Self, ConfigError> {
        if !trust.revocation().is_empty() {
            return Err(unsupported(
                "it has no revocation lists; use rustls, or leave them out",
            ));
        }
        if !trust.known_intermediates().is_empty() {
            return Err(unsupported(
                "it has no place for intermediates that peers leave out; use rustls, or let the peers \
                 send them and leave Trust::intermediates out",
            ));
        }
        Ok(match trust.anchors()? {
            Anchors::Anyone if trust.custom().is_some() => {
                return Err(unsupported(
                    "it keeps no certificates that it does not check, so that no verifier can \
                     decide alone; use rustls, or Trust::also over trusted roots",
                ));
            }
            Anchors::Anyone => Self::Anyone,
            Anchors::Roots(roots) => Self::Pem(
                roots
                    .iter()
                    .map(|root| chain_pem(&[CertificateDer::from(&**root)]))
                    .collect(),
            ),
        })
    }

    /// Adds the roots. System stores contain a few certificates that no library can read, so only a
    /// store without any readable one is an error.
    pub(super) fn apply(&self, builder: &mut Builder) -> Result<(), ConfigError> {
        match self {
            Self::Anyone => accept_anyone(builder),
            Self::Pem(roots) => {
                let added = roots
                    .iter()
                    .filter(|pem| builder.trust_pem(pem.as_bytes()).is_ok());
                match added.count() {
                    0 => Err(ConfigError::Roots(format!(
                        "none of {} certificates can be read; give X.509 certificates",
                        roots.len()
                    ))),
                    _ => Ok(()),
                }
            }
        }
    }
}

#[expect(unsafe_code, reason = "s2n-tls marks this call unsafe as a warning")]
fn accept_anyone(builder: &mut Builder) -> Result<(), ConfigError> {
    // SAFETY: memory safety is not affected. The user asked for this with a method that is named
    // dangerous, and the handshake signature is still verified.
    unsafe { builder.disable_x509_verification() }
        .map(drop)
        .map_err(|error| ConfigError::Roots(reason(&error)))
}

/// Accepts every name: a server does not know its clients' names, and only checks their chain.
pub(super) struct AnyName;

impl VerifyHostNameCallback for AnyName {
    fn verify_host_name(&self, _: &str) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;

const LINE_LEN: usize = 64;

/// Encodes a certificate chain.
pub(in crate::providers::s2n) fn chain_pem(certificates: &[CertificateDer<'_>]) -> String {
    let mut pem = String::new();
    for certificate in certificates {
        pem.push_str(&encode("CERTIFICATE", certificate));
    }
    pem
}

/// Encodes a private key, in memory that is wiped.
pub(in crate::providers::s2n) fn key_pem(key: &PrivateKeyDer<'_>) -> Option<Zeroizing<String>> {
    Some(match key {
        PrivateKeyDer::Pkcs8(key) => encode("PRIVATE KEY", key.secret_pkcs8_der()),
        PrivateKeyDer::Sec1(key) => encode("EC PRIVATE KEY", key.secret_sec1_der()),
        PrivateKeyDer::Pkcs1(key) => encode("RSA PRIVATE KEY", key.secret_pkcs1_der()),
        _ => return None,
    })
}

/// Encodes in constant time: the bytes may be a key.
fn encode(label: &str, der: &[u8]) -> Zeroizing<String> {
    let encoded = Base64::encoded_len(der);
    // Reserved in full: a growing string would leave copies of a key behind.
    let capacity = encoded + encoded / LINE_LEN + 2 * label.len() + 48;
    let mut pem = Zeroizing::new(String::with_capacity(capacity));
    pem.push_str("-----BEGIN ");
    pem.push_str(label);
    pem.push_str("-----\n");
    let mut line = [0; LINE_LEN];
    for bytes in der.chunks(LINE_LEN / 4 * 3) {
        // Each chunk fits into its line, so this never fails.
        pem.push_str(Base64::encode(bytes, &mut line).unwrap_or_default());
        pem.push('\n');
    }
    line.zeroize();
    pem.push_str("-----END ");
    pem.push_str(label);
    pem.push_str("-----\n");
    debug_assert!(pem.len() <= capacity, "the PEM text grew");
    pem
}
