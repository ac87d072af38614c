//! Changes of path while packets are in flight (RFC 9000 §9.4).

use super::*;
use crate::owners::recovery::PathState;

/// Sends full datagrams until the window is full. Returns the bytes.
fn fill(world: &mut World, next: &mut u64) -> u64 {
    let mut bytes = 0;
    while world.recovery.can_send(1200) && bytes < 1_000_000 {
        world.send(Space::Data, *next);
        *next += 1;
        bytes += 1200;
    }
    bytes
}

/// Proves: security 8 windows-are-not-given-twice
#[test]
fn a_peer_that_moves_again_and_acknowledges_nothing_gets_no_further_window() {
    let mut world = World::established();
    let mut next = world.recovery.next_number(Space::Data).get();
    let first = fill(&mut world, &mut next);
    assert!(first > 0);
    let window = world.recovery.window();
    let mut sent = first;
    for _ in 0..1000 {
        world.recovery.follow_path(world.now);
        sent += fill(&mut world, &mut next);
    }
    assert!(sent <= 2 * window, "{sent} bytes");
    let last = next - 1;
    world.ack(Space::Data, [first / 1200..=last]);
    assert!(world.recovery.can_send(1200), "what arrived is forgotten");
}

/// Proves: security 8 windows-are-not-given-twice
#[test]
fn moving_between_two_ways_gives_each_its_window_once() {
    let mut world = World::established();
    let mut next = world.recovery.next_number(Space::Data).get();
    let mut sent = fill(&mut world, &mut next);
    let first = world.recovery.window();
    let unknown = config(Side::Client, Box::new(NewReno::new(1200)));
    let mut other = PathState::new(world.now, unknown);
    other = world.recovery.change_path(world.now, other);
    let second = world.recovery.window();
    sent += fill(&mut world, &mut next);
    for _ in 0..1000 {
        other = world.recovery.change_path(world.now, other);
        sent += fill(&mut world, &mut next);
    }
    assert!(sent <= first + second, "{sent} bytes");
}

#[test]
fn a_peer_that_moves_again_and_acknowledges_nothing_does_not_end_the_backoff() {
    let mut world = World::established();
    world.send(Space::Data, 1);
    let back_off = |world: &mut World| {
        for _ in 0..3 {
            world.now = world.recovery.next_timeout(&world.context).unwrap();
            assert_eq!(world.timeout(), Some(Timeout::Probe(Space::Data)));
        }
    };
    back_off(&mut world);
    world.recovery.follow_path(world.now);
    assert_eq!(
        world.recovery.pto_count(),
        0,
        "it may have moved to be heard"
    );
    back_off(&mut world);
    world.recovery.follow_path(world.now);
    assert_eq!(world.recovery.pto_count(), 3);
    world.recovery.on_path_failed(world.now);
    assert_eq!(world.recovery.pto_count(), 0);
    back_off(&mut world);
    world.send(Space::Data, 2);
    world.pass(RTT);
    world.ack(Space::Data, [2..=2]);
    world.send(Space::Data, 3);
    back_off(&mut world);
    world.recovery.follow_path(world.now);
    assert_eq!(
        world.recovery.pto_count(),
        0,
        "an acknowledgement allows it again"
    );
}
