//! Tests of DATAGRAM frames (RFC 9221) between two connections.

use bytes::Bytes;

use super::{Event, Pair, client_address, forged::forge};
use crate::{
    config::{DatagramConfig, TransportConfig},
    owners::{
        datagrams::{DatagramEvent, DatagramOptions, SendError},
        streams::Direction,
    },
    wire::{
        error::{By, Code, ConnectionError},
        frame::{Datagram, FrameType},
        packet::Space,
    },
};

fn pair() -> Pair {
    let mut pair = super::forged::pair();
    pair.run();
    pair
}

/// Returns a pair whose server accepts no datagrams.
fn one_way() -> Pair {
    let none = DatagramConfig::new().receive_buffer(0);
    let mut pair = Pair::configured(
        TransportConfig::new(),
        TransportConfig::new().datagrams(none),
    );
    pair.run();
    pair
}

fn received(side: &mut super::Side) -> Vec<Bytes> {
    let datagrams = side.connection().datagrams();
    std::iter::from_fn(|| datagrams.recv()).collect()
}

/// Proves: rfc9221 5.2 datagrams-elicit-acks
#[test]
fn datagrams_arrive_in_order_and_are_acknowledged() {
    let mut pair = pair();
    let most = pair.client.connection().max_datagram_size().unwrap();
    assert_eq!(most, 1200 - 1 - 8 - 4 - 16 - 1);
    let sent: Vec<_> = [0, 1, 500, most, 20, most]
        .map(|len| Bytes::from(vec![len as u8; len]))
        .to_vec();
    for data in &sent {
        pair.client
            .connection()
            .send_datagram(data.clone())
            .unwrap();
    }
    pair.run();
    let readable = Event::Datagram(DatagramEvent::Readable);
    assert!(pair.server.events().contains(&readable));
    assert_eq!(received(&mut pair.server), sent);
    let stats = pair.client.connection().stats().datagram_frames;
    assert_eq!((stats.sent, stats.acknowledged, stats.lost), (6, 6, 0));
    assert_eq!(pair.server.connection().stats().datagram_frames.received, 6);
}

/// Proves: rfc9221 3 datagrams-need-the-parameter
#[test]
fn a_peer_that_announced_none_is_sent_none_and_sends_its_own() {
    let mut pair = one_way();
    let client = pair.client.connection();
    assert_eq!(client.max_datagram_size(), None);
    assert_eq!(
        client.send_datagram(Bytes::new()),
        Err(SendError::Unsupported)
    );
    pair.server
        .connection()
        .send_datagram(Bytes::from_static(b"one way"))
        .unwrap();
    pair.run();
    assert_eq!(received(&mut pair.client), [&b"one way"[..]]);
}

/// Proves: rfc9221 3 unannounced-datagrams-close
#[test]
fn an_unannounced_datagram_ends_the_connection() {
    let mut pair = one_way();
    let mut datagram = forge(pair.client.connection(), Space::Data, 0, |out| {
        assert!(out.write(&Datagram { data: b"x" }));
    });
    pair.server
        .receive(pair.now, client_address(), &mut datagram);
    pair.run_until_closed();
    let reason = pair.client.close_reason();
    let Some(ConnectionError::Transport {
        by, code, frame, ..
    }) = reason
    else {
        panic!("{reason:?}");
    };
    assert_eq!(
        (by, code, frame),
        (
            By::Peer,
            Code::PROTOCOL_VIOLATION,
            Some(FrameType::DATAGRAM)
        )
    );
}

/// Proves: rfc9221 5.2 datagrams-elicit-acks
#[test]
fn a_lost_datagram_is_counted_and_not_sent_again() {
    let mut pair = pair();
    let client = pair.client.connection();
    client.send_datagram(Bytes::from_static(b"lost")).unwrap();
    let now = pair.now;
    assert_eq!(pair.client.transmit(now).len(), 1, "and it never arrives");
    for _ in 0..5 {
        let client = pair.client.connection();
        client.send_datagram(Bytes::from_static(b"later")).unwrap();
        pair.run();
    }
    assert_eq!(received(&mut pair.server), [&b"later"[..]; 5]);
    let stats = pair.client.connection().stats().datagram_frames;
    assert_eq!((stats.sent, stats.acknowledged, stats.lost), (6, 5, 1));
}

#[test]
fn full_datagrams_pass_where_every_packet_would_acknowledge_something() {
    let mut pair = pair();
    let most = pair.client.connection().max_datagram_size().unwrap();
    let data = Bytes::from(vec![1; most]);
    // Both ends always have something to acknowledge, and stream data to fill up with.
    for side in [&mut pair.client, &mut pair.server] {
        let streams = side.connection().streams();
        let id = streams.open(Direction::Uni).unwrap();
        streams.write(id, &vec![0; 1 << 20]).unwrap();
        for _ in 0..40 {
            side.connection().send_datagram(data.clone()).unwrap();
        }
    }
    let mut counts = [0; 2];
    for _ in 0..100 {
        pair.step();
        counts[0] += received(&mut pair.client).len();
        counts[1] += received(&mut pair.server).len();
    }
    assert_eq!(counts, [40, 40]);
}

/// A deadline is a timer, so that a datagram that cannot be sent makes room in time.
#[test]
fn a_waiting_datagram_expires() {
    let mut pair = pair();
    let deadline = pair.now + std::time::Duration::from_millis(5);
    let client = pair.client.connection();
    let queued = client.send_datagram_with(
        Bytes::from_static(b"late"),
        DatagramOptions::new().expires(deadline),
    );
    assert_eq!(queued, Ok(()));
    assert!(client.next_timeout().is_some_and(|at| at <= deadline));
    client.on_timeout(deadline);
    let stats = client.stats().datagram_frames;
    assert_eq!((stats.expired, stats.dropped_unsent), (1, 0));
    pair.now = deadline;
    pair.run();
    assert_eq!(received(&mut pair.server), [&b""[..]; 0]);
}
