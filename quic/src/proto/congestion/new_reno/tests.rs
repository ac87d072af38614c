use std::time::Duration;

use super::*;
use crate::proto::congestion::testing;

const SIZE: u64 = 1200;

fn acked(reno: &mut NewReno, time_sent: Instant, bytes: u64, usage: Usage) {
    reno.on_acked(&testing::acked(time_sent, bytes, usage));
}

fn lost(reno: &mut NewReno, now: Instant, time_sent: Instant, severity: Severity) {
    testing::lost(reno, now, time_sent, SIZE, severity);
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
    let mut reno = NewReno::new(1200);
    for _ in 0..10 {
        acked(&mut reno, Instant::now(), SIZE, Usage::Full);
    }
    assert_eq!(reno.window(), 24_000);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut reno = NewReno::new(1200);
    let now = Instant::now();
    acked(&mut reno, now, SIZE, Usage::Underused);
    assert_eq!(reno.window(), 12_000);
    lost(&mut reno, now, now, Severity::Congestion);
    for _ in 0..100 {
        acked(
            &mut reno,
            now + Duration::from_secs(1),
            SIZE,
            Usage::Underused,
        );
    }
    assert_eq!(reno.window(), 6_000);
}

#[test]
fn a_loss_halves_the_window_once_per_round_trip() {
    let mut reno = NewReno::new(1200);
    let start = Instant::now();
    let later = start + Duration::from_millis(100);
    lost(&mut reno, later, start, Severity::Congestion);
    assert_eq!(reno.window(), 6_000);
    lost(
        &mut reno,
        later + Duration::from_millis(1),
        later,
        Severity::Congestion,
    );
    assert_eq!(reno.window(), 6_000, "sent before the loss was known");
    acked(&mut reno, later, SIZE, Usage::Full);
    assert_eq!(reno.window(), 6_000, "no growth in recovery");
    let next = later + Duration::from_millis(1);
    lost(&mut reno, next, next, Severity::Congestion);
    assert_eq!(reno.window(), 3_000);
}

#[test]
fn the_window_never_falls_below_two_datagrams() {
    let mut reno = NewReno::new(1200);
    let mut now = Instant::now();
    for _ in 0..20 {
        now += Duration::from_secs(1);
        lost(&mut reno, now, now, Severity::Congestion);
    }
    assert_eq!(reno.window(), 2_400);
}

#[test]
fn congestion_avoidance_adds_one_datagram_per_window() {
    let mut reno = NewReno::new(1200);
    let now = Instant::now();
    lost(&mut reno, now, now, Severity::Congestion);
    let later = now + Duration::from_millis(1);
    for _ in 0..4 {
        acked(&mut reno, later, SIZE, Usage::Full);
    }
    assert_eq!(reno.window(), 6_000);
    acked(&mut reno, later, SIZE, Usage::Full);
    assert_eq!(reno.window(), 7_200);
    for _ in 0..6 {
        acked(&mut reno, later, SIZE, Usage::Full);
    }
    assert_eq!(reno.window(), 8_400);
}

#[test]
fn persistent_congestion_starts_over_in_slow_start() {
    let mut reno = NewReno::new(1200);
    let now = Instant::now();
    lost(&mut reno, now, now, Severity::PersistentCongestion);
    assert_eq!(reno.window(), 2_400);
    acked(&mut reno, now, 2_400, Usage::Full);
    assert_eq!(reno.window(), 4_800, "slow start up to half the old window");
    acked(&mut reno, now, 2_400, Usage::Full);
    acked(&mut reno, now, 2_400, Usage::Full);
    assert_eq!(reno.window(), 7_200, "then congestion avoidance");
}

#[test]
fn a_larger_datagram_raises_the_minimum() {
    let mut reno = NewReno::new(1200);
    reno.on_datagram_size(9000);
    assert_eq!(reno.window(), 18_000);
}
