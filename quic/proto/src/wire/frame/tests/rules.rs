use super::{decoded, encoded};
use crate::wire::{
    VarInt,
    error::Code,
    frame::{
        ConnectionClose, Crypto, Direction, FrameType, MaxStreams, Stream, StreamId, StreamsBlocked,
    },
    limits,
};

/// Checks that the bytes are refused, and for which frame and reason.
fn refused(bytes: &[u8], frame: u64, reason: &str) {
    let frame = (frame > 0).then_some(FrameType(frame));
    let error = decoded(bytes).expect_err("a broken rule");
    assert_eq!(
        (error.code, error.frame),
        (Code::FRAME_ENCODING_ERROR, frame),
        "{error}"
    );
    assert!(error.reason.contains(reason), "{error}");
}

/// Proves: rfc9000 12.4 unknown-frames-close
#[test]
fn an_unknown_type_is_refused() {
    refused(&[0x20], 0x20, "unknown type 0x20");
    refused(&[0x40, 0x40], 0x40, "unknown type 0x40");
    refused(&[0x80, 0x00, 0x40, 0x00], 0x4000, "unknown type 0x4000");
    refused(
        &[0xc0, 0, 0, 0, 0x40, 0, 0, 0],
        0x4000_0000,
        "unknown type 0x40000000",
    );
}

/// Proves: rfc9000 12.4 frame-types-are-shortest
#[test]
fn a_type_must_be_in_its_shortest_form() {
    for bytes in [
        &[0x40, 0x01][..],
        &[0x80, 0, 0, 0x01],
        &[0xc0, 0, 0, 0, 0, 0, 0, 0x01],
    ] {
        let error = decoded(bytes).expect_err("a long type");
        assert_eq!(
            (error.code, error.frame),
            (Code::PROTOCOL_VIOLATION, Some(FrameType::PING))
        );
    }
}

#[test]
fn a_cut_frame_is_named() {
    refused(&[0x06, 0x00], 0x06, "CRYPTO ends before its fields do");
    refused(
        &[0x0a, 0x00, 0x02, 0x00],
        0x0a,
        "STREAM ends before its fields do",
    );
    refused(
        &[0x40, 0xaf, 0x00, 0x01, 0x00],
        0xaf,
        "ACK_FREQUENCY ends before its fields do",
    );
    refused(&[0x40], 0x00, "cut frame type");
}

/// Proves: rfc9000 19.6 crypto-offset-is-bounded
/// Proves: rfc9000 19.8 stream-offset-is-bounded
#[test]
fn data_must_not_reach_beyond_the_largest_offset() {
    let last = VarInt::MAX.get() - 2;
    assert!(
        decoded(&encoded(&Crypto {
            offset: last,
            data: b"ab"
        }))
        .is_ok()
    );
    refused(
        &encoded(&Crypto {
            offset: last,
            data: b"abc",
        }),
        0x06,
        "beyond offset 2^62 - 1",
    );
    let stream = |data| Stream {
        id: StreamId(0),
        offset: last,
        fin: false,
        data,
    };
    assert!(decoded(&encoded(&stream(b"ab"))).is_ok());
    refused(&encoded(&stream(b"abc")), 0x0e, "beyond offset 2^62 - 1");
}

/// Proves: rfc9000 4.6 stream-limits-are-bounded
/// Proves: rfc9000 19.14 streams-blocked-is-bounded
#[test]
fn stream_counts_end_at_2_to_the_60() {
    let (direction, above) = (Direction::Uni, (1 << 60) + 1);
    refused(
        &encoded(&MaxStreams {
            direction,
            max: above,
        }),
        0x13,
        "MAX_STREAMS above 2^60",
    );
    let direction = Direction::Bidi;
    let blocked = StreamsBlocked {
        direction,
        limit: above,
    };
    refused(&encoded(&blocked), 0x16, "STREAMS_BLOCKED above 2^60");
}

/// Proves: rfc9000 19.7 empty-new-token-closes
#[test]
fn a_new_token_must_not_be_empty() {
    refused(&[0x07, 0x00], 0x07, "empty token");
}

/// Proves: rfc9000 19.15 new-cid-length-is-checked
#[test]
fn a_new_connection_id_has_1_to_20_bytes() {
    for (len, ok) in [(0, false), (1, true), (20, true), (21, false), (255, false)] {
        let mut bytes = vec![0x18, 0x05, 0x05, len];
        bytes.resize(4 + usize::from(len) + 16, 0xab);
        if ok {
            assert!(decoded(&bytes).is_ok());
        } else {
            refused(&bytes, 0x18, "0 or more than 20 bytes");
        }
    }
}

/// Proves: rfc9000 19.15 retire-prior-to-is-checked
#[test]
fn a_new_connection_id_must_not_retire_itself() {
    let mut bytes = vec![0x18, 0x05, 0x06, 0x01];
    bytes.resize(4 + 1 + 16, 0xab);
    refused(&bytes, 0x18, "retires its own sequence number");
}

#[test]
fn a_close_reason_is_cut_between_characters() {
    let long = "x".repeat(limits::CLOSE_REASON - 1) + "ü and more";
    let close = ConnectionClose::Application {
        code: 7,
        reason: long.as_bytes(),
    };
    let bytes = encoded(&close);
    let expected = ConnectionClose::Application {
        code: 7,
        reason: &long.as_bytes()[..limits::CLOSE_REASON - 1],
    };
    assert_eq!(
        decoded(&bytes),
        Ok(crate::wire::frame::Frame::ConnectionClose(expected))
    );
}
