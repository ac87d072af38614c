use proptest::prelude::*;

use crate::{testing::pn, wire::PacketNumber};

/// Proves: rfc9000 17.1 packet-numbers-are-long-enough
#[test]
fn the_lengths_are_those_of_rfc_9000_appendix_a_2() {
    assert_eq!(
        PacketNumber::encoded_len(pn(0xac_5c02), Some(pn(0xab_e8b3))),
        2
    );
    assert_eq!(
        PacketNumber::encoded_len(pn(0xac_e8fe), Some(pn(0xab_e8b3))),
        3
    );
}

#[test]
fn the_number_is_that_of_rfc_9000_appendix_a_3() {
    assert_eq!(
        PacketNumber::expand(0x9b32, 2, Some(pn(0xa82f_30ea))),
        pn(0xa82f_9b32)
    );
}

/// Proves: rfc9000 17.1 first-packet-numbers-are-whole
#[test]
fn the_first_number_needs_no_acknowledgement() {
    assert_eq!(PacketNumber::encoded_len(pn(0), None), 1);
    assert_eq!(PacketNumber::expand(0, 1, None), pn(0));
    assert_eq!(PacketNumber::expand(0xff, 1, None), pn(0xff));
}

/// Proves: rfc9000 17.1 packet-numbers-are-long-enough
#[test]
fn more_than_twice_the_unacknowledged_range_is_representable() {
    for (unacked, len) in [
        (1, 1),
        (0x7f, 1),
        (0x80, 2),
        (0x7fff, 2),
        (0x8000, 3),
        (0x7f_ffff, 3),
        (0x80_0000, 4),
        (0x7fff_ffff, 4),
    ] {
        assert_eq!(
            PacketNumber::encoded_len(pn(1000 + unacked), Some(pn(1000))),
            len,
            "{unacked:#x}"
        );
    }
}

#[test]
fn a_number_beyond_the_largest_there_can_be_is_not_made() {
    let last = PacketNumber::MAX.get();
    for len in 1..=4 {
        for truncated in [0, 1, 0x80, 0xffff_ffff_u32 >> (32 - 8 * len)] {
            assert!(PacketNumber::expand(truncated, len, Some(pn(last))) <= pn(last));
        }
    }
    assert_eq!(PacketNumber::expand(0xff, 1, Some(pn(last - 1))), pn(last));
}

proptest! {
    #[test]
    fn numbers_survive_loss_and_reordering(
        acked in 0..1_u64 << 61,
        ahead in 1_u64..1 << 31,
        shift in 0_u32..31,
        part in 0.0..1.0_f64,
    ) {
        let number = acked + (ahead >> shift).max(1);
        let len = PacketNumber::encoded_len(pn(number), Some(pn(acked)));
        let truncated = number as u32 & (u32::MAX >> (32 - 8 * len));
        // The receiver has at least the packets that it acknowledged, and at most slightly more
        // than this one.
        let ahead = number - acked;
        let received = acked + (part * 1.5 * ahead as f64) as u64;
        prop_assert_eq!(PacketNumber::expand(truncated, len, Some(pn(received))), pn(number));
    }

    #[test]
    fn arbitrary_numbers_expand(truncated: u32, len in 0_usize..9, largest: Option<u64>) {
        prop_assert!(PacketNumber::expand(truncated, len, largest.map(pn)) <= PacketNumber::MAX);
    }
}
