use super::*;

const RTT: Duration = Duration::from_millis(80);

#[expect(clippy::disallowed_methods, reason = "a base for virtual time")]
fn now() -> Instant {
    Instant::now()
}

fn late(overtaken_by: u64, took_ms: u64) -> Lateness {
    Lateness {
        overtaken_by,
        took: Duration::from_millis(took_ms),
        round_trip: RTT,
    }
}

fn thresholds(reordering: &Reordering) -> (u64, Duration) {
    (reordering.packets(), reordering.delay(RTT))
}

const FIRST: (u64, Duration) = (3, Duration::from_millis(90));

/// Proves: rfc9002 6.1.2 time-threshold-has-a-floor
/// Proves: rfc9002 6.1.1 packet-threshold
#[test]
fn the_first_thresholds_are_those_of_the_rfc() {
    let reordering = Reordering::new(now());
    assert_eq!(thresholds(&reordering), FIRST);
    assert_eq!(reordering.delay(Duration::ZERO), GRANULARITY);
}

#[test]
fn the_packet_threshold_grows_to_what_was_needed() {
    let mut reordering = Reordering::new(now());
    reordering.on_spurious(late(12, 85));
    assert_eq!(thresholds(&reordering), (13, Duration::from_millis(90)));
    reordering.on_spurious(late(5, 85));
    assert_eq!(reordering.packets(), 13);
    reordering.on_spurious(late(u64::MAX, 85));
    assert_eq!(reordering.packets(), MOST_PACKETS);
}

#[test]
fn the_time_threshold_grows_in_eighths_to_what_was_needed_up_to_two_round_trips() {
    for (took, expected) in [
        (90, 100),
        (99, 100),
        (100, 110),
        (143, 150),
        (159, 160),
        (5000, 160),
    ] {
        let mut reordering = Reordering::new(now());
        reordering.on_spurious(late(1, took));
        assert_eq!(reordering.delay(RTT), Duration::from_millis(expected));
        reordering.on_spurious(late(1, 95));
        assert_eq!(reordering.delay(RTT), Duration::from_millis(expected));
    }
}

#[test]
fn a_packet_within_the_time_threshold_leaves_it() {
    let mut reordering = Reordering::new(now());
    reordering.on_spurious(late(5, 89));
    assert_eq!(reordering.delay(RTT), FIRST.1);
    reordering.on_spurious(late(5, 90));
    assert_eq!(reordering.delay(RTT), Duration::from_millis(100));
}

/// Lets this many rounds pass.
fn rounds(reordering: &mut Reordering, at: &mut Instant, count: u32) {
    for _ in 0..count {
        let sent = *at;
        *at += RTT;
        reordering.on_acked(*at, sent);
    }
}

#[test]
fn sixteen_quiet_rounds_bring_the_first_thresholds_back() {
    let mut at = now();
    let mut reordering = Reordering::new(at);
    reordering.on_spurious(late(20, 100));
    rounds(&mut reordering, &mut at, 15);
    assert_eq!(thresholds(&reordering), (21, Duration::from_millis(110)));
    rounds(&mut reordering, &mut at, 1);
    assert_eq!(thresholds(&reordering), FIRST);
}

#[test]
fn reordering_that_costs_nothing_keeps_the_thresholds() {
    for (packet, kept) in [
        (late(3, 0), true),
        (late(1, 90), true),
        (late(2, 89), false),
    ] {
        let mut at = now();
        let mut reordering = Reordering::new(at);
        reordering.on_spurious(late(20, 100));
        for _ in 0..10 {
            rounds(&mut reordering, &mut at, 10);
            reordering.on_reordered(packet);
        }
        assert_eq!(thresholds(&reordering) != FIRST, kept, "{packet:?}");
    }
}

#[test]
fn a_round_lasts_until_something_is_acknowledged_that_was_sent_in_it() {
    let start = now();
    let mut reordering = Reordering::new(start);
    reordering.on_spurious(late(20, 100));
    let end = start + RTT;
    reordering.on_acked(end, start);
    for _ in 0..100 {
        reordering.on_acked(end + RTT / 2, start + RTT / 2);
    }
    assert_eq!(reordering.packets(), 21, "all sent before the round began");
}
