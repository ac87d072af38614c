//! RFC 9000 §19: frames that say what they must not.

use hybriq::{
    ConnectionError,
    error::{By, Violation},
    tls::Side,
};

use crate::duo::{Duo, Verdict, assert_harmless, verdict_on};

const FRAME_ENCODING_ERROR: u64 = 0x07;
const STREAM_STATE_ERROR: u64 = 0x05;
const PROTOCOL_VIOLATION: u64 = 0x0a;

#[expect(clippy::unnecessary_wraps, reason = "it is compared with a verdict")]
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

/// Both ends can match the rule, whether its reason is the text of the table or names a frame.
#[test]
fn an_application_can_match_the_broken_rule() {
    for (from, frames, rule) in [
        (Side::Server, &[0x07, 0][..], Violation::EmptyNewToken),
        (Side::Client, &[0x07, 1, 0xaa], Violation::FrameFromClient),
        (Side::Client, &[0x04, 3, 0, 0], Violation::StreamOnlySends),
        (
            Side::Server,
            &[0x06, 0, 0x7f, 0xff],
            Violation::FrameEndsEarly,
        ),
        (Side::Server, &[0x20], Violation::UnknownFrame),
    ] {
        let mut duo = Duo::new();
        duo.send_raw(from, frames);
        for (side, end) in [(from.peer(), By::Local), (from, By::Peer)] {
            let reason = duo.reason(side);
            assert!(
                matches!(reason, Some(&ConnectionError::Transport { by, code, violation: Some(broken), .. })
                    if (by, code, broken) == (end, rule.code(), rule)),
                "{reason:?}"
            );
        }
    }
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

/// The frames that steer a sender, and those of a sender, for a stream.
const OF_RECEIVERS: [u8; 2] = [0x05, 0x11];
const OF_SENDERS: [u8; 4] = [0x04, 0x08, 0x15, 0x24];

/// A frame about a stream, its other fields 0.
fn about(ty: u8, id: u8) -> Vec<u8> {
    let fields = match ty {
        0x04 => 2,
        0x08 => 0,
        0x24 => 3,
        _ => 1,
    };
    let mut frame = vec![ty, id];
    frame.resize(2 + fields, 0);
    frame
}

/// Proves: rfc9000 19.5 stop-of-receive-only-closes
/// Proves: rfc9000 19.10 max-stream-data-for-wrong-stream-closes
/// Proves: security 2 stream-state-violations-close
#[test]
fn frames_of_a_receiver_for_a_stream_we_do_not_send_on() {
    for ty in OF_RECEIVERS {
        // The sender's own unidirectional stream, then one of ours that does not exist.
        for (from, ids) in [(Side::Client, [2, 1, 3]), (Side::Server, [3, 0, 2])] {
            for id in ids {
                assert_eq!(
                    verdict_on(from, &about(ty, id)),
                    ends_with(STREAM_STATE_ERROR, ty.into()),
                    "{id}"
                );
            }
        }
    }
}

/// Proves: rfc9000 19.4 reset-of-send-only-closes
/// Proves: rfc9000 19.8 stream-for-wrong-stream-closes
/// Proves: rfc9000 19.13 stream-data-blocked-for-wrong-stream-closes
/// Proves: security 2 stream-state-violations-close
#[test]
fn frames_of_a_sender_for_a_stream_the_peer_does_not_send_on() {
    for ty in OF_SENDERS {
        // Our unidirectional stream, and a bidirectional one of ours that does not exist.
        for (from, ids) in [(Side::Client, [3, 1]), (Side::Server, [2, 0])] {
            for id in ids {
                assert_eq!(
                    verdict_on(from, &about(ty, id)),
                    ends_with(STREAM_STATE_ERROR, ty.into()),
                    "{id}"
                );
            }
        }
    }
}

/// Proves: rfc9000 19.6 crypto-offset-is-bounded
/// Proves: rfc9000 19.8 stream-offset-is-bounded
#[test]
fn data_beyond_the_largest_offset() {
    let last = [0xff; 8];
    for (head, tail) in [(&[0x06][..], &[1, 7][..]), (&[0x0e, 0], &[1, 7])] {
        let frame = [head, &last, tail].concat();
        let verdict = verdict_on(Side::Client, &frame);
        let ty = u64::from(head[0]);
        assert_eq!(verdict, ends_with(FRAME_ENCODING_ERROR, ty));
    }
}

/// Proves: rfc9000 19.3.1 negative-ack-ranges-close
#[test]
fn an_ack_range_below_zero() {
    assert_eq!(
        verdict_on(Side::Client, &[0x02, 1, 0, 0, 2]),
        ends_with(FRAME_ENCODING_ERROR, 0x02)
    );
}

/// Proves: rfc9000 7.5 crypto-overflow-closes
#[test]
fn crypto_data_beyond_what_is_buffered() {
    // At offset 2^20.
    let frame = [0x06, 0x80, 0x10, 0, 0, 1, 7];
    assert_eq!(verdict_on(Side::Server, &frame), ends_with(0x0d, 0x06));
}

/// Proves: rfc9221 3 unannounced-datagrams-close
#[test]
fn a_datagram_for_who_takes_none() {
    let none = hybriq::transport::DatagramConfig::new().receive_buffer(0);
    let config = hybriq::TransportConfig::new().datagrams(none);
    let mut duo = crate::duo::Duo::with(config.clone(), config);
    duo.send_raw(Side::Client, &[0x30, 1, 2]);
    assert_eq!(
        duo.verdict(Side::Server),
        ends_with(PROTOCOL_VIOLATION, 0x30)
    );
}

/// Proves: rfc9221 4 datagram-frames-have-two-forms
#[test]
fn datagrams_of_both_forms() {
    let mut duo = crate::duo::Duo::new();
    duo.send_raw(Side::Client, &[0x31, 2, 1, 2, 0x30, 3, 4, 5]);
    duo.assert_alive();
    let datagrams = duo.connection(Side::Server).datagrams();
    assert_eq!(datagrams.recv().as_deref(), Some(&[1, 2][..]));
    assert_eq!(datagrams.recv().as_deref(), Some(&[3, 4, 5][..]));
}
