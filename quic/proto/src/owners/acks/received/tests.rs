use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use proptest::prelude::*;

use super::*;
use crate::testing::{pn, pns};

const DELAY: Duration = Duration::from_millis(25);

fn clock() -> Instant {
    Instant::now()
}

fn data() -> Received {
    Received::delayed(DELAY)
}

fn receive(received: &mut Received, now: Instant, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        received.on_packet(now, pn(number), AckEliciting::Yes, None);
    }
}

/// Sends an ACK frame with all ranges.
fn acknowledge(received: &mut Received) {
    let all = received.ranges().len();
    received.on_ack_sent(all);
}

fn ranges(received: &Received) -> Vec<RangeInclusive<u64>> {
    received.ranges().map(plain).collect()
}

fn plain(range: RangeInclusive<PacketNumber>) -> RangeInclusive<u64> {
    range.start().get()..=range.end().get()
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

/// Proves: rfc9000 12.3 duplicates-are-dropped
#[test]
fn what_came_before_is_a_duplicate() {
    let mut received = data();
    assert!(!received.is_duplicate(pn(0)));
    receive(&mut received, clock(), [0, 1, 2, 5]);
    for number in [0, 1, 2, 5] {
        assert!(received.is_duplicate(pn(number)), "{number}");
    }
    for number in [3, 4, 6, 1 << 61] {
        assert!(!received.is_duplicate(pn(number)), "{number}");
    }
}

/// Proves: rfc9000 12.3 duplicates-are-dropped
#[test]
fn only_so_many_ranges_are_kept_and_the_oldest_are_forgotten() {
    let mut received = data();
    let count = 10 * limits::ACK_RANGES as u64;
    receive(&mut received, clock(), (0..count).map(|index| 2 * index));
    assert_eq!(received.ranges().len(), limits::ACK_RANGES);
    let oldest = plain(received.ranges().next_back().unwrap());
    // The gaps in forgotten ranges may hide packets that arrived: nothing there counts as new.
    assert!(received.is_duplicate(pn(1)) && received.is_duplicate(pn(oldest.start() - 2)));
    assert!(!received.is_duplicate(pn(oldest.end() + 1)));
    assert_eq!(received.largest().unwrap().0, pn(2 * (count - 1)));
}

/// Proves: rfc9000 12.3 duplicates-are-dropped
#[test]
fn a_packet_older_than_all_ranges_is_not_taken_twice() {
    let mut received = data();
    let count = limits::ACK_RANGES as u64;
    receive(
        &mut received,
        clock(),
        (0..count).map(|index| 100 + 2 * index),
    );
    assert!(!received.is_duplicate(pn(10)));
    receive(&mut received, clock(), [10]);
    assert!(received.is_duplicate(pn(10)));
    assert_eq!(received.ranges().len(), limits::ACK_RANGES);
    assert_eq!(received.ranges().next_back(), Some(pns(100..=100)));
}

/// Proves: rfc9000 13.2.1 handshake-acks-are-immediate
#[test]
fn an_initial_is_acknowledged_at_once() {
    let (now, mut received) = (clock(), Received::immediate());
    receive(&mut received, now, [0]);
    assert!(received.is_ack_due(now));
    acknowledge(&mut received);
    assert!(!received.is_ack_due(now) && !received.is_ack_pending());
}

#[test]
fn the_second_data_packet_is_acknowledged_at_once() {
    let (now, mut received) = (clock(), data());
    receive(&mut received, now, [0]);
    assert!(received.is_ack_pending() && !received.is_ack_due(now));
    receive(&mut received, now, [1]);
    assert!(received.is_ack_due(now));
    acknowledge(&mut received);
    receive(&mut received, now, [2]);
    assert!(!received.is_ack_due(now));
}

/// Proves: rfc9000 13.2.1 acks-within-max-ack-delay
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
    acknowledge(&mut received);
    receive(&mut received, now, [3]);
    assert!(received.is_ack_due(now), "2 is missing");
    acknowledge(&mut received);
    receive(&mut received, now, [2]);
    assert!(received.is_ack_due(now), "2 came late");
    acknowledge(&mut received);
    receive(&mut received, now, [4]);
    assert!(!received.is_ack_due(now), "in order again");
}

#[test]
fn an_old_gap_does_not_make_every_packet_urgent() {
    let (now, mut received) = (clock(), data());
    receive(&mut received, now, [0, 2]);
    acknowledge(&mut received);
    receive(&mut received, now, [3]);
    assert!(!received.is_ack_due(now));
}

#[test]
fn a_gap_before_a_packet_that_asks_for_nothing_counts_when_the_next_one_asks() {
    let (now, mut received) = (clock(), data());
    receive(&mut received, now, [0]);
    acknowledge(&mut received);
    received.on_packet(now, pn(2), AckEliciting::No, None);
    assert!(!received.is_ack_pending());
    receive(&mut received, now, [3]);
    assert!(received.is_ack_due(now));
}

/// Proves: rfc9000 13.2.1 acks-do-not-elicit-acks
#[test]
fn packets_that_ask_for_nothing_get_no_ack_of_their_own() {
    let (now, mut received) = (clock(), data());
    for number in [0, 1, 7, 3] {
        received.on_packet(now, pn(number), AckEliciting::No, Some(Ecn::Ce));
    }
    assert!(!received.is_ack_pending());
    assert_eq!(received.next_timeout(), None);
    assert_eq!(ranges(&received), [7..=7, 3..=3, 0..=1]);
}

#[test]
fn congestion_experienced_is_reported_at_once() {
    let (now, mut received) = (clock(), data());
    assert_eq!(received.ecn_counts(), None);
    received.on_packet(now, pn(0), AckEliciting::Yes, Some(Ecn::Ect0));
    assert!(!received.is_ack_due(now));
    acknowledge(&mut received);
    received.on_packet(now, pn(1), AckEliciting::Yes, Some(Ecn::Ce));
    assert!(received.is_ack_due(now));
    received.on_packet(now, pn(2), AckEliciting::Yes, Some(Ecn::Ect1));
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
    acknowledge(&mut received);
    received.delay_ack(now + 9 * ms);
    assert!(!received.is_ack_pending(), "there is nothing to delay");
}

#[test]
fn the_largest_number_keeps_the_time_it_came() {
    let (now, mut received) = (clock(), data());
    let later = now + DELAY;
    receive(&mut received, now, [7]);
    receive(&mut received, later, [3]);
    assert_eq!(received.largest(), Some((pn(7), now)));
    assert_eq!(received.ack_delay(later), DELAY);
}

/// Proves: rfc9000 13.2.3 ranges-are-kept-until-useless
#[test]
fn an_acknowledged_ack_prunes_the_ranges_it_told() {
    let mut received = data();
    receive(&mut received, clock(), [0, 1, 4, 5, 8, 9, 12]);
    acknowledge(&mut received);
    received.on_ack_of_ack(pn(5));
    assert_eq!(ranges(&received), [12..=12, 8..=9]);
    assert!(received.is_duplicate(pn(0)) && received.is_duplicate(pn(3)));
    assert!(!received.is_duplicate(pn(6)) && !received.is_duplicate(pn(10)));
    // A range that has grown since is kept whole, the newest is always kept.
    received.on_ack_of_ack(pn(8));
    assert_eq!(ranges(&received), [12..=12, 8..=9]);
    received.on_ack_of_ack(pn(12));
    assert_eq!(ranges(&received), [12..=12]);
    received.on_ack_of_ack(pn(12));
    assert_eq!(ranges(&received), [12..=12]);
}

#[test]
fn a_number_that_was_in_no_ack_is_not_pruned() {
    let mut received = data();
    receive(&mut received, clock(), [0, 1, 3, 5]);
    acknowledge(&mut received);
    // 2 joins ranges already reported, and the ACK that reports 2 is not sent yet.
    receive(&mut received, clock(), [2, 7]);
    received.on_ack_of_ack(pn(5));
    assert_eq!(ranges(&received), [7..=7, 5..=5, 0..=3]);
    acknowledge(&mut received);
    received.on_ack_of_ack(pn(5));
    assert_eq!(ranges(&received), [7..=7]);
}

/// Proves: rfc9000 13.2.3 ranges-are-kept-until-useless
#[test]
fn ranges_that_did_not_fit_are_kept_until_they_are_told() {
    let mut received = data();
    receive(&mut received, clock(), [0, 2, 4, 6]);
    received.on_ack_sent(2);
    received.on_ack_of_ack(pn(6));
    assert_eq!(ranges(&received), [6..=6, 4..=4, 2..=2, 0..=0]);
    acknowledge(&mut received);
    received.on_ack_of_ack(pn(6));
    assert_eq!(ranges(&received), [6..=6]);
}

#[test]
fn many_ranges_are_told_before_they_must_be_forgotten() {
    let (now, mut received) = (clock(), data());
    received.set_policy(now, policy(1000, 0));
    receive(&mut received, now, (0..CROWD as u64).map(|index| 2 * index));
    assert!(!received.is_ack_due(now));
    receive(&mut received, now, [2 * CROWD as u64]);
    assert!(received.is_ack_due(now));
    acknowledge(&mut received);
    receive(&mut received, now, [2 * CROWD as u64 + 1]);
    assert!(!received.is_ack_due(now), "no further range");
}

#[test]
fn a_clock_that_stands_still_or_goes_back_delays_nothing_for_ever() {
    let (now, mut received) = (clock(), data());
    receive(&mut received, now + DELAY, [0]);
    assert_eq!(received.ack_delay(now), Duration::ZERO);
    receive(&mut received, now, [1]);
    assert!(received.is_ack_due(now), "the second packet needs no time");
    acknowledge(&mut received);
    receive(&mut received, now, [2]);
    assert_eq!(received.next_timeout(), Some(now + DELAY));
    received.on_timeout(now);
    assert_eq!(received.next_timeout(), Some(now + DELAY));
}

fn policy(threshold: u64, reordering: u64) -> AckPolicy {
    AckPolicy {
        threshold,
        max_delay: DELAY,
        reordering,
    }
}

#[test]
fn the_peer_decides_how_many_packets_bring_an_ack() {
    for threshold in [0, 1, 2, 9, 1000] {
        let (now, mut received) = (clock(), data());
        received.set_policy(now, policy(threshold, 1));
        receive(&mut received, now, 0..threshold);
        assert!(!received.is_ack_due(now), "{threshold}");
        receive(&mut received, now, [threshold]);
        assert!(received.is_ack_due(now), "{threshold}");
    }
}

#[test]
fn a_new_policy_counts_for_what_waits_already() {
    let (now, mut received) = (clock(), data());
    receive(&mut received, now, [0]);
    let sooner = AckPolicy {
        max_delay: DELAY / 5,
        ..policy(5, 1)
    };
    received.set_policy(now, sooner);
    assert_eq!(received.next_timeout(), Some(now + DELAY / 5));
    received.set_policy(now, policy(5, 1));
    assert_eq!(
        received.next_timeout(),
        Some(now + DELAY / 5),
        "what is promised is kept"
    );
    received.set_policy(now, policy(0, 1));
    assert!(received.is_ack_due(now));
}

#[test]
fn an_ack_that_is_asked_for_is_due() {
    let (now, mut received) = (clock(), data());
    received.set_policy(now, policy(9, 1));
    received.request_ack();
    receive(&mut received, now, [0]);
    assert!(received.is_ack_due(now));
    acknowledge(&mut received);
    assert!(!received.is_ack_pending());
}

/// Acknowledges whenever an ACK is due, and returns after which packets that was.
fn urgent(reordering: u64, packets: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let (now, mut received) = (clock(), data());
    received.set_policy(now, policy(1000, reordering));
    let mut urgent = Vec::new();
    for pn in packets {
        receive(&mut received, now, [pn]);
        if received.is_ack_due(now) {
            acknowledge(&mut received);
            urgent.push(pn);
        }
    }
    urgent
}

#[test]
fn reordering_is_told_as_in_the_examples_of_the_draft() {
    // draft-ietf-quic-ack-frequency §6.2.1, tables 1 and 2.
    assert_eq!(urgent(3, [0, 1, 3, 4, 5, 8, 9, 10]), [5, 9, 10]);
    assert_eq!(urgent(5, [0, 1, 3, 5, 6, 7, 8, 9]), [7, 9]);
    assert_eq!(urgent(1, [0, 1, 3, 4, 5, 8, 9, 10]), [3, 8]);
}

#[test]
fn a_packet_that_the_peer_has_given_up_is_told_at_once() {
    // 2 counts as lost when 5 is acknowledged; then it arrives after all.
    assert_eq!(urgent(3, [0, 1, 3, 4, 5, 2]), [5, 2]);
    // 4 arrived late but in time.
    assert_eq!(urgent(3, [0, 1, 3, 2, 5, 4]), Vec::<u64>::new());
}

#[test]
fn reordering_is_no_reason_if_the_peer_says_so() {
    assert_eq!(urgent(0, [0, 9, 3, 50, 2]), Vec::<u64>::new());
}

#[test]
fn the_first_ce_in_a_row_is_told_at_once_where_fewer_acks_are_wanted() {
    let (now, mut received) = (clock(), data());
    received.set_policy(now, policy(100, 1));
    let mut urgent = Vec::new();
    let marks = [Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ect0, Ecn::Ce];
    for (number, mark) in (0..).zip(marks) {
        received.on_packet(now, pn(number), AckEliciting::Yes, Some(mark));
        if received.is_ack_due(now) {
            acknowledge(&mut received);
            urgent.push(number);
        }
    }
    assert_eq!(urgent, [1, 5]);
}

#[derive(Clone, Debug)]
enum Step {
    Packet(u64),
    Ack(usize),
    AckOfAck(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0..300u64).prop_map(Step::Packet),
        4 => (0..40usize).prop_map(Step::Ack),
        1 => (0..300u64).prop_map(Step::AckOfAck),
    ]
}

proptest! {
    /// Against a set: nothing is accepted twice, ranges are never wrong and are in order, and as
    /// long as nothing was forgotten they are complete.
    #[test]
    fn ranges_agree_with_a_set(
        steps in prop::collection::vec(step(), 1..400),
        reordering in 0..5u64,
    ) {
        let (now, mut received) = (clock(), data());
        received.set_policy(now, policy(20, reordering));
        let mut model = BTreeSet::new();
        let mut told_once = BTreeSet::new();
        let mut overflowed = false;
        let mut has_forgotten = false;
        for step in steps {
            match step {
                Step::Packet(number) => {
                    prop_assert!(!model.contains(&number) || received.is_duplicate(pn(number)));
                    prop_assert!(model.contains(&number) || !received.is_duplicate(pn(number)) || has_forgotten);
                    if !received.is_duplicate(pn(number)) {
                        model.insert(number);
                        received.on_packet(now, pn(number), AckEliciting::Yes, None);
                        prop_assert!(received.is_duplicate(pn(number)));
                    }
                }
                Step::Ack(count) => {
                    let count = count.min(received.ranges().len());
                    told_once.extend(received.ranges().take(count).flat_map(plain));
                    received.on_ack_sent(count);
                    prop_assert!(!received.is_ack_pending());
                }
                Step::AckOfAck(largest) => {
                    received.on_ack_of_ack(pn(largest));
                    has_forgotten = true;
                }
            }
            overflowed |= received.ranges().len() == limits::ACK_RANGES;
            has_forgotten |= overflowed;
            let told = ranges(&received);
            for pair in told.windows(2) {
                prop_assert!(pair[1].end() + 1 < *pair[0].start());
            }
            let told: Vec<u64> = received.ranges().flat_map(|range| plain(range).rev()).collect();
            prop_assert!(told.iter().all(|pn| model.contains(pn)));
            prop_assert!(has_forgotten || told.len() == model.len());
            prop_assert_eq!(told.first(), model.last());
        }
        // Every range was reported at least once, or is reported next.
        told_once.extend(received.ranges().flat_map(plain));
        prop_assert!(overflowed || told_once == model);
    }
}
