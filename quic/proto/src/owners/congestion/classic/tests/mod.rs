mod property;

use std::time::Duration;

use super::*;
use crate::owners::congestion::{
    Cubic, NewReno,
    testing::{self, Flow},
};

const SIZE: u64 = 1200;

fn flow() -> Flow<NewReno> {
    Flow::new(NewReno::new(1200))
}

/// Creates a flow in congestion avoidance with nothing in flight.
fn avoiding() -> Flow<Cubic> {
    let mut flow = Flow::new(Cubic::new(1200));
    for _ in 0..4 {
        flow.round();
    }
    flow.recover();
    flow.round();
    flow.now += Duration::from_millis(1);
    assert_eq!(flow.controller.phase(), Phase::Avoidance);
    flow
}

#[test]
fn the_initial_window_is_ten_datagrams_but_about_fifteen_kilobytes() {
    assert_eq!(NewReno::new(1200).window(), 12_000);
    assert_eq!(NewReno::new(1472).window(), 14_720);
    assert_eq!(NewReno::new(2000).window(), 14_720);
    assert_eq!(NewReno::new(9000).window(), 18_000);
}

#[test]
fn slow_start_grows_by_what_is_acknowledged() {
    let mut flow = flow();
    flow.fill();
    flow.ack(10);
    assert_eq!(flow.window(), 20 * SIZE);
    assert_eq!(flow.controller.phase(), Phase::SlowStart);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut flow = flow();
    flow.usage = Usage::Underused;
    flow.fill();
    flow.ack(10);
    assert_eq!(flow.window(), 10 * SIZE, "in slow start");
    let mut flow = avoiding();
    flow.usage = Usage::Underused;
    let before = flow.window();
    for _ in 0..100 {
        flow.round();
    }
    assert_eq!(flow.window(), before, "in congestion avoidance");
}

#[test]
fn slow_start_turns_conservative_and_ends_when_the_round_trip_grows() {
    let mut flow = flow();
    flow.round();
    flow.round();
    let before = flow.window();
    flow.rtt = Duration::from_millis(120);
    // Eight of the twenty ACKs grow the window as before, the others by a quarter of that.
    flow.round();
    assert_eq!(flow.window(), before + 14 * SIZE + (40 - 14) * SIZE / 4);
    for round in 1..5 {
        let before = flow.window();
        flow.round();
        let growth = flow.window() - before;
        assert!(growth.abs_diff(before / 4) <= SIZE, "round {round}");
        assert_eq!(flow.controller.phase(), Phase::SlowStart);
    }
    let before = flow.window();
    flow.round();
    assert_eq!(flow.controller.phase(), Phase::Avoidance);
    assert_eq!(flow.controller.slow_start_threshold(), Some(before));
}

#[test]
fn a_later_slow_start_ends_at_its_threshold_alone() {
    let mut flow = flow();
    for _ in 0..4 {
        flow.round();
    }
    flow.fill();
    flow.now += flow.rtt;
    flow.lose(flow.in_flight(), Severity::PersistentCongestion);
    flow.now += Duration::from_millis(1);
    let threshold = flow.controller.slow_start_threshold().unwrap();
    while flow.window() < threshold {
        let before = flow.window();
        flow.rtt += Duration::from_millis(50);
        flow.round();
        assert_eq!(flow.window(), (2 * before).min(threshold));
    }
    assert_eq!(flow.controller.phase(), Phase::Avoidance);
}

/// Proves: rfc9002 7.3.2 recovery-halves
/// Proves: rfc9002 7.3.1 loss-and-ce-end-slow-start
#[test]
fn congestion_is_answered_once_per_round_trip() {
    let mut flow = flow();
    flow.fill();
    flow.now += flow.rtt;
    flow.lose(1, Severity::Congestion);
    assert_eq!(flow.controller.slow_start_threshold(), Some(5 * SIZE));
    flow.now += Duration::from_millis(1);
    flow.lose(2, Severity::Congestion);
    assert_eq!(flow.controller.slow_start_threshold(), Some(5 * SIZE));
    flow.ack(7);
    assert_eq!(flow.controller.phase(), Phase::Recovery, "no growth in it");
    flow.send();
    flow.lose(1, Severity::Congestion);
    let half = 5 * SIZE / 2;
    assert_eq!(flow.controller.slow_start_threshold(), Some(half));
}

/// Proves: rfc9002 7.3.1 loss-and-ce-end-slow-start
#[test]
fn a_mark_and_a_loss_of_one_round_trip_are_answered_once() {
    let mut flow = flow();
    flow.fill();
    flow.now += flow.rtt;
    flow.mark();
    let threshold = flow.controller.slow_start_threshold();
    assert_eq!(threshold, Some(8 * SIZE));
    flow.mark();
    flow.lose(1, Severity::Congestion);
    assert_eq!(flow.controller.slow_start_threshold(), threshold);
}

#[test]
fn the_window_never_falls_below_two_datagrams() {
    let mut reno = NewReno::new(1200);
    let mut now = Instant::now();
    for _ in 0..20 {
        now += Duration::from_secs(1);
        testing::lost(&mut reno, now, now, SIZE, Severity::Congestion);
        assert!(reno.window() >= 2 * SIZE);
    }
    assert_eq!(reno.slow_start_threshold(), Some(2 * SIZE));
}

/// Proves: rfc9002 7.6.2 persistent-congestion-needs-two
#[test]
fn persistent_congestion_starts_over_in_slow_start() {
    let mut flow = flow();
    flow.fill();
    flow.lose(10, Severity::PersistentCongestion);
    assert_eq!(flow.window(), 2 * SIZE);
    flow.now += Duration::from_millis(1);
    flow.round();
    assert_eq!(flow.window(), 4 * SIZE, "slow start up to half the window");
    flow.round();
    assert_eq!(flow.window(), 5 * SIZE);
    flow.round();
    assert_eq!(flow.window(), 6 * SIZE, "then congestion avoidance");
}

#[test]
fn losses_from_before_persistent_congestion_cost_nothing_more() {
    let mut flow = flow();
    flow.fill();
    flow.lose(8, Severity::PersistentCongestion);
    let threshold = flow.controller.slow_start_threshold();
    flow.lose(2, Severity::Congestion);
    assert_eq!(flow.controller.slow_start_threshold(), threshold);
    assert_eq!(flow.controller.phase(), Phase::SlowStart);
}

#[test]
fn a_loss_that_was_none_leaves_nothing_behind() {
    let mut flow = avoiding();
    flow.fill();
    let mut untouched = flow.clone();
    flow.now += flow.rtt;
    flow.lose_and_ack(1, 1);
    assert_eq!(flow.controller.phase(), Phase::Recovery);
    flow.spurious();
    assert_eq!(flow.window(), untouched.window());
    assert_eq!(
        flow.controller.slow_start_threshold(),
        untouched.controller.slow_start_threshold()
    );
    assert_eq!(flow.controller.phase(), Phase::Avoidance);
    // The curve continues as if nothing had happened.
    untouched.now = flow.now;
    untouched.ack(2);
    for _ in 0..20 {
        flow.round();
        untouched.round();
    }
    let ratio = flow.datagrams() / untouched.datagrams();
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
}

#[test]
fn the_initial_slow_start_goes_on_after_a_loss_that_was_none() {
    let mut flow = flow();
    flow.round();
    flow.fill();
    flow.lose(1, Severity::Congestion);
    flow.spurious();
    assert_eq!(flow.controller.phase(), Phase::SlowStart);
    assert_eq!(flow.controller.slow_start_threshold(), None);
    assert_eq!(flow.window(), 20 * SIZE);
}

#[test]
fn congestion_that_was_none_answers_no_other() {
    let mut flow = avoiding();
    flow.fill();
    flow.now += flow.rtt;
    flow.lose(1, Severity::Congestion);
    flow.spurious();
    let before = flow.window();
    // Sent before that loss, and actually lost.
    flow.lose(1, Severity::Congestion);
    assert!(flow.controller.slow_start_threshold().unwrap() < before * 3 / 4);
}

#[test]
fn only_the_last_reduction_is_undone_and_once() {
    let mut flow = avoiding();
    flow.fill();
    flow.now += flow.rtt;
    flow.lose(1, Severity::Congestion);
    let first = flow.controller.slow_start_threshold();
    flow.now += Duration::from_millis(1);
    flow.ack(flow.in_flight());
    flow.send();
    flow.lose(1, Severity::Congestion);
    flow.spurious();
    assert_eq!(flow.controller.slow_start_threshold(), first);
    flow.spurious();
    assert_eq!(flow.controller.slow_start_threshold(), first);
}

#[test]
fn a_mark_is_never_undone() {
    let mut flow = avoiding();
    flow.fill();
    flow.lose(1, Severity::Congestion);
    flow.now += Duration::from_millis(1);
    flow.mark();
    let threshold = flow.controller.slow_start_threshold();
    flow.spurious();
    assert_eq!(flow.controller.slow_start_threshold(), threshold);
    assert_eq!(flow.controller.phase(), Phase::Recovery);
}

#[test]
fn a_mark_in_recovery_confirms_the_loss() {
    let mut flow = avoiding();
    flow.fill();
    flow.lose(1, Severity::Congestion);
    flow.mark();
    let threshold = flow.controller.slow_start_threshold();
    flow.spurious();
    assert_eq!(flow.controller.slow_start_threshold(), threshold);
}

#[test]
fn persistent_congestion_that_was_none_is_undone() {
    let mut flow = avoiding();
    flow.fill();
    let before = flow.window();
    flow.now += Duration::from_secs(2);
    flow.lose(flow.in_flight(), Severity::PersistentCongestion);
    assert_eq!(flow.window(), 2 * SIZE);
    flow.spurious();
    assert_eq!(flow.window(), before);
    assert_eq!(flow.controller.phase(), Phase::Avoidance);
}

#[test]
fn a_saved_window_is_taken_as_it_is() {
    let mut flow = flow();
    flow.controller.on_resume(&Resume {
        now: flow.now,
        window: 500 * SIZE,
        slow_start_threshold: None,
    });
    assert_eq!(flow.window(), 500 * SIZE);
    assert_eq!(flow.controller.phase(), Phase::SlowStart);
    flow.controller.on_resume(&Resume {
        now: flow.now,
        window: 1,
        slow_start_threshold: Some(1),
    });
    assert_eq!(flow.window(), 2 * SIZE);
    assert_eq!(flow.controller.slow_start_threshold(), Some(2 * SIZE));
}

#[test]
fn a_window_that_is_set_in_recovery_counts_at_once() {
    let mut flow = avoiding();
    flow.fill();
    flow.now += flow.rtt;
    flow.lose(3, Severity::Congestion);
    flow.controller.on_resume(&Resume {
        now: flow.now,
        window: 40 * SIZE,
        slow_start_threshold: Some(40 * SIZE),
    });
    assert_eq!(flow.window(), 40 * SIZE);
    assert_eq!(flow.controller.phase(), Phase::Avoidance);
    flow.lose(1, Severity::Congestion);
    assert_eq!(
        flow.controller.phase(),
        Phase::Avoidance,
        "of the same round trip"
    );
}

#[test]
fn a_larger_datagram_raises_the_minimum() {
    let mut flow = flow();
    flow.controller.on_datagram_size(9000);
    assert_eq!(flow.window(), 18_000);
    flow.fill();
    flow.lose(10, Severity::Congestion);
    assert_eq!(flow.window(), 18_000);
}
