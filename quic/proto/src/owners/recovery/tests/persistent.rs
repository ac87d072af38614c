use super::*;
use crate::wire::packet::PacketNumber;

/// Sends packets that vanish, one every `gap`, then one that arrives.
fn outage(gap: Duration, count: u64) -> World {
    let mut world = World::established();
    for pn in 1..=count {
        world.pass(gap);
        world.send(Space::Data, pn);
    }
    world.pass(gap);
    world.send(Space::Data, count + 1);
    world.pass(RTT);
    world.ack(Space::Data, [count + 1..=count + 1]);
    world
}

/// Proves: rfc9002 7.6.2 persistent-congestion-needs-two
#[test]
fn losses_over_three_probe_timeouts_are_persistent_congestion() {
    // PTO: 100 + 4 * 50 + 25; after the second sample 100 + 4 * 37.5 + 25 = 275; three are 825.
    let world = outage(ms(276), 4);
    assert_eq!(world.lost(), [1, 2, 3, 4]);
    assert!(world.outcome.persistent_congestion);
    assert_eq!(world.recovery.window(), 2400);
    assert_eq!(world.recovery.rtt().min(), RTT);
}

/// Proves: rfc9002 7.3.2 recovery-halves
#[test]
fn losses_over_less_are_one_congestion_event() {
    let world = outage(ms(274), 4);
    assert_eq!(world.lost(), [1, 2, 3, 4]);
    assert!(!world.outcome.persistent_congestion);
    let threshold = world.recovery.controller.slow_start_threshold();
    assert_eq!(threshold, Some(6000));
}

/// Proves: rfc9002 7.6.2 persistent-congestion-needs-two
#[test]
fn an_acknowledged_packet_in_between_interrupts_persistent_congestion() {
    let mut world = World::established();
    for pn in 1..=7 {
        world.pass(ms(200));
        world.send(Space::Data, pn);
    }
    world.pass(RTT);
    world.ack(Space::Data, [7..=7, 4..=4]);
    assert_eq!(world.lost(), [1, 2, 3, 5, 6]);
    assert!(!world.outcome.persistent_congestion);
}

#[test]
fn without_an_rtt_sample_there_is_no_persistent_congestion() {
    let mut world = World::new(Side::Client);
    world.context.handshake = Progress::Confirmed;
    for pn in 0..6 {
        world.send(Space::Data, pn);
        world.pass(Duration::from_secs(10));
    }
    world.ack(Space::Data, [5..=5]);
    assert_eq!(world.lost(), [0, 1, 2, 3, 4]);
    assert!(!world.outcome.persistent_congestion);
}

#[test]
fn what_was_sent_before_the_first_rtt_sample_is_no_persistent_congestion() {
    let mut world = World::new(Side::Client);
    world.context.handshake = Progress::Confirmed;
    for pn in 0..6 {
        world.send(Space::Data, pn);
        world.pass(Duration::from_secs(10));
    }
    world.send(Space::Handshake, 0);
    world.pass(RTT);
    world.ack(Space::Handshake, [0..=0]);
    world.send(Space::Data, 6);
    world.pass(RTT);
    world.ack(Space::Data, [6..=6]);
    assert_eq!(world.lost(), [0, 1, 2, 3, 4, 5]);
    assert!(!world.outcome.persistent_congestion);
}

/// Proves: rfc9002 7.6.2 persistent-congestion-needs-two
#[test]
fn persistent_congestion_is_measured_between_packets_that_ask_for_an_ack() {
    let mut world = World::established();
    for pn in 1..=6 {
        world.pass(ms(200));
        world.send_packet(Space::Data, pn, |packet| {
            packet.ack_eliciting = (3..=4).contains(&pn);
        });
    }
    world.pass(ms(200));
    world.send(Space::Data, 7);
    world.pass(RTT);
    world.ack(Space::Data, [7..=7]);
    assert_eq!(world.lost(), [1, 2, 3, 4, 5, 6]);
    assert!(!world.outcome.persistent_congestion);
}

#[test]
fn a_skipped_number_does_not_interrupt_persistent_congestion() {
    let mut world = World::established();
    for pn in 1..=5 {
        world.pass(ms(276));
        if pn == 3 {
            world
                .recovery
                .on_number_skipped(Space::Data, PacketNumber::saturating(pn));
        } else {
            world.send(Space::Data, pn);
        }
    }
    world.pass(ms(276));
    world.send(Space::Data, 6);
    world.pass(RTT);
    world.ack(Space::Data, [6..=6]);
    assert_eq!(world.lost(), [1, 2, 4, 5]);
    assert!(world.outcome.persistent_congestion);
}

#[test]
fn a_packet_without_a_record_interrupts_persistent_congestion() {
    let mut world = World::established();
    for pn in 1..=5 {
        world.pass(ms(276));
        if pn == 3 {
            world
                .recovery
                .on_number_used(Space::Data, PacketNumber::saturating(pn));
        } else {
            world.send(Space::Data, pn);
        }
    }
    world.pass(ms(276));
    world.send(Space::Data, 6);
    world.pass(RTT);
    world.ack(Space::Data, [6..=6]);
    assert!(!world.outcome.persistent_congestion, "it may have arrived");
}
