use super::*;

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn sampled(samples: &[(u64, u64)]) -> Rtt {
    let mut rtt = Rtt::new(ms(333));
    for &(sample, delay) in samples {
        rtt.on_sample(Instant::now(), ms(sample), ms(delay));
    }
    rtt
}

#[test]
fn before_a_sample_the_guess_gives_the_timeout() {
    let rtt = Rtt::new(ms(333));
    assert_eq!(rtt.first_sample(), None);
    assert_eq!(rtt.pto(), ms(999));
    assert_eq!(Rtt::new(Duration::MAX).smoothed(), Duration::from_secs(60));
}

/// Proves: rfc9002 5.2 min-rtt-is-the-smallest
#[test]
fn the_first_sample_replaces_the_guess_and_ignores_the_delay() {
    let rtt = sampled(&[(100, 20)]);
    assert_eq!(
        (rtt.latest(), rtt.smoothed(), rtt.variance(), rtt.min()),
        (ms(100), ms(100), ms(50), ms(100))
    );
}

#[test]
fn later_samples_are_averaged_without_the_peers_delay() {
    let rtt = sampled(&[(100, 0), (200, 20)]);
    // 7/8 * 100 + 1/8 * 180; 3/4 * 50 + 1/4 * |100 - 180|
    assert_eq!(rtt.smoothed(), ms(110));
    assert_eq!(rtt.variance(), Duration::from_micros(57_500));
    assert_eq!(rtt.min(), ms(100));
}

/// Proves: rfc9002 5.3 ack-delay-does-not-undercut
#[test]
fn a_delay_that_would_undercut_the_minimum_is_not_believed() {
    let rtt = sampled(&[(100, 0), (110, 20)]);
    assert_eq!(rtt.smoothed(), Duration::from_micros(101_250));
    let rtt = sampled(&[(100, 0), (110, u64::MAX / 1_000_000)]);
    assert_eq!(rtt.smoothed(), Duration::from_micros(101_250));
}

/// Proves: rfc9002 5.2 min-rtt-is-the-smallest
#[test]
fn the_minimum_follows_down_and_is_forgotten_on_persistent_congestion() {
    let mut rtt = sampled(&[(100, 0), (80, 0), (300, 0)]);
    assert_eq!(rtt.min(), ms(80));
    rtt.on_persistent_congestion();
    assert_eq!(rtt.min(), ms(300));
}

/// Proves: rfc9002 6.2.1 pto-has-a-floor
#[test]
fn timers_are_no_finer_than_a_millisecond() {
    let mut rtt = sampled(&[(0, 0)]);
    for _ in 0..200 {
        rtt.on_sample(Instant::now(), Duration::ZERO, Duration::ZERO);
    }
    assert_eq!(rtt.pto(), GRANULARITY);
}

#[test]
fn losses_are_timed_by_the_larger_round_trip() {
    assert_eq!(sampled(&[(80, 0)]).larger(), ms(80));
    let rtt = sampled(&[(80, 0), (160, 0)]);
    assert_eq!(rtt.larger(), ms(160));
    let rtt = sampled(&[(80, 0), (8, 0)]);
    assert_eq!(rtt.larger(), rtt.smoothed());
}
