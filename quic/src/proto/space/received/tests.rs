use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use proptest::prelude::*;

use super::*;

const DELAY: Duration = Duration::from_millis(25);

fn clock() -> Instant {
    Instant::now()
}

fn data() -> Received {
    Received::delayed(DELAY)
}

fn receive(received: &mut Received, now: Instant, pns: impl IntoIterator<Item = u64>) {
    for pn in pns {
        received.on_packet(now, pn, AckEliciting::Yes, None);
    }
}

fn ranges(received: &Received) -> Vec<RangeInclusive<u64>> {
    received.ranges().collect()
}

#[test]
fn packets_in_order_are_one_range() {
    let mut received = data();
    receive(&mut received, clock(), 0..1000);
    assert_eq!(ranges(&received), [0..=999]);
}

#[test]
fn ranges_grow_split_and_join() {
    let mut received = data();
    receive(&mut received, clock(), [5, 9, 7]);
    assert_eq!(ranges(&received), [9..=9, 7..=7, 5..=5]);
    receive(&mut received, clock(), [6]);
    assert_eq!(ranges(&received), [9..=9, 5..=7]);
    receive(&mut received, clock(), [8]);
    assert_eq!(ranges(&received), [5..=9]);
    receive(&mut received, clock(), [4, 10, 2]);
    assert_eq!(ranges(&received), [4..=10, 2..=2]);
    receive(&mut received, clock(), [0]);
    assert_eq!(ranges(&received), [4..=10, 2..=2, 0..=0]);
}

#[test]
fn what_came_before_is_a_duplicate() {
    let mut received = data();
    assert!(!received.is_duplicate(0));
    receive(&mut received, clock(), [0, 1, 2, 5]);
    for pn in [0, 1, 2, 5] {
        assert!(received.is_duplicate(pn), "{pn}");
    }
    for pn in [3, 4, 6, 1 << 61] {
        assert!(!received.is_duplicate(pn), "{pn}");
    }
}

#[test]
fn only_so_many_ranges_are_kept_and_the_oldest_are_forgotten() {
    let mut received = data();
    let count = 10 * limits::ACK_RANGES as u64;
    receive(&mut received, clock(), (0..count).map(|index| 2 * index));
    assert_eq!(received.ranges().len(), limits::ACK_RANGES);
    let oldest = received.ranges().next_back().unwrap();
    // The gaps of what is forgotten may hide packets that came: nothing there is new any more.
    assert!(received.is_duplicate(1) && received.is_duplicate(oldest.start() - 2));
    assert!(!received.is_duplicate(oldest.end() + 1));
    assert_eq!(received.largest().unwrap().0, 2 * (count - 1));
}

#[test]
fn a_packet_older_than_all_ranges_is_not_taken_twice() {
    let mut received = data();
    let count = limits::ACK_RANGES as u64;
    receive(
        &mut received,
        clock(),
        (0..count).map(|index| 100 + 2 * index),
    );
    assert!(!received.is_duplicate(10));
    receive(&mut received, clock(), [10]);
    assert!(received.is_duplicate(10));
    assert_eq!(received.ranges().len(), limits::ACK_RANGES);
    assert_eq!(received.ranges().next_back(), Some(100..=100));
}

#[test]
fn an_initial_is_acknowledged_at_once() {
    let (now, mut received) = (clock(), Received::immediate());
    receive(&mut received, now, [0]);
    assert!(received.is_ack_due(now));
    received.on_ack_sent();
    assert!(!received.is_ack_due(now) && !received.is_ack_pending());
}

#[test]
fn the_second_data_packet_is_acknowledged_at_once() {
    let (now, mut received) = (clock(), data());
    receive(&mut received, now, [0]);
    assert!(received.is_ack_pending() && !received.is_ack_due(now));
    receive(&mut received, now, [1]);
    assert!(received.is_ack_due(now));
    received.on_ack_sent();
    receive(&mut received, now, [2]);
    assert!(!received.is_ack_due(now));
}

#[test]
fn a_single_data_packet_is_acknowledged_after_the_delay() {
    let (now, mut received) = (clock(), data());
    receive(&mut received, now, [0]);
    assert_eq!(received.next_timeout(), Some(now + DELAY));
    received.on_timeout(now);
    assert!(!received.is_ack_due(now));
    received.on_timeout(now + DELAY);
    assert!(received.is_ack_due(now + DELAY));
    assert_eq!(received.next_timeout(), None, "a due ACK waits for no time");
    assert_eq!(received.ack_delay(now + DELAY), DELAY);
}

#[test]
fn a_packet_behind_another_is_acknowledged_at_once() {
    let (now, mut received) = (clock(), data());
    receive(&mut received, now, [0, 1]);
    received.on_ack_sent();
    receive(&mut received, now, [3]);
    assert!(received.is_ack_due(now), "2 is missing");
    received.on_ack_sent();
    receive(&mut received, now, [2]);
    assert!(received.is_ack_due(now), "2 came late");
    received.on_ack_sent();
    receive(&mut received, now, [4]);
    assert!(!received.is_ack_due(now), "in order again");
}

#[test]
fn an_old_gap_does_not_make_every_packet_urgent() {
    let (now, mut received) = (clock(), data());
    receive(&mut received, now, [0, 2]);
    received.on_ack_sent();
    receive(&mut received, now, [3]);
    assert!(!received.is_ack_due(now));
}

#[test]
fn a_gap_before_a_packet_that_asks_for_nothing_counts_when_the_next_one_asks() {
    let (now, mut received) = (clock(), data());
    receive(&mut received, now, [0]);
    received.on_ack_sent();
    received.on_packet(now, 2, AckEliciting::No, None);
    assert!(!received.is_ack_pending());
    receive(&mut received, now, [3]);
    assert!(received.is_ack_due(now));
}

#[test]
fn packets_that_ask_for_nothing_get_no_ack_of_their_own() {
    let (now, mut received) = (clock(), data());
    for pn in [0, 1, 7, 3] {
        received.on_packet(now, pn, AckEliciting::No, Some(Ecn::Ce));
    }
    assert!(!received.is_ack_pending());
    assert_eq!(received.next_timeout(), None);
    assert_eq!(ranges(&received), [7..=7, 3..=3, 0..=1]);
}

#[test]
fn congestion_experienced_is_reported_at_once() {
    let (now, mut received) = (clock(), data());
    assert_eq!(received.ecn_counts(), None);
    received.on_packet(now, 0, AckEliciting::Yes, Some(Ecn::Ect0));
    assert!(!received.is_ack_due(now));
    received.on_ack_sent();
    received.on_packet(now, 1, AckEliciting::Yes, Some(Ecn::Ce));
    assert!(received.is_ack_due(now));
    received.on_packet(now, 2, AckEliciting::Yes, Some(Ecn::Ect1));
    assert_eq!(
        received.ecn_counts(),
        Some(EcnCounts {
            ect0: 1,
            ect1: 1,
            ce: 1
        })
    );
}

#[test]
fn the_ack_of_a_partial_client_hello_is_held_back_once() {
    let (now, mut received) = (clock(), Received::immediate());
    let ms = Duration::from_millis(1);
    receive(&mut received, now, [0]);
    received.delay_ack(now + ms);
    assert!(received.is_ack_pending() && !received.is_ack_due(now));
    assert_eq!(received.next_timeout(), Some(now + ms));
    // The next piece cannot push it further.
    receive(&mut received, now + ms / 2, [1]);
    received.delay_ack(now + ms / 2 + ms);
    assert_eq!(received.next_timeout(), Some(now + ms));
    assert!(received.is_ack_due(now + ms));
    received.on_ack_sent();
    received.delay_ack(now + 9 * ms);
    assert!(!received.is_ack_pending(), "there is nothing to delay");
}

#[test]
fn the_largest_number_keeps_the_time_it_came() {
    let (now, mut received) = (clock(), data());
    let later = now + DELAY;
    receive(&mut received, now, [7]);
    receive(&mut received, later, [3]);
    assert_eq!(received.largest(), Some((7, now)));
    assert_eq!(received.ack_delay(later), DELAY);
}

#[test]
fn an_acknowledged_ack_prunes_the_ranges_it_told() {
    let mut received = data();
    receive(&mut received, clock(), [0, 1, 4, 5, 8, 9, 12]);
    received.on_ack_of_ack(5);
    assert_eq!(ranges(&received), [12..=12, 8..=9]);
    assert!(received.is_duplicate(0) && received.is_duplicate(3));
    assert!(!received.is_duplicate(6) && !received.is_duplicate(10));
    // A range that has grown since stays whole, the newest stays always.
    received.on_ack_of_ack(8);
    assert_eq!(ranges(&received), [12..=12, 8..=9]);
    received.on_ack_of_ack(12);
    assert_eq!(ranges(&received), [12..=12]);
    received.on_ack_of_ack(12);
    assert_eq!(ranges(&received), [12..=12]);
}

#[derive(Clone, Debug)]
enum Step {
    Packet(u64),
    AckOfAck(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0..300u64).prop_map(Step::Packet),
        1 => (0..300u64).prop_map(Step::AckOfAck),
    ]
}

proptest! {
    /// Against a set: nothing is taken twice, ranges never lie and are in order, and while nothing
    /// was forgotten they are complete.
    #[test]
    fn ranges_agree_with_a_set(steps in prop::collection::vec(step(), 1..400)) {
        let (now, mut received) = (clock(), data());
        let mut model = BTreeSet::new();
        let mut has_forgotten = false;
        for step in steps {
            match step {
                Step::Packet(pn) => {
                    prop_assert!(!model.contains(&pn) || received.is_duplicate(pn));
                    prop_assert!(model.contains(&pn) || !received.is_duplicate(pn) || has_forgotten);
                    if !received.is_duplicate(pn) {
                        model.insert(pn);
                        received.on_packet(now, pn, AckEliciting::Yes, None);
                        prop_assert!(received.is_duplicate(pn));
                    }
                }
                Step::AckOfAck(largest) => {
                    received.on_ack_of_ack(largest);
                    has_forgotten = true;
                }
            }
            has_forgotten |= received.ranges().len() == limits::ACK_RANGES;
            let told: Vec<_> = received.ranges().collect();
            for pair in told.windows(2) {
                prop_assert!(pair[1].end() + 1 < *pair[0].start());
            }
            let told: Vec<u64> = received.ranges().flat_map(Iterator::rev).collect();
            prop_assert!(told.iter().all(|pn| model.contains(pn)));
            prop_assert!(has_forgotten || told.len() == model.len());
            prop_assert_eq!(told.first(), model.last());
        }
    }
}
