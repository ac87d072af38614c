use super::*;
use crate::testing::pn;

/// Proves: rfc9002 6.2 pto-declares-nothing-lost
#[test]
fn the_first_probe_of_a_client_comes_after_three_guessed_round_trips() {
    let mut world = World::new(Side::Client);
    world.send(Space::Initial, 0);
    world.send(Space::Initial, 1);
    assert_eq!(world.timer(), Some(ms(999)));
    world.now = world.start + ms(999);
    assert_eq!(world.timeout(), Some(Timeout::Probe(Space::Initial)));
    assert_eq!(world.recovery.probes(Space::Initial), 2);
    let again: Vec<_> = world
        .recovery
        .outstanding(Space::Initial)
        .copied()
        .collect();
    assert_eq!(again, [0, 1], "the whole flight goes again");
    assert!(world.lost().is_empty(), "a probe is no loss");
    assert_eq!(world.recovery.bytes_in_flight(), 2400);
}

#[test]
fn probes_are_counted_down_by_packets_that_ask_for_an_ack() {
    let mut world = World::new(Side::Client);
    world.send(Space::Initial, 0);
    world.pass(ms(999));
    world.timeout();
    world.send_ack_only(Space::Initial, 1);
    assert_eq!(world.recovery.probes(Space::Initial), 2);
    world.send(Space::Initial, 2);
    assert_eq!(world.recovery.probes(Space::Initial), 1);
    world.send(Space::Initial, 3);
    world.send(Space::Initial, 4);
    assert_eq!(world.recovery.probes(Space::Initial), 0);
}

/// Proves: rfc9002 6.2.1 pto-backs-off
#[test]
fn probe_timeouts_double_up_to_a_minute() {
    let mut world = World::established();
    world.send(Space::Data, 1);
    let pto = RTT + 4 * ms(50) + MAX_ACK_DELAY;
    assert_eq!(
        world
            .recovery
            .pto(Space::Data, world.context.peer_max_ack_delay),
        pto
    );
    for (pn, doublings) in (2..40).zip(0..) {
        let expected = pto.saturating_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX));
        let at = world.recovery.next_timeout(&world.context).unwrap();
        assert_eq!(at - world.now, expected.min(Duration::from_secs(60)));
        world.now = at;
        assert_eq!(world.timeout(), Some(Timeout::Probe(Space::Data)));
        assert_eq!(world.recovery.pto_count(), doublings + 1);
        world.send(Space::Data, pn);
    }
    world.pass(RTT);
    world.ack(Space::Data, [39..=39]);
    assert_eq!(world.recovery.pto_count(), 0);
}

#[test]
fn a_timer_does_not_stay_in_the_past_when_probes_do_not_leave() {
    let mut world = World::established();
    world.send(Space::Data, 1);
    world.pass(Duration::from_secs(3600));
    for _ in 0..30 {
        assert_eq!(world.timeout(), Some(Timeout::Probe(Space::Data)));
        let next = world.recovery.next_timeout(&world.context).unwrap();
        assert!(next > world.now);
        world.now = next;
    }
}

#[test]
fn a_probe_that_another_path_makes_due_is_not_due_in_the_past() {
    let late = || {
        let mut world = World::established();
        world.send(Space::Data, 1);
        world.send(Space::Data, 2);
        for _ in 0..5 {
            world.now = world.recovery.next_timeout(&world.context).unwrap();
            assert_eq!(world.timeout(), Some(Timeout::Probe(Space::Data)));
        }
        // The backoff delays the next probe for much longer than one probe timeout.
        world.pass(ms(5000));
        let timer = world.recovery.next_timeout(&world.context).unwrap();
        assert!(timer > world.now);
        world
    };
    let is_due_now = |world: &World| {
        let timer = world.recovery.next_timeout(&world.context).unwrap();
        assert_eq!(timer, world.now);
    };
    let mut world = late();
    world.recovery.follow_path(world.now);
    is_due_now(&world);
    let mut world = late();
    let unknown = config(Side::Client, Box::new(NewReno::new(1200)));
    let state = PathState::new(world.now, unknown);
    drop(world.recovery.change_path(world.now, state));
    is_due_now(&world);
}

/// Proves: rfc9002 6.2.2.1 blocked-server-has-no-pto
#[test]
fn a_server_does_not_probe_while_amplification_blocks_it() {
    let mut world = World::new(Side::Server);
    world.send(Space::Initial, 0);
    world.send(Space::Handshake, 0);
    world.context.amplification = Amplification::Blocked;
    assert_eq!(world.timer(), None);
    world.pass(ms(5000));
    assert_eq!(world.timeout(), None);
    assert_eq!(world.recovery.pto_count(), 0);
    world.context.amplification = Amplification::Open;
    assert_eq!(
        world.timeout(),
        Some(Timeout::Probe(Space::Initial)),
        "overdue"
    );
}

#[test]
fn a_server_with_nothing_in_flight_has_no_timer() {
    let mut world = World::new(Side::Server);
    assert_eq!(world.timer(), None);
    world.send(Space::Handshake, 0);
    world.ack(Space::Handshake, [0..=0]);
    assert_eq!(world.timer(), None);
}

/// Proves: rfc9002 6.2.2.1 client-pto-without-flight
#[test]
fn a_client_with_nothing_in_flight_probes_until_the_server_can_answer() {
    let mut world = World::new(Side::Client);
    world.send(Space::Initial, 0);
    world.pass(RTT);
    world.ack(Space::Initial, [0..=0]);
    // The server got the ClientHello but may have no credit left; 100 + 4 * 50 ms.
    assert_eq!(world.timer(), Some(RTT + ms(300)));
    world.pass(ms(300));
    assert_eq!(world.timeout(), Some(Timeout::Probe(Space::Initial)));
    assert_eq!(world.recovery.probes(Space::Initial), 1);
    assert_eq!(world.timer(), Some(RTT + ms(300) + ms(600)));
    world.context.handshake = Progress::Keys;
    world.pass(ms(600));
    assert_eq!(world.timeout(), Some(Timeout::Probe(Space::Handshake)));
    world.send(Space::Handshake, 0);
    world.pass(RTT);
    world.ack(Space::Handshake, [0..=0]);
    assert_eq!(
        world.timer(),
        None,
        "a Handshake ACK shows that the address is validated"
    );
}

#[test]
fn early_data_alone_in_flight_does_not_stop_the_clients_timer() {
    let mut world = World::new(Side::Client);
    world.send(Space::Initial, 0);
    world.send(Space::Data, 0);
    world.pass(RTT);
    world.ack(Space::Initial, [0..=0]);
    assert_eq!(world.timer(), Some(RTT + ms(300)));
}

#[test]
fn backoff_is_kept_while_the_server_may_be_out_of_credit() {
    let mut world = World::new(Side::Client);
    world.send(Space::Initial, 0);
    world.pass(ms(999));
    world.timeout();
    world.send(Space::Initial, 1);
    world.ack(Space::Initial, [1..=1]);
    assert_eq!(world.recovery.pto_count(), 1);
    world.context.handshake = Progress::Keys;
    world.send(Space::Handshake, 0);
    world.ack(Space::Handshake, [0..=0]);
    assert_eq!(world.recovery.pto_count(), 0);
}

/// Proves: rfc9002 6.2.1 no-application-pto-before-confirmation
#[test]
fn one_rtt_packets_arm_no_timer_before_the_handshake_is_confirmed() {
    let mut world = World::new(Side::Server);
    world.context.handshake = Progress::Keys;
    world.send(Space::Data, 0);
    assert_eq!(world.timer(), None);
    world.send(Space::Handshake, 0);
    assert_eq!(world.timer(), Some(ms(999)));
    world.context.handshake = Progress::Confirmed;
    world.recovery.discard_space(Space::Handshake);
    assert_eq!(world.timer(), Some(ms(999) + MAX_ACK_DELAY));
}

/// Proves: rfc9002 6.2.1 pto-is-the-earliest-space
#[test]
fn the_earliest_space_is_probed() {
    let mut world = World::new(Side::Server);
    world.send(Space::Handshake, 0);
    world.pass(ms(10));
    world.send(Space::Initial, 0);
    world.now = world.start + ms(999);
    assert_eq!(world.timeout(), Some(Timeout::Probe(Space::Handshake)));
}

/// The peer may have the keys of only one of them.
///
/// Proves: rfc9002 6.2.4 probes-of-the-handshake-go-together
#[test]
fn both_spaces_of_the_handshake_are_probed_if_both_are_in_flight() {
    for (first, second) in [
        (Space::Initial, Space::Handshake),
        (Space::Handshake, Space::Initial),
    ] {
        let mut world = World::new(Side::Server);
        world.send(first, 0);
        world.pass(ms(10));
        world.send(second, 0);
        world.now = world.start + ms(999);
        assert_eq!(world.timeout(), Some(Timeout::Probe(first)));
        assert_eq!(world.recovery.probes(first), 2);
        assert_eq!(world.recovery.probes(second), 2);
    }
    let mut world = World::new(Side::Server);
    world.send(Space::Initial, 0);
    world.send(Space::Handshake, 0);
    world.ack(Space::Initial, [0..=0]);
    world.pass(ms(2999));
    assert_eq!(world.timeout(), Some(Timeout::Probe(Space::Handshake)));
    assert_eq!(world.recovery.probes(Space::Initial), 0, "nothing is left");
}

/// Proves: rfc9002 6.2.3 a-repeated-hello-is-answered
#[test]
fn a_probe_before_its_timeout_needs_a_round_trip_and_something_in_flight() {
    let mut world = World::new(Side::Server);
    let probe = |world: &mut World| world.recovery.probe_early(world.now, Space::Initial);
    assert!(!probe(&mut world), "nothing is in flight");
    world.send(Space::Initial, 0);
    world.send(Space::Handshake, 0);
    world.pass(ms(332));
    assert!(!probe(&mut world), "the answer may be on its way");
    world.pass(ms(1));
    assert!(probe(&mut world));
    assert_eq!(world.recovery.probes(Space::Initial), 2);
    assert_eq!(world.recovery.probes(Space::Handshake), 2);
    assert_eq!(world.recovery.pto_count(), 0, "no timeout has passed");
    assert_eq!(world.timer(), Some(ms(999)), "which counts from here");
    assert!(!probe(&mut world), "it has just been asked for");
}

/// Proves: rfc9002 6.4 discarded-spaces-leave-flight
/// Proves: rfc9002 6.2.2 discarding-keys-resets-timers
#[test]
fn a_discarded_space_leaves_nothing_in_flight_and_resets_the_backoff() {
    let mut world = World::new(Side::Server);
    world.send(Space::Initial, 0);
    world.send(Space::Handshake, 0);
    world.pass(ms(999));
    world.timeout();
    assert_eq!(world.recovery.pto_count(), 1);
    world.recovery.discard_space(Space::Initial);
    assert_eq!(world.recovery.bytes_in_flight(), 1200);
    assert_eq!(world.recovery.pto_count(), 0);
    assert_eq!(world.timer(), Some(ms(999)), "that of the Handshake space");
    world.ack(Space::Initial, [0..=0]);
    assert!(world.acked().is_empty());
}

#[test]
fn a_retry_hands_everything_back_and_measures_the_path() {
    let mut world = World::new(Side::Client);
    world.send(Space::Initial, 0);
    world.send(Space::Initial, 1);
    world.send(Space::Data, 0);
    world.pass(ms(50));
    world.recovery.on_retry(world.now, &mut world.outcome);
    assert_eq!(world.lost(), [0, 1, 0]);
    assert_eq!(
        (
            world.recovery.bytes_in_flight(),
            world.recovery.packets_lost()
        ),
        (0, 0)
    );
    assert_eq!(world.recovery.window(), 12_000, "no sign of congestion");
    assert_eq!(
        world.recovery.next_number(Space::Initial),
        pn(2),
        "numbers go on"
    );
    world.send(Space::Initial, 2);
    assert_eq!(world.timer(), Some(ms(50) + ms(150)));
}

#[test]
fn a_retry_after_a_probe_measures_nothing() {
    let mut world = World::new(Side::Client);
    world.send(Space::Initial, 0);
    world.pass(ms(999));
    world.timeout();
    world.recovery.on_retry(world.now, &mut world.outcome);
    assert_eq!(world.recovery.rtt().smoothed(), ms(333));
    assert_eq!(world.recovery.pto_count(), 0);
}
