use super::*;
use crate::owners::congestion::{Controller, Phase, Resume, Severity, Usage, testing::Flow};

const SIZE: u64 = 1200;

/// Creates a flow in congestion avoidance after a loss at a window of `datagrams`.
fn reduced(datagrams: u64, rtt: Duration) -> Flow<Cubic> {
    let mut flow = Flow::new(Cubic::new(1200));
    flow.rtt = rtt;
    flow.controller.on_resume(&Resume {
        now: flow.now,
        window: datagrams * SIZE,
        slow_start_threshold: Some(datagrams * SIZE),
    });
    flow.recover();
    assert_eq!(flow.controller.phase(), Phase::Avoidance);
    flow
}

/// RFC 9438 §4.2, in segments.
fn w_cubic(t: f64, w_max: f64, start: f64) -> f64 {
    let k = ((w_max - start) / 0.4).cbrt();
    0.4 * (t - k).powi(3) + w_max
}

#[test]
fn a_loss_leaves_seven_tenths() {
    let flow = reduced(100, Duration::from_millis(300));
    assert_eq!(flow.controller.slow_start_threshold(), Some(70 * SIZE));
    assert!(
        (flow.datagrams() - 70.0).abs() < 0.5,
        "{}",
        flow.datagrams()
    );
}

#[test]
fn the_window_follows_the_curve_up_to_the_plateau_and_beyond() {
    let mut flow = reduced(100, Duration::from_millis(300));
    let start = flow.now;
    for at in [1.2, 2.4, 3.6, 4.8, 6.0, 7.5, 9.0, 12.0] {
        while (flow.now - start).as_secs_f64() < at - 0.01 {
            flow.round();
        }
        let t = (flow.now - start).as_secs_f64();
        let (now, next) = (w_cubic(t, 100.0, 70.0), w_cubic(t + 0.3, 100.0, 70.0));
        let window = flow.datagrams();
        assert!(
            (now * 0.99..next * 1.01).contains(&window),
            "after {at} s {window}, not between {now} and {next}"
        );
    }
}

#[test]
fn growth_is_concave_below_the_plateau_and_convex_above() {
    let mut flow = reduced(100, Duration::from_millis(300));
    let mut windows = vec![flow.datagrams()];
    for _ in 0..40 {
        flow.round();
        windows.push(flow.datagrams());
    }
    let growth: Vec<_> = windows.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // K is 4.2 s: fourteen rounds.
    assert!(growth[..12].is_sorted_by(|a, b| a >= b), "{growth:?}");
    assert!(growth[16..].is_sorted(), "{growth:?}");
}

#[test]
fn short_round_trips_grow_as_reno_would_on_average() {
    let mut flow = reduced(100, Duration::from_millis(10));
    for _ in 0..40 {
        flow.round();
    }
    let expected = 70.0 + 40.0 * ALPHA;
    assert!(
        (flow.datagrams() - expected).abs() < 1.0,
        "{}",
        flow.datagrams()
    );
    // And as Reno does once the window is as large as before: one datagram per round trip.
    while flow.datagrams() < 100.0 {
        flow.round();
    }
    let before = flow.datagrams();
    for _ in 0..10 {
        flow.round();
    }
    let growth = flow.datagrams() - before;
    assert!((growth - 10.0).abs() < 0.5, "{growth}");
}

#[test]
fn a_flow_that_met_congestion_earlier_than_last_time_makes_room() {
    let mut curve = Curve::default();
    assert_eq!(curve.on_congestion(100_000, Cause::Loss), 70_000);
    assert_eq!(curve.w_max, Some(100_000.0));
    assert_eq!(curve.on_congestion(80_000, Cause::Loss), 56_000);
    assert_eq!(curve.w_max, Some(68_000.0));
    assert_eq!(curve.on_congestion(90_000, Cause::Loss), 63_000);
    assert_eq!(curve.w_max, Some(90_000.0));
}

#[test]
fn a_mark_leaves_more_than_a_loss() {
    let mut curve = Curve::default();
    assert_eq!(curve.on_congestion(100_000, Cause::Mark), 85_000);
    assert_eq!(curve.on_congestion(80_000, Cause::Mark), 68_000);
    assert_eq!(curve.w_max, Some(74_000.0));
}

#[test]
fn time_in_which_the_window_is_not_used_does_not_count() {
    let mut busy = reduced(100, Duration::from_millis(300));
    for _ in 0..5 {
        busy.round();
    }
    let mut lazy = busy.clone();
    // A minute in which the application occasionally sends a little.
    lazy.usage = Usage::Underused;
    for _ in 0..200 {
        lazy.send();
        lazy.now += lazy.rtt;
        lazy.ack(1);
    }
    assert_eq!(lazy.window(), busy.window());
    lazy.usage = Usage::Full;
    for _ in 0..10 {
        busy.round();
        lazy.round();
    }
    let difference = (busy.datagrams() - lazy.datagrams()).abs();
    assert!(difference < 0.01, "{difference}");
}

#[test]
fn time_in_which_nothing_is_in_flight_does_not_count() {
    let mut busy = reduced(100, Duration::from_millis(300));
    for _ in 0..5 {
        busy.round();
    }
    let mut idle = busy.clone();
    idle.now += Duration::from_secs(60);
    for _ in 0..10 {
        busy.round();
        idle.round();
    }
    let difference = (busy.datagrams() - idle.datagrams()).abs();
    assert!(difference < 0.01, "{difference}");
}

#[test]
fn the_window_grows_by_half_in_a_round_trip_at_most() {
    let mut flow = reduced(100, Duration::from_secs(10));
    for _ in 0..20 {
        let before = flow.datagrams();
        flow.round();
        assert!(flow.datagrams() <= before * 1.5 + 0.01);
    }
    assert!(flow.datagrams() > 1000.0);
}

#[test]
fn one_acknowledgement_of_a_window_grows_as_many_do() {
    let mut many = reduced(100, Duration::from_millis(300));
    let mut one = many.clone();
    for _ in 0..20 {
        many.round();
        one.fill();
        one.now += one.rtt;
        one.ack(one.in_flight());
    }
    let difference = (many.datagrams() / one.datagrams() - 1.0).abs();
    assert!(difference < 0.02, "{difference}");
}

#[test]
fn small_steps_of_a_large_window_are_not_rounded_away() {
    let mut flow = reduced(100_000, Duration::from_millis(100));
    // Just before the plateau an acknowledgement is worth less than a byte.
    for _ in 0..410 {
        flow.round();
    }
    let before = flow.window();
    for _ in 0..10 {
        flow.fill();
        flow.now += flow.rtt;
        while flow.in_flight() > 0 {
            flow.ack(1);
        }
    }
    assert!(flow.window() > before);
}

#[test]
fn after_persistent_congestion_the_plateau_is_where_slow_start_ends() {
    let mut flow = reduced(100, Duration::from_millis(300));
    flow.round();
    flow.fill();
    flow.now += Duration::from_secs(3);
    flow.lose(flow.in_flight(), Severity::PersistentCongestion);
    assert_eq!(flow.window(), 2 * SIZE);
    assert_eq!(flow.controller.phase(), Phase::SlowStart);
    while flow.controller.phase() == Phase::SlowStart {
        flow.round();
    }
    let start = flow.now;
    let plateau = flow.controller.slow_start_threshold().unwrap() as f64 / SIZE as f64;
    for _ in 0..20 {
        flow.round();
    }
    let t = (flow.now - start).as_secs_f64();
    let now = w_cubic(t, plateau, plateau);
    let next = w_cubic(t + 0.3, plateau, plateau);
    let window = flow.datagrams();
    assert!(
        (now * 0.99..next * 1.01).contains(&window),
        "{window}, not between {now} and {next}"
    );
}

#[test]
fn a_larger_datagram_does_not_make_the_window_jump() {
    let mut flow = reduced(100, Duration::from_millis(300));
    flow.round();
    let before = flow.window();
    flow.controller.on_datagram_size(9000);
    assert_eq!(flow.window(), before);
    flow.round();
    assert!(flow.window() < before + before / 10);
}
