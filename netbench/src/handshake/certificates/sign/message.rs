//! The file of a signature: CMS `SignedData` without the signed content (RFC 5652 §5).

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use cms::cert::x509::Certificate;
use cms::cert::x509::attr::{Attribute, Attributes};
use cms::cert::x509::der::asn1::{
    GeneralizedTime, ObjectIdentifier, OctetString, SetOfVec, UtcTime,
};
use cms::cert::x509::der::pem::LineEnding;
use cms::cert::x509::der::{self, Any, Decode as _, Document, Encode as _};
use cms::cert::x509::spki::AlgorithmIdentifierOwned;
use cms::cert::x509::time::Time;
use cms::cert::{CertificateChoices, IssuerAndSerialNumber};
use cms::content_info::{CmsVersion, ContentInfo};
use cms::signed_data::{
    CertificateSet, EncapsulatedContentInfo, SignedData, SignerIdentifier, SignerInfo, SignerInfos,
};

use super::VerifyError;
use super::algorithm::{Digest, MlDsa};

const DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.1");
const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
const CONTENT_TYPE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
const MESSAGE_DIGEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
const SIGNING_TIME: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.5");

/// Label of PEM files that we write (RFC 7468 §9), and the older one.
const LABELS: [&str; 2] = ["CMS", "PKCS7"];

/// Writes a signature as PEM.
pub(super) fn to_pem(der: &[u8]) -> Result<String, der::Error> {
    Document::try_from(der)?.to_pem(LABELS[0], LineEnding::LF)
}

/// Makes the attributes that are signed in place of the file.
pub(super) fn attributes(digest: &[u8], now: SystemTime) -> Result<Attributes, der::Error> {
    let attribute = |oid, value: Any| {
        let values = SetOfVec::try_from([value])?;
        Ok::<_, der::Error>(Attribute { oid, values })
    };
    SetOfVec::try_from([
        attribute(CONTENT_TYPE, Any::encode_from(&DATA)?)?,
        attribute(SIGNING_TIME, time(now)?)?,
        attribute(
            MESSAGE_DIGEST,
            Any::encode_from(&OctetString::new(digest)?)?,
        )?,
    ])
}

/// Writes a time, in the form that its year asks for (RFC 5652 §11.3).
fn time(now: SystemTime) -> Result<Any, der::Error> {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    UtcTime::from_unix_duration(since)
        .and_then(|time| Any::encode_from(&time))
        .or_else(|_| Any::encode_from(&GeneralizedTime::from_unix_duration(since)?))
}

/// Reads what an attribute or a message holds.
fn decoded<T: for<'a> der::Decode<'a>>(value: &Any) -> Result<T, der::Error> {
    T::from_der(&value.to_der()?)
}

/// Writes a signature with its certificates, the signer's first.
pub(super) fn encode(
    chain: &[Certificate],
    algorithm: MlDsa,
    digest: Digest,
    attributes: Attributes,
    signature: Vec<u8>,
) -> Result<Vec<u8>, der::Error> {
    let leaf = &chain.first().ok_or(der::ErrorKind::Failed)?.tbs_certificate;
    let identifier = |oid| AlgorithmIdentifierOwned {
        oid,
        parameters: None,
    };
    let signer = SignerInfo {
        version: CmsVersion::V1,
        sid: SignerIdentifier::IssuerAndSerialNumber(IssuerAndSerialNumber {
            issuer: leaf.issuer.clone(),
            serial_number: leaf.serial_number.clone(),
        }),
        digest_alg: identifier(digest.oid()),
        signed_attrs: Some(attributes),
        signature_algorithm: identifier(algorithm.oid()),
        signature: OctetString::new(signature)?,
        unsigned_attrs: None,
    };
    let certificates = chain.iter().cloned().map(CertificateChoices::Certificate);
    let data = SignedData {
        version: CmsVersion::V1,
        digest_algorithms: SetOfVec::try_from([identifier(digest.oid())])?,
        encap_content_info: EncapsulatedContentInfo {
            econtent_type: DATA,
            econtent: None,
        },
        certificates: Some(CertificateSet(SetOfVec::from_iter(certificates)?)),
        crls: None,
        signer_infos: SignerInfos(SetOfVec::try_from([signer])?),
    };
    let info = ContentInfo {
        content_type: SIGNED_DATA,
        content: Any::encode_from(&data)?,
    };
    info.to_der()
}

/// A signature that was read. Nothing in it is verified.
pub(super) struct Message {
    pub(super) certificates: Vec<Certificate>,
    pub(super) algorithm: MlDsa,
    pub(super) digest: Digest,
    pub(super) signature: Vec<u8>,
    attributes: Attributes,
    signer: SignerIdentifier,
}

impl Message {
    /// Reads a signature, DER or PEM.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, VerifyError> {
        let der = from_pem(bytes)?;
        let info = ContentInfo::from_der(&der).map_err(|error| damaged(&error))?;
        if info.content_type != SIGNED_DATA {
            let problem = "the signature file is CMS, but not SignedData";
            return Err(VerifyError::malformed(problem));
        }
        let data: SignedData = decoded(&info.content).map_err(|error| damaged(&error))?;
        if data.encap_content_info.econtent.is_some()
            || data.encap_content_info.econtent_type != DATA
        {
            let problem = "the signature is not detached: it has content of its own";
            return Err(VerifyError::malformed(problem));
        }
        let [signer] = data.signer_infos.0.as_slice() else {
            let count = data.signer_infos.0.len();
            let problem = format!("the signature file has {count} signers instead of one");
            return Err(VerifyError::Malformed(problem));
        };
        let certificates = data.certificates.map(|set| set.0.into_vec());
        let certificates = certificates.unwrap_or_default().into_iter();
        let certificates = certificates.filter_map(|choice| match choice {
            CertificateChoices::Certificate(certificate) => Some(certificate),
            CertificateChoices::Other(_) => None,
        });
        Self::of(signer, certificates.collect())
    }

    fn of(signer: &SignerInfo, certificates: Vec<Certificate>) -> Result<Self, VerifyError> {
        let (algorithm, digest) = algorithms(signer)?;
        let len = signer.signature.as_bytes().len();
        if len != algorithm.signature_len() {
            return Err(VerifyError::Malformed(format!(
                "a signature of {len} bytes, but {algorithm} has {}",
                algorithm.signature_len()
            )));
        }
        let Some(attributes) = signer.signed_attrs.clone() else {
            let problem = "the signature has no signed attributes";
            return Err(VerifyError::malformed(problem));
        };
        Ok(Self {
            certificates,
            algorithm,
            digest,
            signature: signer.signature.as_bytes().to_vec(),
            attributes,
            signer: signer.sid.clone(),
        })
    }

    /// Returns the certificate of the signer and the others.
    pub(super) fn signer(&self) -> Option<(&Certificate, impl Iterator<Item = &Certificate>)> {
        let mut all = self.certificates.iter();
        let position = all.position(|it| names(&self.signer, it))?;
        let others = self.certificates.iter().enumerate();
        let others = others.filter(move |(index, _)| *index != position);
        let leaf = self.certificates.get(position)?;
        Some((leaf, others.map(|(_, certificate)| certificate)))
    }

    /// Returns the bytes that were signed.
    pub(super) fn signed_bytes(&self) -> Result<Vec<u8>, VerifyError> {
        self.attributes.to_der().map_err(|error| damaged(&error))
    }

    /// Returns the digest of the file that was signed.
    pub(super) fn message_digest(&self) -> Result<Vec<u8>, VerifyError> {
        let kind = self.attribute(CONTENT_TYPE)?;
        if decoded(kind) != Ok(DATA) {
            let problem = "the signed attributes are of another kind of content";
            return Err(VerifyError::malformed(problem));
        }
        let digest: Result<OctetString, _> = decoded(self.attribute(MESSAGE_DIGEST)?);
        let digest = digest.map_err(|error| damaged(&error))?;
        Ok(digest.into_bytes())
    }

    /// Returns the time at which the signer says it signed.
    pub(super) fn signing_time(&self) -> Option<SystemTime> {
        let time = self.attribute(SIGNING_TIME).ok()?;
        let time: Time = decoded(time).ok()?;
        UNIX_EPOCH.checked_add(time.to_unix_duration())
    }

    /// Returns the only value of an attribute that stands there once (RFC 5652 §11).
    fn attribute(&self, oid: ObjectIdentifier) -> Result<&Any, VerifyError> {
        let mut found = self.attributes.iter().filter(|it| it.oid == oid);
        match (found.next(), found.next()) {
            (Some(one), None) if one.values.len() == 1 => one.values.get(0),
            _ => None,
        }
        .ok_or_else(|| VerifyError::Malformed(format!("not exactly one signed attribute {oid}")))
    }
}

/// Returns the algorithms of a signature, if they are accepted.
fn algorithms(signer: &SignerInfo) -> Result<(MlDsa, Digest), VerifyError> {
    let of = &signer.signature_algorithm;
    let Some(algorithm) = MlDsa::of(of.oid) else {
        let problem = format!("the signature algorithm {} is not ML-DSA", of.oid);
        return Err(VerifyError::Algorithm(problem));
    };
    if of.parameters.is_some() {
        let problem = format!("{algorithm} with parameters, which it does not have");
        return Err(VerifyError::Malformed(problem));
    }
    match Digest::of(signer.digest_alg.oid) {
        Some(digest) if algorithm.allows(digest) => Ok((algorithm, digest)),
        Some(digest) => Err(VerifyError::Algorithm(format!(
            "the digest {digest} is weaker than {algorithm}"
        ))),
        None => Err(VerifyError::Algorithm(format!(
            "the digest {} is not SHA-512, SHA-384 or SHA-256",
            signer.digest_alg.oid
        ))),
    }
}

/// Returns true if an identifier names this certificate.
fn names(signer: &SignerIdentifier, certificate: &Certificate) -> bool {
    use cms::cert::x509::ext::pkix::SubjectKeyIdentifier;

    let body = &certificate.tbs_certificate;
    match signer {
        SignerIdentifier::IssuerAndSerialNumber(named) => {
            named.issuer == body.issuer && named.serial_number == body.serial_number
        }
        SignerIdentifier::SubjectKeyIdentifier(named) => body
            .get::<SubjectKeyIdentifier>()
            .is_ok_and(|found| found.is_some_and(|(_, id)| id == *named)),
    }
}

fn from_pem(bytes: &[u8]) -> Result<Cow<'_, [u8]>, VerifyError> {
    if !bytes.starts_with(b"-----BEGIN") {
        return Ok(Cow::Borrowed(bytes));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| VerifyError::malformed("the signature file begins as PEM, but is no text"))?;
    let (label, document) = Document::from_pem(text).map_err(|error| damaged(&error))?;
    if !LABELS.contains(&label) {
        let problem = "the PEM file holds no signature: expected -----BEGIN CMS-----";
        return Err(VerifyError::malformed(problem));
    }
    Ok(Cow::Owned(document.as_bytes().to_vec()))
}

fn damaged(error: &der::Error) -> VerifyError {
    VerifyError::Malformed(format!(
        "the signature file is truncated, damaged or no CMS ({error})"
    ))
}
