use std::time::Duration;

use super::{client_address, forged::forge, forged::pair, server_address};
use crate::proto::{error::Code, packet::Space, streams::Direction};
use crate::{By, ConnectionError};

/// RFC 9001 §6.1: not before a packet of the current phase was acknowledged.
#[test]
fn keys_are_not_updated_again_before_the_peer_acknowledged_the_last_update() {
    let mut pair = pair();
    pair.run();
    assert!(pair.server.connection().update_keys());
    // The client follows, but nothing it sends in the new phase arrives.
    for _ in 0..2 {
        let mut datagram = forge(pair.server.connection(), Space::Data, 0, |out| {
            assert!(out.ping());
        });
        pair.client
            .receive(pair.now, server_address(), &mut datagram);
        pair.client.transmit(pair.now);
        pair.now += Duration::from_secs(5);
    }
    assert_eq!(pair.client.connection().key_updates(), 1);
    assert!(!pair.client.connection().update_keys());

    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Uni).unwrap();
    streams.finish(id).unwrap();
    for mut datagram in pair.client.transmit(pair.now) {
        pair.server
            .receive(pair.now, client_address(), &mut datagram);
    }
    pair.run();
    let mut datagram = forge(pair.server.connection(), Space::Data, 0, |out| {
        assert!(out.ack(0, std::iter::once(0..=0), None).is_some());
    });
    pair.client
        .receive(pair.now, server_address(), &mut datagram);
    assert!(pair.client.connection().update_keys());
}

/// RFC 9001 §6.6: not one packet more than the AEAD allows.
#[test]
fn keys_that_are_spent_without_an_update_end_the_connection() {
    let mut pair = pair();
    pair.run();
    let now = pair.now;
    let server = pair.server.connection();
    // The update is never followed, so there cannot be another.
    assert!(server.update_keys());
    server.handshake.keys_mut().one_rtt_mut().unwrap().leave(2);
    for packets in 1..=2 {
        assert!(!server.is_closed(), "after {} packets", packets - 1);
        let streams = server.streams();
        let id = streams.open(Direction::Uni).unwrap();
        streams.finish(id).unwrap();
        let mut out = [0; 2048];
        assert!(server.poll_transmit(now, &mut out, 1).is_some());
    }
    let closed = pair.server.close_reason();
    let Some(ConnectionError::Transport { by, code, .. }) = closed else {
        panic!("{closed:?}")
    };
    assert_eq!((by, code), (By::Local, Code::AEAD_LIMIT_REACHED));
    assert!(!pair.server.transmit(now).is_empty(), "it says so");
}

#[test]
fn keys_that_are_due_are_updated_and_last() {
    let mut pair = pair();
    pair.run();
    let now = pair.now;
    let server = pair.server.connection();
    server.handshake.keys_mut().one_rtt_mut().unwrap().leave(1);
    let streams = server.streams();
    let id = streams.open(Direction::Uni).unwrap();
    streams.finish(id).unwrap();
    let mut out = [0; 2048];
    assert!(server.poll_transmit(now, &mut out, 1).is_some());
    assert_eq!(server.key_updates(), 1);
    assert!(!server.is_closed());
}
