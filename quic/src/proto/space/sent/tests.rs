use std::time::Instant;

use super::*;

fn packet(record: u64) -> SentPacket<u64> {
    SentPacket {
        time_sent: Instant::now(),
        size: 1200,
        ack_eliciting: true,
        in_flight: true,
        largest_acked: None,
        ecn: None,
        snapshot: None,
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

fn filled(pns: impl IntoIterator<Item = u64>) -> SentPackets<u64> {
    let mut sent = SentPackets::default();
    for pn in pns {
        sent.insert(pn, packet(pn));
    }
    sent
}

fn take(sent: &mut SentPackets<u64>, first: u64, last: u64) -> Vec<u64> {
    let mut taken = Vec::new();
    sent.take_range(first, last, |pn, packet| {
        assert_eq!(pn, packet.record);
        taken.push(pn);
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
    assert!(sent.was_sent(9) && !sent.was_sent(10));
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
    for pn in 1..=1_000_000 {
        sent.insert(pn, ack_only(pn));
    }
    assert_eq!(sent.len(), 1 + ACK_ONLY_PACKETS);
    assert!(sent.entries.len() <= 1 + ACK_ONLY_PACKETS);
    sent.insert(1_000_001, packet(1_000_001));
    assert_eq!(take(&mut sent, 1_000_001, 1_000_001), [1_000_001]);
    assert_eq!(take(&mut sent, 0, 3), [0, 1, 2, 3]);
    for pn in 1_000_002..1_000_010 {
        sent.insert(pn, ack_only(pn));
    }
    assert_eq!(sent.len(), ACK_ONLY_PACKETS, "three places came free");
}

#[test]
fn a_skipped_number_is_remembered_while_the_packet_behind_it_waits() {
    let mut sent = filled(0..3);
    sent.skip(3);
    for pn in 4..8 {
        sent.insert(pn, packet(pn));
    }
    assert!(sent.has_skipped(0, 7) && sent.has_skipped(3, 3));
    assert!(!sent.has_skipped(0, 2) && !sent.has_skipped(4, 7));
    assert_eq!(take(&mut sent, 0, 2), [0, 1, 2]);
    assert!(sent.has_skipped(3, 5));
    assert_eq!(take(&mut sent, 4, 4), [4]);
    assert!(!sent.remembers_skipped());
    assert_eq!(sent.entries.len(), 3);
}

#[test]
fn losses_are_looked_for_only_up_to_the_limit() {
    let mut sent = filled(0..10);
    let (mut seen, mut taken) = (Vec::new(), Vec::new());
    sent.take_lost(
        6,
        |pn, _| {
            seen.push(pn);
            pn % 2 == 0
        },
        |pn, _| taken.push(pn),
    );
    sent.compact();
    assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(taken, [0, 2, 4, 6]);
    assert_eq!(
        sent.iter().map(|(pn, _)| pn).collect::<Vec<_>>(),
        [1, 3, 5, 7, 8, 9]
    );
}

#[test]
fn memory_of_a_burst_is_returned_by_a_small_one_but_not_by_a_like_one() {
    let mut sent = filled(0..10_000);
    take(&mut sent, 0, 9_999);
    let grown = sent.entries.capacity();
    for pn in 10_000..20_000 {
        sent.insert(pn, packet(pn));
    }
    take(&mut sent, 10_000, 19_999);
    assert_eq!(sent.entries.capacity(), grown);
    for pn in 20_000..20_010 {
        sent.insert(pn, packet(pn));
    }
    take(&mut sent, 20_000, 20_009);
    assert!(sent.entries.capacity() < 100);
    let small = sent.entries.capacity();
    for pn in 20_010..20_020 {
        sent.insert(pn, packet(pn));
        take(&mut sent, pn, pn);
    }
    assert_eq!(
        sent.entries.capacity(),
        small,
        "no allocation when packets come one by one"
    );
}

#[test]
fn taking_all_keeps_the_numbers() {
    let mut sent = filled(0..5);
    take(&mut sent, 1, 2);
    let mut taken = Vec::new();
    sent.take_all(|pn, _| taken.push(pn));
    assert_eq!(taken, [0, 3, 4]);
    assert!(sent.is_empty());
    assert_eq!(sent.next_number(), 5);
}

#[test]
fn it_is_full_at_its_bound() {
    let sent = filled(0..SENT_PACKETS as u64 - 1);
    assert!(!sent.is_full());
    assert!(filled(0..SENT_PACKETS as u64).is_full());
}
