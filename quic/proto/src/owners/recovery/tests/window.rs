use super::*;
use crate::owners::congestion::{Lost, Phase};

/// Proves: rfc9002 7 window-is-kept
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
    // A receive batch: no packet is sent between the ACKs, but all of them count.
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
    // The clock of the caller is coarse: the ACK may seem to arrive before the packet was sent.
    world.now -= ms(1);
    world.ack(Space::Data, [2..=2]);
    assert_eq!(world.recovery.rtt().latest(), Duration::ZERO);
}

/// A custom controller that follows no rules.
#[derive(Debug)]
struct Careless {
    window: u64,
    rate: Option<u64>,
    burst: u64,
    mark: Ecn,
}

impl Controller for Careless {
    fn on_acked(&mut self, _: &Acked) {}
    fn on_lost(&mut self, _: &Lost<'_>) {}
    fn on_marked(&mut self, _: &Marked) {}
    fn on_datagram_size(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.rate
    }

    fn burst(&self) -> u64 {
        self.burst
    }

    fn phase(&self) -> Phase {
        Phase::Avoidance
    }

    fn ecn(&self) -> Ecn {
        self.mark
    }

    fn name(&self) -> &'static str {
        "Careless"
    }
}

#[test]
fn a_window_below_two_datagrams_is_taken_as_two() {
    let mut world = World::established_with(Box::new(Careless {
        window: 0,
        rate: None,
        burst: 0,
        mark: Ecn::Ect0,
    }));
    assert_eq!(world.recovery.window(), 2400);
    for pn in 1..=2 {
        assert!(
            world.recovery.can_send(1200),
            "else nothing leaves any more"
        );
        world.send(Space::Data, pn);
    }
    assert!(!world.recovery.can_send(1200));
}

#[test]
fn no_window_rate_or_burst_is_too_large_or_too_small() {
    for (extreme, rate) in [(0, Some(0)), (u64::MAX, Some(u64::MAX)), (u64::MAX, None)] {
        let mut world = World::established_with(Box::new(Careless {
            window: extreme,
            rate,
            burst: extreme,
            mark: Ecn::Ect0,
        }));
        for pn in 1..=20 {
            let wait = world.recovery.on_paced(world.now) - world.now;
            assert!(
                wait <= Duration::from_secs(2),
                "{extreme}, {rate:?}: {wait:?}"
            );
            world.pass(wait);
            assert!(world.recovery.may_send_now(world.now));
            world.send(Space::Data, pn);
            world.pass(RTT);
            world.ack(Space::Data, [0..=pn]);
        }
    }
}

#[test]
fn no_sender_marks_congestion() {
    let mut world = World::established_with(Box::new(Careless {
        window: 12_000,
        rate: None,
        burst: 10,
        mark: Ecn::Ce,
    }));
    assert_eq!(world.recovery.ecn_mark(), None, "ECN is off in these tests");
    world.recovery.ecn = PathEcn::new(EcnState::Testing);
    assert_eq!(world.recovery.ecn_mark(), Some(Ecn::Ect0));
}
