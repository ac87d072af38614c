use super::{Eof, Reader, VarInt, Writer};

fn encoded(value: u64) -> Vec<u8> {
    let mut buffer = [0; 8];
    let mut writer = Writer::new(&mut buffer);
    writer.varint(value);
    writer.written().to_vec()
}

#[test]
fn the_sample_values_of_rfc_9000_appendix_a_1_decode() {
    for (bytes, value) in [
        (
            &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
            151_288_809_941_952_652,
        ),
        (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
        (&[0x7b, 0xbd], 15_293),
        (&[0x25], 37),
    ] {
        assert_eq!(Reader::new(bytes).varint(), Ok(value));
        assert_eq!(encoded(value), bytes);
    }
    assert_eq!(
        Reader::new(&[0x40, 0x25]).varint(),
        Ok(37),
        "a longer form than needed is allowed"
    );
}

#[test]
fn a_cut_integer_is_the_end_of_the_bytes() {
    for value in [64, 16_384, VarInt::MAX.get()] {
        let bytes = encoded(value);
        for cut in 0..bytes.len() {
            assert_eq!(Reader::new(&bytes[..cut]).varint(), Err(Eof));
        }
    }
}

proptest::proptest! {
    #[test]
    fn integers_survive_the_wire(value in 0..=VarInt::MAX.get()) {
        let bytes = encoded(value);
        proptest::prop_assert_eq!(bytes.len(), VarInt::saturating(value).size());
        proptest::prop_assert_eq!(Reader::new(&bytes).varint(), Ok(value));
    }
}
