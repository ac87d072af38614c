//! Changes of path while packets are in flight (RFC 9000 §9.4).

use super::*;
use crate::recovery::PathState;

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
