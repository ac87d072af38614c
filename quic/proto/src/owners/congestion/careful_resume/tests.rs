use super::*;
use crate::owners::congestion::{NewReno, testing};

const SIZE: u64 = 1200;
const RTT: Duration = Duration::from_millis(100);

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

const SAVED: Observed = Observed {
    rtt: RTT,
    capacity: 400 * SIZE,
};

/// A sender that always has more to send.
struct Path {
    now: Instant,
    controller: Resuming,
    in_flight: u64,
    delivered: u64,
    rtt: Duration,
    usage: Usage,
}

impl Path {
    fn new() -> Self {
        let now = Instant::now();
        let mut controller = Resuming::new(now, Box::new(NewReno::new(1200)), 1200);
        controller.enable(u64::MAX);
        Self {
            now,
            controller,
            in_flight: 0,
            delivered: 0,
            rtt: RTT,
            usage: Usage::Full,
        }
    }

    /// Creates a path with saved state and the initial window sent.
    fn resumed(saved: Observed) -> Self {
        let mut path = Self::new();
        path.controller.resume(saved);
        assert_eq!(path.stage(), Stage::Reconnaissance);
        path.send(10);
        path
    }

    /// Creates a path one round trip later: the initial window is acknowledged, and the jump has
    /// begun.
    fn jumped() -> Self {
        let mut path = Self::resumed(SAVED);
        path.ack_round(10);
        assert_eq!(path.stage(), Stage::Unvalidated);
        path
    }

    /// Creates a path whose jump is sent completely.
    fn validating() -> Self {
        let mut path = Self::jumped();
        path.pass(ms(50));
        path.send(200);
        assert_eq!(path.stage(), Stage::Validating);
        path
    }

    fn stage(&self) -> Stage {
        self.controller.stage()
    }

    fn window(&self) -> u64 {
        self.controller.window() / SIZE
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    fn send(&mut self, packets: u64) {
        for _ in 0..packets {
            self.in_flight += SIZE;
            self.controller.on_sent(&Sent {
                now: self.now,
                bytes: SIZE,
                bytes_in_flight: self.in_flight,
                app_limited: false,
            });
        }
    }

    fn ack(&mut self, sent: Instant, packets: u64) {
        let bytes = packets * SIZE;
        let prior_in_flight = self.in_flight;
        self.in_flight -= bytes;
        self.delivered += bytes;
        let mut acked = testing::acked(sent, bytes, self.usage);
        acked.now = self.now;
        acked.prior_in_flight = prior_in_flight;
        acked.bytes_in_flight = self.in_flight;
        acked.delivered = self.delivered;
        acked.rtt.smoothed = self.rtt;
        acked.rtt.min = self.rtt;
        self.controller.on_acked(&acked);
    }

    /// Acknowledges the packets just sent, a round trip later.
    fn ack_round(&mut self, packets: u64) {
        let sent = self.now;
        self.pass(self.rtt);
        self.ack(sent, packets);
    }

    fn lose(&mut self, sent: Instant, packets: u64, severity: Severity) {
        self.in_flight -= packets * SIZE;
        testing::lost(
            &mut self.controller,
            self.now,
            sent,
            packets * SIZE,
            severity,
        );
    }

    fn mark(&mut self, sent: Instant) {
        self.controller.on_marked(&Marked {
            now: self.now,
            marks: 1,
            newest_sent: sent,
            bytes_in_flight: self.in_flight,
        });
    }
}

#[test]
fn nothing_is_resumed_where_it_is_not_enabled() {
    let now = Instant::now();
    let mut path = Path::new();
    path.controller = Resuming::new(now, Box::new(NewReno::new(1200)), 1200);
    path.controller.resume(SAVED);
    assert_eq!(path.stage(), Stage::Normal);
    for _ in 0..10 {
        path.send(path.window());
        path.ack_round(path.in_flight / SIZE);
    }
    assert_eq!(path.controller.observed(), None);
}

#[test]
fn the_initial_window_is_sent_before_anything_is_believed() {
    let path = Path::resumed(SAVED);
    assert_eq!(path.window(), 10);
    assert_eq!(path.controller.pacing_rate(), None);
}

#[test]
fn an_acknowledged_initial_window_leads_to_half_the_capacity() {
    let path = Path::jumped();
    assert_eq!(path.window(), 200);
    assert_eq!(
        path.controller.pacing_rate(),
        Some(200 * SIZE * 10),
        "spread over a round trip"
    );
}

#[test]
fn a_part_of_the_initial_window_does_not() {
    let mut path = Path::resumed(SAVED);
    path.ack_round(9);
    assert_eq!(path.stage(), Stage::Reconnaissance);
    assert_eq!(path.window(), 19, "slow start meanwhile");
    path.send(10);
    path.ack(path.now, 1);
    assert_eq!(path.stage(), Stage::Unvalidated);
}

#[test]
fn a_sender_with_too_little_to_send_waits_until_it_has_more() {
    let mut path = Path::resumed(SAVED);
    path.usage = Usage::Underused;
    path.ack_round(10);
    for _ in 0..5 {
        path.send(5);
        path.ack_round(5);
        assert_eq!(path.stage(), Stage::Reconnaissance);
    }
    path.usage = Usage::Full;
    path.send(10);
    path.ack_round(10);
    assert_eq!(path.stage(), Stage::Unvalidated);
}

#[test]
fn congestion_before_the_jump_forbids_it() {
    let mut path = Path::resumed(SAVED);
    let sent = path.now;
    path.pass(RTT);
    path.lose(sent, 1, Severity::Congestion);
    assert_eq!(path.stage(), Stage::Normal);
    path.ack(sent, 9);
    path.controller.resume(SAVED);
    assert_eq!(path.stage(), Stage::Normal, "for good");

    let mut path = Path::resumed(SAVED);
    path.mark(path.now);
    assert_eq!(path.stage(), Stage::Normal);
}

#[test]
fn another_round_trip_is_another_path() {
    for (rtt, stage) in [
        (ms(50), Stage::Normal),
        (ms(51), Stage::Unvalidated),
        (ms(999), Stage::Unvalidated),
        (ms(1000), Stage::Normal),
    ] {
        let mut path = Path::resumed(SAVED);
        path.rtt = rtt;
        path.ack_round(10);
        assert_eq!(path.stage(), stage, "{rtt:?}");
    }
}

#[test]
fn a_capacity_that_is_reached_already_is_not_jumped_to() {
    let mut path = Path::resumed(Observed {
        capacity: 40 * SIZE,
        ..SAVED
    });
    path.ack_round(10);
    assert_eq!(path.stage(), Stage::Normal);
    assert_eq!(path.window(), 20);
}

#[test]
fn a_jump_has_a_limit() {
    let mut path = Path::new();
    path.controller.enable(50 * SIZE);
    path.controller.resume(SAVED);
    path.send(10);
    path.ack_round(10);
    assert_eq!(path.window(), 50);
}

#[test]
fn the_jump_ends_when_it_is_sent_whole() {
    let mut path = Path::jumped();
    path.send(199);
    assert_eq!(path.stage(), Stage::Unvalidated);
    path.send(1);
    assert_eq!(path.stage(), Stage::Validating);
    assert_eq!(path.window(), 200);
    assert_eq!(path.controller.phase(), Phase::SlowStart);
}

#[test]
fn the_jump_ends_with_its_first_acknowledgement() {
    let mut path = Path::jumped();
    let sent = path.now;
    path.pass(ms(60));
    path.send(100);
    path.ack(sent, 1);
    assert_eq!(path.stage(), Stage::Validating);
    assert_eq!(path.window(), 99, "what is in flight");
}

#[test]
fn the_jump_ends_after_a_round_trip() {
    let mut path = Path::jumped();
    path.send(50);
    path.pass(RTT);
    path.send(1);
    assert_eq!(path.stage(), Stage::Unvalidated);
    path.pass(ms(1));
    path.send(1);
    assert_eq!(path.stage(), Stage::Validating);
    assert_eq!(path.window(), 52);
}

#[test]
fn a_jump_that_was_not_used_validates_nothing() {
    let mut path = Path::jumped();
    path.send(2);
    path.ack_round(2);
    assert_eq!(path.stage(), Stage::Normal);
    assert_eq!(path.window(), 22, "as slow start left it");
}

#[test]
fn packets_of_before_the_jump_add_to_what_got_through() {
    let mut path = Path::resumed(SAVED);
    let first = path.now;
    path.pass(ms(90));
    path.ack(first, 5);
    path.send(10);
    let second = path.now;
    path.pass(ms(10));
    path.ack(first, 5);
    assert_eq!(path.stage(), Stage::Unvalidated);
    path.pass(ms(5));
    path.send(100);
    path.ack(second, 10);
    path.lose(path.now, 1, Severity::Congestion);
    assert_eq!(path.stage(), Stage::SafeRetreat);
    assert_eq!(path.window(), 10, "half of 10 before and 10 since");
}

#[test]
fn slow_start_goes_on_from_the_jump() {
    let mut path = Path::validating();
    let sent = path.now;
    path.pass(ms(60));
    path.ack(path.now.checked_sub(ms(80)).unwrap(), 100);
    assert_eq!(path.stage(), Stage::Validating);
    assert_eq!(path.window(), 300);
    path.ack(sent, 100);
    assert_eq!(path.stage(), Stage::Normal);
    assert_eq!(path.window(), 400);
    assert_eq!(path.controller.phase(), Phase::SlowStart);
}

#[test]
fn a_loss_leads_to_half_of_what_got_through() {
    let mut path = Path::validating();
    let sent = path.now;
    path.pass(ms(100));
    path.ack(sent.checked_sub(ms(10)).unwrap(), 40);
    path.lose(sent.checked_sub(ms(10)).unwrap(), 10, Severity::Congestion);
    assert_eq!(path.stage(), Stage::SafeRetreat);
    assert_eq!(path.window(), 20);
    assert_eq!(path.controller.phase(), Phase::Recovery);
    assert_eq!(path.controller.pacing_rate(), Some(20 * SIZE * 10));
    path.ack(sent.checked_sub(ms(5)).unwrap(), 30);
    path.lose(sent.checked_sub(ms(5)).unwrap(), 70, Severity::Congestion);
    assert_eq!(path.window(), 20, "neither more nor less meanwhile");
    path.ack(sent, 10);
    assert_eq!(path.stage(), Stage::Normal);
    assert_eq!(path.window(), 20);
    assert_eq!(
        path.controller.slow_start_threshold(),
        Some(40 * SIZE),
        "half of 80 that got through"
    );
}

#[test]
fn a_mark_leads_to_a_retreat_too() {
    let mut path = Path::jumped();
    path.send(20);
    path.mark(path.now.checked_sub(RTT).unwrap());
    assert_eq!(path.stage(), Stage::SafeRetreat);
    assert_eq!(path.window(), 2, "nothing got through");
}

#[test]
fn a_retreat_that_is_congested_too_goes_further() {
    let mut path = Path::validating();
    let sent = path.now;
    path.pass(ms(100));
    path.ack(sent.checked_sub(ms(10)).unwrap(), 40);
    path.lose(sent, 160, Severity::Congestion);
    path.pass(ms(1));
    let retransmitted = path.now;
    path.send(20);
    path.pass(RTT);
    path.lose(retransmitted, 1, Severity::Congestion);
    assert_eq!(path.stage(), Stage::SafeRetreat);
    assert_eq!(path.window(), 10);
}

#[test]
fn a_retreat_ends_with_something_newer_where_the_last_is_lost() {
    let mut path = Path::validating();
    let sent = path.now;
    path.pass(ms(100));
    path.ack(sent.checked_sub(ms(10)).unwrap(), 40);
    path.lose(sent, 160, Severity::Congestion);
    path.pass(ms(1));
    path.send(1);
    path.ack_round(1);
    assert_eq!(path.stage(), Stage::Normal);
    assert_eq!(path.window(), 20);
}

#[test]
fn persistent_congestion_ends_it() {
    for mut path in [Path::resumed(SAVED), Path::jumped(), Path::validating()] {
        let sent = path.now;
        path.send(1);
        path.pass(ms(2000));
        path.lose(sent, 1, Severity::PersistentCongestion);
        assert_eq!(path.stage(), Stage::Normal);
        assert_eq!(path.window(), 2);
    }
}

#[test]
fn a_needless_retreat_is_not_taken_back() {
    let mut path = Path::validating();
    path.lose(path.now, 1, Severity::Congestion);
    let window = path.window();
    path.controller.on_spurious(&Spurious {
        now: path.now,
        bytes_in_flight: path.in_flight,
    });
    assert_eq!((path.stage(), path.window()), (Stage::SafeRetreat, window));
}

#[test]
fn a_busy_path_is_observed_after_some_round_trips() {
    let mut path = Path::new();
    for round in 0..8 {
        assert_eq!(
            path.controller.observed().is_some(),
            round >= 5,
            "round {round}"
        );
        path.send(100);
        path.ack_round(100);
    }
    let observed = path.controller.observed().unwrap();
    assert_eq!(observed.rtt, RTT);
    let packets = observed.capacity / SIZE;
    assert!((90..=100).contains(&packets), "{packets}");
}

#[test]
fn what_stands_in_a_queue_is_no_capacity() {
    let mut path = Path::new();
    for _ in 0..10 {
        path.send(300);
        let sent = path.now;
        path.pass(3 * RTT);
        path.ack(sent, 300);
    }
    let packets = path.controller.observed().unwrap().capacity / SIZE;
    assert!((90..=100).contains(&packets), "{packets}");
}

#[test]
fn quiet_times_do_not_lower_the_capacity() {
    let mut path = Path::new();
    for _ in 0..8 {
        path.send(100);
        path.ack_round(100);
    }
    let before = path.controller.observed();
    path.usage = Usage::Underused;
    for _ in 0..20 {
        path.send(1);
        path.ack_round(1);
    }
    assert_eq!(path.controller.observed(), before);
}

#[test]
fn a_small_capacity_is_not_worth_while() {
    let mut path = Path::new();
    for _ in 0..10 {
        path.send(39);
        path.ack_round(39);
    }
    assert_eq!(path.controller.observed(), None);
}

#[test]
fn a_jump_is_no_observation() {
    assert_eq!(Path::validating().controller.observed(), None);
}
