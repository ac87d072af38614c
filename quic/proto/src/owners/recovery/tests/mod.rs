mod model;
mod moves;
mod persistent;
mod pto;
mod recorder;
mod spurious;
mod window;

use std::ops::RangeInclusive;

use super::*;
use crate::{
    owners::congestion::{Acked, Marked, NewReno},
    testing::{pn, pns},
    wire::{error::Violation, frame::EcnCounts},
};

impl<R> Recovery<R> {
    /// Returns whether the path carries ECN marks.
    pub(crate) const fn ecn_state(&self) -> EcnState {
        self.ecn.state()
    }

    pub(crate) const fn delivery_is_app_limited(&self) -> bool {
        self.delivery.is_app_limited()
    }
}

const RTT: Duration = Duration::from_millis(100);
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn config(side: Side, controller: Box<dyn Controller>) -> Config {
    Config {
        side,
        initial_rtt: ms(333),
        datagram_size: 1200,
        controller,
        skip_seed: None,
        ecn: EcnState::Disabled,
        pacing: Pacing::On,
    }
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
        Self::with(side, Box::new(NewReno::new(1200)))
    }

    fn with(side: Side, controller: Box<dyn Controller>) -> Self {
        let start = Instant::now();
        let config = config(side, controller);
        Self {
            start,
            now: start,
            recovery: Recovery::new(start, config),
            context: Context {
                handshake: Progress::InitialOnly,
                peer_max_ack_delay: MAX_ACK_DELAY,
                amplification: Amplification::Open,
            },
            outcome: Outcome::default(),
        }
    }

    /// A confirmed connection with one round trip measured, exactly [`RTT`], variance half of it.
    fn established() -> Self {
        Self::established_with(Box::new(NewReno::new(1200)))
    }

    fn established_with(controller: Box<dyn Controller>) -> Self {
        let mut world = Self::with(Side::Client, controller);
        world.context.handshake = Progress::Confirmed;
        world.send(Space::Data, 0);
        world.pass(RTT);
        world.ack(Space::Data, [0..=0]);
        world.outcome.clear();
        world
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    fn send_packet(
        &mut self,
        space: Space,
        number: u64,
        change: impl FnOnce(&mut SentPacket<u64>),
    ) {
        let mut packet = SentPacket {
            time_sent: self.now,
            size: 1200,
            ack_eliciting: true,
            in_flight: true,
            largest_acked: None,
            ecn: None,
            snapshot: None,
            held: Held::default(),
            record: number,
        };
        change(&mut packet);
        self.recovery.on_packet_sent(space, pn(number), packet);
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
    ) -> Result<(), Violation> {
        let largest = *ranges[0].end();
        let ack = Ack {
            space,
            largest: pn(largest),
            delay,
            ranges: ranges.into_iter().map(pns),
            ecn: None,
        };
        self.recovery
            .on_ack(self.now, ack, &self.context, &mut self.outcome)
    }

    fn ack<const N: usize>(&mut self, space: Space, ranges: [RangeInclusive<u64>; N]) {
        self.try_ack(space, ranges, Duration::ZERO).unwrap();
    }

    /// An ACK frame of the Data space with ECN counts.
    fn ack_ecn<const N: usize>(
        &mut self,
        ranges: [RangeInclusive<u64>; N],
        ecn: Option<EcnCounts>,
    ) {
        let ack = Ack {
            space: Space::Data,
            largest: pn(*ranges[0].end()),
            delay: Duration::ZERO,
            ranges: ranges.into_iter().map(pns),
            ecn,
        };
        self.recovery
            .on_ack(self.now, ack, &self.context, &mut self.outcome)
            .unwrap();
    }

    fn timeout(&mut self) -> Option<Timeout> {
        self.recovery
            .on_timeout(self.now, &self.context, &mut self.outcome)
    }

    /// Returns the time at which the timer fires, from the start.
    fn timer(&self) -> Option<Duration> {
        self.recovery
            .next_timeout(&self.context)
            .map(|at| at - self.start)
    }

    fn acked(&self) -> Vec<u64> {
        self.outcome
            .acked
            .iter()
            .map(|acked| acked.pn.get())
            .collect()
    }

    fn lost(&self) -> Vec<u64> {
        self.outcome.lost.iter().map(|lost| lost.pn.get()).collect()
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
            .all(|acked| acked.packet.record == acked.pn.get())
    );
    assert!(world.outcome.progress);
    assert_eq!(world.recovery.bytes_in_flight(), 1200);
    world.outcome.clear();
    world.ack(Space::Data, [5..=5, 0..=3]);
    assert!(world.acked().is_empty() && !world.outcome.progress);
}

/// Proves: rfc9000 19.3 ack-of-unsent-closes
#[test]
fn an_ack_of_a_packet_that_was_not_sent_is_a_violation() {
    let mut world = World::established();
    world.send(Space::Data, 1);
    let error = world
        .try_ack(Space::Data, [0..=2], Duration::ZERO)
        .unwrap_err();
    assert_eq!(error, Violation::AckOfUnsent);
    assert!(
        world
            .try_ack(Space::Initial, [0..=0], Duration::ZERO)
            .is_err()
    );
    world.ack(Space::Data, [0..=1]);
}

/// Proves: rfc9000 21.4 skipped-numbers-catch-optimists
#[test]
fn an_ack_of_a_skipped_number_is_a_violation() {
    let mut world = World::established();
    world.send(Space::Data, 1);
    world.recovery.on_number_skipped(Space::Data, pn(2));
    world.send(Space::Data, 3);
    assert!(world.try_ack(Space::Data, [1..=3], Duration::ZERO).is_err());
    world.ack(Space::Data, [3..=3, 1..=1]);
    assert_eq!(world.acked(), [3, 1]);
}

#[test]
fn the_ack_that_carried_our_ack_tells_what_the_peer_knows() {
    let mut world = World::established();
    world.send_packet(Space::Data, 1, |packet| packet.largest_acked = Some(pn(17)));
    world.send_packet(Space::Data, 2, |packet| packet.largest_acked = Some(pn(18)));
    world.ack(Space::Data, [1..=1]);
    assert_eq!(world.outcome.largest_acked_ack, Some(pn(17)));
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

/// Proves: rfc9002 5.1 samples-need-ack-eliciting
#[test]
fn an_ack_of_ack_only_packets_measures_nothing() {
    let mut world = World::established();
    world.send_ack_only(Space::Data, 1);
    world.pass(ms(700));
    world.ack(Space::Data, [1..=1]);
    assert_eq!(world.recovery.rtt().latest(), RTT);
}

/// Proves: rfc9002 5.3 ack-delay-is-bounded
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
    assert_eq!(sample(Progress::Confirmed), Duration::from_micros(109_375));
    assert_eq!(sample(Progress::Keys), Duration::from_micros(102_500));
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

/// Proves: rfc9002 6.1.1 packet-threshold
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

/// Proves: rfc9002 6.2.1 loss-timer-goes-first
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
