//! Tests of a server whose ServerHello is lost.

use std::time::{Duration, Instant};

use super::{
    Pair, client_address,
    forged::{forge, pair},
    server_address,
};
use crate::wire::{frame::Owner as _, packet::Space};

const ROUND_TRIP: Duration = Duration::from_millis(100);

/// Clients that do not store packets whose keys they lack have dropped the Handshake packets. These
/// packets need not wait for their own timeout, which a late acknowledgement makes long.
#[test]
fn the_handshake_flight_leaves_again_with_what_is_lost_of_a_server_hello() {
    let mut pair = pair();
    for mut datagram in pair.client.transmit(pair.now) {
        pair.server
            .receive(pair.now, client_address(), &mut datagram);
    }
    let mut flight = pair.server.transmit(pair.now);
    assert!(flight.len() > 1, "the ServerHello spans two datagrams");
    let later = pair.now + ROUND_TRIP;
    for datagram in &mut flight[1..] {
        pair.client.receive(later, server_address(), datagram);
    }
    for mut datagram in pair.client.transmit(later) {
        pair.server.receive(later, client_address(), &mut datagram);
    }
    let server = pair.server.connection();
    assert!(!server.handshake.wants_to_send(Space::Handshake));
    let lost = server.next_timeout().unwrap();
    assert!(lost < later + ROUND_TRIP, "no probe timeout");
    server.on_timeout(lost);
    assert!(server.handshake.wants_to_send(Space::Initial));
    assert!(server.handshake.wants_to_send(Space::Handshake));
}

/// A client sends its ClientHello again if nothing arrived for a second, and doubles that time. The
/// server's own timeout may be even later, and lost packets may fill its window.
///
/// Proves: rfc9002 6.2.3 a-repeated-hello-is-answered
#[test]
fn a_client_hello_that_comes_again_is_answered_before_the_timeout() {
    let mut pair = pair();
    let mut answers = Vec::new();
    let mut now = pair.now;
    for _ in 0..4 {
        let hello = pair.client.transmit(now);
        answers.push(answer(&mut pair, now, hello));
        now = pair.client.connection().next_timeout().unwrap();
        pair.client.connection().on_timeout(now);
    }
    let first = answers[0];
    assert!(first > 1500, "the flight has two datagrams at least");
    assert!(answers.iter().all(|bytes| *bytes >= first), "{answers:?}");
    let later = pair.now + 100 * ROUND_TRIP;
    let copy = forge(pair.client.connection(), Space::Initial, 1200, |out| {
        assert!(out.crypto(0, 1, |bytes| bytes.fill(1)).is_some());
    });
    assert!(answer(&mut pair, later, vec![copy]) < 200, "not for ever");
}

/// Returns the bytes that the server sends for a client's datagrams.
fn answer(pair: &mut Pair, now: Instant, datagrams: Vec<Vec<u8>>) -> usize {
    for mut datagram in datagrams {
        pair.server.receive(now, client_address(), &mut datagram);
    }
    pair.server.transmit(now).iter().map(Vec::len).sum()
}

#[test]
fn a_client_hello_that_comes_twice_within_a_round_trip_is_answered_once() {
    let mut pair = pair();
    let hello = pair.client.transmit(pair.now);
    let client = pair.client.connection();
    let timeout = client.next_timeout().unwrap();
    client.on_timeout(timeout);
    let again = pair.client.transmit(timeout);
    let now = pair.now;
    assert!(answer(&mut pair, now, hello) > 1500);
    assert!(answer(&mut pair, now + ROUND_TRIP, again) < 200);
}
