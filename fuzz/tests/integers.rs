//! Integers of the wire (RFC 9000 §16): every encoding is read, and written in its shortest form.

use hybriq_proto::wire::{Reader, VarInt, Writer};

#[test]
fn variable_length_integers() {
    bolero::check!()
        .with_iterations(50_000)
        .with_type::<[u8; 16]>()
        .for_each(|bytes| {
            let mut reader = Reader::new(bytes);
            while let Ok(value) = reader.varint() {
                let mut buffer = [0; 8];
                let mut writer = Writer::new(&mut buffer);
                writer.varint(value);
                let len = writer.len();
                assert_eq!(VarInt::new(value).map(VarInt::size), Some(len));
                assert_eq!(buffer[0] >> 6, len.ilog2() as u8);
                assert!(len == 1 || value >= 1 << (4 * len - 2));
                assert_eq!(Reader::new(&buffer).varint(), Ok(value));
            }
            assert!(reader.remaining() < 8);
        });
}
