use proptest::{collection::vec, prelude::*};

use super::{decoded, encoded};
use crate::wire::{
    Reader, VarInt,
    frame::{
        AckFrequency, ConnectionClose, Crypto, DataBlocked, Datagram, Direction, Encode, Frame,
        FrameType, MaxData, MaxStreamData, MaxStreams, NewConnectionId, NewToken, PathChallenge,
        PathResponse, ResetStream, ResetStreamAt, RetireConnectionId, StopSending, Stream,
        StreamDataBlocked, StreamId, StreamsBlocked,
    },
    packet::{Cid, Kind},
};

const MAX: u64 = VarInt::MAX.get();

/// Integers of all four sizes, equally often.
pub(super) fn integer() -> impl Strategy<Value = u64> {
    (0..=MAX, 0_u32..62).prop_map(|(value, shift)| value >> shift)
}

/// Encodes a frame, reads it back, and tries to read it with its end cut off.
fn check<F: Encode + Copy>(frame: F, expected: &Frame<'_>) {
    let bytes = encoded(&frame);
    assert_eq!(decoded(&bytes).as_ref(), Ok(expected));
    assert_eq!(expected.is_ack_eliciting(), F::ACK_ELICITING);
    assert!(expected.allowed_in(Kind::OneRtt));
    for cut in 0..bytes.len() {
        let error = Frame::decode(&mut Reader::new(&bytes[..cut])).expect_err("a cut frame");
        let known = match bytes[0] {
            _ if cut == 0 => None,
            0x40.. if cut == 1 => None,
            0x40.. => Some(expected.frame_type()),
            ty => Some(FrameType(u64::from(ty))),
        };
        assert_eq!(error.frame, known, "{error}");
    }
}

proptest! {
    #[test]
    fn frames_of_integers_survive_the_wire(a in integer(), b in integer(), c in integer()) {
        let id = StreamId(a);
        let frame = ResetStream { id, code: b, final_size: c };
        check(frame, &Frame::ResetStream(frame));
        let frame = ResetStreamAt { id, code: b, final_size: c, reliable_size: c / 2 };
        check(frame, &Frame::ResetStreamAt(frame));
        let frame = StopSending { id, code: b };
        check(frame, &Frame::StopSending(frame));
        let frame = MaxData { max: a };
        check(frame, &Frame::MaxData(frame));
        let frame = MaxStreamData { id, max: b };
        check(frame, &Frame::MaxStreamData(frame));
        let frame = DataBlocked { limit: a };
        check(frame, &Frame::DataBlocked(frame));
        let frame = StreamDataBlocked { id, limit: b };
        check(frame, &Frame::StreamDataBlocked(frame));
        let frame = AckFrequency { sequence: a, threshold: b, max_delay: c, reordering: a ^ b };
        check(frame, &Frame::AckFrequency(frame));
        let frame = RetireConnectionId { sequence: a };
        check(frame, &Frame::RetireConnectionId(frame));
        for direction in [Direction::Bidi, Direction::Uni] {
            let frame = MaxStreams { direction, max: a.min(1 << 60) };
            check(frame, &Frame::MaxStreams(frame));
            let frame = StreamsBlocked { direction, limit: a.min(1 << 60) };
            check(frame, &Frame::StreamsBlocked(frame));
        }
    }

    #[test]
    fn frames_with_bytes_survive_the_wire(
        a in integer(),
        b in integer(),
        data in vec(any::<u8>(), 0..300),
    ) {
        let offset = a.min(MAX - data.len() as u64);
        let frame = Datagram { data: &data };
        check(frame, &Frame::Datagram(frame));
        let frame = Crypto { offset, data: &data };
        check(frame, &Frame::Crypto(frame));
        for fin in [false, true] {
            let frame = Stream { id: StreamId(b), offset, fin, data: &data };
            check(frame, &Frame::Stream(frame));
        }
        if !data.is_empty() {
            let frame = NewToken { token: &data };
            check(frame, &Frame::NewToken(frame));
        }
        let reason = &data[..data.len().min(256)];
        let frame = (b > 0).then_some(FrameType(b));
        let frame = ConnectionClose::Transport { code: a, frame, reason };
        if reason == crate::wire::frame::connection::close::cut(&data, 256) {
            check(frame, &Frame::ConnectionClose(frame));
            let frame = ConnectionClose::Application { code: a, reason };
            check(frame, &Frame::ConnectionClose(frame));
        }
    }

    #[test]
    fn frames_of_fixed_bytes_survive_the_wire(
        a in integer(),
        b in integer(),
        cid in vec(any::<u8>(), 1..=20),
        path in any::<[u8; 8]>(),
        reset_token in any::<[u8; 16]>(),
    ) {
        let frame = NewConnectionId {
            sequence: a.max(b),
            retire_prior_to: a.min(b),
            cid: Cid::new(&cid).expect("20 bytes at most"),
            reset_token: reset_token.into(),
        };
        check(frame, &Frame::NewConnectionId(frame));
        check(PathChallenge(path), &Frame::PathChallenge(PathChallenge(path)));
        check(PathResponse(path), &Frame::PathResponse(PathResponse(path)));
    }

    /// Proves: security 1 arbitrary-bytes-are-errors-or-frames
    #[test]
    fn arbitrary_bytes_are_frames_or_errors(bytes in vec(any::<u8>(), 0..200)) {
        let mut reader = Reader::new(&bytes);
        while !reader.is_empty() {
            let before = reader.remaining();
            match Frame::decode(&mut reader) {
                Ok(Frame::Ack(ack)) => {
                    let ranges = ack.ranges().count();
                    prop_assert!(ranges <= before, "a range takes at least a byte");
                }
                Ok(_) => {}
                Err(_) => break,
            }
            prop_assert!(reader.remaining() < before, "no frame is empty");
        }
    }
}

#[test]
fn frames_without_fields_survive_the_wire() {
    assert_eq!(decoded(&[0x01]), Ok(Frame::Ping));
    assert_eq!(decoded(&[0x1e]), Ok(Frame::HandshakeDone));
    assert_eq!(decoded(&[0x1f]), Ok(Frame::ImmediateAck));
}

#[test]
fn a_run_of_padding_is_one_frame() {
    for len in [1, 2, 15, 16, 17, 18, 100, 1200] {
        let mut bytes = vec![0; len];
        assert_eq!(decoded(&bytes), Ok(Frame::Padding(len)));
        bytes.extend([0x01, 0x00]);
        assert_eq!(
            super::decoded_all(&bytes),
            [Frame::Padding(len), Frame::Ping, Frame::Padding(1)]
        );
    }
}
