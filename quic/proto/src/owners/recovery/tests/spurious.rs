use super::{
    recorder::{Recorder, Told},
    *,
};
use crate::{stats::census::Census, testing::pn};

/// An established connection whose controller records its events.
fn recorded() -> (World, Recorder) {
    let recorder = Recorder::default();
    let mut world = World::established_with(Box::new(recorder.clone()));
    world.outcome.clear();
    recorder.take();
    (world, recorder)
}

fn thresholds(world: &World) -> (u64, Duration) {
    let recovery = &world.recovery;
    (recovery.packet_threshold(), recovery.time_threshold())
}

const ACKED: Told = Told::Acked {
    bytes: 1200,
    marks: 0,
};

#[test]
fn a_late_packet_is_no_loss_and_takes_the_answer_back() {
    let (mut world, recorder) = recorded();
    for pn in 1..=5 {
        world.send(Space::Data, pn);
    }
    world.pass(RTT);
    world.ack(Space::Data, [4..=4]);
    assert_eq!(world.lost(), [1]);
    assert_eq!(recorder.take(), [Told::Lost(1200), ACKED]);
    world.ack(Space::Data, [4..=4, 1..=1]);
    assert_eq!(recorder.take(), [Told::Spurious]);
    assert_eq!(world.recovery.spurious_losses(), 1);
    assert_eq!(world.recovery.packets_lost(), 1);
    assert_eq!(world.recovery.bytes_in_flight(), 3 * 1200);
    assert_eq!(world.lost(), [1], "it was handed back once");
    world.ack(Space::Data, [4..=4, 1..=1]);
    assert_eq!(recorder.take(), [], "once");
}

#[test]
fn the_controller_is_told_once_and_nothing_is_kept_of_it() {
    let (mut world, _) = recorded();
    for pn in 1..=4 {
        world.send(Space::Data, pn);
    }
    world.pass(RTT);
    world.ack(Space::Data, [4..=4]);
    assert_eq!(world.lost(), [1]);
    let mut census = Census::default();
    world.recovery.census(&mut census);
    assert_eq!(census.entries("packets just lost"), 0);
}

#[test]
fn the_answer_stands_while_a_loss_of_the_episode_is_missing() {
    let (mut world, recorder) = recorded();
    for pn in 1..=6 {
        world.send(Space::Data, pn);
    }
    world.pass(RTT);
    world.ack(Space::Data, [5..=5]);
    assert_eq!(world.lost(), [1, 2]);
    world.ack(Space::Data, [5..=5, 2..=2]);
    world.ack(Space::Data, [6..=6]);
    assert_eq!(world.recovery.spurious_losses(), 1);
    assert!(!recorder.take().contains(&Told::Spurious));
    world.ack(Space::Data, [6..=6, 1..=2]);
    assert_eq!(recorder.take(), [Told::Spurious]);
}

#[test]
fn the_undo_comes_before_what_the_same_ack_shows_to_be_lost() {
    let (mut world, recorder) = recorded();
    for pn in 1..=20 {
        world.send(Space::Data, pn);
    }
    world.pass(RTT);
    world.ack(Space::Data, [4..=4]);
    recorder.take();
    world.ack(Space::Data, [12..=12, 4..=4, 1..=1]);
    // 4 packets may overtake one from now on: 11 is not lost.
    assert_eq!(world.lost(), [1, 2, 3, 5, 6, 7, 8]);
    assert_eq!(
        recorder.take(),
        [Told::Spurious, Told::Lost(6 * 1200), ACKED]
    );
}

#[test]
fn the_packet_threshold_follows_the_reordering_seen() {
    let (mut world, _) = recorded();
    for pn in 1..=40 {
        world.send(Space::Data, pn);
    }
    world.pass(RTT);
    world.ack(Space::Data, [4..=4, 2..=3]);
    assert_eq!(world.lost(), [1]);
    world.ack(Space::Data, [11..=11, 2..=10]);
    world.ack(Space::Data, [1..=11]);
    assert_eq!(world.recovery.packet_threshold(), 11);
    world.ack(Space::Data, [22..=22, 13..=21, 1..=11]);
    assert_eq!(world.lost(), [1], "ten overtook 12");
    world.ack(Space::Data, [23..=23, 13..=21, 1..=11]);
    assert_eq!(world.lost(), [1, 12]);
}

#[test]
fn a_skipped_number_is_no_reordering() {
    let (mut world, _) = recorded();
    world.send(Space::Data, 1);
    world.recovery.on_number_skipped(Space::Data, pn(2));
    for pn in 3..=6 {
        world.send(Space::Data, pn);
    }
    world.pass(RTT);
    world.ack(Space::Data, [4..=4]);
    assert!(world.lost().is_empty(), "two packets overtook the first");
    world.ack(Space::Data, [5..=5]);
    assert_eq!(world.lost(), [1]);
    world.ack(Space::Data, [5..=5, 1..=1]);
    assert_eq!(world.recovery.packet_threshold(), 4, "three overtook it");
}

#[test]
fn the_time_threshold_follows_packets_that_come_late() {
    let (mut world, _) = recorded();
    assert_eq!(thresholds(&world), (3, RTT * 9 / 8));
    world.send(Space::Data, 1);
    world.send(Space::Data, 2);
    world.pass(RTT);
    world.ack(Space::Data, [2..=2]);
    world.pass(RTT / 8);
    assert_eq!(world.timeout(), Some(Timeout::Lost));
    world.pass(ms(1));
    world.ack(Space::Data, [1..=2]);
    assert_eq!(thresholds(&world), (3, RTT * 10 / 8));
}

#[test]
fn what_arrives_long_after_is_not_remembered() {
    let (mut world, recorder) = recorded();
    for pn in 1..=4 {
        world.send(Space::Data, pn);
    }
    world.pass(RTT);
    world.ack(Space::Data, [4..=4]);
    recorder.take();
    // Three times 100 ms + 4 * 37.5 ms.
    world.pass(3 * (RTT + ms(150)) + ms(1));
    world.ack(Space::Data, [1..=4]);
    assert_eq!(world.recovery.spurious_losses(), 0);
    assert!(!recorder.take().contains(&Told::Spurious));
}

#[test]
fn a_late_packet_counts_as_delivered_and_measures_no_round_trip() {
    let (mut world, _) = recorded();
    for pn in 1..=5 {
        world.send(Space::Data, pn);
    }
    world.pass(RTT);
    world.ack(Space::Data, [4..=4]);
    let before = (
        world.recovery.delivery.delivered(),
        world.recovery.delivery.lost(),
    );
    world.pass(ms(20));
    // Only an ACK frame that was overtaken reports it.
    world.ack(Space::Data, [1..=1]);
    assert_eq!(world.recovery.rtt().latest(), RTT);
    let after = (
        world.recovery.delivery.delivered(),
        world.recovery.delivery.lost(),
    );
    assert_eq!(after, (before.0 + 1200, before.1));
}

#[test]
fn a_discarded_space_forgets_what_it_lost() {
    let (mut world, recorder) = recorded();
    for pn in 0..=4 {
        world.send(Space::Handshake, pn);
    }
    world.pass(RTT);
    world.ack(Space::Handshake, [4..=4]);
    recorder.take();
    world.recovery.discard_space(Space::Handshake);
    world.ack(Space::Handshake, [0..=4]);
    assert_eq!(recorder.take(), []);
}

#[test]
fn marks_are_told_once_for_each_frame_between_losses_and_acknowledgements() {
    let (mut world, recorder) = recorded();
    world.recovery.ecn = PathEcn::new(EcnState::Testing);
    for pn in 1..=12 {
        let mark = world.recovery.ecn_mark();
        assert_eq!(mark, Some(Ecn::Ect0));
        world.send_packet(Space::Data, pn, |packet| packet.ecn = mark);
    }
    world.pass(RTT);
    let counts = |ect0, ce| Some(EcnCounts { ect0, ect1: 0, ce });
    world.ack_ecn([1..=1], counts(1, 0));
    assert_eq!(recorder.take(), [ACKED]);
    world.ack_ecn([6..=6, 1..=1], counts(1, 1));
    assert_eq!(
        recorder.take(),
        [
            Told::Lost(2400),
            Told::Marked(1),
            Told::Acked {
                bytes: 1200,
                marks: 1
            }
        ]
    );
    assert_eq!(world.recovery.ecn_state(), EcnState::Capable);
    world.ack_ecn([6..=6, 1..=3], counts(3, 1));
    assert_eq!(recorder.take(), [], "marks are never taken back");
    assert_eq!(
        (
            world.recovery.ecn_echoed().ce,
            world.recovery.spurious_losses()
        ),
        (1, 2)
    );
    world.ack_ecn([7..=7], counts(2, 0));
    assert_eq!(recorder.take(), [ACKED]);
    assert_eq!(world.recovery.ecn_state(), EcnState::Failed);
    assert_eq!(world.recovery.ecn_mark(), None);
}
