//! RFC 9001 §8: what is different in TLS.

use crate::rfc9001_04_tls::client_hello;

/// Proves: rfc9001 8.4 no-compatibility-mode
/// Proves: rfc9001 4.2 tls-1.3-only
#[test]
fn a_client_hello_is_of_tls_1_3_and_has_no_legacy_session_id() {
    let hello = client_hello();
    // Type and length, legacy version, random; then the length of the id.
    assert_eq!((hello[0], hello[38]), (1, 0));
    let versions = hello.windows(4).filter(|bytes| bytes[..2] == [0, 43]);
    // supported_versions with TLS 1.3 alone.
    let offered = hello
        .windows(7)
        .filter(|bytes| *bytes == [0, 43, 0, 3, 2, 3, 4]);
    assert_eq!((offered.count(), versions.count() > 0), (1, true));
}
