use super::{Eof, PacketNumber, Reader, VarInt, Writer};

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

#[test]
fn a_packet_number_has_at_most_62_bits_and_costs_no_more_than_an_integer() {
    assert_eq!(PacketNumber::MAX.get(), (1 << 62) - 1);
    assert_eq!(PacketNumber::saturating(1 << 62), PacketNumber::MAX);
    assert_eq!(PacketNumber::MAX.saturating_add(1), PacketNumber::MAX);
    assert_eq!(size_of::<PacketNumber>(), size_of::<u64>());
}

#[test]
fn packet_numbers_are_counted_from_zero() {
    let (four, six) = (PacketNumber::from_u32(4), PacketNumber::from(6_u32));
    assert!(PacketNumber::ZERO < four && four < six);
    assert_eq!(four.next().next(), six);
    assert_eq!(four.saturating_add(2), six);
    assert_eq!(six.checked_sub(2), Some(four));
    assert_eq!(four.checked_sub(5), None);
    assert_eq!(six.distance_from(four), 2);
    assert_eq!(four.distance_from(six), 0, "it is not larger");
}

#[test]
fn a_packet_number_reads_like_an_integer() {
    let number = PacketNumber::from_u32(1_000);
    assert_eq!(
        format!("{number} {number:?} {number:>6}"),
        "1000 1000   1000"
    );
    assert_eq!(u64::from(number), 1_000);
    let mut reader = Reader::new(&[0x43, 0xe8]);
    assert_eq!(PacketNumber::decode(&mut reader), Ok(number));
}
