use std::ops::RangeInclusive;

use proptest::{collection::vec, prelude::*};

use super::{decoded, encoded, round_trip::integer};
use crate::{
    testing::{pn, pns},
    wire::{
        PacketNumber,
        error::Code,
        frame::{Ack, AckEncoder, EcnCounts, Encode, Frame, FrameType, FrameWriter},
    },
};

type Ranges = Vec<RangeInclusive<u64>>;

fn ack(bytes: &[u8]) -> Ack<'_> {
    match decoded(bytes) {
        Ok(Frame::Ack(ack)) => ack,
        other => panic!("{other:?} is no ACK"),
    }
}

fn plain(ack: &Ack<'_>) -> Ranges {
    let plain = |range: RangeInclusive<PacketNumber>| range.start().get()..=range.end().get();
    ack.ranges().map(plain).collect()
}

/// Ranges as a receiver keeps them: largest first, with gaps.
fn ranges() -> impl Strategy<Value = Ranges> {
    let steps = vec((0_u64..300, 0_u64..300), 1..100);
    (integer(), steps).prop_map(|(lowest, steps)| {
        let mut next = lowest.min(1 << 61);
        let mut ranges = Ranges::new();
        for (gap, len) in steps {
            ranges.push(next..=next + len);
            next += len + gap + 2;
        }
        ranges.reverse();
        ranges
    })
}

fn ecn() -> impl Strategy<Value = Option<EcnCounts>> {
    proptest::option::of((integer(), integer(), integer()))
        .prop_map(|counts| counts.map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce }))
}

proptest! {
    #[test]
    fn ranges_survive_the_wire(ranges in ranges(), delay in integer(), ecn in ecn()) {
        let bytes = encoded(&AckEncoder { delay, ranges: ranges.iter().cloned().map(pns), ecn });
        let ack = ack(&bytes);
        prop_assert_eq!((ack.largest, ack.delay, ack.ecn), (pn(*ranges[0].end()), delay, ecn));
        prop_assert_eq!(plain(&ack), ranges);
        for cut in 1..bytes.len() {
            let error = decoded(&bytes[..cut]).expect_err("a cut ACK");
            prop_assert!(error.reason.contains("ACK ends before"), "{}", error);
        }
    }

    #[test]
    fn the_oldest_ranges_give_way_where_space_is_short(
        ranges in ranges(),
        delay in integer(),
        ecn in ecn(),
        space in 0_usize..300,
    ) {
        let mut buffer = vec![0; space];
        let mut writer = FrameWriter::new(&mut buffer);
        let count = writer.ack(delay, ranges.iter().cloned().map(pns), ecn);
        let len = writer.len();
        prop_assert!(!writer.is_ack_eliciting());
        let kept = count.unwrap_or(0);
        if kept > 0 {
            let ack = ack(&buffer[..len]);
            prop_assert_eq!(plain(&ack), &ranges[..kept]);
        } else {
            prop_assert_eq!(len, 0);
        }
        if kept < ranges.len() {
            let more = AckEncoder { delay, ranges: ranges[..=kept].iter().cloned().map(pns), ecn };
            prop_assert!(more.size() > space);
        }
    }
}

#[test]
fn the_fields_mean_what_rfc_9000_19_3_1_says() {
    // 90..=100, a gap of 3 (87..=89), 80..=86, a gap of 1 (79), 78.
    let bytes = [0x02, 0x40, 100, 0x07, 0x02, 10, 2, 6, 0, 0];
    let expected: Ranges = vec![90..=100, 80..=86, 78..=78];
    assert_eq!(plain(&ack(&bytes)), expected);
    assert_eq!(
        encoded(&AckEncoder {
            delay: 7,
            ranges: expected.into_iter().map(pns),
            ecn: None
        }),
        bytes
    );
}

/// Proves: rfc9000 19.3.1 negative-ack-ranges-close
#[test]
fn a_range_below_zero_is_refused() {
    for bytes in [
        &[0x02, 5, 0, 0, 6][..],
        &[0x02, 5, 0, 1, 0, 4, 0],
        &[0x02, 5, 0, 1, 0, 3, 1],
        &[0x02, 5, 0, 1, 4, 0, 0],
    ] {
        let error = decoded(bytes).expect_err("a number below zero");
        assert_eq!(
            (error.code, error.frame),
            (Code::FRAME_ENCODING_ERROR, Some(FrameType::ACK))
        );
        assert!(error.reason.contains("below packet number 0"), "{error}");
    }
    assert_eq!(
        ack(&[0x02, 5, 0, 1, 0, 3, 0]).ranges().last(),
        Some(pns(0..=0))
    );
}

#[test]
fn a_range_count_beyond_the_packet_is_refused_at_its_end() {
    let mut bytes = vec![0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0];
    bytes.extend([0xff; 8]);
    bytes.extend([0; 1000]);
    let error = decoded(&bytes).expect_err("too many ranges");
    assert!(error.reason.contains("ACK ends before"), "{error}");
}

#[test]
fn no_range_is_no_frame() {
    let mut buffer = [0; 100];
    let mut writer = FrameWriter::new(&mut buffer);
    assert_eq!(writer.ack(0, std::iter::empty(), None), None);
    assert!(writer.is_empty());
}
