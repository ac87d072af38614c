use super::*;

#[test]
fn the_window_bounds_what_is_in_flight() {
    let mut world = World::established();
    for pn in 1..=10 {
        assert!(world.recovery.can_send(1200));
        world.send(Space::Data, pn);
    }
    assert!(!world.recovery.can_send(1200) && !world.recovery.can_send(1));
    assert!(world.recovery.can_send(0));
    world.ack(Space::Data, [1..=1]);
    assert!(world.recovery.can_send(2400));
}

#[test]
fn the_window_grows_only_when_it_was_full() {
    let mut world = World::established();
    assert_eq!(world.recovery.window(), 12_000, "one packet says nothing");
    for pn in 1..=5 {
        world.send(Space::Data, pn);
    }
    world.pass(RTT);
    world.ack(Space::Data, [1..=5]);
    assert_eq!(world.recovery.window(), 12_000);
    for pn in 6..=15 {
        world.send(Space::Data, pn);
    }
    world.pass(RTT);
    // A receive batch: no packet is sent between the ACKs, all of them count nevertheless.
    for pn in 6..=15 {
        world.ack(Space::Data, [pn..=pn]);
    }
    assert_eq!(world.recovery.window(), 24_000);
    world.pass(ms(1));
    world.send(Space::Data, 16);
    world.pass(RTT);
    world.ack(Space::Data, [16..=16]);
    assert_eq!(world.recovery.window(), 24_000);
}

#[test]
fn acknowledged_acks_do_not_grow_the_window() {
    let mut world = World::established();
    world.send_ack_only(Space::Data, 1);
    for pn in 2..=11 {
        world.send(Space::Data, pn);
    }
    world.ack(Space::Data, [1..=1]);
    assert_eq!(world.recovery.window(), 12_000);
}

#[test]
fn a_loss_cuts_the_window_before_the_same_ack_grows_it() {
    let mut world = World::established();
    for pn in 1..=10 {
        world.send(Space::Data, pn);
    }
    world.pass(RTT);
    world.ack(Space::Data, [2..=10]);
    assert_eq!(world.lost(), [1]);
    assert_eq!(world.recovery.window(), 6000);
}

#[test]
fn ack_only_packets_are_not_in_flight_and_arm_no_timer() {
    let mut world = World::established();
    world.send_ack_only(Space::Data, 1);
    assert_eq!(world.recovery.bytes_in_flight(), 0);
    assert_eq!(world.timer(), None);
    for pn in 2..=6 {
        world.send(Space::Data, pn);
    }
    world.ack(Space::Data, [2..=6]);
    assert_eq!(world.lost(), [1]);
    assert_eq!(
        world.recovery.window(),
        12_000,
        "their loss is no congestion"
    );
}

#[test]
fn padding_counts_in_flight_but_arms_no_timer() {
    let mut world = World::established();
    world.send_packet(Space::Data, 1, |packet| packet.ack_eliciting = false);
    assert_eq!(world.recovery.bytes_in_flight(), 1200);
    assert_eq!(world.timer(), None);
}

#[test]
fn after_many_silent_packets_one_asks_for_an_ack() {
    let mut world = World::established();
    for pn in 1..32 {
        world.send_ack_only(Space::Data, pn);
        assert!(!world.recovery.needs_ping(Space::Data), "{pn}");
    }
    world.send_ack_only(Space::Data, 32);
    assert!(world.recovery.needs_ping(Space::Data));
    world.send(Space::Data, 33);
    for pn in 34..100 {
        world.send_ack_only(Space::Data, pn);
    }
    assert!(!world.recovery.needs_ping(Space::Data), "one is under way");
    world.send(Space::Data, 100);
    world.ack(Space::Data, [100..=100, 33..=33]);
    world.send_ack_only(Space::Data, 101);
    assert!(!world.recovery.needs_ping(Space::Data), "counted anew");
}

#[test]
fn a_clock_that_seems_to_run_backwards_does_no_harm() {
    let mut world = World::established();
    world.send(Space::Data, 1);
    world.pass(ms(1));
    world.send(Space::Data, 2);
    // The clock of the caller is coarse: the ACK may seem to come before the packet.
    world.now -= ms(1);
    world.ack(Space::Data, [2..=2]);
    assert_eq!(world.recovery.rtt().latest(), Duration::ZERO);
}
