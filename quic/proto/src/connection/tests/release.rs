use bytes::Bytes;

use super::{BACKENDS, Pair, client_address, forged::pair, server_address};
use crate::{owners::streams::Direction, wire::packet::Space};

#[test]
fn a_closed_connection_holds_nothing_it_would_send() {
    let mut pair = pair();
    pair.run();
    let chunk = Bytes::from(vec![7; 512 * 1024]);
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Uni).unwrap();
    assert_eq!(streams.write_chunk(id, &mut chunk.clone()), Ok(chunk.len()));
    pair.client.transmit(pair.now);
    assert!(!chunk.is_unique());
    let now = pair.now;
    let client = pair.client.connection();
    assert!(client.recovery.bytes_in_flight() > 0);
    client.close(now, 0, Bytes::new());
    assert!(chunk.is_unique(), "the stream's data is gone");
    assert_eq!(client.recovery.bytes_in_flight(), 0);
    assert_eq!(client.recovery.outstanding(Space::Data).count(), 0);
    assert!(
        !client.streams().is_send_acknowledged(id),
        "it is not pretended that the data arrived"
    );
    // The peer still learns about it, and releases its state as well.
    let streams = pair.server.connection().streams();
    let id = streams.open(Direction::Uni).unwrap();
    let chunk = Bytes::from(vec![7; 512 * 1024]);
    assert_eq!(streams.write_chunk(id, &mut chunk.clone()), Ok(chunk.len()));
    pair.server.transmit(pair.now);
    for mut datagram in pair.client.transmit(pair.now) {
        pair.server
            .receive(pair.now, client_address(), &mut datagram);
    }
    assert!(pair.server.connection().is_closed());
    assert!(chunk.is_unique());
}

#[test]
fn what_came_before_the_close_can_still_be_read() {
    let mut pair = pair();
    pair.run();
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Uni).unwrap();
    assert_eq!(streams.write(id, b"last words"), Ok(10));
    pair.step();
    let now = pair.now;
    pair.client.connection().close(now, 0, Bytes::new());
    pair.step();
    assert!(pair.server.connection().is_closed());
    let streams = pair.server.connection().streams();
    assert_eq!(streams.accept(Direction::Uni), Some(id));
    let mut buffer = [0; 16];
    assert_eq!(streams.read(id, &mut buffer), Ok(10));
}

/// Proves: rfc9000 10.2 close-goes-with-the-last-acknowledgement
#[test]
fn a_close_tells_what_arrived_before_although_it_is_lost_at_first() {
    let policy = hybriq_tls::KeyExchange::default;
    for backend in BACKENDS {
        for (lost, server_sends) in [(0, false), (0, true), (1, false), (1, true)] {
            let mut pair = Pair::new(policy(), policy(), [backend; 2]);
            pair.run();
            let (at_client, at_server) = (server_address(), client_address());
            let (from, to, at_from, at_to) = if server_sends {
                (&mut pair.server, &mut pair.client, at_server, at_client)
            } else {
                (&mut pair.client, &mut pair.server, at_client, at_server)
            };
            let streams = from.connection().streams();
            let id = streams.open(Direction::Uni).unwrap();
            assert_eq!(streams.write(id, b"whole"), Ok(5));
            streams.finish(id).unwrap();
            for mut datagram in from.transmit(pair.now) {
                to.receive(pair.now, at_to, &mut datagram);
            }
            to.connection().close(pair.now, 0, Bytes::new());
            for _ in 0..lost {
                assert!(!to.transmit(pair.now).is_empty());
                // The sender asks again, and gets the same answer again.
                let timeout = from.connection().next_timeout().unwrap();
                pair.now = pair.now.max(timeout);
                from.connection().on_timeout(pair.now);
                for mut datagram in from.transmit(pair.now) {
                    to.receive(pair.now, at_to, &mut datagram);
                }
            }
            for mut datagram in to.transmit(pair.now) {
                from.receive(pair.now, at_from, &mut datagram);
            }
            let from = from.connection();
            assert!(from.is_closed(), "{backend:?} {lost}");
            assert!(
                from.streams().is_send_acknowledged(id),
                "{backend:?} {lost}"
            );
        }
    }
}

#[test]
fn tls_objects_go_as_soon_as_nothing_needs_them() {
    let mut pair = pair();
    let is_complete = |side: &super::Side| {
        let connection = side.connection.as_ref();
        connection.is_some_and(|(_, connection)| connection.handshake().is_some())
    };
    while !is_complete(&pair.server) {
        assert!(pair.step());
    }
    let server = pair.server.connection();
    assert!(!server.handshake.has_session(), "complete");
    let client = pair.client.connection();
    assert!(client.handshake.has_session(), "the ticket is to come");
    pair.run();
    assert!(!pair.client.connection().handshake.has_session());
}

#[test]
fn a_client_does_not_wait_for_a_ticket_for_ever() {
    let mut pair = super::Pair::without_tickets();
    pair.run();
    let client = pair.client.connection();
    assert!(client.handshake.has_session());
    let due = pair.now + std::time::Duration::from_secs(10);
    let client = pair.client.connection();
    while let Some(at) = client.next_timeout().filter(|at| *at <= due) {
        client.on_timeout(at);
    }
    assert!(!client.is_closed());
    assert!(!client.handshake.has_session());
}

#[test]
fn the_spaces_of_the_handshake_end_with_it() {
    for backend in BACKENDS {
        let policy = hybriq_tls::KeyExchange::default;
        let mut pair = Pair::new(policy(), policy(), [backend; 2]);
        pair.run();
        let now = pair.now;
        pair.server.connection().close(now, 0, Bytes::new());
        pair.step();
        for end in [&mut pair.client, &mut pair.server] {
            let connection = end.connection();
            assert!(!connection.acks.received.has_handshake());
            assert!(!connection.recovery.has_handshake());
        }
    }
}
