use std::time::Duration;

use crate::owners::congestion::{Controller, NewReno, Phase, Resume, Severity, testing::Flow};

const SIZE: u64 = 1200;

/// Twenty packets in flight, of which the first `lost` are lost: those after them arrive one by
/// one. The first two ACKs do not reveal the loss yet, so two more packets are sent (RFC 9937 §7
/// has the same for TCP). The numbers of packets that each ACK from the third on allows follow.
fn recovery(lost: usize) -> (Flow<NewReno>, Vec<usize>) {
    let mut flow = Flow::new(NewReno::new(1200));
    flow.controller.on_resume(&Resume {
        now: flow.now,
        window: 20 * SIZE,
        slow_start_threshold: Some(20 * SIZE),
    });
    assert_eq!(flow.fill(), 20);
    flow.now += flow.rtt;
    // Nobody knows yet that the packets at the front are lost.
    for _ in 0..2 {
        flow.ack_after(lost, 1);
        assert_eq!(flow.fill(), 1);
    }
    flow.lose_and_ack(lost, 1);
    assert_eq!(flow.controller.phase(), Phase::Recovery);
    flow.now += Duration::from_millis(1);
    let mut sent = vec![flow.fill()];
    for _ in 0..21 - lost - 2 {
        flow.ack(1);
        sent.push(flow.fill());
    }
    (flow, sent)
}

#[test]
fn one_loss_lets_one_packet_leave_for_two_that_arrive() {
    let (flow, sent) = recovery(1);
    let mut expected = [1, 0].repeat(8);
    // The flight is down to the target: from now on one packet is sent for each that arrives.
    expected.extend([0, 1, 1]);
    assert_eq!(sent, expected);
    assert_eq!(flow.in_flight(), 10, "what is in flight came down to half");
    assert_eq!(flow.controller.phase(), Phase::Recovery);
}

#[test]
fn many_losses_let_a_packet_leave_for_each_that_arrives_and_one_more_when_no_loss_follows() {
    let (flow, sent) = recovery(15);
    assert_eq!(sent, [1, 2, 2, 2, 2]);
    assert_eq!(flow.in_flight(), 9, "less than half: no burst makes up");
}

#[test]
fn recovery_ends_with_half_the_window_when_a_packet_sent_in_it_arrives() {
    let (mut flow, _) = recovery(15);
    flow.ack(1);
    assert_eq!(flow.controller.phase(), Phase::Avoidance);
    assert_eq!(flow.window(), 10 * SIZE);
}

#[test]
fn more_losses_do_not_let_more_leave_than_arrives() {
    let mut flow = Flow::new(NewReno::new(1200));
    flow.fill();
    flow.now += flow.rtt;
    flow.lose_and_ack(3, 1);
    flow.now += Duration::from_millis(1);
    assert_eq!(flow.fill(), 1);
    // Six and the new one are in flight: two are lost, one arrives, one is sent.
    flow.lose_and_ack(2, 1);
    assert_eq!(flow.fill(), 1);
}

#[test]
fn when_all_is_lost_two_datagrams_may_leave() {
    let mut flow = Flow::new(NewReno::new(1200));
    flow.fill();
    flow.now += flow.rtt;
    flow.lose(10, Severity::Congestion);
    assert_eq!(flow.bytes_in_flight, 0);
    assert_eq!(flow.fill(), 2);
    flow.now += Duration::from_millis(1);
    flow.lose(2, Severity::Congestion);
    assert_eq!(flow.fill(), 2, "again and again");
}

#[test]
fn a_loss_found_by_the_timer_lets_its_retransmission_leave() {
    let mut flow = Flow::new(NewReno::new(1200));
    flow.fill();
    flow.now += flow.rtt;
    flow.lose(1, Severity::Congestion);
    assert_eq!(flow.fill(), 1);
    flow.lose(1, Severity::Congestion);
    assert_eq!(flow.fill(), 0, "nothing arrived for it");
    flow.ack(2);
    assert_eq!(flow.fill(), 0);
    flow.ack(1);
    assert_eq!(flow.fill(), 1);
}

#[test]
fn a_mark_brings_the_flight_down_as_a_loss_does() {
    let mut flow = Flow::new(NewReno::new(1200));
    flow.fill();
    flow.ack(1);
    flow.fill();
    // Twelve datagrams are in flight; a tenth less than ten remain in the end.
    let before = flow.in_flight();
    flow.mark();
    flow.now += Duration::from_millis(1);
    let mut sent = flow.fill();
    for _ in 0..before {
        flow.ack(1);
        sent += flow.fill();
    }
    let target = flow.controller.slow_start_threshold().unwrap();
    assert_eq!(flow.bytes_in_flight, target / SIZE * SIZE);
    assert!(sent < before);
}

#[test]
fn what_is_sent_beyond_the_flight_at_the_start_does_not_multiply() {
    let mut flow = Flow::new(NewReno::new(1200));
    flow.controller.on_resume(&Resume {
        now: flow.now,
        window: 2 * SIZE,
        slow_start_threshold: None,
    });
    // Nothing is in flight when the mark is known; then two packets are sent, and two probes.
    flow.mark();
    flow.fill();
    flow.send();
    flow.send();
    flow.ack(1);
    assert_eq!(flow.window(), 3 * SIZE, "what is in flight still");
}
