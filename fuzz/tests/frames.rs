//! Every frame decoder, on a payload that starts with a type it knows.

use hybriq_proto::wire::{Reader, frame::Frame, packet::Kind};

/// Proves: security 1 arbitrary-bytes-are-errors-or-frames
#[test]
fn every_frame() {
    bolero::check!()
        .with_iterations(50_000)
        .with_type::<(u8, Vec<u8>)>()
        .for_each(|(ty, fields)| {
            let mut payload = match ty % 0x33 {
                0x32 => vec![0x40, 0xaf],
                ty => vec![ty],
            };
            payload.extend(fields);
            let mut reader = Reader::new(&payload);
            while !reader.is_empty() {
                let before = reader.remaining();
                let Ok(frame) = Frame::decode(&mut reader) else {
                    break;
                };
                assert!(reader.remaining() < before, "{frame:?} took no byte");
                let ty = frame.frame_type().0;
                assert!(
                    frame.allowed_in(Kind::OneRtt)
                        && (ty < 0x20 || [0x24, 0x30, 0x31, 0xaf].contains(&ty))
                );
                if let Frame::Ack(ack) = frame {
                    let mut above = ack.largest.get() + 2;
                    for range in ack.ranges() {
                        assert!(range.start() <= range.end() && range.end().get() + 2 <= above);
                        above = range.start().get();
                    }
                }
            }
        });
}
