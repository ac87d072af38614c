//! s2n-tls reads certificates and keys as PEM only (RFC 7468).

use zeroize::Zeroizing;

use crate::{CertificateDer, Identity, PrivateKeyDer};

#[cfg(test)]
mod tests;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const LINE_LEN: usize = 64;

/// The certificate chain.
pub(super) fn chain(certificates: &[CertificateDer<'_>]) -> String {
    let mut pem = String::new();
    for certificate in certificates {
        pem.push_str(&encode("CERTIFICATE", certificate));
    }
    pem
}

/// The private key, in memory that is wiped.
pub(super) fn key(identity: &Identity) -> Option<Zeroizing<String>> {
    Some(match identity.private_key() {
        PrivateKeyDer::Pkcs8(key) => encode("PRIVATE KEY", key.secret_pkcs8_der()),
        PrivateKeyDer::Sec1(key) => encode("EC PRIVATE KEY", key.secret_sec1_der()),
        PrivateKeyDer::Pkcs1(key) => encode("RSA PRIVATE KEY", key.secret_pkcs1_der()),
        _ => return None,
    })
}

fn encode(label: &str, der: &[u8]) -> Zeroizing<String> {
    let encoded = der.len().div_ceil(3) * 4;
    // Reserved in full: a string that grows would leave copies of a key behind.
    let capacity = encoded + encoded / LINE_LEN + 2 * label.len() + 48;
    let mut pem = Zeroizing::new(String::with_capacity(capacity));
    pem.push_str("-----BEGIN ");
    pem.push_str(label);
    pem.push_str("-----\n");
    for line in der.chunks(LINE_LEN / 4 * 3) {
        for chunk in line.chunks(3) {
            push_quantum(&mut pem, chunk);
        }
        pem.push('\n');
    }
    pem.push_str("-----END ");
    pem.push_str(label);
    pem.push_str("-----\n");
    debug_assert!(pem.len() <= capacity, "the PEM text grew");
    pem
}

/// Three bytes or fewer as four characters.
fn push_quantum(pem: &mut String, chunk: &[u8]) {
    let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
    let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    for index in 0..4 {
        let sextet = (bits >> (18 - 6 * index)) & 63;
        let padding = index > chunk.len();
        let symbol = if padding {
            b'='
        } else {
            ALPHABET[sextet as usize]
        };
        pem.push(symbol.into());
    }
}
