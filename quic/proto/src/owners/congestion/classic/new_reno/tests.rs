use std::time::Duration;

use super::*;
use crate::owners::congestion::{Controller, Resume, Severity, testing::Flow};

const SIZE: u64 = 1200;

/// Creates a flow in congestion avoidance with a window of ten datagrams.
fn avoiding() -> Flow<NewReno> {
    let mut flow = Flow::new(NewReno::new(1200));
    flow.controller.on_resume(&Resume {
        now: flow.now,
        window: 10 * SIZE,
        slow_start_threshold: Some(10 * SIZE),
    });
    flow
}

/// Proves: rfc9002 7.3.3 avoidance-is-additive
#[test]
fn congestion_avoidance_adds_one_datagram_per_window() {
    let mut flow = avoiding();
    flow.fill();
    flow.ack(9);
    assert_eq!(flow.window(), 10 * SIZE);
    flow.ack(1);
    assert_eq!(flow.window(), 11 * SIZE);
    flow.fill();
    flow.ack(11);
    assert_eq!(flow.window(), 12 * SIZE);
}

/// Proves: rfc9002 7.3.2 recovery-halves
#[test]
fn a_loss_halves_the_window() {
    let mut flow = avoiding();
    flow.fill();
    flow.lose(1, Severity::Congestion);
    assert_eq!(flow.controller.slow_start_threshold(), Some(5 * SIZE));
}

#[test]
fn a_mark_costs_a_fifth_of_the_window() {
    let mut flow = avoiding();
    flow.fill();
    flow.mark();
    assert_eq!(flow.controller.slow_start_threshold(), Some(8 * SIZE));
}

#[test]
fn what_was_acknowledged_before_a_loss_does_not_count_after_it() {
    let mut flow = avoiding();
    flow.fill();
    flow.ack(9);
    flow.lose(1, Severity::Congestion);
    flow.now += Duration::from_millis(1);
    flow.send();
    flow.ack(1);
    assert_eq!(flow.window(), 5 * SIZE);
}

#[test]
fn more_than_a_window_at_once_counts_as_one() {
    let mut flow = avoiding();
    for _ in 0..50 {
        flow.send();
    }
    flow.ack(50);
    flow.send();
    flow.ack(1);
    assert_eq!(flow.window(), 11 * SIZE);
}
