//! RFC 9000 §19: frames that say what they must not.

use hybriq::tls::Side;

use crate::duo::{Verdict, assert_harmless, verdict_on};

const FRAME_ENCODING_ERROR: u64 = 0x07;
const STREAM_STATE_ERROR: u64 = 0x05;
const PROTOCOL_VIOLATION: u64 = 0x0a;

fn ends_with(code: u64, frame: u64) -> Option<Verdict> {
    Some(Verdict { code, frame })
}

/// Proves: rfc9000 19.4 reset-of-send-only-closes
#[test]
fn reset_stream_for_a_stream_only_we_send_on() {
    // Stream 3 is the server's first unidirectional one.
    assert_eq!(
        verdict_on(Side::Client, &[0x04, 3, 0, 0]),
        ends_with(STREAM_STATE_ERROR, 0x04)
    );
    assert_eq!(
        verdict_on(Side::Server, &[0x04, 2, 0, 0]),
        ends_with(STREAM_STATE_ERROR, 0x04)
    );
}

/// Proves: rfc9000 19.7 new-token-from-client-closes
#[test]
fn new_token_from_a_client() {
    assert_eq!(
        verdict_on(Side::Client, &[0x07, 1, 0xaa]),
        ends_with(PROTOCOL_VIOLATION, 0x07)
    );
}

/// Proves: rfc9000 19.7 empty-new-token-closes
#[test]
fn new_token_without_a_token() {
    assert_eq!(
        verdict_on(Side::Server, &[0x07, 0]),
        ends_with(FRAME_ENCODING_ERROR, 0x07)
    );
}

/// Proves: rfc9000 19.20 handshake-done-from-client-closes
#[test]
fn handshake_done_from_a_client() {
    assert_eq!(
        verdict_on(Side::Client, &[0x1e]),
        ends_with(PROTOCOL_VIOLATION, 0x1e)
    );
}

/// Proves: rfc9000 19.21 extension-frames-count
/// Proves: rfc9000 12.4 unknown-frames-close
#[test]
fn a_frame_of_a_type_nobody_agreed_on() {
    assert_eq!(
        verdict_on(Side::Client, &[0x40, 0x7e]).map(|it| it.code),
        Some(FRAME_ENCODING_ERROR)
    );
}

/// Proves: rfc9000 19.18 unasked-path-response-is-no-harm
#[test]
fn a_path_response_nobody_asked_for() {
    assert_harmless(&[0x1b, 1, 2, 3, 4, 5, 6, 7, 8]);
}
