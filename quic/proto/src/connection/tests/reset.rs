//! Tests of stateless resets at their receiver (RFC 9000 §10.3.1).

use super::{Event, Pair, forged::pair, server_address};
use crate::{
    endpoint::{Arrival, Endpoint, Routed},
    owners::{cids::ResetKey, streams::Direction},
    testing::SystemRandom,
    wire::error::ConnectionError,
};

/// Returns a pair whose client uses an id of the server and knows its token, and that token.
fn established() -> (Pair, [u8; 16]) {
    let mut pair = pair();
    pair.run();
    assert!(pair.client.connection().cids.peer.advance());
    pair.run();
    let token = *pair
        .client
        .connection()
        .cids()
        .reset_tokens()
        .next()
        .unwrap()
        .as_bytes();
    (pair, token)
}

fn reset(len: usize, token: [u8; 16]) -> Vec<u8> {
    let mut datagram = vec![0x55; len - 16];
    datagram.extend(token);
    datagram
}

fn receive(pair: &mut Pair, peer: std::net::SocketAddr, datagram: &[u8]) -> bool {
    let arrival = Arrival {
        peer,
        local: crate::wire::udp::Local::default(),
        ecn: None,
    };
    let mut datagram = datagram.to_vec();
    let routed = pair
        .client
        .endpoint
        .on_datagram(pair.now, &arrival, &mut datagram);
    let Routed::Connection(_, packets) = routed else {
        return false;
    };
    let (_, connection) = pair.client.connection.as_mut().unwrap();
    connection.on_packets(pair.now, &arrival, packets);
    true
}

/// Proves: rfc9000 10.3.1 reset-drains
#[test]
fn a_stateless_reset_ends_the_connection_at_once_and_silently() {
    for len in [21, 40, 1200] {
        let (mut pair, token) = established();
        pair.client.connection().streams().open(Direction::Uni);
        assert!(receive(&mut pair, server_address(), &reset(len, token)));
        let events = pair.client.events();
        assert_eq!(events.last(), Some(&Event::Closed(ConnectionError::Reset)));
        assert!(pair.client.transmit(pair.now).is_empty());
    }
}

/// Proves: rfc9000 10.3.1 only-used-ids-count
/// Proves: rfc9000 10.3 handshake-packets-are-answered
#[test]
fn a_client_that_is_not_confirmed_learns_that_the_server_lost_the_connection() {
    let mut pair = pair();
    let key = || ResetKey::from_secret([7; 32]);
    pair.server.endpoint.set_reset_key(key());
    while pair.client.connection.is_none() || pair.client.connection().handshake().is_none() {
        assert!(pair.step());
    }
    assert!(!pair.client.connection().state.is_confirmed());
    // The server starts again with the same keys.
    let mut server = Endpoint::new(0, Box::new(SystemRandom::new()), None);
    server.set_reset_key(key());
    let mut out = vec![0; 2048];
    let arrival = Arrival {
        peer: super::client_address(),
        local: crate::wire::udp::Local::default(),
        ecn: None,
    };
    while !pair.client.connection().is_closed() {
        for mut datagram in pair.client.transmit(pair.now) {
            server.on_datagram(pair.now, &arrival, &mut datagram);
        }
        while let Some(reset) = server.poll_transmit(pair.now, &mut out) {
            receive(&mut pair, server_address(), &out[..reset.size]);
        }
        if let Some(at) = pair.client.connection().next_timeout() {
            pair.now = at;
            pair.client.connection().on_timeout(at);
        }
    }
    assert!(server.stats().stateless_resets > 0);
    let events = pair.client.events();
    assert_eq!(events.last(), Some(&Event::Closed(ConnectionError::Reset)));
}

/// Proves: security 7 reset-injection-is-ignored
#[test]
fn what_only_resembles_a_stateless_reset_is_dropped() {
    let (mut pair, token) = established();
    let mut wrong = token;
    wrong[15] ^= 1;
    let stranger = std::net::SocketAddr::from(([203, 0, 113, 1], 443));
    receive(&mut pair, server_address(), &reset(40, wrong));
    receive(&mut pair, server_address(), &reset(20, token));
    receive(&mut pair, stranger, &reset(40, token));
    let mut long = reset(40, token);
    long[0] |= 0x80;
    receive(&mut pair, server_address(), &long);
    assert!(!pair.client.connection().is_closed());
    // The token of an id that is no longer used.
    assert!(pair.client.connection().cids.peer.advance());
    pair.run();
    receive(&mut pair, server_address(), &reset(40, token));
    assert!(!pair.client.connection().is_closed());
}

/// Proves: rfc9000 10.2 the-peers-close-ends-ours
#[test]
fn a_closing_connection_ends_with_the_peers_close_or_reset() {
    let closing = || {
        let (mut pair, token) = established();
        let now = pair.now;
        pair.client.connection().close(now, 0, bytes::Bytes::new());
        assert!(!pair.client.transmit(now).is_empty());
        (pair, token)
    };
    let (mut pair, token) = closing();
    receive(&mut pair, server_address(), &reset(40, [0; 16]));
    assert!(!pair.client.connection().state.is_drained(), "anybody's");
    receive(&mut pair, server_address(), &reset(40, token));
    assert!(pair.client.connection().state.is_drained());

    let (mut pair, _) = closing();
    let id = pair.server.connection().streams().open(Direction::Uni);
    let streams = pair.server.connection().streams();
    streams.write(id.unwrap(), b"late").unwrap();
    for datagram in pair.server.transmit(pair.now) {
        receive(&mut pair, server_address(), &datagram);
    }
    assert!(
        !pair.client.connection().state.is_drained(),
        "it missed ours"
    );
    let now = pair.now;
    pair.server.connection().close(now, 0, bytes::Bytes::new());
    for datagram in pair.server.transmit(pair.now) {
        receive(&mut pair, server_address(), &datagram);
    }
    assert!(pair.client.connection().state.is_drained());
}

/// Proves: rfc9000 10.2 closing-lasts-three-pto
#[test]
fn a_peer_that_acknowledges_late_does_not_prolong_the_end() {
    let slow = crate::config::TransportConfig::default()
        .max_ack_delay(std::time::Duration::from_millis((1 << 14) - 1));
    let mut pair = Pair::with_server_transport(slow);
    pair.run();
    let now = pair.now;
    let client = pair.client.connection();
    client.close(now, 0, bytes::Bytes::new());
    let until = client.next_timeout().unwrap();
    assert!(
        until - now < std::time::Duration::from_secs(6),
        "{:?}",
        until - now
    );
}
