use super::*;

const SIZE: u64 = 1200;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn pacer(now: Instant, rate: u64) -> Pacer {
    let mut pacer = Pacer::new(now, SIZE as u16);
    pacer.set_burst(10);
    pacer.forgive(None);
    pacer.set_rate(now, rate);
    pacer
}

/// Sends as much as the pacer allows; returns the number of datagrams.
fn drain(pacer: &mut Pacer, now: Instant) -> u64 {
    let mut sent = 0;
    while pacer.may_send(now) {
        pacer.on_sent(now, SIZE);
        sent += 1;
    }
    sent
}

#[test]
fn without_a_rate_nothing_is_held_back() {
    let now = Instant::now();
    let mut pacer = Pacer::new(now, 1200);
    pacer.on_sent(now, 1 << 40);
    assert!(pacer.may_send(now));
    assert_eq!(pacer.train(), u64::MAX);
    assert_eq!(pacer.release_at(now), now);
}

/// Proves: rfc9002 7.7 bursts-are-paced
#[test]
fn three_datagrams_may_leave_at_once_and_no_more() {
    let now = Instant::now();
    let mut pacer = pacer(now, 100_000);
    assert_eq!(drain(&mut pacer, now), 3);
    assert_eq!(drain(&mut pacer, now + ms(11)), 0, "not a datagram's worth");
    assert_eq!(drain(&mut pacer, now + ms(13)), 1);
}

#[test]
fn after_a_pause_as_many_may_leave_as_the_controller_wants() {
    let now = Instant::now();
    for burst in [2, 3, 10] {
        let mut pacer = pacer(now, 100_000);
        pacer.set_burst(burst);
        pacer.set_rate(now, 100_000);
        pacer.on_pause(now);
        assert_eq!(drain(&mut pacer, now), burst);
        pacer.on_pause(now);
        let later = now + Duration::from_secs(10);
        pacer.set_rate(later, 100_000);
        assert_eq!(drain(&mut pacer, later), burst.min(3), "the pause is over");
    }
}

#[test]
fn a_pause_saves_up_no_more_than_a_burst() {
    let now = Instant::now();
    let mut pacer = pacer(now, 100_000);
    drain(&mut pacer, now);
    assert_eq!(drain(&mut pacer, now + Duration::from_secs(100)), 3);
}

#[test]
fn the_rate_is_kept_whatever_the_timer_does() {
    for (rate, every) in [
        (125_000, ms(10)),
        (12_500_000, ms(1)),
        (12_500_000, ms(2)),
        (12_500_000, ms(3)),
        (1_250_000_000, ms(3)),
        (1_250_000_000, Duration::from_micros(100)),
    ] {
        let start = Instant::now();
        let mut pacer = pacer(start, rate);
        let (mut now, mut bytes) = (start, 0);
        while now < start + Duration::from_secs(2) {
            bytes += SIZE * drain(&mut pacer, now);
            now += every;
        }
        let burst = (10 * SIZE).max(rate * 3 / 1000);
        assert!(bytes <= 2 * rate + burst, "{bytes} at {rate}, {every:?}");
        assert!(
            bytes >= 2 * rate * 99 / 100 - burst,
            "{bytes} at {rate}, {every:?}"
        );
    }
}

#[test]
fn a_train_holds_a_millisecond_of_the_rate_but_two_datagrams_at_least() {
    let now = Instant::now();
    assert_eq!(pacer(now, 100_000).train(), 2 * SIZE);
    assert_eq!(pacer(now, 12_500_000).train(), 12_500);
    assert_eq!(pacer(now, 1_250_000_000).train(), 1_250_000);
}

#[test]
fn it_waits_until_a_whole_train_may_leave() {
    let now = Instant::now();
    for rate in [10_000, 100_000, 12_500_000, 1_250_000_000, u64::MAX] {
        let mut pacer = pacer(now, rate);
        drain(&mut pacer, now);
        let at = pacer.release_at(now);
        assert!(at > now, "{rate}");
        let whole = pacer.train() / SIZE;
        // Rounding costs each a nanosecond, out of 120 at the fastest rate.
        assert!(
            drain(&mut pacer.clone(), at) >= whole - whole / 100,
            "{rate}"
        );
        assert!(at - now <= time_for(pacer.train() + SIZE, rate.min(FASTEST)) + ms(1));
    }
}

#[test]
fn slow_start_is_paced_at_twice_the_window_per_round_trip() {
    let rate = |phase| Pacer::rate_of(100_000, ms(100), phase);
    assert_eq!(rate(Phase::SlowStart), 2_000_000);
    assert_eq!(rate(Phase::Avoidance), 1_250_000);
    assert_eq!(rate(Phase::Recovery), 1_250_000);
    assert_eq!(
        Pacer::rate_of(u64::MAX, Duration::ZERO, Phase::SlowStart),
        u64::MAX
    );
}

#[test]
fn no_rate_is_too_small_and_none_too_large() {
    let now = Instant::now();
    for rate in [0, 1, u64::MAX] {
        let mut pacer = pacer(now, rate);
        drain(&mut pacer, now);
        let at = pacer.release_at(now);
        assert!(at <= now + Duration::from_secs(3), "{rate}");
        assert!(drain(&mut pacer, at) > 0);
    }
}

/// Sends for two seconds, each time `late` after the datagram was due, and returns the bytes.
fn sent_late(rate: u64, late: Duration) -> u64 {
    let start = Instant::now();
    let mut pacer = pacer(start, rate);
    let (mut now, mut bytes) = (start, 0);
    while now < start + Duration::from_secs(2) {
        // Acknowledgements arrive together with the wake-up.
        pacer.set_rate(now, rate);
        bytes += SIZE * drain(&mut pacer, now);
        now = pacer.release_at(now) + late;
    }
    bytes
}

#[test]
fn who_is_woken_late_keeps_its_rate() {
    for rate in [125_000, 1_000_000, 12_500_000, 125_000_000] {
        for late in [ms(1), ms(3), ms(5), ms(10)] {
            let bytes = sent_late(rate, late);
            let all = 2 * rate;
            assert!(bytes <= all + 10 * SIZE + rate / 50, "{bytes} at {rate}");
            assert!(
                bytes >= all * 97 / 100,
                "{bytes} of {all}, {late:?} too late"
            );
        }
    }
}

#[test]
fn what_was_overslept_is_bounded() {
    let now = Instant::now();
    let mut pacer = pacer(now, 1_200_000);
    drain(&mut pacer, now);
    let at = pacer.release_at(now);
    assert!(drain(&mut pacer, at + Duration::from_secs(1)) <= 13 + 3);
}

#[test]
fn who_does_not_wait_saves_nothing() {
    let now = Instant::now();
    let mut pacer = pacer(now, 1_200_000);
    drain(&mut pacer, now);
    let at = pacer.release_at(now);
    pacer.on_idle();
    assert_eq!(drain(&mut pacer, at + Duration::from_secs(1)), 3);
}

#[test]
fn what_left_slowly_is_not_made_up_for_at_a_higher_rate() {
    let now = Instant::now();
    let mut pacer = pacer(now, 1200);
    drain(&mut pacer, now);
    pacer.set_rate(now, 12_500_000);
    assert!(pacer.release_at(now) <= now + ms(3));
}

#[test]
fn a_window_forgives_less() {
    let now = Instant::now();
    for (round_trip, most) in [(ms(16), 1), (ms(80), 5), (ms(1600), 10)] {
        let mut pacer = pacer(now, 1_200_000);
        pacer.forgive(Some(round_trip));
        drain(&mut pacer, now);
        let at = pacer.release_at(now);
        let sent = drain(&mut pacer, at + Duration::from_secs(1));
        assert!((most..=most + 3).contains(&sent), "{sent}, {round_trip:?}");
    }
}
