use super::decoded;
use crate::wire::{
    error::Code,
    frame::{Datagram, Frame, FrameType},
    packet::Kind,
};

/// RFC 9000 §12.4, table 3, as corrected by §12.5, and `IMMEDIATE_ACK`: a byte string of each frame
/// type, and the packets it may be in (Initial, Handshake, 0-RTT, 1-RTT).
const TABLE: &[(&[u8], &str)] = &[
    (&[0x00], "IH01"),
    (&[0x01], "IH01"),
    (&[0x02, 0, 0, 0, 0], "IH_1"),
    (&[0x03, 0, 0, 0, 0, 0, 0, 0], "IH_1"),
    (&[0x04, 0, 0, 0], "__01"),
    (&[0x05, 0, 0], "__01"),
    (&[0x06, 0, 0], "IH_1"),
    (&[0x07, 1, 0], "___1"),
    (&[0x08, 0], "__01"),
    (&[0x09, 0], "__01"),
    (&[0x0a, 0, 0], "__01"),
    (&[0x0b, 0, 0], "__01"),
    (&[0x0c, 0, 0], "__01"),
    (&[0x0d, 0, 0], "__01"),
    (&[0x0e, 0, 0, 0], "__01"),
    (&[0x0f, 0, 0, 0], "__01"),
    (&[0x10, 0], "__01"),
    (&[0x11, 0, 0], "__01"),
    (&[0x12, 0], "__01"),
    (&[0x13, 0], "__01"),
    (&[0x14, 0], "__01"),
    (&[0x15, 0, 0], "__01"),
    (&[0x16, 0], "__01"),
    (&[0x17, 0], "__01"),
    (
        &[
            0x18, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
        "__01",
    ),
    (&[0x19, 0], "___1"),
    (&[0x1a, 0, 0, 0, 0, 0, 0, 0, 0], "__01"),
    (&[0x1b, 0, 0, 0, 0, 0, 0, 0, 0], "___1"),
    (&[0x1c, 0, 0, 0], "IH01"),
    (&[0x1d, 0, 0], "__01"),
    (&[0x1e], "___1"),
    (&[0x1f], "___1"),
];

/// Proves: rfc9221 5 datagrams-are-in-0rtt-and-1rtt-only
/// Proves: rfc9221 4 datagram-frames-have-two-forms
#[test]
fn a_datagram_belongs_into_0_rtt_and_1_rtt_packets() {
    for bytes in [&[0x30, 1, 2][..], &[0x31, 2, 1, 2]] {
        let frame = decoded(bytes).expect("a frame");
        assert_eq!(frame, Frame::Datagram(Datagram { data: &[1, 2] }));
        assert!(frame.is_ack_eliciting());
        for kind in [Kind::ZeroRtt, Kind::OneRtt] {
            assert!(frame.allowed_in(kind), "{kind:?}");
        }
        for kind in [Kind::Initial, Kind::Handshake] {
            assert!(!frame.allowed_in(kind), "{kind:?}");
        }
    }
}

/// Proves: rfc9000 12.4 frames-in-wrong-packets-close
/// Proves: rfc9000 12.5 application-frames-are-1rtt
/// Proves: security 1 frames-in-wrong-packets-close
#[test]
fn frames_are_allowed_where_table_3_of_rfc_9000_says() {
    for (bytes, allowed) in TABLE {
        let frame = decoded(bytes).expect("a frame");
        let kinds = [Kind::Initial, Kind::Handshake, Kind::ZeroRtt, Kind::OneRtt];
        for (kind, mark) in kinds.into_iter().zip(allowed.chars()) {
            assert_eq!(frame.allowed_in(kind), mark != '_', "{frame:?} in {kind:?}");
        }
    }
}

#[test]
fn an_ack_frequency_frame_belongs_into_1_rtt_packets() {
    let frame = decoded(&[0x40, 0xaf, 0, 1, 0, 1]).expect("a frame");
    assert_eq!(frame.frame_type(), FrameType::ACK_FREQUENCY);
    assert!(frame.is_ack_eliciting() && frame.allowed_in(Kind::OneRtt));
    for kind in [Kind::Initial, Kind::Handshake, Kind::ZeroRtt] {
        assert!(!frame.allowed_in(kind), "{kind:?}");
    }
}

#[test]
fn a_reset_stream_at_belongs_into_0_rtt_and_1_rtt_packets() {
    let frame = decoded(&[0x24, 4, 7, 9, 8]).expect("a frame");
    assert_eq!(frame.frame_type(), FrameType::RESET_STREAM_AT);
    assert!(frame.is_ack_eliciting());
    for kind in [Kind::Initial, Kind::Handshake, Kind::ZeroRtt, Kind::OneRtt] {
        let application = matches!(kind, Kind::ZeroRtt | Kind::OneRtt);
        assert_eq!(frame.allowed_in(kind), application, "{kind:?}");
    }
    let error = decoded(&[0x24, 4, 7, 8, 9]).expect_err("reliable beyond the end");
    assert_eq!(
        (error.code, error.frame),
        (Code::FRAME_ENCODING_ERROR, Some(FrameType::RESET_STREAM_AT))
    );
}

#[test]
fn the_table_has_every_type_and_frames_know_theirs() {
    for (ty, (bytes, _)) in TABLE.iter().enumerate() {
        assert_eq!(usize::from(bytes[0]), ty);
        let frame = decoded(bytes).expect("a frame");
        let told = if matches!(frame, Frame::Stream(_)) {
            // Neither the length nor an offset of 0 is remembered.
            0x08 | ty as u64 & 0x01
        } else {
            ty as u64
        };
        assert_eq!(frame.frame_type(), FrameType(told), "{frame:?}");
    }
}

#[test]
fn only_padding_ack_and_close_are_not_ack_eliciting() {
    for (bytes, _) in TABLE {
        let eliciting = !matches!(bytes[0], 0x00 | 0x02 | 0x03 | 0x1c | 0x1d);
        assert_eq!(
            decoded(bytes).expect("a frame").is_ack_eliciting(),
            eliciting
        );
    }
}
