use proptest::prelude::*;

use super::*;
use crate::{
    testing::write_frames,
    wire::{Reader, VarInt, error::Code, frame::Frame},
};

const MS: Duration = Duration::from_millis(1);
const MAX: Duration = Duration::from_millis(25);

/// An owner that may ask a peer with the usual delays.
fn asking() -> AckFrequency {
    let mut ours = AckFrequency::new(MAX);
    ours.set_peer_delays(MAX, Some(MS));
    ours
}

fn path(window: u64, rtt: Duration) -> Path {
    Path {
        window,
        rtt,
        packet_threshold: 3,
    }
}

fn frame(sequence: u64, max_delay: u64) -> frame::AckFrequency {
    frame::AckFrequency {
        sequence,
        threshold: 9,
        max_delay,
        reordering: 1,
    }
}

/// The frame that is sent for a path, if there is one.
fn sent(ours: &mut AckFrequency, path: &Path) -> (Sent, Option<frame::AckFrequency>) {
    ours.on_path(path);
    let mut buffer = [0; 64];
    let mut out = FrameWriter::new(&mut buffer);
    let sent = write_frames(ours, &mut out);
    let len = out.len();
    if len == 0 {
        assert!(sent.is_empty());
        return (sent, None);
    }
    match Frame::decode(&mut Reader::new(&buffer[..len])) {
        Ok(Frame::AckFrequency(frame)) => (sent, Some(frame)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_of_the_peer_is_taken() {
    let mut ours = AckFrequency::new(MAX);
    let request = Request {
        threshold: 9,
        max_delay: 5 * MS,
        reordering: 1,
    };
    assert_eq!(ours.on_frame(&frame(7, 5000)), Ok(Some(request)));
}

#[test]
fn an_older_request_and_a_repeated_one_change_nothing() {
    let mut ours = AckFrequency::new(MAX);
    assert!(ours.on_frame(&frame(7, 5000)).unwrap().is_some());
    for sequence in [7, 6, 0] {
        assert_eq!(ours.on_frame(&frame(sequence, 1000)), Ok(None));
    }
    assert!(ours.on_frame(&frame(8, 1000)).unwrap().is_some());
}

#[test]
fn a_delay_that_cannot_be_is_an_error() {
    let largest = ((1 << 14) - 1) * 1000 + 999;
    for (micros, ok) in [
        (0, false),
        (999, false),
        (1000, true),
        (largest, true),
        (largest + 1, false),
        (VarInt::MAX.get(), false),
    ] {
        let taken = AckFrequency::new(MAX).on_frame(&frame(0, micros));
        match taken {
            Ok(_) => assert!(ok, "{micros}"),
            Err(error) => {
                assert!(!ok, "{micros}");
                assert_eq!(error.code(), Code::PROTOCOL_VIOLATION);
            }
        }
    }
}

#[test]
fn huge_values_have_a_bounded_effect() {
    let huge = frame::AckFrequency {
        sequence: VarInt::MAX.get(),
        threshold: VarInt::MAX.get(),
        max_delay: ((1 << 14) - 1) * 1000,
        reordering: VarInt::MAX.get(),
    };
    let request = AckFrequency::new(MAX).on_frame(&huge).unwrap().unwrap();
    assert_eq!(request.threshold, limits::ACK_THRESHOLD);
    assert_eq!(request.max_delay, limits::ACK_DELAY);
}

#[test]
fn what_was_not_announced_is_an_unknown_frame() {
    let mut ours = AckFrequency::new(MS / 2);
    assert_eq!(ours.local_min_delay(), None);
    let error = ours.on_frame(&frame(0, 5000)).unwrap_err();
    assert_eq!(error.code(), Code::FRAME_ENCODING_ERROR);
    let error = ours.on_immediate_ack().unwrap_err();
    assert_eq!(error.code(), Code::FRAME_ENCODING_ERROR);

    let announced = AckFrequency::new(MS);
    assert_eq!(announced.local_min_delay(), Some(MS));
    assert_eq!(announced.on_immediate_ack(), Ok(()));
}

#[test]
fn nothing_is_asked_of_a_peer_that_does_not_take_it() {
    let mut ours = AckFrequency::new(MAX);
    ours.set_peer_delays(40 * MS, None);
    assert!(!ours.can_ask());
    assert_eq!(sent(&mut ours, &path(1000, 100 * MS)).1, None);
    assert_eq!(ours.peer_max_delay(), 40 * MS);
}

#[test]
fn a_small_window_is_left_to_the_default() {
    let mut ours = asking();
    for window in [0, 1, 10, 71] {
        assert_eq!(sent(&mut ours, &path(window, 4 * MS)).1, None, "{window}");
    }
}

#[test]
fn a_large_window_brings_some_acks_in_each_round() {
    for (window, rtt, threshold, delay) in [
        (72, 100 * MS, 2, 25_000),
        (240, 40 * MS, 9, 10_000),
        (480, MS, 19, 1000),
        (100_000, 20 * MS, 63, 5000),
    ] {
        let (_, frame) = sent(&mut asking(), &path(window, rtt));
        let expected = frame::AckFrequency {
            sequence: 0,
            threshold,
            max_delay: delay,
            reordering: 3,
        };
        assert_eq!(frame, Some(expected), "{window}");
    }
}

#[test]
fn the_delay_keeps_to_what_the_peer_announced() {
    let mut ours = AckFrequency::new(MAX);
    ours.set_peer_delays(8 * MS, Some(6 * MS));
    let (_, far) = sent(&mut ours, &path(160, 400 * MS));
    assert_eq!(far.unwrap().max_delay, 8000);
    let mut ours = AckFrequency::new(MAX);
    ours.set_peer_delays(8 * MS, Some(6 * MS));
    let (_, near) = sent(&mut ours, &path(160, MS));
    assert_eq!(near.unwrap().max_delay, 6000);
}

#[test]
fn only_a_change_by_a_factor_of_two_is_worth_a_frame() {
    let mut ours = asking();
    let (first, frame) = sent(&mut ours, &path(240, 40 * MS));
    assert_eq!(frame.unwrap().sequence, 0);
    ours.on_acked(&first);
    for (window, rtt) in [(240, 40 * MS), (430, 60 * MS), (150, 30 * MS)] {
        assert_eq!(sent(&mut ours, &path(window, rtt)).1, None, "{window}");
    }
    let (second, frame) = sent(&mut ours, &path(480, 40 * MS));
    assert_eq!(frame.unwrap().sequence, 1);
    ours.on_acked(&second);
    let (_, frame) = sent(&mut ours, &path(480, 20 * MS));
    assert_eq!(frame.map(|frame| frame.max_delay), Some(5000));
}

#[test]
fn one_request_is_under_way_at_a_time() {
    let mut ours = asking();
    let (first, _) = sent(&mut ours, &path(160, 40 * MS));
    assert!(!first.is_empty());
    assert_eq!(sent(&mut ours, &path(1000, 40 * MS)).1, None);
    ours.on_acked(&first);
    assert!(sent(&mut ours, &path(1000, 40 * MS)).1.is_some());
}

#[test]
fn a_lost_request_is_made_again_under_another_number() {
    let mut ours = asking();
    let (first, asked) = sent(&mut ours, &path(160, 40 * MS));
    ours.on_lost(&first);
    // Even if the default would be right now: the lost request may be in force.
    let (second, again) = sent(&mut ours, &path(10, 40 * MS));
    let again = again.unwrap();
    assert_eq!((again.sequence, again.threshold), (1, 1));
    assert!(asked.unwrap().threshold > 1);
    // The fate of an older request no longer matters.
    ours.on_lost(&first);
    ours.on_acked(&first);
    assert_eq!(sent(&mut ours, &path(1000, 40 * MS)).1, None);
    ours.on_acked(&second);
    assert!(sent(&mut ours, &path(1000, 40 * MS)).1.is_some());
}

#[test]
fn a_lost_request_is_made_again_without_news_of_the_path() {
    let mut ours = asking();
    let (first, asked) = sent(&mut ours, &path(160, 40 * MS));
    ours.on_lost(&first);
    let mut buffer = [0; 64];
    let mut out = FrameWriter::new(&mut buffer);
    assert!(!write_frames(&mut ours, &mut out).is_empty());
    let frame = Frame::decode(&mut Reader::new(&buffer)).unwrap();
    let expected = frame::AckFrequency {
        sequence: 1,
        ..asked.unwrap()
    };
    assert_eq!(frame, Frame::AckFrequency(expected));
}

#[test]
fn a_shorter_delay_counts_once_it_is_acknowledged() {
    let mut ours = asking();
    let (shorter, _) = sent(&mut ours, &path(160, 20 * MS));
    assert_eq!(ours.peer_max_delay(), MAX);
    ours.on_acked(&shorter);
    assert_eq!(ours.peer_max_delay(), 5 * MS);
}

#[test]
fn a_longer_delay_counts_as_soon_as_it_is_asked_for() {
    let mut ours = asking();
    let (shorter, _) = sent(&mut ours, &path(160, 20 * MS));
    ours.on_acked(&shorter);
    let (longer, _) = sent(&mut ours, &path(160, 80 * MS));
    assert_eq!(ours.peer_max_delay(), 20 * MS);
    // A packet that counts as lost may have arrived.
    ours.on_lost(&longer);
    assert_eq!(ours.peer_max_delay(), 20 * MS);
    let (last, _) = sent(&mut ours, &path(160, 20 * MS));
    assert_eq!(ours.peer_max_delay(), 20 * MS);
    ours.on_acked(&last);
    assert_eq!(ours.peer_max_delay(), 5 * MS);
}

#[test]
fn a_packet_without_room_carries_no_request() {
    let mut ours = asking();
    ours.on_path(&path(160, 40 * MS));
    let mut buffer = [0; 5];
    let mut out = FrameWriter::new(&mut buffer);
    assert!(write_frames(&mut ours, &mut out).is_empty());
    assert!(sent(&mut ours, &path(160, 40 * MS)).1.is_some());
}

proptest! {
    /// Whatever the path does and whatever is lost, the peer can accept every request, the numbers
    /// grow, and the probe timeout never relies on a delay that may not be in force.
    #[test]
    fn requests_are_valid_and_the_delay_is_never_underestimated(
        steps in prop::collection::vec((0..5000u64, 0..2000u64, 0..3u8), 1..60),
        min in 1..25u64,
    ) {
        let mut ours = AckFrequency::new(MAX);
        let least = Duration::from_millis(min);
        ours.set_peer_delays(MAX, Some(least));
        let mut peer = AckFrequency::new(MAX);
        peer.local_min = Some(least);
        let mut in_force = MAX;
        let mut next = 0;
        for (window, rtt, fate) in steps {
            let (sent, frame) = sent(&mut ours, &path(window, Duration::from_millis(rtt)));
            if let Some(frame) = frame {
                prop_assert_eq!(frame.sequence, next);
                next += 1;
                // Lost; arrived but its acknowledgement did not; acknowledged.
                if fate > 0 {
                    let request = peer.on_frame(&frame).expect("a valid request");
                    in_force = request.expect("a new request").max_delay;
                }
                prop_assert!(ours.peer_max_delay() >= in_force);
                if fate == 2 { ours.on_acked(&sent) } else { ours.on_lost(&sent) }
            }
            prop_assert!(ours.peer_max_delay() >= in_force);
        }
    }
}
