//! Tests of a failing path without another path to return to (RFC 9000 §9.3.2).

use std::net::SocketAddr;

use super::{
    Pair, client_address,
    forged::{forge, pair},
};
use crate::{
    endpoint::{Arrival, Local},
    owners::path::State,
    wire::{
        error::ConnectionError,
        packet::{NumberedCid, Space},
    },
};

/// Returns a server that follows its client to an address where nobody answers.
fn followed() -> Pair {
    let mut pair = pair();
    pair.run();
    let nowhere = SocketAddr::new(client_address().ip(), 9);
    let ping = forge(pair.client.connection(), Space::Data, 0, |out| {
        assert!(out.ping());
    });
    let arrival = Arrival {
        peer: nowhere,
        local: Local::default(),
        ecn: None,
    };
    let server = pair.server.connection();
    server.on_datagram(pair.now, &arrival, &mut ping.clone());
    assert_eq!(server.peer_address(), nowhere);
    pair
}

/// Proves: rfc9000 9.3.2 nothing-left-ends-silently
#[test]
fn a_connection_without_a_validated_address_ends_without_a_packet() {
    let mut pair = followed();
    let server = pair.server.connection();
    server.paths.lose_fallback();
    let mut out = vec![0; 65_536];
    let mut now = pair.now;
    while !server.is_closed() {
        while server.poll_transmit(now, &mut out, 1).is_some() {}
        now = server.next_timeout().expect("validation ends");
        server.on_timeout(now);
    }
    assert!(server.poll_transmit(now, &mut out, 1).is_none());
    assert_eq!(pair.server.close_reason(), Some(ConnectionError::TimedOut));
}

/// Proves: rfc9000 9.3.2 failed-validation-reverts
#[test]
fn with_one_it_returns_there() {
    let mut pair = followed();
    let server = pair.server.connection();
    let mut out = vec![0; 65_536];
    let mut now = pair.now;
    while server.peer_address() != client_address() {
        while server.poll_transmit(now, &mut out, 1).is_some() {}
        now = server.next_timeout().expect("validation ends");
        server.on_timeout(now);
    }
    assert!(!server.is_closed());
}

/// Proves: rfc9000 9.3.2 nothing-left-ends-silently
#[test]
fn without_an_id_to_go_back_with_it_ends() {
    let mut pair = followed();
    let server = pair.server.connection();
    let last = server
        .paths
        .others_mut()
        .find(|path| path.state == State::Fallback);
    last.unwrap().peer_cid = 1 << 20;
    while let Some(NumberedCid { sequence, .. }) = server.cids.peer.take_for_path() {
        server.cids.peer.retire(sequence);
    }
    let mut out = vec![0; 65_536];
    let mut now = pair.now;
    while !server.is_closed() && server.peer_address() != client_address() {
        while server.poll_transmit(now, &mut out, 1).is_some() {}
        now = server.next_timeout().expect("validation ends");
        server.on_timeout(now);
    }
    assert!(now < pair.now + std::time::Duration::from_secs(10));
    assert_eq!(pair.server.close_reason(), Some(ConnectionError::TimedOut));
}
