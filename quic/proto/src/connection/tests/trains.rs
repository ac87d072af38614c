//! Tests of the number of datagrams in one transmission, and of the reason why it ends.

use std::time::Duration;

use super::forged::pair;
use crate::owners::streams::Direction;

#[test]
fn a_train_is_a_millisecond_of_the_rate_or_two_datagrams() {
    let mut pair = pair();
    pair.run();
    let now = pair.now + Duration::from_millis(100);
    let server = pair.server.connection();
    let id = server.streams().open(Direction::Uni).unwrap();
    server.streams().write(id, &vec![7; 100_000]).unwrap();
    let rate = server.path_stats().pacing_rate.unwrap() as usize;
    let longest = (rate / 1000).max(2 * 1200);
    assert!(longest < 10 * 1200, "the window allows more at once");
    let (mut out, mut trains) = (vec![0; 65_000], 0);
    while let Some(train) = server.poll_transmit(now, &mut out, 50) {
        assert!(train.size <= longest, "{} of {longest}", train.size);
        trains += 1;
    }
    assert!(trains > 1, "{trains}");
}

#[test]
fn who_has_nothing_more_to_send_limits_the_rate() {
    let mut pair = pair();
    pair.run();
    let now = pair.now + Duration::from_millis(100);
    let server = pair.server.connection();
    let id = server.streams().open(Direction::Uni).unwrap();
    server.streams().write(id, &[7; 100]).unwrap();
    let mut out = vec![0; 65_000];
    while server.poll_transmit(now, &mut out, 50).is_some() {}
    assert!(server.recovery.delivery_is_app_limited());
}
