//! Signature schemes that a server and its client have in common.

use super::{is_grease, lists::with_lists};
use crate::{Alert, CertificateAlgorithms, ClientHello, Error, Identity, SignatureScheme};

/// Returns the schemes with which these identities sign, in their order; `None` if those of any
/// identity are unknown. `of_signer` supplies the schemes of an external key if the certificate
/// does not determine them.
pub(crate) fn schemes_of(
    identities: &[Identity],
    of_signer: impl Fn(&Identity) -> Option<Vec<SignatureScheme>>,
) -> Option<Vec<SignatureScheme>> {
    let mut schemes = Vec::new();
    for identity in identities {
        let of_key = || {
            let leaf = identity.certificates().first()?;
            Some(CertificateAlgorithms::of(leaf)?.key.schemes().to_vec())
        };
        let found = of_signer(identity).or_else(of_key).unwrap_or_default();
        if found.is_empty() {
            return None;
        }
        for scheme in found {
            if !schemes.contains(&scheme) {
                schemes.push(scheme);
            }
        }
    }
    Some(schemes)
}

/// Returns true if a client verifies signatures of one of these schemes.
pub(crate) fn verifies_any(hello: &ClientHello, ours: &[SignatureScheme]) -> bool {
    ours.iter()
        .any(|scheme| hello.signature_schemes().contains(&scheme.0))
}

/// Words before the schemes of a server that has none in common with its client.
pub(crate) const NO_COMMON_SCHEME: &str = "no signature scheme in common";

/// Refuses a client that verifies none of our signatures, if our schemes are known. Its ticket may
/// make a signature unnecessary.
pub(crate) fn check_signatures(
    hello: &ClientHello,
    ours: Option<&[SignatureScheme]>,
) -> Result<(), Error> {
    let Some(ours) = ours.filter(|ours| !hello.has_ticket() && !verifies_any(hello, ours)) else {
        return Ok(());
    };
    let theirs = hello.signature_schemes().iter().copied();
    let theirs = theirs.filter(|scheme| !is_grease(*scheme) && !is_legacy(*scheme));
    let words = [
        NO_COMMON_SCHEME,
        ": the server signs by ",
        ", the client verifies ",
        "; give the server a certificate with a key that the client verifies",
    ];
    let (ours, theirs) = (ours.iter().copied(), theirs.map(SignatureScheme));
    let detail = with_lists(words, ours.map(scheme_name), theirs.map(scheme_name));
    Err(Error::told(Alert::HANDSHAKE_FAILURE, detail))
}

/// Returns true for a scheme that signs certificates but no TLS 1.3 handshakes (RFC 8446 §4.2.3).
const fn is_legacy(scheme: u16) -> bool {
    matches!(scheme, 0x0201..=0x0203 | 0x0301..=0x0303 | 0x0401 | 0x0501 | 0x0601)
}

/// Returns the name of a scheme, or its number if it has none.
pub(crate) fn scheme_name(scheme: SignatureScheme) -> String {
    match scheme.name() {
        Some(name) => name.to_owned(),
        None => format!("{:#06x}", scheme.0),
    }
}
