//! Tests of frames in packets that may not carry them.

use super::{
    Pair, client_address,
    forged::{forge, pair, with_client_hello},
    server_address,
};
use crate::{
    connection::Connection,
    forge::Raw,
    owners::streams::Direction,
    wire::{
        error::{By, Code, ConnectionError},
        frame::{FrameType, FrameWriter},
        packet::{Kind, Space},
    },
};

/// Frames that only the application space allows, each complete, with their types.
const APPLICATION: &[(u64, &[u8])] = &[
    (0x04, &[0x04, 0, 0, 0]),
    (0x05, &[0x05, 0, 0]),
    (0x07, &[0x07, 1, 0]),
    (0x08, &[0x0a, 0, 0]),
    (0x09, &[0x0b, 0, 0]),
    (0x0c, &[0x0e, 0, 1, 0]),
    (0x0d, &[0x0f, 0, 1, 0]),
    (0x10, &[0x10, 0]),
    (0x11, &[0x11, 0, 0]),
    (0x12, &[0x12, 0]),
    (0x13, &[0x13, 0]),
    (0x14, &[0x14, 0]),
    (0x15, &[0x15, 0, 0]),
    (0x16, &[0x16, 0]),
    (0x17, &[0x17, 0]),
    (
        0x18,
        &[
            0x18, 1, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
    ),
    (0x19, &[0x19, 0]),
    (0x1a, &[0x1a, 0, 0, 0, 0, 0, 0, 0, 0]),
    (0x1b, &[0x1b, 0, 0, 0, 0, 0, 0, 0, 0]),
    (0x1d, &[0x1d, 0, 0]),
    (0x1e, &[0x1e]),
    (0x1f, &[0x1f]),
    (0x24, &[0x24, 0, 0, 0, 0]),
    (0x30, &[0x31, 1, 0]),
    (0xaf, &[0x40, 0xaf, 0, 0, 0, 0]),
];

/// Returns a pair in which both ends have keys for Initial and Handshake packets.
fn in_handshake() -> Pair {
    let mut pair = with_client_hello();
    for mut datagram in pair.server.transmit(pair.now) {
        pair.client
            .receive(pair.now, server_address(), &mut datagram);
    }
    pair
}

/// Proves: rfc9000 12.4 frames-in-wrong-packets-close
/// Proves: rfc9000 12.5 application-frames-are-1rtt
/// Proves: rfc9000 17.2.4 handshake-packets-have-few-frames
/// Proves: rfc9221 5 datagrams-are-in-0rtt-and-1rtt-only
/// Proves: security 1 frames-in-wrong-packets-close
#[test]
fn every_application_frame_in_every_packet_of_the_handshake_closes() {
    for &(ty, frame) in APPLICATION {
        for space in [Space::Initial, Space::Handshake] {
            let mut pair = in_handshake();
            let client = pair.client.connection();
            let mut datagram = forge(client, space, 1200, |out| assert!(out.write(&Raw(frame))));
            pair.server
                .receive(pair.now, client_address(), &mut datagram);
            for mut datagram in pair.server.transmit(pair.now) {
                pair.client
                    .receive(pair.now, server_address(), &mut datagram);
            }
            let Some(ConnectionError::Transport {
                by, code, frame, ..
            }) = pair.client.close_reason()
            else {
                panic!("{ty:#x} in {space:?}");
            };
            let expected = (By::Peer, Code::PROTOCOL_VIOLATION, Some(FrameType(ty)));
            assert_eq!((by, code, frame), expected, "{space:?}");
        }
    }
}

/// Proves: rfc9000 12.2 coalesced-packets-are-processed
#[test]
fn a_packet_behind_one_that_does_not_open_is_processed() {
    let mut pair = in_handshake();
    let client = pair.client.connection();
    let ping = |out: &mut FrameWriter<'_>| assert!(out.ping());
    let mut datagram = forge(client, Space::Initial, 1150, ping);
    *datagram.last_mut().unwrap() ^= 1;
    datagram.extend(forge(client, Space::Handshake, 50, ping));
    pair.server
        .receive(pair.now, client_address(), &mut datagram);
    let server = pair.server.connection();
    assert!(server.acks.largest(Space::Handshake).is_some());
}

/// Proves: rfc9000 12.4 packets-without-frames-close
#[test]
fn a_packet_without_frames_is_a_violation() {
    let mut pair = pair();
    pair.run();
    let now = pair.now;
    let take = |connection: &mut Connection, kind| {
        let dcid = connection.cids().local().next().unwrap();
        connection.take_frames(now, kind, &dcid, &[]).err()
    };
    for kind in [Kind::Initial, Kind::Handshake, Kind::OneRtt] {
        let error = take(pair.server.connection(), kind).unwrap();
        assert_eq!(error.code, Code::PROTOCOL_VIOLATION);
    }
}

/// Proves: rfc9002 7.5 probes-pass-the-window
/// Proves: rfc9002 6.2.4 probes-elicit-acks
#[test]
fn a_probe_leaves_though_the_window_is_full_and_counts() {
    let mut pair = pair();
    pair.run();
    let client = pair.client.connection();
    let id = client.streams().open(Direction::Uni).unwrap();
    client.streams().write(id, &vec![7; 1 << 20]).unwrap();
    let mut now = pair.now;
    // Regardless of pacing, the window fills up; nothing arrives.
    for _ in 0..1000 {
        pair.client.transmit(now);
        now += std::time::Duration::from_micros(100);
    }
    let stats = pair.client.connection().stats();
    let room = stats
        .congestion_window
        .saturating_sub(stats.bytes_in_flight);
    assert!(room < 1200, "{stats:?}");
    let client = pair.client.connection();
    now = client.next_timeout().unwrap();
    client.on_timeout(now);
    assert_eq!(client.stats().ptos, 1);
    assert!(!pair.client.transmit(now).is_empty());
    let in_flight = pair.client.connection().stats().bytes_in_flight;
    assert!(in_flight > stats.bytes_in_flight);
}

/// Its data is sent again, but was not declared lost.
#[test]
fn what_a_probe_repeats_was_not_lost() {
    let mut pair = pair();
    pair.run();
    let client = pair.client.connection();
    let id = client.streams().open(Direction::Uni).unwrap();
    client.streams().write(id, b"hello").unwrap();
    let mut now = pair.now;
    pair.client.transmit(now);
    while pair.client.connection().stats().ptos == 0 {
        now = pair.client.connection().next_timeout().unwrap();
        pair.client.connection().on_timeout(now);
    }
    assert!(!pair.client.transmit(now).is_empty());
    let streams = pair.client.connection().streams();
    assert!(streams.totals().bytes_resent > 0);
    assert_eq!(streams.delivery(id).unwrap().lost, 0);
}
