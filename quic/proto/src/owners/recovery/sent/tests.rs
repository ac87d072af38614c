use std::time::Instant;

use super::*;
use crate::testing::pn;

fn packet(record: u64) -> SentPacket<u64> {
    SentPacket {
        time_sent: Instant::now(),
        size: 1200,
        ack_eliciting: true,
        in_flight: true,
        largest_acked: None,
        ecn: None,
        snapshot: None,
        held: Held::default(),
        record,
    }
}

fn ack_only(record: u64) -> SentPacket<u64> {
    SentPacket {
        ack_eliciting: false,
        in_flight: false,
        ..packet(record)
    }
}

fn filled(numbers: impl IntoIterator<Item = u64>) -> SentPackets<u64> {
    let mut sent = SentPackets::default();
    for number in numbers {
        sent.insert(pn(number), packet(number));
    }
    sent
}

fn take(sent: &mut SentPackets<u64>, first: u64, last: u64) -> Vec<u64> {
    let mut taken = Vec::new();
    sent.take_range(pn(first), pn(last), |number, packet| {
        assert_eq!(number, pn(packet.record));
        taken.push(packet.record);
    });
    sent.compact();
    taken
}

#[test]
fn a_range_takes_each_packet_once() {
    let mut sent = filled(0..10);
    assert_eq!(take(&mut sent, 3, 5), [3, 4, 5]);
    assert_eq!(take(&mut sent, 2, 6), [2, 6]);
    assert_eq!(take(&mut sent, 0, u64::MAX), [0, 1, 7, 8, 9]);
    assert_eq!(take(&mut sent, 0, u64::MAX), []);
    assert!(sent.is_empty());
    assert!(sent.was_sent(pn(9)) && !sent.was_sent(pn(10)));
}

#[test]
fn numbers_may_be_missing() {
    let mut sent = filled([4, 5, 9, 100, 1 << 61]);
    assert_eq!(take(&mut sent, 6, 8), []);
    assert_eq!(take(&mut sent, 5, 99), [5, 9]);
    assert_eq!(take(&mut sent, 101, 1 << 61), [1 << 61]);
    assert_eq!(take(&mut sent, 0, 200), [4, 100]);
}

#[test]
fn an_empty_or_backward_range_takes_nothing() {
    let mut sent = filled(0..4);
    assert_eq!(take(&mut sent, 3, 1), []);
    assert_eq!(take(&mut sent, 9, 12), []);
    assert_eq!(sent.len(), 4);
}

#[test]
fn ack_only_packets_are_kept_in_bounded_number() {
    let mut sent = filled([0]);
    for number in 1..=1_000_000 {
        sent.insert(pn(number), ack_only(number));
    }
    assert_eq!(sent.len(), 1 + ACK_ONLY_PACKETS);
    assert!(sent.entries.len() <= 1 + ACK_ONLY_PACKETS);
    sent.insert(pn(1_000_001), packet(1_000_001));
    assert_eq!(take(&mut sent, 1_000_001, 1_000_001), [1_000_001]);
    assert_eq!(take(&mut sent, 0, 3), [0, 1, 2, 3]);
    for number in 1_000_002..1_000_010 {
        sent.insert(pn(number), ack_only(number));
    }
    assert_eq!(sent.len(), ACK_ONLY_PACKETS, "three places came free");
}

#[test]
fn a_skipped_number_is_no_packet() {
    let mut sent = filled(0..3);
    sent.skip(pn(3));
    for number in 4..8 {
        sent.insert(pn(number), packet(number));
    }
    assert!(sent.was_sent(pn(3)));
    assert_eq!(sent.len(), 7);
    assert_eq!(take(&mut sent, 2, 5), [2, 4, 5]);
    assert_eq!(take(&mut sent, 0, 1), [0, 1]);
    assert_eq!(sent.entries.len(), 2);
    assert_eq!(take(&mut sent, 6, 7), [6, 7]);
    sent.skip(pn(8));
    assert_eq!((sent.entries.len(), sent.next_number()), (0, pn(9)));
}

#[test]
fn losses_are_looked_for_until_one_packet_is_not_lost() {
    let mut sent = filled(0..10);
    assert_eq!(take(&mut sent, 1, 2), [1, 2]);
    let (mut seen, mut taken) = (Vec::new(), Vec::new());
    sent.take_lost(
        pn(6),
        |number, _| {
            seen.push(number.get());
            number < pn(4)
        },
        |pn, _| taken.push(pn.get()),
    );
    sent.compact();
    assert_eq!((seen, taken), (vec![0, 3, 4], vec![0, 3]));
    let rest: Vec<_> = sent.iter().map(|(pn, _)| pn.get()).collect();
    assert_eq!(rest, [4, 5, 6, 7, 8, 9]);
    let mut taken = Vec::new();
    sent.take_lost(pn(6), |_, _| true, |pn, _| taken.push(pn.get()));
    assert_eq!(taken, [4, 5, 6], "not beyond the limit");
}

#[test]
fn a_range_that_is_named_again_is_not_walked_through_again() {
    let mut sent = filled(0..1000);
    let mut model: std::collections::BTreeSet<u64> = (0..1000).collect();
    // The first packet is missing: nothing can be dropped from the front.
    for last in (10..900).step_by(2) {
        let taken = take(&mut sent, 1, last);
        let expected: Vec<_> = model.range(1..=last).copied().collect();
        assert_eq!(taken, expected);
        for pn in taken {
            model.remove(&pn);
        }
        let State::Settled(run) = sent.entries[1].state else {
            panic!("it was taken");
        };
        assert_eq!(u64::from(run), last, "the next call starts behind the last");
    }
    // Holes inside, ranges that start elsewhere, and ranges that were already taken.
    for (first, last) in [(950, 960), (940, 970), (899, 980), (1, 990), (500, 995)] {
        let expected: Vec<_> = model.range(first..=last).copied().collect();
        assert_eq!(take(&mut sent, first, last), expected);
        model.retain(|pn| !(first..=last).contains(pn));
    }
    assert_eq!(take(&mut sent, 0, 2000), [0, 996, 997, 998, 999]);
    assert!(sent.entries.is_empty());
}

#[test]
fn memory_of_a_burst_is_returned_by_a_small_one_but_not_by_a_like_one() {
    let mut sent = filled(0..10_000);
    take(&mut sent, 0, 9_999);
    let grown = sent.entries.capacity();
    for number in 10_000..20_000 {
        sent.insert(pn(number), packet(number));
    }
    take(&mut sent, 10_000, 19_999);
    assert_eq!(sent.entries.capacity(), grown);
    for number in 20_000..20_010 {
        sent.insert(pn(number), packet(number));
    }
    take(&mut sent, 20_000, 20_009);
    assert!(sent.entries.capacity() < 100);
    let small = sent.entries.capacity();
    for number in 20_010..20_020 {
        sent.insert(pn(number), packet(number));
        take(&mut sent, number, number);
    }
    assert_eq!(
        sent.entries.capacity(),
        small,
        "no allocation when packets come one by one"
    );
}

/// Proves: rfc9000 12.3 packet-numbers-rise
#[test]
fn taking_all_keeps_the_numbers() {
    let mut sent = filled(0..5);
    take(&mut sent, 1, 2);
    let mut taken = Vec::new();
    sent.take_all(|pn, _| taken.push(pn.get()));
    assert_eq!(taken, [0, 3, 4]);
    assert!(sent.is_empty());
    assert_eq!(sent.next_number(), pn(5));
}

#[test]
fn it_is_full_at_its_bound() {
    let sent = filled(0..SENT_PACKETS as u64 - 1);
    assert!(!sent.is_full());
    assert!(filled(0..SENT_PACKETS as u64).is_full());
}

#[test]
fn records_that_hold_much_fill_the_table() {
    let mut sent = SentPackets::default();
    let held = Held::of(SENT_RECORDS / 8);
    for number in 0..8 {
        assert!(!sent.is_full(), "{number} packets");
        sent.insert(
            pn(number),
            SentPacket {
                held,
                ..packet(number)
            },
        );
    }
    assert!(sent.is_full());
    assert_eq!(take(&mut sent, 3, 3), [3]);
    assert!(
        !sent.is_full(),
        "an acknowledged packet gives its memory back"
    );
    sent.take_all(|_, _| ());
    assert_eq!(sent.memory(), 0);
}

#[test]
fn a_full_table_does_not_double() {
    let mut sent = filled(0..SENT_PACKETS as u64 + 10);
    assert!(sent.memory() <= SentPackets::<u64>::most_memory());
    for number in 0..BEYOND_FULL as u64 {
        sent.insert(pn(SENT_PACKETS as u64 + 10 + number), packet(number));
    }
    assert!(sent.memory() < SentPackets::<u64>::most_memory() + SENT_RECORDS / 2);
}

#[test]
fn bytes_held_are_rounded_up_and_bounded() {
    assert_eq!(Held::of(0).bytes(), 0);
    assert_eq!(Held::of(1).bytes(), 32);
    assert_eq!(Held::of(33).bytes(), 64);
    assert_eq!(Held::of(usize::MAX / 2).bytes(), 32 * 65_535);
}
