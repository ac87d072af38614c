use std::time::{Duration, Instant};

use super::{LONGEST, Load, SHORTEST, WINDOW};
use crate::wire::limits::{RETRY_AT, RETRY_UNTIL_BELOW};

/// Lets handshakes take this many thousandths of the time for a while.
fn work(load: &mut Load, now: &mut Instant, share: u32, windows: u32) -> bool {
    for _ in 0..windows {
        load.on_handshake(*now, WINDOW * share / 1000);
        *now += WINDOW;
    }
    load.is_high(*now, 0)
}

#[test]
fn retry_starts_with_many_unfinished_clients_and_ends_with_few() {
    let (mut load, now) = (Load::default(), Instant::now());
    assert!(!load.is_high(now, RETRY_AT - 1));
    assert!(load.is_high(now, RETRY_AT));
    assert!(load.is_high(now, 0), "not before its time");
    let later = now + SHORTEST;
    assert!(load.is_high(later, RETRY_UNTIL_BELOW), "still too many");
    assert!(!load.is_high(later, RETRY_UNTIL_BELOW - 1));
    assert!(!load.is_high(later, RETRY_AT - 1), "hysteresis");
}

#[test]
fn retry_starts_when_handshakes_take_the_time_of_everything_else() {
    let (mut load, mut now) = (Load::default(), Instant::now());
    assert!(!work(&mut load, &mut now, 600, 50));
    assert!(!work(&mut load, &mut now, 900, 1), "smoothed");
    assert!(work(&mut load, &mut now, 900, 10));
    now += SHORTEST;
    assert!(work(&mut load, &mut now, 500, 20), "hysteresis");
    assert!(!work(&mut load, &mut now, 100, 20));
    // One that takes longer than a window counts in those that follow.
    load.on_handshake(now, WINDOW * 20);
    assert!(work(&mut load, &mut now, 0, 10));
}

#[test]
fn an_attack_that_is_still_there_is_looked_for_ever_more_rarely() {
    let (mut load, mut now) = (Load::default(), Instant::now());
    let mut holds = Vec::new();
    for _ in 0..6 {
        assert!(load.is_high(now, RETRY_AT));
        let started = now;
        while load.is_high(now, 0) {
            now += Duration::from_secs(1);
        }
        holds.push((now - started).as_secs());
    }
    assert_eq!(holds, [5, 10, 20, 40, 60, 60]);
    assert_eq!(LONGEST.as_secs(), 60);
    now += SHORTEST;
    assert!(load.is_high(now, RETRY_AT));
    assert!(!load.is_high(now + SHORTEST, 0), "a new attack");
}

#[test]
fn what_was_measured_is_forgotten_after_a_silence() {
    let (mut load, mut now) = (Load::default(), Instant::now());
    assert!(work(&mut load, &mut now, 1000, 50));
    now += Duration::from_hours(24 * 365);
    assert!(!load.is_high(now, 0));
}
