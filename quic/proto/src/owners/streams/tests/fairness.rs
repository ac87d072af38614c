use std::collections::BTreeMap;

use super::{
    Direction, LIMITS, Limits, PACKET, StreamId, Streams, frames, packet, pair_with, send_all,
};
use crate::wire::frame::Frame;

const WIDE: Limits = Limits {
    receive_window: 100_000_000,
    stream_receive_window: 10_000_000,
    send_buffer: 10_000_000,
    max_bidi: 1000,
    ..LIMITS
};

fn open(client: &mut Streams, bytes: usize) -> StreamId {
    let id = client.open(Direction::Bidi).unwrap();
    client.write(id, &vec![0; bytes]).unwrap();
    id
}

/// Bytes of each stream in the next packets.
fn shares(client: &mut Streams, packets: usize) -> BTreeMap<StreamId, usize> {
    let mut shares = BTreeMap::new();
    for _ in 0..packets {
        let Some((payload, _)) = packet(client) else {
            break;
        };
        for frame in frames(&payload) {
            if let Frame::Stream(frame) = frame {
                *shares.entry(frame.id).or_default() += frame.data.len();
            }
        }
    }
    shares
}

#[test]
fn streams_with_much_to_send_get_equal_shares() {
    let (mut client, _) = pair_with(WIDE);
    for _ in 0..10 {
        open(&mut client, 1_000_000);
    }
    let shares = shares(&mut client, 1000);
    let (least, most) = (
        shares.values().min().unwrap(),
        shares.values().max().unwrap(),
    );
    assert_eq!(shares.len(), 10);
    assert!(most - least <= 10_000, "{shares:?}");
}

#[test]
fn a_short_stream_does_not_wait_for_long_ones() {
    let (mut client, _) = pair_with(WIDE);
    for _ in 0..3 {
        open(&mut client, 5_000_000);
    }
    shares(&mut client, 100);
    let short = open(&mut client, 10);
    let after = (1..100).find(|_| shares(&mut client, 1).contains_key(&short));
    assert!(after.is_some_and(|packets| packets <= 30), "{after:?}");
}

#[test]
fn a_stream_fills_whole_packets_in_its_turn() {
    let (mut client, _) = pair_with(WIDE);
    for _ in 0..4 {
        open(&mut client, 1_000_000);
    }
    let mixed = (0..400)
        .filter(|_| shares(&mut client, 1).len() > 1)
        .count();
    assert!(mixed <= 60, "{mixed} of 400");
}

#[test]
fn many_short_streams_share_a_packet() {
    let (mut client, _) = pair_with(WIDE);
    for _ in 0..20 {
        open(&mut client, 10);
    }
    assert_eq!(shares(&mut client, 1).len(), 20);
}

#[test]
fn a_stream_at_its_limit_does_not_hold_others_up() {
    let (mut client, _) = pair_with(Limits {
        stream_receive_window: 10_000,
        ..WIDE
    });
    let blocked = open(&mut client, 50_000);
    let other = open(&mut client, 10_000);
    let shares = shares(&mut client, 100);
    assert_eq!((shares[&blocked], shares[&other]), (10_000, 10_000));
}

#[test]
fn streams_given_up_leave_the_queue_without_a_search() {
    let (mut client, _) = pair_with(WIDE);
    let ids: Vec<_> = (0..1000).map(|_| open(&mut client, 10)).collect();
    for id in &ids[..999] {
        client.reset(*id, 0).unwrap();
    }
    let mut shares = BTreeMap::new();
    while let Some((payload, _)) = packet(&mut client) {
        for frame in frames(&payload) {
            match frame {
                Frame::Stream(frame) => *shares.entry(frame.id).or_insert(0) += frame.data.len(),
                frame => assert!(matches!(frame, Frame::ResetStream(_))),
            }
        }
    }
    assert_eq!(shares, BTreeMap::from([(ids[999], 10)]));
    assert!(!client.has_pending());
}

#[test]
fn streams_given_up_while_the_connection_is_blocked_do_not_pile_up() {
    let (mut client, mut server) = pair_with(Limits {
        receive_window: 5,
        ..WIDE
    });
    send_all(&mut client, &mut server);
    let first = open(&mut client, 5);
    send_all(&mut client, &mut server);
    for _ in 0..900 {
        let id = open(&mut client, 10);
        client.reset(id, 0).unwrap();
        send_all(&mut client, &mut server);
        assert!(!client.has_pending());
        assert!(client.schedule.fresh.is_empty());
        assert_eq!(client.schedule.fresh.len(), 0);
    }
    assert_eq!((client.sends.len(), client.stop_code(first)), (1, None));
}

#[test]
fn a_packet_is_not_filled_up_with_slivers() {
    let (mut client, _) = pair_with(WIDE);
    open(&mut client, PACKET - 40);
    let other = open(&mut client, 100);
    assert!(!shares(&mut client, 1).contains_key(&other));
    assert_eq!(shares(&mut client, 1), BTreeMap::from([(other, 100)]));
    open(&mut client, PACKET - 40);
    let short = open(&mut client, 10);
    assert!(
        shares(&mut client, 1).contains_key(&short),
        "what fits whole is not a sliver"
    );
}
