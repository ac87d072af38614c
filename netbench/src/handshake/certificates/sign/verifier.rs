//! Checking of signatures.

use std::{
    fmt,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use cms::cert::x509::Certificate;
use cms::cert::x509::der::asn1::ObjectIdentifier;
use cms::cert::x509::der::{self, Encode as _};
use cms::cert::x509::ext::pkix::{ExtendedKeyUsage, KeyUsage};
use cms::cert::x509::name::Name;
use hybriq::error::Printable;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{
    EndEntityCert, ExtendedKeyUsageValidator, KeyPurposeIdIter, anchor_from_trusted_cert,
};

use super::{SIGNATURE, TRUSTED, VerifyError, algorithm::MlDsa, message::Message, read};

/// Maximum number of certificates in a signature.
const CERTIFICATES: usize = 16;

/// What a valid signature says.
#[derive(Debug)]
pub(super) struct Signed {
    algorithm: MlDsa,
    by: String,
    /// Time that the signer claims.
    at: Option<SystemTime>,
}

/// Verifies the signature of a file at a time.
pub(super) fn verify(
    file: &Path,
    signature: &Path,
    roots: &Path,
    now: SystemTime,
) -> Result<Signed, VerifyError> {
    let roots = trusted(roots)?;
    let message = Message::decode(&read(signature, SIGNATURE)?)?;
    if message.certificates.len() > CERTIFICATES {
        return Err(VerifyError::Malformed(format!(
            "the signature file has more than {CERTIFICATES} certificates"
        )));
    }
    let Some((signer, others)) = message.signer() else {
        return Err(VerifyError::malformed(
            "the signature file has no certificate of its signer",
        ));
    };
    let leaf = bytes_of(signer)?;
    let others = others.map(bytes_of).collect::<Result<Vec<_>, _>>()?;
    let by = name(&signer.tbs_certificate.subject);
    let certified = EndEntityCert::try_from(&leaf).map_err(|error| judge(&error, &by))?;
    check_chain(&certified, &others, &roots, now).map_err(|error| judge(&error, &by))?;
    check_usage(signer)?;

    let expected = message.message_digest()?;
    let found = message.digest.of_file(file);
    let found = found.map_err(|error| VerifyError::Unreadable {
        path: file.to_owned(),
        problem: error.to_string(),
    })?;
    if found.as_ref() != expected {
        return Err(VerifyError::Changed(
            "the file is not the one that was signed",
        ));
    }
    let algorithm = message.algorithm;
    certified
        .verify_signature(
            algorithm.verification(),
            &message.signed_bytes()?,
            &message.signature,
        )
        .map_err(|_| VerifyError::Changed("the signature is not one of the signer's key"))?;
    Ok(Signed {
        algorithm,
        by,
        at: message.signing_time(),
    })
}

/// Checks the path to a trusted root: signatures, validity, constraints and purpose.
fn check_chain(
    leaf: &EndEntityCert<'_>,
    others: &[CertificateDer<'static>],
    roots: &[CertificateDer<'static>],
    now: SystemTime,
) -> Result<(), webpki::Error> {
    let anchors = roots.iter().map(anchor_from_trusted_cert);
    let anchors = anchors.collect::<Result<Vec<_>, _>>()?;
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    leaf.verify_for_usage(
        &MlDsa::verifications(),
        &anchors,
        others,
        UnixTime::since_unix_epoch(since),
        Signing,
        None,
        None,
    )?;
    Ok(())
}

/// Extended key usages of which a signer has one, if its certificate has any.
struct Signing;

impl Signing {
    /// The last parts of `id-kp` (RFC 5280 §4.2.1.12, RFC 9336): codeSigning, emailProtection,
    /// documentSigning.
    const PURPOSES: [usize; 3] = [3, 4, 36];
    const ID_KP: [usize; 8] = [1, 3, 6, 1, 5, 5, 7, 3];

    fn accepts(purpose: &[usize]) -> bool {
        match purpose.strip_prefix(&Self::ID_KP) {
            Some([last]) => Self::PURPOSES.contains(last),
            _ => false,
        }
    }
}

impl ExtendedKeyUsageValidator for Signing {
    fn validate(&self, purposes: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        let mut any = false;
        for purpose in purposes {
            any = true;
            if Self::accepts(&purpose?.to_decoded_oid()) {
                return Ok(());
            }
        }
        if any {
            // The text of the error is ours.
            return Err(webpki::Error::EmptyEkuExtension);
        }
        Ok(())
    }
}

/// Checks that a certificate is one for signing files, before anything is signed with it.
pub(super) fn check_purpose(signer: &Certificate) -> Result<(), VerifyError> {
    let purposes = signer.tbs_certificate.get::<ExtendedKeyUsage>();
    let purposes = purposes.map_err(|error| damaged(&error))?;
    let is_ours = |purpose: &ObjectIdentifier| {
        let purpose: Vec<_> = purpose.arcs().map(|arc| arc as usize).collect();
        Signing::accepts(&purpose)
    };
    match purposes {
        Some((_, purposes)) if !purposes.0.iter().any(is_ours) => {
            Err(other_purpose(&name(&signer.tbs_certificate.subject)))
        }
        _ => check_usage(signer),
    }
}

/// Checks that the key may sign, where its certificate says what it may.
fn check_usage(signer: &Certificate) -> Result<(), VerifyError> {
    let usage = signer.tbs_certificate.get::<KeyUsage>();
    let usage = usage.map_err(|error| damaged(&error))?;
    match usage {
        Some((_, usage)) if !usage.digital_signature() && !usage.non_repudiation() => {
            let problem = "the key usage of the signer's certificate is not digitalSignature";
            Err(VerifyError::Purpose(problem.to_owned()))
        }
        _ => Ok(()),
    }
}

fn damaged(error: &der::Error) -> VerifyError {
    VerifyError::Malformed(format!("the signer's certificate is damaged ({error})"))
}

fn other_purpose(signer: &str) -> VerifyError {
    VerifyError::Purpose(format!(
        "the certificate of {signer} is for other purposes than signing"
    ))
}

/// Says what is wrong with a chain.
fn judge(error: &webpki::Error, signer: &str) -> VerifyError {
    use webpki::Error;

    match error {
        Error::CertExpired { not_after, .. } => VerifyError::Time(format!(
            "a certificate of {signer} is expired since {}",
            date(not_after.as_secs())
        )),
        Error::CertNotValidYet { not_before, .. } => VerifyError::Time(format!(
            "a certificate of {signer} is not valid before {}",
            date(not_before.as_secs())
        )),
        Error::UnsupportedSignatureAlgorithmContext(_)
        | Error::UnsupportedSignatureAlgorithmForPublicKeyContext(_) => VerifyError::Algorithm(
            format!("the certificates of {signer} are not signed with ML-DSA"),
        ),
        Error::EmptyEkuExtension => other_purpose(signer),
        Error::CaUsedAsEndEntity => VerifyError::Purpose(format!(
            "the certificate of {signer} is an authority's, which signs certificates only"
        )),
        Error::UnknownIssuer | Error::InvalidSignatureForPublicKey => {
            VerifyError::Untrusted(format!("no path from {signer} to a trusted root"))
        }
        error => VerifyError::Untrusted(format!(
            "the certificates of {signer} lead to no trusted root ({error})"
        )),
    }
}

fn trusted(path: &Path) -> Result<Vec<CertificateDer<'static>>, VerifyError> {
    let unreadable = |problem: String| VerifyError::Unreadable {
        path: path.to_owned(),
        problem,
    };
    let pem = read(path, TRUSTED)?;
    let roots = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let roots = roots.map_err(|error| unreadable(error.to_string()))?;
    for root in &roots {
        anchor_from_trusted_cert(root)
            .map_err(|error| unreadable(format!("it holds a damaged certificate ({error})")))?;
    }
    if roots.is_empty() {
        let problem = "it holds no certificate; expected -----BEGIN CERTIFICATE-----";
        return Err(unreadable(problem.to_owned()));
    }
    Ok(roots)
}

fn bytes_of(certificate: &Certificate) -> Result<CertificateDer<'static>, VerifyError> {
    let der = certificate.to_der();
    let der = der.map_err(|error| VerifyError::Malformed(error.to_string()))?;
    Ok(CertificateDer::from(der))
}

/// Returns a name for people to read. Whoever made the certificate chose it.
pub(super) fn name(name: &Name) -> String {
    let name: String = name.to_string().chars().take(200).collect();
    Printable(name).to_string()
}

fn date(seconds: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

impl fmt::Display for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "valid, signed with {} by {}", self.algorithm, self.by)?;
        match self.at {
            Some(at) => write!(f, ", who gives {}", httpdate::fmt_http_date(at)),
            None => Ok(()),
        }
    }
}
