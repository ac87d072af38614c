use std::time::Instant;

use super::*;
use crate::owners::congestion::{RoundTrip, Usage, testing};

const SIZE: u64 = 1200;

/// Rounds of slow start with a round trip each.
#[derive(Default)]
struct Rounds {
    hystart: HyStart,
    delivered: u64,
}

impl Rounds {
    fn ack(&mut self, prior_delivered: u64, rtt: u64) -> Growth {
        self.delivered += 4 * SIZE;
        let rtt = Duration::from_millis(rtt);
        let mut acked = testing::acked(Instant::now(), 4 * SIZE, Usage::Full);
        acked.rtt = RoundTrip {
            sample: Some(rtt),
            smoothed: rtt,
            min: rtt,
        };
        acked.rate.prior_delivered = prior_delivered;
        acked.delivered = self.delivered;
        self.hystart.on_acked(&acked)
    }

    /// Returns the last answer of a round with this many samples.
    fn round_of(&mut self, samples: u32, rtt: u64) -> Growth {
        let prior_delivered = self.delivered;
        let mut growth = Growth::By(0);
        for _ in 0..samples {
            growth = self.ack(prior_delivered, rtt);
        }
        growth
    }

    fn round(&mut self, rtt: u64) -> Growth {
        self.round_of(N_RTT_SAMPLE, rtt)
    }
}

const STANDARD: Growth = Growth::By(4 * SIZE);
const CONSERVATIVE: Growth = Growth::By(SIZE);

#[test]
fn a_round_trip_that_stays_lets_slow_start_go_on() {
    let mut rounds = Rounds::default();
    for _ in 0..50 {
        assert_eq!(rounds.round(100), STANDARD);
    }
}

#[test]
fn growth_by_an_eighth_makes_slow_start_conservative() {
    let mut rounds = Rounds::default();
    rounds.round(80);
    assert_eq!(rounds.round(89), STANDARD);
    let mut rounds = Rounds::default();
    rounds.round(80);
    assert_eq!(rounds.round(90), CONSERVATIVE);
}

#[test]
fn short_round_trips_must_grow_by_four_milliseconds() {
    let mut rounds = Rounds::default();
    rounds.round(1);
    assert_eq!(rounds.round(4), STANDARD);
    let mut rounds = Rounds::default();
    rounds.round(1);
    assert_eq!(rounds.round(5), CONSERVATIVE);
}

#[test]
fn long_round_trips_need_grow_by_sixteen_milliseconds_only() {
    let mut rounds = Rounds::default();
    rounds.round(500);
    assert_eq!(rounds.round(515), STANDARD);
    let mut rounds = Rounds::default();
    rounds.round(500);
    assert_eq!(rounds.round(516), CONSERVATIVE);
}

#[test]
fn fewer_than_eight_samples_say_nothing() {
    let mut rounds = Rounds::default();
    rounds.round(100);
    assert_eq!(rounds.round_of(N_RTT_SAMPLE - 1, 200), STANDARD);
}

#[test]
fn the_smallest_sample_of_a_round_counts() {
    let mut rounds = Rounds::default();
    rounds.round(100);
    let prior_delivered = rounds.delivered;
    rounds.ack(prior_delivered, 100);
    for _ in 0..20 {
        assert_eq!(rounds.ack(prior_delivered, 300), STANDARD);
    }
}

#[test]
fn slow_start_ends_after_five_conservative_rounds_the_first_a_part() {
    let mut rounds = Rounds::default();
    rounds.round(100);
    assert_eq!(rounds.round(120), CONSERVATIVE);
    for _ in 0..4 {
        assert_eq!(rounds.round(120), CONSERVATIVE);
    }
    assert_eq!(rounds.ack(rounds.delivered, 120), Growth::Over);
}

#[test]
fn slow_start_goes_on_when_the_round_trip_falls_again() {
    let mut rounds = Rounds::default();
    rounds.round(100);
    assert_eq!(rounds.round(120), CONSERVATIVE);
    assert_eq!(rounds.round(119), STANDARD);
    // And may become conservative again, with all its rounds.
    assert_eq!(rounds.round(140), CONSERVATIVE);
    for _ in 0..4 {
        assert_eq!(rounds.round(140), CONSERVATIVE);
    }
}

#[test]
fn an_acknowledgement_without_a_sample_is_none() {
    let mut rounds = Rounds::default();
    rounds.round(100);
    let mut acked = testing::acked(Instant::now(), 4 * SIZE, Usage::Full);
    acked.rtt.sample = None;
    acked.rate.prior_delivered = rounds.delivered;
    acked.delivered = rounds.delivered + 4 * SIZE;
    for _ in 0..20 {
        assert_eq!(rounds.hystart.on_acked(&acked), STANDARD);
    }
    assert_eq!(rounds.hystart.samples, 0);
}
