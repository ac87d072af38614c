//! Tests of a peer's requests to change our acknowledgements (draft-ietf-quic-ack-frequency),
//! sensible and abusive.

use std::time::Duration;

use super::{
    Pair, client_address,
    forged::{forge, pair},
    server_address,
};
use crate::{
    owners::{acks::frequency::AckFrequency, streams::Direction},
    wire::{
        VarInt,
        error::{By, Code, ConnectionError},
        frame::{self, FrameType, FrameWriter},
        limits,
        packet::Space,
    },
};

const MS: Duration = Duration::from_millis(1);

/// Returns an idle pair with a complete handshake.
fn quiet() -> Pair {
    let mut pair = pair();
    pair.run();
    for _ in 0..4 {
        pair.now += Duration::from_millis(100);
        for side in [&mut pair.client, &mut pair.server] {
            side.connection().on_timeout(pair.now);
        }
        while pair.step() {}
    }
    assert_eq!(pair.server.transmit(pair.now), Vec::<Vec<u8>>::new());
    pair
}

fn request(sequence: u64, threshold: u64, max_delay: Duration) -> frame::AckFrequency {
    frame::AckFrequency {
        sequence,
        threshold,
        max_delay: max_delay.as_micros() as u64,
        reordering: 1,
    }
}

/// Delivers a packet of the client with these frames to the server.
fn deliver(pair: &mut Pair, fill: impl FnOnce(&mut FrameWriter<'_>)) {
    let mut datagram = forge(pair.client.connection(), Space::Data, 0, fill);
    pair.server
        .receive(pair.now, client_address(), &mut datagram);
}

/// Returns the number of datagrams that the server sends now.
fn answers(pair: &mut Pair) -> usize {
    pair.server.transmit(pair.now).len()
}

fn ping(pair: &mut Pair) {
    deliver(pair, |out| assert!(out.ping()));
}

fn closed_with(pair: &mut Pair) -> Option<(Code, Option<FrameType>)> {
    match pair.server.close_reason() {
        Some(ConnectionError::Transport {
            by: By::Local,
            code,
            frame,
            ..
        }) => Some((code, frame)),
        None => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_peer_that_asks_for_fewer_acks_gets_fewer() {
    let mut pair = quiet();
    deliver(&mut pair, |out| {
        assert!(out.write(&request(0, 4, 50 * MS)));
    });
    for _ in 0..3 {
        ping(&mut pair);
        assert_eq!(answers(&mut pair), 0);
    }
    ping(&mut pair);
    assert_eq!(answers(&mut pair), 1, "5 packets are more than 4");
    ping(&mut pair);
    pair.now += 49 * MS;
    pair.server.connection().on_timeout(pair.now);
    assert_eq!(answers(&mut pair), 0);
    pair.now += MS;
    pair.server.connection().on_timeout(pair.now);
    assert_eq!(answers(&mut pair), 1, "after the delay that was asked for");
}

#[test]
fn a_peer_that_asks_for_every_ack_gets_it() {
    let mut pair = quiet();
    deliver(&mut pair, |out| assert!(out.write(&request(0, 0, MS))));
    assert_eq!(answers(&mut pair), 1);
    for _ in 0..5 {
        ping(&mut pair);
        assert_eq!(answers(&mut pair), 1);
    }
}

#[test]
fn an_older_request_that_comes_late_is_ignored() {
    let mut pair = quiet();
    deliver(&mut pair, |out| {
        assert!(out.write(&request(5, 9, 50 * MS)));
        assert!(out.write(&request(4, 0, MS)));
        assert!(out.write(&request(5, 0, MS)));
    });
    ping(&mut pair);
    assert_eq!(answers(&mut pair), 0);
}

#[test]
fn an_immediate_ack_is_answered_at_once() {
    let mut pair = quiet();
    deliver(&mut pair, |out| assert!(out.immediate_ack()));
    assert_eq!(answers(&mut pair), 1);
    assert_eq!(answers(&mut pair), 0);
}

/// Proves: rfc9000 13.2.1 one-ack-per-packet
#[test]
fn a_thousand_immediate_acks_in_a_packet_bring_one_ack() {
    let mut pair = quiet();
    deliver(&mut pair, |out| {
        for _ in 0..1000 {
            assert!(out.immediate_ack());
        }
    });
    assert_eq!(answers(&mut pair), 1);
    assert_eq!(answers(&mut pair), 0);
}

#[test]
fn immediate_acks_in_many_packets_of_a_batch_bring_one_ack() {
    let mut pair = quiet();
    for _ in 0..200 {
        deliver(&mut pair, |out| assert!(out.immediate_ack()));
    }
    assert_eq!(answers(&mut pair), 1);
    assert_eq!(answers(&mut pair), 0);
}

#[test]
fn a_packet_full_of_requests_has_the_effect_of_its_last() {
    let mut pair = quiet();
    deliver(&mut pair, |out| {
        let mut sequence = 0;
        while out.write(&request(sequence, 100 + sequence % 7, MS)) {
            sequence += 1;
        }
        assert!(sequence > 80);
    });
    assert_eq!(answers(&mut pair), 0);
    pair.now += MS;
    pair.server.connection().on_timeout(pair.now);
    assert_eq!(answers(&mut pair), 1);
}

#[test]
fn a_request_for_next_to_no_acks_still_gets_some() {
    let mut pair = quiet();
    let most = Duration::from_millis((1 << 14) - 1);
    deliver(&mut pair, |out| {
        assert!(out.write(&frame::AckFrequency {
            threshold: VarInt::MAX.get(),
            reordering: 0,
            ..request(VarInt::MAX.get(), 0, most)
        }));
    });
    for _ in 1..limits::ACK_THRESHOLD {
        ping(&mut pair);
    }
    assert_eq!(answers(&mut pair), 0);
    ping(&mut pair);
    assert_eq!(answers(&mut pair), 1);
    ping(&mut pair);
    pair.now += limits::ACK_DELAY;
    pair.server.connection().on_timeout(pair.now);
    assert_eq!(answers(&mut pair), 1);
}

#[test]
fn a_request_for_a_delay_that_cannot_be_closes_the_connection() {
    for delay in [
        Duration::ZERO,
        Duration::from_micros(999),
        1000 * (16_384 * MS),
    ] {
        let mut pair = quiet();
        deliver(&mut pair, |out| assert!(out.write(&request(0, 1, delay))));
        let expected = Some((Code::PROTOCOL_VIOLATION, Some(FrameType::ACK_FREQUENCY)));
        assert_eq!(closed_with(&mut pair), expected, "{delay:?}");
    }
}

#[test]
fn requests_that_were_not_announced_close_the_connection() {
    for ty in [FrameType::ACK_FREQUENCY, FrameType::IMMEDIATE_ACK] {
        let mut pair = quiet();
        pair.server.connection().acks.frequency = AckFrequency::new(Duration::ZERO);
        deliver(&mut pair, |out| {
            assert!(match ty {
                FrameType::ACK_FREQUENCY => out.write(&request(0, 1, 5 * MS)),
                _ => out.immediate_ack(),
            });
        });
        let expected = Some((Code::FRAME_ENCODING_ERROR, Some(ty)));
        assert_eq!(closed_with(&mut pair), expected);
    }
}

#[test]
fn a_probe_asks_for_an_immediate_ack() {
    for takes_requests in [true, false] {
        let mut pair = quiet();
        deliver(&mut pair, |out| {
            assert!(out.write(&frame::AckFrequency {
                reordering: 0,
                ..request(0, 9, 900 * MS)
            }));
        });
        let client = pair.client.connection();
        if !takes_requests {
            client
                .acks
                .frequency
                .set_peer_delays(Duration::from_millis(25), None);
        }
        let id = client.streams().open(Direction::Bidi).unwrap();
        client.streams().write(id, b"lost").unwrap();
        assert_eq!(pair.client.transmit(pair.now).len(), 1);
        pair.now = pair.client.connection().next_timeout().unwrap();
        pair.client.connection().on_timeout(pair.now);
        let mut probe = pair.client.transmit(pair.now).swap_remove(0);
        pair.server.receive(pair.now, client_address(), &mut probe);
        let mut answer = pair.server.transmit(pair.now);
        assert_eq!(answer.len(), usize::from(takes_requests));
        if let Some(ack) = answer.first_mut() {
            pair.client.receive(pair.now, server_address(), ack);
            assert_eq!(pair.client.connection().recovery.pto_count(), 0);
        }
    }
}
