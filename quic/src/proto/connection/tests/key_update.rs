use std::time::Duration;

use super::{client_address, forged::forge, forged::pair, server_address};
use crate::proto::{packet::Space, streams::Direction};

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
