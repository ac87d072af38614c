//! Every frame decoder, on a payload that starts with a type it knows.

use hybriq::proto::{frame::Frame, packet::Kind, wire::Reader};

#[test]
fn every_frame() {
    bolero::check!()
        .with_iterations(50_000)
        .with_type::<(u8, Vec<u8>)>()
        .for_each(|(ty, fields)| {
            let mut payload = vec![ty % 0x20];
            payload.extend(fields);
            let mut reader = Reader::new(&payload);
            while !reader.is_empty() {
                let before = reader.remaining();
                let Ok(frame) = Frame::decode(&mut reader) else {
                    break;
                };
                assert!(reader.remaining() < before, "{frame:?} took no byte");
                assert!(frame.allowed_in(Kind::OneRtt) && frame.frame_type() < 0x20);
                if let Frame::Ack(ack) = frame {
                    let mut above = ack.largest + 2;
                    for range in ack.ranges() {
                        assert!(range.start() <= range.end() && range.end() + 2 <= above);
                        above = *range.start();
                    }
                }
            }
        });
}
