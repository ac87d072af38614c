use super::*;
use crate::testing::{pn, pns};

fn drawn(seed: u64, packets: u64) -> Vec<u64> {
    let mut skipper = Skipper::new(Some(seed));
    let mut skipped = Vec::new();
    for number in 0..packets {
        if skipper.is_due(pn(number)) {
            skipped.push(number);
            skipper.plan(pn(number));
        }
    }
    skipped
}

#[test]
fn intervals_are_random_and_grow() {
    for seed in 0..200 {
        let skipped = drawn(seed, 100_000);
        assert!((16..=32).contains(&skipped[0]), "{skipped:?}");
        let mut bound = 64;
        for pair in skipped.windows(2) {
            let interval = pair[1] - pair[0];
            assert!((bound / 2..=bound).contains(&interval), "{skipped:?}");
            bound = (2 * bound).min(MAX_INTERVAL);
        }
        assert_eq!(bound, MAX_INTERVAL);
        assert_ne!(skipped, drawn(seed + 1, 100_000));
    }
    let firsts: std::collections::BTreeSet<_> = (0..2000).map(|seed| drawn(seed, 40)[0]).collect();
    assert_eq!(firsts.len(), 17, "every place is possible");
}

#[test]
fn what_is_remembered_reaches_back_further_than_what_may_be_in_flight() {
    let in_flight = crate::wire::limits::SENT_PACKETS as u64;
    for seed in 0..50 {
        let numbers = drawn(seed, 4 * in_flight);
        for newest in 0..numbers.len() {
            let Some(forgotten) = newest.checked_sub(REMEMBERED) else {
                continue;
            };
            assert!(numbers[newest] - numbers[forgotten] > in_flight);
        }
    }
    let mut skipped = Skipped::default();
    for number in (0..10_000).step_by(100) {
        skipped.push(pn(number));
    }
    assert_eq!(skipped.numbers.len(), REMEMBERED);
    assert!(skipped.any_in(&pns(9900..=9900)) && !skipped.any_in(&pns(9801..=9899)));
}

#[test]
fn without_a_seed_nothing_is_skipped() {
    assert!((0..100_000).all(|number| !Skipper::new(None).is_due(pn(number))));
}

#[test]
fn ranges_are_searched_at_both_ends() {
    let mut skipped = Skipped::default();
    assert!(!skipped.any_in(&pns(0..=u64::MAX)));
    skipped.push(pn(10));
    skipped.push(pn(20));
    for (range, found) in [
        (0..=9, false),
        (0..=10, true),
        (10..=10, true),
        (11..=19, false),
        (19..=21, true),
        (21..=30, false),
    ] {
        assert_eq!(skipped.any_in(&pns(range.clone())), found, "{range:?}");
    }
    assert_eq!(skipped.between(pn(9), pn(11)), 1);
    assert_eq!(skipped.between(pn(10), pn(20)), 0);
    assert_eq!(skipped.between(pn(0), pn(30)), 2);
}

#[test]
fn a_skipped_number_overtakes_nobody() {
    let mut skipped = Skipped::default();
    assert_eq!(skipped.overtaken_by(3, pn(10)), Some(pn(7)));
    assert_eq!(skipped.overtaken_by(3, pn(2)), None);
    skipped.push(pn(5));
    assert_eq!(skipped.overtaken_by(3, pn(10)), Some(pn(7)));
    assert_eq!(skipped.overtaken_by(3, pn(7)), Some(pn(3)));
    assert_eq!(
        skipped.overtaken_by(3, pn(8)),
        Some(pn(4)),
        "6, 7 and 8 overtook 4"
    );
    assert_eq!(skipped.overtaken_by(3, pn(6)), Some(pn(2)));
    skipped.push(pn(7));
    assert_eq!(
        skipped.overtaken_by(3, pn(8)),
        Some(pn(3)),
        "4, 6 and 8 overtook 3"
    );
}
