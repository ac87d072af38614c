use proptest::prelude::*;

use super::*;
use crate::proto::congestion::NewReno;

const RTT: Duration = Duration::from_millis(100);
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// One end of a connection with a clock; records are the packet numbers.
struct World {
    start: Instant,
    now: Instant,
    recovery: Recovery<u64>,
    context: Context,
    outcome: Outcome<u64>,
}

impl World {
    fn new(side: Side) -> Self {
        let start = Instant::now();
        let config = Config {
            side,
            initial_rtt: ms(333),
            datagram_size: 1200,
            controller: Box::new(NewReno::new(1200)),
        };
        Self {
            start,
            now: start,
            recovery: Recovery::new(start, config),
            context: Context {
                handshake: Handshake::InitialOnly,
                peer_max_ack_delay: MAX_ACK_DELAY,
                amplification: Amplification::Open,
            },
            outcome: Outcome::default(),
        }
    }

    /// A confirmed connection with one round trip measured, exactly [`RTT`], variance half of it.
    fn established() -> Self {
        let mut world = Self::new(Side::Client);
        world.context.handshake = Handshake::Confirmed;
        world.send(Space::Data, 0);
        world.pass(RTT);
        world.ack(Space::Data, [0..=0]);
        world.outcome.clear();
        world
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    fn send_packet(&mut self, space: Space, pn: u64, change: impl FnOnce(&mut SentPacket<u64>)) {
        let mut packet = SentPacket {
            time_sent: self.now,
            size: 1200,
            ack_eliciting: true,
            in_flight: true,
            largest_acked: None,
            record: pn,
        };
        change(&mut packet);
        self.recovery.on_packet_sent(space, pn, packet);
    }

    fn send(&mut self, space: Space, pn: u64) {
        self.send_packet(space, pn, |_| {});
    }

    fn send_ack_only(&mut self, space: Space, pn: u64) {
        self.send_packet(space, pn, |packet| {
            packet.ack_eliciting = false;
            packet.in_flight = false;
            packet.size = 40;
        });
    }

    fn try_ack<const N: usize>(
        &mut self,
        space: Space,
        ranges: [RangeInclusive<u64>; N],
        delay: Duration,
    ) -> Result<(), TransportError> {
        let largest = *ranges[0].end();
        let ack = Ack {
            space,
            largest,
            delay,
            ranges: ranges.into_iter(),
        };
        self.recovery
            .on_ack(self.now, ack, &self.context, &mut self.outcome)
    }

    fn ack<const N: usize>(&mut self, space: Space, ranges: [RangeInclusive<u64>; N]) {
        self.try_ack(space, ranges, Duration::ZERO).unwrap();
    }

    fn timeout(&mut self) -> Option<Timeout> {
        self.recovery
            .on_timeout(self.now, &self.context, &mut self.outcome)
    }

    /// When the timer fires, counted from the start.
    fn timer(&self) -> Option<Duration> {
        self.recovery
            .next_timeout(&self.context)
            .map(|at| at - self.start)
    }

    fn acked(&self) -> Vec<u64> {
        self.outcome.acked.iter().map(|acked| acked.pn).collect()
    }

    fn lost(&self) -> Vec<u64> {
        self.outcome.lost.iter().map(|lost| lost.pn).collect()
    }
}

#[test]
fn an_ack_hands_back_each_record_once() {
    let mut world = World::established();
    for pn in 1..=5 {
        world.send(Space::Data, pn);
    }
    assert_eq!(world.recovery.bytes_in_flight(), 6000);
    world.pass(RTT);
    world.ack(Space::Data, [5..=5, 0..=3]);
    assert_eq!(world.acked(), [5, 1, 2, 3]);
    assert!(
        world
            .outcome
            .acked
            .iter()
            .all(|acked| acked.packet.record == acked.pn)
    );
    assert!(world.outcome.progress);
    assert_eq!(world.recovery.bytes_in_flight(), 1200);
    world.outcome.clear();
    world.ack(Space::Data, [5..=5, 0..=3]);
    assert!(world.acked().is_empty() && !world.outcome.progress);
}

#[test]
fn an_ack_of_a_packet_that_was_not_sent_is_a_violation() {
    let mut world = World::established();
    world.send(Space::Data, 1);
    let error = world
        .try_ack(Space::Data, [0..=2], Duration::ZERO)
        .unwrap_err();
    assert_eq!(
        (error.code, error.frame),
        (crate::proto::error::Code::PROTOCOL_VIOLATION, 2)
    );
    assert!(
        world
            .try_ack(Space::Initial, [0..=0], Duration::ZERO)
            .is_err()
    );
    world.ack(Space::Data, [0..=1]);
}

#[test]
fn an_ack_of_a_skipped_number_is_a_violation() {
    let mut world = World::established();
    world.send(Space::Data, 1);
    world.recovery.on_number_skipped(Space::Data, 2);
    world.send(Space::Data, 3);
    assert!(world.try_ack(Space::Data, [1..=3], Duration::ZERO).is_err());
    world.ack(Space::Data, [3..=3, 1..=1]);
    assert_eq!(world.acked(), [3, 1]);
}

#[test]
fn the_ack_that_carried_our_ack_tells_what_the_peer_knows() {
    let mut world = World::established();
    world.send_packet(Space::Data, 1, |packet| packet.largest_acked = Some(17));
    world.send_packet(Space::Data, 2, |packet| packet.largest_acked = Some(18));
    world.ack(Space::Data, [1..=1]);
    assert_eq!(world.outcome.largest_acked_ack, Some(17));
}

#[test]
fn the_round_trip_is_measured_only_from_a_new_largest_packet() {
    let mut world = World::established();
    world.send(Space::Data, 1);
    world.send(Space::Data, 2);
    world.pass(ms(200));
    world.ack(Space::Data, [2..=2]);
    assert_eq!(world.recovery.rtt().latest(), ms(200));
    world.pass(ms(1000));
    world.ack(Space::Data, [1..=2]);
    assert_eq!(world.recovery.rtt().latest(), ms(200));
}

#[test]
fn an_ack_of_ack_only_packets_measures_nothing() {
    let mut world = World::established();
    world.send_ack_only(Space::Data, 1);
    world.pass(ms(700));
    world.ack(Space::Data, [1..=1]);
    assert_eq!(world.recovery.rtt().latest(), RTT);
}

#[test]
fn the_peers_delay_is_capped_once_the_handshake_is_confirmed() {
    let sample = |handshake| {
        let mut world = World::established();
        world.context.handshake = handshake;
        world.send(Space::Data, 1);
        world.pass(ms(200));
        world.try_ack(Space::Data, [1..=1], ms(80)).unwrap();
        world.recovery.rtt().smoothed()
    };
    // 7/8 * 100 + 1/8 * (200 - delay)
    assert_eq!(sample(Handshake::Confirmed), Duration::from_micros(109_375));
    assert_eq!(sample(Handshake::Keys), Duration::from_micros(102_500));
}

#[test]
fn the_delay_of_an_initial_ack_is_ignored() {
    let mut world = World::established();
    world.send(Space::Initial, 0);
    world.pass(ms(200));
    world.try_ack(Space::Initial, [0..=0], ms(80)).unwrap();
    assert_eq!(
        world.recovery.rtt().smoothed(),
        Duration::from_micros(112_500)
    );
}

#[test]
fn a_packet_is_lost_once_three_overtook_it() {
    let mut world = World::established();
    for pn in 1..=4 {
        world.send(Space::Data, pn);
    }
    world.pass(ms(10));
    world.ack(Space::Data, [3..=3]);
    assert!(world.lost().is_empty(), "two overtook it");
    world.ack(Space::Data, [3..=4]);
    assert_eq!(world.lost(), [1]);
    assert_eq!(world.recovery.packets_lost(), 1);
    assert_eq!(world.recovery.bytes_in_flight(), 1200);
}

#[test]
fn a_packet_is_lost_nine_eighths_of_a_round_trip_after_it_left() {
    let mut world = World::established();
    world.send(Space::Data, 1);
    world.pass(ms(50));
    world.send(Space::Data, 2);
    world.pass(ms(50));
    world.ack(Space::Data, [2..=2]);
    assert!(world.lost().is_empty());
    // The smoothed round trip is now 7/8 * 100 + 1/8 * 50, the latest 50.
    let delay = Duration::from_micros(93_750) * 9 / 8;
    let due = RTT + delay;
    assert_eq!(world.timer(), Some(due));
    world.now = world.start + due.saturating_sub(Duration::from_nanos(1));
    assert_eq!(world.timeout(), None);
    world.now = world.start + due;
    assert_eq!(world.timeout(), Some(Timeout::Lost));
    assert_eq!(world.lost(), [1]);
    assert_eq!(world.recovery.bytes_in_flight(), 0);
    assert_eq!(world.timer(), None);
}

#[test]
fn nothing_is_lost_that_was_sent_after_the_largest_acknowledged() {
    let mut world = World::established();
    world.send(Space::Data, 1);
    world.send(Space::Data, 2);
    world.pass(ms(10_000));
    world.ack(Space::Data, [1..=1]);
    assert!(world.lost().is_empty());
}

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

#[test]
fn probe_timeouts_double_up_to_a_minute() {
    let mut world = World::established();
    world.send(Space::Data, 1);
    let pto = RTT + 4 * ms(50) + MAX_ACK_DELAY;
    assert_eq!(world.recovery.pto(Space::Data, &world.context), pto);
    for (pn, doublings) in (2..40).zip(0..) {
        let expected = pto.saturating_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX));
        let at = world.recovery.next_timeout(&world.context).unwrap();
        assert_eq!(at - world.now, expected.min(Duration::from_mins(1)));
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
    world.pass(Duration::from_hours(1));
    for _ in 0..30 {
        assert_eq!(world.timeout(), Some(Timeout::Probe(Space::Data)));
        let next = world.recovery.next_timeout(&world.context).unwrap();
        assert!(next > world.now);
        world.now = next;
    }
}

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

#[test]
fn a_client_with_nothing_in_flight_probes_until_the_server_can_answer() {
    let mut world = World::new(Side::Client);
    world.send(Space::Initial, 0);
    world.pass(RTT);
    world.ack(Space::Initial, [0..=0]);
    // The server got the ClientHello but may be out of credit; 100 + 4 * 50 ms.
    assert_eq!(world.timer(), Some(RTT + ms(300)));
    world.pass(ms(300));
    assert_eq!(world.timeout(), Some(Timeout::Probe(Space::Initial)));
    assert_eq!(world.recovery.probes(Space::Initial), 1);
    assert_eq!(world.timer(), Some(RTT + ms(300) + ms(600)));
    world.context.handshake = Handshake::Keys;
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
    world.context.handshake = Handshake::Keys;
    world.send(Space::Handshake, 0);
    world.ack(Space::Handshake, [0..=0]);
    assert_eq!(world.recovery.pto_count(), 0);
}

#[test]
fn one_rtt_packets_arm_no_timer_before_the_handshake_is_confirmed() {
    let mut world = World::new(Side::Server);
    world.context.handshake = Handshake::Keys;
    world.send(Space::Data, 0);
    assert_eq!(world.timer(), None);
    world.send(Space::Handshake, 0);
    assert_eq!(world.timer(), Some(ms(999)));
    world.context.handshake = Handshake::Confirmed;
    world.recovery.discard_space(Space::Handshake);
    assert_eq!(world.timer(), Some(ms(999) + MAX_ACK_DELAY));
}

#[test]
fn the_earliest_space_is_probed() {
    let mut world = World::new(Side::Server);
    world.send(Space::Handshake, 0);
    world.pass(ms(10));
    world.send(Space::Initial, 0);
    world.now = world.start + ms(999);
    assert_eq!(world.timeout(), Some(Timeout::Probe(Space::Handshake)));
    assert_eq!(world.recovery.probes(Space::Initial), 0);
}

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
        2,
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

#[test]
fn losses_over_three_probe_timeouts_are_persistent_congestion() {
    // PTO: 100 + 4 * 50 + 25; after the second sample 100 + 4 * 37.5 + 25 = 275; three are 825.
    let world = outage(ms(276), 4);
    assert_eq!(world.lost(), [1, 2, 3, 4]);
    assert!(world.outcome.persistent_congestion);
    assert_eq!(world.recovery.window(), 2400);
    assert_eq!(world.recovery.rtt().min(), RTT);
}

#[test]
fn losses_over_less_are_one_congestion_event() {
    let world = outage(ms(274), 4);
    assert_eq!(world.lost(), [1, 2, 3, 4]);
    assert!(!world.outcome.persistent_congestion);
    assert_eq!(world.recovery.window(), 6000);
}

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
    world.context.handshake = Handshake::Confirmed;
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
    world.context.handshake = Handshake::Confirmed;
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

#[derive(Clone, Debug)]
enum Step {
    Send {
        space: Space,
        kind: Kind,
        size: u16,
    },
    Ack {
        space: Space,
        from: u64,
        len: u64,
        gap: u64,
    },
    Pass(u64),
    Timeout,
    Skip(Space),
    Abandon,
    Confirm,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Eliciting,
    Padding,
    AckOnly,
}

fn step() -> impl Strategy<Value = Step> {
    let space = || prop::sample::select(&Space::ALL[..]);
    let kind = prop_oneof![
        6 => Just(Kind::Eliciting),
        1 => Just(Kind::Padding),
        2 => Just(Kind::AckOnly),
    ];
    prop_oneof![
        8 => (space(), kind, 1..1500u16)
            .prop_map(|(space, kind, size)| Step::Send { space, kind, size }),
        5 => (space(), 0..40u64, 0..20u64, 1..5u64)
            .prop_map(|(space, from, len, gap)| Step::Ack { space, from, len, gap }),
        3 => (0..400u64).prop_map(Step::Pass),
        3 => Just(Step::Timeout),
        1 => space().prop_map(Step::Skip),
        1 => Just(Step::Abandon),
        1 => Just(Step::Confirm),
    ]
}

/// What the world should still hold: number, whether in flight, bytes.
#[derive(Default)]
struct Model {
    next: [u64; 3],
    outstanding: [std::collections::BTreeMap<u64, u64>; 3],
}

impl Model {
    /// Removes what the outcome handed back, from the space where it is.
    fn settle(&mut self, world: &mut World, space: Option<Space>) -> Result<(), TestCaseError> {
        let outcome = std::mem::take(&mut world.outcome);
        for settled in outcome.acked.iter().chain(&outcome.lost) {
            let tagged = settled.packet.record;
            let home = Space::ALL[(tagged % 3) as usize];
            prop_assert_eq!(tagged / 3, settled.pn);
            prop_assert!(space.is_none_or(|space| space == home));
            let bytes = self.outstanding[home as usize].remove(&settled.pn);
            prop_assert_eq!(
                bytes,
                Some(settled.packet.bytes_in_flight()),
                "handed back twice"
            );
        }
        Ok(())
    }
}

proptest! {
    /// Bytes in flight are exact, every record comes back once, a timer that was served is not in
    /// the past, whatever is sent, acknowledged and lost in whatever order.
    #[test]
    fn nothing_is_lost_by_the_books(
        steps in prop::collection::vec(step(), 1..300),
        is_client in any::<bool>(),
    ) {
        let mut world = World::new(if is_client { Side::Client } else { Side::Server });
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Send { space, kind, size } => {
                    let pn = model.next[space as usize];
                    model.next[space as usize] += 1;
                    world.send_packet(space, pn, |packet| {
                        packet.size = size;
                        packet.ack_eliciting = matches!(kind, Kind::Eliciting);
                        packet.in_flight = !matches!(kind, Kind::AckOnly);
                        packet.record = pn * 3 + space as u64;
                    });
                    let bytes = if matches!(kind, Kind::AckOnly) { 0 } else { size.into() };
                    model.outstanding[space as usize].insert(pn, bytes);
                }
                Step::Ack { space, from, len, gap } => {
                    let next = model.next[space as usize];
                    let Some(largest) = next.checked_sub(from + 1) else { continue };
                    let first = largest.saturating_sub(len);
                    let second = first.saturating_sub(gap + 1);
                    let ranges = [first..=largest, second.saturating_sub(len)..=second];
                    // Numbers are skipped now and then: that ACK is refused and changes nothing.
                    let before = world.recovery.bytes_in_flight();
                    if world.try_ack(space, ranges, ms(len)).is_err() {
                        prop_assert!(world.outcome.acked.is_empty());
                        prop_assert_eq!(world.recovery.bytes_in_flight(), before);
                    }
                    model.settle(&mut world, Some(space))?;
                }
                Step::Pass(time) => world.pass(ms(time)),
                Step::Timeout => {
                    let mut fired = 0;
                    while world.timeout().is_some() {
                        fired += 1;
                        prop_assert!(fired < 20, "the timer does not come to rest");
                    }
                    let next = world.recovery.next_timeout(&world.context);
                    prop_assert!(next.is_none_or(|at| at > world.now));
                    model.settle(&mut world, None)?;
                }
                Step::Skip(space) => {
                    world.recovery.on_number_skipped(space, model.next[space as usize]);
                    model.next[space as usize] += 1;
                }
                Step::Abandon => {
                    world.recovery.abandon_space(Space::Data, &mut world.outcome);
                    model.settle(&mut world, Some(Space::Data))?;
                    prop_assert!(model.outstanding[Space::Data as usize].values().all(|b| *b == 0));
                    model.outstanding[Space::Data as usize].clear();
                }
                Step::Confirm => world.context.handshake = Handshake::Confirmed,
            }
            let expected: u64 = model.outstanding.iter().flat_map(|space| space.values()).sum();
            prop_assert_eq!(world.recovery.bytes_in_flight(), expected);
        }
        for space in Space::ALL {
            let held = model.outstanding[space as usize].len();
            let mine = world.recovery.outstanding(space).count();
            prop_assert!(mine <= held && held - mine <= held.saturating_sub(64));
        }
    }
}
