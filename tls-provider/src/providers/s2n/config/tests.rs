use proptest::prelude::*;
use rustls_pki_types::pem::PemObject;

use super::*;

proptest! {
    #[test]
    fn what_is_encoded_is_read_back(der in prop::collection::vec(any::<u8>(), 0..300)) {
        let pem = encode("CERTIFICATE", &der);
        prop_assert!(pem.lines().all(|line| line.len() <= LINE_LEN));
        let back = CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
        prop_assert_eq!(&back[..], &der[..]);
    }
}

/// Vectors from RFC 4648 §10.
#[test]
fn known_answers() {
    for (der, text) in [
        (&b""[..], ""),
        (b"f", "Zg=="),
        (b"fo", "Zm8="),
        (b"foo", "Zm9v"),
        (b"foobar", "Zm9vYmFy"),
    ] {
        let pem = encode("X", der);
        let body = pem.trim_start_matches("-----BEGIN X-----\n");
        let body = body.trim_end_matches("-----END X-----\n");
        assert_eq!(body.trim_end(), text);
    }
}
