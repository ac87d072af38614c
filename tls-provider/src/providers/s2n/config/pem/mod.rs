//! Certificates and keys as PEM (RFC 7468), the only form that s2n-tls reads.

use base64ct::{Base64, Encoding};
use zeroize::{Zeroize, Zeroizing};

use crate::{CertificateDer, PrivateKeyDer};

#[cfg(test)]
mod tests;

const LINE_LEN: usize = 64;

/// Encodes a certificate chain.
pub(in crate::providers::s2n) fn chain(certificates: &[CertificateDer<'_>]) -> String {
    let mut pem = String::new();
    for certificate in certificates {
        pem.push_str(&encode("CERTIFICATE", certificate));
    }
    pem
}

/// Encodes a private key, in memory that is wiped.
pub(in crate::providers::s2n) fn key(key: &PrivateKeyDer<'_>) -> Option<Zeroizing<String>> {
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
