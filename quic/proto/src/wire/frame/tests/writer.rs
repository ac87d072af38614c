use super::{decoded, decoded_all};
use crate::wire::frame::{
    ConnectionClose, Crypto, Frame, FrameType, FrameWriter, MaxData, Stream, StreamHeader, StreamId,
};

const ID: StreamId = StreamId(4);

const fn header(offset: u64, fin: bool) -> StreamHeader {
    StreamHeader {
        id: ID,
        offset,
        fin,
    }
}

/// Writes one STREAM frame of `wanted` bytes into `space`, and returns what was taken and written.
fn stream(space: usize, offset: u64, wanted: usize, fin: bool) -> (Option<usize>, Vec<u8>) {
    let mut buffer = vec![0xee; space];
    let mut writer = FrameWriter::new(&mut buffer);
    let taken = writer.stream(header(offset, fin), wanted, |bytes| bytes.fill(b'x'));
    let len = writer.len();
    assert_eq!(writer.is_ack_eliciting(), taken.is_some());
    buffer.truncate(len);
    (taken, buffer)
}

#[test]
fn a_stream_frame_takes_what_fits_and_can_always_be_read_back() {
    for space in 0..200 {
        for wanted in [0, 1, 2, 50, 61, 62, 63, 64, 65, 66, 67, 100, 10_000] {
            for offset in [0, 70] {
                let (taken, bytes) = stream(space, offset, wanted, true);
                let room = space.checked_sub(if offset == 0 { 2 } else { 4 });
                let most = room
                    .map(|room| room.min(wanted))
                    .filter(|most| *most > 0 || wanted == 0);
                assert_eq!(taken, most, "{wanted} bytes into {space}");
                let Some(taken) = taken else {
                    assert!(bytes.is_empty());
                    continue;
                };
                let data = vec![b'x'; taken];
                let expected = Stream {
                    id: ID,
                    offset,
                    fin: taken == wanted,
                    data: &data,
                };
                let frames = decoded_all(&bytes);
                assert_eq!(frames.last(), Some(&Frame::Stream(expected)));
                assert!(frames.len() == 1 || matches!(frames[..], [Frame::Padding(_), _]));
            }
        }
    }
}

#[test]
fn only_a_stream_frame_that_fills_the_packet_omits_its_length() {
    let mut buffer = [0; 100];
    let mut writer = FrameWriter::new(&mut buffer);
    assert_eq!(writer.stream(header(0, false), 10, |_| {}), Some(10));
    assert_eq!(writer.stream(header(10, false), 10, |_| {}), Some(10));
    assert!(writer.write(&MaxData { max: 1 }));
    assert_eq!(writer.stream(header(20, true), 1000, |_| {}), Some(68));
    assert_eq!(writer.remaining(), 0);
    let types: Vec<u8> = [0, 13, 27, 29].map(|at| buffer[at]).to_vec();
    assert_eq!(types, [0x0a, 0x0e, 0x10, 0x0c]);
}

#[test]
fn a_fin_waits_for_the_last_byte() {
    let (taken, bytes) = stream(50, 0, 100, true);
    assert_eq!(taken, Some(48));
    assert_eq!(bytes[0] & 0x01, 0);
}

#[test]
fn a_crypto_frame_takes_what_fits() {
    for space in 0..200 {
        for wanted in [0, 1, 62, 63, 64, 65, 100, 10_000] {
            let mut buffer = vec![0xee; space];
            let mut writer = FrameWriter::new(&mut buffer);
            let taken = writer.crypto(5, wanted, |bytes| bytes.fill(b'x'));
            let len = writer.len();
            let Some(taken) = taken else {
                assert!(len == 0 && (space < 4 || wanted == 0));
                continue;
            };
            // A length on the verge of a second byte may leave one byte of the packet empty.
            assert!(
                taken == wanted || len + 1 >= space,
                "{taken} of {wanted} bytes into {space}"
            );
            let data = vec![b'x'; taken];
            let expected = Crypto {
                offset: 5,
                data: &data,
            };
            assert_eq!(decoded(&buffer[..len]), Ok(Frame::Crypto(expected)));
        }
    }
}

#[test]
fn a_frame_that_does_not_fit_leaves_no_trace() {
    let mut buffer = [0; 8];
    let mut writer = FrameWriter::new(&mut buffer);
    assert!(!writer.write(&MaxData { max: 1 << 40 }));
    assert!(writer.is_empty() && !writer.is_ack_eliciting());
    assert!(writer.write(&MaxData { max: 1 << 20 }));
    assert!(writer.ping() && writer.handshake_done());
    assert_eq!(writer.remaining(), 1);
    assert!(writer.ping());
    assert!(!writer.ping() && !writer.handshake_done());
    writer.pad(10);
    assert_eq!(writer.len(), 8);
}

#[test]
fn a_close_shrinks_its_reason_to_what_fits() {
    let reason = [b'r'; 300];
    let close = ConnectionClose::Transport {
        code: 0x0a,
        frame: Some(FrameType::CRYPTO),
        reason: &reason,
    };
    for space in 0..300 {
        let mut buffer = vec![0; space];
        let mut writer = FrameWriter::new(&mut buffer);
        let written = writer.close(&close);
        let len = writer.len();
        assert_eq!(written, space >= 4);
        assert!(!writer.is_ack_eliciting());
        if written {
            let Ok(Frame::ConnectionClose(ConnectionClose::Transport {
                code: 0x0a,
                frame: Some(FrameType::CRYPTO),
                reason,
            })) = decoded(&buffer[..len])
            else {
                panic!("no close in {space} bytes");
            };
            assert!(
                reason.len() == 256 || len + 1 >= space,
                "{} in {space}",
                reason.len()
            );
        }
    }
}

#[test]
fn a_datagram_fits_wherever_its_bytes_and_its_type_do() {
    for len in [0, 1, 5, 62, 63, 64, 65, 300, 16_383, 16_384] {
        let data = vec![0xdd; len];
        for room in len..len + 8 {
            let mut buffer = vec![0xee; room];
            let mut out = FrameWriter::new(&mut buffer);
            let written = out.datagram(&data);
            assert_eq!((written, out.is_ack_eliciting()), (room > len, room > len));
            let frames = decoded_all(out.written());
            let found: Vec<_> = frames
                .iter()
                .filter_map(|frame| match frame {
                    Frame::Datagram(frame) => Some(frame.data),
                    _ => None,
                })
                .collect();
            assert_eq!(
                found,
                vec![&data[..]; usize::from(written)],
                "{len} into {room}"
            );
        }
    }
}
